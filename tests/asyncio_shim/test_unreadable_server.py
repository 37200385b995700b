"""A child process that responds with what cannot be read fails the call at once, on asyncio too."""

from __future__ import annotations

import asyncio

import pytest

from mcp_asyncio_shim import _stdio, connect
from mcp_core.protocol.connection import _unreadable
from mcp_trio.testing.hostile import hostile_command
from tests.harness.world.loop import run_with_processes
from tests.harness.world.waiting import PATIENCE
from tests.unreadable import ROWS, options


@pytest.mark.parametrize(
    ("attack", "error", "texts", "responds"), ROWS, ids=[row[0] for row in ROWS]
)
def test_unreadable_response_of_child_fails_the_call_at_once(
    attack: str,
    error: type[Exception],
    texts: tuple[str, ...],
    responds: bool,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """No timeout is set, so an unanswered id would hang; some attacks leave the server usable."""
    monkeypatch.setattr(_unreadable, "_DOUBT", 0.05)
    monkeypatch.setattr(_stdio, "_GRACE", 0.3)

    async def main() -> None:
        async with connect(hostile_command(attack), **options()) as client:
            with pytest.raises(error) as caught:
                async with asyncio.timeout(PATIENCE):
                    await client.call_tool("x", timeout=None)
            if responds:
                await client.ping()
        for text in texts:
            assert text in str(caught.value)

    run_with_processes(main())
    assert capfd.readouterr().err == f"attack: {attack}\n"
