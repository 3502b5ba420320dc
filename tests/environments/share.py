"""Let an environment use packages of this one without installing them again."""

from __future__ import annotations

import importlib.metadata
import re
import sysconfig
from collections.abc import Iterable
from pathlib import Path

from packaging.requirements import Requirement

SITE = Path(sysconfig.get_path("purelib"))


def link_packages(folder: Path, names: Iterable[str], without: Iterable[str] = ()) -> Path:
    """Make `folder` hold links to the named packages and all that they need, except `without`.

    Put `folder` on PYTHONPATH or in a .pth file. Packages installed in editable mode, such as
    flashcourse itself, are never among them.
    """
    folder.mkdir(parents=True)
    for name in sorted(needed(names) - {normal(other) for other in without}):
        for entry in top_level(name):
            if not (folder / entry).is_symlink():
                (folder / entry).symlink_to(SITE / entry)
    return folder


def needed(names: Iterable[str]) -> set[str]:
    """The packages and what they require here, by normalised name."""
    found: set[str] = set()
    waiting = [normal(name) for name in names]
    while waiting:
        name = waiting.pop()
        if name in found or name == "flashcourse":
            continue
        try:
            requirements = importlib.metadata.requires(name) or []
        except importlib.metadata.PackageNotFoundError:
            continue
        found.add(name)
        for text in requirements:
            requirement = Requirement(text)
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                waiting.append(normal(requirement.name))
    return found


def top_level(name: str) -> set[str]:
    """The files and folders of a package in site-packages."""
    files = importlib.metadata.files(name) or []
    entries = {file.parts[0] for file in files if file.parts[0] not in ("..", "__pycache__")}
    return {entry for entry in entries if not entry.endswith(".pth")}


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
