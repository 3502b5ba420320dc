"""`flashcourse grade LESSON`: grade a class."""

from __future__ import annotations

import argparse
import atexit
import gc
import json
import os
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from flashcourse.grading.errors import GradingError
from flashcourse.grading.outcome import KINDS
from flashcourse.words import Text, course_language


def add_parsers(subparsers: Any) -> None:
    """Add the subcommand `grade`."""
    parser = subparsers.add_parser(
        "grade",
        help="grade a class's submissions, in a sandbox and in parallel",
        description="Grade submitted/*/LESSON. What is graded already and has not changed is not "
        "run again; a run that was stopped goes on where it was.",
    )
    parser.add_argument("lesson", metavar="LESSON", help="for example 03_flash_forward")
    parser.add_argument(
        "--workers", type=int, default=os.cpu_count() or 1, metavar="N", help="submissions at once"
    )
    parser.add_argument("--scheduler", metavar="ADDRESS", help="a Dask cluster's scheduler")
    parser.add_argument("--students", default="*", metavar="GLOB", help="only these students")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results as JSON")
    parser.add_argument("--force", action="store_true", help="run unchanged submissions again")
    parser.add_argument(
        "--allow-unsandboxed", action="store_true", help="go on where there is no sandbox"
    )
    parser.set_defaults(run=run_grade)


def run_grade(arguments: argparse.Namespace) -> int:
    """The command. 0: all graded; 1: some could not be; 2: nothing was; 130: stopped."""
    try:
        return _grade(arguments)
    except GradingError as error:
        print(f"flashcourse grade: {error}", file=sys.stderr)
        return 2
    except BlockingIOError:
        print("flashcourse grade: another run is writing this course's marks", file=sys.stderr)
        return 2


def _grade(arguments: argparse.Namespace) -> int:
    root = Path(getattr(arguments, "course", None) or ".").resolve()
    # Looking for garbage in all that was imported, when the process ends anyway, takes 0.5 s.
    atexit.register(gc.freeze)
    # A checker of internationalised addresses that takes 2 s to import and is not needed here.
    sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]
    # The warmed process starts first: it gets ready while this one imports nbgrader and Dask.
    from flashcourse.grading.pool import shared_pool

    pool = None if arguments.scheduler else shared_pool(root, arguments.allow_unsandboxed)
    from flashcourse.grading.batch import Batch, Course, Submitter, run_batch
    from flashcourse.grading.grade import Settings

    batch = Batch(Course(root), arguments.lesson, Settings.from_environment(), arguments.force)
    batch.open()
    jobs = batch.course.jobs(arguments.lesson, batch.editions, arguments.students)
    submit = Submitter(arguments.workers, arguments.scheduler, pool, arguments.allow_unsandboxed)
    line = Progress(sys.stderr)
    stopped = False
    try:
        run_batch(batch, jobs, submit, submit.workers + 2, line)
    except KeyboardInterrupt:
        stopped = True
    finally:
        line.end()
        if pool is not None:
            pool.close()
            shared_pool.cache_clear()
        submit.close()
        batch.close()
        if arguments.json:
            write_json(arguments.json, arguments.lesson, batch.report)
    _say(batch.report, len(jobs), stopped)
    return 130 if stopped else int(bool(batch.report.failed))


def write_json(path: Path, lesson: str, report: Any) -> None:
    """Each submission's outcome, points by grade id, seconds and peak memory."""
    submissions = [
        {"student": student, "notebook": name, **summary}
        for student, notebooks in sorted(report.summaries.items())
        for name, summary in notebooks.items()
    ]
    result = {
        "lesson": lesson,
        "submissions": submissions,
        "failed": report.failed,
        "seconds": round(report.seconds, 3),
        "writing_seconds": round(report.writing_seconds, 3),
    }
    path.write_text(json.dumps(result, ensure_ascii=False, indent=1) + "\n", "utf-8")


