"""A recorded conversation in place of a server, on both drivers and in both eras."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
import trio

import mcp_trio
from mcp_core import CallTimeout, ConnectionLost, PeerError
from mcp_core.adapters import Recording
from mcp_core.trace import EmptyTrace, InvalidTrace, ReplayStream
from mcp_trio.testing import NotRecorded, connect_judged, replayed
from tests.harness import either
from tests.harness.world import virtual_time

if TYPE_CHECKING:
    from pathlib import Path

    from mcp_core.registry import Server

on_each_driver = pytest.mark.usefixtures("each_driver")
REVISIONS = ("2026-07-28", "2025-11-25", "2024-11-05")
NEAREST = r"tools/call add; the nearest is tools/call add in line \d+, which differs at /params/arg"


def make_server() -> Server:
    """Return a server that notifies, reports progress, asks and changes."""
    server = mcp_trio.Server("desk")
    temperature = 20

    @server.resource("kettle://t")
    def read() -> int:
        """Read the temperature."""
        return temperature

    @server.tool
    async def heat(context: mcp_trio.Context) -> str:
        """Heat the water."""
        nonlocal temperature
        await context.progress(1, 2)
        await context.progress(2, 2)
        temperature += 1
        server.changed(resource="kettle://t")
        return "hot"

    @server.tool
    async def where(context: mcp_trio.Context) -> str:
        """Say where the client works."""
        return str([str(root.uri) for root in await context.roots()])

    @server.tool
    def add(a: int, b: int = 0, token: str = "") -> int:
        """Add two numbers."""
        return a + b

    return server


def roots() -> Any:
    return ["file:///here"]


async def talk(client: Any, token: str = "hush-hush") -> list[Any]:
    """Hold a conversation, and return what the client got."""
    found: list[Any] = [tool.name for tool in await client.list_tools()]
    async with client.listen(uris=["kettle://t"]) as changes:
        result = await client.call_tool("heat", progress=lambda *args: found.append(args[:2]))
        found.append(result.text)
        async for change in changes:
            found.append(change)
            break
    found.append((await client.read_resource("kettle://t")).contents[0].text)
    found.append((await client.call_tool("where")).text)
    found.append((await client.call_tool("add", {"a": 1, "token": token})).text)
    return found


async def record(path: Path, revision: str, transport: str) -> list[Any]:
    """Record a conversation on trio, and return what the client got."""
    options: Any = {
        "versions": [revision],
        "on_roots": roots,
        "record": Recording(path=path, redact=("/params/arguments/token",)),
    }
    server = make_server()
    if transport == "memory":
        async with mcp_trio.connect(server, **options) as client:
            return await talk(client)
    async with trio.open_nursery() as nursery:
        address = await nursery.start(partial(mcp_trio.serve_http, server, port=0))
        async with mcp_trio.connect(address.url, **options) as client:
            found = await talk(client)
        nursery.cancel_scope.cancel()
    return found


async def record_calls(path: Path, *calls: int) -> None:
    async with mcp_trio.connect(make_server(), record=path) as client:
        for each in calls:
            await client.call_tool("add", {"a": each})


@pytest.fixture
def one_call(tmp_path: Path) -> Path:
    """A trace with the call of `add` with 1."""
    path = tmp_path / "one.mcp.jsonl"
    trio.run(record_calls, path, 1)
    return path


@pytest.mark.parametrize("transport", ["memory", pytest.param("http", marks=pytest.mark.long)])
@pytest.mark.parametrize("revision", REVISIONS)
def test_conversation_is_the_same_on_both_drivers(
    revision: str, transport: str, tmp_path: Path
) -> None:
    """The recorded messages come again: progress, questions, changes, and a result for a secret."""
    path = tmp_path / "a.mcp.jsonl"
    recorded = trio.run(record, path, revision, transport)
    assert "hush-hush" not in path.read_text()

    async def play() -> None:
        server = replayed(path)
        async with either.connect(server, on_roots=roots) as client:
            assert client.peer.dialect.version == revision
            assert await talk(client, "other") == recorded
        assert (server.replay.missing, server.replay.notes) == ([], [])

    trio.run(play)
    virtual_time.run(play())


@on_each_driver
async def test_other_call_fails_the_block(one_call: Path) -> None:
    with pytest.raises(NotRecorded, match=NEAREST) as caught:
        async with either.connect(replayed(one_call)) as client:
            await client.call_tool("add", {"a": 2})
    assert isinstance(caught.value.__cause__, PeerError)


@on_each_driver
async def test_error_that_the_client_handles_fails_the_block(one_call: Path) -> None:
    async def handle() -> None:
        async with either.connect(replayed(one_call)) as client:
            with pytest.raises(PeerError, match=NEAREST):
                await client.call_tool("add", {"a": 2})

    with pytest.raises(NotRecorded, match=NEAREST):
        await handle()


@on_each_driver
async def test_call_that_has_no_response_yet_fails_the_block(one_call: Path) -> None:
    """The client's last messages are read, although it waits for no response any more."""

    async def leave() -> None:
        async with either.connect(replayed(one_call)) as client:
            with pytest.raises(CallTimeout):
                await client.call_tool("add", {"a": 2}, timeout=0)

    with pytest.raises(NotRecorded, match=NEAREST):
        await leave()


