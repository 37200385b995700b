"""The HTTP exchanges that the judge knows, and what their responses show."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_core.trace import HttpHead
from mcp_core.trace.judge.conversation import _http
from mcp_core.trace.judge.conversation._http import EarlierEvent, HttpState, SeenExchange
from tests.core.trace.judge.conversations import ask, notify, result
from tests.core.trace.judge.seen import message_of

SESSION = "mcp-session-id"
BEARER = ("authorization", "Bearer a")
CALL = ask(1, "tools/call", name="a")
IN = (SESSION, "s")


def exchange_of(
    *headers: tuple[str, str], method: str = "POST", target: str = "/mcp", message: Any = None
) -> SeenExchange:
    """Return an exchange whose request's head is on line 3, with one message."""
    found = SeenExchange(HttpHead(method=method, target=target, headers=headers), 3, 0.3)
    if message is not None:
        found.add(message_of(message, 4, "client"))
    return found


def responded(
    state: HttpState, exchange: SeenExchange, status: int, *headers: tuple[str, str]
) -> SeenExchange:
    """Return the exchange after its response's head on line 5."""
    exchange.respond(HttpHead(status=status, headers=headers), 5, 0.5, has_body=True)
    state.receive_response(exchange)
    return exchange


# -- One exchange ----------------------------------------------------------------------------------


def test_exchange_is_its_request_s_head_at_first() -> None:
    found = exchange_of(("a", "1"), ("b", "2"), ("a", "3"), method="GET", target="/mcp?x=/y?z")
    assert (found.line, found.time, found.method, found.path) == (3, 0.3, "GET", "/mcp")
    assert found.target == "/mcp?x=/y?z"
    assert found.headers == {"a": "1, 3", "b": "2"}
    assert (found.messages, found.request, found.response) == ([], None, None)
    assert (found.revisions, found.is_modern, found.status, found.retry) == ((), False, 0, None)
    assert (found.response_line, found.response_time, found.response_headers) == (0, 0.0, {})
    assert (found.has_body, found.has_event_ids, found.events, found.answered) == (0, 0, 0, 0)
    assert (found.ended_by, found.end, found.end_line, found.end_time) == ("", "", 0, 0.0)
    assert (found.size, found.is_redirect, found.is_event_stream) == (0, False, False)


@pytest.mark.parametrize(
    ("method", "headers", "expected"),
    [
        ("GET", [("last-event-id", "")], True),
        ("GET", [], False),
        ("POST", [("last-event-id", "")], False),
    ],
)
def test_get_with_an_event_id_resumes_a_stream(
    method: str, headers: list[tuple[str, str]], *, expected: bool
) -> None:
    assert exchange_of(*headers, method=method).is_resumption is expected


@pytest.mark.parametrize(
    ("status", "is_redirect"), [(299, False), (300, True), (399, True), (400, False)]
)
def test_status_between_300_and_399_is_a_redirect(status: int, *, is_redirect: bool) -> None:
    assert responded(HttpState(), exchange_of(), status).is_redirect is is_redirect


@pytest.mark.parametrize(
    ("type", "expected"),
    [
        ("text/event-stream", True),
        ("Text/Event-Stream ; charset=utf-8", True),
        ("text/event-stream2", False),
        ("", False),
    ],
)
def test_event_stream_is_known_by_its_type(type: str, *, expected: bool) -> None:
    found = responded(HttpState(), exchange_of(), 200, ("content-type", type))
    assert found.is_event_stream is expected
    assert (found.status, found.response_line, found.response_time) == (200, 5, 0.5)
    assert (found.response_headers, found.has_body) == ({"content-type": type}, True)


@pytest.mark.parametrize(
    ("messages", "has_request"),
    [
        ([CALL], True),
        ([CALL, CALL], False),
        ([notify("x")], False),
        ([notify("x"), CALL], False),
        ([result(1)], False),
        ([{**CALL, "result": {}}], False),
    ],
)
def test_request_of_an_exchange_is_its_only_message(
    messages: list[Any], *, has_request: bool
) -> None:
    found = exchange_of()
    seen = [message_of(each, 4, "client", size=5) for each in messages]
    for each in seen:
        found.add(each)
    assert found.messages == seen
    assert found.request is (seen[0] if has_request else None)
    assert found.size == 5 * len(seen)


def test_messages_of_an_exchange_are_remembered_up_to_a_number(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_http, "_MAX_MESSAGES", 2)
    found = exchange_of()
    for _ in range(3):
        found.add(message_of(CALL, 4, "client"))
    assert len(found.messages) == 2


