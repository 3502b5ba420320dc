"""Which submitted cell is which cell of the release, and which of several is the answer.

Evidence, the strongest first: nbgrader's grade id, the course's key (also as a cell id), the very
text of the release, the names that an answer defines, the place between neighbours. Whatever is
weaker than the text, or contradicts itself, becomes a note. So does an answer that stands elsewhere
(see `strays`) while its own cell is left as it was given.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher
from functools import lru_cache

from flashcourse.collecting.notes import Note, doubt, repair
from flashcourse.collecting.reading import OpenCell
from flashcourse.grading.course import CourseCell, CourseNotebook
from flashcourse.grading.names import bound_names, parse
from flashcourse.grading.pictures import Pictures
from flashcourse.grading.set_up import without_set_up

# Share of common words from which on two cells may be the same: of an answer as it was given,
# the lessons' other cells have up to 0.21, finished answers mostly 0.3 to 0.7.
ALIKE = 0.4
WORDS = re.compile(r"\w+|[^\w\s]")
FENCED = re.compile(r"\s*```\w*\n(.*?)\n?```\s*", re.DOTALL)
DEFINITION = re.compile(r"^(?:def|class)\s+(\w+)", re.MULTILINE)


@dataclass
class Matching:
    """owners: course cell by submitted cell, both by their number. answers: the source that was
    taken for each answer cell of the course. pictures: those attached to the answers in words, by
    the same number. notes: what had to be chosen or mended."""

    owners: dict[int, int] = field(default_factory=dict)
    answers: dict[int, str] = field(default_factory=dict)
    pictures: dict[int, Pictures] = field(default_factory=dict)
    notes: list[Note] = field(default_factory=list)

    @property
    def known(self) -> int:
        return len(set(self.owners.values()))


def recognise(
    course: CourseNotebook, cells: tuple[OpenCell, ...], twins: tuple[CourseNotebook, ...] = ()
) -> Matching:
    """Which cells of one edition are there, by the strong evidence alone. twins: other editions of
    the lesson, whose texts count too."""
    matching = Matching()
    by_label(course, cells, twins, matching)
    by_definition(course, cells, matching)
    return matching


def match_cells(
    course: CourseNotebook, cells: tuple[OpenCell, ...], twins: tuple[CourseNotebook, ...] = ()
) -> Matching:
    """Match a submission with one edition of the lesson, see `recognise`."""
    matching = recognise(course, cells, twins)
    by_place(course, cells, matching)
    take_in_continuations(course, cells, matching)
    by_straying(course, cells, matching)
    for position, course_cell in enumerate(course.cells):
        if is_answer(course_cell):
            choose_answer(course, position, cells, matching)
    take_from_questions(course, cells, matching)
    note_changed_tests(course, cells, matching)
    return matching


def is_answer(cell: CourseCell) -> bool:
    return cell.role in ("answer", "manual")


def by_label(
    course: CourseNotebook,
    cells: tuple[OpenCell, ...],
    twins: tuple[CourseNotebook, ...],
    matching: Matching,
) -> None:
    """By grade id, key or text. An answer whose label contradicts what it defines is corrected."""
    grade_ids = {c.grade_id: n for n, c in enumerate(course.cells) if c.grade_id}
    keys = {c.key: n for n, c in enumerate(course.cells)}
    # "Write your answer here" stands more than once and tells nothing.
    texts: dict[str, int] = {}
    for edition in (*twins, course):
        often = Counter(bare(c.shown) for c in edition.cells)
        for cell in edition.cells:
            if often[bare(cell.shown)] == 1 and cell.key in keys:
                texts[bare(cell.shown)] = keys[cell.key]
    for index, submitted in enumerate(cells):
        owner = grade_ids.get(submitted.grade_id)
        if owner is None:
            owner = keys.get(submitted.key, texts.get(bare(submitted.source)))
        if owner is not None:
            matching.owners[index] = correct_label(course, submitted, owner, matching)


def correct_label(course: CourseNotebook, cell: OpenCell, owner: int, matching: Matching) -> int:
    """The answer that the cell defines, if its label (of a copied cell) names another answer."""
    labelled = course.cells[owner]
    if labelled.role != "answer" or not labelled.defines:
        return owner
    made = defined(cell.source)
    if made & set(labelled.defines):
        return owner
    for position, other in enumerate(course.cells):
        if other.role == "answer" and other.defines and set(other.defines) <= made:
            matching.notes.append(
                doubt(
                    f"a cell labelled {labelled.grade_id} defines what {other.grade_id} asks for; "
                    "taken as the latter",
                    f"标记为 {labelled.grade_id} 的单元格定义的是 {other.grade_id} 要求的内容；"
                    "按后者处理",
                )
            )
            return position
    return owner


def by_definition(course: CourseNotebook, cells: tuple[OpenCell, ...], matching: Matching) -> None:
    """An answer that lost its label still defines what the answer cell asks for."""
    taken = set(matching.owners.values())
    for position, course_cell in enumerate(course.cells):
        if course_cell.role != "answer" or position in taken or not course_cell.defines:
            continue
        for index, cell in enumerate(cells):
            if index not in matching.owners and set(course_cell.defines) <= defined(cell.source):
                if position not in matching.owners.values():
                    names = ", ".join(course_cell.defines)
                    matching.notes.append(
                        repair(
                            f"{course_cell.grade_id}: found by what it defines ({names})",
                            f"{course_cell.grade_id}：按它定义的名字（{names}）找到",
                        )
                    )
                matching.owners[index] = position


def by_place(course: CourseNotebook, cells: tuple[OpenCell, ...], matching: Matching) -> None:
    """An answer that can't be told otherwise is what stands between its neighbours.

    So are words beside the cell that was given for them, if that was left as it was.
    """
    for position, course_cell in enumerate(course.cells):
        there = [n for n, owner in matching.owners.items() if owner == position]
        if not is_answer(course_cell) or (there and course_cell.role == "answer"):
            continue
        if any(bare(cells[n].source) not in ("", bare(course_cell.shown)) for n in there):
            continue
        kind = "code" if course_cell.role == "answer" else "markdown"
        free = [
            index
            for index in between(matching.owners, position, len(cells))
            if index not in matching.owners and cells[index].source.strip()
        ]
        # In words: all of the prose there. Code: only what looks like the cell that was given.
        chosen = [n for n in free if cells[n].kind == kind]
        if kind == "code":
            chosen = [n for n in chosen if alike(cells[n].source, course_cell.shown) >= ALIKE][:1]
        for index in chosen:
            matching.owners[index] = position
        filled = [n for n in chosen if bare(cells[n].source) != bare(course_cell.shown)]
        if filled:
            matching.notes.append(
                doubt(
                    f"{course_cell.grade_id}: found by its place only "
                    f"(cell {', '.join(str(n + 1) for n in filled)})",
                    f"{course_cell.grade_id}：只凭位置找到"
                    f"（第 {'、'.join(str(n + 1) for n in filled)} 个单元格）",
                )
            )


def between(owners: dict[int, int], position: int, count: int) -> range:
    """The submitted cells after the nearest course cell before, before the nearest one after."""
    before = [index for index, owner in owners.items() if owner < position]
    after = [index for index, owner in owners.items() if owner > position]
    first = max(before, default=-1) + 1
    return range(first, min((n for n in after if n >= first), default=count))


def take_in_continuations(
    course: CourseNotebook, cells: tuple[OpenCell, ...], matching: Matching
) -> None:
    """A cell that can't stand alone belongs to the answer right before it: that was split."""
    for index in range(1, len(cells)):
        owner = matching.owners.get(index - 1)
        if owner is None or course.cells[owner].role != "answer" or cells[index].kind != "code":
            continue
        before = cells[index - 1].source
        if bare(before) == bare(course.cells[owner].shown) or not is_fragment(cells[index].source):
            continue
        text = f"{before}\n{cells[index].source}"
        if matching.owners.get(index, owner) == owner and parse(text) is not None:
            matching.owners[index] = owner


