"""What holds for every exercise of lessons 4 and 5."""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch

from flashcourse.checks import exercises, mark

HAN = re.compile("[\u4e00-\u9fff]")
EXERCISES = sorted(name for name in exercises() if name.startswith(("v1v2.", "v3v4.")))


def test_each_lesson_has_four() -> None:
    assert len(EXERCISES) == 8


@pytest.mark.parametrize("exercise", EXERCISES)
def test_a_skeleton_is_unfinished_and_worth_nothing(exercise: str) -> None:
    def skeleton(*args: Any, **kwargs: Any) -> None:
        raise NotImplementedError

    marks = mark(exercise, skeleton)
    assert (marks.points, marks.status) == (0, "unfinished")


@pytest.mark.parametrize("exercise", EXERCISES)
@pytest.mark.parametrize("returned", [(1, 2), (torch.zeros(2), 1, 2)])
def test_each_finding_is_said_in_both_languages(exercise: str, returned: tuple) -> None:
    marks = mark(exercise, lambda *args, **kwargs: returned, lang="zh")
    assert marks.findings
    for finding in marks.findings:
        assert HAN.search(finding.text.zh) and not HAN.search(finding.text.en)
    assert HAN.search(marks._repr_html_())
