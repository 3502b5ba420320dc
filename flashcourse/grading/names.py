"""Which names a test cell asks for, and where each comes from: the course, or the student.

A test runs far from the student's process. What the course's own cells import or define is made
anew beside the test; everything else is looked up in the student's process.
"""

from __future__ import annotations

import ast
import builtins
import re
import warnings
from collections.abc import Iterator
from typing import Any

from IPython.core.inputtransformer2 import TransformerManager

# What Python thinks of a student's string escapes is nothing for the grader's screen.
warnings.filterwarnings("ignore", category=SyntaxWarning, module="<unknown>")


_ERRORS = (SyntaxError, ValueError, RecursionError, MemoryError)
# Reading happens in the grader's own process, for which no limit of a submission's holds.
MAX_PARSED = 60_000  # characters of one cell
_MAGIC = re.compile(r"(\s*)([\w.,\s]*=\s*)?([%!?/,;].*|[\w.%*]*\?\??\s*)$", re.DOTALL)
_NAMED = re.compile(r"%(\w+)[ \t]*(.*)", re.DOTALL)


def parse(source: str) -> ast.Module | None:
    """The syntax tree of a cell, magics included; None if it is no Python, or too long to read."""
    tree = plain(source)
    if tree is not None or len(source) > MAX_PARSED:
        return tree
    try:
        return plain(_without_magics(source))
    except _ERRORS:
        return None


def plain(source: str) -> ast.Module | None:
    """The tree of a cell that is Python as it stands, which IPython would leave as it is."""
    if len(source) > MAX_PARSED:
        return None
    try:
        return ast.parse(source)
    except _ERRORS:
        return None


def _without_magics(source: str) -> str:
    """The cell with calls for magics, as IPython makes them, in one pass (IPython's own takes time
    that grows with the square of the length)."""
    lines = source.splitlines(keepends=True)
    manager: Any = TransformerManager()
    for transform in (*manager.cleanup_transforms, *manager.line_transforms):
        lines = transform(lines)
    done: list[str] = []
    rest = iter(lines)
    for line in rest:
        found = _MAGIC.match(line)
        if found is None:
            done.append(line)
            continue
        indent, assigned, escaped = found.groups()
        while escaped.rstrip("\n").endswith("\\"):
            escaped = escaped.rstrip("\n")[:-1] + next(rest, "")
        done.append(f"{indent}{assigned or ''}{_call(escaped.strip())}\n")
    return "".join(done)


def _call(escaped: str) -> str:
    """The call that a line stands for which begins with one of IPython's escapes."""
    named = _NAMED.match(escaped)
    if named is not None:
        name, rest = named.groups()
        return f"get_ipython().run_line_magic({name!r}, {rest!r})"
    if "?" in (escaped[:1], escaped[-1:]):
        return f"get_ipython().run_line_magic('pinfo', {escaped.strip('?')!r})"
    how = "system" if escaped.startswith("!") else "escaped"
    return f"get_ipython().{how}({escaped.lstrip('!')!r})"


def is_unread(source: str) -> bool:
    """Whether a cell that `parse` gave up on may be Python all the same."""
    if len(source) > MAX_PARSED:
        return True
    try:
        ast.parse(source)
    except (RecursionError, MemoryError):
        return True
    except (SyntaxError, ValueError):
        return False
    return False


def used_names(tree: ast.AST) -> set[str]:
    """Names that are read anywhere in the tree (a few that are local to it among them)."""
    return {
        node.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    }


def bound_names(statement: ast.stmt) -> set[str]:
    """Names that a top-level statement defines."""
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return {statement.name}
    return {
        node.id
        for node in ast.walk(statement)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }


def _imports(tree: ast.Module) -> Iterator[tuple[str, ast.stmt]]:
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            for alias in node.names:
                yield (alias.asname or alias.name.partition(".")[0]), node


def asked_names(tree: ast.Module) -> set[str]:
    """Names that a cell uses and does not import itself."""
    own = ast.Module([n for n in tree.body if isinstance(n, (ast.Import, ast.ImportFrom))], [])
    return used_names(tree) - {name for name, _ in _imports(own)}


def cells_behind(names: set[str], cells: list[str]) -> list[str]:
    """Those of the course's code cells that import or define one of these names, or a name that
    such a cell uses in turn."""
    trees = {cell: tree for cell in cells if (tree := parse(cell)) is not None}
    made = {
        cell: {name for name, _ in _imports(tree)}.union(*map(bound_names, tree.body))
        for cell, tree in trees.items()
    }
    wanted, found = set(names), set[str]()
    while new := [cell for cell in trees if cell not in found and made[cell] & wanted]:
        found.update(new)
        wanted.update(*(used_names(trees[cell]) for cell in new))
    return [cell for cell in cells if cell in found]


def without_idle_marks(source: str) -> str:
    """The test cell without `mark(…)` lines whose value nobody sees, which are there for students.

    IPython shows the last expression only. The lines stay, empty, so that numbers are the same.
    """
    tree = plain(source)
    if tree is None:
        return source
    lines = source.split("\n")
    for statement in tree.body[:-1]:
        if _is_mark(statement) and statement.end_lineno is not None:
            for number in range(statement.lineno - 1, statement.end_lineno):
                lines[number] = ""
    return "\n".join(lines)


def _is_mark(statement: ast.stmt) -> bool:
    call = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(call, ast.Call) and getattr(call.func, "id", "") == "mark"


class CourseNames:
    """What the course's own code cells import and define.

    answers: names that the answer cells are there to define; they are always the student's.
    """

    def __init__(self, course_cells: list[str], answers: set[str]) -> None:
        self.answers = answers
        self.imports: dict[str, ast.stmt] = {}
        self.functions: dict[str, ast.stmt] = {}
        self.cells: dict[str, ast.Module] = {}
        for tree in filter(None, map(parse, course_cells)):
            self._read(tree)

    def _read(self, tree: ast.Module) -> None:
        self.imports.update(_imports(tree))
        for statement in tree.body:
            for name in bound_names(statement):
                if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
                    self.functions[name] = statement
                else:
                    self.cells[name] = tree

    def provide(self, names: set[str], namespace: dict[str, Any], student: Any) -> None:
        """Put every name into `namespace`, from the course or from the student."""
        for name in sorted(names):
            self._provide(name, namespace, student, frozenset())

    def _provide(
        self, name: str, namespace: dict[str, Any], student: Any, pending: frozenset
    ) -> None:
        if name in pending:
            return
        if name not in self.answers and self._from_course(name, namespace, student, pending):
            return
        if hasattr(builtins, name) and name not in self.answers:
            return
        if name in namespace.get("__course__", ()):
            return
        try:
            namespace[name] = student.look(name)
        except NameError:
            namespace.pop(name, None)

    def _from_course(
        self, name: str, namespace: dict[str, Any], student: Any, pending: frozenset
    ) -> bool:
        made = namespace.setdefault("__course__", set())
        if name in made:
            return True
        tree = self._definition(name)
        if tree is None:
            return False
        for used in sorted(used_names(tree) - {name}):
            self._provide(used, namespace, student, pending | {name})
        try:
            exec(compile(tree, "<course>", "exec"), namespace)
        except Exception:
            return False
        # Functions of the course look their names up when they are called: nothing to refresh.
        made.add(name)
        return name in namespace

    def _definition(self, name: str) -> ast.Module | None:
        for table in (self.imports, self.functions):
            if name in table:
                return ast.Module([table[name]], [])
        return self.cells.get(name)
