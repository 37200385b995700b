"""One request and its response: the body in pieces, the kind of response, and disconnects."""

from __future__ import annotations

import math
import tracemalloc
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec import json

from mcp_core import DIALECTS
from mcp_core.http import Body, End, Exchange, Head, RequestHead
from mcp_core.http.server._exchange import ResponseMode
from mcp_core.http.server._stream import EventStream
from mcp_core.http.wire._messages import ErrorResponse
from tests.core.http.test_isolation import B, Fifty, cancelled, left_over
from tests.harness.wire.router import (
    POST,
    D,
    Reply,
    RouterHarness,
    SessionClient,
    initialize,
    meta,
    request,
)

MODERN = [
    *POST,
    (b"mcp-protocol-version", b"2026-07-28"),
    (b"mcp-method", b"tools/call"),
    (b"mcp-name", b"echo"),
]
CALL = json.encode(
    request(1, "tools/call", {"name": "echo", "arguments": {"text": "x"}, "_meta": meta()})
)


def begin(harness: RouterHarness, headers: Any = MODERN) -> Reply:
    exchange = harness.router.begin(RequestHead(b"POST", b"/mcp", headers), harness.now)
    reply = harness.replies[exchange] = Reply(exchange)
    return reply


# -- The beginning ---------------------------------------------------------------------------------


def test_exchange_begins_unread_and_unanswered() -> None:
    """The head, the body and the endpoint set the rest later, each where it is known."""
    exchange = Exchange(None, "token")
    shown = {name: getattr(exchange, name) for name in Exchange.__slots__ if name[0] != "_"}
    assert shown == {
        "address": "",
        "auth_check": None,
        "begins_session": False,
        "body_limit": 0,
        "buffered": 0,
        "client": None,
        "close_after": False,
        "conversation": None,
        "cursor": 0,
        "endpoint": None,
        "expires_at": math.inf,
        "extra_headers": [],
        "fields": [],
        "grant": None,
        "headers": {},
        "is_head": False,
        "is_stateless": False,
        "mcp_method": "",
        "mirrored_headers": [],
        "mode": ResponseMode.READING,
        "needed_scopes": frozenset(),
        "over": False,
        "principal": "",
        "reading": False,
        "record": None,
        "reply_format": "auto",
        "retry": 0,
        "session": None,
        "socket": None,
        "stream": None,
        "token": "token",
        "too_long": False,
        "wants_websocket": False,
    }
    assert (exchange._actions, exchange._body, exchange._streamed) == ([], [], False)
    assert exchange.receive_data(b"x", end=True) is None


def test_endpoint_begins_exchange_without_more_than_its_head() -> None:
    harness = RouterHarness()
    exchange = harness.endpoint.begin(RequestHead(b"POST", b"/mcp", MODERN), 1.0)
    shown = (exchange.token, exchange.principal, exchange.address, exchange.wants_websocket)
    assert shown == (None, "", "", False)
    assert (exchange.retry, exchange.body_limit, exchange.reading) == (1000, 100_000, True)
    assert harness.router.next_deadline() == 301.0


# -- The body --------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 2, 3, 50, 1000])
@pytest.mark.parametrize("kind", [bytes, bytearray])
def test_body_in_any_pieces_gives_the_same_response(size: int, kind: Any) -> None:
    harness = RouterHarness()
    reply = begin(harness)
    for start in range(0, len(CALL), size):
        assert reply.exchange.reading
        harness.router.receive_data(reply.exchange, kind(CALL[start : start + size]), 0)
    harness.router.receive_data(reply.exchange, b"", 0)
    assert not reply.exchange.reading
    harness.pump()
    assert reply.message_text == "x"


@pytest.mark.parametrize("pieces", [[100_000], [50_000, 50_000], [99_999, 1], [1] * 10])
def test_body_at_the_limit_is_accepted(pieces: list[int]) -> None:
    harness = RouterHarness()
    reply = begin(harness)
    for size in pieces:
        harness.router.receive_data(reply.exchange, b" " * size, 0)
    assert reply.exchange.reading
    harness.pump()
    assert reply.status == 0


@pytest.mark.parametrize("pieces", [[100_001], [100_000, 1], [1, 100_000]])
@pytest.mark.requirement("HTTP-7")
def test_body_over_the_limit_is_rejected_at_once(pieces: list[int]) -> None:
    harness = RouterHarness()
    reply = begin(harness)
    for size in pieces:
        harness.router.receive_data(reply.exchange, b" " * size, 0)
    assert not reply.exchange.reading
    harness.router.receive_data(reply.exchange, b"more", 0)
    harness.router.receive_data(reply.exchange, b"", 0)
    harness.pump()
    assert (reply.status, reply.exchange.close_after, reply.ended) == (413, True, True)
    assert reply.exchange.buffered == 0
    assert left_over(harness) == {}


