"""Watch a learner's function line by line and note the named values of every tile.

`sys.settrace` tells which line runs next; the function's bytecode tells which names each line
assigns and where its loops begin and end, so no source text is needed. A tile is one pass of the
innermost loop that assigns the skeleton's names, in whatever order the loops are nested.
"""

from __future__ import annotations

import dis
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from types import CodeType, FrameType
from typing import Any

from flashcourse.running import is_own_frame

STATE = ("m_i", "l_i", "out_i")
WHOLE = ("out", "m", "l")
TILE_ONLY = ("S_ij", "m_block", "m_new", "P_ij", "l_block", "l_new")
VALUES = (*TILE_ONLY, "out_i", "m_i", "l_i")
# A value that later names were made from is settled: an update in place is then a reuse of memory.
SETTLED_BY = {
    "S_ij": ("m_block", "m_new", "P_ij"),
    "P_ij": ("l_block", "l_new", "l_i", "out_i"),
}
MOST_TILES = 2048
# Other names that public implementations give to the same things. One counts only in a function
# that does not use the skeleton's own name.
OTHER_NAMES = {
    "S_ij": "s_ij Sij sij S s scores score qk attn_scores logits S_block",
    "m_block": "m_tilde block_max m_local m_cur m_curr max_block local_max row_max m_hat",
    "m_new": "mi_new m_i_new m_new_i new_m new_max max_new m_next row_max_new",
    "P_ij": "p_ij Pij pij P p exp_scores weights P_block p_tilde",
    "l_block": "l_ij lij block_sum row_sum l_tilde l_local sum_block l_hat",
    "l_new": "li_new l_i_new l_new_i new_l new_sum l_next row_sum_new",
    "out_i": "o_i O_i oi Oi acc out_block o_block O_block acc_i",
    "m_i": "mi m_prev m_old m_run running_max",
    "l_i": "li l_prev l_old l_run running_sum denom",
    "out": "O o output result",
    "m": "M",
    "l": "L",
}


# ---- what the bytecode tells --------------------------------------------------------------------


@dataclass(frozen=True)
class Loop:
    """A loop lies between the bytecode offsets `begin` and `end`.

    first: where the first line of its body begins. A `for` comes back to `begin` between two
    passes (`head`); variable: what it assigns. A `while` has no head and no variable.
    """

    begin: int
    end: int
    first: int
    variable: str | None = None
    head: bool = False

    def holds(self, offset: int) -> bool:
        return self.begin <= offset <= self.end


@dataclass(frozen=True)
class Plan:
    """names: this function's name for each of the skeleton's. stores: those that each line assigns.

    after: the line that follows each of these. loops: those whose passes are tiles. outer: the
    loop around each of these, where there is one.
    """

    names: dict[str, str]
    stores: dict[int, tuple[str, ...]]
    after: dict[int, int]
    loops: tuple[Loop, ...]
    outer: tuple[Loop | None, ...]

    @property
    def renamed(self) -> bool:
        return bool(self.loops) and any(name != used for name, used in self.names.items())


def _stored(instruction: dis.Instruction) -> tuple[str, ...]:
    name, value = instruction.opname, instruction.argval
    if not name.startswith("STORE_") or name in ("STORE_SUBSCR", "STORE_SLICE", "STORE_ATTR"):
        return ()
    if isinstance(value, tuple):  # 3.13 joins two instructions: store + store, or store + load
        return tuple(value) if name == "STORE_FAST_STORE_FAST" else value[:1]
    return (value,)


def _for_loops(instructions: list[dis.Instruction], starts: list[int]) -> list[Loop]:
    loops = []
    for head, after in zip(instructions, instructions[1:], strict=False):
        if head.opname == "FOR_ITER":
            begin, end = head.offset, head.argval - 1
            first = next((offset for offset in starts if begin < offset <= end), None)
            variable = (_stored(after) or (None,))[0]
            if first is not None:
                loops.append(Loop(begin, end, first, variable, head=True))
    return loops


