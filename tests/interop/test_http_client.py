"""Our client over HTTP with other servers: the official Python SDK (`mcp` 2.3) under uvicorn, and
the node server-everything.

Most tests are those for stdio, with their connections redirected to a URL. A server of each kind is
started once for all tests.
"""

from __future__ import annotations

import os
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import trio

from mcp_core import ALL, Change, ConnectionLost, RemoteProtocolError
from mcp_core.http import RequestHead, Url
from mcp_core.types import TextContent
from mcp_trio import ConnectFailed, connect
from mcp_trio.http_client._connector import Connector
from tests.harness.world.waiting import PATIENCE
from tests.interop import (
    test_everything,
    test_sdk_server,
    test_sdk_server_input,
    test_sdk_server_utilities,
)
from tests.interop.http_servers import Servers
from tests.interop.test_everything import (
    test_node_server_completion_pages_logs_and_updates,
    test_node_server_each_revision_opens,
    test_node_server_form_is_answered,
    test_node_server_late_input_request_is_ignored,
    test_node_server_newest_common_revision_is_negotiated,
    test_node_server_requests_roots_again_after_change,
    test_node_server_resources_and_prompts_are_read,
    test_node_server_sampling_is_answered,
    test_node_server_sends_progress_until_cancelled,
    test_node_server_tools_are_called,
    test_node_server_url_elicitation_is_answered,
)
from tests.interop.test_sdk_server import (
    test_sdk_server_lists_are_read,
    test_sdk_server_many_concurrent_calls_are_answered,
    test_sdk_server_tools_are_called,
)
from tests.interop.test_sdk_server_input import (
    test_sdk_server_cancelled_call_ends_its_input_request,
    test_sdk_server_concurrent_input_requests_are_answered,
    test_sdk_server_forms_are_answered,
    test_sdk_server_high_level_forms_are_answered,
    test_sdk_server_input_request_without_capability_is_an_error,
    test_sdk_server_invalid_form_answer_is_not_sent,
    test_sdk_server_retries_are_identical_and_limited,
    test_sdk_server_roots_are_answered,
    test_sdk_server_sampling_is_answered,
    test_sdk_server_sampling_with_tools_is_answered,
    test_sdk_server_url_elicitation_is_answered,
    test_sdk_server_url_elicitation_required_raises,
)
from tests.interop.test_sdk_server_utilities import (
    test_sdk_server_ended_subscription_ends_listen,
    test_sdk_server_notifications_and_results_arrive,
    test_sdk_server_without_list_changed_capability,
    test_sdk_server_without_logging_capability_sends_logs,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Sequence

    from mcp_trio import Client

__all__ = [
    "test_node_server_completion_pages_logs_and_updates",
    "test_node_server_each_revision_opens",
    "test_node_server_form_is_answered",
    "test_node_server_late_input_request_is_ignored",
    "test_node_server_newest_common_revision_is_negotiated",
    "test_node_server_requests_roots_again_after_change",
    "test_node_server_resources_and_prompts_are_read",
    "test_node_server_sampling_is_answered",
    "test_node_server_sends_progress_until_cancelled",
    "test_node_server_tools_are_called",
    "test_node_server_url_elicitation_is_answered",
    "test_sdk_server_cancelled_call_ends_its_input_request",
    "test_sdk_server_concurrent_input_requests_are_answered",
    "test_sdk_server_ended_subscription_ends_listen",
    "test_sdk_server_forms_are_answered",
    "test_sdk_server_high_level_forms_are_answered",
    "test_sdk_server_input_request_without_capability_is_an_error",
    "test_sdk_server_invalid_form_answer_is_not_sent",
    "test_sdk_server_lists_are_read",
    "test_sdk_server_many_concurrent_calls_are_answered",
    "test_sdk_server_notifications_and_results_arrive",
    "test_sdk_server_retries_are_identical_and_limited",
    "test_sdk_server_roots_are_answered",
    "test_sdk_server_sampling_is_answered",
    "test_sdk_server_sampling_with_tools_is_answered",
    "test_sdk_server_tools_are_called",
    "test_sdk_server_url_elicitation_is_answered",
    "test_sdk_server_url_elicitation_required_raises",
    "test_sdk_server_without_list_changed_capability",
    "test_sdk_server_without_logging_capability_sends_logs",
]

E, D, C, B, A = ALL
SDK = [
    ("sdk_server", "sessions"),
    ("sdk_server", "stateless"),
    ("sdk_server", "json"),
    ("sdk_server", "sse"),
    ("sdk_input_server", "sessions"),
    ("sdk_utilities", "sessions"),
]
ASKING = {"on_elicit": "elicitation", "on_sample": "sampling", "on_roots": "roots"}
TRANSPORTS = ("streamableHttp", "sse")


def everything(place: str | Path) -> str:
    return str(Path(place) / "@modelcontextprotocol" / "server-everything" / "dist" / "index.js")


@pytest.fixture(scope="module")
def servers() -> Iterator[Servers]:
    place = os.environ.get("MCP_TRIO_NODE_MODULES")
    node = [] if place is None else [(everything(place), transport) for transport in TRANSPORTS]
    running = Servers(*SDK, *node)
    yield running
    running.close()


@pytest.fixture(autouse=True)
def over_http(servers: Servers, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the other modules connect over HTTP instead of stdio."""

    @asynccontextmanager
    async def connect_http(
        argv: Sequence[str], *, stderr: str = "", grace: Any = None, **options: Any
    ) -> AsyncIterator[Client]:
        program, script, *transport = map(str, argv)
        name, how = (script, *transport) if program == "node" else (Path(script).stem, "sessions")
        async with connect(servers.url(name, how), **options) as client:
            if program == "node":
                await _until_it_asks(client, options)
            yield client

    for module in (
        test_everything,
        test_sdk_server,
        test_sdk_server_input,
        test_sdk_server_utilities,
    ):
        monkeypatch.setattr(module, "connect_stdio", connect_http)


async def _until_it_asks(client: Client, options: Any) -> None:
    """Wait until the tools that request input are listed, which happens shortly after
    `initialized`.
    """
    for word in (word for option, word in ASKING.items() if option in options):
        while not any(word in tool.name for tool in await client.list_tools()):  # noqa: ASYNC110
            await trio.sleep(0.01)


@pytest.fixture(
    params=[pytest.param(transport, marks=pytest.mark.node) for transport in TRANSPORTS]
)
def argv(node_modules: Path, request: pytest.FixtureRequest) -> list[str]:
    """Replace the fixture of `test_everything.py`."""
    return ["node", everything(node_modules), request.param]


# -- Server modes ----------------------------------------------------------------------------------

# The negotiated revision by server mode, for a client with all revisions and with one.
CASES = [
    *((mode, ALL, E) for mode in ("sessions", "stateless", "json")),
    *((mode, (version,), version) for mode in ("stateless", "json") for version in ALL),
    ("sse", ALL, D),
    *(("sse", (version,), version) for version in (D, C, B, A)),
]


@pytest.mark.parametrize(("mode", "versions", "version"), CASES)
async def test_http_each_server_mode_and_revision_connects(
    mode: str, versions: tuple[str, ...], version: str, servers: Servers
) -> None:
    """With and without sessions, as JSON and as SSE: the client must find out by itself."""
    with trio.fail_after(PATIENCE):
        async with connect(servers.url("sdk_server", mode), versions=versions) as client:
            assert client.peer.dialect.version == version
            assert len(await client.list_tools()) == 10
            echoed = await client.call_tool("echo", {"text": "naïve ☃ \U0001f600"})
            assert echoed.content == [TextContent("naïve ☃ \U0001f600")]
            received: list[float] = []
            counted = await client.call_tool(
                "count", {"to": 3}, progress=lambda step, *_: received.append(step)
            )
            assert counted.text == "3"
            # A JSON response cannot carry progress; in 2026-07-28 the server streams in any case.
            assert received in ([1, 2, 3], []) if mode == "json" else received == [1, 2, 3]
            [contents] = (await client.read_resource("memo://today")).contents
            assert contents.text == "Buy milk."


@pytest.mark.parametrize("version", [E, D])
async def test_http_sdk_server_cancelled_call_is_cancelled_on_server(version: str) -> None:
    """A server for each, for it remembers that once something was cancelled."""
    fresh = await trio.to_thread.run_sync(Servers, ("sdk_server", "sessions"))
    try:
        with trio.fail_after(PATIENCE):
            async with connect(fresh.url("sdk_server", "sessions"), versions=[version]) as client:
                with trio.CancelScope() as scope:
                    await client.call_tool("wait", progress=lambda *_: scope.cancel())
                assert scope.cancelled_caught
                assert (await client.call_tool("cancelled")).text == "yes"
    finally:
        fresh.close()


@pytest.mark.parametrize("version", [E, D])
async def test_http_sdk_server_closed_client_cancels_its_call_on_server(version: str) -> None:
    """The client leaves while the response is being streamed: in 2025-11-25, by a DELETE."""
    fresh = await trio.to_thread.run_sync(Servers, ("sdk_server", "sessions"))
    started = trio.Event()

    async def wait(client: Client) -> None:
        with pytest.raises(ConnectionLost, match="the client was closed"):
            await client.call_tool("wait", progress=lambda *_: started.set())

    try:
        url = fresh.url("sdk_server", "sessions")
        with trio.fail_after(PATIENCE):
            async with trio.open_nursery() as nursery, connect(url, versions=[version]) as client:
                nursery.start_soon(wait, client)
                await started.wait()
            async with connect(url, versions=[version]) as client:
                assert (await client.call_tool("cancelled")).text == "yes"
    finally:
        fresh.close()


async def test_http_sdk_server_session_ended_during_call_fails_only_that_call(
    servers: Servers,
) -> None:
    """Another program deletes the session, and the client opens a new one for the next call."""
    url = servers.url("sdk_server", "sessions")
    started, failed = trio.Event(), trio.Event()

    async def wait(client: Client) -> None:
        with pytest.raises(RemoteProtocolError, match="the stream ended without the response"):
            await client.call_tool("wait", progress=lambda *_: started.set())
        failed.set()

    with trio.fail_after(PATIENCE):
        async with connect(url, versions=[D]) as client, trio.open_nursery() as nursery:
            nursery.start_soon(wait, client)
            await started.wait()
            await end_session(client, url)
            # A 404 for the next call, if it came first, would fail the call as ConnectionLost.
            await failed.wait()
            assert (await client.call_tool("echo", {"text": "again"})).text == "again"


async def test_http_lost_session_is_reinitialized(servers: Servers) -> None:
    url = servers.url("sdk_server", "sessions")
    traced: list[bytes] = []
    with trio.fail_after(PATIENCE):
        async with connect(
            url, versions=[D], trace=lambda _, message: traced.append(message)
        ) as client:
            await client.call_tool("echo", {"text": "1"})
            await end_session(client, url)
            traced.clear()
            assert (await client.call_tool("echo", {"text": "2"})).text == "2"
            assert sum(b'"method":"initialize"' in message for message in traced) == 1
            await client.ping()


async def end_session(client: Client, url: str) -> None:
    """End the session of a client without its knowledge."""
    place = Url.parse(url)
    session = client._transport._requests.http._state.transport.session  # type: ignore[attr-defined]
    connection = await Connector(*place.origin).connect()
    headers = [(b"host", place.authority), (b"mcp-session-id", session)]
    statuses: list[Any] = []
    await connection.run(RequestHead(b"DELETE", place.target, headers), b"", statuses.extend)
    await connection.aclose()
    assert statuses[0].status == 200


@pytest.mark.requirement("SUB-1")
async def test_http_sdk_server_changes_arrive_on_listen_stream() -> None:
    await test_sdk_server_utilities.test_sdk_server_changes_arrive_by_listen(E)


async def test_http_sdk_server_updates_arrive_on_standalone_stream(servers: Servers) -> None:
    """Over HTTP the low-level part of the SDK does not declare that lists change."""
    with trio.fail_after(PATIENCE):
        url = servers.url("sdk_utilities", "sessions")
        async with connect(url, versions=[D]) as client, client.listen(uris=["x://n0"]) as changes:
            await client.call_tool("change", {"what": "x://n0"})
            assert await anext(changes) == Change(uri="x://n0")


async def test_http_connect_to_other_path_fails(servers: Servers) -> None:
    url = servers.url("sdk_server", "sessions").replace("/mcp", "/other")
    with pytest.raises(ConnectFailed, match=r"404 Not Found: is this the URL of an MCP server\?"):
        await connect(url).__aenter__()
