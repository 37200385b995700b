"""`WebSocket` without frames: messages, close codes, timeouts and back-pressure."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import json

from mcp_core import (
    NEED_DATA,
    PAUSED,
    Config,
    Connection,
    ConnectionClosed,
    ConnectionLost,
    ErrorReceived,
    Limits,
    LocalProtocolError,
    MessageRejected,
    PeerReady,
    RemoteProtocolError,
    ResultReceived,
    Role,
)
from mcp_core import types as t
from mcp_core.http import Close, Ping, Text, WebSocket
from mcp_core.protocol.jsonrpc._body import ParsedBody
from mcp_core.registry import Server
from tests.harness.wire.router import (
    D,
    E,
    initialize,
    meta,
    request,
)
from tests.harness.wire.websocket_router import WebSocketClient, WebSocketHarness
from tests.levels import fewer_examples

INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}
VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", D, E)


def open_played(version: str = D, harness: WebSocketHarness | None = None) -> WebSocketClient:
    played = (harness or WebSocketHarness()).connect()
    if version != E:
        (answer,) = played.send(initialize(version))
        assert answer["result"]["protocolVersion"] == version
        assert played.send(INITIALIZED) == []
    return played


def call(version: str, id: int, name: str = "echo", **arguments: Any) -> dict[str, Any]:
    params = {
        "name": name,
        "arguments": arguments,
        "_meta": meta() if version == E else {"progressToken": id},
    }
    return request(id, "tools/call", params)


# -- Messages ------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.requirement("CUST-1")
def test_websocket_call_in_each_revision_is_answered(version: str) -> None:
    played = open_played(version)
    (answer,) = played.send(call(version, 1, text="hi"))
    assert (answer["id"], answer["result"]["content"][0]["text"]) == (1, "hi")


@pytest.mark.parametrize("version", VERSIONS[:-1])
def test_websocket_progress_precedes_result(version: str) -> None:
    played = open_played(version)
    played.send(call(version, 1, "count", to=2))
    played.harness.step(3)
    received = played.output()
    assert [each.get("method") for each in received] == ["notifications/progress"] * 2 + [None]


@pytest.mark.parametrize("version", VERSIONS)
def test_websocket_cancelled_notification_stops_call(version: str) -> None:
    played = open_played(version)
    played.send(call(version, 1, "slow", steps=9))
    params: dict[str, Any] = {"requestId": 1}
    assert (
        played.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}) == []
    )
    played.harness.step(2)
    assert played.harness.jobs == {}
    assert played.output() == []


def test_websocket_server_request_is_answered() -> None:
    harness = WebSocketHarness()
    played = harness.connect()
    played.send(initialize(D, elicitation={}))
    played.send(INITIALIZED, call(D, 1, "ask"))
    harness.step()
    (question,) = played.output()
    assert question["method"] == "elicitation/create"
    result = {"action": "accept", "content": {"name": "Ann"}}
    played.send({"jsonrpc": "2.0", "id": question["id"], "result": result})
    harness.step()
    assert played.output()[0]["result"]["content"][0]["text"].startswith("accept")


def test_websocket_change_notifications_in_both_eras() -> None:
    old, new = open_played(), open_played(E)
    listen = request(
        1, "subscriptions/listen", {"notifications": {"toolsListChanged": True}, "_meta": meta()}
    )
    assert [each["method"] for each in new.send(listen)] == [
        "notifications/subscriptions/acknowledged"
    ]
    for played in (old, new):
        played.harness.server.changed(tools=True)
        played.harness.pump()
        assert [each["method"] for each in played.output()] == ["notifications/tools/list_changed"]


def test_websocket_request_with_too_many_values_gets_an_error_response() -> None:
    harness = WebSocketHarness(Server("small", limits=Limits(decoded=50_000)))
    played = open_played(D, harness)
    (answer,) = played.send(request("r", "tools/call", {"name": "a", "a": [[]] * 800}))
    assert (answer["id"], answer["error"]["code"]) == ("r", -32700)
    assert "too many values: decoded, they take about 90" in answer["error"]["message"]
    assert played.send(request("s", "ping"))[0]["result"] == {}


def test_websocket_response_with_too_many_values_fails_its_request() -> None:
    socket = opened(limits=Limits(decoded=50_000))
    ids = [socket.conn.send_request("ping") for _ in range(2)]
    for id, value in zip(ids, ([[]] * 800, 1), strict=True):
        answer = {"jsonrpc": "2.0", "id": id, "result": {"a": value}}
        socket.receive_text(json.encode(answer).decode(), 1.0)
    rejected, failed, received = socket.next_event(), socket.next_event(), socket.next_event()
    assert isinstance(rejected, MessageRejected)
    assert isinstance(failed, ErrorReceived)
    assert failed.id == ids[0]
    assert "too many values" in str(failed.error)
    assert isinstance(received, ResultReceived)
    assert received.id == ids[1]
    assert not socket.done


# -- How it ends ---------------------------------------------------------------------------------

LIMIT = 100_000


def text(*pieces: str) -> Callable[[WebSocketClient], None]:
    def act(played: WebSocketClient) -> None:
        for number, piece in enumerate(pieces, 1):
            played.socket.receive_text(piece, played.harness.now, end=number == len(pieces))

    return act


def garbage(times: int, apart: float = 0.0) -> Callable[[WebSocketClient], None]:
    def act(played: WebSocketClient) -> None:
        for _ in range(times):
            played.harness.wait(apart)
            played.socket.receive_text("no JSON", played.harness.now)
            played.settle()

    return act


def pieces_without_end(played: WebSocketClient) -> None:
    for _ in range(11):
        played.socket.receive_text("x" * (LIMIT // 10), played.harness.now, end=False)


def second_frame_too_long(played: WebSocketClient) -> None:
    played.socket.receive_frame_head(LIMIT // 2)
    played.socket.receive_text("x" * (LIMIT // 2), played.harness.now, end=False)
    played.socket.receive_frame_head(LIMIT // 2 + 1)


ENDS: list[tuple[str, Callable[[WebSocketClient], object], int | None]] = [
    # case, input, code of the Close or None
    ("a binary message", lambda p: p.socket.receive_binary(), 1003),
    ("the head of a frame of 2^62 bytes", lambda p: p.socket.receive_frame_head(1 << 62), 1009),
    (
        "the head of a frame of the longest message",
        lambda p: p.socket.receive_frame_head(LIMIT),
        None,
    ),
    ("one byte more", lambda p: p.socket.receive_frame_head(LIMIT + 1), 1009),
    ("a fragment for which there is no room", second_frame_too_long, 1009),
    ("fragments without end", pieces_without_end, 1009),
    ("an unannounced message", text("x" * (LIMIT + 1)), 1009),
    (
        "no UTF-8",
        lambda p: p.socket.receive_invalid(1007, "invalid start byte", p.harness.now),
        1007,
    ),
    ("no frame", lambda p: p.socket.receive_invalid(1002, "Invalid opcode", p.harness.now), 1002),
    ("garbage twice", garbage(2), None),
    ("garbage thrice", garbage(3), 1007),
    ("garbage thrice within 9.8 seconds", garbage(3, 4.9), 1007),
    ("garbage thrice within 10 seconds", garbage(3, 5.0), None),
    ("an empty message", text(""), None),
    ("a surrogate", text('"\ud800"'), None),
    ("internal error", lambda p: p.socket.fail(p.harness.now), 1011),
    ("a Close", lambda p: p.socket.receive_close(1000, "", p.harness.now), 1000),
    (
        "a Close with a code of its own",
        lambda p: p.socket.receive_close(4001, "so", p.harness.now),
        4001,
    ),
    ("a Close without a code", lambda p: p.socket.receive_close(1005, "", p.harness.now), 1000),
    ("the server stops", lambda p: p.harness.router.close(), 1001),
    ("the end of the stream", lambda p: p.socket.receive_eof(p.harness.now), None),
]


@pytest.mark.parametrize("stage", ["before the first message", "open", "at work"])
@pytest.mark.parametrize(("act", "code"), [row[1:] for row in ENDS], ids=[row[0] for row in ENDS])
def test_websocket_end_sends_close_code(
    act: Callable[[WebSocketClient], None], code: int | None, stage: str
) -> None:
    played = WebSocketHarness().connect() if stage == "before the first message" else open_played()
    if stage == "at work":
        played.send(call(D, 1, "slow", steps=3))
    act(played)
    played.settle()
    received = [each for each in played.output() if not isinstance(each, dict)]
    assert received == ([] if code is None else [code])
    if code is not None:
        played.harness.step(2)
        assert played.harness.jobs == {}
        assert played.conversation not in played.harness.endpoint.one_shots
        assert played.output() == [], "output after the Close"


def test_websocket_invalid_json_is_answered_until_limit() -> None:
    played = open_played()
    received = played.send("a", "b", "c", "d")
    assert [each["error"]["code"] for each in received[:-1]] == [-32700] * 3
    assert received[-1] == 1007


def test_websocket_message_before_error_is_answered() -> None:
    played = open_played()
    played.socket.receive_text(json.encode(request(1, "ping")).decode(), 0.0)
    played.socket.receive_binary()
    played.settle()
    answer, code = played.output()
    assert (answer["id"], code) == (1, 1003)


def test_websocket_input_after_error_is_ignored() -> None:
    played = open_played()
    played.socket.receive_binary()
    assert played.send(call(D, 1)) == [1003]
    played.socket.receive_invalid(1002, "?", 0.0)
    played.socket.receive_frame_head(1 << 62)
    assert played.socket.input_ignored
    assert played.output() == []


@pytest.mark.parametrize(
    "act",
    [
        lambda s: s.refuse("too much of everything"),
        lambda s: s.receive_binary(),
        lambda s: s.receive_invalid(1002, "?", 0.0),
        lambda s: s.receive_frame_head(1 << 62),
        lambda s: s.receive_close(1000, "", 0.0),
        lambda s: s.receive_eof(0.0),
    ],
)
def test_websocket_end_frees_message_that_has_begun(act: Callable[[WebSocket], object]) -> None:
    socket = opened()
    socket.receive_text("[1,", 1.0, end=False)
    assert socket.buffered == 3
    act(socket)
    assert socket.buffered == 0
    socket.receive_text("2,", 1.0, end=False)
    assert socket.buffered == 0


def test_websocket_peer_close_follows_queued_output() -> None:
    played = open_played()
    played.socket.receive_text(json.encode(request(1, "ping")).decode(), 0.0)
    played.socket.receive_ping(b"?", 0.0)
    played.socket.receive_close(1001, "", 0.0)
    assert played.socket.input_ignored
    played.settle()
    assert played.output() == [("pong", b"?"), {"jsonrpc": "2.0", "id": 1, "result": {}}, 1001]
    assert played.is_over()
    assert not played.is_gone()


def test_websocket_peer_close_without_reading_is_disconnected() -> None:
    played = open_played()
    played.socket.receive_close(1001, "", 0.0)
    played.settle()
    played.harness.wait(1.1)
    assert played.is_gone()


def test_websocket_both_closes_end_it() -> None:
    played = open_played()
    played.harness.router.close()
    played.harness.pump()
    assert played.output() == [1001]
    assert not played.is_over()
    played.socket.receive_close(1001, "", 0.0)
    assert played.is_over()
    played.socket.receive_eof(0.0)
    assert not played.is_gone()
    assert repr(played.socket).startswith(
        "<WebSocket closing with 1001 of <Connection server CLOSED"
    )


def test_websocket_close_timeout_disconnects() -> None:
    played = open_played()
    played.harness.router.close()
    played.harness.pump()
    assert played.output() == [1001]
    played.settle()
    played.harness.wait(0.9)
    assert not played.is_gone()
    played.harness.wait(0.2)
    assert played.is_gone()
    assert played.is_over()
    assert repr(played.socket).startswith("<WebSocket gone of")
    played.harness.wait(31.0)
    assert played.harness.router.next_deadline() is None


def test_websocket_close_reason_is_truncated() -> None:
    socket = client()
    socket.conn.close(ConnectionLost("é" * 200))
    (close,) = ended(socket)
    assert close == Close(1008, "é" * 61)


# -- Timeouts ------------------------------------------------------------------------------------


def test_websocket_silent_peer_is_pinged_then_closed() -> None:
    played = open_played()
    played.settle()
    played.harness.wait(19.9)
    assert played.output() == []
    played.harness.wait(0.2)
    assert played.output() == ["ping"]
    played.settle()
    played.harness.wait(20.0)
    assert played.output() == [1002]


@pytest.mark.parametrize("sign", ["receive_pong", "text", "ping"])
def test_websocket_any_input_answers_ping(sign: str) -> None:
    """The peer needn't send a pong if it sends anything else before the timeout."""
    played = open_played()
    for _ in range(3):
        played.settle()
        played.harness.wait(20.1)
        assert played.output() == ["ping"]
        played.harness.wait(15.0)
        if sign == "text":
            played.send("")
        elif sign == "ping":
            played.socket.receive_ping(b"x", played.harness.now)
            assert played.output() == [("pong", b"x")]
        else:
            played.socket.receive_pong(played.harness.now)
    played.settle()
    played.harness.wait(19.9)
    assert played.output() == []


