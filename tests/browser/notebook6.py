"""Notebook 6 with ipywidgets 7.7.1, as Colab has it, in an environment of its own.

Made once in .cache/notebook6 with pip; torch comes from the environment that runs the tests.
widgetsnbextension 3.6.1 is the last of its line that this Notebook loads.
"""

from __future__ import annotations

import fcntl
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

PINS = (
    "notebook==6.5.7",
    "ipywidgets==7.7.1",
    "widgetsnbextension==3.6.1",
    "setuptools<81",  # Notebook 6 still imports pkg_resources
)


def environment(cache: Path) -> Path:
    """The environment's python; made when missing or when the pins changed."""
    home, wanted = cache / "notebook6", "\n".join((*PINS, sys.version))
    python, stamp = home / "bin" / "python", home / "pins.txt"
    cache.mkdir(exist_ok=True)
    with (cache / "notebook6.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not stamp.exists() or stamp.read_text() != wanted:
            venv.create(home, clear=True, with_pip=True)
            _install(python)
            _share_packages(python)
            stamp.write_text(wanted)
    return python


def _install(python: Path) -> None:
    command = [str(python), "-m", "pip", "install", "--quiet", *PINS]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900)
    if done.returncode:
        pytest.fail(f"Notebook 6 could not be installed with pip:\n{done.stderr[-3000:]}")


def _share_packages(python: Path) -> None:
    """Let it see this environment's packages after its own, torch above all."""
    paths = subprocess.run(
        [str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    shared = Path(paths.stdout.strip()) / "zz_shared.pth"
    shared.write_text(sysconfig.get_path("purelib") + "\n")
