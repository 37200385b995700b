"""`Context`: attributes of the request, notifications and requests for input."""

from __future__ import annotations

import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeVar

import pytest
from msgspec import Raw

from mcp_core import (
    NEED_DATA,
    Connection,
    LocalProtocolError,
    McpError,
    RequestReceived,
    Role,
    ToolError,
)
from mcp_core import types as t
from mcp_core.registry import (
    AcceptedElicitation,
    CancelledElicitation,
    Context,
    DeclinedElicitation,
    Form,
    Server,
)
from mcp_core.registry._context import collector_of, mounted_context
from mcp_core.registry._input_requests import InputCollector
from mcp_core.runtime import Runtime, Service
from tests.core.registry.lookup_helpers import C, E, context_of, request
from tests.harness.forms import SEATS_SCHEMA, Seats
from tests.harness.jsonrpc import VERSIONS
from tests.harness.messages.scripted_client import ScriptedClient

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from mcp_core import Dialect
    from mcp_core.types import RequestId

server = Server("s")
T = TypeVar("T")


def test_context_attributes_come_from_the_request() -> None:
    ask = request("tools/call", {"name": "x"}, C)
    context = context_of(ask, server)
    assert context.request_id == "id-1"
    assert context.peer is ask.peer
    assert context.server is server
    assert (context.method, context.params) == ("tools/call", ask.params)
    assert (context.lifespan, context.state) == (None, {})
    assert repr(context) == "<Context tools/call id='id-1'>"


@pytest.mark.requirement("META-1")
def test_context_meta_has_unknown_members() -> None:
    meta = {"progressToken": 1, "com.example/x": {"a": [None]}, "traceparent": "00-1-2-01"}
    context = context_of(request("tools/call", {"name": "x", "_meta": meta}), server)
    assert context.meta == meta
    assert context.meta is context.meta
    assert context_of(request("tools/call", {"name": "x"}), server).meta == {}
    assert context_of(request("tools/call", {"name": "x", "_meta": None}), server).meta == {}


def test_context_undecodable_meta_raises() -> None:
    ask = request("tools/call", {"name": "x"})
    ask.raw = Raw(b'{"_meta":{"a":"\xff"}}')
    with pytest.raises(McpError, match="_meta cannot be read") as caught:
        _ = context_of(ask, server).meta
    assert caught.value.code == E.codes[next(f for f in E.codes if f.name == "INVALID_PARAMS")]


def test_context_trace_has_the_trace_context_only() -> None:
    trace = {
        "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "tracestate": "a=1",
    }
    context = context_of(
        request("tools/call", {"name": "x", "_meta": {**trace, "other": 1}}), server
    )
    assert context.trace == trace


# -- Notifications ---------------------------------------------------------------------------------


