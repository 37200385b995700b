"""What clients see of a `Site`, and what it holds meanwhile: the judge of `fuzz.visits`.

Rules of this file:

1. A client knows nothing of the core. What it sees is judged by itself: heads, ends, numbers of events, and the marks in what it hears.
2. What the site holds is counted a second time, by hand.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from mcp_core.http import Body, Conversation, End, Endpoint, Exchange, Head
from mcp_core.http._conversation import Session
from mcp_core.http._sse import SseDecoder, SseEvent
from mcp_core.http._stream import _MESSAGE, _STREAM, Stream

from .messages import VERSIONS
from .values import encoded

__all__ = ["CLIENTS", "MARK", "Call", "Client", "Sightings", "Wire"]

# What each client speaks, over sessions or (the last of 2024-11-05) over HTTP+SSE, and as whom.
CLIENTS: Final = (
    ("2025-11-25", "ann"),
    ("2025-11-25", "bob"),
    ("2025-06-18", "ann"),
    ("2025-03-26", ""),
    ("sse", "bob"),
    ("2026-07-28", "ann"),
    ("2026-07-28", ""),
)
MARK: Final = re.compile(rb"@(\d+):(\d+)@")
_MOST: Final = 1 << 20
_LOG: Final = "notifications/message"


class Client:
    """One client. `heard` are the messages of each stream by their number, as they were when they were heard first."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.version, self.principal = CLIENTS[number]
        self.target = b"/mcp"
        self.session: Session | None = None
        self.headers: list[tuple[bytes, bytes]] = []
        self.heard: dict[tuple[Session, bytes], dict[int, bytes]] = {}
        self.questions: list[Any] = []

    @property
    def is_modern(self) -> bool:
        return self.version == VERSIONS[-1]


class Wire:
    """One exchange, as its client sees it. `after` is the event id that it came back with."""

    def __init__(self, exchange: Exchange, client: Client, after: bytes | None = None) -> None:
        self.exchange = exchange
        self.client = client
        self.after = after
        self.head: Head | None = None
        self.body = b""
        self.ended = self.gone = self.deaf = False
        self.ids: list[bytes] = []
        self.decoder = SseDecoder(limit=_MOST)
        self.number: int | None = None  # of the last event

    @property
    def is_stream(self) -> bool:
        return self.head is not None and dict(self.head.headers).get(b"content-type") == b"text/event-stream"


class Call:
    """One call of a tool. `stream` is where its answer belongs, `answered` where it was heard."""

    def __init__(self, client: Client, number: int) -> None:
        self.client = client
        self.mark = f"@{client.number}:{number}@"
        self.stream: Stream | None = None
        self.wire: Wire | None = None
        self.answered: tuple[Any, ...] | None = None


