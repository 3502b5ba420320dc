"""For every lesson's checks: call the learner's function safely, make Marks from parts."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from flashcourse.checks.marks import Finding, Marks
from flashcourse.running import Failure, failure_of, run
from flashcourse.words import Text

__all__ = ["Failure", "Outcome", "Part", "call", "finding_of", "judge", "tensor_problem"]

# From the one that says most about the answer to the one that says least.
_SERIOUS = ("too_slow", "crashed", "unfinished", "wrong")


@dataclass(frozen=True)
class Outcome:
    """What came of one call.

    value: what was returned (None after a failure). error: None if the function came back.
    seconds: wall time. warnings: each message once. inputs_changed: names of the arguments that
    the function wrote to.
    """

    value: Any
    error: Failure | None
    seconds: float
    warnings: tuple[str, ...] = ()
    inputs_changed: tuple[str, ...] = ()


def _copy(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.detach().clone()
    if isinstance(value, np.ndarray):
        return value.copy()
    if isinstance(value, list | tuple):
        return type(value)(_copy(item) for item in value)
    return {key: _copy(item) for key, item in value.items()} if isinstance(value, dict) else value


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, Tensor):
        same_kind = isinstance(b, Tensor) and a.shape == b.shape and a.dtype == b.dtype
        return same_kind and bool(torch.equal(torch.nan_to_num(a), torch.nan_to_num(b)))
    if isinstance(a, np.ndarray):
        return bool(np.array_equal(a, b, equal_nan=a.dtype.kind in "fc"))
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(_same(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(_same(a[key], b[key]) for key in a)
    return True


def _argument_names(function: Any, count: int) -> list[str]:
    try:
        names = list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        names = []
    return [names[n] if n < len(names) else f"argument {n + 1}" for n in range(count)]


def call(
    function: Callable[..., Any],
    *args: Any,
    seconds: float = 5.0,
    skeleton: Collection[str] = (),
    **kwargs: Any,
) -> Outcome:
    """Call the learner's function on copies of the arguments. Never raises for what it does.

    What it prints is dropped, its warnings are kept, and after `seconds` it is ended.
    skeleton: names that the exercise's code gives; a NameError of one of them is 'unfinished'.
    A function that returns None or `...` is 'unfinished' too. `torch.empty` comes filled with NaN.
    """
    if not callable(function):
        missing = f"{type(function).__name__} is not a function"
        return Outcome(None, Failure("unfinished", type(function).__name__, missing), 0.0)
    given, named = _copy(args), _copy(kwargs)
    done = run(function, given, named, seconds)
    names = [*_argument_names(function, len(args)), *kwargs]
    before, after = [*args, *kwargs.values()], [*given, *named.values()]
    pairs = zip(names, before, after, strict=True)
    changed = tuple(name for name, old, new in pairs if not _same(old, new))
    error = failure_of(done.error, skeleton) if done.error is not None else None
    if error is None and (done.value is None or done.value is ...):
        error = Failure("unfinished", "None", f"returned {done.value!r}")
    return Outcome(done.value, error, done.seconds, done.warnings, changed)


# ---- findings -----------------------------------------------------------------------------------


def finding_of(failure: Failure, todo: int | None = None) -> Finding:
    """The Finding that says what a Failure means."""
    place = Text(*_place(failure))
    if failure.kind == "too_slow":
        text = Text(
            f"Your code was stopped because it took too long{place.en}. Does a loop never end?",
            f"你的代码运行太久，已被停止{place.zh}。是不是有循环停不下来？",
        )
    elif failure.kind == "unfinished":
        text = _unfinished(failure, place)
    else:
        text = Text(
            f"Your code raised {failure.type_name}{place.en}: {failure.message or 'no message'}",
            f"你的代码抛出了 {failure.type_name}{place.zh}：{failure.message or '（无说明）'}",
        )
    return Finding(text, todo=todo, line=failure.line)


def _place(failure: Failure) -> tuple[str, str]:
    if failure.line is None:
        return "", ""
    line, code = failure.line, failure.source_line
    if not code:
        return f" (line {line})", f"（第 {line} 行）"
    return f" (line {line}: `{code}`)", f"（第 {line} 行：`{code}`）"


def _unfinished(failure: Failure, place: Text) -> Text:
    if failure.type_name == "None":
        return Text(
            "Your function returned nothing. End it with `return` and the result.",
            "函数没有返回结果。请在末尾用 `return` 返回它。",
        )
    if failure.type_name in ("NameError", "UnboundLocalError"):
        name = next(iter(re.findall(r"'(\w+)'", failure.message)), "?")
        return Text(
            f"Not finished yet: `{name}` has no value{place.en}. Is the TODO above that sets it "
            "still empty, or is the name misspelt there?",
            f"还没写完：`{name}` 还没有值{place.zh}。前面给它赋值的 TODO 还空着，还是名字写错了？",
        )
    return Text(
        f"Not finished yet{place.en}. Fill in the TODO, then delete the line that raises.",
        f"还没写完{place.zh}。补全 TODO 之后，请删掉抛出异常的那一行。",
    )


def _shape(shape: Iterable[int]) -> str:
    return "(" + ", ".join(map(str, shape)) + ")"


def _type_problem(value: Any) -> Text | None:
    if isinstance(value, Tensor):
        return None
    if value is None or value is ...:
        return Text(
            "You returned `None`. End the function with `return` and the tensor.",
            "返回值是 `None`。请在函数末尾 `return` 那个张量。",
        )
    kind = type(value).__name__
    if isinstance(value, tuple | list):
        return Text(
            f"You returned a {kind} of {len(value)} things. Return one tensor only.",
            f"返回值是含 {len(value)} 项的 {kind}。只需返回一个张量。",
        )
    if isinstance(value, np.ndarray):
        return Text(
            "You returned a NumPy array. Stay with `torch.Tensor` all the way.",
            "返回值是 NumPy 数组。请始终使用 `torch.Tensor`。",
        )
    return Text(f"You returned a {kind}, not a tensor.", f"返回值的类型是 {kind}，不是张量。")


def tensor_problem(
    value: Any,
    shape: Iterable[int] | None = None,
    dtype: torch.dtype | None = None,
    *,
    finite: bool = True,
    todo: int | None = None,
) -> Finding | None:
    """What is wrong with a value before its numbers are looked at, or None.

    In this order: not a tensor (None, tuple, NumPy array, …), another shape, another dtype, NaN or
    infinity (unless finite=False).
    """
    text = _type_problem(value) or _form_problem(value, shape, dtype)
    if text is None and finite and value.is_floating_point():
        text = _number_problem(value)
    return None if text is None else Finding(text, todo=todo)


def _form_problem(
    value: Tensor, shape: Iterable[int] | None, dtype: torch.dtype | None
) -> Text | None:
    if shape is not None and tuple(value.shape) != tuple(shape):
        got, want = _shape(value.shape), _shape(shape)
        return Text(
            f"The result has shape {got}. It should be {want}.",
            f"结果的形状是 {got}，应为 {want}。",
        )
    if dtype is not None and value.dtype != dtype:
        got, want = str(value.dtype), str(dtype)
        return Text(
            f"The result is {got}. The input is {want}, and the result should be too.",
            f"结果的类型是 {got}。输入是 {want}，结果也应如此。",
        )
    return None


def _number_problem(value: Tensor) -> Text | None:
    bad = ~torch.isfinite(value)
    if not bool(bad.any()):
        return None
    count, where = int(bad.sum()), _shape(bad.nonzero()[0].tolist())
    what = "NaN" if bool(value.isnan().any()) else "inf"
    return Text(
        f"The result has {count} {what} values of {value.numel()}. The first is at {where}.",
        f"结果的 {value.numel()} 个数里有 {count} 个 {what}，第一个在 {where}。",
    )


# ---- from parts to Marks ------------------------------------------------------------------------


@dataclass(frozen=True)
class Part:
    """One thing that an exercise asks for: its points, and what to say when it holds or fails.

    passed: the sentence when it holds. finding: None if it holds. status: of the whole answer if
    this part fails: 'wrong', or the kind of the Failure behind it.
    """

    points: float
    passed: Text
    finding: Finding | None = None
    status: str = "wrong"

    @staticmethod
    def failed(points: float, passed: Text, failure: Failure, todo: int | None = None) -> Part:
        """The part that could not be looked at because the function failed."""
        return Part(points, passed, finding_of(failure, todo), failure.kind)


def judge(exercise: str, parts: Iterable[Part]) -> Marks:
    """Marks from weighted parts: the sum of those that hold. The same finding is said once."""
    parts = tuple(parts)
    failed = [part for part in parts if part.finding is not None]
    statuses = {part.status for part in failed}
    return Marks(
        exercise=exercise,
        points=sum(part.points for part in parts if part.finding is None),
        max_points=sum(part.points for part in parts),
        status=next((status for status in _SERIOUS if status in statuses), "right"),
        findings=tuple(dict.fromkeys(p.finding for p in failed if p.finding is not None)),
        passed=tuple(part.passed for part in parts if part.finding is None),
    )
