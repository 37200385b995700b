"""Sessions: their begin and end, their owner, the stream of each message, and resumption."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec import json

from mcp_core.http import HttpLimits
from mcp_core.protocol.connection._state import State
from mcp_core.registry import Server
from tests.harness.wire.router import (
    GET,
    HOST,
    POST,
    D,
    Reply,
    RouterHarness,
    SessionClient,
    initialize,
    request,
)
from tests.levels import long

A, B, C = "2024-11-05", "2025-03-26", "2025-06-18"
INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}


# -- Beginning and end -----------------------------------------------------------------------------


@pytest.mark.requirement("SHL-20", "SHL-21", "HTTP-9")
@pytest.mark.parametrize("version", [A, B, C, D])
def test_session_begins_with_initialize(version: str) -> None:
    harness = RouterHarness()
    reply = harness.post(initialize(version))
    assert reply.message["result"]["protocolVersion"] == version
    id = reply.headers[b"mcp-session-id"]
    assert len(id) == 32
    assert id.isalnum()
    client = SessionClient(harness, id, version, "")
    assert client.post(INITIALIZED).status == 202
    call = client.call(1, text="x")
    assert call.message["result"]["content"][0]["text"] == "x"
    assert b"mcp-session-id" not in call.headers
    assert b"mcp-session-id" not in harness.modern(request(1, "server/discover", {})).headers


@pytest.mark.requirement("SHL-21", "AU-6")
def test_session_id_is_128_random_bits() -> None:
    """An id that counts the sessions could be guessed by the next client."""
    requests: list[int] = []

    def entropy(size: int) -> bytes:
        requests.append(size)
        return bytes(0xA0 + len(requests) for _ in range(size))

    harness = RouterHarness(entropy=entropy)
    for number in (1, 2):
        id = harness.post(initialize(D)).headers[b"mcp-session-id"]
        assert id == b"a%d" % number * 16
    assert requests == [16, 16]


def test_session_begins_with_nothing_but_its_standalone_stream() -> None:
    harness = RouterHarness()
    harness.post(initialize(D))
    (session,) = harness.endpoint.sessions.values()
    assert (session.client, session.principal, session.legacy_sse) == ("", "", False)
    assert (session.finished, session.rejected, session.retired) == (False, False, False)
    assert session.current_stream is session.service is None
    assert (session.stream_count, session.streams) == (1, {b"0": session.standalone_stream})
    assert (session.stream_by_request, list(session.cancelled_streams)) == ({}, [])
    assert (session.one_shot, session.in_use, session.batches) == (False, False, False)
    stream = session.standalone_stream
    assert (stream.name, stream.owner, stream.long_lived) == (b"0", session, True)
    state = harness.endpoint.state
    assert (state.now, state.queued_limit, state.auth) == (0.0, 1024 * 1024, None)
    assert (state.dirty, state.ready, list(state.events)) == ({}, {}, [])


def test_initialize_that_fails_begins_no_session() -> None:
    harness = RouterHarness()
    reply = harness.post(request(1, "initialize", {}))
    assert (reply.status, reply.message["error"]["code"]) == (200, -32602)
    assert b"mcp-session-id" not in reply.headers
    assert not harness.endpoint.sessions
    assert harness.post(b"{").status == 400


def test_second_initialize_begins_a_second_session() -> None:
    harness = RouterHarness()
    harness.session()
    harness.session()
    assert len(harness.endpoint.sessions) == 2


@pytest.mark.requirement("SHL-24", "SHL-26", "LIFE-20")
def test_delete_ends_the_session() -> None:
    """Calls still running get an error response, their handlers end, and no timer is left."""
    harness = RouterHarness()
    client = harness.session()
    own = client.get()
    running = client.call(1, "slow", steps=100)
    streaming = client.call(2, "count", progress=True, to=100)
    harness.step(2)
    assert client.delete().status == 204
    assert own.ended
    assert streaming.ended
    assert (running.status, running.message["error"]["code"]) == (200, -32603)
    harness.step(2)
    assert not harness.jobs
    for late in (
        client.call(3),
        client.get(),
        client.get(own.last_id),
        client.delete(),
        client.post(INITIALIZED),
    ):
        assert late.status == 404
    assert harness.endpoint.idle
    assert harness.endpoint.log.bytes == 0
    assert harness.router.next_deadline() is None


@pytest.mark.requirement("SHL-23")
def test_request_without_a_session_id_is_rejected() -> None:
    harness = RouterHarness()
    harness.session()
    assert harness.post(request(1, "tools/list")).status == 400
    assert harness.post(INITIALIZED).status == 400
    assert harness.send(b"DELETE", [HOST]).status == 405


@pytest.mark.requirement("SHL-29", "SHL-30", "SHL-32")
def test_version_header_must_match_the_session() -> None:
    """The header may be missing, since the session knows its revision; another is a 400."""
    harness = RouterHarness()
    client = harness.session(C)
    plain = client.headers[:1]
    assert harness.post(request(1, "ping"), *plain).status == 200  # it is known
    for version in (b"2025-11-25", b"2025-03-26"):
        other = harness.post(request(1, "ping"), *plain, (b"mcp-protocol-version", version))
        assert (
            other.status,
            "this session speaks 2025-06-18" in other.message["error"]["message"],
        ) == (
            400,
            True,
        )
    for version in (b"1999-01-01", b"2026-07-28"):
        assert (
            harness.post(request(1, "ping"), *plain, (b"mcp-protocol-version", version)).status
            == 400
        )


def test_idle_session_expires() -> None:
    """An open stream or a running call keeps a session; its end starts the time anew."""
    harness = RouterHarness(limits=HttpLimits(idle=60))
    idle, used, listening, working = (harness.session() for _ in range(4))
    stream = listening.get()
    working.call(1, "slow", steps=1000)
    harness.wait(40)
    assert used.call(1).status == 200
    harness.wait(40)
    assert idle.call(1).status == 404
    assert {each.id for each in harness.endpoint.sessions.values()} == {
        used.id,
        listening.id,
        working.id,
    }
    assert not stream.ended
    harness.close_after(stream)
    harness.wait(130)
    assert {each.id for each in harness.endpoint.sessions.values()} == {working.id}


def test_incomplete_handshake_expires() -> None:
    harness = RouterHarness(limits=HttpLimits(initialize=30, uninitialized=2))
    id = harness.post(initialize()).headers[b"mcp-session-id"]
    harness.wait(29)
    assert harness.post(request(1, "ping"), (b"mcp-session-id", id)).status == 200
    harness.post(initialize())
    refused = harness.post(initialize())
    assert (refused.status, refused.headers[b"retry-after"]) == (503, b"5")
    harness.wait(1)
    assert harness.post(request(1, "ping"), (b"mcp-session-id", id)).status == 404
    assert harness.post(initialize()).status == 200


@pytest.mark.parametrize("most", [1, 3])
def test_session_limit_rejects_further_sessions(most: int) -> None:
    harness = RouterHarness(limits=HttpLimits(sessions=most))
    clients = [harness.session() for _ in range(most)]
    assert harness.post(initialize()).status == 503
    assert harness.get().status == 503
    clients[0].delete()
    assert harness.post(initialize()).status == 200


# -- Whose it is -----------------------------------------------------------------------------------


@pytest.mark.requirement("SHL-27", "SHL-33")
def test_session_of_another_principal_is_not_found() -> None:
    """Byte for byte the same 404 as for an unknown id, or ids could be tested by strangers."""
    harness = RouterHarness()
    own = harness.session(principal="ann")
    stream = own.call(1, "count", progress=True, to=2)
    harness.step(9)
    last = stream.last_id
    for stranger in ("bob", ""):
        foreign = SessionClient(harness, own.id, D, stranger)
        unknown = SessionClient(harness, b"f" * 32, D, stranger)
        acts: tuple[Callable[[SessionClient], Reply], ...] = (
            lambda v: v.call(2),
            lambda v: v.post({"jsonrpc": "2.0", "id": 1, "result": {}}),
            lambda v: v.post(
                {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
            ),
            lambda v: v.get(),
            lambda v: v.get(last),
            lambda v: v.delete(),
        )
        for act in acts:
            one, other = act(foreign), act(unknown)
            assert (one.status, one.headers, one.body) == (other.status, other.headers, other.body)
            assert one.status == 404
    assert own.get(last).status == 405  # the call is complete


def test_event_id_of_another_session_is_rejected() -> None:
    """All sessions number alike: an id resumes its own stream; a malformed one tells nothing."""
    harness = RouterHarness()
    clients = [harness.session() for _ in range(10)]
    streams = [client.call(1, "count", progress=True, to=3) for client in clients]
    harness.step(9)
    assert (
        len({stream.last_id for stream in streams}) == 1
    )  # so the same id is another event in each
    for number, client in enumerate(clients):
        other = client.call(2, "echo", text=f"only {number}")
        assert other.status == 200
        again = client.get(b"2-2")
        assert again.is_stream
        assert [m.get("id", m.get("params", {}).get("progress")) for m in again.messages] == [3, 1]
    for bad in (
        b"",
        b"3",
        b"2-",
        b"-1",
        b"2-5",
        b"99-1",
        b"2--1",
        b"2-x",
        b"2-" + b"9" * 30,
        b"2-1-1",
        b"\xff",
    ):
        refused = clients[0].get(bad)
        unknown = clients[0].get(b"12345-0")
        assert (refused.status, refused.body) == (400, unknown.body)


def test_request_ids_are_per_session() -> None:
    harness = RouterHarness()
    clients = [harness.session() for _ in range(20)]
    replies = [client.call(1, "slow", text=str(n)) for n, client in enumerate(clients)]
    harness.step(3)
    assert [r.message["result"]["content"][0]["text"] for r in replies] == [
        str(n) for n in range(20)
    ]


def test_request_id_in_use_is_rejected() -> None:
    harness = RouterHarness()
    client = harness.session()
    first = client.call(1, "slow", steps=2)
    second = client.call(1)
    assert (second.status, second.message["error"]["code"], second.message["id"]) == (
        400,
        -32600,
        1,
    )
    assert client.call("1").status == 200
    harness.step(3)
    assert first.message["result"]
    assert client.call(1).status == 200


# -- Which stream ----------------------------------------------------------------------------------


@pytest.mark.requirement("SHL-3", "SHL-4", "SHL-14", "SHL-15", "SHL-16", "SHL-17", "SHL-5")
def test_messages_go_to_the_stream_of_their_request() -> None:
    harness = RouterHarness()
    client = harness.session()
    own = client.get()
    one = client.call("one", "count", progress=True, to=3)
    two = client.call("two", "count", progress=True, to=3)
    harness.step(9)
    for name, reply in (("one", one), ("two", two)):
        assert [m.get("params", {}).get("progressToken", m.get("id")) for m in reply.messages] == [
            name
        ] * 4
        assert reply.ended
    assert own.messages == []
    ids = [id for reply in (own, one, two) for _, _, id, _ in reply.events]
    assert len(set(ids)) == len(ids)


@pytest.mark.requirement("SHL-12", "SHL-13", "SHL-10")
def test_message_without_a_request_goes_to_the_standalone_stream() -> None:
    harness = RouterHarness()
    client = harness.session()
    harness.server.changed(tools=True)
    harness.server.changed(tools=True)
    harness.pump()
    own = client.get()
    assert [m["method"] for m in own.messages] == ["notifications/tools/list_changed"]
    running = client.call(1, "slow")
    harness.server.changed(prompts=True, resources=True)
    harness.step(3)
    assert running.message["id"] == 1
    assert [m["method"] for m in own.messages[1:]] == ["notifications/resources/list_changed"]


def test_second_standalone_stream_is_rejected() -> None:
    harness = RouterHarness()
    client = harness.session()
    own = client.get()
    assert client.get().status == 409
    assert not own.ended
    harness.close_after(own)
    again = client.get()
    harness.server.changed(tools=True)
    harness.pump()
    assert len(again.messages) == 1


def test_server_request_goes_to_the_stream_and_its_response_by_post() -> None:
    """A second or unknown response gets a 202 too, since the server may have given up."""
    harness = RouterHarness()
    client = harness.session(elicitation={})
    reply = client.call(1, "ask")
    harness.step()
    (requests,) = reply.messages
    assert requests["method"] == "elicitation/create"
    answer = {
        "jsonrpc": "2.0",
        "id": requests["id"],
        "result": {"action": "accept", "content": {"name": "Ann"}},
    }
    accepted = client.post(answer)
    assert (accepted.status, accepted.body) == (202, b"")
    harness.step(2)
    assert "accept" in reply.messages[-1]["result"]["content"][0]["text"]
    assert client.post(answer).status == 202  # late and unknown answers are legal races


@pytest.mark.requirement("DEC-11")
@pytest.mark.parametrize("by_option", [True, False])
def test_server_request_of_a_json_response_goes_to_the_standalone_stream(by_option: bool) -> None:
    """With `reply="json"`, and for a client that accepts nothing else."""
    harness = RouterHarness(reply="json" if by_option else "auto")
    client = harness.session(elicitation={})
    own = client.get()
    if by_option:
        reply = client.call(1, "ask")
    else:
        accept = (b"accept", b"application/json")
        headers = [*(each for each in POST if each[0] != b"accept"), accept, *client.headers]
        call = request(1, "tools/call", {"name": "ask", "arguments": {}})
        reply = harness.send(b"POST", headers, json.encode(call))
    harness.step()
    (requests,) = own.messages
    client.post({"jsonrpc": "2.0", "id": requests["id"], "result": {"action": "decline"}})
    harness.step(2)
    assert reply.headers[b"content-type"] == b"application/json"
    assert "decline" in reply.message["result"]["content"][0]["text"]


@pytest.mark.requirement("DEC-11")
def test_server_request_of_a_json_response_without_a_session_fails() -> None:
    """The client's capabilities are unknown there, so the handler gets an error at once."""
    harness = RouterHarness(sessions=False)
    headers = [*(each for each in POST if each[0] != b"accept"), (b"accept", b"application/json")]
    call = request(1, "tools/call", {"name": "ask", "arguments": {}})
    reply = harness.send(b"POST", headers, json.encode(call))
    harness.step(2)
    assert reply.headers[b"content-type"] == b"application/json"
    assert "elicitation" in str(reply.message)