def by_straying(course: CourseNotebook, cells: tuple[OpenCell, ...], matching: Matching) -> None:
    """An answer that was written elsewhere, while the cell for it is not filled in."""
    for position, course_cell in enumerate(course.cells):
        if course_cell.role != "answer" or not course_cell.defines:
            continue
        there = [n for n, owner in matching.owners.items() if owner == position]
        if any(answers_it(course_cell, cells[n].source) for n in there):
            continue
        index = max(strays(course, course_cell, cells, matching), default=None)
        if index is None:
            continue
        for n in there:
            del matching.owners[n]
        matching.owners[index] = position
        names = ", ".join(course_cell.defines)
        matching.notes.append(
            doubt(
                f"{course_cell.grade_id}: no cell of its own is filled in; took cell "
                f"{index + 1}, which defines {names}",
                f"{course_cell.grade_id}：自己的单元格没有填写；取第 {index + 1} 个单元格，"
                f"那里定义了 {names}",
            )
        )


def answers_it(course_cell: CourseCell, source: str) -> bool:
    """Whether the code is more than what was given, and defines what is asked, as far as it can
    be read."""
    if bare(source) == bare(course_cell.shown) or "NotImplementedError" in source:
        return False
    return set(course_cell.defines) <= (defined(source) or said_to_define(source))


