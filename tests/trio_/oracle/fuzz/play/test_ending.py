"""The end of a case: processes that end, and the probe."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

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
