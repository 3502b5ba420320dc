"""What the page gets from Python: the scores and values once, and what differs in a learner's run.

The page computes every step from `scores` and `values` in closed form (`player.js`). Of a
learner's record it gets only the values that differ from `attention.state_after`, so that a right
function costs next to nothing and a wrong one shows where it goes wrong.
"""

from __future__ import annotations

import ast
import base64
import inspect
import math
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from flashcourse.attention import scores, state_after
from flashcourse.words import Text

MOST_SCORES = 96 * 96  # that are sent; beyond, a summary of each tile
MOST_TILES = 64 * 64


@dataclass(frozen=True)
class Blocks:
    """How q (rows) and k, v (keys) are cut: `br` rows and `bc` keys a block."""

    rows: int
    keys: int
    br: int
    bc: int

    @property
    def down(self) -> int:
        return math.ceil(self.rows / self.br)

    @property
    def across(self) -> int:
        return math.ceil(self.keys / self.bc)

    def tile(self, bi: int, bj: int) -> tuple[slice, slice]:
        """The rows and the keys of tile (bi, bj)."""
        r, c = bi * self.br, bj * self.bc
        return slice(r, min(r + self.br, self.rows)), slice(c, min(c + self.bc, self.keys))


def shown(blocks: Blocks, with_run: bool) -> int:
    """Of each tile, how many rows, keys and dimensions are written out.

    Fewer when a learner's run of many tiles comes along, so that 64 tiles stay under 60 kB.
    """
    return 4 if with_run and blocks.down * blocks.across > 32 else 8


def encode(numbers: Tensor, dtype: torch.dtype = torch.float32) -> str:
    """The numbers, row by row, as base64 of little-endian values."""
    return base64.b64encode(numbers.detach().cpu().to(dtype).numpy().tobytes()).decode()


def fits(blocks: Blocks) -> bool:
    """Whether the page gets the single numbers."""
    return blocks.rows * blocks.keys <= MOST_SCORES


def exact_data(q: Tensor, k: Tensor, v: Tensor, blocks: Blocks, corner: int) -> dict[str, Any]:
    """All scores and the first `corner` dimensions of v; for large runs a summary of each tile."""
    S = scores(q.double(), k.double())
    if fits(blocks):
        return {"scores": encode(S), "values": encode(v[:, :corner].contiguous()), "summary": None}
    return {"scores": None, "values": None, "summary": _summary(S, blocks)}


def _summary(S: Tensor, blocks: Blocks) -> dict[str, str]:
    """Per tile: its largest score, the share of rows whose maximum rises, the smallest α."""
    tops, rises, alphas = [], [], []
    for bi in range(blocks.down):
        rows, _ = blocks.tile(bi, 0)
        for bj in range(blocks.across):
            cols = blocks.tile(bi, bj)[1]
            after = S[rows, : cols.stop].amax(dim=1)
            before = S[rows, : cols.start].amax(dim=1) if cols.start else after - math.inf
            tops.append(S[rows, cols].max())
            rises.append((after > before).double().mean() * 255)
            alphas.append(torch.exp(before - after).min() * 255)
    return {
        "top": encode(torch.stack(tops)),
        "rise": encode(torch.stack(rises).round(), torch.uint8),
        "alpha": encode(torch.stack(alphas).round(), torch.uint8),
    }


# ---------------------------------------------------------------- the learner's run

_TWINS = (("m_i", "m_new"), ("l_i", "l_new"))
_STATE = ("m_i", "l_i", "out_i")
_NAMES = ("S_ij", "m_block", "m_new", "P_ij", "l_block", "l_new", "out_i", "m_i", "l_i",
          "m_i before", "l_i before", "out_i before")  # fmt: skip


@dataclass(frozen=True)
class Difference:
    """The first value of a run that is not what it should be."""

    step: int
    i: int
    j: int
    name: str
    yours: float | None
    right: float | None


