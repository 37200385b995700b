"""`ClientCallbacks`, `ServerInitiatedRequests` and `InputWait`, whose jobs the test runs."""

from __future__ import annotations

import types
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

import pytest
from msgspec import to_builtins
from msgspec.structs import replace

from mcp_core import Limits, LocalProtocolError, McpError, RequestReceived, Role, UnencodableValue
from mcp_core import types as t
from mcp_core.client._options import callback_capabilities
from mcp_core.drivers import PendingCall, answer_form
from mcp_core.runtime import CallbackJob
from mcp_core.runtime._client_callbacks import (
    ClientCallbacks,
    InputWait,
    RootsWait,
    ServerInitiatedRequests,
)
from mcp_core.runtime.client_tasks._hosted import HostedTasks
from tests.core.server_requests import (
    ALICE,
    FILES,
    MODEL,
    NAME,
    NAME_FORM,
    PAGE,
    ROOTS,
    SAID,
    TOOL,
    dialogue,
    form,
)
from tests.harness.jsonrpc import (
    STATEFUL,
    A,
    B,
    D,
    Message,
    client_config,
    request,
    single,
)
from tests.harness.stepping import result_of
from tests.harness.wire.connection import ConnectionHarness, opened

if TYPE_CHECKING:
    from collections.abc import Generator

    from mcp_core import FormSchema


def give(value: Any, *, later: bool = False) -> Any:
    """Make a callback that returns `value`, or raises it; with `later` it is awaited."""

    def answer() -> Any:
        if isinstance(value, BaseException):
            raise value
        return value

    async def awaited_answer() -> Any:
        return answer()

    return lambda *_: awaited_answer() if later else answer()


def response_of(question: t.InputRequest, value: Any, *, later: bool = False) -> Any:
    """Return the response of a callback that returns `value`."""
    callback = give(value, later=later)
    callbacks = ClientCallbacks(
        {"on_elicit": callback, "on_sample": callback, "on_roots": callback}
    )
    return result_of(callbacks.respond(question))


# -- Values of callbacks ---------------------------------------------------------------------------

ACCEPT, DECLINE = t.ElicitResult(action="accept"), t.ElicitResult(action="decline")
CANCEL = t.ElicitResult(action="cancel")
WITH_DEFAULTS = form(
    name={"type": "string"},
    size={"type": "string", "enum": ["S", "M"], "default": "M"},
    news={"type": "boolean", "default": False},
    tags={"type": "array", "items": {"enum": ["x", "y"]}, "default": []},
)
TWO_PLACES = t.ListRootsResult(roots=[t.Root("file:///a%20b"), t.Root("file:///c", name="C")])

ANSWERS: list[tuple[t.InputRequest, Any, Any]] = [
    (NAME, {"name": "Alice"}, ALICE),
    (NAME, ALICE, ALICE),
    (NAME, None, CANCEL),
    (NAME, DECLINE, DECLINE),
    (NAME, t.ElicitResult(action="decline", content={"name": "Alice"}), DECLINE),
    (WITH_DEFAULTS, {}, replace(ACCEPT, content={"size": "M", "news": False, "tags": []})),
    (
        WITH_DEFAULTS,
        types.MappingProxyType({"news": True, "name": "Al"}),
        replace(ACCEPT, content={"name": "Al", "size": "M", "news": True, "tags": []}),
    ),
    (WITH_DEFAULTS, replace(ACCEPT, content={"size": "S"}), replace(ACCEPT, content={"size": "S"})),
    (PAGE, {}, ACCEPT),
    (PAGE, {"what": "ever"}, ACCEPT),
    (PAGE, None, CANCEL),
    (MODEL, SAID, SAID),
    (ROOTS, FILES, FILES),
    (ROOTS, ["file:///home"], FILES),
    (ROOTS, [PurePosixPath("/a b"), t.Root("file:///c", name="C")], TWO_PLACES),
    (ROOTS, (), t.ListRootsResult(roots=[])),
]


