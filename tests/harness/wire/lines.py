"""The other end of a conversation, in lines of JSON, without using the code under test.

`Wire` is a `Peer` with shorter names for frequent steps. `served` runs a server on one end of a
memory pair and yields the other end. Both work on either driver.
"""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

from mcp_trio.testing import ScriptedPeer
from mcp_trio.testing._peer import _line
from tests.harness import either
from tests.harness.jsonrpc import (
    D,
    E,
    Message,
    request,
    stateless_request,
)
from tests.harness.world.waiting import patience

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    import trio

    from mcp_core.registry import Server

ERAS: Final = (D, E)


class Wire(ScriptedPeer):
    """The other end of `stream`, which is trio's or an end of `either.memory_pair`.

    `version` is the revision of its requests.
    """

    def __init__(self, stream: trio.abc.Stream, version: str = D) -> None:
        super().__init__(stream, version)

    async def shake_hands(self) -> None:
        """Perform the handshake, if the revision has one."""
        await self.open_as_client(info={"name": "client", "version": "1"})

    async def receive(self) -> Message:
        """Return the next message."""
        message: Message = json.loads(await self.next_line())
        return message

    async def next_line(self) -> bytes:
        """Return the next line without its end.

        Raises:
            EOFError: the stream has ended.
        """
        line = await self.receive_line()
        if line is None:
            raise EOFError
        return line

    async def receive_all(self) -> list[Message]:
        """Return every message until the end of the stream, and wait for the other side to end."""
        messages = [message async for message in self]
        await either.wait_all_tasks_blocked()
        return messages

    async def is_silent(self) -> bool:
        """Return True if nothing is sent, now and until every task waits."""
        try:
            await self.expect_silence()
        except AssertionError:
            return False
        return True

    def asking(self, id: Any, method: str, params: Any = None, **meta: Any) -> Message:
        """Return a request in this revision; `meta` are members of its `_meta`."""
        if self.version == E:
            return stateless_request(id, method, params, **meta)
        if meta:
            params = {**(params or {}), "_meta": meta}
        return request(id, method, params)

    def calling(self, id: Any, name: str, arguments: Any = None, **meta: Any) -> Message:
        """Return a tool call."""
        params = {"name": name} if arguments is None else {"name": name, "arguments": arguments}
        return self.asking(id, "tools/call", params, **meta)

    async def ask(self, id: Any, method: str, params: Any = None, **meta: Any) -> Message:
        """Send a request, and return its response, which must be the next message."""
        await self.send(self.asking(id, method, params, **meta))
        return await self.receive()

    async def call(self, id: Any, name: str, arguments: Any = None) -> Message:
        """Call a tool, and return its response, which must be the next message."""
        await self.send(self.calling(id, name, arguments))
        return await self.receive()

    async def ping(self, id: Any = "ping") -> Message:
        """Send the request that every server answers at once in this revision."""
        return await self.ask(id, "server/discover" if self.version == E else "ping")

    async def is_alive(self) -> bool:
        """Return True if a ping is answered by the very next message."""
        answer = await self.ping("alive?")
        return answer["id"] == "alive?" and "result" in answer

    # -- On asyncio

    async def send(self, *messages: dict[str, Any] | list[Any] | str | bytes) -> None:
        if either.on_trio():
            await super().send(*messages)
            return
        lines = [_line(message) for message in messages]
        self.transcript += [("sent", line) for line in lines]
        with either.move_on_after(patience()) as timeout:
            await self.stream.send_all(b"".join(line + b"\n" for line in lines))
        if timeout.cancelled_caught:
            raise self._failure("this could not be sent, for the other end does not read")

    async def expect_silence(self) -> None:
        if either.on_trio():
            await super().expect_silence()
            return
        await either.wait_all_tasks_blocked()
        if not self._buffer:
            with either.move_on_after(0):
                self._buffer += await self.stream.receive_some()
                if not self._buffer:
                    raise self._failure("expected silence, but the stream has ended")
        if self._buffer:
            raise self._failure(f"expected silence, got {bytes(self._buffer)!r}")

    async def _next_line(self, wanted: str) -> bytes | None:
        if either.on_trio():
            return await super()._next_line(wanted)
        while b"\n" not in self._buffer:
            with either.move_on_after(patience()) as timeout:
                data = await self.stream.receive_some()
            if timeout.cancelled_caught:
                raise self._failure(f"expected {wanted}, but nothing came")
            if not data and self._buffer:
                raise self._failure(f"expected {wanted}, but the stream has ended within a line")
            if not data:
                return None
            self._buffer += data
        line, _, remainder = bytes(self._buffer).partition(b"\n")
        self._buffer[:] = remainder
        self.transcript.append(("received", line))
        return line


@asynccontextmanager
async def served(
    server: Server, version: str = D, *, grace: float = 5.0, opened: bool = True
) -> AsyncIterator[Wire]:
    """Serve `server`, and yield a peer after the handshake.

    At the end the peer closes, and the server must end.
    """
    ours, theirs = either.memory_pair()
    wire = Wire(ours, version)
    ended = either.Event()

    async def serve() -> None:
        await either.serve_stream(server, theirs, grace=grace)
        ended.set()

    async with either.open_nursery() as nursery:
        nursery.start_soon(serve)
        if opened:
            await wire.shake_hands()
        yield wire
        with either.fail_after(patience()):
            await ours.aclose()
            await ended.wait()


@asynccontextmanager
async def play_server(version: str = E, **options: Any) -> AsyncIterator[tuple[Any, Wire]]:
    """Connect a client to a played server, as `mcp_trio.testing.play_server`."""
    ours, theirs = either.memory_pair()
    peer = Wire(theirs, version)
    opened = either.Event()

    async def open_as_server() -> None:
        await peer.open_as_server()
        opened.set()

    async with either.open_nursery() as nursery:
        nursery.start_soon(open_as_server)
        async with either.connect_stream(ours, **{"versions": [version], **options}) as client:
            await opened.wait()
            yield client, peer
