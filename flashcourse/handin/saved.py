"""A saved notebook, read with nothing but the standard library, and what it says about itself."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any

from flashcourse.words import Text

NOT_A_NOTEBOOK = Text(
    "This is not a notebook. Hand in the .ipynb file, not a PDF, a web page or a picture of it.",
    "这不是 notebook。请提交 .ipynb 文件，不要提交 PDF、网页或截图。",
)
MAX_BYTES = 64 * 2**20  # of a file that collecting takes
TOO_LARGE = Text(
    "The file is larger than 64 MiB. Clear all outputs (menu Edit), save, and look again.",
    "文件超过 64 MiB。请在“编辑”菜单里清除所有输出，保存后再检查。",
)
NOT_UTF_8 = Text(
    "The file is not saved as UTF-8. Open it in Jupyter, Colab or VS Code and save it again.",
    "文件不是 UTF-8 编码。请用 Jupyter、Colab 或 VS Code 打开，重新保存。",
)
DAMAGED = Text(
    "The file is damaged or was cut off. Save the notebook again, or download it again.",
    "文件损坏或不完整。请重新保存，或重新下载。",
)


class NotAccepted(Exception):
    """A file that can't be handed in. text: why, and what to do."""

    def __init__(self, text: Text) -> None:
        super().__init__(text.en)
        self.text = text


@dataclass(frozen=True)
class Cell:
    """number: its place in the notebook, from 1. grade_id, key: its labels, or ''."""

    number: int
    is_code: bool
    source: str
    grade_id: str
    key: str


@dataclass(frozen=True)
class Part:
    """One graded cell as it was given. kind: 'answer', 'manual' or 'test'. given: fingerprint."""

    grade_id: str
    key: str
    kind: str
    points: float
    given: str


@dataclass(frozen=True)
class Saved:
    """lesson, lang: what the notebook says it is, or ''. parts: empty if that record was lost."""

    cells: tuple[Cell, ...]
    lesson: str
    lang: str
    parts: tuple[Part, ...]


def fingerprint(source: str) -> str:
    """Equal for texts that differ only in space at the ends of lines and of the cell."""
    text = "\n".join(line.rstrip() for line in source.strip().splitlines())
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]


def read_saved(data: bytes) -> Saved:
    """The notebook in `data`. Raises NotAccepted."""
    if len(data) > MAX_BYTES:
        raise NotAccepted(TOO_LARGE)
    try:
        notebook = json.loads(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        looks_like_one = b'"cells"' in data.replace(b"\0", b"")
        raise NotAccepted(NOT_UTF_8 if looks_like_one else NOT_A_NOTEBOOK) from error
    except (ValueError, RecursionError) as error:
        looks_like_one = data.lstrip()[:1] == b"{" and b'"cells"' in data
        raise NotAccepted(DAMAGED if looks_like_one else NOT_A_NOTEBOOK) from error
    raw = notebook.get("cells") if isinstance(notebook, dict) else None
    if not isinstance(raw, list):
        raise NotAccepted(NOT_A_NOTEBOOK)
    about = _dict(_dict(notebook.get("metadata")).get("flashcourse"))
    parts = tuple(_part(entry) for entry in about.get("graded", ()) if isinstance(entry, dict))
    cells = tuple(_cell(n, c) for n, c in enumerate(raw, 1) if isinstance(c, dict))
    return Saved(cells, _text(about.get("lesson")), _text(about.get("lang")), parts)


def _cell(number: int, raw: dict[str, Any]) -> Cell:
    source = raw.get("source", "")
    source = "".join(map(str, source)) if isinstance(source, list) else str(source)
    metadata = _dict(raw.get("metadata"))
    key = _text(_dict(metadata.get("flashcourse")).get("key")) or _text(raw.get("id"))
    grade_id = _text(_dict(metadata.get("nbgrader")).get("grade_id"))
    return Cell(number, raw.get("cell_type") == "code", source, grade_id, key)


def _part(entry: dict[str, Any]) -> Part:
    points = entry.get("points", 0)
    return Part(
        _text(entry.get("id")),
        _text(entry.get("key")),
        _text(entry.get("kind")),
        points if isinstance(points, (int, float)) else 0,
        _text(entry.get("given")),
    )


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
