"""Conditional rescaling (FlashAttention-4, arXiv 2603.05451, §3.1.4), for whole score matrices.

Which maximum each tile uses follows from the running maxima alone, so it is found here by
jumping from one change to the next, and the output is one weighted sum over all keys. Scores are
in base 2 (times log₂ e), as in the kernel; the threshold τ is in the same unit.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from flashcourse.attention import scores

LOG2_E = math.log2(math.e)
E4M3_MAX = 448.0  # the largest finite float8_e4m3fn


def running_maxima(S: Tensor, block: int) -> Tensor:
    """The row maximum over all keys up to the end of each tile: (rows, tiles)."""
    maxima = torch.stack([part.amax(dim=1) for part in S.split(block, dim=1)], dim=1)
    return maxima.cummax(dim=1).values


def used_maxima(maxima: Tensor, tau: float) -> Tensor:
    """The maximum that each tile uses when a row changes it only if it would rise by more than τ.

    maxima: (rows, tiles), never falling. From its present level a row jumps to the first later
    running maximum that is more than τ above.
    """
    if tau < 0:
        raise ValueError(f"tau must be at least 0, not {tau}")
    level = maxima[:, :1]
    used = level.expand_as(maxima)
    tile = torch.arange(maxima.shape[1], device=maxima.device)
    while True:
        above = maxima > level + tau
        jumps = above.any(dim=1, keepdim=True)
        if not jumps.any():
            return used
        first = above.to(torch.uint8).argmax(dim=1, keepdim=True)
        level = torch.where(jumps, maxima.gather(1, first), level)
        used = torch.where(jumps & (tile >= first), level, used)


@dataclass(frozen=True)
class Rescaling:
    """What a threshold does on one set of inputs.

    rows: share of (row, tile) pairs, the first tile left out, that rescale O. warps: the same for
    groups of 32 rows, where one row is enough. largest_p: the largest P. error: of the output
    against exact attention, relative, root mean square.
    """

    tau: float
    rows: float
    warps: float
    largest_p: float
    error: float


def example(
    spread: float, rows: int = 256, keys: int = 4096, dim: int = 64, seed: int = 0
) -> tuple[Tensor, Tensor]:
    """Scores in base 2, (rows, keys), and v, (keys, dim), of random inputs; q is times `spread`."""
    generator = torch.Generator().manual_seed(seed)
    q = torch.randn(rows, dim, generator=generator, dtype=torch.float64) * spread
    k = torch.randn(keys, dim, generator=generator, dtype=torch.float64)
    v = torch.randn(keys, dim, generator=generator, dtype=torch.float64)
    return scores(q, k) * LOG2_E, v


def measure(
    S: Tensor, v: Tensor, tau: float, block: int = 128, dtype: torch.dtype = torch.bfloat16
) -> Rescaling:
    """Count rescales and measure the error when P is rounded to `dtype` before P V.

    S: (rows, keys), base 2, float64. The sums l and O stay in float64, as a GPU keeps them in
    float32.
    """
    used = used_maxima(running_maxima(S, block), tau)
    changed = used[:, 1:] != used[:, :-1]
    groups = changed.split(32, dim=0)
    in_warp = torch.stack([group.any(dim=0) for group in groups])
    output, P = _weighted(S, v, used, block, 0.0, lambda p: p.to(dtype).double())
    return Rescaling(
        tau,
        changed.double().mean().item() if changed.numel() else 0.0,
        in_warp.double().mean().item() if changed.numel() else 0.0,
        P.max().item(),
        relative_error(output, S, v),
    )


def fp8_error(S: Tensor, v: Tensor, tau: float, offset: float, block: int = 128) -> float:
    """Relative RMS error of the output when P·2^offset is stored as e4m3, clipped at 448.

    l is the sum of the unclipped numbers, as in the kernel that had the bug
    (github.com/Dao-AILab/flash-attention, issues 2577 and 2716).
    """
    used = used_maxima(running_maxima(S, block), tau)
    output, _ = _weighted(S, v, used, block, offset, to_e4m3)
    return relative_error(output, S, v)


def to_e4m3(x: Tensor) -> Tensor:
    """x rounded to float8 e4m3 and back, in float64; beyond ±448 it is clipped."""
    clipped = x.clamp(-E4M3_MAX, E4M3_MAX).float()
    return clipped.to(torch.float8_e4m3fn).double()


def _weighted(
    S: Tensor,
    v: Tensor,
    used: Tensor,
    block: int,
    offset: float,
    stored: Callable[[Tensor], Tensor],
) -> tuple[Tensor, Tensor]:
    """The output with the P of each tile relative to the maximum it used; and P."""
    each = used.repeat_interleave(block, dim=1)[:, : S.shape[1]]
    P = torch.exp2(S - each + offset)
    to_last = torch.exp2(each - used[:, -1:])
    return (stored(P) * to_last) @ v / (P * to_last).sum(dim=1, keepdim=True), P


def relative_error(output: Tensor, S: Tensor, v: Tensor) -> float:
    """‖output − exact‖ / ‖exact‖."""
    exact = torch.softmax(S / LOG2_E, dim=1) @ v
    return ((output - exact).norm() / exact.norm()).item()
