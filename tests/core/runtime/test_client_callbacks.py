"""CallbackJob what a server asks: what callbacks give and what it becomes, without tasks: a test runs each answer when it likes."""

from __future__ import annotations

import types
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

import pytest
from msgspec import to_builtins
from msgspec.structs import replace

from mcp_core import LocalProtocolError, McpError, RequestReceived, Role
from mcp_core import types as t
from mcp_core._caller_options import callback_capabilities
from mcp_core.runtime import CallbackJob, Waiter, answer_form
from mcp_core.runtime._client_callbacks import ClientCallbacks, InputWait, ServerInitiatedRequests
from tests.core.helpers import STATEFUL, A, B, D, Message, Talk, client_config, only, opened, request
from tests.core.questions import (
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

if TYPE_CHECKING:
    from collections.abc import Awaitable, Generator

    from mcp_core import FormSchema


def outcome(awaitable: Awaitable[Any]) -> Any:
    """What comes of it, which waits for nothing."""
    steps = awaitable.__await__()
    with pytest.raises(StopIteration) as end:
        next(steps)
    return end.value.value


def give(value: Any, *, later: bool = False) -> Any:
    """A callback that gives `value`, or raises it; `later` by something to await."""

    def said() -> Any:
        if isinstance(value, BaseException):
            raise value
        return value

    async def later_said() -> Any:
        return said()

    return lambda *_: later_said() if later else said()


def asked(question: t.InputRequest, value: Any, *, later: bool = False) -> Any:
    """What becomes of what a callback gives."""
    callback = give(value, later=later)
    respondent = ClientCallbacks({"on_elicit": callback, "on_sample": callback, "on_roots": callback})
    return outcome(respondent.respond(question))


# -- What callbacks give -------------------------------------------------------------------------------------------------------

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
def test_what_a_callback_gives(question: t.InputRequest, given: Any, answer: Any, later: bool) -> None:
    assert asked(question, given, later=later) == answer


def test_what_a_callback_is_given() -> None:
    heard: list[Any] = []

    def hear(*args: Any) -> Any:
        heard.append(args)
        return None if args else []

    respondent = ClientCallbacks({"on_elicit": hear, "on_sample": hear, "on_roots": hear})
    outcome(respondent.respond(NAME))
    with pytest.raises(McpError):
        outcome(respondent.respond(MODEL))
    outcome(respondent.respond(ROOTS))
    assert heard == [(NAME.params,), (MODEL.params,), ()]


def test_a_list_of_roots_is_looked_at_each_time() -> None:
    places = ["file:///a"]
    respondent = ClientCallbacks({"on_roots": places})
    assert outcome(respondent.respond(ROOTS)) == t.ListRootsResult(roots=[t.Root("file:///a")])
    places.append("file:///b")
    assert len(outcome(respondent.respond(ROOTS)).roots) == 2


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
def test_what_is_no_answer(
    question: t.InputRequest, given: Any, error: type[Exception], words: str, later: bool
) -> None:
    with pytest.raises(error, match=words):
        asked(question, given, later=later)


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
def test_what_stands_in_a_retry(question: t.InputRequest, given: Any, answer: Any) -> None:
    callback = give(given, later=True)
    respondent = ClientCallbacks({"on_elicit": callback, "on_sample": callback, "on_roots": callback})
    answering = respondent.respond_in_retry(question)
    if isinstance(answer, type):
        with pytest.raises(answer):
            outcome(answering)
    else:
        assert outcome(answering) == answer


# -- Forms ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("later", [False, True])
@pytest.mark.parametrize(
    ("given", "answer"),
    [
        ({"name": "Al"}, {"name": "Al", "size": "M", "news": False, "tags": []}),
        (None, "cancel"),
        (DECLINE, "decline"),
    ],
)
def test_a_function_that_fills_in_forms(given: Any, answer: Any, later: bool) -> None:
    heard: list[tuple[str, FormSchema]] = []

    async def fill_later(message: str, form: FormSchema) -> Any:
        heard.append((message, form))
        return given

    def fill(message: str, form: FormSchema) -> Any:
        heard.append((message, form))
        return given

    respondent = ClientCallbacks({"on_elicit": answer_form(fill_later if later else fill)})
    found = outcome(respondent.respond(WITH_DEFAULTS))
    assert (found.action if isinstance(answer, str) else found.content) == answer
    [(message, asked_for)] = heard
    assert message == "m"
    assert list(asked_for.properties) == ["name", "size", "news", "tags"]
    assert asked_for.properties["size"] == t.StringSchema(enum=["S", "M"], default="M")


def test_what_must_be_filled_in_is_said() -> None:
    required: list[Any] = []
    callback = answer_form(lambda _, form: required.append(form.required))
    callback(NAME.params)
    callback(WITH_DEFAULTS.params)
    assert required == [["name"], None]


def test_a_function_that_fills_in_forms_declines_pages() -> None:
    assert answer_form(give(AssertionError()))(PAGE.params) == DECLINE


# -- A task ------------------------------------------------------------------------------------------------------------------


class Told:
    """Keeps what comes of an `CallbackJob`."""

    def __init__(self, value: Any = 1) -> None:
        self.ends: list[tuple[Any, BaseException | None]] = []
        self.stopped = 0
        self.answering = CallbackJob(give(value, later=True), lambda *end: self.ends.append(end))
        self.answering.stop = self.stop

    def stop(self) -> None:
        self.stopped += 1


def test_what_is_said_first_counts() -> None:
    told, error = Told(), KeyError()
    assert repr(told.answering) == "<CallbackJob, under way>"
    assert outcome(told.answering.run()) == 1
    told.answering.done(1)
    told.answering.failed(error)
    told.answering.dropped()
    told.answering.abandon()
    assert (told.ends, told.stopped) == ([(1, None)], 0)
    assert repr(told.answering) == "<CallbackJob, over>"


@pytest.mark.parametrize("wrap", [lambda exc: exc, lambda exc: ExceptionGroup("", [exc])])
def test_a_failure_in_a_group_is_told_without_it(wrap: Any) -> None:
    told, error = Told(), KeyError()
    told.answering.failed(wrap(error))
    assert told.ends == [(None, error)]


@pytest.mark.parametrize(
    "raised", [KeyboardInterrupt(), SystemExit(), BaseExceptionGroup("", [KeyboardInterrupt(), KeyError()])]
)
def test_what_is_no_exception_is_for_whoever_runs_the_task(raised: BaseException) -> None:
    told = Told()
    with pytest.raises(type(raised)) as caught:
        told.answering.failed(raised)
    assert caught.value is raised
    assert told.ends == []
    told.answering.dropped()
    ((_, error),) = told.ends
    assert isinstance(error, McpError)
    assert error.code == -32603


def test_what_is_abandoned_is_stopped_and_tells_nothing() -> None:
    told = Told()
    told.answering.abandon()
    told.answering.abandon()
    told.answering.done(1)
    told.answering.dropped()
    assert (told.ends, told.stopped) == ([], 1)
    never_run = CallbackJob(give(1), give(AssertionError()))
    never_run.abandon()


# -- Requests of a server ------------------------------------------------------------------------------------------------------

CONTENT = {"role": "user", "content": {"type": "text", "text": "hello"}}
ELICIT = request("s", "elicitation/create", {"message": "m", "requestedSchema": NAME_FORM})
SAMPLE = request("s", "sampling/createMessage", {"messages": [CONTENT], "maxTokens": 10})
LIST_ROOTS = request("s", "roots/list")


class Asked:
    """A client of a stateful server, which the test plays. `held` is for how many answers the server is known to wait."""

    def __init__(self, version: str = D, value: Any = None, **options: Any) -> None:
        callback = give(value, later=True)
        told: Any = {"on_elicit": callback, "on_sample": callback, "on_roots": callback, **options}
        self.respondent = ClientCallbacks(told)
        config = client_config(version, capabilities=callback_capabilities(told))
        self.talk: Talk = opened(Role.CLIENT, version, config)
        self.work: list[CallbackJob] = []
        self.held: list[int] = []
        self.reports: list[tuple[str, BaseException]] = []
        self.questions = ServerInitiatedRequests(
            self.talk.conn,
            self.respondent,
            self.work.append,
            self.held.append,
            lambda *report: self.reports.append(report),
        )

    def hears(self, *messages: Message) -> None:
        for event in self.talk.hears(*messages):
            if isinstance(event, RequestReceived):
                self.questions.handle_request(event)

    def works(self) -> None:
        """Do what a runtime would."""
        for answering in self.work:
            try:
                answering.done(outcome(answering.run()))
            except Exception as exc:  # noqa: BLE001 - whatever it is
                answering.failed(exc)
            answering.dropped()
        self.work.clear()

    def answer(self, message: Message) -> Message:
        self.hears(message)
        self.works()
        return only(self.talk.says())


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
def test_a_request_is_answered(version: str, asks: Message, given: Any, answer: Message) -> None:
    asked = Asked(version, given)
    if asks is ELICIT and version in (A, B):
        assert asked.talk.refusal(asks)["error"]["code"] == -32601
        return
    asked.hears(asks)
    assert repr(asked.questions) == f"<ServerInitiatedRequests: 1 on {asked.talk.conn!r}>"
    assert (asked.talk.says(), asked.held) == ([], [1])
    asked.works()
    assert only(asked.talk.says()) == {"jsonrpc": "2.0", "id": "s", "result": answer}
    assert (asked.held, asked.reports, asked.talk.conn.in_flight) == ([1, -1], [], 0)


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
def test_a_refusal_is_the_answer(asks: Message, given: Any, error: Message) -> None:
    asked = Asked(D, given)
    assert asked.answer(asks) == {"jsonrpc": "2.0", "id": "s", "error": error}
    assert asked.reports == []


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
        (SAMPLE, UNSAYABLE, UnicodeEncodeError),
        (SAMPLE, McpError(7, "no", object()), TypeError),
    ],
)
def test_a_fault_is_told_to_the_log_and_not_to_the_server(
    asks: Message, given: Any, reported: type[Exception]
) -> None:
    asked = Asked(D, given)
    assert asked.answer(asks)["error"] == {"code": -32603, "message": "Internal error"}
    [(problem, error)] = asked.reports
    assert problem == f"{asks['method']} could not be answered"
    assert isinstance(error, reported)
    assert (asked.held, asked.talk.conn.in_flight) == ([1, -1], 0)


