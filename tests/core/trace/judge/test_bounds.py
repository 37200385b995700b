"""All that the judge remembers has a limit, and what it forgets accuses no peer."""

from __future__ import annotations

import json
from collections import OrderedDict
from types import SimpleNamespace
from typing import Any

import pytest

from mcp_core.trace import HttpHead, Judge, SseFields, TraceHeader, TraceLine
from mcp_core.trace.judge import _conversation_table, _exchange_judge, _texts
from mcp_core.trace.judge._texts import add_piece, has_http_message, is_cut
from mcp_core.trace.judge.conversation import _http, _lists, _requests
from mcp_core.trace.judge.conversation._http import HttpState
from mcp_core.trace.judge.conversation._lists import repeated_names
from mcp_core.trace.judge.conversation._requests import Requests
from mcp_core.trace.judge.rules import _features
from mcp_core.trace.judge.rules._features import compile_schema
from mcp_core.trace.logs import _sides
from tests.core.trace.judge.conversations import C, S, Start, ask, error, judge, result
from tests.core.trace.judge.rules.messages import META_E
from tests.core.trace.judge.rules.utilities import TASK_D, TOOL, call

D = "2025-11-25"


def opened() -> Any:
    """Return a request as far as the table of requests looks at it."""
    return SimpleNamespace(
        sender="client", earlier=None, count=1, token=None, shares_token=False, answered=0
    )


def test_open_requests_with_one_id_are_remembered_up_to_a_number(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_requests, "MAX_EARLIER", 3)
    requests = Requests()
    given = [opened() for _ in range(7)]
    gaps = [requests.add(each, 1) for each in given]
    gap = "there are too many open requests with one id to remember"
    assert gaps == ["", "", "", gap, "", gap, ""]
    kept: Any = requests.open["client"][1]
    chain = []
    while kept is not None:
        chain.append(kept)
        kept = kept.earlier
    assert chain == given[:-4:-1]


def test_open_requests_are_remembered_up_to_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_requests, "MAX_OPEN", 2)
    requests = Requests()
    gaps = [requests.add(opened(), key) for key in (1, 2, 3)]
    assert gaps == ["", "", "there are too many open requests to remember"]
    assert list(requests.open["client"]) == [2, 3]


def test_exchanges_and_events_are_remembered_up_to_a_number(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_http, "MAX_EXCHANGES", 2)
    monkeypatch.setattr(_http, "MAX_EVENTS", 2)
    state = HttpState()
    head = HttpHead(method="GET", target="/mcp?a=b")
    exchange = [state.add(number, head, number, 0.0) for number in (1, 2, 3)][-1]
    assert list(state.exchanges) == [2, 3]
    assert (exchange.path, exchange.size, exchange.has_body) == ("/mcp", 0, False)
    for id in ("a", "b"):
        state.add_event(id, "text", exchange, 3)
    before = state.has_all_events
    state.add_event("c", "text", exchange, 3)
    assert (before, state.has_all_events, len(state.events)) == (True, False, 2)


def test_event_without_a_text_has_the_content_of_the_next_one() -> None:
    """It only gives a client an id to resume from."""
    state = HttpState()
    exchange = state.add(1, HttpHead(method="GET", target="/"), 1, 0.0)
    texts = (None, None, "a", None, "a", "b")
    found = [state.add_event("e", each, exchange, 1).has_other_content for each in texts]
    assert found == [False, False, False, False, False, True]


