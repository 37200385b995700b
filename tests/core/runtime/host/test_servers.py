"""The servers of a host together: their names, inputs, turns to connect, and callbacks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import trio
import trio.testing

from mcp_core import ConnectFailed
from mcp_core._limits import CLIENT_LIMITS
from mcp_core.host import (
    ApprovalRequired,
    CallDenied,
    ConfigInput,
    ConfigPlace,
    ToolRule,
    UnknownName,
)
from mcp_core.protocol.revisions._dialects import ALL
from mcp_core.registry import Context, Server
from mcp_core.runtime.host import AbstractHost, HostLimits
from mcp_core.runtime.host._servers import HostedServers, by_name, name_some
from mcp_core.types import (
    ElicitationCapability,
    ElicitResult,
    Implementation,
    LoggingMessageParams,
    SamplingCapability,
)
from tests.core.runtime.host.world import FakeRuntime, FakeSource, opened

if TYPE_CHECKING:
    from collections.abc import Callable

MockClock = trio.testing.MockClock
FILE = "/project/.vscode/mcp.json"
PLACE = ConfigPlace(FILE, 1, 1, "inputs[0]")
TOKEN = ConfigInput(id="token", type="promptString", place=PLACE, description="Token")


def greeter(name: str = "a") -> Server:
    server = Server(name)

    @server.tool
    def greet() -> str:
        """Greet."""
        return f"hello from {name}"

    return server


def states(host: AbstractHost) -> dict[str, str]:
    return {name: status.state for name, status in host.status().items()}


# -- Names -----------------------------------------------------------------------------------------


async def test_sources_by_name_keep_their_order() -> None:
    sources = [FakeSource(name) for name in "cab"]
    assert list(by_name(sources, 3).items()) == [(each.name, each) for each in sources]
    assert by_name([], 0) == {}


@pytest.mark.parametrize(
    ("names", "problem"),
    [
        (["a", "b", "a"], "two servers have the name 'a'"),
        (["a", ""], "a server needs a name"),
        (["\x1b[31m"] * 2, r"two servers have the name '\\\\u001b\[31m'"),
        (["a", "b", "c"], r"there are more than 2 servers; HostLimits\(servers=...\) allows more"),
    ],
)
async def test_sources_that_cannot_be_told_apart_are_an_error(
    names: list[str], problem: str
) -> None:
    with pytest.raises(ValueError, match=problem):
        by_name([FakeSource(name) for name in names], 2)


@pytest.mark.parametrize(
    ("names", "text"),
    [
        ([], ""),
        (["a"], "a"),
        (["a", "\x07"], "a, \\u0007"),
        (list("abcde"), "a, b, c, d, e"),
        (list("abcdefg"), "a, b, c, d, e and 2 more"),
    ],
)
def test_names_of_some_servers_are_counted_above_five(names: list[str], text: str) -> None:
    assert name_some(names) == text


async def test_servers_above_the_limit_are_refused_while_the_host_runs() -> None:
    limits = HostLimits(servers=2)
    async with opened([FakeSource("a"), FakeSource("b")], limits=limits) as (host, _):
        with pytest.raises(ValueError, match="more than 2 servers"):
            host.add_source(FakeSource("c"))
        with pytest.raises(ValueError, match="two servers have the name 'a'"):
            host.add_source(FakeSource("a"))
        await host.remove("a")
        host.add_source(FakeSource("c"))
        assert list(states(host)) == ["b", "c"]


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda host: host.call("mcp__a__gret"), "no tool mcp__a__gret; did you mean mcp__a__gre"),
        (lambda host: host.call("quite_another"), "no tool quite_another; servers that are not re"),
        (lambda host: host.get_prompt("x"), "no prompt x; servers that are not ready: bad"),
        (lambda host: host.read("x:y"), "no resource x:y; servers that are not ready: bad"),
        (lambda host: host.call_tool("bat", "x"), r"no server bat; did you mean bad\?$"),
        (lambda host: host.remove("quite other"), "no server quite other$"),
        (lambda host: host.call("\x1b" * 1000), r"no tool (\\u001b){200}…"),
    ],
)
async def test_unknown_name_is_an_error_with_a_hint(
    call: Callable[[AbstractHost], Any], text: str
) -> None:
    sources = [FakeSource("a", greeter(), needs_pins=False), FakeSource("bad", is_disabled=True)]
    async with opened(sources) as (host, _):
        with pytest.raises(UnknownName, match=text):
            await call(host)


async def test_unknown_name_is_compared_with_a_limited_number(nursery: trio.Nursery) -> None:
    """Comparing with all tools of many servers would hold up the program for seconds."""
    read = 0

    def known() -> Any:
        nonlocal read
        for read in range(100_000):
            yield f"mcp__a__tool_{read}"

    servers = HostedServers({}, HostLimits(), FakeRuntime(nursery))
    assert "did you mean mcp__a__tool_1?" in str(servers.unknown("tool", "mcp__a__tol_1", known()))
    assert read < 1_000


# -- Turns to connect ------------------------------------------------------------------------------


async def test_servers_connect_side_by_side_up_to_the_limit(autojump_clock: MockClock) -> None:
    """Ten servers, three slots and one ready each second: the tenth is ready at 10 seconds."""
    connecting, most = 0, 0

    class Slow(FakeSource):
        def connect(self, *args: Any) -> Any:
            nonlocal connecting, most
            connecting += 1
            most = max(most, connecting)
            return super().connect(*args)

    sources = [Slow(str(number), needs_pins=False) for number in range(10)]
    for source in sources:
        source.gate = trio.Event()

    async def open_gates(task_status: trio.TaskStatus[None]) -> None:
        nonlocal connecting
        task_status.started()
        for source in sources:
            await trio.sleep(1)
            assert connecting <= 3
            connecting -= 1
            source.gate.set()

    start = trio.current_time()
    async with trio.open_nursery() as nursery:
        await nursery.start(open_gates)
        async with opened(sources, limits=HostLimits(connecting=3)) as (host, _):
            assert set(states(host).values()) == {"ready"}
            assert most == 3
            assert trio.current_time() - start == 10


async def test_turn_of_a_server_that_failed_is_the_next_ones(autojump_clock: MockClock) -> None:
    bad = FakeSource("bad", error=ConnectFailed("it does not start"))
    good = FakeSource("good", needs_pins=False)
    async with opened([bad, good], limits=HostLimits(connecting=1)) as (host, _):
        await host.wait_settled()
        assert states(host) == {"bad": "failed", "good": "ready"}


async def test_turn_of_a_server_that_is_not_wanted_any_more_is_the_next_ones(
    autojump_clock: MockClock,
) -> None:
    sources = [FakeSource(name, needs_pins=False) for name in "abc"]
    sources[0].gate = trio.Event()
    async with opened(sources, limits=HostLimits(connecting=1), wait=0) as (host, runtime):
        assert runtime.warnings == ["servers that are not ready yet: a, b, c"]
        host.disable("b")
        await trio.testing.wait_all_tasks_blocked()
        assert [len(each.options) for each in sources] == [1, 0, 0]
        host.disable("a")
        await host.wait_settled()
        assert states(host) == {"a": "disabled", "b": "disabled", "c": "ready"}
        assert [len(each.options) for each in sources] == [1, 0, 1]


async def test_wait_ends_after_its_time(autojump_clock: MockClock) -> None:
    source = FakeSource("a", gate=trio.Event(), needs_pins=False)
    start = trio.current_time()
    async with opened([source], wait=2.0) as (host, runtime):
        assert trio.current_time() - start == 2
        assert runtime.warnings == ["servers that are not ready yet: a"]
        assert not await host.wait_settled(3.0)
        assert trio.current_time() - start == 5
        source.gate.set()
        assert await host.wait_settled(3.0)
        assert trio.current_time() - start == 5


async def test_server_that_is_being_removed_is_not_enabled_again(
    autojump_clock: MockClock, nursery: trio.Nursery
) -> None:
    """`enable` in the middle of a removal must not start the server's process again."""
    source = FakeSource("a", greeter(), needs_pins=False)
    async with opened([source]) as (host, _):
        removed = trio.Event()

        async def remove() -> None:
            await host.remove("a")
            removed.set()

        nursery.start_soon(remove)
        while states(host)["a"] == "ready":
            await trio.lowlevel.checkpoint()
        assert not removed.is_set()
        host.enable("a")
        with trio.fail_after(5):
            await removed.wait()
        assert states(host) == {}
        assert len(source.options) == 1


