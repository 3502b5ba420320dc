"""The tile player in JupyterLab 4 with ipywidgets 8."""

import nbformat
from playwright.sync_api import Page, expect

import flashcourse
from browser.players import (
    CELL,
    KNOBS,
    PLAYER,
    TRAFFIC,
    check_controls,
    check_stepping,
    check_traffic_explorer,
    ready,
    write_notebook,
)


def open_and_run(page: Page, lab, *cells: str) -> None:
    """Run a new notebook in a workspace of its own, so that no other one comes back."""
    name = write_notebook(lab.folder, *cells)
    page.goto(lab.address(f"lab/workspaces/{name.removesuffix('.ipynb')}/tree/{name}"))
    page.wait_for_function(
        "name => { const shown = window.jupyterapp?.shell.currentWidget;"
        " return shown?.context?.path === name &&"
        " shown.sessionContext?.session?.kernel?.connectionStatus === 'connected' }",
        arg=name,
    )
    page.evaluate("window.jupyterapp.commands.execute('notebook:run-all-cells')")


def test_the_player_steps_in_jupyterlab_and_shows_the_closed_form(page, lab):
    open_and_run(page, lab, CELL, "flashcourse.step(block_size=4)")
    second = ready(page, 1)
    check_stepping(page, ready(page))
    assert second.get_attribute("data-step") == "0"  # two players leave each other alone


def test_the_knobs_work_in_jupyterlab_with_ipywidgets_8(page, lab):
    open_and_run(page, lab, KNOBS)
    check_controls(page)


def test_the_explorers_work_in_jupyterlab_with_ipywidgets_8(page, lab):
    open_and_run(page, lab, TRAFFIC)
    check_traffic_explorer(page)


def test_an_untrusted_notebook_shows_the_picture_of_the_last_state(page, lab):
    name = write_notebook(lab.folder, CELL)
    notebook = nbformat.read(lab.folder / name, 4)
    html = flashcourse.step().html()
    notebook.cells[0].outputs = [nbformat.v4.new_output("display_data", {"text/html": html})]
    nbformat.write(notebook, lab.folder / name)
    page.goto(lab.address(f"lab/workspaces/untrusted/tree/{name}"))
    picture = page.locator('.jp-OutputArea img[alt^="The state after the last tile"]')
    expect(picture).to_be_visible()
    expect(page.locator(f"{PLAYER}[data-ready]")).to_have_count(0)