@pytest.mark.requirement("ELIC-11")
@pytest.mark.parametrize("later", [False, True])
@pytest.mark.parametrize(("question", "given", "answer"), ANSWERS)
def test_callback_value_becomes_response(
    question: t.InputRequest, given: Any, answer: Any, later: bool
) -> None:
    assert response_of(question, given, later=later) == answer


def test_callback_gets_params() -> None:
    received: list[Any] = []

    def record(*args: Any) -> Any:
        received.append(args)
        return None if args else []

    callbacks = ClientCallbacks({"on_elicit": record, "on_sample": record, "on_roots": record})
    result_of(callbacks.respond(NAME))
    with pytest.raises(McpError):
        result_of(callbacks.respond(MODEL))
    result_of(callbacks.respond(ROOTS))
    assert received == [(NAME.params,), (MODEL.params,), ()]


def test_roots_list_is_read_at_each_request() -> None:
    places = ["file:///a"]
    callbacks = ClientCallbacks({"on_roots": places})
    assert result_of(callbacks.respond(ROOTS)) == t.ListRootsResult(roots=[t.Root("file:///a")])
    places.append("file:///b")
    second: Any = result_of(callbacks.respond(ROOTS))
    assert len(second.roots) == 2


@pytest.mark.requirement("ELIC-10", "ERR-4")
@pytest.mark.parametrize(
    ("question", "given", "error", "words"),
    [
        (NAME, {"name": "A"}, LocalProtocolError, "content.name is less than 2"),
        (NAME, {}, LocalProtocolError, "content.name is missing"),
        (NAME, "Alice", LocalProtocolError, "not answered with str"),
        (NAME, SAID, LocalProtocolError, "not answered with CreateMessageResult"),
        (MODEL, "hi", LocalProtocolError, "not answered with str"),
        (MODEL, None, McpError, r"the user rejected the request \(-1\)"),
        (ROOTS, ["http://x"], LocalProtocolError, "no file:// URI"),
        (ROOTS, None, TypeError, "not iterable"),
        (ROOTS, DECLINE, LocalProtocolError, "not answered with ElicitResult"),
        (NAME, McpError(7, "no"), McpError, "no"),
        (MODEL, KeyError("mine"), KeyError, "mine"),
    ],
)
@pytest.mark.parametrize("later", [False, True])
def test_callback_value_invalid_raises(
    question: t.InputRequest, given: Any, error: type[Exception], words: str, later: bool
) -> None:
    with pytest.raises(error, match=words):
        response_of(question, given, later=later)


@pytest.mark.requirement("MRTR-16", "SAMP-13")
@pytest.mark.parametrize(
    ("question", "given", "answer"),
    [
        (NAME, {"name": "Alice"}, ALICE),
        (NAME, McpError(-1, "no"), CANCEL),
        (NAME, ExceptionGroup("", [ExceptionGroup("", [McpError(-1, "no")])]), CANCEL),
        (PAGE, McpError(-1, "no"), CANCEL),
        (MODEL, McpError(-1, "no"), McpError),
        (MODEL, None, McpError),
        (ROOTS, McpError(-1, "no"), McpError),
        (NAME, KeyError("mine"), KeyError),
        (NAME, ExceptionGroup("", [McpError(-1, "no"), KeyError("mine")]), ExceptionGroup),
        (NAME, {}, LocalProtocolError),
    ],
)
def test_respond_in_retry_converts_refusal(
    question: t.InputRequest, given: Any, answer: Any
) -> None:
    callback = give(given, later=True)
    callbacks = ClientCallbacks(
        {"on_elicit": callback, "on_sample": callback, "on_roots": callback}
    )
    job = callbacks.respond_in_retry(question)
    if isinstance(answer, type):
        with pytest.raises(answer):
            result_of(job)
    else:
        assert result_of(job) == answer


