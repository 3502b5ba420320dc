"""Lesson 3 itself, graded apart: sample students get what they deserve, cheats get a doubt."""

from __future__ import annotations

import base64
import json
import os
import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest
from wheat_and_chaff.whole_rows import WHOLE_ROWS

from flashcourse.authoring.standalone import carry
from flashcourse.grading.course import CourseNotebook, load_course
from flashcourse.grading.grade import Settings, grade
from flashcourse.grading.limits import Limits
from flashcourse.grading.outcome import Graded
from flashcourse.grading.pool import Pool

ROOT = Path(__file__).parents[2]
LESSON = "03_flash_forward"
NAME = "flash_attention_forward_sim"
SETTINGS = Settings(limits=Limits(cell_seconds=20.0), seed=3)


@pytest.fixture(scope="module")
def lesson() -> dict[str, CourseNotebook]:
    return load_course(ROOT, LESSON)[LESSON]


def answered(answer: str, own: str = "") -> bytes:
    """The English release with this answer, and a cell of the student's own before it."""
    path = ROOT / "release" / "en" / LESSON / f"{LESSON}.ipynb"
    notebook = json.loads(path.read_text("utf-8"))
    cells = []
    for cell in notebook["cells"]:
        if cell["metadata"].get("nbgrader", {}).get("grade_id") == "flash-forward":
            cells.append({"cell_type": "code", "metadata": {}, "source": own})
            cell["source"] = answer
        cells.append(cell)
    notebook["cells"] = cells
    return json.dumps(notebook).encode()


def points(graded: Graded) -> dict[str, float | None]:
    return {m.grade_id: m.points for m in graded.marks if m.status != "manual"}


def sample_notebook(student: str) -> tuple[Any, Any]:
    """A student of the sample class, and what they hand in."""
    sys.path.insert(0, str(ROOT / "examples"))
    from sample_class import handed_in, read_submission

    sample = read_submission(ROOT / "examples" / LESSON / f"{student}.py")
    return sample, handed_in(sample, ROOT)


SAMPLES = ["02-right-deferred", "05-todo-1-to-3", "08-block-max", "13-exception"]


@pytest.mark.parametrize("student", SAMPLES)
def test_a_sample_student_gets_what_is_deserved(
    pool: Pool, lesson: dict[str, CourseNotebook], student: str
) -> None:
    sample, notebook = sample_notebook(student)
    graded = grade(nbformat.writes(notebook).encode(), lesson, pool, SETTINGS)
    deserved = {k: v for k, v in sample.marks.items() if k in points(graded)}
    assert {k: points(graded)[k] for k in deserved} == deserved
    assert graded.outcome.kind == sample.outcome
    assert graded.doubts == ()


def test_a_notebook_that_carries_the_package_is_graded_like_any_other(
    pool: Pool, lesson: dict[str, CourseNotebook]
) -> None:
    _, notebook = sample_notebook("02-right-deferred")
    package = base64.b64encode(os.urandom(250_000)).decode()
    notebook = carry(notebook, package, "en")
    graded = grade(nbformat.writes(notebook).encode(), lesson, pool, SETTINGS)
    assert sum(p or 0 for p in points(graded).values()) == 100
    assert graded.doubts == ()


ALL_AT_ONCE = f"""\
def {NAME}(q, k, v, block_size=2):
    S = q @ k.T / math.sqrt(q.shape[1])
    P = torch.exp(S - S.amax(-1, keepdim=True))
    return P @ v / P.sum(-1, keepdim=True)
"""


def test_all_scores_at_once_get_no_tiling_points_and_are_seen_from_outside(
    pool: Pool, lesson: dict[str, CourseNotebook]
) -> None:
    graded = grade(answered(ALL_AT_ONCE), lesson, pool, SETTINGS)
    assert points(graded)["test-tiling"] == 0
    assert any("in tiles of 192" in doubt.en for doubt in graded.doubts)


FORGE = """\
import flashcourse, flashcourse.recording as fr
def forged(function, q, k, v, block_size=2, **options):
    return fr.Record(torch.softmax(q @ k.T / q.shape[1] ** 0.5, -1) @ v, "Tensor", seconds=0.01)
fr.record = fr._record_here = flashcourse.record = forged
"""


def test_a_forged_record_gains_nothing_and_is_a_doubt(
    pool: Pool, lesson: dict[str, CourseNotebook]
) -> None:
    graded = grade(answered(ALL_AT_ONCE, FORGE), lesson, pool, SETTINGS)
    got = points(graded)
    assert got["test-tiling"] == 0
    assert sum(value or 0 for name, value in got.items() if "todo" in name) == 0
    assert any("flashcourse.record" in doubt.en for doubt in graded.doubts)


QUICK = ("a sigmoid", "NumPy", "in a thread", "a loop for show")


@pytest.mark.parametrize(
    "name",
    [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in WHOLE_ROWS],
)
def test_a_whole_softmax_in_disguise_gets_what_an_open_one_gets(
    pool: Pool, lesson: dict[str, CourseNotebook], name: str
) -> None:
    graded = grade(answered(WHOLE_ROWS[name], "import numpy as np"), lesson, pool, SETTINGS)
    assert sum(p or 0 for p in points(graded).values()) == 30
    assert graded.outcome.kind == "graded"
