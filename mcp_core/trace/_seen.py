"""Messages, requests, exchanges and tasks, as an observer of a conversation sees them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from ._ids import id_key
from .rows import LETTERS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_core.revisions._methods import Method

    from ._format import HttpHead

__all__ = [
    "CLIENT",
    "LETTER_OF",
    "META",
    "MODERN",
    "SERVER",
    "STATEFUL",
    "TASKS_EXTENSION",
    "SeenExchange",
    "SeenMessage",
    "SeenRequest",
    "SeenTask",
    "Side",
    "lookup",
    "other_side",
]

Side: TypeAlias = Literal["client", "server"]
CLIENT: Final = "client"
SERVER: Final = "server"
# The letters of the revisions with a handshake, and of the one without.
STATEFUL: Final = "ABCD"
MODERN: Final = "E"
LETTER_OF: Final = {revision: letter for letter, revision in LETTERS.items()}
META: Final = "io.modelcontextprotocol/"
TASKS_EXTENSION: Final = META + "tasks"

MAX_PARAMS: Final = 4_096  # bytes of a message whose params are remembered in full
# Of larger params, what the rules for results need.
_KEPT: Final = ("name", "uri", "cursor", "level", "taskId", "task", "_meta")

_LONG_ID: Final = 200  # characters


def other_side(side: Side) -> Side:
    """Return the other one of the two sides."""
    return SERVER if side == CLIENT else CLIENT


def lookup(value: Any, *path: str) -> Any:
    """Return a member of decoded JSON by its path, or None if the value has no such member."""
    for key in path:
        if not isinstance(value, dict):
            return None
        value = value.get(key)
    return value


class SeenRequest:
    """A request in a trace.

    Attributes:
        line, time: where it is in the trace, and its seconds.
        sender, id, method, params: of the request.
        has_all_params: False if the request is long: only some of its params are remembered.
        letters: the revisions that it can be of.
        is_well_formed: see `SeenMessage`.
        earlier: an open request of its sender with the same id, or None.
        exchange: the HTTP exchange that carried it, 0 if none.
        token: the key of its progress token, or None.
        progress, progress_line: the last value that was reported, and where.
        cancelled, answered: the lines of its cancellation and its response; 0 before they arrive.
        is_error: the response is an error.
        result: the result if it is needed later: an `input_required` result.
        task: the id of the task that it became, or None.
        acknowledged: the line of the acknowledgement of a subscription; 0 before it arrives.
        filter: the acknowledged filter of a subscription.
    """

    __slots__ = (
        "acknowledged",
        "answered",
        "cancelled",
        "earlier",
        "exchange",
        "filter",
        "has_all_params",
        "id",
        "is_error",
        "is_well_formed",
        "letters",
        "line",
        "method",
        "params",
        "progress",
        "progress_line",
        "result",
        "sender",
        "task",
        "time",
        "token",
    )

    def __init__(self, message: SeenMessage) -> None:
        self.line = message.line
        self.time = message.time
        self.sender = message.sender
        self.id = message.id
        self.method = message.method
        self.has_all_params = message.size <= MAX_PARAMS
        self.params: Mapping[str, Any] = (
            message.params
            if self.has_all_params
            else {key: message.params[key] for key in _KEPT if key in message.params}
        )
        self.letters = message.letters
        self.is_well_formed = message.is_well_formed
        self.earlier: SeenRequest | None = None
        self.exchange = message.exchange
        self.token = id_key(message.meta.get("progressToken"))
        self.progress: float | None = None
        self.progress_line = 0
        self.cancelled = 0
        self.answered = 0
        self.is_error = False
        self.result: Mapping[str, Any] | None = None
        self.task: str | None = None
        self.acknowledged = 0
        self.filter: Mapping[str, Any] | None = None

    @property
    def meta(self) -> Mapping[str, Any]:
        """The `_meta` of its params, empty if it has none."""
        meta = self.params.get("_meta")
        return meta if isinstance(meta, dict) else {}


class SeenMessage:
    """One JSON-RPC message of a trace.

    Attributes:
        line, time: where it is in the trace, and its seconds.
        sender: the side that sent it.
        kind: request, notification or response; "invalid" if it is none of them.
        members: the decoded message.
        id, method: its members, None and "" if it has none.
        params: its params, empty if they are missing or not an object.
        meta: the `_meta` of its params or of its result, empty if it has none.
        result: its result if that is an object, else None.
        error: its error if that is an object, else None.
        request: the request that a response answers, or None for other messages.
        letters: the revisions that it can be of.
        row: the row of its method, or that of the request that it answers; None if it is unknown.
        in_batch: it is a member of a batch.
        exchange: the HTTP exchange that carried it, 0 if none.
        size: its bytes.
        redacted: JSON pointers of the values that the recorder replaced.
    """

    __slots__ = (
        "error",
        "exchange",
        "id",
        "in_batch",
        "kind",
        "letters",
        "line",
        "members",
        "meta",
        "method",
        "params",
        "redacted",
        "request",
        "result",
        "row",
        "sender",
        "size",
        "time",
    )

    def __init__(self, members: dict[str, Any], line: int, time: float, sender: Side) -> None:
        self.line = line
        self.time = time
        self.sender = sender
        self.members = members
        self.id = members.get("id")
        method = members.get("method")
        self.method = method if isinstance(method, str) else ""
        params = members.get("params")
        self.params: Mapping[str, Any] = params if isinstance(params, dict) else {}
        result = members.get("result")
        self.result = result if isinstance(result, dict) else None
        error = members.get("error")
        self.error = error if isinstance(error, dict) else None
        if "method" in members:
            self.kind = "request" if "id" in members else "notification"
        else:
            self.kind = "response" if "result" in members or "error" in members else "invalid"
        meta = (self.result or {}).get("_meta") if self.kind == "response" else None
        if self.kind != "response":
            meta = self.params.get("_meta")
        self.meta: Mapping[str, Any] = meta if isinstance(meta, dict) else {}
        self.request: SeenRequest | None = None
        self.letters = ""
        self.row: Method | None = None
        self.in_batch = False
        self.exchange = 0
        self.size = 0
        self.redacted: tuple[str, ...] = ()

    @property
    def is_well_formed(self) -> bool:
        """True if a receiver can tell what kind of message it is, and which request it answers."""
        members = self.members
        if members.get("jsonrpc") != "2.0" or not isinstance(members.get("params", {}), dict):
            return False
        if self.kind == "response":
            return self.request is not None and ("result" in members) is not ("error" in members)
        return bool(self.method) and ("id" not in members or _is_plain_id(self.id))

    @property
    def letter(self) -> str:
        """Its revision, empty if that is not known."""
        return self.letters if len(self.letters) == 1 else ""

    @property
    def code(self) -> Any:
        """The code of its error, or None."""
        return None if self.error is None else self.error.get("code")


class SeenExchange:
    """An HTTP exchange in a trace.

    Attributes:
        line, response_line: where its heads are in the trace.
        method, target: of the request.
        headers, response_headers: by name in lower case, the values joined by commas.
        messages: the messages of the request, at most a few.
        status: of the response, 0 before it.
        response: the message of a response that is no event stream, or None.
        has_body: such a response has a body.
        letters: the revisions that it can be of.
    """

    __slots__ = (
        "has_body",
        "headers",
        "letters",
        "line",
        "messages",
        "method",
        "response",
        "response_headers",
        "response_line",
        "status",
        "target",
    )

    def __init__(self, head: HttpHead, line: int) -> None:
        self.line = line
        self.method = head.method
        self.target = head.target
        self.headers = _joined(head)
        self.messages: list[SeenMessage] = []
        self.letters = ""
        self.status = 0
        self.response_line = 0
        self.response_headers: Mapping[str, str] = {}
        self.response: SeenMessage | None = None
        self.has_body = False

    @property
    def request(self) -> SeenMessage | None:
        """The one request of a POST, or None."""
        found = [message for message in self.messages if message.kind == "request"]
        return found[0] if len(found) == 1 == len(self.messages) else None

    def respond(self, head: HttpHead, line: int, *, has_body: bool) -> None:
        """Record the head of the response."""
        self.status = head.status
        self.response_line = line
        self.response_headers = _joined(head)
        self.has_body = has_body


def _joined(head: HttpHead) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, value in head.headers:
        found[name] = f"{found[name]}, {value}" if name in found else value
    return found


class SeenTask:
    """A task: its id, the side that runs it, its last status and where that was reported.

    `keys` are those of its input requests; `answered` those for which a response was sent.
    """

    __slots__ = ("answered", "id", "keys", "letters", "line", "owner", "request", "status")

    def __init__(self, id: str, owner: Side, request: SeenRequest, line: int, status: str) -> None:
        self.id = id
        self.owner = owner
        self.request = request
        self.letters = request.letters
        self.line = line
        self.status = status
        self.keys: set[str] = set()
        self.answered: set[str] = set()


def _is_plain_id(id: Any) -> bool:
    """Return True if no receiver has a reason to call an id unreadable.

    Legal ids can be too large for a receiver, and `1.0` is an integer to some.
    """
    if isinstance(id, str):
        return len(id) <= _LONG_ID and id.isascii()
    return isinstance(id, int) and not isinstance(id, bool) and abs(id) < 2**53
