"""A server mounted in another: its handlers keep what is theirs, in both eras."""

from __future__ import annotations

import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from mcp_core import McpError, PeerError, ToolError
from mcp_core.registry import (
    Caller,
    Context,
    InvalidUrlElicitation,
    Proceed,
    RootsContext,
    Server,
    TaskOptions,
)
from mcp_core.types import (
    CreateMessageResult,
    PromptReference,
    RequestParams,
    ResourceTemplateReference,
    SamplingCapability,
    TextContent,
    ToolUseContent,
)
from tests.drivers.test_tasks import conversation, start, state_of
from tests.harness import either
from tests.harness.jsonrpc import D, E
from tests.harness.wire.lines import ERAS, Wire

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

pytestmark = [pytest.mark.usefixtures("each_driver"), pytest.mark.filterwarnings("ignore:tool ")]
both_eras = pytest.mark.parametrize("version", ERAS)


class Pair:
    """An outer server, and one that is mounted in it as `in`. `events` has what has run.

    Each notes the middlewares and lifespans with the name of their server, and a middleware with
    the name that it sees.
    """

    def __init__(self, *, middleware: bool = True) -> None:
        self.events: list[str] = []
        self.outer = self.make("outer", middleware)
        self.inner = self.make("inner", middleware)
        self.outer.mount(self.inner, "in")

    def make(self, name: str, middleware: bool = True) -> Server:
        @asynccontextmanager
        async def lifespan(server: Server) -> AsyncIterator[str]:
            self.events.append(f"enter {server.info.name}")
            yield f"{server.info.name}'s database"
            self.events.append(f"leave {server.info.name}")

        server = Server(name, lifespan=lifespan)

        async def note(context: Context, proceed: Proceed) -> object:
            params = context.params
            named = getattr(params, "name", getattr(getattr(params, "ref", None), "name", "-"))
            self.events.append(f"{context.server.info.name}: {context.method} {named}")
            context.state.setdefault("seen", []).append(name)
            return await proceed()

        if middleware:
            server.middleware(note)
        return server

    def take_events(self) -> list[str]:
        taken, self.events[:] = self.events[:], []
        return taken


def about(context: Context) -> str:
    return f"{context.server.info.name}, {context.lifespan}, {context.state.get('seen')}"


class Grind(RequestParams):
    grams: int


def declare_all(server: Server) -> None:
    @server.tool
    def plain(context: Context) -> str:
        return about(context)

    @server.tool
    async def waiting(context: Context) -> str:
        await either.sleep(1)
        return about(context)

    @server.tool(thread=True)
    def blocking(context: Context) -> str:
        return about(context)

    @server.tool
    def without_context(n: int) -> int:
        return n + 1

    @server.prompt
    def greet(whom: str, context: Context) -> str:
        return f"{whom}: {about(context)}"

    @server.resource("shop://{name}")
    def shelf(name: str, context: Context) -> str:
        return f"{name}: {about(context)}"

    @server.completion("greet", "whom")
    def people(typed: str, context: Context) -> list[str]:
        return [about(context)]

    @server.completion("shop://{name}", "name")
    def names(typed: str) -> list[str]:
        return [f"{typed}olong"]

    @server.method("acme/grind", params=Grind)
    def grind(params: Grind, context: Context) -> dict[str, Any]:
        return {"about": about(context), "grams": params.grams}


