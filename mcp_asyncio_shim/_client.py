"""A client: what asyncio adds to a `Caller` is the waiting, and the ways to a server, in this process or in a child process.

Rules: whatever happens to the conversation, every pending call ends at once with one typed exception. What a `connect` starts
does not outlive its block. It refuses to know what may be asked, and what an answer means.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Any, TypeVar

from mcp_core import ALL, Caller, CallOptions, CallTimeout, ConnectFailed, Listing, Waiter, client_config
from mcp_core.registry import Server

from ._link import Link, Streams
from ._pipes import child_streams
from ._server import serve_streams

T = TypeVar("T")


class _Call(Waiter):
    def __init__(self, options: CallOptions) -> None:
        super().__init__(options)
        self.awake, self.timeout = asyncio.Event(), asyncio.timeout(self.seconds)

    def wake(self) -> None:
        self.awake.set()

    def prolong(self) -> None:
        if self.seconds is not None and not self.timeout.expired():
            self.timeout.reschedule(asyncio.get_running_loop().time() + self.seconds)


class Client(Caller):
    """One open conversation with a server, made by `connect`. See `Caller` for its calls and what they raise."""

    def __init__(self, streams: Streams, versions: Iterable[str]) -> None:
        super().__init__(client_config(versions))
        self._link = Link(self._conn, streams, self._standing.take)

    async def aclose(self) -> None:
        """End the conversation. From any task, any number of times; calls that are pending raise `ConnectionLost`."""
        await self._link.aclose()

    async def _call(self, method: str, params: Any, options: CallOptions) -> Any:
        call = _Call(options)
        id = self._ask(method, params, call, options)
        try:
            async with call.timeout:
                self._link.pump()
                await call.awake.wait()
        except TimeoutError:
            raise CallTimeout(f"no answer to {method} within {call.seconds} s") from None
        finally:
            self._conn.send_cancel(id, "the caller gave up")  # nothing happens to a call that was answered
            self._link.pump()
        return call.result()

    async def _list(self, listing: Listing[T], options: CallOptions) -> list[T]:
        while listing.wanted:
            listing.take(await self._call(listing.method, listing.params, options))
        return listing.items

    async def _open(self) -> None:
        self._conn.open(self._link.loop.time())
        self._link.pump()
        await self._link.until(lambda: self._standing.settled)
        self._standing.require_open()


@asynccontextmanager
async def connect(
    target: Server | Sequence[str | os.PathLike[str]], *, versions: Iterable[str] = ALL
) -> AsyncIterator[Client]:
    """Connect to a `Server`, which is run in this process, or to a command in words, which is started: `async with ...`.

    With several `versions` the newest that both sides know is found out; one fixes it.

    *Resource handling*: at the end of the block the server is ended: a process by the end of its stdin, after 2 s by SIGTERM
    to its group, after 2 s more by SIGKILL. *Error handling*: what the block raises passes through as it is, in no group.

    Raises:
        ConnectFailed: the server could not be started, or no conversation came about.
        TypeError: the command is one string.
    """
    if isinstance(target, str):
        raise TypeError(f"connect to a Server or to a command as a list of words, not to {target!r}")
    while True:
        ends = _memory(target) if isinstance(target, Server) else child_streams(target)
        async with ends as streams, aclosing(Client(streams, versions)) as client:
            try:
                await client._open()
            except ConnectFailed:
                versions = client.versions_without_probe
                if not versions:
                    raise
                continue
            yield client
            return


@asynccontextmanager
async def _memory(server: Server) -> AsyncIterator[Streams]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        serving = asyncio.create_task(serve_streams(server, *await asyncio.open_connection(sock=theirs)))
        try:
            yield await asyncio.open_connection(sock=ours)
        finally:
            serving.cancel()
            await asyncio.wait({serving})
