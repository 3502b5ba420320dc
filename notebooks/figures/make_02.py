"""Draw the figures of lesson 02_online_softmax, each in English and in Chinese.

    python notebooks/figures/make_02.py

The numbers of `running` are worked out here by the definition, m = max x[:j] and
l = Σ exp(x[:j] − m), so that the picture and the lesson's own numbers can't differ.
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

# ---------------------------------------------------------------- loads and stores per element

PASSES = {
    "en": {
        "title": "Loads and stores of each element of x, by kind of softmax",
        "rows": (
            ("naive", (("sum", 0),), "3, overflows"),
            ("safe", (("maximum m", 0), ("sum l", 0)), "4"),
            ("online", (("m and l together", 0),), "3"),
        ),
        "last": "write y",
        "pass": "pass {}: ",
        "load": "load x",
        "store": "store y",
        "total": "per element",
    },
    "zh": {
        "title": "三种 softmax 对 x 的每个元素的读写次数",
        "rows": (
            ("朴素", (("求和", 0),), "3，会溢出"),
            ("安全", (("最大值 m", 0), ("指数和 l", 0)), "4"),
            ("在线", (("同时求 m 和 l", 0),), "3"),
        ),
        "last": "写出 y",
        "pass": "第 {} 遍：",
        "load": "读 x",
        "store": "写 y",
        "total": "每个元素",
    },
}


def passes(lang: str) -> str:
    words = PASSES[lang]
    parts = [text(660, 34, words["total"], 13, fill=GREY)]
    for n, (name, works, total) in enumerate(words["rows"]):
        y = 50 + n * 92
        parts.append(text(20, y + 40, name, 16, anchor="start", weight="bold"))
        steps = [work for work, _ in works] + [words["last"]]
        for p, work in enumerate(steps):
            x, last = 100 + p * 170, p == len(steps) - 1
            parts.append(box(x, y, 156, 74, "#ffffff", edge=LINE))
            heading = words["pass"].format(p + 1) + work
            parts.append(text(x + 78, y + 25, heading, 13))
            width = 66 if last else 136
            parts.append(box(x + 10, y + 38, width, 26, BLUE, 0.25))
            parts.append(text(x + 10 + width / 2, y + 56, words["load"], 13))
            if last:
                parts.append(box(x + 80, y + 38, 66, 26, ORANGE, 0.45))
                parts.append(text(x + 113, y + 56, words["store"], 13))
        parts.append(text(660, y + 44, total, 18, weight="bold"))
    return picture(740, 330, words["title"], parts)


# ---------------------------------------------------------------- the running state

X = (1, 3, 2, 5)
RUNNING = {
    "en": {
        "title": "The state after each element of x = 1, 3, 2, 5",
        "max": "running maximum m",
        "rows": ("x", "m", "α", "l"),
        "note": "the base moves from 3 to 5:\nall that was summed shrinks by α",
    },
    "zh": {
        "title": "x = 1, 3, 2, 5，每个元素之后的状态",
        "max": "行最大值 m",
        "rows": ("x", "m", "α", "l"),
        "note": "基准从 3 变到 5：\n已加的一切都要乘 α 缩小",
    },
}


def states() -> list[tuple[str, str, str, str]]:
    """x, m, α and l after each element, as they are written in the picture."""
    rows = []
    for j, x in enumerate(X, 1):
        m = max(X[:j])
        l = sum(math.exp(value - m) for value in X[:j])
        alpha = math.exp(max(X[: j - 1]) - m) if j > 1 else 0.0
        rows.append((f"{x}", f"{m}", f"{alpha:.4g}", f"{l:.4f}" if j > 1 else "1"))
    return rows


def running(lang: str) -> str:
    words = RUNNING[lang]
    parts, base, unit, left, step = [], 190, 30, 110, 120
    parts.append(f'<path d="M60,{base} H600" stroke="{LINE}"/>')
    corner = [(left - 30, base - unit * max(X[:1]))]
    for j, row in enumerate(states(), 1):
        x, m = left + (j - 1) * step, max(X[:j])
        parts.append(box(x - 22, base - unit * X[j - 1], 44, unit * X[j - 1], BLUE, 0.3))
        corner += [(x - 30, base - unit * m), (x + step - 30, base - unit * m)]
        for n, (value, colour) in enumerate(zip(row, (BLUE, RED, BLACK, GREEN), strict=True)):
            weight = "bold" if n in (1, 3) else "normal"
            parts.append(text(x, base + 28 + n * 26, value, 15, fill=colour, weight=weight))
    path = " ".join(f"{x},{y}" for x, y in corner)
    parts.append(f'<polyline points="{path}" fill="none" stroke="{RED}" stroke-width="3"/>')
    parts.append(text(left + 60, base - unit * 3 - 12, words["max"], 14, fill=RED))
    for n, (name, colour) in enumerate(zip(words["rows"], (BLUE, RED, BLACK, GREEN), strict=True)):
        parts.append(text(38, base + 28 + n * 26, name, 16, fill=colour, weight="bold"))
    parts.append(lines(585, 66, words["note"], 14, 20, anchor="start", fill=GREY))
    return picture(820, 310, words["title"], parts)


# ---------------------------------------------------------------- merge in any order

MERGE = {
    "en": {
        "title": "The same 4 pieces of keys, merged in 3 ways, give the same state",
        "names": ("chain (one worker)", "tree (splits)", "another order"),
        "same": "the same (m, l, O)",
    },
    "zh": {
        "title": "同样 4 段 key，用 3 种方式合并，得到同一个状态",
        "names": ("链（一个工人）", "树（多份并行）", "换个次序"),
        "same": "同一个 (m, l, O)",
    },
}
COLOURS = {"A": BLUE, "B": GREEN, "C": ORANGE, "D": PURPLE}
# Each way: the leaves from left to right, and the nodes as (level, the two things they join).
WAYS = (
    ("ABCD", ((1, "A", "B"), (2, "AB", "C"), (3, "ABC", "D"))),
    ("ABCD", ((1, "A", "B"), (1, "C", "D"), (2, "AB", "CD"))),
    ("DBAC", ((1, "D", "B"), (2, "DB", "A"), (3, "DBA", "C"))),
)


def way(left: float, leaves: str, nodes: tuple[tuple[int, str, str], ...]) -> list[str]:
    """One tree, growing downwards from its leaves."""
    places = {leaf: (left + 30 + n * 58, 80.0) for n, leaf in enumerate(leaves)}
    parts = []
    for level, a, b in nodes:
        (xa, ya), (xb, yb) = places[a], places[b]
        x, y = (xa + xb) / 2, 80.0 + level * 58
        places[a + b] = (x, y)
        for px, py in ((xa, ya), (xb, yb)):
            parts.append(f'<path d="M{px:g},{py:g} L{x:g},{y:g}" stroke="{BLACK}"/>')
    for name, (x, y) in places.items():
        if len(name) == 1:
            parts.append(box(x - 20, y - 18, 40, 36, "#ffffff"))
            parts.append(box(x - 20, y - 18, 40, 36, COLOURS[name], 0.35))
            parts.append(text(x, y + 6, name, 17, weight="bold"))
        else:
            parts.append(f'<circle cx="{x:g}" cy="{y:g}" r="14" fill="#fff" stroke="{BLACK}"/>')
            parts.append(text(x, y + 7, "⊕", 20))
    x, y = places["".join(nodes[-1][1:])]
    parts.append(arrow([(x, y + 16), (x, 300)]))
    return parts


def merge(lang: str) -> str:
    words = MERGE[lang]
    parts = []
    for n, (name, (leaves, nodes)) in enumerate(zip(words["names"], WAYS, strict=True)):
        left = 20 + n * 260
        parts.append(text(left + 117, 38, name, 15, weight="bold"))
        parts += way(left, leaves, nodes)
    parts.append(box(40, 304, 710, 34, "#ffffff", edge=LINE))
    parts.append(text(395, 326, words["same"], 15))
    return picture(790, 352, words["title"], parts)


def main() -> None:
    for name, draw in (("passes", passes), ("running", running), ("merge", merge)):
        for lang in ("en", "zh"):
            (FOLDER / f"02-{name}.{lang}.svg").write_text(draw(lang), encoding="utf-8")


if __name__ == "__main__":
    main()
