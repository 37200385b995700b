"""`mcp-trio servers import`: what is copied from files of other programs, and what is asked."""

from __future__ import annotations

import stat
import sys
from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.harness.world.command import Terminal

if TYPE_CHECKING:
    from pathlib import Path

    from .conftest import HostFiles

GITHUB: Final = {
    "command": "npx",
    "args": ["-y", "github", "${env:MODE}"],
    "env": {"GITHUB_TOKEN": "CANARY", "PLAIN": "1"},
}
IMPORTED: Final = {
    "type": "stdio",
    "command": "npx",
    "args": ["-y", "github", "${MODE}"],
    "env": {"GITHUB_TOKEN": "${GITHUB_TOKEN}", "PLAIN": "1"},
}
DOCS: Final = {"url": "https://h/mcp"}


def write_cursor(host: HostFiles, **servers: Any) -> Path:
    servers = servers or {"github": GITHUB, "docs": DOCS}
    return host.write(host.home / ".cursor" / "mcp.json", {"mcpServers": servers})


def test_import_with_yes_writes_references_for_secrets_and_says_so(host: HostFiles) -> None:
    """A secret is never copied unasked; the user learns which variable to set instead."""
    source = write_cursor(host)
    before = source.read_bytes()
    result = host("import", "--from", "cursor", "--yes")
    assert host.read(host.user_file) == {
        "github": IMPORTED,
        "docs": {"type": "http", "url": "https://h/mcp"},
    }
    assert stat.S_IMODE(host.user_file.stat().st_mode) == 0o600
    assert source.read_bytes() == before
    lines = result.stderr.splitlines()
    assert lines[0] == f"For you, in all projects: {host.user_file}"
    assert lines[-2:] == [
        f"mcp-trio: github, docs are in {host.user_file}",
        (
            "mcp-trio: GITHUB_TOKEN of github is ${GITHUB_TOKEN}, not its value: set the variable"
            " GITHUB_TOKEN"
        ),
    ]
    assert '+     "PLAIN": "(hidden)"' in lines


def test_import_of_named_servers_takes_those_only(host: HostFiles) -> None:
    write_cursor(host)
    host("import", "docs", "--from", "cursor", "--yes", "--scope", "project")
    assert list(host.read(host.project_file)) == ["docs"]


def test_import_again_changes_nothing(host: HostFiles) -> None:
    write_cursor(host)
    host("import", "--from", "cursor", "--yes")
    before = host.user_file.stat()
    result = host("import", "--from", "cursor", "--yes")
    assert f"github, docs are already in {host.user_file}" in result.stderr
    assert host.user_file.stat().st_ino == before.st_ino


def test_import_dry_run_shows_on_stdout_and_writes_nothing(host: HostFiles) -> None:
    write_cursor(host)
    result = host("import", "--from", "cursor", "--dry-run")
    assert '+     "GITHUB_TOKEN": "${GITHUB_TOKEN}",' in result.stdout.splitlines()
    assert host.written == [".cursor/mcp.json"]


def test_import_without_terminal_and_yes_is_refused(host: HostFiles) -> None:
    write_cursor(host)
    result = host("import", "--from", "cursor", status=3)
    assert "Add --yes to import the servers, with references to variables in place" in result.stderr
    assert host.written == [".cursor/mcp.json"]


@pytest.mark.parametrize(
    ("answers", "status", "token"),
    [
        (["yes", "yes"], 0, "CANARY"),
        (["no", "yes"], 0, "${GITHUB_TOKEN}"),
        (["yes", "no"], 3, None),
        (["\x04"], 3, None),
    ],
)
def test_import_at_a_terminal_asks_about_secrets(
    host: HostFiles, answers: list[str], status: int, token: str | None
) -> None:
    """The user may copy the secret, keep a reference, or cancel, and never sees its value."""
    write_cursor(host)
    with Terminal("servers", "import", "--from", "cursor", "github", **host.env) as terminal:
        shown = ""
        for answer in answers:
            text = answer if answer == "\x04" else f"{answer}\n"
            shown += terminal.type(text, behind="decline (Ctrl")
        shown += terminal.rest()
    assert terminal.status == status, shown
    assert "GITHUB_TOKEN of github looks like a" in shown
    assert "CANARY" not in shown
    if token is None:
        assert not host.user_file.exists()
    else:
        assert host.read(host.user_file)["github"]["env"]["GITHUB_TOKEN"] == token


