"""A learner at lesson 3 in JupyterLab: wrong at TODO 5, card read, hints opened, fixed, green.

With FLASHCOURSE_SHOTS=folder every stage is kept as a picture, in the light and the dark theme.
"""

from __future__ import annotations

import os
import re

import nbformat
import pytest
import torch
from playwright.sync_api import Locator, Page, expect

from browser.conftest import Server
from browser.test_lessons_in_lab import (
    IDLE,
    is_answer,
    reader,  # noqa: F401 (a fixture)
    released,
)
from flashcourse.checks.forward_problems import compared

LESSON = "03_flash_forward"
RIGHT = "l_new = alpha * l_i + l_block"
WRONG = "l_new = l_i + l_block"  # the old sum keeps the old maximum as its base
# What the card says about it, in the words of each edition.
SAID = {
    "en": r"line (?P<line>\d+) l_new = l_i \+ l_block Tile \(i=(?P<i>\d+), j=(?P<j>\d+)\): "
    r"l_new\[(?P<row>\d+), 0\] is "
    r"(?P<mine>[\d.]+)\. .* it should be (?P<right>[\d.]+)\.",
    "zh": r"第 (?P<line>\d+) 行 l_new = l_i \+ l_block 块 \(i=(?P<i>\d+), j=(?P<j>\d+)\)："
    r"l_new\[(?P<row>\d+), 0\] 是 "
    r"(?P<mine>[\d.]+)。.*，它应为 (?P<right>[\d.]+)。",
}
HINTS = {
    "en": ("Hint 1: a question", "Hint 2: the formula", "Hint 3: the line"),
    "zh": ("提示 1：一个问题", "提示 2：公式", "提示 3：代码"),
}
QUESTION = {"en": "What happens to it when the maximum grows?", "zh": "最大值变大时，它该怎么变？"}
FORMULA = "l_new = α·l_old + rowsum P"
LINE = "l_new = torch.exp(m_i - m_new) * l_i + l_block"
POINTS = {"en": "{} / {} points", "zh": "{} / {} 分"}
COUNT_OF = """
id => window.jupyterapp.shell.currentWidget.content.widgets
  .find(cell => cell.model.id === id).model.executionCount
"""
RAN_AGAIN = f"""
([id, before]) => {{
  const count = ({COUNT_OF})(id);
  return count !== null && count !== before;
}}
"""
PLACE_OF = """
id => window.jupyterapp.shell.currentWidget.content.widgets
  .findIndex(cell => cell.model.id === id)
"""
SOURCE_OF = """
id => window.jupyterapp.shell.currentWidget.content.widgets
  .find(cell => cell.model.id === id).model.sharedModel.getSource()
"""
THEME = "theme => window.jupyterapp.commands.execute('apputils:change-theme', {theme})"


class Learner:
    """Someone at a notebook that is open in JupyterLab. Cells go by their ids."""

    def __init__(self, page: Page, name: str) -> None:
        self.page, self.name = page, name

    def cell(self, id: str) -> Locator:
        place = self.page.evaluate(PLACE_OF, id)
        return self.page.locator(".jp-Notebook .jp-Cell").nth(place)

    def card(self, id: str) -> Locator:
        return self.cell(id).locator("section.fc-card")

    def run(self, id: str) -> None:
        """Click into the cell, press Shift+Enter, wait until it has run."""
        before = self.page.evaluate(COUNT_OF, id)
        self.cell(id).locator(".cm-content").click()
        self.page.keyboard.press("Shift+Enter")
        self.page.wait_for_function(RAN_AGAIN, arg=[id, before])
        self.page.wait_for_function(IDLE, arg=self.name)

    def write(self, id: str, source: str) -> None:
        """Put a whole answer in place of what the cell holds."""
        self.cell(id).locator(".cm-content").click()
        self.page.keyboard.press("Control+a")
        self.page.keyboard.insert_text(source)

    def retype(self, id: str, old: str, new: str) -> None:
        """Click on the line that reads `old` and type `new` in its place."""
        self.cell(id).locator(".cm-line").filter(has_text=old).click()
        self.page.keyboard.press("Home")  # to the end of the indentation
        self.page.keyboard.press("Shift+End")
        self.page.keyboard.type(new)

    def source(self, id: str) -> str:
        return self.page.evaluate(SOURCE_OF, id)

    def keep_picture(self, id: str, stage: str) -> None:
        folder = os.environ.get("FLASHCOURSE_SHOTS")
        if not folder:
            return
        for theme in ("Dark", "Light"):
            self.page.evaluate(THEME, f"JupyterLab {theme}")
            light = str(theme == "Light").lower()
            expect(self.page.locator("body")).to_have_attribute("data-jp-theme-light", light)
            path = f"{folder}/{self.name.split('.')[0]}-{stage}-{theme.lower()}.png"
            self.cell(id).screenshot(path=path)


