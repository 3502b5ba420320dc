"""Judge TODO 1 to 6 of `flash_attention_forward_sim` from the record of a run.

Each TODO is judged by its own relation on the learner's own earlier values. FlashAttention-2's
deferred division and FlashAttention-1's tile-relative P_ij are other right ways, taken as a whole:
a value is compared with what belongs to the way that the function goes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from flashcourse.checks.forward_tile import TODO_OF, TOLERANCE, Problem, View, agrees, close, views
from flashcourse.records import Record

TODOS = (1, 2, 3, 4, 5, 6)
ENOUGH_FOR_MINUS_INFINITY = -1e4


@dataclass(frozen=True)
class Fault:
    """The first place where a TODO's relation fails.

    variable: whose value is wrong. got, want: the learner's value and what it should be, given
    their own earlier values (None: no such value). tile: None for the whole tensors. line: who
    assigned it. note: what kind of fault, where it is not the numbers ('shape', 'carried', …).
    """

    todo: int
    problem: Problem
    variable: str
    got: Tensor | None
    want: Tensor | None
    tile: tuple[int, int] | None = None
    line: int | None = None
    note: str = "numbers"


@dataclass(frozen=True)
class Scheme:
    """How the function goes about it. deferred: out_i is divided only at the end.

    block_base: P_ij is relative to m_block, and β corrects it later.
    """

    deferred: bool = False
    block_base: bool = False


@dataclass(frozen=True)
class Reading:
    """What one record says about the TODOs.

    faults: by TODO. seen: the TODOs whose values could be looked at. scheme, views: as they were
    read, for the rules of `misconceptions.py`.
    """

    problem: Problem
    record: Record
    faults: dict[int, Fault]
    seen: frozenset[int]
    scheme: Scheme
    views: tuple[View, ...]


def read(problem: Problem, record: Record) -> Reading:
    """Judge every TODO of which the record shows something."""
    problem = _as_tiled(problem, record)
    tiles = tuple(views(problem, record))
    scheme = Scheme(_is_deferred(tiles, record, problem), _is_block_base(tiles, problem))
    faults: dict[int, Fault] = {}
    for fault in (_start_fault(problem, record, tiles), *_tile_faults(tiles, scheme)):
        if fault is not None:
            faults.setdefault(fault.todo, fault)
    if 6 not in faults:
        last = _carried_fault(tiles) or _end_fault(problem, record, tiles, scheme)
        if last is not None:
            faults[6] = last
    return Reading(problem, record, faults, _seen(record), scheme, tiles)


def _as_tiled(problem: Problem, record: Record) -> Problem:
    """The problem with the block size that the tiles really have, if they cover it with another."""
    first = record.tiles[0].values.get("S_ij") if record.tiles else None
    if first is None or first.ndim != 2 or first.shape[0] != first.shape[1]:
        return problem
    tiled = replace(problem, block=max(first.shape[0], 1))
    return tiled if {(t.i, t.j) for t in record.tiles} == set(tiled.offsets) else problem


def _seen(record: Record) -> frozenset[int]:
    """The TODOs whose values have names. Of a running value, what it runs on from has to be seen
    too: a maximum of one tile alone is not yet TODO 3."""
    names = {name for tile in record.tiles for name in tile.values} | set(record.start)
    past = {name for tile in record.tiles for name in tile.before}
    last = {"out": 1, "S_ij": 2, "m_new": 3, "P_ij": 4, "l_new": 5, "out_i": 6}
    if "m_new" in record.missing and "m_i" in names:
        last["m_i"] = 3
    if "l_new" in record.missing and "l_i" in names:
        last["l_i"] = 5
    runs_on: dict[int, set[str]] = {3: {"m_i"}, 5: {"l_i", "m_i"}, 6: {"out_i", "m_i"}}
    found = {todo for name, todo in last.items() if name in names}
    return frozenset(todo for todo in found if runs_on.get(todo, set()) <= past)


# ---- TODO 1 -------------------------------------------------------------------------------------


def _start_fault(problem: Problem, record: Record, tiles: tuple[View, ...]) -> Fault | None:
    """out finite, m −∞ (or as good as), l 0; with m = −∞ the first α wipes out whatever l is."""
    rows, width = problem.q.shape[0], problem.v.shape[-1]
    flat = any(t.tile.values.get("m_block", torch.zeros(1, 1)).ndim == 1 for t in tiles)
    shapes = {"out": (rows, width), "m": (rows, 1), "l": (rows, 1)}
    want = {"out": 0.0, "m": -math.inf, "l": 0.0}
    wiped = False
    for name in ("m", "l", "out"):
        value = record.start.get(name)
        if value is None:
            continue
        value = value.cpu().double()
        if tuple(value.shape) != shapes[name] and not (flat and tuple(value.shape) == (rows,)):
            right = torch.full(shapes[name], want[name], dtype=torch.float64)
            return _whole_fault(problem, record, name, value, right, "shape")
        if name == "m":
            good = value <= ENOUGH_FOR_MINUS_INFINITY
            wiped = bool(good.all())
        elif name == "out" and not _is_used(value, record, tiles):
            continue
        else:
            good = value.isfinite() & ((value == 0) | wiped)
        if not bool(good.all()):
            right = torch.full_like(value, want[name])
            return _whole_fault(problem, record, name, value, right, "numbers")
    return None


def _is_used(start: Tensor, record: Record, tiles: tuple[View, ...]) -> bool:
    """Whether what `out` started as goes anywhere: into an out_i, or back to the caller."""
    for view in tiles:
        loaded, rows = view.tile.before.get("out_i"), start[view.rows]
        if loaded is None or loaded.shape != rows.shape:
            continue
        if torch.allclose(loaded.cpu().double(), rows, rtol=0.0, atol=0.0, equal_nan=True):
            return True
    output = record.output
    return output is not None and not bool(output.isfinite().all())


def _whole_fault(
    problem: Problem, record: Record, name: str, got: Tensor, want: Tensor, note: str
) -> Fault:
    return Fault(1, problem, name, got, want, line=record.lines.get(name), note=note)


# ---- TODO 2 to 6, inside the tiles --------------------------------------------------------------


def _holds(tiles: tuple[View, ...], name: str, right: Callable[[View], Tensor]) -> bool:
    """Whether a relation holds in every tile that has the value."""
    for view in tiles:
        got = view.got(name)
        if got is not None and not agrees(got, _value(view, right), view.problem.tolerance):
            return False
    return True


def _value(view: View, right: Callable[[View], Tensor]) -> Tensor | None:
    """What is right, or None where the learner's values do not even fit together."""
    try:
        return right(view)
    except (RuntimeError, LookupError, IndexError):
        return None