def test_import_of_taken_name_is_refused_without_replace(host: HostFiles) -> None:
    write_cursor(host)
    old = {"mcpServers": {"docs": {"command": "mine"}, "z": {"command": "z"}}}
    host.write(host.user_file, old)
    for options in ("--yes",), (), ("--dry-run",):
        result = host("import", "--from", "cursor", *options, status=2)
        assert "has other servers with these names: docs (line 1)" in result.stderr
    host("import", "--from", "cursor", "--yes", "--replace")
    found = host.read(host.user_file)
    assert found["docs"] == {"type": "http", "url": "https://h/mcp"}
    assert list(found) == ["docs", "z", "github"]


@pytest.mark.parametrize(("answer", "docs"), [("yes", "https://h/mcp"), ("no", None)])
def test_import_of_taken_name_is_asked_about_at_a_terminal(
    host: HostFiles, answer: str, docs: str | None
) -> None:
    write_cursor(host, docs=DOCS, more={"command": "more"})
    host.write(host.user_file, {"mcpServers": {"docs": {"command": "mine"}}})
    with Terminal("servers", "import", "--from", "cursor", **host.env) as terminal:
        shown = terminal.type(f"{answer}\n", behind="decline (Ctrl")
        terminal.type("yes\n", behind="change? yes, or no")
        rest = terminal.rest()
    assert "has docs in line 1. Replace it?" in " ".join(shown.split())
    assert terminal.status == 0, rest
    found = host.read(host.user_file)
    assert (found["docs"].get("url"), found["more"]["command"]) == (docs, "more")


def test_import_of_vscode_inputs_gives_variables(host: HostFiles) -> None:
    entry = {"type": "stdio", "command": "x", "env": {"KEY": "${input:api-key}"}}
    inputs = [{"id": "api-key", "type": "promptString", "password": True}]
    path = host.home / ".config" / "Code" / "User" / "mcp.json"
    host.write(path, {"servers": {"a": entry}, "inputs": inputs})
    result = host("import", "--from", "vscode", "--yes")
    assert host.read(host.user_file)["a"]["env"] == {"KEY": "${API_KEY}"}
    assert "a: the input api-key is now the variable API_KEY" in result.stderr


def test_import_of_codex_reads_toml(host: HostFiles) -> None:
    text = '[mcp_servers.a]\nurl = "https://h/"\nbearer_token_env_var = "B"\n'
    host.write(host.home / ".codex" / "config.toml", text)
    host("import", "--from", "codex", "--yes")
    assert host.read(host.user_file)["a"]["headers"] == {"Authorization": "Bearer ${B}"}


def test_import_of_what_cannot_be_translated(host: HostFiles) -> None:
    """All servers: the others are copied. A named one: an error."""
    write_cursor(host, a={"command": "x", "envFile": "/f"}, b={"command": 5}, c={"command": "c"})
    result = host("import", "--from", "cursor", "--yes")
    assert list(host.read(host.user_file)) == ["c"]
    assert result.stderr.count("mcp-trio: left out: ") == 2
    for name, problem in ("a", "a file of variables"), ("b", "must be a string"):
        result = host("import", "--from", "cursor", name, "--yes", "--scope", "local", status=1)
        assert problem in result.stderr
    assert not host.local_file.exists()


@pytest.mark.parametrize(
    ("words", "status", "problem"),
    [
        (("--from", "cursor", "x"), 2, "has no server x; its servers are github, docs."),
        (("--from", "gemini"), 1, "Gemini CLI has no file "),
        (("--from", "word"), 2, "invalid choice: 'word'"),
        (("--from", "zed"), 1, "Zed has no file "),
        (("--from-file", "none.json"), 1, "there is no file none.json"),
        ((), 2, "one of the arguments --from --from-file is required"),
        (("--from", "cursor", "--config", "c.toml", "--yes"), 2, "has the format of Codex"),
    ],
)
def test_import_impossible_is_an_error(
    host: HostFiles, words: tuple[str, ...], status: int, problem: str
) -> None:
    write_cursor(host)
    result = host("import", *words, status=status)
    assert problem in result.stderr
    assert host.written == [".cursor/mcp.json"]


