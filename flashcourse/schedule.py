"""A model of one SM that works on two tiles at once: who uses which unit, and when.

Two units: the tensor cores (the matrix products QK and PV) and the exponential unit (exp). Times
are clock cycles, from the units' peak rates. The model knows nothing of registers, shared memory,
synchronisation or loads: it shows what overlapping can gain at most, and it measures no GPU.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from flashcourse.words import Text

OPS = ("QK", "exp", "PV")  # in this order for each tile
UNIT_OF = {"QK": "tensor", "exp": "exp", "PV": "tensor"}
UNITS = ("tensor", "exp")


@dataclass(frozen=True)
class SM:
    """Peak rates of one streaming multiprocessor, per clock cycle.

    mma_flops: 16-bit matrix products (a multiply-add counts as 2). exps: exponentials of the
    special function units. smem_bytes: shared memory, None where no source is given.
    """

    name: str
    mma_flops: int
    exps: int
    smem_bytes: int | None
    source: str


# mma_flops: peak FLOP/s / (SMs · clock), to the nearest power of 2: A100 312e12 / (108 · 1.41e9),
# H100 989e12 / (132 · 1.83e9), B200 2.25e15 / (148 · 1.85e9).
SMS = {
    "A100": SM("A100", 2048, 16, None, "NVIDIA A100 whitepaper; CUDA C++ Programming Guide"),
    "H100": SM("H100", 4096, 16, None, "FlashAttention-3, arXiv 2407.08608, §3.1"),
    "B200": SM("B200", 8192, 16, 128, "FlashAttention-4, arXiv 2603.05451, §3.1"),
}


class TileCycles(NamedTuple):
    """Cycles of one tile's two matrix products and of its exponentials."""

    qk: float
    exp: float
    pv: float


def tile_cycles(sm: SM, rows: int = 128, keys: int = 128, dim: int = 128) -> TileCycles:
    """Cycles at peak rates for a tile of rows × keys scores and head dimension dim."""
    product = 2 * rows * keys * dim / sm.mma_flops
    return TileCycles(product, rows * keys / sm.exps, product)


def shared_memory_cycles(rows: int, keys: int, dim: int) -> float:
    """Cycles of shared memory for a forward tile on Blackwell: 3·rows·keys·dim / 8192.

    FlashAttention-4, arXiv 2603.05451, §3.1 (128 bytes a clock, 16-bit operands).
    """
    return 3 * rows * keys * dim / 8192


class Interval(NamedTuple):
    """A warpgroup (0, 1, …) does an op ('QK', 'exp' or 'PV') from start to end, in cycles."""

    warpgroup: int
    op: str
    start: float
    end: float

    @property
    def unit(self) -> str:
        return UNIT_OF[self.op]


def intervals(rows: Iterable[Sequence]) -> list[Interval]:
    """Intervals from (warpgroup, op, start, end). ValueError, naming the entry, if one isn't."""
    made = []
    for n, row in enumerate(rows):
        if not isinstance(row, tuple | list) or len(row) != 4:
            raise ValueError(f"entry {n} is not (warpgroup, op, start, end): {row!r}")
        warpgroup, op, start, end = row
        if op not in UNIT_OF:
            raise ValueError(f"entry {n}: op {op!r} is none of {', '.join(OPS)}")
        made.append(Interval(int(warpgroup), str(op), float(start), float(end)))
    return made


def serial(tiles: int, cycles: TileCycles, warpgroups: int = 2) -> list[Interval]:
    """One after the other, nothing overlaps: what a single warpgroup would do."""
    made, now = [], 0.0
    for _ in range(tiles):
        for warpgroup in range(warpgroups):
            for op, length in zip(OPS, cycles, strict=True):
                made.append(Interval(warpgroup, op, now, now + length))
                now += length
    return made


# ---------------------------------------------------------------- what a schedule is worth


def makespan(schedule: Sequence[Interval]) -> float:
    """Cycles from the first start to the last end."""
    return max(i.end for i in schedule) - min(i.start for i in schedule) if schedule else 0.0


def utilisation(schedule: Sequence[Interval], unit: str = "tensor") -> float:
    """Share of the makespan in which the unit works."""
    whole = makespan(schedule)
    return sum(i.end - i.start for i in schedule if i.unit == unit) / whole if whole else 0.0


def best_makespan(tiles: int, cycles: TileCycles, warpgroups: int = 2) -> float:
    """No schedule is shorter: the busier unit has this much to do."""
    return tiles * warpgroups * max(cycles.qk + cycles.pv, cycles.exp)


