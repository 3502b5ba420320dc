"""Records and marks on a GPU: `make env-gpu`, on a machine that has one. Fails where there is none.

`make env-a` on the same machine runs the notebooks themselves, which then use its GPU.
"""

from __future__ import annotations

import sys

import torch

from flashcourse.attention import attention
from flashcourse.checks import mark
from flashcourse.recording import record
from tests.wheat_and_chaff.chaff import SKELETON

WITHOUT_DEVICE = SKELETON.replace(", device=q.device", "")


def main() -> int:
    if not torch.cuda.is_available():
        print("no GPU: torch.cuda.is_available() is False. Run this on a machine that has one.")
        return 2
    right, without = function(SKELETON), function(WITHOUT_DEVICE)
    problems = [*recording(right), *marking(right, 100, None), *marking(without, 90, 1)]
    print(*problems or [f"all is well on {torch.cuda.get_device_name()}"], sep="\n")
    return 1 if problems else 0


def function(source: str):
    """The function that this source defines, findable by the tracer as a notebook's would be."""
    names: dict = {}
    exec(compile(source, "answer.py", "exec"), names)
    return names["flash_attention_forward_sim"]


def recording(right) -> list[str]:
    """The output is exact attention, in every tile P is exp(S − m), and all of it is on the GPU."""
    q, k, v = torch.randn(3, 64, 16, device="cuda")
    made = record(right, q, k, v, 16)
    if made.error is not None or made.output is None:
        return [f"record failed: {made.error}"]
    problems = []
    if not torch.allclose(made.output.double(), attention(q, k, v).double(), atol=1e-4):
        problems.append("the recorded output is not exact attention")
    for tile in made.tiles:
        S, m, P = (tile.values[name] for name in ("S_ij", "m_new", "P_ij"))
        if not S.is_cuda or not torch.allclose(P, torch.exp(S - m), atol=1e-5):
            problems.append(f"tile ({tile.i}, {tile.j}): P_ij is not exp(S_ij − m_new) on the GPU")
    return problems if len(made.tiles) == 16 else [*problems, f"{len(made.tiles)} tiles, not 16"]


def marking(answer, points: int, todo: int | None) -> list[str]:
    marks = mark("forward", answer)
    first = marks.findings[0].todo if marks.findings else None
    if (marks.points, first) == (points, todo):
        return []
    said = [str(finding.text) for finding in marks.findings]
    return [f"{marks.points} points, TODO {first}; expected {points}, TODO {todo}. {said}"]


if __name__ == "__main__":
    sys.exit(main())
