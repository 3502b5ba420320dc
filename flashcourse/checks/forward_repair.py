"""The right value of one name, given the learner's other values: each is one local relation.

Where a TODO's line raises, `record` steps over it with this value, so that what comes after it can
be looked at (FlashAttention, arXiv 2205.14135, Algorithm 1, with the output kept normalised).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from flashcourse.checks.forward_tile import Problem

LOW = -1.0, 1.5  # m and l as if keys had been seen: no NaN and no 0 hides what a line does


class Repair:
    """names: the skeleton's names to be repaired. With 'low' beside 'm' and 'l', these start at −1
    and 1.5, as if there had been keys before."""

    def __init__(self, problem: Problem, names: tuple[str, ...]) -> None:
        self.q, self.k, self.v, self.block = problem.q, problem.k, problem.v, problem.block
        self.names = names

    def __call__(self, name: str, local: Mapping[str, Any]) -> Tensor | None:
        """The value; None for a name to be left alone, or where `local` does not fit together.

        local: the learner's values in this tile by the skeleton's names, and its i and j.
        """
        if name not in self.names:
            return None
        try:
            return getattr(self, name)(local)
        except (RuntimeError, TypeError, ValueError, LookupError, AttributeError):
            return None

    def out(self, local: Mapping[str, Any]) -> Tensor:
        return torch.zeros_like(self.v[:1]).repeat(self.q.shape[0], 1).to(self.q.dtype)

    def m(self, local: Mapping[str, Any]) -> Tensor:
        return torch.full_like(self.q[:, :1], LOW[0] if "low" in self.names else -math.inf)

    def l(self, local: Mapping[str, Any]) -> Tensor:  # noqa: E743
        return torch.full_like(self.q[:, :1], LOW[1] if "low" in self.names else 0.0)

    def S_ij(self, local: Mapping[str, Any]) -> Tensor:
        q = self.q[local["i"] : local["i"] + self.block]
        k = self.k[local["j"] : local["j"] + self.block]
        return q @ k.T / math.sqrt(self.q.shape[-1])

    def m_block(self, local: Mapping[str, Any]) -> Tensor:
        return local["S_ij"].amax(dim=-1).reshape(local["m_i"].shape)

    def m_new(self, local: Mapping[str, Any]) -> Tensor:
        return torch.maximum(local["m_i"], local["m_block"])

    def P_ij(self, local: Mapping[str, Any]) -> Tensor:
        return torch.exp(local["S_ij"] - _column(local["m_new"]))

    def l_block(self, local: Mapping[str, Any]) -> Tensor:
        return local["P_ij"].sum(dim=-1).reshape(local["l_i"].shape)

    def l_new(self, local: Mapping[str, Any]) -> Tensor:
        return torch.exp(local["m_i"] - local["m_new"]) * local["l_i"] + local["l_block"]

    def out_i(self, local: Mapping[str, Any]) -> Tensor:
        old = _column(torch.exp(local["m_i"] - local["m_new"]) * local["l_i"])
        new = local["P_ij"] @ self.v[local["j"] : local["j"] + self.block]
        return (old * local["out_i"] + new) / _column(local["l_new"])

    def m_i(self, local: Mapping[str, Any]) -> Tensor:
        return local["m_new"]

    def l_i(self, local: Mapping[str, Any]) -> Tensor:
        return local["l_new"]


def _column(value: Tensor) -> Tensor:
    """A state of shape (rows,) as (rows, 1)."""
    return value[:, None] if value.ndim == 1 else value
