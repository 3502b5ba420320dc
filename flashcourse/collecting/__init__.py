"""From whatever students hand in to submitted/: who, which lesson, which cell is which answer.

The path of a file, one module a step:

- `incoming`   find the notebooks in files, folders, archives and e-mails
- `naming`     whose it is, by the patterns of Moodle, Canvas, e-mail, folders or the course's own
- `roster`     the class list, which settles who a name belongs to
- `reading`    the notebook in the bytes, however it was saved
- `matching`   which cell is which cell of the release, and which of several is the answer
- `rebuild`    the notebook that goes to submitted/: the release with the student's answers
- `collect`    all of it, to files; originals stay untouched
- `report`     every repair and every doubt, for a tired instructor

Nothing is guessed silently: a step that chose or mended something leaves a `Note`.
"""

from flashcourse.collecting.notes import Note, Refused

__all__ = ["Note", "Refused"]