def _while_loops(instructions: list[dis.Instruction], starts: list[int]) -> list[Loop]:
    jumps = set(dis.hasjrel) | set(dis.hasjabs)
    heads = {i.offset for i in instructions if i.opname == "FOR_ITER"}
    ends: dict[int, int] = {}
    for jump in instructions:
        if jump.opcode in jumps and jump.argval <= jump.offset and jump.argval not in heads:
            ends[jump.argval] = max(ends.get(jump.argval, 0), jump.offset)
    firsts = ((b, end, [x for x in starts if b <= x <= end]) for b, end in ends.items())
    return [Loop(begin, end, inside[0]) for begin, end, inside in firsts if inside]


def _around(loops: list[Loop], offset: int) -> list[Loop]:
    """The loops that hold an offset, innermost first."""
    return sorted((x for x in loops if x.holds(offset)), key=lambda x: x.end - x.begin)


def _names(code: CodeType) -> dict[str, str]:
    own = {*code.co_varnames, *code.co_cellvars, *code.co_freevars}
    names = {}
    for name, others in OTHER_NAMES.items():
        used = next((x for x in (name, *others.split()) if x in own), None)
        if used is not None:
            names[name] = used
    return names


@lru_cache(maxsize=512)
def plan_of(code: CodeType) -> Plan:
    """What to look at while this code runs."""
    instructions = list(dis.get_instructions(code))
    line_starts = dict(dis.findlinestarts(code))
    starts = sorted(line_starts)
    loops = _for_loops(instructions, starts) + _while_loops(instructions, starts)
    names = _names(code)
    watched = {used: name for name, used in names.items()}
    stores: dict[int, tuple[str, ...]] = {}
    after: dict[int, int] = {}
    tile_loops: dict[Loop, Loop | None] = {}
    line = code.co_firstlineno
    for instruction in instructions:
        line = line_starts.get(instruction.offset) or line
        around = _around(loops, instruction.offset)
        for name in (watched[used] for used in _stored(instruction) if used in watched):
            stores[line] = (*stores.get(line, ()), name)
            after[line] = _next_line(line_starts, instruction.offset, line, around)
            if name in TILE_ONLY and around:
                tile_loops[around[0]] = around[1] if len(around) > 1 else None
    if not tile_loops:
        tile_loops = _nested_twice(loops)
    return Plan(names, stores, after, tuple(tile_loops), tuple(tile_loops.values()))


def _next_line(starts: dict[int, int], offset: int, line: int, around: list[Loop]) -> int:
    """The next line of the same loop body; 0 where there is none."""
    for start in sorted(starts):
        inside = not around or around[0].holds(start)
        if start > offset and starts[start] and starts[start] > line and inside:
            return starts[start]
    return 0


def _nested_twice(loops: list[Loop]) -> dict[Loop, Loop | None]:
    """The innermost loops inside another loop: tiles whose values are made in helper functions."""
    nests = (_around(loops, loop.begin) for loop in loops)
    inner = {x.begin for x in loops if any(x is not y and y.holds(x.begin) for y in loops)}
    holding = {y.begin for x in loops for y in loops if x is not y and y.holds(x.begin)}
    return {n[0]: n[1] for n in nests if n[0].begin in inner and n[0].begin not in holding}


# ---- what the run tells -------------------------------------------------------------------------


@dataclass
class Pass:
    """One pass of a tile loop. i, j: the loop variables' values, None where they are no numbers.

    row, column: how many passes of the outer and of this loop came before (an index).
    """

    i: int | None
    j: int | None
    row: int
    column: int
    before: dict[str, Any] = field(default_factory=dict)
    values: dict[str, Any] = field(default_factory=dict)
    after: dict[str, Any] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)


def _number(value: Any) -> int | None:
    return value if type(value) is int else None


