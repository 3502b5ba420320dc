"""What makes a human look: code in a submission that could make its record say what is not so.

`record` runs inside the student's process, so what it reports can be forged. The marks for results
rest on numbers that can't be; these checks read the syntax tree of the student's cells and list
what an honest answer has no use for. A doubt costs no points.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from flashcourse.grading.assemble import Plan, Planned
from flashcourse.grading.names import parse

# Modules that look into or change the running process.
_MODULES = {
    "ctypes": "reaches into memory",
    "gc": "looks for objects of the grader's",
    "inspect": "reads other code's frames or source",
    "sys": "can change modules, tracing or output",
    "os": "reaches the operating system",
    "subprocess": "starts other programs",
    "multiprocessing": "starts other processes",
    "threading": "can change things later, beside the tests",
    "signal": "can outlive a time limit",
    "socket": "opens connections",
    "importlib": "imports by other ways",
    "builtins": "can change Python itself",
    "pickle": "runs code out of data",
    "atexit": "runs code at the end",
    "mmap": "reaches into memory",
    "faulthandler": "writes outside its output",
    "unittest": "can replace parts of a module",
    "types": "makes code objects",
}
_CALLS = {
    "scaled_dot_product_attention": "calls PyTorch's finished attention",
    "softmax": "calls softmax on whole rows",
    "log_softmax": "calls softmax on whole rows",
    "MultiheadAttention": "calls PyTorch's finished attention",
    "exact_attention": "calls the course's own exact attention",
    "settrace": "changes what the recorder sees",
    "setprofile": "changes what the recorder sees",
    "_getframe": "looks into other frames",
    "exec": "runs text as code",
    "eval": "runs text as code",
    "__import__": "imports by other ways",
    "globals": "reaches names by text",
    "setattr": "changes things by name",
    "getattr": "reaches things by name",
    "vars": "reaches names by text",
    "locals": "reaches names by text",
    "compile": "runs text as code",
    "open": "reads or writes files",
    "modules": "reaches other modules",
    "f_back": "looks into other frames",
    "tb_frame": "looks into other frames",
    "__traceback__": "looks into other frames",
    "__dict__": "reaches things by name",
    "__builtins__": "reaches Python itself",
    "__subclasses__": "looks for classes of the grader's",
    "get_ipython": "reaches the shell that runs the cells",
    "record_here": "calls the recorder itself",
    "as_subclass": "returns a tensor that is not what it seems",
    "__torch_dispatch__": "changes what the recorder sees",
    "__torch_function__": "changes what the recorder sees",
}
_OURS = ("torch", "flashcourse", "numpy", "IPython", "math")


def doubts_of(plan: Plan) -> tuple[str, ...]:
    """Reasons to look at a submission, each with the cell, the line and the code's effect."""
    found: dict[str, None] = {}
    for cell in plan.cells:
        if cell.role == "own" or (cell.role == "answer" and cell.changed):
            for reason in _of_cell(cell):
                found[reason] = None
    return tuple(found)[:50]


def _of_cell(cell: Planned) -> Iterator[str]:
    name = cell.course.grade_id if cell.course is not None else "own cell"
    tree = parse(cell.source)
    if tree is None:
        return
    given = identifiers(parse(cell.course.shown)) if cell.course is not None else set()
    for node in ast.walk(tree):
        for line, what, why in _of_node(node):
            if what not in given:
                yield f"{name}, line {line}: `{what}` {why}"


def _of_node(node: ast.AST) -> Iterator[tuple[int, str, str]]:
    if isinstance(node, ast.Import):
        for alias in node.names:
            yield from _of_module(node.lineno, alias.name)
    elif isinstance(node, ast.ImportFrom):
        yield from _of_module(node.lineno, node.module or "")
        for alias in node.names:
            if alias.name in _CALLS:
                yield node.lineno, alias.name, _CALLS[alias.name]
    elif isinstance(node, (ast.Attribute, ast.Name)):
        yield from _of_name(node)
    elif isinstance(node, ast.FunctionDef) and node.name in _CALLS:
        yield node.lineno, node.name, _CALLS[node.name]


def _of_module(line: int, module: str) -> Iterator[tuple[int, str, str]]:
    top = module.partition(".")[0]
    if top in _MODULES:
        yield line, module, _MODULES[top]
    if module.startswith("flashcourse.") and top != module:
        yield line, module, "uses the course's own tools inside an answer"


def _of_name(node: ast.Attribute | ast.Name) -> Iterator[tuple[int, str, str]]:
    name = node.attr if isinstance(node, ast.Attribute) else node.id
    stored = isinstance(node.ctx, (ast.Store, ast.Del))
    if isinstance(node, ast.Attribute) and stored:
        root: ast.expr = node
        while isinstance(root, ast.Attribute):
            root = root.value
        if isinstance(root, ast.Name) and root.id in _OURS:
            yield node.lineno, ast.unparse(node), "changes a module that others use"
            return
    if name in _CALLS and not stored:
        yield node.lineno, name, _CALLS[name]
    elif name.startswith("__flashcourse") or name in ("__code__", "__globals__", "f_locals"):
        yield node.lineno, name, "reaches what is not meant for answers"


def identifiers(tree: ast.Module | None) -> set[str]:
    """Names that the released cell itself uses: nobody is doubted for what they were given."""
    if tree is None:
        return set()
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    names |= {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    return names
