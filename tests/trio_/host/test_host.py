"""A host of servers in this process: merged lists, calls, and what servers ask of the host."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
import trio
import trio.testing

import mcp_trio
from mcp_core import CallTimeout, PeerError
from mcp_core import types as t
from mcp_core.host import (
    ApprovalRequired,
    AuditRecord,
    CallDenied,
    NameCollision,
    ServerUnavailable,
    TooManyCalls,
    UnknownName,
    plain_name,
)
from mcp_core.runtime.host import HostLimits, MemoryApprovals
from mcp_trio.host._host import Host
from tests.drivers.played_host import PlayedServer, PlayedSource, tool
from tests.harness.forms import Seats
from tests.harness.jsonrpc import VERSIONS
from tests.levels import long

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mcp_core.runtime.host import CallQuestion


def make_server(name: str, versions: Iterable[str] = VERSIONS) -> mcp_trio.Server:
    """Return a server with a tool, a prompt, resources, and tools that ask the host."""
    server = mcp_trio.Server(name, instructions=f"About {name}.", versions=versions)

    @server.tool(annotations=t.ToolAnnotations(read_only_hint=True))
    def look(at: str = "nothing") -> str:
        """Look at something."""
        return f"{name} looks at {at}"

    @server.tool
    def write(text: str) -> str:
        """Write something."""
        return f"{name} writes {text}"

    @server.tool
    def fail() -> str:
        """Fail."""
        raise mcp_trio.ToolError("it does not work")

    @server.tool
    async def ask(context: mcp_trio.Context) -> str:
        """Ask for seats."""
        answer = await context.elicit("How many seats?", Seats)
        return f"{answer.data.count}" if answer.action == "accept" else answer.action

    @server.tool
    async def think(context: mcp_trio.Context) -> str:
        """Ask the model."""
        return (await context.sample("Well?", max_tokens=9)).text

    @server.tool
    async def places(context: mcp_trio.Context) -> str:
        """Return the roots."""
        return ", ".join(root.uri for root in await context.roots())

    @server.tool
    async def tell(context: mcp_trio.Context) -> str:
        """Log."""
        await context.log("info", f"{name} logs")
        return "logged"

    @server.prompt
    def review(code: str) -> str:
        """Ask for a review."""
        return f"{name} reviews {code}"

    @server.resource("notes://shared")
    def shared() -> str:
        return f"shared of {name}"

    @server.resource(f"notes://{name}")
    def own() -> str:
        return f"own of {name}"

    @server.resource("pages://{number}")
    def page(number: int) -> str:
        return f"page {number} of {name}"

    return server


def slow_server(started: trio.Event) -> mcp_trio.Server:
    """Return a server with a read-only tool that never returns."""
    server = mcp_trio.Server("slow")

    @server.tool(annotations=t.ToolAnnotations(read_only_hint=True))
    async def wait() -> str:
        """Wait."""
        started.set()
        await trio.sleep_forever()
        raise AssertionError

    return server


def text_of(result: t.ReadResourceResult) -> str:
    text = result.contents[0].text
    assert text is not None
    return text


# -- Merged lists --------------------------------------------------------------------------------


async def test_lists_of_servers_are_merged(autojump_clock: trio.abc.Clock) -> None:
    """Both servers offer the same names, so tools get a prefix and a shared URI becomes unique."""
    async with Host({"a": make_server("a"), "b": make_server("b")}) as host:
        assert {each.state for each in host.status().values()} == {"ready"}
        looks = [each for each in host.tools() if each.tool.name == "look"]
        assert [(each.name, each.server) for each in looks] == [
            ("mcp__a__look", "a"),
            ("mcp__b__look", "b"),
        ]
        assert looks[0].description == "Look at something."
        assert list(looks[0].input_schema["properties"]) == ["at"]
        assert [each.name for each in host.prompts()] == ["mcp__a__review", "mcp__b__review"]
        assert [(each.uri, each.label) for each in host.resources()] == [
            ("mcp-gateway://a/notes%3A%2F%2Fshared", "@a:notes://shared"),
            ("notes://a", "@a:notes://a"),
            ("mcp-gateway://b/notes%3A%2F%2Fshared", "@b:notes://shared"),
            ("notes://b", "@b:notes://b"),
        ]
        assert [each.server for each in host.resource_templates()] == ["a", "b"]
        assert host.instructions() == {"a": "About a.", "b": "About b."}
        assert host.collisions() == []
        assert host.tools() is host.tools()  # built once


async def test_resource_is_read_by_uri_label_and_gateway_uri(
    autojump_clock: trio.abc.Clock,
) -> None:
    """A bare URI is enough while only one server has it; otherwise the error names both servers."""
    async with Host({"a": make_server("a"), "b": make_server("b")}) as host:
        assert text_of(await host.read("notes://b")) == "own of b"
        assert text_of(await host.read("@b:notes://shared")) == "shared of b"
        assert text_of(await host.read("@a:pages://7")) == "page 7 of a"
        for each in host.resources():
            assert each.server in text_of(await host.read(each.uri))
        with pytest.raises(NameCollision, match=r"notes://shared of a and of .* of b"):
            await host.read("notes://shared")
        with pytest.raises(UnknownName, match="there is no resource notes://none"):
            await host.read("notes://none")
        with pytest.raises(UnknownName):
            await host.read("@c:notes://shared")
        with pytest.raises(PeerError):
            await host.read("@a:notes://none")


async def test_prompt_is_got_by_its_merged_name(autojump_clock: trio.abc.Clock) -> None:
    async with Host({"a": make_server("a"), "b": make_server("b")}) as host:
        result = await host.get_prompt("mcp__b__review", {"code": "x = 1"})
        assert result.messages[0].content == t.TextContent("b reviews x = 1")
        with pytest.raises(UnknownName, match="did you mean mcp__b__review"):
            await host.get_prompt("mcp__b__revieww")


async def test_plain_names_that_collide_are_left_out_and_named(
    autojump_clock: trio.abc.Clock,
) -> None:
    config = {"a": make_server("a"), "b": make_server("b")}
    async with Host(config, names=plain_name) as host:
        assert host.tools() == ()
        assert host.prompts() == ()
        assert len(host.collisions()) == 8
        with pytest.raises(NameCollision, match="look is the name of look of a and of look of b"):
            await host.call("look")
        assert (await host.call_tool("a", "look")).text == "a looks at nothing"
        await host.remove("b")
        assert (await host.call("look")).text == "a looks at nothing"


@pytest.mark.parametrize(
    "name",
    ["x" * 200, "my.server/v2", "Grüße 世界", "a b", "__", "\u202eevil", "a" * 64, "\n", "@x:y"],
)
async def test_server_with_any_name_has_tools_that_fit(
    name: str, autojump_clock: trio.abc.Clock
) -> None:
    """Models accept ASCII names of 64 characters only, and each must lead to its server."""
    async with Host({name: make_server("odd"), "b": make_server("b")}) as host:
        names = [each.name for each in host.tools()]
        assert len(set(names)) == len(names) == 14
        for each in names:
            assert len(each) <= 64
            assert each.isascii()
            assert each.replace("_", "").replace("-", "").isalnum()
        [look] = [each for each in host.tools() if (each.server, each.tool.name) == (name, "look")]
        assert (await host.call(look.name)).text == "odd looks at nothing"
        [own] = [each for each in host.resources() if each.resource.uri == "notes://odd"]
        assert text_of(await host.read(own.label)) == "own of odd"
        [shared] = [each for each in host.resources() if each.label.endswith("shared")][:1]
        assert text_of(await host.read(shared.uri)) == "shared of odd"
        assert list(host.status()) == [name, "b"]


# -- Calls ---------------------------------------------------------------------------------------


async def test_call_reaches_the_server_with_its_arguments(autojump_clock: trio.abc.Clock) -> None:
    async with Host({"a": make_server("a"), "b": make_server("b")}) as host:
        assert (await host.call("mcp__b__look", {"at": "you"})).text == "b looks at you"
        assert (await host.call_tool("a", "look")).text == "a looks at nothing"
        with pytest.raises(UnknownName, match="there is no tool mcp__a__lok; did you mean mcp__a"):
            await host.call("mcp__a__lok")
        with pytest.raises(UnknownName, match="there is no server c"):
            await host.call_tool("c", "look")


async def test_unknown_name_is_compared_with_a_limited_number_of_names(
    autojump_clock: trio.abc.Clock,
) -> None:
    """A model that makes up names must not stop the program for half a second each time."""
    names = (f"name {number}" for number in range(10_000))
    async with Host({}) as host:
        host._servers.unknown("tool", "nane 1", names)
    assert len(list(names)) == 9_500


async def test_call_that_was_not_approved_raises(autojump_clock: trio.abc.Clock) -> None:
    async with Host({"a": make_server("a")}) as host:
        with pytest.raises(ApprovalRequired, match="write of a is not approved"):
            await host.call("mcp__a__write", {"text": "x"})
    async with Host({"a": make_server("a")}, approve="all") as host:
        assert (await host.call("mcp__a__write", {"text": "x"})).text == "a writes x"


async def test_on_call_decides_about_each_call(autojump_clock: trio.abc.Clock) -> None:
    """The hook may edit, allow, ask or deny; any other answer is a bug in the application."""

    async def on_call(server: str, name: str, arguments: dict[str, Any]) -> Any:
        await trio.sleep(1)
        if arguments.get("text") == "edit":
            return {"text": f"{server} {name} edited"}
        return arguments.get("text")

    def on_approve_call(question: CallQuestion) -> bool:
        return question.tool.name == "write"

    config = {"a": make_server("a")}
    async with Host(config, on_call=on_call, on_approve_call=on_approve_call) as host:
        assert (
            await host.call("mcp__a__write", {"text": "edit"})
        ).text == "a writes a write edited"
        assert (await host.call("mcp__a__write", {"text": "allow"})).text == "a writes allow"
        assert (await host.call("mcp__a__write", {"text": "ask"})).text == "a writes ask"
        with pytest.raises(CallDenied, match="write of a was denied: on_call"):
            await host.call("mcp__a__write", {"text": "deny"})
        with pytest.raises(TypeError, match="on_call returns"):
            await host.call("mcp__a__write", {"text": "perhaps"})


@pytest.mark.parametrize("what", ["tool", "prompt", "resource"])
async def test_use_of_a_server_that_connects_waits_for_it(
    what: str, autojump_clock: trio.abc.Clock
) -> None:
    async with Host({"a": make_server("a")}, approve="all") as host:
        prompt = host.prompts()[0].name
        host.disable("a")
        host.enable("a")
        if what == "tool":
            assert not (await host.call_tool("a", "look")).is_error
        elif what == "prompt":
            assert (await host.get_prompt(prompt, {"code": "x"})).messages
        else:
            assert (await host.read("@a:notes://a")).contents


async def test_each_call_is_recorded(autojump_clock: trio.abc.Clock) -> None:
    """Even calls that never reach the server are in the audit log, with outcome and duration."""
    records: list[AuditRecord] = []
    started = trio.Event()
    config = {"a": make_server("a"), "slow": slow_server(started)}
    async with Host(config, audit=records.append, call_timeout=5) as host:
        await host.call("mcp__a__look", {"at": "you"})
        with pytest.raises(ApprovalRequired):
            await host.call("mcp__a__write", {"text": "x"})
        with pytest.raises(CallTimeout):
            await host.call("mcp__slow__wait")
        with trio.move_on_after(1):
            await host.call("mcp__slow__wait")
        host.disable("slow")
        with pytest.raises(ServerUnavailable):
            await host.call("mcp__slow__wait")
    assert [(each.server, each.tool, each.outcome) for each in records] == [
        ("a", "look", "ok"),
        ("a", "write", "denied"),
        ("slow", "wait", "timeout"),
        ("slow", "wait", "cancelled"),
        ("slow", "wait", "error"),
    ]
    assert [round(each.duration) for each in records] == [0, 0, 5, 1, 0]
    assert records[0].approved_by == "read-only tool"


async def test_tool_that_fails_gives_a_result(autojump_clock: trio.abc.Clock) -> None:
    records: list[AuditRecord] = []
    async with Host({"a": make_server("a")}, approve="all", audit=records.append) as host:
        result = await host.call("mcp__a__fail")
        assert result.is_error
        assert [each.outcome for each in records] == ["tool error"]


async def test_calls_in_flight_are_limited_for_each_server(
    autojump_clock: trio.abc.Clock,
) -> None:
    """A call above the limit fails at once, and cancelled calls free their slots."""
    started = trio.Event()
    config = {"slow": slow_server(started), "a": make_server("a")}
    async with Host(config, limits=HostLimits(calls=2)) as host:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(host.call, "mcp__slow__wait")
            nursery.start_soon(host.call, "mcp__slow__wait")
            await trio.testing.wait_all_tasks_blocked()
            with pytest.raises(TooManyCalls, match="slow has 2 calls in flight"):
                await host.call("mcp__slow__wait")
            assert (await host.call("mcp__a__look")).text  # the other server has its own limit
            nursery.cancel_scope.cancel()
        with trio.move_on_after(1) as scope:
            await host.call("mcp__slow__wait")  # ended calls do not count
        assert scope.cancelled_caught


async def test_call_timeout_is_of_the_host_or_of_the_call(autojump_clock: trio.abc.Clock) -> None:
    async with Host({"slow": slow_server(trio.Event())}, call_timeout=7) as host:
        before = trio.current_time()
        with pytest.raises(CallTimeout):
            await host.call("mcp__slow__wait")
        assert trio.current_time() - before == pytest.approx(7)
        with pytest.raises(CallTimeout):
            await host.call("mcp__slow__wait", timeout=2)
        assert trio.current_time() - before == pytest.approx(9)
        with pytest.raises(TypeError, match="tiemout"):
            await host.call("mcp__slow__wait", tiemout=2)  # type: ignore[call-arg]


async def test_call_timeout_of_the_configuration_precedes(
    autojump_clock: trio.abc.Clock,
) -> None:
    """The entry says 3 seconds and the host 7; the server never answers."""
    server = PlayedServer(tool("look"))

    async def ignore(_: object) -> None:
        pass

    server.answers["tools/call"] = ignore
    source = PlayedSource(server=server)
    source.call_timeout = 3.0
    async with Host({}, call_timeout=7) as host:
        host.add_source(source)
        await host.wait_settled()
        before = trio.current_time()
        with pytest.raises(CallTimeout):
            await host.call("mcp__played__look")
        assert trio.current_time() - before == pytest.approx(3)


async def test_connect_timeout_ends_a_silent_server(autojump_clock: trio.abc.Clock) -> None:
    """The timeout covers both attempts, and an entry's own value replaces the host's."""

    class Silent(PlayedServer):
        async def _open(self) -> None:
            async for _ in self.peer:
                pass

    source = PlayedSource(server=Silent())
    other = PlayedSource("other", Silent())
    other.connect_timeout = 2.0
    host = Host([source, other], connect_timeout=5, wait=None)
    async with host:
        # The second attempt follows at once.
        assert trio.current_time() - source.attempts[0] == pytest.approx(5)
        assert host.status()["played"].state == "failed"
        assert [
            closed - begun for begun, closed in zip(source.attempts, source.closed, strict=True)
        ][:2] == pytest.approx([2.5, 2.5])
        assert other.closed[0] - other.attempts[0] == pytest.approx(1)
        assert "within 2.5" in host.status()["played"].reason


# -- What servers ask ----------------------------------------------------------------------------


async def test_questions_of_servers_have_the_name_of_the_server(
    autojump_clock: trio.abc.Clock,
) -> None:
    """Both servers call themselves x; the callbacks get the configured names instead."""
    asked: list[tuple[str, object]] = []

    async def on_elicit(server: str, params: t.ElicitParams) -> dict[str, t.ElicitValue]:
        await trio.sleep(1)
        asked.append((server, params.message))
        return {"count": 2}

    def on_sample(server: str, params: t.CreateMessageParams) -> t.CreateMessageResult:
        asked.append((server, params.max_tokens))
        return t.CreateMessageResult(
            role="assistant", content=t.TextContent(f"for {server}"), model="m"
        )

    def on_roots(server: str) -> list[str]:
        asked.append((server, "roots"))
        return [f"file:///{server}"]

    def on_log(server: str, message: t.LoggingMessageParams) -> None:
        asked.append((server, message.data))

    async with Host(
        {"a": make_server("x"), "b": make_server("x")},
        approve="all",
        on_elicit=on_elicit,
        on_sample=on_sample,
        on_roots=on_roots,
        on_log=on_log,
    ) as host:
        for server in "b", "a":
            texts = [
                (await host.call_tool(server, name)).text
                for name in ("ask", "think", "places", "tell")
            ]
            assert texts == ["2", f"for {server}", f"file:///{server}", "logged"]
            await trio.testing.wait_all_tasks_blocked()
    assert asked == [
        (server, what)
        for server in ("b", "a")
        for what in ("How many seats?", 9, "roots", "x logs")
    ]


async def test_roots_may_be_a_list(autojump_clock: trio.abc.Clock) -> None:
    async with Host({"a": make_server("a")}, approve="all", on_roots=["file:///x"]) as host:
        assert (await host.call("mcp__a__places")).text == "file:///x"


async def test_host_without_callbacks_declares_no_capabilities(
    autojump_clock: trio.abc.Clock,
) -> None:
    async with Host({"a": make_server("a")}, approve="all") as host:
        for name in "ask", "think", "places":
            with pytest.raises(PeerError):
                await host.call_tool("a", name)
        assert (await host.call_tool("a", "tell")).text == "logged"


# -- Servers that change -------------------------------------------------------------------------


async def test_added_server_is_connected_to(autojump_clock: trio.abc.Clock) -> None:
    async with Host({"a": make_server("a")}) as host:
        host.add("b", make_server("b"))
        assert host.status()["b"].state == "connecting"
        await host.wait_settled()
        assert (await host.call("mcp__b__look")).text == "b looks at nothing"
        with pytest.raises(ValueError, match="two servers have the name 'b'"):
            host.add("b", make_server("b"))
        assert len(host.status()) == 2


async def test_reload_keeps_what_is_the_same(autojump_clock: trio.abc.Clock) -> None:
    """A configuration that cannot be used changes nothing, and isn't read again later."""
    a, b = make_server("a"), make_server("b")
    async with Host({"a": a, "b": b}) as host:
        client = host.client("a")
        await host.reload({"a": a, "b": make_server("new"), "c": b})
        await host.wait_settled()
        assert host.client("a") is client
        assert (await host.call("mcp__b__look")).text == "new looks at nothing"
        assert list(host.status()) == ["a", "b", "c"]
        with pytest.raises(TypeError):
            await host.reload({"a": 5})  # type: ignore[dict-item]
        await host.reload()  # what was given last, and could be used
        assert list(host.status()) == ["a", "b", "c"]
        assert host.client("a") is client
        await host.reload({})
        assert host.status() == {}
        assert host.tools() == ()


