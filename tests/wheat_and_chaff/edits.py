"""Every small slip in the lines of TODO 3 to 6: another variable or operator, a term left out.

Nobody chose these by what the checker knows, so they try it on mistakes that no table has.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from dataclasses import dataclass

from wheat_and_chaff.chaff import DEFERRED, SKELETON

TODO_OF = {
    "m_block": 3, "m_new": 3, "P_ij": 4, "l_block": 5, "l_new": 5, "out_i": 6, "m_i": 6, "l_i": 6,
}  # fmt: skip
VARIABLES = ("m_i", "m_block", "m_new", "l_i", "l_block", "l_new", "out_i")
OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.Div)


@dataclass(frozen=True)
class Edit:
    """todo: whose line was edited. line: as it reads now."""

    todo: int
    line: str
    source: str


def _slips(node: ast.AST) -> Iterator[ast.expr]:
    """What may stand in a node's place by a slip."""
    if isinstance(node, ast.Name) and node.id in {*VARIABLES, "P_ij", "S_ij"}:
        yield from (ast.Name(name, ast.Load()) for name in VARIABLES if name != node.id)
    elif isinstance(node, ast.BinOp):
        yield from (node.left, node.right)
        if not isinstance(node.op, ast.MatMult):
            others = (kind for kind in OPERATORS if not isinstance(node.op, kind))
            yield from (ast.BinOp(node.left, kind(), node.right) for kind in others)
    elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "exp":
        yield node.args[0]


class _Put(ast.NodeTransformer):
    """Put `new` where `old` is, the very node."""

    def __init__(self, old: ast.AST, new: ast.expr) -> None:
        self.old, self.new = old, new

    def visit(self, node: ast.AST) -> ast.AST:
        return copy.deepcopy(self.new) if node is self.old else self.generic_visit(node)


def _edits(source: str) -> Iterator[Edit]:
    tree = ast.parse(source)
    for line in ast.walk(tree):
        if not isinstance(line, ast.Assign) or not isinstance(line.targets[0], ast.Name):
            continue
        todo, right = TODO_OF.get(line.targets[0].id), line.value
        if todo is None or isinstance(right, ast.Subscript):  # how the skeleton cuts m_i from m
            continue
        for old in list(ast.walk(right)):
            for new in _slips(old):
                line.value = _put(right, old, new)
                yield Edit(todo, ast.unparse(line), ast.unparse(tree))
        line.value = right


def _put(expression: ast.expr, old: ast.AST, new: ast.expr) -> ast.expr:
    """A copy of the expression with `new` for `old`."""
    memo: dict[int, ast.AST] = {}
    twin = copy.deepcopy(expression, memo)
    return _Put(memo[id(old)], new).visit(twin)


def _deferred() -> str:
    source = SKELETON
    for old, new in DEFERRED:
        source = source.replace(old, new)
    return source


EDITS = tuple({e.source: e for s in (SKELETON, _deferred()) for e in _edits(s)}.values())
