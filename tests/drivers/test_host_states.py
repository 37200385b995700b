"""The states of the servers of a host: backoff, verdicts, restarts, and waits.

The servers are played in memory, and the clock jumps: delays are exact.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from mcp_core import AuthRequired, ConnectFailed, ConnectionLost
from mcp_core.auth import AuthorizationFailed
from mcp_core.host import ServerUnavailable, UnknownName
from mcp_core.runtime.host import HostLimits
from tests.drivers.played_host import Host, PlayedServer, PlayedSource, reached, states_of, tool
from tests.harness import either
from tests.harness.jsonrpc import E
from tests.harness.wire.lines import ERAS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

pytestmark = pytest.mark.usefixtures("each_driver", "hosts_without_threads")

HOUR = 3600.0
REFUSED = ConnectFailed("connection refused")


def failed_because(cause: BaseException) -> ConnectFailed:
    """Return the error of an attempt that failed because of `cause`."""
    error = ConnectFailed(f"it does not work: {cause}")
    error.__cause__ = cause
    return error


# -- Backoff -------------------------------------------------------------------------------------


async def test_server_that_cannot_start_is_tried_again_at_growing_intervals() -> None:
    source = PlayedSource(failures=[REFUSED] * 9)
    async with Host({}) as host:
        host.add_source(source)
        await either.sleep(200)
        assert source.delays == [0, 1, 2, 4, 8, 16, 30, 30, 30]
        status = host.status()["played"]
        assert (status.state, status.attempt, status.retry_at) == ("ready", 10, None)


async def test_failed_server_names_reason_and_next_attempt() -> None:
    source = PlayedSource(failures=[REFUSED] * 4)
    async with Host({}) as host:
        host.add_source(source)
        await either.sleep(1.5)
        status = host.status()["played"]
        assert (status.state, status.reason, status.attempt) == ("failed", "connection refused", 3)
        assert status.retry_at == pytest.approx(source.closed[-1] + 2)


async def test_reason_of_several_lines_is_one_line_with_the_last_one() -> None:
    said = [f"{number}" + "x" * 290 for number in range(5)]
    text = "\n  its stderr: ".join(["it has ended (exit status 1)", *said])
    source = PlayedSource(failures=[ConnectFailed(text)] * 2)
    async with Host({}) as host:
        host.add_source(source)
        status = await reached(host, "failed")
        assert status.reason == text.replace("\n  ", "; ")


@pytest.mark.parametrize(
    ("lives", "delays"),
    [(9.0, [0, 1, 2, 4]), (10.0, [0, 0, 0, 0]), (60.0, [0, 0, 0, 0])],
    ids=["unstable", "stable", "every minute"],
)
async def test_server_that_dies_is_started_again(lives: float, delays: list[float]) -> None:
    source = PlayedSource()
    async with Host({}) as host:
        host.add_source(source)
        for _ in delays:
            status = await reached(host, "ready")
            await either.sleep(status.since + lives - either.current_time())
            await source.server.die()
            await either.wait_all_tasks_blocked()
        await host.wait_settled()
        await either.sleep(10)
        assert source.delays == delays


async def test_death_after_failures_counts_on_until_it_was_stable() -> None:
    source = PlayedSource(failures=[REFUSED, REFUSED, None, REFUSED])
    async with Host({}) as host:
        host.add_source(source)
        await either.sleep(5)
        assert host.status()["played"].state == "ready"
        await source.server.die()
        await either.sleep(100)
        assert source.delays == [0, 1, 2, 4]


@pytest.mark.parametrize(
    "failure",
    [
        failed_because(FileNotFoundError("no such program")),
        failed_because(PermissionError("not executable")),
        failed_because(AuthorizationFailed("the login was refused")),
        ValueError("the URL is invalid"),
        TypeError("no such option"),
    ],
    ids=lambda each: type(each.__cause__ or each).__name__,
)
async def test_verdict_is_not_tried_again_before_a_restart(failure: Exception) -> None:
    source = PlayedSource(failures=[failure])
    async with Host({}) as host:
        host.add_source(source)
        await either.sleep(HOUR)
        status = host.status()["played"]
        assert (status.state, status.retry_at, len(source.attempts)) == ("failed", None, 1)
        assert status.reason == str(failure)
        host.restart("played")
        await host.wait_settled()
        assert host.status()["played"].state == "ready"


async def test_verdict_of_an_exception_without_text_names_its_type(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A bug in the lifespan of a server of this process must not be lost."""
    source = PlayedSource(failures=[KeyError("setting")])
    async with Host({}) as host:
        host.add_source(source)
        await host.wait_settled()
        assert host.status()["played"].reason == "KeyError: 'setting'"
    assert "Traceback" in caplog.text


