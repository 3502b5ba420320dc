"""The exercises of lesson 5: a schedule, exp2 by a polynomial, conditional rescaling, an overflow.

A schedule is checked against the rules of the model and a lower bound of its length. exp2 is
checked against float64 and the paper's Table 2. Rescales are counted from the running maxima.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from flashcourse.attention import attention, scores
from flashcourse.checks.cuts import BLOCK, whole_rows
from flashcourse.checks.in_float64 import (
    Inputs,
    all_failed,
    inputs,
    is_close,
    log_sum_exp,
    off,
    unpack,
    with_reason,
    works_in_tiles,
)
from flashcourse.checks.marks import Finding, Marks
from flashcourse.checks.probe import Part, call, finding_of, judge, tensor_problem
from flashcourse.checks.ready_made import used
from flashcourse.checks.registry import exercise
from flashcourse.exp2 import COEFFICIENTS, polynomial
from flashcourse.recording import record
from flashcourse.records import MadeTensor, Record
from flashcourse.rescaling import E4M3_MAX, LOG2_E, running_maxima, used_maxima
from flashcourse.schedule import (
    SMS,
    Interval,
    TileCycles,
    best_makespan,
    intervals,
    makespan,
    problems,
    tile_cycles,
    utilisation,
)
from flashcourse.words import Text

_SKELETON = ("whole", "fraction", "power", "m_i", "l_i", "out_i", "S_ij", "P_ij", "share", "safe")


def _part(part: tuple[float, Text], finding: Finding | None) -> Part:
    return Part(part[0], part[1], finding)


# ---------------------------------------------------------------- exercise 1: a schedule

_SCHEDULE = (
    (6.0, Text("The schedule obeys every rule.", "调度符合全部规则。")),
    (
        5.0,
        Text(
            "H100: the tensor cores are busy 99% of the time or more.",
            "H100：Tensor Core 忙碌 99% 以上。",
        ),
    ),
    (
        5.0,
        Text(
            "B200: the tensor cores are busy 98% of the time or more.",
            "B200：Tensor Core 忙碌 98% 以上。",
        ),
    ),
    (
        4.0,
        Text("It is as short as can be for other cycles too.", "换成别的周期数，也排得一样紧。"),
    ),
)
_UTILISATION_HINTS = (
    Text(
        "While warpgroup 0 is in exp, which unit is idle, and who could use it?",
        "warpgroup 0 在做 exp 时，哪个单元闲着？谁可以用它？",
    ),
    Text(
        "Give the tensor cores PV of a tile and QK of the same warpgroup's next tile in one go, "
        "then let the other warpgroup have them.",
        "让一个 warpgroup 在 Tensor Core 上连着做完本块的 PV 和下一块的 QK，再轮到另一个。",
    ),
    Text(
        "Keep the time at which each unit and each warpgroup is free. An op starts at the later of "
        "the two.",
        "记下每个单元、每个 warpgroup 各自何时空闲。每一步从两者中较晚的时刻开始。",
    ),
)


@exercise("v3v4.schedule", points=20, title=Text("Two warpgroups", "两个 warpgroup"))
def check_schedule(answer: Any, *, seed: int = 0) -> Marks:
    """Two warpgroups in ping-pong (FlashAttention-3, arXiv 2407.08608, §3.1; the model is ours)."""
    cases = [(32, tile_cycles(SMS[name])) for name in ("H100", "B200")]
    draw = random.Random(1000 + seed)
    cases += [
        (20, TileCycles(*(float(draw.randint(1, 40) * 32) for _ in range(3)))) for _ in "1234"
    ]
    made = []
    for tiles, cycles in cases:
        outcome = call(answer, tiles, *cycles, skeleton=_SKELETON)
        if outcome.error:
            return all_failed("v3v4.schedule", _SCHEDULE, outcome.error)
        schedule, wrong = _read_schedule(outcome.value, tiles, cycles)
        if wrong:
            return all_failed("v3v4.schedule", _SCHEDULE, Finding(wrong))
        made.append(schedule)
    findings = (
        None,
        _utilisation_finding(made[0], "H100", 0.99),
        _utilisation_finding(made[1], "B200", 0.98),
        _length_finding(made[2:], cases[2:]),
    )
    return judge("v3v4.schedule", [_part(p, f) for p, f in zip(_SCHEDULE, findings, strict=True)])


def _read_schedule(
    value: Any, tiles: int, cycles: TileCycles
) -> tuple[list[Interval], Text | None]:
    try:
        schedule = intervals(value)
    except (ValueError, TypeError) as error:
        wanted = "(warpgroup, op, start, end)"
        return [], Text(
            f"Return a list of {wanted}. {error}", f"请返回 {wanted} 组成的列表。{error}"
        )
    for interval in schedule:
        if not (math.isfinite(interval.start) and math.isfinite(interval.end)):
            at = f"({interval.start:g}, {interval.end:g})"
            return [], Text(
                f"Times must be finite, not {at}.", f"时间必须是有限的数，不能是 {at}。"
            )
    wrong = problems(schedule, tiles, cycles)
    return schedule, wrong[0] if wrong else None


def _utilisation_finding(schedule: list[Interval], name: str, target: float) -> Finding | None:
    reached = utilisation(schedule)
    if reached >= target:
        return None
    return Finding(
        Text(
            f"{name}, 32 tiles each: the tensor cores are busy {reached:.1%} of the time. "
            f"{target:.0%} is possible.",
            f"{name}，每个 warpgroup 32 块：Tensor Core 忙碌 {reached:.1%}，"
            f"可以达到 {target:.0%}。",
        ),
        hints=_UTILISATION_HINTS,
    )


def _length_finding(
    schedules: list[list[Interval]], cases: list[tuple[int, TileCycles]]
) -> Finding | None:
    for schedule, (tiles, cycles) in zip(schedules, cases, strict=True):
        took, allowed = makespan(schedule), best_makespan(tiles, cycles) + sum(cycles)
        if took > allowed + 1e-6:
            qk, exp, pv = (f"{c:g}" for c in cycles)
            return Finding(
                Text(
                    f"With QK {qk}, exp {exp}, PV {pv} cycles and {tiles} tiles each, yours takes "
                    f"{took:g} cycles. {allowed:g} is possible.",
                    f"QK {qk}、exp {exp}、PV {pv} 个周期，每个 warpgroup {tiles} 块时，"
                    f"你用了 {took:g} 个周期，可以做到 {allowed:g}。",
                ),
                hints=_UTILISATION_HINTS,
            )
    return None


# ---------------------------------------------------------------- exercise 2: exp2

_EXP2 = (
    (
        10.0,
        Text(
            "On [0, 1) the error is that of FlashAttention-4's degree 3.",
            "在 [0, 1) 上，误差与 FlashAttention-4 的 3 次多项式一致。",
        ),
    ),
    (
        9.0,
        Text(
            "Negative arguments and whole powers of 2 are right.", "负的自变量和 2 的整数次幂都对。"
        ),
    ),
    (
        6.0,
        Text(
            "Very negative arguments and −∞ give next to nothing.",
            "很小的自变量和 −∞ 得到几乎为 0 的数。",
        ),
    ),
)
PAPER_LARGEST = 8.77e-5  # FlashAttention-4, Table 2, degree 3, float32


@exercise(
    "v3v4.exp2", points=25, title=Text("2 to the x, by a polynomial", "用多项式算 2 的 x 次方")
)
def check_exp2(answer: Any, *, seed: int = 0) -> Marks:
    """2^x by range reduction and a cubic (FlashAttention-4, arXiv 2603.05451, §3.1, Table 2)."""
    fraction = torch.arange(1 << 14) / (1 << 14)
    generator = torch.Generator().manual_seed(1000 + seed)
    wide = torch.cat([torch.rand(4000, generator=generator) * 134 - 126, torch.arange(-126.0, 9)])
    low = torch.tensor([-127.5, -200.0, -1e6, -math.inf])
    values = []
    for x in (fraction, wide.reshape(5, -1), low):
        outcome = call(answer, x, skeleton=_SKELETON)
        if outcome.error:
            return all_failed("v3v4.exp2", _EXP2, outcome.error)
        problem = tensor_problem(outcome.value, x.shape, torch.float32, finite=x is not low)
        if problem:
            return all_failed("v3v4.exp2", _EXP2, problem)
        values.append(outcome.value)
    values[1] = values[1].reshape(-1)
    findings = [
        _fraction_finding(fraction, values[0]),
        _range_finding(wide, values[1]),
        _low_finding(low, values[2]),
    ]
    if findings[0] and findings[1] and not _grows(wide, values[1]):  # 0 everywhere, or a library's
        findings[2] = findings[2] or findings[1]
    if not all(findings):
        # Between 0 and 1 the whole part is 0: an honest 2^whole gets a single number.
        library = used(answer, torch.arange(64) / 64).of_several()
        findings = [f or (_by_library(library[0]) if library else None) for f in findings]
    return judge("v3v4.exp2", [_part(p, f) for p, f in zip(_EXP2, findings, strict=True)])


ROUNDING = 1e-6  # a cubic in float32, in whatever order it is summed, and the coefficients' digits


def _cubic(x: Tensor) -> Tensor:
    """2^⌊x⌋ (1 + c1 f + c2 f² + c3 f³) in float64, where f = x − ⌊x⌋."""
    whole = x.double().floor()
    f = x.double() - whole
    c0, c1, c2, c3 = COEFFICIENTS[3]
    return torch.exp2(whole) * (c0 + f * (c1 + f * (c2 + f * c3)))


def _far_from_cubic(x: Tensor, value: Tensor) -> Tensor:
    """How far each value is from the polynomial's, relatively."""
    return (value.double() / _cubic(x) - 1).abs()


