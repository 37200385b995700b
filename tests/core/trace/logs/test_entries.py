"""Messages that are read of one line or value of another program's file."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mcp_core.trace.logs._entries import HALF, LoggedMessage, read_line_entry, read_value_entry

PING: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
PONG: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "result": {}}
TEXT = json.dumps(PING)


def entry_of(value: Any) -> LoggedMessage | None:
    return read_value_entry(value, json.dumps(value))


@pytest.mark.parametrize(
    ("value", "is_message"),
    [
        *(({"jsonrpc": "2.0", name: 1}, True) for name in ("method", "id", "result", "error")),
        ({"jsonrpc": "2.0"}, False),
        ({"jsonrpc": "2.0", "params": {}}, False),
        ({"method": "x", "params": {}, "id": 1}, True),
        ({"method": "x", "params": {}}, False),
        ({"method": "x", "id": 1}, False),
        ({"params": {}, "id": 1}, False),
        ({"method": 5, "params": {}, "id": 1}, False),
        ([PING], True),
        ([PING, PONG], True),
        ([PING, {"a": 1}], False),
        ([[PING]], False),
        ([PING, 5], False),
        ([], False),
        ("jsonrpc method", False),
        (None, False),
    ],
)
def test_message_is_known_by_its_members(value: Any, *, is_message: bool) -> None:
    found = entry_of(value)
    assert found == (LoggedMessage(json.dumps(value), value) if is_message else None)


@pytest.mark.parametrize(
    "name", ["raw", "message", "payload", "data", "body", "msg", "jsonrpc_message", "rpc"]
)
def test_message_may_stand_in_a_member_as_an_object_or_a_text(name: str) -> None:
    spaced = '{"jsonrpc": "2.0",  "id": 1, "method": "ping"}'
    for inner, text in (PING, TEXT), (spaced, spaced), ([PING], json.dumps([PING])):
        found = entry_of({name: inner, "other": 5})
        assert found is not None
        assert (found.text, found.message) == (text, inner if inner != spaced else PING)
        assert found[2:] == (None, None, "", None, False)
    assert entry_of({name: {"a": 1}}) is entry_of({name: "no JSON"}) is None
    found = entry_of({name: "no JSON", "rpc" if name == "raw" else "raw": PING})
    assert found is not None
    assert found.message == PING


@pytest.mark.parametrize(
    ("more", "time"),
    [
        *(({name: 5}, 5.0) for name in ("t", "timestamp", "time", "ts", "at", "@timestamp")),
        ({"at": 7, "time": 5}, 5.0),
        ({"time": "noon", "at": 7}, None),
        ({"at": 1e11}, 1e11),
        ({"at": 1e11 + 1}, (1e11 + 1) / 1000),
        ({"at": -1e11 - 1}, (-1e11 - 1) / 1000),
        ({"at": 1e15 - 1}, (1e15 - 1) / 1000),
        ({"at": 1e15}, None),
        ({"at": -1e15}, None),
        ({"at": True}, None),
        ({"at": "1970-01-01T00:01:00"}, 60.0),
        ({"at": "1970-01-01T01:01:00+01:00"}, 60.0),
        ({"at": "0001-01-01T00:00:00+23:00"}, -62135679600.0),
        ({"at": []}, None),
        ({}, None),
    ],
)
def test_time_is_in_seconds_or_milliseconds_or_a_date(more: Any, time: float | None) -> None:
    found = entry_of({"message": PING, **more})
    assert found is not None
    assert found.time == time


@pytest.mark.parametrize(
    ("more", "answer"),
    [
        ({"response": PONG}, (PONG, None)),
        ({"response": PONG, "duration": 500}, (PONG, None)),
        ({"response": PONG, "at": 3}, (PONG, 3.0)),
        ({"response": PONG, "at": 3, "duration": 500}, (PONG, 3.5)),
        ({"response": PONG, "at": 3, "duration": "500"}, (PONG, 3.0)),
        ({"response": {"a": 1}, "at": 3}, None),
        ({"response": None}, None),
    ],
)
def test_response_in_an_entry_comes_after_its_duration(more: Any, answer: Any) -> None:
    found = entry_of({"message": PING, **more})
    assert found is not None
    assert found.answer == answer


@pytest.mark.parametrize(
    ("more", "name"),
    [
        *(({key: "tea"}, "tea") for key in ("server", "serverName", "server_name")),
        *(({key: 7}, "7") for key in ("conversation", "session", "sessionId")),
        ({"server": None, "session": "s"}, "s"),
        ({"server": "tea", "session": "s"}, "tea"),
        ({"server": "x" * 201}, "x" * 200),
        ({}, ""),
    ],
)
def test_name_is_that_of_a_server_or_session(more: Any, name: str) -> None:
    found = entry_of({"message": PING, **more})
    assert found is not None
    assert found.name == name


@pytest.mark.parametrize(
    ("more", "side"),
    [
        *(({key: "client"}, "client") for key in ("from", "origin", "sender")),
        *(({key: "server"}, "server") for key in ("side", "direction", "source")),
        ({"from": "server_to_client"}, "server"),
        ({"from": "a client and a server"}, None),
        ({"from": "someone", "side": "client"}, "client"),
        ({"from": 5}, None),
        ({"from": " " * 199 + "client"}, None),
        ({"from": " " * 194 + "client"}, "client"),
        ({"from": "client -> server, server -> client"}, None),
    ],
)
def test_side_is_what_a_member_says(more: Any, side: str | None) -> None:
    found = entry_of({"message": PING, **more})
    assert found is not None
    assert found.side == side


def line_of(line: str) -> LoggedMessage:
    found = read_line_entry(line)
    assert isinstance(found, LoggedMessage)
    return found


@pytest.mark.parametrize(
    ("before", "side"),
    [
        ("from client: ", "client"),
        ("from_the server ", "server"),
        ("remote => editor ", "server"),
        ("host to remote ", "client"),
        ("Server sent ", "server"),
        ("client -> server, server -> client ", None),
        ("from client" + " " * 189, "client"),
        ("from client" + " " * 190, None),
        ("", None),
    ],
)
def test_side_of_a_line_is_what_stands_before_its_message(before: str, side: str | None) -> None:
    found = line_of(f"at: {before}{TEXT}")
    assert (found.text, found.side, found.is_logged) == (TEXT, side, True)


@pytest.mark.parametrize(
    ("before", "name", "time"),
    [
        ("[tea] ", "tea", None),
        ("[info] [2026-01-01T00:00:00Z] [client] [tea] ", "tea", 1767225600.0),
        ("[a -> b] 2026-01-01 00:00:00,500Z", "", 1767225600.5),
        ("x" * 196 + "[tea]", "", None),
        ("x" * 195 + "[tea]", "tea", None),
    ],
)
def test_line_has_a_name_in_brackets_and_a_time(before: str, name: str, time: Any) -> None:
    found = line_of(before + TEXT)
    assert (found.name, found.time) == (name, time)
    inner = json.dumps({"message": PING, "server": "own", "t": 5})
    found = line_of(f"[tea] 2026-01-01 00:00:00Z {inner}")
    assert (found.name, found.time) == ("own", 5.0)


@pytest.mark.parametrize("count", [0, 1, 7, 8])
def test_message_is_looked_for_at_eight_braces(count: int) -> None:
    """Each try may read the whole line."""
    found = read_line_entry("x " + "{ " * count + TEXT)
    assert (isinstance(found, LoggedMessage)) == (count < 8)
    batch = read_line_entry("x " + "{ " * count + json.dumps([PING, PONG]))
    assert batch is None or isinstance(batch, str) or batch.message == [PING, PONG]
    assert isinstance(batch, LoggedMessage) == (count < 8)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('x {"jsonrpc": "2.0", "id', HALF),
        ('x {"id": 5, "jsonrpc"', HALF),
        ('x {"id": 5', None),
        ('{"jsonrpc": "2.0", "id', HALF),
        ('x {"jsonrpc": "2.0", {"a": 1}', HALF),
        ('x {"jsonrpc": "2.0", ' + TEXT, "message"),
        ("chunk: b" + TEXT, None),
        ("Validated client message: " + TEXT, None),
        ("SSE message: cut", HALF),
        ("Received JSON: b'" + TEXT, HALF),
        ("Received JSON: b'[1]'", HALF),
        ("Received JSON: b'" + TEXT + "'", "message"),
        ('{"a": 1}', None),
        ("", None),
    ],
)
def test_line_is_a_message_or_half_of_one_or_neither(line: str, expected: str | None) -> None:
    found = read_line_entry(line)
    assert ("message" if isinstance(found, LoggedMessage) else found) == expected


@pytest.mark.parametrize(
    ("words", "side"),
    [
        ("Received JSON: b'" + TEXT + "'", "client"),
        ("Sending client message: jsonrpc='2.0' id=1 method='ping'", "client"),
        ("Received server message: jsonrpc='2.0' id=1 method='ping'", "server"),
        ("Sending message via SSE: jsonrpc='2.0' id=1 method='ping'", "server"),
    ],
)
def test_line_of_the_python_sdk_says_the_side(words: str, side: str) -> None:
    found = line_of(f"[tea] 1970-01-01 00:01:00Z {words}")
    assert found == LoggedMessage(found.text, PING, side, 60.0, "tea", None, True)  # type: ignore[arg-type]
    assert json.loads(found.text) == PING


def test_message_in_a_line_says_nothing_about_itself() -> None:
    """Its texts can have anyone's words, dates and brackets, as can what follows it."""
    message = {**PING, "params": {"a": "from client [tea] 2026-01-01 00:00:00Z"}}
    for value in message, [message, PONG]:
        text = json.dumps(value)
        found = line_of(f"x {text} from server [tea]")
        assert found == LoggedMessage(text, value, is_logged=True)
    assert line_of(f"client {TEXT}").side == "client"
    assert read_line_entry('"jsonrpc" {"a') is None
    found = line_of(f"x {json.dumps({'message': {**PING, 'method': 'é'}}, ensure_ascii=False)}")
    assert "é" in found.text


@pytest.mark.parametrize("text", ["b'\\xff'", "b'a', 5", "b'", "b" + "[" * 500, "b'a' 'b'"])
def test_bytes_of_the_python_sdk_that_are_no_message_are_half_of_one(text: str) -> None:
    assert read_line_entry(f"Received JSON: {text}") == HALF


def test_deep_json_is_no_message() -> None:
    deep = '{"jsonrpc": "2.0", "id": 1, "params": ' + "[" * 100_000
    assert read_line_entry(deep) == HALF
    assert entry_of({"message": "[" * 100_000}) is None
