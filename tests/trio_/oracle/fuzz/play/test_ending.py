"""The end of a case: processes that end, and the probe."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import trio

from mcp_core.trace import ROWS
from mcp_trio.oracle.fuzz._echo import Echo
from mcp_trio.oracle.fuzz.play._player import Player, play_case
from tests.trio_.oracle.fuzz.memory_http import (
    EMPTY_STREAM,
    HttpResponse,
    faults_of,
    responds_with,
    response_to,
)
from tests.trio_.oracle.fuzz.memory_target import (
    NEW,
    OLD,
    MemorySession,
    MemoryTarget,
    answers,
    same_each_time,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

OPEN = ("open", OLD, "whole", "all")
LIST: tuple[str, str, Any] = ("request", "tools/list", {})


class MortalSession(MemorySession):
    """A conversation with a process that ends at a message."""

    status = 0
    deadly = ("initialize", 1)  # a method, and how many earlier requests have it
    received = 0

    async def send_text(self, text: str, message: Mapping[str, Any]) -> None:
        method, earlier = self.deadly
        if message.get("method") == method:
            self.received += 1
            if self.received > earlier:
                self.exit_status = self.status
                self.end("its stdout has ended")
                return
        if not self.ended:
            await super().send_text(text, message)


@pytest.mark.parametrize(
    ("how", "deadly", "status", "kinds"),
    [
        ("twice", ("initialize", 1), 1, ["crash"]),
        ("twice", ("initialize", 1), -6, ["crash"]),
        ("twice", ("initialize", 1), 0, []),
        ("late", ("tools/list", 0), 1, []),
        ("late", ("tools/list", 0), -6, ["crash"]),
        ("whole", ("tools/list", 0), 0, ["crash"]),
    ],
)
async def test_process_that_ends_after_an_unusual_beginning_has_crashed_if_its_status_says_so(
    autojump_clock: Any, how: str, deadly: tuple[str, int], status: int, kinds: list[str]
) -> None:
    target = MemoryTarget(same_each_time(answers))

    class Mortal(MortalSession):
        pass

    Mortal.status, Mortal.deadly = status, deadly
    target.session_class = Mortal
    outcome = await play_case(target, [("open", OLD, how, "all"), LIST])
    assert [each.kind for each in outcome.faults if each.kind == "crash"] == kinds


async def test_process_that_ends_after_its_input_has_not_crashed(autojump_clock: Any) -> None:
    class Ending(MemorySession):
        async def disconnect(self) -> None:
            self.exit_status, self.spent = 1, True
            await super().disconnect()

    target = MemoryTarget(same_each_time(answers))
    target.session_class = Ending
    outcome = await play_case(target, [OPEN, ("disconnect",)])
    assert outcome.faults == []


class FixedEcho(Echo):
    """A measure that says always the same of the machine."""

    def __init__(self, *, slow: bool) -> None:
        super().__init__()
        self._slow = slow

    async def is_slow(self) -> bool:
        return self._slow


@pytest.mark.parametrize("is_slow", [True, False])
@pytest.mark.parametrize("revision", [OLD, NEW])
async def test_process_that_outlives_its_input_is_told_of_unless_the_machine_is_slow(
    autojump_clock: Any, revision: str, is_slow: bool
) -> None:
    """A revision in which it isn't a fault gets a note of it, which has to be as true."""

    class Outliving(MemorySession):
        async def disconnect(self) -> None:
            self.outlives_input = True
            await super().disconnect()

    target = MemoryTarget(same_each_time(answers))
    target.session_class = Outliving
    case = [("open", revision, "whole", "all"), ("disconnect",)]
    outcome = await play_case(target, case, Player(echo=FixedEcho(slow=is_slow)))
    found = [*(each.row for each in outcome.faults), *outcome.notes]
    is_rule = revision in ROWS["STDIO-11"].revisions
    told = ["STDIO-11" if is_rule else "the process goes on after the end of its input"]
    assert found == ([] if is_slow else told)


class StderrSession(MortalSession):
    """A process that ends at the method, or the bytes, and tells why."""

    told = ""
    at_bytes = False

    def describe(self) -> str:
        return self.told

    def stderr(self) -> bytes:
        return self.told.encode()

    async def send_data(self, data: bytes) -> None:
        if self.at_bytes:
            self.exit_status = self.status
            self.end("its stdout has ended")
        await super().send_data(data)


STDERR = """ (exit status 3)
  its stderr: first
  its stderr: OSError: a
  its stderr: last"""
