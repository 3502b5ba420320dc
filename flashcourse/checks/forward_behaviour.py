"""What the outputs alone say about a function whose values can't be read by name.

A TODO is named only where the closed form of its mistake (`forward_outputs.py`) gives the very
numbers of every run, in 1, 2 and 3 tiles, and no other TODO's does. Otherwise the numbers are
shown and nobody is accused.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

from flashcourse.checks.forward_evidence import Evidence
from flashcourse.checks.forward_findings import case, number, returned, worst
from flashcourse.checks.forward_outputs import FORMS, SCORES, Form, Parts
from flashcourse.checks.forward_run import Run
from flashcourse.checks.forward_tile import Problem, agrees
from flashcourse.checks.marks import Finding
from flashcourse.checks.misconceptions import BY_ID, GENERIC
from flashcourse.checks.probe import tensor_problem
from flashcourse.words import Text

ALL = frozenset({1, 2, 3, 4, 5, 6})
IN_ONE_TILE = frozenset({1, 2, 4})  # what a right result in one tile shows


@dataclass(frozen=True)
class Verdict:
    """shown: the TODOs that the outputs show to be right. finding: the first wrong thing."""

    shown: frozenset[int]
    finding: Finding


@dataclass(frozen=True)
class Cause:
    """The TODO and the misconception that the numbers give away, as far as they do."""

    todo: int | None = None
    misconception: str | None = None


def judge_behaviour(evidence: Evidence) -> Verdict:
    """First inside one tile, then from one tile to the next, then under stress."""
    runs = [evidence.probes["one"], *(evidence.run(p) for p in _in_tiles(evidence.seed))]
    first = next((run for run in runs if not run.right), None)
    if first is None:
        return _other_orders(evidence)
    cause = _cause(FORMS, runs)
    shown = ALL - {cause.todo} if cause.todo else frozenset[int]()
    if first is not runs[0]:
        return Verdict(shown or IN_ONE_TILE, _finding(_between_tiles(evidence, first), cause))
    if cause.todo is None:  # the scores may not be all that is wrong
        cause = _cause(SCORES, runs[:1])
        shown = frozenset({1, 4}) if cause.todo else shown
    en, zh = (
        "One tile that holds everything comes out wrong already.",
        ("只有一个块、装下全部数据时，结果就已经不对。"),
    )
    return Verdict(shown, _finding(_join(Text(en, zh), _numbers(first), _pattern(runs)), cause))


def _in_tiles(seed: int) -> list[Problem]:
    """2 tiles, 2 tiles of another width, 3 tiles; as many tiles of rows, each of them full."""
    g = torch.Generator().manual_seed(seed + 211)
    sizes = ((8, 4, 4), (6, 3, 3), (6, 3, 2))
    problems = []
    for rows, dim, block in sizes:
        q, k, v = torch.randn(3, rows, dim, generator=g).unbind()
        problems.append(Problem(f"{rows // block} tiles", q, k, v, block))
    return problems


# Where the cause can't be told.
UNKNOWN = (
    Text(
        "Which of your lines is the first to give a wrong number? With the names of the TODOs "
        "(`S_ij`, `m_new`, `P_ij`, `l_new`, `out_i`, …) this check can tell you.",
        "你的哪一行最先给出错误的数？变量用 TODO 里的名字（`S_ij`、`m_new`、`P_ij`、`l_new`、"
        "`out_i` 等），检查就能告诉你。",
    ),
    Text(
        "S = q kᵀ / √d; m_new = max(m_old, rowmax S); P = exp(S − m_new); α = exp(m_old − m_new); "
        "l_new = α·l_old + rowsum P; O_new = (α·l_old·O_old + P V) / l_new",
        "S = q kᵀ / √d；m_new = max(m_old, rowmax S)；P = exp(S − m_new)；α = exp(m_old − m_new)；"
        "l_new = α·l_old + rowsum P；O_new = (α·l_old·O_old + P V) / l_new",
    ),
)


def _finding(text: Text, cause: Cause) -> Finding:
    todo, id = cause.todo, cause.misconception
    hints = BY_ID[id].hints if id else GENERIC[todo] if todo else UNKNOWN
    return Finding(text, todo=todo, misconception=id, hints=hints, variable="out")


def _join(*texts: Text) -> Text:
    return Text(" ".join(t.en for t in texts if t.en), "".join(t.zh for t in texts))


NOTHING = Text("", "")


def _numbers(run: Run) -> Text:
    output = run.output
    if output is None:
        return returned(run.record.output_type) or NOTHING
    problem = tensor_problem(output, run.exact.shape, finite=False)
    if problem is not None:
        return problem.text
    got = output.cpu().double()
    at = worst(got, run.exact)
    mine, right = number(float(got[at])), number(float(run.exact[at]))
    return Text(
        f"`out{list(at)}` is {mine}. Exact attention gives {right}.",
        f"`out{list(at)}` 是 {mine}，精确注意力给出 {right}。",
    )


# ---- the cause ----------------------------------------------------------------------------------


def _cause(forms: Iterable[Form], runs: list[Run]) -> Cause:
    """What all forms that give the output of every run have in common."""
    outputs = [run.output for run in runs]
    if any(output is None or not output.is_floating_point() for output in outputs):
        return Cause()
    parts = [Parts(run.problem) for run in runs]
    fitting = [form for form in forms if all(map(_fits, [form] * len(runs), runs, parts))]
    todos = {form.todo for form in fitting}
    ids = {form.misconception for form in fitting}
    todo = todos.pop() if len(todos) == 1 else None
    return Cause(todo, ids.pop() if todo and len(ids) == 1 else None)


def _fits(form: Form, run: Run, parts: Parts) -> bool:
    if parts.tiles > form.most:
        return True
    output = run.output
    assert output is not None
    want = form.output(parts)
    finite = bool(want.isfinite().all())
    return finite and agrees(output.detach().cpu().double(), want, run.problem.tolerance)


# ---- what can be seen without knowing the cause --------------------------------------------------


def _pattern(runs: list[Run]) -> Text:
    """NaN or infinite, all zeros, or all numbers wrong by one factor."""
    outputs = [run.output for run in runs]
    if any(o is None or o.shape != run.exact.shape for o, run in zip(outputs, runs, strict=True)):
        return NOTHING
    got = torch.cat([o.cpu().double().flatten() for o in outputs if o is not None])
    exact = torch.cat([run.exact.flatten() for run in runs])
    if bool(got[: runs[0].exact.numel()].isinf().all()):
        return Text(
            "Every number of that tile is infinite: you divide by 0.",
            "这个块里每个数都是无穷大：你除以了 0。",
        )
    if not bool(got.isfinite().all()):
        return Text(
            "0 / 0, ∞ − ∞, 0 · ∞ and a division by 0 give that. In the first tile m is still −∞.",
            "0 / 0、∞ − ∞、0 · ∞ 或者除以 0 会得到这样的数。在第一个块里，m 还是 −∞。",
        )
    if bool((got == 0).all()):
        return Text(
            "All of `out` is 0: nothing that you compute reaches it.",
            "`out` 全是 0：你算出的东西没有写进去。",
        )
    factor = float((got * exact).sum() / (exact * exact).sum())
    if agrees(got, factor * exact, 1e-5):
        shown = number(factor)
        return Text(
            f"Every number in `out` is {shown} times the right one.",
            f"`out` 里每个数都是正确值的 {shown} 倍。",
        )
    return NOTHING


def _between_tiles(evidence: Evidence, first: Run) -> Text:
    count = Parts(first.problem).tiles
    here = Text(
        f"{'One tile alone is' if count == 2 else 'Up to 2 tiles are'} right, {count} are not.",
        f"{'单独一个块' if count == 2 else '2 个块以内'}是对的，{count} 个块就不对了。",
    )
    return _join(here, _numbers(first), _part_that_counts(first), _weights(evidence))


def _part_that_counts(run: Run) -> Text:
    """Whether only the first or only the last tile of keys counts."""
    output, p = run.output, Parts(run.problem)
    if output is None:
        return NOTHING
    got = output.cpu().double()
    first = torch.softmax(p.S[:, : p.block], dim=-1) @ p.v[: p.block]
    if agrees(got, first, run.problem.tolerance):
        return Text(
            "Your result is that of the first tile of keys alone.",
            "你的结果只含第一个 key 块。",
        )
    if agrees(got, p.A_new / p.l_new, run.problem.tolerance):
        return Text(
            "Your result is that of the last tile of keys alone: what came before it is lost.",
            "你的结果只含最后一个 key 块：前面的都丢了。",
        )
    return NOTHING


def _weights(evidence: Evidence) -> Text:
    """What the weights of a row add up to when the maximum stays, or else when it grows."""
    probes = evidence.probes
    falling = _total(probes["falling weights"])
    if falling is not None and abs(falling - 1) > 1e-4:
        shown = number(falling)
        return Text(
            f"When the maximum stays as it is, your weights add up to {shown}, not to 1.",
            f"最大值不变时，你的权重之和是 {shown}，不是 1。",
        )
    rising = _total(probes["rising weights"])
    if not probes["falling"].right or rising is None or abs(rising - 1) < 1e-4:
        return NOTHING
    shown = number(rising)
    which = ("large", "small", "大", "小") if rising < 1 else ("small", "large", "小", "大")
    return Text(
        f"When the maximum grows, your weights add up to {shown}: l is too {which[0]}, or what it "
        f"divides too {which[1]}.",
        f"最大值变大时，你的权重之和是 {shown}：l 太{which[2]}，或者被它除的部分太{which[3]}。",
    )


def _total(run: Run) -> float | None:
    """What the weights of a row add up to, at the row that is furthest from 1; None if NaN."""
    output = run.output
    if output is None or not bool(output.isfinite().all()):
        return None
    flat = output.cpu().double().flatten()
    return float(flat[(flat - 1).abs().argmax()])


# ---- right with ordinary scores -----------------------------------------------------------------


def _other_orders(evidence: Evidence) -> Verdict:
    """Right in 1, 2 and 3 tiles: what else is wrong, most of all under stress."""
    wrong = next((run for run in evidence.runs if not run.right), evidence.first)
    name = case(wrong.problem.name)
    if wrong.problem.name not in evidence.stressed:
        text = Text(f"Wrong with {name.en}.", f"{name.zh}时不对。")
        shown = ALL if evidence.right_in_full_blocks else IN_ONE_TILE
        return Verdict(shown, _finding(_join(text, _numbers(wrong)), Cause()))
    text = Text(
        f"Right with ordinary scores, wrong with {name.en}.",
        f"分数普通时是对的，{name.zh}时就不对了。",
    )
    why = Text(
        "What you subtract before exp is not the largest score that the row has met so far.",
        "你在 exp 之前减去的，不是这一行到目前为止的最大分数。",
    )
    cause = _base(evidence)
    shown = ALL - {cause.todo} if cause.todo else frozenset({2, 5, 6})
    return Verdict(shown, _finding(_join(text, _numbers(wrong), why), cause))


# Scores of one row that show which number is subtracted: float32's exp is 0 below −104 and
# infinite above 88.7. With q = 1 and dim = 1 the scores are the keys.
BASES = {
    "one low": ([1.0], [-200.0], 1),
    "one high": ([1.0], [200.0], 1),
    "a fall": ([1.0, 1.0], [30.0, -200.0], 1),
    "a fall from above": ([1.0, 1.0], [100.0, -20.0], 1),
    "far apart": ([1.0, 1.0], [0.0, -200.0], 2),
    "another row's": ([1.0, 0.0], [200.0, 190.0], 2),
    "just too high": ([1.0, 1.0], [88.5, 89.0], 2),
}
# By the cases that go wrong. Where several TODOs could be behind them, none is named.
WRONG_BASE = {
    frozenset({"one low"}): Cause(1),  # never below where m starts
    frozenset({"another row's"}): Cause(3, "max-of-the-whole-tile"),
    frozenset({"far apart"}): Cause(3),  # something smaller than the maximum of the row
    # It hardly moves with the scores.
    frozenset({"one low", "one high", "a fall from above", "another row's"}): Cause(3),
    frozenset({"a fall", "a fall from above"}): Cause(3, "max-forgets-the-past"),
    frozenset({"one low", "a fall", "far apart"}): Cause(3, "max-of-absolute-values"),
}


def _base(evidence: Evidence) -> Cause:
    return WRONG_BASE.get(frozenset(n for n in BASES if not _right_base(evidence, n)), Cause())


def _right_base(evidence: Evidence, name: str) -> bool:
    q, k, block = BASES[name]
    values = torch.arange(1.0, len(k) + 1) / 8  # small: only exp shall overflow
    problem = Problem(name, Tensor(q)[:, None], Tensor(k)[:, None], values[:, None], block)
    return evidence.run(problem).right
