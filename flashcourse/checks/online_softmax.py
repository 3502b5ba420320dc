"""The exercises of lesson 02_online_softmax: what is right, and what a wrong answer means.

Every oracle is a closed form in float64 over all the scores at once (`torch.softmax`,
`torch.cummax`, sums of exponentials relative to a given base), never a running update. Each part
of an answer is judged given the learner's own earlier values, so that one slip costs one part.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import Tensor

from flashcourse.checks.marks import Finding, Marks
from flashcourse.checks.probe import Outcome, Part, call, finding_of, judge, tensor_problem
from flashcourse.checks.registry import exercise
from flashcourse.words import Text

_INF = math.inf


# ---------------------------------------------------------------- shared by the exercises


def _same(value: Tensor, want: Tensor, tolerance: float = 1e-5) -> bool:
    """Whether all entries agree, to what the value's dtype can hold. NaN never agrees."""
    if value.shape != want.shape:
        return False
    least = {torch.float32: 1e-4, torch.bfloat16: 2e-2, torch.float16: 2e-2}
    tolerance = max(tolerance, least.get(value.dtype, 0.0))
    return torch.allclose(value.double(), want.double(), rtol=tolerance, atol=tolerance)


def _sayable(value: Tensor, want: Tensor) -> tuple[Tensor, Tensor]:
    """Both with 0 from the first place (along dim 0) where `want` is too large to be judged.

    A maximum that is too small lets a right sum overflow: that is the maximum's fault.
    """
    judged = torch.cumprod((want.abs() < 1e30).int(), dim=0).bool()
    zero = torch.zeros_like(want)
    return torch.where(judged, value, zero.to(value.dtype)), torch.where(judged, want, zero)


def _says(rules: Iterable[tuple[str, Text, Tensor]], value: Tensor) -> tuple[str, Text] | None:
    """The first rule whose number the learner's value is, as (misconception, sentence)."""
    for name, text, candidate in rules:
        if _same(value, candidate):
            return name, text
    return None


def _number(x: Tensor | float) -> str:
    return f"{float(x):.6g}".replace("-", "−").replace("inf", "∞").replace("nan", "NaN")


def _form_of_each(values: Any, names: Sequence[str], shapes: Sequence[tuple]) -> Finding | None:
    """What is wrong with the form of a tuple of tensors, or None."""
    if not isinstance(values, tuple | list) or len(values) != len(names):
        listed = ", ".join(f"`{name}`" for name in names)
        return Finding(
            Text(
                f"Your function must return {len(names)} tensors, {listed}, in this order.",
                f"函数应按顺序返回 {len(names)} 个张量：{listed}。",
            )
        )
    for name, value, shape in zip(names, values, shapes, strict=True):
        problem = tensor_problem(value, shape, finite=False)
        if problem is not None:
            text = problem.text
            return Finding(Text(f"`{name}`: {text.en}", f"`{name}`：{text.zh}"), variable=name)
    return None


def _tidy(outcome: Outcome, values: Iterable[Tensor], dtype: torch.dtype) -> Finding | None:
    """Inputs left alone, and results in the dtype of the input."""
    if outcome.inputs_changed:
        name = outcome.inputs_changed[0]
        return Finding(
            Text(
                f"Your function changed its input `{name}`. Whoever called it still needs that "
                "tensor. Make a new one instead of writing into it (`-=`, `*=`, `x[...] =`).",
                f"你的函数改动了输入 `{name}`，而调用者还要用它。"
                "请新建张量，不要往里写（`-=`、`*=`、`x[...] =`）。",
            ),
            misconception="input_changed",
            variable=name,
        )
    for value in values:
        if value.dtype != dtype:
            return tensor_problem(value, dtype=dtype, finite=False)
    return None


_NOTHING = Text("", "")
_NO_MAX = Text(
    "Somewhere a score goes into `exp` as it is. Subtract the maximum first.",
    "有分数没有减最大值就直接进了 `exp`。请先减去最大值。",
)
_FROM_ZERO = Text(
    "Your maximum starts at 0, so it never gets below 0. It must start at −∞.",
    "你的最大值是从 0 开始的，永远降不到 0 以下。它应该从 −∞ 开始。",
)


