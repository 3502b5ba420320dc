"""Recognise the misconception behind a fault: which wrong formula gives the learner's very numbers?

Every rule is the formula of a mistake. It fits if it gives the learner's value in each tile of the
run, not only in the one where the fault shows. Where two fit, or none, nobody is accused.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from flashcourse.checks.forward_relations import Fault, Reading
from flashcourse.checks.forward_tile import View, agrees
from flashcourse.running import Failure

STATE = ("m_i", "l_i")  # judged by what the next tile starts from

Rule = Callable[[View], Tensor]


def _full(view: View, value: Tensor) -> Tensor:
    """One number for all rows, in the shape that a learner's value has."""
    return value.expand_as(view.m)


def _causal(view: View, local: bool) -> Tensor:
    right = view.right_S()
    rows = torch.arange(right.shape[0])[:, None] + (0 if local else view.tile.i)
    columns = torch.arange(right.shape[1])[None, :] + (0 if local else view.tile.j)
    got = view.got("S_ij")
    hidden = columns > rows
    if got is not None and got.shape == right.shape:  # −1e9 is meant as −∞
        return torch.where(hidden & (got <= -1e4), got, right.masked_fill(hidden, -math.inf))
    return right.masked_fill(hidden, -math.inf)


def _softmax(view: View) -> Tensor:
    return torch.softmax(view.S, dim=-1)