# -- Forms -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("later", [False, True])
@pytest.mark.parametrize(
    ("given", "answer"),
    [
        ({"name": "Al"}, {"name": "Al", "size": "M", "news": False, "tags": []}),
        (None, "cancel"),
        (DECLINE, "decline"),
    ],
)
def test_answer_form_value_becomes_response(given: Any, answer: Any, later: bool) -> None:
    """A returned dict accepts the form with its defaults filled in; `None` cancels it."""
    received: list[tuple[str, FormSchema]] = []

    async def fill_later(message: str, form: FormSchema) -> Any:
        received.append((message, form))
        return given

    def fill(message: str, form: FormSchema) -> Any:
        received.append((message, form))
        return given

    callbacks = ClientCallbacks({"on_elicit": answer_form(fill_later if later else fill)})
    found: Any = result_of(callbacks.respond(WITH_DEFAULTS))
    assert (found.action if isinstance(answer, str) else found.content) == answer
    [(message, asked_for)] = received
    assert message == "m"
    assert list(asked_for.properties) == ["name", "size", "news", "tags"]
    assert asked_for.properties["size"] == t.StringSchema(enum=["S", "M"], default="M")


def test_answer_form_gets_message_and_form() -> None:
    required: list[Any] = []
    callback = answer_form(lambda _, form: required.append(form.required))
    callback(NAME.params)
    callback(WITH_DEFAULTS.params)
    assert required == [["name"], None]


def test_answer_form_declines_url() -> None:
    assert answer_form(give(AssertionError()))(PAGE.params) == DECLINE


# -- CallbackJob -----------------------------------------------------------------------------------


class KeptJob:
    """A `CallbackJob`, and its outcomes in `ends`."""

    def __init__(self, value: Any = 1) -> None:
        self.ends: list[tuple[Any, BaseException | None]] = []
        self.stopped = 0
        self.job = CallbackJob(give(value, later=True), lambda *end: self.ends.append(end))
        self.job.stop = self.stop

    def stop(self) -> None:
        self.stopped += 1


def test_callback_job_first_outcome_counts() -> None:
    kept, error = KeptJob(), KeyError()
    assert repr(kept.job) == "<CallbackJob, under way>"
    assert result_of(kept.job.run()) == 1
    kept.job.done(1)
    kept.job.failed(error)
    kept.job.dropped()
    kept.job.abandon()
    assert (kept.ends, kept.stopped) == ([(1, None)], 0)
    assert repr(kept.job) == "<CallbackJob, over>"


@pytest.mark.parametrize("wrap", [lambda exc: exc, lambda exc: ExceptionGroup("", [exc])])
def test_callback_job_group_of_one_is_unwrapped(wrap: Any) -> None:
    kept, error = KeptJob(), KeyError()
    kept.job.failed(wrap(error))
    assert kept.ends == [(None, error)]


@pytest.mark.parametrize(
    "raised",
    [KeyboardInterrupt(), SystemExit(), BaseExceptionGroup("", [KeyboardInterrupt(), KeyError()])],
)
def test_callback_job_base_exception_is_raised(raised: BaseException) -> None:
    kept = KeptJob()
    with pytest.raises(type(raised)) as caught:
        kept.job.failed(raised)
    assert caught.value is raised
    assert kept.ends == []
    kept.job.dropped()
    ((_, error),) = kept.ends
    assert isinstance(error, McpError)
    assert error.code == -32603


def test_callback_job_abandoned_is_stopped_without_outcome() -> None:
    kept = KeptJob()
    kept.job.abandon()
    kept.job.abandon()
    kept.job.done(1)
    kept.job.dropped()
    assert (kept.ends, kept.stopped) == ([], 1)
    never_run = CallbackJob(give(1), give(AssertionError()))
    never_run.abandon()


# -- ServerInitiatedRequests -----------------------------------------------------------------------

CONTENT = {"role": "user", "content": {"type": "text", "text": "hello"}}
ELICIT = request("s", "elicitation/create", {"message": "m", "requestedSchema": NAME_FORM})
SAMPLE = request("s", "sampling/createMessage", {"messages": [CONTENT], "maxTokens": 10})
LIST_ROOTS = request("s", "roots/list")


