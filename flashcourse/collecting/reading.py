"""The notebook in a file's bytes, however it was saved."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from flashcourse.collecting.notes import Note, Refused, repair
from flashcourse.grading.pictures import Pictures, lift
from flashcourse.grading.submission import MAX_CELLS, MAX_ITEMS

# What people hand in instead: told by how the file starts.
NOT_NOTEBOOKS = (
    (b"%PDF", "a PDF", "PDF"),
    (b"PK\x03\x04", "an archive or an office document", "压缩包或 Office 文档"),
    (b"\x89PNG", "a picture", "图片"),
    (b"\xff\xd8\xff", "a picture", "图片"),
    (b"GIF8", "a picture", "图片"),
    (b"Rar!", "a .rar archive", ".rar 压缩包"),
    (b"7z\xbc\xaf", "a .7z archive", ".7z 压缩包"),
    (b"\x1f\x8b", "a .gz archive", ".gz 压缩包"),
    (
        b"\xd0\xcf\x11\xe0",
        "an Outlook message or an old Office document",
        "Outlook 邮件或旧版 Office 文档",
    ),
    (b"<", "a web page", "网页"),
)


@dataclass(frozen=True)
class OpenCell:
    """One submitted cell. kind: 'code', 'markdown'. grade_id, key: what it claims to be, or ''.
    pictures: those attached to it that can be kept. lost: whether something else was attached."""

    kind: str
    source: str
    grade_id: str = ""
    key: str = ""
    pictures: Pictures = field(default_factory=dict, compare=False)
    lost: bool = False


@dataclass(frozen=True)
class Opened:
    """A notebook as it was saved. lesson, lang: what it says it is, or ''."""

    cells: tuple[OpenCell, ...]
    lesson: str
    lang: str
    notes: tuple[Note, ...] = ()


def read_notebook(data: bytes, name: str = "") -> Opened:
    """The cells of the notebook in `data`. name: the file's. Raises Refused, saying what to do."""
    text, notes = decode(data, aside=bool(name) and ".ipynb" not in name.lower())
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


def decode(data: bytes, aside: bool) -> tuple[str, list[Note]]:
    if not data.strip():
        raise Refused("the file is empty: ask for it again", "文件是空的：请学生重新提交", aside)
    for start, en, zh in NOT_NOTEBOOKS:
        if data.lstrip()[: len(start)] == start:
            raise Refused(
                f"is {en}, not a notebook: ask for the .ipynb file",
                f"是{zh}，不是 notebook：请学生提交 .ipynb 文件",
                aside=True,
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
        "is no text in an encoding that is known: ask for the .ipynb file, saved as UTF-8",
        "不是文本，或者编码无法识别：请学生提交 UTF-8 编码的 .ipynb 文件",
        aside,
    )


def parse(text: str) -> dict[str, Any]:
    if sum(map(text.count, ",[{")) > MAX_ITEMS:
        raise too_much("too many parts", "太多内容")
    try:
        notebook = json.loads(text)
    except (ValueError, RecursionError) as error:
        if text.lstrip().startswith("{") and '"cells"' in text:
            raise Refused(
                "is a notebook that was cut off or damaged on its way: ask for it again",
                "notebook 传输时被截断或损坏：请学生重新提交",
            ) from error
        raise Refused(
            "is not a notebook: ask for the .ipynb file",
            "不是 notebook：请学生提交 .ipynb 文件",
            aside=True,
        ) from error
    if not isinstance(notebook, dict):
        raise just_json()
    return notebook


def just_json() -> Refused:
    return Refused(
        "is JSON, but not a notebook: ask for the .ipynb file",
        "是 JSON，但不是 notebook：请学生提交 .ipynb 文件",
        aside=True,
    )


def raw_cells(notebook: dict[str, Any]) -> list[dict[str, Any]]:
    sheets = notebook.get("worksheets")  # format 3
    parts = [notebook, *map(as_dict, sheets if isinstance(sheets, list) else ())]
    lists = [part["cells"] for part in parts if isinstance(part.get("cells"), list)]
    if not lists:
        raise just_json()
    found = [cell for cells in lists for cell in cells if isinstance(cell, dict)]
    if len(found) > MAX_CELLS:
        raise too_much(f"{len(found)} cells", f"{len(found)} 个单元格")
    return found


def too_much(en: str, zh: str) -> Refused:
    return Refused(
        f"has {en}, more than is read: ask the student to tidy it up and hand in again",
        f"有{zh}，超出了能读的数量：请学生整理后重新提交",
    )


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
    grade_id = as_text(as_dict(metadata.get("nbgrader")).get("grade_id"))
    attached, found = as_dict(raw.get("attachments")), Pictures()
    if kind == "markdown":
        source, found = lift(source, attached)
    lost = "](lost:" in source or len(found) < len(attached)
    return OpenCell(kind, source, grade_id, key, found, lost)


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