def test_pieces_of_a_body_are_joined_to_blocks_and_at_last_to_the_body() -> None:
    exchange = Exchange(None, "token")
    exchange.reading, exchange.body_limit = True, 200_000
    pieces = [bytes([n]) * size for n, size in enumerate([20_000, 10_000, 5_000, 1, 40_000, 2, 3])]
    for piece in pieces:
        assert exchange.receive_data(piece) is None
    assert [len(each) for each in exchange._body] == [35_000, 40_001, 5]
    assert exchange.buffered == 75_006
    assert exchange.receive_data(b"end", end=True) == b"".join(pieces) + b"end"
    assert (exchange.buffered, exchange._body, exchange.reading) == (0, [], False)
    assert exchange.receive_data(b"more", end=True) is None


@pytest.mark.parametrize(
    ("pieces", "blocks"),
    [
        ([5_000] * 16, [35_000, 35_000, 10_000]),
        ([32_767, 1, 1], [32_768, 1]),
        ([32_768, 32_768], [32_768, 32_768]),
        ([32_767, 32_767, 1], [65_534, 1]),
    ],
)
def test_body_in_pieces_is_held_in_blocks_of_at_least_32_kib(
    pieces: list[int], blocks: list[int]
) -> None:
    exchange = Exchange(None, "token")
    exchange.reading, exchange.body_limit = True, sum(pieces)
    sent = [bytes([place]) * size for place, size in enumerate(pieces)]
    for piece in sent:
        assert exchange.receive_data(piece) is None
    assert [len(block) for block in exchange._body] == blocks
    assert exchange.buffered == sum(pieces)
    assert exchange.receive_data(b"") == b"".join(sent)
    assert (exchange.buffered, exchange._body, exchange.reading) == (0, [], False)


def test_body_piece_is_not_the_last_one_by_default() -> None:
    harness = RouterHarness()
    reply = begin(harness)
    harness.endpoint.receive_data(reply.exchange, CALL, 0.0)
    assert reply.exchange.reading
    harness.endpoint.receive_data(reply.exchange, b" ", 0.0, end=True)
    assert not reply.exchange.reading


@pytest.mark.perf
@pytest.mark.parametrize("size", [100, 5_000, 30_000, 65_536])
def test_body_in_pieces_is_held_in_small_blocks(size: int) -> None:
    """One buffer of megabytes for each body would leave holes in the heap."""
    exchange = Exchange(None, "token")
    exchange.reading, exchange.body_limit = True, 1_000_000
    count = 1_000_000 // size
    tracemalloc.start()
    try:
        for _ in range(count):
            exchange.receive_data(bytes(bytearray(size)))  # an object of its own
        blocks = [trace.size for trace in tracemalloc.take_snapshot().traces]
    finally:
        tracemalloc.stop()
    assert exchange.buffered == count * size
    assert max(blocks) < 100_000
    assert sum(blocks) < 1.2 * exchange.buffered
    assert exchange.receive_data(b"") == bytes(count * size)
    assert exchange.buffered == 0


# -- The response ----------------------------------------------------------------------------------


def test_response_is_head_body_and_end() -> None:
    exchange = Exchange(None, "token")
    assert repr(exchange) == "<Exchange READING>"
    assert (exchange.token, exchange.queued, exchange.actions_to_send()) == ("token", 0, [])
    exchange.extra_headers = [(b"vary", b"origin")]
    exchange.respond(200, b"{}")
    assert not exchange.over
    head, body, end = exchange.actions_to_send()
    assert head == Head(
        200,
        [(b"content-type", b"application/json"), (b"content-length", b"2"), (b"vary", b"origin")],
    )
    assert (body, end, exchange.over) == (Body(b"{}"), End(), True)
    exchange.disconnected()
    assert (exchange.actions_to_send(), repr(exchange)) == ([], "<Exchange DONE>")


@pytest.mark.parametrize(
    ("status", "body", "headers", "wanted"),
    [
        (204, b"", None, []),
        (202, b"", None, [(b"content-length", b"0")]),
        (
            200,
            b"a",
            [(b"content-type", b"text/plain")],
            [(b"content-type", b"text/plain"), (b"content-length", b"1")],
        ),
    ],
)
def test_response_head_has_the_content_headers(
    status: int, body: bytes, headers: Any, wanted: Any
) -> None:
    exchange = Exchange(None, None)
    exchange.respond(status, body, headers)
    assert exchange.actions_to_send()[0] == Head(status, wanted)


def test_response_to_head_has_a_length_and_no_body() -> None:
    exchange = Exchange(None, None)
    exchange.is_head = True
    exchange.respond(200, b"abc", [])
    assert exchange.actions_to_send() == [Head(200, [(b"content-length", b"3")]), End()]


