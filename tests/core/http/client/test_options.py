"""`HttpClientOptions`, and which headers may be sent unencrypted."""

from __future__ import annotations

import pytest

from mcp_core import Connection, Role
from mcp_core.http import (
    HttpCall,
    HttpClient,
    HttpClientOptions,
    RequestHead,
    Url,
    WebSocketUpgrade,
    find_cleartext_error,
)
from tests.harness.jsonrpc import D, client_config

TOKEN = {"Authorization": "Bearer secret"}
ALLOWED = [
    # URL, headers
    ("https://server.example/mcp", TOKEN),
    ("http://server.example/mcp", {"x-trace": "1", "accept-language": "en"}),
    ("http://localhost:8000/mcp", TOKEN),
    ("http://LOCALHOST./mcp", TOKEN),
    ("http://api.localhost/mcp", TOKEN),
    ("http://127.0.0.1/mcp", TOKEN),
    ("http://127.8.9.10/mcp", TOKEN),
    ("http://[::1]:80/mcp", TOKEN),
    ("http://server.example/mcp", {"Idempotency-Key": "1", "cache-key": "2", "x-author": "3"}),
    ("http://[::ffff:127.0.0.1]/mcp", TOKEN),
]
DENIED = [
    ("http://server.example/mcp", TOKEN, "Authorization"),
    ("http://server.example/mcp", {"x-trace": "1", "cookie": "a=secret"}, "cookie"),
    ("http://server.example/mcp", {"X-Api-Key": "secret"}, "X-Api-Key"),
    ("http://server.example/mcp", {"proxy-authorization": "secret"}, "proxy-authorization"),
    ("http://server.example/mcp", {"x-functions-key": "secret"}, "x-functions-key"),
    ("http://server.example/mcp", {"DD-APPLICATION-KEY": "secret"}, "DD-APPLICATION-KEY"),
    ("http://server.example/mcp", {"Ocp-Apim-Subscription-Key": "s"}, "Ocp-Apim-Subscription-Key"),
    ("http://server.example/mcp", {"x-auth": "secret"}, "x-auth"),
    ("http://server.example/mcp", {"X-Hub-Sig": "secret"}, "X-Hub-Sig"),
    ("http://10.0.0.1/mcp", TOKEN, "Authorization"),
    ("http://192.168.1.7/mcp", TOKEN, "Authorization"),
    ("http://0.0.0.0/mcp", TOKEN, "Authorization"),
    ("http://localhost.example/mcp", TOKEN, "Authorization"),
    ("http://127.0.0.1.example/mcp", TOKEN, "Authorization"),
    ("http://notlocalhost/mcp", TOKEN, "Authorization"),
    ("http://[::ffff:10.0.0.1]/mcp", TOKEN, "Authorization"),
]


def test_client_options_have_defaults() -> None:
    options = HttpClientOptions()
    assert (options.headers, options.authorizer, options.allow_cleartext) == ({}, None, False)
    assert (options.reconnect_attempts, options.max_reconnect_delay) == (5, 30)
    assert (options.entropy, options.on_message) == (None, None)


def test_http_call_has_defaults() -> None:
    """They decide whether a driver sends a call again, and where it waits."""
    call = HttpCall(1, RequestHead(b"POST", b"/", []))
    assert (call.body, call.idempotent, call.long_lived, call.brief) == (b"", True, False, False)
    assert (call.attempt, call.redirected) == (None, ())


def http_client(url: str, headers: dict[str, str], *, allow_cleartext: bool = False) -> HttpClient:
    options = HttpClientOptions(headers=headers, allow_cleartext=allow_cleartext)
    return HttpClient(Connection(Role.CLIENT, client_config(D)), url, options)


def upgrade(
    url: str, headers: dict[str, str], *, allow_cleartext: bool = False
) -> WebSocketUpgrade:
    url = url.replace("http", "ws", 1)
    return WebSocketUpgrade(url, headers, bytes(16), allow_cleartext=allow_cleartext)


@pytest.mark.parametrize(("url", "headers"), ALLOWED)
def test_headers_to_this_machine_or_encrypted_are_allowed(
    url: str, headers: dict[str, str]
) -> None:
    assert find_cleartext_error(Url.parse(url), headers) is None
    http_client(url, headers)
    upgrade(url, headers)


@pytest.mark.parametrize(("url", "headers", "name"), DENIED)
def test_credentials_to_another_machine_unencrypted_raise(
    url: str, headers: dict[str, str], name: str
) -> None:
    host = Url.parse(url).host
    with pytest.raises(ValueError, match=f"the header {name} would be sent") as caught:
        http_client(url, headers)
    assert str(caught.value) == (
        f"the header {name} would be sent unencrypted to {host}: use https:// instead of http://, "
        "or connect with allow_cleartext=True in a network that you trust"
    )
    with pytest.raises(ValueError, match="use wss:// instead of ws://, or connect with allow_c"):
        upgrade(url, headers)
    http_client(url, headers, allow_cleartext=True)
    upgrade(url, headers, allow_cleartext=True)


def test_credentials_of_one_call_unencrypted_raise() -> None:
    http = http_client("http://server.example/mcp", {})
    assert http.conn.check_headers is not None
    http.conn.check_headers({"x-a": "1"})
    with pytest.raises(ValueError, match="allow_cleartext"):
        http.conn.check_headers(TOKEN)
    with pytest.raises(ValueError, match="set by the protocol"):
        http.conn.check_headers({"host": "x"})
