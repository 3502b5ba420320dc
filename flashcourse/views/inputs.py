"""Made-up q, k, v for the player: the kinds of input at which an online softmax can be seen."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from flashcourse.words import Text

KINDS: dict[str, Text] = {
    "random": Text("random", "随机"),
    "falling": Text("falling maxima", "最大值逐块下降"),
    "rising": Text("rising maxima", "最大值逐块上升"),
    "huge": Text("one huge score", "有一个极大的分数"),
}
_HUGE_SCORE = 120.0  # exp(120) overflows float32: exp(89) already does


def make_inputs(
    seq_len: int = 8, dim: int = 4, seed: int = 42, kind: str = "random"
) -> tuple[Tensor, Tensor, Tensor]:
    """q, k, v, float32, each (seq_len, dim), the same for the same arguments.

    kind: 'random' (normal), 'falling' and 'rising' (every row's scores fall or rise steadily with
    the key), 'huge' (normal, with one score of 120). ValueError for another kind.
    """
    if kind not in KINDS:
        raise ValueError(f"unknown kind of input {kind!r}: use one of {', '.join(KINDS)}")
    generator = torch.Generator().manual_seed(seed)
    q, k, v = (torch.randn(seq_len, dim, generator=generator) for _ in range(3))
    if kind in ("falling", "rising"):
        q, k = _steady(q, k, falling=kind == "falling")
    if kind == "huge":
        middle = seq_len // 2
        k[middle] = q[middle] * (_HUGE_SCORE * math.sqrt(dim) / (q[middle] @ q[middle]))
    return q, k, v


def _steady(q: Tensor, k: Tensor, *, falling: bool) -> tuple[Tensor, Tensor]:
    """Put into the first dimension alone a score that goes from 2 to −2, or the other way."""
    seq_len, dim = q.shape
    slope = torch.linspace(2, -2, seq_len) * (1 if falling else -1)
    q, k = q * 0.1, k * 0.1
    q[:, 0] = 1 + q[:, 0]
    k[:, 0] = slope * math.sqrt(dim)
    return q, k
