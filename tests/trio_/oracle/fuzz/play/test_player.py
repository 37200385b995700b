"""The player of cases: a step calls no tool that may not be called."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mcp_trio.oracle.fuzz._call_guard import CallGuard
from mcp_trio.oracle.fuzz.play._player import Player
from tests.trio_.oracle.fuzz.memory_http import played_over_http, response_to
from tests.trio_.oracle.fuzz.memory_target import OLD

OPEN = ("open", OLD, "whole", "all")
CALL: dict[str, Any] = {"name": "wipe", "arguments": {}}
CALL_TEXT = json.dumps({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": CALL})


@pytest.mark.parametrize("is_allowed", [False, True])
@pytest.mark.parametrize(
    "step",
    [
        ("call", "wipe", {}),
        ("request", "tools/call", CALL),
        ("burst", 3, "tools/call", CALL),
        ("mutate", CALL_TEXT),
        ("mutate", f"[{CALL_TEXT}]"),
        ("damage", CALL_TEXT.encode()),
    ],
)
async def test_tool_is_called_by_no_step_unless_it_may_be_called(
    autojump_clock: Any, step: tuple[Any, ...], is_allowed: bool
) -> None:
    player = Player(guard=CallGuard({"wipe"} if is_allowed else set(), lambda: {"wipe"}))
    _, received = await played_over_http(response_to, [OPEN, step], player)
    assert ("wipe" in json.dumps(received)) == is_allowed
