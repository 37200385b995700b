"""A message of a trace, and what the judge remembers of a request after judging it."""

from __future__ import annotations

import itertools
import json
import math
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from mcp_core.trace._ids import id_key
from mcp_core.trace._members import META

from ._revisions import FACTS, RevisionFacts, Revisions, are_modern, is_modern

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mcp_core.protocol.revisions._methods import Method

    from ._sides import Side

__all__ = [
    "MAX_PARAMS",
    "MODERN_ERRORS",
    "TASKS_EXTENSION",
    "SeenMessage",
    "SeenRequest",
    "holds_until",
    "seconds",
]

# Error codes that only a server of a revision without a handshake sends.
MODERN_ERRORS: Final = (-32020, -32021, -32022)
TASKS_EXTENSION: Final = META + "tasks"

MAX_PARAMS: Final = 4_096  # bytes of a message whose params are remembered in full
# The members that are remembered of larger params: rules for results need them.
_KEPT: Final = ("name", "uri", "cursor", "level", "taskId", "task", "_meta")

_REQUEST_MEMBERS: Final = frozenset({"jsonrpc", "id", "method", "params"})
_NO_FACTS: Final = RevisionFacts()
_HOLDS: Final = 60.0  # seconds; a server's declarations are assumed unchanged for so long
_LONG_ID: Final = 200  # characters
_MAX_MEMBER: Final = 2_048  # characters; longer members of large params aren't kept
_MAX_META: Final = 50  # members of their `_meta`


