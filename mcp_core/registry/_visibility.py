"""Which declarations a caller sees: `visible=`, `Server.enable` and `Server.disable`.

1. What a caller doesn't see is answered as if it weren't declared.
2. A function that fails hides its declaration: whether it would have shown it isn't known.
3. Most declarations have no `Visibility` at all, and cost nothing.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from mcp_core._on_first_use import type_on_first_use
from mcp_core.protocol.messages._events import GrantLike, Peer, RequestReceived

from ._errors import DeclarationError

if TYPE_CHECKING:
    from ._input_requests import RequestHost
else:  # which imports a module that imports this one
    RequestHost = type_on_first_use("mcp_core.registry._input_requests", "RequestHost")

__all__ = ["ADMITTED", "NO_HEADERS", "Caller", "Visibility", "set_enabled", "visibility_of"]

NO_HEADERS: Final[Mapping[str, str]] = MappingProxyType({})
# In place of a host: the call was admitted before, and runs again.
ADMITTED: Final[Any] = object()
# Seconds after which a function that still fails is logged again.
_LOG_INTERVAL: Final = 60.0
# Seconds that a function may take, as a plain `def` may: all other clients wait meanwhile.
_MAX_BLOCKING: Final = 0.05


class Caller:
    """The client whose request may name a declaration: what `visible=` decides by.

    The runtime makes it, of the `request` and the authenticated `principal`.

    Attributes:
        principal: as `Context.principal`: the authenticated user, "" without authorization.
    """

    __slots__ = ("_request", "principal")

    def __init__(self, request: RequestReceived, principal: str) -> None:
        self._request = request
        self.principal = principal

    def __repr__(self) -> str:
        return f"<Caller {self.principal!r}>"

    @property
    def grant(self) -> GrantLike | None:
        """The grant of the request's access token, as `Context.grant`; None without one."""
        return self._request.grant

    @property
    def peer(self) -> Peer:
        """The client: revision, capabilities and, for display only, its name."""
        return self._request.peer

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers of the HTTP request, as `Context.headers`."""
        http = self._request.http
        return NO_HEADERS if http is None else http.headers


class Visibility:
    """Decides for each request whether its caller sees one declaration.

    Args:
        function: `visible=` of the declaration, None for everybody.
        label: the declaration's kind and name, for the log.
        is_enabled: False if no caller sees it.
    """

    __slots__ = ("function", "is_enabled", "label")

    def __init__(
        self,
        function: Callable[[Caller], bool] | None,
        label: str,
        *,
        is_enabled: bool = True,
    ) -> None:
        self.function = function
        self.label = label
        self.is_enabled = is_enabled

    def __repr__(self) -> str:
        return f"<Visibility of {self.label}>"

    @property
    def depends_on_caller(self) -> bool:
        """True if callers may see different things."""
        return self.function is not None

    def allows(self, request: RequestReceived, host: RequestHost | None) -> bool:
        """Return True if the sender of `request`, which arrived at `host`, sees the declaration.

        Without a `host` the request's grant names the sender, and nothing is logged.
        """
        if host is ADMITTED:
            return True
        return self.is_enabled and self.shows(request, host)

    def shows(self, request: RequestReceived, host: RequestHost | None) -> bool:
        """Return what `visible=` says, whether or not the declaration is enabled."""
        function = self.function
        if function is None or host is ADMITTED:
            return True
        if host is not None:
            principal = host.principal
        else:
            principal = "" if request.grant is None else request.grant.principal
        started = 0.0 if host is None else host.runtime.monotonic()
        try:
            found: Any = function(Caller(request, principal))
            if inspect.isawaitable(found):
                if inspect.iscoroutine(found):
                    found.close()
                raise TypeError("visible= returns True or False, and cannot be awaited")
            answer = bool(found)
        except (Exception, SystemExit) as exc:  # noqa: BLE001 - rule 2
            answer = False
            # Several declarations may share a function, and a client may list them all the time.
            if host is not None and host.server.is_due_report(
                _code(function), started, _LOG_INTERVAL
            ):
                host.runtime.report_hook(f"visible= of {self.label}, which is hidden now,", exc)
        if host is not None:
            seconds = host.runtime.monotonic() - started
            if seconds > _MAX_BLOCKING and host.server.is_first_report(f"visible= {self.label}"):
                host.runtime.warn(
                    f"visible= of {self.label} blocked all clients for {seconds:.2f} s: let it"
                    " decide by what is in memory"
                )
        return answer


def _code(function: Callable[..., Any]) -> object:
    """Return what functions that were made at the same place have in common."""
    return getattr(getattr(function, "func", function), "__code__", type(function))


def visibility_of(function: Callable[[Caller], bool] | None, label: str) -> Visibility | None:
    """Return the visibility of a declaration with this `visible=`, None if everybody sees it.

    Raises:
        DeclarationError: it isn't a plain function of one parameter.
    """
    if function is None:
        return None
    called = function if inspect.isroutine(function) else getattr(function, "__call__", None)  # noqa: B004
    problem = f"{label}: visible is a plain function of a Caller that returns True or False"
    try:
        inspect.signature(function).bind(None)
    except (TypeError, ValueError):
        raise DeclarationError(f"{problem}, not {function!r}") from None
    if inspect.iscoroutinefunction(called) or inspect.isasyncgenfunction(called):
        raise DeclarationError(
            f"{problem}: it cannot await. What it needs to know is in the caller's grant, or read"
            " before, as in the lifespan"
        )
    return Visibility(function, label)


def set_enabled(entry: Any, label: str, *, enabled: bool) -> bool:
    """Show or hide `entry`, a server's own entry. Return False if it is as wanted already."""
    before: Visibility | None = entry.visibility
    if enabled == (before is None or before.is_enabled):
        return False
    function = None if before is None else before.function
    entry.visibility = None
    if not enabled or function is not None:
        entry.visibility = Visibility(function, label, is_enabled=enabled)
    return True
