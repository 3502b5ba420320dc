"""HBM traffic of standard attention, FlashAttention-1 and -2: by formula and by counting."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from math import ceil

import ipywidgets as widgets

from flashcourse import costs
from flashcourse.views import knobs, svg
from flashcourse.words import Text, check_language, course_language

_LABELS = {
    "N": Text("sequence length N", "序列长度 N"),
    "d": Text("head dim d", "每头维数 d"),
    "sram": Text("SRAM (fp16)", "SRAM (fp16)"),
    "block": Text("block", "块大小"),
    "formula": Text("⌈M/4d⌉, as large as fits", "⌈M/4d⌉，放得下的最大值"),
    "standard": Text("standard", "标准做法"),
    "head": Text("M = {M} elements of SRAM, block {B}: elements read and written, one head",
                 "SRAM 可放 M = {M} 个元素，块大小 {B}：一个头读写的元素个数"),
    "counted": Text("formula {formula}, counted {counted}", "公式 {formula}，逐块数 {counted}"),
    "fewer": Text("{ratio} × fewer", "少到 1/{ratio}"),
    "more": Text("{ratio} × more", "多到 {ratio} 倍"),
    "equal": Text("1.00 ×: nothing gained", "1.00 倍：没有变少"),
    "axis": Text("SRAM in KiB (fp16), the block as large as fits", "SRAM (KiB，fp16)，块尽量大"),
    "share": Text("traffic, standard = 1", "读写量，标准做法 = 1"),
}  # fmt: skip
_TOO_LARGE = Text(
    "A block of {B} needs 4 · {B} · {d} = {need} elements for its tiles of Q, K, V and O, "
    "but the SRAM holds {M}: take a smaller block or more SRAM.",
    "块大小 {B} 时，Q、K、V、O 四块需要 4 · {B} · {d} = {need} 个元素，SRAM 只放得下 {M} 个："
    "请减小块大小，或加大 SRAM。",
)
_KIB = (8, 16, 32, 48, 64, 96, 128, 164, 192, 228, 256)
_NAMES = {"standard": "", "FA1": "FlashAttention-1", "FA2": "FlashAttention-2"}
_COLOURS = {"standard": svg.SOFT, "FA1": svg.KV, "FA2": svg.Q}


@dataclass(frozen=True)
class Moved:
    """HBM elements of one algorithm, by its formula and added up tile by tile."""

    formula: int
    counted: int


def moved(N: int, d: int, M: int, block: int | None) -> dict[str, Moved]:
    """Each algorithm's traffic for one head with blocks of `block`, or of ⌈M/4d⌉ for None."""
    Br, Bc = costs.flash1_block_sizes(M, d)
    if block is not None:
        Br = Bc = block
    return {
        "standard": Moved(costs.standard_traffic(N, d), costs.count_standard(N, d).total),
        "FA1": Moved(costs.flash1_traffic(N, d, Bc), costs.count_flash1(N, d, Br, Bc).total),
        "FA2": Moved(costs.flash2_traffic(N, d, Bc), costs.count_flash2(N, d, Bc, Bc).total),
    }


def traffic_explorer(*, lang: str | None = None) -> widgets.VBox:
    """N, d, SRAM and block size → HBM elements of standard attention, FlashAttention-1 and -2.

    By the papers' formulas and by adding up each tile's loads and stores (`flashcourse.costs`).
    SRAM is given in KiB and filled with fp16 elements. FlashAttention-2 gets square blocks of
    FlashAttention-1's Bc. Somewhere among the settings FlashAttention-1 gains nothing at all.
    """
    lang = check_language(lang) if lang else course_language()
    label = lambda name: _LABELS[name].in_(lang)
    blocks = [(label("formula"), None), *((str(b), b) for b in (16, 32, 64, 96, 128, 192, 256))]
    parts: dict[str, widgets.Widget] = {
        "N": knobs.choice(label("N"), [2**p for p in range(8, 15)], 1024),
        "d": knobs.choice(label("d"), [32, 64, 96, 128, 256], 64),
        "sram": knobs.choice(label("sram"), [(f"{k} KiB", k) for k in _KIB], 192),
        "block": knobs.choice(label("block"), blocks),
    }
    draw = lambda N, d, sram, block: figure(N, d, sram * 512, block, lang)
    return knobs.Explorer(parts, draw).view


