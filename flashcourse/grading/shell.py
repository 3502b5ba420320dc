"""Run notebook cells in this process and keep what they put out, as a notebook stores it.

A Jupyter kernel does the same and sends it over ZeroMQ; here no socket, thread or event loop is
needed, so a forked process answers at once. The outputs have the notebook format's shape.
"""

from __future__ import annotations

import ast
import base64
import builtins
import io
import os
import sys
import tokenize
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from IPython.core.displayhook import DisplayHook
from IPython.core.displaypub import DisplayPublisher
from IPython.core.error import StdinNotImplementedError
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

Output = dict[str, Any]
# What a notebook shows; a widget's view is useless without the process it lived in.
_KEPT_TYPES = ("text/", "image/", "application/json", "application/javascript")


class TooMuchOutput(BaseException):
    """Raised in the cell that writes past the limit. A BaseException: `except Exception` is no
    way out of it."""


class Outputs:
    """What one cell put out. shown: bytes that are kept; total: bytes after which it is stopped."""

    def __init__(self, shown: int, total: int) -> None:
        self.items: list[Output] = []
        self.bytes = 0
        self._shown, self._total = shown, total
        self._left_out = 0
        self._clear_next = False

    def stream(self, name: str, text: str) -> None:
        text = self._fit(text)
        if not text:
            return
        self._clear_if_due()
        last = self.items[-1] if self.items else None
        if last and last["output_type"] == "stream" and last["name"] == name:
            last["text"] += text
        else:
            self.items.append({"output_type": "stream", "name": name, "text": text})

    def rich(self, kind: str, data: dict, metadata: dict | None, **extra: Any) -> None:
        self._clear_if_due()
        kept = {k: _plain(v) for k, v in data.items() if str(k).startswith(_KEPT_TYPES)}
        plain = _json_only(metadata or {})
        # An empty one takes room as well, and so does what is said about it.
        size = 100 + len(str(plain)) + sum(len(v) for v in kept.values() if isinstance(v, str))
        # One picture may be larger than a page of text.
        if size > 8 * self._shown:
            self._spend(size)
            self._left_out += size
            return
        self._spend(size)
        self.items.append({"output_type": kind, "data": kept, "metadata": plain, **extra})

    def error(self, name: str, message: str, traceback: list[str]) -> None:
        self._clear_if_due()
        self.items.append(
            {
                "output_type": "error",
                "ename": name[:200],
                "evalue": message[:2000],
                "traceback": [line[:4000] for line in traceback[:60]],
            }
        )

    def clear(self, wait: bool) -> None:
        self._clear_next = wait
        if not wait:
            self.items.clear()

    def finished(self) -> list[Output]:
        if self._left_out:
            note = f"\n[… {self._left_out / 1e6:.1f} MB of output left out]\n"
            self.items.append({"output_type": "stream", "name": "stdout", "text": note})
        return self.items

    def _clear_if_due(self) -> None:
        if self._clear_next:
            self.items.clear()
            self._clear_next = False

    def _fit(self, text: str) -> str:
        self._spend(len(text))
        room = max(0, self._shown - (self.bytes - len(text)))
        self._left_out += max(0, len(text) - room)
        return text[:room]

    def _spend(self, size: int) -> None:
        self.bytes += size
        if self.bytes > self._total:
            raise TooMuchOutput("too much output")


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return value if isinstance(value, str) else str(value)


def _json_only(metadata: Any, depth: int = 0) -> Any:
    if depth > 4:
        return {}
    if isinstance(metadata, dict):
        return {str(k): _json_only(v, depth + 1) for k, v in metadata.items()}
    return metadata if isinstance(metadata, (str, int, float, bool, type(None))) else str(metadata)


class _Writer(io.TextIOBase):
    """sys.stdout or sys.stderr of a cell. Between cells there is nobody to write to."""

    encoding = "utf-8"

    def __init__(self, shell: CellShell, name: str) -> None:
        self._shell, self.name = shell, name

    def write(self, text: str) -> int:
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        outputs = self._shell.outputs
        if outputs is not None:
            outputs.stream(self.name, text)
        return len(text)

    def writable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return False

    def fileno(self) -> int:
        raise io.UnsupportedOperation("fileno")


class _Publisher(DisplayPublisher):
    cell_shell: Any = None

    def publish(self, data: Any, metadata: Any = None, *_args: Any, **extra: Any) -> None:
        outputs = self.cell_shell.outputs
        if outputs is None:
            return
        display_id = (extra.get("transient") or {}).get("display_id")
        if extra.get("update"):
            self.cell_shell.update_display(display_id, data, metadata)
            return
        outputs.rich("display_data", data, metadata)
        if display_id and outputs.items:
            self.cell_shell.displays[str(display_id)] = outputs.items[-1]

    def clear_output(self, wait: bool = False) -> None:
        if self.cell_shell.outputs is not None:
            self.cell_shell.outputs.clear(wait)


