"""What stands on top of every notebook: badges that open it online, and the set-up cell.

The badges need to know where the repository lives; `course.yml` says it, once:

    repository: {owner: ada, name: flash-course, branch: main}
    package_on_index: flash-course-of-ada

The second names the package on the package index, once it is published there. Without it the
set-up cell asks no index for the package: a name that nobody has taken yet anybody can take, and
what it installs runs on every student's machine.

The set-up cell does nothing where flashcourse can be imported, so it does nothing while grading.
"""

from __future__ import annotations

import base64
import html
import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import yaml
from nbformat.notebooknode import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell

from flashcourse.authoring.errors import LessonError
from flashcourse.words import Text

CONFIGURATION = "course.yml"
BADGES_KEY, SET_UP_KEY = "open-online", "set-up"


@dataclass(frozen=True)
class Repository:
    """A public GitHub repository and the branch that students read."""

    owner: str
    name: str
    branch: str = "main"

    def file(self, path: str) -> str:
        """`<owner>/<name>/blob/<branch>/<path>`, as Colab's and ModelScope's links want it."""
        return quote(f"{self.owner}/{self.name}/blob/{self.branch}/{path}")


@dataclass(frozen=True)
class Place:
    """A service that opens a notebook from GitHub by its address."""

    name: Text
    address: str
    colour: str


PLACES = (
    Place(
        Text("Open in Colab", "在 Colab 中打开"),
        "https://colab.research.google.com/github/",
        "#c25700",
    ),
    Place(
        Text("Open in ModelScope", "在魔搭社区中打开"),
        "https://modelscope.cn/notebook/share/github/",
        "#5b3df5",
    ),
)

SET_UP_TITLE = Text(
    "Set-up: run this cell first. It does nothing where the course is installed already.",
    "准备：请先运行这个单元格。如果课程包已经装好，它什么也不做。",
)
NOT_INSTALLED = Text(
    "The course's package could not be installed. What to do: put the file flashcourse-…-any.whl "
    "(your teacher has it) beside this notebook and run this cell again, or ask for the notebook "
    "that carries the package within it. Why it failed: ",
    "课程包没有装上。办法：把 flashcourse-…-any.whl 这个文件（向老师要）放到这个 notebook 旁边，"
    "再运行一次这个单元格；或者向老师要自带课程包的 notebook。失败原因：",
)
NO_WHEEL = Text(
    "there is no flashcourse-…-any.whl beside this notebook.",
    "这个 notebook 旁边没有 flashcourse-…-any.whl。",
)

# First a wheel beside the notebook, with no network; then the same with what it needs from the
# package index; then the package from the index, under the name that course.yml gives, if any.
SET_UP = """\
# @title {title}
import importlib.util

if importlib.util.find_spec("flashcourse") is None:
    import glob
    import re
    import subprocess
    import sys

    wheels = glob.glob("flashcourse-*.whl")
    wheels.sort(key=lambda name: [int(number) for number in re.findall("[0-9]+", name)])
    attempts = [["--no-index", "--find-links=.", wheels[-1]], [wheels[-1]]] if wheels else []
{on_index}    last = "{no_wheel}"
    for what in attempts:
        pip = [sys.executable, "-m", "pip", "install", "--quiet", *what]
        done = subprocess.run(pip, capture_output=True, text=True)
        if done.returncode == 0:
            break
        last = (done.stderr.strip() or "?").splitlines()[-1]
    importlib.invalidate_caches()
    if importlib.util.find_spec("flashcourse") is None:
        raise ModuleNotFoundError("{not_installed}" + last)
"""


def read_repository(root: Path) -> Repository | None:
    """Where course.yml in the course's root says that the repository lives; None if it doesn't.

    Raises LessonError for a file that can't be read or that names half a repository.
    """
    path = root / CONFIGURATION
    about = _configuration(path).get("repository") or {}
    if not isinstance(about, dict) or set(about) - {"owner", "name", "branch"}:
        raise LessonError(path, None, "write repository: {owner: …, name: …, branch: …}")
    owner, name = about.get("owner"), about.get("name")
    if bool(owner) != bool(name):
        raise LessonError(path, None, "repository needs both an owner and a name, or neither")
    if not owner:
        return None
    return Repository(str(owner), str(name), str(about.get("branch") or "main"))


def read_package_on_index(root: Path) -> str | None:
    """The package's name on the package index, by course.yml; None if it is not published.

    Raises LessonError for what can't be such a name.
    """
    path = root / CONFIGURATION
    name = _configuration(path).get("package_on_index")
    if name is None:
        return None
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", str(name)):
        raise LessonError(path, None, f"package_on_index: {name!r} is no name of a package")
    return str(name)


def _configuration(path: Path) -> dict:
    if not path.is_file():
        return {}
    try:
        said = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    except yaml.YAMLError as error:
        raise LessonError(path, None, f"is not valid YAML: {error}") from error
    return said if isinstance(said, dict) else {}


def opening_cells(root: Path, lesson_id: str, lang: str) -> list[NotebookNode]:
    """The badges (if the repository is known) and the set-up cell of one edition."""
    cells = []
    repository = read_repository(root)
    if repository is not None:
        path = f"release/{lang}/{lesson_id}/{lesson_id}.ipynb"
        badges = " ".join(badge(place, repository.file(path), lang) for place in PLACES)
        cells.append(new_markdown_cell(badges, id=BADGES_KEY, metadata=own(BADGES_KEY)))
    cells.append(set_up_cell(lang, read_package_on_index(root)))
    return cells


def own(key: str) -> dict:
    return {"flashcourse": {"key": key}}


def badge(place: Place, path: str, lang: str) -> str:
    """A link with a picture that is carried along: nothing is fetched to show it."""
    name = place.name.in_(lang)
    picture = base64.b64encode(badge_svg(name, place.colour).encode()).decode()
    return (
        f'<a href="{html.escape(place.address + path)}"><img alt="{html.escape(name)}" '
        f'src="data:image/svg+xml;base64,{picture}" style="display:inline"></a>'
    )


def badge_svg(name: str, colour: str) -> str:
    # A Chinese character is about twice as wide as a Latin one.
    width = 24 + sum(13 if ord(letter) > 0x2E7F else 7 for letter in name)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="24" role="img">'
        f'<rect width="{width}" height="24" rx="5" fill="{colour}"/>'
        f'<text x="{width // 2}" y="16.5" fill="#fff" font-family="sans-serif" font-size="12.5" '
        f'text-anchor="middle">{name}</text></svg>'
    )


def set_up_cell(lang: str, on_index: str | None = None) -> NotebookNode:
    """on_index: the package's name on the package index, if it may be taken from there."""
    source = SET_UP.format(
        title=SET_UP_TITLE.in_(lang),
        not_installed=NOT_INSTALLED.in_(lang),
        no_wheel=NO_WHEEL.in_(lang),
        on_index=f'    attempts.append(["{on_index}"])\n' if on_index else "",
    )
    return new_code_cell(source.strip(), id=SET_UP_KEY, metadata=folded(SET_UP_KEY))


def folded(key: str) -> dict:
    """Metadata of a cell whose code is folded away in JupyterLab, VS Code and Colab."""
    # The tag: shown, but not run, when a submission is graded.
    fold = {"cellView": "form", "jupyter": {"source_hidden": True}}
    return {**fold, "tags": ["skip-grading"], **own(key)}
