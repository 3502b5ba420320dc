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
Which block of rows tries what, and the values themselves, come from the seed.

Exact numbers of a wider range pass all that. They are told by what no tiling can do: keep a key
both beside a higher one on its left and beside one on its right, or between two.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
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
BETWEEN_TILES = {3, 6, 9}
BESIDE_A_CUT = (2, 3, 5, 6, 8, 9)  # each of them has both neighbours tried
NEAR = 0.05  # as near as numbers with one digit less than the smallest normal one come
NO_WEIGHT = {torch.float64: 745.2, torch.float32: 104.0}  # exp of less than minus this is 0


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
    Far(torch.float64, 560.0, 190.0, 1e300),  # what is left fits into float32
    # The same for whoever computes in float32.
    Far(torch.float32, 70.0, 50.0, 1e30),
    Far(torch.float32, 98.5, 6.0, 1e30),
]


@dataclass(frozen=True)
class Cuts:
    """before: of the keys tried (of 0 to 11), those with which a tile begins. Right: 3, 6, 9.

    left: what the output has of the low key before key 3. reach: 'wider' if the function computes
    in numbers for which nothing here is far apart, such as Python's Decimal, 'narrower' if it
    returns float16, which holds none of this, 'overflowing' if it subtracts too little before exp.
    None of these shows any cut.
    """

    before: frozenset[int]
    far: Far
    left: float = math.nan
    reach: str = "same"

    @property
    def missing(self) -> list[int]:
        """The keys with which a tile should begin and none does."""
        return sorted(BETWEEN_TILES - self.before)

    @property
    def finding(self) -> Finding:
        """What to say of a right result if there is no cut at all."""
        id = "maximum-of-all-keys"
        known = id if self.reach == "same" else None
        return Finding(self._text, misconception=known, hints=BY_ID[id].hints)

    @property
    def _text(self) -> Text:
        if self.reach in _NOTHING_SEEN:
            return _NOTHING_SEEN[self.reach]
        far = self.far
        apart, right, left = f"{far.below + far.above:.0f}", number(far.left), number(self.left)
        large = f"{far.value:.0e}".replace("+", "")
        why = _NOTHING_LEFT if self.left == 0 else Text("", "")
        return Text(
            "No online softmax can be seen in your result. "
            f"One key scores {apart} less than the key next to it, and its value is {large}. "
            f"Tile by tile, {right} of it is left in `out`; in yours, {left}.{why.en}",
            "从你的结果看不出在线 softmax。"
            f"有一个 key 的分数比相邻的 key 低 {apart}，它的 value 是 {large}。逐块计算时，"
            f"`out` 里还剩 {right}，你的是 {left}。{why.zh}",
        )


_NOTHING_SEEN = {
    "wider": Text(
        "Whether you rescale from tile to tile can't be seen: your numbers have a wider range than "
        "those of the inputs, or your tiles hold keys that lie apart. Compute in q's dtype, on "
        "neighbouring keys.",
        "看不出你是否逐块重新缩放：你用的数范围比输入的数更宽，或者你的块由不相邻的 key 组成。"
        "请用 q 的 dtype，对相邻的 key 分块计算。",
    ),
    "narrower": Text(
        "Whether you rescale from tile to tile can't be seen: your numbers have a narrower range "
        "than those of the inputs. Compute in q's dtype.",
        "看不出你是否逐块重新缩放：你用的数范围比输入的数更窄。请用 q 的 dtype 计算。",
    ),
    "overflowing": Text(
        "Where one score is 760 above all others, your result is not finite: what you subtract "
        "before exp is not the maximum of all keys so far.",
        "有一个分数比其他分数高 760 时，你的结果不是有限的数：exp 之前减去的，"
        "不是到目前为止所有 key 的最大值。",
    ),
}
_NOTHING_LEFT = Text(
    " That comes of subtracting the maximum of the whole row before exp, not that of the keys so "
    "far (or of dropping very small weights).",
    "这是因为 exp 之前减去的是整行的最大值，而不是到目前为止的最大值（或者丢掉了很小的权重）。",
)


def whole_rows(function: Callable[..., Any], seed: int, **blocks: int) -> Finding | None:
    """What is wrong with a function that returns a tuple, `out` first, and has no running softmax.

    blocks: its block sizes by name, each of them `BLOCK`.
    """

    def output_of(p: Problem) -> Tensor | None:
        value = call(function, p.q, p.k, p.v, skeleton=(), **blocks).value
        out = value[0] if isinstance(value, tuple | list) and value else None
        return out if isinstance(out, Tensor) else None

    found = cuts(output_of, seed)
    clamped = math.isfinite(found.left) and found.left > 2 * found.far.left  # P is a polynomial
    return None if found.before or clamped else found.finding


@dataclass(frozen=True)
class Place:
    """Where a row has its low score, and its high ones: one next to it, or the two around it.

    top: a key further away with the highest score, if there are two.
    """

    low: int
    high: tuple[int, ...]
    top: int | None = None

    @property
    def cut(self) -> int:
        """The key before which it would have to be cut for the low key to be kept."""
        return max(self.low, self.high[0])

    def scores(self, far: Far) -> Tensor:
        scores = torch.full((KEYS,), far.below, dtype=torch.float64)
        highest = far.below + far.above
        # Two high keys are a little lower than the top, as far as exp(−score) stays 0.
        second = (highest + NO_WEIGHT[far.dtype]) / 2
        scores[self.low] = 0.0
        scores[list(self.high)] = second if self.top is not None else highest
        if self.top is not None:
            scores[self.top] = highest
        return scores