# ---------------------------------------------------------------- exercise 1: safe softmax

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
    masked[[1, 4]] = -_INF
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
        text = _NO_MAX if bool((x > 11).any()) else _FROM_ZERO if bool((x < -11).all()) else None
        name = {_NO_MAX: "no_max", _FROM_ZERO: "max_from_zero"}.get(text) if text else None
        what = "NaN" if bool(y.isnan().any()) else "inf"
        told = text or Text("Where does the first one arise?", "第一个是从哪里来的？")
        scores = f"{_number(x.min())} … {_number(x.max())}"
        return Finding(
            Text(
                f"For scores {scores} your result holds {what}. {told.en}",
                f"分数为 {scores} 时，你的结果里有 {what}。{told.zh}",
            ),
            misconception=name,
            hints=_SAFE_HINTS,
        )
    said = None if len(x) < 3 else _says(_safe_rules(x.double()), y)
    i = int((y.double() - want).abs().argmax())
    tail = said[1] if said else _NOTHING
    return Finding(
        Text(
            f"For {len(x)} scores, y[{i}] is {_number(y[i])}. It should be "
            f"{_number(want[i])}. {tail.en}".strip(),
            f"{len(x)} 个分数时，y[{i}] 是 {_number(y[i])}，应为 {_number(want[i])}。{tail.zh}",
        ),
        misconception=said[0] if said else None,
        hints=_SAFE_HINTS,
    )


_SAFE_HINTS = (
    Text("What is the largest exponent that may reach `exp`?", "进入 `exp` 的指数最大可以是多少？"),
    Text(
        "y = exp(x − m) / Σ exp(x − m), with m = max x", "y = exp(x − m) / Σ exp(x − m)，m = max x"
    ),
)


def _safe_case(answer: Any, x: Tensor, tidy: bool) -> tuple[Finding | None, str]:
    """(finding, status) of one input."""
    outcome = call(answer, x, skeleton=("m", "l", "y"))
    if outcome.error is not None:
        return finding_of(outcome.error), outcome.error.kind
    problem = tensor_problem(outcome.value, x.shape, finite=False)
    if problem is None and tidy:
        problem = _tidy(outcome, [outcome.value], x.dtype)
    elif problem is None and not _same(outcome.value, torch.softmax(x.double(), 0)):
        problem = _safe_wrong(x, outcome.value)
    return problem, "wrong"


@exercise("softmax.safe", points=15)
def safe(answer: Any, *, seed: int = 0) -> Marks:
    """safe_softmax(x): x (n,) → softmax of x (n,), in 3 passes."""
    parts = []
    for name, inputs in _safe_inputs(seed).items():
        results = (_safe_case(answer, x, name == "tidy") for x in inputs)
        finding, status = next((r for r in results if r[0] is not None), (None, "wrong"))
        parts.append(Part(_SAFE_POINTS[name], _SAFE_PASSED[name], finding, status))
    return judge("softmax.safe", parts)


# ---------------------------------------------------------------- exercise 2: over elements

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


