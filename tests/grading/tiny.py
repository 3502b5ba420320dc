"""A course of one small lesson, and submissions to it. Small enough to see what must come out."""

from __future__ import annotations

import copy
import json
import os
import re
from pathlib import Path
from typing import Any

LESSON = "tiny"
CONFIG = """\
from flashcourse.grading import configure

c = get_config()
c.CourseDirectory.course_id = "tiny_course"
configure(c)
"""

ANSWER = '''\
def scale_rows(x):
    """Divide each row by its sum."""
    # TODO 1: the row sums, shape (rows, 1)
    ### BEGIN SOLUTION
    total = x.sum(-1, keepdim=True)
    return x / total
    ### END SOLUTION'''
SIZE = """\
# TODO 2: bytes of 6 float32 numbers
### BEGIN SOLUTION
bytes_moved = 24
### END SOLUTION"""
TEST_SCALE = """\
x = torch.tensor([[1.0, 3.0], [2.0, 2.0]])
assert torch.allclose(scale_rows(x), torch.tensor([[0.25, 0.75], [0.5, 0.5]]))
### BEGIN HIDDEN TESTS
SECRET_OF_THE_HIDDEN_TEST = 1234509876
torch.manual_seed(SECRET_OF_THE_HIDDEN_TEST)
y = torch.rand(7, 3) + 0.1
assert torch.allclose(scale_rows(y), torch.nn.functional.normalize(y, p=1, dim=-1))
### END HIDDEN TESTS"""
TEST_PARTIAL = """\
# one point for each row that is right
x = torch.eye(5) + 1
right = (scale_rows(x) - x / 6).abs().amax(-1) < 1e-6
right.sum().item()"""
TEST_SIZE = "assert bytes_moved == 24"
THINKING = {"en": "Because the sum is the same in each column.", "zh": "因为每一列的和相同。"}
# As nbgrader itself leaves them.
STUB = "# YOUR CODE HERE\nraise NotImplementedError()"
WORDS = "YOUR ANSWER HERE"

RIGHT = {
    "scale": "def scale_rows(x):\n    return x / x.sum(-1, keepdim=True)",
    "size": "bytes_moved = 6 * 4",
}


def _cell(key: str, source: str, kind: str = "code", **grading: Any) -> dict[str, Any]:
    metadata: dict[str, Any] = {"flashcourse": {"key": key}}
    if grading:
        role = {"grade": False, "locked": False, "solution": False, "task": False}
        metadata["nbgrader"] = {"grade_id": key, "schema_version": 3, **role, **grading}
    cell: dict[str, Any] = {"cell_type": kind, "id": key, "metadata": metadata, "source": source}
    if kind == "code":
        cell.update(outputs=[], execution_count=None)
    return cell


def source_notebook(lang: str) -> dict[str, Any]:
    """The instructor's edition."""
    prose = {"en": "Scale each row so that it sums to 1.", "zh": "把每一行缩放，使其和为 1。"}[lang]
    test = {"grade": True, "locked": True}
    cells = [
        _cell("intro", prose, "markdown"),
        _cell("start", "import torch"),
        _cell("scale", ANSWER, solution=True),
        _cell("try-it", "print(scale_rows(torch.ones(1, 2)))"),
        _cell("test-scale", TEST_SCALE, **test, points=10),
        _cell("test-partial", TEST_PARTIAL, **test, points=5),
        _cell("size", SIZE, solution=True),
        _cell("test-size", TEST_SIZE, **test, points=5),
        _cell("thinking", THINKING[lang], "markdown", grade=True, solution=True, points=4),
    ]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "flashcourse": {"lesson": LESSON, "lang": lang}}
    return {"nbformat": 4, "nbformat_minor": 5, "metadata": metadata, "cells": cells}


def released_notebook(lang: str) -> dict[str, Any]:
    """The student's edition: no solutions, no hidden tests."""
    notebook = source_notebook(lang)
    for cell in notebook["cells"]:
        text = cell["source"]
        text = re.sub(r"( *)### BEGIN SOL.*?### END SOLUTION", _stub, text, flags=re.S)
        text = re.sub(r"### BEGIN HIDDEN.*?### END HIDDEN TESTS", "", text, flags=re.S)
        cell["source"] = WORDS if cell["id"] == "thinking" else text.strip()
    return notebook


def _stub(region: re.Match[str]) -> str:
    return "\n".join(region.group(1) + line for line in STUB.splitlines())


def make_course(root: Path, config: bool = False) -> Path:
    """Write the course's source and release folders under `root`."""
    for lang in ("en", "zh"):
        for folder, make in (("source", source_notebook), ("release", released_notebook)):
            path = root / folder / lang / LESSON / f"{LESSON}.ipynb"
            path.parent.mkdir(parents=True)
            path.write_text(json.dumps(make(lang), ensure_ascii=False), "utf-8")
    if config:
        (root / "nbgrader_config.py").write_text(CONFIG)
    return root


def submitted(
    answers: dict[str, str] | None = None,
    lang: str = "en",
    before: dict[str, str] | None = None,
    after: dict[str, str] | None = None,
) -> dict[str, Any]:
    """A student's notebook. answers: source by grade id. before, after: code cells of their own,
    beside the cell of that key."""
    notebook = released_notebook(lang)
    cells = []
    for cell in notebook["cells"]:
        cell["source"] = (answers or {}).get(cell["id"], cell["source"])
        for extra, place in ((before, 0), (after, 1)):
            if place == 1:
                cells.append(cell)
            if cell["id"] in (extra or {}):
                own = _cell(f"{cell['id']}-own-{place}", (extra or {})[cell["id"]])
                own["metadata"] = {}
                cells.append(own)
    notebook["cells"] = cells
    return copy.deepcopy(notebook)


def as_bytes(notebook: Any) -> bytes:
    return json.dumps(notebook, ensure_ascii=False).encode()


def hand_in(root: Path, student: str, notebook: dict[str, Any] | bytes) -> Path:
    """Lay a submission where nbgrader looks for it."""
    path = root / "submitted" / student / LESSON / f"{LESSON}.ipynb"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(notebook if isinstance(notebook, bytes) else as_bytes(notebook))
    return path


def nbgrader(root: Path, app: Any, *arguments: str) -> None:
    """One of nbgrader's commands, in this process."""
    before = Path.cwd()
    os.chdir(root)
    try:
        command = app()
        command.initialize(list(arguments))
        command.start()
    finally:
        os.chdir(before)


def release(root: Path) -> None:
    """Let nbgrader release the lesson, and note it in the gradebook."""
    from nbgrader.apps import GenerateAssignmentApp

    nbgrader(root, GenerateAssignmentApp, LESSON, "--force")
