"""Lesson 01_memory_wall: right answers in several styles get full marks, wrong ones what they
deserve, and a slip is named only when it explains every number."""

import itertools
import math
from functools import partial

import numpy as np
import pytest
import torch

from flashcourse import costs
from flashcourse.checks import exercises, mark, numbers, probe

SEEDS = (0, 1, 2)


def misconceptions(marks):
    return {finding.misconception for finding in marks.findings}


def check_right(exercise, answer):
    for seed in range(5):
        marks = mark(exercise, answer, "en", seed=seed)
        assert marks.findings == ()
        assert (marks.status, marks.points) == ("right", marks.max_points)


def check_deserved(exercise, answer, points, misconception):
    for seed in SEEDS:
        marks = mark(exercise, answer, "en", seed=seed)
        assert marks.points == points, (seed, marks.findings)
        assert misconceptions(marks) == {misconception}, marks.findings
        for finding in marks.findings:
            assert finding.text.en and finding.text.zh


NAMES = ("score_bytes", "accesses", "intensity", "bound", "out_of_memory")


def test_the_points_are_the_lessons_and_make_100():
    points = {name: e.points for name, e in exercises().items() if name.startswith("memory.")}
    values = (15, 20, 20, 20, 25)
    assert points == {f"memory.{n}": v for n, v in zip(NAMES, values, strict=True)}


@pytest.mark.parametrize("exercise", NAMES)
class TestWhatIsNotAnAnswer:
    def test_a_function_left_as_it_came_is_unfinished(self, exercise):
        def left(*args):
            raise NotImplementedError("Not finished yet")

        marks = mark(f"memory.{exercise}", left)
        assert (marks.points, marks.status) == (0, "unfinished")

    def test_a_function_that_returns_nothing_is_unfinished(self, exercise):
        marks = mark(f"memory.{exercise}", lambda *args: None)
        assert (marks.points, marks.status) == (0, "unfinished")

    def test_an_exception_is_a_crash_and_is_named(self, exercise):
        marks = mark(f"memory.{exercise}", lambda *args: 1 / 0)
        assert (marks.points, marks.status) == (0, "crashed")
        assert "ZeroDivisionError" in marks.findings[0].text.en

    @pytest.mark.parametrize("value", ["12 GB", [1, 2, 3], {}, math.nan, True, 10**400, 1j])
    def test_something_that_is_no_answer_is_wrong(self, exercise, value):
        marks = mark(f"memory.{exercise}", lambda *args: value)
        assert (marks.points, marks.status) == (0, "wrong")


# ---------------------------------------------------------------- bytes of S and P


def right_bytes(batch, heads, n, b):
    return 2 * batch * heads * n * n * b


@pytest.mark.parametrize(
    "answer",
    [
        right_bytes,
        lambda batch, heads, n, b: 2.0 * (batch * heads) * float(n) ** 2 * b,
        lambda batch, heads, n, b: torch.tensor(2 * batch * heads * n * n * b),
        lambda batch, heads, n, b: np.int64(2 * batch * heads * n * n * b),
        lambda batch, heads, n, b: sum(batch * heads * n * n * b for _ in "SP"),
        lambda batch, heads, n, b: 2 * costs.score_bytes(n, heads, batch, "float8") * b,
    ],
)
def test_right_ways_to_count_bytes(answer):
    check_right("memory.score_bytes", answer)


