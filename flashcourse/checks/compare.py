"""Compare a learner's tensors with the right ones, and say which usual slip a wrong one is."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor

from flashcourse.checks.marks import Finding
from flashcourse.checks.probe import Outcome, Part, tensor_problem
from flashcourse.words import Text

NOTHING = Text("", "")


def same(value: Tensor, want: Tensor, tolerance: float = 1e-5) -> bool:
    """Whether all entries agree, to what the value's dtype can hold. NaN never agrees."""
    if value.shape != want.shape:
        return False
    least = {torch.float32: 1e-4, torch.bfloat16: 2e-2, torch.float16: 2e-2}
    tolerance = max(tolerance, least.get(value.dtype, 0.0))
    return torch.allclose(value.double().cpu(), want.double().cpu(), rtol=tolerance, atol=tolerance)


def says(rules: Iterable[tuple[str, Text, Tensor]], value: Tensor) -> tuple[str, Text] | None:
    """The first rule whose number the learner's value is, as (misconception, sentence)."""
    for name, text, candidate in rules:
        if same(value, candidate):
            return name, text
    return None


def write(x: Tensor | float) -> str:
    """A number as a sentence shows it, to 6 digits."""
    return f"{float(x):.6g}".replace("-", "−").replace("inf", "∞").replace("nan", "NaN")


def unreadable(value: Tensor) -> Finding | None:
    """What is wrong with a tensor whose numbers can't be read: whole numbers, sparse, no data."""
    plain = value.layout == torch.strided and value.device.type != "meta"
    if plain and value.is_floating_point():
        return None
    return Finding(
        Text(
            f"The result must be an ordinary tensor of floating point numbers, not {value.dtype}.",
            f"结果应当是普通的浮点张量，不是 {value.dtype}。",
        )
    )


def form_of_each(values: Any, names: Sequence[str], shapes: Sequence[tuple]) -> Finding | None:
    """What is wrong with the form of a tuple of tensors, or None."""
    if not isinstance(values, tuple | list) or len(values) != len(names):
        listed = ", ".join(f"`{name}`" for name in names)
        return Finding(
            Text(
                f"Your function must return {len(names)} tensors, {listed}, in this order.",
                f"函数应按顺序返回 {len(names)} 个张量：{listed}。",
            )
        )
    for name, value, shape in zip(names, values, shapes, strict=True):
        problem = tensor_problem(value, shape, finite=False) or unreadable(value)
        if problem is not None:
            text = problem.text
            return Finding(Text(f"`{name}`: {text.en}", f"`{name}`：{text.zh}"), variable=name)
    return None


def tidy(outcome: Outcome, values: Iterable[Tensor], dtype: torch.dtype) -> Finding | None:
    """Inputs left alone, and results in the dtype of the input."""
    if outcome.inputs_changed:
        name = outcome.inputs_changed[0]
        return Finding(
            Text(
                f"Your function changed its input `{name}`. Whoever called it still needs that "
                "tensor. Make a new one instead of writing into it (`-=`, `*=`, `x[...] =`).",
                f"你的函数改动了输入 `{name}`，而调用者还要用它。"
                "请新建张量，不要往里写（`-=`、`*=`、`x[...] =`）。",
            ),
            misconception="input_changed",
            variable=name,
        )
    for value in values:
        if value.dtype != dtype:
            return tensor_problem(value, dtype=dtype, finite=False)
    return None


def row_finding(
    name: str,
    todo: int,
    value: Tensor,
    want: Tensor,
    said: tuple[str, Text] | None,
    hints: tuple[Text, ...],
    given: Text = NOTHING,
) -> Finding:
    """The first row in which a (rows, …) tensor is wrong, with both numbers."""
    rows = range(len(want))
    row = next((r for r in rows if not same(value[r], want[r])), 0)
    column = next((c for c in range(want.shape[1]) if not same(value[row, c], want[row, c])), 0)
    tail = said[1] if said else NOTHING
    place = f"`{name}[{row}, {column}]`"
    got, right = write(value[row, column]), write(want[row, column])
    return Finding(
        Text(
            f"{place} is {got}. {given.en or 'It'} should be {right}. {tail.en}".strip(),
            f"{place} 是 {got}，{given.zh}应为 {right}。{tail.zh}",
        ),
        todo=todo,
        variable=name,
        misconception=said[0] if said else None,
        hints=hints,
    )


def parts_of(
    plan: Sequence[tuple[str, int, Text]], cases: Iterable[dict[str, tuple[Finding, str]]]
) -> list[Part]:
    """One Part for each line of the plan, failed by the first case in which it fails."""
    found: dict[str, tuple[Finding, str]] = {}
    for case in cases:
        found = case | found
        if any(status == "too_slow" for _, status in found.values()):
            break
    return [
        Part(points, passed, *found.get(name, (None, "wrong"))) for name, points, passed in plan
    ]


def state_of(S: Tensor) -> tuple[Tensor, Tensor]:
    """(m, l) of all the scores S (rows, n), by definition, in the dtype of S."""
    if S.shape[1] == 0:
        empty = torch.zeros(S.shape[0], 1, dtype=S.dtype)
        return empty - math.inf, empty
    m = S.amax(-1, keepdim=True)
    return m, torch.exp(S - m).sum(-1, keepdim=True)