class CallbackHarness:
    """A client of a stateful server: the test. `held` lists the calls of `pause_timeouts`."""

    def __init__(
        self,
        version: str = D,
        value: Any = None,
        *,
        limits: Limits | None = None,
        tasks: t.TasksCapability | None = None,
        **options: Any,
    ) -> None:
        callback = give(value, later=True)
        given: Any = {"on_elicit": callback, "on_sample": callback, "on_roots": callback, **options}
        self.callbacks = ClientCallbacks(given)
        capabilities = replace(callback_capabilities(given), tasks=tasks)
        config = client_config(version, capabilities=capabilities, limits=limits)
        self.harness: ConnectionHarness = opened(Role.CLIENT, version, config)
        self.work: list[CallbackJob] = []
        self.pauses: list[int] = []
        self.reports: list[tuple[str, BaseException]] = []
        self.requests = ServerInitiatedRequests(
            self.harness.conn,
            self.callbacks,
            self.work.append,
            self.pauses.append,
            lambda *report: self.reports.append(report),
            HostedTasks(self.harness.conn, lambda: 1_800_000_000.0, bytes),
            {},
        )

    def receive_messages(self, *messages: Message) -> None:
        for event in self.harness.receive(*messages):
            if isinstance(event, RequestReceived):
                self.requests.handle_request(event)

    def works(self) -> None:
        """Run the jobs, as a driver does."""
        for job in self.work:
            try:
                job.done(result_of(job.run()))
            except Exception as exc:  # noqa: BLE001 - as a driver does
                job.failed(exc)
            job.dropped()
        self.work.clear()

    def answer(self, message: Message) -> Message:
        self.receive_messages(message)
        self.works()
        return single(self.harness.take_sent())


REQUESTS: list[tuple[Message, Any, Message]] = [
    (ELICIT, {"name": "Alice"}, {"action": "accept", "content": {"name": "Alice"}}),
    (ELICIT, None, {"action": "cancel"}),
    (
        SAMPLE,
        SAID,
        {"role": "assistant", "content": {"type": "text", "text": "hi"}, "model": "m"},
    ),
    (LIST_ROOTS, ["file:///home"], {"roots": [{"uri": "file:///home"}]}),
]


@pytest.mark.parametrize("version", STATEFUL)
@pytest.mark.parametrize(("asks", "given", "answer"), REQUESTS)
def test_server_request_gets_response(
    version: str, asks: Message, given: Any, answer: Message
) -> None:
    harness = CallbackHarness(version, given)
    if asks is ELICIT and version in (A, B):
        assert harness.harness.error_response_to(asks)["error"]["code"] == -32601
        return
    harness.receive_messages(asks)
    assert repr(harness.requests) == f"<ServerInitiatedRequests: 1 on {harness.harness.conn!r}>"
    assert (harness.harness.take_sent(), harness.pauses) == ([], [1])
    harness.works()
    assert single(harness.harness.take_sent()) == {"jsonrpc": "2.0", "id": "s", "result": answer}
    assert (harness.pauses, harness.reports, harness.harness.conn.in_flight) == ([1, -1], [], 0)


@pytest.mark.requirement("SAMP-12", "ROOT-5")
@pytest.mark.parametrize(
    ("asks", "given", "error"),
    [
        (SAMPLE, None, {"code": -1, "message": "the user rejected the request"}),
        (SAMPLE, McpError(-1, "User rejected"), {"code": -1, "message": "User rejected"}),
        (ELICIT, McpError(7, "no", {"why": 1}), {"code": 7, "message": "no", "data": {"why": 1}}),
        (LIST_ROOTS, McpError(-32603, "gone"), {"code": -32603, "message": "gone"}),
    ],
)
def test_server_request_refused_gets_error_of_callback(
    asks: Message, given: Any, error: Message
) -> None:
    harness = CallbackHarness(D, given)
    assert harness.answer(asks) == {"jsonrpc": "2.0", "id": "s", "error": error}
    assert harness.reports == []


UNSAYABLE = t.CreateMessageResult(role="assistant", content=t.TextContent("\ud800"), model="m")


