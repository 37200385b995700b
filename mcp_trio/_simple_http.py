"""One connection of a simple HTTP/1.1 server, which reads and answers one request after the other.

It is for logins and tools. MCP servers are served by `mcp_trio.http_server`, which costs less per
request, also speaks HTTP/2, and rejects every head that another program could read differently.

1. h11 reads requests and writes responses. `send_bytes` sends odd bytes on purpose.
2. Everything that is read or written has a limit and a deadline. After an error the connection
   can't be used for another request.
"""

from __future__ import annotations

from contextlib import suppress
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

import h11
import trio
from msgspec import Struct

from mcp_core.http import Body, Head, RequestHead
from mcp_core.runtime import READ_SIZE

if TYPE_CHECKING:
    from mcp_core.http import Action

__all__ = ["SimpleHttpConnection", "SimpleHttpLimits", "UnreadableRequest"]

_PHRASES: Final = {int(status): status.phrase.encode() for status in HTTPStatus}
_CONTINUE: Final = h11.InformationalResponse(status_code=100, headers=[])


class SimpleHttpLimits(Struct, frozen=True, kw_only=True):
    """The limits of a connection.

    Attributes:
        head: bytes of a request's head.
        body: bytes of a request's body.
        head_seconds: for the next request to arrive, up to the end of its head.
        body_seconds: for a request's whole body.
        write_seconds: for the client to read a part of a response.
    """

    head: int = 64 * 1024
    body: int = 0
    head_seconds: float
    body_seconds: float = 0
    write_seconds: float


class UnreadableRequest(Exception):
    """A request that can't be read. `status` is the response's, if the server sends one."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


class SimpleHttpConnection:
    """A client's connection `stream` with its `limits`. The caller closes the stream.

    `next_head` returns a request's head. Call `read_body` if the request may have a body, then
    `send`, then `next_head` again.
    """

    def __init__(self, stream: trio.abc.Stream, limits: SimpleHttpLimits) -> None:
        self._stream = stream
        self._limits = limits
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=limits.head)
        self._has_failed = False
        self._is_head = False  # the request is HEAD: the response has no body

    def __repr__(self) -> str:
        return f"<SimpleHttpConnection {self._http.our_state}>"

    @property
    def http_version(self) -> str:
        """The version that the last request had, such as `1.1`."""
        return (self._http.their_http_version or b"1.1").decode()

    async def next_head(self) -> RequestHead | None:
        """Return the next request's head.

        None if there is none: the client has disconnected or is idle, or the last exchange allows
        no other one.

        Raises:
            UnreadableRequest: it isn't HTTP, or is too long.
        """
        http = self._http
        if self._has_failed:
            return None
        event: object = None
        try:
            if http.their_state is h11.SEND_BODY:
                http.next_event()  # the end of a request whose body was not read: it has none
            if http.our_state is not h11.IDLE:
                if http.our_state is not h11.DONE or http.their_state is not h11.DONE:
                    return None
                http.start_next_cycle()
            with trio.move_on_after(self._limits.head_seconds):
                event = await self._next_event()
        except h11.RemoteProtocolError as exc:
            raise self._unreadable(exc.error_status_hint, str(exc)) from None
        except trio.BrokenResourceError:
            return None
        if not isinstance(event, h11.Request):
            return None
        self._is_head = event.method == b"HEAD"
        return RequestHead(bytes(event.method), bytes(event.target), list(event.headers))

    async def read_body(self) -> bytes:
        """Return the request's body. A client that waits for "100 Continue" gets it.

        Raises:
            UnreadableRequest: the body is malformed, too long, too slow or incomplete.
            trio.BrokenResourceError: the client has disconnected.
            trio.TooSlowError: the client reads too slowly.
        """
        http = self._http
        if http.they_are_waiting_for_100_continue:
            await self.send_bytes(http.send(_CONTINUE) or b"")
        body = bytearray()
        with trio.move_on_after(self._limits.body_seconds):
            try:
                while isinstance(event := await self._next_event(), h11.Data):
                    body += event.data
                    if len(body) > self._limits.body:
                        raise self._unreadable(413, "the body is too large")
            except h11.RemoteProtocolError as exc:
                raise self._unreadable(exc.error_status_hint, str(exc)) from None
            return bytes(body)
        raise self._unreadable(408, "the body took too long")

    async def send(self, *actions: Action) -> None:
        """Send parts of a response, in one write. Without a `content-length` it is chunked.

        The response to HEAD is sent without its body.

        Raises:
            h11.LocalProtocolError: they aren't a valid response to the request. Nothing was sent.
            trio.BrokenResourceError: the client has disconnected.
            trio.TooSlowError: the client reads too slowly.
        """
        parts: list[bytes] = []
        for action in actions:
            event: h11.Event = h11.EndOfMessage()
            if isinstance(action, Head):
                reason = _PHRASES.get(action.status, b"")
                event = h11.Response(
                    status_code=action.status, headers=action.headers, reason=reason
                )
            elif isinstance(action, Body):
                if self._is_head:
                    continue
                event = h11.Data(data=action.data)
            parts.append(self._http.send(event) or b"")
        await self.send_bytes(b"".join(parts))

    async def send_bytes(self, data: bytes) -> None:
        """Send bytes as they are, without h11.

        Raises:
            trio.BrokenResourceError: the client has disconnected.
            trio.TooSlowError: the client reads too slowly.
        """
        with trio.fail_after(self._limits.write_seconds):
            await self._stream.send_all(data)

    async def wait_for_disconnect(self) -> None:
        """Return when the client disconnects, or sends more than a head's bytes ahead.

        What it sends is kept for `next_head`. May be cancelled, and run while another task sends.
        """
        early = 0
        with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
            while early <= self._limits.head and (
                data := await self._stream.receive_some(READ_SIZE)
            ):
                early += len(data)
                self._http.receive_data(bytes(data))

    def _unreadable(self, status: int, why: str) -> UnreadableRequest:
        self._has_failed = True
        return UnreadableRequest(status, why)

    async def _next_event(self) -> object:
        http = self._http
        while (event := http.next_event()) is h11.NEED_DATA:
            http.receive_data(bytes(await self._stream.receive_some(READ_SIZE)))
        return event
