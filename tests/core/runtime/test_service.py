"""`Service` and `RequestJob`: events in, responses and jobs out, without a runtime."""

from __future__ import annotations

import functools
from hashlib import sha256
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import msgspec
import pydantic
import pytest

from mcp_core import (
    DIALECTS,
    NEED_DATA,
    Connection,
    ConnectionLost,
    McpError,
    RequestCancelled,
    RequestReceived,
    Role,
    ToolError,
)
from mcp_core.registry import (
    Context,
    ResourceNotFound,
    RootsContext,
    Server,
    Tasks,
    UrlElicitationRequired,
)
from mcp_core.runtime import RequestJob, Runtime, ServedServer, Service, Sources
from mcp_core.runtime._service import ignored_cancellation, name_of_request
from mcp_core.tasks._record import quota_key
from mcp_core.types import (
    CallToolParams,
    CallToolResult,
    GetPromptParams,
    InputRequiredResult,
    ListRootsRequest,
    ListRootsResult,
)
from tests.harness.jsonrpc import (
    INITIALIZED,
    D,
    E,
    initialize,
    line,
    notification,
    stateless_request,
)
from tests.harness.messages.scripted_client import ScriptedClient

if TYPE_CHECKING:
    from collections.abc import Callable

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


# -- Who calls -------------------------------------------------------------------------------------


class Grant(NamedTuple):
    """The authorization of a request."""

    client_id: str | None
    principal: str = "ada"
    scopes: frozenset[str] = frozenset()
    claims: Any = None
    valid_until: float | None = None


class KnownHttpClient(NamedTuple):
    """A client as an HTTP server knows it. It may call `plain` only."""

    client: str

    def authorize_calls(self, request: RequestReceived, tools: Any) -> Any:
        return None if set(tools) == {"plain"} else SimpleNamespace(message="no scope")

    def may_call(self, request: RequestReceived, tool: str) -> bool:
        return tool == "plain"


class Drawing(Quiet):
    """A runtime that draws another owner each time, and keeps its warnings."""

    def __init__(self, *, single_peer: bool = False, one_request: bool = False) -> None:
        super().__init__()
        self.single_peer = single_peer
        self.one_request = one_request
        self.warnings: list[str] = []
        self.hooks: list[tuple[str, BaseException]] = []
        self.drawn = 0

    def entropy(self, size: int, /) -> bytes:
        self.drawn += 1
        return bytes([self.drawn] * size)

    def warn(self, text: str) -> None:
        self.warnings.append(text)

    def report_hook(self, name: str, exc: BaseException) -> None:
        self.hooks.append((name, exc))


def request_of(version: str, grant: Grant | None = None) -> RequestReceived:
    dialect = DIALECTS[version]
    params = CallToolParams(name="plain")
    peer: Any = SimpleNamespace(dialect=dialect)
    return RequestReceived(
        1, dialect.receives[Role.SERVER]["tools/call"], params, peer, b"{}", grant=grant
    )


def service_with(runtime: Runtime, server: Server | None = None, **more: Any) -> Service:
    server = server or build()
    return Service(server, Connection(Role.SERVER, server.config()), runtime, **more)


def test_tasks_of_a_user_belong_to_the_user_and_the_client() -> None:
    """On every transport: another client of the same user must not see them."""
    service = service_with(Drawing(), principal="ada")
    owners = [service.task_owner(request_of(D, Grant(client))) for client in ("x", "x", "y", None)]
    assert owners[0] == sha256(b"ada\0x").hexdigest() == owners[1]
    assert len(set(owners)) == 3
    other = service_with(Drawing(), principal="bob")
    assert other.task_owner(request_of(D, Grant("x"))) not in owners


@pytest.mark.parametrize(
    ("runtime", "version", "owner"),
    [
        (Drawing(single_peer=True), D, ""),
        (Drawing(one_request=True), D, ""),
        (Drawing(), E, ""),
        (Drawing(), D, "01" * 16),
    ],
)
def test_tasks_without_a_user_belong_to_the_session_if_there_is_one(
    runtime: Drawing, version: str, owner: str
) -> None:
    """A session's owner is drawn once; `Tasks.owner` may choose another one."""
    service = service_with(runtime)
    for _ in range(2):
        assert service.task_owner(request_of(version)) == owner
    assert runtime.drawn == bool(owner)
    server = Server("s", tasks=Tasks(owner=lambda request, usual: f"mine {usual}"))
    assert service_with(runtime, server).task_owner(request_of(version)).startswith("mine ")


def test_client_counts_by_its_principal_or_by_what_http_knows() -> None:
    def keys(**more: Any) -> tuple[str, str]:
        service = service_with(Drawing(single_peer=more.pop("single_peer", False)), **more)
        return service.rate_key, service.task_quota_key

    web = KnownHttpClient("address 192.0.2.1")
    assert keys() == ("", quota_key("", ""))
    assert keys(principal="ada") == ("principal ada", quota_key("ada", ""))
    assert keys(conversation=web) == (web.client, quota_key("", web.client))
    assert keys(conversation=web, principal="ada") == (web.client, quota_key("ada", ""))
    assert keys(single_peer=True) == ("", "")
    assert keys(single_peer=True, principal="ada") == ("principal ada", quota_key("ada", None))


