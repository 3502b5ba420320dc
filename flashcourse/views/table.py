"""A small table: HTML in a notebook, aligned text elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any
from unicodedata import east_asian_width

from flashcourse.views.svg import LINE

_CELL = f"padding:.25em .8em;border:1px solid {LINE};text-align:right"


def _width(words: str) -> int:
    return sum(2 if east_asian_width(c) in "WF" else 1 for c in words)


@dataclass(frozen=True)
class Table:
    """header: the columns' names. rows: as many values each; they are shown by str()."""

    header: Sequence[str]
    rows: Iterable[Sequence[Any]]

    def __post_init__(self) -> None:
        rows = tuple(tuple(str(value) for value in row) for row in self.rows)
        for row in rows:
            if len(row) != len(self.header):
                raise ValueError(f"a row has {len(row)} values, the header {len(self.header)}")
        object.__setattr__(self, "rows", rows)

    def __repr__(self) -> str:
        lines = [tuple(self.header), *self.rows]
        widths = [max(_width(line[n]) for line in lines) for n in range(len(self.header))]
        return "\n".join(
            "  ".join(" " * (w - _width(cell)) + cell for cell, w in zip(line, widths, strict=True))
            for line in lines
        )

    def _repr_html_(self) -> str:
        head = "".join(f'<th style="{_CELL}">{escape(name)}</th>' for name in self.header)
        body = "".join(
            "<tr>"
            + "".join(f'<td style="{_CELL};white-space:nowrap">{escape(c)}</td>' for c in row)
            + "</tr>"
            for row in self.rows
        )
        return (
            f'<table style="border-collapse:collapse"><thead><tr>{head}</tr></thead>'
            f"<tbody>{body}</tbody></table>"
        )
