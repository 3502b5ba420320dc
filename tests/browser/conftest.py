"""A real browser and real notebook servers for the tests of what a learner sees.

Nothing here is skipped: without Chromium, or without a server that answers, the tests fail and
say what to install.
"""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from browser.notebook6 import environment

REPO = Path(__file__).parents[2]
PATIENCE_MS = 60_000  # a guard against hanging, not a measure: two cores may be busy
expect.set_options(timeout=PATIENCE_MS)


@dataclass(frozen=True)
class Server:
    """A notebook server on a folder of its own."""

    url: str
    token: str
    folder: Path

    def address(self, path: str) -> str:
        return f"{self.url}/{path}?token={self.token}"


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A tall page (notebooks draw only the cells in sight); a console error fails the test."""
    context = browser.new_context(viewport={"width": 1200, "height": 3000})
    page = context.new_page()
    page.set_default_timeout(PATIENCE_MS)
    errors: list[str] = []
    page.on("pageerror", lambda error: _keep(error, errors))
    page.on("console", lambda message: _note(message, errors))
    yield page
    context.close()
    assert not errors, "the page wrote errors to its console:\n" + "\n".join(errors)


# Notebook 7.6's own core throws this at its start, with an empty notebook too.
NOT_OURS = "Cannot read properties of undefined (reading 'schema')"


def _keep(error, errors: list[str]) -> None:
    if NOT_OURS not in str(error):
        errors.append(f"uncaught: {error}\n{error.stack}")


def _note(message, errors: list[str]) -> None:
    """Keep a console error, unless it only says that the page could not load some file.

    Exported pages ask a CDN for MathJax, and the tests block the network.
    """
    if message.type == "error" and not message.text.startswith("Failed to load resource"):
        errors.append(f"{message.text} ({message.location.get('url', '')})")


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """JupyterLab, as installed beside this project."""
    folder = tmp_path_factory.mktemp("lab")
    arguments = ["lab", "--LabApp.expose_app_in_browser=True", "--LabApp.news_url="]
    with serve([sys.executable, "-m", "jupyter", *arguments], folder) as server:
        yield server


@pytest.fixture(scope="session")
def notebook7(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Notebook 7, as installed beside this project."""
    arguments = ["notebook", "--JupyterNotebookApp.expose_app_in_browser=True"]
    command = [sys.executable, "-m", "jupyter", *arguments]
    with serve(command, tmp_path_factory.mktemp("notebook7")) as server:
        yield server


@contextmanager
def serve(command: list[str], folder: Path) -> Iterator[Server]:
    """Run a notebook server on `folder` until the block ends."""
    port, token = _free_port(), "browser-tests"
    command = [
        *command, "--no-browser", "--allow-root", f"--port={port}", "--port-retries=0",
        "--ip=127.0.0.1", f"--IdentityProvider.token={token}", f"--NotebookApp.token={token}",
        f"--notebook-dir={folder}",
    ]  # fmt: skip
    log = (folder / "server.log").open("w")
    process = subprocess.Popen(
        command,
        env=_environment(folder),
        stdout=log,
        stderr=log,
        start_new_session=True,
        preexec_fn=_end_with_the_tests,
    )
    try:
        url = f"http://127.0.0.1:{port}"
        _wait_until_it_answers(process, f"{url}/api/status?token={token}", folder / "server.log")
        yield Server(url, token, folder)
    finally:
        _stop(process, f"http://127.0.0.1:{port}/api/shutdown?token={token}")
        log.close()


def _end_with_the_tests() -> None:
    """In the new process: be told to end when the tests are killed before they can say so."""
    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGTERM)


def _stop(process: subprocess.Popen, url: str) -> None:
    """Ask the server to end its kernels and itself; end what is left of it after 20 seconds."""
    with suppress(urllib.error.URLError, ConnectionError, TimeoutError):
        urllib.request.urlopen(urllib.request.Request(url, method="POST"), timeout=10)
    with suppress(subprocess.TimeoutExpired):
        process.wait(20)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _environment(folder: Path) -> dict[str, str]:
    """Settings, kernels' connection files and IPython's profile of the server's own."""
    own = {
        name: str(folder / ".jupyter" / name.lower())
        for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR")
    }
    return os.environ | own | {"PYTHONPATH": str(REPO), "OMP_NUM_THREADS": "1"}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _wait_until_it_answers(process: subprocess.Popen, url: str, log: Path) -> None:
    for _ in range(600):
        try:
            process.wait(0.1)
        except subprocess.TimeoutExpired:
            try:
                urllib.request.urlopen(url, timeout=5)
            except (urllib.error.URLError, ConnectionError, TimeoutError):
                continue
            return
        break
    pytest.fail(f"no answer from {process.args[0]}:\n{log.read_text()[-3000:]}")


@pytest.fixture(scope="session")
def notebook6(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Notebook 6.5.7 with ipywidgets 7.7.1 and widgetsnbextension 3.6.1."""
    python = environment(REPO / ".cache")
    with serve([str(python), "-m", "notebook"], tmp_path_factory.mktemp("notebook6")) as server:
        yield server
