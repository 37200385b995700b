"""The player of cases: what it sends, and what it reports."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mcp_trio.fuzz._play import Player

from .memory_http import played_over_http, response_to
from .memory_target import OLD

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
    player = Player(may_call=lambda name: is_allowed)
    _, received = await played_over_http(response_to, [OPEN, step], player)
    assert ("wipe" in json.dumps(received)) == is_allowed
