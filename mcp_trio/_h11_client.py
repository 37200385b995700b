"""One HTTP/1.1 connection to a server: a request goes out, its response comes in, and then perhaps the next one.

Rules of this file:

1. A request is one write. While a long one is written the response is read, since a server may refuse it without reading on.
2. What comes is handed on as it comes and nothing is kept. Only what a response begins with has its limit here; whether its
   body is too long, or takes too long, is decided by whoever gets the pieces, and who cancels `run` ends it.
3. A connection is used again only if both sides have said all that they had to and nothing else has arrived. In all other cases
   it is closed: nothing that was meant for one call can be taken for the answer to another.

It does not know what the messages mean, how many connections there are, nor how one comes about.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import h11
import trio

from mcp_core import ConnectFailed, ConnectionLost
from mcp_core.http import Body, End, Head

from ._nursery import open_quiet_nursery

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_core.http import Action, Headers, RequestHead

__all__ = ["H11Client", "ask_to_switch", "open_tunnel"]

_READ_SIZE: Final = 65_536
_LONGEST_HEAD: Final = 65_536
_AT_ONCE: Final = 65_536  # what a socket takes without waiting for the server to read, more or less
_LAST_WRITE: Final = 1.0
_VERSION: Final = b"HTTP/"
_TLS_ALERT: Final = b"\x15\x03"
_SWITCHING: Final = 101
_REFUSALS: Final = 400  # and above


class H11Client:
    """One connection over `stream`, which it closes in `aclose`. One `run` at a time.

    `used` is how many responses came to their end, `heard` whether anything has come of the last.
    """

    protocol = "HTTP/1.1"
    room = 1  # requests at a time

    def __init__(self, stream: trio.abc.Stream) -> None:
        self.used = 0
        self.heard = False
        self._stream = stream
        self._http = h11.Connection(h11.CLIENT, max_incomplete_event_size=_LONGEST_HEAD)
        self._sent = False
        self._ended = False  # the server has nothing more to say
        self._problem: ConnectionLost | None = None

    def __repr__(self) -> str:
        return f"<H11Client {self._http.our_state}, {self.used} responses>"

    async def run(self, head: RequestHead, body: bytes, take: Callable[[list[Action]], None]) -> bool:
        """Send a request and give `take` what comes of the response, in pieces, until `End`.

        Returns:
            whether the connection may be used again.

        Raises:
            ConnectionLost: the response did not come to its end. What came of it was taken.
            ValueError: the request cannot be said in HTTP; nothing was sent.
        """
        data = self._encode(head, body)
        self.heard = False
        if len(data) <= _AT_ONCE:
            await self._send(data)
            await self._receive(take)
        else:
            async with open_quiet_nursery() as nursery:
                nursery.start_soon(self._send, data)
                await self._receive(take)
        self.used += 1
        return self._begin_anew()

    def closed_by_server(self) -> bool:
        """Whether a connection on which nothing is under way has something to read: that can only be its end. Sockets only."""
        stream = self._stream
        while isinstance(stream, trio.SSLStream):
            stream = stream.transport_stream
        return isinstance(stream, trio.SocketStream) and stream.socket.is_readable()

    async def aclose(self) -> None:
        """Close the stream. This waits for a second at most, and not at all if cancelled; the stream is closed anyway."""
        with trio.move_on_after(_LAST_WRITE):
            await self._stream.aclose()

    def _encode(self, head: RequestHead, body: bytes) -> bytes:
        http = self._http
        headers = head.headers
        if body:
            headers = [*headers, (b"content-length", b"%d" % len(body))]
        try:
            parts = [http.send(h11.Request(method=head.method, target=head.target, headers=headers))]
            if body:
                parts.append(http.send(h11.Data(data=body)))
            parts.append(http.send(h11.EndOfMessage()))
        except h11.LocalProtocolError as exc:
            raise ValueError(f"the request cannot be said in HTTP: {exc}") from None
        return b"".join(part for part in parts if part)

    async def _send(self, data: bytes) -> None:
        self._sent = False
        try:
            await self._stream.send_all(data)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            return  # the server may have said why before it hung up: whoever reads will see
        self._sent = True

    async def _receive(self, take: Callable[[list[Action]], None]) -> None:
        while True:
            actions = self._decode()
            if actions:
                take(actions)
                if type(actions[-1]) is End:
                    return
            if self._problem is not None:
                raise self._problem
            try:
                data = bytes(await self._stream.receive_some(_READ_SIZE))
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                data = b""
            self._ended = not data
            if data and not self.heard:
                self.heard = True
                _require_http(data)
            self._http.receive_data(data)

    def _decode(self) -> list[Action]:
        """What has arrived of the response; up to what is wrong with it, if anything is."""
        http = self._http
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
                # What is left are interim responses, which say nothing that matters here.
        except h11.RemoteProtocolError as exc:
            self._problem = ConnectionLost(self._what_is_wrong(exc))
            return actions

    def _what_is_wrong(self, exc: h11.RemoteProtocolError) -> str:
        if not self._ended:
            return f"the server's answer is no HTTP/1.1: {_without_quotes(exc)}"
        if not self.heard:
            return "the server closed the connection without an answer"
        return "the server closed the connection in the middle of its answer"

    def _begin_anew(self) -> bool:
        http = self._http
        done = http.our_state is h11.DONE and http.their_state is h11.DONE
        if not (done and self._sent) or http.trailing_data[0]:
            return False
        http.start_next_cycle()
        return True


def _without_quotes(exc: h11.RemoteProtocolError) -> str:
    """What follows the colon is what the server wrote, which may be what it was sent: a token for one."""
    return str(exc).partition(":")[0]


def _require_http(beginning: bytes, scheme: str = "https") -> None:
    """Who speaks something else may say a few words and wait, so that h11 would wait for the rest of a line.
    `scheme` is that of addresses where there is TLS.

    Raises:
        ConnectionLost: no response begins like this.
    """
    if beginning.startswith(_TLS_ALERT):
        raise ConnectionLost(f"the server speaks TLS; is its address {scheme}:// instead?")
    if not beginning.startswith(_VERSION[: len(beginning)]):
        raise ConnectionLost("the server's answer is no HTTP/1.1; is something else listening there?")


async def open_tunnel(stream: trio.abc.Stream, authority: str, headers: Headers) -> None:
    """Have the proxy at the other end of `stream` connect to `authority`, `host:port`. From then on the stream leads there.

    Raises:
        ConnectFailed: it does not.
    """
    http = h11.Connection(h11.CLIENT, max_incomplete_event_size=_LONGEST_HEAD)
    host = (b"host", authority.encode("ascii"))
    request = h11.Request(method=b"CONNECT", target=host[1], headers=[host, *headers])
    data = http.send(request)
    end = http.send(h11.EndOfMessage())
    try:
        await stream.send_all((data or b"") + (end or b""))
        while type(event := http.next_event()) is not h11.Response:
            if event is h11.NEED_DATA:
                data = bytes(await stream.receive_some(_READ_SIZE))
                if not data:
                    raise ConnectFailed("it closed the connection")
                http.receive_data(data)
    except (trio.BrokenResourceError, trio.ClosedResourceError):
        raise ConnectFailed("it closed the connection") from None
    except h11.RemoteProtocolError as exc:
        raise ConnectFailed(f"its answer is no HTTP/1.1: {exc}") from None
    if not 200 <= event.status_code < 300:
        reason = bytes(event.reason).decode("latin-1")
        raise ConnectFailed(f"it answered {event.status_code} {reason}".rstrip())
    if http.trailing_data[0]:
        raise ConnectFailed("it spoke before it was spoken to")


async def ask_to_switch(stream: trio.abc.Stream, head: RequestHead) -> tuple[Head, bytes]:
    """Send a request that asks for another protocol; gives the head of the answer, and what has come behind it: of that protocol if the
    status is 101, else of a body, as far as it is short.

    Raises:
        ConnectFailed: there is no answer.
    """
    http = h11.Connection(h11.CLIENT, max_incomplete_event_size=_LONGEST_HEAD)
    data = http.send(h11.Request(method=head.method, target=head.target, headers=head.headers))
    end = http.send(h11.EndOfMessage())
    answer: Head | None = None
    body, begun = b"", False
    try:
        await stream.send_all((data or b"") + (end or b""))
        while len(body) < _LONGEST_HEAD:
            event = http.next_event()
            if event is h11.NEED_DATA:
                data = bytes(await stream.receive_some(_READ_SIZE))
                if not data and answer is None:
                    raise ConnectFailed("the server closed the connection without an answer")
                if not begun:
                    _require_http(data, "wss")
                    begun = True
                http.receive_data(data)
            elif isinstance(event, h11.InformationalResponse) and event.status_code == _SWITCHING:
                return Head(_SWITCHING, list(event.headers)), http.trailing_data[0]
            elif isinstance(event, h11.Response):
                answer = Head(event.status_code, list(event.headers))
                if answer.status < _REFUSALS:
                    break  # what comes is no explanation, and may never end
            elif isinstance(event, h11.Data):
                body += event.data
            elif not isinstance(event, h11.InformationalResponse):
                break
    except (trio.BrokenResourceError, trio.ClosedResourceError):
        if answer is None:
            raise ConnectFailed("the server closed the connection without an answer") from None
    except ConnectionLost as exc:
        raise ConnectFailed(str(exc)) from None
    except h11.RemoteProtocolError as exc:
        if answer is None:
            raise ConnectFailed(f"the server's answer is no HTTP/1.1: {_without_quotes(exc)}") from None
    assert answer is not None
    return answer, body
