"""`AbstractClient`, in which a test is the runtime, the server and the clock."""

from __future__ import annotations

import inspect
import types
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

from mcp_core import (
    DIALECTS,
    Change,
    ChangesMissed,
    ConnectionLost,
    Fault,
    LocalProtocolError,
    PeerError,
    RemoteProtocolError,
    Role,
)
from mcp_core import types as t
from mcp_core.client._cache import _INVALIDATES
from mcp_core.drivers import CallOptions, CallSteps, ClientConfigOptions, PendingCall, client_config
from mcp_core.http.wire._mcp_headers import check_headers
from mcp_core.runtime import AbstractClient, Job
from tests.harness.jsonrpc import (
    STATEFUL,
    VERSIONS,
    A,
    B,
    C,
    D,
    E,
    Message,
    error,
    notification,
    result,
    single,
)
from tests.harness.stepping import steps_of
from tests.harness.wire.connection import ConnectionHarness

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Generator

    Call = Coroutine[Any, Any, Any]

T = TypeVar("T")

LEVEL = "io.modelcontextprotocol/logLevel"
OFFERS: Message = {"tools": {}, "resources": {}, "prompts": {}, "completions": {}, "logging": {}}


class ByHand(PendingCall[T]):
    """A call that no task waits for: the test looks whether it is done."""

    def wake(self) -> None:
        pass

    def deadline_changed(self) -> None:
        pass


@types.coroutine
def rest() -> Generator[None, None, None]:
    yield


