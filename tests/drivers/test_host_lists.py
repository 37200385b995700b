"""Lists of a host's servers that cannot be read: where a host says so, and when it asks again."""

from __future__ import annotations

from contextlib import asynccontextmanager
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import pytest

from mcp_asyncio_shim import Host as AsyncioHost
from mcp_core import AuthRequired, ConnectionLost
from mcp_core.host import CallDenied, CatalogLimits, UnknownName
from mcp_core.runtime.host import HostLimits, ServerSource
from mcp_trio.host import Host as TrioHost
from tests.harness import either
from tests.harness.jsonrpc import D, E
from tests.harness.wire.lines import ERAS, Wire

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    from mcp_core.runtime import AbstractClient

    Message = dict[str, Any]

pytestmark = pytest.mark.usefixtures("each_driver")
both_eras = pytest.mark.parametrize("version", ERAS)

TOOL: Final = {"name": "look", "inputSchema": {"type": "object"}}
GOOD: Final = {
    "tools/list": {"tools": [TOOL]},
    "prompts/list": {"prompts": [{"name": "greet"}]},
    "resources/list": {"resources": [{"uri": "x:1", "name": "one"}]},
    "resources/templates/list": {"resourceTemplates": []},
}
SUBSCRIPTION: Final = "io.modelcontextprotocol/subscriptionId"
DISK: Final = {"code": -32603, "message": "the \x1b[31mdisk is gone"}
# Results in which no tool can be read.
UNREADABLE: Final[list[Any]] = [{"tools": {}}, {"tools": [{"name": 5}]}, {}, 5]


class Listing(ServerSource):
    """A server in this process. A list whose method is in `faults` gets that in place of a result.

    Attributes:
        faults: by method: an error's `code` and `message`, a result, or None for no answer.
        asked: when each method was asked for, in seconds since the first connection.
        lives: the attempts to connect.
        client: the last one.
    """

    name = "played"
    secrets = frozenset({"hunter2hunter2"})

    def __init__(self, version: str, *, announces: bool = True) -> None:
        self.version = version
        self.faults: dict[str, Any] = {}
        self.asked: dict[str, list[float]] = {}
        self.lives = 0
        change: Mapping[str, Any] = {"listChanged": True} if announces else {}
        self._capabilities = {name: {**change} for name in ("tools", "prompts", "resources")}
        self._subscription: Any = None
        self._start = 0.0
        self.client: AbstractClient
        self._peer: Wire
        self._is_over: Any = None

    def connect(self, options: Any, inputs: Any, launch: Any) -> Any:
        return self._connect(options)

    @asynccontextmanager
    async def _connect(self, options: Any) -> AsyncIterator[AbstractClient]:
        ours, theirs = either.memory_pair()
        options["versions"] = [self.version]
        self.lives += 1
        self._start = self._start or either.current_time()
        self._peer = Wire(theirs, self.version)
        async with either.open_nursery() as nursery:
            nursery.start_soon(self._live)
            async with either.connect_stream(ours, **options) as client:
                self.client = client
                yield client
            nursery.cancel_scope.cancel()

    async def _live(self) -> None:
        self._is_over = either.Event()
        async with either.open_nursery() as nursery:
            nursery.start_soon(self._serve)
            await self._is_over.wait()
            nursery.cancel_scope.cancel()
        await self._peer.aclose()

    async def _serve(self) -> None:
        await self._peer.open_as_server(self._capabilities)
        async for message in self._peer:
            method = message["method"]
            if method in GOOD:
                self.asked.setdefault(method, []).append(either.current_time() - self._start)
                await self._list(message, self.faults.get(method, GOOD[method]))
            elif method == "subscriptions/listen":
                self._subscription = message["id"]
                wanted = message["params"]["notifications"]
                await self._notify("subscriptions/acknowledged", notifications=wanted)
            elif method == "tools/call":
                await self._peer.answer(message, {"content": []})

    async def _list(self, request: Message, answer: Any) -> None:
        if isinstance(answer, dict) and "code" in answer:
            await self._peer.send_error(request, answer["code"], answer["message"])
        elif isinstance(answer, dict):
            more = {"ttlMs": 0, "cacheScope": "private"} if self.version == E else {}
            await self._peer.answer(request, {**answer, **more})
        elif answer is not None:
            await self._peer.send({"jsonrpc": "2.0", "id": request["id"], "result": answer})

    async def _notify(self, what: str, **params: Any) -> None:
        if self.version == E:
            params["_meta"] = {SUBSCRIPTION: self._subscription}
        await self._peer.notify(f"notifications/{what}", params)

    async def announce(self, what: str) -> None:
        await self._notify(f"{what}/list_changed")

    def die(self) -> None:
        """End the conversation, as the end of a process does."""
        self._is_over.set()

    def intervals(self, method: str) -> list[float]:
        """Return the seconds between the requests for a list."""
        times = self.asked[method]
        return [round(later - earlier, 3) for earlier, later in pairwise(times)]

    def same_as(self, other: Any) -> bool:
        return self is other


