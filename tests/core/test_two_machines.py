"""Two connections back to back, in every revision and both directions.

The test decides when a message is delivered. The races that the specification describes are
reproduced in this way: both sides send, and then the messages are delivered.
"""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import UNSET, Raw

from mcp_core import (
    DIALECTS,
    ConnectionClosed,
    ConnectionLost,
    ErrorReceived,
    InputRequested,
    Limits,
    LocalProtocolError,
    Method,
    PeerError,
    RequestCancelled,
    RequestReceived,
    ResultReceived,
    Role,
    State,
)
from mcp_core import types as t
from tests.harness.jsonrpc import (
    STATEFUL,
    VERSIONS,
    A,
    C,
    D,
    E,
    assert_closed,
    cancelled,
    client_config,
    only_event,
    ping,
    request,
    server_config,
    type_names,
)
from tests.harness.messages.pair import ConnectionPair
from tests.harness.wire.connection import ConnectionHarness, opened

SERVER, CLIENT = Role.SERVER, Role.CLIENT
CALL = t.CallToolParams(name="t", arguments=Raw(b'{"a":1}'))
LIST_ROOTS = t.ListRootsParams()
TEXT = t.TextContent("hi")


@pytest.fixture(params=VERSIONS)
def pair(request: pytest.FixtureRequest) -> ConnectionPair:
    """Return an open client and server of one revision."""
    return ConnectionPair(request.param).open()


@pytest.fixture(params=STATEFUL)
def session(request: pytest.FixtureRequest) -> ConnectionPair:
    """Return the same in a revision in which both sides may send requests."""
    return ConnectionPair(request.param).open()


# -- Asking and answering --------------------------------------------------------------------------

# method, params, result; requests of a client in every revision
ASKED: list[Any] = [
    (
        "tools/list",
        None,
        t.ListToolsResult(tools=[t.Tool(name="t", input_schema={"type": "object"})]),
    ),
    ("tools/list", t.PaginatedParams(cursor="c"), t.ListToolsResult(tools=[], next_cursor="d")),
    ("tools/call", CALL, t.CallToolResult(content=[TEXT])),
    ("tools/call", CALL, t.CallToolResult(content=[TEXT], is_error=True)),
    ("resources/list", None, t.ListResourcesResult(resources=[t.Resource(uri="x:y", name="n")])),
    ("resources/templates/list", None, t.ListResourceTemplatesResult(resource_templates=[])),
    (
        "resources/read",
        t.ReadResourceParams(uri="x:y"),
        t.ReadResourceResult(contents=[t.ResourceContents(uri="x:y", text="z")]),
    ),
    ("prompts/list", None, t.ListPromptsResult(prompts=[])),
    (
        "prompts/get",
        t.GetPromptParams(name="p", arguments={"a": "b"}),
        t.GetPromptResult(messages=[t.PromptMessage("user", TEXT)]),
    ),
    (
        "completion/complete",
        t.CompleteParams(ref=t.PromptReference("p"), argument=t.CompletionArgument("a", "b")),
        t.CompleteResult(completion=t.Completion(values=["bc"])),
    ),
]
# Requests of a server, and the first revision that has them.
ASKED_BACK: list[Any] = [
    (A, "ping", None, t.EmptyResult()),
    (A, "roots/list", LIST_ROOTS, t.ListRootsResult(roots=[t.Root("file:///x", "x")])),
    (
        A,
        "sampling/createMessage",
        t.CreateMessageParams(messages=[t.SamplingMessage("user", TEXT)], max_tokens=9),
        t.CreateMessageResult(role="assistant", content=TEXT, model="m"),
    ),
    (
        C,
        "elicitation/create",
        t.ElicitParams(message="m", requested_schema={"type": "object", "properties": {}}),
        t.ElicitResult(action="accept", content={"a": 1}),
    ),
]


