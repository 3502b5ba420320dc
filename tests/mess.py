"""What students hand in: the sample class of lesson 3, made into files of every kind of mess."""

from __future__ import annotations

import copy
import io
import json
import re
import sys
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import nbformat

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "examples"))

from sample_class import Submission, as_saved_by_colab, handed_in, sample_class  # noqa: E402

LESSON = "03_flash_forward"
Notebook = dict[str, Any]


@dataclass(frozen=True)
class Mess:
    """One handed-in file. says: a piece of a note that must be there, or None."""

    what: str
    path: str
    data: bytes
    student: str
    sample: Submission | None
    outcome: str = "taken"
    says: str | None = None


def lay_out(course: Path) -> None:
    """A course with lesson 3 as in this repository, without need of its checks."""
    from authoring.lessons import SMALL

    folder = course / "notebooks"
    folder.mkdir(parents=True)
    (folder / "figures").symlink_to(ROOT / "notebooks" / "figures")
    text = (ROOT / "notebooks" / f"{LESSON}.md").read_text(encoding="utf-8")
    (folder / f"{LESSON}.md").write_text(re.sub(r":exercise: .*\n", "", text), encoding="utf-8")
    (folder / "90_small.md").write_text(SMALL, encoding="utf-8")
    (course / "nbgrader_config.py").write_bytes((ROOT / "nbgrader_config.py").read_bytes())


def plain(sample: Submission, course: Path) -> Notebook:
    return json.loads(nbformat.writes(handed_in(sample, course)))


def to_bytes(notebook: Notebook) -> bytes:
    return json.dumps(notebook, ensure_ascii=False, indent=1).encode()


def answer_at(notebook: Notebook) -> int:
    return next(
        n
        for n, cell in enumerate(notebook["cells"])
        if cell["metadata"].get("nbgrader", {}).get("grade_id") == "flash-forward"
    )


def source(cell: Notebook) -> str:
    return "".join(cell["source"])


# What tools and people do to a notebook.


def colab(notebook: Notebook) -> Notebook:
    node = as_saved_by_colab(nbformat.from_dict(notebook))
    return json.loads(json.dumps(node))


def vs_code(notebook: Notebook) -> Notebook:
    notebook["metadata"]["language_info"] = {"name": "python", "version": "3.12.1"}
    for cell in notebook["cells"]:
        cell["metadata"]["vscode"] = {"languageId": cell["cell_type"]}
    return notebook


def no_ids(notebook: Notebook) -> Notebook:
    notebook["nbformat_minor"] = 4
    for cell in notebook["cells"]:
        cell.pop("id", None)
    return notebook


def no_labels(notebook: Notebook) -> Notebook:
    for cell in notebook["cells"]:
        cell["metadata"].pop("nbgrader", None)
    return notebook


def no_metadata(notebook: Notebook) -> Notebook:
    notebook = no_ids(notebook)
    notebook["metadata"] = {}
    for cell in notebook["cells"]:
        cell["metadata"] = {}
    return notebook


def copied_answer(notebook: Notebook) -> Notebook:
    """An older version, unfinished, stands above; its label was copied along."""
    at = answer_at(notebook)
    first = copy.deepcopy(notebook["cells"][at])
    first["source"] = source(first).replace("out_i", "out_x") + "\n# first try"
    first.pop("id", None)
    notebook["cells"].insert(at, first)
    return notebook


def halves(notebook: Notebook) -> tuple[int, Notebook, Notebook]:
    """The answer cell's number, and the cell cut in two inside its inner loop."""
    at = answer_at(notebook)
    cell = notebook["cells"][at]
    lines = source(cell).split("\n")
    middle = len(lines) * 2 // 3
    parts = []
    for text in ("\n".join(lines[:middle]), "\n".join(lines[middle:])):
        part = copy.deepcopy(cell)
        part["source"] = text
        part.pop("id", None)
        parts.append(part)
    return at, parts[0], parts[1]


