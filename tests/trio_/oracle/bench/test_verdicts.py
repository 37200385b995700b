"""Responses and events: the id of a request, and the data lines."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_trio.oracle.bench._verdicts import (
    decode_json,
    event_data,
    events,
    find_cause,
    find_response,
    has_id,
)


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


@pytest.mark.parametrize("data", [b"", b"{", b"[" * 100_000, b"\xff"])
def test_bytes_that_are_no_json_are_decoded_to_nothing(data: bytes) -> None:
    assert decode_json(data) is None


@pytest.mark.parametrize("end", [b"\n\n", b"\r\n\r\n", b"\r\r"])
def test_events_end_with_an_empty_line(end: bytes) -> None:
    """One without its end isn't complete, and one without data isn't found."""
    stream = end.join([b"data: 1", b"data: 2", b": keep alive", b"data: 3", b"data: 4"])
    assert events(stream) == [b"1", b"2", b"3"]


ANSWER = b'{"id": 7, "result": {}}'
OTHER = b'{"id": 8, "result": {}}'
REQUEST = b'{"id": 7, "method": "ping"}'


@pytest.mark.parametrize(
    ("events", "found"),
    [
        ([REQUEST, ANSWER], ANSWER),
        ([ANSWER, REQUEST], ANSWER),
        ([OTHER, ANSWER], ANSWER),
        ([ANSWER, OTHER], ANSWER),
        ([OTHER, REQUEST, b"7", b"{"], OTHER),
        ([REQUEST], None),
    ],
)
def test_response_in_a_stream_is_the_one_with_the_id_or_else_the_last(
    events: list[bytes], found: bytes | None
) -> None:
    body = b"".join(b"data: %b\n\n" % each for each in events)
    message = find_response(body, b"7", is_stream=True)
    assert message == (None if found is None else decode_json(found))
    assert find_response(body, b"7", is_stream=False) is None


@pytest.mark.parametrize(
    ("message", "cause"),
    [
        (None, "no JSON"),
        ([], "no response"),
        ({"id": 7}, "no response"),
        ({"id": 8}, "no response"),
        ({"id": 7, "result": {}}, ""),
        ({"id": 7, "result": None}, "no response"),
        ({"id": 7, "result": {}, "error": None}, ""),
        ({"id": 8, "result": {}}, "wrong id"),
        ({"id": 8, "error": {"code": -32700}}, "wrong id"),
        ({"id": None, "result": {}}, "wrong id"),
        ({"id": None, "error": {"code": -32700}}, "-32700"),
        ({"error": {"code": -32700}}, "-32700"),
        ({"id": None, "error": "x"}, "wrong id"),
        ({"id": 7, "error": {"code": -32601}}, "-32601"),
        ({"id": 7, "error": {"code": "a"}}, "no response"),
        ({"id": 7, "error": "x"}, "no response"),
        ({"id": 7, "result": {"isError": True}}, "isError"),
        ({"id": 7, "result": {"isError": 1}}, ""),
        ({"id": 7, "result": {"resultType": "complete"}}, ""),
        ({"id": 7, "result": {"resultType": "x\x1b" + "y" * 50}}, "x\\x1b" + "y" * 35),
        ({"id": 7, "error": {"code": 10**50}}, "1" + "0" * 39),
    ],
)
def test_call_without_its_result_has_a_cause(message: Any, cause: str) -> None:
    assert find_cause(message, b"7") == cause


def test_result_that_is_not_the_last_one_is_no_error_if_it_may_continue() -> None:
    message = {"id": 7, "result": {"resultType": "input_required"}}
    assert find_cause(message, b"7") == "input_required"
    assert find_cause(message, b"7", may_continue=True) == ""
