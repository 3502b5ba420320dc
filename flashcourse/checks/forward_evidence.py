"""Run a learner's function on every problem and gather what the exercises are judged from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from flashcourse.attention import attention
from flashcourse.checks.forward_problems import KEYS, NARROW, WIDE, compared, probes, stressed, tiled
from flashcourse.checks.forward_tile import Problem, agrees
from flashcourse.checks.forward_todos import Fault, Reading, read
from flashcourse.record import Record, record
from flashcourse.running import Failure

SECONDS = 5.0  # for one run; a right answer takes about 0.01


@dataclass(frozen=True)
class Run:
    """One problem, what the function did with it, and what that says about the TODOs."""

    problem: Problem
    record: Record

    @cached_property
    def reading(self) -> Reading:
        return read(self.problem, self.record)

    @cached_property
    def exact(self) -> Tensor:
        return attention(self.problem.q, self.problem.k, self.problem.v).cpu()

    @cached_property
    def right(self) -> bool:
        """Whether the numbers returned are exact attention (whatever their dtype)."""
        output = self.record.output
        if self.record.error is not None or output is None:
            return False
        return agrees(output.detach().cpu().double(), self.exact, self.problem.tolerance)

    @property
    def right_dtype(self) -> bool:
        output = self.record.output
        return output is None or output.dtype == self.problem.q.dtype

    @property
    def explained(self) -> bool:
        """Whether a wrong result follows from a TODO that is wrong in this very run."""
        return bool(self.reading.faults) and self.record.error is None


class Evidence:
    """Everything that is known about one answer. Runs are made when first asked for."""

    def __init__(self, function: Callable[..., Any], seed: int) -> None:
        self.function, self.seed = function, seed
        self.stopped: Failure | None = None
        self.verdict: Any = None  # of forward_behaviour, once asked for

    def run(self, problem: Problem) -> Run:
        """One recorded run. After one that took too long, no other is tried."""
        if self.stopped is not None:
            made = Record(None, "NoneType", error=self.stopped)
        else:
            p = problem
            made = record(self.function, p.q, p.k, p.v, p.block, seconds=SECONDS)
            interrupted = made.error is not None and made.error.type_name == "KeyboardInterrupt"
            if made.error is not None and (made.error.kind == "too_slow" or interrupted):
                self.stopped = made.error
        return Run(problem, made)

    @cached_property
    def compared(self) -> dict[str, Run]:
        return {p.name: self.run(p) for p in compared(self.seed)}

    @cached_property
    def stressed(self) -> dict[str, Run]:
        return {p.name: self.run(p) for p in stressed(self.seed)}

    @cached_property
    def tiled(self) -> dict[int, Run]:
        return {block: self.run(tiled(self.seed, block)) for block in (NARROW, WIDE)}

    @cached_property
    def probes(self) -> dict[str, Run]:
        return {name: self.run(p) for name, p in probes(self.seed).items()}

    @property
    def runs(self) -> list[Run]:
        return [*self.compared.values(), *self.stressed.values()]

    @property
    def first(self) -> Run:
        return self.compared["even"]

    @cached_property
    def failure(self) -> Failure | None:
        """What ended the first run, if anything did. A stub line stepped over is no end."""
        record = self.first.record
        stepped_over = record.stub_line is not None and record.error is not None
        if stepped_over and record.error.type_name == "NotImplementedError":  # type: ignore[union-attr]
            return None
        return record.error

    @cached_property
    def right_numbers(self) -> bool:
        """Right on everything but ragged blocks and other dtypes, which `whole` asks for."""
        core = [self.compared[name] for name in ("even", "single", "one tile")]
        return all(run.right for run in [*core, *self.stressed.values()])

    @cached_property
    def all_at_once(self) -> bool:
        """Whether one exponential looked at all keys: there is no online softmax then."""
        return any(
            made.exponents is not None and made.exponents >= KEYS
            for run in self.tiled.values()
            for made in run.record.tensors
        )

    @cached_property
    def seen(self) -> frozenset[int]:
        """The TODOs whose values could be looked at, in a run of several tiles."""
        return self.first.reading.seen

    @cached_property
    def faults(self) -> dict[int, tuple[Reading, Fault]]:
        """For each TODO that is wrong: the first run that shows it."""
        found: dict[int, tuple[Reading, Fault]] = {}
        for run in self.runs:
            for todo, fault in run.reading.faults.items():
                found.setdefault(todo, (run.reading, fault))
        dtype = self._dtype_fault()
        if dtype is not None:
            found.setdefault(1, dtype)
        return found

    def _dtype_fault(self) -> tuple[Reading, Fault] | None:
        run = self.compared["float64"]
        output = run.record.output
        if output is None or run.right_dtype:
            return None
        right = torch.empty(0, dtype=run.problem.q.dtype)
        line = run.record.lines.get("out")
        return run.reading, Fault(1, run.problem, "out", output, right, line=line, note="dtype")

    @cached_property
    def named(self) -> bool:
        """Whether the values can be trusted to be what their names say.

        The skeleton's own names are. Other usual names are if nearly all relations hold.
        """
        complete = {2, 3, 4, 5, 6} <= self.seen
        if self.first.record.renamed:
            return complete and len(self.faults) <= 2
        return bool(self.seen & {2, 3, 4, 5})