# client, its file below the home directory, what the file has, and what is imported
OTHERS: Final[list[tuple[str, str, Any, dict[str, Any]]]] = [
    (
        "zed",
        ".config/zed/settings.json",
        '{"theme": "One", // mine\n"context_servers": {"a": {"command": "x", "args": ["y"]}}}',
        {"type": "stdio", "command": "x", "args": ["y"]},
    ),
    (
        "opencode",
        ".config/opencode/opencode.jsonc",
        {"mcp": {"a": {"type": "local", "command": ["x", "y"], "environment": {"K": "{env:V}"}}}},
        {"type": "stdio", "command": "x", "args": ["y"], "env": {"K": "${V}"}},
    ),
    (
        "vscode-settings",
        ".config/Code/User/settings.json",
        {"mcp": {"servers": {"a": {"type": "http", "url": "https://h/"}}}},
        {"type": "http", "url": "https://h/"},
    ),
    (
        "windsurf",
        ".codeium/windsurf/mcp_config.json",
        {"mcpServers": {"a": {"serverUrl": "https://h/", "headers": {"X": "${env:V}"}}}},
        {"type": "http", "url": "https://h/", "headers": {"X": "${V}"}},
    ),
    (
        "cline",
        ".cline/data/settings/cline_mcp_settings.json",
        {"mcpServers": {"a": {"type": "streamableHttp", "url": "https://h/", "timeout": 60}}},
        {"type": "http", "url": "https://h/", "timeout": 60_000},
    ),
    (
        "copilot-cli",
        ".copilot/mcp-config.json",
        {"mcpServers": {"a": {"type": "local", "command": "x", "tools": ["read"]}}},
        {"type": "stdio", "command": "x", "args": [], "allowedTools": ["read"]},
    ),
    (
        "lm-studio",
        ".lmstudio/mcp.json",
        {"mcpServers": {"a": {"url": "https://h/"}}},
        {"type": "http", "url": "https://h/"},
    ),
]


@pytest.mark.parametrize(("client", "file", "content", "entry"), OTHERS)
def test_import_knows_the_files_of_other_programs(
    host: HostFiles, client: str, file: str, content: Any, entry: dict[str, Any]
) -> None:
    path = host.write(host.home / file, content)
    assert host.run_here("import", "--from", client, "--yes") == 0
    assert host.read(host.user_file) == {"a": entry}
    assert host.run_here("import", "--from-file", str(path), "--yes", "--scope", "local") == 0
    assert host.read(host.local_file) == {"a": entry}


def test_import_of_file_without_a_member_around_the_servers(
    host: HostFiles, capsys: pytest.CaptureFixture[str]
) -> None:
    """Values of its variables stay hidden, as in every other file."""
    servers = {"a": {"command": "x", "environment": {"API_TOKEN": "CANARY", "PLAIN": "CANARY2"}}}
    path = host.write(host.project / "copied.json", servers)
    assert host.run_here("import", "--from-file", str(path), "--yes") == 0
    entry = host.read(host.user_file)["a"]
    assert entry["env"] == {"API_TOKEN": "${API_TOKEN}", "PLAIN": "CANARY2"}
    shown = capsys.readouterr()
    assert "CANARY" not in shown.out + shown.err


