"""`context.headers` and `context.client_address`: what handlers see of an HTTP request."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_core.auth import OAuthResourceServer
from mcp_core.http import EndpointAuth
from mcp_core.http.server._incoming_request import IncomingHttpRequest, withheld_headers
from mcp_core.http.wire._forwarded import TrustedProxies
from mcp_core.registry import Context, Server
from tests.harness.wire.router import GET, D, E, RouterHarness, initialize, request
from tests.harness.wire.websocket_router import UPGRADE, WebSocketHarness

NAMES = [b"x-team", b"X-Team", b"Cookie", b"AUTHORIZATION", b"host"]
CREDENTIALS = [
    (b"authorization", b"Bearer s3cret"),
    (b"proxy-authorization", b"Basic s3cret"),
    (b"cookie", b"session=s3cret"),
]


def asked() -> Server:
    """A server whose tools return what their contexts say."""
    server = Server("asked")

    @server.tool
    def headers(context: Context) -> dict[str, str]:
        """The headers."""
        return dict(context.headers)

    @server.tool
    def address(context: Context) -> str:
        """The address."""
        return context.client_address

    return server


def seen(headers: list[tuple[bytes, bytes]]) -> dict[str, str]:
    return dict(IncomingHttpRequest(headers, "", withheld_headers(None)).headers)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ([], {}),
        ([(b"x-team", b"red")], {"x-team": "red"}),
        ([(b"X-Team", b" red\t")], {"x-team": "red"}),
        (
            [(b"x-team", b"red"), (b"a", b""), (b"X-TEAM", b"blue")],
            {"x-team": "red, blue", "a": ""},
        ),
        ([(b"x-odd", bytes([9, 128, 255, 65]))], {"x-odd": "\x80\xffA"}),
        ([(b"x-name", "Zoë".encode())], {"x-name": "Zo\xc3\xab"}),
        ([(b"x-\xff", b"1")], {"x-\xff": "1"}),
        (CREDENTIALS, {}),
        ([(name.title(), value) for name, value in CREDENTIALS], {}),
        ([(b"Mcp-Session-Id", b"s3cret"), (b"mcp-session-id", b"s3cret")], {}),
        (
            [(b"set-cookie", b"a=b"), (b"authorization2", b"x")],
            {"set-cookie": "a=b", "authorization2": "x"},
        ),
    ],
)
def test_headers_of_any_bytes_are_text_without_credentials(
    fields: list[tuple[bytes, bytes]], expected: dict[str, str]
) -> None:
    assert seen(fields) == expected
    upgrade = IncomingHttpRequest.of_upgrade(fields, "", withheld_headers(None))
    assert dict(upgrade.headers) == expected


@given(st.lists(st.tuples(st.sampled_from(NAMES) | st.binary(max_size=8), st.binary(max_size=8))))
def test_headers_of_any_fields_are_read_alike(fields: list[tuple[bytes, bytes]]) -> None:
    """No byte is lost but white space around values, and no credential is among them."""
    found = seen(fields)
    upgrade = IncomingHttpRequest.of_upgrade(fields, "", withheld_headers(None))
    assert dict(upgrade.headers) == found
    assert not {"authorization", "cookie"} & found.keys()
    for name, text in found.items():
        values = [
            value.strip(b" \t") for key, value in fields if key.lower() == name.encode("latin-1")
        ]
        assert text.encode("latin-1") == b", ".join(values)


def test_headers_of_64_kb_are_read_in_one_pass() -> None:
    """Also if it is one field 8,000 times: joining them one by one would copy 250 MB."""
    fields = [(b"x-a", b"12345")] * 8_000
    found = seen([*fields, (b"x-long", b"y" * 65_536)])
    assert found["x-a"].count("12345") == 8_000
    assert len(found["x-long"]) == 65_536


def test_headers_cannot_be_changed_by_a_handler() -> None:
    request = IncomingHttpRequest([(b"a", b"1")], "", withheld_headers(None))
    with pytest.raises(TypeError):
        request.headers["a"] = "2"  # type: ignore[index]
    assert request.headers is request.headers


def test_repr_of_a_request_shows_no_values() -> None:
    """Logs of an internal error show the event, and so this."""
    request = IncomingHttpRequest([(b"x-key", b"s3cret")], "192.0.2.1", withheld_headers(None))
    assert repr(request) == "<IncomingHttpRequest>"


class KeyHeader(OAuthResourceServer):
    """A resource server that reads a header of its own."""

    credential_headers = ("x-key",)


@pytest.mark.parametrize(
    ("kind", "options", "withheld"),
    [
        (OAuthResourceServer, {}, set()),
        (OAuthResourceServer, {"dpop": True}, {"dpop"}),
        (KeyHeader, {}, {"x-key"}),
    ],
)
def test_headers_that_auth_reads_are_withheld(
    kind: type[OAuthResourceServer], options: dict[str, Any], withheld: set[str]
) -> None:
    server = kind(
        "https://mcp.example/mcp", ["https://auth.example"], lambda token: None, **options
    )
    found = withheld_headers(EndpointAuth(server, lambda: 0.0, print))
    fields = [(name, b"s3cret") for name in (b"authorization", b"dpop", b"x-key")]
    seen = set(IncomingHttpRequest(fields, "", found).headers)
    assert seen == {"dpop", "x-key"} - withheld


def test_headers_in_a_session_are_those_of_each_post() -> None:
    """Not those with which the session began."""
    harness = RouterHarness(asked())
    session = harness.session()
    known = session.headers
    for team in (b"red", b"blue"):
        session.headers = [*known, (b"x-team", team), *CREDENTIALS]
        found = session.call(team.decode(), "headers").message["result"]["structuredContent"]
        assert found["x-team"] == team.decode()
        assert found["content-type"] == "application/json"
        assert "s3cret" not in str(found)
        assert b"mcp-session-id" in dict(known)
        assert "mcp-session-id" not in found


def test_headers_of_a_stateless_request_are_its_own() -> None:
    harness = RouterHarness(asked())
    found = harness.call(1, "headers").message["result"]["structuredContent"]
    assert found["mcp-protocol-version"] == E
    assert found["mcp-name"] == "headers"


def test_headers_over_http_sse_are_those_of_each_post() -> None:
    """Not those of the GET, on whose stream the response is."""
    harness = RouterHarness(asked())
    opened = harness.send(b"GET", [*GET, (b"x-team", b"green")])
    [(kind, target, _, _)] = opened.events
    assert kind == "endpoint"
    harness.post(initialize("2024-11-05"), target=target)
    harness.post({"jsonrpc": "2.0", "method": "notifications/initialized"}, target=target)
    call = request(1, "tools/call", {"name": "headers", "arguments": {}})
    assert harness.post(call, (b"x-team", b"red"), *CREDENTIALS, target=target).status == 202
    text = opened.messages[-1]["result"]["content"][0]["text"]
    assert '"x-team":"red"' in text
    assert "s3cret" not in text


def test_headers_over_a_websocket_are_the_upgrades() -> None:
    harness = WebSocketHarness(asked())
    played = harness.connect(headers=[*UPGRADE, (b"x-team", b"red"), *CREDENTIALS])
    played.send(initialize(D), {"jsonrpc": "2.0", "method": "notifications/initialized"})
    for id in (1, 2):
        [answer] = played.send(request(id, "tools/call", {"name": "headers", "arguments": {}}))
        assert answer["result"]["structuredContent"] == {
            "host": "127.0.0.1:8000",
            "upgrade": "websocket",
            "connection": "Upgrade",
            "x-team": "red",
        }


@pytest.mark.parametrize(
    ("proxies", "forwarded", "expected"),
    [
        (None, b"203.0.113.9", "192.0.2.1"),
        (["192.0.2.1"], b"203.0.113.9", "203.0.113.9"),
        (["192.0.2.1"], b"198.51.100.1, 203.0.113.9", "203.0.113.9"),
        (["192.0.2.1"], b"no address", "192.0.2.1"),
        (["192.0.2.7"], b"203.0.113.9", "192.0.2.1"),
    ],
)
def test_client_address_is_what_trusted_proxies_say(
    proxies: list[str] | None, forwarded: bytes, expected: str
) -> None:
    trusted = None if proxies is None else TrustedProxies(proxies)
    harness = RouterHarness(asked(), trusted_proxies=trusted)
    harness.address = "192.0.2.1"
    session = harness.session()
    session.headers.append((b"x-forwarded-for", forwarded))
    assert session.call(1, "address").message_text == expected


def test_stream_that_waits_keeps_no_headers() -> None:
    """A response may take hours, and its handler may not ask for them."""
    harness = RouterHarness(asked())
    session = harness.session()
    reply = session.get()
    assert reply.exchange.fields == []
