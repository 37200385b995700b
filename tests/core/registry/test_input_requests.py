"""Requests for input: the same handlers in every revision, with a scripted client."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from mcp_core import LocalProtocolError, McpError
from mcp_core import types as t
from mcp_core.registry import AcceptedElicitation, Context, Form, Server, UrlElicitationRequired
from mcp_core.registry._input_requests import InputCollector, meta_of
from tests.harness.forms import Seats
from tests.harness.jsonrpc import (
    STATEFUL,
    VERSIONS,
    A,
    C,
    D,
    E,
    error,
    result,
    text_of,
)
from tests.harness.messages.scripted_client import NOW, OFFERS, ScriptedClient

if TYPE_CHECKING:
    from mcp_core import RequestReceived

every_revision = pytest.mark.parametrize("version", VERSIONS)
with_forms = pytest.mark.parametrize("version", [C, D, E])


SEATS = Form(Seats)
TWO = {"action": "accept", "content": {"count": 2}}


def build() -> Server:
    server = Server("s")

    @server.tool
    async def book(context: Context) -> str:
        """Ask for seats."""
        answer = await context.elicit("How many?", Seats)
        return str(answer.data) if isinstance(answer, AcceptedElicitation) else answer.action

    @server.tool
    def by_hand(context: Context) -> str | t.InputRequiredResult:
        """Return a request for seats."""
        answer = context.input_response("seats", SEATS)
        if answer is None:
            return t.InputRequiredResult(
                input_requests={"seats": SEATS.question("How many?")}, request_state="mine"
            )
        assert context.request_state == "mine"
        return str(answer.data) if isinstance(answer, AcceptedElicitation) else answer.action

    @server.tool
    def later(context: Context) -> str | t.InputRequiredResult:
        """Make the client repeat the request, twice."""
        state = context.request_state or ""
        return state if len(state) == 2 else t.InputRequiredResult(request_state=state + "x")

    @server.tool
    async def both(context: Context) -> str | t.InputRequiredResult:
        """Elicit seats, and return an input request."""
        requests = await context.elicit("How many?", Seats)
        if context.input_response("roots", t.ListRootsResult) is None:
            return t.InputRequiredResult(input_requests={"roots": t.ListRootsRequest()})
        again = await context.elicit("How many?", Seats)
        return f"{requests.action} {again.action}"

    @server.tool
    async def careful(context: Context) -> str:
        """Do without roots if the client has none."""
        try:
            return str(await context.roots())
        except McpError as exc:
            return f"without: {exc}"

    @server.tool
    def several(context: Context) -> str | t.InputRequiredResult:
        """Return two input requests at once."""
        seats, roots = (
            context.input_response("seats", SEATS),
            context.input_response("roots", t.ListRootsResult),
        )
        if seats is None or roots is None:
            return t.InputRequiredResult(
                input_requests={"seats": SEATS.question("How many?"), "roots": t.ListRootsRequest()}
            )
        return f"{seats.action} {roots.roots}"

    @server.tool
    async def page(context: Context) -> str:
        """Elicit a visit to a page."""
        answer = await context.elicit_url(
            "Please log in.", "https://example.com", elicitation_id="visit-1"
        )
        return answer.action

    @server.tool
    async def visit() -> str:
        """Require a visit to a page."""
        raise UrlElicitationRequired("Please log in.", "https://example.com/login", "visit-1")

    @server.tool
    def nowhere() -> str:
        """Require a visit to an invalid URL."""
        raise UrlElicitationRequired("Please log in.", "nowhere")

    return server


def stage(version: str, offers: Any = OFFERS, **options: Any) -> ScriptedClient:
    return ScriptedClient(build(), version, offers, **options)


# -- Waiting for the response ----------------------------------------------------------------------


@with_forms
@pytest.mark.parametrize("tool", ["book", "by_hand"])
@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (TWO, "Seats(count=2, where='aisle')"),
        ({"action": "decline"}, "decline"),
        ({"action": "cancel"}, "cancel"),
    ],
)
@pytest.mark.requirement("MRTR-1")
def test_elicit_returns_the_action_and_content(
    version: str, tool: str, answer: Any, text: str
) -> None:
    harness = stage(version)
    assert text_of(harness.whole_call(tool, answer)) == text
    assert harness.service.idle


def test_elicit_stateful_client_waits_for_the_response() -> None:
    harness = stage(D)
    (question,) = harness.calls("book")
    assert question["params"] == {"message": "How many?", "requestedSchema": SEATS.schema}
    ((job, _),) = harness.running
    (under_way,) = job.input_collector.active_requests
    assert repr(under_way) == "<SingleRequest for tools/call, 1 asked>"
    assert repr(job.input_collector).startswith("<InputCollector for tools/call: <ServerRoundTrips")
    harness.receive(result("another", {}))
    assert harness.sent_messages() == []
    assert text_of(harness.answers(question, TWO)[0]).startswith("Seats(")
    assert job.input_collector.active_requests == []


def test_input_collector_without_input_draws_no_key() -> None:
    harness = stage(E)
    asking = InputCollector(harness.service, None)  # type: ignore[arg-type]
    assert not asking.unanswered
    assert not harness.server.has_keys


@pytest.mark.parametrize(
    ("answer", "expected_error"),
    [
        (
            result,
            {
                "code": -32603,
                "message": (
                    "the answer to elicitation/create does not fit: content.count is missing"
                ),
            },
        ),
        (error, {"code": -1, "message": "the client refused elicitation/create: not today"}),
    ],
)
@pytest.mark.parametrize("tool", ["book", "by_hand"])
def test_nested_request_error_or_invalid_result_raises(
    answer: Any, expected_error: Any, tool: str
) -> None:
    harness = stage(D)
    (question,) = harness.calls(tool)
    if answer is error:
        harness.receive(error(question["id"], -1, "not today"))
        assert harness.sent_messages()[0]["error"] == expected_error
    elif tool == "book":
        harness.receive(result(question["id"], {"action": "accept"}))
        assert harness.sent_messages()[0]["error"] == expected_error
    else:  # a handler that returns input requests checks the responses itself
        (again,) = harness.answers(question, {"action": "accept"})
        assert again["method"] == "elicitation/create"
    assert harness.runtime.reports == []


def test_nested_request_undecodable_result_is_an_internal_error() -> None:
    harness = stage(D)
    (question,) = harness.calls("book")
    (answer,) = harness.answers(question, {"action": "perhaps"})
    assert answer["error"]["code"] == -32603
    assert "the result of elicitation/create is invalid" in answer["error"]["message"]


@every_revision
@pytest.mark.requirement("MRTR-5")
def test_input_request_undeclared_capability_raises(version: str) -> None:
    harness = stage(version, {})
    assert 'without: this needs a client that declares {"roots":{}}' in text_of(
        harness.whole_call("careful")
    )
    for tool in "book", "by_hand":
        (answer,) = harness.calls(tool)
        assert answer["error"]["data"] == {"requiredCapabilities": {"elicitation": {}}}
        assert answer["error"]["code"] == (-32021 if version == E else -32601)
    assert harness.runtime.reports == []


@pytest.mark.parametrize("version", STATEFUL)
def test_nested_request_carries_the_trace_context(version: str) -> None:
    harness = stage(version)
    trace = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}
    (question,) = harness.calls("careful", _meta={**trace, "other": 1})
    assert question["params"] == {"_meta": trace}


def test_meta_of_undecodable_meta_raises() -> None:
    harness = stage(D)
    harness.asks(1, "tools/call", name="careful")
    ((job, _),) = harness.running
    ask: RequestReceived = job.request
    assert meta_of(ask) == {}
    ask.raw = b'{"_meta":{"a":"\xff"}}'
    with pytest.raises(McpError, match="_meta cannot be read"):
        meta_of(ask)


# -- Cancellation and closing ----------------------------------------------------------------------


def test_nested_request_is_cancelled_with_its_request() -> None:
    """The client cancels the call; the server withdraws its request and ignores the response."""
    harness = stage(D)
    (question,) = harness.calls("book")
    ((job, steps),) = harness.running
    stopped: list[None] = []
    job.stop = lambda: stopped.append(None)
    (cancellation,) = harness.cancels()
    assert (cancellation["method"], cancellation["params"]["requestId"]) == (
        "notifications/cancelled",
        question["id"],
    )
    assert stopped == [None]
    assert harness.running == []  # shielded from the cancellation, and ended all the same
    assert harness.answers(question, TWO) == []
    assert harness.service.idle
    assert steps.gi_frame is None


def test_elicit_after_the_response_raises() -> None:
    harness = stage(D)
    harness.asks(1, "tools/call", name="book")
    assert harness.sent_messages()
    ((job, steps),) = harness.running
    job.done(t.CallToolResult(content=[]))  # a background task still waits
    cancel, answer = harness.sent_messages()
    assert (cancel["method"], answer["id"]) == ("notifications/cancelled", 1)
    with pytest.raises(LocalProtocolError, match="the request is over"):
        steps.send(None)
    harness.running.clear()


def test_elicit_cancelled_by_the_handler_cancels_the_nested_request() -> None:
    harness = stage(D)
    (question,) = harness.calls("book")
    ((job, steps),) = harness.running
    with pytest.raises(ZeroDivisionError):
        steps.throw(ZeroDivisionError())  # for example a timeout of the handler itself
    (cancel,) = harness.sent_messages()
    assert cancel["params"] == {
        "requestId": question["id"],
        "reason": "the answer is not needed any more",
    }
    job.failed(ZeroDivisionError())
    harness.running.clear()


def test_elicit_connection_closes_first() -> None:
    harness = stage(D)
    harness.calls("book")
    harness.conn.receive_data(b"", 0.0)
    harness.run_jobs()
    (answer,) = harness.sent_messages()  # the client has closed only its own direction
    assert answer["error"] == {
        "code": -32603,
        "message": "the connection closed while the client was asked for input",
    }
    assert harness.runtime.reports == []
    assert harness.service.idle


def test_elicit_during_shutdown_raises() -> None:
    harness = stage(D)
    harness.asks(1, "tools/call", name="both")
    (question,) = harness.sent_messages()
    harness.conn.shutdown()
    (answer,) = harness.answers(question, TWO)  # a response to an earlier request is still accepted
    assert answer["error"] == {"code": -32000, "message": "the server is being shut down"}
    assert harness.runtime.reports == []


# -- Returned `InputRequiredResult` ----------------------------------------------------------------


@pytest.mark.requirement("MRTR-3")
def test_returned_state_without_input_requests_makes_the_client_repeat() -> None:
    harness = stage(E)
    (first,) = harness.calls("later")
    assert first["result"].keys() == {"resultType", "requestState", "_meta"}
    second = harness.again("later", first["result"], {})
    assert text_of(harness.again("later", second["result"], {})) == "xx"


@pytest.mark.parametrize("version", STATEFUL)
def test_returned_state_stateful_client_runs_the_handler_after_a_pause(version: str) -> None:
    harness = stage(version)
    harness.asks(1, "tools/call", name="later")
    harness.run_jobs()
    harness.run_jobs()
    (answer,) = harness.sent_messages()
    assert text_of(answer) == "xx"
    assert harness.runtime.slept == [0.1, 0.2]


@with_forms
def test_elicit_and_returned_input_requests_are_each_sent_once(version: str) -> None:
    """The handler elicits the same text twice, which counts as two input requests in each run."""
    harness = stage(version)
    answers = [TWO, {"roots": []}, {"action": "decline"}]
    assert text_of(harness.whole_call("both", *answers)) == "accept decline"


def test_returned_input_requests_are_sent_together() -> None:
    harness = stage(D)
    seats, roots = harness.calls("several")
    assert (seats["method"], roots["method"]) == ("elicitation/create", "roots/list")
    assert harness.answers(roots, {"roots": []}) == []
    (answer,) = harness.answers(seats, TWO)
    assert text_of(answer) == "accept []"


def test_returned_input_requests_one_error_cancels_the_others() -> None:
    harness = stage(D)
    seats, roots = harness.calls("several")
    harness.receive(error(roots["id"], -32603, "no roots today"))
    cancel, answer = harness.sent_messages()
    assert cancel["params"]["requestId"] == seats["id"]
    assert answer["error"]["message"] == "the client refused roots/list: no roots today"


@every_revision
def test_returned_input_requests_fail_after_ten_rounds(version: str) -> None:
    harness = stage(version)

    @harness.server.tool
    def endless() -> t.InputRequiredResult:
        """Request input without end."""
        return t.InputRequiredResult(input_requests={"roots": t.ListRootsRequest()})

    message = ScriptedClient(harness.server, version).whole_call("endless", *[{"roots": []}] * 10)
    assert message["error"] == {
        "code": -32603,
        "message": "tools/call still needs input after 10 rounds",
    }


@every_revision
def test_input_request_in_a_custom_method_raises(version: str) -> None:
    """The client sees an internal error; only the author's log says what is allowed."""
    harness = stage(version)

    @harness.server.method("acme/ask")
    async def ask(context: Context) -> None:
        await context.elicit("How many?", Seats)

    @harness.server.method("acme/by_hand")
    def by_hand() -> t.InputRequiredResult:
        return t.InputRequiredResult(request_state="s")

    other = ScriptedClient(harness.server, version)
    other.asks(1, "acme/ask")
    other.asks(2, "acme/by_hand")
    assert [message["error"]["code"] for message in other.sent_messages()] == [-32603, -32603]
    assert [str(exc) for exc in other.runtime.reports] == [
        f"acme/{name} cannot ask for input: only tools/call, prompts/get and resources/read can"
        for name in ("ask", "by_hand")
    ]


