"""What a check returns: points, a status and findings, and how these show themselves.

In a notebook a `Marks` is a card; as plain text it is the number of points, which is what
nbgrader reads as partial credit.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from flashcourse.words import Text

STATUSES = ("right", "wrong", "unfinished", "crashed", "too_slow")


@dataclass(frozen=True)
class Finding:
    """One thing that a check has to say about the learner's answer.

    text: what is wrong, with the learner's number beside the right one.
    todo: the TODO it belongs to (1–6 in lesson 3), or None.
    tile: the learner's loop variables (i, j), that is first row and first column, or None.
    misconception: an id of the table in `checks/misconceptions.py`, or None: no guess.
    hints: a question, the formula, the line; the learner opens one after the other.
    variable, line: the name and the line number (in the learner's cell) it is about, or None.
    source_line: that line as it stands there, None where it is not at hand.
    """

    text: Text
    todo: int | None = None
    tile: tuple[int, int] | None = None
    misconception: str | None = None
    hints: tuple[Text, ...] = ()
    variable: str | None = None
    line: int | None = None
    source_line: str | None = None


@dataclass(frozen=True)
class Marks:
    """Points for one exercise, and why.

    status: 'right' (full marks), 'wrong', 'unfinished', 'crashed' or 'too_slow'.
    passed: what is right already, one sentence each.
    """

    exercise: str
    points: float
    max_points: float
    status: str
    findings: tuple[Finding, ...] = ()
    passed: tuple[Text, ...] = ()
    lang: str = "en"
    details: dict = field(default_factory=dict, compare=False)

    def __post_init__(self) -> None:
        if self.status not in STATUSES:
            raise ValueError(f"unknown status {self.status!r}: one of {', '.join(STATUSES)}")
        if not 0 <= self.points <= self.max_points:
            raise ValueError(f"{self.points} points of {self.max_points}")

    def __repr__(self) -> str:
        return f"{self.points:g}"

    def _repr_html_(self) -> str:
        from flashcourse.checks.card import card

        return card(self)
