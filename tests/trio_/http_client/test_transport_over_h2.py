"""The tests of the client over HTTP/1.1 once more, over HTTP/2, which only trio has."""

from __future__ import annotations

from typing import Any

import pytest

from tests.drivers.test_http_client import (
    test_http_client_aclose_fails_pending_calls,
    test_http_client_answers_a_server_request_during_a_call,
    test_http_client_block_exception_is_not_wrapped,
    test_http_client_call_headers_override_client_headers,
    test_http_client_cancelled_still_deletes_the_session,
    test_http_client_follows_the_redirects_of_a_mount,
    test_http_client_initialize_times_out_after_30_seconds,
    test_http_client_is_answered_in_each_revision,
    test_http_client_message_of_a_megabyte_arrives_either_way,
    test_http_client_other_server_raises_with_the_cause,
    test_http_client_progress_restarts_the_timeout,
    test_http_client_session_delete_has_a_second,
    test_http_client_slow_server_times_out,
    test_http_client_standalone_stream_reconnects_with_the_last_event_id,
    test_http_client_unreachable_later_fails_the_call_only,
)
from tests.harness import either
from tests.harness.wire.http1_server import PlayedHttpServer
from tests.harness.wire.http2_server import H2Peer

MonkeyPatch = pytest.MonkeyPatch
pytestmark = [pytest.mark.usefixtures("each_driver"), either.trio_only]

__all__ = [
    "test_http_client_aclose_fails_pending_calls",
    "test_http_client_answers_a_server_request_during_a_call",
    "test_http_client_block_exception_is_not_wrapped",
    "test_http_client_call_headers_override_client_headers",
    "test_http_client_cancelled_still_deletes_the_session",
    "test_http_client_follows_the_redirects_of_a_mount",
    "test_http_client_initialize_times_out_after_30_seconds",
    "test_http_client_is_answered_in_each_revision",
    "test_http_client_message_of_a_megabyte_arrives_either_way",
    "test_http_client_other_server_raises_with_the_cause",
    "test_http_client_progress_restarts_the_timeout",
    "test_http_client_session_delete_has_a_second",
    "test_http_client_slow_server_times_out",
    "test_http_client_standalone_stream_reconnects_with_the_last_event_id",
    "test_http_client_unreachable_later_fails_the_call_only",
]


@pytest.fixture(autouse=True)
def over_http2(monkeypatch: MonkeyPatch) -> None:
    begin = PlayedHttpServer.__init__

    def begin_h2(server: PlayedHttpServer, *args: Any, **answers: Any) -> None:
        begin(server, *args, **answers)
        server.speaks = H2Peer

    monkeypatch.setattr(PlayedHttpServer, "__init__", begin_h2)
