"""Take what came in, and lay it where nbgrader looks for it (see `storage`)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from flashcourse.collecting.choosing import (
    by_student,
    choice_note,
    doubt_older,
    doubts_between,
    rank,
    tell_namesakes_apart,
)
from flashcourse.collecting.incoming import Incoming, find_incoming
from flashcourse.collecting.matching import Matching, bare, is_answer, match_cells, recognise
from flashcourse.collecting.naming import AUTO, find_owner
from flashcourse.collecting.notes import Note, Refused, doubt, repair
from flashcourse.collecting.reading import Opened, read_notebook
from flashcourse.collecting.rebuild import rebuild
from flashcourse.collecting.records import Candidate, Collected
from flashcourse.collecting.roster import Roster
from flashcourse.collecting.storage import (
    dates_before,
    keep_original,
    students_in,
    write,
)
from flashcourse.grading.course import CourseError, CourseNotebook, load_course

ENOUGH = 0.2  # of a lesson's cells must be recognised, or one of its answers
MOST = 0.5  # of them are enough to ask no further which lesson it is


@dataclass(frozen=True)
class Settings:
    """How to tell whose a file is. ways: presets in order. pattern: a course's own, or None."""

    roster: Roster = Roster()
    ways: tuple[str, ...] = AUTO
    pattern: str | None = None


def collect(
    root: Path,
    lesson: str,
    paths: list[Path],
    settings: Settings | None = None,
    submitted: Path | None = None,
) -> list[Collected]:
    """Take every notebook in `paths` into `submitted` (submitted/ of the course at `root`).

    Raises FileNotFoundError for a path that is not there, CourseError for an unknown lesson.
    """
    settings = settings or Settings()
    submitted = submitted or root / "submitted"
    editions = load_editions(root, lesson)
    others = other_lessons(root, lesson)
    candidates: list[Candidate] = []
    refusals: list[tuple[Collected, Refused]] = []
    for item in find_incoming(paths):
        try:
            candidates.append(examine(item, lesson, editions, others, settings))
        except Refused as refused:
            student = owner_or_none(item, lesson, settings)
            keep_original(submitted, lesson, item, student)
            result = Collected(item.path, "refused", student, mark=item.mark, notes=(refused.note,))
            refusals.append((result, refused))
    groups = by_student(tell_namesakes_apart(candidates))
    doubts = doubts_between(groups, students_in(submitted))
    dates = dates_before(submitted, lesson)
    results = [r for group in groups for r in take_best(submitted, lesson, group, doubts, dates)]
    results += set_aside(refusals, {group[0].owner.student for group in groups})
    return sorted(results, key=lambda result: (result.student, result.path))


def set_aside(refusals: list[tuple[Collected, Refused]], there: set[str]) -> Iterator[Collected]:
    """What was refused; without alarm where it lay beside a notebook of the same student."""
    for result, refused in refusals:
        if refused.aside and result.student in there:
            notes = tuple(repair(note.text.en, note.text.zh) for note in result.notes)
            yield replace(result, outcome="beside", notes=notes)
        else:
            yield result


def load_editions(root: Path, lesson: str) -> dict[str, CourseNotebook]:
    """Each edition of the lesson's notebook."""
    notebooks = load_course(root, lesson)
    if lesson not in notebooks:
        raise CourseError(f"{lesson!r} has no notebook {lesson}.ipynb")
    return notebooks[lesson]


def other_lessons(root: Path, lesson: str) -> dict[str, dict[str, CourseNotebook]]:
    """The course's other lessons: a file can be one of those, handed in at the wrong place."""
    folders = sorted((root / "release").glob("*/*"))
    names = dict.fromkeys(folder.name for folder in folders if folder.name != lesson)
    found = {}
    for name in names:
        try:
            found[name] = load_editions(root, name)
        except CourseError:
            continue
    return found


