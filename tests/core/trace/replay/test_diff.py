"""The comparison of two traces: what counts as a difference, and what does not."""

from __future__ import annotations

import json
from itertools import combinations, permutations
from typing import Any

import pytest

from mcp_core.trace import (
    ChangedValue,
    HttpHead,
    TraceDiff,
    TraceDifference,
    TraceLine,
    TruncatedMessage,
    diff_traces,
)
from mcp_core.trace.replay import _diff
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
    assert (found.count, found.compared, found.responses, found.not_compared) == (0, 2, 2, 0)


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
        ({**error(1), "error": "no"}, text(1, "A"), (0, None)),
        (error(1, "no"), error(1, -1), (0, -1)),
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
    """All but a longest sequence that has kept its order, for any new order."""

    def asked(*names: str) -> list[Sent]:
        said = []
        for id, name in enumerate(names):
            said += [C(call(id, name)), S(text(id, "A"))]
        return said

    found = diff(asked("a", "b", "c", "d"), asked("b", "c", "d", "a"))
    assert kinds(found) == [("order changed", "tools/call a")]
    (each,) = found.differences
    assert (each.part, each.old_line, each.new_line) == ("request", 2, 8)
    for names in permutations("abcd"):
        kept = max(
            len(some)
            for count in range(5)
            for some in combinations(names, count)
            if list(some) == sorted(some)
        )
        assert diff(asked(*"abcd"), asked(*names)).count == 4 - kept, names


def test_order_of_a_client_s_messages_counts_with_its_notifications() -> None:
    sent, calls = [C(notify("notifications/x", n=1))], [*CALL, C(call(2, "b")), S(text(2, "B"))]
    (each,) = diff([*sent, *calls], [*calls, *sent]).differences
    assert (each.kind, each.part, each.what) == ("order changed", "notification", "notifications/x")


def posted(id: int, tool: str) -> list[Sent]:
    """Return a call over HTTP, where each request has an exchange of its own."""
    head = HttpHead(method="POST", target="/mcp")
    asked = TraceLine(t=0, exchange=id, sender="client", raw=json.dumps(call(id, tool)), http=head)
    sent = TraceLine(
        t=0, exchange=id, sender="server", raw=json.dumps(text(id, "A")), http=HttpHead(status=200)
    )
    return [Sent("client", asked), Sent("server", sent)]


def test_order_of_exchanges_and_of_a_server_s_notifications_does_not_count() -> None:
    """Neither shows in which order they were sent."""
    first, second = posted(1, "a"), posted(2, "b")
    assert diff([*first, *second], [*second, *first]).count == 0
    piped = [C(call(2, "b")), S(text(2, "A")), C(call(1, "a")), S(text(1, "A"))]
    assert diff([*first, *second], piped).count == 0
    changes = [S(notify(f"notifications/{name}/list_changed")) for name in ("tools", "prompts")]
    assert diff([*CALL, *changes], [*CALL, *changes[::-1]]).count == 0


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
    request, response = diff(said(1, x=1), said("b", x=2), with_meta=True).differences
    assert (request.kind, request.part, request.value_count) == ("request changed", "request", 1)
    assert request.values == (ChangedValue(pointer="/params/_meta/x", old=1, new=2),)
    assert [each.pointer for each in response.values] == ["/result/_meta/x"]


def test_input_of_a_later_round_is_the_client_s() -> None:
    """A user may answer otherwise, which is no change of the server."""

    def said(action: str) -> list[Sent]:
        asked = call(1)
        asked["params"] |= {"requestState": "s", "inputResponses": {"k": {"action": action}}}
        return [C(asked), S(text(1, "A"))]

    assert diff(said("accept"), said("decline")).count == 0


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


def chain(*ids: str, first: Any = None) -> list[Sent]:
    """Return calls of which each sends what the one before it has returned."""
    said: list[Sent] = []
    for number, id in enumerate(ids):
        arguments = {"key": ids[number - 1]} if number else {}
        said += [C(call(number, f"t{number}", **arguments)), S(text(number, first or id))]
    return said


