"""The common part of both client transports: the order of messages, the outcomes of a POST."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from mcp_core import (
    NEED_DATA,
    AuthRequired,
    ConnectionLost,
    MessageRejected,
    PeerError,
    RemoteProtocolError,
    State,
)
from mcp_core import types as t
from mcp_core.http import Head, HttpClientOptions
from mcp_core.http.client._operation import (
    NOTHING,
    Failed,
    HttpOperation,
    MessagePost,
    PlainOutcome,
    ResponseBody,
    Wait,
    caller_headers,
    handshake_step,
    is_long_lived,
    may_repeat,
    operation_name,
)
from mcp_core.http.client._response import Response, error_in
from mcp_core.http.client._transport import ClientState, Transport, UnreadInput
from mcp_core.protocol.messages._outbox import MessageKind, Outgoing
from mcp_core.protocol.revisions._methods import Step
from mcp_core.urls import Url
from tests.harness.jsonrpc import client_config

if TYPE_CHECKING:
    from mcp_core import McpTrioError
    from mcp_core.http.client._operation import Outcomes
    from mcp_core.types import RequestId


class FakeConnection:
    """The part of a connection that transports read."""

    def __init__(self) -> None:
        self.state = State.READY
        self.config = client_config()
        self.pending: set[Any] = set()

    def has_outgoing(self, id: Any) -> bool:
        return id in self.pending


class RecordingState(ClientState):
    """The state of a client with a `FakeConnection`, which records what a transport does."""

    def __init__(self) -> None:
        self.fake = FakeConnection()
        conn: Any = self.fake
        super().__init__(conn, Url.parse("http://a/mcp"), HttpClientOptions())
        self.dropped: list[HttpOperation] = []
        self.failures: list[tuple[Outgoing, McpTrioError, int]] = []
        self.received: list[tuple[bytes, Any, int | None]] = []

    def drop(self, operation: HttpOperation) -> None:
        self.dropped.append(operation)
        super().drop(operation)

    def receive(
        self, data: bytes, now: float, id: Any, status: int | None, body: object = None
    ) -> list[RequestId]:
        self.received.append((data, id, status))
        return [id]

    def message_failed(self, out: Outgoing, error: McpTrioError, now: float, status: int) -> None:
        self.failures.append((out, error, status))


class PlainPost(MessagePost):
    """A POST whose response is kept and not interpreted."""

    def response_started(self, head: Head, now: float) -> Outcomes:
        self.response = Response(head, 1000)
        return NOTHING

    def response_data(self, data: bytes, now: float) -> Outcomes:
        assert self.response is not None
        assert list(self.response.feed(data)) == []
        return NOTHING

    def response_ended(self, error: str | None, now: float) -> Outcomes:
        self.key = 0
        return NOTHING


class PlainTransport(Transport):
    """Records each message that it posts, by method, and each cancellation, by id."""

    def __init__(self, state: ClientState) -> None:
        super().__init__(state)
        self.posts: list[PlainPost] = []
        self.cancelled: list[Any] = []

    def post(self, out: Outgoing, now: float) -> MessagePost:
        post = PlainPost(self.state.conn, out)
        self.state.make(post, b"POST", b"/", [])
        self.posts.append(post)
        self.act(post, post.restart_timeout(now), now)
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


def new_transport() -> tuple[RecordingState, PlainTransport]:
    state = RecordingState()
    state.transport = transport = PlainTransport(state)
    return state, transport


def post_of(out: Outgoing) -> tuple[FakeConnection, PlainPost]:
    fake = FakeConnection()
    conn: Any = fake
    return fake, PlainPost(conn, out)


def failure(outcomes: Outcomes) -> tuple[McpTrioError, int]:
    (outcome,) = outcomes
    assert isinstance(outcome, Failed)
    return outcome.error, outcome.status


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
    state, transport = new_transport()
    transport.send(a_notification("notifications/initialized"), 0.0)
    transport.send(a_request("tools/list"), 0.0)
    transport.send(RESPONSE, 0.0)
    assert transport.methods == ["notifications/initialized"]
    assert transport.queued == 4
    assert state.deadlines[transport] == 10.0
    transport.send_waiting(1.0)
    assert transport.queued == 4
    transport.posts[0].response_started(Head(202, []), 1.0)
    transport.send_waiting(1.0)
    assert transport.methods == ["notifications/initialized", "tools/list", ""]
    assert transport.queued == 0
    assert transport not in state.deadlines


def test_transport_failed_initialized_releases_held_messages() -> None:
    _, transport = new_transport()
    transport.send(a_notification("notifications/initialized"), 0.0)
    transport.send(a_request("tools/list"), 0.0)
    transport.act(transport.posts[0], transport.posts[0].connection_lost(None), 1.0)
    transport.send_waiting(1.0)
    assert transport.methods == ["notifications/initialized", "tools/list"]


def test_transport_holds_requests_behind_set_level_until_result() -> None:
    """Response headers are not enough: the server may send them before it parses the request."""
    state, transport = new_transport()
    state.fake.pending = {1}
    transport.send(a_request("logging/setLevel"), 0.0)
    transport.send(a_request("tools/list", 2), 0.0)
    transport.send(RESPONSE, 0.0)
    transport.send(a_notification("notifications/roots/list_changed"), 0.0)
    transport.send_waiting(0.0)
    assert transport.methods == ["logging/setLevel", "notifications/roots/list_changed", ""]
    transport.posts[0].response_started(Head(200, [(b"content-type", b"text/event-stream")]), 0.0)
    transport.send_waiting(0.0)
    assert len(transport.posts) == 3
    state.fake.pending.clear()
    transport.send_waiting(0.0)
    assert transport.methods[3:] == ["tools/list"]


def test_transport_held_set_level_holds_later_requests_again() -> None:
    state, transport = new_transport()
    transport.send(a_notification("notifications/initialized"), 0.0)
    transport.send(a_request("logging/setLevel"), 0.0)
    transport.send(a_request("tools/list", 2), 0.0)
    state.fake.pending = {1}
    transport.posts[0].response_started(Head(202, []), 3.0)
    transport.send_waiting(3.0)
    assert transport.methods == ["notifications/initialized", "logging/setLevel"]
    assert state.deadlines[transport] == 13.0


def test_transport_gate_timeout_releases_held_messages() -> None:
    state, transport = new_transport()
    state.fake.pending = {1}
    transport.send(a_request("logging/setLevel"), 0.0)
    transport.send(a_request("tools/list", 2), 0.0)
    transport.on_deadline(10.0)
    assert transport.methods == ["logging/setLevel", "tools/list"]
    assert transport not in state.deadlines


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
    state, transport = new_transport()
    transport.send(a_notification("notifications/initialized"), 0.0)
    transport.send(a_request("tools/list", 2), 0.0)
    transport.close(1.0)
    assert transport.queued == 0
    assert transport not in state.deadlines


# -- The POST of one message -----------------------------------------------------------------------


def test_post_of_request_has_no_response_timeout() -> None:
    _, post = post_of(a_request("tools/call"))
    assert post.restart_timeout(5.0) == NOTHING
    # A deadline is set by `linger` only, after the result: then the rest is not wanted.
    assert post.on_deadline(5.0) == (PlainOutcome.ABANDON,)


def test_post_of_notification_times_out_after_thirty_seconds() -> None:
    _, post = post_of(a_notification("notifications/roots/list_changed"))
    assert post.restart_timeout(5.0) == (Wait(35.0),)
    error, status = failure(post.on_deadline(35.0))
    assert (type(error), status) == (ConnectionLost, 0)
    assert str(error) == "notifications/roots/list_changed: no response within 30 s"


def test_post_error_names_method_but_not_while_connecting() -> None:
    fake, post = post_of(a_request("tools/call"))
    assert post.error_prefix == "tools/call: "
    assert str(post.invalid_response_error("odd")) == "tools/call: odd"
    fake.state = State.OPENING
    assert post.error_prefix == ""
    assert str(post.invalid_response_error("odd")) == "odd; is this the URL of an MCP server?"
    assert post_of(RESPONSE)[1].error_prefix == "a response: "


def test_post_denied_fails_with_status_401() -> None:
    _, post = post_of(a_request("tools/call"))
    error = AuthRequired("log in")
    assert failure(post.denied(error)) == (error, 401)


@pytest.mark.parametrize("its_id", ["1", "null", '"x"'])
def test_post_refused_prefers_json_rpc_error_in_body(its_id: str) -> None:
    _, post = post_of(a_request("tools/call"))
    body = '{"jsonrpc":"2.0","id":' + its_id + ',"error":{"code":-7,"message":"m"}}'
    post.response_started(Head(400, [(b"content-type", b"application/json")]), 0.0)
    post.response_data(body.encode(), 0.0)
    assert post.response is not None
    (outcome,) = post.error_response(post.response)
    assert isinstance(outcome, ResponseBody)
    error = error_in(outcome.data)
    assert isinstance(error, PeerError)
    assert error.code == -7
    assert b'"id":1' in outcome.data


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
    _, post = post_of(a_request("tools/call"))
    post.response_started(Head(status, [(b"content-type", b"application/json")]), 0.0)
    post.response_data(body.encode(), 0.0)
    assert post.response is not None
    error, reported = failure(post.error_response(post.response))
    assert (type(error), reported) == (kind, status)


def test_message_post_repr_shows_method_and_response() -> None:
    _, post = post_of(RESPONSE)
    assert repr(post) == "<PlainPost a response, no response>"


# -- What the outcomes of a POST lead to -----------------------------------------------------------


def posted(out: Outgoing) -> tuple[RecordingState, PlainTransport, PlainPost]:
    state, transport = new_transport()
    transport.send(out, 0.0)
    post = transport.posts[0]
    post.response_started(Head(200, []), 0.0)
    return state, transport, post


def test_transport_failed_post_ends_its_call_and_its_message() -> None:
    state, transport, post = posted(a_request("tools/call"))
    error = ConnectionLost("gone")
    transport.act(post, (Failed(error, 500),), 1.0)
    assert state.failures == [(post.out, error, 500)]
    assert state.dropped == [post]
    assert not state.operations


def test_transport_abandoned_post_ends_only_its_call() -> None:
    state, transport, post = posted(a_request("tools/call"))
    transport.act(post, (PlainOutcome.ABANDON,), 1.0)
    assert (state.failures, state.dropped) == ([], [post])


def test_transport_waiting_post_gets_a_deadline() -> None:
    state, transport, post = posted(a_request("tools/call"))
    transport.act(post, (Wait(7.0),), 1.0)
    assert state.deadlines == {post: 7.0}


def test_transport_body_is_received_with_id_and_status() -> None:
    state, transport, post = posted(a_request("tools/call", 3))
    transport.act(post, (ResponseBody(b"{}"),), 1.0)
    assert state.received == [(b"{}", 3, 200)]
    assert state.failures == []


# -- What an operation leaves behind ---------------------------------------------------------------


def busy_state() -> tuple[RecordingState, PlainPost]:
    """Return a state in which a request's call was taken by the driver, and is in each table."""
    state, transport = new_transport()
    out = a_request("tools/call", 3)
    transport.send(out, 0.0)
    post = transport.posts[0]
    post.id = 3
    state.make(post, b"POST", b"/", [], out)
    del state.operations[1]  # the call before
    state.set_deadline(post, 5.0)
    state.unread[post.key] = UnreadInput()
    state.authorizing.add(post)
    return state, post