@pytest.mark.parametrize(
    ("answer", "points", "misconception"),
    [
        (lambda B, H, n, b: B * H * n * n * b, 0, "one_matrix"),
        (lambda B, H, n, b: 2 * B * n * n * b, 10, "heads_forgotten"),
        (lambda B, H, n, b: 2 * H * n * n * b, 10, "batch_forgotten"),
        (lambda B, H, n, b: 2 * n * n * b, 10, "batch_and_heads_forgotten"),
        (lambda B, H, n, b: 2 * B * H * n * n * b * 8, 0, "bits"),
        (lambda B, H, n, b: 2 * B * H * n * n * b / 8, 0, "bytes_divided_by_8"),
        (lambda B, H, n, b: 2 * B * H * n * n, 0, "elements"),
        (lambda B, H, n, b: 2 * B * H * n * b, 0, "linear_in_n"),
        (lambda B, H, n, b: 2 * B * H * n * n * b / 2**20, 0, "other_unit"),
        (lambda B, H, n, b: 2 * B * H * n * n * b / 1e9, 0, "other_unit"),
        (lambda B, H, n, b: 2 * B * H * n * n * 2, 10, None),
        (lambda B, H, n, b: 2 * B * H * n * (n + 1) * b, 0, None),
    ],
)
def test_wrong_bytes(answer, points, misconception):
    check_deserved("memory.score_bytes", answer, points, misconception)


def test_the_card_shows_both_numbers():
    marks = mark("memory.score_bytes", lambda B, H, n, b: B * H * n * n * b, "en")
    assert "2,097,152" in marks.findings[0].text.en  # one 1024 × 1024 matrix in float16
    assert "4,194,304" in marks.findings[0].text.en


# ---------------------------------------------------------------- HBM accesses


def accesses(scores=None, softmax=None, output=None):
    """An answer that is right except for the kernels given, as functions of (n, d)."""

    def answer(n, d):
        right = {
            "scores": (2 * n * d, n * n),
            "softmax": (n * n, n * n),
            "output": (n * n + n * d, n * d),
        }
        wrong = {"scores": scores, "softmax": softmax, "output": output}
        return {k: wrong[k](n, d) if wrong[k] else v for k, v in right.items()}

    return answer


def accesses_from_the_package(n, d):
    counted = costs.count_standard(n, d)
    return {
        "scores": (counted.loads["Q"] + counted.loads["K"], counted.stores["S"]),
        "softmax": (counted.loads["S"], counted.stores["P"]),
        "output": (counted.loads["P"] + counted.loads["V"], counted.stores["O"]),
    }


@pytest.mark.parametrize(
    "answer",
    [
        accesses(),
        accesses_from_the_package,
        lambda n, d: {k: list(v) for k, v in accesses()(n, d).items()},
        lambda n, d: {k: tuple(map(float, v)) for k, v in reversed(accesses()(n, d).items())},
    ],
)
def test_right_ways_to_count_accesses(answer):
    check_right("memory.accesses", answer)


def test_the_right_accesses_add_up_to_the_papers_formula():
    total = sum(itertools.chain(*accesses()(1024, 64).values()))
    assert total == 4 * 1024**2 + 4 * 1024 * 64


@pytest.mark.parametrize(
    ("answer", "points", "misconception"),
    [
        (accesses(scores=lambda n, d: (n * d, n * n)), 13, "one_input_only"),
        (accesses(scores=lambda n, d: (n * n, 2 * n * d)), 13, "reads_and_writes_swapped"),
        (accesses(scores=lambda n, d: (4 * n * d, 2 * n * n)), 13, "bytes_not_elements"),
        (accesses(scores=lambda n, d: (2 * n * n * d, n * n)), 13, "flops_not_accesses"),
        (accesses(softmax=lambda n, d: (3 * n * n, n * n)), 14, "passes_counted"),
        (accesses(softmax=lambda n, d: (n * d, n * d)), 14, None),
        (accesses(output=lambda n, d: (n * n, n * d)), 13, "one_input_only"),
        (accesses(output=lambda n, d: (n * d, n * n + n * d)), 13, "reads_and_writes_swapped"),
        (accesses(output=lambda n, d: (n * n + n * d, n * n)), 13, None),
    ],
)
def test_wrong_accesses_lose_the_kernel_that_is_wrong(answer, points, misconception):
    check_deserved("memory.accesses", answer, points, misconception)


def test_a_missing_kernel_is_told_by_the_form():
    marks = mark("memory.accesses", lambda n, d: {"scores": (1, 2)}, "en")
    assert marks.points == 0
    assert "'softmax'" in marks.findings[0].text.en


