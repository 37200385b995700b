"""The comparison of two traces: what counts as a difference, and what does not."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mcp_core.trace import ChangedValue, TraceDiff, TraceLine, TruncatedMessage, diff_traces
from mcp_core.trace.replay._differences import find_differences
from tests.core.trace.judge.conversations import META, C, S, Sent, ask, error, notify, result
from tests.core.trace.replay.traces import AT, CALL, HANDSHAKE, call, recorded, text

LATER = "2026-11-23T09:00:00Z"


def diff(old: list[Sent], new: list[Sent], *hidden: str, **options: Any) -> TraceDiff:
    return diff_traces(recorded(old, *hidden), recorded(new, *hidden, at=LATER), **options)


def kinds(found: TraceDiff) -> list[tuple[str, str]]:
    return [(each.kind, each.what) for each in found.differences]


def outcome(old: Any, new: Any) -> list[tuple[str, Any, Any]]:
    """Return the changed values of two results."""
    found = diff([C(call(1)), S(result(1, **old))], [C(call(1)), S(result(1, **new))])
    return [
        (value.pointer, value.old, value.new) for each in found.differences for value in each.values
    ]


def test_trace_equals_itself() -> None:
    found = diff([*HANDSHAKE, *CALL], [*HANDSHAKE, *CALL])
    assert (found.count, found.compared) == (0, 2)


def test_missing_and_added_requests_have_their_lines() -> None:
    old = [*CALL, C(call(2, x="b")), S(text(2, "B"))]
    new = [*CALL, C(ask(2, "tools/list")), S(result(2, tools=[]))]
    found = diff(old, new)
    assert kinds(found) == [("added", "tools/list"), ("missing", "tools/call echo")]
    assert [(each.old_line, each.new_line) for each in found.differences] == [(0, 4), (4, 0)]


def test_changed_result_has_pointers_with_both_values() -> None:
    (each,) = diff(CALL, [CALL[0], S(text(1, "other"))]).differences
    assert each.kind == "result changed"
    assert (each.old_line, each.new_line, each.sender) == (3, 3, "server")
    assert each.values == (ChangedValue(pointer="/result/content/0/text", old="A", new="other"),)


def test_changed_response_of_the_client_is_the_client_s() -> None:
    asked = S(ask(7, "roots/list"))
    old, new = ([asked, C(result(7, roots=[{"uri": uri}]))] for uri in ("file:///a", "file:///b"))
    (each,) = diff(old, new).differences
    assert (each.kind, each.part, each.sender) == ("result changed", "response", "client")
    (each,) = diff(old, [asked]).differences
    assert (each.kind, each.part, each.sender) == ("missing", "response", "client")


@pytest.mark.parametrize(
    ("old", "new", "codes"),
    [
        (error(1, -32602), error(1, -32603), (-32602, -32603)),
        (text(1, "A"), error(1, -32603), (None, -32603)),
        (error(1, -32603), text(1, "A"), (-32603, None)),
    ],
)
def test_changed_error_code_is_told_apart(old: Any, new: Any, codes: tuple[Any, Any]) -> None:
    (each,) = diff([C(call(1)), S(old)], [C(call(1)), S(new)]).differences
    assert each.kind == "error code changed"
    assert (each.old_code, each.new_code) == codes


def test_missing_response_is_told() -> None:
    assert kinds(diff(CALL, CALL[:1])) == [("missing", "tools/call echo")]
    (each,) = diff(CALL[:1], CALL).differences
    assert (each.kind, each.part) == ("added", "response")


def test_changed_order_names_as_few_as_possible() -> None:
    def asked(*names: str) -> list[Sent]:
        said = []
        for id, name in enumerate(names):
            said += [C(call(id, name)), S(text(id, "A"))]
        return said

    found = diff(asked("a", "b", "c", "d"), asked("b", "c", "d", "a"))
    assert kinds(found) == [("order changed", "tools/call a")]


def test_order_of_responses_side_by_side_does_not_count() -> None:
    asked = [C(call(1, x="a")), C(call(2, x="b"))]
    old = [*asked, S(text(1, "A")), S(text(2, "B"))]
    assert diff(old, [*asked, S(text(2, "B")), S(text(1, "A"))]).count == 0


def test_changed_request_of_server_is_told() -> None:
    def asked(message: str) -> list[Sent]:
        return [
            C(call(1)),
            S(ask(5, "elicitation/create", message=message)),
            C(result(5, action="accept")),
            S(text(1, "A")),
        ]

    (each,) = diff(asked("how many?"), asked("how much?")).differences
    assert (each.kind, each.sender) == ("request changed", "server")
    assert each.values[0].pointer == "/params/message"


def test_ids_tokens_and_meta_do_not_count() -> None:
    def said(id: Any, **meta: Any) -> list[Sent]:
        asked = call(id)
        asked["params"]["_meta"] = meta
        return [C(asked), S(result(id, content=[], _meta=meta))]

    old, new = said(1, progressToken=1, x=1), said("b", progressToken="t", x=2)
    assert diff(old, new).count == 0
    assert diff(old, new, with_meta=True).count > 0


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({"at": "2026-11-22T14:26:19Z"}, {"at": "2026-11-23T09:00:01.5+00:00"}),
        ({"text": "made at 8:26:20 PM"}, {"text": "made at 9:00:02 AM"}),
        ({"ms": 1795357580000}, {"ms": 1795424401000}),
        (
            {"key": "0b0ac0de-0000-4000-8000-000000000001"},
            {"key": "0b0ac0de-0000-4000-8000-000000000002"},
        ),
        ({"nextCursor": "a"}, {"nextCursor": "b"}),
        ({"task": {"taskId": "a", "createdAt": "x"}}, {"task": {"taskId": "b", "createdAt": "y"}}),
        ({"key": "‹redacted 5›"}, {"key": "hello"}),
        ({"tools": [{"name": "a"}, {"name": "b"}]}, {"tools": [{"name": "b"}, {"name": "a"}]}),
        ({"n": 1}, {"n": 1.0}),
    ],
)
def test_values_that_time_or_ids_explain_do_not_count(old: Any, new: Any) -> None:
    assert outcome(old, new) == []


@pytest.mark.parametrize(
    ("old", "new", "pointer"),
    [
        ({"at": "2024-01-01T00:00:00Z"}, {"at": "2025-01-01T00:00:00Z"}, "/at"),
        ({"text": "took 8:44:20"}, {"text": "took 9:10:02"}, "/text"),
        ({"n": 5}, {"n": 6}, "/n"),
        ({"n": 1}, {"n": True}, "/n"),
        ({"a": ["x"]}, {"a": ["x", "y"]}, "/a/1"),
        ({"a": {"b/c~": 1}}, {"a": {}}, "/a/b~1c~0"),
        (
            {
                "a": "0b0ac0de-0000-4000-8000-000000000001",
                "b": "0b0ac0de-0000-4000-8000-000000000001",
            },
            {
                "a": "0b0ac0de-0000-4000-8000-000000000002",
                "b": "0b0ac0de-0000-4000-8000-000000000003",
            },
            "/b",
        ),
    ],
)
def test_other_values_count(old: Any, new: Any, pointer: str) -> None:
    assert [each[0] for each in outcome(old, new)] == ["/result" + pointer]


def test_redacted_id_of_a_request_hides_none_of_its_arguments() -> None:
    old, new = ([C(call("‹redacted 5›", x=x)), S(text("‹redacted 5›", "A"))] for x in ("a", "b"))
    assert diff(old, old).count == 0
    assert [kind for kind, _ in kinds(diff(old, new))] == ["added", "missing"]


@pytest.mark.parametrize(
    ("old", "new", "is_same"),
    [
        ({"uri": "https://a/?key=‹redacted 5›"}, {"uri": "https://a/?key=‹redacted 8›"}, True),
        ({"uri": "a:‹redacted 5›", "n": 1}, {"uri": "a:‹redacted 8›", "n": 2}, False),
        ({"uri": "a:b", "cursor": "x"}, {"uri": "a:b", "cursor": "y"}, True),
        ({"taskId": "x"}, {"taskId": "y"}, True),
        ({"taskId": "x", "n": 1}, {"taskId": "y", "n": 2}, False),
        ({"other": "x"}, {"other": "y"}, False),
        (["x"], ["x"], True),
        (["x"], ["y"], False),
    ],
)
def test_requests_are_the_same_if_only_made_up_and_redacted_values_differ(
    old: Any, new: Any, is_same: bool
) -> None:
    first, second = ([C({**ask(1, "m"), "params": params}), S(result(1))] for params in (old, new))
    assert [kind for kind, _ in kinds(diff(first, second))] == (
        [] if is_same else ["added", "missing"]
    )


def test_entries_are_compared_by_name() -> None:
    old = {"tools": [{"name": "b", "x": 1}]}
    new = {"tools": [{"name": "a"}, {"name": "b", "x": 2}]}
    assert outcome(old, new) == [
        ("/result/tools/0/x", 1, 2),
        ("/result/tools/0", None, {"name": "a"}),
    ]


def test_text_that_is_sent_back_is_an_id() -> None:
    def said(id: str) -> list[Sent]:
        return [C(call(1, "begin")), S(text(1, id)), C(call(2, "use", cart=id)), S(text(2, "ok"))]

    assert diff(said("cart-1234"), said("cart-9876")).count == 0
    assert diff(said("cart-1234")[:2], said("cart-9876")[:2]).count == 1


def test_ignored_pointers_do_not_count() -> None:
    old = [C(call(1)), S(text(1, "A"))]
    new = [C(call(1)), S(text(1, "B"))]
    assert diff(old, new, ignore=["/result/content/0/text"]).count == 0
    assert diff(old, new, ignore=["/result/content/*/text"]).count == 0
    assert diff(old, new, ignore=["/result/content"]).count == 0
    assert diff(old, new, ignore=["/result/structuredContent"]).count == 1
    with pytest.raises(ValueError, match="not a JSON pointer"):
        diff(old, new, ignore=["result"])


def test_number_of_notifications_does_not_count() -> None:
    changed = S(notify("notifications/tools/list_changed"))
    progress = S(notify("notifications/progress", progressToken=1, progress=1))
    log = S(notify("notifications/message", level="info", data="x"))
    old = [C(call(1)), changed, progress, log, S(text(1, "A"))]
    new = [C(call(1)), changed, changed, S(text(1, "A"))]
    assert diff(old, new).count == 0
    assert kinds(diff(old, [old[0], old[4]])) == [("missing", "notifications/tools/list_changed")]


def test_number_of_polls_does_not_count() -> None:
    def polled(*statuses: str) -> list[Sent]:
        said = []
        for id, status in enumerate(statuses):
            said += [C(ask(id, "tasks/get", taskId="t")), S(result(id, status=status))]
        return said

    assert diff(polled("working", "completed"), polled(*["working"] * 3, "completed")).count == 0
    assert diff(polled("completed"), polled("working", "failed")).count == 1


def test_truncated_response_is_not_compared() -> None:
    cut = TraceLine(
        t=1.0,
        sender="server",
        raw='{"jsonrpc":"2.0","id":1,"result":{"con',
        truncated=TruncatedMessage(size=9_999_999),
    )
    found = diff(CALL, [CALL[0], Sent("server", cut)])
    assert (found.count, found.not_compared) == (0, 1)


def test_sessions_are_compared_in_their_order() -> None:
    old = [*HANDSHAKE, *CALL, *HANDSHAKE, C(call(1)), S(text(1, "B"))]
    new = [*HANDSHAKE, *CALL, *HANDSHAKE, C(call(1)), S(text(1, "C"))]
    (each,) = diff(old, new).differences
    assert each.session == 2


def test_subscription_id_is_an_id() -> None:
    def said(id: Any) -> list[Sent]:
        meta = {META + "subscriptionId": id}
        return [
            C(ask(id, "subscriptions/listen")),
            S(notify("notifications/subscriptions/acknowledged", _meta=meta)),
        ]

    assert diff(said(1), said("x"), with_meta=True).count == 0


def test_header_without_time_masks_every_date() -> None:
    old = recorded([C(call(1)), S(text(1, "2024-01-01T00:00:00Z"))], at="")
    new = recorded([C(call(1)), S(text(1, "2025-01-01T00:00:00Z"))], at="")
    assert diff_traces(old, new).count == 0
    assert diff_traces(old, old).count == 0
    assert recorded(CALL).header.at == AT


MARK = "MCP_TRIO_CHILD"
ONE, TWO = "0123456789abcdef", "fedcba9876543210:0123456789abcdef"


def environment(*entries: tuple[str, str], style: str) -> dict[str, Any]:
    """Return the result of a tool that lists its environment."""
    if style == "members":
        return {"structuredContent": dict(entries)}
    if style == "lines":
        shown = "".join(f"{name}={value}\n" for name, value in entries)
    else:
        shown = json.dumps(dict(entries), indent=2 if style == "indented" else None)
    if style == "nested":
        shown = json.dumps({"env": shown})
    return {"content": [{"type": "text", "text": shown}]}


@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize("style", ["members", "lines", "json", "indented", "nested"])
def test_mark_of_a_process_is_no_difference(style: str, place: int) -> None:
    """It is another one for each process, and programs that are not ours set none."""
    others = [("HOME", "/home/a"), ("PATH", "/bin")]

    def listed(mark: str) -> dict[str, Any]:
        return environment(*others[:place], (MARK, mark), *others[place:], style=style)

    assert outcome(listed(ONE), listed(TWO)) == []
    assert outcome(environment(*others, style=style), listed(TWO)) == []
    changed = environment(("HOME", "/home/b"), others[1], style=style)
    assert outcome(changed, listed(TWO)) != []


def test_text_that_only_names_the_mark_is_compared() -> None:
    old, new = ({"content": [{"type": "text", "text": f"{MARK} is {each}"}]} for each in "ab")
    assert len(outcome(old, new)) == 1


@pytest.mark.parametrize(("depth", "found"), [(10, 10), (300, 200)])
def test_values_that_differ_have_pointers_of_a_bounded_length(depth: int, found: int) -> None:
    """Deeper ones are compared as a whole, since each step takes a frame of Python's stack."""

    def nested(value: int) -> Any:
        return json.loads("[" * depth + str(value) + "]" * depth)

    (difference,) = find_differences(nested(1), nested(2))
    assert difference.pointer == ("0",) * found
    assert list(find_differences(nested(1), nested(1))) == []
