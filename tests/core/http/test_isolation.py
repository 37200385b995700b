"""Isolation: no message in another session, each once and in order, nothing left at the end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from msgspec import json

from mcp_core import Limits, RequestReceived
from mcp_core.auth import Grant, OAuthResourceServer
from mcp_core.http import EndpointAuth, Exchange, HttpLimits, RequestHead
from mcp_core.http.server._session import Session
from mcp_core.registry import Server
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
    request,
)
from tests.levels import long

B, C = "2025-03-26", "2025-06-18"
REPLIES = ["auto", "sse", "json"]
# One handler at a time, so that other requests wait in the lane.
NARROW = Limits(message=100_000, in_flight=1, waiting=2)


def cancelled(id: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}


def answer(id: Any, action: str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "result": {"action": action}}


def left_over(harness: RouterHarness) -> dict[str, Any]:
    """All that could be left behind in the end, without what is empty."""
    harness.router.close()
    harness.pump()
    for reply in list(harness.replies.values()):
        harness.close_after(reply)
    harness.stopped.update(harness.jobs)
    harness.step(2)
    endpoint = harness.endpoint
    held = {
        "sessions": endpoint.sessions,
        "alone": endpoint.one_shots,
        "by client": [
            endpoint.one_shots._by_client,
            endpoint.sessions._by_client,
            endpoint.sessions._uninitialized_by_client,
        ]
        != [{}, {}, {}],
        "reading": endpoint._reading,
        "bodies": endpoint.state.bodies.total or endpoint.state.bodies._by_client,
        "quiet": list(endpoint._awaiting_output),
        "beginning": list(endpoint.sessions.uninitialized),
        "idle": list(endpoint.sessions.idle),
        "events": endpoint.events,
        "dirty": endpoint.dirty,
        "ready": endpoint.ready,
        "shelves": endpoint.log._retained,
        "streams": list(endpoint.log._expiry),
        "bytes": endpoint.log.bytes,
        "deadline": harness.router.next_deadline(),
        "services": list(harness.server._listeners),
        "jobs": harness.jobs,
    }
    return {name: what for name, what in held.items() if what}


# -- Principals and handles ------------------------------------------------------------------------


class Setup(NamedTuple):
    """Ann's session, in the midst of everything, and what a stranger may have got hold of."""

    harness: RouterHarness
    ann: SessionClient
    own: Reply  # the standalone stream of the session
    counting: Reply  # a call that reports progress
    asking: Reply  # a call that waits for input of the client
    question: Any
    secret: str


def setup(auth: EndpointAuth | None = None) -> Setup:
    harness = RouterHarness(auth=auth)
    secret = "nonce-of-ann"
    ann = harness.session(principal="ann", elicitation={})
    own = ann.get()
    assert ann.post(request("sub", "resources/subscribe", {"uri": "memo://a"})).status == 200
    counting = ann.call("count", "count", progress=True, to=30)
    asking = ann.call("ask", "ask")
    waiting = ann.call("slow", "slow", steps=1000, text=secret)
    harness.step(2)
    assert waiting.status == 0
    return Setup(harness, ann, own, counting, asking, asking.messages[-1]["id"], secret)


def unharmed(here: Setup) -> None:
    """Everything of Ann's is as it was, and goes on."""
    harness, ann = here.harness, here.ann
    assert [each.ended for each in (here.own, here.counting, here.asking)] == [False] * 3
    harness.server.changed(resource="memo://a")
    harness.pump()
    assert here.own.messages[-1]["params"]["uri"] == "memo://a"
    before = len(here.counting.messages)
    harness.step()
    assert len(here.counting.messages) == before + 1
    assert ann.post(answer(here.question, "accept")).status == 202
    harness.step(2)
    assert "accept" in here.asking.message_text
    assert ann.call(5, text="still here").message["result"]["content"][0]["text"] == "still here"


