"""One recorded tile in float64, and what each TODO's values should be, given the learner's own.

The relations are local (FlashAttention-2, arXiv 2307.08691, §3.1; FlashAttention, arXiv
2205.14135, Algorithm 1): each says what one value must be when the values before it are what the
learner made them. So a slip shows where it was made and nowhere else.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from flashcourse.records import Record, Tile

# How far a number may be off, relative to 1 + |right|.
TOLERANCE = {torch.float64: 2e-5, torch.float32: 2e-5, torch.float16: 4e-3, torch.bfloat16: 3e-2}

_FLOAT32_MAX = torch.finfo(torch.float32).max

TODO_OF = {
    "out": 1,
    "m": 1,
    "l": 1,
    "S_ij": 2,
    "m_block": 3,
    "m_new": 3,
    "P_ij": 4,
    "l_block": 5,
    "l_new": 5,
    "out_i": 6,
    "m_i": 6,
    "l_i": 6,
}


@dataclass(frozen=True)
class Problem:
    """The inputs of a run: q (rows, dim), k (keys, dim), v (keys, dim_v) and the block size."""

    name: str
    q: Tensor
    k: Tensor
    v: Tensor
    block: int

    @property
    def tolerance(self) -> float:
        return TOLERANCE.get(self.q.dtype, 2e-5)

    @property
    def rounding(self) -> float:
        """What the dtype's rounding of the largest q·k can do to an exponential, relative to it."""
        largest = float((self.q.double() @ self.k.double().T).abs().max())
        return 2 * torch.finfo(self.q.dtype).eps * largest

    @property
    def offsets(self) -> list[tuple[int, int]]:
        """Every tile (i, j) that has to be visited."""
        rows = range(0, self.q.shape[0], self.block)
        columns = range(0, self.k.shape[0], self.block)
        return [(i, j) for i in rows for j in columns]

    @property
    def in_full_blocks(self) -> bool:
        return self.q.shape[0] % self.block == 0 == self.k.shape[0] % self.block


def close(got: Tensor, want: Tensor, tolerance: float) -> Tensor:
    """Elementwise: equal within the tolerance.

    What can't be known (`want` is NaN) is equal, and so are two numbers that float32 can't hold.
    """
    return torch.from_numpy(np.asarray(_close(got.numpy(), want.numpy(), tolerance)))


def agrees(got: Tensor, want: Tensor | None, tolerance: float) -> bool:
    """Same shape and the same numbers. Both are float64, on the CPU."""
    if want is None or got.shape != want.shape:
        return False
    return bool(_close(got.numpy(), want.numpy(), tolerance).all())


# A tile has few numbers, and is compared hundreds of times: NumPy takes a fifth of torch's time.
def _close(got: np.ndarray, want: np.ndarray, tolerance: float) -> np.ndarray:
    with np.errstate(invalid="ignore", over="ignore"):
        size = np.abs(want)
        near = np.abs(got - want) <= tolerance * (1 + size)
        if near.all() and np.isfinite(size).all():
            return near
        near &= np.isfinite(size)
        both_too_large = ~np.isfinite(got) & ~(size <= _FLOAT32_MAX)
        return near | (got == want) | np.isnan(want) | both_too_large