def test_id_that_is_sent_back_may_bring_another_one() -> None:
    old, new = chain("cart-1", "order-1", "bill-1"), chain("cart-2", "order-2", "bill-2")
    found = diff(
        [*old, C(call(9, "end")), S(text(9, "A"))], [*new, C(call(9, "end")), S(text(9, "B"))]
    )
    assert [(each.kind, each.what, each.old_line) for each in found.differences] == [
        ("result changed", "tools/call t2", 7),
        ("result changed", "tools/call end", 9),
    ]
    assert (found.compared, found.responses) == (4, 4)
    # An id may be sent back in another session, too; the first one has been compared by then.
    old, new = ([*HANDSHAKE, *each[:2], *HANDSHAKE, *each[2:4]] for each in (old, new))
    assert {kind for kind, _ in kinds(diff(old, new))} == {"result changed"}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("a plain text", "another text"),
        ("cart-1", "no cart"),
        ("no cart", "cart-1"),
        ("cart-1", {"id": "cart-2"}),
        ({"id": "cart-1"}, "cart-2"),
        ("cart-1", None),
        (5, 6),
    ],
)
def test_other_value_that_is_sent_back_is_not_an_id(old: Any, new: Any) -> None:
    def said(value: Any) -> list[Sent]:
        sent = {} if value is None else {"value": value}
        return [
            *(C(call(1, "silent")), C(call(2, "make"))),
            S(result(2, structuredContent={"value": value})),
            *(C(call(3, "use", **sent)), S(text(3, "A"))),
        ]

    found = kinds(diff(said(old), said(new)))
    assert found == [
        ("result changed", "tools/call make"),
        ("added", "tools/call use"),
        ("missing", "tools/call use"),
    ]


def test_requests_without_responses_bring_no_ids() -> None:
    """Also if only one trace has the response; later ones are searched nevertheless."""
    silent, made = C(call(7, "late")), S(text(7, "A"))
    for one, other in ([silent], [silent, made]), ([silent, made], [silent]), ([silent], [silent]):
        old, new = chain("cart-1", "order-1"), chain("cart-2", "order-2")
        found = diff([*one, *old], [*other, *new])
        assert [each for each in kinds(found) if each[1] != "tools/call late"] == [
            ("result changed", "tools/call t1")
        ]


def test_requests_that_differ_in_the_time_keep_their_order() -> None:
    def said(day: str) -> list[Sent]:
        times = [f"2026-11-{day}T14:{minute}:00Z" for minute in (26, 27, 28)]
        calls = [[C(call(n, "note", at=at)), S(text(n, str(n)))] for n, at in enumerate(times)]
        return [each for pair in calls for each in pair]

    assert diff(said("22"), said("23")).count == 0


def test_only_so_many_ids_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A peer's results may have any number of texts that look like ids."""

    def said(mark: str) -> list[Sent]:
        found: list[Sent] = []
        for number in range(3):
            id = f"cart-{mark}{number}"
            found += [C(call(number, f"make{number}")), S(text(number, id))]
        for number in range(3):
            id = f"cart-{mark}{number}"
            found += [C(call(10 + number, f"use{number}", key=id)), S(text(10 + number, "A"))]
        return found

    assert diff(said("1"), said("2")).count == 0
    monkeypatch.setattr(_diff, "_MAX_CANDIDATES", 2)
    assert [each for each in kinds(diff(said("1"), said("2"))) if each[0] != "result changed"] == [
        ("added", "tools/call use2"),
        ("missing", "tools/call use2"),
    ]


def test_request_is_compared_with_a_hundred_others_of_its_name() -> None:
    """Otherwise the time would grow with the square of their number."""

    def said(mark: str, others: range) -> list[Sent]:
        calls = [C(call(number, "use", n=number)) for number in others]
        return [
            C(call(9, "make")),
            S(text(9, f"cart-{mark}")),
            *calls,
            C(call(8, "use", key=f"cart-{mark}")),
        ]

    assert kinds(diff(said("1", range(0)), said("2", range(99))))[-1][0] == "added"
    assert ("missing", "tools/call use") not in kinds(
        diff(said("1", range(0)), said("2", range(99)))
    )
    assert ("missing", "tools/call use") in kinds(diff(said("1", range(0)), said("2", range(100))))


def test_requests_of_different_names_are_not_the_same() -> None:
    old = [C(call(1, "make")), S(text(1, "cart-1")), C(call(2, "use", key="cart-1"))]
    new = [C(call(1, "make")), S(text(1, "cart-2")), C(call(2, "drop", key="cart-2"))]
    assert kinds(diff(old, new))[1:] == [
        ("added", "tools/call drop"),
        ("missing", "tools/call use"),
    ]


