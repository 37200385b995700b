"""What a guard wants done before it can say who asks: a document fetched, or a function of the user's awaited.

Rules of this file:

1. What several requests wait for is fetched once, in a task of its own. One of them, the newest, waits for it also if its client goes:
   what it brings is good for others, and who hangs up must not be able to keep it from them.
2. A request does not wait for ever at the door. Beyond a time it is refused as something that cannot be told now.
3. A URL of the server's own configuration may be anywhere, as the server may. One that somebody else has named leads into a private
   network only if who named it is there too.
4. There is a bound to what is fetched at the same time, whoever comes with whatever tokens.

It refuses to know what is judged, and how.
"""

from __future__ import annotations

import logging
from time import time
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import trio

from mcp_core.http import Door
from mcp_core.runtime import AUTH_CHECK_TIMEOUT, run_auth_check

if TYPE_CHECKING:
    from mcp_core.auth import HttpReply, HttpRequest
    from mcp_core.http import Admission, Guard

__all__ = ["Admitting", "door_of"]

# Seconds for a single fetch, with the look-ups before it.
_LONGEST_FETCH: Final = 8.0
_MOST_FETCHES: Final = 200

_log = logging.getLogger("mcp_trio")


def door_of(guard: Guard | None) -> Door | None:
    """The door that `guard` keeps, of a server on this machine."""
    return None if guard is None else Door(guard, time, _log.log)


class Admitting:
    """Does the steps of guards, its fetches in `nursery`."""

    def __init__(self, nursery: trio.Nursery) -> None:
        self._nursery = nursery
        self._fetching: dict[int, _Fetching] = {}

    def __repr__(self) -> str:
        return f"<Admitting, {len(self._fetching)} fetches>"

    async def run(self, admission: Admission) -> None:
        """Do what `admission` wants until its guard has judged."""
        with trio.move_on_after(AUTH_CHECK_TIMEOUT):
            await run_auth_check(admission, self._get, trio.current_time)
        admission.give_up(trio.current_time())

    async def _get(self, step: Any) -> Any:
        from mcp_core.auth import FetchFailed

        fetching = self._fetching.get(id(step))
        if fetching is None:
            if len(self._fetching) >= _MOST_FETCHES:
                raise FetchFailed("too much is being fetched already")
            fetching = self._fetching[id(step)] = _Fetching(step)
            self._nursery.start_soon(self._run, fetching)
        if fetching.stays is not None:
            fetching.stays.shield = False
        fetching.stays = trio.CancelScope(shield=True)
        with fetching.stays:
            await fetching.over.wait()
        if fetching.reply is None:
            raise FetchFailed(fetching.failure)
        return fetching.reply

    async def _run(self, fetching: _Fetching) -> None:
        from mcp_core.auth import FetchFailed

        step = fetching.step
        try:
            with trio.move_on_after(_LONGEST_FETCH):
                fetching.reply = await _fetched(step.request, step.named_by)
        except FetchFailed as exc:
            fetching.failure = str(exc)
        except Exception:  # noqa: BLE001 - whoever waits for it hears of it
            _log.exception("our own fault at %r", step.request)
            fetching.failure = "it could not be fetched"
        finally:
            del self._fetching[id(step)]
            fetching.over.set()


async def _fetched(request: HttpRequest, named_by: str | None) -> HttpReply:
    from mcp_core.auth import is_public_address

    from ._fetch import fetch

    if named_by is None or await _is_private(named_by):
        return await fetch(request, allow=lambda address: True)
    return await fetch(request, allow=is_public_address)


async def _is_private(url: str) -> bool:
    """Whether no address of a host is public."""
    from mcp_core.auth import is_public_address

    host = urlsplit(url).hostname
    try:
        found = await trio.socket.getaddrinfo(host, None, type=trio.socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return False
    return not any(is_public_address(str(where[0])) for *_, where in found)


class _Fetching:
    """A fetch under way. It keeps its step, so that no other one has the same identity. `stays` is who waits for it in any case."""

    def __init__(self, step: Any) -> None:
        self.step = step
        self.over = trio.Event()
        self.stays: trio.CancelScope | None = None
        self.reply: HttpReply | None = None
        self.failure = "it was given up"
