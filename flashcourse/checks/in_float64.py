"""What the exercises of lessons 4 and 5 share: their inputs, and how an answer is compared with
float64."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from flashcourse.attention import scores
from flashcourse.checks.marks import Finding, Marks
from flashcourse.checks.probe import Failure, Outcome, Part, finding_of, judge, tensor_problem
from flashcourse.recording import record
from flashcourse.records import Record
from flashcourse.words import Text

CLOSE = 1e-10  # largest error against float64 in float64
# Names that lesson 4's cells give or ask for: one that is undefined is an unfinished answer.
SKELETON = ("q_block", "m_i", "l_i", "out_i", "m_new", "l_new", "out_new", "P_ij", "D_i", "dS_ij")


class Inputs(NamedTuple):
    q: Tensor
    k: Tensor
    v: Tensor


def inputs(
    rows: int, keys: int, dim: int, dim_v: int, seed: int, dtype: torch.dtype = torch.float64
) -> Inputs:
    """Random q (rows, dim), k (keys, dim), v (keys, dim_v) from a generator of their own."""
    generator = torch.Generator().manual_seed(1000 + seed)

    def draw(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64).to(dtype)

    return Inputs(draw(rows, dim), draw(keys, dim), draw(keys, dim_v))


def off(value: Tensor, right: Tensor) -> float:
    """The largest absolute difference, ∞ if it isn't a number."""
    difference = (value.double() - right.double()).abs().max().item()
    return math.inf if math.isnan(difference) else difference


def is_close(value: Any, right: Tensor, tolerance: float = CLOSE) -> bool:
    return (
        isinstance(value, Tensor) and value.shape == right.shape and off(value, right) < tolerance
    )


def explain(value: Tensor, slips: Sequence[tuple[Tensor, Text]]) -> Text | None:
    """The sentence of the first slip whose result the value equals."""
    return next((text for wrong, text in slips if is_close(value, wrong)), None)


def with_reason(en: str, zh: str, why: Text | None) -> Text:
    """The sentence, and after it the likely reason if one is known."""
    return Text(f"{en} {why.en}", f"{zh}{why.zh}") if why else Text(en, zh)


def tensor_finding(
    value: Any,
    right: Tensor,
    dtype: torch.dtype,
    name: str,
    slips: Sequence[tuple[Tensor, Text]],
    hints: tuple[Text, ...],
) -> Finding | None:
    """What is wrong with a tensor, and if it is the result of a known slip, which."""
    problem = tensor_problem(value, right.shape, dtype)
    if problem or is_close(value, right):
        return problem
    error = f"{off(value, right):.2g}"
    en, zh = f"`{name}` is off by up to {error}.", f"`{name}` 最大误差 {error}。"
    text = with_reason(en, zh, explain(value, slips))
    return Finding(text, variable=name, hints=hints)


def unpack(outcome: Outcome, names: Sequence[str]) -> tuple[Any, ...] | Finding:
    """The parts of a returned tuple, or a Finding that says what should be returned."""
    value = outcome.value
    if isinstance(value, tuple | list) and len(value) == len(names):
        return tuple(value)
    got = f"{type(value).__name__}" + (
        f" of {len(value)}" if isinstance(value, tuple | list) else ""
    )
    wanted = ", ".join(names)
    return Finding(
        Text(
            f"Return {len(names)} things: `{wanted}`. You returned a {got}.",
            f"请返回 {len(names)} 项：`{wanted}`。你返回的是 {got}。",
        )
    )


def all_failed(
    exercise_id: str, parts: Sequence[tuple[float, Text]], why: Failure | Finding
) -> Marks:
    """No part could be looked at: the function failed, or returned another kind of thing."""
    if isinstance(why, Failure):
        return judge(exercise_id, [Part(p, text, finding_of(why), why.kind) for p, text in parts])
    return judge(exercise_id, [Part(p, text, why) for p, text in parts])


def log_sum_exp(data: Inputs) -> Tensor:
    """L = log Σ exp(S), (rows, 1), in float64."""
    return torch.logsumexp(scores(data.q.double(), data.k.double()), dim=-1, keepdim=True)


def block_maxima(S: Tensor, block: int) -> Tensor:
    """For each score, the largest score up to the end of its block of keys: the m its tile used."""
    last = [min(j - j % block + block, S.shape[1]) - 1 for j in range(S.shape[1])]
    return torch.cummax(S, dim=1).values[:, last]


def changed_finding(outcome: Outcome) -> Finding | None:
    if not outcome.inputs_changed:
        return None
    names = ", ".join(f"`{name}`" for name in outcome.inputs_changed)
    return Finding(
        Text(
            f"Your function wrote to its input {names}. Make a new tensor instead.",
            f"函数改写了输入 {names}。请生成新的张量。",
        )
    )


def works_in_tiles(answer: Callable[..., Any], run: Record, data: Inputs, block: int) -> bool:
    """Whether a run took an exponential of every score, of a whole row never, and not for show: the
    output is another where the exponentials are."""
    rows, keys = data.q.shape[0], data.k.shape[0]
    exponentials = [made for made in run.tensors if made.exponents is not None]
    if run.largest_intermediate >= rows * keys or any(keys in made.shape for made in exponentials):
        return False
    if sum(made.elements for made in exponentials) < rows * keys or run.output is None:
        return False
    disturbed = record(answer, *data, block_size=block, disturb=True).output
    return disturbed is not None and not is_close(disturbed, run.output)
