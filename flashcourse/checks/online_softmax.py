"""The exercises of lesson 02_online_softmax: what is right, and what a wrong answer means.

Every oracle is a closed form in float64 over all the scores at once (`torch.softmax`,
`torch.cummax`, sums of exponentials relative to a given base), never a running update. Each part
of an answer is judged given the learner's own earlier values, so that one slip costs one part.
Values by which nothing can be judged, such as an infinite maximum, earn nothing for what follows,
nor does a ready-made softmax, nor a right form alone.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from flashcourse.checks.compare import (
    NOTHING,
    form_of_each,
    parts_of,
    row_finding,
    same,
    says,
    state_of,
    tidy,
    unreadable,
    write,
)
from flashcourse.checks.marks import Finding, Marks
from flashcourse.checks.online_softmax_words import (
    ALL_ROWS,
    ALPHA_ON_BOTH,
    ALPHA_ON_NEW,
    BLOCK_BASE,
    FORM_ALONE,
    FROM_ZERO,
    INVERSE,
    NO_CORRECTION,
    NO_MAX,
    NO_NEW,
    NO_OLD,
    NO_RUNNING_SUM,
    NOTHING_RIGHT,
    OLD_BASE,
    ONE_BASE,
    ONE_MAX,
    SAFE_HINTS,
    SUM_AGAIN,
    SUM_HINTS,
    TWO_BASES,
)
from flashcourse.checks.probe import Part, call, finding_of, judge, tensor_problem
from flashcourse.checks.ready_made import ready_made, used
from flashcourse.checks.registry import exercise
from flashcourse.words import Text

_SAFE_PASSED = {
    "ordinary": Text("right for ordinary scores", "普通分数：正确"),
    "large": Text("right for scores around +1000 and −1000", "+1000、−1000 附近的分数：正确"),
    "masked": Text("0 where a score is −∞", "分数为 −∞ 的位置得 0"),
    "tidy": Text("keeps the dtype, leaves `x` as it was", "dtype 不变，`x` 没有被改动"),
}


_SAFE_POINTS = {"ordinary": 6, "large": 5, "masked": 2, "tidy": 2}


def _safe_inputs(seed: int) -> dict[str, list[Tensor]]:
    made = torch.Generator().manual_seed(1000 + seed)

    def draw(n: int, dtype: torch.dtype = torch.float64) -> Tensor:
        return (2 * torch.randn(n, generator=made, dtype=torch.float64)).to(dtype)

    masked = draw(6)
    masked[[1, 4]] = -math.inf
    return {
        "ordinary": [draw(3), draw(1), draw(33), torch.zeros(4, dtype=torch.float64)],
        "large": [draw(7) + 1000, draw(7) - 1000, 100 * draw(9, torch.float32)],
        "masked": [masked],
        "tidy": [draw(5), draw(5, torch.float32), draw(5, torch.bfloat16)],
    }


def _safe_rules(x: Tensor) -> list[tuple[str, Text, Tensor]]:
    e = torch.exp(x - x.max())
    return [
        (
            "not_normalised",
            Text(
                "These are the exponentials. Divide them by their sum.",
                "这只是各个指数，还要除以它们的和。",
            ),
            e,
        ),
        ("not_normalised", Text("Divide by the sum.", "还要除以它们的和。"), torch.exp(x)),
        (
            "divided_by_mean",
            Text(
                "You divided by the mean of the exponentials. Divide by their sum.",
                "你除的是指数的平均值。应当除以它们的和。",
            ),
            e / e.mean(),
        ),
        (
            "log_softmax",
            Text("This is the logarithm of softmax.", "这是 softmax 的对数。"),
            torch.log_softmax(x, 0),
        ),
        (
            "sign_reversed",
            Text(
                "The largest score got the smallest share: the sign of the exponent is reversed "
                "(x − m, not m − x).",
                "分数最大的反而份额最小：指数的符号反了（应是 x − m，不是 m − x）。",
            ),
            torch.softmax(-x, 0),
        ),
        (
            "base_two",
            Text("You used powers of 2. Use `torch.exp`.", "你用的是 2 的幂。请用 `torch.exp`。"),
            torch.softmax(x * math.log(2), 0),
        ),
    ]


def _safe_wrong(x: Tensor, y: Tensor) -> Finding:
    """What the value says about the answer."""
    want = torch.softmax(x.double(), 0)
    if not bool(torch.isfinite(y).all()):
        text = NO_MAX if bool((x > 11).any()) else FROM_ZERO if bool((x < -11).all()) else None
        name = {NO_MAX: "no_max", FROM_ZERO: "max_from_zero"}.get(text) if text else None
        what = "NaN" if bool(y.isnan().any()) else "inf"
        told = text or Text("Where does the first one arise?", "第一个是从哪里来的？")
        scores = f"{write(x.min())} … {write(x.max())}"
        return Finding(
            Text(
                f"For scores {scores} your result holds {what}. {told.en}",
                f"分数为 {scores} 时，你的结果里有 {what}。{told.zh}",
            ),
            misconception=name,
            hints=SAFE_HINTS,
        )
    said = None if len(x) < 3 else says(_safe_rules(x.double()), y)
    i = int((y.double() - want).abs().argmax())
    tail = said[1] if said else NOTHING
    return Finding(
        Text(
            f"For {len(x)} scores, y[{i}] is {write(y[i])}. It should be "
            f"{write(want[i])}. {tail.en}".strip(),
            f"{len(x)} 个分数时，y[{i}] 是 {write(y[i])}，应为 {write(want[i])}。{tail.zh}",
        ),
        misconception=said[0] if said else None,
        hints=SAFE_HINTS,
    )


def _safe_case(answer: Any, x: Tensor, form_only: bool) -> tuple[Finding | None, str]:
    """(finding, status) of one input."""
    outcome = call(answer, x, skeleton=("m", "l", "y"))
    if outcome.error is not None:
        return finding_of(outcome.error), outcome.error.kind
    problem = tensor_problem(outcome.value, x.shape, finite=False) or unreadable(outcome.value)
    if problem is None and form_only:
        problem = tidy(outcome, [outcome.value], x.dtype)
    elif problem is None and not same(outcome.value, torch.softmax(x.double(), 0)):
        problem = _safe_wrong(x, outcome.value)
    return problem, "wrong"


@exercise("softmax.safe", points=15, title=Text("The safe softmax", "安全 softmax"))
def safe(answer: Any, *, seed: int = 0) -> Marks:
    """safe_softmax(x): x (n,) → softmax of x (n,), in 3 passes."""
    parts: list[Part] = []
    stopped: tuple[Finding | None, str] | None = None
    for name, inputs in _safe_inputs(seed).items():
        results = (stopped or _safe_case(answer, x, name == "tidy") for x in inputs)
        finding, status = next((r for r in results if r[0] is not None), (None, "wrong"))
        stopped = (finding, status) if status == "too_slow" else None
        parts.append(Part(_SAFE_POINTS[name], _SAFE_PASSED[name], finding, status))
    if any(part.finding is None for part in parts[:3]):
        called = used(answer, _safe_inputs(seed)["ordinary"][0])
        ready = ready_made(called.softmaxes() + called.log_sums())
        parts = [replace(part, finding=part.finding or ready) for part in parts]
    return judge("softmax.safe", _earned(parts))


def _earned(parts: list[Part]) -> list[Part]:
    """The last part, the form, counts where another one is right: anything keeps a dtype."""
    *others, form = parts
    if form.finding is None and all(part.finding is not None for part in others):
        form = replace(form, finding=FORM_ALONE)
    return [*others, form]


_ONLINE_PARTS = (
    ("m", 6, Text("running maximum `ms`", "行最大值 `ms`")),
    ("l", 8, Text("running sum `ls`", "指数和 `ls`")),
    ("y", 5, Text("softmax `y` from the last state", "由最后的状态得到 softmax `y`")),
    ("tidy", 1, Text("keeps the dtype, leaves `x` as it was", "dtype 不变，`x` 没有被改动")),
)


def _online_inputs(seed: int) -> list[Tensor]:
    made = torch.Generator().manual_seed(2000 + seed)
    random = 2 * torch.randn(9, generator=made, dtype=torch.float64)
    return [
        random,
        random.sort().values,
        random.sort(descending=True).values,
        random - 1000,
        (100 * random + 1000).float(),
        random[:1],
    ]


def _online_m_rules(x: Tensor, want: Tensor) -> list[tuple[str, Text, Tensor]]:
    return [
        ("max_from_zero", FROM_ZERO, want.clamp(min=0)),
        (
            "max_of_newest",
            Text(
                "This is just x[j]. Compare it with the maximum so far.",
                "这只是 x[j] 本身。还要与目前的最大值比较。",
            ),
            x.double(),
        ),
        (
            "max_of_all",
            Text(
                "This is the maximum of all of x, which is not known yet at this point.",
                "这是整个 x 的最大值，而此刻还不可能知道它。",
            ),
            x.double().max().expand(len(x)),
        ),
        (
            "minimum",
            Text("This is the smallest score.", "这是最小的分数。"),
            torch.cummin(x.double(), 0).values,
        ),
    ]


def _online_m(x: Tensor, ms: Tensor) -> Finding | None:
    want = torch.cummax(x.double(), 0).values
    if same(ms, want):
        return None
    said = says(_online_m_rules(x, want), ms) if len(x) > 1 or bool((x < 0).any()) else None
    j = _first_wrong(ms, want)
    tail = said[1] if said else NOTHING
    return Finding(
        Text(
            f"After element {j}, `ms[{j}]` is {write(ms[j])}. The largest score so far is "
            f"{write(want[j])}. {tail.en}".strip(),
            f"看完第 {j} 个元素后，`ms[{j}]` 是 {write(ms[j])}，"
            f"而目前最大的分数是 {write(want[j])}。{tail.zh}",
        ),
        todo=1,
        variable="m_new",
        misconception=said[0] if said else None,
    )


def _first_wrong(value: Tensor, want: Tensor) -> int:
    return next(j for j in range(len(want)) if not same(value[j], want[j]))


def _sums(x: Tensor, ms: Tensor) -> Tensor:
    """l_j = Σ_{k ≤ j} exp(x_k − m_j), by definition, for the given m_j."""
    terms = torch.exp(x.double() - ms.double()[:, None])
    return torch.tril(terms).sum(dim=1)


def _sayable(value: Tensor, want: Tensor) -> tuple[Tensor, Tensor]:
    """Both with 0 from the first place (along dim 0) where `want` is too large to be judged.

    A maximum that is too small lets a right sum overflow: that is the maximum's fault.
    """
    judged = torch.cumprod((want.abs() < 1e30).int(), dim=0).bool()
    zero = torch.zeros_like(want)
    return torch.where(judged, value, zero.to(value.dtype)), torch.where(judged, want, zero)


def _step_rules(old: Tensor, m: Tensor, m_new: Tensor, x: Tensor) -> list:
    """What one step gives for each usual slip: old sum, old and new maximum, the new scores.

    old, m, m_new: (rows, 1); x: (rows, b). The right step is not among them.
    """
    block = x.amax(-1, keepdim=True)
    alpha, beta = torch.exp(m - m_new), torch.exp(block - m_new)
    new = torch.exp(x - m_new).sum(-1, keepdim=True)
    own = torch.exp(x - block).sum(-1, keepdim=True)
    return [
        ("no_correction", NO_CORRECTION, old + new),
        ("inverse_correction", INVERSE, old / alpha + new),
        ("beta_twice", TWO_BASES, alpha * old + beta * new),
        ("block_base", BLOCK_BASE, alpha * old + own),
        ("old_base", OLD_BASE, alpha * old + torch.exp(x - m).sum(-1, keepdim=True)),
        ("old_base", OLD_BASE, old + torch.exp(x - m).sum(-1, keepdim=True)),
        ("correction_on_new", ALPHA_ON_NEW, old + alpha * new),
        ("correction_on_both", ALPHA_ON_BOTH, alpha * (old + new)),
        ("new_term_missing", NO_NEW, alpha * old),
        ("old_sum_missing", NO_OLD, new),
        ("no_max", NO_MAX, alpha * old + torch.exp(x).sum(-1, keepdim=True)),
        ("no_max", NO_MAX, old + torch.exp(x).sum(-1, keepdim=True)),
        ("sum_of_all_rows", ALL_ROWS, alpha * old + torch.exp(x - m_new).sum()),
    ]


def _is_ordinary(x: Tensor) -> bool:
    """Whether all sums, relative to any maximum that makes sense, are neither 0 nor too large."""
    return x.dtype == torch.float64 and len(x) > 1 and bool(x.abs().max() < 100)


def _online_l(x: Tensor, ms: Tensor, ls: Tensor) -> Finding | None:
    sums = _sums(x, ms)
    if _is_ordinary(x) and not bool(((sums > 1e-30) & (sums < 1e30)).all()):
        return NOTHING_RIGHT
    ls, want = _sayable(ls, sums)
    if same(ls, want):
        rising = bool((x.diff() >= 0).all()) and len(x) > 1
        return ONE_BASE if rising and _is_ordinary(x) and bool((ms == ms[0]).all()) else None
    j = _first_wrong(ls, want)
    if j == 0:
        said = _first_step(x[0].double(), ms[0].double(), ls[0])
    else:
        old, m, m_new, x_j = (
            t.double().reshape(1, 1) for t in (want[j - 1], ms[j - 1], ms[j], x[j])
        )
        rules = _step_rules(old, m, m_new, x_j)
        said = says(rules, ls[j].reshape(1, 1))
    tail = said[1] if said else NOTHING
    return Finding(
        Text(
            f"After element {j}, `ls[{j}]` is {write(ls[j])}. With your own `ms[{j}]` = "
            f"{write(ms[j])} it should be {write(want[j])}. {tail.en}".strip(),
            f"看完第 {j} 个元素后，`ls[{j}]` 是 {write(ls[j])}。"
            f"按你自己的 `ms[{j}]` = {write(ms[j])}，应为 {write(want[j])}。{tail.zh}",
        ),
        todo=2,
        variable="l_new",
        misconception=said[0] if said else None,
        hints=SUM_HINTS,
    )


def _first_step(x: Tensor, m: Tensor, l: Tensor) -> tuple[str, Text] | None:
    """What the sum after the very first element says: the old maximum was −∞, the old sum 0."""
    if bool(l.isnan()):
        return "inverse_correction", Text(
            "At the first element the old maximum is −∞. exp(m_old − m_new) is then 0, but "
            "exp(m_new − m_old) is infinite, and 0 · ∞ is NaN. Which way round is yours?",
            "第一个元素时，旧的最大值是 −∞。exp(m_old − m_new) 此时为 0，"
            "而 exp(m_new − m_old) 是无穷大，0 · ∞ 就是 NaN。你的是哪一种？",
        )
    if bool(l.isinf()):
        return "old_base", OLD_BASE
    return says([("no_max", NO_MAX, torch.exp(x))], l) or says(
        [("new_term_missing", NO_NEW, torch.zeros_like(x))], l
    )


def _online_y_rules(x: Tensor, ms: Tensor, ls: Tensor) -> list[tuple[str, Text, Tensor]]:
    m, l = ms[-1].double(), ls[-1].double()
    return [
        (
            "not_normalised",
            Text("Divide by the last sum.", "还要除以最后的指数和。"),
            torch.exp(x.double() - m),
        ),
        (
            "history_not_last",
            Text(
                "Each element was divided by the sum at its own time. Use the last m and l.",
                "每个元素除的是当时的指数和。所有元素都要用最后的 m 和 l。",
            ),
            torch.exp(x.double() - ms.double()) / ls.double(),
        ),
        (
            "no_max",
            Text(
                "`exp(x)` is measured from 0, your sum from the maximum.",
                "`exp(x)` 以 0 为基准，而你的指数和以最大值为基准。",
            ),
            torch.exp(x.double()) / l,
        ),
    ]


def _online_y(x: Tensor, ms: Tensor, ls: Tensor, y: Tensor) -> Finding | None:
    m, l = ms[-1].double(), ls[-1].double()
    ordinary = _is_ordinary(x)
    if not bool(_sums(x, ms).max() < 1e30):
        return NOTHING_RIGHT if ordinary else None
    if not bool(l > 0):
        return NO_RUNNING_SUM if ordinary else None
    if ordinary and not bool((x.diff() >= 0).all()) and bool((ls == ls[0]).all()):
        return NO_RUNNING_SUM  # such as 1 everywhere: no division could be told from none
    want = torch.exp(x.double() - m) / l
    if same(y, want):
        return None
    said = says(_online_y_rules(x, ms, ls), y) if len(x) > 1 else None
    tail = said[1] if said else NOTHING
    bad = ~torch.isclose(y.double(), want, rtol=1e-5, atol=1e-5)
    i = int(bad.nonzero()[0]) if bool(bad.any()) else 0
    return Finding(
        Text(
            f"`y[{i}]` is {write(y[i])}. From your own last m and l it should be "
            f"{write(want[i])}. {tail.en}".strip(),
            f"`y[{i}]` 是 {write(y[i])}。由你自己最后的 m 和 l 得出的应是 {write(want[i])}。"
            f"{tail.zh}",
        ),
        todo=3,
        variable="y",
        misconception=said[0] if said else None,
        hints=(Text("y = exp(x − m) / l", "y = exp(x − m) / l"),),
    )


def _online_case(answer: Any, x: Tensor) -> dict[str, tuple[Finding, str]]:
    """What is wrong with the answer on one input: part → (finding, status)."""
    outcome = call(answer, x, skeleton=("m_new", "l_new", "y"))
    names = [name for name, _, _ in _ONLINE_PARTS]
    if outcome.error is not None:
        return dict.fromkeys(names, (finding_of(outcome.error), outcome.error.kind))
    form = form_of_each(outcome.value, ("y", "ms", "ls"), [tuple(x.shape)] * 3)
    if form is not None:
        return dict.fromkeys(names, (form, "wrong"))
    y, ms, ls = outcome.value
    found = {
        "m": _online_m(x, ms),
        "l": _online_l(x, ms, ls),
        "y": _online_y(x, ms, ls, y),
        "tidy": tidy(outcome, (y, ms, ls), x.dtype),
    }
    return {name: (finding, "wrong") for name, finding in found.items() if finding is not None}


@exercise(
    "softmax.online", points=20, title=Text("Online softmax over elements", "逐元素的在线 softmax")
)
def online(answer: Any, *, seed: int = 0) -> Marks:
    """online_softmax(x): x (n,) → y, ms, ls, each (n,), the state after each element in ms, ls."""
    cases = (_online_case(answer, x) for x in _online_inputs(seed))
    parts = parts_of(_ONLINE_PARTS, cases)
    m, l, y, _ = parts
    if any(part.finding is None for part in (l, y)):
        l, y = _by_hand(answer, seed, l, y)
    if m.finding is not None and l.finding not in (None, ONE_BASE):
        y = replace(y, finding=y.finding or NOTHING_RIGHT)
    return judge("softmax.online", _earned([m, l, y, parts[3]]))


_RECORDED = 16  # elements: some 3 exponentials for each are needed


def _by_hand(answer: Any, seed: int, l: Part, y: Part) -> tuple[Part, Part]:
    """The sum and y without their points where they come ready-made, or by no running sum.

    One ready-made softmax may have made y; several of them, or logarithms of sums, the sums.
    """
    made = torch.Generator().manual_seed(2500 + seed)
    called = used(answer, torch.randn(_RECORDED, generator=made, dtype=torch.float64))
    softmaxes, log_sums = called.softmaxes(), called.log_sums()
    again = called.exponentials(but=(_RECORDED,)) > 6 * _RECORDED
    of_l = ready_made(log_sums or softmaxes[1:]) or (SUM_AGAIN if again else None)
    return (
        replace(l, finding=l.finding or of_l),
        replace(y, finding=y.finding or ready_made(softmaxes)),
    )


_TILE_PARTS = (
    ("m", 8, Text("running row maximum `m_new`", "新的行最大值 `m_new`")),
    ("l", 11, Text("running sum `l_new`", "新的指数和 `l_new`")),
    ("tidy", 1, Text("keeps the dtype, leaves its inputs alone", "dtype 不变，输入没有被改动")),
)


def _tile_inputs(seed: int) -> list[tuple[Tensor, Tensor]]:
    """(scores seen before, the new tile) of each case; no scores before means a fresh state."""
    made = torch.Generator().manual_seed(3000 + seed)

    def draw(rows: int, n: int) -> Tensor:
        return 2 * torch.randn(rows, n, generator=made, dtype=torch.float64)

    apart = torch.tensor([[0.0], [-300.0], [-1200.0]], dtype=torch.float64)
    before, after = draw(3, 5), draw(3, 4)
    return [
        (before[:, :0], after),
        (before - 3, after + 3),
        (before + 3, after - 3),
        (draw(4, 6) - 1, draw(4, 4)),
        (before[:, :1], after[:, :1]),
        (before - 1000, after - 1000),
        (before + apart, after + apart),
        ((100 * before).float(), (100 * after).float()),
    ]


def _tile_m(m: Tensor, tile: Tensor, m_new: Tensor) -> Finding | None:
    block = tile.amax(-1, keepdim=True)
    want = torch.maximum(m, block)
    if same(m_new, want):
        return None
    everywhere = torch.maximum(m, tile.max())
    rules = [
        ("max_of_all_rows", ONE_MAX, everywhere),
        ("max_of_all_rows", ONE_MAX, tile.max().expand_as(m)),
        (
            "max_of_tile",
            Text(
                "This is the tile's own maximum. Compare it with the old one.",
                "这只是块内的最大值，还要与旧的比较。",
            ),
            block,
        ),
        (
            "argmax",
            Text(
                "This is an index, not a score: `torch.max` returns (values, indices).",
                "这是下标，不是分数：`torch.max` 返回（值，下标）。",
            ),
            torch.maximum(m, tile.argmax(-1, keepdim=True).to(m.dtype)),
        ),
        ("max_from_zero", FROM_ZERO, want.clamp(min=0)),
        ("max_not_updated", Text("This is still the old maximum.", "这还是旧的最大值。"), m),
    ]
    said = says(rules, m_new)
    return row_finding("m_new", 1, m_new, want, said, ())


def _tile_l(
    seen: Tensor, state: tuple[Tensor, Tensor], tile: Tensor, m_new: Tensor, l_new: Tensor
) -> Finding | None:
    scores = torch.cat([seen, tile], dim=1).double()
    want = torch.exp(scores - m_new.double()).sum(-1, keepdim=True)
    ordinary = bool(scores.abs().max() < 100)
    if ordinary and not bool(((want > 1e-30) & (want < 1e30)).all()):
        return NOTHING_RIGHT
    judged = want < 1e30  # beyond, a right sum may overflow: the maximum's fault
    l_new = torch.where(judged, l_new, torch.zeros_like(l_new))
    want = torch.where(judged, want, torch.zeros_like(want))
    if same(l_new, want):
        return None
    m, l = (t.double() for t in state)
    said = says(_step_rules(l, m, m_new.double(), tile.double()), l_new)
    if said is None and bool(l_new.isnan().any()) and seen.shape[1] == 0:
        said = _first_step(tile[0, 0], m_new[0, 0], torch.tensor(math.nan))
    given = Text("By your own `m_new`, it", "按你自己的 `m_new`，")
    return row_finding("l_new", 2, l_new, want, said, SUM_HINTS, given)


def _tile_case(answer: Any, seen: Tensor, tile: Tensor) -> dict[str, tuple[Finding, str]]:
    state = state_of(seen)
    outcome = call(answer, *state, tile, skeleton=("m_block", "m_new", "l_block", "l_new"))
    names = [name for name, _, _ in _TILE_PARTS]
    if outcome.error is not None:
        return dict.fromkeys(names, (finding_of(outcome.error), outcome.error.kind))
    form = form_of_each(outcome.value, ("m_new", "l_new"), [(len(tile), 1)] * 2)
    if form is not None:
        return dict.fromkeys(names, (form, "wrong"))
    m_new, l_new = outcome.value
    found = {
        "m": _tile_m(state[0], tile, m_new),
        "l": _tile_l(seen, state, tile, m_new, l_new),
        "tidy": tidy(outcome, (m_new, l_new), tile.dtype),
    }
    return {name: (finding, "wrong") for name, finding in found.items() if finding is not None}


@exercise("softmax.tiles", points=20, title=Text("One tile, many rows", "一个块，多行同算"))
def tiles(answer: Any, *, seed: int = 0) -> Marks:
    """online_update(m, l, x_tile): (rows, 1), (rows, 1), (rows, b) → m_new, l_new, (rows, 1)."""
    cases = (_tile_case(answer, seen, tile) for seen, tile in _tile_inputs(seed))
    m, l, form = parts_of(_TILE_PARTS, cases)
    if l.finding is None:
        seen, tile = _tile_inputs(seed)[1]
        called = used(answer, *state_of(seen), tile)
        l = replace(l, finding=ready_made(called.softmaxes() + called.log_sums()))
    return judge("softmax.tiles", _earned([m, l, form]))
