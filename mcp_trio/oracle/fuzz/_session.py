"""One conversation with a target, as the player sees it.

It has the open requests, the values that the server has given out, and the judge, which gets each
line of the trace. This model only serves to choose the next message. Verdicts come from the judge.
The player adds the faults that no message shows: a missing response, or a process that ends.
"""

from __future__ import annotations

import json
import math
import re
from abc import ABC, abstractmethod
from collections import deque
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, Literal

import trio
from msgspec import Struct
from msgspec.structs import replace

from mcp_core import ALL, DIALECTS, Dialect, __version__
from mcp_core.trace import CHECKED_LEVELS, FORMAT_VERSION, ROWS, Judge, TraceHeader

from ._answers import name_of
from ._call_guard import UNKNOWN_TOOLS
from ._call_times import CallTimes

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from mcp_core.adapters import LineRecorder
    from mcp_core.trace import Finding, TraceLine

__all__ = [
    "META",
    "RECONNECTED",
    "UNANSWERED",
    "UNANSWERED_MALFORMED",
    "UNKNOWN_REVISION",
    "SentRequest",
    "TargetFault",
    "TargetSession",
    "broken_down",
    "dialect_of",
    "early_result",
    "find_defect",
    "is_interoperable",
    "new_header",
    "was_served_early",
    "wrong_version",
]

UNKNOWN_REVISION: Final = "2199-01-01"
UNANSWERED: Final = "RPC-35"
# The specification doesn't say that a malformed request needs a response. JSON-RPC does.
UNANSWERED_MALFORMED: Final = "RPC-17"
RECONNECTED: Final = "the client has reconnected"  # why the fuzzer ended a session
META: Final = "io.modelcontextprotocol/"
TASKS: Final = META + "tasks"
# The levels of obligations. Rows of other levels are readings and choices of this project.
LEVELS: Final = CHECKED_LEVELS["should"]
# Rows that can show the cause of another row. For example, an error without an id breaks RPC-14 if
# it follows a notification, and RPC-8 if a request came in between.
SAME_CAUSE: Final = {"RPC-8": "RPC-14", "STDIO-6": "crash"}
UPDATED: Final = "notifications/resources/updated"
CHANGES: Final = frozenset(
    {
        UPDATED,
        "notifications/tools/list_changed",
        "notifications/prompts/list_changed",
        "notifications/resources/list_changed",
    }
)
MAX_KEPT: Final = 200  # cursors, tasks and the like of one kind
_REQUEST_MEMBERS: Final = frozenset({"jsonrpc", "id", "method", "params"})
_SHOWN: Final = 60  # characters of a value in a sentence
_CANCELLED_TEXT: Final = re.compile(
    r"(?:the )?(?:request|call)?(?: was| has been)? ?cancell?ed\.?", re.IGNORECASE
)
MAX_ID: Final = 200  # characters of an id that every server should read
MAX_INTEGER: Final = 2**53 - 1  # larger ones aren't all doubles, which readers may take (RFC 8259)
MAX_LEVELS: Final = 30  # of nesting that every parser reads
MESSAGE_LIMIT: Final = 4 * 1024 * 1024  # bytes; a longer message isn't judged
CUT_NOTE: Final = f"a message of more than {MESSAGE_LIMIT >> 20} MiB was not judged"
PART_INTERVAL: Final = 0.02  # seconds between two parts of a message
LOST: Final[Mapping[str, Any]] = {"lost": True}  # in place of a response that won't come

# Requests that run the server author's code, which may take long.
_USER_CODE: Final = frozenset(
    {
        "tools/call",
        "prompts/get",
        "resources/read",
        "completion/complete",
        "tasks/result",
        "subscriptions/listen",
    }
)
# Of these, the ones for which no tool runs: tools may take as long as they want.
_OWED_SOON: Final = frozenset({"prompts/get", "resources/read", "completion/complete"})

