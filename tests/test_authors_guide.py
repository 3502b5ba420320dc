"""The author's guide, followed to the letter in a fresh copy, gives a working lesson."""

from __future__ import annotations

import csv
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
# A block to save, announced by the file's name in the sentence before it; or commands.
BLOCK = re.compile(r"^~~~~(\w+)\n(.*?)^~~~~$", re.MULTILINE | re.DOTALL)
NEEDED = ("flashcourse", "nbgrader_config.py", "course.yml", "pyproject.toml")


def blocks(lang: str) -> list[tuple[str, str]]:
    """The guide's blocks in order: ('bash', commands), or a file's path and its text."""
    text = (ROOT / "docs" / f"authors.{lang}.md").read_text(encoding="utf-8")
    found = []
    for match in BLOCK.finditer(text):
        if match[1] == "bash":
            found.append(("bash", match[2]))
            continue
        names = re.findall(r"`([\w/.]+\.(?:md|py))`", text[: match.start()])
        found.append((names[-1], match[2]))
    return found


def test_both_languages_of_the_guide_give_the_same_files_and_commands():
    assert blocks("en") == blocks("zh")
    names = [name for name, _ in blocks("en")]
    assert names[:2] == ["notebooks/08_running_mean.md", "flashcourse/checks/running_mean.py"]
    assert names[2:] == ["bash"] * 3


@pytest.fixture(scope="module")
def followed() -> Iterator[tuple[Path, str]]:
    """A copy of the course in which every step of the guide was done, and what was printed.

    Not in /tmp: grading's sandbox has a /tmp of its own, where it could not see the copy's package.
    """
    clone = ROOT / "build" / "authors-guide"
    shutil.rmtree(clone, ignore_errors=True)
    clone.mkdir(parents=True)
    for name in NEEDED:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, clone / name)
    (clone / "notebooks").mkdir()
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "PYTHONPATH": str(clone)}
    printed = ""
    for name, text in blocks("en"):
        if name != "bash":
            (clone / name).write_text(text, encoding="utf-8")
            continue
        done = subprocess.run(
            ["bash", "-e", "-c", text], cwd=clone, env=environment, timeout=300,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        printed += done.stdout
        assert done.returncode == 0, done.stdout
    yield clone, printed
    shutil.rmtree(clone)


@pytest.mark.slow
def test_the_new_lesson_is_built_in_both_languages(followed):
    clone, _ = followed
    for station in ("source", "release"):
        for lang in ("en", "zh"):
            assert (clone / station / lang / "08_running_mean" / "08_running_mean.ipynb").is_file()
    released = (clone / "release/zh/08_running_mean/08_running_mean.ipynb").read_text("utf-8")
    assert "TODO 1：用新来的数修正平均值" in released
    assert "(value - mean) / n" not in released


@pytest.mark.slow
def test_a_solved_notebook_is_found_ready_before_it_is_handed_in(followed):
    _, printed = followed
    assert "08_running_mean.ipynb: Ready to hand in." in printed


@pytest.mark.slow
def test_the_class_gets_the_marks_that_the_guide_promises(followed):
    clone, _ = followed
    path = clone / "build" / "report" / "08_running_mean" / "marks.csv"
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = {row["student"]: row for row in csv.DictReader(file)}
    assert (rows["ada"]["test-mean"], rows["ada"]["why"]) == ("10", "")
    assert (rows["bob"]["test-mean"], rows["bob"]["edition"]) == ("0", "zh")
    assert rows["ada"]["max"] == "15"
