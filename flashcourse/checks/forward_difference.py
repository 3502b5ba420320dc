"""What is wrong with one run that no wrong TODO explains."""

from __future__ import annotations

from dataclasses import replace

from flashcourse.checks.forward_evidence import Evidence
from flashcourse.checks.forward_findings import case, number, returned, worst
from flashcourse.checks.forward_parts import about
from flashcourse.checks.forward_run import Run, failed_todo
from flashcourse.checks.marks import Finding
from flashcourse.checks.misconceptions import BY_ID
from flashcourse.checks.probe import finding_of, tensor_problem
from flashcourse.running import Failure
from flashcourse.words import Text


def difference(evidence: Evidence, run: Run) -> tuple[Finding | None, str]:
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
    missing = missing_tiles(evidence, run)
    if missing is not None:
        return missing, "wrong"
    if evidence.named and run.explained:
        return None, "right"
    repeated = repeated_keys(evidence, run)
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


def missing_tiles(evidence: Evidence, run: Run) -> Finding | None:
    visited = {(tile.i, tile.j) for tile in run.record.tiles if tile.values}
    wanted = run.reading.problem.offsets
    left = [tile for tile in wanted if tile not in visited]
    if not evidence.named or not visited or not left:
        return None
    en = f"{len(left)} of {len(wanted)} tiles were never visited"
    return _about_tiles(
        "tiles-missing", run, left, en, f"{len(wanted)} 个块里有 {len(left)} 个从未走到"
    )


def repeated_keys(evidence: Evidence, run: Run) -> Finding | None:
    """Tiles that begin inside another one: their keys count twice."""
    wanted = set(run.reading.problem.offsets)
    extra = [(t.i, t.j) for t in run.record.tiles if t.values and (t.i, t.j) not in wanted]
    if not evidence.named or not extra:
        return None
    en = f"{len(extra)} of your tiles begin inside another one"
    return _about_tiles(
        "tiles-overlap", run, extra, en, f"你的块里有 {len(extra)} 个从别的块中间开始"
    )


def _about_tiles(id: str, run: Run, tiles: list[tuple[int, int]], en: str, zh: str) -> Finding:
    name, (i, j) = case(run.problem.name), tiles[0]
    text = Text(
        f"With {name.en}: {en}, the first is (i={i}, j={j}).",
        f"{name.zh}：{zh}，第一个是 (i={i}, j={j})。",
    )
    return replace(about(id, text), tile=(i, j))
