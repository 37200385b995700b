"""A hostile server in a thread, for clients of another event loop."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import trio

from mcp_trio.testing import hostile

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def in_thread(attack: str) -> Iterator[hostile.HostileServer]:
    """Run a hostile server."""
    started = threading.Event()
    found: dict[str, Any] = {}

    async def host() -> None:
        async with hostile.hostile_server(attack) as server:
            found.update(
                {
                    "server": server,
                    "end": trio.Event(),
                    "token": trio.lowlevel.current_trio_token(),
                }
            )
            started.set()
            await found["end"].wait()

    thread = threading.Thread(target=trio.run, args=(host,))
    thread.start()
    started.wait()
    try:
        yield found["server"]
    finally:
        found["token"].run_sync_soon(found["end"].set)
        thread.join()
