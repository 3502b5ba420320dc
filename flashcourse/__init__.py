"""flashcourse: an interactive FlashAttention course whose autograder reads learners' code."""

from flashcourse.record import Record, record
from flashcourse.views.player import step
from flashcourse.words import use_language

__version__ = "0.1.0"

__all__ = ["Record", "explore_tiles", "record", "step", "use_language"]


def __getattr__(name: str) -> object:
    """`explore_tiles` when it is asked for: only it needs ipywidgets."""
    if name == "explore_tiles":
        from flashcourse.views.controls import explore_tiles

        return explore_tiles
    raise AttributeError(f"module 'flashcourse' has no attribute {name!r}")
