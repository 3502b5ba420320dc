"""Before handing in: what is unfinished, what was changed that must not be, will it be accepted?

In a notebook, save it and run `check_notebook()`; in a terminal, `flashcourse check FILE`.
"""

from flashcourse.handin.find import check_notebook
from flashcourse.handin.look import HandIn, check_file

__all__ = ["HandIn", "check_file", "check_notebook"]
