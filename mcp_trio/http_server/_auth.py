"""Run the steps of authorization checks: fetch a document, or await a verifier of the user.

1. Several requests that need the same document share one fetch, in a task of its own. The newest of
   them waits for it even after its client has disconnected: otherwise a client could cancel the
   fetch again and again, and keep the keys from all others.
2. A check has a timeout, and the number of fetches at a time is limited, regardless of the tokens
   that arrive.
3. A URL of the server's own configuration may be anywhere. A URL named by another party may lead
   into a private network only if that party is in a private network as well, to this machine only
   if that party is there, and never to a link-local address (cloud metadata services).
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import trio

from mcp_core.http import EndpointAuth
from mcp_core.runtime import AUTH_CHECK_TIMEOUT, run_auth_check
from mcp_core.urls import may_fetch_named

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_core.auth import HttpRequest, HttpResponse
    from mcp_core.http import AuthCheck, ResourceServerLike

__all__ = ["AuthStepRunner", "endpoint_auth"]

_FETCH_TIMEOUT: Final = 8.0  # seconds for one fetch, with its DNS look-ups
_MAX_FETCHES: Final = 200  # at a time

_log = logging.getLogger("mcp_trio")


def endpoint_auth(
    resource_server: ResourceServerLike | None, wall_time: Callable[[], float]
) -> EndpointAuth | None:
    """Return the authorization of an endpoint by `resource_server`; None without one.

    `wall_time` returns the seconds since 1970.
    """
    return None if resource_server is None else EndpointAuth(resource_server, wall_time, _log.log)


class AuthStepRunner:
    """Runs the steps of authorization checks, with its fetches in `nursery`."""

    def __init__(self, nursery: trio.Nursery) -> None:
        self._nursery = nursery
        self._fetching: dict[int, _SharedFetch] = {}

    def __repr__(self) -> str:
        return f"<AuthStepRunner, {len(self._fetching)} fetches>"

    async def run(self, check: AuthCheck) -> None:
        """Run the steps of a check until the request is granted or denied."""
        with trio.move_on_after(AUTH_CHECK_TIMEOUT):
            await run_auth_check(check, self._get, trio.current_time)
        check.time_out(trio.current_time())

    async def _get(self, step: Any) -> Any:
        from mcp_core.auth import FetchFailed

        fetching = self._fetching.get(id(step))
        if fetching is None:
            if len(self._fetching) >= _MAX_FETCHES:
                raise FetchFailed("too much is being fetched already")
            fetching = self._fetching[id(step)] = _SharedFetch(step)
            self._nursery.start_soon(self._run, fetching)
        if fetching.shielded_scope is not None:
            fetching.shielded_scope.shield = False
        fetching.shielded_scope = trio.CancelScope(shield=True)
        with fetching.shielded_scope:
            await fetching.over.wait()
        if fetching.response is None:
            raise FetchFailed(fetching.failure)
        return fetching.response

    async def _run(self, fetching: _SharedFetch) -> None:
        from mcp_core.auth import FetchFailed

        step = fetching.step
        try:
            with trio.move_on_after(_FETCH_TIMEOUT) as scope:
                fetching.response = await _fetch(step.request, step.named_by)
            if scope.cancelled_caught:
                fetching.failure = f"it did not complete within {_FETCH_TIMEOUT:g} s"
        except FetchFailed as exc:
            fetching.failure = str(exc)
        except Exception:  # noqa: BLE001 - the requests that wait get the failure
            _log.exception("internal error while fetching %r", step.request)
            fetching.failure = "it could not be fetched"
        finally:
            del self._fetching[id(step)]
            fetching.over.set()


async def _fetch(request: HttpRequest, named_by: str | None) -> HttpResponse:
    from mcp_trio.auth._fetch import fetch

    if named_by is None:
        return await fetch(request, allow=lambda address: True)
    publisher = await _addresses(named_by)
    return await fetch(request, allow=partial(may_fetch_named, publisher=publisher))


async def _addresses(url: str) -> list[str]:
    """Resolve the host of `url`. Return no address if that fails."""
    host = urlsplit(url).hostname
    try:
        found = await trio.socket.getaddrinfo(host, None, type=trio.socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return []
    return [str(where[0]) for *_, where in found]


class _SharedFetch:
    """A fetch in progress, shared by all requests with the same step.

    It keeps the step, so that no other object gets the same `id()`. `shielded_scope` belongs to the
    newest waiting request, which waits even when it is cancelled (rule 1). `response` is None, and
    `failure` says why, if the fetch failed.
    """

    def __init__(self, step: Any) -> None:
        self.step = step
        self.over = trio.Event()
        self.shielded_scope: trio.CancelScope | None = None
        self.response: HttpResponse | None = None
        self.failure = "it was cancelled"
