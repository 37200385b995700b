"""The server of a script: correct where the case says nothing, and wrong where it does."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from mcp_core import ALL
from mcp_core.trace import Judge, TraceHeader, TraceLine
from mcp_core.trace.judge._shapes import find_shape_error
from mcp_trio.oracle.fuzz._revisions import META, dialect_of
from mcp_trio.oracle.fuzz.client._questions import QUESTIONS, RIGHT_QUESTIONS, find_question
from mcp_trio.oracle.fuzz.client._script import (
    MAX_FOLLOWED,
    PUSHES,
    Reaction,
    ScriptedServer,
)
from mcp_trio.oracle.fuzz.client._wrong_answers import ANSWERS, JUNK, Action, is_lawful
from mcp_trio.oracle.fuzz.client._wrong_http import HTTP_WAYS, raw_response

if TYPE_CHECKING:
    from collections.abc import Iterable

Json = dict[str, Any]

STATEFUL = [each for each in ALL if dialect_of(each).stateful]
NEWEST = max(ALL)
METHODS = (
    *("tools/list", "tools/call", "resources/list", "resources/templates/list", "resources/read"),
    *("prompts/list", "prompts/get", "completion/complete"),
)
PARAMS: dict[str, Json] = {
    "tools/call": {"name": "sum", "arguments": {}},
    "resources/read": {"uri": "note:///one"},
    "prompts/get": {"name": "plain"},
    "completion/complete": {
        "ref": {"type": "ref/prompt", "name": "plain"},
        "argument": {"name": "a", "value": "b"},
    },
}


def request(id: int, method: str, revision: str, **params: Any) -> Json:
    if not dialect_of(revision).stateful:
        meta = {META + "protocolVersion": revision, META + "clientCapabilities": {}}
        params = {**params, "_meta": {**meta, META + "clientInfo": {"name": "a", "version": "1"}}}
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params}


def opening(revision: str) -> Json:
    if not dialect_of(revision).stateful:
        return request(1, "server/discover", revision)
    info = {"name": "a", "version": "1"}
    return request(
        1, "initialize", revision, protocolVersion=revision, capabilities={}, clientInfo=info
    )


def sent(reaction: Reaction | None) -> list[Any]:
    """Return the messages of a reaction."""
    assert reaction is not None
    return [json.loads(action.data) for action in reaction.actions if action.kind == "send"]


def server(revision: str, *steps: tuple[Any, ...]) -> ScriptedServer:
    return ScriptedServer([("serve", [revision], ["sum"]), *steps])


@pytest.mark.parametrize("revision", ALL)
def test_server_without_steps_is_correct(revision: str) -> None:
    """The judge checks our own played server, or each client would be blamed for its faults."""
    judge = Judge(TraceHeader(format_version=1, observer="server", transport="stdio"))
    played = server(revision)
    messages = [opening(revision)]
    if dialect_of(revision).stateful:
        messages.append({"jsonrpc": "2.0", "method": "notifications/initialized"})
    messages += [
        request(id, method, revision, **PARAMS.get(method, {}))
        for id, method in enumerate((*METHODS, "acme/unknown"), 2)
    ]
    found = []
    for message in messages:
        reaction = played.receive(message)
        found += judge.receive(TraceLine(t=0, sender="client", raw=json.dumps(message)))
        for each in sent(reaction) if reaction is not None else ():
            found += judge.receive(TraceLine(t=0, sender="server", raw=json.dumps(each)))
    found += judge.close()
    assert [(each.row, each.sentence) for each in found if each.is_certain] == []
    assert not played.disturbed
    assert played.methods[0] in ("initialize", "server/discover")


def test_server_rejects_another_revision() -> None:
    old, new = server(STATEFUL[0]), server(NEWEST)
    assert sent(old.receive(opening(NEWEST)))[0]["error"]["code"] == -32601
    error = sent(new.receive(opening(STATEFUL[0])))[0]["error"]
    assert (error["code"], error["data"]["supported"]) == (-32022, [NEWEST])


def test_server_offers_its_own_revision() -> None:
    played = server(STATEFUL[-1])
    result = sent(played.receive(opening(STATEFUL[0])))[0]["result"]
    assert result["protocolVersion"] == STATEFUL[-1]


@pytest.mark.parametrize("how", ANSWERS)
@pytest.mark.parametrize("revision", [STATEFUL[0], NEWEST])
def test_each_answer_has_acts_for_all_numbers(how: str, revision: str) -> None:
    for number in range(40):
        if how in ("huge", "deep") and number > 1:
            continue
        played = server(revision, ("answer", how, 1, number))
        played.receive(opening(revision))
        reaction = played.receive(request(2, "tools/call", revision, **PARAMS["tools/call"]))
        assert reaction is not None
        assert all(b"\n" not in action.data for action in reaction.actions)


@pytest.mark.parametrize("what", PUSHES)
@pytest.mark.parametrize("revision", [STATEFUL[0], NEWEST])
def test_each_push_comes_before_the_answer(what: str, revision: str) -> None:
    # Two of the seven log messages have megabytes.
    for number in range(8 if what == "log" else 30):
        played = server(revision, ("push", what, 1, number))
        played.receive(opening(revision))
        reaction = played.receive(request(2, "tools/list", revision))
        assert reaction is not None
        assert len(reaction.actions) > 1
        assert json.loads(reaction.actions[-1].data)["id"] == 2


@pytest.mark.parametrize("way", HTTP_WAYS)
def test_each_response_to_nothing_is_bytes(way: str) -> None:
    assert all(isinstance(raw_response(way, number, b"{}"), bytes) for number in range(20))


def test_step_of_a_later_place_does_nothing() -> None:
    played = server(STATEFUL[0], ("answer", "never", 5, 0))
    assert sent(played.receive(opening(STATEFUL[0])))
    assert not played.disturbed


def test_unknown_steps_do_nothing() -> None:
    played = server(STATEFUL[0], ("answer", "acme", 0, 0), ("push", "acme", 0, 0), ("acme",))
    assert "result" in sent(played.receive(opening(STATEFUL[0])))[0]


def test_server_waits_for_the_response_to_a_ping() -> None:
    played = server(STATEFUL[0], ("push", "ping", 1, 0))
    played.receive(opening(STATEFUL[0]))
    reaction = played.receive(request(2, "tools/list", STATEFUL[0]))
    assert reaction is not None
    ping, wait, answer = reaction.actions
    assert (ping.kind, wait.kind, answer.kind) == ("send", "await", "send")
    played.receive({"jsonrpc": "2.0", "id": wait.id, "result": {}})
    assert wait.id in played.responses
    assert not played.disturbed


@pytest.mark.parametrize(
    ("step", "group"),
    [
        (("answer", "twice", 1, 0), "pairing"),
        (("answer", "shape", 1, 0), "pages"),
        (("answer", "error", 0, 0), "handshake"),
        (("answer", "shape", 0, 0), "handshake"),
        (("push", "junk", 1, 0), "framing"),
        (("push", "sampling", 1, 0), "tasks"),
    ],
)
def test_wrong_step_disturbs_what_it_touches(step: tuple[Any, ...], group: str) -> None:
    played = server(STATEFUL[0], step)
    played.receive(opening(STATEFUL[0]))
    played.receive(request(2, "tools/list", STATEFUL[0]))
    assert group in played.disturbed


@pytest.mark.parametrize("revision", ALL)
@pytest.mark.parametrize("method", QUESTIONS)
def test_right_questions_fit_the_schema_of_their_revisions(method: str, revision: str) -> None:
    """Or a client would be blamed for refusing them."""
    for number in range(RIGHT_QUESTIONS[method]):
        params, question = find_question(method, number, revision)
        if question.fits(revision):
            assert find_shape_error(revision, f">{method}", params or {}) is None, number


@pytest.mark.parametrize("method", QUESTIONS)
def test_question_is_awaited_only_as_long_as_it_is_right_to(method: str) -> None:
    """Users and models take their time. What a client has to refuse takes none."""
    capability = method.partition("/")[0]  # the step's name, too
    waits = []
    offered: list[Json] = [{}, {capability: {}}]
    for declared in offered:
        played = server("2025-11-25", ("push", capability, 1, 0))
        played.receive(opening("2025-11-25"))
        played.declared = declared
        reaction = played.receive(request(2, "tools/list", "2025-11-25"))
        assert reaction is not None
        waits += [action.seconds for action in reaction.actions if action.kind == "await"]
        assert "pairing" not in played.disturbed
    refused, answered = waits
    assert refused > 60 > 1 > answered


@pytest.mark.parametrize(
    ("how", "number", "method", "revision", "lawful"),
    [
        ("input", 0, "tools/call", NEWEST, True),
        ("input", 0, "tools/list", NEWEST, False),
        ("input", 0, "tools/call", "2025-11-25", False),
        ("input", 200, "tools/call", NEWEST, False),
        ("cursor", 0, "tools/list", NEWEST, True),
        ("cursor", 1, "tools/list", NEWEST, False),
        ("unsupported", 0, "tools/list", NEWEST, True),
        ("unsupported", 3, "tools/list", NEWEST, False),
        ("page", 1, "tools/list", NEWEST, True),
        ("output", 0, "tools/call", NEWEST, False),
    ],
)
def test_answer_is_lawful(how: str, number: int, method: str, revision: str, lawful: bool) -> None:
    assert is_lawful(how, number, method, revision) is lawful


def test_answer_of_always_is_that_of_each_later_request_with_the_method() -> None:
    played = server(NEWEST, ("always", "cursor", 1, 0))
    played.receive(opening(NEWEST))
    cursors: list[str] = []
    for id in range(2, MAX_FOLLOWED + 3):
        assert played.endless is None
        params = {"cursor": cursors[-1]} if cursors else {}
        result = sent(played.receive(request(id, "tools/list", NEWEST, **params)))[0]["result"]
        cursors.append(result["nextCursor"])
    assert played.endless == ("tools/list", "cursor", MAX_FOLLOWED)
    assert len(set(cursors)) == len(cursors)
    other = sent(played.receive(request(500, "resources/list", NEWEST)))[0]["result"]
    assert "nextCursor" not in other
    assert not played.disturbed


@pytest.mark.parametrize("ends_early", [True, False])
def test_empty_cursor_that_is_not_followed_is_noted(ends_early: bool) -> None:
    played = server(NEWEST, ("always", "page", 1, 1))
    played.receive(opening(NEWEST))
    cursor: str | None = None
    pages = 0
    while pages == 0 or cursor is not None:
        pages += 1
        params: Json = {} if cursor is None else {"cursor": cursor}
        found = sent(played.receive(request(pages + 1, "tools/list", NEWEST, **params)))
        cursor = found[0]["result"].get("nextCursor")
        if cursor == "" and ends_early:
            break
    assert pages == 3 + (not ends_early)
    assert played.skipped == ("tools/list" if ends_early else "")


@pytest.mark.parametrize("number", range(12))
def test_revision_of_the_opening_is_none_of_the_handshakes(number: int) -> None:
    played = server("2025-11-25", ("answer", "revision", 0, number))
    reaction = played.receive(opening("2025-11-25"))
    assert reaction is not None
    assert reaction.opens
    assert sent(reaction)[0]["result"].get("protocolVersion") not in STATEFUL
    assert played.disturbed == {"revision"}


def test_junk_has_no_line_feeds() -> None:
    assert all(b"\n" not in each for each in JUNK)


# -- What a step does to what the client may do next -----------------------------------------------

OLD = STATEFUL[0]
ABLE: Json = {
    "roots": {},
    "sampling": {"tools": {}, "context": {}},
    "elicitation": {"form": {}, "url": {}},
}


def able(message: Json) -> Json:
    """Return a request with a progress token, by a client that has all capabilities."""
    params = message["params"]
    meta = params.get("_meta", {})
    if META + "clientCapabilities" in meta:
        meta = {**meta, META + "clientCapabilities": ABLE}
    if "capabilities" in params:
        params = {**params, "capabilities": ABLE}
    return {**message, "params": {**params, "_meta": {**meta, "progressToken": "t"}}}


def judged(revision: str, *steps: tuple[Any, ...], method: str) -> tuple[ScriptedServer, set[str]]:
    """Play an opening and a request. Return the server, and the rows that it has broken."""
    judge = Judge(TraceHeader(format_version=1, observer="server", transport="stdio"))
    played = server(revision, *steps)
    said = [able(opening(revision))]
    if dialect_of(revision).stateful:
        said.append({"jsonrpc": "2.0", "method": "notifications/initialized"})
    said.append(able(request(2, method, revision, **PARAMS.get(method, {}))))
    found = []
    while said:
        message = said.pop(0)
        reaction = played.receive(message)
        found += judge.receive(TraceLine(t=0, sender="client", raw=json.dumps(message)))
        for action in reaction.actions if reaction is not None else ():
            if action.kind == "await":
                refused = {"code": -32601, "message": "no"}
                said.append({"jsonrpc": "2.0", "id": action.id, "error": refused})
            elif action.kind == "send":
                raw = action.data.decode("utf-8", "replace")
                found += judge.receive(TraceLine(t=0, sender="server", raw=raw))
    found += judge.close()
    return played, {each.row for each in found if each.is_certain and each.side == "server"}


_ERA = {"era", "pairing", "tasks"}
_ODD = {"pairing", "tasks", "questions"}


@pytest.mark.parametrize(
    ("what", "old", "new", "numbers"),
    [
        ("ping", set(), {"era", "pairing"}, range(5)),
        ("roots", {"tasks"}, _ERA, (0, 1, 4, 5)),
        ("roots", _ODD, _ODD | {"era"}, (2, 3, 6)),
        ("sampling", {"tasks"}, _ERA, range(RIGHT_QUESTIONS["sampling/createMessage"])),
        ("sampling", _ODD, _ODD | {"era"}, (RIGHT_QUESTIONS["sampling/createMessage"],)),
        ("elicitation", {"tasks"}, _ERA, range(RIGHT_QUESTIONS["elicitation/create"])),
        ("elicitation", _ODD, _ODD | {"era"}, (RIGHT_QUESTIONS["elicitation/create"],)),
        ("unknown-request", {"tasks"}, _ERA, range(7)),
        ("cancelled-request", {"tasks"}, _ERA, range(2)),
        ("list-changed", set(), {"era"}, range(6)),
        ("progress", set(), set(), (0, 6)),
        ("progress", {"pairing"}, {"pairing"}, range(1, 5)),
        ("log", set(), {"pairing"}, (0, 7)),
        ("log", {"pairing"}, {"pairing"}, (1, 2, 3, 4)),
        ("notification", set(), set(), (0, 1, 19, 20)),
        ("notification", {"pairing", "tasks"}, {"pairing", "tasks"}, range(2, 19)),
        ("response", {"pairing"}, {"pairing"}, range(6)),
        ("junk", {"pairing", "framing"}, {"pairing", "framing"}, range(len(JUNK))),
        ("batch", {"pairing", "framing"}, {"pairing", "framing"}, range(5)),
        ("empty-line", set(), set(), range(3)),
    ],
)
def test_push_disturbs_by_its_kind_and_is_right_if_it_does_not(
    what: str, old: set[str], new: set[str], numbers: Iterable[int]
) -> None:
    """The judge confirms it: what breaks one of its rows for servers may confuse a client."""
    for number in numbers:
        for revision, disturbed in ((OLD, old), (NEWEST, new)):
            played, rows = judged(revision, ("push", what, 1, number), method="tools/list")
            assert (number, played.disturbed) == (number, disturbed)
            assert not rows or disturbed, number


# Answers that break a row of the judge, in each number below 14.
_ALWAYS_WRONG = (
    *("twice", "id-other", "version", "both", "odd-result", "batch", "progress-after", "task"),
    "acknowledged",
)
# These do so in some numbers. In others they do what a client could be confused by.
_SOMETIMES_WRONG = {
    ("id-type", "tools/call"): {0, 6, 12},
    ("without", "tools/call"): {1, 2, 4, 5, 7, 8, 10, 11, 13},
    ("odd-error", "tools/call"): {0, 1, 2, 3, 4, 5, 6, 8, 9, 10, 12, 13},
    ("cursor", "tools/list"): {2, 4, 10, 11},
    ("unsupported", "tools/call"): {3, 4, 5, 6, 7, 12, 13},
    ("result-type", "tools/call"): set(range(14)),
    ("input", "tools/list"): set(range(14)),
}


@pytest.mark.parametrize("how", [each for each in ANSWERS if each not in ("huge", "deep")])
@pytest.mark.parametrize("method", ["tools/call", "tools/list"])
def test_lawful_answer_breaks_no_row(how: str, method: str) -> None:
    """The judge's rows for servers are another opinion of what is lawful."""
    for revision in (OLD, NEWEST):
        broken = set()
        for number in range(14):
            _, rows = judged(revision, ("answer", how, 1, number), method=method)
            if rows:
                broken.add(number)
            if is_lawful(how, number, method, revision) and (how, number % 6) != ("error", 3):
                assert not rows, number
        if how in _ALWAYS_WRONG:
            assert broken == set(range(14))
        if revision == NEWEST and (how, method) in _SOMETIMES_WRONG:
            assert broken == _SOMETIMES_WRONG[how, method]


