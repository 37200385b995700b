"""Hooks on `notifications/roots/list_changed`: what they get, and the request for the new roots.

The notification belongs to no request of the client, and neither does the request that follows. A
hook can therefore list the roots, and nothing else of what a `Context` can do.

Source: client/roots, Root List Changes, until 2025-11-25.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, TypeAlias

from mcp_core import types as t
from mcp_core._errors import CallTimeout
from mcp_core._on_first_use import type_on_first_use
from mcp_core.protocol.input_requests._kinds import require_capabilities
from mcp_core.protocol.messages._events import Peer

from ._context import L
from ._errors import DeclarationError
from ._input_requests import NestedRequests, RequestHost
from ._lifespans import lifespan_value

if TYPE_CHECKING:
    from msgspec import Struct

    from ._server import Server
else:  # which imports this module
    Server = type_on_first_use("mcp_core.registry._server", "Server")

__all__ = ["RootsContext", "RootsHook", "check_hook"]

# Seconds. As long as a client waits for any response by default. A client of HTTP that opens no
# stream for requests of the server never answers.
_TIMEOUT: Final = 60.0


class RootsContext(Generic[L]):
    """The notification that a hook on changed roots serves. Use it only while the hook runs.

    The runtime makes it, of the `host` of the connection, the `peer` that sent the notification and
    the `server` of the hook, if it isn't the host's.

    Attributes:
        server: the server on which the hook was declared.
        lifespan: the server lifespan's value, None if it has none.
        peer: the client: revision, capabilities and, for display only, its name.
        principal: the authenticated user, empty if the server runs without authorization.
        session_state: as `Context.session_state`, of the client whose roots have changed.
    """

    def __init__(self, host: RequestHost, peer: Peer, server: Server | None) -> None:
        self.server: Server = server or host.server
        mounted = self.server is not host.server
        self.lifespan: L = lifespan_value(host.lifespan, self.server, mounted=mounted)
        self.peer = peer
        self.principal = host.principal
        self.session_state = host.session_state
        if mounted:
            self.session_state = host.mounted_states.setdefault(self.server, {})
        self._sender = _Sender(host, peer)

    def __repr__(self) -> str:
        return f"<RootsContext of {self.server!r}>"

    def roots(self) -> Coroutine[Any, Any, list[t.Root]]:
        """Request the client's roots, as they are now, and return them (client/roots).

        Raises:
            McpError: the client sent an error.
            CallTimeout: the client hasn't answered for 60 s.
            ConnectionLost: the connection closed first.
            LocalProtocolError: the connection is closed.
        """
        return self._sender.host.runtime.send_nested(_RootsRequest(self._sender))


RootsHook: TypeAlias = Callable[[RootsContext[Any]], Awaitable[object] | object]


def check_hook(function: Callable[[Any], object], subject: str, parameter: str) -> None:
    """Raise `DeclarationError` unless `function`, a hook, can be called with one argument.

    `subject` is what it is called for, and `parameter` the name of what it gets.
    """
    try:
        inspect.signature(function).bind(None)
    except (TypeError, ValueError):
        raise DeclarationError(
            f"a hook on {subject} is a function of one parameter, its {parameter}, not {function!r}"
        ) from None


class _Sender:
    """A `NestedRequestSender` for a notification."""

    label: ClassVar[str] = "notifications/roots/list_changed"
    related = None

    def __init__(self, host: RequestHost, peer: Peer) -> None:
        self.host = host
        self.peer = peer
        self.active_requests: list[NestedRequests[Any]] = []
        self.no_response_error: BaseException | None = None
        self.trace: dict[str, str] = {}
        self.time_limits = ()

    def __repr__(self) -> str:
        return f"<sender for {self.label}>"


class _RootsRequest(NestedRequests[list[t.Root]]):
    """The request for the roots after they have changed."""

    seconds = _TIMEOUT

    def _make_requests(self) -> Mapping[str, tuple[str, Struct]]:
        require_capabilities([t.ListRootsRequest()], self._sender.peer)
        return {"roots": (t.ListRootsRequest.method, t.ListRootsParams())}

    def _make_result(self, responses: Mapping[str, Any]) -> list[t.Root]:
        response: t.ListRootsResult | None = responses.get("roots")
        if response is None:
            raise CallTimeout(f"the client has not listed its roots for {_TIMEOUT:.0f} s")
        return response.roots