@pytest.mark.requirement("SHL-9")
def test_cancelled_request_ends_its_http_response() -> None:
    """The client knows that it cancelled: the response ends empty, and the id is free again."""
    harness = RouterHarness()
    client = harness.session()
    silent = client.call(1, "slow", steps=100)
    telling = client.call(2, "count", progress=True, to=100)
    harness.step(2)
    for id in (1, 2, 3):
        note = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}
        assert client.post(note).status == 202
    assert (silent.status, silent.ended, silent.messages) == (200, True, [])
    assert telling.ended
    harness.step(2)
    assert not harness.jobs
    assert client.call(1).status == 200
    assert (
        client.post(
            {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": []}}
        ).status
        == 400
    )


def test_server_request_is_cancelled_on_its_stream() -> None:
    harness = RouterHarness()
    client = harness.session(elicitation={})
    reply = client.call(1, "ask")
    harness.step()
    client.post({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})
    requests, withdrawn = reply.messages
    assert withdrawn["method"] == "notifications/cancelled"
    assert withdrawn["params"]["requestId"] == requests["id"]
    assert reply.ended
    harness.step(2)


def test_cancelled_request_in_the_queue_ends_its_response() -> None:
    """The call waits for a place and has no handler yet; its HTTP response still must end."""
    from mcp_core import Limits

    server = Server("s", limits=Limits(in_flight=1, waiting=1))

    @server.tool
    async def stuck() -> str:
        """Waits."""
        from tests.harness.wire.router import Pause

        while True:
            await Pause()

    harness = RouterHarness(server)
    client = harness.session()
    first, second, third = (client.call(id, "stuck") for id in (1, 2, 3))
    harness.step(2)
    assert (third.status, third.message["error"]["code"]) == (503, -32000)
    client.post({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 2}})
    assert second.ended
    assert not first.ended
    client.delete()