def _is_exact(x: Tensor, value: Tensor) -> bool:
    """Whether all values are 2^x as a library gives it."""
    return bool((_relative(value, x) < ROUNDING).all())


def _grows(x: Tensor, value: Tensor) -> bool:
    """Whether whole powers of 2 are about 2^134 apart at the ends of the range, and not exact all
    over: something brings the exponent into the number, and no library's exponential does."""
    low, high = value[x == -126], value[x == 8]
    apart = bool((low > 0).all()) and bool((high.double() > 1e30 * low.double()).all())
    return apart and not _is_exact(x, value)


def _relative(value: Tensor, x: Tensor) -> Tensor:
    return (value.double() / torch.exp2(x.double()) - 1).abs()


def _fraction_finding(x: Tensor, value: Tensor) -> Finding | None:
    far = _far_from_cubic(x, value)
    if bool((far <= ROUNDING).all()):
        return None
    largest = _relative(value, x).max().item()
    en = (
        f"On [0, 1) the largest relative error is {largest:.2e}. The paper has {PAPER_LARGEST:.2e}."
    )
    zh = f"在 [0, 1) 上最大相对误差是 {largest:.2e}，论文是 {PAPER_LARGEST:.2e}。"
    why = _fraction_slip(x, value, largest)
    if why is None and abs(largest / PAPER_LARGEST - 1) <= 0.02:
        at = int(far.argmax())
        numbers = [f"{float(n):.7g}" for n in (x[at], value[at], _cubic(x)[at])]
        why = Text(
            "But 2^({}) is {}; the polynomial with these coefficients gives {}.".format(*numbers),
            "但 2^({}) 算成了 {}，而用这几个系数的多项式得到 {}。".format(*numbers),
        )
    return Finding(with_reason(en, zh, why), hints=(_HORNER,))


