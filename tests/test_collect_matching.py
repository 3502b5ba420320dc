"""Which submitted cell is which answer, on a lesson with two answers in code and one in words."""

from __future__ import annotations

from dataclasses import replace

import pytest

from flashcourse.collecting.matching import match_cells, own_cells
from flashcourse.collecting.reading import OpenCell
from flashcourse.grading.course import CourseCell, CourseNotebook
from flashcourse.grading.pictures import lift

F = 'def f(x):\n    # TODO 1\n    raise NotImplementedError("…")'
G = 'def g(x):\n    # TODO 1\n    raise NotImplementedError("…")'
STUB = "*Write your answer here.*"


def given(role: str, key: str, text: str, defines: tuple[str, ...] = ()) -> CourseCell:
    grade_id = "" if role in ("prose", "code") else key
    return CourseCell(role, key, text, text, {}, grade_id, 0, defines)


COURSE = CourseNotebook(
    "lesson",
    "en",
    (
        given("prose", "intro", "# Lesson"),
        given("code", "start", "import torch"),
        given("answer", "f", F, ("f",)),
        given("test", "test-f", "mark('f', f)"),
        given("answer", "g", G, ("g",)),
        given("test", "test-g", "mark('g', g)"),
        given("prose", "question", "Why?"),
        given("manual", "why", STUB),
        given("prose", "end", "The end."),
    ),
    {},
)


def code(source: str, grade_id: str = "", key: str = "") -> OpenCell:
    return OpenCell("code", source, grade_id, key)


def prose(source: str, grade_id: str = "", key: str = "") -> OpenCell:
    return OpenCell("markdown", source, grade_id, key)


DONE_F, DONE_G = "def f(x):\n    y = x\n    return y", "def g(x):\n    return -x"
REST = [code("mark('f', f)", "test-f"), code("mark('g', g)", "test-g")]


def matched(*cells: OpenCell):
    matching = match_cells(COURSE, cells)
    answers = {COURSE.cells[n].grade_id: text for n, text in matching.answers.items()}
    return answers, [(note.kind, note.text.en) for note in matching.notes]


def kinds(notes: list[tuple[str, str]], about: str) -> list[str]:
    return [kind for kind, text in notes if text.startswith(about)]


def test_labels_that_are_there_decide():
    answers, notes = matched(code(DONE_F, "f"), code(DONE_G, "g"), prose("because", "why"), *REST)
    assert answers == {"f": DONE_F, "g": DONE_G, "why": "because"}
    assert notes == []


def test_a_label_that_was_copied_to_another_answer_is_corrected_and_said():
    answers, notes = matched(code(DONE_F, "f"), code(DONE_G, "f"), *REST)
    assert answers["f"] == DONE_F and answers["g"] == DONE_G
    assert ("doubt", "a cell labelled f defines what g asks for; taken as the latter") in notes


def test_without_labels_an_answer_is_found_by_what_it_defines():
    answers, notes = matched(code(DONE_G), code(DONE_F))
    assert answers["f"] == DONE_F and answers["g"] == DONE_G
    assert kinds(notes, "f: found by what it defines") == ["repair"]


def test_an_answer_in_words_is_found_between_its_neighbours_and_doubted():
    answers, notes = matched(prose("Why?"), prose("because"), prose("and so"), prose("The end."))
    assert answers["why"] == "because\n\nand so"
    assert kinds(notes, "why: found by its place only") == ["doubt"]


def test_a_renamed_function_is_found_by_place_and_likeness_and_doubted():
    renamed = F.replace("def f", "def my_f").replace('raise NotImplementedError("…")', "return x")
    answers, notes = matched(code("import torch"), code(renamed), code("mark('f', f)"))
    assert answers["f"] == renamed
    assert kinds(notes, "f: found by its place only") == ["doubt"]


def test_code_of_the_students_own_is_never_taken_for_an_answer():
    answers, notes = matched(code("import torch"), code("print(1 + 1)"), code("mark('f', f)"))
    assert "f" not in answers
    assert kinds(notes, "f: no such answer in the file") == ["doubt"]


