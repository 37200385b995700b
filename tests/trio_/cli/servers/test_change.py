"""`mcp-trio servers remove`, `enable` and `disable`: in which file, and what stays."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from mcp_trio._files import replace_file
from mcp_trio.cli import _config_update
from mcp_trio.host import _config_files
from tests.harness.world.command import Terminal

if TYPE_CHECKING:
    from .conftest import HostFiles

FILE = """\
{
  // mine
  "mcpServers": {
    "a": {"command": "x", "env": {"K": "CANARY"}},
    // about b
    "b": {"url": "https://h/"}
  }
}
"""


def test_remove_shows_the_entry_and_keeps_the_rest(host: HostFiles) -> None:
    host.write(host.user_file, FILE)
    result = host("remove", "a", "--yes")
    assert host.user_file.read_text() == "".join(
        line for line in FILE.splitlines(keepends=True) if '"a"' not in line
    )
    lines = result.stderr.splitlines()
    assert lines[0] == f"For you, in all projects: {host.user_file}"
    assert '-     "K": "(hidden)"' in lines
    assert f"mcp-trio: a is no longer in {host.user_file}" in lines
    assert host.user_file.with_name("mcp.json.mcp-trio-backup").read_text() == FILE


def test_remove_dry_run_shows_on_stdout_and_writes_nothing(host: HostFiles) -> None:
    host.write(host.user_file, FILE)
    assert '- "b": {' in host("remove", "b", "--dry-run").stdout.splitlines()
    assert host.user_file.read_text() == FILE


def test_remove_without_terminal_and_yes_is_refused(host: HostFiles) -> None:
    host.write(host.user_file, FILE)
    assert "Add --yes" in host("remove", "a", status=3).stderr
    assert host.user_file.read_text() == FILE


def test_remove_at_a_terminal_asks(host: HostFiles) -> None:
    host.write(host.user_file, FILE)
    with Terminal("servers", "remove", "a", **host.env) as terminal:
        terminal.type("no\n", behind="decline (Ctrl")
        rest = terminal.rest()
    assert (terminal.status, "nothing was changed" in rest) == (3, True)
    assert host.user_file.read_text() == FILE


@pytest.mark.parametrize(
    "entry", [None, 5, [], {}, {"command": 1}, {"command": "x", "url": "y"}, {"type": "odd"}]
)
def test_remove_of_broken_entry_works(host: HostFiles, entry: Any) -> None:
    host.write(host.project_file, {"mcpServers": {"a": entry, "b": {"command": "x"}}})
    host("remove", "a", "--yes")
    assert host.read(host.project_file) == {"b": {"command": "x"}}


def test_remove_of_name_that_occurs_twice_is_refused_with_its_line(host: HostFiles) -> None:
    text = '{"mcpServers": {"a": {},\n"a": {}}}'
    host.write(host.project_file, text)
    result = host("remove", "a", "--yes", status=1)
    assert f'{host.project_file}, line 2: "a" is there a second time' in result.stderr
    assert host.project_file.read_text() == text


def test_change_of_server_in_several_files_needs_the_scope(host: HostFiles) -> None:
    for path in host.user_file, host.project_file, host.local_file:
        host.write(path, {"mcpServers": {"a": {"command": "x"}}})
    for words in ("remove", "a", "--yes"), ("disable", "a"), ("enable", "a"):
        result = host(*words, status=2)
        assert result.stderr == (
            f"mcp-trio: a is in several files: local ({host.local_file}, line 1), project"
            f" ({host.project_file}, line 1), user ({host.user_file}, line 1). Add --scope to"
            " choose one\n"
        )
    host("remove", "a", "--yes", "--scope", "project")
    host("disable", "a", "--scope", "local")
    assert host.read(host.project_file) == {}
    assert host.read(host.local_file)["a"]["disabled"] is True
    assert host.read(host.user_file) == {"a": {"command": "x"}}


def test_change_of_unknown_server_names_those_that_are_there(host: HostFiles) -> None:
    result = host("remove", "github", status=2)
    assert "there is no server github, and no file that could have it" in result.stderr
    host.write(host.user_file, {"mcpServers": {"git-hub": {"command": "x"}, "z": 5}})
    result = host("remove", "github", status=2)
    assert f"in {host.user_file}; servers are git-hub, z. Did you mean git-hub?" in result.stderr
    result = host("remove", "\x1b[2J" + "x" * 500, status=2)
    assert "\x1b" not in result.stderr
    assert "x" * 300 not in result.stderr
    assert "cannot be read" in host("remove", "z", "--config", "/dev/null", status=1).stderr


def test_change_with_unreadable_file_is_refused_unless_another_is_named(host: HostFiles) -> None:
    """It could have the server too."""
    host.write(host.user_file, {"mcpServers": {"a": {"command": "x"}}})
    host.write(host.project_file, "{")
    result = host("remove", "a", "--yes", status=1)
    assert f"{host.project_file}:1:1: this object or array has no end" in result.stderr
    host("remove", "a", "--yes", "--scope", "user")
    assert host.read(host.user_file) == {}


def test_change_of_managed_server_is_refused(
    host: HostFiles, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    managed = host.write(host.home / "managed.json", {"mcpServers": {"a": {"command": "x"}}})
    monkeypatch.setattr(_config_files, "_MANAGED_FILE", managed)
    assert host.run_here("remove", "a", "--yes") == 2
    error = f"mcp-trio: a is in {managed}, line 1, which only an administrator changes\n"
    assert capsys.readouterr().err == error


def test_disable_and_enable_give_back_the_same_text(host: HostFiles) -> None:
    host.write(host.user_file, FILE)
    result = host("disable", "a")
    assert '"env": {"K": "CANARY"}, "disabled": true}' in host.user_file.read_text()
    assert '+ "disabled": true' in result.stderr.splitlines()
    assert f"mcp-trio: a is disabled in {host.user_file}" in result.stderr
    assert "a is disabled already in" in host("disable", "a").stderr
    host("enable", "a")
    assert host.user_file.read_text() == FILE
    assert "a is enabled already in" in host("enable", "a").stderr


def test_disable_in_file_of_claude_code_says_that_it_still_starts(host: HostFiles) -> None:
    host.write(host.project_file, {"mcpServers": {"a": {"command": "x"}}})
    assert "Claude Code keeps that in its settings" in host("disable", "a").stderr
    assert "Claude Code" not in host("enable", "a").stderr


def test_disable_uses_the_way_of_the_format(host: HostFiles) -> None:
    codex = host.write(host.home / "config.toml", '[mcp_servers.a]\ncommand = "x"\n')
    host("disable", "a", "--config", str(codex))
    assert codex.read_text() == '[mcp_servers.a]\ncommand = "x"\nenabled = false\n'
    host("enable", "a", "--config", str(codex))
    assert codex.read_text() == '[mcp_servers.a]\ncommand = "x"\n'
    gemini = host.write(host.home / "settings.json", {"mcpServers": {"a": {"command": "x"}}})
    host("disable", "a", "--config", str(gemini))
    assert host.read(gemini, "mcp") == {"excluded": ["a"]}
    host("enable", "a", "--config", str(gemini))
    assert host.read(gemini, "mcp") == {"excluded": []}


def test_disable_in_format_without_a_way_says_so(host: HostFiles) -> None:
    path = host.write(host.home / ".vscode" / "mcp.json", {"servers": {"a": {"command": "x"}}})
    result = host("disable", "a", "--config", str(path), status=2)
    assert result.stderr == (
        "mcp-trio: the file of VS Code cannot turn a server off: do it in VS Code, or remove the"
        " server\n"
    )


def test_disable_of_broken_entry_is_refused_with_its_line(host: HostFiles) -> None:
    host.write(host.user_file, '{"mcpServers": {\n"a": 5}}')
    result = host("disable", "a", status=1)
    assert f"{host.user_file}, line 2: the entry of the server is not an object" in result.stderr


@pytest.mark.parametrize("word", ["remove", "disable"])
def test_change_of_server_that_another_program_removes_is_no_harm(
    host: HostFiles,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    word: str,
) -> None:
    """Then `remove` has nothing left to do and succeeds, while `disable` fails and says why."""
    host.write(host.user_file, {"mcpServers": {"a": {"command": "x"}}})

    def replace_late(snapshot: Any, data: bytes, *, private: bool) -> Path | None:
        host.write(host.user_file, {"mcpServers": {}, "theirs": 1})
        return replace_file(snapshot, data, private=private)

    monkeypatch.setattr(_config_update, "replace_file", replace_late)
    options = ["--yes"] if word == "remove" else []
    assert host.run_here(word, "a", *options) == (0 if word == "remove" else 1)
    assert host.read(host.user_file, "theirs") == 1
    assert host.read(host.user_file) == {}
    assert ("just lost it" in capsys.readouterr().err) == (word == "disable")


def test_change_of_file_with_bad_links_is_an_error(host: HostFiles) -> None:
    if sys.platform == "win32":
        pytest.skip("needs rights there")
    host.user_file.parent.mkdir(parents=True)
    host.user_file.symlink_to(host.user_file)
    assert "cannot be read" in host("remove", "a", "--yes", status=1).stderr
