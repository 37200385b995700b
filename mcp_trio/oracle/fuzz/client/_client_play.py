"""The player of a case: start the client, follow the script, end the connection, collect faults.

1. A client may give up, close and exit with any status. What it sends is judged.
2. The connection is closed once the script is over and the client sends nothing more. A client that
   then neither ends nor sends anything hangs. Over HTTP that is advice only: the client can't see
   the end, and may be waiting for its own timeout.
3. A client that a signal kills has crashed. A traceback with an exit status is a note.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import trio

from mcp_core.processes import find_error_line
from mcp_trio.oracle.fuzz._case import Outcome
from mcp_trio.oracle.fuzz._fault import UNANSWERED, TargetFault

from ._client_session import PING

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_trio.oracle.fuzz._case import Case
    from mcp_trio.oracle.fuzz._echo import Echo
    from mcp_trio.streams._child import ChildProcess

    from ._client_session import ClientSession

__all__ = ["ClientPlayer"]

OPEN_TIMEOUT: Final = 30.0  # seconds for the first message of a process
MAX_OPENINGS: Final = 4  # times as long on a slow machine
STUCK_TIMEOUT: Final = 0.3  # seconds for a client that waits for a response it doesn't get
MAX_SECONDS: Final = 30.0  # of one case, after the first message
LAST_BYTES_TIMEOUT: Final = 0.5  # seconds for what is on its way when the process has ended
EXIT_FACTOR: Final = 2.5  # times the response timeout, for an exit after the connection has ended
MIN_EXIT_TIMEOUT: Final = 2.0  # seconds
UNJUDGED_TIMEOUT: Final = 0.3  # seconds for an exit if a hang isn't a finding
HANG: Final = "hang"
# Signals that a system or a user sends. A plain program gets SIGPIPE when it writes.
_HARMLESS_SIGNALS: Final = (1, 2, 13, 15)
# Faults that a slow machine can be the reason for.
_SILENT: Final = (PING, UNANSWERED, HANG)
_CRASH_STATUSES: Final = (132, 134, 135, 136, 139)  # a shell adds the signal's number
_TROUBLE: Final = re.compile(
    rb"Traceback \(most recent call last\)|panicked at|[Uu]nhandled\b|Uncaught\b"
)


class ClientPlayer:
    """A player of cases. Each case starts a process.

    Args:
        response_timeout: seconds for the response to a ping.
        echo: measures how slow the machine is; None to trust it.
        wanted: the cause of a fault. A play ends when it is found.
        judges_hangs: False for a client that doesn't end when its connection ends.
        on_note: gets notes.
    """

    def __init__(
        self,
        response_timeout: float = 2.0,
        *,
        echo: Echo | None = None,
        wanted: tuple[str, str] | None = None,
        judges_hangs: bool = True,
        on_note: Callable[[str], object] = lambda note: None,
    ) -> None:
        self._timeout = response_timeout
        self._echo = echo
        self._wanted = wanted
        self._judges_hangs = judges_hangs
        self._on_note = on_note

    async def play(self, case: Case, session: ClientSession) -> Outcome:
        """Play `case` on `session`, and return its outcome.

        Raises:
            ConnectFailed: the program cannot be started.
        """
        session.begin_case(case)
        async with session.start(self._timeout) as child:
            await self._wait_for_first_message(session, child)
            if session.messages:
                await self._follow(session, child)
            if child.returncode is None and not self._is_found(session):
                await self._close(session, child)
            session.exit_status = child.returncode
            session.notify()
            with trio.move_on_after(LAST_BYTES_TIMEOUT):
                while not all(link.has_ended for link in session.links):
                    await session.wait_changed(LAST_BYTES_TIMEOUT)
            await self._end(session)
        session.close_judge()
        session.report_endless()
        session.report_skipped()
        if session.exit_status:
            self._note_trouble(session)
        for note in session.notes:
            self._on_note(note)
        faults = session.take_faults()
        if any(each.row in _SILENT for each in faults) and await self._is_slow():
            faults = [each for each in faults if each.row not in _SILENT]
        return Outcome(faults=faults, messages=session.messages, notes=list(session.notes))

    def _is_found(self, session: ClientSession) -> bool:
        return self._wanted is not None and session.has_fault(self._wanted)

    async def _is_slow(self) -> bool:
        return self._echo is not None and await self._echo.is_slow()

    async def _wait_for_first_message(self, session: ClientSession, child: ChildProcess) -> None:
        """Wait for the client's first message, or for its end: longer on a slow machine.

        A client that starts slowly there would count as one that doesn't start any more.
        """
        for _ in range(MAX_OPENINGS):
            deadline = trio.current_time() + OPEN_TIMEOUT
            while child.returncode is None and not session.messages:
                if trio.current_time() > deadline:
                    break
                await session.wait_changed(0.01)
            else:
                return
            if not await self._is_slow():
                return

    async def _follow(self, session: ClientSession, child: ChildProcess) -> None:
        """Wait until the client has ended, or has nothing more to say."""
        deadline = trio.current_time() + MAX_SECONDS
        while child.returncode is None and not self._is_found(session):
            now = trio.current_time()
            if session.is_over_limits or now > deadline:
                return
            limit = STUCK_TIMEOUT if session.waiting else self._timeout
            if not session.acting and now > session.last_activity + limit:
                return
            await session.wait_changed(0.01)

    async def _close(self, session: ClientSession, child: ChildProcess) -> None:
        """End all connections, and wait for the end of the process."""
        await self._end(session)
        session.last_activity = began = trio.current_time()
        timeout = max(MIN_EXIT_TIMEOUT, EXIT_FACTOR * self._timeout)
        if not self._judges_hangs:
            timeout = UNJUDGED_TIMEOUT
        while child.returncode is None and trio.current_time() < began + 4 * timeout:
            if trio.current_time() > session.last_activity + timeout:
                if self._judges_hangs and session.messages:
                    self._report_hang(session, timeout)
                return
            await session.wait_changed(0.01)

    async def _end(self, session: ClientSession) -> None:
        session.is_closed = True
        for link in list(session.links):
            await link.close()

    def _report_hang(self, session: ClientSession, timeout: float) -> None:
        session.add_fault(
            TargetFault(
                kind="hang",
                row=HANG,
                is_certain=session.transport != "http",
                sentence=f"the client neither ends nor sends anything within {timeout:g} s after"
                f" its connection has ended; its last message was of {session.last_method[:80]}",
            )
        )

    def _note_trouble(self, session: ClientSession) -> None:
        """Add a fault for a crash, or a note for a traceback."""
        status = session.exit_status or 0
        number = -status if status < 0 else 0
        lines = session.stderr.decode(errors="replace").splitlines()
        if (number and number not in _HARMLESS_SIGNALS) or status in _CRASH_STATUSES:
            shown = f"signal {number}" if number else f"exit status {status}"
            last = find_error_line(lines)
            last = last or next((line.strip() for line in reversed(lines) if line.strip()), "")
            session.add_fault(
                TargetFault(
                    kind="crash",
                    row="crash",
                    detail=str(status),
                    method=session.last_method,
                    sentence=f"the client has ended with {shown}; {last[:200]}".rstrip("; "),
                )
            )
        elif _TROUBLE.search(session.stderr):
            shown = find_error_line(lines)[:100] or "see its stderr"
            session.note(f"the client ends with a traceback: {shown}")
