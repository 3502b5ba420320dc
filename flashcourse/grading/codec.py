"""Values that may cross from one process to another: a closed list of types, sent as data.

A value becomes a JSON tree and a list of byte blobs. Nothing in it is code, and nothing names a
class to be built: decoding makes exact `int`, `float`, `str`, `bytes`, `list`, `tuple`, `dict`,
`torch.Tensor`, `numpy.ndarray`, `torch.Size`, `torch.dtype` and `torch.device` and nothing else.
What has no place in the list becomes `Opaque`, which only knows the name of its type.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

MAX_DEPTH = 32
MAX_ITEMS = 200_000
MAX_DIMENSIONS = 16
MAX_INT_BITS = 4096

DTYPES: dict[str, torch.dtype] = {
    str(dtype).removeprefix("torch."): dtype
    for dtype in (
        torch.float64,
        torch.float32,
        torch.float16,
        torch.bfloat16,
        torch.complex64,
        torch.complex128,
        torch.int64,
        torch.int32,
        torch.int16,
        torch.int8,
        torch.uint8,
        torch.bool,
    )
}
for _name in ("float8_e4m3fn", "float8_e5m2"):
    if hasattr(torch, _name):
        DTYPES[_name] = getattr(torch, _name)
_DTYPE_NAMES = {dtype: name for name, dtype in DTYPES.items()}
_ARRAY_KINDS = "biufc"
_NUMPY_TOO = frozenset((torch.float32, torch.float64, torch.int64))


class CodecError(ValueError):
    """A value that can't cross: too large, too deep, or not well formed."""


@dataclass(frozen=True)
class Opaque:
    """Stands where a value was that can't cross. type_name: the name of its type."""

    type_name: str

    def __repr__(self) -> str:
        return f"<a {self.type_name}>"


class Encoder:
    """Turns values into JSON trees; `blobs` collects the bytes that the trees refer to.

    `strict` refuses what can't cross with a CodecError; otherwise it becomes `Opaque`.
    """

    def __init__(self, max_bytes: int, strict: bool = False) -> None:
        self.blobs: list[bytes] = []
        self._left = max_bytes
        self._items = MAX_ITEMS
        self._strict = strict

    def encode(self, value: Any, depth: int = 0) -> Any:
        self._items -= 1
        if depth > MAX_DEPTH or self._items < 0:
            raise CodecError("the value is nested too deeply or has too many parts")
        if value is None or value is True or value is False:
            return value
        # The usual types first: a record holds thousands of small things.
        kind = type(value)
        if kind is dict:
            pairs = value.items()
            return ["d", [[self.encode(k, depth + 1), self.encode(v, depth + 1)] for k, v in pairs]]
        if kind is list:
            return ["l", [self.encode(item, depth + 1) for item in value]]
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, (int, float, complex, np.generic)):
            return self._number(value)
        if isinstance(value, (torch.Tensor, np.ndarray)):
            return self._array(value)
        return self._other(value, depth)

    def _text(self, value: str) -> Any:
        # Lone surrogates can't be sent as UTF-8.
        text = str.__str__(value)
        if not text.isascii():
            text = text.encode("utf-8", "replace").decode()
        self._spend(len(text))
        return text

    def _number(self, value: Any) -> Any:
        if isinstance(value, np.generic):
            if value.dtype.kind not in _ARRAY_KINDS:
                return self._opaque(value)
            return ["g", *self._array(np.asarray(value))[1:]]
        if isinstance(value, complex):
            return ["c", float(value.real).hex(), float(value.imag).hex()]
        if isinstance(value, float):
            return ["f", float.__float__(value).hex()]
        number = int.__index__(value)
        if number.bit_length() > MAX_INT_BITS:
            return self._opaque(value)
        return ["i", hex(number)]

    def _array(self, value: Any) -> Any:
        if isinstance(value, np.ndarray):
            plain = np.ascontiguousarray(np.asarray(value))
            if plain.dtype.kind not in _ARRAY_KINDS:
                return self._opaque(value)
            return [
                "n",
                plain.dtype.str,
                list(np.shape(value)),
                self._blob(plain.nbytes, plain.tobytes),
            ]
        if type(value) is torch.Tensor and _is_plain(value):  # as nearly all of a record are
            size = value.numel() * value.element_size()
            blob = self._blob(size, value.numpy().tobytes)
            return ["x", _DTYPE_NAMES[value.dtype], list(value.shape), blob, False]
        with torch.no_grad():
            exact: Any = value if type(value) is torch.Tensor else value.as_subclass(torch.Tensor)
            plain = exact.detach()
            if plain.layout != torch.strided or plain.dtype not in _DTYPE_NAMES or plain.is_meta:
                return self._opaque(value)
            shape, dtype = list(plain.shape), _DTYPE_NAMES[plain.dtype]
            size = plain.numel() * plain.element_size()
            blob = self._blob(size, lambda: _tensor_bytes(plain))
        return ["x", dtype, shape, blob, bool(value.requires_grad)]

    def _other(self, value: Any, depth: int) -> Any:
        if value is Ellipsis:
            return ["e"]
        if isinstance(value, torch.Size):
            return ["z", [int(n) for n in value]]
        if isinstance(value, torch.dtype):
            return ["y", _DTYPE_NAMES[value]] if value in _DTYPE_NAMES else self._opaque(value)
        if isinstance(value, torch.device):
            return ["v", str(value)]
        if isinstance(value, (bytes, bytearray)):
            data = bytes(value)
            return ["b", self._blob(len(data), lambda: data)]
        if isinstance(value, (list, tuple)):
            tag = "l" if isinstance(value, list) else "t"
            return [tag, [self.encode(item, depth + 1) for item in value]]
        if isinstance(value, dict):
            pairs = list(value.items())
            return ["d", [[self.encode(k, depth + 1), self.encode(v, depth + 1)] for k, v in pairs]]
        return self._opaque(value)

    def _opaque(self, value: Any) -> Any:
        name = value.type_name if type(value) is Opaque else type(value).__name__
        if self._strict:
            raise CodecError(f"a {name} can't be handed to the student's process")
        return ["o", str(name)[:100]]

    def _blob(self, size: int, data: Any) -> int:
        self._spend(size)
        self.blobs.append(data())
        return len(self.blobs) - 1

    def _spend(self, size: int) -> None:
        self._left -= size
        if self._left < 0:
            raise CodecError("the value is too large")


