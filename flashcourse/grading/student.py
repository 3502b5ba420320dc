"""The process that runs a student's code, and answers for the names it defines.

Everything that it sends is only a claim: whoever reads it checks types and sizes, and no mark
rests on its word alone. It holds nothing that a student may not see.
"""

from __future__ import annotations

import importlib
import inspect
import signal
import sys
import types
from contextlib import contextmanager
from typing import Any

import torch

from flashcourse.grading.channel import BadFrame, Channel, ChannelClosed
from flashcourse.grading.codec import CodecError, Encoder, decode
from flashcourse.grading.limits import MIB, Limits
from flashcourse.grading.shell import CellShell


def _own_recorder() -> Any:
    """`record` and `to_data`, out of modules that no import leads to: patching the course's own
    changes nothing.

    The zygote imports this before it forks, so before any student's code runs.
    """
    shared = {name: m for name, m in sys.modules.items() if name.partition(".")[0] == "flashcourse"}
    for name in shared:
        del sys.modules[name]
    try:
        names = ("flashcourse.recording", "flashcourse.record_data")
        recording, record_data = (importlib.import_module(name) for name in names)
        return recording.record, record_data.to_data
    finally:
        for name in [name for name in sys.modules if name.partition(".")[0] == "flashcourse"]:
            del sys.modules[name]
        sys.modules.update(shared)


record, to_data = _own_recorder()
MAX_VALUE = 64 * MIB
_CALLABLE = (types.FunctionType, types.BuiltinFunctionType, types.MethodType, type)


def serve(channel: Channel, shell: CellShell, limits: Limits) -> None:
    """Answer requests until the other side hangs up."""
    agent = _Agent(channel, shell, limits)
    while True:
        try:
            request, blobs = channel.receive()
        except ChannelClosed:
            return
        if "reply" in request:
            continue  # to a question of a run that has been ended
        answer, out = agent.answer(request, blobs)
        try:
            channel.send(dict(answer, id=request["id"]), out)
        except BadFrame as error:  # nothing was sent yet
            much = {"outputs": [], "too_much_output": True, "refused": str(error)}
            channel.send(dict(much, id=request["id"]))


class _Agent:
    def __init__(self, channel: Channel, shell: CellShell, limits: Limits) -> None:
        self.channel, self.shell, self.limits = channel, shell, limits
        self._output_left = limits.output_mib * MIB

    def answer(self, request: dict[str, Any], blobs: list[bytes]) -> tuple[dict, list[bytes]]:
        if request["do"] == "run":
            return self._run(request), []
        try:
            if request["do"] == "look":
                return self._look(request["name"])
            return self._call(request, blobs)
        except CodecError as error:
            return {"refused": str(error)}, []
        except BaseException as error:
            return {"failure": _failure_data(error)}, []

    def _run(self, request: dict[str, Any]) -> dict[str, Any]:
        with _interrupted_after(request["seconds"]) as clock:
            shown = self.limits.shown_kib * 1024
            done = self.shell.run(request["source"], request["count"], shown, self._output_left)
        spent = sum(len(str(item)) for item in done.outputs)
        self._output_left -= spent
        error = _failure_data(done.error) if done.error is not None else None
        return {
            "outputs": done.outputs,
            "error": error,
            "timed_out": clock.rang,
            "stuck": self._identities(clock.running) if clock.rang else [],
            "too_much_output": done.stopped,
        }

    def _identities(self, running: set[types.CodeType]) -> list[str]:
        """The functions that were running when the time was up: none is waited for twice."""
        named = list(self.shell.user_ns.items())
        return [
            f"{name}:{id(value)}"
            for name, value in named
            if isinstance(value, types.FunctionType) and value.__code__ in running
        ]

    def _look(self, name: str) -> tuple[dict, list[bytes]]:
        if name not in self.shell.user_ns:
            return {"kind": "missing"}, []
        value = self.shell.user_ns[name]
        if isinstance(value, _CALLABLE) or callable(value):
            return {"kind": "callable", "identity": id(value), "parameters": _parameters(value)}, []
        encoder = Encoder(MAX_VALUE)
        return {"kind": "value", "value": encoder.encode(value)}, encoder.blobs

    def _call(self, request: dict[str, Any], blobs: list[bytes]) -> tuple[dict, list[bytes]]:
        function = self.shell.user_ns[request["name"]]
        args, kwargs = decode(request["args"], blobs)
        versions = _versions(args, kwargs)
        encoder = Encoder(MAX_VALUE)
        if request["do"] == "record":
            names = request.get("repair", ())
            more = {"repair": _Repair(self.channel, frozenset(names))} if names else {}
            with self.shell.silent():
                data = to_data(record(function, *args, **kwargs, **more))
            return {"value": encoder.encode(data), "changed": []}, encoder.blobs
        from flashcourse.running import run

        with self.shell.silent():
            done = run(function, args, kwargs, request["seconds"])
        changed = [
            [key, encoder.encode(value)]
            for key, value, version in versions
            if value._version != version
        ]
        answer: dict[str, Any] = {"changed": changed, "warnings": list(done.warnings)}
        if done.error is not None:
            return dict(answer, failure=_failure_data(done.error)), encoder.blobs
        return dict(answer, value=encoder.encode(done.value)), encoder.blobs


class _Repair:
    """Asks the examiner for a right value: how one is made is not known here."""

    def __init__(self, channel: Channel, names: frozenset[str]) -> None:
        self.channel, self.names = channel, names

    def __call__(self, name: str, local: dict[str, Any]) -> Any:
        if name not in self.names:
            return None
        encoder = Encoder(MAX_VALUE)
        known = {n: v for n, v in local.items() if isinstance(v, (torch.Tensor, int))}
        try:
            tree = encoder.encode(known)
            self.channel.send({"wanted": name, "local": tree}, encoder.blobs)
            answer, blobs = self.channel.receive()
            return decode(answer.get("value"), blobs)
        except (CodecError, BadFrame):
            return None


def _parameters(function: Any) -> list[str]:
    try:
        return list(inspect.signature(function).parameters)[:50]
    except (TypeError, ValueError):
        return []


def _versions(args: tuple, kwargs: dict) -> list[tuple[Any, torch.Tensor, int]]:
    """The tensors handed in, with their version counters: a change in place raises one."""
    named = [*enumerate(args), *kwargs.items()]
    return [(k, v, v._version) for k, v in named if isinstance(v, torch.Tensor)]


def _failure_data(error: BaseException) -> dict[str, Any]:
    from flashcourse.running import failure_of

    failure = failure_of(error)
    return {
        "kind": failure.kind,
        "type_name": failure.type_name,
        "message": failure.message,
        "line": failure.line,
        "source_line": failure.source_line,
    }


class _Clock:
    def __init__(self) -> None:
        self.rang = False
        self.running: set[types.CodeType] = set()


@contextmanager
def _interrupted_after(seconds: float) -> Any:
    """Interrupt the code inside as a Jupyter kernel does, again and again once the time is up."""
    clock = _Clock()

    def ring(_number: int, frame: types.FrameType | None) -> None:
        clock.rang = True
        while frame is not None:
            clock.running.add(frame.f_code)
            frame = frame.f_back
        raise KeyboardInterrupt(f"stopped after {seconds:g} s")

    try:
        signal.signal(signal.SIGALRM, ring)
        signal.setitimer(signal.ITIMER_REAL, seconds, 0.2)
        yield clock
    except KeyboardInterrupt:
        pass
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
