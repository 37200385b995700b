"""Serve a recorded conversation on a byte stream: stdio, or a stream in memory.

All that is due is sent before more is read. A client that doesn't read delays only itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import trio

from mcp_core.trace import ReplayStream

if TYPE_CHECKING:
    from mcp_core.trace import ReplayServer

__all__ = ["serve_on_stream"]

_READ_SIZE: Final = 64 * 1024


async def serve_on_stream(server: ReplayServer, stream: trio.abc.Stream) -> None:
    """Serve one live client on `stream`, until it disconnects. `stream` stays open."""
    session = ReplayStream(server, trio.current_time())
    try:
        while True:
            output = session.data_to_send()
            if output:
                await stream.send_all(output)
            data: bytes | None = None
            with trio.move_on_at(session.next_deadline):
                data = bytes(await stream.receive_some(_READ_SIZE))
            if data is None:
                session.advance(trio.current_time())
            elif not data:
                return
            else:
                session.receive_data(data, trio.current_time())
    except trio.BrokenResourceError:
        return  # the client has disconnected
