"""Our own requests that have no answer yet: the counterpart of `_requests.py`, which has the peer's.

Rules of this file:

1. Ids are counted up and never used twice, so that a late answer cannot be taken for another's.
2. A request is in the table until it is answered, given up or lost. Whatever comes for an id that is not there is one of the
   races that the protocol allows, and means nothing.
3. A request that was made for a request of the peer's (`related`) lives no longer than that one.
4. Who gives a request up tells the peer, and nothing comes of it any more (basic/utilities/cancellation).

It refuses to know how requests are written and what their answers mean.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from . import types as t
from ._events import ProgressReceived, ResultReceived
from ._jsonrpc import encode_notification
from ._outbox import Kind, Outgoing

if TYPE_CHECKING:
    from typing import Any

    from ._answers import Call
    from ._outbox import Outbox
    from .types import ProgressParams, RequestId

__all__ = ["OPENING", "STILL_THERE", "Asked"]


class _Own:
    """The token of a request that the connection makes by itself: nobody outside waits for it."""


OPENING: Final = _Own()
STILL_THERE: Final = _Own()  # asks a silent peer for a sign of life


class Asked:
    """Our requests by id in `table`; the next one will be `next_id`. What is given up is told through `out`."""

    __slots__ = ("_out", "next_id", "table")

    def __init__(self, out: Outbox) -> None:
        self._out = out
        self.table: dict[RequestId, Call] = {}
        self.next_id = 1

    def add(self, call: Call) -> int:
        """Put `call` into the table; gives its id, which was `next_id`."""
        id = self.next_id
        self.next_id = id + 1
        self.table[id] = call
        return id

    def give_up(self, id: RequestId, reason: str | None) -> None:
        """Give up the request `id`, unless it is over, or one of the opening's, which are not cancelled."""
        call = self.table.get(id)
        if call is None or call.token is OPENING:
            return
        del self.table[id]
        params = call.dialect.encode(t.CancelledParams(request_id=id, reason=reason))
        data = encode_notification("notifications/cancelled", params)
        method = "notifications/cancelled"
        self._out.put(Outgoing(data, Kind.CANCEL, id, call.related, method, call.dialect))

    def give_up_for(self, parent: RequestId) -> None:
        """Give up what was asked for the sake of the peer's request `parent`."""
        for id, call in list(self.table.items()):
            if call.related == parent and type(call.related) is type(parent):
                self.give_up(id, "the request it was made for is over")

    def progressed(self, params: ProgressParams) -> ProgressReceived | None:
        """What a progress notification means; None if nobody asked for it, or it has not grown."""
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
        """The peer ended the request `id` without answering it, which it may do if that one lasts."""
        call = self.table.get(id)
        if call is None or call.row is None or not call.row.lasting:
            return None
        del self.table[id]
        return ResultReceived(id, t.ListenResult(), call.token)

    def lose_all(self, reason: str | None) -> list[Any]:
        """Forget everything; gives the tokens of who waits. With a `reason` the peer is told it."""
        lost = [call.token for call in self.table.values() if not isinstance(call.token, _Own)]
        if reason is not None:
            for id in list(self.table):
                self.give_up(id, reason)
        self.table.clear()
        return lost
