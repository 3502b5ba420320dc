"""The notebooks that are run, unfilled and solved, and what is expected of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import nbformat
from nbformat.notebooknode import NotebookNode

# What a cell may raise while the learner has not written the answer that it uses.
UNFINISHED = ("NotImplementedError",)


def released(root: Path, standalone: bool) -> list[Path]:
    """Every notebook that a learner opens."""
    if standalone:
        return sorted((root / "dist" / "standalone").glob("*.ipynb"))
    return sorted((root / "release").glob("*/*/*.ipynb"))


def lesson_and_language(notebook: NotebookNode) -> tuple[str, str]:
    about = notebook.metadata.flashcourse
    return about.lesson, about.lang


def solved(notebook: NotebookNode, root: Path) -> NotebookNode:
    """A copy with the answers filled in from the instructor's notebook."""
    lesson, lang = lesson_and_language(notebook)
    source = nbformat.read(root / "source" / lang / lesson / f"{lesson}.ipynb", as_version=4)
    answers = {cell.metadata.nbgrader.grade_id: cell.source for cell in graded(source, True)}
    copy = nbformat.from_dict(notebook)
    for cell in graded(copy, True):
        cell.source = answers[cell.metadata.nbgrader.grade_id]
    return copy


def graded(notebook: NotebookNode, solution: bool) -> Iterator[NotebookNode]:
    """The code cells that are answers (`solution`), or those that are tests."""
    for cell in notebook.cells:
        grading = cell.metadata.get("nbgrader")
        if grading and cell.cell_type == "code" and bool(grading.solution) == solution:
            yield cell


def problems(notebook: NotebookNode, is_solved: bool) -> Iterator[str]:
    """What went otherwise than expected in an executed notebook, one line each.

    Unfilled: nothing but NotImplementedError is raised, and no test gives full marks. Solved:
    nothing is raised, and each test that says its points gives all of them. Either way nothing but
    warnings that say so goes to stderr.
    """
    for cell in notebook.cells:
        if cell.cell_type != "code":
            continue
        for output in cell.outputs:
            if output.output_type == "error" and (is_solved or output.ename not in UNFINISHED):
                yield f"{cell.id}: {output.ename}: {output.evalue[:300]}"
    for cell in graded(notebook, False):
        points, full = shown_points(cell), cell.metadata.nbgrader.points
        if points is not None and is_solved and points != full:
            yield f"{cell.id}: {points:g} of {full:g} points with the course's own solution"
        if points is not None and not is_solved and full and points == full:
            yield f"{cell.id}: full marks for an answer that is not there"


def shown_points(cell: NotebookNode) -> float | None:
    """The points that the cell's result shows, as nbgrader reads them."""
    for output in cell.outputs:
        if output.output_type == "execute_result":
            try:
                return float(output.data["text/plain"])
            except ValueError:
                return None
    return None
