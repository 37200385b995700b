"""A client: what asyncio adds to a `AbstractClient` is the waiting, and the ways to a server, in this process, in a child process or at a URL.

Rules: whatever happens to the conversation, every pending call ends at once with one typed exception. What a `connect` starts
does not outlive its block, nor do callbacks that answer the server. It refuses to know what may be asked, and what an answer means.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, suppress
from functools import partial
from typing import Any, TypeVar, Unpack

from mcp_core import ConnectFailed
from mcp_core.registry import Server
from mcp_core.runtime import AbstractClient, CallerOptions, CallOptions, Job, Steps, Waiter, client_config

from ._link import Link, Streams
from ._pipes import child_streams
from ._server import _log, converse

T = TypeVar("T")
Target = str | Server | Sequence[str | os.PathLike[str]]


class _Call(Waiter[T]):
    wake: Any = None  # both are given by who waits
    rearm: Any = None


class Client(AbstractClient):
    """One open conversation with a server, made by `connect`. See `AbstractClient` for its calls and what they raise."""

    def __init__(self, carry: Callable[..., Any], config: Any, options: CallerOptions) -> None:
        super().__init__(config, options, asyncio.get_running_loop().time, asyncio.sleep)
        self._link = carry(self._conn, self._handle_event)

    async def aclose(self) -> None:
        """End the conversation. From any task, any number of times; calls that are pending raise `ConnectionLost`."""
        await self._link.aclose()
        await self._link.until(lambda: not self._link.jobs - {asyncio.current_task()})

    async def _call(self, steps: Steps[T], options: CallOptions) -> T:
        call: _Call[T] = _Call(self._send, self._clock, steps, options)
        awake = asyncio.Event()
        call.wake = awake.set
        try:
            call.begin()
            with suppress(TimeoutError):
                async with asyncio.timeout_at(call.deadline) as limit:
                    call.rearm = lambda: None if limit.expired() else limit.reschedule(call.deadline)
                    self._link.pump()
                    await (asyncio.sleep(0) if call.done else awake.wait())
        finally:
            self._end_call(call)
            self._link.pump()
        return call.result()

    def _start_job(self, job: Job) -> None:
        self._link.start_job(job)

    def _pump(self) -> None:
        self._link.pump()

    def _report(self, problem: str, error: BaseException) -> None:
        _log.error("%s", problem, exc_info=error)

    async def _connect(self) -> None:
        self._open()
        self._link.pump()
        await self._link.until(lambda: self._status.settled)
        self._status.require_open()


@asynccontextmanager
async def connect(
    target: Target, *, headers: Mapping[str, str] = {}, tls: Any = None, **options: Unpack[CallerOptions]
) -> AsyncIterator[Client]:
    """Connect to a server at a URL, to a `Server`, which is run in this process, or to a command in words, which is started.

    To be entered: `async with connect(...) as client`. What can be said about the conversation is in `CallerOptions`. For a URL,
    `http://...` and `https://...`, or `ws://...` and `wss://...` for a WebSocket, `headers` are sent with each request, as
    `{"authorization": "Bearer ..."}`, and `tls`, an `ssl.SSLContext`, says whom to trust. No proxy is looked for.

    *Resource handling*: at the end of the block a session is ended, and all connections are closed; a process is ended by the end of
    its stdin, after 2 s by SIGTERM to its group, after 2 s more by SIGKILL. *Error handling*: what the block raises passes through
    as it is, in no group.

    Raises:
        ConnectFailed: the server could not be started or reached, or no conversation came about.
        TypeError: the command is one string.
        ValueError: an option is out of its range, or the URL or a header cannot be sent.
    """
    if isinstance(target, str) and "://" not in target:
        raise TypeError(f"connect to a URL, a Server, or a command as a list of words, not to {target!r}")
    if isinstance(target, str):
        options.setdefault("initialize_timeout", 30.0)  # a server that has taken the connection runs already
    while True:
        config = client_config(options)
        async with AsyncExitStack() as opened:
            if isinstance(target, str):
                from ._http import way_to  # whoever has a pipe needs neither h11 nor wsproto

                carry: Callable[..., Any] = await way_to(target, headers, tls)
            else:
                ends = _memory(target) if isinstance(target, Server) else child_streams(target)
                carry = partial(Link, await opened.enter_async_context(ends))
            client = await opened.enter_async_context(aclosing(Client(carry, config, options)))
            try:
                await client._connect()
            except ConnectFailed:
                options["versions"] = versions = client.versions_without_probe
                if not versions or isinstance(target, str):
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
