"""HTTP+SSE of 2024-11-05: one event stream for the server's messages, a second URL for POSTs.

1. A server of this kind rejects the handshake of Streamable HTTP. Then the event stream is opened;
   if its first event is `endpoint`, the same message is posted there (2025-11-25 and 2026-07-28,
   basic/transports, Backwards Compatibility). If not, the user gets the first rejection as the
   error, because that was about the URL that they gave.
2. The body of a response to a POST is ignored. Only the status of an error counts.
3. The stream is the conversation: when it ends, the connection ends. There is nothing to resume.

Source: basic/transports of 2024-11-05.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mcp_core._errors import AuthRequired, ConnectionLost, RemoteProtocolError
from mcp_core.http.wire._media_types import CONTENT_TYPE_JSON
from mcp_core.protocol.messages._outbox import MessageKind
from mcp_core.urls._addresses import MAX_URL

from ._operation import (
    ACCEPT_EVENT_STREAM,
    NOTHING,
    EndpointEvent,
    Failed,
    HttpOperation,
    MessagePost,
    Messages,
    Wait,
    may_repeat,
)
from ._response import DENIED_STATUS, Response
from ._transport import Transport

if TYPE_CHECKING:
    from mcp_core._errors import McpTrioError
    from mcp_core.http.wire._messages import Head
    from mcp_core.protocol.connection._connection import Connection
    from mcp_core.protocol.messages._outbox import Outgoing
    from mcp_core.urls._url import Url

    from ._operation import Outcome, Outcomes
    from ._transport import ClientState

__all__ = ["HttpSseTransport"]

# Seconds for the event `endpoint`, which is the first on the stream.
_ENDPOINT_TIMEOUT: Final = 10.0
# Seconds between two checks whether the request of an unfinished POST is over. A server responds to
# the POST at once, so this only matters if it never does: each POST keeps a connection.
_CHECK_INTERVAL: Final = 5.0


class HttpSseTransport(Transport):
    """The transport of 2024-11-05. Call `begin` to try it.

    Args:
        state: what it shares with the client and `previous_transport`.
        rejected: the POST of the handshake that the server has rejected.
        rejection: the response to it: the error if the server doesn't support HTTP+SSE either.
        previous_transport: the transport that made the POST; used again in that case.
    """

    def __init__(
        self,
        state: ClientState,
        rejected: MessagePost,
        rejection: Response,
        previous_transport: Transport,
    ) -> None:
        super().__init__(state)
        self._rejected = rejected
        self._rejection = rejection
        self._previous_transport = previous_transport
        self._endpoint: Url | None = None
        self._stream = _SseStreamGet(state.conn)

    def __repr__(self) -> str:
        return (
            f"<HttpSseTransport {'no endpoint yet' if self._endpoint is None else self._endpoint}>"
        )

    def begin(self, now: float) -> None:
        """Open the stream, and become the client's transport."""
        state = self.state
        state.transport = self
        state.make(self._stream, b"GET", state.url.target, [ACCEPT_EVENT_STREAM], long_lived=True)
        state.set_deadline(self._stream, now + _ENDPOINT_TIMEOUT)

    def send(self, out: Outgoing, now: float) -> None:
        if self._endpoint is None:
            # The server is of another kind after all: a late response to the version probe has
            # opened the connection, and this is its first message.
            self.state.drop(self._stream)
            self.state.transport = self._previous_transport
            self._previous_transport.send(out, now)
        else:
            super().send(out, now)

    def post(self, out: Outgoing, now: float) -> _SsePost:
        assert self._endpoint is not None
        post = _SsePost(self.state.conn, out)
        self.state.make(
            post,
            b"POST",
            self._endpoint.target,
            [(b"accept", b"*/*"), CONTENT_TYPE_JSON],
            out,
            idempotent=may_repeat(out),
            brief=out.kind is not MessageKind.REQUEST,
        )
        self.act(post, post.restart_timeout(now), now)
        return post

    def cancel(self, out: Outgoing, now: float) -> None:
        assert out.id is not None
        if not self.state.drop_unsent(out.id):
            self.post(out, now)

    def close(self, now: float) -> None:
        super().close(now)
        self.state.drop(self._stream)

    def _endpoint_received(self, reference: bytes, now: float) -> None:
        """Take the URL for POSTs from the event `endpoint`, and send the first message there.

        Later events of this type are ignored.

        Raises:
            RemoteProtocolError: it isn't a URL, too long, or not of the same origin.
        """
        if self._endpoint is not None:
            return
        if len(reference) > MAX_URL:
            raise RemoteProtocolError(f"the endpoint event is longer than {MAX_URL} bytes")
        try:
            # Relative to the URL that the stream is from, after redirects (RFC 3986, 5.1.3).
            endpoint = self.state.url_of(self._stream).join(reference.decode())
        except ValueError:
            raise RemoteProtocolError("the endpoint event contains no URL") from None
        # Another origin would get the messages, and the headers, of a user who did not name it.
        if endpoint.origin != self.state.url.origin:
            raise RemoteProtocolError(
                f"the endpoint event names another server, {endpoint.text[:200]}"
            )
        self._endpoint = endpoint
        self.state.set_deadline(self._stream, None)
        self.send(self._rejected.out, now)

    def act(self, operation: HttpOperation, outcomes: Outcomes, now: float) -> None:
        if isinstance(operation, _SsePost):
            super().act(operation, outcomes, now)
        elif operation is self._stream:
            for outcome in outcomes:
                if not self._act_on_stream(outcome, now):
                    break
        else:
            self._previous_transport.act(operation, outcomes, now)

    def _act_on_stream(self, outcome: Outcome, now: float) -> bool:
        """Act on a stream's outcome. Return False if that has ended it."""
        if isinstance(outcome, Messages):
            for data in outcome.messages:
                self.state.receive(data, now, None, None)
        elif isinstance(outcome, EndpointEvent):
            try:
                self._endpoint_received(outcome.reference, now)
            except RemoteProtocolError as exc:
                self._stream_ended(exc, now, 0)
                return False
        else:
            assert isinstance(outcome, Failed)
            self._stream_ended(outcome.error, now, outcome.status)
            return False
        return True

    def _stream_ended(self, error: McpTrioError, now: float, status: int) -> None:
        """Close the connection, or use the previous transport again if there is no endpoint yet."""
        self.state.drop(self._stream)
        if self._endpoint is not None or isinstance(error, AuthRequired) or status in DENIED_STATUS:
            self.state.conn.close(error)
        else:
            self.state.transport = self._previous_transport
            outcomes = self._rejected.error_response(self._rejection)
            self._previous_transport.act(self._rejected, outcomes, now)


