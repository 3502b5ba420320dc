"""The exercises of lesson 4: FlashAttention-1 and its traffic, version 2, a misprint, backward.

Every right value is a closed form, a formula of the papers or autograd in float64.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from flashcourse.attention import attention, scores
from flashcourse.checks.cuts import BLOCK, whole_rows
from flashcourse.checks.marks import Finding, Marks
from flashcourse.checks.probe import Failure, Outcome, Part, call, finding_of, judge, tensor_problem
from flashcourse.checks.registry import exercise
from flashcourse.recording import record
from flashcourse.records import Record
from flashcourse.words import Text

CLOSE = 1e-10  # largest error against float64 in float64
_SKELETON = ("q_block", "m_i", "l_i", "out_i", "m_new", "l_new", "out_new", "P_ij", "D_i", "dS_ij")


class Inputs(NamedTuple):
    q: Tensor
    k: Tensor
    v: Tensor


def inputs(
    rows: int, keys: int, dim: int, dim_v: int, seed: int, dtype: torch.dtype = torch.float64
) -> Inputs:
    """Random q (rows, dim), k (keys, dim), v (keys, dim_v) from a generator of their own."""
    generator = torch.Generator().manual_seed(1000 + seed)

    def draw(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64).to(dtype)

    return Inputs(draw(rows, dim), draw(keys, dim), draw(keys, dim_v))


def off(value: Tensor, right: Tensor) -> float:
    """The largest absolute difference, ∞ if it isn't a number."""
    difference = (value.double() - right.double()).abs().max().item()
    return math.inf if math.isnan(difference) else difference


def is_close(value: Any, right: Tensor, tolerance: float = CLOSE) -> bool:
    return (
        isinstance(value, Tensor) and value.shape == right.shape and off(value, right) < tolerance
    )


def explain(value: Tensor, slips: Sequence[tuple[Tensor, Text]]) -> Text | None:
    """The sentence of the first slip whose result the value equals."""
    return next((text for wrong, text in slips if is_close(value, wrong)), None)


def with_reason(en: str, zh: str, why: Text | None) -> Text:
    """The sentence, and after it the likely reason if one is known."""
    return Text(f"{en} {why.en}", f"{zh}{why.zh}") if why else Text(en, zh)


def tensor_finding(
    value: Any,
    right: Tensor,
    dtype: torch.dtype,
    name: str,
    slips: Sequence[tuple[Tensor, Text]],
    hints: tuple[Text, ...],
) -> Finding | None:
    """What is wrong with a tensor, and if it is the result of a known slip, which."""
    problem = tensor_problem(value, right.shape, dtype)
    if problem or is_close(value, right):
        return problem
    error = f"{off(value, right):.2g}"
    en, zh = f"`{name}` is off by up to {error}.", f"`{name}` 最大误差 {error}。"
    text = with_reason(en, zh, explain(value, slips))
    return Finding(text, variable=name, hints=hints)


def unpack(outcome: Outcome, names: Sequence[str]) -> tuple[Any, ...] | Finding:
    """The parts of a returned tuple, or a Finding that says what should be returned."""
    value = outcome.value
    if isinstance(value, tuple | list) and len(value) == len(names):
        return tuple(value)
    got = f"{type(value).__name__}" + (
        f" of {len(value)}" if isinstance(value, tuple | list) else ""
    )
    wanted = ", ".join(names)
    return Finding(
        Text(
            f"Return {len(names)} things: `{wanted}`. You returned a {got}.",
            f"请返回 {len(names)} 项：`{wanted}`。你返回的是 {got}。",
        )
    )


def all_failed(
    exercise_id: str, parts: Sequence[tuple[float, Text]], why: Failure | Finding
) -> Marks:
    """No part could be looked at: the function failed, or returned another kind of thing."""
    if isinstance(why, Failure):
        return judge(exercise_id, [Part(p, text, finding_of(why), why.kind) for p, text in parts])
    return judge(exercise_id, [Part(p, text, why) for p, text in parts])


