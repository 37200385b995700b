"""A client: what asyncio adds to a `Caller` is the waiting, and the ways to a server, in this process or in a child process.

Rules: whatever happens to the conversation, every pending call ends at once with one typed exception. What a `connect` starts
does not outlive its block, nor do callbacks that answer the server. It refuses to know what may be asked, and what an answer means.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from typing import Any, TypeVar, Unpack

from mcp_core import (
    Answering,
    Caller,
    CallerOptions,
    CallOptions,
    Config,
    ConnectFailed,
    Steps,
    Waiter,
    client_config,
)
from mcp_core.registry import Server

from ._link import Link, Streams
from ._pipes import child_streams
from ._server import _log, converse

T = TypeVar("T")


class _Call(Waiter[T]):
    timeout: asyncio.Timeout

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.awake = asyncio.Event()

    def wake(self) -> None:
        self.awake.set()

    def rearm(self) -> None:
        if not self.timeout.expired():
            self.timeout.reschedule(self.deadline)


class Client(Caller):
    """One open conversation with a server, made by `connect`. See `Caller` for its calls and what they raise."""

    def __init__(self, streams: Streams, config: Config, options: CallerOptions) -> None:
        super().__init__(config, options, asyncio.get_running_loop().time, asyncio.sleep)
        self._link = Link(self._conn, streams, self._take)

    async def aclose(self) -> None:
        """End the conversation. From any task, any number of times; calls that are pending raise `ConnectionLost`."""
        await self._link.aclose()
        await self._link.until(lambda: not self._link.jobs - {asyncio.current_task()})

    async def _call(self, steps: Steps[T], options: CallOptions) -> T:
        call: _Call[T] = _Call(self._send, self._clock, steps, options)
        try:
            call.begin()
            with suppress(TimeoutError):
                async with asyncio.timeout_at(call.deadline) as call.timeout:
                    self._link.pump()
                    await (asyncio.sleep(0) if call.done else call.awake.wait())
        finally:
            self._drop(call)
            self._link.pump()
        return call.result()

    async def _awaited(self, work: Awaitable[T]) -> T:
        return await work

    def _run(self, answering: Answering) -> None:
        self._link.start(answering)

    def _pump(self) -> None:
        self._link.pump()

    def _report(self, problem: str, error: BaseException) -> None:
        _log.error("%s", problem, exc_info=error)

    async def _connect(self) -> None:
        self._open()
        self._link.pump()
        await self._link.until(lambda: self._standing.settled)
        self._standing.require_open()


@asynccontextmanager
async def connect(
    target: Server | Sequence[str | os.PathLike[str]], **options: Unpack[CallerOptions]
) -> AsyncIterator[Client]:
    """Connect to a `Server`, which is run in this process, or to a command in words, which is started: `async with ...`.

    What can be said about the conversation is in `CallerOptions`.

    *Resource handling*: at the end of the block the server is ended: a process by the end of its stdin, after 2 s by SIGTERM
    to its group, after 2 s more by SIGKILL. *Error handling*: what the block raises passes through as it is, in no group.

    Raises:
        ConnectFailed: the server could not be started, or no conversation came about.
        TypeError: the command is one string.
        ValueError: an option is out of its range.
    """
    if isinstance(target, str):
        raise TypeError(f"connect to a Server or to a command as a list of words, not to {target!r}")
    while True:
        config = client_config(options)
        ends = _memory(target) if isinstance(target, Server) else child_streams(target)
        async with ends as streams, aclosing(Client(streams, config, options)) as client:
            try:
                await client._connect()
            except ConnectFailed:
                options["versions"] = versions = client.versions_without_probe
                if not versions:
                    raise
                continue
            yield client
            return


@asynccontextmanager
async def _memory(server: Server) -> AsyncIterator[Streams]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        async with server.lifespan() as value:  # what it raises is the caller's to hear
            far = await asyncio.open_connection(sock=theirs)
            serving = asyncio.create_task(converse(server, far, value))
            try:
                yield await asyncio.open_connection(sock=ours)
            finally:
                serving.cancel()
                await asyncio.wait({serving})
