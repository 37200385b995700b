"""Messages and bytes that could call a tool which may not be called."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mcp_trio.oracle.fuzz._call_guard import (
    PROTOTYPE_NAMES,
    UNKNOWN_PROMPT,
    UNKNOWN_TOOLS,
    UNKNOWN_URI,
    CallGuard,
    calls_in,
    completes_call,
    folded_tail,
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
        lambda name: ("batch", [["ping", {}, "int"], ["tools/call", {"name": name}, "int"]]),
        lambda name: ("on", 1, "call", name, {}, ()),
        lambda name: ("mutate", WIPE.decode().replace("wipe", name)),
        lambda name: ("damage", WIPE.replace(b"wipe", name.encode())),
    ],
)
def test_step_is_played_only_if_its_tool_may_be_called(make: Any, is_allowed: bool) -> None:
    assert GUARD.allows_step(make("look" if is_allowed else "wipe")) is is_allowed


@pytest.mark.parametrize(
    "step",
    [
        *(("call",), ("request",), ("burst", 3), ("mutate", 1), ("damage", "x"), ("wait",)),
        *(("mutate",), ("damage",), ("batch",), ("batch", 5), ("batch", []), ("batch", [[]])),
        *(("listen",), ("listen", 5), ("listen", {})),
        # A place that other steps have isn't one of these.
        ("parts", [["tools/call", {"name": "wipe"}, "int"]]),
        ("page", {"resourceSubscriptions": ["file:///etc/shadow"]}),
    ],
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
        lambda uri: ("batch", [["ping", {}, "int"], ["resources/read", {"uri": uri}, "int"]]),
        lambda uri: ("notify", "resources/read", {"uri": UNKNOWN_URI, "URI": uri}),
        lambda uri: ("listen", {"resourceSubscriptions": [uri]}),
        lambda uri: ("on", 1, "listen", {"resourceSubscriptions": [UNKNOWN_URI, uri]}),
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


@pytest.mark.parametrize(
    ("step", "is_allowed"),
    [
        (("request", "resources/read", {"name": "file:///etc/shadow"}), True),
        (("request", "resources/read", ["file:///etc/shadow"]), True),
        (("request", "prompts/get", {"uri": "file:///etc/shadow"}), True),
        (("listen", {"resourceSubscriptions": "file:///listed"}), False),
        (("listen", {"resourceSubscriptions": [5]}), False),
        (("listen", {"resourceSubscriptions": []}), True),
        (("listen", {"resourceSubscriptions": None}), True),
    ],
)
def test_stored_step_names_no_resource_by_other_words(step: Step, is_allowed: bool) -> None:
    assert GUARD.allows_step(step) is is_allowed


@pytest.mark.parametrize("word", ["uri", "URI", "u\\u0072i"])
@pytest.mark.parametrize("method", ["resources/read", "resources/subscribe", "Resources/Read"])
def test_stored_bytes_with_both_words_are_not_sent(method: str, word: str) -> None:
    """One of them alone reads nothing."""
    assert not GUARD.allows_step(("mutate", f'{{"method": "{method}", "{word}": "a"}}'))
    assert GUARD.allows_step(("mutate", f'{{"method": "{method}"}}'))
    assert GUARD.allows_step(("mutate", f'{{"method": "resources/list", "{word}": "a"}}'))


@pytest.mark.parametrize(
    ("allowed", "name", "is_sent"),
    [
        # An invented name that is a tool's, too, and isn't in the usual place.
        ({"x"}, ["x"], True),
        ({"a"}, ["x"], False),
        # Names without a letter are compared as they are.
        ({"x", "-"}, "mcp-trio-fuzz-none", True),
        ({"x"}, "mcp-trio-fuzz-none", False),
        ({"x"}, "toString", True),
    ],
)
def test_invented_name_is_sent_unless_it_spells_a_denied_tool(
    allowed: set[str], name: Any, is_sent: bool
) -> None:
    guard = CallGuard(allowed, lambda: {"x", "-"})
    message = {"method": "tools/call", "params": {"name": name}}
    assert guard.allows_message(message) is is_sent
    # The caller may change what is allowed.
    allowed.clear()
    assert guard.allows_message(message) is (name == "toString")


@pytest.mark.parametrize(
    ("request_", "is_of_allowed_tool"),
    [
        ({"params": {"name": "look"}}, True),
        ({"params": {"name": "wipe"}}, False),
        ({"params": {"name": ["look"]}}, False),
        ({"params": ["look"]}, False),
        ({}, False),
        *(({"params": {"name": each}}, False) for each in UNKNOWN_TOOLS),
    ],
)
def test_call_of_an_allowed_tool_is_told_from_one_of_an_invented_tool(
    request_: Any, is_of_allowed_tool: bool
) -> None:
    guard = CallGuard({"look"}, lambda: {"look", "wipe"})
    assert guard.names_allowed_tool({"method": "tools/call", **request_}) is is_of_allowed_tool


@pytest.mark.parametrize(
    ("data", "calls"),
    [
        (WIPE, True),
        (WIPE.decode().encode("utf-16-le"), True),
        (b"TOOLS . CALL", True),
        (b"tools/cal", False),
        (b"", False),
    ],
)
def test_bytes_call_a_tool_if_they_spell_the_method(data: bytes, calls: bool) -> None:
    assert calls_in(data) is calls


@pytest.mark.parametrize("place", range(1, 9))
def test_split_word_is_completed_by_what_follows_its_letters(place: int) -> None:
    """The letters sent before are enough for it, and what follows needn't end with it."""
    tail = folded_tail("", b"x" * 20 + b"toolscall"[:place])
    assert tail == ("x" * 20 + "toolscall")[: 20 + place][-8:]
    assert folded_tail("tools", b"/cal") == "toolscal"
    assert folded_tail("abc", b"") == "abc"
    rest = b"toolscall"[place:]
    assert completes_call(tail, rest)
    assert completes_call(tail, rest + b"-other")
    assert not completes_call(tail, rest[:-1])
    assert not completes_call(tail, b"x" + rest)
    # A whole one after it isn't its end.
    assert not completes_call(tail, b"xx toolscall")


def test_prompt_that_no_server_has_is_named_after_this_program() -> None:
    assert UNKNOWN_PROMPT == UNKNOWN_TOOLS[0] == "mcp-trio-fuzz-none"
    assert UNKNOWN_URI == "mcp-trio-fuzz://none"
