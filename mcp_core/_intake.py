"""From the bytes of the peer to its messages, one at a time: framing, batches, JSON-RPC.

Rules of this file:

1. Nothing is decoded before it is asked for, a batch as a whole. So whoever stops asking has stopped reading.
2. Whatever the bytes are, the outcome is an `Envelope` or a `BadMessage`; nothing is raised.
3. A blank line is no message: some peers end a message with two newlines.

It knows neither methods nor who the peer is; of a revision only whether it has batches.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import UNSET, Struct

from ._body import ParsedBody, parse_body, too_long
from ._errors import Fault
from ._framing import OVERLONG, LineBuffer
from ._jsonrpc import BadMessage

if TYPE_CHECKING:
    from ._admission import Mirror
    from ._config import Limits
    from ._events import Granted
    from ._jsonrpc import Envelope
    from .types import RequestId

__all__ = ["Intake", "Via"]


class Via(Struct, frozen=True, gc=False):
    """What a transport tells of a message beside its bytes: the request of ours on whose stream it came, what is said of it in
    headers, the status of the response that it is the body of, and by what its sender was let in."""

    related: RequestId | None = None
    mirror: Mirror | None = None
    status: int | None = None
    grant: Granted | None = None


_NOTHING = Via()


class Intake:
    """What has arrived and was not looked at yet.

    `batches`: a message may be an array. `received`: bytes in all. `has_input`: something came since
    `next_message` last gave None. `via`: how the message came that `next_message` gave last.
    """

    __slots__ = (
        "_batch",
        "_batch_size",
        "_bodies",
        "_limits",
        "_lines",
        "batches",
        "has_input",
        "received",
        "via",
    )

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        # Most conversations need only some of these, and there may be very many that are idle.
        self._lines: LineBuffer | None = None
        self._batch: list[Envelope | BadMessage] = []  # the rest of one, the next message last
        self._batch_size = 0  # bytes of all of it: they are held until its last message is taken
        self._bodies: list[tuple[bytes | ParsedBody, Via]] = []
        self.batches = False
        self.has_input = False
        self.received = 0
        self.via = _NOTHING

    def __len__(self) -> int:
        """Bytes held."""
        held = self._batch_size if self._batch else 0
        for body, _ in self._bodies:
            held += body.size if isinstance(body, ParsedBody) else len(body)
        return held + (len(self._lines) if self._lines is not None else 0)

    def __repr__(self) -> str:
        return f"<Intake of {len(self)} bytes>"

    @property
    def in_line(self) -> bool:
        """Whether a line has begun and not ended."""
        return self._lines is not None and self._lines.in_line

    def feed(self, data: bytes) -> None:
        """Bytes of a stream of lines, however they are split."""
        self.received += len(data)
        self.has_input = True
        if self._lines is None:
            self._lines = LineBuffer(self._limits.message)
        self._lines.feed(data)

    def add(self, message: bytes, via: Via | None) -> None:
        """One whole message, from a transport that keeps messages apart."""
        self.received += len(message)
        self.has_input = True
        self._bodies.append((message, via or _NOTHING))

    def add_parsed(self, body: ParsedBody, via: Via) -> None:
        """One body that was parsed before."""
        self.received += body.size
        self.has_input = True
        self._bodies.append((body, via))

    def clear(self) -> None:
        """Forget what is held: nobody will look at it."""
        self._lines = None
        self._batch.clear()
        self._bodies.clear()
        self.has_input = False

    def next_message(self) -> Envelope | BadMessage | None:
        """The next message, None until more arrives."""
        while True:
            if self._batch:
                return self._batch.pop()
            body: bytes | ParsedBody
            if self._bodies:
                body, self.via = self._bodies.pop(0)
                if not isinstance(body, ParsedBody):
                    body = parse_body(body, self._limits)
            else:
                self.via = _NOTHING
                line = self._lines.next_line() if self._lines is not None else None
                if line is None:
                    self.has_input = False
                    return None
                if line is OVERLONG:
                    return too_long(self._limits)
                body = parse_body(line, self._limits)
            if body.is_array and not self.batches:
                body = body.as_message()
            if body.is_batch:
                self._batch = [_batch_member(message) for message in reversed(body.messages)]
                self._batch_size = body.size
            elif body.messages:
                return body.messages[0]


def _batch_member(message: Envelope | BadMessage) -> Envelope | BadMessage:
    if isinstance(message, BadMessage) or message.method != "initialize" or message.id is UNSET:
        return message
    return BadMessage(Fault.INVALID_REQUEST, "initialize is never part of a batch", message.id)