def test_websocket_without_frames_sends_no_ping() -> None:
    played = open_played()
    played.socket.disable_keep_alive()
    played.send(request(1, "ping"))
    played.harness.wait(1000.0)
    assert played.output() == []


def test_websocket_without_frames_drops_pending_ping() -> None:
    played = open_played()
    played.settle()
    played.harness.wait(20.1)
    played.socket.disable_keep_alive()
    assert played.output() == []


def test_websocket_ping_flood_gets_last_pongs() -> None:
    played = open_played()
    for number in range(100):
        played.socket.receive_ping(b"%d" % number, 0.0)
    assert played.output() == [("pong", b"%d" % number) for number in range(84, 100)]


def test_websocket_without_first_message_is_closed() -> None:
    played = WebSocketHarness().connect()
    played.socket.receive_pong(20.0)
    played.harness.wait(29.9)
    assert played.output() == []
    played.socket.receive_pong(29.9)
    played.settle()
    played.harness.wait(0.2)
    assert played.output() == [1008]


def test_websocket_write_timeout_disconnects() -> None:
    played = open_played()
    played.send()
    played.socket.receive_text(json.encode(call(D, 1)).decode(), 0.0)
    played.settle()
    assert len(played.socket.messages_to_send(0.0)) == 1
    played.settle()
    for now in (10.0, 25.0, 40.0):
        played.harness.wait(now - played.harness.now)
        played.socket.receive_pong(now)
        played.settle()
        assert played.is_gone() is (now > 30.0)
    played.harness.step()
    assert played.conversation not in played.harness.endpoint.one_shots