def figure(N: int, d: int, M: int, block: int | None, lang: str) -> str:
    """The picture for one setting; ValueError when the block does not fit."""
    if block is not None and 4 * block * d > M:
        raise ValueError(_TOO_LARGE.in_(lang).format(B=block, d=d, need=4 * block * d, M=M))
    now = moved(N, d, M, block)
    B = block or ceil(M / (4 * d))
    head = svg.text(20, 28, _LABELS["head"].in_(lang).format(M=f"{M:,}", B=B), font_weight="bold")
    rows = [_row(name, now, 46 + 46 * at, lang) for at, name in enumerate(now)]
    return svg.document(760, 430, head + "".join(rows) + _curves(N, d, M, now, lang), "HBM")


def _row(name: str, now: dict[str, Moved], y: float, lang: str) -> str:
    standard, mine = now["standard"].formula, now[name]
    width = 330 * mine.formula / max(each.formula for each in now.values())
    counted = (
        _LABELS["counted"]
        .in_(lang)
        .format(formula=f"{mine.formula:,}", counted=f"{mine.counted:,}")
    )
    return "".join((
        svg.text(20, y + 15, _NAMES[name] or _LABELS["standard"].in_(lang), font_size=13),
        svg.rect(150, y, max(1.5, width), 20, fill=_COLOURS[name], rx=3),
        svg.text(160 + width, y + 15, "" if name == "standard" else
                 _ratio(standard / mine.formula, lang), font_weight="bold"),
        svg.text(150, y + 35, counted, fill=svg.SOFT, font_size=12),
    ))  # fmt: skip


def _ratio(ratio: float, lang: str) -> str:
    if f"{ratio:.2f}" == "1.00":
        return _LABELS["equal"].in_(lang)
    if ratio > 1:
        return _LABELS["fewer"].in_(lang).format(ratio=f"{ratio:.2f}")
    return _LABELS["more"].in_(lang).format(ratio=f"{1 / ratio:.2f}")


# ---------------------------------------------------------------- traffic against SRAM


def _curves(N: int, d: int, M: int, now: dict[str, Moved], lang: str) -> str:
    """Share of the standard's traffic against SRAM, both axes logarithmic; the setting as dots."""
    kib = [k for k in _KIB if k * 512 >= 4 * d]
    standard = costs.standard_traffic(N, d)
    best = [costs.flash1_block_sizes(k * 512, d)[1] for k in kib]
    curves = {
        "FA1": [costs.flash1_traffic(N, d, B) / standard for B in best],
        "FA2": [costs.flash2_traffic(N, d, B) / standard for B in best],
    }
    dots = {name: now[name].formula / standard for name in curves}
    values = [1.0, *dots.values(), *(y for curve in curves.values() for y in curve)]
    low, high = math.log(min(values) * 0.9), math.log(max(values) * 1.1)
    x = lambda k: 70 + 660 * math.log(k / _KIB[0]) / math.log(_KIB[-1] / _KIB[0])
    y = lambda share: 212 + 150 * (high - math.log(share)) / (high - low)
    parts = [_frame(x, y, lang)]
    for name, shares in curves.items():
        points = " ".join(f"{x(k):.1f},{y(s):.1f}" for k, s in zip(kib, shares, strict=True))
        parts.append(svg.element("polyline", "", points=points, fill="none", stroke_width=2,
                                 stroke=_COLOURS[name],
                                 stroke_dasharray="none" if name == "FA2" else "7 3"))  # fmt: skip
        parts.append(svg.element("circle", "", cx=x(M / 512), cy=y(dots[name]),
                                 r=5, fill=_COLOURS[name]))  # fmt: skip
        parts.append(svg.text(x(M / 512) + 8, y(dots[name]) + (-7 if name == 'FA1' else 17),
                              _NAMES[name].replace("lashAttention-", "A"),
                              fill=_COLOURS[name], font_weight="bold", font_size=12))  # fmt: skip
    return "".join(parts)


def _frame(x: Callable[[float], float], y: Callable[[float], float], lang: str) -> str:
    parts = [
        svg.rect(70, 212, 660, 150, fill="none", stroke=svg.LINE),
        svg.line(70, y(1), 730, y(1), stroke=svg.INK, stroke_width=1.2),
        svg.text(64, y(1) + 4, "1", text_anchor="end"),
        svg.text(70, 204, _LABELS["share"].in_(lang), fill=svg.SOFT, font_size=12),
        svg.text(400, 410, _LABELS["axis"].in_(lang), fill=svg.SOFT, font_size=12,
                 text_anchor="middle"),
    ]  # fmt: skip
    for share in (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 2.0, 5.0, 10.0):
        if 216 < y(share) < 358:
            parts.append(svg.line(70, y(share), 730, y(share)))
            parts.append(svg.text(64, y(share) + 4, f"{share:g}", text_anchor="end"))
    for k in (8, 16, 32, 64, 96, 128, 192, 256):
        parts.append(svg.text(x(k), 380, str(k), text_anchor="middle"))
    return "".join(parts)
