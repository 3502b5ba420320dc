"""What a gradebook says, in a form that can be compared."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nbgrader.api import Gradebook, SubmittedAssignment


def dump(root: Path, db_url: str | None = None) -> dict[str, dict[str, Any]]:
    """{student: scores, manual marks, comments, what waits for a person, flags}."""
    with Gradebook(db_url or f"sqlite:///{root}/gradebook.db") as book:
        submissions = book.db.query(SubmittedAssignment).all()
        return {s.student_id: _submission(s) for s in submissions}


def _submission(submission: SubmittedAssignment) -> dict[str, Any]:
    grades = [grade for notebook in submission.notebooks for grade in notebook.grades]
    comments = [comment for notebook in submission.notebooks for comment in notebook.comments]
    return {
        "scores": {g.name: g.auto_score for g in sorted(grades, key=lambda g: g.name)},
        "manual": {g.name: g.manual_score for g in grades if g.manual_score is not None},
        "needs_manual_grade": sorted(g.name for g in grades if g.needs_manual_grade),
        "comments": {c.name: c.auto_comment for c in sorted(comments, key=lambda c: c.name)},
        "flagged": [n.flagged for n in submission.notebooks],
        "late": submission.late_submission_penalty,
    }
