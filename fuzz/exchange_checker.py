"""The messages that clients receive from a `Router`, and what it holds: the checks of
`fuzz.router_script`.

Rules of this file:

1. A client knows nothing of the core. Responses are checked by themselves: heads, ends, event
   numbers, and the marks in the messages.
2. What the router holds is counted a second time, here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from mcp_core.http import Body, Conversation, End, Endpoint, Exchange, Head
from mcp_core.http.server._session import Session
from mcp_core.http.server._stream import _MESSAGE, _STREAM, EventStream
from mcp_core.http.wire._sse import SseDecoder, SseEvent
from mcp_trio.oracle.strategies._messages import VERSIONS
from mcp_trio.oracle.strategies._values import encoded

__all__ = ["CLIENTS", "MARK", "ExchangeChecker", "FuzzClient", "ObservedExchange", "ToolCall"]

# The revision of each client and its principal. "sse" is 2024-11-05 over HTTP+SSE.
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
_EVENT_LIMIT: Final = 1 << 20
_LOG: Final = "notifications/message"


class FuzzClient:
    """One client.

    `received` holds the messages of each stream by event number, as they were when first received.
    `server_requests` holds the ids of the server's requests.
    """

    def __init__(self, number: int) -> None:
        self.number = number
        self.version, self.principal = CLIENTS[number]
        self.target = b"/mcp"
        self.session: Session | None = None
        self.headers: list[tuple[bytes, bytes]] = []
        self.received: dict[tuple[Session, bytes], dict[int, bytes]] = {}
        self.server_requests: list[Any] = []

    @property
    def is_stateless(self) -> bool:
        return self.version == VERSIONS[-1]


class ObservedExchange:
    """One exchange, as its client sees it. `last_event_id` is the id with which it resumed."""

    def __init__(
        self, exchange: Exchange, client: FuzzClient, last_event_id: bytes | None = None
    ) -> None:
        self.exchange = exchange
        self.client = client
        self.last_event_id = last_event_id
        self.head: Head | None = None
        self.body = b""
        self.ended = False
        self.disconnected = False
        self.paused = False
        self.event_ids: list[bytes] = []
        self.decoder = SseDecoder(limit=_EVENT_LIMIT)
        self.last_number: int | None = None  # of the last event

    @property
    def is_stream(self) -> bool:
        return (
            self.head is not None
            and dict(self.head.headers).get(b"content-type") == b"text/event-stream"
        )


class ToolCall:
    """One tool call. `stream` is where its response belongs, `answered_at` where it arrived."""

    def __init__(self, client: FuzzClient, number: int) -> None:
        self.client = client
        self.mark = f"@{client.number}:{number}@"
        self.stream: EventStream | None = None
        self.observed: ObservedExchange | None = None
        self.answered_at: tuple[Any, ...] | None = None


class ExchangeChecker:
    """Everything that the clients of `endpoint` have received.

    `outcomes` names what happened. `reply` is the endpoint's response mode.
    """

    def __init__(self, endpoint: Endpoint, reply: str) -> None:
        self.endpoint = endpoint
        self.outcomes: set[str] = set()
        self.exchanges: list[ObservedExchange] = []
        self.by_exchange: dict[Exchange, ObservedExchange] = {}
        self.by_mark: dict[str, ToolCall] = {}
        self._reply = reply
        self._limits = endpoint.options.limits

    @property
    def unfinished(self) -> list[ObservedExchange]:
        """The exchanges on which more can arrive."""
        return [
            observed for observed in self.exchanges if not (observed.ended or observed.disconnected)
        ]

    def add(self, observed: ObservedExchange) -> None:
        self.exchanges.append(observed)
        self.by_exchange[observed.exchange] = observed

    def read(self, observed: ObservedExchange) -> None:
        """Take and check the output of an exchange."""
        for action in self.endpoint.actions_to_send(observed.exchange):
            assert not observed.ended, "output after the end"
            match action:
                case Head():
                    assert observed.head is None, "two heads"
                    observed.head = action
                    self.outcomes.add(f"{action.status}{' stream' if observed.is_stream else ''}")
                case Body(data):
                    assert observed.head is not None
                    observed.body += data
                    if observed.is_stream:
                        observed.decoder.feed(data)
                        while (event := observed.decoder.next_event()) is not None:
                            self._check_event(observed, event)
                case End():
                    assert observed.head is not None, "no head"
                    observed.ended = True
        assert observed.exchange.over is observed.ended
        if observed.ended and not observed.is_stream:
            assert observed.head is not None
            length = dict(observed.head.headers).get(b"content-length", b"0")
            assert int(length) == len(observed.body)
            found = json.loads(observed.body) if observed.body else []
            for message in found if isinstance(found, list) else [found]:
                self._check_message(observed, message, encoded(message), (observed,))

    def _check_event(self, observed: ObservedExchange, event: SseEvent) -> None:
        if event.type == "endpoint":
            return
        position: tuple[Any, ...] = (observed, event.data)
        session = observed.exchange.session
        if event.id:
            assert isinstance(session, Session)
            observed.event_ids.append(event.id.encode())
            name, _, text = event.id.encode().rpartition(b"-")
            number = int(text)
            received = observed.client.received.setdefault((session, name), {})
            self._check_number(observed, name, number, event, received)
            observed.last_number = number
            if event.data:
                assert received.setdefault(number, event.data) == event.data, (
                    "one event number with two contents"
                )
            position = (session, name, number)
        if event.data:
            self._check_message(observed, json.loads(event.data), event.data, position)

    def _check_number(
        self,
        observed: ObservedExchange,
        name: bytes,
        number: int,
        event: SseEvent,
        received: dict[int, bytes],
    ) -> None:
        stream = observed.exchange.stream
        assert stream is not None
        assert stream.name == name, "an id of another stream"
        if observed.last_number is not None:
            assert number == observed.last_number + 1, "an event is missing or repeated"
        elif observed.last_event_id is not None:
            assert number == int(observed.last_event_id.rpartition(b"-")[2]) + bool(event.data), (
                "the stream does not resume where it ended"
            )
        elif not stream.long_lived:
            assert number == bool(event.data), "a stream does not start with its first event"
        elif received:
            assert number >= max(received) + bool(event.data), "an event is repeated"

    def _check_message(
        self, observed: ObservedExchange, message: Any, data: bytes, position: tuple[Any, ...]
    ) -> None:
        if "method" in message and "id" in message:
            observed.client.server_requests.append(message["id"])
        for client_number, number in MARK.findall(data):
            assert int(client_number) == observed.client.number, "a message for another client"
            call = self.by_mark[f"@{int(client_number)}:{int(number)}@"]
            is_response = "result" in message or "error" in message
            session = observed.exchange.session
            if (
                isinstance(session, Session)
                and not is_response
                and (self._reply == "json" or message["method"] == _LOG)
            ):
                assert observed.exchange.stream is session.standalone_stream
                continue
            assert observed.exchange.stream is call.stream, (
                "a message on the stream of another request"
            )
            if is_response:
                assert call.answered_at in (None, position), "a request is answered twice"
                call.answered_at = position

    def check(self, conversations: Mapping[Conversation, bool]) -> None:
        """Check what the endpoint holds.

        `conversations` maps all that existed to True if closed.
        """
        endpoint, limits = self.endpoint, self._limits
        assert not (endpoint.events or endpoint.dirty or endpoint.ready)
        log = endpoint.log
        retained = set(log._expiry)
        assert retained == {
            each for owner_streams in log._retained.values() for each in owner_streams.streams
        }
        assert log.bytes == sum(each.counted_bytes for each in retained)
        for owner, owner_streams in log._retained.items():
            assert owner_streams.bytes == sum(each.counted_bytes for each in owner_streams.streams)
            assert owner_streams.streams
            assert isinstance(owner, Session)
            if owner_streams.bytes > limits.session_bytes:
                assert all(
                    each.exchange is not None for each in owner_streams.streams if each.messages
                )
        for observed in self.unfinished:
            exchange = observed.exchange
            stream = exchange.stream
            if stream is not None and stream.exchange is exchange:
                unsent = sum(
                    len(data) for number, data, _ in stream.messages if number > exchange.cursor
                )
                assert stream.unsent == exchange.queued == unsent
                assert observed.paused or not (unsent and exchange.mode.name == "STREAM")
        assert all(
            self.by_exchange[each].exchange.over is False for each in endpoint._awaiting_output
        )
        assert not any(self.by_exchange[each].disconnected for each in endpoint._awaiting_output)
        assert len(endpoint.sessions) <= limits.sessions
        assert len(endpoint.sessions.uninitialized) <= limits.uninitialized
        assert set(endpoint.sessions.uninitialized).isdisjoint(endpoint.sessions.idle)
        assert {*endpoint.sessions.uninitialized, *endpoint.sessions.idle} == set(
            endpoint.sessions.values()
        )
        for session in endpoint.sessions.values():
            self._check_session(session, retained)
        assert not any(conversations.get(each) for each in endpoint.one_shots)

    def _check_session(self, session: Session, retained: set[EventStream]) -> None:
        assert session.current_stream is None
        for id, stream in session.stream_by_request.items():
            assert id in stream.pending
            assert session.conn.has_incoming(id)
        open_streams = 0
        for name, stream in session.streams.items():
            assert stream.name == name
            assert stream.bytes == sum(len(data) for _, data, _ in stream.messages)
            assert [number for number, _, _ in stream.messages] == list(
                range(stream.last_evicted + 1, stream.last + 1)
            )
            assert (
                stream.long_lived
                or stream.pending
                or stream.exchange is not None
                or stream in retained
            )
            open_streams += not (stream.long_lived or stream.abandoned)
            if stream in retained:
                size = (
                    stream.bytes + _STREAM + _MESSAGE * len(stream.messages)
                    if stream.messages
                    else 0
                )
                assert stream.counted_bytes == size or (
                    stream.exchange is not None and stream.counted_bytes < size
                )
                assert len(stream.messages) <= self._limits.events or stream.exchange is not None
            else:
                assert stream.counted_bytes == 0
        assert len(session.streams) <= self._limits.streams + 1