def test_each_round_before_the_wrong_ones_is_lawful() -> None:
    lawful = []
    for number in range(sum(map(len, QUESTIONS.values())) + 14):
        lawful.append(is_lawful("input", number, "tools/call", NEWEST))
        if lawful[-1]:
            _, rows = judged(NEWEST, ("answer", "input", 1, number), method="tools/call")
            assert not rows, number
    right = 5 + sum(RIGHT_QUESTIONS.values())
    assert lawful[: right + 8] == [True] * right + [False] * 8


# -- Steps and places ------------------------------------------------------------------------------


def test_step_that_cannot_be_read_hides_no_later_one() -> None:
    played = server(OLD, ("acme",), ("answer", "never", 0, 0))
    assert sent(played.receive(opening(OLD))) == []


@pytest.mark.parametrize(
    ("steps", "requests"),
    [([], 0), ([("answer", "late", 0, 0)], 1), ([("push", "ping", 3, 0), ("acme", "a", 9)], 4)],
)
def test_case_is_over_after_its_last_place(steps: list[tuple[Any, ...]], requests: int) -> None:
    played = server(NEWEST, *steps)
    for id in range(requests):
        assert not played.is_over
        played.receive(request(id, "tools/list", NEWEST))
    assert played.is_over


@pytest.mark.parametrize(
    "message",
    [
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": None, "method": "ping"},
        {"jsonrpc": "2.0", "id": 1.5, "method": "ping"},
        {"jsonrpc": "2.0", "id": 1, "method": 5},
        {"jsonrpc": "2.0", "id": 1, "result": {}},
    ],
)
def test_message_that_isnt_a_request_has_neither_a_place_nor_a_reaction(message: Json) -> None:
    played = server(OLD, ("answer", "never", 0, 0))
    assert played.receive(message) is None
    assert (played.requests, played.methods, played.responses) == (0, [], {})


