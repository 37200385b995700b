"""Hostile HTTP servers: the kit itself, and our clients against each attack."""

from __future__ import annotations

import asyncio
import gc
import zlib
from types import SimpleNamespace
from typing import Any, Final

import pytest
import trio
import trio.testing

import mcp_asyncio_shim
from mcp_core import LATEST, Limits, McpTrioError
from mcp_trio import connect
from mcp_trio.testing import hostile
from mcp_trio.testing.hostile import _server, _server_attacks
from mcp_trio.testing.hostile._attack import reset_when_closed
from mcp_trio.testing.hostile._server import AttackedRequest
from tests.harness.jsonrpc import D
from tests.harness.world.waiting import PATIENCE
from tests.testing.hostile.memory import MIB, BoundedMemory
from tests.testing.hostile.threads import in_thread

NAMES: Final = [attack.name for attack in hostile.SERVER_ATTACKS]
# In the default run: one of each kind that ends at once.
SAMPLE: Final = (
    "closes", "half-response", "two-lengths", "endless-head", "redirect-elsewhere", "sse-cut",
    "second-response", "unknown-events", "duplicate-response", "log-flood", "body-deep-array",
    "event-nul", "plain-https",
)  # fmt: skip
LIMITS: Final = Limits(message=MIB)
# Seconds for a call that nothing else ends. A slow machine may not even have sent it by then, so it
# is made again with more.
TIMEOUTS: Final = (0.3, 3.0, PATIENCE)
# What the client takes as the response although it is an attack, beside those that say so.
SERVED: Final = ("length-and-chunked", "second-response", "session-changes", "get-closes")


def responds(attack: str) -> bool:
    """Whether the client takes a response although it is attacked."""
    expects = next(each.expects for each in hostile.SERVER_ATTACKS if each.name == attack)
    return "take the response" in expects.lower() or "Take the first" in expects or attack in SERVED


def timeouts_of(attack: str) -> tuple[float, ...]:
    """The timeouts of its calls: short if nothing else may end the attack.

    A flood of headers that arrives at once is a head, and its body never ends.
    """
    ends = attack in SAMPLE or responds(attack)
    return (PATIENCE,) if ends else TIMEOUTS


async def call(url: str, attack: str, version: str, timeout: float) -> str:
    """Call the tool, and return the text of the result or the error."""
    try:
        async with connect(url, versions=[version], limits=LIMITS, max_listing=MIB) as client:
            if attack == "endless-pages":
                return str(len(await client.list_tools()))
            return (await client.call_tool("attack", max_timeout=timeout)).text
    except McpTrioError as exc:
        return f"{type(exc).__name__}: {exc}"


async def test_hostile_server_block_that_fails_raises_without_a_group() -> None:
    with pytest.raises(ZeroDivisionError):
        async with hostile.hostile_server("closes"):
            raise ZeroDivisionError


async def survive(attack: str, version: str) -> None:
    with BoundedMemory(32 * MIB):
        async with hostile.hostile_server(attack) as server:
            with trio.fail_after(PATIENCE):
                outcome = ""
                for timeout in timeouts_of(attack):
                    outcome = await call(server.url, attack, version, timeout)
                    if server.attacks or outcome == "done":
                        break
    assert server.attacks or (attack, version) == ("get-closes", LATEST)  # it has no GET
    assert server.most_connections < 30
    if responds(attack):
        assert outcome == "done"
    else:
        assert outcome == "done" or "Error" in outcome or ":" in outcome


@pytest.mark.parametrize("attack", SAMPLE)
async def test_client_survives_quick_attack(attack: str, no_leaks: None) -> None:
    await survive(attack, D)


@pytest.mark.slow
@pytest.mark.parametrize("version", [LATEST, D])
@pytest.mark.parametrize("attack", NAMES)
async def test_client_survives_attack(attack: str, version: str, no_leaks: None) -> None:
    await survive(attack, version)


