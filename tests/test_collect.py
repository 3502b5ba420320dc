"""Files of every mess, made from the sample class, land right or are refused with a reason."""

from __future__ import annotations

import glob
import json
import subprocess
import sys
import zipfile
from pathlib import Path

import mess
import nbformat
import pytest
from nbgrader.coursedir import CourseDirectory
from sample_class import sample_class

from flashcourse.authoring.build import build
from flashcourse.cli import main
from flashcourse.collecting.collect import Settings, collect
from flashcourse.collecting.matching import bare
from flashcourse.collecting.records import Collected
from flashcourse.collecting.report import report_lines
from flashcourse.collecting.roster import Roster, read_roster
from flashcourse.collecting.storage import read_record, save_record
from flashcourse.words import LANGUAGES

LESSON = mess.LESSON
NAME = f"{LESSON}.ipynb"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("course")
    mess.lay_out(root)
    build(root)
    return root


@pytest.fixture
def course(built: Path, tmp_path: Path) -> Path:
    """A course with nothing collected yet."""
    root = tmp_path / "course"
    root.mkdir()
    for name in ("source", "release", "nbgrader_config.py"):
        (root / name).symlink_to(built / name)
    return root


@pytest.fixture(scope="module")
def collected(built: Path, tmp_path_factory: pytest.TempPathFactory):
    """All messy files, collected at once: the files and what became of each."""
    inbox = tmp_path_factory.mktemp("inbox")
    files = mess.messy_files(built)
    mess.write(inbox, files)
    before = snapshot(inbox)
    results = {result.path.split("/")[0]: result for result in collect(built, LESSON, [inbox])}
    assert snapshot(inbox) == before, "what was handed in was touched"
    return built, files, results