class Sleep:
    """A sleep that shows its number of seconds."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def __await__(self) -> Generator[float, None, None]:
        yield self._seconds


class PlayedClient(AbstractClient):
    """A client whose server is the test. `now` is the time, `reports` are its log entries."""

    def __init__(self, version: str, **options: Any) -> None:
        self.now = 1000.0
        self.reports: list[tuple[str, BaseException]] = []
        config: ClientConfigOptions = {"versions": [version], **options}  # type: ignore[typeddict-item]
        super().__init__(
            client_config(config), config, lambda: self.now, Sleep, lambda: self.now, bytes
        )
        self.harness = ConnectionHarness(self._conn)
        self.work: list[Job] = []  # what a driver would run in tasks

    async def _call(self, steps: CallSteps[T], options: CallOptions) -> T:
        waiter = ByHand(self._send, self._clock, steps, options)
        waiter.begin()
        while not waiter.done:
            await rest()
        return waiter.result()

    def _start_job(self, job: Job) -> None:
        self.work.append(job)

    def works(self) -> list[float]:
        """Run all jobs, one after the other. Return for how many seconds each slept."""
        slept: list[float] = []
        while self.work:
            job = self.work.pop(0)
            steps = steps_of(job.run)
            try:
                slept.append(steps.send(None))
            except StopIteration as end:
                job.done(end.value)
            except Exception as exc:  # noqa: BLE001 - as a driver does
                job.failed(exc)
            else:
                job.done(None)
            job.dropped()
        return slept

    def _pump(self) -> None:
        for event in self.harness.events():
            self._handle_event(event)

    def _log_error(self, problem: str, error: BaseException) -> None:
        self.reports.append((problem, error))

    def _log_warning(self, problem: str) -> None:
        self.reports.append((problem, UserWarning(problem)))

    def receive_messages(self, *messages: Message) -> None:
        for event in self.harness.receive(*messages):
            self._handle_event(event)

    def open(self, offers: Message) -> None:
        self._open()
        version = self._conn.config.versions[0]
        sent = single(self.harness.take_sent())
        opened: Message = {"capabilities": offers}
        if DIALECTS[version].stateful:
            opened |= {"protocolVersion": version, "serverInfo": {"name": "s", "version": "1"}}
        else:
            opened |= {"supportedVersions": [version], "resultType": "complete"}
        self.receive_messages(result(sent["id"], opened))


def opened(version: str, offers: Message = OFFERS, **options: Any) -> PlayedClient:
    client = PlayedClient(version, **options)
    client.open(offers)
    client.harness.take_sent()
    return client


def run_call(client: PlayedClient, call: Call, *answers: Any) -> tuple[Any, list[Message]]:
    """Respond to the requests of `call` in this order. Return its result and the requests.

    An exception stands for an error response.
    """
    sent: list[Message] = []
    left = list(answers)
    try:
        while True:
            call.send(None)
            request = single(client.harness.take_sent())
            sent.append(request)
            answer = left.pop(0)
            client.receive_messages(
                answer | {"id": request["id"]}
                if "error" in answer
                else result(request["id"], answer)
            )
    except StopIteration as end:
        assert (left, client.harness.take_sent()) == ([], [])
        return end.value, sent


def value(client: PlayedClient, call: Call, *answers: Any) -> Any:
    return run_call(client, call, *answers)[0]


def params(request: Message) -> Any:
    """Return the params without the `_meta` that each request of 2026-07-28 carries."""
    found = dict(request.get("params", {}))
    found.pop("_meta", None)
    return found


# -- Calls -----------------------------------------------------------------------------------------

CONTENT: Message = {"content": [{"type": "text", "text": "x"}]}
MESSAGES: Message = {"messages": []}

CALLS: list[tuple[Callable[[AbstractClient], Call], str, Any, Message, Any]] = [
    (
        lambda client: client.call_tool("t"),
        "tools/call",
        {"name": "t"},
        CONTENT,
        t.CallToolResult(content=[t.TextContent("x")]),
    ),
    (
        lambda client: client.call_tool("t", {}),
        "tools/call",
        {"name": "t", "arguments": {}},
        CONTENT,
        t.CallToolResult(content=[t.TextContent("x")]),
    ),
    (
        lambda client: client.read_resource("x:y"),
        "resources/read",
        {"uri": "x:y"},
        {"contents": []},
        t.ReadResourceResult(contents=[]),
    ),
    (
        lambda client: client.get_prompt("p"),
        "prompts/get",
        {"name": "p"},
        MESSAGES,
        t.GetPromptResult(messages=[]),
    ),
    (
        lambda client: client.get_prompt("p", {"a": "b"}),
        "prompts/get",
        {"name": "p", "arguments": {"a": "b"}},
        MESSAGES,
        t.GetPromptResult(messages=[]),
    ),
    (lambda client: client.request("acme/x", {"a": 1}), "acme/x", {"a": 1}, {"b": 2}, {"b": 2}),
    (lambda client: client.request("acme/x"), "acme/x", {}, {}, {}),
    (lambda client: client.list_tools(), "tools/list", {}, {"tools": []}, []),
    (lambda client: client.list_resources(), "resources/list", {}, {"resources": []}, []),
    (
        lambda client: client.list_resource_templates(),
        "resources/templates/list",
        {},
        {"resourceTemplates": []},
        [],
    ),
    (
        lambda client: client.list_prompts(),
        "prompts/list",
        {},
        {"prompts": [{"name": "p"}]},
        [t.Prompt(name="p")],
    ),
]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(("call", "method", "sent", "answer", "gives"), CALLS)
def test_call_sends_request_and_returns_result(
    version: str,
    call: Callable[[AbstractClient], Call],
    method: str,
    sent: Any,
    answer: Message,
    gives: Any,
) -> None:
    client = opened(version)
    found, [request_sent] = run_call(client, call(client), answer)
    assert (request_sent["method"], params(request_sent), found) == (method, sent, gives)


@pytest.mark.parametrize("version", VERSIONS)
def test_ping_uses_method_of_revision(version: str) -> None:
    client = opened(version)
    method, answer = "ping", {}
    if version == E:
        method, answer = (
            "server/discover",
            {"supportedVersions": [E], "capabilities": {}, "ttlMs": 60_000},
        )
    for _ in range(2):  # also the second time
        _, [sent] = run_call(client, client.ping(), answer)
        assert sent["method"] == method


def test_call_options_are_sent_with_request() -> None:
    client = opened(D)
    assert client.peer.dialect.version == D
    assert repr(client) == f"<PlayedClient of {client.harness.conn!r}>"
    options: CallOptions = {"progress": lambda *_: None, "meta": {"com.example/word": "x"}}
    _, [sent] = run_call(client, client.call_tool("t", **options), CONTENT)
    assert sent["params"]["_meta"] == {"com.example/word": "x", "progressToken": sent["id"]}


def test_call_that_cannot_be_sent_raises() -> None:
    client = opened(D, {"tools": {}})
    with pytest.raises(LocalProtocolError, match="prompts"):
        value(client, client.list_prompts())
    with pytest.raises(ValueError, match="timeout is a number of seconds"):
        value(client, client.list_tools(timeout=-1))
    client._conn.close()
    for event in client.harness.events():
        client._handle_event(event)
    with pytest.raises(ConnectionLost, match="the client was closed"):
        value(client, client.ping())
    assert client.harness.take_sent() == []


def test_call_ended_early_cancels_request() -> None:
    """Before its first request a call has nothing to cancel, and a second end sends nothing."""
    client = opened(D)
    steps = client._pages("tools/list", "tools", {})
    waiter: ByHand[Any] = ByHand(client._send, client._clock, steps, {})
    client._end_call(waiter)  # before anything was asked
    steps = client._pages("tools/list", "tools", {})
    waiter = ByHand(client._send, client._clock, steps, {})
    waiter.begin()
    sent = single(client.harness.take_sent())
    client._end_call(waiter)
    cancelled = single(client.harness.take_sent())
    assert (cancelled["method"], cancelled["params"]["requestId"]) == (
        "notifications/cancelled",
        sent["id"],
    )
    client._end_call(waiter)
    assert client.harness.take_sent() == []


# -- Lists -----------------------------------------------------------------------------------------

NO_CURSOR = error(0, -32602, "what cursor?")


def page(*names: str, cursor: str | None = None, ttl: int | None = None) -> Message:
    found: Message = {
        "tools": [{"name": name, "inputSchema": {"type": "object"}} for name in names]
    }
    found |= {} if cursor is None else {"nextCursor": cursor}
    return found | ({} if ttl is None else {"ttlMs": ttl, "cacheScope": "private"})


def names(tools: list[t.Tool]) -> str:
    return " ".join(tool.name for tool in tools)


@pytest.mark.requirement("PAGE-1", "PRM-7")
@pytest.mark.parametrize(
    ("call", "method", "member", "item"),
    [
        (
            AbstractClient.list_tools,
            "tools/list",
            "tools",
            {"name": "a", "inputSchema": {"type": "object"}},
        ),
        (AbstractClient.list_prompts, "prompts/list", "prompts", {"name": "a"}),
        (AbstractClient.list_resources, "resources/list", "resources", {"uri": "a:b", "name": "a"}),
        (
            AbstractClient.list_resource_templates,
            "resources/templates/list",
            "resourceTemplates",
            {"uriTemplate": "a:{b}", "name": "a"},
        ),
    ],
)
@pytest.mark.parametrize("version", [A, E])
def test_list_several_pages_returns_all_items(
    version: str, call: Callable[..., Call], method: str, member: str, item: Message
) -> None:
    client = opened(version)
    pages = [
        {member: [item], "nextCursor": "x y"},
        {member: [], "nextCursor": ""},
        {member: [item]},
    ]
    found, sent = run_call(client, call(client), *pages)
    assert [each.name for each in found] == ["a", "a"]
    assert [request["method"] for request in sent] == [method] * 3
    assert [params(request) for request in sent] == [{}, {"cursor": "x y"}, {"cursor": ""}]


@pytest.mark.requirement("CACHE-9")
@pytest.mark.parametrize("version", [D, E])
def test_list_unknown_cursor_restarts_once(version: str) -> None:
    """The server forgot the cursor between two pages; a second refusal is the caller's error."""
    client = opened(version)
    answers = [
        page("a", cursor="1"),
        page("b", cursor="2"),
        NO_CURSOR,
        page("c", cursor="3"),
        page("d"),
    ]
    found, sent = run_call(client, client.list_tools(), *answers)
    assert names(found) == "c d"
    assert [params(request).get("cursor") for request in sent] == [None, "1", "2", None, "3"]
    with pytest.raises(PeerError, match="what cursor"):
        value(
            client,
            client.list_tools(),
            page("a", cursor="1"),
            NO_CURSOR,
            page("a", cursor="1"),
            NO_CURSOR,
        )


@pytest.mark.parametrize(
    "answers",
    [
        [NO_CURSOR],  # of the first page, which had none
        [page("a", cursor="1"), error(0, -32603, "broken")],
        [page("a", cursor="1"), page("b", cursor="1")],
        [page("a", cursor="1"), {"tools": 5}],
    ],
)
def test_list_other_error_raises(answers: list[Message]) -> None:
    client = opened(D)
    with pytest.raises((PeerError, RemoteProtocolError)):
        value(client, client.list_tools(), *answers)
    assert client.harness.take_sent() == []


# -- Cache -----------------------------------------------------------------------------------------

LONG = 60_000  # milliseconds


@pytest.mark.requirement("CACHE-5", "CACHE-6")
@pytest.mark.parametrize(
    ("call", "answer"),
    [
        (AbstractClient.list_tools, page("a", ttl=LONG)),
        (AbstractClient.list_prompts, {"prompts": [{"name": "p"}], "ttlMs": LONG}),
        (
            AbstractClient.list_resources,
            {"resources": [{"uri": "a:b", "name": "b"}], "ttlMs": LONG},
        ),
        (AbstractClient.list_resource_templates, {"resourceTemplates": [], "ttlMs": LONG}),
        (
            lambda client: client.read_resource("a:b"),
            {"contents": [{"uri": "a:b", "text": "x"}], "ttlMs": LONG},
        ),
    ],
)
def test_cached_result_fresh_sends_nothing(
    call: Callable[[PlayedClient], Call], answer: Message
) -> None:
    client = opened(E)
    first = value(client, call(client), answer)
    client.now += LONG / 1000 - 0.001
    assert value(client, call(client)) == first
    client.now += 0.001
    assert client.harness.take_sent() == []  # time alone asks nothing
    assert value(client, call(client), answer) == first


def test_cached_result_changed_by_caller_stays_intact() -> None:
    client = opened(E)
    first = value(client, client.list_tools(), page("a", ttl=LONG))
    first[0].input_schema.clear()
    first.clear()
    second = value(client, client.list_tools())
    assert second[0].input_schema == {"type": "object"}


def test_cached_pages_expire_one_by_one() -> None:
    client = opened(E)
    value(client, client.list_tools(), page("a", cursor="1", ttl=LONG), page("b", ttl=1))
    client.now += 1
    found, sent = run_call(client, client.list_tools(), page("c", ttl=LONG))
    assert [params(request) for request in sent] == [{"cursor": "1"}]
    assert names(found) == "a c"
    assert names(value(client, client.list_tools())) == "a c"


@pytest.mark.requirement("CACHE-9")
@pytest.mark.parametrize("wrong", [NO_CURSOR, error(0, -32603, "broken"), page("x", cursor="1")])
def test_cached_pages_with_bad_cursor_are_discarded(wrong: Message) -> None:
    client = opened(E)
    value(client, client.list_tools(), page("a", cursor="1", ttl=LONG), page("b", ttl=1))
    client.now += 1
    if wrong is NO_CURSOR:
        found, sent = run_call(client, client.list_tools(), wrong, page("c", ttl=LONG))
        assert [params(request) for request in sent] == [{"cursor": "1"}, {}]
        assert names(found) == "c"
    else:
        with pytest.raises((PeerError, RemoteProtocolError)):
            value(client, client.list_tools(), wrong)
        found, sent = run_call(client, client.list_tools(), page("c", ttl=LONG))
        assert [params(request) for request in sent] == [{}]
    assert names(value(client, client.list_tools())) == "c"


