"""The picture that remains where no script runs: the last state, with its numbers."""

from __future__ import annotations

from torch import Tensor

from flashcourse.attention import State, state_after
from flashcourse.views import svg
from flashcourse.views.frames import Blocks
from flashcourse.words import Text

_ROWS, _DIMS, _SIDE = 8, 4, 200

_TITLE = Text("The state after the last tile", "最后一块算完之后的状态")
_SIZES = Text("{rows} queries, {keys} keys, {down} × {across} tiles",
              "{rows} 个 query，{keys} 个 key，{down} × {across} 个块")  # fmt: skip
_HOW = Text("Run this cell to step through the tiles.", "运行这个单元，就能逐块播放。")
_ROW = Text("row", "行")


def last_state_img(q: Tensor, k: Tensor, v: Tensor, blocks: Blocks, lang: str) -> str:
    """An <img> with its picture inside; it survives a front end that strips scripts and SVG."""
    state = state_after(q[:_ROWS], k, v, k.shape[0])
    title = _TITLE.in_(lang)
    picture = svg.document(660, 268, _grid(blocks, lang) + _table(state, lang), title)
    words = f"{title}: " + "; ".join(_row_words(n, state) for n in range(state.m.shape[0]))
    return f'<img alt="{words}" style="max-width:100%" src="{svg.data_uri(picture)}">'


def _row_words(n: int, state: State) -> str:
    m, l, O = _cells(n, state)
    return f"q{n}: m {m}, l {l}, O {O}"


def _cells(n: int, state: State) -> tuple[str, str, str]:
    O = [svg.number(x) for x in state.O[n, :_DIMS].tolist()]
    more = ", …" if state.O.shape[1] > _DIMS else ""
    return svg.number(state.m[n].item()), svg.number(state.l[n].item()), f"[{', '.join(O)}{more}]"


def _grid(blocks: Blocks, lang: str) -> str:
    left, top = 16, 36
    parts = [svg.rect(left, top, _SIDE, _SIDE, fill="#F2F4F6", stroke=svg.SOFT)]
    for n in range(1, blocks.down):
        y = top + _SIDE * n * blocks.br / blocks.rows
        parts.append(svg.line(left, y, left + _SIDE, y))
    for n in range(1, blocks.across):
        x = left + _SIDE * n * blocks.bc / blocks.keys
        parts.append(svg.line(x, top, x, top + _SIDE))
    rows, keys = blocks.tile(blocks.down - 1, blocks.across - 1)
    width = _SIDE * (keys.stop - keys.start) / blocks.keys
    height = _SIDE * (rows.stop - rows.start) / blocks.rows
    parts.append(
        svg.rect(left + _SIDE - width, top + _SIDE - height, width,
                 height, fill=svg.PAPER, stroke=svg.INK, stroke_width=2.5)
    )  # fmt: skip
    sizes = _SIZES.in_(lang).format(
        rows=blocks.rows, keys=blocks.keys, down=blocks.down, across=blocks.across
    )
    parts.append(svg.text(left, 24, sizes, fill=svg.SOFT, font_size=12))
    parts.append(svg.text(left, 256, _HOW.in_(lang), fill=svg.SOFT, font_size=12))
    return "".join(parts)


def _table(state: State, lang: str) -> str:
    columns = (252, 300, 366, 432)
    rows = [(_ROW.in_(lang), "m", "l", "O")]
    rows += [(f"q{n}", *_cells(n, state)) for n in range(state.m.shape[0])]
    parts = [svg.line(244, 42, 646, 42)]
    for n, cells in enumerate(rows):
        fill = svg.INK if n else svg.SOFT
        for x, words in zip(columns, cells, strict=True):
            parts.append(svg.text(x, 34 + 26 * n, words, fill=fill))
    return "".join(parts)
