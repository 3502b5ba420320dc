"""Which submitted cell is which answer, on a lesson with two answers in code and one in words."""

from __future__ import annotations

from flashcourse.collecting.matching import match_cells
from flashcourse.collecting.reading import OpenCell
from flashcourse.grading.course import CourseCell, CourseNotebook

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
    answers, notes = matched(code("y = 3", key="f"), *REST)
    assert answers["f"] == "y = 3"
    assert kinds(notes, "f:") == []


def test_missing_and_changed_tests_are_told():
    _, notes = matched(code(DONE_F, "f"), code("print(10)", "test-f"))
    assert ("repair", "test cells were changed and are put back: test-f") in notes
    assert ("repair", "test cells were deleted and are put back: test-g") in notes


def test_an_unfinished_answer_is_taken_as_it_is():
    answers, notes = matched(code(F, "f"), code(DONE_G, "g"), prose(STUB, "why"), *REST)
    assert answers["f"] == F
    assert notes == []
