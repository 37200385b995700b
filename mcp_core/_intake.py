"""From the bytes of the peer to its messages, one at a time: framing, batches, JSON-RPC.

Rules of this file:

1. Nothing is taken apart before it is asked for. So whoever stops asking has stopped reading, also in the middle of a batch.
2. Whatever the bytes are, the outcome is an `Envelope` or a `BadMessage`; nothing is raised.
3. A blank line is no message: some peers end a message with two newlines.

It knows neither methods nor who the peer is; of a revision only whether it has batches.
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
    """What a transport tells of a message beside its bytes: the request of ours on whose stream it came, what is said of it in
    headers, the status of the response that it is the body of, and by what its sender was let in."""

    related: RequestId | None = None
    mirror: Mirror | None = None
    status: int | None = None
    grant: Granted | None = None


_NOTHING = Via()


class Intake:
    """What has arrived and was not looked at yet.

    `batches`: a message may be an array. `received`: bytes in all. `via`: how the message came that `next_message` gave last.
    """

    __slots__ = ("_limits", "_lines", "_members", "_whole", "batches", "received", "via")

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        # Most conversations need only some of these, and there may be very many that are idle.
        self._lines: LineBuffer | None = None
        self._members: list[bytes] = []  # of a batch, the first one last
        self._whole: list[tuple[bytes, Via]] = []
        self.batches = False
        self.received = 0
        self.via = _NOTHING

    def __len__(self) -> int:
        """Bytes held."""
        whole = sum(len(data) for data, _ in self._whole)
        return whole + sum(map(len, self._members)) + (len(self._lines) if self._lines is not None else 0)

    def __repr__(self) -> str:
        return f"<Intake of {len(self)} bytes>"

    @property
    def in_line(self) -> bool:
        """Whether a line has begun and not ended."""
        return self._lines is not None and self._lines.in_line

    def feed(self, data: bytes) -> None:
        """Bytes of a stream of lines, however they are split."""
        self.received += len(data)
        if self._lines is None:
            self._lines = LineBuffer(self._limits.message)
        self._lines.feed(data)

    def add(self, message: bytes, via: Via | None) -> None:
        """One whole message, from a transport that keeps messages apart."""
        self.received += len(message)
        self._whole.append((message, via or _NOTHING))

    def clear(self) -> None:
        """Forget what is held: nobody will look at it."""
        self._lines = None
        self._members.clear()
        self._whole.clear()

    def next_message(self) -> Envelope | BadMessage | None:
        """The next message, None until more arrives."""
        while True:
            if self._members:
                return self._member(self._members.pop())
            if self._whole:
                data, self.via = self._whole.pop(0)
                if len(data) > self._limits.message:
                    return self._too_long()
            else:
                self.via = _NOTHING
                line = self._lines.next_line() if self._lines is not None else None
                if line is None:
                    return None
                if line is OVERLONG:
                    return self._too_long()
                data = line
            if not data.startswith(b"{"):
                if not data or data.isspace():
                    continue
                if is_batch(data):
                    bad = self._open(data)
                    if bad is not None:
                        return bad
                    continue
            try:
                return decode(data, self._limits.method, self._limits.id)
            except BadMessage as bad:
                return bad

    def _open(self, batch: bytes) -> BadMessage | None:
        if not self.batches:
            return BadMessage(Fault.INVALID_REQUEST, "a message is a JSON object, not an array")
        try:
            members = split_batch(batch)
        except BadMessage as bad:
            return bad
        most = self._limits.batch
        if not 0 < len(members) <= most:
            problem = f"a batch has between 1 and {most} messages, this one has {len(members)}"
            return BadMessage(Fault.INVALID_REQUEST, problem)
        self._members = members[::-1]
        return None

    def _member(self, data: bytes) -> Envelope | BadMessage:
        try:
            envelope = decode(data, self._limits.method, self._limits.id)
        except BadMessage as bad:
            return bad
        if envelope.method == "initialize" and envelope.id is not UNSET:
            return BadMessage(Fault.INVALID_REQUEST, "initialize is never part of a batch", envelope.id)
        return envelope

    def _too_long(self) -> BadMessage:
        return BadMessage(Fault.PARSE, f"the message is longer than {self._limits.message} bytes")