@asynccontextmanager
async def opened(source: Listing, **options: Any) -> AsyncIterator[Any]:
    host_type: Any = TrioHost if either.on_trio() else AsyncioHost
    async with host_type([source], **options) as host:
        yield host


def unread(host: Any) -> list[str]:
    """Return the lists that a host says it could not read."""
    return [each.list for each in host.status()["played"].problems]


@both_eras
@pytest.mark.parametrize("answer", [DISK, *UNREADABLE], ids=str)
async def test_list_that_cannot_be_read_is_named_in_each_answer_about_it(
    version: str, answer: Any
) -> None:
    """The tools are missing because of their list: its server is ready, and looks as without."""
    source = Listing(version)
    source.faults["tools/list"] = answer
    async with opened(source, approve="all") as host:
        status = host.status()["played"]
        [problem] = status.problems
        assert (status.state, problem.list) == ("ready", "tools")
        assert problem.reason == host.catalog("played").problems["tools"]
        assert "\x1b" not in problem.reason
        if answer is DISK:
            assert "disk is gone" in problem.reason
        with pytest.raises(UnknownName) as unknown:
            await host.call("mcp__played__look")
        with pytest.raises(CallDenied) as denied:
            await host.call_tool("played", "look")
        for error in unknown, denied:
            assert "tools" in str(error.value)
            assert problem.reason in str(error.value)
        assert [each.uri for each in host.resources()] == ["x:1"]


@both_eras
async def test_unknown_name_says_which_list_of_its_kind_could_not_be_read(version: str) -> None:
    source = Listing(version)
    source.faults |= {"prompts/list": DISK, "resources/list": {}}
    async with opened(source) as host:
        assert unread(host) == ["prompts", "resources"]
        for call, kind in (host.get_prompt, "prompts"), (host.read, "resources"):
            with pytest.raises(UnknownName, match=f"; {kind} that could not be read: of played"):
                await call("x:none")
        with pytest.raises(UnknownName, match=r"there is no tool x:none$"):
            await host.call("x:none")


@both_eras
async def test_list_that_cannot_be_read_is_asked_for_again_at_growing_intervals(
    version: str,
) -> None:
    """It is asked for within the first second, in the end every five minutes, until it is read."""
    source = Listing(version)
    source.faults["prompts/list"] = DISK
    async with opened(source) as host, host.changes() as changes:
        await either.sleep(1500)
        assert source.intervals("prompts/list")[:11] == (
            [0.5, 1, 2, 4, 8, 16, 32, 64, 128, 256, 300]
        )
        assert set(source.intervals("prompts/list")[11:]) == {300}
        assert len(source.asked["tools/list"]) == 1  # the others are not asked for
        assert not changes._unread  # nothing is new
        assert host.status()["played"].attempt == 1
        source.faults.clear()
        await either.sleep(300)
        assert unread(host) == []
        assert [(each.kind, each.status.problems) for each in changes._unread] == [
            ("status", ()),
            ("prompts", ()),
            ("approval", ()),
        ]
        times = len(source.asked["prompts/list"])
        await either.sleep(3600)
        assert len(source.asked["prompts/list"]) == times


@both_eras
async def test_list_that_fails_once_is_read_and_pinned_with_the_others(version: str) -> None:
    """A server that is still loading when it is asked first needs no approval for that."""
    for announces in True, False:
        source = Listing(version, announces=announces)
        source.faults["tools/list"] = {"code": -32603, "message": "still loading"}
        async with opened(source, wait=0) as host, host.changes() as changes:
            await either.sleep(0.2)
            assert unread(host) == ["tools"]
            source.faults.clear()
            await host.wait_settled()
            assert [each.name for each in host.tools()] == ["mcp__played__look"]
            assert await host.pending() == {}
            assert unread(host) == []
            found = [each for each in changes._unread if each.kind == "status"]
            assert [bool(each.status.problems) for each in found][-2:] == [True, False]