def without_added_members(result: Any) -> Any:
    """Return a result without the members that the revision adds."""
    changes: dict[str, Any] = {"meta": None, "result_type": None}
    if isinstance(result, t.CacheableResult):
        changes |= {"ttl_ms": None, "cache_scope": None}
    for name, value in changes.items():
        setattr(result, name, value)
    return result


@pytest.mark.requirement("RPC-2", "RPC-7", "META-6", "META-10", "RPC-30", "CUST-1", "CUST-3")
@pytest.mark.parametrize(("method", "params", "answer"), ASKED)
def test_pair_client_request_gets_result(
    pair: ConnectionPair, method: str, params: Any, answer: Any
) -> None:
    received = pair.request(method, params)
    assert received.peer.dialect is pair.client.peer.dialect  # type: ignore[union-attr]
    assert without_added_members(pair.result(received, answer)) == without_added_members(answer)
    assert pair.is_idle()


@pytest.mark.requirement("RPC-6", "RPC-7")
@pytest.mark.parametrize(("since", "method", "params", "answer"), ASKED_BACK)
def test_pair_server_request_gets_result(
    session: ConnectionPair, since: str, method: str, params: Any, answer: Any
) -> None:
    """In an earlier revision our server may not even send the request."""
    version, _ = session.versions
    if version in VERSIONS[: VERSIONS.index(since)]:
        with pytest.raises(LocalProtocolError, match="not something that a server sends"):
            session.server.send_request(method, params)
    elif method == "ping":
        session.server.send_request(method, params, token="t")
        assert session.move(SERVER) == []
        assert only_event(session.move(CLIENT), ResultReceived).result == answer
    else:
        received = session.request(method, params, by=SERVER)
        assert received.id == 1
        assert session.result(received, answer, by=CLIENT) == answer
    assert session.is_idle()


@pytest.mark.requirement("RPC-28", "STDIO-7", "CUST-3")
@pytest.mark.parametrize(("since", "method", "params", "answer"), ASKED_BACK)
def test_pair_stateless_server_request_raises(
    since: str, method: str, params: Any, answer: Any
) -> None:
    pair = ConnectionPair(E).open()
    received = pair.request("tools/call", CALL)
    with pytest.raises(LocalProtocolError, match="sends no requests"):
        pair.server.send_request(method, params, related=received.id)
    assert pair.is_idle()


@pytest.mark.requirement("RPC-27", "RPC-28", "RPC-29", "STDIO-8")
def test_pair_stateless_server_request_gets_no_response() -> None:
    harness = opened(CLIENT, E)
    (rejected,) = harness.receive(request(1, "roots/list"))
    assert "does not send requests in revision 2026-07-28" in str(rejected)
    assert (
        type_names(harness.receive(ping(), '{"jsonrpc":"1.0","id":3,"method":"ping"}'))
        == ["MessageRejected"] * 2
    )
    assert harness.take_sent() == []


def test_pair_request_gets_error(pair: ConnectionPair) -> None:
    received = pair.request("tools/call", CALL, token="t")
    failed = pair.error(received, -32602, "no such tool")
    assert isinstance(failed.error, PeerError)
    assert (failed.error.code, failed.error.data, failed.token) == (-32602, UNSET, "t")


def test_pair_simultaneous_requests_may_have_equal_ids(session: ConnectionPair) -> None:
    """Each side numbers its own requests, so both use the same id."""
    for _ in range(3):
        session.server.send_request("roots/list", token="server")
        session.client.send_request("tools/list", token="client")
    found = session.deliver_all()
    (at_client, at_server) = (
        [e.id for e in found[role] if isinstance(e, RequestReceived)] for role in (CLIENT, SERVER)
    )
    assert at_client == [1, 2, 3]
    assert at_server == [2, 3, 4]  # 1 was the handshake
    for id in at_client:
        session.client.send_result(id, t.ListRootsResult(roots=[]))
    for id in reversed(at_server):
        session.server.send_result(id, t.ListToolsResult(tools=[]))
    found = session.deliver_all()
    assert [(e.id, e.token) for e in found[CLIENT] if isinstance(e, ResultReceived)] == [
        (i, "client") for i in (4, 3, 2)
    ]
    assert [(e.id, e.token) for e in found[SERVER] if isinstance(e, ResultReceived)] == [
        (i, "server") for i in (1, 2, 3)
    ]


