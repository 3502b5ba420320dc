"""Answers of lessons 4 and 5 for tests: a right function with edits, and what it should earn."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from flashcourse.attention import attention
from flashcourse.checks import mark


def written(source: str, name: str, *edits: tuple[str, str]) -> Callable[..., Any]:
    """The function `name` of `source` after each edit (old, new); every edit must apply."""
    for old, new in edits:
        assert old in source, f"the edit of {old!r} no longer applies"
        source = source.replace(old, new)
    scope: dict[str, Any] = {"torch": torch, "math": math, "attention": attention}
    exec(compile(source, "<answer>", "exec"), scope)
    return scope[name]


def earns(
    exercise: str, answer: Callable[..., Any], points: float, words: str = "", seed: int = 3
) -> None:
    """The answer gets the points, and its findings say the words; without words it is right."""
    marks = mark(exercise, answer, seed=seed)
    said = " ".join(finding.text.en for finding in marks.findings)
    assert marks.points == points, said
    assert words in said
    assert words or marks.status == "right", said