def test_large_requests_without_a_response_are_remembered_up_to_a_size(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A program that prints JSON over several lines breaks one rule, not one in each line."""

    """The newest one is always remembered in full."""
    monkeypatch.setattr(_exchange_judge, "MAX_EXCHANGE_BYTES", 25_000)
    judged = Judge(TraceHeader(format_version=1, transport="http"), from_start=True)
    for number in range(1, 6):
        message = ask(number, "tools/call", name="t", arguments={"a": "x" * 10_000}, _meta=META_E)
        head = HttpHead(method="POST", target="/mcp")
        line = TraceLine(
            t=0.0, exchange=number, sender="client", http=head, raw=json.dumps(message)
        )
        judged.receive(line)
    exchanges = judged._exchanges
    assert len(exchanges._large) == 2
    assert 20_000 < exchanges._large_bytes <= 25_000
    assert exchanges._large_bytes == sum(size for _, size in exchanges._large)


@pytest.mark.parametrize(("limit", "most"), [(5_000, 2), (1_000, 1)])
def test_conversations_with_large_lists_are_forgotten_but_for_the_current_one(
    limit: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if that one alone is over the limit."""
    monkeypatch.setattr(_conversation_table, "MAX_KEPT_BYTES", limit)
    judged = Judge(from_start=True)
    tools = [{"name": f"t{each}", "inputSchema": {"type": "object"}} for each in range(40)]
    for number in (1, 2, 3):
        for sender, message in (
            ("client", ask(1, "tools/list", _meta=META_E)),
            ("server", result(1, resultType="complete", tools=tools)),
        ):
            raw = json.dumps(message)
            judged.receive(TraceLine(t=0.0, conversation=number, sender=sender, raw=raw))  # type: ignore[arg-type]
        assert number in judged._conversations._states
        assert len(judged._conversations._states) <= most


@pytest.mark.parametrize(("limit", "rows"), [(10_000, ["TOOL-17"]), (100, [])])
def test_list_of_tools_that_is_too_long_is_unknown(
    limit: int, rows: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_lists, "MAX_TOOL_BYTES", limit)
    listed = [C(ask(1, "tools/list")), S(result(1, tools=[{**TOOL, "name": "x" * 100}]))]
    found, _ = judge(Start(D), [*listed, C(call(2)), S(error(2, -32601))])
    assert [each.row for each in found if each.row == "TOOL-17"] == rows


@pytest.mark.parametrize(("length", "is_known"), [(1024, True), (1025, False)])
def test_task_with_a_long_id_is_not_remembered(length: int, is_known: bool) -> None:
    """An error for a known task is one that may have expired."""
    id = "a1" * 1024
    task = {**TASK_D, "taskId": id[:length]}
    cancelled = [C(ask(2, "tasks/cancel", taskId=id[:length])), S(result(2, **task))]
    begun = [C(ask(1, "tools/call", name="t", task={})), S(result(1, task=task))]
    done = {**task, "status": "completed"}
    seen = [C(ask(3, "tasks/get", taskId=id[:length])), S(result(3, **done))]
    found, _ = judge(Start(D), [*begun, *seen, *cancelled])
    sentences = [each.sentence for each in found if each.row == "TSK-21"]
    assert ("a task that is completed is cancelled" in sentences) is is_known


def test_compiled_schemas_are_kept_up_to_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_features, "_MAX_COMPILED", 2)
    state: Any = SimpleNamespace(lists=SimpleNamespace(compiled={}))
    schemas: list[dict[str, Any]] = [{"type": "object", "title": str(each)} for each in range(4)]
    sizes = []
    for schema in schemas:
        assert compile_schema(schema, state) is compile_schema(schema, state)
        sizes.append(len(state.lists.compiled))
    assert sizes == [1, 2, 1, 2]


def test_names_that_several_entries_have_are_found_unless_they_are_hidden() -> None:
    entries: list[Any] = [
        *({"name": "a", "x": 1}, {"name": "a", "x": 1}, {"name": "b"}, {"name": "b", "x": 2}),
        *({"name": "‹redacted 3›"}, {"name": "‹redacted 3›", "x": 1}, {"name": "c"}),
        *({"name": 1}, {"name": 1}, "name", {"name": "a", "x": 1}, {"name": "b"}),
    ]
    assert repeated_names(entries, "name") == {"a": False, "b": True}
    assert repeated_names(entries[6:10], "name") == {}