def guarded() -> EndpointAuth:
    """Authorization of ann, with several tokens, and of others, by their names."""
    may = frozenset({"use"})
    grants = {
        "ann": Grant("ann", scopes=may),
        "ann-again": Grant("ann", scopes=may),
        "ann-may-nothing": Grant("ann"),
        "bob": Grant("bob", scopes=may),
        "ANN": Grant("ANN", scopes=may),
    }
    guard = OAuthResourceServer(
        "https://mcp.example.com/mcp", ["https://as.example.com"], grants.get, scopes=["use"]
    )
    return EndpointAuth(guard, lambda: 0.0, lambda *arguments, **how: None)


Act = Callable[[SessionClient, Setup], Reply]
# A stranger uses a handle of Ann's; first with the id of Ann's session, then in another session.
HANDLES: dict[str, tuple[Act, Act]] = {
    "session, POST": (lambda v, h: v.call(1), lambda v, h: v.call(1)),
    "session, GET": (lambda v, h: v.get(), lambda v, h: v.get()),
    "session, DELETE": (lambda v, h: v.delete(), lambda v, h: v.delete()),
    "event of a call": (
        lambda v, h: v.get(h.counting.last_id),
        lambda v, h: v.get(b"12345-0"),
    ),
    "event of the session": (
        lambda v, h: v.get(h.own.last_id),
        lambda v, h: v.get(b"54321-7"),
    ),
    "running request": (
        lambda v, h: v.post(cancelled("count")),
        lambda v, h: v.post(cancelled("never")),
    ),
    "asking request": (
        lambda v, h: v.post(cancelled("ask")),
        lambda v, h: v.post(cancelled("never")),
    ),
    "question": (
        lambda v, h: v.post(answer(h.question, "decline")),
        lambda v, h: v.post(answer(4711, "decline")),
    ),
    "question, refused": (
        lambda v, h: v.post(
            {"jsonrpc": "2.0", "id": h.question, "error": {"code": 1, "message": "no"}}
        ),
        lambda v, h: v.post({"jsonrpc": "2.0", "id": 4711, "error": {"code": 1, "message": "no"}}),
    ),
    "subscription": (
        lambda v, h: v.post(request(9, "resources/unsubscribe", {"uri": "memo://a"})),
        lambda v, h: v.post(request(9, "resources/unsubscribe", {"uri": "memo://never"})),
    ),
    "progress of a question": (
        lambda v, h: v.post(
            {
                "jsonrpc": "2.0",
                "method": "notifications/progress",
                "params": {"progressToken": h.question, "progress": 1},
            }
        ),
        lambda v, h: v.post(
            {
                "jsonrpc": "2.0",
                "method": "notifications/progress",
                "params": {"progressToken": 4711, "progress": 1},
            }
        ),
    ),
}


def outcome_of(reply: Reply) -> tuple[Any, ...]:
    return reply.status, reply.headers, reply.body, reply.ended


@pytest.mark.parametrize("stranger", ["bob", "", "ANN", "ann "])
@pytest.mark.parametrize("what", HANDLES)
@pytest.mark.requirement("SHL-24", "SHL-27", "SHL-33")
def test_session_id_of_another_principal_is_like_an_unknown_one(what: str, stranger: str) -> None:
    here = setup()
    known, unknown = HANDLES[what]
    # By the id of Ann's session, and by an unknown id.
    theirs = known(SessionClient(here.harness, here.ann.id, D, stranger), here)
    nobodys = unknown(SessionClient(here.harness, b"f" * 32, D, stranger), here)
    assert outcome_of(theirs) == outcome_of(nobodys)
    assert theirs.status == 404
    assert here.secret.encode() not in theirs.body
    unharmed(here)


