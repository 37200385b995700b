"""`mcp-trio servers add`: what is written where, and what is shown and asked before."""

from __future__ import annotations

import os
import stat
import sys
import tomllib
from typing import TYPE_CHECKING, Any

import pytest

from mcp_trio._files import replace_file
from mcp_trio.cli import _config_update
from mcp_trio.cli.servers import _places
from mcp_trio.host._config_files import ConfigFiles
from tests.harness.world.command import ROOT, Terminal

if TYPE_CHECKING:
    from pathlib import Path

    from .conftest import HostFiles

COMMAND = ("--", "npx", "-y", "--", "server")
ENTRY = {"type": "stdio", "command": "npx", "args": ["-y", "--", "server"]}
URL = "https://h.example/mcp"
# names that are no plain words
NAMES = ["a.b/c", "ü ñ", "x" * 200, '"', "$", "${A}", "mcpServers"]


def test_add_writes_a_private_file_of_the_user(host: HostFiles) -> None:
    result = host("add", "files", "--yes", "--env", "A=CANARY", *COMMAND)
    assert host.written == [".config/mcp-trio/mcp.json"]
    assert host.read(host.user_file) == {"files": {**ENTRY, "env": {"A": "CANARY"}}}
    assert stat.S_IMODE(host.user_file.stat().st_mode) == 0o600
    assert result.stdout == ""
    lines = result.stderr.splitlines()
    assert lines[:2] == [f"For you, in all projects: {host.user_file}", '+ "files": {']
    assert '+     "A": "(hidden)"' in lines
    assert lines[-1] == f"mcp-trio: files is in {host.user_file}"


SERVERS: list[tuple[tuple[str, ...], dict[str, Any]]] = [
    ((URL,), {"type": "http", "url": URL}),
    ((URL, "--transport", "sse"), {"type": "sse", "url": URL}),
    (("ws://127.0.0.1:1/mcp",), {"type": "ws", "url": "ws://127.0.0.1:1/mcp"}),
    (
        (URL, "--header", "Authorization: Bearer ${T}", "--header", "X-Y:1"),
        {"type": "http", "url": URL, "headers": {"Authorization": "Bearer ${T}", "X-Y": "1"}},
    ),
    (COMMAND, ENTRY),
    (
        (str(ROOT / "examples" / "greeter.py"), "--cwd", "/"),
        {
            "type": "stdio",
            "command": sys.executable,
            "args": ["-P", "-m", "mcp_trio", "run", str(ROOT / "examples" / "greeter.py")],
            "cwd": "/",
        },
    ),
    (
        ("-m", "tea.server:mcp", "--asyncio"),
        {
            "type": "stdio",
            "command": sys.executable,
            "args": ["-P", "-m", "mcp_asyncio_shim", "-m", "tea.server:mcp"],
        },
    ),
]


@pytest.mark.parametrize(("words", "entry"), SERVERS)
def test_add_writes_url_file_and_command(
    host: HostFiles, words: tuple[str, ...], entry: dict[str, Any]
) -> None:
    host("add", "--yes", "us", *words)
    assert host.read(host.user_file) == {"us": entry}


def test_add_to_project_refers_to_variables(host: HostFiles) -> None:
    """Others get the file, with its history."""
    for scope in "project", "local", "user":
        host("add", "us", "--scope", scope, "--yes", "--env", "KEY", *COMMAND, KEY="CANARY")
    assert host.read(host.project_file)["us"]["env"] == {"KEY": "${KEY}"}
    for path in host.local_file, host.user_file:
        assert host.read(path)["us"]["env"] == {"KEY": "CANARY"}
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_add_literal_secrets_to_shared_file_are_pointed_out(host: HostFiles) -> None:
    words = ("add", "us", "--scope", "project", "--yes", "--replace")
    result = host(*words, URL, "--header", "Authorization: CANARY")
    assert "--header 'Authorization: ${NAME}'" in result.stderr
    result = host(*words, "--env", "API_KEY=CANARY", *COMMAND)
    assert "write --env API_KEY" in result.stderr
    result = host(*words, URL, "--header", "Authorization: Bearer ${T}")
    assert "Others may get this file" not in result.stderr


