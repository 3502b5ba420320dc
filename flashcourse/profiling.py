"""Look at what a function costs on this machine: time and memory by operator, peak memory, seconds.

Thin layers over `torch.profiler` and the CUDA memory counters: a lesson's cell runs alike on a CPU
and on a GPU, and with every supported version of torch. CPU seconds say nothing about a GPU.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Any

import torch
from torch import Tensor
from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile

from flashcourse.words import Text, course_language

# Kineto reports each start and stop on stderr (torch 2.13); in a notebook that is a wall of red.
os.environ.setdefault("KINETO_LOG_LEVEL", "99")

__all__ = ["Operator", "allocated_bytes", "operators", "profile_of", "seconds_of", "show_operators"]


@dataclass(frozen=True)
class Operator:
    """One operator in a profile. seconds: on the GPU if there is one, else on the CPU, without what
    it calls. bytes: what it allocated for its results and scratch space (on the same device).
    """

    name: str
    calls: int
    seconds: float
    bytes: int


def profile_of(function: Callable[..., Any], *inputs: Tensor) -> Any:
    """The torch profile of one call, after one call to warm up."""
    activities = [ProfilerActivity.CPU]
    if torch.cuda.is_available():
        activities.append(ProfilerActivity.CUDA)
    function(*inputs)
    with profile(activities=activities, profile_memory=True) as prof:
        function(*inputs)
    return prof


def operators(prof: Any) -> list[Operator]:
    """The operators of a profile that took time or memory, slowest first."""
    on_gpu = torch.cuda.is_available()
    found = []
    for event in prof.key_averages():
        # torch 2.1–2.3 say cuda where later versions say device.
        names = ("device", "cuda") if on_gpu else ("cpu",)
        spent = next((v for n in names if (v := getattr(event, f"self_{n}_time_total", 0))), 0)
        held = next((v for n in names if (v := getattr(event, f"self_{n}_memory_usage", 0))), 0)
        # A GPU kernel has a row of its own beside the operator that launched it: not counted twice.
        is_operator = event.device_type == DeviceType.CPU and event.key != "[memory]"
        if is_operator and (spent > 0 or held > 0):
            found.append(Operator(event.key, event.count, spent / 1e6, max(held, 0)))
    return sorted(found, key=lambda op: -op.seconds)


def show_operators(prof: Any, rows: int = 6) -> None:
    """Print the slowest operators of a profile, with their share of the time and their memory."""
    found = operators(prof)
    total = sum(op.seconds for op in found) or 1.0
    words = (
        Text("operator", "算子"),
        Text("calls", "次数"),
        Text("share", "占比"),
        Text("new", "新占"),
    )
    lang = course_language()
    print(f"{words[0].in_(lang):32}" + "".join(f"{w.in_(lang):>10}" for w in words[1:]))
    for op in found[:rows]:
        print(
            f"{op.name[:32]:32}{op.calls:10}{op.seconds / total:10.0%}{op.bytes / 2**20:8.1f} MiB"
        )


def allocated_bytes(function: Callable[..., Any], *inputs: Tensor) -> int:
    """Memory that one call needs beyond its inputs.

    On a GPU: the peak while it runs. On a CPU, which keeps no such counter: the sum of what its
    operators allocate, as torch.profiler sees it, so more than the peak when something is freed.
    """
    if not inputs[0].is_cuda:
        return sum(op.bytes for op in operators(profile_of(function, *inputs)))
    function(*inputs)
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    function(*inputs)
    torch.cuda.synchronize()
    return torch.cuda.max_memory_allocated() - before


def seconds_of(function: Callable[..., Any], *inputs: Tensor, repeats: int = 10) -> float:
    """Median wall time of a call, after one call to warm up; waits for the GPU to finish."""
    wait = torch.cuda.synchronize if inputs[0].is_cuda else (lambda: None)
    function(*inputs)
    times = []
    for _ in range(repeats):
        wait()
        began = time.perf_counter()
        function(*inputs)
        wait()
        times.append(time.perf_counter() - began)
    return median(times)
