"""`connect` with a command whose process is played in memory: the second start, and its errors.

`test_stdio.py` has real processes.
"""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from mcp_asyncio_shim import Client, _connect, connect
from mcp_core import ConnectFailed, ConnectionLost
from tests.harness.asyncio_memory import MemoryEnd, asyncio_memory_pair
from tests.harness.jsonrpc import B, C, Message, line, result
from tests.harness.traces import read_file
from tests.harness.world.loop import run

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

INITIALIZED: Message = {
    "protocolVersion": B,
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "old", "version": "1"},
}


class MemoryChild:
    """A process that ends at the first of `ends_at`, and answers what comes before.

    Of a process that has ended `describe` tells more once it was waited for, as of a real one.
    """

    def __init__(self, ends_at: str, unread: int) -> None:
        self.ends_at = ends_at
        self.unread = unread
        self.over = False
        self.methods: list[str] = []
        self.end: MemoryEnd
        ours, self.end = asyncio_memory_pair()
        self.streams = ours.reader, ours.writer

    def describe(self) -> str:
        return "; it has ended with status 3" if self.over else ""

    async def wait_for_end(self) -> None:
        await asyncio.sleep(0.1)

    async def serve(self) -> None:
        while raw := await self.end.reader.readline():
            message = json.loads(raw)
            self.methods.append(message["method"])
            if message["method"] == self.ends_at:
                break
            if "id" in message:
                initializes = message["method"] == "initialize"
                await self.end.send_all(
                    line(result(message["id"], INITIALIZED if initializes else {}))
                )
        self.end.transport.abort()


class Children:
    """The children that `connect` starts, with the arguments of each start."""

    def __init__(
        self,
        monkeypatch: pytest.MonkeyPatch,
        ends_at: str = "",
        *,
        unread: int = 0,
        silent: bool = False,
    ) -> None:
        self.ends_at = ends_at
        self.unread = unread
        self.silent = silent
        self.started: list[MemoryChild] = []
        self.arguments: list[tuple[tuple[Any, ...], dict[str, Any]]] = []
        monkeypatch.setattr(_connect, "open_child", self.open_child)

    @asynccontextmanager
    async def open_child(self, *args: Any, **options: Any) -> AsyncIterator[MemoryChild]:
        assert all(child.over for child in self.started)
        self.arguments.append((args, options))
        child = MemoryChild(self.ends_at, self.unread)
        self.started.append(child)
        serving = asyncio.create_task(asyncio.Event().wait() if self.silent else child.serve())
        try:
            yield child
        finally:
            child.over = True
            serving.cancel()
            await asyncio.wait({serving})


def test_command_is_started_with_the_safe_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    children = Children(monkeypatch)

    async def main() -> None:
        async with connect(["old", "--stdio"], versions=[B]) as client:
            assert client.peer.dialect.version == B

    run(main())
    assert children.arguments == [
        ((["old", "--stdio"], None, None), {"inherit_env": False, "record": None})
    ]
    assert children.started[0].over


@pytest.mark.parametrize("inherit", [True, False])
def test_command_is_started_with_the_options(
    inherit: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Its secrets are hidden from the trace, also where the command repeats them."""
    monkeypatch.setenv("INHERITED_TOKEN", "inherited-s3cret")
    children = Children(monkeypatch)
    trace = tmp_path / "a.mcp.jsonl"
    options: Any = {"env": {"A_TOKEN": "own-s3cret"}, "cwd": "/x", "inherit_env": inherit}
    words = ["own-s3cret", "inherited-s3cret", "visible"]

    async def main() -> None:
        async with connect(["old", *words], versions=[B], record=trace, **options):
            pass

    run(main())
    [(args, given)] = children.arguments
    assert args == (["old", *words], options["env"], "/x")
    assert given["inherit_env"] is inherit
    assert given["record"] is not None
    header, lines = read_file(trace)
    assert (header.observer, header.transport) == ("client", "stdio")
    assert any(each.raw for each in lines)
    recorded = trace.read_text("utf-8")
    assert ("own-s3cret" in recorded, "inherited-s3cret" in recorded) == (False, not inherit)
    assert "visible" in recorded


def test_command_that_ends_at_the_probe_is_started_again_without_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The second one starts after the end of the first, and gets the older handshake at once."""
    children = Children(monkeypatch, "server/discover")

    async def main() -> None:
        async with connect(["old"]) as client:
            assert client.peer.dialect.version == B
            assert client.needs_handshake
            await client.ping()

    run(main())
    assert [child.methods for child in children.started] == [
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
def test_command_that_ends_is_an_error_with_what_is_known_at_its_end(
    ends_at: str, unread: int, methods: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A start that ends before the probe was read, or at the handshake too, isn't repeated."""
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy")
    children = Children(monkeypatch, ends_at, unread=unread)

    async def main() -> None:
        with pytest.raises(ConnectFailed) as caught:
            async with connect(["old"]):
                raise AssertionError
        assert "; it has ended with status 3" in str(caught.value)
        assert "HTTPS_PROXY" in str(caught.value)

    run(main())
    assert [child.methods for child in children.started] == methods


def test_internal_error_is_not_described_as_the_command_s(monkeypatch: pytest.MonkeyPatch) -> None:
    """It's raised as it is, without the command's status."""
    error = KeyError("ours")

    async def fail(client: Client) -> None:
        raise error

    Children(monkeypatch)
    monkeypatch.setattr(Client, "open", fail)

    async def main() -> None:
        with pytest.raises(KeyError) as caught:
            async with connect(["old"]):
                raise AssertionError
        assert caught.value is error

    run(main())


def test_command_has_any_time_to_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may have to be downloaded first. A server at a URL has 30 seconds."""
    Children(monkeypatch, silent=True)

    async def main() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(10_000), connect(["old"], versions=[B]):
                raise AssertionError

    run(main())


def test_command_that_ends_later_is_not_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    children = Children(monkeypatch, "tools/list")

    async def main() -> None:
        with pytest.raises(ConnectionLost):
            async with connect(["old"], versions=[C, B]) as client:
                await client.request("tools/list", {})

    run(main())
    assert len(children.started) == 1
