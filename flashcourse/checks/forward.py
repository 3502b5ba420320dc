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
from typing import Any

from flashcourse.checks.forward_evidence import Evidence, evidence_of
from flashcourse.checks.forward_parts import todos_at_fault
from flashcourse.checks.forward_relations import TODOS
from flashcourse.checks.forward_tiling import tiling_part
from flashcourse.checks.forward_todo_part import todo_part
from flashcourse.checks.forward_whole import stability_part, whole_parts, with_stub
from flashcourse.checks.marks import Finding, Marks
from flashcourse.checks.probe import Part, judge
from flashcourse.checks.registry import exercise
from flashcourse.words import Text


def _remark(evidence: Evidence) -> list[Part]:
    """Full points, but the result is wrong: say which TODO it comes from."""
    wrong = evidence.diagnosis.broken or any(not run.right for run in evidence.runs)
    at_fault = todos_at_fault(evidence) if wrong and evidence.failure is None else []
    if not at_fault:
        return []
    todos = ", ".join(map(str, at_fault))
    text = Text(
        f"The result is not exact attention yet. TODO {todos} is why, and costs nothing here.",
        f"结果还不是精确注意力。原因在 TODO {todos}，这里不再扣分。",
    )
    return [Part(0, text, Finding(text, todo=at_fault[0]))]


def _whole(evidence: Evidence) -> list[Part]:
    return with_stub(evidence, whole_parts(evidence))


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
        one(f"forward.todo{todo}", 10, TITLES[todo], lambda e, t=todo: [todo_part(e, t)])  # type: ignore[misc]
    whole, tiling = Text("The whole function", "整个函数"), Text("Tiling", "分块")
    one("forward.whole", 20, whole, lambda e: _whole(e) + _remark(e))
    one("forward.tiling", 10, tiling, lambda e: [tiling_part(e)])
    stability = Text("Stability", "数值稳定性")
    one("forward.stability", 10, stability, lambda e: [stability_part(e), *_remark(e)])
    name = "flash_attention_forward_sim"
    one("forward", 100, Text(name, name), _everything)


def _everything(evidence: Evidence) -> list[Part]:
    todos = [todo_part(evidence, todo) for todo in TODOS]
    return [*todos, *_whole(evidence), tiling_part(evidence), stability_part(evidence)]


_register()
