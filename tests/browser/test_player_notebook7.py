"""The tile player in Notebook 7, which shares JupyterLab's parts but takes more keys for itself."""

from browser.players import CELL, check_stepping, ready, write_notebook


def test_the_player_steps_in_notebook_7_and_shows_the_closed_form(page, notebook7):
    page.goto(notebook7.address(f"notebooks/{write_notebook(notebook7.folder, CELL)}"))
    page.wait_for_function(
        "window.jupyterapp?.shell.currentWidget?.sessionContext?.session?.kernel"
        "?.connectionStatus === 'connected'"
    )
    page.evaluate("window.jupyterapp.commands.execute('notebook:run-all-cells')")
    check_stepping(page, ready(page))
