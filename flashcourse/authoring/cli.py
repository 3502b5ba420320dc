"""`flashcourse build`: from lessons to notebooks."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path


def add_parsers(commands: argparse._SubParsersAction) -> None:
    parser = commands.add_parser(
        "build", help="build source/ and release/ from notebooks/, in both languages"
    )
    parser.add_argument("lessons", nargs="*", metavar="LESSON", help="only these lessons")
    parser.add_argument(
        "--check", action="store_true", help="write nothing; fail if what is there differs"
    )
    parser.add_argument(
        "--standalone",
        action="store_true",
        help="also write dist/standalone/: notebooks that carry the student's package",
    )
    parser.set_defaults(run=run_build)


def run_build(arguments: argparse.Namespace) -> int:
    from flashcourse.authoring.build import build, differences
    from flashcourse.authoring.errors import LessonError

    root: Path = arguments.course
    try:
        if not arguments.check:
            for lesson in build(root, arguments.lessons):
                print(f"built {lesson}: source/ and release/, en and zh")
            if arguments.standalone:
                run_standalone(root, arguments.lessons)
            return 0
        found = differences(root, arguments.lessons)
    except LessonError as error:
        print(f"flashcourse build: {error}", file=sys.stderr)
        return 1
    for line in found:
        print(f"flashcourse build --check: {line}", file=sys.stderr)
    if found:
        print("Run `flashcourse build` and commit what it writes.", file=sys.stderr)
    return 1 if found else 0


def run_standalone(root: Path, lessons: list[str]) -> None:
    from flashcourse.authoring.standalone import build_standalone

    for path in build_standalone(root, lessons):
        print(f"wrote {path.relative_to(root)}: {path.stat().st_size / 1000:.0f} kB")
