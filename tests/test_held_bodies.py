"""The memory of a server whose clients begin long bodies from ten addresses and end none."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

import h2.config
import h2.connection
import h2.events
import pytest

from tests.harness.world.waiting import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST: Final = 128  # MiB above the memory of the idle server
ADDRESSES: Final = 10
PIECE: Final = 4_000  # bytes
QUIET: Final = 1.0  # seconds without progress after which the server takes no more

pytestmark = [
    pytest.mark.perf,
    pytest.mark.timeout(300),
    pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc"),
]


class Sender(Protocol):
    """A connection that sends the bodies of one or more requests, but for their last byte."""

    statuses: list[bytes]

    def step(self) -> bool:
        """Send and receive what is possible now. Return False if that was nothing."""

    def close(self) -> None:
        """Close the connection."""


class _Connection:
    def __init__(self, port: int) -> None:
        self.statuses: list[bytes] = []
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
        self._socket.setblocking(False)
        self._to_send = bytearray()
        self._is_over = False

    def close(self) -> None:
        self._socket.close()

    def _receive(self) -> bytes | None:
        try:
            data = self._socket.recv(65_536)
        except BlockingIOError:
            return None
        except OSError:
            data = b""
        self._is_over = not data
        return data

    def _send(self) -> bool:
        try:
            del self._to_send[: self._socket.send(self._to_send)]
        except BlockingIOError:
            return False
        except OSError:
            self._is_over = True
        return True


class Http1(_Connection):
    """A connection with one request."""

    def __init__(self, port: int, address: str, size: int) -> None:
        super().__init__(port)
        lines = [f"{name}: {value}" for name, value in headers(port, address, size)]
        self._to_send += "\r\n".join(["POST /mcp HTTP/1.1", *lines, "\r\n"]).encode()
        self._left = size - 1

    def step(self) -> bool:
        if self._is_over:
            return False
        data = self._receive()
        if data:
            self.statuses.append(data.split(b" ", 2)[1])
            self._is_over = True
        if self._is_over:
            return True
        if not self._to_send:
            count = min(self._left, PIECE)
            self._left -= count
            self._to_send += b"x" * count
        return bool(self._to_send) and self._send()


class Http2(_Connection):
    """A connection with `count` requests."""

    def __init__(self, port: int, address: str, size: int, count: int) -> None:
        super().__init__(port)
        self._h2 = h2.connection.H2Connection(h2.config.H2Configuration())
        self._h2.initiate_connection()
        self._left: dict[int, int] = {}
        special = {":method": "POST", ":path": "/mcp", ":scheme": "http"}
        special[":authority"] = f"127.0.0.1:{port}"
        for _ in range(count):
            stream = self._h2.get_next_available_stream_id()
            self._h2.send_headers(stream, [*special.items(), *headers(port, address, size)[1:]])
            self._left[stream] = size - 1

    def step(self) -> bool:
        if self._is_over:
            return False
        data = self._receive()
        for event in self._h2.receive_data(data) if data else ():
            if isinstance(event, h2.events.ResponseReceived):
                self.statuses += [value for name, value in event.headers if name == b":status"]
                self._left.pop(event.stream_id, None)
            elif isinstance(event, h2.events.StreamReset):
                self._left.pop(event.stream_id, None)
        for stream in [*self._left] if len(self._to_send) < PIECE else ():
            room = self._h2.local_flow_control_window(stream)
            count = min(self._left[stream], PIECE, room)
            if count:
                self._left[stream] -= count
                self._h2.send_data(stream, b"x" * count)
        self._to_send += self._h2.data_to_send()
        return bool(data) or (bool(self._to_send) and self._send())


def headers(port: int, address: str, size: int) -> list[tuple[str, str]]:
    return [
        ("host", f"127.0.0.1:{port}"),
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
        ("x-forwarded-for", address),
        ("content-length", str(size)),
    ]


def memory(pid: int, name: str) -> int:
    """Return `VmRSS`, the memory now, or `VmHWM`, the most that there was, in MiB."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(name):
            return int(line.split()[1]) // 1024
    raise AssertionError(name)


@pytest.fixture
def server(request: pytest.FixtureRequest) -> Iterator[tuple[int, int]]:
    """The process id and the port of a server, which has answered a request."""
    command = [sys.executable, "-m", "tests.harness.world.http_process", request.param]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            port = int(process.stdout.readline())
            with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as first:
                first.sendall(f"POST /mcp HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\n".encode())
                first.sendall(b"content-length: 0\r\n\r\n")
                assert first.recv(1_000)
            yield process.pid, port
        finally:
            process.kill()


@pytest.mark.parametrize(
    ("server", "protocol", "count", "size"),
    [
        pytest.param("serve_http", 1, 10, 4_000_000, marks=pytest.mark.slow),
        ("serve_http", 1, 30, 1_000_000),
        ("serve_http", 2, 10, 4_000_000),
        pytest.param("serve_http", 2, 30, 1_000_000, marks=pytest.mark.slow),
        ("uvicorn", 1, 10, 4_000_000),
        pytest.param("uvicorn", 1, 30, 1_000_000, marks=pytest.mark.slow),
        ("hypercorn", 1, 10, 4_000_000),
    ],
    indirect=["server"],
)
def test_bodies_that_ten_addresses_hold_take_bounded_memory(
    server: tuple[int, int], protocol: int, count: int, size: int
) -> None:
    """Each sender goes on until all are idle: only 429 and 503 refuse, and memory has a bound."""
    pid, port = server
    before = memory(pid, "VmRSS")
    with ExitStack() as stack:
        senders: list[Sender] = []
        for number in range(ADDRESSES):
            address = f"198.51.100.{number}"
            if protocol == 2:
                senders.append(Http2(port, address, size, count))
            else:
                senders += [Http1(port, address, size) for _ in range(count)]
        for sender in senders:
            stack.callback(sender.close)
        last = time.monotonic()
        while time.monotonic() < last + QUIET:
            steps = [sender.step() for sender in senders]
            if any(steps):
                last = time.monotonic()
            else:
                time.sleep(0.01)
        found = memory(pid, "VmHWM") - before
    statuses = Counter(status for sender in senders for status in sender.statuses)
    print(f"{before} MiB, at most {found} more; {statuses}")
    assert found <= MOST
    assert set(statuses) <= {b"429", b"503"}
    assert statuses[b"503"] > 0
