"""The class report, from results as grading leaves them."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path

import pytest

from flashcourse.cli import main
from flashcourse.collecting.roster import read_roster
from flashcourse.report.exports import canvas_csv, marks_csv, moodle_csv
from flashcourse.report.gather import NothingGraded, gather, without_names
from flashcourse.report.insight import eyes, patterns, success, waiting
from flashcourse.report.page import page
from flashcourse.words import LANGUAGES, Text

ROOT = Path(__file__).resolve().parents[1]
LESSON = "03_flash_forward"
MAX = {"test-todo1": 10, "test-todo2": 10, "test-whole": 20, "thinking-1": 10}
HAN = re.compile("[\u4e00-\u9fff]")
ROSTER = """id,first_name,last_name,email,canvas_id
ada,Ada,Lovelace,ada@example.edu,501
bo,芳,王,bo@example.edu,502
cy,=Cy,Evil,cy@example.edu,503
di,Di,Absent,di@example.edu,504
"""


def finding(misconception: str | None, en: str, line: int | None = 2) -> dict:
    return {
        "text": [en, "中文说明"],
        "misconception": misconception,
        "todo": 1,
        "line": line,
        "hints": [["Does `m` start too high?", "`m` 的初始值是不是太大？"]],
    }


def graded(
    root: Path,
    student: str,
    points: list[float | None],
    status: list[str],
    outcome: tuple[str, str, str | list[str]] = ("graded", "", ""),
    **more,
) -> None:
    """Write the notebook that grading leaves behind."""
    grading = {
        "outcome": dict(zip(("kind", "where", "detail"), outcome, strict=True)),
        "points": dict(zip(MAX, points, strict=True)),
        "max_points": MAX,
        "status": dict(zip(MAX, status, strict=True)),
        "details": {},
        "unchanged": [],
        "doubts": [],
        "lang": "en",
        **more,
    }
    answer = {
        "cell_type": "code",
        "metadata": {"nbgrader": {"solution": True, "grade": False}},
        "source": ["def f(q):\n", "    m = torch.zeros(3)  # by Ada Lovelace\n"],
    }
    notebook = {"cells": [answer], "metadata": {"flashcourse": {"grading": grading}}}
    path = root / "autograded" / student / LESSON / f"{LESSON}.ipynb"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(notebook), encoding="utf-8")


@pytest.fixture
def course(tmp_path: Path) -> Path:
    root = tmp_path
    (root / "nbgrader_config.py").touch()
    (root / "students.csv").write_text(ROSTER, encoding="utf-8")
    right = ["right"] * 3 + ["manual"]
    graded(root, "ada", [10, 10, 20, None], right)
    wrong = {"test-todo1": [finding("m-starts-at-zero", "`m[0, 0]` starts at 0")]}
    wrong["test-whole"] = [finding("m-starts-at-zero", "rows differ"), finding(None, "other")]
    graded(root, "bo", [0, 10, 5, 8], ["wrong", "right", "wrong", "manual"], findings=wrong)
    doubts = [["f, line 3: `softmax` calls it", "f，第 3 行：`softmax` 调用"]]
    stopped, slow = ("timed_out", "f", ["30 s", "30 秒"]), ["too_slow"] * 3 + ["manual"]
    graded(root, "cy", [0, 0, 0, 0], slow, stopped, unchanged=["thinking-1"], doubts=doubts)
    store = root / "submitted" / ".collected" / LESSON
    store.mkdir(parents=True)
    entry = {"student": "bo", "name": "王芳", "path": "王芳/x.ipynb", "outcome": "taken"}
    note = {"kind": "doubt", "en": "2 versions; took the last", "zh": "有 2 个版本；取最后一个"}
    fine = {"kind": "repair", "en": "cells had no ids", "zh": "没有 id"}
    entries = [{**entry, "notes": [note, fine]}]
    (store / "collected.json").write_text(json.dumps(entries), encoding="utf-8")
    return root


def test_success_counts_each_way_in_which_an_exercise_can_end(course):
    rows = {row.label: row for row in success(gather(course, LESSON))}
    assert list(rows) == ["TODO 1", "TODO 2", "whole", "thinking-1"]
    assert rows["TODO 1"].counts == {"right": 1, "wrong": 1, "too_slow": 1}
    assert rows["whole"].counts == {"right": 1, "partly": 1, "too_slow": 1}
    assert rows["thinking-1"].counts == {"manual": 1, "partly": 1, "unfinished": 1}
    # (10 + 0 + 0) / 3 of 10; thinking-1: Ada's waits, so (8 + 0) / 2 of 10.
    assert rows["TODO 1"].average == pytest.approx(1 / 3)
    assert rows["thinking-1"].average == pytest.approx(0.4)


def test_an_exercise_has_the_title_that_its_learners_see(course):
    shutil.copytree(ROOT / "release" / "zh" / LESSON, course / "release" / "zh" / LESSON)
    rows = {row.label: row for row in success(gather(course, LESSON))}
    assert rows["whole"].title == Text("The whole function", "整个函数")
    assert rows["thinking-1"].title.en == "thinking-1"  # marked by a person: no exercise
    assert "<td>整个函数</td>" in page(gather(course, LESSON), "zh")


def test_words_that_stood_elsewhere_and_were_marked_by_hand_count(course):
    given = ["right"] * 3 + ["manual"]
    graded(course, "flo", [10, 10, 20, 6], given, unchanged=["thinking-1"])
    rows = {row.label: row for row in success(gather(course, LESSON))}
    assert rows["thinking-1"].counts == {"manual": 1, "partly": 2, "unfinished": 1}


def test_points_in_full_with_a_slip_carried_forward_are_told_from_right(course):
    graded(course, "ed", [0, 10, 20, 0], ["wrong", "right", "wrong", "manual"])
    rows = {row.label: row for row in success(gather(course, LESSON))}
    assert rows["whole"].counts == {"right": 1, "partly": 1, "too_slow": 1, "carried": 1}


def test_a_misconception_counts_once_for_each_student(course):
    (pattern,) = patterns(gather(course, LESSON))
    assert (pattern.id, pattern.students) == ("m-starts-at-zero", 1)
    assert pattern.labels == ("TODO 1", "whole")


def test_an_example_shows_the_line_without_its_comment(course):
    (pattern,) = patterns(gather(course, LESSON))
    assert pattern.example.line == "m = torch.zeros(3)"


def test_who_needs_a_human_eye(course):
    found = {eye.student: eye for eye in eyes(gather(course, LESSON))}
    assert set(found) == {"bo", "cy"}
    assert found["cy"].urgent and not found["bo"].urgent
    assert [reason.en for reason in found["bo"].reasons] == [
        "王芳/x.ipynb: 2 versions; took the last"
    ]
    assert found["cy"].reasons[0] == Text(
        "Stopped: it took too long (cell f): 30 s.", "运行超时，已停止（单元格 f）：30 秒。"
    )
    assert found["cy"].reasons[1].zh == "f，第 3 行：`softmax` 调用"


def test_what_earlier_versions_kept_in_english_alone_is_still_read(course):
    doubts = ["f, line 3: `gc` looks around"]
    stopped = ("timed_out", "f", "30 s")
    graded(course, "eve", [0, 0, 0, 0], ["not_run"] * 4, stopped, doubts=doubts)
    (eye,) = [eye for eye in eyes(gather(course, LESSON)) if eye.student == "eve"]
    assert [reason.zh for reason in eye.reasons] == [
        "运行超时，已停止（单元格 f）：30 s。", "f, line 3: `gc` looks around",
    ]  # fmt: skip
    assert "looks around" in page(gather(course, LESSON), "zh")


def test_answers_in_words_that_wait_are_counted(course):
    assert waiting(gather(course, LESSON)) == [("thinking-1", 1)]


def test_who_is_listed_and_handed_nothing_in_is_named(course):
    assert gather(course, LESSON).missing == (("di", "Di Absent"),)


def test_marks_of_the_gradebook_count_where_there_is_one(course):
    from nbgrader.api import Gradebook

    with Gradebook(f"sqlite:///{course}/gradebook.db") as gradebook:
        gradebook.add_assignment(LESSON)
        gradebook.add_notebook("n", LESSON)
        gradebook.add_grade_cell("thinking-1", "n", LESSON, max_score=10, cell_type="markdown")
        gradebook.add_student("ada")
        gradebook.add_submission(LESSON, "ada")
        grade = gradebook.find_grade("thinking-1", "n", LESSON, "ada")
        grade.manual_score = 7
        gradebook.db.commit()
    known = gather(course, LESSON)
    assert {work.student: work.total for work in known.works} == {"ada": 7, "bo": 23, "cy": 0}
    assert waiting(known) == []
    rows = {row.label: row for row in success(known)}
    assert rows["thinking-1"].average == pytest.approx((7 + 8 + 0) / 3 / 10)


class Page(HTMLParser):
    """Which elements are open, and what is fetched."""

    VOID = {"meta", "br", "rect", "line", "img", "link"}

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.fetched: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.fetched += [value for name, value in attrs if name in ("src", "href")]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in self.VOID:
            assert self.open.pop() == tag


@pytest.mark.parametrize("lang", LANGUAGES)
def test_the_page_is_well_formed_and_fetches_nothing(course, lang):
    text = page(gather(course, LESSON), lang)
    parsed = Page(text)
    assert parsed.open == [] and parsed.fetched == []
    assert "http" not in text.replace("http://www.w3.org/2000/svg", "")
    assert "<script" not in text


def test_the_english_page_has_no_chinese_but_names(course):
    text = page(gather(course, LESSON), "en").replace("王芳", "")
    assert not HAN.search(text)


@pytest.mark.parametrize("lang", LANGUAGES)
def test_with_names_left_out_nothing_tells_who(course, lang):
    known = without_names(gather(course, LESSON))
    everything = page(known, lang) + marks_csv(known, lang)
    for name in ("ada", "Ada", "Lovelace", "bo", "王", "芳", "cy", "Cy", "Absent", "example.edu"):
        assert not re.search(rf"(?<![A-Za-z]){name}(?![A-Za-z])", everything), name
    assert {work.student for work in known.works} < {"#1", "#2", "#3", "#4"}


def test_markup_in_names_and_findings_is_shown_as_text(course):
    evil = {"test-todo1": [finding("<b>x</b>", "<script>alert(1)</script>")]}
    graded(course, "<img src=x>", [0, 0, 0, 0], ["wrong"] * 4, findings=evil)
    text = page(gather(course, LESSON), "en")
    assert "<script" not in text and "<img" not in text and "&lt;script&gt;" in text


def rows_of(text: str) -> list[dict[str, str]]:
    assert text.startswith("\ufeff")
    return list(csv.DictReader(io.StringIO(text[1:])))


def test_the_table_of_marks_has_a_line_for_everybody(course):
    rows = {row["student"]: row for row in rows_of(marks_csv(gather(course, LESSON), "en"))}
    assert set(rows) == {"ada", "bo", "cy", "di"}
    assert (rows["ada"]["total"], rows["ada"]["thinking-1"]) == ("40", "")
    assert rows["di"]["total"] == "" and rows["cy"]["doubts"] == "1"


def test_moodles_file_tells_students_by_id_and_address(course):
    rows = rows_of(moodle_csv(gather(course, LESSON), "en"))
    assert rows[0]["ID number"] == "ada" and rows[0]["Email address"] == "ada@example.edu"
    assert rows[0][LESSON] == "40"
    assert rows[0]["Feedback"] == (
        "Graded. Not final yet: your teacher still has to mark thinking-1. "
        "Up to 10 points can be added."
    )
    assert rows[1]["Feedback"] == "Graded."


def test_canvas_file_has_its_columns_and_the_points_possible(course):
    text = canvas_csv(gather(course, LESSON), "en")
    rows = rows_of(text)
    header = ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", LESSON]
    assert list(rows[0]) == header
    assert rows[0]["Student"].strip() == "Points Possible" and rows[0][LESSON] == "50"
    assert (rows[1]["Student"], rows[1]["ID"]) == ("Lovelace, Ada", "501")


def test_no_cell_of_a_csv_file_is_a_formula(course):
    known = gather(course, LESSON)
    for text in (marks_csv(known, "en"), moodle_csv(known, "en"), canvas_csv(known, "en")):
        assert "=Cy" in text
        for row in csv.reader(io.StringIO(text[1:])):
            assert not [value for value in row if value[:1] in "=+-@" and value]


def test_a_student_whom_the_platform_can_not_know_stops_no_import(course, capsys):
    graded(course, "zoe", [10, 10, 20, 10], ["right"] * 3 + ["manual"])
    known = gather(course, LESSON)
    for text in (moodle_csv(known, "en"), canvas_csv(known, "en")):
        assert "zoe" not in text and "ada" in text
    assert "zoe" in marks_csv(known, "en")
    assert main(["--course", str(course), "report", LESSON]) == 0
    assert "Not in the class list" in (said := capsys.readouterr().out) and "zoe" in said


def test_the_column_can_be_called_as_the_platform_calls_the_assignment(course):
    known = gather(course, LESSON)
    for table in (moodle_csv, canvas_csv):
        assert "Lesson 3 (4711)" in rows_of(table(known, "en", "Lesson 3 (4711)"))[0]


def test_what_collecting_said_of_a_replaced_file_is_over(course):
    path = course / "submitted" / ".collected" / LESSON / "collected.json"
    (entry,) = json.loads(path.read_text("utf-8"))
    path.write_text(json.dumps([{**entry, "outcome": "replaced"}]), encoding="utf-8")
    assert {eye.student for eye in eyes(gather(course, LESSON))} == {"cy"}


def test_chinese_names_are_written_family_name_first(course):
    assert read_roster(course / "students.csv").students[1].name == "王芳"


def test_the_command_writes_a_page_in_each_language_and_the_tables(course, capsys):
    for lang in LANGUAGES:
        assert main(["--course", str(course), "report", LESSON, "--lang", lang]) == 0
    folder = course / "build" / "report" / LESSON
    assert {path.name for path in folder.iterdir()} == {
        "report.en.html", "report.zh.html", "marks.csv", "moodle.csv", "canvas.csv",
    }  # fmt: skip


def test_the_page_without_names_replaces_nothing(course, capsys):
    for options in ([], ["--anonymous"]):
        assert main(["--course", str(course), "report", LESSON, *options]) == 0
    folder = course / "build" / "report" / LESSON
    assert "ada" in (folder / "marks.csv").read_text("utf-8")
    assert {path.name for path in folder.glob("*anonymous*")} == {
        "report.anonymous.en.html", "marks.anonymous.csv",
    }  # fmt: skip


def test_without_graded_work_it_says_what_to_do(course, capsys):
    with pytest.raises(NothingGraded):
        gather(course, "04_v1_to_v2")
    assert main(["--course", str(course), "report", "04_v1_to_v2"]) == 2
    assert "flashcourse grade 04_v1_to_v2" in capsys.readouterr().err


def test_in_a_browser_nothing_runs_over_the_page(course, browser):
    for lang in LANGUAGES:
        tab = browser.new_page(viewport={"width": 900, "height": 800}, offline=True)
        tab.set_content(page(gather(course, LESSON), lang))
        width = tab.evaluate("document.documentElement.scrollWidth")
        assert width <= 900
        assert tab.locator("#success svg").count() == 4
        tab.close()
