"""An HTTP/1.1 client connection: one request at a time, reused for the next.

1. A request is one write. The response is read while a long request is being written, because a
   server may reject it without reading all of it.
2. A response is passed on in pieces as it arrives, and nothing is buffered. Only its head has a
   size limit here. The caller limits the size and duration of the body, and cancels `run` to stop.
3. A connection is reused only if both messages are complete and no other data has arrived.
   Otherwise it is closed: no bytes of one response can be mistaken for the next one's.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Final

import h11
import trio

from mcp_core import ConnectFailed, ConnectionLost
from mcp_core.adapters import H11ResponseReader
from mcp_core.http import (
    MAX_ERROR_BODY,
    Body,
    End,
    Head,
    require_http,
    response_error,
    without_quoted_bytes,
)
from mcp_core.runtime import READ_SIZE
from mcp_trio._nursery import open_quiet_nursery

if TYPE_CHECKING:
    from mcp_core.http import Action, Headers, RequestHead
    from mcp_core.runtime import OnActions

__all__ = [
    "H11ClientConnection",
    "has_input",
    "open_tunnel",
    "request_upgrade",
]

# Bytes that a socket roughly accepts before the server reads. A request up to this size is written
# before the response is read.
_ONE_WRITE: Final = 65_536
_CLOSE_TIMEOUT: Final = 1.0  # seconds
_BROKEN: Final = (trio.BrokenResourceError, trio.ClosedResourceError)
_SWITCHING_PROTOCOLS: Final = 101
_FIRST_ERROR_STATUS: Final = 400


class H11ClientConnection:
    """A client connection on `stream`, which `aclose` closes. Await one `run` at a time.

    `response_count` is the number of complete responses. `received` is True if any byte of the
    last response has arrived.
    """

    protocol = "HTTP/1.1"
    capacity = 1  # requests at a time

    def __init__(self, stream: trio.abc.Stream) -> None:
        self.response_count = 0
        self.received = False
        self._stream = stream
        self._socket = _socket_of(stream)
        self._http = H11ResponseReader()
        self._sent: bool  # whether the request was written as a whole
        self._problem: ConnectionLost | None = None

    def __repr__(self) -> str:
        return f"<H11ClientConnection {self._http.our_state}, {self.response_count} responses>"

    async def run(self, head: RequestHead, body: bytes, on_actions: OnActions) -> bool:
        """Send a request, and pass its response to `on_actions` in pieces, until `End`.

        If `on_actions` returns an event, nothing more is read before it is set.

        Returns:
            True if the connection may be used again.

        Raises:
            ConnectionLost: the response is incomplete. What has arrived was passed to `on_actions`.
            ValueError: the request is invalid in HTTP; nothing was sent.
        """
        data = self._encode(head, body)
        self.received = False
        self._sent = False
        is_long = len(data) > _ONE_WRITE
        async with open_quiet_nursery() if is_long else nullcontext() as nursery:
            if nursery is not None:
                nursery.start_soon(self._send, data)
            else:
                try:
                    await self._stream.send_all(data)
                    self._sent = True
                except _BROKEN:
                    pass  # as in `_send`
            # Nothing is left of an earlier response, so this begins with reading (rule 3).
            while True:
                try:
                    data = bytes(await self._stream.receive_some(READ_SIZE))
                except _BROKEN:
                    data = b""
                actions = self._decode(data)
                if actions:
                    resumed = on_actions(actions)
                    if type(actions[-1]) is End:
                        break
                    if resumed is not None:
                        await resumed.wait()
                if self._problem is not None:
                    raise self._problem
        self.response_count += 1
        # Prepare for another request, if the connection need not be closed (rule 3).
        http = self._http
        done = http.their_state is h11.DONE  # then so is ours: the request was encoded before
        if not (done and self._sent) or http.trailing_data[0]:
            return False
        http.start_next_cycle()
        return True

    def server_closed(self) -> bool:
        """Return True if an idle connection has something to read: that can only be its end.

        Known for sockets only; False for other streams.
        """
        return self._socket is not None and self._socket.is_readable()

    async def aclose(self) -> None:
        """Close the stream. It takes at most a second, and when cancelled it is closed at once."""
        with trio.move_on_after(_CLOSE_TIMEOUT):
            await self._stream.aclose()

    def _encode(self, head: RequestHead, body: bytes) -> bytes:
        http = self._http
        headers = head.headers
        if body:
            headers = [*headers, (b"content-length", b"%d" % len(body))]
        try:
            data = http.send(h11.Request(method=head.method, target=head.target, headers=headers))
            if body:
                data = (data or b"") + (http.send(h11.Data(data=body)) or b"")
            return (data or b"") + (http.send(h11.EndOfMessage()) or b"")
        except h11.LocalProtocolError as exc:
            raise ValueError(f"the request cannot be written as HTTP/1.1: {exc}") from None

    async def _send(self, data: bytes) -> None:
        try:
            await self._stream.send_all(data)
        except _BROKEN:
            return  # the server may have sent a response before it closed; `_receive` reads it
        self._sent = True

    def _decode(self, data: bytes) -> list[Action]:
        """Return what has arrived of the response with `data`, `b""` for the end of the stream.

        An error sets `_problem` and ends the response.

        Raises:
            ConnectionLost: the first bytes don't begin a response.
        """
        if data and not self.received:
            self.received = True
            if not data.startswith(b"HTTP/"):
                require_http(data)
        http = self._http
        http.receive_data(data)
        actions: list[Action] = []
        try:
            while True:
                event = http.next_event()
                if event is h11.NEED_DATA:
                    return actions
                if type(event) is h11.Data:
                    actions.append(Body(bytes(event.data)))
                elif type(event) is h11.Response:
                    actions.append(Head(event.status_code, list(event.headers)))
                elif type(event) is h11.EndOfMessage:
                    actions.append(End())
                    return actions
                # Other events are interim responses (1xx), which are ignored.
        except h11.RemoteProtocolError as exc:
            self._problem = response_error(exc, received=self.received, ended=not data)
            return actions


def has_input(stream: trio.abc.Stream) -> bool:
    """Return True if a socket has something to read, perhaps its end. False for other streams."""
    socket = _socket_of(stream)
    return socket is not None and socket.is_readable()


def _socket_of(stream: trio.abc.Stream) -> trio.socket.SocketType | None:
    """Return the socket below a stream, None if it has none."""
    while isinstance(stream, trio.SSLStream):
        stream = stream.transport_stream
    return stream.socket if isinstance(stream, trio.SocketStream) else None


async def open_tunnel(stream: trio.abc.Stream, authority: str, headers: Headers) -> None:
    """Ask the proxy on `stream` for a tunnel to `authority`, that is `host:port` (CONNECT).

    Raises:
        ConnectFailed: the proxy did not open the tunnel. Close the stream.
    """
    http = H11ResponseReader()
    host = (b"host", authority.encode("ascii"))
    request = h11.Request(method=b"CONNECT", target=host[1], headers=[host, *headers])
    data = http.send(request)
    end = http.send(h11.EndOfMessage())
    try:
        await stream.send_all((data or b"") + (end or b""))
        while type(event := http.next_event()) is not h11.Response:
            if event is h11.NEED_DATA:
                data = bytes(await stream.receive_some(READ_SIZE))
                if not data:
                    raise ConnectFailed("it closed the connection")
                http.receive_data(data)
    except (trio.BrokenResourceError, trio.ClosedResourceError):
        raise ConnectFailed("it closed the connection") from None
    except h11.RemoteProtocolError as exc:
        reason = without_quoted_bytes(exc)
        raise ConnectFailed(f"its answer is not HTTP/1.1: {reason}") from None
    if not 200 <= event.status_code < 300:
        phrase = bytes(event.reason).decode("latin-1")
        raise ConnectFailed(f"it answered {event.status_code} {phrase}".rstrip())
    if http.trailing_data[0]:
        raise ConnectFailed("it sent data right after its answer")


async def request_upgrade(stream: trio.abc.Stream, head: RequestHead) -> tuple[Head, bytes]:
    """Send an upgrade request, and return the head of its response with the bytes that follow.

    After status 101 these are bytes of the new protocol. After an error status they are the body,
    up to 64 KiB.

    Raises:
        ConnectFailed: there was no valid response.
    """
    http = H11ResponseReader()
    data = http.send(h11.Request(method=head.method, target=head.target, headers=head.headers))
    end = http.send(h11.EndOfMessage())
    response: Head | None = None
    body = b""
    started = False
    try:
        await stream.send_all((data or b"") + (end or b""))
        while len(body) < MAX_ERROR_BODY:
            event = http.next_event()
            if event is h11.NEED_DATA:
                data = bytes(await stream.receive_some(READ_SIZE))
                if not data and response is None:
                    raise ConnectFailed("the server closed the connection without an answer")
                if not started:
                    require_http(data, "wss")
                    started = True
                http.receive_data(data)
            elif (
                isinstance(event, h11.InformationalResponse)
                and event.status_code == _SWITCHING_PROTOCOLS
            ):
                return Head(_SWITCHING_PROTOCOLS, list(event.headers)), http.trailing_data[0]
            elif isinstance(event, h11.Response):
                response = Head(event.status_code, list(event.headers))
                if response.status < _FIRST_ERROR_STATUS:
                    break  # the body isn't an error message, and it may never end
            elif isinstance(event, h11.Data):
                body += event.data
            elif not isinstance(event, h11.InformationalResponse):
                break
    except (trio.BrokenResourceError, trio.ClosedResourceError):
        if response is None:
            raise ConnectFailed("the server closed the connection without an answer") from None
    except ConnectionLost as exc:
        raise ConnectFailed(str(exc)) from None
    except h11.RemoteProtocolError as exc:
        if response is None:
            reason = without_quoted_bytes(exc)
            raise ConnectFailed(f"the server's answer is not HTTP/1.1: {reason}") from None
    assert response is not None
    return response, body