def test_text_is_an_id() -> None:
    reaction = server(OLD).receive({**opening(OLD), "id": "a"})
    assert sent(reaction)[0]["id"] == "a"


def test_first_methods_are_kept() -> None:
    played = server(NEWEST)
    for id in range(105):
        reaction = played.receive(request(id, f"acme/{id}", NEWEST))
        assert reaction is not None
        assert (reaction.place, reaction.method) == (id, f"acme/{id}")
    assert played.methods == [f"acme/{id}" for id in range(100)]
    assert played.requests == 105


def test_tools_that_are_called_are_noted_once() -> None:
    played = server(NEWEST)
    played.receive(request(1, "prompts/get", NEWEST, name="plain"))
    for id, name in enumerate(["sum", "add", "sum", 5], 2):
        played.receive(request(id, "tools/call", NEWEST, name=name))
    assert played.called == ["sum", "add"]


@pytest.mark.parametrize(
    ("meta", "revision"),
    [
        ({META + "clientInfo": {}}, NEWEST),  # the version is missing
        ({"acme": 1}, ""),  # that of another era
        ({META + "protocolVersion": 5}, ""),
        ({META + "protocolVersion": OLD}, OLD),
        ({META + "protocolVersion": "1999-12-31"}, ""),
    ],
)
def test_revision_of_a_request_is_what_its_meta_says(meta: Json, revision: str) -> None:
    played = ScriptedServer([("serve", [OLD, NEWEST], ["sum"])])
    played.receive({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta}})
    assert played.revision == revision