def split_with_labels(notebook: Notebook) -> Notebook:
    at, first, second = halves(notebook)
    notebook["cells"][at : at + 1] = [first, second]
    return notebook


def split_without_label(notebook: Notebook) -> Notebook:
    at, first, second = halves(notebook)
    second["metadata"] = {}
    notebook["cells"][at : at + 1] = [first, second]
    return notebook


def tests_meddled_with(notebook: Notebook) -> Notebook:
    kept = []
    for cell in notebook["cells"]:
        name = cell["metadata"].get("nbgrader", {}).get("grade_id")
        if name == "test-todo2":
            continue
        if name == "test-todo1":
            cell["source"] = "print(10)"
        kept.append(cell)
    notebook["cells"] = kept
    return notebook


def format_3(notebook: Notebook) -> Notebook:
    cells = []
    for cell in notebook["cells"]:
        old = {"cell_type": cell["cell_type"], "metadata": cell["metadata"]}
        old["input" if cell["cell_type"] == "code" else "source"] = cell["source"]
        cells.append(old)
    return {"nbformat": 3, "nbformat_minor": 0, "metadata": {}, "worksheets": [{"cells": cells}]}


def own_cells_between(notebook: Notebook) -> Notebook:
    at = answer_at(notebook)
    own = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": 7}
    notebook["cells"].insert(at, {**own, "source": "def my_helper(x):\n    return x"})
    notebook["cells"].append({**own, "source": "print('end')"})
    return notebook


def many_outputs(notebook: Notebook) -> Notebook:
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            cell["outputs"] = [{"output_type": "stream", "name": "stdout", "text": "x" * 10_000}]
    notebook["metadata"]["widgets"] = {"application/vnd.jupyter.widget-state+json": {"a": 1}}
    return notebook


def other_editions_prose(notebook: Notebook) -> Notebook:
    """The notebook says nothing of its edition; some prose was put through a translator."""
    notebook["metadata"].pop("flashcourse")
    for cell in notebook["cells"][:12]:
        if cell["cell_type"] == "markdown":
            cell["source"] = "翻译：" + source(cell)[:20]
    return notebook


# The files.

Form = Callable[[Notebook], Notebook]


