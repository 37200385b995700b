"""Both sides' requests in a conversation: open, answered, cancelled, and their ids."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from mcp_core.trace._ids import UsedIds, id_key
from mcp_core.trace._members import META
from mcp_core.trace.judge._sides import CLIENT, SERVER, other_side

from ._bounds import MAX_ENTRIES, put

if TYPE_CHECKING:
    from mcp_core.trace.judge._message import SeenMessage, SeenRequest
    from mcp_core.trace.judge._sides import Side

__all__ = ["Requests"]

MAX_OPEN: Final = 10_000  # requests without a response, of one side
MAX_ANSWERED: Final = 1_000  # responses that are remembered in full
MAX_EARLIER: Final = 100  # open requests with one id


class Requests:
    """A conversation's requests.

    Attributes:
        open: the requests of each side that have no response, by id.
        answered: the last answered requests of each side, by id.
        dropped: the client's last requests that got only an HTTP status, by id.
        used: all request ids of each side.
        tokens: the requests of each side by progress token, open or not; `has_all_tokens` is False
            if some are missing.
        has_read: the line up to which each side has certainly read what the other sent.
    """

    def __init__(self) -> None:
        self.open: dict[Side, OrderedDict[int | str, SeenRequest]] = {
            CLIENT: OrderedDict(),
            SERVER: OrderedDict(),
        }
        self.answered: dict[Side, OrderedDict[int | str, SeenRequest]] = {
            CLIENT: OrderedDict(),
            SERVER: OrderedDict(),
        }
        self.dropped: OrderedDict[int | str, SeenRequest] = OrderedDict()
        self.used: dict[Side, UsedIds] = {CLIENT: UsedIds(), SERVER: UsedIds()}
        self.tokens: dict[Side, OrderedDict[int | str, SeenRequest]] = {
            CLIENT: OrderedDict(),
            SERVER: OrderedDict(),
        }
        self.has_all_tokens = True
        self.has_read: dict[Side, int] = {CLIENT: 0, SERVER: 0}

    def next_session(self) -> Requests:
        """Return the requests for the client's next session, which replaces this one."""
        following = Requests()
        # The former session's responses can still be on their way.
        following.open, following.tokens = self.open, self.tokens
        return following

    def find(self, side: Side, key: int | str) -> SeenRequest | None:
        """Return a request of `side` that is open or was answered recently, or None."""
        return self.open[side].get(key) or self.answered[side].get(key)

    def answered_by(self, message: SeenMessage) -> SeenRequest | None:
        """Return the open request that a response answers, or None if there isn't one."""
        key = id_key(message.id)
        return None if key is None else self.open[other_side(message.sender)].get(key)

    def reported_by(self, message: SeenMessage) -> SeenRequest | None:
        """Return the request whose progress a notification reports, or None if unknown."""
        key = id_key(message.params.get("progressToken"))
        return None if key is None else self.tokens[other_side(message.sender)].get(key)

    def add(self, request: SeenRequest, key: int | str) -> str:
        """Add a request under its id's key. Return why others are forgotten, "" if none are."""
        gap = ""
        open_requests = self.open[request.sender]
        request.earlier = open_requests.get(key)
        if request.earlier is not None:
            request.count = request.earlier.count + 1
            if request.count > MAX_EARLIER:
                request.earlier.earlier = None
                request.count = 2
                gap = "there are too many open requests with one id to remember"
        self.used[request.sender].add(key)
        open_requests[key] = request
        if len(open_requests) > MAX_OPEN:
            open_requests.popitem(last=False)
            gap = gap or "there are too many open requests to remember"
        if request.token is not None:
            tokens = self.tokens[request.sender]
            same = tokens.get(request.token)
            # If the other request was cancelled, its progress can still be on its way.
            request.shares_token = same is not None and not same.answered
            put(tokens, request.token, request, MAX_ENTRIES)
            self.has_all_tokens = self.has_all_tokens and len(tokens) < MAX_ENTRIES
        return gap

    def answer(self, message: SeenMessage, request: SeenRequest) -> bool:
        """Record a response. Return False if it can be for an earlier request with the id."""
        key = id_key(message.id)
        assert key is not None
        open_requests = self.open[request.sender]
        if request.earlier is not None:
            open_requests[key] = request.earlier
            return False
        del open_requests[key]
        request.answered = message.line
        request.answer_exchange = message.exchange
        request.is_error = message.result is None
        put(self.answered[request.sender], key, request, MAX_ANSWERED)
        return True

    def read_up_to(self, request: SeenRequest) -> None:
        """Record that a request's receiver has read it, and everything sent before it."""
        reader = other_side(request.sender)
        self.has_read[reader] = max(self.has_read[reader], request.line)

    def drop(self, message: SeenMessage) -> None:
        """Forget a client's request that got only an HTTP status. The client can resend it."""
        key = id_key(message.id)
        request = None if key is None else self.open[message.sender].get(key)
        if key is None or request is None or request.line != message.line:
            return
        del self.open[message.sender][key]
        put(self.dropped, key, request, MAX_ANSWERED)
        if request.earlier is not None:
            self.open[message.sender][key] = request.earlier

    def report_progress(self, message: SeenMessage) -> None:
        """Record a progress notification."""
        request, value = self.reported_by(message), message.params.get("progress")
        if request is not None and isinstance(value, int | float):
            request.progress, request.progress_line = value, message.line
            request.progress_exchange = message.exchange

    def cancel(self, message: SeenMessage) -> None:
        """Record a cancellation."""
        key = id_key(message.params.get("requestId"))
        if key is None:
            return
        request = self.open[message.sender].get(key)
        if request is None and message.sender == SERVER:
            # A server can end its client's subscription with the same notification (2026-07-28).
            request = self.open[CLIENT].get(key)
            if request is not None and request.method != "subscriptions/listen":
                request = None
        if request is not None and not request.cancelled:
            request.cancelled = message.line

    def acknowledge(self, message: SeenMessage) -> None:
        """Record that a server has begun a subscription."""
        key = id_key(message.meta.get(META + "subscriptionId"))
        request = None if key is None else self.open[CLIENT].get(key)
        if request is not None and not request.acknowledged:
            request.acknowledged = message.line
