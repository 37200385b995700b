"""Plays a script to a `Site`, as several clients, the wires between, and the handlers, and holds it against what clients may see.

Everything that a handler says for a call has the call's own mark in it, which names the client who made it. So whatever arrives tells
by itself where it belongs, and `fuzz.sightings` judges it.

Rule of this file: a step that makes no sense at its time does nothing. So any list of steps is a script.

Steps, each a tuple with its name first; a place counts from 0 among what there is, and from the start again when there is less:

    begin who                           a client begins a session
    call who id                         it calls a tool
    batch who ids                       it makes several calls at once
    ping who id
    say who data                        it posts these bytes
    half who                            it sends a head and half a body; `rest` sends the others
    rest place
    cancel who id
    answer_ours who number              it answers a question of ours, or what may be none
    get who                             it asks for its session's stream
    resume who wire event               it comes back with an id that it was given on one of its wires
    guess who id                        it comes back with some id
    steal who whom                      it uses the session of another: by POST, GET and DELETE
    delete who
    drop place                          a client hangs up
    deaf place, hear place              a client stops reading, or reads again
    note place times                    a running handler tells its progress so many times
    ask place, log place                it asks, or says something
    release place times                 it tells its progress, and at once lets its client go
    finish place how                    it ends
    change                              a list has changed
    wait seconds
    wind_down, close
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, Final, TypeAlias

from msgspec import Raw

from mcp_core import (
    NEED_DATA,
    ConnectionClosed,
    Limits,
    LocalProtocolError,
    RequestCancelled,
    RequestReceived,
    Role,
)
from mcp_core import types as t
from mcp_core._subscriptions import LISTS
from mcp_core.http import Conversation, Endpoint, Gate, HttpLimits, HttpOptions, RequestHead, Site
from mcp_core.http._conversation import Session
from mcp_core.types import RequestId

from .messages import VERSIONS, meta_of
from .sightings import CLIENTS, MARK, Call, Client, Sightings, Wire
from .talk import config_of
from .values import encoded

__all__ = ["CLIENTS", "LIMITS", "Case", "Step", "Visits"]

Step: TypeAlias = tuple[Any, ...]
# how answers are told; whether there are sessions; a name of `LIMITS`; the script
Case: TypeAlias = tuple[str, bool, str, list[Step]]

# Much of everything, and so little that a script comes to the end of it.
LIMITS: Final = {
    "roomy": (HttpLimits(), Limits(message=2_000, batch=4)),
    "narrow": (
        HttpLimits(
            sessions=4, uninitialized=2, streams=4, events=3, event_age=20.0, idle=60.0, session_bytes=3_000,
            all_bytes=5_000, queued=400,
        ),
        Limits(message=2_000, batch=3, in_flight=2, waiting=1, queued=1_000),
    ),
}  # fmt: skip
_HOST: Final = (b"host", b"localhost")
_BOTH: Final = (b"accept", b"application/json, text/event-stream")
_JSON: Final = (b"content-type", b"application/json")


class Running:
    """A request that a handler has."""

    def __init__(self, conversation: Conversation, id: RequestId, call: Call | None) -> None:
        self.conversation = conversation
        self.id = id
        self.call = call
        self.cancelled = False
        self.told = 0


class Visits:
    """One play of a script."""

    def __init__(self, case: Case) -> None:
        self._reply, self._sessions, limits, self._steps = case
        self._roomy = limits == "roomy"
        http, limit = LIMITS[limits]
        config = config_of(Role.SERVER, VERSIONS, limit)
        names = itertools.count(1)
        self.endpoint = Endpoint(
            lambda: config,
            HttpOptions(gate=Gate("localhost"), limits=http, reply=self._reply, sessions=self._sessions),  # type: ignore[arg-type]
            entropy=lambda size: next(names).to_bytes(size, "big"),
            param_headers=lambda name: None,
        )
        self.site = Site({"/mcp": self.endpoint})
        self._seen = Sightings(self.endpoint, self._reply)
        self._limits = http
        self._now = 0.0
        self._clients = [Client(number) for number in range(len(CLIENTS))]
        self._halves: list[tuple[Wire, bytes, list[Call]]] = []
        self._calls: list[Call] = []
        self._running: list[Running] = []
        self._conversations: dict[Conversation, bool] = {}  # and whether it is closed
        self._closed = False
        self._numbers = itertools.count()

    @property
    def outcomes(self) -> set[str]:
        """What happened, by name."""
        return self._seen.outcomes

    def play(self) -> None:
        """Play it all.

        Raises:
            AssertionError: a client saw, or the site holds, what it must not.
            Exception: the site raised.
        """
        for step in self._steps:
            _STEPS[step[0]](self, *step[1:])
            self._settle()
        self._finish()

    # -- Clients -----------------------------------------------------------------------------------------------------------

    def _request(
        self,
        client: Client,
        verb: bytes,
        headers: list[tuple[bytes, bytes]],
        body: bytes | None = None,
        after: bytes | None = None,
    ) -> Wire:
        exchange = self.site.begin(
            RequestHead(verb, client.target, [_HOST, *headers]), self._now, principal=client.principal
        )
        wire = Wire(exchange, client, after)
        self._seen.add(wire)
        if body is not None:
            self.site.receive_data(exchange, body, self._now)
            self.site.receive_data(exchange, b"", self._now)
        return wire

    def _post(
        self, client: Client, body: bytes, *more: tuple[bytes, bytes], calls: list[Call] | None = None
    ) -> Wire:
        wire = self._request(client, b"POST", [_BOTH, _JSON, *client.headers, *more], body)
        self._remember(wire, calls or [])
        self._settle()
        return wire

    def _remember(self, wire: Wire, calls: list[Call]) -> None:
        for call in calls:
            call.wire = wire
            conversation = wire.exchange.conversation
            is_sse = isinstance(conversation, Session) and conversation.is_sse
            call.stream = conversation.own if is_sse else wire.exchange.stream  # type: ignore[union-attr]

    def _begin(self, who: int) -> None:
        client = self._clients[who]
        if client.is_modern or not self._sessions:
            if not client.is_modern:
                client.headers = [(b"mcp-protocol-version", b"2025-11-25")]
            return
        client.headers, client.target, client.session = [], b"/mcp", None
        info = {"name": "fuzz", "version": "0"}
        version = "2024-11-05" if client.version == "sse" else client.version
        params = {"protocolVersion": version, "capabilities": {"roots": {}}, "clientInfo": info}
        initialize = encoded({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})
        initialized = encoded({"jsonrpc": "2.0", "method": "notifications/initialized"})
        if client.version == "sse":
            wire = self._request(client, b"GET", [(b"accept", b"text/event-stream")])
            self._settle()
            if not wire.is_stream:
                return
            client.target = wire.body.partition(b"data: ")[2].partition(b"\n")[0]
            self._post(client, initialize)
        else:
            wire = self._post(client, initialize)
            assert wire.head is not None
            id = dict(wire.head.headers).get(b"mcp-session-id")
            if id is None:
                assert wire.head.status == 503
                self._seen.outcomes.add("full")
                return
            client.headers = [(b"mcp-session-id", id)]
            if version >= "2025-06-18":
                client.headers.append((b"mcp-protocol-version", version.encode()))
        session = wire.exchange.session
        assert isinstance(session, Session)
        client.session = session
        self._post(client, initialized)

    def _message(self, client: Client, id: RequestId) -> tuple[Call, dict[str, Any]]:
        call = Call(client, next(self._numbers))
        self._calls.append(call)
        self._seen.by_mark[call.mark] = call
        params: dict[str, Any] = {"name": "t", "arguments": {"mark": call.mark}}
        params["_meta"] = {
            **(meta_of(client.version) if client.is_modern else {}),
            "progressToken": call.mark,
        }
        return call, {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}

    def _mirrored(self, client: Client, method: str) -> list[tuple[bytes, bytes]]:
        if not client.is_modern:
            return []
        named = [(b"mcp-name", b"t")] if method == "tools/call" else []
        return [(b"mcp-protocol-version", client.version.encode()), (b"mcp-method", method.encode()), *named]

    def _call(self, who: int, id: RequestId) -> None:
        client = self._clients[who]
        call, message = self._message(client, id)
        wire = self._post(client, encoded(message), *self._mirrored(client, "tools/call"), calls=[call])
        self._check_called(wire)

    def _check_called(self, wire: Wire) -> None:
        session = wire.exchange.session
        if wire.head is None or not isinstance(session, Session) or session.is_sse:
            return
        assert wire.head.status != 202, "a request is taken for none"
        if wire.head.status == 429:
            assert not any(each.abandoned for each in session.streams.values()), "there was room"
            self._seen.outcomes.add("too many streams")

    def _batch(self, who: int, ids: list[RequestId]) -> None:
        client = self._clients[who]
        calls, messages = [], []
        for id in ids:
            call, message = self._message(client, id)
            calls.append(call)
            messages.append(message)
        self._post(client, encoded(messages), *self._mirrored(client, "tools/call"), calls=calls)

    def _ping(self, who: int, id: RequestId) -> None:
        client = self._clients[who]
        method = "server/discover" if client.is_modern else "ping"
        message: dict[str, Any] = {"jsonrpc": "2.0", "id": id, "method": method}
        if client.is_modern:
            message["params"] = {"_meta": meta_of(client.version)}
        self._post(client, encoded(message), *self._mirrored(client, method))

    def _say(self, who: int, data: bytes) -> None:
        client = self._clients[who]
        self._post(client, data, *self._mirrored(client, "x"))

    def _half(self, who: int) -> None:
        client = self._clients[who]
        call, message = self._message(client, f"half {len(self._halves)}")
        body = encoded(message)
        wire = self._request(
            client, b"POST", [_BOTH, _JSON, *client.headers, *self._mirrored(client, "tools/call")]
        )
        self.site.receive_data(wire.exchange, body[:20], self._now)
        self._halves.append((wire, body[20:], [call]))

    def _rest(self, place: int) -> None:
        if not self._halves:
            return
        wire, rest, calls = self._halves.pop(place % len(self._halves))
        for start in range(0, len(rest), 50):
            self.site.receive_data(wire.exchange, rest[start : start + 50], self._now)
        self.site.receive_data(wire.exchange, b"", self._now)
        self._remember(wire, calls)
        self._settle()
        self._check_called(wire)

    def _cancel(self, who: int, id: Any) -> None:
        client = self._clients[who]
        note = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}
        wire = self._post(client, encoded(note), *self._mirrored(client, "notifications/cancelled"))
        session = wire.exchange.session
        if isinstance(session, Session) and wire.head is not None and wire.head.status == 202:
            left = [each for each in session.by_id if (each, type(each)) == (id, type(id))]
            assert not left, "who has cancelled waits on"

    def _answer_ours(self, who: int, number: int) -> None:
        client = self._clients[who]
        id = client.questions[number % len(client.questions)] if client.questions else number
        self._post(client, encoded({"jsonrpc": "2.0", "id": id, "result": {"roots": []}}))

    def _get(self, who: int, after: bytes | None = None, *, must: bool | None = None) -> Wire:
        client = self._clients[who]
        more = [] if after is None else [(b"last-event-id", after)]
        wire = self._request(
            client, b"GET", [(b"accept", b"text/event-stream"), *client.headers, *more], None, after
        )
        self._settle()
        assert wire.head is not None
        if must is not None:
            assert (wire.head.status == 200) is must, f"{after!r} was answered with {wire.head.status}"
        if after is not None:
            self._seen.outcomes.add(f"resume {wire.head.status}")
        return wire

    def _get_own(self, who: int) -> None:
        if not self._clients[who].is_modern:
            self._get(who)

    def _resume(self, who: int, place: int, event: int) -> None:
        client = self._clients[who]
        session = client.session
        wires = [
            wire
            for wire in self._seen.wires
            if wire.client is client and wire.ids and wire.exchange.session is session
        ]
        if not wires or session is None or session.is_sse:
            return
        ids = wires[place % len(wires)].ids
        id = ids[event % len(ids)]
        name, _, number = id.rpartition(b"-")
        stream = session.streams.get(name)
        alive = self.endpoint.sessions.get(session.id) is session
        self._get(who, id, must=alive and stream is not None and stream.reaches(int(number)))

    def _guess(self, who: int, id: bytes) -> None:
        client = self._clients[who]
        if client.session is not None and not client.session.is_sse:
            self._get(who, id)

    def _steal(self, who: int, whom: int) -> None:
        thief, owner = self._clients[who], self._clients[whom]
        if thief.principal == owner.principal or owner.session is None:
            return
        before = self._state(owner.session)
        for id in (owner.session.id, b"f" * 32):
            named = (b"mcp-session-id", id)
            stranger = Client(who)
            if owner.session.is_sse:
                stranger.target = b"/mcp?session_id=" + id
                headers = []
            else:
                headers = [named]
            ping = encoded({"jsonrpc": "2.0", "id": 1, "method": "ping"})
            for verb, more, body in (
                (b"POST", [_BOTH, _JSON], ping),
                (b"GET", [(b"accept", b"text/event-stream")], None),
                (b"GET", [(b"accept", b"text/event-stream"), (b"last-event-id", b"0-0")], None),
                (b"DELETE", [], None),
            ):
                wire = self._request(stranger, verb, [*headers, *more], body)
                self._settle()
                assert wire.head is not None
                assert wire.head.status == 404
                assert wire.ended
        bodies = [wire.body for wire in self._seen.wires[-8:]]
        assert bodies[:4] == bodies[4:], "a foreign session is told apart from one that there is not"
        assert self._state(owner.session) == before

    def _state(self, session: Session) -> tuple[Any, ...]:
        return (
            self.endpoint.sessions.get(session.id),
            {name: (each.exchange, each.last, each.evicted) for name, each in session.streams.items()},
            dict(session.by_id),
        )

    def _delete(self, who: int) -> None:
        client = self._clients[who]
        if client.session is not None:
            self._request(client, b"DELETE", client.headers)
            self._seen.outcomes.add("deleted")

    # -- Wires -------------------------------------------------------------------------------------------------------------

    def _drop(self, place: int) -> None:
        if self._seen.open:
            wire = self._seen.open[place % len(self._seen.open)]
            self._hang_up(wire)

    def _hang_up(self, wire: Wire) -> None:
        wire.gone = True
        self._seen.outcomes.add(f"gone while {wire.exchange.mode.name}")
        self.site.disconnected(wire.exchange, self._now)
        self.site.disconnected(wire.exchange, self._now)
        assert self.site.actions_to_send(wire.exchange) == []

    def _deaf(self, place: int) -> None:
        if self._seen.open:
            self._seen.open[place % len(self._seen.open)].deaf = True

    def _hear(self, place: int) -> None:
        deaf = [wire for wire in self._seen.open if wire.deaf]
        if deaf:
            wire = deaf[place % len(deaf)]
            wire.deaf = False
            self._seen.read(wire)

    # -- Handlers ----------------------------------------------------------------------------------------------------------

    def _handler(self, place: int) -> Running | None:
        return self._running[place % len(self._running)] if self._running else None

    def _speak(self, place: int, say: Callable[[Running, str], object]) -> None:
        running = self._handler(place)
        if running is None:
            return
        try:
            say(running, running.call.mark if running.call is not None else "")
        except LocalProtocolError:
            self._seen.outcomes.add("refused to say")
        running.conversation.touch()

    def _note(self, place: int, times: int) -> None:
        def say(running: Running, mark: str) -> None:
            for _ in range(times):
                running.told += 1
                running.conversation.conn.send_progress(
                    running.id, running.told, message=f"{mark} {'x' * 40}"
                )

        self._speak(place, say)

    def _ask(self, place: int) -> None:
        self._speak(
            place,
            lambda it, mark: it.conversation.conn.send_request("roots/list", related=it.id, meta={"m": mark}),
        )

    def _log(self, place: int) -> None:
        self._speak(place, lambda it, mark: it.conversation.conn.send_log("error", mark))

    def _release(self, place: int, notes: int) -> None:
        self._note(place, notes)
        running = self._handler(place)
        if running is not None and running.conversation.release(running.id, 0.5):
            self._seen.outcomes.add("released")

    def _finish_one(self, place: int, how: str) -> None:
        running = self._handler(place)
        if running is None:
            return
        self._running.remove(running)
        conversation, call = running.conversation, running.call
        mark = call.mark if call is not None else ""
        if how == "error":
            sent = conversation.conn.send_error(running.id, t.ErrorData(code=-32602, message=mark))
        else:
            size = 600 if how == "much" else 1
            result = {"content": [{"type": "text", "text": mark + "x" * size}]}
            sent = conversation.conn.send_result(running.id, Raw(encoded(result)))
        assert sent is not running.cancelled
        conversation.touch()
        self._settle()
        if sent and call is not None:
            self._must_be_heard(call)

    def _must_be_heard(self, call: Call) -> None:
        """It was answered: somebody has heard it, or it waits for who does not read or is away."""
        stream = call.stream
        assert stream is not None
        wire = self._seen.by_exchange[stream.exchange] if stream.exchange is not None else None
        if call.answered or (wire is not None and wire.deaf):
            return
        assert wire is None or (stream.batch and stream.pending), "an answer was not told"
        if any(call.mark.encode() in data for _, data, _ in stream.log):
            return
        knew = any(each.ids and each.exchange.stream is stream for each in self._seen.wires)
        assert not (self._roomy and knew and stream.owner is not None), "an answer was lost"
        self._seen.outcomes.add("nobody is there")

    def _change(self) -> None:
        for conversation, closed in self._conversations.items():
            if not closed:
                conversation.conn.send_change(next(iter(LISTS.values())))
                conversation.touch()

    # -- Time and the end --------------------------------------------------------------------------------------------------

    def _wait(self, seconds: float) -> None:
        self._now += seconds
        if self._now >= self._limits.event_age:
            self._roomy = False  # from here on something may have been forgotten
        self.site.handle_timeout(self._now)
        self._settle()
        due = self.site.next_deadline()
        assert due is None or due > self._now, "a deadline has passed, and nothing was done"

    def _wind_down(self) -> None:
        self.site.wind_down()
        self._seen.outcomes.add("wound down")

    def _close(self) -> None:
        self.site.close()
        self._closed = True

    def _finish(self) -> None:
        self._check_kept()
        self._close()
        self._settle()
        while self._halves:
            self._rest(0)
        for wire in self._seen.open:
            if wire.deaf:
                self._hang_up(wire)
        self._settle()
        assert not self._seen.open, "a response does not end"
        while self._running:
            running = self._running[0]
            assert running.cancelled, "a handler was not told to end"
            self._finish_one(0, "result")
        self._settle()
        endpoint = self.endpoint
        held = (
            *(endpoint.sessions, endpoint.alone, endpoint.dirty, endpoint.events, endpoint.ready),
            *(list(endpoint._silent), list(endpoint.sessions.beginning), list(endpoint.sessions.idle)),
            *(endpoint.log.bytes, list(endpoint.log._streams), endpoint.log._shelves),
        )
        assert not any(held), f"something is left: {held}"
        assert self.site.next_deadline() is None
        assert self.site.idle
        assert all(closed or each.retired for each, closed in self._conversations.items()), (
            "a conversation does not end"
        )

    def _check_kept(self) -> None:
        """Who was lost comes back, and hears the rest."""
        if not self._roomy or self._closed:
            return
        for client in self._clients:
            session = client.session
            if session is None or session.is_sse or self.endpoint.sessions.get(session.id) is not session:
                continue
            for name, stream in list(session.streams.items()):
                heard = client.heard.get((session, name))
                if stream.exchange is not None or stream.lasting or not heard:
                    continue
                last = max(heard)
                wire = self._get(client.number, b"%b-%d" % (name, last), must=True)
                assert max(client.heard[session, name]) == stream.last
                assert wire.ended is stream.over
                self._seen.outcomes.add("came back at last")

    # -- What is done and checked after each step --------------------------------------------------------------------------

    def _settle(self) -> None:
        while True:
            while (found := self.site.next_event()) is not NEED_DATA:
                self._take(*found)
            ready = self.site.ready()
            if not ready:
                break
            for exchange in ready:
                wire = self._seen.by_exchange[exchange]
                assert not wire.gone, "who is gone has something to write"
                if not wire.deaf:
                    self._seen.read(wire)
        for wire in self._seen.open:
            if not wire.deaf:
                assert self.site.actions_to_send(wire.exchange) == [], (
                    "nobody said that there is something to write"
                )
        self._seen.check(self._conversations)

    def _take(self, conversation: Conversation, event: Any) -> None:
        assert not self._conversations.get(conversation), "something happens behind the end"
        self._conversations[conversation] = isinstance(event, ConnectionClosed)
        if isinstance(event, RequestReceived):
            marks = MARK.search(bytes(event.raw))
            call = self._seen.by_mark[marks.group().decode()] if marks is not None else None
            self._running.append(Running(conversation, event.id, call))
        elif isinstance(event, RequestCancelled):
            (running,) = [
                each
                for each in self._running
                if each.conversation is conversation
                and (each.id, type(each.id)) == (event.id, type(event.id))
            ]
            running.cancelled = True
            self._seen.outcomes.add("cancelled")


_STEPS: Final[dict[str, Callable[..., object]]] = {
    "begin": Visits._begin,
    "call": Visits._call,
    "batch": Visits._batch,
    "ping": Visits._ping,
    "say": Visits._say,
    "half": Visits._half,
    "rest": Visits._rest,
    "cancel": Visits._cancel,
    "answer_ours": Visits._answer_ours,
    "get": Visits._get_own,
    "resume": Visits._resume,
    "guess": Visits._guess,
    "steal": Visits._steal,
    "delete": Visits._delete,
    "drop": Visits._drop,
    "deaf": Visits._deaf,
    "hear": Visits._hear,
    "note": Visits._note,
    "ask": Visits._ask,
    "log": Visits._log,
    "release": Visits._release,
    "finish": Visits._finish_one,
    "change": Visits._change,
    "wait": Visits._wait,
    "wind_down": Visits._wind_down,
    "close": Visits._close,
}
