"""Break notebooks as browsers, sync tools, editors and students do."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable
from typing import Any

Notebook = dict[str, Any]
Rand = random.Random


def _cells(notebook: Notebook) -> list[Any]:
    cells = notebook.get("cells")
    return cells if isinstance(cells, list) else []


def _pick(notebook: Notebook, rand: Rand) -> Any:
    cells = [cell for cell in _cells(notebook) if isinstance(cell, dict)]
    return rand.choice(cells) if cells else {}


def delete_cell(notebook: Notebook, rand: Rand) -> None:
    if _cells(notebook):
        del notebook["cells"][rand.randrange(len(_cells(notebook)))]


def duplicate_cell(notebook: Notebook, rand: Rand) -> None:
    if _cells(notebook):
        cell = copy.deepcopy(rand.choice(notebook["cells"]))
        notebook["cells"].insert(rand.randrange(len(notebook["cells"]) + 1), cell)


def split_cell(notebook: Notebook, rand: Rand) -> None:
    cell = _pick(notebook, rand)
    lines = str(cell.get("source", "")).split("\n")
    if len(lines) > 1:
        at = rand.randrange(1, len(lines))
        cell["source"] = "\n".join(lines[:at])
        rest = {**copy.deepcopy(cell), "source": "\n".join(lines[at:])}
        notebook["cells"].insert(notebook["cells"].index(cell) + 1, rest)


def reorder(notebook: Notebook, rand: Rand) -> None:
    rand.shuffle(_cells(notebook))


def lose_metadata(notebook: Notebook, rand: Rand) -> None:
    _pick(notebook, rand)["metadata"] = {}


def lose_all_metadata(notebook: Notebook, rand: Rand) -> None:
    for cell in _cells(notebook):
        if isinstance(cell, dict):
            cell["metadata"] = {}
    notebook["metadata"] = {}


def edit_metadata(notebook: Notebook, rand: Rand) -> None:
    odd = rand.choice([None, [], "x", 7, {"grade_id": 5}, {"grade_id": "scale"}, {"points": -1}])
    _pick(notebook, rand)["metadata"] = {"nbgrader": odd, "flashcourse": odd}


def swap_type(notebook: Notebook, rand: Rand) -> None:
    _pick(notebook, rand)["cell_type"] = rand.choice(
        ["markdown", "code", "raw", "heading", 7, None]
    )


def odd_source(notebook: Notebook, rand: Rand) -> None:
    odd = [None, 7, {}, ["a\n", 1, None], "\ud800", "\x00", "x = (" * 300, "é" * 10_000]
    _pick(notebook, rand)["source"] = rand.choice(odd)


def odd_cell(notebook: Notebook, rand: Rand) -> None:
    _cells(notebook).insert(0, rand.choice([None, 7, [], "cell", {}, {"cell_type": "code"}]))


def odd_outputs(notebook: Notebook, rand: Rand) -> None:
    odd = [None, 7, [7], [{"output_type": "stream"}], [{"data": {"text/html": ["x"] * 1000}}]]
    _pick(notebook, rand)["outputs"] = rand.choice(odd)


def odd_top(notebook: Notebook, rand: Rand) -> None:
    key = rand.choice(["cells", "metadata", "nbformat", "nbformat_minor"])
    notebook[key] = rand.choice([None, 7, "x", [], {}, 10**30])


def huge_cell(notebook: Notebook, rand: Rand) -> None:
    cell = {"cell_type": "code", "metadata": {}, "source": "# " + "x" * 300_000}
    _cells(notebook).append(cell)


CHANGES: list[Callable[[Notebook, Rand], None]] = [
    delete_cell, duplicate_cell, split_cell, reorder, lose_metadata, lose_all_metadata,
    edit_metadata, swap_type, odd_source, odd_cell, odd_outputs, odd_top, huge_cell,
]  # fmt: skip


def truncate(data: bytes, rand: Rand) -> bytes:
    return data[: rand.randrange(len(data))]


def flip_bytes(data: bytes, rand: Rand) -> bytes:
    broken = bytearray(data)
    for _ in range(rand.randrange(1, 20)):
        broken[rand.randrange(len(broken))] = rand.randrange(256)
    return bytes(broken)


def other_encoding(data: bytes, rand: Rand) -> bytes:
    text = data.decode()
    return text.encode(rand.choice(["utf-16", "gb18030", "utf-8-sig", "utf-32"]))


def conflict_markers(data: bytes, rand: Rand) -> bytes:
    lines = data.decode().replace("{", "{\n", 3).split("\n")
    lines.insert(rand.randrange(len(lines)), "<<<<<<< HEAD")
    return "\n".join(lines).encode()


BYTES: list[Callable[[bytes, Rand], bytes]] = [
    truncate,
    flip_bytes,
    other_encoding,
    conflict_markers,
]


def broken(notebook: Notebook, seed: int) -> bytes:
    """One broken notebook, the same for the same seed."""
    rand = random.Random(seed)
    changed = copy.deepcopy(notebook)
    for change in rand.choices(CHANGES, k=rand.randrange(1, 5)):
        change(changed, rand)
    data = json.dumps(changed).encode()
    return rand.choice(BYTES)(data, rand) if rand.random() < 0.3 else data
