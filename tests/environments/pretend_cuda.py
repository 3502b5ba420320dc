"""A GPU in name only: tensors that say cuda:0, refuse to mix with the CPU's, and lie in its memory.

It shows on any machine whether code keeps to one device and uses the GPU when there is one. What
CUDA itself does (kernels, streams, rounding, memory) it can't show: `make env-gpu` does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.profiler import ProfilerActivity, profile
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

__name__ = "torch.pretend_cuda"  # so that its frames are a library's, not the learner's

CPU, CUDA = torch.device("cpu"), torch.device("cuda:0")
MIXED = "Expected all tensors to be on the same device, but found at least two devices"
LARGE = 2**20  # elements; what an operator makes of larger tensors is not worked out
aten = torch.ops.aten
READ = (Tensor.tolist, Tensor.__float__, Tensor.__int__, Tensor.__repr__, Tensor.__format__)


class OnGPU(Tensor):
    """A tensor of device cuda:0 whose numbers are those of `raw`, a CPU tensor."""

    raw: Tensor

    @staticmethod
    def __new__(cls, raw: Tensor) -> OnGPU:
        made = Tensor._make_wrapper_subclass(
            cls,
            raw.shape,
            strides=raw.stride(),
            storage_offset=raw.storage_offset(),
            dtype=raw.dtype,
            device=CUDA,
        )
        made.raw = raw
        return made

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        return operator(func, args, kwargs or {})


class Operators(TorchDispatchMode):
    """Also sees the operators that make tensors, such as torch.zeros(…, device="cuda")."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return operator(func, args, kwargs or {})


class Calls(TorchFunctionMode):
    """Replaces the few calls that ask torch's C++ for the CUDA that isn't there."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func in (Tensor.to, Tensor.cuda):
            return moved(func, *args, **kwargs)
        if func is torch.tensor and torch.device(kwargs.get("device") or CPU).type == "cuda":
            return OnGPU(func(*args, **{**kwargs, "device": CPU}))
        if args and isinstance(args[0], OnGPU):
            if func is Tensor.__getitem__:
                return part(*args)
            if func is Tensor.__setitem__:
                return fill(part(*args[:2]), args[2])
            if func is Tensor.copy_:
                return fill(*args)
            if func in READ:
                return func(args[0].raw, *args[1:], **kwargs)
            if func is Tensor.numpy:
                raise TypeError("can't convert cuda:0 device type tensor to numpy.")
        return func(*args, **kwargs)


def operator(func: Any, args: tuple, kwargs: dict) -> Any:
    """Run one operator on the CPU; its results are where CUDA would have put them."""
    given = [x for x in pytree.tree_leaves((args, kwargs)) if isinstance(x, Tensor)]
    there = [x for x in given if isinstance(x, OnGPU)]
    moves = func in (aten._to_copy.default, aten.copy_.default)
    if there and not moves and any(x.dim() for x in given if not isinstance(x, OnGPU)):
        raise RuntimeError(f"{MIXED}, cuda:0 and cpu! ({func})")
    device = kwargs.get("device")
    if device is not None:
        kwargs = {**kwargs, "device": CPU}
    on_gpu = torch.device(device).type == "cuda" if device is not None else bool(there)
    if func is aten.copy_.default:
        on_gpu = isinstance(args[0], OnGPU)
    large = any(x.numel() > LARGE for x in there)
    made = outline(func, args, kwargs) if large else func(*raw(args), **raw(kwargs))
    return wrapped(made, {id(x.raw): x for x in there}) if on_gpu else made


def outline(func: Any, args: tuple, kwargs: dict) -> Any:
    """Zeros of the shapes and dtypes that an operator's results have, at no cost."""

    def shape_only(x: Any) -> Any:
        return torch.empty_like(x, device="meta") if isinstance(x, Tensor) else x

    def zeros(x: Any) -> Any:
        return torch.zeros((), dtype=x.dtype).expand(x.shape) if isinstance(x, Tensor) else x

    shapes = func(*pytree.tree_map(shape_only, raw(args)), **raw(kwargs))
    return pytree.tree_map(zeros, shapes)


def raw(values: Any) -> Any:
    return pytree.tree_map(lambda x: x.raw if isinstance(x, OnGPU) else x, values)


def wrapped(made: Any, known: dict[int, OnGPU]) -> Any:
    """New tensors on the GPU; one that an operator changed in place stays the object it was."""

    def wrap(value: Any) -> Any:
        if not isinstance(value, Tensor):
            return value
        return known[id(value)] if id(value) in known else OnGPU(value)

    return pytree.tree_map(wrap, made)


def moved(func: Callable, x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """x.to(…) and x.cuda()."""
    asked = [*args, *kwargs.values()]
    names = [a for a in asked if isinstance(a, str | torch.device)]
    names += [a.device for a in asked if isinstance(a, Tensor)]
    up = func is Tensor.cuda or any(torch.device(name).type == "cuda" for name in names)
    if not up or isinstance(x, OnGPU):
        return func(x, *args, **kwargs)
    dtypes = [a.dtype if isinstance(a, Tensor) else a for a in asked]
    dtype = next((d for d in dtypes if isinstance(d, torch.dtype)), x.dtype)
    return OnGPU(x.detach().clone().to(dtype))


def part(x: Tensor, index: Any) -> Tensor:
    """x[index], by one operator for each entry."""
    entries = index if isinstance(index, tuple) else (index,)
    dim = 0
    for entry in entries:
        if entry is None:
            x, dim = x.unsqueeze(dim), dim + 1
        elif entry is Ellipsis:
            dim = x.dim() - sum(isinstance(e, int | slice) for e in entries[entries.index(...) :])
        elif isinstance(entry, slice):
            x = aten.slice(x, dim, entry.start, entry.stop, entry.step or 1)
            dim += 1
        elif isinstance(entry, int):
            x = x.select(dim, entry)
        else:
            x, dim = aten.index(x, [*[None] * dim, entry]), dim + 1
    return x


def fill(target: Tensor, value: Any) -> Tensor:
    if not isinstance(value, Tensor):
        return target.fill_(value)
    with torch._C._AutoDispatchBelowAutograd():
        return aten.copy_(target, value)


def profile_of_cpu(activities: Any = None, **kwargs: Any) -> Any:
    """torch's profiler without the activities of a GPU."""
    return profile(activities=[ProfilerActivity.CPU], **kwargs)


@contextmanager
def pretend_cuda() -> Iterator[None]:
    """Within it, torch.cuda.is_available() and device="cuda" makes tensors of this file."""
    replaced = {
        "is_available": lambda: True,
        "_lazy_init": lambda: None,
        "get_device_name": lambda device=None: "a GPU in name only",
        "synchronize": lambda device=None: None,
        "reset_peak_memory_stats": lambda device=None: None,
        "memory_allocated": lambda device=None: 0,
        "max_memory_allocated": lambda device=None: 1,
    }
    profiler = mock.patch("torch.profiler.profile", profile_of_cpu)
    with mock.patch.multiple("torch.cuda", **replaced), profiler, Operators(), Calls():
        yield
