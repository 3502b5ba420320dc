"""The grader's side of the warmed processes: start them, fork from them, watch what they forked."""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from functools import lru_cache
from pathlib import Path
from typing import Any

from flashcourse.grading import sandbox
from flashcourse.grading.channel import BadFrame, Channel, ChannelClosed
from flashcourse.grading.errors import GradingError
from flashcourse.grading.limits import MIB, Limits

START_SECONDS = 120.0
ROLES = ("student", "examiner")  # each has a warmed process of its own, see zygote.py
_PACKAGES = str(Path(sandbox._PACKAGE).parent)
_PROGRAM = (
    "import sys; sys.path.append({!r}); from flashcourse.grading import zygote; zygote.main()"
)


class PoolError(GradingError):
    """The warmed process can't be started, or is gone."""


class Process:
    """A forked process: its channel, and the handle by which it is killed.

    peak_mib: the most memory it was seen to use beyond what it began with.
    status: its exit code (negative: the signal), None while it lives.
    """

    def __init__(self, number: int, sock: socket.socket) -> None:
        self.number, self.sock = number, sock
        self.channel = Channel(sock)
        self.handle = -1
        self.status: int | None = None
        self.ended = threading.Event()
        self.forked = threading.Event()
        self.peak_mib = 0.0
        self._baseline = self._before = 0
        self._busy: dict[int, float] = {}
        self._pid: int | None = None

    def kill(self) -> None:
        """End it and all that it started: it is the first process of its PID namespace."""
        if self.handle >= 0 and not self.ended.is_set():
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self.handle, signal.SIGKILL)

    def close(self) -> None:
        self.kill()
        self.channel.close()
        self.ended.wait(10)
        if self.handle >= 0:
            os.close(self.handle)
            self.handle = -1

    @property
    def pid(self) -> int | None:
        """Its process id as seen from here (the handle knows it), None once it has ended."""
        if self._pid is None and self.handle >= 0:
            with open(f"/proc/self/fdinfo/{self.handle}") as info:
                fields = dict(line.split(":", 1) for line in info)
            pid = int(fields["Pid"])
            self._pid = pid if pid > 0 else None
        return self._pid

    def forget_peak(self) -> bool:
        """Let the peak of `grown_mib` begin now; False where the kernel doesn't allow it."""
        with contextlib.suppress(OSError), open(f"/proc/{self.pid}/clear_refs", "w") as file:
            file.write("5")
            self._before = self._peak_kib("VmRSS")
            return True
        return False

    def grown_mib(self) -> float:
        """Its largest memory since `forget_peak`, beyond what it had then."""
        return max(0, self._peak_kib("VmHWM") - self._before) / 1024

    def _peak_kib(self, field: str) -> int:
        with contextlib.suppress(OSError), open(f"/proc/{self.pid}/status") as status:
            for line in status:
                if line.startswith(field):
                    return int(line.split()[1])
        return 0

    def cpu_seconds(self) -> float:
        """CPU time of its main thread so far; 0 where the system does not tell."""
        with contextlib.suppress(OSError, ValueError), open(f"/proc/{self.pid}/schedstat") as stat:
            return int(stat.read().split()[0]) / 1e9
        return 0.0

    @property
    def busy_seconds(self) -> float:
        """CPU time of it and all its children, as of the last look at its memory."""
        return sum(self._busy.values())

    def memory_mib(self) -> float:
        """Memory that it and its children use beyond what it began with."""
        pid = self.pid
        if pid is None:
            return 0.0
        family = _family(pid)
        for one in family:
            self._busy[one] = max(self._busy.get(one, 0.0), _cpu_seconds(one))
        used = [_resident(process) for process in family]
        if not self._baseline and used:
            self._baseline = used[0]
        extra = sum(max(0, size - self._baseline) for size in used) / MIB
        self.peak_mib = max(self.peak_mib, extra)
        return extra


def _cpu_seconds(pid: int) -> float:
    """CPU time of a process and its threads so far; 0 when it is gone."""
    with contextlib.suppress(OSError, ValueError), open(f"/proc/{pid}/stat") as stat:
        user, system = stat.read().rpartition(")")[2].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")
    return 0.0


def _family(pid: int, depth: int = 0) -> list[int]:
    """The process and its descendants. Orphans of a PID namespace belong to its first process."""
    found = [pid]
    if depth > 64:
        return found
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/children") as children:
                for child in children.read().split():
                    found += _family(int(child), depth + 1)
    return found


def _resident(pid: int) -> int:
    """Bytes of anonymous and shared memory in use."""
    total = 0
    with contextlib.suppress(OSError), open(f"/proc/{pid}/status") as status:
        for line in status:
            if line.startswith(("RssAnon", "RssShmem")):
                total += int(line.split()[1]) * 1024
    return total