CAPABILITIES: Final[dict[str, dict[str, Any]]] = {
    "all": {"roots": {"listChanged": True}, "sampling": {}, "elicitation": {}},
    "none": {},
}
_INFO: Final = {"name": "mcp-trio fuzz", "version": "1"}


def dialect_of(revision: str) -> Dialect:
    """Return a revision's dialect, or the first one's if it is unknown or not negotiated yet."""
    return DIALECTS.get(revision, DIALECTS[ALL[-1]])


def new_header(observer: Literal["client", "server"], transport: str, target: str) -> TraceHeader:
    """Return the header of a trace that begins now.

    Args:
        observer: the side on which the fuzzer is.
        transport: stdio or http.
        target: the target's name, without secrets.
    """
    return TraceHeader(
        format_version=FORMAT_VERSION,
        at=datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z"),
        by=f"mcp-trio {__version__}",
        observer=observer,
        transport=transport,
        target=target,
    )


class TargetFault(Struct, frozen=True, kw_only=True):
    """Something that the target did wrong.

    Attributes:
        kind: "row" for a broken requirement, "crash" for a process that ended, "hang" for a target
            that no longer responds, "invariant" for a failed check by the author.
        row: the requirement's id, "crash", or the name of the author's function.
        method: the method of the message that shows it; empty without a message.
        detail: a text that tells crashes apart: the exit status, and after a space the link that
            explains a crash that is known of an SDK. For an invariant the called tool's name.
        variant: what a smaller case must keep besides row and detail. For an invariant whether the
            call's arguments were wrong.
        sentence: the fault, in one sentence.
        level: the requirement's level.
        link: the URL of the requirement's text, or "".
        is_certain: False if there can be a cause that a client doesn't see.
        cases_back: how many cases before the session's last case it happened.
        sent: the request that it is about, as JSON; "" if none is known.
        received: the server's message that shows it, as it was received; "" without a message.
        is_of_cancelled: the message is the error that says that the request was cancelled, and the
            request had another response before.
    """

    kind: Literal["row", "crash", "hang", "invariant"]
    row: str
    method: str = ""
    detail: str = ""
    variant: str = ""
    sentence: str = ""
    level: str = "MUST"
    link: str = ""
    is_certain: bool = True
    cases_back: int = 0
    sent: str = ""
    received: str = ""
    is_of_cancelled: bool = False

    @classmethod
    def from_finding(cls, finding: Finding, method: str, **more: Any) -> TargetFault:
        """Return the fault for a judge's finding about a message of `method`."""
        return cls(
            kind="row",
            row=finding.row,
            method=method,
            sentence=finding.sentence,
            level=finding.level,
            link=finding.link,
            **more,
        )

    @property
    def key(self) -> tuple[str, str, str]:
        """A key that is the same for all reports of one fault."""
        return self.row, self.detail, self.method

    @property
    def cause(self) -> tuple[str, str]:
        """A key that stays the same while a case is shrunk."""
        return SAME_CAUSE.get(self.row, self.row), f"{self.detail} {self.variant}".rstrip()

    @property
    def is_silence(self) -> bool:
        """True if the fuzzer has waited for a message that didn't come."""
        return self.kind == "hang" or self.row in (UNANSWERED, UNANSWERED_MALFORMED)

    @property
    def is_advice(self) -> bool:
        """True if a run doesn't fail for it: it is a reading of the text, or not certain."""
        return not self.is_certain or self.level == "reading"


