"""Asking for input in rounds: the server's object, the client's object, and both back to back.

Back to back there is no connection in between, but what goes over is JSON: `Wire` encodes each result and each try of a
request in the revision and decodes it as the other side would.
"""

from __future__ import annotations

import json
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw
from msgspec.structs import replace

from mcp_core import (
    DIALECTS,
    METHODS,
    LocalProtocolError,
    McpError,
    Method,
    Peer,
    RemoteProtocolError,
    Role,
)
from mcp_core import types as t
from mcp_core._errors import single
from mcp_core._events import RequestReceived
from mcp_core._jsonrpc import encode, reader
from mcp_core._mrtr import ROUNDS, Inquiry, NeedInput, Rounds, as_request, pause_before
from mcp_core._questions import as_answer, check_question, question_of, require
from mcp_core._seal import BadState, KeyRing
from mcp_core._stamps import stamped_result
from tests.core.helpers import STATEFUL, STATELESS, A, B, C, D, E, server_config
from tests.core.questions import (
    ALICE,
    ANSWER_TO,
    CHOICES,
    ELICITS,
    EVERYTHING,
    FILES,
    FORM,
    MODEL,
    NAME,
    NAME_FORM,
    NOTHING,
    PAGE,
    ROOTS,
    SAID,
    SEVERAL,
    TEXT,
    WITH_TOOLS,
    client,
    dialogue,
    form,
    offers,
    page,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Handler = Callable[[Inquiry], Any]

RING = KeyRing({"k": b"k" * 32})
NOW = 1_000_000.0

SERVER = Peer(DIALECTS[E], t.ServerCapabilities())
ROWS = {row.name: row for row in METHODS if row.input_ok}
PARAMS: dict[str, Any] = {
    "tools/call": {"name": "t", "arguments": {"b": 1, "a": [2, {"d": 3, "c": 4}]}},
    "prompts/get": {"name": "p", "arguments": {"x": "1", "y": "2"}},
    "resources/read": {"uri": "x:y"},
}


def received(
    params: Any = None, method: str | Method = "tools/call", peer: Peer | None = None, **members: Any
) -> RequestReceived:
    """The request as the server has it; `params` as they stand on the wire."""
    row = ROWS[method] if isinstance(method, str) else method
    params = (
        params if isinstance(params, bytes) else json.dumps((params or PARAMS[row.name]) | members).encode()
    )
    return RequestReceived(1, row, row.read_params(params), peer or client(), params)


def inquiry(
    request: RequestReceived | None = None, *, principal: str = "", now: float = NOW, rounds: int = ROUNDS
) -> Inquiry:
    return Inquiry(request or received(), RING, principal=principal, now=now, rounds=rounds)


def asked(inquiry: Inquiry, question: Any, key: str | None = None) -> str:
    """The key under which `question` was put."""
    with pytest.raises(NeedInput) as caught:
        inquiry.ask(question, key)
    return str(caught.value)


def wire(value: Any) -> Any:
    """What the client reads of a result."""
    return json.loads(DIALECTS[E].encode(value))


def retry(result: t.InputRequiredResult, answers: Mapping[str, Any], **members: Any) -> RequestReceived:
    """The same request once more, by a client that knows nothing of us."""
    state = wire(result)["requestState"]
    responses = {key: wire(answer) for key, answer in answers.items()}
    return received(inputResponses=responses, requestState=state, **members)


# -- One round of a server --------------------------------------------------------------------------------------


@pytest.mark.requirement("MRTR-3", "MRTR-4")
def test_a_question_becomes_the_answer() -> None:
    assert not inquiry().asking
    assert not issubclass(NeedInput, Exception)  # so that no handler takes it for a failure of its own
    run = inquiry()
    keys = [asked(run, question) for question in (NAME, MODEL, ROOTS)]
    assert run.asking
    result = run.required(NOW)
    said = wire(result)
    assert said.keys() == {"resultType", "inputRequests", "requestState"}
    assert said["resultType"] == "input_required"
    assert said["inputRequests"] == {
        keys[0]: {
            "method": "elicitation/create",
            "params": {"message": "What is your name?", "requestedSchema": NAME_FORM},
        },
        keys[1]: {
            "method": "sampling/createMessage",
            "params": {
                "messages": [{"role": "user", "content": {"type": "text", "text": "hello"}}],
                "maxTokens": 10,
            },
        },
        keys[2]: {"method": "roots/list"},
    }
    assert len(set(keys)) == 3
    members, stamp = stamped_result(server_config().terms[Role.SERVER][DIALECTS[E]], result)
    assert b"resultType" not in stamp  # which would call it complete
    assert json.loads(members) == said
    assert repr(run) == "<Inquiry of tools/call after 0 rounds, 0 answers, 3 questions>"


@pytest.mark.requirement("MRTR-18")
@pytest.mark.parametrize("method", ROWS)
def test_an_answer_is_found_by_another_instance(method: str) -> None:
    first = inquiry(received(method=method))
    key = asked(first, NAME)
    state = first.required(NOW).request_state
    again = received(method=method, inputResponses={key: wire(ALICE)}, requestState=state)
    elsewhere = Inquiry(again, KeyRing({"other": b"x" * 32, "k": b"k" * 32}), principal="", now=NOW + 1)
    assert elsewhere.ask(NAME) == ALICE
    assert not elsewhere.asking
    assert elsewhere.round == 1


@pytest.mark.requirement("MRTR-2")
@pytest.mark.parametrize("row", [row for row in METHODS if not row.input_ok and row.result], ids=repr)
def test_nothing_else_may_ask(row: Method) -> None:
    assert set(ROWS) == {"tools/call", "prompts/get", "resources/read"}
    run = Inquiry(RequestReceived(1, row, None, client(), b"{}"), RING, principal="", now=NOW)
    with pytest.raises(LocalProtocolError, match=f"{row.name} cannot ask for input"):
        run.ask(NAME)
    with pytest.raises(LocalProtocolError, match="only tools/call, prompts/get and resources/read can"):
        run.look_up(NAME)
    with pytest.raises(LocalProtocolError, match="only tools/call, prompts/get and resources/read can"):
        run.nested(t.InputRequiredResult(request_state="s"), bytes)
    for returned in (None, t.InputRequiredResult(request_state="s")):
        with pytest.raises(LocalProtocolError, match="cannot ask for input"):
            run.required(NOW, returned)


@pytest.mark.parametrize("version", STATEFUL)
def test_where_there_is_a_handshake_a_question_is_a_request(version: str) -> None:
    # What a stateful peer puts into the two members means nothing there.
    run = inquiry(received(peer=client(version), requestState="junk", inputResponses={"k": 1}))
    assert (run.state, run.responses) == (None, {})
    with pytest.raises(LocalProtocolError, match="an input request is a JSON-RPC request"):
        run.ask(NAME)
    with pytest.raises(LocalProtocolError, match="an input request is a JSON-RPC request"):
        run.required(NOW)


@pytest.mark.parametrize("version", STATELESS)
def test_where_there_is_none_it_is_part_of_the_answer(version: str) -> None:
    assert asked(inquiry(received(peer=client(version))), NAME)


def test_the_key_is_the_question_and_how_often_it_was_asked() -> None:
    run, turned = inquiry(), inquiry()
    other = t.ElicitRequest(replace(NAME.params, message="And yours?"))
    keys = [asked(run, question) for question in (NAME, other, NAME, NAME)]
    assert len(set(keys)) == 4
    assert [keys[1], *keys[:1], *keys[2:]] == [
        asked(turned, question) for question in (other, NAME, NAME, NAME)
    ]
    # Members of a schema have no order, and a URL is not a form.
    schema = dict(reversed(NAME_FORM.items()))
    assert asked(inquiry(), t.ElicitRequest(replace(NAME.params, requested_schema=schema))) == keys[0]
    assert asked(inquiry(), PAGE) not in keys
    assert asked(inquiry(), NAME, key="mine") == "mine"


def test_a_key_stands_for_one_question() -> None:
    run = inquiry()
    assert asked(run, NAME, "k") == asked(run, NAME, "k") == "k"
    with pytest.raises(LocalProtocolError, match="two different input requests have the key 'k'"):
        run.ask(ROOTS, "k")
    assert list(run.required(NOW).input_requests or {}) == ["k"]


def test_with_a_key_of_its_own_a_question_may_change() -> None:
    numbers = count(1)

    def question() -> t.ElicitRequest:
        return t.ElicitRequest(replace(NAME.params, message=f"It is {next(numbers)} o'clock. Your name?"))

    first = inquiry()
    asked(first, question(), "name")
    assert inquiry(retry(first.required(NOW), {"name": ALICE})).ask(question(), "name") == ALICE
    # Without one it is another question, and never answered.
    first = inquiry()
    key = asked(first, question())
    assert asked(inquiry(retry(first.required(NOW), {key: ALICE})), question()) != key


@pytest.mark.requirement("MRTR-15", "MRTR-12")
def test_what_is_missing_or_unknown_or_does_not_fit_is_asked_again() -> None:
    first = inquiry()
    name, roots = asked(first, NAME), asked(first, ROOTS)
    short = replace(ALICE, content={"name": "A"})
    for answers in ({}, {"unknown": ALICE}, {name: short}, {name: short, "unknown": ALICE}):
        second = inquiry(retry(first.required(NOW), {roots: FILES, **answers}))
        assert second.ask(ROOTS) == FILES
        assert asked(second, NAME) == name
        result = second.required(NOW)
        assert result.input_requests == {name: NAME}
        # What does not fit does not stand in the way of what comes next.
        third = inquiry(retry(result, {name: ALICE}))
        assert (third.ask(NAME), third.ask(ROOTS), third.round) == (ALICE, FILES, 2)


@pytest.mark.requirement("ELIC-23")
@pytest.mark.parametrize("action", ["decline", "cancel"])
def test_a_user_may_turn_away(action: Any) -> None:
    first = inquiry()
    key = asked(first, NAME)
    second = inquiry(retry(first.required(NOW), {key: t.ElicitResult(action=action)}))
    assert second.ask(NAME).action == action


@pytest.mark.requirement("MRTR-15", "SAMP-3", "SAMP-4", "ROOT-2")
@pytest.mark.parametrize(
    ("question", "answer", "ok"),
    [
        (NAME, '{"action":"accept","content":{"name":"Bo"},"more":1}', True),
        (NAME, "12345", False),
        (NAME, "null", False),
        (NAME, "{}", False),
        (NAME, '{"action":"maybe"}', False),
        (NAME, '{"action":"accept","content":{"name":{}}}', False),
        (
            MODEL,
            '{"role":"assistant","content":{"type":"text","text":"a"},"model":"m","stopReason":"new"}',
            True,
        ),
        (MODEL, '{"role":"assistant","content":[{"type":"text","text":"a"}],"model":"m"}', True),
        (MODEL, '{"role":"assistant","content":[]}', False),
        (MODEL, '{"action":"accept"}', False),
        (ROOTS, '{"roots":[{"uri":"file:///a","name":"A"}]}', True),
        (ROOTS, '{"roots":{}}', False),
        (ROOTS, '{"roots":[1]}', False),
    ],
)
def test_an_answer_must_be_readable(question: Any, answer: str, ok: bool) -> None:
    first = inquiry()
    key = asked(first, question)
    state = encode(first.required(NOW).request_state)
    request = received(
        b'{"name":"t","arguments":%b,"inputResponses":{"%b":%b},"requestState":%b}'
        % (encode(PARAMS["tools/call"]["arguments"]), key.encode(), answer.encode(), state)
    )
    second = inquiry(request)
    if ok:
        assert type(second.ask(question)) is type(ANSWER_TO[type(question)])
        return
    with pytest.raises(McpError, match=f"inputResponses.{key} is no answer to {question.method}") as caught:
        second.ask(question)
    assert caught.value.code == -32602


def test_an_answer_that_nobody_asked_for_yet_is_taken() -> None:
    # The conformance suite does so; the client's word is no less its word.
    key = asked(inquiry(), NAME)
    run = inquiry(received(inputResponses={key: wire(ALICE), "more": 1}))
    assert run.ask(NAME) == ALICE
    assert asked(run, ROOTS)
    again = inquiry(retry(run.required(NOW), {}))
    assert again.responses.keys() == {key}  # it travels on, now that it was wanted
    assert again.ask(NAME) == ALICE


def test_answers_travel_on_until_the_end() -> None:
    questions = [t.ElicitRequest(replace(NAME.params, message=f"Question {n}")) for n in range(5)]
    answers = [replace(ALICE, content={"name": f"Answer {n}"}) for n in range(5)]
    request = received()
    for n in range(5):
        run = inquiry(request)
        assert run.round == n
        assert [run.ask(question) for question in questions[:n]] == answers[:n]
        key = asked(run, questions[n])
        result = run.required(NOW)
        assert result.input_requests == {key: questions[n]}
        # An answer given once stays: neither another one nor a flood of unknown ones gets into the state.
        late = {old: replace(ALICE, content={"name": "changed"}) for old in run.responses}
        request = retry(result, {**late, "junk": ALICE, key: answers[n]})
    run = inquiry(request)
    assert [run.ask(question) for question in questions] == answers
    assert not run.asking


def test_an_answer_that_a_run_did_not_get_to_is_not_lost() -> None:
    first = inquiry()
    name, roots = asked(first, NAME), asked(first, ROOTS)
    second = inquiry(retry(first.required(NOW), {name: ALICE, roots: FILES}))
    assert second.ask(NAME) == ALICE
    asked(second, MODEL)  # and the task that would have asked for the roots was cancelled
    third = inquiry(retry(second.required(NOW), {}))
    assert third.ask(ROOTS) == FILES


@pytest.mark.requirement("SAMP-6")
@pytest.mark.parametrize(
    ("wish", "context", "said"),
    [
        (None, None, None),
        ("none", None, "none"),
        ("thisServer", None, None),
        ("allServers", {}, "allServers"),
    ],
)
def test_context_is_wished_for_where_it_can_be_granted(wish: Any, context: Any, said: str | None) -> None:
    question = t.CreateMessageRequest(replace(MODEL.params, include_context=wish))
    peer = client(capabilities=offers(sampling=t.SamplingCapability(context=context)))
    run = inquiry(received(peer=peer))
    key = asked(run, question)
    assert wire(run.required(NOW))["inputRequests"][key]["params"].get("includeContext") == said
    assert as_request(question, replace(peer, dialect=DIALECTS[D]), bytes)[1].include_context == said  # type: ignore[attr-defined]
    # Before there was a capability for it, it needed none.
    assert as_request(question, replace(peer, dialect=DIALECTS[C]), bytes)[1].include_context == wish  # type: ignore[attr-defined]


def test_what_this_revision_does_not_have_is_not_said() -> None:
    question = t.ElicitRequest(replace(PAGE.params, elicitation_id="i", task=t.TaskMetadata(ttl=1)))
    run = inquiry()
    key = asked(run, question)
    assert wire(run.required(NOW))["inputRequests"][key]["params"].keys() == {"message", "mode", "url"}


# -- What comes back ---------------------------------------------------------------------------------------------


def sealed(**how: Any) -> str:
    run = inquiry(**how)
    asked(run, NAME)
    return run.required(NOW).request_state or ""


@pytest.mark.requirement("MRTR-13", "MRTR-14")
@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({}, None),
        ({"now": NOW + 599}, None),
        ({"now": NOW + 600}, "expired"),
        ({"principal": "bob"}, "another principal"),
        ({"request": {"method": "prompts/get", "params": PARAMS["prompts/get"]}}, "not prompts/get"),
        (
            {"request": {"params": {"name": "u", "arguments": PARAMS["tools/call"]["arguments"]}}},
            "other params",
        ),
        ({"request": {"params": {"name": "t"}}}, "other params"),
        ({"request": {"params": {"name": "t", "arguments": {}}}}, "other params"),
        ({"request": {"params": {"name": "t", "arguments": {"b": 1, "a": [2, {"d": 3}]}}}}, "other params"),
        (
            {"request": {"params": {"name": "t", "arguments": {"b": 1.0, "a": [2, {"d": 3, "c": 4}]}}}},
            "other params",
        ),
        ({"request": {"params": {"name": "t", "arguments": {"a": [2, {"c": 4, "d": 3}], "b": 1}}}}, None),
        ({"request": {"_meta": {"progressToken": 7}}}, None),
    ],
)
def test_a_state_is_good_for_the_same_request(how: dict[str, Any], words: str | None) -> None:
    how = {"principal": "", **how}
    how["request"] = received(**how.get("request", {}), requestState=sealed())
    if words is None:
        assert inquiry(**how).round == 1
    else:
        with pytest.raises(BadState, match=words):
            inquiry(**how)


@pytest.mark.parametrize(
    ("method", "one", "other", "same"),
    [
        ("tools/call", b'{"name":"t"}', b'{"name":"t","arguments":null}', True),
        ("tools/call", b'{"name":"t"}', b'{"name":"t","arguments":{}}', True),
        (
            "tools/call",
            b'{"name":"t","arguments":{"a":"\\u00e9"}}',
            '{"name":"t","arguments":{ "a" : "é" }}'.encode(),
            True,
        ),
        # What cannot be read is compared byte by byte.
        (
            "tools/call",
            b'{"name":"t","arguments":{"a":1e999}}',
            b'{"name":"t","arguments":{"a":1e999}}',
            True,
        ),
        (
            "tools/call",
            b'{"name":"t","arguments":{"a":1e999}}',
            b'{"name":"t","arguments":{"a":1e998}}',
            False,
        ),
        (
            "prompts/get",
            b'{"name":"p","arguments":{"x":"1","y":"2"}}',
            b'{"arguments":{"y":"2","x":"1"},"name":"p"}',
            True,
        ),
        ("prompts/get", b'{"name":"p"}', b'{"name":"p","arguments":{}}', True),
        ("prompts/get", b'{"name":"p"}', b'{"name":"p","arguments":{"x":"1"}}', False),
        ("resources/read", b'{"uri":"a:b"}', b'{"uri":"a:b"}', True),
        ("resources/read", b'{"uri":"a:b"}', b'{"uri":"a:c"}', False),
    ],
)
def test_requests_that_are_the_same(method: str, one: bytes, other: bytes, same: bool) -> None:
    first = inquiry(received(one, method))
    asked(first, NAME)
    state = encode(first.required(NOW).request_state)
    second = received(other[:-1] + b',"requestState":%b}' % state, method)
    if same:
        assert inquiry(second).round == 1
    else:
        with pytest.raises(BadState, match="other params"):
            inquiry(second)


@pytest.mark.requirement("MRTR-13")
@given(st.text() | st.text(st.sampled_from("1k.=-_Aa \n")))
def test_whatever_a_peer_makes_up_is_refused(state: str) -> None:
    request = received()
    request.params = replace(request.params, request_state=state)
    with pytest.raises(BadState):
        inquiry(request)


@pytest.mark.parametrize("content", [b"1", b"[]", b'["1",{},[],null]', b'[1,{"a":1},[2],null]'])
def test_content_that_others_sealed_with_our_keys_is_refused(content: bytes) -> None:
    run = inquiry()
    state = RING.seal(content, run._binding(), NOW)
    with pytest.raises(BadState, match="its content was not written by this server"):
        inquiry(received(requestState=state))


@pytest.mark.parametrize("version", [D, E])
def test_the_rounds_are_counted(version: str) -> None:
    def once_more(run: Inquiry) -> RequestReceived | None:
        returned = t.InputRequiredResult(request_state="s")
        if version == E:
            return retry(run.required(NOW, returned), {})
        assert run.nested(returned, bytes) == {}
        run.resume(returned, {})
        return None

    run = inquiry(received(peer=client(version)), rounds=3)
    for n in range(3):
        assert run.round == n
        again = once_more(run)
        run = inquiry(again, rounds=3) if again is not None else run
    with pytest.raises(McpError, match="tools/call still needs input after 3 rounds") as caught:
        once_more(run)
    assert caught.value.code == -32603


def test_there_are_ten_rounds_unless_told_otherwise() -> None:
    run = inquiry()
    for _ in range(10):
        run = inquiry(retry(run.required(NOW), {}))
    with pytest.raises(McpError, match="after 10 rounds"):
        run.required(NOW)


def test_answers_have_a_limit() -> None:
    ring = KeyRing({"k": b"k" * 32}, longest=1000)
    first = Inquiry(received(), ring, principal="", now=NOW)
    key = asked(first, NAME)
    request = retry(first.required(NOW), {key: replace(ALICE, content={"name": "A" * 1000})})
    second = Inquiry(request, ring, principal="", now=NOW)
    second.ask(NAME)
    asked(second, ROOTS)
    with pytest.raises(McpError, match="the answers so far are too long") as caught:
        second.required(NOW)
    assert caught.value.code == -32602


# -- Asking by hand ----------------------------------------------------------------------------------------------


def test_a_handler_may_keep_a_state_of_its_own() -> None:
    run = inquiry()
    assert (run.state, run.responses) == (None, {})
    returned = t.InputRequiredResult(
        input_requests={"step 1": NAME, "roots": ROOTS}, request_state='{"at": "ü"}', meta={"a": 1}
    )
    result = run.required(NOW, returned)
    assert result.input_requests == returned.input_requests
    assert (result.meta, result.result_type) == ({"a": 1}, "input_required")
    assert result.request_state != returned.request_state
    assert returned.result_type is None  # what the handler made is its own

    run = inquiry(retry(result, {"step 1": ALICE, "other": 5}))
    assert run.state == '{"at": "ü"}'
    assert run.responses.keys() == {"step 1", "other"}
    assert run.response("step 1", t.ElicitResult) == ALICE
    assert run.response("roots", t.ListRootsResult) is None
    with pytest.raises(McpError, match=r"inputResponses\.other is no answer to sampling/createMessage"):
        run.response("other", t.CreateMessageResult)

    # Without a state of its own: earlier answers are there all the same, what is asked once more is forgotten.
    result = run.required(NOW, t.InputRequiredResult(input_requests={"step 2": NAME}))
    run = inquiry(retry(result, {"step 2": ALICE}))
    assert run.state is None
    assert run.responses.keys() == {"step 1", "step 2", "other"}
    result = run.required(NOW, t.InputRequiredResult(input_requests={"step 1": NAME}))
    run = inquiry(retry(result, {}))
    assert run.responses.keys() == {"step 2", "other"}


def test_what_was_asked_wins_over_what_was_returned() -> None:
    run = inquiry()
    key = asked(run, NAME)
    result = run.required(NOW, t.InputRequiredResult(input_requests={"k": ROOTS}, request_state="s"))
    assert result.input_requests == {key: NAME}


def test_both_ways_of_asking_share_a_request() -> None:
    run = inquiry()
    result = run.required(NOW, t.InputRequiredResult(input_requests={"k": ROOTS}, request_state="s"))
    run = inquiry(retry(result, {"k": FILES}))
    key = asked(run, NAME)
    run = inquiry(retry(run.required(NOW), {key: ALICE}))
    assert (run.state, run.response("k", t.ListRootsResult), run.ask(NAME)) == ("s", FILES, ALICE)


@pytest.mark.requirement("MRTR-3", "MRTR-5")
@pytest.mark.parametrize(
    ("returned", "error", "words"),
    [
        (t.InputRequiredResult(), LocalProtocolError, "inputRequests, requestState or both"),
        (t.InputRequiredResult(input_requests={}), LocalProtocolError, "inputRequests, requestState or both"),
        (
            t.InputRequiredResult(input_requests={"k": page("file:///x")}),
            LocalProtocolError,
            "no http or https URL",
        ),
        (t.InputRequiredResult(input_requests={"k": NAME, "r": ROOTS}), McpError, '"roots":{}'),
    ],
)
@pytest.mark.parametrize("version", [D, E])
def test_returned_results_that_cannot_be_said(
    returned: Any, error: type[Exception], words: str, version: str
) -> None:
    peer = client(version, offers(elicitation=ELICITS(url={}, form={})))
    run = inquiry(received(peer=peer))
    say = run.required if version == E else run.nested
    with pytest.raises(error, match=words):
        say(*((NOW, returned) if version == E else (returned, bytes)))


@pytest.mark.requirement("MRTR-3")
def test_a_request_can_be_put_off_without_losing_an_answer() -> None:
    assert wire(inquiry().required(NOW)).keys() == {"resultType", "requestState"}
    first = inquiry()
    key = asked(first, NAME)
    busy = inquiry(retry(first.required(NOW), {key: ALICE}))
    result = busy.required(NOW)
    assert result.input_requests is None
    later = inquiry(retry(result, {}))
    assert later.ask(NAME) == ALICE
    assert later.round == 2
    # The same by hand; an empty map of questions is none.
    result = later.required(NOW, t.InputRequiredResult(input_requests={}, request_state="s"))
    assert wire(result).keys() == {"resultType", "requestState"}
    assert inquiry(retry(result, {})).state == "s"


# -- Stateful peers ---------------------------------------------------------------------------------------------


TITLED = form(a=CHOICES, b={"type": "boolean", "default": True}, c={"type": "integer", "default": 1})


@pytest.mark.requirement("ELIC-4", "ELIC-5", "ELIC-7", "ELIC-8", "ELIC-13", "SAMP-4", "ROOT-2")
@pytest.mark.parametrize(
    ("version", "question", "said"),
    [
        (A, ROOTS, {}),
        (
            D,
            t.ListRootsRequest(t.ListRootsParams(meta=t.RequestMeta(traceparent="p"))),
            {"_meta": {"traceparent": "p"}},
        ),
        (C, FORM, {"message": "What is your name?", "requestedSchema": NAME_FORM}),
        (D, FORM, {"message": "What is your name?", "mode": "form", "requestedSchema": NAME_FORM}),
        (D, TITLED, {"message": "m", "requestedSchema": TITLED.params.requested_schema}),
        (
            C,
            TITLED,
            {
                "message": "m",
                "requestedSchema": {
                    "type": "object",
                    "properties": {
                        "a": {"type": "string", "enum": ["a"], "enumNames": ["A"]},
                        "b": {"type": "boolean", "default": True},
                        "c": {"type": "integer"},
                    },
                },
            },
        ),
        (C, form(a=SEVERAL), "cannot express MultiSelectSchema"),
        (
            D,
            PAGE,
            {
                "message": "Please log in",
                "mode": "url",
                "url": "https://example.com/login",
                "elicitationId": "07" * 16,
            },
        ),
        (
            D,
            t.ElicitRequest(replace(PAGE.params, elicitation_id="mine")),
            {
                "message": "Please log in",
                "mode": "url",
                "url": "https://example.com/login",
                "elicitationId": "mine",
            },
        ),
        (
            B,
            dialogue([TEXT]),
            {"messages": [{"role": "user", "content": {"type": "text", "text": "x"}}], "maxTokens": 1},
        ),
        (
            D,
            dialogue([TEXT]),
            {"messages": [{"role": "user", "content": [{"type": "text", "text": "x"}]}], "maxTokens": 1},
        ),
        (A, dialogue([TEXT, TEXT]), "a message has exactly one block"),
        (D, page("nonsense"), "no http or https URL"),
    ],
)
def test_a_question_as_a_request(version: str, question: Any, said: Any) -> None:
    dialect = DIALECTS[version]
    if isinstance(said, str):
        with pytest.raises(LocalProtocolError, match=said):
            dialect.encode(as_request(question, client(version), lambda n: b"\x07" * n)[1])
    else:
        method, params = as_request(question, client(version), lambda n: b"\x07" * n)
        assert method == question.method
        assert json.loads(dialect.encode(params)) == said


@pytest.mark.requirement("ELIC-3", "SAMP-5")
@pytest.mark.parametrize(
    ("peer", "question", "missing"),
    [
        (client(D, offers(elicitation=ELICITS())), PAGE, {"elicitation": {"url": {}}}),
        (client(D, offers(sampling=t.SamplingCapability())), WITH_TOOLS, {"sampling": {"tools": {}}}),
        # A client cannot offer what its revision does not have.
        (client(C), PAGE, {"elicitation": {"url": {}}}),
        (client(C), WITH_TOOLS, {"sampling": {"tools": {}}}),
        (client(B), NAME, {"elicitation": {}}),
    ],
)
def test_a_question_that_a_stateful_client_did_not_offer_to_answer(
    peer: Peer, question: Any, missing: Any
) -> None:
    with pytest.raises(McpError) as caught:
        as_request(question, peer, bytes)
    assert (caught.value.code, caught.value.data) == (-32601, {"requiredCapabilities": missing})


def test_an_answer_of_a_stateful_client_is_kept() -> None:
    run = inquiry(received(peer=client(D)))
    key, answer = run.look_up(NAME)
    assert answer is None
    run.keep(key, ALICE)
    assert run.look_up(NAME) == (key[:-1] + "2", None)  # it is asked a second time, and so another question
    run.resume(t.InputRequiredResult(request_state="s"), {})
    assert run.look_up(NAME) == (key, ALICE)
    assert not run.asking


def test_what_fits_is_for_the_author_to_say() -> None:
    run = inquiry()
    key = asked(run, NAME)
    again = retry(run.required(NOW), {key: ALICE})
    assert inquiry(again).ask(NAME) == ALICE
    assert inquiry(again).look_up(NAME, None, lambda question, answer: None) == (key, ALICE)
    with pytest.raises(NeedInput):
        inquiry(again).ask(NAME, None, lambda question, answer: "not she")


@pytest.mark.parametrize("version", [C, D])
def test_what_a_handler_returns_becomes_requests(version: str) -> None:
    run = inquiry(received(peer=client(version)))
    returned = t.InputRequiredResult(input_requests={"a": NAME, "b": ROOTS}, request_state="s")
    nested = run.nested(returned, bytes)
    assert [(key, method) for key, (method, _) in nested.items()] == [
        ("a", "elicitation/create"),
        ("b", "roots/list"),
    ]
    run.resume(returned, {"a": ALICE, "b": FILES})
    assert (run.state, run.round) == ("s", 1)
    assert run.response("a", t.ElicitResult) == ALICE
    assert run.response("b", t.ListRootsResult) == FILES
    again = t.InputRequiredResult(input_requests={"c": MODEL})
    run.nested(again, bytes)
    run.resume(again, {"c": SAID})
    assert (run.state, run.round, list(run.responses)) == (None, 2, ["a", "b", "c"])


# -- One round of a client -----------------------------------------------------------------------------------------


def rounds(
    params: Any = None, capabilities: t.ClientCapabilities = EVERYTHING, limit: int = ROUNDS
) -> Rounds:
    return Rounds("tools/call", params or {"name": "t"}, SERVER, capabilities, rounds=limit)


ORIGINALS: list[Any] = [
    {"name": "t", "arguments": {"a": 1}, "_meta": {"x": 1}},
    t.CallToolParams(name="t", arguments=Raw(b'{"a":1}')),
]


@pytest.mark.requirement("MRTR-6", "MRTR-7", "MRTR-8", "MRTR-9")
@pytest.mark.parametrize("original", ORIGINALS, ids=["mapping", "struct"])
@pytest.mark.parametrize("state", ["", '\x00 é\u2028 anything "', None])
def test_the_request_is_made_again(original: Any, state: str | None) -> None:
    before = json.loads(encode(original))
    call = rounds(original)
    questions: Any = {"n": NAME, "m": MODEL, "r": ROOTS}
    assert call.take(questions, state) == questions
    assert call.params is original  # not before all is answered
    dressed = {"meta": {"a": 1}, "result_type": "complete"}
    call.answer(
        {
            "n": replace(ALICE, **dressed),
            "m": replace(SAID, **dressed),
            "r": replace(FILES, **dressed),
            "x": ALICE,
        }
    )
    retried = json.loads(encode(call.params))
    assert retried.pop("inputResponses") == {
        "n": {"action": "accept", "content": {"name": "Alice"}},
        "m": {
            "_meta": {"a": 1},
            "role": "assistant",
            "content": {"type": "text", "text": "hi"},
            "model": "m",
        },
        "r": {"roots": [{"uri": "file:///home"}]},
    }
    assert retried.pop("requestState", None) == state
    assert retried == before
    assert json.loads(encode(original)) == before  # a parallel request made of it carries nothing
    assert repr(call) == "<Rounds of tools/call, 1 so far, 3 questions>"

    # The next round has nothing of this one.
    call.take({"n": NAME}, None)
    call.answer({"n": t.ElicitResult(action="decline")})
    assert json.loads(encode(call.params)) == before | {"inputResponses": {"n": {"action": "decline"}}}
    call.take(None, "next")
    call.answer({})
    assert json.loads(encode(call.params)) == before | {"requestState": "next"}


def test_a_request_without_params_can_be_made_again() -> None:
    call = Rounds("tools/call", None, SERVER, EVERYTHING)
    call.take(None, "s")
    call.answer({})
    assert call.params == {"requestState": "s"}


@pytest.mark.requirement("MRTR-6")
@pytest.mark.parametrize(
    ("answers", "words"),
    [
        ({}, "elicitation/create has no answer"),
        ({"n": SAID}, "not answered with"),
        ({"n": t.ElicitResult(action="accept")}, "content.name is missing"),
    ],
)
def test_what_our_side_must_answer(answers: Any, words: str) -> None:
    call = rounds()
    call.take({"n": NAME}, "s")
    with pytest.raises(LocalProtocolError, match=words):
        call.answer(answers)
    assert call.params == {"name": "t"}


@pytest.mark.requirement("MRTR-5")
@pytest.mark.parametrize(
    ("question", "words"),
    [(PAGE, "did not declare"), (MODEL, "did not declare"), (form(a={"type": "object"}), "flat object")],
)
def test_what_the_server_must_not_ask(question: Any, words: str) -> None:
    call = rounds(capabilities=offers(elicitation=ELICITS()))
    with pytest.raises(RemoteProtocolError, match=words):
        call.take({"ok": NAME, "bad": question}, "s")


@pytest.mark.parametrize("limit", [0, 1, 3])
def test_a_server_may_not_ask_for_ever(limit: int) -> None:
    call = rounds(limit=limit)
    for _ in range(limit):
        call.take({"n": NAME}, "s")
        call.answer({"n": ALICE})
    with pytest.raises(RemoteProtocolError, match=f"tools/call: the server still asks after {limit} rounds"):
        call.take(None, "s")


def test_who_is_put_off_waits_longer_each_time() -> None:
    call = rounds()
    pauses = []
    for questions in (None, {}, None, {"n": NAME}, None):
        call.take(questions, "s")
        call.answer({"n": ALICE})
        pauses.append(call.pause)
    assert pauses == [0.1, 0.2, 0.4, 0.0, 0.1]
    assert [pause_before(retry) for retry in (0, 1, 5, 6, 10_000)] == [0.1, 0.2, 3.2, 5.0, 5.0]


# -- Both back to back ---------------------------------------------------------------------------------------------


class Wire:
    """A server that runs `handler`, and the client's side of one call of it. Every instance of the server is a new one."""

    def __init__(self, handler: Handler, **how: Any) -> None:
        self._handler = handler
        self.answer: Callable[[t.InputRequest], Any] = lambda question: ANSWER_TO[type(question)]
        self._ids = count(1)
        self._how = how
        self.rounds: list[list[str]] = []  # the messages of the questions of each round
        self.tries: list[Any] = []

    def serve(self, data: bytes) -> Any:
        """What a runtime does: run the handler, see whether it asks, answer. The peer's JSON in, JSON out."""
        row = ROWS["tools/call"]
        request = RequestReceived(next(self._ids), row, row.read_params(data), client(), data)
        try:
            run = inquiry(request, **self._how)
        except BadState as bad:
            return {"error": bad.TOLD}
        value: Any = None
        try:
            value = self._handler(run)
        except NeedInput:
            pass
        except BaseException as exc:  # noqa: BLE001 - as a runtime does
            if not run.asking:
                return {"error": str(single(exc))}
        try:
            if run.asking or isinstance(value, t.InputRequiredResult):
                value = run.required(NOW, value if isinstance(value, t.InputRequiredResult) else None)
        except McpError as exc:
            return {"error": str(exc)}
        return json.loads(DIALECTS[E].encode(value))

    def call(self) -> Any:
        """What a client does: ask until there is a result."""
        call = Rounds("tools/call", ORIGINALS[0], SERVER, EVERYTHING)
        while True:
            self.tries.append(json.loads(encode(call.params)))
            reply = self.serve(encode(call.params))
            if reply.get("resultType") != "input_required":
                return reply.get("error") or reply["content"][0]["text"]
            result = reader(t.InputRequiredResult)(encode(reply))
            questions = call.take(result.input_requests, result.request_state)
            self.rounds.append([_words(question) for question in questions.values()])
            call.answer({key: self.answer(question) for key, question in questions.items()})


def _words(question: t.InputRequest) -> str:
    return question.params.message if isinstance(question, t.ElicitRequest) else question.method


def says(text: str) -> t.CallToolResult:
    return t.CallToolResult(content=[t.TextContent(text)])


def question(message: str) -> t.ElicitRequest:
    return t.ElicitRequest(replace(NAME.params, message=message))


def one_by_one(run: Inquiry) -> Any:
    who = run.ask(question("who")).content
    words = run.ask(MODEL).content
    roots = run.ask(ROOTS).roots
    assert who is not None
    assert isinstance(words, t.TextContent)
    return says(f"{who['name']} {words.text} {roots[0].uri}")


def the_same_twice(run: Inquiry) -> Any:
    return says("".join(run.ask(question("more?")).action for _ in range(2)))


def side_by_side(run: Inquiry) -> Any:
    """As tasks do: each asks, and what they raised comes as a group."""
    found, raised = [], []
    for message in ("a", "b", "a"):
        try:
            found.append(run.ask(question(message)).action)
        except NeedInput as need:
            raised.append(need)
    if raised:
        raise BaseExceptionGroup("tasks", raised)
    return says("".join(found))


def with_a_bare_except(run: Inquiry) -> Any:
    try:
        return says(run.ask(question("q")).action)
    except:  # noqa: E722
        return says("never mind")


def with_an_except(run: Inquiry) -> Any:
    try:
        return says(run.ask(question("q")).action)
    except Exception:  # noqa: BLE001 - as careless authors do
        return says("never mind")


def with_another_error(run: Inquiry) -> Any:
    try:
        return says(run.ask(question("q")).action)
    except BaseException as exc:
        raise RuntimeError("could not ask") from exc


def by_hand(run: Inquiry) -> Any:
    if run.state is None:
        return t.InputRequiredResult(input_requests={"1": question("first")}, request_state="1")
    if run.state == "1":
        assert run.response("1", t.ElicitResult) is not None
        return t.InputRequiredResult(request_state="2")
    if run.state == "2":
        return t.InputRequiredResult(input_requests={"2": question("second")}, request_state="3")
    return says(f"{run.state} {sorted(run.responses)}")


def in_both_ways(run: Inquiry) -> Any:
    run.ask(question("by asking"))
    if "k" not in run.responses:
        return t.InputRequiredResult(input_requests={"k": question("by hand")})
    return says(run.ask(question("by asking again")).action)


def without_a_client_for_it(run: Inquiry) -> Any:
    try:
        require([NAME], client(capabilities=NOTHING))
    except McpError:
        return says("did without")


def failing(run: Inquiry) -> Any:
    run.ask(question("q"))
    raise RuntimeError("broken")


@pytest.mark.requirement("MRTR-7", "MRTR-12", "MRTR-18")
@pytest.mark.parametrize(
    ("handler", "asked", "outcome"),
    [
        (one_by_one, [["who"], ["sampling/createMessage"], ["roots/list"]], "Alice hi file:///home"),
        (the_same_twice, [["more?"], ["more?"]], "acceptaccept"),
        (side_by_side, [["a", "b", "a"]], "acceptacceptaccept"),
        (with_a_bare_except, [["q"]], "accept"),
        (with_an_except, [["q"]], "accept"),
        (with_another_error, [["q"]], "accept"),
        (by_hand, [["first"], [], ["second"]], "3 ['1', '2']"),
        (in_both_ways, [["by asking"], ["by hand"], ["by asking again"]], "accept"),
        (without_a_client_for_it, [], "did without"),
        (failing, [["q"]], "broken"),
    ],
)
def test_a_whole_call(handler: Handler, asked: list[list[str]], outcome: str) -> None:
    link = Wire(handler)
    assert link.call() == outcome
    assert link.rounds == asked
    first, *more = link.tries
    assert first == ORIGINALS[0]
    for again in more:
        assert {key: again[key] for key in first} == first
    states = [again["requestState"] for again in more]
    assert len(set(states)) == len(states)


def test_a_whole_call_that_comes_to_no_end() -> None:
    link = Wire(lambda run: run.ask(question(f"try {run.round}")), rounds=4)
    assert link.call() == "tools/call still needs input after 4 rounds (-32603)"
    assert link.rounds == [["try 0"], ["try 1"], ["try 2"], ["try 3"]]


@given(st.lists(st.lists(st.sampled_from("abc"), min_size=1, max_size=5), max_size=4), st.data())
def test_tasks_may_ask_in_any_order(stages: list[list[str]], data: st.DataObject) -> None:
    """Stages one after the other, and in each of them tasks that ask side by side, in another order each time."""

    def handler(run: Inquiry) -> Any:
        for stage in stages:
            raised = []
            for message in data.draw(st.permutations(stage)):
                try:
                    content = run.ask(question(message)).content
                except NeedInput as need:
                    raised.append(need)
                else:
                    assert content == {"name": f"to {message}"}
            if raised:
                raise BaseExceptionGroup("tasks", raised)
        return says("done")

    link = Wire(handler)
    link.answer = lambda question: replace(ALICE, content={"name": f"to {_words(question)}"})
    assert link.call() == "done"
    assert [sorted(asked) for asked in link.rounds] == [sorted(stage) for stage in stages]


def test_a_whole_call_for_a_stateful_client() -> None:
    """The shim of a runtime: nested requests instead of rounds, and the same handler."""
    run = inquiry(received(peer=client(D)))
    asked_for = []
    value = by_hand(run)
    while isinstance(value, t.InputRequiredResult):
        nested = run.nested(value, bytes)
        asked_for.append([method for method, _ in nested.values()])
        answers = {}
        for key, (method, params) in nested.items():
            there = question_of(method, params)
            check_question(there, EVERYTHING)
            answers[key] = as_answer(there, ANSWER_TO[type(there)])
        run.resume(value, answers)
        value = by_hand(run)
    assert asked_for == [["elicitation/create"], [], ["elicitation/create"]]
    assert value == says("3 ['1', '2']")


@pytest.mark.requirement("MRTR-13")
def test_a_whole_call_with_a_state_that_was_altered_on_the_way() -> None:
    link = Wire(one_by_one)
    reply = link.serve(encode(ORIGINALS[0]))
    params = ORIGINALS[0] | {"requestState": reply["requestState"] + "-TAMPERED", "inputResponses": {}}
    assert link.serve(encode(params)) == {"error": BadState.TOLD}
