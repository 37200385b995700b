"""Responses and events: the id of a request, and the data lines."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_trio.oracle.bench._verdicts import event_data, has_id


@pytest.mark.parametrize(
    ("message", "found"),
    [
        ({"jsonrpc": "2.0", "id": 7, "result": {}}, True),
        ({"jsonrpc": "2.0", "id": 7, "error": {"code": 1, "message": ""}}, True),
        ({"jsonrpc": "2.0", "id": 8, "result": {}}, False),
        ({"jsonrpc": "2.0", "id": 7, "method": "ping"}, False),
        ({"jsonrpc": "2.0", "id": "7", "result": {}}, False),
        ([{"jsonrpc": "2.0", "id": 7, "result": {}}], False),
        (None, False),
    ],
)
def test_only_a_response_with_its_id_is_the_one_to_a_request(message: Any, found: bool) -> None:
    assert has_id(message, b"7") is found


@pytest.mark.parametrize(
    ("event", "data"),
    [
        (b'event: message\nid: 4\ndata: {"a": 1}\n\n', b'{"a": 1}'),
        (b"data:{\r\ndata: }\r\nretry: 10\r\n\r\n", b"{\n}"),
        (b"data:  two spaces\n\n", b" two spaces"),
        (b": keep alive\n\n", b""),
    ],
)
def test_data_of_an_event_is_that_of_its_data_lines(event: bytes, data: bytes) -> None:
    assert event_data(event) == data
