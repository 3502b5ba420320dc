"""Write marks to nbgrader's gradebook: one transaction a submission."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from nbgrader.api import (
    Assignment,
    Comment,
    Grade,
    Gradebook,
    MissingEntry,
    Notebook,
    Student,
    SubmittedAssignment,
    SubmittedNotebook,
    new_uuid,
)

from flashcourse.grading.errors import GradingError
from flashcourse.grading.outcome import Outcome
from flashcourse.words import Text

NO_ANSWER = Text(
    "No answer: this cell is as it was handed out.", "没有作答：这个单元格和发放时一样。"
)
NOT_SANDBOXED = Text("Graded without a sandbox.", "评分时没有使用沙箱。")

# Late submissions: (student, score, seconds late) → points to take off, or None.
Penalty = Callable[[str, float, float], "float | None"]


class GradebookError(GradingError):
    """The gradebook does not know this lesson. The message says what to do."""


def open_gradebook(db_url: str, course_id: str) -> Gradebook:
    """nbgrader's gradebook. A new one is made by a program that it looks for on PATH."""
    import os
    import sys

    folder = os.path.dirname(sys.executable)
    if folder not in os.environ.get("PATH", "").split(os.pathsep):
        os.environ["PATH"] = os.pathsep.join([folder, os.environ.get("PATH", "")])
    return Gradebook(db_url, course_id or "default_course")


@dataclass(frozen=True)
class _Rows:
    """What the gradebook has of one notebook; grades and comments by the id of their cell."""

    notebook: SubmittedNotebook
    grades: dict[str, Grade]
    comments: dict[str, Comment]


class MarksWriter:
    """Stores the marks of one lesson's submissions. Not for more than one thread."""

    def __init__(self, gradebook: Gradebook, lesson: str, penalty: Penalty | None = None) -> None:
        self.gradebook, self.lesson, self.penalty = gradebook, lesson, penalty
        self.db = gradebook.db
        try:
            assignment = gradebook.find_assignment(lesson)
        except MissingEntry:
            raise GradebookError(
                f"the gradebook has no lesson {lesson!r}: "
                f"run `nbgrader generate_assignment {lesson}`"
            ) from None
        self.assignment_id = assignment.id
        self.notebooks = {notebook.name: notebook.id for notebook in assignment.notebooks}
        self._cells = {n.name: _cell_ids(n) for n in assignment.notebooks}

    def students(self) -> set[str]:
        """Everybody who has a submission of this lesson in the gradebook."""
        query = self.db.query(SubmittedAssignment.student_id)
        return {row[0] for row in query.filter_by(assignment_id=self.assignment_id)}

    def store(
        self, student: str, summaries: dict[str, dict[str, Any]], timestamp: datetime | None = None
    ) -> None:
        """The marks of one student's submission: {notebook: Graded.summary()}, all or nothing."""
        try:
            submission, rows = self._submission(student)
            if timestamp is not None:
                submission.timestamp = timestamp
            for name, summary in summaries.items():
                self._fill(rows[name], name, summary)
            self.db.flush()
            if self.penalty is not None:
                self._apply_penalty(submission)
            self.db.commit()
        except BaseException:
            self.db.rollback()
            raise
        finally:
            # Thousands of submissions must not stay in memory.
            self.db.expunge_all()

    def _submission(self, student: str) -> tuple[SubmittedAssignment, dict[str, _Rows]]:
        """The student's submission and its rows by notebook, made if they are not there yet."""
        query = self.db.query(SubmittedAssignment)
        found = query.filter_by(assignment_id=self.assignment_id, student_id=student).first()
        if found is None:
            return self._new_submission(student)
        query = self.db.query(SubmittedNotebook).filter_by(assignment_id=found.id)
        notebooks = {notebook.notebook_id: notebook for notebook in query}
        return found, {name: self._rows(notebooks[id]) for name, id in self.notebooks.items()}

    def _rows(self, notebook: SubmittedNotebook) -> _Rows:
        grades = self.db.query(Grade).filter_by(notebook_id=notebook.id)
        comments = self.db.query(Comment).filter_by(notebook_id=notebook.id)
        return _Rows(
            notebook,
            {grade.cell_id: grade for grade in grades},
            {comment.cell_id: comment for comment in comments},
        )

    def _new_submission(self, student: str) -> tuple[SubmittedAssignment, dict[str, _Rows]]:
        if self.db.get(Student, student) is None:
            self.db.add(Student(id=student))
        # Ids of our own: nothing has to be written before all of it is there.
        submission = SubmittedAssignment(
            id=new_uuid(), assignment_id=self.assignment_id, student_id=student
        )
        rows: dict[str, _Rows] = {}
        for name, notebook_id in self.notebooks.items():
            id, (graded, answered) = new_uuid(), self._cells[name]
            rows[name] = _Rows(
                SubmittedNotebook(id=id, notebook_id=notebook_id, assignment_id=submission.id),
                {cell: Grade(cell_id=cell, notebook_id=id) for cell in graded.values()},
                {cell: Comment(cell_id=cell, notebook_id=id) for cell in answered.values()},
            )
        self.db.add(submission)
        for row in rows.values():
            self.db.add_all([row.notebook, *row.grades.values(), *row.comments.values()])
        return submission, rows

    def _fill(self, rows: _Rows, name: str, summary: dict[str, Any]) -> None:
        graded, answered = self._cells[name]
        for grade_id, points in summary["points"].items():
            if grade_id in graded:
                _set_grade(rows.grades[graded[grade_id]], points)
        for grade_id, cell_id in answered.items():
            rows.comments[cell_id].auto_comment = comment_text(summary, grade_id)
        if summary["doubts"]:
            rows.notebook.flagged = True

    def _apply_penalty(self, submission: SubmittedAssignment) -> None:
        late = submission.total_seconds_late
        if late > 0:
            self.db.expire_all()  # the scores that a penalty depends on are the database's sums
        for notebook in submission.notebooks:
            notebook.late_submission_penalty = None
            if late > 0 and self.penalty is not None:
                points = self.penalty(submission.student_id, notebook.score, late)
                if points is not None:
                    notebook.late_submission_penalty = min(max(points, 0), notebook.score)


def _cell_ids(notebook: Notebook) -> tuple[dict[str, str], dict[str, str]]:
    tasks = {cell.name: cell.id for cell in notebook.task_cells}
    graded = {cell.name: cell.id for cell in notebook.grade_cells}
    answered = {cell.name: cell.id for cell in notebook.solution_cells}
    return {**graded, **tasks}, {**answered, **tasks}


def _set_grade(grade: Grade, points: float | None) -> None:
    grade.auto_score = points
    # As nbgrader does: a mark given by hand is kept, and looked at again.
    grade.needs_manual_grade = points is None or grade.manual_score is not None


def comment_text(summary: dict[str, Any], grade_id: str) -> str | None:
    """What the gradebook says beside an answer, in the student's language; None if nothing."""
    lang, outcome = summary["lang"], Outcome(**summary["outcome"])
    parts: list[str] = []
    if outcome.kind != "graded":
        parts.append(outcome.text().in_(lang))
    if grade_id in summary["unchanged"] and outcome.kind not in ("unreadable", "foreign"):
        parts.append(NO_ANSWER.in_(lang))
    if not summary["sandboxed"]:
        parts.append(NOT_SANDBOXED.in_(lang))
    return "\n".join(parts) or None


def lessons_of(gradebook: Gradebook) -> list[str]:
    return [name for (name,) in gradebook.db.query(Assignment.name)]
