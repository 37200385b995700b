"""Sessions: the stream of each message, and streams without a connected response."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import json

from mcp_core import ConnectionClosed, Limits
from mcp_core.http import Exchange, HttpLimits
from mcp_core.http.server._session import Conversation, Session
from mcp_core.protocol.subscriptions._server import Change
from mcp_core.registry import Server
from tests.core.http.test_isolation import B, C, Fifty, cancelled, left_over
from tests.harness.wire.router import (
    HOST,
    POST,
    D,
    Pause,
    Reply,
    RouterHarness,
    SessionClient,
    example,
    initialize,
    meta,
    request,
)

ASKED = {"notifications": {"toolsListChanged": True}, "_meta": meta()}


def session_of(client: SessionClient) -> Session:
    return client.harness.endpoint.sessions[client.id]


# -- Facts -----------------------------------------------------------------------------------------


def test_queued_counts_connected_clients_only() -> None:
    run = Fifty()
    conversation = session_of(run.client)
    run.harness.read = lambda exchange: None  # type: ignore[method-assign]
    assert [conversation.queued(id) for id in (run.id, None, "unknown")] == [0, 0, 0]
    assert [conversation.has_capacity(id) for id in (run.id, None, "unknown")] == [
        True,
        False,
        False,
    ]
    run.emit(2)
    assert conversation.queued(run.id) > 100
    run.harness.close_after(run.reply)
    assert conversation.queued(run.id) == 0
    assert not conversation.has_capacity(run.id)


@pytest.mark.parametrize(
    ("size", "full", "room"), [(16 * 1024 - 1, False, True), (16 * 1024, False, False)]
)
def test_changes_are_held_back_while_the_stream_is_full(size: int, full: bool, room: bool) -> None:
    run = Fifty()
    stream = session_of(run.client).stream_for(run.id)
    assert stream is not None
    stream.add_message(b"x" * size)
    assert (run.conversation.write_blocked(run.id), run.conversation.has_capacity(run.id)) == (
        full,
        room,
    )


def test_change_that_was_held_back_is_sent_once_the_stream_was_read() -> None:
    """Nothing else reminds the conversation of it: no event, message or timer follows."""
    harness = RouterHarness()
    reply = harness.session().get()
    exchange = reply.exchange
    conversation, stream = exchange.conversation, exchange.stream
    assert conversation is not None
    assert stream is not None
    harness.unread = True
    stream.add_message(b'"%b"' % (b"x" * 16 * 1024))
    conversation.conn.send_change(Change("tools"))
    conversation.mark_dirty()
    harness.pump()
    assert len(stream.messages) == 1
    harness.read(exchange)
    harness.unread = False
    harness.pump()
    assert reply.messages[-1]["method"] == "notifications/tools/list_changed"


@pytest.mark.parametrize(("size", "full"), [(64 * 1024, False), (64 * 1024 + 1, True)])
def test_handlers_wait_above_the_high_water_mark(size: int, full: bool) -> None:
    run = Fifty()
    stream = session_of(run.client).stream_for(run.id)
    assert stream is not None
    stream.add_message(b"x" * size)
    assert run.conversation.write_blocked(run.id) is full


def test_session_repr_names_the_connection() -> None:
    run = Fifty()
    assert repr(session_of(run.client)).startswith(
        "<Session over <Connection server READY 2025-11-25, 1 in flight"
    )
    run.harness.call(1)
    assert repr(run.harness.seen[-1][0]).startswith("<Conversation over <Connection server CLOSED")


# -- Too much --------------------------------------------------------------------------------------


@pytest.mark.requirement("SHM-6")
def test_requests_over_the_limit_are_rejected_without_pausing() -> None:
    harness = RouterHarness(example(Limits(message=100_000, in_flight=1, waiting=1)))
    client = harness.session()
    running, waiting, refused = (client.call(id, "slow", steps=1) for id in (1, 2, 3))
    assert (refused.status, refused.message["error"]["code"]) == (503, -32000)
    assert (running.status, waiting.status) == (0, 0)
    harness.step(2)
    assert running.status == 200
    harness.step(3)
    assert waiting.status == 200
    assert left_over(harness) == {}


def test_responses_over_the_queue_limit_are_routed_meanwhile() -> None:
    harness = RouterHarness(example(Limits(message=100_000, queued=10)))
    client = harness.session(B)
    reply = client.post([request(n, "ping") for n in range(1, 10)])
    assert [each["id"] for each in reply.messages] == list(range(1, 10))


# -- Where messages go -----------------------------------------------------------------------------


@pytest.mark.requirement("SHL-4", "SHL-13", "SHL-15")
def test_message_goes_to_the_stream_of_its_request() -> None:
    """The standalone stream has only what belongs to no request, whichever others are open."""
    harness = RouterHarness()
    client = harness.session(elicitation={})
    own = client.get()
    asking = client.call(1, "ask")
    counting = client.call(2, "count", progress=True, to=1)
    session = session_of(client)
    session.conn.send_log("error", "of nobody")
    session.conn.send_log("error", "of the second", related=2)
    session.mark_dirty()
    harness.server.changed(tools=True)
    harness.step(3)
    by_stream = {
        name: [each.get("method", "answer") for each in reply.messages]
        for name, reply in (("own", own), ("asking", asking), ("counting", counting))
    }
    assert by_stream == {
        "own": ["notifications/message", "notifications/tools/list_changed"],
        "asking": ["elicitation/create"],
        "counting": ["notifications/message", "notifications/progress", "answer"],
    }


def test_cancellation_goes_to_the_stream_of_its_request() -> None:
    harness = RouterHarness()
    client = harness.session(elicitation={})
    own = client.get()
    reply = client.call(1, "ask")
    harness.step()
    assert client.post(cancelled(1)).status == 202
    harness.step(2)
    assert [each["method"] for each in reply.messages] == [
        "elicitation/create",
        "notifications/cancelled",
    ]
    assert (reply.ended, own.messages) == (True, [])


def test_progress_of_a_json_response_is_dropped() -> None:
    """On the standalone stream it would be related to a call, which messages there aren't."""
    harness = RouterHarness(reply="json")
    client = harness.session()
    own = client.get()
    client.call(1, "count", progress=True, to=2)
    params = {"name": "count", "arguments": {"to": 2}, "_meta": meta(progressToken=1)}
    alone = harness.modern(request(1, "tools/call", params), "count")
    harness.step(4)
    assert own.messages == []
    assert alone.message["result"]