def snapshot(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def submitted(course: Path, student: str) -> nbformat.NotebookNode:
    return nbformat.read(course / "submitted" / student / LESSON / NAME, as_version=4)


def answers(notebook: nbformat.NotebookNode) -> dict[str, str]:
    return {
        cell.metadata.nbgrader.grade_id: cell.source
        for cell in notebook.cells
        if cell.metadata.get("nbgrader", {}).get("solution")
    }


def sentences(result: Collected, lang: str = "en") -> str:
    return "\n".join(note.text.in_(lang) for note in result.notes)


def test_thirty_files_of_different_mess_land_right_or_are_refused_with_a_reason(collected):
    course, files, results = collected
    assert len(files) >= 30
    for file in files:
        result = results[file.path.split("/")[0]]
        assert (result.outcome, result.student) == (file.outcome, file.student), file.what
        if file.says:
            assert file.says in sentences(result), file.what
        if file.sample:
            found = answers(submitted(course, file.student))
            for grade_id, source in file.sample.answers.items():
                assert bare(found[grade_id]) == bare(source), file.what


def test_what_lands_is_a_valid_notebook_with_the_releases_labels_and_tests(collected):
    course, files, results = collected
    for file in files:
        if not file.sample:
            continue
        notebook = submitted(course, file.student)
        nbformat.validate(notebook)
        lang = results[file.path.split("/")[0]].lang
        released = nbformat.read(course / "release" / lang / LESSON / NAME, as_version=4)
        given = [cell for cell in notebook.cells if not cell.id.startswith("own-")]
        assert [c.id for c in given] == [c.id for c in released.cells], file.what
        assert [c.metadata for c in given] == [c.metadata for c in released.cells], file.what
        tests = [c.source for c in given if c.metadata.get("nbgrader", {}).get("locked")]
        assert tests == [
            c.source for c in released.cells if c.metadata.get("nbgrader", {}).get("locked")
        ], file.what
        assert "widgets" not in notebook.metadata


def test_the_edition_is_the_one_that_was_handed_in(collected):
    _, files, results = collected
    for file in files:
        if file.sample:
            assert results[file.path.split("/")[0]].lang == file.sample.edition, file.what


def test_a_students_own_cells_stay_where_they_stood(collected):
    course, _, _ = collected
    cells = submitted(course, "quin").cells
    at = next(n for n, cell in enumerate(cells) if "my_helper" in cell.source)
    assert cells[at + 1].metadata.nbgrader.grade_id == "flash-forward"
    assert cells[-1].source == "print('end')"


def test_every_file_is_kept_as_it_came(collected):
    course, files, _ = collected
    kept = {
        path.read_bytes()
        for path in (course / "submitted" / ".collected" / LESSON / "originals").rglob("*")
        if path.is_file()
    }
    for file in files:
        if file.data and "zip" not in file.path:
            assert file.data in kept, file.what


def test_nothing_is_chosen_without_a_note(collected):
    """A file that needed no mending has no note; every other has one in both languages."""
    _, files, results = collected
    for file in files:
        result = results[file.path.split("/")[0]]
        for lang in LANGUAGES:
            assert bool(sentences(result, lang)) == bool(result.notes)
        if file.what in ("as it should be", "nbgrader's own layout"):
            assert not result.of("doubt")
            assert not result.of("refused")


def test_collecting_again_changes_nothing(course, built, tmp_path):
    inbox = tmp_path / "inbox"
    mess.write(inbox, mess.messy_files(built)[:8])
    collect(course, LESSON, [inbox])
    before = snapshot(course / "submitted")
    again = collect(course, LESSON, [inbox])
    assert {result.outcome for result in again} == {"unchanged"}
    assert snapshot(course / "submitted") == before


@pytest.mark.parametrize("lang", LANGUAGES)
def test_the_report_begins_with_what_needs_a_person(collected, lang):
    _, files, results = collected
    lines = list(report_lines(list(results.values()), lang))
    refused = sum(file.outcome == "refused" for file in files)
    assert len(results) == len(files)
    assert str(len(files)) in lines[0] and str(refused) in lines[0]
    signs = [line[2] for line in lines[2:] if line.startswith("  ") and line[2] in "?!"]
    assert signs[:refused] == ["!"] * refused
    assert "?" in signs[refused:]


# Three learning platforms.


def three(course: Path) -> list[bytes]:
    return [mess.to_bytes(mess.plain(s, course)) for s in sample_class(LESSON)[:3]]


def test_a_zip_from_moodle_with_a_folder_for_each_student(course, tmp_path):
    a, b, c = three(course)
    archive = mess.zipped(
        {
            f"Ada Lovelace_4711_assignsubmission_file_/{NAME}": a,
            f"王 芳_4712_assignsubmission_file/Copy of {NAME}": b,
            f"Bob Ray_4713_assignsubmission_file_{NAME}": c,
            "Bob Ray_4713_assignsubmission_onlinetext_/onlinetext.html": b"<p>hi</p>",
        }
    )
    (tmp_path / "moodle.zip").write_bytes(archive)
    results = collect(course, LESSON, [tmp_path / "moodle.zip"])
    taken = {result.student: result.by for result in results if result.outcome == "taken"}
    assert taken == {"Ada-Lovelace": "moodle", "王-芳": "moodle", "Bob-Ray": "moodle"}
    assert [r.outcome for r in results if "onlinetext" in r.path] == ["beside"]


def test_a_zip_from_canvas_tells_students_by_the_class_list(course, tmp_path):
    a, b, c = three(course)
    archive = mess.zipped(
        {
            f"lovelaceada_501_9001_{LESSON}-1.ipynb": a,
            f"raybob_LATE_502_9002_{LESSON}.ipynb": b,
            f"ng_503_9003_{LESSON}.ipynb": c,
        }
    )
    (tmp_path / "submissions.zip").write_bytes(archive)
    (tmp_path / "students.csv").write_text(
        "ID,First name,Last name,Email,Canvas ID\n"
        "s1,Ada,Lovelace,ada@example.edu,\ns2,Bob,Ray,bob@example.edu,502\n",
        encoding="utf-8",
    )
    roster = read_roster(tmp_path / "students.csv")
    results = collect(course, LESSON, [tmp_path / "submissions.zip"], Settings(roster))
    assert {r.student: r.name for r in results} == {
        "s1": "Ada Lovelace",
        "s2": "Bob Ray",
        "ng": "ng",
    }
    doubts = {r.student: sentences(r) for r in results if r.of("doubt")}
    assert "not in the class list" in doubts["ng"] and len(doubts) == 1


def test_saved_e_mails_are_dated_by_their_sending(course, tmp_path):
    a, b, _ = three(course)
    (tmp_path / "1.eml").write_bytes(mess.mailed("ada@example.edu", {NAME: a}))
    (tmp_path / "2.eml").write_bytes(
        mess.mailed("bob@example.edu", {"work.zip": mess.zipped({NAME: b})})
    )
    results = collect(course, LESSON, [tmp_path / "1.eml", tmp_path / "2.eml"])
    assert {r.student: r.outcome for r in results} == {"ada": "taken", "bob": "taken"}
    stamp = course / "submitted" / "ada" / LESSON / "timestamp.txt"
    assert stamp.read_text() == "2026-10-05T10:30:00+08:00"


def test_a_zip_made_by_an_old_chinese_windows(course, tmp_path):
    a, *_ = three(course)
    archive = mess.zipped({f"作业/李雷/{NAME}": a}, mess.OldWindowsEntry)
    (tmp_path / "all.zip").write_bytes(archive)
    (result,) = collect(course, LESSON, [tmp_path / "all.zip"])
    assert (result.student, result.outcome) == ("李雷", "taken")
    assert "作业/李雷" in sentences(result)


# Several files of one student, one name of several students.


def test_of_several_files_of_a_student_the_newest_is_taken_and_it_is_said(course, tmp_path):
    a, b, _ = three(course)
    (tmp_path / "1.eml").write_bytes(mess.mailed("ada@example.edu", {NAME: a}))
    later = mess.mailed("ada@example.edu", {NAME: b}).replace(b"05 Oct", b"06 Oct")
    (tmp_path / "0.eml").write_bytes(later)
    results = {r.path[0]: r for r in collect(course, LESSON, sorted(tmp_path.glob("*.eml")))}
    assert (results["0"].outcome, results["1"].outcome) == ("taken", "older")
    assert "2 different files of this student; took this one: the newest" in sentences(results["0"])


def test_an_older_file_that_comes_later_does_not_replace_a_newer_one(course, tmp_path):
    a, b, _ = three(course)
    (tmp_path / "new.eml").write_bytes(mess.mailed("ada@example.edu", {NAME: a}))
    collect(course, LESSON, [tmp_path / "new.eml"])
    old = mess.mailed("ada@example.edu", {NAME: b}).replace(b"05 Oct", b"04 Oct")
    (tmp_path / "old.eml").write_bytes(old)
    (result,) = collect(course, LESSON, [tmp_path / "old.eml"])
    assert result.outcome == "older" and result.of("doubt")
    assert "older" in sentences(result)


def test_an_old_archive_that_replaces_a_later_file_is_doubted(course, tmp_path):
    a, b, _ = three(course)
    for name, data, day in (("new.zip", b, 9), ("old.zip", a, 8)):
        entry = zipfile.ZipInfo(f"ada/{NAME}", (2026, 10, day, 12, 0, 0))
        with zipfile.ZipFile(tmp_path / name, "w") as archive:
            archive.writestr(entry, data)
        (result,) = collect(course, LESSON, [tmp_path / name])
        save_record(course / "submitted", LESSON, [result])
    assert result.outcome == "taken"
    assert "replaces a file that is dated later (2026-10-09 12:00)" in sentences(result)


def test_namesakes_stay_two_students(course, tmp_path):
    a, b, _ = three(course)
    archive = mess.zipped(
        {f"Wang Wei_{n}_assignsubmission_file_/{NAME}": d for n, d in ((7, a), (8, b))}
    )
    (tmp_path / "moodle.zip").write_bytes(archive)
    results = collect(course, LESSON, [tmp_path / "moodle.zip"])
    assert {r.student for r in results} == {"Wang-Wei-7", "Wang-Wei-8"}
    assert all("students.csv" in sentences(r) for r in results)


def test_the_very_same_file_of_two_students_is_told(course, tmp_path):
    a, b, _ = three(course)
    blank = (course / "release" / "en" / LESSON / NAME).read_bytes()
    files = {"ada": a, "bo": a, "cy": b, "di": blank, "ed": blank}
    (tmp_path / "all.zip").write_bytes(mess.zipped({f"{s}/{NAME}": d for s, d in files.items()}))
    results = {r.student: r for r in collect(course, LESSON, [tmp_path / "all.zip"])}
    assert "byte for byte, as that of bo" in sentences(results["ada"])
    assert "that of ada" in sentences(results["bo"])
    assert not any(results[student].of("doubt") for student in ("cy", "di", "ed"))


def test_students_whose_names_are_nearly_one_are_told(course, tmp_path):
    a, b, _ = three(course)
    (tmp_path / "1.zip").write_bytes(mess.zipped({f"Ada/{NAME}": a, f"José/{NAME}": b}))
    (tmp_path / "2.zip").write_bytes(mess.zipped({f"ada/{NAME}": a, f"Jose/{NAME}": b}))
    collect(course, LESSON, [tmp_path / "1.zip"])
    results = {r.student: r for r in collect(course, LESSON, [tmp_path / "2.zip"])}
    assert "nearly that of Ada" in sentences(results["ada"])
    assert "nearly that of José" in sentences(results["Jose"])


def test_a_name_and_a_number_in_another_order_may_be_the_same_student(course, tmp_path):
    a, b, c = three(course)
    names = {"2023001_张三": a, "张三-2023001": b, "2023012_李四": c, "2023021_李四": c}
    files = {f"{name}/{NAME}": data for name, data in names.items()}
    (tmp_path / "all.zip").write_bytes(mess.zipped(files))
    results = {r.student: r for r in collect(course, LESSON, [tmp_path / "all.zip"])}
    assert "nearly that of 张三-2023001" in sentences(results["2023001_张三"])
    assert "nearly that of 2023001_张三" in sentences(results["张三-2023001"])
    assert "nearly that of" not in sentences(results["2023012_李四"])


def test_an_autosave_copy_is_never_rather_taken_than_the_notebook(course, tmp_path):
    a, b, _ = three(course)
    files = {"ada/x.ipynb": a, "ada/x-checkpoint.ipynb": b, "bo/.ipynb_checkpoints/x.ipynb": b}
    (tmp_path / "all.zip").write_bytes(mess.zipped(files))
    results = {r.path.split("/", 1)[1]: r for r in collect(course, LESSON, [tmp_path / "all.zip"])}
    assert {path: r.outcome for path, r in results.items()} == {
        "ada/x.ipynb": "taken",
        "ada/x-checkpoint.ipynb": "older",
        "bo/.ipynb_checkpoints/x.ipynb": "refused",
    }
    assert "not Jupyter's autosave copy" in sentences(results["ada/x.ipynb"])


def test_what_lies_beside_a_notebook_raises_no_alarm(course, tmp_path):
    a, *_ = three(course)
    small = mess.small_lesson(course)
    files = {"x.ipynb": a, "x.pdf": b"%PDF", "data.bin": b"\xff\xff\xff", "90.ipynb": small}
    files["cut.ipynb"] = a[:5000]
    (tmp_path / "a.zip").write_bytes(mess.zipped({f"ada/{n}": d for n, d in files.items()}))
    (tmp_path / "b.zip").write_bytes(mess.zipped({"bo/x.pdf": b"%PDF"}))
    results = collect(course, LESSON, sorted(tmp_path.glob("*.zip")))
    outcomes = {r.path.rpartition("/")[2]: r.outcome for r in results if r.student == "ada"}
    assert outcomes == {
        "x.ipynb": "taken",
        "x.pdf": "beside",
        "data.bin": "beside",
        "90.ipynb": "beside",
        "cut.ipynb": "refused",
    }
    assert [r.outcome for r in results if r.student == "bo"] == ["refused"]
    assert any("x.pdf" in line and "data.bin" in line for line in report_lines(results, "en"))


def test_answers_with_little_of_the_lesson_around_them_are_taken_and_doubted(course, tmp_path):
    notebook = json.loads(three(course)[0])
    notebook["cells"] = [notebook["cells"][mess.answer_at(notebook)]]
    (tmp_path / f"{LESSON}_ada.ipynb").write_bytes(mess.to_bytes(notebook))
    (result,) = collect(course, LESSON, [tmp_path / f"{LESSON}_ada.ipynb"])
    assert (result.outcome, result.finished) == ("taken", 1)
    assert "took the answers" in sentences(result)


def test_what_was_said_of_a_file_is_over_once_another_is_taken(course, tmp_path):
    a, b, _ = three(course)
    arguments = ["--course", str(course), "collect", LESSON]
    files = {"ada/x.pdf": b"%PDF", "bo/x.ipynb": mess.to_bytes(mess.copied_answer(json.loads(b)))}
    (tmp_path / "1.zip").write_bytes(mess.zipped(files))
    (tmp_path / f"{LESSON}_final.ipynb").write_bytes(a)
    assert main([*arguments, str(tmp_path / "1.zip"), str(tmp_path / f"{LESSON}_final.ipynb")]) == 1
    (tmp_path / "2.zip").write_bytes(mess.zipped({"ada/x.ipynb": a, "bo/x.ipynb": b}))
    assert main([*arguments, str(tmp_path / "2.zip")]) == 0
    open_questions = {
        entry["path"]
        for entry in read_record(course / "submitted", LESSON)
        if entry["outcome"] != "replaced" and any(n["kind"] != "repair" for n in entry["notes"])
    }
    assert open_questions == set()


def test_a_name_that_the_class_list_has_twice_is_refused(course, tmp_path):
    a, *_ = three(course)
    (tmp_path / "students.csv").write_text("id,name\ns1,Wang Wei\ns2,Wang Wei\n", encoding="utf-8")
    (tmp_path / "m.zip").write_bytes(mess.zipped({f"Wang Wei_7_assignsubmission_file_/{NAME}": a}))
    settings = Settings(read_roster(tmp_path / "students.csv"))
    (result,) = collect(course, LESSON, [tmp_path / "m.zip"], settings)
    assert result.outcome == "refused" and "can be s1, s2" in sentences(result)


# Refusing to be led astray.


def test_no_entry_of_an_archive_can_land_outside_submitted(course, tmp_path):
    a, *_ = three(course)
    evil = {f"../../../evil/{NAME}": a, f"..\\..\\x_{LESSON}.ipynb": a, f"/etc/{NAME}": a}
    (tmp_path / "evil.zip").write_bytes(mess.zipped(evil))
    before = {p for p in tmp_path.rglob("*") if "course" not in p.parts}
    collect(course, LESSON, [tmp_path / "evil.zip"])
    assert {p for p in tmp_path.rglob("*") if "course" not in p.parts} == before
    assert {p.parent.parent for p in (course / "submitted").glob("*/*/*.ipynb")} <= {
        course / "submitted" / name for name in ("evil", "x", "etc")
    }


def test_archives_within_archives_come_to_an_end(course, tmp_path):
    data = mess.zipped({"a": b"1"})
    for _ in range(8):
        data = mess.zipped({"deeper.zip": data})
    (tmp_path / "deep.zip").write_bytes(data)
    (result,) = collect(course, LESSON, [tmp_path / "deep.zip"])
    assert "too many archives" in sentences(result)


# The command.


def test_the_command_prints_the_report_and_keeps_it(course, tmp_path, capsys):
    a, *_ = three(course)
    inbox = tmp_path / "inbox" / "ada"
    inbox.mkdir(parents=True)
    (inbox / NAME).write_bytes(a)
    arguments = ["--course", str(course), "collect", LESSON, str(inbox.parent)]
    assert main(arguments) == 0
    printed = capsys.readouterr().out
    kept = course / "submitted" / ".collected" / LESSON
    assert "report.txt" in printed and "New or changed: 1" in printed
    assert f"ada: ada/{NAME}" in (kept / "report.txt").read_text("utf-8")
    assert f"ada/{NAME}" not in printed, "what needs nobody's eye fills the screen"
    (entry,) = json.loads((kept / "collected.json").read_text("utf-8"))
    assert (entry["student"], entry["outcome"]) == ("ada", "taken")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["99_none", "."], "99_none"),
        ([LESSON, "nowhere"], "no such file or folder: nowhere"),
        ([LESSON, ".", "--pattern", "{who}.ipynb"], "unknown field {who}"),
        ([LESSON, ".", "--pattern", "hw.ipynb"], "tells no student"),
    ],
)
def test_a_wrong_command_says_what_is_wrong(course, capsys, arguments, says):
    assert main(["--course", str(course), "collect", *arguments]) == 2
    assert says in capsys.readouterr().err


