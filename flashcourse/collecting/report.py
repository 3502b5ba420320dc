"""Every repair and every doubt, file by file, in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from flashcourse.collecting.records import Collected
from flashcourse.words import Text

OUTCOMES = {
    "taken": Text("taken", "已收取"),
    "unchanged": Text("there already, unchanged", "已有，没有变化"),
    "older": Text("not taken, another is newer", "未取，另有更新的文件"),
    "beside": Text("left aside", "未收"),
    "refused": Text("REFUSED", "拒收"),
}
MANY = 8  # names of files left aside that are said for each student
BESIDE = Text(
    "{} files that are no notebook, or another lesson's, lay beside one and were left aside.",
    "{} 个文件不是 notebook，或属于别的课，和作业放在一起；没有收取。",
)
SIGNS = {"repair": "  ", "doubt": "? ", "refused": "! "}
LEGEND = Text(
    "?  a choice that you should look at      !  not taken, with what to do",
    "?  做过取舍，请看一眼      !  没有收取，附处理办法",
)
NOTHING = Text("No file was found.", "没有找到文件。")


def report_lines(results: list[Collected], lang: str, everything: bool = True) -> Iterator[str]:
    """What needs a person first, then the others.

    The file has everything, and the summary on top. A screen ends at the bottom: there the summary
    is last, and what went well is left to the file.
    """
    if not results:
        yield NOTHING.in_(lang)
        return
    urgent = [r for r in results if r.of("refused")]
    unsure = [r for r in results if r.of("doubt") and not r.of("refused")]
    beside = [r for r in results if r.outcome == "beside"]
    rest = [r for r in results if not r.of("refused") and not r.of("doubt") and r not in beside]
    if everything:
        yield summary(results, lang)
    if urgent or unsure:
        yield LEGEND.in_(lang)
    for group in (urgent, unsure, rest if everything else []):
        for result in group:
            yield ""
            yield from file_lines(result, lang)
    if beside:
        yield ""
        yield BESIDE.in_(lang).format(len(beside))
        yield from beside_lines(beside) if everything else ()
    if not everything:
        yield from ("", summary(results, lang))


def beside_lines(beside: list[Collected]) -> Iterator[str]:
    by_student: dict[str, list[str]] = {}
    for result in beside:
        by_student.setdefault(result.student, []).append(result.path.rpartition("/")[2])
    for student, names in by_student.items():
        more = f" (+{len(names) - MANY})" if len(names) > MANY else ""
        yield f"    {student}: {', '.join(names[:MANY])}{more}"


def file_lines(result: Collected, lang: str) -> Iterator[str]:
    """One file: where it went, how full it is, and each note."""
    student = f"{result.student or '?'}" + (f" ({result.name})" if result.name else "")
    outcome = OUTCOMES[result.outcome].in_(lang)
    details = f"{outcome}; {result.lang}" if result.lang else outcome
    if result.answers:
        answered = Text("{} of {} answers filled in", "{} / {} 个回答已填写").in_(lang)
        details += "; " + answered.format(result.finished, result.answers)
    if result.by:
        details += "; " + Text("whose: by {}", "依据：{}").in_(lang).format(result.by)
    yield f"{student}: {result.path}"
    yield f"    {details}"
    for note in result.notes:
        yield f"  {SIGNS[note.kind]}{note.text.in_(lang)}"


def summary(results: list[Collected], lang: str) -> str:
    count = Counter(result.outcome for result in results)
    students = {r.student for r in results if r.outcome in ("taken", "unchanged")}
    unsure = sum(1 for result in results if result.of("doubt"))
    text = Text(
        "Files: {files}. Students: {students}. New or changed: {taken}, unchanged: {unchanged}, "
        "older: {older}, left aside: {beside}, refused: {refused}. To look at: {unsure}.",
        "{files} 个文件，{students} 名学生。新收或有改动 {taken}，没有变化 {unchanged}，"
        "较旧 {older}，未收 {beside}，拒收 {refused}。需要看一眼的 {unsure}。",
    )
    return text.in_(lang).format(
        files=len(results),
        students=len(students),
        unsure=unsure,
        **{outcome: count[outcome] for outcome in OUTCOMES},
    )
