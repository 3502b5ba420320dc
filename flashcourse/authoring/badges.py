"""What stands on top of every notebook: badges that open it online, and the set-up cell.

The badges need to know where the repository lives; `course.yml` says it, once:

    repository: {owner: ada, name: flash-course, branch: main}

The set-up cell does nothing where flashcourse can be imported, so it does nothing while grading.
"""

from __future__ import annotations

import base64
import html
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
    "that carries the package within it. What pip said last: ",
    "课程包没有装上。办法：把 flashcourse-…-any.whl 这个文件（向老师要）放到这个 notebook 旁边，"
    "再运行一次这个单元格；或者向老师要自带课程包的 notebook。pip 最后的提示：",
)

# pip takes a wheel beside the notebook first, with no network; then what the package index has.
SET_UP = """\
# @title {title}
import importlib.util

if importlib.util.find_spec("flashcourse") is None:
    import glob
    import subprocess
    import sys

    attempts = [["--no-index", "--find-links=."]] if glob.glob("flashcourse-*.whl") else []
    for options in [*attempts, ["--find-links=."]]:
        pip = [sys.executable, "-m", "pip", "install", "--quiet", *options, "flashcourse"]
        done = subprocess.run(pip, capture_output=True, text=True)
        if done.returncode == 0:
            break
    importlib.invalidate_caches()
    if importlib.util.find_spec("flashcourse") is None:
        last = (done.stderr.strip() or "?").splitlines()[-1]
        raise ModuleNotFoundError("{not_installed}" + last)
"""


def read_repository(root: Path) -> Repository | None:
    """What course.yml in the course's root says; None where it names no repository.

    Raises LessonError for a file that can't be read or that names half a repository.
    """
    path = root / CONFIGURATION
    if not path.is_file():
        return None
    try:
        said = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    except yaml.YAMLError as error:
        raise LessonError(path, None, f"is not valid YAML: {error}") from error
    about = (said.get("repository") if isinstance(said, dict) else None) or {}
    if not isinstance(about, dict) or set(about) - {"owner", "name", "branch"}:
        raise LessonError(path, None, "write repository: {owner: …, name: …, branch: …}")
    owner, name = about.get("owner"), about.get("name")
    if bool(owner) != bool(name):
        raise LessonError(path, None, "repository needs both an owner and a name, or neither")
    if not owner:
        return None
    return Repository(str(owner), str(name), str(about.get("branch") or "main"))


def opening_cells(root: Path, lesson_id: str, lang: str) -> list[NotebookNode]:
    """The badges (if the repository is known) and the set-up cell of one edition."""
    cells = []
    repository = read_repository(root)
    if repository is not None:
        path = f"release/{lang}/{lesson_id}/{lesson_id}.ipynb"
        badges = " ".join(badge(place, repository.file(path), lang) for place in PLACES)
        cells.append(new_markdown_cell(badges, id=BADGES_KEY, metadata=own(BADGES_KEY)))
    cells.append(set_up_cell(lang))
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


def set_up_cell(lang: str) -> NotebookNode:
    source = SET_UP.format(title=SET_UP_TITLE.in_(lang), not_installed=NOT_INSTALLED.in_(lang))
    return new_code_cell(source.strip(), id=SET_UP_KEY, metadata=folded(SET_UP_KEY))


def folded(key: str) -> dict:
    """Metadata of a cell whose code is folded away in JupyterLab, VS Code and Colab."""
    # The tag: shown, but not run, when a submission is graded.
    fold = {"cellView": "form", "jupyter": {"source_hidden": True}}
    return {**fold, "tags": ["skip-grading"], **own(key)}
