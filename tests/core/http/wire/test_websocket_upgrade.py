"""The WebSocket handshake: valid and invalid requests, and responses that a client accepts."""

from __future__ import annotations

import pytest

from mcp_core import AuthRequired, ConnectFailed, McpTrioError
from mcp_core.http import Head, RequestHead, WebSocketUpgrade
from mcp_core.http.wire._websocket_upgrade import accept_headers, find_upgrade_error, is_upgrade
from tests.harness.wire.websocket_router import (
    KEY,
    PROOF,
    UPGRADE,
    upgrade,
)

ASKS = [
    # method, changed headers, whether it is an upgrade
    (b"GET", {}, True),
    (b"GET", {"upgrade": b"WebSocket"}, True),
    (b"GET", {"upgrade": b"h2c, websocket"}, True),
    (b"GET", {"connection": b"keep-alive, Upgrade"}, True),
    (b"GET", {"connection": b"UPGRADE"}, True),
    (b"GET", {"upgrade": None}, False),
    (b"GET", {"upgrade": b"h2c"}, False),
    (b"GET", {"upgrade": b"websocket/13"}, False),
    (b"GET", {"connection": None}, False),
    (b"GET", {"connection": b"keep-alive"}, False),
    (b"POST", {}, False),
    (b"get", {}, False),
]


@pytest.mark.parametrize(("verb", "changed", "asks"), ASKS)
def test_is_upgrade_needs_method_and_headers(
    verb: bytes, changed: dict[str, bytes | None], asks: bool
) -> None:
    assert is_upgrade(RequestHead(verb, b"/mcp", upgrade(**changed))) is asks


FAULTS = [
    # changed headers, status, text
    ({}, 0, ""),
    ({"sec_websocket_protocol": b"graphql, mcp"}, 0, ""),
    ({"sec_websocket_protocol": b"mcp,graphql"}, 0, ""),
    ({"sec_websocket_extensions": b"permessage-deflate"}, 0, ""),
    ({"content_length": b"0"}, 0, ""),
    ({"content_length": b"5"}, 400, "no body"),
    ({"transfer_encoding": b"chunked"}, 400, "no body"),
    ({"sec_websocket_version": None}, 426, "version 13"),
    ({"sec_websocket_version": b"8"}, 426, "version 13"),
    ({"sec_websocket_version": b"13, 8"}, 426, "version 13"),
    ({"sec_websocket_version": b"013"}, 426, "version 13"),
    ({"sec_websocket_key": None}, 400, "16 bytes"),
    ({"sec_websocket_key": b""}, 400, "16 bytes"),
    ({"sec_websocket_key": b"dGhlIHNhbXBsZSBub25jZQ"}, 400, "16 bytes"),
    ({"sec_websocket_key": b"dGhlIHNhbXBsZSBub25jZR=="}, 400, "16 bytes"),
    ({"sec_websocket_key": KEY + b"AAAA"}, 400, "16 bytes"),
    ({"sec_websocket_key": KEY + b", " + KEY}, 400, "16 bytes"),
    ({"sec_websocket_protocol": None}, 400, "subprotocol mcp"),
    ({"sec_websocket_protocol": b""}, 400, "subprotocol mcp"),
    ({"sec_websocket_protocol": b"MCP"}, 400, "subprotocol mcp"),
    ({"sec_websocket_protocol": b"mcp2"}, 400, "subprotocol mcp"),
]


@pytest.mark.parametrize(("changed", "status", "text"), FAULTS)
def test_upgrade_fault_names_status_and_text(
    changed: dict[str, bytes | None], status: int, text: str
) -> None:
    refused = find_upgrade_error(RequestHead(b"GET", b"/mcp", upgrade(**changed)))
    if refused is None:
        assert status == 0
    else:
        assert refused.status == status
        assert text in refused.message
        assert (dict(refused.headers).get(b"sec-websocket-version") == b"13") is (status == 426)


@pytest.mark.parametrize(
    "name", [b"sec-websocket-key", b"sec-websocket-version", b"content-length"]
)
def test_upgrade_fault_repeated_header_is_rejected(name: bytes) -> None:
    headers = [*UPGRADE, (name, dict(UPGRADE).get(name, b"0")), (b"content-length", b"0")]
    assert find_upgrade_error(RequestHead(b"GET", b"/mcp", headers)) is not None


def test_upgrade_subprotocol_lists_are_joined() -> None:
    headers = [(b"sec-websocket-protocol", b"a"), *UPGRADE]
    assert find_upgrade_error(RequestHead(b"GET", b"/mcp", headers)) is None


