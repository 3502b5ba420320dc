"""What is wrong with a lesson, said so that its author finds the place."""

from __future__ import annotations

from pathlib import Path


class LessonError(Exception):
    """A lesson that can't be built: the file, the cell's key (or None) and what to do."""

    def __init__(self, path: Path | str, key: str | None, message: str) -> None:
        self.path, self.key, self.message = Path(path), key, message
        place = f"{self.path.name}: {key}" if key else self.path.name
        super().__init__(f"{place}: {message}")
