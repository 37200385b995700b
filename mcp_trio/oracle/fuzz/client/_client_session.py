"""One run of the client process: the case's server, the judge, and what both have sent.

The links (`_lines`, `_http`) carry bytes. They call `receive` with what the client has sent, and
`record` with what they send.
"""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any, Final, Protocol

import trio

from mcp_core import escape_text
from mcp_core.processes import find_error_line
from mcp_core.trace import ROWS, Judge
from mcp_trio.oracle.fuzz._fault import LEVELS, UNANSWERED, TargetFault
from mcp_trio.oracle.fuzz._shared_trace import MAX_KEPT

from ._script import ScriptedServer
from ._script_case import is_excused

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractAsyncContextManager

    from mcp_core.adapters import LineRecorder
    from mcp_core.trace import Finding, TraceHeader, TraceLine
    from mcp_trio.oracle.fuzz._case import Case
    from mcp_trio.streams._child import ChildProcess

    from ._script import Reaction
    from ._wrong_answers import Action

__all__ = ["ClientSession", "LinkLike"]

LINE_LIMIT: Final = 4 * 1024 * 1024  # bytes of a message that are judged
MAX_REQUESTS: Final = 300  # of one case; a client that follows cursors may never end
MAX_INPUT: Final = 64 * 1024 * 1024  # bytes of one case
PING: Final = "PING-2"
WRONG_ID: Final = "RPC-7"
EMPTY_CURSOR: Final = "PAGE-4"
ENDLESS: Final = "endless"
# What a client has followed, by the kind of the answers.
_FOLLOWED: Final = {
    "cursor": "{count} pages of {method} were read",
    "input": "{method} was sent {count} times, each with an `input_required` result",
    "unsupported": "{method} was sent {count} times, each with the error -32022",
}


class LinkLike(Protocol):
    """A connection between the client and the case's server."""

    @property
    def has_ended(self) -> bool:
        """True once it has ended."""

    async def close(self) -> None:
        """End the connection."""


