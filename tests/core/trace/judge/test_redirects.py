"""A redirect judged: its request was not handled, and is sent again elsewhere."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_core.trace import TraceLine
from tests.core.trace.judge.conversations import ask, judge, result
from tests.core.trace.judge.rules.http import (
    CALL,
    CALL_E,
    CALLED,
    CALLED_E,
    IN,
    INITIALIZE,
    INITIALIZED,
    MIRRORED,
    NOTE,
    SESSION,
    START,
    got,
    sent,
)
from tests.core.trace.judge.rules.test_rules import CASES

REDIRECT: Any = (307, None, {"location": "http://a/mcp/"})
OTHER = ask(2, "tools/call", name="u")

REDIRECTED: Any = [
    sent(1, INITIALIZE, {}),
    got(1, *REDIRECT),
    sent(2, INITIALIZE, {}),
    got(2, 200, INITIALIZED, SESSION),
    sent(3, NOTE, IN),
    got(3, *REDIRECT),
    sent(4, NOTE, IN),
    got(4, 202),
    sent(5, CALL, IN),
    got(5, *REDIRECT),
    sent(6, CALL, IN),
    got(6, 308, None, {"location": "/mcp"}),
    sent(7, CALL, IN),
    got(7, 200, CALLED),
]
REDIRECTED_E: Any = [
    sent(1, CALL_E, MIRRORED),
    got(1, *REDIRECT),
    sent(2, CALL_E, MIRRORED),
    got(2, 200, CALLED_E),
]


@pytest.mark.requirement("RPC-4")
@pytest.mark.parametrize(
    ("told", "revision"), [(REDIRECTED, "2025-11-25"), (REDIRECTED_E, "2026-07-28")]
)
def test_redirected_request_is_sent_again_with_its_id(told: Any, revision: str) -> None:
    found, judged = judge(None, told, revision)
    assert found == []
    assert judged.opportunities["RPC-5" if revision == "2026-07-28" else "RPC-4"] >= 1


@pytest.mark.requirement("RPC-4")
@pytest.mark.parametrize(
    ("status", "again"), [(307, OTHER), (200, CALL)], ids=["another call", "no redirect"]
)
def test_id_is_used_twice_in_spite_of_a_redirect(status: int, again: Any) -> None:
    """Only the same message, and only after a redirect."""
    body = CALLED if status == 200 else None
    told = [*START, sent(3, CALL, IN), got(3, status, body), sent(4, again, IN)]
    found, _ = judge(None, told, "2025-11-25")
    assert {each.row for each in found} == {"RPC-4"}


@pytest.mark.parametrize(
    ("tools", "rows"), [([], {"RPC-4"}), (5, {"RPC-4", "TOOL-2"})], ids=["right", "wrong"]
)
def test_rejected_request_leaves_an_earlier_one_with_its_id(tools: Any, rows: set[str]) -> None:
    """The server answers that one, and only once."""
    earlier = ask(2, "tools/list")
    told = [*START, sent(3, earlier, IN), sent(4, CALL, IN), got(4, 404)]
    found, _ = judge(None, [*told, got(3, 200, result(2, tools=tools))], "2025-11-25")
    assert {each.row for each in found} == rows


@pytest.mark.parametrize(
    "row", ["SHM-3", "HDR-3", "HDR-10", "HDR-11", "HTTP-1", "AR-13", "AR-14", "HTTP-8", "HTTP-9"]
)
def test_redirect_says_nothing_about_how_a_request_is_served(row: str) -> None:
    """The fault of each case is that a request is served: here it is redirected instead."""
    case = next(each for each in CASES if each.row == row)
    *before, answer = case.fails
    assert isinstance(answer.message, TraceLine)
    told = [*before, got(answer.message.exchange, *REDIRECT)]
    found, _ = judge(None, told, case.revision)
    assert {each.row for each in found} <= set(case.allowed)
