"""Replay on streams in memory: a server and a client of the same trace, and peers that break."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
import trio
import trio.testing

from mcp_core.trace import ReplayClient, ReplayServer
from mcp_trio.oracle.replay._stream import play_on_stream
from mcp_trio.streams._replayed import serve_on_stream
from tests.core.trace.judge.conversations import C, S, ask, notify, result
from tests.core.trace.replay.traces import CALL, HANDSHAKE, call, recorded, text
from tests.harness.world.waiting import PATIENCE, patience
from tests.levels import long

if TYPE_CHECKING:
    from mcp_core.trace import RecordedTrace

LONG = [
    *HANDSHAKE,
    C(call(1)),
    S(notify("notifications/message", level="info", data="x")),
    S(ask(5, "elicitation/create", message="?")),
    C(result(5, action="decline")),
    S(text(1, "A")),
    *CALL,
]


async def play(trace: RecordedTrace, *, pace: float = 0.0) -> tuple[ReplayClient, ReplayServer]:
    server, client = ReplayServer(trace, pace=pace), ReplayClient(trace.sessions[0])
    ours, theirs = trio.testing.memory_stream_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve_on_stream, server, theirs)
        with trio.fail_after(patience()):
            await play_on_stream(client, ours)
        await ours.aclose()
    return client, server


@pytest.mark.parametrize("pace", [0.0, 1.0])
async def test_client_and_server_of_a_trace_agree(
    pace: float, autojump_clock: trio.testing.MockClock
) -> None:
    client, server = await play(recorded(LONG), pace=pace)
    assert (client.problems, client.unanswered, server.missing) == ([], 0, [])
    assert client.answered == 3


@pytest.mark.parametrize("count", [500, long(2_000)])
async def test_many_requests_do_not_block_each_other(count: int) -> None:
    """More bytes in both directions than a stream holds while its other end only sends."""
    said = [C(call(id, x="y" * 200)) for id in range(count)]
    said += [S(text(id, "A" * 200)) for id in range(count)]
    client, _ = await play(recorded(said))
    assert client.answered == count


async def test_server_that_hangs_is_given_up(autojump_clock: trio.testing.MockClock) -> None:
    client = ReplayClient(recorded(CALL).sessions[0])
    ours, _ = trio.testing.memory_stream_pair()
    await play_on_stream(client, ours)
    assert client.problems == ["no response to tools/call echo within 10 s (line 2)"]


async def test_server_that_ends_is_noticed() -> None:
    client = ReplayClient(recorded(CALL).sessions[0])
    ours, theirs = trio.testing.memory_stream_pair()
    await theirs.aclose()
    with trio.fail_after(PATIENCE):
        await play_on_stream(client, ours)
    assert "the server ended the conversation" in client.problems[0]


async def test_server_of_a_trace_survives_junk() -> None:
    """Junk gets a parse error, and the next call its result."""
    server = ReplayServer(recorded(CALL))
    ours, theirs = trio.testing.memory_stream_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve_on_stream, server, theirs)
        data = b"junk\r\n\n" + json.dumps(call(7, x="a")).encode() + b"\n"
        for index in range(len(data)):
            await ours.send_all(data[index : index + 1])
        received = b""
        with trio.fail_after(PATIENCE):
            while received.count(b"\n") < 2:
                received += await ours.receive_some()
        await ours.aclose()
    error, answer = received.splitlines()
    assert json.loads(error)["error"]["code"] == -32700
    assert json.loads(answer) == text(7, "A")