def test_message_for_a_stream_that_cannot_be_resumed_is_dropped() -> None:
    run = Fifty()
    run.harness.close_after(run.reply)
    run.emit(3)
    assert list(session_of(run.client).streams) == [b"0"]
    run.finish()
    assert run.harness.endpoint.log.bytes == 0
    assert not session_of(run.client).stream_by_request


def test_message_without_a_client_waits_for_the_standalone_stream() -> None:
    """The last three messages wait, each is delivered once, and after 300 s they are gone."""
    harness = RouterHarness(limits=HttpLimits(events=3))
    client = harness.session()
    session = session_of(client)
    for number in range(5):
        session.conn.send_log("error", number)
        session.mark_dirty()
        harness.pump()
    own = client.get()
    assert [each["params"]["data"] for each in own.messages] == [2, 3, 4]
    harness.close_after(own)
    session.conn.send_log("error", 5)
    session.mark_dirty()
    harness.pump()
    again = client.get()
    assert [each["params"]["data"] for each in again.messages] == [5]
    harness.wait(400)
    harness.close_after(again)
    session.conn.send_log("error", 6)
    session.mark_dirty()
    harness.pump()
    harness.wait(301)  # no client has resumed it in time
    assert client.get().messages == []
    assert left_over(harness) == {}


# -- How streams end -------------------------------------------------------------------------------


def test_one_shot_legacy_request_runs_on_after_a_disconnect() -> None:
    harness = RouterHarness(sessions=False)
    call = request(
        1, "tools/call", {"name": "count", "arguments": {"to": 3}, "_meta": {"progressToken": 1}}
    )
    reply = harness.post(call)
    harness.step()
    harness.close_after(reply)
    conversation = harness.seen[-1][0]
    assert type(conversation) is Conversation
    assert len(harness.jobs) == 1
    harness.step(5)
    assert isinstance(harness.seen[-1][1], ConnectionClosed)
    assert left_over(harness) == {}


@pytest.mark.requirement("SHM-11")
def test_one_shot_modern_request_is_cancelled_by_a_disconnect() -> None:
    harness = RouterHarness()
    params = {"name": "count", "arguments": {"to": 3}, "_meta": meta(progressToken=1)}
    for message, name in (
        (request(1, "tools/call", params), "count"),
        (request(1, "subscriptions/listen", ASKED), None),
    ):
        reply = harness.modern(message, name)
        harness.step()
        assert reply.is_stream
        body = reply.body
        harness.close_after(reply)
        harness.server.changed(tools=True)
        harness.step(3)
        assert (reply.body, harness.jobs, list(harness.server._listeners)) == (body, {}, [])


