"""The client against a server that the test plays line by line, and against a real one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from mcp_core import (
    CallTimeout,
    ConnectionLost,
    LocalProtocolError,
    McpTrioError,
    PeerError,
    RemoteProtocolError,
    ToolError,
)
from mcp_core import types as t
from mcp_core.registry import Context, Server
from tests.harness import either
from tests.harness.jsonrpc import (
    VERSIONS,
    A,
    D,
    E,
    error,
    notification,
    request,
    result,
)
from tests.harness.wire.client import (
    OFFERS,
    CallTask,
    break_sending,
    break_stream,
    connected,
)
from tests.harness.wire.lines import ERAS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mcp_trio import Client
    from tests.harness.jsonrpc import Message
    from tests.harness.wire.lines import Wire

pytestmark = pytest.mark.usefixtures("each_driver")

TOOL = {"name": "t", "inputSchema": {"type": "object"}}


# --- calls and answers --------------------------------------------------------------------------

CALLS: list[tuple[Callable[[Client], Awaitable[Any]], str, Any, Any, Any]] = [
    (
        lambda client: client.list_tools(),
        "tools/list",
        None,
        {"tools": [TOOL]},
        [t.Tool(name="t", input_schema={"type": "object"})],
    ),
    (
        lambda client: client.call_tool("t"),
        "tools/call",
        {"name": "t"},
        {"content": [{"type": "text", "text": "x"}]},
        t.CallToolResult(content=[t.TextContent("x")]),
    ),
    (
        lambda client: client.call_tool("t", {"a": 1}),
        "tools/call",
        {"name": "t", "arguments": {"a": 1}},
        {"content": [], "isError": True},
        t.CallToolResult(content=[], is_error=True),
    ),
    (
        lambda client: client.list_resources(),
        "resources/list",
        None,
        {"resources": [{"uri": "a:b", "name": "b"}]},
        [t.Resource(uri="a:b", name="b")],
    ),
    (
        lambda client: client.list_resource_templates(),
        "resources/templates/list",
        None,
        {"resourceTemplates": [{"uriTemplate": "a:{b}", "name": "b"}]},
        [t.ResourceTemplate(uri_template="a:{b}", name="b")],
    ),
    (
        lambda client: client.read_resource("a:b"),
        "resources/read",
        {"uri": "a:b"},
        {"contents": [{"uri": "a:b", "text": "x"}]},
        t.ReadResourceResult(contents=[t.ResourceContents(uri="a:b", text="x")]),
    ),
    (
        lambda client: client.list_prompts(),
        "prompts/list",
        None,
        {"prompts": [{"name": "p"}]},
        [t.Prompt(name="p")],
    ),
    (
        lambda client: client.get_prompt("p"),
        "prompts/get",
        {"name": "p"},
        {"messages": []},
        t.GetPromptResult(messages=[]),
    ),
    (
        lambda client: client.get_prompt("p", {"a": "b"}),
        "prompts/get",
        {"name": "p", "arguments": {"a": "b"}},
        {"messages": []},
        t.GetPromptResult(messages=[]),
    ),
    (lambda client: client.ping(), "ping", None, {}, t.EmptyResult()),
    (lambda client: client.request("acme/do", {"a": 1}), "acme/do", {"a": 1}, {"b": 2}, {"b": 2}),
    (lambda client: client.request("ping"), "ping", None, {}, t.EmptyResult()),
]


@pytest.mark.parametrize(("call", "method", "params", "answer", "gives"), CALLS)
async def test_client_call_is_one_request_and_returns_its_result(
    call: Callable[[Client], Awaitable[Any]],
    method: str,
    params: Any,
    answer: Any,
    gives: Any,
    nursery: either.Nursery,
) -> None:
    """The test plays the server line by line, for each method of a client."""
    async with connected() as (client, wire):
        call_task = CallTask(nursery, lambda: call(client))
        sent = await wire.receive()
        if method == "tools/call":
            params = {"_meta": {"progressToken": sent["id"]}, **params}
        assert (sent["method"], sent.get("params")) == (method, params)
        await wire.send(result(sent["id"], answer))
        await call_task.ended.wait()
        assert call_task.error is None
        assert call_task.result == gives


async def test_client_reported_progress_keeps_a_call_without_callback_from_timing_out(
    nursery: either.Nursery,
) -> None:
    """The server reports progress each 50 s, and answers after 100 s. The timeout is 60 s."""
    async with connected() as (client, wire):
        call_task = CallTask(nursery, lambda: client.call_tool("slow"))
        token = (await wire.receive())["params"]["_meta"]["progressToken"]
        for number in range(2):
            await either.sleep(50)
            params = {"progressToken": token, "progress": number}
            await wire.send(
                {"jsonrpc": "2.0", "method": "notifications/progress", "params": params}
            )
        await either.sleep(50)
        await wire.send(result(token, {"content": []}))
        await call_task.ended.wait()
        assert call_task.error is None


@pytest.mark.requirement("META-6", "META-7", "STDIO-9")
async def test_client_stateless_request_has_version_and_client_info(
    nursery: either.Nursery,
) -> None:
    async with connected(E) as (client, wire):
        call_task = CallTask(nursery, lambda: client.call_tool("t", meta={"com.example/mine": 1}))
        sent = await wire.receive()
        assert sent["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] == E
        declared = sent["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"]
        assert declared == {"extensions": {"io.modelcontextprotocol/tasks": {}}}
        assert sent["params"]["_meta"]["io.modelcontextprotocol/clientInfo"]["name"] == "mcp-trio"
        assert sent["params"]["_meta"]["com.example/mine"] == 1
        await wire.send(result(sent["id"], {"content": [], "resultType": "complete"}))
        await call_task.ended.wait()
        assert call_task.result.content == []


async def test_client_stateless_ping_is_server_discover(nursery: either.Nursery) -> None:
    async with connected(E) as (client, wire):
        call_task = CallTask(nursery, client.ping)
        assert (await wire.receive())["method"] == "server/discover"
        nursery.cancel_scope.cancel()
        del call_task


async def test_client_list_reads_all_pages(nursery: either.Nursery) -> None:
    """The empty string is a cursor like any other: only a missing one ends the list."""
    async with connected() as (client, wire):
        call_task = CallTask(nursery, client.list_prompts)
        for expected, cursor in (None, "1"), ({"cursor": "1"}, ""), ({"cursor": ""}, None):
            sent = await wire.receive()
            assert sent.get("params") == expected
            page: Message = {"prompts": [{"name": f"before {cursor}"}]}
            await wire.send(
                result(sent["id"], page if cursor is None else page | {"nextCursor": cursor})
            )
        await call_task.ended.wait()
        assert [prompt.name for prompt in call_task.result] == [
            "before 1",
            "before ",
            "before None",
        ]


async def test_client_list_with_a_repeated_cursor_raises(nursery: either.Nursery) -> None:
    async with connected() as (client, wire):
        call_task = CallTask(nursery, client.list_tools)
        names = iter("abc")
        while not call_task.ended.is_set():
            sent = await wire.receive()
            page = {"tools": [TOOL | {"name": next(names)}], "nextCursor": "again"}
            await wire.send(result(sent["id"], page))
            await either.wait_all_tasks_blocked()
        assert isinstance(call_task.error, RemoteProtocolError)
        assert await wire.is_silent()


@pytest.mark.parametrize("version", [D, E])
@pytest.mark.parametrize(
    ("cursor", "second", "problem"),
    [
        ("40", None, "the server has sent the last page and its cursor twice"),
        ("", None, "the server has sent the last page and its cursor twice"),
        ("", -32602, 'the server has refused its own cursor ""'),
    ],
)
async def test_client_list_of_a_server_that_ignores_cursors_ends(
    version: str,
    cursor: str,
    second: int | None,
    problem: str,
    nursery: either.Nursery,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The only page has a cursor, and asking with that gives the page again, or an error.

    After an error the list is read once more: the cursor may have expired.
    """
    async with connected(version) as (client, wire):
        found: list[str] = []
        call_task = CallTask(nursery, lambda: client.list_tools(problems=found))
        page = {"tools": [TOOL], "nextCursor": cursor}
        for _ in range(1 if second is None else 2):
            await wire.send(result((await wire.receive())["id"], page))
            sent = await wire.receive()
            assert sent["params"]["cursor"] == cursor
            await wire.send(
                result(sent["id"], page) if second is None else error(sent["id"], second, "what?")
            )
        await call_task.ended.wait()
        assert [each.name for each in call_task.result] == [TOOL["name"]]
        assert found == [f"tools/list ends after 1 items in 1 pages: {problem}"]
        assert found[0] in caplog.text
        assert await wire.is_silent()