def strays(
    course: CourseNotebook, course_cell: CourseCell, cells: tuple[OpenCell, ...], matching: Matching
) -> Iterator[int]:
    """Cells with that answer among the student's own, and among the course's that they changed."""
    for index, cell in enumerate(cells):
        owner = matching.owners.get(index)
        theirs = owner is None or (
            course.cells[owner].role in ("code", "test")
            and bare(cell.source) != bare(course.cells[owner].shown)
        )
        if theirs and cell.kind == "code" and answers_it(course_cell, cell.source):
            yield index


def take_from_questions(
    course: CourseNotebook, cells: tuple[OpenCell, ...], matching: Matching
) -> None:
    """Words that were written into the question's cell, below the question."""
    for position, course_cell in enumerate(course.cells):
        answer = matching.answers.get(position, course_cell.shown)
        if course_cell.role != "manual" or bare(answer) != bare(course_cell.shown) or not position:
            continue
        question = bare(course.cells[position - 1].shown)
        for index, owner in matching.owners.items():
            text = bare(cells[index].source)
            if owner == position - 1 and text != question and text.startswith(question):
                matching.answers[position] = text[len(question) :].strip()
                take_pictures(position, course_cell.grade_id, [cells[index]], matching)
                matching.notes.append(
                    doubt(
                        f"{course_cell.grade_id}: took the words below the question (cell "
                        f"{index + 1}); the cell for the answer is left as given",
                        f"{course_cell.grade_id}：取了题目下面的文字（第 {index + 1} 个单元格）；"
                        "回答单元格没有改动",
                    )
                )


def choose_answer(
    course: CourseNotebook, position: int, cells: tuple[OpenCell, ...], matching: Matching
) -> None:
    """Of the cells that can be the answer: the only one, the parts joined, or the best one."""
    course_cell = course.cells[position]
    grade_id = course_cell.grade_id
    found = [index for index, owner in matching.owners.items() if owner == position]
    found = [index for index in sorted(found) if cells[index].source.strip()]
    if course_cell.role == "manual":
        take_pictures(position, grade_id, [cells[index] for index in found], matching)
    changed = [n for n in found if bare(cells[n].source) != bare(course_cell.shown)]
    if not found:
        matching.notes.append(
            doubt(
                f"{grade_id}: no such answer in the file; counted as not answered",
                f"{grade_id}：文件里没有这个回答；按未作答处理",
            )
        )
        return
    sources = {bare(cells[index].source) for index in changed}
    if len(sources) < 2:
        chosen = (changed or found)[-1]
        take(course, position, chosen, cells, matching)
        if len(found) > 1 and course_cell.role == "answer":
            matching.notes.append(
                chosen_note(grade_id, "copies", [n + 1 for n in found], chosen + 1)
            )
        return
    joined = join_parts(course_cell, [cells[index] for index in changed])
    if joined is not None:
        matching.answers[position] = joined
        matching.notes.append(joined_note(grade_id, [n + 1 for n in changed]))
        return
    chosen = best(course_cell, changed, cells)
    take(course, position, chosen, cells, matching)
    matching.notes.append(chosen_note(grade_id, "differ", [n + 1 for n in changed], chosen + 1))


