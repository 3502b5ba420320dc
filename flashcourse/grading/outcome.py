"""How a submission ended, and what came of each of its cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from flashcourse.words import Text

# The more a kind explains, the earlier it stands; a submission gets the first that is true.
KINDS: dict[str, Text] = {
    "unreadable": Text("the file can't be read", "文件无法读取"),
    "foreign": Text("this is not this course's notebook", "这不是本课程的 notebook"),
    "out_of_memory": Text("stopped: it used too much memory", "内存用量超限，已停止"),
    "too_much_output": Text("stopped: it put out too much", "输出太多，已停止"),
    "timed_out": Text("stopped: it took too long", "运行超时，已停止"),
    "killed": Text("its process ended before the end", "进程中途结束"),
    "crashed": Text("the code raised an error", "代码抛出了错误"),
    "unfinished": Text("not finished yet", "还没有写完"),
    "graded": Text("graded", "已评分"),
}


def in_both(words: str | Sequence[str]) -> Text:
    """Words as they are kept: [English, Chinese], or a string that stands for both.

    What Python says is such a string, and so is everything in files of earlier versions.
    """
    return Text(words, words) if isinstance(words, str) else Text(*words)


@dataclass(frozen=True)
class Outcome:
    """kind: one of KINDS. where: the grade id or key of the cell it is about, or ''.
    detail: one line more (a limit; a string where it is Python's own: an exception)."""

    kind: str
    where: str = ""
    detail: str | Text = ""

    def text(self) -> Text:
        """The outcome as one sentence."""
        words = KINDS[self.kind]
        place = (
            Text(f" (cell {self.where})", f"（单元格 {self.where}）")
            if self.where
            else Text("", "")
        )
        said = in_both(self.detail)
        en, zh = said.en.rstrip("."), said.zh.rstrip("。.")
        detail = Text(f": {en}", f"：{zh}") if said.en else said
        return Text(
            f"{words.en[0].upper()}{words.en[1:]}{place.en}{detail.en}.",
            f"{words.zh}{place.zh}{detail.zh}。",
        )


def _shown(words: str) -> str:
    """Without what a terminal takes for commands: this sentence is written to one, too."""
    return "".join(c if c.isprintable() or c in "\n\t" else "\ufffd" for c in words)


# A test's own message may tell what is hidden; these are about the student's code.
_STUDENTS_FAULT = ("crashed", "too_slow", "unfinished")


@dataclass(frozen=True)
class CellMark:
    """What one graded cell got. points: None for an answer that a person has to mark.

    status: 'right', 'wrong', 'unfinished', 'crashed', 'too_slow', 'not_run', 'manual'.
    findings: what the marks said, as data: text and hints as [English, Chinese], todo,
    misconception.
    """

    grade_id: str
    points: float | None
    max_points: float
    status: str
    detail: str | Text = ""
    findings: tuple[dict[str, Any], ...] = ()


@dataclass(frozen=True)
class Graded:
    """All that comes of grading one notebook of one submission.

    notebook: the graded notebook in format 4. unchanged: answer cells left as released.
    doubts: reasons for a human eye; they cost nothing. seconds: wall time. peak_mib: memory.
    fingerprint: of the submission, the course and the limits; equal means nothing to do.
    """

    outcome: Outcome
    marks: tuple[CellMark, ...]
    notebook: dict[str, Any]
    answers: tuple[str, ...] = ()
    unchanged: tuple[str, ...] = ()
    doubts: tuple[Text, ...] = ()
    lang: str = "en"
    seconds: float = 0.0
    peak_mib: float = 0.0
    sandboxed: bool = True
    fingerprint: str = ""
    run: dict[str, float] = field(default_factory=dict, compare=False)

    @property
    def points(self) -> float:
        return sum(mark.points or 0.0 for mark in self.marks)

    def summary(self) -> dict[str, Any]:
        """Everything but the notebook, as plain data: for JSON, and kept in the notebook."""
        return {
            "outcome": asdict(self.outcome),
            "points": {mark.grade_id: mark.points for mark in self.marks},
            "max_points": {mark.grade_id: mark.max_points for mark in self.marks},
            "status": {mark.grade_id: mark.status for mark in self.marks},
            "details": {m.grade_id: m.detail for m in self.marks if m.status in _STUDENTS_FAULT},
            "findings": {m.grade_id: list(m.findings) for m in self.marks if m.findings},
            "unchanged": list(self.unchanged),
            "doubts": list(self.doubts),
            "lang": self.lang,
            "seconds": round(self.seconds, 3),
            "peak_mib": round(self.peak_mib, 1),
            "sandboxed": self.sandboxed,
            "fingerprint": self.fingerprint,
        }
