"""The right to make a call: what is sent for it, which refusals are worth while, and what becomes of a call without it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mcp_core import AuthRequired, ConnectionClosed, ErrorReceived
from mcp_core.http import Head
from mcp_core.http._call import HttpClientOptions
from tests.core.helpers import A, D, E, result
from tests.core.http.client_net import URL, Net, asks, initialized_by, kinds, opened, said

if TYPE_CHECKING:
    from collections.abc import Iterable

REFUSED = Head(401, [(b"www-authenticate", b"Bearer")])
DENIED = AuthRequired("log in")


class Access:
    """Gives a new token each time, and finds each 401 worth while."""

    def __init__(self) -> None:
        self.operations: list[str] = []
        self.heard: list[tuple[int, list[tuple[str, str]], str]] = []
        self.asked: list[tuple[str, str]] = []

    def attempt(self, operation: str = "") -> Access:
        self.operations.append(operation)
        return self

    def headers(self, method: str, url: str) -> list[tuple[str, str]]:
        self.asked.append((method, url))
        return [("authorization", f"Bearer {len(self.asked)}")]

    def received(self, status: int, headers: Iterable[tuple[str, str]], url: str) -> bool:
        self.heard.append((status, list(headers), url))
        return status == 401


def net_with(access: Access, version: str = E, **headers: str) -> Net:
    return Net(version, options=HttpClientOptions(access=access, headers=headers), initialize_timeout=30.0)


def test_a_call_is_signed_each_time_anew() -> None:
    access = Access()
    net = net_with(access, D, Authorization="Basic x")
    net.open()
    call = net.call()
    for turn in b"1", b"2":
        head = net.http.sign(call)
        assert [value for name, value in head.headers if name == b"authorization"] == [b"Bearer " + turn]
        assert (head.method, head.target) == (b"POST", b"/mcp")
    assert access.asked == [("POST", URL)] * 2


def test_without_access_nothing_is_added_and_nothing_is_worth_while() -> None:
    net = Net(D)
    net.open()
    call = net.call()
    assert net.http.sign(call) is call.head
    assert not net.http.refused(call, REFUSED)


def test_each_call_says_what_it_does() -> None:
    access = Access()
    net = opened(E)
    net.http.options = HttpClientOptions(access=access)
    asks(net)
    asks(net, "tools/list")
    asks(net, "resources/read", {"uri": "file:///x"})
    asks(net, "x/own", {"name": 1})
    assert access.operations == ["tools/call t", "tools/list", "resources/read file:///x", "x/own"]


def test_a_refusal_is_worth_while_as_long_as_somebody_waits() -> None:
    access = Access()
    net = net_with(access)
    net.open()
    call = net.call()
    assert not net.http.refused(call, Head(200, []))
    assert net.http.refused(call, REFUSED)
    assert access.heard[-1] == (401, [("www-authenticate", "Bearer")], URL)
    net.conn.close()
    net.pump()
    assert not net.http.refused(call, REFUSED)


def test_the_opening_waits_for_a_login() -> None:
    net = net_with(Access(), D)
    net.open()
    call = net.call()
    assert net.http.next_deadline() == 30.0
    net.http.hold(call.key, None)
    assert net.http.next_deadline() is None
    net.now = 100.0
    net.http.hold(call.key, net.now)
    assert net.http.next_deadline() == 130.0
    net.http.hold(99, None)
    assert net.http.next_deadline() == 130.0


def test_what_is_open_has_no_time_to_hold() -> None:
    net = opened(E)
    _, call = asks(net)
    net.http.hold(call.key, None)
    net.http.hold(call.key, 1.0)
    assert net.http.next_deadline() is None
    net.conn.opener = None
    net.http.hold(call.key, None)
    assert net.http.next_deadline() is None


def test_a_message_that_nobody_waits_for_has_its_time_after_a_login() -> None:
    net = net_with(Access(), D)
    net.open()
    first = net.call()
    net.answer(first, result(said(first)["id"], initialized_by(D)))
    initialized = net.call()
    net.http.hold(initialized.key, None)
    net.at(400.0)
    net.http.hold(initialized.key, net.now)
    net.at(429.0)
    assert "MessageRejected" not in kinds(net.events())
    net.at(430.0)
    assert "MessageRejected" in kinds(net.events())


@pytest.mark.parametrize("version", [D, E])
def test_what_was_given_up_is_not_made_after_a_login(version: str) -> None:
    net = opened(version, options=HttpClientOptions(access=Access()))
    id, call = asks(net)
    net.http.hold(call.key, None)
    net.conn.send_cancel(id)
    net.http.calls_to_make(net.now)
    assert net.http.calls_to_drop() == [call.key]
    net.http.hold(call.key, net.now)  # too late
    assert not net.http.refused(call, REFUSED)


def test_what_was_given_up_is_not_worth_a_login() -> None:
    net = opened(D, options=HttpClientOptions(access=Access()))
    id, call = asks(net)
    net.conn.send_cancel(id)
    net.http.calls_to_make(net.now)
    assert net.http.calls_to_drop() == []  # its answer may come yet
    assert not net.http.refused(call, REFUSED)


def test_a_request_without_the_right_is_over() -> None:
    net = opened(E)
    id, call = asks(net)
    net.http.denied(call.key, DENIED, 0.0)
    event = net.event()
    assert isinstance(event, ErrorReceived)
    assert (event.id, event.error) == (id, DENIED)
    net.http.denied(call.key, DENIED, 0.0)
    assert net.events() == []


@pytest.mark.parametrize("version", [D, E])
def test_an_opening_without_the_right_fails(version: str) -> None:
    net = net_with(Access(), version)
    net.open()
    net.http.denied(net.call().key, DENIED, 0.0)
    event = net.event()
    assert isinstance(event, ConnectionClosed)
    assert event.error is not None
    assert event.error.__cause__ is DENIED


def test_the_stream_of_a_session_is_done_without() -> None:
    net = opened(D, stream=True)
    net.http.denied(3, DENIED, 0.0)
    assert kinds(net.events()) == ["MessageRejected"]


def test_a_farewell_is_never_worth_a_login() -> None:
    net = opened(D)
    net.conn.close()
    call = net.call()
    assert call.head.method == b"DELETE"
    net.http.denied(call.key, DENIED, 0.0)
    net.events()
    assert net.http.idle


def test_the_stream_of_the_first_revision() -> None:
    net = Net(A, D)
    net.open()
    net.answer(net.call(), "", 405, "text/plain")
    net.http.denied(net.call().key, DENIED, 0.0)
    event = net.event()
    assert isinstance(event, ConnectionClosed)
    assert "log in" in str(event.error)
