"""Limits of the judge: what a trace may make it keep."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mcp_core.trace.judge import (
    _conversation_table,
    _evidence,
    _exchange_judge,
    _message,
    _message_judge,
    _report,
    _texts,
)
from mcp_core.trace.judge.conversation import (
    _across,
    _bounds,
    _conversation,
    _http,
    _lists,
    _negotiation,
    _requests,
    _rounds,
    _tasks,
)

if TYPE_CHECKING:
    from types import ModuleType


# Other tests replace many of these with small ones, or compute with them.
@pytest.mark.parametrize(
    ("module", "name", "value"),
    [
        (_conversation_table, "MAX_CONVERSATIONS", 1_000),
        (_conversation_table, "MAX_KEPT_BYTES", 32 * 1024 * 1024),
        (_evidence, "_MAX_BREACHED", 1_000),
        (_exchange_judge, "MAX_EXCHANGE_BYTES", 8 * 1024 * 1024),
        (_message, "MAX_PARAMS", 4096),
        (_message, "_HOLDS", 60.0),
        (_message, "_LONG_ID", 200),
        (_message, "_MAX_MEMBER", 2048),
        (_message, "_MAX_META", 50),
        (_message_judge, "_SMALL_BATCH", 10),
        (_report, "MAX_INCONCLUSIVE", 10_000),
        (_texts, "_MAX_PIECES", 200),
        (_texts, "_MAX_PIECES_SIZE", 20_000),
        (_across, "MAX_GIVEN", 10_000),
        (_across, "MAX_NAMES", 100),
        (_across, "MAX_REQUESTS", 8),
        (_across, "MAX_REQUEST_BYTES", 4096),
        (_across, "MIN_MARK", 16),
        (_bounds, "MAX_ENTRIES", 10_000),
        (_conversation, "_LONG", 100),
        (_conversation, "_SMALL", 4096),
        (_http, "MAX_EXCHANGES", 1_000),
        (_http, "MAX_EVENTS", 10_000),
        (_http, "_MAX_MESSAGES", 100),
        (_http, "_MAX_SESSIONS", 1_000),
        (_lists, "MAX_TOOL_BYTES", 8 * 1024 * 1024),
        (_lists, "MAX_LIST_BYTES", 1024 * 1024),
        (_negotiation, "_MAX_REJECTED", 100),
        (_requests, "MAX_OPEN", 10_000),
        (_requests, "MAX_ANSWERED", 1_000),
        (_requests, "MAX_EARLIER", 100),
        (_rounds, "MAX_ROUNDS", 1_000),
        (_rounds, "MAX_ROUND_BYTES", 65_536),
        (_tasks, "MAX_TASK_ID", 1024),
        (_tasks, "_MAX_KEYS", 10_000),
    ],
)
def test_limit_has_its_value(module: ModuleType, name: str, value: float) -> None:
    assert getattr(module, name) == value