@pytest.mark.parametrize("stranger", ["bob", "ANN", "bob ann", "", "nobody"])
@pytest.mark.parametrize("what", HANDLES)
def test_session_id_of_another_principal_is_unknown_behind_a_guard(
    what: str, stranger: str
) -> None:
    here = setup(guarded())
    known, unknown = HANDLES[what]
    theirs = known(SessionClient(here.harness, here.ann.id, D, stranger), here)
    nobodys = unknown(SessionClient(here.harness, b"f" * 32, D, stranger), here)
    assert outcome_of(theirs) == outcome_of(nobodys)
    assert theirs.status == {"bob": 404, "ANN": 404, "bob ann": 400}.get(stranger, 401)
    assert here.secret.encode() not in theirs.body
    unharmed(here)


@pytest.mark.parametrize("what", HANDLES)
def test_session_behind_a_guard_survives_its_token(what: str) -> None:
    """Another token of the same user works; one with fewer scopes is denied, without effect."""
    here = setup(guarded())
    known, _ = HANDLES[what]
    refused = known(SessionClient(here.harness, here.ann.id, D, "ann-may-nothing"), here)
    assert refused.status == 403
    unharmed(here)
    assert (
        SessionClient(here.harness, here.ann.id, D, "ann-again").call(6, text="me").message_text
        == "me"
    )


@pytest.mark.parametrize("stranger", ["ann", "bob", ""])
@pytest.mark.parametrize("what", [each for each in HANDLES if not each.startswith("session")])
@pytest.mark.requirement("SHL-19", "SHL-27")
def test_event_id_of_another_session_is_like_an_unknown_one(what: str, stranger: str) -> None:
    here = setup()
    known, unknown = HANDLES[what]
    one, other = (here.harness.session(principal=stranger, elicitation={}) for _ in range(2))
    if what == "event of the session":
        # Each session has a stream of that name: the client gets its own.
        reply = known(one, here)
        assert reply.messages == []
    else:
        assert outcome_of(known(one, here)) == outcome_of(unknown(other, here))
    unharmed(here)


def test_session_id_is_not_accepted_as_another_kind() -> None:
    here = setup()
    harness = here.harness
    target = b"/mcp?session_id=" + here.ann.id
    for verb, headers, body in (
        (b"POST", POST, b"{}"),
        (b"GET", [HOST, (b"accept", b"text/event-stream")], None),
        (b"DELETE", [HOST], None),
    ):
        reply = harness.send(verb, headers, body, target=target, principal="ann")
        assert reply.status == 404
    unharmed(here)


def test_modern_request_reaches_no_session() -> None:
    here = setup()
    harness, ann = here.harness, here.ann
    version = (b"mcp-protocol-version", b"2026-07-28")
    for message in (cancelled("count"), answer(here.question, "decline")):
        for principal in ("ann", "bob"):
            reply = harness.post(message, version, (b"mcp-session-id", ann.id), principal=principal)
            assert (reply.status, reply.body) == (202, b"")
    last = harness.post(cancelled("count"), version, (b"last-event-id", here.counting.last_id))
    assert last.status == 202
    unharmed(here)


# -- The same ids ----------------------------------------------------------------------------------


def test_concurrent_posts_with_the_same_id_are_separate() -> None:
    """JSON-RPC ids are unique per session only; the repeated id in a session gets a 400."""
    harness = RouterHarness()
    clients = [harness.session(version) for version in (B, C, D, D) for _ in range(5)]
    runs = [
        (client, client.call(1, "slow", steps=3, text=f"nonce {n}"))
        for n, client in enumerate(clients)
    ]
    again = [client.call(1, "slow", text="never") for client in clients]
    alone = [harness.call(1, "slow", steps=3, text=f"alone {n}") for n in range(10)]
    for reply in again:
        assert (reply.status, reply.message["id"]) == (400, 1)
    harness.step(4)
    for n, (_, reply) in enumerate(runs):
        assert reply.message["result"]["content"][0]["text"] == f"nonce {n}"
    for n, reply in enumerate(alone):
        assert reply.message["result"]["content"][0]["text"] == f"alone {n}"
    assert left_over(harness) == {}