@pytest.mark.parametrize(("version", "status"), [(D, 200), ("2026-07-28", 503)])
def test_closed_conversation_ends_pending_requests(version: str, status: int) -> None:
    harness = RouterHarness()
    reply = (
        harness.session().call(1, "slow", steps=9)
        if version == D
        else harness.call(1, "slow", steps=9)
    )
    harness.router.close()
    harness.pump()
    assert (reply.status, reply.ended) == (status, True)
    assert left_over(harness) == {}


def test_closed_conversation_sends_what_was_queued() -> None:
    """`close` mustn't lose what a slow client has yet to read: all of it precedes the end."""
    harness = RouterHarness()
    listening = harness.modern(request(1, "subscriptions/listen", ASKED))
    client = harness.session(B)
    both = client.post(
        [request(1, "ping"), request(2, "tools/call", {"name": "slow", "arguments": {"steps": 9}})]
    )
    unread = client.call(3, "count", progress=True, to=9)
    harness.unread = True
    harness.step(2)
    harness.server.changed(tools=True)
    harness.router.close()
    harness.pump()
    harness.unread = False
    for reply in (listening, both, unread):
        harness.read(reply.exchange)
        assert reply.ended
    assert [each.get("method", "result") for each in listening.messages][1:] == [
        "notifications/tools/list_changed",
        "result",
    ]
    assert [each["id"] for each in both.messages] == [1, 2]
    assert [each["params"]["progress"] for each in unread.messages[:-1]] == [1, 2]
    assert "error" in unread.messages[-1]
    assert left_over(harness) == {}


def test_invalid_request_without_a_response_is_not_awaited() -> None:
    """It has the id of our request and no method: that request fails, and gets no response."""
    harness = RouterHarness()
    client = harness.session(elicitation={})
    reply = client.call("call", "ask")
    harness.step()
    requests = reply.messages[0]["id"]
    wrong = client.post({"jsonrpc": "2.0", "id": requests})
    assert (wrong.status, wrong.ended) == (400, True)
    harness.step(3)
    assert reply.ended
    assert list(session_of(client).streams) == [b"0", b"2"]
    assert left_over(harness) == {}


@pytest.mark.requirement("SHL-1")
def test_batch_that_cancels_its_own_request_ends() -> None:
    harness = RouterHarness()
    client = harness.session(B)
    slow = request(5, "tools/call", {"name": "slow", "arguments": {}})
    before = client.post([cancelled(5), slow])
    harness.step(3)
    assert [each["id"] for each in before.messages] == [5]
    behind = client.post([slow, cancelled(5)])
    assert (behind.status, behind.ended) == (202, True)
    harness.step(3)
    assert list(session_of(client).streams) == [b"0"]
    assert left_over(harness) == {}


def test_invalid_batch_gets_one_error() -> None:
    client = RouterHarness().session(B)
    for body in ([], [request(n, "ping") for n in range(101)], b"[1,"):
        reply = client.post(body)
        assert (reply.status, isinstance(json.decode(reply.body), dict)) == (400, True)
    reply = client.post([1, 2])
    assert [each["error"]["code"] for each in json.decode(reply.body)] == [-32600, -32600]
    assert client.post([request(n, "ping") for n in range(100)]).status == 200


def test_batch_without_a_session_gets_its_responses() -> None:
    harness = RouterHarness(sessions=False)
    slow = request(2, "tools/call", {"name": "slow", "arguments": {}})
    reply = harness.post(
        [request(1, "ping"), slow, {"jsonrpc": "2.0", "method": "notifications/initialized"}]
    )
    assert reply.status == 0
    harness.step(3)
    assert [each["id"] for each in json.decode(reply.body)] == [1, 2]
    version = (b"mcp-protocol-version", D.encode())
    assert harness.post([request(1, "ping")], version).status == 400
    assert left_over(harness) == {}


# -- Bad beginnings --------------------------------------------------------------------------------

BAD: list[Any] = [
    request(1, "initialize", {}),
    {"jsonrpc": "1.0", "id": 1, "method": "initialize"},
    b"{",
    b'{"jsonrpc":"2.0","method":"initialize"}',
]