class RecordingRuntime(Runtime):
    """A runtime that records its calls. `thread`: they come from a worker thread."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.is_full = False
        self.thread = False

    def report(self, request: RequestReceived, reference: str, exc: BaseException) -> None:
        raise AssertionError("nothing fails here")

    def pump(self) -> None:
        self.calls.append("pump")

    def write_blocked(self, id: RequestId | None) -> bool:
        return self.is_full

    async def drain(self, id: RequestId) -> None:
        self.calls.append("drain")

    @property
    def in_worker_thread(self) -> bool:
        return self.thread

    def from_thread(self, function: Callable[[], Coroutine[Any, Any, T]]) -> T:
        self.calls.append("from thread")
        self.thread = False
        return run(function())


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    try:
        coroutine.send(None)
    except StopIteration as stop:
        value: T = stop.value
        return value
    raise AssertionError("it waits")


MODERN = (
    '"io.modelcontextprotocol/protocolVersion":"2026-07-28",'
    '"io.modelcontextprotocol/clientCapabilities":{}'
)


class ContextHarness:
    """A request that is not answered, and the context of its handler."""

    def __init__(self, meta: str = '"progressToken":"t"', *, logging: bool = True) -> None:
        self.server = Server("s", logging=logging)
        self.server.add_tool(
            lambda: None, name="x", description="Nothing.", input_schema={"type": "object"}
        )
        self.conn = Connection(Role.SERVER, self.server.config())
        params = f'{{"name":"x","_meta":{{{MODERN},{meta}}}}}'
        message = f'{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}\n'
        self.conn.receive_data(message.encode(), 0.0)
        event = self.conn.next_event()
        assert isinstance(event, RequestReceived)
        assert self.conn.next_event() is NEED_DATA
        self.runtime = RecordingRuntime()
        service = Service(self.server, self.conn, self.runtime)
        self.context: Context = Context(InputCollector(service, event))

    def sent(self) -> list[Any]:
        return [json.loads(line)["params"] for line in self.conn.data_to_send().splitlines()]


LOGGED = '"io.modelcontextprotocol/logLevel":"warning"'


def test_context_progress_sends_then_drains() -> None:
    harness = ContextHarness()
    run(harness.context.progress(1, 2, "half"))
    assert harness.sent() == [{"progressToken": "t", "progress": 1, "total": 2, "message": "half"}]
    run(harness.context.progress(1))
    assert harness.sent() == []
    assert harness.runtime.calls == ["pump", "drain", "drain"]


def test_context_log_sends_then_drains() -> None:
    harness = ContextHarness(LOGGED)
    run(harness.context.log("error", {"a": [1]}, logger="db"))
    run(harness.context.log("info", "not sent"))
    assert harness.sent() == [{"level": "error", "data": {"a": [1]}, "logger": "db"}]
    assert harness.runtime.calls == ["pump", "drain", "drain"]


def test_context_nowait_sends_without_draining() -> None:
    harness = ContextHarness(f'"progressToken":"t",{LOGGED}')
    harness.context.progress_nowait(1)
    harness.context.log_nowait("alert", "x")
    assert harness.sent() == [
        {"progressToken": "t", "progress": 1},
        {"level": "alert", "data": "x"},
    ]
    assert harness.runtime.calls == ["pump", "pump"]


def test_context_nowait_drops_while_the_queue_is_full() -> None:
    harness = ContextHarness(f'"progressToken":"t",{LOGGED}')
    harness.runtime.is_full = True
    harness.context.progress_nowait(1)
    harness.context.log_nowait("alert", "x")
    assert harness.sent() == []
    assert harness.runtime.calls == []


def test_context_nowait_in_a_worker_thread_blocks() -> None:
    harness = ContextHarness(LOGGED)
    harness.runtime.is_full = True
    harness.runtime.thread = True
    harness.context.log_nowait("alert", "x")
    assert harness.sent() == [{"level": "alert", "data": "x"}]
    assert harness.runtime.calls == ["from thread", "pump", "drain"]


def test_context_progress_and_log_in_worker_thread_are_refused() -> None:
    harness = ContextHarness()
    harness.runtime.thread = True
    with pytest.raises(RuntimeError, match="_nowait"):
        _ = harness.context.progress(1)
    with pytest.raises(RuntimeError, match="_nowait"):
        _ = harness.context.log("info", "x")


@pytest.mark.requirement("LOG-1", "LOG-5")
def test_context_log_invalid_message_raises() -> None:
    harness = ContextHarness(LOGGED)
    with pytest.raises(LocalProtocolError, match="no log level 'loud'; there are debug, info"):
        _ = harness.context.log("loud", "x")  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        harness.context.log_nowait("error", object())
    with pytest.raises(LocalProtocolError, match="capability logging, which we did not declare"):
        _ = ContextHarness(LOGGED, logging=False).context.log("error", "x")
    assert harness.sent() == []


def test_context_sends_nothing_for_a_cancelled_request() -> None:
    harness = ContextHarness(f'"progressToken":"t",{LOGGED}')
    cancel = b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}\n'
    harness.conn.receive_data(cancel, 0.0)
    harness.conn.next_event()
    run(harness.context.progress(1))
    run(harness.context.log("error", "x"))
    assert harness.sent() == []


def test_context_runtime_without_waiting_raises() -> None:
    """A runtime must only implement `report`: the rest has a harmless default or a clear error."""

    class Bare(Runtime):
        def report(self, request: RequestReceived, reference: str, exc: BaseException) -> None:
            raise AssertionError

    bare = Bare()
    assert (bare.write_blocked(1), bare.in_worker_thread, bare.pump()) == (False, False, None)  # type: ignore[func-returns-value]
    with pytest.raises(TypeError, match="does not wait"):
        _ = bare.drain(1)
    for ask, what in (
        (bare.wall_time, "tell the time"),
        (lambda: bare.entropy(1), "draw random bytes"),
        (lambda: bare.send_nested(None), "wait for answers"),  # type: ignore[arg-type]
    ):
        with pytest.raises(TypeError, match=f"does not {what}"):
            ask()
    with pytest.raises(TypeError, match="does not start threads"):
        bare.in_thread(lambda: None)
    with pytest.raises(TypeError, match="does not start threads"):
        bare.from_thread(lambda: bare.drain(1))
    assert [bare.reference(), bare.reference()] == ["1", "2"]


class RecordingTask:
    """A task that records what its handler sends."""

    def __init__(self) -> None:
        self.calls: list[Any] = []

    async def progress(self, *arguments: Any) -> None:
        self.calls.append(("progress", *arguments))

    def progress_nowait(self, *arguments: Any) -> None:
        self.calls.append(("progress_nowait", *arguments))

    async def log(self, *arguments: Any) -> None:
        self.calls.append(("log", *arguments))

    def log_nowait(self, *arguments: Any) -> None:
        self.calls.append(("log_nowait", *arguments))


def test_context_of_a_task_sends_by_the_task_alone() -> None:
    """Nothing goes out on the connection, and what only a connection can send is refused."""
    harness = ContextHarness(f'"progressToken":"t",{LOGGED}')
    recorded: Any = RecordingTask()
    calls: list[Any] = recorded.calls
    context = harness.context
    assert ContextHarness().context.task is None
    collector_of(context).task = recorded
    assert context.task is recorded
    run(context.progress(1, 2, "half"))
    context.progress_nowait(3, 4, "more")
    run(context.log("error", "x", logger="db"))
    context.log_nowait("alert", "y", logger="web")
    assert calls == [
        ("progress", 1, 2, "half"),
        ("progress_nowait", 3, 4, "more"),
        ("log", "error", "x", "db"),
        ("log_nowait", "alert", "y", "web"),
    ]
    assert harness.sent() == []
    assert harness.runtime.calls == []
    with pytest.raises(LocalProtocolError, match="a/b cannot be sent: a task has no connection"):
        _ = context.notify("a/b")
    with pytest.raises(LocalProtocolError, match="a/b cannot be sent: a task has no connection"):
        _ = context.request("a/b")


@pytest.mark.parametrize("released", [False, True])
def test_context_close_stream_passes_the_reconnection_time(released: bool) -> None:
    """The rest of the response is written only if the runtime has ended it."""
    harness = ContextHarness()
    asked: list[Any] = []

    def release(id: Any, retry: float | None) -> bool:
        asked.append((id, retry))
        return released

    harness.runtime.release = release  # type: ignore[method-assign]
    assert harness.context.close_stream() is released
    assert harness.context.close_stream(2.5) is released
    assert asked == [(1, None), (1, 2.5)]
    assert harness.runtime.calls == ["pump", "pump"] * released


def test_context_headers_and_address_are_of_the_http_request() -> None:
    ask = request("tools/call", {"name": "x"})
    context = context_of(ask, server)
    assert (dict(context.headers), context.client_address) == ({}, "")
    ask.http = SimpleNamespace(headers={"x-a": "1"}, client_address="203.0.113.5")
    assert (context.headers, context.client_address) == ({"x-a": "1"}, "203.0.113.5")


def test_context_names_the_method_for_an_unknown_attribute() -> None:
    context = context_of(request("tools/call", {"name": "x"}), server)
    with pytest.raises(AttributeError, match="progress"):
        _ = context.report_progress  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match="nonsense"):
        _ = context.nonsense  # type: ignore[attr-defined]


@pytest.mark.parametrize("dialect", [C, E])
def test_context_of_a_mounted_server_shares_only_the_state(dialect: Dialect) -> None:
    """A mounted server has its own state of the session, which the next request finds again."""
    ask, inner_ask = (request("tools/call", {"name": name}, dialect) for name in ("m_x", "x"))
    inner = Server("inner")
    context = context_of(ask, server)
    context.bind_task_job(job := object())  # type: ignore[arg-type]
    mounted = mounted_context(context, inner, lambda found: inner_ask if found is ask else found)
    assert (mounted.server, mounted.params) == (inner, inner_ask.params)
    assert mounted._task_job is job
    assert mounted.state is context.state
    assert mounted.session_state == {}
    assert mounted.session_state is not context.session_state
    again = mounted_context(context, inner, lambda found: inner_ask)
    assert (again.session_state is mounted.session_state) is dialect.stateful


# -- Input -----------------------------------------------------------------------------------------


HELLO = t.SamplingMessage("assistant", t.TextContent("hello"))
ADD = t.Tool(name="add", input_schema={"type": "object"})
TWO = {"action": "accept", "content": {"count": 2}}
YES = {"action": "accept"}
SAID = {"role": "assistant", "content": {"type": "text", "text": "hi"}, "model": "m"}

# The call of the handler; the method and params in 2025-11-25; the params in 2026-07-28 if they
# differ; the client's result; what the handler gets.
ASKED: list[tuple[Callable[[Context], Any], str, Any, Any, Any, Any]] = [
    (
        lambda context: context.elicit("How many?", Seats),
        "elicitation/create",
        {"message": "How many?", "requestedSchema": SEATS_SCHEMA},
        None,
        TWO,
        AcceptedElicitation(Seats(2)),
    ),
    (
        lambda context: context.elicit("How many?", Form(Seats)),
        "elicitation/create",
        {"message": "How many?", "requestedSchema": SEATS_SCHEMA},
        None,
        {"action": "decline"},
        DeclinedElicitation(),
    ),
    (
        lambda context: context.elicit("How many?", SEATS_SCHEMA),
        "elicitation/create",
        {"message": "How many?", "requestedSchema": SEATS_SCHEMA},
        None,
        TWO,
        AcceptedElicitation({"count": 2}),
    ),
    (
        lambda context: context.elicit_url(
            "Please pay.", "https://example.com/pay", elicitation_id="p1"
        ),
        "elicitation/create",
        {
            "message": "Please pay.",
            "mode": "url",
            "url": "https://example.com/pay",
            "elicitationId": "p1",
        },
        {"message": "Please pay.", "mode": "url", "url": "https://example.com/pay"},
        YES,
        AcceptedElicitation(None),
    ),
    (
        lambda context: context.elicit_url("Please pay.", "https://example.com/pay"),
        "elicitation/create",
        {
            "message": "Please pay.",
            "mode": "url",
            "url": "https://example.com/pay",
            "elicitationId": "07" * 16,
        },
        {"message": "Please pay.", "mode": "url", "url": "https://example.com/pay"},
        {"action": "cancel"},
        CancelledElicitation(),
    ),
    (
        lambda context: context.sample("hi", max_tokens=7),
        "sampling/createMessage",
        {"messages": [{"role": "user", "content": {"type": "text", "text": "hi"}}], "maxTokens": 7},
        None,
        SAID,
        t.CreateMessageResult(role="assistant", content=t.TextContent("hi"), model="m"),
    ),
    (
        lambda context: context.sample(
            [HELLO],
            max_tokens=7,
            system_prompt="s",
            model_preferences=t.ModelPreferences(hints=[t.ModelHint("h")], cost_priority=0.5),
            temperature=0.5,
            stop_sequences=("x",),
            include_context="thisServer",
            metadata={"m": 1},
            tools=[ADD],
            tool_choice="required",
        ),
        "sampling/createMessage",
        {
            "messages": [{"role": "assistant", "content": {"type": "text", "text": "hello"}}],
            "maxTokens": 7,
            "systemPrompt": "s",
            "modelPreferences": {"hints": [{"name": "h"}], "costPriority": 0.5},
            "temperature": 0.5,
            "stopSequences": ["x"],
            "includeContext": "thisServer",
            "metadata": {"m": 1},
            "tools": [{"name": "add", "inputSchema": {"type": "object"}}],
            "toolChoice": {"mode": "required"},
        },
        None,
        {**SAID, "content": [{"type": "tool_use", "id": "1", "name": "add", "input": {}}]},
        t.CreateMessageResult(
            role="assistant", content=[t.ToolUseContent("1", "add", {})], model="m"
        ),
    ),
    (
        lambda context: context.roots(),
        "roots/list",
        None,
        None,
        {"roots": [{"uri": "file:///a", "name": "a"}]},
        [t.Root("file:///a", "a")],
    ),
]


@pytest.mark.requirement("SAMP-2", "SAMP-4", "ELIC-5", "ELIC-13", "ROOT-2")
@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
@pytest.mark.parametrize(("ask", "method", "params", "modern", "answer", "value"), ASKED)
def test_context_input_methods_send_params_and_return_the_result(
    version: str, ask: Any, method: str, params: Any, modern: Any, answer: Any, value: Any
) -> None:
    """The same call is a nested request in 2025-11-25 and an input request in 2026-07-28."""
    returned: list[Any] = []
    asking = Server("s")

    @asking.tool
    async def tool(context: Context) -> None:
        """Request input."""
        returned.append(await ask(context))

    stage = ScriptedClient(asking, version)
    (sent,) = stage.calls("tool")
    if stage.stateful:
        assert (sent["method"], sent.get("params")) == (method, params)
        stage.answers(sent, answer)
    else:
        ((key, question),) = sent["result"]["inputRequests"].items()
        assert (question["method"], question.get("params")) == (method, modern or params)
        stage.again("tool", sent["result"], {key: answer})
    assert returned == [value]


def test_context_elicit_url_with_another_id_in_each_run_asks_once() -> None:
    """2026-07-28 sends no id, so that a new one isn't another request."""
    asking = Server("s")
    ids = iter("abc")

    @asking.tool
    async def tool(context: Context) -> str:
        """Request a visit."""
        answer = await context.elicit_url("Pay.", "https://a.test", elicitation_id=next(ids))
        return answer.action

    message = ScriptedClient(asking, VERSIONS[-1]).whole_call("tool", YES)
    assert message["result"]["content"][0]["text"] == "accept"


