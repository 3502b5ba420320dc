"""The badges and the set-up cell on top of every notebook."""

from __future__ import annotations

import ast
import html
import importlib.util
import os
import re
import subprocess
import sys
import venv
import zipfile
from pathlib import Path
from urllib.parse import unquote

import nbformat
import pytest

from flashcourse.authoring.badges import SET_UP_TITLE, opening_cells, read_repository, set_up_cell
from flashcourse.authoring.errors import LessonError
from flashcourse.words import LANGUAGES

ROOT = Path(__file__).resolve().parents[1]
RELEASED = sorted(ROOT.glob("release/*/*/*.ipynb"))
SOURCES = [*RELEASED, *sorted(ROOT.glob("source/*/*/*.ipynb"))]
PREFIXES = (
    "https://colab.research.google.com/github/",
    "https://modelscope.cn/notebook/share/github/",
)


@pytest.fixture
def course(tmp_path: Path) -> Path:
    (tmp_path / "course.yml").write_text(
        "repository: {owner: ada, name: flash-course, branch: spring}", encoding="utf-8"
    )
    return tmp_path


def addresses(cell: nbformat.NotebookNode) -> list[str]:
    return [html.unescape(url) for url in re.findall(r'href="([^"]+)"', cell.source)]


@pytest.mark.parametrize("lang", LANGUAGES)
def test_each_badge_points_at_the_released_notebook_of_its_language(course, lang):
    badges = opening_cells(course, "03_flash_forward", lang)[0]
    path = f"release/{lang}/03_flash_forward/03_flash_forward.ipynb"
    assert addresses(badges) == [
        f"{prefix}ada/flash-course/blob/spring/{path}" for prefix in PREFIXES
    ]


def test_every_badge_in_the_course_opens_a_students_notebook_that_is_there():
    repository = read_repository(ROOT)
    found = 0
    for path in SOURCES:
        lang = path.relative_to(ROOT).parts[1]
        first = nbformat.read(path, as_version=4).cells[0]
        if first.id != "open-online":
            continue
        for address in addresses(first):
            place = unquote(address).split("/blob/", 1)[1].split("/", 1)[1]
            assert place.startswith(f"release/{lang}/{path.stem}/")
            assert (ROOT / place).is_file()
            found += 1
    expected = 2 * len(SOURCES) if repository else 0
    assert found == expected


def test_no_badge_when_the_repository_is_not_known(tmp_path):
    assert [cell.id for cell in opening_cells(tmp_path, "03_flash_forward", "en")] == ["set-up"]
    (tmp_path / "course.yml").write_text("repository:\n  owner:\n  name:\n", encoding="utf-8")
    assert [cell.id for cell in opening_cells(tmp_path, "03_flash_forward", "en")] == ["set-up"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("repository: {owner: ada}", "both an owner and a name"),
        ("repository: {owner: ada, nmae: x}", "write repository:"),
        ("repository: [", "not valid YAML"),
    ],
)
def test_half_a_repository_is_refused(tmp_path, text, says):
    (tmp_path / "course.yml").write_text(text, encoding="utf-8")
    with pytest.raises(LessonError, match=says):
        read_repository(tmp_path)


def test_a_badge_shows_without_any_network(course):
    badges = opening_cells(course, "03_flash_forward", "zh")[0].source
    pictures = re.findall(r'src="([^"]+)"', badges)
    assert len(pictures) == 2
    assert all(picture.startswith("data:image/svg+xml;base64,") for picture in pictures)
    assert "在魔搭社区中打开" in badges


def test_every_notebook_has_one_set_up_cell_before_any_other_code():
    for path in SOURCES:
        cells = nbformat.read(path, as_version=4).cells
        code = [cell for cell in cells if cell.cell_type == "code"]
        lang = path.relative_to(ROOT).parts[1]
        assert code[0].source == set_up_cell(lang).source, path
        assert [cell.id for cell in cells].count("set-up") == 1