async def test_server_that_is_removed_leaves_no_rule_for_the_next_of_its_name(
    autojump_clock: MockClock,
) -> None:
    async with opened([FakeSource("a", greeter(), needs_pins=False)]) as (host, _):
        await host.add_rule("a", ToolRule(tool="greet", lifetime="session"))
        await host.call("mcp__a__greet")
        await host.remove("a")
        host.add_source(FakeSource("a", greeter(), needs_pins=False))
        with pytest.raises(ApprovalRequired):
            await host.call_tool("a", "greet")


# -- Inputs ----------------------------------------------------------------------------------------


class InputUser:
    """A user who enters inputs, and counts the questions."""

    def __init__(self, *answers: Any, seconds: float = 1.0) -> None:
        self.asked: list[ConfigInput] = []
        self._answers = list(answers)
        self._seconds = seconds

    async def __call__(self, each: ConfigInput) -> str | None:
        self.asked.append(each)
        await trio.sleep(self._seconds)
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        assert answer is None or isinstance(answer, str)
        return answer


def wanting(name: str, file: str = FILE) -> FakeSource:
    return FakeSource(name, file=file, wanted={"token": TOKEN}, needs_pins=False)


async def test_input_of_several_servers_is_asked_once(autojump_clock: MockClock) -> None:
    user = InputUser("secret")
    sources = [wanting(name) for name in "abc"]
    async with opened(sources, on_input=user) as (host, _):
        assert user.asked == [TOKEN]
        host.restart("a")
        await host.wait_settled()
        host.add_source(wanting("d"))
        await host.wait_settled()
        assert user.asked == [TOKEN]
        assert sources[0].entered == [{"token": "secret"}] * 2
        assert [each.entered for each in sources[1:]] == [[{"token": "secret"}]] * 2