def test_differences_stand_in_the_order_of_the_first_trace() -> None:
    """Entries that only the second one has stand after those that precede them there."""

    def asked(*names: str) -> list[Sent]:
        return [
            each for n, name in enumerate(names) for each in (C(call(n, name)), S(text(n, "A")))
        ]

    found = diff(asked("a", "gone", "b", "late"), asked("first", "a", "b", "new", "last"))
    assert kinds(found) == [
        ("added", "tools/call first"),
        ("missing", "tools/call gone"),
        ("added", "tools/call new"),
        ("added", "tools/call last"),
        ("missing", "tools/call late"),
    ]
    assert [(each.old_line, each.new_line) for each in found.differences] == [
        *((0, 2), (4, 0), (0, 8), (0, 10), (8, 0)),
    ]
    # What belongs to an earlier request stands where it was sent.
    roots = [C(notify("notifications/x")), S(ask(5, "roots/list")), C(result(5))]
    found = diff([C(call(1)), *roots, S(text(1, "A"))], [C(call(1)), S(text(1, "A"))])
    assert kinds(found) == [("missing", "notifications/x"), ("missing", "roots/list")]
    assert [each.part for each in found.differences] == ["notification", "request"]


BOTH = ["added", "missing"]


def test_server_s_messages_are_aligned_by_method_and_uri() -> None:
    def during(message: Any) -> list[Sent]:
        return [C(call(1)), S(message), S(text(1, "A"))]

    updated = "notifications/resources/updated"
    for old, new in (
        (ask(5, "roots/list"), ask(5, "sampling/createMessage")),
        (notify("notifications/tools/list_changed"), notify("notifications/prompts/list_changed")),
        (notify(updated, uri="a:a"), notify(updated, uri="a:b")),
        (notify(updated, uri="a:a"), notify(updated, uri=["a:a"])),
    ):
        assert sorted(kind for kind, _ in kinds(diff(during(old), during(new)))) == BOTH
    assert diff(during(notify(updated, uri=[1])), during(notify(updated))).count == 0
    assert diff([C(notify("x", n=1))], [C(notify("x", n=2))]).count == 0


def test_further_differences_and_values_are_counted() -> None:
    difference = TraceDifference(kind="added", what="x", part="request", sender="client", session=1)
    found = TraceDiff()
    for _ in range(10_001):
        found.add(difference)
    assert (len(found.differences), found.count) == (10_000, 10_001)
    old, new = ({f"n{n}": value for n in range(101)} for value in (1, 2))
    (each,) = diff([C(call(1)), S(result(1, **old))], [C(call(1)), S(result(1, **new))]).differences
    assert (len(each.values), each.value_count) == (100, 101)


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


def test_session_that_only_one_trace_has_is_missing_or_added() -> None:
    """Sessions with a handshake are compared apart from the others, which are one."""
    shake = [("missing", "initialize"), ("missing", "notifications/initialized")]
    one = [*HANDSHAKE, *CALL]
    found = diff([*one, *HANDSHAKE], one)
    assert kinds(found) == shake
    assert {each.session for each in found.differences} == {2}
    found = diff(one, [*one, *HANDSHAKE])
    assert kinds(found) == [("added", what) for _, what in shake]
    found = diff(CALL, one)
    assert [(each.kind, each.what, each.session) for each in found.differences] == [
        ("missing", "tools/call echo", 1),
        ("added", "initialize", 2),
        ("added", "notifications/initialized", 2),
        ("added", "tools/call echo", 2),
    ]
    assert diff([], []).count == 0
    assert diff([], one).count == diff(one, []).count == 3


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


def test_time_until_the_last_line_is_the_recording_s() -> None:
    old, new = (
        recorded([C(call(1)), S(text(1, f"at {clock}"))], gap=60.0, at=at)
        for clock, at in (("2:27:20", AT), ("9:01:02", LATER))
    )
    assert diff_traces(old, new).count == 0
    old, new = (
        recorded([C(call(1)), S(text(1, f"at {clock}"))], gap=50.0, at=at)
        for clock, at in (("2:27:20", AT), ("9:01:02", LATER))
    )
    assert diff_traces(old, new).count == 1


def test_value_that_is_missing_in_one_trace_says_so() -> None:
    old, new = {"a": 1, "b": 2}, {"a": 1, "c": None}
    (each,) = diff([C(call(1)), S(result(1, **old))], [C(call(1)), S(result(1, **new))]).differences
    assert each.values == (
        ChangedValue(pointer="/result/b", old=2, new=None, is_removed=True),
        ChangedValue(pointer="/result/c", old=None, new=None, is_missing=True),
    )


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
