"""The relay of `mcp-trio run --reload`, with lines in and lines out, without any process."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mcp_core import (
    Connection,
    ErrorReceived,
    Event,
    Limits,
    MessageRejected,
    NotificationReceived,
    RequestReceived,
    ResultReceived,
    Role,
    State,
)
from mcp_core import types as t
from mcp_core.processes import ReloadRelay
from tests.harness.jsonrpc import (
    VERSIONS,
    client_config,
    only_event,
    server_config,
)
from tests.harness.wire.connection import ConnectionHarness

SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"
CAPABILITIES = {
    "tools": {"listChanged": True},
    "prompts": {"listChanged": False},
    "resources": {"listChanged": True, "subscribe": True},
    "logging": {},
}


def request(id: int | str, method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params}


def notification(method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": method, "params": params}


def result(id: int | str, **members: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "result": members}


def opened(id: int | str, version: str = "2025-11-25", **capabilities: Any) -> dict[str, Any]:
    info = {"name": "s", "version": "1"}
    return result(
        id, protocolVersion=version, capabilities=capabilities or CAPABILITIES, serverInfo=info
    )


class PlayedReload:
    """A relay, with a client and processes that are played by the test."""

    def __init__(self) -> None:
        self.relay = ReloadRelay()
        self.relay.server_started()

    def client(self, *messages: object) -> list[Any]:
        """Send from the client. Return what the server gets."""
        for message in messages:
            self.relay.receive_from_client(json.dumps(message).encode() + b"\n")
        return self.at_server()

    def server(self, *messages: object) -> list[Any]:
        """Send from the server. Return what the client gets."""
        for message in messages:
            self.relay.receive_from_server(json.dumps(message).encode() + b"\n")
        return self.at_client()

    def at_client(self) -> list[Any]:
        return [json.loads(line) for line in self.relay.data_for_client().splitlines()]

    def at_server(self) -> list[Any]:
        return [json.loads(line) for line in self.relay.data_for_server().splitlines()]

    def open(self) -> None:
        self.client(request(0, "initialize", protocolVersion="2025-11-25", capabilities={}))
        assert self.server(opened(0)) == [opened(0)]
        assert self.client({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def reload(self) -> list[Any]:
        """Replace the process. Return what the new one gets at once."""
        self.relay.server_stopping()
        self.relay.server_started()
        return self.at_server()


def test_messages_pass_unchanged_before_a_reload() -> None:
    played = PlayedReload()
    played.open()
    line = b'{"jsonrpc": "2.0",  "id": 1, "method": "tools/call", "params": {"name": "t"}}'
    played.relay.receive_from_client(line[:20])
    assert played.relay.data_for_server() == b""
    played.relay.receive_from_client(line[20:] + b"\nnot json\n")
    assert played.relay.data_for_server() == line + b"\nnot json\n"
    asked = request(0, "roots/list")
    assert played.server(asked) == [asked]
    assert played.client(result(0, roots=[])) == [result(0, roots=[])]
    assert played.relay.accepts_input
    assert "RUNNING" in repr(played.relay)


def test_reload_repeats_the_handshake_and_reports_declared_lists() -> None:
    """The client sees no handshake: log level and subscriptions move to the new process."""
    played = PlayedReload()
    played.open()
    played.client(
        request(1, "logging/setLevel", level="debug"),
        request(2, "logging/setLevel", level="error"),
        request(3, "resources/subscribe", uri="a://b"),
        request(4, "resources/subscribe", uri="c://d"),
        request(5, "resources/unsubscribe", uri="a://b"),
    )
    played.server(*(result(id) for id in range(1, 6)))
    [again] = played.reload()
    assert again["method"] == "initialize"
    assert again["params"] == {"protocolVersion": "2025-11-25", "capabilities": {}}
    assert again["id"] not in range(6)
    assert not played.relay.accepts_input
    assert played.client(request(6, "tools/list")) == []  # waits until the process is open
    assert played.at_client() == []
    assert played.server(opened(again["id"])) == [
        {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"},
        {"jsonrpc": "2.0", "method": "notifications/resources/list_changed"},
        notification("notifications/resources/updated", uri="c://d"),
    ]
    initialized, level, subscribe, waited = played.at_server()
    assert initialized["method"] == "notifications/initialized"
    assert level["params"] == {"level": "error"}
    assert subscribe["params"] == {"uri": "c://d"}
    assert waited == request(6, "tools/list")
    assert played.server(result(level["id"]), result(subscribe["id"])) == []
    assert played.server(result(6, tools=[])) == [result(6, tools=[])]
    assert played.relay.warnings == []


def test_reload_answers_requests_in_flight_with_an_error() -> None:
    played = PlayedReload()
    played.open()
    played.client(request(1, "tools/call", name="t"), request("1", "tools/call", name="u"))
    played.client(
        request(2, "tools/call", name="v"), notification("notifications/cancelled", requestId=2)
    )
    played.relay.server_stopping()
    errors = played.at_client()
    assert [error["id"] for error in errors] == [1, "1"]
    assert {error["error"]["code"] for error in errors} == {-32603}
    assert "the server was reloaded before it answered" in errors[0]["error"]["message"]
    assert played.server(result(1)) == []  # of the process that is being stopped


def test_reload_while_opening_sends_initialize_once_more() -> None:
    played = PlayedReload()
    opening = request(0, "initialize", protocolVersion="2025-11-25", capabilities={})
    played.client(opening)
    assert played.reload() == [opening]
    assert played.server(opened(0)) == [opened(0)]
    assert played.relay.accepts_input


def test_reload_before_initialized_leaves_that_to_the_client() -> None:
    played = PlayedReload()
    played.client(request(0, "initialize", protocolVersion="2025-11-25", capabilities={}))
    played.server(opened(0))
    [again] = played.reload()
    assert played.server(opened(again["id"])) == []
    assert played.at_server() == []
    assert len(played.client({"jsonrpc": "2.0", "method": "notifications/initialized"})) == 1


def test_reload_continues_listen_streams() -> None:
    """The relay listens again by itself, and tells the client what may have changed."""
    played = PlayedReload()
    listen = request("l", "subscriptions/listen", notifications={"toolsListChanged": True})
    other = request(2, "subscriptions/listen", notifications={"promptsListChanged": True})
    accepted = notification(
        "notifications/subscriptions/acknowledged",
        notifications={"toolsListChanged": True, "resourceSubscriptions": ["a://b"]},
        _meta={SUBSCRIPTION: "l"},
    )
    played.client(listen, other)
    assert played.server(accepted) == [accepted]
    assert played.reload() == [listen, other]
    assert played.at_client() == []
    assert played.server(accepted) == [
        notification("notifications/tools/list_changed", _meta={SUBSCRIPTION: "l"}),
        notification("notifications/resources/updated", uri="a://b", _meta={SUBSCRIPTION: "l"}),
    ]
    first = {**accepted, "params": {"notifications": {}, "_meta": {SUBSCRIPTION: 2}}}
    assert played.server(first) == [first]  # not acknowledged before
    played.client(notification("notifications/cancelled", requestId=2))
    played.server(result("l"))
    assert played.reload() == []


def test_failed_server_answers_with_the_reason_until_it_starts_again() -> None:
    """A request is answered instead of waiting for a process that may never start."""
    played = PlayedReload()
    played.open()
    listen = request("l", "subscriptions/listen", notifications={})
    played.client(listen, request(1, "tools/list"))
    played.relay.server_stopping()
    played.at_client()
    played.relay.server_started()
    played.client(request(2, "tools/list"))
    played.relay.server_failed("the server has ended (exit status 1)")
    [error] = played.at_client()
    assert error["id"] == 2
    assert error["error"]["message"] == (
        "the server has ended (exit status 1); the server is started again when its files change"
    )
    assert played.relay.accepts_input
    assert played.client(request(3, "ping"), notification("notifications/progress")) == []
    assert [error["id"] for error in played.at_client()] == [3]
    played.relay.server_started()
    [again] = played.at_server()
    played.server(opened(again["id"]))
    assert played.at_server()[-1] == listen


def test_first_server_that_fails_answers_initialize() -> None:
    played = PlayedReload()
    played.client(request(0, "initialize", protocolVersion="2025-11-25"))
    played.relay.server_failed("no")
    assert [error["id"] for error in played.at_client()] == [0]
    played.relay.server_started()
    assert played.at_server() == []
    played.open()


def test_requests_of_servers_get_ids_that_differ_by_process() -> None:
    """Each process counts its ids from 0, so a late response would reach the wrong one."""
    played = PlayedReload()
    played.open()
    assert played.server(request(0, "roots/list")) == [request(0, "roots/list")]
    [again] = played.reload()
    [cancelled] = played.at_client()
    assert (cancelled["method"], cancelled["params"]["requestId"]) == ("notifications/cancelled", 0)
    played.server(opened(again["id"]))
    played.at_server()
    assert played.client(result(0, roots=["old"])) == []  # the process that asked has ended
    [renamed] = played.server(request(0, "roots/list"))
    assert renamed == request(renamed["id"], "roots/list")
    assert renamed["id"] != 0
    [cancel] = played.server(notification("notifications/cancelled", requestId=0, reason="r"))
    assert cancel["params"] == {"requestId": renamed["id"], "reason": "r"}
    assert played.client(result(renamed["id"], roots=[])) == [result(0, roots=[])]
    [second] = played.server(request(1, "roots/list"))
    failure = {"jsonrpc": "2.0", "id": second["id"], "error": {"code": 1, "message": "no"}}
    assert played.client(failure) == [{**failure, "id": 1}]


def test_batch_is_split_for_a_later_process() -> None:
    played = PlayedReload()
    played.open()
    batch = [request(1, "ping"), notification("notifications/progress")]
    assert played.client(batch) == [batch]
    assert played.server([result(1)]) == [[result(1)]]
    [again] = played.reload()
    played.server(opened(again["id"]))
    played.at_server()
    assert played.client(batch) == batch
    assert played.server([result(1), request(0, "ping")])[0] == result(1)


@pytest.mark.parametrize(
    ("answer", "warning"),
    [
        (opened(0, "2025-06-18"), "protocolVersion of the server changed"),
        (opened(0, tools={}), "capabilities of the server changed"),
        ({"error": {"code": 1, "message": "full"}}, "the new server refuses initialize"),
    ],
)
def test_reload_to_another_server_warns(answer: dict[str, Any], warning: str) -> None:
    played = PlayedReload()
    played.open()
    [again] = played.reload()
    played.server({**answer, "jsonrpc": "2.0", "id": again["id"]})
    assert played.relay.accepts_input
    [found] = played.relay.warnings
    assert found.startswith(warning)


def test_message_over_the_limit_is_answered() -> None:
    played = PlayedReload()
    played.relay = ReloadRelay(Limits(message=200))
    played.relay.server_started()
    assert played.client(request(1, "tools/call", name="x" * 300), request(2, "ping")) == [
        request(2, "ping")
    ]
    assert [error["id"] for error in played.at_client()] == [1]
    assert [error["id"] for error in played.server(result(2, text="x" * 300))] == [2]
    assert len(played.relay.warnings) == 2


class Machines:
    """A client, a relay and one server after the other, each a `Connection`."""

    def __init__(self, version: str) -> None:
        self.relay = ReloadRelay()
        self.client = ConnectionHarness(Connection(Role.CLIENT, client_config(version)))
        self.start()

    def start(self) -> None:
        self.server = ConnectionHarness(Connection(Role.SERVER, server_config()))
        self.relay.server_started()

    def move(self) -> tuple[list[Event], list[Event]]:
        """Deliver all bytes, one at a time. Return the events of client and server."""
        found: tuple[list[Event], list[Event]] = self.client.events(), self.server.events()
        while True:
            sent = self.client.conn.data_to_send(), self.server.conn.data_to_send()
            for byte in sent[0]:
                self.relay.receive_from_client(bytes([byte]))
            for byte in sent[1]:
                self.relay.receive_from_server(bytes([byte]))
            passed = self.relay.data_for_client(), self.relay.data_for_server()
            found[0].extend(self.client.receive_bytes(passed[0]))
            found[1].extend(self.server.receive_bytes(passed[1]))
            if not any((*sent, *passed)):
                return found


@pytest.mark.parametrize("version", VERSIONS)
def test_reload_between_connections_is_legal_for_both(version: str) -> None:
    """Real connections on both sides accept all that the relay says, over three reloads."""
    machines = Machines(version)
    client = machines.client.conn
    client.open(0.0)
    machines.move()
    assert client.state is State.READY
    for attempt in range(3):
        id = client.send_request("tools/list", None, token=attempt)
        _, received = machines.move()
        assert only_event(received, RequestReceived).id == id
        machines.relay.server_stopping()
        at_client, _ = machines.move()
        assert "the server was reloaded" in str(only_event(at_client, ErrorReceived).error)
        machines.start()
        at_client, at_server = machines.move()
        assert not [event for event in (*at_client, *at_server) if type(event) is MessageRejected]
        assert len(at_client) == (
            3 if client.peer is not None and client.peer.dialect.stateful else 0
        )
        assert all(type(event) is NotificationReceived for event in at_client)
        id = client.send_request("tools/list", None, token=attempt)
        _, received = machines.move()
        machines.server.conn.send_result(
            only_event(received, RequestReceived).id, t.ListToolsResult(tools=[])
        )
        at_client, _ = machines.move()
        assert only_event(at_client, ResultReceived).id == id
    assert machines.relay.warnings == []
