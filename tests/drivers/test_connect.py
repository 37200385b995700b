"""Connecting: what each function starts, and the errors when connecting fails.

Servers here are in this process, or played over a memory pair. `test_processes.py` has others.
"""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from mcp_core import ALL, ConnectFailed, ConnectionLost, NotificationReceived, RevisionRefused, Role
from mcp_core import types as t
from mcp_core.registry import CacheHint, Context, Server
from tests.harness import either
from tests.harness.jsonrpc import (
    A,
    D,
    E,
    error,
    result,
)
from tests.harness.wire.client import open_as_server
from tests.harness.wire.lines import Wire

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mcp_trio import Client

pytestmark = pytest.mark.usefixtures("each_driver")


async def fail_to_connect(
    play: Callable[[Wire], Awaitable[object]], **options: Any
) -> ConnectFailed:
    """Connect to a server that `play` plays.

    Return the error, and check that the stream was closed.
    """
    ours, theirs = either.memory_pair()

    async def use() -> None:
        async with either.connect_stream(ours, **options):
            raise AssertionError("it came about")

    async with either.open_nursery() as nursery:
        nursery.start_soon(play, Wire(theirs))
        with pytest.raises(ConnectFailed) as caught:
            await use()
        nursery.cancel_scope.cancel()
    assert either.is_closed(ours)
    return caught.value


@pytest.mark.parametrize("version", ALL)
async def test_connect_server_object_opens_each_revision(version: str) -> None:
    server = Server("here", versions=ALL)
    server.add_tool(hello)
    async with either.connect(server, versions=[version]) as client:
        assert client.peer.dialect.version == version
        assert [tool.name for tool in await client.list_tools()] == ["hello"]
        assert (await client.call_tool("hello")).content == [t.TextContent("hello")]
        await client.ping()


def hello() -> str:
    """Greet."""
    return "hello"


@pytest.mark.parametrize(
    ("client", "server", "agreed"),
    [(ALL, ALL, E), (ALL, (A,), A), ((A, D), ALL, D), (ALL, (D, E), E)],
)
async def test_connect_negotiates_the_newest_common_revision(
    client: tuple[str, ...], server: tuple[str, ...], agreed: str
) -> None:
    async with either.connect(Server("here", versions=server), versions=client) as found:
        assert found.peer.dialect.version == agreed


async def test_connect_without_common_revision_fails() -> None:
    with pytest.raises(RevisionRefused, match="the server refused initialize"):
        await either.connect(Server("here", versions=[E]), versions=[D]).__aenter__()


async def test_connect_options_reach_the_connection() -> None:
    """The second connection knows its peer already, so it opens without a request."""
    server = Server("facts")
    seen: list[Any] = []

    @server.tool
    def facts(context: Context) -> None:
        """Return facts about the request."""
        assert isinstance(context.peer.capabilities, t.ClientCapabilities)
        seen.append((context.peer.info, context.peer.capabilities.extensions))

    crossed: list[tuple[str, bytes]] = []
    info = t.Implementation(name="mine", version="9")
    async with either.connect(
        server,
        info=info,
        extensions={"com.example/x": {"a": 1}},
        trace=lambda *line: crossed.append(line),
    ) as first:
        await first.call_tool("facts")
    extensions = {"com.example/x": {"a": 1}, "io.modelcontextprotocol/tasks": {}}
    assert seen == [(info, extensions)]
    assert [direction for direction, _ in crossed] == ["sent", "received"] * 2
    assert b"server/discover" in crossed[0][1]

    crossed.clear()
    async with either.connect(
        server, known_peer=first.peer, trace=lambda *line: crossed.append(line)
    ) as second:
        assert crossed == []  # no request was needed
        await second.ping()


@pytest.mark.requirement("LOG-3")
@pytest.mark.parametrize("version", ALL)
async def test_connect_log_messages_in_each_revision(version: str) -> None:
    """The handler always sends two levels; what arrives follows the level set last."""
    server = Server("talkative", versions=ALL)

    @server.tool
    async def log_two_levels(context: Context) -> str:
        """Send log messages."""
        await context.log("debug", "small")
        await context.log("warning", {"large": True}, logger="l")
        return "logged"

    logged: list[tuple[str, Any]] = []
    options: Any = {
        "on_log": lambda params: logged.append((params.level, params.data)),
        "versions": [version],
    }
    async with either.connect(server, **options) as client:
        await client.call_tool("log_two_levels")
        assert logged == [("warning", {"large": True})]
        logged.clear()
        await client.set_log_level("debug")
        await client.call_tool("log_two_levels")
        assert logged == [("debug", "small"), ("warning", {"large": True})]
        logged.clear()
        await client.set_log_level("error")
        await client.call_tool("log_two_levels")
        assert logged == []
    async with either.connect(server, log_level="debug", **options) as client:
        await client.call_tool("log_two_levels")
        assert [level for level, _ in logged] == ["debug", "warning"]