def _online_m(x: Tensor, ms: Tensor) -> Finding | None:
    want = torch.cummax(x.double(), 0).values
    if _same(ms, want):
        return None
    rules = [
        ("max_from_zero", _FROM_ZERO, want.clamp(min=0)),
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
    said = _says(rules, ms) if len(x) > 1 or bool((x < 0).any()) else None
    j = _first_wrong(ms, want)
    tail = said[1] if said else _NOTHING
    return Finding(
        Text(
            f"After element {j}, `ms[{j}]` is {_number(ms[j])}. The largest score so far is "
            f"{_number(want[j])}. {tail.en}".strip(),
            f"看完第 {j} 个元素后，`ms[{j}]` 是 {_number(ms[j])}，"
            f"而目前最大的分数是 {_number(want[j])}。{tail.zh}",
        ),
        todo=1,
        variable="m_new",
        misconception=said[0] if said else None,
    )


def _first_wrong(value: Tensor, want: Tensor) -> int:
    return next(j for j in range(len(want)) if not _same(value[j], want[j]))


def _sums(x: Tensor, ms: Tensor) -> Tensor:
    """l_j = Σ_{k ≤ j} exp(x_k − m_j), by definition, for the given m_j."""
    terms = torch.exp(x.double() - ms.double()[:, None])
    return torch.tril(terms).sum(dim=1)


def _step_rules(old: Tensor, m: Tensor, m_new: Tensor, x: Tensor) -> list:
    """What one step gives for each usual slip: old sum, old and new maximum, the new scores.

    old, m, m_new: (rows, 1); x: (rows, b). The right step is not among them.
    """
    block = x.amax(-1, keepdim=True)
    alpha, beta = torch.exp(m - m_new), torch.exp(block - m_new)
    new = torch.exp(x - m_new).sum(-1, keepdim=True)
    own = torch.exp(x - block).sum(-1, keepdim=True)
    return [
        ("no_correction", _NO_CORRECTION, old + new),
        ("inverse_correction", _INVERSE, old / alpha + new),
        ("beta_twice", _TWO_BASES, alpha * old + beta * new),
        ("block_base", _BLOCK_BASE, alpha * old + own),
        ("old_base", _OLD_BASE, alpha * old + torch.exp(x - m).sum(-1, keepdim=True)),
        ("old_base", _OLD_BASE, old + torch.exp(x - m).sum(-1, keepdim=True)),
        ("correction_on_new", _ALPHA_ON_NEW, old + alpha * new),
        ("correction_on_both", _ALPHA_ON_BOTH, alpha * (old + new)),
        ("new_term_missing", _NO_NEW, alpha * old),
        ("old_sum_missing", _NO_OLD, new),
        ("no_max", _NO_MAX, alpha * old + torch.exp(x).sum(-1, keepdim=True)),
        ("no_max", _NO_MAX, old + torch.exp(x).sum(-1, keepdim=True)),
        ("sum_of_all_rows", _ALL_ROWS, alpha * old + torch.exp(x - m_new).sum()),
    ]


_NO_CORRECTION = Text(
    "The old sum was added as it was. It is measured from the old maximum: multiply it by "
    "α = exp(m_old − m_new). If you do, is `m` still the old maximum on that line?",
    "旧的指数和被原样加了进来，可它以旧的最大值为基准。要乘 α = exp(m_old − m_new)。"
    "如果乘了，那一行里的 `m` 还是旧的最大值吗？",
)
_INVERSE = Text(
    "The correction is upside down: your factor is exp(m_new − m_old) ≥ 1. It must be "
    "exp(m_old − m_new) ≤ 1.",
    "修正因子反了：你用的是 exp(m_new − m_old) ≥ 1，应为 exp(m_old − m_new) ≤ 1。",
)
_TWO_BASES = Text(
    "The tile's sum is measured from m_new already. Multiplying it by exp(m_block − m_new) "
    "as well corrects it twice.",
    "块内的指数和已经以 m_new 为基准，再乘 exp(m_block − m_new) 就修正了两次。",
)
_BLOCK_BASE = Text(
    "The tile's sum is measured from m_block, the old one from m_new. Bring both to m_new.",
    "块内的指数和以 m_block 为基准，旧的却以 m_new 为基准。请把两者统一到 m_new。",
)
_OLD_BASE = Text(
    "The new term is measured from the old maximum. Use m_new.",
    "新的一项以旧的最大值为基准了，应当用 m_new。",
)
_ALPHA_ON_NEW = Text(
    "α is on the new term. It belongs to the old sum.", "α 乘到新的一项上了，它应该乘旧的指数和。"
)
_ALPHA_ON_BOTH = Text(
    "α is on both terms. The new one is measured from m_new already.",
    "α 把两项都乘了。新的一项已经以 m_new 为基准，不用再乘。",
)
_NO_NEW = Text("The new term is missing.", "漏了新的一项。")
_NO_OLD = Text("The old sum is missing.", "漏了旧的指数和。")
_ALL_ROWS = Text(
    "You summed over all rows. Each row has its own sum: `dim=-1, keepdim=True`.",
    "你对所有行一起求了和。每行应有自己的和：`dim=-1, keepdim=True`。",
)
_SUM_HINTS = (
    Text("Which maximum is the old sum measured from?", "旧的指数和是以哪个最大值为基准的？"),
    Text(
        "l_new = exp(m_old − m_new) · l_old + Σ exp(x − m_new)",
        "l_new = exp(m_old − m_new) · l_old + Σ exp(x − m_new)",
    ),
)


def _online_l(x: Tensor, ms: Tensor, ls: Tensor) -> Finding | None:
    ls, want = _sayable(ls, _sums(x, ms))
    if _same(ls, want):
        return None
    j = _first_wrong(ls, want)
    if j == 0:
        said = _first_step(x[0].double(), ms[0].double(), ls[0])
    else:
        old, m, m_new, x_j = (
            t.double().reshape(1, 1) for t in (want[j - 1], ms[j - 1], ms[j], x[j])
        )
        rules = _step_rules(old, m, m_new, x_j)
        said = _says(rules, ls[j].reshape(1, 1))
    tail = said[1] if said else _NOTHING
    return Finding(
        Text(
            f"After element {j}, `ls[{j}]` is {_number(ls[j])}. With your own `ms[{j}]` = "
            f"{_number(ms[j])} it should be {_number(want[j])}. {tail.en}".strip(),
            f"看完第 {j} 个元素后，`ls[{j}]` 是 {_number(ls[j])}。"
            f"按你自己的 `ms[{j}]` = {_number(ms[j])}，应为 {_number(want[j])}。{tail.zh}",
        ),
        todo=2,
        variable="l_new",
        misconception=said[0] if said else None,
        hints=_SUM_HINTS,
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
        return "old_base", _OLD_BASE
    return _says([("no_max", _NO_MAX, torch.exp(x))], l) or _says(
        [("new_term_missing", _NO_NEW, torch.zeros_like(x))], l
    )


def _online_y(x: Tensor, ms: Tensor, ls: Tensor, y: Tensor) -> Finding | None:
    m, l = ms[-1].double(), ls[-1].double()
    if not bool(_sums(x, ms).max() < 1e30) or not bool(l > 0):
        return None
    want = torch.exp(x.double() - m) / l
    if _same(y, want):
        return None
    rules = [
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
    said = _says(rules, y) if len(x) > 1 else None
    tail = said[1] if said else _NOTHING
    bad = ~torch.isclose(y.double(), want, rtol=1e-5, atol=1e-5)
    i = int(bad.nonzero()[0]) if bool(bad.any()) else 0
    return Finding(
        Text(
            f"`y[{i}]` is {_number(y[i])}. From your own last m and l it should be "
            f"{_number(want[i])}. {tail.en}".strip(),
            f"`y[{i}]` 是 {_number(y[i])}。由你自己最后的 m 和 l 得出的应是 {_number(want[i])}。"
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
    form = _form_of_each(outcome.value, ("y", "ms", "ls"), [tuple(x.shape)] * 3)
    if form is not None:
        return dict.fromkeys(names, (form, "wrong"))
    y, ms, ls = outcome.value
    found = {
        "m": _online_m(x, ms),
        "l": _online_l(x, ms, ls),
        "y": _online_y(x, ms, ls, y),
        "tidy": _tidy(outcome, (y, ms, ls), x.dtype),
    }
    return {name: (finding, "wrong") for name, finding in found.items() if finding is not None}


def _parts(
    plan: Sequence[tuple[str, int, Text]], cases: Iterable[dict[str, tuple[Finding, str]]]
) -> list[Part]:
    """One Part for each line of the plan, failed by the first case in which it fails."""
    found: dict[str, tuple[Finding, str]] = {}
    for case in cases:
        found = case | found
        if any(status == "too_slow" for _, status in found.values()):
            break
    return [
        Part(points, passed, *found.get(name, (None, "wrong"))) for name, points, passed in plan
    ]


@exercise("softmax.online", points=20)
def online(answer: Any, *, seed: int = 0) -> Marks:
    """online_softmax(x): x (n,) → y, ms, ls, each (n,), the state after each element in ms, ls."""
    cases = (_online_case(answer, x) for x in _online_inputs(seed))
    return judge("softmax.online", _parts(_ONLINE_PARTS, cases))


# ---------------------------------------------------------------- exercise 3: over tiles

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


def _state(S: Tensor) -> tuple[Tensor, Tensor]:
    """(m, l) of all the scores S (rows, n), by definition, in the dtype of S."""
    if S.shape[1] == 0:
        empty = torch.zeros(S.shape[0], 1, dtype=S.dtype)
        return empty - _INF, empty
    m = S.amax(-1, keepdim=True)
    return m, torch.exp(S - m).sum(-1, keepdim=True)


def _tile_m(m: Tensor, tile: Tensor, m_new: Tensor) -> Finding | None:
    block = tile.amax(-1, keepdim=True)
    want = torch.maximum(m, block)
    if _same(m_new, want):
        return None
    everywhere = torch.maximum(m, tile.max())
    rules = [
        ("max_of_all_rows", _ONE_MAX, everywhere),
        ("max_of_all_rows", _ONE_MAX, tile.max().expand_as(m)),
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
        ("max_from_zero", _FROM_ZERO, want.clamp(min=0)),
        ("max_not_updated", Text("This is still the old maximum.", "这还是旧的最大值。"), m),
    ]
    said = _says(rules, m_new)
    return _row_finding("m_new", 1, m_new, want, said, ())


_ONE_MAX = Text(
    "You took one maximum over all rows. Each row has its own: `dim=-1, keepdim=True`.",
    "你对所有行取了同一个最大值。每行应有自己的最大值：`dim=-1, keepdim=True`。",
)


def _row_finding(
    name: str,
    todo: int,
    value: Tensor,
    want: Tensor,
    said: tuple[str, Text] | None,
    hints: tuple[Text, ...],
    given: Text = _NOTHING,
) -> Finding:
    """The first row in which a (rows, …) tensor is wrong, with both numbers."""
    rows = range(len(want))
    row = next((r for r in rows if not _same(value[r], want[r])), 0)
    column = next((c for c in range(want.shape[1]) if not _same(value[row, c], want[row, c])), 0)
    tail = said[1] if said else _NOTHING
    place = f"`{name}[{row}, {column}]`"
    got, right = _number(value[row, column]), _number(want[row, column])
    return Finding(
        Text(
            f"{place} is {got}. {given.en or 'It'} should be {right}. {tail.en}".strip(),
            f"{place} 是 {got}，{given.zh}应为 {right}。{tail.zh}",
        ),
        todo=todo,
        variable=name,
        misconception=said[0] if said else None,
        hints=hints,
    )


def _tile_l(
    seen: Tensor, state: tuple[Tensor, Tensor], tile: Tensor, m_new: Tensor, l_new: Tensor
) -> Finding | None:
    scores = torch.cat([seen, tile], dim=1).double()
    want = torch.exp(scores - m_new.double()).sum(-1, keepdim=True)
    judged = want < 1e30  # beyond, a right sum may overflow: the maximum's fault
    l_new = torch.where(judged, l_new, torch.zeros_like(l_new))
    want = torch.where(judged, want, torch.zeros_like(want))
    if _same(l_new, want):
        return None
    m, l = (t.double() for t in state)
    said = _says(_step_rules(l, m, m_new.double(), tile.double()), l_new)
    if said is None and bool(l_new.isnan().any()) and seen.shape[1] == 0:
        said = _first_step(tile[0, 0], m_new[0, 0], torch.tensor(math.nan))
    given = Text("By your own `m_new`, it", "按你自己的 `m_new`，")
    return _row_finding("l_new", 2, l_new, want, said, _SUM_HINTS, given)


def _tile_case(answer: Any, seen: Tensor, tile: Tensor) -> dict[str, tuple[Finding, str]]:
    state = _state(seen)
    outcome = call(answer, *state, tile, skeleton=("m_block", "m_new", "l_block", "l_new"))
    names = [name for name, _, _ in _TILE_PARTS]
    if outcome.error is not None:
        return dict.fromkeys(names, (finding_of(outcome.error), outcome.error.kind))
    form = _form_of_each(outcome.value, ("m_new", "l_new"), [(len(tile), 1)] * 2)
    if form is not None:
        return dict.fromkeys(names, (form, "wrong"))
    m_new, l_new = outcome.value
    found = {
        "m": _tile_m(state[0], tile, m_new),
        "l": _tile_l(seen, state, tile, m_new, l_new),
        "tidy": _tidy(outcome, (m_new, l_new), tile.dtype),
    }
    return {name: (finding, "wrong") for name, finding in found.items() if finding is not None}


@exercise("softmax.tiles", points=20)
def tiles(answer: Any, *, seed: int = 0) -> Marks:
    """online_update(m, l, x_tile): (rows, 1), (rows, 1), (rows, b) → m_new, l_new, (rows, 1)."""
    cases = (_tile_case(answer, seen, tile) for seen, tile in _tile_inputs(seed))
    return judge("softmax.tiles", _parts(_TILE_PARTS, cases))


# ---------------------------------------------------------------- exercise 4: merge

_MERGE_PARTS = (
    ("m", 4, Text("the common base `m`", "共同的基准 `m`")),
    ("l", 8, Text("the sum `l`", "指数和 `l`")),
    ("O", 8, Text("the output `O`", "输出 `O`")),
    ("neutral", 5, Text("the neutral element (−∞, 0, 0)", "单位元 (−∞, 0, 0)")),
    (
        "order",
        5,
        Text(
            "any split, tree and order, large scores, within 1e-12",
            "任意切分、树形、次序，大分数，误差在 1e-12 以内",
        ),
    ),
)
Triple = tuple[Tensor, Tensor, Tensor]


def _full_state(S: Tensor, V: Tensor) -> Triple:
    """(m, l, O) of the scores S (rows, n) and the values V (n, dim), by definition."""
    m, l = _state(S)
    O = torch.softmax(S, dim=-1) @ V if S.shape[1] else S.new_zeros(S.shape[0], V.shape[1])
    return m, l, O


def _pieces(seed: int) -> tuple[Tensor, Tensor, list[slice]]:
    """Scores (3, 23), values (23, 4), and the keys' pieces. Scores are small."""
    made = torch.Generator().manual_seed(4000 + seed)
    S = 4 * torch.rand(3, 23, generator=made, dtype=torch.float64) - 2
    V = torch.randn(23, 4, generator=made, dtype=torch.float64)
    bounds = [0, 1, 8, 10, 15, 18, 23]
    pieces = [slice(a, b) for a, b in zip(bounds, bounds[1:], strict=False)]
    for n, piece in enumerate(pieces):
        S[n % 2, piece] += 5  # of any even and odd piece, each holds the larger maximum in a row
    return S, V, pieces


def _merge_l(S: Tensor, a: Triple, b: Triple, m: Tensor, l: Tensor) -> Finding | None:
    want = torch.exp(S - m.double()).sum(-1, keepdim=True)
    if _same(l, want):
        return None
    rules = [
        ("no_correction", _SUM_AS_IT_IS, a[1] + b[1]),
        ("inverse_correction", _INVERSE, torch.exp(m - a[0]) * a[1] + torch.exp(m - b[0]) * b[1]),
        ("one_side_only", _ONE_SIDE, torch.exp(a[0] - m) * a[1] + b[1]),
        ("one_side_only", _ONE_SIDE, a[1] + torch.exp(b[0] - m) * b[1]),
        ("sides_swapped", _SWAPPED, torch.exp(b[0] - m) * a[1] + torch.exp(a[0] - m) * b[1]),
        ("weights_only", _WEIGHTS, torch.exp(a[0] - m) + torch.exp(b[0] - m)),
        ("log_sum", _LOG_SUM, m + want.log()),
    ]
    given = Text("By your own `m`, it", "按你自己的 `m`，")
    return _row_finding("l", 2, l, want, _says(rules, l), _MERGE_HINTS, given)


_SUM_AS_IT_IS = Text(
    "The sums were added as they were, but they are measured from different maxima.",
    "两个指数和被原样相加，可它们的基准不同。",
)
_ONE_SIDE = Text(
    "Only one side was brought to the common base. Either side may hold the smaller maximum.",
    "只有一边换到了共同的基准。两边都可能是最大值较小的一边。",
)
_SWAPPED = Text(
    "A's factor is on B's sum, and B's on A's.", "A 的因子乘到了 B 上，B 的乘到了 A 上。"
)
_WEIGHTS = Text(
    "These are the factors alone. Multiply each by its own sum.",
    "这只是两个因子，还要各自乘上自己的指数和。",
)
_LOG_SUM = Text(
    "This is m + log l, the log-sum-exp. Here `l` itself is asked for.",
    "这是 m + log l，即 log-sum-exp。这里要的是 `l` 本身。",
)
_MERGE_HINTS = (
    Text(
        "From which maximum is each of the two sums measured?", "两个指数和各以哪个最大值为基准？"
    ),
    Text(
        "w_a = exp(m_a − m)·l_a, w_b = exp(m_b − m)·l_b, l = w_a + w_b, O = (w_a·O_a + w_b·O_b)/l",
        "w_a = exp(m_a − m)·l_a，w_b = exp(m_b − m)·l_b，l = w_a + w_b，O = (w_a·O_a + w_b·O_b)/l",
    ),
)


def _merge_O(S: Tensor, V: Tensor, a: Triple, b: Triple, got: Triple) -> Finding | None:
    m, l, O = (t.double() for t in got)
    numerator = torch.exp(S - m) @ V
    want = numerator / l
    if _same(got[2], want):
        return None
    fa, fb = torch.exp(a[0] - m), torch.exp(b[0] - m)
    rules = [
        ("not_normalised", Text("Divide by `l`.", "还要除以 `l`。"), numerator),
        (
            "sums_forgotten",
            Text(
                "The weights lack l_a and l_b: each output counts for as much as its sum.",
                "权重里漏了 l_a 和 l_b：每个输出占多少，取决于它的指数和。",
            ),
            (fa * a[2] + fb * b[2]) / l,
        ),
        ("plain_mean", _PLAIN, (a[2] + b[2]) / 2),
        ("plain_mean", _PLAIN, a[2] + b[2]),
        ("no_correction", _SUM_AS_IT_IS, (a[1] * a[2] + b[1] * b[2]) / l),
        ("no_correction", _SUM_AS_IT_IS, (a[1] * a[2] + b[1] * b[2]) / (a[1] + b[1])),
        ("one_side_only", _ONE_SIDE, (fa * a[1] * a[2] + b[1] * b[2]) / l),
        ("one_side_only", _ONE_SIDE, (a[1] * a[2] + fb * b[1] * b[2]) / l),
        ("sides_swapped", _SWAPPED, (fb * a[1] * a[2] + fa * b[1] * b[2]) / l),
    ]
    given = Text("By your own `m` and `l`, it", "按你自己的 `m` 和 `l`，")
    return _row_finding("O", 3, got[2], want, _says(rules, got[2]), _MERGE_HINTS, given)


_PLAIN = Text(
    "The two outputs don't count the same: weight each by its share of the sum.",
    "两个输出的分量不一样：要按各自在指数和里的份额加权。",
)


class _Stop(Exception):
    """The learner's merge gave no state; carries what to say and the status."""

    def __init__(self, finding: Finding, status: str) -> None:
        self.finding, self.status = finding, status


def _merged(answer: Callable[..., Any], a: Triple, b: Triple) -> tuple[Triple, Outcome]:
    """The learner's merge of two states. Raises _Stop if no state comes back."""
    outcome = call(answer, a, b, skeleton=("m", "l", "O"))
    if outcome.error is not None:
        raise _Stop(finding_of(outcome.error), outcome.error.kind)
    form = _form_of_each(outcome.value, ("m", "l", "O"), [tuple(t.shape) for t in a])
    if form is not None:
        raise _Stop(form, "wrong")
    m, l, O = outcome.value
    return (m, l, O), outcome


def _merge_values(answer: Any, seed: int) -> dict[str, Finding]:
    """m, l and O of single merges, each given the learner's own earlier values."""
    S, V, pieces = _pieces(seed)
    found: dict[str, Finding] = {}
    for p, q in ((0, 1), (1, 0), (3, 4), (5, 2)):
        keys = torch.cat([torch.arange(23)[pieces[p]], torch.arange(23)[pieces[q]]])
        a, b = (_full_state(S[:, pieces[n]], V[pieces[n]]) for n in (p, q))
        got, _ = _merged(answer, a, b)
        want = torch.maximum(a[0], b[0])
        if "m" not in found and not _same(got[0], want):
            found["m"] = _row_finding("m", 1, got[0], want, _merge_m_says(a, b, got[0]), ())
        for name, finding in (
            ("l", _merge_l(S[:, keys], a, b, got[0], got[1])),
            ("O", _merge_O(S[:, keys], V[keys], a, b, got)),
        ):
            if finding is not None:
                found.setdefault(name, finding)
    return found


def _merge_m_says(a: Triple, b: Triple, m: Tensor) -> tuple[str, Text] | None:
    rules = [
        ("one_side_only", Text("This is m_a alone.", "这只是 m_a。"), a[0]),
        ("one_side_only", Text("This is m_b alone.", "这只是 m_b。"), b[0]),
        (
            "minimum",
            Text("This is the smaller one.", "这是较小的一个。"),
            torch.minimum(a[0], b[0]),
        ),
        ("max_of_all_rows", _ONE_MAX, torch.maximum(a[0], b[0]).max().expand_as(m)),
        ("sum", Text("This is their sum.", "这是两者之和。"), a[0] + b[0]),
    ]
    return _says(rules, m)


def _neutral(answer: Any, seed: int, judged: Sequence[str]) -> Finding | None:
    """E ⊕ A, A ⊕ E, E ⊕ E and a mixture by rows; of m, l, O only what is `judged`."""
    S, V, pieces = _pieces(seed)
    A = _full_state(S[:, pieces[1]], V[pieces[1]])
    E = _full_state(S[:, :0], V[:0])
    rows = torch.tensor([[True], [False], [False]])
    mixed: Triple = tuple(torch.where(rows, x, e) for x, e in zip(A, E, strict=True))  # type: ignore[assignment]
    for name, a, b, want in (
        ("E ⊕ A", E, A, A),
        ("A ⊕ E", A, E, A),
        ("E ⊕ E", E, E, E),
        ("[A, E, E] ⊕ [E, E, E]", mixed, E, mixed),
    ):
        got, _ = _merged(answer, a, b)
        for part, value, right in zip("mlO", got, want, strict=True):
            nan = bool(value.isnan().any())
            if nan or (part in judged and not _same(value, right)):
                return _neutral_finding(name, part, value, right, nan)
    return None


def _neutral_finding(name: str, part: str, value: Tensor, want: Tensor, nan: bool) -> Finding:
    en = zh = ""
    row = next((r for r in range(len(want)) if not _same(value[r], want[r])), 0)
    got, right = _number(value[row, 0]), _number(want[row, 0])
    if nan and part == "O":
        en = "Where l is 0, the division is 0/0. There O must be 0."
        zh = "l 为 0 时，除法变成 0/0。此时 O 应为 0。"
    elif nan:
        en = "Where m is −∞, m_a − m is −∞ − (−∞). Subtract 0 there instead of m."
        zh = "m 为 −∞ 时，m_a − m 就是 −∞ − (−∞)。此时应减 0，而不是减 m。"
    return Finding(
        Text(
            f"{name}: `{part}[{row}, 0]` is {got}. It should be {right}. {en}".strip(),
            f"{name}：`{part}[{row}, 0]` 是 {got}，应为 {right}。{zh}",
        ),
        variable=part,
        misconception=("zero_by_zero" if part == "O" else "inf_minus_inf") if nan else None,
        hints=(
            Text(
                "What is exp(−∞ − 0)? And what is exp(−∞ − (−∞))?",
                "exp(−∞ − 0) 是多少？exp(−∞ − (−∞)) 又是多少？",
            ),
        ),
    )


def _any_order(answer: Any, seed: int, judged: Sequence[str]) -> Finding | None:
    """Chain, tree and random orders of 6 pieces with scores of ±1000; what is `judged` only."""
    S, V, pieces = _pieces(seed)
    shift = torch.tensor([[1000.0], [-1000.0], [0.0]], dtype=torch.float64)
    S = 60 * S + shift
    want = _full_state(S, V)
    made = torch.Generator().manual_seed(5000 + seed)
    for trial in range(4):
        states = [_full_state(S[:, piece], V[piece]) for piece in pieces]
        while len(states) > 1:
            last = len(states) - 1
            i, j = (0, 1) if trial == 0 else torch.randperm(last + 1, generator=made)[:2].tolist()
            a, b = states[i], states[j]
            got, outcome = _merged(answer, a, b)
            changed = _tidy(outcome, got, torch.float64)
            if changed is not None:
                return changed
            states = [got, *(s for n, s in enumerate(states) if n not in (i, j))]
        for part, value, right in zip("mlO", states[0], want, strict=True):
            if part in judged and not _same(value, right, 1e-12):
                return _order_finding(part, value, right)
    return None


def _order_finding(part: str, value: Tensor, want: Tensor) -> Finding:
    off = (value.double() - want).abs().max()
    return Finding(
        Text(
            f"6 pieces with scores around ±1000, merged in another order: `{part}` is off by "
            f"{_number(off)}. Up to 1e-12 is allowed.",
            f"6 段、分数在 ±1000 附近，换个次序合并："
            f"`{part}` 相差 {_number(off)}，允许的误差是 1e-12。",
        ),
        variable=part,
        hints=(
            Text(
                "Does any exponent get above 0? Is everything in float64?",
                "有没有指数大于 0？是不是全程 float64？",
            ),
        ),
    )


@exercise("softmax.merge", points=30)
def merge(answer: Any, *, seed: int = 0) -> Marks:
    """merge(state_a, state_b): two (m, l, O) of (rows, 1), (rows, 1), (rows, dim) → (m, l, O)."""
    names = [name for name, _, _ in _MERGE_PARTS]
    found: dict[str, tuple[Finding, str]] = {}
    try:
        values = _merge_values(answer, seed)
        found = {name: (finding, "wrong") for name, finding in values.items()}
        wrong_first = min(("mlO".index(name) for name in values), default=3)
        judged = list("mlO"[:wrong_first])
        for name, look in (("neutral", _neutral), ("order", _any_order)):
            found |= _looked(look, name, answer, seed, judged)
    except _Stop as stop:
        found = dict.fromkeys(names, (stop.finding, stop.status))
    return judge("softmax.merge", _parts(_MERGE_PARTS, [found]))


def _looked(
    look: Callable[..., Finding | None], name: str, answer: Any, seed: int, judged: Sequence[str]
) -> dict[str, tuple[Finding, str]]:
    """What one property's look found. Nothing that is right to look at earns nothing."""
    if not judged:
        return {name: (_NOTHING_RIGHT, "wrong")}
    try:
        finding = look(answer, seed, judged)
    except _Stop as stop:
        return {name: (stop.finding, stop.status)}
    return {} if finding is None else {name: (finding, "wrong")}


_NOTHING_RIGHT = Finding(
    Text(
        "Get `m` right first; this is looked at afterwards.",
        "请先把 `m` 写对，再看这一项。",
    )
)
