"""How h2 is made use of, at both ends: it keeps the frames, the windows and the state of each stream.

Rules of this file:

1. What heads may say, how long a body is to be and how many streams there may be is not left to it: it knows one answer to everything,
   which is to hang up on everybody.
2. Of what the other end says of itself is kept what somebody may ask for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.settings import SettingCodes, Settings
from h2.stream import H2Stream

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Parser"]

_KNOWN: Final = frozenset(SettingCodes)


class Parser(H2Connection):
    """h2, with `settings` to be told to the other end."""

    # For frames that come late for a stream which was reset. What comes still later is answered less politely.
    MAX_CLOSED_STREAMS = 1_000

    def __init__(self, settings: Mapping[SettingCodes, int], *, is_client: bool) -> None:
        super().__init__(
            H2Configuration(
                client_side=is_client,
                header_encoding=None,
                validate_inbound_headers=False,
                normalize_inbound_headers=False,
                validate_outbound_headers=False,
                normalize_outbound_headers=False,
            )
        )
        self._asked = 0
        self.local_settings = Settings(client=is_client, initial_values=dict(settings))
        self.remote_settings = _Told(client=not is_client)

    # How many streams are open is counted by the drivers. h2 would look at all of them for each new one, and at that occasion forget
    # those that are over: which it does now and then is enough.

    @property
    def open_inbound_streams(self) -> int:
        return self._forget_some()

    @property
    def open_outbound_streams(self) -> int:
        return self._forget_some()

    def _forget_some(self) -> int:
        self._asked += 1
        if self._asked % 64 == 0:
            self._open_streams(0)
        return 0

    def _begin_new_stream(self, *args: Any) -> H2Stream:
        stream = super()._begin_new_stream(*args)
        stream.__class__ = _Stream
        return stream


class _Stream(H2Stream):
    """Whether a body is as long as it was to be is for the drivers to say, who end a stream where h2 would end the connection."""

    def _initialize_content_length(self, headers: object) -> None:
        pass

    def _track_content_length(self, length: int, end_stream: bool) -> None:
        pass


class _Told(Settings):
    """What the other end has told. Settings that nobody knows are ignored (RFC 9113 6.5.2): there are 65,536 of them."""

    def __setitem__(self, key: SettingCodes | int, value: int) -> None:
        if key in _KNOWN:
            super().__setitem__(key, value)
