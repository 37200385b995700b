"""A child process that responds with what cannot be read fails the call, with the reason."""

from __future__ import annotations

import pytest
import trio

from mcp_core.protocol.connection import _unreadable
from mcp_trio import Grace, connect_stdio
from mcp_trio.testing.hostile import hostile_command
from tests.harness.world.waiting import PATIENCE
from tests.unreadable import ROWS, options

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
    """Without a timeout, such a call would wait forever; its error quotes the child's stderr."""
    monkeypatch.setattr(_unreadable, "_DOUBT", 0.05)
    async with connect_stdio(
        hostile_command(attack), stderr="discard", grace=QUICK, **options()
    ) as client:
        with trio.fail_after(PATIENCE), pytest.raises(error) as caught:
            await client.call_tool("x", timeout=None)
        if responds:
            await client.ping()
    for text in texts:
        assert text in str(caught.value)
    assert str(caught.value).endswith(f"\n  its stderr: attack: {attack}")
    assert ("(exit status 3)" in str(caught.value)) == (attack == "exits")
