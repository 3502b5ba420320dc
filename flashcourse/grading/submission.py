"""Read what a student handed in, however broken it is."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from flashcourse.grading.limits import MAX_NOTEBOOK
from flashcourse.grading.names import MAX_PARSED
from flashcourse.grading.pictures import Pictures, lift
from flashcourse.words import Text

MAX_CELLS = 1000
MAX_CODE = 300_000  # characters of all code cells that are read (longer cells are only run)
MAX_ITEMS = 4_000_000  # lists, objects and items of them: each takes some 60 bytes of memory
MAX_SOURCE = 1_000_000  # characters of one cell


class Unreadable(ValueError):
    """Not a notebook, or one that can't be read. why: in words; also the message, in English."""

    def __init__(self, why: Text) -> None:
        super().__init__(why)
        self.why = why


_NO_NOTEBOOK = Text("it is JSON, but not a notebook", "内容是 JSON，但不是 notebook")


@dataclass(frozen=True)
class SubmittedCell:
    """All that is taken from a submitted cell. grade_id, key: what it claims to be, or ''.
    pictures: those attached to it."""

    kind: str
    source: str
    grade_id: str = ""
    key: str = ""
    pictures: Pictures = field(default_factory=dict, compare=False)


@dataclass(frozen=True)
class Submission:
    """lang: the edition it says it is, or what its text looks like ('en', 'zh', None)."""

    cells: tuple[SubmittedCell, ...]
    lang: str | None


def read_file(path: Path) -> bytes:
    """The bytes of a submitted file. Raises Unreadable (a link is never followed)."""
    try:
        if path.is_symlink() or not path.is_file():
            raise Unreadable(Text("it is a link or no file", "是链接，或者没有这个文件"))
        if path.stat().st_size > MAX_NOTEBOOK:
            most = f"{MAX_NOTEBOOK // 2**20} MiB"
            raise Unreadable(Text(f"it is larger than {most}", f"文件超过 {most}"))
        return path.read_bytes()
    except OSError as error:
        raise Unreadable(Text(*[f"{type(error).__name__}: {error.strerror}"] * 2)) from None


def read_submission(data: bytes) -> Submission:
    """The cells of a submitted notebook. Raises Unreadable."""
    notebook = _parse(_decode(data))
    cells = tuple(filter(None, map(_cell, _raw_cells(notebook)[:MAX_CELLS])))
    if not cells:
        raise Unreadable(Text("it has no cells", "没有任何单元格"))
    read = (len(cell.source) for cell in cells if cell.kind == "code")
    if sum(length for length in read if length <= MAX_PARSED) > MAX_CODE:
        most = f"{MAX_CODE:,}"
        raise Unreadable(
            Text(f"its code is longer than {most} characters", f"代码超过 {most} 个字符")
        )
    return Submission(cells, _language(notebook, cells))


def _decode(data: bytes) -> str:
    if not data.strip():
        raise Unreadable(Text("the file is empty", "文件是空的"))
    wide = data[:2] in (b"\xff\xfe", b"\xfe\xff")
    for encoding in ["utf-16"] if wide else ["utf-8-sig", "gb18030"]:
        try:
            return data.decode(encoding)
        except UnicodeDecodeError:
            continue
    raise Unreadable(Text("its text encoding is unknown", "无法识别文字编码"))


def _parse(text: str) -> dict[str, Any]:
    if sum(map(text.count, ",[{")) > MAX_ITEMS:
        raise Unreadable(Text("it has too many parts", "内容的条目太多"))
    try:
        notebook = json.loads(text)
    except RecursionError:
        raise Unreadable(Text("it is nested too deeply", "嵌套层数太多")) from None
    except ValueError as error:
        said = str(error)[:100]
        raise Unreadable(
            Text(f"it is not valid JSON ({said})", f"不是合法的 JSON（{said}）")
        ) from None
    if not isinstance(notebook, dict):
        raise Unreadable(_NO_NOTEBOOK)
    return notebook


def _raw_cells(notebook: dict[str, Any]) -> list[Any]:
    cells = notebook.get("cells")
    if not isinstance(cells, list):
        # Format 3 kept them in a worksheet.
        sheets = notebook.get("worksheets")
        sheet = sheets[0] if isinstance(sheets, list) and sheets else {}
        cells = sheet.get("cells") if isinstance(sheet, dict) else None
    if not isinstance(cells, list):
        raise Unreadable(_NO_NOTEBOOK)
    return cells


def _cell(raw: Any) -> SubmittedCell | None:
    if not isinstance(raw, dict):
        return None
    source, found = _text(raw.get("source", raw.get("input", ""))), Pictures()
    metadata = _dict(raw.get("metadata"))
    grade_id = _dict(metadata.get("nbgrader")).get("grade_id")
    key = _dict(metadata.get("flashcourse")).get("key") or raw.get("id")
    kind = "code" if raw.get("cell_type") == "code" else "markdown"
    if kind == "markdown":
        source, found = lift(source, raw.get("attachments"))
    return SubmittedCell(kind, source[:MAX_SOURCE], _name(grade_id), _name(key), found)


def _text(source: Any) -> str:
    if isinstance(source, list):
        source = "".join(line for line in source if isinstance(line, str))
    if not isinstance(source, str):
        return ""
    # A lone surrogate can be written in JSON, but not in UTF-8.
    return source.encode("utf-8", "replace").decode().replace("\r\n", "\n")


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _name(value: Any) -> str:
    return value if isinstance(value, str) and len(value) <= 200 else ""


def _language(notebook: dict[str, Any], cells: tuple[SubmittedCell, ...]) -> str | None:
    metadata = _dict(notebook.get("metadata"))
    said = _dict(metadata.get("flashcourse")).get("lang")
    if said in ("en", "zh"):
        return said
    text = "".join(cell.source for cell in cells if cell.kind != "code")[:50_000]
    if not text.strip():
        return None
    chinese = sum("\u4e00" <= letter <= "\u9fff" for letter in text)
    return "zh" if chinese > 0.1 * len(text) else "en"
