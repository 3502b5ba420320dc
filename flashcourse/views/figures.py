"""Figures for looking at once, by matplotlib; their Chinese shows where no such font is."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
from matplotlib import font_manager
from matplotlib.figure import Figure

from flashcourse import costs
from flashcourse.views import svg
from flashcourse.words import Text, check_language, course_language

_FONT = Path(__file__).parent / "fonts" / "FlashcourseSansSC-Regular.otf"
# After the course's own font, those that Chinese machines have, for characters that it lacks.
_SYSTEM_FONTS = ("Noto Sans CJK SC", "WenQuanYi Micro Hei", "Microsoft YaHei", "PingFang SC")


@cache
def font_family() -> list[str]:
    """What `font.family` must be so that Chinese shows: matplotlib falls back only in this list."""
    font_manager.fontManager.addfont(_FONT)
    own = font_manager.FontProperties(fname=_FONT).get_name()
    installed = {font.name for font in font_manager.fontManager.ttflist}
    return ["sans-serif", own, *(name for name in _SYSTEM_FONTS if name in installed)]


def use_course_font() -> None:
    """Let every later figure of this process show Chinese."""
    matplotlib.rcParams["font.family"] = font_family()


_WORDS = {
    "roof": Text("{name}: what a kernel can reach", "{name}：一个核函数的速度上限"),
    "intensity": Text("arithmetic intensity (FLOP per byte of HBM traffic)",
                      "算术强度（每读写 1 字节显存所做的 FLOP）"),
    "speed": Text("TFLOP/s", "TFLOP/s"),
    "standard": Text("attention that stores S and P", "存下 S 和 P 的注意力"),
    "flash": Text("FlashAttention-2, blocks of 128", "FlashAttention-2，块大小 128"),
    "ridge": Text("ridge: {ridge:.0f}", "拐点：{ridge:.0f}"),
    "bytes": Text("Bytes of S and of q, k, v, O: one sequence, 16 heads, d = 64, fp16",
                  "S 与 q、k、v、O 的字节数：1 条序列，16 头，d = 64，fp16"),
    "length": Text("sequence length N", "序列长度 N"),
    "gigabytes": Text("bytes", "字节"),
    "scores": Text("S: grows with N²", "S：随 N² 增长"),
    "inputs": Text("q, k, v, O: grow with N", "q、k、v、O：随 N 增长"),
    "memory": Text("memory of one {name}", "一块 {name} 的显存"),
}  # fmt: skip


def roofline(
    gpu: str = "A100-40GB", N: int = 4096, d: int = 128, *, lang: str | None = None
) -> Figure:
    """The roof of a GPU, and attention with and without S in HBM beneath it.

    gpu: a name in `costs.HARDWARE`. N, d: length and head dimension. Intensity is the FLOPs of
    the two matrix products over the bytes of HBM traffic, fp16, one head.
    """
    chip, words = costs.HARDWARE[gpu], _in(lang)
    flops = costs.forward_flops(N, d)
    points = {
        words("standard"): flops / (2 * costs.standard_traffic(N, d)),
        words("flash"): flops / (2 * costs.flash2_traffic(N, d, 128)),
    }
    with matplotlib.rc_context({"font.family": font_family()}):
        figure, axes = _axes(words("roof").format(name=gpu), words("intensity"), words("speed"))
        x = np.logspace(0, 4, 200)
        roof = [costs.attainable_flops(each, chip) / 1e12 for each in x]
        axes.loglog(x, roof, color=svg.INK, linewidth=2)
        for (name, intensity), colour, marker in zip(
            points.items(), (svg.KV, svg.Q), "os", strict=True
        ):
            reach = costs.attainable_flops(intensity, chip) / 1e12
            axes.plot(intensity, reach, marker, color=colour, markersize=9,
                      label=f"{name}: {intensity:.0f}")  # fmt: skip
            axes.plot([intensity] * 2, [min(roof), reach], ":", color=colour)
        ridge = chip.ridge_flops_per_byte
        axes.axvline(ridge, color=svg.LINE, label=words("ridge").format(ridge=ridge))
        axes.legend(frameon=False, loc="lower right")
    return figure


def score_memory(*, lang: str | None = None) -> Figure:
    """Bytes of the scores, and of q, k, v, O, against sequence length; two GPUs' memory."""
    words = _in(lang)
    lengths = np.array([2**p for p in range(8, 19)])
    with matplotlib.rc_context({"font.family": font_family()}):
        figure, axes = _axes(words("bytes"), words("length"), words("gigabytes"))
        scores = [costs.score_bytes(int(n), heads=16) for n in lengths]
        inputs = [costs.qkvo_bytes(int(n), 64, heads=16) for n in lengths]
        axes.loglog(lengths, scores, "o-", base=2, color=svg.KV, label=words("scores"))
        axes.loglog(lengths, inputs, "s--", base=2, color=svg.Q, label=words("inputs"))
        for name in ("T4", "B200"):
            size = costs.HARDWARE[name].hbm_bytes
            axes.axhline(size, color=svg.SOFT, linewidth=1)
            axes.text(256, size * 1.15, words("memory").format(name=name), color=svg.SOFT)
        axes.set_yscale("log")
        axes.legend(frameon=False, loc="lower right")
    return figure


def _in(lang: str | None) -> Callable[[str], str]:
    chosen = check_language(lang) if lang else course_language()
    return lambda name: _WORDS[name].in_(chosen)


def _axes(title: str, x: str, y: str) -> tuple[Figure, Any]:
    """A figure that shows once, as a cell's result, and not again as pyplot's current one."""
    figure, axes = plt.subplots(figsize=(7.2, 4.2), layout="constrained")
    plt.close(figure)
    axes.set_title(title, fontsize=11)
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.grid(color="#E3E8EC", linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes
