"""The official Python client (`mcp` 2.3) and our server over HTTP: what there is only there. Sessions and their end, streams that end
early or break and are taken up again, headers that repeat an argument, a server that ends.

What is the same over every transport is in `test_sdk_client*.py`, which play their conversations over HTTP too.
"""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, Self

import httpx2
import pytest
import trio
from mcp import Client
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp.client.subscriptions import ToolsListChanged
from mcp_types import TextContent
from msgspec import Meta

from mcp_core import ALL
from mcp_trio import Context, Server
from tests.interop.official import C, D, E, error_of, load, served, unfinished_streams
from tests.interop.wire import Line, line_to

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


class Asked(NamedTuple):
    """One request of the client's, and how it was answered. `method` is that of the message in it."""

    verb: str
    session: str | None
    version: str | None
    method: str
    status: int
    kind: str


class Recorded:
    """What a client does over HTTP: `Client(recorded.transport(url))`."""

    def __init__(self, **options: Any) -> None:
        self.exchanges: list[Asked] = []
        self.session = ""
        self._more = trio.Event()
        self._http = httpx2.AsyncClient(event_hooks={"response": [self._answered]}, timeout=10, **options)

    def transport(self, url: str) -> Any:
        return streamable_http_client(url, http_client=self._http)

    def verbs(self) -> list[str]:
        return [each.verb for each in self.exchanges]

    async def until(self, verb: str) -> None:
        """Wait until the client has been answered to that."""
        while verb not in self.verbs():
            self._more = trio.Event()
            await self._more.wait()

    async def _answered(self, response: httpx2.Response) -> None:
        asked, answered = response.request.headers, response.headers
        message = json.loads(response.request.content or "{}")
        self.session = answered.get(SESSION_ID, self.session)
        self.exchanges.append(
            Asked(
                response.request.method,
                asked.get(SESSION_ID),
                asked.get("mcp-protocol-version"),
                message.get("method", ""),
                response.status_code,
                answered.get("content-type", ""),
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
        async with Recorded() as record, Client(record.transport(url), mode=mode, **options) as client:
            yield client, record


async def text_of(client: Client, tool: str, **arguments: Any) -> str:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    [content] = result.content
    assert isinstance(content, TextContent)
    return content.text


async def status_of(url: str, verb: str, **headers: str) -> int:
    """How somebody is answered who knows the id of a session, and nothing else."""
    note = {"jsonrpc": "2.0", "method": "notifications/nothing"} if verb == "POST" else None
    both = {"accept": f"application/json, {EVENTS}"}
    async with httpx2.AsyncClient() as http:
        return (await http.request(verb, url, json=note, headers=both | headers)).status_code


# -- Sessions ----------------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("SHL-11", "SHL-20", "SHL-24")
async def test_a_session_is_there_until_it_is_deleted() -> None:
    async with served(load("our_server.py")) as where:
        async with recorded(where.url, "legacy") as (client, record):
            assert await text_of(client, "echo", text="hello") == "hello"
            await record.until("GET")
            session = record.session
            assert await status_of(where.url, "POST", **{SESSION_ID: session}) == 202
        first, *rest = record.exchanges
        assert first == Asked("POST", None, None, "initialize", 200, "application/json")
        assert {(each.session, each.version) for each in rest} == {(session, D)}
        # It reads the list of tools of its own accord, after the first call.
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
async def test_a_session_that_was_ended_is_an_error_for_its_client() -> None:
    async with served(load("our_server.py")) as where, recorded(where.url, "legacy") as (client, record):
        assert await status_of(where.url, "DELETE", **{SESSION_ID: record.session}) == 204
        assert await error_of(client.call_tool("echo", {"text": "?"})) == (-32600, None)


async def test_a_session_ends_with_the_stream_of_2024_11_05() -> None:
    begun: list[str] = []
    async with served(load("our_server.py")) as where:
        with trio.fail_after(20):
            async with Client(
                sse_client(where.url, on_session_created=begun.append), mode="legacy"
            ) as client:
                assert client.protocol_version == D
                [id] = begun
                assert await status_of(f"{where.url}?session_id={id}", "POST") == 202
            # The server hears of it when it hears of it.
            while await status_of(f"{where.url}?session_id={id}", "POST") != 404:
                await trio.lowlevel.checkpoint()


@pytest.mark.parametrize(("mode", "over"), [(E, "http"), (E, "http-stateless"), ("legacy", "http-stateless")])
async def test_without_sessions_there_is_nothing_to_remember(mode: str, over: str) -> None:
    async with served(load("our_server.py"), over) as where:
        async with recorded(where.url, mode) as (client, record):
            assert await text_of(client, "echo", text="hello") == "hello"
        assert {each.session for each in record.exchanges} == {None}
        assert "DELETE" not in record.verbs()
        assert {each.status for each in record.exchanges if each.verb == "GET"} <= {405}


async def test_each_request_of_the_last_revision_says_what_it_is() -> None:
    async with served(load("our_server.py")) as where:
        async with recorded(where.url, "auto") as (client, record):
            await client.list_tools()
            await text_of(client, "weather", city="Rome")
        methods = ["server/discover", "tools/list", "tools/call"]
        assert record.exchanges == [
            Asked("POST", None, E, method, 200, "application/json") for method in methods
        ]
        assert [each.rpc_method for each in where.exchanges] == methods


@pytest.mark.parametrize("mode", [E, "legacy"])
@pytest.mark.parametrize(
    ("over", "kinds"),
    [
        ("http", {"echo": "application/json", "count": EVENTS}),
        ("http-sse", {"echo": EVENTS, "count": EVENTS}),
        ("http-json", {"echo": "application/json", "count": "application/json"}),
    ],
)
async def test_how_it_is_answered(mode: str, over: str, kinds: dict[str, str]) -> None:
    async def hear(progress: float, total: float | None, message: str | None) -> None:
        pass

    async with served(load("our_server.py"), over) as where, recorded(where.url, mode) as (client, record):
        for tool, arguments in ("echo", {"text": "x" * 300_000}), ("count", {"to": 3}):
            record.exchanges.clear()
            await client.call_tool(tool, arguments, progress_callback=hear)
            kind = [each.kind for each in record.exchanges if each.method == "tools/call"]
            assert (tool, kind) == (tool, [kinds[tool]])


async def test_what_cannot_be_asked_without_a_session_is_an_error() -> None:
    """The client never gets the question, and the call does not wait for an answer."""

    async def never(*params: Any) -> Any:
        raise AssertionError("it was asked")

    callbacks: dict[str, Any] = {
        f"{what}_callback": never for what in ("elicitation", "sampling", "list_roots")
    }
    async with (
        served(load("our_conversation.py"), "http-stateless") as where,
        recorded(where.url, "legacy", **callbacks) as (client, _),
    ):
        for tool, arguments in ("book", {"flight": "KL 1234"}), ("say", {"text": "Hello"}), ("where", {}):
            code, _ = await error_of(client.call_tool(tool, arguments))
            assert (tool, code) == (tool, -32601)


# -- Streams that end --------------------------------------------------------------------------------------------------------


class Steps:
    """A call of a tool that goes on in steps, each when the test says so, and what its client hears of it."""

    def __init__(self) -> None:
        self.next, self._steps = trio.open_memory_channel[str](10)
        self.released: list[bool] = []
        self.told: list[str | None] = []
        self.result = ""
        self._heard = trio.Event()

    async def work(self, context: Context) -> str:
        """Tell of each step; `leave` lets the client go, `end` is the last."""
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
        result = await client.call_tool("work", progress_callback=self._hear)
        self.result = "".join(block.text for block in result.content if isinstance(block, TextContent))

    async def take(self, *steps: str) -> None:
        for step in steps:
            await self.next.send(step)

    async def until_told(self, count: int) -> None:
        while len(self.told) < count:
            self._heard = trio.Event()
            await self._heard.wait()

    async def _hear(self, progress: float, total: float | None, message: str | None) -> None:
        self.told.append(message)
        self._heard.set()


@asynccontextmanager
async def working(mode: str, *versions: str) -> AsyncIterator[tuple[Steps, Line, Recorded]]:
    """A call under way, over a line that can be cut. It is over when the block is."""
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
    """How often the client came back: but for one, the GETs."""
    return record.verbs().count("GET") - 1


@pytest.mark.requirement("SHL-6", "SHL-7")
async def test_it_comes_back_when_it_is_let_go() -> None:
    async with working("legacy") as (steps, _, record):
        await steps.take("one", "leave", "two", "three")
        await steps.until_told(3)
        await steps.take("leave", "four", "end")
    assert steps.result == "4 steps"
    await steps.until_told(4)
    assert sorted(filter(None, steps.told)) == ["four", "one", "three", "two"]
    assert steps.released == [True, True]
    assert times_back(record) == 2


async def test_it_comes_back_when_it_is_let_go_before_anything_was_said() -> None:
    async with working("legacy") as (steps, _, record):
        await steps.take("leave", "end")
    assert (steps.result, times_back(record)) == ("0 steps", 1)


@pytest.mark.parametrize(("mode", "versions"), [(E, ()), ("legacy", (C,))])
async def test_who_would_not_come_back_is_not_let_go(mode: str, versions: tuple[str, ...]) -> None:
    async with working(mode, *versions) as (steps, _, _):
        await steps.take("leave", "one", "leave", "end")
    assert (steps.result, steps.released) == ("1 steps", [False, False])


@pytest.mark.requirement("SHL-9")
@pytest.mark.parametrize("version", [D, C])
async def test_it_comes_back_when_the_line_is_cut(version: str) -> None:
    """After a second, as we ask it to. The one of before 2025-11-25 does so too, once it has heard something."""
    async with working("legacy", version) as (steps, line, record):
        await steps.take("one")
        await steps.until_told(1)
        line.cut()
        await steps.take("two", "three", "end")
    assert steps.result == "3 steps"
    await steps.until_told(3)
    assert sorted(filter(None, steps.told)) == ["one", "three", "two"]
    assert record.session


async def test_a_call_of_the_last_revision_is_lost_with_its_line() -> None:
    gone = trio.Event()
    server = Server("lost")

    @server.tool
    async def wait(context: Context) -> None:
        """Tell of the start, and come to no end."""
        await context.progress(0)
        try:
            await trio.sleep_forever()
        finally:
            gone.set()

    async with served(server) as where, line_to(where.url) as line, recorded(line.url, E) as (client, _):

        async def hear(progress: float, total: float | None, message: str | None) -> None:
            line.cut()

        code, _ = await error_of(client.call_tool("wait", progress_callback=hear))
        assert code == -32000
        await gone.wait()


@pytest.mark.requirement("SHL-9", "SHL-14")
async def test_it_misses_no_change_while_its_stream_is_cut() -> None:
    told, hearing = trio.open_memory_channel[Any](10)
    server = load("our_server.py")
    async with (
        served(server) as where,
        line_to(where.url) as line,
        recorded(line.url, "legacy", message_handler=told.send) as (client, record),
    ):
        await record.until("GET")
        server.changed(prompts=True)
        assert (await hearing.receive()).method == "notifications/prompts/list_changed"
        line.cut()
        server.changed(tools=True)
        assert (await hearing.receive()).method == "notifications/tools/list_changed"
        assert record.verbs().count("GET") == 2
        assert await text_of(client, "echo", text="hello") == "hello"
        assert hearing.statistics().current_buffer_used == 0


# -- A server that ends ------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("SUB-8")
async def test_what_it_listens_to_ends_in_order_with_the_server() -> None:
    """Otherwise it would raise `SubscriptionLost`."""
    async with (
        served(load("our_server.py")) as where,
        recorded(where.url, E) as (client, _),
        client.listen(tools_list_changed=True) as changes,
    ):
        await client.call_tool("change", {"what": "tools"})
        where.stop.set()
        assert [event async for event in changes] == [ToolsListChanged()]


@pytest.mark.parametrize("mode", [E, "legacy"])
async def test_a_call_that_runs_gets_its_answer_when_the_server_ends(mode: str) -> None:
    server = Server("ending")
    running, stopping = trio.Event(), trio.Event()

    @server.tool
    async def work() -> str:
        """Work until the server is told to end, and a little longer."""
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

        await client.list_tools()  # otherwise it does so after the call

        nursery.start_soon(call)
        await running.wait()
        where.stop.set()
        stopping.set()


# -- Headers, and TLS ----------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("HDR-10")
async def test_an_argument_that_is_repeated_in_a_header() -> None:
    """Who has not read the list of tools does not know of it, is refused, and reads the list."""
    server = Server("regions")

    @server.tool
    def where_to(region: Annotated[str, Meta(extra_json_schema={"x-mcp-header": "Region"})]) -> str:
        """Tell the region."""
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


async def test_over_tls(authority: trustme.CA, certificate: ssl.SSLContext) -> None:
    import ssl

    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    async with served(load("our_server.py"), tls=certificate) as where:
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