def test_request_of_a_session_keeps_its_revision() -> None:
    played = ScriptedServer([("serve", [OLD, NEWEST], ["sum"])])
    played.receive(opening(OLD))
    meta: Json = {"_meta": {META + "clientInfo": {}}}
    played.receive({"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": meta})
    assert played.revision == OLD
    played.begin_conversation()
    assert (played.revision, played.declared) == ("", {})


@pytest.mark.parametrize("revision", [OLD, NEWEST])
def test_client_says_who_it_is_and_what_it_can(revision: str) -> None:
    played = server(revision)
    played.receive(able(opening(revision)))
    assert played.client_info == {"name": "a", "version": "1"}
    assert played.declared == ABLE
    played.receive({"jsonrpc": "2.0", "id": 2, "method": "ping", "params": {"clientInfo": 5}})
    assert played.client_info == {"name": "a", "version": "1"}


@pytest.mark.parametrize("params", [{}, {"notifications": {"toolsListChanged": True}}])
@pytest.mark.parametrize("how", ["right", "late", "error"])
def test_subscription_lasts_if_its_answer_is_right(params: Json, how: str) -> None:
    """A right one is acknowledged. Another answer is a response, after which nothing comes."""
    played = server(NEWEST, ("answer", how, 0, 0))
    reaction = played.receive(request(7, "subscriptions/listen", NEWEST, **params))
    assert reaction is not None
    assert reaction.lasts is (how == "right")
    [message] = sent(reaction)
    if how == "right":
        assert message["method"] == "notifications/subscriptions/acknowledged"
        assert message["params"]["_meta"] == {META + "subscriptionId": 7}
        assert message["params"]["notifications"] == params.get("notifications", {})
    else:
        assert message["id"] == 7