@pytest.mark.requirement("CACHE-10")
@pytest.mark.parametrize("when", ["afterwards", "before the answer", "between two pages"])
def test_cached_list_after_change_is_requested_again(when: str) -> None:
    """A change that arrives while pages are under way spoils them too; other lists don't matter."""
    client = opened(E)
    changed = notification("notifications/tools/list_changed")
    call = client.list_tools()
    call.send(None)
    sent = single(client.harness.take_sent())
    if when == "before the answer":
        client.receive_messages(changed)
    if when == "between two pages":
        client.receive_messages(result(sent["id"], page("o", cursor="1", ttl=LONG)))
        sent = single(client.harness.take_sent())
        client.receive_messages(changed)
    client.receive_messages(result(sent["id"], page("a", ttl=LONG)))
    value(client, call)
    if when == "afterwards":
        client.receive_messages(changed)
    assert names(value(client, client.list_tools(), page("b", ttl=LONG))) == "b"
    client.receive_messages(notification("notifications/prompts/list_changed"))
    assert names(value(client, client.list_tools())) == "b"


def test_cached_resource_after_update_is_requested_again() -> None:
    client = opened(E)
    answer = {"contents": [{"uri": "a:b", "text": "x"}], "ttlMs": LONG}
    value(client, client.read_resource("a:b"), answer)
    value(client, client.read_resource("a:b"))
    client.receive_messages(notification("notifications/resources/updated", {"uri": "a:b/c"}))
    value(client, client.read_resource("a:b"), answer)


@pytest.mark.requirement("CACHE-3", "CACHE-7")
def test_cache_fresh_is_bypassed_by_request_and_meta() -> None:
    client, other = opened(E), opened(E)
    fresh = page("a", ttl=LONG)
    value(client, client.list_tools(), fresh)
    value(
        client, client.list_tools(meta={"com.example/who": 1}), fresh
    )  # the server may read the `_meta`
    value(client, client.request("tools/list"), fresh)
    value(other, other.list_tools(), fresh)  # a client of its own, perhaps of another user
    value(client, client.list_tools())


def test_result_of_call_with_meta_is_not_cached() -> None:
    client = opened(E)
    value(client, client.list_tools(meta={"com.example/who": 1}), page("a", ttl=LONG))
    assert names(value(client, client.list_tools(), page("b"))) == "b"


@pytest.mark.parametrize("version", VERSIONS)
def test_cache_disabled_sends_every_request(version: str) -> None:
    # Revisions without cache hints ignore a member of that name.
    client = opened(version, cache=version in STATEFUL)
    for _ in range(2):
        value(client, client.list_tools(), page("a", ttl=LONG))
    client.receive_messages(notification("notifications/tools/list_changed"))
    with pytest.raises(PeerError):
        value(client, client.list_tools(), error(0))


# -- Output schemas --------------------------------------------------------------------------------

WEATHER: Message = {
    "name": "w",
    "inputSchema": {"type": "object"},
    "outputSchema": {"type": "object", "required": ["c"]},
}
FITS: Message = {"content": [], "structuredContent": {"c": 21}}
DOES_NOT: Message = {"content": [], "structuredContent": {"f": 70}}


@pytest.mark.requirement("TOOL-11")
@pytest.mark.parametrize("version", VERSIONS)
def test_tool_result_is_checked_against_listed_output_schema(version: str) -> None:
    """Without a fresh list, in an older revision or in an error, nothing is checked."""
    client = opened(version)
    assert value(client, client.call_tool("w"), DOES_NOT).structured_content == {
        "f": 70
    }  # no list was read yet
    value(client, client.list_tools(), {"tools": [WEATHER]})
    assert value(client, client.call_tool("w"), FITS).structured_content == {"c": 21}
    assert value(client, client.call_tool("x"), DOES_NOT).structured_content == {"f": 70}
    assert value(client, client.call_tool("w"), {"content": [], "isError": True}).is_error
    if version in (A, B):  # which have no output schemas
        value(client, client.call_tool("w"), DOES_NOT)
        return
    fault = "the result of tool 'w' does not fit its outputSchema: \"c\" is a required property"
    with pytest.raises(RemoteProtocolError, match=fault):
        value(client, client.call_tool("w"), DOES_NOT)
    with pytest.raises(RemoteProtocolError, match="has an outputSchema and no structuredContent"):
        value(client, client.call_tool("w"), CONTENT)
    value(client, client.request("tools/call", {"name": "w"}), DOES_NOT)  # as it came
    client.receive_messages(notification("notifications/tools/list_changed"))
    value(client, client.call_tool("w"), DOES_NOT)


def test_output_schemas_after_missed_changes_are_forgotten() -> None:
    client = opened(D)
    value(client, client.list_tools(), {"tools": [WEATHER]})
    client._handle_event(ChangesMissed())
    value(client, client.call_tool("w"), DOES_NOT)


