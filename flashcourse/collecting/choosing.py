"""Which of several files is the student's, and which students are not the same one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import datetime

from flashcourse.collecting.notes import Note, doubt
from flashcourse.collecting.records import Candidate
from flashcourse.collecting.roster import normal


def tell_namesakes_apart(candidates: list[Candidate]) -> Iterator[Candidate]:
    """Two students of one name, told apart by their numbers, must not become one."""
    numbers: dict[str, set[str]] = {}
    for candidate in candidates:
        if not candidate.owner.listed and candidate.owner.number:
            numbers.setdefault(candidate.owner.student, set()).add(candidate.owner.number)
    for candidate in candidates:
        owner = candidate.owner
        if len(numbers.get(owner.student, ())) < 2 or owner.listed or not owner.number:
            yield candidate
            continue
        note = doubt(
            f"several students are called {owner.student}; told apart by the number "
            f"{owner.number}. Add them to students.csv",
            f"有多名学生都叫 {owner.student}；按编号 {owner.number} 区分。"
            "请把他们加进 students.csv",
        )
        student = f"{owner.student}-{owner.number}"
        yield replace(candidate, owner=replace(owner, student=student, notes=(*owner.notes, note)))


def by_student(candidates: Iterable[Candidate]) -> list[list[Candidate]]:
    groups: dict[str, list[Candidate]] = {}
    for candidate in candidates:
        groups.setdefault(candidate.owner.student, []).append(candidate)
    return list(groups.values())


def doubt_older(chosen: Candidate, before: datetime | None) -> list[Note]:
    """Whether the file, whose time of handing in is unknown, is dated before what it replaces."""
    if not before or not chosen.date or chosen.date >= before:
        return []
    when = f"{before:%Y-%m-%d %H:%M}"
    return [
        doubt(
            f"replaces a file that is dated later ({when}): was that meant?",
            f"替换了日期更晚的文件（{when}）：是有意的吗？",
        )
    ]


def doubts_between(groups: list[list[Candidate]], there: set[str]) -> dict[str, list[Note]]:
    """By student: that their file is another's too, or that their name is nearly another's.

    there: students who handed something in before.
    """
    doubts: dict[str, list[Note]] = {}
    files: dict[str, set[str]] = {}
    for chosen in (max(group, key=rank) for group in groups):
        if chosen.finished:
            files.setdefault(chosen.item.mark, set()).add(chosen.owner.student)
    for student, same in others(files.values()).items():
        note = doubt(
            f"is the very same file, byte for byte, as that of {listing(same)}",
            f"和 {listing(same)} 交的是同一个文件，一个字节都不差",
        )
        doubts.setdefault(student, []).append(note)
    names: dict[str, set[str]] = {}
    for student in there | {group[0].owner.student for group in groups}:
        for name in (normal(student), words(student)):
            names.setdefault(name, set()).add(student)
    for student, alike in others(names.values()).items():
        note = doubt(
            f"the name is nearly that of {listing(alike)}: one student? Add them to students.csv",
            f"名字和 {listing(alike)} 几乎一样：是同一名学生吗？请把他们加进 students.csv",
        )
        doubts.setdefault(student, []).append(note)
    return doubts


def words(name: str) -> str:
    """'2023001_张三', '张三-2023001' and '2023001张三' come out the same, by their words."""
    return " ".join(sorted(map(normal, re.findall(r"\d+|[^\W\d_]+", name))))


def others(groups: Iterable[set[str]]) -> dict[str, set[str]]:
    """With whom each one is in a group; nobody who is in none with another."""
    found: dict[str, set[str]] = {}
    for group in groups:
        for one in group if len(group) > 1 else ():
            found.setdefault(one, set()).update(group - {one})
    return found


def listing(students: set[str]) -> str:
    more = f" (+{len(students) - 3})" if len(students) > 3 else ""
    return ", ".join(sorted(students)[:3]) + more


def rank(candidate: Candidate) -> tuple[bool, float, int, int, str]:
    """The later a file is by this order, the rather it is taken."""
    date = candidate.date
    moment = date.timestamp() if date else 0.0
    name, path = candidate.item.name, candidate.item.path
    saved = not name.endswith("-checkpoint.ipynb")
    return saved, moment, copy_number(name), candidate.finished, path


def copy_number(name: str) -> int:
    """2 of 'x (2).ipynb', 'x-2.ipynb' and 'x-Copy2.ipynb'; 0 of a name without a number."""
    match = re.search(r"(?:\((\d+)\)|（(\d+)）|-(\d+)|-Copy(\d+))\.ipynb", name)
    return int(next(filter(None, match.groups()))) if match else 0


def choice_note(chosen: Candidate, next_best: Candidate, count: int) -> Note:
    a, b = rank(chosen), rank(next_best)
    reasons = (
        (a[0] != b[0], "not Jupyter's autosave copy", "不是 Jupyter 自动保存的副本"),
        (a[1] != b[1], "the newest", "最新"),
        (a[2] != b[2], "the one with the highest number", "编号最大"),
        (a[3] != b[3], "the one with most answers", "完成的回答最多"),
        (True, "the last by name", "按文件名排在最后"),
    )
    _, en, zh = next(reason for reason in reasons if reason[0])
    return doubt(
        f"{count} different files of this student; took this one: {en}",
        f"这名学生交了 {count} 个不同的文件；取这一个：{zh}",
    )
