"""What is kept of the outputs that a student's process claims.

The graded notebook is opened in the instructor's browser. nbconvert cleans HTML, SVG and Markdown
there (`sanitize_html`); what it does not clean is not kept.
"""

from __future__ import annotations

import re
from typing import Any

from flashcourse.grading.pictures import BASE64, KINDS

_FIELDS = {
    "stream": {"name", "text"},
    "display_data": {"data", "metadata"},
    "execute_result": {"data", "metadata", "execution_count"},
    "error": {"ename", "evalue", "traceback"},
}


def checked_outputs(outputs: Any) -> list[dict[str, Any]]:
    """Outputs that a student's process claims, as far as they have a notebook's form."""
    kept = []
    for output in outputs[:2000] if isinstance(outputs, list) else []:
        kind = output.get("output_type") if isinstance(output, dict) else None
        fields = _FIELDS.get(kind) if isinstance(kind, str) else None
        if fields and _well_formed(kind, output):
            plain = {name: output[name] for name in fields}
            if "data" in plain:
                plain["data"] = _shown(plain["data"])
                plain["metadata"] = _sizes(plain["metadata"])
            if plain.get("data") == {}:
                continue
            kept.append({"output_type": kind, **plain})
    return kept


def _well_formed(kind: Any, output: dict[str, Any]) -> bool:
    if not set(output) >= _FIELDS[kind]:
        return False
    if kind == "stream":
        return output["name"] in ("stdout", "stderr") and isinstance(output["text"], str)
    if kind == "error":
        lines = output["traceback"]
        texts = [output["ename"], output["evalue"], *(lines if isinstance(lines, list) else [0])]
        return all(isinstance(text, str) for text in texts)
    data, count = output["data"], output.get("execution_count")
    strings = isinstance(data, dict) and all(isinstance(v, str) for v in data.values())
    return (
        strings and isinstance(output["metadata"], dict) and (count is None or type(count) is int)
    )


_TEXTS = frozenset(
    ("text/plain", "text/html", "text/markdown", "text/latex", "image/svg+xml", "application/json")
)
# MathJax makes a link of \\href{javascript:…}, and no cleaning looks into formulas.
_SCRIPT_LINK = re.compile(r"((?:java|vb)script)(?=\s*:)", re.IGNORECASE)


def without_script_links(text: str) -> str:
    """Markdown or HTML in which `javascript:` is a word and no address."""
    return _SCRIPT_LINK.sub("\\1\u2060", text)


def _shown(data: dict[str, str]) -> dict[str, str]:
    """The representations that can't run anything, and pictures that are nothing but pictures."""
    texts = {kind: text for kind, text in data.items() if kind in _TEXTS}
    for kind in texts.keys() - {"text/plain", "application/json"}:
        texts[kind] = without_script_links(texts[kind])
    pictures = {k: v for k, v in data.items() if k in KINDS and BASE64.fullmatch(v)}
    return {**texts, **pictures}


def _sizes(metadata: dict[str, Any]) -> dict[str, Any]:
    """Width and height of pictures, as numbers: templates copy them into the page as they are."""
    return {
        kind: {name: about[name] for name in ("width", "height") if type(about.get(name)) is int}
        for kind, about in metadata.items()
        if kind in KINDS and isinstance(about, dict)
    }