def test_add_into_existing_file_keeps_the_rest_and_a_copy(host: HostFiles) -> None:
    text = '{\r\n\t// mine\r\n\t"x": 1, // one\r\n\t"mcpServers": {"a": {"command": "b"}}\r\n}\r\n'
    host.write(host.user_file, text)
    result = host("add", "us", "--yes", *COMMAND)
    new = host.user_file.read_bytes().decode()
    start, end = text.split("}}")
    assert new.startswith(f"{start}}}, ")
    assert new.endswith(f"}}{end}")
    copy = host.user_file.with_name("mcp.json.mcp-trio-backup")
    assert copy.read_bytes().decode() == text
    assert result.stderr.endswith(f"mcp-trio: the file as it was before is in {copy}\n")


def test_add_through_symbolic_link_replaces_its_target(host: HostFiles) -> None:
    target = host.write(host.home / "dotfiles" / "mcp.json", {})
    host.user_file.parent.mkdir(parents=True)
    host.user_file.symlink_to(target)
    host("add", "us", "--yes", *COMMAND)
    assert host.user_file.is_symlink()
    assert host.read(target) == {"us": ENTRY}


def test_add_to_write_protected_file_is_refused(
    host: HostFiles, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    host.write(host.user_file, "{}")
    monkeypatch.setattr(os, "access", lambda *_: False)  # root may write any file
    assert host.run_here("add", "us", "--yes", *COMMAND) == 1
    assert f"{host.user_file} cannot be written: is write-protected" in capsys.readouterr().err
    assert host.user_file.read_text() == "{}"


def test_add_to_directory_that_cannot_exist_is_an_error(host: HostFiles) -> None:
    host.write(host.home / ".config", "a file")
    result = host("add", "us", "--yes", *COMMAND, status=1)
    assert result.stderr == f"mcp-trio: {host.user_file} cannot be read: Not a directory\n"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", ":1:1: this object or array has no end"),
        ("[]", ", line 1: the file is not an object"),
        ('{"mcpServers": []}', ', line 1: "mcpServers" is not an object'),
        ('{"mcpServers": {},\n"mcpServers": {}}', ', line 2: "mcpServers" is there a second time'),
        ("\x00", ":1:1: expected a value"),
    ],
)
def test_add_to_unusable_file_is_refused_with_its_line(
    host: HostFiles, text: str, problem: str
) -> None:
    host.write(host.user_file, text)
    result = host("add", "us", "--yes", *COMMAND, status=1)
    assert result.stderr.startswith(f"mcp-trio: {host.user_file}{problem}")
    assert host.user_file.read_text() == text


def test_add_to_file_that_is_not_utf_8_is_refused(host: HostFiles) -> None:
    host.write(host.user_file, "").write_bytes(b'{"a":\n"\xff"}')
    result = host("add", "us", "--yes", *COMMAND, status=1)
    assert f"{host.user_file}, line 2: this is not UTF-8" in result.stderr


def test_add_next_to_repeated_and_broken_entries_works(host: HostFiles) -> None:
    host.write(host.user_file, '{"mcpServers": {"a": 1, "a": 2, "b": null}}')
    host("add", "us", "--yes", *COMMAND)
    assert host.read(host.user_file) == {"a": 2, "b": None, "us": ENTRY}
    result = host("add", "a", "--yes", "--replace", *COMMAND, status=1)
    assert '"a" is there a second time' in result.stderr


def test_add_name_that_is_taken_needs_replace(host: HostFiles) -> None:
    old = {"command": "old", "env": {"K": "CANARY"}, "timeout": 5}
    host.write(host.user_file, '{"mcpServers": {\n"us": ' + str(old).replace("'", '"') + "}}")
    result = host("add", "us", "--yes", *COMMAND, status=2)
    assert result.stderr == (
        f"mcp-trio: us is in {host.user_file}, line 2 already: choose another name, or add"
        " --replace\n"
    )
    result = host("add", "us", "--yes", "--replace", *COMMAND)
    assert '-   "command": "old",' in result.stderr.splitlines()
    assert host.read(host.user_file) == {"us": ENTRY}  # nothing of the old one


def test_add_again_changes_nothing(host: HostFiles) -> None:
    host("add", "us", "--yes", *COMMAND)
    before = host.user_file.stat()
    result = host("add", "us", *COMMAND)  # nothing is asked
    assert result.stderr == f"mcp-trio: us is already in {host.user_file}\n"
    assert host.user_file.stat().st_ino == before.st_ino
    assert host("add", "us", "--dry-run", *COMMAND).stdout.endswith("needs to be changed.\n")