class SentRequest:
    """A client's request.

    Attributes:
        is_plain: every server can read it and must respond to it.
        is_bounded: it doesn't run the server author's code, which could take long.
        was_open: the handshake was complete when it was sent.
        is_overdue: the response didn't come while a step waited; later steps don't wait for it.
        is_dropped: the server is known to drop it, so no step waits for a response.
        answer: the response, None before it.
        answered_at: how many messages the server had sent in this case, the response included.
        responses: how many responses there were. More than one is a fault.
        is_owed: the server must respond; False if the HTTP exchange is faulty.
        batch: the number of the batch that it was sent in, 0 if it was sent alone.
        loss: why there is no response. "excused" if the server need not respond, or if the response
            may be in a message that is too large to judge. Over HTTP also "missing" if the exchange
            ended in order, "cut" if it broke off within the response, and "broken" if it did before
            that. Empty otherwise.
    """

    __slots__ = (
        "answer",
        "answered_at",
        "batch",
        "cancelled",
        "id",
        "is_bounded",
        "is_dropped",
        "is_overdue",
        "is_owed",
        "is_plain",
        "loss",
        "message",
        "method",
        "responses",
        "sent_at",
        "token",
        "unread",
        "was_open",
    )

    def __init__(self, message: Mapping[str, Any], *, is_plain: bool, is_bounded: bool) -> None:
        self.message = message
        self.id = message["id"]
        self.method = str(message.get("method", ""))
        self.is_plain = is_plain
        self.is_bounded = is_bounded
        self.sent_at = 0.0
        self.answer: Mapping[str, Any] | None = None
        self.answered_at = 0
        self.responses = 0
        self.cancelled = False
        self.is_overdue = False
        self.is_dropped = False
        self.is_owed = True
        self.batch = 0
        self.loss: Literal["", "missing", "cut", "broken", "excused"] = ""
        self.was_open = True
        self.unread = 0  # errors without an id that the server had sent before
        params = message.get("params")
        meta = params.get("_meta") if isinstance(params, dict) else None
        self.token = meta.get("progressToken") if isinstance(meta, dict) else None

    @property
    def name(self) -> str:
        """Its method, and the tool, prompt or resource that it names: `tools/call add`."""
        return f"{self.method} {name_of(self.message)}".strip()

    @property
    def is_owed_soon(self) -> bool:
        """True if the author's code can run for it, but no tool: it has a tool's longest time."""
        params = self.message.get("params")
        if self.method == "tools/call":
            return isinstance(params, dict) and params.get("name") in UNKNOWN_TOOLS
        return self.method in _OWED_SOON

    @property
    def defect(self) -> str:
        """Why strict receivers don't take it for a request, as a clause; "" if it is valid."""
        return find_defect(self.message)[1]


def find_defect(message: Mapping[str, Any]) -> tuple[str, str]:
    """Return why strict receivers don't take a message for a request: the kind, and a clause.

    Kinds: params, null params, meta, member; "" if it is valid.
    """
    params = message.get("params", {})
    if not isinstance(params, dict):
        kind = "params" if params is not None else "null params"
        return kind, f"its params are {shown_value(params)}, not an object"
    meta = params.get("_meta", {})
    if not isinstance(meta, dict):
        return "meta", f"its params have the _meta {shown_value(meta)}, not an object"
    token = meta.get("progressToken", "")
    if not _is_id(token):
        return "meta", f"its progressToken is {shown_value(token)}, not a string or an integer"
    others = sorted(message.keys() - _REQUEST_MEMBERS)
    return ("member", f"it has the member {shown_value(others[0])}") if others else ("", "")


