"""A server's lists in recorded conversations: pages, revisions, and lists that are not whole."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_core.trace import RecordedOffers, recorded_offers
from tests.core.trace.judge.conversations import C, S, Sent, ask, error, notify, result
from tests.core.trace.replay.traces import HANDSHAKE, recorded

A, B = {"name": "a", "inputSchema": {}}, {"name": "b", "inputSchema": {}}
META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}


def listed(id: int, cursor: str = "", **members: Any) -> list[Sent]:
    """Return a request for tools, and its result."""
    params = {"cursor": cursor} if cursor else {}
    return [C(ask(id, "tools/list", **params)), S(result(id, **members))]


def offers(*said: Sent) -> dict[str, RecordedOffers]:
    return {each.revision: each for each in recorded_offers(recorded(said))}


@pytest.mark.parametrize(
    ("said", "tools"),
    [
        (listed(2, tools=[A]), [A]),
        ([*listed(2, tools=[A], nextCursor="n"), *listed(3, "n", tools=[B])], [A, B]),
        ([*listed(2, tools=[A]), *listed(3, tools=[B])], [B]),
        (listed(2, tools=[A], nextCursor="n"), None),
        (listed(3, "n", tools=[B]), None),
        ([*listed(2, tools=[A]), C(ask(3, "tools/list")), S(error(3, -32603))], None),
        (listed(2, tools="a"), None),
        ([C(ask(2, "tools/list"))], None),
        ([], None),
    ],
)
def test_list_is_there_if_it_was_read_to_its_end(said: list[Sent], tools: list[Any] | None) -> None:
    assert offers(*HANDSHAKE, *said)["2025-11-25"].lists.get("tools") == tools


def test_handshake_has_name_and_capabilities() -> None:
    found = offers(*HANDSHAKE)["2025-11-25"]
    assert found.server
    assert isinstance(found.capabilities, dict)


def test_stateless_request_names_its_own_revision() -> None:
    said = [C(ask(1, "tools/list", _meta=META)), S(result(1, tools=[A]))]
    assert offers(*said) == {"2026-07-28": RecordedOffers("2026-07-28", lists={"tools": [A]})}


def test_request_without_revision_is_left_out() -> None:
    assert offers(*listed(1, tools=[A])) == {}


def test_messages_between_the_requests_are_passed_over() -> None:
    """A notification, a request of no known revision and a result that was cut off end nothing."""
    said = [C(notify("notifications/x")), *listed(2, tools=[A]), C(notify("notifications/y"))]
    more = [*listed(3, tools=[B]), C(ask(4, "ping")), S(result(4))]
    assert offers(*HANDSHAKE, *said, *more)["2025-11-25"].lists == {"tools": [B]}
    modern = [C(ask(2, "tools/list", _meta=META)), S(result(2, tools=[A]))]
    assert list(offers(*listed(1, tools=[B]), *modern)) == ["2026-07-28"]


def test_name_and_capabilities_are_those_of_the_handshake_alone() -> None:
    """Other results may have members of these names, which mean something else."""
    before = offers(*HANDSHAKE)["2025-11-25"]
    others: dict[str, Any] = {
        "serverInfo": {"name": "other"},
        "capabilities": {"x": {}},
        "instructions": "x",
    }
    found = offers(*HANDSHAKE, *listed(2, tools=[A], **others))["2025-11-25"]
    assert (found.server, found.capabilities) == (before.server, before.capabilities)
    assert found.instructions == before.instructions
