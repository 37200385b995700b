"""What waits to be sent, in order.

Rules of this file:

1. A message is encoded before it comes here, so that nothing which cannot be said is ever half queued.
2. It is taken all at once: as bytes for one write (`take_lines`), or as messages for a transport that routes them.

It sets no limit. Who fills the queue looks at `queued` and waits, or is told to wait.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from ._jsonrpc import one_line

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ._dialects import Dialect
    from .types import RequestId

__all__ = ["Kind", "Outbox", "Outgoing"]


class Kind(enum.Enum):
    """What an outgoing message is to a transport that routes messages."""

    REQUEST = "request"
    NOTIFICATION = "notification"
    ANSWER = "answer"
    CANCEL = "cancel"


class Outgoing(Struct, gc=False):
    """One message to send. `id` is the request that it opens, answers or cancels; `related` the request of the peer that it
    was sent for, if any.

    The rest is for transports that tell more of a message than its bytes, as HTTP does: `dialect` and `params` of what we send
    by ourselves, `error`, the code of an answer that is an error (0 if it is none), and `headers` that the caller wants.
    """

    data: bytes
    kind: Kind
    id: RequestId | None = None
    related: RequestId | None = None
    method: str = ""
    dialect: Dialect | None = None
    params: Any = None
    error: int = 0
    headers: Mapping[str, str] | None = None

    @property
    def peers_request(self) -> RequestId | None:
        """The request of the peer that it belongs to. Our own requests count in another series of ids."""
        return self.id if self.kind is Kind.ANSWER else self.related


_NEWLINE: Final = 0x0A
_ANSWER = Kind.ANSWER  # looking up a member of an enum costs more than the check


class Outbox:
    """A queue of messages and its size in bytes: all of it, and the part that the peer's own requests have caused. `sent`
    counts what was taken out of it."""

    __slots__ = ("_messages", "answers", "queued", "sent")

    def __init__(self) -> None:
        self._messages: list[Outgoing] = []
        self.answers = 0
        self.queued = 0
        self.sent = 0

    def put(self, message: Outgoing) -> None:
        # As a number: for bytes Python first tries, and fails, to take them for one.
        if _NEWLINE in message.data:  # only in JSON that someone else encoded
            message.data = one_line(message.data)
        size = len(message.data)
        self.queued += size
        if message.kind is _ANSWER:
            self.answers += size
        self._messages.append(message)

    def offer(self, message: Outgoing | None) -> bool:
        """Put it, if there is anything to put."""
        if message is not None:
            self.put(message)
        return message is not None

    def queued_for(self, id: RequestId) -> int:
        """Bytes that belong to the peer's request `id`."""
        return sum(len(message.data) for message in self._messages if message.peers_request == id)

    def take(self) -> list[Outgoing]:
        """Everything, and forget it."""
        messages, self._messages = self._messages, []
        self.sent += self.queued
        self.answers = self.queued = 0
        return messages

    def take_lines(self) -> bytes:
        """Everything as bytes, one message a line, and forget it."""
        messages = self._messages
        if not messages:
            return b""
        if len(messages) == 1:
            self._messages = []
            self.sent += self.queued
            self.answers = self.queued = 0
            return messages[0].data + b"\n"
        lines = [message.data for message in self.take()]
        lines.append(b"")
        return b"\n".join(lines)
