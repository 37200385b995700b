"""A worker over HTTP on 127.0.0.1, with its tasks in Redis, beside others like it.

    python -m tests.task_play.workers URL serve_http      or uvicorn; it prints its port

With `MCP_TEST_REDIS` set to the URL, `tests.task_play.workers:app` is the application for gunicorn.
"""

from __future__ import annotations

import os
import socket
import sys
from functools import partial
from urllib.parse import urlsplit

import anyio
import trio

import mcp_asyncio_shim
from mcp_core.adapters import RedisStore
from mcp_core.registry import Context, Server, TaskOptions, Tasks
from mcp_core.tasks import TaskLimits
from mcp_trio import serve_http
from tests.task_play.lab import Name


def make_server(url: str) -> Server:
    """Return the server. All its clients are one owner, as those of one user would be."""
    tasks = Tasks(
        store=RedisStore(url, name="workers").tasks,
        limits=TaskLimits(lease=1.0),
        owner=lambda request, owner: "us",
    )
    server = Server("worker", tasks=tasks, state_keys={"a": b"k" * 32})
    cancelled = anyio.Event()

    @server.tool
    def who() -> int:
        """Return this process."""
        return os.getpid()

    @server.tool
    async def until_cancelled() -> None:
        """Wait until a handler of this process was cancelled. It tells one only."""
        nonlocal cancelled
        await cancelled.wait()
        cancelled = anyio.Event()

    @server.tool(task="optional")
    async def ask(context: Context) -> str:
        """Ask for a name."""
        answer = await context.elicit("Who?", Name)
        name = answer.data.name if answer.action == "accept" else answer.action
        return f"{name} by {os.getpid()}"

    @server.tool(task=TaskOptions(rerun=True))
    async def wait() -> str:
        """Wait until cancelled."""
        try:
            await anyio.sleep_forever()
        finally:
            cancelled.set()
        return ""

    return server


if "MCP_TEST_REDIS" in os.environ:
    # Made at import: with --preload in gunicorn's own process, before its workers are forked.
    app = mcp_asyncio_shim.asgi(make_server(os.environ["MCP_TEST_REDIS"]))


async def serve(server: Server) -> None:
    async with trio.open_nursery() as nursery:
        address = await nursery.start(partial(serve_http, server))
        print(urlsplit(address.url).port, flush=True)


def main() -> None:
    url, how = sys.argv[1:]
    server = make_server(url)
    if how == "serve_http":
        trio.run(serve, server)
        return
    import uvicorn

    listener = socket.create_server(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)
    config = uvicorn.Config(mcp_asyncio_shim.asgi(server), log_level="critical")
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()
