"""Multi round-trip requests: the server side, the client side, and both together.

There is no connection in between, but JSON: `RoundTripPair` encodes each result and each try of a
request in the revision, and decodes it as the other side would.
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
    LocalProtocolError,
    McpError,
    Method,
    Peer,
    RemoteProtocolError,
    Role,
)
from mcp_core import types as t
from mcp_core._errors import single
from mcp_core.protocol.input_requests._kinds import (
    check_input_request,
    check_response,
    input_request_of,
    require_capabilities,
)
from mcp_core.protocol.input_requests._request_state import InvalidRequestState, KeyRing
from mcp_core.protocol.input_requests._rounds import (
    MAX_ROUNDS,
    ClientRoundTrips,
    NeedInput,
    ServerRoundTrips,
    retry_delay,
    to_request,
)
from mcp_core.protocol.jsonrpc._codec import encode, reader
from mcp_core.protocol.messages._events import RequestReceived
from mcp_core.protocol.revisions._encoding import encode_result_parts
from mcp_core.protocol.revisions._methods import METHODS
from tests.core.server_requests import (
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
from tests.harness.jsonrpc import (
    STATEFUL,
    STATELESS,
    A,
    B,
    C,
    D,
    E,
    server_config,
)
from tests.levels import fewer_examples

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Handler = Callable[[ServerRoundTrips], Any]

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
    params: Any = None,
    method: str | Method = "tools/call",
    peer: Peer | None = None,
    **members: Any,
) -> RequestReceived:
    """Return a request as the server receives it, from params in JSON."""
    row = ROWS[method] if isinstance(method, str) else method
    params = (
        params
        if isinstance(params, bytes)
        else json.dumps((params or PARAMS[row.name]) | members).encode()
    )
    return RequestReceived(1, row, row.read_params(params), peer or client(), params)


def inquiry(
    request: RequestReceived | None = None,
    *,
    principal: str = "",
    now: float = NOW,
    rounds: int = MAX_ROUNDS,
) -> ServerRoundTrips:
    return ServerRoundTrips(
        request or received(), RING, principal=principal, now=now, max_rounds=rounds
    )


def asked_key(inquiry: ServerRoundTrips, question: Any, key: str | None = None) -> str:
    """Ask `question`, and return the key of the unanswered input request."""
    with pytest.raises(NeedInput) as caught:
        inquiry.ask(question, key)
    return str(caught.value)


def decoded(value: Any) -> Any:
    """Return a value as the client decodes it."""
    return json.loads(DIALECTS[E].encode(value))


def retry(
    result: t.InputRequiredResult, answers: Mapping[str, Any], **members: Any
) -> RequestReceived:
    """Return the retry of the request, by an independent client."""
    state = decoded(result)["requestState"]
    responses = {key: decoded(answer) for key, answer in answers.items()}
    return received(inputResponses=responses, requestState=state, **members)


# -- One round of a server -----------------------------------------------------------------------


@pytest.mark.requirement("MRTR-3", "MRTR-4")
def test_input_requests_become_input_required_result() -> None:
    """`NeedInput` passes handlers' `except Exception`, and the result isn't stamped `complete`."""
    assert not inquiry().input_required
    assert not issubclass(NeedInput, Exception)  # handlers must not catch it
    run = inquiry()
    keys = [asked_key(run, question) for question in (NAME, MODEL, ROOTS)]
    assert run.input_required
    result = run.input_required_result(NOW)
    sent = decoded(result)
    assert sent.keys() == {"resultType", "inputRequests", "requestState"}
    assert sent["resultType"] == "input_required"
    assert sent["inputRequests"] == {
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
    members, stamp = encode_result_parts(
        server_config().dialect_configs[Role.SERVER][DIALECTS[E]], result
    )
    assert b"resultType" not in stamp  # which would call it complete
    assert json.loads(members) == sent
    assert repr(run) == "<ServerRoundTrips of tools/call after 0 rounds, 0 answers, 3 questions>"


@pytest.mark.requirement("MRTR-18")
@pytest.mark.parametrize("method", ROWS)
def test_round_retry_works_on_another_instance(method: str) -> None:
    first = inquiry(received(method=method))
    key = asked_key(first, NAME)
    state = first.input_required_result(NOW).request_state
    again = received(method=method, inputResponses={key: decoded(ALICE)}, requestState=state)
    elsewhere = ServerRoundTrips(
        again, KeyRing({"other": b"x" * 32, "k": b"k" * 32}), principal="", now=NOW + 1
    )
    assert elsewhere.ask(NAME) == ALICE
    assert not elsewhere.input_required
    assert elsewhere.round == 1


@pytest.mark.requirement("MRTR-2")
@pytest.mark.parametrize(
    "row", [row for row in METHODS if not row.input_ok and row.result], ids=repr
)
def test_ask_in_other_method_raises(row: Method) -> None:
    """Only three methods have a response that a retry can follow; the author learns which."""
    assert set(ROWS) == {"tools/call", "prompts/get", "resources/read"}
    run = ServerRoundTrips(
        RequestReceived(1, row, None, client(), b"{}"), RING, principal="", now=NOW
    )
    with pytest.raises(LocalProtocolError, match=f"{row.name} cannot ask for input"):
        run.ask(NAME)
    with pytest.raises(
        LocalProtocolError, match="only tools/call, prompts/get and resources/read can"
    ):
        run.look_up(NAME)
    with pytest.raises(
        LocalProtocolError, match="only tools/call, prompts/get and resources/read can"
    ):
        run.nested_requests(t.InputRequiredResult(request_state="s"), bytes)
    for returned in (None, t.InputRequiredResult(request_state="s")):
        with pytest.raises(LocalProtocolError, match="cannot ask for input"):
            run.input_required_result(NOW, returned)


@pytest.mark.parametrize("version", STATEFUL)
def test_ask_in_stateful_revision_raises(version: str) -> None:
    # These two members mean nothing in the requests of a stateful peer.
    run = inquiry(received(peer=client(version), requestState="junk", inputResponses={"k": 1}))
    assert (run.state, run.responses) == (None, {})
    with pytest.raises(LocalProtocolError, match="an input request is a JSON-RPC request"):
        run.ask(NAME)
    with pytest.raises(LocalProtocolError, match="an input request is a JSON-RPC request"):
        run.input_required_result(NOW)


@pytest.mark.parametrize("version", STATELESS)
def test_ask_in_stateless_revision_raises_need_input(version: str) -> None:
    assert asked_key(inquiry(received(peer=client(version))), NAME)


def test_ask_key_is_digest_and_occurrence() -> None:
    """Keys must be equal when the handler runs again, or answers would miss their questions."""
    run, turned = inquiry(), inquiry()
    other = t.ElicitRequest(replace(NAME.params, message="And yours?"))
    keys = [asked_key(run, question) for question in (NAME, other, NAME, NAME)]
    assert len(set(keys)) == 4
    assert [keys[1], *keys[:1], *keys[2:]] == [
        asked_key(turned, question) for question in (other, NAME, NAME, NAME)
    ]
    # Members of a schema have no order, and a URL is not a form.
    schema = dict(reversed(NAME_FORM.items()))
    assert (
        asked_key(inquiry(), t.ElicitRequest(replace(NAME.params, requested_schema=schema)))
        == keys[0]
    )
    assert asked_key(inquiry(), PAGE) not in keys
    assert asked_key(inquiry(), NAME, key="mine") == "mine"


def test_ask_same_key_for_two_requests_raises() -> None:
    run = inquiry()
    assert asked_key(run, NAME, "k") == asked_key(run, NAME, "k") == "k"
    with pytest.raises(LocalProtocolError, match="two different input requests have the key 'k'"):
        run.ask(ROOTS, "k")
    assert list(run.input_required_result(NOW).input_requests or {}) == ["k"]


def test_ask_with_own_key_accepts_changed_text() -> None:
    """A question that tells the time differs in each round, so only its own key finds it."""
    numbers = count(1)

    def question() -> t.ElicitRequest:
        return t.ElicitRequest(
            replace(NAME.params, message=f"It is {next(numbers)} o'clock. Your name?")
        )

    first = inquiry()
    asked_key(first, question(), "name")
    assert (
        inquiry(retry(first.input_required_result(NOW), {"name": ALICE})).ask(question(), "name")
        == ALICE
    )
    # Without a key it is another input request each time, and never answered.
    first = inquiry()
    key = asked_key(first, question())
    assert (
        asked_key(inquiry(retry(first.input_required_result(NOW), {key: ALICE})), question()) != key
    )


@pytest.mark.requirement("MRTR-15", "MRTR-12")
def test_ask_missing_or_invalid_response_asks_again() -> None:
    first = inquiry()
    name, roots = asked_key(first, NAME), asked_key(first, ROOTS)
    short = replace(ALICE, content={"name": "A"})
    for answers in ({}, {"unknown": ALICE}, {name: short}, {name: short, "unknown": ALICE}):
        second = inquiry(retry(first.input_required_result(NOW), {roots: FILES, **answers}))
        assert second.ask(ROOTS) == FILES
        assert asked_key(second, NAME) == name
        result = second.input_required_result(NOW)
        assert result.input_requests == {name: NAME}
        # An invalid response does not prevent a valid one in the next round.
        third = inquiry(retry(result, {name: ALICE}))
        assert (third.ask(NAME), third.ask(ROOTS), third.round) == (ALICE, FILES, 2)


@pytest.mark.requirement("ELIC-23")
@pytest.mark.parametrize("action", ["decline", "cancel"])
def test_ask_returns_decline_and_cancel(action: Any) -> None:
    first = inquiry()
    key = asked_key(first, NAME)
    second = inquiry(retry(first.input_required_result(NOW), {key: t.ElicitResult(action=action)}))
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
def test_ask_undecodable_response_raises(question: Any, answer: str, ok: bool) -> None:
    """The response comes from the client unchecked: a wrong one is -32602, unknown members pass."""
    first = inquiry()
    key = asked_key(first, question)
    state = encode(first.input_required_result(NOW).request_state)
    request = received(
        b'{"name":"t","arguments":%b,"inputResponses":{"%b":%b},"requestState":%b}'
        % (encode(PARAMS["tools/call"]["arguments"]), key.encode(), answer.encode(), state)
    )
    second = inquiry(request)
    if ok:
        assert type(second.ask(question)) is type(ANSWER_TO[type(question)])
        return
    with pytest.raises(
        McpError, match=f"inputResponses.{key} is no answer to {question.method}"
    ) as caught:
        second.ask(question)
    assert caught.value.code == -32602


def test_ask_accepts_unrequested_response() -> None:
    # The conformance suite does so, and the response is as valid as any.
    key = asked_key(inquiry(), NAME)
    run = inquiry(received(inputResponses={key: decoded(ALICE), "more": 1}))
    assert run.ask(NAME) == ALICE
    assert asked_key(run, ROOTS)
    again = inquiry(retry(run.input_required_result(NOW), {}))
    assert again.responses.keys() == {key}  # kept, now that it was asked for
    assert again.ask(NAME) == ALICE


def test_responses_stay_in_state_through_all_rounds() -> None:
    """The server keeps nothing between rounds, and a client can't replace an earlier response."""
    questions = [t.ElicitRequest(replace(NAME.params, message=f"Question {n}")) for n in range(5)]
    answers = [replace(ALICE, content={"name": f"Answer {n}"}) for n in range(5)]
    request = received()
    for n in range(5):
        run = inquiry(request)
        assert run.round == n
        assert [run.ask(question) for question in questions[:n]] == answers[:n]
        key = asked_key(run, questions[n])
        result = run.input_required_result(NOW)
        assert result.input_requests == {key: questions[n]}
        # The first response stays: no later one and no unknown key gets into the state.
        late = {old: replace(ALICE, content={"name": "changed"}) for old in run.responses}
        request = retry(result, {**late, "junk": ALICE, key: answers[n]})
    run = inquiry(request)
    assert [run.ask(question) for question in questions] == answers
    assert not run.input_required


def test_response_not_reached_by_run_is_kept() -> None:
    first = inquiry()
    name, roots = asked_key(first, NAME), asked_key(first, ROOTS)
    second = inquiry(retry(first.input_required_result(NOW), {name: ALICE, roots: FILES}))
    assert second.ask(NAME) == ALICE
    asked_key(second, MODEL)  # the task that would ask for the roots was cancelled
    third = inquiry(retry(second.input_required_result(NOW), {}))
    assert third.ask(ROOTS) == FILES


@pytest.mark.requirement("SAMP-6")
@pytest.mark.parametrize(
    ("wish", "context", "sent"),
    [
        (None, None, None),
        ("none", None, "none"),
        ("thisServer", None, None),
        ("allServers", {}, "allServers"),
    ],
)
def test_include_context_is_sent_only_if_declared(
    wish: Any, context: Any, sent: str | None
) -> None:
    """A client without the capability could reject the whole request, so the wish is dropped."""
    question = t.CreateMessageRequest(replace(MODEL.params, include_context=wish))
    peer = client(capabilities=offers(sampling=t.SamplingCapability(context=context)))
    run = inquiry(received(peer=peer))
    key = asked_key(run, question)
    assert (
        decoded(run.input_required_result(NOW))["inputRequests"][key]["params"].get(
            "includeContext"
        )
        == sent
    )
    params: Any = to_request(question, replace(peer, dialect=DIALECTS[D]), bytes)[1]
    assert params.include_context == sent
    # Earlier revisions have no capability for it, and need none.
    params = to_request(question, replace(peer, dialect=DIALECTS[C]), bytes)[1]
    assert params.include_context == wish