async def test_tool_that_a_server_adds_is_there_at_once(autojump_clock: trio.abc.Clock) -> None:
    """A server of this process is part of the program, so that its tools need no pins."""
    server = make_server("a")
    async with Host({"a": server}, approve="all") as host:
        await trio.sleep(2)

        @server.tool
        def more() -> str:
            """Do more."""
            return "more"

        await trio.sleep(0.1)
        assert (await host.call("mcp__a__more")).text == "more"
        server.remove_tool("more")
        await trio.sleep(2)
        with pytest.raises(UnknownName):
            await host.call("mcp__a__more")


async def test_lifespan_that_fails_harms_no_other_server(
    autojump_clock: trio.abc.Clock, caplog: pytest.LogCaptureFixture
) -> None:
    @asynccontextmanager
    async def lifespan(_: mcp_trio.Server) -> Any:
        yield 1 / 0

    broken = mcp_trio.Server("broken", lifespan=lifespan)
    async with Host({"broken": broken, "a": make_server("a")}) as host:
        assert (await host.call("mcp__a__look")).text
        status = host.status()["broken"]
        assert (status.state, status.reason) == ("failed", "ZeroDivisionError: division by zero")
    assert "the server broken failed" in caplog.text


async def test_client_is_of_a_server_that_is_ready(autojump_clock: trio.abc.Clock) -> None:
    async with Host({"a": make_server("a")}) as host:
        completion = await host.client("a").list_tools()
        assert len(completion) == 7
        host.disable("a")
        with pytest.raises(ServerUnavailable, match="the server a is disabled"):
            host.client("a")


