"""The explorers: their numbers against hand calculation and the papers; both languages."""

import math
from xml.etree import ElementTree

import pytest

from flashcourse import views
from flashcourse.views import memory_wall, online_softmax, traffic


def test_online_softmax_of_1_3_2_5_as_worked_out_by_hand():
    seen = [online_softmax.after([1, 3, 2, 5], n) for n in (1, 2, 3, 4)]
    assert [s.m for s in seen] == [1, 3, 3, 5]
    assert [s.l for s in seen] == pytest.approx([1, 1.1353, 1.5032, 1.2034], abs=5e-5)
    assert [s.alpha for s in seen] == pytest.approx([0, math.exp(-2), 1, math.exp(-2)])


def test_the_learner_may_write_numbers_with_chinese_commas_spaces_and_minus_signs():
    assert online_softmax.parse("1， −3 2,5", "zh") == [1, -3, 2, 5]


@pytest.mark.parametrize(
    "words, said", [("1, x", "“x” is not a number"), ("", "1 to 12"), ("inf", "finite")]
)
def test_numbers_that_make_no_sense_get_a_message(words, said):
    explorer = views.online_softmax_explorer(lang="en")
    text, figure = explorer.children[0].children[0], explorer.children[1]
    text.value = words
    assert said in figure.value
    text.value = "4, 4"
    assert "<svg" in figure.value


def test_the_slider_ends_at_the_last_number():
    knobs = views.online_softmax_explorer([5, 1, 2]).children[0].children
    assert knobs[1].max == 3
    knobs[0].value = "1, 2"
    assert knobs[1].max == 2


def test_scores_of_8_times_16_heads_at_4096_take_half_a_t4():
    # 2 matrices · 8 · 16 · 4096² · 2 bytes = 8.59 GB of 16 GB.
    picture = memory_wall.figure(4096, 16, 8, "float16", "en")
    assert "8.59 GB" in picture and "54 % of 16 GB" in picture
    assert "does not fit" in memory_wall.figure(65536, 16, 8, "float16", "en")


def test_flash1_gains_6_fold_at_1024_and_nothing_at_4096_with_96_kib():
    # Both cases follow from Algorithm 1 of arXiv 2205.14135, by formula and by counting.
    gains = traffic.moved(1024, 64, 192 * 512, None)
    assert gains["standard"].formula / gains["FA1"].formula == pytest.approx(6.1, abs=0.05)
    assert all(each.formula == each.counted for each in gains.values())
    assert "1.00 ×: nothing gained" in traffic.figure(4096, 128, 96 * 512, None, "en")


def test_a_block_that_does_not_fit_gets_a_message():
    explorer = views.traffic_explorer(lang="zh")
    block = explorer.children[0].children[3]
    block.value = 256  # 4 · 256 · 64 elements fit in 192 KiB
    assert "<svg" in explorer.children[1].value
    explorer.children[0].children[2].value = 64
    assert "SRAM 只放得下 32768 个" in explorer.children[1].value


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_every_explorer_draws_well_formed_pictures_in_both_languages(lang):
    for make in ("online_softmax_explorer", "memory_wall_explorer", "traffic_explorer"):
        figure = getattr(views, make)(lang=lang).children[1].value
        words = "".join(ElementTree.fromstring(figure).itertext())
        assert any("一" <= char <= "鿿" for char in words) == (lang == "zh")
