"""The table of clients: files on three systems, entries, and command lines."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from mcp_core.host import (
    CLIENT_FORMATS,
    ConfigScope,
    ServerEntry,
    ServerTransport,
    config_path,
    entry_members,
    find_replaced,
    read_config,
)

LINUX = {"HOME": "/home/u"}
MAC = {"HOME": "/Users/u"}
WINDOWS = {"USERPROFILE": "C:\\Users\\u", "APPDATA": "C:\\Users\\u\\AppData\\Roaming"}
MAC_DATA = "/Users/u/Library/Application Support"

# client, scope, system, environment, path
PATHS = [
    ("claude-code", "user", "linux", LINUX, "/home/u/.claude.json"),
    ("claude-code", "user", "win32", WINDOWS, "C:\\Users\\u\\.claude.json"),
    ("claude-code", "user", "linux", {"CLAUDE_CONFIG_DIR": "/c"}, "/c/.claude.json"),
    ("claude-code", "project", "darwin", {}, "/p/.mcp.json"),
    ("claude-desktop", "user", "linux", LINUX, "/home/u/.config/Claude/claude_desktop_config.json"),
    ("claude-desktop", "user", "linux", {**LINUX, "XDG_CONFIG_HOME": "/x"},
     "/x/Claude/claude_desktop_config.json"),
    ("claude-desktop", "user", "linux", {**LINUX, "XDG_CONFIG_HOME": "x"},
     "/home/u/.config/Claude/claude_desktop_config.json"),
    ("claude-desktop", "user", "darwin", MAC, f"{MAC_DATA}/Claude/claude_desktop_config.json"),
    ("claude-desktop", "user", "win32", WINDOWS,
     "C:\\Users\\u\\AppData\\Roaming\\Claude\\claude_desktop_config.json"),
    ("claude-desktop", "user", "win32", {"USERPROFILE": "D:\\u"},
     "D:\\u\\AppData\\Roaming\\Claude\\claude_desktop_config.json"),
    ("cursor", "user", "darwin", MAC, "/Users/u/.cursor/mcp.json"),
    ("cursor", "user", "win32", WINDOWS, "C:\\Users\\u\\.cursor\\mcp.json"),
    ("cursor", "project", "win32", {}, "/p\\.cursor\\mcp.json"),
    ("vscode", "user", "linux", LINUX, "/home/u/.config/Code/User/mcp.json"),
    ("vscode", "user", "darwin", MAC, f"{MAC_DATA}/Code/User/mcp.json"),
    ("vscode", "user", "win32", WINDOWS, "C:\\Users\\u\\AppData\\Roaming\\Code\\User\\mcp.json"),
    ("vscode", "project", "linux", {}, "/p/.vscode/mcp.json"),
    ("codex", "user", "linux", LINUX, "/home/u/.codex/config.toml"),
    ("codex", "user", "darwin", {**MAC, "CODEX_HOME": "/c"}, "/c/config.toml"),
    ("codex", "project", "linux", {**LINUX, "CODEX_HOME": "/c"}, "/p/.codex/config.toml"),
    ("gemini", "user", "freebsd14", LINUX, "/home/u/.gemini/settings.json"),
    ("gemini", "user", "linux", {"GEMINI_CLI_HOME": "/g"}, "/g/.gemini/settings.json"),
    ("gemini", "project", "linux", {}, "/p/.gemini/settings.json"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "scope", "system", "environ", "path"), PATHS)
def test_config_path_is_where_the_client_reads(
    name: str, scope: ConfigScope, system: str, environ: dict[str, str], path: str
) -> None:
    client = CLIENT_FORMATS[name]
    found = config_path(client, scope, system=system, environ=environ, directory="/p")
    assert found == path


@pytest.mark.parametrize(
    ("name", "scope", "system", "problem"),
    [
        ("claude-desktop", "project", "linux", "Claude Desktop has no configuration for a project"),
        ("cursor", "user", "linux", "HOME is not set"),
        ("vscode", "user", "win32", "USERPROFILE is not set"),
    ],
)
def test_config_path_unknown_is_an_error(
    name: str, scope: ConfigScope, system: str, problem: str
) -> None:
    with pytest.raises(ValueError, match=problem):
        config_path(CLIENT_FORMATS[name], scope, system=system, environ={}, directory="/p")


SERVER = ServerEntry(
    name="us", command="/py", args=("-m", "x", "/f.py"), env={"A": "1"}, forwarded=("B",)
)
PLAIN = {"command": "/py", "args": ["-m", "x", "/f.py"]}
ENTRIES = {
    "claude-code": {"type": "stdio", **PLAIN, "env": {"A": "1", "B": "${B}"}},
    "cursor": {**PLAIN, "env": {"A": "1", "B": "${env:B}"}},
    "vscode": {"type": "stdio", **PLAIN, "env": {"A": "1", "B": "${env:B}"}},
    "codex": {**PLAIN, "env_vars": ["B"], "env": {"A": "1"}},
    "gemini": {**PLAIN, "env": {"A": "1", "B": "${B}"}},
}


@pytest.mark.parametrize("name", ENTRIES)
def test_entry_has_the_members_of_the_client(name: str) -> None:
    assert entry_members(CLIENT_FORMATS[name], SERVER) == ENTRIES[name]


@pytest.mark.parametrize("name", [n for n, each in CLIENT_FORMATS.items() if each.is_written])
def test_entry_without_variables_has_no_env(name: str) -> None:
    server = ServerEntry(name="us", command="/py", args=(), env={})
    members = entry_members(CLIENT_FORMATS[name], server)
    assert members == {**CLIENT_FORMATS[name].members, "command": "/py", "args": []}


def remote(transport: ServerTransport, **headers: str) -> ServerEntry:
    return ServerEntry(name="us", transport=transport, url="https://h/mcp", headers=headers)


URL = "https://h/mcp"
REMOTE = [
    ("claude-code", "http", {"type": "http", "url": URL}),
    ("claude-code", "sse", {"type": "sse", "url": URL}),
    ("claude-code", "ws", {"type": "ws", "url": URL}),
    ("cursor", "http", {"url": URL}),
    ("cursor", "sse", {"type": "sse", "url": URL}),
    ("vscode", "http", {"type": "http", "url": URL}),
    ("vscode", "sse", {"type": "sse", "url": URL}),
    ("codex", "http", {"url": URL}),
    ("gemini", "http", {"httpUrl": URL}),
    ("gemini", "sse", {"url": URL}),
]


@pytest.mark.parametrize(("name", "transport", "members"), REMOTE)
def test_remote_entry_is_read_back_with_its_transport(
    name: str, transport: ServerTransport, members: dict[str, str]
) -> None:
    client = CLIENT_FORMATS[name]
    assert entry_members(client, remote(transport)) == members
    if client.syntax is not None:
        text = json.dumps({client.servers[0]: {"us": members}})
        assert read_config(text, file="f", format=name).servers["us"].transport == transport


HEADERS = {"X-A": "${A}", "X-B": "b", "Authorization": "Bearer ${T}"}


@pytest.mark.parametrize(
    ("name", "members"),
    [
        ("claude-code", {"headers": HEADERS}),
        ("gemini", {"headers": HEADERS}),
        (
            "vscode",
            {"headers": {"X-A": "${env:A}", "X-B": "b", "Authorization": "Bearer ${env:T}"}},
        ),
        (
            "codex",
            {
                "http_headers": {"X-B": "b"},
                "env_http_headers": {"X-A": "A"},
                "bearer_token_env_var": "T",
            },
        ),
    ],
)
def test_remote_entry_refers_to_variables_as_the_client_does(
    name: str, members: dict[str, Any]
) -> None:
    found = entry_members(CLIENT_FORMATS[name], remote("http", **HEADERS))
    assert {member: found.get(member) for member in members} == members
    assert found.keys() - members.keys() <= {"type", "url", "httpUrl"}


@pytest.mark.parametrize(
    ("name", "server", "problem"),
    [
        ("claude-desktop", SERVER, "has no references to variables such as B: give the value"),
        ("claude-desktop", remote("http"), "no servers over http in this file, only stdio"),
        ("cursor", remote("ws"), "no servers over ws in this file, only stdio, http, sse"),
        ("codex", remote("sse"), "no servers over sse in this file, only stdio, http"),
        ("codex", remote("http", A="x ${A}"), "a variable inside the header A: put the whole"),
        (
            "cursor",
            ServerEntry(name="us", command="/py", cwd="/d"),
            "cannot start a server in another directory",
        ),
    ],
)
def test_entry_that_the_client_cannot_have_is_refused(
    name: str, server: ServerEntry, problem: str
) -> None:
    with pytest.raises(ValueError, match=problem):
        entry_members(CLIENT_FORMATS[name], server)


def test_entry_with_directory_has_cwd() -> None:
    server = ServerEntry(name="us", command="/py", cwd="/d")
    for name in "claude-code", "vscode", "codex", "gemini":
        assert entry_members(CLIENT_FORMATS[name], server)["cwd"] == "/d"


def test_server_entry_shows_no_values() -> None:
    server = ServerEntry(name="us", env={"A": "CANARY"}, headers={"B": "CANARY"}, url="CANARY")
    assert "CANARY" not in repr(server)


def add_command(name: str, server: ServerEntry, scope: ConfigScope) -> list[str] | None:
    function = CLIENT_FORMATS[name].add_command
    assert function is not None
    return function(server, scope)


def test_add_command_of_claude_carries_the_entry_as_json() -> None:
    for scope in "user", "project":
        command = add_command("claude-code", SERVER, scope)
        assert command is not None
        assert command[:-1] == ["mcp", "add-json", "--scope", scope, "us"]
        assert json.loads(command[-1]) == ENTRIES["claude-code"]


def test_add_command_of_vscode_is_for_the_user_only() -> None:
    command = add_command("vscode", SERVER, "user")
    assert command is not None
    assert command[:-1] == ["--add-mcp"]
    assert json.loads(command[-1]) == {"name": "us", **ENTRIES["vscode"]}
    assert add_command("vscode", SERVER, "project") is None


def test_add_command_of_codex_has_no_scope_and_no_forwarded_variables() -> None:
    server = ServerEntry(name="us", command="/py", args=("-m", "x"), env={"A": "1=2"})
    expected = ["mcp", "add", "us", "--env", "A=1=2", "--", "/py", "-m", "x"]
    assert add_command("codex", server, "user") == expected
    assert add_command("codex", server, "project") is None
    assert add_command("codex", SERVER, "user") is None


def test_add_command_of_gemini_refuses_values_that_gemini_would_cut() -> None:
    place = ["mcp", "add", "--scope", "project", "us"]
    variables = ["-e", "A=1", "-e", "B=${B}"]
    expected = [*place, *variables, "/py", "--", "-m", "x", "/f.py"]
    assert add_command("gemini", SERVER, "project") == expected
    server = ServerEntry(name="us", command="/py", args=(), env={"A": "1=2"})
    assert add_command("gemini", server, "user") is None


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("claude-code", ["/a ${X}/py", "the value of A"]),
        ("vscode", ["/a ${X}/py", "the value of A"]),
        ("gemini", ["/a ${X}/py", "/b $Z/f.py", "the value of A", "the value of B"]),
        ("codex", []),
        ("claude-desktop", []),
    ],
)
def test_find_replaced_names_what_the_client_would_change(name: str, found: list[str]) -> None:
    server = ServerEntry(
        name="us",
        command="/a ${X}/py",
        args=("/b $Z/f.py", "5$ $"),
        env={"A": "${env:Y}", "B": "pa$sword", "C": "a$"},
        forwarded=("D",),
    )
    assert find_replaced(CLIENT_FORMATS[name], server) == found


@pytest.mark.parametrize(
    ("name", "members"),
    [
        ("claude-code", {"allowedTools": ["read"], "deniedTools": ["write"]}),
        ("codex", {"enabled_tools": ["read"], "disabled_tools": ["write"]}),
        ("gemini", {"includeTools": ["read"], "excludeTools": ["write"]}),
    ],
)
@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_entry_with_lists_of_tools_has_the_members_of_its_client(
    name: str, members: dict[str, Any], transport: ServerTransport
) -> None:
    client = CLIENT_FORMATS[name]
    plain = ServerEntry(name="x", transport=transport, command="c", url="https://h/")
    entry = replace(plain, allowed_tools=("read",), denied_tools=("write",))
    assert entry_members(client, entry) == {**entry_members(client, plain), **members}
    assert client.add_command is not None
    assert (client.add_command(entry, "user") is None) is (name != "claude-code")
    # An empty list lets no tool be used.
    allowed, _ = members
    assert entry_members(client, replace(plain, allowed_tools=()))[allowed] == []


@pytest.mark.parametrize("name", ["claude-desktop", "cursor", "vscode"])
@pytest.mark.parametrize("more", [{"allowed_tools": ("read",)}, {"denied_tools": ("write",)}])
def test_entry_with_lists_of_tools_is_refused_by_clients_without_them(
    name: str, more: dict[str, Any]
) -> None:
    entry = ServerEntry(name="x", command="c", **more)
    with pytest.raises(ValueError, match="cannot restrict the tools of a server in this file"):
        entry_members(CLIENT_FORMATS[name], entry)
