"""`mcp-trio servers get`: the server that counts, what it shadows, and what is wrong with it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from mcp_trio.host import _config_files

if TYPE_CHECKING:
    from .conftest import HostFiles

LOCAL = {
    "command": "npx",
    "args": ["-y", "a b"],
    "env": {"SECRET": "CANARY", "TOKEN": "${GH_TOKEN}"},
    "cwd": "/d",
}


def test_get_shows_the_server_that_counts_without_secrets(host: HostFiles) -> None:
    host.write(host.local_file, {"mcpServers": {"a": LOCAL}})
    host.write(host.user_file, '{"mcpServers": {\n"a": {"command": "other"}}}')
    assert host("get", "a").stdout == (
        f"a  local, {host.local_file}, line 1\n"
        "  transport  stdio\n"
        "  command    npx -y 'a b'\n"
        "  cwd        /d\n"
        "  env        SECRET: (hidden)\n"
        "  env        TOKEN: ${GH_TOKEN}\n"
        "  variables  GH_TOKEN\n"
        f"  shadows    user, {host.user_file}, line 2\n"
    )


def test_get_shows_remote_server_without_query(host: HostFiles) -> None:
    """Query and headers may hold keys, so only the name of a variable is shown."""
    entry = {
        "type": "sse",
        "url": "https://h/mcp?key=CANARY",
        "headers": {"Authorization": "CANARY", "X-Y": "${env:T}"},
        "disabled": True,
    }
    host.write(host.project_file, {"mcpServers": {"a": entry}})
    lines = host("get", "a").stdout.splitlines()
    assert lines[1:] == [
        "  transport  sse",
        "  disabled   yes",
        "  url        https://h/mcp",
        "  headers    Authorization: (hidden)",
        "  headers    X-Y: ${env:T}",
        "  variables  T",
    ]


def test_get_as_json_has_places_and_variables(host: HostFiles) -> None:
    """The document says where each entry stands and which one shadows it, and hides secrets."""
    host.write(host.local_file, {"mcpServers": {"a": LOCAL}})
    host.write(host.user_file, {"mcpServers": {"a": {"command": "other"}}})
    document = json.loads(host("get", "a", "--json").stdout)
    assert document == {
        "name": "a",
        "scope": "local",
        "file": str(host.local_file),
        "line": 1,
        "column": 17,
        "transport": "stdio",
        "disabled": False,
        "command": "npx",
        "args": ["-y", "a b"],
        "env": {"SECRET": "(hidden)", "TOKEN": "${GH_TOKEN}"},
        "cwd": "/d",
        "variables": [
            {
                "kind": "environment",
                "name": "GH_TOKEN",
                "hasDefault": False,
                "leavesMachine": False,
            }
        ],
        "omitted": [
            {
                "scope": "user",
                "file": str(host.user_file),
                "line": 1,
                "column": 17,
                "reason": "shadowed",
                "explanation": f"shadowed by {host.local_file}:1:17: mcpServers.a (local)",
            }
        ],
        "problems": [],
    }


def test_get_of_codex_file_shows_named_variables(host: HostFiles) -> None:
    path = host.write(
        host.home / "config.toml",
        '[mcp_servers.a]\nurl = "https://h/"\nbearer_token_env_var = "B"\n'
        'env_http_headers = {X-K = "K"}\n\n'
        '[mcp_servers.b]\ncommand = "x"\nenv_vars = ["V"]\n',
    )
    shown = host("get", "a", "--config", str(path)).stdout
    assert "  headers    X-K: ${K}\n  headers    Authorization: Bearer ${B}\n" in shown
    shown = host("get", "b", "--config", str(path)).stdout
    assert "  env        V: from the environment\n" in shown


def test_get_of_broken_server_shows_its_problems(host: HostFiles) -> None:
    host.write(host.project_file, '{"mcpServers": {"a": {\n"command": 5}}}')
    host.write(host.user_file, {"mcpServers": {"a": {"command": "x"}}})
    result = host("get", "a", status=1)
    assert result.stdout.startswith("a cannot be used\n  shadowed   user, ")
    assert f"{host.project_file}:2:1: mcpServers.a.command: must be a string" in result.stdout
    document = json.loads(host("get", "a", "--json", status=1).stdout)
    assert [each["line"] for each in document["problems"]] == [2]
    assert "scope" not in document


def test_get_of_unknown_server_names_files_that_may_have_it(host: HostFiles) -> None:
    host.write(host.project_file, "{")
    host.write(host.user_file, {"mcpServers": {"aa": {"command": "x"}}})
    result = host("get", "a", status=2)
    assert "there is no server a; the servers are aa. Did you mean aa?" in result.stderr
    assert f"{host.project_file}:1:1: this object or array has no end" in result.stderr
    assert "there are no servers" in host("get", "a", "--config", "missing", status=2).stderr


def test_get_name_with_control_characters_is_escaped(host: HostFiles) -> None:
    name = "\x1b[2J\nü" + "x" * 300
    host.write(host.user_file, {"mcpServers": {name: {"command": "\x1b[2J"}}})
    result = host("get", name)
    assert "\x1b" not in result.stdout
    assert result.stdout.startswith("\\u001b[2J\\nüx")
    assert "x" * 250 not in result.stdout.splitlines()[0]
    assert "\x1b" not in host("get", name, "--json").stdout


def test_get_denied_server_shows_why(
    host: HostFiles, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    managed = host.write(host.home / "managed.json", {"deniedMcpServers": [{"serverName": "a"}]})
    monkeypatch.setattr(_config_files, "_MANAGED_FILE", managed)
    monkeypatch.setattr(_config_files, "find_unsafe_path", lambda *_, **__: None)
    host.write(host.user_file, {"mcpServers": {"a": {"command": "x"}}})
    assert host.run_here("get", "a") == 1
    shown = capsys.readouterr().out
    assert shown.startswith("a cannot be used\n  denied     user, ")
    host.write(managed, "{")
    assert host.run_here("get", "a") == 1
    assert "no server can be used: " in capsys.readouterr().err


def test_get_shows_which_tools_may_be_used(host: HostFiles) -> None:
    """An empty list allows nothing, and rules from another program's format are shown as well."""
    lists = {"allowedTools": ["read", "write"], "deniedTools": ["write\u202e"]}
    host.write(host.project_file, {"mcpServers": {"a": {**LOCAL, **lists}}})
    lines = host("get", "a").stdout.splitlines()
    assert "  allowed    read, write" in lines
    assert "  denied     write\\u202e" in lines
    document = json.loads(host("get", "a", "--json").stdout)
    assert document["allowedTools"] == ["read", "write"]
    assert document["deniedTools"] == ["write\u202e"]
    host.write(host.project_file, {"mcpServers": {"a": {**LOCAL, "allowedTools": []}}})
    assert "  allowed    no tool" in host("get", "a").stdout.splitlines()
    path = host.write(
        host.home / "config.toml",
        '[mcp_servers.a]\ncommand = "c"\ndisabled_tools = ["w"]\n'
        'default_tools_approval_mode = "prompt"\n',
    )
    lines = host("get", "a", "--config", str(path)).stdout.splitlines()
    assert "  denied     w" in lines
    assert "  calls      each one is asked about" in lines


def test_get_shows_restriction_that_is_not_understood(host: HostFiles) -> None:
    host.write(host.project_file, {"mcpServers": {"a": {"command": "c", "readOnly": True}}})
    result = host("get", "a", status=1)
    assert "a cannot be used" in result.stdout
    assert "mcpServers.a.readOnly: restricts the server in a way that is not" in result.stdout
