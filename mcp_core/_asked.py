"""Our own requests that have no response yet. `_requests.py` has those of the peer.

1. Ids are counted up and never reused, so a late response cannot match another request.
2. A request is in the table until it is answered or cancelled, or the connection ends. Input for
   other ids is ignored: it is a race that the protocol allows.
3. A request that was sent during a request of the peer (`related`) is cancelled when that one ends.

Source: basic/utilities/cancellation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mcp_core import types as t
from mcp_core.jsonrpc._codec import encode_notification
from mcp_core.messages._events import ProgressReceived, ResultReceived
from mcp_core.messages._outbox import MessageKind, Outgoing

if TYPE_CHECKING:
    from typing import Any

    from mcp_core.messages._outbox import Outbox
    from mcp_core.messages._responses import OutgoingRequest

    from .types import ProgressParams, RequestId

__all__ = ["OPENING", "STILL_THERE", "Asked"]


class _Own:
    """The token of a request that the connection sends itself. No caller gets its response."""


OPENING: Final = _Own()  # requests of the version negotiation
STILL_THERE: Final = _Own()  # the keep-alive ping


class Asked:
    """Our requests that have no response yet.

    Cancellations are queued in the outbox.

    Attributes:
        table: the requests by id.
        next_id: the id of the next request.
    """

    __slots__ = (
        "_outbox",
        "next_id",
        "table",
    )

    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox
        self.table: dict[RequestId, OutgoingRequest] = {}
        self.next_id = 1

    def add(self, call: OutgoingRequest) -> int:
        """Add a request and return its id, which was `next_id`."""
        id = self.next_id
        self.next_id = id + 1
        self.table[id] = call
        return id

    def give_up(self, id: RequestId, reason: str | None) -> None:
        """Cancel the request `id`, and notify the peer. No event follows.

        Do nothing if the request is complete. Requests of the version negotiation are not
        cancelled: a client must not cancel `initialize`.
        """
        call = self.table.get(id)
        if call is None or call.token is OPENING:
            return
        del self.table[id]
        params = call.dialect.encode(t.CancelledParams(request_id=id, reason=reason))
        data = encode_notification("notifications/cancelled", params)
        method = "notifications/cancelled"
        self._outbox.put(Outgoing(data, MessageKind.CANCEL, id, call.related, method, call.dialect))

    def give_up_for(self, parent: RequestId) -> None:
        """Cancel the requests that were sent during the request `parent` of the peer."""
        for id, call in list(self.table.items()):
            if call.related == parent and type(call.related) is type(parent):
                self.give_up(id, "the request it was made for is over")

    def progressed(self, params: ProgressParams) -> ProgressReceived | None:
        """Return the event for a progress notification.

        Return None if progress was not requested, or has not increased.
        """
        call = self.table.get(params.progress_token)
        if call is None or not call.wants_progress:
            return None
        if call.progress is not None and params.progress <= call.progress:
            return None
        call.progress = params.progress
        return ProgressReceived(
            params.progress_token, params.progress, params.total, params.message, call.token
        )

    def ended(self, id: RequestId) -> ResultReceived | None:
        """Complete the long-lived request `id`, because the peer cancelled it.

        Return its result event, or None if `id` is none of our long-lived requests.
        """
        call = self.table.get(id)
        if call is None or call.row is None or not call.row.lasting:
            return None
        del self.table[id]
        return ResultReceived(id, t.ListenResult(), call.token)

    def lose_all(self, reason: str | None) -> list[Any]:
        """Remove all requests and return the tokens of those that callers wait for.

        If `reason` is not None, also cancel them at the peer.
        """
        lost = [call.token for call in self.table.values() if not isinstance(call.token, _Own)]
        if reason is not None:
            for id in list(self.table):
                self.give_up(id, reason)
        self.table.clear()
        return lost
