"""A process that has imported everything once, and forks one process after another from itself.

There are two of it. The first, from which students' processes are forked, never imports the
checks: no formula of theirs is in its memory, and the folder they lie in is empty for a student.
The second is forked from the first, imports the checks, and forks the examiners' processes.

Both run inside the sandbox's view of the file system, hold nothing of the course or of a
submission, and never run a student's code themselves. Started as
`python -I -c "… zygote.main()" STUDENTS_FD EXAMINERS_FD MODE`, where MODE is 'root', 'user' (both
with namespaces, see confine.py) or 'open' (no sandbox).
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib.util
import json
import os
import pkgutil
import select
import signal
import socket
import sys
from collections.abc import Iterator
from typing import Any

from flashcourse.grading import examiner, no_checks, student
from flashcourse.grading.channel import Channel
from flashcourse.grading.confine import (
    CLONE_NEWPID,
    Identity,
    confine,
    mounts_in_scratch,
    set_pid_namespace,
    unshare,
)
from flashcourse.grading.limits import MIB, Limits
from flashcourse.grading.shell import CellShell

MESSAGE = 65536
# A student's process is never the same user as an examiner's.
_UIDS = {"student": range(60_000, 62_000), "examiner": range(62_000, 64_000)}
_M_MMAP_THRESHOLD, _KEPT_BYTES = -3, 4 * MIB
_PRELOADED = (
    "torch", "torch.utils._python_dispatch", "numpy", "math", "matplotlib.pyplot",
    "matplotlib_inline.backend_inline", "ipywidgets", "inspect", "unittest", "IPython.display",
)  # fmt: skip
# Of the course's package, all that a lesson's own cells may import but these.
_NOT_FOR_LESSONS = ("cli", "make_font")


def main() -> None:
    students, examiners = (socket.socket(fileno=int(fd)) for fd in sys.argv[1:3])
    mode = sys.argv[3]
    _give_memory_back()
    shell = _warm_up()
    partner = os.fork()
    if partner == 0:
        students.close()
        _learn_the_checks()
        _Zygote("examiner", examiners, mode, shell).serve()
        os._exit(0)
    examiners.close()
    no_checks.install()
    _Zygote("student", students, mode, shell, partner).serve()
    os._exit(0)  # taking all the modules down again takes half a second


def _give_memory_back() -> None:
    """Let the C library keep no freed piece larger than this, so that memory can be watched from
    outside: glibc by itself keeps pieces of up to 32 MiB once it has seen one freed."""
    with contextlib.suppress(AttributeError, OSError):  # a C library without it keeps less
        ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, _KEPT_BYTES)


def _warm_up() -> CellShell:
    """Import, and use once, whatever would otherwise be loaded again in every process."""
    gc.disable()  # nothing is thrown away here, and looking for it takes a tenth of the time
    for name in (*_PRELOADED, *_lessons_modules()):
        if _exists(name):
            importlib.import_module(name)
    shell = CellShell()
    stdout, stderr = sys.stdout, sys.stderr
    shell.install()
    shell.run(
        "import torch as _t\n"
        "_x = _t.randn(4, 4)\n"
        "_y = _t.exp(_x @ _x).softmax(-1).sum(-1, keepdim=True)\n"
        "_y",
        0, 1 << 16, 1 << 20,
    )  # fmt: skip
    shell.run("1 / 0", 0, 1 << 16, 1 << 20)
    _warm_record()
    sys.stdout, sys.stderr = stdout, stderr
    for name in [name for name in shell.user_ns if name in ("_t", "_x", "_y")]:
        del shell.user_ns[name]
    gc.collect()
    gc.freeze()
    gc.enable()
    return shell


def _lessons_modules() -> Iterator[str]:
    for package in ("flashcourse", "flashcourse.views"):
        for module in pkgutil.iter_modules(importlib.import_module(package).__path__):
            if not module.ispkg and module.name not in _NOT_FOR_LESSONS:
                yield f"{package}.{module.name}"


def _warm_record() -> None:
    """The first limited call and the first record load much more of torch than a later one."""
    import torch

    from flashcourse.running import run

    run(torch.exp, (torch.zeros(1),), {}, 5.0)
    student.to_data(student.record(lambda q, k, v, block_size=2: q, *torch.zeros(3, 2, 2)))


def _learn_the_checks() -> None:
    from flashcourse.checks import exercises

    exercises()
    gc.freeze()


def _exists(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


class _Zygote:
    """role: what its children are. partner: the pid of the examiners' zygote, for its parent."""

    def __init__(
        self,
        role: str,
        control: socket.socket,
        mode: str,
        shell: CellShell,
        partner: int | None = None,
    ) -> None:
        self.role, self.control, self.mode, self.shell = role, control, mode, shell
        self.partner, self.alone = partner, False
        self.kept = mounts_in_scratch() if mode != "open" else []
        self.unseen = no_checks.folders() if role == "student" else []
        self.children: dict[int, int] = {}
        self.forked = 0
        self.home = os.open("/proc/self/ns/pid", os.O_RDONLY) if mode != "open" else -1
        self.alarm, wake = socket.socketpair()
        self.alarm.setblocking(False)
        wake.setblocking(False)
        self.wake = wake
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.set_wakeup_fd(wake.fileno(), warn_on_full_buffer=False)

    def serve(self) -> None:
        """Fork on request until the grader hangs up; then take every child along."""
        self._tell({"warm": self.role})
        while not self.alone:
            ready, _, _ = select.select([self.control, self.alarm], [], [])
            self._reap()
            if self.control in ready and not self._obey():
                break
        for pid in self.children:
            os.kill(pid, signal.SIGKILL)

    def _obey(self) -> bool:
        data, fds, _, _ = socket.recv_fds(self.control, MESSAGE, 2)
        if not data:
            return False
        request = json.loads(data)
        self._fork(request, fds)
        for fd in fds:
            os.close(fd)
        return True

    def _fork(self, request: dict[str, Any], fds: list[int]) -> None:
        if self.mode != "open":
            unshare(CLONE_NEWPID)
        self.forked += 1
        pid = os.fork()
        if pid == 0:
            self._become(request, fds)
        if self.mode != "open":
            set_pid_namespace(self.home)
        self.children[pid] = request["id"]
        handle = os.pidfd_open(pid)
        self._tell({"forked": request["id"]}, [handle])
        os.close(handle)

    def _tell(self, message: dict[str, Any], fds: list[int] | None = None) -> None:
        socket.send_fds(self.control, [json.dumps(message).encode()], fds or [])

    def _reap(self) -> None:
        try:
            while self.alarm.recv(4096):
                pass
        except BlockingIOError:
            pass
        while self.children or self.partner is not None:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            if pid == self.partner:
                self.alone = True
                return
            self._tell(
                {"exited": self.children.pop(pid), "status": os.waitstatus_to_exitcode(status)}
            )

    def _become(self, request: dict[str, Any], fds: list[int]) -> None:
        """The child's whole life. Never returns."""
        try:
            self._leave_zygote(fds)
            channel = Channel(socket.socket(fileno=fds[0]))
            limits = Limits(**request["limits"])
            try:
                if self.mode != "open":
                    uids = _UIDS[self.role]
                    uid = uids[self.forked % len(uids)] if self.mode == "root" else None
                    confine(Identity(uid), limits, self.kept, self.unseen)
            except OSError as error:
                channel.send({"refused": str(error)})
                os._exit(3)
            channel.send({"ready": True})
            _live(self.role, channel, fds, self.shell, limits)
        finally:
            os._exit(0)

    def _leave_zygote(self, fds: list[int]) -> None:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.setsid()
        self.control.close()
        self.alarm.close()
        self.wake.close()
        if self.home >= 0:
            os.close(self.home)
        null = os.open(os.devnull, os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(null, fd)
        self.shell.install()


def _live(role: str, channel: Channel, fds: list[int], shell: CellShell, limits: Limits) -> None:
    if role == "student":
        student.serve(channel, shell, limits)
    else:
        examiner.serve(channel, Channel(socket.socket(fileno=fds[1])), shell, limits)