@pytest.mark.requirement("ROOT-5")
@pytest.mark.parametrize(
    ("asks", "given", "reported"),
    [
        (LIST_ROOTS, KeyError("secret"), KeyError),
        (ELICIT, KeyError("secret"), KeyError),
        (ELICIT, {}, LocalProtocolError),
        (ELICIT, {"name": "Alice", "more": object()}, TypeError),
        (SAMPLE, "hi", LocalProtocolError),
        (SAMPLE, UNSAYABLE, UnencodableValue),
        (SAMPLE, McpError(7, "no", object()), TypeError),
    ],
)
def test_server_request_callback_failing_is_logged_as_internal_error(
    asks: Message, given: Any, reported: type[Exception]
) -> None:
    harness = CallbackHarness(D, given)
    assert harness.answer(asks)["error"] == {"code": -32603, "message": "Internal error"}
    [(problem, error)] = harness.reports
    assert problem == f"{asks['method']} could not be answered"
    assert isinstance(error, reported)
    assert (harness.pauses, harness.harness.conn.in_flight) == ([1, -1], 0)


def test_server_request_response_unknown_to_revision_is_internal_error() -> None:
    use = t.ToolUseContent("1", "t", {})
    harness = CallbackHarness(A, replace(SAID, content=use))
    assert harness.answer(SAMPLE)["error"]["code"] == -32603
    assert isinstance(harness.reports[0][1], LocalProtocolError)


@pytest.mark.requirement("SAMP-5", "SAMP-11", "ELIC-3", "ELIC-5")
@pytest.mark.parametrize(
    ("changes", "code", "words"),
    [
        ({"tools": [{"name": "t", "inputSchema": {}}]}, -32602, "did not declare"),
        ({"toolChoice": {"mode": "auto"}}, -32602, "did not declare"),
        ({"mode": "url", "url": "https://x/", "elicitationId": "1"}, -32602, "did not declare"),
        ({"requestedSchema": {"type": "array"}}, -32602, "no flat object"),
    ],
)
def test_server_request_undeclared_is_rejected(changes: Message, code: int, words: str) -> None:
    asks = ELICIT if {"mode", "requestedSchema"} & changes.keys() else SAMPLE
    harness = CallbackHarness(D, AssertionError())
    error = harness.answer(asks | {"params": asks["params"] | changes})["error"]
    assert error["code"] == code
    assert words in error["message"]
    assert (harness.work, harness.pauses, harness.reports, harness.harness.conn.in_flight) == (
        [],
        [],
        [],
        0,
    )


@pytest.mark.requirement("SAMP-7", "SAMP-11")
def test_sampling_request_with_unmatched_tool_results_is_rejected() -> None:
    """Models refuse such a conversation, so the client answers -32602 before its callback runs."""
    harness = CallbackHarness(D, SAID, sampling=t.SamplingCapability(tools={}))
    results, words = t.ToolResultContent("1", []), t.TextContent("x")
    use = t.ToolUseContent("1", "t", {})
    wrong = (
        dialogue(words, use, [results, words]),
        dialogue(words, use),
        dialogue(words, use, words),
    )
    for question in wrong:
        params = {"messages": to_builtins(question.params.messages), "maxTokens": 1}
        assert (
            harness.answer(request("s", "sampling/createMessage", params))["error"]["code"]
            == -32602
        )
    right = dialogue(words, use, results)
    params = {
        "messages": to_builtins(right.params.messages),
        "maxTokens": 1,
        "tools": [to_builtins(TOOL)],
    }
    assert "result" in harness.answer(request("s", "sampling/createMessage", params))


