"""Names of a package that are imported when they are asked for."""

from __future__ import annotations

import importlib
from collections.abc import Mapping


def load(package: str, where: Mapping[str, str], name: str) -> object:
    """`name` from the module that `where` gives for it. AttributeError for any other name."""
    if name not in where:
        raise AttributeError(f"module {package!r} has no attribute {name!r}")
    return getattr(importlib.import_module(where[name]), name)
