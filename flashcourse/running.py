"""Run a function that somebody else wrote: with a time limit, silently, and never raising.

What it did wrong comes back as a `Failure`, which names the line in the learner's own code.
"""

from __future__ import annotations

import contextlib
import ctypes
import io
import linecache
import os
import re
import signal
import sys
import sysconfig
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from types import CodeType, FrameType
from typing import Any

import torch

MESSAGE_LENGTH = 300  # characters of an error message that are kept
KINDS = ("unfinished", "crashed", "too_slow")


@dataclass(frozen=True)
class Failure:
    """Why a learner's function did not come back with a value.

    kind: 'unfinished', 'crashed' or 'too_slow'. type_name: the exception's class ('TypeError').
    line: line number in the learner's cell (or file), None if no line of theirs was running.
    source_line: that line's text, stripped, None where there is no source.
    """

    kind: str
    type_name: str
    message: str
    line: int | None = None
    source_line: str | None = None


class TimeLimitReached(BaseException):
    """Raised inside a learner's function when its time is up. No `except Exception` catches it."""


# ---- the learner's own code ---------------------------------------------------------------------


@lru_cache(maxsize=1)
def _library_folders() -> tuple[str, ...]:
    folders = {sysconfig.get_paths()[name] for name in ("stdlib", "purelib", "platlib")}
    folders |= {os.path.dirname(torch.__file__), os.path.dirname(__file__)}
    return tuple(os.path.join(os.path.realpath(folder), "") for folder in folders)


@lru_cache(maxsize=4096)
def is_own_file(filename: str) -> bool:
    """Whether code in this file is the learner's: not Python's, a library's or this course's."""
    if filename.startswith("<frozen") or filename in ("<__array_function__ internals>",):
        return False
    return not os.path.realpath(filename).startswith(_library_folders())


def is_own_frame(frame: FrameType) -> bool:
    """Whether a frame runs the learner's code. What a library compiles has no file of its own."""
    module = str(frame.f_globals.get("__name__", "")).split(".")[0]
    return module not in ("flashcourse", "torch", "numpy") and is_own_file(frame.f_code.co_filename)


def source_line(filename: str, line: int | None) -> str | None:
    """The stripped text of a line, also of a notebook cell; None where there is no source."""
    return linecache.getline(filename, line).strip() or None if line else None


def code_of(function: Any) -> CodeType | None:
    """The code of a function, a method, a partial or a callable object; None if it has none."""
    for _ in range(20):
        if hasattr(function, "__wrapped__"):
            function = function.__wrapped__
        elif hasattr(function, "func") and callable(function.func):
            function = function.func
        elif hasattr(function, "__func__"):
            function = function.__func__
        else:
            break
    if not hasattr(function, "__code__"):
        function = vars(type(function)).get("__call__")
    code = getattr(function, "__code__", None)
    return code if isinstance(code, CodeType) else None


# ---- what went wrong ----------------------------------------------------------------------------


def _message(error: BaseException) -> str:
    try:
        text = str(error)
    except BaseException:  # a learner's own exception class may fail even here
        text = ""
    text = " ".join(text.split())
    return text if len(text) <= MESSAGE_LENGTH else text[: MESSAGE_LENGTH - 1] + "…"


def _own_line(error: BaseException) -> tuple[str, int] | None:
    """File and line of the innermost frame that is the learner's."""
    own = [
        (frame.f_code.co_filename, line)
        for frame, line in traceback.walk_tb(error.__traceback__)
        if is_own_frame(frame)
    ]
    return own[-1] if own else None


def undefined_name(error_type: str, message: str) -> str | None:
    """The name that a NameError or UnboundLocalError is about."""
    if error_type not in ("NameError", "UnboundLocalError"):
        return None
    found = re.search(r"'(\w+)'", message)
    return found.group(1) if found else None


def _kind(error: BaseException, message: str, code: str | None, skeleton: Collection[str]) -> str:
    """code: the learner's line, to tell a stub's `raise` from torch's own NotImplementedError."""
    if isinstance(error, TimeLimitReached):
        return "too_slow"
    unfinished = (
        (isinstance(error, NotImplementedError) and (code is None or "raise" in code))
        or undefined_name(type(error).__name__, message) in skeleton
        or (isinstance(error, TypeError | AttributeError) and "ellipsis" in message.lower())
    )
    return "unfinished" if unfinished else "crashed"


def failure_of(error: BaseException, skeleton: Collection[str] = ()) -> Failure:
    """The Failure that an exception stands for.

    skeleton: names that the exercise gives; using one that is not defined yet is 'unfinished'.
    An exception from a stand-in carries its Failure in `__flashcourse_failure__`.
    """
    carried = getattr(error, "__flashcourse_failure__", None)
    if isinstance(carried, Failure):
        named = undefined_name(carried.type_name, carried.message)
        return replace(carried, kind="unfinished") if named in skeleton else carried
    message, place = _message(error), _own_line(error)
    file, line = place or ("", None)
    code = source_line(file, line)
    kind = _kind(error, message, code, skeleton)
    return Failure(kind, type(error).__name__, message, line, code)


