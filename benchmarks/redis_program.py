"""A server of Redis or Valkey for one run of a benchmark."""

from __future__ import annotations

import socket
import subprocess
import tempfile
from contextlib import contextmanager
from time import sleep
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def redis_server(program: str, *options: str) -> Iterator[str]:
    """Start `program` on a free port, in a directory of its own, and yield its URL."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory() as directory:
        command = [program, "--bind", "127.0.0.1", "--port", str(port), "--save", ""]
        command += ["--dir", directory, *options]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL) as server:
            try:
                for _ in range(100):
                    try:
                        socket.create_connection(("127.0.0.1", port)).close()
                        break
                    except ConnectionRefusedError:
                        sleep(0.05)
                yield f"redis://127.0.0.1:{port}"
            finally:
                server.kill()