@both_eras
async def test_list_that_fails_later_keeps_its_entries_and_is_named(version: str) -> None:
    """Calls of known tools are made as before, and an unknown one says which list is old."""
    source = Listing(version)
    async with opened(source, approve="all") as host, host.changes() as changes:
        source.faults["tools/list"] = {"code": -32603, "message": "key hunter2hunter2 expired"}
        await source.announce("tools")
        await either.sleep(2)
        change = next(each for each in changes._unread if each.kind == "status")
        [problem] = change.status.problems
        assert problem.list == "tools"
        assert "expired" in problem.reason
        assert "hunter2" not in problem.reason
        await host.call("mcp__played__look")
        with pytest.raises(UnknownName, match=r"tools that could not be read: of played \(.*expir"):
            await host.call("mcp__other__new")
        with pytest.raises(CallDenied, match=r"offer it now; its tools could not be read: .*exp"):
            await host.call_tool("played", "new")


@both_eras
async def test_announced_change_asks_at_once_for_a_list_that_could_not_be_read(
    version: str,
) -> None:
    """The next attempt may be minutes away. A change of another list asks for nothing else."""
    source = Listing(version)
    source.faults["prompts/list"] = DISK
    async with opened(source) as host:
        await either.sleep(200)
        before = len(source.asked["prompts/list"])
        await source.announce("tools")
        await either.sleep(5)
        assert len(source.asked["prompts/list"]) == before
        source.faults.clear()
        await source.announce("prompts")
        await either.sleep(0.1)
        assert unread(host) == []
        assert len(source.asked["prompts/list"]) == before + 1


@both_eras
async def test_new_connection_asks_for_all_lists_and_begins_with_the_first_delay(
    version: str,
) -> None:
    """A server without a connection has no problems of lists, and its next one no old delays."""
    source = Listing(version)
    source.faults["prompts/list"] = DISK
    async with opened(source) as host, host.changes() as changes:
        await either.sleep(100)
        changes._unread.clear()
        times = source.asked.pop("prompts/list")
        assert len(times) > 5
        source.die()
        await either.sleep(10)
        states = [each.status for each in changes._unread if each.kind == "status"]
        assert [(each.state, len(each.problems)) for each in states] == [
            ("failed", 0),
            ("connecting", 0),
            ("ready", 0),
            ("ready", 1),
        ]
        assert source.lives == 2
        assert source.intervals("prompts/list") == [0.5, 1, 2, 4]
        host.disable("played")
        await either.sleep(1000)
        assert unread(host) == []
        assert len(source.asked["prompts/list"]) == 5


@both_eras
async def test_failed_list_that_changes_often_is_asked_for_by_one_request_at_a_time(
    version: str,
) -> None:
    """A change takes the place of the next attempt, which may be waiting or under way.

    Else each change would begin attempts of its own, and an old response could replace a new one.
    """
    source = Listing(version)
    source.faults["prompts/list"] = None
    async with opened(source, connect_timeout=10, wait=20) as host:
        for _ in range(20):
            await source.announce("prompts")
            await either.sleep(3)
        before = len(source.asked["prompts/list"])
        assert before <= 8
        await either.sleep(1000)
        assert len(source.asked["prompts/list"]) - before <= 10
        await source.announce("prompts")
        await either.sleep(300)
        source.faults.clear()
        await source.announce("prompts")
        await either.sleep(20)
        assert unread(host) == []


@both_eras
async def test_list_that_is_not_answered_recovers_though_another_one_keeps_changing(
    version: str,
) -> None:
    """Each request has its time, and the delays between them grow."""
    source = Listing(version)
    source.faults["prompts/list"] = None
    async with opened(source, connect_timeout=10, wait=20) as host:
        for _ in range(40):
            await source.announce("tools")
            await either.sleep(3)
        assert len(source.asked["tools/list"]) >= 35
        intervals = source.intervals("prompts/list")
        assert all(interval >= 10 for interval in intervals)
        assert intervals == sorted(intervals)
        assert intervals[-1] > 20
        source.faults.clear()
        for _ in range(25):
            await source.announce("tools")
            await either.sleep(3)
        assert unread(host) == []


@both_eras
async def test_list_that_is_read_after_a_change_is_not_asked_for_a_second_time(
    version: str,
) -> None:
    """Its next attempt is due while the answer to the first request is awaited."""
    source = Listing(version)
    source.faults |= {"tools/list": DISK, "prompts/list": None}
    async with opened(source, connect_timeout=30, wait=40):
        await either.sleep(40)
        source.faults["tools/list"] = None
        source.asked.clear()
        for _ in range(30):
            await source.announce("tools")
            await either.sleep(2)
        assert all(interval >= 29 for interval in source.intervals("tools/list"))
        assert len(source.asked["prompts/list"]) >= 1


