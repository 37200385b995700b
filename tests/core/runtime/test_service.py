"""`Service` and `RequestJob`: events in, responses and jobs out, without a runtime."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
import pydantic
import pytest

from mcp_core import NEED_DATA, Connection, McpError, RequestCancelled, Role, ToolError
from mcp_core.registry import Context, ResourceNotFound, Server, UrlElicitationRequired
from mcp_core.runtime import RequestJob, Runtime, Service
from mcp_core.types import CallToolResult, InputRequiredResult, ListRootsRequest, ListRootsResult
from tests.harness.jsonrpc import (
    INITIALIZED,
    D,
    E,
    initialize,
    line,
    notification,
)
from tests.harness.messages.scripted_client import ScriptedClient

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_core import RequestReceived

T = TypeVar("T")

CALL = (
    b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"%s","_meta":{'
    b'"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}\n'
)
CANCEL = b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}\n'


class Quiet(Runtime):
    """A runtime that keeps its log entries, and calls functions in place of starting threads."""

    def __init__(self) -> None:
        self.reports: list[tuple[str, BaseException]] = []

    def report(self, request: RequestReceived, reference: str, exc: BaseException) -> None:
        self.reports.append((reference, exc))

    def reference(self) -> str:
        return "R1"

    async def in_thread(self, function: Callable[[], T]) -> T:
        return function()


def build() -> Server:
    server = Server("s")

    @server.tool
    def plain() -> str:
        """Give a text."""
        return "plain"

    @server.tool
    def who(context: Context) -> str:
        """Give the id of the request."""
        return f"{context.request_id} {context.lifespan}"

    @server.tool
    async def later(context: Context) -> str:
        """Give a text, in a task."""
        return f"later {context.request_id}"

    @server.tool(thread=True)
    def blocking() -> str:
        """Give a text, in a thread."""
        return "blocking"

    @server.tool
    def unspeakable() -> Any:
        """Give what JSON cannot say."""
        return {"what": object()}

    for error in (
        ValueError("secret"),
        SystemExit(1),
        KeyboardInterrupt(),
        RecursionError(),
        ToolError("a reason"),
        McpError(7, "mine"),
        McpError(7, "mine", object()),
        ResourceNotFound("gone"),
    ):

        def fail(error: BaseException = error) -> str:
            raise error

        has_data = isinstance(error, McpError) and error.data is not msgspec.UNSET
        name = f"{type(error).__name__}{'Data' if has_data else ''}"
        server.add_tool(
            functools.partial(fail, error),
            name=name,
            description="Fail.",
            input_schema={"type": "object"},
        )
    return server


class Conversation:
    """A connection, its service, and the log entries of the service."""

    def __init__(self, server: Server | None = None) -> None:
        self.server = server or build()
        self.conn = Connection(Role.SERVER, self.server.config())
        self.runtime = Quiet()
        self.reports = self.runtime.reports
        self.service = Service(self.server, self.conn, self.runtime, "the value")

    def feed(self, data: bytes) -> list[RequestJob]:
        self.conn.receive_data(data, 0.0)
        jobs = []
        while (event := self.conn.next_event()) is not NEED_DATA:
            job = self.service.handle_event(event)  # type: ignore[arg-type]
            if job is not None:
                assert isinstance(job, RequestJob)
                jobs.append(job)
        return jobs

    def call(self, name: str, id: int = 1) -> list[RequestJob]:
        return self.feed(CALL % (id, name.encode()))

    def sent(self) -> list[Any]:
        return [msgspec.json.decode(line) for line in self.conn.data_to_send().splitlines()]

    def text(self) -> tuple[str, bool]:
        (message,) = self.sent()
        result = message["result"]
        return result["content"][0]["text"], result.get("isError", False)


def run(awaitable: Any) -> Any:
    """Return the value of a coroutine that never waits."""
    try:
        next(awaitable.__await__())
    except StopIteration as stop:
        return stop.value
    raise AssertionError("it waits")


def test_plain_function_runs_without_job() -> None:
    harness = Conversation()
    assert harness.call("plain") == []
    assert harness.text() == ("plain", False)


@pytest.mark.parametrize("error", [KeyboardInterrupt, GeneratorExit, SystemExit])
def test_validator_that_is_interrupted_ends_the_program(error: type[BaseException]) -> None:
    """Ctrl-C may come at any time. `SystemExit` is the validator's own, and ends its own call."""

    class Picky(pydantic.BaseModel):
        word: str

        @pydantic.field_validator("word")
        @classmethod
        def _check(cls, word: str) -> str:
            raise error

    def use(picky: Picky) -> str:
        return picky.word

    server = Server("s")
    use.__annotations__["picky"] = Picky
    server.add_tool(use, description="Use.")
    harness = Conversation(server)
    call = (CALL % (1, b"use")).replace(b'"use"', b'"use","arguments":{"picky":{"word":"a"}}')
    if error is SystemExit:
        assert harness.feed(call) == []
        assert "Internal error (reference R1)" in str(harness.sent())
    else:
        with pytest.raises(error):
            harness.feed(call)