def test_of_two_versions_the_last_finished_one_is_taken_and_the_choice_said():
    unfinished = DONE_F.replace("return y", "raise NotImplementedError")
    answers, notes = matched(code(unfinished, "f"), code(DONE_F, "f"), *REST)
    assert answers["f"] == DONE_F
    assert ("doubt", "f: 2 versions (cells 1, 2); took cell 2, the last one, "
            "as when running from the top") in notes  # fmt: skip
    answers, notes = matched(code(DONE_F, "f"), code(unfinished, "f"), *REST)
    assert answers["f"] == DONE_F
    assert ("doubt", "f: 2 versions (cells 1, 2); took cell 1, the last finished one") in notes


def test_a_copy_that_was_left_as_given_does_not_count():
    answers, notes = matched(code(DONE_F, "f"), code(F, "f"), *REST)
    assert answers["f"] == DONE_F
    assert kinds(notes, "f: stands 2 times") == ["repair"]


def test_a_split_inside_the_function_is_joined():
    for label in ("f", ""):
        parts = code("def f(x):\n    y = x", "f"), code("    return y", label)
        answers, notes = matched(*parts, *REST)
        assert answers["f"] == DONE_F
        assert kinds(notes, "f: was split over cells 1, 2") == ["repair"]


def test_a_split_between_a_helper_and_the_function_is_joined():
    helper = "def help_me(x):\n    return x"
    answers, notes = matched(code(helper, "f"), code(DONE_F, "f"), *REST)
    assert answers["f"] == f"{helper}\n{DONE_F}"
    assert kinds(notes, "f: was split over cells 1, 2") == ["repair"]


def test_broken_code_after_an_answer_is_not_joined_to_it():
    answers, _ = matched(code(DONE_F, "f"), code("print 'hi'"), *REST)
    assert answers["f"] == DONE_F
    answers, _ = matched(code(F, "f"), code("    return y"), *REST)
    assert answers["f"] == F


def test_a_key_in_a_cells_id_is_enough():
    answers, notes = matched(code(DONE_F, key="f"), *REST)
    assert answers["f"] == DONE_F
    assert kinds(notes, "f:") == []


def test_missing_and_changed_tests_are_told():
    _, notes = matched(code(DONE_F, "f"), code("print(10)", "test-f"))
    assert ("repair", "test cells were changed and are put back: test-f") in notes
    assert ("repair", "test cells were deleted and are put back: test-g") in notes


def test_an_unfinished_answer_is_taken_as_it_is():
    answers, notes = matched(code(F, "f"), code(DONE_G, "g"), prose(STUB, "why"), *REST)
    assert answers["f"] == F
    assert notes == []


# Answers that stand where they should not.


@pytest.mark.parametrize(
    "cells",
    [
        (code(F, "f"), code(DONE_F), *REST),
        (code(F, "f"), *REST, code(DONE_F)),
        (code("# see below", "f"), code(DONE_F), *REST),
        (code(F, "f"), code(f"mark('f', f)\n\n{DONE_F}", "test-f"), REST[1]),
        (code(F, "f"), code(f"{DONE_F}\n\nmark('f', f)", "test-f"), REST[1]),
    ],
)
def test_an_answer_beside_its_own_cell_is_taken_and_doubted(cells):
    answers, notes = matched(*cells)
    assert answers["f"] == DONE_F
    assert kinds(notes, "f: no cell of its own is filled in; took cell") == ["doubt"]


def test_an_answer_in_the_cell_above_is_taken_and_doubted():
    answers, notes = matched(code(f"import torch\n\n{DONE_F}", "", "start"), *REST)
    assert answers["f"].endswith(DONE_F)
    assert kinds(notes, "f: no cell of its own is filled in; took cell 1") == ["doubt"]


def test_a_pasted_answer_that_is_no_python_is_taken_too():
    broken = f"{DONE_F}\nprint('oops'"
    answers, notes = matched(code(F, "f"), code(broken), *REST)
    assert answers["f"] == broken
    assert kinds(notes, "f: no cell of its own") == ["doubt"]


def test_a_students_experiment_never_replaces_a_finished_answer():
    answers, notes = matched(code(DONE_F, "f"), code("def f(x):\n    return 0"), *REST)
    assert answers["f"] == DONE_F
    assert not kinds(notes, "f:")


@pytest.mark.parametrize("text", [DONE_F, f"```python\n{DONE_F}\n```"])
def test_an_answer_that_became_prose_is_taken_as_code_and_it_is_said(text):
    answers, notes = matched(prose(text, "f"), *REST)
    assert answers["f"] == DONE_F
    assert kinds(notes, "f: is no code cell any more") == ["repair"]


