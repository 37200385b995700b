"""MRTR-8 in several conversations: whether a client has made up a `requestState` (2026-07-28)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from mcp_core.trace import (
    DamagedLine,
    HttpHead,
    Judge,
    TraceHeader,
    TraceLine,
    TruncatedMessage,
    _ids,
)
from tests.core.trace.judge.conversations import ask, result
from tests.core.trace.judge.rules.messages import META_E, SERVER_META

if TYPE_CHECKING:
    from mcp_core.trace import Finding

JSON = (("content-type", "application/json"), ("mcp-protocol-version", "2026-07-28"))
LOST = TraceLine(t=0.0, kind="lost", count=1)


def call(conversation: int, **params: Any) -> TraceLine:
    """Return the line of a request over HTTP, which is a conversation of its own."""
    message = ask(1, "tools/call", name="t", _meta=META_E, **params)
    head = HttpHead(method="POST", target="/mcp", headers=(("mcp-method", "tools/call"), *JSON))
    return TraceLine(
        t=0.0,
        conversation=conversation,
        exchange=conversation,
        sender="client",
        http=head,
        raw=json.dumps(message),
    )


def response(conversation: int, text: str, kind: str = "application/json") -> TraceLine:
    head = HttpHead(status=200, headers=(("content-type", kind),))
    return TraceLine(
        t=0.0, conversation=conversation, exchange=conversation, sender="server", http=head,
        raw=text,
    )  # fmt: skip


def asks_input(conversation: int, state: str) -> TraceLine:
    """Return the line of a response that has a state."""
    message = result(1, resultType="input_required", requestState=state, _meta=SERVER_META)
    return response(conversation, json.dumps(message))


def found_in(
    *lines: TraceLine | DamagedLine, all_conversations: bool | None = True
) -> tuple[list[Finding], int]:
    """Return what is found of MRTR-8, and how often it was judged. None is the judge's default."""
    given: Any = {} if all_conversations is None else {"all_conversations": all_conversations}
    judged = Judge(TraceHeader(format_version=1, transport="http"), from_start=True, **given)
    found: list[Finding] = []
    for line in lines:
        found += judged.receive(line)
    found += judged.close()
    return [each for each in found if each.row == "MRTR-8"], judged.opportunities["MRTR-8"]


def test_state_that_no_conversation_has_given_is_certainly_made_up() -> None:
    found, opportunities = found_in(call(1), asks_input(1, "s"), call(2, requestState="t"))
    assert [(each.side, each.is_certain, each.lines) for each in found] == [("client", True, (4,))]
    assert opportunities == 1


@pytest.mark.parametrize("all_conversations", [True, False])
def test_state_of_an_earlier_conversation_passes(all_conversations: bool) -> None:
    lines = call(1), asks_input(1, "s"), call(2, requestState="s")
    assert found_in(*lines, all_conversations=all_conversations) == ([], 1)


def test_retry_without_a_state_is_no_opportunity() -> None:
    assert found_in(call(1), asks_input(1, "s"), call(2), call(3, requestState=1)) == ([], 0)


def truncated() -> TraceLine:
    cut = asks_input(3, "t")
    return TraceLine(
        t=0.0, conversation=3, exchange=3, sender="server", http=cut.http, raw="{",
        truncated=TruncatedMessage(size=10_000_000, sha256="0" * 64),
    )  # fmt: skip


@pytest.mark.parametrize(
    "gap",
    [
        LOST,
        DamagedLine(reason="r", beginning=""),
        truncated(),
        # Another parser can read the state in these.
        response(3, '{"jsonrpc":"2.0","id":1,"result":{"requestState":"t","x":NaN}}'),
        response(3, '{"jsonrpc":"2.0","id":1,"result":{"requestState":"t"}}', "text/plain"),
        response(3, '{"id":1,"result":{"requestState":"t"}}'),
    ],
    ids=["lost", "damaged", "truncated", "no JSON", "other type", "no message"],
)
def test_state_that_the_trace_can_lack_is_inconclusive(gap: TraceLine | DamagedLine) -> None:
    lines = call(1), asks_input(1, "s"), call(3), gap, call(4, requestState="t")
    found, _ = found_in(*lines)
    assert [each.is_certain for each in found] == [False]


@pytest.mark.parametrize("all_conversations", [False, None])
def test_state_of_a_client_with_other_conversations_is_inconclusive(
    all_conversations: bool | None,
) -> None:
    found, _ = found_in(call(2, requestState="t"), all_conversations=all_conversations)
    assert [each.is_certain for each in found] == [False]


def test_state_is_inconclusive_when_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_ids, "MAX_TEXTS", 2)
    given = [line for number in (1, 2) for line in (call(number), asks_input(number, f"{number}"))]
    found, _ = found_in(*given, call(3), asks_input(3, "1"), call(4, requestState="t"))
    assert [each.is_certain for each in found] == [True]
    found, _ = found_in(*given, call(3), asks_input(3, "3"), call(4, requestState="t"))
    assert [each.is_certain for each in found] == [False]