def test_output_schemas_are_learned_from_cached_list() -> None:
    client = opened(E)
    value(client, client.list_tools(), {"tools": [WEATHER], "ttlMs": LONG})
    value(client, client.list_tools())
    with pytest.raises(RemoteProtocolError):
        value(client, client.call_tool("w"), DOES_NOT)


# -- Completion ------------------------------------------------------------------------------------

PROMPT, TEMPLATE = {"type": "ref/prompt", "name": "p"}, {"type": "ref/resource", "uri": "a://{b}"}


@pytest.mark.requirement("COMP-2")
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("ref", "sent"),
    [
        ("p", PROMPT),
        ("a://{b}", TEMPLATE),
        ("a:{b}", TEMPLATE | {"uri": "a:{b}"}),
        ("a://b", TEMPLATE | {"uri": "a://b"}),
        ("a:b", PROMPT | {"name": "a:b"}),
        ("", PROMPT | {"name": ""}),
        (t.PromptReference("a://{b}"), PROMPT | {"name": "a://{b}"}),
        (t.ResourceTemplateReference("p"), TEMPLATE | {"uri": "p"}),
        (t.PromptReference("p", title="P"), PROMPT | {"title": "P"}),
    ],
)
def test_complete_sends_reference_and_arguments(version: str, ref: Any, sent: Message) -> None:
    client = opened(version)
    call = client.complete(ref, "city", "Os", arguments={"country": "NO"}, timeout=5)
    answer = {"completion": {"values": ["Oslo"], "total": 7, "hasMore": True}}
    found, [request_sent] = run_call(client, call, answer)
    assert found == t.Completion(["Oslo"], total=7, has_more=True)
    if version in (A, B):
        sent = {key: value for key, value in sent.items() if key != "title"}
    expected: Message = {"ref": sent, "argument": {"name": "city", "value": "Os"}}
    if version not in (A, B):
        expected["context"] = {"arguments": {"country": "NO"}}
    assert (request_sent["method"], params(request_sent)) == ("completion/complete", expected)


def test_complete_without_arguments_sends_no_context() -> None:
    client = opened(E)
    nothing: dict[str, str] = {}
    for arguments in (None, nothing):
        call = client.complete("p", "a", "", arguments=arguments)
        _, [sent] = run_call(client, call, {"completion": {"values": []}})
        assert "context" not in sent["params"]


@pytest.mark.parametrize(("version", "asks"), [(A, True), (B, False), (E, False)])
def test_complete_undeclared_capability_depends_on_revision(version: str, asks: bool) -> None:
    client = opened(version, {"prompts": {}})
    call = client.complete("p", "a", "")
    if asks:  # there was no such capability then
        assert value(client, call, {"completion": {"values": []}}).values == []
    else:
        with pytest.raises(LocalProtocolError, match="completions"):
            value(client, call)


# -- Log messages ----------------------------------------------------------------------------------


def message(level: str = "info", **more: Any) -> Message:
    return notification("notifications/message", {"level": level, "data": {"a": 1}} | more)


@pytest.mark.requirement("LOG-2")
@pytest.mark.parametrize("version", VERSIONS)
def test_on_log_gets_log_messages(version: str) -> None:
    received: list[t.LoggingMessageParams] = []
    client = opened(version, on_log=received.append)
    client.receive_messages(
        message("emergency", logger="l"), message("no level"), notification("notifications/nobody")
    )
    assert received == [t.LoggingMessageParams(level="emergency", data={"a": 1}, logger="l")]
    silent = opened(version)
    silent.receive_messages(message())
    assert silent.reports == []


def test_on_log_before_open_gets_log_messages() -> None:
    received: list[t.LoggingMessageParams] = []
    client = PlayedClient(D, on_log=received.append)
    client._open()
    client.receive_messages(message("debug"))
    assert [params.level for params in received] == ["debug"]


def test_on_elicitation_complete_is_called() -> None:
    received: list[t.ElicitationCompleteParams] = []
    client = opened(D, on_elicitation_complete=received.append)
    client.receive_messages(
        notification("notifications/elicitation/complete", {"elicitationId": "page-1"})
    )
    assert [params.elicitation_id for params in received] == ["page-1"]
    client = opened(D)
    client.receive_messages(
        notification("notifications/elicitation/complete", {"elicitationId": "page-1"})
    )
    assert client.reports == []


def test_on_log_raising_is_reported_only() -> None:
    raised = KeyError("mine")

    def fail(params: t.LoggingMessageParams) -> None:
        raise raised

    client = opened(D, on_log=fail)
    call = client.call_tool("t")
    call.send(None)
    sent = single(client.harness.take_sent())
    client.receive_messages(message(), message(), result(sent["id"], CONTENT))
    assert client.reports == [("on_log failed", raised)] * 2
    assert value(client, call).text == "x"


def test_on_log_raising_base_exception_propagates() -> None:
    def fail(params: t.LoggingMessageParams) -> None:
        raise KeyboardInterrupt

    client = opened(D, on_log=fail)
    with pytest.raises(KeyboardInterrupt):
        client.receive_messages(message())


def levels_sent(client: PlayedClient) -> list[Message]:
    """Return the log levels that were sent as requests of their own."""
    return [
        message for message in client.harness.take_sent() if message["method"] == "logging/setLevel"
    ]