def block_maxima(S: Tensor, block: int) -> Tensor:
    """For each score, the largest score up to the end of its block of keys: the m its tile used."""
    last = [min(j - j % block + block, S.shape[1]) - 1 for j in range(S.shape[1])]
    return torch.cummax(S, dim=1).values[:, last]


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
        outcome = call(answer, *data, block_q=block_q, block_kv=block_kv, skeleton=_SKELETON)
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
    outcome = call(answer, *data, block_size=4, skeleton=_SKELETON)
    if outcome.error:
        return all_failed("v1v2.v2", _V2, outcome.error)
    value = unpack(outcome, ("out", "L"))
    if isinstance(value, Finding):
        return all_failed("v1v2.v2", _V2, value)
    out, L = _output_finding(value[0], data, 4, "out"), _lse_finding(value[1], data)
    robust = _robust_finding(answer, seed)
    run = record(answer, *data, block_size=4)
    tiled = _changed_finding(outcome) or _deferred_finding(run, data)
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


def works_in_tiles(answer: Callable[..., Any], run: Record, data: Inputs, block: int) -> bool:
    """Whether a run took an exponential of every score, of a whole row never, and not for show: the
    output is another where the exponentials are."""
    rows, keys = data.q.shape[0], data.k.shape[0]
    exponentials = [made for made in run.tensors if made.exponents is not None]
    if run.largest_intermediate >= rows * keys or any(keys in made.shape for made in exponentials):
        return False
    if sum(made.elements for made in exponentials) < rows * keys or run.output is None:
        return False
    disturbed = record(answer, *data, block_size=block, disturb=True).output
    return disturbed is not None and not is_close(disturbed, run.output)


def log_sum_exp(data: Inputs) -> Tensor:
    """L = log Σ exp(S), (rows, 1), in float64."""
    return torch.logsumexp(scores(data.q.double(), data.k.double()), dim=-1, keepdim=True)


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


