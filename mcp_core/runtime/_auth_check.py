"""Run the steps of an `AuthCheck`, on any runtime."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mcp_core.http.server._auth import AuthCheck

__all__ = ["AUTH_CHECK_TIMEOUT", "run_auth_check"]

# Seconds for the check of one request. Longer than its HTTP requests take if a server does not
# respond, and shorter than the timeout of a request's body.
AUTH_CHECK_TIMEOUT: Final = 20.0


async def run_auth_check(
    check: AuthCheck,
    fetch: Callable[[Any], Awaitable[Any]] | None,
    clock: Callable[[], float],
) -> None:
    """Run the steps of `check` until the request is granted or denied.

    A step either brings its own awaitable, such as a verifier written by the user, or is an HTTP
    request for `fetch`. Without `fetch` such a request fails. There is no timeout: cancel this
    function at your own deadline, then call `check.time_out`.
    """
    while (step := check.step) is not None:
        try:
            reply = await _start_step(step, fetch)
        except (Exception, SystemExit) as exc:  # noqa: BLE001 - the flow decides: retry or deny
            check.throw(exc, clock())
        else:
            check.send(reply, clock())


def _start_step(step: Any, fetch: Callable[[Any], Awaitable[Any]] | None) -> Awaitable[Any]:
    awaitable: Awaitable[Any] | None = getattr(step, "awaitable", None)
    if awaitable is not None:
        return awaitable
    if fetch is None:
        raise RuntimeError(
            "this driver sends no HTTP requests for authorization: give the verifier its keys"
        )
    return fetch(step)
