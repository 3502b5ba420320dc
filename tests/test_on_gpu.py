"""Records and marks keep to the GPU, as far as one in name only can show it.

On a machine with a GPU `make env-gpu` does the same there; `make env-e` runs the notebooks.
"""

from __future__ import annotations

import pytest
import torch

from flashcourse.checks import mark
from tests.environments import gpu
from tests.environments.pretend_cuda import pretend_cuda


def test_records_and_marks_are_those_of_the_cpu() -> None:
    with pretend_cuda():
        assert gpu.main() == 0


@pytest.mark.parametrize(
    "edit",
    [("device=q.device", 'device="cuda"'), ("return out", "return out.cpu()")],
    ids=["state on the GPU only", "result brought to the CPU"],
)
def test_another_device_than_that_of_the_input_is_the_fault_of_todo_1(
    edit: tuple[str, str],
) -> None:
    with pretend_cuda():
        marks = mark("forward", gpu.function(gpu.SKELETON.replace(*edit)))
        assert (marks.points, marks.findings[0].todo) == (90, 1)
        assert "although the input is on" in marks.findings[0].text.en


def test_without_a_gpu_the_trial_fails() -> None:
    assert torch.cuda.is_available() or gpu.main() == 2


def test_the_gpu_in_name_refuses_what_cuda_refuses() -> None:
    with pretend_cuda():
        here, there = torch.ones(2, 2), torch.ones(2, 2, device="cuda")
        assert (there @ there).is_cuda and not there.cpu().is_cuda
        with pytest.raises(RuntimeError, match="same device"):
            here + there
        with pytest.raises(TypeError, match="can't convert cuda"):
            there.numpy()