def _by_library(made: MadeTensor) -> Finding:
    called = made.op.removeprefix("aten.").strip("_")
    return Finding(
        Text(
            f"`{called}` got the fraction of x. The polynomial is to do that, with products and "
            "sums only.",
            f"x 的小数部分进了 `{called}`。这一部分应当由多项式来算，只用乘法和加法。",
        ),
        line=made.line,
        hints=(_HORNER,),
    )


_HORNER = Text(
    "Horner: start with the highest coefficient; multiply by the fraction and add the next.",
    "Horner：从最高次系数开始，乘以小数部分，再加上下一个系数。",
)
_TOO_GOOD = Text(
    "That is too good for a cubic: is a library's exp at work?",
    "三次多项式没有这么准：是不是用了库里的指数函数？",
)


def _fraction_slip(x: Tensor, value: Tensor, largest: float) -> Text | None:
    backwards = polynomial(x, COEFFICIENTS[3][::-1])
    short = polynomial(x, COEFFICIENTS[3][:3])
    if largest < ROUNDING:
        return _TOO_GOOD
    if torch.allclose(value, backwards, rtol=1e-5):
        return Text("The coefficients are in reverse order.", "系数的次序反了。")
    if torch.allclose(value, short, rtol=1e-5):
        return Text("The cubic term is missing.", "缺了三次项。")
    return None