# -- Wrong use -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "target",
    ["echo hello", "ftp://example.com", "", [], (), 5, None, b"echo"],
    ids=repr,
)
def test_target_of_another_type_is_refused(target: Any) -> None:
    with pytest.raises(TypeError, match="x: give a command as a list of words, a URL with http://"):
        Host({"x": target})


def test_host_refuses_wrong_options() -> None:
    with pytest.raises(TypeError, match="aprove"):
        Host({}, aprove="all")  # type: ignore[call-arg]
    with pytest.raises(ValueError, match="a server needs a name"):
        Host({"": make_server("a")})
    with pytest.raises(ValueError, match="more than 2 servers"):
        Host({str(number): ["x"] for number in range(3)}, limits=HostLimits(servers=2))


def test_host_outside_trio_is_refused() -> None:
    async def main() -> None:
        async with Host({"a": make_server("a")}):
            pass

    with pytest.raises(RuntimeError, match=r"mcp_trio needs trio\.run"):
        asyncio.run(main())


async def test_approvals_that_cannot_be_read_are_an_error(
    autojump_clock: trio.abc.Clock,
) -> None:
    class Broken(MemoryApprovals):
        def load(self) -> Any:
            raise PermissionError("someone else may write it")

    host = Host({"a": make_server("a")}, approvals=Broken())
    with pytest.raises(PermissionError, match="someone else may write it"):
        async with host:
            pass


@pytest.mark.parametrize("count", [10, long(50)])
async def test_many_servers_are_merged(count: int, autojump_clock: trio.abc.Clock) -> None:
    def make(number: int) -> mcp_trio.Server:
        server = mcp_trio.Server(f"s{number}")
        for each in range(20):
            server.tool(name=f"t{each}", description="Adds.")(_identity)
        return server

    async with Host({f"s{number}": make(number) for number in range(count)}) as host:
        assert len(host.tools()) == 20 * count
        assert {each.state for each in host.status().values()} == {"ready"}


def _identity(x: int) -> int:
    return x
