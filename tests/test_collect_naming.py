"""Whose a file is, by its path."""

from __future__ import annotations

import re

import pytest

from flashcourse.collecting.incoming import Incoming
from flashcourse.collecting.naming import AUTO, Owner, find_owner, own_pattern
from flashcourse.collecting.notes import Refused
from flashcourse.collecting.roster import Roster, read_roster, student

LESSON = "03_flash_forward"
NOBODY = Roster()


def doubts(found: Owner) -> list[str]:
    return [note.text.en for note in found.notes if note.kind == "doubt"]


def owner(path: str, roster: Roster = NOBODY, **options):
    return find_owner(Incoming(path, b"x"), LESSON, roster, **options)


@pytest.mark.parametrize(
    ("path", "by", "who"),
    [
        ("m.zip/Ada Lovelace_12_assignsubmission_file_/x.ipynb", "moodle", "Ada-Lovelace"),
        ("m.zip/Ada Lovelace_12_assignsubmission_file/sub/x.ipynb", "moodle", "Ada-Lovelace"),
        ("Ada Lovelace_12_assignsubmission_file_x (1).ipynb", "moodle", "Ada-Lovelace"),
        (
            "Group A-Ada Lovelace_12_assignsubmission_file_/x.ipynb",
            "moodle",
            "Group-A-Ada-Lovelace",
        ),
        ("王芳_12_assignsubmission_file_/x.ipynb", "moodle", "王芳"),
        ("s.zip/lovelaceada_4711_991_03_flash_forward-1.ipynb", "canvas", "lovelaceada"),
        ("s.zip/lovelaceada_LATE_4711_991_x.ipynb", "canvas", "lovelaceada"),
        ("ada@example.edu/x.ipynb", "email", "ada"),
        ("1.eml/ada.l+hw@uni.example.edu/work.zip/x.ipynb", "email", "ada.l-hw"),
        ("ada@example.edu_03.ipynb", "email", "ada"),
        ("ada/x.ipynb", "folder", "ada"),
        ("ada/03_flash_forward/03_flash_forward.ipynb", "folder", "ada"),
        ("all.zip/ada/x.ipynb", "folder", "ada"),
        ("ada/work.zip/stuff/x.ipynb", "folder", "ada"),
        ("03_flash_forward_ada.ipynb", "file", "ada"),
        ("2026001-03_flash_forward.ipynb", "file", "2026001"),
        ("Copy of 03_flash_forward_ada (2).ipynb", "file", "ada"),
        ("03_flash_forward_李雷 - 副本.ipynb", "file", "李雷"),
        ("ada_03_flash_forward-Copy1.ipynb", "file", "ada"),
        ("03_Flash_Forward_2026001.IPYNB", "file", "2026001"),
        ("ada_03_flash_forward.zip/x.ipynb", "file", "ada"),
        ("student1_501_9001_x.ipynb", "canvas", "student1"),
        ("张三_2026001_03_flash_forward.ipynb", "file", "张三_2026001"),
        ("Lesson 3_ada_attempt_2026-10-05-10-30-00_x.ipynb", "blackboard", "ada"),
        ("Lesson 3_ada_attempt_2026-10-05-10-30-00.txt", "blackboard", "ada"),
        ("Ada Lovelace_12_assignsubmission_onlinetext_/o.html", "moodle", "Ada-Lovelace"),
        ("Jose\u0301/x.ipynb", "folder", "Jos\u00e9"),
        ("名" * 200 + "/x.ipynb", "folder", "名" * 80),
    ],
)
def test_each_preset_tells_the_student(path, by, who):
    found = owner(path)
    assert (found.by, found.student) == (by, who)
    assert not doubts(found)