class ClientSession:
    """The conversations of one process of the client.

    Args:
        header: the header of its trace.
        keep: True to keep the lines.

    Attributes:
        transport: stdio or http.
        server: the server that follows the case; set by `begin_case`.
        last_activity: when the client last sent something.
        acting: how many of the server's reactions are under way.
        is_closed: the player has ended the connection. No other one is accepted.
        messages: how many the client has sent.
        exit_status: the process's exit status, None while it runs.
    """

    # What `Campaign` reads of a session.
    revision = ""
    is_open = False
    spent = True
    ended = ""
    played = 0

    def __init__(self, header: TraceHeader, *, keep: bool) -> None:
        self.header = header
        self.transport = header.transport
        self.judge = Judge(header, from_start=True, all_conversations=True, unjudged="server")
        self.lines: list[TraceLine] | None = [] if keep else None
        self.recording: LineRecorder | None = None
        self.server = ScriptedServer([])
        self.began_at = trio.current_time()
        self.last_activity = self.began_at
        self.last_method = ""
        self.acting = 0
        self.waiting: set[int | str] = set()  # requests of the client without a response
        self.is_closed = False
        self.messages = 0
        self.exit_status: int | None = None
        self.stderr = b""
        self.links: set[LinkLike] = set()
        self.connections = 0
        self.notes: list[str] = []
        self.start: Callable[[float], AbstractAsyncContextManager[ChildProcess]]
        self._received = 0
        self._conversations = 0
        self._faults: list[TargetFault] = []
        self._changed = trio.Event()

    def begin_case(self, case: Case) -> None:
        """Follow `case`."""
        self.server = ScriptedServer(case, is_http=self.transport == "http")

    def note(self, text: str) -> None:
        """Note something that is strange but isn't a fault."""
        if len(self.notes) < MAX_KEPT:
            self.notes.append(text)

    def trouble(self) -> str:
        """Return "": the player notes what stderr says."""
        return ""

    def memory(self) -> dict[int, int]:
        """Return nothing: a client's process lives for one case only."""
        return {}

    async def aclose(self) -> None:
        """Do nothing: the process ends with the case."""

    def time(self) -> float:
        """Return the seconds since the session began."""
        return max(0.0, trio.current_time() - self.began_at)

    def notify(self) -> None:
        """Note that something has happened."""
        self._changed.set()

    async def wait_changed(self, seconds: float) -> None:
        """Wait until something happens."""
        self._changed = trio.Event()
        with trio.move_on_after(seconds):
            await self._changed.wait()

    # -- Recording ---------------------------------------------------------------------------------

    def begin_conversation(self) -> int:
        """Return the number of the next conversation."""
        self._conversations += 1
        if self.transport != "http":
            self.server.begin_conversation()
        return self._conversations

    def record(self, line: TraceLine, method: str = "") -> None:
        """Hand a line to the judge, and add a fault for each finding about the client."""
        if self.lines is not None:
            self.lines.append(line)
        if self.recording is not None:
            self.recording.record(line)
        self._add_findings(self.judge.receive(line), method)

    def close_judge(self) -> None:
        """Let the judge judge how the conversations ended."""
        self._add_findings(self.judge.close(), "")

    def _add_findings(self, found: list[Finding], method: str) -> None:
        for each in found:
            if not each.is_certain or each.side != "client" or each.level not in LEVELS:
                continue
            if is_excused(each.row, each.level, self.server.disturbed):
                continue
            self.add_fault(TargetFault.from_finding(each, method))

    def add_fault(self, fault: TargetFault) -> None:
        """Add a fault, once for each key."""
        if len(self._faults) < MAX_KEPT and all(each.key != fault.key for each in self._faults):
            self._faults.append(fault)

    def has_fault(self, cause: tuple[str, str]) -> bool:
        """Return True if a fault of this cause was found."""
        return any(each.cause == cause for each in self._faults)

    def describe(self) -> str:
        """Return the exit status and the last line of stderr, or ""."""
        lines = self.stderr.decode(errors="replace").strip().splitlines()
        status = "" if self.exit_status is None else f" (exit status {self.exit_status})"
        last = find_error_line(lines) or (lines[-1] if lines else "")
        return status + (f": {escape_text(last[:200])}" if last else "")

    def take_faults(self) -> list[TargetFault]:
        """Return the client's faults."""
        found, self._faults = self._faults, []
        return found

    def report_silence(self, method: str, timeout: float) -> None:
        """Add a fault for a request without a response, unless the case can be the reason.

        The request is a ping, or one that the client has to refuse. A response with another id is a
        fault of its own.
        """
        if self.server.disturbed - {"tasks", "pages", "rounds"}:
            return
        if any(each.row == WRONG_ID for each in self._faults):
            return
        what = "a ping of the server"
        if method != "ping":
            what = f"{method or 'a request without a method'}, which the client has to refuse,"
        sentence = f"{what} was not answered within {timeout:g} s"
        self._add_broken_row(PING if method == "ping" else UNANSWERED, method, sentence)

    def _add_broken_row(self, id: str, method: str, sentence: str) -> None:
        row, revision = ROWS[id], self.server.revision
        self.add_fault(
            TargetFault(
                kind="row",
                row=id,
                method=method,
                level=row.level,
                sentence=sentence,
                link=row.link(revision),
            )
        )

    def report_endless(self) -> None:
        """Add advice if the client has followed what has no end for as long as a case goes on.

        A case that shows a fault says enough.
        """
        if self.server.endless is None or self._faults:
            return
        method, how, count = self.server.endless
        what = _FOLLOWED.get(how, "{method} was sent {count} times, after whatever response")
        sentence = what.format(method=method, count=count) + ", and the client goes on"
        self.add_fault(
            TargetFault(
                kind="row",
                row=ENDLESS,
                detail=how,
                method=method,
                level="reading",
                is_certain=False,
                sentence=sentence,
            )
        )

    def report_skipped(self) -> None:
        """Add a fault if the client took an empty cursor for the end of a list that it read on."""
        server = self.server
        goes_on = server.requests > server.last_page or self.exit_status == 0
        if not server.skipped or not goes_on or self.is_over_limits:
            return
        if server.revision not in ROWS[EMPTY_CURSOR].revisions:
            return
        self._add_broken_row(
            EMPTY_CURSOR,
            server.skipped,
            f"the client follows the cursors of {server.skipped}, and takes the empty one for the"
            " end",
        )

    # -- Messages ----------------------------------------------------------------------------------

    def receive(self, line: TraceLine) -> list[Reaction]:
        """Take a line of the client, and return what the server does."""
        self.last_activity = trio.current_time()
        self._received += len(line.raw or line.data or b"")
        members = _members(line.raw)
        method = next((str(each["method"]) for each in members if "method" in each), "")
        if not method:
            method = next(
                (self.server.asked.get(_key(each), "") for each in members), self.last_method
            )
        self.last_method = method or self.last_method
        self.record(line, method)
        found: list[Reaction] = []
        for message in members:
            self.messages += 1
            if self.is_over_limits:
                break
            is_request = "method" in message and isinstance(message.get("id"), int | str)
            if is_request and message["method"] != "subscriptions/listen":  # that stays open
                self.waiting.add(message["id"])
            reaction = self.server.receive(message)
            if reaction is not None:
                found.append(reaction)
        self.notify()
        return found

    def note_sent(self, data: bytes) -> None:
        """Note a message that the server is about to send."""
        self.last_activity = trio.current_time()
        for each in _members(data.decode("utf-8", "replace")) if len(data) < LINE_LIMIT else ():
            if "method" not in each:
                self.waiting.discard(_key(each))

    @property
    def is_over_limits(self) -> bool:
        """True if the client has sent more than the limits of a case."""
        server = self.server
        is_much = server.requests > MAX_REQUESTS or self._received > MAX_INPUT
        return is_much or server.endless is not None

    async def wait_for_response(self, action: Action, timeout: float, link: LinkLike) -> None:
        """Wait for the client's response to a request that `link` has sent."""
        seconds = min(action.seconds, timeout)
        deadline = trio.current_time() + seconds
        while action.id not in self.server.responses and not self.is_closed:
            if link.has_ended:
                return
            left = deadline - trio.current_time()
            if left <= 0 or self.exit_status is not None:
                break
            await self._wait_some(min(left, 0.05))
        method = self.server.asked.get(action.id, "")
        is_late = action.id not in self.server.responses and trio.current_time() >= deadline
        if is_late and action.seconds > timeout and self.exit_status is None:
            self.report_silence(method, timeout)

    async def _wait_some(self, seconds: float) -> None:
        # Several reactions can wait at once, and `wait_changed` is for the player.
        await trio.sleep(min(seconds, 0.005))


def _members(text: str | None) -> list[Mapping[str, Any]]:
    """Return a line's messages."""
    try:
        decoded = json.loads(text or "null")
    except (ValueError, RecursionError):
        return []
    found = decoded if isinstance(decoded, list) else [decoded]
    return [each for each in found if isinstance(each, dict) and _is_finite(each.get("id"))]


def _is_finite(id: Any) -> bool:
    return not isinstance(id, float) or math.isfinite(id)


def _key(message: Mapping[str, Any]) -> int | str:
    id = message.get("id")
    return id if isinstance(id, int | str) else ""
