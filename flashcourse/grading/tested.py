"""What comes of running a test cell: its mark, what it shows, and what it says of the outcome."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from flashcourse.grading.course import CourseCell
from flashcourse.grading.outcome import CellMark, Outcome
from flashcourse.words import Text

_EVENTS = {"too_slow": "timed_out", "crashed": "crashed", "unfinished": "unfinished"}


@dataclass(frozen=True)
class Tested:
    """count: the execution count that the cell shows, None where it was not run."""

    mark: CellMark
    outputs: list[dict[str, Any]]
    count: int | None = None

    @property
    def event(self) -> Outcome | None:
        """What the test says of the submission's outcome, if anything."""
        if self.mark.status not in _EVENTS:
            return None
        words = str(self.mark.detail)
        memory = is_memory_error(words.partition(":")[0], words)
        kind = "out_of_memory" if memory else _EVENTS[self.mark.status]
        return Outcome(kind, self.mark.grade_id, self.mark.detail)


def tested(test: CourseCell, answer: dict[str, Any], count: int) -> Tested:
    """From what the process that ran the test says."""
    return Tested(_mark(test, answer), _quiet(answer["outputs"]), count)


def not_run(test: CourseCell, ended: Outcome) -> Tested:
    """Of a test that was not run since the student's process had ended before it."""
    text = ended.text()
    output = {
        "output_type": "error",
        "ename": "NotRun",
        "evalue": text.en,
        "traceback": [f"{text.en}\n{text.zh}"],
    }
    return Tested(CellMark(test.grade_id, 0.0, test.points, "not_run"), [output])


def _mark(test: CourseCell, answer: dict[str, Any]) -> CellMark:
    name, worth = test.grade_id, test.points
    error, marks = answer.get("error"), answer.get("marks")
    if error is not None:
        status = error["kind"] if error["whose"] == "student" else "wrong"
        return CellMark(name, 0.0, worth, status, f"{error['type']}: {error['message']}")
    points = answer["points"]
    if points is None:
        # A test of plain asserts says nothing when it passes; anything else is no number.
        points = worth if answer["silent"] and "mark(" not in test.source else 0.0
    points = min(max(points, 0.0), worth)
    status = "right" if points == worth else "wrong"
    if marks is not None and marks["status"] != "right":
        status = marks["status"]
    findings = tuple(marks["findings"]) if marks else ()
    detail = Text(*(words[:300] for words in findings[0]["text"])) if findings else ""
    return CellMark(name, points, worth, status, detail, findings)


def _quiet(outputs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """nbgrader takes a test's stderr for a failure; a warning is none."""
    for output in outputs:
        if output["output_type"] == "stream":
            output["name"] = "stdout"
    return outputs


def is_memory_error(name: str, message: str) -> bool:
    """Whether an exception of that name and message says that memory ran out."""
    text = message.lower()
    return name.endswith("MemoryError") or (
        "allocate memory" in text or "not enough memory" in text or "defaultcpuallocator" in text
    )