async def test_client_list_whose_cursor_is_refused_raises(nursery: either.Nursery) -> None:
    async with connected() as (client, wire):
        call_task = CallTask(nursery, client.list_tools)
        for _ in range(2):  # it begins once more
            page = {"tools": [TOOL], "nextCursor": "2"}
            await wire.send(result((await wire.receive())["id"], page))
            await wire.send(error((await wire.receive())["id"], -32602, "what?"))
        await call_task.ended.wait()
        assert isinstance(call_task.error, PeerError)


@pytest.mark.requirement("RPC-11", "ERR-10")
async def test_client_error_response_raises_peer_error(nursery: either.Nursery) -> None:
    async with connected() as (client, wire):
        call_task = CallTask(nursery, lambda: client.call_tool("t"))
        sent = await wire.receive()
        await wire.send(error(sent["id"], 1234, "not today", data=[1]))
        await call_task.ended.wait()
        assert isinstance(call_task.error, PeerError)
        assert (call_task.error.code, call_task.error.message, call_task.error.data) == (
            1234,
            "not today",
            [1],
        )


@pytest.mark.parametrize(
    ("version", "answer"),
    [
        (D, {"content": 5}),
        (D, {"content": [{"type": "image"}]}),
        (D, [1]),
        (E, {"resultType": "strange", "content": []}),
        (E, {"resultType": "input_required"}),
    ],
)
async def test_client_invalid_result_fails_its_call_only(
    version: str, answer: Any, nursery: either.Nursery
) -> None:
    """A second call is under way at the same time, and still gets its result."""
    async with connected(version) as (client, wire):
        call_task = CallTask(nursery, lambda: client.call_tool("t"))
        other = CallTask(nursery, lambda: client.call_tool("u"))
        sent = {
            message["params"]["name"]: message["id"]
            for message in (await wire.receive(), await wire.receive())
        }
        await wire.send(result(sent["t"], answer))
        await call_task.ended.wait()
        assert isinstance(call_task.error, RemoteProtocolError)
        await wire.send(result(sent["u"], {"content": []}))
        await other.ended.wait()
        assert other.result == t.CallToolResult(content=[])


