"""Read what collecting and grading wrote about one lesson."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from flashcourse.checks.registry import title_of
from flashcourse.collecting.roster import FILE, Roster, read_roster
from flashcourse.collecting.storage import read_record
from flashcourse.grading.export import grading_of
from flashcourse.grading.outcome import in_both
from flashcourse.words import LANGUAGES, Text


class NothingGraded(RuntimeError):
    """The lesson has no graded submission. The message says what to do."""


@dataclass(frozen=True)
class Said:
    """One finding of a check. misconception: its id or ''. line: the learner's line, or ''."""

    grade_id: str
    text: Text
    misconception: str = ""
    hints: tuple[Text, ...] = ()
    line: str = ""


@dataclass(frozen=True)
class Work:
    """One student's graded submission.

    outcome, where, detail: as in grading's Outcome. points: by grade id, None waits for a person.
    score: what counts, marks given by hand and penalties included; None if it isn't known.
    """

    student: str
    name: str
    lang: str
    outcome: str
    where: str
    detail: Text
    points: dict[str, float | None]
    max_points: dict[str, float]
    status: dict[str, str]
    said: tuple[Said, ...] = ()
    doubts: tuple[Text, ...] = ()
    score: float | None = None
    unchanged: tuple[str, ...] = ()

    @property
    def total(self) -> float:
        return self.score if self.score is not None else sum(p or 0 for p in self.points.values())


@dataclass(frozen=True)
class Class:
    """One lesson's class. missing: listed students with no submission, as (id, name).
    collected: collecting's record of each file that has a doubt or was refused.
    titles: of the exercises, by grade id."""

    lesson: str
    title: Text
    works: tuple[Work, ...]
    missing: tuple[tuple[str, str], ...] = ()
    collected: tuple[dict[str, Any], ...] = ()
    roster: Roster = field(default_factory=Roster)
    anonymous: bool = False
    titles: dict[str, Text] = field(default_factory=dict)

    @property
    def max_score(self) -> float:
        return sum(self.grade_ids().values())

    def grade_ids(self) -> dict[str, float]:
        """Every graded cell with its points, in the lesson's order."""
        found: dict[str, float] = {}
        for work in self.works:
            for grade_id, points in work.max_points.items():
                found.setdefault(grade_id, points)
        return found


def gather(root: Path, lesson: str, roster: Roster | None = None) -> Class:
    """Everything known about `lesson` in the course at `root`. Raises NothingGraded."""
    if roster is None:
        roster = read_roster(root / FILE) if (root / FILE).is_file() else Roster()
    marks = gradebook_marks(root, lesson)
    record = [e for e in read_record(root / "submitted", lesson) if e["outcome"] != "replaced"]
    names = {entry["student"]: entry["name"] for entry in record if entry["name"]}
    works = []
    for path in sorted((root / "autograded").glob(f"*/{lesson}/{lesson}.ipynb")):
        grading = grading_of(path)
        if grading is not None:
            student = path.parent.parent.name
            listed = roster.by_id(student)
            name = listed.name if listed else names.get(student, "")
            work = read_work(student, name, grading, path)
            score, by_hand = marks.get(student, (None, {}))
            works.append(replace(work, score=score, points={**work.points, **by_hand}))
    if not works:
        raise NothingGraded(
            f"no submission of {lesson} is graded: run `flashcourse grade {lesson}` first"
        )
    there = {work.student for work in works}
    missing = [(s.id, s.name) for s in roster.students if s.id not in there]
    collected = [e for e in record if any(note["kind"] != "repair" for note in e["notes"])]
    title, titles = read_title(root, lesson), exercise_titles(root, lesson)
    return Class(
        lesson, title, tuple(works), tuple(missing), tuple(collected), roster, titles=titles
    )


def exercise_titles(root: Path, lesson: str) -> dict[str, Text]:
    """By grade id, of the exercise that each released test marks; nothing without a release."""
    titles = {}
    for path in sorted((root / "release").glob(f"*/{lesson}/{lesson}.ipynb")):
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            graded = cell["metadata"].get("nbgrader", {})
            named = re.search(r"""mark\(\s*["']([\w.]+)["']""", "".join(cell["source"]))
            if graded.get("grade") and named:
                titles[graded["grade_id"]] = title_of(named[1])
    return titles