@pytest.mark.parametrize("attack", ["body-nan", "other-id", "wrong-type", "two-lengths", "sse-cut"])
async def test_client_failed_calls_are_forgotten(attack: str) -> None:
    """The error of a call that is kept is a leak that a server can drive."""

    def count_errors() -> int:
        gc.collect()
        return sum(isinstance(each, McpTrioError) for each in gc.get_objects())

    async def fail(client: Any) -> None:
        with pytest.raises(McpTrioError):
            await client.call_tool("attack", max_timeout=PATIENCE)

    async with (
        hostile.hostile_server(attack) as server,
        connect(server.url, versions=[D]) as client,
    ):
        await fail(client)
        before = count_errors()
        for _ in range(5):
            await fail(client)
        assert count_errors() <= before


def survive_on_asyncio(attack: str) -> None:
    async def call(url: str, timeout: float) -> str:
        try:
            async with mcp_asyncio_shim.connect(
                url, versions=[D], limits=LIMITS, initialize_timeout=PATIENCE
            ) as client:
                return (await client.call_tool("attack", max_timeout=timeout)).text
        except McpTrioError as exc:
            return f"{type(exc).__name__}: {exc}"

    async def main() -> None:
        async with asyncio.timeout(PATIENCE):
            for timeout in timeouts_of(attack):
                assert await call(server.url, timeout)
                if server.attacks or attack == "endless-pages":
                    break

    with BoundedMemory(32 * MIB), in_thread(attack) as server:
        asyncio.run(main())
    if attack != "endless-pages":
        assert server.attacks


@pytest.mark.parametrize("attack", SAMPLE[:6])
def test_asyncio_client_survives_quick_attack(attack: str) -> None:
    survive_on_asyncio(attack)


@pytest.mark.slow
@pytest.mark.parametrize("attack", NAMES)
def test_asyncio_client_survives_attack(attack: str) -> None:
    survive_on_asyncio(attack)


# -- The kit ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("table", [
    hostile.SERVER_ATTACKS, hostile.CHILD_ATTACKS, hostile.CLIENT_ATTACKS, hostile.MESSAGE_ATTACKS,
], ids=["server", "child", "client", "message"])  # fmt: skip
def test_attacks_have_names_with_sentences(table: tuple[hostile.Attack, ...]) -> None:
    assert len({str(attack) for attack in table}) == len(table) > 10
    for attack in table:
        assert str(attack) == attack.name
        assert attack.does.endswith(".")
        assert attack.expects.endswith(".")


def test_each_message_can_be_the_line_of_a_child_in_full() -> None:
    lines = [each for each in hostile.CHILD_ATTACKS if each.name.startswith("line-")]
    assert [each.name for each in lines] == [f"line-{each}" for each in hostile.MESSAGE_ATTACKS]
    for line, message in zip(lines, hostile.MESSAGE_ATTACKS, strict=True):
        payload = hostile.hostile_command(line)[-1]
        assert len(payload) < 128 * 1024  # the longest argument on Linux
        data = hostile.hostile_message(message)
        assert zlib.decompress(bytes.fromhex(payload)) == data
        assert b"\n" not in data


@pytest.mark.parametrize("version", [D, LATEST])
async def test_hostile_server_is_honest_before_its_attack(version: str) -> None:
    async with (
        hostile.hostile_server("silent") as server,
        connect(server.url, versions=[version]) as client,
    ):
        assert [tool.name for tool in await client.list_tools()] == ["attack"]
        assert await client.list_prompts() == []
        assert await client.list_resources() == []
    assert server.attacks == server.bytes_sent == 0
    assert server.connections == server.most_connections >= 1
    assert server.open_connections == 0
    assert "tools/list" in server.requests
    assert str(server) == server.url
    assert server.heads[0].startswith(b"POST /mcp HTTP/1.1")


async def test_hostile_server_attacks_the_named_method() -> None:
    async with (
        hostile.hostile_server("closes", on="tools/list") as server,
        connect(server.url, versions=[D]) as client,
    ):
        assert (await client.call_tool("attack")).text == "done"
        with pytest.raises(McpTrioError):
            await client.list_tools()
    assert server.attacks >= 1  # a client may send a listing again


class CollectingStream:
    """A stream that collects what is sent."""

    def __init__(self) -> None:
        self.sent = b""

    async def send_all(self, data: bytes) -> None:
        self.sent += data
        await trio.lowlevel.checkpoint()


