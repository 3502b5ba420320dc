"""Whose a file is, by its path."""

from __future__ import annotations

import pytest

from flashcourse.collecting.incoming import Incoming
from flashcourse.collecting.naming import AUTO, find_owner, own_pattern
from flashcourse.collecting.notes import Refused
from flashcourse.collecting.roster import Roster, student

LESSON = "03_flash_forward"
NOBODY = Roster()


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
    ],
)
def test_each_preset_tells_the_student(path, by, who):
    found = owner(path)
    assert (found.by, found.student) == (by, who)
    assert not found.notes


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
    ],
)
def test_a_name_that_tells_nobody_is_refused_and_never_guessed(path):
    with pytest.raises(Refused, match="whose it is"):
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
    assert set(AUTO) == {"moodle", "canvas", "email", "folder", "file"}
    assert owner("ada/03_flash_forward_bob.ipynb", ways=("file",)).student == "bob"
    assert owner("ada/03_flash_forward_bob.ipynb", ways=("folder",)).student == "ada"


@pytest.mark.parametrize("name", ["..", ".", "-", "///"])
def test_a_student_is_never_a_path(name):
    with pytest.raises(Refused):
        owner(f"{name}/x.ipynb")
