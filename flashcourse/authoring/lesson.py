"""Read a lesson: MyST Markdown with a key on every cell, prose in pairs, code once.

The syntax is described in docs/authors.en.md. Reading is jupytext's, so that a lesson also opens
as a notebook in JupyterLab; what the keys and options mean is said here.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jupytext
import yaml

from flashcourse.authoring.errors import LessonError
from flashcourse.words import LANGUAGES

KEY = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
PROSE_OPTIONS = {"key", "lang", "manual", "points", "only", "mixed", "tags"}
CODE_OPTIONS = {"key", "answer", "test", "points", "exercise", "only", "mixed", "tags"}
ONLY = ("instructor", "author")


@dataclass(frozen=True)
class Cell:
    """One cell as written. kind: 'prose' or 'code'. lang: of prose; None for code."""

    kind: str
    key: str
    source: str
    lang: str | None = None
    options: dict[str, Any] = field(default_factory=dict)

    def option(self, name: str) -> Any:
        return self.options.get(name)


@dataclass(frozen=True)
class Lesson:
    """A lesson as written. title: by language. minutes: the time that a learner needs."""

    path: Path
    id: str
    title: dict[str, str]
    minutes: int
    cells: tuple[Cell, ...]


def read_lesson(path: Path) -> Lesson:
    """The lesson in `path`. Raises LessonError for anything that breaks the syntax."""
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise LessonError(path, None, f"is not UTF-8 text ({error.reason})") from error
    about = read_front_matter(path, text)
    try:
        notebook = jupytext.reads(text, fmt="md:myst")
    except Exception as error:
        raise LessonError(path, None, f"jupytext can't read it: {error}") from error
    cells = tuple(read_cell(path, n, cell) for n, cell in enumerate(notebook.cells, 1))
    check_keys(path, cells)
    return Lesson(path, about["lesson"], about["title"], about["minutes"], cells)


def read_front_matter(path: Path, text: str) -> dict[str, Any]:
    """The `flashcourse` section of the YAML header, checked."""
    match = re.match(r"---\n(.*?)\n---\n", text, flags=re.DOTALL)
    if not match:
        raise LessonError(path, None, "has no front matter: start the file with a --- block")
    try:
        header = yaml.safe_load(match.group(1))
    except yaml.YAMLError as error:
        raise LessonError(path, None, f"front matter is not valid YAML: {error}") from error
    about = header.get("flashcourse") if isinstance(header, dict) else None
    if not isinstance(about, dict):
        raise LessonError(path, None, "front matter has no 'flashcourse:' section")
    if about.get("lesson") != path.stem:
        raise LessonError(
            path, None, f"front matter says lesson {about.get('lesson')!r}: write {path.stem!r}"
        )
    title = about.get("title")
    if not isinstance(title, dict) or sorted(title) != sorted(LANGUAGES):
        raise LessonError(path, None, "front matter: title must be {en: …, zh: …}")
    if not isinstance(about.get("minutes"), int):
        raise LessonError(path, None, "front matter: minutes must be a whole number")
    return about


def read_cell(path: Path, number: int, cell: Any) -> Cell:
    """One notebook cell as a lesson's cell, its options checked."""
    options = dict(cell.metadata)
    start = cell.source.strip().split("\n")[0][:60]
    key = options.pop("key", None)
    if not isinstance(key, str):
        raise LessonError(path, None, f"cell {number} has no key (it starts with {start!r})")
    if not KEY.fullmatch(key) or len(key) > 50:
        raise LessonError(path, key, "a key is at most 50 characters like 'why-scores-hurt'")
    kind = "code" if cell.cell_type == "code" else "prose"
    known = CODE_OPTIONS if kind == "code" else PROSE_OPTIONS
    unknown = sorted(set(options) - known)
    if unknown:
        raise LessonError(
            path, key, f"unknown option {unknown[0]!r}: one of {', '.join(sorted(known))}"
        )
    if options.get("only") not in (None, *ONLY):
        raise LessonError(path, key, f"only: {options['only']!r} is none of {', '.join(ONLY)}")
    lang = options.pop("lang", None)
    if kind == "prose" and lang not in LANGUAGES:
        raise LessonError(
            path, key, f'unknown language {lang!r}: write "lang": one of {", ".join(LANGUAGES)}'
        )
    check_points(path, key, options)
    return Cell(kind, key, cell.source, lang, options)


def check_points(path: Path, key: str, options: dict[str, Any]) -> None:
    """Points are whole numbers and belong to a test or a manually graded answer."""
    graded = options.get("test") or options.get("manual")
    points = options.get("points")
    if graded and (not isinstance(points, int) or isinstance(points, bool) or points < 0):
        raise LessonError(path, key, "a graded cell needs points: a whole number, 0 or more")
    if points is not None and not graded:
        raise LessonError(path, key, "points without a test or a manual answer")


def check_keys(path: Path, cells: tuple[Cell, ...]) -> None:
    """A key stands for one code cell or one pair of prose; a grade id for one cell."""
    slots = Counter((cell.key, cell.lang) for cell in cells)
    kinds: dict[str, set[str]] = {}
    for cell in cells:
        kinds.setdefault(cell.key, set()).add(cell.kind)
    for (key, lang), count in slots.items():
        if count > 1 or len(kinds[key]) > 1:
            what = f" in {lang!r}" if lang and len(kinds[key]) == 1 else ""
            raise LessonError(path, key, f"duplicate key{what}: give each cell its own")
    ids = Counter(grade_id(cell) for cell in cells if grade_id(cell) and cell.lang != "zh")
    for name, count in ids.items():
        if count > 1:
            raise LessonError(path, None, f"grade id {name!r} is used {count} times")


def grade_id(cell: Cell) -> str | None:
    """The name under which nbgrader knows the cell, or None."""
    return cell.option("answer") or cell.option("test") or cell.option("manual")