def test_input_request_drops_members_of_other_revisions() -> None:
    question = t.ElicitRequest(replace(PAGE.params, elicitation_id="i", task=t.TaskMetadata(ttl=1)))
    run = inquiry()
    key = asked_key(run, question)
    assert decoded(run.input_required_result(NOW))["inputRequests"][key]["params"].keys() == {
        "message",
        "mode",
        "url",
    }


# -- requestState --------------------------------------------------------------------------------


def sealed(**options: Any) -> str:
    run = inquiry(**options)
    asked_key(run, NAME)
    return run.input_required_result(NOW).request_state or ""


@pytest.mark.requirement("MRTR-13", "MRTR-14")
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, None),
        ({"now": NOW + 599}, None),
        ({"now": NOW + 600}, "expired"),
        ({"principal": "bob"}, "another principal"),
        (
            {"request": {"method": "prompts/get", "params": PARAMS["prompts/get"]}},
            "not prompts/get",
        ),
        (
            {"request": {"params": {"name": "u", "arguments": PARAMS["tools/call"]["arguments"]}}},
            "other params",
        ),
        ({"request": {"params": {"name": "t"}}}, "other params"),
        ({"request": {"params": {"name": "t", "arguments": {}}}}, "other params"),
        (
            {"request": {"params": {"name": "t", "arguments": {"b": 1, "a": [2, {"d": 3}]}}}},
            "other params",
        ),
        (
            {
                "request": {
                    "params": {"name": "t", "arguments": {"b": 1.0, "a": [2, {"d": 3, "c": 4}]}}
                }
            },
            "other params",
        ),
        (
            {
                "request": {
                    "params": {"name": "t", "arguments": {"a": [2, {"c": 4, "d": 3}], "b": 1}}
                }
            },
            None,
        ),
        ({"request": {"_meta": {"progressToken": 7}}}, None),
    ],
)
def test_state_is_bound_to_request(options: dict[str, Any], words: str | None) -> None:
    options = {"principal": "", **options}
    options["request"] = received(**options.get("request", {}), requestState=sealed())
    if words is None:
        assert inquiry(**options).round == 1
    else:
        with pytest.raises(InvalidRequestState, match=words):
            inquiry(**options)


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
        # Arguments that are not JSON are compared byte by byte.
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
def test_state_compares_arguments_as_values(
    method: str, one: bytes, other: bytes, same: bool
) -> None:
    first = inquiry(received(one, method))
    asked_key(first, NAME)
    state = encode(first.input_required_result(NOW).request_state)
    second = received(other[:-1] + b',"requestState":%b}' % state, method)
    if same:
        assert inquiry(second).round == 1
    else:
        with pytest.raises(InvalidRequestState, match="other params"):
            inquiry(second)


@pytest.mark.requirement("MRTR-13")
@given(st.text() | st.text(st.sampled_from("1k.=-_Aa \n")))
def test_state_made_up_by_client_is_rejected(state: str) -> None:
    request = received()
    request.params = replace(request.params, request_state=state)
    with pytest.raises(InvalidRequestState):
        inquiry(request)


@pytest.mark.parametrize("content", [b"1", b"[]", b'["1",{},[],null]', b'[1,{"a":1},[2],null]'])
def test_state_with_foreign_content_is_rejected(content: bytes) -> None:
    run = inquiry()
    state = RING.seal(content, run._binding(), NOW)
    with pytest.raises(InvalidRequestState, match="its content was not written by this server"):
        inquiry(received(requestState=state))


@pytest.mark.parametrize("version", [D, E])
def test_rounds_over_limit_raise(version: str) -> None:
    """A handler that asks without end must not loop: sessions have the same limit as retries."""

    def once_more(run: ServerRoundTrips) -> RequestReceived | None:
        returned = t.InputRequiredResult(request_state="s")
        if version == E:
            return retry(run.input_required_result(NOW, returned), {})
        assert run.nested_requests(returned, bytes) == {}
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


def test_rounds_default_limit_is_ten() -> None:
    run = inquiry()
    for _ in range(10):
        run = inquiry(retry(run.input_required_result(NOW), {}))
    with pytest.raises(McpError, match="after 10 rounds"):
        run.input_required_result(NOW)


def test_responses_over_state_limit_raise() -> None:
    ring = KeyRing({"k": b"k" * 32}, max_length=1000)
    first = ServerRoundTrips(received(), ring, principal="", now=NOW)
    key = asked_key(first, NAME)
    request = retry(
        first.input_required_result(NOW), {key: replace(ALICE, content={"name": "A" * 1000})}
    )
    second = ServerRoundTrips(request, ring, principal="", now=NOW)
    second.ask(NAME)
    asked_key(second, ROOTS)
    with pytest.raises(McpError, match="the answers so far are too long") as caught:
        second.input_required_result(NOW)
    assert caught.value.code == -32602


# -- Returned input requests ---------------------------------------------------------------------


def test_returned_result_keeps_handler_state() -> None:
    """The handler's own state travels inside the signed one and comes back unchanged."""
    run = inquiry()
    assert (run.state, run.responses) == (None, {})
    returned = t.InputRequiredResult(
        input_requests={"step 1": NAME, "roots": ROOTS}, request_state='{"at": "ü"}', meta={"a": 1}
    )
    result = run.input_required_result(NOW, returned)
    assert result.input_requests == returned.input_requests
    assert (result.meta, result.result_type) == ({"a": 1}, "input_required")
    assert result.request_state != returned.request_state
    assert returned.result_type is None  # the handler's object is not modified

    run = inquiry(retry(result, {"step 1": ALICE, "other": 5}))
    assert run.state == '{"at": "ü"}'
    assert run.responses.keys() == {"step 1", "other"}
    assert run.response("step 1", t.ElicitResult) == ALICE
    assert run.response("roots", t.ListRootsResult) is None
    with pytest.raises(
        McpError, match=r"inputResponses\.other is no answer to sampling/createMessage"
    ):
        run.response("other", t.CreateMessageResult)

    # Without a state of its own: earlier responses stay, but not those that it requests again.
    result = run.input_required_result(NOW, t.InputRequiredResult(input_requests={"step 2": NAME}))
    run = inquiry(retry(result, {"step 2": ALICE}))
    assert run.state is None
    assert run.responses.keys() == {"step 1", "step 2", "other"}
    result = run.input_required_result(NOW, t.InputRequiredResult(input_requests={"step 1": NAME}))
    run = inquiry(retry(result, {}))
    assert run.responses.keys() == {"step 2", "other"}


def test_ask_wins_over_returned_result() -> None:
    run = inquiry()
    key = asked_key(run, NAME)
    result = run.input_required_result(
        NOW, t.InputRequiredResult(input_requests={"k": ROOTS}, request_state="s")
    )
    assert result.input_requests == {key: NAME}


def test_ask_and_returned_result_share_request() -> None:
    run = inquiry()
    result = run.input_required_result(
        NOW, t.InputRequiredResult(input_requests={"k": ROOTS}, request_state="s")
    )
    run = inquiry(retry(result, {"k": FILES}))
    key = asked_key(run, NAME)
    run = inquiry(retry(run.input_required_result(NOW), {key: ALICE}))
    assert (run.state, run.response("k", t.ListRootsResult), run.ask(NAME)) == ("s", FILES, ALICE)


@pytest.mark.requirement("MRTR-3", "MRTR-5")
@pytest.mark.parametrize(
    ("returned", "error", "words"),
    [
        (t.InputRequiredResult(), LocalProtocolError, "inputRequests, requestState or both"),
        (
            t.InputRequiredResult(input_requests={}),
            LocalProtocolError,
            "inputRequests, requestState or both",
        ),
        (
            t.InputRequiredResult(input_requests={"k": page("file:///x")}),
            LocalProtocolError,
            "no http or https URL",
        ),
        (t.InputRequiredResult(input_requests={"k": NAME, "r": ROOTS}), McpError, '"roots":{}'),
    ],
)
@pytest.mark.parametrize("version", [D, E])
def test_returned_result_invalid_raises(
    returned: Any, error: type[Exception], words: str, version: str
) -> None:
    peer = client(version, offers(elicitation=ELICITS(url={}, form={})))
    run = inquiry(received(peer=peer))
    evaluate = run.input_required_result if version == E else run.nested_requests
    with pytest.raises(error, match=words):
        evaluate(*((NOW, returned) if version == E else (returned, bytes)))


@pytest.mark.requirement("MRTR-3")
def test_deferred_request_keeps_responses() -> None:
    """A round without questions asks for a retry only, and earlier responses survive it."""
    assert decoded(inquiry().input_required_result(NOW)).keys() == {"resultType", "requestState"}
    first = inquiry()
    key = asked_key(first, NAME)
    busy = inquiry(retry(first.input_required_result(NOW), {key: ALICE}))
    result = busy.input_required_result(NOW)
    assert result.input_requests is None
    later = inquiry(retry(result, {}))
    assert later.ask(NAME) == ALICE
    assert later.round == 2
    # The same with a returned result; an empty map means no input requests.
    result = later.input_required_result(
        NOW, t.InputRequiredResult(input_requests={}, request_state="s")
    )
    assert decoded(result).keys() == {"resultType", "requestState"}
    assert inquiry(retry(result, {})).state == "s"


# -- Stateful peers ------------------------------------------------------------------------------


TITLED = form(
    a=CHOICES, b={"type": "boolean", "default": True}, c={"type": "integer", "default": 1}
)


@pytest.mark.requirement("ELIC-4", "ELIC-5", "ELIC-7", "ELIC-8", "ELIC-13", "SAMP-4", "ROOT-2")
@pytest.mark.parametrize(
    ("version", "question", "sent"),
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
            {
                "messages": [{"role": "user", "content": {"type": "text", "text": "x"}}],
                "maxTokens": 1,
            },
        ),
        (
            D,
            dialogue([TEXT]),
            {
                "messages": [{"role": "user", "content": [{"type": "text", "text": "x"}]}],
                "maxTokens": 1,
            },
        ),
        (A, dialogue([TEXT, TEXT]), "a message has exactly one block"),
        (D, page("nonsense"), "no http or https URL"),
    ],
)
def test_as_request_encodes_for_each_revision(version: str, question: Any, sent: Any) -> None:
    dialect = DIALECTS[version]
    if isinstance(sent, str):
        with pytest.raises(LocalProtocolError, match=sent):
            dialect.encode(to_request(question, client(version), lambda n: b"\x07" * n)[1])
    else:
        method, params = to_request(question, client(version), lambda n: b"\x07" * n)
        assert method == question.method
        assert json.loads(dialect.encode(params)) == sent


@pytest.mark.requirement("ELIC-3", "SAMP-5")
@pytest.mark.parametrize(
    ("peer", "question", "missing"),
    [
        (client(D, offers(elicitation=ELICITS())), PAGE, {"elicitation": {"url": {}}}),
        (
            client(D, offers(sampling=t.SamplingCapability())),
            WITH_TOOLS,
            {"sampling": {"tools": {}}},
        ),
        # A capability that the revision does not have does not count.
        (client(C), PAGE, {"elicitation": {"url": {}}}),
        (client(C), WITH_TOOLS, {"sampling": {"tools": {}}}),
        (client(B), NAME, {"elicitation": {}}),
    ],
)
def test_as_request_without_capability_raises(peer: Peer, question: Any, missing: Any) -> None:
    with pytest.raises(McpError) as caught:
        to_request(question, peer, bytes)
    assert (caught.value.code, caught.value.data) == (-32601, {"requiredCapabilities": missing})


def test_keep_stateful_response_is_found_in_next_run() -> None:
    run = inquiry(received(peer=client(D)))
    key, answer = run.look_up(NAME)
    assert answer is None
    run.store_response(key, ALICE)
    assert run.look_up(NAME) == (key[:-1] + "2", None)  # the second occurrence is another one
    run.resume(t.InputRequiredResult(request_state="s"), {})
    assert run.look_up(NAME) == (key, ALICE)
    assert not run.input_required


def test_resumed_run_may_ask_another_question_under_the_same_key() -> None:
    run = inquiry(received(peer=client(D)))
    run.look_up(NAME, "k")
    run.resume(t.InputRequiredResult(request_state="s"), {})
    assert run.look_up(ROOTS, "k") == ("k", None)


@pytest.mark.parametrize("version", [D, E])
def test_computed_value_is_found_in_later_runs(version: str) -> None:
    """No client can choose it: a response under its key is another thing."""
    run = inquiry(received(peer=client(version), inputResponses={"k": 2}))
    assert run.computed("k") is None
    assert run.store_computed("k", b'{"a":1}') == run.computed("k") == Raw(b'{"a":1}')
    returned = t.InputRequiredResult(request_state="s")
    if version == D:
        run.resume(returned, {})
    else:
        result = run.input_required_result(NOW, returned)
        run = inquiry(retry(result, {"k": ALICE}))
        assert run.responses.keys() == {"k"}
    assert run.computed("k") == Raw(b'{"a":1}')
    assert run.computed("other") is None


def test_ask_custom_check_decides_validity() -> None:
    run = inquiry()
    key = asked_key(run, NAME)
    again = retry(run.input_required_result(NOW), {key: ALICE})
    assert inquiry(again).ask(NAME) == ALICE
    assert inquiry(again).look_up(NAME, None, lambda question, answer: None) == (key, ALICE)
    with pytest.raises(NeedInput):
        inquiry(again).ask(NAME, None, lambda question, answer: "not she")


@pytest.mark.parametrize("version", [C, D])
def test_nested_requests_stand_for_returned_result(version: str) -> None:
    """In a session each input request is a request of its own; the handler sees no difference."""
    run = inquiry(received(peer=client(version)))
    returned = t.InputRequiredResult(input_requests={"a": NAME, "b": ROOTS}, request_state="s")
    nested = run.nested_requests(returned, bytes)
    assert [(key, method) for key, (method, _) in nested.items()] == [
        ("a", "elicitation/create"),
        ("b", "roots/list"),
    ]
    run.resume(returned, {"a": ALICE, "b": FILES})
    assert (run.state, run.round) == ("s", 1)
    assert run.response("a", t.ElicitResult) == ALICE
    assert run.response("b", t.ListRootsResult) == FILES
    again = t.InputRequiredResult(input_requests={"c": MODEL})
    run.nested_requests(again, bytes)
    run.resume(again, {"c": SAID})
    assert (run.state, run.round, list(run.responses)) == (None, 2, ["a", "b", "c"])


# -- One round of a client -----------------------------------------------------------------------


def rounds(
    params: Any = None, capabilities: t.ClientCapabilities = EVERYTHING, limit: int = MAX_ROUNDS
) -> ClientRoundTrips:
    return ClientRoundTrips(
        "tools/call", params or {"name": "t"}, SERVER, capabilities, rounds=limit
    )


ORIGINALS: list[Any] = [
    {"name": "t", "arguments": {"a": 1}, "_meta": {"x": 1}},
    t.CallToolParams(name="t", arguments=Raw(b'{"a":1}')),
]


