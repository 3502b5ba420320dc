"""A lesson as the grader needs it: the release's cells, with the tests of the source."""

from __future__ import annotations

import ast
import hashlib
import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from flashcourse.grading.errors import GradingError
from flashcourse.grading.names import (
    asked_names,
    bound_names,
    cells_behind,
    parse,
    used_names,
    without_idle_marks,
)
from flashcourse.words import LANGUAGES

# A cell with this tag in its metadata is shown, but not run, when a submission is graded.
SKIP_TAG = "skip-grading"


class CourseError(GradingError):
    """The course's own files are missing or don't fit together. Nobody's submission is to blame."""


@dataclass(frozen=True)
class CourseCell:
    """One cell of a lesson.

    role: 'prose', 'code' (the course's own), 'answer', 'manual' (answered in words), 'test'.
    source: what is run or shown: the release's text, but for a test the one in source/.
    shown: the release's text. node: the release's cell, as a notebook stores it.
    defines: names that an answer cell gives the student to define, and that tests use.
    """

    role: str
    key: str
    source: str
    shown: str
    node: dict[str, Any]
    grade_id: str = ""
    points: float = 0.0
    defines: tuple[str, ...] = ()

    @property
    def skipped(self) -> bool:
        return SKIP_TAG in self.node.get("metadata", {}).get("tags", [])


@dataclass(frozen=True)
class Test:
    """A test cell as it is run. names: what it asks for, of the course or of the student."""

    source: str
    names: tuple[str, ...]


@dataclass(frozen=True)
class CourseNotebook:
    """One edition of one lesson's notebook. metadata: the notebook's own."""

    name: str
    lang: str
    cells: tuple[CourseCell, ...]
    metadata: dict[str, Any]

    def graded(self) -> list[CourseCell]:
        return [cell for cell in self.cells if cell.role in ("test", "manual")]

    @cached_property
    def tests(self) -> dict[str, Test]:
        """Every test by its grade id, read once for a whole class."""
        made = {}
        for cell in self.cells:
            if cell.role == "test":
                source = without_idle_marks(cell.source)
                tree = parse(source)
                names = asked_names(tree) if tree is not None else set()
                made[cell.grade_id] = Test(source, tuple(sorted(names)))
        return made

    @cached_property
    def together(self) -> dict[str, frozenset[str]]:
        """For each test, by grade id, all tests that ask for the very same answers, and itself."""
        asked: dict[frozenset[str], list[str]] = {}
        for grade_id, test in self.tests.items():
            wanted = self.answers & set(test.names)
            # A test of no answer stands by itself.
            asked.setdefault(wanted or frozenset({grade_id}), []).append(grade_id)
        return {one: frozenset(ids) for ids in asked.values() for one in ids}

    @cached_property
    def answers(self) -> frozenset[str]:
        """Names that the answer cells are there to define; they are always the student's."""
        return frozenset(name for cell in self.cells for name in cell.defines)

    @cached_property
    def behind_tests(self) -> list[str]:
        """The code cells that make what tests ask for."""
        names = {name for test in self.tests.values() for name in test.names}
        code = [cell.source for cell in self.cells if cell.role == "code"]
        return cells_behind(names - self.answers, code)

    @cached_property
    def own_seed(self) -> int:
        """The seed of the hidden tests' inputs where none is set. The same in each edition."""
        tests = [[cell.grade_id, cell.source] for cell in self.cells if cell.role == "test"]
        return int(hashlib.sha256(json.dumps(tests).encode()).hexdigest()[:8], 16) % 10**6

    @cached_property
    def fingerprint(self) -> str:
        """Changes when anything changes that marks depend on."""
        parts = [[c.role, c.key, c.grade_id, c.points, c.source] for c in self.cells]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def load_course(root: Path, lesson: str) -> dict[str, dict[str, CourseNotebook]]:
    """Every notebook of a lesson, as {name: {language: notebook}}.

    Looks into source/<lang>/<lesson> and release/<lang>/<lesson>. Raises CourseError.
    """
    found: dict[str, dict[str, CourseNotebook]] = {}
    for lang in LANGUAGES:
        for path in sorted((root / "source" / lang / lesson).glob("*.ipynb")):
            release = root / "release" / lang / lesson / path.name
            if release.exists():
                notebook = load_notebook(path, release, lang)
                found.setdefault(path.stem, {})[lang] = notebook
    if not found:
        raise CourseError(
            f"no notebook of {lesson!r} has both a source ({root}/source/<lang>/{lesson}) and a "
            f"release: build the lesson, or run `nbgrader generate_assignment {lesson}`"
        )
    return found