def test_subscription_in_an_old_revision_is_an_error() -> None:
    played = server(OLD)
    played.receive(opening(OLD))
    reaction = played.receive(request(7, "subscriptions/listen", OLD))
    assert reaction is not None
    assert not reaction.lasts
    assert sent(reaction)[0]["error"]["code"] == -32601


@pytest.mark.parametrize(("how", "times"), [("unsupported", 20), ("error", 100)])
def test_client_that_tries_again_is_endless_after_some_times(how: str, times: int) -> None:
    played = server(NEWEST, ("always", how, 0, 0))
    played.receive(request(0, "tools/list", NEWEST))
    for id in range(times):
        assert played.endless is None
        played.receive(request(id, "tools/list", NEWEST))
    assert played.endless == ("tools/list", how, times)
    played.receive(request(500, "tools/list", NEWEST))
    assert played.endless == ("tools/list", how, times)


def test_answer_of_one_place_comes_before_those_of_always() -> None:
    played = server(NEWEST, ("always", "never", 0, 0), ("answer", "late", 1, 0))
    kinds = []
    for id in range(3):
        reaction = played.receive(request(id, "tools/list", NEWEST))
        assert reaction is not None
        kinds.append([action.kind for action in reaction.actions])
    assert kinds == [[], ["pause", "send"], []]


