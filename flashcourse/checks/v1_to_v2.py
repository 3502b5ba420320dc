"""The first exercises of lesson 4: FlashAttention-1 and its traffic, and version 2.

Every right value is a closed form or a formula of the papers, in float64.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from flashcourse.attention import attention, scores
from flashcourse.checks.cuts import BLOCK, whole_rows
from flashcourse.checks.in_float64 import (
    CLOSE,
    SKELETON,
    Inputs,
    all_failed,
    block_maxima,
    changed_finding,
    inputs,
    is_close,
    log_sum_exp,
    off,
    tensor_finding,
    unpack,
    with_reason,
    works_in_tiles,
)
from flashcourse.checks.marks import Finding, Marks
from flashcourse.checks.probe import Part, call, finding_of, judge, tensor_problem
from flashcourse.checks.registry import exercise
from flashcourse.recording import record
from flashcourse.records import Record
from flashcourse.words import Text

# ---------------------------------------------------------------- exercise 1: traffic

_TRAFFIC = (
    (
        8.0,
        Text(
            "The output is exact attention, rescaled from tile to tile.",
            "输出就是精确注意力，由逐块重新缩放得到。",
        ),
    ),
    (6.0, Text("The elements read are counted right.", "读的元素数对了。")),
    (6.0, Text("The elements written are counted right.", "写的元素数对了。")),
)
# rows, dim, block_q, block_kv
_TRAFFIC_CASES = ((16, 4, 4, 8), (10, 3, 4, 3), (7, 5, 2, 16))


@exercise(
    "v1v2.traffic",
    points=20,
    title=Text("FlashAttention-1 and its traffic", "FlashAttention-1 与它的访存量"),
)
def check_traffic(answer: Any, *, seed: int = 0) -> Marks:
    """FlashAttention-1 and its HBM traffic: 2Nd + Tc(3Nd + 4N) (arXiv 2205.14135, Algorithm 1)."""
    findings: list[Finding | None] = [None, None, None]
    for rows, dim, block_q, block_kv in _TRAFFIC_CASES:
        data = inputs(rows, rows, dim, dim, seed)
        # Large scores too: the output must stay exact where exp(S) alone would overflow.
        data = data._replace(q=data.q * (300 if rows == 10 else 1))
        outcome = call(answer, *data, block_q=block_q, block_kv=block_kv, skeleton=SKELETON)
        if outcome.error:
            return all_failed("v1v2.traffic", _TRAFFIC, outcome.error)
        value = unpack(outcome, ("out", "read", "written"))
        if isinstance(value, Finding):
            return all_failed("v1v2.traffic", _TRAFFIC, value)
        found = (
            _output_finding(value[0], data, block_kv, "out"),
            _read_finding(value[1], rows, dim, block_q, block_kv),
            _written_finding(value[2], rows, dim, block_q, block_kv),
        )
        findings = [old or new for old, new in zip(findings, found, strict=True)]
    findings[0] = findings[0] or whole_rows(answer, seed, block_q=BLOCK, block_kv=BLOCK)
    return judge(
        "v1v2.traffic", [Part(*part, f) for part, f in zip(_TRAFFIC, findings, strict=True)]
    )


def _number_finding(value: Any, right: int, name: str, slips: dict[int, Text]) -> Finding | None:
    """What is wrong with a count of elements."""
    if isinstance(value, Tensor) and value.numel() == 1:
        value = value.item()
    if isinstance(value, bool) or not isinstance(value, int | float):
        kind = type(value).__name__
        return Finding(
            Text(
                f"`{name}` should be a number, not a {kind}.", f"`{name}` 应是一个数，不是 {kind}。"
            )
        )
    if value == right:
        return None
    why = slips.get(int(value)) if math.isfinite(value) else None
    en = f"`{name}` is {value:g}. It should be {right}."
    zh = f"`{name}` 是 {value:g}，应为 {right}。"
    return Finding(with_reason(en, zh, why), variable=name, hints=_TALLY_HINTS)


_TALLY_HINTS = (
    Text(
        "At one tile, which tensors cross between HBM and the chip, and in which direction?",
        "处理一个小块时，哪些张量要跨过显存与片上的边界？各是什么方向？",
    ),
    Text(
        "Per tile: Q, O, m, l in; O, m, l out. Use `.numel()`: the last block may be short.",
        "每块：读入 Q、O、m、l；写出 O、m、l。用各块的 `.numel()`，因为最后一块可能较短。",
    ),
)


def _read_finding(value: Any, N: int, d: int, block_q: int, block_kv: int) -> Finding | None:
    Tr, Tc = math.ceil(N / block_q), math.ceil(N / block_kv)
    right = 2 * N * d + Tc * (2 * N * d + 2 * N)
    slips = {
        N * d + Tr * 2 * N * d: Text(
            "That is FlashAttention-2's count: Q is still your outer loop.",
            "这是 FlashAttention-2 的数：你的外层循环还是 Q。",
        ),
        2 * N * d + Tc * 2 * N * d: Text(
            "m and l come from HBM as well.", "m 和 l 也是从显存读来的。"
        ),
        2 * N * d + Tc * (N * d + 2 * N): Text(
            "At each tile both Q and O come in, not one of them.",
            "每个小块要读入 Q 和 O，而不是只读其中一个。",
        ),
        2 * N * d + Tc * N * d: Text(
            "At each tile O, m and l come in, not only Q.", "每个小块除了 Q，还要读入 O、m、l。"
        ),
        2 * N * d: Text(
            "That is K and V alone. What comes in for each Q block?",
            "这只是 K 和 V。每个 Q 块还要读入什么？",
        ),
    }
    slips |= {
        right * size: Text("Count elements, not bytes.", "请数元素，不要数字节。")
        for size in (2, 4, 8)
    }
    return _number_finding(value, right, "read", slips)


def _written_finding(value: Any, N: int, d: int, block_q: int, block_kv: int) -> Finding | None:
    Tc = math.ceil(N / block_kv)
    right = Tc * (N * d + 2 * N)
    slips = {
        N * d + 2 * N: Text(
            "That is one write of each row. With K/V outside, every outer step writes all of O.",
            "这是每行只写一次。K/V 在外层时，外层每走一步都要写一遍整个 O。",
        ),
        Tc * N * d: Text("m and l are written too.", "m 和 l 也要写回。"),
        N * d + N: Text(
            "That is FlashAttention-2's count: O and L once.",
            "这是 FlashAttention-2 的数：O 和 L 各写一次。",
        ),
        0: Text("Nothing was counted as written.", "一个写操作都没记。"),
    }
    slips |= {
        right * size: Text("Count elements, not bytes.", "请数元素，不要数字节。")
        for size in (2, 4, 8)
    }
    return _number_finding(value, right, "written", slips)


def _output_finding(value: Any, data: Inputs, block: int, name: str) -> Finding | None:
    """What is wrong with an attention output, and if it is a known slip, which."""
    slips = _output_slips(data, block)
    return tensor_finding(value, attention(*data), data.q.dtype, name, slips, _OUTPUT_HINTS)


_OUTPUT_HINTS = (
    Text(
        "Which maximum are the old terms of the output relative to, and which one the new terms?",
        "输出里的旧项以哪个最大值为基准？新项又以哪个为基准？",
    ),
    Text(
        "Old terms: exp(m_i − m_new). New terms: exp(S_ij − m_new). l gets the same factors as O.",
        "旧项乘 exp(m_i − m_new)，新项是 exp(S_ij − m_new)。指数和 l 与 O 用同样的因子。",
    ),
)


def _output_slips(data: Inputs, block: int) -> list[tuple[Tensor, Text]]:
    """Results of frequent slips, in closed form."""
    S, v = scores(data.q, data.k), data.v
    M = block_maxima(S, block)
    top, exact = S.max(dim=-1, keepdim=True).values, attention(*data)
    weights = torch.exp(S - top)
    l = weights.sum(dim=-1, keepdim=True)
    stale, inverse = torch.exp(S - M), torch.exp(S - 2 * M + top)
    raw = torch.exp(scores(data.q, data.k) * math.sqrt(data.q.shape[1]))
    return [
        (exact * l, Text("The division by l at the end is missing.", "缺了最后除以 l。")),
        (exact / l, Text("It is divided by l twice.", "除以 l 除了两次。")),
        (
            stale @ v / stale.sum(dim=-1, keepdim=True),
            Text(
                "The old O and l are never rescaled by exp(m_i − m_new).",
                "旧的 O 和 l 从没乘过 exp(m_i − m_new)。",
            ),
        ),
        (
            stale @ v / l,
            Text(
                "l is rescaled by exp(m_i − m_new), O isn't.", "l 乘了 exp(m_i − m_new)，O 没有乘。"
            ),
        ),
        (
            inverse @ v / l,
            Text(
                "O is multiplied by the inverse of exp(m_i − m_new): the factor must be at most 1.",
                "O 乘的是 exp(m_i − m_new) 的倒数：这个因子不能大于 1。",
            ),
        ),
        (
            raw @ v / raw.sum(dim=-1, keepdim=True),
            Text("The scores lack the factor 1/√dim.", "分数少乘了 1/√dim。"),
        ),
    ]


# ---------------------------------------------------------------- exercise 2: FlashAttention-2

_V2 = (
    (10.0, Text("`out` is exact attention.", "`out` 就是精确注意力。")),
    (5.0, Text("`L` is the logarithm of the sum of exponentials.", "`L` 就是指数和的对数。")),
    (
        5.0,
        Text(
            "It works in tiles, and divides after the loop only.",
            "按小块计算，而且只在循环之后做除法。",
        ),
    ),
    (
        5.0,
        Text(
            "It keeps the dtype and stands large scores and ragged blocks.",
            "dtype 不变，大分数和不整齐的块都没问题。",
        ),
    ),
)


@exercise("v1v2.v2", points=25, title=Text("FlashAttention-2, forward", "FlashAttention-2 前向"))
def check_v2(answer: Any, *, seed: int = 0) -> Marks:
    """FlashAttention-2, forward: O and L = m + log l (arXiv 2307.08691, Algorithm 1)."""
    data = inputs(12, 20, 5, 7, seed)
    outcome = call(answer, *data, block_size=4, skeleton=SKELETON)
    if outcome.error:
        return all_failed("v1v2.v2", _V2, outcome.error)
    value = unpack(outcome, ("out", "L"))
    if isinstance(value, Finding):
        return all_failed("v1v2.v2", _V2, value)
    out, L = _output_finding(value[0], data, 4, "out"), _lse_finding(value[1], data)
    robust = _robust_finding(answer, seed)
    run = record(answer, *data, block_size=4)
    tiled = changed_finding(outcome) or _deferred_finding(run, data)
    whole = whole_rows(answer, seed, block_size=BLOCK) if out is None else None
    in_tiles = not whole and not (out and L) or works_in_tiles(answer, run, data, 4)
    if whole and not in_tiles:  # right, but none of it is FlashAttention's
        out, tiled, robust = whole, tiled or whole, robust or whole
    elif out and L and not in_tiles:
        tiled = tiled or out
    elif not robust:
        tiled = tiled or whole
    found = (out, L, tiled, robust)
    return judge("v1v2.v2", [Part(*part, f) for part, f in zip(_V2, found, strict=True)])


def _lse_finding(value: Any, data: Inputs) -> Finding | None:
    right = log_sum_exp(data)
    m = scores(data.q, data.k).max(dim=-1, keepdim=True).values
    l = torch.exp(right - m)
    slips = [
        (m, Text("That is m alone.", "这只是 m。")),
        (l, Text("That is l alone.", "这只是 l。")),
        (l.log(), Text("That is log l: add m.", "这是 log l：还要加上 m。")),
        (m + l, Text("That is m + l: take the logarithm of l.", "这是 m + l：l 要先取对数。")),
        (m - l.log(), Text("The sign of log l is wrong.", "log l 的符号反了。")),
        (
            right / math.log(2),
            Text(
                "That is in base 2. L is the natural logarithm.", "这是以 2 为底的。L 用自然对数。"
            ),
        ),
    ]
    return tensor_finding(value, right, data.q.dtype, "L", slips, _LSE_HINTS)


_LSE_HINTS = (
    Text(
        "exp(S − L) must be the finished probability: what is its denominator, relative to m?",
        "exp(S − L) 应当就是概率：它的分母相对于 m 是什么？",
    ),
)


def _deferred_finding(run: Record, data: Inputs) -> Finding | None:
    if run.error is not None:  # though the call came back
        return finding_of(run.error)
    rows, keys, width = data.q.shape[0], data.k.shape[0], data.v.shape[1]
    if run.largest_intermediate >= rows * keys:
        return Finding(
            Text(
                f"It made a tensor of {run.largest_intermediate} numbers: all {rows} × {keys} "
                "scores at once. Work on one tile at a time.",
                f"产生了一个有 {run.largest_intermediate} 个数的张量："
                f"{rows} × {keys} 个分数全在里面。每次只处理一个小块。",
            )
        )
    q_blocks = math.ceil(rows / 4)
    divisions = [
        made
        for made in run.tensors
        if made.op.split(".")[-1].rstrip("_") in ("div", "reciprocal", "true_divide")
        and made.shape in ((4, width), (4, 1))
    ]
    seen = _tiles_seen(run, data)
    if "raw" in seen or (len(divisions) <= 2 * q_blocks and "normalised" not in seen):
        return None
    return Finding(
        Text(
            f"The output is still normalised at each tile ({len(divisions)} divisions for "
            f"{q_blocks} Q blocks). Divide once for each Q block, after the loop.",
            f"每个小块里还在归一化（{q_blocks} 个 Q 块，做了 {len(divisions)} 次除法）。"
            "每个 Q 块只在循环之后除一次。",
        ),
        todo=2,
        variable="out_i",
        line=divisions[-1].line if divisions else None,
    )


def _tiles_seen(run: Record, data: Inputs) -> set[str]:
    """How out_i stood after the tiles but the last: 'raw' (times l), 'normalised', or neither."""
    found = set()
    for tile in run.tiles:
        out_i, seen = tile.after.get("out_i"), tile.j + 4
        if out_i is None or seen >= data.k.shape[0]:
            continue
        part = Inputs(data.q[tile.i : tile.i + 4], data.k[:seen], data.v[:seen])
        exact, S = attention(*part), scores(part.q, part.k)
        l = torch.exp(S - S.max(dim=-1, keepdim=True).values).sum(dim=-1, keepdim=True)
        found |= {
            name for name, o in (("raw", exact * l), ("normalised", exact)) if is_close(out_i, o)
        }
    return found


def _robust_finding(answer: Callable[..., Any], seed: int) -> Finding | None:
    """float32 and bfloat16 stay what they are; scores in the hundreds; blocks that don't divide."""
    for dtype, tolerance, size, block in (
        (torch.float64, CLOSE, 300.0, 3),
        (torch.float32, 1e-4, 1.0, 64),
        (torch.bfloat16, 0.1, 1.0, 5),
    ):
        data = inputs(7, 11, 3, 2, seed + 1, dtype)
        data = data._replace(q=data.q * size)
        outcome = call(answer, *data, block_size=block, skeleton=SKELETON)
        if outcome.error:
            return finding_of(outcome.error)
        value = unpack(outcome, ("out", "L"))
        if isinstance(value, Finding):
            return value
        for name, got, right in zip(
            ("out", "L"), value, (attention(*data), log_sum_exp(data)), strict=True
        ):
            problem = tensor_problem(got, right.shape, dtype)
            if problem:
                return problem
            wrong = off(got, right) / max(1.0, right.abs().max().item())
            if wrong > tolerance:
                kind = str(dtype).removeprefix("torch.")
                return Finding(
                    Text(
                        f"With {kind}, scores × {size:g} and block_size {block}, "
                        f"`{name}` is off by {wrong:.2g}.",
                        f"{kind}、分数 × {size:g}、block_size {block} 时，"
                        f"`{name}` 误差 {wrong:.2g}。",
                    ),
                    variable=name,
                )
    return None
