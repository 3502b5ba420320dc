"""What comes out of attention in 1, 2 or 3 tiles if one line of it is wrong: closed forms.

For a function with names of its own, its output is all there is to look at. The right state after
the keys before the last tile is a closed form (FlashAttention-2, arXiv 2307.08691, §3.1), and so
is one more step from there. Each form below is that step with one mistake in it. The first keys
may be none: then α is 0, as with m = −∞, and the same formula holds for one tile alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from flashcourse.attention import scores
from flashcourse.checks.forward_tile import Problem


class Parts:
    """All rows of a problem in float64, its keys cut before the last tile: old ones and new ones.

    m_old, l_old, A_old: rowmax S, Σ exp(S − m_old) and exp(S − m_old) V over the old keys. l_new,
    A_new: the same over the last tile, relative to m, the maximum of all. Column tensors.
    """

    def __init__(self, problem: Problem) -> None:
        self.q, self.k, self.v = (t.double() for t in (problem.q, problem.k, problem.v))
        self.root, self.block = math.sqrt(problem.q.shape[-1]), problem.block
        self.cut = max(len(self.k) - problem.block, 0)
        self.S = scores(self.q, self.k)
        self.S_old, self.S_new = self.S[:, : self.cut], self.S[:, self.cut :]
        self.v_old, self.v_new = self.v[: self.cut], self.v[self.cut :]
        self.m_old = self._max(self.S_old)
        self.m_block = self._max(self.S_new)
        self.m = torch.maximum(self.m_old, self.m_block)
        self.a, self.b = torch.exp(self.m_old - self.m), torch.exp(self.m_block - self.m)
        self.P_old, self.P_new = self.weights(lambda S, m: torch.exp(S - m))
        self.l_old, self.l_new = _sum(self.P_old), _sum(self.P_new)
        self.A_old, self.A_new = self.P_old @ self.v_old, self.P_new @ self.v_new
        self.O_old = self.over(self.A_old, self.l_old)
        self.l = self.a * self.l_old + self.l_new

    @property
    def tiles(self) -> int:
        return -(-len(self.k) // self.block)

    def _max(self, part: Tensor) -> Tensor:
        if not part.shape[1]:
            return torch.full((len(self.S), 1), -math.inf, dtype=torch.float64)
        return part.amax(dim=-1, keepdim=True)

    def weights(self, rule: Callable[[Tensor, Tensor], Tensor]) -> tuple[Tensor, Tensor]:
        """P by a rule of S and m, of the old keys relative to m_old and of the new to m."""
        return rule(self.S_old, self.m_old), rule(self.S_new, self.m)

    def over(self, what: Tensor, divisor: Tensor) -> Tensor:
        """A division; without old keys it is 0, as α times it will be."""
        return what / divisor if self.cut else torch.zeros_like(what)

    @cached_property
    def tile_before(self) -> tuple[Tensor, Tensor]:
        """Maximum, and sum relative to m_old, of the last tile of the old keys."""
        S = self.S_old[:, max(self.cut - self.block, 0) :]
        return self._max(S), _sum(torch.exp(S - self.m_old))

    def transposed(self, part: Tensor) -> Tensor:
        """Every tile transposed; tiles have to be square."""
        b = self.block
        if not part.numel():
            return part
        tiles = part.unfold(0, b, b).unfold(1, b, b)  # (row of tiles, column of tiles, row, column)
        return tiles.transpose(2, 3).transpose(1, 2).reshape(part.shape)

    def of_tile(self, part: Tensor) -> Tensor:
        """The sum over a whole tile, for each of its rows."""
        sums = _sum(part).reshape(-1, self.block, 1).sum(dim=1)
        return sums.repeat_interleave(self.block, dim=0)

    def own_rows(self, tensor: Tensor) -> Tensor:
        """For each row, the rows of `tensor` in its own Q block: (rows, block, width)."""
        blocks = tensor.reshape(-1, self.block, tensor.shape[-1])
        return blocks.repeat_interleave(self.block, dim=0)


def _sum(part: Tensor) -> Tensor:
    return part.sum(dim=-1, keepdim=True)


@dataclass(frozen=True)
class Form:
    """todo: None where several may be at fault. most: up to how many tiles the formula holds."""

    todo: int | None
    misconception: str | None
    output: Callable[[Parts], Tensor]
    most: int = 2


# ---- TODO 2: another S, and a softmax of it -----------------------------------------------------


def _scores(misconception: str | None, rule: Callable[[Parts], Tensor]) -> Form:
    return Form(2, misconception, lambda p: torch.softmax(rule(p), dim=-1) @ p.v, most=3)


def _causal(p: Parts) -> Tensor:
    return p.S.masked_fill(torch.ones_like(p.S).triu(1).bool(), -math.inf)


def _own_keys(p: Parts) -> Tensor:
    own = torch.einsum("rd,rcd->rc", p.q, p.own_rows(p.k)) / p.root
    return own.repeat(1, p.tiles)


SCORES = (
    _scores("no-scale", lambda p: p.S * p.root),
    _scores("scale-twice", lambda p: p.S / p.root),
    _scores("scale-inverted", lambda p: p.S * p.root**2),
    _scores(None, lambda p: p.S * p.root / math.sqrt(len(p.q))),
    _scores("causal-mask", _causal),
    _scores("scores-transposed", lambda p: p.transposed(p.S)),
    _scores("scores-of-another-block", _own_keys),
    _scores(None, lambda p: -p.S),
    _scores(None, lambda p: p.S.abs()),
)


# ---- TODO 4: other weights, all else as it should be --------------------------------------------


def _weights(misconception: str | None, rule: Callable[[Tensor, Tensor], Tensor]) -> Form:
    def output(p: Parts) -> Tensor:
        old, new = p.weights(rule)
        return (p.a * (old @ p.v_old) + new @ p.v_new) / (p.a * _sum(old) + _sum(new))

    return Form(4, misconception, output)


WEIGHTS = (
    _weights("nothing-subtracted", lambda S, m: torch.exp(S)),
    _weights("exponent-sign", lambda S, m: torch.exp(m - S)),
    _weights("exponent-sign", lambda S, m: torch.exp(S + m)),
    _weights("exp-forgotten", lambda S, m: S - m),
    _weights("exp-before-the-subtraction", lambda S, m: torch.exp(S) - m),
    _weights("base-two", lambda S, m: 2 ** (S - m)),
    _weights(None, lambda S, m: 10 ** (S - m)),
    _weights(None, lambda S, m: torch.sigmoid(S - m)),
    _weights(None, lambda S, m: torch.exp(S / m)),
    Form(
        4,
        "block-maximum-subtracted",
        lambda p: (p.a * p.A_old + p.A_new / p.b) / (p.a * p.l_old + p.l_new / p.b),
    ),
    Form(4, "softmax-in-the-tile", lambda p: (p.a * p.O_old + p.A_new / p.l_new) / (p.a + 1)),
)


# ---- TODO 5: another l, which the output is divided by ------------------------------------------


def _sums(misconception: str | None, rule: Callable[[Parts], Tensor], most: int = 2) -> Form:
    return Form(5, misconception, lambda p: (p.a * p.A_old + p.A_new) / rule(p), most)


def _mean(p: Parts) -> Tensor:
    return p.a * p.l_old / max(p.cut, 1) + p.l_new / (len(p.k) - p.cut)


SUMS = (
    _sums("old-sum-not-rescaled", lambda p: p.l_old + p.l_new),
    _sums("block-sum-corrected-twice", lambda p: p.a * p.l_old + p.b * p.l_new),
    _sums("old-sum-forgotten", lambda p: p.l_new, most=3),
    _sums("alpha-of-the-block-maximum", lambda p: _alpha_of_block(p) * p.l_old + p.l_new),
    _sums("mean-instead-of-sum", _mean),
    _sums("max-instead-of-sum", lambda p: p.a + p.b),
    _sums("sum-of-scores", lambda p: p.a * _sum(p.S_old) + _sum(p.S_new)),
    _sums("sum-of-the-whole-tile", lambda p: p.a * p.of_tile(p.P_old) + p.of_tile(p.P_new)),
    _sums("sum-over-rows", lambda p: p.a * _over_rows(p, p.P_old) + _over_rows(p, p.P_new)),
    # Neither l nor O is rescaled: TODO 5 is wrong, whether TODO 6 is or m_i was new too early.
    Form(5, None, lambda p: (p.A_old + p.A_new) / (p.l_old + p.l_new)),
)


def _over_rows(p: Parts, part: Tensor) -> Tensor:
    return _sum(p.transposed(part))


def _alpha_of_block(p: Parts) -> Tensor:
    return torch.exp(p.m_old - p.m_block)


# ---- TODO 6: another output, or another state for the next tile ---------------------------------


def _of_maximum_before(p: Parts) -> Tensor:
    """m_i took the maximum of the tile before, not of all before."""
    m_before, _ = p.tile_before
    m = torch.maximum(m_before, p.m_block)
    a, new = torch.exp(m_before - m), torch.exp(p.S_new - m)
    return (a * p.A_old + new @ p.v_new) / (a * p.l_old + _sum(new))


def _of_sum_before(p: Parts) -> Tensor:
    """l_i took the sum of the tile before, not of all before."""
    _, before = p.tile_before
    return (p.a * before * p.O_old + p.A_new) / (p.a * before + p.l_new)


def _own_values(p: Parts) -> Tensor:
    new = torch.einsum("rc,rcd->rd", p.P_new, p.own_rows(p.v))
    if not p.cut:
        return new / p.l
    return (p.a * torch.einsum("rc,rcd->rd", p.P_old, p.own_rows(p.v)) + new) / p.l


OUTPUTS = (
    # Two mistakes give each of the next three; both are TODO 6's.
    Form(6, None, lambda p: (p.A_old + p.A_new) / p.l),
    Form(6, None, lambda p: p.O_old + p.A_new / p.l),
    Form(6, None, lambda p: p.a * p.A_new / p.l),
    Form(6, "old-output-not-multiplied-by-sum", lambda p: (p.a * p.O_old + p.A_new) / p.l),
    Form(6, "only-the-new-term-divided", lambda p: p.a * p.A_old + p.A_new / p.l),
    Form(6, None, lambda p: p.a * p.O_old + p.A_new / p.l),  # or l_i was new too early
    Form(6, "only-the-old-term-divided", lambda p: p.a * p.l_old * p.A_old / p.l + p.A_new),
    Form(
        6,
        None,
        lambda p: (p.a * p.l_old * p.A_old + p.A_new) / torch.where(p.l_old == 0, 1.0, p.l_old),
    ),
    Form(
        6,
        "divided-by-the-block-sum",
        lambda p: (p.a * p.l_old * p.over(p.A_old, p.tile_before[1]) + p.A_new) / p.l_new,
        most=3,
    ),
    Form(6, "softmax-per-tile-summed", lambda p: p.O_old + p.A_new / p.l_new),
    Form(6, None, lambda p: (p.O_old + p.A_new / p.l_new) / p.tiles),
    Form(6, "new-output-not-corrected", lambda p: (p.a * p.A_old + p.A_new / p.b) / p.l),
    Form(6, None, lambda p: p.A_new / p.l, most=3),  # forgotten, or set to 0 in every tile
    Form(6, "never-divided", lambda p: p.a * p.l_old * p.A_old + p.A_new),
    Form(6, "final-division-missing", lambda p: p.a * p.A_old + p.A_new, most=3),
    Form(6, "divided-twice", lambda p: (p.a * p.A_old + p.A_new) / p.l**2, most=3),
    Form(6, "values-of-another-block", _own_values),
    Form(
        6,
        None,
        lambda p: (p.a * p.transposed(p.P_old) @ p.v_old + p.transposed(p.P_new) @ p.v_new) / p.l,
    ),
    # At the very end, l_i = l_block gives what l_new = l_block does.
    Form(6, "block-state-carried", lambda p: (p.a * p.A_old + p.A_new) / p.l_new, most=3),
    Form(6, "block-state-carried", _of_maximum_before, most=3),
    Form(6, "block-state-carried", _of_sum_before, most=3),
    Form(
        6,
        "block-state-carried",
        lambda p: (p.a * p.A_old + p.A_new) / (p.a * p.tile_before[1] + p.l_new),
        most=3,
    ),
)

FORMS = (*SCORES, *WEIGHTS, *SUMS, *OUTPUTS)
