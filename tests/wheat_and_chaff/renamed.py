"""The wheat and the chaff with other names for each local variable, as strangers would write it."""

from __future__ import annotations

import ast
import inspect
import linecache
import textwrap
from collections.abc import Callable
from typing import Any

from wheat_and_chaff import wheat

# Nobody has seen these before.
PLAUSIBLE = {
    "seq_len": "n_rows", "dim": "width", "scale": "factor", "i": "row", "j": "col",
    "out": "context", "m": "peaks", "l": "totals",
    "q_block": "queries", "k_block": "keys", "v_block": "values",
    "S_ij": "similarity", "m_block": "tile_peak", "m_new": "next_peak", "P_ij": "attention",
    "l_block": "tile_total", "l_new": "next_total",
    "m_i": "peak", "l_i": "total", "out_i": "context_rows",
}  # fmt: skip
# These stand in public implementations, and the checker knows them.
USUAL = {
    "out": "O", "m": "M", "l": "L",
    "S_ij": "scores", "m_block": "m_tilde", "m_new": "new_max", "P_ij": "p",
    "l_block": "block_sum", "l_new": "new_sum",
    "m_i": "running_max", "l_i": "denom", "out_i": "acc",
}  # fmt: skip
# Names that the checker knows, for other things than they mean elsewhere.
MISLEADING = {
    "out": "result", "m": "highest", "l": "sums",
    "S_ij": "raw", "m_block": "top", "m_new": "row_max", "P_ij": "scores",
    "l_block": "part", "l_new": "row_sum",
    "m_i": "max_block", "l_i": "weights", "out_i": "lines",
}  # fmt: skip
LETTERS = "abcdefghijklmnpqrstuvwxyz"


def names_of(style: str, locals_: list[str]) -> dict[str, str]:
    """The new name of each local variable. meaningless: a0, b1, c2 and so on."""
    if style == "meaningless":
        return {x: f"{LETTERS[n % len(LETTERS)]}{n}" for n, x in enumerate(locals_)}
    names = {"plausible": PLAUSIBLE, "usual": USUAL, "misleading": MISLEADING}[style]
    return {x: names.get(x, x) for x in locals_}


class _Locals(ast.NodeVisitor):
    """Every name that a function or a function inside it assigns, but for its own parameters."""

    def __init__(self) -> None:
        self.names: dict[str, None] = {}
        self.depth = 0

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Store):
            self.names[node.id] = None

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        if self.depth:
            self.names[node.name] = None
        self.depth += 1
        self.generic_visit(node)

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self.depth += 1
        self.generic_visit(node)

    def visit_arg(self, node: ast.arg) -> None:
        if self.depth > 1:
            self.names[node.arg] = None


class _Renamed(ast.NodeTransformer):
    def __init__(self, names: dict[str, str]) -> None:
        self.names = names

    def visit_Name(self, node: ast.Name) -> ast.Name:
        node.id = self.names.get(node.id, node.id)
        return node

    def visit_arg(self, node: ast.arg) -> ast.arg:
        node.arg = self.names.get(node.arg, node.arg)
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        node.name = self.names.get(node.name, node.name)
        self.generic_visit(node)
        return node


def renamed(source: str, style: str) -> str:
    tree = ast.parse(source)
    found = _Locals()
    found.visit(next(node for node in tree.body if isinstance(node, ast.FunctionDef)))
    own = inspect.signature(wheat.wheat_skeleton).parameters
    names = names_of(style, [name for name in found.names if name not in own])
    return ast.unparse(_Renamed(names).visit(tree))


def _compiled(source: str, file: str, name: str, namespace: dict[str, Any]) -> Callable[..., Any]:
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    exec(compile(source, file, "exec"), namespace)
    return namespace[name]


def wheat_in(style: str, name: str) -> Callable[..., Any]:
    source = textwrap.dedent(inspect.getsource(wheat.WHEAT[name]))
    return _compiled(renamed(source, style), f"<{style} {name}>", name, dict(vars(wheat)))


def answer_in(style: str, name: str, source: str) -> Callable[..., Any]:
    """A wrong answer. own: with the names that it has."""
    source = source if style == "own" else renamed(source, style)
    return _compiled(source, f"<{style} names: {name}>", "flash_attention_forward_sim", {})
