"""Run anyone's attention function and record what it did, tile by tile.

Two observers: a line tracer (`tracing.py`) sees the named values, a dispatch mode (`dispatch.py`)
sees the tensors.
"""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import dis
import linecache
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from types import CodeType, FunctionType
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils._python_dispatch import _disable_current_modes

from flashcourse.dispatch import TensorWatch
from flashcourse.records import Record, Tile
from flashcourse.running import code_of, failure_of, run
from flashcourse.tracing import VALUES, WHOLE, Pass, Tracer, traced

SKELETON = frozenset((*VALUES, *WHOLE))
# (name, the learner's values by the skeleton's names) → its right value, or None to leave it alone
Repair = Callable[[str, dict[str, Any]], Tensor | None]
MOST_BYTES = 64 * 1024 * 1024  # of recorded values


def _copy(value: Tensor) -> Tensor:
    """A copy, unseen by the watch; a class that only adds methods has no hand in it."""
    if type(value).__torch_dispatch__ is not Tensor.__torch_dispatch__:
        # Its numbers lie where only its own class finds them.
        with _disable_current_modes():
            return value.detach().clone()
    with torch._C.DisableTorchFunctionSubclass(), torch._C._DisableTorchDispatch():
        return Tensor.detach(value).clone()


class _Keeper:
    """Copies of values, until there are too many bytes of them."""

    def __init__(self) -> None:
        self.bytes = 0
        self.full = False

    def keep(self, value: Any) -> Tensor | None:
        if not isinstance(value, Tensor) or value.layout is not torch.strided:
            return None
        if torch._C._functorch.is_functorch_wrapped_tensor(value):
            return None  # of torch.vmap: it has no numbers outside of it
        self.bytes += value.numel() * value.element_size()
        if self.bytes > MOST_BYTES:
            self.full = True
            return None
        return _copy(value)

    @staticmethod
    def changes(value: Any) -> int:
        try:
            return value._version if isinstance(value, Tensor) else 0
        except RuntimeError:  # inference tensors do not count their changes
            return 0


@dataclass(frozen=True)
class Setting:
    """How to run: the block size, the time limit, what gives names their right values, whether
    exponentials are to come out wrong, and whether the tensors made are watched."""

    block_size: int | None
    seconds: float
    repair: Repair | None = None
    disturb: bool = False
    watch: bool = True


def record(
    function: Callable[..., Any],
    q: Tensor,
    k: Tensor | None,
    v: Tensor | None,
    block_size: int | None = 2,
    *,
    seconds: float = 10.0,
    extra: tuple[Tensor, ...] = (),
    repair: Repair | None = None,
    disturb: bool = False,
    watch: bool = True,
) -> Record:
    """Run function(q, k, v, *extra, block_size=block_size) on copies and record what it does.

    q: (rows, dim), k: (keys, dim), v: (keys, dim_v), on any device. Never raises because of what
    the function does: see `Record.error`. For a function that is no attention: a block_size of
    None is not handed over, nor are k and v that are None; such a record has neither tiles nor an
    output. seconds: after so long the run is ended ('too_slow').
    repair: repair(name, local) gives the right value of a name of `SKELETON`, or None. Lines that
    assign only names to be repaired are stepped over: what comes after them can be looked at.
    local: the values that the learner's code gave to these names so far, and i and j.
    disturb: every exponential comes out up to 2 times too large, by chance. If the output is the
    same as without, nothing in it comes of the exponentials that were recorded.
    watch: False leaves out what was seen of the tensors made, and takes a third of the time.
    A stand-in for a function of another process brings `__flashcourse_record__` and is asked there.
    """
    elsewhere = getattr(function, "__flashcourse_record__", None)
    if elsewhere is not None:
        more: dict[str, Any] = {"repair": repair} if repair else {}
        more |= {"disturb": True} if disturb else {}
        more |= {} if watch else {"watch": False}
        return elsewhere(q, k, v, block_size, seconds=seconds, extra=extra, **more)
    setting = Setting(block_size, seconds, repair, disturb, watch)
    given = tuple(t for t in (q, k, v, *extra) if t is not None)
    return _record_here(function, given, setting)


def _record_here(
    function: Callable[..., Any], given: tuple[Tensor, ...], setting: Setting
) -> Record:
    """given: q, k, v and what else the function takes.

    A stub line `raise NotImplementedError` left in place is stepped over.
    """
    made = _record_once(function, given, setting)
    error = made.error
    if error is None or error.type_name != "NotImplementedError" or error.line is None:
        return made
    finished = _without_stub(function, error.line)
    if finished is None:
        return made
    again = _record_once(finished, given, setting)
    return dataclasses.replace(again, error=again.error or error, stub_line=error.line)


def _unwatched(repair: Repair | None) -> Repair | None:
    """A repair that the watch does not see at work."""
    if repair is None:
        return None

    def repaired(name: str, local: dict[str, Any]) -> Tensor | None:
        with torch._C._DisableTorchDispatch():
            return repair(name, local)

    return repaired


