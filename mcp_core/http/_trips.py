"""The requests of Streamable HTTP and what becomes of their responses: a message that is POSTed, a stream that is listened to or
taken up again, and the end of a session.

Rules of this file:

1. A stream that ends without the answer is taken up again, if the revision has that and an event had an id; from there on, and not
   from the beginning, so that nothing is carried out twice (2025-11-25, basic/transports, Resumability). Before any id there is
   nothing to come back to: the call is lost, and nothing is posted again.
2. What is in a response counts, and its status only if there is no message in it. The exceptions are those that have nothing to do
   with what was asked: no token (401), and a session that is no more (404).
3. Once its answer is there a stream is left to end, for the connection is good for more; but not for ever.

Sources: as of `_streamable.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import UNSET

from mcp_core._errors import AuthRequired, ConnectionLost, RemoteProtocolError
from mcp_core._jsonrpc import BadMessage, decode, is_batch
from mcp_core._methods import METHODS, Step
from mcp_core._opening import MODERN_ERRORS
from mcp_core._state import State

from ._call import header
from ._comeback import Comeback
from ._headers import LAST_EVENT_ID
from ._legacy_sse_client import LegacySse
from ._response import Response, error_in, refusal
from ._transport import Sent, Trip, step_of

if TYPE_CHECKING:
    from mcp_core._errors import McpTrioError
    from mcp_core._outbox import Outgoing
    from mcp_core.types import RequestId

    from ._messages import Head
    from ._streamable import Streamable

__all__ = ["Farewell", "Post", "Stream"]

_LASTING: Final = frozenset(row.name for row in METHODS if row.lasting)
_ACCEPT_EVENTS: Final = (b"accept", b"text/event-stream")
# A GET with one of these may go well another time; with any other status below 500 it never will.
_PASSING: Final = frozenset({408, 429})
# What a server that knows no POST, or no `initialize` there, has said about it (2025-11-25 and 2026-07-28, Backwards Compatibility).
_NO_SUCH_THING: Final = frozenset({400, 404, 405})


class Post(Sent):
    """A message, and the response to it. `session` is the one that it named."""

    def __init__(self, transport: Streamable, out: Outgoing) -> None:
        super().__init__(transport.client, out)
        self.transport = transport
        dialect = out.dialect
        self.session = transport.session if dialect is None or dialect.http.sessions else None
        self.comeback = Comeback(transport.client.options)

    @property
    def accepted(self) -> bool:
        return self.response is not None and self.response.good

    @property
    def streams(self) -> bool:
        return self.response is not None and self.response.events is not None

    def started(self, head: Head, now: float) -> None:
        if head.status == 404 and self.session is not None:
            self.transport.session_lost(self, now)
            return
        try:
            self.response = response = Response(head, self.client.most)
            if response.good:
                self.transport.accepted(self, head)
                if self.id is not None and head.status == 200 and not (self.streams or response.is_json):
                    raise RemoteProtocolError(_neither(head))
        except RemoteProtocolError as exc:
            self.fail(_about(self.prefix, exc), now, head.status)

    def data(self, data: bytes, now: float) -> None:
        _read(self, data, now)

    def ended(self, error: str | None, now: float) -> None:
        response = self.response
        if response is None or (error is not None and response.events is None):
            self.lost(error, now)
        elif response.events is not None:
            self._stream_ended(error, now)
        elif not response.good:
            self._refused(response, now)
        elif self.id is not None:
            self._judge(response, self.id, now)

    def due(self, now: float) -> None:
        self.transport.over(self)
        super().due(now)

    def fail(self, error: McpTrioError, now: float, status: int = 0) -> None:
        self.transport.over(self)
        super().fail(error, now, status)

    def _stream_ended(self, error: str | None, now: float) -> None:
        if self.id is None or not self.client.conn.awaits(self.id):
            self.transport.over(self)
            return
        dialect = self.out.dialect
        if dialect is not None and dialect.http.resumable and self.comeback.last_id:
            self.transport.come_back(self, now)
        elif error is not None or self.out.method in _LASTING:
            self.lost(f"the stream broke before the answer came ({error or 'it ended'})", now)
        else:
            self.fail(self.doubt("the stream ended without the answer"), now, 200)

    def _refused(self, response: Response, now: float) -> None:
        out = self.out
        if (
            step_of(out) is Step.INITIALIZE
            and response.status in _NO_SUCH_THING
            and self.client.conn.state is State.OPENING
            and not _says_modern(response.body)
        ):
            # Perhaps it is a server of 2024-11-05. If not, this is what it has said.
            LegacySse(self.client, out, self.transport, lambda now: self.refused(response, now)).begin(now)
        else:
            self.refused(response, now)

    def _judge(self, response: Response, id: RequestId, now: float) -> None:
        """A body that is no stream, complete, with a good status."""
        problem = self._fault_of(response, id)
        if problem is not None:
            self.fail(self.doubt(problem), now, response.status)
            return
        self.transport.over(self)
        self.client.receive(response.body, now, id, response.status)
        if self.client.conn.awaits(id):
            missing = self.doubt("there is no answer to it in the response")
            self.client.failed(self.out, missing, now, response.status)

    def _fault_of(self, response: Response, id: RequestId) -> str | None:
        """Why it cannot be the answer."""
        body, dialect = response.body, self.out.dialect
        if response.status != 200 or not body:
            return f"the server accepts it (status {response.status}) and gives no answer"
        if is_batch(body) and dialect is not None and dialect.batches:
            return None
        try:
            envelope = decode(body)
        except BadMessage as exc:
            return f"the answer is none: {exc.message}"
        if envelope.method is not UNSET:
            return "the body of the response is another message than its answer"
        if envelope.id != id or type(envelope.id) is not type(id):
            return "the answer is that to another request"
        return None


class Stream(Trip):
    """A stream that is asked for by GET: the rest of a response, of which `out` was the request, or the stream of the session, where
    that is None."""

    def __init__(self, transport: Streamable, comeback: Comeback, out: Outgoing | None = None) -> None:
        self.transport = transport
        self.client = transport.client
        self.comeback = comeback
        self.out = out
        self.id = None if out is None else out.id
        self.session = transport.session
        self._since: float | None = None  # when the server last began to send it

    def __repr__(self) -> str:
        whose = "the session" if self.out is None else self.out.method
        return f"<Stream of {whose}, {self.comeback!r}>"

    streams = True

    @property
    def prefix(self) -> str:
        return "the stream of the session: " if self.out is None else f"{self.out.method}: "

    def connect(self) -> None:
        headers = [_ACCEPT_EVENTS, *self.transport.headers(None if self.out is None else self.out.dialect)]
        if self.comeback.last_id:
            headers.append((LAST_EVENT_ID, self.comeback.last_id.encode()))
        self.response = None
        self.client.make(self, b"GET", self.client.url.target, headers, long=True)

    def started(self, head: Head, now: float) -> None:
        if head.status == 404 and self.session is not None:
            self.transport.session_lost(self, now)
            return
        try:
            self.response = response = Response(head, self.client.most, self.comeback.last_id)
            if response.good and response.events is None:
                raise RemoteProtocolError(_neither(head))
        except RemoteProtocolError as exc:
            self.fail(_about(self.prefix, exc), now)
            return
        if response.good:
            if self.out is None and self._since is not None and not self.comeback.last_id:
                self.client.missed()
            self._since = now

    def data(self, data: bytes, now: float) -> None:
        _read(self, data, now)

    def ended(self, error: str | None, now: float) -> None:
        response = self.response
        if self.id is not None and not self.client.conn.awaits(self.id):
            self.transport.over(self)
        elif response is None or response.events is not None:
            if response is not None:
                assert self._since is not None
                self.comeback.lasted(now - self._since)
            self.again(error or "the stream ended", now)
        elif response.status in _PASSING or response.status >= 500:
            self.again(str(refusal("", response)), now)
        elif self.out is not None:
            error_there = refusal(self.prefix, response)
            if not isinstance(error_there, AuthRequired):
                error_there = ConnectionLost(str(error_there))
            self.fail(error_there, now)
        elif self.comeback.last_id:
            self.comeback.last_id = ""  # it has forgotten what was said there, and may have more to say
            self.again(str(refusal("", response)), now)
        else:
            self.transport.no_stream(None)

    def denied(self, error: McpTrioError, now: float) -> None:
        self.fail(error, now)

    def again(self, problem: str, now: float) -> None:
        """Try it once more, if there is any use in it."""
        delay = self.comeback.delay()
        if delay is None:
            given_up = f"{self.prefix}given up after {self.comeback.failures} attempts: {problem}"
            self.fail(ConnectionLost(given_up), now)
        else:
            self.response = None
            self.client.at(self, now + delay)

    def due(self, now: float) -> None:
        if not self.key:
            self.connect()
        else:
            self.transport.over(self)
            self.client.drop(self)

    def fail(self, error: McpTrioError, now: float, status: int = 0) -> None:
        self.client.drop(self)
        if self.out is None:
            self.transport.no_stream(error)
        else:
            self.transport.over(self)
            self.client.failed(self.out, error, now, status)


class Farewell(Trip):
    """The end of a session. Whatever comes of it."""

    def started(self, head: Head, now: float) -> None:
        """Told."""

    def data(self, data: bytes, now: float) -> None:
        """Of no interest."""

    def ended(self, error: str | None, now: float) -> None:
        """Over."""

    def denied(self, error: McpTrioError, now: float) -> None:
        """Over as well."""


def _read(trip: Post | Stream, data: bytes, now: float) -> None:
    """A piece of a response whose messages are for the connection."""
    response, client, id = trip.response, trip.client, trip.id
    assert response is not None
    some = False
    try:
        for event in response.feed(data):
            some = True
            if event.is_message:
                client.receive(event.data, now, id, response.status)
    except RemoteProtocolError as exc:
        trip.fail(_about(trip.prefix, exc), now, response.status)
        return
    if response.events is not None:
        trip.comeback.heard(response.events, event=some)
        if id is not None and not client.conn.awaits(id):
            client.linger(trip, now)


def _says_modern(body: bytes) -> bool:
    """Whether a refusal is one of those that only a stateless server gives."""
    error = error_in(body)
    return error is not None and error.code in MODERN_ERRORS


def _neither(head: Head) -> str:
    said = header(head, b"content-type")
    type = "no type" if said is None else f"type {said.decode('latin-1')[:80]!r}"
    return f"the answer is of {type} instead of JSON or a stream of events; is this the URL of an MCP server?"


def _about(prefix: str, error: RemoteProtocolError) -> RemoteProtocolError:
    return RemoteProtocolError(f"{prefix}{error}", error.fault, error.data)
