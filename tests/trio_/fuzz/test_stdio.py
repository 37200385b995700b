"""A command as a target of the fuzzer."""

from __future__ import annotations

import trio

from mcp_trio.fuzz._stdio import CommandTarget


async def test_header_has_pseudonyms_of_this_run() -> None:
    """With a key that is known, a pseudonym could be guessed."""
    command = ("server", "http://127.0.0.1/?code=12345678")
    async with trio.open_nursery() as nursery:
        shown = {CommandTarget(command, nursery).header().target for _ in range(3)}
        target = CommandTarget(command, nursery)
        assert target.header().target == target.header().target
    assert len(shown) == 3
    assert not any("12345678" in each for each in shown)
