"""How long recording and marking take: a check of all TODOs at (64, 16, 16), and every exercise.

Run: python benchmarks/bench_marks.py
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from wheat_and_chaff.chaff import CHAFF
from wheat_and_chaff.test_wheat_and_chaff import function_of
from wheat_and_chaff.wheat import wheat_skeleton

from flashcourse.checks import mark
from flashcourse.checks.forward_relations import read
from flashcourse.checks.forward_tile import Problem
from flashcourse.recording import record


def milliseconds(work: Callable[[], object], times: int = 7) -> tuple[float, float]:
    """Median wall and CPU time of `work`, after one run to warm up."""
    work()
    wall, cpu = [], []
    for _ in range(times):
        a, b = time.perf_counter(), time.process_time()
        work()
        wall.append(time.perf_counter() - a)
        cpu.append(time.process_time() - b)
    return 1e3 * statistics.median(wall), 1e3 * statistics.median(cpu)


def main() -> None:
    torch.set_num_threads(1)
    q, k, v = (torch.randn(64, 16) for _ in range(3))
    wrong = function_of(next(c for c in CHAFF if c.name == "O without alpha"))

    def all_todos(function: Callable[..., object]) -> object:
        return read(Problem("(64, 16, 16)", q, k, v, 16), record(function, q, k, v, 16))

    rows = {
        "the function alone at (64, 16, 16)": lambda: wheat_skeleton(q, k, v, 16),
        "record": lambda: record(wheat_skeleton, q, k, v, 16),
        "record and judge all TODOs, right": lambda: all_todos(wheat_skeleton),
        "record and judge all TODOs, wrong": lambda: all_todos(wrong),
        "mark('forward.todo5'), right": lambda: mark("forward.todo5", wheat_skeleton),
        "mark('forward'), right": lambda: mark("forward", wheat_skeleton),
        "mark('forward'), wrong": lambda: mark("forward", wrong),
    }
    for name, work in rows.items():
        wall, cpu = milliseconds(work)
        print(f"{name:40} {wall:7.1f} ms wall {cpu:7.1f} ms CPU")


if __name__ == "__main__":
    main()
