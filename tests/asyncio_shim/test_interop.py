"""The server on asyncio as the child of SDK and trio clients, and our client with an SDK server."""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import trio
from mcp import Client, MCPError
from mcp_types import PromptReference, ResourceTemplateReference

import mcp_asyncio_shim
import mcp_trio
from mcp_core import PeerError
from mcp_core.types import TextContent
from tests.conformance import everything_server
from tests.harness.jsonrpc import VERSIONS, D, E
from tests.harness.world.loop import run_with_processes as run
from tests.harness.world.waiting import PATIENCE
from tests.interop import official

OURS = [sys.executable, everything_server.__file__, "--stdio", "--runtime", "asyncio"]
SDK_SERVER = Path(official.__file__).with_name("sdk_server.py")


@pytest.mark.parametrize("version", VERSIONS)
async def test_trio_client_talks_to_asyncio_server(version: str) -> None:
    """The server is a child process on asyncio; a cancelled call leaves the connection usable."""
    with trio.fail_after(PATIENCE):
        async with mcp_trio.connect(OURS, versions=[version]) as client:
            assert client.peer.dialect.version == version
            assert (await client.call_tool("echo", {"text": "☃"})).content == [TextContent("☃")]
            for tool in ("count", "block"):
                received: list[tuple[Any, ...]] = []
                await client.call_tool(
                    tool, {"to": 3}, progress=lambda *args, received=received: received.append(args)
                )
                assert [(progress, total) for progress, total, _ in received] == [
                    (1, 3),
                    (2, 3),
                    (3, 3),
                ]
            with trio.move_on_after(0.02):
                await client.call_tool("count", {"to": 1_000_000}, progress=lambda *_: None)
            with pytest.raises(PeerError, match="not today"):
                await client.call_tool("fail", {"how": "error"})
            [contents] = (await client.read_resource("book://austen/emma")).contents
            assert contents.text == "emma, by austen."


@pytest.mark.interop
@pytest.mark.parametrize("version", [E, D])
def test_sdk_server_on_stdio_reports_progress_and_cancellation(version: str) -> None:
    """The server itself confirms through a second tool that it saw the cancellation."""

    async def main() -> None:
        argv = [sys.executable, str(SDK_SERVER)]
        async with mcp_asyncio_shim.connect(argv, versions=[version]) as client:
            received: list[float] = []
            counted = await client.call_tool(
                "count", {"to": 3}, progress=lambda step, *_: received.append(step)
            )
            assert counted.content == [TextContent("3")]
            assert received == [1, 2, 3]
            with pytest.raises(TimeoutError):
                await client.call_tool("wait", timeout=0.1)
            assert (await client.call_tool("cancelled")).content == [
                TextContent("yes")
            ]  # the subscription is open

    run(main())


# -- The SDK client sees no difference between the drivers -----------------------------------------

# Starts the command after the first two words, and copies its input and output into the files that
# those name.
TEE = ["sh", "-c", 'sent=$1 received=$2; shift 2; tee "$sent" | "$@" | tee "$received"', "sh"]
# The name of a fault, and the client's own count of what it listens to.
NAMES = re.compile(rb"reference [0-9a-f]{8}|listen-[0-9]+")


