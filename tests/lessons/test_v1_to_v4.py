"""Lessons 4 and 5: every cell runs, solutions get full marks, and what the prose says comes out."""

from __future__ import annotations

import ast
import runpy
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from flashcourse.authoring.language import keep_language
from flashcourse.authoring.lesson import read_lesson
from flashcourse.checks import Marks, exercises
from flashcourse.words import use_language

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
IDS = ("04_v1_to_v2", "05_v3_and_v4")
LESSONS = {name: read_lesson(NOTEBOOKS / f"{name}.md") for name in IDS}


@pytest.fixture(autouse=True)
def language_of_the_next_test() -> Any:
    yield
    use_language("en")


def run_lesson(name: str, lang: str, capsys: Any) -> dict[str, Any]:
    """What each code cell shows last, by key; what is printed or displayed under "printed"."""
    shown: dict[str, Any] = {}
    names: dict[str, Any] = {"display": print}
    for cell in LESSONS[name].cells:
        if cell.kind != "code" or cell.option("only") == "author":
            continue
        tree = ast.parse(keep_language(cell.source, lang))
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, cell.key, "exec"), names)
        if last is not None:
            shown[cell.key] = eval(compile(ast.Expression(last.value), cell.key, "eval"), names)
    shown["printed"] = capsys.readouterr().out
    return shown


@pytest.fixture(params=["en", "zh"])
def lang(request: pytest.FixtureRequest) -> str:
    torch.manual_seed(0)
    return request.param


def full_marks(shown: dict[str, Any], prefix: str) -> None:
    marks = {m.exercise: m for m in shown.values() if isinstance(m, Marks)}
    wanted = {
        name: exercise.points for name, exercise in exercises().items() if name.startswith(prefix)
    }
    assert {name: m.points for name, m in marks.items()} == wanted
    assert sum(wanted.values()) in (85, 90)


def test_lesson_4_runs_and_says_what_comes_out(lang: str, capsys: Any) -> None:
    shown = run_lesson("04_v1_to_v2", lang, capsys)
    full_marks(shown, "v1v2.")
    printed = shown["printed"]
    said = {key: repr(value) for key, value in shown.items()}
    for number in ("6.08×", "1.00×", "0.52×", "1.92×"):
        assert number in said["traffic-table"]
    for number in ("6.08×", "3.77×", "2.00×"):
        assert number in said["v2-traffic-table"]
    for number in ("25.0%", "18.8%", "12.5%", "6.2%"):
        assert number in said["update-share"]
    for number in ("59%", "30%", "15%", "100%"):
        assert number in said["occupancy"]
    assert "32,768" in said["warps"]
    assert "1.97×" in said["causal-count"] and "50.8%" in said["causal-count"]
    assert "65,536" in said["state-size"] and "inf" in said["state-size"]
    assert "5.0" in printed and "2.5" in printed  # operations of the shape of O, per tile
    assert "8.59 GB" in printed and "2.10 MB" in printed


def test_lesson_5_runs_and_says_what_comes_out(lang: str, capsys: Any) -> None:
    shown = run_lesson("05_v3_and_v4", lang, capsys)
    full_marks(shown, "v3v4.")
    printed = shown["printed"]
    said = {key: repr(value) for key, value in shown.items()}
    for number in ("80.0%", "66.7%", "50.0%"):
        assert number in said["cycles-table"]
    assert shown["check-table-2"] == ["661.0", "581.6", "569.7"]
    assert "100.0%" in printed and "98.5%" in printed  # the learner's schedules
    for number in ("8.77e-05", "5.43e-05", "3.90e-03", "3.05e-06", "1.44e-07"):
        assert number in said["exp2-table"]
    assert "99.0%" in printed  # equal in bfloat16
    assert "0%" in said["rescale-table"]
    for number in ("0.027", "0.417"):
        assert number in said["bug-table"]
    assert "τ = 4, offset 4" in printed


@pytest.mark.parametrize("number", ["04", "05"])
def test_the_figures_are_those_that_the_script_draws(
    number: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for script in ("make_03.py", f"make_{number}.py"):
        shutil.copy(NOTEBOOKS / "figures" / script, tmp_path / script)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "make_03", raising=False)
    runpy.run_path(str(tmp_path / f"make_{number}.py"), run_name="__main__")
    monkeypatch.delitem(sys.modules, "make_03", raising=False)
    drawn = sorted(tmp_path.glob("*.svg"))
    committed = sorted((NOTEBOOKS / "figures").glob(f"{number}-*.svg"))
    assert [path.name for path in drawn] == [path.name for path in committed]
    for path in drawn:
        assert path.read_bytes() == (NOTEBOOKS / "figures" / path.name).read_bytes()
