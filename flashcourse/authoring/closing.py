"""What stands at the end of every lesson with answers: the cell to run before handing in.

It looks at the saved file. What was given to the student is noted in the notebook's metadata by
`NoteGraded`, the last step of the release, so that nothing but the file is needed.
"""

from __future__ import annotations

from typing import Any

from nbformat.notebooknode import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell
from nbgrader import utils
from nbgrader.preprocessors import NbGraderPreprocessor

from flashcourse.authoring.badges import own
from flashcourse.authoring.lesson import Lesson, grade_id
from flashcourse.handin.saved import fingerprint
from flashcourse.words import Text

# A cell with this tag is shown, but not run, when a submission is graded.
SKIP_TAG = "skip-grading"

PROSE = Text(
    """## Before you hand in

Save the notebook, then run this cell. It looks at the saved file and says which answers are \
unfinished, which cells were changed that must not be, and whether the file will be accepted.""",
    """## 提交之前

先保存，再运行这个单元格。它会检查保存好的文件：哪些回答没写完，哪些不该改的单元格被改了，\
文件能不能被接收。""",
)
CODE = "from flashcourse.handin import check_notebook\n\ncheck_notebook()"


def closing_cells(lesson: Lesson, lang: str) -> list[NotebookNode]:
    """The prose and the cell, in one language; none for a lesson without answers."""
    if not any(grade_id(cell) for cell in lesson.cells):
        return []
    metadata = {**own("check-notebook"), "tags": [SKIP_TAG]}
    return [
        new_markdown_cell(
            PROSE.in_(lang), id="before-handing-in", metadata=own("before-handing-in")
        ),
        new_code_cell(CODE, id="check-notebook", metadata=metadata),
    ]


class NoteGraded(NbGraderPreprocessor):
    """Note in the notebook's metadata which cells are graded, and how they were given."""

    def preprocess(
        self, nb: NotebookNode, resources: dict[str, Any]
    ) -> tuple[NotebookNode, dict[str, Any]]:
        graded = [
            note(cell) for cell in nb.cells if utils.is_grade(cell) or utils.is_solution(cell)
        ]
        nb.metadata.setdefault("flashcourse", {})["graded"] = graded
        return nb, resources


def note(cell: NotebookNode) -> dict[str, Any]:
    grading = cell.metadata.nbgrader
    kind = "test" if not grading.solution else "manual" if grading.grade else "answer"
    return {
        "id": grading.grade_id,
        "key": cell.metadata.get("flashcourse", {}).get("key", ""),
        "kind": kind,
        "points": grading.get("points", 0),
        "given": fingerprint(cell.source),
    }
