"""A token bucket, which limits the rate of calls.

It has no clock: callers pass `now`, and all callers of one bucket must use the same clock.
"""

from __future__ import annotations

from msgspec import Struct

__all__ = ["Bucket", "Rate"]


class Rate(Struct, frozen=True):
    """A rate of `per_second` on average, with up to `burst` calls at once after a pause.

    Raises:
        ValueError: `per_second` is not positive, or `burst` is below 1 and so allows no call.
    """

    per_second: float
    burst: int

    def __post_init__(self) -> None:
        if not (self.per_second > 0 and self.burst >= 1):
            raise ValueError(f"a rate has per_second above 0 and a burst of at least 1, not {self!r}")


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
        return f"<Bucket of {self._rate.per_second:g}/s, {int(self._tokens)} of {self._rate.burst} left>"

    def take(self, now: float) -> float:
        """Take one token at the time `now`, in seconds.

        Return 0.0 if there was one, else the number of seconds after which to try again.
        """
        rate = self._rate
        if self._refilled_at is not None:
            refilled = self._tokens + (now - self._refilled_at) * rate.per_second
            self._tokens = min(refilled, float(rate.burst))
        self._refilled_at = now
        if self._tokens >= 1.0:
            self._tokens -= 1.0
            return 0.0
        return (1.0 - self._tokens) / rate.per_second