# For each value: the id of a misconception and the formula that it amounts to.
RULES: dict[str, tuple[tuple[str, Rule], ...]] = {
    "S_ij": (
        ("no-scale", lambda t: t.q @ t.k.T),
        ("scale-twice", lambda t: t.q @ t.k.T / t.root**2),
        ("scale-inverted", lambda t: t.q @ t.k.T * t.root),
        ("scores-transposed", lambda t: t.k @ t.q.T / t.root),
        ("key-not-transposed", lambda t: t.q @ t.k / t.root),
        ("elementwise-product", lambda t: t.q * t.k / t.root),
        ("causal-mask", lambda t: _causal(t, local=False)),
        ("causal-mask", lambda t: _causal(t, local=True)),
        ("scores-of-another-block", lambda t: t.q @ _cut(t.problem.k, t.tile.i, t).T / t.root),
        ("scores-of-all-keys", lambda t: t.q @ t.problem.k.cpu().double().T / t.root),
    ),
    "m_block": (
        ("argmax", lambda t: t.S.argmax(dim=-1, keepdim=True).double()),
        ("argmax", lambda t: t.S.argmax(dim=-1).double()),
        ("max-of-the-whole-tile", lambda t: t.S.max()),
        ("max-of-the-whole-tile", lambda t: _full(t, t.S.max())),
        ("max-over-rows", lambda t: t.S.amax(dim=0, keepdim=True)),
        ("max-over-rows", lambda t: t.S.amax(dim=0)[:, None]),
        ("max-over-rows", lambda t: t.S.amax(dim=0)),
        ("max-keepdim-lost", lambda t: t.S.amax(dim=-1)),
        ("max-of-absolute-values", lambda t: t.S.abs().amax(dim=-1, keepdim=True)),
        ("min-instead-of-max", lambda t: t.S.amin(dim=-1, keepdim=True)),
        ("mean-instead-of-max", lambda t: t.S.mean(dim=-1, keepdim=True)),
    ),
    "m_new": (
        ("max-forgets-the-past", lambda t: t.m_block),
        ("max-never-moves", lambda t: t.m),
        ("max-of-the-whole-tile", lambda t: torch.maximum(t.m, t.m_block).max()),
        ("max-of-the-whole-tile", lambda t: _full(t, torch.maximum(t.m, t.m_block).max())),
        ("min-instead-of-max", lambda t: torch.minimum(t.m, t.m_block)),
        ("max-added", lambda t: t.m + t.m_block),
    ),
    "P_ij": (
        ("nothing-subtracted", lambda t: torch.exp(t.S)),
        ("old-maximum-subtracted", lambda t: torch.exp(t.S - t.m)),
        ("block-maximum-subtracted", lambda t: torch.exp(t.S - t.m_block)),
        ("exponent-sign", lambda t: torch.exp(t.m_new - t.S)),
        ("exponent-sign", lambda t: torch.exp(t.S + t.m_new)),
        ("exp-forgotten", lambda t: t.S - t.m_new),
        ("exp-before-the-subtraction", lambda t: torch.exp(t.S) - t.m_new),
        ("softmax-in-the-tile", _softmax),
        ("base-two", lambda t: torch.exp2(t.S - t.m_new)),
    ),
    "l_block": (
        ("sum-of-the-whole-tile", lambda t: t.P.sum()),
        ("sum-of-the-whole-tile", lambda t: _full(t, t.P.sum())),
        ("sum-over-rows", lambda t: t.P.sum(dim=0, keepdim=True)),
        ("sum-over-rows", lambda t: t.P.sum(dim=0)[:, None]),
        ("sum-over-rows", lambda t: t.P.sum(dim=0)),
        ("sum-keepdim-lost", lambda t: t.P.sum(dim=-1)),
        ("mean-instead-of-sum", lambda t: t.P.mean(dim=-1, keepdim=True)),
        ("max-instead-of-sum", lambda t: t.P.amax(dim=-1, keepdim=True)),
        ("sum-of-scores", lambda t: t.S.sum(dim=-1, keepdim=True)),
        ("block-sum-corrected-twice", lambda t: t.beta * t.rowsum),
    ),
    "l_new": (
        ("block-sum-corrected-twice", lambda t: t.alpha * t.l + t.beta * t.rowsum),
        ("old-sum-not-rescaled", lambda t: t.l + t.rowsum),
        ("alpha-inverted", lambda t: t.l / t.alpha + t.rowsum),
        ("alpha-on-the-new-sum", lambda t: t.l + t.alpha * t.rowsum),
        ("alpha-on-both-sums", lambda t: t.alpha * (t.l + t.rowsum)),
        ("old-sum-forgotten", lambda t: t.rowsum),
        ("new-sum-forgotten", lambda t: t.alpha * t.l),
        ("new-sum-forgotten", lambda t: t.l),
        ("alpha-without-exp", lambda t: (t.m - t.m_new) * t.l + t.rowsum),
        ("alpha-of-the-block-maximum", lambda t: torch.exp(t.m - t.m_block) * t.l + t.rowsum),
        ("sum-of-the-whole-tile", lambda t: t.alpha * t.l + t.P.sum()),
        ("sum-keepdim-lost", lambda t: t.alpha * t.l + t.P.sum(dim=-1)),
        ("mean-instead-of-sum", lambda t: t.alpha * t.l + t.P.mean(dim=-1, keepdim=True)),
    ),
    "out_i": (
        ("output-not-rescaled", lambda t: (t.l * t.O + t.PV) / t.l_new),
        ("output-not-rescaled", lambda t: t.O + t.PV),
        ("output-alpha-inverted", lambda t: (t.l / t.alpha * t.O + t.PV) / t.l_new),
        ("output-alpha-inverted", lambda t: t.O / t.alpha + t.PV),
        ("alpha-on-the-new-output", lambda t: (t.l * t.O + t.alpha * t.PV) / t.l_new),
        ("alpha-on-the-new-output", lambda t: t.O + t.alpha * t.PV),
        ("alpha-on-both-outputs", lambda t: t.alpha * (t.l * t.O + t.PV) / t.l_new),
        ("alpha-on-both-outputs", lambda t: t.alpha * (t.O + t.PV)),
        ("old-output-not-multiplied-by-sum", lambda t: (t.alpha * t.O + t.PV) / t.l_new),
        ("only-the-new-term-divided", lambda t: t.alpha * t.l * t.O + t.PV / t.l_new),
        ("old-output-not-reweighted", lambda t: t.alpha * t.O + t.PV / t.l_new),
        ("old-output-not-reweighted", lambda t: t.O + t.PV / t.l_new),
        ("only-the-old-term-divided", lambda t: t.alpha * t.l * t.O / t.l_new + t.PV),
        ("divided-by-the-old-sum", lambda t: (t.alpha * t.l * t.O + t.PV) / t.l),
        ("divided-by-the-block-sum", lambda t: (t.alpha * t.l * t.O + t.PV) / t.rowsum),
        ("softmax-per-tile-summed", lambda t: t.O + t.PV / t.rowsum),
        ("softmax-per-tile-summed", lambda t: t.O + _softmax(t) @ t.v),
        ("new-output-not-corrected", lambda t: _if_block(t, t.alpha * t.l * t.O + t.PV, t.l_new)),
        ("new-output-not-corrected", lambda t: _if_block(t, t.alpha * t.O + t.PV)),
        ("old-output-forgotten", lambda t: t.PV / t.l_new),
        ("old-output-forgotten", lambda t: t.PV),
        ("new-output-forgotten", lambda t: t.alpha * t.l * t.O / t.l_new),
        ("new-output-forgotten", lambda t: t.alpha * t.O),
        ("new-output-forgotten", lambda t: t.O),
        ("never-divided", lambda t: t.alpha * t.l * t.O + t.PV),
        ("values-of-another-block", lambda t: _out(t, t.P @ _cut(t.problem.v, t.tile.i, t))),
        ("weights-transposed", lambda t: _out(t, t.P.T @ t.v)),
    ),
    "m_i": (
        ("maximum-not-carried", lambda t: t.m),
        ("block-state-carried", lambda t: t.m_block),
    ),
    "l_i": (
        ("sum-not-carried", lambda t: t.l),
        ("block-state-carried", lambda t: t.rowsum),
    ),
}