@pytest.mark.requirement("CACHE-5", "CACHE-10")
@pytest.mark.parametrize(
    ("version", "cache", "requests"), [(E, True, 3), (E, False, 4), (D, True, 4)]
)
async def test_connect_cached_list_follows_the_server_ttl(
    version: str, cache: bool, requests: int
) -> None:
    """Only 2026-07-28 has a TTL: it lasts 60 seconds, or until the server reports a change."""
    lists: list[bytes] = []

    def trace(direction: str, line: bytes) -> None:
        if direction == "sent" and b"tools/list" in line:
            lists.append(line)

    server = Server("steady", versions=ALL, cache=CacheHint(ttl=60))
    server.add_tool(hello)
    async with either.connect(server, versions=[version], cache=cache, trace=trace) as client:
        began = either.current_time()
        await client.list_tools()
        await client.list_tools()
        assert either.current_time() == began
        await either.sleep(60)
        assert [tool.name for tool in await client.list_tools()] == ["hello"]
        assert len(lists) == requests - 1
        client._handle_notification(changed(client))
        await client.list_tools()
        assert len(lists) == requests


def changed(client: Client) -> NotificationReceived:
    row = client.peer.dialect.receives[Role.CLIENT]["notifications/tools/list_changed"]
    return NotificationReceived(row, t.ListChangedParams(), client.peer)


@pytest.mark.requirement("COMP-2")
@pytest.mark.parametrize("version", ALL)
async def test_connect_completion_is_answered_in_each_revision(version: str) -> None:
    """Arguments chosen before exist since 2025-06-18; older requests come without them."""
    server = Server("knowing", versions=ALL)

    @server.prompt
    def visit(city: str, country: str = "") -> str:
        """Visit a city."""
        return city

    @server.completion("visit", "city")
    def cities(value: str, arguments: dict[str, str]) -> list[str]:
        """Cities."""
        return [f"{value}{arguments.get('country', '?')}"]

    async with either.connect(server, versions=[version]) as client:
        found = await client.complete("visit", "city", "Os", arguments={"country": "NO"})
        assert found.values == ["Os?" if version in (A, "2025-03-26") else "OsNO"]


async def test_connect_keep_alive_detects_a_dead_server() -> None:
    async with either.connect(Server("alive"), keep_alive=10) as client:
        await either.sleep(100)
        await client.ping()
    ours, theirs = either.memory_pair()
    wire = Wire(theirs, D)
    with either.fail_after(60):
        async with either.open_nursery() as nursery:
            nursery.start_soon(open_as_server, wire)
            async with either.connect_stream(ours, versions=[D], keep_alive=10) as client:
                with pytest.raises(ConnectionLost):
                    await client.call_tool("t", timeout=None)


@pytest.mark.parametrize(
    "option", [{"log_level": "loud"}, {"keep_alive": -1}, {"extensions": {"x": {}}}]
)
async def test_connect_invalid_option_raises_before_starting(option: Any) -> None:
    for target in Server("here"), ["no-such-program-anywhere"]:
        with pytest.raises(ValueError, match=r"no log level|keep_alive|'x'"):
            await either.connect(target, **option).__aenter__()


@pytest.mark.parametrize("target", ["a string", b"bytes", 5, None])
async def test_connect_invalid_target_raises_type_error(target: Any) -> None:
    with pytest.raises(TypeError):
        await either.connect(target).__aenter__()


async def test_connect_unknown_revision_raises() -> None:
    with pytest.raises(ValueError, match="not a revision of MCP: 1900-01-01"):
        await either.connect(Server("here"), versions=["1900-01-01"]).__aenter__()


# --- failures -----------------------------------------------------------------------------------


async def hangs_up(wire: Wire) -> None:
    await wire.stream.aclose()


