"""Right and wrong answers whose names the checker has never seen: it must not depend on ours.

`meaningless` and `plausible` names can't be read: such an answer is judged by its outputs, and a
TODO is named only if they leave no doubt. `usual` names are those of public implementations,
`misleading` ones are such names for something else.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from flashcourse.checks import mark
from wheat_and_chaff.chaff import CHAFF, Chaff
from wheat_and_chaff.edits import EDITS, Edit
from wheat_and_chaff.renamed import answer_in, wheat_in
from wheat_and_chaff.wheat import WHEAT

# Of two mistakes or more, `Chaff` tells the first. These are the others: TODO, misconception.
OTHERS = {
    "no scale and O without alpha": {(6, "output-not-rescaled")},
    "max of the tile and old sum not rescaled": {(5, "old-sum-not-rescaled")},
    "exp(S) and the origin's formula": {(5, "block-sum-corrected-twice")},
    "m starts at 0 and no write-back": {(6, "no-write-back")},
    "k not transposed and sum keepdim lost": {(5, "sum-keepdim-lost")},
    "builtin max and O without alpha": {(6, "output-not-rescaled")},
    "scaled twice and a tuple": {(None, "returns-more-than-the-output")},
    "old sum not rescaled and last block dropped": {(None, "tiles-missing")},
    "state without dtype and no scale": {(2, "no-scale")},
    "four mistakes": {
        (3, "max-of-the-whole-tile"), (4, "nothing-subtracted"), (5, "old-sum-not-rescaled"),
    },
}  # fmt: skip
STYLES = ("meaningless", "plausible", "usual", "misleading")
SHARE = 6  # always every sixth wrong answer of each style; all of them with `pytest -m slow`
# How many in 100 have a TODO of theirs named first. What outputs can't tell apart is not named.
ENOUGH = {"meaningless": 50, "plausible": 50, "usual": 95, "misleading": 50}
SLACK = 20  # less of a share, which may hold more of those that can't be told


@dataclass(frozen=True)
class Said:
    name: str
    points: float
    due: bool  # whether a TODO is at fault
    todo_right: bool
    todo_wrong: bool
    misconception_right: bool
    false: tuple[str, ...]


def said_about(style: str, chaff: Chaff) -> Said:
    marks = mark("forward", answer_in(style, chaff.name, chaff.source))
    true = {(chaff.todo, chaff.misconception), *OTHERS.get(chaff.name, ())}
    todos, ids = {todo for todo, _ in true}, {id for _, id in true}
    first = marks.findings[0] if marks.findings else None
    todo, id = (first.todo, first.misconception) if first else (None, None)
    named = {f.misconception for f in marks.findings if f.misconception}
    return Said(
        chaff.name,
        marks.points,
        due=chaff.todo is not None,
        todo_right=todo is not None and todo in todos,
        todo_wrong=todo is not None and todo not in todos,
        misconception_right=id is not None and id in ids,
        false=tuple(sorted(named - ids)),
    )


def judge(style: str, chaffs: tuple[Chaff, ...], enough: int, record_property) -> None:
    said = [said_about(style, chaff) for chaff in chaffs]
    right, wrong = sum(s.todo_right for s in said), [s for s in said if s.todo_wrong]
    due, false = sum(s.due for s in said), {s.name: s.false for s in said if s.false}
    record_property(
        "said at the end",
        f"{style} names: {len(said)} wrong answers, {due} of them in a TODO: {right} with that one "
        f"named first, {due - right - len(wrong)} with none, {len(wrong)} with a wrong one; "
        f"{sum(s.misconception_right for s in said)} misconceptions named, {len(false)} falsely.",
    )
    assert [s.name for s in said if s.points >= 100] == []
    assert wrong == []
    assert false == {}
    assert right >= enough * due / 100


@pytest.mark.parametrize(
    "style", ["meaningless", *(pytest.param(s, marks=pytest.mark.slow) for s in STYLES[1:])]
)
def test_a_right_answer_has_full_marks_whatever_its_variables_are_called(style):
    marks = {name: mark("forward", wheat_in(style, name), seed=3) for name in WHEAT}
    lost = {name: [f.text.en for f in m.findings] for name, m in marks.items() if m.points != 100}
    assert lost == {}


@pytest.mark.parametrize("style", STYLES)
def test_of_a_wrong_answer_with_other_names_only_what_is_true_is_said(style, record_property):
    share = CHAFF[STYLES.index(style) :: SHARE]
    judge(style, share, ENOUGH[style] - SLACK, record_property)


@pytest.mark.slow
@pytest.mark.parametrize("style", STYLES)
def test_of_all_wrong_answers_with_other_names_only_what_is_true_is_said(style, record_property):
    judge(style, CHAFF, ENOUGH[style], record_property)


def test_a_short_last_block_costs_its_points_and_no_todo():
    dropped = [c for c in CHAFF if c.name in ("last block dropped", "last rows dropped")]
    marks = [mark("forward", answer_in("meaningless", c.name, c.source)) for c in dropped]
    assert [(m.points, m.findings[0].misconception) for m in marks] == [(95, None), (95, None)]


def todos_named(style: str, edits: tuple[Edit, ...]) -> list[tuple[str, int, int | None]]:
    """For each edit that breaks the function: its line, the TODO at fault, and the TODO named."""
    marks = [mark("forward", answer_in(style, e.line, e.source)) for e in edits]
    pairs = zip(edits, marks, strict=True)
    return [(e.line, e.todo, m.findings[0].todo) for e, m in pairs if m.points < 100]


@pytest.mark.parametrize("step", [25, pytest.param(1, marks=pytest.mark.slow)])
def test_no_slip_of_whatever_kind_has_a_wrong_todo_named_by_its_output(step, record_property):
    named = todos_named("meaningless", EDITS[::step])
    right = sum(due == said for _, due, said in named)
    record_property(
        "said at the end",
        f"meaningless names: {len(named)} slips, {right} with the right TODO named first, the "
        "others with numbers and no TODO.",
    )
    assert [x for x in named if x[2] not in (x[1], None)] == []


@pytest.mark.slow
def test_with_the_names_of_the_skeleton_slips_of_every_kind_have_the_right_todo_named(
    record_property,
):
    named = todos_named("own", EDITS)
    right = sum(due == said for _, due, said in named)
    wrong = [x for x in named if x[2] not in (x[1], None)]
    record_property(
        "said at the end",
        f"the skeleton's names: {len(named)} slips, {right} with the right TODO named first, "
        f"{len(wrong)} with a wrong one.",
    )
    assert right >= 0.9 * len(named)
    assert len(wrong) <= 0.01 * len(named), wrong