@pytest.mark.requirement("LOG-3")
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("options", "level"),
    [
        ({}, None),
        ({"log_level": None}, None),
        ({"log_level": "warning"}, "warning"),
        ({"on_log": print}, "info"),
        ({"on_log": print, "log_level": None}, "info"),
        ({"on_log": print, "log_level": "debug"}, "debug"),
    ],
)
def test_log_level_is_sent_as_revision_defines(
    version: str, options: Any, level: str | None
) -> None:
    """Stateful revisions set it by a request; 2026-07-28 repeats it in each `_meta`."""
    client = PlayedClient(version, **options)
    client.open(OFFERS)
    sent = levels_sent(client)
    call = client.call_tool("t")
    call.send(None)
    meta = single(client.harness.take_sent())["params"].get("_meta", {})
    if version in STATEFUL:
        assert [each["params"] for each in sent] == ([{"level": level}] if level else [])
        assert LEVEL not in meta
    else:
        assert sent == []
        assert meta.get(LEVEL) == level
    call.close()


@pytest.mark.parametrize("version", [D, E])
def test_log_level_without_logging_capability_is_not_sent(version: str) -> None:
    client = PlayedClient(version, on_log=print, log_level="debug")
    client.open({"tools": {}})
    assert levels_sent(client) == []
    _, [sent] = run_call(client, client.call_tool("t"), CONTENT)
    assert LEVEL not in sent["params"].get("_meta", {})
    with pytest.raises(LocalProtocolError, match="capability logging"):
        value(client, client.set_log_level("debug"))


@pytest.mark.requirement("LOG-3")
@pytest.mark.parametrize("version", STATEFUL)
def test_set_log_level_in_old_revisions_sends_request(version: str) -> None:
    client = opened(version, log_level="info")
    found, [sent] = run_call(client, client.set_log_level("error", timeout=3), {})
    assert found is None
    assert (sent["method"], params(sent)) == ("logging/setLevel", {"level": "error"})
    with pytest.raises(PeerError):
        value(client, client.set_log_level("debug"), error(0))


def test_set_log_level_in_2026_is_sent_with_next_request() -> None:
    client = opened(E, log_level="info")
    assert run_call(client, client.set_log_level("error")) == (None, [])
    _, [sent] = run_call(client, client.call_tool("t"), CONTENT)
    assert sent["params"]["_meta"][LEVEL] == "error"
    _, [sent] = run_call(
        client, client.list_tools(meta={LEVEL: "debug", "com.example/x": 1}), page()
    )
    assert sent["params"]["_meta"][LEVEL] == "debug"  # of this request alone
    assert sent["params"]["_meta"]["com.example/x"] == 1
    _, [sent] = run_call(client, client.ping(), {"supportedVersions": [E], "capabilities": {}})
    assert sent["params"]["_meta"][LEVEL] == "error"


@pytest.mark.parametrize("level", ["loud", "INFO", "", 3, ["info"]])
def test_set_log_level_unknown_raises(level: Any) -> None:
    if level:
        with pytest.raises(ValueError, match="there is no log level"):
            PlayedClient(D, log_level=level)
    client = opened(D)
    with pytest.raises(ValueError, match="there are debug, info"):
        value(client, client.set_log_level(level))
    assert client.harness.take_sent() == []


@pytest.mark.parametrize(
    ("answer", "reported"),
    [({}, None), (error(0), PeerError), ([], RemoteProtocolError), (None, None)],
)
def test_log_level_rejected_at_open_is_reported(answer: Any, reported: Any) -> None:
    client = PlayedClient(D, log_level="debug")
    client.open(OFFERS)
    [sent] = levels_sent(client)
    if answer is None:
        client._conn.close()
        client.receive_messages()
    elif "error" in answer:
        client.receive_messages(error(sent["id"]))
    else:
        client.receive_messages(result(sent["id"], answer))
    assert [(problem, type(exc)) for problem, exc in client.reports] == (
        [("the server rejected the log level", reported)] if reported else []
    )


# -- Opening ---------------------------------------------------------------------------------------


def test_open_with_known_peer_sends_no_probe() -> None:
    first = opened(E, {"tools": {}, "logging": {}})
    second = PlayedClient(E, known_peer=first.peer, log_level="debug")
    second._open()
    for event in second.harness.events():
        second._handle_event(event)
    assert second.harness.take_sent() == []
    _, [sent] = run_call(second, second.call_tool("t"), CONTENT)
    assert sent["params"]["_meta"][LEVEL] == "debug"


@pytest.mark.parametrize(
    ("versions", "needs_handshake"), [((E, D), True), ((D,), False), ((D, C), False)]
)
def test_client_knows_whether_probed_server_needs_handshake(
    versions: tuple[str, ...], needs_handshake: bool
) -> None:
    """Only a refused 2026-07-28 probe shows it: a client that never probes can't know."""
    options: ClientConfigOptions = {"versions": versions}
    client = PlayedClient(D, **options)
    client._open()
    *_, probe = client.harness.take_sent()
    if E in versions:
        client.receive_messages(error(probe["id"], -32602, "Invalid request parameters"))
        probe = single(client.harness.take_sent())
    assert not client.needs_handshake
    info = {"name": "s", "version": "1"}
    opened = {"capabilities": {}, "protocolVersion": D, "serverInfo": info}
    client.receive_messages(result(probe["id"], opened))
    assert client.peer.dialect.version == D
    assert client.needs_handshake is needs_handshake


