"""Our client, on both drivers, with supergateway 4, which maps JSON-RPC errors to HTTP statuses.

The server behind it is `server-memory`, which needs a handshake. The gateway starts it for each
request, or with `--stateful` for each session.
"""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
import trio

import mcp_asyncio_shim
import mcp_trio
from mcp_core import ALL
from tests.harness.world.waiting import PATIENCE
from tests.interop.http_servers import await_listener, free_port

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.node

E, D, *_ = ALL
OWLS = {"name": "owls", "entityType": "birds", "observations": ["hunt at night"]}


@pytest.fixture(params=["stateless", "stateful"])
def url(node_modules: Path, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[str]:
    """Start a gateway, and return its URL."""
    memory = node_modules / "@modelcontextprotocol" / "server-memory" / "dist" / "index.js"
    gateway = node_modules / "supergateway" / "dist" / "index.js"
    port = free_port()
    words = ["node", str(gateway), "--stdio", shlex.join(["node", str(memory)])]
    words += ["--outputTransport", "streamableHttp", "--port", str(port), "--logLevel", "none"]
    if request.param == "stateful":
        words.append("--stateful")
    silent = subprocess.DEVNULL
    env = {**os.environ, "MEMORY_FILE_PATH": str(tmp_path / "memory.jsonl")}
    process = subprocess.Popen(words, stdin=silent, stdout=silent, stderr=silent, env=env)
    try:
        await_listener(port)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.terminate()
        process.wait()


@pytest.mark.parametrize("driver", ["trio", "asyncio"])
def test_gateway_before_an_old_server_is_used_with_a_handshake(url: str, driver: str) -> None:
    """The gateway answers `server/discover` with 404 and -32601, and `initialize` as the server."""

    async def use(connect: Any) -> None:
        async with connect(url) as client:
            assert (client.peer.dialect.version, client.needs_handshake) == (D, True)
            result = await client.call_tool("create_entities", {"entities": [OWLS]})
            assert result.structured_content == {"entities": [OWLS]}
            found = await client.call_tool("read_graph")
            assert json.loads(found.text)["entities"] == [OWLS]

    async def on_trio() -> None:
        with trio.fail_after(PATIENCE):
            await use(mcp_trio.connect)

    async def on_asyncio() -> None:
        async with asyncio.timeout(PATIENCE):
            await use(mcp_asyncio_shim.connect)

    if driver == "trio":
        trio.run(on_trio)
    else:
        asyncio.run(on_asyncio())


async def test_gateway_without_older_revisions_allowed_names_the_cure(url: str) -> None:
    with pytest.raises(mcp_trio.ConnectFailed, match=r"Method not found .*Allow an older revision"):
        async with mcp_trio.connect(url, versions=[E]):
            raise AssertionError("the server does not speak this revision")
