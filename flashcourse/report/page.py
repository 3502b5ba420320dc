"""The class report: one HTML page in one language, with nothing to fetch."""

from __future__ import annotations

import re
import statistics
from collections import Counter
from html import escape
from pathlib import Path

from flashcourse.collecting.roster import normal
from flashcourse.report.charts import STATUS_WORDS, histogram, status_bar
from flashcourse.report.gather import Class, Work
from flashcourse.report.insight import (
    STATUSES,
    STOPPED,
    Eye,
    Pattern,
    Row,
    eyes,
    hardest,
    label_of,
    outcome_text,
    patterns,
    status_in,
    success,
    waiting,
)
from flashcourse.report.words import WORDS
from flashcourse.words import Text

CSS = Path(__file__).with_name("page.css")


def page(known: Class, lang: str) -> str:
    """The whole page."""
    say = lambda name: WORDS[name].in_(lang)
    title = known.title.in_(lang)
    rows, found, looks = success(known), patterns(known), eyes(known)
    sections = [
        f"<h1>{escape(title)}</h1>",
        f'<p class="soft">{say("title")} · {escape(known.lesson)}'
        + (f" · {say('anonymous')}" if known.anonymous else "")
        + "</p>",
        tiles(known, looks, lang),
        marks_section(known, lang),
        success_section(rows, lang),
        questions_section(known, rows, found, lang),
        misconceptions_section(found, lang),
        eyes_section(known, looks, lang),
        everybody_section(known, rows, lang),
    ]
    html_lang = "zh-CN" if lang == "zh" else "en"
    return (
        f'<!DOCTYPE html>\n<html lang="{html_lang}"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)} · {say('title')}</title>"
        f"<style>{CSS.read_text(encoding='utf-8')}</style></head>\n<body>\n"
        + "\n".join(sections)
        + "\n</body></html>\n"
    )


def tiles(known: Class, looks: list[Eye], lang: str) -> str:
    """The numbers that one wants first."""
    works = known.works
    everybody = len(works) + len(known.missing)
    handed_in = WORDS["handed_in"].in_(lang)
    if known.missing:
        handed_in += f", {WORDS['of'].in_(lang).format(everybody)}"
    failed = (*STOPPED, "crashed", "unreadable", "foreign")
    numbers = [
        (len(works), handed_in),
        (
            f"{statistics.median(w.total for w in works):g}",
            WORDS["median"].in_(lang).format(known.max_score),
        ),
        (sum(w.total >= known.max_score for w in works), WORDS["full"].in_(lang)),
        (sum(w.outcome == "unfinished" for w in works), WORDS["unfinished"].in_(lang)),
        (sum(w.outcome in failed for w in works), WORDS["failed"].in_(lang)),
        (len(looks), WORDS["look"].in_(lang)),
    ]
    cells = (f'<div class="tile"><b>{number}</b>{escape(what)}</div>' for number, what in numbers)
    return f'<div class="tiles">{"".join(cells)}</div>'


def section(name: str, lang: str, body: str) -> str:
    return f'<section id="{name}"><h2>{WORDS[name].in_(lang)}</h2>\n{body}</section>'


def marks_section(known: Class, lang: str) -> str:
    totals = [work.total for work in known.works]
    low, high = totals[0], totals[0]
    if len(totals) > 1:
        low, _, high = statistics.quantiles(totals, n=4, method="inclusive")
    note = (
        WORDS["marks_note"]
        .in_(lang)
        .format(max=known.max_score, mean=statistics.mean(totals), low=low, high=high)
    )
    shares = [total / known.max_score if known.max_score else 0.0 for total in totals]
    return section("marks", lang, histogram(shares, lang) + f'<p class="soft">{note}</p>')


def success_section(rows: list[Row], lang: str) -> str:
    head = "".join(
        f"<th{cls}>{WORDS[name].in_(lang)}</th>"
        for name, cls in (
            ("exercise", ""),
            ("points", ' class="n"'),
            ("average", ' class="n"'),
            ("how", ""),
        )
    )
    body = ""
    for row in rows:
        average = "–" if row.average is None else f"{100 * row.average:.0f} %"
        body += (
            f'<tr><td>{escape(row.title.in_(lang))}</td><td class="n">{row.points:g}</td>'
            f'<td class="n">{average}</td><td>{status_bar(row, lang)}</td></tr>'
        )
    present = [s for s in STATUSES if any(row.counts.get(s) for row in rows)]
    legend = "".join(
        f'<span><i class="s-{s}"></i>{STATUS_WORDS[s].in_(lang)}</span>' for s in present
    )
    table = f'<table class="success"><tr>{head}</tr>{body}</table>'
    return section("success", lang, f'{table}<div class="legend">{legend}</div>')


