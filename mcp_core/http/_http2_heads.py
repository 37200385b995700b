"""Heads over HTTP/2, as lists of headers: those of requests, of answers, and what stands behind a body. Rules of this file:

1. **A request over HTTP/2 is the same request as over HTTP/1.1**: whoever is behind this sees one head, with `host`, whatever the
   spelling was, and a head that could be read in two ways is none (RFC 9113 8.3.1, 8.2.2).
2. A fault in a head ends its stream and no other. Nobody knows who else's requests a proxy has put on this connection.

It does not know which methods, paths or hosts are served, and it decodes no HPACK. How much of it a peer may send is
`_http2_frames.py`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from ._head_faults import (
    BAD_LENGTH,
    EXPECTATION,
    HUGE_BODY,
    LONG_HEAD,
    LONG_TARGET,
    LONG_VALUE,
    MANY_FIELDS,
    MAX_DIGITS,
    MAX_FIELDS,
    MAX_HEAD,
    MAX_METHOD,
    MAX_TARGET,
    MAX_VALUE,
    OTHER_METHOD,
    REPEATED,
    SINGLETONS,
    HeadFault,
)
from ._messages import Head, RequestHead

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ._messages import Headers

__all__ = ["request_fields", "request_head", "response_fields", "response_head", "trailer_fault"]

_TOKEN: Final = rb"[!#$%&'*+\-.^_`|~0-9a-z]"
# The names of a head, each with a newline behind it: those of the protocol's own come first. Of fields names have no upper case.
_NAMES: Final = re.compile(rb"(?::[a-z]++\n)*+(?:" + _TOKEN + rb"++\n)*+")
# What no value may have (one line for each): control characters, and white space around it.
_NO_VALUE: Final = re.compile(rb"[\x00-\x08\x0b-\x1f\x7f]|(?:\A|\n)[ \t]|[ \t](?:\n|\Z)")
_METHOD: Final = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]" + rb"{1,%d}+" % MAX_METHOD)
_PATH: Final = re.compile(rb"/[!$-;=?-\[\]-~]*+")
_SCHEME: Final = re.compile(rb"[A-Za-z][A-Za-z0-9+\-.]*+")
_STATUS: Final = re.compile(rb"[1-5][0-9][0-9]")
_OVERHEAD: Final = 32  # what a field counts for beside its bytes, RFC 9113 6.5.2
# They are about one connection and have no place here, whoever put them there (8.2.2).
_OF_CONNECTIONS: Final = frozenset(
    (b"connection", b"keep-alive", b"proxy-connection", b"transfer-encoding", b"upgrade")
)

_NO_NAME = HeadFault(400, "The name of a header has characters that no name may have, or is out of order.")
_BAD_VALUE = HeadFault(400, "The value of a header has control characters, or white space around it.")
_CONNECTION = HeadFault(400, "A header is about one connection, and has no place in HTTP/2.")
_PSEUDO = HeadFault(400, "There is not exactly one method, scheme and path, and nothing else with a colon.")
_NO_HOST = HeadFault(400, "The authority is missing.")
_OTHER_AUTHORITY = HeadFault(400, "The authority and the Host header name different servers.")
_BAD_TARGET = HeadFault(400, "The path is none, or has characters that must be percent-encoded.")
_BAD_STATUS = HeadFault(400, "The status is not one number.")


def request_head(headers: Sequence[tuple[bytes, bytes]]) -> RequestHead | HeadFault:
    """The head of a request, from its list of headers as it was decoded.

    A fault of status 400 is for resetting the stream with PROTOCOL_ERROR (8.1.1); others are answered as they say.
    """
    fields = dict(headers)
    fault = _fields_fault(headers, fields)
    if fault is not None:
        return fault
    method, path = fields.get(b":method"), fields.get(b":path")
    if method == b"CONNECT":
        return OTHER_METHOD
    authority, host = fields.get(b":authority"), fields.get(b"host")
    known = 3 if authority is None else 4
    pseudo = sum([name[:1] == b":" for name, _ in headers[: known + 1]])
    if method is None or path is None or b":scheme" not in fields or pseudo != known:
        return _PSEUDO
    if not _METHOD.fullmatch(method) or not _SCHEME.fullmatch(fields[b":scheme"]):
        return _PSEUDO
    if not _PATH.fullmatch(path) and not (path == b"*" and method == b"OPTIONS"):
        return _BAD_TARGET
    if len(path) > MAX_TARGET:
        return LONG_TARGET
    if host is None:
        host = authority
    elif authority is not None and authority.lower() != host.lower():
        return _OTHER_AUTHORITY
    if not host:
        return _NO_HOST
    if fields.get(b"expect", b"100-continue").lower() != b"100-continue":
        return EXPECTATION
    rest = [header for header in headers[known:] if header[0] != b"host"]
    if b"cookie" in fields:
        rest = _with_one_cookie(rest)
    return RequestHead(method, path, [(b"host", host), *rest])


def trailer_fault(headers: Sequence[tuple[bytes, bytes]]) -> HeadFault | None:
    """What is wrong with the fields behind a body. A fault is for resetting the stream with PROTOCOL_ERROR."""
    fault = _fields_fault(headers, dict(headers))
    if fault is None and any(name[:1] == b":" for name, _ in headers):
        return _PSEUDO
    return fault


def response_head(headers: Sequence[tuple[bytes, bytes]]) -> Head | HeadFault:
    """The head of a response, from its list of headers as it was decoded. A fault is for resetting the stream with
    PROTOCOL_ERROR, whatever its status."""
    fields = dict(headers)
    fault = _fields_fault(headers, fields)
    if fault is not None:
        return fault
    status = fields.get(b":status")
    if status is None or not _STATUS.fullmatch(status) or sum([name[:1] == b":" for name, _ in headers]) != 1:
        return _BAD_STATUS
    return Head(int(status), list(headers[1:]))


def request_fields(head: RequestHead, scheme: str) -> Headers:
    """The list of headers that says `head`: what is about one connection is left out, and `host` is the authority.

    Raises:
        ValueError: the request cannot be said in HTTP.
    """
    host = next((value for name, value in head.headers if name == b"host"), b"")
    told = [
        (b":method", head.method),
        (b":scheme", scheme.encode("ascii")),
        (b":authority", host),
        (b":path", head.target),
        *_of_messages(head.headers),
    ]
    fault = _fields_fault(told, dict(told))
    # Whether it is too long the server says.
    if fault is not None and fault.status == 400:
        raise ValueError(f"the request cannot be said in HTTP: {fault.reason}")
    return told


def response_fields(status: int, headers: Iterable[tuple[bytes, bytes]]) -> Headers:
    """The list of headers that says the head of a response; what is about one connection is left out.

    Raises:
        ValueError: one of them is no header.
    """
    told = [(name.lower(), value.strip(b" \t")) for name, value in headers]
    told = [(b":status", b"%d" % status), *_of_messages(told)]
    fault = _fields_fault(told, dict(told))
    if fault is not None and fault.status == 400:
        raise ValueError(fault.reason)
    return told


def _of_messages(headers: Iterable[tuple[bytes, bytes]]) -> Headers:
    return [header for header in headers if header[0] not in _OF_CONNECTIONS and header[0] != b"host"]


def _fields_fault(headers: Sequence[tuple[bytes, bytes]], fields: dict[bytes, bytes]) -> HeadFault | None:
    """What is wrong with the fields of a head, whatever they are about."""
    if len(headers) > MAX_FIELDS + 4:
        return MANY_FIELDS
    names = b"\n".join([name for name, _ in headers])
    values = b"\n".join([value for _, value in headers])
    ends = len(headers) - 1
    if names.count(b"\n") != ends or not _NAMES.fullmatch(names + b"\n"):
        return _NO_NAME
    if values.count(b"\n") != ends or _NO_VALUE.search(values):
        return _BAD_VALUE
    if not _OF_CONNECTIONS.isdisjoint(fields) or (b"te" in fields and _encodes(headers)):
        return _CONNECTION
    if len(fields) != len(headers) and _repeats(headers):
        return REPEATED
    size = len(names) + len(values) - 2 * ends
    if size > MAX_VALUE:
        if any(len(value) > MAX_VALUE for name, value in headers if name != b":path"):
            return LONG_VALUE
        if size + _OVERHEAD * len(headers) > MAX_HEAD:
            return LONG_HEAD
    length = fields.get(b"content-length")
    if length is not None:
        if not length.isdigit() or (length[0] == 0x30 and length != b"0"):
            return BAD_LENGTH
        if len(length) > MAX_DIGITS:
            return HUGE_BODY
    return None


def _encodes(headers: Sequence[tuple[bytes, bytes]]) -> bool:
    """Whether something else is said with `te` than that trailers are understood."""
    return any(name == b"te" and value.lower() != b"trailers" for name, value in headers)


def _repeats(headers: Sequence[tuple[bytes, bytes]]) -> bool:
    seen = set()
    for name, _ in headers:
        if name in seen and (name[:1] == b":" or name in SINGLETONS):
            return True
        seen.add(name)
    return False


def _with_one_cookie(headers: Headers) -> Headers:
    """A cookie may come in pieces (8.2.3), and is one to everybody else."""
    pieces = [value for name, value in headers if name == b"cookie"]
    return [*(header for header in headers if header[0] != b"cookie"), (b"cookie", b"; ".join(pieces))]
