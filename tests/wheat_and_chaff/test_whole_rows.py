"""A function that has no running softmax in it gets what torch's own attention gets, however it is
written; one that has loses nothing by it."""

from __future__ import annotations

import linecache
import math
import re
from decimal import Decimal

import numpy as np
import pytest
import torch

from flashcourse.checks import mark
from flashcourse.checks.cuts import TRIES, Place, far_apart
from flashcourse.checks.forward_tile import Problem
from wheat_and_chaff.chaff import CHAFF, SKELETON
from wheat_and_chaff.whole_rows import PASSES, WHOLE_ROWS, body

OPENLY = next(c.marks for c in CHAFF if c.name == "torch's own attention")


def compiled(name: str, source: str):
    file = f"<whole rows: {name}>"
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    namespace = {"torch": torch, "math": math, "np": np}
    exec(compile(source, file, "exec"), namespace)
    return namespace["flash_attention_forward_sim"]


@pytest.mark.parametrize("name", WHOLE_ROWS)
def test_a_disguise_gains_nothing(name: str) -> None:
    marks = mark("forward", compiled(name, WHOLE_ROWS[name]), seed=5)
    said = [finding.text.en for finding in marks.findings]
    assert marks.points == OPENLY, said
    assert marks.findings[0].misconception in ("maximum-of-all-keys", "everything-at-once", None)


@pytest.mark.parametrize("name", PASSES)
def test_several_passes_over_the_tiles_earn_the_scores_and_the_tiles_besides(name: str) -> None:
    parts = {
        part: mark(f"forward.{part}", compiled(name, PASSES[name])).points
        for part in ("todo1", "todo2", "todo3", "todo4", "todo5", "todo6", "tiling")
    }
    assert {part for part, points in parts.items() if points} == {"todo2", "tiling"}
    marks = mark("forward", compiled(name, PASSES[name]))
    assert marks.points == OPENLY + 20
    assert {f.misconception for f in marks.findings} == {"maximum-of-all-keys"}


ARRAYS = """
    Q, K, V = (t.double().numpy() for t in (q, k, v))
    outs = []
    for i in range(0, len(Q), block_size):
        c = Q[i:i+block_size] / math.sqrt(Q.shape[1])
        a, b, o = np.full((len(c), 1), -np.inf), 0.0, 0.0
        for j in range(0, len(K), block_size):
            s = c @ K[j:j+block_size].T
            d = np.maximum(a, s.max(1, keepdims=True))
            e, f = np.exp(s - d), np.exp(a - d)
            a, b, o = d, {total}, f * o + e @ V[j:j+block_size]
        outs.append(o / b)
    return torch.from_numpy(np.concatenate(outs)).to(q.dtype)
"""
VMAP = """
    def one(row):
        a, b, c = row.new_full((), -math.inf), row.new_zeros(()), row.new_zeros(v.shape[1])
        for x, y in zip(k.split(block_size), v.split(block_size)):
            s = x @ row / math.sqrt(q.shape[1])
            d = torch.maximum(a, s.amax())
            e, f = torch.exp(s - d), torch.exp(a - d)
            a, b, c = d, {total}, f * c + e @ y
        return c / b
    return torch.cat([torch.vmap(one)(c) for c in q.split(block_size)])
"""


@pytest.mark.parametrize(
    ("name", "source", "total"),
    [
        ("NumPy", ARRAYS, "b + e.sum(1, keepdims=True)"),
        ("vmap", VMAP, "b + e.sum()"),
    ],
)
def test_a_slip_where_no_exponential_can_be_recorded_costs_no_more_than_elsewhere(
    name: str, source: str, total: str
) -> None:
    marks = mark("forward", compiled(name, body(source.replace("{total}", total))))
    assert 65 <= marks.points <= 90, [finding.text.en for finding in marks.findings]
    assert marks.findings[0].todo == 5