@pytest.mark.parametrize("ids", [(1, "1"), ("", " "), (0, "0"), (-1, "-1")])
def test_ids_of_different_types_are_different(ids: tuple[Any, Any]) -> None:
    harness = RouterHarness()
    client = harness.session()
    replies = [client.call(id, "slow", steps=2, text=repr(id)) for id in ids]
    client.post(cancelled(ids[1]))
    harness.step(3)
    assert replies[0].message["result"]["content"][0]["text"] == repr(ids[0])
    assert (replies[1].ended, replies[1].messages) == (True, [])


@pytest.mark.parametrize("id", [True, 1.0, [1], {"id": 1}, None])
def test_cancellation_with_an_invalid_id_does_nothing(id: Any) -> None:
    harness = RouterHarness()
    client = harness.session()
    reply = client.call(1, "slow", steps=2, text="x")
    client.post(cancelled(id))
    harness.step(3)
    assert reply.message["result"]["content"][0]["text"] == "x"


# -- Fifty events ----------------------------------------------------------------------------------


class Fifty:
    """A call whose handler is in our hands: `emit` tells its progress, `finish` answers."""

    def __init__(self, version: str = D, **options: Any) -> None:
        self.harness = RouterHarness(stubborn(), **options)
        self.client = self.harness.session(version)
        self.reply = self.client.call(1, "stand", progress=True)
        self.conversation, event = self.harness.seen[-1]
        assert isinstance(event, RequestReceived)
        self.id = event.id
        self.emitted = 0

    def emit(self, count: int) -> None:
        for _ in range(count):
            self.emitted += 1
            assert self.conversation.conn.send_progress(self.id, self.emitted, 50)
            self.conversation.mark_dirty()
            self.harness.pump()

    def finish(self) -> None:
        self.harness.step(2)
        assert not self.harness.jobs

    def resume(self, last: bytes) -> Reply:
        return self.client.get(last)


def stubborn() -> Server:
    server = Server("stubborn")

    @server.tool
    async def stand() -> str:
        """Stands still for one step."""
        await Pause()
        return "done"

    return server


def boundaries(body: bytes) -> list[int]:
    """Where the events of a stream end."""
    return [0, *(place + 2 for place in range(len(body)) if body[place : place + 2] == b"\n\n")]


def last_id_in(body: bytes) -> bytes:
    """The id that a client has who read so far."""
    whole = body[: body.rfind(b"\n\n") + 2]
    start = whole.rfind(b"id: ")
    return whole[start + 4 : whole.index(b"\n", start)] if start >= 0 else b""


def progress_in(reply: Reply) -> list[Any]:
    return [each.get("params", {}).get("progress", "answer") for each in reply.messages]


@pytest.mark.parametrize("reply", ["auto", "sse"])
@pytest.mark.parametrize("when", ["before", "during", "after"])
@pytest.mark.parametrize("version", [B, C, D])
@pytest.mark.parametrize("stride", [23, long(1)])
@pytest.mark.requirement("SHL-6", "SHL-16", "SHL-17", "SHL-18", "SHL-19")
def test_stream_cut_anywhere_resumes_at_the_next_event(
    version: str, when: str, reply: str, stride: int
) -> None:
    """The rest has the same bytes that the client would have got, behind a priming event.

    In 2025-11-25 it is cut at bytes, in the other revisions at each event.
    """
    run = Fifty(version, reply=reply)
    begins = b"id: %b\nretry: 1000\ndata: \n\n" if version == D else b"%.0b"
    run.harness.step()
    run.emit({"before": 1, "during": 25, "after": 50}[when])
    if when == "after":
        run.finish()
    body = run.reply.body
    assert body.startswith(begins % b"2-0")
    assert run.reply.ended is (when == "after")
    heard_by_cut = {}
    again = run.reply
    cuts = boundaries(body)[1:]
    if version == D:
        cuts = [*range(body.index(b"\n\n") + 2, len(body), stride), len(body)]
    for cut in cuts:
        whole = body.rfind(b"\n\n", 0, cut) + 2
        last = last_id_in(body[:whole])
        again = run.resume(last)
        if when == "after" and whole == len(body):
            assert again.status == 405  # there is nothing left to resume
        else:
            assert again.body == begins % last + body[whole:]
        assert again.ended is (when == "after")
        heard_by_cut[whole] = last
    assert len(heard_by_cut) == len(boundaries(body)) - 1
    if when != "after":
        # What comes from now on goes to the one that came last, and to no other.
        others = [each for each in run.harness.replies.values() if each is not again]
        before = [each.body for each in others]
        run.emit(50 - run.emitted)
        run.finish()
        assert (progress_in(again)[-1], again.ended) == ("answer", True)
        assert [each.body for each in others] == before
        assert all(each.ended for each in others)
    assert left_over(run.harness) == {}


