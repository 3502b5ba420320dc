"""What is found in folders, archives and e-mails, and what is refused before it is read."""

from __future__ import annotations

import io
import os
import zipfile
from pathlib import Path

import mess
import pytest

from flashcourse.collecting.incoming import Incoming, find_incoming
from flashcourse.collecting.notes import Refused
from flashcourse.collecting.reading import read_notebook
from flashcourse.words import LANGUAGES

NOTEBOOK = b'{"cells": []}'


def found(path: Path, data: bytes, name: str = "work.zip") -> list[Incoming]:
    (path / name).write_bytes(data)
    return list(find_incoming([path / name]))


def why(item: Incoming) -> str:
    assert item.refused is not None
    assert all(item.refused.text.in_(lang) for lang in LANGUAGES)
    return item.refused.text.en


def packed(name: str, data: bytes) -> bytearray:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, data)
    return bytearray(buffer.getvalue())


def locked(archive: bytearray) -> bytes:
    """The archive with the mark that says: a password is needed."""
    archive[archive.index(b"PK\x03\x04") + 6] |= 1
    archive[archive.index(b"PK\x01\x02") + 8] |= 1
    return bytes(archive)


def scrambled(archive: bytearray) -> bytes:
    """The archive with its packed bytes turned around; its lists are left whole."""
    start = archive.index(b"x.ipynb") + len(b"x.ipynb")
    archive[start : start + 40] = bytes(255 - byte for byte in archive[start : start + 40])
    return bytes(archive)


def test_a_locked_archive_says_password(tmp_path):
    (item,) = found(tmp_path, locked(packed("ada/x.ipynb", NOTEBOOK)))
    assert why(item) == "is locked with a password: ask for the notebook itself"


def test_one_broken_archive_stops_nobody_elses(tmp_path):
    (tmp_path / "a.zip").write_bytes(scrambled(packed("x.ipynb", bytes(range(256)) * 9)))
    (tmp_path / "b.zip").write_bytes(packed("x.ipynb", NOTEBOOK)[:50])
    (tmp_path / "c.ipynb").write_bytes(NOTEBOOK)
    a, b, c = find_incoming([tmp_path])
    assert "can't be unpacked" in why(a) and "can't be unpacked" in why(b)
    assert c.data == NOTEBOOK and c.refused is None


@pytest.mark.parametrize("mib", [9, 65])
def test_what_unpacks_to_far_more_than_it_is_is_not_unpacked(tmp_path, mib):
    (item,) = found(tmp_path, packed("x.ipynb", b" " * mib * 2**20))
    assert f"is too large ({mib} MiB)" in why(item)


def test_an_archive_with_nothing_in_it_is_told(tmp_path):
    for archive in (mess.zipped({}), mess.zipped({"__MACOSX/._x.ipynb": b"1"})):
        (item,) = found(tmp_path, archive)
        assert "has no file in it" in why(item)


def test_what_systems_and_tools_leave_behind_is_no_file(tmp_path):
    files = ("ada/.venv/lib/x.py", "ada/._x.ipynb", "ada/.DS_Store", "ada/node_modules/x.js")
    (item,) = found(tmp_path, mess.zipped(dict.fromkeys((*files, "ada/x.ipynb"), NOTEBOOK)))
    assert item.path == "work.zip/ada/x.ipynb"


def test_an_autosave_is_told_and_not_taken(tmp_path):
    (item,) = found(tmp_path, mess.zipped({"a/.ipynb_checkpoints/x-checkpoint.ipynb": NOTEBOOK}))
    assert "autosave" in why(item)


def test_a_link_is_told_and_not_followed(tmp_path):
    (tmp_path / "ada").mkdir()
    (tmp_path / "ada" / "x.ipynb").symlink_to("/etc/passwd")
    (item,) = find_incoming([tmp_path])
    assert "is a link" in why(item)


@pytest.mark.parametrize(
    ("raw", "name"),
    [("张三.ipynb".encode("gb18030"), "张三.ipynb"), (b"Jos\xe9.ipynb", "José.ipynb")],
)
def test_names_that_are_no_utf_8_can_be_read(tmp_path, raw, name):
    (tmp_path / os.fsdecode(raw)).write_bytes(NOTEBOOK)
    (item,) = find_incoming([tmp_path])
    assert item.path == name


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"Rar!\x1a\x07\x01\x00", "a .rar archive"),
        (b"7z\xbc\xaf\x27\x1c", "a .7z archive"),
        (b"\x1f\x8b\x08", "a .gz archive"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1", "an Outlook message"),
    ],
)
def test_what_is_no_notebook_is_called_by_its_name_whatever_it_is_named(data, says):
    with pytest.raises(Refused, match=says) as refused:
        read_notebook(data, "x.ipynb")
    assert refused.value.aside


def test_a_notebook_that_was_damaged_is_never_passed_over():
    with pytest.raises(Refused, match="cut off or damaged") as refused:
        read_notebook(b'{"cells": [', "x.ipynb")
    assert not refused.value.aside


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b'{"cells": [' + b"{}," * 1500 + b"{}]}", "1501 cells"),
        (b'{"cells": [' + b"1," * 5_000_000 + b"1]}", "too many parts"),
    ],
)
def test_what_would_take_minutes_to_read_is_refused(data, says):
    with pytest.raises(Refused, match=says):
        read_notebook(data)


def test_format_3_may_have_several_worksheets():
    sheet = '{"cells": [{"cell_type": "code", "input": "%s"}]}'
    data = f'{{"worksheets": [{sheet % "a"}, {sheet % "b"}]}}'.encode()
    assert [cell.source for cell in read_notebook(data).cells] == ["a", "b"]