def test_pair_nested_request_completes(session: ConnectionPair) -> None:
    outer = session.request("tools/call", CALL, token="outer")
    inner = session.request("roots/list", LIST_ROOTS, by=SERVER, token="inner", related=outer.id)
    assert session.result(inner, t.ListRootsResult(roots=[]), by=CLIENT) == t.ListRootsResult(
        roots=[]
    )
    session.result(outer, t.CallToolResult(content=[]))
    assert session.is_idle()


# method, params; notifications of either side
TOLD: list[Any] = [
    (SERVER, "notifications/message", t.LoggingMessageParams(level="info", data={"a": None})),
    (SERVER, "notifications/tools/list_changed", None),
    (SERVER, "notifications/prompts/list_changed", None),
    (SERVER, "notifications/resources/list_changed", None),
    (SERVER, "notifications/resources/updated", t.ResourceUpdatedParams(uri="x:y")),
]


@pytest.mark.requirement("RPC-13")
@pytest.mark.parametrize(("by", "method", "params"), TOLD)
def test_pair_notification_arrives(
    pair: ConnectionPair, by: Role, method: str, params: Any
) -> None:
    # Without a handshake a server can send notifications only during a request.
    related = None if pair[by].peer is not None else pair.request("tools/call", CALL).id
    event = pair.notify(method, params, by=by, related=related)
    assert event.peer is pair[by.other].peer
    assert "id" not in pair.transcript[-1][1]
    assert pair.is_idle()


@pytest.mark.requirement("META-1")
def test_pair_meta_arrives_unchanged(pair: ConnectionPair) -> None:
    """This holds for requests, results and notifications, beside the members of the revision."""
    received = pair.request("tools/call", CALL, meta={"com.example/a": [1]})
    assert b'"com.example/a":[1]' in bytes(received.raw)
    notified = pair.notify(
        "notifications/message",
        t.LoggingMessageParams(level="info", data=1, meta={"com.example/b": {}}),
        related=received.id,
    )
    assert notified.params.meta == {"com.example/b": {}}
    answer = pair.result(received, t.CallToolResult(content=[], meta={"com.example/c": None}))
    assert answer.meta["com.example/c"] is None


def test_pair_notification_to_server_arrives(session: ConnectionPair) -> None:
    session.notify("notifications/roots/list_changed", by=CLIENT)


@pytest.mark.requirement("RPC-32")
@pytest.mark.parametrize("state", ["s", None])
def test_pair_input_required_then_retry(state: str | None) -> None:
    """The first request is complete with its result; the retry has an id of its own."""
    pair = ConnectionPair(E).open()
    received = pair.request("tools/call", CALL, token="t")
    questions: dict[str, Any] = {"r": t.ListRootsRequest()}
    pair.server.send_result(
        received.id,
        t.InputRequiredResult(
            result_type="input_required", input_requests=questions, request_state=state
        ),
    )
    event = only_event(pair.move(SERVER), InputRequested)
    assert (event.id, event.requests, event.state, event.token) == (
        received.id,
        questions,
        state,
        "t",
    )
    # The request is complete. The retry is another request, with the input.
    again = t.CallToolParams(
        name="t", input_responses={"r": Raw(b'{"roots":[]}')}, request_state=state
    )
    retry = pair.request("tools/call", again, token="t")
    assert retry.id != received.id
    pair.result(retry, t.CallToolResult(content=[]))


# -- Custom methods --------------------------------------------------------------------------------


class AddParams(t.RequestParams, kw_only=True):
    a: int
    b: int


class AddResult(t.Result, kw_only=True):
    sum: int


