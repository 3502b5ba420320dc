"""What makes a human look: code in a submission that could make its record say what is not so.

`record` runs inside the student's process, so what it reports can be forged. The marks for results
rest on numbers that can't be; these checks read the syntax tree of the student's cells and list
what an honest answer has no use for. A doubt costs no points.

Answers are read strictly, and so are cells of the student's own whose names an answer uses. In
their other cells people try things out: there only what can change the process is a doubt.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from flashcourse.grading.assemble import Plan, Planned
from flashcourse.grading.course import CourseCell
from flashcourse.grading.names import bound_names, is_unread, parse, used_names
from flashcourse.grading.outcome import in_both
from flashcourse.grading.suspects import (
    AMBIGUOUS,
    CALLS,
    CHANGES,
    DISGUISE,
    ELSEWHERE,
    FINISHED,
    FINISHED_PARTS,
    HANDED_ON,
    HARMLESS,
    IDLE_COMMAND,
    IDLE_MAGICS,
    LEAVES,
    LIKE_EXP,
    MODULES,
    NUMPY_NUMBERS,
    OURS,
    OWN_CELL,
    POSES,
    POSING_BASES,
    PRIVATE,
    SHOWING,
    SOFTMAX,
    TIMING_MAGICS,
    TO_COMPARE_WITH,
    TO_TRY,
    TOOLS,
    TORCH,
    UNKNOWN,
    UNREAD,
    USUAL_DUNDERS,
)
from flashcourse.words import Text


@dataclass(frozen=True)
class _Reading:
    """How to read one cell. given: names that its released text uses.

    strict: as an answer. attention: it is asked for attention tile by tile. tools: names of the
    course's own tools. numpy: what NumPy is called. modules: what any module is called. bound:
    names that the cell itself binds.
    """

    given: frozenset[str] = frozenset()
    strict: bool = False
    attention: bool = False
    tools: frozenset[str] = frozenset()
    numpy: frozenset[str] = frozenset()
    modules: frozenset[str] = frozenset()
    bound: frozenset[str] = frozenset()


def doubts_of(plan: Plan) -> tuple[Text, ...]:
    """Reasons to look at a submission, each with the cell, the line and the code's effect."""
    found: dict[Text, None] = {}
    read = [c for c in plan.cells if c.role == "own" or (c.role == "answer" and c.changed)]
    trees = {id(cell): parse(cell.source) for cell in read}
    strict = _strictly_read(read, trees)
    given = [_imports_of_course(c.source) for c in plan.cells if c.role == "code"]
    tools = frozenset().union(*(imports.tools for imports in given))
    imported = [*given, *(_imports(tree) for tree in trees.values() if tree)]
    numpy = frozenset().union(*(imports.numpy for imports in imported))
    modules = frozenset(OURS).union(*(imports.modules for imports in imported))
    attention = any(c.role == "answer" and asks_for_tiles(c.course) for c in plan.cells)
    for cell in read:
        tree = trees[id(cell)]
        reading = _Reading(
            given=identifiers(cell.course.shown) if cell.course is not None else frozenset(),
            strict=id(cell) in strict,
            attention=asks_for_tiles(cell.course) if cell.course is not None else attention,
            tools=tools,
            numpy=numpy,
            modules=modules,
            bound=_bound(tree) if tree is not None else frozenset(),
        )
        for reason in _of_cell(cell, tree, reading):
            found[reason] = None
    return tuple(found)[:50]


def asks_for_tiles(course: CourseCell | None) -> bool:
    """Whether an answer cell was handed out with a function of q, k, v and a block size to fill."""
    arguments = _arguments(course.shown).values() if course is not None else ()
    return any(
        names[:3] == ["q", "k", "v"] and any(name.startswith("block_") for name in names)
        for names in arguments
    )


def tile_functions(source: str) -> tuple[str, ...]:
    """The functions in a released cell that take q, k, v and block_size, and no more tensors."""
    wanted = ["q", "k", "v", "block_size"]
    return tuple(name for name, names in _arguments(source).items() if names[:4] == wanted)


@lru_cache(maxsize=256)
def _arguments(source: str) -> dict[str, list[str]]:
    """Of each function in a released cell, by name: what it takes."""
    tree = parse(source)
    functions = (n for n in (tree.body if tree else []) if isinstance(n, ast.FunctionDef))
    return {f.name: [argument.arg for argument in f.args.args] for f in functions}


def _strictly_read(cells: list[Planned], trees: dict[int, ast.Module | None]) -> set[int]:
    """Answers, and the student's own cells that define what an answer uses (or is)."""
    wanted: set[str] = set()
    strict: set[int] = set()
    for cell in cells:
        if cell.role == "answer" and cell.course is not None:
            strict.add(id(cell))
            wanted |= set(cell.course.defines) | _read_names(trees[id(cell)])
    found = True
    while found:
        found = False
        for cell in cells:
            tree = trees[id(cell)]
            if tree is None or id(cell) in strict or not _defined(tree) & wanted:
                continue
            strict.add(id(cell))
            wanted |= _read_names(tree)
            found = True
    return strict


