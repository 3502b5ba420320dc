"""The inputs on which `flash_attention_forward_sim` is run. All come from the seed."""

from __future__ import annotations

import torch
from torch import Tensor

from flashcourse.checks.forward_tile import Problem


def _random(
    generator: torch.Generator, rows: int, dim: int, dtype: torch.dtype = torch.float32
) -> tuple[Tensor, Tensor, Tensor]:
    q, k, v = (torch.randn(rows, dim, generator=generator, dtype=torch.float64) for _ in range(3))
    return q.to(dtype), k.to(dtype), v.to(dtype)


def compared(seed: int) -> list[Problem]:
    """What results are compared on: even, single-row and ragged blocks, one tile, float64."""
    g = torch.Generator().manual_seed(seed + 42)
    return [
        Problem("even", *_random(g, 8, 4), 2),
        Problem("single", *_random(g, 3, 2), 1),
        Problem("ragged", *_random(g, 5, 3), 3),
        Problem("one tile", *_random(g, 4, 3), 8),
        Problem("float64", *_random(g, 5, 3, torch.float64), 2),
    ]


def stressed(seed: int) -> list[Problem]:
    """Scores of ±hundreds, all around −200, and maxima that fall or rise from tile to tile."""
    g = torch.Generator().manual_seed(seed + 77)
    q, k, v = _random(g, 4, 4)
    steps = torch.arange(4.0)[:, None]
    first = torch.eye(4)[:1]  # the first column carries the wanted score, √4 = 2 times its size
    quiet_q, quiet_k = q * (1 - first), k * (1 - first)
    return [
        Problem("large scores", q * 100, k, v, 2),
        Problem("very negative scores", quiet_q + 20 * first, quiet_k - 20 * first, v, 2),
        Problem("falling maxima", quiet_q + 20 * first, quiet_k - 8 * steps * first, v, 2),
        Problem("rising maxima", quiet_q + first, quiet_k + steps * first, v, 2),
    ]


def bfloat16(seed: int) -> Problem:
    """Few digits, and the one usual dtype that does not mix with torch's default of float32."""
    g = torch.Generator().manual_seed(seed + 16)
    return Problem("bfloat16", *_random(g, 4, 4, torch.bfloat16), 2)


def gpu(seed: int) -> Problem:
    """The even blocks once more, on the GPU."""
    even = compared(seed)[0]
    q, k, v = (t.to("cuda") for t in (even.q, even.k, even.v))
    return Problem("gpu", q, k, v, even.block)


def long(seed: int) -> Problem:
    """256 rows in 2 × 2 tiles."""
    g = torch.Generator().manual_seed(seed + 256)
    return Problem("long", *_random(g, 256, 4), 128)


def cross(seed: int) -> Problem:
    """4 queries, 5 keys, and values of another width than the keys."""
    g = torch.Generator().manual_seed(seed + 47)
    q, k, v = _random(g, 5, 3)
    return Problem("more keys", q[:4], k, v[:, :2].clone(), 3)


KEYS = 6  # of the tiling problem
NARROW, WIDE = 2, 3  # its two block sizes


def tiled(seed: int, block: int) -> Problem:
    """6 keys whose scores are the numbers 0 to 5 in every row, so that each one can be told.

    The argument of an exponential then holds as many different numbers as keys it looks at. All
    rows are of one number: whoever works with q, k, v and out transposed makes no strip of scores.
    """
    g = torch.Generator().manual_seed(seed + 99)
    v = torch.randn(KEYS, 1, generator=g)
    k = torch.randperm(KEYS, generator=g).float()[:, None]
    return Problem(f"tiles of {block}", torch.ones(KEYS, 1), k, v, block)


def probes(seed: int) -> dict[str, Problem]:
    """Runs whose output alone tells something about a function with names of its own."""
    g = torch.Generator().manual_seed(seed + 123)
    q, k, v = _random(g, 8, 4)
    ones = torch.ones_like(v)
    first = torch.eye(4)[:1]
    steps = torch.arange(8.0)[:, None]
    level_q, level_k = q * (1 - first), k * (1 - first) * 0.5
    falling = level_k - 2 * steps * first
    rising = level_k + 2 * steps * first
    return {
        "one": Problem("one tile", q, k, v, 8),
        "weights": Problem("v all ones", q, k, ones, 2),
        "equal": Problem("equal scores", torch.zeros_like(q), k, v, 2),
        "falling": Problem("falling maxima", level_q + first, falling, v, 2),
        "falling weights": Problem("falling maxima, v all ones", level_q + first, falling, ones, 2),
        "rising": Problem("rising maxima", level_q + first, rising, v, 2),
        "rising weights": Problem("rising maxima, v all ones", level_q + first, rising, ones, 2),
    }