def test_websocket_partial_write_restarts_timeout() -> None:
    played = open_played()
    played.socket.receive_text(json.encode(call(D, 1)).decode(), 0.0)
    played.settle()
    assert played.socket.messages_to_send(0.0)
    for now in (15.0, 30.0, 45.0):
        played.harness.wait(now - played.harness.now)
        played.socket.receive_pong(now)
        played.socket.data_written(now)
        played.settle()
    assert not played.is_gone()
    assert played.output() == []
    played.harness.wait(15.0)
    assert not played.is_gone()


def test_websocket_ping_waits_for_pending_write() -> None:
    """A ping would wait behind the pending output. The progress of that output is sign enough."""
    played = open_played()
    played.socket.receive_text(json.encode(call(D, 1)).decode(), 0.0)
    played.settle()
    assert played.socket.messages_to_send(0.0)
    for now in (15.0, 30.0, 45.0, 60.0):
        played.harness.wait(now - played.harness.now)
        played.socket.data_written(now)
        played.settle()
    assert played.output() == []
    played.harness.wait(20.1)
    assert played.output() == ["ping"]
    played.settle()
    played.harness.wait(20.1)
    assert played.output() == [1002]


def test_websocket_close_timeout_starts_after_write() -> None:
    """The peer's time to close begins when it can have received our Close."""
    played = open_played()
    played.socket.receive_text(json.encode(call(D, 1)).decode(), 0.0)
    played.settle()
    played.harness.router.close()
    played.settle()
    answer, close = played.socket.messages_to_send(0.0)
    assert isinstance(answer, Text)
    assert isinstance(close, Close)
    for now in (25.0, 50.0):
        played.harness.wait(now - played.harness.now)
        played.socket.data_written(now)
        played.settle()
    played.harness.wait(25.0)
    assert played.socket.messages_to_send(75.0) == []
    played.settle()
    played.harness.wait(0.9)
    assert not played.is_gone()
    played.harness.wait(0.2)
    assert played.is_gone()