@pytest.mark.parametrize("body", BAD)
@pytest.mark.parametrize("options", [{}, {"reply": "sse"}, {"sessions": False}])
def test_invalid_initialize_leaves_no_session(body: Any, options: dict[str, Any]) -> None:
    """Garbage that costs memory per request would be an easy attack."""
    harness = RouterHarness(**options)
    for _ in range(5):
        reply = harness.post(body)
        assert reply.ended
        assert b"mcp-session-id" not in reply.headers
    assert (
        list(harness.server._listeners),
        harness.endpoint.sessions,
        harness.endpoint.one_shots,
    ) == (
        [],
        {},
        {},
    )
    assert left_over(harness) == {}


def test_calls_of_one_principal_are_counted_over_all_sessions() -> None:
    """Opening more sessions doesn't raise a principal's rate; unknown ones count per session."""
    from mcp_core import Rate

    server = Server("s", limits=Limits(tool_calls=Rate(per_second=1, burst=2)))

    @server.tool
    async def echo() -> str:
        """After a step."""
        await Pause()
        return "x"

    harness = RouterHarness(server)
    for principal, statuses in (("ann", [0, 0, 503]), ("", [0, 0, 0])):
        assert [harness.session(principal=principal).call(1).status for _ in range(3)] == statuses
    assert harness.post(initialize(), principal="ann").status == 200
    assert left_over(harness) == {}


# -- Many streams, and one for all -----------------------------------------------------------------


def test_session_stream_that_is_not_read_is_closed_and_retained() -> None:
    run = Fifty(limits=HttpLimits(queued=100))
    run.emit(1)
    run.harness.unread = True
    run.emit(5)
    assert session_of(run.client).queued(run.id) == 0
    run.harness.unread = False
    run.harness.read(run.reply.exchange)
    assert run.reply.ended
    again = run.resume(run.reply.last_id)
    assert [each["params"]["progress"] for each in again.messages] == [2, 3, 4, 5, 6]


def test_one_shot_stream_that_is_not_read_is_closed_and_cancelled() -> None:
    harness = RouterHarness(limits=HttpLimits(queued=100))
    params = {"name": "count", "arguments": {"to": 30}, "_meta": meta(progressToken=1)}
    reply = harness.modern(request(1, "tools/call", params), "count")
    harness.step()
    harness.unread = True
    harness.step(10)
    assert (harness.jobs, harness.endpoint.one_shots) == ({}, {})
    harness.unread = False
    harness.read(reply.exchange)
    assert reply.ended
    assert left_over(harness) == {}


def test_legacy_sse_session_ends_with_its_stream() -> None:
    """There is one stream and no resumption: its loss cancels the calls and forgets the id."""
    harness = RouterHarness(limits=HttpLimits(queued=1000))
    stream = harness.get()
    (session,) = harness.endpoint.sessions.values()
    where = stream.events[0][1]

    def post(message: Any) -> int:
        return harness.send(b"POST", POST, json.encode(message), target=where).status

    assert session.rules.resumable
    assert post(initialize("2024-11-05")) == 202
    assert post({"jsonrpc": "2.0", "method": "notifications/initialized"}) == 202
    assert session.stream_for(1) is session.stream_for(None) is session.standalone_stream
    assert not session.release(1, None)
    counting = {"name": "count", "arguments": {"to": 2}, "_meta": {"progressToken": 1}}
    assert post(request(1, "tools/call", counting)) == 202
    harness.step(4)
    assert [each.get("method", each.get("id")) for each in stream.messages] == [
        0,
        *["notifications/progress"] * 2,
        1,
    ]
    assert post(request(2, "tools/call", {"name": "slow", "arguments": {"steps": 99}})) == 202
    harness.close_after(stream)
    harness.step(2)
    assert (harness.jobs, post(request(3, "ping"))) == ({}, 404)
    assert left_over(harness) == {}


@pytest.mark.requirement("SHL-7")
@pytest.mark.parametrize(("version", "released"), [(D, True), ("2025-06-18", False), (B, False)])
def test_release_is_possible_on_primed_streams_only(version: str, released: bool) -> None:
    run = Fifty(version)
    assert not run.conversation.release("unknown", None)
    assert run.conversation.release(run.id, None) is released
    run.harness.pump()
    assert run.reply.ended is released
    alone = run.harness.call(1, "stand")
    conversation = run.harness.seen[-1][0]
    assert not conversation.release(1, None)
    run.finish()
    assert alone.status == 200


