"""The class list: which student a name, an address or a number belongs to.

A CSV file with a column `id` and any of `name`, `first_name`, `last_name`, `email`, `canvas_id`,
`moodle_id`, `number` (other columns are left alone). Headers may be in capitals or have spaces, or
be those of Moodle's and a Chinese school's lists (see ALIASES). Commas, semicolons or tabs; UTF-8,
or GBK as Excel writes it.
"""

from __future__ import annotations

import csv
import io
import re
import unicodedata
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FILE = "students.csv"
NUMBERS = ("canvas_id", "moodle_id", "number")
ALIASES = {
    "id": ("student_id", "id_number", "学号", "id号"),
    "name": ("full_name", "姓名"),
    "first_name": ("名",),
    "last_name": ("surname", "姓", "姓氏"),
    "email": ("email_address", "邮箱", "电子邮箱", "电子邮件地址"),
}
BETWEEN_WORDS = re.compile(
    r"[\s_+,，、;；.()（）\[\]【】&-]+|(?<=\d)(?=[^\W\d])|(?<=[^\W\d])(?=\d)"
)
MAX_WORDS = 12  # of a file's name that are looked at


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

    def mentioned(self, text: str) -> list[Student]:
        """The students of whom an id, name or address is among the words of `text`.

        Neighbouring words count as one name too. Words of a letter or two, and numbers of less
        than four digits, say nothing.
        """
        words = [word for word in BETWEEN_WORDS.split(text) if word][:MAX_WORDS]
        runs = {
            normal("".join(words[a:b]))
            for a in range(len(words))
            for b in range(a + 1, min(a + 4, len(words)) + 1)
        }
        telling = {run for run in runs if len(run) >= least(run)}
        return [student for student in self.students if student.keys & telling]

    def by_id(self, student_id: str) -> Student | None:
        return next((student for student in self.students if student.id == student_id), None)

    def __bool__(self) -> bool:
        return bool(self.students)


def read_roster(path: Path) -> Roster:
    """The class list in `path`. Raises ValueError, naming the line, for an id that can't be one."""
    text = read_text(path)
    first = text.partition("\n")[0]
    delimiter = max(",;\t", key=first.count)
    students: dict[str, Student] = {}
    for number, row in enumerate(csv.DictReader(io.StringIO(text), delimiter=delimiter), 2):
        known = tidy_row(row)
        if not any(known.values()):
            continue
        student_id = known.get("id", "")
        problem = problem_with(student_id, students)
        if problem:
            raise ValueError(f"{path.name}, line {number}: {problem}")
        students[student_id] = student(student_id, known)
    return Roster(tuple(students.values()))


def read_text(path: Path) -> str:
    data = path.read_bytes()
    for encoding in ("utf-8-sig", "gb18030"):
        try:
            return data.decode(encoding)
        except UnicodeDecodeError:
            continue
    raise ValueError(f"{path.name} is no text: save it from the spreadsheet as CSV (UTF-8)")


def tidy_row(row: dict[str | None, Any]) -> dict[str, str]:
    """The line by column names as this module knows them."""
    known = {
        re.sub(r"\W+", "_", (k or "").strip().lower()): v.strip()
        for k, v in row.items()
        if isinstance(v, str)
    }
    for name, others in ALIASES.items():
        for other in others:
            if other in known:
                known.setdefault(name, known[other])
    return known


def problem_with(student_id: str, students: dict[str, Student]) -> str | None:
    """Why the id can't be one, or None."""
    if not student_id:
        return "no id (the file needs a column 'id' with something in every line)"
    if re.search(r"[/\\\x00]", student_id) or student_id.startswith("."):
        return f"the id {student_id!r} can't be a folder's name: no / and \\, no dot in front"
    if student_id in students:
        return f"the id {student_id!r} is there twice"
    return None


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


def least(word: str) -> int:
    """How long a word must be to tell a student: 学号 four digits, 张三 two characters."""
    if word.isdigit():
        return 4
    return 3 if word.isascii() else 2
