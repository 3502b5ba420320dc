"""The tile player in JupyterLab 4 with ipywidgets 8."""

from playwright.sync_api import Page

from browser.players import CELL, check_stepping, ready, write_notebook


def open_and_run(page: Page, lab, *cells: str) -> None:
    page.goto(lab.address(f"lab/tree/{write_notebook(lab.folder, *cells)}"))
    page.wait_for_function(
        "window.jupyterapp?.shell.currentWidget?.sessionContext?.session?.kernel"
        "?.connectionStatus === 'connected'"
    )
    page.evaluate("window.jupyterapp.commands.execute('notebook:run-all-cells')")


def test_the_player_steps_in_jupyterlab_and_shows_the_closed_form(page, lab):
    open_and_run(page, lab, CELL, "flashcourse.step(block_size=4)")
    second = ready(page, 1)
    check_stepping(page, ready(page))
    assert second.get_attribute("data-step") == "0"  # two players leave each other alone