@pytest.mark.parametrize(
    ("choice", "sent"),
    [
        (t.ToolChoice("none"), {"mode": "none"}),
        (t.ToolChoice(), {}),
        ("auto", {"mode": "auto"}),
        ("any", "tool_choice is 'auto', 'required' or 'none', not 'any'"),
        (t.ToolChoice("any"), "tool_choice is 'auto', 'required' or 'none', not 'any'"),  # type: ignore[arg-type]
    ],
)
def test_context_sample_tool_choice_is_sent_or_refused(choice: Any, sent: Any) -> None:
    """A wrong choice is the author's mistake: it is raised before anything is sent."""
    errors: list[str] = []
    asking = Server("s")

    @asking.tool
    async def tool(context: Context) -> str:
        """Request a completion."""
        try:
            await context.sample("hello", max_tokens=7, tools=[ADD], tool_choice=choice)
        except ValueError as exc:
            errors.append(str(exc))
        return "over"

    (said,) = ScriptedClient(asking, "2025-11-25").calls("tool")
    if isinstance(sent, str):
        assert errors == [sent]
    else:
        assert said["params"]["toolChoice"] == sent


@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
def test_context_input_response_is_read_in_each_run(version: str) -> None:
    """The tool runs three times: without a response, with an invalid one and with a valid one."""
    asking = Server("s")
    form = Form(Seats)
    returned: list[Any] = []

    @asking.tool
    def tool(context: Context) -> t.InputRequiredResult | None:
        """Request input."""
        returned.append((context.input_response("form", form), context.request_state))
        returned.append(context.input_response("form", t.ElicitResult))
        if len(returned) < 5:
            return t.InputRequiredResult(
                input_requests={"form": form.question("?")}, request_state="mine"
            )
        return None

    stage = ScriptedClient(asking, version)
    stage.whole_call("tool", YES, TWO)
    accepted = t.ElicitResult(action="accept", content={"count": 2})
    wrong = t.ElicitResult(action="accept")  # the handler may request it again
    assert returned == [
        (None, None),
        None,
        (None, "mine"),
        wrong,
        (AcceptedElicitation(Seats(2)), "mine"),
        accepted,
    ]


