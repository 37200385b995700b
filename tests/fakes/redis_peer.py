"""A server that speaks RESP3 and says what a test wants. It knows no command but the log-in.

Real servers are in `tests/harness/redis_server.py`. This one fails as they rarely do.
"""

from __future__ import annotations

import socket
import ssl
import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["CLOSE", "RedisPeer", "bulk", "error"]

HELLO = b"%4\r\n+server\r\n+redis\r\n+version\r\n+7.2.0\r\n+proto\r\n:3\r\n+id\r\n:1\r\n"
CLOSE = b""  # as a response: the connection is closed


def bulk(*texts: bytes) -> bytes:
    """Return an array of texts."""
    return b"*%d\r\n" % len(texts) + b"".join(b"$%d\r\n%b\r\n" % (len(t), t) for t in texts)


def error(text: str) -> bytes:
    return b"-%b\r\n" % text.encode()


class RedisPeer:
    """Listens on 127.0.0.1 while it is entered. `respond` may be replaced meanwhile.

    Args:
        respond: returns the response to a command, or None to let it wait.
        hello: the response to the log-in, None to let it wait.
        context: for TLS.
        path: a Unix socket instead of a port.

    Attributes:
        commands: all commands but those of the log-in.
        hellos: the arguments of each log-in.
    """

    def __init__(
        self,
        respond: Callable[[list[bytes]], bytes | None] = lambda command: b"+OK\r\n",
        *,
        hello: bytes | None = HELLO,
        context: ssl.SSLContext | None = None,
        path: Path | None = None,
    ) -> None:
        self.respond = respond
        self.hello = hello
        self.commands: list[list[bytes]] = []
        self.hellos: list[list[bytes]] = []
        self._context = context
        self._path = path
        self._open: list[socket.socket] = []
        self._threads: list[threading.Thread] = []

    @property
    def url(self) -> str:
        scheme = "rediss" if self._context else "redis"
        return f"unix://{self._path}" if self._path else f"{scheme}://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        if self._path:
            self._listener = socket.socket(socket.AF_UNIX)
            self._listener.bind(str(self._path))
            self._listener.listen()
        else:
            self._listener = socket.create_server(("127.0.0.1", 0))
            self.port: int = self._listener.getsockname()[1]
        self._start(self._accept)
        return self

    def __exit__(self, *exc: object) -> None:
        # Closing alone wakes no thread that waits.
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.drop()
        for thread in self._threads:
            thread.join(5)

    @property
    def connections(self) -> int:
        """How many are open."""
        return len(self._open)

    def drop(self) -> None:
        """Close all connections."""
        for connection in list(self._open):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def _start(self, function: Callable[..., None], *arguments: Any) -> None:
        thread = threading.Thread(target=function, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                self._open.append(connection)
                self._start(self._serve, connection)

    def _serve(self, plain: socket.socket) -> None:
        connection = plain
        try:
            if self._context:
                connection = self._context.wrap_socket(plain, server_side=True)
                self._open[self._open.index(plain)] = plain = connection
            with connection.makefile("rb") as file:
                while header := file.readline():
                    command = [self._text(file) for _ in range(int(header[1:]))]
                    response = self._response(command)
                    if response == CLOSE:
                        return
                    if response is not None:
                        connection.sendall(response)
        except (OSError, ValueError):
            pass
        finally:
            if plain in self._open:
                self._open.remove(plain)
            connection.close()

    def _text(self, file: Any) -> bytes:
        size = int(file.readline()[1:])
        data: bytes = file.read(size + 2)
        return data[:-2]

    def _response(self, command: list[bytes]) -> bytes | None:
        if command[0] == b"HELLO":
            self.hellos.append(command[1:])
            return self.hello
        if command[0].startswith(b"CLIENT") or command[0] == b"SELECT":
            return b"+OK\r\n"
        self.commands.append(command)
        return self.respond(command)
