"""Draw the figures of lesson 04_v1_to_v2, each in English and in Chinese.

python notebooks/figures/make_04.py
"""

from __future__ import annotations

from make_03 import BLUE, FOLDER, GREEN, GREY, ORANGE, PURPLE, arrow, box, lines, picture, text

Words = dict[str, str]

# ---------------------------------------------------------------- two loop orders

LOOPS: dict[str, Words] = {
    "en": {
        "title": "Two loop orders: what stays on the chip, and what travels at each tile",
        "hbm": "HBM",
        "chip": "on the chip",
        "stays": "stays for the whole inner loop",
        "passes": "passes at every tile",
        "v1": "FlashAttention-1: K/V outside, Q inside",
        "v2": "FlashAttention-2: Q outside, K/V inside",
        "v1foot": "per tile: Q in, O in, O out, m and l in and out\n3·Br·d + 4·Br numbers",
        "v2foot": "per tile: K in, V in\n2·Bc·d numbers;  O and L go out once, at the end",
    },
    "zh": {
        "title": "两种循环顺序：什么留在片上，每个小块又要搬什么",
        "hbm": "显存",
        "chip": "片上",
        "stays": "整个内层循环都留着",
        "passes": "每个小块都要搬",
        "v1": "FlashAttention-1：K/V 在外，Q 在内",
        "v2": "FlashAttention-2：Q 在外，K/V 在内",
        "v1foot": "每块：读 Q，读 O，写 O，读写 m 和 l\n共 3·Br·d + 4·Br 个数",
        "v2foot": "每块：读 K，读 V\n共 2·Bc·d 个数；O 和 L 最后只写一次",
    },
}


def _panel(x: float, w: Words, version: str) -> list[str]:
    first = version == "v1"
    stay, travel = (ORANGE, BLUE) if first else (BLUE, ORANGE)
    staying = ("Kj, Vj",) if first else ("Qi, Oi, mi, li",)
    travelling = ("Qi", "Oi, mi, li") if first else ("Kj", "Vj")
    parts = [
        text(x + 220, 62, w[version], 16, weight="bold"),
        box(x, 80, 440, 74, "#EEEEEE", 1, GREY),
        text(x + 14, 104, w["hbm"], 15, anchor="start", weight="bold"),
        box(x, 236, 440, 110, "#FFFFFF", 1, GREY),
        text(x + 14, 262, w["chip"], 15, anchor="start", weight="bold"),
        box(x + 20, 276, 190, 34, stay, 0.45),
        text(x + 115, 299, staying[0], 15),
        text(x + 115, 330, w["stays"], 13, fill=GREY),
        text(x + 325, 330, w["passes"], 13, fill=GREY),
    ]
    for n, name in enumerate(travelling):
        left, width = (x + 232, 60) if n == 0 else (x + 308, 112)
        parts += [box(left, 98, width, 34, travel, 0.45), text(left + width / 2, 121, name, 15)]
        parts += [box(left, 276, width, 34, travel, 0.45), text(left + width / 2, 299, name, 15)]
        middle = left + width / 2
        both = first and n == 1
        parts.append(arrow([(middle - 14 * both, 138), (middle - 14 * both, 270)]))
        if both:
            parts.append(arrow([(middle + 14, 270), (middle + 14, 138)]))
    foot = w[version + "foot"]
    return [*parts, lines(x + 220, 376, foot, 15, 22)]


def loops(lang: str) -> str:
    w = LOOPS[lang]
    parts = [text(480, 30, w["title"], 17, weight="bold"), *_panel(20, w, "v1")]
    return picture(960, 420, w["title"], [*parts, *_panel(500, w, "v2")])


# ---------------------------------------------------------------- split-K and split-Q

WARPS: dict[str, Words] = {
    "en": {
        "title": "One tile, 4 warps: who works on what",
        "K": "split-K (V1): each warp has a slice of the keys",
        "Q": "split-Q (V2): each warp has a slice of the queries",
        "tile": "scores of the tile",
        "partial": "4 partial sums of all rows,\nadded through shared memory",
        "own": "each warp owns its rows,\nnothing to add",
        "warp": "warp",
    },
    "zh": {
        "title": "一个小块，4 个 warp：谁做哪一部分",
        "K": "split-K（V1）：每个 warp 分到一段 key",
        "Q": "split-Q（V2）：每个 warp 分到一段 query",
        "tile": "这一块的分数",
        "partial": "每一行都有 4 份部分和，\n要经共享内存相加",
        "own": "每个 warp 独占自己的行，\n无须相加",
        "warp": "warp",
    },
}
COLOURS = (BLUE, ORANGE, GREEN, PURPLE)


def warps(lang: str) -> str:
    w = WARPS[lang]
    parts = [text(480, 30, w["title"], 17, weight="bold")]
    for x, split in ((20, "K"), (500, "Q")):
        parts += [text(x + 220, 66, w[split], 15, weight="bold")]
        for n, colour in enumerate(COLOURS):
            if split == "K":
                parts += [
                    box(x + 10 + 46 * n, 90, 46, 160, colour, 0.45),
                    text(x + 33 + 46 * n, 175, str(n), 15),
                    box(x + 262 + 22 * n, 90 + 14 * n, 84, 118, colour, 0.45),
                ]
            else:
                parts += [
                    box(x + 10, 90 + 40 * n, 184, 40, colour, 0.45),
                    text(x + 102, 115 + 40 * n, f"{w['warp']} {n}", 15),
                    box(x + 286, 90 + 40 * n, 84, 40, colour, 0.45),
                    text(x + 328, 115 + 40 * n, str(n), 15),
                ]
        parts += [
            arrow([(x + 202, 170), (x + 252, 170)]),
            text(x + 102, 276, w["tile"], 14, fill=GREY),
            lines(x + 320, 276, w["partial" if split == "K" else "own"], 14, 20, fill=GREY),
        ]
    return picture(960, 316, w["title"], parts)


def main() -> None:
    for name, draw in (("loops", loops), ("warps", warps)):
        for lang in ("en", "zh"):
            (FOLDER / f"04-{name}.{lang}.svg").write_text(draw(lang), encoding="utf-8")


if __name__ == "__main__":
    main()
