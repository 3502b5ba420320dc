"""Notebooks that carry the student's package within them."""

from __future__ import annotations

import base64
import io
import lzma
import os
import re
import subprocess
import venv
import zipfile
from pathlib import Path

import nbformat
import pytest
from authoring.lessons import SMALL
from environments.share import link_packages

from flashcourse.authoring.build import build
from flashcourse.authoring.standalone import NEEDED, build_standalone, student_package
from flashcourse.words import LANGUAGES

STANDALONE = Path("dist", "standalone")


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("course")
    (root / "notebooks").mkdir()
    (root / "notebooks" / "90_small.md").write_text(SMALL, encoding="utf-8")
    build(root)
    build_standalone(root)
    return root


def carrier(course: Path, lang: str) -> nbformat.NotebookNode:
    notebook = nbformat.read(course / STANDALONE / f"90_small.{lang}.ipynb", as_version=4)
    return next(cell for cell in notebook.cells if cell.id == "set-up")


def unpacked(package: bytes) -> zipfile.ZipFile:
    return zipfile.ZipFile(io.BytesIO(lzma.decompress(package)))


def test_there_is_one_file_for_each_lesson_and_language(course):
    names = {path.name for path in (course / STANDALONE).iterdir()}
    assert names == {"90_small.en.ipynb", "90_small.zh.ipynb"}


@pytest.mark.parametrize("lang", LANGUAGES)
def test_it_is_the_released_notebook_apart_from_the_set_up_cell(course, lang):
    alone = nbformat.read(course / STANDALONE / f"90_small.{lang}.ipynb", as_version=4)
    path = course / "release" / lang / "90_small" / "90_small.ipynb"
    released = nbformat.read(path, as_version=4)
    assert alone.metadata == released.metadata
    differ = [a.id for a, b in zip(alone.cells, released.cells, strict=True) if a != b]
    assert differ == ["set-up"]


def test_two_builds_write_the_same_bytes(course):
    before = {path.name: path.read_bytes() for path in (course / STANDALONE).iterdir()}
    build_standalone(course)
    assert before == {path.name: path.read_bytes() for path in (course / STANDALONE).iterdir()}


def test_the_package_does_not_depend_on_the_dates_of_its_files():
    dates = {entry.date_time for entry in unpacked(student_package()).filelist}
    assert dates == {(1980, 1, 1, 0, 0, 0)}


def test_it_carries_modules_and_data_but_no_instructors_part(course):
    package = re.search(r'package = """(.*?)"""', carrier(course, "en").source, re.DOTALL)
    names = unpacked(base64.b64decode(package[1])).namelist()
    assert "flashcourse/checks/registry.py" in names
    assert {Path(name).suffix for name in names} >= {".py", ".css", ".js"}
    instructors = ("authoring", "collecting", "grading", "report")
    assert not [name for name in names if name.split("/")[1] in instructors]


@pytest.mark.parametrize(
    ("lang", "label"), [("en", "carries the course's package"), ("zh", "自带")]
)
def test_the_carrier_is_folded_and_plainly_labelled(course, lang, label):
    cell = carrier(course, lang)
    assert cell.metadata.jupyter.source_hidden and cell.metadata.cellView == "form"
    first = cell.source.split("\n", 1)[0]
    assert first.startswith("# @title ") and re.search(r"\d+ kB", first)


def test_it_is_small(course):
    # A phone hotspot: half a megabyte is a few seconds.
    for path in (course / STANDALONE).iterdir():
        assert path.stat().st_size < 450_000, path


@pytest.fixture
def bare_python(tmp_path: Path) -> Path:
    venv.create(tmp_path / "bare", with_pip=False, symlinks=True)
    return tmp_path / "bare" / "bin" / "python"


def run(python: Path, code: str, packages: Path) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONUTF8": "1", "PYTHONPATH": str(packages)}
    env["TMPDIR"] = str(packages.parent)
    return subprocess.run(
        [python, "-"],  # by standard input: too long for an argument
        input=code,
        cwd=packages.parent,
        env=env,
        capture_output=True,
        text=True,
        timeout=100,
    )


def test_where_the_package_is_absent_it_is_unpacked_and_removed_at_the_end(
    course, tmp_path, bare_python
):
    packages = link_packages(tmp_path / "packages", NEEDED)
    look = """
import pathlib, flashcourse, flashcourse.words
home = pathlib.Path(flashcourse.__file__).parent
print(flashcourse.words.Text("a", "b"), home, (home / "views" / "player.js").is_file())
"""
    done = run(bare_python, carrier(course, "en").source + look, packages)
    assert done.returncode == 0, done.stderr
    said, home, has_data = done.stdout.split()
    assert (said, has_data) == ("a", "True")
    assert home.startswith(str(tmp_path / "flashcourse-"))
    assert not Path(home).exists()


def test_it_says_which_of_its_needs_are_not_met(course, tmp_path, bare_python):
    packages = link_packages(tmp_path / "packages", ["torch"], without=["numpy"])
    done = run(bare_python, carrier(course, "zh").source, packages)
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("ModuleNotFoundError: 这个 notebook 自带课程包")
    assert last.endswith("numpy, matplotlib, ipywidgets")


def test_where_the_package_is_installed_nothing_is_unpacked(course, tmp_path, bare_python):
    (tmp_path / "packages").mkdir()
    (tmp_path / "packages" / "flashcourse.py").touch()
    look = "\nimport flashcourse; print(flashcourse.__file__)"
    done = run(bare_python, carrier(course, "en").source + look, tmp_path / "packages")
    assert done.stdout.strip() == str(tmp_path / "packages" / "flashcourse.py")