async def test_input_of_another_file_is_asked_for_itself(autojump_clock: MockClock) -> None:
    user = InputUser("one", "two")
    sources = [wanting("a"), wanting("b", "/other/mcp.json")]
    async with opened(sources, on_input=user):
        assert len(user.asked) == 2
        entered = sorted(each.entered[0]["token"] for each in sources)
        assert entered == ["one", "two"]


async def test_input_that_the_user_does_not_enter_is_asked_at_the_next_attempt(
    autojump_clock: MockClock,
) -> None:
    user = InputUser(None, "secret")
    sources = [wanting(name) for name in "abc"]
    async with opened(sources, on_input=user) as (host, _):
        assert len(user.asked) == 1  # not three questions in a row
        assert [each.entered for each in sources] == [[{}]] * 3
        for name in "abc":
            host.restart(name)
        await host.wait_settled()
        assert len(user.asked) == 2
        assert [each.entered[1] for each in sources] == [{"token": "secret"}] * 3


async def test_input_whose_question_is_cancelled_is_asked_for_the_next_server(
    autojump_clock: MockClock,
) -> None:
    user = InputUser("secret", seconds=2)
    first, second = wanting("a"), wanting("b")
    async with opened([first], on_input=user, wait=1) as (host, _):
        host.add_source(second)
        await host.wait_settled(0.5)
        assert len(user.asked) == 1
        host.disable("a")
        await host.wait_settled()
        assert len(user.asked) == 2
        assert (first.entered, second.entered) == ([], [{"token": "secret"}])


async def test_callback_for_inputs_that_raises_fails_its_server(autojump_clock: MockClock) -> None:
    user = InputUser(ValueError("no terminal"), "secret")
    async with opened([wanting("a"), wanting("b")], on_input=user) as (host, _):
        found = sorted((each.state, each.reason) for each in host.status().values())
        assert found == [("failed", "no terminal"), ("ready", "")]


@pytest.mark.parametrize("options", [{}, {"on_input": lambda _: None}])
async def test_inputs_that_are_not_entered_are_left_out(
    options: Any, autojump_clock: MockClock
) -> None:
    source = wanting("a")
    async with opened([source], **options):
        assert source.entered == [{}]


# -- Options of each client ------------------------------------------------------------------------


async def test_callbacks_get_the_name_of_the_server(autojump_clock: MockClock) -> None:
    """Two servers share one function; only this argument says which one asks."""
    server = Server("a")

    @server.tool
    async def ask(context: Context) -> str:
        """Ask all there is to ask."""
        await context.log("info", "asking")
        roots = await context.roots()
        await context.elicit_url("Log in.", "https://a.example/")
        return roots[0].uri

    called: list[tuple[str, str]] = []

    def on_elicit(name: str, params: Any) -> ElicitResult:
        called.append(("elicit", name))
        return ElicitResult(action="accept")

    def on_log(name: str, params: LoggingMessageParams) -> None:
        called.append(("log", name))

    def on_roots(name: str) -> list[str]:
        called.append(("roots", name))
        return [f"file:///{name}"]

    sources = [FakeSource(name, server, needs_pins=False) for name in "ab"]
    async with opened(
        sources,
        approve="all",
        on_elicit=on_elicit,
        elicitation=ElicitationCapability(url={}),
        on_log=on_log,
        on_roots=on_roots,
        log_level="info",
    ) as (host, _):
        assert (await host.call_tool("b", "ask")).text == "file:///b"
        assert set(called) == {("elicit", "b"), ("log", "b"), ("roots", "b")}
        assert "on_sample" not in sources[0].options[0]


