"""Coming back to a stream that ended before all was said: with which id, when, and how often.

Rules of this file:

1. The server's word counts (`retry`), up to a bound. It is for the first time; after a failure our own delay counts too, which
   doubles.
2. An attempt that brings an event begins the count anew: a server may close its streams and be polled for as long as it likes. So
   does one that lasted: what stands between may end whatever is silent for too long.
3. A stream on which something may come at any time, and that was of use once, is never given up, for a server that was away may
   come back. The longest wait is no burden to it.

It does not know what the stream is for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from ._call import HttpClientOptions
    from ._sse import SseDecoder

__all__ = ["Comeback"]

_FIRST: Final = 1.0


class Comeback:
    """How to come back to one stream. `last_id` is "" as long as it gave none. `endless`: see rule 3."""

    __slots__ = ("_endless", "_options", "_retry", "_useful", "failures", "last_id")

    def __init__(self, options: HttpClientOptions, *, endless: bool = False) -> None:
        self._options = options
        self._endless = endless
        self._useful = False
        self._retry: int | None = None
        self.failures = 0
        self.last_id = ""

    def __repr__(self) -> str:
        return f"<Comeback after {self.last_id!r}, {self.failures} failures>"

    def heard(self, decoder: SseDecoder, *, event: bool) -> None:
        """The stream has said something; an `event`, or less."""
        self.last_id = decoder.last_id
        if decoder.retry is not None:
            self._retry = decoder.retry
        if event:
            self._useful = True
            self.failures = 0

    def lasted(self, seconds: float) -> None:
        """The stream has ended after so many seconds."""
        if seconds >= self._options.longest_wait:
            self._useful = True
            self.failures = 0

    def delay(self) -> float | None:
        """Seconds to wait before the next attempt, which is counted; None if there were enough."""
        options = self._options
        failures = self.failures
        longest = options.longest_wait
        if failures >= options.attempts:
            return longest if self._endless and self._useful else None
        self.failures = failures + 1
        told = None if self._retry is None else min(self._retry / 1000, longest)
        if told is not None and not failures:
            return told
        own = min(_FIRST * 2.0**failures, longest)
        if options.entropy is not None:
            own = min(own * (1 + options.entropy(1)[0] / 1020), longest)
        return own if told is None else max(told, own)
