"""What the parts of lesson 3's marks share: why one can't be looked at, and whose fault it is."""

from __future__ import annotations

from dataclasses import replace

from flashcourse.checks.forward_behaviour import Verdict, judge_behaviour
from flashcourse.checks.forward_evidence import Evidence
from flashcourse.checks.forward_problems import KEYS, NARROW
from flashcourse.checks.forward_relations import TODOS
from flashcourse.checks.marks import Finding
from flashcourse.checks.misconceptions import BY_ID
from flashcourse.checks.probe import Part, finding_of
from flashcourse.words import Text

ALL_KEYS = Text(
    f"Your code looks at all {KEYS} keys at once, although block_size is {NARROW}.",
    f"block_size 是 {NARROW}，你的代码却一次看了全部 {KEYS} 个 key。",
)


MOST_BROKEN = 2  # TODOs that raise: of a function with more of them, nothing is left to judge

NO_TILES = Text(
    "Nothing shows that your code works tile by tile: no exponential of a tile's scores was seen.",
    "看不出你的代码在逐块计算：没有见到任何一个块的分数的指数。",
)


def about(id: str, text: Text, line: int | None = None) -> Finding:
    return Finding(text, misconception=id, hints=BY_ID[id].hints, line=line)


def verdict_of(evidence: Evidence) -> Verdict:
    if evidence.verdict is None:
        evidence.verdict = judge_behaviour(evidence)
    return evidence.verdict


def status_of_nothing(evidence: Evidence) -> str:
    kind = evidence.first.record.output_type
    return "unfinished" if kind in ("NoneType", "ellipsis") else "wrong"


def todos_at_fault(evidence: Evidence) -> list[int]:
    return sorted({*evidence.diagnosis.broken, *(evidence.faults if evidence.named else ())})


def failed_part(part: Part, evidence: Evidence) -> Part:
    failure = evidence.failure
    assert failure is not None
    return replace(part, finding=finding_of(failure), status=failure.kind)


def not_reached(part: Part, todo: int, first: int) -> Part:
    if not todo:
        text = Text(f"TODO {first} has to be finished first.", f"先把 TODO {first} 写完。")
        return replace(part, finding=Finding(text), status="unfinished")
    if todo == first:
        text = Text(f"TODO {todo} is not finished yet.", f"TODO {todo} 还没有写完。")
    else:
        text = Text(
            f"TODO {todo} can't be checked before TODO {first} works.",
            f"TODO {first} 写好之前，无法检查 TODO {todo}。",
        )
    return replace(part, finding=Finding(text, todo=todo), status="unfinished")


def unfinished_from(evidence: Evidence) -> int | None:
    """The first TODO of those at the end that set nothing, in a function that changed nothing."""
    if evidence.first.right:
        return None
    record = evidence.first.record
    open_ones = [todo for todo in TODOS if todo not in evidence.seen]
    if not open_ones or open_ones != list(range(open_ones[0], 7)) or "out" not in record.start:
        return None
    output, start = evidence.first.output, record.start["out"]
    untouched = output is None or (output.shape == start.shape and bool((output == start).all()))
    return open_ones[0] if untouched else None


def blocked_part(evidence: Evidence, part: Part) -> Part | None:
    """The part with the reason why it can't be looked at; None where it can."""
    if evidence.failure is not None:
        return failed_part(part, evidence)
    broken = evidence.diagnosis.broken
    if len(broken) > MOST_BROKEN:
        error = broken[min(broken)].error
        return replace(part, finding=finding_of(error), status=error.kind)
    unfinished = unfinished_from(evidence)
    if unfinished is not None:
        return not_reached(part, 0, unfinished)
    any_right = any(run.right for run in evidence.runs)
    if not any_right and not evidence.named and not verdict_of(evidence).shown:
        finding = verdict_of(evidence).finding
        return replace(part, finding=finding, status=status_of_nothing(evidence))
    return None
