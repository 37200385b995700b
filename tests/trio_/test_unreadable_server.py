"""A child process that responds with what cannot be read fails the call, with the reason."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio
import trio.testing

from mcp_core import CallTimeout
from mcp_core.protocol.connection import _unreadable
from mcp_trio import Grace, connect_stdio, connect_stream, memory_pair
from mcp_trio.testing.hostile import hostile_command
from tests.core.helpers import D
from tests.harness.client import open_as_server
from tests.trio_.wire import Wire
from tests.unreadable import ROWS, options

if TYPE_CHECKING:
    MockClock = trio.testing.MockClock

QUICK = Grace(stdin=0.2, terminate=0.3)


@pytest.mark.parametrize(
    ("attack", "error", "texts", "responds"), ROWS, ids=[row[0] for row in ROWS]
)
async def test_unreadable_response_of_child_fails_the_call_at_once(
    attack: str,
    error: type[Exception],
    texts: tuple[str, ...],
    responds: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_unreadable, "_DOUBT", 0.05)
    async with connect_stdio(
        hostile_command(attack), stderr="discard", grace=QUICK, **options()
    ) as client:
        with trio.fail_after(5), pytest.raises(error) as caught:
            await client.call_tool("x", timeout=None)
        if responds:
            await client.ping()
    for text in texts:
        assert text in str(caught.value)
    assert str(caught.value).endswith(f"\n  its stderr: attack: {attack}")
    assert ("(exit status 3)" in str(caught.value)) == (attack == "exits")


async def test_unreadable_response_is_in_the_text_of_a_timeout(autojump_clock: MockClock) -> None:
    ours, theirs = memory_pair()
    wire = Wire(theirs, D)

    async def play() -> None:
        await open_as_server(wire)
        assert (await wire.receive())["method"] == "tools/call"
        await theirs.send_all(b"done\n")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(play)
        async with connect_stream(ours, versions=[D]) as client:
            with pytest.raises(CallTimeout) as caught:
                await client.call_tool("x", timeout=5)
    assert str(caught.value) == (
        "no answer to tools/call within 5 s (timeout); the server wrote a line that is not an MCP"
        " message: b'done'"
    )
