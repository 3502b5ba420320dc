"""How fast a class is graded, beside plain nbgrader: `python benchmarks/bench_grading.py`.

The same submissions of lesson 3 (its sample class, without the one that loops for ever) are graded
by nbgrader as it comes and by `flashcourse grade`, each from a cold start, in courses of their own.
Then: growth from 10 to 1,000 submissions, what hostile neighbours cost, and the gradebook's share.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
import psutil

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "examples"), str(ROOT)]

from sample_class import handed_in, sample_class  # noqa: E402

LESSON = "03_flash_forward"
RESULTS = Path(__file__).with_name("RESULTS.md")
BEGIN, END = "<!-- grading: begin -->", "<!-- grading: end -->"
# nbgrader without this course's steps: its own execution, one submission after the other.
PLAIN = """\
c = get_config()
c.CourseDirectory.course_id = "plain"
c.CourseDirectory.source_directory = "source/en"
c.CourseDirectory.release_directory = "release/en"
c.ClearSolutions.code_stub = {"python": "raise NotImplementedError()"}
"""
BOMB = """\
import os
for _ in range(10**6):
    try:
        os.fork()
    except OSError:
        pass
"""
HOG = "hog = [bytes(1000) for _ in range(10**9)]"
LOOP = "while True:\n    pass"


@dataclass(frozen=True)
class Timing:
    """seconds: wall time, start-up and all. mib: the most memory of all its processes together
    (shared pages counted once, as PSS)."""

    seconds: float
    mib: float


def submissions() -> list[bytes]:
    """The sample class's notebooks."""
    students = [s for s in sample_class(LESSON) if s.outcome != "timed_out"]
    return [nbformat.writes(handed_in(student, ROOT)).encode() for student in students]


def lay_out(root: Path, plain: bool) -> None:
    for station in ("source", "release"):
        for lang in ("en", "zh"):
            folder = Path(station, lang, LESSON)
            shutil.copytree(ROOT / folder, root / folder)
    config = PLAIN if plain else (ROOT / "nbgrader_config.py").read_text("utf-8")
    (root / "nbgrader_config.py").write_text(config, "utf-8")
    run(root, "nbgrader", "generate_assignment", LESSON, "--force")


def hand_in(root: Path, notebooks: list[bytes], prefix: str = "student") -> None:
    for number, data in enumerate(notebooks):
        path = root / "submitted" / f"{prefix}-{number:04d}" / LESSON / f"{LESSON}.ipynb"
        path.parent.mkdir(parents=True)
        path.write_bytes(data)


def run(root: Path, *command: str) -> Timing:
    """Run a command to its end, and watch the memory of it and its children."""
    folder = str(Path(sys.executable).parent)
    environment = {**os.environ, "FLASHCOURSE_SEED": "7"}
    environment["PATH"] = os.pathsep.join([folder, environment["PATH"]])
    began = time.perf_counter()
    with tempfile.TemporaryFile() as log:
        child = subprocess.Popen(command, cwd=root, env=environment, stdout=log, stderr=log)
        most = [0.0]
        watcher = threading.Thread(target=watch, args=(child.pid, most))
        watcher.start()
        child.wait()
        seconds = time.perf_counter() - began
        watcher.join()
        # nbgrader ends with 1 when a submission failed; that is a result, not a fault here.
        if child.returncode not in (0, 1):
            log.seek(0)
            raise SystemExit(f"{command}: {log.read()[-2000:].decode('utf-8', 'replace')}")
    return Timing(seconds, most[0])


def watch(pid: int, most: list[float]) -> None:
    while psutil.pid_exists(pid):
        total = 0
        try:
            root = psutil.Process(pid)
            if root.status() == psutil.STATUS_ZOMBIE:
                return
            for process in [root, *root.children(recursive=True)]:
                try:
                    total += process.memory_full_info().pss
                except psutil.Error:
                    continue
        except psutil.Error:
            return
        most[0] = max(most[0], total / 2**20)
        time.sleep(1.0)  # counting pages takes time from those that are measured


def grade(root: Path, *options: str) -> tuple[Timing, dict[str, Any]]:
    report = root / "report.json"
    timing = run(root, "flashcourse", "grade", LESSON, "--json", str(report), *options)
    return timing, json.loads(report.read_text("utf-8"))


def marks_of(root: Path) -> dict[str, dict[str, float | None]]:
    """{student: points by grade id} out of a gradebook; answers in words are left out."""
    from nbgrader.api import Gradebook, SubmittedAssignment

    with Gradebook(f"sqlite:///{root}/gradebook.db") as book:
        found = {}
        for submission in book.db.query(SubmittedAssignment).all():
            grades = itertools.chain(*(notebook.grades for notebook in submission.notebooks))
            found[submission.student_id] = {
                g.name: g.auto_score or 0.0 for g in grades if g.cell_type == "code"
            }
        return found


