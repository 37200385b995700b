"""The official Python client (`mcp` 2.3) with our server, for what exists over HTTP only.

Sessions and their end, streams that end early or break and are resumed, mirrored argument headers,
and server shutdown. `test_sdk_client*.py` play everything else over HTTP too.
"""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, Self

import httpx2
import pytest
import trio
from mcp import Client, MCPError
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp.client.subscriptions import ToolsListChanged
from mcp_types import TextContent
from msgspec import Meta

from mcp_core import ALL
from mcp_trio import Context, Server
from tests.interop.official import C, D, E, error_of, everything, served, unfinished_streams
from tests.interop.tcp_proxy import TcpProxy, line_to

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator

    import trustme

pytestmark = [
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),
    unfinished_streams,
]
SESSION_ID = "mcp-session-id"
EVENTS = "text/event-stream"


class RecordedRequest(NamedTuple):
    """One request of the client and its response. `method` is from the message in it."""

    verb: str
    session: str | None
    version: str | None
    method: str
    status: int
    kind: str


class Recorded:
    """A recorder of the client's HTTP requests: `Client(recorded.transport(url))`."""

    def __init__(self, **options: Any) -> None:
        self.exchanges: list[RecordedRequest] = []
        self.session = ""
        self._more = trio.Event()
        self._http = httpx2.AsyncClient(
            event_hooks={"response": [self._answered]}, timeout=10, **options
        )

    def transport(self, url: str) -> Any:
        return streamable_http_client(url, http_client=self._http)

    def verbs(self) -> list[str]:
        return [each.verb for each in self.exchanges]

    async def until(self, verb: str) -> None:
        """Wait until a request with this verb has a response."""
        while verb not in self.verbs():
            self._more = trio.Event()
            await self._more.wait()

    async def _answered(self, response: httpx2.Response) -> None:
        sent, received = response.request.headers, response.headers
        message = json.loads(response.request.content or "{}")
        self.session = received.get(SESSION_ID, self.session)
        self.exchanges.append(
            RecordedRequest(
                response.request.method,
                sent.get(SESSION_ID),
                sent.get("mcp-protocol-version"),
                message.get("method", ""),
                response.status_code,
                received.get("content-type", ""),
            )
        )
        self._more.set()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._http.aclose()


@asynccontextmanager
async def recorded(url: str, mode: str, **options: Any) -> AsyncIterator[tuple[Client, Recorded]]:
    with trio.fail_after(20):
        async with (
            Recorded() as record,
            Client(record.transport(url), mode=mode, **options) as client,
        ):
            yield client, record


async def text_of(client: Client, tool: str, **arguments: Any) -> str:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    [content] = result.content
    assert isinstance(content, TextContent)
    return content.text


async def status_of(url: str, verb: str, **headers: str) -> int:
    """Return the status for a client that knows a session id and nothing else."""
    note = {"jsonrpc": "2.0", "method": "notifications/nothing"} if verb == "POST" else None
    both = {"accept": f"application/json, {EVENTS}"}
    async with httpx2.AsyncClient() as http:
        return (await http.request(verb, url, json=note, headers=both | headers)).status_code


# -- Sessions --------------------------------------------------------------------------------------


@pytest.mark.requirement("SHL-11", "SHL-20", "SHL-24")
async def test_sdk_client_session_exists_until_deleted() -> None:
    """Each recorded request carries the session id, which is unknown after the DELETE."""
    async with served(everything()) as where:
        async with recorded(where.url, "legacy") as (client, record):
            assert await text_of(client, "echo", text="hello") == "hello"
            await record.until("GET")
            session = record.session
            assert await status_of(where.url, "POST", **{SESSION_ID: session}) == 202
        first, *rest = record.exchanges
        assert first == RecordedRequest("POST", None, None, "initialize", 200, "application/json")
        assert {(each.session, each.version) for each in rest} == {(session, D)}
        # The client itself lists the tools after the first call.
        assert {(each.method or each.verb): each.status for each in rest} == {
            "notifications/initialized": 202,
            "GET": 200,
            "tools/call": 200,
            "tools/list": 200,
            "DELETE": 204,
        }
        for verb in "POST", "GET", "DELETE":
            assert await status_of(where.url, verb, **{SESSION_ID: session}) == 404


@pytest.mark.requirement("SHL-24")
async def test_sdk_client_ended_session_is_an_error() -> None:
    async with (
        served(everything()) as where,
        recorded(where.url, "legacy") as (client, record),
    ):
        assert await status_of(where.url, "DELETE", **{SESSION_ID: record.session}) == 204
        assert await error_of(client.call_tool("echo", {"text": "?"})) == (-32600, None)


