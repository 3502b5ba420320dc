"""The exercises that `mark` knows. A lesson's checks live in one module and register there."""

from __future__ import annotations

import importlib
import importlib.util
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from flashcourse.checks.marks import Finding, Marks
from flashcourse.running import code_of, source_line
from flashcourse.words import Text, check_language, course_language

# The modules that register exercises, in the order of the lessons; imported when first asked for.
MODULES = ("memory_wall", "online_softmax", "merging", "forward", "v1_to_v2", "misprint",
           "backward", "v3_and_v4")  # fmt: skip


@dataclass(frozen=True)
class Exercise:
    """id: as in `mark(id, …)`. points: the most it gives. check: (answer, seed=…) → Marks.
    title: what a reader sees.
    """

    id: str
    points: float
    check: Callable[..., Marks]
    title: Text


_EXERCISES: dict[str, Exercise] = {}


def exercise(
    id: str, points: float, title: Text | None = None
) -> Callable[[Callable[..., Marks]], Callable[..., Marks]]:
    """Register the decorated check under `id`. It is called as check(answer, seed=…, **options).

    title: on top of its cards and in the class report; without one they show the id.
    """

    def register(check: Callable[..., Marks]) -> Callable[..., Marks]:
        _EXERCISES[id] = Exercise(id, points, check, title or Text(id, id))
        return check

    return register


def exercises() -> dict[str, Exercise]:
    """Every exercise by id."""
    for name in MODULES:
        full = f"flashcourse.checks.{name}"
        if importlib.util.find_spec(full) is not None:
            importlib.import_module(full)
    return dict(_EXERCISES)


def title_of(id: str) -> Text:
    """The exercise's title; its id where it has none or is not known."""
    known = exercises().get(id)
    return known.title if known else Text(id, id)


def mark(
    exercise: str, answer: Any, lang: str | None = None, *, seed: int = 0, **options: Any
) -> Marks:
    """Marks for the learner's answer (a function, or a number) to one exercise.

    lang: 'en' or 'zh'; None takes the course's language. seed: the random inputs' seed; hidden
    tests pass one of the instructor's. Raises KeyError, naming the exercises there are, for an
    unknown id. Never raises for anything that the answer does.
    """
    known = exercises()
    if exercise not in known:
        raise KeyError(f"unknown exercise {exercise!r}: one of {', '.join(sorted(known))}")
    language = check_language(lang) if lang else course_language()
    marks = known[exercise].check(answer, seed=seed, **options)
    findings = tuple(_quoted(finding, answer) for finding in marks.findings)
    return replace(marks, findings=findings, lang=language)


def _quoted(finding: Finding, answer: Any) -> Finding:
    """The finding with the learner's own line, if it stands in the function of this process."""
    if finding.line is None or hasattr(answer, "__flashcourse_record__"):
        return finding
    code = code_of(answer)
    if code is None or finding.line not in {line for _, _, line in code.co_lines()}:
        return finding
    return replace(finding, source_line=source_line(code.co_filename, finding.line))


def course_seed() -> int:
    """The seed of the hidden tests' inputs: the instructor's FLASHCOURSE_SEED, else 0.

    Raises ValueError if FLASHCOURSE_SEED is set and is no whole number.
    """
    text = os.environ.get("FLASHCOURSE_SEED", "").strip()
    try:
        return int(text or 0)
    except ValueError:
        raise ValueError(f"FLASHCOURSE_SEED must be a whole number, not {text!r}") from None
