"""Draw the figures of lesson 01_memory_wall, each in English and in Chinese.

    python notebooks/figures/make_01.py

Peaks, bandwidths and sizes come from flashcourse/costs.py, which names their sources.
"""

from __future__ import annotations

import math

from make_03 import (
    BLACK,
    BLUE,
    FOLDER,
    GREEN,
    GREY,
    LINE,
    ORANGE,
    PURPLE,
    RED,
    arrow,
    box,
    lines,
    picture,
    text,
)

from flashcourse.costs import HARDWARE, attainable_flops, forward_flops, standard_traffic

A100 = HARDWARE["A100-40GB"]

# ---------------------------------------------------------------- levels of memory

LEVELS = {
    "en": {
        "title": "The memory levels of an A100: registers, SRAM, HBM",
        "rows": (
            ("registers", "27 MiB in all", "private to a thread"),
            ("SRAM (shared memory)", "20 MiB in all", "about 19 TB/s"),
            ("HBM", "40 GB", "1.5 TB/s"),
        ),
        "here": (
            "what is being computed",
            "one tile of Q, K, V",
            "Q, K, V, O, and in standard attention S and P",
        ),
        "fast": "small and fast",
        "large": "large and slow",
    },
    "zh": {
        "title": "A100 的存储层级：寄存器、SRAM、显存（HBM）",
        "rows": (
            ("寄存器", "共 27 MiB", "每个线程私有"),
            ("SRAM（共享内存）", "共 20 MiB", "约 19 TB/s"),
            ("显存（HBM）", "40 GB", "1.5 TB/s"),
        ),
        "here": ("正在计算的数", "Q、K、V 的一个块", "Q、K、V、O；标准注意力还有 S 和 P"),
        "fast": "小而快",
        "large": "大而慢",
    },
}


def levels(lang: str) -> str:
    words = LEVELS[lang]
    parts = [arrow([(36, 300), (36, 30)], GREY)]
    parts.append(text(60, 36, words["fast"], 13, anchor="start", fill=GREY))
    parts.append(text(60, 308, words["large"], 13, anchor="start", fill=GREY))
    for n, ((name, size, speed), colour) in enumerate(
        zip(words["rows"], (RED, GREEN, BLUE), strict=True)
    ):
        half, y = 120 + 45 * n, 50 + n * 84
        parts.append(box(300 - half, y, 2 * half, 72, "#ffffff"))
        parts.append(box(300 - half, y, 2 * half, 72, colour, 0.22))
        parts.append(text(300, y + 28, name, 16, weight="bold"))
        parts.append(text(300, y + 54, f"{size}  ·  {speed}", 14))
        parts.append(text(530, y + 42, words["here"][n], 14, anchor="start"))
    return picture(860, 330, words["title"], parts)


# ---------------------------------------------------------------- the three kernels

FLOW = {
    "en": {
        "title": "Standard attention is 3 kernels, and each goes to HBM and back",
        "kernels": ("scores\nS = QKᵀ", "softmax\nP = softmax(S)", "output\nO = PV"),
        "hbm": "HBM",
        "chip": "on chip",
    },
    "zh": {
        "title": "标准注意力由 3 个 kernel 组成，每个都要在显存间往返",
        "kernels": ("算分数\nS = QKᵀ", "softmax\nP = softmax(S)", "算输出\nO = PV"),
        "hbm": "显存",
        "chip": "芯片上",
    },
}
# What lies in HBM: name, left edge, width, height, colour. S and P are N×N, the others N×d.
TENSORS = (
    ("Q", 110, 24, 84, BLUE),
    ("K", 140, 24, 84, GREEN),
    ("S", 230, 84, 84, ORANGE),
    ("P", 400, 84, 84, RED),
    ("V", 555, 24, 84, GREEN),
    ("O", 690, 24, 84, PURPLE),
)
CENTRE = {name: left + width / 2 for name, left, width, _, _ in TENSORS}
KERNELS = ((190, "QK", "S"), (360, "S", "P"), (600, "PV", "O"))


def flow(lang: str) -> str:
    words = FLOW[lang]
    parts = [
        box(90, 24, 650, 130, "#ffffff", edge=LINE),
        box(90, 246, 650, 84, "#ffffff", edge=LINE),
    ]
    parts.append(text(80, 90, words["hbm"], 14, anchor="end", weight="bold"))
    parts.append(text(80, 292, words["chip"], 14, anchor="end", weight="bold"))
    for name, left, width, height, colour in TENSORS:
        parts.append(box(left, 36, width, height, colour, 0.3))
        parts.append(text(left + width / 2, 84, name, 17, weight="bold"))
        size = "N × N" if width > 50 else "N × d"
        parts.append(text(left + width / 2, 142, size, 10, fill=GREY))
    for (centre, inputs, output), words_in in zip(KERNELS, words["kernels"], strict=True):
        parts.append(box(centre - 68, 256, 136, 64, BLACK, 0.06))
        parts.append(lines(centre, 284, words_in, 14, 22))
        for n, name in enumerate(inputs):
            x = CENTRE[name] + (26 if len(inputs) == 1 or name == "P" else 0)
            parts.append(arrow([(x, 156), (centre - 40 + 26 * n, 254)], BLUE))
        parts.append(arrow([(centre + 44, 254), (CENTRE[output] - 14, 156)], ORANGE))
    return picture(760, 344, words["title"], parts)


