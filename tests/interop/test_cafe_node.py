"""The TypeScript SDKs with URIs outside ASCII, and with the forms that zod derives.

The official clients of `@modelcontextprotocol/sdk` 1.32 and of `@modelcontextprotocol/client` 2
read from our server, and our clients from the official server of 1.32. `ts_cafe.mjs` plays them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import trio

import mcp_asyncio_shim
import mcp_trio
from tests.harness.world.loop import run_with_processes
from tests.interop import cafe_server
from tests.interop.official import served

if TYPE_CHECKING:
    from mcp_core.runtime import AbstractClient

pytestmark = pytest.mark.node

SCRIPT = str(Path(__file__).with_name("ts_cafe.mjs"))
UNKNOWN = {"sdk": -32002, "legacy": -32602, "modern": -32602}  # 1.32 has 2025-11-25 at most
FORM = {
    "dish": "soup",
    "id": "7d0a32ac-6f4c-4b7f-9d0b-1f3f5bb0c9a1",  # the server itself checks its form
    "note": "hot",
    "count": 2,
    "size": "large",
    "warm": True,
}


@pytest.mark.parametrize("which", ["sdk", "legacy", "modern"])
async def test_typescript_client_reads_parsed_uris(node_modules: Path, which: str) -> None:
    """`new URL(uri).href` is another spelling of the declared URI, and names the same resource."""
    async with served(cafe_server.make_server()) as server:
        argv = ["node", SCRIPT, which, str(node_modules), server.url]
        with trio.fail_after(40):
            done = await trio.run_process(
                argv, capture_stdout=True, capture_stderr=True, check=False
            )
    assert done.returncode == 0, done.stderr.decode()
    report = json.loads(done.stdout)
    assert report["resources"] == cafe_server.URIS
    assert report["hrefs"][:2] == ["note://caf%C3%A9", "https://example.com/"]
    assert report["read"] == [f"at {uri}" for uri in cafe_server.URIS] * 2
    for refused in "missing", "outside":
        assert report[refused]["code"] == UNKNOWN[which]
    assert report["filled"] == "Notes of naïve day."
    assert report["completed"] == ["monday"]
    assert report["order"]["content"] == [{"type": "text", "text": "2 × soup inside"}]
    [question] = report["questions"]
    assert question["message"] == "What would you like?"


async def use(client: AbstractClient, asked: list[Any]) -> None:
    """Read what the server lists, and answer a form of which no field is exact but one."""
    uris = [resource.uri for resource in await client.list_resources()]
    assert uris == ["note://café", "note://caf%C3%A9/tea"]
    for uri in "note://caf%C3%A9/tea", "note://café/tea":
        [contents] = (await client.read_resource(uri)).contents
        assert contents.text == "With milk."
    answer = json.loads((await client.call_tool("order")).text)
    assert answer == {"action": "accept", "content": {**FORM, "price": 1}}  # by its default
    [params] = asked
    assert params.requested_schema["properties"]["note"] == {"type": ["string", "null"]}
    assert "anyOf" in params.requested_schema["properties"]["size"]


def asking(asked: list[Any]) -> Any:
    async def ask(params: Any) -> dict[str, Any]:
        asked.append(params)
        return FORM

    return ask


async def test_typescript_server_is_answered_on_trio(node_modules: Path) -> None:
    asked: list[Any] = []
    command = ["node", SCRIPT, "server", str(node_modules)]
    with trio.fail_after(40):
        async with mcp_trio.connect(command, on_elicit=asking(asked)) as client:
            await use(client, asked)


def test_typescript_server_is_answered_on_asyncio(node_modules: Path) -> None:
    async def main() -> None:
        asked: list[Any] = []
        command = ["node", SCRIPT, "server", str(node_modules)]
        async with mcp_asyncio_shim.connect(command, on_elicit=asking(asked)) as client:
            await use(client, asked)

    run_with_processes(main())