def test_an_answer_under_another_name_is_doubted():
    _, notes = matched(code(DONE_F.replace("def f", "def my_f"), "f"), *REST)
    assert kinds(notes, "f: the answer does not define f; renamed?") == ["doubt"]


@pytest.mark.parametrize("labelled", [True, False])
def test_words_below_the_cell_for_them_are_taken_and_doubted(labelled):
    stub = prose(STUB, "why" if labelled else "")
    answers, notes = matched(prose("Why?"), stub, prose("because"), prose("The end."))
    assert answers["why"] == "because"
    assert kinds(notes, "why:") == ["doubt"]


def test_words_in_the_questions_cell_are_taken_and_doubted():
    question = prose("Why?\n\n**Mine:** because", key="question")
    answers, notes = matched(question, prose(STUB, "why"), prose("The end."))
    assert answers["why"] == "**Mine:** because"
    assert kinds(notes, "why: took the words below the question (cell 1)") == ["doubt"]


def test_a_cell_that_stands_twice_in_the_lesson_is_known_by_its_place():
    twice = replace(COURSE, cells=(*COURSE.cells, given("manual", "how", STUB)))
    cells = (prose("Why?"), prose(STUB), prose("The end."), prose("so"))
    matching = match_cells(twice, cells)
    answers = {twice.cells[n].grade_id: text for n, text in matching.answers.items()}
    assert answers == {"why": STUB, "how": "so"}


def test_a_picture_stays_with_the_answer():
    cell = replace(prose("![](attachment:1.png)", "why"), pictures={"1.png": {"image/png": "AA"}})
    matching = match_cells(COURSE, (cell, *REST))
    assert list(matching.pictures.values()) == [{"1.png": {"image/png": "AA"}}]
    assert not [note for note in matching.notes if "attached" in note.text.en]


def test_two_cells_of_one_answer_keep_a_picture_each():
    seen = [
        lift("![](attachment:image.png)", {"image.png": {"image/png": x}}) for x in ("AA", "BB")
    ]
    cells = [replace(prose(f"{n}: {text}", "why"), pictures=p) for n, (text, p) in enumerate(seen)]
    (kept,) = match_cells(COURSE, (*cells, *REST)).pictures.values()
    assert sorted(data["image/png"] for data in kept.values()) == ["AA", "BB"]
    assert all(name in text for (text, p) in seen for name in p)


def test_something_attached_that_is_no_picture_is_a_doubt():
    cell = replace(prose("[see](attachment:1.pdf)", "why"), lost=True)
    _, notes = matched(cell, *REST)
    assert kinds(notes, "why: something attached to the answer is only in") == ["doubt"]


def test_prose_of_the_other_edition_is_not_taken_for_an_answer():
    chinese = tuple(
        replace(c, shown="为什么？") if c.key == "question" else c for c in COURSE.cells
    )
    cells = (prose("为什么？"), prose("because"), prose("The end."))
    matching = match_cells(COURSE, cells, (replace(COURSE, lang="zh", cells=chinese),))
    assert [text for text in matching.answers.values()] == ["because"]


# The student's own cells.


def own(*cells: OpenCell) -> list[tuple[str, str]]:
    """Each of the student's own cells, with the course's cell that it follows."""
    matching = match_cells(COURSE, cells)
    return [(COURSE.cells[n].key, cell.source) for n, cell in own_cells(COURSE, cells, matching)]


def test_what_was_added_to_a_test_runs_before_it():
    helper = "def half(x):\n    return x / 2"
    assert own(code(DONE_F, "f"), code(f"{helper}\nmark('f', f)", "test-f")) == [("f", helper)]


def test_the_set_up_of_a_notebook_that_carries_the_package_is_not_the_students():
    set_up = (
        "# @title Set-up\nimport importlib.util\n\n"
        'if importlib.util.find_spec("flashcourse") is None:\n    import atexit\n'
    )
    assert own(code(set_up, key="start"), code(DONE_F, "f")) == []
    assert own(code(set_up), code("x = 1"), code(DONE_F, "f"))[0][1] == "x = 1"
    assert own(code(f"{set_up}\nMINE = 1", key="start")) == [("start", "MINE = 1")]
