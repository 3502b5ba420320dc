"""Knobs around the tile player: sizes, inputs, and whose implementation is played.

Only what ipywidgets 7.7 and 8 share. The player's data stand in an HTML widget; the script that
draws them is an output of the cell itself, because no front end runs scripts inside an HTML widget
and Notebook 6 runs none inside an Output widget either.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ipywidgets as widgets
from IPython.display import HTML, display

from flashcourse import costs
from flashcourse.views import knobs
from flashcourse.views.inputs import KINDS
from flashcourse.views.player import step, watcher
from flashcourse.words import Text, check_language, course_language

_LABELS: dict[str, Text] = {
    "seq_len": Text("seq_len", "序列长度 seq_len"),
    "dim": Text("dim", "维数 dim"),
    "rows": Text("block: Q rows", "块大小：Q 的行数"),
    "keys": Text("block: K, V rows", "块大小：K、V 的行数"),
    "seed": Text("seed", "随机种子"),
    "inputs": Text("input", "输入"),
    "sram": Text("on-chip memory", "片上存储"),
    "who": Text("implementation", "实现"),
    "exact": Text("exact", "标准答案"),
    "yours": Text("yours", "你的代码"),
}
_AT_LEAST_1 = Text("{name} = {value} makes no sense: it must be at least 1.",
                   "{name} = {value} 没有意义：至少为 1。")  # fmt: skip
_AT_MOST = Text("{name} = {value} is too large here: at most {most}.",
                "{name} = {value} 太大了：这里最多 {most}。")  # fmt: skip
_MOST = {"seq_len": 2048, "dim": 256}


def explore_tiles(function: Callable | None = None, *, lang: str | None = None) -> widgets.VBox:
    """The tile player with knobs. `function`: your implementation, or None for the exact one only.

    The knobs: seq_len, dim, the block sizes, the seed, the kind of input, the size of the on-chip
    memory and, with a function, whose implementation plays. A size that makes no sense gets a
    message instead of a player.
    """
    display(HTML(watcher()))
    return TileExplorer(function, check_language(lang) if lang else course_language()).view


class TileExplorer:
    """The knobs (`knobs`, by name), the message, and the place of the player."""

    def __init__(self, function: Callable | None, lang: str) -> None:
        self.function, self.lang = function, lang
        self.knobs = _knobs(function is not None, lang)
        self.message = widgets.HTML()
        self.place = widgets.HTML()
        for knob in self.knobs.values():
            knob.observe(self._changed, names="value")
        row = widgets.Layout(display="flex", flex_flow="row wrap")
        turned = widgets.Box(list(self.knobs.values()), layout=row)
        self.view = widgets.VBox([turned, self.message, self.place])
        self._changed(None)

    def values(self) -> dict[str, Any]:
        return {name: knob.value for name, knob in self.knobs.items()}

    def _changed(self, _change: Any) -> None:
        values = self.values()
        yours = values.get("who") == "yours"
        self.knobs["keys"].disabled = yours
        problem = _problem(values, self.lang)
        if problem is None:
            try:
                player = self._player(values, yours)
            except ValueError as error:
                problem = str(error)
        self.message.value = "" if problem is None else knobs.alert(problem)
        self.place.value = "" if problem is not None else player.element()

    def _player(self, values: dict[str, Any], yours: bool) -> Any:
        return step(
            self.function if yours else None,
            block_size=values["rows"] if yours else (values["rows"], values["keys"]),
            seq_len=values["seq_len"],
            dim=values["dim"],
            seed=values["seed"],
            inputs=values["inputs"],
            sram_bytes=values["sram"],
            lang=self.lang,
        )


def _knobs(with_function: bool, lang: str) -> dict[str, widgets.Widget]:
    label = lambda name: _LABELS[name].in_(lang)
    kinds = [(text.in_(lang), kind) for kind, text in KINDS.items()]
    number = lambda name, value: knobs.whole_number(label(name), value)
    found: dict[str, widgets.Widget] = {
        "seq_len": number("seq_len", 8),
        "dim": number("dim", 4),
        "rows": number("rows", 2),
        "keys": number("keys", 2),
        "seed": number("seed", 42),
        "inputs": knobs.choice(label("inputs"), kinds),
        "sram": knobs.choice(label("sram"), _memories()),
    }
    if with_function:
        found["who"] = knobs.choice(label("who"), [(label(who), who) for who in ("yours", "exact")])
    return found


def _memories() -> list[tuple[str, int]]:
    """The shared memory of one SM of real GPUs, and toy sizes, which small tiles can fill."""
    real = [
        (f"{name.split('-')[0]}, {costs.HARDWARE[name].shared_per_sm_bytes // 1024} KiB",
         costs.HARDWARE[name].shared_per_sm_bytes)
        for name in ("A100-40GB", "T4", "H100")
    ]  # fmt: skip
    return real + [(f"{size} B", size) for size in (1024, 512, 256, 128)]


def _problem(values: dict[str, Any], lang: str) -> str | None:
    """What is wrong with the numbers, in the reader's language; None when they make sense."""
    for name in ("seq_len", "dim", "rows", "keys"):
        if values[name] < 1:
            said = _LABELS[name].in_(lang)
            return _AT_LEAST_1.in_(lang).format(name=said, value=values[name])
    for name, most in _MOST.items():
        if values[name] > most:
            said = _LABELS[name].in_(lang)
            return _AT_MOST.in_(lang).format(name=said, value=values[name], most=most)
    return None