def _changed_finding(outcome: Outcome) -> Finding | None:
    if not outcome.inputs_changed:
        return None
    names = ", ".join(f"`{name}`" for name in outcome.inputs_changed)
    return Finding(
        Text(
            f"Your function wrote to its input {names}. Make a new tensor instead.",
            f"函数改写了输入 {names}。请生成新的张量。",
        )
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
        outcome = call(answer, *data, block_size=block, skeleton=_SKELETON)
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


# ---------------------------------------------------------------- exercise 3: the misprint

_MISPRINT = (
    (4.0, Text("The error of the printed line is right.", "照印版的误差对了。")),
    (3.0, Text("The corrected line gives exact attention.", "改正后的一行给出精确注意力。")),
    (3.0, Text("The verdict is right.", "判断正确。")),
)


def printed_output(data: Inputs, block: int) -> Tensor:
    """O of FlashAttention-2's Algorithm 1 as printed, with the ⁻¹ on the factor of O.

    A term of tile j is multiplied by exp(m_t − m_{t−1}) at each later tile t. The product
    telescopes to exp(m_last − m_j), so its weight is exp(S − m_j)·exp(m_last − m_j). l is right.
    """
    S = scores(data.q, data.k)
    top = S.max(dim=-1, keepdim=True).values
    l = torch.exp(S - top).sum(dim=-1, keepdim=True)
    return torch.exp(S - 2 * block_maxima(S, block) + top) @ data.v / l


@exercise("v1v2.misprint", points=10, title=Text("As printed, or not?", "照印的，还是不照？"))
def check_misprint(answer: Any, *, seed: int = 0) -> Marks:
    """Which version of a line is right, by both errors (arXiv 2307.08691, Algorithm 1, line 10)."""
    findings: list[Finding | None] = [None, None, None]
    measured = Measured()
    for rows, keys, block, size in _MISPRINT_CASES:
        data = inputs(rows, keys, 4, 4, seed)
        data = data._replace(v=data.v * size)
        outcome = call(answer, *data, block_size=block, skeleton=_SKELETON)
        if outcome.error and keys == 1 and outcome.error.kind != "too_slow":
            continue  # fine elsewhere: a single key was not asked for
        if outcome.error:
            return all_failed("v1v2.misprint", _MISPRINT, outcome.error)
        value = unpack(outcome, ("printed_error", "corrected_error", "right"))
        if isinstance(value, Finding):
            return all_failed("v1v2.misprint", _MISPRINT, value)
        measured.add([_as_number(error) for error in value[:2]], keys, size)
        printed = None if keys == 1 else _printed_finding(value[0], data, block)
        found = (printed, _corrected_finding(value[1], size), _verdict_finding(value[2]))
        findings = [old or new for old, new in zip(findings, found, strict=True)]
    if not measured.corrected:
        findings[1] = findings[1] or _GUESSED
    if findings[0] is not None and not measured.either:
        findings[2] = findings[2] or _GUESSED
    return judge(
        "v1v2.misprint", [Part(*part, f) for part, f in zip(_MISPRINT, findings, strict=True)]
    )


# rows, keys, block, what v is multiplied by. With a single key nothing is rounded.
_MISPRINT_CASES = ((12, 12, 3, 1.0), (8, 20, 6, 2.0**40), (6, 1, 2, 2.0**40))
_GUESSED = Finding(
    Text(
        "The error of a run in float64 is hardly ever exactly 0, and it grows with `v`. Yours "
        "doesn't: measure it.",
        "在 float64 下实际跑一遍，误差几乎不会恰好为 0，而且会随 `v` 变大。你的不是这样：请实测。",
    ),
    variable="corrected_error",
)


class Measured:
    """Which of two returned numbers the rounding errors of a real run can be, in every case."""

    def __init__(self) -> None:
        self._can_be = [True, True]

    def add(self, errors: Sequence[float | None], keys: int, size: float) -> None:
        """size: the largest |v|, roughly. One key has the weight 1, and nothing is rounded."""
        for n, error in enumerate(errors):
            if error is None:
                fits = False
            else:
                fits = error == 0 if keys == 1 else 1e-18 * size < error < 1e-10 * size
            self._can_be[n] &= fits

    @property
    def corrected(self) -> bool:
        return self._can_be[1]

    @property
    def either(self) -> bool:
        """Whether one is, be the two swapped or not."""
        return any(self._can_be)


def _as_number(value: Any) -> float | None:
    if isinstance(value, Tensor) and value.numel() == 1:
        value = value.item()
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _printed_finding(value: Any, data: Inputs, block: int) -> Finding | None:
    right = off(printed_output(data, block), attention(*data))
    number = _as_number(value)
    if number is not None and abs(number - right) <= 1e-6 * right:
        return None
    got = "no number" if number is None else f"{number:.6g}"
    got_zh = "不是一个数" if number is None else f"{number:.6g}"
    why = _FIRST_TILE if number is not None and math.isnan(number) else None
    en = (
        f"The printed line's error: {got}. With the inverse on O's factor only, from the second "
        f"tile on, it is {right:.6g} here."
    )
    zh = f"照印版的误差：{got_zh}。只对 O 的因子取倒数、从第二块起，这里应是 {right:.6g}。"
    return Finding(
        with_reason(en, zh, why),
        variable="printed_error",
        hints=(
            Text(
                "Does your printed run change the factor of O and nothing else? l keeps its own.",
                "照印的那一遍，是不是只改了 O 的因子？l 的因子不动。",
            ),
        ),
    )


_FIRST_TILE = Text(
    "At the first tile ∞·0 is NaN: leave the factor out there.",
    "第一块里 ∞·0 得 NaN：那里不要乘这个因子。",
)


def _corrected_finding(value: Any, size: float) -> Finding | None:
    """size: what v was multiplied by; the error grows with it."""
    number = _as_number(value)
    if number is not None and 0 <= number < CLOSE * size:
        return None
    got = "no number" if number is None else f"{number:.2g}"
    got_zh = "不是一个数" if number is None else f"{number:.2g}"
    return Finding(
        Text(
            f"The corrected line's error: {got}. In float64 it should be below {CLOSE * size:.2g}.",
            f"改正版的误差：{got_zh}。float64 下应小于 {CLOSE * size:.2g}。",
        ),
        variable="corrected_error",
    )


def _verdict_finding(value: Any) -> Finding | None:
    if value == "corrected":
        return None
    if value == "printed":
        return Finding(
            Text("Look at the two errors again: which is near 0?", "再看看两个误差：哪个接近 0？"),
            variable="right",
        )
    return Finding(
        Text(
            '`right` should be "printed" or "corrected".',
            '`right` 应为 "printed" 或 "corrected"。',
        ),
        variable="right",
    )


# ---------------------------------------------------------------- exercise 4: recomputation

_BACKWARD = (
    (8.0, Text("`dq` matches autograd.", "`dq` 与 autograd 一致。")),
    (8.0, Text("`dk` matches autograd.", "`dk` 与 autograd 一致。")),
    (8.0, Text("`dv` matches autograd.", "`dv` 与 autograd 一致。")),
    (
        6.0,
        Text(
            "P is recomputed in tiles: no tensor of the size of S.",
            "P 按小块重算：没有和 S 一样大的张量。",
        ),
    ),
)
# rows, keys, dim, dim_v, block
_BACKWARD_CASES = ((12, 12, 5, 5, 4), (10, 17, 3, 6, 4))


class Gradients(NamedTuple):
    dq: Tensor
    dk: Tensor
    dv: Tensor


def gradients(data: Inputs, dout: Tensor) -> Gradients:
    """dq, dk, dv of softmax attention by autograd, in float64."""
    q, k, v = (t.double().clone().requires_grad_() for t in data)
    (torch.softmax(scores(q, k), dim=-1) @ v).backward(dout.double())
    assert q.grad is not None and k.grad is not None and v.grad is not None
    return Gradients(q.grad, k.grad, v.grad)


@exercise("v1v2.backward", points=30, title=Text("Recompute", "重计算"))
def check_backward(answer: Any, *, seed: int = 0) -> Marks:
    """dq, dk, dv with P recomputed from L (arXiv 2307.08691, Algorithm 2)."""
    findings: list[Finding | None] = [None, None, None, None]
    for rows, keys, dim, dim_v, block in _BACKWARD_CASES:
        data = inputs(rows, keys, dim, dim_v, seed)
        dout = inputs(rows, rows, dim_v, dim_v, seed + 7).q
        saved = (attention(*data), log_sum_exp(data), dout)
        outcome = call(answer, *data, *saved, block_size=block, skeleton=_SKELETON)
        if outcome.error:
            return all_failed("v1v2.backward", _BACKWARD, outcome.error)
        value = unpack(outcome, ("dq", "dk", "dv"))
        if isinstance(value, Finding):
            return all_failed("v1v2.backward", _BACKWARD, value)
        right, slips = gradients(data, dout), _gradient_slips(data, dout, block)
        found = [
            tensor_finding(got, want, torch.float64, name, slips[name], _BACKWARD_HINTS)
            for name, got, want in zip(Gradients._fields, value, right, strict=True)
        ]
        run = record(answer, *data, block_size=block, extra=saved)
        found.append(_changed_finding(outcome) or _whole_matrix_finding(run, rows, keys))
        findings = [old or new for old, new in zip(findings, found, strict=True)]
    fine = [n for n in range(3) if findings[n] is None]
    from_L, by_hand = _what_follows(answer, seed)
    for n in fine:
        findings[n] = None if from_L[n] or by_hand[n] else _IGNORED
    if fine and not any(from_L[n] for n in fine):
        findings[3] = findings[3] or _IGNORED
    elif not fine and not any(made.exponents for made in run.tensors):
        findings[3] = findings[3] or findings[0]
    return judge(
        "v1v2.backward", [Part(*part, f) for part, f in zip(_BACKWARD, findings, strict=True)]
    )


def _what_follows(answer: Callable[..., Any], seed: int) -> tuple[list[bool], list[bool]]:
    """Which of dq, dk, dv come of the `L` handed over, and which of the chain rule by hand.

    `L` and `out` are altered, row by row: P = exp(S − L) and D are then another's, and so are the
    gradients. Autograd gives the same as ever. D may come of `out`, of P, or of an output computed
    anew, which is the same where all is true. Whoever has a softmax in place of exp(S − L), but D
    of `out`, wrote the rule out.
    """
    rows, keys, dim, dim_v, block = _BACKWARD_CASES[1]
    data, made = inputs(rows, keys, dim, dim_v, seed), inputs(rows, rows, dim_v, 1, seed + 7)
    dout, out, L = made.q, attention(*data) + made.k, log_sum_exp(data) + made.v / 4
    value = call(answer, *data, out, L, dout, block_size=block, skeleton=_SKELETON).value
    got = tuple(value) if isinstance(value, tuple | list) and len(value) == 3 else (None,) * 3
    S, of_out = scores(data.q, data.k), (dout * out).sum(dim=-1, keepdim=True)
    P = torch.exp(S - L)
    of_P = (P * (dout @ data.v.T)).sum(dim=-1, keepdim=True)
    of_exact = (dout * attention(*data)).sum(dim=-1, keepdim=True)
    kept = [_closed_form(data, dout, P, D) for D in (of_out, of_P, of_exact)]
    ruled = _closed_form(data, dout, torch.softmax(S, dim=-1), of_out)
    from_L = [any(is_close(got[n], g[n]) for g in kept) for n in range(3)]
    return from_L, [*(is_close(got[n], ruled[n]) for n in (0, 1)), False]


_IGNORED = Finding(
    Text(
        "Your gradients don't follow from the `L` and `out` that they are given: with another `L` "
        "they are not those of P = exp(S − L). Nothing is recomputed from what the forward pass "
        "kept.",
        "你的梯度不是由传入的 `L` 和 `out` 得出的：换一个 `L`，得到的并不是 P = exp(S − L) 的梯度。"
        "也就是说，没有用前向保存的东西来重算。",
    ),
    variable="P_ij",
    hints=(
        Text(
            "Which of the six inputs does your code never read?",
            "六个输入里，哪一个你的代码从没读过？",
        ),
        Text(
            "P_ij = exp(S_ij − L_i) needs no maximum and no sum: L holds both.",
            "P_ij = exp(S_ij − L_i) 不用再求最大值和指数和：L 里两者都有。",
        ),
    ),
)


def _closed_form(data: Inputs, dout: Tensor, P: Tensor, D: Tensor) -> Gradients:
    """dq, dk, dv for the given P (rows, keys) and D (rows, 1)."""
    q, k, v = data
    dS = P * (dout @ v.T - D) / math.sqrt(q.shape[1])
    return Gradients(dS @ k, dS.T @ q, P.T @ dout)


_BACKWARD_HINTS = (
    Text(
        "Each tile adds to what is there. Which rows of q, k, v, L and dout belong to this tile?",
        "每个小块都是往已有的结果上加。q、k、v、L、dout 的哪些行属于这一块？",
    ),
    Text(
        "P = exp(S − L), S scaled; dS = P ∘ (dO Vᵀ − D); the scale once in dq and once in dk.",
        "P = exp(S − L)，S 要缩放；dS = P ∘ (dO Vᵀ − D)；dq 和 dk 各乘一次缩放。",
    ),
)


def _gradient_slips(data: Inputs, dout: Tensor, block: int) -> dict[str, list[tuple[Tensor, Text]]]:
    """Gradients with one frequent slip each, written out for the whole matrix."""
    q, k, v = data
    scale = 1 / math.sqrt(q.shape[1])
    P = torch.softmax(scores(q, k), dim=-1)
    dP = dout @ v.T
    D = (P * dP).sum(dim=-1, keepdim=True)
    dS = P * (dP - D)
    no_d, late_d = P * dP, P * dP - D
    keys, rows = k.shape[0], q.shape[0]
    k0, q0 = (keys - 1) // block * block, (rows - 1) // block * block
    scale_text = Text("The factor 1/√dim is missing.", "少乘了 1/√dim。")
    twice = Text("The factor 1/√dim is there twice.", "1/√dim 乘了两次。")
    d_text = Text("D is not subtracted.", "没有减去 D。")
    late = Text(
        "P multiplies the difference dP − D, not dP alone.", "P 要乘整个差 dP − D，而不只是 dP。"
    )
    last = Text(
        "Only the last tile's share is left: add with `+=`.",
        "只剩下最后一块的份额：请用 `+=` 累加。",
    )
    return {
        "dq": [
            (dS @ k, scale_text),
            (dS @ k * scale**2, twice),
            (no_d @ k * scale, d_text),
            (late_d @ k * scale, late),
            (dS[:, k0:] @ k[k0:] * scale, last),
        ],
        "dk": [
            (dS.T @ q, scale_text),
            (dS.T @ q * scale**2, twice),
            (no_d.T @ q * scale, d_text),
            (late_d.T @ q * scale, late),
            (dS[q0:].T @ q[q0:] * scale, last),
        ],
        "dv": [
            (dS.T @ dout, Text("dv needs P, not dS.", "dv 用的是 P，不是 dS。")),
            (P.T @ dout * scale, Text("dv has no factor 1/√dim.", "dv 不乘 1/√dim。")),
            (P[q0:].T @ dout[q0:], last),
        ],
    }


def _whole_matrix_finding(run: Record, rows: int, keys: int) -> Finding | None:
    if run.error is not None:  # though the call came back
        return finding_of(run.error)
    if run.largest_intermediate < rows * keys:
        return None
    return Finding(
        Text(
            f"It made a tensor of {run.largest_intermediate} numbers, as many as the {rows} × "
            f"{keys} matrix P. Recompute one tile at a time.",
            f"产生了一个有 {run.largest_intermediate} 个数的张量，"
            f"和 {rows} × {keys} 的 P 一样大。请每次只重算一个小块。",
        )
    )
