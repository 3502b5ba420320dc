"""A cell that needs an exercise's function says so, without a traceback, while that is open."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from html import escape

from IPython.display import HTML, display

from flashcourse.views.svg import INK, LINE
from flashcourse.words import Text, course_language

_STYLE = f"border-left:4px solid {LINE};background:#F4F6F8;color:{INK};padding:.5em 1em"


@contextmanager
def after_exercise(name: str) -> Iterator[None]:
    """Run what needs the exercise `name`; if that still raises NotImplementedError, say so.

    Any other exception comes through: it is about the learner's code.
    """
    try:
        yield
    except NotImplementedError:
        words = Text(
            f"This cell shows something once you have finished {name}. Then run it again.",
            f"完成{name} 之后，这一格才有内容。到时候请再运行一次。",
        ).in_(course_language())
        display(HTML(f'<div style="{_STYLE}">{escape(words)}</div>'))
