"""Lesson 4's third exercise: which version of a printed line is right, by measuring both."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from flashcourse.attention import attention, scores
from flashcourse.checks.in_float64 import (
    CLOSE,
    SKELETON,
    Inputs,
    all_failed,
    block_maxima,
    inputs,
    off,
    unpack,
    with_reason,
)
from flashcourse.checks.marks import Finding, Marks
from flashcourse.checks.probe import Part, call, judge
from flashcourse.checks.registry import exercise
from flashcourse.words import Text

_MISPRINT = (
    (4.0, Text("The error of the printed line is right.", "照印版的误差对了。")),
    (3.0, Text("The corrected line gives exact attention.", "改正后的一行给出精确注意力。")),
    (3.0, Text("The verdict is right.", "判断正确。")),
)


def printed_output(data: Inputs, block: int) -> Tensor:
    """O of FlashAttention-2's Algorithm 1 as printed, with the ⁻¹ on the factor of O.

    A term of tile j is multiplied by exp(m_t − m_{t−1}) at each later tile t. The product
    telescopes to exp(m_last − m_j), so its weight is exp(S − m_j)·exp(m_last − m_j). l is right.
    """
    S = scores(data.q, data.k)
    top = S.max(dim=-1, keepdim=True).values
    l = torch.exp(S - top).sum(dim=-1, keepdim=True)
    return torch.exp(S - 2 * block_maxima(S, block) + top) @ data.v / l


@exercise("v1v2.misprint", points=10, title=Text("As printed, or not?", "照印的，还是不照？"))
def check_misprint(answer: Any, *, seed: int = 0) -> Marks:
    """Which version of a line is right, by both errors (arXiv 2307.08691, Algorithm 1, line 10)."""
    findings: list[Finding | None] = [None, None, None]
    measured = Measured()
    for rows, keys, block, size in _MISPRINT_CASES:
        data = inputs(rows, keys, 4, 4, seed)
        data = data._replace(v=data.v * size)
        outcome = call(answer, *data, block_size=block, skeleton=SKELETON)
        if outcome.error and keys == 1 and outcome.error.kind != "too_slow":
            continue  # fine elsewhere: a single key was not asked for
        if outcome.error:
            return all_failed("v1v2.misprint", _MISPRINT, outcome.error)
        value = unpack(outcome, ("printed_error", "corrected_error", "right"))
        if isinstance(value, Finding):
            return all_failed("v1v2.misprint", _MISPRINT, value)
        measured.add([_as_number(error) for error in value[:2]], keys, size)
        found = [None, _corrected_finding(value[1], size), None]
        if keys > 1:  # with one key there is nothing to rescale: both lines are right
            found[0], found[2] = _printed_finding(value[0], data, block), _verdict_finding(value[2])
        findings = [old or new for old, new in zip(findings, found, strict=True)]
    if not measured.corrected:
        findings[1] = findings[1] or _GUESSED
    if findings[0] is not None and not measured.either:
        findings[2] = findings[2] or _GUESSED
    return judge(
        "v1v2.misprint", [Part(*part, f) for part, f in zip(_MISPRINT, findings, strict=True)]
    )


# rows, keys, block, what v is multiplied by. With a single key nothing is rounded.
_MISPRINT_CASES = ((12, 12, 3, 1.0), (8, 20, 6, 2.0**40), (6, 1, 2, 2.0**40))
_GUESSED = Finding(
    Text(
        "The error of a run in float64 is hardly ever exactly 0, and it grows with `v`. Yours "
        "doesn't: measure it.",
        "在 float64 下实际跑一遍，误差几乎不会恰好为 0，而且会随 `v` 变大。你的不是这样：请实测。",
    ),
    variable="corrected_error",
)


class Measured:
    """Which of two returned numbers the rounding errors of a real run can be, in every case."""

    def __init__(self) -> None:
        self._can_be = [True, True]

    def add(self, errors: Sequence[float | None], keys: int, size: float) -> None:
        """size: the largest |v|, roughly. One key has the weight 1, and nothing is rounded."""
        for n, error in enumerate(errors):
            if error is None:
                fits = False
            else:
                fits = error == 0 if keys == 1 else 1e-18 * size < error < 1e-10 * size
            self._can_be[n] &= fits

    @property
    def corrected(self) -> bool:
        return self._can_be[1]

    @property
    def either(self) -> bool:
        """Whether one is, be the two swapped or not."""
        return any(self._can_be)


def _as_number(value: Any) -> float | None:
    if isinstance(value, Tensor) and value.numel() == 1:
        value = value.item()
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _printed_finding(value: Any, data: Inputs, block: int) -> Finding | None:
    right = off(printed_output(data, block), attention(*data))
    number = _as_number(value)
    if number is not None and abs(number - right) <= 1e-6 * right:
        return None
    got = "no number" if number is None else f"{number:.6g}"
    got_zh = "不是一个数" if number is None else f"{number:.6g}"
    why = _FIRST_TILE if number is not None and math.isnan(number) else None
    en = (
        f"The printed line's error: {got}. With the inverse on O's factor only, from the second "
        f"tile on, it is {right:.6g} here."
    )
    zh = f"照印版的误差：{got_zh}。只对 O 的因子取倒数、从第二块起，这里应是 {right:.6g}。"
    return Finding(
        with_reason(en, zh, why),
        variable="printed_error",
        hints=(
            Text(
                "Does your printed run change the factor of O and nothing else? l keeps its own.",
                "照印的那一遍，是不是只改了 O 的因子？l 的因子不动。",
            ),
        ),
    )


_FIRST_TILE = Text(
    "At the first tile ∞·0 is NaN: leave the factor out there.",
    "第一块里 ∞·0 得 NaN：那里不要乘这个因子。",
)


def _corrected_finding(value: Any, size: float) -> Finding | None:
    """size: what v was multiplied by; the error grows with it."""
    number = _as_number(value)
    if number is not None and 0 <= number < CLOSE * size:
        return None
    got = "no number" if number is None else f"{number:.2g}"
    got_zh = "不是一个数" if number is None else f"{number:.2g}"
    return Finding(
        Text(
            f"The corrected line's error: {got}. In float64 it should be below {CLOSE * size:.2g}.",
            f"改正版的误差：{got_zh}。float64 下应小于 {CLOSE * size:.2g}。",
        ),
        variable="corrected_error",
    )


def _verdict_finding(value: Any) -> Finding | None:
    if value == "corrected":
        return None
    if value == "printed":
        return Finding(
            Text("Look at the two errors again: which is near 0?", "再看看两个误差：哪个接近 0？"),
            variable="right",
        )
    return Finding(
        Text(
            '`right` should be "printed" or "corrected".',
            '`right` 应为 "printed" 或 "corrected"。',
        ),
        variable="right",
    )
