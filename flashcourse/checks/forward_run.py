"""One run of a learner's function on one problem, and whose fault it is where it raises."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from flashcourse.attention import attention
from flashcourse.checks.forward_relations import Fault, Reading, read
from flashcourse.checks.forward_tile import TODO_OF, TOLERANCE, Problem, agrees
from flashcourse.records import Record
from flashcourse.running import Failure, undefined_name


class Run:
    """One problem, what the function did with it, and what that says about the TODOs.

    record: makes the record when it is asked for. called: the tensor that a plain call returned;
    then whether it is right is known without a record.
    """

    def __init__(
        self, problem: Problem, record: Callable[[], Record], called: Tensor | None = None
    ) -> None:
        self.problem, self._record, self._called = problem, record, called

    @cached_property
    def record(self) -> Record:
        return self._record()

    @cached_property
    def reading(self) -> Reading:
        return read(self.problem, self.record)

    @property
    def error(self) -> Failure | None:
        return None if self._called is not None else self.record.error

    @property
    def inputs_changed(self) -> tuple[str, ...]:
        return () if self._called is not None else self.record.inputs_changed

    @cached_property
    def exact(self) -> Tensor:
        return attention(self.problem.q, self.problem.k, self.problem.v).cpu()

    @property
    def output(self) -> Tensor | None:
        """What was returned; `out` as it stood at the end if no tensor was."""
        if self._called is not None:
            return self._called
        return self.record.end.get("out") if self.record.output is None else self.record.output

    @cached_property
    def right(self) -> bool:
        """Whether the numbers are exact attention, as well as their dtype can hold it."""
        output = self.output
        if self.error is not None or output is None or not output.is_floating_point():
            return False
        tolerance = self.problem.tolerance + self.problem.rounding
        tolerance = max(tolerance, TOLERANCE.get(output.dtype, 0.0))
        return agrees(output.detach().cpu().double(), self.exact, tolerance)

    @property
    def right_dtype(self) -> bool:
        output = self.output
        return output is None or output.dtype == self.problem.q.dtype

    @property
    def explained(self) -> bool:
        """Whether a wrong result follows from a TODO that is wrong in this very run."""
        return bool(self.reading.faults)


# What each TODO assigns, as far as it can be repaired.
NAMES = {
    1: ("out", "m", "l"),
    2: ("S_ij",),
    3: ("m_block", "m_new"),
    4: ("P_ij",),
    5: ("l_block", "l_new"),
    6: ("out_i", "m_i", "l_i"),
}


@dataclass(frozen=True)
class Broken:
    """A TODO because of which the function crashes: its fault, if its values show one."""

    readings: tuple[Reading, ...]
    fault: Fault | None
    error: Failure


@dataclass(frozen=True)
class Diagnosis:
    """The first run that got through, the names repaired for it, and the TODOs at fault.

    unrepaired: those of them that make the run fail all the same.
    """

    run: Run
    repair: tuple[str, ...]
    broken: dict[int, Broken]
    unrepaired: tuple[int, ...] = ()


def failed_todo(record: Record, failure: Failure) -> int:
    """The TODO at which a function stopped: of the undefined name, or the first not yet seen."""
    name = undefined_name(failure.type_name, failure.message)
    if name in TODO_OF:
        return TODO_OF[name]
    code = (failure.source_line or "").replace(" ", "") if failure.kind != "unfinished" else ""
    assigned = [name for name in TODO_OF if re.match(rf"{name}(,\w+)*[-+*/@]?=", code)]
    if assigned and (record.tiles or TODO_OF[assigned[0]] == 1):
        return TODO_OF[assigned[0]]
    if not record.tiles:
        return 1
    order = ("S_ij", "m_block", "m_new", "P_ij", "l_block", "l_new")
    return next((TODO_OF[name] for name in order if name not in record.tiles[-1].values), 6)


def first_at_fault(run: Run, broken: dict[int, Broken], failed: int) -> int:
    """The TODO to blame for a crash in `failed`: the first that is wrong."""
    first = min([*(run.reading.faults.keys() - broken.keys()), failed])
    return min(left_misshapen(run), default=failed) if first == failed else first


def left_misshapen(run: Run) -> list[int]:
    """The TODOs that left something of a wrong shape in an earlier tile than the one that failed.

    It is wrong before whatever it breaks.
    """
    last = run.record.tiles[-1:]
    there = {None, *((tile.i, tile.j) for tile in last)}
    return [t for t, f in run.reading.faults.items() if f.note == "shape" and f.tile not in there]


def is_readable(run: Run, failure: Failure) -> bool:
    """Whether the names tell at which TODO a function crashed.

    Names that are not the skeleton's may mean something else: then a relation fails early. If all
    are there and only one is wrong, by its shape, they mean what they say.
    """
    name, record = undefined_name(failure.type_name, failure.message), run.record
    if name in TODO_OF:
        return True
    notes = [fault.note for fault in run.reading.faults.values()]
    clear = notes == ["shape"] and {2, 3, 4, 5} <= run.reading.seen
    if record.renamed and notes and not clear:
        return False
    if failure.kind != "crashed":
        return True
    seen = record.start or any(tile.values or tile.before for tile in record.tiles)
    return bool(seen) or not record.tiles


def device_fault(run: Run) -> Fault | None:
    """A state that was started on another device than q's."""
    for name, value in run.record.start.items():
        if value.device != run.problem.q.device:
            return fault_of_state(run, name, value, "device")
    return None


def fault_of_state(run: Run, name: str, value: Tensor, note: str) -> Fault:
    right = torch.empty_like(run.problem.q[:0])
    return Fault(1, run.problem, name, value, right, line=run.record.lines.get(name), note=note)
