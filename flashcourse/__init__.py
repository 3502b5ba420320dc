"""flashcourse: an interactive FlashAttention course whose autograder reads the learner's own code."""

from flashcourse.record import Record, record
from flashcourse.views.player import step
from flashcourse.words import use_language

__version__ = "0.1.0"

__all__ = ["Record", "record", "step", "use_language"]