# The same numbers come out when the formula is right but reads a state that is new already.
EARLY = {
    "l_new": (("old-sum-not-rescaled", "m_i", "state-overwritten-too-early"),),
    "out_i": (
        ("output-not-rescaled", "m_i", "output-of-early-state"),
        ("old-output-not-reweighted", "m_i", "output-of-early-state"),
        ("old-output-not-reweighted", "l_i", "output-of-early-state"),
    ),
}


def _cut(tensor: Tensor, start: int, view: View) -> Tensor:
    return tensor[start : start + view.problem.block].cpu().double()


def _out(view: View, product: Tensor) -> Tensor:
    return (view.alpha * view.l * view.O + product) / view.l_new


def _if_block(view: View, value: Tensor, divisor: Tensor | float = 1.0) -> Tensor:
    """Only a mistake where P_ij is relative to m_block and not to m_new."""
    own = agrees(view.P, torch.exp(view.S - view.m_block), view.problem.tolerance)
    return value / divisor if own else torch.full_like(value, math.inf)


def misconception_of(readings: Sequence[Reading], fault: Fault) -> str | None:
    """The id of the one misconception that explains a fault; None if there is none, or several.

    readings: of every run that it has to explain.
    """
    if fault.variable in ("out", "m", "l"):
        return _start(fault) if fault.todo == 1 else _end(readings)
    if fault.note == "carried":
        return _carried(fault)
    views = [view for reading in readings for view in reading.views]
    fitting = {id for id, rule in RULES.get(fault.variable, ()) if _fits(views, fault, rule)}
    for usual, written_early, instead in EARLY.get(fault.variable, ()):
        early = any(v.assigned_before(written_early, fault.variable) for v in views)
        if usual in fitting and early:
            fitting = (fitting - {usual}) | {instead}
    return fitting.pop() if len(fitting) == 1 else None


def _fits(views: Sequence[View], fault: Fault, rule: Rule) -> bool:
    """Whether the rule gives the learner's value in every tile that has one."""
    some = False
    for view in views:
        got = view.after(fault.variable) if fault.variable in STATE else view.got(fault.variable)
        if got is None:
            continue
        try:
            want = rule(view)
        except (RuntimeError, LookupError, IndexError):
            return False
        if got.shape != want.shape or not torch.equal(got.isnan(), want.isnan()):
            return False
        if not agrees(got, want, view.problem.tolerance):
            return False
        some = True
    return some


def _start(fault: Fault) -> str | None:
    got, want = fault.got, fault.want
    if got is None or want is None or fault.note == "device":
        return None
    if fault.note == "dtype":
        return "state-without-dtype" if got.dtype == torch.get_default_dtype() else None
    if bool(got.isnan().any()):
        return "uninitialised-state"
    if fault.note == "shape":
        short = got.ndim > 0 and got.shape[0] == fault.problem.block != want.shape[0]
        return "state-too-short" if short else None
    if fault.variable == "m":
        if bool((got == 0).all()):
            return "m-starts-at-zero"
        if bool((got == math.inf).all()):
            return "m-starts-at-plus-infinity"
    return None


def _carried(fault: Fault) -> str | None:
    assert fault.got is not None
    start = -math.inf if fault.variable == "m_i" else 0.0
    return "state-starts-again" if bool((fault.got == start).all()) else None


def _end(readings: Sequence[Reading]) -> str | None:
    """The rows that were returned, beside what the last tiles of all Q blocks hold."""
    fitting = {"no-write-back", "final-division-missing", "divided-twice"}
    for reading in readings:
        output = reading.record.output
        if output is None or output.ndim != 2:
            return None
        last = {view.tile.i: view for view in reading.views}
        for view in last.values():
            fitting &= _end_fits(reading, view, output[view.rows].cpu().double())
    return fitting.pop() if len(fitting) == 1 else None


def _end_fits(reading: Reading, view: View, got: Tensor) -> set[str]:
    out_i, l_i = view.tile.values.get("out_i"), view.tile.after.get("l_i")
    start = reading.record.start.get("out")
    tolerance, fitting = view.problem.tolerance, set()
    if start is not None and agrees(got, start[view.rows].cpu().double(), tolerance):
        fitting.add("no-write-back")
    if out_i is None or l_i is None:
        return fitting
    out_i, l_i = out_i.cpu().double(), l_i.cpu().double().reshape(-1, 1)
    if reading.scheme.deferred and agrees(got, out_i, tolerance):
        fitting.add("final-division-missing")
    same_rows = l_i.shape[0] == out_i.shape[0]
    if not reading.scheme.deferred and same_rows and agrees(got, out_i / l_i, tolerance):
        fitting.add("divided-twice")
    return fitting


def crash_misconception(error: Failure) -> str | None:
    """The misconception that an exception in the learner's line gives away."""
    code, message = error.source_line or "", error.message
    if "return_types.max" in message:
        return "max-tuple"
    if "Boolean value of Tensor" in message and "max(" in code.replace("torch.max(", ""):
        return "builtin-max"
    if "cannot be multiplied" in message and "q_block" in code and "k_block" in code:
        return "key-not-transposed"
    return None