@on_each_driver
@either.asyncio_only
async def test_replay_that_fails_ends_the_connection(
    one_call: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its calls don't wait for their timeouts."""

    errors: list[Exception] = []

    async def call() -> None:
        async with either.connect(replayed(one_call)) as client:
            monkeypatch.setattr(ReplayStream, "receive_data", _fail)
            try:
                await client.call_tool("add", {"a": 1})
            except ConnectionLost as exc:
                errors.append(exc)

    with pytest.raises(ZeroDivisionError):
        await call()
    assert len(errors) == 1


@on_each_driver
@either.asyncio_only
async def test_replay_ends_if_the_client_cannot_be_made(
    one_call: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mcp_asyncio_shim._connect.Client", _fail)
    with pytest.raises(ZeroDivisionError):
        async with either.connect(replayed(one_call)):
            raise AssertionError


def _fail(*_: object) -> None:
    raise ZeroDivisionError


@on_each_driver
async def test_ignored_argument_does_not_count(one_call: Path) -> None:
    server = replayed(one_call, ignore=["/params/arguments/a"])
    async with either.connect(server) as client:
        assert (await client.call_tool("add", {"a": 2})).text == "1"


@on_each_driver
async def test_exception_of_the_block_passes_unchanged(one_call: Path) -> None:
    with pytest.raises(KeyError):
        async with either.connect(replayed(one_call)):
            raise KeyError


@on_each_driver
async def test_server_can_be_connected_to_twice_at_once(one_call: Path) -> None:
    server = replayed(one_call)
    async with either.connect(server) as one, either.connect(server) as other:
        for client in (one, other, one):
            assert (await client.call_tool("add", {"a": 1})).text == "1"


@on_each_driver
async def test_client_of_another_era_fails_with_the_reason(one_call: Path) -> None:
    with pytest.raises(NotRecorded, match="initialize: the trace has no handshake"):
        async with either.connect(replayed(one_call), versions=["2025-11-25"]):
            pass


@on_each_driver
async def test_conversation_can_be_recorded_again(one_call: Path) -> None:
    again = one_call.with_name("again.mcp.jsonl")
    async with either.connect(replayed(one_call), record=again) as client:
        await client.call_tool("add", {"a": 1})
    async with either.connect(replayed(again)) as client:
        assert (await client.call_tool("add", {"a": 1})).text == "1"


@on_each_driver
async def test_unknown_option_is_an_error(one_call: Path) -> None:
    with pytest.raises(TypeError, match="nonsense"):
        async with either.connect(replayed(one_call), nonsense=1):
            pass


@pytest.mark.long
@pytest.mark.parametrize("revision", ["2026-07-28", "2025-11-25"])
def test_conversations_of_one_trace_are_given_out_in_order(revision: str, tmp_path: Path) -> None:
    """A server records its conversations in one file. Each client gets the next one."""

    path = tmp_path / "server.mcp.jsonl"

    async def serve() -> None:
        async with trio.open_nursery() as nursery:
            serving = partial(mcp_trio.serve_http, make_server(), port=0, record=path)
            address = await nursery.start(serving)
            for number in (1, 2):
                async with mcp_trio.connect(address.url, versions=[revision]) as client:
                    await client.call_tool("add", {"a": 1, "b": number})
            nursery.cancel_scope.cancel()

    trio.run(serve)

    async def play() -> None:
        server = replayed(path)
        for number in (1, 2, 1):
            async with either.connect(server, versions=[revision]) as client:
                assert (
                    await client.call_tool("add", {"a": 1, "b": number})
                ).text == f"{1 + number}"

    trio.run(play)
    virtual_time.run(play())


async def test_replayed_conversation_can_be_judged(one_call: Path) -> None:
    async with connect_judged(replayed(one_call)) as client:
        await client.call_tool("add", {"a": 1})


@pytest.mark.parametrize(
    ("content", "error", "text"),
    [
        (None, FileNotFoundError, r"record one with connect\(server, record=FILE\).*bad\.jsonl"),
        (b"", EmptyTrace, r"bad\.jsonl: "),
        (b"\0" * 9, InvalidTrace, r"bad\.jsonl: "),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n', InvalidTrace, r"bad\.jsonl: "),
        (b'{"mcp-trace": 1}\n', EmptyTrace, r"bad\.jsonl has no request of a client"),
        (b'{"mcp-trace": 1}\njunk\n', EmptyTrace, r"bad\.jsonl has no request of a client"),
        (b'{"mcp-trace": 99}\n', InvalidTrace, r"bad\.jsonl: "),
    ],
)
def test_file_that_cannot_be_replayed_is_an_error_with_its_name(
    content: bytes | None, error: type[Exception], text: str, tmp_path: Path
) -> None:
    path = tmp_path / "bad.jsonl"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(error, match=text):
        replayed(path)


@pytest.mark.parametrize(("ignore", "error"), [("/params/x", TypeError), (["params"], ValueError)])
def test_ignored_text_that_is_no_pointer_is_an_error(
    ignore: Any, error: type[Exception], one_call: Path
) -> None:
    with pytest.raises(error, match="JSON pointer"):
        replayed(one_call, ignore=ignore)
