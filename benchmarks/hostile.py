"""Attacks of full size on a server and on a client, and what they cost the one that is attacked.

On a client, by a server that completes the handshake:

- `pings`: 20,000 pings in the stream of a response; all responses of the client to them hang;
- `pings_accepted`: the same, but each response is accepted, and the call is answered;
- `pages`: 10,000 pages of 1 MiB in one listing.

On a server, each beside an honest client at another address, which opens a session, calls a tool
and closes the session, over and over:

- `bodies`: 300 connections, from ten addresses, that send all but the last byte of a request of
  3.9 MB, and wait;
- `trickle`: one request of 1 MB whose body arrives at 1 KB/s;
- `sessions`: one address that opens 12,000 sessions, and closes none.

    python benchmarks/hostile.py [--peer ours|mcp] [--client COMMAND] [--server COMMAND]
                                 [--only ATTACK...] [--scale 1.0] [--patience 60] [--cap 1024]

`--peer mcp` attacks the official SDK (`mcp` 2.3) instead. `--client` and `--server` are commands to
attack anything else: `{url}` and `{action}` of a client like `attacked_client.py`, or `{port}` of a
server with `/mcp` and a tool `echo(text)`. `--scale` makes the attacks smaller. An attack is over
after PATIENCE seconds (`trickle`: six times that), and its victim is killed at CAP MiB of memory.

The memory is the peak of the process, without its children; `growth` is what an idle server did not
take. A descriptor is an open file or socket.
The last line is one JSON object with all figures. Linux only: it reads /proc.
"""

from __future__ import annotations

import argparse
import json
import select
import shlex
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, Final, Self

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

HERE: Final = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))  # the hostile server is the tests'

from tests.security.hostile_http_server import HostileHttpServer, pings  # noqa: E402

PYTHON: Final = shlex.quote(sys.executable)
# Our server has its default limits, as the command runs it.
PEERS: Final = {
    "ours": (
        f"{PYTHON} {HERE}/attacked_client.py {{url}} {{action}}",
        f"{PYTHON} -m mcp_trio run {HERE}/server.py:server --http {{port}}",
    ),
    "mcp": (
        f"{PYTHON} {HERE}/peers/sdk_attacked_client.py {{url}} {{action}}",
        f"{PYTHON} {HERE}/peers/sdk_mcpserver.py http --port {{port}} --mode session-sse",
    ),
}

MIB: Final = 1024 * 1024
VERSION: Final = "2025-11-25"
HONEST: Final = "127.0.0.1"
HOSTILE: Final = [f"127.0.0.{number}" for number in range(2, 12)]
BODY: Final = 3_900_000
HEADERS: Final = {
    "Accept": "application/json, text/event-stream",
    "Content-Type": "application/json",
}
HELLO: Final = {
    "protocolVersion": VERSION,
    "capabilities": {},
    "clientInfo": {"name": "hostile", "version": "1.0.0"},
}
# What we want of a victim: a figure, and its largest value.
GOALS: Final = {
    "pings": {"descriptors": 64, "memory": 64, "seconds": 5},
    "pings_accepted": {"descriptors": 64, "memory": 64},
    "pages": {"memory": 128},
    "bodies": {"growth": 128, "honest_failed": 0},
    "trickle": {"seconds": 330, "honest_failed": 0},
    "sessions": {"honest_failed": 0},
}

Figures = dict[str, Any]