def piece(played: WebSocketClient, size: int) -> None:
    played.socket.receive_text("x" * size, played.harness.now, end=False)
    played.settle()


def test_websocket_slow_message_is_closed() -> None:
    played = open_played()
    piece(played, 30 * 1024)
    for _ in range(5):
        played.harness.wait(14.9)
        piece(played, 1)
    assert played.output() == [1008]


def test_websocket_message_at_minimum_rate_is_accepted() -> None:
    played = open_played()
    for _ in range(6):
        piece(played, 15 * 1024)
        played.harness.wait(14.9)
    assert played.output() == []
    (bad,) = played.send("")
    assert bad["error"]["code"] == -32700
    played.socket.disable_keep_alive()
    played.harness.wait(100.0)
    assert played.output() == []


def test_websocket_message_over_five_minutes_is_closed() -> None:
    """However steadily it grows. A message before it takes none of its time."""
    socket = with_check(lambda body: None)
    socket.disable_keep_alive()
    for start in (0, 300):
        for now in range(start, start + 300, 30):
            socket.handle_timeout(now)
            assert ended(socket) == []
            socket.receive_text("x" * (30 * 1024), now, end=False)
        if start == 0:
            socket.receive_text("", 299.0)
    socket.handle_timeout(600.0)
    assert ended(socket) == [Close(1008, "a message arrives too slowly")]


