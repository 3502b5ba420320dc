"""The page that goes back to a student: marks, findings, hints; no test's source, no script.

Everything that a student wrote is shown as text. What a test put out is HTML of the course's own
marks; it is cleaned all the same, and the page's policy lets no script run.
"""

from __future__ import annotations

import re
from html import escape
from typing import Any

import bleach
from bleach.css_sanitizer import CSSSanitizer
from nbconvert.exporters import HTMLExporter
from nbconvert.exporters.exporter import Exporter
from nbformat.notebooknode import NotebookNode
from nbgrader.api import Gradebook

from flashcourse.grading.outcome import Outcome, in_both
from flashcourse.words import LANGUAGES, Text

MAX_TEXT = 20_000
MAX_CARD = 200_000
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; form-action 'none'"

STATUS: dict[str, Text] = {
    "right": Text("Right.", "正确。"),
    "wrong": Text("Not right yet: a test failed.", "还不对：有测试没有通过。"),
    "unfinished": Text("Not finished yet.", "还没有写完。"),
    "crashed": Text("Your code raised an error.", "代码抛出了错误。"),
    "too_slow": Text(
        "Your code took too long. Does a loop never end?", "代码运行超时。是不是有循环停不下来？"
    ),
    "not_run": Text("Not run.", "没有运行。"),
    "manual": Text("Marked by a person.", "由老师评分。"),
}
POINTS = Text("{} of {} points", "得分 {} / {}")
OPEN = Text(
    "Not final yet: your teacher still has to mark {}. Up to {} points can be added.",
    "这还不是最终得分：{} 由老师批改，目前还没有批改，最多可再得 {} 分。",
)
OPEN_PART = Text("Not marked yet, {} points possible", "待老师批改，满分 {} 分")
AND = Text(", ", "、")
FEEDBACK = Text("Feedback", "批改结果")
COLON = Text(": ", "：")
LATE = Text("Taken off for being late: {}", "迟交扣分：{}")
YOUR_ANSWER = Text("Your answer", "你的答案")
LEFT_OUT = Text("… {} characters left out", "……省略 {} 个字符")

STYLE = """
body { font-family: sans-serif; max-width: 50em; margin: 2em auto; padding: 0 1em; line-height: 1.5;
  color: #1b1b1b; background: #fff; }
.part { border-top: 1px solid #ccc; margin-top: 1.5em; padding-top: .5em; }
pre { background: #f5f5f5; padding: .8em; overflow-x: auto; white-space: pre-wrap; }
.points { float: right; font-weight: bold; }
.comment { border-left: 4px solid #3b6ea5; padding-left: .8em; white-space: pre-wrap; }
.outcome { background: #fff4d6; padding: .6em .8em; }
.open { background: #e3effb; padding: .6em .8em; }
@media (prefers-color-scheme: dark) {
  body { color: #e6e6e6; background: #16181c; } pre { background: #24272d; }
  .outcome { background: #4a3c10; } .open { background: #17324d; } .part { border-color: #444; }
}
"""

_TAGS = frozenset(
    ["a", "b", "blockquote", "br", "caption", "code", "dd", "details", "div", "dl", "dt", "em"]
    + ["h1", "h2", "h3", "h4", "h5", "hr", "i", "li", "ol", "p", "pre", "section", "small", "span"]
    + ["strong", "sub", "summary", "sup", "table", "tbody", "td", "th", "thead", "tr", "u", "ul"]
)
_ATTRIBUTES = {"*": ["class", "style", "open", "lang", "title", "aria-label", "aria-hidden"]}
_CSS = CSSSanitizer()


class FeedbackExporter(HTMLExporter):
    """Turns a graded notebook into the student's page."""

    def from_notebook_node(self, nb: NotebookNode, resources: Any = None, **kw: Any) -> Any:
        # Not HTMLExporter's: its template would show every cell of the notebook.
        nb, resources = Exporter.from_notebook_node(self, nb, resources, **kw)
        names = resources.get("nbgrader", {})
        waiting = not_marked(names)
        for cell in nb.cells:
            if cell.metadata.get("nbgrader", {}).get("grade_id") in waiting:
                cell.metadata.nbgrader.score = None  # where nobody has marked, nbgrader says 0
        return feedback_page(nb, names), resources


def not_marked(names: dict[str, str]) -> frozenset[str]:
    """Grade ids of the answers that a person still has to mark, by the gradebook.

    names: nbgrader's db_url, assignment, notebook and student; empty where there is no gradebook.
    """
    if "db_url" not in names:
        return frozenset()
    with Gradebook(names["db_url"]) as gradebook:
        notebook = gradebook.find_submission_notebook(
            names["notebook"], names["assignment"], names["student"]
        )
        return frozenset(
            grade.name
            for grade in notebook.grades
            if grade.auto_score is None and grade.manual_score is None
        )


