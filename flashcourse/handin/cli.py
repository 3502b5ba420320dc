"""`flashcourse check`: look at a notebook before it is handed in. Needs no course folder."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path


def add_parsers(commands: argparse._SubParsersAction) -> None:
    parser = commands.add_parser("check", help="look at a notebook before it is handed in")
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    parser.add_argument("--lang", choices=("en", "zh"), help="default: the notebook's language")
    parser.set_defaults(run=run_check, needs_course=False)


def run_check(arguments: argparse.Namespace) -> int:
    """0 if every file is finished, 1 if something is left to do, 2 if one is not accepted."""
    from flashcourse.handin.look import check_file

    status = 0
    for path in arguments.files:
        if not path.is_file():
            print(f"flashcourse check: no such file: {path}", file=sys.stderr)
            status = 2
            continue
        found = check_file(path, arguments.lang)
        print(found)
        status = max(status, 0 if found.finished else 1 if found.accepted else 2)
    return status
