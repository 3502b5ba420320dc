"""What the tile player is given: the exact values, the learner's differences, clear refusals."""

import base64
import math

import pytest
import torch

import flashcourse
from flashcourse.attention import scores
from flashcourse.views.inputs import make_inputs
from flashcourse.views.player_words import WORDS


def flash_attention_forward_sim(q, k, v, block_size=2):
    seq_len, dim = q.shape
    out = torch.zeros(seq_len, dim)
    m = torch.full((seq_len, 1), -math.inf)
    l = torch.zeros(seq_len, 1)
    for i in range(0, seq_len, block_size):
        q_block = q[i : i + block_size] / math.sqrt(dim)
        m_i, l_i, out_i = (t[i : i + block_size] for t in (m, l, out))
        for j in range(0, seq_len, block_size):
            S_ij = q_block @ k[j : j + block_size].T
            m_block = S_ij.max(dim=-1, keepdim=True)[0]
            m_new = torch.maximum(m_i, m_block)
            P_ij = torch.exp(S_ij - m_new)
            l_block = P_ij.sum(dim=-1, keepdim=True)
            l_new = l_i * torch.exp(m_i - m_new) + l_block
            out_i = (
                out_i * (l_i * torch.exp(m_i - m_new) / l_new)
                + P_ij @ v[j : j + block_size] / l_new
            )
            m_i, l_i = m_new, l_new
        out[i : i + block_size] = out_i
    return out


def deferred(q, k, v, block_size=2):
    """FlashAttention-2: O is divided once, after the inner loop."""
    seq_len, dim = q.shape
    out = torch.zeros(seq_len, dim)
    for i in range(0, seq_len, block_size):
        q_block = q[i : i + block_size] / math.sqrt(dim)
        m_i = torch.full((q_block.shape[0], 1), -math.inf)
        l_i = torch.zeros(q_block.shape[0], 1)
        out_i = torch.zeros(q_block.shape[0], dim)
        for j in range(0, seq_len, block_size):
            S_ij = q_block @ k[j : j + block_size].T
            m_new = torch.maximum(m_i, S_ij.max(dim=-1, keepdim=True)[0])
            P_ij = torch.exp(S_ij - m_new)
            l_i = l_i * torch.exp(m_i - m_new) + P_ij.sum(dim=-1, keepdim=True)
            out_i = out_i * torch.exp(m_i - m_new) + P_ij @ v[j : j + block_size]
            m_i = m_new
        out[i : i + block_size] = out_i / l_i
    return out


def forgets_alpha(q, k, v, block_size=2):
    """l_new without the correction factor."""
    seq_len, dim = q.shape
    out = torch.zeros(seq_len, dim)
    for i in range(0, seq_len, block_size):
        q_block = q[i : i + block_size] / math.sqrt(dim)
        m_i = torch.full((q_block.shape[0], 1), -math.inf)
        l_i = torch.zeros(q_block.shape[0], 1)
        out_i = torch.zeros(q_block.shape[0], dim)
        for j in range(0, seq_len, block_size):
            S_ij = q_block @ k[j : j + block_size].T
            m_new = torch.maximum(m_i, S_ij.max(dim=-1, keepdim=True)[0])
            P_ij = torch.exp(S_ij - m_new)
            l_new = l_i + P_ij.sum(dim=-1, keepdim=True)
            out_i = (out_i * l_i * torch.exp(m_i - m_new) + P_ij @ v[j : j + block_size]) / l_new
            m_i, l_i = m_new, l_new
        out[i : i + block_size] = out_i
    return out


def unfinished(q, k, v, block_size=2):
    for i in range(0, q.shape[0], block_size):
        q_block = q[i : i + block_size] / math.sqrt(q.shape[1])
        for j in range(0, k.shape[0], block_size):
            S_ij = q_block @ k[j : j + block_size].T
            raise NotImplementedError(S_ij)


def yours(function, **options):
    return flashcourse.step(function, **options).data["yours"]


def test_the_page_gets_the_scores_and_values_to_single_precision():
    q, k, v = make_inputs()
    data = flashcourse.step().data
    sent = torch.frombuffer(bytearray(base64.b64decode(data["scores"])), dtype=torch.float32)
    torch.testing.assert_close(sent.reshape(8, 8), scores(q, k))


