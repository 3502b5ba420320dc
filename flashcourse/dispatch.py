"""Watch the tensors that a learner's function makes, below every torch function that it calls."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from flashcourse.record import MadeTensor

MOST_TENSORS = 100_000
MOST_ELEMENTS = 2**28  # one tensor: 1 GiB in float32
MOST_EXPONENTS = 2**22  # larger arguments of exp are not counted

# What the argument is to be multiplied by to be an exponent of e.
EXPONENTIALS = {"exp": 1.0, "exp_": 1.0, "expm1": 1.0, "exp2": math.log(2), "exp2_": math.log(2)}
NORMALISERS = ("_softmax", "_log_softmax", "logsumexp")


@lru_cache(maxsize=1024)
def _operation(func: Any) -> tuple[str, tuple[bool, ...]]:
    """The name of an op without its overload, and which of its results are new tensors."""
    name = func.name().split("::")[-1].split(".")[0]
    return name, tuple(result.alias_info is None for result in func._schema.returns)


def _sizes(args: tuple) -> int:
    """The largest number of elements that a list of sizes among the arguments asks for."""
    lists = [a for a in args if isinstance(a, list | tuple | torch.Size) and a]
    return max((math.prod(a) for a in lists if all(type(n) is int for n in a)), default=0)


class TensorWatch(TorchDispatchMode):
    """Collects `seen`, `largest` and `largest_exponent` while it is active.

    line: says which line of the learner's is running. Raises MemoryError in their code when one
    tensor would be larger than MOST_ELEMENTS.
    """

    def __init__(self, line: Callable[[], int | None]) -> None:
        super().__init__()
        self.line = line
        self.seen: list[MadeTensor] = []
        self.largest = 0
        self.largest_exponent: float | None = None
        self.truncated = False

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        # Asked by torch 2.6 and later. False saves the import of the compiler (some seconds).
        return False

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        kwargs = kwargs or {}
        name, new = _operation(func)
        if any(new) and _sizes(args) > MOST_ELEMENTS:
            raise MemoryError(f"{name} asked for a tensor of {_sizes(args)} elements")
        exponents = self._exponents(name, args)
        result = func(*args, **kwargs)
        results = result if isinstance(result, tuple | list) else (result,)
        for item, is_new in zip(results, new, strict=False):
            if isinstance(item, Tensor) and (is_new or exponents is not None):
                self._see(item, name, exponents)
        return result

    def _see(self, tensor: Tensor, name: str, exponents: int | None) -> None:
        self.largest = max(self.largest, tensor.numel())
        if len(self.seen) >= MOST_TENSORS:
            self.truncated = True
            return
        shape, dtype = tuple(tensor.shape), str(tensor.dtype)
        self.seen.append(MadeTensor(shape, dtype, f"aten.{name}", self.line(), exponents))

    def _exponents(self, name: str, args: tuple) -> int | None:
        """How many different values an exponential is given; None for any other operation."""
        if "scaled_dot_product" in name:
            return int(args[1].shape[-2])
        factor, argument = EXPONENTIALS.get(name), args[0] if args else None
        if name == "pow" and isinstance(argument, int | float) and argument > 0:
            factor, argument = math.log(argument), args[1]
        if not isinstance(argument, Tensor) or not argument.is_floating_point():
            return None
        if factor is None and name not in NORMALISERS:
            return None
        known = argument[~argument.isnan()].double()
        if factor is not None and known.numel():
            largest = float(known.max()) * factor
            self.largest_exponent = max(largest, self.largest_exponent or -math.inf)
        if known.numel() > MOST_EXPONENTS:
            return known.numel()
        return int(torch.unique((known * 8).round()).numel())
