"""The contract test of a `SessionStore`, on trio."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Final

from mcp_core.registry import Server
from mcp_core.runtime.sharing import check_session_store as check_in_runtime
from mcp_core.sharing import SessionStore
from mcp_trio._nursery import open_quiet_nursery
from mcp_trio._tasks import TrioTaskRuntime

__all__ = ["check_session_store"]

_KEY_SIZE: Final = 32  # bytes


async def check_session_store(make: Callable[[], SessionStore]) -> None:
    """Try whether a store of your own keeps the contract of `mcp_core.sharing.SessionStore`.

    It takes some seconds, because it waits for what must not happen. On asyncio there is
    `mcp_core.runtime.sharing.check_session_store`.

    Args:
        make: returns a store that isn't open. It is called several times, and all stores that it
            returns are one deployment, as those of several processes are. For a store in memory it
            returns the same one each time.

    Raises:
        AssertionError: the store does something else. The text says what.
        Exception: any exception that the store raises.
    """
    async with open_quiet_nursery() as nursery:
        runtime = TrioTaskRuntime(nursery)
        server = Server("check", state_keys={"check": secrets.token_bytes(_KEY_SIZE)})
        runtime.keys = server.shared_keys
        await check_in_runtime(make, runtime)