# ---------------------------------------------------------------- what a schedule must obey

_EPS = 1e-6


def problems(
    schedule: Sequence[Interval], tiles: int, cycles: TileCycles, warpgroups: int = 2
) -> list[Text]:
    """What is wrong with a schedule, most basic first; empty if it could run.

    Each warpgroup has one buffer for S: its ops run in the order QK, exp, PV, QK, exp, PV, …, each
    after the one before has ended. Each unit does one thing at a time. Each op takes its cycles.
    """
    found = _missing(schedule, tiles, warpgroups) or _lengths(schedule, cycles)
    return found or _order(schedule, tiles, warpgroups) + _overlaps(schedule)


def _missing(schedule: Sequence[Interval], tiles: int, warpgroups: int) -> list[Text]:
    found = []
    for warpgroup in range(warpgroups):
        for op in OPS:
            count = sum(i.warpgroup == warpgroup and i.op == op for i in schedule)
            if count != tiles:
                found.append(
                    Text(
                        f"Warpgroup {warpgroup} has {count} intervals of {op}; {tiles} are needed.",
                        f"warpgroup {warpgroup} 有 {count} 个 {op} 区间，应有 {tiles} 个。",
                    )
                )
    strangers = {i.warpgroup for i in schedule} - set(range(warpgroups))
    if strangers:
        names = ", ".join(map(str, sorted(strangers)))
        found.append(
            Text(
                f"There is no warpgroup {names}: they are numbered from 0.",
                f"没有 warpgroup {names}：编号从 0 开始。",
            )
        )
    return found


def _lengths(schedule: Sequence[Interval], cycles: TileCycles) -> list[Text]:
    lengths = dict(zip(OPS, cycles, strict=True))
    for i in schedule:
        if i.start < -_EPS:
            return [Text("An interval starts before cycle 0.", "有区间在第 0 周期之前开始。")]
        if abs(i.end - i.start - lengths[i.op]) > _EPS * max(1.0, lengths[i.op]):
            got, want = f"{i.end - i.start:g}", f"{lengths[i.op]:g}"
            return [
                Text(
                    f"Warpgroup {i.warpgroup}'s {i.op} at cycle {i.start:g} takes {got} cycles. "
                    f"It should take {want}.",
                    f"warpgroup {i.warpgroup} 在第 {i.start:g} 周期的 {i.op} 用了 {got} 个周期，"
                    f"应为 {want}。",
                )
            ]
    return []


def _order(schedule: Sequence[Interval], tiles: int, warpgroups: int) -> list[Text]:
    found = []
    for warpgroup in range(warpgroups):
        own = sorted(
            (i for i in schedule if i.warpgroup == warpgroup), key=lambda i: (i.start, i.end)
        )
        for before, after, op in zip([None, *own], own, OPS * tiles, strict=False):
            if after.op == op and (before is None or after.start >= before.end - _EPS):
                continue
            n = own.index(after) // 3
            found.append(
                Text(
                    f"Warpgroup {warpgroup}, tile {n}: {after.op} at cycle {after.start:g} comes "
                    "too early. The order is QK, exp, PV, and each waits for the one before.",
                    f"warpgroup {warpgroup} 的第 {n} 块：{after.op} 在第 {after.start:g} 周期开始，"
                    "太早了。顺序是 QK、exp、PV，每一步都要等前一步结束。",
                )
            )
            break
    return found


def _overlaps(schedule: Sequence[Interval]) -> list[Text]:
    names = {
        "tensor": Text("tensor cores get", "Tensor Core "),
        "exp": Text("exp unit gets", "指数单元"),
    }
    for unit in UNITS:
        own = sorted((i for i in schedule if i.unit == unit), key=lambda i: i.start)
        for first, second in zip(own, own[1:], strict=False):
            if second.start < first.end - _EPS:
                name = names[unit]
                return [
                    Text(
                        f"The {name.en} two things to do at cycle {second.start:g}: warpgroup "
                        f"{first.warpgroup}'s {first.op} and warpgroup {second.warpgroup}'s "
                        f"{second.op}.",
                        f"第 {second.start:g} 周期，{name.zh}同时要做两件事：warpgroup "
                        f"{first.warpgroup} 的 {first.op} 和 warpgroup {second.warpgroup} 的 "
                        f"{second.op}。",
                    )
                ]
    return []
