"""What the outputs alone say about a function whose values can't be read by name."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from flashcourse.attention import scores
from flashcourse.checks.forward_evidence import Evidence, Run
from flashcourse.checks.forward_findings import number, returned, worst
from flashcourse.checks.forward_tile import agrees
from flashcourse.checks.marks import Finding
from flashcourse.checks.misconceptions import BY_ID, GENERIC
from flashcourse.checks.probe import tensor_problem
from flashcourse.words import Text


@dataclass(frozen=True)
class Verdict:
    """shown: the TODOs that the outputs show to be right. finding: the first wrong thing."""

    shown: frozenset[int]
    finding: Finding


def judge_behaviour(evidence: Evidence) -> Verdict:
    """First inside one tile, then from one tile to the next."""
    one = evidence.probes["one"]
    if not one.right:
        todo, misconception = _inside_a_tile(one)
        shown = frozenset({1, 2, 3, 4, 5, 6} - {todo}) if todo else frozenset()
        text = Text(
            "One tile that holds everything comes out wrong already. " + _numbers(one).en,
            "只有一个块、装下全部数据时，结果就已经不对。" + _numbers(one).zh,
        )
        return Verdict(shown, _finding(text, todo, misconception))
    todo, en, zh, run = _between_tiles(evidence)
    shown = frozenset({1, 2, 3, 4, 5, 6} - {todo}) if todo else frozenset({1, 2, 4})
    numbers = _numbers(run)
    text = Text(
        f"One tile alone is right. {en} {numbers.en}", f"单独一个块是对的。{zh}{numbers.zh}"
    )
    return Verdict(shown, _finding(text, todo, None))


def _finding(text: Text, todo: int | None, misconception: str | None) -> Finding:
    hints = BY_ID[misconception].hints if misconception else GENERIC.get(todo or 0, ())
    return Finding(text, todo=todo, misconception=misconception, hints=hints, variable="out")


def _numbers(run: Run) -> Text:
    output = run.output
    if output is None:
        return returned(run.record.output_type) or Text("", "")
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


def _inside_a_tile(run: Run) -> tuple[int | None, str | None]:
    """The TODO and the misconception whose closed form gives the output, if exactly one does."""
    output = run.output
    if output is None:
        return None, None
    got = output.cpu().double()
    q, k, v = (t.cpu().double() for t in (run.problem.q, run.problem.k, run.problem.v))
    fitting = {
        (todo, id)
        for todo, id, value in _closed_forms(q, k, v)
        if agrees(got, value, run.problem.tolerance)
    }
    return fitting.pop() if len(fitting) == 1 else (None, None)


def _closed_forms(q: Tensor, k: Tensor, v: Tensor) -> list[tuple[int, str, Tensor]]:
    S, root = scores(q, k), q.shape[-1] ** 0.5
    P = torch.exp(S - S.amax(dim=-1, keepdim=True))
    causal = S.masked_fill(torch.ones_like(S).triu(1).bool(), -torch.inf)
    return [
        (2, "no-scale", torch.softmax(S * root, dim=-1) @ v),
        (2, "scale-twice", torch.softmax(S / root, dim=-1) @ v),
        (2, "scale-inverted", torch.softmax(S * root**2, dim=-1) @ v),
        (2, "causal-mask", torch.softmax(causal, dim=-1) @ v),
        (2, "scores-transposed", torch.softmax(S.T, dim=-1) @ v),
        (5, "sum-of-the-whole-tile", P @ v / P.sum()),
        (5, "sum-over-rows", P @ v / P.sum(dim=0)[:, None]),
        (5, "mean-instead-of-sum", P @ v / P.mean(dim=-1, keepdim=True)),
        (6, "divided-twice", P @ v / P.sum(dim=-1, keepdim=True) ** 2),
    ]


def _between_tiles(evidence: Evidence) -> tuple[int | None, str, str, Run]:
    """Which step fails when tiles follow each other: the TODO, or None, and a sentence."""
    probes = evidence.probes
    falling, rising = probes["falling"], probes["rising"]
    if falling.right and not rising.right:
        return _rescaling(probes["rising weights"], rising)
    if not falling.right:
        return _accumulating(probes["falling weights"], falling)
    en = "Tiles whose maxima rise or fall steadily are right too, other orders are not."
    return None, en, "最大值逐块上升或下降时也对，其他次序就不对了。", evidence.first


def _weights(run: Run) -> float | None:
    """Where the weights of a row add up to, at the row that is furthest from 1; None if NaN."""
    output = run.output
    if output is None or not bool(output.isfinite().all()):
        return None
    flat = output.cpu().double().flatten()
    return float(flat[(flat - 1).abs().argmax()])


def _rescaling(weights: Run, run: Run) -> tuple[int | None, str, str, Run]:
    total = _weights(weights)
    if total is None or abs(total - 1) < 1e-4:
        en = "When the maximum grows from tile to tile, the result is wrong."
        return None, en, "最大值逐块变大时，结果就不对了。", run
    shown = number(total)
    if total < 1:
        en = f"When the maximum grows, your weights add up to {shown}: l is too large."
        return 5, en, f"最大值变大时，你的权重之和是 {shown}：l 太大了。", run
    en = f"When the maximum grows, your weights add up to {shown}: O is too large beside l."
    return 6, en, f"最大值变大时，你的权重之和是 {shown}：和 l 相比，O 太大了。", run


def _accumulating(weights: Run, run: Run) -> tuple[int | None, str, str, Run]:
    """α is 1 here, so that many mistakes look alike: no TODO is named."""
    total = _weights(weights)
    if total is None or abs(total - 1) < 1e-4:
        en = "When the maximum stays as it is, adding the next tile goes wrong."
        return None, en, "最大值不变时，加入下一个块就出错。", run
    shown = number(total)
    en = f"When the maximum stays as it is, your weights add up to {shown}, not to 1."
    return None, en, f"最大值不变时，你的权重之和是 {shown}，不是 1。", run