# -- Texts -----------------------------------------------------------------------------------------


def test_lines_of_one_message_are_put_together_up_to_a_size(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A program that prints JSON over several lines breaks one rule, not one in each line."""

    def joined(*lines: str) -> list[bool]:
        pieces: list[str] = []
        return [add_piece(each, pieces) for each in lines]

    assert joined("{", '"a": 1', "}", "}") == [False, False, True, False]
    assert joined("x", "{", "}") == [False, False, True]
    assert joined("{", "{", "}") == [False, False, True]
    monkeypatch.setattr(_texts, "_MAX_PIECES_SIZE", 10)
    assert joined("{", '"a": "1"', "}") == [False, False, True]
    assert joined("{", '"a": "12"', "}") == [False, False, False]
    monkeypatch.setattr(_texts, "_MAX_PIECES", 3)
    assert joined("{", '"a":', "1", "}") == [False, False, False, False]
    assert joined("{", '"a":1', "}") == [False, False, True]


@pytest.mark.parametrize(
    ("raw", "cut"),
    [
        ('{"a": ', True),
        ("[1, ", True),
        ('  {"a"', True),
        ("{}", False),
        ("text", False),
        ("", False),
        (None, True),
    ],
)
def test_text_is_cut_if_it_begins_as_a_message(raw: str | None, cut: bool) -> None:
    data = b"\xff" if raw is None else None
    assert is_cut(TraceLine(t=0.0, sender="client", raw=raw, data=data)) is cut


RPC = '{"jsonrpc":"2.0"}'


@pytest.mark.parametrize(
    ("line", "has_message"),
    [
        (TraceLine(t=0.0, exchange=1), False),
        (TraceLine(t=0.0, exchange=1, raw="{}"), True),
        (TraceLine(t=0.0, exchange=1, raw="{}", sse=SseFields()), True),
        (TraceLine(t=0.0, exchange=1, raw="{}", sse=SseFields(event="message")), True),
        (TraceLine(t=0.0, exchange=1, raw="{}", sse=SseFields(event="endpoint")), False),
        (TraceLine(t=0.0, exchange=1, raw=RPC, http=HttpHead(method="POST")), True),
        (TraceLine(t=0.0, exchange=1, raw="{}", http=HttpHead(method="POST")), False),
        (TraceLine(t=0.0, exchange=1, raw=RPC, http=HttpHead(status=200)), False),
        (
            TraceLine(
                t=0.0,
                exchange=1,
                raw=RPC,
                http=HttpHead(status=200, headers=(("content-type", "application/JSON"),)),
            ),
            True,
        ),
        (TraceLine(t=0.0, exchange=1, data=b"\xff", http=HttpHead(method="POST")), False),
    ],
)
def test_line_of_an_exchange_has_a_message_or_another_body(
    line: TraceLine, has_message: bool
) -> None:
    assert has_http_message(line) is has_message


def test_ids_of_one_side_are_remembered_up_to_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last used ones are those that are kept."""
    monkeypatch.setattr(_sides, "_MAX_IDS", 2)
    known: OrderedDict[int | str, bool] = OrderedDict()
    for key in (1, 2, 1, None, 3):
        _sides._put(known, key)
    assert list(known) == [1, 3]


def test_cursor_beyond_those_that_are_remembered_is_in_doubt(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_lists, "MAX_ENTRIES", 1)
    said = [
        *(C(ask(1, "tools/list")), S(result(1, tools=[], nextCursor="a"))),
        *(C(ask(2, "tools/list", cursor="a")), S(result(2, tools=[], nextCursor="b"))),
        *(C(ask(3, "tools/list", cursor="b")), S(result(3, tools=[]))),
    ]
    ((row, is_certain, sentence),) = [
        (each.row, each.is_certain, each.sentence) for each in judge(Start(D), said)[0]
    ]
    assert (row, is_certain) == ("PAGE-3", False)
    assert sentence.endswith("(there are too many cursors to remember)")
