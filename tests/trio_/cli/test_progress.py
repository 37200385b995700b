"""Progress: a bar on a terminal, lines elsewhere, always on stderr."""

from __future__ import annotations

import json

from tests.harness.world.command import TEAHOUSE, on_a_terminal, run


def test_call_progress_and_trace_are_printed_to_stderr() -> None:
    result = run(
        "call", "brew", "tea=assam", "minutes=2", "--trace", "--revision", "2025-06-18", *TEAHOUSE
    )
    assert result.stdout == "A pot of assam, steeped for 2 minutes.\n"
    lines = result.stderr.splitlines()
    assert "1 of 2  the assam steeps" in lines
    traced = [line for line in lines if line.startswith(("→ ", "← "))]
    assert len(traced) == len(lines) - 2
    messages = [json.loads(line[2:]) for line in traced]
    assert [line[0] for line in traced[:3]] == ["→", "←", "→"]
    assert messages[0]["params"]["protocolVersion"] == "2025-06-18"
    assert messages[-1]["result"]["content"][0]["text"] in result.stdout


def test_call_terminal_progress_is_a_bar() -> None:
    text = on_a_terminal("call", "brew", "tea=assam", "minutes=4", "--trace", *TEAHOUSE)
    assert "the assam steeps" in text
    assert "━" in text
    assert "^[36m→ ^[0m" in text
    assert "A pot of assam, steeped for 4 minutes." in text