def take(
    course: CourseNotebook,
    position: int,
    index: int,
    cells: tuple[OpenCell, ...],
    matching: Matching,
) -> None:
    """Let the cell be the answer: without tests that were left in it, and as code if it must be."""
    source, grade_id = cells[index].source, course.cells[position].grade_id
    if course.cells[position].role == "answer":
        for cell in course.cells:
            if cell.role == "test" and len(cell.shown) > len(grade_id) and cell.shown in source:
                source = source.replace(cell.shown, "").strip("\n")
        if cells[index].kind != "code":
            fenced = FENCED.fullmatch(source)
            source = fenced[1] if fenced else source
            matching.notes.append(
                repair(
                    f"{grade_id}: is no code cell any more; its text was taken as code",
                    f"{grade_id}：已不是代码单元格；把其中的文字当作代码",
                )
            )
        note_no_definition(course.cells[position], source, matching)
    matching.answers[position] = source


def note_no_definition(course_cell: CourseCell, source: str, matching: Matching) -> None:
    missing = sorted(set(course_cell.defines) - defined(source))
    if missing and bare(source) != bare(course_cell.shown) and parse(source) is not None:
        names = ", ".join(missing)
        matching.notes.append(
            doubt(
                f"{course_cell.grade_id}: the answer does not define {names}; renamed?",
                f"{course_cell.grade_id}：回答里没有定义 {names}；是不是改名了？",
            )
        )


def join_parts(course_cell: CourseCell, parts: list[OpenCell]) -> str | None:
    """The parts of a split answer as one, or None if they are versions of the same."""
    text = "\n".join(part.source.rstrip("\n") for part in parts)
    if course_cell.role == "manual":
        return "\n\n".join(part.source.strip("\n") for part in parts)
    made = [defined(part.source) for part in parts]
    overlap = sum(len(names) for names in made) != len(set().union(*made))
    fragment = any(is_fragment(part.source) for part in parts)
    complete = set(course_cell.defines) <= defined(text)
    if overlap or not complete or parse(text) is None:
        return None
    return text if fragment or len([n for n in made if n]) > 1 else None


def best(course_cell: CourseCell, candidates: list[int], cells: tuple[OpenCell, ...]) -> int:
    """The last one that is finished Python and defines what is asked; else the last one."""

    def quality(index: int) -> tuple[bool, bool, bool, int]:
        source = cells[index].source
        complete = set(course_cell.defines) <= defined(source)
        return (parse(source) is not None, complete, "NotImplementedError" not in source, index)

    return max(candidates, key=quality)


def chosen_note(grade_id: str, how: str, found: list[int], chosen: int) -> Note:
    en, zh = ", ".join(map(str, found)), "、".join(map(str, found))
    if how == "copies":
        return repair(
            f"{grade_id}: stands {len(found)} times (cells {en}), one version only; took it",
            f"{grade_id}：出现 {len(found)} 次（第 {zh} 个单元格），内容只有一种；就用它",
        )
    last = chosen == found[-1]
    why_en = "the last one, as when running from the top" if last else "the last finished one"
    why_zh = "最后一个，与从头运行的结果一致" if last else "最后一个写完的"
    return doubt(
        f"{grade_id}: {len(found)} versions (cells {en}); took cell {chosen}, {why_en}",
        f"{grade_id}：有 {len(found)} 个版本（第 {zh} 个单元格）；取第 {chosen} 个：{why_zh}",
    )