@pytest.mark.parametrize("what", PUSHES)
def test_nothing_is_asked_before_the_opening(what: str) -> None:
    """Over HTTP there is no stream then. Everything else may come."""
    played = server(OLD, ("push", what, 0, 0))
    reaction = played.receive(opening(OLD))
    assert reaction is not None
    assert reaction.opens
    pushed, pause = reaction.actions[:-2], reaction.actions[-2]
    asks = ("ping", "sampling", "elicitation", "roots", "unknown-request", "cancelled-request")
    assert bool(pushed) is (what not in asks)
    assert (pause.kind, pause.seconds) == ("pause", 0.015)


@pytest.mark.parametrize("how", ["shape", "twice", "never", "id-other"])
@pytest.mark.parametrize("method", ["acme/unknown", "tools/list"])
def test_error_is_made_wrong_only_by_what_fits_it(how: str, method: str) -> None:
    played = server(NEWEST, ("answer", how, 0, 0))
    said = sent(played.receive(request(1, method, NEWEST)))
    right = sent(server(NEWEST).receive(request(1, method, NEWEST)))
    has_result = method == "tools/list"
    assert (said == right) is (not has_result and how in ("shape", "twice"))


@pytest.mark.parametrize("is_http", [True, False])
def test_step_of_http_is_for_http(is_http: bool) -> None:
    case = [("serve", [NEWEST], []), ("http", "status", 0, 7)]
    played = ScriptedServer(case, is_http=is_http)
    reaction = played.receive(request(1, "tools/list", NEWEST))
    assert reaction is not None
    assert (reaction.http, reaction.number) == (("status", 7) if is_http else ("", 0))
    wanted = {"session", "pairing", "pages", "tasks"} if is_http else set()
    assert played.disturbed == wanted


