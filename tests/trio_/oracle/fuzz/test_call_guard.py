"""Messages and bytes that could call a tool which may not be called."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mcp_trio.oracle.fuzz._call_guard import (
    PROTOTYPE_NAMES,
    UNKNOWN_TOOLS,
    UNKNOWN_URI,
    CallGuard,
)
from mcp_trio.oracle.fuzz._case import Step

GUARD = CallGuard(
    {"look", "wipe_draft"}, lambda: {"look", "wipe", "wipe_draft", "!!", "7"}, ["file:///listed"]
)
# Methods that a lenient server takes for `tools/call`.
METHODS: tuple[Any, ...] = (
    "tools/call",
    "Tools/Call",
    "tools/call ",
    "\ttools/call\n",
    "\ufefftools/call",
    "tools/call\0",
    "tools\u200b/call",
    "\uff54ools/call",  # a wide letter, which NFKC makes a plain one
    ["tools/call"],
    {"tools/call": 1},
)
NAMES: tuple[Any, ...] = (
    "wipe",
    "wipe ",
    " WIPE",
    "wipe\0x",
    "\ufeffwipe",
    "w\u00adipe",  # a soft hyphen
    "\uff57ipe",
    "wipe\u0301",
    ["wipe"],
    {"wipe": 1},
    "!!",
    "!! ",
    7,
    "hidden",  # in no list
    ["hidden"],
    {"a": "hidden"},
)
MAY_BE_SENT: tuple[dict[str, Any], ...] = (
    {"method": "tools/call", "params": {"name": "look", "arguments": {"name": "wipe"}}},
    {"method": "tools/call", "params": {"name": "wipe_draft", "task": {"ttl": 1}}},
    {"method": "tools/call", "params": {"arguments": {}}},
    {"method": "tools/call"},
    *({"method": "tools/call", "params": each} for each in (82, True, None, [], [1, 2], "x")),
    {"method": "tools/list", "params": {"name": "wipe"}},
    {"method": "ping", "params": {"method": "call", "name": "wipe"}},
)


def line(message: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": 1, **message}).encode()


WIPE = line({"method": "tools/call", "params": {"name": "wipe"}})
LOOK = line({"method": "tools/call", "params": {"name": "look"}})


@pytest.mark.parametrize("name", NAMES, ids=ascii)
@pytest.mark.parametrize("method", METHODS, ids=ascii)
def test_message_that_could_call_another_tool_is_not_sent(method: Any, name: Any) -> None:
    message = {"method": method, "params": {"name": name, "arguments": {}}}
    assert not GUARD.allows_message(message)
    assert not GUARD.allows_data(line(message))
    assert not GUARD.allows_data(json.dumps(message, ensure_ascii=False).encode())


@pytest.mark.parametrize("params", [["wipe", {}], "wipe", ["hidden"], [["wipe"]], [{"a": "wipe"}]])
def test_call_with_params_by_position_is_not_sent(params: Any) -> None:
    assert not GUARD.allows_message({"method": "tools/call", "params": params})


@pytest.mark.parametrize("message", MAY_BE_SENT, ids=ascii)
def test_message_that_calls_no_other_tool_is_sent(message: dict[str, Any]) -> None:
    assert GUARD.allows_message(message)
    assert GUARD.allows_data(line(message))


@pytest.mark.parametrize("name", [*UNKNOWN_TOOLS, *PROTOTYPE_NAMES], ids=repr)
def test_call_of_a_tool_that_no_server_has_is_sent(name: str) -> None:
    assert GUARD.allows_message({"method": "tools/call", "params": {"name": name}})


@pytest.mark.parametrize(
    "data",
    [
        WIPE,
        b"[" + WIPE + b"]",
        b"[[" + WIPE + b"]]",
        LOOK + b"\n" + WIPE,
        b'{"message": ' + WIPE + b"}",
        b"\xff" + WIPE,
        b"\xef\xbb\xbf" + WIPE,
        WIPE.replace(b"tools/call", b"tools\xff/call"),
        WIPE.replace(b"tools/call", b"tools\\/call"),
        WIPE.replace(b"tools/call", b"\\u0074ools/call"),
        WIPE.replace(b"tools/call", b"\\x74ools/call"),
        WIPE.replace(b"tools/call", b"\\u{74}ools/call"),
        WIPE.replace(b"tools/call", b"\xc1\xb4ools/call"),
        WIPE.replace(b"tools/call", b"\xe0\x81\xb4ools/call"),
        WIPE.replace(b"wipe", b"w\\u0069pe"),
        WIPE.replace(b"wipe", b"wi\xffpe"),
        WIPE[:-1],  # a reader may repair it
        WIPE + b"}",
        b"//\n" + WIPE,
        WIPE.decode().encode("utf-16"),
        WIPE.decode().encode("utf-16-be"),
        WIPE.decode().encode("utf-32"),
        b"POST /mcp HTTP/1.1\r\nContent-Length: 9\r\n\r\n" + WIPE,
        b"Content-Length: 99\r\n\r\n" + LOOK,
        # Readers differ in which of two members counts.
        LOOK.replace(b'{"name"', b'{"name": "wipe", "name"'),
        LOOK.replace(b'{"name"', b'{"Name": "wipe", "name"'),
        LOOK.replace(b'{"name": "look"', b'{"name": "look", "NAME": "wipe"'),
        LOOK.replace(b'{"name": "look"', b'{"name": "look", "tool name": "wipe"'),
        LOOK.replace(b'"params"', b'"Params": {"name": "wipe"}, "params"'),
        line({"method": "ping"}).replace(b'"method"', b'"Method": "tools/call", "method"'),
        LOOK[:-1] + b', "a": NaN}',
        b"[" * 100_000 + b"tools/call",
    ],
    ids=lambda data: ascii(data)[:60],
)
def test_bytes_that_could_call_another_tool_are_not_sent(data: bytes) -> None:
    assert not GUARD.allows_data(data)


@pytest.mark.parametrize(
    "data",
    [
        LOOK,
        b"[" + LOOK + b"]",
        LOOK + b"\n" + LOOK + b"\n",
        b"",
        b"\xff\xfe\xfd",
        b'{"method": "tools/list"',
        b'{"jsonrpc": "2.0", "method": "wipe", "method": "ping"}',
    ],
)
def test_bytes_that_call_no_other_tool_are_sent(data: bytes) -> None:
    assert GUARD.allows_data(data)


@pytest.mark.parametrize("is_allowed", [True, False])
@pytest.mark.parametrize(
    "make",
    [
        lambda name: ("call", name, {}, ()),
        lambda name: ("request", "tools/call", {"name": name}, "int"),
        lambda name: ("notify", "tools/call", {"name": name}),
        lambda name: ("burst", 3, "tools/call", {"name": name}),
        lambda name: ("head", "accept", "tools/call", {"name": name}),
        lambda name: ("mutate", WIPE.decode().replace("wipe", name)),
        lambda name: ("damage", WIPE.replace(b"wipe", name.encode())),
    ],
)
def test_step_is_played_only_if_its_tool_may_be_called(make: Any, is_allowed: bool) -> None:
    assert GUARD.allows_step(make("look" if is_allowed else "wipe")) is is_allowed


@pytest.mark.parametrize(
    "step", [("call",), ("request",), ("burst", 3), ("mutate", 1), ("damage", "x"), ("wait",)]
)
def test_step_that_is_too_short_calls_nothing(step: Step) -> None:
    assert GUARD.allows_step(step)


@pytest.mark.parametrize(
    ("uri", "is_listed"),
    [
        ("file:///listed", True),
        (UNKNOWN_URI, True),
        (f"{UNKNOWN_URI}/../../a", True),
        ("", True),
        # The same as a listed one.
        ("file:///listed#part", True),
        ("file:///./listed", True),
        ("file:///a/../listed", True),
        ("file:///%6Cisted", True),
        ("file:///a/../../listed", False),
        ("file:///b/../listed", False),
        ("file:///listed?#", False),
        ("file:///etc/shadow", False),
        (["file:///etc/shadow"], False),
    ],
)
@pytest.mark.parametrize(
    "make",
    [
        lambda uri: ("request", "resources/read", {"uri": uri}),
        lambda uri: ("request", "Resources/Read ", {"URI": uri}),
        lambda uri: ("burst", 2, "resources/subscribe", {"uri": uri}),
        lambda uri: ("head", "accept", "resources/read", {"uri": uri}),
        lambda uri: ("listen", {"resourceSubscriptions": [uri]}),
    ],
)
def test_stored_step_reads_listed_resources_only(make: Any, uri: Any, is_listed: bool) -> None:
    assert GUARD.allows_step(make(uri)) is is_listed


@pytest.mark.parametrize("data", [b"\xff", b""])
def test_stored_bytes_read_no_resource(data: bytes) -> None:
    message = line({"method": "resources/read", "params": {"uri": "file:///etc/shadow"}})
    assert not GUARD.allows_step(("damage", data + message))
    assert not GUARD.allows_step(("mutate", message.decode()))
    assert GUARD.allows_step(("damage", line({"method": "resources/read"})))