class _Hook(DisplayHook):
    cell_shell: Any = None

    @property
    def formatter(self) -> Any:
        shell: Any = self.shell
        return shell.display_formatter

    def __call__(self, result: Any = None) -> None:
        shell = self.cell_shell
        if result is None or shell.outputs is None or shell.quiet:
            return
        builtins.__dict__["_"] = result
        shell.result = result
        data, metadata = self.formatter.format(result)
        shell.outputs.rich("execute_result", data, metadata, execution_count=shell.execution_count)
        if self.exec_result is not None:
            self.exec_result.result = result


class _Shell(InteractiveShell):
    cell_shell: Any = None

    def _showtraceback(self, etype: Any, evalue: Any, stb: Any) -> None:
        if self.cell_shell.outputs is not None:
            self.cell_shell.outputs.error(etype.__name__, _message(evalue), list(stb))

    def transform_cell(self, raw_cell: str) -> str:
        """Plain Python as it is: IPython's own reading of a cell takes ten times as long."""
        if _is_plain_python(raw_cell):
            return raw_cell if raw_cell.endswith("\n") else raw_cell + "\n"
        return super().transform_cell(raw_cell)

    def enable_gui(self, gui: Any = None) -> None:
        """No window is ever opened here."""

    def system_piped(self, cmd: str) -> None:
        import subprocess

        done = subprocess.run(self.var_expand(cmd, depth=2), shell=True, capture_output=True)
        sys.stdout.write(done.stdout.decode("utf-8", "replace"))
        sys.stderr.write(done.stderr.decode("utf-8", "replace"))
        self.user_ns["_exit_code"] = done.returncode

    system = system_piped


def _is_plain_python(source: str) -> bool:
    """Whether IPython would leave the cell as it is. It drops blank lines and prompts at the start,
    which can be Python: `In [1]: x` annotates something."""
    if not source or source[0].isspace() or source.startswith("In ["):
        return False
    try:
        ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _message(error: Any) -> str:
    try:
        return str(error)
    except BaseException:
        return "(its message can't be shown / 无法显示错误信息)"


@dataclass(frozen=True)
class CellRun:
    """outputs: in the notebook format. error: the exception that ended the cell, or None.
    result: the value of the last expression. stopped: it wrote more than it may."""

    outputs: list[Output]
    error: BaseException | None
    result: Any
    stopped: bool


class CellShell:
    """One IPython shell. Make it before the fork; it is ready at once after it."""

    def __init__(self) -> None:
        config = Config()
        config.HistoryManager.enabled = False
        config.InteractiveShell.colors = "NoColor"
        config.InteractiveShell.autoindent = False
        self.outputs: Outputs | None = None
        self.result: Any = None
        self.quiet = False
        self.execution_count = 0
        self.displays: dict[str, Output] = {}
        os.environ.setdefault("MPLBACKEND", "module://matplotlib_inline.backend_inline")
        self.shell = _Shell.instance(
            config=config, displayhook_class=_Hook, display_pub_class=_Publisher
        )
        self.shell.cell_shell = self
        parts: tuple[Any, ...] = (self.shell.displayhook, self.shell.display_pub)
        for part in parts:
            part.cell_shell = self
        self.user_ns: dict[str, Any] = self.shell.user_ns

    def install(self) -> None:
        """Take over stdout, stderr and input(); for the forked process."""
        sys.stdout, sys.stderr = _Writer(self, "stdout"), _Writer(self, "stderr")  # type: ignore[assignment]
        builtins.input = _no_input  # type: ignore[assignment]

    def run(self, source: str, execution_count: int, shown: int, total: int) -> CellRun:
        self.outputs = Outputs(shown, total)
        self.result, self.quiet = None, _ends_quietly(source)
        self.execution_count = self.shell.execution_count = execution_count
        stopped = False
        error: BaseException | None = None
        try:
            done = self.shell.run_cell(source, store_history=False)
            error = done.error_before_exec or done.error_in_exec
        except BaseException as escaped:
            error = escaped
            self.outputs.error(type(escaped).__name__, _message(escaped), [])
        outputs, self.outputs = self.outputs, None
        stopped = isinstance(error, TooMuchOutput) or outputs.bytes > outputs._total
        return CellRun(outputs.finished(), error, self.result, stopped)

    @contextmanager
    def silent(self) -> Any:
        """Whatever is printed or displayed inside goes nowhere."""
        before, self.outputs = self.outputs, None
        try:
            yield
        finally:
            self.outputs = before

    def update_display(self, display_id: Any, data: Any, metadata: Any) -> None:
        item = self.displays.get(str(display_id))
        if item is not None:
            fresh = Outputs(1 << 16, 1 << 20)
            fresh.rich("display_data", data, metadata)
            if fresh.items:
                item.update(data=fresh.items[0]["data"], metadata=fresh.items[0]["metadata"])


def _ends_quietly(source: str) -> bool:
    """A trailing semicolon, comments and blank lines aside, hides the cell's value."""
    if ";" not in source:
        return False
    try:
        tokens = [
            token.string
            for token in tokenize.generate_tokens(io.StringIO(source).readline)
            if token.type
            not in (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.ENDMARKER)
        ]
    except (tokenize.TokenError, SyntaxError):
        return False
    return bool(tokens) and tokens[-1] == ";"


def _no_input(prompt: object = "") -> str:
    raise StdinNotImplementedError("input() has nobody to ask while a notebook is graded")
