"""Attention with 8-bit inputs: a scale for each tensor or each block, with or without rotation.

FlashAttention-3, arXiv 2407.08608, §3.3 and Table 3. Rounding to float8 e4m3 is simulated exactly
by PyTorch on any machine; sums are kept in float64, so only the rounding of q, k, v and P counts.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from flashcourse.attention import attention, scores
from flashcourse.rescaling import E4M3_MAX, to_e4m3


def quantise(x: Tensor, block: int | None = None) -> Tensor:
    """x rounded to e4m3 and scaled back, in float64.

    The largest number of the tensor (or of each block of rows) is scaled to 448 first.
    """
    parts = [x] if block is None else list(x.split(block, dim=0))
    scales = [part.abs().amax().clamp_min(1e-30) / E4M3_MAX for part in parts]
    return torch.cat([to_e4m3(p / s) * s for p, s in zip(parts, scales, strict=True)])


def hadamard(size: int) -> Tensor:
    """The orthogonal Hadamard matrix ±1/√size, float64. ValueError if size is no power of 2."""
    if size < 1 or size & (size - 1):
        raise ValueError(f"a Hadamard matrix by doubling needs a power of 2, not {size}")
    H = torch.ones(1, 1, dtype=torch.float64)
    while H.shape[0] < size:
        H = torch.cat([torch.cat([H, H], dim=1), torch.cat([H, -H], dim=1)])
    return H / math.sqrt(size)


def rotation(size: int, seed: int = 0) -> Tensor:
    """Random signs times a Hadamard matrix: orthogonal, so that (qM)(kM)ᵀ = qkᵀ."""
    generator = torch.Generator().manual_seed(seed)
    signs = torch.randint(0, 2, (size, 1), generator=generator).double() * 2 - 1
    return signs * hadamard(size)


def outlier_inputs(rows: int = 4096, dim: int = 128, seed: int = 0) -> list[Tensor]:
    """q, k, v from N(0, 1) + N(0, 100)·Bernoulli(0.001), as in Table 3 of FlashAttention-3."""
    generator = torch.Generator().manual_seed(seed)

    def draw() -> Tensor:
        noise = torch.randn(2, rows, dim, generator=generator, dtype=torch.float64)
        rare = torch.rand(rows, dim, generator=generator) < 0.001
        return noise[0] + 10 * noise[1] * rare

    return [draw() for _ in range(3)]


def fp8_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    block: int | None = None,
    rotate: bool = False,
    queries: int | None = None,
) -> Tensor:
    """Attention of 8-bit q, k, v and P. block: rows with a scale of their own, None for one scale.

    P, relative to the row maximum, is in [0, 1] and is stored as 448·P. queries: only the first so
    many rows of the output (all of q still decides its scale).
    """
    if rotate:
        M = rotation(q.shape[1])
        q, k = q @ M, k @ M
    q, k, v = (quantise(t, block) for t in (q, k, v))
    S = scores(q[:queries], k)
    P = torch.exp(S - S.amax(dim=1, keepdim=True))
    return to_e4m3(P * E4M3_MAX) / E4M3_MAX @ v / P.sum(dim=1, keepdim=True)


def half_attention(q: Tensor, k: Tensor, v: Tensor, keep_float: bool) -> Tensor:
    """Attention of float16 inputs: scores and P in float32 (FlashAttention), or in float16 too.

    The last product's inputs are float16 either way.
    """
    q, k, v = (t.half().double() for t in (q, k, v))
    S = scores(q, k)
    if not keep_float:
        S = S.half().double()
    P = torch.exp(S - S.amax(dim=1, keepdim=True))
    l = P.sum(dim=1, keepdim=True)
    if keep_float:
        return P.half().double() @ v / l
    return (P / l).half().double() @ v


def rmse(output: Tensor, q: Tensor, k: Tensor, v: Tensor) -> float:
    """Root mean square error of the first rows of an output against float64 attention."""
    return (output - attention(q[: output.shape[0]], k, v)).pow(2).mean().sqrt().item()