@pytest.mark.parametrize("over", ["http", "http-sse", "http-json"])
async def test_sdk_client_call_ends_with_its_session(over: str) -> None:
    """The call under way gets an error, and the client goes on to work."""
    async with (
        served(everything(), over) as where,
        recorded(where.url, "legacy") as (client, record),
    ):
        await client.list_tools()

        async def end_session() -> None:
            await trio.sleep(0.2)  # until the handler runs: the access log has no line of it yet
            assert await status_of(where.url, "DELETE", **{SESSION_ID: record.session}) == 204

        async with trio.open_nursery() as nursery:
            nursery.start_soon(end_session)
            assert await error_of(client.call_tool("wait", {})) == (-32603, None)


@pytest.mark.parametrize("mode", [E, "legacy"])
async def test_sdk_client_closed_during_call_ends_its_handler(mode: str) -> None:
    """The client is closed while the response to its call is being streamed."""
    started = trio.Event()

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        started.set()

    async def wait(client: Client) -> None:
        with pytest.raises(MCPError, match="Connection closed"):
            await client.call_tool("wait", {}, progress_callback=on_progress)

    async with served(everything()) as where, trio.open_nursery() as nursery:
        async with recorded(where.url, mode) as (client, _):
            nursery.start_soon(wait, client)
            await started.wait()
        async with recorded(where.url, mode) as (client, _):
            assert await text_of(client, "cancelled") == "yes"


async def test_sdk_client_http_sse_session_ends_with_its_stream() -> None:
    begun: list[str] = []
    async with served(everything()) as where:
        with trio.fail_after(20):
            async with Client(
                sse_client(where.url, on_session_created=begun.append), mode="legacy"
            ) as client:
                assert client.protocol_version == D
                [id] = begun
                assert await status_of(f"{where.url}?session_id={id}", "POST") == 202
            # The server notices the disconnect asynchronously.
            while await status_of(f"{where.url}?session_id={id}", "POST") != 404:
                await trio.lowlevel.checkpoint()


async def test_sdk_client_http_sse_at_sse_path() -> None:
    async with served(everything(), sse_path="/sse") as where:
        sse_url = where.url.removesuffix("/mcp") + "/sse"
        with trio.fail_after(20):
            # A later version in the headers does not make it the GET of another transport.
            headers = {"mcp-protocol-version": D}
            for more in {}, headers:
                async with Client(sse_client(sse_url, headers=more), mode="legacy") as client:
                    assert client.protocol_version == D
                    assert await text_of(client, "echo", text="hello") == "hello"
            async with Client(sse_url) as client:  # all else is served there, too
                assert client.protocol_version == E
        assert await status_of(where.url, "GET", **headers) == 405


@pytest.mark.parametrize(
    ("mode", "transport"), [(E, "http"), (E, "http-stateless"), ("legacy", "http-stateless")]
)
async def test_sdk_client_without_sessions_sends_no_session_id(mode: str, transport: str) -> None:
    async with served(everything(), transport) as where:
        async with recorded(where.url, mode) as (client, record):
            assert await text_of(client, "echo", text="hello") == "hello"
        assert {each.session for each in record.exchanges} == {None}
        assert "DELETE" not in record.verbs()
        assert {each.status for each in record.exchanges if each.verb == "GET"} <= {405}


async def test_sdk_client_stateless_requests_have_mirrored_headers() -> None:
    async with served(everything()) as where:
        async with recorded(where.url, "auto") as (client, record):
            await client.list_tools()
            await text_of(client, "weather", city="Rome")
        methods = ["server/discover", "tools/list", "tools/call"]
        assert record.exchanges == [
            RecordedRequest("POST", None, E, method, 200, "application/json") for method in methods
        ]
        assert [each.rpc_method for each in where.exchanges] == methods


@pytest.mark.parametrize("mode", [E, "legacy"])
@pytest.mark.parametrize(
    ("transport", "kinds"),
    [
        ("http", {"echo": "application/json", "count": EVENTS}),
        ("http-sse", {"echo": EVENTS, "count": EVENTS}),
        ("http-json", {"echo": "application/json", "count": "application/json"}),
    ],
)
async def test_sdk_client_response_content_types(
    mode: str, transport: str, kinds: dict[str, str]
) -> None:
    async def ignore(progress: float, total: float | None, message: str | None) -> None:
        pass

    async with (
        served(everything(), transport) as where,
        recorded(where.url, mode) as (client, record),
    ):
        for tool, arguments in ("echo", {"text": "x" * 300_000}), ("count", {"to": 3}):
            record.exchanges.clear()
            await client.call_tool(tool, arguments, progress_callback=ignore)
            kind = [each.kind for each in record.exchanges if each.method == "tools/call"]
            assert (tool, kind) == (tool, [kinds[tool]])


