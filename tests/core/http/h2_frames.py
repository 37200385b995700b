"""HTTP/2 frames as bytes, for tests that send invalid ones."""

from __future__ import annotations

from typing import Final

from mcp_core.http.wire._http2_frames import PREFACE

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
    "block",
    "frame",
    "number",
    "post",
    "setting",
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
