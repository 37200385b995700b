"""The plan of a registration: what is kept of an old entry, and what is shown of a new one."""

from __future__ import annotations

import json
import tomllib
from typing import Any

import pytest

from mcp_core.host import (
    CLIENT_FORMATS,
    ConfigFileError,
    ServerEntry,
    describe_change,
    plan_registration,
)

CURSOR, CODEX, VSCODE = (CLIENT_FORMATS[name] for name in ("cursor", "codex", "vscode"))
SERVER = ServerEntry(name="us", command="/py", args=("run", "/f.py"), env={})
PLAIN = {"command": "/py", "args": ["run", "/f.py"]}


def with_env(forwarded: tuple[str, ...] = (), **env: str) -> ServerEntry:
    return ServerEntry(
        name="us", command="/py", args=("run", "/f.py"), env=env, forwarded=forwarded
    )


def document(entry: Any) -> str:
    return json.dumps({"mcpServers": {"us": entry}}, indent=2)


def applied(text: str, server: ServerEntry = SERVER) -> Any:
    change = plan_registration(CURSOR, server, text)
    entry = json.loads(change.apply(text))["mcpServers"]["us"]
    assert entry == change.new
    assert not plan_registration(CURSOR, server, change.apply(text)).is_needed
    return entry


def test_registration_of_same_file_keeps_what_the_user_added() -> None:
    old = {
        "command": "/old/py",
        "args": ["-m", "run", "/f.py"],
        "env": {"KEY": "k", "A": "0"},
        "trust": True,
    }
    env = {"KEY": "k", "A": "1"}
    assert applied(document(old), with_env(A="1")) == {**PLAIN, "env": env, "trust": True}
    assert applied(document(old))["env"] == old["env"]


@pytest.mark.parametrize(
    "old",
    [
        {"command": "/py", "args": ["run", "/other.py"], "env": {"KEY": "k"}, "trust": True},
        {"url": "https://x", "headers": {"authorization": "k"}, "trust": True},
        {"command": "/py", "args": [], "trust": True},
        {"command": "/py", "args": "run /f.py", "trust": True},
        {"command": "/py", "args": ["run", "/f.py"], "env": ["KEY"]},
        "us",
        None,
    ],
)
def test_registration_over_another_server_inherits_nothing(old: Any) -> None:
    """Its secrets and the trust in it were given to another program."""
    assert applied(document(old)) == PLAIN


def test_registration_edits_only_the_members_that_differ() -> None:
    text = (
        '{\n  "mcpServers": {\n    "us": {\n      "args": [ "run", "/f.py" ], // where\n'
        '      "env": { /* secret */ "KEY": "k" },\n      "command": "/old" // python\n'
        "    }\n  }\n}\n"
    )
    change = plan_registration(CURSOR, with_env(A="1"), text)
    expected = text.replace('"/old"', '"/py"').replace('"k" }', '"k", "A": "1" }')
    assert change.apply(text) == expected


def test_registration_of_an_object_with_the_same_members_edits_their_values() -> None:
    text = document({**PLAIN, "env": {"A": "1"}}).replace('"A"', '/* mine */ "A"')
    change = plan_registration(CURSOR, with_env(A="2"), text)
    assert change.apply(text) == text.replace('"A": "1"', '"A": "2"')


def test_registration_equal_entry_is_not_needed() -> None:
    text = document({**PLAIN, "disabled": False})
    change = plan_registration(CURSOR, SERVER, text)
    assert not change.is_needed
    assert change.apply(text) == text


def test_registration_in_toml_keeps_forwarded_variables() -> None:
    text = '[mcp_servers.us]\nargs = ["/f.py"]\nenv_vars = ["A"] # mine\ntool_timeout_sec = 9\n'
    server = ServerEntry(name="us", command="/py", args=("/f.py",), env={}, forwarded=("B", "A"))
    result = plan_registration(CODEX, server, text).apply(text)
    assert tomllib.loads(result)["mcp_servers"]["us"] == {
        "args": ["/f.py"], "env_vars": ["A", "B"], "tool_timeout_sec": 9, "command": "/py",
    }  # fmt: skip
    plain = ServerEntry(name="us", command="/py", args=("/f.py",), env={})
    assert plan_registration(CODEX, plain, text).new["env_vars"] == ["A"]


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("cursor", '{\n"mcpServers": []}', 2),
        ("cursor", "[\n]", 1),
        ("vscode", '{\n"servers": 1}', 2),
        ("codex", "mcp_servers = 1", 1),
        ("codex", "\nx", 2),
    ],
)
def test_registration_in_unusable_file_is_refused(name: str, text: str, line: int) -> None:
    with pytest.raises(ConfigFileError) as caught:
        plan_registration(CLIENT_FORMATS[name], SERVER, text)
    assert caught.value.line == line


def test_registration_ignores_servers_of_other_members() -> None:
    change = plan_registration(VSCODE, SERVER, '{"mcpServers": {"us": {}}, "inputs": []}')
    assert change.old is None


def lines(client: str, text: str, server: ServerEntry) -> list[str]:
    change = plan_registration(CLIENT_FORMATS[client], server, text)
    return [f"{mark}{line}" for mark, line in describe_change(change)]


def test_description_of_new_entry_has_every_line_added() -> None:
    assert lines("cursor", "", with_env(KEY="CANARY")) == [
        '+"us": {',
        '+  "command": "/py",',
        '+  "args": [',
        '+    "run",',
        '+    "/f.py"',
        "+  ],",
        '+  "env": {',
        '+    "KEY": "(hidden)"',
        "+  }",
        "+}",
    ]


def test_description_of_change_shows_no_secret_but_that_it_differs() -> None:
    old = {**PLAIN, "env": {"A": "CANARY-1", "B": "CANARY-2", "C": "${env:C}"}}
    shown = lines("cursor", document(old), with_env(A="CANARY-3", B="CANARY-2"))
    assert "CANARY" not in "".join(shown)
    assert [line for line in shown if line[0] != " "] == [
        '-    "A": "(hidden)",',
        '+    "A": "(hidden, another value)",',
    ]
    assert '     "C": "${env:C}"' in shown


def test_description_of_replaced_entry_shows_no_headers() -> None:
    old = {"url": "https://x", "headers": {"authorization": "CANARY"}}
    shown = lines("cursor", document(old), SERVER)
    assert '-    "authorization": "(hidden)"' in shown
    assert "CANARY" not in "".join(shown)


def test_description_of_toml_is_toml() -> None:
    """A date becomes a string in the plan, and the values of old and new secrets stay hidden."""
    text = (
        '[mcp_servers.us]\nurl = "x"\nat = 1979-05-27\n'
        '[mcp_servers.us.http_headers]\na = "CANARY"\n'
    )
    assert lines("codex", text, with_env(A="1")) == [
        " [mcp_servers.us]",
        '-url = "x"',
        '-at = "1979-05-27"',
        "-[mcp_servers.us.http_headers]",
        '-a = "(hidden)"',
        '+command = "/py"',
        '+args = ["run", "/f.py"]',
        "+[mcp_servers.us.env]",
        '+A = "(hidden)"',
    ]
    assert lines("codex", "[mcp_servers]\nus = 1", SERVER)[0] == "-mcp_servers.us = 1"
