"""Whose file it is, by where it lay and what it is called.

A pattern is a regular expression over the path, with named groups. The presets:

- moodle: 'Full Name_123456_assignsubmission_file_/x.ipynb', one folder each or all in one
- canvas: 'lovelaceada_LATE_4711_991234_x-1.ipynb'; 4711 is the student, the same in every lesson
- email:  the sender's address, in the path or of a saved .eml
- folder: '<student>/x.ipynb' or '<student>/<lesson>/x.ipynb', as in nbgrader's submitted/
- file:   '<student>_<lesson>.ipynb' or '<lesson>_<student>.ipynb', in no folder

A course's own naming is written with braces: "{student}/hw3-{ignore}.ipynb".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timezone

from flashcourse.collecting.incoming import Incoming
from flashcourse.collecting.notes import Note, Refused, doubt
from flashcourse.collecting.roster import Roster

PRESETS = {
    "moodle": r"(?:^|/)(?P<name>[^/_]+)_(?P<number>\d+)_assignsubmission_file[_/]+[^/].*$",
    "canvas": r"(?:^|/)(?P<name>[^/_\d]+)(?:_LATE)?_(?P<number>\d+)_\d+_[^/]+$",
    "email": r"(?:^|[/<\s_])(?P<email>[\w.+-]+@[\w-]+(?:\.[A-Za-z][\w-]*?)+)(?:[>/_\s].*)?$",
    "folder": "",  # see folder_clues
    "file": r"(?:^|/)(?:(?P<student>[^/]+?)[-_ ]+{lesson}|{lesson}[-_ ]+(?P<last>[^/]+?))"
    r"\.ipynb[^/]*$",
}
AUTO = tuple(PRESETS)
FIELDS = {
    "student": r"(?P<student>[^/]+?)",
    "name": r"(?P<name>[^/]+?)",
    "email": r"(?P<email>[^/\s]+@[^/\s_]+)",
    "number": r"(?P<number>\d+)",
    "time": r"(?P<time>\d{4}-?\d\d-?\d\d(?:[-_T ]?\d\d[-:]?\d\d(?:[-:]?\d\d)?)?)",
    "ignore": r"[^/]*?",
}
COPY = re.compile(
    r"^(?:Copy of |Copy \d+ of |副本[ _-]?)+"
    r"|(?: ?\(\d+\)|（\d+）|-Copy\d*|[ _-]copy\d*| ?- ?副本| ?的?副本)+(?=\.ipynb)",
    re.IGNORECASE,
)
# What students add to a file's name that is no name: 03_flash_forward_final.ipynb.
NO_NAMES = re.compile(
    r"v?\d+|final|finished|done|solved|solution|answers?|submission|homework|hw|new|en|zh|standalone"
    r"|最终版?|完成版?|作业|答案|提交|新",
    re.IGNORECASE,
)
ARCHIVE = re.compile(r".*\.(zip|eml)", re.IGNORECASE)


@dataclass(frozen=True)
class Owner:
    """student: their folder in submitted/. name: as the path or the roster has it, or ''.
    by: the preset that told. number: the learning platform's for the student, or ''.
    handed_in: the time that the path or the e-mail tells, or None. listed: by the class list."""

    student: str
    name: str
    by: str
    number: str = ""
    listed: bool = False
    handed_in: datetime | None = None
    notes: tuple[Note, ...] = ()


def own_pattern(text: str) -> str:
    """A course's own pattern with {student} and the like, as a regular expression.

    Raises ValueError for an unknown field, or for a pattern that tells no student.
    """
    expression = ""
    for part in re.split(r"(\{[^}]*\})", text):
        if part.startswith("{"):
            if part[1:-1] not in (*FIELDS, "lesson"):
                known = ", ".join(f"{{{field}}}" for field in (*FIELDS, "lesson"))
                raise ValueError(f"unknown field {part} in the pattern: one of {known}")
            expression += FIELDS.get(part[1:-1], "{lesson}")
        else:
            expression += re.escape(part).replace(r"\*", "[^/]*")
    if not re.search(r"\?P<(student|name|email|number)>", expression):
        raise ValueError("the pattern tells no student: write {student}, {name} or {email} in it")
    return rf"(?:^|/){expression}$"


def find_owner(
    item: Incoming, lesson: str, roster: Roster, ways: Iterable[str] = AUTO, own: str | None = None
) -> Owner:
    """Whose file it is. Raises Refused where nothing tells, or the roster has several of them.

    ways: presets to try, in order. own: a course's own pattern, which is then the only one.
    """
    for way in ["own"] if own else list(ways):
        if way == "folder":
            found = None if item.named else folder_clues(item.path, lesson, roster)
        else:
            pattern = own_pattern(own) if own else PRESETS[way]
            path = without_copies(item.path) if way in ("file", "own") else item.path
            match = re.search(pattern.replace("{lesson}", re.escape(lesson)), path)
            found = match.groupdict() if match else None
        if found and not NO_NAMES.fullmatch(found.get("last") or ""):
            return settle(item, found, way, roster)
    raise Refused(
        "whose it is can't be told from its name: rename it to <student>_<lesson>.ipynb, put it "
        "into a folder named after the student, or give --pattern",
        "从文件名看不出是谁的：请改名为 <学号>_<课程>.ipynb，或放进以学号命名的文件夹，"
        "或者用 --pattern 指定",
    )


def folder_clues(path: str, lesson: str, roster: Roster) -> dict[str, str | None] | None:
    """The folder that is a student: the one in the class list, else the nearest to the file."""
    groups: list[list[str]] = [[]]
    for part in path.split("/")[:-1]:
        if ARCHIVE.fullmatch(part):
            groups.append([])
        elif part not in ("", ".", "..", lesson):
            groups[-1].append(part)
    # What lies in a student's own archive says nothing about whose it is.
    folders = next(filter(None, groups), [])
    if not folders:
        return None
    listed = [folder for folder in folders if roster.find(folder)]
    unsure = len(folders) > 1 and not listed
    return {"student": (listed or folders)[-1], "folders": "/".join(folders) if unsure else None}


def without_copies(path: str) -> str:
    """The path without 'Copy of', '(1)', '-Copy2' and the like in the file's name."""
    folder, slash, name = path.rpartition("/")
    return folder + slash + COPY.sub("", name)