class Pool:
    """The two warmed processes and those forked from them. Safe to use from several threads."""

    def __init__(self, hidden: Path | None = None, allow_unsandboxed: bool = False) -> None:
        self.sandbox = sandbox.make(hidden, allow_unsandboxed)
        self._lock = threading.Lock()
        self._processes: dict[int, Process] = {}
        self._number = 0
        self._warm = threading.Event()
        self._cold = set(ROLES)
        self._controls: dict[str, socket.socket] = {}
        self._failed: str | None = None
        self._log = tempfile.TemporaryFile(mode="w+b")  # noqa: SIM115 (closed in _end)
        self._started = threading.Event()
        self._thread = threading.Thread(target=self._live, name="flashcourse-pool", daemon=True)
        self._thread.start()
        atexit.register(self.close)

    @property
    def sandboxed(self) -> bool:
        return self.sandbox.mode != "open"

    def wait(self) -> None:
        """Until both are ready. Raises PoolError with what they said if they are not."""
        if not self._warm.wait(START_SECONDS) or self._failed:
            raise PoolError(self._failed or "the warmed process did not start in time")

    def fork(self, role: str, limits: Limits, extra: socket.socket | None = None) -> Process:
        """A new process in that role ('student' or 'examiner'), shut in and listening.

        extra: a socket to hand to it as well (the examiner gets the student's).
        """
        self.wait()
        here, there = socket.socketpair()
        with self._lock:
            self._number += 1
            process = Process(self._number, here)
            self._processes[process.number] = process
            request = {"id": process.number, "limits": limits.to_data()}
            fds = [there.fileno(), *([extra.fileno()] if extra is not None else [])]
            self._send(role, request, fds)
        there.close()
        if not process.forked.wait(30):
            raise PoolError(self._failed or "the warmed process did not fork")
        try:
            answer, _ = process.channel.receive(time.monotonic() + 30)
        except (ChannelClosed, BadFrame) as error:
            raise PoolError(f"a forked process did not come up: {error!r}") from None
        if "ready" not in answer:
            process.close()
            raise PoolError(f"the sandbox refused: {answer.get('refused')}")
        process.memory_mib()
        return process

    def close(self) -> None:
        """End the warmed processes and all that was forked from them."""
        atexit.unregister(self.close)
        self._started.wait(10)
        for control in self._controls.values():
            with contextlib.suppress(OSError):
                control.shutdown(socket.SHUT_RDWR)
        self._thread.join(15)

    def _send(self, role: str, request: dict[str, Any], fds: list[int]) -> None:
        try:
            socket.send_fds(self._controls[role], [json.dumps(request).encode()], fds)
        except OSError:
            raise PoolError(self._failed or "the warmed process is gone") from None

    def _live(self) -> None:
        """Own the warmed processes: they die with the thread that started them; this one stays."""
        theirs = []
        for role in ROLES:
            self._controls[role], there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            theirs.append(there)
        fds = [there.fileno() for there in theirs]
        python = [sys.executable, "-I", "-c", _PROGRAM.format(_PACKAGES)]
        command = [*self.sandbox.command, *python, *map(str, fds), self.sandbox.mode]
        try:
            child = subprocess.Popen(
                command,
                pass_fds=fds,
                env={**sandbox.environment(), "PATH": os.environ.get("PATH", os.defpath)},
                stdin=subprocess.DEVNULL,
                stdout=self._log,
                stderr=self._log,
                cwd="/",
            )
        except OSError as error:
            self._give_up(f"can't start {command[0]}: {error}")
            return
        finally:
            self._started.set()
            for there in theirs:
                there.close()
        controls = list(self._controls.values())
        # Where one has ended, the other is of no use.
        while all(self._hear(control) for control in select.select(controls, [], [])[0]):
            pass
        self._end(child)

    def _hear(self, control: socket.socket) -> bool:
        try:
            data, fds, _, _ = socket.recv_fds(control, 65536, 1)
        except OSError:
            return False
        if not data:
            return False
        message = json.loads(data)
        if "warm" in message:
            self._cold.discard(message["warm"])
            if not self._cold:
                self._warm.set()
        elif "forked" in message:
            process = self._processes[message["forked"]]
            process.handle = fds[0]
            process.forked.set()
        elif "exited" in message:
            process = self._processes.pop(message["exited"])
            process.status = message["status"]
            process.ended.set()
        return True

    def _end(self, child: subprocess.Popen) -> None:
        for control in self._controls.values():
            control.close()
        try:
            child.wait(5)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
        self._log.seek(0)
        lines = self._log.read()[-2000:].decode("utf-8", "replace").strip()
        self._log.close()
        self._give_up(f"the warmed process ended: {lines or child.returncode}")

    def _give_up(self, why: str) -> None:
        self._failed = why
        self._warm.set()
        for process in list(self._processes.values()):
            process.status = -signal.SIGKILL if process.status is None else process.status
            process.forked.set()
            process.ended.set()


def readable(sock: socket.socket, seconds: float) -> bool:
    """Whether something arrives within that time (or the other side hangs up)."""
    poll = select.poll()
    poll.register(sock, select.POLLIN)
    return bool(poll.poll(max(0, seconds) * 1000))


@lru_cache(maxsize=4)
def shared_pool(root: Path, allow_unsandboxed: bool) -> Pool:
    """The warmed process of this program for one course; it ends with the program."""
    return Pool(root.resolve(), allow_unsandboxed)
