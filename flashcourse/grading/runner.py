"""Run one submission: student's cells in one process, tests in another, both watched."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, field, replace
from typing import Any

from flashcourse.grading.assemble import Plan, Planned
from flashcourse.grading.channel import BadFrame, ChannelClosed, ChannelTimeout
from flashcourse.grading.course import CourseNotebook
from flashcourse.grading.doubts import identifiers, tile_functions
from flashcourse.grading.limits import Limits
from flashcourse.grading.outcome import CellMark, Outcome
from flashcourse.grading.outputs import checked_outputs
from flashcourse.grading.pool import Pool, Process, readable
from flashcourse.grading.tested import Tested, is_memory_error, not_run, tested
from flashcourse.words import Text

WATCH_SECONDS = 0.04
# One core is a submission's share; whoever takes more takes it from the others.
SPARE_SECONDS = 3.0
# All scores are 9 MiB, more than what the C library keeps for itself (see zygote.py); 8 × 8 tiles.
ROWS, TILE = 1536, 192
WHOLE_MIB = ROWS * ROWS * 4 / 2**20


@dataclass
class Run:
    """What came of the cells so far. ended: why the student's process is no more, or None."""

    outputs: dict[int, list[dict[str, Any]]] = field(default_factory=dict)
    counts: dict[int, int] = field(default_factory=dict)
    marks: dict[int, CellMark] = field(default_factory=dict)
    events: list[Outcome] = field(default_factory=list)
    ended: Outcome | None = None
    doubts: list[Text] = field(default_factory=list)
    student_seconds: float = 0.0
    peak_mib: float = 0.0


def _points(tests: list[Tested]) -> float:
    return sum(one.mark.points or 0.0 for one in tests)


def _id(cell: Planned) -> str:
    return cell.course.grade_id if cell.course is not None else ""


class Ended(Exception):
    """One of the two processes had to be ended, or ended itself."""

    def __init__(self, kind: str, detail: str | Text = "") -> None:
        super().__init__(kind)
        self.kind, self.detail = kind, detail


