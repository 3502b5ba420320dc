"""What one run of anyone's attention function did, tile by tile.

Marks, hints and the tile player are all made from a `Record`; `recording.py` makes one.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import torch
from torch import Tensor

from flashcourse.running import KINDS, MESSAGE_LENGTH, Failure
from flashcourse.tracing import STATE, VALUES, WHOLE

MAX_TILES = 4096
MAX_TENSORS = 200_000
MAX_DATA_BYTES = 256 * 1024 * 1024  # a Record that comes from another process


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

    def to_data(self) -> dict[str, Any]:
        """The record as plain containers and CPU tensors, fit to cross a process border."""
        data = {name: _plain(getattr(self, name)) for name in _names(Record) if name != "tensors"}
        return dict(data, tensors=_table(self.tensors))

    @staticmethod
    def from_data(data: Any) -> Record:
        """The record that `to_data` made. The other side is not trusted: ValueError if anything
        is missing, too many, too large or of another type."""
        return _Reader().record(data)


@cache
def _names(cls: Any) -> tuple[str, ...]:
    return tuple(f.name for f in dataclasses.fields(cls))


def _plain(value: Any) -> Any:
    if isinstance(value, Tensor):
        there = value.device.type == "cpu" and value.is_contiguous() and not value.requires_grad
        return value if there else value.detach().cpu().contiguous()
    if isinstance(value, Tile | Failure):
        kind: Any = type(value)
        return {name: _plain(getattr(value, name)) for name in _names(kind)}
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, tuple | list) else value


def _table(tensors: tuple[MadeTensor, ...]) -> dict[str, Any]:
    """Each different entry once, and which one stood at each place: a loop makes the same again."""
    number = {made: n for n, made in enumerate(dict.fromkeys(tensors))}
    rows = [[list(m.shape), m.dtype, m.op, m.line, m.exponents] for m in number]
    return {"rows": rows, "order": torch.tensor([number[made] for made in tensors]).int()}


class _Reader:
    """Turns untrusted plain data into a Record, or raises ValueError."""

    def __init__(self) -> None:
        self.bytes = 0

    def record(self, data: Any) -> Record:
        d = self._fields(data, Record)
        return Record(
            output=None if d["output"] is None else self._tensor(d["output"]),
            output_type=self._text(d["output_type"]),
            tiles=tuple(self._tile(t) for t in self._list(d["tiles"], MAX_TILES)),
            tensors=self._tensors(d["tensors"]),
            largest_intermediate=self._int(d["largest_intermediate"]),
            largest_exp_argument=self._optional(self._float, d["largest_exp_argument"]),
            inputs_changed=self._texts(d["inputs_changed"]),
            warnings=self._texts(d["warnings"]),
            error=self._optional(self._failure, d["error"]),
            missing=self._texts(d["missing"]),
            renamed=self._bool(d["renamed"]),
            seconds=self._float(d["seconds"]),
            start=self._named(self._tensor, d["start"], WHOLE),
            end=self._named(self._tensor, d["end"], WHOLE),
            lines=self._named(self._int, d["lines"], WHOLE),
            stub_line=self._optional(self._int, d["stub_line"]),
            truncated=self._bool(d["truncated"]),
            reads_block_size=self._bool(d["reads_block_size"]),
        )

    def _tile(self, data: Any) -> Tile:
        d = self._fields(data, Tile)
        return Tile(
            i=self._int(d["i"]),
            j=self._int(d["j"]),
            before=self._named(self._tensor, d["before"], STATE),
            values=self._named(self._tensor, d["values"], VALUES),
            after=self._named(self._tensor, d["after"], STATE),
            lines=self._named(self._int, d["lines"], VALUES),
        )

    def _tensors(self, data: Any) -> tuple[MadeTensor, ...]:
        if type(data) is not dict or set(data) != {"rows", "order"}:
            raise ValueError("a record's tensors need exactly these fields: order, rows")
        rows = [self._made(row) for row in self._list(data["rows"], MAX_TENSORS)]
        order = self._tensor(data["order"])
        if order.dtype is not torch.int32 or order.ndim != 1 or len(order) > MAX_TENSORS:
            raise ValueError(f"a record's order must be at most {MAX_TENSORS} int32 numbers")
        numbers = order.tolist()
        if any(n < 0 or n >= len(rows) for n in numbers):
            raise ValueError("a record's order names a tensor that is not there")
        return tuple(rows[n] for n in numbers)

    def _made(self, data: Any) -> MadeTensor:
        shape, dtype, op, line, exponents = self._row(data, 5)
        return MadeTensor(
            shape=tuple(self._int(n) for n in self._list(shape, 64)),
            dtype=self._text(dtype),
            op=self._text(op),
            line=self._optional(self._int, line),
            exponents=self._optional(self._int, exponents),
        )

    def _row(self, data: Any, length: int) -> list:
        if len(self._list(data, length)) != length:
            raise ValueError(f"a record needs rows of {length} items here")
        return data

    def _failure(self, data: Any) -> Failure:
        d = self._fields(data, Failure)
        if d["kind"] not in KINDS:
            raise ValueError(f"a record's failure has an unknown kind: one of {', '.join(KINDS)}")
        return Failure(
            kind=d["kind"],
            type_name=self._text(d["type_name"]),
            message=self._text(d["message"]),
            line=self._optional(self._int, d["line"]),
            source_line=self._optional(self._text, d["source_line"]),
        )

    def _fields(self, data: Any, cls: type) -> dict[str, Any]:
        names = _names(cls)
        if type(data) is not dict or set(data) != set(names):
            raise ValueError(f"a {cls.__name__} needs exactly these fields: {sorted(names)}")
        return data

    def _named(self, read: Callable[[Any], Any], data: Any, names: tuple[str, ...]) -> dict:
        if type(data) is not dict or not set(data) <= set(names):
            raise ValueError(f"a record's dict may have only these names: {', '.join(names)}")
        return {name: read(value) for name, value in data.items()}

    def _tensor(self, value: Any) -> Tensor:
        if type(value) is not Tensor or value.layout is not torch.strided:
            raise ValueError(f"a record holds a {type(value).__name__} instead of a dense tensor")
        self.bytes += value.numel() * value.element_size()
        if self.bytes > MAX_DATA_BYTES:
            raise ValueError(f"a record holds more than {MAX_DATA_BYTES} bytes of tensors")
        return value.detach()

    def _list(self, value: Any, longest: int) -> list:
        if type(value) is not list or len(value) > longest:
            raise ValueError(f"a record needs a list of at most {longest} items here")
        return value

    def _texts(self, value: Any) -> tuple[str, ...]:
        return tuple(self._text(item) for item in self._list(value, 1000))

    def _text(self, value: Any) -> str:
        return self._of(str, value)[: 4 * MESSAGE_LENGTH]

    def _int(self, value: Any) -> int:
        return self._of(int, value)

    def _bool(self, value: Any) -> bool:
        return self._of(bool, value)

    def _float(self, value: Any) -> float:
        return float(value) if type(value) is int else self._of(float, value)

    def _of(self, cls: type, value: Any) -> Any:
        if type(value) is not cls:
            raise ValueError(f"a record holds a {type(value).__name__} instead of a {cls.__name__}")
        return value

    def _optional(self, read: Callable[[Any], Any], value: Any) -> Any:
        return None if value is None else read(value)
