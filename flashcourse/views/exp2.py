"""The polynomial explorer: a degree, and the relative error of 2^f over the fraction f."""

from __future__ import annotations

from functools import cache
from html import escape
from typing import Any

import ipywidgets as widgets
import torch

from flashcourse.exp2 import COEFFICIENTS, Errors, errors, polynomial
from flashcourse.views.curve import Axes, Curve, chart
from flashcourse.views.svg import KV, OUT, Q
from flashcourse.words import Text, check_language, course_language

# Half the distance between neighbours just above a power of 2: 8 and 24 significant bits.
HALF_BFLOAT16, HALF_FLOAT32 = 2.0**-8, 2.0**-24
_TITLE = Text("Relative error of the polynomial for 2^f", "用多项式算 2^f 的相对误差")


@cache
def _errors(degree: int) -> Errors:
    return errors(COEFFICIENTS[degree])


def error_chart(degree: int, lang: str | None = None) -> str:
    """An SVG: the error on [0, 1), beside the rounding of bfloat16 and of float32."""
    lang = check_language(lang) if lang else course_language()
    f = torch.arange(400, dtype=torch.float64) / 400
    off = (polynomial(f.float(), COEFFICIENTS[degree]).double() / torch.exp2(f) - 1).abs()
    own = list(zip(f.tolist(), off.clamp_min(1e-9).tolist(), strict=True))
    flat = lambda y: [(0.0, y), (1.0, y)]
    degree_name = Text(f"degree {degree}", f"{degree} 次").in_(lang)
    rounding = Text("half a step of {}", "{} 的半个最小间隔").in_(lang)
    axes = Axes(
        (0, 1), (1e-9, 1e-1), "f", "|p(f) / 2^f − 1|", (0, 0.25, 0.5, 0.75, 1),
        tuple(10.0**n for n in range(-9, 0)), log_y=True,
    )  # fmt: skip
    curves = [
        Curve(degree_name, own, Q),
        Curve(rounding.format("bfloat16"), flat(HALF_BFLOAT16), KV, dashed=True),
        Curve(rounding.format("float32"), flat(HALF_FLOAT32), OUT, dashed=True),
    ]
    return chart(axes, curves, _TITLE.in_(lang))


def describe(degree: int, lang: str) -> str:
    """The errors of a degree in words."""
    e = _errors(degree)
    return Text(
        f"Degree {degree}: {degree} fused multiply-add{'s' * (degree > 1)}. "
        f"float32: largest {e.largest:.2e}, mean {e.mean:.2e}. "
        f"Rounded to bfloat16: largest {e.bfloat16:.2e}.",
        f"{degree} 次：{degree} 次融合乘加。float32：最大 {e.largest:.2e}，平均 {e.mean:.2e}。"
        f"舍入到 bfloat16 之后：最大 {e.bfloat16:.2e}。",
    ).in_(lang)


def explore_exp2(*, lang: str | None = None) -> widgets.VBox:
    """A slider for the degree, the error curve, and the numbers of Table 2 of FlashAttention-4."""
    return Exp2Explorer(check_language(lang) if lang else course_language()).view


class Exp2Explorer:
    """The slider (`degree`), and the HTML that shows curve and numbers (`picture`)."""

    def __init__(self, lang: str) -> None:
        self.lang = lang
        self.degree = widgets.IntSlider(
            value=min(COEFFICIENTS),
            min=min(COEFFICIENTS),
            max=max(COEFFICIENTS),
            description=Text("degree", "次数").in_(lang),
            continuous_update=False,
        )
        self.picture = widgets.HTML()
        self.degree.observe(self._draw, names="value")
        self.view = widgets.VBox([self.degree, self.picture])
        self._draw(None)

    def _draw(self, _change: Any) -> None:
        degree = self.degree.value
        words = escape(describe(degree, self.lang))
        self.picture.value = f"<div>{error_chart(degree, self.lang)}</div><p>{words}</p>"
