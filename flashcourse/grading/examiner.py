"""The process that runs the test cells. The student's code never enters it.

The names of the student's are stand-ins here; what they return is data of checked types.
"""

from __future__ import annotations

import contextlib
import math
import os
import time
from typing import Any

import torch

from flashcourse.grading.channel import Channel, ChannelClosed
from flashcourse.grading.limits import MIB, Limits
from flashcourse.grading.names import CourseNames
from flashcourse.grading.shell import CellShell
from flashcourse.grading.standin import StandInError, Student, StudentGone
from flashcourse.running import Failure


def serve(channel: Channel, student: Channel, shell: CellShell, limits: Limits) -> None:
    """Run test cells until the other side hangs up."""
    examiner = _Examiner(Student(student, limits.cell_seconds, limits.grace_seconds), shell, limits)
    while True:
        try:
            request, _ = channel.receive()
        except ChannelClosed:
            return
        channel.send(examiner.answer(request))


_STUCK = Failure("too_slow", "TimeLimitReached", "it was stopped in an earlier cell")


class _Examiner:
    def __init__(self, student: Student, shell: CellShell, limits: Limits) -> None:
        self.student, self.shell, self.limits = student, shell, limits
        self.names = CourseNames([], set())

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        if request["do"] == "prepare":
            os.environ.update(request["environment"])
            _use_language(request["language"])
            self.names = CourseNames(request["course"], set(request["answers"]))
            return {"prepared": True}
        if request["do"] == "measure":
            return self._measure(request)
        return self._test(request)

    def _measure(self, request: dict[str, Any]) -> dict[str, Any]:
        """Call an attention function on inputs large enough to be seen from outside."""
        self.student.deadline = time.monotonic() + request["seconds"]
        self.student.call_seconds = request["seconds"]
        try:
            function = self.student.look(request["name"])
            q, k, v = torch.randn(3, request["rows"], 2)
            return {"called": function(q, k, v, block_size=request["block_size"]) is not None}
        except (StandInError, NameError, TypeError, ValueError):
            return {"called": False}

    def _test(self, request: dict[str, Any]) -> dict[str, Any]:
        self.student.deadline = time.monotonic() + request["seconds"]
        self.student.at(request["state"])
        self.student.seconds, self.student.calls = 0.0, 0
        for identity in request["stuck"]:
            self.student.slow.setdefault(identity, _STUCK)
        source, names = request["source"], request["names"]
        # Where the student's process is gone the cell runs all the same, and says so.
        with contextlib.suppress(StudentGone):
            self.names.provide(set(names), self.shell.user_ns, self.student)
        shown = self.limits.shown_kib * 1024
        done = self.shell.run(source, request["count"], shown, 64 * MIB)
        return {
            "outputs": done.outputs,
            "passed": done.error is None,
            "points": _points(done.result),
            "silent": done.result is None,
            "marks": _marks_data(done.result),
            "error": _error_data(done.error),
            "gone": self.student.gone,
            "slow": bool(self.student.slow),
            "student_seconds": self.student.seconds,
            "calls": self.student.calls,
            "doubts": [list(doubt) for doubt in self.student.doubts.values()],
        }


def _use_language(language: str | None) -> None:
    from flashcourse.words import use_language

    if language in ("en", "zh"):
        use_language(language)


def _points(result: Any) -> float | None:
    """What the cell's last value is worth: a number or Marks; None for anything else."""
    if result is None:
        return None
    value = getattr(result, "points", result)
    if isinstance(value, (int, float)) and math.isfinite(value):
        return float(value)
    return None


def _marks_data(result: Any) -> dict[str, Any] | None:
    from flashcourse.checks.marks import Marks

    if not isinstance(result, Marks):
        return None
    return {
        "exercise": result.exercise,
        "points": result.points,
        "max_points": result.max_points,
        "status": result.status,
        "findings": [_finding_data(finding) for finding in result.findings[:20]],
    }


def _finding_data(finding: Any) -> dict[str, Any]:
    """A Finding as plain data, each sentence as [English, Chinese]."""
    return {
        "text": list(finding.text),
        "todo": finding.todo,
        "misconception": finding.misconception,
        "line": finding.line,
        "hints": [list(hint) for hint in finding.hints],
    }


def _error_data(error: BaseException | None) -> dict[str, Any] | None:
    if error is None:
        return None
    failure = getattr(error, "__flashcourse_failure__", None)
    if isinstance(error, StandInError) and failure is not None:
        return {
            "whose": "student",
            "kind": failure.kind,
            "type": failure.type_name,
            "message": failure.message,
            "line": failure.line,
        }
    return {
        "whose": "test",
        "kind": "wrong",
        "type": type(error).__name__,
        "message": str(error)[:500],
        "line": None,
    }
