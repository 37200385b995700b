"""From received bytes to messages, one at a time: framing, batches, JSON-RPC.

1. Messages are decoded on request only. A caller that pauses therefore stops the processing, even
   in the middle of a batch.
2. Any input results in an `Envelope` or a `BadMessage`. Nothing is raised.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import UNSET, Struct

from ._errors import Fault
from ._framing import OVERLONG, LineBuffer
from ._jsonrpc import BadMessage, decode, is_batch, split_batch

if TYPE_CHECKING:
    from ._admission import Mirror
    from ._config import Limits
    from ._events import Granted
    from ._jsonrpc import Envelope
    from .types import RequestId

__all__ = ["Intake", "Via"]


class Via(Struct, frozen=True, gc=False):
    """The facts that a transport knows of a message beside its bytes.

    Attributes:
        related: our request on whose stream it arrived.
        header_validator: compares the message with its HTTP headers.
        status: the status of the HTTP response in whose body it arrived.
        grant: the authorization of its sender.
    """

    related: RequestId | None = None
    mirror: Mirror | None = None
    status: int | None = None
    grant: Granted | None = None


_NO_CONTEXT = Via()


class Intake:
    """The received input that was not processed yet.

    Pass input to `feed` or `add`, then call `next_message` until it returns None.

    Attributes:
        batches: a message may be an array of messages.
        received: the number of bytes received so far.
        context: the context of the message that `next_message` returned last.
    """

    __slots__ = (
        "_batch",
        "_limits",
        "_lines",
        "_messages",
        "batches",
        "received",
        "via",
    )

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        # Created on first use: HTTP connections never need it, and there may be many of them.
        self._lines: LineBuffer | None = None
        self._batch: list[bytes] = []  # the rest of a batch, in reverse order
        self._messages: list[tuple[bytes, Via]] = []
        self.batches = False
        self.received = 0
        self.via = _NO_CONTEXT

    def __len__(self) -> int:
        """Return the number of bytes that were not processed."""
        in_messages = sum(len(data) for data, _ in self._messages)
        in_lines = len(self._lines) if self._lines is not None else 0
        return in_messages + sum(map(len, self._batch)) + in_lines

    def __repr__(self) -> str:
        return f"<Intake of {len(self)} bytes>"

    @property
    def in_line(self) -> bool:
        """True if a line has begun and its newline has not arrived."""
        return self._lines is not None and self._lines.in_line

    def feed(self, data: bytes) -> None:
        """Add bytes of a stream of lines, in chunks of any size."""
        self.received += len(data)
        if self._lines is None:
            self._lines = LineBuffer(self._limits.message)
        self._lines.feed(data)

    def add(self, message: bytes, via: Via | None) -> None:
        """Add one complete message, from a transport with message boundaries."""
        self.received += len(message)
        self._messages.append((message, via or _NO_CONTEXT))

    def clear(self) -> None:
        """Discard all input that was not processed."""
        self._lines = None
        self._batch.clear()
        self._messages.clear()

    def next_message(self) -> Envelope | BadMessage | None:
        """Return the next message, or None if more input is needed."""
        while True:
            if self._batch:
                return self._decode_batch_member(self._batch.pop())
            if self._messages:
                data, self.via = self._messages.pop(0)
                if len(data) > self._limits.message:
                    return self._too_long()
            else:
                self.via = _NO_CONTEXT
                line = self._lines.next_line() if self._lines is not None else None
                if line is None:
                    return None
                if line is OVERLONG:
                    return self._too_long()
                data = line
            if not data.startswith(b"{"):
                if not data or data.isspace():
                    continue  # a blank line is no message: some peers send two newlines
                if is_batch(data):
                    bad = self._begin_batch(data)
                    if bad is not None:
                        return bad
                    continue
            try:
                return decode(data, self._limits.method, self._limits.id)
            except BadMessage as bad:
                return bad

    def _begin_batch(self, batch: bytes) -> BadMessage | None:
        if not self.batches:
            return BadMessage(Fault.INVALID_REQUEST, "a message is a JSON object, not an array")
        try:
            members = split_batch(batch)
        except BadMessage as bad:
            return bad
        limit = self._limits.batch
        if not 0 < len(members) <= limit:
            problem = f"a batch has between 1 and {limit} messages, this one has {len(members)}"
            return BadMessage(Fault.INVALID_REQUEST, problem)
        self._batch = members[::-1]
        return None

    def _decode_batch_member(self, data: bytes) -> Envelope | BadMessage:
        try:
            envelope = decode(data, self._limits.method, self._limits.id)
        except BadMessage as bad:
            return bad
        if envelope.method == "initialize" and envelope.id is not UNSET:
            return BadMessage(Fault.INVALID_REQUEST, "initialize is never part of a batch", envelope.id)
        return envelope

    def _too_long(self) -> BadMessage:
        return BadMessage(Fault.PARSE, f"the message is longer than {self._limits.message} bytes")
