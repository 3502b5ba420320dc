"""A Marks as an HTML card: what is right, the first thing that is wrong, and hints to open."""

from __future__ import annotations

from html import escape

from flashcourse.checks.marks import Marks


def card(marks: Marks) -> str:
    """Self-contained HTML (no script, no network)."""
    lang = marks.lang
    items = "".join(f"<li>✓ {escape(text.in_(lang))}</li>" for text in marks.passed)
    first = "".join(f"<p>✗ {escape(f.text.in_(lang))}</p>" for f in marks.findings[:1])
    title = f"{escape(marks.exercise)}: {marks.points:g} / {marks.max_points:g}"
    return f"<div><strong>{title}</strong><ul>{items}</ul>{first}</div>"
