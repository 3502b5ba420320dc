"""The notebook that goes to submitted/: the release's cells with the student's answers in them.

Labels, ids, tests and the notebook's metadata come from the release; the student's own cells stay
where they stood, in between. Outputs are left out: grading makes its own.
"""

from __future__ import annotations

import copy
import json
from typing import Any

from flashcourse.collecting.matching import Matching, own_cells
from flashcourse.collecting.reading import OpenCell
from flashcourse.grading.course import CourseCell, CourseNotebook


def rebuild(course: CourseNotebook, cells: tuple[OpenCell, ...], matching: Matching) -> str:
    """The text of the notebook file; equal for submissions that mean the same."""
    own: dict[int, list[dict[str, Any]]] = {}
    for number, (anchor, cell) in enumerate(own_cells(course, cells, matching), 1):
        own.setdefault(anchor, []).append(own_node(cell, number))
    nodes = list(own.get(-1, []))
    for position, course_cell in enumerate(course.cells):
        node = course_node(course_cell, matching.answers.get(position))
        if matching.pictures.get(position):
            node["attachments"] = matching.pictures[position]
        nodes.append(node)
        nodes += own.get(position, [])
    notebook = {
        "cells": nodes,
        "metadata": copy.deepcopy(course.metadata),
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(notebook, ensure_ascii=False, indent=1, sort_keys=True) + "\n"


def course_node(cell: CourseCell, answer: str | None) -> dict[str, Any]:
    node = copy.deepcopy(cell.node)
    node["id"] = node.get("id") or cell.key
    node["source"] = cell.shown if answer is None else answer
    return node


def own_node(cell: OpenCell, number: int) -> dict[str, Any]:
    node: dict[str, Any] = {"cell_type": cell.kind, "id": f"own-{number}", "metadata": {}}
    node["source"] = cell.source
    if cell.kind == "markdown" and cell.pictures:
        node["attachments"] = cell.pictures
    return node | ({"outputs": [], "execution_count": None} if cell.kind == "code" else {})
