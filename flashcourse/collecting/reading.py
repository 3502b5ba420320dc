"""The notebook in a file's bytes, however it was saved."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from flashcourse.collecting.notes import Note, Refused, repair

# What people hand in instead: told by how the file starts.
NOT_NOTEBOOKS = (
    (b"%PDF", "a PDF", "PDF"),
    (b"PK\x03\x04", "an archive or an office document", "压缩包或 Office 文档"),
    (b"\x89PNG", "a picture", "图片"),
    (b"\xff\xd8\xff", "a picture", "图片"),
    (b"<", "a web page", "网页"),
)


@dataclass(frozen=True)
class OpenCell:
    """One submitted cell. kind: 'code', 'markdown'. grade_id, key: what it claims to be, or ''."""

    kind: str
    source: str
    grade_id: str = ""
    key: str = ""


@dataclass(frozen=True)
class Opened:
    """A notebook as it was saved. lesson, lang: what it says it is, or ''."""

    cells: tuple[OpenCell, ...]
    lesson: str
    lang: str
    notes: tuple[Note, ...] = ()


def read_notebook(data: bytes, name: str = "") -> Opened:
    """The cells of the notebook in `data`. name: the file's. Raises Refused, saying what to do."""
    text, notes = decode(data)
    notebook = parse(text)
    raw = raw_cells(notebook)
    cells = tuple(filter(None, map(open_cell, raw)))
    if not any(cell.source.strip() for cell in cells):
        raise Refused(
            "has no cells: ask for the right file", "里面没有单元格：请学生提交正确的文件"
        )
    about = as_dict(as_dict(notebook.get("metadata")).get("flashcourse"))
    if name and not name.lower().endswith(".ipynb"):
        notes.append(
            repair(f"is a notebook, though named {name!r}", f"文件名是“{name}”，其实是 notebook")
        )
    notes += saved_forms(notebook, raw, cells)
    return Opened(cells, as_text(about.get("lesson")), as_text(about.get("lang")), tuple(notes))


def decode(data: bytes) -> tuple[str, list[Note]]:
    if not data.strip():
        raise Refused("the file is empty: ask for it again", "文件是空的：请学生重新提交")
    for start, en, zh in NOT_NOTEBOOKS:
        if data.lstrip()[: len(start)] == start:
            raise Refused(
                f"is {en}, not a notebook: ask for the .ipynb file",
                f"是{zh}，不是 notebook：请学生提交 .ipynb 文件",
            )
    utf_16 = data[:2] in (b"\xff\xfe", b"\xfe\xff")
    for encoding in ("utf-16",) if utf_16 else ("utf-8-sig", "gb18030"):
        try:
            text = data.decode(encoding)
        except UnicodeDecodeError:
            continue
        plain = encoding == "utf-8-sig"
        return text, [] if plain else [repair(f"was saved as {encoding}", f"文件编码是 {encoding}")]
    raise Refused(
        "its text encoding is unknown: ask for it again", "文件编码无法识别：请学生重新提交"
    )


def parse(text: str) -> dict[str, Any]:
    try:
        notebook = json.loads(text)
    except (ValueError, RecursionError) as error:
        if text.lstrip().startswith("{") and '"cells"' in text:
            raise Refused(
                "is a notebook that was cut off or damaged on its way: ask for it again",
                "notebook 传输时被截断或损坏：请学生重新提交",
            ) from error
        raise Refused(
            "is not a notebook: ask for the .ipynb file", "不是 notebook：请学生提交 .ipynb 文件"
        ) from error
    if not isinstance(notebook, dict):
        raise Refused("is JSON, but not a notebook", "是 JSON，但不是 notebook")
    return notebook


def raw_cells(notebook: dict[str, Any]) -> list[dict[str, Any]]:
    cells = notebook.get("cells")
    if not isinstance(cells, list):
        sheets = notebook.get("worksheets")  # format 3
        cells = as_dict(sheets[0]).get("cells") if isinstance(sheets, list) and sheets else None
    if not isinstance(cells, list):
        raise Refused("is JSON, but not a notebook", "是 JSON，但不是 notebook")
    return [cell for cell in cells if isinstance(cell, dict)]


def open_cell(raw: dict[str, Any]) -> OpenCell | None:
    source = raw.get("source", raw.get("input", ""))
    if isinstance(source, list):
        source = "".join(line for line in source if isinstance(line, str))
    if not isinstance(source, str):
        return None
    # A lone surrogate can stand in JSON, but not in a file.
    source = source.encode("utf-8", "replace").decode().replace("\r\n", "\n")
    metadata = as_dict(raw.get("metadata"))
    kind = "code" if raw.get("cell_type") == "code" else "markdown"
    key = as_text(as_dict(metadata.get("flashcourse")).get("key")) or as_text(raw.get("id"))
    return OpenCell(kind, source, as_text(as_dict(metadata.get("nbgrader")).get("grade_id")), key)


def saved_forms(
    notebook: dict[str, Any], raw: list[dict[str, Any]], cells: tuple[OpenCell, ...]
) -> list[Note]:
    """What the tool that saved the notebook did to it, as far as it had to be mended."""
    metadata = as_dict(notebook.get("metadata"))
    notes = []
    if "cells" not in notebook:
        notes.append(repair("was in the old format 3", "是旧的格式 3"))
    if "colab" in metadata:
        notes.append(repair("was saved by Colab", "由 Colab 保存"))
    elif any("vscode" in as_dict(cell.get("metadata")) for cell in raw):
        notes.append(repair("was saved by VS Code", "由 VS Code 保存"))
    if has_broken_widgets(metadata):
        notes.append(
            repair("widget state without 'state' taken out", "去掉了缺少 state 的控件状态")
        )
    if not any("id" in cell for cell in raw):
        notes.append(repair("cells had no ids", "单元格没有 id"))
    if not any(cell.grade_id for cell in cells):
        notes.append(repair("nbgrader's labels were lost", "nbgrader 标记丢失"))
    return notes


def has_broken_widgets(metadata: dict[str, Any]) -> bool:
    states = as_dict(metadata.get("widgets")).values()
    return any("state" not in as_dict(state) for state in states)


def as_dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def as_text(value: Any) -> str:
    return value if isinstance(value, str) and len(value) <= 200 else ""