async def test_sdk_client_without_session_input_request_is_an_error() -> None:
    """The client never gets the question, and the call does not wait for an answer."""

    async def never(*params: Any) -> Any:
        raise AssertionError("it was asked")

    callbacks: dict[str, Any] = {
        f"{what}_callback": never for what in ("elicitation", "sampling", "list_roots")
    }
    async with (
        served(everything(), "http-stateless") as where,
        recorded(where.url, "legacy", **callbacks) as (client, _),
    ):
        for tool, arguments in (
            ("book", {"flight": "KL 1234"}),
            ("test_sampling", {"prompt": "Hello"}),
            ("test_input_required_result_list_roots", {}),
        ):
            code, _ = await error_of(client.call_tool(tool, arguments))
            assert (tool, code) == (tool, -32601)


# -- Streams that end ------------------------------------------------------------------------------


class Steps:
    """A tool call that proceeds in steps, each at a command of the test, and the progress that its
    client gets.
    """

    def __init__(self) -> None:
        self.next, self._steps = trio.open_memory_channel[str](10)
        self.released: list[bool] = []
        self.messages: list[str | None] = []
        self.result = ""
        self._more = trio.Event()

    async def work(self, context: Context) -> str:
        """Report each step; `leave` releases the client, `end` is the last."""
        done = 0
        async for step in self._steps:
            if step == "end":
                break
            if step == "leave":
                self.released.append(context.close_stream(0.02))
                continue
            done += 1
            await context.progress(done, None, step)
        return f"{done} steps"

    async def call(self, client: Client) -> None:
        result = await client.call_tool("work", progress_callback=self._on_progress)
        self.result = "".join(
            block.text for block in result.content if isinstance(block, TextContent)
        )

    async def take(self, *steps: str) -> None:
        for step in steps:
            await self.next.send(step)

    async def until_received(self, count: int) -> None:
        while len(self.messages) < count:
            self._more = trio.Event()
            await self._more.wait()

    async def _on_progress(self, progress: float, total: float | None, message: str | None) -> None:
        self.messages.append(message)
        self._more.set()