def _record_once(
    function: Callable[..., Any], given: tuple[Tensor, ...], setting: Setting
) -> Record:
    copies = tuple(t.detach().clone() for t in given)
    keeper = _Keeper()
    block_size = setting.block_size
    named = {} if block_size is None else {"block_size": block_size}
    tracer = Tracer(keeper.keep, keeper.changes, _unwatched(setting.repair))
    watch = TensorWatch(tracer, setting.disturb)

    def observed(*args: Any, **kwargs: Any) -> Any:
        with watch if setting.watch else contextlib.nullcontext():
            return traced(tracer, function)(*args, **kwargs)

    done = run(observed, copies, named, setting.seconds)
    changed = zip("qkv", given[:3], copies[:3], strict=False)
    return Record(
        output=_first_tensor(done.value) if block_size else None,
        output_type=_type_name(done.value),
        tiles=_tiles(tracer.passes, block_size, copies) if block_size else (),
        tensors=watch.seen,
        largest_intermediate=watch.largest,
        largest_exp_argument=watch.largest_exponent,
        inputs_changed=tuple(n for n, old, new in changed if not _same(old, new)),
        warnings=done.warnings,
        error=failure_of(done.error, SKELETON) if done.error is not None else None,
        missing=tuple(name for name in (*WHOLE, *VALUES) if name not in tracer.seen),
        renamed=tracer.renamed,
        seconds=done.seconds,
        start=tracer.start,
        end=tracer.end,
        lines=tracer.lines,
        truncated=tracer.truncated or watch.truncated or keeper.full,
        reads_block_size=_reads(code_of(function), "block_size"),
    )


@lru_cache(maxsize=16)  # one function is recorded many times
def _reads(code: CodeType | None, name: str) -> bool:
    """Whether the code loads the variable and does not set it."""
    loaded = False
    for step in dis.get_instructions(code) if code is not None else ():
        # From Python 3.13 on, one instruction can be about two variables.
        if name == step.argval or (isinstance(step.argval, tuple) and name in step.argval):
            if step.opname.startswith("STORE"):
                return False
            loaded |= "LOAD" in step.opname
    return loaded


def _first_tensor(value: Any) -> Tensor | None:
    """The tensor in what was returned: itself, the first of a tuple, or that of a NumPy array."""
    if isinstance(value, tuple | list) and value:
        value = value[0]
    if isinstance(value, np.ndarray) and value.dtype.kind == "f":
        value = torch.from_numpy(value)
    return _copy(value) if _is_plain(value) else None


def _is_plain(value: Any) -> bool:
    dense = isinstance(value, Tensor) and value.layout is torch.strided
    return dense and not value.is_complex()


def _type_name(value: Any) -> str:
    if isinstance(value, Tensor):
        return "Tensor" if _is_plain(value) else "sparse or complex tensor"
    length = f" of {len(value)}" if isinstance(value, tuple | list) else ""
    return type(value).__name__ + length


def _same(a: Tensor, b: Tensor) -> bool:
    return a.shape == b.shape and bool(torch.equal(a.nan_to_num(), b.nan_to_num()))


def _tiles(passes: list[Pass], block_size: int, given: tuple[Tensor, ...]) -> tuple[Tile, ...]:
    """Passes as tiles; loop variables that count blocks (0, 1, …) become rows (0, block, …)."""
    most = [-(-len(tensor) // block_size) for tensor in given[:2]]
    i = _rows([p.i for p in passes], [p.row for p in passes], block_size, most[0])
    j = _rows([p.j for p in passes], [p.column for p in passes], block_size, most[1])
    return tuple(
        Tile(a, b, p.before, p.values, p.after, p.lines)
        for a, b, p in zip(i, j, passes, strict=True)
    )


def _rows(numbers: list[int | None], counted: list[int], block_size: int, most: int) -> list[int]:
    """most: so many blocks there are."""
    known = [n for n in numbers if n is not None]
    if len(known) < len(numbers):
        return [n * block_size for n in counted]
    different = sorted(set(known))
    blocks = 1 < len(different) <= most and different == list(range(len(different)))
    return [n * block_size for n in known] if blocks else known


# ---- the stub line ------------------------------------------------------------------------------


class _DropStub(ast.NodeTransformer):
    def __init__(self, line: int) -> None:
        self.line = line
        self.found = False

    def visit_Raise(self, node: ast.Raise) -> ast.AST:
        if node.lineno != self.line:
            return node
        self.found = True
        return ast.copy_location(ast.Pass(), node)


def _without_stub(function: Any, line: int) -> FunctionType | None:
    """The function without the `raise` that stands at `line`; None where that can't be made.

    The compiler drops all that follows an unconditional raise, so the source is compiled anew.
    """
    code = code_of(function)
    if not isinstance(function, FunctionType) or code is None or code.co_freevars:
        return None
    try:
        tree = ast.parse("".join(linecache.getlines(code.co_filename)))
    except (SyntaxError, ValueError):
        return None
    drop = _DropStub(line)
    tree = drop.visit(tree)
    if not drop.found:
        return None
    new = _find(compile(tree, code.co_filename, "exec"), code)
    if new is None:
        return None
    made = FunctionType(new, function.__globals__, function.__name__, function.__defaults__)
    made.__kwdefaults__ = function.__kwdefaults__
    return made


def _find(module: CodeType, like: CodeType) -> CodeType | None:
    """The code object inside a compiled file that stands where `like` stood."""
    for constant in module.co_consts:
        if isinstance(constant, CodeType):
            if constant.co_name == like.co_name and constant.co_firstlineno == like.co_firstlineno:
                return constant
            deeper = _find(constant, like)
            if deeper is not None:
                return deeper
    return None