def compare(folder: Path, plain_count: int, count: int) -> Iterator[str]:
    """nbgrader and flashcourse side by side."""
    notebooks = list(itertools.islice(itertools.cycle(submissions()), count))
    plain, ours = folder / "plain", folder / "ours"
    lay_out(plain, plain=True)
    lay_out(ours, plain=False)
    hand_in(plain, notebooks[:plain_count])
    hand_in(ours, notebooks)
    slow = run(plain, "nbgrader", "autograde", LESSON)
    fast, report = grade(ours)
    theirs, mine = marks_of(plain), marks_of(ours)
    differing = [student for student in theirs if theirs[student] != mine.get(student)]
    same = f"{len(theirs) - len(differing)} of {len(theirs)} the same"
    rate_slow, rate_fast = 60 * plain_count / slow.seconds, 60 * count / fast.seconds
    yield "| | submissions | seconds | seconds each | a minute | memory, MiB |"
    yield "|---|---|---|---|---|---|"
    for name, timing, number, rate in (
        ("plain nbgrader autograde", slow, plain_count, rate_slow),
        ("flashcourse grade", fast, count, rate_fast),
    ):
        each = timing.seconds / number
        yield (
            f"| {name} | {number} | {timing.seconds:.1f} | {each:.3f} | {rate:.0f} "
            f"| {timing.mib:.0f} |"
        )
    yield ""
    yield f"**{rate_fast / rate_slow:.1f} times** the throughput. Marks: {same}."
    yield from where_the_time_goes(fast, report)


def where_the_time_goes(timing: Timing, report: dict[str, Any]) -> Iterator[str]:
    busy = sum(s["seconds"] for s in report["submissions"])
    count = len(report["submissions"])
    start = timing.seconds - report["seconds"]
    yield ""
    yield (
        f"Of its {timing.seconds:.1f} s, {start:.1f} s are start-up and shutdown; a submission "
        f"takes {busy / count:.3f} s on one of {os.cpu_count()} cores; writing the marks takes "
        f"{1000 * report['writing_seconds'] / count:.1f} ms a submission "
        f"({report['writing_seconds']:.2f} s in all)."
    )


def growth(folder: Path, sizes: list[int]) -> Iterator[str]:
    """One run for each size, from a cold start."""
    yield "| submissions | seconds | seconds each | memory, MiB | left behind |"
    yield "|---|---|---|---|---|"
    notebooks = submissions()
    for size in sizes:
        root = folder / f"class-{size}"
        lay_out(root, plain=False)
        hand_in(root, list(itertools.islice(itertools.cycle(notebooks), size)))
        before = leftovers()
        timing, _ = grade(root)
        left = leftovers() - before
        each = timing.seconds / size
        yield (
            f"| {size} | {timing.seconds:.1f} | {each:.3f} | {timing.mib:.0f} "
            f"| {len(left) or 'nothing'} |"
        )
        shutil.rmtree(root)


def leftovers() -> set[str]:
    """Temporary files, and processes of students' users."""
    files = {str(path) for path in Path(tempfile.gettempdir()).glob("flashcourse-*")}
    files |= {str(path) for path in Path("/dev/shm").glob("*")}
    processes = {
        f"process {p.pid}"
        for p in psutil.process_iter(["uids"])
        if p.info["uids"] and 60_000 <= p.info["uids"].real < 64_000
    }
    return files | processes


def neighbours(folder: Path, count: int) -> Iterator[str]:
    """The same honest submissions, alone and among hostile ones."""
    yield "| neighbours | seconds of each honest submission | seconds in all |"
    yield "|---|---|---|"
    honest = list(itertools.islice(itertools.cycle(submissions()), count))
    for name, attacks in (("none", []), ("fork bomb, memory hog, endless loop", [BOMB, HOG, LOOP])):
        root = folder / f"among-{len(attacks)}"
        lay_out(root, plain=False)
        hand_in(root, honest, "honest")
        hand_in(root, [with_answer(honest[0], attack) for attack in attacks], "hostile")
        timing, report = grade(root)
        times = [s["seconds"] for s in report["submissions"] if s["student"].startswith("honest")]
        yield f"| {name} | {sum(times) / len(times):.3f} | {timing.seconds:.1f} |"


def with_answer(notebook: bytes, source: str) -> bytes:
    changed = json.loads(notebook)
    for cell in changed["cells"]:
        if cell["metadata"].get("nbgrader", {}).get("grade_id") == "flash-forward":
            cell["source"] = source
    return json.dumps(changed).encode()


def machine() -> str:
    import torch

    memory = psutil.virtual_memory().total / 2**30
    load = os.getloadavg()[0]
    return (
        f"{os.cpu_count()} cores ({platform.machine()}), {memory:.0f} GiB, Linux, Python "
        f"{platform.python_version()}, torch {torch.__version__}; load before the run {load:.1f}."
    )


def section(quick: bool) -> Iterator[str]:
    """The results as lines of Markdown, each as soon as it is known."""
    yield from ("## Grading a class", "", machine(), "")
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        folder = Path(name)
        yield from compare(folder, *((6, 34) if quick else (100, 100)))
        yield from ("", "### How it grows", "")
        yield from growth(folder, [10, 50] if quick else [10, 100, 1000])
        yield from ("", "### What hostile submissions cost the others", "")
        yield from neighbours(folder, 8 if quick else 30)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer submissions, printed only")
    quick = parser.parse_args().quick
    lines = []
    for line in section(quick):
        print(line, flush=True)
        lines.append(line)
    if not quick:
        old = RESULTS.read_text("utf-8") if RESULTS.exists() else "# Results\n\n"
        before, _, rest = old.partition(BEGIN)
        after = rest.partition(END)[2] or "\n"
        text = "\n".join(lines)
        RESULTS.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}", "utf-8")


if __name__ == "__main__":
    main()