class View:
    """A tile of a learner's run. Values are float64 on the CPU; None for what was not seen.

    S, m_new, P and so on fall back to what they should be, given the values before them, where
    the function has no such name: then a later relation still has something to stand on.
    """

    def __init__(self, problem: Problem, record: Record, tile: Tile) -> None:
        self.problem, self.record, self.tile = problem, record, tile
        self.rows = slice(tile.i, tile.i + problem.block)
        self.columns = slice(tile.j, tile.j + problem.block)
        flat = tile.before.get("m_i")
        self.flat = flat is not None and flat.ndim == 1  # a state of shape (rows,) is a style too

    def got(self, name: str) -> Tensor | None:
        """The value that the learner's code gave `name` in this tile."""
        return self._read(self.tile.values.get(name))

    def _read(self, value: Tensor | None) -> Tensor | None:
        if value is None:
            return None
        value = value.detach().cpu().double()
        return value[:, None] if self.flat and value.ndim == 1 else value

    def started_from(self, name: str) -> Tensor | None:
        return self._read(self.tile.before.get(name))

    def before(self, name: str) -> Tensor:
        value = self.started_from(name)
        if value is None:
            raise LookupError(name)
        return value

    def after(self, name: str) -> Tensor | None:
        """The state that the next tile starts from, once this one has come to its end."""
        ended = "out_i" in self.tile.values and name in self.tile.before
        failed = self.record.error is not None and self.tile is self.record.tiles[-1]
        return self._read(self.tile.after.get(name)) if ended and not failed else None

    # ---- inputs ----

    @cached_property
    def q(self) -> Tensor:
        return self.problem.q[self.rows].cpu().double()

    @cached_property
    def k(self) -> Tensor:
        return self.problem.k[self.columns].cpu().double()

    @cached_property
    def v(self) -> Tensor:
        return self.problem.v[self.columns].cpu().double()

    @cached_property
    def root(self) -> float:
        return math.sqrt(self.problem.q.shape[-1])

    # ---- the learner's values, or what stands in for them ----

    @cached_property
    def S(self) -> Tensor:
        got = self.got("S_ij")
        return self.q @ self.k.T / self.root if got is None else got

    @cached_property
    def m_block(self) -> Tensor:
        got = self.got("m_block")
        return self.S.amax(dim=-1, keepdim=True) if got is None else got

    @cached_property
    def m(self) -> Tensor:
        return self.before("m_i")

    @cached_property
    def m_new(self) -> Tensor:
        got = self.got("m_new") if self.sees("m_new") else self.got("m_i")
        return torch.maximum(self.m, self.m_block) if got is None else got

    @cached_property
    def P(self) -> Tensor:
        got = self.got("P_ij")
        return torch.exp(self.S - self.m_new) if got is None else got

    @cached_property
    def l(self) -> Tensor:  # noqa: E743
        return self.before("l_i")

    @cached_property
    def l_new(self) -> Tensor:
        got = self.got("l_new") if self.sees("l_new") else self.got("l_i")
        return self.right_l_new() if got is None else got

    @cached_property
    def O(self) -> Tensor:  # noqa: E743
        return self.before("out_i")

    def sees(self, name: str) -> bool:
        return name not in self.record.missing

    @cached_property
    def alpha(self) -> Tensor:
        return torch.exp(self.m - self.m_new)

    @cached_property
    def alpha_at_output(self) -> Tensor:
        """α as the output line knows it. That m_i was new before l_new is TODO 5's fault."""
        early = self.assigned_before("m_i", "l_new") and self.got("m_new") is not None
        return torch.ones_like(self.alpha) if early else self.alpha

    @cached_property
    def factor_of_sum(self) -> Tensor:
        """What the learner's l_new multiplies l_i by. Where l_i is 0, that can't be told: α."""
        factor = (self.l_new - self.rowsum) / self.l
        return torch.where(factor.isfinite(), factor, self.alpha)

    @cached_property
    def beta(self) -> Tensor:
        return torch.exp(self.m_block - self.m_new)

    @cached_property
    def rowsum(self) -> Tensor:
        return self.P.sum(dim=-1, keepdim=True)

    @cached_property
    def PV(self) -> Tensor:
        return self.P @ self.v

    # ---- what is right, given those ----

    def right_S(self) -> Tensor:
        return self.q @ self.k.T / self.root

    def right_m_block(self) -> Tensor:
        return self.S.amax(dim=-1, keepdim=True)

    def right_m_new(self) -> Tensor:
        return torch.maximum(self.m, self.m_block)

    def right_P(self) -> Tensor:
        return torch.exp(self.S - self.m_new)

    def right_l_new(self) -> Tensor:
        return self.alpha * self.l + self.rowsum

    def right_out_normalised(self) -> Tensor:
        return (self.alpha_at_output * self.l * self.O + self.PV) / self.l_new

    def right_out_deferred(self) -> Tensor:
        return self.alpha_at_output * self.O + self.PV

    # ---- the same with the factor of the sum: a wrong line for α is TODO 5's fault alone ----

    def out_normalised_as_sum(self) -> Tensor:
        return (self.factor_of_sum * self.l * self.O + self.PV) / self.l_new

    def out_deferred_as_sum(self) -> Tensor:
        return self.factor_of_sum * self.O + self.PV

    # ---- the same when P is relative to the tile's own maximum (FlashAttention-1's way) ----

    def block_l_new(self) -> Tensor:
        return self.alpha * self.l + self.beta * self.rowsum

    def block_out_normalised(self) -> Tensor:
        return (self.alpha * self.l * self.O + self.beta * self.PV) / self.l_new

    def block_out_deferred(self) -> Tensor:
        return self.alpha * self.O + self.beta * self.PV

    def assigned_before(self, first: str, then: str) -> bool:
        """Whether `first` was assigned in this tile, and `then` only after it."""
        order = list(self.tile.values)
        return first in order and then in order and order.index(first) < order.index(then)


def views(problem: Problem, record: Record) -> list[View]:
    """The record's tiles that lie inside the problem."""
    rows, keys = problem.q.shape[0], problem.k.shape[0]
    inside = (t for t in record.tiles if 0 <= t.i < rows and 0 <= t.j < keys)
    return [View(problem, record, tile) for tile in inside]