CRASH = STDERR.replace("first", "mcp/server/stdio.py").replace(
    "OSError: a", "UnicodeDecodeError: 'utf-8'"
)


@pytest.mark.parametrize(
    ("transport", "told", "status", "step", "crash"),
    [
        (
            "stdio",
            "",
            None,
            LIST,
            (
                *("crash", "closed", "tools/list", "MUST"),
                "the server has ended the conversation: its stdout has ended after tools/list",
            ),
        ),
        (
            "stdio",
            STDERR,
            3,
            LIST,
            (
                *("crash", "3", "tools/list", "MUST"),
                "the process has ended with exit status 3 after tools/list; its stderr: OSError: a",
            ),
        ),
        (
            "stdio",
            STDERR.replace("OSError: a", "a"),
            0,
            LIST,
            (
                *("crash", "0", "tools/list", "MUST"),
                "the process has ended with exit status 0 after tools/list; its stderr: last",
            ),
        ),
        (
            "stdio",
            " (killed)",
            -1,
            ("mutate", "{"),
            (
                *("STDIO-6", "-1", "bytes", "reading"),
                "the process has ended with signal 1 after bytes",
            ),
        ),
        (
            "http",
            "",
            None,
            ("mutate", "{"),
            (
                *("crash", "closed", "bytes", "reading"),
                "the server has ended the conversation: its stdout has ended after bytes",
            ),
        ),
        (
            "stdio",
            "",
            1,
            ("mutate", "[1]"),
            (
                *("crash", "1", "bytes", "MUST"),
                "the process has ended with exit status 1 after bytes",
            ),
        ),
        (
            "stdio",
            CRASH,
            1,
            ("mutate", "{"),
            (
                *("crash", "1 https://github.com/modelcontextprotocol/python-sdk/pull/2302"),
                *("bytes", "MUST"),
                "the process has ended with exit status 1 after bytes; its stderr: Unicode",
            ),
        ),
    ],
)
async def test_crash_has_the_status_the_last_message_and_the_error(
    autojump_clock: Any,
    transport: str,
    told: str,
    status: int | None,
    step: Any,
    crash: tuple[str, ...],
) -> None:
    """The first line of a description is the status. After bytes that aren't JSON it's advice."""
    target = MemoryTarget(same_each_time(answers))

    class Mortal(StderrSession):
        at_bytes = step[0] == "mutate"

    Mortal.status, Mortal.told, Mortal.deadly = status, told, ("tools/list", 0)  # type: ignore[assignment]
    Mortal.transport = transport
    target.session_class = Mortal
    outcome = await play_case(target, [OPEN, step])
    [found] = [each for each in outcome.faults if each.kind == "crash"]
    *members, sentence = crash
    assert [found.row, found.detail, found.method, found.level] == members
    assert found.sentence.startswith(sentence) if told == CRASH else found.sentence == sentence


@pytest.mark.parametrize(
    ("transport", "case", "count"),
    [
        ("stdio", [("open", NEW, "whole", "all"), ("disconnect",)], 1),
        ("http", [("open", NEW, "whole", "all"), ("disconnect",)], 0),
        ("stdio", [("open", OLD, "whole", "all"), ("disconnect",)], 0),
        ("stdio", [("open", NEW, "whole", "all"), ("reconnect",)], 1),
        ("stdio", [("disconnect",)], 0),
    ],
)
async def test_end_of_input_is_an_opportunity_to_exit_promptly(
    autojump_clock: Any, transport: str, case: Any, count: int
) -> None:
    target = MemoryTarget(same_each_time(answers))

    class Moved(MemorySession):
        pass

    Moved.transport = transport
    target.session_class = Moved
    session = await target.open(keep=True)
    await Player().play(case, session)
    assert session.judge.opportunities["STDIO-11"] == count
    await session.aclose()


async def test_process_that_is_busy_may_outlive_its_input(autojump_clock: Any) -> None:
    """While a cancelled call may still run, an exit takes as long as that."""

    class Outliving(MemorySession):
        async def disconnect(self) -> None:
            self.outlives_input = True
            self.running.add("tools/call slow")
            await super().disconnect()

        @property
        def may_be_busy(self) -> bool:
            return True

    target = MemoryTarget(same_each_time(answers))
    target.session_class = Outliving
    outcome = await play_case(target, [("open", NEW, "whole", "all"), ("disconnect",)])
    assert (outcome.faults, outcome.notes) == ([], [])


