"""A pytest plugin that judges what our connections send in all tests.

    pytest -p tests.judged

Each `Connection` of a test is an observer of one conversation: what it receives and what it sends,
in its own order. Only our side is judged, because the peers of many tests are wrong on purpose. A
test fails if the judge is certain that our side broke a rule.

It covers the connections that send and receive bytes: stdio, streams and memory. HTTP connections
get parsed messages and are not seen; `tests/drivers/test_recording_judged.py` records them. Tests
that use a `Connection` without a server or client write its results themselves, and are left out.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any, Final, Literal

import pytest
import trio

from mcp_core import Connection, Role
from mcp_core.trace import Finding, Judge, TraceHeader, TraceLine
from tests.harness import either

if TYPE_CHECKING:
    from collections.abc import Generator

__all__ = ["JudgedConversation", "judge_connections"]

_HOSTILE_MESSAGE: Final = (
    "tests/drivers/test_bad_input.py"
    "::test_server_hostile_message_is_rejected_and_the_next_is_answered"
)
# Their results and notifications are made up, such as a tool result that is `{}`.
_LEFT_OUT: Final = (
    "tests/core/",
    "tests/fuzz/",
    "tests/trio_/streams/test_link.py",
    "tests/test_judged.py",
    # Our side reads what the judge, which is exact, takes for no message.
    "tests/drivers/test_input_problems.py",
    *(f"{_HOSTILE_MESSAGE}[{driver}-bom" for driver in ("trio", "asyncio")),
    # Its task lives for a millisecond, and is gone when it is asked for.
    "tests/drivers/test_tasks.py::test_task_over_its_time_to_live_is_forgotten",
    # Its server lists an IRI, as its program declares it.
    "tests/drivers/test_uri_spellings.py::test_host_reads",
    # They measure memory, and this plugin keeps the lines.
    "tests/drivers/test_bad_input.py::test_server_300_mib",
    "tests/drivers/test_pressure.py::test_pressure_many_messages_to_an_unread_client",
    # Its server's wall clock jumps, and the messages' doesn't.
    "tests/test_task_stores.py::test_clock_that_jumps_ahead",
    # They look at the methods that this plugin replaces.
    "tests/layering/",
)


class JudgedConversation:
    """The judge of one connection's conversation."""

    def __init__(self, role: Role) -> None:
        self.side: Literal["client", "server"] = "client" if role is Role.CLIENT else "server"
        header = TraceHeader(format_version=1, observer=self.side, transport="stdio")
        self.judge = Judge(header, from_start=True)
        self.findings: list[Finding] = []
        self.lines: list[tuple[str, bytes]] = []
        self._unfinished = {"sent": bytearray(), "received": bytearray()}

    def add(self, direction: Literal["sent", "received"], data: bytes) -> None:
        """Judge the lines that `data` ends."""
        unfinished = self._unfinished[direction]
        unfinished += data if data or direction == "sent" else b"\n"  # the end ends a line
        *lines, rest = bytes(unfinished).split(b"\n")
        unfinished[:] = rest
        for line in lines:
            self._add_line(direction, line)

    def close(self) -> None:
        self.findings += self.judge.close()

    def ours(self) -> list[Finding]:
        """Return the certain findings about our side."""
        return [each for each in self.findings if each.is_certain and each.side == self.side]

    def _add_line(self, direction: str, line: bytes) -> None:
        other: Literal["client", "server"] = "server" if self.side == "client" else "client"
        sender = self.side if direction == "sent" else other
        self.lines.append((direction, line))
        # A task is gone after its time to live, which a mocked clock can reach at once.
        t = either.current_time() if _runs() else time.monotonic()
        try:
            entry = TraceLine(t=t, sender=sender, raw=line.decode())
        except UnicodeDecodeError:
            entry = TraceLine(t=t, sender=sender, data=line)
        self.findings += self.judge.receive(entry)


def _runs() -> bool:
    """True in a run of trio or of asyncio, whose clock may jump."""
    return trio.lowlevel.in_trio_run() or asyncio._get_running_loop() is not None


def judge_connections(monkeypatch: pytest.MonkeyPatch) -> list[JudgedConversation]:
    """Make every connection judge itself, and return the list that they are added to."""
    conversations: list[JudgedConversation] = []
    # By id, with the connection itself, so that no other one gets the same id.
    by_id: dict[int, tuple[Connection, JudgedConversation]] = {}
    receive, send = Connection.receive_data, Connection.data_to_send

    def conversation_of(connection: Connection) -> JudgedConversation:
        if id(connection) not in by_id:
            conversation = JudgedConversation(connection.role)
            by_id[id(connection)] = connection, conversation
            conversations.append(conversation)
        return by_id[id(connection)][1]

    def observed_receive(self: Connection, data: bytes, *args: Any, **options: Any) -> None:
        conversation_of(self).add("received", bytes(data))
        receive(self, data, *args, **options)

    def observed_send(self: Connection, *args: Any, **options: Any) -> bytes:
        data = send(self, *args, **options)
        conversation_of(self).add("sent", data)
        return data

    monkeypatch.setattr(Connection, "receive_data", observed_receive)
    monkeypatch.setattr(Connection, "data_to_send", observed_send)
    return conversations


@pytest.fixture(autouse=True)
def judged_connections(request: pytest.FixtureRequest) -> Generator[None]:
    if request.node.nodeid.startswith(_LEFT_OUT):
        yield
        return
    with pytest.MonkeyPatch.context() as patch:
        conversations = judge_connections(patch)
        yield
    faults = []
    for conversation in conversations:
        conversation.close()
        for found in conversation.ours():
            lines = "\n".join(
                f"    {number} {direction} {line[:300]!r}"
                for number, (direction, line) in enumerate(conversation.lines, 2)
            )
            faults.append(f"{found.row} {found.sentence} {found.lines}\n{lines}")
    assert not faults, "\n".join(faults)
