"""Limits on what one peer can use, and a token bucket, which limits the rate of its calls.

1. Everything that a peer can make grow has a limit in `Limits`. Every default has its reason above
   it.
2. A `Bucket` has no clock: callers pass `now`, and all callers of one bucket must use the same
   clock. A time before the last one counts as the last one.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from msgspec import Struct
from msgspec.structs import force_setattr

__all__ = [
    "CLIENT_LIMITS",
    "Bucket",
    "Buckets",
    "Limits",
    "Rate",
]


class Rate(Struct, frozen=True):
    """A rate of `per_second` on average, with up to `burst` calls at once after a pause.

    Raises:
        ValueError: `per_second` isn't positive, or `burst` is below 1 and so allows no call.
    """

    per_second: float
    burst: int

    def __post_init__(self) -> None:
        if not (self.per_second > 0 and self.burst >= 1):
            raise ValueError(
                f"a rate has per_second above 0 and a burst of at least 1, not {self!r}"
            )


class Bucket:
    """The tokens that are left of a `Rate`. A new bucket is full."""

    __slots__ = (
        "_rate",
        "_refilled_at",
        "_tokens",
    )

    def __init__(self, rate: Rate) -> None:
        self._rate = rate
        self._tokens = float(rate.burst)
        self._refilled_at: float | None = None  # None until the first call

    def __repr__(self) -> str:
        rate = self._rate
        return f"<Bucket of {rate.per_second:g}/s, {int(self._tokens)} of {rate.burst} left>"

    def restart(self, now: float) -> None:
        """Count from the time `now` on, also if it is before the last call."""
        self._refilled_at = now

    def take(self, now: float) -> float:
        """Take one token at the time `now`, in seconds.

        Return 0.0 if there was one, else the number of seconds after which to try again.
        """
        rate = self._rate
        if self._refilled_at is None:
            self._refilled_at = now
        elif now > self._refilled_at:
            refilled = self._tokens + (now - self._refilled_at) * rate.per_second
            self._tokens = min(refilled, float(rate.burst))
            self._refilled_at = now  # it never goes back: that would refill the same time again
        if self._tokens >= 1.0:
            self._tokens -= 1.0
            return 0.0
        return (1.0 - self._tokens) / rate.per_second


# Keys for which a bucket is kept. Beyond that the one whose last call is oldest is forgotten.
_MOST_BUCKETS: Final = 10_000


class Buckets:
    """The buckets of one `rate`, by key: a name for who calls."""

    __slots__ = ("_buckets", "_rate")

    def __init__(self, rate: Rate) -> None:
        self._rate = rate
        self._buckets: OrderedDict[str, Bucket] = OrderedDict()

    def __repr__(self) -> str:
        return f"<Buckets of {len(self._buckets)} keys>"

    def get(self, key: str) -> Bucket:
        """Return the bucket of `key`."""
        bucket = self._buckets.get(key)
        if bucket is None:
            bucket = self._buckets[key] = Bucket(self._rate)
            if len(self._buckets) > _MOST_BUCKETS:
                self._buckets.popitem(last=False)
        self._buckets.move_to_end(key)
        return bucket


class Limits(Struct, frozen=True, kw_only=True):
    """Upper bounds on what one peer can use. Sizes are in bytes, times in seconds."""

    # A message. The limit of larger MCP implementations for a request body; larger tool arguments
    # are usually files.
    message: int = 4 * 1024 * 1024
    # Memory for a message's values when decoded, beside their own bytes: estimated as 80 for
    # each array and object, 32 for each comma and colon, and 16 for each quotation mark. 0 for ten
    # times `message`, and at least 1 MiB: short records take less, and so do a million numbers, but
    # `[[],[],...]` takes four times as much. Long texts and blobs take nothing.
    decoded: int = 0
    # A request's id, which is stored while the request runs. Enough for a UUID or a hash with
    # a prefix.
    id: int = 256
    # A method's name. Four times the longest one in the specification.
    method: int = 256
    # Messages in a batch. 2025-03-26 sets no bound. The work of a batch arrives at once, so this is
    # less than `in_flight`.
    batch: int = 100
    # The peer's requests whose handlers run at the same time. More than clients need, and few
    # enough to bound handlers' memory.
    in_flight: int = 256
    # The peer's requests that were read and wait for a handler. When they are this many, the server
    # stops reading. As many as may run.
    waiting: int = 256
    # Bytes of queued responses. Above it a server stops reading requests from the peer. A client
    # closes the connection if they are many responses, or more than `message`; over HTTP it stops
    # reading event streams.
    queued: int = 1024 * 1024
    # How long reading may stop because of `waiting`. Then reading resumes and new requests are
    # rejected as busy, because a cancellation that frees a place may be behind them.
    pause: float = 5.0
    # Tool calls and completions. A model makes a few per second, a program a few hundred; a higher
    # rate over a long time is a runaway loop. None for no limit.
    tool_calls: Rate | None = Rate(per_second=1_000, burst=10_000)
    # Characters of a URI that is subscribed to. As long as the longest header that HTTP servers
    # commonly accept, because over HTTP the URI is in a header.
    uri: int = 8 * 1024
    # URIs that one peer subscribes to, in total. With `uri` this bounds them to 8 MiB.
    uris: int = 1024
    # Tasks that one peer subscribes to, in total, and tasks whose states wait in a session of
    # 2025-11-25. More than a server keeps for one user; each that is named has to be looked up.
    task_ids: int = 1024
    # Open `subscriptions/listen` requests of one connection. A client needs one, a gateway one per
    # user.
    listens: int = 64
    # Memory for all pages of one listing at a client, estimated. Enough for 20,000 tools or 190,000
    # resources with texts of usual length: more than a model or a user looks through.
    listing: int = 48 * 1024 * 1024

    def __post_init__(self) -> None:
        if not self.decoded:
            force_setattr(self, "decoded", max(10 * self.message, 1024 * 1024))


# A client chooses its servers, and a large resource is legitimate: eight times the limit of a
# server. No request waits: 256 questions are more than a user or a model can be asked at a time.
CLIENT_LIMITS: Final = Limits(message=32 * 1024 * 1024, waiting=0)
