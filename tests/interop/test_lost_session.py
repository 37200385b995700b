"""Our client, on both drivers, with a server of the official Python SDK 1.20 that loses sessions.

That server answers an unknown session id with status 400 and a text. `MCP_TRIO_OLD_SDK_PYTHON`
names the Python of an environment with it.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import trio

import mcp_asyncio_shim
import mcp_trio
from tests.harness.world.waiting import PATIENCE
from tests.interop.http_servers import await_listener, free_port

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

HERE = Path(__file__).parent
PYTHON = "MCP_TRIO_OLD_SDK_PYTHON"


class OldServer:
    """The server, which notes each call in `file`. It keeps its port when it is started again."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.port = free_port()
        self.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"

    @property
    def notes(self) -> list[str]:
        return self.file.read_text().splitlines()

    def start(self) -> None:
        words = [os.environ[PYTHON], str(HERE / "old_sdk_server.py"), str(self.file)]
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        self._process = subprocess.Popen(
            [*words, str(self.port)], stdin=subprocess.DEVNULL, env=environment
        )
        await_listener(self.port)

    def close(self) -> None:
        self._process.kill()
        self._process.wait()

    def restart(self) -> None:
        self.close()
        self.start()

    def forget(self) -> None:
        """Let the server lose its sessions, with their event streams open."""
        url = f"http://127.0.0.1:{self.port}/forget"
        urllib.request.urlopen(url, data=b"", timeout=PATIENCE).close()


@pytest.fixture
def old_server(tmp_path: Path) -> Iterator[OldServer]:
    if not os.environ.get(PYTHON):
        pytest.skip(f"needs {PYTHON}, the Python of an environment with an official SDK of 2025")
    server = OldServer(tmp_path / "notes")
    yield server
    server.close()


@pytest.mark.parametrize("lose", [OldServer.restart, OldServer.forget])
@pytest.mark.parametrize("driver", ["trio", "asyncio"])
def test_session_lost_by_old_sdk_server_begins_a_new_one(
    old_server: OldServer, lose: Callable[[OldServer], None], driver: str
) -> None:
    """Each call runs once, and the one that was rejected is sent again."""

    async def use(connect: Any, in_thread: Any) -> None:
        async with connect(old_server.url) as client:
            assert (await client.call_tool("note", {"text": "one"})).text == "noted one"
            for text in ("two", "three"):
                await in_thread(lose, old_server)
                assert (await client.call_tool("note", {"text": text})).text == f"noted {text}"
                assert (await client.call_tool("note", {"text": "again"})).text == "noted again"

    async def on_trio() -> None:
        with trio.fail_after(PATIENCE):
            await use(mcp_trio.connect, trio.to_thread.run_sync)

    async def on_asyncio() -> None:
        async with asyncio.timeout(PATIENCE):
            await use(mcp_asyncio_shim.connect, asyncio.to_thread)

    if driver == "trio":
        trio.run(on_trio)
    else:
        asyncio.run(on_asyncio())
    assert old_server.notes == ["one", "two", "again", "three", "again"]
