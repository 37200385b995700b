"""The command of a client as a target of the fuzzer."""

from __future__ import annotations

from mcp_trio.fuzz.client._client_target import ClientTarget


def test_header_has_pseudonyms_of_this_run() -> None:
    """With a key that is known, a pseudonym could be guessed."""
    command = ("client", "{server}", "http://127.0.0.1/?code=12345678")
    shown = {ClientTarget(command).header().target for _ in range(3)}
    assert len(shown) == 3
    assert not any("12345678" in each for each in shown)
