"""One server of a host: what the errors of its attempts mean, and its steps in a row."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING, Any

import pytest
import trio
import trio.testing

from mcp_core import (
    AuthRequired,
    CallTimeout,
    ConnectFailed,
    ConnectionLost,
    LocalProtocolError,
    PeerError,
)
from mcp_core.auth import AuthorizationFailed
from mcp_core.host._supervision import ServerEvent
from mcp_core.processes import UnsafeArgument
from mcp_core.registry import Server
from mcp_core.runtime.host._server import _Attempt, _classify
from tests.core.runtime.host.world import FakeSource, opened

if TYPE_CHECKING:
    from mcp_core.runtime.host import AbstractHost

MockClock = trio.testing.MockClock


def caused(error: BaseException, cause: BaseException) -> BaseException:
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "event", "reason"),
    [
        # What may pass by itself is tried again.
        (ConnectFailed("no route"), "DIED", "no route"),
        (ConnectionLost("it ended"), "DIED", "it ended"),
        (OSError(errno.EMFILE, "too many open files"), "DIED", "[Errno 24] too many open files"),
        (CallTimeout("too slow"), "DIED", "too slow"),
        (caused(ConnectFailed("no start"), OSError(errno.EAGAIN, "later")), "DIED", "no start"),
        # A login is needed.
        (AuthRequired("log in"), "LOGIN_REQUIRED", "log in"),
        (caused(ConnectFailed("refused"), AuthRequired("log in")), "LOGIN_REQUIRED", "refused"),
        # The same would happen at the next attempt.
        (AuthorizationFailed("denied"), "REJECTED", "denied"),
        (caused(ConnectFailed("no login"), AuthorizationFailed("denied")), "REJECTED", "no login"),
        (FileNotFoundError(2, "no file"), "REJECTED", "[Errno 2] no file"),
        (caused(ConnectFailed("no start"), FileNotFoundError(2, "x")), "REJECTED", "no start"),
        (caused(ConnectFailed("no start"), PermissionError(13, "x")), "REJECTED", "no start"),
        (caused(ConnectFailed("no start"), UnsafeArgument("x")), "REJECTED", "no start"),
        *(
            (caused(ConnectFailed("no start"), OSError(number, "x")), "REJECTED", "no start")
            for number in (errno.E2BIG, errno.ELOOP, errno.ENAMETOOLONG, errno.ENOEXEC)
        ),
        (OSError(errno.ENOTDIR, "x"), "REJECTED", f"[Errno {errno.ENOTDIR}] x"),
        (LocalProtocolError("no such option"), "REJECTED", "no such option"),
        (ValueError("wrong"), "REJECTED", "wrong"),
        (TypeError("wrong"), "REJECTED", "wrong"),
        # The cause of another error than `ConnectFailed` says nothing about the attempt.
        (caused(ConnectionLost("it ended"), AuthRequired("log in")), "DIED", "it ended"),
        # A bug is shown with its type: its text alone may say nothing.
        (KeyError("x"), "REJECTED", "KeyError: 'x'"),
        (AssertionError(), "REJECTED", "AssertionError: "),
    ],
)
def test_error_of_an_attempt_decides_whether_there_is_another_one(
    error: BaseException, event: str, reason: Any
) -> None:
    assert _classify(error) == (ServerEvent[event], reason)


# -- An attempt ------------------------------------------------------------------------------------


def test_attempt_that_ends_is_stopped_once() -> None:
    """Closing a process takes seconds, and a second cancellation would cut it short."""
    server: Any = None
    before = _Attempt(server, 1)
    before.end()  # no task runs it yet
    attempt = _Attempt(server, 2)
    stopped: list[str] = []
    attempt.stop = lambda: stopped.append("stopped")
    attempt.end()
    attempt.end()
    assert (stopped, attempt.is_ending, attempt.number) == (["stopped"], True, 2)


def test_attempt_keeps_its_error_but_not_an_interrupt() -> None:
    server: Any = None
    attempt = _Attempt(server, 1)
    error = ConnectFailed("no route")
    attempt.failed(ExceptionGroup("tasks", [error]))
    assert attempt.error is error
    with pytest.raises(KeyboardInterrupt):
        attempt.failed(KeyboardInterrupt())


# -- In a host -------------------------------------------------------------------------------------


def offering() -> Server:
    server = Server("a")

    @server.tool
    def work() -> str:
        """Work."""
        return "done"

    return server


class Opened:
    """A host that is opened after 100 s of the clock, and the seconds since then."""

    def __init__(self, source: FakeSource, **options: Any) -> None:
        self._opened: Any = opened([source], **options)

    @property
    def seconds(self) -> float:
        return trio.current_time() - self._start

    async def __aenter__(self) -> AbstractHost:
        await trio.sleep(100)
        self._start = trio.current_time()
        host: AbstractHost
        host, _ = await self._opened.__aenter__()
        return host

    async def __aexit__(self, *exc: object) -> bool | None:
        swallows: bool | None = await self._opened.__aexit__(*exc)
        return swallows


async def test_first_definitions_are_pinned_after_a_quiet_second(
    autojump_clock: MockClock,
) -> None:
    """A list that changes within it is read again, a second after it was last read."""
    source = FakeSource("a", offering())
    run = Opened(source, wait=0.75)
    async with run as host:
        assert (run.seconds, host.tools()) == (0.75, ())
        source.server.add_tool(lambda: "", name="more", description="More.")
        await host.wait_settled()
        assert run.seconds == 2.0
        assert [each.tool.name for each in host.tools()] == ["work", "more"]


async def test_first_definitions_of_a_server_that_keeps_changing_are_pinned_after_ten_seconds(
    autojump_clock: MockClock, nursery: trio.Nursery
) -> None:
    """A change within each second starts the quiet time anew, but not for ever."""
    source = FakeSource("a", offering())

    async def keep_changing() -> None:
        for number in range(40):
            await trio.sleep(0.75)
            source.server.add_tool(lambda: "", name=f"t{number}", description="More.")

    run = Opened(source, wait=0)
    async with run as host:
        nursery.start_soon(keep_changing)
        await host.wait_settled()
        assert 10.0 <= run.seconds <= 11.0
        nursery.cancel_scope.cancel()


async def test_list_that_changes_soon_is_read_a_second_after_it_was_read(
    autojump_clock: MockClock,
) -> None:
    source = FakeSource("a", offering(), needs_pins=False)
    run = Opened(source)
    async with run as host, host.changes() as changes:
        read: list[float] = []
        for name, pause in ("b", 0.25), ("c", 0.25), ("d", 5.0):
            await trio.sleep(pause)
            source.server.add_tool(lambda: "", name=name, description="More.")
            async for change in changes:
                if change.kind == "tools":
                    break
            read.append(run.seconds)
        assert read == [1.0, 2.0, 7.0]


async def test_restart_before_the_next_attempt_begins_now(autojump_clock: MockClock) -> None:
    source = FakeSource("a", error=ConnectFailed("no route"))
    run = Opened(source, wait=0)
    async with run as host:
        await trio.sleep(10)
        before = host.status()["a"]
        assert before.retry_at is not None
        assert before.retry_at > trio.current_time()
        host.restart("a")
        assert host.status()["a"].since == trio.current_time()


async def test_error_of_a_call_leaves_its_server_ready(autojump_clock: MockClock) -> None:
    source = FakeSource("a", offering(), needs_pins=False)
    async with opened([source], approve="all") as (host, _):
        source.server.remove_tool("work")  # the host has not read the list again yet
        with pytest.raises(PeerError, match="Unknown tool"):
            await host.call_tool("a", "work")
        assert host.status()["a"].state == "ready"
        assert len(source.options) == 1