WORDS = {
    "none": Text(
        "No such submission in submitted/. `flashcourse collect` puts them there.",
        "submitted/ 里没有这样的提交。请先用 `flashcourse collect` 收取。",
    ),
    "done": Text(
        "{graded} graded, {unchanged} unchanged of {total}: {counts}",
        "共 {total} 份：这次评了 {graded} 份，{unchanged} 份没有变化。{counts}",
    ),
    "look": Text(
        "Please look at: {names} (flagged in the formgrader, with the reason)",
        "请人工查看：{names}（formgrader 里有标记和原因）",
    ),
    "failed": Text("NOT graded: {student}: {why}", "没有评分：{student}：{why}"),
    "stopped": Text(
        "Stopped. Run the command again to go on from here.",
        "已停止。再运行一次这个命令，就从这里继续。",
    ),
    "bar": Text(
        "{done}/{total} done, {running} running, {failed} failed",
        "完成 {done}/{total}，运行中 {running}，失败 {failed}",
    ),
    "left": Text(", {time} left", "，还需 {time}"),
    "minutes": Text("{minutes} min {rest:02d} s", "{minutes} 分 {rest:02d} 秒"),
    "seconds": Text("{rest} s", "{rest} 秒"),
}


def _words(name: str, **values: Any) -> str:
    return WORDS[name].in_(course_language()).format(**values)


def _say(report: Any, total: int, stopped: bool) -> None:
    if not total:
        print(_words("none"))
        return
    kinds = Counter(
        summary["outcome"]["kind"]
        for notebooks in report.summaries.values()
        for summary in notebooks.values()
    )
    english = course_language() == "en"
    counts = (", " if english else "；").join(
        f"{count} {kind.replace('_', ' ')}" if english else f"{KINDS[kind].zh} {count}"
        for kind, count in kinds.items()
    )
    graded, unchanged = len(report.graded), len(report.unchanged)
    print(_words("done", graded=graded, unchanged=unchanged, total=total, counts=counts))
    doubted = [
        student if student.isprintable() else ascii(student)  # a folder's name can hold anything
        for student, notebooks in sorted(report.summaries.items())
        if any(summary["doubts"] for summary in notebooks.values())
    ]
    if doubted:
        print(_words("look", names=(", " if english else "、").join(doubted)))
    for student, why in sorted(report.failed.items()):
        print(_words("failed", student=repr(student), why=repr(why)), file=sys.stderr)
    if stopped:
        print(_words("stopped"), file=sys.stderr)


class Progress:
    """One line that says what is running, done, failed, and how long it will take."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream
        self.live = bool(getattr(stream, "isatty", lambda: False)())
        self.began = time.monotonic()
        self._shown = 0.0

    def __call__(self, report: Any, running: int, total: int) -> None:
        now = time.monotonic()
        done = len(report.graded) + len(report.unchanged) + len(report.failed)
        if now - self._shown < (0.1 if self.live else 10.0) and done < total:
            return
        self._shown = now
        ran = len(report.graded) + len(report.failed)
        left = (total - done) * (now - self.began) / ran if ran else None
        text = progress_line(done, total, running, len(report.failed), left)
        self.stream.write(f"\r{text}\x1b[K" if self.live else f"{text}\n")
        self.stream.flush()

    def end(self) -> None:
        if self.live:
            self.stream.write("\n")


def progress_line(done: int, total: int, running: int, failed: int, left: float | None) -> str:
    """[#####     ] 50/100 done, 2 running, 0 failed, 6 s left"""
    width = 24
    filled = width * done // total if total else width
    bar = "#" * filled + " " * (width - filled)
    counts = _words("bar", done=done, total=total, running=running, failed=failed)
    rest = "" if left is None else _words("left", time=_duration(left))
    return f"[{bar}] {counts}{rest}"


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return _words("minutes" if minutes else "seconds", minutes=minutes, rest=rest)
