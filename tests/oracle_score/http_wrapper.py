"""Mutants over HTTP: one right server in memory, with an operator before all of its connections."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import h11
import trio
from msgspec import Struct, field
from trio.testing import memory_stream_pair

from mcp_core.http import HttpOptions
from mcp_trio.http_server._serve import serve_http_listeners
from mcp_trio.oracle.fuzz._http import UrlTarget

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mcp_core.registry import Server
    from tests.oracle_score.operators import MutantPlace

__all__ = ["HttpExchange", "HttpMutantTarget", "HttpOperator", "HttpReply"]

Json = dict[str, Any]
URL: Final = "http://127.0.0.1:1/mcp"
_HOP_BY_HOP: Final = frozenset({b"content-length", b"transfer-encoding", b"connection"})


class HttpReply(Struct):
    """The head of a response, and its body unless it is streamed."""

    status: int
    headers: list[tuple[bytes, bytes]] = field(default_factory=list)
    body: bytes | None = None

    def set(self, name: bytes, value: bytes | None) -> None:
        """Set a header, or remove it."""
        self.headers = [each for each in self.headers if each[0] != name]
        if value is not None:
            self.headers.append((name, value))

    def get(self, name: bytes) -> bytes:
        """Return a header's value, or b""."""
        return next((value for key, value in self.headers if key == name), b"")


class HttpExchange(Struct):
    """A request, which operators may change before it is forwarded.

    Attributes:
        method, target: of its first line.
        headers: with names in lower case.
        body: its body.
        message: the message in its body, or an empty one.
        is_streamed: the response is a stream of events.
    """

    method: bytes
    target: bytes
    headers: list[tuple[bytes, bytes]]
    body: bytes
    message: Json = field(default_factory=dict)
    is_streamed: bool = False

    def set(self, name: bytes, value: bytes | None) -> None:
        """Set a header, or remove it."""
        self.headers = [each for each in self.headers if each[0] != name]
        if value is not None:
            self.headers.append((name, value))

    def get(self, name: bytes) -> bytes:
        """Return a header's value, or b""."""
        return next((value for key, value in self.headers if key == name), b"")

    @property
    def rpc_method(self) -> str:
        """The method of its message, or ""."""
        found = self.message.get("method")
        return found if isinstance(found, str) else ""


class HttpOperator:
    """Changes what passes between a server and its clients over HTTP. There is one for a server.

    Attributes:
        place: the name of the place in the operator's table.
        kept: what it keeps.
    """

    def __init__(self, place: str) -> None:
        self.place = place
        self.kept: Json = {}

    def ask(self, exchange: HttpExchange) -> HttpReply | None:
        """Change a request, or answer it here."""
        return None

    def reply(self, exchange: HttpExchange, reply: HttpReply) -> None:
        """Change the head of a response."""

    def messages(self, exchange: HttpExchange, message: Json) -> Iterator[Json]:
        """Yield what the client gets for a message in a response."""
        yield message

    def pass_event(self, exchange: HttpExchange, block: bytes) -> None:
        """See an event of a stream, which the client gets."""

    def ends_early(self, exchange: HttpExchange) -> bool:
        """Return True to end a stream before its first message."""
        return False


class RelayListener(trio.abc.Listener[Any]):
    """A listener whose connections are made in memory."""

    def __init__(self) -> None:
        self._send, self._receive = trio.open_memory_channel[Any](100)

    async def connect(self) -> Any:
        """Return the client's end of another connection."""
        ours, theirs = memory_stream_pair()
        await self._send.send(theirs)
        return ours

    async def accept(self) -> Any:
        """Return the server's end of the next connection."""
        return await self._receive.receive()

    async def aclose(self) -> None:
        """Accept no more connections."""
        self._receive.close()


class HttpMutantTarget(UrlTarget):
    """A server over HTTP, broken at a place, as a URL."""

    def __init__(self, server: Server, place: MutantPlace | None, nursery: trio.Nursery) -> None:
        super().__init__(URL, nursery)
        self.starts = 0
        self._listener = RelayListener()
        self._operator = HttpOperator("") if place is None else place.operator.make(place.name)
        self._mutants = nursery
        self._connector = self  # type: ignore[assignment]
        options = HttpOptions.of("127.0.0.1")
        nursery.start_soon(self._serve, server, options)

    async def _serve(self, server: Server, options: HttpOptions) -> None:
        await serve_http_listeners([self._listener], {"/mcp": server}, options, routes={})

    async def connect_stream(self) -> trio.abc.Stream:
        """Return a connection to the mutant."""
        ours, theirs = memory_stream_pair()
        self._mutants.start_soon(self._relay, theirs)
        await trio.lowlevel.checkpoint()
        return ours

    async def _relay(self, stream: Any) -> None:
        relay = _Relay(stream, self._listener, self._operator)
        async with stream:
            with suppress(
                trio.BrokenResourceError, trio.ClosedResourceError, h11.LocalProtocolError
            ):
                await relay.run()


