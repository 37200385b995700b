"""From received bytes to messages, one at a time: framing, batches, JSON-RPC.

1. Messages are decoded on request only, a batch as a whole. A caller that pauses therefore stops
   the processing.
2. Any input results in an `Envelope` or a `BadMessage`. Nothing is raised.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from msgspec import UNSET, Struct

from mcp_core._errors import Fault
from mcp_core.protocol.jsonrpc._body import ParsedBody, parse_body, parse_message, too_long
from mcp_core.protocol.jsonrpc._codec import NO_PARAMS, BadMessage
from mcp_core.protocol.jsonrpc._excerpt import EXCERPT_SIZE, Excerpt
from mcp_core.protocol.jsonrpc._framing import LineBuffer

if TYPE_CHECKING:
    from msgspec import Raw, UnsetType

    from mcp_core._limits import Limits
    from mcp_core.protocol.jsonrpc._body import DecodedParams
    from mcp_core.protocol.jsonrpc._codec import Envelope
    from mcp_core.protocol.revisions._methods import Method
    from mcp_core.types import RequestId

    from ._events import GrantLike, HttpRequestLike

__all__ = [
    "NO_CONTEXT",
    "HeaderValidator",
    "IncomingMessages",
    "MessageContext",
]


class MessageContext(Struct, frozen=True, gc=False):
    """The facts that a transport knows of a message beside its bytes.

    Attributes:
        related: our request on whose stream it arrived.
        header_validator: compares the message with its HTTP headers.
        status: the status of the HTTP response in whose body it arrived.
        grant: its sender's authorization.
        http: the HTTP request in which it arrived, at a server.
    """

    related: RequestId | None = None
    header_validator: HeaderValidator | None = None
    status: int | None = None
    grant: GrantLike | None = None
    http: HttpRequestLike | None = None


NO_CONTEXT = MessageContext()  # of lines, and of messages of which nothing is known


class IncomingMessages:
    """The received input that wasn't processed yet.

    Pass input to `feed`, `add` or `add_parsed`, then call `next_message` until it returns None.

    Attributes:
        batches: a message may be an array of messages.
        received: the number of bytes received so far.
        has_input: input was added since `next_message` last returned None.
        context: the context of the message that `next_message` returned last.
        decoded: the params of that message, if they were decoded before it was added.
    """

    __slots__ = (
        "_batch",
        "_batch_size",
        "_bodies",
        "_limits",
        "_lines",
        "batches",
        "context",
        "decoded",
        "has_input",
        "received",
    )

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        # Created on first use: HTTP connections never need it, and there may be many of them.
        self._lines: LineBuffer | None = None
        # The rest of a batch, in reverse order.
        self._batch: list[tuple[Envelope | BadMessage, DecodedParams | None]] = []
        self._batch_size = 0  # bytes of the whole batch, held until its last message
        self._bodies: list[tuple[bytes | ParsedBody, MessageContext]] = []
        self.batches = False
        self.has_input = False
        self.received = 0
        self.context = NO_CONTEXT
        self.decoded: DecodedParams | None = None

    def __len__(self) -> int:
        """Return the number of bytes that were not processed."""
        held = self._batch_size if self._batch else 0
        for body, _ in self._bodies:
            held += body.size if isinstance(body, ParsedBody) else len(body)
        return held + (len(self._lines) if self._lines is not None else 0)

    def __repr__(self) -> str:
        return f"<IncomingMessages of {len(self)} bytes>"

    @property
    def has_partial_line(self) -> bool:
        """True if a line has begun and its newline hasn't arrived."""
        return self._lines is not None and self._lines.has_partial_line

    @property
    def unfinished(self) -> tuple[bytes, int]:
        """The first bytes of the line whose newline hasn't arrived, and its size so far."""
        line = self._lines.unfinished if self._lines is not None else b""
        return bytes(line[:EXCERPT_SIZE]), len(line)

    def feed(self, data: bytes) -> None:
        """Add bytes of a stream of lines, in chunks of any size."""
        self.received += len(data)
        self.has_input = True
        if self._lines is None:
            self._lines = LineBuffer(self._limits.message)
        self._lines.feed(data)

    def add(self, message: bytes, context: MessageContext | None) -> None:
        """Add one complete message, from a transport with message boundaries."""
        self.received += len(message)
        self.has_input = True
        self._bodies.append((message, context or NO_CONTEXT))

    def add_parsed(self, body: ParsedBody, context: MessageContext) -> None:
        """Add one body that `parse_body` has parsed."""
        self.received += body.size
        self.has_input = True
        self._bodies.append((body, context))

    def clear(self) -> None:
        """Discard all input that wasn't processed."""
        self._lines = None
        self._batch.clear()
        self._bodies.clear()
        self.has_input = False

    def next_message(self) -> Envelope | BadMessage | None:
        """Return the next message, or None if more input is needed."""
        while True:
            if self._batch:
                message, self.decoded = self._batch.pop()
                return message
            self.decoded = None
            body: bytes | ParsedBody
            if self._bodies:
                body, self.context = self._bodies.pop(0)
            else:
                self.context = NO_CONTEXT
                line = self._lines.next_line() if self._lines is not None else None
                if line is None:
                    self.has_input = False
                    return None
                if isinstance(line, Excerpt):
                    return too_long(self._limits, line)
                body = line
            data = b""
            if not isinstance(body, ParsedBody):
                if body.startswith(b"{"):  # as nearly every message does, and no batch
                    return parse_message(body, self._limits)
                data = body
                body = parse_body(data, self._limits)
            if body.is_array and not self.batches:
                body = body.as_message(data)
            if body.is_batch:
                all_decoded = body.decoded or [None] * len(body.messages)
                members = zip(body.messages, all_decoded, strict=True)
                self._batch = [(_batch_member(message), decoded) for message, decoded in members]
                self._batch.reverse()
                self._batch_size = body.size
            elif body.messages:
                if body.decoded is not None:
                    self.decoded = body.decoded[0]
                return body.messages[0]

    def read_params(self, row: Method, params: Raw | UnsetType) -> Any:
        """Return the last message's params, decoded by its `row` unless they are already.

        Raises:
            InvalidPayload: they don't fit their type.
        """
        raw = NO_PARAMS if params is UNSET else params
        if self.decoded is None:
            return row.read_params(raw)
        return self.decoded.get(row.read_params, raw)


def _batch_member(message: Envelope | BadMessage) -> Envelope | BadMessage:
    if isinstance(message, BadMessage) or message.method != "initialize" or message.id is UNSET:
        return message
    return BadMessage(Fault.INVALID_REQUEST, "initialize is never part of a batch", message.id)


class HeaderValidator(Protocol):
    """Compares a request with the HTTP headers that repeat parts of it.

    Both methods return a description of the first mismatch, None if all headers match.
    """

    def check_head(self, method: str, version: str, row: Method | None, params: Any) -> str | None:
        """Compare method, version and name. The version or the method may be unknown.

        `params` may be undecoded, because they don't fit the method.
        """

    def check_params(self, row: Method, params: Any) -> str | None:
        """Compare the params. Called after version and method were accepted."""
