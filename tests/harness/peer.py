"""A `ScriptedPeer` that waits on either driver."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from mcp_core import LATEST
from mcp_trio.testing import ScriptedPeer
from mcp_trio.testing._peer import _line
from tests.harness import either

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from mcp_core.registry import Server

__all__ = ["Peer", "play_client", "play_server"]

_TIMEOUT = 3600.0  # on a clock that jumps


class Peer(ScriptedPeer):
    """A scripted peer whose stream is an end of `either.memory_pair`, or any stream of trio."""

    async def send(self, *messages: dict[str, Any] | list[Any] | str | bytes) -> None:
        if either.on_trio():
            await super().send(*messages)
            return
        lines = [_line(message) for message in messages]
        self.transcript += [("sent", line) for line in lines]
        with either.move_on_after(_TIMEOUT) as timeout:
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
            with either.move_on_after(_TIMEOUT) as timeout:
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
async def play_client(
    server: Server, version: str = LATEST, *, handshake: bool = True
) -> AsyncIterator[Peer]:
    """Serve a played client, as `mcp_trio.testing.play_client`."""
    ours, theirs = either.memory_pair()
    peer = Peer(ours, version)
    ended = either.Event()

    async def serve() -> None:
        await either.serve_stream(server, theirs)
        ended.set()

    async with either.open_nursery() as nursery:
        nursery.start_soon(serve)
        if handshake:
            await peer.open_as_client()
        yield peer
        await peer.aclose()
        await ended.wait()


@asynccontextmanager
async def play_server(version: str = LATEST, **options: Any) -> AsyncIterator[tuple[Any, Peer]]:
    """Connect a client to a played server, as `mcp_trio.testing.play_server`."""
    ours, theirs = either.memory_pair()
    peer = Peer(theirs, version)
    opened = either.Event()

    async def open_as_server() -> None:
        await peer.open_as_server()
        opened.set()

    async with either.open_nursery() as nursery:
        nursery.start_soon(open_as_server)
        async with either.connect_stream(ours, **{"versions": [version], **options}) as client:
            await opened.wait()
            yield client, peer
