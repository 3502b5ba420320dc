"""Between which keys a function rescales, told by its output alone, however it is written.

A softmax over whole rows subtracts the row's maximum before exp. A key 800 below it counts exactly
0 then: exp(−800) = 10^−347 is below float64's smallest number. A running softmax (FlashAttention-2,
arXiv 2307.08691, §3.1) subtracts the maximum so far. If the large score comes later, the key's
weight is exp(−600) = 10^−261 at first. Times a value of 10^250 it goes into the output, and
α = exp(−200) makes 4·10^−98 of that: what exact attention gives. (The scores are 0, 600 and 800:
without any subtraction, exp(800) overflows.)

The two keys stand side by side, so it also shows that one tile ends and the next begins between
them. All rows of a block of q have theirs at the same place, since a base that the block shares is
another mistake. Each place is tried in either order, since a loop over keys may run backwards.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
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
BETWEEN_TILES = range(BLOCK, KEYS, BLOCK)
# Two sets of four, a place for each block of rows. The first and the last nobody has both.
ENDS = {1, KEYS - 1}
PLACES: list[tuple[int, ...]] = [(*BETWEEN_TILES, end) for end in ENDS]
ELSEWHERE: list[tuple[int, ...]] = [(2, 4, 5, 1), (7, 8, 10, 11)]
NEAR = 0.05  # as near as numbers with one digit less than the smallest normal one come


@dataclass(frozen=True)
class Far:
    """How far the low score is below the usual one and the high one above it; the low key's value.

    exp(−below − above) is 0 in the dtype, but neither exp(−below) · value nor the result is.
    """

    dtype: torch.dtype
    below: float
    above: float
    value: float

    @property
    def left(self) -> float:
        """What exact attention makes of the value."""
        return self.value * math.exp(-self.below) * math.exp(-self.above)


TRIES = [
    Far(torch.float64, 600.0, 200.0, 1e250),
    # For whoever writes α·l_old / l_new as 1 − l_block / l_new, which is 0 where α is very small,
    # and for scores in float32 with all else in float64: nothing given is out of float32's range.
    Far(torch.float64, 738.0, 8.0, 1e30),
    # The same for whoever computes in float32.
    Far(torch.float32, 70.0, 50.0, 1e30),
    Far(torch.float32, 98.5, 6.0, 1e30),
]


@dataclass(frozen=True)
class Cuts:
    """before: of the keys tried (of 0 to 11), those with which a tile begins. Right: 3, 6, 9.

    left: what the output has of the low key before key 3. range: 'wider' if the function computes
    in numbers for which nothing here is far apart, such as Python's Decimal, 'narrower' if it
    returns float16, which holds none of this. Neither shows any cut.
    """

    before: frozenset[int]
    far: Far
    left: float = math.nan
    range: str = "same"

    @property
    def missing(self) -> list[int]:
        """The keys with which a tile should begin and none does."""
        return sorted(set(BETWEEN_TILES) - self.before)

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
        far = self.far
        apart, right, left = f"{far.below + far.above:.0f}", number(far.left), number(self.left)
        large = f"{far.value:.0e}".replace("+", "")
        why = _WHOLE_ROW if self.left == 0 else Text("", "")
        return Text(
            "Your result was not made by an online softmax. "
            f"One key scores {apart} less than the key next to it, and its value is {large}. "
            f"Tile by tile, {right} of it is left in `out`. In yours, {left} is.{why.en}",
            "你的结果不是由在线 softmax 得到的。"
            f"有一个 key 的分数比相邻的 key 低 {apart}，它的 value 是 {large}。逐块计算时，"
            f"`out` 里还剩 {right}，你的是 {left}。{why.zh}",
        )


_WHOLE_ROW = Text(
    " What you subtract before exp is the maximum of the whole row, not of the keys so far.",
    "exp 之前减去的是整行的最大值，而不是到目前为止的最大值。",
)


def whole_rows(function: Callable[..., Any], **blocks: int) -> Finding | None:
    """What is wrong with a function that returns a tuple, `out` first, and has no running softmax.

    blocks: its block sizes by name, each of them `BLOCK`.
    """

    def output_of(p: Problem) -> Tensor | None:
        value = call(function, p.q, p.k, p.v, skeleton=(), **blocks).value
        out = value[0] if isinstance(value, tuple | list) and value else None
        return out if isinstance(out, Tensor) else None

    found = cuts(output_of)
    return None if found.before else found.finding


def far_apart(far: Far, places: tuple[int, ...], backwards: bool) -> Problem:
    """In each block of rows, the low and the high score on either side of a cut before one key."""
    scores = torch.full((KEYS, KEYS), far.below, dtype=torch.float64)
    for block, place in enumerate(places):
        rows = slice(block * BLOCK, (block + 1) * BLOCK)
        low, high = _sides(place, backwards)
        scores[rows, low], scores[rows, high] = 0.0, far.below + far.above
    q, k = (scores * math.sqrt(KEYS)).to(far.dtype), torch.eye(KEYS, dtype=far.dtype)
    return Problem("far apart", q, k, far.value * k, BLOCK)


def _sides(place: int, backwards: bool) -> tuple[int, int]:
    return (place, place - 1) if backwards else (place - 1, place)


def cuts(output_of: Callable[[Problem], Tensor | None]) -> Cuts:
    """Where a function begins anew, of 12 keys with block_size 3.

    output_of: what it returns for a problem, None if that is no tensor; it must not raise.
    """
    tried = []
    for places, far in itertools.product((PLACES, ELSEWHERE), TRIES):
        tried.append(_cuts(output_of, far, places))
        if tried[-1].before:
            return tried[-1]
    return next((each for each in tried if each.left == 0), tried[0])


def _cuts(
    output_of: Callable[[Problem], Tensor | None], far: Far, places: list[tuple[int, ...]]
) -> Cuts:
    """Whoever works key by key has no past before the first one, and meets it at one end only.

    Cuts at both ends are no cuts: the numbers reach further than the dtype's.
    """
    left: dict[int, list[float]] = {}
    for four, backwards in itertools.product(places, (False, True)):
        output = output_of(far_apart(far, four, backwards))
        if output is None or output.shape != (KEYS, KEYS):
            return Cuts(frozenset(), far)
        if output.dtype == torch.float16:
            return Cuts(frozenset(), far, range="narrower")
        got = output.detach().cpu().double()
        for block, place in enumerate(four):
            low, _ = _sides(place, backwards)
            left.setdefault(place, []).append(float(got[block * BLOCK, low]))
    found = {place for place, x in left.items() if any(abs(n / far.left - 1) < NEAR for n in x)}
    if found >= ENDS:
        return Cuts(frozenset(), far, range="wider")
    return Cuts(frozenset(found), far, left.get(BLOCK, [math.nan])[0])