@both_eras
@pytest.mark.parametrize("middleware", [True, False])
async def test_mounted_handlers_of_each_kind_get_their_own_server(
    version: str, middleware: bool
) -> None:
    """Its lifespan too, and names without the prefix; `state` comes from the outer middleware."""
    pair = Pair(middleware=middleware)
    declare_all(pair.inner)
    expected = f"inner, inner's database, {['outer', 'inner'] if middleware else None}"
    async with either.connect(pair.outer, versions=[version]) as client:
        pair.take_events()

        def seen(method: str, name: str, inner_name: str = "") -> None:
            events = [f"outer: {method} {name}", f"inner: {method} {inner_name or name}"]
            assert pair.take_events() == (events if middleware else [])

        for tool in ("plain", "waiting", "blocking"):
            assert (await client.call_tool(f"in_{tool}")).text == expected
            seen("tools/call", f"in_{tool}", tool)
        assert (await client.call_tool("in_without_context", {"n": 1})).text == "2"
        seen("tools/call", "in_without_context", "without_context")
        prompt = await client.get_prompt("in_greet", {"whom": "Ada"})
        assert prompt.messages[0].content.text == f"Ada: {expected}"
        seen("prompts/get", "in_greet", "greet")
        read = await client.read_resource("shop://tea")
        assert read.contents[0].text == f"tea: {expected}"
        seen("resources/read", "-")
        completed = await client.complete(PromptReference("in_greet"), "whom", "A")
        assert completed.values == [expected]
        seen("completion/complete", "in_greet", "greet")
        completed = await client.complete(ResourceTemplateReference("shop://{name}"), "name", "o")
        assert completed.values == ["oolong"]
        assert len(pair.take_events()) == (2 if middleware else 0)
        made = await client.request("acme/grind", Grind(grams=3))
        assert made == {"about": expected, "grams": 3} | (
            {k: v for k, v in made.items() if k in ("_meta", "resultType")}
        )
        seen("acme/grind", "-")


@both_eras
async def test_mounted_twice_over_each_server_is_entered(version: str) -> None:
    """Through one that has middleware and one that has none, in either order."""
    for outside, inside in ((True, False), (False, True)):
        pair = Pair(middleware=outside)
        innermost = pair.make("innermost", inside)
        innermost.add_tool(about, description="Tell.")
        pair.inner.mount(innermost, "most")
        async with either.connect(pair.outer, versions=[version]) as client:
            pair.take_events()
            seen = ["outer", "inner"] if outside else ["innermost"]
            text = (await client.call_tool("in_most_about")).text
            assert text == f"innermost, innermost's database, {seen}"
            names = {"outer": "in_most_about", "inner": "most_about", "innermost": "about"}
            assert pair.take_events() == [f"{name}: tools/call {names[name]}" for name in seen]


async def test_lifespans_are_entered_once_from_the_outside_in() -> None:
    """Also the one of a server that is mounted in two ways, or by a lifespan."""
    pair = Pair(middleware=False)
    pair.inner.mount(pair.make("innermost"), "a")
    pair.outer.mount(pair.inner, "again")
    late = pair.make("late")
    own = pair.outer._lifespan
    assert own is not None

    @asynccontextmanager
    async def lifespan(server: Server) -> AsyncIterator[Any]:
        server.mount(late, "late")
        async with own(server) as value:
            yield value

    pair.outer._lifespan = lifespan
    names = ["outer", "inner", "innermost", "late"]
    async with either.connect(pair.outer):
        assert pair.take_events() == [f"enter {name}" for name in names]
    assert pair.take_events() == [f"leave {name}" for name in reversed(names)]
    async with either.connect(pair.outer), either.connect(pair.outer):  # the lifespan mounts again
        assert pair.take_events() == [f"enter {name}" for name in names] * 2
    assert pair.take_events() == [f"leave {name}" for name in reversed(names)] * 2
    async with either.connect(pair.inner):
        assert pair.take_events() == ["enter inner", "enter innermost"]


async def test_lifespan_of_mounted_server_that_fails_ends_serving() -> None:
    """Its exception is unchanged, and the lifespans around it are left."""
    left: list[str] = []

    @asynccontextmanager
    async def outer_lifespan(server: Server) -> AsyncIterator[None]:
        try:
            yield
        finally:
            left.append("outer")

    @asynccontextmanager
    async def failing(server: Server) -> AsyncIterator[None]:
        if server.info.name:
            raise FileNotFoundError("the database is gone")
        yield

    outer = Server("outer", lifespan=outer_lifespan)
    outer.mount(Server("inner", lifespan=failing))
    stream, _ = either.memory_pair()
    with pytest.raises(FileNotFoundError, match="the database is gone"):
        await either.serve_stream(outer, stream)
    assert left == ["outer"]


