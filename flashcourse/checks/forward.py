"""The exercises of lesson 3: `flash_attention_forward_sim`, TODO by TODO and as a whole.

Who loses what (100 points: TODO 1–6 10 each, whole 20, tiling 10, stability 10):

- A function whose results are right in every respect, and that rescales from tile to tile
  (`cuts.py`), gets all points of the TODOs, however it is written.
- Otherwise each TODO is judged by its own relation on the learner's own earlier values. A wrong
  line loses that TODO's points and no other's: `whole` and `stability` ask for what the TODOs do
  not (every tile visited, the short last block, one tensor returned, inputs left alone, nothing
  that overflows), so a wrong result that a wrong TODO explains costs nothing there. It is said.
- A function whose values can't be read by name is judged by its outputs. What they show to be
  right keeps its points; the TODO they point to, and `whole`, lose theirs.
- What an unfinished or failing line keeps from being seen gives no points.
- Softmax over all keys at once (SDPA too), openly or in disguise, has no online softmax in it: its
  right results give the points of `whole` and `stability`, none of the TODOs' and none of `tiling`.
  Softmax in several passes over the tiles has none either, but its scores and tiles are right.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from flashcourse.checks import cuts as cut
from flashcourse.checks.forward_behaviour import ALL, Verdict, judge_behaviour
from flashcourse.checks.forward_evidence import (
    Broken,
    Evidence,
    Run,
    evidence_of,
    failed_todo,
    is_readable,
)
from flashcourse.checks.forward_findings import case, finding_of_fault, number, returned, worst
from flashcourse.checks.forward_problems import KEYS, NARROW, WIDE
from flashcourse.checks.forward_rules import crash_misconception, misconception_of
from flashcourse.checks.forward_todos import TODOS
from flashcourse.checks.marks import Finding, Marks
from flashcourse.checks.misconceptions import BY_ID, GENERIC, SHAPES
from flashcourse.checks.probe import Part, finding_of, judge, tensor_problem
from flashcourse.checks.registry import exercise
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


# ---- one TODO -----------------------------------------------------------------------------------


def _todo_part(evidence: Evidence, todo: int) -> Part:
    part = Part(10, PASSED[todo])
    broken = evidence.diagnosis.broken.get(todo)
    if broken is not None:
        return _broken_part(part, todo, broken)
    if evidence.online:
        return _with_fault(evidence, part, todo) if todo == 1 else part
    if evidence.failure is not None:
        return _todo_before_failure(evidence, part, todo, evidence.failure)
    unfinished = _unfinished_from(evidence)
    if unfinished is not None and todo >= unfinished:
        return _not_reached(part, todo, unfinished)
    if todo in evidence.faults and (evidence.named or unfinished is not None):
        return _with_fault(evidence, part, todo)
    if todo in evidence.seen and (evidence.named or unfinished is not None):
        return part
    if evidence.all_at_once:
        return replace(part, finding=_about("everything-at-once", _ALL_KEYS))
    if evidence.right_numbers and not (todo == 2 and evidence.all_recorded):
        return replace(part, finding=evidence.cuts.finding)
    verdict = _verdict(evidence)
    if todo in verdict.shown & _can_be_shown(evidence):
        return part
    return replace(part, finding=verdict.finding, status=_status_of_nothing(evidence))


def _can_be_shown(evidence: Evidence) -> frozenset[int]:
    """What outputs may show of a function whose values can't be read by name.

    Where no tile's exponentials were recorded, nobody knows that there were tiles. Right across
    tiles without a running softmax, only the scores are certain to be right, unless the one mistake
    is known that makes it look so.
    """
    if not evidence.right_across_tiles:
        return ALL if evidence.tiles_recorded else frozenset()
    if evidence.rescales or not evidence.all_recorded:
        return ALL if evidence.rescales else frozenset()
    return ALL if _verdict(evidence).finding.todo else frozenset({2})


def _broken_part(part: Part, todo: int, broken: Broken) -> Part:
    """The TODO because of which the function crashes: its wrong value, else the exception."""
    if broken.fault is not None:
        id = misconception_of(broken.readings, broken.fault)
        return replace(part, finding=finding_of_fault(broken.fault, id), status=broken.error.kind)
    return replace(part, finding=_failure_finding(broken.error, todo), status=broken.error.kind)


def _verdict(evidence: Evidence) -> Verdict:
    if evidence.verdict is None:
        evidence.verdict = judge_behaviour(evidence)
    return evidence.verdict


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
        return _failed(part, evidence)
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
    return _not_reached(part, todo, failed)


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


def _not_reached(part: Part, todo: int, first: int) -> Part:
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


def _unfinished_from(evidence: Evidence) -> int | None:
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


# ---- the whole function -------------------------------------------------------------------------


_ALL_KEYS = Text(
    f"Your code looks at all {KEYS} keys at once, although block_size is {NARROW}.",
    f"block_size 是 {NARROW}，你的代码却一次看了全部 {KEYS} 个 key。",
)


def _about(id: str, text: Text, line: int | None = None) -> Finding:
    return Finding(text, misconception=id, hints=BY_ID[id].hints, line=line)


def _whole_parts(evidence: Evidence) -> list[Part]:
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
    blocked = _blocked(evidence, part)
    if blocked is not None:
        return blocked
    for run in runs:
        finding, status = _difference(evidence, run)
        if finding is not None:
            return replace(part, finding=finding, status=status)
    exact = not evidence.diagnosis.broken and all(run.right for run in runs)
    return part if exact else _no_more_than(evidence, part, runs)


def _no_more_than(evidence: Evidence, part: Part, runs: list[Run]) -> Part:
    """The points stay, but the sentence must not say that a wrong result is right."""
    todos = ", ".join(map(str, _at_fault(evidence)))
    names = [case(run.problem.name) for run in runs]
    en, zh = "; ".join(name.en for name in names), "；".join(name.zh for name in names)
    text = Text(
        f"Nothing wrong beyond TODO {todos} ({en}).", f"除 TODO {todos} 外没有别的错（{zh}）。"
    )
    return replace(part, passed=text)


def _at_fault(evidence: Evidence) -> list[int]:
    return sorted({*evidence.diagnosis.broken, *(evidence.faults if evidence.named else ())})


def _failed(part: Part, evidence: Evidence) -> Part:
    failure = evidence.failure
    assert failure is not None
    return replace(part, finding=finding_of(failure), status=failure.kind)


def _difference(evidence: Evidence, run: Run) -> tuple[Finding | None, str]:
    """What is wrong with one run that no wrong TODO explains."""
    if run.right:
        return None, "right"
    error, name = run.error, case(run.problem.name)
    if error is not None and not _explained_crash(evidence, run, error):
        said = finding_of(error)
        text = Text(f"With {name.en}: {said.text.en}", f"{name.zh}：{said.text.zh}")
        return replace(said, text=text), error.kind
    if error is not None:
        return None, "right"
    missing = _missing_tiles(evidence, run)
    if missing is not None:
        return missing, "wrong"
    if evidence.named and run.explained:
        return None, "right"
    repeated = _repeated_keys(evidence, run)
    if repeated is not None:
        return repeated, "wrong"
    text = _not_a_tensor(run) or _off(run)
    at_the_end = not run.problem.in_full_blocks and evidence.right_in_full_blocks
    hints = BY_ID["tiles-missing"].hints if at_the_end else ()
    return Finding(
        Text(f"With {name.en}: {text.en}", f"{name.zh}：{text.zh}"), hints=hints
    ), "wrong"


def _explained_crash(evidence: Evidence, run: Run, error: Failure) -> bool:
    """Whether a run crashes at a TODO that is wrong anyway, or because of one."""
    at_fault = evidence.named and failed_todo(run.record, error) in evidence.faults
    return at_fault or (evidence.named and run.explained)


def _not_a_tensor(run: Run) -> Text | None:
    """What keeps a result from being compared: no tensor, or another shape than it should have."""
    if run.output is None:
        return returned(run.record.output_type)
    problem = tensor_problem(run.output, run.exact.shape)
    return problem.text if problem else None


def _off(run: Run) -> Text:
    assert run.output is not None
    got = run.output.cpu().double()
    at = worst(got, run.exact)
    mine, right = number(float(got[at])), number(float(run.exact[at]))
    return Text(
        f"`out{list(at)}` is {mine}. Exact attention gives {right}.",
        f"`out{list(at)}` 是 {mine}，精确注意力给出 {right}。",
    )


def _missing_tiles(evidence: Evidence, run: Run) -> Finding | None:
    visited = {(tile.i, tile.j) for tile in run.record.tiles if tile.values}
    wanted = run.reading.problem.offsets
    left = [tile for tile in wanted if tile not in visited]
    if not evidence.named or not visited or not left:
        return None
    name, (i, j) = case(run.problem.name), left[0]
    text = Text(
        f"With {name.en}: {len(left)} of {len(wanted)} tiles were never visited, "
        f"the first is (i={i}, j={j}).",
        f"{name.zh}：{len(wanted)} 个块里有 {len(left)} 个从未走到，第一个是 (i={i}, j={j})。",
    )
    return replace(_about("tiles-missing", text), tile=(i, j))


def _repeated_keys(evidence: Evidence, run: Run) -> Finding | None:
    """Tiles that begin inside another one: their keys count twice."""
    wanted = set(run.reading.problem.offsets)
    extra = [(t.i, t.j) for t in run.record.tiles if t.values and (t.i, t.j) not in wanted]
    if not evidence.named or not extra:
        return None
    name, (i, j) = case(run.problem.name), extra[0]
    text = Text(
        f"With {name.en}: {len(extra)} of your tiles begin inside another one, the first is "
        f"(i={i}, j={j}).",
        f"{name.zh}：你的块里有 {len(extra)} 个从别的块中间开始，第一个是 (i={i}, j={j})。",
    )
    return replace(_about("tiles-overlap", text), tile=(i, j))


def _blocked(evidence: Evidence, part: Part) -> Part | None:
    """The part with the reason why it can't be looked at; None where it can."""
    if evidence.failure is not None:
        return _failed(part, evidence)
    unfinished = _unfinished_from(evidence)
    if unfinished is not None:
        return _not_reached(part, 0, unfinished)
    any_right = any(run.right for run in evidence.runs)
    if not any_right and not evidence.named and not _verdict(evidence).shown:
        finding = _verdict(evidence).finding
        return replace(part, finding=finding, status=_status_of_nothing(evidence))
    return None


