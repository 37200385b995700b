"""`mcp-trio servers list`: which servers it shows, which it starts, and that it stores nothing."""

from __future__ import annotations

import json
import os
import signal
from typing import TYPE_CHECKING, Any

import pytest

from mcp_trio.cli.servers._list import _columns, _padded
from tests.trio_.cli.configured.configured import OFFER, tool

if TYPE_CHECKING:
    from tests.trio_.cli.configured.configured import ConfiguredServers
    from tests.trio_.cli.servers.conftest import HostFiles

ZERO_WIDTH = "Say\u200b hello."


def rows(text: str) -> dict[str, list[str]]:
    """Return the words of each line of a table after its first word."""
    return {line.split()[0]: line.split()[1:] for line in text.splitlines()}


def test_list_shows_all_servers_and_starts_only_approved_ones(servers: ConfiguredServers) -> None:
    """A project's file may come from a stranger: a list of its servers must not run commands."""
    servers.add("mine", user=True)
    servers.add("theirs")
    servers.add("off", user=True, disabled=True)
    servers.add_entry("gone", {"command": "no-such-program"}, user=True)
    servers.add("both", user=True)
    servers.add("both")
    result = servers.run("servers", "list")
    table = rows(result.stdout)
    assert table["NAME"] == ["SCOPE", "TRANSPORT", "STATE", "TOOLS", "CHANGES"]
    assert table["mine"] == ["user", "stdio", "ready", "1", "not", "pinned", "yet"]
    assert table["theirs"] == ["project", "stdio", "unapproved"]
    assert table["off"] == ["user", "stdio", "disabled"]
    assert table["gone"] == ["user", "stdio", "failed"]
    assert "no program no-such-program on PATH" in result.stdout
    place = f"{servers.project_file}:1:"
    assert f"both  user, left out: shadowed by {place}" in result.stdout
    assert [servers.starts(name) for name in ("mine", "theirs", "off")] == [1, 0, 0]
    assert result.stderr == (
        "mcp-trio: connecting to 1 server, for at most 60 s\n"
        "mcp-trio: to approve 2 of 5 servers: mcp-trio servers approve theirs (or --all)\n"
    )


def test_list_stores_nothing(servers: ConfiguredServers) -> None:
    servers.add(user=True)
    for _ in range(2):
        assert "not pinned yet" in servers.run("servers", "list").stdout
    assert not servers.state.exists()


def test_list_shows_changes_since_the_approval_and_warnings(servers: ConfiguredServers) -> None:
    servers.add(user=True)
    servers.run("inspect", "--server", "demo")
    assert rows(servers.run("servers", "list").stdout)["demo"] == ["user", "stdio", "ready", "1"]
    servers.offer({"tools": [tool(description=ZERO_WIDTH), tool("a"), tool("a", "else")]})
    before = servers.approvals.path.read_bytes()
    result = servers.run("servers", "list")
    assert "1 changed, 1 gone, 2 ambiguous, 1 warning" in result.stdout
    warning = "    ! tool greet: description has a character \\u200b (ZERO WIDTH SPACE)"
    assert warning in result.stdout
    assert "mcp-trio: to approve 1 of 1 servers: mcp-trio servers approve demo" in result.stderr
    assert servers.approvals.path.read_bytes() == before


def test_list_of_many_warnings_is_cut(servers: ConfiguredServers) -> None:
    servers.add(user=True)
    servers.offer({"tools": [tool(f"t{number}x", ZERO_WIDTH) for number in range(9)]})
    result = servers.run("servers", "list")
    assert result.stdout.count("ZERO WIDTH SPACE") == 5
    assert "(4 more warnings: --json has them)" in result.stdout


def test_list_json_is_one_document(servers: ConfiguredServers) -> None:
    """Scripts get states, changed tools and hidden characters in one place, with a broken entry."""
    servers.add(user=True)
    servers.run("inspect", "--server", "demo")
    servers.offer({**OFFER, "tools": [tool(description=ZERO_WIDTH)]})
    servers.add("theirs")
    servers.add_entry("bad", {"args": []})
    document = json.loads(servers.run("servers", "list", "--json", status=1).stdout)
    assert document["servers"] == [
        {
            "name": "theirs",
            "scope": "project",
            "file": str(servers.project_file),
            "line": 1,
            "transport": "stdio",
            "state": "unapproved",
        },
        {
            "name": "demo",
            "scope": "user",
            "file": str(servers.user_file),
            "line": 1,
            "transport": "stdio",
            "state": "ready",
            "tools": 1,
            "pinned": True,
            "changed": [{"kind": "tool", "name": "greet"}],
            "new": [],
            "gone": [],
            "ambiguous": [],
            "warnings": [
                {
                    "kind": "tool",
                    "name": "greet",
                    "warning": "hidden",
                    "path": "description",
                    "text": "has a character \\u200b (ZERO WIDTH SPACE) that cannot be seen",
                }
            ],
        },
    ]
    problem: dict[str, Any] = document["problems"][0]
    assert (problem["server"], problem["file"]) == ("bad", str(servers.project_file))