@pytest.mark.parametrize("version", [B, C, D])
@pytest.mark.parametrize("reply", ["auto", "sse"])
@pytest.mark.parametrize("stride", [6, long(1)])  # between the places where it is cut
@pytest.mark.requirement("SHL-18", "SHL-19")
def test_stream_cut_anywhere_delivers_each_event_once(
    version: str, reply: str, stride: int
) -> None:
    """The stream is cut after `emitted` events, of which `received` had reached the client.

    The rest is sent while the client is away, or after it has reconnected.
    """
    whole = [*range(1, 13), "answer"]
    for emitted in range(0, 13, stride):
        for received in range(0, emitted + 1, min(stride, 2) if version == D else 3):
            for away in (False, True):
                run = Fifty(version, reply=reply)
                run.harness.step()
                run.emit(emitted)
                body = run.reply.body
                ends = boundaries(body)[1:] if version == D else boundaries(body)
                if received >= len(ends) or ends[received] == 0:
                    continue  # it knows of no event yet, so there is nothing to resume
                run.reply.body = body[: ends[received]]
                got = progress_in(run.reply)
                assert got == whole[:received]
                run.harness.close_after(run.reply)
                if away:
                    run.emit(12 - emitted)
                    run.finish()
                again = run.resume(run.reply.last_id)
                if not away:
                    run.emit(12 - emitted)
                    run.finish()
                assert got + progress_in(again) == whole
                assert again.ended


@pytest.mark.parametrize("version", [B, C])
def test_stream_without_an_event_id_cannot_be_resumed(version: str) -> None:
    run = Fifty(version)
    run.harness.step()
    run.harness.close_after(run.reply)
    run.emit(3)
    run.finish()
    assert run.resume(b"2-0").status == 400
    assert left_over(run.harness) == {}


# -- Disconnects -----------------------------------------------------------------------------------

CALLS: dict[str, Callable[[RouterHarness, SessionClient], Reply]] = {
    "at once": lambda harness, client: client.call(1),
    "slow": lambda harness, client: client.call(1, "slow", steps=2),
    "telling": lambda harness, client: client.call(1, "count", progress=True, to=3),
    "asking": lambda harness, client: client.call(1, "ask"),
    "leaving": lambda harness, client: client.call(1, "leave", retry=0.1),
    "listening": lambda harness, client: client.get(),
    "modern": lambda harness, client: harness.call(1, "slow", steps=2),
    "modern, telling": lambda harness, client: harness.modern(
        request(
            1,
            "tools/call",
            {
                "name": "count",
                "arguments": {"to": 3},
                "_meta": {
                    "progressToken": 1,
                    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                    "io.modelcontextprotocol/clientCapabilities": {},
                },
            },
        ),
        "count",
    ),
    "beginning": lambda harness, client: harness.post(initialize()),
    "HTTP+SSE": lambda harness, client: harness.get(),
}