GARBAGE: list[Any] = [
    b"a line that was printed",
    b'{"jsonrpc":"2.0","id":1,"result":{},"error":{}}',
    b"[]",
    b"\xff\xfe",
    result(999, {}),
    result(None, {}),
    error(None),
    {"jsonrpc": "2.0"},
    notification("notifications/nobody/knows"),
    notification("notifications/progress", {"progressToken": 999, "progress": 1}),
    notification("notifications/tools/list_changed"),
]


@pytest.mark.requirement("STDIO-6", "PROG-13")
@pytest.mark.parametrize("garbage", GARBAGE, ids=str)
async def test_client_garbage_does_not_disturb_a_call(
    garbage: Any, nursery: either.Nursery
) -> None:
    async with connected() as (client, wire):
        call_task = CallTask(nursery, lambda: client.call_tool("t"))
        sent = await wire.receive()
        await wire.send(garbage)
        await either.wait_all_tasks_blocked()
        await wire.send(result(sent["id"], {"content": []}))
        await call_task.ended.wait()
        assert call_task.result == t.CallToolResult(content=[])


@pytest.mark.requirement("PING-1", "PING-2", "CAP-3")
async def test_client_answers_requests_of_the_server(nursery: either.Nursery) -> None:
    async with connected() as (_, wire):
        await wire.send(
            request("s1", "ping"), request("s2", "roots/list"), request("s3", "no/such")
        )
        answers = [await wire.receive() for _ in range(3)]
        assert answers[0] == result("s1", {})
        assert [(each["id"], each["error"]["code"]) for each in answers[1:]] == [
            ("s2", -32601),
            ("s3", -32601),
        ]