def test_list_no_connect_starts_nothing(servers: ConfiguredServers) -> None:
    servers.add(user=True)
    servers.add("theirs")
    result = servers.run("servers", "list", "--no-connect")
    assert rows(result.stdout)["demo"] == ["user", "stdio", "not", "connected"]
    assert rows(result.stdout)["theirs"] == ["project", "stdio", "unapproved"]
    assert (servers.starts(), "connecting" in result.stderr) == (0, False)


def test_list_of_more_servers_than_a_host_may_have_connects_to_none(host: HostFiles) -> None:
    entry = {"command": "/bin/true"}
    host.write(host.user_file, {"mcpServers": {f"s{number}": entry for number in range(1001)}})
    result = host("list", status=2)
    assert "there are 1001 servers to connect to, and the limit is 1000" in result.stderr
    assert len(host("list", "--no-connect").stdout.splitlines()) == 1002


def test_list_of_file_with_problems_lists_its_other_servers(servers: ConfiguredServers) -> None:
    servers.add(user=True)
    servers.write(servers.project_file, '{"mcpServers": {')
    servers.write(servers.local_file, {"mcpServers": {"bad": 5}})
    result = servers.run("servers", "list", status=1)
    assert rows(result.stdout)["demo"][:3] == ["user", "stdio", "ready"]
    assert f"problem  {servers.project_file}:1:" in result.stdout
    assert f"problem  {servers.local_file}:1:" in result.stdout


def test_list_of_missing_config_is_a_problem(servers: ConfiguredServers) -> None:
    result = servers.run("servers", "list", "--config", "none.json", status=1)
    assert "There are no servers that can be used." in result.stdout
    assert "there is no such file" in result.stdout


def test_list_ends_at_the_timeout_with_slow_servers_shown(servers: ConfiguredServers) -> None:
    servers.add("slow", user=True)
    servers.offer({"silent": True}, "slow")
    servers.add(user=True)
    result = servers.run("servers", "list", "--timeout", "1.5")
    assert rows(result.stdout)["slow"][2] in ("connecting", "failed")
    assert rows(result.stdout)["demo"][2] == "ready"


def test_list_interrupted_exits_with_130(servers: ConfiguredServers) -> None:
    servers.add(user=True)
    servers.offer({"silent": True})
    with servers.terminal("servers", "list") as terminal:
        terminal.type("", behind="connecting to 1 server")
        os.kill(terminal.process.pid, signal.SIGINT)
        terminal.rest()
    assert terminal.status == 130


def test_list_with_damaged_approvals_starts_nothing(servers: ConfiguredServers) -> None:
    servers.add(user=True)
    servers.write(servers.approvals.path, "{")
    result = servers.run("servers", "list", status=3)
    assert "approvals.json" in result.stderr
    assert servers.starts() == 0


@pytest.mark.parametrize("columns", ["40", "200"])
def test_list_of_long_and_unicode_names_is_safe_at_terminal(
    servers: ConfiguredServers, columns: str
) -> None:
    servers.add("Ж" * 200 + "\u202e", user=True, disabled=True)
    servers.add("本\x1b[31m\n", user=True, disabled=True)
    with servers.terminal("servers", "list", COLUMNS=columns) as terminal:
        shown = terminal.rest()
    assert terminal.status == 0
    assert "本\\u001b[31m\\n" in shown
    assert "\u202e" not in shown
    assert all(not line.startswith("\n") for line in shown.splitlines())


def test_padded_counts_wide_characters_as_two_columns() -> None:
    assert _columns("本e\u0301") == 3
    assert _padded(["本", "x"], [4, 2]) == "本    x"
    assert _padded(["long name", "x"], [4, 2]) == "long name  x"
