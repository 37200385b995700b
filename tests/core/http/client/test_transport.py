"""The common part of both client transports: the order of messages, the outcome of a POST.

The host of the operations is played by the test, as `OperationHost` describes it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from mcp_core import AuthRequired, ConnectionLost, PeerError, RemoteProtocolError, State
from mcp_core import types as t
from mcp_core.http import Head, HttpClient, HttpClientOptions
from mcp_core.http.client._response import Response, error_in
from mcp_core.http.client._transport import (
    DeadlineOwner,
    HttpOperation,
    MessagePost,
    OperationHost,
    Transport,
    caller_headers,
    handshake_step,
    is_long_lived,
    may_repeat,
    operation_name,
)
from mcp_core.protocol.messages._outbox import MessageKind, Outgoing
from mcp_core.protocol.revisions._methods import Step
from mcp_core.urls import Url
from tests.core.helpers import client_config

if TYPE_CHECKING:
    from mcp_core import Connection, McpTrioError
    from mcp_core.types import RequestId


class FakeConnection:
    """The part of a connection that transports read."""

    def __init__(self) -> None:
        self.state = State.READY
        self.config = client_config()
        self.pending: set[Any] = set()

    def has_outgoing(self, id: Any) -> bool:
        return id in self.pending


class FakeHost:
    """An `OperationHost` that records the calls of its methods."""

    message_limit = 1000

    def __init__(self) -> None:
        self.fake = FakeConnection()
        self.url = Url.parse("http://a/mcp")
        self.options = HttpClientOptions()
        self.deadlines: dict[Any, float] = {}
        self.dropped: list[HttpOperation] = []
        self.failures: list[tuple[Outgoing, McpTrioError, int]] = []
        self.received: list[tuple[bytes, Any, int | None]] = []

    @property
    def conn(self) -> Connection:
        return self.fake  # type: ignore[return-value]

    def make(self, operation: HttpOperation, *arguments: Any, **options: Any) -> None:
        operation.key = 1

    def drop_unsent(self, id: RequestId) -> bool:
        return False

    def drop(self, operation: HttpOperation) -> None:
        self.dropped.append(operation)
        self.forget(operation)

    def forget(self, operation: HttpOperation) -> None:
        self.deadlines.pop(operation, None)
        operation.key = 0

    def linger(self, operation: HttpOperation, now: float) -> None:
        raise AssertionError("not by these tests")

    def is_authorizing(self, operation: HttpOperation) -> bool:
        raise AssertionError("not by these tests")

    def set_deadline(self, owner: DeadlineOwner, when: float | None) -> None:
        if when is None:
            self.deadlines.pop(owner, None)
        else:
            self.deadlines[owner] = when

    def receive(
        self, data: bytes, now: float, id: Any, status: int | None, body: object = None
    ) -> bool:
        self.received.append((data, id, status))
        return True

    def message_failed(self, out: Outgoing, error: McpTrioError, now: float, status: int) -> None:
        self.failures.append((out, error, status))

    def report_error(self, error: McpTrioError) -> None:
        raise AssertionError("not by these tests")

    def report_missed_changes(self) -> None:
        raise AssertionError("not by these tests")

    def use_transport(self, transport: Transport) -> None:
        raise AssertionError("not by these tests")

    def param_headers(self, tool: str) -> None:
        return None


class PlainPost(MessagePost):
    """A POST whose response is kept and not interpreted."""

    def response_started(self, head: Head, now: float) -> None:
        self.response = Response(head, 1000)

    def response_data(self, data: bytes, now: float) -> None:
        assert self.response is not None
        assert list(self.response.feed(data)) == []

    def response_ended(self, error: str | None, now: float) -> None:
        self.key = 0


class PlainTransport(Transport):
    """Records each message that it posts, by method, and each cancellation, by id."""

    def __init__(self, host: OperationHost) -> None:
        super().__init__(host)
        self.posts: list[PlainPost] = []
        self.cancelled: list[Any] = []

    def post(self, out: Outgoing, now: float) -> MessagePost:
        post = PlainPost(self.client, out)
        self.client.make(post, b"POST", b"/", [])
        self.posts.append(post)
        post.restart_timeout(now)
        return post

    def cancel(self, out: Outgoing, now: float) -> None:
        self.cancelled.append(out.id)

    @property
    def methods(self) -> list[str]:
        return [post.out.method for post in self.posts]


def a_request(method: str, id: int = 1, params: Any = None) -> Outgoing:
    return Outgoing(b"{}", MessageKind.REQUEST, id, method=method, params=params)


def a_notification(method: str) -> Outgoing:
    return Outgoing(b"{}", MessageKind.NOTIFICATION, method=method)


RESPONSE = Outgoing(b"{}", MessageKind.RESPONSE, "q")


def new_transport() -> tuple[FakeHost, PlainTransport]:
    host = FakeHost()
    return host, PlainTransport(host)


def post_of(out: Outgoing) -> tuple[FakeHost, PlainPost]:
    host = FakeHost()
    return host, PlainPost(host, out)


def test_operation_host_is_fulfilled_by_client() -> None:
    """The type checker compares the signatures; here nothing but the names can be compared."""
    names = {name for name in vars(OperationHost) if not name.startswith("_")}
    attributes = {"conn", "url", "options", "message_limit"}  # set by `__init__`
    assert names - attributes <= set(dir(HttpClient))
    assert names >= {
        "make",
        "drop",
        "forget",
        "receive",
        "message_failed",
        "set_deadline",
        "linger",
    }


# -- What a message is -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("out", "repeatable"),
    [
        (RESPONSE, True),
        (a_request("tools/list"), True),
        (a_notification("notifications/initialized"), True),
        (a_request("tools/call"), False),
        (a_request("x/custom"), False),
        (a_notification("x/custom"), False),
    ],
)
def test_may_repeat_excludes_custom_and_acting_methods(out: Outgoing, repeatable: bool) -> None:
    assert may_repeat(out) is repeatable


def test_long_lived_is_a_property_of_the_method() -> None:
    assert is_long_lived(a_request("subscriptions/listen"))
    assert not is_long_lived(a_request("tools/call"))
    assert not is_long_lived(RESPONSE)


def test_own_headers_are_encoded_in_lower_case() -> None:
    out = Outgoing(b"{}", MessageKind.REQUEST, 1, method="x", headers={"X-A": "ü"})
    assert caller_headers(out) == [(b"x-a", b"\xfc")]
    assert caller_headers(RESPONSE) == []


@pytest.mark.parametrize(
    ("method", "params", "operation"),
    [
        ("tools/call", t.CallToolParams(name="add"), "tools/call add"),
        ("tools/call", {"name": "add"}, "tools/call add"),
        ("resources/read", {"uri": "file:///x"}, "resources/read file:///x"),
        ("tools/list", None, "tools/list"),
        ("x/custom", {"name": 1}, "x/custom"),
    ],
)
def test_operation_names_method_and_target(method: str, params: Any, operation: str) -> None:
    assert operation_name(a_request(method, params=params)) == operation


def test_custom_method_has_no_step() -> None:
    assert handshake_step(a_request("initialize")) is Step.INITIALIZE
    assert handshake_step(a_request("x/custom")) is None


# -- Order of messages -----------------------------------------------------------------------------


def test_transport_holds_all_messages_behind_initialized() -> None:
    host, transport = new_transport()
    transport.send(a_notification("notifications/initialized"), 0.0)
    transport.send(a_request("tools/list"), 0.0)
    transport.send(RESPONSE, 0.0)
    assert transport.methods == ["notifications/initialized"]
    assert transport.queued == 4
    assert host.deadlines[transport] == 10.0
    transport.send_waiting(1.0)
    assert transport.queued == 4
    transport.posts[0].response_started(Head(202, []), 1.0)
    transport.send_waiting(1.0)
    assert transport.methods == ["notifications/initialized", "tools/list", ""]
    assert transport.queued == 0
    assert transport not in host.deadlines


def test_transport_failed_initialized_releases_held_messages() -> None:
    _, transport = new_transport()
    transport.send(a_notification("notifications/initialized"), 0.0)
    transport.send(a_request("tools/list"), 0.0)
    transport.posts[0].fail_connection_lost(None, 1.0)
    transport.send_waiting(1.0)
    assert transport.methods == ["notifications/initialized", "tools/list"]


def test_transport_holds_requests_behind_set_level_until_result() -> None:
    """Response headers are not enough: the server may send them before it parses the request."""
    host, transport = new_transport()
    host.fake.pending = {1}
    transport.send(a_request("logging/setLevel"), 0.0)
    transport.send(a_request("tools/list", 2), 0.0)
    transport.send(RESPONSE, 0.0)
    transport.send(a_notification("notifications/roots/list_changed"), 0.0)
    transport.send_waiting(0.0)
    assert transport.methods == ["logging/setLevel", "notifications/roots/list_changed", ""]
    transport.posts[0].response_started(Head(200, [(b"content-type", b"text/event-stream")]), 0.0)
    transport.send_waiting(0.0)
    assert len(transport.posts) == 3
    host.fake.pending.clear()
    transport.send_waiting(0.0)
    assert transport.methods[3:] == ["tools/list"]


def test_transport_held_set_level_holds_later_requests_again() -> None:
    host, transport = new_transport()
    transport.send(a_notification("notifications/initialized"), 0.0)
    transport.send(a_request("logging/setLevel"), 0.0)
    transport.send(a_request("tools/list", 2), 0.0)
    host.fake.pending = {1}
    transport.posts[0].response_started(Head(202, []), 3.0)
    transport.send_waiting(3.0)
    assert transport.methods == ["notifications/initialized", "logging/setLevel"]
    assert host.deadlines[transport] == 13.0


def test_transport_gate_timeout_releases_held_messages() -> None:
    host, transport = new_transport()
    host.fake.pending = {1}
    transport.send(a_request("logging/setLevel"), 0.0)
    transport.send(a_request("tools/list", 2), 0.0)
    transport.on_deadline(10.0)
    assert transport.methods == ["logging/setLevel", "tools/list"]
    assert transport not in host.deadlines


def test_transport_initialize_is_never_held() -> None:
    """A session that was lost is negotiated anew while messages wait for the old one."""
    _, transport = new_transport()
    transport.send(a_notification("notifications/initialized"), 0.0)
    transport.send(a_request("initialize"), 0.0)
    assert transport.methods == ["notifications/initialized", "initialize"]


def test_transport_cancel_removes_held_request_or_is_sent() -> None:
    _, transport = new_transport()
    transport.send(a_notification("notifications/initialized"), 0.0)
    transport.send(a_request("tools/list", 2), 0.0)
    transport.send(Outgoing(b"{}", MessageKind.CANCEL, 2), 0.0)
    assert (transport.queued, transport.cancelled) == (0, [])
    transport.send(Outgoing(b"{}", MessageKind.CANCEL, 2), 0.0)
    assert transport.cancelled == [2]


def test_transport_close_discards_held_messages() -> None:
    host, transport = new_transport()
    transport.send(a_notification("notifications/initialized"), 0.0)
    transport.send(a_request("tools/list", 2), 0.0)
    transport.close(1.0)
    assert transport.queued == 0
    assert transport not in host.deadlines


# -- The POST of one message -----------------------------------------------------------------------


def test_post_of_request_has_no_response_timeout() -> None:
    host, post = post_of(a_request("tools/call"))
    post.restart_timeout(5.0)
    assert host.deadlines == {}
    # A deadline is set by `linger` only, after the result: then the rest is not wanted.
    post.on_deadline(5.0)
    assert host.dropped == [post]
    assert host.failures == []


def test_post_of_notification_times_out_after_thirty_seconds() -> None:
    host, post = post_of(a_notification("notifications/roots/list_changed"))
    post.restart_timeout(5.0)
    assert host.deadlines == {post: 35.0}
    post.on_deadline(35.0)
    ((out, error, status),) = host.failures
    assert (out, type(error), status) == (post.out, ConnectionLost, 0)
    assert str(error) == "notifications/roots/list_changed: no response within 30 s"


def test_post_error_names_method_but_not_while_connecting() -> None:
    host, post = post_of(a_request("tools/call"))
    assert post.error_prefix == "tools/call: "
    assert str(post.invalid_response_error("odd")) == "tools/call: odd"
    host.fake.state = State.OPENING
    assert post.error_prefix == ""
    assert str(post.invalid_response_error("odd")) == "odd; is this the URL of an MCP server?"
    assert post_of(RESPONSE)[1].error_prefix == "a response: "


def test_post_denied_fails_with_status_401() -> None:
    host, post = post_of(a_request("tools/call"))
    error = AuthRequired("log in")
    post.denied(error, 0.0)
    assert host.failures == [(post.out, error, 401)]
    assert host.dropped == [post]


@pytest.mark.parametrize("its_id", ["1", "null", '"x"'])
def test_post_refused_prefers_json_rpc_error_in_body(its_id: str) -> None:
    host, post = post_of(a_request("tools/call"))
    body = '{"jsonrpc":"2.0","id":' + its_id + ',"error":{"code":-7,"message":"m"}}'
    post.response_started(Head(400, [(b"content-type", b"application/json")]), 0.0)
    post.response_data(body.encode(), 0.0)
    assert post.response is not None
    post.handle_error_response(post.response, 0.0)
    ((data, id, status),) = host.received
    error = error_in(data)
    assert isinstance(error, PeerError)
    assert (error.code, id, status) == (-7, 1, 400)
    assert b'"id":1' in data
    assert host.failures == []


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (401, '{"jsonrpc":"2.0","id":1,"error":{"code":-7,"message":"m"}}', AuthRequired),
        (403, '{"jsonrpc":"2.0","id":1,"error":{"code":-7,"message":"m"}}', RemoteProtocolError),
        (400, '{"jsonrpc":"2.0","id":1,"method":"x"}', RemoteProtocolError),
        (400, '{"jsonrpc":"2.0","id":2,"result":{}}', RemoteProtocolError),
        (500, "<h1>", RemoteProtocolError),
    ],
)
def test_post_refused_without_json_rpc_error_fails_by_status(
    status: int, body: str, kind: type
) -> None:
    host, post = post_of(a_request("tools/call"))
    post.response_started(Head(status, [(b"content-type", b"application/json")]), 0.0)
    post.response_data(body.encode(), 0.0)
    assert post.response is not None
    post.handle_error_response(post.response, 0.0)
    ((_, error, reported),) = host.failures
    assert (type(error), reported) == (kind, status)
    assert host.received == []


def test_message_post_repr_shows_method_and_response() -> None:
    _, post = post_of(RESPONSE)
    assert repr(post) == "<PlainPost a response, no response>"