def test_calls_are_authorized_by_http_only() -> None:
    request = request_of(E)
    bare, web = service_with(Drawing()), service_with(Drawing(), conversation=KnownHttpClient("x"))
    for name, is_allowed in ("plain", True), ("who", False):
        assert bare.authorize_calls(request, [name]) is None
        assert bare.may_call(request, name)
        assert (web.authorize_calls(request, [name]) is None) is is_allowed
        assert web.may_call(request, name) is is_allowed


def test_service_of_a_served_server_has_its_parts() -> None:
    """The runtime gets the sources of the served server, or keeps its own."""
    server = build()
    sources, own = Sources(bytes, float), Sources(bytes, float)
    web, tasks = KnownHttpClient("x"), SimpleNamespace()
    conn = Connection(Role.SERVER, server.config())
    served = ServedServer(server, "the value", tasks, sources)
    runtime = Drawing()
    runtime.sources = own
    service = served.service(conn, runtime, principal="ada", conversation=web)
    assert (service.server, service.conn, service.runtime) == (server, conn, runtime)
    assert (service.lifespan, service.principal, service.tasks) == ("the value", "ada", tasks)
    assert service.rate_key == "x"
    assert runtime.sources is sources
    plain = Drawing()
    plain.sources = own
    service = ServedServer(server).service(conn, plain)
    assert (service.lifespan, service.principal, service.tasks) == (None, "", None)
    assert plain.sources is own


# -- The end of a conversation ---------------------------------------------------------------------


def test_service_that_is_closed_ends_what_belongs_to_its_session_once() -> None:
    """The tasks of the session are removed, and its notifier sends nothing more."""
    removed: list[str] = []
    closed: list[str] = []
    tasks: Any = SimpleNamespace(remove_owner=removed.append)
    notifier: Any = SimpleNamespace(close=lambda: closed.append("closed"))
    service = service_with(Drawing(), tasks=tasks)
    owner = service.task_owner(request_of(D))
    service.task_notifier = notifier
    assert not service.closed
    for _ in range(2):
        service.close()
        assert service.closed
    assert (removed, closed) == ([owner], ["closed"])
    service = service_with(Drawing(), tasks=tasks)
    service.close()  # without tasks of its session
    assert removed == [owner]


IGNORED = "ignored the cancellation for 5 s: a handler must not shield or swallow it for so long"


def test_handlers_that_outlive_the_conversation_are_named_once() -> None:
    harness = Conversation()
    harness.service.runtime = runtime = Drawing()
    harness.service.warn_of_running()
    assert runtime.warnings == []
    for id, name in enumerate(("later", "later", "blocking"), 1):
        harness.call(name, id)
    harness.service.warn_of_running()
    names = "tool 'later', tool 'blocking'"
    assert runtime.warnings == [f"the conversation has ended, and {names} {IGNORED}"]


@pytest.mark.parametrize(("count", "end"), [(20, "n18, n19"), (21, "n19, 1 more"), (99, "79 more")])
def test_log_of_many_handlers_names_twenty(count: int, end: str) -> None:
    text = ignored_cancellation(f"n{number}" for number in range(count))
    names, _, rest = text.partition(" ignored")
    assert names.startswith("n0, n1, ")
    assert names.endswith(end)
    assert f" ignored{rest}" == f" {IGNORED}"


def test_handler_is_named_by_its_method_or_its_tool() -> None:
    for name, params, found in (
        ("tools/call", CallToolParams(name="plain"), "tool 'plain'"),
        ("prompts/get", GetPromptParams(name="ask"), "prompts/get"),
    ):
        method = DIALECTS[E].receives[Role.SERVER][name]
        peer: Any = None
        assert name_of_request(RequestReceived(1, method, params, peer, b"{}")) == found


def rooted() -> tuple[Server, Conversation, Drawing]:
    """Return a server without hooks, a client with roots, and the runtime of its service."""
    server = Server("s")
    harness = Conversation(server)
    harness.service.runtime = runtime = Drawing()
    harness.feed(line(initialize(D)) + line(INITIALIZED))
    return server, harness, runtime


def change_roots(harness: Conversation) -> Any:
    """Return the job for a notification of changed roots, if there is one."""
    harness.conn.receive_data(line(notification("notifications/roots/list_changed")), 0.0)
    event: Any = harness.conn.next_event()
    return harness.service.handle_event(event)


def test_roots_that_change_while_the_hooks_run_call_them_once_more() -> None:
    """In the same job: hooks of one client don't run side by side."""
    server, harness, _ = rooted()
    seen: list[str] = []

    @server.on_roots_changed
    def first(context: RootsContext) -> None:
        seen.append("first")
        if len(seen) == 1:
            assert change_roots(harness) is None
            assert change_roots(harness) is None

    @server.on_roots_changed
    async def second(context: RootsContext) -> None:
        seen.append("second")

    job = change_roots(harness)
    assert repr(job) == f"<RootsJob of {harness.service!r}>"
    harness.service.stop()  # no task runs it yet: that does nothing
    run(job.run())
    assert seen == ["first", "second"] * 2
    assert harness.service.idle
    assert change_roots(harness) is not job
    job.dropped()  # it has ended: this is about the new job
    assert not harness.service.idle