# ---------------------------------------------------------------- the roofline

ROOF = {
    "en": {
        "title": "Rooflines of 4 GPUs, and where softmax, attention and a matrix product stand",
        "x": "arithmetic intensity, FLOP per byte",
        "y": "TFLOP/s at best",
        "works": (
            "softmax",
            "standard attention\nN = 4096, d = 128",
            "matrix product\n4096 × 4096",
        ),
        "bound": ("memory-bound", "compute-bound"),
    },
    "zh": {
        "title": "4 种 GPU 的屋顶线，以及 softmax、注意力、矩阵乘各在哪里",
        "x": "算术强度（FLOP/字节）",
        "y": "最高 TFLOP/s",
        "works": ("softmax", "标准注意力\nN = 4096, d = 128", "矩阵乘\n4096 × 4096"),
        "bound": ("受限于访存", "受限于计算"),
    },
}
GPUS = (("T4", GREY), ("A100-40GB", BLUE), ("H100", GREEN), ("B200", PURPLE))
LEFT, TOP, WIDTH, HEIGHT = 80, 30, 560, 330
X_DECADES, Y_DECADES = (0, 4), (-1, 4)  # FLOP per byte; TFLOP/s


def at(intensity: float, flops: float) -> tuple[float, float]:
    """The place of a point in the picture; flops in FLOP/s."""
    u = (math.log10(intensity) - X_DECADES[0]) / (X_DECADES[1] - X_DECADES[0])
    v = (math.log10(flops / 1e12) - Y_DECADES[0]) / (Y_DECADES[1] - Y_DECADES[0])
    return LEFT + u * WIDTH, TOP + (1 - v) * HEIGHT


def intensities() -> tuple[float, float, float]:
    """FLOP per byte in fp16 of softmax, standard attention (4096, 128), and a 4096³ product."""
    n, d = 4096, 128
    softmax = 5 * n * n / (2 * n * n * 2)
    return softmax, forward_flops(n, d) / (2 * standard_traffic(n, d)), 2 * n**3 / (3 * n * n * 2)


def grid(words: dict) -> list[str]:
    parts = [box(LEFT, TOP, WIDTH, HEIGHT, "#ffffff", edge=LINE)]
    for decade in range(X_DECADES[0], X_DECADES[1] + 1):
        x, _ = at(10.0**decade, 1e12)
        parts.append(f'<path d="M{x:g},{TOP} V{TOP + HEIGHT}" stroke="{LINE}" stroke-width="0.5"/>')
        parts.append(text(x, TOP + HEIGHT + 20, f"{10**decade}", 12))
    for decade in range(Y_DECADES[0], Y_DECADES[1] + 1):
        _, y = at(1, 1e12 * 10.0**decade)
        parts.append(
            f'<path d="M{LEFT},{y:g} H{LEFT + WIDTH}" stroke="{LINE}" stroke-width="0.5"/>'
        )
        parts.append(text(LEFT - 8, y + 4, f"{10.0**decade:g}", 12, anchor="end"))
    parts.append(text(LEFT + WIDTH / 2, TOP + HEIGHT + 42, words["x"], 13))
    parts.append(text(LEFT + 6, TOP - 10, words["y"], 13, anchor="start"))
    return parts


def roofline(lang: str) -> str:
    words = ROOF[lang]
    parts = grid(words)
    for name, colour in GPUS:
        gpu = HARDWARE[name]
        points = [at(x, attainable_flops(x, gpu)) for x in (1, gpu.ridge_flops_per_byte, 1e4)]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        parts.append(
            f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2.5"/>'
        )
        label = f"{name}  {gpu.tensor_flops / 1e12:g}"
        parts.append(
            text(LEFT + WIDTH + 10, points[-1][1] + 5, label, 13, anchor="start", fill=colour)
        )
    bottom = TOP + HEIGHT
    for x, name, up, anchor in zip(
        intensities(), words["works"], (14, 58, 58), ("start", "end", "start"), strict=True
    ):
        px, py = at(x, attainable_flops(x, A100))
        parts.append(f'<path d="M{px:.1f},{py:.1f} V{bottom}" stroke="{BLUE}" stroke-width="1"/>')
        parts.append(f'<circle cx="{px:.1f}" cy="{py:.1f}" r="6" fill="{BLUE}" stroke="#fff"/>')
        shift = 6 if anchor == "start" else -6
        parts.append(lines(px + shift, bottom - up, name, 13, 17, anchor=anchor))
    x, y = at(A100.ridge_flops_per_byte, 0.1e12)
    parts.append(f'<path d="M{x:.1f},{TOP} V{y:g}" stroke="{BLUE}" stroke-dasharray="5 4"/>')
    parts.append(text(x - 8, TOP + 20, words["bound"][0], 13, anchor="end", fill=BLUE))
    parts.append(text(x + 8, TOP + 20, words["bound"][1], 13, anchor="start", fill=BLUE))
    return picture(780, 420, words["title"], parts)


def main() -> None:
    for name, draw in (("levels", levels), ("flow", flow), ("roofline", roofline)):
        for lang in ("en", "zh"):
            (FOLDER / f"01-{name}.{lang}.svg").write_text(draw(lang), encoding="utf-8")


if __name__ == "__main__":
    main()
