"""Refuse a lesson whose two languages drift apart.

Prose: each English cell is followed by its Chinese twin with the same formulas, numbers, links,
code spans, heading levels and grade id. Code: the two editions differ in words only.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Callable, Iterator

from flashcourse.authoring.errors import LessonError
from flashcourse.authoring.language import LINE, LINE_END, keep_language
from flashcourse.authoring.lesson import Cell, Lesson

HAN = re.compile(r"[\u3400-\u9fff\u3000-\u303f\uff00-\uffef]+")
FENCE = re.compile(r"^(```+|~~~+)[^\n]*\n.*?^\1\s*$", re.MULTILINE | re.DOTALL)
CODE_SPAN = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", re.DOTALL)
FORMULA = re.compile(r"\$\$(.+?)\$\$|(?<![\\$])\$([^$\n]+?)\$", re.DOTALL)
LINK = re.compile(
    r"\]\(\s*<?([^)\s>]+)>?[^)]*\)|<(https?://[^>]+)>|(?<![(<])\b(https?://[^\s)>\]]+)"
)
NUMBER = re.compile(r"(?<![A-Za-z_])\d+(?:[.,]\d+)*")


def check_twins(lesson: Lesson) -> None:
    """Raise LessonError at the first place where the two languages differ."""
    for english, chinese in pairs(lesson):
        check_same_grading(lesson, english, chinese)
        check_script(lesson, english, chinese)
        check_same_content(lesson, english, chinese)
    for cell in lesson.cells:
        if cell.kind == "code":
            check_code(lesson, cell)


def pairs(lesson: Lesson) -> Iterator[tuple[Cell, Cell]]:
    """English prose with its Chinese twin. Raises LessonError where one is missing."""
    prose = iter(lesson.cells)
    for cell in prose:
        if cell.kind == "code":
            continue
        twin = next(prose, None)
        matches = twin is not None and twin.key == cell.key and twin.lang == "zh"
        if cell.lang != "en" or twin is None or not matches:
            missing = "zh" if cell.lang == "en" else "en"
            raise LessonError(
                lesson.path, cell.key, f"missing twin: no {missing!r} cell right beside it"
            )
        yield cell, twin


def check_same_grading(lesson: Lesson, english: Cell, chinese: Cell) -> None:
    for name in ("manual", "points", "only", "tags", "mixed"):
        if english.option(name) != chinese.option(name):
            what = "grade id" if name == "manual" else name
            raise LessonError(
                lesson.path,
                english.key,
                f"other {what}: {english.option(name)!r} in en, {chinese.option(name)!r} in zh",
            )


def check_script(lesson: Lesson, english: Cell, chinese: Cell) -> None:
    """No Chinese in English, some Chinese in Chinese; `mixed` cells (a glossary) are let off."""
    if english.option("mixed"):
        return
    found = HAN.search(english.source)
    if found:
        raise LessonError(lesson.path, english.key, f"Chinese in the en cell: {found.group()!r}")
    words = re.findall(r"[A-Za-z]{2,}", strip_marked(chinese.source))
    if len(words) > 3 and not HAN.search(chinese.source):
        raise LessonError(lesson.path, chinese.key, "the zh cell holds no Chinese")


def check_same_content(lesson: Lesson, english: Cell, chinese: Cell) -> None:
    for what, extract in EXTRACTORS.items():
        en, zh = extract(english.source), extract(chinese.source)
        if en != zh:
            raise LessonError(lesson.path, english.key, f"other {what}: {difference(en, zh)}")


def difference(en: set[str], zh: set[str]) -> str:
    parts = []
    for lang, here, there in (("en", en, zh), ("zh", zh, en)):
        extra = sorted(here - there)
        if extra:
            parts.append(f"only in {lang}: {', '.join(extra[:5])}")
    return "; ".join(parts)


def formulas(source: str) -> set[str]:
    """Each formula, spaces and the words inside \\text{…} left out."""
    plain = CODE_SPAN.sub(" ", FENCE.sub(" ", source))
    found = (display or inline for display, inline in FORMULA.findall(plain))
    return {re.sub(r"\s+", "", re.sub(r"\\text\{[^}]*\}", r"\\text{}", f)) for f in found}


def links(source: str) -> set[str]:
    """Each address; a path may name the language (…/en/…, ….en.svg, …zh.md)."""
    plain = CODE_SPAN.sub(" ", FENCE.sub(" ", source))
    found = ("".join(groups) for groups in LINK.findall(plain))
    return {re.sub(r"(?<=[/._-])(en|zh)(?=[/._-])", "LANG", url.rstrip(".,;")) for url in found}


def code_spans(source: str) -> set[str]:
    """Each `span`, and each fenced block without its comments."""
    blocks = {re.sub(r"#[^\n]*", "", m.group()).strip() for m in FENCE.finditer(source)}
    spans = {m.group(2).strip() for m in CODE_SPAN.finditer(FENCE.sub(" ", source))}
    return {re.sub(r"\s+", " ", text) for text in blocks | spans}


def numbers(source: str) -> set[str]:
    """Each number outside formulas, code and addresses; 1,024 and 1024 are the same."""
    found = NUMBER.findall(strip_marked(source))
    return {re.sub(r",(?=\d{3}(?!\d))", "", number).rstrip(".,") for number in found}


def headings(source: str) -> set[str]:
    """The levels of the headings."""
    return set(re.findall(r"^(#{1,6}) ", FENCE.sub(" ", source), flags=re.MULTILINE))


def strip_marked(source: str) -> str:
    """Prose without formulas, code, addresses and list numbers."""
    for pattern in (FENCE, CODE_SPAN, FORMULA, LINK):
        source = pattern.sub(" ", source)
    return re.sub(r"^\s*\d+\. ", "", source, flags=re.MULTILINE)


EXTRACTORS: dict[str, Callable[[str], set[str]]] = {
    "formulas": formulas,
    "links": links,
    "code spans": code_spans,
    "numbers": numbers,
    "heading levels": headings,
}


def check_code(lesson: Lesson, cell: Cell) -> None:
    """Both editions of a code cell are Python, and differ in comments and strings only."""
    check_language_lines(lesson, cell)
    try:
        editions = {lang: keep_language(cell.source, lang) for lang in ("en", "zh")}
    except ValueError as error:
        raise LessonError(lesson.path, cell.key, str(error)) from error
    trees = {lang: skeleton(lesson, cell, code) for lang, code in editions.items()}
    if trees["en"] != trees["zh"]:
        raise LessonError(lesson.path, cell.key, "code differs between en and zh, not only words")
    found = HAN.search(editions["en"])
    if found and not cell.option("mixed"):
        raise LessonError(lesson.path, cell.key, f"Chinese in the en code: {found.group()!r}")
    en, zh = (numbers_in_words(code) for code in editions.values())
    if en != zh:
        raise LessonError(
            lesson.path, cell.key, f"other numbers in comments or strings: {difference(en, zh)}"
        )


def check_language_lines(lesson: Lesson, cell: Cell) -> None:
    """`en:` lines are followed by as many groups of `zh:` lines."""
    runs: list[str] = []
    for line in cell.source.split("\n"):
        match = LINE.match(line)
        lang = match["lang"] if match else ""
        if not runs or runs[-1] != lang:
            runs.append(lang)
        if cell.option("test") and (match or LINE_END.match(line)):
            raise LessonError(
                lesson.path, cell.key, "a test cell must be the same in both editions: no en/zh"
            )
    for before, here, after in zip(["", *runs], runs, [*runs[1:], ""], strict=False):
        if (here == "en" and after != "zh") or (here == "zh" and before != "en"):
            raise LessonError(
                lesson.path, cell.key, f"missing twin: '{here}:' lines stand without the other"
            )
    if cell.option("test") and re.search(r"\btr\(", cell.source):
        raise LessonError(
            lesson.path, cell.key, "a test cell must be the same in both editions: no tr(…)"
        )


def skeleton(lesson: Lesson, cell: Cell, code: str) -> list[str]:
    """The code's syntax tree without the text of its strings, in a form that can be compared."""
    try:
        tree = ast.parse(code)
    except SyntaxError as error:
        raise LessonError(
            lesson.path, cell.key, f"line {error.lineno} is no Python: {error.msg}"
        ) from error
    nodes = []
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            values = (v for v in node.values if isinstance(v, ast.FormattedValue))
            nodes.append("f-string " + " ".join(sorted(ast.unparse(v) for v in values)))
            node.values = []
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            nodes.append("string")
        elif isinstance(node, ast.Constant):
            nodes.append(repr(node.value))
        elif isinstance(node, ast.Name | ast.Attribute | ast.arg | ast.keyword):
            name = getattr(node, "id", None) or getattr(node, "attr", None)
            nodes.append(str(name or getattr(node, "arg", None)))
        else:
            nodes.append(type(node).__name__)
    return nodes


def numbers_in_words(code: str) -> set[str]:
    """The numbers in comments and plain strings."""
    found: set[str] = set()
    tokens = tokenize.generate_tokens(io.StringIO(code).readline)
    for token in tokens:
        if token.type in (tokenize.COMMENT, tokenize.STRING):
            found |= numbers(token.string)
    return found
