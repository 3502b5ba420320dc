"""flashcourse: an interactive FlashAttention course whose autograder reads learners' code."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flashcourse.later import load
from flashcourse.words import use_language

if TYPE_CHECKING:
    from flashcourse.recording import record
    from flashcourse.records import Record
    from flashcourse.views.controls import explore_tiles
    from flashcourse.views.player import step

__version__ = "0.1.0"

__all__ = ["Record", "explore_tiles", "record", "step", "use_language"]

# Imported when asked for: they need torch, which takes seconds, and a command line may not.
_WHERE = {
    "Record": "flashcourse.records",
    "record": "flashcourse.recording",
    "step": "flashcourse.views.player",
    "explore_tiles": "flashcourse.views.controls",
}


def __getattr__(name: str) -> object:
    return load(__name__, _WHERE, name)