def test_versions_without_probe_after_failed_probe() -> None:
    options: ClientConfigOptions = {"versions": [E, D, C]}
    client = PlayedClient(D, **options)
    client._open()
    client._conn.receive_data(b"", 0.0)
    for event in client.harness.events():
        client._handle_event(event)
    assert client.versions_without_probe() == [D, C]


def test_notification_names_exist_in_protocol() -> None:
    known = {
        row.name for dialect in DIALECTS.values() for row in dialect.receives[Role.CLIENT].values()
    }
    assert {*_INVALIDATES, "notifications/message"} <= known


# -- Over HTTP -------------------------------------------------------------------------------------


def with_headers(version: str, offers: Message = OFFERS, **options: Any) -> PlayedClient:
    client = opened(version, offers, **options)
    client._conn.check_headers = check_headers
    return client


def sent_headers(client: PlayedClient) -> Any:
    return [out.headers for out in client._conn.messages_to_send()]


def test_call_headers_are_sent() -> None:
    client = with_headers(E)
    call = client.list_tools(headers={"X-A": "1"})
    call.send(None)
    assert sent_headers(client) == [{"X-A": "1"}]
    call.close()


def test_call_with_headers_bypasses_cache() -> None:
    client = with_headers(E)
    value(client, client.list_tools(), page("a", ttl=LONG))
    assert (
        len(run_call(client, client.list_tools(headers={"X-A": "1"}), page("b", ttl=LONG))[1]) == 1
    )
    assert names(value(client, client.list_tools())) == "a"


def test_call_headers_without_http_raise() -> None:
    client = opened(E)
    with pytest.raises(LocalProtocolError, match="sends no headers"):
        run_call(client, client.ping(headers={"X-A": "1"}))
    run_call(client, client.ping(headers={}), {"supportedVersions": [E], "capabilities": {}})


def test_call_header_invalid_raises() -> None:
    client = with_headers(E)
    with pytest.raises(ValueError, match="Mcp-Name is set by the protocol"):
        run_call(client, client.ping(headers={"Mcp-Name": "1"}))


@pytest.mark.requirement("HDR-14")
@pytest.mark.parametrize("cache", [True, False])
def test_header_mismatch_lists_tools_and_retries(cache: bool) -> None:
    client = with_headers(E, cache=cache)
    value(client, client.list_tools(), page("t", ttl=LONG))
    answers: tuple[Message, ...] = (
        error(0, -32020, "Header mismatch"),
        page("t", ttl=LONG),
        {"content": []},
    )
    found, sent = run_call(client, client.call_tool("t", {"a": 1}), *answers)
    assert isinstance(found, t.CallToolResult)
    assert [each["method"] for each in sent] == ["tools/call", "tools/list", "tools/call"]
    assert params(sent[0]) == params(sent[2])
    assert sent[0]["id"] != sent[2]["id"]


@pytest.mark.parametrize(
    ("headers", "version", "answers"),
    [
        (True, E, [error(0, -32020, "no"), page("t"), error(0, -32020, "no")]),  # once
        (True, E, [error(0, -32021, "no")]),
        (False, E, [error(0, -32020, "no")]),
    ],
)
def test_tool_call_other_error_is_not_retried(
    headers: bool, version: str, answers: list[Any]
) -> None:
    client = opened(version)
    client._conn.check_headers = check_headers if headers else None
    with pytest.raises(PeerError, match="no"):
        run_call(client, client.call_tool("t"), *answers)


@pytest.mark.parametrize("version", STATEFUL)
@pytest.mark.parametrize("changed", [True, False])
def test_new_session_gets_log_level(version: str, changed: bool) -> None:
    """A new session starts with the server's default, so the level set last is sent again."""
    client = opened(version, log_level="error")
    if changed:
        value(client, client.set_log_level("debug"), {})
    client._conn.reinitialize(client.now)
    handshake = single(client.harness.take_sent())
    offers = {
        "protocolVersion": version,
        "capabilities": OFFERS,
        "serverInfo": {"name": "s", "version": "1"},
    }
    client.receive_messages(result(handshake["id"], offers))
    _, level = client.harness.take_sent()
    assert (level["method"], level["params"]) == (
        "logging/setLevel",
        {"level": "debug" if changed else "error"},
    )


def test_new_session_forgets_output_schemas() -> None:
    """The server may have been restarted with other tools of the same names."""
    client = opened(D)
    value(client, client.list_tools(), {"tools": [WEATHER]})
    client._conn.reinitialize(client.now)
    offers = {
        "protocolVersion": D,
        "capabilities": OFFERS,
        "serverInfo": {"name": "s", "version": "1"},
    }
    client.receive_messages(result(single(client.harness.take_sent())["id"], offers))
    client.harness.take_sent()
    # What it gives is not held against what the tool of the same name gave before.
    other = value(
        client, client.call_tool("weather"), {"content": [], "structuredContent": {"other": 1}}
    )
    assert other.structured_content == {"other": 1}