def _range_finding(x: Tensor, value: Tensor) -> Finding | None:
    error = _far_from_cubic(x, value)
    worst = int(error.argmax())
    whole = x == x.round()
    if not bool((error <= ROUNDING).all()):
        at, got, want = (f"{float(n):.7g}" for n in (x[worst], value[worst], _cubic(x)[worst]))
        en = f"2^({at}) is {got}. By the polynomial it should be {want}."
        zh = f"2^({at}) 算成了 {got}，按多项式应为 {want}。"
        why = _TOO_GOOD if _is_exact(x, value) else _range_slip(x, value)
        hint = Text(
            "For x = −2.25 and a fraction in [0, 1): what are the whole part and the fraction?",
            "x = −2.25 时，若小数部分要在 [0, 1) 里，整数部分和小数部分各是多少？",
        )
        return Finding(with_reason(en, zh, why), hints=(hint,))
    if bool((_relative(value, x)[whole] > 0).any()):
        return Finding(
            Text(
                "Whole powers of 2 should be exact: at fraction 0 the polynomial is 1.",
                "2 的整数次幂应当精确：小数部分为 0 时，多项式等于 1。",
            )
        )
    return None


def _range_slip(x: Tensor, value: Tensor) -> Text | None:
    """Another way to split x, in closed form: cut towards 0, to the nearest, or not at all."""
    for whole, text in (
        (
            x.trunc(),
            Text(
                "x was cut towards 0: negative numbers need `floor`.",
                "x 是向 0 截断的：负数要用 `floor`。",
            ),
        ),
        (
            x.round(),
            Text(
                "x was rounded to the nearest: this polynomial is for [0, 1).",
                "x 取了最近的整数：这个多项式只用于 [0, 1)。",
            ),
        ),
        (
            torch.zeros_like(x),
            Text(
                "The polynomial got all of x, not its fraction.",
                "多项式用了整个 x，而不是小数部分。",
            ),
        ),
    ):
        made = polynomial(x - whole, COEFFICIENTS[3]).double() * torch.exp2(whole.double())
        if torch.allclose(value.double(), made, rtol=1e-5):
            return text
    return None


def _low_finding(x: Tensor, value: Tensor) -> Finding | None:
    for argument, result in zip(x.tolist(), value.tolist(), strict=True):
        if not 0 <= result <= 2.0**-126:
            return Finding(
                Text(
                    f"2^({argument:g}) gives {result:.4g}. It should be 0 or next to it: clamp x "
                    "at −127 first. Masked scores are −∞.",
                    f"2^({argument:g}) 得到 {result:.4g}，应为 0 或几乎为 0：先把 x 截到 −127。"
                    "被掩掉的分数就是 −∞。",
                ),
                variable="x",
            )
    return None


# ---------------------------------------------------------------- exercise 3: conditional rescaling

