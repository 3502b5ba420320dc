"""Look at a saved notebook as the teacher's program will."""

from __future__ import annotations

import ast
import html
from dataclasses import dataclass
from pathlib import Path

from IPython.core.inputtransformer2 import TransformerManager

from flashcourse.handin.saved import Cell, NotAccepted, Part, Saved, fingerprint, read_saved
from flashcourse.words import Text, course_language

READY = Text("Ready to hand in.", "可以提交。")
UNFINISHED = Text(
    "It will be accepted, but some answers are not finished.", "可以提交，但有的回答还没写完。"
)
UNSURE = Text(
    "It will be accepted, but whether all answers are there can't be told.",
    "可以提交，但看不出回答是否都写完了。",
)
REFUSED = Text("It will not be accepted.", "不会被接收。")
NOT_OURS = Text(
    "This is not a notebook of this course, or all that tells so was lost.",
    "这不是本课程的 notebook，或者识别信息全部丢失了。",
)
LABELS_LOST = Text(
    "The course's labels were lost when the file was saved. It will be accepted, and the answers "
    "are found by their names and places. To be sure, copy your answers into a fresh notebook.",
    "保存时丢失了课程的标记。文件会被接收，回答会按名字和位置来找。为保险起见，"
    "请把回答抄到一份新的 notebook 里。",
)
SIGNS = {"good": "✓", "todo": "✗", "unsure": "?", "note": "·"}
COLOURS = {"good": "#15803d", "todo": "#b45309", "unsure": "#b45309", "note": "#6b7280"}


@dataclass(frozen=True)
class Remark:
    """One thing to know. kind: 'good', 'todo' (unfinished), 'unsure' (what is finished can't be
    told) or 'note' (mended without harm)."""

    kind: str
    text: Text


@dataclass(frozen=True)
class HandIn:
    """What is found in a notebook that is about to be handed in. Shows itself, in `lang`.

    accepted: whether the teacher's program will take it. finished: whether nothing is left to do.
    lesson: which one it says it is, or ''.
    """

    name: str
    accepted: bool
    remarks: tuple[Remark, ...]
    lang: str
    lesson: str = ""

    @property
    def finished(self) -> bool:
        return self.accepted and not {"todo", "unsure"} & {remark.kind for remark in self.remarks}

    @property
    def verdict(self) -> Text:
        if not self.accepted:
            return REFUSED
        if self.finished:
            return READY
        unfinished = any(remark.kind == "todo" for remark in self.remarks)
        return UNFINISHED if unfinished else UNSURE

    def __str__(self) -> str:
        lines = [f"  {SIGNS[r.kind]} {r.text.in_(self.lang)}" for r in self.remarks]
        lesson = Text(" ({})", "（{}）").in_(self.lang).format(self.lesson) if self.lesson else ""
        return "\n".join([f"{self.name}: {self.verdict.in_(self.lang)}{lesson}", *lines])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        items = "".join(
            f'<li><span style="color:{COLOURS[r.kind]};font-weight:bold">{SIGNS[r.kind]}</span> '
            f"{html.escape(r.text.in_(self.lang))}</li>"
            for r in self.remarks
        )
        edge = "#15803d" if self.finished else "#b45309" if self.accepted else "#b91c1c"
        name, verdict = html.escape(self.name), html.escape(self.verdict.in_(self.lang))
        lesson = f" {html.escape(self.lesson)}" if self.lesson else ""
        return (
            f'<div style="border-left:4px solid {edge};padding:4px 12px;line-height:1.6">'
            f"<b>{verdict}</b> <code>{name}</code>{lesson}"
            f'<ul style="list-style:none;margin:4px 0;padding:0">{items}</ul></div>'
        )


def check_file(path: Path, lang: str | None = None) -> HandIn:
    """Look at the notebook in `path`. lang: None takes the notebook's own language.

    Never raises for what is in the file; raises FileNotFoundError if there is none.
    """
    return check_data(path.read_bytes(), path.name, lang)


def check_data(data: bytes, name: str, lang: str | None = None) -> HandIn:
    """As check_file, for the file's bytes."""
    try:
        saved = read_saved(data)
        known = lang or (saved.lang if saved.lang in ("en", "zh") else course_language())
        return HandIn(name, True, tuple(remarks_of(saved)), known, saved.lesson)
    except NotAccepted as refused:
        remark = Remark("todo", refused.text)
        return HandIn(name, False, (remark,), lang or course_language())


