"""Input that cannot be read, and our requests that fail because of it.

1. One stray line fails nothing: many servers print a banner. It is remembered, and repeated in the
   errors that follow.
2. A request fails at once if the input is recognizably its response: by the id at either end of
   the message, or because the transport knows to which request it belongs.
3. If it may be the response to any request, all that wait get a second more, for a message that
   proves otherwise. Then they fail, and the peer is told to cancel them.
4. So does a flood of other output.
5. An error without an id fails no call, whose tool may be running. It is repeated by the error of
   a call that times out.

The connection stays open, because framing continues at the next newline.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, TypeGuard

from mcp_core._errors import ConnectFailed, ConnectionLost, PeerError, RemoteProtocolError
from mcp_core.protocol.jsonrpc._excerpt import show_bytes
from mcp_core.protocol.messages._incoming import NO_CONTEXT
from mcp_core.protocol.revisions._methods import Role

from ._negotiation import OpeningReply
from ._requests import NEGOTIATION

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from mcp_core._errors import McpTrioError
    from mcp_core._limits import Limits
    from mcp_core.protocol.jsonrpc._codec import BadMessage
    from mcp_core.protocol.messages._incoming import MessageContext
    from mcp_core.protocol.messages._responses import OutgoingRequest
    from mcp_core.types import RequestId

    from ._requests import OutgoingRequests

__all__ = ["Failure", "UnreadableInput"]

# Seconds until a request fails whose response may be the input that could not be read. Bytes that
# are on their way arrive within that time, and a caller doesn't take it for a hang.
_DOUBT: Final = 1.0
# Lines without a message between them. To read as many takes about half a second, and few programs
# print as many by mistake.
_MAX_LINES: Final = 20_000
_PARSE_ERROR: Final = -32700  # JSON-RPC 2.0, section 5.1
_CLIENT: Final = Role.CLIENT


class Failure(NamedTuple):
    """Our request `id` has failed, and was removed from the table of requests.

    `reply` is the outcome if it is a request of the version negotiation, otherwise `error` is.
    """

    id: RequestId
    call: OutgoingRequest
    error: RemoteProtocolError
    reply: OpeningReply


class _Doubt(NamedTuple):
    """Why a request fails at the time `due`, unless a message proves otherwise."""

    problem: str
    due: float
    in_line: bool  # it may be the response in a line over the limit whose end hasn't arrived


class UnreadableInput:
    """The input since the last message that could not be read, and its effect on our requests.

    Methods that return failures have removed these requests from `requests`, the table of our own.
    If the peer may still be working on one, its cancellation was queued.

    Args:
        role: which end of the connection this is.
        limits: our limits.
        requests: our requests.
        describe_peer: returns a text to append to errors about the peer.

    Attributes:
        deadline: when to call `time_out`, None for never.
        lines: the number of lines since the last message.
        reported: the kinds of fault that were reported (`InputProblem`).
    """

    __slots__ = (
        "_describe_peer",
        "_doubts",
        "_first",
        "_last",
        "_limit",
        "_requests",
        "_role",
        "_size",
        "_unaddressed",
        "_unaddressed_for",
        "deadline",
        "lines",
        "reported",
    )

    def __init__(
        self,
        role: Role,
        limits: Limits,
        requests: OutgoingRequests,
        describe_peer: Callable[[], str] | None,
    ) -> None:
        self.deadline: float | None = None
        self.lines = 0
        self._role = role
        self._limit = limits.message
        self._requests = requests
        self._describe_peer = describe_peer
        self.reported: set[str] = set()
        self._doubts: dict[RequestId, _Doubt] = {}
        self._unaddressed = ""  # the last error without an id, and the requests that waited then
        self._unaddressed_for: frozenset[RequestId] = frozenset()
        self._first: bytes  # the beginning of the first of these lines
        self._last: bytes  # and of the last
        self._size = 0

    def __repr__(self) -> str:
        return f"<UnreadableInput of {self.lines} lines, {len(self._doubts)} requests in doubt>"

    # -- What cannot be read -----------------------------------------------------------------------

    def receive(self, bad: BadMessage, context: MessageContext, now: float) -> list[Failure]:
        """Process an invalid message. Return the requests that fail."""
        related = context.related
        excerpt = bad.excerpt
        id: RequestId | None = bad.id
        kind: str = bad.apparent_kind
        if excerpt is not None:
            id, kind = excerpt.identify()
            if excerpt.is_rest:
                return self._end_line(bad, id, kind)
        if kind in ("request", "notification"):
            return []
        if self._is_open(id) and (excerpt is None or excerpt.is_object):
            return self._fail([id], _problem(bad))
        if self._role is not _CLIENT:
            return []
        if self._is_open(related) and not self._is_opening(related):
            return self._fail([related], _problem(bad))
        if excerpt is None or context is not NO_CONTEXT:
            return []
        if excerpt.too_long:
            waiting = self._waiting()
            if kind == "response" and len(waiting) == 1:
                return self._fail(waiting, _problem(bad))
            self._doubt(waiting, _problem(bad), now, in_line=True)
            return self._fail_doubted(waiting) if excerpt.size else []
        if kind == "response" and self._is_open(id):
            text = f"a line that is not a message has its id: {show_bytes(excerpt.beginning)}"
            self._doubt([id], text, now)
        self.add_line(excerpt.beginning, excerpt.size)
        if self.lines <= _MAX_LINES and self._size <= self._limit:
            return []
        text = self._describe_lines("the server").removeprefix("; ")
        self.message_received()
        return self._fail(self._waiting(), text, is_guess=True)

    def receive_error(self, error: McpTrioError, text: str) -> list[Failure]:
        """Process an error response without an id, which `text` describes.

        Return the requests that fail. A call doesn't: its tool may be running, and some servers
        send such errors in response to notifications. The error is repeated if the call times out.
        Only the opening of the connection fails, by an error that says that it was not read.
        """
        waiting = self._waiting()
        self._unaddressed = text
        self._unaddressed_for = frozenset(waiting)
        if not isinstance(error, PeerError) or error.code != _PARSE_ERROR:
            return []
        return self._fail([id for id in waiting if self._is_opening(id)], text)

    def message_received(self) -> None:
        """Forget the lines before a message, and doubts about requests that it has completed."""
        self.lines = 0
        self._size = 0
        if self._unaddressed_for:
            self._unaddressed_for = frozenset(filter(self._is_open, self._unaddressed_for))
        if self._doubts:
            for id in [id for id in self._doubts if not self._is_open(id)]:
                del self._doubts[id]
            self._set_deadline()

    def add_line(self, beginning: bytes, size: int) -> None:
        """Remember a line that isn't a message, given its first bytes and its size in bytes."""
        self._last = beginning
        if not self.lines:
            self._first = beginning
        self.lines += 1
        self._size += size

    def time_out(self, now: float) -> list[Failure]:
        """Return the requests that were in doubt for long enough, and now fail."""
        return self._fail_doubted([id for id, doubt in self._doubts.items() if now >= doubt.due])

    # -- What to say about it ----------------------------------------------------------------------

    def describe(self, author: str = "it") -> str:
        """Return a clause about the input that was lost, to append to an error, or ""."""
        unaddressed = f"; {self._unaddressed}" if self._unaddressed_for else ""
        return unaddressed + self._describe_lines(author)

    def _describe_lines(self, author: str) -> str:
        if not self.lines:
            return ""
        first, last = show_bytes(self._first), show_bytes(self._last)
        if self.lines == 1:
            return f"; {author} wrote a line that is not an MCP message: {first}"
        return (
            f"; {author} wrote {self.lines} lines that are not MCP messages, the first {first},"
            f" the last {last}"
        )

    def explain(self, error: McpTrioError | None) -> McpTrioError | None:
        """Return the error that ends the connection, with what is known about the peer.

        `ConnectFailed` gets no peer description: the function that connects adds one.
        """
        self._doubts.clear()
        self._set_deadline()
        text = self.describe()
        if self._describe_peer is not None and not isinstance(error, ConnectFailed):
            text += self._describe_peer()
        if not text or not isinstance(error, ConnectFailed | ConnectionLost | RemoteProtocolError):
            return error
        explained = type(error)(f"{error}{text}")
        explained.__cause__ = error.__cause__
        return explained

    # -- Private -----------------------------------------------------------------------------------

    def _is_open(self, id: RequestId | None) -> TypeGuard[RequestId]:
        return id in self._requests.table

    def _is_opening(self, id: RequestId) -> bool:
        return self._requests.table[id].token is NEGOTIATION

    def _waiting(self) -> list[RequestId]:
        """Return our requests to which a response may be under way."""
        return [
            id
            for id, call in self._requests.table.items()
            if call.row is None or not call.row.long_lived
        ]

    def _end_line(self, bad: BadMessage, id: RequestId | None, kind: str) -> list[Failure]:
        """Process the end of a line over the limit, which was reported before."""
        in_line = [each for each, doubt in self._doubts.items() if doubt.in_line]
        if id is None and kind != "request":
            return self._fail_doubted(in_line)
        for each in in_line:
            del self._doubts[each]
        self._set_deadline()
        if kind == "request" or not self._is_open(id):
            return []
        return self._fail([id], _problem(bad))

    def _doubt(
        self, ids: Iterable[RequestId], problem: str, now: float, *, in_line: bool = False
    ) -> None:
        for id in ids:
            self._doubts.setdefault(id, _Doubt(problem, now + _DOUBT, in_line))
        self._set_deadline()

    def _fail_doubted(self, ids: Iterable[RequestId]) -> list[Failure]:
        failures = []
        for id in ids:
            failures += self._fail([id], self._doubts.pop(id).problem, is_guess=True)
        self._set_deadline()
        return failures

    def _set_deadline(self) -> None:
        self.deadline = min((doubt.due for doubt in self._doubts.values()), default=None)

    def _fail(
        self, ids: Iterable[RequestId], problem: str, *, is_guess: bool = False
    ) -> list[Failure]:
        """Remove requests that still have no response, and return their failures."""
        failures = []
        for id in ids:
            call = self._requests.table.get(id)
            if call is None:
                continue
            if is_guess:
                self._requests.cancel(id, "its response could not be read")
            self._requests.table.pop(id, None)
            verb = "may be one that is invalid" if is_guess else "is invalid"
            text = f"the response to {call.method} {verb}: {problem}"
            reply = OpeningReply(error=PeerError(0, text))
            if self._describe_peer is not None:
                text += self._describe_peer()
            failures.append(Failure(id, call, RemoteProtocolError(text), reply))
        return failures


def _problem(bad: BadMessage) -> str:
    excerpt = bad.excerpt
    if excerpt is None:
        return bad.message
    return f"{bad.message}; it begins with {show_bytes(excerpt.beginning)}{bad.cure}"
