"""The official Python SDK of 2025 (`mcp` 1.20) as our client and as our server, on both drivers.

Many servers and clients are built on it. It writes each URI in the spelling of pydantic, and forms
as pydantic derives them. `MCP_TRIO_OLD_SDK_PYTHON` names the Python of an environment with it.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import trio

import mcp_asyncio_shim
import mcp_trio
from mcp_core import PeerError
from tests.harness.jsonrpc import C
from tests.harness.world.loop import run_with_processes
from tests.interop import cafe_server
from tests.interop.http_servers import Servers
from tests.interop.official import served

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from mcp_core.runtime import AbstractClient

HERE = Path(__file__).parent
PYTHON = "MCP_TRIO_OLD_SDK_PYTHON"
SERVER = str(HERE / "old_sdk_cafe_server.py")
# As the SDK writes the URIs of `cafe_server`.
SPELLINGS = [
    "note://caf%C3%A9",
    "https://example.com/",
    "note:///cr%C3%A8me%20br%C3%BBl%C3%A9e",
    "note:///menu",
]


@pytest.fixture
def python() -> str:
    found = os.environ.get(PYTHON)
    if not found:
        pytest.skip(f"needs {PYTHON}, naming the Python of an environment with mcp 1.20")
    return found


# -- Its client ----------------------------------------------------------------------------------


async def report_of(python: str, *target: str) -> Any:
    """Let the client use a server, and return its report."""
    argv = [python, str(HERE / "old_sdk_client.py"), *target]
    with trio.fail_after(60):
        done = await trio.run_process(argv, capture_stdout=True, capture_stderr=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout)


def text(result: Any) -> str:
    [content] = result["content"]
    assert isinstance(content["text"], str)
    return content["text"]


@asynccontextmanager
async def target_of(transport: str) -> AsyncIterator[list[str]]:
    """Yield where our server is, as the client's arguments: a command, or a URL."""
    if transport in ("trio", "asyncio"):
        yield ["stdio", sys.executable, cafe_server.__file__, transport]
        return
    async with served(cafe_server.make_server(), transport) as server:
        yield ["sse" if transport == "http+sse" else "http", server.url]


@pytest.mark.parametrize("transport", ["trio", "asyncio", "http", "http-json", "http+sse"])
async def test_old_sdk_client_uses_our_server_in_its_own_spelling(
    python: str, transport: str
) -> None:
    """It reads and subscribes to URIs that aren't the declared ones, and checks what it receives by
    its models of 2025-06-18.
    """
    async with target_of(transport) as target:
        report = await report_of(python, *target)
    assert report["initialized"]["protocolVersion"] == C
    assert report["resources"] == SPELLINGS
    contents = [read["contents"][0] for read in report["read"]]
    assert [each["text"] for each in contents] == [f"at {uri}" for uri in cafe_server.URIS]
    assert report["templates"] == ["note://café/{day}/list"]
    assert report["filled"]["contents"][0]["text"] == "Notes of naïve day."
    assert report["missing"]["code"] == -32002  # another letter
    assert report["completed"]["completion"]["values"] == ["monday"]
    assert sorted(report["updated"]) == sorted(SPELLINGS)

    assert report["tools"] == ["echo", "order", "count", "touch", "fail"]
    assert report["prompts"] == ["greet"]
    assert text(report["echo"]) == "naïve ☃"
    assert text(report["order"]) == "2 × soup inside"
    [question] = report["questions"]
    assert question["message"] == "What would you like?"
    assert report["count"]["structuredContent"] == {"result": 3}
    steps = [] if transport == "http-json" else ["step 1", "step 2", "step 3"]  # JSON has no room
    assert [message for _, _, message in report["progress"]] == steps
    assert report["logs"] == steps
    assert text(report["touch"]) == "file:///home/me/caf%C3%A9"
    assert (report["failed"]["isError"], text(report["failed"])) == (True, "the oven is cold")
    assert report["unknown"]["code"] == -32602
    assert report["pinged"] == {}


# -- Its server ----------------------------------------------------------------------------------