def test_websocket_growth_counts_for_one_message() -> None:
    socket = with_check(lambda body: None)
    socket.disable_keep_alive()
    socket.receive_text("x" * (30 * 1024), 0.0, end=False)
    socket.receive_text("", 0.0)
    socket.receive_text("x", 10.0, end=False)
    socket.handle_timeout(39.9)
    assert ended(socket) == []
    socket.handle_timeout(40.0)
    assert ended(socket) == [Close(1008, "a message arrives too slowly")]


def test_websocket_message_waits_while_reading_is_paused() -> None:
    """A client that isn't read can't make its message grow."""
    socket = with_check(lambda body: "not you")
    socket.disable_keep_alive()
    batch = json.encode([request(id, "ping") for id in range(100)]).decode()
    while socket.next_event() is not PAUSED:
        socket.receive_text(batch, 0.0)
    socket.receive_text("[", 0.0, end=False)
    socket.handle_timeout(30.0)
    assert socket.next_event() is PAUSED
    assert socket.next_deadline() == 60.0
    assert socket.messages_to_send(59.0)
    assert socket.next_event() is NEED_DATA
    socket.handle_timeout(60.0)
    assert ended(socket) == [Close(1008, "a message arrives too slowly")]


def test_websocket_lost_leaves_no_deadline() -> None:
    harness = WebSocketHarness()
    for _ in range(5):
        played = open_played(harness=harness)
        played.socket.disable_keep_alive()
        played.socket.receive_eof(harness.now)
        played.settle()
    harness.wait(31.0)
    assert harness.router.next_deadline() is None


def test_websocket_write_timeout_ends_after_thirty_seconds() -> None:
    socket = opened()
    socket.receive_ping(b"", 2.0)
    assert socket.messages_to_send(2.0)
    socket.receive_ping(b"", 31.9)
    socket.handle_timeout(31.9)
    assert not bool(socket.disconnected)
    socket.handle_timeout(32.0)
    assert bool(socket.disconnected)
    assert ended(socket) == []


def test_websocket_peer_close_again_extends_no_timeout() -> None:
    socket = opened()
    for now in (2.0, 2.9):
        socket.receive_close(1000, "", now)
    assert socket.next_deadline() == 3.0
    socket.handle_timeout(3.0)
    assert socket.disconnected
    assert ended(socket) == []
    assert socket.next_deadline() is None


