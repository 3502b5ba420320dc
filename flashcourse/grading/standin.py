"""What stands in a test for a name of the student's: a function that lives in another process."""

from __future__ import annotations

import builtins
import inspect
import json
import signal
import time
import warnings
from dataclasses import dataclass, field
from typing import Any

import torch

from flashcourse.grading.channel import BadFrame, Channel, ChannelClosed, ChannelTimeout
from flashcourse.grading.codec import CodecError, Encoder, Opaque, decode
from flashcourse.grading.limits import MIB
from flashcourse.grading.unseen import unseen
from flashcourse.record_data import from_data
from flashcourse.recording import Repair
from flashcourse.records import Record
from flashcourse.running import Failure
from flashcourse.words import Text

MAX_INPUT = 256 * MIB


class StandInError(Exception):
    """An exception of the student's code, as far as it may cross: type name, message, line."""

    __flashcourse_failure__: Failure


class StudentGone(StandInError):
    """The student's process is no more (it ended itself, was killed, or did not answer)."""


@dataclass
class Student:
    """The other end: the student's process, which ends a call after `call_seconds` by itself;
    `grace` seconds later it is taken for dead. gone: why it can't be asked any more, or None."""

    channel: Channel
    call_seconds: float
    grace: float
    deadline: float = float("inf")
    gone: str | None = None
    seconds: float = 0.0
    calls: int = 0
    slow: dict[str, Failure] = field(default_factory=dict)
    kept: dict[str, dict[Any, Any]] = field(default_factory=dict)
    state: int = 0
    doubts: dict[str, Text] = field(default_factory=dict)
    _number: int = 1_000_000

    def at(self, state: int) -> None:
        """How many of the student's cells have run; after one more a function may be another."""
        if state != self.state:
            self.state = state
            self.kept.clear()

    def ask(
        self,
        request: dict[str, Any],
        blobs: list[bytes],
        wait: float,
        repair: Repair | None = None,
    ) -> tuple[dict, list]:
        """The answer to one request. Raises StudentGone.

        repair: asked for the right values that the other side needs on the way.
        """
        if self.gone:
            raise gone_error(self.gone)
        self._number += 1
        began = time.monotonic()
        until = min(began + wait, self.deadline)
        try:
            self.gone = "timed_out"
            self.channel.send(dict(request, id=self._number), blobs, until)
            answer, out = self.channel.receive(until)
            while repair is not None and "wanted" in answer:
                value, data = _repaired(repair, answer, out)
                self.channel.send({"value": value, "reply": True}, data, until)
                answer, out = self.channel.receive(until)
            if answer.get("id") != self._number:
                raise BadFrame("an answer that nobody asked for")
            self.gone = None
            return answer, out
        except ChannelTimeout:
            raise gone_error("timed_out") from None
        except BadFrame:
            self.gone = "too_much_output"
            raise gone_error(self.gone) from None
        except ChannelClosed:
            self.gone = "died"
            raise gone_error(self.gone) from None
        finally:
            self.seconds += time.monotonic() - began

    def look(self, name: str) -> Any:
        """A stand-in for a function, the value of anything else. Raises NameError, StudentGone."""
        answer, blobs = self.ask({"do": "look", "name": name}, [], self.grace)
        kind = answer.get("kind")
        if kind == "callable":
            identity = f"{name}:{answer.get('identity')}"
            return StandIn(self, name, identity, answer.get("parameters"))
        if kind == "value":
            return decode(answer.get("value"), blobs)
        if kind == "missing":
            raise NameError(f"name {name!r} is not defined")
        return Opaque("value that can't be handed over")


def _repaired(repair: Repair, answer: dict, blobs: list[bytes]) -> tuple[Any, list[bytes]]:
    """The value that is asked for, as data; None where what was sent with it makes no sense."""
    encoder = Encoder(MAX_INPUT)
    try:
        local = decode(answer.get("local"), blobs)
        value = repair(str(answer["wanted"]), local) if type(local) is dict else None
        return encoder.encode(value), encoder.blobs
    except CodecError:
        return None, []


def gone_error(why: str) -> StudentGone:
    """The error of every call to a process that is no more."""
    kind = "too_slow" if why == "timed_out" else "crashed"
    # Both languages: a message is shown as it is.
    words = {
        "timed_out": "the time limit was reached; it was not run again / 已超时，没有再运行",
        "too_much_output": "it returned or wrote more than is allowed / 返回值或输出超过上限",
    }
    ended = "the process that ran this notebook has ended / 运行这份 notebook 的进程已经结束"
    message = words.get(why, ended)
    error = StudentGone(message)
    error.__flashcourse_failure__ = Failure(kind, "StudentGone", message)
    return error


