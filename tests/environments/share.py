"""Let an environment use packages of this one without installing them again."""

from __future__ import annotations

import sysconfig
from collections.abc import Callable
from pathlib import Path

SITE = Path(sysconfig.get_path("purelib"))


def link_packages(folder: Path, wanted: Callable[[str], bool]) -> Path:
    """Make `folder` hold links to this environment's packages whose file name is `wanted`.

    Put `folder` on PYTHONPATH or in a .pth file. Packages installed in editable mode, such as
    flashcourse itself, are never among them: their .pth files are left out.
    """
    folder.mkdir(parents=True)
    for path in SITE.iterdir():
        if path.suffix != ".pth" and not is_flashcourse(path.name) and wanted(path.name):
            (folder / path.name).symlink_to(path)
    return folder


def is_flashcourse(name: str) -> bool:
    return "flashcourse" in name or name.startswith("__editable__")
