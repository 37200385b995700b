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
    from mcp_core.protocol.messages._outbox import Outgoing

    from ._operation import MessagePost
    from ._transport import ClientState

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

    Call `add` for each response. After each change call `discard_ended`, post each
    `next_response` and add that to `posts`, and call `check_limits`.

    Args:
        state: the client's deadlines, calls and connection.

    Attributes:
        posts: the POSTs that are under way.
        active: True if a response waits or is under way.
        paused: True if no event stream may be read at present.
        size: the waiting responses' size in bytes.
    """

    __slots__ = (
        "_deadline_set",
        "_state",
        "_waiting",
        "active",
        "paused",
        "posts",
        "size",
    )

    def __init__(self, state: ClientState) -> None:
        self._state = state
        self.posts: list[MessagePost] = []
        self._waiting: deque[Outgoing] = deque()
        self._deadline_set = False
        self.active = False
        self.paused = False
        self.size = 0

    def __repr__(self) -> str:
        paused = ", paused" if self.paused else ""
        return f"<ResponseQueue: {len(self.posts)} posted, {len(self._waiting)} wait{paused}>"

    @property
    def first(self) -> Outgoing | None:
        """The response that has waited longest, None if none waits."""
        return self._waiting[0] if self._waiting else None

    def add(self, response: Outgoing) -> None:
        """Add a response, which waits for its POST."""
        self._waiting.append(response)
        self.active = True
        self.size += len(response.data)

    def discard_ended(self) -> bool:
        """Forget POSTs that have ended. Return True if there were any."""
        under_way = [post for post in self.posts if post.key]
        ended = len(under_way) < len(self.posts)
        self.posts = under_way
        return ended

    def next_response(self) -> Outgoing | None:
        """Take the next response to post. Return None if none waits, or too many are under way."""
        if not self._waiting or len(self.posts) >= _MAX_POSTS:
            return None
        response = self._waiting.popleft()
        self.size -= len(response.data)
        return response

    def check_limits(self, now: float, *, progress: bool) -> None:
        """Pause or resume the reading. `progress` says that the server has accepted a response."""
        is_full = len(self._waiting) >= _MAX_WAITING
        self.active = bool(self.posts or self._waiting)
        # Large responses are the user's, and may take long to upload: they only stop the reading.
        self.paused = is_full or self.size > self._state.conn.config.limits.queued
        if is_full and (progress or not self._deadline_set):
            self._state.set_deadline(self, now + _STALL_TIMEOUT)
        elif not is_full and self._deadline_set:
            self._state.set_deadline(self, None)
        self._deadline_set = is_full

    def on_deadline(self, now: float) -> None:
        """Close the connection: the server has accepted no response for too long."""
        if any(self._state.is_authorizing(post) for post in self.posts):
            # A user is asked to log in. That isn't the server's delay.
            self._state.set_deadline(self, now + _STALL_TIMEOUT)
            return
        problem = (
            f"{UNREAD_RESPONSES}: {len(self._waiting)} of them wait, and it accepted none for "
            f"{_STALL_TIMEOUT:g} s"
        )
        self.clear()
        for post in self.posts:
            self._state.drop(post)
        self._state.conn.close(RemoteProtocolError(problem))

    def clear(self) -> None:
        """Discard the waiting responses."""
        self._waiting.clear()
        self.size = 0
        self.paused = False
        self._deadline_set = False
        self._state.set_deadline(self, None)
