"""The points of the whole function and of its stability: what the TODOs do not ask for."""

from __future__ import annotations

from dataclasses import replace

from flashcourse.checks.forward_difference import difference, missing_tiles
from flashcourse.checks.forward_evidence import Evidence
from flashcourse.checks.forward_findings import case, returned
from flashcourse.checks.forward_parts import (
    NO_TILES,
    about,
    blocked_part,
    status_of_nothing,
    todos_at_fault,
)
from flashcourse.checks.forward_run import Run
from flashcourse.checks.marks import Finding
from flashcourse.checks.probe import Part
from flashcourse.words import Text


def whole_parts(evidence: Evidence) -> list[Part]:
    equal = Text("Equal to exact attention on even blocks.", "整除分块时，与精确注意力一致。")
    short = Text("Short last block and one tile alone: right.", "末块较短、只有一块：都正确。")
    short = short if evidence.cross.right else _without_cross(short)
    form = Text("Returns one tensor and leaves q, k, v alone.", "只返回一个张量，不改动 q、k、v。")
    runs = evidence.compared
    even = [runs["even"], runs["single"]]
    if evidence.all_else_right:  # if not, 256 rows are wrong for a reason that shows in 8
        even.append(evidence.long)
    return [
        _compared(evidence, Part(10, equal), even),
        _compared(evidence, Part(5, short), [runs["ragged"], runs["one tile"], runs["float64"]]),
        _form(evidence, Part(5, form)),
    ]


def _without_cross(text: Text) -> Text:
    """The loops are given for any number of keys: whoever wrote others is told, for no points."""
    more = Text(
        " Not marked: 4 queries with 5 keys, or a v of another width than k, do not work yet.",
        "（不计分：4 个 query 配 5 个 key，或 v 与 k 宽度不同时，结果还不对。）",
    )
    return Text(text.en + more.en, text.zh + more.zh)


def _compared(evidence: Evidence, part: Part, runs: list[Run]) -> Part:
    blocked = blocked_part(evidence, part)
    if blocked is not None:
        return blocked
    for run in runs:
        finding, status = difference(evidence, run)
        if finding is not None:
            return replace(part, finding=finding, status=status)
    exact = not evidence.diagnosis.broken and all(run.right for run in runs)
    return part if exact else no_more_than(evidence, part, runs)


def no_more_than(evidence: Evidence, part: Part, runs: list[Run]) -> Part:
    """The points stay, but the sentence must not say that a wrong result is right."""
    todos = ", ".join(map(str, todos_at_fault(evidence)))
    names = [case(run.problem.name) for run in runs]
    en, zh = "; ".join(name.en for name in names), "；".join(name.zh for name in names)
    text = Text(
        f"Nothing wrong beyond TODO {todos} ({en}).", f"除 TODO {todos} 外没有别的错（{zh}）。"
    )
    return replace(part, passed=text)


def _form(evidence: Evidence, part: Part) -> Part:
    blocked = blocked_part(evidence, part)
    if blocked is not None:
        return blocked
    record = evidence.first.record
    text = returned(record.output_type)
    if text is not None:
        more = record.output is not None and record.output_type.startswith(("tuple", "list"))
        finding = about("returns-more-than-the-output", text) if more else Finding(text)
        return replace(part, finding=finding, status=status_of_nothing(evidence))
    changed = sorted({name for run in evidence.runs for name in run.inputs_changed})
    if changed:
        names = ", ".join(f"`{name}`" for name in changed)
        text = Text(f"Your code changes its input {names}.", f"你的代码改动了输入 {names}。")
        return replace(part, finding=about("inputs-changed", text))
    return part


def with_stub(evidence: Evidence, parts: list[Part]) -> list[Part]:
    """The line that raises is still there: `whole` can't have its points, and it is said which."""
    line = evidence.first.record.stub_line
    if line is None:
        return parts
    text = Text(
        f"Line {line} still raises NotImplementedError. Delete it: nothing below it is run.",
        f"第 {line} 行还在抛出 NotImplementedError。请删掉它：它下面的代码都不会运行。",
    )
    return [
        replace(p, finding=Finding(text, line=line), status="unfinished") if p.points else p
        for p in parts
    ]


def stability_part(evidence: Evidence) -> Part:
    passed = Text(
        "Stays right for large, very negative, falling and rising scores, and in bfloat16.",
        "分数很大、很负、逐块下降或上升时，以及用 bfloat16 时，结果都正确。",
    )
    part = Part(10, passed)
    blocked = blocked_part(evidence, part)
    if blocked is not None:
        return blocked
    runs = [*evidence.stressed.values(), *evidence.other_tensors]
    for run in runs:
        finding, status = _instability(evidence, run)
        if finding is not None:
            return replace(part, finding=finding, status=status)
    exact = not evidence.diagnosis.broken and all(run.right for run in runs)
    if exact:
        return part
    if not (evidence.named or evidence.shown.tiles or evidence.right_across_tiles):
        return replace(part, finding=Finding(NO_TILES))
    if todos_at_fault(evidence):
        return no_more_than(evidence, part, runs)
    return replace(part, passed=Text("No overflow under large scores.", "分数很大时也没有溢出。"))


def _instability(evidence: Evidence, run: Run) -> tuple[Finding | None, str]:
    output = run.output
    wrong_anyway = not evidence.first.right
    if wrong_anyway and output is not None and bool(output.isfinite().all()):
        return None, "right"  # `whole` speaks about wrong numbers
    if wrong_anyway and missing_tiles(evidence, evidence.first) is not None:
        return None, "right"
    said = evidence.state_fault is not None or returned(evidence.first.record.output_type)
    if said and any(run is other for other in evidence.other_tensors):
        return None, "right"  # TODO 1 speaks about the state, `whole` about what is returned
    return difference(evidence, run)
