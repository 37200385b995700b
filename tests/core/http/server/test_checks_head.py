"""The checks of a request head: one error at a time, in a fixed order."""

from __future__ import annotations

import itertools

import pytest

from mcp_core import Config, Limits
from mcp_core import types as t
from mcp_core.http import HostOriginPolicy, HttpOptions
from mcp_core.http.server._checks import CHECKS, body_too_long, check_head, parse_head
from mcp_core.http.wire._messages import Headers

CONFIG = Config(t.Implementation("s", "1"), t.ServerCapabilities(), limits=Limits(message=1000))
OPTIONS = HttpOptions(host_origin_policy=HostOriginPolicy("127.0.0.1"))
JSON_ONLY = HttpOptions(host_origin_policy=HostOriginPolicy("127.0.0.1"), reply="json")
SSE_ONLY = HttpOptions(host_origin_policy=HostOriginPolicy("127.0.0.1"), reply="sse")

HOST = (b"host", b"127.0.0.1:8000")
TYPE = (b"content-type", b"application/json")
BOTH = (b"accept", b"application/json, text/event-stream")
EVENTS = (b"accept", b"text/event-stream")


def fault(verb: bytes, headers: Headers, options: HttpOptions = OPTIONS) -> tuple[int, str] | None:
    refused = check_head(verb, parse_head(headers), options, CONFIG)
    return None if refused is None else (refused.status, refused.message)


def status(verb: bytes, headers: Headers, options: HttpOptions = OPTIONS) -> int:
    found = fault(verb, headers, options)
    return 0 if found is None else found[0]


# -- One pass --------------------------------------------------------------------------------------


def test_scan_collects_the_headers() -> None:
    """Repeated list headers are joined, unknown ones skipped, `Mcp-*` ones kept one by one."""
    requests = parse_head(
        [
            HOST,
            (b"accept", b"a/b"),
            (b"x-unknown", b"1"),
            (b"accept", b"c/d"),
            (b"mcp-method", b"ping"),
            (b"mcp-param-a", b"1"),
            (b"mcp-param-a", b"2"),
            (b"mcp-protocol-version", b"v"),
        ]
    )
    assert requests.headers == {
        b"host": b"127.0.0.1:8000",
        b"accept": b"a/b, c/d",
        b"mcp-method": b"ping",
        b"mcp-protocol-version": b"v",
    }
    assert requests.repeated is None
    assert [name for name, _ in requests.mirrored] == [
        b"mcp-method",
        b"mcp-param-a",
        b"mcp-param-a",
        b"mcp-protocol-version",
    ]


@pytest.mark.parametrize(
    "name",
    [
        b"host",
        b"origin",
        b"content-type",
        b"content-length",
        b"last-event-id",
        b"mcp-session-id",
        b"mcp-protocol-version",
    ],
)
@pytest.mark.parametrize("verb", [b"POST", b"GET", b"DELETE"])
def test_header_that_occurs_twice_is_rejected(verb: bytes, name: bytes) -> None:
    """Two parsers could choose different values of it; alone, each value is accepted."""
    good = {
        b"host": HOST[1],
        b"origin": b"http://127.0.0.1:8000",
        b"content-type": TYPE[1],
        b"content-length": b"1",
    }
    value = good.get(name, b"x")
    headers = [each for each in (HOST, TYPE, BOTH) if each[0] != name]
    assert status(verb, [*headers, (name, value)]) in (
        0,
        421,
    )  # alone it is good, but for a request without a Host
    refused = fault(verb, [HOST, (name, value), (name, value), TYPE, BOTH])
    assert refused in (
        (400, f"the header {name.decode()} stands twice"),
        (400, "the header host stands twice"),
    )


# -- The ladder ------------------------------------------------------------------------------------

# What is wrong, in the order in which it is found, and what makes it good.
POST = [
    (421, (b"host", b"evil.example"), HOST),
    (403, (b"origin", b"http://evil.example"), (b"origin", b"http://127.0.0.1:8000")),
    (400, (b"mcp-session-id", b"doubled"), None),
    (413, (b"content-length", b"1001"), (b"content-length", b"1000")),
    (415, (b"content-type", b"text/plain"), TYPE),
    (406, (b"accept", b"text/html"), BOTH),
]
GET = [POST[0], POST[1], POST[2], (406, (b"accept", b"application/json"), EVENTS)]
DELETE = POST[:3]
UNKNOWN = [POST[0], POST[1]]


