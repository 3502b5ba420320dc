"""Only data crosses between the processes, and it comes out as it went in."""

from __future__ import annotations

import contextlib
import json
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from flashcourse.grading.codec import CodecError, Encoder, Opaque, decode

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(st.text(), inner, max_size=4)
    ),
    max_leaves=20,
)


def across(value: object) -> object:
    encoder = Encoder(1 << 20)
    tree = json.loads(json.dumps(encoder.encode(value)))
    return decode(tree, encoder.blobs)


def same(a: object, b: object) -> bool:
    if isinstance(a, float) and math.isnan(a):
        return isinstance(b, float) and math.isnan(b)
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and a == b


@given(PLAIN)
@settings(max_examples=60, deadline=None)
def test_plain_values_come_out_as_they_went_in(value: object) -> None:
    out = across(value)
    assert same(value, out)
    assert type(out) is type(value)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16, torch.int64])
@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (2, 3)])
def test_tensors_keep_shape_dtype_and_bits(dtype: torch.dtype, shape: tuple[int, ...]) -> None:
    tensor = (torch.rand(shape) * 10).to(dtype)
    out = across(tensor)
    assert type(out) is torch.Tensor
    assert out.dtype == dtype and torch.equal(out, tensor)


def test_a_view_crosses_as_what_it_shows() -> None:
    view = torch.arange(12.0).reshape(3, 4).T[1:]
    assert torch.equal(across(view), view)


@pytest.mark.parametrize(
    "value",
    [torch.Size([2, 3]), torch.float16, torch.device("cpu"), 3 + 4j, ..., np.float32(1.5)],
)
def test_what_torch_and_numpy_add_crosses_too(value: object) -> None:
    assert across(value) == value


def test_an_array_stays_an_array() -> None:
    out = across(np.eye(2))
    assert type(out) is np.ndarray and np.array_equal(out, np.eye(2))


def test_anything_else_is_only_the_name_of_its_type() -> None:
    assert across([print, {1, 2}]) == [Opaque("builtin_function_or_method"), Opaque("set")]


def test_a_subclass_comes_out_as_its_plain_type() -> None:
    class Sly(float):
        def __eq__(self, other: object) -> bool:
            return True

        __hash__ = float.__hash__

    out = across(Sly(1.0))
    assert type(out) is float and out == 1.0


@pytest.mark.parametrize(
    "tree",
    [
        ["x", "float32", [2], 0, False],
        ["x", "float32", [-1], 0, False],
        ["x", "object", [1], 0, False],
        ["x", "float32", [10**30], 0, False],
        ["x", "float32", [1], 5, False],
        ["n", "O", [1], 0],
        ["n", "V8", [1], 0],
        ["i", "9" * 5000],
        ["i", 7],
        ["f", "print"],
        ["v", "cuda:99999999999999999999"],
        ["y", "__class__"],
        ["q"],
        ["xx", 1],
        [],
        {},
        7,
        ["l", 7],
        ["d", [[["l", []], 1]]],
        ["b", -1],
    ],
)
def test_a_forged_value_is_refused(tree: object) -> None:
    with pytest.raises(CodecError):
        decode(tree, [b"1234"])


def test_nesting_and_size_have_limits() -> None:
    deep: list = []
    for _ in range(100):
        deep = [deep]
    for value in (deep, torch.zeros(1 << 20), "x" * (1 << 21), list(range(10**6))):
        with pytest.raises(CodecError):
            across(value)


@given(st.recursive(st.none() | st.text(max_size=3) | st.integers(), st.lists, max_leaves=10))
@settings(max_examples=100, deadline=None)
def test_no_tree_makes_anything_but_a_value_or_an_error(tree: object) -> None:
    with contextlib.suppress(CodecError):
        decode(tree, [b"12345678"])
