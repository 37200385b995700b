"""HTTP/2 frames as bytes and back, for tests that send invalid ones, as either end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from mcp_core.http.wire._http2_frames import PREFACE

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "ACK",
    "CONTINUATION",
    "DATA",
    "END_HEADERS",
    "END_STREAM",
    "GOAWAY",
    "HEADERS",
    "HELLO",
    "PING",
    "PREFACE",
    "PRIORITY",
    "PUSH_PROMISE",
    "RST_STREAM",
    "SETTINGS",
    "WINDOW_UPDATE",
    "Frame",
    "FrameReader",
    "block",
    "data",
    "frame",
    "go_away",
    "number",
    "ping",
    "post",
    "reset",
    "setting",
    "settings",
    "window",
]

DATA: Final = 0
HEADERS: Final = 1
PRIORITY: Final = 2
RST_STREAM: Final = 3
SETTINGS: Final = 4
PUSH_PROMISE: Final = 5
PING: Final = 6
GOAWAY: Final = 7
WINDOW_UPDATE: Final = 8
CONTINUATION: Final = 9
END_STREAM: Final = 1
ACK: Final = 1
END_HEADERS: Final = 4


def frame(
    kind: int, flags: int = 0, stream: int = 0, payload: bytes = b"", *, length: int | None = None
) -> bytes:
    """A frame; `length` is what it says of its payload, if that is to be a lie."""
    declared = len(payload) if length is None else length
    return declared.to_bytes(3, "big") + bytes((kind, flags)) + stream.to_bytes(4, "big") + payload


def number(value: int) -> bytes:
    return value.to_bytes(4, "big")


def setting(identifier: int, value: int) -> bytes:
    return identifier.to_bytes(2, "big") + number(value)


HELLO: Final = PREFACE + frame(SETTINGS)


def settings(*pairs: tuple[int, int]) -> bytes:
    return frame(SETTINGS, payload=b"".join(setting(*pair) for pair in pairs))


def data(stream: int, payload: bytes, *, end: bool = False) -> bytes:
    return frame(DATA, END_STREAM if end else 0, stream, payload)


def reset(stream: int, code: int) -> bytes:
    return frame(RST_STREAM, 0, stream, number(code))


def go_away(last: int, code: int = 0, why: bytes = b"") -> bytes:
    return frame(GOAWAY, payload=number(last) + number(code) + why)


def ping(payload: bytes = b"12345678", *, ack: bool = False) -> bytes:
    return frame(PING, ACK if ack else 0, payload=payload)


def window(stream: int, more: int) -> bytes:
    return frame(WINDOW_UPDATE, 0, stream, number(more))


class Frame(NamedTuple):
    kind: int
    flags: int
    stream: int
    payload: bytes

    @property
    def number(self) -> int:
        """The error code, or the window increment."""
        return int.from_bytes(self.payload[:4], "big")


class FrameReader:
    """Makes frames of the bytes of an end, which begins with `preface`."""

    def __init__(self, preface: bytes = b"") -> None:
        self._preface = preface
        self._rest = b""

    def feed(self, received: bytes) -> Iterator[Frame]:
        self._rest += received
        if len(self._rest) < len(self._preface):
            return
        assert self._rest.startswith(self._preface)
        self._rest, self._preface = self._rest[len(self._preface) :], b""
        while len(self._rest) >= (end := 9 + int.from_bytes(self._rest[:3], "big")):
            head, payload, self._rest = self._rest[:9], self._rest[9:end], self._rest[end:]
            yield Frame(head[3], head[4], int.from_bytes(head[5:], "big"), payload)


def block(headers: list[tuple[bytes, bytes]]) -> bytes:
    """Encode headers in HPACK, each as a literal: independent of the state of the decoder."""
    return b"".join([b"\x00" + _text(name) + _text(value) for name, value in headers])


def _text(text: bytes) -> bytes:
    size = len(text)
    if size < 127:
        return bytes((size,)) + text
    rest, encoded = size - 127, b"\x7f"
    while rest >= 128:
        encoded += bytes((rest & 127 | 128,))
        rest >>= 7
    return encoded + bytes((rest,)) + text


def post(
    stream: int,
    path: bytes = b"/echo",
    *more: tuple[bytes, bytes],
    flags: int = END_HEADERS,
    method: bytes = b"POST",
) -> bytes:
    """The HEADERS frame of a request."""
    headers = [
        (b":method", method),
        (b":scheme", b"http"),
        (b":authority", b"localhost"),
        (b":path", path),
        *more,
    ]
    return frame(HEADERS, flags, stream, block(headers))