@pytest.mark.parametrize(
    ("verb", "rungs", "last"),
    [
        (b"POST", POST, 0),
        (b"GET", GET, 0),
        (b"DELETE", DELETE, 0),
        (b"OPTIONS", UNKNOWN, 0),
        (b"PUT", UNKNOWN, 405),
    ],
)
@pytest.mark.requirement("SHM-19", "HTTP-1", "HTTP-2", "HTTP-7")
def test_first_failed_check_is_the_response(
    verb: bytes, rungs: list[tuple[int, tuple[bytes, bytes], tuple[bytes, bytes] | None]], last: int
) -> None:
    for mended in range(len(rungs) + 1):
        headers: Headers = []
        for place, (_, bad, good) in enumerate(rungs):
            if place >= mended:
                headers += [bad] if good is not None else [bad, bad]
            elif good is not None:
                headers.append(good)
        wanted = rungs[mended][0] if mended < len(rungs) else last
        for some in itertools.islice(itertools.permutations(headers), 24):
            assert status(verb, list(some)) == wanted


def test_every_verb_checks_host_and_origin_first() -> None:
    for verb in (*CHECKS, b"TRACE", b"", b"post"):
        assert status(verb, []) == 421
        assert status(verb, [HOST, (b"origin", b"null")]) == 403


@pytest.mark.parametrize(
    ("length", "found"),
    [
        (b"0", 0),
        (b"999", 0),
        (b"1000", 0),
        (b"1001", 413),
        (b"000001000", 0),
        (b"9" * 18, 413),
        (b"9" * 19, 413),
        (b"0" * 19, 413),
        (b"9" * 5000, 413),
        (b"", 400),
        (b"-1", 400),
        (b"+1", 400),
        (b"1_0", 400),
        (b"0x10", 400),
        (b"1, 1", 400),
        (b" 1", 400),
        ("١".encode(), 400),
    ],
)
def test_content_length_is_checked(length: bytes, found: int) -> None:
    refused = check_head(
        b"POST", parse_head([HOST, TYPE, BOTH, (b"content-length", length)]), OPTIONS, CONFIG
    )
    assert (refused.status if refused is not None else 0) == found
    assert refused is None or refused.close_after
    assert body_too_long(CONFIG).message == "the body is longer than 1000 bytes"


@pytest.mark.parametrize(
    ("options", "accept", "found"),
    [
        (OPTIONS, b"application/json, text/event-stream", 0),
        (OPTIONS, b"*/*", 0),
        (OPTIONS, None, 0),
        (OPTIONS, b"application/json", 0),
        (OPTIONS, b"text/event-stream", 0),
        (OPTIONS, b"text/html", 406),
        (OPTIONS, b"", 406),
        (OPTIONS, b"application/json;q=0, text/event-stream;q=0", 406),
        (JSON_ONLY, b"application/json", 0),
        (JSON_ONLY, None, 0),
        (JSON_ONLY, b"text/event-stream", 406),
        (SSE_ONLY, b"application/json", 0),
        (SSE_ONLY, b"text/event-stream", 0),
        (SSE_ONLY, b"text/html", 406),
    ],
)
def test_accept_header_must_allow_the_response(
    options: HttpOptions, accept: bytes | None, found: int
) -> None:
    headers = [HOST, TYPE, *([] if accept is None else [(b"accept", accept)])]
    assert status(b"POST", headers, options) == found


@pytest.mark.parametrize(
    ("encoding", "found"),
    [(b"identity", 0), (b"Identity", 0), (b"gzip", 415), (b"", 415), (b"identity, gzip", 415)],
)
def test_content_encoding_is_rejected(encoding: bytes, found: int) -> None:
    refused = check_head(
        b"POST", parse_head([HOST, TYPE, BOTH, (b"content-encoding", encoding)]), OPTIONS, CONFIG
    )
    assert (refused.status if refused is not None else 0) == found
    assert refused is None or refused.headers == [(b"accept-encoding", b"identity")]
