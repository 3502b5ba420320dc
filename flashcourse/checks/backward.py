"""Lesson 4's fourth exercise: the backward pass, with P recomputed from L.

The right gradients are autograd's in float64, and closed forms where L is another's.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from flashcourse.attention import attention, scores
from flashcourse.checks.in_float64 import (
    SKELETON,
    Inputs,
    all_failed,
    changed_finding,
    inputs,
    is_close,
    log_sum_exp,
    tensor_finding,
    unpack,
)
from flashcourse.checks.marks import Finding, Marks
from flashcourse.checks.probe import Part, call, finding_of, judge
from flashcourse.checks.registry import exercise
from flashcourse.recording import record
from flashcourse.records import Record
from flashcourse.words import Text

_BACKWARD = (
    (8.0, Text("`dq` matches autograd.", "`dq` 与 autograd 一致。")),
    (8.0, Text("`dk` matches autograd.", "`dk` 与 autograd 一致。")),
    (8.0, Text("`dv` matches autograd.", "`dv` 与 autograd 一致。")),
    (
        6.0,
        Text(
            "P is recomputed in tiles: no tensor of the size of S.",
            "P 按小块重算：没有和 S 一样大的张量。",
        ),
    ),
)
# rows, keys, dim, dim_v, block
_BACKWARD_CASES = ((12, 12, 5, 5, 4), (10, 17, 3, 6, 4))


class Gradients(NamedTuple):
    dq: Tensor
    dk: Tensor
    dv: Tensor


def gradients(data: Inputs, dout: Tensor) -> Gradients:
    """dq, dk, dv of softmax attention by autograd, in float64."""
    q, k, v = (t.double().clone().requires_grad_() for t in data)
    (torch.softmax(scores(q, k), dim=-1) @ v).backward(dout.double())
    assert q.grad is not None and k.grad is not None and v.grad is not None
    return Gradients(q.grad, k.grad, v.grad)


@exercise("v1v2.backward", points=30, title=Text("Recompute", "重计算"))
def check_backward(answer: Any, *, seed: int = 0) -> Marks:
    """dq, dk, dv with P recomputed from L (arXiv 2307.08691, Algorithm 2)."""
    findings: list[Finding | None] = [None, None, None, None]
    for rows, keys, dim, dim_v, block in _BACKWARD_CASES:
        data = inputs(rows, keys, dim, dim_v, seed)
        dout = inputs(rows, rows, dim_v, dim_v, seed + 7).q
        saved = (attention(*data), log_sum_exp(data), dout)
        outcome = call(answer, *data, *saved, block_size=block, skeleton=SKELETON)
        if outcome.error:
            return all_failed("v1v2.backward", _BACKWARD, outcome.error)
        value = unpack(outcome, ("dq", "dk", "dv"))
        if isinstance(value, Finding):
            return all_failed("v1v2.backward", _BACKWARD, value)
        right, slips = gradients(data, dout), _gradient_slips(data, dout, block)
        found = [
            tensor_finding(got, want, torch.float64, name, slips[name], _BACKWARD_HINTS)
            for name, got, want in zip(Gradients._fields, value, right, strict=True)
        ]
        run = record(answer, *data, block_size=block, extra=saved)
        found.append(changed_finding(outcome) or _whole_matrix_finding(run, rows, keys))
        findings = [old or new for old, new in zip(findings, found, strict=True)]
    fine = [n for n in range(3) if findings[n] is None]
    from_L, by_hand = _what_follows(answer, seed)
    for n in fine:
        findings[n] = None if from_L[n] or by_hand[n] else _IGNORED
    if fine and not any(from_L[n] for n in fine):
        findings[3] = findings[3] or _IGNORED
    elif not fine and not any(made.exponents for made in run.tensors):
        findings[3] = findings[3] or findings[0]
    return judge(
        "v1v2.backward", [Part(*part, f) for part, f in zip(_BACKWARD, findings, strict=True)]
    )


def _what_follows(answer: Callable[..., Any], seed: int) -> tuple[list[bool], list[bool]]:
    """Which of dq, dk, dv come of the `L` handed over, and which of the chain rule by hand.

    `L` and `out` are altered, row by row: P = exp(S − L) and D are then another's, and so are the
    gradients. Autograd gives the same as ever. D may come of `out`, of P, or of an output computed
    anew, which is the same where all is true. Whoever has a softmax in place of exp(S − L), but D
    of `out`, wrote the rule out.
    """
    rows, keys, dim, dim_v, block = _BACKWARD_CASES[1]
    data, made = inputs(rows, keys, dim, dim_v, seed), inputs(rows, rows, dim_v, 1, seed + 7)
    dout, out, L = made.q, attention(*data) + made.k, log_sum_exp(data) + made.v / 4
    value = call(answer, *data, out, L, dout, block_size=block, skeleton=SKELETON).value
    got = tuple(value) if isinstance(value, tuple | list) and len(value) == 3 else (None,) * 3
    S, of_out = scores(data.q, data.k), (dout * out).sum(dim=-1, keepdim=True)
    P = torch.exp(S - L)
    of_P = (P * (dout @ data.v.T)).sum(dim=-1, keepdim=True)
    of_exact = (dout * attention(*data)).sum(dim=-1, keepdim=True)
    kept = [_closed_form(data, dout, P, D) for D in (of_out, of_P, of_exact)]
    ruled = _closed_form(data, dout, torch.softmax(S, dim=-1), of_out)
    from_L = [any(is_close(got[n], g[n]) for g in kept) for n in range(3)]
    return from_L, [*(is_close(got[n], ruled[n]) for n in (0, 1)), False]


_IGNORED = Finding(
    Text(
        "Your gradients don't follow from the `L` and `out` that they are given: with another `L` "
        "they are not those of P = exp(S − L). Nothing is recomputed from what the forward pass "
        "kept.",
        "你的梯度不是由传入的 `L` 和 `out` 得出的：换一个 `L`，得到的并不是 P = exp(S − L) 的梯度。"
        "也就是说，没有用前向保存的东西来重算。",
    ),
    variable="P_ij",
    hints=(
        Text(
            "Which of the six inputs does your code never read?",
            "六个输入里，哪一个你的代码从没读过？",
        ),
        Text(
            "P_ij = exp(S_ij − L_i) needs no maximum and no sum: L holds both.",
            "P_ij = exp(S_ij − L_i) 不用再求最大值和指数和：L 里两者都有。",
        ),
    ),
)


def _closed_form(data: Inputs, dout: Tensor, P: Tensor, D: Tensor) -> Gradients:
    """dq, dk, dv for the given P (rows, keys) and D (rows, 1)."""
    q, k, v = data
    dS = P * (dout @ v.T - D) / math.sqrt(q.shape[1])
    return Gradients(dS @ k, dS.T @ q, P.T @ dout)


_BACKWARD_HINTS = (
    Text(
        "Each tile adds to what is there. Which rows of q, k, v, L and dout belong to this tile?",
        "每个小块都是往已有的结果上加。q、k、v、L、dout 的哪些行属于这一块？",
    ),
    Text(
        "P = exp(S − L), S scaled; dS = P ∘ (dO Vᵀ − D); the scale once in dq and once in dk.",
        "P = exp(S − L)，S 要缩放；dS = P ∘ (dO Vᵀ − D)；dq 和 dk 各乘一次缩放。",
    ),
)


def _gradient_slips(data: Inputs, dout: Tensor, block: int) -> dict[str, list[tuple[Tensor, Text]]]:
    """Gradients with one frequent slip each, written out for the whole matrix."""
    q, k, v = data
    scale = 1 / math.sqrt(q.shape[1])
    P = torch.softmax(scores(q, k), dim=-1)
    dP = dout @ v.T
    D = (P * dP).sum(dim=-1, keepdim=True)
    dS = P * (dP - D)
    no_d, late_d = P * dP, P * dP - D
    keys, rows = k.shape[0], q.shape[0]
    k0, q0 = (keys - 1) // block * block, (rows - 1) // block * block
    scale_text = Text("The factor 1/√dim is missing.", "少乘了 1/√dim。")
    twice = Text("The factor 1/√dim is there twice.", "1/√dim 乘了两次。")
    d_text = Text("D is not subtracted.", "没有减去 D。")
    late = Text(
        "P multiplies the difference dP − D, not dP alone.", "P 要乘整个差 dP − D，而不只是 dP。"
    )
    last = Text(
        "Only the last tile's share is left: add with `+=`.",
        "只剩下最后一块的份额：请用 `+=` 累加。",
    )
    return {
        "dq": [
            (dS @ k, scale_text),
            (dS @ k * scale**2, twice),
            (no_d @ k * scale, d_text),
            (late_d @ k * scale, late),
            (dS[:, k0:] @ k[k0:] * scale, last),
        ],
        "dk": [
            (dS.T @ q, scale_text),
            (dS.T @ q * scale**2, twice),
            (no_d.T @ q * scale, d_text),
            (late_d.T @ q * scale, late),
            (dS[q0:].T @ q[q0:] * scale, last),
        ],
        "dv": [
            (dS.T @ dout, Text("dv needs P, not dS.", "dv 用的是 P，不是 dS。")),
            (P.T @ dout * scale, Text("dv has no factor 1/√dim.", "dv 不乘 1/√dim。")),
            (P[q0:].T @ dout[q0:], last),
        ],
    }


def _whole_matrix_finding(run: Record, rows: int, keys: int) -> Finding | None:
    if run.error is not None:  # though the call came back
        return finding_of(run.error)
    if run.largest_intermediate < rows * keys:
        return None
    return Finding(
        Text(
            f"It made a tensor of {run.largest_intermediate} numbers, as many as the {rows} × "
            f"{keys} matrix P. Recompute one tile at a time.",
            f"产生了一个有 {run.largest_intermediate} 个数的张量，"
            f"和 {rows} × {keys} 的 P 一样大。请每次只重算一个小块。",
        )
    )
