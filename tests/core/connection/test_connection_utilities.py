"""One connection: log messages, the rate of tool calls, keep-alive, shutdown and statistics."""

from __future__ import annotations

import pytest

from mcp_core import (
    Connection,
    ConnectionClosed,
    ConnectionLost,
    Limits,
    LocalProtocolError,
    MessageRejected,
    Rate,
    RequestReceived,
    Role,
    State,
    Stats,
)
from mcp_core import types as t
from tests.core.connection.connection_setup import (
    BUSY_CODES,
    EMPTY,
    keep_alive_connection,
    log_at_all_levels,
)
from tests.core.helpers import (
    STATEFUL,
    VERSIONS,
    D,
    E,
    Talk,
    assert_closed,
    assert_error,
    call,
    client,
    client_config,
    initialize,
    line,
    only_event,
    opened,
    ping,
    request,
    result,
    server,
    server_config,
    single,
    stateless_request,
    type_names,
)

LOG_LEVEL = "io.modelcontextprotocol/logLevel"

# -- Log messages ----------------------------------------------------------------------------------


@pytest.mark.requirement("LOG-3")
@pytest.mark.parametrize("version", STATEFUL)
def test_log_level_change_affects_running_requests(version: str) -> None:
    talk = server(version)
    talk.receive(call(1, version))
    assert talk.response_to(request(2, "logging/setLevel", {"level": "critical"}))["result"] == {}
    assert (
        log_at_all_levels(talk)
        == log_at_all_levels(talk, related=1)
        == ["critical", "alert", "emergency"]
    )
    talk.response_to(request(3, "logging/setLevel", {"level": "emergency"}))
    assert log_at_all_levels(talk, related=1) == ["emergency"]


@pytest.mark.requirement("LOG-5")
@pytest.mark.parametrize("version", STATEFUL)
def test_set_level_invalid_level_rejected(version: str) -> None:
    talk = server(version)
    for params in ({"level": "loud"}, {"level": 3}, {}):
        assert_error(
            talk.error_response_to(request(1, "logging/setLevel", params)),
            -32602,
            1,
            "logging/setLevel",
        )
    assert log_at_all_levels(talk)[0] == "info"


@pytest.mark.requirement("LOG-7", "LOG-8", "LOG-9")
def test_log_level_of_stateless_request_is_used() -> None:
    talk = server(E)
    talk.receive(
        stateless_request(1, "tools/call", {"name": "t"}, **{LOG_LEVEL: "alert"}),
        stateless_request(2, "tools/call", {"name": "t"}),
    )
    assert log_at_all_levels(talk, related=1) == ["alert", "emergency"]
    assert log_at_all_levels(talk, related=2) == log_at_all_levels(talk) == []
    assert talk.conn.send_log("alert", "x", related=1)
    (message,) = talk.conn.messages_to_send()
    assert message.related == 1  # a transport with streams sends it on that of the request
    talk.conn.send_result(1, EMPTY)
    talk.take_sent()
    assert not talk.conn.send_log("alert", "too late", related=1)


@pytest.mark.requirement("LOG-6", "LOG-10")
def test_log_level_invalid_in_stateless_request_rejected() -> None:
    talk = server(E)
    assert_error(
        talk.error_response_to(stateless_request(1, "logging/setLevel", {"level": "error"})),
        -32601,
        1,
    )
    assert_error(
        talk.error_response_to(
            stateless_request(2, "tools/call", {"name": "t"}, **{LOG_LEVEL: "loud"})
        ),
        -32602,
        2,
    )


def test_log_level_is_separate_for_session_and_stateless_requests() -> None:
    talk = server(D)
    talk.response_to(request(1, "logging/setLevel", {"level": "emergency"}))
    talk.receive(
        call(2, D), stateless_request(3, "tools/call", {"name": "t"}, **{LOG_LEVEL: "alert"})
    )
    assert log_at_all_levels(talk, related=2) == ["emergency"]
    assert log_at_all_levels(talk, related=3) == ["alert", "emergency"]


@pytest.mark.requirement("LOG-1")
def test_send_log_without_capability_raises() -> None:
    talk = opened(Role.SERVER, D, server_config(capabilities=t.ServerCapabilities()))
    with pytest.raises(LocalProtocolError, match="logging"):
        talk.conn.send_log("error", "x")
    assert_error(
        talk.error_response_to(request(1, "logging/setLevel", {"level": "error"})), -32601, 1
    )
    with pytest.raises(LocalProtocolError, match="not something that a client sends"):
        client(D).conn.send_log("error", "x")


def test_send_log_before_handshake_sends_nothing() -> None:
    assert not Talk(Connection(Role.SERVER, server_config())).conn.send_log("error", "x")


# -- The limit on tool calls -----------------------------------------------------------------------


