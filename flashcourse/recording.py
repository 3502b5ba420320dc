"""Make a Record of a function of this process: copies of the inputs, the two observers, the run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor

from flashcourse.record import Record
from flashcourse.running import failure_of, run


def record_here(
    function: Callable[..., Any], q: Tensor, k: Tensor, v: Tensor, block_size: int, seconds: float
) -> Record:
    """See `record`."""
    copies = tuple(t.detach().clone() for t in (q, k, v))
    done = run(function, copies, {"block_size": block_size}, seconds)
    return Record(
        output=done.value if isinstance(done.value, Tensor) else None,
        output_type=type(done.value).__name__,
        warnings=done.warnings,
        error=failure_of(done.error) if done.error is not None else None,
        seconds=done.seconds,
    )
