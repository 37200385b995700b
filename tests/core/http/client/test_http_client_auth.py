"""Authorization of a client's calls: headers, retries after a denial, and failed authorization."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mcp_core import AuthRequired, ConnectionClosed, ErrorReceived
from mcp_core.http import Head
from mcp_core.http.client._options import HttpClientOptions
from tests.core.http.client_net import (
    URL,
    Net,
    initialize_result,
    open_client,
    posted_message,
    send_call,
    type_names,
)
from tests.harness.jsonrpc import (
    A,
    D,
    E,
    result,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

REFUSED = Head(401, [(b"www-authenticate", b"Bearer")])
DENIED = AuthRequired("log in")


class Access:
    """An authorizer with a new token for each request, which retries after each 401."""

    def __init__(self) -> None:
        self.operations: list[str] = []
        self.responses: list[tuple[int, list[tuple[str, str]], str]] = []
        self.requests: list[tuple[str, str]] = []

    def attempt(self, operation: str = "") -> Access:
        self.operations.append(operation)
        return self

    def headers(self, method: str, url: str) -> list[tuple[str, str]]:
        self.requests.append((method, url))
        return [("authorization", f"Bearer {len(self.requests)}")]

    def received(self, status: int, headers: Iterable[tuple[str, str]], url: str) -> bool:
        self.responses.append((status, list(headers), url))
        return status == 401

    def covers(self, url: str) -> bool:
        return False


def net_with(access: Access, version: str = E, **headers: str) -> Net:
    return Net(
        version,
        options=HttpClientOptions(authorizer=access, headers=headers, allow_cleartext=True),
        initialize_timeout=30.0,
    )


def test_sign_adds_new_headers_each_time() -> None:
    access = Access()
    net = net_with(access, D, Authorization="Basic x")
    net.open()
    call = net.call()
    for turn in b"1", b"2":
        head = net.http.sign(call)
        assert [value for name, value in head.headers if name == b"authorization"] == [
            b"Bearer " + turn
        ]
        assert (head.method, head.target) == (b"POST", b"/mcp")
    assert access.requests == [("POST", URL)] * 2


def test_sign_without_access_returns_head_unchanged() -> None:
    net = Net(D)
    net.open()
    call = net.call()
    assert net.http.sign(call) is call.head
    assert not net.http.is_retry_worthwhile(call, REFUSED)


def test_authorization_attempt_gets_operation_name() -> None:
    access = Access()
    net = open_client(E)
    net.http._state.options = HttpClientOptions(authorizer=access)
    send_call(net)
    send_call(net, "tools/list")
    send_call(net, "resources/read", {"uri": "file:///x"})
    send_call(net, "x/own", {"name": 1})
    assert access.operations == ["tools/call t", "tools/list", "resources/read file:///x", "x/own"]


def test_refused_after_close_is_not_worth_retrying() -> None:
    access = Access()
    net = net_with(access)
    net.open()
    call = net.call()
    assert not net.http.is_retry_worthwhile(call, Head(200, []))
    assert net.http.is_retry_worthwhile(call, REFUSED)
    assert access.responses[-1] == (401, [("www-authenticate", "Bearer")], URL)
    net.conn.close()
    net.pump()
    assert not net.http.is_retry_worthwhile(call, REFUSED)


def test_hold_stops_timeout_of_opening_request() -> None:
    net = net_with(Access(), D)
    net.open()
    call = net.call()
    assert net.http.next_deadline() == 30.0
    net.http.pause_timeout(call.key, None)
    assert net.http.next_deadline() is None
    net.now = 100.0
    net.http.pause_timeout(call.key, net.now)
    assert net.http.next_deadline() == 130.0
    net.http.pause_timeout(99, None)
    assert net.http.next_deadline() == 130.0


def test_hold_on_open_connection_sets_no_deadline() -> None:
    net = open_client(E)
    _, call = send_call(net)
    net.http.pause_timeout(call.key, None)
    net.http.pause_timeout(call.key, 1.0)
    assert net.http.next_deadline() is None
    net.conn.negotiation = None
    net.http.pause_timeout(call.key, None)
    assert net.http.next_deadline() is None


def test_hold_restarts_timeout_of_notification() -> None:
    net = net_with(Access(), D)
    net.open()
    first = net.call()
    net.answer(first, result(posted_message(first)["id"], initialize_result(D)))
    initialized = net.call()
    net.http.pause_timeout(initialized.key, None)
    net.at(400.0)
    net.http.pause_timeout(initialized.key, net.now)
    net.at(429.0)
    assert "MessageRejected" not in type_names(net.events())
    net.at(430.0)
    assert "MessageRejected" in type_names(net.events())


@pytest.mark.parametrize("version", [D, E])
def test_call_cancelled_during_authorization_is_dropped(version: str) -> None:
    net = open_client(version, options=HttpClientOptions(authorizer=Access()))
    id, call = send_call(net)
    net.http.pause_timeout(call.key, None)
    net.conn.send_cancel(id)
    net.http.calls_to_make(net.now)
    assert net.http.calls_to_drop() == [call.key]
    net.http.pause_timeout(call.key, net.now)  # too late
    assert not net.http.is_retry_worthwhile(call, REFUSED)


@pytest.mark.parametrize("sent_again", [False, True])
def test_denied_call_cancelled_before_its_retry_sends_no_notification(sent_again: bool) -> None:
    net = open_client(D, options=HttpClientOptions(authorizer=Access()))
    id, call = send_call(net)
    assert net.http.is_retry_worthwhile(call, REFUSED)
    if sent_again:
        net.http.request_started(call.key)
    net.conn.send_cancel(id)
    posted = [posted_message(each)["method"] for each in net.new_calls()]
    assert posted == (["notifications/cancelled"] if sent_again else [])
    assert net.dropped == ([] if sent_again else [call.key])


def test_refused_after_cancel_is_not_worth_retrying() -> None:
    net = open_client(D, options=HttpClientOptions(authorizer=Access()))
    id, call = send_call(net)
    net.conn.send_cancel(id)
    net.http.calls_to_make(net.now)
    assert net.http.calls_to_drop() == []  # its response may still arrive
    assert not net.http.is_retry_worthwhile(call, REFUSED)


def test_denied_call_fails_request() -> None:
    net = open_client(E)
    id, call = send_call(net)
    net.http.denied(call.key, DENIED, 0.0)
    event = net.event()
    assert isinstance(event, ErrorReceived)
    assert (event.id, event.error) == (id, DENIED)
    net.http.denied(call.key, DENIED, 0.0)
    assert net.events() == []


@pytest.mark.parametrize("version", [D, E])
def test_denied_opening_request_closes_connection(version: str) -> None:
    net = net_with(Access(), version)
    net.open()
    net.http.denied(net.call().key, DENIED, 0.0)
    event = net.event()
    assert isinstance(event, ConnectionClosed)
    assert event.error is not None
    assert event.error.__cause__ is DENIED


def test_denied_standalone_stream_is_reported() -> None:
    net = open_client(D, stream=True)
    net.http.denied(3, DENIED, 0.0)
    assert type_names(net.events()) == ["MessageRejected"]


def test_denied_session_delete_is_ignored() -> None:
    net = open_client(D)
    net.conn.close()
    call = net.call()
    assert call.head.method == b"DELETE"
    net.http.denied(call.key, DENIED, 0.0)
    net.events()
    assert net.http.idle


def test_denied_http_sse_stream_closes_connection() -> None:
    net = Net(A, D)
    net.open()
    net.answer(net.call(), "", 405, "text/plain")
    net.http.denied(net.call().key, DENIED, 0.0)
    event = net.event()
    assert isinstance(event, ConnectionClosed)
    assert "log in" in str(event.error)
