"""Clients that share what they may share: the judge accuses no server of it."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from mcp_core.trace.judge.conversation._across import (
    MAX_NAMES,
    MAX_REQUEST_BYTES,
    MAX_REQUESTS,
    AcrossClients,
    MarkedRequest,
    _marked_request,
)
from tests.core.trace.judge.conversations import INFO, Sent, ask, judge, notify, result
from tests.core.trace.judge.rules.clients import (
    IN_OTHER,
    MADE_UP,
    MINE,
    OTHER,
    READ_ONLY,
    TWO,
    YOURS,
    called,
    listed,
    logged,
    opened,
    resumed,
    second,
    second_called,
    set_again,
    tools,
)
from tests.core.trace.judge.rules.http import IN, INITIALIZE, SSE, START, VERSION, event, got, sent

CHANGED = notify("notifications/tools/list_changed")
GET = {"accept": SSE, **IN}
GET_OTHER = {"accept": SSE, **IN_OTHER}
# Another client sets the level in the session of the first one.
SET_ELSEWHERE = second(
    sent(14, ask(9, "logging/setLevel", level="debug"), IN), got(14, 200, result(9))
)
LISTED = result(
    1,
    protocolVersion="2025-11-25",
    capabilities={"tools": {"listChanged": True}},
    serverInfo=INFO,
)
LIVELY = [
    sent(1, INITIALIZE, {}),
    got(1, 200, LISTED, {"mcp-session-id": "s"}),
    *second(sent(11, INITIALIZE, {}), got(11, 200, LISTED, {"mcp-session-id": "other"})),
]
# Two levels at once: the server may read them in either order.
AT_ONCE = [
    sent(6, ask(6, "logging/setLevel", level="error"), IN),
    sent(7, ask(7, "logging/setLevel", level="info"), IN),
    got(7, 200, result(7)),
    got(6, 200, result(6)),
]


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param(
            [
                *LIVELY,
                sent(3, None, GET, "GET"),
                got(3, 200, kind=SSE),
                event(3, CHANGED),
                *second(sent(13, None, GET_OTHER, "GET"), got(13, 200, kind=SSE)),
                *second(event(13, CHANGED)),
            ],
            id="change of a list",
        ),
        pytest.param(logged(*SET_ELSEWHERE), id="session used by two clients"),
        pytest.param(logged(*AT_ONCE), id="two levels at once"),
        pytest.param(logged(*set_again("debug")), id="level set again"),
        pytest.param(
            [*TWO, *listed(3, IN), *second(*listed(13, IN_OTHER))], id="equal ids and lists"
        ),
        pytest.param(
            [
                *TWO,
                *tools(READ_ONLY),
                *called(21, 3, MINE, MINE),
                *second_called(22, 3, MINE, MINE),
            ],
            id="equal calls",
        ),
        pytest.param(
            [
                *TWO,
                *tools(READ_ONLY),
                *called(21, 3, MINE, MINE),
                *second_called(22, 3, YOURS, "no result"),
                *second_called(23, 4, YOURS, YOURS),
            ],
            id="no result at first",
        ),
        pytest.param(
            [
                *TWO,
                *tools(READ_ONLY),
                *called(21, 3, MINE, MINE),
                *second_called(22, 3, YOURS, f"{MINE}, {YOURS}"),
                *second_called(23, 4, YOURS, YOURS),
            ],
            id="results that grow",
        ),
        pytest.param(
            [*TWO, *listed(3, VERSION), *listed(4, VERSION, 200, 3)], id="no session is needed"
        ),
        pytest.param(
            [*TWO, *listed(3, {**VERSION, "x-a": "a"}, 400), *listed(4, VERSION, 200, 3)],
            id="another request without a session",
        ),
        pytest.param(
            [*START, *listed(3, MADE_UP, 400), *listed(4, MADE_UP, 200, 3)],
            id="session refused with another status",
        ),
        pytest.param(resumed("a-1", "b-1", notify("y")), id="events of its own"),
        pytest.param(resumed("a-1", "a-2", notify("y")), id="the same notification"),
    ],
)
def test_state_that_clients_may_share_is_no_fault(lines: list[Sent]) -> None:
    found, _ = judge(None, lines, "2025-11-25")
    assert [each for each in found if each.side == "server" and each.is_certain] == []


def test_requests_without_session_of_server_without_sessions_are_no_fault() -> None:
    """Such a server can refuse requests for other reasons, and serve equal ones later."""
    lines = [*listed(3, VERSION, 400), *listed(4, VERSION, 200, 3), *listed(5, VERSION, 404, 4)]
    found, _ = judge(None, lines, "2025-11-25")
    assert [each.row for each in found if each.row.startswith("SHL-2")] == []


def test_request_before_the_handshake_may_be_refused_and_served_later() -> None:
    lines = [*listed(9, VERSION, 400), *START, *listed(3, VERSION, 200, 3)]
    found, _ = judge(None, lines, "2025-11-25")
    assert [each.row for each in found if each.side == "server" and each.is_certain] == []


def test_calls_of_many_tools_are_bounded() -> None:
    _, judged = judge(None, [*TWO, *opened({"mcp-session-id": "third"})], "2025-11-25")
    across = judged._conversations._across
    for number in range(MAX_NAMES + 20):
        for line in called(100 + number, 100 + number, MINE, MINE, f"tool {number % 110}"):
            judged.receive(line.message)
    assert len(across._marked) <= MAX_NAMES
    assert all(len(each) <= MAX_REQUESTS for each in across._marked.values())


def test_conversation_that_begins_after_one_with_a_higher_number_is_whole() -> None:
    """The second client can be the first one to send something."""
    found, judged = judge(None, [*opened(OTHER), *START, *listed(3, IN)], "2025-11-25")
    assert found == []
    assert not any(each.gap for each in judged._conversations._states.values())


def test_marked_request_keeps_its_result_without_the_meta_member() -> None:
    """Servers write times and the like there, in which equal results differ."""
    text = "a text that is long enough to be a mark"
    message: Any = SimpleNamespace(
        line=7,
        size=100,
        exchange=1,
        redacted=False,
        result={"content": [], "_meta": {"time": 1}},
    )
    request: Any = SimpleNamespace(
        method="tools/call", params={"arguments": {"a": text}}, size=100, is_redacted=False
    )
    found = _marked_request(message, request, 3)
    assert isinstance(found, MarkedRequest)
    assert json.loads(found.arguments) == {"a": text}
    assert json.loads(found.result) == {"content": []}
    assert (found.conversation, found.line, found.marks) == (3, 7, (text,))


TEXT, YOUR_TEXT = "a text that is long enough", "and a text of another client"


def marked_call(
    line: int, text: Any, found: str, *, name: str = "t", **members: Any
) -> tuple[Any, Any]:
    """Return a result and its request as far as results of several clients are compared."""
    request = SimpleNamespace(
        method="tools/call",
        params={"name": name, "arguments": {"a": text}},
        size=100,
        is_redacted=False,
    )
    message = SimpleNamespace(
        line=line, size=100, exchange=1, redacted=(), result={"text": found}, request=request
    )
    for key, value in members.items():
        holder, name = (request, key[8:]) if key.startswith("request_") else (message, key)
        setattr(holder, name, value)
    return message, request


@pytest.mark.parametrize(
    ("before", "last", "expected"),
    [
        # The other client's result, and the own one later or earlier.
        ([(2, 4, TEXT, TEXT), (1, 6, YOUR_TEXT, TEXT)], (8, YOUR_TEXT, YOUR_TEXT), (6, 4)),
        ([(2, 4, TEXT, TEXT), (1, 6, YOUR_TEXT, YOUR_TEXT)], (8, YOUR_TEXT, TEXT), (8, 4)),
        ([(2, 3, TEXT, "x" + TEXT), (2, 4, TEXT, TEXT), (1, 6, YOUR_TEXT, TEXT)],
         (8, YOUR_TEXT, YOUR_TEXT), (6, 4)),
        # It is later than the result that it would have been mistaken for.
        ([(1, 3, YOUR_TEXT, TEXT), (2, 4, TEXT, TEXT)], (8, YOUR_TEXT, YOUR_TEXT), True),
        # The same result can't be told from another one.
        ([(2, 4, TEXT, TEXT), (1, 6, YOUR_TEXT, TEXT + ".")], (8, YOUR_TEXT, YOUR_TEXT), True),
        # It has both texts.
        ([(2, 4, TEXT, TEXT + YOUR_TEXT), (1, 6, YOUR_TEXT, YOUR_TEXT)],
         (8, YOUR_TEXT, TEXT + YOUR_TEXT), True),
        # The client had its own result at no time, or always.
        ([(2, 4, TEXT, TEXT), (1, 6, YOUR_TEXT, TEXT)], (8, YOUR_TEXT, TEXT), False),
        ([(2, 4, TEXT, TEXT), (1, 6, YOUR_TEXT, YOUR_TEXT)], (8, YOUR_TEXT, YOUR_TEXT), True),
        ([(2, 4, TEXT, TEXT), (1, 6, TEXT, YOUR_TEXT)], (8, YOUR_TEXT, YOUR_TEXT), True),
        # The other client's result isn't its own, or there is no other client.
        ([(2, 4, TEXT, YOUR_TEXT), (1, 6, YOUR_TEXT, TEXT)], (8, YOUR_TEXT, YOUR_TEXT), False),
        ([(1, 4, TEXT, TEXT), (1, 6, YOUR_TEXT, TEXT)], (8, YOUR_TEXT, YOUR_TEXT), False),
        ([], (8, TEXT, TEXT), False),
    ],
)  # fmt: skip
def test_result_is_mixed_if_another_client_has_the_same_and_this_one_its_own_once(
    before: list[tuple[int, int, str, str]], last: tuple[int, str, str], expected: Any
) -> None:
    """Rows are the conversation, the line, the argument and the result."""
    across = AcrossClients()
    for conversation, *call in before:
        across.add_result(*marked_call(*call), conversation)  # type: ignore[arg-type]
    message, _ = marked_call(*last)
    assert across.find_mixed_result(message, 1) == expected


@pytest.mark.parametrize(
    "members",
    [
        {"exchange": 0},
        {"redacted": ("/result",)},
        {"request_is_redacted": True},
        {"result": None},
        {"size": MAX_REQUEST_BYTES + 1},
        {"request_size": MAX_REQUEST_BYTES + 1},
        {"request": None},
        {"name": "another tool"},
        {"request_method": "prompts/get"},
    ],
    ids=lambda members: next(iter(members)),
)
def test_result_that_cannot_be_compared_shows_nothing(members: dict[str, Any]) -> None:
    across = AcrossClients()
    across.add_result(*marked_call(4, TEXT, TEXT), 2)
    assert across.find_mixed_result(marked_call(8, TEXT, TEXT)[0], 1) is True
    message, _ = marked_call(8, TEXT, TEXT, **members)
    assert across.find_mixed_result(message, 1) is False


def test_results_of_any_two_resources_are_compared() -> None:
    """A resource's URI is its argument. The sizes are the largest that are compared."""
    limit: dict[str, Any] = {"size": MAX_REQUEST_BYTES, "request_size": MAX_REQUEST_BYTES}
    limit |= {"request_method": "resources/read"}
    across = AcrossClients()
    read, request = marked_call(4, TEXT, TEXT, **limit, request_params={"uri": TEXT})
    across.add_result(read, request, 2)
    other, _ = marked_call(8, TEXT, YOUR_TEXT, **limit, request_params={"uri": YOUR_TEXT})
    assert across.find_mixed_result(other, 1) is True
    assert across.find_mixed_result(other, 2) is False


@pytest.mark.parametrize(
    ("text", "is_mark"),
    [
        ("a" * 16, True),
        ("a" * 15, False),
        ("a" * 15 + "ä", False),
        ("a" * 15 + "\n", False),
        ("a" * 15 + '"', False),
        ("a" * 15 + "\\", False),
        (["a" * 16], False),
        (10**16, False),
    ],
)
def test_long_text_that_json_does_not_escape_is_a_mark(text: Any, *, is_mark: bool) -> None:
    found = _marked_request(*marked_call(4, text, "found"), 1)
    assert (found is not None) is is_mark