# ---------------------------------------------------------------- arithmetic intensity


@pytest.mark.parametrize(
    "answer",
    [
        lambda n, d, b: 4 * n * n * d / ((4 * n * n + 4 * n * d) * b),
        lambda n, d, b: n * d / ((n + d) * b),
        lambda n, d, b: costs.forward_flops(n, d) / (costs.standard_traffic(n, d) * b),
        lambda n, d, b: torch.tensor(n * d / ((n + d) * b), dtype=torch.float64),
    ],
)
def test_right_intensities(answer):
    check_right("memory.intensity", answer)


@pytest.mark.parametrize(
    ("answer", "points", "misconception"),
    [
        (lambda n, d, b: n * d / ((n + d) * b) / 2, 0, "half_the_flops"),
        (lambda n, d, b: n * d / ((n + d) * b) / 4, 0, "half_the_flops"),
        (lambda n, d, b: (n + d) * b / (n * d), 0, "upside_down"),
        (lambda n, d, b: n * d / (n + d), 0, "elements_not_bytes"),
        (lambda n, d, b: n * d / ((n + d) * b * 8), 0, "bits"),
        (lambda n, d, b: d / b, 0, "inputs_forgotten"),
        (lambda n, d, b: n / b, 0, "scores_forgotten"),
        (lambda n, d, b: 4 * n * n * d / ((2 * n * n + 4 * n * d) * b), 0, "moved_once"),
        (lambda n, d, b: n / ((n + d) * b), 0, "n_squared_only"),
        (lambda n, d, b: n * d / ((n + d) * 2), 12, None),
    ],
)
def test_wrong_intensities(answer, points, misconception):
    check_deserved("memory.intensity", answer, points, misconception)


# ---------------------------------------------------------------- bound


def right_roofline(flops, moved, peak, bandwidth):
    compute, memory = flops / peak, moved / bandwidth
    return ("memory" if memory > compute else "compute"), max(compute, memory)


@pytest.mark.parametrize(
    "answer",
    [
        right_roofline,
        lambda f, m, p, b: ["memory" if f / m < p / b else "compute", f / min(p, f / m * b)],
        lambda f, m, p, b: ("Memory-bound" if f / m < p / b else "compute-bound",
                            max(f / p, m / b)),
        lambda f, m, p, b: (right_roofline(f, m, p, b)[0],
                            torch.tensor(max(f / p, m / b), dtype=torch.float64)),
    ],
)  # fmt: skip
def test_right_rooflines(answer):
    check_right("memory.bound", answer)


def with_seconds(seconds):
    return lambda f, m, p, b: (right_roofline(f, m, p, b)[0], seconds(f / p, m / b))


def with_bound(bound):
    return lambda f, m, p, b: (bound(f, m, p, b), max(f / p, m / b))


@pytest.mark.parametrize(
    ("answer", "points", "misconception"),
    [
        (with_bound(lambda f, m, p, b: "memory" if f / m > p / b else "compute"), 10,
         "bound_reversed"),
        (with_bound(lambda f, m, p, b: "memory"), 10, None),
        (with_bound(lambda f, m, p, b: "memory" if f < m else "compute"), 10, None),
        (with_seconds(lambda compute, memory: compute + memory), 10, "times_added"),
        (with_seconds(min), 10, "shorter_time"),
        (with_seconds(lambda compute, memory: compute), 10, "compute_only"),
        (with_seconds(lambda compute, memory: memory), 10, "memory_only"),
        (with_seconds(lambda compute, memory: 1e3 * max(compute, memory)), 10, "milliseconds"),
        (with_seconds(lambda compute, memory: 1 / max(compute, memory)), 10, "upside_down"),
        (with_seconds(lambda compute, memory: 0.9 * max(compute, memory)), 10, None),
    ],
)  # fmt: skip
def test_wrong_rooflines(answer, points, misconception):
    check_deserved("memory.bound", answer, points, misconception)