# -- URL mode elicitation --------------------------------------------------------------------------


@pytest.mark.requirement("ELIC-16", "ERR-3")
def test_url_elicitation_required_is_error_32042_in_2025_11_25() -> None:
    harness = stage(D)
    (answer,) = harness.calls("visit")
    page = {
        "message": "Please log in.",
        "mode": "url",
        "url": "https://example.com/login",
        "elicitationId": "visit-1",
    }
    error = {"code": -32042, "message": "Please log in.", "data": {"elicitations": [page]}}
    assert answer["error"] == error
    assert harness.runtime.reports == []


@pytest.mark.requirement("ELIC-17", "ELIC-23")
@pytest.mark.parametrize(
    ("action", "text"),
    [
        # The user agreed to open the page, and has not finished there.
        ("accept", "Please log in. Call again once that is done at https://example.com/login"),
        ("decline", "Please log in. The user declined to visit https://example.com/login"),
    ],
)
def test_url_elicitation_required_is_an_input_request_in_2026_07_28(action: str, text: str) -> None:
    harness = stage(E)
    (answer,) = harness.calls("visit")
    page = {"message": "Please log in.", "mode": "url", "url": "https://example.com/login"}
    ((key, question),) = answer["result"]["inputRequests"].items()
    assert (key, question) == (
        f"visit {page['url']}",
        {"method": "elicitation/create", "params": page},
    )
    again = harness.again("visit", answer["result"], {key: {"action": action}})
    assert (text_of(again), again["result"]["isError"]) == (text, True)
    assert harness.runtime.reports == []


