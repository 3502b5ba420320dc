"""A record shows what a function did, and crosses a process border as plain data."""

from __future__ import annotations

import math

import pytest
import torch
from wheat_and_chaff.wheat import wheat_block_numbers, wheat_skeleton, wheat_while_loops

from flashcourse import record
from flashcourse.attention import state_after
from flashcourse.checks import mark
from flashcourse.record_data import from_data, to_data


def inputs(rows=8, dim=4, dtype=torch.float64):
    g = torch.Generator().manual_seed(0)
    return tuple(torch.randn(rows, dim, generator=g, dtype=torch.float64).to(dtype) for _ in "qkv")


@pytest.mark.parametrize("function", [wheat_skeleton, wheat_while_loops, wheat_block_numbers])
def test_the_state_after_each_tile_is_the_closed_form_of_the_keys_seen(function):
    q, k, v = inputs()
    made = record(function, q, k, v, 2)
    assert [(t.i, t.j) for t in made.tiles] == [(i, j) for i in (0, 2, 4, 6) for j in (0, 2, 4, 6)]
    for tile in made.tiles:
        m, l, O = state_after(q[tile.i : tile.i + 2], k, v, tile.j + 2)
        torch.testing.assert_close(tile.after["m_i"], m)
        torch.testing.assert_close(tile.after["l_i"], l)
        if function is not wheat_block_numbers:  # that one divides at the end
            torch.testing.assert_close(tile.after["out_i"], O)


def test_a_tile_has_the_named_values_the_state_before_and_the_lines():
    made = record(wheat_skeleton, *inputs(), 2)
    tile = made.tiles[0]
    names = ["S_ij", "m_block", "m_new", "P_ij", "l_block", "l_new", "out_i", "m_i", "l_i"]
    assert list(tile.values) == names and made.missing == ()
    assert bool((tile.before["m_i"] == -math.inf).all())
    first = wheat_skeleton.__code__.co_firstlineno
    assert tile.lines["S_ij"] == first + 14 and tile.lines["l_i"] == first + 22


def test_values_are_kept_as_they_were_although_the_function_changes_them_later():
    q, k, v = inputs()
    made = record(wheat_skeleton, q, k, v, 2)
    assert bool((made.start["out"] == 0).all()) and bool((made.end["out"] != 0).all())


def test_the_tensors_made_are_listed_and_views_are_not():
    made = record(wheat_skeleton, *inputs(64, 16, torch.float32), 16)
    assert made.largest_intermediate == 64 * 16
    assert {t.shape for t in made.tensors if t.op == "aten.mm"} == {(16, 16)}
    assert not any(t.op in ("aten.transpose", "aten.slice") for t in made.tensors)
    assert made.largest_exp_argument == 0.0


def test_the_largest_argument_of_exp_tells_who_subtracts_no_maximum():
    def naive(q, k, v, block_size=2):
        return torch.exp(q @ k.T) @ v

    q, k, v = inputs()
    assert record(naive, q, k, v).largest_exp_argument == pytest.approx(float((q @ k.T).max()))


def test_without_a_watch_all_is_recorded_but_the_tensors_made():
    watched = record(wheat_skeleton, *inputs(), 2)
    unwatched = record(wheat_skeleton, *inputs(), 2, watch=False)
    assert watched.tensors and not unwatched.tensors
    assert unwatched.largest_exp_argument is None
    assert torch.equal(unwatched.output, watched.output)
    for a, b in zip(unwatched.tiles, watched.tiles, strict=True):
        assert (a.i, a.j, a.lines) == (b.i, b.j, b.lines)
        assert all(torch.equal(a.values[name], b.values[name]) for name in b.values)


