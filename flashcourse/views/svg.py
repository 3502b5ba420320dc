"""The few SVG elements that the static pictures and the explorers are drawn with, as strings."""

from __future__ import annotations

import base64
import math
from html import escape

# Okabe & Ito's palette, told apart by readers with any kind of colour vision; `pale` are tints.
Q, KV, OUT, WRONG = "#0072B2", "#C77700", "#00785A", "#C1440E"
Q_PALE, KV_PALE, OUT_PALE, WRONG_PALE = "#DCEBF6", "#FBEBCF", "#D8EFE6", "#FBE3DA"
INK, SOFT, LINE, PAPER = "#1F2933", "#5B6770", "#C9D1D8", "#FFFFFF"


def number(x: float) -> str:
    """A number as the pictures and the player write it: 3 decimals, fewer when it is large."""
    if math.isnan(x):
        return "NaN"
    if math.isinf(x):
        return "∞" if x > 0 else "−∞"
    size = abs(x)
    if size != 0 and (size >= 1e5 or size < 5e-4):
        mantissa, exponent = f"{x:.1e}".split("e")
        return f"{mantissa}e{int(exponent)}".replace("-", "−")
    decimals = 3 if size < 100 else 1
    return f"{x:.{decimals}f}".replace("-", "−")


def _written(value: object) -> str:
    """Coordinates with 2 decimals at most; everything else as it is."""
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)


def _attributes(attributes: dict[str, object]) -> str:
    return "".join(
        f' {name.rstrip("_").replace("_", "-")}="{escape(_written(value))}"'
        for name, value in attributes.items()
    )


def element(tag: str, content: str = "", **attributes: object) -> str:
    """One element; `font_size` becomes `font-size`, `class_` becomes `class`."""
    return f"<{tag}{_attributes(attributes)}>{content}</{tag}>"


def rect(x: object, y: object, width: object, height: object, **attributes: object) -> str:
    return element("rect", "", x=x, y=y, width=width, height=height, **attributes)


def line(x1: object, y1: object, x2: object, y2: object, **attributes: object) -> str:
    return element("line", "", x1=x1, y1=y1, x2=x2, y2=y2, **({"stroke": LINE} | attributes))


def text(x: object, y: object, words: str, **attributes: object) -> str:
    return element("text", escape(words), x=x, y=y, **({"fill": INK} | attributes))


def document(width: float, height: float, body: str, title: str) -> str:
    """A picture that scales to its width, on paper of its own so that dark themes keep it."""
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" '
        f'width="{width:g}" role="img" style="max-width:100%;height:auto" '
        'font-family="sans-serif" font-size="13">'
    )
    paper = rect(0, 0, width, height, fill=PAPER, rx=6)
    return f"{head}<title>{escape(title)}</title>{paper}{body}</svg>"


def data_uri(svg: str) -> str:
    return "data:image/svg+xml;base64," + base64.b64encode(svg.encode()).decode()