def test_roots_hook_that_raises_is_logged_and_ends_alone() -> None:
    """But a client that is gone isn't the hook's fault."""
    server, harness, runtime = rooted()
    errors = [ZeroDivisionError(), ConnectionLost("gone"), ExceptionGroup("", [OSError("x")])]
    for error in errors:

        def fail(context: RootsContext, error: Exception = error) -> None:
            raise error

        server.on_roots_changed(functools.partial(fail))
    run(change_roots(harness).run())
    assert runtime.hooks == [
        ("a hook on changed roots", errors[0]),
        ("a hook on changed roots", errors[2]),
    ]


def test_client_without_roots_or_hooks_starts_no_job() -> None:
    server, harness, _ = rooted()
    assert change_roots(harness) is None
    server.on_roots_changed(lambda context: None)
    assert change_roots(harness) is not None
    other = Conversation(server)
    other.feed(line(initialize(D, capabilities={})) + line(INITIALIZED))
    assert change_roots(other) is None
    unknown = Conversation(server)  # it has sent no handshake
    assert change_roots(unknown) is None


@pytest.mark.parametrize("ends", ["stop", "closed"])
def test_roots_job_is_cancelled_with_its_client(ends: str) -> None:
    """A hook that goes on in spite of that is named in the log."""
    server, harness, runtime = rooted()
    server.on_roots_changed(lambda context: None)
    job = change_roots(harness)
    stopped: list[str] = []
    job.stop = lambda: stopped.append("stopped")
    if ends == "stop":
        harness.service.stop()
    else:
        harness.conn.close()
        harness.feed(b"")
    assert stopped == ["stopped"]
    harness.service.warn_of_running()
    hook = "a hook on changed roots"
    assert runtime.warnings == [f"the conversation has ended, and {hook} {IGNORED}"]
    job.dropped()
    assert harness.service.idle


# -- Functions that block --------------------------------------------------------------------------


@pytest.mark.parametrize(("seconds", "is_reported"), [(0.05, False), (0.0625, True)])
def test_plain_function_that_blocks_for_long_is_reported_once(
    seconds: float, is_reported: bool
) -> None:
    """Exactly 50 ms are not too long."""
    server = Server("s")
    now = [0.0]

    @server.tool
    def nap() -> str:
        """Block."""
        now[0] += seconds
        return "awake"

    harness = Conversation(server)
    harness.service.runtime = runtime = Drawing()
    runtime.monotonic = lambda: now[0]  # type: ignore[method-assign]
    for id in (1, 2):
        harness.call("nap", id)
        assert harness.text() == ("awake", False)
    text = (
        "function 'nap' blocked all clients for 0.06 s; declare it with thread=True, or as an "
        "`async def` that awaits what takes long"
    )
    assert runtime.warnings == ([text] if is_reported else [])


def test_resource_whose_lookup_fails_is_hidden_and_logged(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its URI is cut: a client chooses it."""

    def fail(*_: object) -> bool:
        raise ZeroDivisionError

    harness = Conversation()
    harness.service.runtime = runtime = Drawing()
    monkeypatch.setattr(harness.server, "hides_uri", fail)
    assert harness.service._hides("x" * 201, request_of(E)) is True
    ((name, error),) = runtime.hooks
    assert name == f"looking up the resource {'x' * 200!r}"
    assert isinstance(error, ZeroDivisionError)


@pytest.mark.parametrize("error", [ZeroDivisionError(), SystemExit(1), McpError(7, "mine")])
def test_uri_whose_lookup_fails_is_answered_with_the_error(
    error: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lookup runs an author's validators, whose `SystemExit` is their own."""
    server = Server("s")
    server.resource("fixed:x")(lambda: "contents")
    harness = Conversation(server)
    monkeypatch.setattr(server, "as_declared", functools.partial(throw, error))
    assert harness.feed(line(stateless_request(1, "resources/read", {"uri": "fixed:x"}))) == []
    [answer] = harness.sent()
    if isinstance(error, McpError):
        assert answer["error"] == {"code": 7, "message": "mine"}
    else:
        assert answer["error"]["message"] == "Internal error (reference R1)"
        assert harness.reports == [("R1", error)]


def throw(error: BaseException, *_: object) -> Any:
    raise error


def test_subscription_without_tasks_is_acknowledged_at_once() -> None:
    server = Server("s")
    server.add_tool(lambda: "", name="work", description="Work.")
    harness = Conversation(server)
    wanted = {"notifications": {"toolsListChanged": True}}
    assert harness.feed(line(stateless_request(1, "subscriptions/listen", wanted))) == []
    [sent] = harness.sent()
    assert sent["method"] == "notifications/subscriptions/acknowledged"
    assert harness.service.idle