@pytest.mark.parametrize(
    ("status", "has_body", "is_response"),
    [(200, True, True), (200, False, False), (0, True, False)],
)
def test_response_of_an_exchange_is_the_message_of_its_body(
    status: int, *, has_body: bool, is_response: bool
) -> None:
    """Both count with their bytes, and both are made smaller."""
    found = exchange_of()
    found.add(message_of(CALL, 4, "client", size=_http_large()))
    found.respond(HttpHead(status=status), 5, 0.5, has_body=has_body)
    answer = message_of(result(1, a=1), 6, "server", size=_http_large())
    found.add(answer)
    assert found.response is (answer if is_response else None)
    assert found.size == _http_large() * (1 + is_response)
    found.shrink()
    assert found.messages[0].redacted == ("",)
    assert answer.redacted == (("",) if is_response else ())


def _http_large() -> int:
    from mcp_core.trace.judge._message import MAX_PARAMS

    return MAX_PARAMS + 1


@pytest.mark.parametrize(
    ("revisions", "is_modern"),
    [(("2026-07-28",), True), (("2025-11-25", "2026-07-28"), False), ((), False)],
)
def test_exchange_is_modern_if_all_its_revisions_are(
    revisions: tuple[str, ...], *, is_modern: bool
) -> None:
    found = exchange_of()
    found.set_revisions(revisions)
    assert (found.revisions, found.is_modern) == (revisions, is_modern)


# -- Sessions --------------------------------------------------------------------------------------


def test_nothing_is_known_of_exchanges_at_first() -> None:
    state = HttpState()
    assert (state.exchange, state.session, state.given_line) == (None, None, 0)
    assert (state.has_endpoint, state.endpoint, state.has_all_events) == (False, "", True)
    assert (state.former_sessions, state.denied, state.is_authorized) == (set(), set(), {})
    assert (state.ended_sessions, state.lost_sessions) == ({}, {})
    assert (state.exchanges, state.events, state.refused, state.served) == ({}, {}, {}, {})
    assert (state.view, state.is_in_session) == (("", "", "", ""), False)


@pytest.mark.parametrize(
    ("message", "expected"),
    [(ask(1, "initialize"), ("s", 5)), (CALL, (None, 0)), (notify("x"), (None, 0))],
)
def test_session_is_given_with_the_response_to_initialize(message: Any, expected: Any) -> None:
    state = HttpState()
    responded(state, exchange_of(message=message), 200, IN)
    assert (state.session, state.given_line) == expected
    responded(state, exchange_of(message=ask(1, "initialize")), 200)
    assert (state.session, state.given_line) == expected


@pytest.mark.parametrize(
    ("method", "status", "sent", "expected"),
    [
        ("DELETE", 200, "s", ({"s": 5}, {}, None)),
        ("DELETE", 299, "s", ({"s": 5}, {}, None)),
        ("DELETE", 202, "s", ({}, {}, None)),
        ("DELETE", 300, "s", ({}, {}, None)),
        ("DELETE", 405, "s", ({}, {}, None)),
        ("DELETE", 404, "s", ({}, {"s": (5, 0.5)}, None)),
        ("DELETE", 200, "t", ({"t": 5}, {}, "s")),
        ("POST", 404, "s", ({}, {"s": (5, 0.5)}, None)),
        ("POST", 404, "t", ({}, {"t": (5, 0.5)}, "s")),
        ("POST", 400, "s", ({}, {}, "s")),
        ("POST", 200, "s", ({}, {}, "s")),
        ("DELETE", 200, None, ({}, {}, "s")),
        ("POST", 404, None, ({}, {}, "s")),
    ],
)
def test_session_is_over_once_it_was_ended_or_is_lost(
    method: str, status: int, sent: str | None, expected: Any
) -> None:
    state = HttpState()
    state.session = "s"
    headers = () if sent is None else ((SESSION, sent),)
    responded(state, exchange_of(*headers, method=method), status)
    assert (state.ended_sessions, state.lost_sessions, state.session) == expected


def test_first_end_of_a_session_counts() -> None:
    state = HttpState()
    for line in (5, 6):
        for method, status in (("DELETE", 200), ("POST", 404)):
            exchange = exchange_of(IN, method=method)
            exchange.respond(HttpHead(status=status), line, line / 10, has_body=False)
            state.receive_response(exchange)
    assert (state.ended_sessions, state.lost_sessions) == ({"s": 5}, {"s": (5, 0.5)})


def test_next_session_has_the_exchanges_and_former_sessions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_http, "_MAX_SESSIONS", 2)
    state = HttpState()
    state.exchange = state.add(1, HttpHead(method="POST"), 2, 0.2)
    state.given_line, state.denied = 7, {"x"}
    for session in ("a", None, "b", "c"):
        state.session = session
        following = state.next_session()
        assert (following.session, following.given_line, following.denied) == (None, 0, set())
        assert following.exchanges is state.exchanges
        assert following.exchange is state.exchange
        state = following
    assert state.former_sessions == {"a", "b"}


