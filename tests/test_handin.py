"""What a student hears before handing in."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import mess
import nbformat
import pytest
from nbclient import NotebookClient
from sample_class import sample_class

from flashcourse.authoring.build import build
from flashcourse.cli import main
from flashcourse.handin import check_file, check_notebook
from flashcourse.words import LANGUAGES

LESSON = mess.LESSON
HAN = re.compile("[\u4e00-\u9fff]")


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("course")
    mess.lay_out(root)
    build(root)
    return root


def released(course: Path, lang: str = "en") -> dict:
    return json.loads((course / "release" / lang / LESSON / f"{LESSON}.ipynb").read_text("utf-8"))


def filled(course: Path) -> dict:
    """A notebook in which every answer is filled in."""
    notebook = mess.plain(sample_class(LESSON)[0], course)
    for cell in notebook["cells"]:
        if cell["metadata"].get("nbgrader", {}).get("grade_id", "").startswith("thinking"):
            cell["source"] = "Because of the traffic."
    return notebook


@pytest.fixture
def look(tmp_path: Path):
    def look(notebook: dict | bytes, lang: str | None = None):
        path = tmp_path / "mine.ipynb"
        path.write_bytes(notebook if isinstance(notebook, bytes) else mess.to_bytes(notebook))
        return check_file(path, lang)

    return look


def test_a_finished_notebook_is_ready(course, look):
    found = look(filled(course))
    assert found.accepted and found.finished
    assert str(found).startswith("mine.ipynb: Ready to hand in.")
    assert [remark.kind for remark in found.remarks] == ["good"] * 3


def test_what_was_not_begun_is_named_with_its_place(course, look):
    found = look(released(course))
    assert found.accepted and not found.finished
    lines = str(found).splitlines()
    assert re.fullmatch(r"  ✗ flash-forward \(cell \d+\): not begun\.", lines[1])
    assert [line.split()[1] for line in lines[1:]] == ["flash-forward", "thinking-1", "thinking-2"]


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("def f():\n    raise NotImplementedError('x')", "line 2 still raises NotImplementedError"),
        ("def f(:\n    pass", "line 1 is not valid Python"),
    ],
)
def test_unfinished_code_is_told_with_its_line(course, look, source, says):
    notebook = filled(course)
    notebook["cells"][mess.answer_at(notebook)]["source"] = source
    found = look(notebook)
    assert says in str(found) and found.accepted and not found.finished


def test_magics_in_an_answer_are_python_enough(course, look):
    notebook = filled(course)
    cell = notebook["cells"][mess.answer_at(notebook)]
    cell["source"] = "%matplotlib inline\n" + mess.source(cell)
    assert look(notebook).finished


def test_two_versions_of_an_answer_must_become_one(course, look):
    found = look(mess.copied_answer(filled(course)))
    assert re.search(r"flash-forward: there are 2 answers \(cells \d+, \d+\)", str(found))
    assert not found.finished


def test_an_answer_that_became_prose_must_be_code_again(course, look):
    notebook = filled(course)
    notebook["cells"][mess.answer_at(notebook)]["cell_type"] = "markdown"
    found = look(notebook)
    assert "is no code cell any more" in str(found) and not found.finished


def test_it_says_which_lesson_it_is(course, look):
    assert f"({LESSON})" in str(look(filled(course)))
    small = look(mess.small_lesson(course))
    assert "(90_small)" in str(small) and "90_small" in small._repr_html_()


def test_a_deleted_answer_is_told(course, look):
    notebook = filled(course)
    del notebook["cells"][mess.answer_at(notebook)]
    assert "flash-forward: the answer cell is gone" in str(look(notebook))


def test_meddled_tests_are_told_and_do_no_harm(course, look):
    found = look(mess.tests_meddled_with(filled(course)))
    assert found.finished
    assert "Test cells were changed: test-todo1. They are put back when graded." in str(found)
    assert "Test cells are gone: test-todo2." in str(found)


def test_space_at_the_ends_of_lines_changes_nothing(course, look):
    notebook = released(course)
    for cell in notebook["cells"]:
        cell["source"] = "\r\n".join(line + "  " for line in mess.source(cell).split("\n")) + "\n"
    before, after = look(released(course)), look(notebook)
    assert before.remarks == after.remarks


@pytest.mark.parametrize("form", [mess.colab, mess.vs_code, mess.no_ids, mess.no_labels])
def test_it_reads_what_other_tools_save(course, look, form):
    assert look(form(filled(course))).finished


def test_lost_labels_are_told(course, look):
    notebook = mess.no_ids(filled(course))
    notebook["metadata"].pop("flashcourse")
    found = look(notebook)
    assert found.accepted and "labels were lost" in str(found)
    assert not found.finished and "can't be told" in str(found)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"%PDF-1.7", "not a notebook"),
        (b"", "not a notebook"),
        (b"[1]", "not a notebook"),
        (b'{"cells": [{"cell_type": "co', "damaged"),
        (b'{"cells": [], "metadata": {}}', "not a notebook of this course"),
        ('{"cells": []}'.encode("utf-16"), "not saved as UTF-8"),
        (b" " * (65 * 2**20), "larger than 64 MiB"),
    ],
)
def test_what_will_not_be_accepted_is_told_with_the_reason(look, data, says):
    found = look(data, "en")
    assert not found.accepted and not found.finished
    assert "It will not be accepted" in str(found) and says in str(found)


def test_it_speaks_the_notebooks_language(course, look):
    found = look(released(course, "zh"))
    assert all(HAN.search(line) for line in str(found).splitlines())
    assert not HAN.search(str(look(released(course, "en"))))
    assert HAN.search(str(look(released(course, "en"), "zh")))


def test_every_notebook_ends_with_the_cell_that_looks(course):
    for lang in LANGUAGES:
        cells = released(course, lang)["cells"]
        assert [cell["id"] for cell in cells[-2:]] == ["before-handing-in", "check-notebook"]
        assert bool(HAN.search(mess.source(cells[-2]))) == (lang == "zh")


def test_the_cell_finds_its_own_notebook_in_jupyter(course, tmp_path, monkeypatch):
    """JupyterLab tells the kernel its notebook's path, from the server's root."""
    notebook = nbformat.reads(mess.to_bytes(filled(course)).decode(), as_version=4)
    (tmp_path / "mine.ipynb").write_text(nbformat.writes(notebook), encoding="utf-8")
    (tmp_path / "other.ipynb").write_text("{}", encoding="utf-8")
    monkeypatch.setenv("JPY_SESSION_NAME", "week3/mine.ipynb")
    notebook.cells = [notebook.cells[-1]]
    resources = {"metadata": {"path": str(tmp_path)}}
    NotebookClient(notebook, timeout=60, resources=resources).execute()
    (output,) = notebook.cells[0].outputs
    assert "Ready to hand in." in output.data["text/html"]
    assert "mine.ipynb: Ready" in output.data["text/plain"]


def test_the_cell_asks_for_the_name_where_nothing_tells_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("JPY_SESSION_NAME", raising=False)
    assert 'check_notebook("my-notebook.ipynb")' in str(check_notebook())
    assert 'check_notebook("my-notebook.ipynb")' in str(check_notebook("nowhere.ipynb"))


def test_the_command_works_outside_a_course_and_without_the_instructors_tools(course, tmp_path):
    (tmp_path / "mine.ipynb").write_bytes(mess.to_bytes(filled(course)))
    blocked = ["nbgrader", "nbformat", "jupytext", "nbconvert", "nbclient", "dask", "yaml"]
    code = (
        f"import sys; sys.modules.update(dict.fromkeys({blocked}))\n"
        "from flashcourse.cli import main; sys.exit(main(sys.argv[1:]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "check", "mine.ipynb"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert "Ready to hand in." in done.stdout


def test_the_commands_status_tells_finished_unfinished_and_refused(course, tmp_path, capsys):
    for name, data in (("0", filled(course)), ("1", released(course)), ("2", {"cells": []})):
        path = tmp_path / f"{name}.ipynb"
        path.write_bytes(mess.to_bytes(data))
        assert main(["check", str(path)]) == int(name)
    assert main(["check", str(tmp_path / "nowhere.ipynb")]) == 2
    assert "no such file" in capsys.readouterr().err