@pytest.mark.parametrize(("version", "code"), [(A, -32601), (C, -32601), (D, -32601), (E, -32021)])
def test_url_elicitation_required_undeclared_capability_is_an_error(
    version: str, code: int
) -> None:
    harness = stage(version, {"elicitation": {}})
    (answer,) = harness.calls("visit")
    assert answer["error"]["code"] == code
    assert answer["error"]["data"] == {"requiredCapabilities": {"elicitation": {"url": {}}}}


@pytest.mark.parametrize("version", [D, E])
def test_url_elicitation_required_invalid_url_is_an_internal_error(version: str) -> None:
    harness = stage(version)
    (answer,) = harness.calls("nowhere")
    assert text_of(answer) == "The tool failed with an internal error (reference R)."
    assert [str(exc) for exc in harness.runtime.reports] == [
        "elicitation/create: url is no http or https URL: it is neither https nor http"
    ]


@pytest.mark.requirement("ELIC-13", "ELIC-14")
@pytest.mark.parametrize("version", [D, E])
def test_elicit_url_sends_the_url_and_the_id(version: str) -> None:
    harness = stage(version)
    (requests,) = harness.calls("page")
    if version == D:
        assert requests["params"]["elicitationId"] == "visit-1"
    else:
        ((_, question),) = requests["result"]["inputRequests"].items()
        assert question["params"].keys() == {"mode", "message", "url"}
    assert text_of(stage(version).whole_call("page", {"action": "accept"})) == "accept"


