"""Between which keys a function rescales, told by its output alone, however it is written.

A softmax over whole rows subtracts the row's maximum before exp. A key 800 below it counts exactly
0 then: exp(−800) = 10^−347 is below float64's smallest number. A running softmax (FlashAttention-2,
arXiv 2307.08691, §3.1) subtracts the maximum so far. If the large score comes later, the key's
weight is exp(−600) = 10^−261 at first. Times a value of 10^250 it goes into the output, and
α = exp(−200) makes 4·10^−98 of that: what exact attention gives. (The scores are 0, 600 and 800:
without any subtraction, exp(800) overflows.)

The two keys stand side by side, so it also shows that one tile ends and the next begins between
them. Every two neighbours have a row of q of their own, once in either order, since a loop over
keys may run backwards.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from flashcourse.checks.forward_findings import number
from flashcourse.checks.forward_tile import Problem
from flashcourse.checks.marks import Finding
from flashcourse.checks.misconceptions import BY_ID
from flashcourse.checks.probe import call
from flashcourse.words import Text

KEYS, BLOCK = 12, 3
NEAR = 0.05  # as near as numbers with one digit less than the smallest normal one come
ENDS = {1, KEYS - 1}
BETWEEN_TILES = frozenset(range(BLOCK, KEYS, BLOCK))


@dataclass(frozen=True)
class Far:
    """How far the low score is below the usual one and the high one above it; the low key's value.

    exp(−below − above) is 0 in the dtype, but neither exp(−below) · value nor the result is.
    """

    below: float
    above: float
    value: float

    @property
    def left(self) -> float:
        """What exact attention makes of the value."""
        return self.value * math.exp(-self.below) * math.exp(-self.above)


FAR = {torch.float64: Far(600.0, 200.0, 1e250), torch.float32: Far(70.0, 50.0, 1e30)}
# For whoever writes α·l_old / l_new as 1 − l_block / l_new, which is 0 where α is very small.
STEP = {torch.float64: Far(738.0, 8.0, 1e250), torch.float32: Far(98.5, 6.0, 1e30)}


@dataclass(frozen=True)
class Cuts:
    """before: the keys (1 to 11 of 0 to 11) with which something new begins. In tiles: 3, 6, 9.

    dtype: float64 or float32, the one of the tensors. left: what the output has of the low key
    before key 3. range: 'wider' if the function computes in numbers for which nothing here is far
    apart, such as Python's Decimal, 'narrower' if it returns float16, which holds none of this.
    Neither shows any cut.
    """

    before: frozenset[int]
    dtype: torch.dtype
    left: float = math.nan
    range: str = "same"

    @property
    def missing(self) -> list[int]:
        """The keys with which a tile should begin and none does."""
        return sorted(BETWEEN_TILES - self.before)

    @property
    def finding(self) -> Finding:
        """What to say of a right result if there is no cut at all."""
        id = "maximum-of-all-keys"
        known = id if self.range == "same" else None
        return Finding(self._text, misconception=known, hints=BY_ID[id].hints)

    @property
    def _text(self) -> Text:
        if self.range != "same":
            en, zh = ("wider", "宽") if self.range == "wider" else ("narrower", "窄")
            return Text(
                f"Your numbers have a {en} range than those of the inputs. Whether you rescale "
                "from tile to tile can't be seen then. Compute in q's dtype.",
                f"你用的数，范围比输入的数更{zh}，因此看不出你是否逐块重新缩放。"
                "请用 q 的 dtype 计算。",
            )
        far = FAR[self.dtype]
        apart, right, left = f"{far.below + far.above:.0f}", number(far.left), number(self.left)
        large = f"{far.value:.0e}".replace("+", "")
        why = _WHOLE_ROW if self.left == 0 else Text("", "")
        return Text(
            f"One key scores {apart} less than the key next to it, and its value is {large}. "
            f"Tile by tile, {right} of it is left in `out`. In yours it is {left}.{why.en}",
            f"有一个 key 的分数比相邻的 key 低 {apart}，它的 value 是 {large}。逐块计算时，"
            f"`out` 里还剩 {right}，你的是 {left}。{why.zh}",
        )


_WHOLE_ROW = Text(
    " What you subtract before exp is the maximum of the whole row, not of the keys so far.",
    "exp 之前减去的是整行的最大值，而不是到目前为止的最大值。",
)


def whole_rows(function: Callable[..., Any], **blocks: int) -> Finding | None:
    """What is wrong with a function that returns a tuple, `out` first, and has no running softmax.

    blocks: its block sizes by name, each of them `BLOCK`. It computes in float64.
    """

    def output_of(p: Problem) -> Tensor | None:
        value = call(function, p.q, p.k, p.v, skeleton=(), **blocks).value
        out = value[0] if isinstance(value, tuple | list) and value else None
        return out if isinstance(out, Tensor) else None

    found = cuts(output_of, torch.float64)
    return None if found.before else found.finding


def far_apart(dtype: torch.dtype, far: Far, backwards: bool) -> Problem:
    """Row c − 1 of q has its low and its high score on either side of a cut before key c."""
    scores = torch.full((KEYS, KEYS), far.below, dtype=torch.float64)
    for cut in range(1, KEYS):
        lower, higher = _sides(cut, backwards)
        scores[cut - 1, lower], scores[cut - 1, higher] = 0.0, far.below + far.above
    keys = torch.eye(KEYS, dtype=dtype)
    return Problem("far apart", (scores * math.sqrt(KEYS)).to(dtype), keys, far.value * keys, BLOCK)


def _sides(cut: int, backwards: bool) -> tuple[int, int]:
    return (cut, cut - 1) if backwards else (cut - 1, cut)


def cuts(output_of: Callable[[Problem], Tensor | None], dtype: torch.dtype) -> Cuts:
    """Where a function begins anew, of 12 keys with block_size 3.

    output_of: what it returns for a problem, None if that is no tensor; it must not raise.
    dtype: the one in which it computes, float64 or float32.
    """
    first = _cuts(output_of, dtype, FAR[dtype])
    if first.before or first.range != "same":
        return first
    return replace(first, before=_cuts(output_of, dtype, STEP[dtype]).before)


def _cuts(output_of: Callable[[Problem], Tensor | None], dtype: torch.dtype, far: Far) -> Cuts:
    """Whoever works key by key has no past before the first one, and meets it at one end only.

    Cuts at both ends are no cuts: the numbers reach further than the dtype's.
    """
    left: dict[int, list[float]] = {cut: [] for cut in range(1, KEYS)}
    for backwards in (False, True):
        output = output_of(far_apart(dtype, far, backwards))
        if output is not None and output.dtype == torch.float16:
            return Cuts(frozenset(), dtype, range="narrower")
        if output is not None and output.shape == (KEYS, KEYS):
            got = output.detach().cpu().double()
            for cut in left:
                left[cut].append(float(got[cut - 1, _sides(cut, backwards)[0]]))
    found = {cut for cut, each in left.items() if any(abs(x / far.left - 1) < NEAR for x in each)}
    if found >= ENDS:
        return Cuts(frozenset(), dtype, range="wider")
    return Cuts(frozenset(found), dtype, next(iter(left[BLOCK]), math.nan))