def _status_of_nothing(evidence: Evidence) -> str:
    kind = evidence.first.record.output_type
    return "unfinished" if kind in ("NoneType", "ellipsis") else "wrong"


def _form(evidence: Evidence, part: Part) -> Part:
    blocked = _blocked(evidence, part)
    if blocked is not None:
        return blocked
    record = evidence.first.record
    text = returned(record.output_type)
    if text is not None:
        more = record.output is not None and record.output_type.startswith(("tuple", "list"))
        finding = _about("returns-more-than-the-output", text) if more else Finding(text)
        return replace(part, finding=finding, status=_status_of_nothing(evidence))
    changed = sorted({name for run in evidence.runs for name in run.inputs_changed})
    if changed:
        names = ", ".join(f"`{name}`" for name in changed)
        text = Text(f"Your code changes its input {names}.", f"你的代码改动了输入 {names}。")
        return replace(part, finding=_about("inputs-changed", text))
    return part


# ---- tiling and stability -----------------------------------------------------------------------


def _tiling_part(evidence: Evidence) -> Part:
    passed = Text(
        "Works tile by tile, as large as block_size says.", "逐块计算，块的大小由 block_size 决定。"
    )
    part = Part(10, passed)
    blocked = _blocked(evidence, part)
    if blocked is not None:
        return blocked
    narrow, wide = evidence.tiled[NARROW], evidence.tiled[WIDE]
    for run in (narrow, wide):
        if run.error is not None:
            error = run.error
            return replace(part, finding=finding_of(error), status=error.kind)
    finding = _too_large(narrow) or _too_wide(evidence, narrow) or _too_wide(evidence, wide)
    finding = finding or _ignored(narrow, wide) or _uncut(evidence)
    return replace(part, finding=finding)


