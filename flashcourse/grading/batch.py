"""Grade a whole class: submissions in parallel by Dask, marks by one writer."""

from __future__ import annotations

import contextlib
import fcntl
import fnmatch
import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from nbgrader.apps import NbGrader
from nbgrader.coursedir import CourseDirectory
from nbgrader.preprocessors import AssignLatePenalties

from flashcourse.grading.course import CourseNotebook, load_course
from flashcourse.grading.export import grading_of
from flashcourse.grading.grade import Settings, fingerprint, finished, grade
from flashcourse.grading.gradebook import MarksWriter, open_gradebook
from flashcourse.grading.outcome import Graded
from flashcourse.grading.pool import Pool, PoolError, shared_pool
from flashcourse.grading.submission import Unreadable, read_file

Editions = dict[str, dict[str, CourseNotebook]]


@dataclass(frozen=True)
class Job:
    """One student's submission of a lesson. files: {notebook: path}, a file may be missing."""

    student: str
    folder: Path
    files: dict[str, Path]


@dataclass
class Report:
    """What a run did. summaries: by student and notebook, also of those that were up to date."""

    summaries: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict)
    graded: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    writing_seconds: float = 0.0


class Course:
    """A course's folder as nbgrader is configured there."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        app = NbGrader()
        with _chdir(self.root):
            app.load_config_file()
        self.app = app
        self.folder = CourseDirectory(parent=app, root=str(self.root))

    def path(self, kind: str, student: str, lesson: str) -> Path:
        """The folder of one submission; kind: 'submitted', 'autograded' or 'feedback'."""
        directory = getattr(self.folder, f"{kind}_directory")
        return Path(self.root, self.folder.format_path(directory, student, lesson))

    def penalty(self) -> Callable[[str, float, float], float | None]:
        """What the configured plugin takes off for being late."""
        step = AssignLatePenalties(parent=self.app)
        step.init_plugin()
        return step.plugin_inst.late_submission_penalty

    def jobs(self, lesson: str, editions: Editions, students: str) -> list[Job]:
        """Every submission of the lesson by a student whose id matches the pattern."""
        excluded = set(filter(None, self.folder.student_id_exclude.split(",")))
        found = []
        for folder in sorted(self.path("submitted", "*", lesson).parent.parent.glob(f"*/{lesson}")):
            student = folder.parent.name
            if student.startswith(".") or student in excluded or not folder.is_dir():
                continue
            if fnmatch.fnmatchcase(student, students):
                found.append(Job(student, folder, _files(folder, list(editions))))
        return found


@contextlib.contextmanager
def _chdir(folder: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def _files(folder: Path, names: list[str]) -> dict[str, Path]:
    files = {name: folder / f"{name}.ipynb" for name in names}
    there = sorted(folder.glob("*.ipynb"))
    if len(names) == len(there) == 1:
        # A browser that downloads a file twice calls it "lesson (1).ipynb".
        files[names[0]] = there[0]
    return files


def read_job(job: Job) -> dict[str, bytes | Unreadable]:
    """The submitted bytes of each notebook."""
    data: dict[str, bytes | Unreadable] = {}
    for name, path in job.files.items():
        try:
            data[name] = read_file(path)
        except Unreadable as error:
            data[name] = error
    return data


def grade_job(
    data: dict[str, bytes | Unreadable],
    editions: Editions,
    settings: Settings,
    root: Path,
    allow_unsandboxed: bool,
) -> dict[str, Graded]:
    """Grade one submission, on whatever machine this runs (a Dask worker)."""
    pool = shared_pool(root, allow_unsandboxed)
    try:
        return {name: grade(raw, editions[name], pool, settings) for name, raw in data.items()}
    except PoolError:
        # Dask tries again; then with a fresh warmed process.
        shared_pool.cache_clear()
        raise


class Batch:
    """Grades one lesson's submissions and stores what comes of them."""

    def __init__(
        self, course: Course, lesson: str, settings: Settings, force: bool = False
    ) -> None:
        self.course, self.lesson, self.settings, self.force = course, lesson, settings, force
        self.editions = load_course(course.root, lesson)
        self.report = Report()

    def open(self) -> None:
        """Take the gradebook. Raises BlockingIOError while another run has it."""
        folder = self.course.root / "autograded"
        folder.mkdir(exist_ok=True)
        self._lock = os.open(folder, os.O_RDONLY)
        fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        options = self.course.folder
        self.gradebook = open_gradebook(options.db_url, options.course_id)
        self.writer = MarksWriter(self.gradebook, self.lesson, self.course.penalty())
        self._known = self.writer.students()

    def close(self) -> None:
        with contextlib.suppress(AttributeError):
            self.gradebook.close()
        os.close(self._lock)

    def todo(self, jobs: list[Job], sandboxed: bool) -> Iterator[tuple[Job, dict]]:
        """The submissions that have to be run, with their bytes; the others are noted as is."""
        for job in jobs:
            data = read_job(job)
            stored = None if self.force else self._stored(job, data, sandboxed)
            if stored is None:
                yield job, data
                continue
            if job.student not in self._known:
                self.store(job, stored)
            self.report.summaries[job.student] = stored
            self.report.unchanged.append(job.student)

    def _stored(self, job: Job, data: dict, sandboxed: bool) -> dict[str, dict[str, Any]] | None:
        found: dict[str, dict[str, Any]] = {}
        for name, raw in data.items():
            path = self.course.path("autograded", job.student, self.lesson) / f"{name}.ipynb"
            grading = grading_of(path)
            wanted = fingerprint(raw, self.editions[name], self.settings)
            if grading is None or grading.get("fingerprint") != wanted:
                return None
            if sandboxed and not grading.get("sandboxed"):
                return None
            found[name] = grading
        return found

    def finish(self, job: Job, results: dict[str, Graded]) -> None:
        """Keep the marks, then the notebooks: a notebook that is there says all is done."""
        summaries = {name: graded.summary() for name, graded in results.items()}
        self.store(job, summaries)
        target = self.course.path("autograded", job.student, self.lesson)
        target.mkdir(parents=True, exist_ok=True)
        stamp = timestamp_file(job.folder)
        if stamp is not None:
            shutil.copyfile(stamp, target / "timestamp.txt")
        for name, graded in results.items():
            write_whole(target / f"{name}.ipynb", json.dumps(finished(graded), ensure_ascii=False))
        self.report.summaries[job.student] = summaries
        self.report.graded.append(job.student)

    def store(self, job: Job, summaries: dict[str, dict[str, Any]]) -> None:
        began = time.perf_counter()
        self.writer.store(job.student, summaries, self._timestamp(job))
        self._known.add(job.student)
        self.report.writing_seconds += time.perf_counter() - began

    def _timestamp(self, job: Job) -> datetime | None:
        if timestamp_file(job.folder) is None:
            return None
        try:
            return self.course.folder.get_existing_timestamp(str(job.folder))
        except (SystemExit, Exception):  # what a date's parser trips over is nobody's mark
            return None