@pytest.mark.parametrize(
    ("attack", "missing", "lengths"),
    [
        ("long-length", 0, [100]),
        ("short-length", 0, [-5]),
        ("two-lengths", 0, [0, -5]),
        ("half-response", 0.5, [0]),
    ],
)
async def test_attack_by_length_names_another_one_than_its_body_has(
    attack: str, missing: float, lengths: list[int], autojump_clock: Any
) -> None:
    """The response that the client waits for is in it, so it must not be taken."""
    stream: Any = CollectingStream()
    server: Any = SimpleNamespace(bytes_sent=0)
    request = AttackedRequest(stream, server, b"POST /mcp HTTP/1.1", {"id": 7})
    with trio.move_on_after(1):
        await _server_attacks._plays[attack][0](request)
    head, _, body = stream.sent.decode().partition("\r\n\r\n")
    assert head.startswith("HTTP/1.1 200 OK\r\n")
    whole = request.result().decode()
    assert body == whole[: int(len(whole) * (1 - missing))]
    named = [int(line.split()[1]) for line in head.split("\r\n") if "Content-Length" in line]
    assert [each - len(whole) for each in named] == lengths


async def test_connection_that_is_reset_does_not_end_in_order() -> None:
    [listener] = await trio.open_tcp_listeners(0, host="127.0.0.1")
    async with listener, await trio.open_tcp_stream(*listener.socket.getsockname()) as theirs:
        ours = await listener.accept()
        reset_when_closed(ours)
        await trio.aclose_forcefully(ours)
        with trio.fail_after(PATIENCE), pytest.raises(trio.BrokenResourceError):
            await theirs.receive_some()


async def test_redirect_loop_goes_on_over_one_connection() -> None:
    """A client that gives up only when the connection ends must not get away."""
    body = b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}'
    head = b"POST /mcp HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % len(body)
    async with hostile.hostile_server("redirect-loop", on="tools/list") as server:
        port = int(server.url.split(":")[2].split("/")[0])
        async with await trio.open_tcp_stream("127.0.0.1", port) as stream:
            for _ in range(3):
                await stream.send_all(head + body)
                received = b""
                while b"\r\n\r\n" not in received:
                    received += (part := await stream.receive_some())
                    assert part
                assert received.startswith(b"HTTP/1.1 307 ")
        assert server.attacks == 3


async def test_hostile_server_sends_no_more_than_its_bound() -> None:
    async with hostile.hostile_server("endless-sse", on="connect") as server:
        stream = await trio.open_tcp_stream(
            "127.0.0.1", int(server.url.split(":")[2].split("/")[0])
        )
        async with stream:
            total = 0
            with trio.fail_after(PATIENCE):
                while data := await stream.receive_some():
                    total += len(data)
    assert hostile.MAX_BYTES < total < hostile.MAX_BYTES + 100_000


async def test_hostile_server_ends_after_its_time(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: Any
) -> None:
    monkeypatch.setattr(_server, "MAX_SECONDS", 0.05)
    async with hostile.hostile_server("silent", on="connect") as server:
        port = int(server.url.split(":")[2].split("/")[0])
        async with await trio.open_tcp_stream("127.0.0.1", port) as stream:
            assert await stream.receive_some() == b""


@pytest.mark.parametrize("use", [
    hostile.hostile_server, hostile.hostile_command, hostile.hostile_message,
])  # fmt: skip
def test_unknown_attack_names_the_known_ones(use: Any) -> None:
    with pytest.raises(ValueError, match="'nothing'; there are "):
        use("nothing")


async def test_second_response_leaves_the_connection_open() -> None:
    """Else its end would say that the further ones belong to no request."""
    ours, theirs = trio.testing.memory_stream_pair()
    stream: Any = theirs
    request = AttackedRequest(stream, _server.HostileServer("http://x"), b"", {"id": 1})
    assert await _server_attacks._second_response(request)
    await theirs.aclose()
    received = b"".join([bytes(data) async for data in ours])
    assert (received.count(b'"id":1,'), received.count(b"forged")) == (2, 10)
