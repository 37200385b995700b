"""The client: typed calls over one conversation.

Rules of this file:

1. A call costs one wait. Its answer is handed to the waiting task by the reader; leaving the call's scope cancels it.
2. Whatever happens to the conversation, every pending call ends at once with one typed exception.
3. `Client.aclose` may be called from any task, at any time, in any order among clients.

What may be asked in which revision, and what an answer means, is the core's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

import trio

from mcp_core import (
    CallTimeout,
    Config,
    ConnectFailed,
    Connection,
    ConnectionClosed,
    ConnectionLost,
    Listing,
    PeerReady,
    Pending,
    ProgressReceived,
    Role,
    State,
    deliver,
)
from mcp_core import types as t

from ._link import Link
from ._trace import TracedStream

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from msgspec import Struct

    from mcp_core import Event, Peer

    from ._trace import Trace

    Progress = Callable[[float, float | None, str | None], object]

__all__ = ["Client"]

DEFAULT_TIMEOUT: Final = 60.0
_LAST_WRITE: Final = 1.0

T = TypeVar("T")


class _Waiter(Pending):
    """A task that waits for the answer to one call."""

    def __init__(self, progress: Progress | None, seconds: float | None) -> None:
        self.scope = None if seconds is None else trio.move_on_after(seconds)
        self.done = False
        self.gave_up = False
        self._task = trio.lowlevel.current_task()
        self._progress = progress
        self._seconds = seconds
        self._result: Any = None
        self._error: BaseException | None = None

    def end(self, result: Any, error: BaseException | None) -> None:
        if not self.done:
            self.done = True
            self._result = result
            self._error = error
            trio.lowlevel.reschedule(self._task)

    def progressed(self, event: ProgressReceived) -> None:
        if self.scope is not None and self._seconds is not None:
            self.scope.deadline = trio.current_time() + self._seconds
        if self._progress is not None and not self.done:
            try:
                self._progress(event.progress, event.total, event.message)
            except BaseException as exc:  # noqa: BLE001 - it belongs to the caller whose callback this is
                self.gave_up = True
                self.end(None, exc)

    async def wait(self) -> Any:
        await trio.lowlevel.wait_task_rescheduled(self._give_up)
        if self._error is not None:
            raise self._error
        return self._result

    def _give_up(self, _: object) -> trio.lowlevel.Abort:
        self.done = self.gave_up = True
        return trio.lowlevel.Abort.SUCCEEDED


class Client:
    """One open conversation with a server. Made by `connect`, `connect_stdio` or `connect_stream`.

    Every call raises, beside what it names itself:

    - `PeerError`: the server answered with an error.
    - `CallTimeout`: no answer within `timeout` seconds (60 unless told otherwise, None for no limit). Each progress message
      starts the time anew. The server is told that the call is cancelled, as it is when the caller is.
    - `ConnectionLost`: the conversation ended first.
    - `LocalProtocolError`: the server's revision or capabilities do not allow the call; nothing was sent.
    - `RemoteProtocolError`: the answer was no answer to this call.

    `timeout`, `meta` (further members of `_meta`) and `progress` (called with progress, total and message for each progress
    message) may be given to any call that takes them.
    """

    def __init__(self, config: Config, stream: trio.abc.Stream, trace: Trace | None = None) -> None:
        self._stream = stream if trace is None else TracedStream(stream, trace)
        self._conn = Connection(Role.CLIENT, config)
        self._link = Link(self._conn, self._stream, self._take)
        self._settled = trio.Event()  # open, or never to be
        self._failure: Exception | None = None
        self._closed = False

    def __repr__(self) -> str:
        return f"<Client of {self._conn!r}>"

    @property
    def peer(self) -> Peer:
        """Revision, capabilities, name and instructions of the server."""
        peer = self._conn.peer
        assert peer is not None
        return peer

    # -- Calls ----------------------------------------------------------------------------------------------------------------

    async def list_tools(self, *, timeout: float | None = DEFAULT_TIMEOUT) -> list[t.Tool]:
        """All tools, page after page (server/tools)."""
        return await self._list(Listing[t.Tool]("tools/list", "tools"), timeout)

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = DEFAULT_TIMEOUT,
        progress: Progress | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> t.CallToolResult:
        """Call a tool (server/tools). A tool that failed is a result with `is_error`; `raise_for_error()` raises it."""
        params = {"name": name} if arguments is None else {"name": name, "arguments": arguments}
        return cast("t.CallToolResult", await self._call("tools/call", params, timeout, progress, meta))

    async def list_resources(self, *, timeout: float | None = DEFAULT_TIMEOUT) -> list[t.Resource]:
        """All resources, page after page (server/resources)."""
        return await self._list(Listing[t.Resource]("resources/list", "resources"), timeout)

    async def list_resource_templates(
        self, *, timeout: float | None = DEFAULT_TIMEOUT
    ) -> list[t.ResourceTemplate]:
        """All resource templates, page after page (server/resources)."""
        return await self._list(
            Listing[t.ResourceTemplate]("resources/templates/list", "resource_templates"), timeout
        )

    async def read_resource(
        self,
        uri: str,
        *,
        timeout: float | None = DEFAULT_TIMEOUT,
        progress: Progress | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> t.ReadResourceResult:
        """Read a resource (server/resources)."""
        params = {"uri": uri}
        return cast(
            "t.ReadResourceResult", await self._call("resources/read", params, timeout, progress, meta)
        )

    async def list_prompts(self, *, timeout: float | None = DEFAULT_TIMEOUT) -> list[t.Prompt]:
        """All prompts, page after page (server/prompts)."""
        return await self._list(Listing[t.Prompt]("prompts/list", "prompts"), timeout)

    async def get_prompt(
        self,
        name: str,
        arguments: Mapping[str, str] | None = None,
        *,
        timeout: float | None = DEFAULT_TIMEOUT,
        progress: Progress | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> t.GetPromptResult:
        """Get a prompt filled in (server/prompts). Argument values are strings."""
        params: dict[str, Any] = {"name": name}
        if arguments is not None:
            params["arguments"] = arguments
        return cast("t.GetPromptResult", await self._call("prompts/get", params, timeout, progress, meta))

    async def ping(self, *, timeout: float | None = DEFAULT_TIMEOUT) -> None:
        """Find out whether the server answers: `ping`, or in a revision without it `server/discover`."""
        await self._call(self.peer.dialect.ping, None, timeout)

    async def request(
        self,
        method: str,
        params: Struct | Mapping[str, Any] | None = None,
        *,
        timeout: float | None = DEFAULT_TIMEOUT,
        progress: Progress | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> Any:
        """Send any request: a method of MCP gives its result type, another one a dict."""
        return await self._call(method, params, timeout, progress, meta)

    async def aclose(self) -> None:
        """End the conversation. From any task, any number of times; calls that are pending raise `ConnectionLost`."""
        if not self._closed:
            self._closed = True
            self._conn.close()
            self._link.pump()
            with trio.move_on_after(_LAST_WRITE, shield=True):
                await self._link.flush()
            self._link.stop_reading()
        with trio.CancelScope(shield=True):
            await self._stream.aclose()

    # -- How a call goes ------------------------------------------------------------------------------------------------------

    async def _call(
        self,
        method: str,
        params: Struct | Mapping[str, Any] | None,
        timeout: float | None,
        progress: Progress | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> Any:
        conn = self._conn
        if conn.state is State.CLOSED:
            await trio.lowlevel.checkpoint()
            raise ConnectionLost(str(self._failure))
        # Before the request is out: then nothing may fail any more but the wait.
        waiter = _Waiter(progress, timeout)
        id = conn.send_request(method, params, token=waiter, meta=meta, progress=progress is not None)
        self._link.pump()

        try:
            if waiter.scope is None:
                return await waiter.wait()
            with waiter.scope:
                return await waiter.wait()
        finally:
            if waiter.gave_up:
                conn.send_cancel(id, "the caller gave up")
                self._link.pump()
        raise CallTimeout(f"no answer to {method} within {timeout} s")

    async def _list(self, listing: Listing[T], timeout: float | None) -> list[T]:
        while listing.wanted:
            listing.take(await self._call(listing.method, listing.params, timeout))
        return listing.items

    def _take(self, event: Event) -> None:
        deliver(event)
        if isinstance(event, ConnectionClosed):
            self._failure = event.error or ConnectionLost("the client was closed")
            self._settled.set()
        elif isinstance(event, PeerReady):
            self._settled.set()

    # -- Opening --------------------------------------------------------------------------------------------------------------

    @property
    def probing(self) -> bool:
        """Whether the opening got no further than to ask which revisions the server knows."""
        return self._conn.probing

    async def open(self, nursery: trio.Nursery, verdict: Peer | None = None) -> None:
        """Carry the conversation in `nursery` and wait until it is open. The `connect` functions do this.

        Raises:
            ConnectFailed: it did not come about.
        """
        self._conn.open(trio.current_time(), verdict=verdict)
        for run in (self._link.write, self._link.tick, self._link.read):
            nursery.start_soon(run)
        self._link.pump()
        await self._settled.wait()
        if self._failure is not None:
            if isinstance(self._failure, ConnectFailed):
                raise self._failure
            raise ConnectFailed(str(self._failure)) from self._failure
