"""When to reconnect to an event stream that has ended, with which event id, and how often.

1. The server's `retry` is the delay of the first attempt, from 0.1 s to `max_reconnect_delay`.
   After a failed attempt our own delay is the minimum. It doubles each time.
2. An attempt that brings an event, or that stays open for `max_reconnect_delay`, resets the count.
   A server may end its streams and be polled, and intermediaries end streams on which nothing is
   sent.
3. An endless stream that was useful once is reconnected forever, because the server may return.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from mcp_core.http.wire._sse import SseDecoder

    from ._options import HttpClientOptions

__all__ = ["Reconnection"]

_FIRST_DELAY: Final = 1.0  # seconds
# Seconds, even if the server wants less. A server that ends each stream after an event would keep
# its client busy otherwise.
_MIN_DELAY: Final = 0.1


class Reconnection:
    """The reconnects of one stream.

    Call `chunk_received` for each chunk, `stream_ended` at the end of the stream, then
    `next_delay`. `last_id` is the id for `Last-Event-ID`, "" without one; `failures` counts
    attempts in a row that brought nothing.

    Args:
        options: the number of attempts, the longest delay, and the source of jitter.
        endless: whether rule 3 applies, as it does to the standalone stream of a session.
    """

    __slots__ = ("_endless", "_options", "_retry", "_was_useful", "failures", "last_id")

    def __init__(self, options: HttpClientOptions, *, endless: bool = False) -> None:
        self._options = options
        self._endless = endless
        self._was_useful = False
        self._retry: int | None = None  # milliseconds
        self.failures = 0
        self.last_id = ""

    def __repr__(self) -> str:
        return f"<Reconnection after {self.last_id!r}, {self.failures} failures>"

    def chunk_received(self, decoder: SseDecoder, *, event: bool) -> None:
        """Take id and `retry` from the decoder, after each chunk.

        `event` is True if the chunk has completed an event.
        """
        self.last_id = decoder.last_id
        if decoder.retry is not None:
            self._retry = decoder.retry
        if event:
            self._reset()

    def stream_ended(self, seconds: float) -> None:
        """Process the end of a stream that was open for so many seconds."""
        if seconds >= self._options.max_reconnect_delay:
            self._reset()

    def next_delay(self) -> float | None:
        """Count an attempt, and return the seconds to wait before it; None if there were enough."""
        options = self._options
        failures = self.failures
        longest = options.max_reconnect_delay
        if failures >= options.reconnect_attempts:
            return longest if self._endless and self._was_useful else None
        self.failures = failures + 1
        server_delay = (
            None if self._retry is None else min(max(self._retry / 1000, _MIN_DELAY), longest)
        )
        if server_delay is not None and not failures:
            return server_delay
        own_delay = min(_FIRST_DELAY * 2.0**failures, longest)
        if options.entropy is not None:
            # Jitter of up to a quarter: 255 / 1020.
            own_delay = min(own_delay * (1 + options.entropy(1)[0] / 1020), longest)
        return own_delay if server_delay is None else max(server_delay, own_delay)

    def _reset(self) -> None:
        self._was_useful = True
        self.failures = 0
