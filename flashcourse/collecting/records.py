"""What collecting knows of one file: before it is taken, and after."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from flashcourse.collecting.incoming import Incoming
from flashcourse.collecting.naming import Owner
from flashcourse.collecting.notes import Note


@dataclass(frozen=True)
class Collected:
    """One file that came in, and what became of it.

    path: as in Incoming. student: '' if unknown. by: the preset that told. lang: its edition.
    outcome: 'taken', 'unchanged' (it was there already), 'older' (another file of the student
    was taken), 'beside' (no notebook, and lay beside one of the student's) or 'refused'; in the
    record later also 'replaced', see `storage`. finished: answers that are filled in, of `answers`.
    date: ISO or ''. mark: as in Incoming.
    """

    path: str
    outcome: str
    student: str = ""
    name: str = ""
    by: str = ""
    lang: str = ""
    finished: int = 0
    answers: int = 0
    date: str = ""
    mark: str = ""
    notes: tuple[Note, ...] = ()

    def of(self, kind: str) -> list[Note]:
        return [note for note in self.notes if note.kind == kind]


@dataclass(frozen=True)
class Candidate:
    """A file that can be taken: whose it is, which edition, and the notebook that it gives."""

    item: Incoming
    owner: Owner
    lang: str
    text: str
    finished: int
    answers: int
    notes: tuple[Note, ...]

    @property
    def date(self) -> datetime | None:
        return self.owner.handed_in or self.item.date

    def as_collected(self, outcome: str, *more: Note) -> Collected:
        date = self.date
        return Collected(
            self.item.path,
            outcome,
            self.owner.student,
            self.owner.name,
            self.owner.by,
            self.lang,
            self.finished,
            self.answers,
            date.isoformat() if date else "",
            self.item.mark,
            (*self.owner.notes, *self.notes, *more),
        )