def _too_large(run: Run) -> Finding | None:
    """A tensor as large as the scores, or a strip of them over all keys."""
    rows, block = run.problem.q.shape[0], run.problem.block
    for made in run.record.tensors:
        strip = len(made.shape) >= 2 and made.shape[-1] == KEYS and made.elements >= KEYS * block
        if made.elements >= rows * KEYS or strip:
            size = " × ".join(map(str, made.shape))
            text = Text(
                f"With {KEYS} keys and block_size {block}, your code makes a {size} tensor.",
                f"{KEYS} 个 key、block_size 为 {block} 时，你的代码生成了 {size} 的张量。",
            )
            return _about("everything-at-once", text, made.line)
    return None


def _too_wide(evidence: Evidence, run: Run) -> Finding | None:
    widest = max((made.exponents or 0 for made in run.record.tensors), default=0)
    if widest < KEYS and not evidence.right_numbers:
        # With wrong scores, different exponents do not count keys. The tiles' widths do.
        scores = (tile.values.get("S_ij") for tile in run.record.tiles if evidence.named)
        widest = max((S.shape[-1] for S in scores if S is not None and S.ndim), default=0)
    tiles = -(-KEYS // run.problem.block)  # so many partial results may be merged at once
    if widest <= max(run.problem.block, tiles):
        return None
    if widest >= KEYS:
        return _about("everything-at-once", _ALL_KEYS)
    block = run.problem.block
    text = Text(
        f"One tile holds {widest} keys, although block_size is {block}.",
        f"block_size 是 {block}，一个块却装了 {widest} 个 key。",
    )
    return _about("block-size-ignored", text)


def _ignored(narrow: Run, wide: Run) -> Finding | None:
    """Neither the tensors nor the number of tiles differ, and block_size is not even read.

    It may be read without a trace: one key after the other, or arrays of NumPy's.
    """
    if wide.record.reads_block_size:
        return None
    shapes = [[made.shape for made in run.record.tensors] for run in (narrow, wide)]
    if shapes[0] != shapes[1] or len(narrow.record.tiles) != len(wide.record.tiles):
        return None
    text = Text(
        f"block_size {NARROW} and block_size {WIDE} make the very same tensors in your code.",
        f"block_size 为 {NARROW} 和为 {WIDE} 时，你的代码生成的张量完全一样。",
    )
    return _about("block-size-ignored", text)


def _uncut(evidence: Evidence) -> Finding | None:
    """Results that do not come of tiles, whatever the record shows.

    Tiles whose every value has the skeleton's name and is right need no other proof.
    """
    if evidence.online and evidence.cuts.before and not evidence.cuts.missing:
        return None
    if evidence.named and not evidence.faults and {2, 3, 4, 5, 6} <= evidence.seen:
        return None
    if not evidence.right_across_tiles:
        return None if evidence.named or evidence.tiles_recorded else Finding(_NO_TILES)
    if not evidence.rescales:  # several passes over the tiles, or no maximum, do without
        return None if evidence.all_recorded else evidence.cuts.finding
    if not evidence.cuts.before or not evidence.cuts.missing:
        return None
    key = evidence.cuts.missing[0]
    text = Text(
        f"With {cut.KEYS} keys and block_size {cut.BLOCK}, none of your tiles begins at key {key}.",
        f"{cut.KEYS} 个 key、block_size 为 {cut.BLOCK} 时，你没有一个块从第 {key} 个 key 开始。",
    )
    return _about("block-size-ignored", text)


_NO_TILES = Text(
    "Nothing shows that your code works tile by tile: no exponential of a tile's scores was seen.",
    "看不出你的代码在逐块计算：没有见到任何一个块的分数的指数。",
)


def _stability_part(evidence: Evidence) -> Part:
    passed = Text(
        "Stays right for large, very negative, falling and rising scores, and in bfloat16.",
        "分数很大、很负、逐块下降或上升时，以及用 bfloat16 时，结果都正确。",
    )
    part = Part(10, passed)
    blocked = _blocked(evidence, part)
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
    if not (evidence.named or evidence.tiles_recorded or evidence.right_across_tiles):
        return replace(part, finding=Finding(_NO_TILES))
    if _at_fault(evidence):
        return _no_more_than(evidence, part, runs)
    return replace(part, passed=Text("No overflow under large scores.", "分数很大时也没有溢出。"))


def _instability(evidence: Evidence, run: Run) -> tuple[Finding | None, str]:
    output = run.output
    wrong_anyway = not evidence.first.right
    if wrong_anyway and output is not None and bool(output.isfinite().all()):
        return None, "right"  # `whole` speaks about wrong numbers
    if wrong_anyway and _missing_tiles(evidence, evidence.first) is not None:
        return None, "right"
    said = evidence.state_fault is not None or returned(evidence.first.record.output_type)
    if said and any(run is other for other in evidence.other_tensors):
        return None, "right"  # TODO 1 speaks about the state, `whole` about what is returned
    return _difference(evidence, run)


# ---- the exercises ------------------------------------------------------------------------------


def _remark(evidence: Evidence) -> list[Part]:
    """Full points, but the result is wrong: say which TODO it comes from."""
    wrong = evidence.diagnosis.broken or any(not run.right for run in evidence.runs)
    at_fault = _at_fault(evidence) if wrong and evidence.failure is None else []
    if not at_fault:
        return []
    todos = ", ".join(map(str, at_fault))
    text = Text(
        f"The result is not exact attention yet. TODO {todos} is why, and costs nothing here.",
        f"结果还不是精确注意力。原因在 TODO {todos}，这里不再扣分。",
    )
    return [Part(0, text, Finding(text, todo=at_fault[0]))]


def _stub_part(evidence: Evidence, parts: list[Part]) -> list[Part]:
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


def _whole(evidence: Evidence) -> list[Part]:
    return _stub_part(evidence, _whole_parts(evidence))


def _check(build: Callable[[Evidence], list[Part]], name: str) -> Any:
    def check(answer: Any, *, seed: int = 0) -> Marks:
        return judge(name, build(evidence_of(answer, seed)))

    return check


TITLES = {
    1: Text("TODO 1: the start", "TODO 1：初始状态"),
    2: Text("TODO 2: the scores", "TODO 2：分数"),
    3: Text("TODO 3: the maxima", "TODO 3：行最大值"),
    4: Text("TODO 4: the weights", "TODO 4：权重"),
    5: Text("TODO 5: the sums", "TODO 5：指数和"),
    6: Text("TODO 6: the output", "TODO 6：输出"),
}


def _register() -> None:
    def one(name: str, points: float, title: Text, build: Callable[[Evidence], list[Part]]) -> None:
        exercise(name, points, title)(_check(build, name))

    for todo in TODOS:
        one(f"forward.todo{todo}", 10, TITLES[todo], lambda e, t=todo: [_todo_part(e, t)])  # type: ignore[misc]
    whole, tiling = Text("The whole function", "整个函数"), Text("Tiling", "分块")
    one("forward.whole", 20, whole, lambda e: _whole(e) + _remark(e))
    one("forward.tiling", 10, tiling, lambda e: [_tiling_part(e)])
    stability = Text("Stability", "数值稳定性")
    one("forward.stability", 10, stability, lambda e: [_stability_part(e), *_remark(e)])
    name = "flash_attention_forward_sim"
    one("forward", 100, Text(name, name), _everything)


def _everything(evidence: Evidence) -> list[Part]:
    todos = [_todo_part(evidence, todo) for todo in TODOS]
    return [*todos, *_whole(evidence), _tiling_part(evidence), _stability_part(evidence)]


_register()
