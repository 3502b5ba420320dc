"""Make the font in which matplotlib writes the course's Chinese.

Run `python -m flashcourse.views.make_font` when figures got new words. The font is a subset of
Noto Sans CJK SC (SIL Open Font License 1.1; fonts/OFL.txt) with the characters that the package
and the code cells of the lessons use. It gets a name of its own: a modified font is not Noto.
Needs fonttools, which matplotlib brings, and Debian's fonts-noto-cjk.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from fontTools import subset
from fontTools.ttLib import TTCollection, TTFont

NAME = "Flashcourse Sans SC"
FOLDER = Path(__file__).parent / "fonts"
FILE = FOLDER / "FlashcourseSansSC-Regular.otf"
SOURCE = Path("/usr/share/fonts/opentype/noto/NotoSansCJK-Regular.ttc")
_CODE_CELL = re.compile(r"^```\{code-cell\}.*?^```$", re.MULTILINE | re.DOTALL)
_ALWAYS = "，。：；、（）？！“”‘’《》—…·×÷≈≤≥→←√∑²³αβ" + "".join(map(chr, range(0x20, 0x7F)))


def characters(root: Path) -> set[str]:
    """Every CJK character in the package's Python files and in the lessons' code cells."""
    texts = [path.read_text("utf-8") for path in sorted((root / "flashcourse").rglob("*.py"))]
    for lesson in sorted((root / "notebooks").glob("*.md")):
        texts += _CODE_CELL.findall(lesson.read_text("utf-8"))
    return {c for text in texts for c in text if "一" <= c <= "鿿"} | set(_ALWAYS)


def make(source: Path, wanted: set[str]) -> TTFont:
    """The subset, renamed."""
    fonts = TTCollection(source).fonts
    font = next(f for f in fonts if f["name"].getDebugName(1) == "Noto Sans CJK SC")
    font.recalcTimestamp = False  # the same characters make the same bytes
    options = subset.Options(hinting=False, layout_features=[], notdef_outline=True)
    options.name_IDs = [0, 1, 2, 3, 4, 6, 13, 14]
    options.drop_tables += ["BASE", "VORG", "vhea", "vmtx", "GPOS", "GSUB", "DSIG"]
    tool = subset.Subsetter(options)
    tool.populate(text="".join(sorted(wanted)))
    tool.subset(font)
    _rename(font)
    return font


def _rename(font: TTFont) -> None:
    plain = NAME.replace(" ", "") + "-Regular"
    names = {1: NAME, 3: f"1.0;{plain}", 4: NAME, 6: plain}
    for record in list(font["name"].names):
        if record.nameID in names:
            font["name"].setName(names[record.nameID], record.nameID, record.platformID,
                                 record.platEncID, record.langID)  # fmt: skip
    cff = font["CFF "].cff
    cff.fontNames[0] = plain
    top = cff.topDictIndex[0]
    top.FullName, top.FamilyName = NAME, NAME


def main() -> None:
    if not SOURCE.exists():
        sys.exit(f"{SOURCE} is missing: apt-get install fonts-noto-cjk")
    wanted = characters(Path(__file__).parents[2])
    make(SOURCE, wanted).save(FILE)
    print(f"{FILE.name}: {len(wanted)} characters, {FILE.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
