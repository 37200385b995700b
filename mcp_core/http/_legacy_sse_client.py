"""HTTP+SSE of 2024-11-05 from the client's end: one stream on which everything comes, and another URL to which everything is POSTed.

A server of that kind is found out when it refuses the handshake: then the stream is asked for, and if its first event says where to
post, the same message is sent there (2025-11-25 and 2026-07-28, basic/transports, Backwards Compatibility). If not, it is the first
refusal that is told, for that is what the server has said to what was wanted of it.

Rules of this file:

1. The URL to post to is one of the same server: of the same scheme, host and port. Anything else would have us send what the user
   says to somebody he did not name.
2. What comes back from a POST is no answer, whatever it is; only a status that refuses counts.
3. The stream is the conversation: when it ends, that does. There is nothing to take up again.

Source: basic/transports of 2024-11-05.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mcp_core._errors import AuthRequired, ConnectionLost, RemoteProtocolError

from ._response import Response, refusal
from ._transport import Sent, Transport, Trip, may_repeat, operation_of, own_headers

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_core._errors import McpTrioError
    from mcp_core._outbox import Outgoing
    from mcp_core.urls import Url

    from ._client import HttpClient
    from ._messages import Head

__all__ = ["LegacySse"]

_ACCEPT: Final = (b"accept", b"text/event-stream")
_JSON: Final = (b"content-type", b"application/json")
# Seconds for the event that says where to post, which is the first.
_FIRST_EVENT: Final = 10.0


class LegacySse(Transport):
    """The transport of 2024-11-05. `first` is what the server at the URL of `client` has refused, sent by `before`; `refused` tells of
    that refusal if nothing comes of this either."""

    def __init__(
        self, client: HttpClient, first: Outgoing, before: Transport, refused: Callable[[float], object]
    ) -> None:
        super().__init__(client)
        self._first = first
        self._before = before
        self._refused = refused
        self._endpoint: Url | None = None
        self._stream = _Stream(self)

    def __repr__(self) -> str:
        return f"<LegacySse {'no endpoint yet' if self._endpoint is None else self._endpoint}>"

    def begin(self, now: float) -> None:
        """Ask for the stream."""
        client = self.client
        client.turn_to(self)
        client.make(self._stream, b"GET", client.url.target, [_ACCEPT], long=True)
        client.at(self._stream, now + _FIRST_EVENT)

    def send(self, out: Outgoing, now: float) -> None:
        if self._endpoint is None:
            # The connection was opened by something else after all: a late answer to the question which revisions there are.
            self.client.drop(self._stream)
            self.client.turn_to(self._before)
            self._before.send(out, now)
        else:
            super().send(out, now)

    def _make(self, out: Outgoing, now: float) -> _Told:
        assert self._endpoint is not None
        told = _Told(self.client, out)
        self.client.make(
            told,
            b"POST",
            self._endpoint.target,
            [(b"accept", b"*/*"), _JSON],
            body=out.data,
            idempotent=may_repeat(out),
            brief=True,
            own=own_headers(out),
            operation=operation_of(out),
        )
        return told

    def cancel(self, out: Outgoing, now: float) -> None:
        self.post(out, now)

    def close(self, now: float) -> None:
        super().close(now)
        self.client.drop(self._stream)

    def said_where(self, reference: bytes, now: float) -> None:
        """The stream names the URL to post to.

        Raises:
            RemoteProtocolError: it is none, or none of this server's.
        """
        if self._endpoint is not None:
            return
        try:
            endpoint = self.client.url.join(reference.decode())
        except ValueError:
            raise RemoteProtocolError("the endpoint event of the stream has no URL") from None
        if endpoint.origin != self.client.url.origin:
            raise RemoteProtocolError(
                f"the endpoint event of the stream names another server, {endpoint.text[:200]}"
            )
        self._endpoint = endpoint
        self.client.at(self._stream, None)
        self.send(self._first, now)

    def ended(self, error: McpTrioError, now: float) -> None:
        """There is no stream (any more)."""
        self.client.drop(self._stream)
        if self._endpoint is not None or isinstance(error, AuthRequired):
            self.client.conn.close(error)
        else:
            self.client.turn_to(self._before)
            self._refused(now)

    def denied(self, error: McpTrioError, now: float) -> None:
        """There is no right to the stream."""
        self.client.drop(self._stream)
        self.client.conn.close(error)


class _Stream(Trip):
    """The one stream."""

    def __init__(self, transport: LegacySse) -> None:
        self.transport = transport

    def started(self, head: Head, now: float) -> None:
        try:
            self.response = Response(head, self.transport.client.most)
        except RemoteProtocolError as exc:
            self.transport.ended(exc, now)
        else:
            if self.response.events is None:
                self.transport.ended(refusal("the stream of events: ", self.response), now)

    def data(self, data: bytes, now: float) -> None:
        response = self.response
        assert response is not None
        try:
            for event in response.feed(data):
                if event.type == "endpoint":
                    self.transport.said_where(event.data, now)
                elif event.is_message:
                    self.transport.client.receive(event.data, now, None, None)
        except RemoteProtocolError as exc:
            self.transport.ended(exc, now)

    def ended(self, error: str | None, now: float) -> None:
        why = error or "the server has ended it"
        self.transport.ended(ConnectionLost(f"the stream of events: {why}"), now)

    def denied(self, error: McpTrioError, now: float) -> None:
        self.transport.denied(error, now)

    def due(self, now: float) -> None:
        self.transport.ended(ConnectionLost("the stream of events does not begin"), now)


class _Told(Sent):
    """A message that was POSTed; the answer comes on the stream."""

    def started(self, head: Head, now: float) -> None:
        try:
            self.response = Response(head, self.client.most)
        except RemoteProtocolError:
            pass  # a good status, and a body of no interest

    def data(self, data: bytes, now: float) -> None:
        if self.response is not None and not self.response.good:
            for _ in self.response.feed(data):
                raise AssertionError("no events in a refusal")  # pragma: no cover

    def ended(self, error: str | None, now: float) -> None:
        if self.response is not None and not self.response.good:
            self.refused(self.response, now)
        elif self.response is None and error is not None:
            self.lost(error, now)