@pytest.mark.requirement("CAP-3", "LIFE-14")
async def test_client_method_not_offered_is_not_sent() -> None:
    async with connected() as (client, wire):
        for method in "logging/setLevel", "server/discover", "tasks/list":
            with pytest.raises(LocalProtocolError):
                await client.request(method)
        assert await wire.is_silent()


async def test_client_concurrent_calls_are_answered_in_any_order(nursery: either.Nursery) -> None:
    async with connected() as (client, wire):
        callers = [CallTask(nursery, lambda n=n: client.call_tool(f"t{n}")) for n in range(32)]  # type: ignore[misc]
        sent = {
            (message := await wire.receive())["params"]["name"]: message["id"] for _ in range(32)
        }
        assert len(set(sent.values())) == 32
        for n in reversed(range(32)):
            await wire.send(result(sent[f"t{n}"], {"content": [{"type": "text", "text": str(n)}]}))
        for n, call_task in enumerate(callers):
            await call_task.ended.wait()
            assert call_task.result.content[0].text == str(n)


async def test_client_knows_its_peer() -> None:
    async with connected(A) as (client, _):
        assert client.peer.dialect.version == A
        assert client.peer.info == t.Implementation(name="played", version="1")
        assert repr(client).startswith("<Client of <Connection client READY 2024-11-05")


# --- cancellation and timeouts ------------------------------------------------------------------


@pytest.mark.requirement("CXL-1", "CXL-2", "CXL-3", "CXL-9", "CXL-13")
@pytest.mark.parametrize("version", ERAS)
async def test_client_call_scope_cancelled_sends_cancellation(
    version: str, nursery: either.Nursery
) -> None:
    async with connected(version) as (client, wire):
        call_task = CallTask(nursery, lambda: client.call_tool("t"))
        sent = await wire.receive()
        call_task.scope.cancel()
        cancellation = await wire.receive()
        assert cancellation["method"] == "notifications/cancelled"
        assert cancellation["params"]["requestId"] == sent["id"]
        assert call_task.scope.cancelled_caught
        assert "0 calls" in repr(client)
        await wire.send(result(sent["id"], {"content": []}))  # they crossed on the stream
        assert await wire.is_silent()


async def test_client_response_before_cancellation_wins(nursery: either.Nursery) -> None:
    async with connected() as (client, wire):
        call_task = CallTask(nursery, lambda: client.call_tool("t"))
        sent = await wire.receive()
        client._conn.receive_data(
            b'{"jsonrpc":"2.0","id":%d,"result":{"content":[]}}\n' % sent["id"], 0.0
        )
        client._pump()
        call_task.scope.cancel()
        await call_task.ended.wait()
        if either.on_trio():
            assert call_task.result == t.CallToolResult(content=[])
        else:  # there, a task that was cancelled gets no result
            assert call_task.scope.cancelled_caught
        assert await wire.is_silent()


@pytest.mark.requirement("CXL-6")
@pytest.mark.parametrize("version", ERAS)
async def test_client_cancelled_call_cancels_the_handler(version: str) -> None:
    """A trio cancellation at one end becomes one in the handler at the other end."""
    server = Server("witness")
    seen: list[str] = []

    @server.tool
    async def wait() -> None:
        """Wait."""
        seen.append("started")
        try:
            await either.sleep_forever()
        finally:
            seen.append("finally")

    async with either.connect(server, versions=[version]) as client:
        with either.CancelScope() as scope:
            async with either.open_nursery() as nursery:
                nursery.start_soon(client.call_tool, "wait")
                await either.wait_all_tasks_blocked()
                assert seen == ["started"]
                scope.cancel()
        await client.ping()
        assert seen == ["started", "finally"]


@pytest.mark.parametrize(("delay", "requested", "seconds"), [(0.4, True, 0.4), (9.0, False, 1.0)])
async def test_client_waits_a_second_for_request_of_roots(
    delay: float,
    requested: bool,
    seconds: float,
    nursery: either.Nursery,
) -> None:
    """A server need not ever request the roots, so the wait has a limit."""

    async def ask(wire: Wire) -> None:
        await either.sleep(delay)
        await wire.send(request("r", "roots/list"))

    async with connected(on_roots=["file:///srv"]) as (client, wire):
        nursery.start_soon(ask, wire)
        start = either.current_time()
        assert await client.roots_requested() is requested
        assert either.current_time() - start == pytest.approx(seconds)
        if requested:
            assert (await wire.receive())["result"] == {"roots": [{"uri": "file:///srv"}]}