async def test_server_that_requires_a_login_waits_for_it() -> None:
    """Backoff would be useless: only `logged_in` starts the next attempt."""
    needed = failed_because(AuthRequired("log in first"))
    source = PlayedSource(failures=[needed, needed])
    async with Host({}) as host, host.changes() as changes:
        host.add_source(source)
        await either.sleep(HOUR)
        assert host.status()["played"].state == "needs login"
        assert len(source.attempts) == 1
        with pytest.raises(ServerUnavailable, match=r"needs login: .*log in first"):
            await host.call_tool("played", "look")
        host.logged_in("played")
        await either.sleep(HOUR)
        host.logged_in("played")
        await host.wait_settled()
        assert [state for _, state in states_of(changes)] == [
            *("connecting", "needs login", "connecting", "needs login", "connecting", "ready")
        ]


@pytest.mark.parametrize("what", ["call", "prompt", "resource", "list"])
async def test_login_that_is_required_later_ends_the_connection(what: str) -> None:
    """Whichever request meets the expired token, the server needs a login and its tools vanish."""
    server = PlayedServer(
        tool("look"),
        prompts=[{"name": "greet"}],
        resources=[{"uri": "x:1", "name": "one"}],
    )
    source = PlayedSource(server=server)
    async with Host({}) as host:
        host.add_source(source)
        await host.wait_settled()

        def refuse(*_: object, **__: object) -> Any:
            raise AuthRequired("the token has expired")

        client = host.client("played")
        for name in "call_tool", "get_prompt", "read_resource", "list_tools":
            setattr(client, name, refuse)
        if what == "list":
            await server.announce()
            await either.sleep(2)
        else:
            functions: dict[str, Callable[[], Awaitable[object]]] = {
                "call": partial(host.call, "mcp__played__look"),
                "prompt": partial(host.get_prompt, "mcp__played__greet"),
                "resource": partial(host.read, "x:1"),
            }
            with pytest.raises(AuthRequired):
                await functions[what]()
        status = host.status()["played"]
        assert (status.state, status.reason) == ("needs login", "the token has expired")
        assert host.tools() == ()
        await either.sleep(1)
        host.logged_in("played")
        await host.wait_settled()
        assert host.status()["played"].state == "ready"


# -- What a user demands -------------------------------------------------------------------------


async def test_restart_begins_when_the_old_connection_is_gone() -> None:
    """Two processes of one server might fight over its files."""
    source = PlayedSource()
    source.closing_takes = 3.0
    async with Host({}) as host, host.changes() as changes:
        host.add_source(source)
        await host.wait_settled()
        host.restart("played")
        assert host.status()["played"].state == "connecting"
        assert host.tools() == ()
        await either.sleep(2.9)
        host.restart("played")  # a second time has no effect but a new number
        assert len(source.attempts) == 1
        await host.wait_settled()
        assert source.delays == [0]
        assert source.attempts[1] - source.attempts[0] >= 4
        assert [state for _, state in states_of(changes)] == [
            *("connecting", "ready", "connecting", "connecting", "ready")
        ]


async def test_restart_ends_the_calls_in_flight() -> None:
    source = PlayedSource()
    started = either.Event()

    async def never(_: object) -> None:
        started.set()

    source.server.answers["tools/call"] = never
    async with Host({}) as host, either.open_nursery() as nursery:
        host.add_source(source)
        await host.wait_settled()
        nursery.start_soon(calls, host, ConnectionLost)
        await started.wait()
        host.restart("played")


async def calls(host: Any, error: type[BaseException]) -> None:
    with pytest.raises(error):
        await host.call("mcp__played__look")


async def test_restart_does_not_wait_for_a_retry() -> None:
    source = PlayedSource(failures=[REFUSED] * 7)
    async with Host({}) as host:
        host.add_source(source)
        await either.sleep(40)
        assert len(source.attempts) == 7
        host.restart("played")
        await host.wait_settled()
        assert host.status()["played"].state == "ready"
        await either.sleep(HOUR)
        assert len(source.attempts) == 8