@pytest.mark.requirement("MRTR-6", "MRTR-7", "MRTR-8", "MRTR-9")
@pytest.mark.parametrize("original", ORIGINALS, ids=["mapping", "struct"])
@pytest.mark.parametrize("state", ["", ' \x00 é\u2028 anything " \n', None])
def test_retry_has_responses_and_unchanged_state(original: Any, state: str | None) -> None:
    """The state is opaque and must come back as it was; the caller's params stay untouched."""
    before = json.loads(encode(original))
    call = rounds(original)
    questions: Any = {"n": NAME, "m": MODEL, "r": ROOTS}
    assert call.begin_round(questions, state) == questions
    assert call.params is original  # unchanged until all are answered
    dressed = {"meta": {"a": 1}, "result_type": "complete"}
    call.set_responses(
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
    assert repr(call) == "<ClientRoundTrips of tools/call, 1 so far, 3 questions>"

    # The next round has nothing of this one.
    call.begin_round({"n": NAME}, None)
    call.set_responses({"n": t.ElicitResult(action="decline")})
    assert json.loads(encode(call.params)) == before | {
        "inputResponses": {"n": {"action": "decline"}}
    }
    call.begin_round(None, "next")
    call.set_responses({})
    assert json.loads(encode(call.params)) == before | {"requestState": "next"}


def test_retry_of_request_without_params() -> None:
    call = ClientRoundTrips("tools/call", None, SERVER, EVERYTHING)
    assert call.pause == 0.0  # before the first round
    call.begin_round(None, "s")
    call.set_responses({})
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
def test_retry_with_missing_or_invalid_response_raises(answers: Any, words: str) -> None:
    call = rounds()
    call.begin_round({"n": NAME}, "s")
    with pytest.raises(LocalProtocolError, match=words):
        call.set_responses(answers)
    assert call.params == {"name": "t"}


@pytest.mark.requirement("MRTR-5")
@pytest.mark.parametrize(
    ("question", "words"),
    [
        (PAGE, "did not declare"),
        (MODEL, "did not declare"),
        (form(a={"type": "object"}), "flat object"),
    ],
)
def test_round_with_invalid_input_request_raises(question: Any, words: str) -> None:
    call = rounds(capabilities=offers(elicitation=ELICITS()))
    with pytest.raises(RemoteProtocolError, match=words):
        call.begin_round({"ok": NAME, "bad": question}, "s")


@pytest.mark.parametrize("limit", [0, 1, 3])
def test_client_rounds_over_limit_raise(limit: int) -> None:
    call = rounds(limit=limit)
    for _ in range(limit):
        call.begin_round({"n": NAME}, "s")
        call.set_responses({"n": ALICE})
    with pytest.raises(
        RemoteProtocolError, match=f"tools/call: the server still asks after {limit} rounds"
    ):
        call.begin_round(None, "s")


def test_deferred_retry_delay_grows() -> None:
    call = rounds()
    pauses = []
    for questions in (None, {}, None, {"n": NAME}, None):
        call.begin_round(questions, "s")
        call.set_responses({"n": ALICE})
        pauses.append(call.pause)
    assert pauses == [0.1, 0.2, 0.4, 0.0, 0.1]
    assert [retry_delay(retry) for retry in (0, 1, 5, 6, 10_000)] == [0.1, 0.2, 3.2, 5.0, 5.0]


# -- Both sides together -------------------------------------------------------------------------


class RoundTripPair:
    """A server that runs `handler`, and one call of a client. Each round has a new server."""

    def __init__(self, handler: Handler, **options: Any) -> None:
        self._handler = handler
        self.answer: Callable[[t.InputRequest], Any] = lambda question: ANSWER_TO[type(question)]
        self._ids = count(1)
        self._how = options
        self.rounds: list[list[str]] = []  # the messages of the input requests of each round
        self.tries: list[Any] = []

    def serve(self, data: bytes) -> Any:
        """Do what a runtime does: run the handler, then respond. Takes and returns JSON."""
        row = ROWS["tools/call"]
        request = RequestReceived(next(self._ids), row, row.read_params(data), client(), data)
        try:
            run = inquiry(request, **self._how)
        except InvalidRequestState as bad:
            return {"error": bad.PUBLIC_MESSAGE}
        value: Any = None
        try:
            value = self._handler(run)
        except NeedInput:
            pass
        except BaseException as exc:  # noqa: BLE001 - as a runtime does
            if not run.input_required:
                return {"error": str(single(exc))}
        try:
            if run.input_required or isinstance(value, t.InputRequiredResult):
                value = run.input_required_result(
                    NOW, value if isinstance(value, t.InputRequiredResult) else None
                )
        except McpError as exc:
            return {"error": str(exc)}
        return json.loads(DIALECTS[E].encode(value))

    def call(self) -> Any:
        """Do what a client does: retry until there is a result."""
        call = ClientRoundTrips("tools/call", ORIGINALS[0], SERVER, EVERYTHING)
        while True:
            self.tries.append(json.loads(encode(call.params)))
            reply = self.serve(encode(call.params))
            if reply.get("resultType") != "input_required":
                return reply.get("error") or reply["content"][0]["text"]
            result = reader(t.InputRequiredResult)(encode(reply))
            questions = call.begin_round(result.input_requests, result.request_state)
            self.rounds.append([_words(question) for question in questions.values()])
            call.set_responses({key: self.answer(question) for key, question in questions.items()})


def _words(question: t.InputRequest) -> str:
    return question.params.message if isinstance(question, t.ElicitRequest) else question.method


def text_result(text: str) -> t.CallToolResult:
    return t.CallToolResult(content=[t.TextContent(text)])


def question(message: str) -> t.ElicitRequest:
    return t.ElicitRequest(replace(NAME.params, message=message))


def one_by_one(run: ServerRoundTrips) -> Any:
    who = run.ask(question("who")).content
    words = run.ask(MODEL).content
    roots = run.ask(ROOTS).roots
    assert who is not None
    assert isinstance(words, t.TextContent)
    return text_result(f"{who['name']} {words.text} {roots[0].uri}")


def the_same_twice(run: ServerRoundTrips) -> Any:
    return text_result("".join(run.ask(question("more?")).action for _ in range(2)))


def side_by_side(run: ServerRoundTrips) -> Any:
    """Ask as concurrent tasks do: their exceptions arrive as a group."""
    found, raised = [], []
    for message in ("a", "b", "a"):
        try:
            found.append(run.ask(question(message)).action)
        except NeedInput as need:
            raised.append(need)
    if raised:
        raise BaseExceptionGroup("tasks", raised)
    return text_result("".join(found))


def with_a_bare_except(run: ServerRoundTrips) -> Any:
    try:
        return text_result(run.ask(question("q")).action)
    except:  # noqa: E722
        return text_result("never mind")


def with_an_except(run: ServerRoundTrips) -> Any:
    try:
        return text_result(run.ask(question("q")).action)
    except Exception:  # noqa: BLE001 - as careless authors do
        return text_result("never mind")


def with_another_error(run: ServerRoundTrips) -> Any:
    try:
        return text_result(run.ask(question("q")).action)
    except BaseException as exc:
        raise RuntimeError("could not ask") from exc


def by_hand(run: ServerRoundTrips) -> Any:
    if run.state is None:
        return t.InputRequiredResult(input_requests={"1": question("first")}, request_state="1")
    if run.state == "1":
        assert run.response("1", t.ElicitResult) is not None
        return t.InputRequiredResult(request_state="2")
    if run.state == "2":
        return t.InputRequiredResult(input_requests={"2": question("second")}, request_state="3")
    return text_result(f"{run.state} {sorted(run.responses)}")


def in_both_ways(run: ServerRoundTrips) -> Any:
    run.ask(question("by asking"))
    if "k" not in run.responses:
        return t.InputRequiredResult(input_requests={"k": question("by hand")})
    return text_result(run.ask(question("by asking again")).action)


def without_a_client_for_it(run: ServerRoundTrips) -> Any:
    try:
        require_capabilities([NAME], client(capabilities=NOTHING))
    except McpError:
        return text_result("did without")


def failing(run: ServerRoundTrips) -> Any:
    run.ask(question("q"))
    raise RuntimeError("broken")


@pytest.mark.requirement("MRTR-7", "MRTR-12", "MRTR-18")
@pytest.mark.parametrize(
    ("handler", "asked_key", "outcome"),
    [
        (
            one_by_one,
            [["who"], ["sampling/createMessage"], ["roots/list"]],
            "Alice hi file:///home",
        ),
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
def test_whole_call_reaches_outcome(
    handler: Handler, asked_key: list[list[str]], outcome: str
) -> None:
    link = RoundTripPair(handler)
    assert link.call() == outcome
    assert link.rounds == asked_key
    first, *more = link.tries
    assert first == ORIGINALS[0]
    for again in more:
        assert {key: again[key] for key in first} == first
    states = [again["requestState"] for again in more]
    assert len(set(states)) == len(states)


def test_whole_call_endless_rounds_fail() -> None:
    link = RoundTripPair(lambda run: run.ask(question(f"try {run.round}")), rounds=4)
    assert link.call() == "tools/call still needs input after 4 rounds (-32603)"
    assert link.rounds == [["try 0"], ["try 1"], ["try 2"], ["try 3"]]


@fewer_examples(5)
@given(st.lists(st.lists(st.sampled_from("abc"), min_size=1, max_size=5), max_size=4), st.data())
def test_whole_call_tasks_ask_in_any_order(stages: list[list[str]], data: st.DataObject) -> None:
    """Stages run in sequence; the tasks of each ask concurrently, in random order."""

    def handler(run: ServerRoundTrips) -> Any:
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
        return text_result("done")

    link = RoundTripPair(handler)
    link.answer = lambda question: replace(ALICE, content={"name": f"to {_words(question)}"})
    assert link.call() == "done"
    assert [sorted(asked_key) for asked_key in link.rounds] == [sorted(stage) for stage in stages]


def test_whole_call_with_nested_requests() -> None:
    """The same handler for a stateful client: nested requests instead of rounds."""
    run = inquiry(received(peer=client(D)))
    asked_for = []
    value = by_hand(run)
    while isinstance(value, t.InputRequiredResult):
        nested = run.nested_requests(value, bytes)
        asked_for.append([method for method, _ in nested.values()])
        answers = {}
        for key, (method, params) in nested.items():
            there = input_request_of(method, params)
            check_input_request(there, EVERYTHING)
            answers[key] = check_response(there, ANSWER_TO[type(there)])
        run.resume(value, answers)
        value = by_hand(run)
    assert asked_for == [["elicitation/create"], [], ["elicitation/create"]]
    assert value == text_result("3 ['1', '2']")


@pytest.mark.requirement("MRTR-13")
def test_whole_call_altered_state_is_rejected() -> None:
    link = RoundTripPair(one_by_one)
    reply = link.serve(encode(ORIGINALS[0]))
    params = ORIGINALS[0] | {
        "requestState": reply["requestState"] + "-TAMPERED",
        "inputResponses": {},
    }
    assert link.serve(encode(params)) == {"error": InvalidRequestState.PUBLIC_MESSAGE}