def remarks_of(saved: Saved) -> list[Remark]:
    """Everything to say about the notebook. Raises NotAccepted."""
    if not saved.parts:
        if not saved.lesson and not any(cell.grade_id for cell in saved.cells):
            raise NotAccepted(NOT_OURS)
        labelled = saved.lesson and any(cell.grade_id for cell in saved.cells)
        lost = () if labelled else (Remark("unsure", LABELS_LOST),)
        return [*lost, *left_stubs(saved.cells)]
    answers = [part for part in saved.parts if part.kind != "test"]
    tests = [part for part in saved.parts if part.kind == "test"]
    return [*(answer_remark(saved, part) for part in answers), *test_remarks(saved, tests)]


def cells_of(saved: Saved, part: Part) -> list[Cell]:
    """The cells that bear the part's label; by key where nbgrader's label was lost."""
    found = [cell for cell in saved.cells if cell.grade_id == part.grade_id]
    return found or [cell for cell in saved.cells if cell.key == part.key]


def answer_remark(saved: Saved, part: Part) -> Remark:
    """Whether one answer is finished."""
    found = [cell for cell in cells_of(saved, part) if cell.source.strip()]
    name = part.grade_id
    if not found:
        return Remark("todo", Text(
            f"{name}: the answer cell is gone. Copy your answer into a fresh notebook.",
            f"{name}：回答单元格不见了。请把回答抄到一份新的 notebook 里。",
        ))  # fmt: skip
    changed = [cell for cell in found if fingerprint(cell.source) != part.given]
    cell = (changed or found)[-1]
    where, where_zh = f"{name} (cell {cell.number})", f"{name}（第 {cell.number} 个单元格）"
    if len({fingerprint(other.source) for other in changed}) > 1:
        numbers = ", ".join(str(other.number) for other in changed)
        return Remark("todo", Text(
            f"{name}: there are {len(changed)} answers (cells {numbers}). Keep one of them.",
            f"{name}：有 {len(changed)} 个回答（第 {numbers} 个单元格）。请只保留一个。",
        ))  # fmt: skip
    if not changed:
        return Remark("todo", Text(f"{where}: not begun.", f"{where_zh}：还没有开始。"))
    if part.kind == "answer" and not cell.is_code:
        return Remark("todo", Text(
            f"{where} is no code cell any more. Turn it back into one (in Jupyter: key Y).",
            f"{where_zh}已不是代码单元格。请把它改回来（在 Jupyter 里按 Y 键）。",
        ))  # fmt: skip
    problem = code_problem(cell.source) if part.kind == "answer" else None
    if problem:
        return Remark("todo", Text(f"{where}: {problem.en}", f"{where_zh}：{problem.zh}"))
    return Remark("good", Text(f"{where}: filled in.", f"{where_zh}：已填写。"))


def code_problem(source: str) -> Text | None:
    """Why the code can't be finished yet, or None."""
    try:
        tree = ast.parse(TransformerManager().transform_cell(source))
    except (SyntaxError, ValueError, RecursionError) as error:
        line = getattr(error, "lineno", None) or "?"
        reason = getattr(error, "msg", error)
        return Text(
            f"line {line} is not valid Python ({reason}).",
            f"第 {line} 行不是合法的 Python（{reason}）。",
        )
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise) and "NotImplementedError" in ast.dump(node):
            return Text(
                f"not finished: line {node.lineno} still raises NotImplementedError.",
                f"还没写完：第 {node.lineno} 行还在抛出 NotImplementedError。",
            )
    return None


def left_stubs(cells: tuple[Cell, ...]) -> list[Remark]:
    """Code that is unfinished, where nothing tells which cell is an answer."""
    found = []
    for cell in cells:
        problem = (
            code_problem(cell.source)
            if cell.is_code and "NotImplementedError" in cell.source
            else None
        )
        if problem:
            found.append(Remark("todo", Text(
                f"cell {cell.number}: {problem.en}", f"第 {cell.number} 个单元格：{problem.zh}"
            )))  # fmt: skip
    return found


def test_remarks(saved: Saved, tests: list[Part]) -> list[Remark]:
    """Test cells that were changed or deleted: it does no harm, but it helps nobody either."""
    gone = [part.grade_id for part in tests if not cells_of(saved, part)]
    changed = [
        part.grade_id
        for part in tests
        if any(fingerprint(cell.source) != part.given for cell in cells_of(saved, part))
    ]
    remarks = []
    if changed:
        remarks.append(Remark("note", Text(
            f"Test cells were changed: {', '.join(changed)}. They are put back when graded.",
            f"测试单元格被改动：{'、'.join(changed)}。评分时会恢复原样。",
        )))  # fmt: skip
    if gone:
        remarks.append(Remark("note", Text(
            f"Test cells are gone: {', '.join(gone)}. They are put back when graded.",
            f"测试单元格不见了：{'、'.join(gone)}。评分时会补回来。",
        )))  # fmt: skip
    return remarks
