"""Curves on one pair of axes, as SVG: what the explorers of lesson 5 draw with."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from flashcourse.views.svg import LINE, SOFT, document, element, line, text

_LEFT, _RIGHT, _TOP, _BOTTOM = 78, 20, 44, 50


@dataclass(frozen=True)
class Curve:
    """Points (x, y) in one colour, with a name. dashed: a level to compare with."""

    name: str
    points: Sequence[tuple[float, float]]
    colour: str
    dashed: bool = False


@dataclass(frozen=True)
class Axes:
    """Ranges, labels and size. log_y: the range of y is in powers of 10."""

    x: tuple[float, float]
    y: tuple[float, float]
    x_label: str
    y_label: str
    x_ticks: Sequence[float]
    y_ticks: Sequence[float]
    log_y: bool = False
    width: float = 760
    height: float = 300

    def place(self, x: float, y: float) -> tuple[float, float]:
        """Pixels of a point; what is outside the range of y is drawn on its edge."""
        low, high = self.y
        if self.log_y:
            y, low, high = math.log10(max(y, 1e-300)), math.log10(low), math.log10(high)
        share = min(max((y - low) / (high - low), 0.0), 1.0)
        across = (x - self.x[0]) / (self.x[1] - self.x[0])
        left, right = _LEFT, self.width - _RIGHT
        top, bottom = _TOP, self.height - _BOTTOM
        return left + across * (right - left), bottom - share * (bottom - top)


def chart(axes: Axes, curves: Sequence[Curve], title: str) -> str:
    """The curves on their axes, each named at the top."""
    parts = [text(axes.width / 2, 18, title, text_anchor="middle", font_weight="bold")]
    parts += [_x_tick(axes, x) for x in axes.x_ticks] + [_y_tick(axes, y) for y in axes.y_ticks]
    middle = (axes.width + _LEFT - _RIGHT) / 2
    parts.append(text(middle, axes.height - 12, axes.x_label, text_anchor="middle", fill=SOFT))
    place = _LEFT
    for curve in curves:
        path = " ".join("{:.1f},{:.1f}".format(*axes.place(x, y)) for x, y in curve.points)
        dash = {"stroke_dasharray": "6 4"} if curve.dashed else {}
        parts.append(
            element(
                "polyline",
                "",
                points=path,
                fill="none",
                stroke=curve.colour,
                stroke_width=2,
                **dash,
            )
        )
        parts.append(line(place, 34, place + 22, 34, stroke=curve.colour, stroke_width=2, **dash))
        parts.append(text(place + 28, 38, curve.name, font_size=12))
        place += 60 + 7 * sum(2 if ord(c) > 0x2E80 else 1 for c in curve.name)
    return document(axes.width, axes.height, "".join(parts), f"{title}: {axes.y_label}")


def _x_tick(axes: Axes, x: float) -> str:
    px, bottom = axes.place(x, axes.y[0])
    top = axes.place(x, axes.y[1])[1]
    mark = line(px, bottom, px, top, stroke=LINE, stroke_width=0.5)
    return mark + text(px, bottom + 16, f"{x:g}", text_anchor="middle", font_size=11)


def _y_tick(axes: Axes, y: float) -> str:
    left, py = axes.place(axes.x[0], y)
    right = axes.place(axes.x[1], y)[0]
    mark = line(left, py, right, py, stroke=LINE, stroke_width=0.5)
    words = f"1e{round(math.log10(y))}".replace("-", "−") if axes.log_y else f"{y:g}"
    return mark + text(left - 6, py + 4, words, text_anchor="end", font_size=11)
