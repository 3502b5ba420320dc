"""A learner's session with the card: wrong at TODO 5, hints opened one by one, fixed, green."""

from __future__ import annotations

import pytest
from wheat_and_chaff.chaff import CHAFF
from wheat_and_chaff.test_wheat_and_chaff import function_of
from wheat_and_chaff.wheat import wheat_skeleton

from flashcourse.checks import mark

WRONG = next(chaff for chaff in CHAFF if chaff.name == "the origin's formula")
SAID = {
    "en": ("line 24", "it should be", "10 / 10 points", "right"),
    "zh": ("第 24 行", "它应为", "10 / 10 分", "正确"),
}


def show(browser, *cards: str, light: bool = True, scripts: bool = False):
    """A page as an exported notebook is: no script, 400 px wide."""
    page = browser.new_context(
        viewport={"width": 400, "height": 800}, java_script_enabled=scripts
    ).new_page()
    page.set_content(
        f"<!doctype html><body data-jp-theme-light={str(light).lower()}>{''.join(cards)}</body>"
    )
    return page


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_hints_open_one_after_the_other_without_scripts_and_the_fixed_answer_is_green(
    browser, lang
):
    line, should_be, points, right = SAID[lang]
    page = show(browser, mark("forward.todo5", function_of(WRONG), lang=lang)._repr_html_())
    card = page.locator("section.fc-card")
    assert line in card.inner_text() and should_be in card.inner_text()
    for step in range(3):
        summaries = card.locator("summary")
        assert [summaries.nth(n).is_visible() for n in range(3)] == [n <= step for n in range(3)]
        summaries.nth(step).click()
    assert "l_new = torch.exp(m_i - m_new) * l_i + l_block" in card.inner_text()

    page = show(browser, mark("forward.todo5", wheat_skeleton, lang=lang)._repr_html_())
    text = page.locator("section.fc-right").inner_text()
    assert points in text and right in text


@pytest.mark.parametrize("light", [True, False])
def test_the_card_fits_400_px_and_is_readable_in_both_themes(browser, light):
    card = mark("forward", function_of(WRONG))._repr_html_()
    page = show(browser, card, light=light, scripts=True)
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    script = (
        "() => { const s = getComputedStyle(document.querySelector('.fc-card'));"
        " return [s.color, s.backgroundColor].map(c => c.match(/\\d+/g).slice(0, 3)"
        ".reduce((sum, x) => sum + Number(x), 0) / 765); }"
    )
    ink, paper = page.evaluate(script)
    assert abs(ink - paper) > 0.6 and (paper > 0.5) == light
