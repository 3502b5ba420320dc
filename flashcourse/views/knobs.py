"""What the explorers share: knobs in a row, a figure under them, one redraw when a knob turns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import ipywidgets as widgets

_LABEL = {"description_width": "130px"}


class Explorer:
    """Knobs by name, and an HTML figure that `draw(**values)` makes of their values.

    `draw` returns HTML; a ValueError that it raises stands there as a message instead.
    """

    def __init__(self, knobs: dict[str, widgets.Widget], draw: Callable[..., str]) -> None:
        self.knobs, self.draw = knobs, draw
        self.figure = widgets.HTML()
        for knob in knobs.values():
            knob.observe(self.redraw, names="value")
        wrap = widgets.Layout(display="flex", flex_flow="row wrap")
        self.view = widgets.VBox([widgets.Box(list(knobs.values()), layout=wrap), self.figure])
        self.redraw()

    def redraw(self, _change: Any = None) -> None:
        values = {name: knob.value for name, knob in self.knobs.items()}
        try:
            self.figure.value = self.draw(**values)
        except ValueError as error:
            self.figure.value = alert(str(error))


def choice(
    label: str, options: Sequence[Any], value: Any = None, width: str = "290px"
) -> widgets.Dropdown:
    """A drop-down list. options: values, or pairs (label, value)."""
    chosen = {} if value is None else {"value": value}
    return widgets.Dropdown(
        options=options, description=label, style=_LABEL, layout=_wide(width), **chosen
    )


def whole_number(label: str, value: int) -> widgets.IntText:
    return widgets.IntText(
        value, description=label, style=_LABEL, layout=_wide("230px"), continuous_update=False
    )


def slider(label: str, value: int, low: int, high: int) -> widgets.IntSlider:
    return widgets.IntSlider(
        value, low, high, description=label, style=_LABEL, layout=_wide("420px")
    )


def words(label: str, value: str) -> widgets.Text:
    return widgets.Text(
        value, description=label, style=_LABEL, layout=_wide("520px"), continuous_update=False
    )


def _wide(width: str) -> widgets.Layout:
    return widgets.Layout(width=width, max_width="96%")


def alert(message: str) -> str:
    """A message about a value that makes no sense. `message` is text or HTML of our own."""
    style = "padding:8px 12px;border-radius:8px;background:#FDE5DB;color:#7A2406;line-height:1.4"
    return f'<div role="alert" style="{style}">{message}</div>'