async def conversation(client: Client) -> None:
    """Call everything that the server has. The transcript holds the results."""

    async def ignore(progress: float, total: float | None, message: str | None) -> None:
        pass

    book = ResourceTemplateReference(uri="book://{author}/{title}")
    for call in (
        official.pages(client.list_tools, "tools"),
        official.pages(client.list_resources, "resources"),
        official.pages(client.list_resource_templates, "resource_templates"),
        official.pages(client.list_prompts, "prompts"),
        client.list_tools(cursor="made up"),
        client.call_tool("echo", {"text": "naïve ☃ \U0001f600\u2028"}),
        client.call_tool("echo", {"txt": "typo"}),
        client.call_tool("weather", {"city": "Rome"}),
        client.call_tool("test_image_content"),
        client.call_tool("count", {"to": 3}, progress_callback=ignore),
        client.call_tool("fail", {"how": "reason"}),
        client.call_tool("fail", {"how": "accident"}),
        client.call_tool("fail", {"how": "error"}),
        client.call_tool("nothing"),
        client.call_tool("log"),
        client.read_resource("test://static-binary"),
        client.read_resource("test://template/1/data"),
        client.read_resource("test://nothing"),
        client.get_prompt("review", {"code": "x = 1"}),
        client.get_prompt("review", {}),
        client.complete(
            PromptReference(name="test_prompt_with_arguments"), {"name": "arg2", "value": "a"}
        ),
        client.complete(book, {"name": "title", "value": "b"}, {"author": "morrison"}),
    ):
        with suppress(MCPError):
            await call

    with trio.CancelScope() as scope:

        async def leave(progress: float, total: float | None, message: str | None) -> None:
            scope.cancel()

        await client.call_tool("wait", progress_callback=leave)
    assert scope.cancelled_caught
    await client.call_tool("cancelled")


async def changes_in_a_session(client: Client) -> None:
    await client.set_logging_level("error")
    await client.call_tool("log")
    await client.subscribe_resource("test://static-text")
    await client.call_tool("change", {"what": "test://static-text"})
    await client.call_tool("learn", {"name": "more"})
    await client.call_tool("more")


async def changes_that_are_listened_to(client: Client) -> None:
    async with client.listen(
        tools_list_changed=True, resource_subscriptions=["test://static-text"]
    ) as changes:
        await client.call_tool("change", {"what": "test://static-text"})
        await anext(changes)
        await client.call_tool("learn", {"name": "more"})
        await anext(changes)
    await client.call_tool("more")
    await client.call_tool("change", {"what": "tools"})  # the subscription is closed


async def transcript(case: official.Case, directory: Path) -> tuple[list[bytes], list[bytes]]:
    """Return every line that client and server send, without random names."""
    from_client, from_server = (
        directory / f"from-client-{case.transport}",
        directory / f"from-server-{case.transport}",
    )
    tee = [*TEE, str(from_client), str(from_server)]
    level = "warning" if case.version == E else None
    async with official.opened(case, through=tee, log_level=level) as client:
        await conversation(client)
        if case.version == E:
            await changes_that_are_listened_to(client)
        else:
            await changes_in_a_session(client)
    # The client cancels from a task of its own, so that its next request may come before that.
    return sorted(lines_of(from_client)), lines_of(from_server)


def lines_of(file: Path) -> list[bytes]:
    return NAMES.sub(b"?", file.read_bytes()).splitlines()


@pytest.mark.interop
@pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")
@official.cases(*VERSIONS, transports=["stdio"])
async def test_sdk_client_gets_same_bytes_from_both_drivers(
    case: official.Case, tmp_path: Path
) -> None:
    """The trio server's transcript is the reference, and the counts show that it isn't empty."""
    from_client, from_server = await transcript(case, tmp_path)
    assert await transcript(case._replace(transport="stdio-asyncio"), tmp_path) == (
        from_client,
        from_server,
    )
    kinds = Counter(json.loads(line).get("method", "an answer") for line in from_server)
    requests = sum("id" in json.loads(line) for line in from_client)
    if case.version == E:
        assert kinds == {
            "an answer": requests - 2,  # `wait` and the listening have none
            "notifications/progress": 4,
            "notifications/message": 5,
            "notifications/subscriptions/acknowledged": 1,
            "notifications/resources/updated": 1,
            "notifications/tools/list_changed": 1,
        }
    else:
        assert kinds == {
            "an answer": requests - 1,
            "notifications/progress": 4,
            "notifications/message": 7 + 4,
            "notifications/resources/updated": 1,
            "notifications/tools/list_changed": 1,
        }
    assert requests > 35