@pytest.mark.parametrize(
    ("session", "headers", "expected"),
    [
        ("s", [IN], True),
        ("t", [IN], False),
        (None, [IN], False),
        (None, [], True),
        ("s", [], False),
    ],
)
def test_exchange_is_in_the_session_that_it_names(
    session: str | None, headers: list[tuple[str, str]], *, expected: bool
) -> None:
    state = HttpState()
    state.session, state.exchange = session, exchange_of(*headers)
    assert state.is_in_session is expected


def test_view_is_all_by_which_a_server_knows_its_client() -> None:
    state = HttpState()
    state.exchange = exchange_of(
        ("x-api-key", "k"), ("accept", "a"), ("cookie", "c"), BEARER, (SESSION, "s")
    )
    assert state.view == ("s", "Bearer a", "c", "k")
    state.exchange = exchange_of(BEARER)
    assert state.view == ("", "Bearer a", "", "")


def test_exchanges_are_remembered_up_to_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_http, "MAX_EXCHANGES", 2)
    state = HttpState()
    made = [state.add(number, HttpHead(method="GET"), 2, 0.2) for number in (1, 2, 3)]
    assert (made[2].line, made[2].time, made[2].method) == (2, 0.2, "GET")
    assert state.exchanges == {2: made[1], 3: made[2]}


# -- Authorization ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "headers", "before", "expected"),
    [
        (200, [BEARER], {}, {"/mcp": 0.5}),
        (299, [BEARER], {"/mcp": 0.1}, {"/mcp": 0.5}),
        (199, [BEARER], {}, {}),
        (300, [BEARER], {}, {}),
        (200, [], {}, {}),
        (401, [BEARER], {"/mcp": 0.1, "/": 0.1}, {"/": 0.1}),
        (403, [BEARER], {"/mcp": 0.1}, {}),
        (402, [BEARER], {"/mcp": 0.1}, {"/mcp": 0.1}),
        (401, [BEARER], {}, {}),
        (401, [], {"/mcp": 0.1}, {"/mcp": 0.1}),
    ],
)
def test_path_is_authorized_from_a_success_to_a_denial(
    status: int,
    headers: list[tuple[str, str]],
    before: dict[str, float],
    expected: dict[str, float],
) -> None:
    state = HttpState()
    state.is_authorized = before
    responded(state, exchange_of(*headers, target="/mcp?a"), status)
    assert state.is_authorized == expected


@pytest.mark.parametrize(
    ("status", "challenge", "headers", "message", "denied"),
    [
        (401, "BEARER realm=x", [], CALL, {"tools/call"}),
        (401, "Basic, bearer", [], CALL, {"tools/call"}),
        (401, "Basic", [], CALL, set()),
        (403, "Bearer", [], CALL, set()),
        (401, "Bearer", [BEARER], CALL, set()),
        (401, "Bearer", [], notify("x"), set()),
    ],
)
def test_method_is_denied_by_a_bearer_challenge(
    status: int, challenge: str, headers: list[tuple[str, str]], message: Any, denied: set[str]
) -> None:
    state = HttpState()
    exchange = exchange_of(*headers, message=message)
    responded(state, exchange, status, ("www-authenticate", challenge))
    assert state.denied == denied


