"""One warmed process for all tests of a session, and a grader for the tiny course."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from flashcourse.grading.course import CourseNotebook, load_course
from flashcourse.grading.grade import Settings, grade
from flashcourse.grading.limits import Limits
from flashcourse.grading.outcome import Graded
from flashcourse.grading.pool import Pool

from . import tiny

# Short enough for a suite, long enough for a busy machine.
LIMITS = Limits(cell_seconds=4.0, total_seconds=30.0, memory_mib=512, output_mib=4, grace_seconds=1)


@pytest.fixture(scope="session")
def pool() -> Iterator[Pool]:
    made = Pool()
    yield made
    made.close()


@pytest.fixture(scope="session")
def editions(tmp_path_factory: pytest.TempPathFactory) -> dict[str, CourseNotebook]:
    root = tiny.make_course(tmp_path_factory.mktemp("course"))
    return load_course(root, tiny.LESSON)[tiny.LESSON]


@pytest.fixture(scope="session")
def run(pool: Pool, editions: dict[str, CourseNotebook]) -> Callable[..., Graded]:
    """Grade a notebook (a dict or bytes) of the tiny course."""

    def run(notebook: Any, limits: Limits = LIMITS) -> Graded:
        data = notebook if isinstance(notebook, bytes) else tiny.as_bytes(notebook)
        return grade(data, editions, pool, Settings(limits=limits, seed=7))

    return run


def points(graded: Graded) -> dict[str, float | None]:
    return {mark.grade_id: mark.points for mark in graded.marks}


@pytest.fixture(scope="session")
def course_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.make_course(tmp_path_factory.mktemp("class"), config=True)
