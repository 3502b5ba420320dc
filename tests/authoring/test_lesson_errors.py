"""A lesson that breaks a rule is refused with its file, its key and what is different."""

from __future__ import annotations

from pathlib import Path

import pytest
from lessons import SMALL, changed, write_lesson

from flashcourse.authoring.errors import LessonError
from flashcourse.authoring.lesson import read_lesson
from flashcourse.authoring.twins import check_twins
from flashcourse.cli import main

DRIFTS = {
    "formula": (changed("分数是 $s = x^2$", "分数是 $s = x^3$"),
                "title", r"formulas: .*x\^2.*x\^3"),
    "number": (changed("分 3 步", "分 4 步"), "title", "numbers: only in en: 3; only in zh: 4"),
    "link": (changed("论文](https://arxiv.org/abs/2205.14135", "论文](https://arxiv.org/abs/1"),
             "title", "links: .*2205.14135"),
    "code span": (changed("由 `square`", "由 `cube`"), "title", "code spans: .*square.*cube"),
    "heading": (changed("# 平方", "## 平方"), "title", "heading levels"),
    "grade id": (changed('"lang": "zh", "manual": "why"', '"lang": "zh", "manual": "wy"'),
                 "why", "grade id: 'why' in en, 'wy' in zh"),
    "points": (changed('"lang": "zh", "manual": "why", "points": 3',
                       '"lang": "zh", "manual": "why", "points": 4'), "why", "points: 3 in en"),
    "missing twin": (SMALL[: SMALL.index('+++ {"key": "analysis", "lang": "zh"')],
                     "analysis", "missing twin: no 'zh'"),
    "missing English": (changed('+++ {"key": "analysis", "lang": "en", "only": "instructor"}\n\n'
                                "The solution explained.\n\n", ""), "analysis", "no 'en'"),
    "Chinese in English": (changed("A score is", "A 分数 is"), "title", "Chinese in the en cell"),
    "no Chinese": (changed("答案解析。", "The solution is explained here."),
                   "analysis", "holds no Chinese"),
    "Chinese in the code": (changed('tr("ready"', 'tr("好"'), "start", "Chinese in the en code"),
    "code": (changed('tr("ready", "就绪")', 'tr(f"ready {n}", f"就绪 {n + 1}")'),
             "start", "code differs"),
    "comment": (changed("    # zh: TODO 1: 起步\n", ""), "answer-square", "missing twin"),
    "number in a comment": (changed("# zh: TODO 2: 相乘", "# zh: TODO 3: 相乘"),
                            "answer-square", "other numbers in comments"),
    "not two literals": (changed('tr("ready", "就绪")', 'tr("ready", n)'),
                         "start", "two string literals"),
    "test in one language": (changed("square(2) == 4", 'square(2) == 4, tr("a", "甲")'),
                             "test-square", "must be the same in both"),
}  # fmt: skip

BROKEN = {
    "no front matter": (SMALL[SMALL.index("+++") :], "no front matter"),
    "YAML": (changed("title: {en:", "title: {en"), "not valid YAML|title must be"),
    "other lesson": (changed("lesson: 90_small", "lesson: 91_other"), "write '90_small'"),
    "one title": (changed(', zh: "小课"', ""), "title must be"),
    "minutes": (changed("minutes: 5", "minutes: soon"), "minutes must be"),
    "no key": (changed('+++ {"key": "title", "lang": "en"}', "+++"), "has no key"),
    "bad key": (changed(":key: start", ":key: Start here"), "Start here: a key is"),
    "duplicate key": (changed(":key: start", ":key: author"), "author: duplicate key"),
    "duplicate pair": (SMALL.replace('"key": "analysis"', '"key": "title"'), "title: duplicate"),
    "duplicate grade id": (changed(":test: test-hidden", ":test: test-square"),
                           "'test-square' is used 2 times"),
    "unknown language": (changed('"title", "lang": "en"', '"title", "lang": "de"'),
                         "title: unknown language 'de'"),
    "unknown option": (changed(":points: 4", ":pionts: 4"), "unknown option 'pionts'"),
    "no points": (changed(":points: 4\n", ""), "test-square: a graded cell needs points"),
    "odd points": (changed(":points: 4", ":points: many"), "test-square: a graded cell needs"),
    "points for nothing": (changed(":key: start", ":key: start\n:points: 1"), "points without"),
    "only": (changed('"only": "instructor"', '"only": "teacher"'), "'teacher' is none of"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "key", "message"), DRIFTS.values(), ids=DRIFTS)
def test_a_lesson_whose_languages_drift_is_refused(
    tmp_path: Path, text: str, key: str, message: str
) -> None:
    lesson = read_lesson(write_lesson(tmp_path, text))
    with pytest.raises(LessonError, match=message) as refused:
        check_twins(lesson)
    assert str(refused.value).startswith(f"90_small.md: {key}: ")


@pytest.mark.parametrize(("text", "message"), BROKEN.values(), ids=BROKEN)
def test_a_lesson_that_breaks_the_syntax_is_refused(
    tmp_path: Path, text: str, message: str
) -> None:
    with pytest.raises(LessonError, match=message) as refused:
        read_lesson(write_lesson(tmp_path, text))
    assert str(refused.value).startswith("90_small.md: ")


def test_the_small_lesson_itself_is_right(tmp_path: Path) -> None:
    check_twins(read_lesson(write_lesson(tmp_path)))


def test_words_inside_a_formula_may_differ(tmp_path: Path) -> None:
    text = SMALL.replace("$s = x^2$", r"$s = \text{LANG} x^2$")
    text = text.replace("LANG", "square of", 1).replace("LANG", "平方", 1)
    check_twins(read_lesson(write_lesson(tmp_path, text)))


def test_a_thousands_comma_is_no_difference(tmp_path: Path) -> None:
    text = changed("in 3 steps", "in 1,024 steps").replace("分 3 步", "分 1024 步")
    check_twins(read_lesson(write_lesson(tmp_path, text)))


def test_not_utf8_is_said(tmp_path: Path) -> None:
    path = write_lesson(tmp_path)
    path.write_bytes(path.read_bytes() + b"\xff")
    with pytest.raises(LessonError, match="not UTF-8"):
        read_lesson(path)


def test_the_command_names_the_place_and_fails(tmp_path: Path, capsys) -> None:
    write_lesson(tmp_path, changed("分 3 步", "分 4 步"))
    assert main(["--course", str(tmp_path), "build"]) == 1
    assert "90_small.md: title: other numbers" in capsys.readouterr().err


def test_the_command_outside_a_course_says_so(tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["build"]) == 2
    assert "no course here" in capsys.readouterr().err