def test_facts_of_responses_are_remembered_up_to_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first of most, and the last of requests that were refused and served."""
    monkeypatch.setattr(_http, "_MAX_SESSIONS", 2)
    state = HttpState()
    for name in ("a", "b", "c"):
        target, session = f"/{name}", (SESSION, name)
        responded(state, exchange_of(BEARER, target=target), 200)
        responded(state, exchange_of(session, method="DELETE"), 200)
        responded(state, exchange_of(session, message=ask(1, name)), 404)
        bearer = ("www-authenticate", "Bearer")
        responded(state, exchange_of(message=ask(1, name)), 401, bearer)
        state.receive_result(exchange_of(message=ask(1, name)), 9)
        state.session = "z"
        state.receive_result(exchange_of(message=ask(1, name)), 9)
    assert state.is_authorized == {"/a": 0.5, "/b": 0.5}
    assert state.ended_sessions.keys() == state.lost_sessions.keys() == {"a", "b"}
    assert state.denied == {"a", "b"}
    assert len(state.refused) == len(state.served) == 2
    state.is_authorized["/a"] = 0.1
    responded(state, exchange_of(BEARER, target="/a"), 200)
    assert state.is_authorized["/a"] == 0.5


# -- Requests outside of the session ---------------------------------------------------------------


def test_requests_have_one_key_if_all_is_the_same_but_the_id_and_the_length() -> None:
    def key(message: Any, *headers: tuple[str, str], **members: Any) -> int | None:
        exchange = exchange_of(*headers)
        exchange.add(message_of(message, 4, "client", **members))
        return HttpState().request_key(exchange)

    found = key(ask(1, "x", a=1, b=2), ("a", "1"), ("b", "2"))
    assert found is not None
    assert key(ask(2, "x", b=2, a=1), ("b", "2"), ("content-length", "9"), ("a", "1")) == found
    assert key(ask(1, "x", a=1, b=2), ("a", "1"), ("b", "3")) != found
    assert key(ask(1, "x", a=1, b=3), ("a", "1"), ("b", "2")) != found
    assert key(ask(1, "y", a=1, b=2), ("a", "1"), ("b", "2")) != found
    assert key(ask(1, "initialize")) is key(notify("x")) is None
    assert key(ask(1, "x"), redacted=("/params",)) is None


@pytest.mark.parametrize(
    ("status", "is_refused"), [(400, True), (404, True), (401, False), (403, False), (200, False)]
)
def test_request_that_is_refused_is_remembered_by_its_key(status: int, *, is_refused: bool) -> None:
    state = HttpState()
    exchange = responded(state, exchange_of(message=CALL), status)
    key = state.request_key(exchange)
    assert state.refused == ({key: (status, 5)} if is_refused else {})
    responded(state, exchange_of(message=ask(1, "initialize")), 404)
    assert len(state.refused) == is_refused


@pytest.mark.parametrize(
    ("session", "headers", "message", "is_served"),
    [
        ("s", [], CALL, True),
        ("s", [(SESSION, "t")], CALL, True),
        ("s", [IN], CALL, False),
        (None, [], CALL, False),
        ("s", [], ask(1, "initialize"), False),
    ],
)
def test_result_outside_of_the_session_is_remembered(
    session: str | None, headers: list[tuple[str, str]], message: Any, *, is_served: bool
) -> None:
    state = HttpState()
    exchange = responded(state, exchange_of(*headers, message=message), 200)
    state.session = session
    state.receive_result(exchange, 9)
    key = state.request_key(exchange)
    assert state.served == ({key: (200, 9)} if is_served else {})


# -- Events ----------------------------------------------------------------------------------------


STREAM = exchange_of(method="GET")


def resumption(id: str) -> SeenExchange:
    return exchange_of(("last-event-id", id), method="GET")


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        # The id, the text, the exchange with its number.
        ([("1", "a", STREAM, 4)], (None, False)),
        ([("1", "a", STREAM, 4), ("1", "a", STREAM, 5)], (None, False)),
        ([("1", "a", STREAM, 4), ("1", "b", STREAM, 5)], (None, True)),
        ([("1", "", STREAM, 4), ("1", "b", STREAM, 5)], (None, False)),
        ([("1", "", STREAM, 4), ("1", "b", STREAM, 5), ("1", "c", STREAM, 5)], (None, True)),
        ([("1", "a", STREAM, 4), ("1", None, STREAM, 5)], (None, False)),
        ([("1", "a", STREAM, 4), ("1", None, STREAM, 5), ("1", "a", STREAM, 5)], (None, False)),
        # A resumption goes on with the stream on which the event was that it names.
        ([("1", "a", STREAM, 4), ("2", "b", resumption("1"), 5)], (True, False)),
        ([("1", "a", STREAM, 4), ("2", "b", resumption("9"), 5)], (None, False)),
        ([("1", "a", STREAM, 4), ("2", "b", STREAM, 6), ("2", "b", resumption("1"), 7)],
         (False, False)),
        ([("1", "a", STREAM, 4), ("2", "b", STREAM, 4), ("2", "c", resumption("1"), 7)],
         (True, True)),
        ([("1", "a", STREAM, 4), ("2", "b", resumption("1"), 7), ("3", "c", resumption("2"), 8)],
         (True, False)),
        ([("1", "a", STREAM, 4), ("2", "b", resumption("9"), 5), ("2", "b", resumption("1"), 7)],
         (None, False)),
    ],
)  # fmt: skip
def test_event_is_compared_with_the_earlier_one_of_its_id(
    events: list[tuple[str, str | None, SeenExchange, int]], expected: tuple[Any, ...]
) -> None:
    state = HttpState()
    found = [state.add_event(*event) for event in events]
    assert found[-1] == EarlierEvent(*expected)
    assert state.has_all_events


def test_events_are_remembered_up_to_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_http, "MAX_EVENTS", 2)
    state = HttpState()
    has_all = []
    for id in ("1", "2", "3"):
        state.add_event(id, "a", STREAM, 4)
        has_all.append(state.has_all_events)
    assert has_all == [True, True, False]
    assert not state.add_event("1", "b", STREAM, 4).has_other_content
    assert state.add_event("3", "b", STREAM, 4).has_other_content
