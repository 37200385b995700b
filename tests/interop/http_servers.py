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
from typing import Final

from tests.waiting import PATIENCE

HERE: Final = Path(__file__).parent


class Servers:
    """Run the `wanted` servers until closed. Each is a name and a mode:

    - a file here of the official Python SDK, with a mode of `sdk_http_server.py`: `("sdk_server",
      "sessions")`;
    - a node script, with its transport: `(".../server-everything/dist/index.js", "sse")`.
    """

    def __init__(self, *wanted: tuple[str, str]) -> None:
        self._ports = {each: free_port() for each in wanted}
        self._running = [_start(*each, port) for each, port in self._ports.items()]
        try:
            for port in self._ports.values():
                _await_listener(port)
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


def _start(name: str, how: str, port: int) -> subprocess.Popen[bytes]:
    if name.endswith(".js"):
        argv = ["node", name, how]
    else:
        argv = [sys.executable, str(HERE / "sdk_http_server.py"), name, how, str(port)]
    silent = subprocess.DEVNULL
    environment = {**os.environ, "PORT": str(port)}
    return subprocess.Popen(argv, stdin=silent, stdout=silent, stderr=silent, env=environment)


def free_port() -> int:
    """Return a free port for a server that cannot report one.

    It lies outside the range from which the system assigns ports, so that no other process takes it
    meanwhile.
    """
    while True:
        port = random.randrange(10_000, 32_000)
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port


def _await_listener(port: int) -> None:
    end = time.monotonic() + PATIENCE
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=PATIENCE).close()
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.05)
        else:
            return
