"""Which of several files is the student's, and which students are not the same one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from flashcourse.collecting.notes import Note, doubt
from flashcourse.collecting.records import Candidate


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


def rank(candidate: Candidate) -> tuple[float, int, int, str]:
    """The later a file is by this order, the rather it is taken."""
    date = candidate.owner.handed_in or candidate.item.date
    moment = date.timestamp() if date else 0.0
    return moment, copy_number(candidate.item.name), candidate.finished, candidate.item.path


def copy_number(name: str) -> int:
    """2 of 'x (2).ipynb', 'x-2.ipynb' and 'x-Copy2.ipynb'; 0 of a name without a number."""
    match = re.search(r"(?:\((\d+)\)|（(\d+)）|-(\d+)|-Copy(\d+))\.ipynb", name)
    return int(next(filter(None, match.groups()))) if match else 0


def choice_note(chosen: Candidate, next_best: Candidate, count: int) -> Note:
    a, b = rank(chosen), rank(next_best)
    reasons = (
        (a[0] != b[0], "the newest", "最新"),
        (a[1] != b[1], "the one with the highest number", "编号最大"),
        (a[2] != b[2], "the one with most answers", "完成的回答最多"),
        (True, "the last by name", "按文件名排在最后"),
    )
    _, en, zh = next(reason for reason in reasons if reason[0])
    return doubt(
        f"{count} different files of this student; took this one: {en}",
        f"这名学生交了 {count} 个不同的文件；取这一个：{zh}",
    )