def test_elicit_in_a_worker_thread_raises() -> None:
    harness = stage(D)
    harness.runtime.thread = True
    (answer,) = harness.calls("page")
    assert text_of(answer) == "The tool failed with an internal error (reference R)."
    (reported,) = harness.runtime.reports
    assert "a plain def cannot await an answer" in str(reported)


# -- requestState ----------------------------------------------------------------------------------


def required(harness: ScriptedClient) -> Any:
    (answer,) = harness.calls("book")
    return answer["result"]


@pytest.mark.requirement("MRTR-13", "MRTR-14")
@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda state: "made up", "it was not issued by this server"),
        (lambda state: state[:-1] + ("A" if state[-1] != "A" else "B"), "it was altered"),
        (
            lambda state: "1.other." + state.split(".", 2)[2],
            "it names a key that is not in the ring, 'other'",
        ),
    ],
)
def test_request_state_forged_is_rejected(spoil: Any, words: str) -> None:
    harness = stage(E)
    state = spoil(required(harness)["requestState"])
    (answer,) = harness.calls("book", requestState=state)
    message = "requestState is not valid for this request; make the request again without it"
    assert answer["error"] == {"code": -32602, "message": message}
    (warning,) = harness.runtime.warnings
    assert words in warning


def test_request_state_before_any_was_issued_is_rejected() -> None:
    harness = stage(E)
    (answer,) = harness.calls("book", requestState="made up")
    assert answer["error"]["code"] == -32602
    assert harness.runtime.warnings == [
        "tools/call: requestState refused: this process has issued none"
    ]
    assert not harness.server.has_keys


