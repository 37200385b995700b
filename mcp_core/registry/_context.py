"""What a handler may know about the call it serves, and say while it runs.

`Context` is the type that handlers annotate, the same in every runtime. Facts are here. Whatever waits or
sends is abstract, and each runtime's subclass fills it in.

This file does not know how anything is sent.
"""

from __future__ import annotations

import abc
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct, field

from mcp_core._errors import Fault, McpError
from mcp_core._jsonrpc import Unreadable, reader

if TYPE_CHECKING:
    from mcp_core._events import Peer, RequestReceived
    from mcp_core.types import RequestId

    from ._server import Server

__all__ = ["Context"]


class _Params(Struct):
    meta: dict[str, Any] | None = field(name="_meta", default=None)


_read_params: Final = reader(_Params)


class Context(abc.ABC):
    """One request, from the point of view of the function that answers it.

    Annotate a parameter with it, at any position, and it is filled in::

        @server.tool
        async def count(to: int, context: Context) -> int:
            "Count slowly."
            for step in range(to):
                await context.progress(step, to)
            return to

    It is good only while the handler runs. In a plain `def` use the methods that end in `_nowait`.
    """

    def __init__(self, request: RequestReceived, server: Server) -> None:
        self._request = request
        self._meta: dict[str, Any] | None = None
        self.server = server

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._request.method.name} id={self.request_id!r}>"

    @property
    def request_id(self) -> RequestId:
        """The id that the peer gave the request."""
        return self._request.id

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

    @abc.abstractmethod
    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Tell the peer how far the work is; nothing is sent if it did not ask for progress.

        `progress` must grow with each call and may have any unit, the one of `total`. Waits while the peer is
        slow to read (basic/utilities/progress).
        """

    @abc.abstractmethod
    def progress_nowait(
        self, progress: float, total: float | None = None, message: str | None = None
    ) -> None:
        """The same without waiting, for a plain `def`."""
