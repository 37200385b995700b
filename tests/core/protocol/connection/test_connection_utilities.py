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
from mcp_core.protocol.jsonrpc._body import parse_body
from mcp_core.protocol.messages._incoming import MessageContext
from tests.core.protocol.connection.connection_setup import (
    BUSY_CODES,
    EMPTY,
    keep_alive_connection,
    log_at_all_levels,
)
from tests.harness.jsonrpc import (
    STATEFUL,
    VERSIONS,
    D,
    E,
    assert_closed,
    assert_error,
    call,
    client_config,
    encoded,
    initialize,
    line,
    only_event,
    ping,
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

LOG_LEVEL = "io.modelcontextprotocol/logLevel"

# -- Log messages ----------------------------------------------------------------------------------


@pytest.mark.requirement("LOG-3")
@pytest.mark.parametrize("version", STATEFUL)
def test_log_level_change_affects_running_requests(version: str) -> None:
    harness = server(version)
    harness.receive(call(1, version))
    assert (
        harness.response_to(request(2, "logging/setLevel", {"level": "critical"}))["result"] == {}
    )
    assert (
        log_at_all_levels(harness)
        == log_at_all_levels(harness, related=1)
        == ["critical", "alert", "emergency"]
    )
    harness.response_to(request(3, "logging/setLevel", {"level": "emergency"}))
    assert log_at_all_levels(harness, related=1) == ["emergency"]


@pytest.mark.requirement("LOG-5")
@pytest.mark.parametrize("version", STATEFUL)
def test_set_level_invalid_level_rejected(version: str) -> None:
    harness = server(version)
    for params in ({"level": "loud"}, {"level": 3}, {}):
        assert_error(
            harness.error_response_to(request(1, "logging/setLevel", params)),
            -32602,
            1,
            "logging/setLevel",
        )
    assert log_at_all_levels(harness)[0] == "info"


@pytest.mark.requirement("LOG-7", "LOG-8", "LOG-9")
def test_log_level_of_stateless_request_is_used() -> None:
    harness = server(E)
    harness.receive(
        stateless_request(1, "tools/call", {"name": "t"}, **{LOG_LEVEL: "alert"}),
        stateless_request(2, "tools/call", {"name": "t"}),
    )
    assert log_at_all_levels(harness, related=1) == ["alert", "emergency"]
    assert log_at_all_levels(harness, related=2) == log_at_all_levels(harness) == []
    assert harness.conn.send_log("alert", "x", related=1)
    (message,) = harness.conn.messages_to_send()
    assert message.related == 1  # a transport with streams sends it on the request's
    harness.conn.send_result(1, EMPTY)
    harness.take_sent()
    assert not harness.conn.send_log("alert", "too late", related=1)


@pytest.mark.requirement("LOG-6", "LOG-10")
def test_log_level_invalid_in_stateless_request_rejected() -> None:
    harness = server(E)
    assert_error(
        harness.error_response_to(stateless_request(1, "logging/setLevel", {"level": "error"})),
        -32601,
        1,
    )
    assert_error(
        harness.error_response_to(
            stateless_request(2, "tools/call", {"name": "t"}, **{LOG_LEVEL: "loud"})
        ),
        -32602,
        2,
    )


def test_log_level_is_separate_for_session_and_stateless_requests() -> None:
    harness = server(D)
    harness.response_to(request(1, "logging/setLevel", {"level": "emergency"}))
    harness.receive(
        call(2, D), stateless_request(3, "tools/call", {"name": "t"}, **{LOG_LEVEL: "alert"})
    )
    assert log_at_all_levels(harness, related=2) == ["emergency"]
    assert log_at_all_levels(harness, related=3) == ["alert", "emergency"]


@pytest.mark.requirement("LOG-1")
def test_send_log_without_capability_raises() -> None:
    harness = opened(Role.SERVER, D, server_config(capabilities=t.ServerCapabilities()))
    with pytest.raises(LocalProtocolError, match="logging"):
        harness.conn.send_log("error", "x")
    assert_error(
        harness.error_response_to(request(1, "logging/setLevel", {"level": "error"})), -32601, 1
    )
    with pytest.raises(LocalProtocolError, match="not something that a client sends"):
        client(D).conn.send_log("error", "x")


def test_send_log_before_handshake_sends_nothing() -> None:
    assert not ConnectionHarness(Connection(Role.SERVER, server_config())).conn.send_log(
        "error", "x"
    )


# -- The limit on tool calls -----------------------------------------------------------------------


def test_rate_of_tool_calls_goes_by_the_time_of_each_way_to_receive() -> None:
    harness = server(D, tool_calls=Rate(per_second=1, burst=1))
    conn = harness.conn
    conn.receive_data(line(call(1)), 0.0)
    assert type_names(harness.events()) == ["RequestReceived"]
    conn.receive_message(encoded(call(2)), 1.0)
    assert type_names(harness.events()) == ["RequestReceived"]
    conn.receive_parsed(parse_body(encoded(call(3)), Limits()), 2.0, MessageContext())
    assert type_names(harness.events()) == ["RequestReceived"]


@pytest.mark.requirement("DEC-13", "TOOL-24")
@pytest.mark.parametrize("version", VERSIONS)
def test_tool_calls_over_rate_rejected_as_busy(version: str) -> None:
    """The error says when to try again; completions count too, lists don't."""
    harness = server(version, tool_calls=Rate(per_second=2, burst=2))
    assert (
        type_names(harness.receive(call(1, version), call(2, version))) == ["RequestReceived"] * 2
    )
    refused = harness.error_response_to(call(3, version))
    assert_error(refused, BUSY_CODES[version], 3, "try again in 0.5 s")
    assert refused["error"]["data"] == {"retryAfter": 0.5}
    complete = {"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "a", "value": ""}}
    sent = (
        stateless_request(4, "completion/complete", complete)
        if version == E
        else request(4, "completion/complete", complete)
    )
    assert_error(harness.error_response_to(sent), BUSY_CODES[version], 4)
    lists = stateless_request(5, "tools/list") if version == E else request(5, "tools/list")
    assert type_names(harness.receive(lists)) == [
        "RequestReceived"
    ]  # other requests are not counted
    harness.now += 0.5
    assert type_names(harness.receive(call(6, version))) == ["RequestReceived"]
    assert harness.conn.stats().in_flight == 4


def test_tool_calls_without_rate_unlimited() -> None:
    harness = server(D, tool_calls=None, in_flight=20_000)
    assert len(harness.receive(*(call(n) for n in range(12_000)))) == 12_000


# -- Keep-alive ------------------------------------------------------------------------------------


@pytest.mark.requirement("PING-3")
@pytest.mark.parametrize(
    ("role", "version"),
    [*((role, version) for role in Role for version in STATEFUL), (Role.CLIENT, E)],
)
def test_keep_alive_ping_answered_restarts_timer(role: Role, version: str) -> None:
    """Even an error shows that the peer lives, and the ping counts as no call."""
    harness = keep_alive_connection(role, version)
    assert harness.conn.next_deadline() == 10.0
    assert harness.advance_time(9.9) == []
    assert harness.take_sent() == []
    assert harness.advance_time(0.1) == []
    sent = single(harness.take_sent())
    assert sent["method"] == ("server/discover" if version == E else "ping")
    assert harness.conn.next_deadline() == 20.0
    harness.now = 19.0
    assert harness.receive(result(sent["id"])) == []
    assert harness.conn.next_deadline() == 29.0
    assert harness.conn.stats().calls == 0
    # An error response, an invalid response or any other input has the same effect.
    for answer in (
        {"jsonrpc": "2.0", "id": 0, "error": {"code": -32601, "message": "what?"}},
        {"jsonrpc": "2.0", "id": 0, "result": {}, "error": 5},
    ):
        harness.advance_time(10.0)
        events = harness.receive({**answer, "id": single(harness.take_sent())["id"]})
        assert [event for event in events if not isinstance(event, MessageRejected)] == []
        assert harness.conn.next_deadline() == harness.now + 10.0


@pytest.mark.requirement("PING-3", "PING-4")
@pytest.mark.parametrize("role", Role)
def test_keep_alive_ping_unanswered_closes_connection(role: Role) -> None:
    harness = keep_alive_connection(role, D)
    if role is Role.CLIENT:
        harness.conn.send_request("tools/list", token="waiting")
    harness.advance_time(10.0)
    harness.take_sent()
    events = harness.advance_time(10.0)
    lost = ["waiting"] if role is Role.CLIENT else []
    assert_closed(
        events, *lost, error=ConnectionLost, text=f"the {role.other.value} was silent for 20 s"
    )
    assert (harness.state(), harness.conn.next_deadline()) == (State.CLOSED, None)
    assert harness.take_sent() == []


def test_keep_alive_while_paused_sends_no_ping() -> None:
    """An unread pong isn't silence: a connection that doesn't read mustn't judge its peer."""
    config = server_config(
        keep_alive=10.0, limits=Limits(in_flight=1, waiting=1, pause=25.0, queued=100)
    )
    harness = opened(Role.SERVER, D, config)
    assert type_names(harness.receive(*(ping(n) for n in range(9)))) == []
    for _ in range(5):  # its responses wait to be read
        assert harness.paused()
        assert harness.advance_time(10.0) == []
        assert harness.conn.next_deadline() == harness.now + 10.0
    while harness.take_sent():
        harness.events()
    assert type_names(harness.receive(call(11), call(12), call(13))) == ["RequestReceived"]
    for _ in range(2):  # its requests wait for a handler
        assert harness.paused()
        assert harness.advance_time(10.0) == []
    assert harness.take_sent() == []
    assert type_names(harness.advance_time(5.0)) == ["MessageRejected"]
    assert single(harness.take_sent())["id"] == 13
    assert harness.advance_time(5.0) == []
    assert single(harness.take_sent())["method"] == "ping"  # reading has resumed
    assert_closed(
        harness.advance_time(10.0)[-1:], error=ConnectionLost, text="the client was silent for 20 s"
    )


def test_keep_alive_starts_when_connection_opens() -> None:
    harness = ConnectionHarness(Connection(Role.SERVER, server_config(keep_alive=10.0)))
    harness.receive(initialize(D))
    harness.take_sent()
    assert harness.conn.next_deadline() is None
    assert harness.advance_time(1000.0) == []
    harness = ConnectionHarness(Connection(Role.SERVER, server_config(keep_alive=10.0)))
    harness.receive(stateless_request(1, "tools/call", {"name": "t"}))
    assert harness.conn.next_deadline() is None  # stateless requests have no peer to ping


def test_next_deadline_is_the_earlier_one() -> None:
    config = server_config(keep_alive=10.0, limits=Limits(in_flight=1, waiting=1, pause=3.0))
    harness = opened(Role.SERVER, D, config)
    harness.receive(call(1), call(2), call(3))
    assert harness.paused()
    assert harness.conn.next_deadline() == 3.0
    harness.now = 4.0
    config = client_config(D, keep_alive=1.0, initialize_timeout=30.0)
    harness = ConnectionHarness(Connection(Role.CLIENT, config))
    harness.conn.open(0.0)
    assert harness.conn.next_deadline() == 30.0


@pytest.mark.parametrize("seconds", [0, -1.0, float("nan")])
def test_keep_alive_interval_invalid_rejected(seconds: float) -> None:
    with pytest.raises(ValueError, match="keep_alive is a number of seconds above 0"):
        server_config(keep_alive=seconds)


# -- An orderly end --------------------------------------------------------------------------------


@pytest.mark.parametrize("version", VERSIONS)
def test_shutdown_rejects_new_requests_as_busy(version: str) -> None:
    harness = server(version)
    harness.receive(call(1, version))
    harness.conn.shutdown()
    assert harness.state() is State.CLOSING
    assert_error(harness.error_response_to(call(2, version)), BUSY_CODES[version], 2, "shut down")
    if version != E:
        assert harness.response_to(ping(3)) == result(3)
    assert harness.conn.send_progress(1, 0.5) is False
    assert harness.conn.send_result(1, EMPTY)
    assert single(harness.take_sent())["id"] == 1
    harness.conn.close()
    assert_closed(harness.events(), error=None)
    assert harness.state() is State.CLOSED


def test_shutdown_then_eof_closes_connection() -> None:
    harness = server(D)
    harness.receive(call(1))
    harness.conn.shutdown()
    assert type_names(harness.receive_eof()) == ["ConnectionClosed"]
    assert harness.conn.send_result(1, EMPTY)
    harness.conn.close()
    assert harness.events() == []


def test_shutdown_runs_waiting_requests() -> None:
    harness = server(D, in_flight=1)
    harness.receive(call(1), call(2))
    harness.conn.shutdown()
    harness.conn.send_result(1, EMPTY)
    assert only_event(harness.events(), RequestReceived).id == 2


def test_shutdown_cancels_nothing_until_close() -> None:
    harness = server(D)
    harness.receive(call(1))
    harness.conn.shutdown()
    harness.conn.shutdown()
    assert harness.events() == []
    harness.conn.close()
    assert type_names(harness.events()) == ["RequestCancelled", "ConnectionClosed"]
    harness.conn.shutdown()
    assert harness.state() is State.CLOSED


def test_shutdown_sends_no_keep_alive_ping() -> None:
    harness = keep_alive_connection(Role.SERVER, D)
    harness.conn.shutdown()
    assert harness.advance_time(10.0) == []
    assert harness.take_sent() == []


def test_shutdown_of_client_does_nothing() -> None:
    harness = client(D)
    harness.conn.shutdown()
    assert harness.state() is State.READY


# -- What it counts --------------------------------------------------------------------------------


def test_connection_stats_count_bytes_of_each_way_to_receive() -> None:
    """Lines of a stream, a message by itself, and a body that was parsed before."""
    harness = server(D)
    before = harness.conn.stats().received
    data = line(call(1))
    harness.conn.receive_data(data, 0.0)
    body = encoded(call(2))
    harness.conn.receive_message(body, 0.0)
    harness.conn.receive_parsed(parse_body(body, Limits()), 0.0, MessageContext())
    assert harness.conn.stats().received == before + len(data) + 2 * len(body)


def test_connection_stats_count_messages_and_bytes() -> None:
    """After the close nothing is counted as open or buffered, even if more bytes arrive."""
    harness = server(D, in_flight=1)
    before = harness.conn.stats()
    data = line(call(1)) + line(call(2)) + line("{}") + b"half"
    harness.conn.receive_data(data, 0.0)
    assert harness.conn.stats().buffered == len(data)
    assert type_names([harness.conn.next_event()]) == ["RequestReceived"]  # type: ignore[list-item]
    assert type_names(harness.events()) == ["MessageRejected"]
    harness.conn.send_request("roots/list")
    stats = harness.conn.stats()
    queued = harness.conn.queued()
    assert queued > 0
    assert stats == Stats(
        in_flight=1,
        waiting=1,
        calls=1,
        events=0,
        buffered=4,
        queued=queued,
        received=before.received + len(data),
        sent=before.sent,
        rejected=1,
    )
    harness.take_sent()
    assert harness.conn.stats().sent == before.sent + queued
    harness.conn.close()
    assert harness.conn.stats().events == 2
    assert isinstance(harness.events()[-1], ConnectionClosed)
    harness.conn.send_result(1, EMPTY)
    harness.conn.receive_data(b"more", 0.0)
    after = harness.conn.stats()
    assert (after.in_flight, after.waiting, after.calls, after.events, after.buffered) == (
        0,
        0,
        0,
        0,
        0,
    )