@pytest.mark.requirement("LIFE-21", "LIFE-22", "ERR-10")
@pytest.mark.parametrize(("timeout", "seconds"), [(60.0, 60.0), (2.5, 2.5), (0.0, 0.0)])
async def test_client_call_without_response_times_out(
    timeout: float, seconds: float, nursery: either.Nursery
) -> None:
    """The caller can catch it as a built-in `TimeoutError`, and the server may stop its work."""
    async with connected() as (client, wire):
        start = either.current_time()
        call = client.call_tool("t") if timeout == 60.0 else client.call_tool("t", timeout=timeout)
        with pytest.raises(
            CallTimeout, match=rf"no answer to tools/call within {timeout:g} s"
        ) as caught:
            await call
        assert either.current_time() - start == pytest.approx(seconds)
        assert isinstance(caught.value, TimeoutError)
        assert isinstance(caught.value, McpTrioError)
        sent, cancellation = await wire.receive(), await wire.receive()
        assert cancellation["method"] == "notifications/cancelled"
        assert cancellation["params"]["requestId"] == sent["id"]


@pytest.mark.requirement("LIFE-22")
async def test_client_call_without_timeout_waits(nursery: either.Nursery) -> None:
    async with connected() as (client, wire):
        call_task = CallTask(nursery, lambda: client.call_tool("t", timeout=None))
        sent = await wire.receive()
        await either.sleep(80_000)
        await wire.send(result(sent["id"], {"content": []}))
        await call_task.ended.wait()
        assert call_task.result == t.CallToolResult(content=[])


@pytest.mark.requirement("LIFE-23")
@pytest.mark.parametrize(
    ("options", "step", "seconds"),
    [
        ({}, 49.0, 300),
        ({"max_timeout": 20}, 9.0, 20),
        ({"timeout": 10, "max_timeout": None}, 9.0, 397 * 9 + 10),
    ],
)
async def test_client_endless_progress_ends_at_max_timeout(
    options: Any, step: float, seconds: float, nursery: either.Nursery
) -> None:
    """Progress restarts the timeout, so only `max_timeout` protects against an endless call."""
    async with connected() as (client, wire):
        start = either.current_time()
        call_task = CallTask(
            nursery, lambda: client.call_tool("t", progress=lambda *_: None, **options)
        )
        sent = await wire.receive()
        for number in range(397):
            await either.sleep(step)
            if call_task.ended.is_set():
                break
            await wire.send(told_progress(sent["id"], number))
        await call_task.ended.wait()
        assert isinstance(call_task.error, CallTimeout)
        assert ("max_timeout" in str(call_task.error)) is (
            options.get("max_timeout", 300) is not None
        )
        assert (await wire.receive())["method"] == "notifications/cancelled"
        elapsed = either.current_time() - start
        assert seconds <= elapsed < seconds + step  # the limit is checked once per step


@pytest.mark.requirement("LIFE-23")
async def test_client_endless_pages_end_at_max_timeout(nursery: either.Nursery) -> None:
    """A list counts as one call: its pages share the time, and the last request is cancelled."""
    async with connected() as (client, wire):
        start = either.current_time()
        call_task = CallTask(nursery, lambda: client.list_tools(timeout=10, max_timeout=35))
        for number in range(3):  # each page arrives in time and restarts the timeout
            sent = await wire.receive()
            await either.sleep(9)
            await wire.send(result(sent["id"], {"tools": [TOOL], "nextCursor": str(number)}))
        sent = await wire.receive()
        await call_task.ended.wait()
        assert str(call_task.error) == (
            "tools/list was not over after 35 s in all (max_timeout: pass a longer one)"
        )
        assert either.current_time() - start == pytest.approx(35)
        cancellation = await wire.receive()
        assert (cancellation["method"], cancellation["params"]["requestId"]) == (
            "notifications/cancelled",
            sent["id"],
        )


