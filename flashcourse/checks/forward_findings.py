"""Put a fault into words: the tile, the variable, the learner's number beside the right one."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from flashcourse.checks.forward_relations import Fault
from flashcourse.checks.forward_tile import close
from flashcourse.checks.marks import Finding
from flashcourse.checks.misconceptions import BY_ID, GENERIC, GENERIC_LAST, SHAPES
from flashcourse.words import Text

# The learner's own earlier values that a right value follows from.
FOLLOWS_FROM = {
    "S_ij": ("`q_block`, `k_block`", "`q_block`、`k_block`"),
    "m_block": ("`S_ij`", "`S_ij`"),
    "m_new": ("`m_i`, `m_block`", "`m_i`、`m_block`"),
    "P_ij": ("`S_ij`, `m_new`", "`S_ij`、`m_new`"),
    "l_block": ("`P_ij`", "`P_ij`"),
    "l_new": ("`l_i`, `m_i`, `m_new`, `P_ij`", "`l_i`、`m_i`、`m_new`、`P_ij`"),
    "out_i": (
        "`out_i`, `l_i`, `l_new`, `m_i`, `m_new`, `P_ij`",
        "`out_i`、`l_i`、`l_new`、`m_i`、`m_new`、`P_ij`",
    ),
    "m_i": ("`m_new`", "`m_new`"),
    "l_i": ("`l_new`", "`l_new`"),
}
CASES = {
    "even": ("8 rows, blocks of 2", "8 行，每块 2 行"),
    "single": ("3 rows, blocks of 1", "3 行，每块 1 行"),
    "ragged": ("5 rows, blocks of 3", "5 行，每块 3 行"),
    "one tile": ("4 rows, 1 block of 8", "4 行，块大小 8，只有 1 块"),
    "float64": ("5 rows in float64, blocks of 2", "5 行 float64，每块 2 行"),
    "long": ("256 rows, blocks of 128", "256 行，每块 128 行"),
    "bfloat16": ("4 rows in bfloat16, blocks of 2", "4 行 bfloat16，每块 2 行"),
    "gpu": ("8 rows on the GPU, blocks of 2", "8 行，在 GPU 上，每块 2 行"),
    "large scores": ("scores of ±hundreds", "分数在正负数百之间"),
    "very negative scores": ("scores around −200", "分数在 −200 附近"),
    "falling maxima": ("maxima that fall by 160 from tile to tile", "最大值逐块下降（每块 160）"),
    "rising maxima": ("maxima that rise from tile to tile", "最大值逐块上升"),
}


def case(name: str) -> Text:
    return Text(*CASES.get(name, (name, name)))


def returned(kind: str) -> Text | None:
    """What is wrong with the type of what was returned (`Record.output_type`), if anything."""
    if kind == "Tensor":
        return None
    if kind == "NoneType":
        return Text(
            "Your function returned `None`. End it with `return out`.",
            "函数返回了 `None`。请在末尾写 `return out`。",
        )
    return Text(
        f"You returned a {kind}. Return one tensor, `out`, and nothing else.",
        f"返回值的类型是 {kind}。请只返回一个张量 `out`。",
    )


def number(value: float) -> str:
    """4 significant digits; infinities as in Python code."""
    return f"{value:.4g}".replace("-", "−")


def shape(tensor: Tensor) -> str:
    sizes = ", ".join(map(str, tensor.shape))
    return f"({sizes},)" if tensor.ndim == 1 else f"({sizes})"


def worst(got: Tensor, want: Tensor) -> tuple[int, ...]:
    """The index where two tensors differ most; a NaN differs most of all."""
    off = torch.where(close(got, want, 1e-12), 0.0, (got - want).abs()).nan_to_num(nan=1e300)
    # torch's own unravel_index imports a compiler, which takes half a second.
    return tuple(int(n) for n in np.unravel_index(int(off.argmax()), off.shape))


def finding_of_fault(fault: Fault, misconception: str | None) -> Finding:
    """The finding, with the misconception's hints or the TODO's own."""
    hints = BY_ID[misconception].hints if misconception else _general_hints(fault)
    return Finding(
        _text(fault),
        todo=fault.todo,
        tile=fault.tile,
        misconception=misconception,
        hints=hints,
        variable=fault.variable,
        line=fault.line,
    )


def _general_hints(fault: Fault) -> tuple[Text, ...]:
    if fault.todo == 6 and fault.variable in GENERIC_LAST:
        return GENERIC_LAST[fault.variable]
    question, formula = GENERIC[fault.todo]
    return (SHAPES if fault.todo > 1 and fault.note == "shape" else question, formula)


def _text(fault: Fault) -> Text:
    got, want = fault.got, fault.want
    assert got is not None and want is not None
    where = _where(fault)
    if fault.note == "dtype":
        return Text(
            f"`{fault.variable}` is {got.dtype} although the input is {want.dtype}.",
            f"输入是 {want.dtype}，`{fault.variable}` 却是 {got.dtype}。",
        )
    if fault.note == "device":
        return Text(
            f"`{fault.variable}` is on {got.device} although the input is on {want.device}.",
            f"输入在 {want.device} 上，`{fault.variable}` 却在 {got.device} 上。",
        )
    if got.shape != want.shape:
        return Text(
            f"{where.en}`{fault.variable}` has shape {shape(got)}. It should be {shape(want)}.",
            f"{where.zh}`{fault.variable}` 的形状是 {shape(got)}，应为 {shape(want)}。",
        )
    at = worst(got, want)
    place = f"{fault.variable}{list(at)}"
    mine, right = number(float(got[at])), number(float(want[at]))
    if fault.note == "carried":
        return Text(
            f"{where.en}`{place}` starts as {mine}. The tile before, in the same rows, ended with "
            f"{right}.",
            f"{where.zh}`{place}` 开始时是 {mine}；同样这几行，上一个块结束时是 {right}。",
        )
    if fault.note == "end":
        row = f"out[{at[0] + (fault.tile or (0, 0))[0]}, {at[1]}]"
        return Text(
            f"After the last tile, your `out_i` gives {right} for `{row}`. Returned is {mine}.",
            f"最后一个块之后，按你的 `out_i`，`{row}` 应为 {right}；返回的却是 {mine}。",
        )
    given = FOLLOWS_FROM.get(fault.variable)
    if given is None:
        return Text(
            f"`{place}` starts as {mine}. It should start as {right}.",
            f"`{place}` 的初始值是 {mine}，应为 {right}。",
        )
    return Text(
        f"{where.en}`{place}` is {mine}. From your own {given[0]} it should be {right}.",
        f"{where.zh}`{place}` 是 {mine}。按你自己的 {given[1]}，它应为 {right}。",
    )


def _where(fault: Fault) -> Text:
    if fault.tile is None:
        return Text("", "")
    i, j = fault.tile
    return Text(f"Tile (i={i}, j={j}): ", f"块 (i={i}, j={j})：")
