"""The client's end of MCP over HTTP: messages of a connection to requests of HTTP, and responses to what the connection hears.

Rules of this file:

1. It keeps the books: which call is whose `Trip`, what is still to be made or dropped, which times are asked for. How a message
   travels is a `Transport`'s: Streamable HTTP to begin with, and for servers of 2024-11-05 HTTP+SSE.
2. Whatever arrives is taken into the connection at once, and its events are kept here in order. So a transport can ask, when a response
   ends, whether the answer was in it.
3. It always tells the connection: a call that was made ends, whatever the network does.

It knows no socket, no pool, and no revision. The driver makes `calls_to_make`, gives up `calls_to_drop`, and tells how each response
goes on; between, it takes `next_event`, as from a connection.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from mcp_core._errors import ProtocolError, RemoteProtocolError
from mcp_core._events import NEED_DATA, PAUSED, ChangesMissed, MessageRejected, ResultReceived
from mcp_core._intake import Via
from mcp_core._outbox import Kind
from mcp_core._state import State
from mcp_core._version import __version__
from mcp_core.types import ListToolsResult
from mcp_core.urls import Url

from ._call import HttpCall, HttpClientOptions
from ._messages import RequestHead
from ._streamable import Streamable
from ._tool_headers import ToolHeaders

if TYPE_CHECKING:
    from mcp_core._connection import Connection
    from mcp_core._errors import McpTrioError
    from mcp_core._events import Event, NeedData, Paused
    from mcp_core._outbox import Outgoing
    from mcp_core.types import RequestId

    from ._messages import Head, Headers
    from ._transport import Transport, Trip

__all__ = ["HttpClient"]

# Seconds that a server has to end a response of which nothing more is wanted, before we do: its connection is good for more.
_LINGERS: Final = 5.0


class HttpClient:
    """A client's conversation `conn` with the server at `url`.

    To be driven like a connection (see there): after each call of any kind make `calls_to_make()`, give up `calls_to_drop()`, set
    one timer to `next_deadline()`, and take `next_event()` until it gives `NEED_DATA`. Of a call tell `response_started`, `response_data`
    as it comes, and `response_ended` once; nothing more of one that was dropped. The only header that a call lacks is
    `content-length`. After the end of the conversation there may be calls left, to say good-bye, until `idle`.

    With `options.access` a call is sent as `sign` gives its head, and `refused` is asked of each head that comes. If that says so, the
    response is not told, but what the attempt asks for is done; meanwhile the call is `hold`. Then it is made again, or `denied`.

    A tool that cannot be called because of its `x-mcp-header` is left out of what `tools/list` gave, with a `MessageRejected` before.

    Args:
        conn: a client's connection that is not open yet.
        url: of the server: `http://` or `https://`.
        options: what else there is to say.

    Raises:
        ValueError: the URL is none.
    """

    def __init__(self, conn: Connection, url: str, options: HttpClientOptions | None = None) -> None:
        self.conn = conn
        conn.has_headers = True
        self.url = Url.parse(url)
        self.options = options or HttpClientOptions()
        self.tools = ToolHeaders()
        self._transport: Transport = Streamable(self)
        self._key = 0
        self._calls: list[HttpCall] = []
        self._drops: list[int] = []
        self._trips: dict[int, Trip] = {}
        self._times: dict[Trip | Transport, float] = {}
        self._held: set[Trip] = set()  # whose call was refused, while the right to make it is got
        self._events: deque[Event] = deque()
        self._closed = False
        own = {name.lower(): value for name, value in self.options.headers.items()}
        own.setdefault("user-agent", f"mcp-trio/{__version__}")
        self._own: Headers = [(name.encode("ascii"), value.encode("latin-1")) for name, value in own.items()]

    def __repr__(self) -> str:
        return (
            f"<HttpClient of {self.url}: {self.conn!r}, {len(self._trips)} calls, {len(self._times)} waiting>"
        )

    @property
    def idle(self) -> bool:
        """Whether no call is under way, to be made, or planned."""
        return not (self._trips or self._times)

    def queued(self, related: RequestId | None = None) -> int:
        """Bytes of messages that no driver has taken yet."""
        return (
            self.conn.queued(related) + self._transport.queued + sum(len(call.body) for call in self._calls)
        )

    # -- What to do now -------------------------------------------------------------------------------------------------

    def calls_to_make(self, now: float) -> list[HttpCall]:
        """Requests to make, each at once and beside the others."""
        for out in self.conn.messages_to_send():
            self._transport.send(out, now)
        if self.conn.state is not State.CLOSED:
            self._transport.look(now)
        elif not self._closed:
            self._closed = True
            self._transport.close(now)
        calls, self._calls = self._calls, []
        return calls

    def calls_to_drop(self) -> list[int]:
        """Keys of calls whose response is wanted no more: end their connection or stream."""
        drops, self._drops = self._drops, []
        return drops

    def next_event(self) -> Event | NeedData | Paused:
        """As `Connection.next_event`."""
        event = self._events.popleft() if self._events else self.conn.next_event()
        if type(event) is ResultReceived and type(event.result) is ListToolsResult:
            peer = self.conn.peer
            if peer is not None and peer.dialect.http.mirrored:
                complaints = self.tools.learn(event.result)
                if complaints:
                    self._events.appendleft(event)
                    self._events.extendleft(MessageRejected(each) for each in reversed(complaints[1:]))
                    return MessageRejected(complaints[0])
        return event

    def next_deadline(self) -> float | None:
        """As `Connection.next_deadline`."""
        deadline = self.conn.next_deadline()
        if not self._times:
            return deadline
        first = min(self._times.values())
        return first if deadline is None else min(first, deadline)

    # -- What arrived ------------------------------------------------------------------------------------------------------

    def handle_timeout(self, now: float) -> None:
        """As `Connection.handle_timeout`."""
        self.conn.handle_timeout(now)
        for who, when in list(self._times.items()):
            if when <= now and self._times.pop(who, None) is not None:
                who.due(now)

    def response_started(self, key: int, head: Head, now: float) -> None:
        """The response to call `key` has begun. Names of headers are in lower case; what is only informational (1xx) is left out."""
        trip = self._trips.get(key)
        if trip is not None:
            trip.started(head, now)

    def response_data(self, key: int, data: bytes, now: float) -> None:
        """A piece of its body."""
        trip = self._trips.get(key)
        if trip is not None:
            trip.data(data, now)

    def response_ended(self, key: int, now: float, *, error: str | None = None) -> None:
        """It is complete. Or with an `error`, in a few words: no connection came about, or it broke before the end."""
        trip = self._trips.pop(key, None)
        if trip is not None:
            self._held.discard(trip)
            trip.key = 0
            self._times.pop(trip, None)
            trip.ended(error, now)

    # -- The right to make a call ---------------------------------------------------------------------------------------------

    def sign(self, call: HttpCall) -> RequestHead:
        """The head of a call as it is sent this time: with what gives the right to make it."""
        head = call.head
        if call.attempt is None:
            return head
        shown = call.attempt.headers(head.method.decode(), self._url_of(head))
        own = [(name.encode(), value.encode("latin-1")) for name, value in shown]
        named = {name for name, _ in own}
        return RequestHead(
            head.method, head.target, [*(each for each in head.headers if each[0] not in named), *own]
        )

    def refused(self, call: HttpCall, head: Head) -> bool:
        """Whether a response says that the right is missing, in a way that something can be done about. To be asked once for each
        head, before anything else is told of it."""
        if call.attempt is None:
            return False
        headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in head.headers]
        worth = call.attempt.received(head.status, headers, self._url_of(call.head))
        trip = self._trips.get(call.key)
        if trip is None or self.conn.state is State.CLOSED:
            return False
        return worth and (trip.id is None or self.conn.awaits(trip.id))

    def hold(self, key: int, now: float | None) -> None:
        """Somebody is asked for the right to make a call, which may take long (None); that is over `now`."""
        trip = self._trips.get(key)
        if trip is not None:
            if self.conn.opener is not None:
                self.conn.opener.hold(now)
            if now is None:
                self._held.add(trip)
                self.at(trip, None)
            else:
                self._held.discard(trip)
                trip.resumed(now)

    def denied(self, key: int, error: McpTrioError, now: float) -> None:
        """There is no right to make a call: what its caller is told, in place of an end of the response."""
        trip = self._trips.pop(key, None)
        if trip is not None:
            self._held.discard(trip)
            trip.key = 0
            self._times.pop(trip, None)
            trip.denied(error, now)

    def _url_of(self, head: RequestHead) -> str:
        return f"{self.url.scheme}://{self.url.authority.decode()}{head.target.decode()}"

    # -- What a transport needs ----------------------------------------------------------------------------------------------------

    @property
    def most(self) -> int:
        """Bytes of a message of the server's."""
        return self.conn.config.limits.message

    def make(
        self,
        trip: Trip,
        method: bytes,
        target: bytes,
        headers: Headers,
        *,
        body: bytes = b"",
        idempotent: bool = True,
        long: bool = False,
        brief: bool = False,
        own: Headers = [],  # noqa: B006 - it is not kept
        operation: str = "",
    ) -> None:
        """Make a call. `operation` is what it does, for whoever gives the right to it. `own` are headers that the caller of a method
        wants; they stand for those of the same name that are wanted for all."""
        self._key = trip.key = key = self._key + 1
        self._trips[key] = trip
        named = {name for name, _ in own}
        every = [header for header in self._own if header[0] not in named] if named else self._own
        all_headers = [
            (b"host", self.url.authority),
            (b"accept-encoding", b"identity"),
            *every,
            *own,
            *headers,
        ]
        head = RequestHead(method, target, all_headers)
        access = self.options.access
        attempt = None if access is None else access.attempt(operation)
        self._calls.append(HttpCall(key, head, body, idempotent, long, brief, attempt))

    def withdraw(self, trip: Trip) -> bool:
        """Forget a trip whose call no driver has taken yet, so that it is never made. False if one has."""
        for call in self._calls:
            if call.key == trip.key:
                self._calls.remove(call)
                self.forget(trip)
                return True
        return False

    def drop(self, trip: Trip) -> None:
        """Nothing more of a trip is wanted."""
        if not self.withdraw(trip):
            if trip.key:
                self._drops.append(trip.key)
            self.forget(trip)

    def forget(self, trip: Trip) -> None:
        """Nothing more of it means anything; but its response may come to its end."""
        self._times.pop(trip, None)
        self._trips.pop(trip.key, None)
        self._held.discard(trip)
        trip.key = 0

    def at(self, who: Trip | Transport, when: float | None) -> None:
        """Tell `who` when it is `when`; None for never."""
        if when is None:
            self._times.pop(who, None)
        else:
            self._times[who] = when

    def linger(self, trip: Trip, now: float) -> None:
        """Nothing more of it is wanted but its end, or what the server says before, for which there are some seconds from the first
        time on that this is said. Of one that is held the server knows nothing: it is never made."""
        if trip in self._held:
            self.drop(trip)
        else:
            self._times.setdefault(trip, now + _LINGERS)

    def receive(self, data: bytes, now: float, id: RequestId | None, status: int | None) -> None:
        """A message has come, on the stream of our request `id`."""
        if self.options.heard is not None:
            self.options.heard(data)
        self.conn.receive_message(data, now, Via(id, None, status))
        self._take()

    def failed(self, out: Outgoing, error: McpTrioError, now: float, status: int) -> None:
        """A message did not arrive, or no answer came of it."""
        if out.kind is Kind.REQUEST:
            assert out.id is not None
            self.conn.receive_failure(out.id, error, now, status=status)
            self._take()
        else:
            self.report(error)

    def report(self, error: McpTrioError) -> None:
        """Tell of something that ends no call."""
        problem = error if isinstance(error, ProtocolError) else RemoteProtocolError(str(error))
        self._events.append(MessageRejected(problem))

    def missed(self) -> None:
        """What the server has told of changes may not have come here."""
        self._events.append(ChangesMissed())

    def turn_to(self, transport: Transport) -> None:
        """From now on messages go by another one."""
        self._transport = transport

    def _take(self) -> None:
        while (event := self.conn.next_event()) is not NEED_DATA and event is not PAUSED:
            self._events.append(event)
