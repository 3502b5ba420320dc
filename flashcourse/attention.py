"""Exact attention, and in closed form the state that an online softmax must have after n keys.

This is the oracle of every check and the content of the tile player. It is deliberately not
the algorithm that students write: no loop over tiles, no running maximum, no correction factor.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor


class State(NamedTuple):
    """What an online softmax knows about each query row after some of the keys.

    m: (rows, 1), the largest score seen. l: (rows, 1), Σ exp(score − m).
    O: (rows, dim_v), the attention output over the keys seen, normalised.
    """

    m: Tensor
    l: Tensor
    O: Tensor


def scores(q: Tensor, k: Tensor) -> Tensor:
    """S = q kᵀ / √dim, shape (rows, keys), in the dtype of q."""
    return q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])


def attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """softmax(q kᵀ / √dim) v, computed in float64 and returned in float64.

    q: (rows, dim), k: (keys, dim), v: (keys, dim_v), any floating dtype.
    """
    q, k, v = q.double(), k.double(), v.double()
    return torch.softmax(scores(q, k), dim=-1) @ v


def state_after(q: Tensor, k: Tensor, v: Tensor, n: int) -> State:
    """The state after the first n keys, in float64: (−∞, 0, 0) for n = 0.

    m = rowmax S[:, :n], l = Σ exp(S[:, :n] − m), O = softmax(S[:, :n]) v[:n]
    (Milakov & Gimelshein, arXiv 1805.02867, for m and l; Rabe & Staats, arXiv 2112.05682, for O).
    """
    q, k, v = q.double(), k.double(), v.double()
    rows = q.shape[0]
    if n == 0:
        return State(
            torch.full((rows, 1), -math.inf, dtype=torch.float64, device=q.device),
            torch.zeros(rows, 1, dtype=torch.float64, device=q.device),
            torch.zeros(rows, v.shape[-1], dtype=torch.float64, device=q.device),
        )
    S = scores(q, k[:n])
    m = S.max(dim=-1, keepdim=True).values
    l = torch.exp(S - m).sum(dim=-1, keepdim=True)
    return State(m, l, torch.softmax(S, dim=-1) @ v[:n])
