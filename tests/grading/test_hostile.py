"""None of the hostile submissions gains a point, sees a secret, or touches anything but itself."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from flashcourse.grading.batch import timestamp_file
from flashcourse.grading.grade import finished
from flashcourse.grading.limits import Limits
from flashcourse.grading.outcome import Graded
from flashcourse.grading.pool import Pool

from . import tiny
from .conftest import points
from .hostile.cases import CASES

Run = Callable[..., Graded]
LIMITS = Limits(
    cell_seconds=2.0,
    total_seconds=8.0,
    memory_mib=512,
    output_mib=4,
    scratch_mib=16,
    grace_seconds=0.5,
)
# What an honest wrong answer gets; `bytes_moved` is right nowhere in the cases.
NOTHING = {"test-scale": 0.0, "test-partial": 0.0, "test-size": 0.0, "thinking": 0.0}


@pytest.fixture(scope="module")
def server() -> Iterator[socket.socket]:
    """Listens where a submission might call; nobody ever may."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        listening.setblocking(False)
        yield listening


def hostile_source(case: str, port: int, folder: str) -> str:
    source = CASES[case].replace("{port}", str(port)).replace("{folder}", folder)
    source = source.replace("{pid}", str(os.getpid())).replace("{{", "{").replace("}}", "}")
    if "def scale_rows" not in source:
        source = f"def scale_rows(x):\n    return torch.zeros_like(x)\n{source}"
    return source


def of_the_student(graded: Graded) -> str:
    """All that came out of the student's process."""
    kept = [
        cell.get("outputs", [])
        for cell in graded.notebook["cells"]
        if not cell["metadata"].get("nbgrader", {}).get("grade")
    ]
    return json.dumps(kept)


@pytest.mark.parametrize("case", CASES)
def test_a_hostile_submission_gets_nothing(
    run: Run, server: socket.socket, course_folder: Path, case: str
) -> None:
    source = hostile_source(case, server.getsockname()[1], str(course_folder))
    graded = run(tiny.submitted({"scale": source}), LIMITS)
    assert points(graded) == NOTHING
    said = of_the_student(graded)
    assert "SECRET_OF" not in said
    assert "1234509876" not in said
    assert "CONNECTED" not in said
    assert "HIDDEN" not in said
    assert len(said) < 4_000_000
    with pytest.raises(BlockingIOError):
        server.accept()
    # A file or a database takes what it said, and a terminal shows it as text.
    json.dumps(finished(graded), ensure_ascii=False).encode()
    assert graded.outcome.text().en.isprintable()


MARKED = """\
from flashcourse.checks import course_seed, mark
def scale_rows(x):
    return x / x.sum(-1, keepdim=True)
print(course_seed(), mark("forward.todo1", scale_rows).points)
mark("forward.todo1", scale_rows, lang="en")"""


def test_whoever_marks_in_an_answer_cell_loses_nothing(run: Run) -> None:
    graded = run(tiny.submitted({**tiny.RIGHT, "scale": MARKED}))
    assert graded.outcome.kind == "graded"
    assert sum(mark.points or 0 for mark in graded.marks) == 20.0
    said = of_the_student(graded)
    assert "0 0.0" in said
    assert "the tests run apart from its code" in said


def test_nothing_of_a_submission_survives_it(run: Run, pool: Pool) -> None:
    run(tiny.submitted(tiny.RIGHT), LIMITS)
    before = descendants()
    for case in ("daemon", "fork_bomb", "thread_bomb"):
        run(tiny.submitted({"scale": hostile_source(case, 1, "")}), LIMITS)
    assert descendants() == before


BUSY = """
import os, time
for _ in range(30):
    if os.fork() == 0:
        os.setsid()
        while True:
            pass
time.sleep(60)
"""


def test_a_submission_that_keeps_every_core_busy_is_stopped_long_before_its_time(run: Run) -> None:
    limits = replace(LIMITS, cell_seconds=30.0, total_seconds=60.0)
    graded = run(tiny.submitted(tiny.RIGHT, after={"start": BUSY}), limits)
    assert (graded.outcome.kind, graded.outcome.where) == ("killed", "own")
    assert graded.outcome.text().en.endswith("it kept several cores busy.")


def test_a_flood_of_empty_displays_is_too_much_output(run: Run) -> None:
    graded = run(tiny.submitted({"scale": hostile_source("displays_of_nothing", 1, "")}), LIMITS)
    assert graded.outcome.kind == "too_much_output"


def test_a_timestamp_is_a_short_file_or_none(tmp_path: Path) -> None:
    stamp = tmp_path / "timestamp.txt"
    assert timestamp_file(tmp_path) is None
    os.mkfifo(stamp)  # whoever opened it would wait for ever
    assert timestamp_file(tmp_path) is None
    stamp.unlink()
    stamp.symlink_to("/dev/zero")
    assert timestamp_file(tmp_path) is None
    stamp.unlink()
    stamp.write_text("2026-01-05 12:00:00 UTC")
    assert timestamp_file(tmp_path) == stamp
    stamp.write_text(" " * 1000)
    assert timestamp_file(tmp_path) is None


def descendants() -> set[int]:
    """Every process below this one; what a submission starts stays below its warmed process."""
    family = psutil.Process().children(recursive=True)
    return {process.pid for process in family if process.status() != psutil.STATUS_ZOMBIE}


def test_a_right_submission_beside_hostile_ones_gets_its_marks(run: Run) -> None:
    from concurrent.futures import ThreadPoolExecutor

    names = ["fork_bomb", "signal_everybody", "fill_shared_memory", "hide_memory_in_children"]
    bad = [tiny.submitted({"scale": hostile_source(name, 1, "")}) for name in names]
    good = [tiny.submitted(tiny.RIGHT)] * 6
    with ThreadPoolExecutor(3) as threads:
        results = list(threads.map(lambda notebook: run(notebook, LIMITS), [*bad, *good]))
    assert [sum(mark.points or 0 for mark in graded.marks) for graded in results[4:]] == [20.0] * 6


def test_what_a_submission_leaves_behind_is_gone_for_the_next(run: Run) -> None:
    leave = "open('/tmp/here', 'w').write('x'); open('/dev/shm/here', 'w').write('x')"
    run(tiny.submitted(after={"start": leave}))
    look = "import os\nprint(os.listdir('/tmp') + os.listdir('/dev/shm'))"
    graded = run(tiny.submitted(after={"start": look}))
    assert "here" not in of_the_student(graded)


def test_an_odd_import_is_a_doubt_and_costs_nothing(run: Run) -> None:
    graded = run(tiny.submitted({**tiny.RIGHT, "scale": f"import gc\n{tiny.RIGHT['scale']}"}))
    (doubt,) = graded.doubts
    assert doubt.en == "scale, line 1: `gc` looks for objects of the grader's"
    assert doubt.zh == "scale，第 1 行：`gc` 寻找评分程序的对象"
    assert sum(mark.points or 0 for mark in graded.marks) == 20.0


WITHOUT_ROOT = ["read_the_course", "network", "become_root"]


def test_the_sandbox_holds_for_a_grader_that_is_not_root() -> None:
    words = [sys.executable]
    if os.geteuid() == 0:
        words = ["unshare", "--user", "--map-user=1000", "--map-group=1000", *words]
    names = " or ".join(WITHOUT_ROOT)
    words += ["-m", "pytest", "-q", __file__, "-k", names, "-p", "no:cacheprovider"]
    folder = Path(__file__).parents[2]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout[-3000:]
    assert f"{len(WITHOUT_ROOT)} passed" in done.stdout
