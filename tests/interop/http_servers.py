"""HTTP servers of other implementations, as processes."""

from __future__ import annotations

import os
import random
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

HERE: Final = Path(__file__).parent
_START: Final = 60.0  # seconds for what a busy machine takes long to import


class Servers:
    """Run the `wanted` servers until closed. Each is a name and a mode:

    - a file here of the official Python SDK, with a mode of `sdk_http_server.py`: `("sdk_server",
      "sessions")`;
    - a node script, with its transport: `(".../server-everything/dist/index.js", "sse")`;
    - a script that takes its port, with the Python to run it.
    """

    def __init__(self, *wanted: tuple[str, str]) -> None:
        self._ports = {each: free_port() for each in wanted}
        self._running = list(_start(self._ports))
        try:
            for port in self._ports.values():
                await_listener(port)
        except BaseException:
            self.close()
            raise

    def url(self, name: str, how: str) -> str:
        return f"http://127.0.0.1:{self._ports[name, how]}{'/sse' if how == 'sse' else '/mcp'}"

    def close(self) -> None:
        for process in self._running:
            process.kill()
        for process in self._running:
            process.wait()


def _start(ports: Mapping[tuple[str, str], int]) -> Iterator[subprocess.Popen[bytes]]:
    sdk: list[str] = []
    for (name, how), port in ports.items():
        if name.endswith(".js"):
            yield _popen(["node", name, how], PORT=str(port))
        elif name.endswith(".py"):
            yield _popen([how, name, str(port)])
        else:
            sdk += [name, how, str(port)]
    if sdk:
        yield _popen([sys.executable, str(HERE / "sdk_http_server.py"), *sdk])


def _popen(words: list[str], **environment: str) -> subprocess.Popen[bytes]:
    silent = subprocess.DEVNULL
    env = os.environ | environment
    return subprocess.Popen(words, stdin=silent, stdout=silent, stderr=silent, env=env)


def free_port() -> int:
    """Return a free port for a server that cannot report one.

    It lies outside the range from which the system assigns ports, so that no other process takes it
    meanwhile.
    """
    while True:
        port = random.randrange(10_000, 32_000)
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port


def await_listener(port: int) -> None:
    end = time.monotonic() + _START
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=_START).close()
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.05)
        else:
            return