def tables(state: ClientState) -> list[int]:
    return [
        len(state.operations),
        len(state.unsent),
        len(state.deadlines),
        len(state.unread),
        len(state.authorizing),
    ]


def test_state_forgets_all_of_an_operation() -> None:
    state, post = busy_state()
    assert tables(state) == [1, 1, 1, 1, 1]
    assert state.is_authorizing(post)
    assert repr(state) == "<ClientState: 1 calls, 1 deadlines>"
    state.forget(post)
    assert (tables(state), post.key, state.drops) == ([0] * 5, 0, [])
    state.forget(post)
    state.drop(post)
    assert (tables(state), state.drops) == ([0] * 5, [])


def test_state_drops_a_call_that_the_driver_has_taken_only() -> None:
    state, post = busy_state()
    kept = state.calls[0]
    state.drop(post)
    assert (state.calls, state.drops, tables(state)) == ([kept], [], [0] * 5)
    state, post = busy_state()
    state.calls.clear()
    key = post.key
    assert state.drop_unsent(3)
    assert (state.drops, tables(state)) == ([key], [0] * 5)
    assert not state.drop_unsent(3)


def test_state_lingers_for_five_seconds_from_the_first_time() -> None:
    state, post = busy_state()
    state.set_deadline(post, None)
    state.linger(post, 1.0)
    assert tables(state) == [0] * 5  # the server hasn't seen what is being authorized
    state, post = busy_state()
    state.authorizing.clear()
    state.set_deadline(post, None)
    state.linger(post, 1.0)
    state.linger(post, 2.0)
    assert state.deadlines == {post: 6.0}