async def test_disabled_server_stays_ended_until_enabled() -> None:
    """An hour later it is still closed, and calls say why."""
    source = PlayedSource()
    async with Host({}) as host, host.changes() as changes:
        host.add_source(source)
        await host.wait_settled()
        host.disable("played")
        await either.sleep(HOUR)
        assert (len(source.attempts), len(source.closed)) == (1, 1)
        assert host.tools() == ()
        with pytest.raises(ServerUnavailable, match="the server played is disabled"):
            await host.call("mcp__played__look")
        host.enable("played")
        await host.wait_settled()
        assert (await host.call("mcp__played__look")).content
        assert [state for _, state in states_of(changes)] == [
            *("connecting", "ready", "disabled", "connecting", "ready")
        ]


async def test_server_enabled_while_it_ends_begins_after_the_end() -> None:
    source = PlayedSource()
    source.closing_takes = 2.0
    async with Host({}) as host:
        host.add_source(source)
        await host.wait_settled()
        host.disable("played")
        await either.sleep(1)
        host.enable("played")
        await host.wait_settled()
        assert source.delays == [0]
        assert host.status()["played"].state == "ready"


async def test_server_disabled_by_its_configuration_is_not_connected_to() -> None:
    source = PlayedSource()
    source.is_disabled = True
    async with Host({}) as host:
        host.add_source(source)
        await either.sleep(HOUR)
        assert (host.status()["played"].state, source.attempts) == ("disabled", [])
        host.enable("played")
        await host.wait_settled()
        assert host.status()["played"].state == "ready"


async def test_remove_waits_until_the_connection_is_gone() -> None:
    """After `remove` the name is free, even for the same server."""
    source, other = PlayedSource(), PlayedSource("other")
    source.closing_takes = 3.0
    async with Host({}) as host, host.changes() as changes:
        host.add_source(source)
        host.add_source(other)
        await host.wait_settled()
        before = either.current_time()
        await host.remove("played")
        assert either.current_time() - before >= 3
        assert len(source.closed) == 1
        assert list(host.status()) == ["other"]
        assert [each.name for each in host.tools()] == ["mcp__other__look"]
        kinds = [(each.server, each.kind) for each in changes._unread]
        assert kinds[-1] == ("played", "removed")
        with pytest.raises(UnknownName, match="there is no server played"):
            host.restart("played")
        with pytest.raises(UnknownName):
            await host.remove("played")
        host.add_source(source)  # the name is free again
        await host.wait_settled()
        assert host.status()["played"].state == "ready"


async def test_remove_while_it_is_removed_waits_too() -> None:
    source = PlayedSource()
    source.closing_takes = 3.0
    async with Host({}) as host:
        host.add_source(source)
        await host.wait_settled()
        with either.move_on_after(1):
            await host.remove("played")
        assert host.status()["played"].state == "disabled"
        async with either.open_nursery() as nursery:
            nursery.start_soon(host.remove, "played")
            nursery.start_soon(host.remove, "played")
        assert host.status() == {}


async def test_name_that_is_used_anew_belongs_to_the_new_server() -> None:
    """Three removals run at once; the late ones must not remove the successor."""
    old, new = PlayedSource(), PlayedSource()
    old.closing_takes = 3.0
    async with Host({}) as host, either.open_nursery() as nursery:
        host.add_source(old)
        await host.wait_settled()

        async def replace() -> None:
            await host.remove("played")
            host.add_source(new)

        nursery.start_soon(replace)
        nursery.start_soon(host.remove, "played")
        nursery.start_soon(host.remove, "played")
        await either.sleep(10)
        assert host.status()["played"].state == "ready"
        with pytest.raises(ValueError, match="two servers have the name"):
            host.add_source(PlayedSource())
        await host.replace_sources([])
        assert host.status() == {}


async def test_server_removed_while_sources_are_replaced_is_no_error() -> None:
    """Two replacements and a removal overlap, and the result is the new list."""
    slow, fast, new = PlayedSource("slow"), PlayedSource("fast"), PlayedSource("new")
    slow.closing_takes = 3.0
    async with Host({}) as host, either.open_nursery() as nursery:
        for each in slow, fast:
            host.add_source(each)
        await host.wait_settled()
        nursery.start_soon(host.replace_sources, [new])
        nursery.start_soon(host.replace_sources, [new])
        await either.sleep(1)
        await host.remove("fast")
        await either.sleep(3)
        assert {name: each.state for name, each in host.status().items()} == {"new": "ready"}
        await host.replace_sources([])
        assert host.status() == {}