@pytest.mark.parametrize(
    "path",
    [
        "03_flash_forward.ipynb",
        "Copy of 03_flash_forward (1).ipynb",
        "03_flash_forward_final.ipynb",
        "03_flash_forward-v2.ipynb",
        "03_flash_forward_作业.ipynb",
        "class.zip/03_flash_forward.ipynb",
        "Untitled3.ipynb",
        "assignment_47_export/submission_280000001/03_flash_forward.ipynb",
        "🐱/03_flash_forward.ipynb",
    ],
)
def test_a_name_that_tells_nobody_is_refused_and_never_guessed(path):
    with pytest.raises(Refused, match="whose it is|no letter or digit"):
        owner(path)


def test_a_file_that_was_named_itself_does_not_take_its_folder_for_a_student():
    with pytest.raises(Refused, match="whose it is"):
        find_owner(Incoming("inbox/x.ipynb", b"x", named=True), LESSON, NOBODY)


def test_of_several_folders_the_listed_one_is_the_student():
    roster = Roster((student("s1", {"name": "Ada Lovelace"}),))
    assert owner("Ada Lovelace/week 3/x.ipynb", roster).student == "s1"
    found = owner("ada/week 3/x.ipynb")
    assert found.student == "week-3" and "ada/week 3" in found.notes[0].text.en


@pytest.mark.parametrize(
    "path",
    [
        "Ada Lovelace_12_assignsubmission_file_/x.ipynb",
        "Lovelace Ada_12_assignsubmission_file_/x.ipynb",
        "lovelaceada_4711_991_x.ipynb",
        "anything_4712_991_x.ipynb",
        "ADA@example.edu/x.ipynb",
        "s1/x.ipynb",
        "Adà Lovelace/x.ipynb",
    ],
)
def test_the_class_list_knows_a_student_by_name_number_and_address(path):
    row = {"first_name": "Ada", "last_name": "Lovelace", "email": "ada@example.edu"}
    roster = Roster((student("s1", {**row, "canvas_id": "4712"}), student("s2", {"name": "Bo"})))
    found = owner(path, roster)
    assert (found.student, found.name, found.listed) == ("s1", "Ada Lovelace", True)
    assert not found.notes


@pytest.mark.parametrize(
    ("pattern", "path", "who"),
    [
        ("{student}-hw3.ipynb", "in/ada-hw3.ipynb", "ada"),
        ("hw3_{ignore}_{student}.ipynb", "hw3_final_ada.ipynb", "ada"),
        ("{lesson}-{student}.ipynb", "03_flash_forward-ada (1).ipynb", "ada"),
        ("{name}/*.ipynb", "in/Ada Lovelace/x.ipynb", "Ada-Lovelace"),
        ("{number}.ipynb", "2026001.ipynb", "2026001"),
    ],
)
def test_a_course_can_say_its_own_naming(pattern, path, who):
    assert owner(path, own=pattern).student == who


def test_a_pattern_can_tell_the_time_of_handing_in():
    found = owner("ada_2026-10-05-10-30-00_x.ipynb", own="{student}_{time}_x.ipynb")
    assert found.handed_in is not None
    assert found.handed_in.isoformat() == "2026-10-05T10:30:00+00:00"


def test_a_pattern_is_the_only_way_when_it_is_given():
    with pytest.raises(Refused):
        owner("ada/x.ipynb", own="{student}-hw3.ipynb")


def test_a_pattern_with_an_unknown_field_is_refused():
    with pytest.raises(ValueError, match="unknown field {who}"):
        own_pattern("{who}.ipynb")


def test_a_preset_can_be_chosen():
    assert set(AUTO) == {"moodle", "canvas", "blackboard", "email", "folder", "file"}
    assert owner("ada/03_flash_forward_bob.ipynb", ways=("file",)).student == "bob"
    assert owner("ada/03_flash_forward_bob.ipynb", ways=("folder",)).student == "ada"


@pytest.mark.parametrize("name", ["..", ".", "-", "///"])
def test_a_student_is_never_a_path(name):
    with pytest.raises(Refused):
        owner(f"{name}/x.ipynb")