_RESCALE = (
    (8.0, Text("`out` is exact attention, with every τ.", "不论 τ 取多少，`out` 都是精确注意力。")),
    (5.0, Text("`L` is right.", "`L` 正确。")),
    (9.0, Text("The count of rescales is right.", "缩放次数数对了。")),
    (
        8.0,
        Text(
            "Skipped tiles keep the stale maximum, and P stays below 2^τ.",
            "跳过的块沿用旧的最大值，P 不超过 2^τ。",
        ),
    ),
)
_TAUS = (8.0, 0.0, 3.0)
_RESCALE_HINTS = (
    Text(
        "A row has one maximum that P, l and O are relative to. When exactly may it stay as it is?",
        "一行的 P、l、O 都以同一个最大值为基准。什么时候可以不改它？",
    ),
    Text(
        "Decide first: `m_use` is the new maximum where it exceeds m_i by more than τ, else m_i. "
        "After that nothing differs from FlashAttention-2.",
        "先做决定：新最大值比 m_i 高出 τ 以上，`m_use` 才取新值，否则就是 m_i。"
        "之后与 FlashAttention-2 完全一样。",
    ),
)


def spread_inputs(seed: int) -> Inputs:
    """Inputs whose row maxima rise by little and by much: 12 rows, 40 keys."""
    data = inputs(12, 40, 4, 3, seed)
    return data._replace(q=data.q * 6)


def rescales(data: Inputs, block: int, tau: float) -> int:
    """(row, tile) pairs, the first tile left out, at which the maximum in use changes."""
    used = used_maxima(running_maxima(scores(data.q, data.k) * LOG2_E, block), tau)
    return int((used[:, 1:] != used[:, :-1]).sum())


@exercise("v3v4.rescale", points=30, title=Text("Conditional rescaling", "条件缩放"))
def check_rescale(answer: Any, *, seed: int = 0) -> Marks:
    """Conditional rescaling, τ in base 2 (FlashAttention-4, arXiv 2603.05451, §3.1.4)."""
    data, block = spread_inputs(seed), 4
    findings: list[Finding | None] = [None, None, None, None]
    counted = False
    for tau in _TAUS:
        outcome = call(answer, *data, block_size=block, tau=tau, skeleton=_SKELETON)
        if outcome.error:
            return all_failed("v3v4.rescale", _RESCALE, outcome.error)
        value = unpack(outcome, ("out", "L", "rescales"))
        if isinstance(value, Finding):
            return all_failed("v3v4.rescale", _RESCALE, value)
        found = (
            _near_finding("out", value[0], attention(*data), tau),
            _near_finding("L", value[1], log_sum_exp(data), tau),
            _count_finding(value[2], data, block, tau),
            None,
        )
        counted |= found[2] is None
        findings = [old or new for old, new in zip(findings, found, strict=True)]
    run = record(answer, *data, block_size=block)
    whole = None if findings[0] else whole_rows(answer, seed, block_size=BLOCK)
    findings[3] = findings[0] or _stale_finding(answer, run) or whole
    if whole and not works_in_tiles(answer, run, data, block):
        findings[0] = whole  # right, but none of it is FlashAttention's
    if findings[2] is not None and findings[3] is not None and not counted:
        # No tile was skipped and none counted, whatever the threshold: no threshold is at work.
        findings[:2] = [finding or _NO_THRESHOLD for finding in findings[:2]]
    return judge("v3v4.rescale", [_part(p, f) for p, f in zip(_RESCALE, findings, strict=True)])


_NO_THRESHOLD = Finding(
    Text(
        "No τ changes what your function does: this is version 2 as it was. Build the threshold in "
        "first.",
        "不论 τ 取多少，你的函数都一样：这还是第 2 版。请先把阈值加进去。",
    ),
    variable="m_use",
    hints=_RESCALE_HINTS,
)


def _near_finding(name: str, value: Any, right: Tensor, tau: float) -> Finding | None:
    problem = tensor_problem(value, right.shape, torch.float64)
    if problem or is_close(value, right):
        return problem
    en = f"τ = {tau:g}: `{name}` is off by up to {off(value, right):.2g}."
    zh = f"τ = {tau:g}：`{name}` 最大误差 {off(value, right):.2g}。"
    if name == "L" and is_close(value, right * LOG2_E):
        en += " That is in base 2: L is the natural logarithm."
        zh += "这是以 2 为底的：L 用自然对数。"
    return Finding(Text(en, zh), variable=name, hints=_RESCALE_HINTS)


