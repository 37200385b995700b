"""The player of a client's case, with a session and a process that are formulas of the time."""

from __future__ import annotations

from contextlib import asynccontextmanager
from math import inf
from typing import TYPE_CHECKING, Any

import pytest
import trio

from mcp_trio.oracle.fuzz._echo import Echo
from mcp_trio.oracle.fuzz._fault import UNANSWERED, TargetFault
from mcp_trio.oracle.fuzz.client._client_play import ClientPlayer
from mcp_trio.oracle.fuzz.client._client_session import PING
from tests.levels import long

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from trio.testing import MockClock


class TimedChild:
    """A process that ends at a time, with a status."""

    def __init__(self, ends: float, status: int) -> None:
        self._ends = trio.current_time() + ends
        self._status = status

    @property
    def returncode(self) -> int | None:
        return self._status if trio.current_time() >= self._ends else None


class PlayedLink:
    """A connection that ends with its process, or when it is closed, unless it stays."""

    def __init__(self, ends: float, *, stays: bool) -> None:
        self.is_closed = False
        self._ends = trio.current_time() + ends
        self._stays = stays

    @property
    def has_ended(self) -> bool:
        is_over = self.is_closed or trio.current_time() >= self._ends
        return is_over and not self._stays

    async def close(self) -> None:
        self.is_closed = True


class PlayedSession:
    """A session, as far as a player needs it.

    Args:
        begins: seconds until the first message.
        ends: seconds until the process ends, with `status`.
        talks: whether it sends something all the time.
        stays: whether its connections stay although they were closed.
        more: attributes.
    """

    def __init__(
        self,
        *,
        begins: float = 0.0,
        ends: float = inf,
        status: int = 0,
        talks: bool = False,
        stays: bool = False,
        **more: Any,
    ) -> None:
        self.transport = "stdio"
        self.waiting: set[int] = set()
        self.acting = 0
        self.is_over_limits = False
        self.is_closed = False
        self.exit_status: int | None = None
        self.stderr = b""
        self.last_method = "ping"
        self.notes: list[str] = []
        self.faults: list[TargetFault] = []
        self.calls: list[str] = []
        self.links = {PlayedLink(ends, stays=stays)}
        self._began = trio.current_time()
        self._begins, self._ends, self._status, self._talks = begins, ends, status, talks
        self._activity = trio.current_time()
        for name, value in more.items():
            setattr(self, name, value)

    @property
    def messages(self) -> int:
        return int(trio.current_time() >= self._began + self._begins)

    @property
    def last_activity(self) -> float:
        return trio.current_time() if self._talks else self._activity

    @last_activity.setter
    def last_activity(self, value: float) -> None:
        self._activity = value

    @asynccontextmanager
    async def start(self, timeout: float) -> AsyncIterator[TimedChild]:
        yield TimedChild(self._ends, self._status)

    async def wait_changed(self, seconds: float) -> None:
        await trio.sleep(seconds)

    def begin_case(self, case: Any) -> None:
        self.calls.append("begin")

    def notify(self) -> None:
        self.calls.append("notify")

    def close_judge(self) -> None:
        self.calls.append("close")

    def report_endless(self) -> None:
        self.calls.append("endless")

    def report_skipped(self) -> None:
        self.calls.append("skipped")

    def has_fault(self, cause: tuple[str, str]) -> bool:
        return any(each.cause == cause for each in self.faults)

    def add_fault(self, fault: TargetFault) -> None:
        self.faults.append(fault)

    def take_faults(self) -> list[TargetFault]:
        return self.faults

    def note(self, text: str) -> None:
        self.notes.append(text)


class SlowMachineEcho(Echo):
    """The echo of a machine that is slow."""

    async def is_slow(self) -> bool:
        return True


async def played(session: PlayedSession, timeout: float = 2.0, **options: Any) -> tuple[float, Any]:
    """Play a case, and return the seconds that it has taken, and its outcome."""
    began = trio.current_time()
    stub: Any = session
    outcome = await ClientPlayer(timeout, **options).play([], stub)
    return trio.current_time() - began, outcome


@pytest.mark.parametrize(
    ("timeout", "values", "seconds"),
    [
        (2.0, {}, 2.0 + 5.0),  # a response's time, and then 2.5 times as long for the exit
        (4.0, {}, 4.0 + 10.0),
        (0.5, {}, 0.5 + 2.0),  # at least 2 s
        (2.0, {"waiting": {1}}, 0.3 + 5.0),  # it gets no response
        (2.0, {"acting": 1}, 30.0 + 5.0),  # the server's part isn't over
        (2.0, {"is_over_limits": True}, 0.0 + 5.0),
        # It goes on, and hangs only when it is silent.
        long(2.0, {"talks": True}, 30.0 + 4 * 5.0),
        (2.0, {"begins": 20.0}, 20.0 + 0.0 + 5.0),
        long(2.0, {"begins": inf}, 30.0 + 5.0),
        (2.0, {"ends": 1.0}, 1.0),
        (2.0, {"ends": 4.0}, 4.0),
        (2.0, {"begins": inf, "ends": 4.0}, 4.0),
        (2.0, {"ends": 1.0, "stays": True}, 1.0 + 0.5),  # for what is still on its way
    ],
)
async def test_case_takes_as_long_as_its_client_needs(
    timeout: float, values: dict[str, Any], seconds: float, autojump_clock: MockClock
) -> None:
    session = PlayedSession(**values)
    found, outcome = await played(session, timeout)
    assert found == pytest.approx(seconds, abs=0.1)
    is_hang = "ends" not in values and "talks" not in values and values.get("begins") != inf
    assert [each.row for each in outcome.faults] == ["hang"] * is_hang
    assert session.is_closed
    assert all(link.is_closed for link in session.links)
    assert session.exit_status == (0 if "ends" in values else None)
    assert session.calls == ["begin", "notify", "close", "endless", "skipped"]