def test_an_answer_that_the_revision_cannot_say() -> None:
    use = t.ToolUseContent("1", "t", {})
    asked = Asked(A, replace(SAID, content=use))
    assert asked.answer(SAMPLE)["error"]["code"] == -32603
    assert isinstance(asked.reports[0][1], LocalProtocolError)


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
def test_what_may_not_be_asked(changes: Message, code: int, words: str) -> None:
    asks = ELICIT if {"mode", "requestedSchema"} & changes.keys() else SAMPLE
    asked = Asked(D, AssertionError())
    error = asked.answer(asks | {"params": asks["params"] | changes})["error"]
    assert error["code"] == code
    assert words in error["message"]
    assert (asked.work, asked.held, asked.reports, asked.talk.conn.in_flight) == ([], [], [], 0)


@pytest.mark.requirement("SAMP-7", "SAMP-11")
def test_tool_results_that_are_mixed_or_missing() -> None:
    asked = Asked(D, SAID, sampling=t.SamplingCapability(tools={}))
    gave, said = t.ToolResultContent("1", []), t.TextContent("x")
    use = t.ToolUseContent("1", "t", {})
    wrong = (dialogue(said, use, [gave, said]), dialogue(said, use), dialogue(said, use, said))
    for question in wrong:
        params = {"messages": to_builtins(question.params.messages), "maxTokens": 1}
        assert asked.answer(request("s", "sampling/createMessage", params))["error"]["code"] == -32602
    right = dialogue(said, use, gave)
    params = {"messages": to_builtins(right.params.messages), "maxTokens": 1, "tools": [to_builtins(TOOL)]}
    assert "result" in asked.answer(request("s", "sampling/createMessage", params))