@pytest.mark.parametrize(
    ("source_timeout", "options", "seconds"),
    [(None, {}, 60.0), (None, {"connect_timeout": 5.0}, 5.0), (3.0, {"connect_timeout": 5.0}, 3.0)],
)
async def test_options_of_a_client_follow_those_of_the_host(
    source_timeout: float | None, options: Any, seconds: float, autojump_clock: MockClock
) -> None:
    source = FakeSource("a", connect_timeout=source_timeout, needs_pins=False)
    roots = ["file:///x"]
    limits = HostLimits(listing=1_000)
    async with opened(
        [source], on_sample=lambda *_: None, on_roots=roots, limits=limits, **options
    ):
        [found] = source.options
        assert found["probe_timeout"] + (found["initialize_timeout"] or 0) == seconds
        assert found["on_roots"] is roots
        assert found["max_listing"] == 1_000
        assert callable(found["on_sample"])
        assert "on_elicit" not in found


async def test_options_of_a_client_without_options_of_the_host_are_the_defaults(
    nursery: trio.Nursery,
) -> None:
    """15 s for the probe, but half of the time at most, and the rest for the handshake."""
    servers = HostedServers({}, HostLimits(), FakeRuntime(nursery))
    assert servers.client_options(FakeSource("a")) == {
        "versions": ALL,
        "probe_timeout": 15.0,
        "initialize_timeout": 45.0,
        "keep_alive": None,
        "log_level": None,
        "elicitation": None,
        "sampling": None,
        "info": None,
        "max_listing": 8 * 1024 * 1024,
    }
    found = servers.client_options(FakeSource("a", connect_timeout=20.0))
    assert (found["probe_timeout"], found["initialize_timeout"]) == (10.0, 10.0)


async def test_options_of_the_host_are_passed_to_each_client(nursery: trio.Nursery) -> None:
    """A client has its own limit of a list, and the host's can only be lower."""
    options: Any = {
        "versions": ["2025-11-25"],
        "keep_alive": 3.0,
        "log_level": "error",
        "elicitation": ElicitationCapability(url={}),
        "sampling": SamplingCapability(),
        "info": Implementation(name="host", version="1"),
    }
    limits = HostLimits(listing=CLIENT_LIMITS.listing + 1)
    servers = HostedServers(options, limits, FakeRuntime(nursery))
    found: Any = servers.client_options(FakeSource("a"))
    assert {name: found[name] for name in options} == options
    assert found["max_listing"] == CLIENT_LIMITS.listing


async def test_server_of_the_program_is_tried_again_unless_the_host_says_otherwise(
    nursery: trio.Nursery,
) -> None:
    runtime = FakeRuntime(nursery)
    assert HostedServers({}, HostLimits(), runtime).restarts is True
    assert HostedServers({"restart": False}, HostLimits(), runtime).restarts is False


async def test_unknown_name_is_compared_by_its_beginning_and_shown_safely(
    nursery: trio.Nursery,
) -> None:
    """A long name must not take long to compare, nor fill a terminal."""
    servers = HostedServers({}, HostLimits(), FakeRuntime(nursery))
    assert str(servers.unknown("server", "abcd", ["abcx\x07"])) == (
        "there is no server abcd; did you mean abcx\\u0007?"
    )
    long = "a" * 201
    assert str(servers.unknown("tool", long, ["a" * 200])) == (
        f"there is no tool {'a' * 200}… (201 characters); did you mean {'a' * 200}?"
    )
    # Merged names begin alike, so that more of one has to be the same than of a server's name.
    assert str(servers.unknown("server", "abcde", ["abcxy"])).endswith("did you mean abcxy?")
    assert str(servers.unknown("tool", "abcde", ["abcxy"])) == "there is no tool abcde"


async def test_tool_that_its_configuration_denies_is_found_by_its_merged_name(
    autojump_clock: MockClock,
) -> None:
    """It is in no list, and yet a call says why it may not be used."""

    class Denying(FakeSource):
        def find_tool_denial(self, tool: str) -> str | None:
            return "deniedTools has it" if tool == "greet" else None

    sources = [
        FakeSource("a", greeter(), needs_pins=False),
        Denying("b", greeter(), needs_pins=False),
    ]
    async with opened(sources, approve="all") as (host, _):
        assert [each.name for each in host.tools()] == ["mcp__a__greet"]
        assert (await host.call("mcp__a__greet")).text == "hello from a"
        with pytest.raises(CallDenied, match="deniedTools has it"):
            await host.call("mcp__b__greet")
        with pytest.raises(UnknownName):
            await host.call("mcp__b__gone")


async def test_wait_without_time_left_looks_once(autojump_clock: MockClock) -> None:
    source = FakeSource("a", gate=trio.Event(), needs_pins=False)
    async with opened([source], wait=0) as (host, _):
        start = trio.current_time()
        assert not await host.wait_settled(0)
        source.gate.set()
        assert await host.wait_settled(None)
        assert await host.wait_settled(0)
        assert trio.current_time() == start
