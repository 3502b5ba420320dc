"""Lesson 3: what it says is so, its solution is right, its script draws its figures."""

from __future__ import annotations

import math
import runpy
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from flashcourse.attention import attention
from flashcourse.authoring.language import keep_language
from flashcourse.authoring.lesson import read_lesson
from flashcourse.words import LANGUAGES, use_language

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
LESSON = read_lesson(NOTEBOOKS / "03_flash_forward.md")
CODE = {cell.key: cell for cell in LESSON.cells if cell.kind == "code"}
TOLERANCE = {torch.float64: 1e-13, torch.float32: 1e-5, torch.bfloat16: 5e-2}


@pytest.fixture(autouse=True)
def language_of_the_next_test() -> Any:
    yield
    use_language("en")


def run_cells(lang: str, *keys: str, **names: Any) -> dict[str, Any]:
    """The names that the lesson's cells `keys` leave behind, run one after the other."""
    for key in keys:
        exec(compile(keep_language(CODE[key].source, lang), key, "exec"), names)
    return names


def solution() -> Callable[..., torch.Tensor]:
    return run_cells("en", "start", "answer")["flash_attention_forward_sim"]


@pytest.mark.parametrize("lang", LANGUAGES)
def test_the_cells_that_check_the_text_hold_in_both_languages(lang: str, capsys: Any) -> None:
    run_cells(lang, "start", "score-bytes", "table-21-check", "worked-example-code", "trap-code")
    assert "66816.0 MB" in capsys.readouterr().out


@pytest.mark.parametrize("lang", LANGUAGES)
def test_the_three_cases_print_errors_and_tell_unfinished_from_wrong(
    lang: str, capsys: Any
) -> None:
    names = run_cells(lang, "start", "answer", "three-cases-code")
    equal, unequal = ("equal", "NOT equal") if lang == "en" else ("一致", "不一致")
    lines = capsys.readouterr().out.strip().split("\n")[-3:]
    assert all(line.endswith(equal) and not line.endswith(unequal) for line in lines)

    names["flash_attention_forward_sim"] = lambda q, k, v, block_size: q * math.nan
    run_cells(lang, "three-cases-code", **names)
    assert capsys.readouterr().out.count(unequal) == 3

    def unfinished(q: Any, k: Any, v: Any, block_size: int) -> None:
        raise NotImplementedError

    names["flash_attention_forward_sim"] = unfinished
    run_cells(lang, "three-cases-code", **names)
    assert "TODO" in capsys.readouterr().out


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("block_size", [1, 2, 3, 64])
def test_the_solution_is_exact_attention_whatever_the_shapes(
    dtype: torch.dtype, block_size: int
) -> None:
    torch.manual_seed(1)
    q, k, v = (torch.randn(n, d).to(dtype) for n, d in ((7, 4), (10, 4), (10, 5)))
    before = [x.clone() for x in (q, k, v)]
    out = solution()(q, k, v, block_size=block_size)
    assert out.dtype == dtype and out.shape == (7, 5)
    assert (out.double() - attention(q, k, v)).abs().max() < TOLERANCE[dtype]
    assert all(torch.equal(x, y) for x, y in zip((q, k, v), before, strict=True))


def test_the_solution_stays_finite_for_huge_and_for_falling_scores() -> None:
    torch.manual_seed(2)
    q, v = torch.randn(5, 4), torch.randn(9, 4)
    for k in (100 * torch.randn(9, 4), -torch.arange(9.0)[:, None] * 50 * torch.ones(4)):
        out = solution()(q, k, v, block_size=2)
        assert (out.double() - attention(q, k, v)).abs().max() < 1e-4


def test_the_trap_costs_what_the_text_says() -> None:
    """FA1's factor beta in FA2's code: 0.36 off, rows of weights that sum to 1.59."""
    line, mixed = (
        "l_new = alpha * l_i + l_block",
        "l_new = alpha * l_i + torch.exp(m_block - m_new) * l_block",
    )
    code = keep_language(CODE["answer"].source, "en")
    assert code.count(line) == 1
    names: dict[str, Any] = {"math": math, "torch": torch}
    exec(code.replace(line, mixed), names)
    torch.manual_seed(42)
    q, k, v = (torch.randn(8, 4) for _ in range(3))
    wrong = names["flash_attention_forward_sim"]
    assert (wrong(q, k, v) - attention(q, k, v)).abs().max().item() == pytest.approx(0.36, abs=5e-3)
    assert wrong(q, k, torch.ones_like(v)).max().item() == pytest.approx(1.59, abs=5e-3)


@pytest.mark.parametrize(
    "right, wrong",
    [
        ("torch.full((seq_len, 1), -math.inf,", "torch.full((seq_len, 1), 0.0,"),
        ("S_ij.max(dim=-1, keepdim=True).values", "S_ij.max().reshape(1, 1)"),
        ("m_new = torch.maximum(m_i, m_block)", "m_new = m_block"),
        ("m_new = torch.maximum(m_i, m_block)", "m_new = torch.zeros_like(m_i)"),
    ],
    ids=["m starts at 0", "maximum of the whole tile", "block maximum only", "no maximum at all"],
)
def test_the_visible_cases_let_mistakes_through_as_the_instructor_is_told(
    right: str, wrong: str, capsys: Any
) -> None:
    code = keep_language(CODE["answer"].source, "en")
    assert code.count(right) == 1
    names = run_cells("en", "start")
    exec(code.replace(right, wrong), names)
    run_cells("en", "three-cases-code", **names)
    printed = capsys.readouterr().out
    assert printed.count("equal") == 3 and "NOT" not in printed


def test_the_limits_of_exp_and_of_the_accumulators_are_those_of_the_text() -> None:
    for dtype, last, first in ((torch.float32, 88.7, 88.8), (torch.float16, 11.05, 11.1)):
        inside, outside = torch.exp(torch.tensor([last, first], dtype=dtype))
        assert inside.isfinite() and outside.isinf()
    assert torch.tensor(256, dtype=torch.bfloat16) + 1 == 256
    assert torch.finfo(torch.float16).max == 65504


def test_backward_through_the_solution_raises_as_the_instructor_is_told() -> None:
    q, k, v = (torch.randn(6, 4, requires_grad=True) for _ in range(3))
    with pytest.raises(RuntimeError, match="inplace"):
        solution()(q, k, v).sum().backward()


def test_the_figures_are_those_that_the_script_draws(tmp_path: Path) -> None:
    script = tmp_path / "make_03.py"
    shutil.copy(NOTEBOOKS / "figures" / "make_03.py", script)
    runpy.run_path(str(script), run_name="__main__")
    drawn = sorted(tmp_path.glob("*.svg"))
    assert len(drawn) == 6
    for path in drawn:
        assert path.read_bytes() == (NOTEBOOKS / "figures" / path.name).read_bytes()
