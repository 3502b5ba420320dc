"""The rescaling explorer: a threshold τ and the spread of the scores → rescales skipped, error."""

from __future__ import annotations

from functools import cache
from html import escape
from typing import Any

import ipywidgets as widgets

from flashcourse.rescaling import Rescaling, example, measure
from flashcourse.views.curve import Axes, Curve, chart
from flashcourse.views.svg import KV, OUT, Q
from flashcourse.words import Text, check_language, course_language

SPREADS = (1, 2, 4, 8, 16)
TAUS = tuple(range(0, 13))
_TITLE = Text("Rescales that remain, by threshold", "阈值与剩下的重新缩放")


@cache
def results(spread: int) -> tuple[Rescaling, ...]:
    """What each τ of TAUS does for q · spread: 128 queries, 2048 keys, tiles of 128 keys."""
    S, v = example(spread, rows=128, keys=2048)
    return tuple(measure(S, v, tau) for tau in TAUS)


def rescale_chart(spread: int, tau: int, lang: str | None = None) -> str:
    """An SVG: share of (warp, tile) and (row, tile) pairs that rescale, against τ."""
    lang = check_language(lang) if lang else course_language()
    found = results(spread)
    axes = Axes(
        (0, TAUS[-1]), (0, 100), "τ", "%", (0, 2, 4, 6, 8, 10, 12), (0, 25, 50, 75, 100), height=280
    )
    curves = [
        Curve(
            Text("warps that rescale, %", "要缩放的 warp，%").in_(lang),
            [(r.tau, 100 * r.warps) for r in found],
            Q,
        ),
        Curve(
            Text("rows that rescale, %", "要缩放的行，%").in_(lang),
            [(r.tau, 100 * r.rows) for r in found],
            OUT,
        ),
        Curve(f"τ = {tau}", [(tau, 0), (tau, 100)], KV, dashed=True),
    ]
    return chart(axes, curves, _TITLE.in_(lang))


def describe(spread: int, tau: int, lang: str) -> str:
    """One result in words."""
    r = results(spread)[tau]
    return Text(
        f"q × {spread}, τ = {tau}: {1 - r.warps:.1%} of the warps' rescales are skipped "
        f"(rows: {1 - r.rows:.1%}). Largest P {r.largest_p:.4g}. Relative error with P in "
        f"bfloat16: {r.error:.1e}.",
        f"q × {spread}，τ = {tau}：按 warp 计跳过了 {1 - r.warps:.1%} 的缩放（按行计 "
        f"{1 - r.rows:.1%}）。P 最大 {r.largest_p:.4g}。P 用 bfloat16 时的相对误差 {r.error:.1e}。",
    ).in_(lang)


def explore_rescaling(*, lang: str | None = None) -> widgets.VBox:
    """Sliders for τ and for the spread of the scores, the shares, and the error in bfloat16."""
    return RescalingExplorer(check_language(lang) if lang else course_language()).view


class RescalingExplorer:
    """The sliders (`tau`, `spread`), and the HTML that shows curves and numbers (`picture`)."""

    def __init__(self, lang: str) -> None:
        self.lang = lang
        self.tau = widgets.IntSlider(
            value=0, min=0, max=TAUS[-1], description="τ", continuous_update=False
        )
        self.spread = widgets.SelectionSlider(
            options=SPREADS, value=4, description=Text("q ×", "q ×").in_(lang)
        )
        self.picture = widgets.HTML()
        for knob in (self.tau, self.spread):
            knob.observe(self._draw, names="value")
        self.view = widgets.VBox([self.tau, self.spread, self.picture])
        self._draw(None)

    def _draw(self, _change: Any) -> None:
        spread, tau = self.spread.value, self.tau.value
        words = escape(describe(spread, tau, self.lang))
        self.picture.value = f"<div>{rescale_chart(spread, tau, self.lang)}</div><p>{words}</p>"
