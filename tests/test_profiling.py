"""What the lessons' profiling cells rely on, on whatever machine this is."""

import torch

from flashcourse.profiling import allocated_bytes, operators, profile_of, seconds_of, show_operators


def scores(q, k):
    return torch.softmax(q @ k.transpose(-2, -1), dim=-1)


def inputs(n):
    return torch.randn(2, n, 16), torch.randn(2, n, 16)


def test_a_profile_names_the_operators_that_ran():
    names = {op.name for op in operators(profile_of(scores, *inputs(64)))}
    assert {"aten::bmm", "aten::_softmax"} <= names


def test_an_operator_is_charged_with_the_bytes_of_its_result():
    found = {op.name: op for op in operators(profile_of(scores, *inputs(64)))}
    assert found["aten::bmm"].bytes == found["aten::_softmax"].bytes == 2 * 64 * 64 * 4
    assert found["aten::bmm"].calls == 1


def test_twice_the_length_allocates_four_times_the_bytes():
    assert allocated_bytes(scores, *inputs(128)) == 4 * allocated_bytes(scores, *inputs(64))


def test_the_table_is_short_and_in_the_readers_language(capsys, monkeypatch):
    monkeypatch.setattr("flashcourse.profiling.course_language", lambda: "zh")
    show_operators(profile_of(scores, *inputs(64)), rows=2)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    assert "算子" in lines[0]


def test_seconds_are_positive():
    assert seconds_of(scores, *inputs(16), repeats=2) > 0