def take_pictures(position: int, grade_id: str, found: list[OpenCell], matching: Matching) -> None:
    """All that is attached to the cells of an answer, whichever of their words are taken."""
    for cell in found:
        matching.pictures.setdefault(position, {}).update(cell.pictures)
    if any(cell.lost for cell in found):
        matching.notes.append(
            doubt(
                f"{grade_id}: something attached to the answer is only in the original",
                f"{grade_id}：回答的一个附件只有原文件里能看到",
            )
        )


def joined_note(grade_id: str, parts: list[int]) -> Note:
    return repair(
        f"{grade_id}: was split over cells {', '.join(map(str, parts))}; joined in this order",
        f"{grade_id}：被拆成第 {'、'.join(map(str, parts))} 个单元格；按此顺序合并",
    )


def note_changed_tests(
    course: CourseNotebook, cells: tuple[OpenCell, ...], matching: Matching
) -> None:
    """Test cells are the course's, whatever the student made of them; say so."""
    changed = sorted(
        {
            course.cells[owner].grade_id
            for index, owner in matching.owners.items()
            if course.cells[owner].role == "test"
            and bare(cells[index].source) != bare(course.cells[owner].shown)
        }
    )
    found = set(matching.owners.values())
    gone = [c.grade_id for n, c in enumerate(course.cells) if c.role == "test" and n not in found]
    for names, en, zh in (
        (changed, "test cells were changed and are put back", "测试单元格被改动，已恢复"),
        (gone, "test cells were deleted and are put back", "测试单元格被删除，已补回"),
    ):
        if names:
            matching.notes.append(repair(f"{en}: {', '.join(names)}", f"{zh}：{'、'.join(names)}"))


def own_cells(
    course: CourseNotebook, cells: tuple[OpenCell, ...], matching: Matching
) -> Iterator[tuple[int, OpenCell]]:
    """The student's own cells, each with the course cell (its number, or -1) that it follows.

    Own are cells that the release does not have, and course cells of code that they changed. The
    set-up of another edition, which carries the package or has another address, is not theirs.
    """
    anchor = -1
    for index, cell in enumerate(cells):
        owner = matching.owners.get(index)
        if owner is not None:
            anchor = owner
            course_cell = course.cells[owner]
            if cell.kind != "code" or bare(cell.source) == bare(course_cell.shown):
                continue
            if course_cell.role == "test" and course_cell.shown in cell.source:
                # What the student added runs before the test, as it did for them.
                added = cell.source.replace(course_cell.shown, "").strip("\n")
                yield owner - 1, replace(cell, source=added)
            if course_cell.role != "code":
                continue
        source = without_set_up(cell.source) if cell.kind == "code" else cell.source
        if source.strip():
            yield anchor, replace(cell, source=source)


@lru_cache(maxsize=1024)  # a class hands in the same cells many times
def defined(source: str) -> frozenset[str]:
    """Names that a cell defines at its top level."""
    tree = parse(source)
    names: set[str] = set()
    for statement in tree.body if tree is not None else []:
        names |= bound_names(statement)
    return frozenset(names)


def said_to_define(source: str) -> frozenset[str]:
    """Names of functions and classes in code that is no Python as a whole."""
    return frozenset(DEFINITION.findall(source))


def is_fragment(source: str) -> bool:
    """Whether the code can't stand alone: it is indented, or is no Python by itself."""
    first = next((line for line in source.split("\n") if line.strip()), "")
    return bool(first) and (first[0] in " \t" or parse(source) is None)


def bare(source: str) -> str:
    """The text without what editors add or take away at the ends of lines and of the cell."""
    return "\n".join(line.rstrip() for line in source.strip().splitlines())


def alike(a: str, b: str) -> float:
    """How many words and signs are common, 0 to 1; 0 where they can't reach ALIKE or are many."""
    matcher = SequenceMatcher(None, WORDS.findall(a), WORDS.findall(b), autojunk=False)
    if max(len(a), len(b)) > 20_000 or matcher.real_quick_ratio() < ALIKE:
        return 0.0
    return matcher.ratio()
