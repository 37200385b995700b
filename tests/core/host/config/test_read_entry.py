"""Entries that a program gives: the members of `.mcp.json`, without a file around them."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import Any

import pytest

from mcp_core.host import InvalidConfig, read_entry
from mcp_core.runtime.host import EntrySource, check_target


class Source(EntrySource):
    def connect(self, *_: object) -> Any:
        raise NotImplementedError


def test_read_entry_takes_what_programs_have() -> None:
    entry = {
        "command": PurePosixPath("/bin/x"),
        "args": ("-p", 80, PurePosixPath("/d")),
        "env": MappingProxyType({"PORT": 80, "NONE": None}),
        "cwd": PurePosixPath("/w"),
        "timeout": 2000,
        "deniedTools": ("erase",),
    }
    server = read_entry("x", MappingProxyType(entry))
    assert (server.command, server.args, server.cwd) == ("/bin/x", ("-p", "80", "/d"), "/w")
    assert server.env == {"PORT": "80"}
    assert server.call_timeout == 2.0
    assert server.find_tool_denial("erase") is not None


@pytest.mark.parametrize(
    ("entry", "transport", "is_disabled", "timeout"),
    [
        ({"command": "x"}, "stdio", False, None),
        ({"url": "https://x.test/mcp", "timeout": 1500}, "http", False, 1.5),
        ({"url": "https://x.test/sse", "type": "sse"}, "sse", False, None),
        ({"command": "x", "disabled": True}, "stdio", True, None),
    ],
)
def test_source_of_an_entry_shows_what_the_entry_says(
    entry: dict[str, Any], transport: str, is_disabled: bool, timeout: float | None
) -> None:
    source = Source("x", entry)
    assert (source.name, source.transport) == ("x", transport)
    assert (source.is_disabled, source.call_timeout) == (is_disabled, timeout)
    assert repr(source) == "<server 'x' of the program>"


NONE = "is not a member of an entry:"
WRONG: list[tuple[str, dict[str, Any], str]] = [
    ("x", {"command": "c", "url": "u"}, "x.url: has both command and url: remove one"),
    ("x", {}, "x: needs command or url"),
    ("x", {"comand": "c"}, "x: needs command or url, and has comand"),
    ("x", {"type": "grpc", "url": "u"}, 'x.type: is "grpc", which is no transport'),
    ("x", {"command": "c", "env": ["CANARY"]}, "x.env: must be an object of strings, not an array"),
    ("x", {"command": "c", "env": {"T": b"CANARY"}}, "x.env.T: must be a string, not bytes"),
    ("x", {"command": "c", "readOnly": True}, "x.readOnly: restricts the server"),
    (
        "x",
        {"command": "c", "arguments": ["CANARY"]},
        f"x.arguments: {NONE} write args in place of it",
    ),
    (
        "x",
        {"command": "c", "enviroment": {"T": "CANARY"}},
        f"x.enviroment: {NONE} write env in place of it",
    ),
    ("x", {"command": "c", "Args": []}, f"x.Args: {NONE} write args in place of it"),
    ("x", {"url": "u", "header": {}}, f"x.header: {NONE} write headers in place of it"),
    (
        "x",
        {"command": "c", "working_directory": "/"},
        f"x.working_directory: {NONE} write cwd in place of it",
    ),
    (
        "x",
        {"command": "c", "envFile": ".env"},
        f"x.envFile: {NONE} write env in place of it",
    ),
    ("x", {"url": "u", "auth": "CANARY"}, f"x.auth: {NONE} remove it; there are command, args,"),
    (
        "mcpServers",
        {"git": {"command": "uvx"}},
        "mcpServers: give the mapping of servers that is inside",
    ),
]


def test_read_entry_takes_harmless_members_of_known_programs() -> None:
    members = ("alwaysAllow", "autoApprove", "trust", "description", "oauth", "_comment", "$schema")
    entry = {"command": "c", **dict.fromkeys(members, "")}
    assert set(read_entry("x", entry).extra) == {*members}


@pytest.mark.parametrize(("name", "entry", "problem"), WRONG)
def test_read_entry_wrong_entry_is_refused_with_the_member(
    name: str, entry: dict[str, Any], problem: str
) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(problem)}") as refused:
        read_entry(name, entry)
    assert "CANARY" not in str(refused.value)


def test_entry_source_expands_variables_and_the_home_directory() -> None:
    """Two sources are the same if their entries are, and an unset variable is named."""
    entry = {
        "command": "~/bin/x",
        "args": ["${A}", "${B:-b}"],
        "env": {"TOKEN": "${T}"},
        "cwd": "~",
    }
    source = Source("x", entry)
    found = source.expand({"HOME": "/h", "A": "1", "T": "secret-value"})
    assert (found.command, found.args, found.cwd) == ("/h/bin/x", ("1", "b"), "/h")
    assert found.env == {"TOKEN": "secret-value"}
    assert "secret-value" in source.secrets
    assert source.expand({"USERPROFILE": "C:/u", "A": "1", "T": "t"}, windows=True).cwd == "C:/u"
    with pytest.raises(InvalidConfig) as unset:
        source.expand({"T": "t"})
    assert str(unset.value) == "x.args[0]: the variable A is not set, and has no default"
    assert source.same_as(Source("x", dict(entry)))
    assert not source.same_as(Source("x", {**entry, "cwd": "/"}))


@pytest.mark.parametrize(
    ("target", "end"),
    [
        ("npx -y server", 'not one string: write ["npx", "-y", "server"]'),
        ("server.py", 'not "server.py"'),
        ("ftp://h/", 'not "ftp://h/"'),
        ("npx --api-key CANARY x", 'write ["npx", "--api-key", "...", "x"]'),
        ("https//u:CANARY@h/p?a=CANARY", 'not "https//u:...@h/p?..."'),
        ("ftp://CANARY@h/?token=CANARY", 'not "ftp://...@h/?..."'),
        ("u:CANARY@h?CANARY", 'not "u:...@h?..."'),
        ("ftp://u:CANARY@h/#CANARY", 'not "ftp://u:...@h/#..."'),
        ("http:/u:CANARY@h", 'not "http:/u:...@h"'),
        ("TOKEN=CANARY", 'not "TOKEN=..."'),
        (b"npx CANARY", "not a value of type bytes"),
        ([], "not an empty list"),
        (5, "not a value of type int"),
    ],
)
def test_check_target_refuses_other_types_with_the_list_of_words(target: object, end: str) -> None:
    with pytest.raises(TypeError) as refused:
        check_target("x", target)
    text = str(refused.value)
    assert text.startswith("x: give a command as a list of words, a URL with ")
    assert text.endswith(end)
    assert "CANARY" not in text
