"""A whole class: by nbgrader's command or ours, stopped and gone on with, here or on a cluster."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from nbgrader import apps

from flashcourse import cli
from flashcourse.grading.cli import progress_line
from flashcourse.words import use_language

from . import tiny
from .books import dump

LOOP = {**tiny.RIGHT, "scale": "def scale_rows(x):\n    raise KeyError('x')"}
CLASS: dict[str, Any] = {
    "ada": tiny.submitted(tiny.RIGHT),
    "bo": tiny.submitted(tiny.RIGHT, "zh"),
    "cy": tiny.submitted(LOOP),
    "di": b'{"cells": [',
    "ed": tiny.submitted({**tiny.RIGHT, "thinking": "The columns add up."}),
    "flo": tiny.submitted(),
    "gus": tiny.submitted({**tiny.RIGHT, "size": "import os\nos._exit(0)"}),
    "hal": {"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5},
}


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A course folder whose gradebook knows the lesson, with everybody's submissions."""
    os.environ["FLASHCOURSE_SEED"] = "7"
    root = tiny.make_course(tmp_path_factory.mktemp("template") / "course", config=True)
    for student, notebook in CLASS.items():
        tiny.hand_in(root, student, notebook)
    tiny.release(root)
    return root


def grade(root: Path, *options: str) -> dict[str, Any]:
    """`flashcourse grade tiny` in this process; what it wrote as JSON."""
    report = root / "report.json"
    command = ["--course", str(root), "grade", tiny.LESSON, "--json", str(report), *options]
    assert cli.main(command) == 0
    return json.loads(report.read_text("utf-8"))