def test_context_parameter_is_filled_in() -> None:
    harness = Conversation()
    harness.call("who", 5)
    assert harness.text() == ("5 the value", False)


@pytest.mark.parametrize(
    ("tool", "contexts"), [("plain", 0), ("who", 1), ("later", 1), ("blocking", 0)]
)
def test_function_without_context_parameter_costs_no_context(
    tool: str, contexts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def make(collector: Any) -> Context:
        made.append(Context(collector))
        return made[-1]

    made: list[Context] = []
    monkeypatch.setattr("mcp_core.runtime._service.Context", make)
    for job in Conversation().call(tool):
        run(job.run())
    assert len(made) == contexts


def test_async_function_is_job() -> None:
    harness = Conversation()
    (job,) = harness.call("later", 3)
    assert repr(job) == "<RequestJob tools/call id=3>"
    assert repr(harness.service) == f"<Service of {harness.server!r}, 1 jobs>"
    job.done(run(job.run()))
    job.dropped()
    assert harness.service.idle
    assert harness.text() == ("later 3", False)


def test_thread_function_is_job() -> None:
    harness = Conversation()
    (job,) = harness.call("blocking")
    job.done(run(job.run()))
    assert harness.text() == ("blocking", False)


def test_job_cancelled_by_client_sends_nothing() -> None:
    harness = Conversation()
    (job,) = harness.call("later", 3)
    stopped: list[str] = []
    job.stop = lambda: stopped.append("stopped")
    assert harness.feed(CANCEL % 3) == []
    assert stopped == ["stopped"]
    job.dropped()
    assert harness.sent() == []
    assert harness.service.idle


def test_cancellation_after_result_is_ignored() -> None:
    harness = Conversation()
    (job,) = harness.call("later", 3)
    assert harness.feed(CANCEL % 3) == []  # no task runs it yet: stopping it does nothing
    job.done(CallToolResult(content=[]))
    assert harness.sent() == []
    assert harness.feed(CANCEL % 3) == []


@pytest.mark.requirement("RPC-35")
def test_job_stopped_by_server_sends_error() -> None:
    harness = Conversation()
    (job,) = harness.call("later")
    job.dropped()
    (message,) = harness.sent()
    assert message["error"] == {"code": -32603, "message": "the request was cancelled"}


@pytest.mark.parametrize(
    ("tool", "text"),
    [
        ("ValueError", "The tool failed with an internal error (reference R1)."),
        ("SystemExit", "The tool failed with an internal error (reference R1)."),
        ("KeyboardInterrupt", "The tool failed with an internal error (reference R1)."),
        ("RecursionError", "The tool failed with an internal error (reference R1)."),
        ("unspeakable", "The tool failed with an internal error (reference R1)."),
    ],
)
def test_handler_raising_is_logged_under_reference(tool: str, text: str) -> None:
    harness = Conversation()
    harness.call(tool)
    assert harness.text() == (text, True)
    assert [reference for reference, _ in harness.reports] == ["R1"]
    harness.call("plain", 2)
    assert harness.text() == ("plain", False)


def test_error_raised_for_peer_is_not_logged() -> None:
    harness = Conversation()
    harness.call("ToolError")
    assert harness.text() == ("a reason", True)
    harness.call("McpError", 2)
    (message,) = harness.sent()
    assert message["error"] == {"code": 7, "message": "mine"}
    assert harness.reports == []


def test_error_data_not_encodable_is_left_out() -> None:
    harness = Conversation()
    harness.call("McpErrorData")
    (message,) = harness.sent()
    assert message["error"] == {"code": 7, "message": "mine"}
    assert len(harness.reports) == 1


def test_job_failed_sends_tool_error() -> None:
    harness = Conversation()
    (job,) = harness.call("later")
    job.failed(ZeroDivisionError())
    assert harness.text() == ("The tool failed with an internal error (reference R1).", True)


def test_job_dropped_during_shutdown_is_busy() -> None:
    harness = Conversation()
    (job,) = harness.call("later")
    harness.conn.shutdown()
    job.dropped()
    (message,) = harness.sent()
    assert message["error"] == {"code": 429, "message": "the server is being shut down"}


def test_job_result_not_encodable_is_internal_error() -> None:
    harness = Conversation()
    (job,) = harness.call("later")
    job.done(object())
    (message,) = harness.sent()
    assert message["error"] == {"code": -32603, "message": "Internal error (reference R1)"}
    assert [type(exc) for _, exc in harness.reports] == [TypeError]


def test_exception_whose_str_raises_is_internal_error() -> None:
    class Mute(ToolError):
        def __str__(self) -> str:
            raise ZeroDivisionError

    harness = Conversation()
    (job,) = harness.call("later")
    job.failed(Mute())
    (message,) = harness.sent()
    assert message["error"] == {"code": -32603, "message": "Internal error (reference R1)"}
    assert [type(exc) for _, exc in harness.reports] == [ZeroDivisionError]


def test_each_notification_of_changed_roots_calls_the_hooks_again() -> None:
    server = Server("s")
    seen: list[object] = []
    server.on_roots_changed(seen.append)
    harness = Conversation(server)
    harness.feed(line(initialize(D)) + line(INITIALIZED))
    for number in range(1, 4):
        harness.conn.receive_data(line(notification("notifications/roots/list_changed")), 0.0)
        event: Any = harness.conn.next_event()
        job: Any = harness.service.handle_event(event)
        assert not harness.service.idle
        run(job.run())
        job.dropped()
        assert len(seen) == number
        assert harness.service.idle


def test_connection_closed_detaches_service_once(monkeypatch: pytest.MonkeyPatch) -> None:
    harness = Conversation()
    detached: list[object] = []
    monkeypatch.setattr(harness.server, "detach", detached.append)
    harness.conn.close()
    harness.feed(b"")
    assert detached == [harness.service]
    harness.service.close()
    assert detached == [harness.service]


def test_cancellation_of_unknown_request_is_ignored() -> None:
    assert Conversation().service.handle_event(RequestCancelled(9)) is None


def test_unknown_tool_is_invalid_params() -> None:
    harness = Conversation()
    harness.call("nobody")
    (message,) = harness.sent()
    assert message["error"] == {"code": -32602, "message": "Unknown tool: nobody"}


def test_registry_raising_is_internal_error(monkeypatch: pytest.MonkeyPatch) -> None:
    harness = Conversation()

    def broken(request: RequestReceived) -> Any:
        raise ZeroDivisionError

    monkeypatch.setattr(harness.server, "answer", broken)
    harness.call("plain")
    (message,) = harness.sent()
    assert message["error"] == {"code": -32603, "message": "Internal error (reference R1)"}


def test_runtime_with_report_only_numbers_references() -> None:
    class Bare(Runtime):
        def report(self, request: RequestReceived, reference: str, exc: BaseException) -> None:
            harness.reports.append((reference, exc))

    harness = Conversation()
    harness.service = Service(harness.server, harness.conn, Bare())
    harness.call("ValueError")
    assert harness.text() == ("The tool failed with an internal error (reference 1).", True)
    (job,) = harness.call("blocking", 2)
    with pytest.raises(TypeError, match="does not start threads") as caught:
        run(job.run())
    job.failed(caught.value)
    assert harness.text() == ("The tool failed with an internal error (reference 2).", True)
    assert [type(exc) for _, exc in harness.reports] == [ValueError, TypeError]


# -- Input (see also test_server_input_requests.py) ----------------------------------------------


def asking(*, middleware: Any = None) -> Server:
    server = Server("s")

    @server.tool
    async def stubborn(context: Context) -> str:
        """Ask, and take no answer for an answer."""
        try:
            await context.roots()
        except BaseException:  # noqa: BLE001 - as an author should not
            return "never mind"
        return "asked"

    @server.tool
    async def clumsy(context: Context) -> str:
        """Ask, and stumble over it."""
        try:
            await context.roots()
        finally:
            raise ZeroDivisionError

    @server.tool
    async def grouped(context: Context) -> str:
        """Ask in a task."""
        try:
            await context.roots()
        except BaseException as exc:  # noqa: BLE001 - as a nursery does
            raise BaseExceptionGroup("tasks", [exc]) from None
        return "asked"

    @server.prompt
    async def prompt_with_roots(context: Context) -> str:
        """Ask, in a prompt."""
        return str(len(await context.roots()))

    @server.resource("roots:all")
    async def read(context: Context) -> str:
        """Ask, in a resource."""
        return str(len(await context.roots()))

    if middleware is not None:
        server.middleware(middleware)
    return server


@pytest.mark.requirement("MRTR-2")
@pytest.mark.parametrize("tool", ["stubborn", "clumsy", "grouped"])
def test_input_request_wins_over_outcome_of_handler(tool: str) -> None:
    stage = ScriptedClient(asking(), E)
    (message,) = stage.calls(tool)
    assert message["result"]["resultType"] == "input_required"
    assert stage.runtime.reports == []


@pytest.mark.requirement("MRTR-1", "MRTR-2")
@pytest.mark.parametrize(
    ("method", "params", "member"),
    [
        ("prompts/get", {"name": "prompt_with_roots"}, "messages"),
        ("resources/read", {"uri": "roots:all"}, "contents"),
    ],
)
@pytest.mark.parametrize("version", [D, E])
def test_prompts_and_resources_may_ask_for_input(
    version: str, method: str, params: Any, member: str
) -> None:
    stage = ScriptedClient(asking(), version)
    stage.asks(1, method, **params)
    (message,) = stage.sent_messages()
    if stage.stateful:
        (answer,) = stage.answers(message, {"roots": []})
    else:
        ((key, question),) = message["result"]["inputRequests"].items()
        assert question == {"method": "roots/list"}
        state = message["result"]["requestState"]
        stage.asks(2, method, **params, requestState=state, inputResponses={key: {"roots": []}})
        (answer,) = stage.sent_messages()
    assert '"0"' in str(answer["result"][member]).replace("'", '"')


@pytest.mark.parametrize("version", [D, E])
def test_middleware_sees_each_run_of_handler(version: str) -> None:
    """2026-07-28 runs a handler again for each response; a request inside a group shows as one."""
    seen: list[str] = []

    async def watch(context: Context, proceed: Any) -> Any:
        try:
            result = await proceed()
        except BaseException as exc:
            seen.append(type(exc).__name__)
            raise
        seen.append(type(result).__name__)
        return result

    server = asking(middleware=watch)

    @server.tool
    def by_hand(context: Context) -> str | InputRequiredResult:
        """Ask by hand."""
        if context.input_response("roots", ListRootsResult) is None:
            return InputRequiredResult(input_requests={"roots": ListRootsRequest()})
        return "asked"

    ScriptedClient(server, version).whole_call("by_hand", {"roots": []})
    assert seen == ["InputRequiredResult", "CallToolResult"]
    seen.clear()
    ScriptedClient(server, version).whole_call("stubborn", {"roots": []})
    assert seen == ["CallToolResult"] * (1 if version == D else 2)
    seen.clear()
    ScriptedClient(server, version).whole_call("grouped", {"roots": []})
    assert seen == (
        ["CallToolResult"] if version == D else ["BaseExceptionGroup", "CallToolResult"]
    )


@pytest.mark.parametrize("version", [D, E])
def test_middleware_may_return_input_required(version: str) -> None:
    """As under load: nothing runs, and the client retries later."""
    calls: list[str | None] = []

    async def busy(context: Context, proceed: Any) -> Any:
        calls.append(context.request_state)
        if len(calls) < 3:
            return InputRequiredResult(request_state=f"{len(calls)}")
        return await proceed()

    stage = ScriptedClient(asking(middleware=busy), version)
    if stage.stateful:
        stage.asks(1, "tools/call", name="stubborn")
        for _ in range(3):
            stage.run_jobs()
        (question,) = stage.sent_messages()
        (answer,) = stage.answers(question, {"roots": []})
        assert answer["result"]["content"][0]["text"] == "asked"
    else:
        (answer,) = stage.calls("stubborn")
        for _ in range(2):
            answer = stage.again("stubborn", answer["result"], {})
        assert answer["result"]["inputRequests"]
    assert calls == [None, "1", "2"]


def test_request_state_is_verified_before_middleware() -> None:
    async def refuse(context: Context, proceed: Any) -> Any:
        raise AssertionError("it must not run")

    (answer,) = ScriptedClient(asking(middleware=refuse), E).calls(
        "stubborn", requestState="made up"
    )
    assert answer["error"]["code"] == -32602


def by_hand() -> Server:
    server = Server("s")

    @server.tool
    def plain(context: Context) -> str | InputRequiredResult:
        """Ask by hand, in a plain def."""
        answer = context.input_response("roots", ListRootsResult)
        if answer is None:
            return InputRequiredResult(input_requests={"roots": ListRootsRequest()})
        return f"{len(answer.roots)} roots"

    @server.tool
    def nowhere() -> str:
        """Want a page with an invalid URL."""
        raise UrlElicitationRequired("Please log in.", "nowhere")

    return server


@pytest.mark.parametrize("version", [D, E])
def test_plain_function_may_return_input_required(version: str) -> None:
    stage = ScriptedClient(by_hand(), version)
    assert stage.whole_call("plain", {"roots": []})["result"]["content"][0]["text"] == "0 roots"
    assert stage.service.idle


@pytest.mark.parametrize("version", [D, E])
def test_returned_requests_invalid_are_error_of_tool(version: str) -> None:
    stage = ScriptedClient(by_hand(), version, {"elicitation": {"url": {}}})
    (answer,) = stage.calls("plain")
    assert answer["error"]["data"] == {"requiredCapabilities": {"roots": {}}}
    (answer,) = stage.calls("nowhere", 2)
    assert answer["result"]["isError"]
    assert [str(exc) for exc in stage.runtime.reports] == [
        "elicitation/create: url is no http or https URL: it is neither https nor http"
    ]


def test_stop_cancels_jobs_that_wait_for_input() -> None:
    stage = ScriptedClient(asking(), D)
    stage.asks(1, "prompts/get", name="prompt_with_roots")
    assert stage.sent_messages()
    ((job, steps),) = stage.running
    stopped: list[None] = []
    job.stop = lambda: stopped.append(None)
    stage.service.stop()
    assert stopped == [None]
    steps.close()
    job.dropped()
    stage.running.clear()
    _, answer = stage.sent_messages()
    assert answer["error"]["message"] == "the request was cancelled"


# -- URL elicitations ------------------------------------------------------------------------------


def visiting() -> Server:
    server = Server("s")

    @server.tool
    async def page(name: str, context: Context) -> str:
        """Have a page visited."""
        answer = await context.elicit_url(
            "Please log in.", "https://example.com", elicitation_id=name
        )
        return answer.action

    @server.tool
    def first(name: str) -> str:
        """Have a page visited before anything else."""
        raise UrlElicitationRequired("Please log in.", "https://example.com", name)

    return server


@pytest.mark.requirement("ELIC-15", "ELIC-16")
@pytest.mark.parametrize("tool", ["page", "first"])
def test_elicitation_complete_notifies_client_that_was_asked(tool: str) -> None:
    server = visiting()
    requests, other = ScriptedClient(server, D), ScriptedClient(server, D)
    assert requests.calls(tool, arguments={"name": "v1"})
    for _ in range(2):
        server.elicitation_complete("v1")
    server.elicitation_complete("v2")
    (sent,) = requests.sent_messages()
    assert (sent["method"], sent["params"]) == (
        "notifications/elicitation/complete",
        {"elicitationId": "v1"},
    )
    assert other.sent_messages() == []


@pytest.mark.requirement("ELIC-17")
@pytest.mark.parametrize("tool", ["page", "first"])
def test_elicitation_complete_in_other_revisions_sends_nothing(tool: str) -> None:
    server = visiting()
    stage = ScriptedClient(server, E)
    assert "elicitationId" not in str(stage.calls(tool, arguments={"name": "v1"}))
    server.elicitation_complete("v1")
    assert stage.sent_messages() == []


def test_elicitation_complete_after_close_sends_nothing() -> None:
    server = visiting()
    stage = ScriptedClient(server, D)
    assert stage.calls("first", arguments={"name": "v1"})
    stage.conn.close()
    server.elicitation_complete("v1")
    assert stage.sent_messages() == []
    gone = ScriptedClient(server, D)
    assert gone.calls("first", arguments={"name": "v1"})
    gone.service.close()
    server.elicitation_complete("v1")
    assert gone.sent_messages() == []


def test_elicitations_over_limit_forget_oldest() -> None:
    server = visiting()
    stage = ScriptedClient(server, D)
    for n in range(1_001):
        stage.calls("first", arguments={"name": f"v{n}"})
    server.elicitation_complete("v0")
    assert stage.sent_messages() == []
    server.elicitation_complete("v1")
    assert len(stage.sent_messages()) == 1
