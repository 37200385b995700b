"""A fault of our own code is not taken for a peer's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from mcp_core.http import Head
from mcp_core.http.client import _operation as operation
from mcp_core.http.client import _redirects as redirects
from mcp_core.http.client import _requests as requests
from mcp_core.http.client import _response as responses
from mcp_core.http.client import _sse_transport as sse_transport
from mcp_core.http.client import _streamable as streamable
from mcp_core.http.client._options import HttpClientOptions
from mcp_core.http.client._reconnect import Reconnection
from mcp_core.http.server import _session as sessions
from mcp_core.http.wire import _forwarded as forwarded
from mcp_core.http.wire import _host_origin as host_origin
from mcp_core.http.wire import _mcp_headers as mcp_headers
from mcp_core.http.wire._sse import SseDecoder
from mcp_core.protocol.jsonrpc._body import parse_body
from mcp_core.types import ListToolsResult, Tool
from mcp_core.urls._url import Url
from tests.core.auth.test_own_faults import OwnFault, fail_once
from tests.core.http.client_net import (
    EVENTS,
    JSON,
    D,
    E,
    event,
    open_client,
    send_call,
)
from tests.harness.jsonrpc import encoded, error, notification, result


def play_answer(status: int = 200, type: str = JSON, body: Any = None) -> Callable[[], None]:
    """Return what sends a call, and a response to it."""

    def play() -> None:
        net = open_client(D)
        id, call = send_call(net)
        message = result(id, {"content": []}) if body is None else body
        net.start_response(call, status, type)
        net.send_body(call, event(message) if type == EVENTS else encoded(message))
        net.end_response(call)

    return play


def learn() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string", "x-mcp-header": "A"}}}
    streamable.ToolHeaders().learn(ListToolsResult(tools=[Tool(name="t", input_schema=schema)]))


def cancellation_of() -> object:
    message = encoded(notification("notifications/cancelled", {"requestId": 1}))
    return sessions.cancelled_ids(parse_body(message, open_client(D).conn.config.limits))


NET = open_client(D)
CONN = NET.conn
OUT = NET.http._state.operations[send_call(NET)[1].key].out  # type: ignore[attr-defined]
HEAD = Head(200, [(b"content-type", b"text/event-stream")])


def stream_get() -> requests.EventStreamGet:
    get = requests.EventStreamGet(CONN, Reconnection(HttpClientOptions()), None)
    get.response_started(HEAD, 0.0)
    return get


URL = Url.parse("http://server.example/mcp")
ROWS: list[tuple[Any, str, Callable[[], object]]] = [
    (operation, "decode", play_answer(400, JSON, error(2, -32602, "x"))),
    (redirects, "unquote", lambda: redirects._read(URL, b"/x")),
    (requests, "Response", play_answer()),
    (requests, "Response", stream_get),
    (SseDecoder, "feed", lambda: stream_get().response_data(b"data: x\n\n", 0.0)),
    (requests, "decode", play_answer(200, JSON, "x")),
    (responses, "decode", lambda: responses.error_in(b"{}")),
    (
        responses,
        "decode",
        play_answer(400, JSON, {"jsonrpc": "2.0", "error": {"message": "session id"}}),
    ),
    (responses.Response, "keep", play_answer()),
    (SseDecoder, "next_event", play_answer(200, EVENTS)),
    (
        sse_transport,
        "Response",
        lambda: sse_transport._SseStreamGet(CONN).response_started(HEAD, 0.0),
    ),
    (
        sse_transport,
        "Response",
        lambda: sse_transport._SsePost(CONN, OUT).response_started(HEAD, 0.0),
    ),
    (streamable, "decode", lambda: streamable._is_request(b"{}")),
    (streamable, "param_headers", learn),
    (streamable, "request_headers", lambda: send_call(open_client(E))),
    (sessions, "_read_cancelled", cancellation_of),
    (forwarded, "ip_address", lambda: forwarded._is_within.__wrapped__("10.0.0.1", ())),
    (forwarded, "ip_address", lambda: forwarded._address_in(b"10.0.0.1")),
    (forwarded, "ip_address", lambda: forwarded.client_network.__wrapped__("10.0.0.1")),
    (host_origin, "IPv4Address", lambda: host_origin._ipv4("10.0.0.1")),
    (host_origin, "IPv6Address", lambda: host_origin._ipv6("[::1]")),
    (mcp_headers, "a2b_base64", lambda: mcp_headers.decode_value(b"=?base64?YQ==?=")),
]


@pytest.mark.parametrize(("place", "name", "call"), ROWS)
def test_fault_of_our_own_passes_through_http(
    place: Any, name: str, call: Callable[[], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would be hidden otherwise, and a peer would be blamed for it."""
    fail_once(monkeypatch, place, name)
    with pytest.raises(OwnFault):
        call()
