"""Run a learner's function on every problem and gather what the exercises are judged from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from flashcourse.checks.forward_problems import (
    NARROW,
    WIDE,
    bfloat16,
    compared,
    cross,
    gpu,
    long,
    probes,
    stressed,
    tiled,
)
from flashcourse.checks.forward_relations import Fault, Reading
from flashcourse.checks.forward_repair import Repair
from flashcourse.checks.forward_run import (
    NAMES,
    Broken,
    Diagnosis,
    Run,
    device_fault,
    failed_todo,
    fault_of_state,
    first_at_fault,
    is_readable,
    left_misshapen,
)
from flashcourse.checks.forward_shown import Shown
from flashcourse.checks.forward_tile import Problem
from flashcourse.checks.probe import Outcome, call
from flashcourse.recording import record
from flashcourse.records import Record
from flashcourse.running import Failure

SECONDS = 5.0  # for one run; a right answer takes about 0.01


class Evidence:
    """Everything that is known about one answer. Runs are made when first asked for."""

    def __init__(self, function: Callable[..., Any], seed: int) -> None:
        self.function, self.seed = function, seed
        self.stopped: Failure | None = None
        self.verdict: Any = None  # of forward_behaviour, once asked for

    def run(
        self,
        problem: Problem,
        repair: tuple[str, ...] | None = None,
        disturb: bool = False,
        watch: bool = False,
    ) -> Run:
        """One recorded run. After one that took too long, no other is tried.

        watch: record the tensors too.
        """
        if repair is None:
            repair = self.diagnosis.repair
        if self.stopped is None and not callable(self.function):
            kind = type(self.function).__name__
            self.stopped = Failure("unfinished", kind, f"{kind} is not a function")
        if self.stopped is not None:
            made = Record(None, "NoneType", error=self.stopped)
        else:
            p = problem
            how: dict[str, Any] = {"disturb": disturb, "watch": watch or disturb}
            how |= {"repair": Repair(p, repair)} if repair else {}
            made = record(self.function, p.q, p.k, p.v, p.block, seconds=SECONDS, **how)
            stub = made.stub_line is not None and made.error is not None
            if stub and made.error.type_name == "NotImplementedError":  # type: ignore[union-attr]
                made = replace(made, error=None)  # all else ran; `whole` speaks about the stub
            interrupted = made.error is not None and made.error.type_name == "KeyboardInterrupt"
            if made.error is not None and (made.error.kind == "too_slow" or interrupted):
                self.stopped = made.error
        return Run(problem, lambda: made)

    @cached_property
    def diagnosis(self) -> Diagnosis:
        """The first run. Where it crashes, the TODO at fault is repaired and it is run again."""
        problem = compared(self.seed)[0]
        repair: tuple[str, ...] = ()
        broken: dict[int, Broken] = {}
        while True:
            run = self.run(problem, repair)
            error = run.error
            if error is None or error.kind != "crashed" or self.stopped is not None:
                return Diagnosis(run, repair, broken)
            if not is_readable(run, error):
                return Diagnosis(run, repair, broken)
            unrepaired = tuple(t for t in left_misshapen(run) if t in broken)
            if unrepaired:
                return Diagnosis(run, repair, broken, unrepaired)
            on_device = device_fault(run)
            todo = 1 if on_device else first_at_fault(run, broken, failed_todo(run.record, error))
            if todo in broken or todo not in NAMES:
                return Diagnosis(run, repair, broken)
            other = self.run(compared(self.seed)[3], repair).reading
            readings = (run.reading, other)
            broken[todo] = Broken(readings, on_device or run.reading.faults.get(todo), error)
            repair = (*repair, *NAMES[todo])

    @cached_property
    def compared(self) -> dict[str, Run]:
        first, *others = compared(self.seed)
        return {first.name: self.diagnosis.run, **{p.name: self.compare(p) for p in others}}

    @cached_property
    def stressed(self) -> dict[str, Run]:
        return {p.name: self.compare(p) for p in stressed(self.seed)}

    def compare(self, problem: Problem) -> Run:
        """A call; recorded only if somebody asks for more than the result. That takes about 20
        times as long."""
        if self.plain and self.stopped is None:
            done, output = self._call(problem, SECONDS)
            if output is not None and not done.inputs_changed:
                return Run(problem, lambda: self.run(problem).record, output)
        return self.run(problem)

    @property
    def plain(self) -> bool:
        """Whether a call gives what a record does: one tensor, and no line had to be mended."""
        record = self.first.record
        return record.output_type == "Tensor" and not record.stub_line and not self.diagnosis.broken

    def _call(self, problem: Problem, seconds: float) -> tuple[Outcome, Tensor | None]:
        q, k, v = problem.q, problem.k, problem.v
        done = call(self.function, q, k, v, seconds=seconds, block_size=problem.block)
        if done.error is not None and done.error.kind == "too_slow":
            self.stopped = done.error
        return done, done.value if isinstance(done.value, Tensor) else None

    def _called(self, problem: Problem, seconds: float) -> Run:
        if self.stopped is not None:
            stopped = Record(None, "NoneType", error=self.stopped)
            return Run(problem, lambda: stopped)
        done, output = self._call(problem, seconds)
        made = Record(output, type(done.value).__name__, error=done.error)
        return Run(problem, lambda: made)

    @cached_property
    def long(self) -> Run:
        """Called, not recorded: small blocks would make thousands of tiles of it.

        After all other runs, since a call that takes too long may be the last one allowed.
        """
        self.run_all()
        return self._called(long(self.seed), 2 * SECONDS)

    @cached_property
    def bfloat16(self) -> Run:
        return self.compare(bfloat16(self.seed))

    @cached_property
    def gpu(self) -> Run | None:
        """On the GPU, where this process has one; a function of another process stays there."""
        elsewhere = hasattr(self.function, "__flashcourse_record__")
        return None if elsewhere or not torch.cuda.is_available() else self.compare(gpu(self.seed))

    @property
    def other_tensors(self) -> list[Run]:
        """The runs on tensors of another dtype or another place than torch's defaults."""
        return [run for run in (self.bfloat16, self.gpu) if run is not None]

    @cached_property
    def cross(self) -> Run:
        # A grader reads the record of a right one: with fewer queries than keys, strips show.
        problem = cross(self.seed)
        right = self.first.right
        return self.run(problem, watch=True) if right else self.compare(problem)

    @cached_property
    def tiled(self) -> dict[int, Run]:
        return {block: self.run(tiled(self.seed, block), watch=True) for block in (NARROW, WIDE)}

    @cached_property
    def probes(self) -> dict[str, Run]:
        return {name: self.run(p) for name, p in probes(self.seed).items()}

    @property
    def runs(self) -> list[Run]:
        return [*self.compared.values(), *self.stressed.values()]

    @property
    def first(self) -> Run:
        return self.diagnosis.run

    @cached_property
    def failure(self) -> Failure | None:
        """What ended the first run, if anything did."""
        return self.first.error

    @cached_property
    def right_numbers(self) -> bool:
        """Right on everything but ragged blocks and other dtypes, which `whole` asks for."""
        if not self.first.right:
            return False
        core = [self.compared[name] for name in ("single", "one tile")]
        return all(run.right for run in [*core, *self.stressed.values()])

    @property
    def right_in_full_blocks(self) -> bool:
        """Whether nothing is wrong but what a short block makes wrong."""
        return all(run.right for run in self.runs if run.problem.in_full_blocks)

    @property
    def all_else_right(self) -> bool:
        """Right numbers that were returned as one tensor, without any repair."""
        return self.plain and self.right_numbers

    def run_all(self) -> None:
        """Make the recorded runs: a call that takes too long may be the last one allowed."""
        _ = self.runs, self.tiled, self.other_tensors, self.cross

    def output(self, problem: Problem) -> Tensor | None:
        """What comes out, called where nothing has to be mended."""
        run = self._called(problem, SECONDS) if self.plain else self.run(problem)
        return run.output

    @cached_property
    def shown(self) -> Shown:
        return Shown(self)

    @property
    def online(self) -> bool:
        """Whether right numbers come out of a running softmax, however it is written."""
        return self.right_numbers and not self.shown.all_at_once and self.shown.rescales

    @property
    def right_across_tiles(self) -> bool:
        """Right in several tiles with ordinary scores: the first run, 4 × 4 tiles."""
        return self.first.right

    @cached_property
    def seen(self) -> frozenset[int]:
        """The TODOs whose values could be looked at, in a run of several tiles."""
        return self.first.reading.seen

    @cached_property
    def faults(self) -> dict[int, Fault]:
        """For each TODO that is wrong: where it first shows."""
        found: dict[int, Fault] = {}
        for run in self.runs:
            # What only shows under stress may follow from another TODO's overflow.
            if found and run.problem.name in self.stressed:
                break
            for todo, fault in run.reading.faults.items():
                found.setdefault(todo, fault)
        if self.state_fault is not None:
            found.setdefault(1, self.state_fault)
        return found

    def readings(self, fault: Fault) -> tuple[Reading, ...]:
        """The runs in which a misconception has to fit: those compared, or the stressed one."""
        stressed = self.stressed.get(fault.problem.name)
        if stressed is not None:
            return (stressed.reading,)
        return (*(run.reading for run in self.compared.values()), *self.low)

    @cached_property
    def low(self) -> tuple[Reading, ...]:
        """Runs with a past before the first tile: without one, several mistakes give the same
        NaN, or the same 0."""
        if "m" in self.first.record.missing or 1 in self.diagnosis.broken:
            return ()
        repair = (*self.diagnosis.repair, "m", "l", "low")
        runs = [self.run(self.first.problem, repair), self.run(compared(self.seed)[2], repair)]
        return tuple(run.reading for run in runs)

    @cached_property
    def state_fault(self) -> Fault | None:
        """What is returned, or a state that was started, of another dtype or device than q.

        A state in more digits is a right way too, as long as nothing is the worse for it.
        """
        for run in (self.compared["even"], self.compared["float64"], self.bfloat16):
            output = run.output
            if output is not None and not run.right_dtype:
                return fault_of_state(run, "out", output, "dtype")
        for run in self.other_tensors:
            output, device = run.output, run.problem.q.device
            if output is not None and output.device != device:
                return fault_of_state(run, "out", output, "device")
            if run.error and (fault := device_fault(run)):
                return fault
            for name, value in run.record.start.items() if run.error else ():
                if value.dtype != run.problem.q.dtype and value.dtype == torch.get_default_dtype():
                    return fault_of_state(run, name, value, "dtype")
        return None

    @cached_property
    def named(self) -> bool:
        """Whether the values can be trusted to be what their names say.

        The skeleton's own names are. Other usual names are if nearly all relations hold. None are
        where they say that tiles are right while the result shows no running softmax.
        """
        if self._names_lie:
            return False
        complete = {2, 3, 4, 5, 6} <= self.seen
        if self.first.record.renamed:
            return complete and len(self.faults) <= 2
        return bool(self.seen & {2, 3, 4, 5})

    @property
    def _names_lie(self) -> bool:
        if not self.right_across_tiles or self.shown.rescales:
            return False
        if self.shown.cuts.reach == "narrower":
            return False
        scores = [tile.values.get("S_ij") for tile in self.first.record.tiles]
        keys = self.first.problem.k.shape[0]
        whole = any(S is not None and S.shape[-1] == keys for S in scores)
        if whole and {3, 5, 6} <= self.seen:
            return False  # one tile of everything needs no rescaling
        # One base for all keys of a row that is not its maximum also leaves ordinary results right.
        return self.right_numbers or not {3, 4} & self.faults.keys()


def evidence_of(function: Any, seed: int) -> Evidence:
    """The evidence about one answer with the inputs of one seed.

    A grader's stand-in keeps what is found out about its function in `__flashcourse_kept__` and
    forgets it when the function may have changed, so that a lesson's exercises share their runs.
    A function of this process may change between two cells without our seeing it: nothing is kept.
    """
    kept = getattr(function, "__flashcourse_kept__", None)
    if not isinstance(kept, dict):
        return Evidence(function, seed)
    return kept.setdefault(("forward", seed), Evidence(function, seed))