@pytest.mark.parametrize(("version", "counts"), [(D, ["1", "2", "1"]), (E, ["1", "1", "1"])])
async def test_session_state_belongs_to_one_server_and_session(
    version: str, counts: list[str]
) -> None:
    def count(context: Context) -> int:
        context.session_state["calls"] = context.session_state.get("calls", 0) + 1
        return int(context.session_state["calls"])

    pair = Pair()
    for server in (pair.outer, pair.inner):
        server.add_tool(count, description="Count.")
    for _ in range(2):  # a second session begins anew
        async with either.connect(pair.outer, versions=[version]) as client:
            names = ("in_count", "in_count", "count")
            assert [(await client.call_tool(name)).text for name in names] == counts


@both_eras
async def test_middleware_of_mounted_server_runs_before_arguments_are_read(version: str) -> None:
    """A client that it rejects learns nothing about them. What it raises and returns is sent."""
    outer, inner = Server("outer"), Server("inner")
    outer.mount(inner, "in")
    reads: list[str] = []

    @inner.tool
    def guarded(n: int) -> int:
        """Guard."""
        reads.append("called")
        return n

    @inner.middleware
    async def guard(context: Context, proceed: Proceed) -> object:
        match context.meta.get("how"):
            case "deny":
                raise McpError(-32001, "not you")
            case "tell":
                raise ToolError("not now")
            case "twice":
                await proceed()
        return await proceed()

    async with either.connect(outer, versions=[version]) as client:
        with pytest.raises(PeerError, match="not you"):
            await client.call_tool("in_guarded", {"m": 1}, meta={"how": "deny"})
        with pytest.raises(PeerError, match="Internal error"):  # as without a mount
            await client.call_tool("in_guarded", {"m": 1}, meta={"how": "tell"})
        assert reads == []
        result = await client.call_tool("in_guarded", {"m": 1})
        assert result.is_error
        assert "Unknown argument `m`" in result.text
        result = await client.call_tool("in_guarded", {"n": 1}, meta={"how": "twice"})
        assert result.text == "1"
        assert reads == ["called"] * 2


@both_eras
async def test_outer_middleware_that_proceeds_twice_enters_the_mounted_one_twice(
    version: str,
) -> None:
    """A guard of the mounted server sees each run of its handler."""
    pair = Pair()
    pair.inner.add_tool(about, description="Tell.")

    @pair.outer.middleware
    async def twice(context: Context, proceed: Proceed) -> object:
        if context.method == "tools/call":
            await proceed()
        return await proceed()

    async with either.connect(pair.outer, versions=[version]) as client:
        pair.take_events()
        await client.call_tool("in_about")
        call = "inner: tools/call about"
        assert pair.take_events() == ["outer: tools/call in_about", call, call]


FORM = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


@both_eras
@pytest.mark.parametrize("middleware", [True, False])
async def test_mounted_handler_asks_the_user(version: str, middleware: bool) -> None:
    """The state of 2026-07-28 is signed by the outer server, whose request it is."""
    pair = Pair(middleware=middleware)

    @pair.inner.tool
    async def book(context: Context) -> str:
        """Book."""
        answer = await context.elicit("Who?", FORM)
        assert answer.action == "accept"
        return f"{answer.data['name']}: {about(context)}"

    def fill_in(request: Any) -> dict[str, str]:
        return {"name": "Ada"}

    async with either.connect(pair.outer, versions=[version], on_elicit=fill_in) as client:
        text = (await client.call_tool("in_book")).text
    assert text.startswith("Ada: inner, inner's database")
    assert not pair.inner.has_keys


@both_eras
async def test_sampling_uses_mounted_tools_without_their_middleware(version: str) -> None:
    """A mounted handler names its own tools without the prefix, and an outer one with it."""
    pair = Pair()
    asked: list[str] = []

    @pair.inner.tool
    def stock(article: str, context: Context) -> int:
        """Count."""
        asked.append(context.server.info.name)
        return 3

    @pair.inner.tool
    def price(article: str) -> int:
        """Say the price."""
        asked.append("price")
        return 450

    def make(names: list[Any]) -> Any:
        async def advise(context: Context) -> str:
            answer = await context.sample_with_tools("Oolong?", names, max_tokens=9)
            return answer.text

        return advise

    pair.inner.add_tool(make(["stock", price]), name="advise", description="Advise.")
    pair.outer.add_tool(make(["in_stock", price]), name="advise", description="Advise.")
    for tool in ("in_advise", "advise"):
        uses = Uses("in_stock" if tool == "advise" else "stock")
        options: Any = {"on_sample": uses.answer, "sampling": uses.capability}
        async with either.connect(pair.outer, versions=[version], **options) as client:
            assert (await client.call_tool(tool)).text == "done"
    assert asked == ["inner"] * 2
    assert not [event for event in pair.events if event.startswith("inner: tools/call stock")]


