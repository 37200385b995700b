"""Delays between reconnects, and when they stop."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mcp_core.http.client._options import HttpClientOptions
from mcp_core.http.client._reconnect import Reconnection
from mcp_core.http.wire._sse import SseDecoder

if TYPE_CHECKING:
    from collections.abc import Callable


def comeback(
    retry: int | None = None, entropy: Callable[[int], bytes] | None = None
) -> Reconnection:
    found = Reconnection(HttpClientOptions(entropy=entropy))
    decoder = SseDecoder(limit=100)
    decoder.feed(b"id: 7\n\n" if retry is None else b"retry: %d\nid: 7\n\n" % retry)
    assert decoder.next_event() is None
    found.chunk_received(decoder, event=False)
    return found


@pytest.mark.parametrize(
    ("retry", "entropy", "delays"),
    [
        (None, None, [1, 2, 4, 8, 16, None]),
        (500, None, [0.5, 2, 4, 8, 16, None]),
        (100, None, [0.1, 2, 4, 8, 16, None]),
        (99, None, [0.1, 2, 4, 8, 16, None]),
        (0, None, [0.1, 2, 4, 8, 16, None]),
        (5_000, None, [5, 5, 5, 8, 16, None]),
        (60_000, None, [30, 30, 30, 30, 30, None]),
        (None, lambda n: b"\xff" * n, [1.25, 2.5, 5, 10, 20, None]),
        (None, lambda n: b"\0" * n, [1, 2, 4, 8, 16, None]),
        (500, lambda n: b"\xff" * n, [0.5, 2.5, 5, 10, 20, None]),
    ],
)
def test_reconnect_delay_doubles_after_retry_field(
    retry: int | None, entropy: Callable[[int], bytes] | None, delays: list[float | None]
) -> None:
    found = comeback(retry, entropy)
    assert [found.next_delay() for _ in delays] == delays


def test_reconnect_delay_never_exceeds_longest_wait() -> None:
    found = Reconnection(
        HttpClientOptions(
            reconnect_attempts=7, max_reconnect_delay=5.0, entropy=lambda n: b"\xff" * n
        )
    )
    assert [found.next_delay() for _ in range(8)] == [1.25, 2.5, 5, 5, 5, 5, 5, None]


def test_reconnect_endless_and_useful_never_stops() -> None:
    for endless, useful, last in ((True, True, 30), (True, False, None), (False, True, None)):
        found = Reconnection(HttpClientOptions(), endless=endless)
        if useful:
            found.stream_ended(30.0)
        assert [found.next_delay() for _ in range(8)] == [1, 2, 4, 8, 16, last, last, last]


def test_reconnect_after_long_lived_stream_resets_count() -> None:
    found = comeback()
    assert [found.next_delay(), found.next_delay()] == [1, 2]
    found.stream_ended(29.9)
    assert found.next_delay() == 4
    found.stream_ended(30.0)
    assert found.next_delay() == 1


def test_reconnect_after_event_resets_count() -> None:
    found = comeback()
    assert found.last_id == "7"
    assert [found.next_delay(), found.next_delay()] == [1, 2]
    decoder = SseDecoder("7", limit=100)
    found.chunk_received(decoder, event=False)
    assert found.next_delay() == 4
    found.chunk_received(decoder, event=True)
    assert found.next_delay() == 1
    assert repr(found) == "<Reconnection after '7', 1 failures>"
