"""`connect_stdio` with a program whose process is played in memory: the second start, and errors.

`test_processes.py` has real processes.
"""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
import trio
import trio.testing

from mcp_core import ConnectFailed, ConnectionLost
from mcp_trio import _connect, connect_stdio
from mcp_trio._nursery import open_quiet_nursery
from tests.harness.jsonrpc import B, Message, line, result

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

INITIALIZED: Message = {
    "protocolVersion": B,
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "old", "version": "1"},
}


class ChildInMemory:
    """A program that ends at the method `ends_at`, and answers what comes before.

    Its exit status is known only after `aclose`, as that of a real one may be.
    """

    def __init__(self, ends_at: str, unread: int, recorder: object) -> None:
        self.ends_at = ends_at
        self.unread = unread
        self.recorder = recorder
        self.over = False
        self.methods: list[str] = []
        self.stream, self._end = trio.testing.memory_stream_pair()

    def describe(self) -> str:
        return " (exit status 3)" if self.over else ""

    def describe_start(self) -> str:
        return f"{self.describe()}; started without HTTPS_PROXY"

    async def aclose(self) -> None:
        await trio.lowlevel.checkpoint()
        self.over = True

    async def serve(self) -> None:
        received = b""
        while data := await self._end.receive_some():
            *raws, received = (received + data).split(b"\n")
            for raw in raws:
                message = json.loads(raw)
                self.methods.append(message["method"])
                if message["method"] == self.ends_at:
                    await self._end.aclose()
                    return
                if "id" in message:
                    value = INITIALIZED if message["method"] == "initialize" else {}
                    await self._end.send_all(line(result(message["id"], value)))


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[ChildInMemory]:
    """Make `spawn` play a `ChildInMemory`, as `ends_at` and `unread` of its command say."""
    children: list[ChildInMemory] = []

    @asynccontextmanager
    async def spawn(argv: list[str], *, recorder: object, **_: Any) -> AsyncIterator[ChildInMemory]:
        assert all(child.over for child in children)
        child = ChildInMemory(argv[1], int(argv[2]), recorder)
        children.append(child)
        async with open_quiet_nursery() as nursery:
            nursery.start_soon(child.serve)
            try:
                yield child
            finally:
                await child.aclose()
                nursery.cancel_scope.cancel()

    monkeypatch.setattr(_connect, "spawn", spawn)
    return children


async def test_command_that_ends_at_the_probe_is_started_again_without_it(
    started: list[ChildInMemory],
) -> None:
    """The second one starts after the end of the first, and gets the older handshake at once."""
    async with connect_stdio(["old", "server/discover", "0"]) as client:
        assert client.peer.dialect.version == B
        assert client.needs_handshake
        await client.ping()
    assert [child.methods for child in started] == [
        ["server/discover"],
        ["initialize", "notifications/initialized", "ping"],
    ]


@pytest.mark.parametrize(
    ("ends_at", "unread", "methods"),
    [
        ("initialize", 0, [["server/discover", "initialize"]]),
        ("server/discover", 1, [["server/discover"]]),
    ],
)
async def test_command_that_ends_is_an_error_with_what_is_known_at_its_end(
    ends_at: str, unread: int, methods: list[list[str]], started: list[ChildInMemory]
) -> None:
    """A start that ends before the probe was read, or at the handshake too, isn't repeated."""
    with pytest.raises(ConnectFailed) as caught:
        async with connect_stdio(["old", ends_at, str(unread)]):
            raise AssertionError
    assert str(caught.value).endswith(" (exit status 3); started without HTTPS_PROXY")
    assert [child.methods for child in started] == methods


async def test_command_that_answers_is_started_once_and_its_client_closed(
    started: list[ChildInMemory], tmp_path: Path
) -> None:
    trace = tmp_path / "a.mcp.jsonl"
    async with connect_stdio(["old", "never", "0"], versions=[B], record=trace) as client:
        assert not client.needs_handshake
    [child] = started
    assert child.recorder is not None
    with pytest.raises(ConnectionLost):
        await client.ping()