def _count_finding(value: Any, data: Inputs, block: int, tau: float) -> Finding | None:
    if isinstance(value, Tensor) and value.numel() == 1:
        value = value.item()
    right = rescales(data, block, tau)
    if isinstance(value, bool) or not isinstance(value, int | float):
        kind = type(value).__name__
        return Finding(
            Text(
                f"`rescales` should be a number, not a {kind}.",
                f"`rescales` 应是一个数，不是 {kind}。",
            )
        )
    if value == right:
        return None
    en = f"τ = {tau:g}: you count {value:g} rescales. It should be {right}."
    zh = f"τ = {tau:g}：你数出 {value:g} 次缩放，应为 {right}。"
    why = _count_slips(data, block, tau).get(int(value)) if math.isfinite(value) else None
    return Finding(with_reason(en, zh, why), variable="rescales", hints=_RESCALE_HINTS)


def _count_slips(data: Inputs, block: int, tau: float) -> dict[int, Text]:
    S = scores(data.q, data.k)
    right, rows = rescales(data, block, tau), data.q.shape[0]
    tiles = math.ceil(data.k.shape[0] / block)
    maxima = running_maxima(S * LOG2_E, block)
    used = used_maxima(maxima, tau)
    natural = used_maxima(running_maxima(S, block), tau)
    changed = used[:, 1:] != used[:, :-1]
    by_block = torch.stack([part.any(dim=0) for part in changed.split(block)])
    # The most telling last: a later entry wins where two counts are equal.
    return {
        int((natural[:, 1:] != natural[:, :-1]).sum()): Text(
            "τ is in base 2: compare scores times log2(e).", "τ 以 2 为底：比较时分数要乘 log2(e)。"
        ),
        int((maxima[:, 1:] - maxima[:, :-1] > tau).sum()): Text(
            "Compare with the maximum in use, not with the previous tile's.",
            "要和正在使用的最大值比，而不是和上一块的最大值比。",
        ),
        int(by_block.sum()): Text("Count rows, not tiles.", "要数行，不是数块。"),
        rows * (tiles - 1) - right: Text("That is the number of skipped ones.", "这是跳过的次数。"),
        right + rows: Text(
            "The first tile has nothing to rescale: don't count it.",
            "第一块没有什么可缩放，不要计入。",
        ),
    }


def _stale_finding(answer: Callable[..., Any], run: Record) -> Finding | None:
    """With τ = 8 (the default) some exp arguments must be above 0, and none above 8 in base 2."""
    largest = run.largest_exp_argument
    if run.error is not None:
        return finding_of(run.error)
    if largest is None or 1e-9 < largest * LOG2_E <= 8 + 1e-9:
        return None
    if largest > 0.1:
        return Finding(
            Text(
                f"An exponential got the argument {largest:.3g} ({largest * LOG2_E:.3g} in base "
                "2): more than τ = 8 allows.",
                f"有个指数函数的自变量是 {largest:.3g}（以 2 为底是 {largest * LOG2_E:.3g}），"
                "超过了 τ = 8。",
            ),
            hints=_RESCALE_HINTS,
        )
    if _keeps_an_old_maximum(answer):  # P comes of no recorded exponential: a polynomial, say
        return None
    return Finding(
        Text(
            "No P was above 1 with τ = 8: the maximum was updated at every tile, so nothing was "
            "skipped.",
            "τ = 8 时没有一个 P 大于 1：最大值每块都更新了，其实什么也没跳过。",
        ),
        hints=_RESCALE_HINTS,
    )


