"""A server over HTTP in a process of its own: `python -m tests.harness.world.http_process uvicorn`.

It prints its port, and believes the client about its address (`X-Forwarded-For`). The argument is
`serve_http`, or the ASGI server that runs the application: `hypercorn` on trio, `uvicorn` on
asyncio.
"""

from __future__ import annotations

import socket
import sys
from functools import partial
from typing import Final
from urllib.parse import urlsplit

import trio

import mcp_asyncio_shim
import mcp_trio
from mcp_trio import Server, serve_http

PROXIES: Final = ["127.0.0.1"]


async def serve(server: Server) -> None:
    async with trio.open_nursery() as nursery:
        address = await nursery.start(partial(serve_http, server, trusted_proxies=PROXIES))
        print(urlsplit(address.url).port, flush=True)


def main() -> None:
    server, how = Server("separate"), sys.argv[1]
    if how == "serve_http":
        trio.run(serve, server)
        return
    listener = socket.create_server(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)
    if how == "uvicorn":
        import uvicorn

        shim = mcp_asyncio_shim.asgi(server, trusted_proxies=PROXIES)
        config = uvicorn.Config(shim, log_level="critical", proxy_headers=False)
        uvicorn.Server(config).run(sockets=[listener])
        return
    import hypercorn.trio

    settings = hypercorn.Config()
    settings.bind = [f"fd://{listener.fileno()}"]
    settings.errorlog = None
    app = mcp_trio.asgi(server, trusted_proxies=PROXIES)
    trio.run(hypercorn.trio.serve, app, settings)


if __name__ == "__main__":
    main()