class Uses:
    """A model that uses one tool, and is then done."""

    def __init__(self, tool: str) -> None:
        self.tool = tool
        self.capability = SamplingCapability(tools={})

    def answer(self, request: Any) -> Any:
        if isinstance(request.messages[-1].content, TextContent):
            assert self.tool in [tool.name for tool in request.tools]
            use = ToolUseContent("1", self.tool, {"article": "oolong"})
            return CreateMessageResult(
                role="assistant", content=use, model="m", stop_reason="toolUse"
            )
        return CreateMessageResult(role="assistant", content=TextContent("done"), model="m")


@both_eras
async def test_handlers_read_mounted_resources_without_their_middleware(version: str) -> None:
    """The outer server's handlers too, and the resource's function gets its own context."""
    pair = Pair()

    @pair.inner.resource("shop://shelf")
    def shelf(context: Context) -> str:
        return about(context)

    async def read(context: Context) -> str:
        contents = (await context.read_resource("shop://shelf")).contents
        return str(contents[0].text)

    for server in (pair.outer, pair.inner):
        server.add_tool(read, description="Read.")
    async with either.connect(pair.outer, versions=[version]) as client:
        for tool, seen in (("read", ["outer"]), ("in_read", ["outer", "inner"])):
            text = (await client.call_tool(tool)).text
            assert text == f"inner, inner's database, {seen}"
    assert not [event for event in pair.events if event.startswith("inner: resources")]


@both_eras
@pytest.mark.parametrize("middleware", [True, False])
async def test_mounted_tool_runs_as_a_task(version: str, middleware: bool) -> None:
    """Its context goes on when the call has become a task, and its record has the outer name."""
    pair = Pair(middleware=middleware)

    @pair.inner.tool(task=TaskOptions(detach=0))
    async def research(topic: str, context: Context) -> str:
        """Read."""
        await context.progress(1, 2, f"Reading about {topic}")
        await either.sleep(10)
        assert context.task is not None
        return about(context)

    async with conversation(version, pair.outer) as peer:
        task_id = await start(peer, "in_research", topic="owls")
        await either.sleep(1)
        assert (await state_of(peer, task_id))["statusMessage"] == "Reading about owls"
        await either.sleep(20)
        done = await state_of(peer, task_id)
        assert done["status"] == "completed"
        if version == D:
            done = {"result": await peer.result_of("tasks/result", {"taskId": task_id})}
        assert done["result"]["content"][0]["text"].startswith("inner, inner's database")
        params: dict[str, Any] = {"name": "in_research", "arguments": {}}
        if version == E:  # no task is made for arguments that are invalid
            refused = await peer.result_of("tools/call", params)
            assert refused["isError"]
            assert "taskId" not in refused


@both_eras
@pytest.mark.parametrize("middlewares", ["", "outer", "inner", "outer inner"])
async def test_visible_of_a_mounted_server_is_asked_once_for_each_request(
    version: str, middlewares: str
) -> None:
    """Its answer may change from one moment to the next, so a request has one."""
    pair = Pair(middleware=False)
    for server in pair.outer, pair.inner:
        if server.info.name in middlewares:

            @server.middleware
            async def pass_on(context: Context, proceed: Proceed) -> object:
                return await proceed()

    asked: list[str] = []

    def once(caller: Caller) -> bool:
        asked.append(caller.peer.dialect.version)
        return len(asked) == 1

    for decorate in (
        pair.inner.tool(name="run", visible=once),
        pair.inner.tool(name="task", visible=once, task="optional"),
        pair.inner.prompt(name="greet", visible=once),
        pair.inner.resource("shop://all", visible=once),
    ):

        @decorate
        async def handle() -> str:
            """Say it."""
            return "once"

    async with conversation(version, pair.outer) as peer:
        for method, params in (
            ("tools/call", {"name": "in_run"}),
            ("prompts/get", {"name": "in_greet"}),
            ("resources/read", {"uri": "shop://all"}),
        ):
            assert "once" in str(await peer.result_of(method, params))
            assert asked == [version]
            asked.clear()
        assert await start(peer, "in_task")
        assert asked == [version]