def test_a_request_that_is_withdrawn() -> None:
    asked = Asked(D, {"name": "Alice"})
    asked.hears(ELICIT)
    (answering,) = asked.work
    stopped: list[str] = []
    answering.stop = lambda: stopped.append("s")
    asked.questions.cancel("t")
    asked.questions.cancel("s")
    assert stopped == ["s"]
    asked.talk.hears({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "s"}})
    answering.dropped()
    assert (asked.talk.says(), asked.held, asked.talk.conn.in_flight, asked.reports) == ([], [1, -1], 0, [])
    asked.questions.cancel("s")


def test_a_task_that_is_cancelled_by_somebody_else_leaves_no_request_without_an_answer() -> None:
    asked = Asked(D, {"name": "Alice"})
    asked.hears(ELICIT)
    asked.work[0].dropped()
    assert only(asked.talk.says())["error"] == {"code": -32603, "message": "the callback was cancelled"}


# -- A turn of ours --------------------------------------------------------------------------------------------------------------


class ByHand(Waiter[Any]):
    def wake(self) -> None:
        pass

    def rearm(self) -> None:
        pass


class Round:
    """A call which waits for some work of ours."""

    def __init__(self, **work: Any) -> None:
        self.run: list[CallbackJob] = []
        self.turn = InputWait(self.run.append, {key: give(value, later=True) for key, value in work.items()})
        self.stopped: list[int] = []
        self.waiter = ByHand(lambda *_: 1, lambda: 0.0, self.steps(), {})
        self.waiter.begin()
        for number, answering in enumerate(self.run):
            answering.stop = lambda number=number: self.stopped.append(number)  # type: ignore[misc]

    def steps(self) -> Generator[Any, Any, Any]:
        answers = yield self.turn
        return answers


def test_all_of_the_work_is_waited_for_in_whatever_order_it_ends() -> None:
    both = Round(a=1, b=2)
    assert (both.waiter.held, len(both.run), both.waiter.done) == (1, 2, False)
    both.run[1].done(2)
    assert repr(both.turn) == "<InputWait, 1 of 2 results>"
    both.run[0].done(1)
    assert both.waiter.result() == {"a": 1, "b": 2}
    assert (both.waiter.held, both.stopped) == (0, [])


def test_the_first_failure_is_the_end_and_stops_the_rest() -> None:
    both = Round(a=1, b=2, c=3)
    error = KeyError()
    both.run[0].done(1)
    both.run[1].failed(error)
    both.run[2].done(3)
    assert both.stopped == [2]
    with pytest.raises(KeyError) as caught:
        both.waiter.result()
    assert caught.value is error


def test_whoever_leaves_stops_all() -> None:
    both = Round(a=1, b=2)
    both.waiter.leave_turn()
    both.waiter.leave_turn()
    assert both.stopped == [0, 1]
    both.run[0].done(1)
    both.run[1].dropped()
    assert (both.waiter.done, both.waiter.held) == (False, 0)


def test_a_call_does_not_hang_on_a_task_that_somebody_else_cancelled() -> None:
    both = Round(a=1)
    both.run[0].dropped()
    with pytest.raises(McpError, match="was cancelled"):
        both.waiter.result()
