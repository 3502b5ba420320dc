"""Which of torch's ready-made softmaxes an answer called, where writing one is the exercise.

Seen in a record of one small run: a cast, `nn.Softmax` or an attention call ends in the same few
operations of torch's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from flashcourse.checks.marks import Finding
from flashcourse.recording import record
from flashcourse.records import MadeTensor
from flashcourse.words import Text

# Part of an operation's name → what a learner calls it.
_SOFTMAX = {"scaled_dot_product": "scaled_dot_product_attention", "log_softmax": "log_softmax",
            "softmax": "softmax"}  # fmt: skip
_LOG_SUM = {name: name for name in ("logsumexp", "logcumsumexp", "logaddexp")}


@dataclass(frozen=True)
class Used:
    """The tensors that one run made."""

    made: tuple[MadeTensor, ...]

    def softmaxes(self) -> list[MadeTensor]:
        """Those that a ready-made softmax, or its logarithm, made."""
        return [t for t in self.made if _called(t, _SOFTMAX)]

    def log_sums(self) -> list[MadeTensor]:
        """Those that a ready-made logarithm of a sum of exponentials made."""
        return [t for t in self.made if _called(t, _LOG_SUM)]

    def of_several(self) -> list[MadeTensor]:
        """The exponentials of more than one number. Powers of a variable are none."""
        return [t for t in self.made if (t.exponents or 0) > 1]

    def exponentials(self, but: tuple[int, ...]) -> int:
        """How many were computed, those in tensors of the shape `but` left out."""
        return sum(t.elements for t in self.made if t.exponents is not None and t.shape != but)


def used(answer: Callable[..., Any], *given: Tensor) -> Used:
    """What answer(*given) does, of up to 3 tensors. Never raises because of the answer."""
    q, k, v = (*given, None, None)[:3]
    assert q is not None
    return Used(record(answer, q, k, v, block_size=None).tensors)


def _called(made: MadeTensor, names: dict[str, str]) -> str | None:
    return next((called for part, called in names.items() if part in made.op), None)


def ready_made(found: Sequence[MadeTensor]) -> Finding | None:
    """What to say of the first ready-made function that was called, None if there is none."""
    if not found:
        return None
    called = _called(found[0], _SOFTMAX | _LOG_SUM)
    return Finding(
        Text(
            f"Your function calls the ready-made `{called}`. Write it yourself, with exponentials "
            "and sums: that is the exercise. To compare with it, call it outside of the function.",
            f"你的函数调用了现成的 `{called}`。请用指数与求和自己写出来：这道题练的就是这个。"
            "想与它对照，请在函数外面调用。",
        ),
        misconception="ready_made",
        line=found[0].line,
        hints=(
            Text(
                "Which maximum is subtracted, and what is summed? One line for each.",
                "减去的是哪个最大值？求和的又是什么？每一步各写一行。",
            ),
        ),
    )
