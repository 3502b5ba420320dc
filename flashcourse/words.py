"""A sentence in the course's two languages, and which one a reader gets."""

from __future__ import annotations

import os
from typing import NamedTuple

LANGUAGES = ("en", "zh")


class Text(NamedTuple):
    """One sentence, written twice. `str(text)` is the English one."""

    en: str
    zh: str

    def in_(self, lang: str) -> str:
        return self.zh if lang == "zh" else self.en

    def __str__(self) -> str:
        return self.en


def check_language(lang: str) -> str:
    """`lang` itself, or a ValueError that names the languages there are."""
    if lang not in LANGUAGES:
        raise ValueError(f"unknown language {lang!r}: use one of {', '.join(LANGUAGES)}")
    return lang


_chosen: list[str] = []


def use_language(lang: str) -> None:
    """Let everything that the course says in this process be in `lang` ('en' or 'zh')."""
    _chosen[:] = [check_language(lang)]


def course_language() -> str:
    """The reader's language: what `use_language` chose, else COURSE_LANG, else 'en'."""
    if _chosen:
        return _chosen[0]
    return check_language(os.environ.get("COURSE_LANG") or "en")
