"""Online softmax, one number at a time: m, l and the correction, against the two-pass answer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import ipywidgets as widgets

from flashcourse.views import knobs, svg
from flashcourse.words import Text, check_language, course_language

MOST_VALUES = 12

_LABELS = {
    "values": Text("numbers", "一行数"),
    "seen": Text("numbers seen", "已读个数"),
    "given": Text("the numbers; dashed: m, the largest so far", "这些数；虚线：目前的最大值 m"),
    "sum": Text("l, put together from exp(x − m); every rise of m shrinks what was there by α",
                "l 由各项 exp(x − m) 拼成；m 每次升高，已有的部分都缩小到 α 倍"),
    "two_pass": Text("two passes: m = {m}, l = {l}", "两遍扫描：m = {m}，l = {l}"),
    "same": Text("the same as one pass", "与一遍扫描的结果相同"),
    "later": Text("one pass gets there after the last number", "一遍扫描读完最后一个数也会得到它"),
}  # fmt: skip
_NOT_NUMBERS = Text("“{word}” is not a number. Write numbers with commas between them: 1, 3, 2, 5",
                    "“{word}” 不是数。请写用逗号隔开的数，例如 1, 3, 2, 5")  # fmt: skip
_HOW_MANY = Text("Give 1 to {most} numbers, not {n}.", "请给 1 到 {most} 个数，现在是 {n} 个。")
_FINITE = Text(
    "Each number must be finite and within ±1000.", "每个数都应是有限的，绝对值不超过 1000。"
)


@dataclass(frozen=True)
class Seen:
    """After some numbers: m, l, and α = exp(m before − m), in closed form."""

    m: float
    l: float
    alpha: float


def after(values: Sequence[float], n: int) -> Seen:
    """m = max, l = Σ exp(x − m) of the first n ≥ 1 values (arXiv 1805.02867)."""
    m = max(values[:n])
    before = max(values[: n - 1], default=-math.inf)
    return Seen(m, sum(math.exp(x - m) for x in values[:n]), math.exp(before - m))


def online_softmax_explorer(
    values: Sequence[float] | None = None, *, lang: str | None = None
) -> widgets.VBox:
    """A row of numbers to edit and a slider for how many were seen.

    values: 1 to 12 numbers to begin with. The figure shows the numbers with their running
    maximum, the sum l made of its terms, and the last update with its correction factor.
    """
    lang = check_language(lang) if lang else course_language()
    start = [1.0, 3.0, 2.0, 5.0] if values is None else [float(x) for x in values]
    label = lambda name: _LABELS[name].in_(lang)
    parts: dict[str, widgets.Widget] = {
        "values": knobs.words(label("values"), ", ".join(f"{x:g}" for x in start)),
        "seen": knobs.slider(label("seen"), min(2, len(start)), 1, len(start)),
    }

    def draw(values: str, seen: int) -> str:
        numbers = parse(values, lang)
        parts["seen"].max = len(numbers)
        return _figure(numbers, min(seen, len(numbers)), lang)

    return knobs.Explorer(parts, draw).view


def parse(words: str, lang: str) -> list[float]:
    """The numbers in a line, apart by commas or spaces; ValueError says what is wrong."""
    numbers = []
    for word in words.replace("，", ",").replace("−", "-").replace(",", " ").split():
        try:
            numbers.append(float(word))
        except ValueError:
            raise ValueError(_NOT_NUMBERS.in_(lang).format(word=escape(word))) from None
    if not 1 <= len(numbers) <= MOST_VALUES:
        raise ValueError(_HOW_MANY.in_(lang).format(most=MOST_VALUES, n=len(numbers)))
    if not all(abs(x) <= 1000 for x in numbers):
        raise ValueError(_FINITE.in_(lang))
    return numbers


# ---------------------------------------------------------------- the figure

_W, _LEFT, _TOP, _BARS = 720, 24, 44, 130


def _figure(values: list[float], n: int, lang: str) -> str:
    body = (
        _bars(values, n, lang) + _sum(values, n, lang) + _update(values, n) + _end(values, n, lang)
    )
    return svg.document(_W, 386, body, f"m, l: {n}/{len(values)}")


def _bars(values: list[float], n: int, lang: str) -> str:
    low, high = min(0.0, *values), max(0.0, *values)
    scale = (_BARS - 22) / ((high - low) or 1)
    y = lambda x: _TOP + 14 + (high - x) * scale
    step = min(110.0, (_W - 2 * _LEFT) / len(values))
    parts = [svg.text(_LEFT, 24, _LABELS["given"].in_(lang), fill=svg.SOFT)]
    for at, x in enumerate(values):
        left, new = _LEFT + at * step, at == n - 1
        fill = svg.KV if new else svg.Q if at < n else "#FFF"
        edge = fill if at < n else svg.LINE
        top, height = min(y(x), y(0)), max(2.0, abs(x) * scale)
        dash = "none" if at < n else "3 3"
        parts.append(svg.rect(left + 6, top, step - 12, height, fill=fill, stroke=edge,
                              stroke_dasharray=dash))  # fmt: skip
        above = y(x) - 5 if x >= 0 else y(x) + 14
        parts.append(svg.text(left + step / 2, above, f"{x:g}".replace("-", "−"),
                              text_anchor="middle", font_weight="bold" if new else "normal",
                              fill=svg.INK if at < n else svg.SOFT))  # fmt: skip
    level = y(after(values, n).m)
    parts.append(svg.line(_LEFT, level, _LEFT + n * step, level, stroke=svg.INK,
                          stroke_width=1.5, stroke_dasharray="6 4"))  # fmt: skip
    return "".join(parts)


def _sum(values: list[float], n: int, lang: str) -> str:
    """Two rows of blocks: the sum before this number, and after it."""
    top = _TOP + _BARS + 40
    parts = [svg.text(_LEFT, top - 12, _LABELS["sum"].in_(lang), fill=svg.SOFT)]
    unit = (_W - 2 * _LEFT - 130) / max(after(values, k).l for k in range(1, len(values) + 1))
    for row, count in enumerate((n - 1, n)):
        y, x = top + row * 36, _LEFT + 20.0
        l = after(values, count).l if count else 0.0
        parts.append(svg.text(_LEFT, y + 18, "l", font_weight="bold"))
        for at in range(count):
            width = math.exp(values[at] - after(values, count).m) * unit
            fill = svg.KV if at == n - 1 else svg.Q
            parts.append(svg.rect(x, y, width, 26, fill=fill, stroke="#FFF"))
            if width > 34:
                parts.append(svg.text(x + width / 2, y + 18, f"{width / unit:.3f}",
                                      fill="#FFF", text_anchor="middle", font_size=12))  # fmt: skip
            x += width
        parts.append(svg.text(x + 8, y + 18, f"= {svg.number(l)}"))
    return "".join(parts)


def _update(values: list[float], n: int) -> str:
    now, x = after(values, n), values[n - 1]
    m0, l0 = (-math.inf, 0.0) if n == 1 else (after(values, n - 1).m, after(values, n - 1).l)
    number = svg.number
    lines = (
        f"m = max({number(m0)}, {number(x)}) = {number(now.m)}",
        f"α = exp({number(m0)} − {_signed(now.m)}) = {number(now.alpha)}",
        f"l = {number(now.alpha)} · {number(l0)} + exp({number(x)} − {_signed(now.m)})"
        f" = {number(now.l)}",
    )
    top = _TOP + _BARS + 138
    return "".join(
        svg.text(_LEFT, top + 20 * at, line, font_weight="bold" if at == 1 else "normal")
        for at, line in enumerate(lines)
    )


def _signed(x: float) -> str:
    return f"({svg.number(x)})" if x < 0 else svg.number(x)


def _end(values: list[float], n: int, lang: str) -> str:
    """The two-pass answer: all numbers for m first, then all numbers again for l."""
    m = max(values)
    l = math.fsum(math.exp(x - m) for x in values)
    words = _LABELS["two_pass"].in_(lang).format(m=svg.number(m), l=svg.number(l))
    verdict = ("✓ " if n == len(values) else "") + _LABELS[
        "same" if n == len(values) else "later"
    ].in_(lang)
    return svg.text(_LEFT, 372, f"{words}: {verdict}" if lang == "en" else f"{words}；{verdict}",
                    fill=svg.OUT if n == len(values) else svg.SOFT)  # fmt: skip
