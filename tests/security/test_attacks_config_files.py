"""Configuration files that another user has left in a directory that both can write to."""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import mcp_trio
from mcp_core.host import Approvals, ServerApproval, digest_launch
from mcp_trio._files import read_snapshot
from mcp_trio.host import (
    MemoryApprovals,
    _config_files,
    _owners,
    find_config_files,
    single_config_file,
)
from mcp_trio.host._prepared_launch import prepare_launch
from tests.trio_.cli.servers.conftest import HostFiles

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_trio.host import ServerQuestion

pytestmark = pytest.mark.skipif(not _owners.HAS_OWNERS, reason="Windows has no owners of files")

ANOTHER = 12345  # the id of the attacker


def give_away(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give a file or link to another user. Who isn't root becomes another user instead."""
    if os.geteuid() == 0:
        os.chown(path, ANOTHER, -1, follow_symlinks=False)
    else:
        own = os.geteuid()
        monkeypatch.setattr(os, "geteuid", lambda: own + 1)


class Shared:
    """A directory such as /tmp: others have left `.git` and `.mcp.json` there, we work below it."""

    def __init__(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.host = HostFiles(path / "home", monkeypatch)
        self.directory = path / "shared"
        (self.directory / ".git").mkdir(parents=True)
        self.directory.chmod(0o1777)
        self.file = self.directory / ".mcp.json"
        self.marker = path / "ran"
        self.write_servers("spy", "notes")
        # The command changes to it.
        self.host.project = self.directory / "work"
        self.host.project.mkdir()
        self._monkeypatch = monkeypatch

    def write_servers(self, *names: str) -> None:
        program = ["-c", f"touch {shlex.quote(str(self.marker))}"]
        servers = {name: {"command": "/bin/sh", "args": program} for name in names}
        self.file.write_text(json.dumps({"mcpServers": servers}))

    def plant(self, how: str) -> None:
        """Let another user have written the file, or be able to."""
        if how == "owner":
            give_away(self.file, self._monkeypatch)
        elif how == "mode":
            self.file.chmod(0o666)
        elif how == "directory":
            self.directory.chmod(0o777)  # anyone can rename what is in it
        else:
            assert how == "link"
            target = self.file.rename(self.directory / "target.json")
            self.file.symlink_to(target.name)
            give_away(self.file, self._monkeypatch)


KINDS = ("owner", "mode", "directory", "link")


@pytest.fixture
def shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shared:
    monkeypatch.setattr(_config_files, "_MANAGED_FILE", tmp_path / "no" / "managed.json")
    shared = Shared(tmp_path, monkeypatch)
    for name, value in shared.host.env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("SUDO_UID", raising=False)
    return shared


@pytest.mark.parametrize("how", KINDS)
async def test_host_does_not_read_a_file_that_others_could_have_written(
    shared: Shared, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither a stored approval nor a callback that says yes to all helps the attacker."""
    files = single_config_file(shared.file)
    launch = prepare_launch(files, files.read(), "spy").launch
    approval = ServerApproval(launch=digest_launch(launch), approved=1.0)
    approvals = MemoryApprovals(Approvals().with_server(str(shared.file), "spy", approval))
    shared.plant(how)
    monkeypatch.chdir(shared.host.project)
    asked: list[ServerQuestion] = []

    def approve(question: ServerQuestion) -> bool:
        asked.append(question)
        return True

    async with mcp_trio.Host(approvals=approvals, on_approve_server=approve) as host:
        assert host.status() == {}
        assert host.configuration is not None
        (problem,) = host.configuration.problems
    assert asked == []
    assert not shared.marker.exists()
    assert problem.place.file == str(shared.file)
    assert "the file is refused: " in problem.problem
    assert "`--config FILE`, in a program `Host(FILE)`): then it is used" in problem.problem


@pytest.mark.parametrize("how", KINDS)
def test_file_of_others_shadows_no_server_of_the_user(shared: Shared, how: str) -> None:
    shared.host.write(shared.host.user_file, {"mcpServers": {"notes": {"command": "mine"}}})
    files = find_config_files(shared.host.project, {"HOME": str(shared.host.home)})
    before = files.read()
    assert {name: each.scope for name, each in before.servers.items()} == {
        "spy": "project",
        "notes": "project",
    }
    shared.plant(how)
    merged = files.read()
    assert {name: each.scope for name, each in merged.servers.items()} == {"notes": "user"}
    assert merged.omitted == ()


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (("servers", "list"), 1),
        (("servers", "get", "spy"), 2),
        (("servers", "remove", "spy", "--yes"), 2),
        (("servers", "enable", "spy"), 2),
        (("servers", "disable", "spy", "--scope", "project"), 2),
        (("servers", "add", "x", "--scope", "project", "--yes", "--", "true"), 1),
        (("servers", "add", "x", "--scope", "project", "--dry-run", "--", "true"), 1),
        (("call", "--server", "spy", "--yes", "tool"), 2),
        (("call", "mcp__spy__tool", "--yes"), 2),
        (("inspect", "--server", "spy", "--yes"), 2),
        (("fuzz", "--server", "spy"), 2),
        (("proxy", "--server", "spy"), 2),
    ],
)
@pytest.mark.parametrize("how", KINDS)
def test_command_names_the_file_of_others_and_the_way_out(
    shared: Shared,
    how: str,
    words: tuple[str, ...],
    status: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Every command reads the file: none may start its server or change it."""
    from mcp_trio.cli import main

    shared.plant(how)
    before = shared.file.read_bytes()
    monkeypatch.chdir(shared.host.project)
    assert main(list(words)) == status
    captured = capsys.readouterr()
    shown = " ".join((captured.out + captured.err).split())
    assert f"{shared.file}:1:1: the file is refused: " in shown
    assert "or name the file (`--config FILE`" in shown
    assert shared.file.read_bytes() == before
    assert not shared.marker.exists()


@pytest.mark.parametrize("how", KINDS)
def test_file_of_others_that_is_named_is_used(
    shared: Shared, how: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its servers need the approval of the user as before."""
    shared.plant(how)
    assert set(single_config_file(shared.file).read().servers) == {"spy", "notes"}
    assert shared.host.run_here("list", "--config", str(shared.file)) == 0
    assert "unapproved" in capsys.readouterr().out


def test_local_file_of_others_is_not_read(shared: Shared, monkeypatch: pytest.MonkeyPatch) -> None:
    shared.file = shared.file.rename(shared.directory / ".mcp.local.json")
    shared.plant("owner")
    merged = find_config_files(shared.host.project, {}).read()
    assert merged.servers == {}
    assert [each.place.file for each in merged.problems] == [str(shared.file)]


def test_own_file_in_a_shared_directory_is_read(shared: Shared) -> None:
    """Other users cannot rename our files in a directory with the sticky bit."""
    assert find_config_files(shared.host.project, {}).read().problems == ()


@pytest.mark.skipif(
    not _owners.HAS_OWNERS or os.geteuid() != 0, reason="only root gives files away"
)
@pytest.mark.parametrize(
    ("own", "caller", "is_read"),
    [
        (0, str(ANOTHER), True),
        (0, str(ANOTHER + 1), False),
        (0, "", False),
        (ANOTHER + 1, str(ANOTHER), False),  # anyone can set a variable
        (ANOTHER, "", True),
    ],
)
def test_file_of_the_caller_of_sudo_is_read_by_root_only(
    shared: Shared, own: int, caller: str, is_read: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared.plant("owner")
    monkeypatch.setattr(os, "geteuid", lambda: own)
    merged = find_config_files(shared.host.project, {"SUDO_UID": caller}).read()
    assert bool(merged.servers) is is_read
    assert bool(merged.problems) is not is_read


def own_file(shared: Shared) -> None:
    shared.file.unlink()
    shared.write_servers("mine")


def own_file_by_hard_link(shared: Shared) -> None:
    own = shared.directory / "own"
    own.write_text("{}")
    own.replace(shared.file)


@pytest.mark.parametrize("exchange", [own_file, own_file_by_hard_link])
def test_file_that_is_exchanged_after_it_was_read_is_refused(
    shared: Shared, exchange: Callable[[Shared], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another user puts our own file there between our read and our check."""
    shared.file.chmod(0o666)

    def read(path: Path) -> Any:
        snapshot = read_snapshot(path)
        if path == shared.file:
            exchange(shared)
        return snapshot

    monkeypatch.setattr(_config_files, "read_snapshot", read)
    merged = find_config_files(shared.host.project, {}).read()
    assert merged.servers == {}
    assert len(merged.problems) == 1


def test_file_of_others_is_read_where_files_have_no_owners(
    shared: Shared, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on Windows, which docs/explanation/systems.md says."""
    shared.plant("mode")
    monkeypatch.setattr(_owners, "HAS_OWNERS", False)
    assert set(find_config_files(shared.host.project, {}).read().servers) == {"spy", "notes"}
