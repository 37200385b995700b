"""Run a real server or client in memory, with the test as its scripted peer.

The real side is `serve_stream` or `connect_stream`. The handshake is complete when the block
begins. When it ends, the scripted peer closes the stream, and the real side must end too.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Unpack

import trio

from mcp_core import LATEST, ConnectFailed
from mcp_core.registry import Server
from mcp_trio._client import Client
from mcp_trio._connect import ClientOptions, connect_stream
from mcp_trio._nursery import open_quiet_nursery
from mcp_trio._server import serve_stream
from mcp_trio.streams._memory import memory_pair

from ._peer import ScriptedPeer

__all__ = ["play_client", "play_server"]


@asynccontextmanager
async def play_client(
    server: Server, version: str = LATEST, *, handshake: bool = True
) -> AsyncIterator[ScriptedPeer]:
    """Run `server` with a scripted client: `async with play_client(server) as peer: ...`.

    Args:
        server: the server. It runs in a task of its own, with its lifespan.
        version: the revision that the client uses; default `mcp_core.LATEST`.
        handshake: whether the client initializes first; default True.

    Yields:
        the client, after the handshake.

    *Resource handling*: at the end of the block the client closes the stream, and the server gets
    its usual grace period to end. If the block raises, the server is cancelled.
    *Error handling*: exceptions of the block, and of the server's lifespan, propagate unchanged,
    not in a group.

    Raises:
        AssertionError: the server did not complete the handshake.
        ValueError: `version` isn't a revision of MCP.
    """
    client_end, server_end = memory_pair()
    peer = ScriptedPeer(client_end, version)
    ended = trio.Event()

    async def serve() -> None:
        await serve_stream(server, server_end)
        ended.set()

    async with open_quiet_nursery() as nursery:
        nursery.start_soon(serve)
        if handshake:
            await peer.open_as_client()
        yield peer
        await peer.aclose()
        await ended.wait()


@asynccontextmanager
async def play_server(
    version: str = LATEST, **options: Unpack[ClientOptions]
) -> AsyncIterator[tuple[Client, ScriptedPeer]]:
    """Connect a client to a scripted server: `async with play_server() as (client, peer): ...`.

    Args:
        version: the revision of the server, and of the client unless `versions` has others;
            default `mcp_core.LATEST`.
        options: see `ClientOptions`. The handshake is always performed: `known_peer` cannot be
            given.

    Yields:
        the client and its server, after the handshake.

    *Resource handling*: the client is closed at the end of the block. Its last messages can still
    be read from the stream.
    *Error handling*: exceptions of the block propagate unchanged, not in a group.

    Raises:
        AssertionError: the client did not complete the handshake. Its exception is the cause.
        ConnectFailed: the client refused a response of the server, such as for its `limits`.
        TypeError: an option is unknown.
        ValueError: an option is out of its range, or `version` isn't a revision of MCP.
    """
    options.setdefault("versions", [version])
    client_end, server_end = memory_pair()
    peer = ScriptedPeer(server_end, version)
    opened = trio.Event()
    failures: list[AssertionError] = []

    async def open_as_server() -> None:
        try:
            await peer.open_as_server()
        except AssertionError as exc:
            failures.append(exc)
            await peer.aclose()  # otherwise the client would wait for a response
        opened.set()

    async with open_quiet_nursery() as nursery:
        nursery.start_soon(open_as_server)
        try:
            async with connect_stream(client_end, **options) as client:
                await opened.wait()
                yield client, peer
        except ConnectFailed as exc:
            await opened.wait()
            if failures:
                raise failures[0] from exc
            raise
