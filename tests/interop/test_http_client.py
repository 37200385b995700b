"""Our client over HTTP with servers of others: the official Python SDK (`mcp` 2.3) under uvicorn, and the Node server-everything.

Most of what they are asked is what they are asked over stdio, by the very same tests: what those connect to leads to a URL here. A
server of a kind is started once for all of them.
"""

from __future__ import annotations

import os
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import trio

from mcp_core import ALL, Change
from mcp_core.http import RequestHead, Url
from mcp_core.types import TextContent
from mcp_trio import ConnectFailed, connect
from mcp_trio._dial import Way
from tests.interop import (
    test_everything,
    test_sdk_server,
    test_sdk_server_conversation,
    test_sdk_server_utilities,
)
from tests.interop.http_servers import Servers
from tests.interop.test_everything import (
    test_a_question_that_outlives_its_call_disturbs_nobody,
    test_it_asks_for_the_roots_again_when_they_change,
    test_it_is_opened_in_each_revision_that_it_knows,
    test_its_form_is_filled_in,
    test_its_page_is_visited,
    test_its_question_to_the_model_is_answered,
    test_progress_and_cancellation,
    test_resources_and_prompts,
    test_suggestions_lists_log_messages_and_updates,
    test_the_newest_common_revision_is_found,
    test_tools,
)
from tests.interop.test_sdk_server import (
    test_calls,
    test_many_calls_cross_on_the_wire,
    test_what_it_offers,
)
from tests.interop.test_sdk_server_conversation import (
    test_a_call_is_made_again_as_it_was_and_not_for_ever,
    test_a_form_that_is_filled_in_wrongly_is_not_sent,
    test_a_question_ends_with_its_call,
    test_it_fills_in_forms,
    test_it_fills_in_forms_of_a_high_level_server,
    test_it_is_asked_for_everything_at_once,
    test_it_is_told_which_page_its_user_has_to_visit_first,
    test_it_tells_its_roots,
    test_its_model_goes_on,
    test_its_model_uses_tools,
    test_its_user_visits_pages,
    test_what_it_did_not_offer_to_answer_is_an_error,
)
from tests.interop.test_sdk_server_utilities import (
    test_a_server_that_does_not_declare_that_it_logs,
    test_a_server_that_does_not_declare_that_it_tells_of_changes,
    test_what_it_listens_to_ends_in_order_when_the_server_ends_it,
    test_what_it_tells,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Sequence

    from mcp_trio import Client

__all__ = [
    "test_a_call_is_made_again_as_it_was_and_not_for_ever",
    "test_a_form_that_is_filled_in_wrongly_is_not_sent",
    "test_a_question_ends_with_its_call",
    "test_a_question_that_outlives_its_call_disturbs_nobody",
    "test_a_server_that_does_not_declare_that_it_logs",
    "test_a_server_that_does_not_declare_that_it_tells_of_changes",
    "test_calls",
    "test_it_asks_for_the_roots_again_when_they_change",
    "test_it_fills_in_forms",
    "test_it_fills_in_forms_of_a_high_level_server",
    "test_it_is_asked_for_everything_at_once",
    "test_it_is_opened_in_each_revision_that_it_knows",
    "test_it_is_told_which_page_its_user_has_to_visit_first",
    "test_it_tells_its_roots",
    "test_its_form_is_filled_in",
    "test_its_model_goes_on",
    "test_its_model_uses_tools",
    "test_its_page_is_visited",
    "test_its_question_to_the_model_is_answered",
    "test_its_user_visits_pages",
    "test_many_calls_cross_on_the_wire",
    "test_progress_and_cancellation",
    "test_resources_and_prompts",
    "test_suggestions_lists_log_messages_and_updates",
    "test_the_newest_common_revision_is_found",
    "test_tools",
    "test_what_it_did_not_offer_to_answer_is_an_error",
    "test_what_it_listens_to_ends_in_order_when_the_server_ends_it",
    "test_what_it_offers",
    "test_what_it_tells",
]

E, D, C, B, A = ALL
PATIENCE = 20
SDK = [
    ("sdk_server", "sessions"),
    ("sdk_server", "stateless"),
    ("sdk_server", "json"),
    ("sdk_server", "sse"),
    ("sdk_conversation", "sessions"),
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
    """What the other modules start over stdio is asked over HTTP."""

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

    for module in test_everything, test_sdk_server, test_sdk_server_conversation, test_sdk_server_utilities:
        monkeypatch.setattr(module, "connect_stdio", connect_http)


async def _until_it_asks(client: Client, options: Any) -> None:
    """Its tools that ask something are there a moment after `initialized`."""
    for word in (word for option, word in ASKING.items() if option in options):
        while not any(word in tool.name for tool in await client.list_tools()):  # noqa: ASYNC110
            await trio.sleep(0.01)


@pytest.fixture(params=[pytest.param(transport, marks=pytest.mark.node) for transport in TRANSPORTS])
def argv(node_modules: Path, request: pytest.FixtureRequest) -> list[str]:
    """Stands for the fixture of `test_everything.py`."""
    return ["node", everything(node_modules), request.param]


# -- Ways to serve ----------------------------------------------------------------------------------------------------------

# With which of the ways which revision is found, if the client knows all of them, and if it knows one.
WAYS = [
    *((mode, ALL, E) for mode in ("sessions", "stateless", "json")),
    *((mode, (version,), version) for mode in ("stateless", "json") for version in ALL),
    ("sse", ALL, D),
    *(("sse", (version,), version) for version in (D, C, B, A)),
]


@pytest.mark.parametrize(("mode", "versions", "spoken"), WAYS)
async def test_each_way_to_serve_in_each_revision(
    mode: str, versions: tuple[str, ...], spoken: str, servers: Servers
) -> None:
    with trio.fail_after(PATIENCE):
        async with connect(servers.url("sdk_server", mode), versions=versions) as client:
            assert client.peer.dialect.version == spoken
            assert len(await client.list_tools()) == 10
            echoed = await client.call_tool("echo", {"text": "naïve ☃ \U0001f600"})
            assert echoed.content == [TextContent("naïve ☃ \U0001f600")]
            told: list[float] = []
            counted = await client.call_tool("count", {"to": 3}, progress=lambda step, *_: told.append(step))
            assert counted.text == "3"
            # Who answers by JSON has no way to tell of steps; in 2026-07-28 it streams all the same.
            assert told in ([1, 2, 3], []) if mode == "json" else told == [1, 2, 3]
            [contents] = (await client.read_resource("memo://today")).contents
            assert contents.text == "Buy milk."


@pytest.mark.parametrize("version", [E, D])
async def test_a_call_that_is_left_is_cancelled_over_there(version: str) -> None:
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


async def test_a_session_that_the_server_has_lost_is_begun_anew(servers: Servers) -> None:
    url = servers.url("sdk_server", "sessions")
    asked: list[bytes] = []
    with trio.fail_after(PATIENCE):
        async with connect(url, versions=[D], trace=lambda _, message: asked.append(message)) as client:
            await client.call_tool("echo", {"text": "1"})
            await end_session(client, url)
            asked.clear()
            assert (await client.call_tool("echo", {"text": "2"})).text == "2"
            assert sum(b'"method":"initialize"' in message for message in asked) == 1
            await client.ping()


async def end_session(client: Client, url: str) -> None:
    """End the session of a client behind its back."""
    place = Url.parse(url)
    session = client._transport._requests.http._transport.session  # type: ignore[attr-defined]
    connection = await Way(*place.origin).dial()
    headers = [(b"host", place.authority), (b"mcp-session-id", session)]
    statuses: list[Any] = []
    await connection.run(RequestHead(b"DELETE", place.target, headers), b"", statuses.extend)
    await connection.aclose()
    assert statuses[0].status == 200


@pytest.mark.requirement("SUB-1")
async def test_it_listens_to_changes_by_a_stream_of_its_own() -> None:
    await test_sdk_server_utilities.test_it_listens_to_changes(E)


async def test_updates_come_on_the_stream_of_the_session(servers: Servers) -> None:
    """Over HTTP the low-level part of the SDK does not declare that lists change."""
    with trio.fail_after(PATIENCE):
        url = servers.url("sdk_utilities", "sessions")
        async with connect(url, versions=[D]) as client, client.listen(uris=["x://n0"]) as changes:
            await client.call_tool("change", {"what": "x://n0"})
            assert await anext(changes) == Change(uri="x://n0")


async def test_another_path_is_no_server_of_mcp(servers: Servers) -> None:
    url = servers.url("sdk_server", "sessions").replace("/mcp", "/other")
    with pytest.raises(ConnectFailed, match=r"404 Not Found: is this the URL of an MCP server\?"):
        await connect(url).__aenter__()