ADD = Method("acme/add", None, AddParams, AddResult)
NEWS = Method("notifications/acme/news", None, t.NotificationParams)


@pytest.mark.requirement("VER-13")
@pytest.mark.parametrize("version", VERSIONS)
def test_pair_custom_method_works(version: str) -> None:
    pair = ConnectionPair(
        client=client_config(version, methods=[ADD, NEWS]),
        server=server_config(version, methods=[ADD, NEWS]),
    ).open()
    for by in Role if DIALECTS[version].stateful else [CLIENT]:
        received = pair.request("acme/add", AddParams(a=1, b=2), by=by, progress=True)
        assert received.method is ADD
        pair.progress(received, 1, by=by.other)
        pair.notify("notifications/acme/news", by=by.other, related=received.id)
        assert pair.result(received, AddResult(sum=3), by=by.other).sum == 3


@pytest.mark.requirement("VER-13", "RPC-18")
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("method", ["acme/add", "resources/search"])
def test_pair_unknown_custom_method_rejected(version: str, method: str) -> None:
    pair = ConnectionPair(version).open()
    id = pair.client.send_request(method, {"a": 1}, token="t")
    assert type_names(pair.move(CLIENT)) == ["MessageRejected"]
    failed = only_event(pair.move(SERVER), ErrorReceived)
    assert isinstance(failed.error, PeerError)
    assert (failed.id, failed.error.code) == (id, -32601)
    pair.client.send_notification("notifications/acme/news", {"a": 1})
    assert pair.move(CLIENT) == []  # unknown notifications are ignored
    assert pair.is_idle()


def test_pair_unregistered_custom_result_is_dict() -> None:
    pair = ConnectionPair(client=client_config(D), server=server_config(D, methods=[ADD])).open()
    received = pair.request("acme/add", {"a": 1, "b": 2})
    assert pair.result(received, AddResult(sum=3)) == {"sum": 3}


# -- Progress --------------------------------------------------------------------------------------


@pytest.mark.requirement("PROG-1", "PROG-2", "PROG-4", "PROG-5", "PROG-11")
def test_pair_progress_arrives(pair: ConnectionPair) -> None:
    first = pair.request("tools/call", CALL, token="t", progress=True)
    other = pair.request("tools/call", CALL, token="u", progress=True)
    received = [
        pair.progress(first, 0.5),
        pair.progress(other, 1, 2),
        pair.progress(first, 1, 2, "half"),
    ]
    assert [(event.token, event.total) for event in received] == [("t", None), ("u", 2), ("t", 2)]
    assert received[2].message == (None if pair.versions[0] == A else "half")
    pair.result(first, t.CallToolResult(content=[]))
    assert not pair.server.send_progress(first.id, 2)
    pair.progress(other, 2)
    assert pair.is_idle()


def test_pair_progress_of_client_work_arrives(session: ConnectionPair) -> None:
    received = session.request("roots/list", LIST_ROOTS, by=SERVER, token="t", progress=True)
    assert session.progress(received, 1, by=CLIENT).token == "t"


@pytest.mark.requirement("PROG-13", "PROG-5")
def test_pair_progress_crossing_result_ignored(pair: ConnectionPair) -> None:
    received = pair.request("tools/call", CALL, progress=True)
    pair.server.send_progress(received.id, 1)
    pair.server.send_result(received.id, t.CallToolResult(content=[]))
    progress, answer = pair.take(SERVER)
    assert type_names(pair.deliver([answer, progress], by=SERVER)) == ["ResultReceived"]
    assert pair.is_idle()


# -- Cancellation ----------------------------------------------------------------------------------


@pytest.mark.requirement("CXL-1", "CXL-6", "CXL-7")
@pytest.mark.parametrize("reason", [None, "enough"])
def test_pair_cancel_reaches_handler(pair: ConnectionPair, reason: str | None) -> None:
    received = pair.request("tools/call", CALL, token="t", progress=True)
    pair.cancel(received, reason)
    assert not pair.server.send_progress(received.id, 1)
    assert not pair.server.send_result(received.id, t.CallToolResult(content=[]))
    assert pair.is_idle()


