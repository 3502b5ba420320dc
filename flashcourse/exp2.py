"""FlashAttention-4's polynomials for 2^f on [0, 1), and how good they are.

A part of its exponentials is computed so (arXiv 2603.05451, §3.1, Table 2). Here is the fraction
only: taking an argument apart into a whole number and a fraction is an exercise.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

# By degree, lowest power first; every coefficient is a float32 number. Computed with Sollya 8.0:
#     fpminimax(exp(x*log(2)), degree, [|1, 24...|], [0;1], relative);
# 24 bits for each coefficient, 1 bit for the constant, so that whole powers of 2 are exact. That
# is the authors' recipe (github.com/Dao-AILab/flash-attention, flash_attn/cute/utils.py), and
# gives their coefficients; the paper prints those of degree 3. Sollya starts from the best
# polynomial with any constant and looks for coefficients of these lengths close by. With the
# constant at 1 one can do a little better: by 2% at degree 3, by 3% at degree 4.
COEFFICIENTS: dict[int, tuple[float, ...]] = {
    1: (1.0, 0.922497093677520751953125),
    2: (1.0, 0.6657850742340087890625, 0.330107033252716064453125),
    3: (
        1.0,
        0.695146143436431884765625,
        0.227564394474029541015625,
        0.077119089663028717041015625,
    ),
    4: (
        1.0,
        0.693042695522308349609375,
        0.2412912547588348388671875,
        0.052225358784198760986328125,
        0.013434938155114650726318359375,
    ),
    5: (
        1.0,
        0.693151414394378662109375,
        0.24016360938549041748046875,
        0.055802188813686370849609375,
        0.00901452265679836273193359375,
        0.00186810153536498546600341796875,
    ),
}


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
