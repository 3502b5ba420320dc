"""nbgrader's export, with the outcome of each submission beside its marks."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

from nbgrader.api import Gradebook, MissingEntry
from nbgrader.plugins import ExportPlugin

from flashcourse.grading.outcome import KINDS

FIELDS = ("assignment", "duedate", "timestamp", "student_id", "last_name", "first_name", "email",
          "raw_score", "late_submission_penalty", "score", "max_score", "outcome", "where",
          "doubts", "sandboxed")  # fmt: skip


class OutcomeExportPlugin(ExportPlugin):
    """A CSV with nbgrader's columns, then: outcome, where, doubts (how many), sandboxed."""

    def export(self, gradebook: Gradebook) -> None:
        target = Path(self.to or "grades.csv")
        self.log.info("Exporting grades to %s", target)
        with target.open("w", newline="", encoding="utf-8") as file:
            table = csv.DictWriter(file, FIELDS)
            table.writeheader()
            for assignment in gradebook.assignments:
                if self.assignment and assignment.name not in self.assignment:
                    continue
                for student in gradebook.students:
                    if not self.student or student.id in map(str, self.student):
                        table.writerow(self._row(gradebook, assignment, student))

    def _row(self, gradebook: Gradebook, assignment: Any, student: Any) -> dict[str, Any]:
        row: dict[str, Any] = {
            "assignment": assignment.name,
            "duedate": assignment.duedate or "",
            "student_id": _harmless(student.id),
            "last_name": _harmless(student.last_name or ""),
            "first_name": _harmless(student.first_name or ""),
            "email": _harmless(student.email or ""),
            "max_score": assignment.max_score,
        }
        try:
            submission = gradebook.find_submission(assignment.name, student.id)
        except MissingEntry:
            nothing = {"raw_score": 0.0, "late_submission_penalty": 0.0, "score": 0.0}
            return {**row, **nothing, "timestamp": "", "outcome": "no submission"}
        penalty = submission.late_submission_penalty or 0.0
        marks = {
            "timestamp": submission.timestamp or "",
            "raw_score": submission.score,
            "late_submission_penalty": penalty,
            "score": max(0.0, submission.score - penalty),
        }
        return {**row, **marks, **self._outcome(assignment.name, student.id)}

    def _outcome(self, assignment: str, student: str) -> dict[str, Any]:
        """The most serious outcome among the submission's notebooks."""
        folder = self.parent.coursedir
        where = folder.format_path(folder.autograded_directory, student, assignment)
        found = list(
            filter(None, map(grading_of, sorted(Path(folder.root, where).glob("*.ipynb"))))
        )
        if not found:
            return {"outcome": "", "where": "", "doubts": "", "sandboxed": ""}
        order = list(KINDS)
        worst = min(found, key=lambda grading: order.index(grading["outcome"]["kind"]))
        return {
            "outcome": worst["outcome"]["kind"],
            "where": worst["outcome"]["where"],
            "doubts": sum(len(grading["doubts"]) for grading in found),
            "sandboxed": all(grading["sandboxed"] for grading in found),
        }


def _harmless(text: str) -> str:
    """A spreadsheet takes a text that begins like this for a formula."""
    return f"'{text}" if text[:1] in ("=", "+", "-", "@") else text


def grading_of(path: Path) -> dict[str, Any] | None:
    """What was noted in a graded notebook (Graded.summary()), or None."""
    try:
        grading = json.loads(path.read_text("utf-8"))["metadata"]["flashcourse"]["grading"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return grading if isinstance(grading, dict) else None
