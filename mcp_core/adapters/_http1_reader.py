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
        is_head = self.their_state is h11.SEND_RESPONSE
        error = _LONG_HEAD if is_head else _LONG_TRAILERS
        before = len(self.trailing_data[0]) if is_head else 0
        try:
            event = super().next_event()
        except h11.RemoteProtocolError as exc:
            if exc.error_status_hint != _TOO_LONG:
                raise
            raise h11.RemoteProtocolError(error, _TOO_LONG) from None
        size = 0
        if is_head:
            size = before - len(self.trailing_data[0])
        elif type(event) is h11.EndOfMessage and event.headers:
            size = sum(len(name) + len(value) + _LINE_BYTES for name, value in event.headers)
        if size > MAX_RESPONSE_HEAD:
            raise h11.RemoteProtocolError(error, _TOO_LONG)
        return event
