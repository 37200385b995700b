"""The everything server in its own process, which must survive all requests and end in order."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tests.conformance import bridge, everything_server

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["bridged", "everything_at"]


@contextmanager
def everything_at(stderr: Path, *options: str) -> Iterator[str]:
    """Serve over HTTP and yield the URL. Stderr goes to the file `stderr`."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = free.getsockname()
    command = [
        sys.executable,
        everything_server.__file__,
        "--http",
        f"127.0.0.1:{address[1]}",
        *options,
    ]
    with stderr.open("wb") as log, subprocess.Popen(command, stderr=log) as process:
        try:
            _wait_for(address, process, stderr)
            yield f"http://127.0.0.1:{address[1]}/mcp"
        finally:
            process.send_signal(signal.SIGTERM)
    # The log may report a tampered request state, but no exception of a handler or of the engine.
    assert [
        line
        for line in stderr.read_text().splitlines()
        if line.startswith(("Traceback", "our own"))
    ] == []
    # uvicorn ends as if it had not caught the signal.
    assert process.returncode in (128 + signal.SIGTERM, -signal.SIGTERM)


@contextmanager
def bridged(url: str, stderr: Path) -> Iterator[str]:
    """Make the server at `url` reachable by HTTP/1.1 clients over HTTP/2, and yield the new URL."""
    target = url.split(":")[2].split("/", maxsplit=1)[0]
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = free.getsockname()
    command = [sys.executable, bridge.__file__, str(address[1]), target]
    with stderr.open("wb") as log, subprocess.Popen(command, stderr=log) as process:
        try:
            _wait_for(address, process, stderr)
            yield url.replace(target, str(address[1]))
        finally:
            process.kill()
    assert "Traceback" not in stderr.read_text()


def _wait_for(address: tuple[str, int], process: subprocess.Popen[bytes], stderr: Path) -> None:
    until = time.monotonic() + 30
    while True:
        try:
            socket.create_connection(address).close()
        except ConnectionRefusedError:
            assert process.poll() is None, stderr.read_text()
            assert time.monotonic() < until
            time.sleep(0.02)
        else:
            return