@pytest.mark.parametrize("name", NAMES)
def test_add_takes_any_name(host: HostFiles, name: str) -> None:
    result = host("add", "--yes", name, *COMMAND)
    assert host.read(host.user_file) == {name: ENTRY}
    assert ("will be shortened" in result.stderr) == (name != "mcpServers")


def test_add_name_with_control_characters_is_escaped(host: HostFiles) -> None:
    name = "\x1b[2J\nmcp-trio: done"
    for words in ("add", name, "--yes", *COMMAND), ("add", name, *COMMAND):
        result = host(*words)
        assert "\x1b" not in result.stderr
        assert not any(line.startswith("mcp-trio: done") for line in result.stderr.splitlines())
    assert host.read(host.user_file) == {name: ENTRY}
    result = host("add", name, URL, status=2)
    assert "\x1b" not in result.stderr


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("",  URL), "the name of a server must not be empty"),
        (("us",), "which server?"),
        (("us", URL, *COMMAND), "which server? leave one of them out"),
        (("us", "npx"), "mcp-trio servers add NAME -- npx"),
        (("us", "missing.py"), "there is no file missing.py"),
        (("us", "ftp://h/"), "ftp://h/ is not supported: give a URL"),
        (("us", "--", URL), "is not a command: a URL is the last word"),
        (("us", URL, "--env", "A=1"), "--env is for a server that is started"),
        (("us", URL, "--cwd", "/"), "--cwd is for a server that is started"),
        (("us", URL, "--transport", "ws"), "needs a URL that begins with ws:// or wss://"),
        (("us", "ws://h/", "--transport", "sse"), "needs a URL that begins with http://"),
        (("us", "--header", "A: b", *COMMAND), "--header is for the URL of a server"),
        (("us", "--transport", "http", *COMMAND), "--transport is for the URL of a server"),
        (("us", URL, "--header", "A b"), "not a header: there is no colon in it"),
        (("us", "--env", "UNSET_HERE", *COMMAND), "that environment variable is not set"),
        (("us", URL, "--config", "f", "--scope", "user"), "--config names the file"),
        (("us", "http://user:CANARY@h/"), ""),
    ],
)  # fmt: skip
def test_add_wrong_command_line_is_misuse(
    host: HostFiles, words: tuple[str, ...], problem: str
) -> None:
    result = host("add", *words, status=2)
    assert problem in result.stderr.replace("\n", " ")
    assert host.written == []


def test_add_to_config_of_other_programs_uses_their_format(host: HostFiles) -> None:
    """Each program writes a variable differently, and its value never gets into the file."""
    paths = [host.home / name for name in ("c.toml", ".vscode/mcp.json", "settings.json")]
    for path in paths:
        path.parent.mkdir(exist_ok=True)
        header = ("--header", "Authorization: Bearer ${T}")
        host("add", "web", "--config", str(path), "--yes", URL, *header)
        host("add", "us", "--config", str(path), "--yes", "--env", "K", *COMMAND, K="CANARY")
    codex = tomllib.loads(paths[0].read_text())["mcp_servers"]
    assert codex["web"] == {"url": URL, "bearer_token_env_var": "T"}
    assert codex["us"]["env_vars"] == ["K"]
    vscode = host.read(paths[1], "servers")
    assert vscode["web"]["headers"] == {"Authorization": "Bearer ${env:T}"}
    assert vscode["us"]["env"] == {"K": "${env:K}"}
    gemini = host.read(paths[2])
    assert gemini["web"]["httpUrl"] == URL
    assert gemini["us"]["env"] == {"K": "${K}"}


def test_add_that_the_format_cannot_express_is_refused(host: HostFiles) -> None:
    path = str(host.home / "claude_desktop_config.json")
    result = host("add", "web", "--config", path, "--yes", URL, status=2)
    assert "Claude Desktop has no servers over http in this file" in result.stderr
    result = host("add", "us", "--config", path, "--yes", "--env", "K", *COMMAND, status=2, K="1")
    assert "has no references to variables such as K: give the value" in result.stderr
    assert host.written == []


def test_add_without_terminal_and_yes_is_refused(host: HostFiles) -> None:
    result = host("add", "us", *COMMAND, status=3)
    assert "there is no terminal to ask at. Add --yes" in result.stderr
    assert host.written == []


def test_add_dry_run_shows_on_stdout_and_writes_nothing(host: HostFiles) -> None:
    result = host("add", "us", "--dry-run", *COMMAND)
    assert '+ "us": {' in result.stdout.splitlines()
    assert result.stderr == ""
    assert host.written == []


