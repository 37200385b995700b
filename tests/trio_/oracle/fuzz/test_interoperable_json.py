"""JSON and requests that every reader understands in the same way, and why others are in doubt."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mcp_trio.oracle.fuzz._interoperable_json import (
    MAX_INTEGER,
    find_defect,
    is_id,
    is_interoperable,
    is_json,
    read_plain_request,
    shown_value,
)


def nested(levels: int, value: Any = 1) -> Any:
    """Return `value` in this many arrays and objects, in turn."""
    for level in range(levels):
        value = [value] if level % 2 else {"a": value}
    return value


def request(**members: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": "ping", **members}


@pytest.mark.parametrize(
    ("members", "kind", "clause"),
    [
        ({}, "", ""),
        ({"params": {}}, "", ""),
        ({"params": {"_meta": {"progressToken": 3}}}, "", ""),
        ({"params": {"_meta": {"progressToken": "t"}}}, "", ""),
        ({"params": [1]}, "params", "its params are [1], not an object"),
        ({"params": 0}, "params", "its params are 0, not an object"),
        ({"params": None}, "null params", "its params are null, not an object"),
        ({"params": {"_meta": None}}, "meta", "its params have the _meta null, not an object"),
        (
            {"params": {"_meta": {"progressToken": 1.5}}},
            "meta",
            "its progressToken is 1.5, not a string or an integer",
        ),
        (
            {"params": {"_meta": {"progressToken": True}}},
            "meta",
            "its progressToken is true, not a string or an integer",
        ),
        ({"z": 1, "extra": 2}, "member", 'it has the member "extra"'),
    ],
)
def test_defect_of_a_request_is_named(members: dict[str, Any], kind: str, clause: str) -> None:
    assert find_defect(request(**members)) == (kind, clause)


@pytest.mark.parametrize(
    ("value", "same"),
    [
        (nested(30), True),
        (nested(31), False),
        (nested(30, []), False),
        ([1, nested(30)], False),
        (MAX_INTEGER, True),
        (-MAX_INTEGER, True),
        (MAX_INTEGER + 1, False),
        (-MAX_INTEGER - 1, False),
        ({"a": [MAX_INTEGER + 1]}, False),
        ((1, (MAX_INTEGER + 1,)), False),
        (1e300, True),
        ("x", True),
        (None, True),
        ([], True),
    ],
)
def test_value_is_read_the_same_if_it_is_small_and_flat(value: Any, same: bool) -> None:
    assert is_interoperable(value) is same


PLAIN = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'


@pytest.mark.parametrize(
    "line",
    [
        PLAIN,
        PLAIN.replace(b":1,", b':"a",'),
        PLAIN.replace(b":1,", b':"' + b"a" * 200 + b'",'),
        PLAIN.replace(b":1,", b":%d," % MAX_INTEGER),
        PLAIN.replace(b":1,", b":-%d," % MAX_INTEGER),
        PLAIN[:-1] + b',"params":{"a":[1.5,"\xc3\xa9"]}}',
        PLAIN[:-1] + b',"params":' + json.dumps(nested(29)).encode() + b"}",
        b" " + PLAIN + b"\t",
    ],
)
def test_request_that_every_server_reads_is_plain(line: bytes) -> None:
    assert read_plain_request(line) == json.loads(line)


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"[]",
        b"[" * 100_000,
        PLAIN[:-1],
        b"\xff" + PLAIN,
        PLAIN.replace(b"2.0", b"2.00"),
        PLAIN.replace(b'"id":1,', b""),
        PLAIN.replace(b":1,", b":null,"),
        PLAIN.replace(b":1,", b":true,"),
        PLAIN.replace(b":1,", b":1.0,"),
        PLAIN.replace(b":1,", b':"\xc3\xa9",'),
        PLAIN.replace(b":1,", b':"' + b"a" * 201 + b'",'),
        PLAIN.replace(b":1,", b":%d," % (MAX_INTEGER + 1)),
        PLAIN.replace(b":1,", b":-%d," % (MAX_INTEGER + 1)),
        PLAIN.replace(b'"ping"', b'""'),
        PLAIN.replace(b'"ping"', b"7"),
        PLAIN.replace(b'"ping"', b'"p\\u0069ng"'),
        PLAIN[:-1] + b',"id":1}',
        PLAIN[:-1] + b',"params":{"a":1,"a":1}}',
        PLAIN[:-1] + b',"params":{"a":NaN}}',
        PLAIN[:-1] + b',"params":{"a":1e999}}',
        PLAIN[:-1] + b',"params":{"a":' + b"9" * 400 + b"}}",
        PLAIN[:-1] + b',"params":' + json.dumps(nested(30)).encode() + b"}",
        PLAIN[:-1] + b',"result":{}}',
        PLAIN[:-1] + b',"error":{}}',
        PLAIN + b"\r",
        PLAIN.replace(b",", b",\r", 1),
    ],
)
def test_request_that_some_servers_read_in_another_way_is_not_plain(line: bytes) -> None:
    assert read_plain_request(line) is None


@pytest.mark.parametrize(
    ("data", "valid"),
    [
        (PLAIN + b"\r", True),
        (b'{"a":1,"a":2}', True),
        (b"1e999", True),
        (b"NaN", False),
        (b'"\xff"', False),
        (b"{", False),
        (b"[" * 100_000, False),
    ],
)
def test_bytes_that_some_reader_takes_are_json(data: bytes, valid: bool) -> None:
    assert is_json(data) is valid


@pytest.mark.parametrize(
    ("id", "may"), [("", True), (0, True), (1.5, False), (True, False), (None, False), ([], False)]
)
def test_id_is_text_or_an_integer(id: Any, may: bool) -> None:
    assert is_id(id) is may


def test_value_in_a_sentence_is_short() -> None:
    assert shown_value("é" * 58) == '"' + "é" * 58 + '"'
    assert shown_value("é" * 59) == '"' + "é" * 56 + "..."
