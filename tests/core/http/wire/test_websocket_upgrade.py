"""The WebSocket handshake: valid and invalid requests, and responses that a client accepts."""

from __future__ import annotations

import re

import pytest

from mcp_core import AuthRequired, ConnectFailed, McpTrioError
from mcp_core.http import Head, RequestHead, WebSocketUpgrade
from mcp_core.http.wire._websocket_upgrade import (
    SUBPROTOCOLS,
    accept_headers,
    checked_subprotocols,
    find_upgrade_error,
    is_upgrade,
)
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
    refused = find_upgrade_error(RequestHead(b"GET", b"/mcp", upgrade(**changed)), SUBPROTOCOLS)
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
    assert find_upgrade_error(RequestHead(b"GET", b"/mcp", headers), SUBPROTOCOLS) is not None


def test_upgrade_subprotocol_lists_are_joined() -> None:
    headers = [(b"sec-websocket-protocol", b"a"), *UPGRADE]
    assert find_upgrade_error(RequestHead(b"GET", b"/mcp", headers), SUBPROTOCOLS) is None


SELECTED = [
    # of the server, offered, selected; None if the upgrade is refused
    (("mcp",), b"mcp", b"mcp"),
    (("mcp",), b"graphql, mcp", b"mcp"),
    (("mcp", "mcp.v2"), b"mcp.v2,mcp", b"mcp.v2"),  # what the client prefers
    (("mcp", "mcp.v2"), b"mcp.v2", b"mcp.v2"),
    (("mcp", "mcp.v2"), b"other", None),
    (("mcp", "mcp.v2"), None, None),
    ((), None, b""),
    ((), b"mcp", b""),
    ((), b"\xff", b""),
]


@pytest.mark.parametrize(("spoken", "offered", "selected"), SELECTED)
def test_server_selects_the_first_offer_that_it_speaks(
    spoken: tuple[str, ...], offered: bytes | None, selected: bytes | None
) -> None:
    head = RequestHead(b"GET", b"/mcp", upgrade(sec_websocket_protocol=offered))
    refused = find_upgrade_error(head, spoken)
    assert (refused is None) is (selected is not None)
    if refused is not None:
        assert "the subprotocol mcp, or one of mcp.v2, must be offered" in refused.message
    else:
        accepted = dict(accept_headers(head, spoken))
        assert accepted.get(b"sec-websocket-protocol", b"") == selected


@pytest.mark.parametrize(
    "names", ["mcp", ["mcp", "mcp"], [""], ["a b"], ["a,b"], ["a\r\nx: y"], ["\u00e9"], ["a" * 129]]
)
def test_subprotocols_that_cannot_be_offered_raise(names: list[str]) -> None:
    with pytest.raises(ValueError, match="subprotocol"):
        checked_subprotocols(names)


def test_accepted_has_key_of_rfc_example() -> None:
    accepted = accept_headers(RequestHead(b"GET", b"/mcp", UPGRADE), SUBPROTOCOLS)
    assert dict(accepted)[b"sec-websocket-accept"] == PROOF


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
    assert find_upgrade_error(request.head, SUBPROTOCOLS) is None
    assert dict(request.head.headers)[b"sec-websocket-key"] == KEY
    assert dict(request.head.headers)[b"authorization"] == b"Bearer x"
    assert request.find_error(Head(101, accept_headers(request.head, SUBPROTOCOLS))) is None
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
        Head(status, list({**dict(accept_headers(request.head, SUBPROTOCOLS)), **changed}.items())),
        body,
    )
    assert refused is not None
    with pytest.raises(error, match=text):
        raise refused


OFFERED = [
    # offered, selected, text of the error
    (["mcp.v2", "mcp"], b"mcp", None),
    (["mcp.v2", "mcp"], b"graphql", "does not speak mcp.v2 or mcp"),
    (["mcp"], None, r"does not speak mcp on it.*subprotocols=\(\)"),
    (["mcp"], b"mcp, mcp", "does not speak mcp"),
    ([], None, None),
    ([], b"mcp", "does not speak a conversation without a subprotocol"),
]


