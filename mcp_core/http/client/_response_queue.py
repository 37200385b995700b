"""The responses of a client to requests of its server, each of which is a POST of its own.

A server decides how many requests it sends, so it would also decide how many connections its client
opens. Two limits prevent that:

1. Few responses are posted at a time. They never wait for a connection of a call, because the
   server may need them before it can answer the call.
2. The others wait. When many do, the client stops reading event streams. A server that then accepts
   no response for some seconds sends requests without reading the responses: the connection is
   closed, with the same error as on a pipe.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from mcp_core._errors import RemoteProtocolError
from mcp_core.protocol.messages._outbox import UNREAD_RESPONSES

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_core.protocol.messages._outbox import Outgoing

    from ._transport import MessagePost, OperationHost

__all__ = ["ResponseQueue"]

# Responses that are posted at the same time. Over HTTP/1.1 each needs a connection. Few servers
# have more than one request to a client at a time, so this is a bound and no target.
_MAX_POSTS: Final = 16
# Waiting responses at which reading stops; as many as requests of a peer may wait for a handler.
_MAX_WAITING: Final = 256
# Seconds without any accepted response while that many wait. A server needs milliseconds for one,
# and here it has 16 to choose from.
_STALL_TIMEOUT: Final = 4.0


class ResponseQueue:
    """The waiting responses of one transport, and the POSTs of those that are under way.

    Call `add` for each response, and `send` after each change: it also notices POSTs that ended.

    Args:
        client: the client.
        post: queues the POST of a response. It returns None if that cannot be sent.

    Attributes:
        active: True if there is anything that `send` could change.
        paused: True if no event stream may be read at present.
        size: the bytes of the waiting responses.
    """

    __slots__ = (
        "_client",
        "_deadline_set",
        "_post",
        "_posts",
        "_waiting",
        "active",
        "paused",
        "size",
    )

    def __init__(
        self, client: OperationHost, post: Callable[[Outgoing, float], MessagePost | None]
    ) -> None:
        self._client = client
        self._post = post
        self._posts: list[MessagePost] = []
        self._waiting: deque[Outgoing] = deque()
        self._deadline_set = False
        self.active = False
        self.paused = False
        self.size = 0

    def __repr__(self) -> str:
        paused = ", paused" if self.paused else ""
        return f"<ResponseQueue: {len(self._posts)} posted, {len(self._waiting)} wait{paused}>"

    @property
    def first(self) -> Outgoing | None:
        """The response that has waited longest, None if none waits."""
        return self._waiting[0] if self._waiting else None

    def add(self, response: Outgoing) -> None:
        """Add a response. It is posted by `send`."""
        self._waiting.append(response)
        self.active = True
        self.size += len(response.data)

    def send(self, now: float, *, hold: bool = False) -> None:
        """Post the responses whose turn it is. With `hold` post none, but check the limits."""
        under_way = [post for post in self._posts if post.key]
        has_progress = len(under_way) < len(self._posts)
        self._posts = under_way
        waiting = self._waiting
        while waiting and len(under_way) < _MAX_POSTS and not hold:
            response = waiting.popleft()
            self.size -= len(response.data)
            post = self._post(response, now)
            if post is not None:
                under_way.append(post)
        is_full = len(waiting) >= _MAX_WAITING
        self.active = bool(under_way or waiting)
        # Large responses are the user's, and may take long to upload: they only stop the reading.
        self.paused = is_full or self.size > self._client.conn.config.limits.queued
        if is_full and (has_progress or not self._deadline_set):
            self._client.set_deadline(self, now + _STALL_TIMEOUT)
        elif not is_full and self._deadline_set:
            self._client.set_deadline(self, None)
        self._deadline_set = is_full

    def on_deadline(self, now: float) -> None:
        """Close the connection: the server has accepted no response for too long."""
        if any(self._client.is_authorizing(post) for post in self._posts):
            # A user is asked to log in. That isn't a delay of the server.
            self._client.set_deadline(self, now + _STALL_TIMEOUT)
            return
        problem = (
            f"{UNREAD_RESPONSES}: {len(self._waiting)} of them wait, and it accepted none for "
            f"{_STALL_TIMEOUT:g} s"
        )
        self.clear()
        for post in self._posts:
            self._client.drop(post)
        self._client.conn.close(RemoteProtocolError(problem))

    def clear(self) -> None:
        """Discard the waiting responses."""
        self._waiting.clear()
        self.size = 0
        self.paused = False
        self._deadline_set = False
        self._client.set_deadline(self, None)
