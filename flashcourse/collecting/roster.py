"""The class list: which student a name, an address or a number belongs to.

A CSV file with a column `id` and any of `name`, `first_name`, `last_name`, `email`, `canvas_id`,
`moodle_id`, `number` (other columns are left alone). Headers may be in capitals or have spaces.
"""

from __future__ import annotations

import csv
import re
import unicodedata
from dataclasses import dataclass, field
from pathlib import Path

FILE = "students.csv"
NUMBERS = ("canvas_id", "moodle_id", "number")


@dataclass(frozen=True)
class Student:
    """id: the folder's name in submitted/. keys: the normalised forms that stand for them.
    row: their line of the file, by column (first_name, email, canvas_id and the like)."""

    id: str
    name: str
    keys: frozenset[str]
    row: dict[str, str] = field(default_factory=dict, compare=False)


@dataclass(frozen=True)
class Roster:
    students: tuple[Student, ...] = ()

    def find(self, *clues: str | None) -> list[Student]:
        """The students that any of the clues (id, name, address, number) stands for."""
        wanted = {normal(clue) for clue in clues if clue}
        return [student for student in self.students if student.keys & wanted]

    def by_id(self, student_id: str) -> Student | None:
        return next((student for student in self.students if student.id == student_id), None)

    def __bool__(self) -> bool:
        return bool(self.students)


def read_roster(path: Path) -> Roster:
    """The class list in `path`. Raises ValueError, naming the line, if a student has no id."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    students = []
    for number, row in enumerate(rows, 2):
        known = {
            re.sub(r"\W+", "_", (k or "").strip().lower()): (v or "").strip()
            for k, v in row.items()
            if isinstance(v, str)
        }
        student_id = known.get("id") or known.get("student_id")
        if not student_id:
            raise ValueError(f"{path.name}, line {number}: no id (the file needs a column 'id')")
        students.append(student(student_id, known))
    return Roster(tuple(students))


def student(student_id: str, row: dict[str, str]) -> Student:
    first, last = row.get("first_name", ""), row.get("last_name", "")
    chinese = any("\u4e00" <= letter <= "\u9fff" for letter in last)
    full = f"{last}{first}" if chinese else f"{first} {last}".strip()
    name = row.get("name") or full
    clues = [student_id, name, row.get("email", ""), *(row.get(n, "") for n in NUMBERS)]
    # Canvas writes "lastfirst", and either order is in use.
    words = name.split()
    clues += [f"{first}{last}", f"{last}{first}", "".join(words[::-1])]
    if len(words) > 2:
        clues.append(words[-1] + "".join(words[:-1]))
    return Student(student_id, name, frozenset(normal(clue) for clue in clues if normal(clue)), row)


def normal(text: str) -> str:
    """Case, accents, spaces and punctuation left out."""
    plain = unicodedata.normalize("NFKD", text).casefold()
    return "".join(c for c in plain if c.isalnum() or c == "@")
