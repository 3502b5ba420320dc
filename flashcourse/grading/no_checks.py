"""What `flashcourse.checks` is to a student's code while it is graded.

What is right for an exercise is known in another process, where the tests run. A cell of the
student's that imports the checks or calls `mark`, as in the notebook, goes on without them.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from flashcourse.words import Text, course_language

_ELSEWHERE = Text(
    "Not marked here: while a submission is graded, the tests run apart from its code.",
    "这里不打分：评分时，测试与你的代码分开运行。",
)


@dataclass(frozen=True)
class NoMarks:
    """Stands where a notebook has `Marks`: no points, no findings, and a sentence that says why."""

    exercise: str
    points: float = 0.0
    max_points: float = 0.0
    status: str = "wrong"
    findings: tuple = ()
    passed: tuple = ()

    def __repr__(self) -> str:
        return _ELSEWHERE.in_(course_language())


def mark(exercise: str, answer: Any = None, lang: str | None = None, **_options: Any) -> NoMarks:
    """No marks. Looks at nothing, and never raises."""
    return NoMarks(str(exercise))


def course_seed() -> int:
    """The seed that a student's own notebook has."""
    return 0


def exercises() -> dict[str, Any]:
    """None are known here."""
    return {}


def install() -> None:
    """Put this in the place of `flashcourse.checks`, which must not have been imported yet."""
    import flashcourse

    loaded = [name for name in sys.modules if f"{name}.".startswith("flashcourse.checks.")]
    if loaded:
        raise RuntimeError(f"the checks are in this process already: {', '.join(loaded)}")
    module = ModuleType("flashcourse.checks", __doc__)
    for thing in (mark, course_seed, exercises):
        setattr(module, thing.__name__, thing)
    sys.modules[module.__name__] = module
    flashcourse.checks = module  # type: ignore[attr-defined]


def folders() -> list[str]:
    """Where the checks lie on this machine, for every copy of the course that can be imported."""
    places = (Path(entry, "flashcourse", "checks") for entry in sys.path if entry)
    return [str(place) for place in dict.fromkeys(places) if place.is_dir()]