# A class list, and names as Chinese platforms and schools write them.

CLASS = Roster(
    (
        student("2023001", {"name": "张三", "canvas_id": "501"}),
        student("2023002", {"name": "李四", "canvas_id": "502"}),
        student("s3", {"name": "Jane Doe", "moodle_id": "12"}),
        student("12", {"name": "Bob Ray"}),
    )
)


@pytest.mark.parametrize(
    ("path", "who"),
    [
        ("2023001-张三-第三课.ipynb", "2023001"),
        ("张三_第三课作业_03_flash_forward.ipynb", "2023001"),
        ("2023001+张三+03_flash_forward.ipynb", "2023001"),
        ("03_flash_forward-张三-2023001(1).ipynb", "2023001"),
        ("计算机2301班_2023002_李四_03_flash_forward.ipynb", "2023002"),
        ("2023001张三.zip/03_flash_forward.ipynb", "2023001"),
        ("第三课/2023001-张三/03_flash_forward.ipynb", "2023001"),
        ("hw3 Jane Doe final.ipynb", "s3"),
    ],
)
def test_one_listed_student_among_other_words_is_found(path, who):
    found = owner(path, CLASS)
    assert (found.student, found.listed) == (who, True)
    assert not doubts(found)


@pytest.mark.parametrize(
    "path",
    [
        "2023001_李四_03_flash_forward.ipynb",
        "2023001/李四/03_flash_forward.ipynb",
        "张三_502_9001_x.ipynb",
    ],
)
def test_clues_that_contradict_each_other_are_refused(path):
    with pytest.raises(Refused, match="can be 2023001, 2023002|is 2023001 in the class list"):
        owner(path, CLASS)


def test_moodles_number_which_changes_with_each_assignment_tells_only_namesakes_apart():
    assert owner("Jane Doe_12_assignsubmission_file_/x.ipynb", CLASS).student == "s3"
    stranger = owner("Zoe Q_12_assignsubmission_file_/x.ipynb", CLASS)
    assert stranger.student == "Zoe-Q" and "not in the class list" in doubts(stranger)[0]
    twins = Roster(tuple(student(n, {"name": "Wei Wang", "moodle_id": n}) for n in ("7", "8")))
    assert owner("Wei Wang_8_assignsubmission_file_/x.ipynb", twins).student == "8"


def test_what_canvas_says_of_lateness_is_passed_on():
    assert [n.text.en for n in owner("ada_LATE_1_2_x.ipynb").notes] == ["came late, says Canvas"]


def test_blackboards_name_tells_the_time():
    found = owner("Lesson 3_ada_attempt_2026-10-05-10-30-00_x.ipynb")
    assert found.handed_in is not None and found.handed_in.hour == 10


# The class list as spreadsheets and platforms write it.


@pytest.mark.parametrize(
    "data",
    [
        "id;name;email\ns1;王芳;wf@example.edu\n".encode(),
        "学号,姓名,邮箱\ns1,王芳,wf@example.edu\n".encode("gb18030"),
        "First name,Surname,ID number,Email address\n芳,王,s1,wf@example.edu\n,,,\n".encode(),
    ],
)
def test_the_class_list_is_read_as_spreadsheets_and_moodle_write_it(tmp_path, data):
    (tmp_path / "students.csv").write_bytes(data)
    (found,) = read_roster(tmp_path / "students.csv").students
    assert (found.id, found.name, found.row["email"]) == ("s1", "王芳", "wf@example.edu")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("name\nAda\n", "line 2: no id"),
        ("id\nada\n../../evil\n", "line 3: the id '../../evil' can't be a folder's name"),
        ("id\nada\nada\n", "line 3: the id 'ada' is there twice"),
    ],
)
def test_a_class_list_that_can_not_be_used_says_the_line(tmp_path, text, says):
    (tmp_path / "students.csv").write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=re.escape(says)):
        read_roster(tmp_path / "students.csv")
