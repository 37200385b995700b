"""Symbolic links that come with a checkout, in the places of files that commands write."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

from mcp_trio.cli import main
from mcp_trio.host import _config_files
from tests.trio_.cli.servers.conftest import HostFiles

if TYPE_CHECKING:
    from pathlib import Path

ADD = ("servers", "add", "new", "--yes", "--", "true")
INSTALL = ("install", "server.py", "--no-check", "--name", "new", "--yes")
SERVERS = {"mcpServers": {"old": {"command": "true"}}}


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> HostFiles:
    monkeypatch.setattr(_config_files, "_MANAGED_FILE", tmp_path / "no" / "managed.json")
    host = HostFiles(tmp_path, monkeypatch)
    for name, value in host.env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("PATH", "")  # without the programs of clients
    host.write(host.project / "server.py", "")
    monkeypatch.chdir(host.project)
    return host


def contents(directory: Path) -> dict[str, bytes]:
    files = (path for path in directory.rglob("*") if path.is_file() and not path.is_symlink())
    return {os.path.relpath(path, directory): path.read_bytes() for path in files}


WRITERS: tuple[tuple[tuple[str, ...], str], ...] = (
    ((*ADD[:3], "--scope", "project", *ADD[3:]), ".mcp.json"),
    ((*ADD[:3], "--scope", "local", *ADD[3:]), ".mcp.local.json"),
    ((*ADD[:3], "--config", ".mcp.json", *ADD[3:]), ".mcp.json"),
    ((*ADD[:3], "--config", "any.json", *ADD[3:]), "any.json"),
    (("servers", "remove", "old", "--scope", "project", "--yes"), ".mcp.json"),
    (("servers", "disable", "old", "--scope", "local"), ".mcp.local.json"),
    (("servers", "disable", "old", "--config", ".vscode/../.mcp.json"), ".mcp.json"),
    ((*INSTALL, "--scope", "project", "--client", "claude-code"), ".mcp.json"),
    ((*INSTALL, "--scope", "project", "--client", "cursor"), ".cursor/mcp.json"),
    ((*INSTALL, "--scope", "project", "--client", "gemini"), ".gemini/settings.json"),
)


@pytest.mark.parametrize(("words", "file"), WRITERS, ids=lambda value: " ".join(value)[:60])
@pytest.mark.parametrize("kind", ["absolute", "relative", "link to a link"])
def test_file_of_a_project_is_not_written_through_a_link_out_of_it(
    host: HostFiles,
    words: tuple[str, ...],
    file: str,
    kind: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The user's file starts programs without a question: a server must not get into it."""
    (host.project / ".vscode").mkdir()
    outside = host.write(host.user_file, SERVERS)
    path = host.project / file
    path.parent.mkdir(exist_ok=True)
    if kind == "link to a link":
        (host.project / "step").symlink_to(outside)
    path.symlink_to(
        {
            "absolute": str(outside),
            "relative": os.path.relpath(outside, path.parent),
            "link to a link": str(host.project / "step"),
        }[kind]
    )
    before = contents(host.home)
    assert main(list(words)) == 1
    shown = " ".join(capsys.readouterr().err.split())
    assert f"is a link that leads out of the project {host.project}, to {outside};" in shown
    assert "nothing was changed" in shown
    assert contents(host.home) == before


@pytest.mark.parametrize(("words", "file"), WRITERS[-2:], ids=lambda value: " ".join(value)[:60])
def test_file_in_a_directory_that_is_a_link_out_of_the_project_is_not_written(
    host: HostFiles, words: tuple[str, ...], file: str
) -> None:
    path = host.project / file
    outside = host.write(host.home / "elsewhere" / path.name, SERVERS)
    path.parent.symlink_to(outside.parent)
    before = contents(host.home)
    assert main(list(words)) == 1
    assert contents(host.home) == before


@pytest.mark.parametrize(("words", "file"), WRITERS[:4], ids=lambda value: " ".join(value)[:60])
def test_file_outside_of_the_project_is_not_created_through_a_link(
    host: HostFiles, words: tuple[str, ...], file: str
) -> None:
    (host.project / file).symlink_to(host.user_file)
    before = contents(host.home)
    assert main(list(words)) == 1
    assert contents(host.home) == before


@pytest.mark.parametrize("words", [WRITERS[0][0], WRITERS[2][0]])
@pytest.mark.parametrize("options", [(), ("--dry-run",)])
def test_link_within_the_project_is_followed_and_the_file_shown(
    host: HostFiles,
    words: tuple[str, ...],
    options: tuple[str, ...],
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The link stays a link, and the user reads which file is really written."""
    target = host.write(host.project / "config" / "servers.json", {})
    link = host.project / ".mcp.json"
    link.symlink_to("config/servers.json")
    at = words.index("--")
    assert main([*words[:at], *options, *words[at:]]) == 0
    captured = capsys.readouterr()
    shown = captured.out + captured.err
    assert f"{target} (through the link {link})\n" in shown
    if not options:
        assert f"new is in {target} (through the link {link})\n" in shown
        assert "new" in json.loads(target.read_text())["mcpServers"]
    assert link.is_symlink()


def test_link_of_the_user_is_followed_and_the_file_shown(
    host: HostFiles, capsys: pytest.CaptureFixture[str]
) -> None:
    """Dotfile managers keep such files in a repository."""
    target = host.write(host.home / "dotfiles" / "mcp.json", {})
    host.user_file.parent.mkdir(parents=True)
    host.user_file.symlink_to(target)
    assert main(list(ADD)) == 0
    shown = capsys.readouterr().err
    assert f"For you, in all projects: {target} (through the link {host.user_file})\n" in shown
    assert f"new is in {target} (through the link {host.user_file})\n" in shown