def yours_data(
    record: Any,
    function: Callable,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    blocks: Blocks,
    corner: int,
    lang: str,
) -> dict[str, Any]:
    """The learner's run for the page: tile order, what differs at each, the code, a sentence."""
    on_grid = [tile for tile in record.tiles if not tile.i % blocks.br and not tile.j % blocks.bc]
    places = [(tile.i // blocks.br, tile.j // blocks.bc) for tile in on_grid]
    own = [_own_values(tile, _unfinished(record)) for tile in on_grid]
    seen = {name for values in own for name in values}
    divide, differing = _differing(on_grid, own, q, k, v, blocks)
    first = _first_difference(on_grid, differing)
    good = _output_is_right(record, q, k, v)
    loop = _loop(places, blocks)
    return {
        "tiles": len(places),
        "loop": loop,
        "order": places if loop == "other" else [],
        "divide": divide,
        "wrong": [t for t, values in enumerate(differing) if values],
        "diffs": _sent(differing, corner) if fits(blocks) else {},
        "unseen": [name for name in _NAMES if name not in seen],
        "first": first.step if first else None,
        "tone": "right" if good else "open" if _open(record, first) else "wrong",
        "message": _message(record, first, good, len(on_grid)).in_(lang),
        "code": _code(on_grid, function),
    }


def _loop(places: list[tuple[int, int]], blocks: Blocks) -> str:
    """'q' or 'kv': which of the two orders the run follows as far as it goes; else 'other'."""
    grid = [(bi, bj) for bi in range(blocks.down) for bj in range(blocks.across)]
    for name, order in (("q", grid), ("kv", sorted(grid, key=lambda place: place[::-1]))):
        if places == order[: len(places)]:
            return name
    return "other"


def _differing(
    tiles: list[Any],
    own: list[dict[str, Any]],
    q: Tensor,
    k: Tensor,
    v: Tensor,
    blocks: Blocks,
) -> tuple[str, list[dict[str, tuple[Tensor | None, Tensor]]]]:
    """How the run divides, and for each tile the values that differ, with the right ones.

    A run may keep O divided by l at each tile, or Õ that is divided once at the end: of the two,
    the one that it agrees with for longer is taken.
    """
    found = {
        divide: [
            _tile_differs(tile, values, q, k, v, blocks, divide)
            for tile, values in zip(tiles, own, strict=True)
        ]
        for divide in ("step", "end")
    }
    agrees = {
        divide: next((t for t, values in enumerate(each) if _wrong_out(values)), len(each))
        for divide, each in found.items()
    }
    divide = "end" if agrees["end"] > agrees["step"] else "step"
    return divide, found[divide]


def _wrong_out(values: dict[str, Any]) -> bool:
    return "out_i" in values or "out_i before" in values


def _unfinished(record: Any) -> bool:
    return record.error is not None and record.error.kind == "unfinished"


def _own_values(tile: Any, unfinished: bool) -> dict[str, Any]:
    """The learner's values of a tile by name, those that can be judged.

    While lines are still missing, what a tile leaves is what it found, so that only a row's first
    tile, and what needs no earlier one, says anything. A function that has no m_new or l_new
    may update m_i and l_i in place: then these stand for them.
    """
    if unfinished:
        alone = _NAMES if tile.j == 0 else ("S_ij", "m_block")
        return {name: tile.values[name] for name in alone if name in tile.values}
    own = {f"{name} before": value for name, value in tile.before.items() if name in _STATE}
    own |= {twin: tile.after[name] for name, twin in _TWINS if name in tile.after}
    own |= {name: value for name, value in tile.values.items() if name in _NAMES}
    return own | {name: tile.after[name] for name in _STATE if name in tile.after}


def _tile_differs(
    tile: Any,
    own: dict[str, Any],
    q: Tensor,
    k: Tensor,
    v: Tensor,
    blocks: Blocks,
    divide: str,
) -> dict[str, tuple[Tensor | None, Tensor]]:
    right = _right_values(q, k, v, blocks, tile, divide)
    tolerance = 1e-4 if q.dtype in (torch.float32, torch.float64) else 3e-2
    return {
        name: (own[name], expected)
        for name, expected in right.items()
        if name in own and not _same(own[name], expected, tolerance)
    }


def _right_values(
    q: Tensor, k: Tensor, v: Tensor, blocks: Blocks, tile: Any, divide: str
) -> dict[str, Tensor]:
    """Every named value of a tile as it should be, in closed form, in the order of computation."""
    rows, cols = blocks.tile(tile.i // blocks.br, tile.j // blocks.bc)
    before, after = (state_after(q[rows], k, v, n) for n in (cols.start, cols.stop))
    S = scores(q[rows].double(), k[cols].double())
    P = torch.exp(S - after.m)
    out = {when: s.O * s.l if divide == "end" else s.O for when, s in (("0", before), ("1", after))}
    return {
        "m_i before": before.m,
        "l_i before": before.l,
        "out_i before": out["0"],
        "S_ij": S,
        "m_block": S.max(dim=1, keepdim=True).values,
        "m_new": after.m,
        "P_ij": P,
        "l_block": P.sum(dim=1, keepdim=True),
        "l_new": after.l,
        "out_i": out["1"],
        "m_i": after.m,
        "l_i": after.l,
    }


def _same(own: Any, right: Tensor, tolerance: float) -> bool:
    if not isinstance(own, Tensor) or own.numel() != right.numel():
        return False
    own = own.detach().cpu().double().reshape(right.shape)
    return torch.allclose(own, right.cpu(), rtol=tolerance, atol=tolerance)


def _sent(differing: list[dict[str, tuple[Any, Tensor]]], corner: int) -> dict[int, dict]:
    """For each step the differing values' corners, encoded.

    What a step leaves it often computed under another name ('=m_new'), and what it finds the
    step before left ('<'): so it is sent once.
    """
    sent: dict[int, dict[str, str]] = {}
    for step, values in enumerate(differing):
        coded = {name: _corner(own, right, corner) for name, (own, right) in values.items()}
        previous = {name: _corner(*pair, corner) for name, pair in differing[step - 1].items()}
        short = dict(coded)
        for name, twin in _TWINS:
            if name in coded and coded[name] == coded.get(twin):
                short[name] = f"={twin}"
        for name in _STATE if step else ():
            before = f"{name} before"
            if before in coded and coded[before] == previous.get(name):
                short[before] = "<"
        if short:
            sent[step] = short
    return sent


def _corner(own: Any, right: Tensor, corner: int) -> str:
    """The corner of a value that the page shows; NaN where the shape is wrong."""
    if isinstance(own, Tensor) and own.numel() == right.numel():
        shape = own.detach().cpu().double().reshape(right.shape)
    else:
        shape = torch.full_like(right, math.nan)
    return encode(shape[:corner, :corner].contiguous())


def _first_difference(
    tiles: list[Any], differing: list[dict[str, tuple[Tensor | None, Tensor]]]
) -> Difference | None:
    for step, (tile, values) in enumerate(zip(tiles, differing, strict=True)):
        for name, (own, right) in values.items():
            pair = _worst_pair(own, right)
            return Difference(step, tile.i, tile.j, name, *pair)
    return None


def _worst_pair(own: Tensor | None, right: Tensor) -> tuple[float | None, float | None]:
    """The first place where the two differ visibly: (yours, right); None when shapes differ."""
    if not isinstance(own, Tensor) or own.numel() != right.numel():
        return None, None
    flat, expected = own.detach().cpu().double().flatten(), right.cpu().flatten()
    apart = ~torch.isclose(flat, expected, rtol=1e-4, atol=1e-4)
    at = int(apart.nonzero()[0]) if apart.any() else 0
    return flat[at].item(), expected[at].item()


def _output_is_right(record: Any, q: Tensor, k: Tensor, v: Tensor) -> bool:
    out = record.output
    if record.error is not None or not isinstance(out, Tensor):
        return False
    tolerance = 1e-4 if q.dtype in (torch.float32, torch.float64) else 3e-2
    return _same(out, state_after(q, k, v, k.shape[0]).O, tolerance)


def _open(record: Any, first: Difference | None) -> bool:
    """Unfinished, and nothing wrong so far."""
    return first is None and (_unfinished(record) or not record.tiles and not record.error)


def _message(record: Any, first: Difference | None, good: bool, tiles: int) -> Text:
    """One sentence about the run."""
    if good and not tiles:
        return Text(
            "Your output is right, but no tile was seen: there are no loops over i and j to show.",
            "输出正确，但没有看到任何块：代码里没有对 i 和 j 的循环可以显示。",
        )
    if good and first:
        where = f"{first.name} ({first.i}, {first.j})"
        return Text(
            f"Your output is right. On the way you keep something else than shown here: {where}.",
            f"输出正确。只是中间量与这里的写法不同：{where}。",
        )
    if good:
        return Text(
            f"Right at each of the {tiles} tiles: every value equals the exact one.",
            f"{tiles} 个块全部正确：每个值都与标准答案一致。",
        )
    return _trouble(record, first, tiles)


def _trouble(record: Any, first: Difference | None, tiles: int) -> Text:
    if first:
        return _difference_text(first)
    if record.error is not None:
        return _error_text(record.error, tiles)
    if not tiles:
        return Text("No tile was seen: nothing is computed in the loops over i and j yet.",
                    "没有看到任何块：对 i 和 j 的循环里还没有计算。")  # fmt: skip
    return Text(
        "Each tile is right, but the output is not: look at what is written back and returned.",
        "每个块都对，但输出不对：检查写回和返回的是什么。",
    )


def _difference_text(first: Difference) -> Text:
    from flashcourse.views.svg import number

    at, name = f"({first.i}, {first.j})", first.name.removesuffix(" before")
    when = first.name.endswith("before")
    if first.yours is None or first.right is None:
        return Text(f"First difference at tile {at}: {name} has another shape than it should.",
                    f"第一处不同在块 {at}：{name} 的形状不对。")  # fmt: skip
    yours, right = number(first.yours), number(first.right)
    return Text(
        f"First difference at tile {at}{', before it starts' if when else ''}: "
        f"{name} is {yours}, it should be {right}.",
        f"第一处不同在块 {at}{'开始之前' if when else ''}：{name} 是 {yours}，应为 {right}。",
    )


def _error_text(error: Any, tiles: int) -> Text:
    words = " ".join(error.message.split())
    said = f"{error.type_name}: {words}"[:160].rstrip(": ")
    if error.kind == "unfinished":
        return Text(f"Not finished yet. It runs as far as shown, {tiles} tiles ({said}).",
                    f"还没写完。目前只能运行到这里，共 {tiles} 个块（{said}）。")  # fmt: skip
    if error.kind == "too_slow":
        return Text(f"Stopped: it ran too long. {tiles} tiles were seen.",
                    f"运行太久，已停止。看到了 {tiles} 个块。")  # fmt: skip
    return Text(f"It stopped with an error after {tiles} tiles: {said}",
                f"运行 {tiles} 个块后出错停止：{said}")  # fmt: skip


def _code(tiles: list[Any], function: Callable) -> dict[str, list]:
    """For each name the line number and the text of the statement that assigned it."""
    statements = _statements(function)
    lines: dict[str, int] = {}
    for tile in tiles:
        for name, line in tile.lines.items():
            lines.setdefault(name, line)
    return {name: [line, statements[line]] for name, line in lines.items() if line in statements}


def _statements(function: Callable) -> dict[int, str]:
    """The function's simple statements by each of their lines, written on one line."""
    try:
        lines, start = inspect.getsourcelines(function)
        tree = ast.parse(textwrap.dedent("".join(lines)))
    except (OSError, TypeError, SyntaxError):
        return {}
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign):
            rows = range(node.lineno, (node.end_lineno or node.lineno) + 1)
            text = " ".join(line.strip() for line in lines[rows.start - 1 : rows.stop - 1])
            found.update({row + max(start, 1) - 1: text for row in rows})
    return found
