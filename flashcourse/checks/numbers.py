"""Judge functions that return numbers: every case at once, and the slip that explains them all.

A slip is only named when it predicts the learner's value in *every* case, the right ones too. A
single number can have many causes; a dozen numbers rarely have two.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor

from flashcourse.checks.marks import Finding
from flashcourse.checks.probe import Part, call, finding_of
from flashcourse.words import Text


@dataclass(frozen=True)
class Slip:
    """A usual mistake. value: what a learner who makes it returns for a case's arguments."""

    misconception: str
    text: Text
    value: Callable[..., float]


@dataclass(frozen=True)
class Case:
    """One call. part: the part of the marks that it belongs to. arguments: by name, in order."""

    part: str
    arguments: dict[str, float]


def as_number(value: Any) -> float | None:
    """A Python, NumPy or one-element torch number as a Python number; None for anything else."""
    try:
        if isinstance(value, Tensor | np.ndarray | np.generic):
            value = value.item()
        if isinstance(value, bool) or not isinstance(value, numbers.Real):
            return None
        return value if isinstance(value, int) and abs(value) < 2**63 else float(value)
    except Exception:  # many elements, no data, or larger than any float
        return None


def same_number(value: float, want: float, relative: float = 1e-6) -> bool:
    """NaN and infinity never agree with a number."""
    return math.isclose(value, want, rel_tol=relative, abs_tol=1e-30)


def write(value: float) -> str:
    """Whole numbers in full with separators, others to 6 digits."""
    whole = math.isfinite(value) and value == int(value) and abs(value) < 1e16
    return f"{int(value):,}" if whole else f"{value:.6g}"


def not_a_number(value: Any) -> Finding:
    shown = type(value).__name__
    return Finding(
        Text(
            f"Your function returned a {shown}. It must return one number.",
            f"你的函数返回了 {shown}，应当返回一个数。",
        )
    )


def slip_behind(
    values: Sequence[float],
    cases: Sequence[Case],
    slips: Iterable[Slip],
    same: Callable[[float, float], bool] = same_number,
) -> Slip | None:
    """The first slip that predicts all the values."""
    for slip in slips:
        predicted = (slip.value(**case.arguments) for case in cases)
        if all(same(value, p) for value, p in zip(values, predicted, strict=True)):
            return slip
    return None


def wrong_number(
    name: str, case: Case, value: float, want: float, slip: Slip | None, hints: tuple[Text, ...]
) -> Finding:
    """The learner's number beside the right one, and the slip behind it if there is one."""
    given = ", ".join(f"{key}={write(number)}" for key, number in case.arguments.items())
    tail = slip.text if slip else Text("", "")
    return Finding(
        Text(
            f"`{name}({given})` is {write(value)}. It should be {write(want)}. {tail.en}".strip(),
            f"`{name}({given})` 是 {write(value)}，应为 {write(want)}。{tail.zh}",
        ),
        misconception=slip.misconception if slip else None,
        hints=hints,
    )


@dataclass(frozen=True)
class NumberExercise:
    """A function that returns one number. parts: name → (points, what to say when it is right).

    want: the right number for a case's arguments. same: part → how exact it has to be.
    """

    function: str
    parts: dict[str, tuple[int, Text]]
    cases: tuple[Case, ...]
    want: Callable[..., float]
    slips: tuple[Slip, ...]
    hints: tuple[Text, ...]
    skeleton: tuple[str, ...] = ()

    def judged(
        self, answer: Any, same: Callable[[str, float, float], bool] | None = None
    ) -> list[Part]:
        """One Part for each of `parts`."""
        same = same or (lambda part, value, want: same_number(value, want))
        values: list[float] = []
        found: dict[str, tuple[Finding, str]] = {}
        for case in self.cases:
            value, problem = self._value(answer, case)
            values.append(value)
            if problem is not None:
                found.setdefault(case.part, problem)
            if problem is not None and problem[1] == "too_slow":
                found = {name: found.get(name, problem) for name in self.parts}
                break
        else:
            slip = slip_behind(values, self.cases, self.slips)
            for case, value in zip(self.cases, values, strict=True):
                want = self.want(**case.arguments)
                if case.part not in found and not same(case.part, value, want):
                    wrong = wrong_number(self.function, case, value, want, slip, self.hints)
                    found[case.part] = (wrong, "wrong")
        return [
            Part(points, said, *found.get(name, (None, "wrong")))
            for name, (points, said) in self.parts.items()
        ]

    def _value(self, answer: Any, case: Case) -> tuple[float, tuple[Finding, str] | None]:
        """The answer's number for one case; NaN, and why, if there is none."""
        outcome = call(answer, *case.arguments.values(), skeleton=self.skeleton)
        if outcome.error is not None:
            return math.nan, (finding_of(outcome.error), outcome.error.kind)
        number = as_number(outcome.value)
        if number is None:
            return math.nan, (not_a_number(outcome.value), "wrong")
        return number, None
