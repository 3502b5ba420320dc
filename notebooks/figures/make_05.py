"""Draw the figures of lesson 05_v3_and_v4, each in English and in Chinese.

    python notebooks/figures/make_05.py

The charts of schedules are drawn by the course's own view.
"""

from __future__ import annotations

import torch
from make_03 import BLUE, FOLDER, GREEN, GREY, LINE, ORANGE, PURPLE, box, lines, picture, text

from flashcourse.exp2 import COEFFICIENTS, polynomial
from flashcourse.schedule import SMS, Interval, serial, tile_cycles, utilisation
from flashcourse.views import svg
from flashcourse.views.curve import Axes, Curve, chart
from flashcourse.views.exp2 import HALF_BFLOAT16
from flashcourse.views.rescaling import results
from flashcourse.views.schedule import gantt
from flashcourse.words import Text

# ---------------------------------------------------------------- cycles on three GPUs

UNITS_TITLE = Text(
    "One tile, 128 queries × 128 keys, d = 128: cycles at peak rates",
    "一个小块，128 个 query × 128 个 key，d = 128：按峰值速率的周期数",
)
PRODUCTS, EXPS = Text("matrix products", "矩阵乘"), Text("exponentials", "指数")


def units(lang: str) -> str:
    parts = [text(400, 28, UNITS_TITLE.in_(lang), 16, weight="bold")]
    for n, sm in enumerate(SMS.values()):
        y, cycles = 60 + 76 * n, tile_cycles(sm)
        parts.append(text(60, y + 32, sm.name, 15, weight="bold"))
        for row, (name, value, colour) in enumerate(
            ((PRODUCTS, cycles.qk + cycles.pv, BLUE), (EXPS, cycles.exp, ORANGE))
        ):
            width = value * 0.11
            parts.append(box(110, y + 28 * row, width, 24, colour, 0.5))
            label = f"{name.in_(lang)} {value:g}"
            parts.append(text(118 + width, y + 17 + 28 * row, label, 14, anchor="start"))
    return picture(800, 296, UNITS_TITLE.in_(lang), parts)


# ---------------------------------------------------------------- schedules


def ping_pong(tiles: int, qk: float, exp: float, pv: float) -> list[Interval]:
    """Two warpgroups that take turns on the tensor cores: PV and the next QK in one go."""
    made: list[Interval] = []
    free, ready = {"tensor": 0.0, "exp": 0.0}, [0.0, 0.0]

    def run(warpgroup: int, op: str, cycles: float) -> None:
        unit = "exp" if op == "exp" else "tensor"
        start = max(free[unit], ready[warpgroup])
        free[unit] = ready[warpgroup] = start + cycles
        made.append(Interval(warpgroup, op, start, start + cycles))

    for warpgroup in (0, 1):
        run(warpgroup, "QK", qk)
    for tile in range(tiles):
        for warpgroup in (0, 1):
            run(warpgroup, "exp", exp)
        for warpgroup in (0, 1):
            run(warpgroup, "PV", pv)
            if tile + 1 < tiles:
                run(warpgroup, "QK", qk)
    return made


def two_stages(tiles: int, qk: float, exp: float, pv: float) -> list[Interval]:
    """One warpgroup with two buffers for S, as in FlashAttention-3's Algorithm 2.

    QK of a tile and PV of the one before are started together; exp runs beside PV.
    """
    made, now = [Interval(0, "QK", 0, qk), Interval(0, "exp", qk, qk + exp)], qk + exp
    for _ in range(tiles - 1):
        scores = now + qk
        made += [
            Interval(0, "QK", now, scores),
            Interval(0, "PV", scores, scores + pv),
            Interval(0, "exp", scores, scores + exp),
        ]
        now = scores + max(pv, exp)
    return [*made, Interval(0, "PV", now, now + pv)]


def stacked(charts: list[str], height: float, title: str) -> str:
    """Charts one above the other, as one picture."""
    step = height / len(charts)
    inner = "".join(
        chart.replace("<svg ", f'<svg y="{n * step:g}" height="{step:g}" ', 1)
        for n, chart in enumerate(charts)
    )
    return picture(900, int(height), title, [inner])


def pingpong_figure(lang: str) -> str:
    cycles = tile_cycles(SMS["H100"])
    plain, mine = serial(4, cycles), ping_pong(4, *cycles)
    until = max(i.end for i in plain)
    busy = [f"{utilisation(made):.1%}" for made in (plain, ping_pong(32, *cycles))]
    titles = (
        Text(
            f"One after the other: tensor cores busy {busy[0]}",
            f"依次执行：Tensor Core 忙碌 {busy[0]}",
        ),
        Text(f"Ping-pong: tensor cores busy {busy[1]}", f"Ping-pong：Tensor Core 忙碌 {busy[1]}"),
    )
    charts = [
        gantt(made, lang, title, until) for made, title in zip((plain, mine), titles, strict=True)
    ]
    return stacked(charts, 424, "H100")


def stages_figure(lang: str) -> str:
    title = Text("One warpgroup, two buffers for S (H100)", "一个 warpgroup，两个 S 缓冲区（H100）")
    return stacked([gantt(two_stages(6, *tile_cycles(SMS["H100"])), lang, title)], 212, "H100")


