"""One side is real and the other one the test: set up in a line, and over at the end of a block.

Rules of this file:

1. The real side is what a program would run: `serve_stream` and `connect_stream`, over a pair in memory.
2. The conversation is open when the block begins. When it ends, the test hangs up, and the real side has to come to its end.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Unpack

import trio

from mcp_core import LATEST, ConnectFailed
from mcp_trio import ClientOptions, connect_stream, memory_pair, serve_stream
from mcp_trio._nursery import open_quiet_nursery

from ._peer import ScriptedPeer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from mcp_core.registry import Server
    from mcp_trio import Client

__all__ = ["play_client", "play_server"]


@asynccontextmanager
async def play_client(server: Server, version: str = LATEST) -> AsyncIterator[ScriptedPeer]:
    """Run `server`, and be its client in revision `version`: `async with play_client(server) as peer: ...`.

    *Resource handling*: at the end of the block the client hangs up, and the server gets the time to end that it always has.
    *Error handling*: what the block raises passes through as it is, in no group.

    Raises:
        AssertionError: the server did not open the conversation.
    """
    ours, theirs = memory_pair()
    peer = ScriptedPeer(ours, version)
    ended = trio.Event()

    async def serve() -> None:
        await serve_stream(server, theirs)
        ended.set()

    async with open_quiet_nursery() as nursery:
        nursery.start_soon(serve)
        await peer.open_as_client()
        yield peer
        await peer.aclose()
        await ended.wait()


@asynccontextmanager
async def play_server(
    version: str = LATEST, **options: Unpack[ClientOptions]
) -> AsyncIterator[tuple[Client, ScriptedPeer]]:
    """Be the server of a client, in revision `version`: `async with play_server() as (client, peer): ...`.

    Args:
        version: what the server speaks, and the client too unless `versions` says more.
        options: see `ClientOptions`. The opening is played, so there can be no `verdict`.

    *Resource handling*: the client is closed at the end of the block. What it says last is still in the stream.
    *Error handling*: what the block raises passes through as it is, in no group.

    Raises:
        AssertionError: the client did not open the conversation. What it made of it is the cause.
    """
    options.setdefault("versions", [version])
    ours, theirs = memory_pair()
    peer = ScriptedPeer(theirs, version)
    opened = trio.Event()
    failures: list[AssertionError] = []

    async def open_it() -> None:
        try:
            await peer.open_as_server()
        except AssertionError as exc:
            failures.append(exc)
            await peer.aclose()  # for the client waits
        opened.set()

    async with open_quiet_nursery() as nursery:
        nursery.start_soon(open_it)
        try:
            async with connect_stream(ours, **options) as client:
                await opened.wait()
                yield client, peer
        except ConnectFailed as exc:
            await opened.wait()
            if failures:
                raise failures[0] from exc
            raise
