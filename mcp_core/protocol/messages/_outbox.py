"""The queue of messages to send.

1. Messages are encoded before they are queued, so a message that cannot be encoded is never queued.
2. The queue has no limit of its own: `Connection` and `Pump` compare its size with theirs.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from mcp_core.protocol.jsonrpc._codec import strip_white_space
from mcp_core.protocol.revisions._dialects import Dialect
from mcp_core.types import RequestId

__all__ = ["UNREAD_RESPONSES", "MessageKind", "Outbox", "Outgoing"]

# Why a client closes a connection whose queue grows, over any transport.
UNREAD_RESPONSES: Final = "the server sends requests but does not read the responses"


class MessageKind(enum.Enum):
    """The kinds of outgoing messages, for transports that route them."""

    REQUEST = "request"
    NOTIFICATION = "notification"
    RESPONSE = "response"
    CANCEL = "cancel"


class Outgoing(Struct, gc=False):
    """One message to send.

    Attributes:
        data: the encoded message.
        kind: how to route it.
        id: the request that it begins, responds to or cancels.
        related: the peer's request during which it is sent, if any.

    The others are for transports that need more than bytes, such as HTTP:

        method: its method, "" for a response.
        dialect: the revision, of requests and notifications.
        params: the params, of requests and notifications.
        error: the code of an error response, 0 for other messages.
        headers: headers that the caller requested.
    """

    data: bytes
    kind: MessageKind
    id: RequestId | None = None
    related: RequestId | None = None
    method: str = ""
    dialect: Dialect | None = None
    params: Any = None
    error: int = 0
    headers: Mapping[str, str] | None = None

    @property
    def incoming_id(self) -> RequestId | None:
        """The peer's request to which the message belongs, None for none.

        Ids of our own requests may be equal to it, since each side numbers its own requests.
        """
        return self.id if self.kind is MessageKind.RESPONSE else self.related

    def remove_newlines(self) -> None:
        """Make `data` one line. Our own encoder writes no newlines, but a `Raw` may have them.

        Raises:
            ValueError: `data` has a newline and isn't JSON.
        """
        if _NEWLINE in self.data:
            self.data = strip_white_space(self.data)


_NEWLINE: Final = 0x0A  # an int is found faster than b"\n"
# Queued responses of a client that reads and answers large requests for input are fewer.
_MANY_RESPONSES: Final = 64
_RESPONSE = MessageKind.RESPONSE  # looking up a member of an enum costs more than the comparison


class Outbox:
    """A queue of messages.

    Attributes:
        queued: the size of all messages in bytes.
        response_bytes: the responses' size in bytes.
        sent: the number of bytes that were taken so far.
    """

    __slots__ = (
        "_messages",
        "queued",
        "response_bytes",
        "sent",
    )

    def __init__(self) -> None:
        self._messages: list[Outgoing] = []
        self.response_bytes = 0
        self.queued = 0
        self.sent = 0

    def put(self, message: Outgoing) -> None:
        """Queue a message.

        Raises:
            ValueError: its data has a newline and isn't JSON.
        """
        if _NEWLINE in message.data:
            message.remove_newlines()
        size = len(message.data)
        self.queued += size
        if message.kind is _RESPONSE:
            self.response_bytes += size
        self._messages.append(message)

    def put_if_any(self, message: Outgoing | None) -> bool:
        """Queue `message` unless it is None. Return whether it was queued."""
        if message is not None:
            self.put(message)
        return message is not None

    def queued_for(self, id: RequestId) -> int:
        """Return the number of queued bytes that belong to the request `id` of the peer."""
        return sum(len(message.data) for message in self._messages if message.incoming_id == id)

    def are_responses_unread(self, limit: int) -> bool:
        """Return True if the peer cannot be reading: many responses wait, or more than `limit`.

        A few large ones aren't meant: a client queues them at once, and writes them later.
        """
        if self.response_bytes > limit:
            return True
        kinds = [message.kind for message in self._messages]
        return kinds.count(_RESPONSE) > _MANY_RESPONSES

    def take_messages(self) -> list[Outgoing]:
        """Remove and return all messages."""
        messages, self._messages = self._messages, []
        self.sent += self.queued
        self.response_bytes = 0
        self.queued = 0
        return messages

    def take_lines(self) -> bytes:
        """Remove all messages and return their bytes, one message per line."""
        messages = self._messages
        if not messages:
            return b""
        if len(messages) == 1:
            self._messages = []
            self.sent += self.queued
            self.response_bytes = 0
            self.queued = 0
            return messages[0].data + b"\n"
        lines = [message.data for message in self.take_messages()]
        lines.append(b"")
        return b"\n".join(lines)
