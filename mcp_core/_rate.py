"""How often something may happen: a token bucket.

Rule of this file: it has no clock. Whoever asks says what time it is, and one bucket is asked in one and the same time.
"""

from __future__ import annotations

from msgspec import Struct

__all__ = ["Bucket", "Rate"]


class Rate(Struct, frozen=True):
    """`per_second` in the long run, and up to `burst` at once after a rest.

    Raises:
        ValueError: one of them is not positive, or `burst` is below 1, which would allow nothing ever.
    """

    per_second: float
    burst: int

    def __post_init__(self) -> None:
        if not (self.per_second > 0 and self.burst >= 1):
            raise ValueError(f"a rate is positive and lets at least one through, not {self!r}")


class Bucket:
    """Counts what happens against a `Rate`. It is full at first."""

    __slots__ = ("_filled_at", "_rate", "_tokens")

    def __init__(self, rate: Rate) -> None:
        self._rate = rate
        self._tokens = float(rate.burst)
        self._filled_at: float | None = None

    def __repr__(self) -> str:
        return f"<Bucket of {self._rate.per_second:g}/s, {int(self._tokens)} of {self._rate.burst} left>"

    def take(self, now: float) -> float:
        """Let one through at the time `now` (seconds): 0.0 if it may pass, else the seconds after which the next one may."""
        rate = self._rate
        if self._filled_at is not None:
            grown = self._tokens + (now - self._filled_at) * rate.per_second
            self._tokens = min(grown, float(rate.burst))
        self._filled_at = now
        if self._tokens >= 1.0:
            self._tokens -= 1.0
            return 0.0
        return (1.0 - self._tokens) / rate.per_second
