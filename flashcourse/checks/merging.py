"""Exercise 4 of lesson 02_online_softmax: the merge of two partial states, and its laws."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from flashcourse.checks.compare import (
    form_of_each,
    parts_of,
    row_finding,
    same,
    says,
    state_of,
    tidy,
    write,
)
from flashcourse.checks.marks import Finding, Marks
from flashcourse.checks.online_softmax_words import (
    INVERSE,
    LOG_SUM,
    MERGE_HINTS,
    NO_SUM,
    NOTHING_RIGHT,
    ONE_MAX,
    ONE_SIDE,
    PLAIN,
    SUM_AS_IT_IS,
    SWAPPED,
    WEIGHTS,
)
from flashcourse.checks.probe import Outcome, call, finding_of, judge
from flashcourse.checks.registry import exercise
from flashcourse.words import Text

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
    m, l = state_of(S)
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
    if not bool((want > 1e-30).all()):  # by such an `m` any sum is 0
        return NOTHING_RIGHT
    if same(l, want):
        return None
    rules = [
        ("no_correction", SUM_AS_IT_IS, a[1] + b[1]),
        ("inverse_correction", INVERSE, torch.exp(m - a[0]) * a[1] + torch.exp(m - b[0]) * b[1]),
        ("one_side_only", ONE_SIDE, torch.exp(a[0] - m) * a[1] + b[1]),
        ("one_side_only", ONE_SIDE, a[1] + torch.exp(b[0] - m) * b[1]),
        ("sides_swapped", SWAPPED, torch.exp(b[0] - m) * a[1] + torch.exp(a[0] - m) * b[1]),
        ("weights_only", WEIGHTS, torch.exp(a[0] - m) + torch.exp(b[0] - m)),
        ("log_sum", LOG_SUM, m + want.log()),
    ]
    given = Text("By your own `m`, it", "按你自己的 `m`，")
    return row_finding("l", 2, l, want, says(rules, l), MERGE_HINTS, given)


def _merge_O(S: Tensor, V: Tensor, a: Triple, b: Triple, got: Triple) -> Finding | None:
    m, l, O = (t.double() for t in got)
    numerator = torch.exp(S - m) @ V
    want = numerator / l
    if same(got[2], want):
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
        ("plain_mean", PLAIN, (a[2] + b[2]) / 2),
        ("plain_mean", PLAIN, a[2] + b[2]),
        ("no_correction", SUM_AS_IT_IS, (a[1] * a[2] + b[1] * b[2]) / l),
        ("no_correction", SUM_AS_IT_IS, (a[1] * a[2] + b[1] * b[2]) / (a[1] + b[1])),
        ("one_side_only", ONE_SIDE, (fa * a[1] * a[2] + b[1] * b[2]) / l),
        ("one_side_only", ONE_SIDE, (a[1] * a[2] + fb * b[1] * b[2]) / l),
        ("sides_swapped", SWAPPED, (fb * a[1] * a[2] + fa * b[1] * b[2]) / l),
    ]
    given = Text("By your own `m` and `l`, it", "按你自己的 `m` 和 `l`，")
    return row_finding("O", 3, got[2], want, says(rules, got[2]), MERGE_HINTS, given)


class _Stop(Exception):
    """The learner's merge gave no state; carries what to say and the status."""

    def __init__(self, finding: Finding, status: str) -> None:
        self.finding, self.status = finding, status


def _merged(answer: Callable[..., Any], a: Triple, b: Triple) -> tuple[Triple, Outcome]:
    """The learner's merge of two states. Raises _Stop if no state comes back."""
    outcome = call(answer, a, b, skeleton=("m", "l", "O"))
    if outcome.error is not None:
        raise _Stop(finding_of(outcome.error), outcome.error.kind)
    form = form_of_each(outcome.value, ("m", "l", "O"), [tuple(t.shape) for t in a])
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
        if "m" not in found and not same(got[0], want):
            found["m"] = row_finding("m", 1, got[0], want, _merge_m_says(a, b, got[0]), ())
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
        ("max_of_all_rows", ONE_MAX, torch.maximum(a[0], b[0]).max().expand_as(m)),
        ("sum", Text("This is their sum.", "这是两者之和。"), a[0] + b[0]),
    ]
    return says(rules, m)


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
            if nan or (part in judged and not same(value, right)):
                return _neutral_finding(name, part, value, right, nan)
    return None


def _neutral_finding(name: str, part: str, value: Tensor, want: Tensor, nan: bool) -> Finding:
    en = zh = ""
    row = next((r for r in range(len(want)) if not same(value[r], want[r])), 0)
    got, right = write(value[row, 0]), write(want[row, 0])
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
            changed = tidy(outcome, got, torch.float64)
            if changed is not None:
                return changed
            states = [got, *(s for n, s in enumerate(states) if n not in (i, j))]
        for part, value, right in zip("mlO", states[0], want, strict=True):
            if part in judged and not same(value, right, 1e-12):
                return _order_finding(part, value, right)
    return None


def _order_finding(part: str, value: Tensor, want: Tensor) -> Finding:
    off = (value.double() - want).abs().max()
    return Finding(
        Text(
            f"6 pieces with scores around ±1000, merged in another order: `{part}` is off by "
            f"{write(off)}. Up to 1e-12 is allowed.",
            f"6 段、分数在 ±1000 附近，换个次序合并："
            f"`{part}` 相差 {write(off)}，允许的误差是 1e-12。",
        ),
        variable=part,
        hints=(
            Text(
                "Does any exponent get above 0? Is everything in float64?",
                "有没有指数大于 0？是不是全程 float64？",
            ),
        ),
    )


@exercise("softmax.merge", points=30, title=Text("Merging two states", "合并两份状态"))
def merge(answer: Any, *, seed: int = 0) -> Marks:
    """merge(state_a, state_b): two (m, l, O) of (rows, 1), (rows, 1), (rows, dim) → (m, l, O)."""
    names = [name for name, _, _ in _MERGE_PARTS]
    found: dict[str, tuple[Finding, str]] = {}
    try:
        values = _merge_values(answer, seed)
        found = {name: (finding, "wrong") for name, finding in values.items()}
        wrong_first = min(("mlO".index(name) for name in values), default=3)
        # Of the maximum alone, any two states would do.
        for name, look, least in (("neutral", _neutral, 1), ("order", _any_order, 2)):
            judged = "mlO"[: max(wrong_first, 2)] if wrong_first >= least else ""
            found |= _looked(
                look, name, answer, seed, judged, NOTHING_RIGHT if "m" in found else NO_SUM
            )
    except _Stop as stop:
        found = dict.fromkeys(names, (stop.finding, stop.status))
    return judge("softmax.merge", parts_of(_MERGE_PARTS, [found]))


def _looked(
    look: Callable[..., Finding | None],
    name: str,
    answer: Any,
    seed: int,
    judged: Sequence[str],
    first: Finding,
) -> dict[str, tuple[Finding, str]]:
    """What one property's look found. Nothing that is right to look at earns nothing.

    first: what to say then.
    """
    if not judged:
        return {name: (first, "wrong")}
    try:
        finding = look(answer, seed, judged)
    except _Stop as stop:
        return {name: (stop.finding, stop.status)}
    return {} if finding is None else {name: (finding, "wrong")}
