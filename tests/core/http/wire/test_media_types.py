"""Media types: `Content-Type` and `Accept`."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_core.http.wire._media_types import (
    EVENT_STREAM,
    JSON,
    accepts,
    is_event_stream,
    is_json,
    media_type,
)


def short(value: object) -> str:
    return repr(value)[:60]


# Content-Type, whether it is JSON
TYPES: list[tuple[bytes | None, bool]] = [
    (b"application/json", True),
    (b"Application/JSON", True),
    (b"application/json;charset=utf-8", True),
    (b"application/json; charset=utf-8", True),
    (b"application/json ; charset=UTF-8 ", True),
    (b"application/json\t;\tcharset=UTF-8", True),
    (b'application/json; charset="utf-8"', True),
    (b'application/json; CHARSET="Utf\\-8"', True),
    (b"application/json;", True),
    (b"application/json; ;charset=utf-8;", True),
    (b"application/json; version=1", True),
    (b'application/json; a="b;c,d\\"e"; charset=utf-8', True),
    (b'application/json; a=""', True),
    (b'application/json; a="\xff\t"', True),
    (b" application/json ", True),
    (None, False),
    (b"", False),
    (b" ", False),
    (b";", False),
    (b"json", False),
    (b"application", False),
    (b"application/", False),
    (b"/json", False),
    (b"*/*", False),
    (b"application/*", False),
    (b"text/json", False),
    (b"text/plain", False),
    (b"text/plain; charset=utf-8", False),
    (b"text/plain;application/json", False),
    (b"text/plain; a=application/json", False),
    (b"text/plain, application/json", False),
    (b"application/json, text/plain", False),
    (b"application/json,application/json", False),
    (b"application/json,", False),
    (b",application/json", False),
    (b"application/json text/plain", False),
    (b"application/x-www-form-urlencoded", False),
    (b"multipart/form-data; boundary=application/json", False),
    (b"application/jsonx", False),
    (b"xapplication/json", False),
    (b"application/jso", False),
    (b"application/json5", False),
    (b"application/json-rpc", False),
    (b"application/jsonrequest", False),
    (b"application/x-json", False),
    (b"application/ld+json", False),
    (b"application/problem+json", False),
    (b"application/vnd.api+json", False),
    (b"application/json+x", False),
    (b"application/json/", False),
    (b"application/json/x", False),
    (b"application//json", False),
    (b"application /json", False),
    (b"application/ json", False),
    (b"application\\json", False),
    (b'"application/json"', False),
    (b"application/json\0", False),
    (b"application/json\n", False),
    (b"application/json\x0b", False),
    (b"application/json\xa0", False),
    (b"application/j\xc5\xbfon", False),
    (b"application/json; charset=utf-16", False),
    (b"application/json; charset=utf-7", False),
    (b"application/json; charset=latin-1", False),
    (b"application/json; charset=utf8", False),
    (b"application/json; charset=", False),
    (b'application/json; charset=""', False),
    (b"application/json; charset=utf-8x", False),
    (b"application/json; charset=utf-8 x", False),
    (b"application/json; charset=utf-8; charset=utf-8", False),
    (b"application/json; charset=utf-8; charset=utf-16", False),
    (b"application/json; charset=utf-16; charset=utf-8", False),
    (b"application/json; charset", False),
    (b"application/json; charset = utf-8", False),
    (b"application/json; charset: utf-8", False),
    (b"application/json charset=utf-8", False),
    (b"application/json; charset='utf-8'", False),
    (b'application/json; charset="utf-8', False),
    (b'application/json; charset=utf-8"', False),
    (b'application/json; charset="utf-8\\"', False),
    (b'application/json; charset="utf-8"x', False),
    (b'application/json; a="\x01"', False),
    (b"application/json; =b", False),
    (b"application/json; a b", False),
    (b"application/json; a=b, text/plain", False),
    (b"application/json" + b";" * 2000, False),
    (b"application/json; a=" + b"a" * 2000, False),
    (b'application/json; a="' + b"\\a" * 400, False),
]


def test_is_json_accepts_exact_type_only() -> None:
    for value, json in TYPES:
        assert [is_json(value), is_json(value)] == [json, json], value


@pytest.mark.parametrize(
    ("value", "type"),
    [
        (b"text/event-stream", b"text/event-stream"),
        (b"Text/Event-Stream; charset=latin-1", b"text/event-stream"),
        (b"application/json; charset=utf-16", b"application/json"),
        (b"text/html;", b"text/html"),
        (b"text/event-streams", b"text/event-streams"),
        (b"text/event-stream, text/html", None),
        (b"text/event-stream x", None),
        (b"text/event-stream; x", None),
        (b"text", None),
        (b"", None),
        (b"text/event-stream" + b" " * 2000, None),
        (None, None),
    ],
)
def test_media_type_drops_parameters(value: bytes | None, type: bytes | None) -> None:
    assert media_type(value) == type
    assert is_event_stream(value) == (type == EVENT_STREAM)


# Accept, whether it allows JSON, whether it allows an event stream
ACCEPTED: list[tuple[bytes | None, bool, bool]] = [
    (None, True, True),
    (b"application/json, text/event-stream", True, True),
    (b"text/event-stream, application/json", True, True),
    (b"application/json,text/event-stream", True, True),
    (b"Application/JSON, TEXT/event-stream", True, True),
    (b" application/json\t,\ttext/event-stream ", True, True),
    (b"*/*", True, True),
    (b"*/*;q=0.1", True, True),
    (b"application/json", True, False),
    (b"text/event-stream", False, True),
    (b"application/*", True, False),
    (b"text/*", False, True),
    (b"application/*, text/*", True, True),
    (b"application/json, */*", True, True),
    (b"application/json, */*;q=0.8", True, True),
    (b"text/html, application/xhtml+xml, application/xml;q=0.9, image/avif, */*;q=0.8", True, True),
    (b"text/html, application/xml", False, False),
    (b"text/html", False, False),
    (b"", False, False),
    (b" ", False, False),
    (b",", False, False),
    (b",,application/json,,", True, False),
    (b"*", False, False),
    (b"*/json", False, False),
    (b"application", False, False),
    (b"application/jsonx, text/event-streams", False, False),
    (b"xapplication/json", False, False),
    (b"application/json text/event-stream", False, False),
    (b"application/json; text/event-stream", False, False),
    (b"application/json;text/event-stream, text/event-stream", False, True),
    # Weights: only zero makes a difference.
    (b"application/json;q=1, text/event-stream;q=1.000", True, True),
    (b"application/json;q=0.001, text/event-stream;Q=0.5", True, True),
    (b"application/json ; q=0.9 , text/event-stream", True, True),
    (b"application/json;q=0, text/event-stream", False, True),
    (b"application/json, text/event-stream;q=0", True, False),
    (b"application/json, text/event-stream;q=0.0", True, False),
    (b"application/json, text/event-stream;q=0.000", True, False),
    (b"application/json, text/event-stream;q=0.", True, False),
    (b"*/*;q=0", False, False),
    (b"*/*, application/json;q=0", False, True),
    (b"application/json;q=0, */*", False, True),
    (b"text/*;q=0, */*", True, False),
    (b"*/*, text/*;q=0", True, False),
    (b"text/*;q=0, text/event-stream, */*", True, True),
    (b"*/*;q=0, application/json, text/event-stream", True, True),
    (b"*/*;q=0, application/*", True, False),
    (b"application/*;q=0, application/json;q=0.1", True, False),
    # The same range twice: one weight above zero is enough.
    (b"application/json;q=0, application/json", True, False),
    (b"application/json, application/json;q=0", True, False),
    # An invalid weight makes the range malformed.
    (b"application/json;q=2, text/event-stream", False, True),
    (b"application/json;q=1.001, text/event-stream", False, True),
    (b"application/json;q=0.0001, text/event-stream", False, True),
    (b"application/json;q=-1, text/event-stream", False, True),
    (b"application/json;q=, text/event-stream", False, True),
    (b"application/json;q, text/event-stream", False, True),
    (b"application/json;q=a, text/event-stream", False, True),
    (b"application/json;q= 1, text/event-stream", False, True),
    (b"application/json;q =1, text/event-stream", False, True),
    # Parameters of a range are ignored, and commas in quotes separate nothing.
    (b"application/json;charset=utf-8, text/event-stream", True, True),
    (b"application/json; version=2; q=0.5, text/event-stream", True, True),
    (b"application/json;q=0.5;ext=1, text/event-stream", True, True),
    (b'application/json;a="b, text/event-stream"', True, False),
    (b'application/json;a="b\\", text/event-stream"', True, False),
    (b'text/html;a="b,c";q=0, application/json', True, False),
    (b'text/html;a="b, application/json', False, False),
    (b'text/html;a="b\\, application/json, text/event-stream', False, False),
    (b'text/html;a="b\\', False, False),
    (b'"application/json", text/event-stream', False, True),
    (b"application/json\0, text/event-stream", False, True),
    (b"application/json\xa0, text/event-stream", False, True),
    # Over the maximum length.
    (b"application/json, text/event-stream, " + b"a/b, " * 100, True, True),
    (b"application/json, text/event-stream, " + b"a/b, " * 1000, False, False),
    (b'"' * 1000, False, False),
    (b"\\" * 1000, False, False),
    (b"," * 1000, False, False),
    (b";" * 1000, False, False),
    (b"a/b" + b";q" * 400, False, False),
]


def test_accepts_follows_most_specific_range() -> None:
    for accept, json, stream in [*ACCEPTED, *ACCEPTED]:
        assert accepts(accept, JSON) == json, accept
        assert accepts(accept, EVENT_STREAM) == stream, accept
        assert accepts(accept, JSON, EVENT_STREAM) == (json and stream), accept
        assert accepts(accept) == (accept is None or len(accept) <= 1024), accept


def test_media_type_of_more_than_1024_bytes_is_malformed() -> None:
    most = b"application/json; a=".ljust(1024, b"a")
    assert is_json(most)
    assert media_type(most) == JSON
    assert accepts(most, JSON)
    assert not is_json(most + b"a")
    assert media_type(most + b"a") is None
    assert not accepts(most + b"a", JSON)


WORDS = st.lists(
    st.sampled_from(
        [
            b"application/json",
            b"text/event-stream",
            b"*/*",
            b"text/*",
            b";",
            b",",
            b" ",
            b"q=0",
            b"q=1",
            b"charset=utf-8",
            b'"',
            b"\\",
            b"\xff",
        ]
    ),
    max_size=12,
).map(b"".join)


@given(st.binary() | WORDS | WORDS.map(b"application/json;".__add__))
def test_media_types_any_bytes_do_not_raise(value: bytes) -> None:
    if is_json(value):
        assert media_type(value) == JSON
    if is_event_stream(value):
        assert accepts(value, EVENT_STREAM) or b"q=" in value
    # Repeating an acceptable range changes nothing.
    if accepts(value, JSON):
        assert accepts(value + b"," + value, JSON) or value.count(b'"') % 2
    assert accepts(b"application/json," + value, JSON)


@given(WORDS)
def test_media_types_ignore_case(value: bytes) -> None:
    for question in (is_json, is_event_stream, media_type):
        assert question(value) == question(value.upper())
    assert accepts(value, JSON) == accepts(value.upper(), JSON)
