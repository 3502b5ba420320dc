"""Run a notebook in another environment's kernel."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import nbformat
from jupyter_client.manager import KernelManager
from nbclient import NotebookClient
from nbformat.notebooknode import NotebookNode

from tests.environments.recipes import ROOT

CELL_SECONDS = 300  # a guard against hanging
VERSIONS = """
import importlib.metadata as metadata, platform, sys
names = ("torch", "numpy", "matplotlib", "ipywidgets", "ipython", "ipykernel")
print("Python", platform.python_version(), *(f"{name} {metadata.version(name)}" for name in names))
import torch
print("GPU:", torch.cuda.get_device_name() if torch.cuda.is_available() else "none")
"""


# What a kernel runs first, for notebooks that are to find the GPU of pretend_cuda.py.
GPU = f"""
import sys
sys.path.append({str(ROOT)!r})
import tests.environments.pretend_cuda as pretended
sys.path.pop()
pretended.started = pretended.pretend_cuda()
pretended.started.__enter__()
"""


@contextmanager
def kernel(python: Path, gpu: bool = False) -> Iterator[NotebookClient]:
    """A client whose kernel runs in `python`'s environment, in an empty folder of its own.

    gpu: it finds the GPU in name only.
    """
    with tempfile.TemporaryDirectory(prefix="flashcourse-") as folder:
        manager = KernelManager()
        # By its interpreter and not by an installed kernelspec: nothing of this environment leaks.
        spec = manager.kernel_spec
        assert spec is not None, "this environment has no Python kernel"
        spec.argv = [str(python), "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        spec.argv.append("--IPKernelApp.log_level=40")
        # As Jupyter's kernelspec does; and older debuggers warn about Python 3.11 at each start.
        spec.env = {"MPLBACKEND": "module://matplotlib_inline.backend_inline"}
        spec.env["PYDEVD_DISABLE_FILE_VALIDATION"] = "1"
        client = NotebookClient(
            nbformat.v4.new_notebook(),
            km=manager,
            timeout=CELL_SECONDS,
            allow_errors=True,
            resources={"metadata": {"path": folder}},
        )
        with client.setup_kernel(env=clean_environment()):
            if gpu:
                run_code(client, GPU)
            yield client


def clean_environment() -> dict[str, str]:
    """This process's variables without those that would show it our packages or our language."""
    hidden = ("PYTHONPATH", "PYTHONHOME", "COURSE_LANG", "VIRTUAL_ENV", "JPY_SESSION_NAME")
    return {name: value for name, value in os.environ.items() if name not in hidden}


def execute(client: NotebookClient, notebook: NotebookNode) -> NotebookNode:
    """Run every cell, from a state without the names of an earlier run; errors are kept."""
    run_code(client, "%reset -f")
    client.nb = notebook
    for index, cell in enumerate(notebook.cells):
        client.execute_cell(cell, index)
    return notebook


def run_code(client: NotebookClient, source: str) -> str:
    """What a line of code prints."""
    cell = nbformat.v4.new_code_cell(source)
    client.nb = nbformat.v4.new_notebook(cells=[cell])
    client.execute_cell(cell, 0)
    return "".join(output.get("text", "") for output in cell.outputs).strip()
