"""Pictures in a Markdown cell: a derivation on paper, say, as Jupyter or Colab keeps it."""

from __future__ import annotations

import hashlib
import re
from typing import Any
from urllib.parse import unquote

KINDS = ("image/png", "image/jpeg", "image/gif")  # these can't run anything
BASE64 = re.compile(r"[A-Za-z0-9+/=\s]*")
MOST = 16 * 2**20  # characters of base64 in one cell: a photograph or two

# Jupyter attaches a pasted picture to the cell. Colab writes it into the words.
_ATTACHED = re.compile(r"\]\(attachment:([^)\s]{1,300})\)")
_WITHIN = re.compile(r"\]\(data:(image/(?:png|jpeg|gif));base64,([A-Za-z0-9+/=]+)\)")
# nbconvert can't show a cell at all that asks for an attachment which isn't there.
_OTHER = re.compile(r"attachment(?=[:\\&])(?::(picture-[0-9a-f]{16}\.\w{1,5})\))?")

# As a notebook's `attachments`: by name, the base64 text by its media type.
Pictures = dict[str, dict[str, str]]


def lift(words: str, attachments: Any) -> tuple[str, Pictures]:
    """Markdown and its pictures, all of them attached and under names of our own."""
    there, found = _usable(attachments), Pictures()

    def named(data: dict[str, str]) -> str:
        # By its content: cells of one answer can be joined, and no name stands for two pictures.
        (kind, text), *_ = data.items()
        mark = hashlib.sha256(text.encode()).hexdigest()[:16]
        name = f"picture-{mark}.{kind.partition('/')[2]}"
        found[name] = data
        return f"](attachment:{name})"

    def attached(match: re.Match[str]) -> str:
        data = there.get(match[1]) or there.get(unquote(match[1]))
        return named(data) if data else f"](lost:{match[1]})"

    def other(match: re.Match[str]) -> str:
        return match[0] if match[1] in found else match[0].replace("attachment", "attachment\u2060")

    words = _ATTACHED.sub(attached, words)
    words = _WITHIN.sub(lambda match: named({match[1]: match[2]}), words)
    return _OTHER.sub(other, words), found


def _usable(attachments: Any) -> Pictures:
    """The attachments that are nothing but pictures."""
    kept, room = Pictures(), MOST
    for name, data in attachments.items() if isinstance(attachments, dict) else ():
        for kind in KINDS:
            text = data.get(kind) if isinstance(data, dict) else None
            if isinstance(text, str) and len(text) <= room and BASE64.fullmatch(text):
                kept[name] = {kind: text}
                room -= len(text)
                break
    return kept
