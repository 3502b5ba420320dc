"""The block that installs or unpacks the course's package: in a submission, nobody's own code."""

from __future__ import annotations

import ast
import re

from flashcourse.grading.names import plain

CONDITION = "importlib.util.find_spec('flashcourse')"  # as `ast.unparse` writes it
# A carried package: hundreds of lines of base64, too long to be parsed.
CARRIED = re.compile(r"^[A-Za-z0-9+/=]{60,}\n", re.MULTILINE)


def without_set_up(source: str) -> str:
    """The code of a cell without that block; as it is, if there is none."""
    if CONDITION not in source.replace('"', "'"):
        return source
    short = CARRIED.sub("", source)
    tree = plain(short)
    rest = [
        statement
        for statement in (tree.body if tree else [])
        if not (isinstance(statement, ast.If) and CONDITION in ast.unparse(statement.test))
        and ast.unparse(statement) != "import importlib.util"
    ]
    if tree is None or len(rest) == len(tree.body):
        return source
    return "\n".join(ast.get_source_segment(short, statement) or "" for statement in rest)