@pytest.mark.parametrize(
    "function, divide", [(flash_attention_forward_sim, "step"), (deferred, "end")]
)
def test_a_right_function_differs_nowhere_however_it_divides(function, divide):
    run = yours(function)
    assert run["tone"] == "right" and run["wrong"] == [] and run["first"] is None
    assert run["divide"] == divide and run["loop"] == "q" and run["tiles"] == 16


def test_the_first_difference_is_named_with_both_numbers():
    # Falling maxima: α is 1 everywhere, so that forgetting it shows nowhere but in rising ones.
    assert yours(forgets_alpha, inputs="falling")["tone"] == "right"
    run = yours(forgets_alpha, inputs="rising", lang="en")
    assert run["tone"] == "wrong" and run["first"] == 1
    assert run["message"].startswith("First difference at tile (0, 2): l_new is ")
    assert "it should be" in run["message"]


def test_each_name_comes_with_the_line_of_the_learners_code_that_assigned_it():
    line, text = yours(flash_attention_forward_sim)["code"]["P_ij"]
    assert text == "P_ij = torch.exp(S_ij - m_new)"
    with open(__file__, encoding="utf-8") as source:
        assert source.read().splitlines()[line - 1].strip() == text


def test_a_statement_over_several_lines_is_shown_whole():
    line, text = yours(flash_attention_forward_sim)["code"]["out_i"]
    assert text.startswith("out_i = ") and text.count("(") == text.count(")") > 2


def test_an_unfinished_function_plays_as_far_as_it_goes_and_is_not_called_wrong():
    run = yours(unfinished, lang="zh")
    assert run["tone"] == "open" and "还没写完" in run["message"]
    assert run["tiles"] == 16 and run["code"]["S_ij"][1].startswith("S_ij = ")
    assert {"m_new", "P_ij", "l_new", "out_i"} <= set(run["unseen"]) and run["wrong"] == []


def test_a_crash_is_told_with_its_error_and_never_raised():
    run = yours(lambda q, k, v, block_size: q @ v.T @ q.T, lang="en")
    assert run["tone"] == "wrong"
    assert "RuntimeError" in run["message"]


def test_64_tiles_of_a_wrong_run_stay_under_60_kb():
    for options in ({"seq_len": 16}, {"seq_len": 64, "block_size": 8, "dim": 64}):
        player = flashcourse.step(forgets_alpha, inputs="rising", **options)
        assert len(player.data["yours"]["wrong"]) > 40
        assert len(player.element().encode()) < 60_000


@pytest.mark.parametrize(
    "options, said",
    [
        ({"block_size": 0}, "whole number from 1"),
        ({"block_size": 2.0}, "whole number from 1"),
        ({"seq_len": 300, "block_size": 2}, "too many"),
        ({"seq_len": 0}, "at least 1"),
        ({"q": torch.zeros(4, 2)}, "all of q, k and v"),
        ({"q": torch.zeros(4, 2), "k": torch.zeros(4, 3), "v": torch.zeros(4, 3)}, "same dim"),
        ({"function": unfinished, "block_size": (2, 4)}, "one block_size"),
        ({"inputs": "large"}, "unknown kind"),
        ({"lang": "fr"}, "unknown language"),
    ],
)
def test_sizes_that_make_no_sense_are_refused_with_what_to_do(options, said):
    with pytest.raises(ValueError, match=said):
        flashcourse.step(**options)


def test_one_huge_score_overflows_an_unguarded_exp_and_the_player_shows_it_all_the_same():
    q, k, _ = make_inputs(kind="huge")
    assert torch.exp(scores(q, k)).isinf().any()
    assert yours(flash_attention_forward_sim, inputs="huge")["tone"] == "right"


def test_every_word_has_the_same_blanks_in_both_languages():
    import string

    blanks = lambda words: {name for _, name, _, _ in string.Formatter().parse(words) if name}
    for key, text in WORDS.items():
        assert blanks(text.en) == blanks(text.zh), key


def test_the_output_cannot_be_broken_by_what_the_learner_wrote():
    def hostile(q, k, v, block_size=2):
        raise RuntimeError("'\"><script>alert(1)</script>")

    assert "<script>alert" not in flashcourse.step(hostile).element()
