"""What a handler may know about the call it serves, and say while it runs.

Rules of this file:

1. `Context` is the same in every runtime: facts come from the request, what is said goes to the connection, and only the
   waiting is the runtime's.
2. A handler that was cancelled may still say something: nothing is sent for a request that is over.
3. A plain `def` cannot wait. In a worker thread it may block instead; elsewhere what a peer does not read is not queued
   without end, but dropped.

This file does not know how anything is sent.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Final, Generic

from msgspec import Struct, field

from mcp_core._errors import Fault, McpError
from mcp_core._jsonrpc import Unreadable, reader
from mcp_core._trace_context import trace_context

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    from mcp_core._connection import Connection
    from mcp_core._events import Peer, RequestReceived
    from mcp_core.types import LoggingLevel, RequestId

    from ._runtime import Runtime
    from ._server import Server

    # A context that says nothing about its lifespan may have any.
    L = TypeVar("L", default=Any)
else:
    from typing import TypeVar

    L = TypeVar("L")

__all__ = ["Context"]


class _Params(Struct):
    meta: dict[str, Any] | None = field(name="_meta", default=None)


_read_params: Final = reader(_Params)


class Context(Generic[L]):
    """One request, from the point of view of the function that answers it.

    Annotate a parameter with it, at any position, and it is filled in::

        @server.tool
        async def count(to: int, context: Context) -> int:
            "Count slowly."
            for step in range(to):
                await context.progress(step, to)
            return to

    `Context[Database]` tells the type checker what the server's `lifespan` gives. It is good only while the handler runs. In a
    plain `def` use the methods that end in `_nowait`.

    `server` is the server it was declared on, `lifespan` the value of the server's lifespan (None if it has none), and
    `state` a place for what middleware wants to tell the handler.
    """

    __slots__ = ("_conn", "_meta", "_request", "_runtime", "lifespan", "server", "state")

    def __init__(
        self,
        request: RequestReceived,
        server: Server,
        conn: Connection,
        runtime: Runtime,
        lifespan: Any = None,
    ) -> None:
        self._request = request
        self._conn = conn
        self._runtime = runtime
        self._meta: dict[str, Any] | None = None
        self.server = server
        self.lifespan: L = lifespan
        self.state: dict[str, Any] = {}

    def __repr__(self) -> str:
        return f"<Context {self.method} id={self.request_id!r}>"

    # -- Facts -----------------------------------------------------------------------------------------------------------

    @property
    def request_id(self) -> RequestId:
        """The id that the peer gave the request."""
        return self._request.id

    @property
    def method(self) -> str:
        """What is asked for: `"tools/call"`, `"resources/read"` and so on."""
        return self._request.method.name

    @property
    def params(self) -> Any:
        """The params of the request, an object of the method's type in `mcp_core.types`. Not to be changed."""
        return self._request.params

    @property
    def peer(self) -> Peer:
        """Who asks: revision, capabilities and, for display only, its name."""
        return self._request.peer

    @property
    def meta(self) -> dict[str, Any]:
        """The whole `_meta` of the request, with members that no revision defines; empty if there is none.

        Raises:
            McpError: a member that no revision defines, and which nobody had read before, cannot be read.
        """
        if self._meta is None:
            try:
                self._meta = _read_params(self._request.raw).meta or {}
            except Unreadable as exc:
                code = self.peer.dialect.codes[Fault.INVALID_PARAMS]
                raise McpError(code, f"_meta cannot be read: {exc}") from None
        return self._meta

    @property
    def trace(self) -> dict[str, str]:
        """The trace that this request is part of: its `traceparent`, `tracestate` and `baggage` (W3C Trace Context), as far as
        they are there and well-formed. A call to another server joins the same trace with `meta=context.trace`.

        Raises:
            McpError: as for `meta`.
        """
        return trace_context(self.meta)

    # -- Saying something ------------------------------------------------------------------------------------------------

    def progress(
        self, progress: float, total: float | None = None, message: str | None = None
    ) -> Coroutine[Any, Any, None]:
        """Tell the peer how far the work is; nothing is sent if it did not ask for progress.

        `progress` must grow with each call and may have any unit, the one of `total`. Waits while the peer is
        slow to read (basic/utilities/progress).

        Raises:
            LocalProtocolError: a number is infinite or none.
            RuntimeError: this is a plain `def`, in a thread.
        """
        return self._say(lambda: self._conn.send_progress(self.request_id, progress, total, message))

    def progress_nowait(
        self, progress: float, total: float | None = None, message: str | None = None
    ) -> None:
        """The same without waiting, for a plain `def`."""
        self._say_nowait(lambda: self._conn.send_progress(self.request_id, progress, total, message))

    def log(self, level: LoggingLevel, data: Any, *, logger: str | None = None) -> Coroutine[Any, Any, None]:
        """Send the peer a log message about this request; nothing is sent if it does not want to hear that level.

        Before 2026-07-28 a peer that said nothing hears `"info"` and above; there, a request has to ask for log messages.
        Waits while the peer is slow to read. No secrets: a log message goes to whoever runs the client (server/utilities/logging).

        Args:
            level: `"debug"`, `"info"`, `"notice"`, `"warning"`, `"error"`, `"critical"`, `"alert"` or `"emergency"`.
            data: text, or anything that JSON can say.
            logger: what part of the server speaks.

        Raises:
            LocalProtocolError: there is no such level, or the server was declared with `logging=False`.
            TypeError, ValueError: `data` cannot be said in JSON.
            RuntimeError: this is a plain `def`, in a thread.
        """
        return self._say(lambda: self._conn.send_log(level, data, logger=logger, related=self.request_id))

    def log_nowait(self, level: LoggingLevel, data: Any, *, logger: str | None = None) -> None:
        """The same without waiting, for a plain `def`."""
        self._say_nowait(lambda: self._conn.send_log(level, data, logger=logger, related=self.request_id))

    def _say(self, send: Callable[[], bool]) -> Coroutine[Any, Any, None]:
        runtime = self._runtime
        if runtime.in_worker_thread:
            raise RuntimeError("a plain def cannot await: use the method that ends in _nowait")
        if send():
            runtime.pump()
        return runtime.drain()

    def _say_nowait(self, send: Callable[[], bool]) -> None:
        runtime = self._runtime
        if runtime.in_worker_thread:
            runtime.from_thread(lambda: self._say(send))
        elif not runtime.full and send():
            runtime.pump()
