"""However broken a notebook is, it ends with an outcome, and intact answers keep their marks."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from flashcourse.grading.outcome import KINDS, Graded
from flashcourse.grading.submission import Unreadable, read_submission

from . import tiny
from .conftest import points
from .fuzz import broken

Run = Callable[..., Graded]


WORTH = {"test-scale": 10, "test-partial": 5, "test-size": 5}


def check(run: Run, seed: int) -> None:
    data = broken(tiny.submitted(tiny.RIGHT), seed)
    graded = run(data)
    assert graded.outcome.kind in KINDS
    assert [mark.grade_id for mark in graded.marks] == [
        "test-scale",
        "test-partial",
        "test-size",
        "thinking",
    ]
    for answer, tests in (("scale", ("test-scale", "test-partial")), ("size", ("test-size",))):
        if is_intact(data, answer):
            got = points(graded)
            assert all(
                got[test] == {"test-scale": 10, "test-partial": 5, "test-size": 5}[test]
                for test in tests
            )


def is_intact(data: bytes, answer: str) -> bool:
    """The answer is there once, in its own cell, and nothing else defines what it defines."""
    try:
        cells = read_submission(data).cells
    except Unreadable:
        return False
    name = {"scale": "scale_rows", "size": "bytes_moved"}[answer]
    where = [c for c in cells if f"def {name}" in c.source or f"{name} =" in c.source]
    clean = [c for c in cells if c.grade_id == answer]
    return [c.source for c in where] == [tiny.RIGHT[answer]] and (not clean or clean == where)


@pytest.mark.parametrize("seed", range(40))
def test_a_broken_notebook_ends_with_an_outcome(run: Run, seed: int) -> None:
    check(run, seed)


@pytest.mark.slow
def test_300_broken_notebooks_end_with_an_outcome(run: Run) -> None:
    for seed in range(1000, 1300):
        check(run, seed)
