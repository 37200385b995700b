"""The memory of a server that is flooded with tasks, and whether other clients still have room."""

from __future__ import annotations

import http.client
import itertools
import json
import subprocess
import sys
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.harness.world.waiting import PATIENCE
from tests.task_play.wires import CAPABILITIES, META, TASKS, D, E

if TYPE_CHECKING:
    from collections.abc import Iterator

TEXT: Final = "x" * 3_900_000
CALLS: Final = 60  # many more than have room: kept bodies of the others would be over 160 MiB
# MiB, by the number of addresses. Many of them together use all of the bytes that tasks may have,
# and a body of a request that is refused takes memory beside those.
MOST: Final = {1: 128, 50: 160}
DAY: Final = 86_400_000  # ms

pytestmark = [
    pytest.mark.perf,
    pytest.mark.timeout(300),
    pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc"),
]


class Flooded:
    """A server in a process of its own."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        self._status = Path(f"/proc/{process.pid}/status")
        self._connection = http.client.HTTPConnection(
            "127.0.0.1", int(process.stdout.readline()), timeout=PATIENCE
        )
        self._ids = itertools.count(1)

    def close(self) -> None:
        self._connection.close()

    def memory(self, name: str) -> int:
        """Return `VmRSS`, the memory now, or `VmHWM`, the most that there was, in MiB."""
        for line in self._status.read_text().splitlines():
            if line.startswith(name):
                return int(line.split()[1]) // 1024
        raise AssertionError(name)

    def request(
        self, version: str, address: str, method: str, params: dict[str, Any], session: str = ""
    ) -> tuple[dict[str, Any], str]:
        """Send a request from an address. Return the response, and the session that it began."""
        headers = {
            "content-type": "application/json",
            "accept": "application/json, text/event-stream",
            "x-forwarded-for": address,
        }
        if version == E:
            params = params | {
                "_meta": {
                    f"{META}protocolVersion": E,
                    f"{META}clientCapabilities": {"extensions": {TASKS: {}}},
                }
            }
            headers |= {"mcp-protocol-version": E, "mcp-method": method, "mcp-name": "hold"}
        if session:
            headers["mcp-session-id"] = session
        message = {"jsonrpc": "2.0", "id": next(self._ids), "method": method, "params": params}
        self._connection.request("POST", "/mcp", json.dumps(message), headers)
        response = self._connection.getresponse()
        found = response.read()
        return json.loads(found), response.headers.get("mcp-session-id", "")

    def create(self, version: str, address: str, text: str) -> bool:
        """Create a task, in a session of its own that ends at once. Return False if refused."""
        params: dict[str, Any] = {"name": "hold", "arguments": {"text": text}}
        session = ""
        if version == D:
            params["task"] = {"ttl": DAY}
            hello = {"protocolVersion": D, "capabilities": CAPABILITIES, "clientInfo": INFO}
            _, session = self.request(D, address, "initialize", hello)
        response, _ = self.request(version, address, "tools/call", params, session)
        if session:
            self._connection.request("DELETE", "/mcp", headers={"mcp-session-id": session})
            self._connection.getresponse().read()
        return "result" in response


INFO: Final = {"name": "flood", "version": "1"}


@contextmanager
def flooded(driver: str, path: str) -> Iterator[Flooded]:
    command = [sys.executable, "-m", "tests.task_play.flood", driver, path]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            with closing(Flooded(process)) as server:
                yield server
        finally:
            process.kill()


# Each value is in two of the rows that are not slow.
@pytest.mark.parametrize(
    ("addresses", "store", "driver"),
    [
        (1, "memory", "trio"),
        (1, "file", "asyncio"),
        (50, "memory", "asyncio"),
        (50, "file", "trio"),
        pytest.param(1, "memory", "asyncio", marks=pytest.mark.slow),
        pytest.param(1, "file", "trio", marks=pytest.mark.slow),
        pytest.param(50, "memory", "trio", marks=pytest.mark.slow),
        pytest.param(50, "file", "asyncio", marks=pytest.mark.slow),
    ],
)
def test_flood_of_long_tasks_takes_bounded_memory(
    driver: str, store: str, addresses: int, tmp_path: Path
) -> None:
    """Another address creates its tasks in both revisions after the flood has met its limit."""
    tmp_path.chmod(0o700)
    with flooded(driver, str(tmp_path / "tasks.db") if store == "file" else "") as server:
        before = server.memory("VmRSS")
        made = 0
        for number in range(CALLS):
            address = f"198.51.100.{number % addresses}"
            made += server.create((E, D)[number % 2], address, TEXT)
        friends = [server.create(version, "203.0.113.5", "short") for version in (D, E)]
        found = server.memory("VmRSS"), server.memory("VmHWM")
        print(f"{before} MiB, then {found[0]}, at most {found[1]}; {made} tasks")
        assert friends == [True, True]
        assert 0 < made < CALLS
        assert found[1] <= MOST[addresses]