class SharedTrace:
    """The state that the sessions of one trace share, beside the judge and the lines.

    Attributes:
        line: the number of the last line, as the judge counts: the header is line 1.
        case_lines: the last line before each case.
        faults: the server's faults in the case.
    """

    def __init__(self) -> None:
        self.line = 1
        self.case_lines: deque[int] = deque(maxlen=MAX_KEPT)
        self.faults: list[TargetFault] = []


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
        is_busy: a request may still be running although it was cancelled for taking too long.
        is_misled: a step gave the server a wrong response, so that it may wait for the right one.
        cancelled_at: when a step cancelled a request that can take long. None once a later request
            was answered.
        answered: how many requests were answered.
        has_spoken: the server has sent something. Before that, its process may still be starting.
        notes: oddities in this conversation that aren't faults.
        spent: the session must not be used for another case.
        is_last_json: the bytes that were sent last are JSON, though they may be no message.
        steps: further steps that this transport has.
        drops: True for a request that the server is known to drop.
        call_times: how long the calls of tools take; a player sets it.
        succeeded: the names of the calls that have succeeded in this session.
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
        self.is_busy = False
        self.is_misled = False
        self.cancelled_at: float | None = None
        self.answered = 0
        self.has_spoken = False
        self.notes: list[str] = []
        self.steps: Mapping[str, Any] = {}
        self.drops: Callable[[Mapping[str, Any]], bool] = lambda message: False
        self.call_times = CallTimes()
        self.succeeded: set[str] = set()
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
        known = {each.key for each in shared.faults}
        shared.faults += [each for each in faults if each.key not in known]

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
        if isinstance(message, dict) and _is_id(message.get("id")) and "method" in message:
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
    def may_be_busy(self) -> bool:
        """True if a cancelled call may still be running and blocking other requests."""
        return self.is_busy or self.cancelled_at is not None

    def memory(self) -> int:
        """Return how many bytes of memory the process uses, 0 if that isn't known."""
        return 0

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
                is_of_cancelled=request is not None and _is_of_cancelled(request, received),
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
        """Add a fault, unless this case already has one with its key."""
        faults = self._shared.faults
        if len(faults) < MAX_KEPT and all(each.key != fault.key for each in faults):
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
            is_bounded=method not in _USER_CODE or not isinstance(params, dict),
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
            if "id" in message and _is_id(id):
                self.asked.append(message)
                del self.asked[:-MAX_KEPT]
            elif method in CHANGES:
                self._receive_change(message)
            return method
        if not _is_id(id):
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
        if self.cancelled_at is not None and request.sent_at > self.cancelled_at:
            self.cancelled_at = None
        del self.open[request.id]
        result = message.get("result")
        if isinstance(result, dict):
            self._receive_result(request, result)
            if not request.is_bounded and result.get("isError") is not True:
                began = max(request.sent_at, self.opened_at)
                self.call_times.add(request.name, trio.current_time() - began)
                if len(self.succeeded) < MAX_KEPT:
                    self.succeeded.add(request.name)
        return request.method

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


def _is_of_cancelled(request: SentRequest, received: str) -> bool:
    """Return True if a message is the error of a cancellation, after one other response.

    With other words, what has responded twice can as well be a tool.
    """
    if not request.cancelled or request.answer is None or request.responses != 2:
        return False
    return _says_cancelled(json.loads(received)) and not _says_cancelled(request.answer)


def _says_cancelled(message: Mapping[str, Any]) -> bool:
    error = message.get("error")
    text = error.get("message") if isinstance(error, dict) else None
    return isinstance(text, str) and _CANCELLED_TEXT.fullmatch(text) is not None


def _is_id(id: Any) -> bool:
    return isinstance(id, str) or (isinstance(id, int) and not isinstance(id, bool))


def is_interoperable(value: Any, level: int = 0) -> bool:
    """Return True if every reader of JSON understands a value (RFC 8259).

    Some readers have other large integers, or can't read them; or they limit the nesting.
    """
    if isinstance(value, dict):
        return level < MAX_LEVELS and all(
            is_interoperable(each, level + 1) for each in value.values()
        )
    if isinstance(value, list | tuple):
        return level < MAX_LEVELS and all(is_interoperable(each, level + 1) for each in value)
    return not isinstance(value, int) or abs(value) <= MAX_INTEGER