@pytest.mark.parametrize(("offered", "selected", "text"), OFFERED)
def test_client_accepts_only_a_subprotocol_that_it_offered(
    offered: list[str], selected: bytes | None, text: str | None
) -> None:
    request = WebSocketUpgrade("ws://host/", {}, bytes(16), subprotocols=offered)
    sent = dict(request.head.headers).get(b"sec-websocket-protocol")
    assert sent == (", ".join(offered).encode() or None)
    headers = accept_headers(request.head, ())
    if selected is not None:
        headers.append((b"sec-websocket-protocol", selected))
    error = request.find_error(Head(101, headers))
    assert (error is None) is (text is None)
    if text is not None:
        assert re.search(text, str(error))


# -- Redirects ---------------------------------------------------------------------------------


def redirect(location: str, status: int = 307) -> Head:
    return Head(status, [(b"location", location.encode())])


@pytest.mark.parametrize(
    "location", ["/mcp/?a=b", "ws://host/mcp/?a=b", "WS://HOST:80/mcp/?a=b", "http://host/mcp/?a=b"]
)
def test_redirected_upgrade_goes_on_with_another_key(location: str) -> None:
    """A key is used for one connection only (RFC 6455, 4.1)."""
    request = WebSocketUpgrade(
        "ws://host/mcp?a=b", {"X-Mine": "1"}, b"the sample nonce", subprotocols=["a"]
    )
    following = request.follow(redirect(location), bytes(16))
    assert following is not None
    assert (following.url.origin, following.head.target) == (request.url.origin, b"/mcp/?a=b")
    before, after = dict(request.head.headers), dict(following.head.headers)
    assert before.pop(b"sec-websocket-key") == KEY
    assert after.pop(b"sec-websocket-key") == b"AAAAAAAAAAAAAAAAAAAAAA=="
    assert before == after
    assert following.find_error(Head(101, accept_headers(following.head, ["a"]))) is None


@pytest.mark.parametrize(
    ("url", "headers", "location", "status", "texts"),
    [
        ("ws://host/mcp", {}, "/mcp/", 302, ("may change the method", "ws://host/mcp/")),
        ("ws://host/mcp", {}, "/mcp", 307, ("after 0 others",)),
        ("ws://host/mcp", {}, "ws://evil/mcp", 307, ("to another origin", "ws://evil/mcp")),
        ("wss://host/mcp", {}, "http://host/mcp/", 307, (
            "from https to http", "connect to wss://host/mcp/", "X-Forwarded-Proto")),
        ("wss://host/mcp", {"authorization": "Bearer x"}, "/other", 308, (
            "the credential is for wss://host/mcp", "connect to wss://host/other")),
    ],
)  # fmt: skip
def test_redirected_upgrade_elsewhere_gives_error(
    url: str, headers: dict[str, str], location: str, status: int, texts: tuple[str, ...]
) -> None:
    request = WebSocketUpgrade(url, headers, bytes(16))
    assert request.follow(redirect(location, status), bytes(16)) is None
    error = str(request.find_error(redirect(location, status)))
    for text in texts:
        assert text in error
    assert "http://" not in error


def test_fourth_redirect_of_an_upgrade_gives_error() -> None:
    request: WebSocketUpgrade | None = WebSocketUpgrade("ws://host/0", {}, bytes(16))
    for number in range(3):
        assert request is not None
        request = request.follow(redirect(f"/{number + 1}"), bytes(16))
    assert request is not None
    assert request.follow(redirect("/4"), bytes(16)) is None
    assert "after 3 others" in str(request.find_error(redirect("/4")))


def test_upgrade_other_status_is_no_redirect() -> None:
    request = upgrade_request()
    for status in (101, 200, 404):
        assert request.follow(Head(status, [(b"location", b"/x")]), bytes(16)) is None
