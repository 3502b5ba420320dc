"""Hours of work in minutes: kills at random moments, and a thousand submissions in one run."""

from __future__ import annotations

import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from flashcourse import cli
from flashcourse.grading.pool import Pool

from . import tiny
from .books import dump
from .conftest import LIMITS

pytestmark = pytest.mark.slow

KINDS = [
    tiny.submitted(tiny.RIGHT),
    tiny.submitted(tiny.RIGHT, "zh"),
    tiny.submitted(),
    tiny.submitted({**tiny.RIGHT, "scale": "def scale_rows(x):\n    raise KeyError('x')"}),
    tiny.submitted({**tiny.RIGHT, "size": "import os\nos._exit(0)"}),
    b"{",
]


def hand_in_class(root: Path, count: int) -> Path:
    tiny.make_course(root, config=True)
    for number in range(count):
        tiny.hand_in(root, f"s{number:04d}", KINDS[number % len(KINDS)])
    tiny.release(root)
    return root


def test_20_kills_at_random_moments_change_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FLASHCOURSE_SEED", "7")
    disturbed = hand_in_class(tmp_path / "disturbed", 60)
    calm = Path(shutil.copytree(disturbed, tmp_path / "calm"))
    rand = random.Random(5)
    command = [sys.executable, "-m", "flashcourse.cli", "--course", str(disturbed), "grade", "tiny"]
    for _ in range(20):
        running = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )
        # The moment is meant to be any: start-up, grading, writing, or after the end.
        time.sleep(rand.uniform(1.0, 9.0))
        running.send_signal(signal.SIGKILL)
        running.wait()
    for root in (disturbed, calm):
        assert cli.main(["--course", str(root), "grade", "tiny"]) == 0
    assert dump(disturbed) == dump(calm)
    assert len(dump(calm)) == 60


def test_memory_stays_flat_over_1000_submissions(pool: Pool, run: object) -> None:
    import psutil

    me = psutil.Process()

    def used() -> int:
        family = [me, *me.children(recursive=True)]
        return sum(process.memory_info().rss for process in family)

    after_100 = 0
    for number in range(1000):
        run(KINDS[number % 3], LIMITS)  # type: ignore[operator]
        if number == 100:
            after_100 = used()
    assert used() < 1.1 * after_100
    assert len(me.children(recursive=True)) < 10