class Tracer:
    """Collects `passes`, and `start`, `end`, `lines` of out, m and l.

    keep: makes the copy of a value that is stored, or returns None for what is not to be kept.
    changes: a number that grows whenever a value is written to in place.
    repair: the right value of a name, given the others, or None for a name to be left alone. A
    line that assigns only names to be repaired is stepped over.
    """

    def __init__(
        self,
        keep: Callable[[Any], Any],
        changes: Callable[[Any], int],
        repair: Callable[[str, dict[str, Any]], Any] | None = None,
    ) -> None:
        self.keep, self.changes, self.repair = keep, changes, repair
        self.passes: list[Pass] = []
        self.start: dict[str, Any] = {}
        self.end: dict[str, Any] = {}
        self.lines: dict[str, int] = {}
        self.seen: set[str] = set()
        self.renamed = False
        self.plans: dict[int, tuple[CodeType, Plan | None]] = {}
        self.line: int | None = None
        self.open: Pass | None = None
        self.truncated = False

    def __call__(self, frame: FrameType, event: str, arg: Any) -> Any:
        """The global trace function: follow the frames that are the learner's."""
        if event != "call":
            return None
        # Most calls are torch's own. A code object's hash goes through all of its bytecode: its
        # address is a quicker key, as long as the code is kept.
        known = self.plans.get(id(frame.f_code))
        if known is None:
            code = frame.f_code
            known = code, plan_of(code) if is_own_frame(frame) else None
            self.plans[id(code)] = known
        plan = known[1]
        if plan is None:
            return None
        self.renamed |= plan.renamed
        return _Frame(self, plan).trace

    def note(self, name: str, value: Any, line: int) -> None:
        """`name` was assigned, or written to in place, by `line`."""
        self.seen.add(name)
        if name in WHOLE:
            if name not in self.start:
                self._store(self.start, name, value)
                self.lines[name] = line
            return
        tile = self.open
        if tile is None or any(later in tile.values for later in SETTLED_BY.get(name, ())):
            return
        if name in STATE and not {"m_block", "m_new"} & tile.values.keys():
            self._store(tile.before, name, value)  # loaded inside the pass, not updated yet
            return
        self._store(tile.values, name, value)
        tile.lines[name] = line

    def _store(self, where: dict[str, Any], name: str, value: Any) -> None:
        kept = self.keep(value)
        if kept is not None:
            where[name] = kept

    def begin_pass(self, tile: Pass, local: dict[str, Any]) -> None:
        if len(self.passes) >= MOST_TILES:
            self.truncated = True
            return
        self.open = tile
        self.passes.append(tile)
        for name in STATE:
            if name in local:
                self._store(tile.before, name, local[name])

    def end_pass(self, tile: Pass, local: dict[str, Any]) -> None:
        for name in STATE:
            if name in local:
                self._store(tile.after, name, local[name])
        if self.open is tile:
            self.open = None

    def finish(self, local: dict[str, Any]) -> None:
        for name in WHOLE:
            if name in local:
                self._store(self.end, name, local[name])


