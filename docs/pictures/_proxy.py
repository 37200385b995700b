"""Record what passes between a client and a server over HTTP.

`HttpProxy` passes bytes unchanged, and records the requests and responses in them, the events of
event streams, and the messages of WebSockets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

import h11
import trio
from wsproto import ConnectionType
from wsproto.connection import Connection as WebSocketParser
from wsproto.events import CloseConnection, TextMessage

from ._recorder import CLIENT, SERVER, STREAM_ENDS, Step, describe, message_step

if TYPE_CHECKING:
    from wsproto.events import Event

    from ._recorder import Recorder

__all__ = ["HttpProxy"]

# What a diagram shows of a head.
_SHOWN_HEADERS: Final = ("Mcp-Session-Id", "Mcp-Method", "Mcp-Name")
_REJECTION: Final = b"HTTP/1.1 405 Method Not Allowed\r\nAllow: GET\r\nContent-Length: 0\r\n\r\n"


class HttpProxy:
    """A proxy of one server that records what passes through it.

    Args:
        recorder: gets the steps.
        port: the server's port, on this machine.
        rejected: the path at which no POST is allowed, as at a server that has HTTP+SSE only.
    """

    def __init__(self, recorder: Recorder, port: int, rejected: str = "") -> None:
        self._recorder = recorder
        self._port = port
        self._rejected = f"POST {rejected} HTTP/1.1\r\n".encode()

    async def serve(self, task_status: trio.TaskStatus[int] = trio.TASK_STATUS_IGNORED) -> None:
        """Serve at a free port of this machine, until cancelled."""
        async with trio.open_nursery() as nursery:
            listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
            nursery.start_soon(trio.serve_listeners, self._serve_client, listeners)
            task_status.started(listeners[0].socket.getsockname()[1])

    async def _serve_client(self, client: trio.SocketStream) -> None:
        server = await trio.open_tcp_stream("127.0.0.1", self._port)
        parser = _HttpParser(self._recorder)

        async def pass_requests(ended: trio.CancelScope) -> None:
            async for data in client:
                parser.sent(bytes(data))
                if data.startswith(self._rejected):
                    parser.received(_REJECTION)
                    await client.send_all(_REJECTION)
                else:
                    await server.send_all(data)
            ended.cancel()

        try:
            async with client, server, trio.open_nursery() as nursery:
                nursery.start_soon(pass_requests, nursery.cancel_scope)
                async for data in server:
                    parser.received(bytes(data))
                    await client.send_all(data)
                nursery.cancel_scope.cancel()
        except* trio.BrokenResourceError:
            pass  # one end has closed while the other was sending
        parser.closed()


class _HttpParser:
    """The bytes of one HTTP/1.1 connection in both directions, and the steps in them."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._requests = h11.Connection(h11.SERVER)
        self._responses = h11.Connection(h11.CLIENT)
        self._request: h11.Request | None = None
        self._response: h11.Response | None = None
        self._sent = b""
        self._body = b""
        self._stream = 0
        self._frames: dict[str, WebSocketParser] = {}

    def sent(self, data: bytes) -> None:
        """Parse bytes of the client."""
        if self._frames:
            self._messages(CLIENT, SERVER, data)
            return
        self._requests.receive_data(data)
        while True:
            event = self._requests.next_event()
            if not isinstance(event, h11.Request | h11.Data | h11.EndOfMessage):
                return
            self._responses.send(event)
            if isinstance(event, h11.Request):
                self._request, self._sent = event, b""
            elif isinstance(event, h11.Data):
                self._sent += event.data
            else:
                self._recorder.request_begins()

    def received(self, data: bytes) -> None:
        """Parse bytes of the server."""
        if self._frames:
            self._messages(SERVER, CLIENT, data)
            return
        self._responses.receive_data(data)
        while True:
            event = self._responses.next_event()
            if isinstance(event, h11.InformationalResponse):
                self._upgraded(event)
                return
            if not isinstance(event, h11.Response | h11.Data | h11.EndOfMessage):
                return
            self._requests.send(event)
            if isinstance(event, h11.Response):
                self._response, self._body = event, b""
                if dict(event.headers).get(b"content-type", b"").startswith(b"text/event-stream"):
                    self._stream_begins()
            elif isinstance(event, h11.Data):
                self._body += event.data
                if self._stream:
                    self._events()
            else:
                self._response_ends()

    def closed(self) -> None:
        """Note the end of a stream whose connection has ended."""
        if self._stream:
            self._stream_ends()

    def _upgraded(self, response: h11.InformationalResponse) -> None:
        self._recorder.request_ends(
            self._request_step(), Step("response", SERVER, CLIENT, "101 Switching Protocols")
        )
        self._frames = {
            CLIENT: WebSocketParser(ConnectionType.SERVER),
            SERVER: WebSocketParser(ConnectionType.CLIENT),
        }
        trailing, _ = self._responses.trailing_data
        if trailing:
            self._messages(SERVER, CLIENT, trailing)

    def _messages(self, source: str, target: str, data: bytes) -> None:
        frames = self._frames[source]
        frames.receive_data(data)
        event: Event
        for event in frames.events():
            if isinstance(event, TextMessage):
                # Messages here are short: none has several frames.
                message = event.data.encode()
                self._recorder.add(message_step(source, message))
            elif isinstance(event, CloseConnection):
                kind: Literal["request", "response"] = "request" if source == CLIENT else "response"
                self._recorder.add(Step(kind, source, target, f"Close {int(event.code)}"))

    def _request_step(self) -> Step:
        assert self._request is not None
        words = self._request.method.decode()
        if self._sent:
            words += f" {describe(self._sent)[0]}"
        upgrade = dict(self._request.headers).get(b"upgrade", b"").decode()
        detail = f"Upgrade: {upgrade}" if upgrade else shown_headers(self._request)
        return Step("request", CLIENT, SERVER, words, detail)

    def _status(self) -> str:
        assert self._response is not None
        return f"{self._response.status_code} {bytes(self._response.reason).decode()}".strip()

    def _stream_begins(self) -> None:
        self._recorder.streams += 1
        self._stream = self._recorder.streams
        head = Step("open", SERVER, CLIENT, f"{self._status()}, event stream", "", self._stream)
        self._recorder.request_ends(self._request_step(), head)

    def _events(self) -> None:
        *complete, self._body = self._body.replace(b"\r\n", b"\n").split(b"\n\n")
        for event in complete:
            fields = dict(line.partition(b": ")[::2] for line in event.split(b"\n"))
            data = fields.get(b"data", b"")
            if data.startswith(b"{"):
                text, _ = describe(data)
            elif data:
                text = f"event: {fields[b'event'].decode()}"
            else:
                continue  # a comment, or the priming event
            self._recorder.stream_event(Step("event", SERVER, CLIENT, text, "", self._stream))

    def _stream_ends(self) -> None:
        self._recorder.stream_event(Step("end", SERVER, CLIENT, STREAM_ENDS, "", self._stream))
        self._stream = 0

    def _response_ends(self) -> None:
        if self._stream:
            self._stream_ends()
        else:
            words, detail = self._status(), ""
            if self._body.startswith(b"{"):
                words += f", {describe(self._body)[0]}"
            if self._response is not None and b"initialize" in self._sent:
                detail = shown_headers(self._response)
            response = Step("response", SERVER, CLIENT, words, detail)
            self._recorder.request_ends(self._request_step(), response)
        if self._requests.our_state is self._requests.their_state is h11.DONE:
            self._requests.start_next_cycle()
            self._responses.start_next_cycle()


def shown_headers(head: h11.Request | h11.Response) -> str:
    """Return the names of the headers that a diagram shows."""
    present = dict(head.headers)
    return ", ".join(name for name in _SHOWN_HEADERS if name.lower().encode() in present)
