"""The judge's messages and requests: what is read of them, and what is remembered."""

from __future__ import annotations

from typing import Any, Literal

import pytest

from mcp_core.trace import Judge
from mcp_core.trace.judge._exchange_judge import _is_foreign
from mcp_core.trace.judge._message import (
    MAX_PARAMS,
    SeenMessage,
    SeenRequest,
    holds_until,
    seconds,
)
from mcp_core.trace.judge.conversation import _requests
from mcp_core.trace.judge.conversation._requests import Requests
from tests.core.trace.judge.conversations import META, ask, error, notify, result

Side = Literal["client", "server"]
LARGE = MAX_PARAMS + 1


def seen(message: Any, line: int = 1, sender: Side = "client", **members: Any) -> SeenMessage:
    found = SeenMessage(message, line, 0.5, sender)
    for name, value in members.items():
        setattr(found, name, value)
    return found


def added(requests: Requests, message: Any, line: int = 1, sender: Side = "client") -> SeenRequest:
    """Return a request after it was added to those of its sender."""
    request = SeenRequest(seen(message, line, sender))
    assert isinstance(request.id, int | str)
    assert requests.add(request, request.id) == ""
    return request


# -- Messages --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("message", "kind", "meta"),
    [
        ({"method": "x", "id": 1, "params": {"_meta": {"a": 1}}}, "request", {"a": 1}),
        ({"method": "x", "id": None, "result": {"_meta": {"b": 1}}}, "request", {}),
        ({"method": "x", "params": {"_meta": {"a": 1}}}, "notification", {"a": 1}),
        ({"method": "x", "params": {"_meta": [1]}}, "notification", {}),
        ({"method": None, "params": [{"_meta": {"a": 1}}]}, "notification", {}),
        ({"result": {"_meta": {"a": 1}}, "params": {"_meta": {"b": 1}}}, "response", {"a": 1}),
        ({"result": None, "params": {"_meta": {"b": 1}}}, "response", {}),
        ({"error": {"_meta": {"a": 1}}}, "response", {}),
        ({"id": 1, "params": {"_meta": {"a": 1}}}, "invalid", {"a": 1}),
        ({}, "invalid", {}),
    ],
)
def test_message_has_kind_and_meta_by_its_members(message: Any, kind: str, meta: Any) -> None:
    found = seen(message)
    assert (found.kind, found.meta) == (kind, meta)


@pytest.mark.parametrize(
    ("message", "has_one_kind", "is_well_formed"),
    [
        (ask(1, "x"), True, True),
        (ask(1, "x", a=1), True, True),
        ({**ask(1, "x"), "params": [1]}, True, False),
        ({**ask(1, "x"), "y": 1}, True, False),
        ({**ask(1, "x"), "jsonrpc": "1.0"}, False, False),
        ({**ask(1, "x"), "result": {}}, False, False),
        ({**ask(1, "x"), "error": {}}, False, False),
        (ask(1, ""), False, False),
        (notify("x"), True, True),
        ({**notify("x"), "method": 1}, False, False),
        (ask("a" * 200, "x"), True, True),
        (ask("a" * 201, "x"), False, False),
        (ask("ä", "x"), False, False),
        (ask(1.0, "x"), False, False),
        (ask(True, "x"), False, False),
        (ask(None, "x"), False, False),
        (ask(2**53 - 1, "x"), True, True),
        (ask(2**53, "x"), False, False),
        (ask(1 - 2**53, "x"), True, True),
        (ask(-(2**53), "x"), False, False),
    ],
)
def test_message_is_well_formed_if_no_receiver_rejects_it(
    message: Any, *, has_one_kind: bool, is_well_formed: bool
) -> None:
    found = seen(message)
    assert (found.has_one_kind, found.is_well_formed) == (has_one_kind, is_well_formed)


@pytest.mark.parametrize(
    ("message", "is_answer", "is_well_formed"),
    [
        (result(1), True, True),
        (error(1), True, True),
        ({**result(1), "y": 1}, True, True),  # receivers ignore it
        (result(1), False, False),
        ({**result(1), "error": {}}, True, False),
        ({**result(1), "jsonrpc": 2}, True, False),
    ],
)
def test_response_is_well_formed_if_it_answers_a_request(
    message: Any, *, is_answer: bool, is_well_formed: bool
) -> None:
    request = SeenRequest(seen(ask(1, "x"))) if is_answer else None
    found = seen(message, sender="server", request=request)
    assert (found.has_one_kind, found.is_well_formed) == (is_well_formed, is_well_formed)