TILES_WITHOUT_A_PAST = """
    out = torch.zeros_like(q)
    for i in range(0, len(q), block_size):
        for j in range(0, len(k), block_size):
            S_ij = q[i:i+block_size] @ k[j:j+block_size].T / math.sqrt(q.shape[1])
            m_new = S_ij.amax(-1, keepdim=True)
            P_ij = torch.exp(S_ij - m_new)
            l_new = P_ij.sum(-1, keepdim=True)
            out_i = P_ij @ v[j:j+block_size] / l_new
        out[i:i+block_size] = out_i
    return out
"""


@pytest.mark.parametrize("todo", [3, 5, 6])
def test_a_running_value_that_runs_on_from_nothing_earns_nothing(todo: int) -> None:
    answer = compiled("no past", body(TILES_WITHOUT_A_PAST))
    assert mark(f"forward.todo{todo}", answer).points == 0
    assert mark("forward.todo2", answer).points == 10


def test_a_skeleton_with_every_line_broken_earns_nothing_but_its_start() -> None:
    source = SKELETON
    for name in ("S_ij", "m_block", "m_new", "P_ij", "l_block", "l_new", "out_i"):
        source, count = re.subn(rf"(?m)^(            {name} = ).*$", r"\1 1 / 0", source)
        assert count == 1
    marks = mark("forward", compiled("broken", source))
    assert (marks.points, marks.status) == (10, "crashed")


OWN_TILES = """
    tile = {tile}
    outs = []
    for c in q.split(block_size):
        top = torch.full((len(c), 1), -math.inf, dtype=q.dtype)
        total, sums = torch.zeros_like(top), torch.zeros(len(c), v.shape[1], dtype=q.dtype)
        for x, y in zip(k.split(tile), v.split(tile)):
            z = c @ x.T / math.sqrt(q.shape[1])
            higher = torch.maximum(top, z.amax(1, keepdim=True))
            w, a = torch.exp(z - higher), torch.exp(top - higher)
            total, sums, top = a * total + w.sum(1, keepdim=True), a * sums + w @ y, higher
        outs.append(sums / total)
    return torch.cat(outs)
"""


@pytest.mark.parametrize(("tile", "points"), [("block_size", 100), ("2", 90), ("4", 90)])
def test_whoever_cuts_elsewhere_than_block_size_says_loses_the_points_of_tiling(
    tile: str, points: float
) -> None:
    marks = mark("forward", compiled(tile, body(OWN_TILES.replace("{tile}", tile))))
    assert marks.points == points, [finding.text.en for finding in marks.findings]
    assert [f.misconception for f in marks.findings] == ["block-size-ignored"] * (points < 100)


def decimal_attention(problem: Problem, row: int, column: int) -> Decimal:
    """One number of exact attention without any float, for a value of 1e250."""
    scale = 1 / Decimal(problem.q.shape[1]).sqrt()
    scores = [
        sum(map(Decimal.__mul__, map(Decimal, problem.q[row].tolist()), map(Decimal, key)))
        for key in problem.k.tolist()
    ]
    weights = [(score * scale).exp() for score in scores]
    return weights[column] * Decimal("1e250") / sum(weights)


def test_the_number_that_is_asked_for_is_exact_attention() -> None:
    """exp(−800) · 1e250: a softmax over whole rows gives 0, so the message names what is lost."""
    marks = mark("forward", compiled("sigmoid", WHOLE_ROWS["a sigmoid"]))
    text = marks.findings[0].text
    place, ones = Place(2, (3,)), torch.ones(12, dtype=torch.float64)
    problem = far_apart(TRIES[0], [place], ones)
    exact = f"{decimal_attention(problem, 0, place.low):.3e}".replace("e-", "e−")
    assert exact == "3.668e−98"
    assert exact in text.en
    assert exact in text.zh
    scores = problem.q @ problem.k.T / math.sqrt(problem.q.shape[1])
    assert (torch.softmax(scores, -1) @ problem.v)[0, place.low] == 0
