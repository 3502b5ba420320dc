"""Polynomials for 2^f on [0, 1): how good one of each degree can be, and how good one is.

FlashAttention-4 computes part of its exponentials so (arXiv 2603.05451, §3.1, Table 2). Here is
the fraction only: taking an argument apart into a whole number and a fraction is an exercise.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import torch

# FlashAttention-4's own coefficients for degree 3, lowest power first.
FA4_DEGREE_3 = (1.0, 0.695146143436, 0.227564394474, 0.077119089663)


@cache
def minimax(degree: int) -> tuple[float, ...]:
    """Coefficients, lowest power first, with the smallest largest relative error on [0, 1).

    The constant is held at 1, so that whole powers of 2 are exact (as in FA4). Remez exchange in
    float64. ValueError for a degree outside 1 … 8 (beyond, float64 has no digits left).
    """
    if not 1 <= degree <= 8:
        raise ValueError(f"degree must be 1 to 8, not {degree}")
    grid = np.linspace(0, 1, 20001)
    points = 0.5 - 0.5 * np.cos(np.pi * (np.arange(degree + 1) + 0.5) / (degree + 1))
    powers = np.arange(1, degree + 1)
    for _ in range(50):
        # Σ c_k x^k / 2^x ± E = 1 − 1 / 2^x at the degree + 1 points.
        matrix = np.column_stack(
            [points[:, None] ** powers / 2 ** points[:, None], (-1.0) ** np.arange(degree + 1)]
        )
        solved = np.linalg.solve(matrix, 1 - 2.0**-points)
        coefficients = np.concatenate([[1.0], solved[:-1]])
        error = np.polynomial.polynomial.polyval(grid, coefficients) / 2**grid - 1
        new = _extremes(grid, error, degree + 1)
        if np.allclose(new, points, atol=1e-12):
            break
        points = new
    return tuple(float(c) for c in coefficients)


def _extremes(grid: np.ndarray, error: np.ndarray, count: int) -> np.ndarray:
    """The `count` points of alternating sign where the error is largest, in ascending order."""
    runs = np.flatnonzero(np.diff(np.sign(error[1:]))) + 2
    parts = np.split(np.arange(1, len(grid)), runs - 1)
    best = [part[np.argmax(np.abs(error[part]))] for part in parts if len(part)]
    while len(best) > count:
        best.pop(0 if abs(error[best[0]]) < abs(error[best[-1]]) else -1)
    return grid[best]


@dataclass(frozen=True)
class Errors:
    """Relative errors against 2^f in float64: largest and mean in float32, largest in bfloat16."""

    largest: float
    mean: float
    bfloat16: float


def errors(coefficients: tuple[float, ...], points: int = 1 << 18) -> Errors:
    """Errors of a polynomial that is evaluated in float32 by Horner's rule on a grid of [0, 1)."""
    fraction = torch.arange(points, dtype=torch.float64) / points
    exact = torch.exp2(fraction)
    value = polynomial(fraction.float(), coefficients)
    return _compare(value, exact)


def library_errors(points: int = 1 << 18) -> Errors:
    """The same for PyTorch's own float32 exp2 (on a CPU: not the GPU's MUFU.EX2)."""
    fraction = torch.arange(points, dtype=torch.float64) / points
    return _compare(torch.exp2(fraction.float()), torch.exp2(fraction))


def _compare(value: torch.Tensor, exact: torch.Tensor) -> Errors:
    off = (value.double() / exact - 1).abs()
    rounded = (value.bfloat16().double() / exact - 1).abs()
    return Errors(off.max().item(), off.mean().item(), rounded.max().item())


def polynomial(x: torch.Tensor, coefficients: tuple[float, ...]) -> torch.Tensor:
    """The float32 polynomial at x, coefficients lowest power first.

    Each step is one fused multiply-add, as on a GPU: the product of two float32 is exact in
    float64, and the sum is rounded once.
    """
    rounded = torch.tensor(coefficients, dtype=torch.float32).tolist()
    value = torch.full_like(x, rounded[-1])
    for c in reversed(rounded[:-1]):
        value = (value.double() * x.double() + c).float()
    return value
