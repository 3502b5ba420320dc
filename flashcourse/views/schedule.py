"""A chart of a schedule of two warpgroups, and an explorer in which cycles and scheduler change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from html import escape
from typing import Any

import ipywidgets as widgets

from flashcourse.schedule import (
    SMS,
    UNITS,
    Interval,
    TileCycles,
    best_makespan,
    intervals,
    makespan,
    problems,
    serial,
    tile_cycles,
    utilisation,
)
from flashcourse.views.svg import KV, KV_PALE, OUT, OUT_PALE, Q_PALE, Q, document, line, rect, text
from flashcourse.words import Text, check_language, course_language

_COLOURS = ((Q_PALE, Q), (KV_PALE, KV), (OUT_PALE, OUT))
_LANES = {"tensor": Text("tensor cores", "Tensor Core"), "exp": Text("exp unit", "指数单元")}
_LEFT, _RIGHT, _LANE, _WIDTH = 110, 20, 44, 900

Scheduler = Callable[[int, float, float, float], Sequence[Sequence]]


def gantt(
    schedule: Sequence[Interval],
    lang: str | None = None,
    title: Text | None = None,
    until: float | None = None,
) -> str:
    """An SVG: a lane for each unit, a box for each interval, coloured by warpgroup.

    Where there is room, a box bears its op and the number of the warpgroup's tile, from 0.

    until: the last cycle shown (default: the end of the schedule).
    """
    lang = check_language(lang) if lang else course_language()
    name = (title or _TITLE).in_(lang)
    end = until or max((i.end for i in schedule), default=1.0)
    per_cycle = (_WIDTH - _LEFT - _RIGHT) / end
    lanes = {unit: 40 + n * (_LANE + 10) for n, unit in enumerate(UNITS)}
    parts = [text(_WIDTH / 2, 22, name, text_anchor="middle", font_weight="bold")]
    for unit, y in lanes.items():
        parts.append(rect(_LEFT, y, _WIDTH - _LEFT - _RIGHT, _LANE, fill="#F3F4F6"))
        parts.append(text(_LEFT - 8, y + 27, _LANES[unit].in_(lang), text_anchor="end"))
    tiles: Counter[tuple[int, str]] = Counter()  # how often a warpgroup has done an op
    for i in sorted(schedule, key=lambda i: i.start):
        if i.start < end:
            parts.append(_box(i, tiles[i.warpgroup, i.op], lanes[i.unit], per_cycle, end))
        tiles[i.warpgroup, i.op] += 1
    bottom = 40 + len(UNITS) * (_LANE + 10)
    parts += [_axis(end, per_cycle, bottom, lang), _legend(schedule, bottom + 44, lang)]
    return document(_WIDTH, bottom + 64, "".join(parts), name)


_TITLE = Text("Who uses which unit, and when", "谁在什么时候用哪个单元")


def _box(i: Interval, tile: int, y: float, per_cycle: float, end: float) -> str:
    pale, dark = _COLOURS[i.warpgroup % len(_COLOURS)]
    x, width = _LEFT + i.start * per_cycle, (min(i.end, end) - i.start) * per_cycle
    box = rect(f"{x:.1f}", y, f"{width:.1f}", _LANE, fill=pale, stroke=dark)  # type: ignore[arg-type]
    if width < 26:
        return box
    middle, label = f"{x + width / 2:.1f}", i.op if width < 44 else f"{i.op} {tile}"
    return box + text(middle, y + 27, label, text_anchor="middle", font_size=12)  # type: ignore[arg-type]


def _axis(end: float, per_cycle: float, y: float, lang: str) -> str:
    step = 10 ** max(0, len(str(int(end))) - 1)
    while end / step < 4:
        step /= 2
    parts = []
    for n in range(int(end / step) + 1):
        x = _LEFT + n * step * per_cycle
        parts.append(line(x, y - 4, x, y + 4))
        parts.append(text(x, y + 18, f"{n * step:g}", text_anchor="middle", font_size=11))
    words = Text("cycles", "周期").in_(lang)
    parts.append(text(_LEFT - 8, y + 18, words, text_anchor="end", font_size=11))
    return "".join(parts)


def _legend(schedule: Sequence[Interval], y: float, lang: str) -> str:
    parts = []
    for n in sorted({i.warpgroup for i in schedule}):
        pale, dark = _COLOURS[n % len(_COLOURS)]
        x = _LEFT + n * 150
        parts.append(rect(x, y - 11, 14, 14, fill=pale, stroke=dark))
        parts.append(text(x + 20, y, f"warpgroup {n}", font_size=12))
    return "".join(parts)


# ---------------------------------------------------------------- the explorer

_LABELS = {
    "gpu": Text("GPU", "GPU"),
    "qk": Text("QK cycles", "QK 周期"),
    "exp": Text("exp cycles", "exp 周期"),
    "pv": Text("PV cycles", "PV 周期"),
    "tiles": Text("tiles per warpgroup", "每个 warpgroup 的块数"),
    "who": Text("schedule", "调度"),
    "serial": Text("one after the other", "一个接一个"),
    "yours": Text("yours", "你的"),
    "own": Text("own cycles", "自定周期"),
}
_WIDE = {"description_width": "initial"}
_BOXES = 96  # intervals drawn at most: more are too narrow to see


def explore_schedule(function: Scheduler | None = None, *, lang: str | None = None) -> widgets.VBox:
    """The chart with knobs: a GPU's tile cycles or your own, the number of tiles, whose schedule.

    function: your two_warpgroups(tiles, qk, exp, pv); None shows the serial schedule alone.
    """
    return ScheduleExplorer(function, check_language(lang) if lang else course_language()).view


class ScheduleExplorer:
    """The knobs by name (`knobs`), and the HTML that shows chart and numbers (`picture`)."""

    def __init__(self, function: Scheduler | None, lang: str) -> None:
        self.function, self.lang = function, lang
        self.knobs = self._knobs()
        self.picture = widgets.HTML()
        row = widgets.Layout(display="flex", flex_flow="row wrap")
        self.view = widgets.VBox([widgets.Box(list(self.knobs.values()), layout=row), self.picture])
        self._choose_gpu(None)
        self.knobs["gpu"].observe(self._choose_gpu, names="value")
        for name, knob in self.knobs.items():
            if name != "gpu":
                knob.observe(self._draw, names="value")
        self._draw(None)

    def _knobs(self) -> dict[str, Any]:
        label = lambda name: _LABELS[name].in_(self.lang)
        gpus = [(f"{name}, d = 128", name) for name in SMS] + [(label("own"), "own")]
        who = [(label("serial"), "serial")]
        if self.function is not None:
            who.insert(0, (label("yours"), "yours"))
        knobs: dict[str, Any] = {
            "gpu": widgets.Dropdown(
                options=gpus, value="H100", description=label("gpu"), style=_WIDE
            )
        }
        for name in ("qk", "exp", "pv"):
            knobs[name] = _slider(label(name), 1024, 64, 4096, 64)
        knobs["tiles"] = _slider(label("tiles"), 4, 1, 32, 1)
        knobs["who"] = widgets.Dropdown(options=who, description=label("who"), style=_WIDE)
        return knobs

    def _choose_gpu(self, _change: Any) -> None:
        name = self.knobs["gpu"].value
        if name in SMS:
            for knob, value in zip(("qk", "exp", "pv"), tile_cycles(SMS[name]), strict=True):
                self.knobs[knob].value = int(value)

    def schedule(self) -> tuple[list[Interval], list[Text]]:
        """The chosen schedule, and what is wrong with it."""
        tiles = self.knobs["tiles"].value
        cycles = TileCycles(*(self.knobs[name].value for name in ("qk", "exp", "pv")))
        plain = serial(tiles, cycles)
        if self.knobs["who"].value == "serial" or self.function is None:
            return plain, []
        try:
            made = intervals(self.function(tiles, *cycles))
        except NotImplementedError:
            return plain, [_UNFINISHED]
        except Exception as error:
            words = f"{type(error).__name__}: {error}"
            return plain, [Text(f"Your function raised {words}", f"你的函数抛出了 {words}")]
        return made, problems(made, tiles, cycles)

    def _draw(self, _change: Any) -> None:
        schedule, wrong = self.schedule()
        tiles = self.knobs["tiles"].value
        cycles = TileCycles(*(self.knobs[name].value for name in ("qk", "exp", "pv")))
        lines = "".join(f"<li>{escape(text.in_(self.lang))}</li>" for text in wrong)
        shown = sorted(schedule, key=lambda i: i.start)[:_BOXES]
        self.picture.value = (
            f"<div>{gantt(shown, self.lang)}</div>"
            f"<p>{escape(_numbers(schedule, tiles, cycles, self.lang))}</p><ul>{lines}</ul>"
        )


_UNFINISHED = Text(
    "Your function is not finished; this is the serial schedule.",
    "你的函数还没写完；这里显示的是一个接一个的调度。",
)


def _numbers(schedule: list[Interval], tiles: int, cycles: TileCycles, lang: str) -> str:
    tensor, exp = (f"{utilisation(schedule, unit):.1%}" for unit in UNITS)
    took, least = f"{makespan(schedule):,.0f}", f"{best_makespan(tiles, cycles):,.0f}"
    return Text(
        f"Modelled: {took} cycles (at least {least}). Tensor cores busy {tensor}, exp unit {exp}.",
        f"建模结果：{took} 个周期（下限 {least}）。Tensor Core 忙碌 {tensor}，指数单元 {exp}。",
    ).in_(lang)


def _slider(label: str, value: int, least: int, most: int, step: int) -> widgets.IntSlider:
    return widgets.IntSlider(
        value=value,
        min=least,
        max=most,
        step=step,
        description=label,
        style=_WIDE,
        continuous_update=False,
    )