def test_pair_cancel_by_server_reaches_client(session: ConnectionPair) -> None:
    received = session.request("roots/list", LIST_ROOTS, by=SERVER)
    session.cancel(received, by=SERVER)
    assert not session.client.send_result(received.id, t.ListRootsResult(roots=[]))
    assert session.is_idle()


@pytest.mark.requirement("CXL-9", "CXL-10")
def test_pair_cancel_crossing_result_ignored(pair: ConnectionPair) -> None:
    received = pair.request("tools/call", CALL, progress=True)
    pair.server.send_progress(received.id, 1)
    pair.server.send_result(received.id, t.CallToolResult(content=[]))
    pair.client.send_cancel(received.id)
    assert pair.move(SERVER) == []  # the client has cancelled it
    assert pair.move(CLIENT) == []  # the handler has returned
    assert pair.is_idle()


@pytest.mark.requirement("CXL-8", "CXL-10")
def test_pair_cancel_after_result_sends_nothing(pair: ConnectionPair) -> None:
    received = pair.request("tools/call", CALL)
    pair.result(received, t.CallToolResult(content=[]))
    pair.client.send_cancel(received.id)
    assert pair.is_idle()
    assert pair.deliver([cancelled(received.id)], by=CLIENT) == []


@pytest.mark.requirement("CXL-8")
def test_pair_cancel_twice_is_once(pair: ConnectionPair) -> None:
    received = pair.request("tools/call", CALL)
    pair.cancel(received)
    pair.client.send_cancel(received.id)
    assert pair.is_idle()
    assert pair.deliver([cancelled(received.id)], by=CLIENT) == []


@pytest.mark.requirement("CXL-10")
def test_pair_cancel_in_same_read_as_request(pair: ConnectionPair) -> None:
    """Both messages arrive in one read."""
    id = pair.client.send_request("tools/call", CALL)
    pair.client.send_cancel(id)
    assert type_names(pair.move(CLIENT)) == ["RequestReceived", "RequestCancelled"]
    assert not pair.server.send_error(id, t.ErrorData(code=1, message="m"))


@pytest.mark.requirement("CXL-8")
def test_pair_cancel_overtaking_request_ignored(pair: ConnectionPair) -> None:
    """On a pipe this is impossible. Over HTTP it is possible, and the request then runs."""
    id = pair.client.send_request("tools/call", CALL)
    pair.client.send_cancel(id)
    received, gone = pair.take(CLIENT)
    assert type_names(pair.deliver([gone, received], by=CLIENT)) == ["RequestReceived"]
    assert pair.server.send_result(id, t.CallToolResult(content=[]))
    assert pair.move(SERVER) == []


@pytest.mark.parametrize("version", VERSIONS)
def test_pair_waiting_request_is_cancelled(version: str) -> None:
    pair = ConnectionPair(
        client=client_config(), server=server_config(version, limits=Limits(in_flight=1))
    ).open()
    first = pair.request("tools/call", CALL)
    waiting = pair.client.send_request("tools/call", CALL)
    last = pair.client.send_request("tools/call", CALL)
    pair.client.send_cancel(waiting)
    assert pair.move(CLIENT) == []
    pair.server.send_result(first.id, t.CallToolResult(content=[]))
    assert only_event(pair.deliver_all()[SERVER], RequestReceived).id == last


@pytest.mark.requirement("CXL-18")
def test_pair_nested_requests_cancelled_with_parent(session: ConnectionPair) -> None:
    outer = session.request("tools/call", CALL, token="outer")
    inner = session.request("roots/list", LIST_ROOTS, by=SERVER, token="inner", related=outer.id)
    other = session.request("roots/list", LIST_ROOTS, by=SERVER, token="other")
    session.cancel(outer)
    assert only_event(session.move(SERVER), RequestCancelled).id == inner.id
    assert not session.client.send_result(inner.id, t.ListRootsResult(roots=[]))
    with pytest.raises(LocalProtocolError, match="is over"):
        session.server.send_request("roots/list", related=outer.id)
    session.result(other, t.ListRootsResult(roots=[]), by=CLIENT)
    assert session.is_idle()


