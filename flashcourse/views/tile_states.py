"""The picture of lesson 3 in which a reader checks the state after each tile by hand."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import torch
from torch import Tensor

from flashcourse.attention import State, state_after
from flashcourse.views import svg
from flashcourse.words import LANGUAGES, Text

# The scores in units of ln 2, so that each exp(S − m) is a power of two.
_SCORES = ((1, 0, 2, 0), (2, 1, 0, 0), (0, 0, 3, 1), (1, 1, 1, 0))
_BLOCK = 2

TITLE = Text(
    "The state after each of the 4 tiles of a 4 × 4 example",
    "一个 4 × 4 的例子：4 个块各算完之后的状态",
)
_NOTE = Text(
    "S and m in units of ln 2, so that each exp is a power of 2.",
    "S 和 m 以 ln 2 为单位，因此每个 exp 都是 2 的整数次幂。",
)
_VALUES = "v0 = (3, 0)   v1 = (0, 3)   v2 = (4, 0)   v3 = (0, 4)"
_AFTER = Text("after tile ({i}, {j})", "算完块 ({i}, {j}) 之后")


def worked_example() -> tuple[Tensor, Tensor, Tensor]:
    """q (4, 4), k (4, 4), v (4, 2) in float64, whose scores are whole multiples of ln 2."""
    q = torch.tensor(_SCORES, dtype=torch.float64)
    k = torch.eye(4, dtype=torch.float64) * 2 * math.log(2)
    v = torch.tensor([[3, 0], [0, 3], [4, 0], [0, 4]], dtype=torch.float64)
    return q, k, v


def tile_state_svg(lang: str = "en") -> str:
    """Four panels: the tile just read, and m, α, l, O of its two rows, for `worked_example()`."""
    panels = []
    width, height = 388, 178
    for step, (i, j) in enumerate((i, j) for i in (0, 2) for j in (0, 2)):
        x, y = 8 + (step % 2) * (width + 8), 36 + (step // 2) * (height + 8)
        panels.append(svg.element("g", _panel(i, j, lang), transform=f"translate({x} {y})"))
    note = svg.text(14, 24, _NOTE.in_(lang), fill=svg.SOFT)
    note += svg.text(786, 24, _VALUES, fill=svg.KV, text_anchor="end")
    return svg.document(800, 36 + 2 * (height + 8), note + "".join(panels), TITLE.in_(lang))


def _panel(i: int, j: int, lang: str) -> str:
    frame = svg.rect(0, 0, 388, 178, fill="none", stroke=svg.LINE, rx=6)
    heading = svg.text(14, 24, _AFTER.in_(lang).format(i=i, j=j), font_weight="bold")
    return frame + heading + _grid(i, j) + _state_table(i, j)


def _grid(i: int, j: int) -> str:
    cell, left, top = 27, 36, 58
    parts = [
        svg.rect(left + j * cell, top - 20, 2 * cell, 16, fill=svg.KV_PALE, stroke=svg.KV),
        svg.rect(left - 20, top + i * cell, 16, 2 * cell, fill=svg.Q_PALE, stroke=svg.Q),
    ]
    for n in range(4):
        label = {"text_anchor": "middle", "font_size": 11, "fill": svg.SOFT}
        parts.append(svg.text(left + (n + 0.5) * cell, top - 8, f"k{n}", **label))
        parts.append(svg.text(left - 12, top + (n + 0.66) * cell, f"q{n}", **label))
    for row in range(4):
        for col in range(4):
            parts.append(_cell(row, col, i, j, left + col * cell, top + row * cell, cell))
    parts.append(
        svg.rect(left + j * cell, top + i * cell, 2 * cell, 2 * cell, fill="none",
                 stroke=svg.INK, stroke_width=2.5)
    )  # fmt: skip
    return "".join(parts)


def _cell(row: int, col: int, i: int, j: int, x: float, y: float, size: float) -> str:
    """One score: its number in the current tile, a dot once it was used and dropped."""
    here = i <= row < i + _BLOCK and j <= col < j + _BLOCK
    used = (row // 2, col // 2) < (i // 2, j // 2)
    box = svg.rect(x, y, size, size, fill="#FFF" if here else "#F2F4F6", stroke=svg.LINE)
    middle = {"text_anchor": "middle"}
    if here:
        return box + svg.text(
            x + size / 2, y + size * 0.68, str(_SCORES[row][col]), font_weight="bold", **middle
        )
    return box + (svg.text(x + size / 2, y + size * 0.66, "·", **middle) if used else "")


def _state_table(i: int, j: int) -> str:
    """For each of the tile's two rows: m, α; P and l; O, with the numbers they come from."""
    q, k, v = worked_example()
    before, after = state_after(q, k, v, j), state_after(q, k, v, j + _BLOCK)
    parts = []
    for n, row in enumerate((i, i + 1)):
        top = 48 + 64 * n
        parts.append(svg.rect(158, top - 14, 3, 54, fill=svg.Q))
        parts.append(svg.text(168, top, f"q{row}", font_weight="bold", fill=svg.Q))
        for dy, words in enumerate(_steps(row, j, before, after)):
            parts.append(svg.text(194, top + 18 * dy, words))
    return "".join(parts)


def _steps(row: int, j: int, before: State, after: State) -> tuple[str, str, str]:
    old, new = (_in_ln2(state.m[row]) for state in (before, after))
    scores = _SCORES[row][j : j + _BLOCK]
    P = [2.0 ** (score - new) for score in scores]
    alpha = 2.0 ** (old - new)
    O = ", ".join(f"{x:.4g}" for x in after.O[row].tolist())
    highest = "−∞" if old == -math.inf else f"{old:.0f}"
    return (
        f"m = max({highest}, {max(scores)}) = {new:.0f}, α = {_fraction(alpha)}",
        f"l = {_fraction(alpha)}·{before.l[row].item():.4g}"
        f" + {' + '.join(map(_fraction, P))} = {after.l[row].item():.4g}",
        f"O = ({O})",
    )


def _in_ln2(m: Tensor) -> float:
    return m.item() / math.log(2) if torch.isfinite(m) else -math.inf


def _fraction(x: float) -> str:
    return f"1/{1 / x:.0f}" if 0 < x < 1 else f"{x:.0f}"


def write(folder: Path) -> None:
    """Write tile-states.en.svg and tile-states.zh.svg into `folder`."""
    for lang in LANGUAGES:
        (folder / f"tile-states.{lang}.svg").write_text(tile_state_svg(lang) + "\n", "utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
