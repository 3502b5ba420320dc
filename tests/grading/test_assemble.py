"""A submission decides nothing but the source of its answers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from flashcourse.grading.assemble import Plan, assemble
from flashcourse.grading.course import CourseNotebook
from flashcourse.grading.submission import read_submission

from . import tiny


def plan(editions: dict[str, CourseNotebook], notebook: Any) -> Plan:
    return assemble(editions["en"], read_submission(tiny.as_bytes(notebook)))


def sources(made: Plan) -> dict[str, str]:
    return {cell.course.key: cell.source for cell in made.cells if cell.course is not None}


def test_tests_and_prose_come_from_the_course(editions: dict[str, CourseNotebook]) -> None:
    notebook = tiny.submitted(tiny.RIGHT)
    for cell in notebook["cells"]:
        if cell["id"] in ("intro", "test-scale", "test-partial", "test-size"):
            cell["source"] = "20"
    made = sources(plan(editions, notebook))
    assert made["test-scale"] == tiny.TEST_SCALE
    assert made["intro"] == tiny.source_notebook("en")["cells"][0]["source"]


def test_order_points_and_metadata_come_from_the_course(
    editions: dict[str, CourseNotebook],
) -> None:
    notebook = tiny.submitted(tiny.RIGHT)
    notebook["cells"].reverse()
    for cell in notebook["cells"]:
        if "nbgrader" in cell["metadata"]:
            cell["metadata"]["nbgrader"].update(points=1000, locked=False, schema_version=99)
    made = plan(editions, notebook)
    graded = [c.course for c in made.cells if c.course is not None]
    assert [c.key for c in graded] == [c.key for c in editions["en"].cells]
    assert [c.points for c in graded] == [c.points for c in editions["en"].cells]


@pytest.mark.parametrize("lost", ["nbgrader", "flashcourse", "all", "ids"])
def test_an_answer_is_found_without_its_metadata(
    editions: dict[str, CourseNotebook], lost: str
) -> None:
    notebook = tiny.submitted(tiny.RIGHT)
    for cell in notebook["cells"]:
        if lost in ("all", "ids"):
            cell["metadata"] = {}
        cell["metadata"].pop(lost, None)
        if lost == "ids":
            del cell["id"]
    made = sources(plan(editions, notebook))
    assert made["scale"] == tiny.RIGHT["scale"]
    assert made["size"] == tiny.RIGHT["size"]


def test_of_two_copies_of_an_answer_the_last_changed_one_counts(
    editions: dict[str, CourseNotebook],
) -> None:
    notebook = tiny.submitted(tiny.RIGHT)
    place = next(n for n, c in enumerate(notebook["cells"]) if c["id"] == "scale")
    answer = notebook["cells"][place]
    old = {**answer, "source": "def scale_rows(x):\n    return x"}
    stub = {**answer, "source": tiny.released_notebook("en")["cells"][2]["source"]}
    notebook["cells"][place : place + 1] = [old, answer, stub]
    made = plan(editions, notebook)
    assert sources(made)["scale"] == tiny.RIGHT["scale"]
    assert [c.source for c in made.cells if c.role == "own"] == [old["source"]]


def test_a_split_answer_is_joined_again(editions: dict[str, CourseNotebook]) -> None:
    head, tail = tiny.RIGHT["scale"].split("\n")
    whole = f"{head}\n    total = x.sum(-1, keepdim=True)\n    return x / total"
    first, last = whole.rsplit("\n", 1)
    notebook = tiny.submitted({**tiny.RIGHT, "scale": first}, after={"scale": last})
    assert sources(plan(editions, notebook))["scale"] == whole
    assert tail not in first


def test_a_deleted_cell_is_put_back(editions: dict[str, CourseNotebook]) -> None:
    notebook = tiny.submitted(tiny.RIGHT)
    notebook["cells"] = [c for c in notebook["cells"] if c["id"] == "scale"]
    made = sources(plan(editions, notebook))
    assert made["scale"] == tiny.RIGHT["scale"]
    assert made["start"] == "import torch"
    assert "NotImplementedError" not in made["start"]


def test_an_answer_turned_into_markdown_is_still_the_answer(
    editions: dict[str, CourseNotebook],
) -> None:
    notebook = tiny.submitted(tiny.RIGHT)
    next(c for c in notebook["cells"] if c["id"] == "scale")["cell_type"] = "markdown"
    assert sources(plan(editions, notebook))["scale"] == tiny.RIGHT["scale"]


def test_a_notebook_of_format_3_is_read(editions: dict[str, CourseNotebook]) -> None:
    cells = [
        {"cell_type": "code", "input": cell["source"], "metadata": cell["metadata"]}
        for cell in tiny.submitted(tiny.RIGHT)["cells"]
    ]
    old = {"nbformat": 3, "worksheets": [{"cells": cells}]}
    assert sources(plan(editions, old))["scale"] == tiny.RIGHT["scale"]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "gb18030"])
def test_every_usual_encoding_is_read(encoding: str) -> None:
    text = json.dumps(tiny.submitted(tiny.RIGHT, "zh"), ensure_ascii=False)
    assert read_submission(text.encode(encoding)).lang == "zh"


def test_the_edition_is_seen_from_the_text_where_metadata_is_lost() -> None:
    notebook = tiny.submitted(lang="zh")
    notebook["metadata"] = {}
    assert read_submission(tiny.as_bytes(notebook)).lang == "zh"
