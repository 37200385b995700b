"""One connection: incoming messages, and what a caller may send.

Limits and cancellation are in `test_connection_flow.py`, opening and closing in
`test_connection_life.py`, subscriptions in `test_connection_changes.py`, logs, rates and keep-alive
in `test_connection_utilities.py`. Two connections are in `test_two_machines.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec import Raw

from mcp_core import (
    DIALECTS,
    NEED_DATA,
    Connection,
    ErrorReceived,
    InputProblem,
    LocalProtocolError,
    MessageKind,
    MessageRejected,
    NotificationReceived,
    Outgoing,
    Peer,
    PeerError,
    PeerReady,
    RemoteProtocolError,
    RequestReceived,
    ResultReceived,
    Role,
    State,
)
from mcp_core import types as t
from mcp_core.protocol.messages._incoming import MessageContext
from tests.core.protocol.connection.connection_setup import CLIENT, EMPTY, ERROR, SERVER, NotJson
from tests.harness.jsonrpc import (
    CLIENT_CAPABILITIES,
    CLIENT_INFO,
    INITIALIZED,
    META_SERVER,
    STATEFUL,
    TOOL_CALL,
    VERSIONS,
    B,
    D,
    E,
    Message,
    assert_error,
    assert_rejected,
    call,
    cancelled,
    client_config,
    encoded,
    error,
    initialize,
    notification,
    only_event,
    ping,
    request,
    result,
    server_config,
    single,
    stateless_request,
)
from tests.harness.wire.connection import (
    ConnectionHarness,
    client,
    opened,
    server,
)

# -- Facts -----------------------------------------------------------------------------------------


def test_connection_repr_shows_state() -> None:
    harness = ConnectionHarness(Connection(SERVER, server_config()))
    assert (
        repr(harness.conn)
        == "<Connection server NEW no revision, 0 in flight, 0 calls, 0 bytes queued>"
    )
    harness = server()
    harness.receive(call(1))
    harness.conn.send_request("roots/list")
    queued = harness.conn.queued()
    assert queued == len('{"jsonrpc":"2.0","id":1,"method":"roots/list"}')
    assert (
        repr(harness.conn)
        == f"<Connection server READY 2025-11-25, 1 in flight, 1 calls, {queued} bytes queued>"
    )


@pytest.mark.parametrize("role", Role)
def test_connection_new_has_nothing_to_do(role: Role) -> None:
    conn = Connection(role, server_config() if role is SERVER else client_config())
    assert (conn.state, conn.peer, conn.in_flight, conn.queued(), conn.probing) == (
        State.NEW,
        None,
        0,
        0,
        False,
    )
    assert conn.next_event() is NEED_DATA
    assert conn.data_to_send() == b""
    assert conn.messages_to_send() == []
    assert conn.next_deadline() is None


def test_connection_with_given_peer_is_ready() -> None:
    peer = Peer(DIALECTS[B], CLIENT_CAPABILITIES)
    harness = ConnectionHarness(Connection(SERVER, server_config(), peer=peer))
    assert harness.conn.state is State.READY
    assert only_event(harness.receive(call(1)), RequestReceived).peer is peer


def test_connection_queued_counts_by_related_request() -> None:
    harness = server(D)
    harness.receive(call(1), call("1"))
    own = harness.conn.send_request("roots/list")
    assert own == 1
    assert harness.conn.queued(1) == 0
    harness.conn.send_request("roots/list", related="1")
    harness.conn.send_result(1, EMPTY)
    assert harness.conn.queued(1) == len('{"jsonrpc":"2.0","id":1,"result":{}}')
    assert harness.conn.queued("1") == len('{"jsonrpc":"2.0","id":2,"method":"roots/list"}')
    assert harness.conn.queued(9) == 0


# -- Requests that it answers by itself ------------------------------------------------------------


@pytest.mark.requirement("LIFE-3", "LIFE-4")
@pytest.mark.parametrize("version", STATEFUL)
def test_server_handshake_ends_with_peer_ready(version: str) -> None:
    """READY comes with `initialized`, not with the response, and a second one is ignored."""
    harness = ConnectionHarness(Connection(SERVER, server_config(instructions="be kind")))
    answer = harness.response_to(initialize(version, "i"))
    assert answer["id"] == "i"
    assert answer["result"].keys() == {
        "protocolVersion",
        "capabilities",
        "serverInfo",
        "instructions",
    }
    assert answer["result"]["protocolVersion"] == version
    assert answer["result"]["serverInfo"] == {"name": "server", "version": "2"}
    assert harness.state() is State.OPENING
    ready = only_event(harness.receive(INITIALIZED), PeerReady)
    assert (
        ready.peer == harness.conn.peer == Peer(DIALECTS[version], CLIENT_CAPABILITIES, CLIENT_INFO)
    )
    assert harness.state() is State.READY
    assert harness.receive(INITIALIZED) == []  # the second one has no effect
    assert harness.take_sent() == []


@pytest.mark.requirement("LIFE-9", "LIFE-11")
def test_server_request_before_initialized_accepted() -> None:
    """Over HTTP, requests can overtake the notification that ends the handshake."""
    harness = ConnectionHarness(Connection(SERVER, server_config()))
    harness.response_to(initialize(D))
    event = only_event(harness.receive(call(1)), RequestReceived)
    with pytest.raises(LocalProtocolError, match="not open yet"):
        harness.conn.send_request("roots/list")
    harness.conn.send_notification(
        "notifications/message", t.LoggingMessageParams(level="error", data=1)
    )
    # During a request of the client, the server may send requests.
    assert harness.conn.send_request("roots/list", related=event.id) == 1
    assert len(harness.take_sent()) == 2


@pytest.mark.requirement("PING-1", "PING-2")
@pytest.mark.parametrize("role", Role)
def test_ping_in_any_state_is_answered_at_once(role: Role) -> None:
    harness = ConnectionHarness(
        Connection(role, server_config() if role is SERVER else client_config())
    )
    assert harness.response_to(ping(1)) == result(1)
    for version in STATEFUL:
        assert opened(role, version).response_to(
            request("p", "ping", {"_meta": {"a": 1}})
        ) == result("p")


@pytest.mark.requirement("VER-3", "VER-5", "META-10", "RPC-30")
def test_server_discover_result_has_all_members() -> None:
    """It works before any handshake and leaves the connection new, with all revisions listed."""
    harness = ConnectionHarness(Connection(SERVER, server_config(instructions="be kind")))
    found = harness.response_to(stateless_request(1, "server/discover"))["result"]
    assert found.pop("capabilities").keys() == {
        "tools",
        "resources",
        "prompts",
        "completions",
        "logging",
    }
    assert found == {
        "resultType": "complete",
        "_meta": {META_SERVER: {"name": "server", "version": "2"}},
        "supportedVersions": [*reversed(VERSIONS)],
        "ttlMs": 0,
        "cacheScope": "private",
        "instructions": "be kind",
    }
    assert harness.conn.state is State.NEW


@pytest.mark.parametrize("version", STATEFUL)
def test_set_level_is_stored_in_peer(version: str) -> None:
    harness = server(version)
    assert harness.response_to(request(1, "logging/setLevel", {"level": "error"})) == result(1)
    assert only_event(harness.receive(call(2)), RequestReceived).peer.log_level == "error"
    refused = harness.error_response_to(request(3, "logging/setLevel", {"level": "loud"}))
    assert_error(refused, -32602, 3, "loud")
    assert harness.conn.peer is not None
    assert harness.conn.peer.log_level == "error"


# -- Requests that become events -------------------------------------------------------------------


@pytest.mark.parametrize("version", VERSIONS)
def test_request_received_has_all_attributes(version: str) -> None:
    """Params are parsed, the raw bytes stay for extensions, and the response frees the place."""
    harness = server(version)
    params = {"name": "t", "arguments": {"a": 1}, "future": True}
    message = (
        request(7, "tools/call", params)
        if DIALECTS[version].stateful
        else stateless_request(7, "tools/call", params)
    )
    event = only_event(harness.receive(message), RequestReceived)
    assert (event.id, event.related) == (7, None)
    assert event.method is DIALECTS[version].receives[SERVER]["tools/call"]
    assert (event.params.name, event.params.arguments) == ("t", Raw(b'{"a":1}'))
    assert b'"future":true' in bytes(event.raw)
    assert event.peer.dialect.version == version
    assert harness.conn.in_flight == 1
    assert harness.conn.send_result(7, EMPTY)
    assert harness.conn.in_flight == 0
    assert single(harness.take_sent())["id"] == 7


def test_request_received_without_params_has_empty_raw() -> None:
    harness = server()
    assert only_event(harness.receive(request(1, "tools/list")), RequestReceived).raw == b"{}"


@pytest.mark.requirement("RPC-18")
def test_send_error_sends_error_response() -> None:
    harness = server()
    harness.receive(call(1))
    assert harness.conn.send_error(
        1, t.ErrorData(code=-32603, message="internal error", data={"ref": 1})
    )
    assert harness.take_sent() == [error(1, -32603, "internal error", data={"ref": 1})]


@pytest.mark.parametrize("id", [2, "1", 0])
def test_send_result_to_unknown_request_raises(id: Any) -> None:
    harness = server()
    harness.receive(call(1))
    sends: list[Callable[[], bool]] = [
        lambda: harness.conn.send_result(id, EMPTY),
        lambda: harness.conn.send_error(id, ERROR),
    ]
    for send in sends:
        with pytest.raises(LocalProtocolError, match=f"no request {id!r} to answer"):
            send()
    assert harness.take_sent() == []


def test_send_error_after_result_raises() -> None:
    harness = server()
    harness.receive(call(1))
    harness.conn.send_result(1, EMPTY)
    with pytest.raises(LocalProtocolError, match="answered before"):
        harness.conn.send_error(1, ERROR)


def test_send_result_not_json_leaves_request_open() -> None:
    harness = server()
    harness.receive(call(1))
    sends: list[Callable[[], bool]] = [
        lambda: harness.conn.send_result(1, {"a": NotJson()}),
        lambda: harness.conn.send_error(1, t.ErrorData(code=1, message="m", data=NotJson())),
    ]
    for send in sends:
        with pytest.raises(TypeError):
            send()
    assert harness.conn.send_error(1, ERROR)
    assert harness.take_sent() == [error(1)]


@pytest.mark.requirement("RPC-4", "RPC-5")
def test_request_id_after_response_may_be_reused() -> None:
    for version in VERSIONS:
        harness = server(version)
        for _ in range(2):
            only_event(harness.receive(call(1, version)), RequestReceived)
            assert_error(
                harness.error_response_to(call(1, version)),
                -32600,
                1,
                "request id 1 is still in use",
            )
            harness.conn.send_result(1, EMPTY)
            assert single(harness.take_sent())["id"] == 1


def test_received_events_have_related_request() -> None:
    harness = client()
    harness.conn.receive_message(encoded(request(1, "roots/list")), 0.0, MessageContext(5))
    assert only_event(harness.events(), RequestReceived).related == 5
    harness.conn.receive_message(
        encoded(notification("notifications/tools/list_changed")), 0.0, MessageContext(6)
    )
    assert only_event(harness.events(), NotificationReceived).related == 6


# -- Notifications ---------------------------------------------------------------------------------


@pytest.mark.requirement("RPC-14", "RPC-19", "CXL-11", "PROG-13")
@pytest.mark.parametrize(
    "message",
    [
        notification("notifications/odd"),
        notification("tools/call", TOOL_CALL),
        notification("ping"),
        notification("notifications/initialized"),
        notification("notifications/elicitation/complete", {"elicitationId": "e"}),
        notification("notifications/tools/list_changed"),
        notification("notifications/cancelled", {}),
        cancelled(99),
        notification("notifications/progress", {"progressToken": 99, "progress": 1}),
    ],
)
@pytest.mark.parametrize("version", VERSIONS)
def test_notification_without_effect_ignored(version: str, message: Message) -> None:
    harness = server(version)
    assert harness.receive(message) == []
    assert harness.take_sent() == []


@pytest.mark.requirement("RPC-14", "CXL-11")
@pytest.mark.parametrize(
    "message",
    [
        notification("notifications/cancelled", {"requestId": 1.5}),
        notification("notifications/cancelled", []),
        notification("notifications/progress", {"progress": 1}),
        notification("notifications/initialized", 1),
    ],
)
@pytest.mark.parametrize("version", STATEFUL)
def test_notification_invalid_params_reported_not_answered(version: str, message: Message) -> None:
    harness = server(version)
    assert_rejected(harness.receive(message), f"the params of {message['method']} do not fit")
    assert harness.take_sent() == []


def test_notification_becomes_event() -> None:
    harness = server()
    event = only_event(
        harness.receive(notification("notifications/roots/list_changed")), NotificationReceived
    )
    assert event.method.name == "notifications/roots/list_changed"
    assert event.peer is harness.conn.peer
    message = notification(
        "notifications/message", {"level": "error", "data": {"a": 1}, "logger": "l"}
    )
    for version in VERSIONS:
        event = only_event(client(version).receive(message), NotificationReceived)
        assert event.params == t.LoggingMessageParams(level="error", data={"a": 1}, logger="l")


@pytest.mark.parametrize("message", [notification("notifications/roots/list_changed"), INITIALIZED])
def test_notification_before_handshake_ignored(message: Message) -> None:
    harness = ConnectionHarness(Connection(SERVER, server_config()))
    assert harness.receive(message) == []
    assert harness.conn.state is State.NEW


def test_initialized_at_client_ignored() -> None:
    harness = ConnectionHarness(Connection(CLIENT, client_config(D)))
    harness.conn.open(0.0)
    assert harness.receive(INITIALIZED) == []
    assert harness.conn.state is State.OPENING


# -- What we ask -----------------------------------------------------------------------------------


@pytest.mark.requirement("RPC-2", "RPC-4", "META-6")
@pytest.mark.parametrize("version", VERSIONS)
def test_send_request_gets_result_with_token(version: str) -> None:
    harness = client(version)
    ids = [harness.conn.send_request("tools/list", token=i) for i in range(3)]
    assert len(set(ids)) == 3
    sent = harness.take_sent()
    assert [message["id"] for message in sent] == ids
    assert all(message["method"] == "tools/list" for message in sent)
    assert ["params" in message for message in sent] == [not DIALECTS[version].stateful] * 3
    for id in reversed(ids):  # answers come in any order
        event = only_event(harness.receive(result(id, {"tools": []})), ResultReceived)
        assert (event.id, event.token) == (id, ids.index(id))


@pytest.mark.requirement("RPC-6")
def test_response_is_matched_by_its_id() -> None:
    harness = client()
    id: Any = harness.conn.send_request("tools/list")
    for other in (id + 1, f"0{id}", f" {id}", f"{id}.0", f"+{id}", f"\u0661{id}"):
        assert harness.receive(result(other, {"tools": []})) == []
    only_event(harness.receive(result(id, {"tools": []})), ResultReceived)
    assert harness.receive(result(id, {"tools": []})) == []  # the second one has no effect
    assert harness.receive(error(id)) == []


@pytest.mark.parametrize("spelling", ['"%d"', "%d.0", "%d.00"])
def test_response_with_its_id_in_another_form_is_matched_and_reported_once(spelling: str) -> None:
    harness = client()
    first: Any = harness.conn.send_request("tools/list")
    second: Any = harness.conn.send_request("tools/list")
    line = f'{{"jsonrpc":"2.0","id":{spelling},"result":{{"tools":[]}}}}'
    problem, event = harness.receive(line % first)
    assert isinstance(problem, InputProblem)
    assert only_event([event], ResultReceived).id == first
    assert only_event(harness.receive(line % second), ResultReceived).id == second
    assert harness.receive(line % second) == []  # it was answered


def test_error_response_becomes_error_received() -> None:
    harness = client()
    id = harness.conn.send_request("tools/list", token="t")
    event = only_event(harness.receive(error(id, -32601, "unknown", data=[1])), ErrorReceived)
    assert isinstance(event.error, PeerError)
    assert (event.error.code, event.error.message, event.error.data, event.token) == (
        -32601,
        "unknown",
        [1],
        "t",
    )


@pytest.mark.requirement("RPC-9", "RPC-10")
@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ('{"jsonrpc":"2.0","id":%d,"result":{},"error":{"code":1,"message":"m"}}', "not both"),
        ('{"jsonrpc":"2.0","id":%d}', "neither"),
        ('{"jsonrpc":"1.0","id":%d,"result":{"tools":[]}}', "jsonrpc"),
        ('{"jsonrpc":"2.0","id":%d,"result":{},"result":{"tools":[]}}', "duplicate"),
    ],
)
@pytest.mark.parametrize("version", VERSIONS)
def test_invalid_response_fails_its_request(version: str, answer: str, words: str) -> None:
    harness = client(version)
    id = harness.conn.send_request("tools/list", token="t")
    harness.take_sent()
    rejected, failed = harness.receive(answer % id)
    assert isinstance(rejected, MessageRejected)
    assert isinstance(failed, ErrorReceived)
    assert (failed.id, failed.token) == (id, "t")
    assert type(failed.error) is RemoteProtocolError
    assert words in str(failed.error)
    assert harness.take_sent() == []
    assert harness.receive(result(id, {"tools": []})) == []


@pytest.mark.requirement("RPC-8")
@pytest.mark.parametrize(
    "message", [error(None, 1, "no"), {"jsonrpc": "2.0", "error": {"code": 1, "message": "no"}}]
)
def test_error_response_without_id_only_reported(message: Message) -> None:
    harness = client()
    harness.conn.send_request("tools/list")
    harness.take_sent()
    text = "the server sent an error without an id: no (1)"
    rejected, problem = harness.receive(message)
    assert_rejected([rejected], text)
    assert problem == InputProblem(text)
    assert_rejected(harness.receive(message), text)  # the problem is reported once
    assert harness.take_sent() == []


@pytest.mark.requirement("LIFE-8", "LIFE-24")
def test_send_request_before_open_or_after_close_raises() -> None:
    harness = ConnectionHarness(Connection(CLIENT, client_config()))
    for _ in range(2):
        with pytest.raises(LocalProtocolError, match="not open yet"):
            harness.conn.send_request("tools/list")
        with pytest.raises(LocalProtocolError, match="not open yet"):
            harness.conn.send_notification("notifications/roots/list_changed")
        if harness.conn.state is State.NEW:
            harness.conn.open(0.0)
    harness.conn.close()
    with pytest.raises(LocalProtocolError, match="the connection is closed"):
        harness.conn.send_request("tools/list")
    with pytest.raises(LocalProtocolError, match="the connection is closed"):
        harness.conn.send_notification("notifications/roots/list_changed")


def test_send_request_invalid_sends_nothing_and_uses_no_id() -> None:
    harness = client()
    mistakes: list[tuple[str, Any, Any]] = [
        ("notifications/cancelled", None, None),
        ("roots/list", None, None),
        ("initialize", None, None),
        ("tools/list", None, {"progressToken": 1}),
    ]
    for method, params, meta in mistakes:
        with pytest.raises(LocalProtocolError):
            harness.conn.send_request(method, params, meta=meta)
    with pytest.raises(TypeError):
        harness.conn.send_request("tools/call", {"name": NotJson()})
    assert harness.take_sent() == []
    assert harness.conn.send_request("tools/list") == 2  # 1 was the handshake


def test_send_request_custom_method_returns_dict() -> None:
    harness = client(E)
    id = harness.conn.send_request("acme/add", {"a": 1, "_meta": {"b": 2}}, token="t")
    params = single(harness.take_sent())["params"]
    assert (params["a"], params["_meta"]["b"]) == (1, 2)
    event = only_event(harness.receive(result(id, {"sum": 1})), ResultReceived)
    assert (event.result, event.token) == ({"sum": 1}, "t")


def test_send_notification_encodes_params() -> None:
    harness = server()
    harness.conn.send_notification("notifications/tools/list_changed")
    harness.conn.send_notification(
        "notifications/resources/updated", t.ResourceUpdatedParams(uri="x:y")
    )
    harness.conn.send_notification("notifications/acme/news", {"a": 1})
    assert harness.take_sent() == [
        notification("notifications/tools/list_changed"),
        notification("notifications/resources/updated", {"uri": "x:y"}),
        notification("notifications/acme/news", {"a": 1}),
    ]


@pytest.mark.parametrize("version", VERSIONS)
def test_send_notification_related_to_ended_request_raises(version: str) -> None:
    """A cancelled request and an unknown one are the same to the caller: no stream to send on."""
    harness = server(version)
    harness.receive(call(1, version))
    harness.conn.send_notification(
        "notifications/message", t.LoggingMessageParams(level="info", data=1), related=1
    )
    (message,) = harness.conn.messages_to_send()
    assert (message.kind, message.related, message.method) == (
        MessageKind.NOTIFICATION,
        1,
        "notifications/message",
    )
    harness.receive(cancelled(1))
    for id in (1, 2):
        with pytest.raises(LocalProtocolError, match=f"request {id} is over"):
            harness.conn.send_notification("notifications/message", related=id)


def test_messages_to_send_have_routing_data() -> None:
    """HTTP chooses the stream by kind and related request, without parsing the bytes again."""
    harness = server()
    harness.receive(call("a", progressToken=1))
    id = harness.conn.send_request("roots/list", related="a")
    harness.conn.send_progress("a", 1)
    harness.conn.send_cancel(id)
    harness.conn.send_result("a", EMPTY)
    harness.conn.send_notification("notifications/tools/list_changed")
    found = harness.conn.messages_to_send()
    assert [(m.kind, m.id, m.related, m.method) for m in found] == [
        (MessageKind.REQUEST, id, "a", "roots/list"),
        (MessageKind.NOTIFICATION, None, "a", "notifications/progress"),
        (MessageKind.CANCEL, id, "a", "notifications/cancelled"),
        (MessageKind.RESPONSE, "a", None, ""),
        (MessageKind.NOTIFICATION, None, None, "notifications/tools/list_changed"),
    ]
    assert all(isinstance(message, Outgoing) for message in found)
    assert harness.conn.messages_to_send() == []
    assert harness.conn.queued() == 0


@pytest.mark.requirement("RPC-17", "STDIO-6", "DEC-3")
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("bad", ["nope", "{}", '{"jsonrpc":"2.0","id":null,"method":"ping"}', "[]"])
def test_invalid_message_answered_by_server_only(version: str, bad: str) -> None:
    """A client only reports it, because the message may be no request."""
    harness = server(version)
    assert_error(
        harness.error_response_to(bad),
        -32700 if bad == "nope" else -32600,
        ... if version == D else None,
    )
    harness = client(version)
    assert_rejected(harness.receive(bad))
    assert harness.take_sent() == []


@pytest.mark.parametrize("version", VERSIONS)
def test_client_answers_invalid_request_with_id(version: str) -> None:
    harness = client(version)
    assert_rejected(harness.receive('{"jsonrpc":"1.0","id":7,"method":"ping"}'))
    if DIALECTS[version].stateful:
        assert_error(single(harness.take_sent()), -32600, 7)
    assert harness.take_sent() == []  # in a stateless revision a server sends no requests
