"""Files of the command, and the keys of servers in them."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

import pytest

from mcp_trio.cli._session import Target
from mcp_trio.cli.state._files import read_file, write_file
from mcp_trio.cli.state._noted_tasks import NotedTasks, _with_path
from mcp_trio.cli.state._server_key import key_of_server

if TYPE_CHECKING:
    from pathlib import Path


def test_file_is_written_with_its_directories_for_its_user_only(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "it"
    write_file(path, b"data")
    write_file(path, b"more data")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert list(path.parent.iterdir()) == [path]
    assert read_file(path, 100) == b"more data"
    assert read_file(path, 4) == b"more"


def test_file_that_is_missing_or_another_kind_is_not_read(tmp_path: Path) -> None:
    assert read_file(tmp_path / "missing", 10) is None
    assert read_file(tmp_path, 10) is None
    os.mkfifo(tmp_path / "pipe")
    assert read_file(tmp_path / "pipe", 10) is None
    (tmp_path / "empty").touch()
    assert read_file(tmp_path / "empty", 10) == b""


def test_file_that_cannot_be_replaced_leaves_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And one that cannot be read counts as missing."""
    path = tmp_path / "it"
    path.mkdir()
    with pytest.raises(OSError, match="directory"):
        write_file(path, b"data")
    assert list(tmp_path.iterdir()) == [path]

    def fail(*_: object) -> object:
        raise OSError("no")

    monkeypatch.setattr(os, "read", fail)
    (tmp_path / "unread").touch()
    assert read_file(tmp_path / "unread", 10) is None


@pytest.mark.parametrize(
    ("url", "found"),
    [
        ("http://x", "http://x/mcp"),
        ("http://x:1/", "http://x:1/mcp"),
        ("http://x/a", "http://x/a"),
        ("http://x/?a", "http://x/?a"),
        ("http://x/#a", "http://x/#a"),
        ("http://[x", "http://[x"),
    ],
)
def test_url_of_a_task_has_the_usual_path_if_it_has_no_other(url: str, found: str) -> None:
    assert _with_path(url) == found
    NotedTasks(Target(server=url))


def test_key_of_a_program_is_the_same_in_all_ways_to_name_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program on PATH doesn't depend on the directory, but its server may."""
    program = tmp_path / "bin" / "it"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    env = {"PATH": str(program.parent)}
    key = key_of_server((str(program), "a"), {}, None)
    assert key_of_server(("it", "a"), env, None) == key
    assert key_of_server(("bin/it", "a"), {}, None) == key
    assert key_of_server(("it", "a"), env, tmp_path) == key
    assert key_of_server(("it", "b"), env, None) != key
    assert key_of_server(("it", "a"), env, tmp_path / "bin") != key
    assert key_of_server(("it", "a"), {}, None) != key
    assert str(tmp_path) not in key
    assert key_of_server("http://x", {}, None) != key_of_server("http://y", {}, None)
    assert key_of_server("http://x", env, tmp_path) == key_of_server("http://x", {}, None)
