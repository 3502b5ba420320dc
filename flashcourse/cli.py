"""The `flashcourse` command. Each part of the package adds its own subcommands."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence
from pathlib import Path

# Where subcommands come from, and what must be installed for each.
PARTS = ("flashcourse.authoring.cli",)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one subcommand; its exit status."""
    parser = argparse.ArgumentParser(prog="flashcourse", description=__doc__)
    parser.add_argument(
        "--course",
        type=Path,
        default=None,
        metavar="DIR",
        help="the course's folder (default: the nearest with an nbgrader_config.py)",
    )
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for part in PARTS:
        importlib.import_module(part).add_parsers(commands)
    arguments = parser.parse_args(argv)
    try:
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
