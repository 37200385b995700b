"""Traces from which something is missing: the judge is certain of nothing that depends on it."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

import pytest

from mcp_core.trace import DamagedLine, Judge, TraceHeader, TraceLine, TruncatedMessage
from mcp_core.trace.judge._message_judge import _is_alone
from mcp_core.trace.judge.rules._registry import RULES, Rule
from tests.core.trace.judge.conversations import (
    META,
    C,
    S,
    Sent,
    Start,
    as_lines,
    ask,
    error,
    judge,
    notify,
    raw_client,
    result,
)
from tests.core.trace.judge.rules.http import SENT_E, SERVED_BEFORE, ended, got
from tests.core.trace.judge.rules.messages import META_E
from tests.core.trace.judge.rules.test_rules import CASES

if TYPE_CHECKING:
    from mcp_core.trace import Finding
    from tests.core.trace.judge.rules.case import Case

LOST: Final = Sent("server", TraceLine(t=0.0, kind="lost", count=1))
BEGIN, BEGUN, INITIALIZED = Start("2025-11-25").messages()
LISTEN: Final = C(ask(9, "subscriptions/listen", notifications={"toolsListChanged": True}))
SUBSCRIPTION: Final = {META + "subscriptionId": 9}


def certain(found: list[Finding]) -> list[str]:
    return [each.row for each in found if each.is_certain]


def with_token(id: int, token: str) -> Sent:
    return C(ask(id, "tools/list", _meta={"progressToken": token}))


@pytest.mark.parametrize(
    ("revision", "said"),
    [
        # The response to initialize, `initialized`, and a response with the id that is used again
        ("2025-11-25", [BEGIN, LOST, INITIALIZED, C(ask(1, "tools/list")), S(result(1, tools=[]))]),
        ("2025-11-25", [BEGIN, BEGUN, LOST, S(ask(1, "roots/list")), C(result(1, roots=[]))]),
        ("2026-07-28", [C(ask(1, "tools/list")), LOST, C(ask(1, "tools/list"))]),
        # A response, and another level
        ("2025-11-25", [BEGIN, BEGUN, INITIALIZED, with_token(1, "a"), LOST, with_token(2, "a")]),
        ("2025-11-25", [BEGIN, BEGUN, INITIALIZED, C(ask(1, "logging/setLevel", level="error")),
               S(result(1)), LOST, S(notify("notifications/message", level="info", data=1))]),
        # The response's body
        ("2026-07-28", [*SERVED_BEFORE, SENT_E, got(1, 200), LOST, ended(1)]),
        # The acknowledgement
        ("2026-07-28", [LISTEN, LOST,
                        S(notify("notifications/tools/list_changed", _meta=SUBSCRIPTION))]),
    ],
)  # fmt: skip
def test_peers_are_not_accused_for_lines_that_were_lost(revision: str, said: list[Sent]) -> None:
    assert certain(judge(None, said, revision)[0]) == []
    found, _ = judge(None, [each for each in said if each is not LOST], revision)
    assert certain(found), "it must be a fault if nothing was lost"


@pytest.mark.parametrize(
    "said",
    [
        S(result(5, tools=[])),
        S(error(5)),
        S(notify("notifications/progress", progressToken=7, progress=1)),
        C(ask(3, "tools/list", cursor="x")),
        C(notify("notifications/cancelled", requestId=7)),
        C(result(5, roots=[])),
        raw_client(ask(3, "tools/list", cursor="x", _meta=META_E)),
    ],
)
@pytest.mark.parametrize("observer", ["client", "server", "between"])
def test_peers_are_not_accused_for_what_was_before_the_trace(observer: Any, said: Sent) -> None:
    judged = Judge(TraceHeader(format_version=1, observer=observer, transport="stdio"))
    line = TraceLine(t=0.0, sender=said.sender, raw=json.dumps(said.message))
    found = judged.receive(line)
    answered = S(result(2, tools=[], resultType="complete", ttlMs=0, cacheScope="public"))
    late = TraceLine(t=0.0, sender="server", raw=json.dumps(answered.message))
    found += judged.receive(late) if observer == "between" else []
    assert certain([*found, *judged.close()]) == []


def test_judge_that_sees_the_start_of_a_process_knows_all_requests() -> None:
    judged = Judge(TraceHeader(format_version=1, observer="between", transport="stdio"))
    judged.receive(TraceLine(t=0.0, kind="spawn", text="x"))
    found = judged.receive(TraceLine(t=0.0, sender="server", raw=json.dumps(result(5))))
    assert certain(found) == ["RPC-7"]


def test_process_that_starts_again_can_get_the_same_ids() -> None:
    judged = Judge(TraceHeader(format_version=1, observer="between", transport="stdio"))
    found: list[Finding] = []
    for _ in range(2):
        found += judged.receive(TraceLine(t=0.0, kind="spawn", text="x"))
        for said in [BEGIN, BEGUN, INITIALIZED, C(ask(1, "ping")), S(result(1))]:
            text = json.dumps(said.message)
            found += judged.receive(TraceLine(t=0.0, sender=said.sender, raw=text))
        found += judged.receive(TraceLine(t=0.0, kind="exit", status=0))
    assert found == []


def test_truncated_response_makes_its_id_unknown() -> None:
    cut = TruncatedMessage(size=9, sha256="")
    line = TraceLine(t=0.0, sender="server", raw='{"jsonrpc"', truncated=cut)
    listed = ask(1, "tools/list")
    found, _ = judge(None, [C(listed), Sent("server", line), C(listed)], "2026-07-28")
    assert certain(found) == []


@pytest.mark.parametrize("each", CASES, ids=[f"{each.row}-{each.revision}" for each in CASES])
def test_right_conversation_with_a_gap_anywhere_has_no_certain_finding(each: Case) -> None:
    """One line is damaged, or the trace begins later."""
    transport = (
        "http" if any(line.exchange for line in as_lines(each.passes, "2025-11-25")) else "stdio"
    )
    header = TraceHeader(format_version=1, observer="between", transport=transport)
    lines: list[TraceLine | DamagedLine] = [*as_lines(each.passes, each.revision)]
    damaged = DamagedLine(reason="x", beginning="")
    for place in range(len(lines)):
        for rest in ([*lines[:place], damaged, *lines[place + 1 :]], lines[place:]):
            judged = Judge(header)
            found = [finding for line in rest for finding in judged.receive(line)]
            assert set(certain([*found, *judged.close()])) <= set(each.pass_allowed)


# Rules that are never certain: that they need earlier messages shows only in their sentences.
DOUBTFUL: Final = frozenset(
    """
    CAP-6 CXL-5 ELIC-1 MRTR-15 MRTR-8 PAGE-3 PRM-1 PRM-4 RES-7 SHL-15 TOOL-24 TSK-7 TX-12 TX-24
    """.split()
)


def cases_with_history() -> list[Case]:
    """Return the cases of rules about a message that needs earlier ones."""
    rules: dict[str, list[Rule]] = {}
    for rule in RULES:
        for row in rule.rows:
            rules.setdefault(row, []).append(rule)
    return [
        each
        for each in CASES
        if each.row in rules
        and (all(one.needs_history for one in rules[each.row]) or each.row in DOUBTFUL)
        and rules[each.row][-1].on in ("request", "notification", "result", "error")
        and each.row not in ("LIFE-1", "TSK-10", "TX-10", "TX-17")  # their cases break a shape
    ]


@pytest.mark.parametrize(
    "each", cases_with_history(), ids=lambda each: f"{each.row}-{each.revision}"
)
def test_fault_after_a_gap_is_inconclusive_and_names_it(each: Case) -> None:
    """Otherwise a reader would look for the cause in what the trace does have."""
    found = [
        finding
        for place in range(len(each.fails), -1, -1)
        for finding in judge(None, [*each.fails[:place], LOST, *each.fails[place:]], each.revision)[
            0
        ]
        if finding.row == each.row and "lost" in finding.sentence
    ]
    assert found
    assert not certain(found)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, True),
        ({"kind": "response"}, True),
        ({"kind": "request"}, False),
        ({"sender": "server"}, False),
        ({"is_modern": True}, False),
        ({"headers": {"mcp-session-id": "s"}}, False),
        ({"initialize": object()}, False),
        ({"has_endpoint": True}, False),
    ],
)
def test_message_without_a_session_is_alone_unless_its_client_is_known(
    changes: dict[str, Any], *, expected: bool
) -> None:
    """A notification or a response names no client, and a handshake or a stream would."""
    found: dict[str, Any] = {
        "sender": "client",
        "is_modern": False,
        "kind": "notification",
        "headers": {},
        "initialize": None,
        "has_endpoint": False,
        **changes,
    }
    message: Any = SimpleNamespace(**found)
    state: Any = SimpleNamespace(negotiation=message, http=message)
    assert _is_alone(message, message, state) is expected