def timestamp_file(folder: Path) -> Path | None:
    """The submission's timestamp.txt, if it is what it should be: a pipe there would never end."""
    stamp = folder / "timestamp.txt"
    if stamp.is_symlink() or not stamp.is_file() or stamp.stat().st_size > 200:
        return None
    return stamp


def write_whole(path: Path, text: str) -> None:
    """Write a file so that it is there as a whole or not at all, read-only like nbgrader's."""
    part = path.with_name(f".{path.name}.part")
    part.unlink(missing_ok=True)
    part.write_text(text, encoding="utf-8")
    part.chmod(0o444)
    part.replace(path)


def run_batch(
    batch: Batch,
    jobs: list[Job],
    submit: Any,
    window: int,
    progress: Callable[[Report, int, int], None],
) -> Report:
    """Grade what has to be graded, `window` submissions in flight.

    submit: a `Submitter`. progress: called with the report, how many run, and how many there are.
    """
    began = time.perf_counter()
    waiting = batch.todo(jobs, submit.sandboxed)
    running: dict[Any, Job] = {}
    more = True
    while more or running:
        while more and len(running) < window:
            item = next(waiting, None)
            if item is None:
                more = False
            else:
                running[submit(item[1], batch)] = item[0]
            progress(batch.report, len(running), len(jobs))
        for future in submit.done(list(running)):
            job = running.pop(future)
            try:
                batch.finish(job, future.result())
            except submit.faults as error:
                batch.report.failed[job.student] = f"{type(error).__name__}: {error}"
            future.release()
            progress(batch.report, len(running), len(jobs))
    batch.report.seconds = time.perf_counter() - began
    return batch.report


# Dask looks at every thread's stack 100 times a second for a profile that nobody opens here, and
# its logs of thousands of events hold on to the notebooks that went through.
_QUIET = {
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "1s",
    "distributed.admin.log-length": 20,
    "distributed.admin.low-level-log-length": 20,
}


class Submitter:
    """Hands submissions to Dask, on this machine or to a cluster's scheduler."""

    def __init__(self, workers: int, scheduler: str | None, pool: Pool | None, allow: bool) -> None:
        # Dask is slow to import; the warmed process starts meanwhile.
        import dask
        from distributed import Client, LocalCluster

        dask.config.set(_QUIET)
        self.faults = (Exception,)
        self._editions: Any = None
        self.allow = allow
        self.sandboxed = pool.sandboxed if pool is not None else not allow
        self.cluster = None
        if scheduler:
            self.client = Client(scheduler, timeout=30)
            self.workers = sum(self.client.nthreads().values()) or workers
            return
        # Threads suffice: the work is done in the processes that the warmed one forks.
        self._scratch = tempfile.TemporaryDirectory(prefix="flashcourse-")
        self.cluster = LocalCluster(
            local_directory=self._scratch.name,
            n_workers=1,
            threads_per_worker=workers,
            processes=False,
            dashboard_address="127.0.0.1:0",
            silence_logs=50,
        )
        self.client = Client(self.cluster)
        self.workers = workers

    def __call__(self, data: dict, batch: Batch) -> Any:
        """A future of the graded submission."""
        if self._editions is None:
            self._editions = self.client.scatter([batch.editions], broadcast=True)[0]
        return self.client.submit(
            grade_job,
            data,
            self._editions,
            batch.settings,
            batch.course.root,
            self.allow,
            pure=False,
            retries=2,
        )

    def done(self, futures: list[Any]) -> list[Any]:
        """Those that are finished; waits for the first."""
        from distributed import wait

        return list(wait(futures, return_when="FIRST_COMPLETED").done) if futures else []

    def close(self) -> None:
        with contextlib.suppress(Exception):
            self.client.close(timeout=5)
        if self.cluster is not None:
            with contextlib.suppress(Exception):
                self.cluster.close(timeout=5)
            self._scratch.cleanup()
