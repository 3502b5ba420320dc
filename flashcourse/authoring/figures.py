"""Carry pictures inside the Markdown cells: they show with no kernel and no files beside."""

from __future__ import annotations

import base64
import html
import re
from pathlib import Path

IMAGE = re.compile(r"!\[(?P<alt>[^\]]*)\]\((?P<path>figures/[^)\s]+)\)")
TYPES = {".svg": "image/svg+xml", ".png": "image/png"}


def inline_figures(source: str, folder: Path) -> str:
    """Replace each ![alt](figures/…) by an <img> that holds the picture as a data URI.

    folder: where `figures/` lies. Raises ValueError for a picture that is missing or of another
    type than SVG or PNG.
    """

    def image(match: re.Match[str]) -> str:
        path = folder / match["path"]
        if path.suffix not in TYPES:
            raise ValueError(f"picture {match['path']} is neither .svg nor .png")
        if not path.is_file():
            raise ValueError(f"picture {match['path']} does not exist")
        data = base64.b64encode(path.read_bytes()).decode()
        # Markdown's own image syntax is no use here: several renderers refuse SVG data URIs in it.
        alt = html.escape(match["alt"])
        source = f"data:{TYPES[path.suffix]};base64,{data}"
        return f'<img alt="{alt}" src="{source}" style="max-width:100%">'

    return IMAGE.sub(image, source)
