"""What a freshly forked process does to itself before it runs a student's code.

It is the first process of its own PID namespace, so that all it starts dies with it. It gets a
network, IPC and mount namespace of its own with a small scratch folder, gives up every
capability, and filters the system calls by which it could hide memory or look at others.
"""

from __future__ import annotations

import ctypes
import os
import platform
import resource
import stat
import struct
from collections.abc import Iterable
from dataclasses import dataclass

from flashcourse.grading.limits import MIB, Limits
from flashcourse.grading.sandbox import PLOTS

_libc = ctypes.CDLL(None, use_errno=True)

CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWIPC = 0x00020000, 0x04000000, 0x08000000
CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET = 0x10000000, 0x20000000, 0x40000000
CLONE_NEWCGROUP, CLONE_NEWTIME = 0x02000000, 0x00000080
_ALL_NEW = 0x7E020080
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC = 1, 2, 4, 8
MS_BIND, MS_REC, MS_PRIVATE = 0x1000, 0x4000, 0x40000
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_SECCOMP, PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS = (
    1,
    4,
    22,
    24,
    38,
)


def _check(result: int, what: str) -> None:
    if result != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")


def unshare(flags: int) -> None:
    _check(_libc.unshare(flags), "unshare")


def set_pid_namespace(fd: int) -> None:
    """Let this process's next children be born in the PID namespace behind `fd`."""
    _check(_libc.setns(fd, CLONE_NEWPID), "setns")


def mount(source: str, target: str, kind: str | None, flags: int, data: str = "") -> None:
    arguments = (source.encode(), target.encode(), kind.encode() if kind else None)
    _check(_libc.mount(*arguments, ctypes.c_ulong(flags), data.encode()), f"mount {target}")


@dataclass(frozen=True)
class Identity:
    """uid: the user id to change to, when the grader is root; None: a user namespace instead."""

    uid: int | None


def confine(
    identity: Identity, limits: Limits, kept: Iterable[str], unseen: Iterable[str] = ()
) -> None:
    """Shut this process in. Raises OSError where the kernel refuses a step: then don't go on.

    kept: what `mounts_in_scratch` says. unseen: folders that are empty from here on.
    """
    unshare(CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS)
    mount("none", "/", None, MS_REC | MS_PRIVATE)
    safe = MS_NOSUID | MS_NODEV | MS_NOEXEC
    size = f"size={limits.scratch_mib}m,nr_inodes=4096,mode=1777"
    mount("proc", "/proc", "proc", safe)
    covered = {point: os.open(point, os.O_PATH) for point in kept}
    mount("tmpfs", "/tmp", "tmpfs", safe, size)
    _bring_back(covered)
    for folder in unseen:
        mount("tmpfs", folder, "tmpfs", safe | MS_RDONLY, "size=4k,nr_inodes=2,mode=555")
    mount("tmpfs", "/dev/shm", "tmpfs", safe, size)
    # A shared mapping of it is memory that belongs to no process's count.
    mount("/dev/null", "/dev/zero", None, MS_BIND)
    os.chdir("/tmp")
    _set_rlimits(limits)
    _give_up_rights(identity)
    _check(_libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")
    _filter_system_calls()


def mounts_in_scratch() -> list[str]:
    """What is mounted below /tmp: this Python, where it is installed there."""
    with open("/proc/self/mountinfo") as table:
        points = [line.split()[4].encode().decode("unicode_escape") for line in table]
    plots = f"{PLOTS}/"  # was needed at the start only
    below = {point for point in points if point.startswith("/tmp/")}
    return sorted(point for point in below if not point.startswith(plots))


def _bring_back(covered: dict[str, int]) -> None:
    """Bind the handles where they were, read-only as they were, and close them."""
    for point, handle in covered.items():
        if stat.S_ISDIR(os.fstat(handle).st_mode):
            os.makedirs(point, mode=0o755, exist_ok=True)
        else:
            os.makedirs(os.path.dirname(point), mode=0o755, exist_ok=True)
            os.close(os.open(point, os.O_CREAT | os.O_WRONLY, 0o644))
        mount(f"/proc/self/fd/{handle}", point, None, MS_BIND)
        os.close(handle)


def _set_rlimits(limits: Limits) -> None:
    used = _status_kib()
    more = limits.memory_mib * MIB
    cap = {
        resource.RLIMIT_AS: used["VmSize"] * 1024 + more,
        resource.RLIMIT_DATA: used["VmData"] * 1024 + more,
        resource.RLIMIT_CPU: limits.cpu_seconds,
        resource.RLIMIT_NPROC: limits.processes,
        resource.RLIMIT_FSIZE: limits.scratch_mib * MIB,
        resource.RLIMIT_NOFILE: 64,  # what waits in sockets is memory that nobody counts
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_MEMLOCK: 64 * 1024,
        resource.RLIMIT_MSGQUEUE: 0,
    }
    for which, value in cap.items():
        resource.setrlimit(which, (value, value))


def _status_kib() -> dict[str, int]:
    with open("/proc/self/status") as status:
        pairs = (line.split()[:2] for line in status if line.startswith("Vm"))
        return {name.rstrip(":"): int(value) for name, value in pairs}


def _give_up_rights(identity: Identity) -> None:
    if identity.uid is None:
        _own_user_namespace()
        _drop_capabilities()
        return
    _drop_bounding_set()
    os.setgroups([])
    os.setresgid(identity.uid, identity.uid, identity.uid)
    os.setresuid(identity.uid, identity.uid, identity.uid)
    _check(_libc.prctl(PR_SET_DUMPABLE, 1, 0, 0, 0), "dumpable")
    _drop_capabilities()


def _own_user_namespace() -> None:
    uid, gid = os.getuid(), os.getgid()
    unshare(CLONE_NEWUSER)
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"65534 {uid} 1"),
        ("gid_map", f"65534 {gid} 1"),
    ):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)
    _drop_bounding_set()