def test_disconnected_exchange_has_no_actions() -> None:
    exchange = Exchange(None, None)
    exchange.respond(200, b"abc")
    exchange.disconnected()
    exchange.disconnected()
    assert (exchange.actions_to_send(), exchange.over, repr(exchange)) == (
        [],
        False,
        "<Exchange DISCONNECTED>",
    )


@pytest.mark.parametrize("reply", ["auto", "sse", "json"])
@pytest.mark.requirement("HTTP-8", "SHL-9")
def test_cancelled_request_ends_its_response(reply: str) -> None:
    """The response is empty, and of the kind that the request accepts."""
    harness = RouterHarness(reply=reply)
    client = harness.session()
    silent = client.call(1, "slow", steps=100)
    client.post(cancelled(1))
    assert silent.ended
    if reply == "json":
        assert (silent.status, silent.body) == (202, b"")
    else:
        assert (silent.status, silent.is_stream, silent.messages) == (200, True, [])


@pytest.mark.parametrize("reply", ["auto", "sse"])
@pytest.mark.requirement("SHL-20")
def test_new_session_id_is_in_the_response_head(reply: str) -> None:
    harness = RouterHarness(reply=reply)
    begun = harness.post(initialize())
    assert begun.is_stream is (reply == "sse")
    assert begun.headers[b"mcp-session-id"] in harness.endpoint.sessions
    assert begun.message["result"]["protocolVersion"] == D


@pytest.mark.parametrize(
    ("count", "code", "reply", "status", "stream"),
    [
        (1, 0, "auto", 200, False),
        (1, -32600, "auto", 400, False),
        (1, -32600, "sse", 400, False),  # the head was not sent yet, so the status can follow
        (1, -32602, "auto", 200, False),
        (1, 0, "sse", 200, True),
        (2, -32600, "auto", 200, False),  # of several there is no one status
    ],
)
def test_response_format_follows_the_reply_option(
    count: int, code: int, reply: str, status: int, stream: bool
) -> None:
    run = Fifty(B, reply=reply)
    body = [{"jsonrpc": "2.0", "id": n, "method": "ping"} for n in range(2, 2 + count)]
    if code == -32602:
        body = [{"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": []}]
    elif code:
        body = [{"jsonrpc": "1.0", "id": n, "method": "ping"} for n in range(2, 2 + count)]
    got = run.client.post(body if count > 1 else body[0])
    assert (got.status, got.is_stream, got.ended) == (status, stream, True)
    assert [each.get("error", {}).get("code", 0) for each in got.messages] == [code] * count


@pytest.mark.requirement("SHM-13", "SSE-4")
def test_event_ids_are_sent_only_if_resumable() -> None:
    harness = RouterHarness()
    params = {"name": "count", "arguments": {"to": 2}, "_meta": meta(progressToken=1)}
    modern = harness.modern(request(1, "tools/call", params), "count")
    old = harness.get()
    harness.send(b"POST", POST, json.encode(initialize("2024-11-05")), target=old.events[0][1])
    harness.step(3)
    assert [id for _, _, id, _ in (*modern.events, *old.events)] == [""] * 5
    assert b"event: message\n" in old.body
    assert b"event:" not in modern.body
    for reply in (modern, old):
        stream = reply.exchange.stream
        assert stream is not None
        assert not stream.messages  # no client can resume it


def test_comments_not_taken_do_not_pile_up() -> None:
    harness = RouterHarness()
    reply = harness.call(1, "slow", steps=100)
    read = harness.read
    harness.read = lambda exchange: None  # type: ignore[method-assign]
    harness.wait(1000)
    harness.read = read  # type: ignore[method-assign]
    harness.read(reply.exchange)
    assert reply.body == b":\n\n"
    harness.wait(15)
    assert reply.body == b":\n\n" * 2


def test_comment_is_never_sent_after_the_end() -> None:
    harness = RouterHarness()
    reply = harness.call(1)
    reply.exchange.send_comment()
    assert harness.router.actions_to_send(reply.exchange) == []


@pytest.mark.parametrize(
    ("version", "when", "resumable"),
    [
        (D, "undecided", False),
        (D, "streaming", True),
        (B, "undecided", False),
        (B, "streaming", True),
        (B, "silent", False),  # its stream has begun, with nothing in it that it could name
        (D, "silent", True),
    ],
)
def test_exchange_is_resumable_once_an_event_id_was_sent(
    version: str, when: str, resumable: bool
) -> None:
    run = Fifty(version)
    if when == "streaming":
        run.emit(1)
    elif when == "silent":
        run.harness.wait(15)
    assert run.reply.exchange.is_resumable is resumable
    run.harness.close_after(run.reply)
    assert (len(run.client.harness.endpoint.sessions[run.client.id].streams) == 2) is resumable


