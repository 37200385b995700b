"""What a guard wants done before it can say who asks: a document fetched, or a function of the user's awaited.

Rules of this file:

1. What several requests wait for is fetched once, in a task of its own: a client who goes takes it from nobody else.
2. A request does not wait for ever at the door. Beyond a time it is refused as something that cannot be told now.
3. URLs that are fetched here stand in the server's own configuration, or in what its authorization server has published: they may
   be in a private network, as the server is.

It refuses to know what is judged, and how.
"""

from __future__ import annotations

import logging
from functools import partial
from time import time
from typing import TYPE_CHECKING, Any, Final

import trio

from mcp_core.http import Door

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mcp_core.auth import HttpReply, HttpRequest
    from mcp_core.http import Admission, Guard

    Fetcher = Callable[[HttpRequest], Awaitable[HttpReply]]

__all__ = ["Admitting", "door_of"]

# Longer than the fetches of one admission take if nobody answers, and shorter than a client may take for its body.
_LONGEST: Final = 20.0

_log = logging.getLogger("mcp_trio")


def door_of(guard: Guard | None) -> Door | None:
    """The door that `guard` keeps, of a server on this machine."""
    return Door.of(guard, time, _report)


def _report(text: str, exc: BaseException | None) -> None:
    if exc is None:
        _log.info("%s", text)
    else:
        _log.error("%s", text, exc_info=exc)


class Admitting:
    """Does the steps of guards, its fetches in `nursery`. `fetch` is for tests; by default it is the real one."""

    def __init__(self, nursery: trio.Nursery, fetch: Fetcher | None = None) -> None:
        self._nursery = nursery
        self._fetch = fetch
        self._fetching: dict[int, _Fetching] = {}

    def __repr__(self) -> str:
        return f"<Admitting, {len(self._fetching)} fetches>"

    async def run(self, admission: Admission) -> None:
        """Do what `admission` wants until its guard has judged."""
        with trio.move_on_after(_LONGEST):
            await admission.done_by(self._get, trio.current_time)
        admission.give_up(trio.current_time())

    async def _get(self, step: Any) -> Any:
        from mcp_core.auth import FetchFailed

        fetching = self._fetching.get(id(step))
        if fetching is None:
            fetching = self._fetching[id(step)] = _Fetching(step)
            self._nursery.start_soon(self._run, fetching)
        await fetching.over.wait()
        if fetching.failure is not None:
            raise FetchFailed(fetching.failure)
        return fetching.reply

    async def _run(self, fetching: _Fetching) -> None:
        from mcp_core.auth import FetchFailed

        fetch = self._fetch
        if fetch is None:
            from ._fetch import fetch as real

            fetch = partial(real, allow=lambda address: True)
        try:
            fetching.reply = await fetch(fetching.step.request)
        except FetchFailed as exc:
            fetching.failure = str(exc)
        except Exception:  # noqa: BLE001 - whoever waits for it hears of it
            _log.exception("our own fault at %r", fetching.step.request)
            fetching.failure = "it could not be fetched"
        finally:
            del self._fetching[id(fetching.step)]
            fetching.over.set()


class _Fetching:
    """A fetch under way. It keeps its step, so that no other one has the same identity."""

    def __init__(self, step: Any) -> None:
        self.step = step
        self.over = trio.Event()
        self.reply: HttpReply | None = None
        self.failure: str | None = None