@pytest.mark.parametrize(
    ("id", "data", "unsent"),
    [(3, b"{}", True), (None, b"{}", False), (3, b"", False)],
    ids=["request", "notification", "rest of a stream"],
)
def test_state_call_without_our_request_is_never_unsent(
    id: int | None, data: bytes, unsent: bool
) -> None:
    """The cancellation of a request that was sent must reach the server."""
    state, post = RecordingState(), post_of(a_request("tools/call", 3))[1]
    post.id = id
    state.make(post, b"POST", b"/x", [(b"a", b"b")], Outgoing(data, MessageKind.REQUEST, id))
    assert bool(state.unsent) is unsent
    (call,) = state.calls
    assert (call.key, call.idempotent, call.long_lived, call.brief) == (1, True, False, False)
    assert (call.body, call.attempt, call.head.headers[-1]) == (data, None, (b"a", b"b"))
    assert post.call is call


@pytest.mark.parametrize(
    ("configured", "own", "sends"),
    [
        ({}, {}, False),
        ({"X-Api-Key": "k"}, {}, True),
        ({}, {"Authorization": "Bearer t"}, True),
        ({"Authorization": "Bearer t"}, {"X-A": "b"}, True),
        ({"X-A": "b"}, {"X-B": "c"}, False),
    ],
)
def test_state_knows_whether_a_call_sends_a_token(
    configured: dict[str, str], own: dict[str, str], sends: bool
) -> None:
    conn: Any = FakeConnection()
    options = HttpClientOptions(headers=configured)
    state = ClientState(conn, Url.parse("https://a/mcp"), options)
    for headers, expected in (own, sends), ({}, bool(configured) and "X-A" not in configured):
        out = Outgoing(b"{}", MessageKind.REQUEST, 1, method="tools/list", headers=headers)
        _, post = post_of(out)
        state.make(post, b"POST", b"/mcp", [], out)
        assert post.sent_token is expected


