"""Whose file it is, by where it lay and what it is called.

A pattern is a regular expression over the path, with named groups. The presets:

- moodle: 'Full Name_123456_assignsubmission_file_/x.ipynb', one folder each or all in one
- canvas: 'lovelaceada_LATE_4711_991234_x-1.ipynb'; 4711 is the student, the same in every lesson
- blackboard: 'Lesson 3_alovelace_attempt_2026-10-05-10-30-00_x.ipynb'
- email:  the sender's address, in the path or of a saved .eml
- folder: '<student>/x.ipynb' or '<student>/<lesson>/x.ipynb', as in nbgrader's submitted/
- file:   '<student>_<lesson>.ipynb' or '<lesson>_<student>.ipynb'; also an archive so called

With a class list, a folder or a name that holds one student's id or name among other words is
theirs: '2023001-张三-第三课.ipynb'.

A course's own naming is written with braces: "{student}/hw3-{ignore}.ipynb".
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timezone

from flashcourse.collecting.incoming import Incoming
from flashcourse.collecting.notes import Note, Refused, doubt, repair
from flashcourse.collecting.roster import Roster, Student

PRESETS = {
    "moodle": r"(?:^|/)(?P<name>[^/]+?)_(?P<number>\d+)_assignsubmission_(?:file|onlinetext)[_/]+"
    r"[^/].*$",
    "canvas": r"(?:^|/)(?P<name>[^/_]*[^\W\d_][^/_]*)(?P<late>_LATE)?_(?P<number>\d+)_"
    r"(?!{lesson}\b)\d+_[^/]+$",
    "blackboard": r"(?:^|/)[^/]+_(?P<student>[^/_]+)_attempt_"
    r"(?P<time>\d{4}-\d\d-\d\d-\d\d-\d\d-\d\d)(?:_[^/]+|\.[^/]+)$",
    "email": r"(?:^|[/<\s_])(?P<email>[\w.+-]+@[\w-]+(?:\.[A-Za-z][\w-]*?)+)(?:[>/_\s].*)?$",
    "folder": "",  # see folder_clues
    "file": r"(?:^|/)(?:(?P<student>[^/]+?)[-_ ]+{lesson}|{lesson}[-_ ]+(?P<last>[^/]+?))"
    r"\.(?:ipynb[^/]*|zip)$",
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
    r"v?\d{1,3}|final|finished|done|solved|solution|answers?|submission|homework|hw|new|en|zh|standalone"
    r"|最终版?|完成版?|作业|答案|提交|新",
    re.IGNORECASE,
)
# Gradescope's folders and Jupyter's tell nobody.
NO_FOLDERS = re.compile(r"assignment_\d+_export|submission_\d+|\.ipynb_checkpoints", re.IGNORECASE)
MAX_NAME = 80  # characters; a folder's name has room for 255 bytes
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
        elif way == "file":
            found = file_clues(item.path, lesson, roster)
        else:
            pattern = own_pattern(own) if own else PRESETS[way]
            found = clues(pattern, without_copies(item.path) if own else item.path, lesson)
        if found and not NO_NAMES.fullmatch(found.get("last") or ""):
            return settle(item, found, way, roster)
    raise Refused(
        "whose it is can't be told from its name: rename it to <student>_<lesson>.ipynb, put it "
        "into a folder named after the student, or give --pattern",
        "从文件名看不出是谁的：请改名为 <学号>_<课程>.ipynb，或放进以学号命名的文件夹，"
        "或者用 --pattern 指定",
    )


def clues(pattern: str, path: str, lesson: str) -> dict[str, str | None] | None:
    match = re.search(pattern.replace("{lesson}", re.escape(lesson)), path, re.IGNORECASE)
    return match.groupdict() if match else None


def file_clues(path: str, lesson: str, roster: Roster) -> dict[str, str | None] | None:
    """The student in the file's name; else in the name of the archive that holds it."""
    parts = path.split("/")
    names = [parts[-1], *(part for part in parts[:-1] if ARCHIVE.fullmatch(part))]
    for name in map(without_copies, names):
        found = clues(PRESETS["file"], name, lesson)
        if found:
            return found
        if roster.mentioned(name.rpartition(".")[0]):
            return {"student": name.rpartition(".")[0]}
    return None


def folder_clues(path: str, lesson: str, roster: Roster) -> dict[str, str | None] | None:
    """The folder that is a student: the one in the class list, else the nearest to the file."""
    groups: list[list[str]] = [[]]
    for part in path.split("/")[:-1]:
        if ARCHIVE.fullmatch(part):
            groups.append([])
        elif part not in ("", ".", "..", lesson) and not NO_FOLDERS.fullmatch(part):
            groups[-1].append(part)
    # What lies in a student's own archive says nothing about whose it is.
    folders = next(filter(None, groups), [])
    if not folders:
        return None
    listed = [folder for folder in folders if roster.find(folder) or roster.mentioned(folder)]
    students = {student.id for f in listed for student in roster.find(f) or roster.mentioned(f)}
    if len(students) > 1:
        return {"student": " ".join(listed)}  # which `settle` finds to be several
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
    students = listed_students(roster, name, address, number, trusted=way != "moodle")
    when = given_time(found.get("time")) or (item.date if item.sent else None)
    if len(students) > 1:
        ids = ", ".join(student.id for student in students)
        raise Refused(
            f"{said!r} can be {ids}: rename the file with the student's id",
            f"“{said}”可能是 {ids}：请用学号给文件改名",
        )
    notes = [says_late()] if found.get("late") else []
    if students:
        return Owner(students[0].id, students[0].name, way, number or "", True, when, tuple(notes))
    notes += naming_doubts(said, found.get("folders"), roster)
    student = tame(address.split("@")[0] if address and not name else said)
    return Owner(student, found.get("name") or "", way, number or "", False, when, tuple(notes))


def listed_students(
    roster: Roster, name: str | None, address: str | None, number: str | None, trusted: bool
) -> list[Student]:
    """Whom of the class list the clues stand for. Raises Refused where they contradict each other.

    trusted: whether the number is the student's own. Moodle's is another one in each assignment,
    so it only tells namesakes apart.
    """
    by_name = roster.find(address) or roster.find(name) or (roster.mentioned(name) if name else [])
    by_number = roster.find(number)
    both = [student for student in by_name if student in by_number]
    if both or not by_number or not trusted:
        return both or by_name
    if by_name:
        a, b = by_name[0].id, by_number[0].id
        raise Refused(
            f"the name {name!r} is {a} in the class list, but the number {number} is {b}: put the "
            "class list right, or rename the file with the student's id",
            f"名单里姓名“{name}”是 {a}，编号 {number} 却是 {b}：请改正名单，或用学号给文件改名",
        )
    return by_number


def says_late() -> Note:
    return repair("came late, says Canvas", "Canvas 标明是迟交")


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
    # macOS writes é as two characters, others as one: it is one student.
    composed = unicodedata.normalize("NFC", text.strip())
    plain = re.sub(r"[^\w.@-]+", "-", composed)[:MAX_NAME].strip("-.")
    if not plain:
        raise Refused(
            f"the student's name {text!r} has no letter or digit: rename the file or its folder",
            f"学生的名字“{text}”里没有文字或数字：请给文件或文件夹改名",
        )
    return plain


def given_time(text: str | None) -> datetime | None:
    digits = re.sub(r"\D", "", text or "")
    for form in ("%Y%m%d%H%M%S", "%Y%m%d%H%M", "%Y%m%d"):
        try:
            return datetime.strptime(digits, form).replace(tzinfo=timezone.utc)
        except ValueError:
            continue
    return None
