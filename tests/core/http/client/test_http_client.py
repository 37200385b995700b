"""`HttpClient`: its tables of calls, drops, deadlines and events."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_core import Connection, ConnectionClosed, Role
from mcp_core.http.client._http_client import HttpClient
from mcp_core.http.client._options import HttpClientOptions
from tests.core.http.client_net import URL, Net, open_client, send_call
from tests.harness.jsonrpc import (
    D,
    E,
    client_config,
    result,
)


@pytest.mark.parametrize(
    ("url", "headers", "text"),
    [
        ("ftp://a/", {}, "a URL of http or https is needed"),
        ("http://u:secret@a/", {}, "must not contain a user name or password"),
        (URL, {"Host": "x"}, "the header Host is set by the protocol"),
        (URL, {"a b": "x"}, "not a valid header name"),
        (URL, {"X": "a\r\nb: c"}, "the value of the header X"),
    ],
)
def test_http_client_invalid_argument_raises(url: str, headers: Any, text: str) -> None:
    with pytest.raises(ValueError, match=text) as caught:
        HttpClient(
            Connection(Role.CLIENT, client_config()), url, HttpClientOptions(headers=headers)
        )
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "headers", "text"),
    [
        (URL, {"Authorization": "Bearer x"}, "would be sent unencrypted to server.example"),
        (URL, {"Mcp-Session-Id": "x"}, "is set by the protocol"),
        (URL, {"a b": "x"}, "not a valid header name"),
        (URL, {"X-A": "x"}, None),
        (URL.replace("http:", "https:"), {"Authorization": "Bearer x"}, None),
    ],
)
def test_headers_of_a_call_are_checked_like_configured_ones(
    url: str, headers: dict[str, str], text: str | None
) -> None:
    check = Net(E, url=url).conn.check_headers
    assert check is not None
    if text is None:
        check(headers)
    else:
        with pytest.raises(ValueError, match=text):
            check(headers)


@pytest.mark.parametrize(
    ("status", "text"),
    [(300, "which is not followed: connect to http://server.example/b"), (400, "400 Bad Request")],
)
def test_first_and_last_status_of_a_redirect(status: int, text: str) -> None:
    net = open_client(E)
    _, call = send_call(net)
    net.answer(call, "", status, "text/plain", location="/b")
    assert text in str(net.event().error)


def test_response_to_unknown_call_is_ignored() -> None:
    net = open_client(E)
    id, call = send_call(net)
    net.answer(call, result(id, {"content": [], "resultType": "complete"}))
    net.events()
    net.answer(call, result(id, {"content": [], "resultType": "complete"}))
    net.answer(type(call)(99, call.head), "x", 500, "text/plain")
    assert net.events() == []


def test_on_message_option_gets_each_message() -> None:
    received: list[bytes] = []
    net = Net(E, options=HttpClientOptions(on_message=received.append))
    net.open()
    net.answer(net.call(), result(1, {}))
    assert received == [b'{"jsonrpc":"2.0","id":1,"result":{}}']


def test_queued_counts_messages_until_driver_takes_them() -> None:
    net = open_client(E)
    net.conn.send_request("tools/list")
    queued = net.http.queued()
    assert queued > 0
    calls = net.http.calls_to_make(0.0)
    assert len(calls[0].body) == queued
    assert net.http.queued() == 0


def test_http_client_next_deadline_is_earliest() -> None:
    """Timers compete: the linger of an ended call, the handshake, and the HTTP+SSE endpoint."""
    net = open_client(E)
    id, call = send_call(net)
    net.start_response(call)
    net.send_body(
        call, b"data: " + b'{"jsonrpc":"2.0","id":%d,"result":{"content":[]}}' % id + b"\n\n"
    )
    assert net.http.next_deadline() == 5.0
    net = Net(D, initialize_timeout=30.0)
    net.open()
    assert net.http.next_deadline() == 30.0
    net.answer(net.call(), "", 405, "text/plain")
    assert net.http.next_deadline() == 10.0  # of the event stream of HTTP+SSE
    net.at(10.0)
    assert isinstance(net.event(), ConnectionClosed)
    assert net.http.next_deadline() is None


def test_handle_timeout_acts_on_all_expired_deadlines() -> None:
    net = open_client(E)
    for _ in range(2):
        id, call = send_call(net)
        net.start_response(call)
        net.send_body(call, b'data: {"jsonrpc":"2.0","id":%d,"result":{"content":[]}}\n\n' % id)
    net.at(5.0)
    assert len(net.dropped) == 2
    assert net.http.idle
