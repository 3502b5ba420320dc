"""`flashcourse collect`: from what came in to submitted/."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from flashcourse.words import Text

WHOLE = Text("File by file: {}", "逐个文件的说明：{}")
PRESETS = ("moodle", "canvas", "blackboard", "email", "folder", "file")


def add_parsers(commands: argparse._SubParsersAction) -> None:
    parser = commands.add_parser(
        "collect", help="take files, folders, zips and e-mails that students handed in"
    )
    parser.add_argument("lesson", metavar="LESSON")
    parser.add_argument("paths", nargs="+", type=Path, metavar="PATH")
    how = parser.add_mutually_exclusive_group()
    how.add_argument(
        "--from",
        dest="ways",
        choices=PRESETS,
        action="append",
        help="how names tell the student (default: all of these are tried, in this order)",
    )
    how.add_argument(
        "--pattern",
        help="your own naming, such as '{student}-hw3.ipynb'; fields: {student} {name} {email} "
        "{number} {lesson} {time} {ignore}",
    )
    parser.add_argument(
        "--roster",
        type=Path,
        metavar="CSV",
        help="the class list, with a column id and any of name, first_name, last_name, email, "
        "canvas_id, moodle_id (default: students.csv of the course, if there)",
    )
    parser.add_argument("--lang", choices=("en", "zh"), help="the report's language")
    parser.set_defaults(run=run_collect)


def run_collect(arguments: argparse.Namespace) -> int:
    """0 if every file was taken, 1 if some were refused, 2 if nothing could be done."""
    from flashcourse.collecting.collect import Settings, collect
    from flashcourse.collecting.naming import own_pattern
    from flashcourse.collecting.report import report_lines
    from flashcourse.collecting.roster import FILE, Roster, read_roster
    from flashcourse.collecting.storage import save_record
    from flashcourse.grading.course import CourseError
    from flashcourse.words import course_language

    root: Path = arguments.course
    roster_path = arguments.roster or root / FILE
    try:
        listed = arguments.roster or roster_path.is_file()
        roster = read_roster(roster_path) if listed else Roster()
        if arguments.pattern:
            own_pattern(arguments.pattern)
        settings = Settings(roster, tuple(arguments.ways or PRESETS), arguments.pattern)
        results = collect(root, arguments.lesson, arguments.paths, settings)
        report = save_record(root / "submitted", arguments.lesson, results).with_name("report.txt")
        lang = arguments.lang or course_language()
        report.write_text("\n".join(report_lines(results, lang)) + "\n", encoding="utf-8")
    except (CourseError, ValueError, FileNotFoundError) as error:
        print(f"flashcourse collect: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(
            f"flashcourse collect: stopped: {error}. Mend that and run it again.", file=sys.stderr
        )
        return 2
    print("\n".join(report_lines(results, lang, everything=False)).lstrip("\n"))
    print(WHOLE.in_(lang).format(report.relative_to(root)))
    return 1 if any(result.outcome == "refused" for result in results) else 0