@pytest.mark.requirement("SHL-7")
def test_release_sends_all_messages_first() -> None:
    """The server ends responses early so that the client resumes: nothing may get lost."""
    run = Fifty()
    exchange = run.reply.exchange
    for retry, line in ((0.25, b"retry: 250\n\n"), (None, b"")):
        assert run.conversation.conn.send_progress(run.id, run.emitted + 1)
        run.emitted += 1
        assert run.conversation.release(run.id, retry)
        assert not run.conversation.release(run.id, retry)  # the response has ended already
        run.harness.pump()
        reply = run.harness.replies[exchange]
        assert reply.ended
        assert reply.messages[-1]["params"]["progress"] == run.emitted
        assert reply.body.endswith(b"}\n\n" + line)
        exchange = run.resume(reply.last_id).exchange
    run.finish()
    assert run.harness.replies[exchange].message_text == "done"
    assert left_over(run.harness) == {}


def test_release_before_any_message_sends_a_priming_event() -> None:
    run = Fifty()
    assert run.conversation.release(run.id, None)
    run.harness.pump()
    assert run.reply.body == b"id: 2-0\nretry: 1000\ndata: \n\n"
    again = run.resume(b"2-0")
    run.finish()
    assert again.message_text == "done"


def test_release_after_the_stream_was_closed_does_nothing() -> None:
    from mcp_core.http import HttpLimits

    run = Fifty(limits=HttpLimits(queued=100))
    for number in range(1, 10):
        run.conversation.conn.send_progress(run.id, number)
    assert not run.conversation.release(run.id, 1)
    run.harness.pump()
    assert run.reply.ended
    assert b"retry: 1000\n" in run.reply.body  # of the event that begins it, and no other
    again = run.resume(run.reply.last_id)
    assert [each["params"]["progress"] for each in again.messages] == list(range(1, 10))
    assert left_over(run.harness) != {"jobs": 1}


def test_queued_of_a_resumed_stream_counts_for_the_new_response_only() -> None:
    run = Fifty()
    run.emit(1)
    again = run.resume(run.reply.last_id)
    run.harness.read = lambda exchange: None  # type: ignore[method-assign]
    run.emit(1)
    assert run.reply.exchange.queued == 0
    assert again.exchange.queued > 0
    assert (
        repr(again.exchange) == "<Exchange STREAM of <EventStream 2, 2 messages, 1 pending> at 1>"
    )


def test_batch_that_began_as_a_stream_stays_one() -> None:
    harness = RouterHarness()
    client: SessionClient = harness.session(B)
    slow = request(2, "tools/call", {"name": "slow", "arguments": {"steps": 2}})
    reply = client.post([request(1, "ping"), slow])
    harness.wait(15)
    assert [message["id"] for message in reply.messages] == [1]
    harness.close_after(reply)
    harness.step(3)
    again = client.get(reply.last_id)
    assert [message["id"] for message in again.messages] == [2]
    assert again.ended
    assert left_over(harness) == {}


# -- The status of a response ----------------------------------------------------------------------


DENIED = ErrorResponse(403, "no", [(b"www-authenticate", b"Bearer")])


@pytest.mark.parametrize(
    ("code", "rejection", "status", "more"),
    [
        (0, None, 200, []),
        (0, DENIED, 200, []),
        (-32600, None, 400, []),
        (-32001, None, 200, []),
        (-32600, DENIED, 403, [(b"www-authenticate", b"Bearer")]),
    ],
)
def test_response_has_the_status_of_its_error_or_of_its_denial(
    code: int, rejection: ErrorResponse | None, status: int, more: list[tuple[bytes, bytes]]
) -> None:
    """Only an error has the status and the headers with which its request was denied."""
    harness = RouterHarness()
    exchange = begin(harness).exchange
    rules = DIALECTS["2026-07-28"].http
    exchange.conversation = SimpleNamespace(rules=rules)  # type: ignore[assignment]
    stream = exchange.stream = EventStream(b"", [1])
    stream.exchange = exchange
    stream.rejection = rejection
    exchange.mode = ResponseMode.UNDECIDED
    assert exchange.actions_to_send() == []
    stream.add_response(b"{}", 1, code)
    assert exchange.queued == 2
    assert exchange.actions_to_send() == [
        Head(
            status,
            [(b"content-type", b"application/json"), *more, (b"content-length", b"2")],
        ),
        Body(b"{}"),
        End(),
    ]
    assert (exchange.queued, exchange.cursor, stream.last_taken, exchange.over) == (0, 1, 1, True)