def test_retained_stream_makes_room_for_another() -> None:
    harness = RouterHarness(limits=HttpLimits(streams=2))
    client = harness.session()
    assert session_of(client).make_room_for_stream(1)
    assert not session_of(client).make_room_for_stream(0)
    running = client.call(1, "slow", steps=9)
    for number in range(2, 5):
        reply = client.call(number, "count", progress=True, to=1)
        harness.step(3)
        assert reply.ended
    assert list(session_of(client).streams) == [b"0", b"2", b"5"]
    assert session_of(client).in_use
    harness.close_after(running)
    assert not session_of(client).in_use


def test_cancelled_request_of_a_disconnected_client_leaves_no_stream() -> None:
    harness = RouterHarness()
    client = harness.session()
    reply = client.call(1, "slow", steps=9)
    harness.wait(15)  # the stream has begun, so its client could resume it
    harness.close_after(reply)
    assert list(session_of(client).streams) == [b"0", b"2"]
    client.post(cancelled(1))
    assert list(session_of(client).streams) == [b"0"]
    assert client.get(b"2-0").status == 405
    harness.step(2)
    assert left_over(harness) == {}


# -- The end of a session --------------------------------------------------------------------------


def delete(client: SessionClient) -> None:
    """End the session, and check that nothing of it is left once its handlers have ended."""
    harness = client.harness
    assert client.delete().status == 204
    assert client.post(request(99, "ping")).status == 404
    harness.step(2)
    assert (harness.jobs, left_over(harness)) == ({}, {})


def ended_with_an_error(reply: Reply, *ids: int | str) -> bool:
    """Return True if the last messages of a reply are one error response for each of `ids`."""
    errors = reply.messages[-len(ids) :]
    assert [each["id"] for each in reply.messages if "id" in each] == [*ids]
    for each in errors:
        assert each["error"]["code"] == -32603
        assert "initialize" in each["error"]["message"]
    return (reply.status, reply.ended) == (200, True)


@pytest.mark.parametrize("version", [B, C, D])
@pytest.mark.parametrize("format", ["auto", "sse", "json"])
def test_deleted_session_answers_each_call_under_way(version: str, format: str) -> None:
    """Clients of the Python SDK 1.x raise at a 404, or wait for a response without end."""
    harness = RouterHarness(reply=format)
    client = harness.session(version)
    ids: list[int | str] = [1, "1"]
    calls = [client.call(id, "slow", steps=99) for id in ids]
    harness.step()
    delete(client)
    for reply, id in zip(calls, ids, strict=True):
        assert ended_with_an_error(reply, id)
        assert reply.is_stream is (format == "sse")


def test_deleted_session_ends_begun_streams_with_an_error() -> None:
    run = Fifty()
    run.emit(2)
    waiting = run.client.call(2, "stand")
    run.harness.wait(15)  # a comment has begun its stream
    standing = run.client.get()
    session = session_of(run.client)
    delete(run.client)
    assert (session.streams, session.stream_by_request) == ({}, {})
    assert ended_with_an_error(run.reply, run.id)
    assert ended_with_an_error(waiting, 2)
    assert len(run.reply.messages) == 3
    assert (standing.messages, standing.ended) == ([], True)
    assert run.resume(run.reply.last_id).status == 404


def test_deleted_session_answers_requests_that_wait_for_a_handler() -> None:
    harness = RouterHarness(example(Limits(in_flight=1)))
    client = harness.session()
    calls = [client.call(id, "slow", steps=99) for id in (1, 2, 3)]
    delete(client)
    assert all(ended_with_an_error(reply, id) for reply, id in zip(calls, (1, 2, 3), strict=True))


def test_deleted_session_answers_all_of_a_batch() -> None:
    harness = RouterHarness()
    client = harness.session(B)
    params = {"name": "slow", "arguments": {"steps": 99}}
    both = client.post([request(id, "tools/call", params) for id in (1, 2)])
    delete(client)
    assert ended_with_an_error(both, 1, 2)


def test_deleted_session_cancels_what_its_calls_have_asked() -> None:
    harness = RouterHarness()
    client = harness.session(elicitation={})
    reply = client.call(1, "ask")
    harness.step()
    delete(client)
    assert [each.get("method") for each in reply.messages] == [
        "elicitation/create",
        "notifications/cancelled",
        None,
    ]
    assert "error" in reply.messages[-1]


def test_deleted_session_does_not_answer_cancelled_calls() -> None:
    run = Fifty(reply="sse")
    run.client.post(cancelled(run.id))
    delete(run.client)
    assert run.reply.messages == []