class Victim:
    """A process, and the peaks of what it uses. The end of its `with` block kills it."""

    def __init__(self, command: str, cap: float) -> None:
        self.process = subprocess.Popen(
            shlex.split(command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self.memory = 0.0  # MiB
        self.descriptors = 0
        self.killed = False
        self._cap = cap
        self._over = threading.Event()
        self._watcher = threading.Thread(target=self._watch)
        self._watcher.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._watcher.join()
        with self.process:
            self.process.kill()

    def _watch(self) -> None:
        place = Path("/proc", str(self.process.pid))
        while not self._over.wait(0.01):
            try:
                status = (place / "status").read_text()
                descriptors = sum(1 for _ in (place / "fd").iterdir())
            except OSError:
                continue
            peak = status.partition("VmHWM:")[2].split(maxsplit=1)
            self.memory = max(self.memory, int(peak[0]) / 1024 if peak else 0)
            self.descriptors = max(self.descriptors, descriptors)
            if self.memory > self._cap:
                self.killed = True
                self.process.kill()

    def line(self, patience: float) -> str:
        """Return the next line that the victim prints, or why there is none."""
        stdout = self.process.stdout
        assert stdout is not None
        if not select.select([stdout], [], [], patience)[0]:
            return f"nothing within {patience:g} s"
        line = stdout.readline().decode().rstrip("\n")
        return line or ("killed: too much memory" if self.killed else "crashed")

    def figures(self) -> Figures:
        return {"descriptors": self.descriptors, "memory": round(self.memory, 1)}


# -- Attacks on a client ---------------------------------------------------------------------------


def attack_client(
    command: str, server: HostileHttpServer, action: str, options: argparse.Namespace
) -> Figures:
    with (
        server,
        Victim(command.format(url=server.url, action=action), options.cap) as victim,
    ):
        begins = victim.line(30)
        if begins != "begins":
            raise SystemExit(f"the client does not connect: {begins}")
        start = time.perf_counter()
        outcome = victim.line(options.patience)
        seconds = time.perf_counter() - start
        time.sleep(0.1)  # for a last look at its memory
        figures = victim.figures()
    return {**figures, "seconds": round(seconds, 2), "outcome": outcome}


def attack_by_pings(options: argparse.Namespace, *, accepts: bool) -> Figures:
    server = HostileHttpServer(
        pings(int(20_000 * options.scale)), accepts=accepts, page={"tools": []}, last_page=1
    )
    return attack_client(options.client, server, "call", options)


def attack_by_pages(options: argparse.Namespace) -> Figures:
    schema = {"type": "object", "properties": {"a": {"type": "string", "description": "b"}}}
    tools = [
        {"name": f"tool_{number}", "description": "x" * 400, "inputSchema": schema}
        for number in range(int(2_000 * min(1, options.scale * 10)))
    ]
    count = max(2, int(10_000 * options.scale))
    server = HostileHttpServer(page={"tools": tools}, last_page=count)
    return attack_client(options.client, server, "list", options) | {"pages": server.pages}


# -- Attacks on a server ---------------------------------------------------------------------------


class Session:
    """A session of a client at an address of this machine."""

    def __init__(self, port: int, address: str) -> None:
        self.http = HTTPConnection("127.0.0.1", port, timeout=20, source_address=(address, 0))
        self._headers = dict(HEADERS)

    def open(self) -> int:
        """Open a session. Return the status of the response."""
        self._headers = dict(HEADERS)
        message = {"id": 1, "method": "initialize", "params": HELLO}
        status, session = self._post(message)
        if status == 200 and session:
            self._headers |= {"Mcp-Session-Id": session, "Mcp-Protocol-Version": VERSION}
            self._post({"method": "notifications/initialized"})
        return status

    def call(self) -> int:
        params = {"name": "echo", "arguments": {"text": "x"}}
        return self._post({"id": 2, "method": "tools/call", "params": params})[0]

    def close(self) -> None:
        self.http.request("DELETE", "/mcp", headers=self._headers)
        self.http.getresponse().read()

    def _post(self, message: dict[str, Any]) -> tuple[int, str | None]:
        body = json.dumps({"jsonrpc": "2.0", **message})
        self.http.request("POST", "/mcp", body, self._headers)
        response = self.http.getresponse()
        response.read()
        return response.status, response.getheader("Mcp-Session-Id")


def be_honest(port: int) -> None:
    """Use the server until stdin is closed. Print how often it worked, and how long it took."""
    times: list[float] = []
    failed = 0
    while not select.select([sys.stdin], [], [], 0.05)[0]:
        start = time.perf_counter()
        session = Session(port, HONEST)
        try:
            if session.open() == 200 and session.call() == 200:
                times.append(1000 * (time.perf_counter() - start))
                session.close()
            else:
                failed += 1
        except (OSError, HTTPException):
            failed += 1
        finally:
            session.http.close()
    slowest = max(times, default=0.0)
    middle = median(times) if times else 0.0
    found = {"served": len(times), "failed": failed, "p50": middle, "slowest": slowest}
    print(json.dumps({f"honest_{name}": round(value, 1) for name, value in found.items()}))


@contextmanager
def attacked_server(options: argparse.Namespace) -> Iterator[tuple[int, Victim, Figures]]:
    """Start a server and an honest client, whose figures are there after the block."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    figures: Figures = {}
    with Victim(options.server.format(port=port), options.cap) as victim:
        deadline = time.perf_counter() + 30
        while True:
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                break
            except ConnectionRefusedError:
                if victim.process.poll() is not None or time.perf_counter() > deadline:
                    raise SystemExit(f"{options.server} does not listen") from None
                time.sleep(0.05)
        time.sleep(0.1)  # for a look at its memory
        before = victim.memory
        argv = [sys.executable, __file__, "--honest", str(port)]
        with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as honest:
            try:
                yield port, victim, figures
            finally:
                figures |= json.loads(honest.communicate()[0])
        figures |= victim.figures() | {"growth": round(victim.memory - before, 1)}
        if victim.killed:
            figures["killed"] = True


def unfinished(port: int, address: str, length: int) -> socket.socket:
    """Open a connection, and send the head of a request whose body has this length."""
    connection = socket.create_connection(
        ("127.0.0.1", port), timeout=20, source_address=(address, 0)
    )
    head = f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Length: {length}\r\n"
    head += "".join(f"{name}: {value}\r\n" for name, value in HEADERS.items())
    connection.sendall(f"{head}\r\n".encode())
    return connection


def attack_by_bodies(options: argparse.Namespace) -> Figures:
    count = max(1, int(300 * options.scale))
    data = b'{"jsonrpc":"2.0","id":1,"method":"ping","x":"'
    data += b"x" * (BODY - 1 - len(data))
    connections = []
    refused = 0
    with attacked_server(options) as (port, _, figures):
        for number in range(count):
            connection = unfinished(port, HOSTILE[number % len(HOSTILE)], BODY)
            connections.append(connection)
            try:
                connection.sendall(data)
            except OSError:
                pass
        time.sleep(5 * min(1, 10 * options.scale))  # while the honest client goes on
        for connection in connections:
            refused += bool(select.select([connection], [], [], 0)[0])
            connection.close()
    return figures | {"outcome": f"{refused} of {count} refused"}


def attack_by_trickle(options: argparse.Namespace) -> Figures:
    patience = 6 * options.patience
    with attacked_server(options) as (port, _, figures):
        connection = unfinished(port, HOSTILE[0], 1_000_000)
        start = time.perf_counter()
        outcome = f"open after {patience:g} s"
        try:
            while time.perf_counter() - start < patience:
                connection.sendall(b"x" * 1_000)
                if select.select([connection], [], [], 1)[0]:
                    break
            answer = connection.recv(64) if select.select([connection], [], [], 0)[0] else None
        except OSError:
            answer = b""
        if answer is not None:
            outcome = answer.partition(b"\r\n")[0].decode() or "closed"
        figures["seconds"] = round(time.perf_counter() - start, 1)
        connection.close()
    return figures | {"outcome": outcome}


def attack_by_sessions(options: argparse.Namespace) -> Figures:
    count = int(12_000 * options.scale)
    opened = 0
    statuses: dict[int, int] = {}
    with attacked_server(options) as (port, _, figures):
        deadline = time.perf_counter() + options.patience
        session = Session(port, HOSTILE[0])
        for _ in range(count):
            if time.perf_counter() > deadline:
                break
            try:
                status = session.open()
            except (OSError, HTTPException):
                session.http.close()
                status = 0
            statuses[status] = statuses.get(status, 0) + 1
            opened += status == 200
        time.sleep(1)
        session.http.close()
    refused = ", ".join(
        f"{number} of status {status}" for status, number in statuses.items() if status != 200
    )
    return figures | {"outcome": f"{opened} opened; refused: {refused or 'none'}"}


ATTACKS: Final[dict[str, Callable[[argparse.Namespace], Figures]]] = {
    "pings": lambda options: attack_by_pings(options, accepts=False),
    "pings_accepted": lambda options: attack_by_pings(options, accepts=True),
    "pages": attack_by_pages,
    "bodies": attack_by_bodies,
    "trickle": attack_by_trickle,
    "sessions": attack_by_sessions,
}


def main() -> None:
    parser = argparse.ArgumentParser(description="Attacks of full size, and what they cost.")
    parser.add_argument("--peer", choices=PEERS, default="ours")
    parser.add_argument("--client", help="a command, with {url} and {action}")
    parser.add_argument("--server", help="a command, with {port}")
    parser.add_argument("--only", nargs="+", choices=ATTACKS, default=list(ATTACKS))
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--patience", type=float, default=60.0, help="in seconds")
    parser.add_argument("--cap", type=float, default=1024.0, help="in MiB")
    parser.add_argument("--honest", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.honest:
        be_honest(options.honest)
        return
    client, server = PEERS[options.peer]
    options.client = options.client or client
    options.server = options.server or server
    columns = ("fds", "MiB", "growth", "s", "honest", "failed", "p50 ms", "max ms")
    print(f"{'attack':15}" + "".join(f"{name:>8}" for name in columns) + "  outcome")
    result: Figures = {}
    for name in options.only:
        found = ATTACKS[name](options)
        cells = [found.get(column, "") for column in ("descriptors", "memory", "growth", "seconds")]
        cells += [found.get(f"honest_{c}", "") for c in ("served", "failed", "p50", "slowest")]
        missed = [goal for goal, most in GOALS[name].items() if found[goal] > most]
        if found.pop("killed", False):
            found["outcome"] += "; killed: too much memory"
        verdict = f" [missed: {', '.join(missed)}]" if missed else ""
        row = "".join(f"{cell:>8}" for cell in cells)
        print(f"{name:15}{row}  {found['outcome']}{verdict}", flush=True)
        result |= {f"{name}_{figure}": value for figure, value in found.items()}
    print(json.dumps(result))


if __name__ == "__main__":
    main()
