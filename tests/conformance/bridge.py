"""A proxy from HTTP/1.1 to HTTP/2, so that the official suite, which uses HTTP/1.1, reaches a
server over HTTP/2.

`python bridge.py PORT TARGET` listens on PORT of this machine and repeats each request on one
HTTP/2 connection to the port TARGET. Headers are not changed. If the client disconnects during a
response, the request on the other side is cancelled.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import h11
import trio

from mcp_core import ConnectionLost
from mcp_core.http import Body, Head, RequestHead
from mcp_trio.http_client._connector import Connector
from mcp_trio.http_client._h2_connection import H2ClientConnection

if TYPE_CHECKING:
    from mcp_core.http import Action

__all__ = ["main"]


class Bridge:
    """A proxy to the server that `way` connects to. `client` is the current HTTP/2 connection."""

    def __init__(self, connector: Connector) -> None:
        self.connector = connector
        self.client: H2ClientConnection | None = None
        self._connecting = trio.Lock()

    async def connection(self) -> H2ClientConnection:
        async with self._connecting:
            if self.client is None or self.client.server_closed():
                client = await self.connector.connect()
                assert isinstance(client, H2ClientConnection)
                self.client = client
            return self.client

    async def serve(self, stream: trio.abc.Stream) -> None:
        """Serve one HTTP/1.1 connection."""
        http = h11.Connection(h11.SERVER)
        async with stream:
            try:
                while (request := await self._request(http, stream)) is not None:
                    await self._exchange(http, stream, *request)
                    if http.states != {h11.CLIENT: h11.DONE, h11.SERVER: h11.DONE}:
                        return
                    http.start_next_cycle()
            except (trio.BrokenResourceError, h11.ProtocolError, ConnectionLost) as exc:
                print(f"{type(exc).__name__}: {exc}", file=sys.stderr)

    async def _request(
        self, http: h11.Connection, stream: trio.abc.Stream
    ) -> tuple[h11.Request, bytes] | None:
        head, body = None, b""
        while True:
            event = http.next_event()
            if event is h11.NEED_DATA:
                http.receive_data(bytes(await stream.receive_some()))
            elif isinstance(event, h11.Request):
                head = event
            elif isinstance(event, h11.Data):
                body += event.data
            elif isinstance(event, h11.EndOfMessage) and head is not None:
                return head, body
            else:
                return None

    async def _exchange(
        self, http: h11.Connection, stream: trio.abc.Stream, request: h11.Request, body: bytes
    ) -> None:
        hop_by_hop = (b"content-length", b"connection", b"transfer-encoding", b"keep-alive")
        headers = [
            (bytes(name), bytes(value)) for name, value in request.headers if name not in hop_by_hop
        ]
        head = RequestHead(bytes(request.method), bytes(request.target), headers)
        send_actions, receive_actions = trio.open_memory_channel[Any](100_000)

        async def forward() -> None:
            with send_actions:
                await (await self.connection()).run(head, body, put)

        def put(actions: list[Action]) -> None:
            for action in actions:
                send_actions.send_nowait(action)

        async def watch() -> None:
            # Any input means that the client disconnected: it sends nothing before the response.
            http.receive_data(bytes(await stream.receive_some()))
            nursery.cancel_scope.cancel()

        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(watch)
                nursery.start_soon(forward)
                async for action in receive_actions:
                    await stream.send_all(_serialize(http, action))
                nursery.cancel_scope.cancel()
        except* (ConnectionLost, trio.BrokenResourceError) as group:
            raise group.exceptions[0] from None


def _serialize(http: h11.Connection, action: Action) -> bytes:
    if isinstance(action, Head):
        return http.send(h11.Response(status_code=action.status, headers=action.headers)) or b""
    if isinstance(action, Body):
        return http.send(h11.Data(data=action.data)) or b""
    return http.send(h11.EndOfMessage()) or b""


async def main(port: int, target: int) -> None:
    """Serve until cancelled."""
    connector = Connector("http", "127.0.0.1", target, proxy=None, prior_knowledge=True)
    bridge = Bridge(connector)
    async with trio.open_nursery() as nursery:
        connector.nursery = nursery
        try:
            await trio.serve_tcp(bridge.serve, port, host="127.0.0.1")
        finally:
            if bridge.client is not None:
                await bridge.client.aclose()


if __name__ == "__main__":
    trio.run(main, int(sys.argv[1]), int(sys.argv[2]))