def test_deleted_sse_session_answers_on_its_stream() -> None:
    """The running call's error is the stream's last message: its POST had a 202 long before."""
    harness = RouterHarness()
    stream = harness.get()
    where = stream.events[0][1]

    def post(message: Any) -> None:
        assert harness.send(b"POST", POST, json.encode(message), target=where).status == 202

    post(initialize("2024-11-05"))
    post({"jsonrpc": "2.0", "method": "notifications/initialized"})
    post(request(5, "tools/call", {"name": "slow", "arguments": {"steps": 99}}))
    assert harness.send(b"DELETE", [HOST], target=where).status == 204
    assert stream.ended
    assert [each["id"] for each in stream.messages] == [0, 5]
    assert stream.messages[1]["error"]["code"] == -32603
    harness.step(2)
    assert left_over(harness) == {}


def test_session_that_ends_at_shutdown_says_so() -> None:
    harness = RouterHarness()
    reply = harness.session().call(1, "slow", steps=9)
    harness.router.shutdown()
    harness.router.close()
    harness.pump()
    assert (reply.status, reply.message["error"]["code"]) == (503, -32000)
    assert "shut down" in reply.message["error"]["message"]


# -- Streams that are over -------------------------------------------------------------------------


@pytest.mark.parametrize("away", [True, False])
@pytest.mark.parametrize("told", [0, 2])
def test_resume_of_a_cancelled_call_ends_with_405(told: int, away: bool) -> None:
    """Otherwise clients of the TypeScript SDK come back every second, for minutes."""
    run = Fifty(reply="sse")
    run.harness.wait(15)  # the stream has begun
    run.emit(told)
    if away:
        run.harness.close_after(run.reply)
    run.client.post(cancelled(run.id))
    assert run.reply.ended
    assert not any("result" in message for message in run.reply.messages)
    if told:
        replayed = run.resume(b"2-0")
        assert (replayed.status, len(replayed.messages), replayed.ended) == (200, told, True)
    for _ in range(2):
        again = run.resume(b"2-%d" % told)
        assert (again.status, again.ended) == (405, True)
        assert again.headers[b"allow"] == b"POST, DELETE, OPTIONS"
        assert "cancelled" in again.message["error"]["message"]
    run.finish()
    assert left_over(run.harness) == {}


def test_resume_of_a_call_cancelled_before_its_stream_ends_with_405() -> None:
    run = Fifty()
    run.client.post(cancelled(run.id))
    assert run.reply.ended
    assert [kind for kind, data, *_ in run.reply.events if data] == []
    assert run.resume(run.reply.last_id).status == 405


def test_resume_of_an_answered_stream_at_its_end_gets_405() -> None:
    """Clients of the TypeScript SDK 1.x do this after an error response."""
    run = Fifty()
    run.emit(1)
    run.finish()
    assert run.resume(b"2-1").messages == run.reply.messages[1:]
    assert run.resume(b"2-2").status == 405


def test_resume_forgets_old_cancelled_streams() -> None:
    run = Fifty()
    for number in range(100, 140):
        run.client.call(number, "stand", progress=True)
        run.client.post(cancelled(number))
    assert len(session_of(run.client).cancelled_streams) == 32
    assert run.resume(b"3-0").status == 400
    assert run.resume(b"42-0").status == 405


def test_batch_is_ready_once_all_its_responses_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before, there is nothing to write, so its connection is not woken."""
    harness = RouterHarness()
    client = harness.session(B)
    calls = [
        request(steps, "tools/call", {"name": "slow", "arguments": {"steps": steps}})
        for steps in (1, 3)
    ]
    reply = client.post(calls)
    ready: list[object] = []
    usual = harness.router.ready

    def noted() -> list[Exchange]:
        found = usual()
        ready.extend(found)
        return found

    monkeypatch.setattr(harness.router, "ready", noted)
    harness.step(3)
    assert ready == []
    assert reply.status == 0
    harness.step()
    assert ready == [reply.exchange]
    assert [each["id"] for each in reply.messages] == [1, 3]


def test_answered_one_shot_retires_and_leaves_nothing_to_look_at() -> None:
    harness = RouterHarness()
    harness.unread = True
    exchange = harness.call(1, text="x").exchange
    conversation = exchange.conversation
    assert conversation is not None
    assert len(harness.router.actions_to_send(exchange)) == 3
    assert conversation.retired
    assert (harness.endpoint.dirty, list(harness.endpoint.one_shots)) == ({}, [])
    assert conversation.retire() is True