@pytest.mark.requirement("MRTR-14")
def test_request_state_expires_after_ten_minutes() -> None:
    harness = stage(E)
    result = required(harness)
    harness.runtime.time = NOW + 600
    assert harness.again("book", result, {})["error"]["code"] == -32602
    harness.runtime.time = NOW + 599
    assert "result" in harness.again("book", result, {})


@pytest.mark.requirement("MRTR-14")
def test_request_state_of_another_principal_is_rejected() -> None:
    server = build()
    alice, bob = (ScriptedClient(server, E, principal=name) for name in ("alice", "bob"))
    result = required(alice)
    assert bob.again("book", result, {})["error"]["code"] == -32602
    assert "result" in ScriptedClient(server, E, principal="alice").again("book", result, {})


@pytest.mark.requirement("MRTR-18")
def test_request_state_of_another_process_with_the_same_keys_is_accepted() -> None:
    one = Server("s", state_keys={"new": b"n" * 32, "old": b"o" * 32})
    other = Server("s", state_keys={"old": b"o" * 32, "new": b"n" * 32})
    for server in one, other:

        @server.tool
        async def roots(context: Context) -> str:
            """List the roots."""
            return str(await context.roots())

    (answer,) = ScriptedClient(one, E).calls("roots")
    ((key, _),) = answer["result"]["inputRequests"].items()
    assert answer["result"]["requestState"].startswith("1.new.")
    last = ScriptedClient(other, E).again("roots", answer["result"], {key: {"roots": []}})
    assert text_of(last) == "[]"


@pytest.mark.parametrize("version", STATEFUL)
def test_request_state_stateful_client_ignores_it(version: str) -> None:
    harness = stage(version)
    (question,) = harness.calls("careful", requestState="made up", inputResponses={})
    assert question["method"] == "roots/list"
