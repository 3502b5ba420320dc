"""Whatever a learner hands in, `mark` returns a clear finding and never raises."""

from __future__ import annotations

import sys
import threading
import time

import numpy as np
import pytest
import torch
from wheat_and_chaff.wheat import wheat_skeleton

from flashcourse.checks import mark
from flashcourse.words import Text

right = wheat_skeleton


def returns_nothing(q, k, v, block_size=2):
    pass


def returns_ellipsis(q, k, v, block_size=2):
    return ...


def returns_a_string(q, k, v, block_size=2):
    return "done"


def returns_a_tuple(q, k, v, block_size=2):
    return right(q, k, v, block_size), q


def returns_an_empty_tuple(q, k, v, block_size=2):
    return ()


def returns_numpy(q, k, v, block_size=2):
    return right(q, k, v, block_size).numpy()


def returns_numpy_integers(q, k, v, block_size=2):
    return np.arange(3)


def returns_a_number(q, k, v, block_size=2):
    return 3.14


def returns_nan(q, k, v, block_size=2):
    return torch.full_like(q, torch.nan)


def returns_inf(q, k, v, block_size=2):
    return torch.full_like(q, torch.inf)


def returns_another_shape(q, k, v, block_size=2):
    return torch.zeros(3)


def returns_no_dimensions(q, k, v, block_size=2):
    return torch.tensor(1.0)


def returns_integers(q, k, v, block_size=2):
    return torch.zeros(q.shape, dtype=torch.int64)


def returns_complex(q, k, v, block_size=2):
    return torch.zeros(q.shape, dtype=torch.complex64)


def returns_sparse(q, k, v, block_size=2):
    return torch.eye(*q.shape).to_sparse()


def returns_its_input(q, k, v, block_size=2):
    return v


def raises(q, k, v, block_size=2):
    raise ValueError("my own <b>message</b>")


def raises_with_a_broken_message(q, k, v, block_size=2):
    class Odd(Exception):
        def __str__(self):
            raise RuntimeError

    raise Odd


def raises_not_implemented(q, k, v, block_size=2):
    raise NotImplementedError("fill in TODO 1")


def exits(q, k, v, block_size=2):
    sys.exit(0)


def interrupts(q, k, v, block_size=2):
    raise KeyboardInterrupt


def recurses(q, k, v, block_size=2):
    return recurses(q, k, v, block_size)


def asks_for_too_much(q, k, v, block_size=2):
    return torch.zeros(10**6, 10**6)


def takes_other_arguments(q, k):
    return q


def takes_no_block_size(q, k, v):
    return q


ODD = [
    returns_nothing,
    returns_ellipsis,
    returns_a_string,
    returns_a_tuple,
    returns_an_empty_tuple,
    returns_numpy,
    returns_numpy_integers,
    returns_a_number,
    returns_nan,
    returns_inf,
    returns_another_shape,
    returns_no_dimensions,
    returns_integers,
    returns_complex,
    returns_sparse,
    returns_its_input,
    raises,
    raises_with_a_broken_message,
    raises_not_implemented,
    exits,
    interrupts,
    recurses,
    asks_for_too_much,
    takes_other_arguments,
    takes_no_block_size,
]


def name_of(answer):
    """The same name in every test process: nothing with an address in it."""
    return getattr(answer, "__name__", type(answer).__name__)


@pytest.mark.parametrize(
    "answer", [*ODD, None, 3, "f", print, torch.nn.Identity(), ODD], ids=name_of
)
def test_an_odd_answer_gets_a_finding_in_both_languages(answer):
    marks = mark("forward", answer)
    assert marks.points < 100
    assert marks.findings
    assert all(isinstance(f.text, Text) and f.text.en and f.text.zh for f in marks.findings)
    assert "<b>" not in marks._repr_html_()


@pytest.mark.parametrize(
    "exercise", [f"forward.todo{n}" for n in range(1, 7)] + ["forward.whole", "forward.tiling"]
)
def test_an_odd_answer_gets_a_finding_from_every_exercise(exercise):
    for answer in (raises, returns_nan, returns_nothing, returns_another_shape, None):
        marks = mark(exercise, answer)
        assert marks.findings and marks.status != "right"


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (raises_not_implemented, "unfinished"),
        (returns_nothing, "unfinished"),
        (raises, "crashed"),
        (exits, "crashed"),
        (recurses, "crashed"),
        (asks_for_too_much, "crashed"),
        (returns_nan, "wrong"),
        (returns_a_tuple, "wrong"),
        (returns_numpy, "wrong"),
        (right, "right"),
    ],
    ids=lambda x: getattr(x, "__name__", x),
)
def test_unfinished_wrong_crashed_and_right_are_different_answers(answer, status):
    assert mark("forward", answer).status == status