@either.trio_only  # the asyncio host has no `reload`
async def test_reload_during_another_one_has_the_last_word() -> None:
    slow, older, newer = PlayedSource("slow"), PlayedSource("older"), PlayedSource("newer")
    slow.closing_takes = 3.0
    async with Host([slow]) as host, either.open_nursery() as nursery:
        nursery.start_soon(partial(host.reload, [older]))
        await either.sleep(1)
        await host.reload([newer])
        assert list(host.status()) == ["newer"]


async def test_replaced_sources_keep_those_that_are_the_same() -> None:
    """A reload of the configuration must not interrupt servers that it doesn't change."""
    server, changed = PlayedServer(tool("look")), PlayedServer(tool("look"))
    kept, old, gone = PlayedSource("kept", server), PlayedSource("old"), PlayedSource("gone")
    for each in old, gone:
        each.closing_takes = 3.0
    async with Host({}) as host:
        for each in kept, old, gone:
            host.add_source(each)
        await host.wait_settled()
        client = host.client("kept")
        new = PlayedSource("new")
        before = either.current_time()
        await host.replace_sources(
            [PlayedSource("kept", server), PlayedSource("old", changed), new]
        )
        assert either.current_time() - before < 4  # side by side
        await host.wait_settled()
        assert host.client("kept") is client
        assert {name: each.state for name, each in host.status().items()} == {
            "kept": "ready",
            "old": "ready",
            "new": "ready",
        }
        assert len(old.closed) == len(gone.closed) == 1
        with pytest.raises(ValueError, match="two servers have the name 'a'"):
            await host.replace_sources([PlayedSource("a"), PlayedSource("a")])
        assert host.client("kept") is client


async def test_replaced_sources_after_a_cancelled_replacement_are_connected() -> None:
    source = PlayedSource()
    source.closing_takes = 3.0
    async with Host({}) as host:
        host.add_source(source)
        await host.wait_settled()
        with either.move_on_after(1):
            await host.replace_sources([])
        await host.replace_sources([source])
        await host.wait_settled()
        assert host.status()["played"].state == "ready"


