"""Put together what is graded: the course's cells, with the student's answers in them.

A submission decides nothing but the source of its answer cells. Its other cells, the student's own
experiments, are kept where they stood; they run in the student's process only.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from flashcourse.grading.course import CourseCell, CourseNotebook
from flashcourse.grading.names import bound_names, parse, plain
from flashcourse.grading.pictures import Pictures
from flashcourse.grading.set_up import without_set_up
from flashcourse.grading.submission import Submission, SubmittedCell

MAX_PARTS = 100  # of answers that were split: each has to be read once more


@dataclass(frozen=True)
class Planned:
    """One cell of the graded notebook.

    role: as in CourseCell, or 'own' (the student's own) and 'note' (their own prose).
    source: what is run or shown. course: the course's cell, None for the student's own.
    changed: whether an answer differs from what was released. pictures: attached to its words.
    """

    role: str
    source: str
    course: CourseCell | None = None
    changed: bool = False
    pictures: Pictures = field(default_factory=dict, compare=False)


@dataclass(frozen=True)
class Plan:
    """cells: in the order in which they run. known: how many submitted cells were recognised."""

    cells: tuple[Planned, ...]
    known: int


def assemble(course: CourseNotebook, submission: Submission) -> Plan:
    """The graded notebook of one submission."""
    cells = rejoin(list(submission.cells), course)
    owners = match(course, cells)
    answers = choose_answers(course, cells, owners)
    own: dict[int, list[Planned]] = {}
    anchor = -1
    for index, cell in enumerate(cells):
        owner = owners.get(index)
        if owner is not None:
            anchor = owner
        if _is_own(course, cell, owner, index, answers):
            role = "own" if cell.kind == "code" else "note"
            source = without_set_up(cell.source) if role == "own" else cell.source
            if source.strip():
                own.setdefault(anchor, []).append(Planned(role, source, pictures=cell.pictures))
    planned = list(own.get(-1, []))
    for position, course_cell in enumerate(course.cells):
        planned.append(_planned(course_cell, answers.get(position), cells))
        planned += own.get(position, [])
    return Plan(tuple(planned), len(owners))


def _is_own(
    course: CourseNotebook,
    cell: SubmittedCell,
    owner: int | None,
    index: int,
    answers: dict[int, int],
) -> bool:
    """Whether a submitted cell is the student's own: unknown, or a course cell they changed."""
    if not cell.source.strip():
        return False
    if owner is None:
        return True
    role = course.cells[owner].role
    if role in ("answer", "manual"):
        return answers.get(owner) != index and not _same(cell.source, course.cells[owner].shown)
    return role == "code" and not _same(cell.source, course.cells[owner].shown)


def _planned(course: CourseCell, chosen: int | None, cells: list[SubmittedCell]) -> Planned:
    if course.role not in ("answer", "manual"):
        return Planned(course.role, course.source, course)
    if chosen is None:
        return Planned(course.role, course.shown, course)
    cell = cells[chosen]
    changed = not _same(cell.source, course.shown) or bool(cell.pictures)
    return Planned(course.role, cell.source, course, changed, cell.pictures)


def match(course: CourseNotebook, cells: list[SubmittedCell]) -> dict[int, int]:
    """Which course cell each submitted one is: by grade id, key, text, or what it defines."""
    grade_ids = {c.grade_id: n for n, c in enumerate(course.cells) if c.grade_id}
    keys = {c.key: n for n, c in enumerate(course.cells)}
    texts = {_bare(c.shown): n for n, c in enumerate(course.cells) if c.shown.strip()}
    owners: dict[int, int] = {}
    for index, cell in enumerate(cells):
        owner = grade_ids.get(cell.grade_id)
        if owner is None:
            owner = keys.get(cell.key, texts.get(_bare(cell.source)))
        if owner is not None:
            owners[index] = owner
    _match_by_definition(course, cells, owners)
    return owners


def _match_by_definition(
    course: CourseNotebook, cells: list[SubmittedCell], owners: dict[int, int]
) -> None:
    """An answer whose metadata was lost still defines what the answer cell asks for."""
    taken = set(owners.values())
    for position, course_cell in enumerate(course.cells):
        if position in taken or not course_cell.defines:
            continue
        for index, cell in enumerate(cells):
            if index not in owners and set(course_cell.defines) <= _defines(cell.source):
                owners[index] = position


def choose_answers(
    course: CourseNotebook, cells: list[SubmittedCell], owners: dict[int, int]
) -> dict[int, int]:
    """For each answer cell the submitted cell that is its answer: the last one that was changed."""
    chosen: dict[int, int] = {}
    for index, position in owners.items():
        course_cell = course.cells[position]
        if course_cell.role not in ("answer", "manual"):
            continue
        changed = bool(cells[index].source.strip()) and not _same(
            cells[index].source, course_cell.shown
        )
        if changed or position not in chosen:
            chosen[position] = index
    return chosen


def rejoin(cells: list[SubmittedCell], course: CourseNotebook) -> list[SubmittedCell]:
    """Undo splits: a part that is no Python by itself goes back to the answer before it."""
    answers = {c.grade_id for c in course.cells if c.role == "answer"}
    joined: list[SubmittedCell] = []
    parts = 0
    for cell in cells:
        last = joined[-1] if joined else None
        may = last is not None and last.grade_id in answers and parts < MAX_PARTS
        if may and last is not None and _continues(last, cell):
            joined[-1] = replace(last, source=f"{last.source}\n{cell.source}")
            parts += 1
        else:
            joined.append(cell)
    return joined


def _continues(last: SubmittedCell, cell: SubmittedCell) -> bool:
    if cell.grade_id not in ("", last.grade_id) or not cell.source.strip():
        return False
    indented = cell.source.lstrip("\n")[0] in " \t"
    if cell.kind != "code" or not (indented or parse(cell.source) is None):
        return False
    return plain(f"{last.source}\n{cell.source}") is not None


def _defines(source: str) -> set[str]:
    tree = parse(source)
    names: set[str] = set()
    for statement in tree.body if tree is not None else []:
        names |= bound_names(statement)
    return names


def _bare(source: str) -> str:
    return "\n".join(line.rstrip() for line in source.strip().splitlines())


def _same(a: str, b: str) -> bool:
    return _bare(a) == _bare(b)