def test_a_tuple_or_a_numpy_array_of_right_numbers_costs_5_points():
    assert mark("forward", returns_a_tuple).points == 95
    assert mark("forward", returns_numpy).points == 95


def test_an_exception_is_told_with_its_line_and_message():
    finding = mark("forward.whole", raises).findings[0]
    line = raises.__code__.co_firstlineno + 1
    assert finding.line == line
    assert f"line {line}" in finding.text.en and "ValueError" in finding.text.en
    assert f"第 {line} 行" in finding.text.zh


def never_ends(q, k, v, block_size=2):
    while True:
        pass


def never_ends_and_swallows(q, k, v, block_size=2):
    while True:
        try:  # noqa: SIM105
            time.sleep(0.01)
        except:  # noqa: E722
            pass


def sleeps(q, k, v, block_size=2):
    time.sleep(600)


@pytest.mark.parametrize("answer", [never_ends, never_ends_and_swallows, sleeps])
def test_a_function_that_does_not_end_is_stopped_once_and_told_so(answer, monkeypatch):
    monkeypatch.setattr("flashcourse.checks.forward_evidence.SECONDS", 0.3)
    began = time.monotonic()
    marks = mark("forward", answer)
    assert marks.status == "too_slow" and marks.points == 0
    assert "took too long" in marks.findings[0].text.en
    assert time.monotonic() - began < 20  # one time limit, not one for each run


def test_a_function_that_does_not_end_is_stopped_outside_the_main_thread_too(monkeypatch):
    monkeypatch.setattr("flashcourse.checks.forward_evidence.SECONDS", 0.3)
    result = []
    thread = threading.Thread(target=lambda: result.append(mark("forward.whole", never_ends)))
    thread.start()
    thread.join(timeout=60)
    assert result and result[0].status == "too_slow"


def test_what_a_function_prints_does_not_reach_the_notebook(capsys):
    def prints(q, k, v, block_size=2):
        print("hello")
        return right(q, k, v, block_size)

    assert mark("forward", prints).points == 100
    assert capsys.readouterr().out == ""


def test_the_learners_tensors_and_the_trace_function_are_left_alone():
    def tracer(frame, event, arg):
        return None

    before = sys.gettrace()
    sys.settrace(tracer)
    try:
        mark("forward.whole", raises)
        assert sys.gettrace() is tracer
    finally:
        sys.settrace(before)
    assert not torch.are_deterministic_algorithms_enabled()


def test_an_unknown_exercise_is_named_with_those_there_are():
    with pytest.raises(KeyError, match=r"forward\.todo1"):
        mark("forward.todo7", right)


def test_the_inputs_come_from_the_seed():
    """A table of the right outputs for seed 0 is no answer for another seed."""
    from flashcourse.attention import attention
    from flashcourse.checks.forward_problems import compared, long, probes, stressed, tiled

    problems = [*compared(0), *stressed(0), *probes(0).values(), long(0)]
    problems += [tiled(0, 3), tiled(0, 6)]

    def knows_seed_0(q, k, v, block_size=2):
        for p in problems:
            if p.q.shape == q.shape and torch.equal(p.q, q) and torch.equal(p.v, v):
                return attention(q, k, v).to(q.dtype)
        return torch.zeros_like(q)

    assert mark("forward.whole", knows_seed_0, seed=0).points == 20
    assert mark("forward.whole", knows_seed_0, seed=1).points < 20


def test_a_finding_quotes_the_learners_own_line():
    def takes_the_sum_of_everything(q, k, v, block_size=2):
        out = torch.zeros_like(v)
        m = torch.full((q.shape[0], 1), -torch.inf)
        l = torch.zeros(q.shape[0], 1)
        for i in range(0, q.shape[0], block_size):
            m_i, l_i = m[i : i + block_size], l[i : i + block_size]
            out_i = out[i : i + block_size]
            for j in range(0, k.shape[0], block_size):
                S_ij = q[i : i + block_size] @ k[j : j + block_size].T / q.shape[1] ** 0.5
                m_new = torch.maximum(m_i, S_ij.amax(-1, keepdim=True))
                P_ij = torch.exp(S_ij - m_new)
                l_new = l_i + P_ij.sum(-1, keepdim=True)
                new = P_ij @ v[j : j + block_size]
                out_i = (torch.exp(m_i - m_new) * l_i * out_i + new) / l_new
                m_i, l_i = m_new, l_new
            out[i : i + block_size] = out_i
        return out

    marks = mark("forward.todo5", takes_the_sum_of_everything)
    assert marks.findings[0].source_line == "l_new = l_i + P_ij.sum(-1, keepdim=True)"