@pytest.fixture(scope="module")
def made(template: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(shutil.copytree(template, tmp_path_factory.mktemp("made") / "course"))


@pytest.fixture(scope="module")
def report(made: Path) -> dict[str, Any]:
    return grade(made, "--workers", "2")


@pytest.fixture()
def ungraded(template: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(template, tmp_path / "ungraded"))


@pytest.fixture()
def copy(made: Path, report: dict[str, Any], tmp_path: Path) -> Iterator[Path]:
    """The graded course, to go on with."""
    shutil.copytree(made, tmp_path / "course")
    yield tmp_path / "course"


def test_every_submission_ends_with_an_outcome(report: dict[str, Any]) -> None:
    outcomes = {s["student"]: s["outcome"]["kind"] for s in report["submissions"]}
    assert outcomes == {
        "ada": "graded",
        "bo": "graded",
        "cy": "crashed",
        "di": "unreadable",
        "ed": "graded",
        "flo": "unfinished",
        "gus": "killed",
        "hal": "unreadable",
    }


def test_the_json_says_what_an_instructor_asks_for(report: dict[str, Any]) -> None:
    ada = report["submissions"][0]
    assert ada["points"] == {"test-scale": 10, "test-partial": 5, "test-size": 5, "thinking": 0}
    assert ada["max_points"]["thinking"] == 4
    assert ada["seconds"] > 0 and ada["peak_mib"] >= 0 and ada["sandboxed"] is True


def test_nbgrader_autograde_and_flashcourse_grade_give_the_same_gradebook(
    made: Path, report: dict[str, Any], ungraded: Path
) -> None:
    program = [sys.executable, "-m", "nbgrader", "autograde", tiny.LESSON]
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    subprocess.run(program, cwd=ungraded, env={**os.environ, "PATH": path}, check=True)
    assert dump(ungraded) == dump(made)


def test_the_gradebook_tells_crashed_from_wrong(made: Path, report: dict[str, Any]) -> None:
    book = dump(made)
    assert "KeyError" in book["cy"]["comments"]["scale"]
    assert book["bo"]["comments"] == {
        "scale": None,
        "size": None,
        "thinking": book["bo"]["comments"]["thinking"],
    }
    assert "没有作答" in book["bo"]["comments"]["thinking"]
    assert book["ed"]["needs_manual_grade"] == ["thinking"]


def test_what_has_not_changed_is_not_run_again(copy: Path) -> None:
    tiny.hand_in(copy, "flo", tiny.submitted(tiny.RIGHT))
    before = {p: p.stat().st_mtime_ns for p in (copy / "autograded").rglob("*.ipynb")}
    grade(copy)
    changed = [p for p in before if p.stat().st_mtime_ns != before[p]]
    assert [p.parent.parent.name for p in changed] == ["flo"]
    assert dump(copy)["flo"]["scores"]["test-scale"] == 10


def test_a_lost_gradebook_is_filled_again_without_running_anything(
    copy: Path, template: Path
) -> None:
    before = dump(copy)
    shutil.copyfile(template / "gradebook.db", copy / "gradebook.db")
    grade(copy)
    assert dump(copy) == before


def test_marks_given_by_hand_are_kept(copy: Path) -> None:
    from nbgrader.api import Gradebook

    with Gradebook(f"sqlite:///{copy}/gradebook.db") as book:
        book.find_grade("thinking", tiny.LESSON, tiny.LESSON, "ed").manual_score = 3
        book.db.commit()
    grade(copy, "--force", "--students", "ed")
    assert dump(copy)["ed"]["manual"] == {"thinking": 3}


def test_the_export_has_the_outcome_beside_the_marks(copy: Path) -> None:
    tiny.nbgrader(copy, apps.ExportApp)
    rows = (copy / "grades.csv").read_text("utf-8").splitlines()
    assert rows[0].endswith("outcome,where,doubts,sandboxed")
    gus = next(row for row in rows if ",gus," in row)
    assert gus.endswith("killed,size,2,True")


def test_a_killed_run_goes_on_and_ends_the_same(
    made: Path, report: dict[str, Any], ungraded: Path
) -> None:
    kill_when(ungraded, 3)
    grade(ungraded)
    assert dump(ungraded) == dump(made)
    assert not list((ungraded / "autograded").rglob(".*.part"))


def kill_when(root: Path, done: int) -> None:
    """Start a run, and kill it as soon as so many submissions are graded."""
    command = [sys.executable, "-m", "flashcourse.cli", "--course", str(root), "grade", tiny.LESSON]
    running = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 120
    while len(list((root / "autograded").rglob("*.ipynb"))) < done:
        assert time.monotonic() < deadline and running.poll() is None
        time.sleep(0.005)
    running.send_signal(signal.SIGKILL)
    running.wait()


@pytest.mark.slow
def test_a_cluster_whose_worker_is_killed_loses_nothing(
    made: Path, report: dict[str, Any], ungraded: Path
) -> None:
    from concurrent.futures import ThreadPoolExecutor

    from distributed import LocalCluster

    where = "127.0.0.1:0"
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=where) as cluster,
        ThreadPoolExecutor(1) as thread,
    ):
        run = thread.submit(grade, ungraded, "--scheduler", cluster.scheduler_address)
        deadline = time.monotonic() + 120
        while not list((ungraded / "autograded").rglob("*.ipynb")) and not run.done():
            assert time.monotonic() < deadline
            time.sleep(0.005)
        os.kill(next(iter(cluster.workers.values())).pid, signal.SIGKILL)
        run.result(120)
    assert dump(ungraded) == dump(made)


def test_without_a_sandbox_nothing_is_graded_unless_asked(
    copy: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from flashcourse.grading import sandbox

    monkeypatch.setattr(sandbox, "why_none", lambda: "bubblewrap (bwrap) is not installed")
    tiny.hand_in(copy, "new", tiny.submitted(tiny.RIGHT))
    command = ["--course", str(copy), "grade", tiny.LESSON]
    assert cli.main(command) == 2
    assert "apt-get install bubblewrap" in capsys.readouterr().err
    assert "new" not in dump(copy)
    report = grade(copy, "--allow-unsandboxed", "--students", "new")
    assert [s["sandboxed"] for s in report["submissions"]] == [False]
    assert "without a sandbox" in dump(copy)["new"]["comments"]["scale"]


def test_an_unknown_lesson_says_what_to_do(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--course", str(copy), "grade", "nothing"]) == 2
    assert "build the lesson" in capsys.readouterr().err


def test_the_progress_line_says_what_runs_and_how_long_it_will_take() -> None:
    assert progress_line(50, 100, 2, 1, 75.0) == (
        "[############            ] 50/100 done, 2 running, 1 failed, 1 min 15 s left"
    )


def test_the_progress_line_speaks_the_teachers_language() -> None:
    use_language("zh")
    try:
        line = progress_line(50, 100, 2, 1, 75.0)
    finally:
        use_language("en")
    assert line == "[############            ] 完成 50/100，运行中 2，失败 1，还需 1 分 15 秒"