class _Relay:
    """One connection of a client, and a connection to the server for each of its requests."""

    def __init__(self, stream: Any, listener: RelayListener, operator: HttpOperator) -> None:
        self._stream = stream
        self._listener = listener
        self._operator = operator
        self._h11 = h11.Connection(h11.SERVER)

    async def run(self) -> None:
        while True:
            try:
                exchange = await self._read_request()
            except h11.RemoteProtocolError as exc:
                await self._answer(HttpReply(exc.error_status_hint, [], b""))
                return
            if exchange is None:
                return
            found = self._operator.ask(exchange)
            if found is not None:
                await self._answer(found)
            else:
                await self._forward(exchange)
            if self._h11.our_state is not h11.DONE:
                return
            self._h11.start_next_cycle()

    async def _read_request(self) -> HttpExchange | None:
        request: h11.Request | None = None
        body = b""
        while True:
            event = self._h11.next_event()
            if event is h11.NEED_DATA:
                if self._h11.they_are_waiting_for_100_continue:
                    return None
                self._h11.receive_data(bytes(await self._stream.receive_some()))
            elif isinstance(event, h11.Request):
                request = event
            elif isinstance(event, h11.Data):
                body += event.data
            elif isinstance(event, h11.EndOfMessage) and request is not None:
                headers = [(bytes(name), bytes(value)) for name, value in request.headers]
                message = _decode(body)
                return HttpExchange(
                    bytes(request.method), bytes(request.target), headers, body, message
                )
            else:
                return None

    async def _forward(self, exchange: HttpExchange) -> None:
        upstream = await self._listener.connect()
        connection = h11.Connection(h11.CLIENT, max_incomplete_event_size=1 << 20)
        headers = [each for each in exchange.headers if each[0] not in _HOP_BY_HOP]
        headers += [(b"content-length", b"%d" % len(exchange.body)), (b"connection", b"close")]
        async with upstream, trio.open_nursery() as nursery:
            nursery.start_soon(self._watch, nursery)
            head = h11.Request(method=exchange.method, target=exchange.target, headers=headers)
            data = (connection.send(head) or b"") + (
                connection.send(h11.Data(data=exchange.body)) or b""
            )
            await upstream.send_all(data + (connection.send(h11.EndOfMessage()) or b""))
            await self._pass_response(exchange, connection, upstream)
            nursery.cancel_scope.cancel()

    async def _watch(self, nursery: trio.Nursery) -> None:
        """Close the server's connection if the client closes its own."""
        while data := bytes(await self._stream.receive_some()):
            self._h11.receive_data(data)
        nursery.cancel_scope.cancel()

    async def _pass_response(
        self, exchange: HttpExchange, connection: h11.Connection, upstream: Any
    ) -> None:
        reply: HttpReply | None = None
        body = b""
        while True:
            event = connection.next_event()
            if event is h11.NEED_DATA:
                connection.receive_data(bytes(await upstream.receive_some()))
            elif isinstance(event, h11.Response):
                headers = [(bytes(name), bytes(value)) for name, value in event.headers]
                headers = [each for each in headers if each[0] not in _HOP_BY_HOP]
                reply = HttpReply(event.status_code, headers)
                if reply.get(b"content-type").startswith(b"text/event-stream"):
                    exchange.is_streamed = True
                    self._operator.reply(exchange, reply)
                    await self._send(h11.Response(status_code=reply.status, headers=reply.headers))
                    await self._pass_events(exchange, connection, upstream)
                    return
            elif isinstance(event, h11.Data):
                body += bytes(event.data)
            elif isinstance(event, h11.EndOfMessage) and reply is not None:
                reply.body = self._changed_body(exchange, body)
                self._operator.reply(exchange, reply)
                await self._answer(reply)
                return
            elif not isinstance(event, h11.InformationalResponse):
                return

    def _changed_body(self, exchange: HttpExchange, body: bytes) -> bytes:
        message = _decode(body)
        if not message:
            return body
        found = list(self._operator.messages(exchange, message))
        if len(found) == 1 and found[0] is message:
            return body
        return b"".join(json.dumps(each).encode() for each in found)

    async def _pass_events(
        self, exchange: HttpExchange, connection: h11.Connection, upstream: Any
    ) -> None:
        buffered = b""
        while True:
            event = connection.next_event()
            if event is h11.NEED_DATA:
                connection.receive_data(bytes(await upstream.receive_some()))
                continue
            if not isinstance(event, h11.Data):
                break
            buffered += bytes(event.data).replace(b"\r\n", b"\n")
            while b"\n\n" in buffered:
                block, _, buffered = buffered.partition(b"\n\n")
                message = _decode(b"\n".join(_data_of(block)))
                if message and self._operator.ends_early(exchange):
                    await self._send(h11.EndOfMessage())
                    return
                for each in self._operator.messages(exchange, message) if message else [message]:
                    changed = block if each is message else _with_data(block, each)
                    self._operator.pass_event(exchange, changed)
                    await self._send(h11.Data(data=changed + b"\n\n"))
        await self._send(h11.EndOfMessage())

    async def _answer(self, reply: HttpReply) -> None:
        body = reply.body or b""
        headers = [*reply.headers, (b"content-length", b"%d" % len(body))]
        await self._send(h11.Response(status_code=reply.status, headers=headers))
        if body:
            await self._send(h11.Data(data=body))
        await self._send(h11.EndOfMessage())

    async def _send(self, event: Any) -> None:
        await self._stream.send_all(self._h11.send(event) or b"")


def _data_of(block: bytes) -> list[bytes]:
    lines = block.split(b"\n")
    return [each[5:].removeprefix(b" ") for each in lines if each.startswith(b"data:")]


def _with_data(block: bytes, message: Json) -> bytes:
    others = [each for each in block.split(b"\n") if not each.startswith(b"data:")]
    return b"\n".join([*others, b"data: " + json.dumps(message).encode()])


def _decode(data: bytes) -> Json:
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
