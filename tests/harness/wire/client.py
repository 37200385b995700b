"""A client against a server that the test plays line by line, on either driver."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from tests.harness import either
from tests.harness.jsonrpc import D, E, result
from tests.harness.wire.lines import Wire

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from tests.harness.jsonrpc import Message

__all__ = [
    "INFO",
    "OFFERS",
    "CallTask",
    "break_sending",
    "break_stream",
    "connected",
    "is_closed",
    "open_as_server",
]

OFFERS: Message = {"tools": {}, "resources": {}, "prompts": {}}
INFO = {"name": "played", "version": "1"}


async def open_as_server(wire: Wire, offers: Message = OFFERS) -> None:
    """Play the server's part of the handshake."""
    sent = await wire.receive()
    if wire.version == E:
        assert sent["method"] == "server/discover"
        found = {
            "supportedVersions": [E],
            "capabilities": offers,
            "ttlMs": 0,
            "cacheScope": "private",
        }
        await wire.send(result(sent["id"], found))
    else:
        assert sent["method"] == "initialize"
        opened = {"protocolVersion": wire.version, "capabilities": offers, "serverInfo": INFO}
        await wire.send(result(sent["id"], opened))
        assert (await wire.receive())["method"] == "notifications/initialized"


@asynccontextmanager
async def connected(
    version: str = D, offers: Message = OFFERS, **options: Any
) -> AsyncIterator[tuple[Any, Wire]]:
    """A client with these options, and the stream of the server that the test plays."""
    ours, theirs = either.memory_pair()
    wire = Wire(theirs, version)
    opened = either.Event()

    async def open_it() -> None:
        await open_as_server(wire, offers)
        opened.set()

    async with either.open_nursery() as nursery:
        nursery.start_soon(open_it)
        async with either.connect_stream(ours, versions=[version], **options) as client:
            await opened.wait()
            yield client, wire


class CallTask:
    """A call in a task of its own, with its `result` or `error`."""

    def __init__(self, nursery: either.Nursery, call: Callable[[], Awaitable[Any]]) -> None:
        self.result: Any = None
        self.error: BaseException | None = None
        self.scope = either.CancelScope()
        self.ended = either.Event()
        nursery.start_soon(self._run, call)

    async def _run(self, call: Callable[[], Awaitable[Any]]) -> None:
        try:
            with self.scope:
                self.result = await call()
        except Exception as exc:  # noqa: BLE001 - the test examines it
            self.error = exc
        self.ended.set()


# -- The client's end of the memory pair ----------------------------------------------------------


def is_closed(client: Any) -> bool:
    """True if the client has closed its stream."""
    if either.on_trio():
        return bool(client._transport._stream._outgoing.writer_closed)
    return bool(client._transport._writer.is_closing())


def break_stream(client: Any) -> None:
    """Let the client's reading fail, as on a socket that was reset."""
    if either.on_trio():
        client._transport._stream._incoming.reader_closed = True
        client._transport._stream._incoming.changed.unpark_all()
    else:
        client._transport._writer.transport.break_(ConnectionResetError("reset"))


def break_sending(client: Any) -> None:
    """Let the client's next write fail."""
    if either.on_trio():
        client._transport._stream._outgoing.reader_closed = True
    else:
        client._transport._writer.transport.fails_at_next_write = True
