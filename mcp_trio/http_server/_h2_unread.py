"""How much of its responses the client of one HTTP/2 connection leaves unread, over all streams.

1. Above the limit long responses stay in their exchanges, and further requests aren't processed.
   They go on as soon as the client reads, responses first. After WRITE_SECONDS they get an error.
2. Responses of handlers that run by then can still add to it. Far above the limit the client has to
   read WRITE_SIZE bytes every two seconds, or errors take the place of responses.
3. The longest response doesn't count: one that is read slowly must not hold up other requests.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from ._connection import WRITE_SECONDS, WRITE_SIZE

if TYPE_CHECKING:
    from mcp_core.http import Router

    from ._h2_streams import H2ServerStream

__all__ = ["LONG", "UnreadResponses"]

# Bytes; a response of more than that is long. Shorter ones of all streams aren't much, and a
# handler that reports progress waits before it has queued as much.
LONG: Final = 256 * 1024
_OVERFLOW: Final = 4  # times the limit
_OVERFLOW_SECONDS: Final = 2.0


class UnreadResponses:
    """The unread responses of one connection, and the streams that wait because of them.

    Attributes:
        sending: bytes that were taken from exchanges and wait to be sent. The connection counts.
        sent: bytes of responses that were sent so far. The connection counts.
        requests: streams whose request waits to be processed, and until when.
        responses: streams whose response waits to be taken, and until when.
        overflow_deadline: when the client has to have read enough, `math.inf` for never.
    """

    __slots__ = (
        "_limit",
        "_long_queued",
        "_router",
        "_sent_before",
        "_streams",
        "overflow_deadline",
        "requests",
        "responses",
        "sending",
        "sent",
    )

    def __init__(self, router: Router, streams: dict[H2ServerStream, None]) -> None:
        self._router = router
        self._limit = router.unread_limit
        self._streams = streams  # those with something to send
        self._long_queued = False  # a long response was in an exchange
        self._sent_before: int  # when `overflow_deadline` was set
        self.sending = 0
        self.sent = 0
        self.requests: dict[H2ServerStream, float] = {}
        self.responses: dict[H2ServerStream, float] = {}
        self.overflow_deadline = math.inf

    def __repr__(self) -> str:
        return (
            f"<UnreadResponses: {self.sending} bytes, {len(self.requests)} requests and "
            f"{len(self.responses)} responses wait>"
        )

    # -- Whether to go on --------------------------------------------------------------------------

    def holds_request(self, stream: H2ServerStream, now: float) -> bool:
        """Return True if the request of `stream` has to wait; then it is in `requests`."""
        if not self._exceeds(1):
            return False
        self.requests.setdefault(stream, now + WRITE_SECONDS)
        return True

    def add_response(self, stream: H2ServerStream, now: float) -> None:
        """Report that the exchange of `stream` has a long response, which waits in `responses`."""
        self.responses.setdefault(stream, now + WRITE_SECONDS)
        self._long_queued = True
        if self.overflow_deadline == math.inf and self._exceeds(_OVERFLOW):
            self._watch_overflow(now)

    def holds_response(self, stream: H2ServerStream, now: float) -> bool:
        """Return True if the long response of `stream` has to wait; then it is in `responses`."""
        if stream.unsent or self._sending_exceeds():
            self.responses.setdefault(stream, now + WRITE_SECONDS)
            return True
        self.responses.pop(stream, None)
        return False

    def next_to_run(self) -> H2ServerStream | None:
        """Remove and return a stream that may go on; None while all have to wait.

        Only one: what it does may be too much for the next.
        """
        held = self.responses
        found: H2ServerStream | None = None
        if held and not self._sending_exceeds():
            # A stream that is being sent is run again by itself.
            found = next((stream for stream in held if not stream.unsent), None)
        if found is None and self.requests and not self._exceeds(1):
            held = self.requests
            found = next(iter(held))
        if found is not None:
            del held[found]
        return found

    # -- Endings -----------------------------------------------------------------------------------

    def next_deadline(self) -> float:
        """Return when to call `handle_deadline`, `math.inf` for never."""
        return min(
            next(iter(self.requests.values()), math.inf),
            next(iter(self.responses.values()), math.inf),
            self.overflow_deadline,
        )

    def handle_deadline(self, now: float) -> list[H2ServerStream]:
        """Give up what has waited too long. Return the streams that have an error to send."""
        expired = [stream for stream, deadline in self.requests.items() if deadline <= now]
        for stream in expired:
            del self.requests[stream]
            if stream.exchange is not None:
                self._router.refuse_unread(stream.exchange)
        late = [stream for stream, deadline in self.responses.items() if deadline <= now]
        expired += [self._drop(stream) for stream in late]
        if self.overflow_deadline <= now:
            self.overflow_deadline = math.inf
            reads = self.sent - self._sent_before >= WRITE_SIZE
            while not reads and self.responses and self._exceeds(_OVERFLOW):
                expired.append(self._drop(next(reversed(self.responses))))
            if self._exceeds(_OVERFLOW):
                self._watch_overflow(now)
        return expired

    def discard(self, stream: H2ServerStream) -> None:
        """Forget a stream that has ended."""
        if stream.unsent:
            self.sending -= len(stream.unsent) - stream.unsent_offset
        self.requests.pop(stream, None)
        self.responses.pop(stream, None)

    def _watch_overflow(self, now: float) -> None:
        self.overflow_deadline = now + _OVERFLOW_SECONDS
        self._sent_before = self.sent

    def _drop(self, stream: H2ServerStream) -> H2ServerStream:
        del self.responses[stream]
        if stream.exchange is not None:
            self._router.drop_responses(stream.exchange)
        return stream

    # -- How much it is ----------------------------------------------------------------------------

    def _sending_exceeds(self) -> bool:
        """Return True if too much was taken from exchanges and isn't sent."""
        sizes = [len(stream.unsent) - stream.unsent_offset for stream in self._streams]
        return sum(sorted(sizes)[:-1]) > self._limit  # without the longest

    def _exceeds(self, times: int) -> bool:
        """Return True if more than the limit is unread, `times` over, also in exchanges."""
        limit = self._limit * times
        if self.sending <= limit and not self._long_queued:
            return False  # as nearly always: short ones in exchanges don't add up to the limit
        self._long_queued = False
        total = longest = 0
        for stream in self._streams | self.responses:
            size = len(stream.unsent) - stream.unsent_offset if stream.unsent else 0
            queued = stream.exchange.queued if stream.exchange is not None else 0
            self._long_queued |= queued > LONG
            total += size + queued
            longest = max(longest, size + queued)
        return total - longest > limit
