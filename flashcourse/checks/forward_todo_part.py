"""The points of one TODO."""

from __future__ import annotations

from dataclasses import replace

from flashcourse.checks.forward_behaviour import ALL
from flashcourse.checks.forward_evidence import Evidence
from flashcourse.checks.forward_findings import finding_of_fault
from flashcourse.checks.forward_parts import (
    ALL_KEYS,
    about,
    failed_part,
    not_reached,
    status_of_nothing,
    unfinished_from,
    verdict_of,
)
from flashcourse.checks.forward_rules import crash_misconception, misconception_of
from flashcourse.checks.forward_run import Broken, failed_todo, is_readable
from flashcourse.checks.marks import Finding
from flashcourse.checks.misconceptions import BY_ID, GENERIC, SHAPES
from flashcourse.checks.probe import Part, finding_of
from flashcourse.running import Failure
from flashcourse.words import Text

PASSED = {
    1: Text("TODO 1: out, m and l start right.", "TODO 1：out、m、l 的初始值正确。"),
    2: Text("TODO 2: the scores S_ij are right.", "TODO 2：分数 S_ij 正确。"),
    3: Text(
        "TODO 3: the maxima m_block and m_new are right.", "TODO 3：最大值 m_block、m_new 正确。"
    ),
    4: Text("TODO 4: the weights P_ij are right.", "TODO 4：权重 P_ij 正确。"),
    5: Text(
        "TODO 5: the sums l_block and l_new are right.", "TODO 5：指数和 l_block、l_new 正确。"
    ),
    6: Text(
        "TODO 6: the output and the state are updated right.", "TODO 6：输出和状态的更新正确。"
    ),
}


def todo_part(evidence: Evidence, todo: int) -> Part:
    part = Part(10, PASSED[todo])
    broken = evidence.diagnosis.broken.get(todo)
    if broken is not None:
        return _broken_part(part, todo, broken)
    if evidence.online:
        return _with_fault(evidence, part, todo) if todo == 1 else part
    if evidence.failure is not None:
        return _todo_before_failure(evidence, part, todo, evidence.failure)
    unfinished = unfinished_from(evidence)
    if unfinished is not None and todo >= unfinished:
        return not_reached(part, todo, unfinished)
    if todo in evidence.faults and (evidence.named or unfinished is not None):
        return _with_fault(evidence, part, todo)
    if todo in evidence.seen and (evidence.named or unfinished is not None):
        return part
    if evidence.shown.all_at_once:
        return replace(part, finding=about("everything-at-once", ALL_KEYS))
    if evidence.right_numbers and not (todo == 2 and evidence.shown.all_recorded):
        return replace(part, finding=evidence.shown.cuts.finding)
    verdict = verdict_of(evidence)
    if todo in verdict.shown & _can_be_shown(evidence):
        return part
    return replace(part, finding=verdict.finding, status=status_of_nothing(evidence))


def _can_be_shown(evidence: Evidence) -> frozenset[int]:
    """What outputs may show of a function whose values can't be read by name.

    Where neither a record nor the output shows tiles, nobody knows that there were any. Right
    across tiles without a running softmax, only the scores are certain to be right, unless the one
    mistake is known that makes it look so.
    """
    if not evidence.right_across_tiles:
        return ALL if evidence.shown.tiles else frozenset()
    if evidence.shown.rescales:
        return ALL
    if not evidence.shown.all_recorded:
        return frozenset()
    return ALL if verdict_of(evidence).finding.todo else frozenset({2})


def _broken_part(part: Part, todo: int, broken: Broken) -> Part:
    """The TODO because of which the function crashes: its wrong value, else the exception."""
    if broken.fault is not None:
        id = misconception_of(broken.readings, broken.fault)
        return replace(part, finding=finding_of_fault(broken.fault, id), status=broken.error.kind)
    return replace(part, finding=_failure_finding(broken.error, todo), status=broken.error.kind)


def _with_fault(evidence: Evidence, part: Part, todo: int) -> Part:
    if todo == 1 and evidence.right_numbers and evidence.state_fault is None:
        return part
    if todo not in evidence.faults:
        return part
    fault = evidence.faults[todo]
    id = misconception_of(evidence.readings(fault), fault)
    return replace(part, finding=finding_of_fault(fault, id))


def _todo_before_failure(evidence: Evidence, part: Part, todo: int, failure: Failure) -> Part:
    """What was seen before the function failed still counts."""
    if failure.kind == "too_slow":  # what was seen depends on when it was stopped
        return failed_part(part, evidence)
    if not is_readable(evidence.first, failure):
        return replace(part, finding=_failure_finding(failure, None), status=failure.kind)
    failed = max([failed_todo(evidence.first.record, failure), *evidence.diagnosis.unrepaired])
    fault = evidence.first.reading.faults.get(todo)
    if fault is not None:
        id = misconception_of((evidence.first.reading,), fault)
        return replace(part, finding=finding_of_fault(fault, id))
    if todo in evidence.seen and todo < failed:
        return part
    if todo == failed:
        return replace(part, finding=_failure_finding(failure, todo), status=failure.kind)
    if todo < failed:
        return replace(part, finding=finding_of(failure), status=failure.kind)
    return not_reached(part, todo, failed)


def _failure_finding(failure: Failure, todo: int | None) -> Finding:
    finding = finding_of(failure, todo)
    id = crash_misconception(failure)
    if id:
        return replace(finding, misconception=id, hints=BY_ID[id].hints)
    if failure.kind != "crashed" or not todo:
        return finding
    about_sizes = todo > 1 and ("size" in failure.message or "shape" in failure.message)
    question, formula = GENERIC[todo]
    return replace(finding, hints=(SHAPES if about_sizes else question, formula))
