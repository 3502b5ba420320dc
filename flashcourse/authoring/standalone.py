"""One file that is enough: a released notebook that carries the student's package within it.

For a learner behind a firewall or on a phone hotspot. Nothing is fetched once torch, numpy,
matplotlib and ipywidgets are there. The notebook is the released one; only its set-up cell is
another: it unpacks the package into a scratch folder that goes when the kernel ends.
"""

from __future__ import annotations

import base64
import io
import lzma
import zipfile
from collections.abc import Iterable
from pathlib import Path

import nbformat
from nbformat.notebooknode import NotebookNode

import flashcourse
from flashcourse.authoring.badges import SET_UP_KEY
from flashcourse.authoring.build import find_lessons
from flashcourse.words import LANGUAGES, Text

FOLDER = Path("dist", "standalone")
INSTRUCTORS_PARTS = ("authoring", "collecting", "grading", "report")
# What the carried package needs of the learner's environment.
NEEDED = ("torch", "numpy", "matplotlib", "ipywidgets")
LINE = 500  # characters; short enough for an editor, long enough to add little to the file

TITLE = Text(
    "Run this cell first. It carries the course's package ({size} kB), so nothing is downloaded.",
    "请先运行这个单元格。课程包（{size} kB）就装在里面，不用下载任何东西。",
)
MISSING = Text(
    "This notebook carries its own course package, but it needs these to be installed: ",
    "这个 notebook 自带课程包，但还需要先装好：",
)
CARRIER = '''\
# @title {title}
import importlib.util

if importlib.util.find_spec("flashcourse") is None:
    import atexit
    import base64
    import io
    import lzma
    import shutil
    import sys
    import tempfile
    import zipfile

    missing = [name for name in {needed} if importlib.util.find_spec(name) is None]
    if missing:
        raise ModuleNotFoundError("{says_missing}" + ", ".join(missing))
    unpacked = tempfile.mkdtemp(prefix="flashcourse-")
    atexit.register(shutil.rmtree, unpacked, ignore_errors=True)
    sys.path.insert(0, unpacked)
    package = """
{package}
"""
    package = io.BytesIO(lzma.decompress(base64.b64decode(package)))
    zipfile.ZipFile(package).extractall(unpacked)
    importlib.invalidate_caches()
'''


def build_standalone(root: Path, names: Iterable[str] = ()) -> list[Path]:
    """Write dist/standalone/<lesson>.<lang>.ipynb from release/, for the named lessons or all.

    The same bytes at every call. Raises LessonError for a name that is not there.
    """
    package = base64.b64encode(student_package()).decode()
    written = []
    (root / FOLDER).mkdir(parents=True, exist_ok=True)
    for lesson in find_lessons(root, names):
        for lang in LANGUAGES:
            released = root / "release" / lang / lesson.stem / f"{lesson.stem}.ipynb"
            notebook = carry(nbformat.read(released, as_version=4), package, lang)
            path = root / FOLDER / f"{lesson.stem}.{lang}.ipynb"
            text = nbformat.writes(notebook) + "\n"
            path.write_text(text, encoding="utf-8", newline="\n")
            written.append(path)
    return written


def carry(notebook: NotebookNode, package: str, lang: str) -> NotebookNode:
    """`notebook` with the set-up cell replaced by one that holds `package` (base64)."""
    lines = (package[start : start + LINE] for start in range(0, len(package), LINE))
    source = CARRIER.format(
        title=TITLE.in_(lang).format(size=round(len(package) / 1000)),
        needed=NEEDED,
        says_missing=MISSING.in_(lang),
        package="\n".join(lines),
    )
    for cell in notebook.cells:
        if cell.id == SET_UP_KEY:
            cell.source = source.strip()
    return notebook


def student_package() -> bytes:
    """What a student needs of flashcourse, modules and data: a zip within xz, the same bytes.

    The zip stores and xz packs all files as one, which is a quarter smaller than zip's own way.
    """
    home = Path(flashcourse.__file__).parent
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for path in sorted(home.rglob("*")):
            name = path.relative_to(home)
            if path.is_file() and is_students(name):
                # A fixed date: the file's own would change the bytes with every checkout.
                entry = zipfile.ZipInfo(f"flashcourse/{name.as_posix()}", (1980, 1, 1, 0, 0, 0))
                entry.external_attr = 0o644 << 16
                archive.writestr(entry, path.read_bytes())
    return lzma.compress(buffer.getvalue(), preset=9)


def is_students(name: Path) -> bool:
    return name.parts[0] not in INSTRUCTORS_PARTS and "__pycache__" not in name.parts