@pytest.mark.parametrize(
    ("message", "members", "params", "has_result", "code"),
    [
        (
            ask(1, "x", a="b", _meta={"c": 1, "d": "e" * 2_049, "f" * 201: 1}),
            {"jsonrpc": "2.0", "id": 1, "method": "x", "params": {}},
            {"_meta": {"c": 1}},
            False,
            None,
        ),
        (
            {**result(1, _meta={"c": "d" * 2_048}, e=1), "more": "text"},
            {"jsonrpc": "2.0", "id": 1, "result": {}, "more": None},
            {},
            True,
            None,
        ),
        (error(1, -3), {"jsonrpc": "2.0", "id": 1, "error": {}}, {}, False, -3),
        (error(1, "c" * 2_049), {"jsonrpc": "2.0", "id": 1, "error": {}}, {}, False, None),
        (error(1, ["c" * 2_044]), {"jsonrpc": "2.0", "id": 1, "error": {}}, {}, False,
         ["c" * 2_044]),
        (error(1, ["c" * 2_045]), {"jsonrpc": "2.0", "id": 1, "error": {}}, {}, False, None),
    ],
)  # fmt: skip
def test_large_message_keeps_its_small_parts(
    message: Any, members: Any, params: Any, code: Any, *, has_result: bool
) -> None:
    """A message that isn't large is kept as it is."""
    found = seen(message, size=MAX_PARAMS)
    found.shrink()
    assert (found.members, found.redacted) == (message, ())
    found.size = LARGE
    found.shrink()
    assert (found.members, found.params, found.redacted) == (members, params, ("",))
    assert found.result == ({} if has_result else None)
    assert found.error == (None if "error" not in message else {"code": code})
    assert found.code == code


def test_large_message_keeps_fifty_members() -> None:
    many = {str(number): number for number in range(60)}
    found = seen(ask(1, "x", _meta=many) | many, size=LARGE)
    found.shrink()
    assert list(found.members) == ["jsonrpc", "id", "method", "params", *map(str, range(46))]
    assert found.meta == {str(number): number for number in range(50)}


# -- Requests --------------------------------------------------------------------------------------


def test_large_request_keeps_the_params_that_rules_ask_for() -> None:
    """Those of a smaller one are kept as they are."""
    many: dict[str, Any] = {str(number): number for number in range(60)}
    params: dict[str, Any] = {"name": "n" * 2_048, "uri": "u" * 2_049, "other": 1, "_meta": many}
    params |= {"task": {"ttl": 1}, "level": None}
    message = ask(1, "x", **params)
    whole = SeenRequest(seen(message, size=MAX_PARAMS))
    assert (whole.has_all_params, whole.params) == (True, params)
    part = SeenRequest(seen(message, size=LARGE))
    kept = {"name": "n" * 2_048, "level": None, "task": {"ttl": 1}}
    assert (part.has_all_params, part.params) == (
        False,
        {**kept, "_meta": {str(number): number for number in range(50)}},
    )
    assert part.meta == part.params["_meta"]


@pytest.mark.parametrize(
    ("message", "revisions", "names_other"),
    [
        (ask(1, "x", _meta={META + "protocolVersion": "9"}), ("2025-11-25",), True),
        (ask(1, "x", _meta={META + "protocolVersion": 9}), ("2025-11-25",), False),
        (ask(1, "x", _meta={META + "protocolVersion": "2026-07-28"}), ("2025-11-25",), False),
        (ask(1, "x", _meta={META + "protocolVersion": "9"}), ("2026-07-28",), False),
        (ask(1, "initialize", _meta={META + "protocolVersion": "9"}), ("2025-11-25",), False),
        (ask(1, "x"), ("2025-11-25",), False),
    ],
)
def test_request_names_another_version_in_its_meta_member(
    message: Any, revisions: tuple[str, ...], *, names_other: bool
) -> None:
    found = seen(message)
    found.set_revisions(revisions)
    assert SeenRequest(found).names_other_version is names_other


def test_request_is_remembered_as_it_was_sent() -> None:
    """Nothing of its later course is known yet."""
    message = seen(
        ask("a", "x" * 200, _meta={"progressToken": 2.0}),
        7,
        "server",
        size=9,
        redacted=("/a",),
        in_batch=True,
        exchange=3,
    )
    message.set_revisions(("2025-11-25",))
    found = SeenRequest(message)
    assert (found.line, found.time, found.sender, found.id) == (7, 0.5, "server", "a")
    assert (found.method, found.size, found.token, found.exchange) == ("x" * 200, 9, 2, 3)
    assert (found.revisions, found.is_modern) == (("2025-11-25",), False)
    assert found.is_redacted
    assert found.in_batch
    assert found.is_well_formed
    assert (found.count, found.progress, found.progress_line) == (1, None, 0)
    assert (found.cancelled, found.answered, found.acknowledged) == (0, 0, 0)
    assert (found.progress_exchange, found.answer_exchange) == (0, 0)
    assert (found.is_error, found.shares_token) == (False, False)
    assert SeenRequest(seen(ask(1, "x" * 201))).method == ""