# -- Waiting -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("wait", "waited"), [(0.0, 0.0), (2.0, 2.0), (None, 10.0), (60.0, 10.0)])
async def test_block_begins_after_the_wait(
    wait: float | None,
    waited: float,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A slow server delays the start at most that long, and a warning names it."""
    slow, quick = PlayedSource("slow"), PlayedSource("quick")
    slow.connecting_takes = 10.0
    for each in slow, quick:
        each.needs_pins = False
    host = Host([slow, quick], wait=wait)
    before = either.current_time()
    async with host:
        assert either.current_time() - before == pytest.approx(waited)
        is_late = waited < 10
        assert ("servers that are not ready yet: slow" in caplog.text) is is_late
        if waited:
            assert [each.server for each in host.tools()] == ["quick", "slow"][: 2 - is_late] or (
                not is_late
            )
        await host.wait_settled()
        assert {each.server for each in host.tools()} == {"slow", "quick"}


async def test_wait_settled_returns_false_after_its_time() -> None:
    source = PlayedSource()
    source.connecting_takes = 10.0
    async with Host({}) as host:
        assert await host.wait_settled(0)
        host.add_source(source)
        assert not await host.wait_settled(5)
        assert await host.wait_settled(10)


async def test_servers_that_fail_by_turns_are_waited_for_once() -> None:
    sources = [PlayedSource(name, failures=[REFUSED] * 1_000) for name in ("a", "b")]
    sources[0].connecting_takes = 5.0
    sources[1].connecting_takes = 40.0
    async with Host({}) as host:
        for each in sources:
            host.add_source(each)
        before = either.current_time()
        assert await host.wait_settled(None)
        assert either.current_time() - before == pytest.approx(80)  # two attempts of the slow one


async def test_connecting_servers_are_limited() -> None:
    sources = [PlayedSource(f"s{number}") for number in range(4)]
    for each in sources:
        each.connecting_takes = 5.0
    async with Host({}, limits=HostLimits(connecting=2)) as host:
        for each in sources:
            host.add_source(each)
        await either.sleep(1)
        assert [len(each.attempts) for each in sources] == [1, 1, 0, 0]
        host.disable("s0")
        await either.sleep(1)
        assert [len(each.attempts) for each in sources] == [1, 1, 1, 0]
        await host.wait_settled()
        states = [each.state for each in host.status().values()]
        assert states == ["disabled", "ready", "ready", "ready"]


async def test_restarts_of_a_server_that_waits_for_room_are_one() -> None:
    """With one connection slot, 2,000 restarts must neither queue up nor lose the slot."""
    slow, waiting = PlayedSource("slow"), PlayedSource("waiting")
    slow.connecting_takes = 5.0
    async with Host({}, limits=HostLimits(connecting=1)) as host:
        host.add_source(slow)
        host.add_source(waiting)
        for _ in range(2_000):
            host.restart("waiting")
        await host.wait_settled()
        assert len(waiting.attempts) == 1
        for each in slow, waiting:
            each.connecting_takes = 0.0
            host.restart(each.name)
        await host.wait_settled()
        assert [each.state for each in host.status().values()] == ["ready", "ready"]


async def test_call_waits_for_a_server_that_connects_again() -> None:
    source = PlayedSource()
    async with Host({}) as host:
        host.add_source(source)
        await host.wait_settled()
        source.connecting_takes = 5.0
        await source.server.die()
        await either.sleep(1)
        assert host.status()["played"].state == "connecting"
        before = either.current_time()
        assert (await host.call("mcp__played__look")).content
        assert either.current_time() - before == pytest.approx(4)


async def test_call_of_a_failed_server_raises_at_once() -> None:
    source = PlayedSource(failures=[None, REFUSED, REFUSED, REFUSED])
    async with Host({}) as host:
        host.add_source(source)
        await host.wait_settled()
        await source.server.die()
        await either.sleep(5)
        assert host.status()["played"].state == "failed"
        with pytest.raises(ServerUnavailable, match="failed: connection refused") as caught:
            await host.call("mcp__played__look")
        assert caught.value.status == host.status()["played"]


@pytest.mark.parametrize("version", ERAS)
async def test_server_that_ends_is_noticed_at_once(version: str) -> None:
    source = PlayedSource(server=PlayedServer(tool("look"), version=version))
    async with Host({}) as host:
        host.add_source(source)
        await host.wait_settled()
        await source.server.die()
        await either.wait_all_tasks_blocked()
        assert host.status()["played"].attempt == 2


@pytest.mark.parametrize("version", ERAS)
async def test_server_that_ends_between_two_readings_is_noticed_at_once(version: str) -> None:
    server = PlayedServer(tool("look"), version=version)
    async with Host({}) as host:
        host.add_source(PlayedSource(server=server))
        await host.wait_settled()
        await server.announce()
        await either.sleep(0.1)
        await server.announce()
        await either.sleep(0.1)  # a second after the last reading it is read again
        await server.die()
        await either.wait_all_tasks_blocked()
        assert host.status()["played"].attempt == 2


async def test_server_that_ended_is_not_ready_while_its_process_ends() -> None:
    source = PlayedSource()
    source.closing_takes = 3.0
    async with Host({}) as host:
        host.add_source(source)
        await host.wait_settled()
        await source.server.die()
        await either.wait_all_tasks_blocked()
        assert len(source.closed) == 0
        assert host.status()["played"].state == "connecting"
        assert host.tools() == ()
        await host.wait_settled()
        assert source.delays == [0]


async def test_server_that_ends_its_subscription_before_it_exits_is_noticed_at_once() -> None:
    """A server of 2026-07-28 ends the subscriptions when it is told to exit."""
    server = PlayedServer(tool("look"), version=E)
    source = PlayedSource(server=server)
    async with Host({}) as host:
        host.add_source(source)
        await host.wait_settled()
        await server.end_subscriptions()
        await either.sleep(0.1)
        assert host.status()["played"].attempt == 1
        await server.die()
        await either.wait_all_tasks_blocked()
        assert host.status()["played"].attempt == 2


async def test_subscription_that_the_server_ended_is_opened_again() -> None:
    server = PlayedServer(tool("look"), version=E)
    async with Host({}) as host:
        host.add_source(PlayedSource(server=server))
        await host.wait_settled()
        await server.end_subscriptions()
        server.lists["tools"] = []
        await either.sleep(6)
        assert server.received["subscriptions/listen"] == 2
        assert (host.tools(), host.status()["played"].attempt) == ((), 1)
