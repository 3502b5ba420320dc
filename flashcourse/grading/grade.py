"""Grade one notebook: bytes in, marks and a graded notebook out."""

from __future__ import annotations

import copy
import hashlib
import json
import os
import time
from dataclasses import dataclass, field, replace
from typing import Any

from flashcourse.grading.assemble import Plan, assemble
from flashcourse.grading.course import CourseCell, CourseNotebook
from flashcourse.grading.doubts import doubts_of
from flashcourse.grading.limits import Limits
from flashcourse.grading.outcome import KINDS, CellMark, Graded, Outcome
from flashcourse.grading.outputs import without_script_links
from flashcourse.grading.pool import Pool
from flashcourse.grading.runner import Run, Runner
from flashcourse.grading.submission import Submission, Unreadable, read_submission
from flashcourse.words import LANGUAGES, Text

# Raise it when grading itself changes in a way that changes marks.
GRADER_VERSION = 4


@dataclass(frozen=True)
class Settings:
    """How to grade. seed: of the hidden tests' inputs; None derives one from the course."""

    limits: Limits = field(default_factory=Limits)
    seed: int | None = None

    @staticmethod
    def from_environment() -> Settings:
        text = os.environ.get("FLASHCOURSE_SEED", "").strip()
        return Settings(seed=int(text) if text else None)


def fingerprint(
    data: bytes | Unreadable, editions: dict[str, CourseNotebook], settings: Settings
) -> str:
    """Equal for two gradings that must come out the same."""
    course = [editions[lang].fingerprint for lang in sorted(editions)]
    rest = [course, settings.limits.to_data(), settings.seed, GRADER_VERSION]
    raw = b"" if isinstance(data, Unreadable) else data
    return hashlib.sha256(raw + json.dumps(rest).encode()).hexdigest()


def grade(
    data: bytes | Unreadable,
    editions: dict[str, CourseNotebook],
    pool: Pool,
    settings: Settings,
    lang: str | None = None,
) -> Graded:
    """Grade the notebook with these bytes against a course notebook's editions.

    data: an Unreadable where there is no file to read. lang: the edition to take where the
    submission doesn't show its own. Raises PoolError only for a fault of the machine's.
    """
    pool.wait()
    began = time.monotonic()
    print_of = fingerprint(data, editions, settings)
    try:
        if isinstance(data, Unreadable):
            raise data
        graded = _grade(read_submission(data), editions, pool, settings, lang)
    except Unreadable as error:
        course = editions[lang if lang in editions else sorted(editions)[0]]
        graded = _without_run(course, Plan((), 0), Outcome("unreadable", "", error.why))
    return replace(
        graded,
        seconds=time.monotonic() - began,
        sandboxed=pool.sandboxed,
        fingerprint=print_of,
    )


def _grade(
    submission: Submission,
    editions: dict[str, CourseNotebook],
    pool: Pool,
    settings: Settings,
    lang: str | None,
) -> Graded:
    course = _edition(submission, editions, lang)
    plan = assemble(course, submission)
    if plan.known == 0:
        return _without_run(course, plan, Outcome("foreign"))
    runner = Runner(pool, settings.limits, course, _environment(course, settings))
    run = runner.run(plan, course.lang)
    return _collect(course, plan, run)


def _edition(
    submission: Submission, editions: dict[str, CourseNotebook], lang: str | None
) -> CourseNotebook:
    for wanted in (submission.lang, lang, "en", *editions):
        if wanted in editions:
            return editions[wanted]
    raise AssertionError("a course notebook has at least one edition")


def _environment(course: CourseNotebook, settings: Settings) -> dict[str, str]:
    """The seed that the hidden tests see."""
    seed = course.own_seed if settings.seed is None else settings.seed
    return {"FLASHCOURSE_SEED": str(seed), "NBGRADER_EXECUTION": "autograde"}


def _collect(course: CourseNotebook, plan: Plan, run: Run) -> Graded:
    marks: list[CellMark] = []
    for index, cell in enumerate(plan.cells):
        if cell.role == "test":
            marks.append(run.marks[index])
        elif cell.role == "manual" and cell.course is not None:
            points = None if cell.changed else 0.0
            marks.append(CellMark(cell.course.grade_id, points, cell.course.points, "manual"))
    answers = [c for c in plan.cells if c.role in ("answer", "manual") and c.course]
    names = [c.course.grade_id for c in answers if c.course]
    unchanged = tuple(c.course.grade_id for c in answers if c.course and not c.changed)
    return Graded(
        outcome=decide(run, plan, unchanged),
        marks=tuple(marks),
        notebook=_notebook(course, plan, run),
        answers=tuple(names),
        unchanged=unchanged,
        doubts=(*doubts_of(plan), *run.doubts),
        lang=course.lang,
        peak_mib=run.peak_mib,
    )


