"""Cheap answers to lessons 2, 4 and 5 earn in grading what they earn in a notebook."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from flashcourse.grading.course import load_course
from flashcourse.grading.grade import Settings, grade
from flashcourse.grading.limits import Limits
from flashcourse.grading.pool import Pool

ROOT = Path(__file__).parents[2]
SETTINGS = Settings(limits=Limits(cell_seconds=20.0), seed=3)

SAFE = "def safe_softmax(x):\n    return torch.nn.functional.softmax(x.double(), 0).to(x.dtype)"
ONLINE = """
def online_softmax(x):
    ms = torch.cummax(x, 0).values
    return torch.softmax(x, 0), ms, torch.exp(torch.logcumsumexp(x, 0) - ms)
"""
TILES = """
def online_update(m, l, x_tile):
    m_new = torch.maximum(m, x_tile.amax(-1, keepdim=True))
    total = torch.logsumexp(torch.cat([m + l.log(), x_tile], -1), -1, keepdim=True)
    return m_new, torch.exp(total - m_new)
"""
V2 = """
def flash_attention_v2_sim(q, k, v, block_size=2):
    S = q @ k.T / math.sqrt(q.shape[1])
    return torch.softmax(S, -1) @ v, torch.logsumexp(S, -1, keepdim=True)
"""
BACKWARD = """
def flash_attention_backward_sim(q, k, v, out, L, dout, block_size=2):
    q, k, v = (t.clone().requires_grad_() for t in (q, k, v))
    with torch.enable_grad():
        o = torch.softmax(q @ k.T / math.sqrt(q.shape[1]), -1) @ v
        return torch.autograd.grad(o, (q, k, v), dout)
"""
MISPRINT = "def misprint_errors(q, k, v, block_size=2):\n    return math.nan, 0.0, 'corrected'"
EXP2 = "def exp2_emulated(x):\n    return torch.exp2(x)"


@pytest.mark.parametrize(
    ("lesson", "answers", "points"),
    [
        (
            "02_online_softmax",
            {"safe-softmax": SAFE, "online-softmax": ONLINE, "online-update": TILES},
            {"test-safe-softmax": 0, "test-online-softmax": 7, "test-online-update": 9},
        ),
        (
            "04_v1_to_v2",
            {"flash-v2": V2, "misprint": MISPRINT, "flash-backward": BACKWARD},
            {"test-v2": 5, "test-misprint": 0, "test-backward": 0},
        ),
        ("05_v3_and_v4", {"exp2-emulated": EXP2}, {"test-exp2": 0}),
    ],
)
def test_a_cheap_answer_earns_what_the_notebook_said(
    pool: Pool, lesson: str, answers: dict[str, str], points: dict[str, float]
) -> None:
    path = ROOT / "release" / "zh" / lesson / f"{lesson}.ipynb"
    notebook = json.loads(path.read_text("utf-8"))
    for cell in notebook["cells"]:
        id = cell["metadata"].get("nbgrader", {}).get("grade_id")
        cell["source"] = answers.get(id, cell["source"])
    graded = grade(json.dumps(notebook).encode(), load_course(ROOT, lesson)[lesson], pool, SETTINGS)
    got = {mark.grade_id: mark.points for mark in graded.marks}
    assert {id: got[id] for id in points} == points