def load_notebook(source: Path, release: Path, lang: str) -> CourseNotebook:
    """The graded form of one notebook: the release's cells, the source's tests."""
    full, given = _read(source), _read(release)
    originals = {_grading(cell).get("grade_id"): cell for cell in full["cells"]}
    used = _used_in_tests(full["cells"])
    cells = [_course_cell(cell, originals, used) for cell in given["cells"]]
    ids = [cell.grade_id for cell in cells if cell.grade_id]
    missing = {name for name, cell in originals.items() if name and cell.get("cell_type")} - set(
        ids
    )
    if missing or len(ids) != len(set(ids)):
        raise CourseError(f"{release} does not fit {source}: release it again ({missing or ids})")
    own = given["metadata"].get("flashcourse", {}).get("lang", lang)
    return CourseNotebook(source.stem, own, tuple(cells), given["metadata"])


def _read(path: Path) -> dict[str, Any]:
    try:
        notebook = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise CourseError(f"can't read {path}: {error}") from None
    if not isinstance(notebook.get("cells"), list):
        raise CourseError(f"{path} is not a notebook of format 4")
    return notebook


def _used_in_tests(cells: list[dict[str, Any]]) -> set[str]:
    trees = [parse(text_of(cell)) for cell in cells if _role(cell, _grading(cell)) == "test"]
    return set().union(*(used_names(tree) for tree in trees if tree is not None))


def _course_cell(
    cell: dict[str, Any], originals: dict[Any, dict[str, Any]], used: set[str]
) -> CourseCell:
    grading = _grading(cell)
    shown, name = text_of(cell), grading.get("grade_id", "")
    role = _role(cell, grading)
    key = cell.get("metadata", {}).get("flashcourse", {}).get("key") or cell.get("id") or name
    source, points = shown, float(grading.get("points") or 0)
    if role == "test":
        if name not in originals:
            raise CourseError(f"the test {name!r} is not in the source: release the lesson again")
        source = text_of(originals[name])
        points = float(_grading(originals[name]).get("points") or 0)
    defines: set[str] = set()
    if role == "answer":
        # Of a solution nothing is kept but the names that tests ask for.
        defines = _defined(shown) | (_defined(text_of(originals.get(name, {}))) & used)
    return CourseCell(role, key, source, shown, cell, name, points, tuple(sorted(defines)))


def _role(cell: dict[str, Any], grading: dict[str, Any]) -> str:
    if grading.get("solution"):
        return "manual" if grading.get("grade") else "answer"
    if grading.get("grade"):
        return "test" if cell["cell_type"] == "code" else "prose"
    return "code" if cell["cell_type"] == "code" else "prose"


def _grading(cell: dict[str, Any]) -> dict[str, Any]:
    return cell.get("metadata", {}).get("nbgrader") or {}


def _defined(source: str) -> set[str]:
    tree = parse(source)
    names: set[str] = set()
    for statement in tree.body if tree is not None else []:
        if not isinstance(statement, (ast.Import, ast.ImportFrom)):
            names |= bound_names(statement)
    return names


def text_of(cell: dict[str, Any]) -> str:
    """A cell's source, which a notebook stores as a string or a list of lines."""
    source = cell.get("source", "")
    return "".join(source) if isinstance(source, list) else source
