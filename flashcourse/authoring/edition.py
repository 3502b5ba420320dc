"""Put together the instructor's notebook of one language, solutions and hidden tests in."""

from __future__ import annotations

from typing import Any

import nbformat
from nbformat.notebooknode import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from flashcourse.authoring.badges import opening_cells
from flashcourse.authoring.closing import closing_cells
from flashcourse.authoring.errors import LessonError
from flashcourse.authoring.figures import inline_figures
from flashcourse.authoring.language import keep_language
from flashcourse.authoring.lesson import Cell, Lesson
from flashcourse.checks import exercises

KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}


def edition(lesson: Lesson, lang: str) -> NotebookNode:
    """The lesson's source notebook in `lang`, the same bytes at every build."""
    cells = opening_cells(lesson.path.parent.parent, lesson.id, lang) + [
        notebook_cell(lesson, cell, lang)
        for cell in lesson.cells
        if cell.lang in (None, lang) and cell.option("only") != "author"
    ]
    cells += closing_cells(lesson, lang)
    metadata = {
        "kernelspec": KERNEL,
        "language_info": {"name": "python"},
        "flashcourse": {
            "lesson": lesson.id,
            "lang": lang,
            "title": lesson.title[lang],
            "minutes": lesson.minutes,
        },
    }
    notebook = new_notebook(cells=cells, metadata=metadata)
    nbformat.validate(notebook)
    return notebook


def notebook_cell(lesson: Lesson, cell: Cell, lang: str) -> NotebookNode:
    """One cell of the edition; its id is its key, so that it never changes."""
    try:
        if cell.kind == "prose":
            source = inline_figures(cell.source, lesson.path.parent)
        else:
            source = keep_language(cell.source, lang)
    except ValueError as error:
        raise LessonError(lesson.path, cell.key, str(error)) from error
    new_cell = new_markdown_cell if cell.kind == "prose" else new_code_cell
    return new_cell(source.strip("\n"), id=cell.key, metadata=cell_metadata(lesson, cell))


def cell_metadata(lesson: Lesson, cell: Cell) -> dict[str, Any]:
    """nbgrader's metadata, where the cell is graded, and the course's own key."""
    own: dict[str, Any] = {"key": cell.key}
    if cell.option("only"):
        own["only"] = cell.option("only")
    metadata: dict[str, Any] = {"flashcourse": own}
    if cell.option("tags"):
        metadata["tags"] = list(cell.option("tags"))
    grading = nbgrader_metadata(cell)
    if grading:
        metadata["nbgrader"] = grading
    if cell.option("exercise"):
        check_exercise_points(lesson, cell)
    return metadata


def nbgrader_metadata(cell: Cell) -> dict[str, Any] | None:
    """What nbgrader needs to know: an answer, a test, a manually graded answer, or nothing."""
    roles = {
        "answer": {"grade": False, "locked": False, "solution": True},
        "test": {"grade": True, "locked": True, "solution": False},
        "manual": {"grade": True, "locked": False, "solution": True},
    }
    for name, role in roles.items():
        if cell.option(name):
            points = {"points": cell.option("points")} if role["grade"] else {}
            return {
                "grade_id": cell.option(name),
                "schema_version": 3,
                "task": False,
                **role,
                **points,
            }
    return None


def check_exercise_points(lesson: Lesson, cell: Cell) -> None:
    """The points that nbgrader gives are those that the check gives."""
    known = exercises()
    name = cell.option("exercise")
    if name not in known:
        raise LessonError(lesson.path, cell.key, f"unknown exercise {name!r}")
    if known[name].points != cell.option("points"):
        raise LessonError(
            lesson.path,
            cell.key,
            f"{cell.option('points')} points here, {known[name].points:g} in the check of {name}",
        )
