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

from ._response import Response, error_for_status
from ._transport import (
    ACCEPT_EVENT_STREAM,
    HttpOperation,
    MessagePost,
    Transport,
    may_repeat,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_core._errors import McpTrioError
    from mcp_core.http.wire._messages import Head
    from mcp_core.protocol.messages._outbox import Outgoing
    from mcp_core.urls._url import Url

    from ._transport import OperationHost

__all__ = ["HttpSseTransport"]

# Seconds for the event `endpoint`, which is the first on the stream.
_ENDPOINT_TIMEOUT: Final = 10.0
# Seconds between two checks whether the request of an unfinished POST is over. A server responds to
# the POST at once, so this only matters if it never does: each POST keeps a connection.
_CHECK_INTERVAL: Final = 5.0


class HttpSseTransport(Transport):
    """The transport of 2024-11-05. Call `begin` to try it.

    Args:
        client: the client, with the URL at which the stream is expected.
        failed_message: the message of the handshake that the server has rejected.
        previous_transport: the transport that sent it; used again if the server doesn't support
            HTTP+SSE.
        on_unsupported: called with the time in that case, to report the rejection.
    """

    def __init__(
        self,
        client: OperationHost,
        failed_message: Outgoing,
        previous_transport: Transport,
        on_unsupported: Callable[[float], object],
    ) -> None:
        super().__init__(client)
        self._failed_message = failed_message
        self._previous_transport = previous_transport
        self._on_unsupported = on_unsupported
        self._endpoint: Url | None = None
        self._stream = _SseStreamGet(self)

    def __repr__(self) -> str:
        return (
            f"<HttpSseTransport {'no endpoint yet' if self._endpoint is None else self._endpoint}>"
        )

    def begin(self, now: float) -> None:
        """Open the stream, and become the client's transport."""
        client = self.client
        client.use_transport(self)
        client.make(self._stream, b"GET", client.url.target, [ACCEPT_EVENT_STREAM], long_lived=True)
        client.set_deadline(self._stream, now + _ENDPOINT_TIMEOUT)

    def send(self, out: Outgoing, now: float) -> None:
        if self._endpoint is None:
            # The server is of another kind after all: a late response to the version probe has
            # opened the connection, and this is its first message.
            self.client.drop(self._stream)
            self.client.use_transport(self._previous_transport)
            self._previous_transport.send(out, now)
        else:
            super().send(out, now)

    def post(self, out: Outgoing, now: float) -> _SsePost:
        assert self._endpoint is not None
        post = _SsePost(self.client, out)
        self.client.make(
            post,
            b"POST",
            self._endpoint.target,
            [(b"accept", b"*/*"), CONTENT_TYPE_JSON],
            out,
            idempotent=may_repeat(out),
            brief=out.kind is not MessageKind.REQUEST,
        )
        post.restart_timeout(now)
        return post

    def cancel(self, out: Outgoing, now: float) -> None:
        assert out.id is not None
        if not self.client.drop_unsent(out.id):
            self.post(out, now)

    def close(self, now: float) -> None:
        super().close(now)
        self.client.drop(self._stream)

    def endpoint_received(self, reference: bytes, now: float) -> None:
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
            endpoint = self.client.url.join(reference.decode())
        except ValueError:
            raise RemoteProtocolError("the endpoint event contains no URL") from None
        # Another origin would get the messages, and the headers, of a user who did not name it.
        if endpoint.origin != self.client.url.origin:
            raise RemoteProtocolError(
                f"the endpoint event names another server, {endpoint.text[:200]}"
            )
        self._endpoint = endpoint
        self.client.set_deadline(self._stream, None)
        self.send(self._failed_message, now)

    def stream_ended(self, error: McpTrioError, now: float) -> None:
        """Close the connection, or use the previous transport again if there is no endpoint yet."""
        self.client.drop(self._stream)
        if self._endpoint is not None or isinstance(error, AuthRequired):
            self.client.conn.close(error)
        else:
            self.client.use_transport(self._previous_transport)
            self._on_unsupported(now)

    def denied(self, error: McpTrioError, now: float) -> None:
        """Close the connection: authorization of the stream failed."""
        self.client.drop(self._stream)
        self.client.conn.close(error)


class _SseStreamGet(HttpOperation):
    """The GET of the event stream."""

    def __init__(self, transport: HttpSseTransport) -> None:
        self.transport = transport

    def response_started(self, head: Head, now: float) -> None:
        try:
            self.response = Response(head, self.transport.client.message_limit)
        except RemoteProtocolError as exc:
            self.transport.stream_ended(exc, now)
        else:
            if self.response.events is None:
                error = error_for_status(
                    "the event stream: ", self.response, sent_token=self.sent_token
                )
                self.transport.stream_ended(error, now)

    def response_data(self, data: bytes, now: float) -> None:
        response = self.response
        assert response is not None
        try:
            for event in response.feed(data):
                if event.type == "endpoint":
                    self.transport.endpoint_received(event.data, now)
                elif event.is_message:
                    self.transport.client.receive(event.data, now, None, None)
        except RemoteProtocolError as exc:
            self.transport.stream_ended(exc, now)

    def response_ended(self, error: str | None, now: float) -> None:
        why = error or "the server has ended it"
        self.transport.stream_ended(ConnectionLost(f"the event stream: {why}"), now)

    def denied(self, error: McpTrioError, now: float) -> None:
        self.transport.denied(error, now)

    def on_deadline(self, now: float) -> None:
        self.transport.stream_ended(
            ConnectionLost("the event stream brought no endpoint event in time"), now
        )


class _SsePost(MessagePost):
    """The POST of a message. A JSON-RPC response arrives on the event stream."""

    def restart_timeout(self, now: float) -> None:
        if self.id is None:
            super().restart_timeout(now)
        else:
            self.client.set_deadline(self, now + _CHECK_INTERVAL)

    def on_deadline(self, now: float) -> None:
        if self.id is not None and self.client.conn.has_outgoing(self.id):
            self.restart_timeout(now)
        else:
            super().on_deadline(now)

    def response_started(self, head: Head, now: float) -> None:
        try:
            self.response = Response(head, self.client.message_limit)
        except RemoteProtocolError:
            pass  # an encoded body with a good status, which is ignored like any other body

    def response_data(self, data: bytes, now: float) -> None:
        if self.response is not None and not self.response.good:
            for _ in self.response.feed(data):
                raise AssertionError("an error response has no events")  # pragma: no cover

    def response_ended(self, error: str | None, now: float) -> None:
        if self.response is not None and not self.response.good:
            self.handle_error_response(self.response, now)
        elif self.response is None and error is not None:
            self.fail_connection_lost(error, now)