class Runner:
    """Runs the cells of one plan. environment: variables for the tests, never for the student."""

    def __init__(
        self, pool: Pool, limits: Limits, course: CourseNotebook, environment: dict[str, str]
    ) -> None:
        self.pool, self.limits, self.course = pool, limits, course
        self.environment = environment
        self.result = Run()
        self._count = self._states = 0
        self._tested: dict[frozenset[str], list[Tested]] = {}
        self._tried: dict[frozenset[str], int] = {}
        self._stuck: list[str] = []
        self._sources = {cell.grade_id: cell.source for cell in course.cells}
        self._began = time.monotonic()
        self._until = self._began + limits.total_seconds

    def run(self, plan: Plan, lang: str) -> Run:
        """Run every cell up to the last test. Raises PoolError if the sandbox itself fails."""
        self.student = self.pool.fork("student", self.limits)
        try:
            limits = replace(EXAMINER_LIMITS, grace_seconds=self.limits.grace_seconds)
            limits = replace(limits, cell_seconds=self.limits.cell_seconds)
            self.examiner = self.pool.fork("examiner", limits, self.student.sock)
            try:
                self._prepare(lang)
                self._run_cells(plan.cells)
                self._measure()
            finally:
                self.examiner.close()
        finally:
            self.result.peak_mib = self.student.peak_mib
            self.student.close()
        return self.result

    def _prepare(self, lang: str) -> None:
        request = {
            "do": "prepare",
            "environment": self.environment,
            "language": lang,
            "course": self.course.behind_tests,
            "answers": sorted(self.course.answers),
        }
        self._ask(self.examiner, request, 30.0)

    def _run_cells(self, cells: tuple[Planned, ...]) -> None:
        tests = [n for n, cell in enumerate(cells) if cell.role == "test"]
        for index in range(tests[-1] + 1 if tests else len(cells)):
            cell = cells[index]
            if cell.role == "test":
                self._run_together(index, cells)
            elif cell.role in ("code", "answer", "own") and self._is_run(cell):
                self._run_student(index, cell)
        shown = (one.event for group in self._tested.values() for one in group)
        self.result.events += [event for event in shown if event is not None]

    def _is_run(self, cell: Planned) -> bool:
        skipped = cell.course is not None and cell.course.skipped
        return self.result.ended is None and not skipped and bool(cell.source.strip())

    def _run_student(self, index: int, cell: Planned) -> None:
        where = cell.course.grade_id or cell.course.key if cell.course else "own"
        seconds = min(self.limits.cell_seconds, self._until - time.monotonic())
        self._count += 1
        self._states += cell.role != "code"  # the course's own cells define no answers
        request = {"do": "run", "source": cell.source, "count": self._count, "seconds": seconds}
        try:
            if seconds <= 0:
                most = f"{self.limits.total_seconds:g}"
                raise Ended("timed_out", Text(f"{most} s in all", f"总共 {most} 秒"))
            answer = self._ask(self.student, request, seconds)
            self.result.counts[index] = self._count
            self.result.outputs[index] = checked_outputs(answer.get("outputs"))
            self._note(cell, where, answer)
        except Ended as end:
            self._end(where, end)

    def _measure(self) -> None:
        """Watch from outside whether a function that claims tiles makes the whole score matrix."""
        for cell in self.course.cells:
            # An answer that was handed out with exact attention in it makes that matrix by order.
            if cell.role != "answer" or "attention" in identifiers(cell.shown):
                continue
            for name in tile_functions(cell.shown):
                share = self._share(name)
                if share and not self._measured(name) and share == 1:
                    self._doubt(not_measured(name))

    def _share(self, name: str) -> float:
        """The share of the points of the tests that call a function which it got."""
        tests = [
            mark
            for mark in self.result.marks.values()
            if re.search(rf"\b{name}\b", self._sources[mark.grade_id])
        ]
        worth = sum(mark.max_points for mark in tests)
        return sum(mark.points or 0 for mark in tests) / worth if worth else 0.0

    def _measured(self, name: str) -> bool:
        """Measure one function; False where it does not come back as it does with few rows."""
        if self.result.ended is not None:
            return False
        try:
            half = self._seconds_of(name, ROWS // 2)
            if not self.student.forget_peak():
                return True  # the kernel does not allow it
            whole = self._seconds_of(name, ROWS)
        except Ended as end:
            self._end("", end)
            return False
        if half is None or whole is None:
            return False
        if self.student.grown_mib() > 0.9 * WHOLE_MIB:
            self._doubt(whole_matrix(name, self.student.grown_mib()))
        if half and whole and not 1.3 < whole / half < 16:
            self._doubt(odd_growth(name, whole / half))
        return True

    def _doubt(self, doubt: Text) -> None:
        if doubt not in self.result.doubts:
            self.result.doubts.append(doubt)

    def _seconds_of(self, name: str, rows: int) -> float | None:
        """CPU time of a call on so many rows; None if it did not come back with a value."""
        request = {"do": "measure", "rows": rows, "block_size": TILE, "seconds": 5.0, "name": name}
        before = self.student.cpu_seconds()
        called = self._ask(self.examiner, request, 10.0)["called"]
        return self.student.cpu_seconds() - before if called else None

    def _note(self, cell: Planned, where: str, answer: dict[str, Any]) -> None:
        """Remember what in a student's cell decides the outcome."""
        if answer.get("too_much_output") is True:
            raise Ended("too_much_output")
        if answer.get("timed_out") is True:
            detail = seconds_of(self.limits.cell_seconds)
            stuck = answer.get("stuck")
            self._stuck += [str(name)[:300] for name in stuck[:100]] if type(stuck) is list else []
            self.result.events.append(Outcome("timed_out", where, detail))
            return
        error = answer.get("error")
        if not isinstance(error, dict):
            return
        name, message = str(error.get("type_name"))[:100], str(error.get("message"))[:200]
        if is_memory_error(name, message):
            self.result.events.append(Outcome("out_of_memory", where))
        elif cell.role == "answer":
            kind = "unfinished" if error.get("kind") == "unfinished" else "crashed"
            self.result.events.append(Outcome(kind, where, f"{name}: {message}"))

    def _run_together(self, index: int, cells: tuple[Planned, ...]) -> None:
        """Run a test, and with it all that ask for the same answers.

        What the student wrote may be another function after one more cell of theirs. Then all of
        these tests are run again, and the state in which they earn most is the one that counts:
        one function earns the points, not the best of several.
        """
        ids = self.course.together[_id(cells[index])]
        group = [n for n, cell in enumerate(cells) if cell.role == "test" and _id(cell) in ids]
        before = self._tested.get(ids, [])
        if before and (self.result.ended is not None or self._tried[ids] == self._states):
            return
        if before and _points(before) == sum(one.mark.max_points for one in before):
            return
        self._tried[ids] = self._states
        now = [self._run_test(cells[n]) for n in group]
        if before and _points(before) >= _points(now):
            return
        self._tested[ids] = now
        for n, one in zip(group, now, strict=True):
            self.result.marks[n], self.result.outputs[n] = one.mark, one.outputs
            if one.count is not None:
                self.result.counts[n] = one.count

    def _run_test(self, cell: Planned) -> Tested:
        test = cell.course
        assert test is not None
        if self.result.ended is not None:
            return not_run(test, self.result.ended)
        seconds = max(0.1, min(self.limits.cell_seconds, self._until - time.monotonic()))
        self._count += 1
        read = self.course.tests[test.grade_id]
        request = {"do": "test", "source": read.source, "names": read.names, "count": self._count}
        request.update(seconds=seconds, stuck=self._stuck, state=self._states)
        try:
            answer = self._ask(self.examiner, request, seconds + 2 * self.limits.grace_seconds)
        except Ended as end:
            return not_run(test, self._end(test.grade_id, end))
        self.result.student_seconds += answer["student_seconds"]
        for doubt in answer["doubts"]:
            self._doubt(Text(*doubt))
        if answer["gone"]:
            kind = {"died": "killed"}.get(answer["gone"], answer["gone"])
            self._end(test.grade_id, Ended(kind))
        return tested(test, answer, self._count)

    def _end(self, where: str, end: Ended) -> Outcome:
        """The student's process is not used any more."""
        self.student.kill()
        self.student.ended.wait(10)
        kind, detail = end.kind, end.detail
        if kind == "killed" and self._out_of_memory:
            kind = "out_of_memory"
        if kind == "killed" and self.student.status is not None and not detail:
            detail = describe_exit(self.student.status)
        self.result.ended = Outcome(kind, where, detail)
        self.result.events.append(self.result.ended)
        return self.result.ended

    _out_of_memory = False

    def _ask(self, process: Process, request: dict[str, Any], seconds: float) -> dict[str, Any]:
        """Send a request and wait for the answer, with an eye on the memory of both processes."""
        deadline = time.monotonic() + seconds + self.limits.grace_seconds
        request = dict(request, id=self._count)
        try:
            process.channel.send(request, deadline=deadline)
            while not readable(process.sock, WATCH_SECONDS):
                self._watch(deadline)
            answer, _ = process.channel.receive(deadline)
            if process is self.student:
                if answer.get("id") != request["id"]:
                    raise BadFrame("an answer that nobody asked for")
                self.student.memory_mib()
            return storable(answer)
        except ChannelClosed:
            raise Ended("killed") from None
        except ChannelTimeout:
            raise Ended("timed_out", seconds_of(seconds)) from None
        except BadFrame:
            raise Ended("too_much_output") from None

    def _watch(self, deadline: float) -> None:
        if self.student.memory_mib() > self.limits.memory_mib:
            self._out_of_memory = True
            self.student.kill()
            most = f"{self.limits.memory_mib} MiB"
            raise Ended("out_of_memory", Text(f"more than {most}", f"超过 {most}"))
        if self.student.busy_seconds > time.monotonic() - self._began + SPARE_SECONDS:
            raise Ended("killed", Text("it kept several cores busy", "同时占用了多个处理器核"))
        if time.monotonic() > deadline:
            raise ChannelTimeout


# The tests are the course's own: these limits only keep a mistake in them from doing harm.
EXAMINER_LIMITS = Limits(memory_mib=8192, processes=256, cpu_seconds=600)


def storable(value: Any) -> Any:
    """A message with nothing in its texts that a file or a database refuses: no lone surrogates,
    which JSON can hold and UTF-8 can't, and no NUL."""
    if isinstance(value, str):
        if value.isascii() and "\0" not in value:
            return value
        return value.encode("utf-8", "replace").decode().replace("\0", "\ufffd")
    if isinstance(value, list):
        return [storable(item) for item in value]
    if isinstance(value, dict):
        return {storable(key): storable(item) for key, item in value.items()}
    return value


def describe_exit(status: int) -> Text:
    if status < 0:
        return Text(f"signal {-status}", f"信号 {-status}")
    return Text(f"exit code {status}", f"退出码 {status}")


def seconds_of(limit: float) -> Text:
    return Text(f"{limit:g} s", f"{limit:g} 秒")


def not_measured(name: str) -> Text:
    """The doubt about a function that works with the tests' few rows, and not with more."""
    return Text(
        f"`{name}` did not come back with a result for {ROWS} rows in tiles of {TILE}",
        f"`{name}` 处理 {ROWS} 行、块大小 {TILE} 时没有返回结果",
    )


def odd_growth(name: str, ratio: float) -> Text:
    """The doubt about a function whose time does not follow the number of scores."""
    return Text(
        f"`{name}` takes {ratio:.1f} times as long for {ROWS} rows as for half of them, "
        "with 4 times as many scores",
        f"`{name}` 处理 {ROWS} 行的时间是处理一半行数的 {ratio:.1f} 倍，而分数的个数是 4 倍",
    )


def whole_matrix(name: str, grown_mib: float) -> Text:
    """The doubt about a function that claims tiles and takes as much memory as all scores."""
    return Text(
        f"`{name}` took {grown_mib:.0f} MiB for {ROWS} rows in tiles of {TILE}; "
        f"all {ROWS} × {ROWS} scores are {WHOLE_MIB:.0f} MiB",
        f"`{name}` 处理 {ROWS} 行、块大小 {TILE} 时占用了 {grown_mib:.0f} MiB；"
        f"完整的 {ROWS} × {ROWS} 分数矩阵是 {WHOLE_MIB:.0f} MiB",
    )
