"""What the records and the outputs of a function show of its tiles, however it is written."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from flashcourse.checks.cuts import Cuts, cuts, remains
from flashcourse.checks.forward_problems import KEYS, NARROW
from flashcourse.checks.forward_run import Run
from flashcourse.checks.forward_tile import agrees
from flashcourse.records import MadeTensor

if TYPE_CHECKING:
    from flashcourse.checks.forward_evidence import Evidence


class Shown:
    """Looks at the evidence about one function. Runs are made when first asked for."""

    def __init__(self, evidence: Evidence) -> None:
        self.evidence = evidence

    @cached_property
    def all_at_once(self) -> bool:
        """Whether one exponential looked at all keys: there is no online softmax then."""
        made = (each for run in self.evidence.tiled.values() for each in self._exponentials(run))
        return any((each.exponents or 0) >= KEYS for each in made)

    @cached_property
    def cuts(self) -> Cuts:
        """Between which keys the function rescales, by its output alone.

        After the recorded runs, since a call that takes too long may be the last one allowed.
        """
        self.evidence.run_all()
        return cuts(self.evidence.output, self.evidence.seed)

    @property
    def rescales(self) -> bool:
        """Whether the output shows that something begins anew from one key to the next."""
        return bool(self.cuts.before)

    @cached_property
    def all_recorded(self) -> bool:
        """Whether each score is in a recorded exponential of one tile's keys, each of them, and
        nothing was made that may hold a row of scores."""
        for block, run in self.evidence.tiled.items():
            made = [e for e in self._exponentials(run) if e.exponents in (block, block + 1)]
            if sum(e.elements for e in made) < KEYS**2 or not run.right:
                return False
        return self.recorded and not self._holds_rows

    @cached_property
    def recorded(self) -> bool:
        """Whether exponentials were recorded that look at no more keys than a tile has, and whether
        the output comes of them."""
        for block, run in self.evidence.tiled.items():
            made = self._exponentials(run)
            if not made or max(e.exponents or 0 for e in made) > widest_tile(block):
                return False
        return self._minds_exponentials(self.evidence.tiled[NARROW])

    @cached_property
    def tiles(self) -> bool:
        """Whether a wrong result comes of tiles, by the record or, where that is not sure, by the
        output."""
        if self.recorded and not self._holds_rows:
            return True
        return not self.all_at_once and remains(self.evidence.output, self.evidence.seed)

    @cached_property
    def _holds_rows(self) -> bool:
        """Whether something was made that may be a whole row of scores."""
        made = (tensor for run in self.evidence.tiled.values() for tensor in run.record.tensors)
        return any(tensor.shape[-1:] == (KEYS,) for tensor in made)

    def _minds_exponentials(self, run: Run) -> bool:
        """A loop for show leaves the output as it is, but for what rounding or chance may do.

        Where nothing is written to the output, there is nothing to tell.
        """
        before, after = run.output, self.evidence.run(run.problem, disturb=True).output
        if before is None or after is None or not bool(before.any()):
            return True
        return not agrees(after.detach().cpu().double(), before.detach().cpu().double(), 1e-4)

    @staticmethod
    def _exponentials(run: Run) -> list[MadeTensor]:
        return [made for made in run.record.tensors if made.exponents is not None]


def widest_tile(block: int) -> int:
    """How many numbers an exponential may look at in a row of the tiling problem: a tile's, with
    the state as one more, or one of each tile, where partial results are merged at once."""
    return max(block + 1, -(-KEYS // block))