def read_work(student: str, name: str, grading: dict[str, Any], path: Path) -> Work:
    """One submission from what grading noted in its notebook."""
    outcome = grading["outcome"]
    lines = answer_lines(path)
    said = [
        Said(
            grade_id,
            Text(*finding["text"]),
            finding.get("misconception") or "",
            tuple(Text(*hint) for hint in finding.get("hints", ())),
            lines.get(finding.get("line"), ""),
        )
        for grade_id, findings in grading.get("findings", {}).items()
        for finding in findings
    ]
    return Work(
        student,
        name,
        grading["lang"],
        outcome["kind"],
        outcome["where"],
        in_both(outcome["detail"]),
        grading["points"],
        grading["max_points"],
        grading["status"],
        tuple(said),
        tuple(map(in_both, grading["doubts"])),
        unchanged=tuple(grading["unchanged"]),
    )


def answer_lines(path: Path) -> dict[Any, str]:
    """The lines of the answer by number, comments left out; empty if there are several answers."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    answers = []
    for cell in notebook["cells"]:
        grading = cell["metadata"].get("nbgrader", {})
        if grading.get("solution") and not grading.get("grade"):
            answers.append("".join(cell["source"]))
    if len(answers) != 1:
        return {}
    # A comment may hold a name; the code of one line does not tell whose it is.
    lines = answers[0].split("\n")
    return {number: line.split("#")[0].strip() for number, line in enumerate(lines, 1)}


def gradebook_marks(root: Path, lesson: str) -> dict[str, tuple[float, dict[str, float]]]:
    """For each student in nbgrader's gradebook what counts in all, and the marks given by hand."""
    from nbgrader.api import Gradebook, MissingEntry

    from flashcourse.grading.batch import Course

    folder = Course(root).folder
    if folder.db_url.startswith("sqlite:///") and not Path(folder.db_url[10:]).is_file():
        return {}  # opening it would make one
    with Gradebook(folder.db_url, folder.course_id) as gradebook:
        try:
            submissions = gradebook.assignment_submissions(lesson)
        except MissingEntry:
            return {}
        return {
            s.student.id: (max(0.0, s.score - (s.late_submission_penalty or 0.0)), _by_hand(s))
            for s in submissions
        }


def _by_hand(submission: Any) -> dict[str, float]:
    return {
        grade.name: grade.score
        for notebook in submission.notebooks
        for grade in notebook.grades
        if grade.manual_score is not None
    }


def read_title(root: Path, lesson: str) -> Text:
    titles = []
    for lang in LANGUAGES:
        path = root / "release" / lang / lesson / f"{lesson}.ipynb"
        try:
            metadata = json.loads(path.read_text(encoding="utf-8"))["metadata"]
            titles.append(str(metadata["flashcourse"]["title"]))
        except (OSError, ValueError, KeyError):
            titles.append(lesson)
    return Text(*titles)


def without_names(known: Class) -> Class:
    """The same class with made-up ids, in an order that tells nothing."""
    students = [*(work.student for work in known.works), *(student for student, _ in known.missing)]
    shuffled = sorted(students, key=lambda s: hashlib.sha256(s.encode()).digest())
    width = len(str(len(shuffled)))
    alias = {student: f"#{number:0{width}}" for number, student in enumerate(shuffled, 1)}
    works = [replace(work, student=alias[work.student], name="") for work in known.works]
    missing = [(alias[student], "") for student, _ in known.missing]
    # Sentences of collecting quote names and files: only how many there are is kept.
    collected = [
        {**entry, "student": alias.get(entry["student"], "?"), "path": "", "name": ""}
        for entry in known.collected
    ]
    return replace(
        known,
        works=tuple(sorted(works, key=lambda work: work.student)),
        missing=tuple(sorted(missing)),
        collected=tuple(collected),
        roster=Roster(),
        anonymous=True,
    )
