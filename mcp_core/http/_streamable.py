"""Streamable HTTP from the client's end: each message is POSTed, its answer is the body of the response or on a stream of events.

What there is between the requests is here: the session that a handshake may have begun, the order that the handshake needs, the
stream of the session. One request and its response are a trip of `_trips.py`.

Rules of this file:

1. When `initialized` has been accepted the stream of the session is asked for, and the rest waits for it too, for many servers do not
   keep what they say on it before; but not for long, since others say nothing of it until they have something to say on it.
2. A session that the server has lost (404) is begun anew, by a handshake of the connection's (`Connection.renew`). A message that was
   refused for that reason was not carried out and is sent again; a call whose stream was of that session is lost. A server that loses
   the new one too, before it has taken anything, is given up.
3. Who hangs up on a stateless server wants no answer, and need not say so; a stateful one is told (2026-07-28 and 2025-11-25,
   basic/utilities/cancellation), and listened to for a while: what it has asked for that call it takes back on the same stream.
4. The session's own stream is a courtesy: a server that has none (405), or with which it cannot be kept, is a server without it. If
   it was away and comes back without its past, changes may have been missed.

Sources: basic/transports of 2025-03-26 to 2025-11-25; basic/transports/streamable-http of 2026-07-28.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from mcp_core._errors import ConnectionLost, LocalProtocolError, RemoteProtocolError
from mcp_core._methods import METHODS, Method, Step
from mcp_core._outbox import Kind
from mcp_core._state import State
from mcp_core.types import CallToolParams, Params

from ._call import header
from ._comeback import Comeback
from ._headers import PROTOCOL_VERSION, SESSION_ID
from ._mirror import request_headers
from ._transport import Transport, may_repeat, operation_of, own_headers, step_of
from ._trips import Farewell, Post, Stream

if TYPE_CHECKING:
    from mcp_core._dialects import Dialect
    from mcp_core._errors import McpTrioError
    from mcp_core._outbox import Outgoing
    from mcp_core._param_headers import ParamHeaders
    from mcp_core.types import RequestId

    from ._client import HttpClient
    from ._messages import Head, Headers

__all__ = ["Streamable"]

_LASTING: Final = frozenset(row.name for row in METHODS if row.lasting)
_ACCEPT: Final = (b"accept", b"application/json, text/event-stream")
_JSON: Final = (b"content-type", b"application/json")
_SESSION: Final = re.compile(rb"[!-~]{1,1024}")
# Seconds that a server has to say whether there is a stream of the session.
_OPENS: Final = 1.0


class Streamable(Transport):
    """The transport of every revision but the first.

    `session` is what the server has called it; None for none.
    """

    def __init__(self, client: HttpClient) -> None:
        super().__init__(client)
        self.session: bytes | None = None
        self._renewing = False
        self._unproven = False  # a session was begun anew, and the server has taken nothing in it
        self._reading: dict[RequestId, Post | Stream] = {}  # who reads the answer to which request of ours
        self._own: Stream | None = None

    def __repr__(self) -> str:
        session = "no session" if self.session is None else "a session"
        return f"<Streamable, {session}, {len(self._reading)} calls, {len(self._held)} messages held>"

    def close(self, now: float) -> None:
        super().close(now)
        for reading in self._reading.values():
            self.client.drop(reading)
        self._reading.clear()
        if self._own is not None:
            self.client.drop(self._own)
        if self.session is not None:
            self.client.make(Farewell(), b"DELETE", self.client.url.target, self.headers(), brief=True)

    # -- Sending -----------------------------------------------------------------------------------------------------------

    def _make(self, out: Outgoing, now: float) -> Post | None:
        try:
            headers = self._headers_of(out)
        except ValueError as exc:
            problem = f"{out.method} cannot be sent over HTTP: {exc}"
            self.client.failed(out, LocalProtocolError(problem), now, 0)
            return None
        post = Post(self, out)
        if post.id is not None:
            self._reading[post.id] = post
        self.client.make(
            post,
            b"POST",
            self.client.url.target,
            [_ACCEPT, _JSON, *headers],
            body=out.data,
            idempotent=may_repeat(out),
            long=out.method in _LASTING,
            brief=out.kind is not Kind.REQUEST,
            own=own_headers(out),
            operation=operation_of(out),
        )
        return post

    def _headers_of(self, out: Outgoing) -> Headers:
        """What the revision wants beside.

        Raises:
            ValueError: a header cannot say what the message does.
        """
        if step_of(out) is Step.INITIALIZE:
            return []
        dialect = out.dialect
        if dialect is None or not dialect.http.mirrored:
            return self.headers(dialect)
        config = self.client.conn.config
        row = config.terms[self.client.conn.role][dialect].sends.get(out.method) or Method(
            out.method, None, Params
        )
        return request_headers(row, out.params, dialect.version, self._mirrored(out))

    def _mirrored(self, out: Outgoing) -> ParamHeaders | None:
        if out.method != "tools/call":
            return None
        params = out.params
        return self.client.tools.of(params.name if isinstance(params, CallToolParams) else params["name"])

    def headers(self, dialect: Dialect | None = None) -> Headers:
        """What each request of a stateful revision carries, once that is known."""
        peer = self.client.conn.peer
        if dialect is None and peer is not None:
            dialect = peer.dialect
        headers = []
        if dialect is not None and dialect.http.version_header:
            headers.append((PROTOCOL_VERSION, dialect.version.encode()))
        if self.session is not None:
            headers.append((SESSION_ID, self.session))
        return headers

    def cancel(self, out: Outgoing, now: float) -> None:
        assert out.id is not None
        assert out.dialect is not None
        reading = self._reading.pop(out.id, None)
        if reading is None or self.client.withdraw(reading):
            return  # it was answered in the meantime, or never made
        if out.dialect.http.cancels or reading.session != self.session:
            self.client.drop(reading)
            return
        if reading.key:
            self._reading[out.id] = reading
            self.client.linger(reading, now)
        else:
            self.client.drop(reading)
        self.post(out, now)

    # -- What responses say about the session -----------------------------------------------------------------------------------

    def accepted(self, post: Post, head: Head) -> None:
        """The server has taken a message.

        Raises:
            RemoteProtocolError: what it calls the session cannot be said in a header.
        """
        step = step_of(post.out)
        if step is Step.INITIALIZE:
            session = header(head, SESSION_ID)
            if session is not None and not _SESSION.fullmatch(session):
                raise RemoteProtocolError(
                    "the name that the server gives to the session is not visible ASCII"
                )
            self.session = session
        elif step is not Step.INITIALIZED and post.session == self.session:
            self._unproven = False

    def come_back(self, post: Post, now: float) -> None:
        """Take up again the stream that was the response to a message."""
        assert post.id is not None
        stream = self._reading[post.id] = Stream(self, post.comeback, post.out)
        stream.again("the stream ended", now)

    def no_stream(self, problem: McpTrioError | None) -> None:
        """There is no stream of the session, or no longer."""
        self._own = None
        if problem is not None:
            self.client.report(problem)

    def session_lost(self, trip: Post | Stream, now: float) -> None:
        """The server does not know the session that the request named."""
        client = self.client
        first = trip.session == self.session
        client.forget(trip)
        if client.conn.state is not State.READY:
            return
        if first and self._unproven:
            client.conn.close(ConnectionLost("the server loses each session that it begins"))
            return
        if first:
            self.session = None
            self._renewing = self._unproven = True
            self._wait_for(None, now)
            self._lose_calls(trip, now)
            client.conn.renew(now)
        if isinstance(trip, Post):
            out = trip.out
            self.over(trip)
            again = out.kind is Kind.NOTIFICATION if trip.id is None else client.conn.awaits(trip.id)
            if again and step_of(out) is not Step.INITIALIZED:
                self.send(out, now)
        elif trip.id is not None:
            trip.fail(_lost(trip), now)

    def _lose_calls(self, but: Post | Stream, now: float) -> None:
        """The streams of a session that is no more will say nothing. Of requests without a response the server will say itself what
        becomes of them."""
        if self._own is not None:
            self.client.drop(self._own)
            self._own = None
        for reading in list(self._reading.values()):
            if reading is not but and reading.streams:
                reading.fail(_lost(reading), now)

    def over(self, reading: Post | Stream) -> None:
        """Nobody waits for it any more."""
        if reading.id is not None and self._reading.get(reading.id) is reading:
            del self._reading[reading.id]

    # -- In which order -----------------------------------------------------------------------------------------------------------

    def _must_wait(self, out: Outgoing) -> bool:
        return self._renewing or super()._must_wait(out)

    def _go_on(self, now: float) -> None:
        gate = self._gate
        if isinstance(gate, Post) and step_of(gate.out) is Step.INITIALIZED and gate.accepted:
            self._own = Stream(self, Comeback(self.client.options, endless=True))
            self._own.connect()
            self._wait_for(self._own, now, _OPENS)
            return
        if gate is not None and gate.id is None:
            self._renewing = False
            self._leave_old()
            self._fail_foreign(now)
        super()._go_on(now)

    def _leave_old(self) -> None:
        """Nobody reads the answer to the question which revision to speak any more, if that took too long."""
        for id, reading in list(self._reading.items()):
            if not self.client.conn.awaits(id):
                self.over(reading)
                self.client.drop(reading)

    def _fail_foreign(self, now: float) -> None:
        """What was said in the revision of an old session, if the new one has another, cannot be said."""
        client = self.client
        peer = client.conn.peer
        assert peer is not None
        for out in list(self._held):
            if out.dialect not in (None, peer.dialect):
                self._held.remove(out)
                problem = f"{out.method}: the server has lost the session and speaks another revision in the new one"
                client.failed(out, ConnectionLost(problem), now, 0)


def _lost(reading: Post | Stream) -> ConnectionLost:
    return ConnectionLost(f"{reading.prefix}the server has lost the session before it answered")
