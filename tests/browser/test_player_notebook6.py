"""The tile player in Notebook 6.5.7 with ipywidgets 7.7.1: what Colab's widgets are made of."""

from playwright.sync_api import Page

from browser.players import (
    CELL,
    KNOBS,
    TRAFFIC,
    check_controls,
    check_stepping,
    check_traffic_explorer,
    ready,
    write_notebook,
)


def open_and_run(page: Page, notebook6, *cells: str) -> None:
    """Run a new notebook once its widget manager has asked the fresh kernel for widgets in vain.

    Running earlier than any person can, while that question is open, loses the cell's widget.
    """
    address = notebook6.address(f"notebooks/{write_notebook(notebook6.folder, *cells)}")
    in_vain = "fallback to fetching individual model state"
    with page.expect_console_message(lambda message: in_vain in message.text):
        page.goto(address)
    page.evaluate("Jupyter.notebook.execute_all_cells()")


def test_the_player_steps_in_notebook_6_and_shows_the_closed_form(page, notebook6):
    open_and_run(page, notebook6, CELL, "flashcourse.step(block_size=4)")
    second = ready(page, 1)
    check_stepping(page, ready(page))
    assert second.get_attribute("data-step") == "0"


def test_the_knobs_work_in_notebook_6_with_ipywidgets_7(page, notebook6):
    open_and_run(page, notebook6, KNOBS)
    check_controls(page)


def test_the_explorers_work_in_notebook_6_with_ipywidgets_7(page, notebook6):
    open_and_run(page, notebook6, TRAFFIC)
    check_traffic_explorer(page)
