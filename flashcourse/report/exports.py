"""The marks as files: everything as CSV, and what Moodle and Canvas import."""

from __future__ import annotations

import csv
import io
from typing import Any

from flashcourse.collecting.roster import Student
from flashcourse.grading.feedback import not_final
from flashcourse.grading.outcome import KINDS
from flashcourse.report.gather import Class, Work
from flashcourse.report.insight import outcome_text
from flashcourse.words import Text


def marks_csv(known: Class, lang: str) -> str:
    """One line a student: points by grade id, the total, the outcome, doubts."""
    ids = list(known.grade_ids())
    header = ["student", "name", "edition", *ids, "total", "max", "outcome", "doubts"]
    rows = [
        [
            work.student,
            work.name,
            work.lang,
            *("" if work.points.get(i) is None else f"{work.points[i]:g}" for i in ids),
            f"{work.total:g}",
            f"{known.max_score:g}",
            KINDS[work.outcome].in_(lang),
            len(work.doubts),
        ]
        for work in known.works
    ]
    rows += [[student, name, "", *[""] * len(ids), "", f"{known.max_score:g}", "", 0]
             for student, name in known.missing]  # fmt: skip
    return to_csv([header, *rows])


def left_out(known: Class) -> list[str]:
    """Students that a learning platform can't know: an import stops at the first of them."""
    return [w.student for w in known.works if known.roster and not known.roster.by_id(w.student)]


def moodle_csv(known: Class, lang: str, column: str = "") -> str:
    """For Grades → Import → CSV: map 'ID number' or 'Email address', and the lesson's column.

    column: its head; '' for the lesson's title.
    """
    title, strangers = column or known.title.in_(lang), left_out(known)
    header = ["ID number", "Full name", "Email address", title, "Feedback"]
    rows = [
        [
            work.student,
            work.name,
            details(known, work).get("email", ""),
            f"{work.total:g}",
            feedback(work).in_(work.lang),
        ]
        for work in known.works
        if work.student not in strangers
    ]
    return to_csv([header, *rows])


def feedback(work: Work) -> Text:
    """How it ended, and what is still to be marked."""
    ended = outcome_text(work)
    left = {i: work.max_points[i] for i, points in work.points.items() if points is None}
    if not left:
        return ended
    more = not_final(left)
    return Text(f"{ended.en} {more.en}", f"{ended.zh}{more.zh}")


def canvas_csv(known: Class, lang: str, column: str = "") -> str:
    """For Gradebook → Import: Canvas asks which assignment the column is, or makes one.

    column: its head; '' for the lesson's title. 'Name (4711)', as Canvas's own export has it, is
    matched without a question.
    """
    title, strangers = column or known.title.in_(lang), left_out(known)
    header = ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", title]
    possible = ["    Points Possible", "", "", "", "", f"{known.max_score:g}"]
    rows = []
    for work in known.works:
        if work.student in strangers:
            continue
        row = details(known, work)
        last, first = row.get("last_name", ""), row.get("first_name", "")
        name = f"{last}, {first}" if last and first else work.name or work.student
        login = row.get("login") or row.get("email", "")
        section = row.get("section", "")
        rows.append(
            [name, row.get("canvas_id", ""), work.student, login, section, f"{work.total:g}"]
        )
    return to_csv([header, possible, *rows])


def details(known: Class, work: Work) -> dict[str, str]:
    student: Student | None = known.roster.by_id(work.student)
    return student.row if student else {}


def to_csv(rows: list[list[Any]]) -> str:
    """With a byte order mark, so that a spreadsheet reads Chinese names."""
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\r\n").writerows(
        [[harmless(v) for v in row] for row in rows]
    )
    return "\ufeff" + buffer.getvalue()


def harmless(value: Any) -> Any:
    """A spreadsheet takes a text that begins like this for a formula."""
    text = str(value)
    return f"'{text}" if text[:1] in ("=", "+", "-", "@", "\t", "\r") else text