@pytest.mark.parametrize("timeout", [-1.0, float("nan")])
async def test_client_invalid_timeout_raises_before_sending(timeout: float) -> None:
    async with connected() as (client, wire):
        with pytest.raises(ValueError, match="seconds"):
            await client.call_tool("t", timeout=timeout)
        assert await wire.is_silent()


# --- progress -----------------------------------------------------------------------------------


def told_progress(token: Any, progress: float, **more: Any) -> Message:
    return notification(
        "notifications/progress", {"progressToken": token, "progress": progress} | more
    )


@pytest.mark.requirement("PROG-2", "META-14")
async def test_client_progress_comes_in_order_and_before_the_result(
    nursery: either.Nursery,
) -> None:
    """Values that go back and those after the result never reach the callback."""
    async with connected() as (client, wire):
        received: list[tuple[float, float | None, str | None]] = []
        call_task = CallTask(
            nursery, lambda: client.call_tool("t", progress=lambda *values: received.append(values))
        )
        sent = await wire.receive()
        token = sent["params"]["_meta"]["progressToken"]
        await wire.send(
            told_progress(token, 1, total=3, message="one"),
            told_progress(token, 0.5),
            told_progress(token, 2),
            result(sent["id"], {"content": []}),
            told_progress(token, 3),
        )
        await call_task.ended.wait()
        await either.wait_all_tasks_blocked()
        assert received == [(1, 3, "one"), (2, None, None)]
        assert call_task.error is None


async def test_client_progress_is_not_requested_without_a_callback(nursery: either.Nursery) -> None:
    async with connected() as (client, wire):
        call_task = CallTask(nursery, lambda: client.read_resource("a:b"))
        sent = await wire.receive()
        assert "_meta" not in sent["params"]
        await wire.send(told_progress(sent["id"], 1), result(sent["id"], {"contents": []}))
        await call_task.ended.wait()
        assert call_task.error is None


async def test_client_progress_of_real_server_arrives_in_order() -> None:
    server = Server("steps")

    @server.tool
    async def steps(context: Context) -> str:
        """Take steps."""
        for step in range(50):
            await context.progress(step, 50)
        return "there"

    received: list[float] = []
    async with either.connect(server) as client:
        await client.call_tool("steps", progress=lambda progress, *_: received.append(progress))
        assert received == list(range(50))


async def test_client_progress_restarts_the_timeout(nursery: either.Nursery) -> None:
    async with connected() as (client, wire):
        start = either.current_time()
        call_task = CallTask(
            nursery, lambda: client.call_tool("t", timeout=10, progress=lambda *_: None)
        )
        sent = await wire.receive()
        for step in range(3):
            await either.sleep(9)
            await wire.send(told_progress(sent["params"]["_meta"]["progressToken"], step))
        await call_task.ended.wait()
        assert isinstance(call_task.error, CallTimeout)
        assert either.current_time() - start == pytest.approx(37)


@pytest.mark.parametrize("raised", [ValueError, SystemExit, KeyboardInterrupt, RecursionError])
async def test_client_progress_callback_failure_fails_and_cancels_its_call(
    raised: type[BaseException], nursery: either.Nursery
) -> None:
    """Even a `SystemExit` belongs to the caller of that call, not to the connection."""
    caught: list[BaseException] = []
    received: list[object] = []

    def fail(*values: object) -> None:
        received.append(values)
        raise raised("in the callback")

    async def call(client: Client) -> None:
        try:
            await client.call_tool("t", progress=fail)
        except BaseException as exc:  # noqa: BLE001 - so that it does not end the test
            caught.append(exc)

    async with connected() as (client, wire):
        nursery.start_soon(call, client)
        sent = await wire.receive()
        other = CallTask(nursery, lambda: client.call_tool("u"))
        also_asked = await wire.receive()
        token = sent["params"]["_meta"]["progressToken"]
        await wire.send(told_progress(token, 1), told_progress(token, 2))
        values = await wire.receive()
        assert values["method"] == "notifications/cancelled"
        assert values["params"]["requestId"] == sent["id"]
        [error] = caught
        assert type(error) is raised
        assert received == [(1, None, None)]
        await wire.send(result(also_asked["id"], {"content": []}))
        await other.ended.wait()
        assert other.error is None


