"""Two workers that share Redis or Valkey: a client of one hears of changes at the other."""

from __future__ import annotations

import json
import os
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import trio
from mcp import Client
from mcp.client.subscriptions import ResourceUpdated, ToolsListChanged

import mcp_trio
from tests.harness.redis_server import PROGRAMS, RedisServer
from tests.harness.worker_programs import PROGRAMS_OF_WORKERS, worker_program
from tests.interop.official import MessageQueue, unfinished_streams
from tests.interop.redis_worker import URI

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [
    pytest.mark.interop,
    pytest.mark.timeout(60),
    # The official client warns of features that the last revision removed.
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),
]

SCRIPT = str(Path(__file__).with_name("ts_listen.mjs"))
MODULE = "tests.interop.redis_worker"


@contextmanager
def worker(redis: RedisServer, how: str) -> Iterator[str]:
    """Start one worker, yield its URL, and end it."""
    with worker_program(MODULE, redis, how) as port:
        yield f"http://127.0.0.1:{port}/mcp"


# The store is the same code for both programs, which its contract tries.
@pytest.fixture(
    scope="module", params=[PROGRAMS[0], pytest.param(PROGRAMS[1], marks=pytest.mark.slow)]
)
def redis(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RedisServer]:
    with RedisServer(tmp_path_factory.mktemp("redis"), request.param) as server:
        yield server


@pytest.fixture(scope="module", params=[*PROGRAMS_OF_WORKERS, "both"])
def urls(request: pytest.FixtureRequest, redis: RedisServer) -> Iterator[tuple[str, str]]:
    """Yield the URLs of two workers."""
    redis.run("FLUSHALL")
    kinds = ["serve_http", "uvicorn"] if request.param == "both" else [request.param] * 2
    with worker(redis, kinds[0]) as first, worker(redis, kinds[1]) as second:
        yield first, second


async def test_own_client_hears_of_changes_at_another_worker(urls: tuple[str, str]) -> None:
    """And finds there what its worker has declared anew, in both eras."""
    for version in ("2026-07-28", "2025-11-25"):
        async with AsyncExitStack() as stack:
            here, there = [
                await stack.enter_async_context(mcp_trio.connect(url, versions=[version]))
                for url in urls
            ]
            changes = await stack.enter_async_context(here.listen(tools=True, uris=[URI]))
            with trio.fail_after(20):
                process = await there.call_tool("change", {"name": f"own-{version}"})
                found = {await anext(changes), await anext(changes)}
            assert found == {mcp_trio.Change(list="tools"), mcp_trio.Change(uri=URI)}
            assert f"own-{version}" in [tool.name for tool in await here.list_tools()]
            assert (await here.call_tool("change", {"name": "x"})).text != process.text


@pytest.mark.parametrize(
    ("scheme", "path", "version"),
    [("ws", "/mcp", "2026-07-28"), ("ws", "/mcp", "2025-11-25"), ("http", "/sse", "2024-11-05")],
)
async def test_client_of_another_transport_hears_of_changes_at_another_worker(
    urls: tuple[str, str], scheme: str, path: str, version: str
) -> None:
    """A connection that stays with its worker hears of a change by a request at the other one."""
    url = urls[0].replace("http", scheme).replace("/mcp", path)
    name = f"{scheme}-{version}"
    with trio.fail_after(30):
        async with (
            mcp_trio.connect(url, versions=[version]) as here,
            mcp_trio.connect(urls[1]) as there,
            here.listen(tools=True, uris=[URI]) as changes,
        ):
            await there.call_tool("change", {"name": name})
            found = {await anext(changes), await anext(changes)}
            assert found == {mcp_trio.Change(list="tools"), mcp_trio.Change(uri=URI)}
            assert name in [tool.name for tool in await here.list_tools()]


@unfinished_streams
async def test_official_client_hears_of_changes_at_another_worker(urls: tuple[str, str]) -> None:
    with trio.fail_after(30):
        async with (
            Client(urls[0]) as here,
            Client(urls[1]) as there,
            here.listen(tools_list_changed=True, resource_subscriptions=[URI]) as changes,
        ):
            await there.call_tool("change", {"name": "official"})
            found = [await anext(changes), await anext(changes)]
            assert ToolsListChanged() in found
            assert ResourceUpdated(uri=URI) in found
            assert "official" in [tool.name for tool in (await here.list_tools()).tools]


@unfinished_streams
async def test_official_client_hears_in_a_session_too(urls: tuple[str, str]) -> None:
    messages = MessageQueue()
    with trio.fail_after(30):
        async with (
            Client(urls[0], mode="legacy", message_handler=messages) as here,
            Client(urls[1], mode="legacy") as there,
        ):
            await here.subscribe_resource(URI)
            await there.call_tool("change", {"name": "official-legacy"})
            found = {(await messages.next()).method for _ in range(2)}
            assert found == {"notifications/tools/list_changed", "notifications/resources/updated"}


@pytest.mark.node
@pytest.mark.parametrize("which", ["modern", "legacy"])
async def test_typescript_client_hears_of_changes_at_another_worker(
    urls: tuple[str, str], node_modules: Path, which: str
) -> None:
    command = ["node", SCRIPT, which, str(node_modules), *urls]
    with trio.fail_after(40):
        done = await trio.run_process(
            command, capture_stdout=True, capture_stderr=True, check=False
        )
    assert done.returncode == 0, done.stderr.decode()
    report = json.loads(done.stdout)
    assert sorted(report["told"]) == ["tools", URI]
    assert which in report["tools"]


async def test_question_is_asked_at_one_worker_and_answered_at_another(
    urls: tuple[str, str],
) -> None:
    """2026-07-28: the request is sent again, with the state that the first worker has sealed."""
    import httpx2

    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
        "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "1"},
    }
    headers = {
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": "tools/call",
        "mcp-name": "ask",
    }

    async def send(url: str, **params: Any) -> Any:
        message = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "tools/call",
            "params": {"name": "ask", "arguments": {}, "_meta": meta, **params},
        }
        response = await client.post(url, json=message, headers=headers)
        assert response.status_code == 200, response.text
        return response.json()["result"]

    async with httpx2.AsyncClient(timeout=20) as client:
        asked = await send(urls[0])
        [key] = asked["inputRequests"]
        answer = {key: {"action": "accept", "content": {"name": "Ada"}}}
        result = await send(urls[1], inputResponses=answer, requestState=asked["requestState"])
    text = result["content"][0]["text"]
    assert text.startswith("Ada at ")
    assert int(text.split()[-1]) != os.getpid()