class Counted(RouterHarness):
    """A client that disconnects after `most` actions; `taken` is the number that it has read."""

    def __init__(self, most: int, **options: Any) -> None:
        super().__init__(**options)
        self.most = most
        self.taken = 0
        self.about: Exchange | None = None

    def read(self, exchange: Exchange) -> None:
        if exchange is not self.about:
            super().read(exchange)
            return
        reply = self.replies[exchange]
        if self.taken >= self.most:
            self.router.disconnected(exchange, self.now)
            assert self.router.actions_to_send(exchange) == []
            reply.ended = True
            return
        before = len(reply.body), reply.status, reply.ended
        super().read(exchange)
        self.taken += (len(reply.body), reply.status, reply.ended) != before


def going(call: str, most: int, reply: str) -> Counted:
    harness = Counted(most, reply=reply)
    client = harness.session(elicitation={})

    original = harness.router.begin

    def begin(*args: Any, **more: Any) -> Exchange:
        exchange = original(*args, **more)
        if harness.about is None:
            harness.about = exchange
        return exchange

    harness.router.begin = begin  # type: ignore[method-assign]
    CALLS[call](harness, client)
    harness.wait(16)
    harness.step(6)
    return harness


@pytest.mark.parametrize("reply", REPLIES)
@pytest.mark.parametrize("call", CALLS)
def test_disconnect_at_any_action_leaves_nothing(call: str, reply: str) -> None:
    most = 0
    while True:
        harness = going(call, most, reply)
        assert harness.about is not None
        assert left_over(harness) == {}
        if harness.taken < most:
            break
        most += 1
    assert most >= 1


def _unread(client: SessionClient) -> None:
    harness = client.harness
    unread = client.call(1, "count", progress=True, to=1000).exchange
    harness.step()
    read = harness.read
    harness.read = lambda exchange: None if exchange is unread else read(exchange)  # type: ignore[method-assign]
    harness.step(1)
    harness.read = read  # type: ignore[method-assign]


def _half(client: SessionClient) -> None:
    harness = client.harness
    exchange = harness.router.begin(
        RequestHead(b"POST", b"/mcp", [*POST, *client.headers]), harness.now
    )
    harness.replies[exchange] = Reply(exchange)
    harness.router.receive_data(exchange, b'{"jsonrpc":"2.0","id":1,', harness.now)


def _other_half(harness: RouterHarness) -> None:
    for exchange in list(harness.replies):
        if exchange.reading:
            harness.router.receive_data(exchange, b'"method":"ping"}', harness.now)
            harness.router.receive_data(exchange, b"", harness.now)
    harness.pump()


