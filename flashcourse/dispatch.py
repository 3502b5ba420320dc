"""Watch the tensors that a learner's function makes, below every torch function that it calls."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from flashcourse.records import MadeTensor

MOST_TENSORS = 100_000
MOST_ELEMENTS = 2**28  # one tensor: 1 GiB in float32
LOWEST = -745.2  # below, exp is 0 in float64
FEW = 64  # elements
MOST_EXPONENTS = 2**22  # larger arguments of exp are not counted

# What the argument is to be multiplied by to be an exponent of e.
EXPONENTIALS = {"exp": 1.0, "exp_": 1.0, "expm1": 1.0, "exp2": math.log(2), "exp2_": math.log(2)}
NORMALISERS = ("_softmax", "_log_softmax", "_safe_softmax", "logsumexp")  # safe: in SDPA


@dataclass(frozen=True)
class _Operation:
    """What is to be known of an op before it runs.

    func: the op itself. name: without its overload. new: which of its results are new tensors.
    sized: they are as large as a list of sizes says. exponential: it is one, or a softmax.
    factor: what its argument is to be multiplied by to be an exponent of e, or None.
    """

    func: Any
    name: str
    new: tuple[bool, ...]
    sized: bool
    factor: float | None
    exponential: bool


# By address: the ops live as long as torch, and their own hash is slow.
_KNOWN: dict[int, _Operation] = {}


def _operation(func: Any) -> _Operation:
    name = func.name().split("::")[-1].split(".")[0]
    factor = EXPONENTIALS.get(name)
    new = tuple(result.alias_info is None for result in func._schema.returns)
    op = _Operation(
        func=func,
        name=name,
        new=new,
        sized=any(new) and any(str(a.type) == "List[int]" for a in func._schema.arguments),
        factor=factor,
        exponential=factor is not None
        or name in ("pow", *NORMALISERS)
        or "scaled_dot_product" in name,
    )
    _KNOWN[id(func)] = op
    return op


def _sizes(args: tuple) -> int:
    """The largest number of elements that a list of sizes among the arguments asks for."""
    lists = [a for a in args if isinstance(a, list | tuple | torch.Size) and a]
    return max((math.prod(a) for a in lists if all(type(n) is int for n in a)), default=0)


class TensorWatch(TorchDispatchMode):
    """Collects the tensors made, `largest` and `largest_exponent` while it is active.

    tracer: its `line` is the learner's line that is running. Raises MemoryError in their code when
    one tensor would be larger than MOST_ELEMENTS. disturb: make each exponential up to 2 times as
    large as it is, by chance.
    """

    def __init__(self, tracer: Any, disturb: bool = False) -> None:
        super().__init__()
        self.tracer = tracer
        self.chance = torch.Generator().manual_seed(0) if disturb else None
        self.largest = 0
        self.largest_exponent: float | None = None
        self.truncated = False
        self._seen: list[tuple] = []

    @property
    def seen(self) -> tuple[MadeTensor, ...]:
        """The tensors made so far, in order."""
        return tuple(
            MadeTensor(tuple(shape), str(dtype), f"aten.{name}", line, exponents)
            for shape, dtype, name, line, exponents in self._seen
        )

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        # Asked by torch 2.6 and later. False saves the import of the compiler (some seconds).
        return False

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        # The line tracer is told of every Python call in here: so there are as few as can be.
        op = _KNOWN.get(id(func)) or _operation(func)
        if op.sized and _sizes(args) > MOST_ELEMENTS:
            raise MemoryError(f"{op.name} asked for a tensor of {_sizes(args)} elements")
        exponents = self._exponents(op, args) if op.exponential else None
        result = func(*args, **kwargs) if kwargs else func(*args)
        if self.chance is not None and exponents is not None and isinstance(result, Tensor):
            result.mul_((1 + torch.rand(result.shape, generator=self.chance)).to(result))
        results = result if isinstance(result, tuple | list) else (result,)
        for item, is_new in zip(results, op.new, strict=False):
            if isinstance(item, Tensor) and (is_new or exponents is not None):
                self.largest = max(self.largest, item.numel())
                if len(self._seen) < MOST_TENSORS:
                    line = self.tracer.line
                    self._seen.append((item.shape, item.dtype, op.name, line, exponents))
                else:
                    self.truncated = True
        return result

    def _exponents(self, op: _Operation, args: tuple) -> int | None:
        """How many different values an exponential is given; None for any other operation."""
        if "scaled_dot_product" in op.name:
            return int(args[1].shape[-2])
        factor, argument = op.factor, args[0] if args else None
        if op.name == "pow" and (base := _base(argument, args[1])) > 0:
            factor, argument = math.log(base), args[1]
        if not isinstance(argument, Tensor) or not argument.is_floating_point():
            return None
        if factor is None and op.name not in NORMALISERS:
            return None
        largest, count = _spread(argument.detach().cpu())
        if factor is not None and largest is not None:
            self.largest_exponent = max(largest * factor, self.largest_exponent or -math.inf)
        return count


def _base(base: Any, exponent: Any) -> float:
    """The base of a power, if the exponent is a tensor: of a tensor of bases, the first."""
    if not isinstance(exponent, Tensor):
        return 0.0
    if isinstance(base, Tensor) and base.numel() and not base.is_complex():
        return float(base.detach().cpu().reshape(-1)[0])
    return float(base) if isinstance(base, int | float) else 0.0


def _spread(argument: Tensor) -> tuple[float | None, int]:
    """The largest of the numbers in a tensor, None if there is none, and how many differ (to 1/8;
    of a very large tensor, how many there are). NaN is no number; LOWEST and less are not counted,
    since such an exponential is 0, as that of a masked score."""
    if argument.numel() <= FEW:
        # A tile's worth: plain Python is several times as fast as five operations of torch's.
        numbers = [x for x in argument.double().reshape(-1).tolist() if x == x]
        if not numbers:
            return None, 0
        counted = (x for x in numbers if x > LOWEST)
        return max(numbers), len({round(x * 8) if x < 2**50 else x for x in counted})
    known = argument[~argument.isnan()].double()
    largest = float(known.max()) if known.numel() else None
    if known.numel() > MOST_EXPONENTS:
        return largest, known.numel()
    return largest, int(torch.unique((known[known > LOWEST] * 8).round()).numel())