def _is_block_base(tiles: tuple[View, ...], problem: Problem) -> bool:
    """P_ij relative to m_block counts as a way of its own if the sum or the output gets its β."""
    if all(view.got("P_ij") is None for view in tiles) or _holds(tiles, "P_ij", View.right_P):
        return False
    own = _holds(tiles, "P_ij", lambda view: torch.exp(view.S - view.m_block))
    name = "l_new" if any("l_new" in view.tile.values for view in tiles) else "l_i"
    outputs = (View.block_out_normalised, View.block_out_deferred)
    if not own or _holds(tiles, name, View.block_l_new):
        return own
    return any(_holds(tiles, "out_i", output) for output in outputs)


def _is_deferred(tiles: tuple[View, ...], record: Record, problem: Problem) -> bool:
    """Which of the two ways out_i is closer to; where that does not tell, what is returned."""
    errors = {}
    ways = {
        False: (View.right_out_normalised, View.block_out_normalised),
        True: (View.right_out_deferred, View.block_out_deferred),
    }
    for way, rights in ways.items():
        errors[way] = min(_wrong_tiles(tiles, right) for right in rights)
    if errors[True] != errors[False]:
        return errors[True] < errors[False]
    return _divided_at_end(tiles, record, problem)


def _wrong_tiles(tiles: tuple[View, ...], right: Callable[[View], Tensor]) -> int:
    count = 0
    for view in tiles:
        got = view.got("out_i")
        if got is not None and not agrees(got, _value(view, right), view.problem.tolerance):
            count += 1
    return count


def _divided_at_end(tiles: tuple[View, ...], record: Record, problem: Problem) -> bool:
    last = {view.tile.i: view for view in tiles}
    if record.output is None or not last:
        return False
    output = record.output.cpu().double()
    divided = False
    for view in last.values():
        out_i, l_i = view.tile.after.get("out_i"), view.tile.after.get("l_i")
        if out_i is None or l_i is None or output.ndim != 2:
            return False
        out_i, l_i = out_i.cpu().double(), l_i.cpu().double().reshape(-1, 1)
        if l_i.shape[0] != out_i.shape[0]:
            return False
        divided = agrees(output[view.rows], out_i / l_i, problem.tolerance)
    return divided


def _tile_faults(tiles: tuple[View, ...], scheme: Scheme) -> list[Fault | None]:
    return [_first_fault(tiles, name, right) for name, right in _relations(tiles, scheme)]


Relation = tuple[str, Callable[[View], Tensor]]


