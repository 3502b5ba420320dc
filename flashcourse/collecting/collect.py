"""Take what came in, and lay it where nbgrader looks for it (see `storage`)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from flashcourse.collecting.choosing import by_student, choice_note, rank, tell_namesakes_apart
from flashcourse.collecting.incoming import Incoming, find_incoming
from flashcourse.collecting.matching import Matching, bare, is_answer, match_cells
from flashcourse.collecting.naming import AUTO, find_owner
from flashcourse.collecting.notes import Refused, repair
from flashcourse.collecting.reading import Opened, read_notebook
from flashcourse.collecting.rebuild import rebuild
from flashcourse.collecting.records import Candidate, Collected
from flashcourse.collecting.roster import Roster
from flashcourse.collecting.storage import keep_original, write
from flashcourse.grading.course import CourseError, CourseNotebook, load_course

ENOUGH = 0.2  # of a lesson's cells must be recognised, or one of its answers


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
    results: list[Collected] = []
    for item in find_incoming(paths):
        try:
            candidates.append(examine(item, lesson, editions, others, settings))
        except Refused as refused:
            student = owner_or_none(item, lesson, settings)
            keep_original(submitted, lesson, item, student)
            results.append(Collected(item.path, "refused", student, notes=(refused.note,)))
    for group in by_student(tell_namesakes_apart(candidates)):
        results += take_best(submitted, lesson, group)
    return sorted(results, key=lambda result: (result.student, result.path))


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
    matching = match_cells(editions[lang], opened.cells)
    refuse_other_lesson(opened, lesson, recognised(editions[lang], matching), others)
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
        (*opened.notes, *matching.notes),
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
    """Raise Refused for a notebook that is another lesson of the course, or of none."""
    if opened.lesson == lesson and share >= ENOUGH:
        return
    shares = {
        name: recognised(editions[lang], match_cells(editions[lang], opened.cells))
        for name, editions in others.items()
        for lang in [edition_of(opened, editions)]
    }
    other = max(shares, key=lambda name: shares[name], default="")
    if other and shares[other] > max(share, ENOUGH):
        raise Refused(
            f"is lesson {other}, not {lesson}: collect it with `flashcourse collect {other}`",
            f"是 {other}，不是 {lesson}：请用 `flashcourse collect {other}` 收取",
        )
    if share < ENOUGH:
        raise Refused(
            f"has almost nothing of {lesson} in it: ask for the right file",
            f"和 {lesson} 几乎没有相同内容：请学生提交正确的文件",
        )


def owner_or_none(item: Incoming, lesson: str, settings: Settings) -> str:
    try:
        owner = find_owner(item, lesson, settings.roster, settings.ways, settings.pattern)
    except Refused:
        return ""
    return owner.student


def take_best(submitted: Path, lesson: str, group: list[Candidate]) -> list[Collected]:
    """Write one student's submission; what became of each of their files."""
    ranked = sorted(group, key=rank)
    chosen, others = ranked[-1], ranked[:-1]
    for candidate in group:
        keep_original(submitted, lesson, candidate.item, candidate.owner.student)
    outcome, notes = write(submitted, lesson, chosen)
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