def _read_names(tree: ast.Module | None) -> set[str]:
    return used_names(tree) if tree is not None else set()


def _defined(tree: ast.Module) -> set[str]:
    """What a cell defines or assigns at its top level; an import is no helper of an answer's."""
    imports = (ast.Import, ast.ImportFrom)
    return set().union(*(bound_names(s) for s in tree.body if not isinstance(s, imports)))


def _bound(tree: ast.Module) -> frozenset[str]:
    """Names that a cell binds anywhere: as a variable, an argument or an import."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and not _is_read(node):
            names.add(node.id)
        elif isinstance(node, ast.arg):
            names.add(node.arg)
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names |= {alias.asname or alias.name for alias in node.names}
    return frozenset(names)


def _is_read(name: ast.Name) -> bool:
    return isinstance(name.ctx, ast.Load)


@dataclass(frozen=True)
class _Imports:
    """What a cell imports. tools: names out of the course's package. numpy: what it calls NumPy.
    modules: what it calls any module."""

    tools: frozenset[str] = frozenset()
    numpy: frozenset[str] = frozenset()
    modules: frozenset[str] = frozenset()


def _imports(tree: ast.Module) -> _Imports:
    tools: set[str] = set()
    called: list[tuple[str, str]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "flashcourse":
            tools |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.Import):
            called += [(a.name, a.asname or a.name.partition(".")[0]) for a in node.names]
    numpy = frozenset(name for module, name in called if module == "numpy")
    return _Imports(frozenset(tools), numpy, frozenset(name for _, name in called))


@lru_cache(maxsize=256)
def _imports_of_course(source: str) -> _Imports:
    tree = parse(source)
    return _imports(tree) if tree is not None else _Imports()


def _of_cell(cell: Planned, tree: ast.Module | None, reading: _Reading) -> Iterator[Text]:
    name = in_both(cell.course.grade_id) if cell.course is not None else OWN_CELL
    if tree is None:
        if is_unread(cell.source):
            yield Text(f"{name.en} {UNREAD.en}", f"{name.zh}{UNREAD.zh}")
        return
    for line, what, why in _of_tree(tree, reading):
        if what not in reading.given:
            yield Text(
                f"{name.en}, line {line}: `{what}` {why.en}",
                f"{name.zh}，第 {line} 行：`{what}` {why.zh}",
            )


def _of_tree(
    tree: ast.Module, reading: _Reading, depth: int = 0
) -> Iterator[tuple[int, str, Text]]:
    idle: set[int] = set()  # parts of magics that do no harm
    dotted: set[int] = set()  # names before a dot, or only shown
    for node in ast.walk(tree):
        inner = _of_magic(node) if isinstance(node, ast.Call) and depth < 3 else None
        if inner is not None and isinstance(node, ast.Call):
            idle |= {id(part) for part in ast.walk(node.func)}
            yield from _of_tree(parse(inner) or ast.Module([], []), reading, depth + 1)
        if id(node) in idle:
            continue
        if isinstance(node, ast.Attribute):
            dotted.add(id(node.value))
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") in SHOWING:
            dotted |= {id(part) for part in node.args}
        elif _is_module(node, reading) and id(node) not in dotted:
            yield node.lineno, node.id, HANDED_ON  # type: ignore[attr-defined]
        yield from _of_node(node, reading)


def _is_module(node: ast.AST, reading: _Reading) -> bool:
    return isinstance(node, ast.Name) and _is_read(node) and node.id in reading.modules


def _of_magic(call: ast.Call) -> str | None:
    """The code inside a call of a magic that does no harm ('' if none); None for other calls.

    IPython turns `%timeit f(x)` into `get_ipython().run_line_magic('timeit', 'f(x)')`.
    """
    function = call.func
    if not (isinstance(function, ast.Attribute) and isinstance(function.value, ast.Call)):
        return None
    shell = function.value.func
    if not (isinstance(shell, ast.Name) and shell.id == "get_ipython"):
        return None
    words = [a.value for a in call.args if isinstance(a, ast.Constant) and type(a.value) is str]
    if len(words) != len(call.args) or not words:
        return None
    if function.attr in ("system", "getoutput"):
        return "" if IDLE_COMMAND.fullmatch(words[0].strip()) else None
    if function.attr not in ("run_line_magic", "run_cell_magic"):
        return None
    if words[0] in TIMING_MAGICS:
        code = "\n".join(words[1:])
        return None if code.lstrip().startswith("-") else code
    return "" if words[0] in IDLE_MAGICS else None


def _of_node(node: ast.AST, reading: _Reading) -> Iterator[tuple[int, str, Text]]:
    if isinstance(node, ast.Import):
        for alias in node.names:
            yield from _of_module(node.lineno, alias.name, reading)
    elif isinstance(node, ast.ImportFrom):
        yield from _of_module(node.lineno, node.module or "", reading)
        for alias in node.names:
            yield from _of_attribute(node.lineno, alias.name, reading)
    elif isinstance(node, (ast.Attribute, ast.Name)):
        yield from _of_name(node, reading)
    elif isinstance(node, ast.MatchClass):  # `case object(_C=c)` reads attributes too
        for name in node.kwd_attrs:
            yield from _of_attribute(node.lineno, name, reading)
    elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        yield from _of_definition(node)


def _of_definition(node: ast.FunctionDef | ast.ClassDef) -> Iterator[tuple[int, str, Text]]:
    if node.name in CALLS:
        yield node.lineno, node.name, CALLS[node.name]
    for base in node.bases if isinstance(node, ast.ClassDef) else []:
        name = base.attr if isinstance(base, ast.Attribute) else getattr(base, "id", "")
        if name in POSING_BASES:
            yield node.lineno, node.name, POSES


def _of_module(line: int, module: str, reading: _Reading) -> Iterator[tuple[int, str, Text]]:
    top, *parts = module.split(".")
    known = HARMLESS if reading.strict else HARMLESS | TO_TRY
    if top in MODULES:
        yield line, module, MODULES[top]
    elif any(part.startswith("_") for part in parts) or (top == "torch" and module not in TORCH):
        yield line, module, PRIVATE
    elif top == "flashcourse" and (parts or reading.strict):
        yield line, module, TOOLS
    elif top not in known and top:
        yield line, module, UNKNOWN


def _of_name(node: ast.Attribute | ast.Name, reading: _Reading) -> Iterator[tuple[int, str, Text]]:
    stored = isinstance(node.ctx, (ast.Store, ast.Del))
    if isinstance(node, ast.Name):
        if not stored:
            yield from _of_variable(node.lineno, node.id, reading)
        return
    root, depth = node.value, 0
    while isinstance(root, ast.Attribute) and depth < 20:
        root, depth = root.value, depth + 1
    name = root.id if isinstance(root, ast.Name) else ""
    if stored and name in reading.modules:
        dots = "." if node.value is root else ".…."
        yield node.lineno, f"{name}{dots}{node.attr}", CHANGES
    elif name in reading.numpy and reading.attention and reading.strict:
        if node.value is root and node.attr not in NUMPY_NUMBERS:
            yield node.lineno, f"{name}.{node.attr}", LEAVES
    elif not (stored or (name in ("self", "cls") and not node.attr.startswith("__"))):
        yield from _of_attribute(node.lineno, node.attr, reading)


def _of_variable(line: int, name: str, reading: _Reading) -> Iterator[tuple[int, str, Text]]:
    if name in CALLS:
        yield from _of_call(line, name, reading)
    elif name in MODULES and name not in reading.bound | AMBIGUOUS:
        yield line, name, MODULES[name]
    elif reading.strict and name in (reading.tools | {"flashcourse"}) - reading.bound:
        yield line, name, TOOLS
    elif _is_private(name) and name.startswith("__"):
        yield line, name, PRIVATE


def _of_attribute(line: int, name: str, reading: _Reading) -> Iterator[tuple[int, str, Text]]:
    """A name that is reached in something else: by a dot, an import or a pattern."""
    low = name.lower()
    if name in CALLS:
        yield from _of_call(line, name, reading)
    elif name in MODULES and name not in AMBIGUOUS:
        yield line, name, MODULES[name]
    elif _is_private(name):
        yield line, name, PRIVATE
    elif reading.strict and any(part in low for part in FINISHED_PARTS):
        yield line, name, FINISHED
    elif reading.strict and "softmax" in low:
        yield line, name, SOFTMAX
    elif reading.strict and reading.attention and name in ELSEWHERE:
        yield line, name, LEAVES
    elif reading.strict and reading.attention and name in LIKE_EXP:
        yield line, name, DISGUISE


def _of_call(line: int, name: str, reading: _Reading) -> Iterator[tuple[int, str, Text]]:
    """Whoever only tries things out may well compare with what PyTorch and the course have."""
    if reading.strict or name not in TO_COMPARE_WITH:
        yield line, name, CALLS[name]


def _is_private(name: str) -> bool:
    if name.startswith("__flashcourse") or name in ("__code__", "__globals__", "f_locals"):
        return True
    return name.startswith("_") and name.strip("_") != "" and name not in USUAL_DUNDERS


@lru_cache(maxsize=256)
def identifiers(source: str) -> frozenset[str]:
    """Names that a released cell itself uses: nobody is doubted for what they were given."""
    tree = parse(source)
    if tree is None:
        return frozenset()
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            names.add(node.id)
        elif isinstance(node, ast.Attribute):
            names.add(node.attr)
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    return frozenset(names)
