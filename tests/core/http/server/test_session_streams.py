"""Sessions: the stream of each message, and streams without a connected response."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import json

from mcp_core import ConnectionClosed, Limits
from mcp_core.http import HttpLimits
from mcp_core.http.server._session import Conversation, Session
from mcp_core.registry import Server
from tests.core.http.site import POST, D, Talk, Visit, _Pause, example, initialize, meta, request
from tests.core.http.test_isolation import B, Fifty, cancelled, left_over

ASKED = {"notifications": {"toolsListChanged": True}, "_meta": meta()}


def session_of(visit: Visit) -> Session:
    return visit.talk.endpoint.sessions[visit.id]


# -- Facts -----------------------------------------------------------------------------------------


def test_queued_counts_connected_clients_only() -> None:
    run = Fifty()
    conversation = session_of(run.visit)
    run.talk.read = lambda exchange: None  # type: ignore[method-assign]
    assert [conversation.queued(id) for id in (run.id, None, "unknown")] == [0, 0, 0]
    assert [conversation.has_capacity(id) for id in (run.id, None, "unknown")] == [
        True,
        False,
        False,
    ]
    run.emit(2)
    assert conversation.queued(run.id) > 100
    run.talk.close_after(run.reply)
    assert conversation.queued(run.id) == 0
    assert not conversation.has_capacity(run.id)


@pytest.mark.parametrize(
    ("size", "full", "room"), [(16 * 1024 - 1, False, True), (16 * 1024, False, False)]
)
def test_changes_are_held_back_while_the_stream_is_full(size: int, full: bool, room: bool) -> None:
    run = Fifty()
    stream = session_of(run.visit).stream_for(run.id)
    assert stream is not None
    stream.add_message(b"x" * size)
    assert (run.conversation.write_blocked(run.id), run.conversation.has_capacity(run.id)) == (
        full,
        room,
    )


@pytest.mark.parametrize(("size", "full"), [(64 * 1024, False), (64 * 1024 + 1, True)])
def test_handlers_wait_above_the_high_water_mark(size: int, full: bool) -> None:
    run = Fifty()
    stream = session_of(run.visit).stream_for(run.id)
    assert stream is not None
    stream.add_message(b"x" * size)
    assert run.conversation.write_blocked(run.id) is full


def test_reprs() -> None:
    run = Fifty()
    assert repr(session_of(run.visit)).startswith(
        "<Session over <Connection server READY 2025-11-25, 1 in flight"
    )
    run.talk.call(1)
    assert repr(run.talk.seen[-1][0]).startswith("<Conversation over <Connection server CLOSED")


# -- Too much --------------------------------------------------------------------------------------


@pytest.mark.requirement("SHM-6")
def test_requests_over_the_limit_are_rejected_without_pausing() -> None:
    talk = Talk(example(Limits(message=100_000, in_flight=1, waiting=1)))
    visit = talk.session()
    running, waiting, refused = (visit.call(id, "slow", steps=1) for id in (1, 2, 3))
    assert (refused.status, refused.message["error"]["code"]) == (503, -32000)
    assert (running.status, waiting.status) == (0, 0)
    talk.step(2)
    assert running.status == 200
    talk.step(3)
    assert waiting.status == 200
    assert left_over(talk) == {}


def test_responses_over_the_queue_limit_are_routed_meanwhile() -> None:
    talk = Talk(example(Limits(message=100_000, queued=10)))
    visit = talk.session(B)
    reply = visit.post([request(n, "ping") for n in range(1, 10)])
    assert [each["id"] for each in reply.messages] == list(range(1, 10))


# -- Where messages go -----------------------------------------------------------------------------


@pytest.mark.requirement("SHL-4", "SHL-13", "SHL-15")
def test_message_goes_to_the_stream_of_its_request() -> None:
    talk = Talk()
    visit = talk.session(elicitation={})
    own = visit.get()
    asking = visit.call(1, "ask")
    counting = visit.call(2, "count", progress=True, to=1)
    session = session_of(visit)
    session.conn.send_log("error", "of nobody")
    session.conn.send_log("error", "of the second", related=2)
    session.mark_dirty()
    talk.server.changed(tools=True)
    talk.step(3)
    said = {
        name: [each.get("method", "answer") for each in reply.messages]
        for name, reply in (("own", own), ("asking", asking), ("counting", counting))
    }
    assert said == {
        "own": ["notifications/message", "notifications/tools/list_changed"],
        "asking": ["elicitation/create"],
        "counting": ["notifications/message", "notifications/progress", "answer"],
    }


def test_cancellation_goes_to_the_stream_of_its_request() -> None:
    talk = Talk()
    visit = talk.session(elicitation={})
    own = visit.get()
    reply = visit.call(1, "ask")
    talk.step()
    assert visit.post(cancelled(1)).status == 202
    talk.step(2)
    assert [each["method"] for each in reply.messages] == [
        "elicitation/create",
        "notifications/cancelled",
    ]
    assert (reply.ended, own.messages) == (True, [])


def test_message_of_a_json_response_goes_to_the_standalone_stream() -> None:
    talk = Talk(reply="json")
    visit = talk.session()
    own = visit.get()
    visit.call(1, "count", progress=True, to=2)
    params = {"name": "count", "arguments": {"to": 2}, "_meta": meta(progressToken=1)}
    alone = talk.modern(request(1, "tools/call", params), "count")
    talk.step(4)
    assert [each["params"]["progress"] for each in own.messages] == [1, 2]
    assert alone.message["result"]


def test_message_for_a_stream_that_cannot_be_resumed_is_dropped() -> None:
    run = Fifty()
    run.talk.close_after(run.reply)
    run.emit(3)
    assert list(session_of(run.visit).streams) == [b"0"]
    run.finish()
    assert run.talk.endpoint.log.bytes == 0
    assert not session_of(run.visit).stream_by_request


def test_message_without_a_client_waits_for_the_standalone_stream() -> None:
    talk = Talk(limits=HttpLimits(events=3))
    visit = talk.session()
    session = session_of(visit)
    for number in range(5):
        session.conn.send_log("error", number)
        session.mark_dirty()
        talk.pump()
    own = visit.get()
    assert [each["params"]["data"] for each in own.messages] == [2, 3, 4]
    talk.close_after(own)
    session.conn.send_log("error", 5)
    session.mark_dirty()
    talk.pump()
    again = visit.get()
    assert [each["params"]["data"] for each in again.messages] == [5]
    talk.wait(400)
    talk.close_after(again)
    session.conn.send_log("error", 6)
    session.mark_dirty()
    talk.pump()
    talk.wait(301)  # no client has resumed it in time
    assert visit.get().messages == []
    assert left_over(talk) == {}


# -- How streams end -------------------------------------------------------------------------------


def test_one_shot_legacy_request_runs_on_after_a_disconnect() -> None:
    talk = Talk(sessions=False)
    call = request(
        1, "tools/call", {"name": "count", "arguments": {"to": 3}, "_meta": {"progressToken": 1}}
    )
    reply = talk.post(call)
    talk.step()
    talk.close_after(reply)
    conversation = talk.seen[-1][0]
    assert type(conversation) is Conversation
    assert len(talk.jobs) == 1
    talk.step(5)
    assert isinstance(talk.seen[-1][1], ConnectionClosed)
    assert left_over(talk) == {}


@pytest.mark.requirement("SHM-11")
def test_one_shot_modern_request_is_cancelled_by_a_disconnect() -> None:
    talk = Talk()
    params = {"name": "count", "arguments": {"to": 3}, "_meta": meta(progressToken=1)}
    for message, name in (
        (request(1, "tools/call", params), "count"),
        (request(1, "subscriptions/listen", ASKED), None),
    ):
        reply = talk.modern(message, name)
        talk.step()
        assert reply.is_stream
        body = reply.body
        talk.close_after(reply)
        talk.server.changed(tools=True)
        talk.step(3)
        assert (reply.body, talk.jobs, list(talk.server._listeners)) == (body, {}, [])


@pytest.mark.parametrize(("version", "status"), [(D, 404), ("2026-07-28", 503)])
def test_closed_conversation_answers_pending_requests_with_its_status(
    version: str, status: int
) -> None:
    talk = Talk()
    reply = (
        talk.session().call(1, "slow", steps=9) if version == D else talk.call(1, "slow", steps=9)
    )
    talk.site.close()
    talk.pump()
    assert (reply.status, reply.ended) == (status, True)
    assert left_over(talk) == {}


def test_closed_conversation_sends_what_was_queued() -> None:
    talk = Talk()
    listening = talk.modern(request(1, "subscriptions/listen", ASKED))
    visit = talk.session(B)
    both = visit.post(
        [request(1, "ping"), request(2, "tools/call", {"name": "slow", "arguments": {"steps": 9}})]
    )
    deaf = visit.call(3, "count", progress=True, to=9)
    talk.deaf = True
    talk.step(2)
    talk.server.changed(tools=True)
    talk.site.close()
    talk.pump()
    talk.deaf = False
    for reply in (listening, both, deaf):
        talk.read(reply.exchange)
        assert reply.ended
    assert [each.get("method", "result") for each in listening.messages][1:] == [
        "notifications/tools/list_changed",
        "result",
    ]
    assert [each["id"] for each in both.messages] == [1]
    assert [each["params"]["progress"] for each in deaf.messages] == [1, 2]
    assert left_over(talk) == {}


def test_invalid_request_without_a_response_is_not_awaited() -> None:
    """It has the id of our request and no method: that request fails, and gets no response."""
    talk = Talk()
    visit = talk.session(elicitation={})
    reply = visit.call("call", "ask")
    talk.step()
    asked = reply.messages[0]["id"]
    wrong = visit.post({"jsonrpc": "2.0", "id": asked})
    assert (wrong.status, wrong.ended) == (400, True)
    talk.step(3)
    assert reply.ended
    assert list(session_of(visit).streams) == [b"0", b"2"]
    assert left_over(talk) == {}


@pytest.mark.requirement("SHL-1")
def test_batch_that_cancels_its_own_request_ends() -> None:
    talk = Talk()
    visit = talk.session(B)
    slow = request(5, "tools/call", {"name": "slow", "arguments": {}})
    before = visit.post([cancelled(5), slow])
    talk.step(3)
    assert [each["id"] for each in before.messages] == [5]
    behind = visit.post([slow, cancelled(5)])
    assert (behind.status, behind.ended) == (202, True)
    talk.step(3)
    assert list(session_of(visit).streams) == [b"0"]
    assert left_over(talk) == {}


def test_invalid_batch_gets_one_error() -> None:
    visit = Talk().session(B)
    for body in ([], [request(n, "ping") for n in range(101)], b"[1,"):
        reply = visit.post(body)
        assert (reply.status, isinstance(json.decode(reply.body), dict)) == (400, True)
    reply = visit.post([1, 2])
    assert [each["error"]["code"] for each in json.decode(reply.body)] == [-32600, -32600]
    assert visit.post([request(n, "ping") for n in range(100)]).status == 200


def test_batch_without_a_session_gets_its_responses() -> None:
    talk = Talk(sessions=False)
    slow = request(2, "tools/call", {"name": "slow", "arguments": {}})
    reply = talk.post(
        [request(1, "ping"), slow, {"jsonrpc": "2.0", "method": "notifications/initialized"}]
    )
    assert reply.status == 0
    talk.step(3)
    assert [each["id"] for each in json.decode(reply.body)] == [1, 2]
    version = (b"mcp-protocol-version", D.encode())
    assert talk.post([request(1, "ping")], version).status == 400
    assert left_over(talk) == {}


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
    talk = Talk(**options)
    for _ in range(5):
        reply = talk.post(body)
        assert reply.ended
        assert b"mcp-session-id" not in reply.headers
    assert (list(talk.server._listeners), talk.endpoint.sessions, talk.endpoint.one_shots) == (
        [],
        {},
        {},
    )
    assert left_over(talk) == {}


def test_calls_of_one_principal_are_counted_over_all_sessions() -> None:
    from mcp_core import Rate

    server = Server("s", limits=Limits(tool_calls=Rate(per_second=1, burst=2)))

    @server.tool
    async def echo() -> str:
        """After a step."""
        await _Pause()
        return "x"

    talk = Talk(server)
    for principal, statuses in (("ann", [0, 0, 503]), ("", [0, 0, 0])):
        assert [talk.session(principal=principal).call(1).status for _ in range(3)] == statuses
    assert talk.post(initialize(), principal="ann").status == 200
    assert left_over(talk) == {}


# -- Many streams, and one for all -----------------------------------------------------------------


def test_session_stream_that_is_not_read_is_closed_and_retained() -> None:
    run = Fifty(limits=HttpLimits(queued=100))
    run.emit(1)
    run.talk.deaf = True
    run.emit(5)
    assert session_of(run.visit).queued(run.id) == 0
    run.talk.deaf = False
    run.talk.read(run.reply.exchange)
    assert run.reply.ended
    again = run.resume(run.reply.last_id)
    assert [each["params"]["progress"] for each in again.messages] == [2, 3, 4, 5, 6]


def test_one_shot_stream_that_is_not_read_is_closed_and_cancelled() -> None:
    talk = Talk(limits=HttpLimits(queued=100))
    params = {"name": "count", "arguments": {"to": 30}, "_meta": meta(progressToken=1)}
    reply = talk.modern(request(1, "tools/call", params), "count")
    talk.step()
    talk.deaf = True
    talk.step(10)
    assert (talk.jobs, talk.endpoint.one_shots) == ({}, {})
    talk.deaf = False
    talk.read(reply.exchange)
    assert reply.ended
    assert left_over(talk) == {}


def test_legacy_sse_session_ends_with_its_stream() -> None:
    talk = Talk(limits=HttpLimits(queued=1000))
    stream = talk.get()
    (session,) = talk.endpoint.sessions.values()
    where = stream.events[0][1]

    def post(message: Any) -> int:
        return talk.send(b"POST", POST, json.encode(message), target=where).status

    assert session.rules.resumable
    assert post(initialize("2024-11-05")) == 202
    assert post({"jsonrpc": "2.0", "method": "notifications/initialized"}) == 202
    assert session.stream_for(1) is session.stream_for(None) is session.standalone_stream
    assert not session.release(1, None)
    counting = {"name": "count", "arguments": {"to": 2}, "_meta": {"progressToken": 1}}
    assert post(request(1, "tools/call", counting)) == 202
    talk.step(4)
    assert [each.get("method", each.get("id")) for each in stream.messages] == [
        0,
        *["notifications/progress"] * 2,
        1,
    ]
    assert post(request(2, "tools/call", {"name": "slow", "arguments": {"steps": 99}})) == 202
    talk.close_after(stream)
    talk.step(2)
    assert (talk.jobs, post(request(3, "ping"))) == ({}, 404)
    assert left_over(talk) == {}


@pytest.mark.requirement("SHL-7")
@pytest.mark.parametrize(("version", "released"), [(D, True), ("2025-06-18", False), (B, False)])
def test_release_is_possible_on_primed_streams_only(version: str, released: bool) -> None:
    run = Fifty(version)
    assert not run.conversation.release("unknown", None)
    assert run.conversation.release(run.id, None) is released
    run.talk.pump()
    assert run.reply.ended is released
    alone = run.talk.call(1, "stand")
    conversation = run.talk.seen[-1][0]
    assert not conversation.release(1, None)
    run.finish()
    assert alone.status == 200


def test_retained_stream_makes_room_for_another() -> None:
    talk = Talk(limits=HttpLimits(streams=2))
    visit = talk.session()
    assert not session_of(visit).evict_stream()
    running = visit.call(1, "slow", steps=9)
    for number in range(2, 5):
        reply = visit.call(number, "count", progress=True, to=1)
        talk.step(3)
        assert reply.ended
    assert list(session_of(visit).streams) == [b"0", b"2", b"5"]
    assert session_of(visit).in_use
    talk.close_after(running)
    assert not session_of(visit).in_use


def test_cancelled_request_of_a_disconnected_client_leaves_no_stream() -> None:
    talk = Talk()
    visit = talk.session()
    reply = visit.call(1, "slow", steps=9)
    talk.wait(15)  # the stream has begun, so its client could resume it
    talk.close_after(reply)
    assert list(session_of(visit).streams) == [b"0", b"2"]
    visit.post(cancelled(1))
    assert list(session_of(visit).streams) == [b"0"]
    assert visit.get(b"2-0").status == 400
    talk.step(2)
    assert left_over(talk) == {}
