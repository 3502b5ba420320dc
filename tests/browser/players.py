"""What every front end must show: steps a player and compares it with the closed form."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from playwright.sync_api import Locator, Page, expect

from flashcourse.attention import State, state_after
from flashcourse.views.inputs import make_inputs

PLAYER = "[data-flashcourse-player]"
CELL = "import flashcourse\nflashcourse.step(block_size=2)"
TRAFFIC = "from flashcourse.views import traffic_explorer\ntraffic_explorer()"
KNOBS = "import flashcourse\nflashcourse.explore_tiles()"


def write_notebook(folder: Path, *cells: str) -> str:
    """A notebook of code cells in `folder`; its name."""
    name = f"player-{len(list(folder.glob('player-*.ipynb')))}.ipynb"
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(c) for c in cells])
    notebook.metadata["kernelspec"] = {
        "name": "python3", "language": "python", "display_name": "Python 3",
    }  # fmt: skip
    nbformat.write(notebook, folder / name)
    return name


def ready(page: Page, nth: int = 0) -> Locator:
    """The page's player, once its script has drawn it."""
    player = page.locator(PLAYER).nth(nth)
    expect(player).to_have_attribute("data-ready", "true")
    return player


def right_state(row: int, keys: int) -> State:
    """m, l, O of a row of the default inputs after so many keys, in closed form."""
    q, k, v = make_inputs()
    return state_after(q[row : row + 1], k, v, keys)


def number(words: str) -> float:
    return float(words.replace("−", "-").replace("∞", "inf"))


def shown(player: Locator, name: str, row: int) -> list[float]:
    """The numbers that the player shows for a value of a row: 'm1', 'l1', 'O1' …"""
    words = player.locator(f'.state [data-name="{name}"][data-row="{row}"]').inner_text()
    return [number(word) for word in words.strip("[]").split(",")]


def expect_state(player: Locator, row: int, keys: int) -> None:
    """m, l and O after `keys` keys stand there, to the 3 decimals that are written."""
    state = right_state(row, keys)
    assert shown(player, "m1", row) == pytest.approx(state.m.flatten().tolist(), abs=6e-4)
    assert shown(player, "l1", row) == pytest.approx(state.l.flatten().tolist(), abs=6e-4)
    assert shown(player, "O1", row) == pytest.approx(state.O.flatten().tolist(), abs=6e-4)


def check_stepping(page: Page, player: Locator) -> None:
    """The buttons, the arrow keys, Home and End step; each tile's state is the closed form."""
    expect(player).to_have_attribute("data-step", "0")
    player.locator("[data-go=next]").click()
    expect(player).to_have_attribute("data-tile", "0,2")
    expect_state(player, row=1, keys=4)
    player.locator("section").focus()
    for _ in range(4):
        page.keyboard.press("ArrowRight")
    expect(player).to_have_attribute("data-tile", "2,2")
    expect_state(player, row=2, keys=4)
    page.keyboard.press("ArrowLeft")
    expect(player).to_have_attribute("data-tile", "2,0")
    page.keyboard.press("End")
    expect(player).to_have_attribute("data-tile", "6,6")
    expect_state(player, row=7, keys=8)
    page.keyboard.press("Home")
    expect(player).to_have_attribute("data-step", "0")
    expect_state(player, row=0, keys=2)


def check_controls(page: Page) -> None:
    """Turning the knob `block: K, V rows` from 2 to 4 gives a new player, which steps in turn."""
    player = ready(page)
    expect(player.locator(".where")).to_contain_text("of 16")
    knob = page.get_by_label("block: K, V rows").or_(
        page.locator(".widget-text", has_text="block: K, V rows").locator("input")
    )
    knob.first.fill("4")
    knob.first.press("Enter")
    expect(page.locator(PLAYER).locator(".where")).to_contain_text("of 8")
    player = ready(page)
    player.locator("[data-go=next]").click()
    expect(player).to_have_attribute("data-tile", "0,4")
    expect_state(player, row=1, keys=8)
    knob.first.fill("0")
    knob.first.press("Enter")
    expect(page.get_by_text("makes no sense")).to_be_visible()


def check_traffic_explorer(page: Page) -> None:
    """A learner finds the setting in which FlashAttention-1 moves as much as the standard."""
    choices = page.locator(".widget-dropdown select")
    expect(page.get_by_text("6.08 × fewer")).to_be_visible()
    for nth, value in enumerate(("4096", "128", "96 KiB")):
        choices.nth(nth).select_option(label=value)
    expect(page.get_by_text("1.00 ×: nothing gained")).to_be_visible()
