"""The two ends of a message that cannot be decoded, and its id and kind."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_core.protocol.jsonrpc._excerpt import EXCERPT_SIZE, Excerpt, show_bytes

REST = b'"result":{"a":"' + b"x" * 5000


def excerpt_of(data: bytes) -> Excerpt:
    return Excerpt(data[:EXCERPT_SIZE], data[-EXCERPT_SIZE:], len(data))


ROWS: list[Any] = [
    # The id and the kind are before the payload.
    (b'{"jsonrpc":"2.0","id":7,' + REST, 7, "response"),
    (b' { "jsonrpc" : "2.0" , "id" : "a b" , "error" : {', "a b", "response"),
    (b'{"id":-1,"jsonrpc":"2.0",' + REST, -1, "response"),
    (b'{"jsonrpc":"2.0","id":7,"method":"x","params":{"a":', 7, "request"),
    (b'{"jsonrpc":"2.0","method":"x","id":7,"params":{"a":', 7, "request"),
    (b'{"jsonrpc":"2.0","method":"x","params":{"id":9,', None, "request"),
    (b'{"jsonrpc":"2.0","id":7', None, "unknown"),
    (b'{"jsonrpc":"2.0","id":7,"x', 7, "unknown"),
    (b'{"a":null,"b":true,"c":-1.5e+3,"d":"\\"","id":7,"result":', 7, "response"),
    # They are after it.
    (b"{" + REST + b'"},"jsonrpc":"2.0","id":7}', 7, "response"),
    (b"{" + REST + b'"} , "id" : "x" , "jsonrpc" : "2.0" } \r', "x", "response"),
    (b'{"params":{"a":"' + b"x" * 5000 + b'"},"id":3,"method":"m"}', 3, "request"),
    (b'{"params":{"a":"' + b"x" * 5000 + b'"},"method":"m"}', None, "request"),
    (b'{"params":{"a":"' + b"x" * 5000 + b'"},"method":"m","jsonrpc":"2.0","id":3}', 3, "request"),
    # Members of other objects, and text, do not count.
    (b"{" + REST + b'","id":7}}', None, "response"),
    (b"{" + REST + b',\\"id\\":7}"}}', None, "response"),
    (b'{"result":{"id":7},"x":1}', None, "response"),
    (b'["id":7}', None, "unknown"),
    (b'"id":7}', None, "unknown"),
    (b'[{"jsonrpc":"2.0","id":7,"result":{}},', None, "unknown"),
    (b'[INFO] {"jsonrpc":"2.0","id":7,"result":{}}', 7, "response"),
    (b"{" + REST + b'","method":"m"}}', None, "response"),
    (b"{" + REST + b'"}{"id":7}', None, "response"),
    (b'{"id":7,"result":1}"method":"m","id":8}', 7, "response"),
    # An id that is not usable.
    (b'{"id":null,' + REST, None, "response"),
    (b'{"id":1.0,' + REST, None, "response"),
    (b'{"id":01,' + REST, None, "response"),
    (b'{"id":9007199254740992,' + REST, None, "response"),
    (b'{"id":"a\\u0062",' + REST, None, "response"),
    (b'{"id":"a\tb",' + REST, None, "response"),
    (b'{"id":"\xff",' + REST, None, "response"),
    (b'{"id":"' + b"x" * 257 + b'",' + REST, None, "response"),
    # Other output before the message, or none at all.
    (b'Loading... {"jsonrpc":"2.0","id":7,"result":{}}', 7, "response"),
    (b'{INFO} {"jsonrpc":"2.0","id":7,"result":{}}', 7, "response"),
    (b"done", None, "unknown"),
    (b"", None, "unknown"),
    (b"{}", None, "unknown"),
    (b"{", None, "unknown"),
    (b"\xff\xfe{", None, "unknown"),
]


@pytest.mark.parametrize(("data", "id", "kind"), ROWS)
def test_excerpt_tells_id_and_kind(data: bytes, id: Any, kind: str) -> None:
    found = excerpt_of(data).identify()
    assert found == (id, kind)
    assert type(found[0]) is type(id)


@pytest.mark.parametrize("order", [("id", "result"), ("result", "id")])
@given(
    id=st.integers(-(10**14), 10**14) | st.text("abc-_/.é", max_size=60),
    text=st.text(max_size=30),
    filler=st.integers(0, 3000),
)
def test_excerpt_tells_the_id_of_any_response(
    order: tuple[str, str], id: Any, text: str, filler: int
) -> None:
    """Members of the result, and braces and quotation marks in its text, change nothing."""
    values = {"id": id, "result": {"id": "other", "text": text + "x" * filler, "more": [{"id": 5}]}}
    message = {"jsonrpc": "2.0", **{name: values[name] for name in order}}
    data = json.dumps(message, ensure_ascii=False).encode(errors="replace")
    assert excerpt_of(data).identify() == (id, "response")


@pytest.mark.perf
@pytest.mark.parametrize("data", [b"{", b'{"a":"', b'"id"' * 250, b',"id":7' * 140, b"\\" * 1024])
def test_excerpt_of_hostile_input_takes_little_time(data: bytes) -> None:
    excerpt = excerpt_of(data.ljust(EXCERPT_SIZE, b'"') + b"}")
    started = time.perf_counter()
    for _ in range(100):
        excerpt.identify()
    assert time.perf_counter() - started < 1


def test_excerpt_id_limit_is_that_of_the_connection() -> None:
    excerpt = excerpt_of(b'{"id":"abcd",' + REST)
    assert excerpt.identify(4)[0] == "abcd"
    assert excerpt.identify(3)[0] is None


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"done", "b'done'"),
        (b"\x1b[31m\xff", "b'\\x1b[31m\\xff'"),
        (bytearray(b"x" * 80), "b'" + "x" * 80 + "'"),
        (b"x" * 81, "b'" + "x" * 80 + "'..."),
    ],
)
def test_show_bytes_is_short_and_escaped(data: bytes, text: str) -> None:
    assert show_bytes(data) == text
