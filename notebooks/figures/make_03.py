"""Draw the figures of lesson 03_flash_forward, each in English and in Chinese.

    python notebooks/figures/make_03.py

Colours are those of Okabe and Ito, told apart by colour-blind readers; each matrix keeps its
colour, and in `state` a colour is a tile. The numbers of `state` are worked out here from the
scores, not typed in.
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from xml.sax.saxutils import escape

FOLDER = Path(__file__).parent
BLACK, GREY, LINE, PAPER = "#222222", "#666666", "#9a9a9a", "#fcfcf9"
BLUE, GREEN, ORANGE, PURPLE, RED = "#0072B2", "#009E73", "#E69F00", "#CC79A7", "#D55E00"
TILE_COLOURS = ("#56B4E9", "#F0E442")  # in `state`: the first tile, the second tile
NBSP = "\u00a0"


def text(x: float, y: float, words: str, size: int = 15, **style: str) -> str:
    """One line of words; style: anchor, fill, weight."""
    anchor = style.get("anchor", "middle")
    fill, weight = style.get("fill", BLACK), style.get("weight", "normal")
    return (
        f'<text x="{x:g}" y="{y:g}" font-size="{size}" text-anchor="{anchor}" '
        f'fill="{fill}" font-weight="{weight}">{escape(words).replace("  ", NBSP * 2)}</text>'
    )


def lines(x: float, y: float, words: str, size: int = 14, step: int = 20, **style: str) -> str:
    """Several lines of words, separated by line breaks in `words`."""
    return "".join(
        text(x, y + n * step, line, size, **style) for n, line in enumerate(words.split("\n"))
    )


def box(
    x: float,
    y: float,
    w: float,
    h: float,
    fill: str,
    opacity: float = 1,
    edge: str = BLACK,
    **more: str,
) -> str:
    extra = "".join(f' {name.replace("_", "-")}="{value}"' for name, value in more.items())
    return (
        f'<rect x="{x:g}" y="{y:g}" width="{w:g}" height="{h:g}" rx="4" fill="{fill}" '
        f'fill-opacity="{opacity:g}" stroke="{edge}"{extra}/>'
    )


def arrow(points: list[tuple[float, float]], colour: str = BLACK, width: float = 2) -> str:
    path = " ".join(f"{x:g},{y:g}" for x, y in points)
    head = "arrow" + colour[1:]
    return (
        f'<defs><marker id="{head}" viewBox="0 0 10 10" refX="8" refY="5" markerWidth="7" '
        f'markerHeight="7" orient="auto-start-reverse"><path d="M0,0 L10,5 L0,10 z" '
        f'fill="{colour}"/></marker></defs>'
        f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="{width:g}" '
        f'marker-end="url(#{head})"/>'
    )


def picture(width: int, height: int, title: str, parts: list[str]) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" role="img" font-family="sans-serif">'
        f"<title>{escape(title)}</title>"
        f'<rect width="{width}" height="{height}" rx="8" fill="{PAPER}"/>'
        + "\n".join(parts)
        + "</svg>\n"
    )


# ---------------------------------------------------------------- where things live

MEMORY = {
    "en": {
        "title": "What lives in HBM, in shared memory and in registers",
        "hbm": "HBM",
        "hbm_about": "large and slow\nA100: 40 GB, 1.5–2.0 TB/s",
        "sram": "SRAM (shared memory)",
        "sram_about": "small and fast\nA100: 192 KB × 108 SMs, ~19 TB/s",
        "reg": "registers",
        "reg_about": "smallest and fastest\nprivate to each thread",
        "gone": "S, P    N × N\nstandard attention only",
        "load": "one tile\nat a time",
        "use": "multiply",
        "store": "written once per row block, after its last K/V tile",
    },
    "zh": {
        "title": "哪些数据在 HBM、共享内存、寄存器里",
        "hbm": "显存（HBM）",
        "hbm_about": "大，但慢\nA100：40 GB，1.5–2.0 TB/s",
        "sram": "SRAM（共享内存）",
        "sram_about": "小，但快\nA100：192 KB × 108 个 SM，约 19 TB/s",
        "reg": "寄存器",
        "reg_about": "最小，也最快\n每个线程私有",
        "gone": "S、P    N × N\n只有标准注意力才写",
        "load": "每次\n一个块",
        "use": "相乘",
        "store": "每个行块只写一次：走完最后一个 K/V 块之后",
    },
}


def memory(lang: str) -> str:
    words = MEMORY[lang]
    parts = []
    for x, w, name in ((20, 250, "hbm"), (335, 270, "sram"), (670, 210, "reg")):
        parts.append(box(x, 20, w, 320, "#ffffff", edge=LINE))
        parts.append(text(x + w / 2, 48, words[name], 17, weight="bold"))
        parts.append(lines(x + w / 2, 72, words[f"{name}_about"], 13, 18, fill=GREY))
    for n, (name, colour) in enumerate((("Q", BLUE), ("K", GREEN), ("V", ORANGE), ("O", PURPLE))):
        x = 38 + n * 54
        parts.append(box(x, 110, 48, 110, colour, 0.35))
        parts.append(text(x + 24, 160, name, 17, weight="bold"))
        parts.append(text(x + 24, 182, "N × d", 12))
    parts.append(box(38, 250, 210, 68, "#ffffff", edge=RED, stroke_dasharray="6 4"))
    parts.append(lines(143, 280, words["gone"], 14, fill=RED))
    for n, (name, colour) in enumerate(
        (("q_block", BLUE), ("k_block", GREEN), ("v_block", ORANGE))
    ):
        y = 118 + n * 62
        parts.append(box(385, y, 170, 46, colour, 0.35))
        parts.append(text(470, y + 29, f"{name}    b × d", 15))
    for n, (name, colour) in enumerate(
        (("S_ij, P_ij    b × b", LINE), ("m_i, l_i    b × 1", RED), ("out_i    b × d", PURPLE))
    ):
        y = 118 + n * 62
        parts.append(box(690, y, 170, 46, colour, 0.3))
        parts.append(text(775, y + 29, name, 15))
    parts.append(arrow([(272, 205), (333, 205)]))
    parts.append(lines(302, 172, words["load"], 12, 17))
    parts.append(arrow([(607, 205), (668, 205)]))
    parts.append(text(637, 195, words["use"], 12))
    parts.append(arrow([(775, 290), (775, 372), (143, 372), (143, 342)], PURPLE, 2.5))
    parts.append(text(459, 394, words["store"], 14))
    return picture(900, 410, words["title"], parts)


# ---------------------------------------------------------------- the tile grid, two loop orders

TILES = {
    "en": {
        "title": "The order in which the tiles are visited",
        "q_outer": "This lesson, FlashAttention-2, Triton",
        "q_loops": "for each Q block (i):\n    for each K/V block (j)",
        "q_note": "m_i, l_i, out_i stay on chip for the whole row;\nO is written once: 3 writes",
        "kv_outer": "FlashAttention-1",
        "kv_loops": "for each K/V block (j):\n    for each Q block (i)",
        "kv_note": "O, m, l come from HBM and go back\nat every tile: 9 writes",
    },
    "zh": {
        "title": "访问各个块的次序",
        "q_outer": "本课、FlashAttention-2、Triton",
        "q_loops": "对每个 Q 块（i）：\n    对每个 K/V 块（j）",
        "q_note": "m_i、l_i、out_i 整行期间都留在片上；\nO 只写一次：共写 3 次",
        "kv_outer": "FlashAttention-1",
        "kv_loops": "对每个 K/V 块（j）：\n    对每个 Q 块（i）",
        "kv_note": "O、m、l 每个块都要从显存读出、\n再写回：共写 9 次",
    },
}


def grid(x: float, y: float, row_major: bool) -> list[str]:
    """A 3 × 3 grid of tiles with Q, K/V and O blocks around it, numbered in visiting order."""
    parts, size = [], 64
    order = [(a, b) if row_major else (b, a) for a in range(3) for b in range(3)]
    for n in range(3):
        parts.append(box(x - 54, y + n * size, 42, size - 6, BLUE, 0.35))
        parts.append(text(x - 33, y + n * size + 35, f"Q{n + 1}", 14))
        parts.append(box(x + n * size, y - 76, size - 6, 28, GREEN, 0.35))
        parts.append(text(x + n * size + 29, y - 57, f"K{n + 1}", 14))
        parts.append(box(x + n * size, y - 42, size - 6, 28, ORANGE, 0.35))
        parts.append(text(x + n * size + 29, y - 23, f"V{n + 1}", 14))
        parts.append(box(x + 3 * size + 6, y + n * size, 42, size - 6, PURPLE, 0.35))
        parts.append(text(x + 3 * size + 27, y + n * size + 35, f"O{n + 1}", 14))
    centres = [(x + j * size + 29, y + i * size + 29) for i, j in order]
    for cx, cy in centres:
        parts.append(box(cx - 29, cy - 29, size - 6, size - 6, LINE, 0.25, LINE))
    parts.append(arrow(centres, BLACK, 1.2))
    for n, (cx, cy) in enumerate(centres, 1):
        parts.append(f'<circle cx="{cx:g}" cy="{cy:g}" r="15" fill="{PAPER}" stroke="{BLACK}"/>')
        parts.append(text(cx, cy + 5, str(n), 15, weight="bold"))
    return parts


def tiles(lang: str) -> str:
    words = TILES[lang]
    parts = []
    for x, name, row_major in ((30, "q", True), (470, "kv", False)):
        middle = x + 200
        parts.append(box(x, 16, 400, 430, "#ffffff", edge=LINE))
        parts.append(text(middle, 44, words[f"{name}_outer"], 16, weight="bold"))
        for n, line in enumerate(words[f"{name}_loops"].split("\n")):
            left = x + 110 + (24 if line.startswith(" ") else 0)
            parts.append(text(left, 68 + 20 * n, line.strip(), 14, anchor="start", fill=GREY))
        parts += grid(x + 106, 186, row_major)
        parts.append(lines(middle, 406, words[f"{name}_note"], 14))
    return picture(900, 462, words["title"], parts)


# ---------------------------------------------------------------- the state after each tile

POWERS = (1, 2, 4, 1)  # e^x of the four scores x = 0, ln 2, ln 4, 0
VALUES = (6, 3, 8, 4)
STATE = {
    "en": {
        "title": "m, l, O and the weights after each tile of the worked example",
        "columns": ("start", "after tile 1", "after tile 2"),
        "score": "score x",
        "weights": "weights so far",
        "tile": "tile",
        "unseen": "not seen yet",
    },
    "zh": {
        "title": "手算例子：每个块之后的 m、l、O 和权重",
        "columns": ("开始", "第 1 块之后", "第 2 块之后"),
        "score": "分数 x",
        "weights": "目前的权重",
        "tile": "块",
        "unseen": "还没看到",
    },
}


def state_after(seen: int) -> tuple[str, str, str, list[Fraction]]:
    """m, l, O as written and the weights, after the first `seen` of the four numbers."""
    if seen == 0:
        return "−∞", "0", "0", []
    top = max(POWERS[:seen])
    weights = [Fraction(p, sum(POWERS[:seen])) for p in POWERS[:seen]]
    out = sum(w * v for w, v in zip(weights, VALUES, strict=False))
    return f"ln {top}", str(Fraction(sum(POWERS[:seen]), top)), str(out), weights


def state_column(x: float, seen: int, words: dict) -> list[str]:
    """One moment: four bars for the weights, below them m, l and O."""
    m, l, out, weights = state_after(seen)
    parts = [box(x, 112, 240, 268, "#ffffff", edge=LINE)]
    parts.append(text(x + 120, 138, words["columns"][seen // 2], 16, weight="bold"))
    for n in range(4):
        left, colour = x + 22 + n * 50, TILE_COLOURS[n // 2]
        if n >= seen:
            parts.append(box(left, 260, 42, 24, PAPER, edge=LINE, stroke_dasharray="4 3"))
            continue
        height = 150 * float(weights[n])
        parts.append(box(left, 284 - height, 42, height, colour, 0.8))
        parts.append(text(left + 21, 278 - height, str(weights[n]), 13))
    note = words["weights"] if seen else words["unseen"]
    parts.append(text(x + 120, 304, note, 13, fill=GREY))
    parts.append(text(x + 120, 334, f"m = {m}      l = {l}", 17))
    parts.append(text(x + 120, 364, f"O = {out}", 17, weight="bold"))
    return parts


def state(lang: str) -> str:
    words = STATE[lang]
    parts = []
    for n, (score, value) in enumerate(zip(("0", "ln 2", "ln 4", "0"), VALUES, strict=True)):
        x = 235 + n * 124 + (20 if n > 1 else 0)
        parts.append(box(x, 38, 116, 58, TILE_COLOURS[n // 2], 0.35))
        parts.append(text(x + 58, 61, f"x = {score}", 15))
        parts.append(text(x + 58, 84, f"v = {value}", 15))
    for n, x in enumerate((235 + 120, 503 + 120)):
        name = f"第 {n + 1} {words['tile']}" if lang == "zh" else f"{words['tile']} {n + 1}"
        parts.append(text(x, 28, name, 14, weight="bold", fill=GREY))
    for n, seen in enumerate((0, 2, 4)):
        parts += state_column(20 + n * 310, seen, words)
    for x, alpha in ((262, "α = 0"), (572, "α = 1/2")):
        parts.append(arrow([(x + 2, 246), (x + 64, 246)]))
        parts.append(text(x + 33, 234, alpha, 14))
    return picture(900, 396, words["title"], parts)


def main() -> None:
    for name, draw in (("memory", memory), ("tiles", tiles), ("state", state)):
        for lang in ("en", "zh"):
            (FOLDER / f"03-{name}.{lang}.svg").write_text(draw(lang), encoding="utf-8")


if __name__ == "__main__":
    main()