@pytest.mark.parametrize(
    ("step", "method", "disturbed"),
    [
        (("answer", "output", 0, 0), "tools/call", set()),
        (("answer", "input", 0, 0), "tools/call", {"tasks"}),
        (("answer", "error", 0, 0), "server/discover", {"handshake"}),
        (("answer", "error", 0, 0), "tools/call", set()),
        (("answer", "unsupported", 0, 0), "server/discover", {"handshake"}),
        (("answer", "revision", 0, 0), "server/discover", {"revision"}),
        (("answer", "revision", 0, 0), "tools/call", set()),
        (("answer", "twice", 0, 0), "tools/call", {"pairing", "rounds", "tasks"}),
        (("answer", "twice", 0, 0), "tools/list", {"pairing", "rounds", "tasks", "pages"}),
        (
            ("answer", "twice", 0, 0),
            "server/discover",
            {"pairing", "rounds", "tasks", "handshake"},
        ),
    ],
)
def test_answer_disturbs_by_its_kind(
    step: tuple[Any, ...], method: str, disturbed: set[str]
) -> None:
    played = server(NEWEST, step)
    played.receive(request(1, method, NEWEST, **PARAMS.get(method, {})))
    assert played.disturbed == disturbed


# -- Pushes ----------------------------------------------------------------------------------------


def pushed(revision: str, what: str, number: int, message: Json | None = None) -> list[Action]:
    """Return what comes before the answer to a request."""
    played = server(revision, ("push", what, 1, number))
    played.receive(able(opening(revision)))
    reaction = played.receive(message or able(request(2, "tools/list", revision)))
    assert reaction is not None
    return reaction.actions[:-1]


def test_request_is_cancelled_before_its_response_is_waited_for() -> None:
    first, note, wait = pushed(OLD, "cancelled-request", 0)
    message, cancelled = json.loads(first.data), json.loads(note.data)
    assert cancelled["method"] == "notifications/cancelled"
    assert cancelled["params"]["requestId"] == message["id"] == wait.id
    assert (wait.kind, wait.seconds) == ("await", 0.2)


def test_changes_of_lists_come_once_or_as_a_flood() -> None:
    found = [[json.loads(each.data) for each in pushed(OLD, "list-changed", n)] for n in range(9)]
    assert [len(each) for each in found] == [1] * 3 + [30] * 3 + [1_000] * 3
    names = [each[0]["method"].split("/")[1] for each in found]
    assert names == ["tools", "prompts", "resources"] * 3
    assert all("params" not in each for each in found[0])


@pytest.mark.parametrize("number", range(6))
@pytest.mark.parametrize("params", [None, {"_meta": 5}, {"_meta": {"progressToken": 0}}])
def test_progress_is_for_the_token_of_the_request(number: int, params: Any) -> None:
    message = {"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": params}
    sent = [json.loads(each.data)["params"] for each in pushed(OLD, "progress", number, message)]
    token = 0 if params == {"_meta": {"progressToken": 0}} else "none"
    assert {each.get("progressToken", token) for each in sent} == (
        {token} if number != 2 else {"unknown"}
    )
    numbers = [each.get("progress") for each in sent]
    if number in (0, 5):
        assert numbers == list(range(numbers[0], numbers[0] + len(sent)))
        assert all(each <= sent[0].get("total", 1_000) for each in numbers)
    if number == 1:
        assert numbers != sorted(set(numbers))


def test_question_has_an_id_of_its_own() -> None:
    """Some of them are texts."""
    count = len(QUESTIONS["roots/list"])
    played = server(OLD, *(("push", "roots", 1, count * number) for number in range(6)))
    played.receive(able(opening(OLD)))
    reaction = played.receive(request(2, "tools/list", OLD))
    assert reaction is not None
    ids = [each.id for each in reaction.actions if each.kind == "await"]
    assert ids == [5001, 5002, 5003, 5004, "server-5005", 5006]
    assert played.asked == dict.fromkeys(ids, "roots/list")


def test_ping_has_params_or_none() -> None:
    for number in range(4):
        ping, wait = pushed(OLD, "ping", number)
        assert ("params" in json.loads(ping.data)) is (number % 2 == 1)
        assert wait.seconds > 60
    _, wait = pushed(NEWEST, "ping", 0)
    assert wait.seconds < 1  # this revision has no such request


@pytest.mark.parametrize("revision", [OLD, NEWEST])
def test_unknown_request_is_to_be_refused_at_once(revision: str) -> None:
    """A client serves none of them, and so needs no user."""
    methods = set()
    for number in range(7):
        message, wait = pushed(revision, "unknown-request", number)
        methods.add(json.loads(message.data)["method"])
        assert wait.seconds > 60
    assert not methods & {"ping", "roots/list", "sampling/createMessage", "elicitation/create"}
    assert len(methods) == 6


