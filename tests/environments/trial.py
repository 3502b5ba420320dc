"""Try one notebook in one environment."""

from __future__ import annotations

import os
import time
from pathlib import Path

import nbformat

from tests.environments.execute import execute, kernel
from tests.environments.notebooks import lesson_and_language, problems, solved
from tests.environments.recipes import ROOT


def try_notebook(python: Path, gpu: bool, path: Path) -> int:
    """Run one notebook both ways in one kernel; how many problems there were."""
    os.environ["OMP_NUM_THREADS"] = "1"
    notebook = nbformat.read(path, as_version=4)
    lesson, lang = lesson_and_language(notebook)
    lines = []
    began = time.monotonic()
    with kernel(python, gpu) as client:
        for is_solved in (False, True):
            book = solved(notebook, ROOT) if is_solved else nbformat.from_dict(notebook)
            state = "solved" if is_solved else "unfilled"
            for problem in problems(execute(client, book), is_solved):
                lines.append(f"    {state}: {problem}")
    seconds = time.monotonic() - began
    sign = "✗" if lines else "✓"
    print("\n".join([f"{sign} {lesson} {lang} ({seconds:.1f} s)", *lines]), flush=True)
    return len(lines)
