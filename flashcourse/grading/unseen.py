"""What a record does not show of a right result: it was computed where the recorder can't look.

Exact attention of `rows` queries over `keys` keys takes rows × keys exponentials, each of a score.
A record of a right result that holds fewer of them, or rows of something over all keys at once with
no exponential to match, is a doubt: it costs no points.
"""

from __future__ import annotations

import math
from collections import Counter

import torch
from torch import Tensor

from flashcourse.attention import attention
from flashcourse.records import MadeTensor, Record
from flashcourse.words import Text

NEAR = 0.05  # bfloat16 has three digits
# What counts keys, or waits to be filled, makes tensors over all keys without looking at any.
_EMPTY = ("arange", "empty", "zeros", "ones", "full", "new_", "tril", "triu")


def unseen(name: str, given: tuple[Tensor, ...], record: Record) -> Text | None:
    """The doubt about one recorded run of the function `name` on q, k and v, or None."""
    q, k, v = given
    if record.error is not None or record.truncated or not _is_right(record.output, q, k, v):
        return None
    scores = q.shape[0] * k.shape[0]
    made = sum(m.elements for m in record.tensors if m.exponents is not None)
    if made < scores:
        return Text(
            f"`{name}` is right, but of the {scores} exponentials that it takes only {made} were "
            "recorded",
            f"`{name}` 的结果正确，但所需的 {scores} 个指数只记录到 {made} 个",
        )
    strips = _strips(record, q, k, v)
    if strips < 2:
        return None
    return Text(
        f"`{name}` makes {strips} tensors over all {k.shape[0]} keys of a query at once, and not "
        "openly by an exponential",
        f"`{name}` 生成了 {strips} 个覆盖全部 {k.shape[0]} 个 key 的张量，却看不到相应的指数运算",
    )


def _is_right(output: Tensor | None, q: Tensor, k: Tensor, v: Tensor) -> bool:
    if output is None or not output.is_floating_point():
        return False
    exact = attention(q, k, v)
    same = output.shape == exact.shape
    return same and torch.allclose(output.double(), exact.double(), NEAR, NEAR)


def _strips(record: Record, q: Tensor, k: Tensor, v: Tensor) -> int:
    """How many tensors hold something for every key of a query; 0 where this can't be told, or
    where an exponential openly looks at most keys (the marks know that)."""
    rows, keys = q.shape[0], k.shape[0]
    if rows == keys or keys in (q.shape[1], v.shape[1]):
        return 0
    widths = {q.shape[1], v.shape[1]}  # the keys themselves, transposed

    def is_strip(made: MadeTensor) -> bool:
        sizes = Counter(made.shape)
        one = made.elements == keys and sizes[keys] == 1
        several = made.shape[-1:] == (keys,) and math.prod(made.shape[:-1]) not in widths
        return one or (several and made.elements <= rows * keys)

    if any(is_strip(m) and (m.exponents or 0) > keys / 2 for m in record.tensors):
        return 0
    numbers = (m for m in record.tensors if m.dtype.startswith(("torch.float", "torch.bfloat")))
    return sum(is_strip(m) and not _is_empty(m.op) for m in numbers)


def _is_empty(op: str) -> bool:
    return op.removeprefix("aten.").startswith(_EMPTY)