def test_response_is_recorded_at_its_request() -> None:
    """Its id is compared as JSON: 1.0 is 1, and "1" is another id."""
    requests = Requests()
    asked = added(requests, ask(1, "x"), 3)
    assert requests.find("client", 1) is asked
    answer = seen(error("1"), 4, "server", exchange=5)
    assert requests.answered_by(answer) is None  # the id is another one
    answer = seen(error(1.0), 4, "server", exchange=5)
    assert requests.answered_by(answer) is asked
    assert requests.answer(answer, asked)
    assert (asked.answered, asked.answer_exchange, asked.is_error) == (4, 5, True)
    assert requests.answered_by(answer) is None
    assert requests.find("client", 1) is asked
    assert requests.find("server", 1) is None
    other = added(requests, ask(2, "x"), 5, "server")
    assert requests.answered_by(seen(result(2), 6)) is other
    assert requests.answer(seen(result(2), 6), other)
    assert not other.is_error


def test_response_to_requests_with_one_id_belongs_to_the_earliest_that_is_left() -> None:
    requests = Requests()
    first, second = (added(requests, ask(1, "x"), line) for line in (3, 4))
    assert (first.count, second.count, second.earlier) == (1, 2, first)
    answer = seen(result(1), 5, "server")
    assert not requests.answer(answer, second)
    assert second.answered == 0
    assert requests.open["client"] == {1: first}
    assert requests.answer(answer, first)
    assert not requests.open["client"]


def test_answered_requests_are_remembered_up_to_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_requests, "MAX_ANSWERED", 2)
    requests = Requests()
    for number in (1, 2, 3):
        requests.answer(seen(result(number), 9, "server"), added(requests, ask(number, "x")))
    assert list(requests.answered["client"]) == [2, 3]


def test_requests_of_which_a_response_shows_that_they_were_read_do_not_become_fewer() -> None:
    requests = Requests()
    early, late = added(requests, ask(1, "x"), 3), added(requests, ask(2, "x"), 4)
    assert requests.has_read == {"client": 0, "server": 0}
    requests.read_up_to(late)
    requests.read_up_to(early)
    assert requests.has_read == {"client": 0, "server": 4}


def test_request_that_is_dropped_can_be_sent_again() -> None:
    """The one before it with the id is open again. Other requests are not touched."""
    requests = Requests()
    message = ask(1, "x")
    first, second = added(requests, message, 3), added(requests, message, 4)
    for line, id in ((3, 1), (4, 2), (4, True)):
        requests.drop(seen(ask(id, "x"), line))
        assert requests.open["client"] == {1: second}
    requests.drop(seen(message, 4))
    assert (requests.open["client"], requests.dropped) == ({1: first}, {1: second})
    requests.drop(seen(message, 3))
    assert (requests.open["client"], requests.dropped) == ({}, {1: first})


def test_token_is_shared_with_a_request_that_has_no_response() -> None:
    requests = Requests()
    message = ask(1, "x", _meta={"progressToken": "t"})
    first, second = added(requests, message), added(requests, {**message, "id": 2}, 2)
    third = added(requests, {**message, "id": 3}, 3, "server")
    assert (first.shares_token, second.shares_token, third.shares_token) == (False, True, False)
    requests.answer(seen(result(2), 4, "server"), second)
    assert not added(requests, {**message, "id": 4}, 5).shares_token


@pytest.mark.parametrize(("limit", "has_all"), [(3, True), (2, False)])
def test_tokens_are_known_to_be_complete_below_a_number(
    limit: int, monkeypatch: pytest.MonkeyPatch, *, has_all: bool
) -> None:
    monkeypatch.setattr(_requests, "MAX_ENTRIES", limit)
    requests = Requests()
    for number in (1, 2):
        added(requests, ask(number, "x", _meta={"progressToken": number}))
    assert (list(requests.tokens["client"]), requests.has_all_tokens) == ([1, 2], has_all)


@pytest.mark.parametrize(
    ("token", "progress", "expected"),
    [
        ("t", 0.5, (0.5, 9, 4)),
        ("t", 1, (1, 9, 4)),
        ("t", "1", (None, 0, 0)),
        ("u", 1, (None, 0, 0)),
        (None, 1, (None, 0, 0)),
    ],
)
def test_progress_is_recorded_at_the_request_with_its_token(
    token: Any, progress: Any, expected: tuple[Any, ...]
) -> None:
    requests = Requests()
    asked = added(requests, ask(1, "x", _meta={"progressToken": "t"}))
    message = notify("notifications/progress", progressToken=token, progress=progress)
    requests.report_progress(seen(message, 8, "client", exchange=4))  # its own side's
    assert asked.progress is None
    requests.report_progress(seen(message, 9, "server", exchange=4))
    assert (asked.progress, asked.progress_line, asked.progress_exchange) == expected


