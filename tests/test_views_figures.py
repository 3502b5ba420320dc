"""Figures: Chinese shows on a machine without any Chinese font, and the numbers are the papers'."""

import warnings
from pathlib import Path

import matplotlib
import pytest
from fontTools.ttLib import TTFont
from matplotlib import font_manager

from flashcourse.views import figures, make_font


@pytest.fixture(autouse=True)
def no_screen():
    matplotlib.use("Agg")


def test_the_font_has_every_character_of_the_figures_and_is_not_called_noto():
    font = TTFont(make_font.FILE)
    words = "".join(text.zh for text in figures._WORDS.values())
    missing = {c for c in words if "一" <= c <= "鿿"} - {chr(c) for c in font.getBestCmap()}
    assert not missing, "run python -m flashcourse.views.make_font"
    names = " ".join(str(record) for record in font["name"].names if record.nameID in (1, 3, 4, 6))
    assert "Flashcourse" in names and "Noto" not in names and "Source" not in names


def test_the_licence_stands_beside_the_font():
    words = (make_font.FOLDER / "OFL.txt").read_text("utf-8")
    assert "SIL OPEN FONT LICENSE Version 1.1" in words and "Adobe" in words
    assert make_font.FILE.stat().st_size < 300_000


@pytest.mark.parametrize("draw", [figures.roofline, figures.score_memory])
def test_no_character_is_missing_without_system_fonts(draw, monkeypatch, tmp_path: Path):
    own = font_manager.FontProperties(fname=make_font.FILE).get_name()
    monkeypatch.setattr(figures, "font_family", lambda: ["sans-serif", own])
    font_manager.fontManager.addfont(make_font.FILE)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # matplotlib warns of a missing glyph
        draw(lang="zh").savefig(tmp_path / "figure.png")
        draw(lang="en").savefig(tmp_path / "figure.png")


def test_storing_the_scores_gives_62_flop_per_byte_and_blocks_of_128_twice_that():
    # 4N²d FLOPs over 2(4N² + 4Nd) bytes: d/2 · N/(N + d) = 62 FLOP/B; the A100's ridge is at 201.
    figure = figures.roofline("A100-40GB", N=4096, d=128, lang="en")
    labels = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert labels[0].endswith(": 62") and labels[2] == "ridge: 201"
    assert 120 < float(labels[1].rsplit(" ", 1)[1]) < 130  # ≈ Br = 128