@both_eras
@pytest.mark.parametrize("middleware", [True, False])
async def test_mounted_tool_detaches_by_hand(version: str, middleware: bool) -> None:
    pair = Pair(middleware=middleware)

    @pair.inner.tool(task=TaskOptions(detach=None))
    async def publish(context: Context) -> str:
        """Publish."""
        detached = await context.detach()
        await context.progress(1)
        return f"{detached} {context.task is not None}"

    async with conversation(E, pair.outer) as peer:
        result = await peer.result_of("tools/call", {"name": "in_publish"})
        await either.sleep(1)
        done = await state_of(peer, result["taskId"])
    assert done["result"]["content"][0]["text"] == "True True"


async def test_hooks_on_roots_of_mounted_servers_run_too() -> None:
    """Each with its own server, lifespan and state of the session."""
    pair = Pair()
    happened: list[str] = []
    rescanned = either.Event()

    @pair.outer.on_roots_changed
    def note(context: RootsContext) -> None:
        happened.append(f"{context.server.info.name}, {context.lifespan}")

    @pair.inner.on_roots_changed
    async def rescan(context: RootsContext) -> None:
        happened.append(f"{context.server.info.name}, {context.lifespan}")
        context.session_state["roots"] = [root.uri for root in await context.roots()]
        rescanned.set()

    @pair.inner.tool
    def known(context: Context) -> list[str]:
        """List."""
        roots: list[str] = context.session_state["roots"]
        return roots

    options: Any = {"on_roots": lambda: ["file:///a"], "versions": [D]}
    async with either.connect(pair.outer, **options) as client:
        client.roots_changed()
        await rescanned.wait()
        assert (await client.call_tool("in_known")).text == '["file:///a"]'
    assert happened == ["outer, outer's database", "inner, inner's database"]


async def test_page_of_mounted_server_verifies_its_visitor_and_tells_the_client() -> None:
    """The author of a mounted server knows no other: its methods find the outer one's client."""
    pair = Pair(middleware=False)
    tokens: list[Any] = []

    @pair.inner.tool
    async def connect_calendar(context: Context) -> str:
        """Connect."""
        page = context.url_elicitation("connect")
        tokens.append(page)
        answer = await context.elicit_url(
            "Connect.", "https://example.com/", elicitation_id=page.elicitation_id
        )
        return answer.action

    client_end, server_end = either.memory_pair()
    async with either.open_nursery() as nursery:
        nursery.start_soon(either.serve_stream, pair.outer, server_end)
        peer = Wire(client_end)
        await peer.open_as_client(capabilities={"elicitation": {"url": {}}})
        call = await peer.request("tools/call", {"name": "in_connect_calendar"})
        await peer.answer(await peer.expect("elicitation/create"), {"action": "accept"})
        assert (await peer.expect_result(call))["content"][0]["text"] == "accept"
        token, found = tokens[0].token, tokens[0].elicitation_id
        visit: Any = {"principal": "", "now": time.time()}
        assert pair.inner.verify_url_elicitation(token, "connect", **visit) == found
        assert pair.outer.verify_url_elicitation(token, "connect", **visit) == found
        with pytest.raises(InvalidUrlElicitation):
            Server("other").verify_url_elicitation(token, "connect", **visit)
        pair.inner.elicitation_complete(found)
        told = await peer.expect("notifications/elicitation/complete")
        assert told["params"]["elicitationId"] == found
        await peer.aclose()


@both_eras
async def test_server_mounted_late_is_there_for_open_connections(version: str) -> None:
    outer = Server("outer")
    outer.add_tool(about, description="Tell.")
    async with either.connect(outer, versions=[version]) as client:
        assert [tool.name for tool in await client.list_tools()] == ["about"]
        late = Server("late")
        late.add_tool(about, description="Tell.")
        outer.mount(late, "late")
        assert [tool.name for tool in await client.list_tools()] == ["about", "late_about"]
        assert (await client.call_tool("late_about")).text == "late, None, None"
