"""A server over HTTP on 127.0.0.1 whose tasks run until it ends, for a flood of them.

    python -m tests.task_play.flood trio PATH      or asyncio; with PATH tasks are in that file

It prints its port, and believes the client about its address (`X-Forwarded-For`).
"""

from __future__ import annotations

import socket
import sys
from functools import partial
from urllib.parse import urlsplit

import anyio
import trio

import mcp_asyncio_shim
from mcp_trio import Server, SqliteTaskStore, Tasks, serve_http

PROXIES = ["127.0.0.1"]


def make_server(path: str) -> Server:
    server = Server("flooded", tasks=Tasks(store=SqliteTaskStore(path) if path else None))

    @server.tool(task="optional")
    async def hold(text: str = "") -> None:
        """Keep a text until cancelled."""
        await anyio.sleep_forever()

    return server


async def serve(server: Server) -> None:
    async with trio.open_nursery() as nursery:
        address = await nursery.start(partial(serve_http, server, trusted_proxies=PROXIES))
        print(urlsplit(address.url).port, flush=True)


def main() -> None:
    driver, path = sys.argv[1], (sys.argv[2:] or [""])[0]
    server = make_server(path)
    if driver == "trio":
        trio.run(serve, server)
        return
    import uvicorn

    listener = socket.create_server(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)
    app = mcp_asyncio_shim.asgi(server, trusted_proxies=PROXIES)
    config = uvicorn.Config(app, log_level="critical", proxy_headers=False)
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()