# --- the cache ----------------------------------------------------------------------------------

FRESH: Message = {
    "tools": [TOOL],
    "ttlMs": 60_000,
    "cacheScope": "private",
    "resultType": "complete",
}


@pytest.mark.requirement("CACHE-5", "CACHE-6")
async def test_client_fresh_cached_list_is_not_requested_again(nursery: either.Nursery) -> None:
    async with connected(E) as (client, wire):
        for _ in range(2):
            call_task = CallTask(nursery, client.list_tools)
            await wire.send(result((await wire.receive())["id"], FRESH))
            await call_task.ended.wait()
            assert await client.list_tools() == call_task.result
            await either.sleep(61)
            assert (
                await wire.is_silent()
            )  # a stale list is requested when it is needed, not when it expires


async def test_client_forget_clears_the_cache(nursery: either.Nursery) -> None:
    async with connected(E) as (client, wire):
        for _ in range(2):
            call_task = CallTask(nursery, client.list_tools)
            await wire.send(result((await wire.receive())["id"], FRESH))
            await call_task.ended.wait()
            client.clear_cache()
    async with connected(D) as (client, _):
        client.clear_cache()  # nothing is kept there


@pytest.mark.parametrize("timeout", [60.0, 0.0, None])
async def test_client_cache_hit_is_a_checkpoint(
    timeout: float | None, nursery: either.Nursery
) -> None:
    async with connected(E) as (client, wire):
        call_task = CallTask(nursery, client.list_tools)
        await wire.send(result((await wire.receive())["id"], FRESH))
        await call_task.ended.wait()
        with either.assert_checkpoints():
            assert await client.list_tools(timeout=timeout) == call_task.result
        with either.CancelScope() as scope:
            scope.cancel()
            await client.list_tools(timeout=timeout)
        assert scope.cancelled_caught
        assert await wire.is_silent()


# --- log messages -------------------------------------------------------------------------------


@pytest.mark.parametrize("version", VERSIONS)
async def test_client_on_log_failure_affects_nothing_else(
    version: str, caplog: pytest.LogCaptureFixture, nursery: either.Nursery
) -> None:
    """The level was refused and the callback raised: both are logged, and the call ends well."""

    def fail(params: t.LoggingMessageParams) -> None:
        raise ValueError(f"cannot stand {params.level}")

    offers = OFFERS | {"logging": {}}
    async with connected(version, offers, on_log=fail, log_level="error") as (client, wire):
        call_task = CallTask(nursery, lambda: client.call_tool("t"))
        sent = await wire.receive()
        if version != E:
            assert (sent["method"], sent["params"]) == ("logging/setLevel", {"level": "error"})
            await wire.send(error(sent["id"], -32602, "no such level"))
            sent = await wire.receive()
        else:
            assert sent["params"]["_meta"]["io.modelcontextprotocol/logLevel"] == "error"
        logged = notification("notifications/message", {"level": "error", "data": "x"})
        await wire.send(logged, result(sent["id"], {"content": []}))
        await call_task.ended.wait()
        assert call_task.error is None
    reported = [
        (each.getMessage(), str(each.exc_info[1])) for each in caplog.records if each.exc_info
    ]
    refused = (
        [] if version == E else [("the server rejected the log level", "no such level (-32602)")]
    )
    assert reported == [*refused, ("on_log failed", "cannot stand error")]


# --- the end ------------------------------------------------------------------------------------


@pytest.mark.requirement("LIFE-17")
@pytest.mark.parametrize("how", ["hangs up", "breaks", "says its last half word"])
async def test_client_connection_end_fails_every_call_at_once(
    how: str, nursery: either.Nursery
) -> None:
    """20 calls end without any timeout, and the error quotes the half line that came last."""
    async with connected() as (client, wire):
        start = either.current_time()
        callers = [CallTask(nursery, lambda: client.call_tool("t")) for _ in range(20)]
        for _ in range(20):
            await wire.receive()
        if how == "says its last half word":
            await wire.stream.send_all(b'{"jsonrpc":"2.0","id":')
        if how == "breaks":
            break_stream(client)
        else:
            await wire.stream.aclose()
        for call_task in callers:
            await call_task.ended.wait()
            assert type(call_task.error) is ConnectionLost
        why = "the connection broke" if how == "breaks" else "the server closed the connection"
        rest = '; it wrote a line that is not an MCP message: b\'{"jsonrpc":"2.0","id":\''
        end = rest if how == "says its last half word" else ""
        assert {str(call_task.error) for call_task in callers} == {why + end}
        with pytest.raises(ConnectionLost, match=why):
            await client.ping()
        assert either.current_time() == start


