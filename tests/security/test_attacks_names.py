"""A checkout gives its server the name of the user's own, and waits for a script that uses that.

Both are called `demo`, and note their starts: the user's in `mine`, the checkout's in `demo`.
"""

from __future__ import annotations

import json
import re
import shlex
from typing import TYPE_CHECKING

import pytest

from tests.harness.world import command as program
from tests.harness.world.command import Forks
from tests.trio_.cli.configured.configured import ConfiguredServers

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SESSIONS = [
    ["inspect"],
    ["call", "greet", "name=x"],
    ["call", "mcp__demo__greet", "name=x"],
    ["read", "tea://menu"],
    ["read", "@demo:tea://menu"],
    ["prompt", "pack"],
    ["prompt", "mcp__demo__pack"],
    ["complete", "pack", "city", "O"],
    ["listen"],
    ["tasks", "list"],
]
WIRES = [["proxy"], ["fuzz", "--cases", "1"], ["replay", "played.mcp.jsonl"]]
REMOTE = WIRES[1:]
QUESTION = "decline (Ctrl"


@pytest.fixture(scope="module", autouse=True)
def _forks() -> Iterator[None]:
    program.forks = Forks()
    yield
    program.forks.close()
    program.forks = None


@pytest.fixture
def servers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ConfiguredServers:
    pytest.importorskip("hypothesis")
    found = ConfiguredServers(tmp_path, monkeypatch)
    header = {
        "mcp-trace": 1,
        "at": "2026-01-01T00:00:00Z",
        "by": "test",
        "observer": "between",
        "transport": "stdio",
        "target": "",
        "redacted": [],
    }
    ping = {"t": 0.0, "from": "client", "raw": '{"jsonrpc":"2.0","id":1,"method":"ping"}'}
    lines = "".join(json.dumps(each) + "\n" for each in (header, ping))
    found.write(found.project / "played.mcp.jsonl", lines)
    return found


def add_users(servers: ConfiguredServers) -> None:
    servers.add("mine", user=True)
    command, arguments = servers.command("mine")
    servers.add_entry("demo", {"command": command, "args": arguments}, user=True)


def is_named(words: list[str]) -> bool:
    return any("demo" in word for word in words)


def on_line(words: list[str], *options: str) -> list[str]:
    """Return a command line that names the server, if its words do not."""
    server = [] if is_named(words) else ["--server", "demo"]
    return [*words, *server, *options]


OPTIONS = [
    *[(words, options) for words in SESSIONS for options in (["--yes"], [])],
    *[(words, []) for words in WIRES],
    *[(words, ["--allow-remote"]) for words in REMOTE],
]


@pytest.mark.parametrize(("words", "options"), OPTIONS, ids=str)
def test_checkouts_server_of_users_name_is_not_started_by_a_script(
    servers: ConfiguredServers, words: list[str], options: list[str]
) -> None:
    servers.add()
    add_users(servers)
    for approving in [], ["--approve-server", "demo"]:
        result = servers.run(*on_line(words, *options, *approving), status=3)
        assert (servers.starts("demo"), servers.starts("mine"), result.stdout) == (0, 0, "")
        for file in servers.project_file, servers.user_file:
            assert str(file) in result.stderr
        assert shlex.join(servers.command()[1]) in result.stderr
        assert f" --approve-server demo@{servers.project_file}" in result.stderr
    assert not servers.state.exists()


@pytest.mark.parametrize("words", [*SESSIONS[:8], WIRES[0]], ids=str)
def test_word_of_the_error_starts_the_server_in_this_run_and_says_which(
    servers: ConfiguredServers, words: list[str]
) -> None:
    """The word names the file, so it can't mean the user's own server; it holds for one run."""
    servers.add()
    add_users(servers)
    word = f"demo@{servers.project_file}"
    options = ["--approve-server", word, *(["--yes"] if words in SESSIONS else [])]
    result = servers.run(*on_line(words, *options))
    assert (servers.starts("demo"), servers.starts("mine")) == (1, 0)
    assert f"--approve-server lets demo of {servers.project_file} start" in result.stderr
    assert (
        f"demo is the server of {servers.project_file};"
        f" the one in {servers.user_file} (user) is not used\n"
    ) in result.stderr
    assert not servers.state.exists()
    servers.run(*on_line(words), status=3)


@pytest.mark.parametrize("command", ["login", "proxy", "fuzz", "replay", "servers approve"])
def test_command_without_calls_has_no_yes(servers: ConfiguredServers, command: str) -> None:
    servers.add()
    words = [*command.split(), *(["played.mcp.jsonl"] if command == "replay" else [])]
    place = ["demo"] if command == "servers approve" else ["--server", "demo"]
    result = servers.run(*words, *place, "--yes", status=2)
    assert "--approve-server NAME" in " ".join(result.stderr.split())
    assert servers.starts() == 0