def messy_files(course: Path) -> list[Mess]:
    """Files by themselves, each below the folder that is collected."""
    samples = [s for s in sample_class(LESSON) if s.outcome == "graded" and s.answers]
    number = iter(range(10_000))

    def make(
        what: str,
        path: str,
        student: str,
        form: Form = lambda n: n,
        says: str | None = None,
        encode: Callable[[Notebook], bytes] = to_bytes,
        outcome: str = "taken",
    ) -> Mess:
        sample = samples[next(number) % len(samples)]
        notebook = plain(sample, course)
        notebook["metadata"]["own"] = what  # else two students hand in the very same file
        data = encode(form(notebook))
        taken = sample if outcome == "taken" else None
        return Mess(what, path, data, student, taken, outcome, says)

    name = f"{LESSON}.ipynb"
    return [
        make("as it should be", f"ada/{name}", "ada"),
        make("nbgrader's own layout", f"bob/{LESSON}/{name}", "bob"),
        make("a copy, renamed", f"carol/Copy of {LESSON} (1).ipynb", "carol"),
        make("a Chinese name and copy", f"王芳/{LESSON} - 副本.ipynb", "王芳"),
        make("named by the student", f"{LESSON}_dan.ipynb", "dan"),
        make("named the other way round", f"erin-{LESSON} (2).ipynb", "erin"),
        make("an address as a folder", f"fay@example.edu/{name}", "fay"),
        make("saved by Colab", f"gil/{name}", "gil", colab, "saved by Colab"),
        make("saved by VS Code", f"hal/{name}", "hal", vs_code, "saved by VS Code"),
        make("no cell ids", f"ida/{name}", "ida", no_ids, "cells had no ids"),
        make("nbgrader's labels lost", f"jo/{name}", "jo", no_labels, "labels were lost"),
        make("all metadata lost", f"kim/{name}", "kim", no_metadata, "found by what it defines"),
        make("answer copied", f"lee/{name}", "lee", copied_answer, "2 versions (cells"),
        make("answer split, labels copied", f"mia/{name}", "mia", split_with_labels, "was split"),
        make("answer split, no label", f"nan/{name}", "nan", split_without_label, "was split"),
        make("tests meddled with", f"oli/{name}", "oli", tests_meddled_with, "test-todo1"),
        make("format 3", f"pat/{name}", "pat", format_3, "old format 3"),
        make("own cells between", f"quin/{name}", "quin", own_cells_between),
        make("outputs and widget state", f"ray/{name}", "ray", many_outputs, "without 'state'"),
        make("prose translated", f"sam/{name}", "sam", other_editions_prose),
        make("called .txt", f"tom/{name}.txt", "tom", says="though named"),
        make("UTF-16", f"uma/{name}", "uma", encode=lambda n: to_bytes(n).decode().encode("utf-16"),
             says="saved as utf-16"),
        make("byte order mark", f"vic/{name}", "vic",
             encode=lambda n: to_bytes(n).decode().encode("utf-8-sig")),
        make("GB 18030", f"wu/{name}", "wu",
             encode=lambda n: to_bytes(n).decode().encode("gb18030"), says="gb18030"),
        make("in a zip in a zip", "xia/work.zip", "xia", encode=lambda n: zipped(
            {"inner.zip": zipped({f"stuff/../{name}": to_bytes(n)})})),
        make("cut off", f"yan/{name}", "yan", encode=lambda n: to_bytes(n)[:5000],
             outcome="refused", says="cut off"),
        Mess("a PDF", "zoe/lesson.pdf", b"%PDF-1.7 ...", "zoe", None, "refused", "is a PDF"),
        Mess("empty", f"abe/{name}", b"", "abe", None, "refused", "is empty"),
        Mess("a web page", "bea/x.html", b"<!DOCTYPE html>", "bea", None, "refused", "web page"),
        Mess("a rar", "cal/work.rar", b"Rar!", "cal", None, "refused", "unpack it"),
        Mess("another lesson", f"dot/{name}", small_lesson(course), "dot", None, "refused",
             "is lesson 90_small"),
        Mess("another's notebook", "eve/x.ipynb", to_bytes({"cells": [
            {"cell_type": "code", "metadata": {}, "source": "1 + 1"}], "metadata": {}}),
            "eve", None, "refused", "almost nothing"),
        make("nobody's", f"{LESSON}_final.ipynb", "", outcome="refused", says="whose it is"),
    ]  # fmt: skip


def small_lesson(course: Path) -> bytes:
    return (course / "release" / "en" / "90_small" / "90_small.ipynb").read_bytes()


class OldWindowsEntry(zipfile.ZipInfo):
    """An entry whose name is in GBK, and which does not say so."""

    def _encodeFilenameFlags(self) -> tuple[bytes, int]:
        return self.filename.encode("gb18030"), self.flag_bits


def zipped(files: dict[str, bytes], entry: type[zipfile.ZipInfo] = zipfile.ZipInfo) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in files.items():
            archive.writestr(entry(name, (2026, 10, 1, 12, 0, 0)), data)
    return buffer.getvalue()


def mailed(address: str, attachments: dict[str, bytes]) -> bytes:
    message = EmailMessage()
    message["From"] = f"Some One <{address}>"
    message["Date"] = "Mon, 05 Oct 2026 10:30:00 +0800"
    message["Subject"] = "homework"
    message.set_content("Dear teacher, here it is.")
    for name, data in attachments.items():
        message.add_attachment(data, "application", "octet-stream", filename=name)
    return bytes(message)


def write(folder: Path, files: list[Mess]) -> None:
    for mess in files:
        path = folder / mess.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(mess.data)