# ---------------------------------------------------------------- curves

DEGREE_COLOURS = {1: svg.WRONG, 2: svg.KV, 3: svg.Q, 4: svg.OUT, 5: svg.SOFT}
EXP2_TITLE = Text("Relative error of the polynomials for 2^f", "用多项式算 2^f 的相对误差")
DEGREE, ROUNDING = Text("degree {}", "{} 次"), Text("bfloat16", "bfloat16 的舍入")


def exp2_figure(lang: str) -> str:
    f = torch.arange(200, dtype=torch.float64) / 200
    curves = []
    for degree, colour in DEGREE_COLOURS.items():
        off = (polynomial(f.float(), COEFFICIENTS[degree]).double() / torch.exp2(f) - 1).abs()
        points = list(zip(f.tolist(), off.clamp_min(1e-8).tolist(), strict=True))
        curves.append(Curve(DEGREE.in_(lang).format(degree), points, colour))
    level = [(0.0, HALF_BFLOAT16), (1.0, HALF_BFLOAT16)]
    curves.append(Curve(ROUNDING.in_(lang), level, svg.INK, dashed=True))
    ticks = tuple(10.0**n for n in range(-8, 0))
    axes = Axes(
        (0, 1), (1e-8, 1e-1), "f", "|p(f) / 2^f − 1|", (0, 0.25, 0.5, 0.75, 1), ticks, log_y=True
    )
    return chart(axes, curves, EXP2_TITLE.in_(lang))


RESCALING_TITLE = Text(
    "Share of (warp, tile) pairs that rescale, in percent", "要缩放的（warp，小块）对所占的百分比"
)


def rescaling_figure(lang: str) -> str:
    curves = [
        Curve(f"q × {spread}", [(r.tau, 100 * r.warps) for r in results(spread)], colour)
        for spread, colour in ((1, svg.Q), (4, svg.OUT), (16, svg.WRONG))
    ]
    curves.append(Curve("τ = 8", [(8, 0), (8, 100)], svg.KV, dashed=True))
    axes = Axes((0, 12), (0, 100), "τ", "%", (0, 2, 4, 6, 8, 10, 12), (0, 25, 50, 75, 100))
    return chart(axes, curves, RESCALING_TITLE.in_(lang))


# ---------------------------------------------------------------- the timeline

STEPS = (
    ("2022", "V1 · A100", BLUE, Text("score traffic to HBM", "分数的显存访问"),
     Text("tiles, online softmax,\nrecomputation", "分块、在线 softmax、\n重计算")),
    ("2023", "V2 · A100", GREEN, Text("slow FLOPs, idle SMs", "慢运算、闲置的 SM"),
     Text("divide once, Q outside,\nsplit-Q", "只除一次、Q 在外、\nsplit-Q")),
    ("2024", "V3 · H100", ORANGE, Text("softmax between products", "夹在矩阵乘之间的 softmax"),
     Text("warp roles, ping-pong,\n2 stages, FP8", "warp 专职化、ping-pong、\n2 级流水、FP8")),
    ("2026", "V4 · B200", PURPLE, Text("the exponential itself", "指数本身"),
     Text("cubic exp2, conditional\nrescaling, 2-CTA", "三次多项式 exp2、条件缩放、\n2-CTA")),
)  # fmt: skip
TIMELINE = Text("Each version removes the bottleneck of its GPU", "每一版都在消除当时 GPU 的瓶颈")
WAS, DONE = Text("bottleneck", "瓶颈"), Text("change", "改动")


def timeline(lang: str) -> str:
    parts = [text(480, 30, TIMELINE.in_(lang), 17, weight="bold")]
    parts.append(f'<line x1="20" y1="76" x2="940" y2="76" stroke="{LINE}" stroke-width="3"/>')
    for n, (year, name, colour, was, done) in enumerate(STEPS):
        x = 20 + 233 * n
        parts += [
            box(x + 40, 62, 140, 28, colour, 1, colour),
            text(x + 110, 82, year, 16, weight="bold", fill="#FFFFFF"),
            box(x, 106, 220, 146, colour, 0.12, colour),
            text(x + 110, 130, name, 16, weight="bold"),
            text(x + 110, 156, WAS.in_(lang), 12, fill=GREY),
            text(x + 110, 175, was.in_(lang), 14),
            text(x + 110, 200, DONE.in_(lang), 12, fill=GREY),
            lines(x + 110, 219, done.in_(lang), 14, 19),
        ]
    return picture(960, 268, TIMELINE.in_(lang), parts)


def main() -> None:
    figures = (
        ("units", units),
        ("pingpong", pingpong_figure),
        ("stages", stages_figure),
        ("exp2", exp2_figure),
        ("rescaling", rescaling_figure),
        ("timeline", timeline),
    )
    for name, draw in figures:
        for lang in ("en", "zh"):
            (FOLDER / f"05-{name}.{lang}.svg").write_text(draw(lang), encoding="utf-8")


if __name__ == "__main__":
    main()
