"""What the numbers of a class say."""

from __future__ import annotations

import re
import statistics
from collections import Counter
from dataclasses import dataclass

from flashcourse.report.gather import Class, Said, Work
from flashcourse.words import Text

# 'carried': all points, given an earlier slip of the student's own that costs points elsewhere.
STATUSES = (
    "right", "carried", "partly", "wrong", "unfinished", "crashed", "too_slow", "not_run", "manual",
)  # fmt: skip
STOPPED = ("timed_out", "out_of_memory", "too_much_output", "killed")


@dataclass(frozen=True)
class Row:
    """Success in one graded cell. label: short; title: as the learners see it.

    counts: submissions by status, of `submissions` in all.
    average: points of full marks, 0 to 1, over those that are marked."""

    grade_id: str
    label: str
    title: Text
    points: float
    counts: dict[str, int]
    average: float | None


@dataclass(frozen=True)
class Pattern:
    """One misconception. students: how many had it. example: one of their findings."""

    id: str
    students: int
    example: Said
    labels: tuple[str, ...]


@dataclass(frozen=True)
class Eye:
    """A submission that a person should look at. urgent: no mark can be trusted before that."""

    student: str
    name: str
    reasons: tuple[Text, ...]
    urgent: bool


def label_of(grade_id: str) -> str:
    """test-todo3 → TODO 3; other ids without their 'test-'."""
    todo = re.fullmatch(r"test-todo-?(\d+)", grade_id)
    return f"TODO {todo[1]}" if todo else grade_id.removeprefix("test-")


def success(known: Class) -> list[Row]:
    """Each graded cell in the lesson's order."""
    rows = []
    for grade_id, worth in known.grade_ids().items():
        counts = Counter(status_in(work, grade_id, worth) for work in known.works)
        marked = [
            work.points[grade_id] for work in known.works if work.points.get(grade_id) is not None
        ]
        average = statistics.mean(p or 0 for p in marked) / worth if marked and worth else None
        label = label_of(grade_id)
        title = known.titles.get(grade_id) or Text(label, label)
        rows.append(Row(grade_id, label, title, worth, dict(counts), average))
    return rows


def status_in(work: Work, grade_id: str, worth: float) -> str:
    status = work.status.get(grade_id, "not_run")
    points = work.points.get(grade_id)
    if status == "manual":
        if grade_id in work.unchanged and not points:
            return "unfinished"
        if points is None:
            return status
        return "right" if points >= worth else "partly" if points else "wrong"
    if status == "wrong" and points:
        return "partly" if points < worth else "carried"
    return status


def patterns(known: Class) -> list[Pattern]:
    """The misconceptions, the most frequent first."""
    found: dict[str, dict[str, list[Said]]] = {}
    for work in known.works:
        for said in work.said:
            if said.misconception:
                found.setdefault(said.misconception, {}).setdefault(work.student, []).append(said)
    result = []
    for id, by_student in found.items():
        everything = [said for findings in by_student.values() for said in findings]
        example = next((said for said in everything if said.line), everything[0])
        labels = dict.fromkeys(label_of(said.grade_id) for said in everything)
        result.append(Pattern(id, len(by_student), example, tuple(labels)))
    return sorted(result, key=lambda pattern: (-pattern.students, pattern.id))


def hardest(rows: list[Row]) -> list[Row]:
    """Up to two exercises in which least was reached, if anything went wrong there."""
    marked = [
        row
        for row in rows
        if row.average is not None
        and row.average < 1
        and row.counts.get("unfinished", 0) < sum(row.counts.values())
    ]
    return sorted(marked, key=lambda row: row.average or 0)[:2]


def eyes(known: Class) -> list[Eye]:
    """Who needs a human eye: by doubts of collecting and grading, crashes and stops."""
    reasons: dict[str, list[Text]] = {}
    names = {work.student: work.name for work in known.works}
    urgent: set[str] = set()
    for work in known.works:
        found = reasons.setdefault(work.student, [])
        if work.outcome in (*STOPPED, "crashed", "unreadable", "foreign"):
            found.append(outcome_text(work))
        found += work.doubts
        if work.outcome in (*STOPPED, "unreadable", "foreign") or work.doubts:
            urgent.add(work.student)
    for entry in known.collected:
        found = reasons.setdefault(entry["student"] or entry["path"] or "?", [])
        found += collecting_reasons(entry, known.anonymous)
        if entry["outcome"] == "refused":
            urgent.add(entry["student"] or entry["path"] or "?")
    result = [
        Eye(student, names.get(student, ""), tuple(found), student in urgent)
        for student, found in reasons.items()
        if found
    ]
    return sorted(result, key=lambda eye: (not eye.urgent, eye.student))


def collecting_reasons(entry: dict, anonymous: bool) -> list[Text]:
    if anonymous:
        return [Text("a doubt or a refusal in collecting", "收取时有疑点或被拒收")]
    place = entry["path"]
    return [
        Text(f"{place}: {note['en']}", f"{place}：{note['zh']}")
        for note in entry["notes"]
        if note["kind"] != "repair"
    ]


def outcome_text(work: Work) -> Text:
    from flashcourse.grading.outcome import Outcome

    return Outcome(work.outcome, work.where, work.detail).text()


def waiting(known: Class) -> list[tuple[str, int]]:
    """Answers in words that wait to be marked: the grade id, and how many."""
    count = Counter(
        grade_id
        for work in known.works
        for grade_id, points in work.points.items()
        if points is None
    )
    return [(grade_id, count[grade_id]) for grade_id in known.grade_ids() if count[grade_id]]