def _relations(tiles: tuple[View, ...], scheme: Scheme) -> list[Relation]:
    """What every value must be, in the order of the TODOs."""
    block = scheme.block_base
    if scheme.deferred:
        out, as_sum = View.right_out_deferred, View.out_deferred_as_sum
        out = View.block_out_deferred if block else out
    else:
        out, as_sum = View.right_out_normalised, View.out_normalised_as_sum
        out = View.block_out_normalised if block else out
    if not block and _has_own_alpha(tiles) and _holds(tiles, "out_i", as_sum):
        out = as_sum
    return [
        ("S_ij", View.right_S),
        ("m_block", View.right_m_block),
        ("m_new", View.right_m_new),
        ("P_ij", (lambda v: torch.exp(v.S - v.m_block)) if block else View.right_P),
        ("l_block", _right_l_block),
        ("l_new", View.block_l_new if block else View.right_l_new),
        ("out_i", out),
        ("m_i", lambda view: view.m_new),
        ("l_i", lambda view: view.l_new),
    ]


def _has_own_alpha(tiles: tuple[View, ...]) -> bool:
    """Whether l_new has a wrong factor on l_i. Who leaves α out of two lines errs twice."""
    if _holds(tiles, "l_new", View.right_l_new):
        return False
    factors = [_value(view, lambda view: view.factor_of_sum[view.l != 0]) for view in tiles]
    return any(f is not None and bool(((f - 1).abs() > 1e-3).any()) for f in factors)


def _right_l_block(view: View) -> Tensor:
    """rowsum P; where the function corrects it by β at once, the product is right too."""
    got, corrected = view.got("l_block"), view.beta * view.rowsum
    is_corrected = got is not None and agrees(got, corrected, view.problem.tolerance)
    own_base = agrees(view.P, torch.exp(view.S - view.m_block), view.problem.tolerance)
    return corrected if is_corrected and own_base else view.rowsum


def _first_fault(
    tiles: tuple[View, ...], name: str, right: Callable[[View], Tensor]
) -> Fault | None:
    for view in tiles:
        got = view.after(name) if name in ("m_i", "l_i") else view.got(name)
        if got is None:
            continue
        want = _value(view, right)
        if want is not None and not agrees(got, want, view.problem.tolerance):
            tile = (view.tile.i, view.tile.j)
            note = "shape" if got.shape != want.shape else "numbers"
            line = view.tile.lines.get(name)
            return Fault(TODO_OF[name], view.problem, name, got, want, tile, line, note)
    return None


# ---- the end of TODO 6 --------------------------------------------------------------------------


def _carried_fault(tiles: tuple[View, ...]) -> Fault | None:
    """What a tile ends with, the next tile of the same rows has to start from."""
    ended: dict[int, View] = {}
    for view in tiles:
        past = ended.get(view.tile.i)
        ended[view.tile.i] = view
        if past is None or not {"m_block", "m_new"} & view.tile.values.keys():
            continue  # without a maximum, an update would look like the start of the tile
        for name in ("m_i", "l_i", "out_i"):
            got, want = view.started_from(name), past.after(name)
            if got is None or want is None or got.shape != want.shape:
                continue
            if not agrees(got, want, view.problem.tolerance):
                tile = (view.tile.i, view.tile.j)
                return Fault(6, view.problem, name, got, want, tile, note="carried")
    return None


def _end_fault(
    problem: Problem, record: Record, tiles: tuple[View, ...], scheme: Scheme
) -> Fault | None:
    """The rows returned must be each Q block's last out_i, divided by l_i if that is deferred."""
    if record.output is None or record.output.shape != (problem.q.shape[0], problem.v.shape[-1]):
        return None
    output = record.output.cpu().double()
    last = {view.tile.i: view for view in tiles}
    columns = {j for _, j in problem.offsets}
    for i, view in last.items():
        want = _final_rows(view, scheme)
        if want is None or columns != {t.tile.j for t in tiles if t.tile.i == i}:
            continue  # a row block that was not finished is no question of TODO 6
        got = output[view.rows]
        tolerance = max(problem.tolerance, TOLERANCE.get(record.output.dtype, 0.0))
        if got.shape == want.shape and not bool(close(got, want, tolerance).all()):
            tile = (view.tile.i, view.tile.j)
            return Fault(6, problem, "out", got, want, tile, note="end")
    return None


def _final_rows(view: View, scheme: Scheme) -> Tensor | None:
    """What belongs into `out` after this tile, the last of its rows."""
    out_i, l_i = view.tile.values.get("out_i"), view.tile.after.get("l_i")
    if out_i is None:
        return None
    out_i = out_i.cpu().double()
    if not scheme.deferred:
        return out_i
    if l_i is None:
        return None
    l_i = l_i.cpu().double().reshape(-1, 1)
    return out_i / l_i if l_i.shape[0] == out_i.shape[0] else None