class StandIn:
    """A function of the student's. Calls go to the student's process, values come back as data."""

    def __init__(self, student: Student, name: str, identity: str, parameters: Any = None) -> None:
        self._student, self._identity = student, identity
        self.__name__ = self.__qualname__ = name
        signature = _signature(parameters)
        if signature is not None:
            self.__signature__ = signature

    def __repr__(self) -> str:
        return f"<{self.__name__}, in the student's process>"

    @property
    def __flashcourse_kept__(self) -> dict[Any, Any]:
        """For what is found out about this function, as long as no cell of the student's runs.

        By its name: a process that hands out another object under it is still judged as one.
        """
        return self._student.kept.setdefault(self.__name__, {})

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        answer, blobs = self._send("call", *self._encode(args, kwargs), self._seconds())
        self._write_back(answer.get("changed"), blobs, args, kwargs)
        self._warn(answer.get("warnings"))
        return self._value(answer, blobs)

    def __flashcourse_record__(
        self, *args: Any, seconds: float = 10.0, repair: Any = None, **kwargs: Any
    ) -> Record:
        """What `flashcourse.record` says over there; its error, where there is no answer.

        repair: with its `names`. Right values are made here; over there, nobody knows how.
        """
        limit = min(seconds, self._student.call_seconds)
        encoder, tree = self._encode(args, dict(kwargs, seconds=limit))
        names = tuple(repair.names) if repair is not None else ()
        key = ("record", names, json.dumps(tree), tuple(encoder.blobs))
        # One lesson's exercises ask for the same runs again and again.
        kept = self.__flashcourse_kept__
        if key not in kept:
            kept[key] = self._record(encoder, tree, limit, repair)
            plain = not names and not {"disturb", "watch"} & kwargs.keys()
            doubt = unseen(self.__name__, args[:3], kept[key]) if plain else None
            if doubt is not None:
                self._student.doubts.setdefault(self.__name__, doubt)
        return kept[key]

    def _record(self, encoder: Encoder, tree: Any, limit: float, repair: Any) -> Record:
        try:
            answer, blobs = self._send("record", encoder, tree, limit, repair)
            record = from_data(self._value(answer, blobs))
        except StandInError as error:
            return Record(None, "None", error=error.__flashcourse_failure__)
        except ValueError as error:
            return Record(None, "None", error=Failure("crashed", "ValueError", str(error)[:300]))
        if record.error is not None and record.error.kind == "too_slow":
            self._student.slow[self._identity] = record.error
        return record

    def _warn(self, messages: Any) -> None:
        for message in messages[:20] if type(messages) is list else []:
            warnings.warn(str(message)[:300], stacklevel=3)

    def _seconds(self) -> float:
        """How long the call may take: a little less than an alarm that is already set here."""
        left = signal.getitimer(signal.ITIMER_REAL)[0]
        limit = self._student.call_seconds
        return max(0.05, min(limit, 0.9 * left)) if left > 0 else limit

    def _encode(self, args: tuple, kwargs: dict) -> tuple[Encoder, Any]:
        encoder = Encoder(MAX_INPUT, strict=True)
        try:
            return encoder, encoder.encode((args, kwargs))
        except CodecError as error:
            raise TypeError(str(error)) from None

    def _send(
        self, what: str, encoder: Encoder, tree: Any, seconds: float, repair: Any = None
    ) -> tuple[dict, list]:
        slow = self._student.slow.get(self._identity)
        if slow is not None:
            raise error_of(slow)
        self._student.calls += 1
        request = {"do": what, "name": self.__name__, "args": tree, "seconds": seconds}
        if repair is not None:
            request["repair"] = list(repair.names)
        return self._student.ask(request, encoder.blobs, seconds + self._student.grace, repair)

    def _value(self, answer: dict, blobs: list[bytes]) -> Any:
        if "failure" in answer:
            failure = failure_of_data(answer["failure"])
            if failure.kind == "too_slow":
                self._student.slow[self._identity] = failure
            raise error_of(failure)
        if "refused" in answer:
            raise error_of(Failure("crashed", "ValueError", str(answer["refused"])[:200]))
        try:
            return decode(answer.get("value"), blobs)
        except CodecError as error:
            raise error_of(Failure("crashed", "ValueError", str(error))) from None

    def _write_back(self, changed: Any, blobs: list[bytes], args: tuple, kwargs: dict) -> None:
        """Inputs that the student's code changed in place are changed here too."""
        if type(changed) is not list:
            return
        for entry in changed[: len(args) + len(kwargs)]:
            try:
                key, value = entry[0], decode(entry[1], blobs)
                target = kwargs[key] if type(key) is str else args[key]
                with torch.no_grad():
                    target.copy_(value)
            except Exception:
                # A change of another shape or type can't be one made in place: a forged one.
                continue


def _signature(parameters: Any) -> inspect.Signature | None:
    if type(parameters) is not list or not parameters:
        return None
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    try:
        return inspect.Signature([inspect.Parameter(name, kind) for name in parameters])
    except (TypeError, ValueError):
        return None


def failure_of_data(data: Any) -> Failure:
    """A Failure out of what the student's process claims, each field of the right type."""
    data = data if isinstance(data, dict) else {}
    kind = data.get("kind")
    line, source = data.get("line"), data.get("source_line")
    return Failure(
        kind if kind in ("unfinished", "crashed", "too_slow") else "crashed",
        str(data.get("type_name", "Exception"))[:100],
        str(data.get("message", ""))[:300],
        line if type(line) is int and 0 < line < 1_000_000 else None,
        source[:300] if type(source) is str else None,
    )


def error_of(failure: Failure) -> StandInError:
    """An exception that carries the failure, and is caught as the built-in it came from."""
    base = getattr(builtins, failure.type_name, None)
    kind: type[StandInError] = StandInError
    ends_a_loop = base in (StopIteration, StopAsyncIteration)  # of the test's, silently
    if isinstance(base, type) and issubclass(base, Exception) and not ends_a_loop:
        try:
            kind = type(failure.type_name, (StandInError, base), {})
            error = kind(failure.message)
        except TypeError:
            # Built-ins with a memory layout of their own don't mix.
            error = StandInError(failure.message)
    else:
        error = StandInError(f"{failure.type_name}: {failure.message}")
    error.__flashcourse_failure__ = failure
    return error
