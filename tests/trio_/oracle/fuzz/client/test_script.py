"""The server of a script: correct where the case says nothing, and wrong where it does."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mcp_core import ALL
from mcp_core.trace import Judge, TraceHeader, TraceLine
from mcp_core.trace.judge._shapes import find_shape_error
from mcp_trio.oracle.fuzz._revisions import META, dialect_of
from mcp_trio.oracle.fuzz.client._questions import QUESTIONS, RIGHT_QUESTIONS, find_question
from mcp_trio.oracle.fuzz.client._script import MAX_FOLLOWED, PUSHES, Reaction, ScriptedServer
from mcp_trio.oracle.fuzz.client._wrong_answers import ANSWERS, JUNK, is_lawful
from mcp_trio.oracle.fuzz.client._wrong_http import HTTP_WAYS, raw_response

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
