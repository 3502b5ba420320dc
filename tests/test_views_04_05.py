"""The tables, charts and explorers of lessons 4 and 5, and the models behind them."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest
import torch

from flashcourse import exp2, fp8, rescaling, versions
from flashcourse.attention import scores
from flashcourse.schedule import (
    SMS,
    TileCycles,
    best_makespan,
    intervals,
    makespan,
    problems,
    serial,
    tile_cycles,
    utilisation,
)
from flashcourse.views.exp2 import Exp2Explorer, error_chart, explore_exp2
from flashcourse.views.rescaling import RescalingExplorer, explore_rescaling, rescale_chart
from flashcourse.views.schedule import ScheduleExplorer, explore_schedule, gantt
from flashcourse.views.table import Table
from flashcourse.views.waiting import after_exercise
from flashcourse.words import use_language

HAN = re.compile("[\u4e00-\u9fff]")
FIGURES = Path(__file__).parent.parent / "notebooks" / "figures"


@pytest.fixture(autouse=True)
def english() -> Any:
    use_language("en")
    yield
    use_language("en")


# ---------------------------------------------------------------- what FlashAttention-2 changed


def test_v1_spends_a_quarter_of_the_products_time_on_updating_the_output() -> None:
    shares = [versions.update_share(flops, block_kv=64) for flops in (4, 3, 2, 1)]
    assert shares == [0.25, 0.1875, 0.125, 0.0625]


def test_operations_of_one_shape_are_counted_in_place_ones_too() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        y = x * 2 + 1
        y *= 3
        return (y @ torch.ones(5, 5)).exp() / torch.ones(7, 1)

    assert versions.count_updates(function, (7, 5), torch.ones(7, 5)) == 4


def test_16_blocks_leave_92_of_108_sms_idle() -> None:
    assert versions.thread_blocks(1, 16) == 16
    assert versions.busy_share(16, 108) == 16 / 108
    assert versions.thread_blocks(1, 16, 16384, block_q=128) == 2048
    assert versions.busy_share(109, 108) == 109 / 216


def test_split_k_exchanges_a_copy_of_the_output_tile_for_each_warp_split_q_nothing() -> None:
    assert versions.exchanged(128, 64, warps=4, split="K") == 4 * 128 * 64
    assert versions.exchanged(128, 64, warps=4, split="Q") == 0
    with pytest.raises(ValueError, match="'K' or 'Q'"):
        versions.exchanged(128, 64, warps=4, split="V")


@pytest.mark.parametrize(("N", "block_q", "block_kv"), [(7, 2, 3), (8, 4, 2), (9, 16, 16)])
def test_causal_tiles_are_those_that_the_mask_says(N: int, block_q: int, block_kv: int) -> None:
    visible = torch.ones(N, N, dtype=torch.bool).tril()
    parts = [t for band in visible.split(block_q) for t in band.split(block_kv, dim=1)]
    tiles = versions.causal_tiles(N, block_q, block_kv)
    assert tiles.total == len(parts)
    assert tiles.computed == sum(bool(t.any()) for t in parts)
    assert tiles.masked == sum(bool(t.any()) and not bool(t.all()) for t in parts)


def test_autograd_keeps_the_scores_of_standard_attention() -> None:
    def kept(N: int) -> int:
        q, k, v = (torch.randn(N, 4, requires_grad=True) for _ in range(3))
        return versions.saved_numbers(lambda: torch.softmax(scores(q, k), dim=-1) @ v)

    assert kept(64) - 2 * kept(32) >= 64 * 64 - 2 * 32 * 32


# ---------------------------------------------------------------- schedules


def test_one_after_the_other_leaves_the_tensor_cores_idle_a_third_of_the_time_on_an_h100() -> None:
    busy = {name: utilisation(serial(8, tile_cycles(sm))) for name, sm in SMS.items()}
    assert busy == pytest.approx({"A100": 0.8, "H100": 2 / 3, "B200": 0.5})


def test_the_serial_schedule_obeys_the_rules_and_is_longer_than_the_bound() -> None:
    cycles = TileCycles(3, 5, 2)
    made = serial(4, cycles)
    assert problems(made, 4, cycles) == []
    assert makespan(made) == 80 > best_makespan(4, cycles) == 40


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([(0, "QK", 0, 3), (0, "exp", 3, 8)], "0 intervals of PV; 1 are needed"),
        ([(0, "QK", 0, 3), (0, "exp", 2, 7), (0, "PV", 7, 9)], "too early"),
        ([(0, "QK", 0, 3), (0, "exp", 3, 7), (0, "PV", 7, 9)], "takes 4 cycles. It should take 5"),
        ([(0, "QK", -1, 2), (0, "exp", 3, 8), (0, "PV", 8, 10)], "before cycle 0"),
        ([(1, "QK", 0, 3), (0, "exp", 3, 8), (0, "PV", 8, 10)], "0 intervals of QK"),
    ],
)
def test_a_schedule_that_could_not_run_is_told_why(rows: list[tuple], words: str) -> None:
    found = problems(intervals(rows), 1, TileCycles(3, 5, 2), warpgroups=1)
    assert any(words in text.en for text in found)
    assert all(HAN.search(text.zh) for text in found)


def test_two_warpgroups_cannot_share_a_unit() -> None:
    first = [(0, "QK", 0, 3), (0, "exp", 5, 10), (0, "PV", 15, 17)]
    rows = first + [(1, "QK", 2, 5), (1, "exp", 10, 15), (1, "PV", 17, 19)]
    found = problems(intervals(rows), 1, TileCycles(3, 5, 2))
    assert "tensor cores get two things to do at cycle 2" in found[0].en


@pytest.mark.parametrize("rows", [[(0, "QK", 0)], [(0, "mma", 0, 1)], [7]])
def test_what_is_no_interval_is_refused_by_name(rows: list) -> None:
    with pytest.raises(ValueError, match="entry 0"):
        intervals(rows)


# ---------------------------------------------------------------- polynomials and 8 bits


@pytest.mark.parametrize("degree", [1, 2, 3, 4, 5])
def test_a_polynomial_has_float32_coefficients_and_is_within_6_percent_of_the_best(
    degree: int,
) -> None:
    c = exp2.COEFFICIENTS[degree]
    assert c[0] == 1 and len(c) == degree + 1
    assert torch.tensor(c, dtype=torch.float32).tolist() == list(c)
    f = torch.linspace(0, 1, 20001, dtype=torch.float64)
    error = sum(c_k * f**k for k, c_k in enumerate(c)) / torch.exp2(f) - 1
    signs = error[1:].sign()
    starts = [0, *((signs[1:] != signs[:-1]).nonzero().flatten() + 1).tolist(), len(signs)]
    heights = [error[1:][a:b].abs().max().item() for a, b in zip(starts, starts[1:], strict=False)]
    # de la Vallée Poussin: with degree + 1 alternations, the best error is no less than the lowest.
    assert len(heights) == degree + 1
    assert max(heights) <= 1.06 * min(heights)


def test_a_rotation_is_orthogonal_and_spreads_an_outlier() -> None:
    M = fp8.rotation(128)
    assert torch.allclose(M @ M.T, torch.eye(128, dtype=torch.float64))
    outlier = torch.zeros(1, 128, dtype=torch.float64)
    outlier[0, 5] = 100
    assert (outlier @ M).abs().max().item() == pytest.approx(100 / math.sqrt(128))
    with pytest.raises(ValueError, match="power of 2"):
        fp8.hadamard(96)


def test_e4m3_clips_at_448_and_keeps_small_whole_numbers() -> None:
    x = torch.tensor([1.0, 15.0, 17.0, 448.0, 4096.0, -1e9], dtype=torch.float64)
    assert rescaling.to_e4m3(x).tolist() == [1, 15, 16, 448, 448, -448]


# ---------------------------------------------------------------- conditional rescaling


def stale(maxima: list[float], tau: float) -> list[float]:
    """The rule of the kernel, one number after the other."""
    used = [maxima[0]]
    for m in maxima[1:]:
        used.append(m if m - used[-1] > tau else used[-1])
    return used


@pytest.mark.parametrize("tau", [0.0, 0.5, 2.0, 100.0])
def test_the_maximum_in_use_is_what_the_kernels_rule_gives(tau: float) -> None:
    S = torch.randn(20, 60, dtype=torch.float64, generator=torch.Generator().manual_seed(5))
    maxima = rescaling.running_maxima(S, 7)
    assert maxima.shape == (20, 9)
    used = rescaling.used_maxima(maxima, tau)
    assert used.tolist() == [stale(row, tau) for row in maxima.tolist()]


def test_a_negative_threshold_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 0"):
        rescaling.used_maxima(torch.zeros(2, 2), -1)


def test_normal_scores_need_no_rescale_and_wide_ones_many() -> None:
    shares = {}
    for spread in (1, 16):
        S, v = rescaling.example(spread)
        shares[spread] = [rescaling.measure(S, v, tau).warps for tau in (0, 8)]
    assert shares[1][0] > 0.75 and shares[1][1] == 0
    assert 0.5 < shares[16][1] < 0.8


# ---------------------------------------------------------------- what the learner sees


def texts(svg: str) -> str:
    return " ".join(node.text or "" for node in ElementTree.fromstring(svg).iter() if node.text)


@pytest.mark.parametrize(
    "draw",
    [
        lambda lang: gantt(serial(2, TileCycles(3, 5, 2)), lang),
        lambda lang: error_chart(3, lang),
        lambda lang: rescale_chart(4, 8, lang),
    ],
)
def test_charts_are_svg_in_the_readers_language(draw: Any) -> None:
    assert HAN.search(texts(draw("zh")))
    assert not HAN.search(texts(draw("en")))


def test_a_chart_has_a_box_for_each_interval() -> None:
    svg = gantt(serial(2, TileCycles(3, 5, 2)), "en")
    assert len(re.findall(r">(?:QK|exp|PV)(?: \d)?<", svg)) == 12


def test_the_schedule_explorer_follows_its_knobs() -> None:
    view = ScheduleExplorer(None, "en")
    assert "Tensor cores busy 66.7%" in view.picture.value
    view.knobs["gpu"].value = "B200"
    assert view.knobs["qk"].value == 512
    assert "Tensor cores busy 50.0%" in view.picture.value
    view.knobs["exp"].value = 512
    assert "Tensor cores busy 66.7%" in view.picture.value


def test_the_schedule_explorer_shows_the_learners_schedule_and_what_is_wrong_with_it() -> None:
    made = lambda tiles, qk, exp, pv: serial(tiles, TileCycles(qk, exp, pv))
    assert "<li>" not in ScheduleExplorer(made, "en").picture.value
    empty = ScheduleExplorer(lambda *args: [], "zh").picture.value
    assert "应有 4 个" in empty

    def unfinished(*args: Any) -> list:
        raise NotImplementedError

    assert "not finished" in ScheduleExplorer(unfinished, "en").picture.value
    assert "ZeroDivisionError" in ScheduleExplorer(lambda *a: 1 / 0, "en").picture.value


def test_the_polynomial_explorer_shows_table_2() -> None:
    view = Exp2Explorer("en")
    view.degree.value = 3
    assert "largest 8.77e-05, mean 5.43e-05" in view.picture.value
    assert "3.90e-03" in view.picture.value


def test_the_rescaling_explorer_follows_threshold_and_spread() -> None:
    view = RescalingExplorer("zh")
    view.spread.value, view.tau.value = 1, 8
    assert "按 warp 计跳过了 100.0%" in view.picture.value
    view.spread.value = 16
    assert "按 warp 计跳过了 100.0%" not in view.picture.value


@pytest.mark.parametrize("explore", [explore_schedule, explore_exp2, explore_rescaling])
def test_each_explorer_speaks_the_courses_language(explore: Any) -> None:
    use_language("zh")
    view = explore()
    assert HAN.search(view.children[-1].value)


def test_a_table_is_html_and_aligned_text() -> None:
    table = Table(("名", "n"), [("a<b", 1), ("中文", 22)])
    assert "a&lt;b" in table._repr_html_()
    assert repr(table).splitlines() == ["  名   n", " a<b   1", "中文  22"]
    with pytest.raises(ValueError, match="2 values, the header 1"):
        Table(("x",), [(1, 2)])


def test_a_cell_that_waits_for_an_exercise_says_so_and_hides_nothing_else(
    capsys: pytest.CaptureFixture,
) -> None:
    with after_exercise("exercise 1"):
        raise NotImplementedError
    with pytest.raises(ZeroDivisionError), after_exercise("exercise 1"):
        _ = 1 / 0


@pytest.mark.parametrize("path", sorted(FIGURES.glob("0[45]-*.svg")), ids=lambda p: p.name)
def test_each_figure_is_small_svg_in_its_language_on_paper_of_its_own(path: Path) -> None:
    svg = path.read_text("utf-8")
    root = ElementTree.fromstring(svg)
    assert len(svg) < 40_000
    assert root.attrib["font-family"] == "sans-serif"
    assert "<rect" in svg
    found = HAN.search(texts(svg))
    assert bool(found) == path.name.endswith(".zh.svg")