def _keeps_an_old_maximum(answer: Callable[..., Any]) -> bool:
    """Where the score rises by 2000 and τ is larger still, P = exp(2000) overflows: only an updated
    maximum keeps it finite."""
    ones, keys = torch.ones(4, 1, dtype=torch.float64), torch.zeros(8, 1, dtype=torch.float64)
    keys[4:] = 2000.0
    outcome = call(answer, ones, keys, torch.ones_like(keys), block_size=4, tau=1e4)
    out = outcome.value[0] if isinstance(outcome.value, tuple | list) and outcome.value else None
    return isinstance(out, Tensor) and not bool(out.isfinite().all())


# ---------------------------------------------------------------- exercise 4: the overflow

_OVERFLOW = (
    (8.0, Text("The share of clipped numbers is right.", "被截断的比例对了。")),
    (7.0, Text("The largest safe offset is right.", "最大的安全偏移对了。")),
)


@exercise("v3v4.overflow", points=15, title=Text("The real bug", "真实的错误"))
def check_overflow(answer: Any, *, seed: int = 0) -> Marks:
    """FP8 with a stale maximum (github.com/Dao-AILab/flash-attention, issues 2577 and 2716)."""
    findings: list[Finding | None] = [None, None]
    for spread, offset, tau in ((6.0, 8, 4.0), (3.0, 8, 0.0), (6.0, 6, 3.9), (9.0, 8, 0.5)):
        data = inputs(16, 64, 4, 4, seed)
        S = scores(data.q * spread, data.k) * LOG2_E
        used = used_maxima(running_maxima(S, 8), tau).repeat_interleave(8, dim=1)
        outcome = call(answer, S, used, offset, tau, skeleton=_SKELETON)
        if outcome.error:
            return all_failed("v3v4.overflow", _OVERFLOW, outcome.error)
        value = unpack(outcome, ("share", "safe"))
        if isinstance(value, Finding):
            return all_failed("v3v4.overflow", _OVERFLOW, value)
        found = (_share_finding(value[0], S - used, offset), _safe_finding(value[1], tau))
        findings = [old or new for old, new in zip(findings, found, strict=True)]
    return judge("v3v4.overflow", [_part(p, f) for p, f in zip(_OVERFLOW, findings, strict=True)])


def _plain_number(value: Any) -> float | None:
    if isinstance(value, Tensor) and value.numel() == 1:
        value = value.item()
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _share_finding(value: Any, exponent: Tensor, offset: float) -> Finding | None:
    share = lambda limit, extra: (exponent + extra > math.log2(limit)).double().mean().item()
    right, number = share(E4M3_MAX, offset), _plain_number(value)
    if number is not None and abs(number - right) < 1e-9:
        return None
    got = "None" if number is None else f"{number:.6g}"
    en, zh = f"`share` is {got}. It should be {right:.6g}.", f"`share` 是 {got}，应为 {right:.6g}。"
    slips = [
        (share(E4M3_MAX, 0), Text("Is the offset in the exponent?", "指数里加上偏移了吗？")),
        (share(256, offset), Text("The limit of e4m3 is 448.", "e4m3 的上限是 448。")),
        (
            right * exponent.numel(),
            Text(
                "That is a count: divide by the number of scores.", "这是个数：要除以分数的总数。"
            ),
        ),
        (1 - right, Text("Those are the ones that fit.", "这些是放得下的。")),
    ]
    why = next((t for wrong, t in slips if number is not None and abs(number - wrong) < 1e-9), None)
    return Finding(with_reason(en, zh, why), variable="share")


def _safe_finding(value: Any, tau: float) -> Finding | None:
    right = max(n for n in range(-64, 64) if 2.0 ** (tau + n) <= E4M3_MAX)
    number = _plain_number(value)
    if number == right:
        return None
    got = "None" if number is None else f"{number:g}"
    hint = Text(
        "The largest P is 2^(τ + offset). Which whole offsets keep that at or below 448?",
        "P 最大是 2^(τ + offset)。哪些整数偏移能让它不超过 448？",
    )
    return Finding(
        Text(
            f"τ = {tau:g}: `safe` is {got}. It should be {right}.",
            f"τ = {tau:g}：`safe` 是 {got}，应为 {right}。",
        ),
        variable="safe",
        hints=(hint,),
    )
