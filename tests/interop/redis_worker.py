"""One of several workers of a server that share Redis, on a port of 127.0.0.1 that it prints.

    python -m tests.interop.redis_worker URL serve_http     on trio, or `uvicorn` on asyncio

With `MCP_TEST_REDIS` set to the URL, `tests.interop.redis_worker:app` is the application for
gunicorn.

Its tool `change` declares a tool, as its program's data would have changed: the file `URL` names no
data, so the name of the tool is in Redis too.
"""

from __future__ import annotations

import os
import socket
import sys
from functools import partial
from urllib.parse import urlsplit

import trio

import mcp_asyncio_shim
import mcp_trio
from mcp_core.registry import AcceptedElicitation, Context, Server
from tests.harness.redis_server import RespConnection

__all__ = ["URI", "make_server"]

URI = "x:1"
FORM = {"type": "object", "properties": {"name": {"type": "string"}}}


def make_server(redis: str) -> Server:
    server = Server("shop", state_keys={"2026": b"k" * 32})
    port = urlsplit(redis).port
    assert port is not None
    declared: set[str] = set()

    def declare() -> None:
        """Declare a tool for each name that Redis has."""
        with RespConnection(port) as connection:
            names = {name.decode() for name in connection.run("SMEMBERS", "names")}
        for name in sorted(names - declared):
            declared.add(name)
            server.add_tool(lambda name=name: name, name=name, description="Return its name.")

    @server.on_remote_change
    def read_again(change: mcp_trio.RemoteChange) -> None:
        declare()

    @server.tool
    def change(name: str) -> int:
        """Add a tool, and change the resource. Return this process."""
        with RespConnection(port) as connection:
            connection.run("SADD", "names", name)
        declare()
        server.changed(resource=URI)
        return os.getpid()

    @server.tool
    async def ask(context: Context) -> str:
        """Ask for a name."""
        answer = await context.elicit("Who?", FORM)
        assert isinstance(answer, AcceptedElicitation)
        return f"{answer.data['name']} at {os.getpid()}"

    @server.resource(URI)
    def one() -> str:
        """Return one."""
        return "1"

    return server


if "MCP_TEST_REDIS" in os.environ:
    # Made at import: with --preload in gunicorn's own process, before its workers are forked.
    _URL = os.environ["MCP_TEST_REDIS"]
    app = mcp_asyncio_shim.asgi(
        make_server(_URL), store=mcp_trio.RedisStore(_URL, name="shop"), sse_path="/sse"
    )


async def serve(server: Server, store: mcp_trio.RedisStore) -> None:
    async with trio.open_nursery() as nursery:
        address = await nursery.start(
            partial(mcp_trio.serve_http, server, store=store, sse_path="/sse")
        )
        print(urlsplit(address.url).port, flush=True)


def main() -> None:
    url, how = sys.argv[1:]
    server, store = make_server(url), mcp_trio.RedisStore(url, name="shop")
    if how == "serve_http":
        trio.run(serve, server, store)
        return
    import uvicorn

    listener = socket.create_server(("127.0.0.1", 0))
    app = mcp_asyncio_shim.asgi(server, store=store, sse_path="/sse")
    config = uvicorn.Config(app, log_level="critical")
    print(listener.getsockname()[1], flush=True)
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()