# -- Streams that were lost ------------------------------------------------------------------------


@pytest.mark.requirement("SHL-6", "SHL-18", "SHL-19")
def test_stream_begins_with_a_priming_event_if_supported() -> None:
    harness = RouterHarness()
    for version, primed in ((D, True), (C, False), (B, False)):
        client = harness.session(version)
        reply = client.call(1, "count", progress=True, to=1)
        harness.step(3)
        _kind, data, id, retry = reply.events[0]
        assert (data == b"") is primed
        assert retry == (1000 if primed else None)
        assert id
        assert reply.events[-1][2] > id


def resumed(version: str, cut: int, when: str, count: int = 50) -> list[Any]:
    """Return progress and result of a call whose stream was cut after `cut` bytes and resumed."""
    harness = RouterHarness()
    client = harness.session(version)
    reply = client.call(1, "count", progress=True, to=count)
    if when == "before":
        harness.step(1)
    elif when == "during":
        harness.step(count // 2)
    else:
        harness.step(count + 2)
    received = reply.body[:cut]
    reply.body = received[: received.rfind(b"\n\n") + 2]
    got = reply.messages
    if not reply.events:
        return got
    last = reply.last_id
    harness.close_after(reply)
    if when == "during":
        harness.step(3)
    again = client.get(last)
    if got and "result" in got[-1]:
        assert again.status == 405  # there is nothing left to resume
    else:
        assert again.is_stream
        harness.step(count + 2)
        got += again.messages
    assert again.ended
    assert not harness.jobs
    assert client.get().status == 200
    return got


@pytest.mark.requirement("SHL-18", "SHL-19")
@pytest.mark.parametrize("version", [B, C, D])
@pytest.mark.parametrize("when", ["before", "during", "after"])
@pytest.mark.parametrize("stride", [1999, long(101)])
def test_resumed_stream_delivers_each_message_once(version: str, when: str, stride: int) -> None:
    whole = resumed(version, 10**9, when)
    assert [m.get("params", {}).get("progress", "answer") for m in whole] == [
        *range(1, 51),
        "answer",
    ]
    for cut in range(100 if version == D else 180, 8_000, stride):
        assert resumed(version, cut, when) == whole


def test_stream_may_be_resumed_many_times() -> None:
    harness = RouterHarness()
    client = harness.session()
    reply = client.call(1, "count", progress=True, to=20)
    got: list[Any] = []
    for _ in range(20):
        harness.step()
        got += reply.messages
        last = reply.last_id
        reply = client.get(last)  # the old one has not noticed
    harness.step(2)
    got += reply.messages
    assert [m.get("params", {}).get("progress", "answer") for m in got] == [*range(1, 21), "answer"]
    assert all(each.ended for each in harness.replies.values())


def test_resume_from_an_evicted_event_is_rejected() -> None:
    harness = RouterHarness(limits=HttpLimits(events=5))
    client = harness.session()
    reply = client.call(1, "count", progress=True, to=20)
    harness.step()
    harness.close_after(reply)
    harness.step(30)
    gone = client.get(reply.last_id)
    assert (gone.status, "no longer retained" in gone.message["error"]["message"]) == (400, True)
    newest = client.get(b"2-18")
    assert [m.get("params", {}).get("progress", "answer") for m in newest.messages] == [
        19,
        20,
        "answer",
    ]


def test_retained_events_expire() -> None:
    harness = RouterHarness(limits=HttpLimits(event_age=60))
    client = harness.session()
    reply = client.call(1, "count", progress=True, to=2)
    harness.step(5)
    harness.wait(59)
    assert client.get(b"2-0").status == 200
    harness.wait(61)
    assert client.get(b"2-0").status == 400
    assert harness.endpoint.log.bytes == 0
    assert len(next(iter(harness.endpoint.sessions.values())).streams) == 1
    assert reply.ended


@pytest.mark.requirement("CXL-16", "SHL-9")
def test_disconnect_does_not_cancel_and_unresumable_output_is_dropped() -> None:
    harness = RouterHarness()
    client = harness.session()
    reply = client.call(1, "slow", steps=3)
    harness.close_after(reply)
    assert len(harness.jobs) == 1
    assert client.call(1).status == 400  # it is still in use
    harness.step(5)
    assert not harness.jobs
    assert harness.endpoint.log.bytes == 0
    (session,) = harness.endpoint.sessions.values()
    assert list(session.streams) == [b"0"]
    assert client.call(1).status == 200


@pytest.mark.requirement("SHL-7")
def test_handler_releases_its_client() -> None:
    harness = RouterHarness()
    client = harness.session()
    reply = client.call(1, "leave", retry=0.25)
    harness.step()
    assert reply.ended
    assert reply.events == [("message", b"", "2-0", 1000)]
    assert b"retry: 250" in reply.body
    harness.step(2)
    again = client.get(reply.last_id)
    assert "released: True" in again.message["result"]["content"][0]["text"]


@pytest.mark.parametrize("version", [B, C])
def test_release_without_resumability_is_refused(version: str) -> None:
    harness = RouterHarness()
    client = harness.session(version)
    reply = client.call(1, "leave")
    harness.step(3)
    assert "released: False" in reply.message["result"]["content"][0]["text"]
    lone = harness.call(1, "leave")
    harness.step(3)
    assert "released: False" in lone.message["result"]["content"][0]["text"]


def test_stream_limit_rejects_further_requests() -> None:
    harness = RouterHarness(limits=HttpLimits(streams=3))
    client = harness.session()
    for id in (1, 2, 3):
        client.call(id, "slow", steps=100)
    assert client.call(4).status == 429
    client.delete()
    harness.step(2)


def test_retained_streams_make_room_for_new_ones() -> None:
    harness = RouterHarness(limits=HttpLimits(streams=3), reply="sse")
    client = harness.session()
    for id in range(1, 20):
        reply = client.call(id, "slow", steps=0)
        harness.step(3)
        assert reply.status == 200
        assert len(reply.messages) == 1
    assert len(harness.endpoint.sessions[client.id].streams) <= 4


# -- Batches (2025-03-26) --------------------------------------------------------------------------


@pytest.mark.requirement("SHL-1", "DEC-5")
def test_batch_gets_an_array_or_a_stream() -> None:
    """JSON needs no notification before the last response; progress makes it a stream."""
    harness = RouterHarness()
    client = harness.session(B)
    pings = [request(1, "ping"), INITIALIZED, request(2, "ping")]
    reply = client.post(pings)
    assert reply.headers[b"content-type"] == b"application/json"
    assert [m["id"] for m in json.decode(reply.body)] == [1, 2]
    call = request("c", "tools/call", {"name": "slow", "arguments": {}})
    waiting = client.post([request(3, "ping"), call])
    assert waiting.status == 0
    harness.step(3)
    assert [m["id"] for m in json.decode(waiting.body)] == [3, "c"]
    counting = {"name": "count", "arguments": {"to": 1}, "_meta": {"progressToken": 9}}
    mixed = client.post([request(4, "ping"), request(5, "tools/call", counting)])
    harness.step(3)
    assert mixed.is_stream
    assert [m.get("id", "note") for m in mixed.messages] == [4, "note", 5]
    assert client.post([INITIALIZED]).status == 202
    assert client.post([request(6, "ping"), request(6, "ping")]).status == 400
    assert json.decode(client.post([request(7, "ping")]).body)[0]["id"] == 7


@pytest.mark.requirement("SHL-2")
def test_batch_in_other_revisions_is_rejected() -> None:
    harness = RouterHarness()
    reply = harness.session(D).post([request(1, "ping")])
    assert (reply.status, reply.message["error"]["code"]) == (400, -32600)


def test_invalid_message_in_a_session_gets_an_error() -> None:
    client = RouterHarness().session(D)
    for body, code in (
        (b"{", -32700),
        (b"5", -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":5}', -32600),
    ):
        reply = client.post(body)
        assert (reply.status, reply.message["error"]["code"]) == (400, code)


# -- Without sessions ------------------------------------------------------------------------------


def test_sessions_off_makes_each_request_one_shot() -> None:
    """Capabilities that need a session aren't offered, and GET and DELETE are a 405."""
    harness = RouterHarness(sessions=False)
    reply = harness.post(initialize(D))
    assert b"mcp-session-id" not in reply.headers
    capabilities = reply.message["result"]["capabilities"]
    assert capabilities["tools"] == {}
    assert capabilities["resources"] == {}
    version = (b"mcp-protocol-version", D.encode())
    assert harness.post(INITIALIZED, version).status == 202
    call = request(1, "tools/call", {"name": "echo", "arguments": {"text": "x"}})
    assert harness.post(call, version).message["result"]["content"][0]["text"] == "x"
    assert harness.post(call).message["result"]  # taken for 2025-03-26
    assert harness.get(version).status == 405
    assert harness.get().status == 405
    assert harness.send(b"DELETE", [HOST]).status == 405
    assert harness.post(request(1, "ping"), (b"mcp-session-id", b"x")).status == 404
    assert harness.post(b"{").status == 400
    assert not harness.endpoint.sessions
    assert harness.router.idle
    assert all(type(each).__name__ == "Conversation" for each, _ in harness.seen)
    harness.pump()
    assert all(each.conn.state is State.CLOSED for each, _ in harness.seen)
    assert (harness.endpoint.one_shots, list(harness.server._listeners)) == ({}, [])


@pytest.mark.requirement("SHL-30")
def test_request_without_version_header_is_of_2025_03_26() -> None:
    """That revision alone has batches."""
    harness = RouterHarness(sessions=False)
    batch = [request(1, "ping"), request(2, "ping")]
    assert [each["id"] for each in json.decode(harness.post(batch).body)] == [1, 2]
    for version in (C, D):
        assert harness.post(batch, (b"mcp-protocol-version", version.encode())).status == 400


def test_sessions_off_runs_on_after_a_disconnect() -> None:
    harness = RouterHarness(sessions=False)
    call = request(1, "tools/call", {"name": "slow", "arguments": {"steps": 3}})
    reply = harness.post(call)
    harness.close_after(reply)
    assert len(harness.jobs) == 1
    harness.step(5)
    assert not harness.jobs
    assert type(harness.seen[-1][1]).__name__ == "ConnectionClosed"


# -- HTTP+SSE (2024-11-05) -------------------------------------------------------------------------


@pytest.mark.requirement("SSE-1", "SSE-2", "SSE-4", "SSE-6", "PROBE-8", "CUST-4")
def test_legacy_sse_client_is_served_on_the_same_url() -> None:
    """A GET without a session is the old transport: responses come on its stream, POSTs get 202."""
    harness = RouterHarness()
    stream = harness.send(b"GET", GET, target=b"/mcp?x=1")
    kind, where, id, _ = stream.events[0]
    assert (kind, where[:16], id) == ("endpoint", b"/mcp?session_id=", "")

    def post(message: Any) -> None:
        reply = harness.send(b"POST", POST, json.encode(message), target=where)
        assert (reply.status, reply.body) == (202, b"")

    post(initialize(A))
    assert stream.messages[-1]["result"]["protocolVersion"] == A
    post(INITIALIZED)
    post(request(1, "tools/call", {"name": "slow", "arguments": {}}))
    post(request(2, "ping"))
    assert stream.messages[-1]["id"] == 2
    harness.step(3)
    assert stream.messages[-1]["id"] == 1
    assert all(kind == "message" and id == "" for kind, _, id, _ in stream.events[1:])
    harness.server.changed(tools=True)
    harness.pump()
    assert stream.messages[-1]["method"] == "notifications/tools/list_changed"
    assert harness.send(b"GET", GET, target=where).status == 405
    other = harness.post(request(3, "ping"), (b"mcp-session-id", where[16:]))
    assert other.status == 404  # it is no session of the other kind
    post(request(4, "tools/call", {"name": "slow", "arguments": {"steps": 99}}))
    harness.close_after(stream)
    harness.step(2)
    assert not harness.jobs
    assert harness.send(b"POST", POST, json.encode(request(5, "ping")), target=where).status == 404


def test_legacy_sse_error_is_sent_on_the_stream() -> None:
    harness = RouterHarness()
    stream = harness.get()
    where = stream.events[0][1]
    assert harness.send(b"POST", POST, b"{", target=where).status == 202
    assert stream.messages[-1]["error"]["code"] == -32700
    harness.router.close()
    harness.pump()
    assert stream.ended


def test_legacy_sse_stream_without_a_handshake_expires() -> None:
    harness = RouterHarness()
    stream = harness.get()
    harness.wait(31)
    assert stream.ended
    assert not harness.endpoint.sessions


def test_session_reprs_name_the_state() -> None:
    harness = RouterHarness()
    client = harness.session()
    client.call(1, "slow")
    (session,) = harness.endpoint.sessions.values()
    assert repr(session).startswith("<Session over <Connection server READY 2025-11-25")
    assert repr(session.standalone_stream) == "<EventStream 0, 0 messages, 0 pending>"