class _SseStreamGet(HttpOperation):
    """The GET for the event stream."""

    def __init__(self, conn: Connection) -> None:
        self.conn = conn

    def response_started(self, head: Head, now: float) -> Outcomes:
        try:
            self.response = Response(head, self.conn.config.limits.message)
        except RemoteProtocolError as exc:
            return (Failed(exc),)
        if self.response.events is None:
            return (Failed(self.status_error("the event stream: ", self.response)),)
        return NOTHING

    def response_data(self, data: bytes, now: float) -> Outcomes:
        response = self.response
        assert response is not None
        outcomes: list[Outcome] = []
        try:
            for event in response.feed(data):
                if event.type == "endpoint":
                    outcomes.append(EndpointEvent(event.data))
                elif event.is_message:
                    outcomes.append(Messages([event.data]))
        except RemoteProtocolError as exc:
            outcomes.append(Failed(exc))
        return outcomes

    def response_ended(self, error: str | None, now: float) -> Outcomes:
        why = error or "the server has ended it"
        return (Failed(ConnectionLost(f"the event stream: {why}")),)

    def denied(self, error: McpTrioError) -> Outcomes:
        return (Failed(error, DENIED_STATUS[0]),)

    def on_deadline(self, now: float) -> Outcomes:
        return (Failed(ConnectionLost("the event stream brought no endpoint event in time")),)


class _SsePost(MessagePost):
    """The POST of a message. A JSON-RPC response arrives on the event stream."""

    def restart_timeout(self, now: float) -> Outcomes:
        if self.id is None:
            return super().restart_timeout(now)
        return (Wait(now + _CHECK_INTERVAL),)

    def on_deadline(self, now: float) -> Outcomes:
        if self.id is not None and self.conn.has_outgoing(self.id):
            return self.restart_timeout(now)
        return super().on_deadline(now)

    def response_started(self, head: Head, now: float) -> Outcomes:
        try:
            self.response = Response(head, self.conn.config.limits.message)
        except RemoteProtocolError:
            pass  # an encoded body with a good status, which is ignored like any other body
        return NOTHING

    def response_data(self, data: bytes, now: float) -> Outcomes:
        if self.response is not None and not self.response.good:
            for _ in self.response.feed(data):
                raise AssertionError("an error response has no events")  # pragma: no cover
        return NOTHING

    def response_ended(self, error: str | None, now: float) -> Outcomes:
        if self.response is not None and not self.response.good:
            return self.error_response(self.response)
        if self.response is None and error is not None:
            return self.connection_lost(error)
        return NOTHING
