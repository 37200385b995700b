"""A TCP connection without the steps of `trio.SocketStream` that a call doesn't need.

`SocketStream` lets other tasks run after each write, and tries to read before it waits. Neither
helps a call: its response comes later, and waiting for that lets other tasks run.
"""

from __future__ import annotations

import os
from typing import Final

import trio
from trio.lowlevel import wait_readable

__all__ = ["DirectStream"]

_READ: Final = 64 * 1024  # bytes


class DirectStream(trio.abc.Stream):
    """A TCP connection on POSIX, where a socket is read and written as a file is.

    One task uses it. `receive_some` is always a checkpoint. `send_all` isn't one if the socket
    takes all bytes at once.

    Attributes:
        transport_stream: the connection, which is closed with this one.
    """

    def __init__(self, transport_stream: trio.SocketStream) -> None:
        self.transport_stream = transport_stream
        self._fd = transport_stream.socket.fileno()  # -1 once it is closed

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        """Send bytes.

        Raises:
            trio.BrokenResourceError: the connection is broken or closed.
        """
        try:
            sent = os.write(self._fd, data)
        except BlockingIOError:
            sent = 0
        except OSError as exc:
            raise trio.BrokenResourceError from exc
        if sent < len(data):
            await self.transport_stream.send_all(data[sent:])

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        """Return the next bytes, b"" at the end.

        Raises:
            trio.BrokenResourceError: the connection is broken.
            trio.ClosedResourceError: it is closed.
        """
        while True:
            if self._fd < 0:
                raise trio.ClosedResourceError
            await wait_readable(self._fd)
            try:
                return os.read(self._fd, max_bytes or _READ)
            except BlockingIOError:
                continue  # the system said too early that there are some
            except OSError as exc:
                raise trio.BrokenResourceError from exc

    async def wait_send_all_might_not_block(self) -> None:
        """Wait until the socket takes bytes."""
        await self.transport_stream.wait_send_all_might_not_block()

    async def aclose(self) -> None:
        """Close the connection."""
        self._fd = -1
        await self.transport_stream.aclose()
