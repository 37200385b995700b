"""The requests that a proxy passes on, and the target that a stream of HTTP+SSE adds."""

from __future__ import annotations

import pytest

from mcp_core.http import (
    EndpointWatch,
    Head,
    HostOriginPolicy,
    PassedRequest,
    ProxyPolicy,
    ProxyRefusal,
    RequestHead,
    Url,
    proxied_request_headers,
)

URL = Url.parse("https://server.test/mcp?a=b")
HOST = (b"host", b"localhost:9")
OWN = HostOriginPolicy("127.0.0.1", scheme="http")
PLAIN = ProxyPolicy(OWN, URL, adds_headers=False)
STREAM = Head(200, [(b"content-type", b"text/event-stream; charset=utf-8")])


def request(
    method: bytes, target: bytes, *headers: tuple[bytes, bytes], host: bytes | None = HOST[1]
) -> RequestHead:
    fields = [] if host is None else [(b"host", host)]
    return RequestHead(method, target, [*fields, *headers])


def lender() -> ProxyPolicy:
    return ProxyPolicy(OWN, URL, adds_headers=True)


def status(policy: ProxyPolicy, head: RequestHead) -> int:
    """Return the status of the refusal; 200 if the request gets the headers, 204 if it does not."""
    found = policy.check(head)
    if isinstance(found, ProxyRefusal):
        return found.status
    return 200 if found.gets_headers else 204


@pytest.mark.parametrize(
    ("headers", "host", "plain", "with_headers"),
    [
        ([], b"localhost:9", 204, 200),
        ([], b"[::1]", 204, 200),
        ([], None, 421, 421),
        ([], b"evil.example", 421, 421),
        ([], b"10.0.0.1", 421, 421),
        ([(b"upgrade", b"WebSocket")], b"localhost", 501, 501),
        ([(b"upgrade", b"h2c"), (b"upgrade", b"websocket")], b"localhost", 501, 501),
        ([(b"upgrade", b"h2c"), (b"x-about", b"websocket")], b"localhost", 204, 200),
        ([(b"origin", b"https://evil.example")], b"localhost", 204, 403),
        ([(b"origin", b"null")], b"localhost", 204, 403),
        ([(b"origin", b"http://localhost")], b"localhost", 204, 200),
        ([(b"sec-fetch-site", b"cross-site")], b"localhost", 403, 403),
        ([(b"sec-fetch-site", b"none")], b"localhost", 204, 200),
        ([(b"sec-fetch-site", b"none")] * 2, b"localhost", 403, 403),
    ],
)
def test_sender_of_a_request_decides(
    headers: list[tuple[bytes, bytes]], host: bytes | None, plain: int, with_headers: int
) -> None:
    head = request(b"GET", b"/mcp?a=b", *headers, host=host)
    assert (status(PLAIN, head), status(lender(), head)) == (plain, with_headers)


def test_page_of_the_server_is_known() -> None:
    own = (b"origin", b"http://localhost:9")
    assert PLAIN.check(request(b"GET", b"/", own)) == PassedRequest(True, False)
    assert PLAIN.check(request(b"GET", b"/")) == PassedRequest(False, False)


def test_refusal_has_a_cause_for_the_client_and_the_value_for_the_trace() -> None:
    found = lender().check(request(b"GET", b"/ad\x1bmin?key=secret"))
    assert isinstance(found, ProxyRefusal)
    assert "use the URL that it has printed" in found.reason
    assert found.note == r"a request for another target was refused: /ad\u001bmin"
    found = PLAIN.check(request(b"GET", b"/", host=b"evil.example"))
    assert isinstance(found, ProxyRefusal)
    assert found.note == "a request with a foreign Host was refused: evil.example"


@pytest.mark.parametrize(
    ("method", "target", "expected"),
    [
        (b"GET", b"/mcp?a=b", 200),
        (b"PATCH", b"/mcp?a=b", 200),
        (b"GET", b"/mcp", 404),
        (b"GET", b"/mcp?a=b&c", 404),
        (b"GET", b"/mcp/?a=b", 404),
        (b"OPTIONS", b"*", 404),
        (b"GET", b"/.well-known/oauth-protected-resource/mcp", 204),
        (b"HEAD", b"/.well-known/oauth-authorization-server", 204),
        (b"OPTIONS", b"/mcp/.well-known/openid-configuration", 204),
        (b"POST", b"/.well-known/oauth-protected-resource/mcp", 404),
        (b"GET", b"/.well-known/oauth-protected-resource/other", 404),
        (b"GET", b"/.well-known/oauth-protected-resource/mcp?a=b", 404),
    ],
)
def test_headers_are_for_one_target(method: bytes, target: bytes, expected: int) -> None:
    assert status(lender(), request(method, target)) == expected
    assert status(PLAIN, request(method, target)) == 204