async def test_reconnection_begins_another_session_after_any_end(autojump_clock: Any) -> None:
    """One that has ended isn't ended again. A crash of the next one is reported."""
    target = MemoryTarget(same_each_time(answers))
    ends = []

    class Counted(MemorySession):
        async def disconnect(self) -> None:
            ends.append(self.ended)
            await super().disconnect()

    target.session_class = Counted
    case = [OPEN, ("disconnect",), ("reconnect",), OPEN, ("reconnect",), OPEN, LIST]
    outcome = await play_case(target, case)
    assert ends == ["", ""]
    assert (outcome.reconnects, target.starts, outcome.faults) == (2, 3, [])


@pytest.mark.parametrize(("steps", "kinds"), [([], ["crash"]), ([("disconnect",)], [])])
async def test_crash_of_a_process_after_a_reconnection_is_a_fault(
    autojump_clock: Any, steps: Any, kinds: list[str]
) -> None:
    """Only the one that was disconnected may end with any status."""
    target = MemoryTarget(same_each_time(answers))
    starts: list[int] = []

    class Ending(MortalSession):
        status, deadly = 1, ("tools/list", 0)

        async def disconnect(self) -> None:
            starts.append(1)
            self.exit_status = 1
            await super().disconnect()

    target.session_class = Ending
    unusual = ("open", OLD, "twice", "all")
    outcome = await play_case(target, [OPEN, ("reconnect",), unusual, *steps, LIST])
    assert [each.kind for each in outcome.faults if each.kind == "crash"] == kinds


async def test_session_serves_further_cases_unless_it_ended(autojump_clock: Any) -> None:
    session = await MemoryTarget(same_each_time(answers)).open(keep=True)
    await Player().play([OPEN, LIST], session)
    spent = [session.spent]
    session.end("over")
    await Player().play([], session)
    assert [*spent, session.spent] == [False, True]
    await session.aclose()


@pytest.mark.parametrize(
    ("wanted", "steps", "seconds"),
    [
        (None, [], 0),
        (("crash", "1"), [], 0.1),
        (("crash", "1"), [("request", "tools/list", {}, "int", "whole"), ("cancel", 0)], 2),
        (None, [("request", "tools/list", {}, "int", "whole"), ("cancel", 0)], 0),
    ],
)
async def test_play_for_a_fault_waits_for_what_no_request_brings(
    autojump_clock: Any, wanted: Any, steps: Any, seconds: float
) -> None:
    """A response to a cancelled request may come as late as any other."""

    def served(message: Mapping[str, Any]) -> Any:
        return iter(()) if message.get("method") == "tools/list" else answers(message)

    begun = trio.current_time()
    target = MemoryTarget(same_each_time(served))
    await play_case(target, [OPEN, *steps], Player(wanted=wanted))
    assert trio.current_time() - begun == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("response", "found"),
    [
        (EMPTY_STREAM, [("row", "RPC-35", "tools/list")]),
        (HttpResponse(body=b'{"jsonrpc"', is_cut=True), [("row", "RPC-35", "tools/list")]),
        (HttpResponse(is_cut=True), []),
    ],
)
async def test_request_whose_exchange_ends_without_response_is_a_fault(
    autojump_clock: Any, response: HttpResponse, found: list[tuple[str, str, str]]
) -> None:
    """A connection can break for another reason, before anything of its body has come."""
    assert await faults_of(responds_with(response), OPEN, LIST) == found


# -- The probe -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("revision", "method"), [(OLD, "ping"), (NEW, "server/discover")], ids=["old", "new"]
)
async def test_probe_whose_exchange_ends_without_response_is_a_fault(
    autojump_clock: Any, revision: str, method: str
) -> None:
    respond = responds_with(EMPTY_STREAM, method)
    found = await faults_of(respond, ("open", revision, "whole", "all"))
    assert ("row", "RPC-35", method) in found


@pytest.mark.parametrize("status", [300, 404, 429, 503])
async def test_probe_that_is_rejected_with_a_status_is_no_fault(
    autojump_clock: Any, status: int
) -> None:
    assert await faults_of(responds_with(HttpResponse(status), "ping"), OPEN) == []


@pytest.mark.parametrize(("cuts", "found"), [(1, []), (2, [("hang", "RPC-35", "ping")])])
async def test_probe_that_is_cut_off_twice_is_a_hang(
    autojump_clock: Any, cuts: int, found: list[tuple[str, str, str]]
) -> None:
    left = cuts

    def respond(message: Mapping[str, Any]) -> HttpResponse:
        nonlocal left
        if message.get("method") == "ping" and left:
            left -= 1
            return HttpResponse(is_cut=True)
        return response_to(message)

    assert await faults_of(respond, OPEN) == found
