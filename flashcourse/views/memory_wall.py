"""The memory wall: what the scores need against what real GPUs have, and what attention moves."""

from __future__ import annotations

import ipywidgets as widgets

from flashcourse import costs
from flashcourse.views import knobs, svg
from flashcourse.words import Text, check_language, course_language

_W, _LEFT, _BAR = 760, 20, 22

_LABELS = {
    "N": Text("sequence length", "序列长度"),
    "heads": Text("heads", "头数"),
    "batch": Text("batch", "批大小"),
    "dtype": Text("dtype", "数据类型"),
    "stored": Text("S and P together: 2 · {batch} · {heads} · {N}² · {size} B = {bytes}",
                   "S 和 P 合计：2 · {batch} · {heads} · {N}² · {size} B = {bytes}"),
    "small": Text("q, k, v and the output (d = {d}): {bytes}", "q、k、v 和输出 (d = {d})：{bytes}"),
    "fits": Text("{percent} of {memory}", "占 {memory} 的 {percent}"),
    "not": Text("does not fit: {times} × {memory}", "放不下：是 {memory} 的 {times} 倍"),
    "moved": Text("Read and written, and the time that alone takes on an A100-40GB ({speed} TB/s):",
                  "读写的数据量，以及在 A100-40GB（{speed} TB/s）上光读写所需的时间："),
    "standard": Text("storing S and P", "存下 S 和 P"),
    "least": Text("only q, k, v, O", "只读写 q、k、v、O"),
    "time": Text("{bytes}, {ms} ms", "{bytes}，{ms} ms"),
}  # fmt: skip
_D = 64


def memory_wall_explorer(*, lang: str | None = None) -> widgets.VBox:
    """Sequence length, heads, batch and dtype → bytes of S and P against six GPUs' memory.

    Below it, what attention reads and writes with and without them, at head dimension 64, and the
    time for which the HBM of an A100-40GB is busy with that. Numbers from `flashcourse.costs`.
    """
    lang = check_language(lang) if lang else course_language()
    label = lambda name: _LABELS[name].in_(lang)
    lengths = [(f"{n:,}", n) for n in (2**p for p in range(9, 21))]
    parts: dict[str, widgets.Widget] = {
        "N": knobs.choice(label("N"), lengths, 4096),
        "heads": knobs.choice(label("heads"), [1, 8, 16, 32, 64, 128], 16),
        "batch": knobs.choice(label("batch"), [1, 2, 4, 8, 16, 32, 64], 8),
        "dtype": knobs.choice(label("dtype"), list(costs.DTYPE_BYTES), "float16"),
    }
    draw = lambda N, heads, batch, dtype: figure(N, heads, batch, dtype, lang)
    return knobs.Explorer(parts, draw).view


def size(n: float) -> str:
    """Bytes in decimal units, as GPUs' memory is sold."""
    for unit, factor in (("PB", 1e15), ("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if n >= factor:
            return f"{n / factor:.3g} {unit}" if n < 1000 * factor else f"{n / factor:,.0f} {unit}"
    return f"{n:.0f} B"


def figure(N: int, heads: int, batch: int, dtype: str, lang: str) -> str:
    """The picture for one setting."""
    stored = 2 * costs.score_bytes(N, heads, batch, dtype)
    least = costs.qkvo_bytes(N, _D, heads, batch, dtype)
    head = [
        svg.text(_LEFT, 28, _LABELS["stored"].in_(lang).format(
            batch=batch, heads=heads, N=f"{N:,}", size=costs.DTYPE_BYTES[dtype],
            bytes=size(stored)), font_size=15, font_weight="bold"),
        svg.text(_LEFT, 50, _LABELS["small"].in_(lang).format(d=_D, bytes=size(least)),
                 fill=svg.SOFT),
    ]  # fmt: skip
    rows = [_gpu(gpu, stored, 70 + 34 * at, lang) for at, gpu in enumerate(costs.HARDWARE.values())]
    below = _moved(N, heads, batch, dtype, 70 + 34 * len(rows) + 22, lang)
    return svg.document(_W, 70 + 34 * len(rows) + 110, "".join((*head, *rows, below)), size(stored))


def _gpu(gpu: costs.GPU, stored: float, y: float, lang: str) -> str:
    """One GPU's memory as a box, filled as far as S and P go; red and full when they do not fit."""
    share, left, width = stored / gpu.hbm_bytes, _LEFT + 96, 330
    memory = f"{gpu.hbm_bytes / 1e9:.0f} GB"
    if share > 1:
        words = _LABELS["not"].in_(lang).format(times=f"{share:,.3g}", memory=memory)
    else:
        words = _LABELS["fits"].in_(lang).format(percent=f"{100 * share:.2g} %", memory=memory)
    over = share > 1
    return "".join((
        svg.text(_LEFT, y + 16, gpu.name, font_weight="bold"),
        svg.rect(left, y, width, _BAR, fill="#F2F4F6", stroke=svg.LINE, rx=3),
        svg.rect(left, y, max(1.5, min(1.0, share) * width), _BAR,
                 fill=svg.WRONG if over else svg.Q, rx=3),
        svg.text(left + width + 14, y + 16, ("✗ " if over else "✓ ") + words,
                 fill=svg.WRONG if over else svg.INK),
    ))  # fmt: skip


def _moved(N: int, heads: int, batch: int, dtype: str, y: float, lang: str) -> str:
    gpu, each = costs.HARDWARE["A100-40GB"], batch * heads * costs.DTYPE_BYTES[dtype]
    moved = {
        "standard": costs.standard_traffic(N, _D) * each,
        "least": costs.qkvo_bytes(N, _D, heads, batch, dtype),
    }
    speed = f"{gpu.hbm_bytes_per_s / 1e12:.3f}"
    parts = [svg.text(_LEFT, y, _LABELS["moved"].in_(lang).format(speed=speed), fill=svg.SOFT)]
    for at, (name, amount) in enumerate(moved.items()):
        top, width = y + 12 + 30 * at, 330 * amount / moved["standard"]
        took = (
            _LABELS["time"]
            .in_(lang)
            .format(bytes=size(amount), ms=f"{1e3 * amount / gpu.hbm_bytes_per_s:,.3g}")
        )
        parts += [
            svg.text(_LEFT, top + 15, _LABELS[name].in_(lang), font_size=12),
            svg.rect(_LEFT + 110, top, max(1.5, width), 20, rx=3,
                     fill=svg.KV if name == "standard" else svg.OUT),
            svg.text(_LEFT + 120 + width, top + 15, took),
        ]  # fmt: skip
    return "".join(parts)