async def test_host_that_is_cancelled_while_a_list_waits_logs_no_error(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The end of the waiting job is a part of that. Nor is there one for pins that wait."""
    source = Listing(D)
    source.faults["prompts/list"] = DISK
    for seconds in 0.1, 5:
        with either.CancelScope() as scope:
            async with opened(source, wait=0):
                await either.sleep(seconds)
                scope.cancel()
                await either.sleep(100)
    assert [each.getMessage() for each in caplog.records if each.levelname == "ERROR"] == []


async def test_omissions_of_a_list_go_with_it() -> None:
    """A refused list leaves the one before, and an empty one has nothing that is missing."""
    source = Listing(D)
    partial: Any = {"tools": [TOOL, {"name": "bad"}]}
    source.faults["tools/list"] = partial
    limits: Any = HostLimits(catalog=CatalogLimits(tools=2))
    async with opened(source, approve="all", limits=limits) as host:
        catalog = host.catalog("played")
        [line] = catalog.left_out["tools"]
        assert line.startswith("tools[1] 'bad' was left out: ")
        source.faults["tools/list"] = {"tools": [TOOL] * 3 + [{"name": "worse"}]}
        await source.announce("tools")
        await either.sleep(2)
        assert (catalog.left_out["tools"], unread(host)) == ((line,), ["tools"])
        source.faults["tools/list"] = partial
        await source.announce("tools")
        await either.sleep(2)
        assert (catalog.left_out["tools"], unread(host)) == ((line,), [])
        source._capabilities.pop("tools")
        source.die()
        await either.sleep(10)
        assert host.status()["played"].state == "ready"
        assert (list(catalog.tools), catalog.left_out) == ([], {})


@both_eras
async def test_lists_that_fail_at_different_times_have_delays_of_their_own(version: str) -> None:
    source = Listing(version)
    source.faults["prompts/list"] = DISK
    async with opened(source):
        await either.sleep(140)
        source.faults["tools/list"] = DISK
        await source.announce("tools")
        await either.sleep(100)
        assert source.intervals("tools/list")[1:] == [0.5, 1, 2, 4, 8, 16, 32]
        assert source.intervals("prompts/list") == [0.5, 1, 2, 4, 8, 16, 32, 64]


@both_eras
async def test_failed_list_delays_its_server_by_no_more_than_a_second(version: str) -> None:
    """The attempts at 0.5 and 1.5 s fail as well: nothing waits for them."""
    for announces in True, False:
        source = Listing(version, announces=announces)
        source.faults["prompts/list"] = DISK
        begin = either.current_time()
        async with opened(source) as host:
            assert either.current_time() - begin == pytest.approx(1)
            assert host.tools()


@pytest.mark.parametrize(
    ("error", "state", "lives"),
    [(AuthRequired("log in"), "needs login", 1), (ConnectionLost("gone"), "ready", 2)],
)
async def test_attempt_that_loses_its_login_or_connection_ends_the_servers(
    error: Exception, state: str, lives: int
) -> None:
    """Over HTTP only the request shows it. The host handles it as at the first reading."""
    source = Listing(D)
    source.faults["prompts/list"] = DISK
    async with opened(source) as host:

        async def fail(**_: Any) -> None:
            raise error

        source.client.list_prompts = fail  # type: ignore[method-assign, assignment]
        await either.sleep(20)
        assert (host.status()["played"].state, source.lives) == (state, lives)


async def test_lists_that_are_never_answered_are_asked_for_one_after_the_other() -> None:
    """Each waits for its timeout, and no second request is made meanwhile."""
    source = Listing(D)
    source.faults |= {"tools/list": None, "prompts/list": None}
    async with opened(source, connect_timeout=10) as host:
        await either.sleep(100)
        assert set(unread(host)) == {"tools", "prompts"}
        for method in "tools/list", "prompts/list":
            assert all(each >= 10 for each in source.intervals(method))
            assert 3 <= len(source.asked[method]) <= 8
        assert host.resources()


async def test_unknown_name_with_several_unread_lists_names_the_servers() -> None:
    """The reasons of many servers would make a long text: `status` has them."""
    sources = [Listing(D), Listing(D)]
    for number, source in enumerate(sources):
        source.name = f"s{number}"
        source.faults["tools/list"] = DISK
    host_type: Callable[..., Any] = TrioHost if either.on_trio() else AsyncioHost
    async with host_type(sources) as host:
        with pytest.raises(UnknownName, match=r"tools that could not be read: of s0, s1$"):
            await host.call("look")
        with pytest.raises(UnknownName, match=r"there is no prompt look$"):
            await host.get_prompt("look")
