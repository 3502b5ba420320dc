"""What collecting has to say about one file."""

from __future__ import annotations

from dataclasses import dataclass

from flashcourse.words import Text

KINDS = ("repair", "doubt", "refused")


@dataclass(frozen=True)
class Note:
    """One sentence about a file.

    kind: 'repair' (mended, nothing to do), 'doubt' (a choice that a person should look at) or
    'refused' (not taken; the sentence says what to do).
    """

    kind: str
    text: Text

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"unknown kind {self.kind!r}: one of {', '.join(KINDS)}")


def repair(en: str, zh: str) -> Note:
    return Note("repair", Text(en, zh))


def doubt(en: str, zh: str) -> Note:
    return Note("doubt", Text(en, zh))


class Refused(Exception):
    """A file that can't be taken. text: why, and what to do.

    aside: whether it can't be a version of the notebook, so that it may be passed over in silence
    where the notebook is there too.
    """

    def __init__(self, en: str, zh: str, aside: bool = False) -> None:
        super().__init__(en)
        self.text = Text(en, zh)
        self.aside = aside

    @property
    def note(self) -> Note:
        return Note("refused", self.text)
