"""The command of a client as a target of the fuzzer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcp_core.trace import TraceLine, read_trace
from mcp_trio.oracle.fuzz.client._client_target import ClientTarget
from mcp_trio.recording._open import open_recorder

if TYPE_CHECKING:
    from pathlib import Path


def test_header_has_pseudonyms_of_this_run() -> None:
    """With a key that is known, a pseudonym could be guessed."""
    command = ("client", "{server}", "http://127.0.0.1/?code=12345678")
    shown = {ClientTarget(command).header().target for _ in range(3)}
    assert len(shown) == 3
    assert not any("12345678" in each for each in shown)


async def test_sessions_are_recorded_as_conversations(tmp_path: Path) -> None:
    path = tmp_path / "x.mcp.jsonl"
    async with open_recorder(path, "server", "stdio", ["client"]) as recorder:
        target = ClientTarget(["client"])
        target.recorder = recorder
        for _ in range(2):
            session = await target.open()
            session.record(TraceLine(t=0, sender="client", raw="junk"))
    _, lines = read_trace([path.read_bytes()])
    found = [line for _, line in lines if isinstance(line, TraceLine)]
    assert [(line.conversation, line.raw) for line in found] == [(1, "junk"), (2, "junk")]
