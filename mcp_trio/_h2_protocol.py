"""The h2 library as both client and server use it: for frames, flow control and stream states.

Heads, body lengths and the number of streams are checked elsewhere. At a violation h2 ends the
whole connection, where ending one stream is enough.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.settings import SettingCodes, Settings
from h2.stream import H2Stream

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["INITIAL_WINDOW", "H2Protocol"]

INITIAL_WINDOW: Final = 65_535  # bytes of flow control, before any SETTINGS (RFC 9113, 6.9.2)

_KNOWN_SETTINGS: Final = frozenset(SettingCodes)


class H2Protocol(H2Connection):
    """h2's connection without validation. `settings` are sent to the peer.

    `late_frames` counts the DATA and HEADERS frames that arrived on closed streams. h2 answers each
    with RST_STREAM.
    """

    # Streams that are remembered after their end, for frames that arrive late. A frame for an older
    # stream is a connection error.
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
        self.late_frames = 0
        self._count_calls = 0
        self.local_settings = Settings(client=is_client, initial_values=dict(settings))
        self.remote_settings = _RemoteSettings(client=not is_client)

    # The drivers count the open streams. h2 would visit all of them for each new stream, and delete
    # the closed ones on the way. Deleting them at every 64th call is enough.

    @property
    def open_inbound_streams(self) -> int:
        return self._sometimes_delete_closed()

    @property
    def open_outbound_streams(self) -> int:
        return self._sometimes_delete_closed()

    def _sometimes_delete_closed(self) -> int:
        self._count_calls += 1
        if self._count_calls % 64 == 0:
            self._open_streams(0)
        return 0

    def _handle_data_on_closed_stream(self, *args: Any) -> tuple[list[Any], list[Any]]:
        self.late_frames += 1
        return super()._handle_data_on_closed_stream(*args)

    def _stream_is_closed_by_reset(self, stream_id: int) -> bool:
        self.late_frames += 1  # h2 asks this when HEADERS arrive on a closed stream
        return super()._stream_is_closed_by_reset(stream_id)

    def _begin_new_stream(self, *args: Any) -> H2Stream:
        stream = super()._begin_new_stream(*args)
        stream.__class__ = _LenientH2Stream
        return stream


class _LenientH2Stream(H2Stream):
    """h2's stream without its check of Content-Length.

    The drivers check it, and end the stream where h2 would end the connection.
    """

    def _initialize_content_length(self, headers: object) -> None:
        pass

    def _track_content_length(self, length: int, end_stream: bool) -> None:
        pass


class _RemoteSettings(Settings):
    """The peer's settings. Unknown ones aren't stored: a peer could send 65,536 of them.

    RFC 9113 6.5.2 requires that they be ignored.
    """

    def __setitem__(self, key: SettingCodes | int, value: int) -> None:
        if key in _KNOWN_SETTINGS:
            super().__setitem__(key, value)