@pytest.mark.parametrize("name", ["call_tool", "start_tool"])
def test_method_shows_the_options_of_calls(name: str) -> None:
    """`help` and editors show them, rather than `**options`."""
    parameters = inspect.signature(getattr(AbstractClient, name)).parameters
    assert {*CallOptions.__annotations__} <= {*parameters}
    assert "options" not in parameters


# -- Options and defaults --------------------------------------------------------------------------


def test_meta_of_a_call_precedes_that_of_the_client() -> None:
    """A call may have a log level of its own, which the next one doesn't keep."""
    client = opened(E, log_level="info")
    levels = []
    for options in {}, {"meta": {LEVEL: "debug", "x/y": 1}}, {}:
        found: Any = options
        _, [sent] = run_call(client, client.call_tool("t", **found), CONTENT)
        levels.append((sent["params"]["_meta"][LEVEL], sent["params"]["_meta"].get("x/y")))
    assert levels == [("info", None), ("debug", 1), ("info", None)]


def test_log_level_of_a_server_without_logging_cannot_be_set() -> None:
    client = opened(D, {"tools": {}})
    with pytest.raises(LocalProtocolError, match="declare the capability logging") as refused:
        value(client, client.set_log_level("info"))
    assert refused.value.fault is Fault.MISSING_CAPABILITY
    assert client.harness.take_sent() == []


@pytest.mark.parametrize(
    ("wishes", "wanted"),
    [
        ({"tools": True}, (Change("tools"),)),
        ({"prompts": True}, (Change("prompts"),)),
        ({"resources": True}, (Change("resources"),)),
        ({"resources": ["x:1"], "uris": ["x:2"]}, (Change(uri="x:1"), Change(uri="x:2"))),
        (
            {"resources": True, "uris": ("x:2",), "tools": True},
            (Change("tools"), Change("resources"), Change(uri="x:2")),
        ),
    ],
)
def test_listen_subscribes_to_what_is_wanted(wishes: Any, wanted: Any) -> None:
    """A minute is the default for its beginning."""
    client = opened(E)
    subscription = client.listen(**wishes)
    assert (subscription._wanted, subscription._options) == (wanted, {"timeout": 60.0})
    assert client.listen(**wishes, timeout=None)._options == {"timeout": None}


@pytest.mark.parametrize("wishes", [{"resources": "x:1"}, {"uris": "x:1"}])
def test_listen_to_a_string_of_uris_is_refused(wishes: Any) -> None:
    with pytest.raises(TypeError, match="give URIs as a list, even a single one"):
        opened(E).listen(**wishes)


def test_listen_to_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="name a list or a resource"):
        opened(E).listen()


@pytest.mark.parametrize("version", VERSIONS)
def test_roots_are_announced_until_2025_11_25(version: str) -> None:
    """In 2026-07-28 a server asks when it needs them, and nothing is sent."""
    client = opened(version, on_roots=list)
    client.roots_changed()
    sent = [each["method"] for each in client.harness.take_sent()]
    assert sent == ([] if version == E else ["notifications/roots/list_changed"])
    client._conn.close()
    client._pump()
    assert client.is_closed
    with pytest.raises(ConnectionLost):
        client.roots_changed()


def test_roots_of_a_client_without_them_are_not_waited_for() -> None:
    client = opened(D)
    with pytest.raises(LocalProtocolError, match="without on_roots"):
        value(client, client.roots_requested())


def test_end_of_the_connection_is_given_as_it_is() -> None:
    """During the connection and after it."""
    client = opened(D)
    waiting = client.wait_closed()
    waiting.send(None)
    client._conn.close()
    client._pump()
    with pytest.raises(StopIteration) as first:
        waiting.send(None)
    again = value(client, client.wait_closed())
    assert isinstance(first.value.value, ConnectionLost)
    assert str(first.value.value) == str(again) == "the client was closed"


def test_calls_that_begin_while_the_server_waits_are_paused() -> None:
    """Two waits at once: the time of a call goes on when both are over."""
    client = opened(D)

    def begun() -> ByHand[Any]:
        steps = client._once("ping", None)
        call: ByHand[Any] = ByHand(client._send, client._clock, steps, {"timeout": 10})
        call.begin()
        return call

    before = begun()
    client.pause_timeouts(1)
    client.pause_timeouts(1)
    during = begun()
    assert (before.pause_count, during.pause_count) == (2, 2)
    client.pause_timeouts(-1)
    client.pause_timeouts(-1)
    assert (before.pause_count, during.pause_count, begun().pause_count) == (0, 0, 0)


def test_cache_that_is_cleared_gives_nothing() -> None:
    """And without a cache there is nothing to clear."""
    client = opened(E)
    value(client, client.list_tools(), page("a", ttl=60_000))
    assert names(value(client, client.list_tools())) == "a"
    client.clear_cache()
    assert names(value(client, client.list_tools(), page("b", ttl=60_000))) == "b"
    uncached = opened(E, cache=False)
    uncached.clear_cache()
    for _ in range(2):
        _, sent = run_call(uncached, uncached.list_tools(), page("a", ttl=60_000))
        assert len(sent) == 1
