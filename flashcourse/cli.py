"""The `flashcourse` command. Each part of the package adds its own subcommands."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence
from pathlib import Path

# Where subcommands come from. Importing one needs nothing but the student's package; what a command
# needs more it imports when it runs.
PARTS = (
    "flashcourse.authoring.cli",
    "flashcourse.collecting.cli",
    "flashcourse.grading.cli",
    "flashcourse.handin.cli",
    "flashcourse.report.cli",
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one subcommand; its exit status."""
    parser = argparse.ArgumentParser(
        prog="flashcourse",
        description="A course on FlashAttention: write it, collect, grade, report.",
    )
    parser.add_argument(
        "--course",
        type=Path,
        default=None,
        metavar="DIR",
        help="the course's folder (default: the nearest with an nbgrader_config.py)",
    )
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    add_parts(commands)
    arguments = parser.parse_args(argv)
    try:
        if getattr(arguments, "needs_course", True):
            arguments.course = course_folder(arguments.course)
        return arguments.run(arguments)
    except FileNotFoundError as error:
        print(f"flashcourse: {error}", file=sys.stderr)
        return 2
    except ModuleNotFoundError as error:
        print(
            f"flashcourse: {error.name} is not installed: pip install 'flashcourse[instructor]'",
            file=sys.stderr,
        )
        return 2


def add_parts(commands: argparse._SubParsersAction) -> None:
    """Every part's subcommands; a notebook that carries the student's package lacks some parts."""
    for part in PARTS:
        try:
            module = importlib.import_module(part)
        except ModuleNotFoundError as error:
            if not (error.name or "").startswith("flashcourse."):
                raise
            continue
        module.add_parsers(commands)


def course_folder(given: Path | None) -> Path:
    """The course's root: the given folder, or the nearest one above the working directory."""
    if given is not None:
        if not (given / "nbgrader_config.py").is_file():
            raise FileNotFoundError(f"no course in {given}: it holds no nbgrader_config.py")
        return given.resolve()
    here = Path.cwd()
    for folder in (here, *here.parents):
        if (folder / "nbgrader_config.py").is_file():
            return folder
    raise FileNotFoundError(
        "no course here: go to a folder with an nbgrader_config.py, or name it with --course"
    )


if __name__ == "__main__":
    sys.exit(main())
