"""`ResponseQueue`: how many responses a client posts at a time, and when it stops reading."""

from __future__ import annotations

from typing import Any, Final

import pytest

from mcp_core import ConnectionClosed, RemoteProtocolError, ResultReceived, State
from mcp_core.http import Head, HttpCall
from mcp_core.http.client import _response_queue
from mcp_core.http.client._response_queue import ResponseQueue
from mcp_core.protocol.messages._outbox import MessageKind, Outgoing
from tests.core.http.client_net import (
    EVENTS,
    Net,
    event,
    initialize_result,
    open_client,
    posted_message,
    send_call,
)
from tests.harness.jsonrpc import D, result

POSTS: Final = 16
WAITING: Final = 256
STALL: Final = 4.0
MANY: Final = POSTS + WAITING


def pings(count: int, first: int = 1) -> bytes:
    return b"".join(
        event({"jsonrpc": "2.0", "id": f"p{number}", "method": "ping"})
        for number in range(first, first + count)
    )


def ids(calls: list[HttpCall]) -> list[Any]:
    return [posted_message(call)["id"] for call in calls]


def flooded(count: int = MANY, **options: Any) -> tuple[Net, int, HttpCall, list[HttpCall]]:
    """Return a client whose server has sent so many pings in a response, and the posted answers."""
    net = open_client(D, **options)
    id, call = send_call(net)
    net.start_response(call)
    net.send_body(call, pings(count))
    return net, id, call, net.new_calls()


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two POSTs at a time, and three waiting responses."""
    monkeypatch.setattr(_response_queue, "_MAX_POSTS", 2)
    monkeypatch.setattr(_response_queue, "_MAX_WAITING", 3)


def response(size: int = 1) -> Outgoing:
    return Outgoing(b"x" * size, MessageKind.RESPONSE, "q")


def test_response_queue_is_active_while_a_response_waits() -> None:
    """Reading is paused by more bytes than may be queued, and by no fewer."""
    state = open_client(D).http._state
    queue = ResponseQueue(state)
    assert (queue.active, queue.paused, queue.size, queue.first) == (False, False, 0, None)
    sizes = (state.conn.config.limits.queued, 1)
    for size, paused in zip(sizes, (False, True), strict=True):
        queue.add(response(size))
        assert queue.active
        queue.check_limits(0.0, progress=False)
        assert (queue.active, queue.paused) == (True, paused)
    assert [len(out.data) for out in iter(queue.next_response, None)] == [*sizes]
    queue.check_limits(0.0, progress=False)
    assert (queue.active, queue.paused, queue.size) == (False, False, 0)


@pytest.mark.usefixtures("few")
def test_response_queue_stall_begins_anew_after_it_was_cleared() -> None:
    """The time runs from the first full check, and a loss of the session ends it."""
    state = open_client(D).http._state
    queue = ResponseQueue(state)
    for now in (0.0, 10.0):
        for _ in range(3):
            queue.add(response())
        queue.check_limits(now, progress=False)
        queue.check_limits(now + 1, progress=False)
        assert state.deadlines[queue] == now + STALL
        if now == 0.0:
            queue.clear()
            assert (queue.paused, queue.size, queue.first, queue in state.deadlines) == (
                *(False, 0, None, False),
            )
    queue.on_deadline(14.0)
    assert (queue.first, queue.size, queue in state.deadlines) == (None, 0, False)
    assert state.conn.state is State.CLOSED


def test_response_queue_limits_parallel_posts() -> None:
    net, _, call, posts = flooded(POSTS + 4)
    assert ids(posts) == [f"p{number}" for number in range(1, POSTS + 1)]
    assert all(post.brief for post in posts)
    assert not net.http.is_paused(call.key)
    assert net.http.queued() > 0
    net.answer(posts[3])
    net.answer(posts[5], "no", 500, "text/plain")
    net.end_response(posts[7], "the connection broke")
    assert ids(net.new_calls()) == ["p17", "p18", "p19"]


def test_response_queue_honest_burst_is_answered_in_full() -> None:
    """A few dozen requests at a time, as a server with many tools at work may send."""
    net, id, call, posts = flooded(60)
    answered = []
    while posts:
        answered += ids(posts)
        for post in posts:
            net.answer(post)
        posts = net.new_calls()
    assert answered == [f"p{number}" for number in range(1, 61)]
    net.send_body(call, event(result(id, {"content": []})))
    assert isinstance(net.event(), ResultReceived)
    assert net.http.next_deadline() == 5.0  # the stream's, whose result has arrived


def test_response_queue_full_pauses_event_streams() -> None:
    """Only streams can bring more requests: a paused one is read no further, others are."""
    net, id, call, posts = flooded(MANY)
    _, other = send_call(net)
    net.start_response(other, type="application/json")
    assert net.http.is_paused(call.key)
    assert not net.http.is_paused(other.key)
    assert not net.http.is_paused(posts[0].key)
    assert not net.http.is_paused(999)
    # What arrives all the same is kept, with the end.
    net.send_body(call, pings(1, MANY + 1), event(result(id, {"content": []})))
    net.end_response(call)
    assert net.events() == []
    net.answer(posts[0])
    assert ids(net.new_calls()) == ["p17"]
    assert net.http.is_paused(call.key)  # the ping that was kept has filled the queue again
    net.answer(posts[1])
    assert isinstance(net.event(), ResultReceived)
    assert not net.http.is_paused(call.key)  # it is over


@pytest.mark.usefixtures("few")
def test_response_queue_chunks_are_read_in_order_and_only_as_far_as_there_is_room() -> None:
    net, id, call, posts = flooded(5)
    for first in 6, 9, 12:
        net.send_body(call, pings(3, first))
    net.send_body(call, event(result(id, {"content": []})))
    answered = ids(posts)
    while posts:
        net.answer(posts.pop(0))
        posts += (new := net.new_calls())
        answered += ids(new)
    assert answered == [f"p{number}" for number in range(1, 15)]
    assert isinstance(net.event(), ResultReceived)


@pytest.mark.usefixtures("few")
def test_response_queue_with_room_reads_all_kept_chunks_at_once() -> None:
    net, id, call, posts = flooded(5)
    net.send_body(call, b": a comment\n\n")
    net.send_body(call, event(result(id, {"content": []})))
    assert net.http.is_paused(call.key)
    net.http.response_started(posts[0].key, Head(202, []), 0.0)
    net.http.response_ended(posts[0].key, 0.0)
    net.http.calls_to_make(0.0)
    assert isinstance(net.http.next_event(), ResultReceived)


@pytest.mark.usefixtures("few")
def test_response_queue_kept_end_without_result_fails_the_call() -> None:
    net, id, call, posts = flooded(5)
    net.send_body(call, b": a comment\n\n")
    net.end_response(call, "the connection broke")
    assert net.events() == []
    assert net.conn.has_outgoing(id)
    net.answer(posts[0])
    assert "the stream broke before the response arrived" in str(net.event().error)
    assert not net.conn.has_outgoing(id)


@pytest.mark.usefixtures("few")
def test_response_queue_kept_input_of_a_cancelled_call_is_discarded() -> None:
    net, id, call, posts = flooded(5, session=None)
    net.send_body(call, pings(3, 6))
    net.conn.send_cancel(id)
    net.pump()
    net.at(5.0 - 2.0)  # not yet stalled
    [cancelled] = net.new_calls()
    assert posted_message(cancelled)["method"] == "notifications/cancelled"
    net.http._state.drop(net.http._state.operations[call.key])
    for post in posts:
        net.answer(post)
    assert ids(net.new_calls()) == ["p3", "p4"]
    assert not net.http._state.unread


def test_response_queue_stalled_closes_the_connection() -> None:
    """A server that asks and never listens would hold 256 responses for ever."""
    net, _, call, posts = flooded(MANY)
    assert net.http.next_deadline() == STALL
    net.at(STALL - 0.1)
    assert net.events() == []
    net.at(STALL)
    closed = net.event()
    assert isinstance(closed, ConnectionClosed)
    assert isinstance(closed.error, RemoteProtocolError)
    assert str(closed.error) == (
        "the server sends requests but does not read the responses: 256 of them wait, and it "
        "accepted none for 4 s"
    )
    assert closed.lost == ["T"]
    assert set(net.dropped) == {call.key, *(post.key for post in posts)}
    assert net.http.queued() == 0


def test_response_queue_below_the_limit_never_stalls() -> None:
    """A server may be slow: each POST has its own timeout."""
    net, _, _, posts = flooded(MANY - 1)
    assert net.http.next_deadline() == 30.0
    net.at(30.0)
    assert net.conn.state is State.READY
    assert len(net.new_calls()) == POSTS  # the next ones, because the first have timed out
    assert len(net.events()) == len(posts)


@pytest.mark.usefixtures("few")
def test_response_queue_progress_restarts_the_stall_timeout() -> None:
    net, _, call, posts = flooded(9)
    for now in 3.0, 6.0, 9.0, 12.0:
        net.at(now)
        net.answer(posts.pop(0))
        posts += net.new_calls()
        assert net.conn.state is State.READY
    assert net.http.is_paused(call.key)
    assert net.http.next_deadline() == 16.0
    net.answer(posts.pop(0))
    net.pump()
    assert not net.http.is_paused(call.key)
    assert net.http.next_deadline() == 42.0  # of a POST: nothing is stalled any more


@pytest.mark.usefixtures("few")
def test_response_queue_login_is_no_stall() -> None:
    net, _, _, posts = flooded(5)
    net.http.pause_timeout(posts[1].key, None)
    net.at(STALL)
    assert net.conn.state is State.READY
    assert net.http.next_deadline() == 2 * STALL
    net.http.pause_timeout(posts[1].key, 5.0)
    net.at(2 * STALL)
    assert isinstance(net.event(), ConnectionClosed)


@pytest.mark.usefixtures("few")
def test_response_queue_counts_pings_on_the_standalone_stream() -> None:
    net = open_client(D, stream=True)
    stream = max(net.http._state.operations)
    net.http.response_data(stream, pings(5), 0.0)
    assert len(net.new_calls()) == 2
    assert net.http.is_paused(stream)
    net.at(STALL)
    assert isinstance(net.event(), ConnectionClosed)


@pytest.mark.usefixtures("few")
def test_response_queue_counts_responses_held_behind_initialized() -> None:
    """The response to `initialize` may itself be a stream, which the server does not end."""
    net = Net(D)
    net.open()
    call = net.call()
    net.start_response(call)
    net.send_body(call, event(result(1, initialize_result(D))))
    assert posted_message(net.call())["method"] == "notifications/initialized"
    net.send_body(call, pings(3))
    assert net.new_calls() == []
    assert net.http.is_paused(call.key)
    net.events()
    net.at(STALL)
    assert isinstance(net.event(), ConnectionClosed)


@pytest.mark.usefixtures("few")
def test_response_queue_of_http_sse_transport_is_bounded() -> None:
    """The pings come on the one long stream, which is paused after two POSTs are under way."""
    net = Net("2024-11-05")
    net.open()
    net.answer(net.call(), "no", 405, "text/plain")
    stream = net.call()
    net.start_response(stream, type=EVENTS)
    net.send_body(stream, b"event: endpoint\ndata: /post\n\n")
    posted = net.call()
    net.answer(posted)
    net.send_body(stream, event(result(1, initialize_result("2024-11-05"))))
    net.answer(net.call())
    net.send_body(stream, pings(5))
    assert ids(net.new_calls()) == ["p1", "p2"]
    assert net.http.is_paused(stream.key)
    net.events()
    net.at(STALL)
    assert isinstance(net.event(), ConnectionClosed)


def test_response_queue_large_responses_pause_and_never_stall() -> None:
    """They are the user's, such as images of a model, and an upload may take long."""
    net, _, call, _ = flooded(POSTS)
    transport = net.http._state.transport
    large = Outgoing(b"x" * (1024 * 1024 + 1), MessageKind.RESPONSE, "large")
    transport.send(large, 0.0)
    net.pump()
    assert net.http.is_paused(call.key)
    assert net.http.next_deadline() == 30.0
    net.at(30.0)
    assert not net.http.is_paused(call.key)
    assert net.conn.state is State.READY


@pytest.mark.usefixtures("few")
def test_response_queue_close_posts_as_many_as_may_be_posted() -> None:
    net = open_client(D, stream=True)
    net.http.response_data(max(net.http._state.operations), pings(5), 0.0)
    net.conn.close()
    assert ids([call for call in net.new_calls() if call.body]) == ["p1", "p2"]
    assert net.http.queued() == 0


@pytest.mark.usefixtures("few")
def test_response_queue_of_a_lost_session_is_discarded() -> None:
    net, _, _, posts = flooded(4)
    net.answer(posts[0], "", 404, "text/plain")
    [renewal] = net.new_calls()
    assert posted_message(renewal)["method"] == "initialize"
    assert net.http._state.transport.responses.first is None


def test_response_queue_repr_counts() -> None:
    net, *_ = flooded(MANY)
    assert repr(net.http._state.transport.responses) == (
        "<ResponseQueue: 16 posted, 256 wait, paused>"
    )
