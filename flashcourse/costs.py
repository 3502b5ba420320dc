"""What attention costs: floating point operations, bytes, traffic to HBM; and what real GPUs offer.

Everything here is for the forward pass of one head, unless a function takes `batch` and `heads`.
N is the number of queries and of keys, d the head dimension. Traffic is counted in *elements*,
as the FlashAttention paper does (arXiv 2205.14135, §3.2): multiply by `DTYPE_BYTES` for bytes.
M, the size of the on-chip memory, is in elements too.

Each algorithm's traffic comes twice: by the formula (`*_traffic`), and by walking over the tiles
and adding up what each one loads and stores (`count_*`). The two agree to the element.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import ceil

DTYPE_BYTES = {"float32": 4, "float16": 2, "bfloat16": 2, "float8": 1}


# ---------------------------------------------------------------- hardware


@dataclass(frozen=True)
class GPU:
    """One GPU's numbers from its maker.

    tensor_flops: peak dense fp16 tensor-core FLOP/s, fp32 accumulation, without sparsity.
    hbm_bytes: size of the device memory, as sold (1 GB = 10⁹ bytes).
    hbm_bytes_per_s: its bandwidth. On a T4 this memory is GDDR6, on the others HBM.
    sms: streaming multiprocessors. sram_per_sm_bytes: L1 cache and shared memory together.
    shared_per_sm_bytes: how much of that a kernel may use as shared memory.
    """

    name: str
    tensor_flops: float
    hbm_bytes: float
    hbm_bytes_per_s: float
    sms: int
    sram_per_sm_bytes: int
    shared_per_sm_bytes: int
    source: str

    @property
    def ridge_flops_per_byte(self) -> float:
        """The arithmetic intensity (FLOP per byte of HBM traffic) at which the roof turns flat."""
        return self.tensor_flops / self.hbm_bytes_per_s


_KIB = 1024
# Shared memory per SM: CUDA C++ Programming Guide, technical specifications per compute capability.
_GUIDE = "CUDA C++ Programming Guide (shared memory)"
_A100 = "NVIDIA A100 datasheet and A100 architecture whitepaper"
_H100 = "NVIDIA H100 datasheet (SXM, dense); FlashAttention-3, arXiv 2407.08608, §2.2"
_T4 = "NVIDIA T4 datasheet; NVIDIA Turing architecture whitepaper"
_H200 = "NVIDIA H200 datasheet (SXM, dense)"
_B200 = (
    "FlashAttention-4, arXiv 2603.05451 (peak, number of SMs); "
    "NVIDIA DGX B200 datasheet (an eighth of 1440 GB and of 64 TB/s)"
)
_ROWS = (
    # name, tensor FLOP/s, HBM bytes, HBM bytes/s, SMs, SRAM KiB/SM, shared KiB/SM, source
    ("T4", 65e12, 16e9, 320e9, 40, 96, 64, _T4),
    ("A100-40GB", 312e12, 40e9, 1555e9, 108, 192, 164, _A100),
    ("A100-80GB", 312e12, 80e9, 2039e9, 108, 192, 164, _A100),
    ("H100", 989e12, 80e9, 3.35e12, 132, 256, 228, _H100),
    ("H200", 989e12, 141e9, 4.8e12, 132, 256, 228, _H200),
    ("B200", 2.25e15, 180e9, 8e12, 148, 256, 228, _B200),
)
HARDWARE: dict[str, GPU] = {
    name: GPU(name, flops, size, speed, sms, sram * _KIB, shared * _KIB, f"{source}; {_GUIDE}")
    for name, flops, size, speed, sms, sram, shared, source in _ROWS
}


# ---------------------------------------------------------------- operations and bytes


def forward_flops(N: int, d: int, batch: int = 1, heads: int = 1, causal: bool = False) -> int:
    """FLOPs of the two matrix products: 4·N²·d a head, half of that when causal.

    A multiply-add counts as 2. This is how FlashAttention-2 reports its speed
    (arXiv 2307.08691, §4.1); exp, max and sum are not in it.
    """
    flops = 4 * N * N * d * batch * heads
    return flops // 2 if causal else flops


def backward_flops(N: int, d: int, batch: int = 1, heads: int = 1, causal: bool = False) -> int:
    """2.5 × the forward: 5 matrix products instead of 2 (arXiv 2307.08691, §4.1)."""
    return forward_flops(N, d, batch, heads, causal) * 5 // 2


def score_bytes(
    N: int, heads: int = 1, batch: int = 1, dtype: str = "float16", keys: int | None = None
) -> int:
    """Bytes of the whole score matrix S: batch · heads · N · keys · bytes of the dtype."""
    return batch * heads * N * (N if keys is None else keys) * DTYPE_BYTES[dtype]


def qkvo_bytes(N: int, d: int, heads: int = 1, batch: int = 1, dtype: str = "float16") -> int:
    """Bytes of q, k, v and the output: what any attention must at least read and write."""
    return batch * heads * 4 * N * d * DTYPE_BYTES[dtype]


def attainable_flops(flops_per_byte: float, gpu: GPU) -> float:
    """The roofline: FLOP/s that a kernel of this arithmetic intensity can reach at best.

    min(peak, intensity · bandwidth); Williams, Waterman, Patterson, CACM 52(4), 2009.
    """
    return min(gpu.tensor_flops, flops_per_byte * gpu.hbm_bytes_per_s)


# ---------------------------------------------------------------- traffic, by the formulas


def flash1_block_sizes(M: int, d: int) -> tuple[int, int]:
    """(Br, Bc) of FlashAttention-1 for M elements of SRAM: Bc = ⌈M/4d⌉, Br = min(⌈M/4d⌉, d).

    Algorithm 1, line 1 (arXiv 2205.14135): four tiles, Q, K, V and O, share the SRAM.
    """
    if 4 * d > M:
        raise ValueError(f"M = {M} elements hold no tile of dimension {d}: M must be at least 4·d")
    Bc = ceil(M / (4 * d))
    return min(Bc, d), Bc


def standard_traffic(N: int, d: int) -> int:
    """HBM elements of attention that stores S and P: 4N² + 4Nd (arXiv 2205.14135, Alg. 0).

    Read Q, K, write S; read S, write P; read P, V, write O. No mask, no dropout.
    """
    return 4 * N * N + 4 * N * d


def flash1_traffic(N: int, d: int, Bc: int) -> int:
    """HBM elements of FlashAttention-1: 2Nd + Tc·(3Nd + 4N), Tc = ⌈N/Bc⌉.

    K/V outer loop: K, V once; for each K/V block all of Q and O, l, m in, and O, l, m out
    (arXiv 2205.14135, Algorithm 1).
    """
    Tc = ceil(N / Bc)
    return 2 * N * d + Tc * (3 * N * d + 4 * N)


def flash2_traffic(N: int, d: int, Br: int) -> int:
    """HBM elements of FlashAttention-2: 2Nd + N + Tr·2Nd, Tr = ⌈N/Br⌉.

    Q outer loop: Q once, O and L = m + log l out once; for each Q block all of K and V
    (arXiv 2307.08691, Algorithm 1).
    """
    Tr = ceil(N / Br)
    return 2 * N * d + N + Tr * 2 * N * d


# ---------------------------------------------------------------- traffic, by counting


@dataclass(frozen=True)
class Access:
    """One movement between HBM and the chip: a 'load' or a 'store' of some elements of a tensor."""

    kind: str
    tensor: str
    elements: int


@dataclass(frozen=True)
class Traffic:
    """The elements loaded and stored, by tensor ('Q', 'K', 'V', 'S', 'P', 'O', 'm', 'l', 'L')."""

    loads: dict[str, int]
    stores: dict[str, int]

    @property
    def total(self) -> int:
        return sum(self.loads.values()) + sum(self.stores.values())


def blocks(N: int, block: int) -> list[int]:
    """The rows of each block: `block` each, and what is left over in the last one."""
    return [min(block, N - start) for start in range(0, N, block)]


def _standard_accesses(N: int, d: int) -> Iterator[Access]:
    for kind, tensor, elements in (
        ("load", "Q", N * d), ("load", "K", N * d), ("store", "S", N * N),
        ("load", "S", N * N), ("store", "P", N * N),
        ("load", "P", N * N), ("load", "V", N * d), ("store", "O", N * d),
    ):  # fmt: skip
        yield Access(kind, tensor, elements)


def _flash1_pass(cols: int, N: int, d: int, Br: int) -> Iterator[Access]:
    """One turn of the outer loop: a K/V block against every Q block."""
    yield Access("load", "K", cols * d)
    yield Access("load", "V", cols * d)
    for rows in blocks(N, Br):
        yield Access("load", "Q", rows * d)
        for kind in ("load", "store"):
            yield Access(kind, "O", rows * d)
            yield Access(kind, "l", rows)
            yield Access(kind, "m", rows)


def _flash2_pass(rows: int, N: int, d: int, Bc: int) -> Iterator[Access]:
    """One turn of the outer loop: a Q block against every K/V block."""
    yield Access("load", "Q", rows * d)
    for cols in blocks(N, Bc):
        yield Access("load", "K", cols * d)
        yield Access("load", "V", cols * d)
    yield Access("store", "O", rows * d)
    yield Access("store", "L", rows)


def _tally(passes: Iterable[tuple[int, Iterator[Access]]]) -> Traffic:
    """Add up (times, accesses): outer turns of one size move the same, so one is walked."""
    traffic = Traffic({}, {})
    for times, accesses in passes:
        for access in accesses:
            side = traffic.loads if access.kind == "load" else traffic.stores
            side[access.tensor] = side.get(access.tensor, 0) + times * access.elements
    return traffic


def _sizes(N: int, block: int) -> list[tuple[int, int]]:
    """(how many, rows) of the blocks of each size."""
    return [(times, rows) for rows, times in Counter(blocks(N, block)).items()]


def count_standard(N: int, d: int) -> Traffic:
    """Elements that standard attention moves, added up access by access."""
    return _tally([(1, _standard_accesses(N, d))])


def count_flash1(N: int, d: int, Br: int, Bc: int) -> Traffic:
    """Elements that FlashAttention-1 (K/V outer) moves, added up tile by tile."""
    return _tally((times, _flash1_pass(cols, N, d, Br)) for times, cols in _sizes(N, Bc))


def count_flash2(N: int, d: int, Br: int, Bc: int) -> Traffic:
    """Elements that FlashAttention-2 (Q outer) moves, added up tile by tile."""
    return _tally((times, _flash2_pass(rows, N, d, Bc)) for times, rows in _sizes(N, Br))