def feedback_page(nb: NotebookNode, totals: dict[str, Any]) -> str:
    """The page as HTML. totals: nbgrader's score, max_score, late_penalty, where known.

    A cell's nbgrader metadata has its score and points; a score of None waits for a person.
    """
    own = nb.metadata.get("flashcourse", {})
    grading = own.get("grading", {})
    lang = grading.get("lang", own.get("lang", "en"))
    styles: dict[str, None] = {STYLE: None}
    graded = [cell.metadata.get("nbgrader", {}) for cell in nb.cells]
    left = [one for one in graded if one.get("grade") and one.get("score", 0) is None]
    sections = "".join(_section(cell, grading, lang, styles) for cell in nb.cells)
    title = escape(str(own.get("title") or own.get("lesson") or ""))
    heading = FEEDBACK.in_(lang) + (COLON.in_(lang) + title if title else "")
    return (
        f'<!DOCTYPE html><html lang="{lang}"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        f"<title>{heading}</title><style>{''.join(styles)}</style></head><body>"
        f"<h1>{heading}</h1>{_totals(totals, lang)}{_open(left, lang)}{_outcome(grading, lang)}"
        f"{sections}"
        "</body></html>\n"
    )


def _totals(totals: dict[str, Any], lang: str) -> str:
    if "score" not in totals:
        return ""
    score = POINTS.in_(lang).format(f"{totals['score']:g}", f"{totals['max_score']:g}")
    late = totals.get("late_penalty")
    lines = f"<p><strong>{score}</strong></p>"
    return lines + (f"<p>{LATE.in_(lang).format(f'{late:g}')}</p>" if late else "")


def _open(left: list[dict[str, Any]], lang: str) -> str:
    if not left:
        return ""
    text = not_final({one["grade_id"]: one["points"] for one in left}).in_(lang)
    return f'<p class="open">{escape(text)}</p>'


def not_final(left: dict[str, float]) -> Text:
    """That a total is not final while answers wait for a person. left: points by grade id."""
    worth = f"{sum(left.values()):g}"
    return Text(*(OPEN.in_(lang).format(AND.in_(lang).join(left), worth) for lang in LANGUAGES))


def _outcome(grading: dict[str, Any], lang: str) -> str:
    if not grading or grading["outcome"]["kind"] == "graded":
        return ""
    text = Outcome(**grading["outcome"]).text().in_(lang)
    return f'<p class="outcome">{escape(text)}</p>'


def _section(
    cell: NotebookNode, grading: dict[str, Any], lang: str, styles: dict[str, None]
) -> str:
    graded = cell.metadata.get("nbgrader", {})
    if graded.get("solution"):
        return _answer(cell, graded, lang)
    if graded.get("grade"):
        return _test(cell, graded, grading, lang, styles)
    return ""


def _answer(cell: NotebookNode, graded: dict[str, Any], lang: str) -> str:
    error = next((o for o in cell.get("outputs", []) if o.output_type == "error"), None)
    words = f"{error.ename}: {error.evalue}"[:500] if error is not None else ""
    comment = graded.get("comment")
    return (
        f'<section class="part">{_points(graded, lang) if graded.get("grade") else ""}'
        f"<h2>{YOUR_ANSWER.in_(lang)}{COLON.in_(lang)}{escape(graded['grade_id'])}</h2>"
        f"<pre>{_cut(cell.source, lang)}</pre>"
        + (f"<pre>{escape(words)}</pre>" if words else "")
        + (f'<p class="comment">{escape(comment)}</p>' if comment else "")
        + "</section>"
    )


def _test(
    cell: NotebookNode,
    graded: dict[str, Any],
    grading: dict[str, Any],
    lang: str,
    styles: dict[str, None],
) -> str:
    name = graded["grade_id"]
    status = grading.get("status", {}).get(name, "not_run")
    words = STATUS[status].in_(lang)
    detail = in_both(grading.get("details", {}).get(name, "")).in_(lang)
    card = _card(cell, styles)
    body = card or f"<p>{words}</p>" + (f"<pre>{escape(detail)}</pre>" if detail else "")
    points = _points(graded, lang)
    return f'<section class="part">{points}<h2>{escape(name)}</h2>{body}</section>'


def _points(graded: dict[str, Any], lang: str) -> str:
    """What a cell got; `score` is None while nobody has marked it."""
    worth = graded.get("points")
    if "score" not in graded or worth is None:
        return ""
    score = graded["score"]
    words = (
        OPEN_PART.in_(lang).format(f"{worth:g}")
        if score is None
        else (POINTS.in_(lang).format(f"{score:g}", f"{worth:g}"))
    )
    return f'<span class="points">{words}</span>'


def _card(cell: NotebookNode, styles: dict[str, None]) -> str:
    """The marks' own HTML, its style sheet moved to the page's head."""
    results = [o for o in cell.get("outputs", []) if o.output_type == "execute_result"]
    html = results[-1].data.get("text/html", "") if results else ""
    html = "".join(html) if isinstance(html, list) else html
    if not html or len(html) > MAX_CARD:
        return ""
    for sheet in re.findall(r"<style>(.*?)</style>", html, re.DOTALL):
        if not re.search(r"<|@import|url\(", sheet):
            styles[sheet] = None
    html = re.sub(r"<style.*?</style>", "", html, flags=re.DOTALL)
    return bleach.clean(html, _TAGS, _ATTRIBUTES, css_sanitizer=_CSS, strip=True)


def _cut(text: str, lang: str) -> str:
    if len(text) <= MAX_TEXT:
        return escape(text)
    return f"{escape(text[:MAX_TEXT])}\n{LEFT_OUT.in_(lang).format(len(text) - MAX_TEXT)}"