@pytest.mark.parametrize(
    ("words", "options"),
    [
        (REMOTE[0], ["--approve-server", "far"]),
        (REMOTE[0], ["--allow-cleartext"]),
        (REMOTE[0], ["--token-env", "HOME", "--allow-all"]),
        (REMOTE[1], ["--approve-server", "far"]),
        (REMOTE[1], ["--token-env", "HOME"]),
    ],
    ids=str,
)
def test_other_machine_gets_nothing_without_allow_remote(
    servers: ConfiguredServers, words: list[str], options: list[str]
) -> None:
    servers.add_entry("far", {"url": "https://far.example/mcp"})
    is_configured = options[0] == "--approve-server"
    target = ["--server", "far"] if is_configured else ["https://far.example/mcp"]
    result = servers.run(*words, *options, *target, status=2)
    assert "add --allow-remote" in " ".join(result.stderr.split())


# -- Ways around it --------------------------------------------------------------------------------


def test_copy_of_users_entry_needs_its_file_as_it_runs_in_the_checkout(
    servers: ConfiguredServers,
) -> None:
    """Programs such as `npx` load code from their directory, so an equal entry is not enough."""
    add_users(servers)
    command, arguments = servers.command("mine")
    entry = {"command": command, "args": arguments}
    servers.add_entry("demo", entry)
    words = ("inspect", "--server", "demo", "--approve-server", "demo")
    servers.run(*words, status=3)
    assert servers.starts("mine") == 0
    # With a directory both are the same, and nothing is replaced.
    placed = {**entry, "cwd": str(servers.home)}
    servers.add_entry("demo", placed)
    servers.add_entry("demo", placed, user=True)
    result = servers.run(*words)
    assert (servers.starts("mine"), "is not used" in result.stderr) == (1, False)


def test_link_in_the_checkout_to_users_file_is_another_file(servers: ConfiguredServers) -> None:
    add_users(servers)
    servers.project_file.symlink_to(servers.user_file)
    words = ("inspect", "--server", "demo", "--approve-server")
    servers.run(*words, f"demo@{servers.user_file}", status=3)
    servers.run(*words, "demo", status=3)
    assert servers.starts("mine") == 0
    servers.run(*words, "demo@.mcp.json")
    assert servers.starts("mine") == 1


def test_checkouts_server_is_not_started_because_users_entry_is_broken(
    servers: ConfiguredServers,
) -> None:
    servers.add()
    servers.add_entry("demo", {"command": 1}, user=True)
    servers.run("inspect", "--server", "demo", "--approve-server", "demo", status=3)
    assert servers.starts() == 0


def test_checkouts_server_with_a_longer_name_gets_no_calls(servers: ConfiguredServers) -> None:
    """By its merged name, `mcp__demo__a__b` may be a tool of `demo` or of `demo__a`."""
    servers.add("demo", user=True)
    servers.add("demo__a")
    servers.offer({"tools": [{"name": "b", "inputSchema": {"type": "object"}}]}, "demo__a")
    servers.run("call", "mcp__demo__a__b", "--yes", status=3)
    assert servers.starts("demo__a") == 0


# -- At a terminal ---------------------------------------------------------------------------------


@pytest.mark.parametrize("words", [["call", "greet", "name=x"], ["inspect"]], ids=str)
@pytest.mark.parametrize(("typed", "starts"), [("no\n", 0), ("\x04", 0), ("yes\n", 1)])
def test_start_is_asked_about_at_a_terminal_although_yes_was_given(
    servers: ConfiguredServers, words: list[str], typed: str, starts: int
) -> None:
    servers.add()
    add_users(servers)
    with servers.terminal(*words, "--server", "demo", "--yes") as terminal:
        shown = terminal.type(typed, behind=QUESTION)
        rest = terminal.rest()
    shown = re.sub(r"\^\[\d*(;\d+)*m", "", shown)
    assert "demo takes the place of another server, and is not approved." in shown
    assert f"in place of     {servers.user_file} (user)" in shown
    assert "Start demo, in this run?" in shown
    assert (terminal.status, servers.starts()) == (0 if starts else 3, starts)
    assert starts or str(servers.project_file) in rest
    assert not servers.state.exists()


def test_approval_from_before_users_server_was_there_is_not_enough(
    servers: ConfiguredServers,
) -> None:
    """A script that names `demo` now expects the user's server, so the old approval is void."""
    servers.add()
    with servers.terminal("inspect", "--server", "demo") as terminal:
        terminal.type("yes\n", behind="Start demo, now and whenever it is used?")
        terminal.rest()
    servers.run("inspect", "--server", "demo")
    assert servers.starts() == 1 + 1
    add_users(servers)
    script = ("call", "greet", "name=x", "--server", "demo", "--yes")
    servers.run(*script, status=3)
    listed = servers.run("servers", "list", "--no-connect").stdout
    assert f"it takes the place of the one in {servers.user_file} (user)" in listed
    assert servers.starts() == 2
    # Nor is one that the user declines now, and one that was shown it is.
    for typed in "no\n", "yes\n":
        with servers.terminal("servers", "approve", "demo") as terminal:
            shown = terminal.type(typed, behind=QUESTION)
            terminal.rest()
        assert "takes the place of another server, and is not approved" in shown
    result = servers.run(*script)
    assert f"the one in {servers.user_file} (user) is not used" in result.stderr
    assert result.stdout == '{"name": "x"}\n'
