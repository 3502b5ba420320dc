"""From a lesson to the instructor's and the student's notebooks."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import nbformat
import pytest
from lessons import SMALL, changed, write_lesson

from flashcourse.authoring.build import build, differences
from flashcourse.authoring.errors import LessonError


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("course")
    write_lesson(root)
    build(root)
    return root


def notebook(root: Path, station: str, lang: str):
    return nbformat.read(root / station / lang / "90_small" / "90_small.ipynb", as_version=4)


def cell(root: Path, station: str, lang: str, key: str):
    return next(c for c in notebook(root, station, lang).cells if c.id == key)


def test_a_second_build_writes_the_same_bytes(course: Path) -> None:
    before = {p: p.read_bytes() for p in course.rglob("*.ipynb")}
    assert len(before) == 4
    build(course)
    assert {p: p.read_bytes() for p in course.rglob("*.ipynb")} == before
    assert differences(course) == []


def test_each_edition_holds_its_own_language_only(course: Path) -> None:
    assert "就绪" not in json.dumps(notebook(course, "source", "en"), ensure_ascii=False)
    assert cell(course, "source", "en", "start").source == 'n = 3  # rows\nprint("ready", n)'
    assert cell(course, "source", "zh", "start").source == 'n = 3  # 行\nprint("就绪", n)'


def test_a_docstring_keeps_its_quotes_in_both_languages(course: Path) -> None:
    for lang, words in (("en", "The square of x."), ("zh", "x 的平方。")):
        tree = ast.parse(cell(course, "source", lang, "answer-square").source)
        assert ast.get_docstring(tree.body[0]) == words  # type: ignore[arg-type]


def test_the_student_keeps_every_todo_in_order_and_one_stub(course: Path) -> None:
    source = cell(course, "release", "en", "answer-square").source
    assert source.count("raise NotImplementedError") == 1
    assert source.index("TODO 1") < source.index("raise") < source.index("TODO 2")
    assert source.count("# y = ???") == 2
    with pytest.raises(NotImplementedError):
        scope: dict = {}
        exec(source, scope)
        scope["square"](2)


def test_the_stub_speaks_the_edition_s_language(course: Path) -> None:
    assert "尚未完成" in cell(course, "release", "zh", "answer-square").source
    assert "Not finished" in cell(course, "release", "en", "answer-square").source


def test_no_solution_explanation_or_hidden_test_is_released(course: Path) -> None:
    secrets = ("y * x", "secret explanation", "1234567", "square(-7)", "Model answer", "参考答案")
    secrets += ("explained", "解析", "BEGIN SOLUTION", "HIDDEN TESTS")
    source = "".join(p.read_text() for p in (course / "source").rglob("*.ipynb"))
    release = "".join(p.read_text() for p in (course / "release").rglob("*.ipynb"))
    for secret in secrets:
        assert secret in source
        assert secret not in release


def test_a_test_cell_that_is_all_hidden_says_so(course: Path) -> None:
    assert "hidden tests" in cell(course, "release", "en", "test-hidden").source
    assert "隐藏测试" in cell(course, "release", "zh", "test-hidden").source


def test_grade_ids_points_and_test_code_are_equal_in_both_editions(course: Path) -> None:
    def graded(lang: str) -> list:
        cells = [c for c in notebook(course, "source", lang).cells if "nbgrader" in c.metadata]
        return [
            (c.metadata.nbgrader, c.source if c.metadata.nbgrader.locked else None) for c in cells
        ]

    assert graded("en") == graded("zh")
    assert len(graded("en")) == 4


def test_check_names_the_file_that_was_edited_by_hand(course: Path) -> None:
    path = course / "release" / "zh" / "90_small" / "90_small.ipynb"
    good = path.read_bytes()
    path.write_bytes(good.replace("平方".encode(), "立方".encode(), 1))
    assert any("release/zh/90_small/90_small.ipynb differs" in line for line in differences(course))
    path.write_bytes(good)


def test_check_names_a_folder_without_a_lesson(course: Path) -> None:
    (course / "source" / "en" / "91_gone").mkdir()
    assert differences(course) == ["source/en/91_gone has no lesson in notebooks/"]
    (course / "source" / "en" / "91_gone").rmdir()


def test_a_picture_travels_inside_its_cell(tmp_path: Path) -> None:
    picture = "\n\n![grid](figures/grid.en.svg)"
    text = SMALL.replace("# Squares", "# Squares" + picture)
    text = text.replace("# 平方", "# 平方" + picture.replace("grid.en", "grid.zh"))
    write_lesson(tmp_path, text)
    (tmp_path / "notebooks" / "figures").mkdir()
    for lang in ("en", "zh"):
        (tmp_path / "notebooks" / "figures" / f"grid.{lang}.svg").write_text("<svg/>")
    build(tmp_path)
    source = cell(tmp_path, "release", "en", "title").source
    assert '<img alt="grid" src="data:image/svg+xml;base64,PHN2Zy8+"' in source


def test_a_missing_picture_is_named(tmp_path: Path) -> None:
    both = SMALL.replace("# Squares", "# Squares\n\n![g](figures/gone.svg)")
    write_lesson(tmp_path, both.replace("# 平方", "# 平方\n\n![g](figures/gone.svg)"))
    with pytest.raises(LessonError, match=r"90_small.md: title: .*gone.svg does not exist"):
        build(tmp_path)


def test_a_broken_lesson_leaves_what_was_built_untouched(tmp_path: Path) -> None:
    path = write_lesson(tmp_path)
    build(tmp_path)
    before = {p: p.read_bytes() for p in tmp_path.rglob("*.ipynb")}
    path.write_text(changed("$s = x^2$", "$s = x^3$"))
    with pytest.raises(LessonError):
        build(tmp_path)
    assert {p: p.read_bytes() for p in tmp_path.rglob("*.ipynb")} == before


def test_an_unknown_lesson_is_named_with_those_there_are(course: Path) -> None:
    with pytest.raises(LessonError, match="77_none.*there are: 90_small"):
        build(course, ["77_none"])


def test_a_student_cell_that_is_no_python_is_refused(tmp_path: Path) -> None:
    write_lesson(tmp_path, changed("    for _ in range(1):\n        pass\n", "    if x:\n"))
    with pytest.raises(LessonError, match="answer-square: without its solution .*line"):
        build(tmp_path)