def test_websocket_closing_has_no_deadline_until_its_close_is_sent() -> None:
    """It isn't pinged any more, and the driver has nothing to wake up for."""
    socket = with_check(lambda body: None, token_expiry=15.0, first_message_timeout=10.0)
    socket.receive_text("[", 0.0, end=False)
    socket.fail(1.0)
    assert socket.next_deadline() is None
    for now in (10.0, 15.0, 20.0, 30.0):
        socket.handle_timeout(now)
    assert ended(socket) == [Close(1011, "internal error")]
    socket = opened()
    socket.fail(1.0)
    socket.handle_timeout(21.0)
    assert ended(socket) == [Close(1011, "internal error")]


class SocketLog:
    """A recorder that keeps what it gets."""

    def __init__(self) -> None:
        self.log: list[tuple[Any, ...]] = []

    def received(self, data: bytes) -> None:
        self.log.append(("<", data))

    def sent(self, data: bytes) -> None:
        self.log.append((">", data))

    def received_close(self, code: int, reason: str) -> None:
        self.log.append(("<", code, reason))

    def sent_close(self, code: int, reason: str) -> None:
        self.log.append((">", code, reason))


def test_websocket_is_recorded_with_its_closes_and_without_pings() -> None:
    """Whole messages and both closes are recorded, in the order in which they cross."""
    socket = opened()
    socket.recorder = recorder = SocketLog()
    ping = json.encode(request(7, "ping")).decode()
    socket.receive_text(ping[:9], 1.0, end=False)
    socket.receive_text(ping[9:], 1.0)
    socket.receive_ping(b"?", 1.0)
    assert socket.next_event() is NEED_DATA
    assert len(socket.messages_to_send(1.0)) == 2
    socket.receive_close(1001, "bye\n", 1.0)
    assert ended(socket) == [Close(1001)]
    socket.receive_eof(1.0)
    answer = b'{"jsonrpc":"2.0","id":7,"result":{}}'
    assert recorder.log == [
        ("<", ping.encode()),
        (">", answer),
        ("<", 1001, "bye "),
        (">", 1001, ""),
    ]


def test_websocket_broken_off_is_recorded_once() -> None:
    socket = opened()
    assert not any((socket.paused, socket.input_ignored, socket.disconnected, socket.done))
    socket.recorder = recorder = SocketLog()
    for _ in range(2):
        socket.receive_eof(1.0)
    assert ended(socket) == []
    assert recorder.log == [("<", 1006, "")]


OUTPUTS: list[Callable[[WebSocket], object]] = [
    lambda s: s.receive_ping(b"", 0.0),
    lambda s: s.receive_text(json.encode(request(1, "tools/list")).decode(), 0.0),
    lambda s: s.handle_timeout(20.0),
    lambda s: s.fail(0.0),
    lambda s: s.receive_eof(0.0),
]


@pytest.mark.parametrize("act", OUTPUTS, ids=["pong", "rejection", "ping", "close", "done"])
def test_websocket_has_output_wakes_writer(act: Callable[[WebSocket], object]) -> None:
    socket = with_check(lambda body: "not you")
    assert not bool(socket.has_output)
    act(socket)
    while socket.next_event() is not NEED_DATA:
        pass
    assert bool(socket.has_output)
    assert bool(socket.messages_to_send(20.0)) is not socket.done
    assert socket.has_output is socket.done


# -- Back-pressure -------------------------------------------------------------------------------


def test_websocket_request_flood_pauses_reading() -> None:
    played = open_played()
    limits = played.harness.server.config().limits
    most = limits.in_flight + limits.waiting
    for id in range(1, most + 10):
        played.socket.receive_text(json.encode(call(D, id, "slow", steps=1)).decode(), 0.0)
    played.settle()
    assert played.is_paused()
    assert repr(played.socket).startswith("<WebSocket open, paused of")
    assert played.output() == []
    for _ in range(6):
        played.harness.step()
    assert not played.is_paused()
    assert len(played.output()) == most + 9


