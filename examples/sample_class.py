"""The sample class: read a student's file, and make of it the notebook that was handed in."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import nbformat
import yaml
from nbformat.notebooknode import NotebookNode

HERE = Path(__file__).parent
CELL = re.compile(r"^# %% (\S+)\n", re.MULTILINE)


@dataclass(frozen=True)
class Submission:
    """A sample student's work and what it deserves.

    marks: points by grade id. answers: the source of each answer cell by grade id.
    """

    student: str
    lesson: str
    edition: str
    saved_by: str
    outcome: str
    marks: dict[str, float]
    why: str
    answers: dict[str, str]


def sample_class(lesson: str) -> list[Submission]:
    """Every sample student of one lesson, in the order of their names."""
    return [read_submission(path) for path in sorted((HERE / lesson).glob("*.py"))]


def lessons() -> list[str]:
    """The lessons that have a sample class."""
    return sorted(path.name for path in HERE.iterdir() if re.match(r"\d\d_", path.name))


def read_submission(path: Path) -> Submission:
    """The student in `path`."""
    text = path.read_text(encoding="utf-8")
    head, _, body = text.removeprefix("# ---\n").partition("# ---\n")
    about = yaml.safe_load(re.sub(r"^# ?", "", head, flags=re.MULTILINE))
    _, *parts = CELL.split(body)
    pairs = zip(parts[::2], parts[1::2], strict=True)
    answers = {grade_id: source.strip("\n") for grade_id, source in pairs}
    return Submission(path.stem, path.parent.name, answers=answers, **about)


def handed_in(submission: Submission, course: Path) -> NotebookNode:
    """The student's notebook: the release of `course` with the answers put in."""
    name = submission.lesson
    path = course / "release" / submission.edition / name / f"{name}.ipynb"
    notebook = nbformat.read(path, as_version=4)
    left = dict(submission.answers)
    for cell in notebook.cells:
        grade_id = cell.metadata.get("nbgrader", {}).get("grade_id")
        if grade_id in left:
            cell.source = left.pop(grade_id)
    if left:
        raise ValueError(f"{submission.student}: the release has no cell {', '.join(left)}")
    return as_saved_by_colab(notebook) if submission.saved_by == "colab" else notebook


def as_saved_by_colab(notebook: NotebookNode) -> NotebookNode:
    """What Colab makes of a notebook: format 4.0, no cell ids, its own and odd widget metadata."""
    notebook.nbformat_minor = 0
    notebook.metadata["colab"] = {"provenance": [], "name": "Copy of lesson.ipynb"}
    notebook.metadata["widgets"] = {"application/vnd.jupyter.widget-state+json": {}}
    for number, cell in enumerate(notebook.cells):
        cell.pop("id", None)
        cell.metadata["id"] = f"cell{number:08d}"
    return notebook


def hand_in(submission: Submission, course: Path) -> Path:
    """Write the notebook to submitted/<student>/<lesson>/ of `course`; its path."""
    name = submission.lesson
    path = course / "submitted" / submission.student / name / f"{name}.ipynb"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(nbformat.writes(handed_in(submission, course)) + "\n", encoding="utf-8")
    return path
