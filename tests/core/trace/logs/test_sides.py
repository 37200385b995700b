"""Which side has sent a message of a log that doesn't name it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from mcp_core.trace.logs import _sides
from mcp_core.trace.logs._sides import SideGuesser

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mcp_core.trace.logs._sides import Side

CALL: dict[str, Any] = {"id": 1, "method": "x", "params": {"_meta": {"progressToken": "t"}}}
PROGRESS: dict[str, Any] = {"method": "notifications/progress", "params": {"progressToken": "t"}}
CANCELLED: dict[str, Any] = {"method": "notifications/cancelled", "params": {"requestId": 1}}
RESULT: dict[str, Any] = {"id": 1, "result": {}}
CLIENT: tuple[Side, dict[str, Any]] = ("client", CALL)
SERVER: tuple[Side, dict[str, Any]] = ("server", CALL)
TO_CLIENT: tuple[Side, dict[str, Any]] = ("server", RESULT)
TO_SERVER: tuple[Side, dict[str, Any]] = ("client", RESULT)


def guesser_after(messages: Iterable[tuple[Side, dict[str, Any]]]) -> SideGuesser:
    guesser = SideGuesser()
    for side, message in messages:
        guesser.add(message, side)
    return guesser


@pytest.mark.parametrize(
    ("before", "message", "expected"),
    [
        # A method that only one side receives.
        ([], {"id": 1, "method": "tools/call"}, "client"),
        ([], {"method": "notifications/initialized"}, "client"),
        ([], {"id": 1, "method": "roots/list"}, "server"),
        ([], {"method": "notifications/tools/list_changed"}, "server"),
        ([], {"id": 1, "method": "x"}, None),
        # Either side may send these, and servers send few.
        *(
            ([], {"id": 1, "method": method}, "client")
            for method in ("ping", "tasks/get", "tasks/result", "tasks/list", "tasks/cancel")
        ),
        ([CLIENT], {"id": 1, "method": "ping"}, "server"),
        ([CLIENT, TO_CLIENT], {"id": 1, "method": "ping"}, "server"),
        ([SERVER], {"id": 1, "method": "ping"}, "client"),
        # A cancellation is its sender's.
        ([], CANCELLED, None),
        ([CLIENT], CANCELLED, "client"),
        ([SERVER], CANCELLED, "server"),
        ([CLIENT, SERVER], CANCELLED, None),
        ([CLIENT, SERVER, TO_CLIENT], CANCELLED, "server"),
        ([CLIENT, SERVER, TO_SERVER], CANCELLED, "client"),
        ([CLIENT, SERVER, TO_CLIENT, TO_SERVER], CANCELLED, None),
        ([CLIENT, TO_CLIENT], CANCELLED, "client"),  # too late, but no other side has the id
        ([CLIENT], {**CANCELLED, "params": {"requestId": "1"}}, None),
        ([CLIENT], {**CANCELLED, "params": {"requestId": None}}, None),
        # Progress is the other side's.
        ([], PROGRESS, None),
        ([CLIENT], PROGRESS, "server"),
        ([SERVER], PROGRESS, "client"),
        ([CLIENT, SERVER], PROGRESS, None),
        ([("client", {**CALL, "id": 2, "params": {}})], PROGRESS, None),
        # So is a response.
        ([], RESULT, None),
        ([CLIENT], RESULT, "server"),
        ([SERVER], RESULT, "client"),
        ([CLIENT], {"id": 1, "error": {}}, "server"),
        ([CLIENT], {"id": None, "error": {}}, None),
        ([CLIENT, SERVER, TO_CLIENT], RESULT, "client"),
        # Both sides have asked under the id, and a result shows what it answers.
        *(
            ([CLIENT, SERVER], {"id": 1, "result": {member: 1}}, "client")
            for member in ("roots", "action", "role")
        ),
        ([CLIENT, SERVER], {"id": 1, "result": {"tools": 1}}, "server"),
        ([CLIENT, SERVER], {"id": 1, "error": {}}, None),
        ([("client", {"method": "x"})], {"id": None, "result": {}}, None),
    ],
)  # fmt: skip
def test_side_is_guessed_by_the_method_or_by_earlier_messages(
    before: Iterable[tuple[Side, dict[str, Any]]], message: dict[str, Any], expected: Side | None
) -> None:
    assert guesser_after(before).guess(message) == expected


def test_request_is_open_until_the_other_side_responds() -> None:
    """Its id can be used again."""
    guesser = guesser_after([CLIENT])
    assert guesser.has_open("client")
    assert guesser.has_open("client", 1)
    assert not guesser.has_open("client", 2)
    assert not guesser.has_open("client", [1])
    assert not guesser.has_open("server")
    assert not guesser.has_open("server", 1)
    guesser.add(RESULT, "client")  # its own response answers nothing
    guesser.add({"id": 2, "result": {}}, "server")
    assert guesser.has_open("client", 1)
    guesser.add(RESULT, "server")
    assert not guesser.has_open("client")
    assert not guesser.has_open("client", 1)
    guesser.add(CALL, "client")
    assert guesser.has_open("client", 1)


def test_earliest_ids_and_tokens_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is used again is no longer the earliest."""
    monkeypatch.setattr(_sides, "_MAX_IDS", 2)
    calls = [
        ("client", {"id": id, "method": "x", "params": {"_meta": {"progressToken": id}}})
        for id in (1, 2, 1, 3)
    ]
    guesser = guesser_after(calls)  # type: ignore[arg-type]
    assert [guesser.has_open("client", id) for id in (1, 2, 3)] == [True, False, True]
    found = [guesser.guess({**PROGRESS, "params": {"progressToken": id}}) for id in (1, 2, 3)]
    assert found == ["server", None, "server"]
