"""The tile player: step through attention tile by tile, the exact one or the learner's own."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from torch import Tensor

from flashcourse import costs
from flashcourse.views.frames import MOST_TILES, Blocks, exact_data, shown, yours_data
from flashcourse.views.inputs import make_inputs
from flashcourse.views.player_words import words_in
from flashcourse.views.static import last_state_img
from flashcourse.words import Text, check_language, course_language

_CHIP = costs.HARDWARE["A100-40GB"]
_CHIP_NAME = Text("shared memory of one A100 SM", "A100 一个 SM 的共享内存")
_GIVEN_NAME = Text("the size you gave", "你给定的大小")


@dataclass(frozen=True)
class Player:
    """A player, ready to show itself: `data` is what the page gets, `fallback` an <img>."""

    data: dict[str, Any]
    fallback: str

    def html(self) -> str:
        """The player's output cell: data, a static picture, and the script that replaces it."""
        return f"{self.element()}<script>{script()}</script>"

    def element(self) -> str:
        """The part of `html` that differs from player to player."""
        words = json.dumps(self.data, ensure_ascii=False, separators=(",", ":"))
        return (
            f'<div data-flashcourse-player="{_attribute(words)}" lang="{self.data["lang"]}">'
            f"{self.fallback}</div>"
        )

    def _repr_html_(self) -> str:
        return self.html()

    def __repr__(self) -> str:
        return f"<tile player, {self.data['rows']} × {self.data['keys']} scores>"


def _attribute(words: str) -> str:
    return words.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;")


def watcher() -> str:
    """An output that draws the players which widgets bring later: widgets run no scripts."""
    return f"<span data-flashcourse-watch></span><script>{script()}</script>"


@cache
def script() -> str:
    """player.js with player.css inside, fit for a <script> element."""
    folder = Path(__file__).parent
    style = json.dumps((folder / "player.css").read_text("utf-8"), ensure_ascii=False)
    code = (folder / "player.js").read_text("utf-8").replace('"@STYLE@"', style)
    if "</script" in code:
        raise ValueError("player.js must not contain a closing script tag")
    return code


def step(
    function: Callable | None = None,
    q: Tensor | None = None,
    k: Tensor | None = None,
    v: Tensor | None = None,
    block_size: int | tuple[int, int] = 2,
    *,
    seq_len: int = 8,
    dim: int = 4,
    seed: int = 42,
    inputs: str = "random",
    sram_bytes: int | None = None,
    loop: str = "q",
    divide: str = "step",
    start: int = 0,
    lang: str | None = None,
) -> Player:
    """A player of attention's tiles; show it by leaving it on a cell's last line.

    function: your own function(q, k, v, block_size=…), played next to the exact values; None plays
    these alone. q: (rows, dim), k: (keys, dim), v: (keys, dim_v); all None makes up `inputs`
    ('random', 'falling', 'rising', 'huge') of (seq_len, dim) from `seed`. block_size: rows and
    keys of a tile, or (rows, keys) when there is no function. sram_bytes: the on-chip memory to
    compare with (default: an A100's shared memory, 164 KiB). loop: 'q' (Q outer) or 'kv'.
    divide: by l at each 'step', or at the 'end'. start: the step to show first.
    ValueError when the sizes do not fit together, or make more than 64 × 64 tiles.
    """
    lang = check_language(lang) if lang else course_language()
    if q is None and k is None and v is None:
        q, k, v = make_inputs(seq_len, dim, seed, inputs)
    if q is None or k is None or v is None:
        raise ValueError(_SOME_INPUTS.in_(lang))
    blocks = _blocks(q, k, v, block_size, function, lang)
    corner = shown(blocks, with_run=function is not None)
    data = {
        "lang": lang,
        "words": words_in(lang),
        "rows": blocks.rows,
        "keys": blocks.keys,
        "dim": q.shape[1],
        "dimV": v.shape[1],
        "br": blocks.br,
        "bc": blocks.bc,
        "elementBytes": q.element_size(),
        "sram": sram_bytes or _CHIP.shared_per_sm_bytes,
        "sramName": (_GIVEN_NAME if sram_bytes else _CHIP_NAME).in_(lang),
        "loop": _one_of("loop", loop, ("q", "kv")),
        "divide": _one_of("divide", divide, ("step", "end")),
        "start": start,
        "shown": corner,
        **exact_data(q, k, v, blocks, corner),
        "yours": _yours(function, q, k, v, blocks, corner, lang),
    }
    return Player(data, last_state_img(q, k, v, blocks, lang))


def _yours(
    function: Callable | None,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    blocks: Blocks,
    corner: int,
    lang: str,
) -> dict[str, Any] | None:
    if function is None:
        return None
    from flashcourse.recording import record

    run = record(function, q, k, v, block_size=blocks.br)
    return yours_data(run, function, q, k, v, blocks, corner, lang)


def _one_of(name: str, value: str, values: tuple[str, ...]) -> str:
    if value not in values:
        raise ValueError(f"{name}={value!r}: use one of {', '.join(map(repr, values))}")
    return value


# ---------------------------------------------------------------- sizes that make sense

_SOME_INPUTS = Text("give all of q, k and v, or none of them", "q、k、v 要么都给，要么都不给")
_NOT_2D = Text("{name} has the shape {shape}: it must be (rows, dim), with at least 1 of each",
               "{name} 的形状是 {shape}：应为 (行数, 维数)，且都至少为 1")  # fmt: skip
_UNEQUAL = Text(
    "q {q}, k {k}, v {v} do not fit together: q and k need the same dim, k and v the same rows",
    "q {q}、k {k}、v {v} 不匹配：q 和 k 的维数要相同，k 和 v 的行数要相同",
)
_BAD_BLOCK = Text("block_size={block}: it must be a whole number from 1 up",
                  "block_size={block}：必须是不小于 1 的整数")  # fmt: skip
_PAIR = Text("your function takes one block_size for rows and keys, not {block}",
             "你的函数只有一个 block_size，行和列共用，不能给 {block}")  # fmt: skip
_TOO_MANY = Text(
    "{tiles} tiles are too many to step through (at most {most}): "
    "take a larger block_size or a shorter sequence",
    "{tiles} 个块太多，没法逐块看（最多 {most} 个）：把 block_size 调大，或者把序列缩短",
)


def _blocks(
    q: Tensor, k: Tensor, v: Tensor, block_size: Any, function: Callable | None, lang: str
) -> Blocks:
    for name, tensor in (("q", q), ("k", k), ("v", v)):
        if tensor.dim() != 2 or 0 in tensor.shape:
            raise ValueError(_NOT_2D.in_(lang).format(name=name, shape=tuple(tensor.shape)))
    if q.shape[1] != k.shape[1] or k.shape[0] != v.shape[0]:
        shapes = {name: tuple(t.shape) for name, t in (("q", q), ("k", k), ("v", v))}
        raise ValueError(_UNEQUAL.in_(lang).format(**shapes))
    pair = block_size if isinstance(block_size, tuple) else (block_size, block_size)
    if len(pair) != 2 or not all(type(size) is int and size >= 1 for size in pair):
        raise ValueError(_BAD_BLOCK.in_(lang).format(block=block_size))
    if function is not None and pair[0] != pair[1]:
        raise ValueError(_PAIR.in_(lang).format(block=block_size))
    blocks = Blocks(q.shape[0], k.shape[0], *pair)
    if blocks.down * blocks.across > MOST_TILES:
        tiles = blocks.down * blocks.across
        raise ValueError(_TOO_MANY.in_(lang).format(tiles=tiles, most=MOST_TILES))
    return blocks