# ---- the time limit -----------------------------------------------------------------------------


def _raise_at_next_line(frame: FrameType, event: str, arg: Any) -> Any:
    if event in ("line", "call"):
        raise TimeLimitReached
    return _raise_at_next_line


class _Alarm:
    """A time limit by SIGALRM: only in the main thread, interrupts sleeping calls too.

    A bare `except:` around the learner's loop swallows the first exception. So every frame of
    theirs also gets a trace function that raises at the next line, which is outside that `try`.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.running = self.ringing = False

    def start(self) -> None:
        self.running = True
        self.handler = signal.signal(signal.SIGALRM, self._ring)
        self.timer = signal.setitimer(signal.ITIMER_REAL, self.seconds, 0.1)

    def _ring(self, signum: int, frame: FrameType | None) -> None:
        if not self.running or self.ringing:
            return
        self.ringing = True  # the next alarm may come before this one is through
        while frame is not None and frame.f_code is not _run_limited.__code__:
            if is_own_frame(frame):
                frame.f_trace = _raise_at_next_line
            frame = frame.f_back
        self.ringing = False
        sys.settrace(_raise_at_next_line)  # last: from here on every call would raise
        raise TimeLimitReached

    def stop(self) -> None:
        if self.running:
            self.running = False
            signal.setitimer(signal.ITIMER_REAL, *self.timer)
            signal.signal(signal.SIGALRM, self.handler)


class _Watchdog:
    """A time limit for any thread and system: another thread raises in this one until it ends."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.target = threading.get_ident()
        self.done = threading.Event()
        self.fired = False
        self.lock = threading.Lock()

    def start(self) -> None:
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        wait = self.seconds
        while not self.done.wait(wait):
            with self.lock:
                if not self.done.is_set():
                    self.fired = True
                    self._raise()
            wait = 0.003

    def _raise(self) -> None:
        what = ctypes.py_object(TimeLimitReached)
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(self.target), what)

    def stop(self) -> None:
        with self.lock:
            self.done.set()
        if self.fired:
            # One may still be on its way. Taking it back leaves the interpreter's flag set for
            # good, so let it arrive here.
            with contextlib.suppress(TimeLimitReached):
                self._raise()
                for _ in range(1000):
                    pass


def _limit(seconds: float) -> _Alarm | _Watchdog:
    main = threading.current_thread() is threading.main_thread()
    return _Alarm(seconds) if main and hasattr(signal, "setitimer") else _Watchdog(seconds)


# ---- the run ------------------------------------------------------------------------------------


class _Nowhere(io.TextIOBase):
    """Takes what a learner's function prints and forgets it."""

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        return len(text)


@contextlib.contextmanager
def _uninitialised_is_nan() -> Iterator[None]:
    """`torch.empty` comes filled with NaN, so that nobody is right by luck."""
    # torch.use_deterministic_algorithms would import the compiler, which takes a second.
    before = torch.get_deterministic_debug_mode()
    torch.set_deterministic_debug_mode("warn")
    try:
        yield
    finally:
        torch.set_deterministic_debug_mode(before)


def _told(caught: list[warnings.WarningMessage]) -> tuple[str, ...]:
    messages = (str(warning.message) for warning in caught)
    return tuple(dict.fromkeys(m[:MESSAGE_LENGTH] for m in messages if "deterministic" not in m))


@dataclass(frozen=True)
class Run:
    """value: what the function returned, None after a failure. seconds: wall time.

    error: the exception itself. warnings: each message once.
    """

    value: Any
    error: BaseException | None
    seconds: float
    warnings: tuple[str, ...]


def run(function: Callable[..., Any], args: tuple, kwargs: dict, seconds: float) -> Run:
    """Call the function with what it prints and warns kept away, for at most `seconds`.

    Never raises: SystemExit and KeyboardInterrupt come back as an error too. The thread's trace
    function is what it was before. A single call into C that does not return can't be ended.
    """
    tracer, began = sys.gettrace(), time.perf_counter()
    value, error = None, None
    with (
        warnings.catch_warnings(record=True) as caught,
        contextlib.redirect_stdout(_Nowhere()),
        torch.no_grad(),
        _uninitialised_is_nan(),
    ):
        warnings.simplefilter("always")
        value, error = _run_limited(function, args, kwargs, seconds)
    sys.settrace(tracer)
    return Run(value, error, time.perf_counter() - began, _told(caught))


def _run_limited(
    function: Callable[..., Any], args: tuple, kwargs: dict, seconds: float
) -> tuple[Any, BaseException | None]:
    limit = _limit(seconds)
    try:
        limit.start()
        try:
            return function(*args, **kwargs), None
        finally:
            limit.stop()
    except BaseException as error:
        limit.stop()
        return None, error