# -- Capabilities ----------------------------------------------------------------------------------


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("offers", [{}, {"sampling": {}}])
def test_can_lets_a_tool_end_as_its_author_wants(version: str, offers: dict[str, Any]) -> None:
    """Without sampling, one tool explains itself and the other ends with the protocol's error."""
    server = Server("s")

    @server.tool
    async def polite(context: Context) -> str:
        """Explain what is missing."""
        if not context.can("sampling"):
            raise ToolError("This needs a client with a model.")
        return (await context.sample("Hi", max_tokens=9)).text

    @server.tool
    async def strict(context: Context) -> str:
        """Leave it to the protocol."""
        return (await context.sample("Hi", max_tokens=9)).text

    answer = {"role": "assistant", "content": {"type": "text", "text": "Hello"}, "model": "m"}
    for tool in ("polite", "strict"):
        stage = ScriptedClient(server, version, offers)
        if offers:
            text = stage.whole_call(tool, answer)["result"]["content"][0]["text"]
            assert text == "Hello"
        elif tool == "polite":
            (message,) = stage.calls(tool)
            assert message["result"]["isError"] is True
            assert message["result"]["content"][0]["text"] == "This needs a client with a model."
        else:
            (message,) = stage.calls(tool)
            assert message["error"]["data"] == {"requiredCapabilities": {"sampling": {}}}
            assert message["error"]["code"] == (-32021 if version == VERSIONS[-1] else -32601)
        assert not stage.runtime.reports


@pytest.mark.parametrize("version", VERSIONS)
def test_can_is_false_in_requests_that_cannot_ask(version: str) -> None:
    server = Server("s")
    seen: list[bool] = []

    @server.middleware
    async def look(context: Context, proceed: Any) -> Any:
        seen.append(context.can("sampling"))
        return await proceed()

    server.add_tool(lambda: "x", name="x", description="x")
    stage = ScriptedClient(server, version)
    stage.asks(1, "tools/list")
    stage.asks(2, "tools/call", name="x")
    assert seen == [False, True]
