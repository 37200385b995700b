"""Real ASGI servers in the process of the test: hypercorn on trio, and uvicorn on asyncio."""

from __future__ import annotations

import asyncio
import socket
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Literal

import trio
import uvicorn
from hypercorn.config import Config
from hypercorn.trio import serve

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from contextlib import AbstractAsyncContextManager

    from tests.harness.wire.asgi import App

    # Serves an application, and yields the URL of its root.
    Serving = Callable[[App], AbstractAsyncContextManager[str]]

__all__ = ["under_hypercorn", "under_uvicorn"]


@asynccontextmanager
async def under_hypercorn(app: App) -> AsyncIterator[str]:
    config = Config()
    config.bind = ["127.0.0.1:0"]
    config.graceful_timeout = 1
    stop = trio.Event()
    async with trio.open_nursery() as nursery:
        [url] = await nursery.start(
            partial(serve, app, config, shutdown_trigger=stop.wait, mode="asgi")
        )
        try:
            yield url
        finally:
            stop.set()


@asynccontextmanager
async def under_uvicorn(app: App, ws: Literal["none", "wsproto"] = "none") -> AsyncIterator[str]:
    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(
        app, log_level="warning", lifespan="on", ws=ws, timeout_graceful_shutdown=1
    )
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        await serving
