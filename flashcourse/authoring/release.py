"""What becomes of the instructor's notebook on its way to the student: steps for nbgrader.

nbgrader's own GenerateAssignment runs these, by nbgrader_config.py, beside its own steps.
"""

from __future__ import annotations

import re
from typing import Any

from nbformat.notebooknode import NotebookNode
from nbgrader import utils
from nbgrader.preprocessors import (
    CheckCellMetadata,
    ClearHiddenTests,
    ClearMarkScheme,
    ClearOutput,
    ClearSolutions,
    ComputeChecksums,
    LockCells,
    NbGraderPreprocessor,
    SaveCells,
)
from traitlets.config import Config

from flashcourse.authoring.closing import NoteGraded
from flashcourse.words import Text

UNFINISHED = Text(
    "Not finished yet: fill in the TODOs, then delete this line.",
    "尚未完成：填好各个 TODO，然后删掉这一行。",
)
ANSWER_HERE = Text("*Write your answer here.*", "*在这里写下你的回答。*")
HIDDEN = Text(
    "# This cell holds only hidden tests: they run when your work is graded.",
    "# 这个单元格只有隐藏测试：评分时才会运行。",
)

Resources = dict[str, Any]


def configure(config: Config, lang: str) -> None:
    """Let nbgrader's GenerateAssignment make the student's edition in `lang`."""
    config.CourseDirectory.source_directory = f"source/{lang}"
    config.CourseDirectory.release_directory = f"release/{lang}"
    config.GenerateAssignment.preprocessors = [
        DropInstructorCells,
        LockCells,
        KeepTodos,
        ClearOutput,
        CheckCellMetadata,
        ComputeChecksums,
        SaveCells,
        HideTests,
        ClearMarkScheme,
        ComputeChecksums,
        CheckCellMetadata,
        NoteGraded,
    ]


def notebook_language(notebook: NotebookNode) -> str:
    return notebook.metadata.get("flashcourse", {}).get("lang", "en")


class DropInstructorCells(NbGraderPreprocessor):
    """Take out the cells that only the instructor reads: explanations of the solution."""

    def preprocess(self, nb: NotebookNode, resources: Resources) -> tuple[NotebookNode, Resources]:
        nb.cells = [
            cell
            for cell in nb.cells
            if cell.metadata.get("flashcourse", {}).get("only") != "instructor"
        ]
        return nb, resources


class KeepTodos(ClearSolutions):
    """Clear the solution regions, keep their TODO comments, and stop the function once.

    nbgrader's own step leaves one stub in each region and none of the TODOs.
    """

    def preprocess(self, nb: NotebookNode, resources: Resources) -> tuple[NotebookNode, Resources]:
        lang = notebook_language(nb)
        self.code_stub = {"python": f'raise NotImplementedError("{UNFINISHED.in_(lang)}")'}
        self.text_stub = ANSWER_HERE.in_(lang)
        return super().preprocess(nb, resources)

    def _replace_solution_region(self, cell: NotebookNode, language: str) -> bool:
        if cell.cell_type != "code":
            return super()._replace_solution_region(cell, language)
        cell.source, count = clear_regions(
            cell.source,
            self.begin_solution_delimeter,
            self.end_solution_delimeter,
            self.code_stub[language],
        )
        return count > 0


def clear_regions(source: str, begin: str, end: str, stub: str) -> tuple[str, int]:
    """`source` with each region's TODO comments only, `stub` at the end of the first; how many.

    Raises RuntimeError for a region in a region, or one that does not end.
    """
    kept: list[str] = []
    count, inside, in_todo = 0, False, False
    for line in source.split("\n"):
        if begin in line:
            if inside:
                raise RuntimeError(f"a solution region begins inside another: {line.strip()!r}")
            inside, in_todo, count = True, False, count + 1
            indent = line[: len(line) - len(line.lstrip())]
        elif end in line:
            if inside and count == 1:
                kept.append(indent + stub)
            inside = False
        elif inside:
            begins = is_todo(line)
            in_todo = begins or (in_todo and is_comment(line))
            if begins and kept and is_comment(kept[-1]):
                kept.append("")
            if in_todo:
                kept.append(line)
        else:
            kept.append(line)
    if inside:
        raise RuntimeError("a solution region does not end")
    return "\n".join(kept), count


def is_comment(line: str) -> bool:
    return line.lstrip().startswith("#")


def is_todo(line: str) -> bool:
    return re.match(r"\s*#\s*TODO\b", line) is not None


class HideTests(ClearHiddenTests):
    """Clear the hidden tests; a cell that is left empty says what was there."""

    def preprocess(self, nb: NotebookNode, resources: Resources) -> tuple[NotebookNode, Resources]:
        nb, resources = super().preprocess(nb, resources)
        for cell in nb.cells:
            if utils.is_grade(cell) and not utils.is_solution(cell) and not cell.source.strip():
                cell.source = HIDDEN.in_(notebook_language(nb))
        return nb, resources