def decide(run: Run, plan: Plan, unchanged: tuple[str, ...]) -> Outcome:
    """The one outcome of a submission: the most serious thing that happened in it."""
    order = list(KINDS)
    events = sorted(run.events, key=lambda event: order.index(event.kind))
    if events:
        return events[0]
    code = [c.course.grade_id for c in plan.cells if c.role == "answer" and c.course]
    left = [name for name in code if name in unchanged]
    return Outcome("unfinished", left[0]) if left else Outcome("graded")


def _without_run(course: CourseNotebook, plan: Plan, outcome: Outcome) -> Graded:
    """Nothing to run: every mark is 0, and the graded notebook is the course's own."""
    if not plan.cells:
        plan = assemble(course, Submission((), course.lang))
    marks = tuple(CellMark(c.grade_id, 0.0, c.points, "not_run") for c in course.graded())
    answers = tuple(c.grade_id for c in course.cells if c.role in ("answer", "manual"))
    return Graded(
        outcome, marks, _notebook(course, plan, Run()), answers, answers, lang=course.lang
    )


def _notebook(course: CourseNotebook, plan: Plan, run: Run) -> dict[str, Any]:
    cells = []
    for index, cell in enumerate(plan.cells):
        if cell.course is not None:
            node = _course_node(cell.course, cell.source)
        else:
            kind = "code" if cell.role == "own" else "markdown"
            node = {"cell_type": kind, "id": f"own-{index}", "metadata": {}, "source": cell.source}
        if node["cell_type"] == "code":
            node["outputs"] = run.outputs.get(index, [])
            node["execution_count"] = run.counts.get(index)
        elif cell.role in ("manual", "note"):
            node["source"] = without_script_links(cell.source)
            if cell.pictures:
                node["attachments"] = cell.pictures
        cells.append(node)
    metadata = copy.deepcopy(course.metadata)
    metadata.pop("widgets", None)
    return {"nbformat": 4, "nbformat_minor": 5, "metadata": metadata, "cells": cells}


def _course_node(cell: CourseCell, source: str) -> dict[str, Any]:
    node = dict(cell.node, metadata=copy.deepcopy(cell.node.get("metadata", {})), source=source)
    node["id"] = node.get("id") or cell.key
    for name in ("outputs", "execution_count", "attachments"):
        node.pop(name, None)
    return node


def finished(graded: Graded) -> dict[str, Any]:
    """The graded notebook, with everything that is known about it in its metadata."""
    metadata = copy.deepcopy(graded.notebook["metadata"])
    metadata.setdefault("flashcourse", {})["grading"] = graded.summary()
    look = [_doubts_cell(graded.doubts)] if graded.doubts else []
    return {**graded.notebook, "metadata": metadata, "cells": [*look, *graded.notebook["cells"]]}


_LOOK = Text(
    "**For the instructor: please look at this submission.** No points were taken off.",
    "**致教师：请人工查看这份提交。** 没有因此扣分。",
)


def _doubts_cell(doubts: tuple[Text, ...]) -> dict[str, Any]:
    """In both languages: the instructor's need not be the submission's."""
    # Four spaces: shown as it is written, whatever a student put into it.
    source = "\n\n".join(
        "\n".join([f"{_LOOK.in_(lang)}\n", *(f"    {doubt.in_(lang)}" for doubt in doubts)])
        for lang in LANGUAGES
    )
    metadata = {"flashcourse": {"only": "instructor"}}
    return {"cell_type": "markdown", "id": "doubts", "metadata": metadata, "source": source}


def blank(
    data: bytes | Unreadable, editions: dict[str, CourseNotebook], lang: str | None = None
) -> dict[str, Any]:
    """The notebook that would be graded, not run."""
    try:
        if isinstance(data, Unreadable):
            raise data
        submission = read_submission(data)
    except Unreadable:
        submission = Submission((), lang)
    course = _edition(submission, editions, lang)
    return _notebook(course, assemble(course, submission), Run())
