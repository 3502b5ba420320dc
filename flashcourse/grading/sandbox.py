"""Which sandbox this machine offers, and the command that starts the warmed process in it."""

from __future__ import annotations

import os
import shutil
import site
import subprocess
import sys
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import flashcourse
from flashcourse.grading.errors import GradingError
from flashcourse.words import Text

_PACKAGE = Path(flashcourse.__file__).resolve().parent
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
PLOTS = "/tmp/matplotlib"  # where matplotlib keeps what it knows
_ETC = ("ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime", "fonts", "alternatives", "ssl")

HOW_TO_GET_ONE = Text(
    "No sandbox here: {why}.\n"
    "A student's code would run with all your rights, so nothing was graded.\n"
    "  Debian, Ubuntu:  sudo apt-get install bubblewrap\n"
    "  Fedora:          sudo dnf install bubblewrap\n"
    "  Ubuntu 24.04:    sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0\n"
    "  in a container:  start it with --privileged, or grade on the host\n"
    "  macOS, Windows:  grade in a Linux machine (WSL 2, a virtual machine, a server)\n"
    "To go on without one, for submissions that you have read: --allow-unsandboxed\n"
    "(with nbgrader's own commands: FLASHCOURSE_ALLOW_UNSANDBOXED=1). The result will say so.",
    "这台机器上没有可用的沙箱：{why}。\n"
    "没有沙箱，学生的代码会以你的全部权限运行，所以没有评分。\n"
    "  Debian、Ubuntu：sudo apt-get install bubblewrap\n"
    "  Fedora：        sudo dnf install bubblewrap\n"
    "  Ubuntu 24.04：  sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0\n"
    "  容器里：        用 --privileged 启动，或在宿主机上评分\n"
    "  macOS、Windows：在 Linux 里评分（WSL 2、虚拟机或服务器）\n"
    "如果你已经读过这些作业，确定要不用沙箱继续：加 --allow-unsandboxed\n"
    "（用 nbgrader 自己的命令时：FLASHCOURSE_ALLOW_UNSANDBOXED=1）。结果里会写明。",
)  # fmt: skip


class NoSandbox(GradingError):
    """This machine offers no sandbox. The message says how to get one."""


@dataclass(frozen=True)
class Sandbox:
    """mode: 'root' or 'user' (namespaces, under root or not), 'open' (none). command: its start."""

    mode: str
    command: tuple[str, ...]


@lru_cache(maxsize=1)
def why_none() -> str | None:
    """Why no sandbox can be had here, or None if one can."""
    if not sys.platform.startswith("linux"):
        return f"{sys.platform} has no namespaces"
    if shutil.which("bwrap") is None:
        return "bubblewrap (bwrap) is not installed"
    trial = [*_bwrap(_mode()), "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev"]
    inner = ["unshare", "--mount", "--pid", "--fork", "--net", "true"]
    done = subprocess.run([*trial, *inner], capture_output=True, text=True)
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or ["bwrap failed"]
        return f"bwrap does not work: {lines[-1]}"
    return None


def make(hidden: Path | None = None, allow_none: bool = False) -> Sandbox:
    """The sandbox to use. hidden: the course's folder, which must not be seen in it.

    Raises NoSandbox when there is none and `allow_none` is false.
    """
    why = why_none()
    if why is None:
        mode = _mode()
        return Sandbox(mode, (*_bwrap(mode), *_view(hidden), "--"))
    if not allow_none:
        from flashcourse.words import course_language

        raise NoSandbox(HOW_TO_GET_ONE.in_(course_language()).format(why=why))
    return Sandbox("open", ())


def _mode() -> str:
    return "root" if os.geteuid() == 0 else "user"


def _bwrap(mode: str) -> list[str]:
    command = ["bwrap", "--die-with-parent", "--new-session", "--unshare-pid", "--unshare-net"]
    command += ["--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try", "--cap-add", "ALL"]
    if mode == "user":
        # Real root needs no user namespace, and as nobody's root it would own /proc/sys.
        command += ["--unshare-user", "--uid", "0", "--gid", "0"]
    return command


def _view(hidden: Path | None) -> list[str]:
    """bwrap's arguments for what can be seen: the system and this Python, read-only."""
    view: list[str] = ["--clearenv"]
    for name, value in environment().items():
        view += ["--setenv", name, value]
    for path in _SYSTEM:
        if os.path.islink(path):
            view += ["--symlink", os.readlink(path), path]
        elif os.path.isdir(path):
            view += ["--ro-bind", path, path]
    for name in _ETC:
        view += ["--ro-bind-try", f"/etc/{name}", f"/etc/{name}"]
    # Before what follows: a Python that lives below /tmp is bound into it.
    view += ["--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp"]
    for fonts in _font_lists():
        view += ["--ro-bind", str(fonts), f"{PLOTS}/{fonts.name}"]
    python = [str(path) for path in _python_paths()]
    for path in python:
        view += [*_parents(path), "--ro-bind", path, path]
    if hidden is not None and any(_is_below(hidden, Path(p)) for p in ("/usr", *python)):
        view += ["--tmpfs", str(hidden)]
        for path in (path for path in python if _is_below(Path(path), hidden)):
            view += ["--ro-bind", path, path]
    return [*view, "--chdir", "/tmp"]


def _font_lists() -> list[Path]:
    """matplotlib's own lists of this machine's fonts, where it made them: reading each font again
    takes a second. They are seen at the start, and by no student's process (see confine.py)."""
    caches = Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"))
    folder = Path(os.environ.get("MPLCONFIGDIR") or caches / "matplotlib")
    return sorted(folder.glob("fontlist-v*.json"))


def _parents(path: str) -> list[str]:
    """bwrap makes missing parents for root alone; a student's process is somebody else."""
    folders = [str(parent) for parent in reversed(Path(path).parents) if parent != Path("/")]
    return [word for folder in folders for word in ("--perms", "0755", "--dir", folder)]


def environment() -> dict[str, str]:
    """All the environment variables that a student's process gets."""
    return {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "HOME": "/tmp",
        "USER": "student",
        "LANG": "C.UTF-8",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        "MPLCONFIGDIR": PLOTS,
        "MPLBACKEND": "module://matplotlib_inline.backend_inline",
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def _python_paths() -> list[Path]:
    """Folders outside the system's that this Python runs from, and the course's package."""
    wanted: list[Path] = []
    for prefix in dict.fromkeys((sys.prefix, sys.base_prefix, sys.exec_prefix)):
        # Not the prefix itself: it may hold anything, a course's folder for one.
        parts = ("bin", "lib", "lib64", "share", "pyvenv.cfg")
        wanted += [Path(prefix, part) for part in parts]
    wanted += [Path(path) for path in site.getsitepackages()]
    wanted.append(_PACKAGE)
    paths = [path for path in wanted if path.exists() and not _is_below(path, Path("/usr"))]
    kept: list[Path] = []
    for path in dict.fromkeys(paths):
        if not any(_is_below(path, other) for other in kept):
            kept.append(path)
    return kept


def _is_below(path: Path, folder: Path) -> bool:
    return path == folder or folder in path.parents