def test_accepted_has_key_of_rfc_example() -> None:
    assert (
        dict(accept_headers(RequestHead(b"GET", b"/mcp", UPGRADE)))[b"sec-websocket-accept"]
        == PROOF
    )


# -- The client side -----------------------------------------------------------------------------


def upgrade_request(url: str = "ws://host/mcp?a=b", **headers: str) -> WebSocketUpgrade:
    return WebSocketUpgrade(url, headers, b"the sample nonce")


URLS = [
    # URL, origin, Host header, target
    ("ws://host", ("http", "host", 80), b"host", b"/"),
    ("WS://Host:80/mcp", ("http", "host", 80), b"host", b"/mcp"),
    ("wss://host:8443/a?b", ("https", "host", 8443), b"host:8443", b"/a?b"),
    ("wss://[::1]/", ("https", "::1", 443), b"[::1]", b"/"),
]


@pytest.mark.parametrize(("url", "origin", "host", "target"), URLS)
def test_upgrade_url_gives_origin_host_and_target(
    url: str, origin: tuple[str, str, int], host: bytes, target: bytes
) -> None:
    request = upgrade_request(url)
    assert (request.url.origin, dict(request.head.headers)[b"host"]) == (origin, host)
    assert request.head.target == target


def test_upgrade_request_is_accepted_by_server() -> None:
    request = upgrade_request("wss://host/mcp?a=b", Authorization="Bearer x")
    assert is_upgrade(request.head)
    assert find_upgrade_error(request.head) is None
    assert dict(request.head.headers)[b"sec-websocket-key"] == KEY
    assert dict(request.head.headers)[b"authorization"] == b"Bearer x"
    assert request.find_error(Head(101, accept_headers(request.head))) is None
    assert repr(request) == "<WebSocketUpgrade at https://host/mcp>"


@pytest.mark.parametrize(
    ("url", "headers"),
    [
        ("http://host/", {}),
        ("host", {}),
        ("ws://", {}),
        ("ws://user:x@host/", {}),
        ("ws://host/", {"Host": "other"}),
        ("ws://host/", {"Upgrade": "h2c"}),
        ("ws://host/", {"Sec-WebSocket-Extensions": "permessage-deflate"}),
        ("ws://host/", {"x": "a\r\nb"}),
    ],
)
def test_upgrade_invalid_url_or_header_raises(url: str, headers: dict[str, str]) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - each has its own text
        WebSocketUpgrade(url, headers, bytes(16))


ANSWERS = [
    # status, changed headers, body, error, text
    (101, {b"upgrade": b"h2c"}, b"", ConnectFailed, "another protocol"),
    (101, {b"connection": b"close"}, b"", ConnectFailed, "another protocol"),
    (101, {b"sec-websocket-accept": b"AAAA"}, b"", ConnectFailed, "does not match the request"),
    (101, {b"sec-websocket-extensions": b"permessage-deflate"}, b"", ConnectFailed, "extension"),
    (101, {b"sec-websocket-protocol": b"graphql"}, b"", ConnectFailed, "does not speak mcp"),
    (101, {b"sec-websocket-protocol": b""}, b"", ConnectFailed, "does not speak mcp"),
    (200, {}, b"", McpTrioError, "perhaps there is only http://: HTTP status 200"),
    (200, {b"content-encoding": b"gzip"}, b"\x1f\x8b", McpTrioError, "HTTP status 200"),
    (200, {b"content-type": b"text/event-stream"}, b"data", McpTrioError, "HTTP status 200"),
    (405, {}, b"", McpTrioError, "perhaps there is only http://: HTTP status 405"),
    (301, {b"location": b"wss://there/"}, b"", McpTrioError, "connect to wss://there/ instead"),
    (401, {b"www-authenticate": b"Bearer"}, b"", AuthRequired, "access token, in headers"),
    (404, {}, b"", McpTrioError, "is this the URL of an MCP server"),
    (403, {b"content-type": b"text/plain"}, b"not you\n", McpTrioError, r"\(not you\)"),
    (426, {b"content-encoding": b"gzip"}, b"\x1f\x8b", McpTrioError, "HTTP status 426"),
]


@pytest.mark.parametrize(("status", "changed", "body", "error", "text"), ANSWERS)
def test_upgrade_other_response_gives_error(
    status: int, changed: dict[bytes, bytes], body: bytes, error: type[Exception], text: str
) -> None:
    request = upgrade_request()
    refused = request.find_error(
        Head(status, list({**dict(accept_headers(request.head)), **changed}.items())), body
    )
    assert refused is not None
    with pytest.raises(error, match=text):
        raise refused
