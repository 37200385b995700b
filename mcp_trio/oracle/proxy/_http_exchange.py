"""One exchange of an HTTP proxy: pass the request on, and its response back.

1. Each piece of a body is passed on as it arrives. Its data doesn't change, but its framing is
   written anew, because framing belongs to one connection (RFC 9112, 6 and 7).
2. A head keeps its fields, with their order and spelling. Only `Host` and the connection's own
   fields change. Forbidden trailers are dropped.
3. If one side disconnects, the proxy disconnects the other one at once, so that a server can cancel
   the request.
4. h11 parses chunks and responses. The proxy sends only what h11 has accepted.
"""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING, Final, Literal

import h11
import trio

from mcp_core import ConnectionLost
from mcp_core.adapters import H11ResponseReader
from mcp_core.http import (
    Body,
    End,
    GatewayError,
    Head,
    ProxiedExchange,
    end_to_end,
    end_to_end_trailers,
    require_http,
    without_quoted_bytes,
)
from mcp_core.runtime import READ_SIZE
from mcp_trio.http_server._h11_heads import CHUNKED, chunk_parser

if TYPE_CHECKING:
    from collections.abc import Collection

    from mcp_core.http import Action, EndpointWatch, ExchangeRecorderLike, Headers, ProxiedEnd
    from mcp_trio.http_server._h11_heads import ReceivedHead

__all__ = ["BROKEN", "NoResponse", "PassedBody", "ProxyExchange", "head_bytes"]

BROKEN: Final = (trio.BrokenResourceError, trio.ClosedResourceError)
_MAX_UNUSED: Final = 64 * 1024  # bytes of later requests that are read during an exchange
_ANY_HOST: Final = [(b"host", b"server")]


class NoResponse(Exception):
    """The server has sent no response. The client gets `answer` instead."""

    def __init__(self, answer: GatewayError) -> None:
        super().__init__(answer.reason)
        self.answer = answer


class PassedBody:
    """A request's body while it passes.

    Args:
        block: the request's head.
        length: the body's length in bytes, or `CHUNKED`.
        incoming: bytes that were received after the head.
        replaced: names, in lower case, of headers that the proxy adds. Trailers with these names
            are dropped.

    Attributes:
        is_complete: True once `take` has returned the end of the body.
        unused: bytes that were received after the body.
    """

    def __init__(
        self, block: bytes, length: int, incoming: bytes, replaced: Collection[str] = ()
    ) -> None:
        self.is_complete = False
        self._replaced = replaced
        self.unused = b""
        self._left = length
        self._incoming = incoming
        self._chunks: h11.Connection | None = None
        if length == CHUNKED:
            self._chunks = chunk_parser(block)
            self._chunks.next_event()

    def feed(self, data: bytes) -> None:
        """Add received bytes."""
        self._incoming += data

    def take(self) -> tuple[bytes, bytes]:
        """Return what has arrived since the last call, as data and as bytes for the server.

        Raises:
            h11.RemoteProtocolError: the chunks are malformed.
        """
        data, self._incoming = self._incoming, b""
        if self._chunks is not None:
            return self._take_chunks(self._chunks, data)
        data, self.unused = data[: self._left], data[self._left :]
        self._left -= len(data)
        self.is_complete = not self._left
        return data, data

    def _take_chunks(self, chunks: h11.Connection, data: bytes) -> tuple[bytes, bytes]:
        if data:
            chunks.receive_data(data)
        found: list[bytes] = []
        sent: list[bytes] = []
        while True:
            event = chunks.next_event()
            if isinstance(event, h11.Data):
                found.append(bytes(event.data))
                sent.append(_chunk(found[-1]))
                continue
            if isinstance(event, h11.EndOfMessage):
                self.is_complete = True
                self.unused = chunks.trailing_data[0]
                trailers = end_to_end_trailers(event.headers.raw_items(), self._replaced)
                sent.append(head_bytes(b"0\r\n", trailers))
            return b"".join(found), b"".join(sent)