class Sightings:
    """All that the clients of `endpoint` have seen. `outcomes` names what happened. `reply` is how answers are told."""

    def __init__(self, endpoint: Endpoint, reply: str) -> None:
        self.endpoint = endpoint
        self.outcomes: set[str] = set()
        self.wires: list[Wire] = []
        self.by_exchange: dict[Exchange, Wire] = {}
        self.by_mark: dict[str, Call] = {}
        self._reply = reply
        self._limits = endpoint.options.limits

    @property
    def open(self) -> list[Wire]:
        """The wires on which something is still to come."""
        return [wire for wire in self.wires if not (wire.ended or wire.gone)]

    def add(self, wire: Wire) -> None:
        self.wires.append(wire)
        self.by_exchange[wire.exchange] = wire

    def read(self, wire: Wire) -> None:
        """Take what there is to be read."""
        for action in self.endpoint.actions_to_send(wire.exchange):
            assert not wire.ended, "something behind the end"
            match action:
                case Head():
                    assert wire.head is None, "two heads"
                    wire.head = action
                    self.outcomes.add(f"{action.status}{' stream' if wire.is_stream else ''}")
                case Body(data):
                    assert wire.head is not None
                    wire.body += data
                    if wire.is_stream:
                        wire.decoder.feed(data)
                        while (event := wire.decoder.next_event()) is not None:
                            self._event(wire, event)
                case End():
                    assert wire.head is not None, "no head"
                    wire.ended = True
        assert wire.exchange.over is wire.ended
        if wire.ended and not wire.is_stream:
            assert wire.head is not None
            length = dict(wire.head.headers).get(b"content-length", b"0")
            assert int(length) == len(wire.body)
            found = json.loads(wire.body) if wire.body else []
            for message in found if isinstance(found, list) else [found]:
                self._heard(wire, message, encoded(message), (wire,))

    def _event(self, wire: Wire, event: SseEvent) -> None:
        if event.type == "endpoint":
            return
        place: tuple[Any, ...] = (wire, event.data)
        session = wire.exchange.session
        if event.id:
            assert isinstance(session, Session)
            wire.ids.append(event.id.encode())
            name, _, text = event.id.encode().rpartition(b"-")
            number = int(text)
            heard = wire.client.heard.setdefault((session, name), {})
            self._check_number(wire, name, number, event, heard)
            wire.number = number
            if event.data:
                assert heard.setdefault(number, event.data) == event.data, "one event was told in two ways"
            place = (session, name, number)
        if event.data:
            self._heard(wire, json.loads(event.data), event.data, place)

    def _check_number(
        self, wire: Wire, name: bytes, number: int, event: SseEvent, heard: dict[int, bytes]
    ) -> None:
        stream = wire.exchange.stream
        assert stream is not None
        assert stream.name == name, "an id of another stream"
        if wire.number is not None:
            assert number == wire.number + 1, "an event is missing, or told twice"
        elif wire.after is not None:
            assert number == int(wire.after.rpartition(b"-")[2]) + bool(event.data), (
                "it does not go on where it ended"
            )
        elif not stream.lasting:
            assert number == bool(event.data), "a stream begins in the middle"
        elif heard:
            assert number >= max(heard) + bool(event.data), "what was heard is told again"

    def _heard(self, wire: Wire, message: Any, data: bytes, place: tuple[Any, ...]) -> None:
        if "method" in message and "id" in message:
            wire.client.questions.append(message["id"])
        for who, number in MARK.findall(data):
            assert int(who) == wire.client.number, "somebody hears what is not for him"
            call = self.by_mark[f"@{int(who)}:{int(number)}@"]
            answers = "result" in message or "error" in message
            session = wire.exchange.session
            if (
                isinstance(session, Session)
                and not answers
                and (self._reply == "json" or message["method"] == _LOG)
            ):
                assert wire.exchange.stream is session.own
                continue
            assert wire.exchange.stream is call.stream, "it is on the stream of another request"
            if answers:
                assert call.answered in (None, place), "a request is answered twice"
                call.answered = place

    def check(self, conversations: Mapping[Conversation, bool]) -> None:
        """Count what is held. `conversations` that there were, and whether they are closed."""
        endpoint, limits = self.endpoint, self._limits
        assert not (endpoint.events or endpoint.dirty or endpoint.ready)
        log = endpoint.log
        kept = set(log._streams)
        assert kept == {each for shelf in log._shelves.values() for each in shelf.streams}
        assert log.bytes == sum(each.counted for each in kept)
        for owner, shelf in log._shelves.items():
            assert shelf.bytes == sum(each.counted for each in shelf.streams)
            assert shelf.streams
            assert isinstance(owner, Session)
            if shelf.bytes > limits.session_bytes:
                assert all(each.exchange is not None for each in shelf.streams if each.log)
        for wire in self.open:
            exchange = wire.exchange
            stream = exchange.stream
            if stream is not None and stream.exchange is exchange:
                waits = sum(len(data) for number, data, _ in stream.log if number > exchange.cursor)
                assert stream.unsent == exchange.queued == waits
                assert wire.deaf or not (waits and exchange.mode.name == "STREAM")
        assert all(self.by_exchange[each].exchange.over is False for each in endpoint._silent)
        assert not any(self.by_exchange[each].gone for each in endpoint._silent)
        assert len(endpoint.sessions) <= limits.sessions
        assert len(endpoint.sessions.beginning) <= limits.uninitialized
        assert set(endpoint.sessions.beginning).isdisjoint(endpoint.sessions.idle)
        assert {*endpoint.sessions.beginning, *endpoint.sessions.idle} == set(endpoint.sessions.values())
        for session in endpoint.sessions.values():
            self._check_session(session, kept)
        assert not any(conversations.get(each) for each in endpoint.alone)

    def _check_session(self, session: Session, kept: set[Stream]) -> None:
        assert session.current is None
        for id, stream in session.by_id.items():
            assert id in stream.pending
            assert session.conn.owes(id)
        open_streams = 0
        for name, stream in session.streams.items():
            assert stream.name == name
            assert stream.bytes == sum(len(data) for _, data, _ in stream.log)
            assert [number for number, _, _ in stream.log] == list(range(stream.evicted + 1, stream.last + 1))
            assert stream.lasting or stream.pending or stream.exchange is not None or stream in kept
            open_streams += not (stream.lasting or stream.abandoned)
            if stream in kept:
                size = stream.bytes + _STREAM + _MESSAGE * len(stream.log) if stream.log else 0
                assert stream.counted == size or (stream.exchange is not None and stream.counted < size)
                assert len(stream.log) <= self._limits.events or stream.exchange is not None
            else:
                assert stream.counted == 0
        assert len(session.streams) <= self._limits.streams + 1