def test_websocket_pause_timeout_rejects_waiting_requests() -> None:
    played = open_played()
    limits = played.harness.server.config().limits
    for id in range(1, limits.in_flight + limits.waiting + 10):
        played.socket.receive_text(json.encode(call(D, id, "slow", steps=99)).decode(), 0.0)
    played.settle()
    assert played.is_paused()
    played.harness.wait(limits.pause)
    assert not played.is_paused()
    assert {each["error"]["code"] for each in played.output()} == {-32000}


def test_websocket_unread_responses_pause_reading() -> None:
    played = open_played()
    for id in range(1, 30):
        played.socket.receive_text(json.encode(call(D, id, text="x" * 60_000)).decode(), 0.0)
        played.settle()
    assert played.is_paused()
    assert played.conversation.write_blocked(1)
    assert played.conversation.queued(None) > 1 << 20
    played.harness.wait(25.0)  # the silence is ours
    assert len(played.output()) == 29
    assert not played.is_paused()
    assert not played.conversation.write_blocked(1)


# -- The client side -----------------------------------------------------------------------------


def client(version: str = D, **options: Any) -> WebSocket:
    config = Config(
        t.Implementation(name="c", version="1"),
        t.ClientCapabilities(),
        versions=[version],
        **options,
    )
    socket = WebSocket(Connection(Role.CLIENT, config), 0.0)
    socket.conn.open(0.0)
    return socket


def ended(socket: WebSocket) -> list[Any]:
    while socket.next_event() is not NEED_DATA:
        pass
    return [each for each in socket.messages_to_send(0.0) if not isinstance(each, Text)]