def test_a_line_that_raises_is_stepped_over_with_the_value_that_is_handed_in():
    def wrong(q, k, v, block_size=2):
        out = torch.zeros_like(q)
        for i in range(0, q.shape[0], block_size):
            for j in range(0, k.shape[0], block_size):
                S_ij = q[i : i + block_size] @ k[j : j + block_size]
                P_ij = S_ij + 1
                out[i : i + block_size, :2] += P_ij
        return out

    asked = []

    def repair(name, local):
        asked.append((name, local.get("i"), local.get("j")))
        return torch.full((2, 2), 7.0) if name == "S_ij" else None

    q, k, v = inputs(rows=4)
    assert record(wrong, q, k[:3], v[:3], 2).error.kind == "crashed"
    made = record(wrong, q, k, v, 2, repair=repair)
    assert made.error is None
    assert [tile.values["P_ij"].tolist() for tile in made.tiles] == [[[8.0, 8.0]] * 2] * 4
    assert {(i, j) for name, i, j in asked if name == "S_ij"} == {(0, 0), (0, 2), (2, 0), (2, 2)}


def test_inputs_that_a_function_writes_to_are_named_and_the_callers_stay_as_they_are():
    def scales(q, k, v, block_size=2):
        k *= 2
        return q

    q, k, v = inputs()
    before = k.clone()
    assert record(scales, q, k, v).inputs_changed == ("k",)
    assert torch.equal(k, before)


def test_uninitialised_memory_is_nan():
    def lucky(q, k, v, block_size=2):
        return torch.empty_like(q)

    assert bool(record(lucky, *inputs()).output.isnan().all())


def test_a_function_without_source_is_recorded_too():
    source = "def f(q, k, v, block_size=2):\n    out = q * 2\n    return out\n"
    namespace: dict = {}
    exec(source, namespace)
    made = record(namespace["f"], *inputs())
    assert made.error is None and "out" in made.start


def test_a_record_survives_as_plain_data():
    made = record(wheat_skeleton, *inputs(), 2)
    again = from_data(to_data(made))
    assert again.tensors == made.tensors and again.seconds == made.seconds
    assert torch.equal(again.output, made.output)
    for a, b in zip(again.tiles, made.tiles, strict=True):
        assert (a.i, a.j, a.lines) == (b.i, b.j, b.lines)
        assert all(torch.equal(a.values[name], b.values[name]) for name in b.values)


class StandIn:
    """A function of another process: only plain data comes back."""

    def __init__(self, function):
        self.function = function

    def __call__(self, *args, **kwargs):
        return self.function(*args, **kwargs)

    def __flashcourse_record__(self, q, k, v, block_size, **options):
        made = record(self.function, q, k, v, block_size, **options)
        return from_data(to_data(made))


def test_a_stand_in_gets_the_same_marks_as_the_function_itself():
    assert mark("forward", StandIn(wheat_skeleton)).points == 100

    def crashes_in_todo_3(q, k, v, block_size=2):
        seq_len, dim = q.shape
        out, m, l = (
            torch.zeros_like(q),
            torch.full((seq_len, 1), -math.inf),
            torch.zeros(seq_len, 1),
        )
        m, l = m.to(q.dtype), l.to(q.dtype)
        for i in range(0, seq_len, block_size):
            q_block = q[i : i + block_size] / math.sqrt(dim)
            m_i, l_i, out_i = (t[i : i + block_size] for t in (m, l, out))
            for j in range(0, seq_len, block_size):
                S_ij = q_block @ k[j : j + block_size].T
                m_block = S_ij.max(dim=-1, keepdim=True).values
                m_new = max(m_i, m_block)
                P_ij = torch.exp(S_ij - m_new)
                l_new = torch.exp(m_i - m_new) * l_i + P_ij.sum(dim=-1, keepdim=True)
                out_i = torch.exp(m_i - m_new) * l_i * out_i + P_ij @ v[j : j + block_size]
                out_i = out_i / l_new
                m_i, l_i = m_new, l_new
            out[i : i + block_size] = out_i
        return out

    for answer in (crashes_in_todo_3, StandIn(crashes_in_todo_3)):
        marks = mark("forward", answer)
        assert (marks.points, marks.status) == (90, "crashed")
        assert marks.findings[0].misconception == "builtin-max"


