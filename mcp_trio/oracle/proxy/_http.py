"""A proxy in front of one HTTP server: listen, and connect each client to the server.

1. One `ProxyPolicy` decides for all connections which requests pass.
2. No bytes from a client or the server end the proxy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import trio

from mcp_core.http import HostOriginPolicy, ProxyPolicy
from mcp_trio._listeners import serve_connections
from mcp_trio.http_client._connector import Connector
from mcp_trio.http_server._serve import address_of, open_listeners, warn_of_missing_hosts

from ._http_connection import ProxyConnection, Upstream

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp_core.adapters import Recorder
    from mcp_core.http import Url
    from mcp_trio.http_server._connection import AccessLogEntry
    from mcp_trio.http_server._serve import HttpAddress

__all__ = ["serve_http_proxy"]

# Each costs two descriptors; systems allow 1,024 or more.
_MAX_CONNECTIONS: Final = 400


async def serve_http_proxy(
    url: Url,
    host: str = "127.0.0.1",
    port: int = 0,
    *,
    headers: Mapping[str, str] | None = None,
    recorder: Recorder | None = None,
    on_exchange: Callable[[AccessLogEntry], object] | None = None,
    max_connections: int = _MAX_CONNECTIONS,
    task_status: trio.TaskStatus[HttpAddress] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Listen for HTTP/1.1 requests and pass them on to a server, until cancelled.

    Without `headers`, clients can reach all of the server's paths. With `headers`, they can reach
    only `url` itself, the target that an open HTTP+SSE stream has announced, and the authorization
    metadata, which is requested without the headers.

    `address = await nursery.start(serve_http_proxy, url)` returns an `HttpAddress`. Its `url` has
    the path and query of `url`.

    Args:
        url: the server's URL.
        host: the address to listen on. By default other machines cannot connect.
        port: the port, or 0, the default, for a free one.
        headers: sent with each request. They replace the client's headers of the same names.
        recorder: records the requests, as the client has sent them, and the responses.
        on_exchange: called with an `AccessLogEntry` after each exchange. It must not block.
        max_connections: the maximum of open connections; more are closed at once.
        task_status: passed by `nursery.start`.

    *Resource handling*: the listener and all connections are closed at the end.

    Raises:
        CannotListen: this program cannot listen on the address; the text names the cure.
        ConnectFailed: the environment variables for proxies name one that cannot be used.
    """
    upstream = Upstream(url, Connector(*url.origin), headers or {})
    own = HostOriginPolicy(host, scheme="http")
    policy = ProxyPolicy(own, url, adds_headers=upstream.adds_headers)
    listeners = await open_listeners(host, port)
    warn_of_missing_hosts(listeners, host, "give them a URL with an address in it")
    address = address_of(listeners[0], host, url.target.decode(), "http")

    async def serve(stream: trio.SocketStream) -> None:
        await ProxyConnection(stream, upstream, policy, recorder, on_exchange).run()

    task_status.started(address)
    await serve_connections(serve, listeners, max_connections)
