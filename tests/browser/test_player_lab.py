"""The tile player in JupyterLab 4 with ipywidgets 8."""

from playwright.sync_api import Page

from browser.players import CELL, KNOBS, check_controls, check_stepping, ready, write_notebook


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
