"""One conversation with a target, as the player sees it.

It has the open requests, what the server has handed out, such as cursors and task ids, and the
judge, which gets each line of the trace. The first two only serve to choose the next message:
verdicts come from the judge. The player adds the faults that no message shows, such as a missing
response or a process that ends.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import trio
from msgspec.structs import replace

from mcp_core.trace import Judge

from ._answers import name_of
from ._call_times import CallTimes
from ._fault import LEVELS, TargetFault
from ._interoperable_json import MAX_INTEGER, find_defect, is_id, is_json, read_plain_request
from ._revisions import META, TASKS, dialect_of
from ._sent_request import LOST, USER_CODE, SentRequest, is_cancellation_error
from ._shared_trace import MAX_KEPT, SharedTrace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from mcp_core.adapters import LineRecorder
    from mcp_core.trace import Finding, TraceHeader, TraceLine

__all__ = ["MESSAGE_LIMIT", "PART_INTERVAL", "RECONNECTED", "TargetSession"]

RECONNECTED: Final = "the client has reconnected"  # why the fuzzer ended a session
UPDATED: Final = "notifications/resources/updated"
CHANGES: Final = frozenset(
    {
        UPDATED,
        "notifications/tools/list_changed",
        "notifications/prompts/list_changed",
        "notifications/resources/list_changed",
    }
)
MESSAGE_LIMIT: Final = 4 * 1024 * 1024  # bytes; a longer message isn't judged
CUT_NOTE: Final = f"a message of more than {MESSAGE_LIMIT >> 20} MiB was not judged"
PART_INTERVAL: Final = 0.02  # seconds between two parts of a message

CAPABILITIES: Final[dict[str, dict[str, Any]]] = {
    "all": {"roots": {"listChanged": True}, "sampling": {}, "elicitation": {}},
    "none": {},
}
_INFO: Final = {"name": "mcp-trio fuzz", "version": "1"}


class QuickRequest(NamedTuple):
    """A request that has succeeded, without its response, which may be large."""

    request: SentRequest
    seconds: float


class TargetSession(ABC):
    """A conversation with a target. Each transport has a subclass.

    Args:
        header: the trace's header.
        judge: the judge that gets the lines; by default a new one.
        number: the conversation's number in the trace.
        keep: whether to keep the lines for a trace.

    Attributes:
        revision, offers: set by the step `open`; empty before.
        is_second: it is of the case's second client, beside the first one's.
        is_open: requests of all kinds may be sent.
        running: the names of requests that may still be running although they were cancelled for
            taking too long.
        is_misled: a step gave the server a wrong response, so that it may wait for the right one.
        cancelled_at: when a step cancelled a request that can take long. None once a later request
            was answered.
        answered: how many requests were answered.
        vain_waits: how many waits in a row have ended without a response that the server owes.
        drops_some: in this case it answers a probe, and not what came before.
        has_spoken: the server has sent something. Before that, its process may still be starting.
        notes: oddities in this conversation that aren't faults.
        spent: the session must not be used for another case.
        is_last_json: the bytes that were sent last are JSON, though they may be no message.
        steps: further steps that this transport has.
        drops: True for a request, or a batch's list, that the server is known to drop.
        call_times: how long the calls of tools take; a player sets it.
        quickest: of each name the quickest request that has succeeded in this session.
        outlives_input: the process went on after the end of its input.
        ended: why the conversation is over, empty before that.
        exit_status: the process's exit status, None while it runs and for a URL.
        last_status: the last HTTP response's status, 0 before one and without HTTP.
    """

    transport = ""
    last_status = 0

    def __init__(
        self, header: TraceHeader, judge: Judge | None = None, number: int = 1, *, keep: bool
    ) -> None:
        self.header = header
        self.judge = judge or Judge(header, from_start=True, unjudged="client")
        self.number = number
        self.lines: list[TraceLine] | None = [] if keep else None
        self.recording: LineRecorder | None = None
        self.revision = ""
        self.offers = ""
        self.is_second = False
        self.is_open = False
        self.spent = False
        self.running: set[str] = set()
        self.is_misled = False
        self.cancelled_at: float | None = None
        self.answered = 0
        self.vain_waits = 0
        self.drops_some = False
        self.has_spoken = False
        self.notes: list[str] = []
        self.steps: Mapping[str, Any] = {}
        self.drops: Callable[[Any], bool] = lambda message: False
        self.call_times = CallTimes()
        self.quickest: dict[str, QuickRequest] = {}
        self.outlives_input = False
        self.ended = ""
        self.exit_status: int | None = None
        self.began_at = self.opened_at = trio.current_time()
        self.open: dict[int | str, SentRequest] = {}
        self.requests: list[SentRequest] = []  # of this case
        self._raw_methods: dict[Any, str] = {}  # of bytes that some read as a request, by id
        self.asked: list[Mapping[str, Any]] = []  # the server's open requests
        self.updates: list[Mapping[str, Any]] = []  # params of changed resources in this case
        self.changers: list[str] = []  # tools whose calls were followed by changes in this case
        self.rounds: list[SentRequest] = []  # with an `input_required` result
        self.tasks: list[str] = []
        self.cursors: dict[str, list[str]] = {}
        self.unread_errors = 0
        self.messages = 0
        self.played = 0
        self.last_sent = ""
        self._shared = SharedTrace()
        self.is_last_json = True
        self._next_id = 1_000
        self._changed = trio.Event()

    # -- For the player ----------------------------------------------------------------------------

    def begin_case(self) -> None:
        """Forget everything that belongs to an earlier case."""
        self.requests.clear()
        self._shared.faults.clear()
        self.asked.clear()
        self.updates.clear()
        self.changers.clear()
        self.vain_waits, self.drops_some = 0, False
        self.played += 1
        self._shared.case_lines.append(self._shared.line)

    def take_messages(self) -> int:
        """Return how many messages the server has sent since the last call."""
        found, self.messages = self.messages, 0
        return found

    def has_fault(self, cause: tuple[str, str]) -> bool:
        """Return True if a fault with this cause was found in this case."""
        return any(each.cause == cause for each in self._shared.faults)

    def take_faults(self) -> list[TargetFault]:
        """Return the server's faults since the last call."""
        shared = self._shared
        found, shared.faults = shared.faults, []
        return found

    def put_faults(self, faults: Iterable[TargetFault]) -> None:
        """Put faults back that were taken."""
        shared = self._shared
        known = {(each.key, each.variant) for each in shared.faults}
        shared.faults += [each for each in faults if (each.key, each.variant) not in known]

    def new_id(self, kind: str | list[int | str]) -> int | str:
        """Return an id that wasn't used before. Kinds: int, digits, text; or a list with the id."""
        if isinstance(kind, list):
            return kind[0]
        self._next_id += 1
        if kind == "digits":
            return str(self._next_id)
        return f"id-{self._next_id}" if kind == "text" else self._next_id

    def new_token(self) -> int | str:
        """Return a progress token that no other request has, of either client."""
        id = self.new_id("int")
        return f"second-{id}" if self.is_second else id

    def meta(self, how: str = "whole") -> dict[str, Any]:
        """Return the `_meta` for a request in this revision."""
        if dialect_of(self.revision).stateful or how == "absent":
            return {}
        meta: dict[str, Any] = {
            META + "protocolVersion": "1999-12-31" if how == "old" else self.revision,
            META + "clientInfo": _INFO,
        }
        if how != "bare":
            meta[META + "clientCapabilities"] = self.capabilities()
        return meta

    def capabilities(self) -> dict[str, Any]:
        """Return the client capabilities that this conversation declares."""
        found = dict(CAPABILITIES.get(self.offers or "all", {}))
        tasks = dialect_of(self.revision).tasks
        if self.offers == "all" and tasks == "extension":
            found["extensions"] = {TASKS: {}}
        elif self.offers == "all" and tasks == "requested":
            found["tasks"] = {"list": {}, "cancel": {}}
        return found

    def initialize_params(self, revision: str) -> dict[str, Any]:
        """Return the params of `initialize`."""
        return {
            "protocolVersion": revision,
            "capabilities": self.capabilities(),
            "clientInfo": _INFO,
        }

    async def send(self, message: Mapping[str, Any], *, is_plain: bool = True) -> None:
        """Send a message that the fuzzer has built."""
        text = json.dumps(message, separators=(",", ":"), ensure_ascii=False)
        if "id" in message and "method" in message:
            self.add_request(message, is_plain=is_plain)
            self.last_sent = str(message["method"])
        await self.send_text(text, message)

    async def send_bytes(self, data: bytes) -> None:
        """Send bytes, which may not be a message."""
        self.last_sent = "bytes"
        self.is_last_json = all(map(is_json, data.split(b"\n")))
        for line in data.split(b"\n"):
            message = read_plain_request(line)
            if message is not None and message["id"] not in self.open:
                self.last_sent = str(message["method"])
                self.add_request(message, is_plain=False)
            else:
                self._keep_method(line)
        await self.send_data(data)

    def _keep_method(self, line: bytes) -> None:
        """Keep the method of a request that some servers read, for their response."""
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            return
        if isinstance(message, dict) and is_id(message.get("id")) and "method" in message:
            self._raw_methods[message["id"]] = str(message["method"])
            while len(self._raw_methods) > MAX_KEPT:
                del self._raw_methods[next(iter(self._raw_methods))]

    @abstractmethod
    async def send_text(self, text: str, message: Mapping[str, Any]) -> None:
        """Send one message. Subclasses write and record it."""

    @abstractmethod
    async def send_data(self, data: bytes) -> None:
        """Send bytes. Subclasses write and record them."""

    @abstractmethod
    async def send_parts(self, body: bytes, message: Mapping[str, Any], how: str, cut: int) -> None:
        """Send a message in two parts, cut at `cut`. See the step `parts`."""

    def describe(self) -> str:
        """Return a text about an unexpected end, or ""."""
        return ""

    def stderr(self) -> bytes:
        """Return the end of the process's stderr, empty if there is none."""
        return b""

    def trouble(self) -> str:
        """Return the unhandled error that stderr shows, or ""."""
        return ""

    @property
    def longest_start(self) -> float | None:
        """The target's longest start so far, in seconds, None before the first start."""
        return None

    @property
    def is_busy(self) -> bool:
        """True if a call that took too long may still be running."""
        return bool(self.running)

    @property
    def may_be_busy(self) -> bool:
        """True if a cancelled call may still be running and blocking other requests."""
        return self.is_busy or self.cancelled_at is not None

    def memory(self) -> dict[int, int]:
        """Return how many bytes of memory each of its processes uses, by id, as far as known."""
        return {}

    @property
    def is_stateful(self) -> bool:
        """True if the server can know what came before a message."""
        return True

    async def cancel_exchange(self, request: SentRequest) -> bool:
        """Cancel a request by the transport's own means. Return False if it cannot."""
        return False

    async def end_case(self) -> None:  # noqa: B027 - stdio leaves nothing open
        """Close the streams and connections that a case left open."""

    @abstractmethod
    async def disconnect(self) -> None:
        """End the conversation in order."""

    @abstractmethod
    async def successor(self) -> TargetSession:
        """Return the session that follows this one, with the same target and trace.

        Raises:
            ConnectFailed: the target doesn't start.
        """

    @abstractmethod
    async def fresh(self) -> TargetSession:
        """Return another session with the target, on a process of its own if it is a command.

        Raises:
            ConnectFailed: the target doesn't start.
        """

    async def beside(self) -> TargetSession | None:
        """Return another client's session with the same target, in this one's trace.

        None is returned if the target has one client only, as a process on stdio.
        """
        return None

    def stand_beside(self, first: TargetSession) -> None:
        """Become the session of a second client, beside the first one's."""
        self.is_second = True
        self.requests, self.messages = [], 0
        # Equal ids at the same time: a server must not take one client's for the other's.
        self._next_id = first._next_id

    def follow(self, former: TargetSession) -> None:
        """Continue the trace of `former`."""
        self.judge, self.lines, self.began_at = former.judge, former.lines, former.began_at
        self.recording = former.recording
        self.number = former.number + 1
        self._shared = former._shared
        self.is_second = former.is_second
        self.messages = former.messages
        self.requests = former.requests
        self.drops = former.drops
        self.call_times = former.call_times

    @abstractmethod
    async def aclose(self) -> None:
        """End the conversation at once."""

    def waits(self) -> bool:
        """Return True if an open request still needs a response."""
        return any(each.answer is None and not each.cancelled for each in self.open.values())

    async def wait_changed(self, deadline: float) -> bool:
        """Wait for a server's message or the conversation's end. Return False on a timeout."""
        if self.ended:
            return True
        self._changed = trio.Event()
        with trio.move_on_at(min(deadline, trio.current_time() + 3600)):
            await self._changed.wait()
            return True
        return False

    # -- For the transport -------------------------------------------------------------------------

    def time(self) -> float:
        """Return the seconds since the session began, for a line of the trace."""
        return round(max(0.0, trio.current_time() - self.began_at), 6)

    def record(self, line: TraceLine) -> list[Finding]:
        """Pass a line to the judge, and return the certain findings about the server."""
        self._shared.line += 1
        if self.lines is not None:
            self.lines.append(line)
        if self.recording is not None:
            self.recording.record(line)
        return [
            each
            for each in self.judge.receive(line)
            if each.is_certain and each.side == "server" and each.level in LEVELS
        ]

    def add_findings(self, found: list[Finding], method: str, received: str = "") -> None:
        """Add a fault for each finding about a message of `method`, which was `received`."""
        for each in found:
            first = min(each.lines)
            cases_back = sum(first <= line for line in islice(self._shared.case_lines, 1, None))
            request = self._request_of(received)
            fault = TargetFault.from_finding(
                each,
                method,
                cases_back=cases_back,
                sent="" if request is None else json.dumps(request.message),
                received=received,
                is_cancellation_error=(
                    request is not None and is_cancellation_error(request, received)
                ),
            )
            self.add_fault(fault)

    def _request_of(self, received: str) -> SentRequest | None:
        """Return this case's request to which a message is the response, or None."""
        try:
            id = json.loads(received)["id"]
        except (ValueError, TypeError, KeyError, RecursionError):
            return None
        return next((each for each in self.requests if each.id == id), None)

    def add_fault(self, fault: TargetFault) -> None:
        """Add a fault, unless this case already has one with its key and variant."""
        faults = self._shared.faults
        key = fault.key, fault.variant
        if len(faults) < MAX_KEPT and all((each.key, each.variant) != key for each in faults):
            if self.is_second:
                fault = replace(fault, sentence=f"{fault.sentence}, for the second client")
            faults.append(fault)

    def wake(self) -> None:
        """Wake a task that waits for a change."""
        self._changed.set()

    def receive(self, line: TraceLine, method: str = "") -> None:
        """Take a line from the server. `method` is the method of its HTTP exchange."""
        self.has_spoken = True
        # A shorter one is whole: the server has cut it off itself.
        is_too_long = line.truncated is not None and line.truncated.size > MESSAGE_LIMIT
        if is_too_long and CUT_NOTE not in self.notes:
            self.notes.append(CUT_NOTE)
        found = self.record(line)
        if line.raw is not None:
            try:
                decoded = json.loads(line.raw)
            except (ValueError, RecursionError):
                decoded = None
            for each in decoded if isinstance(decoded, list) else [decoded]:
                if isinstance(each, dict):
                    self.messages += 1
                    method = self._receive_message(each) or method
        if found:
            self.add_findings(found, method, line.raw or "")
        self._changed.set()

    def end(self, reason: str) -> None:
        """Record that the conversation is over, for `reason`."""
        self.ended = self.ended or reason
        self._changed.set()

    def excuse_requests(self) -> None:
        """Stop expecting responses to the open requests: a truncated message may have had them."""
        for request in self.open.values():
            request.answer, request.loss = LOST, "excused"
        self.open.clear()
        self._changed.set()

    # -- The model ---------------------------------------------------------------------------------

    def add_request(self, message: Mapping[str, Any], *, is_plain: bool) -> SentRequest:
        """Add a request that is about to be sent."""
        method = str(message.get("method", ""))
        params = message.get("params", {})
        request = SentRequest(
            message,
            is_plain=is_plain and not find_defect(message)[0],
            is_bounded=method not in USER_CODE or not isinstance(params, dict),
        )
        request.sent_at = trio.current_time()
        request.unread = self.unread_errors
        request.was_open = self.is_open or method == "initialize"
        request.is_dropped = self.drops(message)
        self.open[request.id] = request
        self.requests.append(request)
        return request

    def _receive_message(self, message: Mapping[str, Any]) -> str:
        """Update the session from a message. Return the method to which the message belongs."""
        id = message.get("id")
        if isinstance(message.get("method"), str):
            method = str(message["method"])
            if "id" in message and is_id(id):
                self.asked.append(message)
                del self.asked[:-MAX_KEPT]
            elif method in CHANGES:
                self._receive_change(message)
            return method
        if not is_id(id):
            self.unread_errors += 1
            return self.last_sent
        request = self.open.get(id) or self._find_rounded(id)  # type: ignore[arg-type]
        if request is None:
            earlier = next((each for each in self.requests if each.id == id), None)
            if earlier is not None:
                earlier.responses += 1
            return earlier.method if earlier is not None else self._raw_methods.get(id, "")
        request.answer = message
        request.responses += 1
        request.answered_at = self.messages
        self.answered += 1
        self.vain_waits = 0
        if self.cancelled_at is not None and request.sent_at > self.cancelled_at:
            self.cancelled_at = None
        del self.open[request.id]
        result = message.get("result")
        if isinstance(result, dict):
            self._receive_result(request, result)
            if not request.is_bounded and result.get("isError") is not True:
                self._keep_success(request)
        return request.method

    def _keep_success(self, request: SentRequest) -> None:
        name, began = request.name, max(request.sent_at, self.opened_at)
        seconds = trio.current_time() - began
        self.call_times.add(name, seconds)
        known = self.quickest.get(name)
        if seconds < known.seconds if known else len(self.quickest) < MAX_KEPT:
            copy = SentRequest(request.message, is_plain=True, is_bounded=False)
            self.quickest[name] = QuickRequest(copy, seconds)

    def _receive_change(self, message: Mapping[str, Any]) -> None:
        """Keep what has changed, and the last call, which may have changed it."""
        params = message.get("params")
        if message["method"] == UPDATED and isinstance(params, dict):
            self.updates.append(params)
            del self.updates[:-MAX_KEPT]
        calls = [each for each in self.requests if each.method == "tools/call"]
        name = name_of(calls[-1].message) if calls else ""
        if name and name not in self.changers:
            self.changers.append(name)

    def _find_rounded(self, id: Any) -> SentRequest | None:
        """Return the open request with a large id whose double this id is, or None."""
        if not isinstance(id, int) or not MAX_INTEGER < abs(id) <= 2**64:
            return None
        return next(
            (
                each
                for each in self.open.values()
                if isinstance(each.id, int) and float(each.id) == float(id)
            ),
            None,
        )

    def _receive_result(self, request: SentRequest, result: Mapping[str, Any]) -> None:
        if result.get("resultType") == "input_required":
            self.rounds.append(request)
            del self.rounds[:-MAX_KEPT]
        cursor = result.get("nextCursor")
        if isinstance(cursor, str):
            known = self.cursors.setdefault(request.method, [])
            known.append(cursor)
            del known[:-MAX_KEPT]
        task = result.get("task", result)
        id = task.get("taskId") if isinstance(task, dict) else None
        if isinstance(id, str) and id not in self.tasks:
            self.tasks.append(id)
            del self.tasks[:-MAX_KEPT]
