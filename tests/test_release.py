"""What students get: both editions in step with notebooks/, and nothing that is not for them."""

from __future__ import annotations

import re
import subprocess
import sys
import zipfile
from pathlib import Path

import nbformat
import pytest

from flashcourse.authoring.lesson import Lesson, read_lesson

ROOT = Path(__file__).parents[1]
LESSONS = sorted((ROOT / "notebooks").glob("[0-9][0-9]_*.md"))
REGION = re.compile(r"### BEGIN SOLUTION\n(.*?)### END SOLUTION", re.DOTALL)
HIDDEN = re.compile(r"### BEGIN HIDDEN TESTS\n(.*?)### END HIDDEN TESTS", re.DOTALL)


def released(lesson: str, lang: str, station: str = "release") -> nbformat.NotebookNode:
    return nbformat.read(ROOT / station / lang / lesson / f"{lesson}.ipynb", as_version=4)


def code_text(notebook: nbformat.NotebookNode) -> str:
    return "\n".join(cell.source for cell in notebook.cells)


def statements(lines: str) -> list[str]:
    """Lines of code that say something: no comments, no imports, nothing very short."""
    stripped = (line.strip() for line in lines.split("\n"))
    return [s for s in stripped if len(s) > 12 and not s.startswith(("#", "from ", "import "))]


def sources(lesson: Lesson) -> str:
    return "\n".join(cell.source for cell in lesson.cells if cell.kind == "code")


def solution_regions(lesson: Lesson) -> list[list[str]]:
    """The solving statements of each region that stand nowhere else in the lesson."""
    elsewhere = "\n".join(REGION.sub("", cell.source) for cell in lesson.cells)
    # A TODO's own comment may give a line away on purpose.
    elsewhere += "".join(re.findall(r"^\s*#.*$", sources(lesson), re.MULTILINE))
    regions = [r for cell in lesson.cells for r in REGION.findall(cell.source)]
    return [[s for s in statements(r) if s not in elsewhere] for r in regions]


def hidden_tests(lesson: Lesson) -> list[str]:
    visible = "\n".join(HIDDEN.sub("", cell.source) for cell in lesson.cells)
    regions = [r for cell in lesson.cells for r in HIDDEN.findall(cell.source)]
    return [s for region in regions for s in statements(region) if s not in visible]


def instructors_prose(lesson: Lesson) -> list[str]:
    """Sentences of the explanations and model answers."""
    cells = [c for c in lesson.cells if c.option("only") == "instructor" or c.option("manual")]
    lines = [line.strip() for c in cells for line in c.source.split("\n")]
    return [line for line in lines if len(line) > 30]


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The text of every file in the wheel that students install."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps"]
    command += ["--no-build-isolation", "--wheel-dir", str(folder), str(ROOT)]
    subprocess.run(command, check=True, cwd=folder, timeout=120)
    with zipfile.ZipFile(next(folder.glob("*.whl"))) as archive:
        return {n: archive.read(n).decode("utf-8", "replace") for n in archive.namelist()}


def test_every_lesson_of_the_course_is_there() -> None:
    assert "03_flash_forward" in [path.stem for path in LESSONS]


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_release_holds_no_solution_explanation_or_hidden_test(path: Path, lang: str) -> None:
    lesson = read_lesson(path)
    text = code_text(released(lesson.id, lang))
    solution = [s for region in solution_regions(lesson) for s in region]
    secrets = [*solution, *hidden_tests(lesson), *instructors_prose(lesson)]
    assert len(solution) > 3
    assert [s for s in secrets if s in text] == []
    assert "BEGIN SOLUTION" not in text
    assert "HIDDEN TESTS" not in text


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_the_source_holds_what_the_release_leaves_out(path: Path) -> None:
    """The test above can fail: its secrets are in the instructor's notebooks, word for word."""
    lesson = read_lesson(path)
    text = "".join(code_text(released(lesson.id, lang, "source")) for lang in ("en", "zh"))
    secrets = [s for region in solution_regions(lesson) for s in region] + hidden_tests(lesson)
    assert [s for s in secrets if s not in text and "tr(" not in s] == []


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_the_wheel_holds_no_solution_explanation_or_hidden_test(
    path: Path, wheel: dict[str, str]
) -> None:
    """A single line may stand in a hint, the last of its three steps; a solution is more."""
    lesson = read_lesson(path)
    whole = "\n".join(wheel.values())
    secrets = [*hidden_tests(lesson), *instructors_prose(lesson)]
    assert [s for s in secrets if s in whole] == []
    for name, text in wheel.items():
        lines = [line.strip() for line in text.split("\n")]
        for region in solution_regions(lesson):
            runs = list(zip(region, region[1:], strict=False))
            pairs = set(zip(lines, lines[1:], strict=False))
            assert [run for run in runs if run in pairs] == [], name


def test_the_wheel_holds_the_package_and_nothing_of_the_course(wheel: dict[str, str]) -> None:
    folders = {name.split("/")[0] for name in wheel}
    assert {f for f in folders if not f.endswith(".dist-info")} == {"flashcourse"}
    assert not [name for name in wheel if name.endswith((".ipynb", ".md"))]


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_both_editions_have_the_same_graded_cells(path: Path) -> None:
    def graded(lang: str, station: str) -> list:
        cells = released(path.stem, lang, station).cells
        cells = [c for c in cells if c.metadata.get("nbgrader")]
        tests = [c.source for c in cells if c.metadata.nbgrader.locked and station == "source"]
        return [[(c.metadata.nbgrader.grade_id, c.metadata.nbgrader.get("points")) for c in cells],
                tests]  # fmt: skip

    for station in ("source", "release"):
        assert graded("en", station) == graded("zh", station)


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_a_student_meets_each_stub_once(path: Path) -> None:
    cells = [c for c in released(path.stem, "en").cells if c.metadata.get("nbgrader")]
    answers = [c for c in cells if c.metadata.nbgrader.solution and c.cell_type == "code"]
    assert answers
    assert {c.source.count("raise NotImplementedError") for c in answers} == {1}