def opened(**options: Any) -> WebSocket:
    socket = client(**options)
    (question,) = socket.messages_to_send(0.0)
    assert isinstance(question, Text)
    result = {"protocolVersion": D, "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}
    answer = {"jsonrpc": "2.0", "id": json.decode(question.text)["id"], "result": result}
    socket.receive_text(json.encode(answer).decode(), 1.0)
    assert isinstance(socket.next_event(), PeerReady)
    assert socket.next_event() is NEED_DATA
    assert bool(socket.has_output)
    assert len(socket.messages_to_send(1.0)) == 1
    assert socket.messages_to_send(1.0) == []
    assert not bool(socket.has_output)
    return socket


CLIENT_ENDS: list[tuple[Callable[[WebSocket], object], str, list[Any]]] = [
    # begin, event, error at the client, frames to the server
    (lambda s: s.receive_close(1001, "bye\n", 1.0),
        r"the server closed the WebSocket \(1001, bye \)", [Close(1001)]),
    (lambda s: s.receive_close(1005, "", 1.0), r"the server closed the WebSocket \(1005\)",
        [Close(1000)]),
    (lambda s: s.receive_eof(1.0), "the server broke off the connection", []),
    (lambda s: s.receive_binary(), "messages are text", [Close(1003, "messages are text")]),
    (lambda s: s.receive_frame_head(1 << 62), "longer than 33554432 bytes",
        [Close(1009, "the message is longer than 33554432 bytes")]),
    (lambda s: s.receive_invalid(1002, "Invalid opcode", 1.0), "Invalid opcode",
        [Close(1002, "Invalid opcode")]),
]  # fmt: skip


@pytest.mark.parametrize("begin", [client, opened])
@pytest.mark.parametrize(("act", "error_text", "sent"), CLIENT_ENDS)
def test_websocket_client_end_raises_matching_error(
    begin: Callable[[], WebSocket],
    act: Callable[[WebSocket], object],
    error_text: str,
    sent: list[Any],
) -> None:
    socket = begin()
    act(socket)
    closed = socket.next_event()
    assert isinstance(closed, ConnectionClosed)
    assert isinstance(closed.error, ConnectionLost | RemoteProtocolError)
    with pytest.raises(type(closed.error), match=error_text):
        raise closed.error
    assert ended(socket) == sent


def test_websocket_client_close_sends_1000() -> None:
    socket = opened()
    socket.conn.close()
    assert ended(socket) == [Close(1000)]
    with pytest.raises(LocalProtocolError):
        socket.conn.send_request("ping")


def test_websocket_client_pings_silent_server() -> None:
    socket = opened()
    assert socket.next_deadline() == 21.0
    socket.handle_timeout(21.0)
    assert [socket.messages_to_send(21.0) for _ in range(2)] == [[Ping()], []]
    socket.handle_timeout(41.0)
    assert ended(socket) == [Close(1002, "no answer to a ping within 20 s")]


def test_websocket_client_failed_negotiation_sends_1000() -> None:
    socket = client()
    (question,) = socket.messages_to_send(0.0)
    assert isinstance(question, Text)
    error = {"code": -32602, "message": "no"}
    answer = {"jsonrpc": "2.0", "id": json.decode(question.text)["id"], "error": error}
    socket.receive_text(json.encode(answer).decode(), 1.0)
    assert ended(socket) == [Close(1000)]


def test_websocket_callback_gets_whole_messages() -> None:
    received: list[bytes] = []
    config = Config(t.Implementation(name="c", version="1"), t.ClientCapabilities(), versions=[D])
    socket = WebSocket(Connection(Role.CLIENT, config), 0.0, on_message=received.append)
    socket.receive_text("{", 0.0, end=False)
    socket.receive_text("}", 0.0)
    assert received == [b"{}"]


# -- Split messages ------------------------------------------------------------------------------


@fewer_examples(5)
@given(st.lists(st.integers(0, 200), max_size=6))
def test_websocket_message_any_split_is_same(cuts: list[int]) -> None:
    message = json.encode(call(E, 1, text="ä€𝄞")).decode()
    played = open_played(E)
    marks = [0, *sorted(min(cut, len(message)) for cut in cuts), len(message)]
    for start, end in pairwise(marks):
        played.socket.receive_frame_head(end - start)
        played.socket.receive_text(message[start:end], 0.0, end=False)
    played.socket.receive_text("", 0.0)
    played.settle()
    (answer,) = played.output()
    assert answer["result"]["content"][0]["text"] == "ä€𝄞"


def test_websocket_next_event_returns_paused() -> None:
    """`Pump` stops at a paused connection."""
    played = open_played()
    for id in range(1, 30):
        played.socket.receive_text(json.encode(call(D, id, text="x" * 60_000)).decode(), 0.0)
        played.settle()
    assert played.socket.next_event() is PAUSED


# -- Authorization -------------------------------------------------------------------------------


def with_check(find_rejection: Callable[[ParsedBody], str | None], **options: Any) -> WebSocket:
    config = Config(t.Implementation(name="s", version="1"), t.ServerCapabilities())
    return WebSocket(Connection(Role.SERVER, config), 0.0, find_rejection=find_rejection, **options)


def test_websocket_rejected_messages_get_error_responses() -> None:
    """Nothing rejected may reach the connection, while the good ping is still answered."""
    socket = with_check(lambda body: None if body.method == "ping" else "not you")
    for message in (
        request(1, "tools/list"),
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        [request("a", "tools/list"), request(3, "prompts/list")],
        request(4, "ping"),
    ):
        socket.receive_text(json.encode(message).decode(), 0.0)
    assert socket.has_output
    assert socket.next_event() is NEED_DATA
    sent = [
        json.decode(each.text) for each in socket.messages_to_send(0.0) if isinstance(each, Text)
    ]
    assert sent.pop(0) == {"jsonrpc": "2.0", "id": 4, "result": {}}
    assert [(each["id"], each["error"]) for each in sent] == [
        (id, {"code": -32600, "message": "not you"}) for id in (1, "a", 3)
    ]


def test_websocket_unread_rejections_pause_reading() -> None:
    socket = with_check(lambda body: "not you")
    batch = json.encode([request(id, "ping") for id in range(100)]).decode()
    while socket.next_event() is not PAUSED:
        socket.receive_text(batch, 0.0)
    assert 1 << 20 < socket.queued() < 2 << 20
    assert socket.messages_to_send(0.0)
    assert socket.next_event() is NEED_DATA


def test_websocket_token_expiry_closes() -> None:
    socket = with_check(lambda body: None, token_expiry=15.0, first_message_timeout=10.0)
    socket.receive_text("", 1.0)
    assert socket.next_deadline() == 15.0
    socket.handle_timeout(14.9)
    assert ended(socket) == []
    socket.handle_timeout(15.0)
    assert ended(socket) == [Close(1008, "the token has expired")]
