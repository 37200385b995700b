"""Wrong HTTP responses as data."""

from __future__ import annotations

from typing import Final

__all__ = ["HTTP_WAYS", "STATUSES", "TYPES", "raw_response"]

STATUSES: Final = (
    *(400, 401, 403, 404, 405, 406, 409, 413, 415, 421, 429, 500, 501, 502, 503, 504),
    *(200, 201, 202, 204, 206, 226, 300, 301, 302, 303, 304, 305, 307, 308, 299, 599, 999),
)
"""A redirect with an odd status leads to the endpoint itself, others to a missing path."""

TYPES: Final = (
    None,
    "text/html",
    "text/plain; charset=utf-8",
    "application/json; charset=latin-1",
    "application/json;",
    "APPLICATION/JSON",
    "application/json-seq",
    "text/event-stream",
    "text/event-stream; charset=utf-16",
    "garbage",
    "multipart/mixed; boundary=a",
)

HTTP_WAYS: Final = ("status", "type", "resume", "session", "cut", "head", "body", "events")
_OK: Final = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
_STREAM: Final = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n"


def raw_response(way: str, number: int, body: bytes) -> bytes:
    """Return the bytes of a wrong response with `body`, after which the connection ends."""
    length = b"content-length: %d\r\n\r\n" % len(body)
    variants: dict[str, tuple[bytes, ...]] = {
        "cut": (
            b"",
            b"HTTP/1.1 200",
            _OK,
            _OK + length + body[: len(body) // 2],
            _STREAM,
            _STREAM + b"data: " + body[: len(body) // 2],
            _STREAM + b"data: " + body + b"\n",
            _OK + b"transfer-encoding: chunked\r\n\r\n5\r\n" + body[:5] + b"\r\n",
        ),
        "head": (
            b"HTTP/1.1 200\r\n" + _OK[17:] + length + body,
            b"HTTP/2.0 200 OK\r\n" + _OK[17:] + length + body,
            b"garbage\r\n\r\n" + body,
            _OK + b"no colon\r\n" + length + body,
            _OK + b"x: " + b"y" * 200_000 + b"\r\n" + length + body,
            _OK + b"content-length: 5\r\n" + length + body,
            _OK + b"content-length: -1\r\n\r\n" + body,
            _OK + b"content-length: many\r\n\r\n" + body,
            _OK + b"transfer-encoding: chunked\r\n\r\nzz\r\n" + body,
            _OK + b"content-encoding: gzip\r\n" + length + body,
            b"HTTP/1.1 100 Continue\r\n\r\n" * 1_000 + _OK + length + body,
            _OK + b"a: b\r\n" * 5_000 + length + body,
        ),
        "body": (
            _OK + b"\r\n",
            _OK + b"\r\n{",
            _OK + b"\r\n\xef\xbb\xbf" + body,
            _OK + b"\r\n\xff" + body,
            _OK + b"\r\n" + body + body,
            _OK + b"\r\nnull",
            _OK + b"\r\n[" + body + b"]",
            _OK + b"\r\n" + b"[" * 100_000,
            _OK + b"\r\n<html>" + b"x" * 1_000_000,
        ),
        "events": (
            _STREAM + b"\xef\xbb\xbfdata: " + body + b"\n\n",
            _STREAM + b"data:" + body + b"\r\r",
            _STREAM + b"event: other\ndata: " + body + b"\n\n",
            _STREAM + b": comment\n\nretry: never\nid\ndata\n\ndata: " + body + b"\n\n",
            _STREAM + b"data: {\n\ndata: " + body + b"\n\n",
            _STREAM + b"data: \xff\n\ndata: " + body + b"\n\n",
            _STREAM + b"id: a\x00b\nretry: 99999999999999999999\ndata: " + body + b"\n\n",
            _STREAM + body + b"\n\n",
            _STREAM + b"data: " + b"x" * 2_000_000,
            _STREAM + b"data: " + body.replace(b",", b",\ndata: ") + b"\n\n",
            _STREAM + b"\n" * 100_000 + b"data: " + body + b"\n\n",
        ),
    }
    found = variants.get(way, (b"",))
    return found[number % len(found)]