STATES: dict[str, Callable[[SessionClient], Any]] = {
    "undecided": lambda client: client.call(1, "slow", steps=1000),
    "streaming": lambda client: client.call(1, "count", progress=True, to=1000),
    "detached": lambda client: client.harness.close_after(
        client.call(1, "count", progress=True, to=1000)
    ),
    "forgotten": lambda client: client.harness.close_after(client.call(1, "slow", steps=1000)),
    "asking": lambda client: client.call(1, "ask"),
    "released": lambda client: client.call(1, "leave", retry=1),
    "waiting": lambda client: [client.call(id, "slow", steps=1000) for id in range(1, 5)],
    "listening": lambda client: client.get(),
    "unread": _unread,
    "half a body": _half,
    "cancelled": lambda client: (client.call(1, "slow", steps=1000), client.post(cancelled(1))),
}


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("reply", REPLIES)
@pytest.mark.requirement("SHL-24")
def test_delete_in_any_state_of_a_call_ends_it(state: str, reply: str) -> None:
    """Every state of a call times every form of response: nothing is left, others go on."""
    harness = RouterHarness(example(NARROW), reply=reply)
    client = harness.session(elicitation={})
    other = harness.session(elicitation={})
    begun = other.call(1, "slow", steps=3, text="of the other")
    STATES[state](client)
    harness.step(2)
    (session,) = [each for each in harness.endpoint.sessions.values() if each.id == client.id]
    assert client.delete().status == 204
    _other_half(harness)
    for late in (client.call(7), client.get(), client.get(b"2-0"), client.delete()):
        assert late.status == 404
    assert all(each.ended for each in harness.replies.values() if each is not begun)
    assert (session.streams, session.stream_by_request, session.in_use) == ({}, {}, False)
    harness.step(3)
    assert begun.message["result"]["content"][0]["text"] == "of the other"
    assert len(harness.server._listeners) == 1
    assert left_over(harness) == {}


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("sharp", [False, True], ids=["shutdown", "close"])
def test_close_in_any_state_ends_everything(state: str, sharp: bool) -> None:
    """A shutdown lets calls finish and still answers pings; `close` ends all at once."""
    harness = RouterHarness()
    client = harness.session(elicitation={})
    STATES[state](client)
    alone = harness.call(9, "slow", steps=3)
    harness.step(2)
    if sharp:
        harness.router.close()
    else:
        harness.router.shutdown()
    harness.pump()
    _other_half(harness)
    refused = harness.call(1)
    assert refused.status == 503
    harness.step(4)
    assert alone.ended
    assert (alone.status == 200) is not sharp
    if not sharp:
        assert client.post(request("p", "ping")).message["result"] == {}
        assert client.call("c").status == 503
    assert left_over(harness) == {}


# -- Who does not read -----------------------------------------------------------------------------


@pytest.mark.parametrize("modern", [False, True])
def test_stalled_stream_does_not_harm_others(modern: bool) -> None:
    """One client stops reading 10,000 events: its stream is given up, its memory bounded."""
    harness = RouterHarness(limits=HttpLimits(queued=2_000))
    client = harness.session()
    call = CALLS["modern, telling"] if modern else CALLS["telling"]
    unread = client.call("unread", "count", progress=True, to=10_000)
    harness.step()
    read = harness.read
    harness.read = lambda exchange: None if exchange is unread.exchange else read(exchange)  # type: ignore[method-assign]
    for number in range(10):
        other = harness.call(1, text="x") if modern else client.call(number, text="x")
        assert other.message["result"]["content"][0]["text"] == "x"
        telling = call(harness, harness.session())
        harness.step(5)
        assert telling.ended
    assert unread.exchange.queued == 0  # it was given up
    (session,) = [each for each in harness.endpoint.sessions.values() if each.id == client.id]
    assert isinstance(session, Session)
    assert harness.endpoint.log.bytes < 256 * 1000
    harness.router.disconnected(unread.exchange, harness.now)
    harness.pump()
    # It may resume the retained events.
    again = client.get(unread.last_id)
    assert again.status == (
        200 if progress_in(unread)[-1] >= session.streams[b"2"].last_evicted else 400
    )
    assert left_over(harness) == {}


def test_legacy_sse_client_that_does_not_read_loses_the_session() -> None:
    """HTTP+SSE has nothing to resume from, so the full queue must end the session with a 404."""
    harness = RouterHarness(limits=HttpLimits(queued=2_000))
    stream = harness.get()
    where = stream.events[0][1]
    read = harness.read
    harness.read = lambda exchange: None if exchange is stream.exchange else read(exchange)  # type: ignore[method-assign]
    statuses = []
    for number in range(200):
        ping = json.encode(request(number, "ping"))
        statuses.append(harness.send(b"POST", POST, ping, target=where).status)
        assert stream.exchange.queued < 2_100
    assert statuses[0] == 202
    assert statuses[-1] == 404
    assert not harness.endpoint.sessions
    harness.read = read  # type: ignore[method-assign]
    harness.read(stream.exchange)
    assert stream.ended
    assert left_over(harness) == {}