def examine(
    item: Incoming,
    lesson: str,
    editions: dict[str, CourseNotebook],
    others: dict[str, dict[str, CourseNotebook]],
    settings: Settings,
) -> Candidate:
    """Read and match one file. Raises Refused."""
    if item.refused:
        raise item.refused
    opened = read_notebook(item.data, item.name)
    lang = edition_of(opened, editions)
    twins = tuple(course for other, course in editions.items() if other != lang)
    matching = match_cells(editions[lang], opened.cells, twins)
    refuse_other_lesson(opened, lesson, recognised(editions[lang], matching), others)
    little = refuse_too_little(lesson, editions[lang], opened, matching)
    owner = find_owner(item, lesson, settings.roster, settings.ways, settings.pattern)
    course = editions[lang]
    graded = [n for n, cell in enumerate(course.cells) if is_answer(cell)]
    finished = [
        n
        for n in graded
        if bare(matching.answers.get(n, "")) not in ("", bare(course.cells[n].shown))
    ]
    return Candidate(
        item,
        owner,
        lang,
        rebuild(course, opened.cells, matching),
        len(finished),
        len(graded),
        (*opened.notes, *little, *matching.notes),
    )


def edition_of(opened: Opened, editions: dict[str, CourseNotebook]) -> str:
    """The edition that the notebook says it is, else the one whose text it has most of."""
    if opened.lang in editions:
        return opened.lang
    texts = {bare(cell.source) for cell in opened.cells}
    return max(editions, key=lambda lang: sum(bare(c.shown) in texts for c in editions[lang].cells))


def recognised(course: CourseNotebook, matching: Matching) -> float:
    """The share of the course's cells that were found."""
    return matching.known / max(1, len(course.cells))


def refuse_other_lesson(
    opened: Opened,
    lesson: str,
    share: float,
    others: dict[str, dict[str, CourseNotebook]],
) -> None:
    """Raise Refused for a notebook that is another lesson of the course."""
    if share >= (ENOUGH if opened.lesson == lesson else MOST):
        return
    shares = {
        name: recognised(editions[lang], recognise(editions[lang], opened.cells))
        for name, editions in others.items()
        for lang in [edition_of(opened, editions)]
    }
    other = max(shares, key=lambda name: shares[name], default="")
    if other and shares[other] > max(share, ENOUGH):
        raise Refused(
            f"is lesson {other}, not {lesson}: collect it with `flashcourse collect {other}`",
            f"是 {other}，不是 {lesson}：请用 `flashcourse collect {other}` 收取",
            aside=True,
        )


def refuse_too_little(
    lesson: str, course: CourseNotebook, opened: Opened, matching: Matching
) -> list[Note]:
    """A doubt about a notebook that holds answers and little else. Raises Refused for one that
    holds none of the lesson's answers either."""
    if recognised(course, matching) >= ENOUGH:
        return []
    answered = any(
        course.cells[owner].role == "answer"
        and bare(opened.cells[index].source) != bare(course.cells[owner].shown)
        for index, owner in matching.owners.items()
    )
    if not answered:
        raise Refused(
            f"has almost nothing of {lesson} in it: ask for the right file",
            f"和 {lesson} 几乎没有相同内容：请学生提交正确的文件",
        )
    return [
        doubt(
            f"has {matching.known} of the {len(course.cells)} cells of {lesson}; took the answers",
            f"{lesson} 的 {len(course.cells)} 个单元格只有 {matching.known} 个；取了其中的回答",
        )
    ]


def owner_or_none(item: Incoming, lesson: str, settings: Settings) -> str:
    try:
        owner = find_owner(item, lesson, settings.roster, settings.ways, settings.pattern)
    except Refused:
        return ""
    return owner.student


def take_best(
    submitted: Path,
    lesson: str,
    group: list[Candidate],
    doubts: dict[str, list[Note]],
    dates: dict[str, datetime],
) -> list[Collected]:
    """Write one student's submission; what became of each of their files."""
    ranked = sorted(group, key=rank)
    chosen, others = ranked[-1], ranked[:-1]
    for candidate in group:
        keep_original(submitted, lesson, candidate.item, candidate.owner.student)
    outcome, notes = write(submitted, lesson, chosen)
    notes += doubts.get(chosen.owner.student, [])
    if outcome == "taken":
        notes += doubt_older(chosen, dates.get(chosen.owner.student))
    versions = {candidate.text for candidate in group}
    if len(versions) > 1:
        notes = [*notes, choice_note(chosen, ranked[-2], len(group))]
    elif others:
        notes = [
            *notes,
            repair(f"came {len(group)} times, the same", f"交了 {len(group)} 次，内容相同"),
        ]
    return [
        *(candidate.as_collected("older") for candidate in others),
        chosen.as_collected(outcome, *notes),
    ]