def read_plain_request(line: bytes) -> dict[str, Any] | None:
    """Return a line's request, or None if some servers may read the line in another way."""
    is_doubled = False

    def collect(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal is_doubled
        members = dict(pairs)
        is_doubled |= len(members) < len(pairs)
        return members

    try:
        message = json.loads(
            line.decode(), object_pairs_hook=collect, parse_constant=_refuse_constant
        )
    except (ValueError, RecursionError):
        return None
    if not isinstance(message, dict) or is_doubled or message.get("jsonrpc") != "2.0":
        return None
    if b"\r" in line:
        return None  # some readers end a line here
    id, method = message.get("id"), message.get("method")
    if not isinstance(method, str) or not method or not _is_id(id):
        return None
    if isinstance(id, str) and (len(id) > MAX_ID or not id.isascii()):
        return None
    if isinstance(id, int) and abs(id) >= 2**53:
        return None
    if {"result", "error"} & message.keys() or "\\u" in line.decode():
        return None
    if not math.isfinite(_largest(message)):
        return None
    return message


def is_json(data: bytes) -> bool:
    """Return True if bytes are JSON (RFC 8259), with any values."""
    try:
        json.loads(data.decode(), parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return False
    return True


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _largest(value: Any, depth: int = 0) -> float:
    """Return the largest number in a value, infinity if the value is nested too deeply."""
    if depth > 30:
        return math.inf
    if isinstance(value, float | int):
        try:
            return abs(float(value))
        except OverflowError:
            return math.inf
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return max((_largest(each, depth + 1) for each in value), default=0.0)
    return 0.0


def shown_value(value: Any) -> str:
    """Return a value as JSON for a sentence, cut if it is long."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."


def link_of(row: str, revision: str) -> str:
    """Return the URL of a row's text; empty for a row without one."""
    found = ROWS.get(row)
    return "" if found is None or revision not in DIALECTS else found.link(revision)


def row_fault(row: str, method: str, sentence: str, revision: str) -> TargetFault:
    """Return a certain fault about a row, shown by a message of `method`."""
    return TargetFault(
        kind="row",
        row=row,
        method=method,
        level=level_of(row),
        sentence=sentence,
        link=link_of(row, revision),
    )


def broken_down(session: TargetSession) -> TargetFault:
    """Return the fault of a server at a URL that has only errors left."""
    status = session.last_status
    return TargetFault(
        kind="hang",
        row=UNANSWERED,
        detail=f"status {status}",
        method=session.last_sent,
        sentence=f"the server served before, and each request gets the HTTP status {status} now",
        link=link_of(UNANSWERED, session.revision),
    )


def was_served_early(early: SentRequest, session: TargetSession) -> bool:
    """Return True if a request before `initialize` got its result before the handshake.

    A process that is still starting answers both at once, in order. Over HTTP, a server without
    sessions can't know which of two requests came first.
    """
    initialize = session.requests[-1]
    if early.answer is None or "result" not in early.answer or not session.is_stateful:
        return False
    return initialize.answer is None or early.answered_at < initialize.answered_at


def early_result(request: SentRequest, revision: str) -> TargetFault:
    """Return the fault of serving a request before the handshake."""
    sentence = f"the request {request.method} has a result before initialize"
    return row_fault("LIFE-10", request.method, sentence, revision)


def wrong_version(
    asked: str, selected: str, spoken: Collection[str], revision: str
) -> TargetFault | None:
    """Return the fault of selecting a revision that doesn't exist, or not the requested one.

    Args:
        asked: the requested revision.
        selected: the server's choice.
        spoken: the revisions that the server is known to speak.
        revision: the conversation's revision.
    """
    if selected == UNKNOWN_REVISION:
        sentence = f"{asked} was requested, which does not exist, and the server selects it"
    elif selected != asked and asked in spoken:
        sentence = f"{asked} was requested, which the server speaks, and it answers {selected}"
    else:
        return None
    return row_fault("LIFE-4", "initialize", sentence, revision)


def level_of(row: str) -> str:
    """Return a row's level, MUST if it isn't known."""
    found = ROWS.get(row)
    return found.level if found is not None else "MUST"
