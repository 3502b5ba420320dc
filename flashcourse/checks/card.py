"""A Marks as an HTML card: what is right, what is wrong first, and hints to open one by one.

One self-contained piece of HTML: inline CSS, no script, no network. It looks the same in
JupyterLab, Notebook, Colab, VS Code and an exported page, light or dark, from 320 px wide.
All that comes from the learner's code is escaped; `like this` becomes <code>.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape

from flashcourse.checks.marks import Finding, Marks
from flashcourse.checks.registry import title_of
from flashcourse.words import Text

LONGEST = 600  # characters of one sentence
MOST_FINDINGS = 8

STATUS = {
    "right": Text("right", "正确"),
    "wrong": Text("not right yet", "还不对"),
    "unfinished": Text("unfinished", "未完成"),
    "crashed": Text("stopped by an error", "出错中止"),
    "too_slow": Text("stopped: too slow", "太慢，已停止"),
}
# Something is wrong, and it costs nothing here: full points in red would be read as a mistake.
_NOTHING_LOST = Text("not right yet, no points lost here", "还不对，但这里不扣分")
_MARK = {"right": "✓", "wrong": "✗", "unfinished": "…", "crashed": "!", "too_slow": "!"}
_POINTS = Text("points", "分")
_PASSED = Text("What is right", "已经正确的")
_FIRST = Text("Look at this first", "先看这里")
_MORE = Text("Also found", "另外还有")
_HINTS = (
    Text("Hint 1: a question", "提示 1：一个问题"),
    Text("Hint 2: the formula", "提示 2：公式"),
    Text("Hint 3: the line", "提示 3：代码"),
)

# Its own colours on its own background, so that the page's theme can't make it unreadable. Dark by
# the system's setting, or by what JupyterLab, Notebook, VS Code and Colab write on the page.
_LIGHT = (
    "--fc-bg:#fff;--fc-fg:#1f2328;--fc-soft:#57606a;--fc-line:#d0d7de;--fc-box:#f6f8fa;"
    "--fc-code:#e8edf2;--fc-good:#1a7f37;--fc-bad:#b3261e;--fc-open:#7a5200"
)
_DARK = (
    "--fc-bg:#1b1f24;--fc-fg:#e6edf3;--fc-soft:#a9b4bf;--fc-line:#3d444d;--fc-box:#262c33;"
    "--fc-code:#343c45;--fc-good:#57d36f;--fc-bad:#ff8b80;--fc-open:#f0bf4c"
)
_DARK_PAGES = (
    "[data-jp-theme-light=false] .fc-card,body.vscode-dark .fc-card,"
    "html[theme=dark] .fc-card,html[data-theme=dark] .fc-card"
)
_LIGHT_PAGES = (
    "[data-jp-theme-light=true] .fc-card,body.vscode-light .fc-card,"
    "html[theme=light] .fc-card,html[data-theme=light] .fc-card"
)
STYLE = f"""<style>
.fc-card{{{_LIGHT}}}
@media (prefers-color-scheme:dark){{.fc-card{{{_DARK}}}}}
{_LIGHT_PAGES}{{{_LIGHT}}}
{_DARK_PAGES}{{{_DARK}}}
.fc-card{{box-sizing:border-box;max-width:46rem;margin:4px 0;padding:12px 14px;
border:1px solid var(--fc-line);border-left:5px solid var(--fc-tone);border-radius:6px;
background:var(--fc-bg);color:var(--fc-fg);font:14px/1.5 system-ui,-apple-system,"Segoe UI",
"Noto Sans","PingFang SC","Microsoft YaHei","Noto Sans CJK SC",sans-serif;overflow-wrap:anywhere}}
.fc-right{{--fc-tone:var(--fc-good)}}.fc-wrong,.fc-crashed,.fc-too_slow{{--fc-tone:var(--fc-bad)}}
.fc-unfinished,.fc-nothing-lost{{--fc-tone:var(--fc-open)}}
.fc-card .fc-head{{display:flex;flex-wrap:wrap;gap:2px 12px;align-items:baseline;margin:0}}
.fc-card .fc-name{{font-weight:600}}
.fc-card .fc-status{{color:var(--fc-tone);font-weight:600}}
.fc-card .fc-points{{margin-left:auto;font-variant-numeric:tabular-nums;font-weight:600}}
.fc-card .fc-bar{{height:4px;margin:6px 0 0;border-radius:2px;background:var(--fc-line)}}
.fc-card .fc-bar>div{{height:4px;border-radius:2px;background:var(--fc-tone)}}
.fc-card .fc-label{{margin:10px 0 2px;font-size:12px;font-weight:600;color:var(--fc-soft)}}
.fc-card p{{margin:2px 0;padding:0;color:inherit}}.fc-card .fc-place{{display:block}}
section.fc-card ul.fc-list{{margin:2px 0;padding:0;color:inherit;list-style:none}}
.fc-card .fc-list li{{margin:0;padding-left:1.4em;text-indent:-1.4em}}
.fc-card .fc-sign{{font-weight:600;display:inline-block;width:1.4em;text-indent:0}}
.fc-card .fc-ok{{color:var(--fc-good)}}.fc-card .fc-no{{color:var(--fc-bad)}}
section.fc-card code.fc-code{{padding:1px 4px;border-radius:3px;background:var(--fc-code);
color:var(--fc-fg);font:13px/1.4 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;
white-space:pre-wrap}}
section.fc-card code.fc-source{{display:block;width:fit-content;margin:2px 0 4px}}
.fc-card details{{margin:6px 0 0;padding:4px 10px;border:1px solid var(--fc-line);
border-radius:4px;background:var(--fc-box)}}
.fc-card details details{{padding:4px 0 0;border-width:1px 0 0;border-radius:0}}
.fc-card summary{{cursor:pointer;font-weight:600;color:var(--fc-fg)}}
.fc-card summary:focus-visible{{outline:2px solid var(--fc-tone);outline-offset:2px}}
</style>"""


def card(marks: Marks) -> str:
    """The card, in the language of `marks.lang`."""
    lang, body = marks.lang, [_head(marks)]
    if marks.findings:
        body.append(_label(_FIRST, lang))
        body.append(_finding(marks.findings[0], lang))
    if marks.passed:
        items = (f"<li>{_sign(True)}{_say(text, lang)}</li>" for text in marks.passed)
        body.append(_label(_PASSED, lang) + _list(items))
    body.append(_others(marks.findings[1:], lang))
    said, kind = escape(_status(marks).in_(lang)), f"fc-{marks.status}"
    if _nothing_lost(marks):
        kind += " fc-nothing-lost"
    return (
        f'{STYLE}<section class="fc-card {kind}" lang="{lang}" '
        f'aria-label="{escape(_title(marks), quote=True)}: {said}">{"".join(body)}</section>'
    )


def _nothing_lost(marks: Marks) -> bool:
    return marks.status == "wrong" and marks.points == marks.max_points


def _status(marks: Marks) -> Text:
    return _NOTHING_LOST if _nothing_lost(marks) else STATUS[marks.status]


def _title(marks: Marks) -> str:
    return title_of(marks.exercise).in_(marks.lang)


def _head(marks: Marks) -> str:
    lang = marks.lang
    share = 100 * marks.points / marks.max_points if marks.max_points else 100
    points = f"{marks.points:g} / {marks.max_points:g} {_POINTS.in_(lang)}"
    return (
        f'<div class="fc-head"><span class="fc-name" title="{escape(marks.exercise, quote=True)}">'
        f"{escape(_title(marks))}</span>"
        f'<span class="fc-status"><span aria-hidden="true">{_MARK[marks.status]} </span>'
        f"{_status(marks).in_(lang)}</span>"
        f'<span class="fc-points">{points}</span></div>'
        f'<div class="fc-bar" aria-hidden="true"><div style="width:{share:.0f}%"></div></div>'
    )


def _label(text: Text, lang: str) -> str:
    return f'<div class="fc-label">{text.in_(lang)}</div>'


def _list(items: Iterable[str]) -> str:
    return f'<ul class="fc-list">{"".join(items)}</ul>'


def _sign(good: bool) -> str:
    name, sign = ("ok", "✓") if good else ("no", "✗")
    return f'<span class="fc-sign fc-{name}" aria-hidden="true">{sign}</span>'


def _say(text: Text, lang: str) -> str:
    """A sentence, shortened and escaped, with `code` set as code."""
    sentence = text.in_(lang)
    if len(sentence) > LONGEST:
        sentence = sentence[: LONGEST - 1] + "…"
    parts = re.split(r"`([^`]+)`", sentence)
    return "".join(_code(part) if n % 2 else escape(part) for n, part in enumerate(parts))


def _code(text: str) -> str:
    return f'<code class="fc-code">{escape(text)}</code>'


def _finding(finding: Finding, lang: str) -> str:
    where = []
    if finding.todo:
        where.append(f"TODO {finding.todo}")
    if finding.line is not None:
        where.append(f"第 {finding.line} 行" if lang == "zh" else f"line {finding.line}")
    joined = " · ".join(where)
    place = f'<strong class="fc-place">{joined}</strong> ' if where else ""
    code = finding.source_line
    if code and code not in finding.text.en:  # an exception's text quotes it already
        place += f'<code class="fc-code fc-source">{escape(code)}</code> '
    return f"<p>{place}{_say(finding.text, lang)}</p>{_hints(finding.hints, lang)}"


def _hints(hints: tuple[Text, ...], lang: str, step: int = 0) -> str:
    """Each hint inside the one before it, so that they are opened in order."""
    if not hints:
        return ""
    title = _HINTS[min(step, len(_HINTS) - 1)].in_(lang)
    rest = _hints(hints[1:], lang, step + 1)
    return f"<details><summary>{title}</summary><p>{_say(hints[0], lang)}</p>{rest}</details>"


def _others(findings: tuple[Finding, ...], lang: str) -> str:
    """What else is wrong, closed: one thing at a time."""
    if not findings:
        return ""
    shown = (
        f"<li>{_sign(False)}{_todo(f, lang)}{_say(f.text, lang)}</li>"
        for f in findings[:MOST_FINDINGS]
    )
    title = f"{_MORE.in_(lang)} ({len(findings)})"
    return f"<details><summary>{title}</summary>{_list(shown)}</details>"


def _todo(finding: Finding, lang: str) -> str:
    """The TODO in front of a sentence that does not name it itself."""
    name = f"TODO {finding.todo}"
    return "" if finding.todo is None or name in finding.text.in_(lang) else f"{name} · "