async def hangs_up_when_asked(wire: Wire) -> None:
    await wire.receive()
    await wire.stream.aclose()


async def hangs_up_in_the_middle(wire: Wire) -> None:
    await wire.receive()
    await wire.stream.send_all(b'{"jsonrpc":"2.0",')
    await wire.stream.aclose()


async def does_not_listen(wire: Wire) -> None:
    either.stop_reading(wire.stream)
    await either.sleep_forever()


async def refuses(wire: Wire) -> None:
    with suppress(EOFError):
        while True:
            await wire.send(error((await wire.receive())["id"], -32603, "not today"))


async def answers_nonsense(wire: Wire) -> None:
    with suppress(EOFError):
        while True:
            await wire.send(result((await wire.receive())["id"], {"no": "sense"}))


@pytest.mark.requirement("LIFE-5", "LIFE-24")
@pytest.mark.parametrize(
    ("play", "error"),
    [
        (hangs_up, "the server ended the connection before it was open|the connection broke"),
        (hangs_up_when_asked, "the server ended the connection before it was open"),
        (hangs_up_in_the_middle, "the server ended the connection before it was open"),
        (does_not_listen, "the connection broke"),
        (refuses, "(refused|answered) .*not today"),
        (
            answers_nonsense,
            "(answer to initialize cannot be read|result of server/discover is malformed)",
        ),
    ],
)
@pytest.mark.parametrize("versions", [ALL, [D], [E]])
async def test_connect_failing_handshake_raises_at_once(
    play: Callable[[Wire], Awaitable[object]], error: str, versions: Any
) -> None:
    start = either.current_time()
    failure = await fail_to_connect(play, versions=versions)
    assert re.search(error, str(failure))
    assert either.current_time() == start


async def test_connect_header_mismatch_on_a_pipe_leads_to_the_handshake() -> None:
    """Without HTTP there are no headers, so -32020 is an old server's code for something else."""
    ours, theirs = either.memory_pair()

    async def play() -> None:
        wire = Wire(theirs)
        probe = await wire.receive()
        assert probe["method"] == "server/discover"
        await wire.send(error(probe["id"], -32020, "initialize first"))
        await open_as_server(wire)

    async with either.open_nursery() as nursery:
        nursery.start_soon(play)
        async with either.connect_stream(ours) as client:
            assert client.peer.dialect.version == D
            assert client.needs_handshake


async def test_connect_header_mismatch_to_both_requests_is_the_error() -> None:
    async def play(wire: Wire) -> None:
        with suppress(EOFError):
            while True:
                sent = await wire.receive()
                await wire.send(error(sent["id"], -32020, f"no {sent['method']}"))

    failure = await fail_to_connect(play)
    assert str(failure) == "the server refused server/discover: no server/discover (-32020)"


@pytest.mark.requirement("PROBE-2")
async def test_connect_silent_probe_falls_back_to_initialize(nursery: either.Nursery) -> None:
    ours, theirs = either.memory_pair()
    wire = Wire(theirs)
    start = either.current_time()

    async def play() -> None:
        assert (await wire.receive())["method"] == "server/discover"
        await open_as_server(wire)

    nursery.start_soon(play)
    async with either.connect_stream(ours) as client:
        assert client.peer.dialect.version == D
        assert either.current_time() - start == pytest.approx(15)


async def test_connect_to_a_silent_server_can_be_cancelled() -> None:
    ours, _ = either.memory_pair()
    start = either.current_time()
    with either.move_on_after(100) as scope:
        async with either.connect_stream(ours):
            raise AssertionError("it came about")
    assert scope.cancelled_caught
    assert either.current_time() - start == pytest.approx(100)
    assert either.is_closed(ours)


async def test_connect_block_end_closes_the_stream_and_keeps_its_exception() -> None:
    """The caller's own error must not be wrapped, nor hidden by the closing."""
    ours, theirs = either.memory_pair()
    wire = Wire(theirs)

    async def use() -> None:
        async with either.open_nursery() as nursery:
            nursery.start_soon(open_as_server, wire)
            async with either.connect_stream(ours, versions=[D]):
                raise KeyError("of the block")

    with pytest.raises(ExceptionGroup) as caught:  # the test's own nursery raises it
        await use()
    [failure] = caught.value.exceptions
    assert isinstance(failure, KeyError)
    assert either.is_closed(ours)
    assert await wire.receive_all() == []