async def test_client_broken_sending_is_noticed_at_the_next_call(nursery: either.Nursery) -> None:
    async with connected() as (client, wire):
        call_task = CallTask(nursery, lambda: client.call_tool("t"))
        await wire.receive()
        break_sending(client)
        with pytest.raises(ConnectionLost, match="the connection broke"):
            await client.ping()
        await call_task.ended.wait()
        assert isinstance(call_task.error, ConnectionLost)


async def test_client_aclose_fails_every_call_at_once(nursery: either.Nursery) -> None:
    """Another task closes the client: 20 calls end, each with a notification to the server."""
    async with connected() as (client, wire):
        start = either.current_time()
        callers = [CallTask(nursery, lambda: client.call_tool("t")) for _ in range(20)]
        for _ in range(20):
            await wire.receive()
        nursery.start_soon(client.aclose)  # from another task
        for call_task in callers:
            await call_task.ended.wait()
            assert type(call_task.error) is ConnectionLost
            assert str(call_task.error) == "the client was closed"
        with pytest.raises(ConnectionLost, match="the client was closed"):
            await client.list_tools()
        assert [message["method"] for message in await wire.receive_all()] == [
            "notifications/cancelled"
        ] * 20
        assert either.current_time() == start


async def test_client_aclose_may_be_concurrent_and_repeated(nursery: either.Nursery) -> None:
    async with connected() as (client, wire):
        async with either.open_nursery() as closing:
            for _ in range(5):
                closing.start_soon(client.aclose)
        await client.aclose()
        assert await wire.receive_all() == []


async def test_client_aclose_does_not_end_other_clients() -> None:
    async with connected() as (one, _), connected() as (two, wire):
        await one.aclose()
        async with either.open_nursery() as nursery:
            nursery.start_soon(two.ping)
            sent = await wire.receive()
            await wire.send(result(sent["id"]))
        await two.aclose()


async def test_client_aclose_sends_queued_messages(nursery: either.Nursery) -> None:
    async with connected() as (client, wire):
        CallTask(nursery, lambda: client.call_tool("t"))
        await either.wait_all_tasks_blocked()
        with either.CancelScope() as scope:
            scope.cancel()
            await client.call_tool("u")
        await client.aclose()
        assert [message["method"] for message in await wire.receive_all()] == [
            "tools/call",
            "tools/call",
            "notifications/cancelled",
            "notifications/cancelled",  # of the first call, which is pending
        ]


async def test_client_aclose_gives_up_on_an_unread_stream_after_a_second(
    nursery: either.Nursery,
) -> None:
    async with connected() as (client, _):
        callers = []
        for _ in range(3):
            callers.append(CallTask(nursery, lambda: client.call_tool("t" * 100_000)))
            await either.wait_all_tasks_blocked()
        start = either.current_time()
        await client.aclose()
        assert either.current_time() - start == pytest.approx(1.0)
        for call_task in callers:
            assert isinstance(call_task.error, ConnectionLost)


async def test_client_cancelled_around_a_call_ends_at_once() -> None:
    start = either.current_time()
    with either.CancelScope() as scope:
        async with connected() as (client, _), either.open_nursery() as nursery:
            nursery.start_soon(client.call_tool, "t")
            await either.wait_all_tasks_blocked()
            scope.cancel()
    assert either.current_time() == start


async def test_client_block_exception_is_not_wrapped() -> None:
    server = Server("fine")
    server.add_tool(no_luck)

    async def use() -> None:
        async with either.connect(server) as client:
            (await client.call_tool("no_luck")).raise_for_error()

    with pytest.raises(ToolError, match="no luck"):
        await use()


def no_luck() -> None:
    """Fail."""
    raise ToolError("no luck")