def solution(lang: str) -> str:
    cells = released(LESSON, lang, solved=True).cells
    return next(cell.source for cell in cells if is_answer(cell))


def sums(i: int, j: int, row: int) -> tuple[float, float]:
    """l_new of a row at tile (i, j) in float64: with the mistake, and from the same l_i right."""
    problem = compared(0)[0]
    q, k = problem.q.double(), problem.k.double()
    scores = (q[i + row] @ k[: j + problem.block].T) / q.shape[-1] ** 0.5
    before, largest, old = -torch.inf, -torch.inf, 0.0
    for tile in scores.split(problem.block):
        l_i, before = old, largest
        largest = max(before, float(tile.max()))
        l_block = float(torch.exp(tile - largest).sum())
        old = l_i + l_block
    return old, float(torch.exp(torch.tensor(before - largest))) * l_i + l_block


def open_hints(learner: Learner, lang: str) -> None:
    """Each hint is out of sight until it is asked for, and is opened by a click."""
    card = learner.card("check-todo5")
    told = (QUESTION[lang], FORMULA, LINE)
    for step, (title, text) in enumerate(zip(HINTS[lang], told, strict=True), start=1):
        for later in HINTS[lang][step:]:
            expect(card.get_by_text(later)).to_be_hidden()
        expect(card.get_by_text(text)).to_be_hidden()
        card.get_by_text(title).click()
        expect(card.get_by_text(text)).to_be_visible()
        learner.keep_picture("check-todo5", f"2-hint-{step}")


@pytest.mark.parametrize("lang", ["en", pytest.param("zh", marks=pytest.mark.slow)])
def test_a_learner_wrong_at_todo_5_reads_the_card_opens_the_hints_and_gets_it_right(
    reader: Page,  # noqa: F811
    lab: Server,
    lang: str,
) -> None:
    name = f"learner-{lang}.ipynb"
    nbformat.write(released(LESSON, lang, solved=False), lab.folder / name)
    reader.goto(lab.address(f"lab/workspaces/learner-{lang}/tree/{name}"))
    reader.wait_for_function(IDLE, arg=name)
    learner = Learner(reader, name)
    for cell in ("start", "answer", "check-todo5"):
        learner.run(cell)
    expect(learner.card("check-todo5")).to_have_class(re.compile("fc-unfinished"))

    answer = solution(lang)
    learner.write("answer", answer.replace(RIGHT, WRONG))
    learner.run("answer")
    learner.run("check-todo5")
    card = learner.card("check-todo5")
    expect(card).to_have_class(re.compile("fc-wrong"))
    assert POINTS[lang].format(0, 10) in card.inner_text()
    text = " ".join(card.inner_text().split())
    said = re.search("TODO 5 · " + SAID[lang], text)
    assert said, text
    assert answer.splitlines()[int(said["line"]) - 1].strip() == RIGHT
    mine, right = sums(int(said["i"]), int(said["j"]), int(said["row"]))
    assert float(said["mine"]) == pytest.approx(mine, rel=1e-3)
    assert float(said["right"]) == pytest.approx(right, rel=1e-3)
    assert abs(mine - right) > 0.01
    learner.keep_picture("check-todo5", "1-wrong")
    open_hints(learner, lang)

    learner.retype("answer", WRONG, RIGHT)
    assert learner.source("answer") == answer
    learner.run("answer")
    for check, points in (("check-todo5", 10), ("check-whole", 20)):
        learner.run(check)
        expect(learner.card(check)).to_have_class(re.compile("fc-right"))
        assert POINTS[lang].format(points, points) in learner.card(check).inner_text()
        learner.keep_picture(check, f"3-right-{check}")