def test_where_nothing_can_be_written_it_stops_and_says_why(course, tmp_path, capsys):
    (tmp_path / f"{LESSON}_ada.ipynb").write_bytes(three(course)[0])
    (course / "submitted").write_text("a file where the folder should be", encoding="utf-8")
    arguments = ["collect", LESSON, str(tmp_path / f"{LESSON}_ada.ipynb")]
    assert main(["--course", str(course), *arguments]) == 2
    assert "Mend that and run it again" in capsys.readouterr().err


def test_nbgraders_zip_collect_follows_the_same_rules(course, tmp_path):
    a, b, _ = three(course)
    archive = course / "downloaded" / LESSON / "archive"
    archive.mkdir(parents=True)
    split = mess.to_bytes(mess.split_without_label(json.loads(b)))
    moodle = {
        f"Ada_7_assignsubmission_file_/Copy of {NAME}": a,
        f"Bob_8_assignsubmission_file_/{NAME}": split,
        f"Cy_9_assignsubmission_file_/{NAME}": b"%PDF",
    }
    (archive / "moodle.zip").write_bytes(mess.zipped(moodle))
    done = subprocess.run(
        [sys.executable, "-m", "nbgrader", "zip_collect", LESSON],
        cwd=course,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    for student, sample in zip(("Ada", "Bob"), sample_class(LESSON), strict=False):
        for grade_id, source in sample.answers.items():
            assert bare(answers(submitted(course, student))[grade_id]) == bare(source)
    assert "is a PDF" in done.stderr and "was split" in done.stderr
    folders = {path.name for path in (course / "submitted").iterdir()}
    assert folders == {"Ada", "Bob", ".collected"}


def test_nbgrader_sees_the_submissions_and_nothing_else(course, built, tmp_path):
    inbox = tmp_path / "inbox"
    mess.write(inbox, mess.messy_files(built)[:3])
    collect(course, LESSON, [inbox])
    coursedir = CourseDirectory(root=str(course))
    paths = glob.glob(coursedir.format_path("submitted", "*", LESSON))
    assert {Path(path).parent.name for path in paths} == {"ada", "bob", "carol"}


def test_an_empty_class_list_is_no_class_list():
    assert not Roster()
