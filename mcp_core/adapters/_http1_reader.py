"""The client's side of h11, for the drivers."""

from __future__ import annotations

from typing import Final

import h11

from mcp_core.http import MAX_RESPONSE_HEAD

__all__ = ["H11ResponseReader"]

_TOO_LONG: Final = 431  # the status of h11's error for a long head
_LONG_HEAD: Final = f"the response's head has more than {MAX_RESPONSE_HEAD} bytes"
# h11's error for an incomplete line doesn't say which of the two it is.
_LONG_TRAILERS: Final = (
    f"the response's trailers or a chunk's extensions have more than {MAX_RESPONSE_HEAD} bytes"
)
_LINE_BYTES: Final = len(b": \r\n")  # of a trailer, beside its name and its value


class H11ResponseReader(h11.Connection):
    """An `h11.Connection` of a client, with a limit of 64 KiB for a response's heads and trailers.

    Each head has the limit, and all trailers together. h11's own limit is for incomplete ones only:
    what ends with the last piece may be longer by that piece. These hold however they are cut.
    """

    def __init__(self) -> None:
        super().__init__(h11.CLIENT, max_incomplete_event_size=MAX_RESPONSE_HEAD)

    def next_event(self) -> type[h11.NEED_DATA | h11.PAUSED] | h11.Event:
        """Return the next event, as `h11.Connection.next_event` does.

        Raises:
            h11.RemoteProtocolError: the server sent what isn't HTTP/1.1, or a head or trailers that
                are too long.
        """
        if self.their_state is not h11.SEND_RESPONSE:
            return self._next_of_body()
        before = len(self.trailing_data[0])
        event = self._next_within_limit(_LONG_HEAD)
        if before - len(self.trailing_data[0]) > MAX_RESPONSE_HEAD:
            raise h11.RemoteProtocolError(_LONG_HEAD, _TOO_LONG)
        return event

    def _next_of_body(self) -> type[h11.NEED_DATA | h11.PAUSED] | h11.Event:
        event = self._next_within_limit(_LONG_TRAILERS)
        if type(event) is h11.EndOfMessage and event.headers:
            size = sum(len(name) + len(value) + _LINE_BYTES for name, value in event.headers)
            if size > MAX_RESPONSE_HEAD:
                raise h11.RemoteProtocolError(_LONG_TRAILERS, _TOO_LONG)
        return event

    def _next_within_limit(self, error: str) -> type[h11.NEED_DATA | h11.PAUSED] | h11.Event:
        """Return the next event. `error` says what is incomplete and too long."""
        try:
            return super().next_event()
        except h11.RemoteProtocolError as exc:
            if exc.error_status_hint != _TOO_LONG:
                raise
            raise h11.RemoteProtocolError(error, _TOO_LONG) from None
