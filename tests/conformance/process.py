"""The everything server as a process of its own, which has to survive all that is asked of it and to end in order."""

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
    """Serve over HTTP, at the URL that this gives; `stderr` is a file for what it says there."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = free.getsockname()
    command = [sys.executable, everything_server.__file__, "--http", f"127.0.0.1:{address[1]}", *options]
    with stderr.open("wb") as said, subprocess.Popen(command, stderr=said) as process:
        try:
            _wait_for(address, process, stderr)
            yield f"http://127.0.0.1:{address[1]}/mcp"
        finally:
            process.send_signal(signal.SIGTERM)
    # A state that was tampered with is told to the log; nothing that goes wrong in a handler or in us is.
    assert [
        line for line in stderr.read_text().splitlines() if line.startswith(("Traceback", "our own"))
    ] == []
    assert process.returncode == 128 + signal.SIGTERM


@contextmanager
def bridged(url: str, stderr: Path) -> Iterator[str]:
    """The server at `url` reached over HTTP/2 by those who speak HTTP/1.1: at the URL that this gives."""
    target = url.split(":")[2].split("/", maxsplit=1)[0]
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = free.getsockname()
    command = [sys.executable, bridge.__file__, str(address[1]), target]
    with stderr.open("wb") as said, subprocess.Popen(command, stderr=said) as process:
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