@asynccontextmanager
async def working(mode: str, *versions: str) -> AsyncIterator[tuple[Steps, TcpProxy, Recorded]]:
    """Yield a running call over a connection that can be cut. It ends with the block."""
    steps = Steps()
    server = Server("steps", versions=versions or ALL)
    server.tool(steps.work)
    async with (
        served(server) as where,
        line_to(where.url) as line,
        recorded(line.url, mode) as (client, record),
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(steps.call, client)
        yield steps, line, record


def times_back(record: Recorded) -> int:
    """Return how often the client reconnected: the number of GETs without the standalone stream."""
    return record.verbs().count("GET") - 1


@pytest.mark.requirement("SHL-6", "SHL-7")
async def test_sdk_client_released_reconnects() -> None:
    async with working("legacy") as (steps, _, record):
        await steps.take("one", "leave", "two", "three")
        await steps.until_received(3)
        await steps.take("leave", "four", "end")
    assert steps.result == "4 steps"
    await steps.until_received(4)
    assert sorted(filter(None, steps.messages)) == ["four", "one", "three", "two"]
    assert steps.released == [True, True]
    assert times_back(record) == 2


async def test_sdk_client_released_before_any_event_reconnects() -> None:
    async with working("legacy") as (steps, _, record):
        await steps.take("leave", "end")
    assert (steps.result, times_back(record)) == ("0 steps", 1)


@pytest.mark.parametrize(("mode", "versions"), [(E, ()), ("legacy", (C,))])
async def test_sdk_client_unable_to_reconnect_is_not_released(
    mode: str, versions: tuple[str, ...]
) -> None:
    async with working(mode, *versions) as (steps, _, _):
        await steps.take("leave", "one", "leave", "end")
    assert (steps.result, steps.released) == ("1 steps", [False, False])


@pytest.mark.requirement("SHL-9")
@pytest.mark.parametrize("version", [D, C])
async def test_sdk_client_after_cut_connection_reconnects(version: str) -> None:
    """The client waits the `retry` of one second. Before 2025-11-25 it reconnects only after an
    event.
    """
    async with working("legacy", version) as (steps, line, record):
        await steps.take("one")
        await steps.until_received(1)
        line.cut()
        await steps.take("two", "three", "end")
    assert steps.result == "3 steps"
    await steps.until_received(3)
    assert sorted(filter(None, steps.messages)) == ["one", "three", "two"]
    assert record.session


async def test_sdk_client_stateless_call_at_cut_connection_is_lost() -> None:
    """A stream of 2026-07-28 can't be resumed, so our handler is cancelled."""
    gone = trio.Event()
    server = Server("lost")

    @server.tool
    async def wait(context: Context) -> None:
        """Report the start, and never return."""
        await context.progress(0)
        try:
            await trio.sleep_forever()
        finally:
            gone.set()

    async with (
        served(server) as where,
        line_to(where.url) as line,
        recorded(line.url, E) as (client, _),
    ):

        async def cut(progress: float, total: float | None, message: str | None) -> None:
            line.cut()

        code, _ = await error_of(client.call_tool("wait", progress_callback=cut))
        assert code == -32000
        await gone.wait()


@pytest.mark.requirement("SHL-9", "SHL-14")
async def test_sdk_client_after_cut_stream_gets_missed_changes() -> None:
    """The change happens while the stream is down; the client's second GET brings it."""
    sent, received = trio.open_memory_channel[Any](10)
    server = everything()
    async with (
        served(server) as where,
        line_to(where.url) as line,
        recorded(line.url, "legacy", message_handler=sent.send) as (client, record),
    ):
        await record.until("GET")
        server.changed(prompts=True)
        assert (await received.receive()).method == "notifications/prompts/list_changed"
        line.cut()
        server.changed(tools=True)
        assert (await received.receive()).method == "notifications/tools/list_changed"
        assert record.verbs().count("GET") == 2
        assert await text_of(client, "echo", text="hello") == "hello"
        assert received.statistics().current_buffer_used == 0


# -- Server shutdown -------------------------------------------------------------------------------


@pytest.mark.requirement("SUB-8")
async def test_sdk_client_http_listen_at_server_shutdown_ends_in_order() -> None:
    """A subscription without an orderly end would raise `SubscriptionLost`."""
    async with (
        served(everything()) as where,
        recorded(where.url, E) as (client, _),
        client.listen(tools_list_changed=True) as changes,
    ):
        await client.call_tool("change", {"what": "tools"})
        where.stop.set()
        assert [event async for event in changes] == [ToolsListChanged()]


@pytest.mark.parametrize("mode", [E, "legacy"])
async def test_sdk_client_running_call_at_server_shutdown_is_answered(mode: str) -> None:
    """The handler ends within the grace period, so its result must still get out."""
    server = Server("ending")
    running, stopping = trio.Event(), trio.Event()

    @server.tool
    async def work() -> str:
        """Work until the shutdown, and a little longer."""
        running.set()
        await stopping.wait()
        await trio.sleep(0.02)
        return "done"

    async with (
        served(server) as where,
        recorded(where.url, mode) as (client, _),
        trio.open_nursery() as nursery,
    ):

        async def call() -> None:
            assert await text_of(client, "work") == "done"

        await client.list_tools()  # otherwise the client lists the tools after the call

        nursery.start_soon(call)
        await running.wait()
        where.stop.set()
        stopping.set()


# -- Headers, and TLS ------------------------------------------------------------------------------


@pytest.mark.requirement("HDR-10")
async def test_sdk_client_mirrored_argument_header_is_checked() -> None:
    """A client that has not listed the tools sends no header, is rejected, and then lists the
    tools.
    """
    server = Server("regions")

    @server.tool
    def where_to(region: Annotated[str, Meta(extra_json_schema={"x-mcp-header": "Region"})]) -> str:
        """Return the region."""
        return region

    async with served(server) as where:
        for knows in True, False:
            async with recorded(where.url, E) as (client, record):
                if knows:
                    await client.list_tools()
                for region in "eu", "Zürich ", "=?base64?":
                    assert await text_of(client, "where_to", region=region) == region
                found = [(each.method, each.status) for each in record.exchanges if each.method]
                called = ("tools/call", 200)
                listed = ("tools/list", 200)
                refused = [] if knows else [("tools/call", 400)]
                assert found == [*refused, listed, called, called, called]


async def test_sdk_client_over_tls_is_answered(
    authority: trustme.CA, certificate: ssl.SSLContext
) -> None:
    import ssl

    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    async with served(everything(), tls=certificate) as where:
        assert where.url.startswith("https:")
        with trio.fail_after(20):
            async with Recorded(verify=trusting) as record:
                for mode in E, "legacy":
                    async with Client(record.transport(where.url), mode=mode) as client:
                        assert await text_of(client, "echo", text="hello") == "hello"


@pytest.fixture
def authority() -> trustme.CA:
    import trustme

    return trustme.CA()


@pytest.fixture
def certificate(authority: trustme.CA) -> ssl.SSLContext:
    import ssl

    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    return context
