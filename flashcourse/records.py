"""What one run of anyone's attention function did, tile by tile.

Marks, hints and the tile player are all made from a `Record`; `recording.py` makes one, and
`record_data.py` hands it on to another process.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from torch import Tensor

from flashcourse.running import Failure


@dataclass(frozen=True)
class MadeTensor:
    """A tensor that an operation made. Views and updates in place make none, but `exp_` is listed.

    shape: its sizes. dtype: as torch writes it ('torch.float32'). op: 'aten.mm'.
    line: the learner's line that was running, or None.
    exponents: for exp and softmax only, how many different values (to 1/8) their argument held, not
    counting those whose exponential is 0.
    """

    shape: tuple[int, ...]
    dtype: str
    op: str
    line: int | None = None
    exponents: int | None = None

    @property
    def elements(self) -> int:
        return math.prod(self.shape)


@dataclass(frozen=True)
class Tile:
    """One pass of the inner loop: Q block i against K/V block j.

    i, j: the learner's loop variables, that is the first query row and the first key.
    before, after: m_i, l_i, out_i when the pass begins and when it ends.
    values: S_ij, m_block, m_new, P_ij, l_block, l_new, out_i, m_i, l_i as last assigned in the
    pass, in the order in which each was first assigned. lines: the line that assigned each. Names
    that the function does not use are not there. Tensors are copies, on the device they were on.
    """

    i: int
    j: int
    before: dict[str, Tensor] = field(default_factory=dict)
    values: dict[str, Tensor] = field(default_factory=dict)
    after: dict[str, Tensor] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Record:
    """What one run of a function did.

    output: the tensor that it returned. output_type: the class of what it returned, 'Tensor' if all
    is well; of a tuple, output is the first tensor, of a NumPy array its numbers, else it is None.
    tiles: in the order in which they were visited. tensors: in the order in which they were made.
    largest_intermediate: elements of the largest tensor made.
    largest_exp_argument: the largest number that exp was given (exp2: times ln 2), None if never.
    inputs_changed: which of q, k, v were written to. missing: skeleton names never assigned.
    start: out, m, l as first assigned; end: as they were at the end; lines: who assigned them.
    stub_line: the line of a `raise NotImplementedError` that was stepped over, or None.
    truncated: a limit on time, tiles or bytes cut the recording short.
    reads_block_size: the function's code reads `block_size`, and nowhere sets it anew.
    """

    output: Tensor | None
    output_type: str
    tiles: tuple[Tile, ...] = ()
    tensors: tuple[MadeTensor, ...] = ()
    largest_intermediate: int = 0
    largest_exp_argument: float | None = None
    inputs_changed: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    error: Failure | None = None
    missing: tuple[str, ...] = ()
    renamed: bool = False
    seconds: float = 0.0
    start: dict[str, Tensor] = field(default_factory=dict)
    end: dict[str, Tensor] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)
    stub_line: int | None = None
    truncated: bool = False
    reads_block_size: bool = False
