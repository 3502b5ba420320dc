"""The report's pictures: SVG whose colours are the page's, readable without colour too."""

from __future__ import annotations

from html import escape

from flashcourse.report.insight import STATUSES, Row
from flashcourse.words import Text

STATUS_WORDS = {
    "right": Text("right", "正确"),
    "carried": Text("right but for a slip counted elsewhere", "除别处已扣分的错误外正确"),
    "partly": Text("partly right", "部分正确"),
    "wrong": Text("wrong", "错误"),
    "unfinished": Text("not finished", "没写完"),
    "crashed": Text("raised an error", "抛出错误"),
    "too_slow": Text("too slow", "太慢"),
    "not_run": Text("could not run", "无法运行"),
    "manual": Text("to be marked by hand", "等待人工评分"),
}
BINS = 10


def histogram(shares: list[float], lang: str) -> str:
    """How many students reached which share of the points (0 to 1), in ten bins."""
    counts = [0] * BINS
    for share in shares:
        counts[min(BINS - 1, int(share * BINS + 1e-9))] += 1
    top = max([*counts, 1])
    bar, gap, height = 52, 6, 120
    parts = []
    for number, count in enumerate(counts):
        x, tall = number * (bar + gap), round(height * count / top)
        y = height - tall + 20
        if count:
            parts.append(
                f'<rect class="bar" x="{x}" y="{y}" width="{bar}" height="{tall}" rx="3"/>'
            )
            parts.append(f'<text class="count" x="{x + bar / 2}" y="{y - 5}">{count}</text>')
        limits = f"{number * 10}–{number * 10 + 10}"
        parts.append(f'<text class="axis" x="{x + bar / 2}" y="{height + 37}">{limits}</text>')
    width = BINS * (bar + gap)
    parts.append(f'<line class="base" x1="0" x2="{width}" y1="{height + 20}" y2="{height + 20}"/>')
    label = Text("students by marks, in percent", "各分数段（百分制）的学生人数").in_(lang)
    return svg(width, height + 46, label, parts)


def status_bar(row: Row, lang: str) -> str:
    """One exercise: how many students ended how, as one stacked bar."""
    total = sum(row.counts.values()) or 1
    width, height, x = 420, 22, 0.0
    parts, said = [], []
    for status in STATUSES:
        count = row.counts.get(status, 0)
        if not count:
            continue
        wide = width * count / total
        words = Text("{}: {}", "{}：{}").in_(lang).format(STATUS_WORDS[status].in_(lang), count)
        said.append(words)
        parts.append(
            f'<rect class="s-{status}" x="{x:.1f}" y="0" width="{max(wide - 1, 1):.1f}" '
            f'height="{height}"><title>{escape(words)}</title></rect>'
        )
        if wide > 16:
            parts.append(
                f'<text class="inbar t-{status}" x="{x + wide / 2:.1f}" y="15.5">{count}</text>'
            )
        x += wide
    return svg(width, height, f"{row.label}: {', '.join(said)}", parts)


def svg(width: float, height: float, label: str, parts: list[str]) -> str:
    return (
        f'<svg viewBox="0 0 {width} {height}" width="{width}" role="img" '
        f'aria-label="{escape(label)}">{"".join(parts)}</svg>'
    )
