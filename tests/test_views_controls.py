"""The knobs around the player, without a front end: what they make of sizes, good and bad."""

import pytest

from flashcourse.views.controls import TileExplorer


@pytest.mark.parametrize(
    "knob, value, said",
    [
        ("seq_len", 0, "at least 1"),
        ("dim", -3, "at least 1"),
        ("rows", 0, "at least 1"),
        ("seq_len", 5000, "at most 2048"),
        ("seq_len", 600, "90000 tiles are too many"),
    ],
)
def test_a_size_that_makes_no_sense_gets_a_message(knob, value, said):
    explorer = TileExplorer(None, "en")
    assert explorer.message.value == ""
    explorer.knobs[knob].value = value
    assert said in explorer.message.value
    explorer.knobs[knob].value = 8
    assert explorer.message.value == ""


def test_the_message_is_in_the_readers_language():
    explorer = TileExplorer(None, "zh")
    explorer.knobs["dim"].value = 0
    assert "没有意义" in explorer.message.value


def test_without_a_function_there_is_no_choice_of_implementation():
    assert "who" not in TileExplorer(None, "en").knobs
    with_function = TileExplorer(lambda q, k, v, block_size: q, "en")
    assert with_function.values()["who"] == "yours"
    assert with_function.knobs["keys"].disabled  # one block_size for both
    with_function.knobs["who"].value = "exact"
    assert not with_function.knobs["keys"].disabled