def _drop_bounding_set() -> None:
    for capability in range(64):
        if _libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) != 0:
            break


def _drop_capabilities() -> None:
    header = struct.pack("<Ii", 0x20080522, 0)
    _check(_libc.capset(header, struct.pack("<6I", 0, 0, 0, 0, 0, 0)), "capset")


# System calls a student's code never needs: they would look into other processes, make memory
# that no limit sees, or enlarge the part of the kernel that can be attacked. (x86-64, arm64)
_DENIED = {
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "kcmp": (312, 272),
    "pidfd_getfd": (438, 438),
    "unshare": (272, 97),
    "setns": (308, 268),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "open_by_handle_at": (304, 265),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "kexec_load": (246, 104),
    "personality": (135, 92),
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "shmget": (29, 194),
    "msgget": (68, 186),
    "semget": (64, 190),
    "mq_open": (240, 180),
}
_MMAP, _SHARED_ANONYMOUS = (9, 222), 0x21
_CLONE, _CLONE3 = (56, 220), (435, 435)
_MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_EPERM, _ENOSYS = 1, 38
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _AND, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06


def _filter_system_calls() -> None:
    machine = _MACHINES.get(platform.machine())
    if machine is None:
        return
    program = _program(*machine)
    code = ctypes.create_string_buffer(b"".join(struct.pack("<HBBI", *line) for line in program))
    # struct sock_fprog: a 16-bit length, padding, a pointer.
    block = ctypes.create_string_buffer(
        struct.pack("<HxxxxxxQ", len(program), ctypes.addressof(code))
    )
    _check(_libc.prctl(PR_SET_SECCOMP, 2, ctypes.byref(block), 0, 0), "seccomp")


def _program(column: int, architecture: int) -> list[tuple[int, int, int, int]]:
    """Berkeley packet filter lines (code, jump if true, jump if false, operand)."""
    lines = [
        (_LOAD, 0, 0, 4),
        (_EQUAL, 1, 0, architecture),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, 0),
        # The x32 calls of x86-64 are the same calls under other numbers.
        (_AT_LEAST, 0, 1, 0x40000000),
        (_RETURN, 0, 0, _ERRNO | _EPERM),
    ]
    for numbers in _DENIED.values():
        lines += [(_EQUAL, 0, 1, numbers[column]), (_RETURN, 0, 0, _ERRNO | _EPERM)]
    # clone3 hides its flags in memory; without it the C library falls back to clone.
    lines += [(_EQUAL, 0, 1, _CLONE3[column]), (_RETURN, 0, 0, _ERRNO | _ENOSYS)]
    # Shared memory without a file stays when its pages are given back: no limit would see it.
    lines += [
        (_EQUAL, 0, 4, _MMAP[column]),
        (_LOAD, 0, 0, 40),
        (_AND, 0, 0, _SHARED_ANONYMOUS),
        (_EQUAL, 0, 1, _SHARED_ANONYMOUS),
        (_RETURN, 0, 0, _ERRNO | _EPERM),
    ]
    lines += [
        (_EQUAL, 0, 3, _CLONE[column]),
        (_LOAD, 0, 0, 16),
        (_ANY_BIT, 0, 1, _ALL_NEW),
        (_RETURN, 0, 0, _ERRNO | _EPERM),
        (_RETURN, 0, 0, _ALLOW),
    ]
    return lines
