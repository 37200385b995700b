"""Steps of the fuzzer that are for HTTP alone."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_trio.oracle.fuzz._call_guard import CallGuard
from mcp_trio.oracle.fuzz.play._player import Player
from tests.trio_.oracle.fuzz.memory_http import played_over_http, response_to
from tests.trio_.oracle.fuzz.memory_target import OLD

CALL = {"name": "wipe", "arguments": {}}


@pytest.mark.parametrize("is_allowed", [False, True])
async def test_wrong_head_of_a_call_is_sent_only_if_the_tool_may_be_called(
    autojump_clock: Any, is_allowed: bool
) -> None:
    case = [("open", OLD, "whole", "all"), ("head", "accept", "tools/call", CALL)]
    player = Player(guard=CallGuard({"wipe"} if is_allowed else set(), lambda: {"wipe"}))
    _, received = await played_over_http(response_to, case, player)
    assert ("tools/call" in [each.get("method") for each in received]) == is_allowed
