"""The client's side of h11, for the drivers."""

from __future__ import annotations

from typing import Final

import h11

from mcp_core.http import MAX_RESPONSE_HEAD

__all__ = ["H11ResponseReader"]

_TOO_LONG: Final = 431  # the status of h11's error for a long head
_LONG_HEAD: Final = f"the response's head has more than {MAX_RESPONSE_HEAD} bytes"


class H11ResponseReader(h11.Connection):
    """An `h11.Connection` of a client, with a limit of 64 KiB for each head of a response.

    h11's own limit is for incomplete heads only: a head whose end comes with the last piece may
    have any size. This one holds however the head is cut.
    """

    def __init__(self) -> None:
        super().__init__(h11.CLIENT, max_incomplete_event_size=MAX_RESPONSE_HEAD)

    def next_event(self) -> type[h11.NEED_DATA | h11.PAUSED] | h11.Event:
        """Return the next event, as `h11.Connection.next_event` does.

        Raises:
            h11.RemoteProtocolError: the server sent what isn't HTTP/1.1, or a head that is too
                long.
        """
        if self.their_state is not h11.SEND_RESPONSE:
            return super().next_event()
        before = len(self.trailing_data[0])
        try:
            event = super().next_event()
        except h11.RemoteProtocolError as exc:
            if exc.error_status_hint != _TOO_LONG:
                raise
            raise h11.RemoteProtocolError(_LONG_HEAD, _TOO_LONG) from None
        if before - len(self.trailing_data[0]) > MAX_RESPONSE_HEAD:
            raise h11.RemoteProtocolError(_LONG_HEAD, _TOO_LONG)
        return event