def settle(item: Incoming, found: dict[str, str | None], way: str, roster: Roster) -> Owner:
    """The student whom the clues stand for: by the class list, else a tame form of the clue."""
    address, number = found.get("email"), found.get("number")
    name = found.get("student") or found.get("last") or found.get("name")
    said = name or address or number or ""
    students = roster.find(address) or roster.find(number) or roster.find(name)
    when = given_time(found.get("time")) or (item.date if item.sent else None)
    if len(students) > 1:
        ids = ", ".join(student.id for student in students)
        raise Refused(
            f"{said!r} can be {ids}: rename the file with the student's id",
            f"“{said}”可能是 {ids}：请用学号给文件改名",
        )
    if students:
        return Owner(students[0].id, students[0].name, way, number or "", True, when)
    notes = tuple(naming_doubts(said, found.get("folders"), roster))
    student = address.split("@")[0] if address and not name else said
    return Owner(tame(student), found.get("name") or "", way, number or "", False, when, notes)


def naming_doubts(said: str, folders: str | None, roster: Roster) -> Iterator[Note]:
    if roster:
        yield doubt(
            f"{said!r} is not in the class list; taken as a new student",
            f"“{said}”不在名单里；按新学生收下",
        )
    if folders:
        yield doubt(
            f"the student can be any of the folders {folders}; took {said!r}",
            f"文件夹 {folders} 中哪个是学生不确定；取了“{said}”",
        )


def tame(text: str) -> str:
    """A name that can be a folder's: letters of any script, digits, dots, dashes."""
    plain = re.sub(r"[^\w.@-]+", "-", text.strip()).strip("-.")
    if not plain:
        raise Refused("the student's name is empty", "学生的名字是空的")
    return plain


def given_time(text: str | None) -> datetime | None:
    digits = re.sub(r"\D", "", text or "")
    for form in ("%Y%m%d%H%M%S", "%Y%m%d%H%M", "%Y%m%d"):
        try:
            return datetime.strptime(digits, form).replace(tzinfo=timezone.utc)
        except ValueError:
            continue
    return None