def test_the_set_up_cell_does_nothing_where_the_package_is():
    tree = ast.parse(set_up_cell("en").source)
    # The import of importlib.util, and one `if` that is false.
    assert [type(node) for node in tree.body] == [ast.Import, ast.If]
    code = set_up_cell("en").source
    done = run(
        sys.executable, code + "\nprint({'glob', 'subprocess', 'pip'} & set(globals()))", ROOT
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "set()"


def test_the_set_up_cell_is_folded_and_titled_in_its_language():
    for lang in LANGUAGES:
        cell = set_up_cell(lang)
        assert cell.metadata.jupyter.source_hidden and cell.metadata.cellView == "form"
        assert cell.source.startswith(f"# @title {SET_UP_TITLE.in_(lang)}")


def test_the_set_up_cell_installs_the_newest_wheel_that_lies_beside_the_notebook(
    tmp_path, bare_python
):
    for version in ("0.9.0", "0.10.0"):
        write_wheel(tmp_path, version)
    code = set_up_cell("en").source + "\nimport flashcourse\nprint(flashcourse.__version__)"
    done = run(bare_python, code, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "0.10.0"


def test_the_set_up_cell_takes_no_stranger_from_the_index_for_the_course(tmp_path, bare_python):
    index = package_index(tmp_path, "99.0.0")
    done = run(bare_python, set_up_cell("en").source, tmp_path, **index)
    assert done.returncode != 0 and "there is no flashcourse" in done.stderr
    write_wheel(tmp_path, "0.9.0")
    code = set_up_cell("en").source + "\nimport flashcourse\nprint(flashcourse.__version__)"
    done = run(bare_python, code, tmp_path, **index)
    assert done.stdout.strip() == "0.9.0", done.stderr


def test_without_a_wheel_the_index_is_asked_for_the_name_that_the_configuration_gives(
    course, bare_python
):
    with (course / "course.yml").open("a", encoding="utf-8") as file:
        file.write("\npackage_on_index: flashcourse\n")
    set_up = opening_cells(course, "03_flash_forward", "en")[-1]
    code = set_up.source + "\nimport flashcourse\nprint(flashcourse.__version__)"
    done = run(bare_python, code, course, **package_index(course, "1.2.0"))
    assert done.stdout.strip() == "1.2.0", done.stderr


def test_what_is_no_package_name_is_refused(tmp_path):
    (tmp_path / "course.yml").write_text("package_on_index: a b; x", encoding="utf-8")
    with pytest.raises(LessonError, match="no name of a package"):
        opening_cells(tmp_path, "03_flash_forward", "en")


@pytest.mark.parametrize(
    ("lang", "says"), [("en", "could not be installed"), ("zh", "课程包没有装上")]
)
def test_without_wheel_and_network_it_says_what_to_do_in_the_notebooks_language(
    tmp_path, bare_python, lang, says
):
    source = set_up_cell(lang, on_index="flashcourse").source
    done = run(bare_python, source, tmp_path, PIP_NO_INDEX="1")
    assert done.returncode != 0
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("ModuleNotFoundError") and says in last and ".whl" in last
    assert "No matching distribution" in last


@pytest.fixture
def bare_python(tmp_path: Path) -> str:
    """An environment that holds pip and nothing else."""
    venv.create(tmp_path / "bare", with_pip=False, symlinks=True)
    site = next((tmp_path / "bare").glob("lib/python*/site-packages"))
    (site / "pip").symlink_to(Path(importlib.util.find_spec("pip").origin).parent)
    return str(tmp_path / "bare" / "bin" / "python")


def run(python: str, code: str, folder: Path, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [python, "-c", code],
        cwd=folder,
        env={**os.environ, "PYTHONUTF8": "1", "PYTHONPATH": "", **env},
        capture_output=True,
        text=True,
        timeout=120,
    )


def package_index(folder: Path, version: str) -> dict[str, str]:
    """Variables for a pip whose package index has flashcourse in this version and nothing else."""
    page = folder / "index" / "flashcourse"
    page.mkdir(parents=True)
    write_wheel(page, version)
    links = "".join(f'<a href="{path.name}">{path.name}</a>' for path in page.glob("*.whl"))
    (page / "index.html").write_text(f"<!DOCTYPE html><body>{links}</body>", encoding="utf-8")
    return {"PIP_INDEX_URL": (folder / "index").as_uri(), "PIP_CONFIG_FILE": os.devnull}


def write_wheel(folder: Path, version: str) -> None:
    info = f"flashcourse-{version}.dist-info"
    files = {
        "flashcourse/__init__.py": f'__version__ = "{version}"\n',
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: flashcourse\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/RECORD": "",
    }
    with zipfile.ZipFile(folder / f"flashcourse-{version}-py3-none-any.whl", "w") as wheel:
        for name, text in files.items():
            wheel.writestr(name, text)