def test_import_of_goose_reads_its_yaml(
    host: HostFiles, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without PyYAML the error has the cure."""
    text = "extensions:\n  a:\n    type: stdio\n    cmd: npx\n    env_keys: [TOKEN]\n"
    path = host.write(host.home / ".config" / "goose" / "config.yaml", text)
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "yaml", None)
        assert host.run_here("import", "--from", "goose", "--yes") == 1
    assert f"{path}:1:1: YAML is read with PyYAML" in capsys.readouterr().err
    assert host.run_here("import", "--from", "goose", "--yes") == 0
    assert host.read(host.user_file)["a"] == {
        "type": "stdio",
        "command": "npx",
        "args": [],
        "env": {"TOKEN": "${TOKEN}"},
    }


@pytest.mark.parametrize(
    "command",
    [
        ["add", "b", "--yes", "--", "npx", "y"],
        ["remove", "a", "--yes"],
        ["disable", "a"],
        ["import", "--from", "cursor", "--yes", "a"],
    ],
)
def test_yaml_file_is_read_and_never_changed(
    host: HostFiles, capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    write_cursor(host, a={"command": "a"})
    text = "mcpServers: {a: {command: npx}}\n"
    path = host.write(host.project / "servers.yaml", text)
    place = command.index("--") if "--" in command else len(command)
    status = host.run_here(*command[:place], "--config", str(path), *command[place:])
    assert status == 1
    assert "a YAML file is read, and not changed" in capsys.readouterr().err
    assert path.read_text() == text


def test_import_from_file_in_unknown_shape_says_so(
    host: HostFiles, capsys: pytest.CaptureFixture[str]
) -> None:
    path = host.write(host.project / "my.json", {"server": {"a": {"command": "x"}}, "b": 1})
    assert host.run_here("import", "--from-file", str(path), "--yes") == 1
    shown = capsys.readouterr().err
    assert f"left out: {path}:1:1: the file has no servers that are understood" in shown
    assert "there is no server to import; nothing was changed" in shown
    assert not host.user_file.exists()


def test_import_from_file_that_is_not_json_is_an_error(host: HostFiles) -> None:
    path = host.write(host.home / ".cursor" / "mcp.json", "{")
    result = host("import", "--from", "cursor", "--yes", status=1)
    assert result.stderr == f"mcp-trio: {path}:1:1: this object or array has no end\n"


def test_import_from_file_without_servers_changes_nothing(host: HostFiles) -> None:
    host.write(host.home / ".cursor" / "mcp.json", "{}")
    result = host("import", "--from", "cursor", "--yes")
    assert "there is no server to import" in result.stderr
    assert not host.user_file.exists()


def test_import_of_very_many_servers_needs_names(host: HostFiles) -> None:
    write_cursor(host, **{f"s{n}": {"command": "x"} for n in range(101)})
    result = host("import", "--from", "cursor", "--yes", status=2)
    assert "has 101 servers: name those to import, at most 100" in result.stderr
    host("import", "--from", "cursor", "--yes", "s1", "s100")
    assert list(host.read(host.user_file)) == ["s1", "s100"]


def test_import_without_secrets_copies_values(host: HostFiles) -> None:
    write_cursor(host, a={"url": "https://h/?token=x", "headers": {"X-Y": "1"}})
    result = host("import", "--from", "cursor", "--yes")
    assert host.read(host.user_file)["a"]["headers"] == {"X-Y": "1"}
    assert "a: its address seems to have a secret, which is copied" in result.stderr


def test_import_broken_servers_are_named_when_others_are_copied(host: HostFiles) -> None:
    write_cursor(host, a={"command": 5}, b={"command": "b"})
    result = host("import", "--from", "cursor", "--yes")
    assert list(host.read(host.user_file)) == ["b"]
    assert "mcp-trio: left out: " in result.stderr


def test_import_keeps_what_restricts_and_leaves_out_what_it_cannot_say(host: HostFiles) -> None:
    """A server must not become less restricted by the copy, so two of four aren't imported."""
    text = """
        [mcp_servers.a]
        command = "a"
        enabled_tools = ["read"]
        disabled_tools = ["write"]

        [mcp_servers.b]
        command = "b"
        default_tools_approval_mode = "prompt"

        [mcp_servers.c]
        command = "c"
        sandbox_mode = "read-only"

        [mcp_servers.d]
        command = "d"
        enabled = false
    """
    host.write(host.home / ".codex" / "config.toml", text)
    result = host("import", "--from", "codex", "--yes")
    found = host.read(host.user_file)
    assert (found["a"]["allowedTools"], found["a"]["deniedTools"]) == (["read"], ["write"])
    assert found["d"]["disabled"] is True
    assert list(found) == ["a", "d"]
    assert result.stderr.count("mcp-trio: left out: ") == 2
    assert "asks before each call, which this format cannot say" in result.stderr
    assert "sandbox_mode: restricts the server in a way that is not understood" in result.stderr
    for name in "b", "c":
        host("import", "--from", "codex", name, "--yes", "--scope", "local", status=1)
    assert not host.local_file.exists()


def test_import_replaces_no_entry_whose_lists_would_be_lost(host: HostFiles) -> None:
    write_cursor(host, docs=DOCS)
    old = {"mcpServers": {"docs": {**DOCS, "type": "http", "deniedTools": ["write"]}}}
    host.write(host.user_file, old)
    result = host("import", "--from", "cursor", "--yes", "--replace", status=2)
    assert "docs has deniedTools in its entry, which would be lost" in result.stderr
    assert host.read(host.user_file) == old["mcpServers"]
