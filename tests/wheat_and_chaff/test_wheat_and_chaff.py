"""Every right answer gets full marks, no wrong one does, and what is said about it is true."""

from __future__ import annotations

import linecache
from dataclasses import dataclass
from functools import cache

import pytest

from flashcourse.checks import Marks, mark
from wheat_and_chaff.chaff import CHAFF, Chaff
from wheat_and_chaff.wheat import WHEAT


def function_of(chaff: Chaff):
    """The wrong function, compiled the way a notebook cell is: its source is in linecache."""
    name = f"<chaff: {chaff.name}>"
    linecache.cache[name] = (len(chaff.source), None, chaff.source.splitlines(True), name)
    namespace: dict = {}
    exec(compile(chaff.source, name, "exec"), namespace)
    return namespace["flash_attention_forward_sim"]


@cache
def marked(name: str) -> Marks:
    chaff = next(c for c in CHAFF if c.name == name)
    return mark("forward", function_of(chaff))


@dataclass(frozen=True)
class Said:
    marks_right: bool
    todo_right: bool
    misconception_right: bool
    accused_wrongly: bool


def said_about(chaff: Chaff) -> Said:
    marks = marked(chaff.name)
    first = marks.findings[0] if marks.findings else None
    named = first.misconception if first else None
    return Said(
        marks_right=marks.points == chaff.marks and marks.status == chaff.status,
        todo_right=first is not None and first.todo == chaff.todo,
        misconception_right=named == chaff.misconception,
        accused_wrongly=named is not None and named != chaff.misconception,
    )


@pytest.mark.parametrize("name", WHEAT)
def test_a_right_answer_gets_full_marks_in_this_style(name):
    marks = mark("forward", WHEAT[name], seed=3)
    assert (marks.points, marks.status) == (100, "right"), [f.text.en for f in marks.findings]


@pytest.mark.parametrize("chaff", CHAFF, ids=lambda c: c.name)
def test_a_wrong_answer_gets_the_marks_it_deserves(chaff):
    marks = marked(chaff.name)
    findings = [(f.todo, f.misconception, f.text.en) for f in marks.findings]
    assert (marks.points, marks.status) == (chaff.marks, chaff.status), findings


@pytest.mark.parametrize("chaff", CHAFF, ids=lambda c: c.name)
def test_a_wrong_answer_never_gets_full_marks(chaff):
    assert marked(chaff.name).points < 100


@pytest.mark.parametrize("chaff", CHAFF, ids=lambda c: c.name)
def test_no_misconception_is_named_that_is_not_there(chaff):
    assert not said_about(chaff).accused_wrongly, marked(chaff.name).findings[0]


def test_there_are_many_kinds_of_wheat_and_chaff():
    assert len(WHEAT) >= 20
    assert len(CHAFF) >= 80


def test_the_first_thing_said_is_true_of_at_least_95_in_100(record_property):
    said = [said_about(chaff) for chaff in CHAFF]
    count, known = len(said), sum(c.misconception is not None for c in CHAFF)
    marks_right = sum(s.marks_right for s in said)
    todo_right = sum(s.todo_right for s in said)
    named = sum(s.misconception_right for s, c in zip(said, CHAFF, strict=True) if c.misconception)
    record_property(
        "said at the end",
        f"wheat: {len(WHEAT)} right answers. chaff: {count} wrong ones, {marks_right} with "
        f"the marks they deserve, {todo_right} with the right TODO named first, "
        f"{named} of {known} misconceptions named.",
    )
    assert todo_right >= 0.95 * count
    assert named >= 0.95 * known