def far_apart(far: Far, places: Sequence[Place], values: Tensor) -> Problem:
    """Each block of rows has a place. values: (12,), of the keys, at most 1 and to be scaled up."""
    scores = torch.stack([place.scores(far) for place in places for _ in range(BLOCK)])
    q, k = (scores * math.sqrt(KEYS)).to(far.dtype), torch.eye(KEYS, dtype=far.dtype)
    return Problem("far apart", q, k, (far.value * values).diag().to(far.dtype), BLOCK)


PAIRS = [Place(low, (low + side,)) for low in BESIDE_A_CUT for side in (-1, 1)]
Compute = Callable[[Problem], Tensor | None]


def _places(chance: random.Random) -> list[Place]:
    """16 of them, four for each of four calls: pairs, and four between two, their top on either
    side."""
    between = []
    for n, low in enumerate(chance.sample(range(3, 9), 4)):
        tops = range(low - 1) if n % 2 else range(low + 2, KEYS)
        between.append(Place(low, (low - 1, low + 1), chance.choice(tops)))
    return chance.sample(PAIRS + between, len(PAIRS + between))


def cuts(output_of: Compute, seed: int) -> Cuts:
    """Where a function begins anew, of 12 keys with block_size 3.

    output_of: what it returns for a problem, None if that is no tensor; it must not raise.
    """
    chance = random.Random(f"cuts {seed}")
    tried: list[Cuts] = []
    for far in TRIES:
        places = _places(chance)
        made = _cuts(output_of, far, places, chance)
        if made.before and made.missing:  # each block of rows may go through its tiles another way
            again = _cuts(output_of, far, _in_the_next_block(places), chance)
            made = replace(made, before=made.before | again.before)
        tried.append(made)
        if tried[-1].before:
            fine = _stays_finite(output_of)
            return tried[-1] if fine else Cuts(frozenset(), far, reach="overflowing")
        if tried[-1].reach == "wider" and far.dtype == torch.float64:
            return tried[-1]
    return next((each for each in tried if each.left == 0), tried[0])


def _stays_finite(output_of: Compute) -> bool:
    """A base that is not the maximum so far, such as the first tile's, lets exp(760) overflow."""
    places = [Place(2, (3,)), Place(6, (5,)), Place(9, (8,)), Place(3, (2,))]
    ones = torch.ones(KEYS, dtype=torch.float64)
    output = output_of(far_apart(Far(torch.float64, 40.0, 760.0, 1.0), places, ones))
    return output is not None and bool(output.isfinite().all())


def _in_the_next_block(places: list[Place]) -> list[Place]:
    """The same calls, with each place in the block of rows after the one that it had."""
    blocks = KEYS // BLOCK
    return [places[n - n % blocks + (n - 1) % blocks] for n in range(len(places))]


def _cuts(output_of: Compute, far: Far, places: list[Place], chance: random.Random) -> Cuts:
    rows, reach = _rows(output_of, far, places, chance)
    if not rows:
        return Cuts(frozenset(), far, reach=reach)
    kept = set()
    for place, row in rows.items():
        number, top = float(row[place.low]), float(row[place.high[0]])
        if place.top is not None:
            near = 0.2 < number / far.left < 2  # up to three keys are about as high as the top
        elif math.isfinite(top) and abs(top / far.value - 1) > NEAR:
            return Cuts(frozenset(), far)  # the value of the highest key is all that counts there
        else:
            near = abs(number / far.left - 1) < NEAR
        kept |= {place} if near else set()
    if _reaches_further(kept):
        return Cuts(frozenset(), far, reach="wider")
    before = frozenset(place.cut for place in kept)
    return Cuts(before, far, float(rows[Place(BLOCK - 1, (BLOCK,))][BLOCK - 1]))


def _rows(
    output_of: Compute,
    far: Far,
    places: list[Place],
    chance: random.Random,
    factor: float = 1.0,
) -> tuple[dict[Place, Tensor], str]:
    """What comes out for each place, as if all values were `far.value`, and its range.

    Nothing where no tensor of the right shape comes out. factor: what q is multiplied by.
    """
    found: dict[Place, Tensor] = {}
    for start in range(0, len(places), KEYS // BLOCK):
        four = places[start : start + KEYS // BLOCK]
        values = torch.tensor([chance.uniform(0.5, 1) for _ in range(KEYS)], dtype=torch.float64)
        problem = far_apart(far, four, values)
        output = output_of(replace(problem, q=problem.q * factor))
        if output is None or output.shape != (KEYS, KEYS):
            return {}, "same"
        if output.dtype == torch.float16:
            return {}, "narrower"
        got = output.detach().cpu().double() / values
        found |= {place: got[n * BLOCK] for n, place in enumerate(four)}
    return found, "same"


def _reaches_further(kept: set[Place]) -> bool:
    sides = [place.low for place in kept if place.top is None]
    return any(place.top is not None for place in kept) or len(sides) > len(set(sides))


def remains(output_of: Compute, seed: int) -> bool:
    """Whether something is left of a low key between tiles, though not what is right.

    For a function whose results are wrong. Of a softmax over whole rows nothing is left, whatever
    else is wrong with it, or something everywhere, where its exponents are wrong. Scores that are
    not scaled, or twice, are far apart only if q makes up for it.
    """
    chance = random.Random(f"remains {seed}")
    for factor in (1.0, math.sqrt(KEYS), 1 / math.sqrt(KEYS)):
        rows, _ = _rows(output_of, TRIES[0], _places(chance), chance, factor)
        numbers = {place: float(row[place.low]) for place, row in rows.items()}
        kept = {place for place, x in numbers.items() if x != 0 and math.isfinite(x)}
        if BETWEEN_TILES & {place.cut for place in kept} and not _reaches_further(kept):
            return True
    return False