@pytest.mark.requirement("DEC-13", "TOOL-24")
@pytest.mark.parametrize("version", VERSIONS)
def test_tool_calls_over_rate_rejected_as_busy(version: str) -> None:
    talk = server(version, tool_calls=Rate(per_second=2, burst=2))
    assert type_names(talk.receive(call(1, version), call(2, version))) == ["RequestReceived"] * 2
    refused = talk.error_response_to(call(3, version))
    assert_error(refused, BUSY_CODES[version], 3, "try again in 0.5 s")
    assert refused["error"]["data"] == {"retryAfter": 0.5}
    complete = {"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "a", "value": ""}}
    asked = (
        stateless_request(4, "completion/complete", complete)
        if version == E
        else request(4, "completion/complete", complete)
    )
    assert_error(talk.error_response_to(asked), BUSY_CODES[version], 4)
    lists = stateless_request(5, "tools/list") if version == E else request(5, "tools/list")
    assert type_names(talk.receive(lists)) == ["RequestReceived"]  # other requests are not counted
    talk.now += 0.5
    assert type_names(talk.receive(call(6, version))) == ["RequestReceived"]
    assert talk.conn.stats().in_flight == 4


def test_tool_calls_without_rate_unlimited() -> None:
    talk = server(D, tool_calls=None, in_flight=20_000)
    assert len(talk.receive(*(call(n) for n in range(12_000)))) == 12_000


# -- Keep-alive ------------------------------------------------------------------------------------


@pytest.mark.requirement("PING-3")
@pytest.mark.parametrize(
    ("role", "version"),
    [*((role, version) for role in Role for version in STATEFUL), (Role.CLIENT, E)],
)
def test_keep_alive_ping_answered_restarts_timer(role: Role, version: str) -> None:
    talk = keep_alive_connection(role, version)
    assert talk.conn.next_deadline() == 10.0
    assert talk.advance_time(9.9) == []
    assert talk.take_sent() == []
    assert talk.advance_time(0.1) == []
    asked = single(talk.take_sent())
    assert asked["method"] == ("server/discover" if version == E else "ping")
    assert talk.conn.next_deadline() == 20.0
    talk.now = 19.0
    assert talk.receive(result(asked["id"])) == []
    assert talk.conn.next_deadline() == 29.0
    assert talk.conn.stats().calls == 0
    # An error response, an invalid response or any other input has the same effect.
    for answer in (
        {"jsonrpc": "2.0", "id": 0, "error": {"code": -32601, "message": "what?"}},
        {"jsonrpc": "2.0", "id": 0, "result": {}, "error": 5},
    ):
        talk.advance_time(10.0)
        events = talk.receive({**answer, "id": single(talk.take_sent())["id"]})
        assert [event for event in events if not isinstance(event, MessageRejected)] == []
        assert talk.conn.next_deadline() == talk.now + 10.0


@pytest.mark.requirement("PING-3", "PING-4")
@pytest.mark.parametrize("role", Role)
def test_keep_alive_ping_unanswered_closes_connection(role: Role) -> None:
    talk = keep_alive_connection(role, D)
    if role is Role.CLIENT:
        talk.conn.send_request("tools/list", token="waiting")
    talk.advance_time(10.0)
    talk.take_sent()
    events = talk.advance_time(10.0)
    lost = ["waiting"] if role is Role.CLIENT else []
    assert_closed(
        events, *lost, error=ConnectionLost, text=f"the {role.other.value} was silent for 20 s"
    )
    assert (talk.state(), talk.conn.next_deadline()) == (State.CLOSED, None)
    assert talk.take_sent() == []


def test_keep_alive_while_paused_sends_no_ping() -> None:
    config = server_config(
        keep_alive=10.0, limits=Limits(in_flight=1, waiting=1, pause=25.0, queued=100)
    )
    talk = opened(Role.SERVER, D, config)
    assert type_names(talk.receive(*(ping(n) for n in range(9)))) == []
    for _ in range(5):  # its responses wait to be read
        assert talk.paused()
        assert talk.advance_time(10.0) == []
        assert talk.conn.next_deadline() == talk.now + 10.0
    while talk.take_sent():
        talk.events()
    assert type_names(talk.receive(call(11), call(12), call(13))) == ["RequestReceived"]
    for _ in range(2):  # its requests wait for a handler
        assert talk.paused()
        assert talk.advance_time(10.0) == []
    assert talk.take_sent() == []
    assert type_names(talk.advance_time(5.0)) == ["MessageRejected"]
    assert single(talk.take_sent())["id"] == 13
    assert talk.advance_time(5.0) == []
    assert single(talk.take_sent())["method"] == "ping"  # reading has resumed
    assert_closed(
        talk.advance_time(10.0)[-1:], error=ConnectionLost, text="the client was silent for 20 s"
    )


def test_keep_alive_starts_when_connection_opens() -> None:
    talk = Talk(Connection(Role.SERVER, server_config(keep_alive=10.0)))
    talk.receive(initialize(D))
    talk.take_sent()
    assert talk.conn.next_deadline() is None
    assert talk.advance_time(1000.0) == []
    talk = Talk(Connection(Role.SERVER, server_config(keep_alive=10.0)))
    talk.receive(stateless_request(1, "tools/call", {"name": "t"}))
    assert talk.conn.next_deadline() is None  # stateless requests have no peer to ping


def test_next_deadline_is_the_earlier_one() -> None:
    config = server_config(keep_alive=10.0, limits=Limits(in_flight=1, waiting=1, pause=3.0))
    talk = opened(Role.SERVER, D, config)
    talk.receive(call(1), call(2), call(3))
    assert talk.paused()
    assert talk.conn.next_deadline() == 3.0
    talk.now = 4.0
    config = client_config(D, keep_alive=1.0, initialize_timeout=30.0)
    talk = Talk(Connection(Role.CLIENT, config))
    talk.conn.open(0.0)
    assert talk.conn.next_deadline() == 30.0


@pytest.mark.parametrize("seconds", [0, -1.0, float("nan")])
def test_keep_alive_interval_invalid_rejected(seconds: float) -> None:
    with pytest.raises(ValueError, match="keep_alive is a number of seconds above 0"):
        server_config(keep_alive=seconds)


# -- An orderly end --------------------------------------------------------------------------------


@pytest.mark.parametrize("version", VERSIONS)
def test_shutdown_rejects_new_requests_as_busy(version: str) -> None:
    talk = server(version)
    talk.receive(call(1, version))
    talk.conn.shutdown()
    assert talk.state() is State.CLOSING
    assert_error(talk.error_response_to(call(2, version)), BUSY_CODES[version], 2, "shut down")
    if version != E:
        assert talk.response_to(ping(3)) == result(3)
    assert talk.conn.send_progress(1, 0.5) is False
    assert talk.conn.send_result(1, EMPTY)
    assert single(talk.take_sent())["id"] == 1
    talk.conn.close()
    assert_closed(talk.events(), error=None)
    assert talk.state() is State.CLOSED


def test_shutdown_then_eof_closes_connection() -> None:
    talk = server(D)
    talk.receive(call(1))
    talk.conn.shutdown()
    assert type_names(talk.receive_eof()) == ["ConnectionClosed"]
    assert talk.conn.send_result(1, EMPTY)
    talk.conn.close()
    assert talk.events() == []


def test_shutdown_runs_waiting_requests() -> None:
    talk = server(D, in_flight=1)
    talk.receive(call(1), call(2))
    talk.conn.shutdown()
    talk.conn.send_result(1, EMPTY)
    assert only_event(talk.events(), RequestReceived).id == 2


def test_shutdown_cancels_nothing_until_close() -> None:
    talk = server(D)
    talk.receive(call(1))
    talk.conn.shutdown()
    talk.conn.shutdown()
    assert talk.events() == []
    talk.conn.close()
    assert type_names(talk.events()) == ["RequestCancelled", "ConnectionClosed"]
    talk.conn.shutdown()
    assert talk.state() is State.CLOSED


def test_shutdown_sends_no_keep_alive_ping() -> None:
    talk = keep_alive_connection(Role.SERVER, D)
    talk.conn.shutdown()
    assert talk.advance_time(10.0) == []
    assert talk.take_sent() == []


def test_shutdown_of_client_does_nothing() -> None:
    talk = client(D)
    talk.conn.shutdown()
    assert talk.state() is State.READY


# -- What it counts --------------------------------------------------------------------------------


def test_connection_stats_count_messages_and_bytes() -> None:
    talk = server(D, in_flight=1)
    before = talk.conn.stats()
    said = line(call(1)) + line(call(2)) + line("{}") + b"half"
    talk.conn.receive_data(said, 0.0)
    assert talk.conn.stats().buffered == len(said)
    assert type_names([talk.conn.next_event()]) == ["RequestReceived"]  # type: ignore[list-item]
    assert type_names(talk.events()) == ["MessageRejected"]
    talk.conn.send_request("roots/list")
    stats = talk.conn.stats()
    queued = talk.conn.queued()
    assert queued > 0
    assert stats == Stats(
        in_flight=1,
        waiting=1,
        calls=1,
        events=0,
        buffered=4,
        queued=queued,
        received=before.received + len(said),
        sent=before.sent,
        rejected=1,
    )
    talk.take_sent()
    assert talk.conn.stats().sent == before.sent + queued
    talk.conn.close()
    assert talk.conn.stats().events == 2
    assert isinstance(talk.events()[-1], ConnectionClosed)
    talk.conn.send_result(1, EMPTY)
    talk.conn.receive_data(b"more", 0.0)
    after = talk.conn.stats()
    assert (after.in_flight, after.waiting, after.calls, after.events, after.buffered) == (
        0,
        0,
        0,
        0,
        0,
    )