def test_response_to_nothing_has_an_id_of_no_request() -> None:
    for number in range(6):
        [action] = pushed(OLD, "response", number)
        message = json.loads(action.data)
        assert message["id"] is True or message["id"] not in (1, 2)
        assert ("result" in message) is (number in (0, 1, 5))


def test_forms_with_and_without_required_fields_are_asked() -> None:
    """Each required field is one of the form's, and no client may leave it out."""
    required = []
    for number in range(RIGHT_QUESTIONS["elicitation/create"]):
        params, _ = find_question("elicitation/create", number, OLD)
        schema = params.get("requestedSchema")
        if schema is not None:
            required.append(set(schema.get("required", ())))
            assert required[-1] <= schema["properties"].keys()
    assert any(required)
    assert not all(required)


# -- States and defaults ---------------------------------------------------------------------------


def test_reaction_without_members_does_nothing() -> None:
    empty = Reaction()
    assert (empty.actions, empty.place, empty.method) == ([], 0, "")
    assert (empty.http, empty.number, empty.opens, empty.lasts) == ("", 0, False, False)


@pytest.mark.parametrize(
    ("case", "revisions", "tools"),
    [
        ([], (), ()),
        ([("serve", [OLD])], (), ()),
        ([("serve", [OLD], ["a"], 1)], (), ()),
        ([("push", "ping", 0, 0)], (), ()),
        ([("serve", [OLD, NEWEST], ["a", "b"])], (OLD, NEWEST), ("a", "b")),
    ],
)
def test_server_before_its_first_request_has_only_what_its_case_says(
    case: Any, revisions: tuple[str, ...], tools: tuple[str, ...]
) -> None:
    played = ScriptedServer(case)
    assert (played.revisions, played.tools) == (revisions, tools)
    assert (played.revision, played.disturbed, played.requests) == ("", set(), 0)
    assert (played.asked, played.responses, played.declared) == ({}, {}, {})
    assert (played.called, played.endless, played.skipped, played.last_page) == ([], None, "", 0)
    assert (played.methods, played.client_info) == ([], {})


def test_server_is_one_without_http_unless_it_is_said() -> None:
    played = ScriptedServer([("serve", [NEWEST], []), ("http", "status", 0, 7)])
    reaction = played.receive(request(1, "tools/list", NEWEST))
    assert reaction is not None
    assert reaction.http == ""
    assert not played.disturbed


def test_error_of_an_unknown_method_has_its_first_100_characters() -> None:
    error = sent(server(NEWEST).receive(request(1, "x" * 150, NEWEST)))[0]["error"]
    assert error == {"code": -32601, "message": f"there is no method {'x' * 100}"}


@pytest.mark.parametrize("version", ["1999-12-31", 5, None])
def test_opening_of_a_modern_server_is_refused_with_its_revisions(version: Any) -> None:
    played = server(NEWEST)
    params = {} if version is None else {"protocolVersion": version}
    opened = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
    reaction = played.receive(opened)
    error = sent(reaction)[0]["error"]
    assert (error["code"], error["message"]) == (-32022, "unsupported protocol version")
    assert error["data"] == {"supported": [NEWEST], "requested": str(version)}
    assert reaction is not None
    assert reaction.opens is False
    assert played.revision == ""


def test_question_that_a_revision_lacks_disturbs_its_era() -> None:
    """So does one before the revision is known."""
    for revision, disturbed in ((OLD, {"tasks"}), (NEWEST, _ERA), ("", _ERA)):
        played = server(OLD)
        played.revision = revision
        played.begin_question()
        assert played.disturbed == disturbed


@pytest.mark.parametrize(("number", "skipped", "place"), [(0, "", 0), (1, "tools/list", 3)])
def test_last_page_with_an_empty_cursor_is_noted_with_its_place(
    number: int, skipped: str, place: int
) -> None:
    """Another method's empty cursor isn't the end of it, and a missing one neither."""
    played = server(NEWEST, ("always", "page", 0, number))
    for cursor in (None, "second", "third"):
        params = {} if cursor is None else {"cursor": cursor}
        played.receive(request(1, "tools/list", NEWEST, **params))
    assert (played.skipped, played.last_page) == (skipped, place)
    played.receive(request(1, "prompts/list", NEWEST, cursor=""))
    played.receive({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": []})
    assert played.skipped == skipped
    played.receive(request(1, "tools/list", NEWEST, cursor=""))
    assert (played.skipped, played.last_page) == ("", place)