@pytest.mark.parametrize(
    ("out", "reports"),
    [(a_request("tools/list"), False), (a_notification("x"), True), (RESPONSE, True)],
)
def test_state_reports_what_fails_without_a_request(out: Outgoing, reports: bool) -> None:
    failures: list[tuple[Any, Any, float, int]] = []
    fake: Any = FakeConnection()
    fake.receive_failure = lambda id, error, now, status: failures.append((id, error, now, status))
    fake.next_event = lambda: NEED_DATA
    state = ClientState(fake, Url.parse("http://a/mcp"), HttpClientOptions())
    error = ConnectionLost("gone")
    state.message_failed(out, error, 2.0, 500)
    assert failures == ([] if reports else [(1, error, 2.0, 500)])
    assert [str(event.error) for event in state.events if isinstance(event, MessageRejected)] == (
        ["gone"] if reports else []
    )


def test_transport_body_without_the_response_fails_its_request() -> None:
    """A batch may have answered others, too."""
    state, transport = new_transport()
    answered: list[Any] = []
    transport.request_answered = lambda id, now: answered.append((id, now))  # type: ignore[method-assign]
    transport.send(a_request("tools/call", 3), 0.0)
    post = transport.posts[0]
    post.response_started(Head(200, []), 0.0)
    state.receive = lambda *_: [3, 4, 5]  # type: ignore[method-assign]
    transport.act(post, (ResponseBody(b"{}"),), 1.0)
    assert (answered, state.failures) == ([(4, 1.0), (5, 1.0)], [])
    state.receive = lambda *_: [4]  # type: ignore[method-assign]
    transport.act(post, (ResponseBody(b"{}"),), 2.0)
    assert state.failures == []  # it was cancelled
    state.fake.pending = {3}
    transport.act(post, (ResponseBody(b"{}"),), 3.0)
    ((out, error, status),) = state.failures
    assert (out, status) == (post.out, 200)
    assert "does not contain the response to the request" in str(error)
