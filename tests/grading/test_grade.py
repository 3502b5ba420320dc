"""What one submission gets, and what is said about it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from flashcourse.grading.outcome import Graded

from . import tiny
from .conftest import points

Run = Callable[..., Graded]
FULL = {"test-scale": 10.0, "test-partial": 5.0, "test-size": 5.0, "thinking": 0.0}


def test_a_right_submission_gets_full_marks(run: Run) -> None:
    graded = run(tiny.submitted(tiny.RIGHT))
    assert points(graded) == FULL
    assert graded.outcome.kind == "graded"


def test_an_untouched_submission_is_unfinished_not_crashed(run: Run) -> None:
    graded = run(tiny.submitted())
    assert sum(mark.points or 0 for mark in graded.marks) == 0
    assert graded.outcome.kind == "unfinished"
    assert graded.unchanged == ("scale", "size", "thinking")


def test_a_partly_right_answer_gets_part_of_the_points(run: Run) -> None:
    wrong = "def scale_rows(x):\n    y = x / x.sum(-1, keepdim=True)\n    y[0] = 0\n    return y"
    graded = run(tiny.submitted({**tiny.RIGHT, "scale": wrong}))
    assert points(graded) == {**FULL, "test-scale": 0.0, "test-partial": 4.0}


def test_both_editions_get_the_same_marks(run: Run) -> None:
    english, chinese = (run(tiny.submitted(tiny.RIGHT, lang)) for lang in ("en", "zh"))
    assert points(english) == points(chinese)
    assert (english.lang, chinese.lang) == ("en", "zh")


def test_an_answer_in_words_waits_for_a_person(run: Run) -> None:
    graded = run(tiny.submitted({**tiny.RIGHT, "thinking": "The columns add up."}))
    assert points(graded)["thinking"] is None


def test_a_warning_on_stderr_costs_nothing(run: Run) -> None:
    code = "import warnings, sys\n" + tiny.RIGHT["scale"].replace(
        "    return", "    warnings.warn('odd')\n    print('odd', file=sys.stderr)\n    return"
    )
    assert points(run(tiny.submitted({**tiny.RIGHT, "scale": code}))) == FULL


def test_own_cells_run_where_they_stood(run: Run) -> None:
    code = "def scale_rows(x):\n    return divide(x, x.sum(-1, keepdim=True))"
    notebook = tiny.submitted(
        {**tiny.RIGHT, "scale": code},
        before={"scale": "from operator import truediv as divide\ndivide(1, 4)"},
    )
    graded = run(notebook)
    assert points(graded) == FULL
    own = [c for c in graded.notebook["cells"] if c["id"].startswith("own-")]
    assert own[0]["outputs"][0]["data"] == {"text/plain": "0.25"}


RIGHT_ROWS = "x / x.sum(-1, keepdim=True)"
FOR_ONE_TEST = f"def scale_rows(x):\n    return {RIGHT_ROWS} if x.shape != (5, 5) else x"
FOR_THE_OTHER = f"def scale_rows(x):\n    return {RIGHT_ROWS} if x.shape == (5, 5) else x"


def test_one_function_earns_the_points_of_the_tests_that_ask_for_it(run: Run) -> None:
    """`test-scale` (10) is right with the first only, `test-partial` (5) with the other."""
    swapped = {"test-scale": FOR_THE_OTHER}
    graded = run(tiny.submitted({**tiny.RIGHT, "scale": FOR_ONE_TEST}, after=swapped))
    assert points(graded) == {**FULL, "test-partial": 0.0}
    swapped = {"test-scale": FOR_ONE_TEST}
    graded = run(tiny.submitted({**tiny.RIGHT, "scale": FOR_THE_OTHER}, after=swapped))
    assert points(graded) == {**FULL, "test-partial": 0.0}


def test_a_cell_between_two_tests_may_mend_an_answer_and_does_not_spoil_it(run: Run) -> None:
    wrong = "def scale_rows(x):\n    return 1 / 0"
    mended = run(
        tiny.submitted({**tiny.RIGHT, "scale": wrong}, after={"test-scale": tiny.RIGHT["scale"]})
    )
    spoilt = run(tiny.submitted(tiny.RIGHT, after={"test-scale": wrong}))
    for graded in (mended, spoilt):
        assert points(graded) == FULL
        assert graded.outcome.kind == "graded"


def test_what_was_earned_before_a_cell_ends_the_process_stays_earned(run: Run) -> None:
    graded = run(tiny.submitted(tiny.RIGHT, after={"test-scale": "import os\nos._exit(1)"}))
    assert points(graded) == {**FULL, "test-size": 0.0}
    assert (graded.outcome.kind, graded.outcome.where) == ("killed", "own")


def test_cells_before_a_crash_keep_their_marks(run: Run) -> None:
    graded = run(tiny.submitted({**tiny.RIGHT, "size": "import os\nos._exit(0)"}))
    assert points(graded) == {**FULL, "test-size": 0.0}
    assert (graded.outcome.kind, graded.outcome.where) == ("killed", "size")


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("def scale_rows(x):\n    while True: pass", "timed_out"),
        ("def scale_rows(x):\n    raise KeyError('q')", "crashed"),
        ("def scale_rows(x):\n    return torch.zeros(10**6, 1000, 1000)", "out_of_memory"),
        ("def scale_rows(x):\n    return [0] * 10**10", "out_of_memory"),
        ("while True:\n    print('x' * 1000)", "too_much_output"),
        ("import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)\nos.abort()", "killed"),
        ("def scale_rows(x) return 1", "crashed"),
        ("def scale_rows(x):\n    raise NotImplementedError", "unfinished"),
    ],
)
def test_each_end_has_its_own_outcome(run: Run, code: str, kind: str) -> None:
    graded = run(tiny.submitted({**tiny.RIGHT, "scale": code}))
    assert graded.outcome.kind == kind
    assert points(graded)["test-scale"] == 0.0


def test_an_endless_loop_costs_its_limit_once(run: Run) -> None:
    code = "def scale_rows(x):\n    while True: pass"
    graded = run(tiny.submitted({**tiny.RIGHT, "scale": code}))
    assert points(graded)["test-size"] == 5.0
    assert graded.seconds < 2 * 4.0 + 2


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"", "unreadable"),
        (b"{", "unreadable"),
        (b"\xff\xfe\x00", "unreadable"),
        (b"[1, 2]", "unreadable"),
        (b'{"cells": []}', "unreadable"),
        (b'{"cells": [{"cell_type": "code", "source": "1 + 1"}]}', "foreign"),
        (b"[" * 100_000, "unreadable"),
        (b'{"cells": [' + b"9" * 10_000 + b"]}", "unreadable"),
    ],
)
def test_a_broken_file_has_an_outcome_too(run: Run, data: bytes, kind: str) -> None:
    graded = run(data)
    assert graded.outcome.kind == kind
    assert all(mark.points == 0 for mark in graded.marks)
    assert len(graded.marks) == 4