class _Frame:
    """The local trace function of one running frame of the learner's code."""

    def __init__(self, tracer: Tracer, plan: Plan) -> None:
        self.tracer, self.plan = tracer, plan
        self.line: int | None = None
        self.jumped: int | None = None
        self.failed = False
        self.loop: int | None = None  # which tile loop we are in
        self.tile: Pass | None = None
        self.row, self.column = -1, -1
        self.known: dict[str, tuple[Any, int]] = {}

    def trace(self, frame: FrameType, event: str, arg: Any) -> Any:
        if event == "line":
            if self.jumped != frame.f_lineno:  # 3.12 tells of the line that a jump led to
                self._finish_line(frame)
            self.jumped = None
            self._turn(frame)
            self.line, self.failed = frame.f_lineno, False
            self.tracer.line = self.line
            if self.tracer.repair is not None:
                self._step_over(frame, self.tracer.repair)
        elif event == "exception":
            self.failed = True
        elif event == "return":
            self._finish_line(frame)
            self._close(frame)
            self.tracer.finish(self._named(frame))
        return self.trace

    def _named(self, frame: FrameType) -> dict[str, Any]:
        """The frame's variables under the skeleton's names."""
        local = frame.f_locals
        return {name: local[used] for name, used in self.plan.names.items() if used in local}

    def _finish_line(self, frame: FrameType) -> None:
        """Note what the line that has just run assigned or changed in place."""
        stores = () if self.failed else self.plan.stores.get(self.line or 0, ())
        if self.line is None or not (stores or self.known):
            return
        local, used, changed = frame.f_locals, self.plan.names, self.tracer.changes
        for name in stores:
            if used[name] in local:
                self._note(name, local[used[name]])
        for name, (value, changes) in list(self.known.items()):
            if name in stores or changed(value) == changes:
                continue
            if local.get(used[name]) is value:
                self._note(name, value)

    def _step_over(self, frame: FrameType, repair: Callable[[str, dict[str, Any]], Any]) -> None:
        """Go to the next line that is not repaired; what lies between gets its right values."""
        named, line = self._named(frame), frame.f_lineno
        values: dict[str, Any] = {}
        named.update({"i": self.tile.i, "j": self.tile.j} if self.tile else {})
        while self.plan.stores.get(line) and self.plan.after.get(line):
            made: dict[str, Any] = {}
            names = self.plan.stores[line]
            if set(names) & set(STATE) and not (self.tile and "m_new" in self.tile.values):
                break  # the state is loaded here, not updated
            for name in names:
                made[name] = repair(name, {**named, **made})
            if any(value is None for value in made.values()):
                break
            self.line = line
            for name, value in made.items():
                self._note(name, value)
            named.update(made)
            values.update(made)
            line = self.plan.after[line]
        if line != frame.f_lineno:
            frame.f_lineno = line  # type: ignore[misc]
            self.line = self.jumped = self.tracer.line = line
            # Last: until 3.12, reading f_locals once more would undo what is written to it here.
            frame.f_locals.update({self.plan.names[name]: value for name, value in values.items()})

    def _note(self, name: str, value: Any) -> None:
        assert self.line is not None
        self.tracer.note(name, value, self.line)
        if name not in WHOLE:
            self.known[name] = (value, self.tracer.changes(value))

    def _turn(self, frame: FrameType) -> None:
        """Open and close passes of the tile loops."""
        offset, loops = frame.f_lasti, self.plan.loops
        inside = next((n for n, loop in enumerate(loops) if loop.holds(offset)), None)
        loop = None if inside is None else loops[inside]
        starts = loop is not None and offset == loop.first
        between = loop is not None and loop.head and offset == loop.begin
        if starts or between or inside != self.loop:
            self._close(frame)
        if inside is None or loop is None or not starts:
            self.loop = inside
            return
        if self.loop != inside:
            self.row, self.column = self.row + 1, -1
        self.column += 1
        self.loop = inside
        self._open(frame, loop, self.plan.outer[inside])

    def _open(self, frame: FrameType, loop: Loop, outer: Loop | None) -> None:
        local = frame.f_locals
        inner_name, outer_name = loop.variable, outer.variable if outer else None
        if inner_name == "i" or outer_name == "j":  # K/V blocks outside, Q blocks inside
            inner_name, outer_name = outer_name, inner_name
        i = _number(local.get("i", local.get(outer_name or "")))
        j = _number(local.get("j", local.get(inner_name or "")))
        self.tile = Pass(i, j, self.row, self.column)
        self.tracer.begin_pass(self.tile, self._named(frame))

    def _close(self, frame: FrameType) -> None:
        if self.tile is not None:
            self.tracer.end_pass(self.tile, self._named(frame))
            self.tile = None


def traced(tracer: Tracer, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, with the tracer at work while it runs and the old trace function afterwards."""

    def call(*args: Any, **kwargs: Any) -> Any:
        before = sys.gettrace()
        sys.settrace(tracer)
        try:
            return function(*args, **kwargs)
        finally:
            sys.settrace(before)

    return call
