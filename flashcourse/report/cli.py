"""`flashcourse report`: a page about the class, and marks for the learning platform."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

FOLDER = Path("build", "report")  # git leaves it alone: it holds students' names


def add_parsers(commands: argparse._SubParsersAction) -> None:
    parser = commands.add_parser("report", help="what the class did in a lesson: HTML and CSV")
    parser.add_argument("lesson", metavar="LESSON")
    parser.add_argument("--lang", choices=("en", "zh"), help="default: COURSE_LANG, else en")
    parser.add_argument("--anonymous", action="store_true", help="leave names out everywhere")
    parser.add_argument("--to", type=Path, metavar="DIR", help=f"default: {FOLDER}/LESSON")
    parser.add_argument("--roster", type=Path, metavar="CSV", help="default: students.csv")
    parser.add_argument(
        "--column",
        default="",
        metavar="NAME",
        help="the assignment in Moodle and Canvas, such as 'Lesson 3 (4711)' (default: the title)",
    )
    parser.set_defaults(run=run_report)


def run_report(arguments: argparse.Namespace) -> int:
    """0 if written; 2 if nothing is graded or the class list can't be read."""
    from flashcourse.collecting.roster import read_roster
    from flashcourse.report.exports import canvas_csv, left_out, marks_csv, moodle_csv
    from flashcourse.report.gather import NothingGraded, gather, without_names
    from flashcourse.report.page import page
    from flashcourse.report.words import WORDS
    from flashcourse.words import course_language

    lang = arguments.lang or course_language()
    try:
        roster = read_roster(arguments.roster) if arguments.roster else None
        known = gather(arguments.course, arguments.lesson, roster)
    except (NothingGraded, ValueError, FileNotFoundError) as error:
        print(f"flashcourse report: {error}", file=sys.stderr)
        return 2
    if arguments.anonymous:
        known = without_names(known)
    # Names of their own: what is shown in class must not replace what marks are taken from.
    form = ".anonymous" if arguments.anonymous else ""
    files = {
        f"report{form}.{lang}.html": page(known, lang),
        f"marks{form}.csv": marks_csv(known, lang),
    }
    if not arguments.anonymous:
        # Without names a learning platform can't tell whose the marks are.
        files["moodle.csv"] = moodle_csv(known, lang, arguments.column)
        files["canvas.csv"] = canvas_csv(known, lang, arguments.column)
    folder = arguments.to or arguments.course / FOLDER / arguments.lesson
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8", newline="")
        print(folder / name)
    if not arguments.anonymous and not known.roster:
        print(WORDS["no_list"].in_(lang))
    elif left_out(known):
        print(WORDS["left_out"].in_(lang).format(", ".join(left_out(known))))
    return 0
