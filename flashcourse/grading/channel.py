"""Messages between the grader's processes: a JSON header with byte blobs behind it.

A frame is four bytes of header length, the header, and the blobs, whose lengths stand in the
header under `blobs`. Both sides check every length before they read, since one of them may be a
student's process.
"""

from __future__ import annotations

import json
import select
import socket
import struct
import time
from typing import Any

from flashcourse.grading.limits import MAX_BLOBS, MAX_HEADER

_LENGTH = struct.Struct("<I")


class ChannelClosed(Exception):
    """The other side is gone."""


class ChannelTimeout(Exception):
    """The other side did not answer in time."""


class BadFrame(Exception):
    """The other side sent something that is no message, or one that is too large."""


class Channel:
    """One end of a socket pair. `deadline` is a time of `time.monotonic()`, or None."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        sock.setblocking(False)

    def send(
        self,
        message: dict[str, Any],
        blobs: list[bytes] | None = None,
        deadline: float | None = None,
    ) -> None:
        header = dict(message, blobs=[len(blob) for blob in blobs or ()])
        data = json.dumps(header, separators=(",", ":")).encode()
        if len(data) > MAX_HEADER:
            raise BadFrame("the message is too large")
        # A record has hundreds of small blobs: one write for all.
        self._write(b"".join([_LENGTH.pack(len(data)), data, *(blobs or ())]), deadline)

    def receive(self, deadline: float | None = None) -> tuple[dict[str, Any], list[bytes]]:
        """The next message and its blobs. Raises the three errors above."""
        (size,) = _LENGTH.unpack(self._read(_LENGTH.size, deadline))
        if size > MAX_HEADER:
            raise BadFrame("the message is too large")
        try:
            message = json.loads(self._read(size, deadline))
            sizes = message.pop("blobs")
            lengths_are_sane = all(type(n) is int and n >= 0 for n in sizes)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise BadFrame("not a message") from None
        if not lengths_are_sane or sum(sizes) > MAX_BLOBS:
            raise BadFrame("the message is too large")
        return message, _parts(self._read(sum(sizes), deadline), sizes)

    def close(self) -> None:
        self.sock.close()

    def _wait(self, writing: bool, deadline: float | None) -> None:
        left = None if deadline is None else deadline - time.monotonic()
        if left is not None and left <= 0:
            raise ChannelTimeout
        poll = select.poll()
        poll.register(self.sock, select.POLLOUT if writing else select.POLLIN)
        if not poll.poll(None if left is None else max(1, left * 1000)):
            raise ChannelTimeout

    def _read(self, size: int, deadline: float | None) -> bytes:
        data = bytearray()
        while len(data) < size:
            try:
                part = self.sock.recv(min(size - len(data), 1 << 20))
            except BlockingIOError:
                self._wait(False, deadline)
                continue
            except OSError:
                raise ChannelClosed from None
            if not part:
                raise ChannelClosed
            data += part
        return bytes(data)

    def _write(self, data: bytes, deadline: float | None) -> None:
        view = memoryview(data)
        while view:
            try:
                view = view[self.sock.send(view[: 1 << 20]) :]
            except BlockingIOError:
                self._wait(True, deadline)
            except OSError:
                raise ChannelClosed from None


def _parts(data: bytes, sizes: list[int]) -> list[bytes]:
    parts, begin = [], 0
    for size in sizes:
        parts.append(data[begin : begin + size])
        begin += size
    return parts