def test_server_requests_too_large_in_all_are_rejected_as_busy() -> None:
    """A user takes long to answer, while the server may send any number of large requests."""
    limit = 10_000
    client = CallbackHarness(value=SAID, limits=Limits(message=limit))
    text = {"role": "user", "content": {"type": "text", "text": "x" * (limit // 2)}}
    large = {"messages": [text], "maxTokens": 1}
    small = {"messages": [], "maxTokens": 1}

    def ask(id: int, params: Message) -> Message:
        return request(id, "sampling/createMessage", params)

    client.receive_messages(ask(1, large), ask(2, large), ask(3, small))
    assert len(client.work) == 2
    [rejected] = client.harness.take_sent()
    assert (rejected["id"], rejected["error"]["code"]) == (2, -32000)
    assert rejected["error"]["message"] == "too many large requests at once; ask again later"
    client.works()
    assert [sent["id"] for sent in client.harness.take_sent()] == [1, 3]
    assert client.requests._size == 0
    client.receive_messages(ask(4, large))
    assert len(client.work) == 1
    client.works()


def test_server_request_cancelled_stops_callback() -> None:
    """A cancelled request gets no response, and the paused timeouts run on."""
    harness = CallbackHarness(D, {"name": "Alice"})
    harness.receive_messages(ELICIT)
    (job,) = harness.work
    stopped: list[str] = []
    job.stop = lambda: stopped.append("s")
    harness.requests.cancel("t")
    harness.requests.cancel("s")
    assert stopped == ["s"]
    harness.harness.receive(
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "s"}}
    )
    job.dropped()
    assert (
        harness.harness.take_sent(),
        harness.pauses,
        harness.harness.conn.in_flight,
        harness.reports,
    ) == (
        [],
        [1, -1],
        0,
        [],
    )
    harness.requests.cancel("s")


def test_server_request_callback_cancelled_gets_error() -> None:
    harness = CallbackHarness(D, {"name": "Alice"})
    harness.receive_messages(ELICIT)
    harness.work[0].dropped()
    assert single(harness.harness.take_sent())["error"] == {
        "code": -32603,
        "message": "the callback was cancelled",
    }


# -- InputWait -------------------------------------------------------------------------------------


class UnwatchedCall(PendingCall[Any]):
    def wake(self) -> None:
        pass

    def deadline_changed(self) -> None:
        pass


class WaitingCall:
    """A call that waits for `work`."""

    def __init__(self, **work: Any) -> None:
        self.run: list[CallbackJob] = []
        self.turn = InputWait(
            self.run.append, {key: give(value, later=True) for key, value in work.items()}
        )
        self.stopped: list[int] = []
        self.waiter = UnwatchedCall(lambda *_: 1, lambda: 0.0, self.steps(), {})
        self.waiter.begin()
        for number, job in enumerate(self.run):
            job.stop = lambda number=number: self.stopped.append(number)  # type: ignore[misc]

    def steps(self) -> Generator[Any, Any, Any]:
        answers = yield self.turn
        return answers


def test_input_wait_collects_all_results() -> None:
    both = WaitingCall(a=1, b=2)
    assert (both.waiter.pause_count, len(both.run), both.waiter.done) == (1, 2, False)
    both.run[1].done(2)
    assert repr(both.turn) == "<InputWait, 1 of 2 results>"
    both.run[0].done(1)
    assert both.waiter.result() == {"a": 1, "b": 2}
    assert (both.waiter.pause_count, both.stopped) == (0, [])


def test_input_wait_first_failure_ends_call_and_stops_rest() -> None:
    both = WaitingCall(a=1, b=2, c=3)
    error = KeyError()
    both.run[0].done(1)
    both.run[1].failed(error)
    both.run[2].done(3)
    assert both.stopped == [2]
    with pytest.raises(KeyError) as caught:
        both.waiter.result()
    assert caught.value is error


def test_input_wait_ended_stops_all_jobs() -> None:
    both = WaitingCall(a=1, b=2)
    both.waiter.end_wait()
    both.waiter.end_wait()
    assert both.stopped == [0, 1]
    both.run[0].done(1)
    both.run[1].dropped()
    assert (both.waiter.done, both.waiter.pause_count) == (False, 0)


def test_input_wait_job_dropped_ends_call() -> None:
    both = WaitingCall(a=1)
    both.run[0].dropped()
    with pytest.raises(McpError, match="was cancelled"):
        both.waiter.result()


def test_call_that_has_stopped_waiting_for_the_roots_is_forgotten() -> None:
    """The server may request them much later, or never."""
    waits: list[Any] = []
    registered: list[Any] = []
    call: Any = object()
    wait = RootsWait(waits, registered.append)
    wait.begin(call)
    assert waits == registered == [call]
    wait.stop()
    assert waits == []