def test_fields_with_another_path_are_for_the_server_without_headers_only() -> None:
    fields = [(b"X-Original-URL", b"/a"), (b"accept", b"*/*"), (b"x-rewrite-url", b"/b")]
    assert PLAIN.passed_headers(fields) == fields
    assert lender().passed_headers(fields) == [fields[1]]


def watching(policy: ProxyPolicy, head: Head = STREAM) -> EndpointWatch:
    watch = policy.watch(request(b"GET", b"/mcp?a=b"))
    assert watch is not None
    watch.receive_head(head)
    return watch


def test_only_a_get_of_the_url_can_announce_a_target() -> None:
    assert PLAIN.watch(request(b"GET", b"/mcp?a=b")) is None
    for method, target in ((b"POST", b"/mcp?a=b"), (b"GET", b"/mcp"), (b"GET", b"/other")):
        assert lender().watch(request(method, target)) is None


@pytest.mark.parametrize("size", [1, 2, 100])
def test_announced_target_counts_until_its_last_stream_ends(size: int) -> None:
    """The stream's first `endpoint` event lets POSTs pass, and two streams may share it."""
    policy = lender()
    post = request(b"POST", b"/post?s=1")
    data = b": hello\n\nevent: endpoint\r\ndata: /post?s=1\r\n\r\nevent: endpoint\ndata: /x\n\n"
    first, second = watching(policy), watching(policy)
    for watch in first, second:
        assert status(policy, post) == (404 if watch is first else 200)
        for start in range(0, len(data), size):
            watch.receive_data(data[start : start + size])
    assert status(policy, post) == 200
    assert status(policy, request(b"GET", b"/post?s=1")) == 404
    assert status(policy, request(b"POST", b"/x")) == 404
    assert repr(policy) == "<ProxyPolicy for https://server.test/mcp, 2 targets announced>"
    first.close()
    first.close()
    assert status(policy, post) == 200
    second.close()
    assert status(policy, post) == 404
    assert repr(policy) == "<ProxyPolicy for https://server.test/mcp, 0 targets announced>"
    assert repr(first) == "<EndpointWatch of https://server.test/mcp>"


@pytest.mark.parametrize(
    ("head", "data"),
    [
        (STREAM, b"event: endpoint\ndata: https://other.test/post\n\n"),
        (STREAM, b"event: endpoint\ndata: http://server.test/post\n\n"),
        (STREAM, b"event: endpoint\ndata: https://a:b@server.test/post\n\n"),
        (STREAM, b"event: endpoint\ndata: \xff/post\n\n"),
        (STREAM, b"data: /post\n\nevent: endpoint\ndata: /post\n\n"),
        (STREAM, b"event: endpoint\ndata: /post\n"),
        (STREAM, b"event: endpoint\ndata: /post?" + b"a" * 20_000 + b"\n\n"),
        (Head(500, STREAM.headers), b"event: endpoint\ndata: /post\n\n"),
        (Head(200, []), b"event: endpoint\ndata: /post\n\n"),
        (
            Head(200, [*STREAM.headers, (b"content-encoding", b"gzip")]),
            b"event: endpoint\ndata: /post\n\n",
        ),
    ],
)
def test_other_response_announces_no_target(head: Head, data: bytes) -> None:
    policy = lender()
    watch = watching(policy, head)
    watch.receive_data(data)
    assert status(policy, request(b"POST", b"/post")) == 404
    assert repr(policy) == "<ProxyPolicy for https://server.test/mcp, 0 targets announced>"


OWN_PAGE = (b"Origin", b"https://server.test")
PASSED = (b"Host", b"server.test")
KEY = (b"X-Key", b"ours")


@pytest.mark.parametrize(
    ("request_", "chunked", "expected"),
    [
        (PassedRequest(False, False), False, [PASSED, (b"Origin", b"http://x"), (b"x-key", b"1")]),
        (PassedRequest(True, False), False, [PASSED, OWN_PAGE, (b"x-key", b"1")]),
        (PassedRequest(True, True), False, [PASSED, OWN_PAGE, KEY]),
        (PassedRequest(True, True), True,
            [PASSED, OWN_PAGE, KEY, (b"Transfer-Encoding", b"chunked")]),
    ],
)  # fmt: skip
def test_proxied_request_headers_name_the_server(
    request_: PassedRequest, chunked: bool, expected: list[tuple[bytes, bytes]]
) -> None:
    sent = [
        (b"Host", b"localhost:9"),
        (b"Origin", b"http://x"),
        (b"x-key", b"1"),
        (b"Connection", b"keep-alive, x-hop"),
        (b"x-hop", b"1"),
        (b"Transfer-Encoding", b"chunked"),
    ]
    assert proxied_request_headers(sent, URL, request_, [KEY], is_chunked=chunked) == expected
