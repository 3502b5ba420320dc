"""notebooks/ → source/{en,zh}/ → release/{en,zh}/, all at once or not at all."""

from __future__ import annotations

import ast
import logging
import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path

import nbformat
from nbgrader.converters import GenerateAssignment
from nbgrader.coursedir import CourseDirectory
from traitlets.config import Config

from flashcourse.authoring.edition import edition
from flashcourse.authoring.errors import LessonError
from flashcourse.authoring.lesson import Lesson, read_lesson
from flashcourse.authoring.release import configure
from flashcourse.authoring.twins import check_twins
from flashcourse.words import LANGUAGES

STATIONS = ("source", "release")


def find_lessons(root: Path, names: Iterable[str] = ()) -> list[Path]:
    """The lessons' files in notebooks/, all of them or the named ones.

    Raises LessonError for a name that is not there, saying which are.
    """
    folder = root / "notebooks"
    found = {path.stem: path for path in sorted(folder.glob("[0-9][0-9]_*.md"))}
    for name in names:
        if name not in found:
            known = ", ".join(found) or "none"
            raise LessonError(folder / f"{name}.md", None, f"no such lesson; there are: {known}")
    return [found[name] for name in names] or list(found.values())


def build(root: Path, names: Iterable[str] = ()) -> list[str]:
    """Write source/ and release/ for the named lessons (all if none); their ids.

    Nothing is written unless every lesson can be built. Raises LessonError.
    """
    lessons = [checked_lesson(path) for path in find_lessons(root, names)]
    with tempfile.TemporaryDirectory(prefix="flashcourse-build-") as scratch:
        build_into(Path(scratch), lessons)
        for place in places(lessons):
            shutil.rmtree(root / place, ignore_errors=True)
            shutil.copytree(Path(scratch) / place, root / place)
    return [lesson.id for lesson in lessons]


def differences(root: Path, names: Iterable[str] = ()) -> list[str]:
    """What source/ and release/ have otherwise than a build would write it; empty if nothing."""
    names = list(names)
    lessons = [checked_lesson(path) for path in find_lessons(root, names)]
    found = []
    with tempfile.TemporaryDirectory(prefix="flashcourse-build-") as scratch:
        build_into(Path(scratch), lessons)
        for place in places(lessons):
            found += compare(Path(scratch) / place, root / place, place)
    if not names:
        found += stale(root, {lesson.id for lesson in lessons})
    return found


def checked_lesson(path: Path) -> Lesson:
    lesson = read_lesson(path)
    check_twins(lesson)
    return lesson


def places(lessons: list[Lesson]) -> list[Path]:
    """Where each edition of each lesson lies, from the course's root."""
    return [
        Path(station, lang, lesson.id)
        for station in STATIONS
        for lang in LANGUAGES
        for lesson in lessons
    ]


def build_into(root: Path, lessons: list[Lesson]) -> None:
    """Write both stations of every lesson below `root`."""
    for lesson in lessons:
        for lang in LANGUAGES:
            folder = root / "source" / lang / lesson.id
            folder.mkdir(parents=True)
            notebook = edition(lesson, lang)
            text = nbformat.writes(notebook) + "\n"
            (folder / f"{lesson.id}.ipynb").write_text(text, encoding="utf-8", newline="\n")
            release(root, lesson, lang)


def release(root: Path, lesson: Lesson, lang: str) -> None:
    """Let nbgrader make the student's notebook, without a gradebook."""
    config = Config()
    configure(config, lang)
    config.CourseDirectory.root = str(root)
    config.CourseDirectory.assignment_id = lesson.id
    config.GenerateAssignment.no_database = True
    config.SaveCells.enabled = False
    step = GenerateAssignment(coursedir=CourseDirectory(config=config), config=config)
    step.log.setLevel(logging.ERROR)
    try:
        step.start()
    except Exception as error:
        raise LessonError(lesson.path, None, f"nbgrader can't release it: {error}") from error
    check_released(root / "release" / lang / lesson.id / f"{lesson.id}.ipynb", lesson)


def check_released(path: Path, lesson: Lesson) -> None:
    """A student's code cell is Python before anything is filled in."""
    for cell in nbformat.read(path, as_version=4).cells:
        if cell.cell_type != "code":
            continue
        try:
            ast.parse(cell.source)
        except SyntaxError as error:
            raise LessonError(
                lesson.path,
                cell.metadata.flashcourse.key,
                f"without its solution this is no Python (line {error.lineno}: {error.msg}); "
                "keep a statement outside the solution region",
            ) from error


def compare(built: Path, committed: Path, place: Path) -> list[str]:
    """Files that differ between two folders, one line each."""
    names = {p.relative_to(built) for p in built.rglob("*") if p.is_file()}
    names |= {p.relative_to(committed) for p in committed.rglob("*") if is_content(p)}
    found = []
    for name in sorted(names):
        new, old = built / name, committed / name
        if not old.exists():
            found.append(f"{place / name} is missing")
        elif not new.exists():
            found.append(f"{place / name} is not built from any lesson")
        elif new.read_bytes() != old.read_bytes():
            found.append(f"{place / name} differs from what notebooks/ builds")
    return found


def is_content(path: Path) -> bool:
    return path.is_file() and ".ipynb_checkpoints" not in path.parts


def stale(root: Path, known: set[str]) -> list[str]:
    """Lessons in source/ or release/ that notebooks/ does not have."""
    return [
        f"{folder.relative_to(root)} has no lesson in notebooks/"
        for station in STATIONS
        for lang in LANGUAGES
        for folder in sorted((root / station / lang).glob("*"))
        if folder.is_dir() and folder.name not in known
    ]