def questions_section(known: Class, rows: list[Row], found: list[Pattern], lang: str) -> str:
    """What is worth ten minutes: the questions behind what went wrong most often."""
    cards = []
    for pattern in [p for p in found if p.example.hints][:3]:
        everybody = len(known.works)
        if pattern.students == 1:
            count = WORDS["ask_one"].in_(lang).format(everybody)
        else:
            count = WORDS["ask"].in_(lang).format(pattern.students, everybody)
        question = prose(pattern.example.hints[0].in_(lang))
        cards.append(
            f'<div class="card ask"><p class="soft small">{count}</p><p>{question}</p></div>'
        )
    for row in hardest(rows)[:1]:
        text = (
            WORDS["weakest"]
            .in_(lang)
            .format(label=row.title.in_(lang), percent=100 * (row.average or 0))
        )
        cards.append(f'<div class="card ask"><p>{escape(text)}</p></div>')
    return section("questions", lang, "".join(cards) or f"<p>{WORDS['none'].in_(lang)}</p>")


def misconceptions_section(found: list[Pattern], lang: str) -> str:
    cards = [misconception_card(pattern, lang) for pattern in found]
    return section("misconceptions", lang, "".join(cards) or f"<p>{WORDS['none'].in_(lang)}</p>")


def misconception_card(pattern: Pattern, lang: str) -> str:
    labels = ", ".join(pattern.labels)
    if pattern.students == 1:
        count = WORDS["one_student"].in_(lang).format(labels)
    else:
        count = WORDS["students"].in_(lang).format(pattern.students, labels)
    example = pattern.example
    lines = [(WORDS["example"].in_(lang), prose(example.text.in_(lang)))]
    if example.line:
        lines.append((WORDS["code"].in_(lang), f"<code>{escape(example.line)}</code>"))
    if example.hints:
        lines.append((WORDS["hint"].in_(lang), prose(example.hints[0].in_(lang))))
    details = "".join(f"<dt>{term}</dt><dd>{text}</dd>" for term, text in lines)
    return (
        f'<div class="card"><h3>{escape(count)} <code>{escape(pattern.id)}</code></h3>'
        f"<dl>{details}</dl></div>"
    )


def eyes_section(known: Class, looks: list[Eye], lang: str) -> str:
    body = ""
    if looks:
        rows = ""
        for eye in looks:
            reasons = "".join(f"<li>{prose(reason.in_(lang))}</li>" for reason in eye.reasons)
            urgent = ' class="urgent"' if eye.urgent else ""
            rows += (
                f"<tr{urgent}><td>{who(eye.student, eye.name)}</td><td><ul>{reasons}</ul></td></tr>"
            )
        head = f"<tr><th>{WORDS['student'].in_(lang)}</th><th>{WORDS['why'].in_(lang)}</th></tr>"
        body = (
            f'<p class="soft small">{WORDS["eyes_note"].in_(lang)}</p><table>{head}{rows}</table>'
        )
    else:
        body = f"<p>{WORDS['eyes_none'].in_(lang)}</p>"
    left = waiting(known)
    if left:
        counts = ", ".join(f"{label_of(grade_id)} × {count}" for grade_id, count in left)
        body += f"<p>{WORDS['waiting'].in_(lang).format(escape(counts))}</p>"
    return section("eyes", lang, body)


def everybody_section(known: Class, rows: list[Row], lang: str) -> str:
    """One line a student, one coloured number an exercise."""
    head = f"<th>{WORDS['student'].in_(lang)}</th>"
    head += f'<th class="n">{WORDS["total"].in_(lang)}</th>'
    head += "".join(
        f'<th class="n" title="{escape(row.title.in_(lang), quote=True)}">{escape(row.label)}</th>'
        for row in rows
    )
    head += f"<th>{WORDS['outcome'].in_(lang)}</th>"
    body = "".join(student_row(work, rows, lang) for work in known.works)
    table = f'<div class="wide"><table><tr>{head}</tr>{body}</table></div>'
    if known.missing:
        names = ", ".join(who(student, name) for student, name in known.missing)
        table += f"<p>{WORDS['missing'].in_(lang)} ({len(known.missing)}): {names}</p>"
    counts = Counter(outcome_text_short(work).in_(lang) for work in known.works)
    each = Text("{}: {}", "{}：{}").in_(lang)
    summary = " · ".join(each.format(words, count) for words, count in counts.most_common())
    return section("everybody", lang, f'<p class="soft">{escape(summary)}</p>{table}')


def student_row(work: Work, rows: list[Row], lang: str) -> str:
    cells = ""
    for row in rows:
        points = work.points.get(row.grade_id)
        status = status_in(work, row.grade_id, row.points)
        shown = "?" if points is None else f"{points:g}"
        hint = STATUS_WORDS[status].in_(lang)
        cells += f'<td class="n"><span class="dot s-{status}" title="{hint}">{shown}</span></td>'
    outcome = escape(outcome_text_short(work).in_(lang))
    full = escape(outcome_text(work).in_(lang))
    return (
        f"<tr><td>{who(work.student, work.name)}</td>"
        f'<td class="n"><b>{work.total:g}</b></td>{cells}'
        f'<td class="outcome" title="{full}">{outcome}</td></tr>'
    )


def outcome_text_short(work: Work) -> Text:
    from flashcourse.grading.outcome import KINDS

    return KINDS[work.outcome]


def who(student: str, name: str) -> str:
    if normal(name) in ("", normal(student)):
        return escape(student)
    return f'{escape(name)} <span class="soft small">{escape(student)}</span>'


def prose(text: str) -> str:
    """A sentence with its `code`."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))
