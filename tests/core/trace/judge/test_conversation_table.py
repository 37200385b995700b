"""The conversations of a trace that the judge remembers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from mcp_core.trace import HttpHead
from mcp_core.trace._ids import GivenTexts
from mcp_core.trace.judge import _conversation_table
from mcp_core.trace.judge._conversation_table import ConversationTable
from tests.core.trace.judge.conversations import ask, result
from tests.core.trace.judge.seen import message_of, request_of, response_of

if TYPE_CHECKING:
    from mcp_core.trace.judge.conversation._conversation import ConversationState

TOO_MANY = "there are too many conversations to remember"


def table_of(**options: Any) -> ConversationTable:
    given: dict[str, Any] = {
        "is_from_start": True,
        "server_versions": set(),
        "given_states": GivenTexts(is_complete=True),
        "is_ordered": True,
    }
    return ConversationTable("client", **given | options)


def test_conversation_begins_with_what_is_known_of_all() -> None:
    """Versions, states and clients of one server are known in all its conversations."""
    versions, given = {"2025-11-25"}, GivenTexts(is_complete=True)
    table = table_of(server_versions=versions, given_states=given, is_ordered=False)
    assert table.get(3) is None
    state = table.find(3)
    assert table.get(3) is table.find(3) is state
    assert (state.number, state.observer, state.gap) == (3, "client", "")
    assert (state.is_from_start, state.is_ordered) == (True, False)
    assert state.negotiation.server_versions is versions
    assert state.rounds.given is given
    other = table.find(1)
    assert (other.number, other.gap) == (1, "")
    assert other.across is state.across
    assert table_of().find(1).is_ordered


def test_conversation_of_a_process_that_was_started_begins_anew() -> None:
    table = table_of(is_from_start=False)
    before = table.find(1)
    assert not before.is_from_start
    table.spawn(1)
    table.spawn(2)
    after = table.find(1)
    assert after is not before
    assert [table.find(number).is_from_start for number in (1, 2, 3)] == [True, True, False]


def test_lines_that_are_lost_leave_a_gap_in_every_conversation() -> None:
    table = table_of()
    table.find(1).lose("earlier")
    table.find(2)
    table.lose("lost")
    assert [table.find(number).gap for number in (1, 2, 3)] == ["earlier", "lost", "lost"]


def test_oldest_conversation_is_forgotten_if_there_are_too_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One of its number or a lower one may have been there before."""
    monkeypatch.setattr(_conversation_table, "MAX_CONVERSATIONS", 2)
    table = table_of()
    for number in (5, 1, 7):
        table.find(number)
    assert [table.get(number) is not None for number in (5, 1, 7)] == [False, True, True]
    assert [table.find(number).gap for number in (8, 6, 5, 4)] == ["", "", TOO_MANY, TOO_MANY]


def test_conversations_are_closed_from_the_oldest_on() -> None:
    table = table_of()
    states = [table.find(number) for number in (5, 1)]
    for number, count in ((5, 2), (1, 3)):
        table.find(number).unreadable["server"] = count
    assert (table.unread("server"), table.unread("client")) == (5, 0)
    assert [table.pop(), table.pop(), table.pop()] == [*states, None]
    assert table.unread("server") == 0
    assert table.find(1).gap == ""


# -- What lists take -------------------------------------------------------------------------------


def listed(table: ConversationTable, number: int, size: int) -> ConversationState:
    """Return a conversation after a list of tools of `size` bytes."""
    state = table.find(number)
    request = request_of(ask(1, "tools/list"), 2)
    state.lists.receive_request(message_of(ask(1, "tools/list"), 2, "client"))
    state.requests.add(request, 1)
    answer = response_of(result(1, tools=[]), request, 3, size=size)
    table.receive(answer, state)
    return state


@pytest.mark.parametrize(
    ("sizes", "left"),
    [
        ([5, 5, 5], [1, 2, 3]),
        ([5, 5, 6], [2, 3]),
        ([5, 5, 11], [3]),
        ([16], [1]),
        ([16, 1], [2]),
        ([5, 5, 5, 5], [2, 3, 4]),
    ],
)
def test_oldest_conversations_are_forgotten_if_lists_take_too_much(
    sizes: list[int], left: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tools of the last list, and of the one before, count with their bytes."""
    table = table_of()
    taken = listed(table_of(), 1, 5).lists.kept_bytes
    monkeypatch.setattr(_conversation_table, "MAX_KEPT_BYTES", taken * 3)
    for number, size in enumerate(sizes, 1):
        assert listed(table, number, size).number == number
    numbers = range(1, len(sizes) + 1)
    assert [number for number in numbers if table.get(number) is not None] == left


@pytest.mark.parametrize("ends", ["pop", "spawn", "session"])
def test_conversation_that_is_forgotten_takes_nothing(
    ends: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two conversations with lists fit: after the first one's end the second and a third."""
    table = table_of()
    state = listed(table, 1, 5)
    monkeypatch.setattr(_conversation_table, "MAX_KEPT_BYTES", state.lists.kept_bytes * 2)
    if ends == "pop":
        table.pop()
    elif ends == "spawn":
        table.spawn(1)
    else:
        following = table.begin_session(state)
        assert following is table.get(1) is not state
    listed(table, 2, 5)
    listed(table, 3, 5)
    assert table.get(2) is not None
    listed(table, 4, 5)
    assert table.get(4) is not None
    assert table.get(2) is None or ends == "session"


# -- Sessions --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("number", "sent", "session", "gap"),
    [
        (2, "s", "s", "another client uses the session"),
        (1, "s", "s", ""),
        (2, "t", "s", ""),
        (2, None, "s", ""),
        (2, "s", "other", ""),
    ],
)
def test_session_that_another_client_names_has_a_gap(
    number: int, sent: str | None, session: str, gap: str
) -> None:
    """The first conversation got the session `s`, and is now in `session`."""
    table = table_of()
    owner = table.find(1)
    asked = HttpHead(method="POST", target="/mcp")
    exchange = owner.http.add(1, asked, 2, 0.2)
    exchange.add(message_of(ask(1, "initialize"), 2, "client"))
    given = HttpHead(status=200, headers=(("mcp-session-id", "s"),))
    exchange.respond(given, 3, 0.3, has_body=True)
    owner.receive_response_head(exchange)
    assert owner.http.session == "s"
    owner.http.session = session
    headers = () if sent is None else (("mcp-session-id", sent),)
    head = HttpHead(method="POST", target="/mcp", headers=headers)
    table.receive_head(table.find(number).http.add(9, head, 4, 0.4), number)
    assert owner.gap == gap