def wrong(data, path, value):
    """`data` with one thing replaced."""
    *steps, last = path
    place = data
    for step in steps:
        place = place[step]
    place[last] = value
    return data


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (["output"], "a string"),
        (["output"], 10_000),
        (["output"], -1),
        (["output"], True),
        (["start", "out"], torch.ones(1)),
        (["start", "__class__"], 0),
        (["numbers", "pools", 0], torch.eye(3).to_sparse()),
        (["numbers", "pools", 0], torch.ones(3, 3)),
        (["numbers", "pools", 0], torch.ones(10_000)),
        (["numbers", "pools"], []),
        (["numbers", "shapes"], torch.tensor([0])),
        (["numbers", "shapes"], torch.tensor([0, 1, -8])),
        (["numbers", "shapes"], torch.tensor([0, 2, 0, 2**60])),
        (["numbers", "shapes"], torch.tensor([0, 10**9, 1])),
        (["numbers", "shapes"], torch.tensor([0.0, 1.0, 8.0])),
        (["tiles"], "many"),
        (["tiles", "at"], torch.tensor([[1.5, 0.0]])),
        (["tiles", "at"], torch.zeros(5000, 2).long()),
        (["tiles", "at"], torch.zeros(4).long()),
        (["tiles", "values"], torch.tensor([[0, 1, 0, 10_000]])),
        (["tiles", "values"], torch.tensor([[999, 1, 0, 0]])),
        (["tiles", "values"], torch.tensor([[0, 0, 0, 0]])),  # S_ij is no part of a state
        (["tiles", "values"], torch.tensor([[0, 3, 6, 0]])),
        (["tiles", "values"], torch.tensor([[0, 1, 99, 0]])),
        (["tiles", "lines"], torch.tensor([[0, 99, 1]])),
        (["tiles", "more"], 1),
        (["error"], {"kind": "odd"}),
        (["seconds"], None),
        (["extra"], 1),
        (["tensors"], [{}]),
        (["tensors", "rows", 0], [[], "torch.float32", "aten.mm", 1]),
        (["tensors", "order"], torch.tensor([[10_000]])),
        (["tensors", "order"], torch.tensor([[-1]])),
        (["tensors", "order"], torch.tensor([[0.0]])),
        (["truncated"], 1),
    ],
)
def test_data_of_another_kind_is_refused_with_a_clear_error(path, value):
    data = wrong(to_data(record(wheat_skeleton, *inputs(), 2)), path, value)
    with pytest.raises(ValueError, match="record|Tile|Tensor|Failure|Record"):
        from_data(data)


def test_data_that_is_no_dict_is_refused():
    with pytest.raises(ValueError, match="Record"):
        from_data([])


def test_an_operator_that_torch_does_not_have_is_a_crash_and_not_an_unfinished_answer():
    def whole_numbers(q, k, v, block_size=2):
        return torch.softmax((q @ k.T).long(), dim=-1)

    def stub(q, k, v, block_size=2):
        if block_size:
            raise NotImplementedError("to be written")

    error = record(whole_numbers, *inputs(), 2).error
    assert error is not None and (error.type_name, error.kind) == ("NotImplementedError", "crashed")
    error = record(stub, *inputs(), 2).error
    assert error is not None and error.kind == "unfinished"


class Lying(torch.Tensor):
    """A tensor whose copy has other numbers."""

    def detach(self):
        return torch.zeros(8, 4)


def test_a_class_of_the_learners_has_no_hand_in_the_record():
    made = record(lambda q, k, v, block_size=2: torch.ones_like(q).as_subclass(Lying), *inputs(), 2)
    assert made.output is not None and bool((made.output == 1).all())


def test_a_power_of_a_complex_number_is_left_to_torch():
    made = record(lambda q, k, v, block_size=2: (1j**q).real.contiguous(), *inputs(), 2)
    assert made.error is None and made.largest_exp_argument is None


def test_a_power_of_e_is_an_exponential():
    def powers(q, k, v, block_size=2):
        return torch.full_like(q, math.e) ** torch.full_like(q, 3.0)

    assert record(powers, *inputs(), 2).largest_exp_argument == pytest.approx(3.0)


def test_a_function_that_is_no_attention_gets_only_what_is_given():
    def three_passes(x):
        return torch.exp(x - x.max()) / torch.exp(x - x.max()).sum()

    made = record(three_passes, torch.arange(5.0), None, None, None)
    assert made.error is None and made.output is None and made.tiles == ()
    assert [t.op for t in made.tensors].count("aten.exp") == 2
    assert record(torch.softmax, torch.zeros(3), None, None, None).error.type_name == "TypeError"
