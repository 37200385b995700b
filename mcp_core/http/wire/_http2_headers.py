"""Heads of HTTP/2 requests and responses, and trailers, as decoded lists of headers.

1. **A request over HTTP/2 becomes the same head as over HTTP/1.1**, with `host` in any case. A head
   that could be read in two ways is rejected (RFC 9113, 8.3.1 and 8.2.2).
2. An error in a head ends its stream only: a proxy may have put requests of other users on the same
   connection.

How much of it a peer may send is in `_http2_frames.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

from ._head_limits import (
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
    HeadError,
)
from ._messages import Head, Headers, RequestHead

__all__ = [
    "encode_request_head",
    "encode_response_head",
    "find_trailer_error",
    "request_head",
    "response_head",
]

_TOKEN: Final = rb"[!#$%&'*+\-.^_`|~0-9a-z]"
# The names of a head, each followed by a newline. Pseudo-headers come first. Field names have no
# upper case.
_NAMES: Final = re.compile(rb"(?::[a-z]++\n)*+(?:" + _TOKEN + rb"++\n)*+")
# Not allowed in a value (one per line): control characters, and white space around it.
_INVALID_IN_VALUE: Final = re.compile(rb"[\x00-\x08\x0b-\x1f\x7f]|(?:\A|\n)[ \t]|[ \t](?:\n|\Z)")
_METHOD: Final = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]" + rb"{1,%d}+" % MAX_METHOD)
_PATH: Final = re.compile(rb"/[!$-;=?-\[\]-~]*+")
_SCHEME: Final = re.compile(rb"[A-Za-z][A-Za-z0-9+\-.]*+")
_STATUS: Final = re.compile(rb"[1-5][0-9][0-9]")
_FIELD_OVERHEAD: Final = 32  # bytes that a field counts for beside its own (RFC 9113, 6.5.2)
# Fields about one connection, which aren't allowed in HTTP/2 (8.2.2).
_CONNECTION_FIELDS: Final = frozenset(
    (b"connection", b"keep-alive", b"proxy-connection", b"transfer-encoding", b"upgrade")
)

_NO_NAME = HeadError(
    400, "The name of a header has characters that no name may have, or is out of order."
)
_BAD_VALUE = HeadError(
    400, "The value of a header has control characters, or white space around it."
)
_CONNECTION_SPECIFIC = HeadError(
    400, "A header concerns one connection only, which HTTP/2 does not allow."
)
_PSEUDO = HeadError(
    400,
    "The pseudo-headers are not exactly one method, scheme and path, and at most one authority.",
)
_NO_HOST = HeadError(400, "The authority is missing.")
_OTHER_AUTHORITY = HeadError(400, "The authority and the Host header name different servers.")
_BAD_TARGET = HeadError(
    400, "The path has no slash at its start, or characters that must be percent-encoded."
)
_BAD_STATUS = HeadError(400, "The status is not one number.")


def request_head(headers: Sequence[tuple[bytes, bytes]]) -> RequestHead | HeadError:
    """Return a request's head, from its decoded list of `headers`, or an error.

    Reset the stream with PROTOCOL_ERROR for an error of status 400 (8.1.1). Respond to others with
    their status.
    """
    fields = dict(headers)
    fault = _fields_fault(headers, fields)
    if fault is not None:
        return fault
    method = fields.get(b":method")
    path = fields.get(b":path")
    if method == b"CONNECT":
        return OTHER_METHOD
    authority = fields.get(b":authority")
    host = fields.get(b"host")
    expected = 3 if authority is None else 4
    # One more than expected, so that an additional pseudo-header is found.
    pseudo = sum([name[:1] == b":" for name, _ in headers[: expected + 1]])
    if method is None or path is None or b":scheme" not in fields or pseudo != expected:
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
    rest = [header for header in headers[expected:] if header[0] != b"host"]
    if b"cookie" in fields:
        rest = _with_one_cookie(rest)
    return RequestHead(method, path, [(b"host", host), *rest])


def find_trailer_error(headers: Sequence[tuple[bytes, bytes]]) -> HeadError | None:
    """Return what is wrong with trailers, the decoded list `headers`, or None.

    Reset the stream with PROTOCOL_ERROR for any error.
    """
    fault = _fields_fault(headers, dict(headers))
    if fault is None and any(name[:1] == b":" for name, _ in headers):
        return _PSEUDO
    return fault


def response_head(headers: Sequence[tuple[bytes, bytes]]) -> Head | HeadError:
    """Return a response's head, from its decoded list of `headers`, or an error.

    Reset the stream with PROTOCOL_ERROR for any error.
    """
    fields = dict(headers)
    fault = _fields_fault(headers, fields)
    if fault is not None:
        return fault
    status = fields.get(b":status")
    if (
        status is None
        or not _STATUS.fullmatch(status)
        or sum([name[:1] == b":" for name, _ in headers]) != 1
    ):
        return _BAD_STATUS
    return Head(int(status), list(headers[1:]))


def encode_request_head(head: RequestHead, scheme: str) -> Headers:
    """Return the list of headers for `head`, a request for a URL of `scheme`.

    Fields about one connection are left out, and `host` becomes the authority.

    Raises:
        ValueError: HTTP cannot carry the request.
    """
    host = next((value for name, value in head.headers if name == b"host"), b"")
    fields_of_head = [
        (b":method", head.method),
        (b":scheme", scheme.encode("ascii")),
        (b":authority", host),
        (b":path", head.target),
        *_without_connection_fields(head.headers),
    ]
    fault = _fields_fault(fields_of_head, dict(fields_of_head))
    # Limits (431) are for the server to apply.
    if fault is not None and fault.status == 400:
        raise ValueError(f"the request cannot be sent over HTTP: {fault.reason}")
    return fields_of_head


def encode_response_head(status: int, headers: Iterable[tuple[bytes, bytes]]) -> Headers:
    """Return the list of headers for a response with `status` and `headers` (RFC 9113, 8.3.2).

    Fields about one connection are left out.

    Raises:
        ValueError: a name or a value is invalid.
    """
    fields_of_head = [(name.lower(), value.strip(b" \t")) for name, value in headers]
    fields_of_head = [(b":status", b"%d" % status), *_without_connection_fields(fields_of_head)]
    fault = _fields_fault(fields_of_head, dict(fields_of_head))
    if fault is not None and fault.status == 400:
        raise ValueError(fault.reason)
    return fields_of_head


def _without_connection_fields(headers: Iterable[tuple[bytes, bytes]]) -> Headers:
    return [
        header for header in headers if header[0] not in _CONNECTION_FIELDS and header[0] != b"host"
    ]


def _fields_fault(
    headers: Sequence[tuple[bytes, bytes]], fields: dict[bytes, bytes]
) -> HeadError | None:
    """Check what all heads and trailers have in common. Return what is wrong, or None."""
    if len(headers) > MAX_FIELDS + 4:
        return MANY_FIELDS
    names = b"\n".join([name for name, _ in headers])
    values = b"\n".join([value for _, value in headers])
    ends = len(headers) - 1
    if names.count(b"\n") != ends or not _NAMES.fullmatch(names + b"\n"):
        return _NO_NAME
    if values.count(b"\n") != ends or _INVALID_IN_VALUE.search(values):
        return _BAD_VALUE
    if not _CONNECTION_FIELDS.isdisjoint(fields) or (b"te" in fields and _has_other_te(headers)):
        return _CONNECTION_SPECIFIC
    if len(fields) != len(headers) and _repeats_singleton(headers):
        return REPEATED
    size = len(names) + len(values) - 2 * ends
    if size > MAX_VALUE:
        if any(len(value) > MAX_VALUE for name, value in headers if name != b":path"):
            return LONG_VALUE
        if size + _FIELD_OVERHEAD * len(headers) > MAX_HEAD:
            return LONG_HEAD
    length = fields.get(b"content-length")
    if length is not None:
        if not length.isdigit() or (length[0] == 0x30 and length != b"0"):
            return BAD_LENGTH
        if len(length) > MAX_DIGITS:
            return HUGE_BODY
    return None


def _has_other_te(headers: Sequence[tuple[bytes, bytes]]) -> bool:
    """Return True if a `te` field has another value than `trailers`."""
    return any(name == b"te" and value.lower() != b"trailers" for name, value in headers)


def _repeats_singleton(headers: Sequence[tuple[bytes, bytes]]) -> bool:
    """Return True if a pseudo-header or a single-valued field is repeated."""
    seen = set()
    for name, _ in headers:
        if name in seen and (name[:1] == b":" or name in SINGLETONS):
            return True
        seen.add(name)
    return False


def _with_one_cookie(headers: Headers) -> Headers:
    """Join the pieces of a cookie (8.2.3), as HTTP/1.1 requires."""
    pieces = [value for name, value in headers if name == b"cookie"]
    return [
        *(header for header in headers if header[0] != b"cookie"),
        (b"cookie", b"; ".join(pieces)),
    ]
