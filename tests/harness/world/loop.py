"""Run a test in asyncio, and play a client in lines of JSON.

`run` is `asyncio.run` in virtual time, `run_with_processes` in real time; both check that no task
and no descriptor is left. `Wire` is a client that shares no code with the server.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from mcp_asyncio_shim import serve_streams
from tests.harness.jsonrpc import (
    INITIALIZED,
    D,
    E,
    Message,
    initialize,
    line,
    request,
    stateless_request,
)
from tests.harness.world import virtual_time
from tests.harness.world.waiting import PATIENCE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine

    from mcp_core.registry import Server

T = TypeVar("T")


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run `main` in virtual time and return what it gives; no task and no descriptor may remain."""
    return _run(virtual_time.run, main)


def run_with_processes(main: Coroutine[Any, Any, T]) -> T:
    """Do the same in real time, for tests that start processes."""
    return _run(asyncio.run, main)


def _run(run: Callable[[Coroutine[Any, Any, T]], T], main: Coroutine[Any, Any, T]) -> T:
    before = descriptors()
    result = run(_alone(main))
    assert descriptors() == before
    return result


async def _alone(main: Coroutine[Any, Any, T]) -> T:
    async with asyncio.timeout(PATIENCE):
        result = await main
    assert asyncio.all_tasks() == {asyncio.current_task()}
    return result


async def until(ready: Callable[[], object]) -> None:
    """Wait until `ready` returns True, where no event tells."""
    while not ready():  # noqa: ASYNC110
        await asyncio.sleep(0.001)


def descriptors() -> int:
    """Return the number of open descriptors of this process."""
    return len(os.listdir("/dev/fd"))  # noqa: PTH208 - the names are all there is


class Wire:
    """A client of our server, in revision `version`."""

    serving: asyncio.Task[None]  # what ends with the server

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, version: str = D
    ) -> None:
        self.reader, self.writer, self.version = reader, writer, version

    def send(self, *messages: Message | list[Any] | str | bytes) -> None:
        """Send messages, one a line, in one write."""
        self.writer.write(b"".join(map(line, messages)))

    async def receive(self) -> Message:
        """Return the next message."""
        message: Message = json.loads(await self.reader.readuntil())
        return message

    async def receive_all(self) -> list[Message]:
        """Return every message until the end."""
        return [json.loads(raw) for raw in (await self.reader.read()).splitlines()]

    def calling(self, id: Any, name: str, arguments: Any = None, **meta: Any) -> Message:
        """Build a tool call in this wire's revision; `meta` are members of its `_meta`."""
        params = {"name": name} | ({} if arguments is None else {"arguments": arguments})
        if self.version == E:
            return stateless_request(id, "tools/call", params, **meta)
        return request(id, "tools/call", params | ({"_meta": meta} if meta else {}))

    async def call(self, id: Any, name: str, arguments: Any = None) -> Message:
        """Call a tool and return the response, which has to be the next message."""
        self.send(self.calling(id, name, arguments))
        return await self.receive()

    async def is_alive(self) -> bool:
        """True if the very next message is the response to a request sent now."""
        self.send(
            stateless_request("?", "server/discover") if self.version == E else request("?", "ping")
        )
        return bool((await self.receive())["id"] == "?")


@asynccontextmanager
async def served(server: Server, version: str = D, *, grace: float = 5.0) -> AsyncIterator[Wire]:
    """Yield a wire to `server`, on an open connection.

    At the end the client closes the connection, and the server has to end too.
    """
    ours, theirs = socket.socketpair()
    serving = asyncio.create_task(
        serve_streams(server, *await asyncio.open_connection(sock=theirs), grace=grace)
    )
    wire = Wire(*await asyncio.open_connection(sock=ours), version)
    wire.serving = serving
    try:
        if version != E:
            wire.send(initialize(version))
            assert (await wire.receive())["result"]["protocolVersion"] == version
            wire.send(INITIALIZED)
        yield wire
    finally:
        wire.writer.close()
        await serving
        await asyncio.gather(wire.writer.wait_closed(), return_exceptions=True)