async def test_case_ends_as_soon_as_the_wanted_fault_is_found(autojump_clock: MockClock) -> None:
    """The client is stopped then: how it would have ended is of no interest."""
    fault = TargetFault(kind="row", row="RPC-4", method="ping")
    session = PlayedSession(faults=[fault], stays=True)
    assert (await played(session, wanted=fault.cause))[0] == pytest.approx(0.5, abs=0.1)
    other = PlayedSession(faults=[fault])
    assert (await played(other, wanted=("RPC-5", "ping")))[0] == pytest.approx(7.0, abs=0.1)


async def test_hang_that_is_not_judged_is_waited_for_shortly(autojump_clock: MockClock) -> None:
    found, outcome = await played(PlayedSession(), judges_hangs=False)
    assert found == pytest.approx(2.0 + 0.3, abs=0.1)
    assert outcome.faults == []


@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_hang_is_certain_if_the_client_can_see_the_end(
    transport: str, autojump_clock: MockClock
) -> None:
    session = PlayedSession(transport=transport, last_method="m" * 100)
    [fault] = (await played(session))[1].faults
    assert fault.is_certain is (transport == "stdio")
    assert "within 5 s after" in fault.sentence
    assert fault.sentence.endswith(f"of {'m' * 80}")


async def test_slow_machine_has_more_time_and_silence_there_is_no_fault(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mcp_trio.oracle.fuzz.client._client_play.OPEN_TIMEOUT", 3.0)
    rows = [PING, UNANSWERED, "RPC-4"]
    faults = [TargetFault(kind="row", row=row, method="ping") for row in rows]
    session = PlayedSession(begins=inf, faults=faults)
    found, outcome = await played(session, echo=SlowMachineEcho())
    assert found == pytest.approx(4 * 3.0 + 5.0, abs=0.1)
    assert [each.row for each in outcome.faults] == ["RPC-4"]


@pytest.mark.parametrize(
    ("stderr", "last"),
    [
        (b"ValueError: bad\n  in line 3\n", "ValueError: bad"),
        (b"one\n two \n\n", "two"),
        (b"x" * 300, "x" * 200),
    ],
)
async def test_crash_names_the_error_or_the_last_line(
    stderr: bytes, last: str, autojump_clock: MockClock
) -> None:
    session = PlayedSession(ends=0.0, status=-11, stderr=stderr)
    [fault] = (await played(session))[1].faults
    assert fault.sentence == f"the client has ended with signal 11; {last}"
    assert (fault.kind, fault.detail, fault.method) == ("crash", "-11", "ping")


@pytest.mark.parametrize(("status", "note"), [(1, f"KeyError: '{'k' * 300}'"[:100]), (0, None)])
async def test_notes_are_handed_on(
    status: int, note: str | None, autojump_clock: MockClock
) -> None:
    stderr = b"Traceback (most recent call last):\n  x\nKeyError: '%b'\n" % (b"k" * 300)
    notes: list[str] = []
    session = PlayedSession(ends=0.0, status=status, stderr=stderr, notes=["odd"])
    await played(session, on_note=notes.append)
    assert notes == [
        "odd",
        *([] if note is None else [f"the client ends with a traceback: {note}"]),
    ]


@pytest.mark.parametrize("row", [PING, UNANSWERED, "hang"])
async def test_silence_alone_is_no_fault_on_a_slow_machine(
    row: str, autojump_clock: MockClock
) -> None:
    for echo, found in (SlowMachineEcho(), []), (None, [row]):
        faults = [TargetFault(kind="row", row=row, method="ping")]
        session = PlayedSession(ends=0.0, faults=faults)
        assert [each.row for each in (await played(session, echo=echo))[1].faults] == found


@pytest.mark.parametrize(
    ("status", "shown"),
    [
        *((-each, "") for each in (1, 2, 13, 15)),  # a system or a user sends these
        *((-each, f"signal {each}") for each in (3, 6, 9, 11, 12, 14, 16)),
        *((each, f"exit status {each}") for each in (132, 134, 135, 136, 139)),
        *((each, "") for each in (0, 1, 2, 127, 131, 133, 137, 138, 140, 143)),
    ],
)
async def test_client_that_ends_by_a_signal_has_crashed(
    status: int, shown: str, autojump_clock: MockClock
) -> None:
    """A shell reports a signal as an exit status. Signals that only stop a program don't count."""
    session = PlayedSession(ends=0.0, status=status)
    faults = (await played(session))[1].faults
    assert [each.sentence for each in faults] == (
        [f"the client has ended with {shown}"] if shown else []
    )


@pytest.mark.parametrize(
    ("stderr", "shown"),
    [
        (b"thread 'main' panicked at a", "thread 'main' panicked at a"),
        (b"Uncaught a", "see its stderr"),
        (b"Unhandled a", "see its stderr"),
        (b"unhandled a", "see its stderr"),
        (b"it has failed", None),
    ],
)
async def test_client_that_fails_with_a_traceback_gets_a_note(
    stderr: bytes, shown: str | None, autojump_clock: MockClock
) -> None:
    session = PlayedSession(ends=0.0, status=1, stderr=stderr)
    outcome = (await played(session))[1]
    note = [] if shown is None else [f"the client ends with a traceback: {shown}"]
    assert (outcome.faults, outcome.notes) == ([], note)