class Asked:
    """The questions of a server, and the user's answers."""

    def __init__(self) -> None:
        self.messages: list[str] = []

    async def answer(self, params: Any) -> dict[str, Any] | None:
        self.messages.append(params.message)
        if params.message == "What would you like?":
            return {"dish": "soup", "count": 2, "price": 2.5}
        return {"id": "no UUID", "size": "large"}


async def use(client: AbstractClient, asked: Asked) -> None:
    """Use everything that the server offers."""
    assert client.peer.info is not None
    assert (client.peer.info.name, client.peer.dialect.version) == ("old", C)
    assert [tool.name for tool in await client.list_tools()] == ["echo", "order", "reserve"]
    assert (await client.call_tool("echo", {"text": "naïve ☃"})).text == "naïve ☃"
    unknown = await client.call_tool("unknown")
    assert (unknown.is_error, unknown.text) == (True, "Unknown tool: unknown")

    # Pydantic's forms: optional fields, `int | float`, a choice that may be left out, formats.
    order = {"dish": "soup", "note": None, "count": 2, "price": 2.5, "spicy": None}
    assert json.loads((await client.call_tool("order")).text) == order
    reserved = json.loads((await client.call_tool("reserve")).text)
    assert reserved == {"id": "no UUID", "size": "large", "day": None}
    assert asked.messages == ["What would you like?", "Which place?"]

    [resource] = await client.list_resources()
    for uri in resource.uri, "note://café":
        [contents] = (await client.read_resource(uri)).contents
        assert contents.text == "Open until six."
    [template] = await client.list_resource_templates()
    assert template.uri_template == "note://{day}/list"
    [contents] = (await client.read_resource("note://may/list")).contents
    assert contents.text == "Notes of may."
    with pytest.raises(PeerError, match="Unknown resource"):
        await client.read_resource("note://none")
    prompt = await client.get_prompt("greet", {"name": "Ada"})
    assert prompt.messages[0].content.text == "Say hello to Ada."  # type: ignore[union-attr]
    await client.ping()


@pytest.fixture(scope="module")
def servers() -> Iterator[Servers]:
    python = os.environ.get(PYTHON)
    if not python:
        pytest.skip(f"needs {PYTHON}, naming the Python of an environment with mcp 1.20")
    found = Servers((SERVER, python))
    yield found
    found.close()


async def test_old_sdk_server_over_stdio_is_used_on_trio(python: str) -> None:
    """It answers the probe of 2026-07-28 with an error, and the client falls back."""
    asked = Asked()
    with trio.fail_after(60):
        async with mcp_trio.connect_stdio(
            [python, SERVER], on_elicit=asked.answer, stderr="discard"
        ) as client:
            await use(client, asked)


def test_old_sdk_server_over_stdio_is_used_on_asyncio(python: str) -> None:
    async def main() -> None:
        asked = Asked()
        async with mcp_asyncio_shim.connect([python, SERVER], on_elicit=asked.answer) as client:
            await use(client, asked)

    run_with_processes(main())


async def test_old_sdk_server_over_http_is_used_on_trio(servers: Servers, python: str) -> None:
    asked = Asked()
    with trio.fail_after(60):
        url = servers.url(SERVER, python)
        async with mcp_trio.connect_http(url, on_elicit=asked.answer) as client:
            await use(client, asked)


def test_old_sdk_server_over_http_is_used_on_asyncio(servers: Servers, python: str) -> None:
    async def main() -> None:
        asked = Asked()
        url = servers.url(SERVER, python)
        async with mcp_asyncio_shim.connect(url, on_elicit=asked.answer) as client:
            await use(client, asked)

    run_with_processes(main())


async def test_host_uses_old_sdk_server_by_the_declared_spelling(python: str) -> None:
    """The pins, the lists and the look-up of a URI all know both spellings."""
    async with mcp_trio.Host(
        {"old": [python, SERVER]}, versions=[C], stderr="discard", approve="all"
    ) as host:
        assert host.status()["old"].problems == ()
        [resource] = host.resources()
        for uri in resource.uri, "note://café", "@old:note://café":
            assert (await host.read(uri)).contents[0].text == "Open until six."
        assert (await host.call("mcp__old__echo", {"text": "x"})).text == "x"