class ProxyExchange:
    """One request and its response. `state` makes the decisions about them.

    Args:
        client: the client's stream.
        head: the request's head.
        sent: the request's head as bytes for the server.
        body: the request's body.
        record: records the exchange.
        watch: finds in the response the target that messages are posted to. The caller closes it.

    Attributes:
        state: what has happened so far.
        size: bytes of the response's body so far.
        unused: bytes that the client has sent after the request.
    """

    def __init__(
        self,
        client: trio.abc.Stream,
        head: ReceivedHead,
        sent: bytes,
        body: PassedBody,
        record: ExchangeRecorderLike | None,
        watch: EndpointWatch | None = None,
    ) -> None:
        self.state = ProxiedExchange(
            head.request.method, is_http_1_1=head.is_http_1_1, keep_alive=head.keep_alive
        )
        self.size = 0
        self.unused = b""
        self._client = client
        self._unsent = sent
        self._body = body
        self._record = record
        self._watch = watch
        self._http = H11ResponseReader()
        # h11 needs the method: the response's length depends on it.
        self._http.send(h11.Request(method=head.request.method, target=b"/", headers=_ANY_HOST))
        self._http.send(h11.EndOfMessage())
        self._actions: list[Action] = []  # received, and not recorded
        self._parts: list[bytes] = []  # the same response as bytes for the client

    def ended(self, side: Literal["client", "server"], reason: str) -> None:
        """Record that `side` has ended the exchange early, and why."""
        if self._record is not None:
            self._record.ended(side, reason)

    async def run(self, server: trio.abc.Stream) -> ProxiedEnd:
        """Pass the request on, and the response back. Return how the exchange has ended.

        Raises:
            NoResponse: the server has disconnected without a response, or sent no HTTP.
        """
        failure: NoResponse | None = None
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._pass_request, server, nursery.cancel_scope)
            try:
                await self._pass_response(server)
            except NoResponse as exc:
                failure = exc
            except BROKEN:
                # Only writing to the client raises here: the end of the server isn't an error.
                self.state.client_disconnected = True
            nursery.cancel_scope.cancel()
        if failure is not None and not self.state.client_disconnected:
            raise failure
        http = self._http
        is_idle = http.their_state is h11.DONE and not http.trailing_data[0]
        end = self.state.finish(server_is_idle=is_idle)
        if end.ended_by is not None:
            self.ended(end.ended_by, "closed")
        return end

    # -- The request -------------------------------------------------------------------------------

    async def _pass_request(self, server: trio.abc.Stream, scope: trio.CancelScope) -> None:
        """Pass the body on. Then read ahead, to notice when the client disconnects."""
        try:
            while not await self._pass_body(server):
                data = bytes(await self._client.receive_some(READ_SIZE))
                if not data:
                    break
                self._body.feed(data)
            else:
                self.unused = self._body.unused
                while len(self.unused) <= _MAX_UNUSED:
                    data = bytes(await self._client.receive_some(READ_SIZE))
                    if not data:
                        break
                    self.unused += data
                else:
                    return
        except BROKEN:
            pass
        except h11.RemoteProtocolError:
            pass  # malformed chunks: the rest of the request is lost, as after a disconnect
        self.state.client_disconnected = True
        scope.cancel()

    async def _pass_body(self, server: trio.abc.Stream) -> bool:
        """Pass on the part of the request that has arrived. Return True at its end.

        Raises:
            h11.RemoteProtocolError: the body's chunks are malformed.
        """
        data, sent = self._body.take()
        self.state.request_received = self._body.is_complete
        if self._record is not None and (data or self._body.is_complete):
            self._record.request_data(data, end=self._body.is_complete)
        sent, self._unsent = self._unsent + sent, b""
        try:
            await server.send_all(sent)
            self.state.request_sent = self._body.is_complete
        except BROKEN:
            # The server may have sent a response before it disconnected, such as a 413. Go on
            # reading both: a client that reads only after it has sent all gets that response.
            pass
        return self._body.is_complete

    # -- The response ------------------------------------------------------------------------------

    async def _pass_response(self, server: trio.abc.Stream) -> None:
        """Pass the response on, up to its end or the server's.

        Raises:
            NoResponse: there is no response, not even a head.
        """
        received = False
        while True:
            data, end = await self._receive(server)
            if data and not received:
                received = True
                try:
                    require_http(data)
                except ConnectionLost as exc:
                    raise NoResponse(GatewayError(str(exc))) from None
            self._http.receive_data(data)
            error = self._decode()
            actions, self._actions = self._actions, []
            parts, self._parts = self._parts, []
            if actions and self._record is not None:
                self._record.response(actions)
            if self._watch is not None:
                _show(self._watch, actions)  # first: the client may post at once
            if parts:
                await self._client.send_all(parts[0] if len(parts) == 1 else b"".join(parts))
            if actions and type(actions[-1]) is End:
                self.state.response_passed = True
                return
            if error is not None or not data:
                answer = self.state.missing_response(end, error)
                if answer is not None:
                    raise NoResponse(answer)
                return

    async def _receive(
        self, server: trio.abc.Stream
    ) -> tuple[bytes, Literal["closed", "reset", "timeout"] | None]:
        """Return the server's next bytes, or `b""` at its end, and how it has ended."""
        try:
            data = bytes(await server.receive_some(READ_SIZE))
        except BROKEN as exc:
            cause = exc.__cause__
            is_timeout = isinstance(cause, OSError) and cause.errno == errno.ETIMEDOUT
            return b"", "timeout" if is_timeout else "reset"
        return data, None if data else "closed"

    def _decode(self) -> str | None:
        """Decode the part of the response that has arrived, as actions and bytes for the client.

        Return the error in the rest, or None.
        """
        actions, parts = self._actions, self._parts
        try:
            while True:
                event = self._http.next_event()
                if isinstance(event, h11.Data):
                    data = bytes(event.data)
                    self.size += len(data)
                    actions.append(Body(data))
                    parts.append(_chunk(data) if self.state.is_chunked else data)
                elif isinstance(event, h11.Response):
                    actions.append(Head(event.status_code, list(event.headers)))
                    fields = self.state.receive_head(event.status_code, event.headers.raw_items())
                    parts.append(head_bytes(_status_line(event), fields))
                elif isinstance(event, h11.InformationalResponse):
                    if self.state.passes_interim:
                        fields = end_to_end(event.headers.raw_items())
                        parts.append(head_bytes(_status_line(event), fields))
                elif isinstance(event, h11.EndOfMessage):
                    actions.append(End())
                    if self.state.is_chunked:
                        trailers = end_to_end_trailers(event.headers.raw_items())
                        parts.append(head_bytes(b"0\r\n", trailers))
                    return None
                else:
                    return None
        except h11.RemoteProtocolError as exc:
            return without_quoted_bytes(exc)


def _show(watch: EndpointWatch, actions: list[Action]) -> None:
    for action in actions:
        if isinstance(action, Head):
            watch.receive_head(action)
        elif isinstance(action, Body):
            watch.receive_data(action.data)


def _status_line(response: h11.Response | h11.InformationalResponse) -> bytes:
    return b"HTTP/1.1 %d %b\r\n" % (response.status_code, response.reason)


def head_bytes(line: bytes, fields: Headers) -> bytes:
    """Return a head, or the last chunk with its trailers. `line` ends with a line break."""
    return b"".join([line, *[b"%b: %b\r\n" % field for field in fields], b"\r\n"])


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)
