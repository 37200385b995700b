"""h2 as both ends use it: what it stores of the peer, and what it leaves to the drivers."""

from __future__ import annotations

import h2.events
import pytest

from mcp_core.http.wire._http2_frames import PREFACE
from mcp_trio._h2_protocol import H2Protocol
from tests.harness.wire.http2_frames import (
    DATA,
    END_STREAM,
    HELLO,
    RST_STREAM,
    SETTINGS,
    frame,
    number,
    post,
    setting,
)
from tests.levels import long


def parser(*, is_client: bool) -> H2Protocol:
    found = H2Protocol({}, is_client=is_client)
    found.initiate_connection()
    return found


@pytest.mark.parametrize("is_client", [True, False])
@pytest.mark.parametrize("last", [2**13, long(2**16)])
def test_h2_protocol_unknown_settings_are_not_stored(is_client: bool, last: int) -> None:
    ours = parser(is_client=is_client)
    ours.receive_data(b"" if is_client else PREFACE)
    for first in range(0, last, 32):
        settings = [setting(key, 7) for key in range(first, first + 32) if key > 8]
        ours.receive_data(frame(SETTINGS, 0, 0, b"".join(settings)))
        ours.clear_outbound_data_buffer()
    assert len(ours.remote_settings) <= 8
    ours.receive_data(frame(SETTINGS, 0, 0, setting(3, 17) + setting(4, 5)))
    assert ours.remote_settings.max_concurrent_streams == 17
    assert ours.remote_settings.initial_window_size == 5


def test_h2_protocol_does_not_check_body_length() -> None:
    ours = parser(is_client=False)
    frames = (
        post(1, b"/", (b"content-length", b"3"))
        + frame(DATA, 0, 1, bytes(5))
        + frame(DATA, END_STREAM, 1)
    )
    events = ours.receive_data(HELLO + frames)
    assert h2.events.StreamEnded in map(type, events)


def test_h2_protocol_closed_streams_are_deleted_and_not_counted() -> None:
    ours = parser(is_client=False)
    ours.receive_data(HELLO)
    for id in range(1, 4_001, 2):
        ours.receive_data(post(id) + frame(RST_STREAM, 0, id, number(8)))
        ours.clear_outbound_data_buffer()
        assert len(ours.streams) <= 64
    assert len(ours._closed_streams) <= 1_000
    for id in range(4_001, 5_001, 2):
        ours.receive_data(post(id))
    assert ours.open_inbound_streams == ours.open_outbound_streams == 0
    assert len(ours.streams) >= 500
