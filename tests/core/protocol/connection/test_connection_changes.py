"""One connection: change notifications of a server, and the end of subscriptions at a client."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_core import (
    Connection,
    ConnectionClosed,
    Limits,
    RequestReceived,
    ResultReceived,
    Role,
    State,
)
from mcp_core import types as t
from mcp_core.protocol.subscriptions._server import Change
from tests.core.protocol.connection.connection_setup import (
    PROMPTS,
    RESOURCE,
    RESOURCES,
    SUBSCRIPTION_ID,
    TOOLS,
    listen_request,
    sent_changes,
    subscribed_server,
)
from tests.harness.jsonrpc import (
    INITIALIZED,
    STATEFUL,
    VERSIONS,
    D,
    E,
    assert_error,
    call,
    cancelled,
    initialize,
    notification,
    only_event,
    request,
    result,
    server_config,
    single,
    stateless_request,
    type_names,
)
from tests.harness.wire.connection import (
    ConnectionHarness,
    client,
    opened,
    server,
)

# -- Sessions --------------------------------------------------------------------------------------


@pytest.mark.requirement("RES-4", "RES-5", "RES-14", "TOOL-23", "PRM-5")
@pytest.mark.parametrize("version", STATEFUL)
def test_session_gets_list_changes_and_subscribed_resources(version: str) -> None:
    harness = server(version)
    assert harness.conn.send_change(TOOLS)
    assert harness.conn.send_change(PROMPTS)
    assert harness.conn.send_change(RESOURCES)
    assert not harness.conn.send_change(RESOURCE)
    assert sent_changes(harness) == [
        (f"notifications/{name}/list_changed", None) for name in ("tools", "prompts", "resources")
    ]
    assert harness.response_to(request(1, "resources/subscribe", {"uri": "x:1"})) == result(1)
    assert harness.conn.send_change(RESOURCE)
    assert sent_changes(harness) == [("notifications/resources/updated", "x:1")]
    assert harness.response_to(request(2, "resources/unsubscribe", {"uri": "x:1"})) == result(2)
    assert not harness.conn.send_change(RESOURCE)
    assert harness.take_sent() == []


@pytest.mark.parametrize("version", STATEFUL)
def test_change_of_all_resources_reaches_a_session_that_watches_some(version: str) -> None:
    harness = server(version)
    assert not harness.conn.send_changes_of_all_resources()
    harness.response_to(request(1, "resources/subscribe", {"uri": "x:1"}))
    assert harness.conn.send_changes_of_all_resources()
    assert sent_changes(harness) == [("notifications/resources/updated", "x:1")]
    harness.conn.close()
    assert not harness.conn.send_changes_of_all_resources()


def test_changes_during_handshake_are_sent_after_it() -> None:
    harness = ConnectionHarness(Connection(Role.SERVER, server_config()))
    assert not harness.conn.send_change(TOOLS)
    harness.response_to(initialize(D))
    assert harness.conn.send_change(TOOLS)
    assert harness.take_sent() == []
    harness.receive(INITIALIZED)
    assert harness.conn.queued() > 0  # so that the driver writes
    assert sent_changes(harness) == [("notifications/tools/list_changed", None)]


def test_changes_without_declared_capability_not_sent() -> None:
    harness = opened(
        Role.SERVER, D, server_config(capabilities=t.ServerCapabilities(tools=t.ToolsCapability()))
    )
    assert not harness.conn.send_change(TOOLS)
    assert_error(
        harness.error_response_to(request(1, "resources/subscribe", {"uri": "x:1"})), -32601, 1
    )


# -- Listening -------------------------------------------------------------------------------------


@pytest.mark.requirement("META-12", "SUB-1", "SUB-2", "SUB-3", "SUB-4", "SUB-6", "SUB-8")
@pytest.mark.parametrize("id", [1, "1", 0])
def test_listen_notifications_have_stream_and_subscription_id(id: Any) -> None:
    harness = subscribed_server(id)
    assert harness.conn.stats().in_flight == 0  # it has no handler and does not count
    assert not harness.conn.send_change(PROMPTS)
    assert harness.conn.send_change(TOOLS)
    (message,) = harness.conn.messages_to_send()
    assert (message.related, type(message.related)) == (id, type(id))
    assert harness.conn.send_change(RESOURCE)
    assert harness.take_sent() == [
        notification(
            "notifications/resources/updated", {"uri": "x:1", "_meta": {SUBSCRIPTION_ID: id}}
        )
    ]


def test_listen_id_is_in_use_until_its_end() -> None:
    harness = subscribed_server(1)
    assert_error(harness.error_response_to(call(1, E)), -32600, 1, "still in use")
    assert type_names(harness.receive(call("1", E))) == ["RequestReceived"]
    harness.receive(cancelled(1))
    assert type_names(harness.receive(call(1, E))) == ["RequestReceived"]


@pytest.mark.requirement("SUB-7")
def test_listen_cancelled_gets_no_changes() -> None:
    harness = subscribed_server(1)
    harness.conn.send_change(TOOLS)
    harness.take_sent()
    assert harness.receive(cancelled(1)) == []
    assert not harness.conn.send_change(TOOLS)
    assert harness.take_sent() == []


@pytest.mark.requirement("SUB-10")
def test_listen_gets_no_progress_or_log_messages() -> None:
    harness = server(E)
    harness.response_to(
        stateless_request(
            1,
            "subscriptions/listen",
            {"notifications": {"toolsListChanged": True}},
            progressToken=1,
        )
    )
    assert not harness.conn.send_progress(1, 0.5)
    assert not harness.conn.send_log("emergency", "x", related=1)
    assert harness.take_sent() == []


def test_listen_over_limit_rejected() -> None:
    """Subscriptions, URIs and their length are bounded; a cancelled one frees its place."""
    harness = subscribed_server(1, listens=1, uris=2, uri=8)
    assert_error(
        harness.error_response_to(listen_request(2, toolsListChanged=True)),
        429,
        2,
        "at most 1 subscriptions",
    )
    harness.receive(cancelled(1))
    uris = ["x:1", "x:2", "x:3"]
    assert_error(
        harness.error_response_to(listen_request(3, resourceSubscriptions=uris)),
        429,
        3,
        "at most 2 URIs",
    )
    assert_error(
        harness.error_response_to(listen_request(4, resourceSubscriptions=["x:1234567"])),
        -32602,
        4,
        "at most 8 characters",
    )
    harness = server(D, uris=1)
    harness.response_to(request(1, "resources/subscribe", {"uri": "x:1"}))
    assert_error(
        harness.error_response_to(request(2, "resources/subscribe", {"uri": "x:2"})), -32000, 2
    )


# -- Slow readers ----------------------------------------------------------------------------------


def test_unread_changes_are_merged() -> None:
    harness = server(E, uris=2000)
    uris = [f"x:{'y' * 100}{n}" for n in range(1000)]
    harness.receive(listen_request(1, toolsListChanged=True, resourceSubscriptions=uris))
    harness.conn.messages_to_send()
    for _ in range(20):
        for uri in uris:
            assert harness.conn.send_change(Change(uri=uri))
    assert harness.conn.queued() < 17 * 1024
    found = []
    while messages := harness.take_sent():
        found += [message["params"]["uri"] for message in messages]
    # Each is sent at least once, and those that were already encoded at most once more.
    assert set(found) == set(uris)
    assert len(found) < len(uris) + 200


# -- Ends ------------------------------------------------------------------------------------------


@pytest.mark.requirement("DEC-1", "SUB-8")
@pytest.mark.parametrize("end", ["shutdown", "close"])
def test_listen_ended_by_server_gets_result(end: str) -> None:
    harness = subscribed_server(1)
    harness.receive(call(2, E))
    getattr(harness.conn, end)()
    farewell = single(harness.take_sent())
    assert farewell["id"] == 1
    assert farewell["result"]["resultType"] == "complete"
    assert farewell["result"]["_meta"][SUBSCRIPTION_ID] == 1
    assert not harness.conn.send_change(TOOLS)
    harness.conn.close()
    assert isinstance(harness.events()[-1], ConnectionClosed)
    assert harness.take_sent() == []


def test_listen_pending_changes_sent_before_result() -> None:
    harness = subscribed_server(1)
    harness.receive(call(2, E))
    harness.conn.send_result(2, {"content": [{"type": "text", "text": "x" * 20_000}]})
    harness.conn.send_change(TOOLS)
    harness.conn.close()
    assert [message.get("method", message.get("id")) for message in harness.take_sent()] == [
        2,
        "notifications/tools/list_changed",
        1,
    ]


def test_listen_after_eof_gets_nothing() -> None:
    harness = subscribed_server(1)
    assert type_names(harness.receive_eof()) == ["ConnectionClosed"]
    assert harness.take_sent() == []
    assert harness.state() is State.CLOSED
    assert not harness.conn.send_change(TOOLS)


def test_listen_does_not_delay_close_at_eof() -> None:
    harness = subscribed_server(1)
    harness.receive(call(2, E))
    assert type_names(harness.receive_eof()) == ["ConnectionClosed"]
    assert harness.state() is State.CLOSING
    harness.conn.send_result(2, t.EmptyResult())
    assert single(harness.take_sent())["id"] == 2


@pytest.mark.requirement("CXL-17")
def test_listen_cancelled_by_server_becomes_result() -> None:
    """The server ends the subscription by cancelling it; other requests can't end that way."""
    harness = client(E)
    lasting = harness.conn.send_request(
        "subscriptions/listen",
        t.ListenParams(notifications=t.SubscriptionFilter()),
        token="lasting",
    )
    other = harness.conn.send_request("tools/list", token="other")
    harness.take_sent()
    assert (
        harness.receive(cancelled(other)) == []
    )  # only long-lived requests end by a cancellation of the receiver
    ended = only_event(harness.receive(cancelled(lasting)), ResultReceived)
    assert (ended.token, type(ended.result)) == ("lasting", t.ListenResult)
    assert harness.receive(result(lasting)) == []
    assert (
        only_event(
            harness.receive(result(other, {"resultType": "complete", "tools": []})), ResultReceived
        ).token
        == "other"
    )


@pytest.mark.parametrize("version", VERSIONS)
def test_server_without_subscriptions_answers_requests(version: str) -> None:
    harness = server(version)
    harness.receive(call(1, version))
    harness.conn.send_result(1, t.EmptyResult())
    assert single(harness.take_sent())["id"] == 1
    assert Limits().listens == 64
    assert only_event(harness.receive(call(2, version)), RequestReceived).id == 2