@pytest.mark.parametrize(
    ("method", "sender", "id", "cancelled"),
    [
        ("tools/call", "client", 1, 5),
        ("tools/call", "client", 2, 0),
        ("tools/call", "client", None, 0),
        ("tools/call", "server", 1, 0),
        ("subscriptions/listen", "server", 1, 5),
        ("subscriptions/listen", "server", 2, 0),
    ],
)
def test_cancellation_is_recorded_at_the_request_that_its_sender_may_cancel(
    method: str, sender: Side, id: Any, cancelled: int
) -> None:
    """Only the first one counts."""
    requests = Requests()
    asked = added(requests, ask(1, method))
    for line in (5, 6):
        requests.cancel(seen(notify("notifications/cancelled", requestId=id), line, sender))
    assert asked.cancelled == cancelled


def test_cancellation_by_a_server_is_for_its_own_request_first() -> None:
    requests = Requests()
    listened = added(requests, ask(1, "subscriptions/listen"))
    own = added(requests, ask(1, "roots/list"), 2, "server")
    requests.cancel(seen(notify("notifications/cancelled", requestId=1), 5, "server"))
    assert (own.cancelled, listened.cancelled) == (5, 0)


@pytest.mark.parametrize(("id", "acknowledged"), [(1, 5), (2, 0), (None, 0)])
def test_acknowledgement_is_recorded_at_its_subscription(id: Any, acknowledged: int) -> None:
    """Only the first one counts."""
    requests = Requests()
    asked = added(requests, ask(1, "subscriptions/listen"))
    message = notify("x", _meta={META + "subscriptionId": id})
    for line in (5, 6):
        requests.acknowledge(seen(message, line, "server"))
    assert asked.acknowledged == acknowledged


def test_next_session_keeps_open_requests_and_forgets_used_ids() -> None:
    requests = Requests()
    asked = added(requests, ask(1, "x", _meta={"progressToken": "t"}))
    done = added(requests, ask(2, "x"))
    requests.answer(seen(result(2), 3, "server"), done)
    following = requests.next_session()
    assert following.open["client"] == {1: asked}
    assert following.tokens["client"] == {"t": asked}
    assert following.find("client", 2) is None
    assert 1 in requests.used["client"]
    assert 1 not in following.used["client"]


# -- Values ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ttl", "is_modern", "exchange", "until"),
    [
        (59_999, True, 1, 60.5),
        (60_000, True, 1, 60.5),
        (61_000, True, 1, 61.5),
        (None, True, 1, 60.5),
        (True, True, 1, 60.5),
        (61_000, False, 1, float("inf")),
        (61_000, True, 0, float("inf")),
    ],
)
def test_result_over_http_without_sessions_holds_for_its_ttl_or_a_minute(
    ttl: Any, exchange: int, until: float, *, is_modern: bool
) -> None:
    message = seen(result(1, ttlMs=ttl), exchange=exchange, is_modern=is_modern)
    assert holds_until(message) == until


def test_error_holds_always() -> None:
    assert holds_until(seen(error(1), exchange=1, is_modern=True)) == float("inf")


@pytest.mark.parametrize(
    ("value", "expected"), [(1, 0.001), (1500.0, 1.5), (True, None), ("1", None)]
)
def test_milliseconds_are_read_as_seconds(value: Any, expected: float | None) -> None:
    assert seconds(value) == expected


@pytest.mark.parametrize(
    ("message", "is_foreign"),
    [
        ('{"id": 1, "result": {}}', False),
        ('{"id": 2, "result": {}}', True),
        ('{"id": null, "error": {}}', False),
        ('{"method": "x", "params": {"progressToken": "t"}}', False),
        ('{"method": "x", "params": {"progressToken": "u"}}', True),
        ('{"method": "x", "params": {"progressToken": true}}', False),
        ('{"id": 2, "method": "x"}', False),
        ("[1]", False),
        ("{", False),
        (b"\xff", False),
        ("[" * 100_000, False),
    ],
)
def test_event_is_foreign_if_the_client_has_no_such_request(
    message: str | bytes, *, is_foreign: bool
) -> None:
    state = Judge()._conversations.find(1)
    added(state.requests, ask(1, "x", _meta={"progressToken": "t"}))
    assert _is_foreign(message, state) is is_foreign