def test_pair_nested_result_crossing_parent_end_ignored(session: ConnectionPair) -> None:
    outer = session.request("tools/call", CALL)
    inner = session.request("roots/list", LIST_ROOTS, by=SERVER, related=outer.id)
    session.client.send_result(inner.id, t.ListRootsResult(roots=[]))
    session.client.send_cancel(outer.id)
    answer, gone = session.take(CLIENT)
    assert type_names(session.deliver([gone, answer], by=CLIENT)) == ["RequestCancelled"]
    assert session.move(SERVER) == []  # the client had answered before
    assert session.is_idle()


# -- Pressure --------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", VERSIONS)
def test_pair_requests_over_limit_answered_in_order(version: str) -> None:
    """All requests are answered in order, including those that wait."""
    limits = Limits(in_flight=2, waiting=3)
    pair = ConnectionPair(
        client=client_config(version), server=server_config(version, limits=limits)
    ).open()
    ids = [pair.client.send_request("tools/call", CALL, token=i) for i in range(20)]
    served: list[Any] = []
    answered: list[Any] = []
    found = pair.deliver_all()
    while len(answered) < len(ids):
        served += [event.id for event in found[SERVER] if isinstance(event, RequestReceived)]
        answered += [event.token for event in found[CLIENT] if isinstance(event, ResultReceived)]
        assert pair.server.in_flight <= 2
        for id in served[-pair.server.in_flight :] if pair.server.in_flight else []:
            pair.server.send_result(id, t.CallToolResult(content=[]))
        found = pair.deliver_all()
    assert served == ids
    assert answered == list(range(20))


def test_pair_both_sides_full_do_not_deadlock(session: ConnectionPair) -> None:
    """Responses are read although neither side has a place for a request."""
    limits = Limits(in_flight=1, waiting=1, queued=1000, pause=5.0)
    version = session.versions[0] or ""
    pair = ConnectionPair(
        client=client_config(version, limits=limits), server=server_config(version, limits=limits)
    ).open()
    for _ in range(5):
        pair.client.send_request("tools/call", CALL)
        pair.server.send_request("roots/list")
    found = pair.deliver_all()
    # One runs and one waits on each side. The rest were rejected, as both sides await responses.
    for role in Role:
        assert type_names(found[role]).count("RequestReceived") == 1
        assert type_names(found[role]).count("ErrorReceived") == 3
        assert pair[role].in_flight == 1
    assert pair.is_idle()


# -- Endings ---------------------------------------------------------------------------------------


@pytest.mark.requirement("LIFE-17", "ERR-10")
@pytest.mark.parametrize("closer", Role)
def test_pair_close_by_one_side_ends_both(pair: ConnectionPair, closer: Role) -> None:
    """The side that closes knows why. The other side learns it from the end of the stream."""
    received = pair.request("tools/call", CALL, token="t")
    pair[closer].close()
    closed = pair.deliver_all()[closer]
    other = ConnectionHarness(pair[closer.other])
    if closer is CLIENT:
        assert closed == [ConnectionClosed(["t"], None)]
        assert_closed(other.receive_eof(), error=ConnectionLost)
        assert not pair.server.send_result(
            received.id, t.CallToolResult(content=[])
        )  # the request was cancelled
    else:
        assert type_names(closed) == ["RequestCancelled", "ConnectionClosed"]
        assert_closed(other.receive_eof(), "t", error=ConnectionLost)
        assert not pair.server.send_result(received.id, t.CallToolResult(content=[]))
    assert pair.client.state is State.CLOSED
    assert pair.is_idle()
