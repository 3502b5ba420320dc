"""A `Record` as plain data and back, to cross from one process to another.

A record holds hundreds of small tensors. Their numbers are sent end to end, one long tensor for
each dtype, and tables of whole numbers say what is where: one by one takes four times as long.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import torch
from torch import Tensor

from flashcourse.records import MadeTensor, Record, Tile
from flashcourse.running import KINDS, MESSAGE_LENGTH, Failure
from flashcourse.tracing import STATE, VALUES, WHOLE

MAX_TILES = 4096
MAX_TENSORS = 200_000
MAX_DATA_BYTES = 256 * 1024 * 1024
PARTS = ("before", "values", "after")  # of a tile
_NUMBER = {name: n for n, name in enumerate(VALUES)}


def to_data(record: Record) -> dict[str, Any]:
    """The record as plain containers and CPU tensors."""
    numbers = _Numbers()
    data: dict[str, Any] = {name: _plain(getattr(record, name)) for name in _PLAIN}
    return {
        **data,
        "output": None if record.output is None else numbers.put(record.output),
        "start": {name: numbers.put(value) for name, value in record.start.items()},
        "end": {name: numbers.put(value) for name, value in record.end.items()},
        "tiles": _tiles_data(record.tiles, numbers),
        "tensors": _made_data(record.tensors),
        "numbers": numbers.to_data(),
    }


def from_data(data: Any) -> Record:
    """The record that `to_data` made. The other side is not trusted: ValueError if anything is
    missing, too many, too large or of another type."""
    return _Reader().record(data)


@cache
def _names(cls: Any) -> tuple[str, ...]:
    return tuple(f.name for f in dataclasses.fields(cls))


_TENSORS = ("output", "start", "end", "tiles", "tensors")
_PLAIN = tuple(name for name in _names(Record) if name not in _TENSORS)


def _plain(value: Any) -> Any:
    if isinstance(value, Failure):
        return {name: getattr(value, name) for name in _names(Failure)}
    return list(value) if isinstance(value, tuple) else value


class _Numbers:
    """Collects tensors. shapes: for each its pool, its number of dimensions and these."""

    def __init__(self) -> None:
        self._pools: dict[torch.dtype, tuple[int, list[Tensor]]] = {}
        self._shapes: list[int] = []
        self._count = 0

    def put(self, tensor: Tensor) -> int:
        """The number by which it will be found."""
        plain = tensor.detach().cpu()
        pool, held = self._pools.setdefault(plain.dtype, (len(self._pools), []))
        held.append(plain.reshape(-1))
        self._shapes += (pool, plain.ndim, *plain.shape)
        self._count += 1
        return self._count - 1

    def to_data(self) -> dict[str, Any]:
        pools = [torch.cat(held) for _, held in self._pools.values()]
        return {"pools": pools, "shapes": torch.tensor(self._shapes, dtype=torch.int64)}


def _tiles_data(tiles: tuple[Tile, ...], numbers: _Numbers) -> dict[str, Any]:
    at, values, lines = [], [], []
    for n, tile in enumerate(tiles):
        at.append((tile.i, tile.j))
        for part, name in enumerate(PARTS):
            named = getattr(tile, name).items()
            values += [(n, part, _NUMBER[name], numbers.put(value)) for name, value in named]
        lines += [(n, _NUMBER[name], line) for name, line in tile.lines.items()]
    return {"at": _table(at, 2), "values": _table(values, 4), "lines": _table(lines, 3)}


def _table(rows: Sequence[tuple[int, ...]], width: int) -> Tensor:
    return torch.tensor(rows, dtype=torch.int64).reshape(-1, width)


def _made_data(tensors: tuple[MadeTensor, ...]) -> dict[str, Any]:
    """Each different entry once, and which one stood at each place: a loop makes the same again."""
    number = {made: n for n, made in enumerate(dict.fromkeys(tensors))}
    rows = [[list(m.shape), m.dtype, m.op, m.line, m.exponents] for m in number]
    return {"rows": rows, "order": _table([(number[made],) for made in tensors], 1)}


class _Reader:
    """Turns untrusted plain data into a Record, or raises ValueError."""

    def __init__(self) -> None:
        self.values: list[Tensor] = []

    def record(self, data: Any) -> Record:
        d = self._fields(data, "Record", (*_names(Record), "numbers"))
        self._numbers(d["numbers"])
        return Record(
            output=self._optional(self._value, d["output"]),
            output_type=self._text(d["output_type"]),
            tiles=self._tiles(d["tiles"]),
            tensors=self._tensors(d["tensors"]),
            largest_intermediate=self._int(d["largest_intermediate"]),
            largest_exp_argument=self._optional(self._float, d["largest_exp_argument"]),
            inputs_changed=self._texts(d["inputs_changed"]),
            warnings=self._texts(d["warnings"]),
            error=self._optional(self._failure, d["error"]),
            missing=self._texts(d["missing"]),
            renamed=self._bool(d["renamed"]),
            seconds=self._float(d["seconds"]),
            start=self._named(self._value, d["start"], WHOLE),
            end=self._named(self._value, d["end"], WHOLE),
            lines=self._named(self._int, d["lines"], WHOLE),
            stub_line=self._optional(self._int, d["stub_line"]),
            truncated=self._bool(d["truncated"]),
            reads_block_size=self._bool(d["reads_block_size"]),
        )

    def _numbers(self, data: Any) -> None:
        """Cut the long tensors up again."""
        d = self._fields(data, "record's numbers", ("pools", "shapes"))
        pools = [self._flat(pool) for pool in self._list(d["pools"], 64)]
        if sum(pool.numel() * pool.element_size() for pool in pools) > MAX_DATA_BYTES:
            raise ValueError(f"a record holds more than {MAX_DATA_BYTES} bytes of tensors")
        sizes: list[list[int]] = [[] for _ in pools]
        shapes = list(self._shapes(self._flat(d["shapes"], torch.int64).tolist(), len(pools)))
        for pool, shape in shapes:
            sizes[pool].append(math.prod(shape))
        if any(sum(n) != len(pool) for n, pool in zip(sizes, pools, strict=True)):
            raise ValueError("a record's shapes and its numbers differ")
        pieces = [iter(pool.split(n)) for n, pool in zip(sizes, pools, strict=True)]
        self.values = [next(pieces[pool]).reshape(shape) for pool, shape in shapes]

    def _shapes(self, flat: list[int], pools: int) -> Any:
        at = count = 0
        while at < len(flat):
            pool, ndim = (*flat[at : at + 2], -1)[:2]
            shape = flat[at + 2 : at + 2 + max(ndim, 0)]
            count += 1
            in_range = 0 <= pool < pools and 0 <= ndim == len(shape) and count <= MAX_TENSORS
            if not in_range or not all(0 <= n < 2**31 for n in shape):
                raise ValueError("a record has a shape that is none")
            yield pool, shape
            at += 2 + ndim

    def _flat(self, value: Any, dtype: torch.dtype | None = None) -> Tensor:
        dense = type(value) is Tensor and value.layout is torch.strided and value.ndim == 1
        if not dense or dtype not in (None, value.dtype):
            raise ValueError(f"a record needs a dense tensor of {dtype or 'numbers'} here")
        return value.detach()

    def _value(self, number: Any) -> Tensor:
        if not 0 <= self._int(number) < len(self.values):
            raise ValueError("a record names a tensor that is not there")
        return self.values[number]

    def _tiles(self, data: Any) -> tuple[Tile, ...]:
        d = self._fields(data, "record's tiles", ("at", "values", "lines"))
        tiles = [Tile(i, j) for i, j in self._rows(d["at"], 2, MAX_TILES)]
        for n, part, name, value in self._rows(d["values"], 4, MAX_TENSORS):
            allowed = VALUES if part == PARTS.index("values") else STATE
            in_range = 0 <= n < len(tiles) and 0 <= part < len(PARTS) and 0 <= name < len(VALUES)
            if not in_range or VALUES[name] not in allowed:
                raise ValueError("a record has a value that no tile has")
            getattr(tiles[n], PARTS[part])[VALUES[name]] = self._value(value)
        for n, name, line in self._rows(d["lines"], 3, MAX_TENSORS):
            if not (0 <= n < len(tiles) and 0 <= name < len(VALUES)):
                raise ValueError("a record has a line that no tile has")
            tiles[n].lines[VALUES[name]] = line
        return tuple(tiles)

    def _rows(self, value: Any, width: int, most: int) -> list[list[int]]:
        whole = type(value) is Tensor and value.dtype is torch.int64
        if not whole or value.layout is not torch.strided or value.shape[1:] != (width,):
            raise ValueError(f"a record needs a table of {width} whole numbers a row here")
        if len(value) > most:
            raise ValueError(f"a record needs a table of at most {most} rows here")
        return value.tolist()

    def _tensors(self, data: Any) -> tuple[MadeTensor, ...]:
        d = self._fields(data, "record's tensors", ("rows", "order"))
        rows = [self._made(row) for row in self._list(d["rows"], MAX_TENSORS)]
        order = [number for (number,) in self._rows(d["order"], 1, MAX_TENSORS)]
        if any(n < 0 or n >= len(rows) for n in order):
            raise ValueError("a record's order names a tensor that is not there")
        return tuple(rows[n] for n in order)

    def _made(self, data: Any) -> MadeTensor:
        if len(self._list(data, 5)) != 5:
            raise ValueError("a record needs rows of 5 items here")
        shape, dtype, op, line, exponents = data
        return MadeTensor(
            shape=tuple(self._int(n) for n in self._list(shape, 64)),
            dtype=self._text(dtype),
            op=self._text(op),
            line=self._optional(self._int, line),
            exponents=self._optional(self._int, exponents),
        )

    def _failure(self, data: Any) -> Failure:
        d = self._fields(data, "Failure", _names(Failure))
        if d["kind"] not in KINDS:
            raise ValueError(f"a record's failure has an unknown kind: one of {', '.join(KINDS)}")
        return Failure(
            kind=d["kind"],
            type_name=self._text(d["type_name"]),
            message=self._text(d["message"]),
            line=self._optional(self._int, d["line"]),
            source_line=self._optional(self._text, d["source_line"]),
        )

    def _fields(self, data: Any, what: str, names: tuple[str, ...]) -> dict[str, Any]:
        if type(data) is not dict or set(data) != set(names):
            raise ValueError(f"a {what} needs exactly these fields: {', '.join(sorted(names))}")
        return data

    def _named(self, read: Callable[[Any], Any], data: Any, names: tuple[str, ...]) -> dict:
        if type(data) is not dict or not set(data) <= set(names):
            raise ValueError(f"a record's dict may have only these names: {', '.join(names)}")
        return {name: read(value) for name, value in data.items()}

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