class SeenMessage:
    """One JSON-RPC message of a trace.

    Attributes:
        line, time: its line in the trace, and its time in seconds.
        sender: the side that sent it.
        kind: request, notification, response, or "invalid".
        members: the decoded message.
        id, method: the members of that name; None and "" if they are missing.
        params: its params, empty if they are missing or not an object.
        meta: the `_meta` of its params or of its result, empty if it has none.
        result: its result if that is an object, else None.
        error: its error if that is an object, else None.
        request: the request that a response answers, or None for other messages.
        revisions: the revisions that it can be of; see `set_revisions`.
        is_modern: none of them has a handshake.
        revision, facts: its revision and that revision's facts, or "" and no facts if the revision
            isn't known.
        row: the row of its method, or for a response, of its request's method. None if that is
            unknown.
        in_batch: it is a member of a batch.
        exchange: the HTTP exchange that carried it, 0 if none.
        size: its size in bytes.
        redacted: JSON pointers of the values that the recorder replaced.
    """

    __slots__ = (
        "error",
        "exchange",
        "facts",
        "id",
        "in_batch",
        "is_modern",
        "kind",
        "line",
        "members",
        "meta",
        "method",
        "params",
        "redacted",
        "request",
        "result",
        "revision",
        "revisions",
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
        self.revisions: Revisions = ()
        self.is_modern = False
        self.revision = ""
        self.facts = _NO_FACTS
        self.row: Method | None = None
        self.in_batch = False
        self.exchange = 0
        self.size = 0
        self.redacted: tuple[str, ...] = ()

    def set_revisions(self, revisions: Revisions) -> None:
        """Set the revisions that it can be of."""
        self.revisions = revisions
        self.is_modern, self.revision, self.facts = _known_of(revisions)

    @property
    def is_well_formed(self) -> bool:
        """True if a receiver can tell what kind of message it is, and has no reason to reject it.

        Strict receivers reject a request with unknown members.
        """
        if not self.has_one_kind or not isinstance(self.members.get("params", {}), dict):
            return False
        return self.kind == "response" or self.members.keys() <= _REQUEST_MEMBERS

    @property
    def has_one_kind(self) -> bool:
        """True if a receiver can tell what kind of message it is, and which request it answers."""
        members = self.members
        if members.get("jsonrpc") != "2.0":
            return False
        if self.kind == "response":
            return self.request is not None and ("result" in members) is not ("error" in members)
        if "result" in members or "error" in members:
            return False
        return bool(self.method) and ("id" not in members or _is_plain_id(self.id))

    def shrink(self) -> None:
        """Forget the contents of a large message after judging, except its id and method."""
        if self.size <= MAX_PARAMS:
            return
        kept = ("jsonrpc", "id", "method")
        self.members = {
            key: value if key in kept else {} if isinstance(value, dict) else None
            for key, value in itertools.islice(self.members.items(), _MAX_META)
        }
        code = self.code
        self.meta = _small_members(self.meta, itertools.islice(self.meta, _MAX_META))
        self.params = {"_meta": self.meta} if self.params else {}
        self.result = None if self.result is None else {}
        self.error = None if self.error is None else {"code": code if _is_small(code) else None}
        self.redacted = ("",)  # no rule can read it any more

    @property
    def code(self) -> Any:
        """The code of its error, or None."""
        return None if self.error is None else self.error.get("code")


@cache
def _known_of(revisions: Revisions) -> tuple[bool, str, RevisionFacts]:
    """Return what the revisions that a message can be of have in common."""
    revision = revisions[0] if len(revisions) == 1 else ""
    return are_modern(revisions), revision, FACTS.get(revision, _NO_FACTS)


def _is_plain_id(id: Any) -> bool:
    """Return True if no receiver has a reason to call an id unreadable.

    A legal id can be too large for a receiver, and some receivers read `1.0` as an integer.
    """
    if isinstance(id, str):
        return len(id) <= _LONG_ID and id.isascii()
    return isinstance(id, int) and not isinstance(id, bool) and abs(id) < 2**53


class SeenRequest:
    """A request in a trace.

    Attributes:
        line, time: its line in the trace, and its time in seconds.
        sender, id, method, params: the request's sender, id, method and params.
        size: the message's size in characters.
        has_all_params: False if the request is so long that only some params are remembered.
        revisions: the revisions that it can be of.
        is_modern: none of them has a handshake.
        is_well_formed, in_batch: see `SeenMessage`.
        earlier: an open request of its sender with the same id, or None.
        count: how many open requests have the id, the earlier ones included.
        exchange: the HTTP exchange that carried it, 0 if none.
        names_other_version: its `_meta` names a version that isn't a revision without a handshake.
        token: the key of its progress token, or None.
        shares_token: an earlier request without a response has the same one.
        progress, progress_line: the last reported value, and its line.
        progress_exchange, answer_exchange: the HTTP exchanges of that report and the response.
        cancelled, answered: the lines of its cancellation and its response; 0 before they arrive.
        is_redacted: the recorder replaced some of its values.
        is_error: the response is an error.
        result: the result if it is needed later: an `input_required` result.
        task: the id of the task that it became, or None.
        acknowledged: the line of a subscription's acknowledgement; 0 before it arrives.
    """

    __slots__ = (
        "acknowledged",
        "answer_exchange",
        "answered",
        "cancelled",
        "count",
        "earlier",
        "exchange",
        "has_all_params",
        "id",
        "in_batch",
        "is_error",
        "is_modern",
        "is_redacted",
        "is_well_formed",
        "line",
        "method",
        "names_other_version",
        "params",
        "progress",
        "progress_exchange",
        "progress_line",
        "result",
        "revisions",
        "sender",
        "shares_token",
        "size",
        "task",
        "time",
        "token",
    )

    def __init__(self, message: SeenMessage) -> None:
        self.line = message.line
        self.time = message.time
        self.sender = message.sender
        self.id = id_key(message.id) if isinstance(message.id, str) else message.id
        self.method = message.method if len(message.method) <= _LONG_ID else ""
        self.size = message.size
        self.has_all_params = message.size <= MAX_PARAMS
        self.params: Mapping[str, Any] = (
            message.params if self.has_all_params else _small_members(message.params, _KEPT)
        )
        self.revisions = message.revisions
        self.is_modern = message.is_modern
        version = None if self.is_modern else message.meta.get(META + "protocolVersion")
        self.names_other_version = (
            isinstance(version, str) and not is_modern(version) and self.method != "initialize"
        )
        self.is_redacted = bool(message.redacted)
        self.is_well_formed = message.is_well_formed
        self.in_batch = message.in_batch
        self.earlier: SeenRequest | None = None
        self.count = 1
        self.exchange = message.exchange
        self.token = id_key(message.meta.get("progressToken"))
        self.shares_token = False
        self.progress: float | None = None
        self.progress_line = 0
        self.progress_exchange = 0
        self.answer_exchange = 0
        self.cancelled = 0
        self.answered = 0
        self.is_error = False
        self.result: Mapping[str, Any] | None = None
        self.task: str | None = None
        self.acknowledged = 0

    @property
    def meta(self) -> Mapping[str, Any]:
        """The `_meta` of its params, empty if it has none."""
        meta = self.params.get("_meta")
        return meta if isinstance(meta, dict) else {}


def _small_members(value: Mapping[str, Any], keys: Iterable[str]) -> dict[str, Any]:
    """Return the members in `keys` that are small, with only the small members of `_meta`."""
    found: dict[str, Any] = {}
    for key in keys:
        member = value.get(key)
        if key == "_meta" and isinstance(member, dict):
            found[key] = _small_members(member, itertools.islice(member, _MAX_META))
        elif key in value and len(key) <= _LONG_ID and _is_small(member):
            found[key] = member
    return found


def _is_small(value: Any) -> bool:
    if isinstance(value, str):
        return len(value) <= _MAX_MEMBER
    if not isinstance(value, list | dict):
        return True
    return len(json.dumps(value)) <= _MAX_MEMBER


def holds_until(message: SeenMessage) -> float:
    """Return the time until which a list or a `server/discover` result is assumed unchanged.

    Over HTTP without sessions, another instance of the server, such as a newer version, can handle
    a later request. So a result holds for its `ttlMs`, and at least for a minute.
    """
    if not message.exchange or not message.is_modern or message.result is None:
        return math.inf
    return message.time + max(_HOLDS, seconds(message.result.get("ttlMs")) or 0.0)


def seconds(value: Any) -> float | None:
    """Return a number of milliseconds in seconds, or None if it isn't a number."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return value / 1000 if is_number else None