def test_the_word_alone_is_not_enough():
    marks = mark("memory.bound", lambda *args: "memory", "en")
    assert (marks.points, marks.status) == (0, "wrong")
    assert "seconds" in marks.findings[0].text.en


# ---------------------------------------------------------------- out of memory


def first_by_loop(memory, batch, heads, d, b):
    n = 1
    while batch * heads * (2 * n * n + 4 * n * d) * b <= memory:
        n += 1
    return n


def first_by_formula(memory, batch, heads, d, b):
    return math.floor(math.sqrt(d * d + memory / (2 * batch * heads * b)) - d) + 1


def first_by_bisection(memory, batch, heads, d, b):
    low, high = 0, 10**7
    while high - low > 1:
        middle = (low + high) // 2
        fits = batch * heads * (2 * middle**2 + 4 * middle * d) * b <= memory
        low, high = (middle, high) if fits else (low, middle)
    return high


def first_by_list(memory, batch, heads, d, b):
    n = torch.arange(1, 200_000)
    return n[batch * heads * (2 * n * n + 4 * n * d) * b > memory][0]


@pytest.mark.parametrize(
    "answer", [first_by_loop, first_by_formula, first_by_bisection, first_by_list]
)
def test_right_ways_to_find_the_length(answer):
    check_right("memory.out_of_memory", answer)


def looped(needed):
    """The first n for which `needed` (n, batch, heads, d, b) bytes are too many."""

    def answer(memory, batch, heads, d, b):
        low, high = 0, 10**9
        while high - low > 1:
            middle = (low + high) // 2
            if needed(middle, batch, heads, d, b) <= memory:
                low = middle
            else:
                high = middle
        return high

    return answer


@pytest.mark.parametrize(
    ("answer", "points", "misconception"),
    [
        (lambda *a: first_by_bisection(*a) - 1, 17, "last_that_fits"),
        (looped(lambda n, B, H, d, b: B * (2 * n * n + 4 * n * d) * b), 8, "heads_forgotten"),
        (looped(lambda n, B, H, d, b: H * (2 * n * n + 4 * n * d) * b), 16, "batch_forgotten"),
        (looped(lambda n, B, H, d, b: B * H * 2 * n * n * b), 0, "inputs_forgotten"),
        (looped(lambda n, B, H, d, b: B * H * (2 * n * n + 3 * n * d) * b), 0, "output_forgotten"),
        (looped(lambda n, B, H, d, b: B * H * (n * n + 4 * n * d) * b), 0, "one_matrix"),
        (looped(lambda n, B, H, d, b: B * H * (2 * n * n + 4 * n * d) * b * 8), 0, "bits"),
        (looped(lambda n, B, H, d, b: B * H * (2 * n * n + 4 * n * d)), 0, "elements"),
        (looped(lambda n, B, H, d, b: B * H * (2 * n * n + 4 * n * d) * 2), 16, None),
    ],
)
def test_wrong_lengths(answer, points, misconception):
    check_deserved("memory.out_of_memory", answer, points, misconception)


def test_an_endless_loop_is_too_slow(monkeypatch):
    monkeypatch.setattr(numbers, "call", partial(probe.call, seconds=0.5))

    def answer(memory, batch, heads, d, b):
        n = 1
        while memory > 0:
            n += 1
        return n

    marks = mark("memory.out_of_memory", answer)
    assert (marks.points, marks.status) == (0, "too_slow")


def test_a_crash_costs_only_the_part_it_happens_in():
    def answer(memory, batch, heads, d, b):
        if batch * heads > 8:
            raise ValueError("too many")
        return first_by_bisection(memory, batch, heads, d, b)

    marks = mark("memory.out_of_memory", answer, "en")
    assert (marks.points, marks.status) == (16, "crashed")
    assert "too many" in marks.findings[0].text.en


def test_the_length_for_the_papers_gpu_is_the_lessons():
    assert first_by_loop(40 * 10**9, 16, 8, 64, 2) == 8776