def _is_plain(tensor: torch.Tensor) -> bool:
    """Whether NumPy gives its bytes as they are."""
    usual = tensor.dtype in _NUMPY_TOO and tensor.layout is torch.strided
    there = tensor.device.type == "cpu" and tensor.is_contiguous()
    return usual and there and not tensor.requires_grad and not tensor.is_neg()


def _tensor_bytes(plain: torch.Tensor) -> bytes:
    flat = plain.cpu().resolve_conj().resolve_neg().contiguous().reshape(-1)
    if flat.numel() == 0:
        return b""
    return flat.view(torch.uint8).numpy().tobytes()


def decode(tree: Any, blobs: list[bytes]) -> Any:
    """The value that a tree and its blobs stand for. Raises CodecError for anything odd."""
    try:
        return _Decoder(blobs).decode(tree, 0)
    except CodecError:
        raise
    except Exception as error:
        # Whatever a forged tree trips over is the same thing to the caller: not a value.
        raise CodecError(f"not a value: {type(error).__name__}") from None


class _Decoder:
    def __init__(self, blobs: list[bytes]) -> None:
        self._blobs = blobs
        self._items = MAX_ITEMS
        self._readers = {tag: getattr(self, f"_read_{tag}") for tag in "fcigxnzyvbltdoe"}

    def decode(self, tree: Any, depth: int) -> Any:
        self._items -= 1
        if depth > MAX_DEPTH or self._items < 0:
            raise CodecError("the value is nested too deeply or has too many parts")
        if tree is None or type(tree) in (bool, str):
            return tree
        if type(tree) is not list or not tree or type(tree[0]) is not str:
            raise CodecError("not a value")
        read = self._readers.get(tree[0])
        if read is None:
            raise CodecError("not a value")
        if tree[0] in "ltd":
            return read(tree[1], depth + 1)
        return read(*tree[1:])

    def _read_f(self, text: str) -> float:
        return float.fromhex(text)

    def _read_c(self, real: str, imag: str) -> complex:
        return complex(float.fromhex(real), float.fromhex(imag))

    def _read_i(self, text: str) -> int:
        if len(text) > MAX_INT_BITS // 4 + 3:
            raise CodecError("the number is too large")
        return int(text, 16)

    def _read_g(self, dtype: str, shape: list, blob: int) -> Any:
        return self._read_n(dtype, shape, blob)[()]

    def _read_n(self, dtype: str, shape: list, blob: int) -> np.ndarray:
        kind = np.dtype(dtype)
        if kind.kind not in _ARRAY_KINDS or kind.hasobject:
            raise CodecError("not an array of numbers")
        data = self._data(shape, kind.itemsize, blob)
        return np.frombuffer(bytearray(data), dtype=kind).reshape(shape)

    def _read_x(self, dtype: str, shape: list, blob: int, requires_grad: bool) -> torch.Tensor:
        kind = DTYPES[dtype]
        data = self._data(shape, kind.itemsize, blob)
        if not data:
            tensor = torch.empty(shape, dtype=kind)
        else:
            tensor = torch.frombuffer(bytearray(data), dtype=kind).reshape(shape)
        if requires_grad is True and (kind.is_floating_point or kind.is_complex):
            tensor.requires_grad_()
        return tensor

    def _data(self, shape: list, itemsize: int, blob: int) -> bytes:
        if len(shape) > MAX_DIMENSIONS or not all(type(n) is int and n >= 0 for n in shape):
            raise CodecError("not a shape")
        if type(blob) is not int or blob < 0:
            raise CodecError("not a value")
        data = self._blobs[blob]
        if math.prod(shape) * itemsize != len(data):
            raise CodecError("the shape and the data differ")
        return data

    def _read_z(self, shape: list) -> torch.Size:
        return torch.Size(shape)

    def _read_y(self, name: str) -> torch.dtype:
        return DTYPES[name]

    def _read_v(self, name: str) -> torch.device:
        return torch.device(name)

    def _read_b(self, blob: int) -> bytes:
        if type(blob) is not int or blob < 0:
            raise CodecError("not a value")
        return bytes(self._blobs[blob])

    def _read_l(self, items: list, depth: int) -> list:
        return [self.decode(item, depth) for item in items]

    def _read_t(self, items: list, depth: int) -> tuple:
        return tuple(self.decode(item, depth) for item in items)

    def _read_d(self, pairs: list, depth: int) -> dict:
        return {self.decode(k, depth): self.decode(v, depth) for k, v in pairs}

    def _read_e(self) -> Any:
        return ...

    def _read_o(self, name: str) -> Opaque:
        return Opaque(str(name)[:100])