@pytest.mark.parametrize(("answer", "status"), [("yes", 0), ("no", 3)])
def test_add_at_a_terminal_asks(host: HostFiles, answer: str, status: int) -> None:
    with Terminal("servers", "add", "us", *COMMAND, **host.env) as terminal:
        shown = terminal.type(f"{answer}\n", behind="decline (Ctrl")
        rest = terminal.rest()
    assert '"us"' in shown
    assert terminal.status == status, rest
    assert bool(host.written) == (status == 0)


def test_add_that_another_file_shadows_says_so(host: HostFiles) -> None:
    host.write(host.project_file, {"mcpServers": {"us": {"command": "x"}}})
    result = host("add", "us", "--yes", *COMMAND)
    assert "mcp-trio: us does not count: shadowed by " in result.stderr
    result = host("add", "us", "--scope", "local", "--yes", *COMMAND)
    assert "does not count" not in result.stderr


def test_add_while_another_program_writes_keeps_both(
    host: HostFiles, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def replace_late(snapshot: Any, data: bytes, *, private: bool) -> Path | None:
        if not host.user_file.exists():
            host.write(host.user_file, {"mcpServers": {"theirs": {"command": "x"}}})
        return replace_file(snapshot, data, private=private)

    monkeypatch.setattr(_config_update, "replace_file", replace_late)
    assert host.run_here("add", "us", "--yes", *COMMAND) == 0
    assert host.read(host.user_file) == {"theirs": {"command": "x"}, "us": ENTRY}
    assert capsys.readouterr().err.count('+ "us": {') == 1  # an equal change is shown once


def test_add_without_home_names_the_variable(
    host: HostFiles, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    files = ConfigFiles(files=(("project", host.project_file),), directory=host.project)
    monkeypatch.setattr(_places, "find_config_files", lambda directory: files)
    assert host.run_here("add", "us", "--yes", *COMMAND) == 2
    assert "set the environment variable HOME" in capsys.readouterr().err


def test_add_writes_lists_of_tools_and_keeps_them(host: HostFiles) -> None:
    lists = ("--allow-tool", "read", "--allow-tool", "write", "--deny-tool", "write")
    host("add", "a", "--yes", *lists, *COMMAND)
    members = {"allowedTools": ["read", "write"], "deniedTools": ["write"]}
    assert host.read(host.user_file)["a"] == {**ENTRY, **members}
    result = host("add", "a", "--yes", "--replace", *COMMAND, status=2)
    assert "a has allowedTools and deniedTools in its entry, which would be lost" in result.stderr
    result = host("add", "a", "--yes", "--replace", "--allow-tool", "read", *COMMAND, status=2)
    assert "a has deniedTools in its entry, which would be lost" in result.stderr
    assert host.read(host.user_file)["a"] == {**ENTRY, **members}
    host("add", "a", "--yes", "--replace", "--allow-tool", "read", "--deny-tool", "x", *COMMAND)
    assert host.read(host.user_file)["a"]["deniedTools"] == ["x"]
    host("add", "b", "--yes", "--deny-tool", "write", URL)
    assert host.read(host.user_file)["b"] == {"type": "http", "url": URL, "deniedTools": ["write"]}


@pytest.mark.parametrize(
    ("file", "status", "member"),
    [
        ("config.toml", 0, "disabled_tools"),
        ("settings.json", 0, "excludeTools"),
        (".vscode/mcp.json", 2, "cannot restrict the tools of a server in this file"),
        (".cursor/mcp.json", 2, "cannot restrict the tools of a server in this file"),
    ],
)
def test_add_writes_lists_of_tools_in_the_format_of_the_file(
    host: HostFiles, file: str, status: int, member: str
) -> None:
    path = host.write(host.project / file, "" if file.endswith("toml") else "{}")
    words = ("add", "a", "--yes", "--config", str(path), "--deny-tool", "write", *COMMAND)
    result = host(*words, status=status)
    assert member in (result.stderr if status else path.read_text())


@pytest.mark.parametrize("name", ["write_*", "", "mcp__a__write", "write(x)"])
def test_add_refuses_a_name_that_would_match_no_tool(host: HostFiles, name: str) -> None:
    result = host("add", "a", "--yes", "--deny-tool", name, *COMMAND, status=2)
    assert "mcpServers.a.deniedTools[0]: is " in result.stderr
    assert host.written == []
