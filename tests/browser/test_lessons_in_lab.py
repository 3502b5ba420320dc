"""A student opens a released lesson in JupyterLab and runs it: empty first, then solved.

With FLASHCOURSE_SHOTS=folder the pages are kept as pictures, to be looked at.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from playwright.sync_api import Browser, Page

from browser.conftest import REPO, Server

# One edition empty always; the other lessons and editions with `pytest -m slow`
# (without a browser, `make env-a` runs them all).
ALWAYS = "03_flash_forward"
LESSONS = [
    pytest.param(path.name, marks=[] if path.name == ALWAYS else pytest.mark.slow)
    for path in sorted((REPO / "release" / "en").iterdir())
    if path.is_dir()
]
IDLE = """
name => {
  const widget = window.jupyterapp?.shell.currentWidget;
  const kernel = widget?.sessionContext?.session?.kernel;
  return widget?.context?.path === name
    && kernel?.connectionStatus === 'connected' && kernel.status === 'idle';
}
"""
ALL_RAN = """
() => window.jupyterapp.shell.currentWidget.content.widgets
  .filter(cell => cell.model.type === 'code' && cell.model.sharedModel.getSource().trim())
  .every(cell => cell.model.executionCount !== null)
"""
CONTENT = "() => window.jupyterapp.shell.currentWidget.content.model.toJSON()"


@pytest.fixture
def reader(browser: Browser, lab: Server) -> Iterator[Page]:
    """A page that draws every cell of a notebook, not only those in sight."""
    settings = lab.folder / ".jupyter/jupyter_config_dir/lab/user-settings"
    tracker = settings / "@jupyterlab/notebook-extension/tracker.jupyterlab-settings"
    tracker.parent.mkdir(parents=True, exist_ok=True)
    tracker.write_text('{"windowingMode": "none"}')
    context = browser.new_context(viewport={"width": 1100, "height": 1400})
    page = context.new_page()
    page.set_default_timeout(120_000)
    yield page
    context.close()


def released(lesson: str, lang: str, solved: bool) -> nbformat.NotebookNode:
    """The student's notebook; solved: with the instructor's answer cells put in."""
    path = Path(lang, lesson, f"{lesson}.ipynb")
    notebook = nbformat.read(REPO / "release" / path, as_version=4)
    if solved:
        source = nbformat.read(REPO / "source" / path, as_version=4)
        answers = {c.id: c.source for c in source.cells if is_answer(c)}
        for cell in notebook.cells:
            cell.source = answers.get(cell.id, cell.source)
    return notebook


def is_answer(cell: nbformat.NotebookNode) -> bool:
    grading = cell.metadata.get("nbgrader", {})
    return cell.cell_type == "code" and grading.get("solution", False)


def run_all(page: Page, lab: Server, name: str, notebook: nbformat.NotebookNode) -> dict[str, Any]:
    """Open the notebook, run every cell, and return it with its outputs."""
    nbformat.write(notebook, lab.folder / name)
    # A workspace of its own: JupyterLab would open what the test before left open.
    page.goto(lab.address(f"lab/workspaces/{Path(name).stem}/tree/{name}"))
    page.wait_for_function(IDLE, arg=name)
    page.evaluate("window.jupyterapp.commands.execute('notebook:run-all-cells')")
    page.wait_for_function(ALL_RAN)
    page.wait_for_function(IDLE, arg=name)
    return page.evaluate(CONTENT)


def outputs(notebook: dict[str, Any]) -> list[dict[str, Any]]:
    return [output for cell in notebook["cells"] for output in cell.get("outputs", [])]


def points(notebook: dict[str, Any]) -> dict[str, float]:
    """What each visible check gives: the plain text of its card."""
    found = {}
    for cell in notebook["cells"]:
        grading = cell["metadata"].get("nbgrader", {})
        results = [o for o in cell.get("outputs", []) if o["output_type"] == "execute_result"]
        if grading.get("locked") and results:
            found[grading["grade_id"]] = float("".join(results[-1]["data"]["text/plain"]))
    return found


def keep_picture(page: Page, name: str) -> None:
    """A picture of every cell, in the folder that FLASHCOURSE_SHOTS names."""
    folder = os.environ.get("FLASHCOURSE_SHOTS")
    if not folder:
        return
    cells = page.locator(".jp-Notebook .jp-Cell")
    for number in range(cells.count()):
        if cells.nth(number).is_visible():
            cells.nth(number).screenshot(path=f"{folder}/{name}-{number:02d}.png")


@pytest.mark.parametrize("lang", [pytest.param("en", marks=pytest.mark.slow), "zh"])
@pytest.mark.parametrize("lesson", LESSONS)
def test_an_unfilled_lesson_runs_without_a_wall_of_red(
    reader: Page, lab: Server, lesson: str, lang: str
) -> None:
    notebook = run_all(reader, lab, f"{lesson}-{lang}.ipynb", released(lesson, lang, solved=False))
    assert [o for o in outputs(notebook) if o["output_type"] == "error"] == []
    assert set(points(notebook).values()) == {0.0}
    unfinished = {"en": "Not finished yet", "zh": "还没写完"}[lang]
    assert unfinished in json.dumps(notebook, ensure_ascii=False)
    assert reader.locator(".MathJax, mjx-container").count() > 5
    keep_picture(reader, f"{lesson}-{lang}")


@pytest.mark.slow  # test_learner_session.py solves lesson 3 always
@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("lesson", LESSONS)
def test_a_solved_lesson_passes_every_visible_check(
    reader: Page, lab: Server, lesson: str, lang: str
) -> None:
    solved = released(lesson, lang, solved=True)
    notebook = run_all(reader, lab, f"{lesson}-{lang}-solved.ipynb", solved)
    assert [o for o in outputs(notebook) if o["output_type"] == "error"] == []
    worth = {
        c.metadata.nbgrader.grade_id: c.metadata.nbgrader.points
        for c in solved.cells
        if c.metadata.get("nbgrader", {}).get("locked") and c.metadata.nbgrader.get("points")
    }
    got = points(notebook)
    assert got
    assert got == {name: worth[name] for name in got}
    keep_picture(reader, f"{lesson}-{lang}-solved")
