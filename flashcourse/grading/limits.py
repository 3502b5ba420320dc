"""What one submission may use, and how large the things are that may come out of it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

MIB = 1024 * 1024


@dataclass(frozen=True)
class Limits:
    """Limits of one submission. A limit that is met ends the submission, not the batch.

    cell_seconds: wall time of one student cell, and of one test cell.
    total_seconds: wall time of the whole submission.
    cpu_seconds: CPU time of each process of the submission.
    memory_mib: memory that the submission may use on top of the warmed process.
    processes: processes and threads at once. scratch_mib: what fits into its scratch folder.
    output_mib: output of all cells; past it the submission is stopped.
    shown_kib: output of one cell that is kept in the notebook.
    grace_seconds: a process ends a cell itself; so much later it is ended from outside.
    """

    cell_seconds: float = 30.0
    total_seconds: float = 120.0
    cpu_seconds: int = 150
    memory_mib: int = 2048
    processes: int = 64
    scratch_mib: int = 64
    output_mib: int = 32
    shown_kib: int = 64
    grace_seconds: float = 5.0

    def to_data(self) -> dict[str, Any]:
        return asdict(self)


# Frames between the processes: the header is JSON, the rest raw bytes of tensors.
MAX_HEADER = 8 * MIB
MAX_BLOBS = 256 * MIB
# A submitted file larger than this is not read at all.
MAX_NOTEBOOK = 64 * MIB
