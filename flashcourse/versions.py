"""What FlashAttention-2 changed against FlashAttention-1, counted.

FLOPs on the output outside the matrix products, thread blocks against SMs, numbers exchanged
between warps, tiles under a causal mask, numbers that autograd keeps. Counts and models only:
nothing here is a measurement of a GPU.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

# ---------------------------------------------------------------- FLOPs outside matrix products

# 312 TFLOPs/s of 16-bit matrix products against 19.5 of anything else on an A100
# (arXiv 2307.08691, §3.1).
NON_MATMUL_COST = 312 / 19.5


def update_share(flops: float, block_kv: int, cost: float = NON_MATMUL_COST) -> float:
    """Time for updating O over time for a tile's two matrix products: cost·flops / (4·block_kv).

    The products take 4·block_q·block_kv·dim FLOPs, the update flops·block_q·dim. flops is 4 for V1
    (arXiv 2205.14135, Algorithm 1, line 12), 3 for lesson 3's function, and for V2 2, or 1 where
    the tensor core adds (arXiv 2307.08691, Algorithm 1, line 10).
    """
    return cost * flops / (4 * block_kv)


_ELEMENTWISE = ("mul", "add", "sub", "div", "reciprocal", "addcmul", "true_divide", "neg")


class _Elementwise(TorchDispatchMode):
    """Counts the elementwise results of one shape."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        super().__init__()
        self.shape, self.count = shape, 0

    def __torch_dispatch__(
        self, op: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        result = op(*args, **(kwargs or {}))
        name = op.overloadpacket.__name__.rstrip("_")
        if name in _ELEMENTWISE and isinstance(result, Tensor) and result.shape == self.shape:
            self.count += 1
        return result


def count_updates(
    function: Callable[..., Any], shape: tuple[int, int], *args: Any, **kwargs: Any
) -> int:
    """How many elementwise operations with a result of this shape function(*args, **kwargs) does.

    Choose sizes so that only tiles of the output have the shape. In-place operations count too.
    Whatever the function raises comes through.
    """
    with _Elementwise(shape) as seen:
        function(*args, **kwargs)
    return seen.count


# ---------------------------------------------------------------- parallelism


def thread_blocks(batch: int, heads: int, rows: int = 1, block_q: int | None = None) -> int:
    """Thread blocks of one launch.

    Without block_q: batch · heads (FlashAttention-1 as its paper has it). With it: times the
    number of Q blocks (arXiv 2307.08691, §3.2).
    """
    return batch * heads * (1 if block_q is None else ceil(rows / block_q))


def busy_share(blocks: int, sms: int) -> float:
    """Share of the SMs' time that has a block to work on.

    The model: one block on an SM at a time, all blocks take equally long. The last wave may be
    short, so the share is blocks / (sms · ⌈blocks / sms⌉).
    """
    return blocks / (sms * ceil(blocks / sms))


def exchanged(block_q: int, dim: int, warps: int, split: str) -> int:
    """Numbers that the warps of a thread block write to shared memory at each tile to add up O.

    split 'K': each warp has a slice of K and V, hence a partial sum of the whole output tile, and
    writes it. 'Q': each warp owns its rows and writes nothing (arXiv 2307.08691, §3.3).
    """
    if split not in ("K", "Q"):
        raise ValueError(f"split must be 'K' or 'Q', not {split!r}")
    return warps * block_q * dim if split == "K" else 0


# ---------------------------------------------------------------- causal mask


@dataclass(frozen=True)
class CausalTiles:
    """Tiles of a causal N × N score matrix: all, those computed, and of these those with a mask."""

    total: int
    computed: int
    masked: int


def causal_tiles(N: int, block_q: int, block_kv: int) -> CausalTiles:
    """Count the tiles: wholly above the diagonal is skipped, wholly below needs no mask.

    Query r sees the keys 0 … r (arXiv 2307.08691, §3.1.1).
    """
    total = computed = masked = 0
    for i in range(0, N, block_q):
        last_row = min(i + block_q, N) - 1
        for j in range(0, N, block_kv):
            last_key = min(j + block_kv, N) - 1
            total += 1
            computed += j <= last_row
            masked += j <= last_row and last_key > i
    return CausalTiles(total, computed, masked)


# ---------------------------------------------------------------- what autograd keeps


def saved_numbers(forward: Callable[[], Tensor]) -> int:
    """Numbers in the different tensors that autograd keeps for the backward pass of forward().

    Views of one storage count once.
    """
    kept: dict[int, Tensor] = {}

    def keep(tensor: Tensor) -> Tensor:
        kept[tensor.untyped_storage().data_ptr()] = tensor
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        result = forward()
        kept[result.untyped_storage().data_ptr()] = result
    return sum(tensor.numel() for tensor in kept.values())
