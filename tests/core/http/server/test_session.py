"""Sessions: their begin and end, their owner, the stream of each message, and resumption."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec import json

from mcp_core.connection._state import State
from mcp_core.http import HttpLimits
from mcp_core.registry import Server
from tests.core.http.site import GET, HOST, POST, D, Reply, Talk, Visit, initialize, request

A, B, C = "2024-11-05", "2025-03-26", "2025-06-18"
INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}


# -- Beginning and end -----------------------------------------------------------------------------


@pytest.mark.requirement("SHL-20", "SHL-21", "HTTP-9")
@pytest.mark.parametrize("version", [A, B, C, D])
def test_session_begins_with_initialize(version: str) -> None:
    talk = Talk()
    reply = talk.post(initialize(version))
    assert reply.message["result"]["protocolVersion"] == version
    id = reply.headers[b"mcp-session-id"]
    assert len(id) == 32
    assert id.isalnum()
    visit = Visit(talk, id, version, "")
    assert visit.post(INITIALIZED).status == 202
    call = visit.call(1, text="x")
    assert call.message["result"]["content"][0]["text"] == "x"
    assert b"mcp-session-id" not in call.headers
    assert b"mcp-session-id" not in talk.modern(request(1, "server/discover", {})).headers


@pytest.mark.requirement("SHL-21", "AU-6")
def test_session_id_is_128_random_bits() -> None:
    """An id that counts the sessions could be guessed by the next client."""
    asked: list[int] = []

    def entropy(size: int) -> bytes:
        asked.append(size)
        return bytes(0xA0 + len(asked) for _ in range(size))

    talk = Talk(entropy=entropy)
    for number in (1, 2):
        id = talk.post(initialize(D)).headers[b"mcp-session-id"]
        assert id == b"a%d" % number * 16
    assert asked == [16, 16]


def test_initialize_that_fails_begins_no_session() -> None:
    talk = Talk()
    reply = talk.post(request(1, "initialize", {}))
    assert (reply.status, reply.message["error"]["code"]) == (200, -32602)
    assert b"mcp-session-id" not in reply.headers
    assert not talk.endpoint.sessions
    assert talk.post(b"{").status == 400


def test_second_initialize_begins_a_second_session() -> None:
    talk = Talk()
    talk.session()
    talk.session()
    assert len(talk.endpoint.sessions) == 2


@pytest.mark.requirement("SHL-24", "SHL-26", "LIFE-20")
def test_delete_ends_the_session() -> None:
    talk = Talk()
    visit = talk.session()
    own = visit.get()
    running = visit.call(1, "slow", steps=100)
    streaming = visit.call(2, "count", progress=True, to=100)
    talk.step(2)
    assert visit.delete().status == 204
    assert own.ended
    assert streaming.ended
    assert (running.status, running.ended) == (404, True)
    talk.step(2)
    assert not talk.jobs
    for late in (
        visit.call(3),
        visit.get(),
        visit.get(own.last_id),
        visit.delete(),
        visit.post(INITIALIZED),
    ):
        assert late.status == 404
    assert talk.endpoint.idle
    assert talk.endpoint.log.bytes == 0
    assert talk.site.next_deadline() is None


@pytest.mark.requirement("SHL-23")
def test_request_without_a_session_id_is_rejected() -> None:
    talk = Talk()
    talk.session()
    assert talk.post(request(1, "tools/list")).status == 400
    assert talk.post(INITIALIZED).status == 400
    assert talk.send(b"DELETE", [HOST]).status == 405


@pytest.mark.requirement("SHL-29", "SHL-30", "SHL-32")
def test_version_header_must_match_the_session() -> None:
    talk = Talk()
    visit = talk.session(C)
    plain = visit.headers[:1]
    assert talk.post(request(1, "ping"), *plain).status == 200  # it is known
    for version in (b"2025-11-25", b"2025-03-26"):
        other = talk.post(request(1, "ping"), *plain, (b"mcp-protocol-version", version))
        assert (
            other.status,
            "this session speaks 2025-06-18" in other.message["error"]["message"],
        ) == (
            400,
            True,
        )
    for version in (b"1999-01-01", b"2026-07-28"):
        assert (
            talk.post(request(1, "ping"), *plain, (b"mcp-protocol-version", version)).status == 400
        )


def test_idle_session_expires() -> None:
    talk = Talk(limits=HttpLimits(idle=60))
    idle, used, listening, working = (talk.session() for _ in range(4))
    stream = listening.get()
    working.call(1, "slow", steps=1000)
    talk.wait(40)
    assert used.call(1).status == 200
    talk.wait(40)
    assert idle.call(1).status == 404
    assert {each.id for each in talk.endpoint.sessions.values()} == {
        used.id,
        listening.id,
        working.id,
    }
    assert not stream.ended
    talk.close_after(stream)
    talk.wait(130)
    assert {each.id for each in talk.endpoint.sessions.values()} == {working.id}


def test_incomplete_handshake_expires() -> None:
    talk = Talk(limits=HttpLimits(initialize=30, uninitialized=2))
    id = talk.post(initialize()).headers[b"mcp-session-id"]
    talk.wait(29)
    assert talk.post(request(1, "ping"), (b"mcp-session-id", id)).status == 200
    talk.post(initialize())
    refused = talk.post(initialize())
    assert (refused.status, refused.headers[b"retry-after"]) == (503, b"5")
    talk.wait(1)
    assert talk.post(request(1, "ping"), (b"mcp-session-id", id)).status == 404
    assert talk.post(initialize()).status == 200


@pytest.mark.parametrize("most", [1, 3])
def test_session_limit_rejects_further_sessions(most: int) -> None:
    talk = Talk(limits=HttpLimits(sessions=most))
    visits = [talk.session() for _ in range(most)]
    assert talk.post(initialize()).status == 503
    assert talk.get().status == 503
    visits[0].delete()
    assert talk.post(initialize()).status == 200


# -- Whose it is -----------------------------------------------------------------------------------


@pytest.mark.requirement("SHL-27", "SHL-33")
def test_session_of_another_principal_is_not_found() -> None:
    talk = Talk()
    own = talk.session(principal="ann")
    stream = own.call(1, "count", progress=True, to=2)
    talk.step(9)
    last = stream.last_id
    for stranger in ("bob", ""):
        foreign = Visit(talk, own.id, D, stranger)
        unknown = Visit(talk, b"f" * 32, D, stranger)
        acts: tuple[Callable[[Visit], Reply], ...] = (
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
    assert own.get(last).status == 200


def test_event_id_of_another_session_is_rejected() -> None:
    talk = Talk()
    visits = [talk.session() for _ in range(10)]
    streams = [visit.call(1, "count", progress=True, to=3) for visit in visits]
    talk.step(9)
    assert (
        len({stream.last_id for stream in streams}) == 1
    )  # so the same id is another event in each
    for number, visit in enumerate(visits):
        other = visit.call(2, "echo", text=f"only {number}")
        assert other.status == 200
        again = visit.get(b"2-2")
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
        refused = visits[0].get(bad)
        unknown = visits[0].get(b"12345-0")
        assert (refused.status, refused.body) == (400, unknown.body)


def test_request_ids_are_per_session() -> None:
    talk = Talk()
    visits = [talk.session() for _ in range(20)]
    replies = [visit.call(1, "slow", text=str(n)) for n, visit in enumerate(visits)]
    talk.step(3)
    assert [r.message["result"]["content"][0]["text"] for r in replies] == [
        str(n) for n in range(20)
    ]


def test_request_id_in_use_is_rejected() -> None:
    talk = Talk()
    visit = talk.session()
    first = visit.call(1, "slow", steps=2)
    second = visit.call(1)
    assert (second.status, second.message["error"]["code"], second.message["id"]) == (
        400,
        -32600,
        1,
    )
    assert visit.call("1").status == 200
    talk.step(3)
    assert first.message["result"]
    assert visit.call(1).status == 200


# -- Which stream ----------------------------------------------------------------------------------


@pytest.mark.requirement("SHL-3", "SHL-4", "SHL-14", "SHL-15", "SHL-16", "SHL-17", "SHL-5")
def test_messages_go_to_the_stream_of_their_request() -> None:
    talk = Talk()
    visit = talk.session()
    own = visit.get()
    one = visit.call("one", "count", progress=True, to=3)
    two = visit.call("two", "count", progress=True, to=3)
    talk.step(9)
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
    talk = Talk()
    visit = talk.session()
    talk.server.changed(tools=True)
    talk.server.changed(tools=True)
    talk.pump()
    own = visit.get()
    assert [m["method"] for m in own.messages] == ["notifications/tools/list_changed"]
    running = visit.call(1, "slow")
    talk.server.changed(prompts=True, resources=True)
    talk.step(3)
    assert running.message["id"] == 1
    assert [m["method"] for m in own.messages[1:]] == ["notifications/resources/list_changed"]


def test_second_standalone_stream_is_rejected() -> None:
    talk = Talk()
    visit = talk.session()
    own = visit.get()
    assert visit.get().status == 409
    assert not own.ended
    talk.close_after(own)
    again = visit.get()
    talk.server.changed(tools=True)
    talk.pump()
    assert len(again.messages) == 1


def test_server_request_goes_to_the_stream_and_its_response_by_post() -> None:
    talk = Talk()
    visit = talk.session(elicitation={})
    reply = visit.call(1, "ask")
    talk.step()
    (asked,) = reply.messages
    assert asked["method"] == "elicitation/create"
    answer = {
        "jsonrpc": "2.0",
        "id": asked["id"],
        "result": {"action": "accept", "content": {"name": "Ann"}},
    }
    accepted = visit.post(answer)
    assert (accepted.status, accepted.body) == (202, b"")
    talk.step(2)
    assert "accept" in reply.messages[-1]["result"]["content"][0]["text"]
    assert visit.post(answer).status == 202  # late and unknown answers are legal races


def test_server_request_of_a_json_response_goes_to_the_standalone_stream() -> None:
    talk = Talk(reply="json")
    visit = talk.session(elicitation={})
    own = visit.get()
    reply = visit.call(1, "ask")
    talk.step()
    (asked,) = own.messages
    visit.post({"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "decline"}})
    talk.step(2)
    assert reply.headers[b"content-type"] == b"application/json"


@pytest.mark.requirement("SHL-9")
def test_cancelled_request_ends_its_http_response() -> None:
    talk = Talk()
    visit = talk.session()
    silent = visit.call(1, "slow", steps=100)
    telling = visit.call(2, "count", progress=True, to=100)
    talk.step(2)
    for id in (1, 2, 3):
        note = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}
        assert visit.post(note).status == 202
    assert (silent.status, silent.ended, silent.messages) == (200, True, [])
    assert telling.ended
    talk.step(2)
    assert not talk.jobs
    assert visit.call(1).status == 200
    assert (
        visit.post(
            {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": []}}
        ).status
        == 400
    )


def test_server_request_is_cancelled_on_its_stream() -> None:
    talk = Talk()
    visit = talk.session(elicitation={})
    reply = visit.call(1, "ask")
    talk.step()
    visit.post({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})
    asked, withdrawn = reply.messages
    assert withdrawn["method"] == "notifications/cancelled"
    assert withdrawn["params"]["requestId"] == asked["id"]
    assert reply.ended
    talk.step(2)


def test_cancelled_request_in_the_queue_ends_its_response() -> None:
    from mcp_core import Limits

    server = Server("s", limits=Limits(in_flight=1, waiting=1))

    @server.tool
    async def stuck() -> str:
        """Waits."""
        from tests.core.http.site import _Pause

        while True:
            await _Pause()

    talk = Talk(server)
    visit = talk.session()
    first, second, third = (visit.call(id, "stuck") for id in (1, 2, 3))
    talk.step(2)
    assert (third.status, third.message["error"]["code"]) == (503, -32000)
    visit.post({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 2}})
    assert second.ended
    assert not first.ended
    visit.delete()


# -- Streams that were lost ------------------------------------------------------------------------


@pytest.mark.requirement("SHL-6", "SHL-18", "SHL-19")
def test_stream_begins_with_a_priming_event_if_supported() -> None:
    talk = Talk()
    for version, primed in ((D, True), (C, False), (B, False)):
        visit = talk.session(version)
        reply = visit.call(1, "count", progress=True, to=1)
        talk.step(3)
        _kind, data, id, retry = reply.events[0]
        assert (data == b"") is primed
        assert retry == (1000 if primed else None)
        assert id
        assert reply.events[-1][2] > id


def resumed(version: str, cut: int, when: str, count: int = 50) -> list[Any]:
    """Return progress and result of a call whose stream was cut after `cut` bytes and resumed."""
    talk = Talk()
    visit = talk.session(version)
    reply = visit.call(1, "count", progress=True, to=count)
    if when == "before":
        talk.step(1)
    elif when == "during":
        talk.step(count // 2)
    else:
        talk.step(count + 2)
    heard = reply.body[:cut]
    reply.body = heard[: heard.rfind(b"\n\n") + 2]
    got = reply.messages
    if not reply.events:
        return got
    last = reply.last_id
    talk.close_after(reply)
    if when == "during":
        talk.step(3)
    again = visit.get(last)
    assert again.is_stream
    talk.step(count + 2)
    assert again.ended
    got += again.messages
    assert not talk.jobs
    assert visit.get().status == 200
    return got


@pytest.mark.requirement("SHL-18", "SHL-19")
@pytest.mark.parametrize("version", [B, C, D])
@pytest.mark.parametrize("when", ["before", "during", "after"])
def test_resumed_stream_delivers_each_message_once(version: str, when: str) -> None:
    whole = resumed(version, 10**9, when)
    assert [m.get("params", {}).get("progress", "answer") for m in whole] == [
        *range(1, 51),
        "answer",
    ]
    for cut in range(
        100 if version == D else 180, 8_000, 101 if when == "after" and version == D else 331
    ):
        assert resumed(version, cut, when) == whole


def test_stream_may_be_resumed_many_times() -> None:
    talk = Talk()
    visit = talk.session()
    reply = visit.call(1, "count", progress=True, to=20)
    got: list[Any] = []
    for _ in range(20):
        talk.step()
        got += reply.messages
        last = reply.last_id
        reply = visit.get(last)  # the old one has not noticed
    talk.step(2)
    got += reply.messages
    assert [m.get("params", {}).get("progress", "answer") for m in got] == [*range(1, 21), "answer"]
    assert all(each.ended for each in talk.replies.values())


def test_resume_from_an_evicted_event_is_rejected() -> None:
    talk = Talk(limits=HttpLimits(events=5))
    visit = talk.session()
    reply = visit.call(1, "count", progress=True, to=20)
    talk.step()
    talk.close_after(reply)
    talk.step(30)
    gone = visit.get(reply.last_id)
    assert (gone.status, "no longer retained" in gone.message["error"]["message"]) == (400, True)
    newest = visit.get(b"2-18")
    assert [m.get("params", {}).get("progress", "answer") for m in newest.messages] == [
        19,
        20,
        "answer",
    ]


def test_retained_events_expire() -> None:
    talk = Talk(limits=HttpLimits(event_age=60))
    visit = talk.session()
    reply = visit.call(1, "count", progress=True, to=2)
    talk.step(5)
    talk.wait(59)
    assert visit.get(b"2-0").status == 200
    talk.wait(61)
    assert visit.get(b"2-0").status == 400
    assert talk.endpoint.log.bytes == 0
    assert len(next(iter(talk.endpoint.sessions.values())).streams) == 1
    assert reply.ended


@pytest.mark.requirement("CXL-16", "SHL-9")
def test_disconnect_does_not_cancel_and_unresumable_output_is_dropped() -> None:
    talk = Talk()
    visit = talk.session()
    reply = visit.call(1, "slow", steps=3)
    talk.close_after(reply)
    assert len(talk.jobs) == 1
    assert visit.call(1).status == 400  # it is still in use
    talk.step(5)
    assert not talk.jobs
    assert talk.endpoint.log.bytes == 0
    (session,) = talk.endpoint.sessions.values()
    assert list(session.streams) == [b"0"]
    assert visit.call(1).status == 200


@pytest.mark.requirement("SHL-7")
def test_handler_releases_its_client() -> None:
    talk = Talk()
    visit = talk.session()
    reply = visit.call(1, "leave", retry=0.25)
    talk.step()
    assert reply.ended
    assert reply.events == [("message", b"", "2-0", 1000)]
    assert b"retry: 250" in reply.body
    talk.step(2)
    again = visit.get(reply.last_id)
    assert "released: True" in again.message["result"]["content"][0]["text"]


@pytest.mark.parametrize("version", [B, C])
def test_release_without_resumability_is_refused(version: str) -> None:
    talk = Talk()
    visit = talk.session(version)
    reply = visit.call(1, "leave")
    talk.step(3)
    assert "released: False" in reply.message["result"]["content"][0]["text"]
    lone = talk.call(1, "leave")
    talk.step(3)
    assert "released: False" in lone.message["result"]["content"][0]["text"]


def test_stream_limit_rejects_further_requests() -> None:
    talk = Talk(limits=HttpLimits(streams=3))
    visit = talk.session()
    for id in (1, 2, 3):
        visit.call(id, "slow", steps=100)
    assert visit.call(4).status == 429
    visit.delete()
    talk.step(2)


def test_retained_streams_make_room_for_new_ones() -> None:
    talk = Talk(limits=HttpLimits(streams=3), reply="sse")
    visit = talk.session()
    for id in range(1, 20):
        reply = visit.call(id, "slow", steps=0)
        talk.step(3)
        assert reply.status == 200
        assert len(reply.messages) == 1
    assert len(talk.endpoint.sessions[visit.id].streams) <= 4


# -- Batches (2025-03-26) --------------------------------------------------------------------------


@pytest.mark.requirement("SHL-1", "DEC-5")
def test_batch_gets_an_array_or_a_stream() -> None:
    talk = Talk()
    visit = talk.session(B)
    pings = [request(1, "ping"), INITIALIZED, request(2, "ping")]
    reply = visit.post(pings)
    assert reply.headers[b"content-type"] == b"application/json"
    assert [m["id"] for m in json.decode(reply.body)] == [1, 2]
    call = request("c", "tools/call", {"name": "slow", "arguments": {}})
    waiting = visit.post([request(3, "ping"), call])
    assert waiting.status == 0
    talk.step(3)
    assert [m["id"] for m in json.decode(waiting.body)] == [3, "c"]
    counting = {"name": "count", "arguments": {"to": 1}, "_meta": {"progressToken": 9}}
    mixed = visit.post([request(4, "ping"), request(5, "tools/call", counting)])
    talk.step(3)
    assert mixed.is_stream
    assert [m.get("id", "note") for m in mixed.messages] == [4, "note", 5]
    assert visit.post([INITIALIZED]).status == 202
    assert visit.post([request(6, "ping"), request(6, "ping")]).status == 400
    assert json.decode(visit.post([request(7, "ping")]).body)[0]["id"] == 7


@pytest.mark.requirement("SHL-2")
def test_batch_in_other_revisions_is_rejected() -> None:
    talk = Talk()
    reply = talk.session(D).post([request(1, "ping")])
    assert (reply.status, reply.message["error"]["code"]) == (400, -32600)


def test_invalid_message_in_a_session_gets_an_error() -> None:
    visit = Talk().session(D)
    for body, code in (
        (b"{", -32700),
        (b"5", -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":5}', -32600),
    ):
        reply = visit.post(body)
        assert (reply.status, reply.message["error"]["code"]) == (400, code)


# -- Without sessions ------------------------------------------------------------------------------


def test_sessions_off_makes_each_request_one_shot() -> None:
    talk = Talk(sessions=False)
    reply = talk.post(initialize(D))
    assert b"mcp-session-id" not in reply.headers
    capabilities = reply.message["result"]["capabilities"]
    assert capabilities["tools"] == {}
    assert capabilities["resources"] == {}
    version = (b"mcp-protocol-version", D.encode())
    assert talk.post(INITIALIZED, version).status == 202
    call = request(1, "tools/call", {"name": "echo", "arguments": {"text": "x"}})
    assert talk.post(call, version).message["result"]["content"][0]["text"] == "x"
    assert talk.post(call).message["result"]  # taken for 2025-03-26
    assert talk.get(version).status == 405
    assert talk.get().status == 405
    assert talk.send(b"DELETE", [HOST]).status == 405
    assert talk.post(request(1, "ping"), (b"mcp-session-id", b"x")).status == 404
    assert talk.post(b"{").status == 400
    assert not talk.endpoint.sessions
    assert talk.site.idle
    assert all(type(each).__name__ == "Conversation" for each, _ in talk.seen)
    talk.pump()
    assert all(each.conn.state is State.CLOSED for each, _ in talk.seen)
    assert (talk.endpoint.one_shots, list(talk.server._listeners)) == ({}, [])


@pytest.mark.requirement("SHL-30")
def test_request_without_version_header_is_of_2025_03_26() -> None:
    """That revision alone has batches."""
    talk = Talk(sessions=False)
    batch = [request(1, "ping"), request(2, "ping")]
    assert [each["id"] for each in json.decode(talk.post(batch).body)] == [1, 2]
    for version in (C, D):
        assert talk.post(batch, (b"mcp-protocol-version", version.encode())).status == 400


def test_sessions_off_runs_on_after_a_disconnect() -> None:
    talk = Talk(sessions=False)
    call = request(1, "tools/call", {"name": "slow", "arguments": {"steps": 3}})
    reply = talk.post(call)
    talk.close_after(reply)
    assert len(talk.jobs) == 1
    talk.step(5)
    assert not talk.jobs
    assert type(talk.seen[-1][1]).__name__ == "ConnectionClosed"


# -- HTTP+SSE (2024-11-05) -------------------------------------------------------------------------


@pytest.mark.requirement("SSE-1", "SSE-2", "SSE-4", "SSE-6", "PROBE-8", "CUST-4")
def test_legacy_sse_client_is_served_on_the_same_url() -> None:
    talk = Talk()
    stream = talk.send(b"GET", GET, target=b"/mcp?x=1")
    kind, where, id, _ = stream.events[0]
    assert (kind, where[:16], id) == ("endpoint", b"/mcp?session_id=", "")

    def post(message: Any) -> None:
        reply = talk.send(b"POST", POST, json.encode(message), target=where)
        assert (reply.status, reply.body) == (202, b"")

    post(initialize(A))
    assert stream.messages[-1]["result"]["protocolVersion"] == A
    post(INITIALIZED)
    post(request(1, "tools/call", {"name": "slow", "arguments": {}}))
    post(request(2, "ping"))
    assert stream.messages[-1]["id"] == 2
    talk.step(3)
    assert stream.messages[-1]["id"] == 1
    assert all(kind == "message" and id == "" for kind, _, id, _ in stream.events[1:])
    talk.server.changed(tools=True)
    talk.pump()
    assert stream.messages[-1]["method"] == "notifications/tools/list_changed"
    assert talk.send(b"GET", GET, target=where).status == 405
    other = talk.post(request(3, "ping"), (b"mcp-session-id", where[16:]))
    assert other.status == 404  # it is no session of the other kind
    post(request(4, "tools/call", {"name": "slow", "arguments": {"steps": 99}}))
    talk.close_after(stream)
    talk.step(2)
    assert not talk.jobs
    assert talk.send(b"POST", POST, json.encode(request(5, "ping")), target=where).status == 404


def test_legacy_sse_error_is_sent_on_the_stream() -> None:
    talk = Talk()
    stream = talk.get()
    where = stream.events[0][1]
    assert talk.send(b"POST", POST, b"{", target=where).status == 202
    assert stream.messages[-1]["error"]["code"] == -32700
    talk.site.close()
    talk.pump()
    assert stream.ended


def test_legacy_sse_stream_without_a_handshake_expires() -> None:
    talk = Talk()
    stream = talk.get()
    talk.wait(31)
    assert stream.ended
    assert not talk.endpoint.sessions


def test_session_reprs_name_the_state() -> None:
    talk = Talk()
    visit = talk.session()
    visit.call(1, "slow")
    (session,) = talk.endpoint.sessions.values()
    assert repr(session).startswith("<Session over <Connection server READY 2025-11-25")
    assert repr(session.standalone_stream) == "<EventStream 0, 0 messages, 0 pending>"
