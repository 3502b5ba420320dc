"""The worked example of lesson 3: numbers that a reader can check by hand."""

import math
from pathlib import Path
from xml.etree import ElementTree

import pytest
import torch

from flashcourse.attention import attention, scores
from flashcourse.views.tile_states import tile_state_svg, worked_example

FIGURES = Path(__file__).parents[1] / "notebooks" / "figures"


def test_the_scores_are_whole_multiples_of_ln_2():
    q, k, v = worked_example()
    expected = torch.tensor([[1, 0, 2, 0], [2, 1, 0, 0], [0, 0, 3, 1], [1, 1, 1, 0]])
    torch.testing.assert_close(scores(q, k) / math.log(2), expected.double())
    # Row 0 by hand: weights 2, 1, 4, 1 of 8; O = (2·3 + 4·4, 1·3 + 1·4) / 8.
    torch.testing.assert_close(
        attention(q, k, v)[0], torch.tensor([22 / 8, 7 / 8], dtype=torch.float64)
    )


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_picture_shows_the_states_worked_out_by_hand(lang):
    picture = tile_state_svg(lang)
    ElementTree.fromstring(picture)
    for line in (
        "m = max(−∞, 1) = 1, α = 0",  # q0 after (0, 0)
        "m = max(1, 2) = 2, α = 1/2",  # q0 after (0, 2): the maximum rises by ln 2
        "l = 1/2·1.5 + 1 + 1/4 = 2",
        "O = (2.75, 0.875)",
        "m = max(2, 0) = 2, α = 1",  # q1 after (0, 2): the maximum stays
        "l = 1/8·2 + 1 + 1/4 = 1.5",  # q2 after (2, 2)
    ):
        assert line in picture
    assert (FIGURES / f"tile-states.{lang}.svg").read_text("utf-8").strip() == picture
    assert len(picture) < 40_000
