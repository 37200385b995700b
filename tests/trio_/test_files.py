"""Replacement of other programs' files: links, modes, copies, and changes at the same time."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import nullcontext
from pathlib import Path

import pytest

from mcp_trio import _files
from mcp_trio._files import (
    HAS_LOCKS,
    FileChanged,
    home_directory,
    keep_copy,
    lock_file,
    read_regular_file,
    read_snapshot,
    replace_file,
    replace_output,
    sync_directory,
    user_directory,
    write_output,
)


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def names_in(directory: Path) -> set[str]:
    return {path.name for path in directory.iterdir()}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mcp.json"
    path.write_bytes(b"old")
    path.chmod(0o640)
    return path


def test_replace_file_keeps_mode_and_a_private_copy(file: Path) -> None:
    copy = replace_file(read_snapshot(file), b"new", private=True)
    assert file.read_bytes() == b"new"
    assert mode_of(file) == 0o640
    assert copy == file.with_name("mcp.json.mcp-trio-backup")
    assert copy.read_bytes() == b"old"
    assert mode_of(copy) == 0o600
    assert names_in(file.parent) == {file.name, copy.name}


def test_replace_file_again_replaces_the_copy(file: Path) -> None:
    replace_file(read_snapshot(file), b"second", private=True)
    copy = replace_file(read_snapshot(file), b"third", private=True)
    assert copy is not None
    assert copy.read_bytes() == b"second"


def test_replace_file_behind_links_keeps_the_links(file: Path, tmp_path: Path) -> None:
    """Dotfile managers link from the home directory into a repository."""
    home = tmp_path / "home"
    home.mkdir()
    (home / "step").symlink_to(os.path.relpath(file, home))
    (home / "mcp.json").symlink_to("step")
    copy = replace_file(read_snapshot(home / "mcp.json"), b"new", private=True)
    assert (home / "mcp.json").is_symlink()
    assert file.read_bytes() == b"new"
    assert not file.is_symlink()
    assert copy is not None
    assert copy.parent == file.parent
    assert names_in(home) == {"step", "mcp.json"}


def test_replace_file_behind_a_dangling_link_creates_the_target(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("missing/mcp.json")
    assert replace_file(read_snapshot(tmp_path / "link"), b"new", private=True) is None
    assert (tmp_path / "missing" / "mcp.json").read_bytes() == b"new"


@pytest.mark.parametrize(
    ("private", "mask", "mode", "outer"),
    [
        (True, 0o027, 0o600, 0o700),
        (False, 0o027, 0o640, 0o750),
        (True, 0, 0o600, 0o700),
        (False, 0, 0o666, 0o777),
    ],
)
def test_replace_file_missing_with_directories_creates_them(
    tmp_path: Path, private: bool, mask: int, mode: int, outer: int
) -> None:
    path = tmp_path / "a" / "b" / "mcp.json"
    before = os.umask(mask)
    try:
        assert replace_file(read_snapshot(path), b"new", private=private) is None
    finally:
        os.umask(before)
    assert path.read_bytes() == b"new"
    assert mode_of(path) == mode
    assert mode_of(path.parent) == outer
    assert names_in(path.parent) == {"mcp.json"}


def test_replace_file_changed_meanwhile_writes_nothing(file: Path) -> None:
    snapshot = read_snapshot(file)
    file.write_bytes(b"theirs")
    with pytest.raises(FileChanged):
        replace_file(snapshot, b"new", private=True)
    assert file.read_bytes() == b"theirs"
    assert not [name for name in names_in(file.parent) if name.startswith(".")]


@pytest.mark.parametrize("how", ["created", "deleted", "linked elsewhere"])
def test_replace_file_created_or_deleted_meanwhile_writes_nothing(
    file: Path, tmp_path: Path, how: str
) -> None:
    """The path changed after the snapshot, so neither the old target nor the new one is written."""
    path = tmp_path / "link"
    if how != "created":
        path.symlink_to("mcp.json")
    snapshot = read_snapshot(path)
    other = tmp_path / "other.json"
    other.write_bytes(b"old")
    path.unlink(missing_ok=True)
    if how == "created":
        path.write_bytes(b"theirs")
    elif how == "linked elsewhere":
        path.symlink_to("other.json")
    with pytest.raises(FileChanged):
        replace_file(snapshot, b"new", private=True)
    assert file.read_bytes() == other.read_bytes() == b"old"
    assert path.exists() == (how != "deleted")


def test_replace_file_created_in_the_last_moment_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even after the last check, a file that another program creates isn't overwritten."""
    path = tmp_path / "mcp.json"
    snapshot = read_snapshot(path)

    def read_then_create(asked: Path) -> _files.FileSnapshot:
        found = read_snapshot(asked)
        path.write_bytes(b"theirs")
        return found

    monkeypatch.setattr(_files, "read_snapshot", read_then_create)
    with pytest.raises(FileChanged):
        replace_file(snapshot, b"new", private=True)
    assert path.read_bytes() == b"theirs"
    assert names_in(tmp_path) == {"mcp.json"}


def test_replace_file_without_hard_links_creates_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr("pathlib.Path.hardlink_to", refuse)
    path = tmp_path / "mcp.json"
    assert replace_file(read_snapshot(path), b"new", private=True) is None
    assert names_in(tmp_path) == {"mcp.json"}


def test_replace_file_with_hard_links_is_refused(file: Path) -> None:
    file.with_name("other").hardlink_to(file)
    with pytest.raises(OSError, match="several hard links"):
        replace_file(read_snapshot(file), b"new", private=True)
    assert file.read_bytes() == b"old"


def test_replace_file_write_protected_is_refused(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rename would succeed: it needs the right to write to the directory only."""
    monkeypatch.setattr(os, "access", lambda path, right: False)  # root may write to any file
    with pytest.raises(PermissionError, match="write-protected"):
        replace_file(read_snapshot(file), b"new", private=True)
    assert file.read_bytes() == b"old"


def test_replace_file_of_another_user_keeps_the_owner_or_is_refused(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Root may give the new file to its owner; others must not take the file over."""
    owners = []
    monkeypatch.setattr(os, "chown", lambda path, user, group: owners.append((user, group)))
    snapshot = read_snapshot(file)
    state = os.stat_result((*snapshot.state[:4], 4242, 4243, *snapshot.state[6:]))  # type: ignore[index]
    theirs = _files.FileSnapshot(snapshot.path, snapshot.target, snapshot.data, state)
    replace_file(theirs, b"new", private=True)
    assert owners == [(4242, 4243)] * 2  # of the file and of the copy

    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "chown", refuse)
    theirs = _files.FileSnapshot(snapshot.path, snapshot.target, b"new", state)
    with pytest.raises(PermissionError):
        replace_file(theirs, b"newer", private=True)
    assert file.read_bytes() == b"new"
    assert keep_copy(theirs) is not None  # stays ours
    assert not [name for name in names_in(file.parent) if name.startswith(".")]


@pytest.mark.parametrize(
    ("user", "group", "is_given"), [(0, 0, False), (1, 0, True), (0, 1, True), (1, 1, True)]
)
def test_replace_file_changes_only_another_owner(
    file: Path, user: int, group: int, is_given: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some file systems refuse even a change to the same owner."""
    owners = []
    monkeypatch.setattr(os, "chown", lambda path, *owner: owners.append(owner))
    snapshot = read_snapshot(file)
    assert snapshot.state is not None
    owner = (snapshot.state.st_uid + user, snapshot.state.st_gid + group)
    state = os.stat_result((*snapshot.state[:4], *owner, *snapshot.state[6:]))
    theirs = _files.FileSnapshot(snapshot.path, snapshot.target, snapshot.data, state)
    replace_file(theirs, b"new", private=True)
    assert owners == ([owner] * 2 if is_given else [])


def test_read_snapshot_that_may_not_look_at_links_says_so(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("pathlib.Path.resolve", refuse)
    with pytest.raises(PermissionError, match="denied"):
        read_snapshot(file)


def test_read_snapshot_of_no_regular_file_is_an_error(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "loop").symlink_to("loop")
    for name in "fifo", "loop", ".":
        with pytest.raises(OSError):  # noqa: PT011 - the system words one of them
            read_snapshot(tmp_path / name)


def test_read_snapshot_too_large_is_an_error(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_files, "_MAX_SIZE", 2)
    with pytest.raises(OSError, match="is larger than"):
        read_snapshot(file)


def test_keep_copy_of_missing_file_returns_none(tmp_path: Path) -> None:
    assert keep_copy(read_snapshot(tmp_path / "missing")) is None
    assert names_in(tmp_path) == set()


@pytest.mark.parametrize(("size", "is_read"), [(5, True), (6, True), (7, False)])
def test_read_regular_file_has_a_largest_size(tmp_path: Path, size: int, is_read: bool) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x" * size)
    with nullcontext() if is_read else pytest.raises(OSError, match="is larger than"):
        data, state = read_regular_file(path, max_size=6)
        assert (len(data), state.st_size) == (size, size)


def test_read_regular_file_refuses_a_link_if_asked_to(file: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(file)
    assert read_regular_file(link, max_size=9)[0] == b"old"
    with pytest.raises(OSError, match="symbolic links"):
        read_regular_file(link, max_size=9, follow_links=False)


# -- Files of our own ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mask", "mode"), [(0o027, 0o640), (0o077, 0o600), (0o022, 0o644), (0, 0o666)]
)
def test_write_output_of_a_new_file_has_the_mode_that_the_umask_leaves(
    tmp_path: Path, mask: int, mode: int
) -> None:
    path = tmp_path / "out"
    before = os.umask(mask)
    try:
        write_output(path, b"new")
        assert os.umask(mask) == mask  # it is looked at by changing it
    finally:
        os.umask(before)
    assert (path.read_bytes(), mode_of(path)) == (b"new", mode)


def test_write_output_keeps_the_mode_of_a_file(file: Path) -> None:
    write_output(file, b"new")
    assert (file.read_bytes(), mode_of(file)) == (b"new", 0o640)
    assert names_in(file.parent) == {file.name}


@pytest.mark.parametrize("target", ["mcp.json", "missing", "link"])
def test_write_output_through_a_link_to_a_file_is_refused(file: Path, target: str) -> None:
    """Another user may have put it there. One that leads nowhere, or to itself, is refused, too."""
    link = file.with_name("link")
    link.symlink_to(target)
    with pytest.raises(OSError, match="is a symbolic link: remove it") as caught:
        write_output(link, b"new")
    assert (caught.value.errno, caught.value.filename) == (errno.ELOOP, str(link))
    assert link.is_symlink()
    assert file.read_bytes() == b"old"
    assert names_in(file.parent) == {"mcp.json", "link"}


@pytest.mark.parametrize("linked", [False, True])
def test_write_output_to_a_pipe_sends_the_bytes(tmp_path: Path, linked: bool) -> None:
    """As for `/dev/stdout`, which is a link."""
    path = fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    if linked:
        path = tmp_path / "link"
        path.symlink_to(fifo)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_output(path, b"new")
        assert os.read(reader, 100) == b"new"
    finally:
        os.close(reader)
    assert path.is_symlink() is linked
    assert stat.S_ISFIFO(fifo.stat().st_mode)


def test_write_output_to_a_directory_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError):
        write_output(tmp_path, b"new")
    assert names_in(tmp_path) == set()


def test_replace_output_is_private_unless_a_mode_is_given(file: Path) -> None:
    replace_output(file, b"new")
    assert (file.read_bytes(), mode_of(file)) == (b"new", 0o600)
    replace_output(file, b"newer", mode=stat.S_IFREG | 0o644)
    assert (file.read_bytes(), mode_of(file)) == (b"newer", 0o644)
    assert names_in(file.parent) == {file.name}


def test_replace_output_that_fails_names_the_file_and_leaves_none(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr("pathlib.Path.replace", refuse)
    with pytest.raises(OSError, match="not permitted") as caught:
        replace_output(file, b"new")
    assert (caught.value.strerror, caught.value.filename) == ("Operation not permitted", str(file))
    assert names_in(file.parent) == {file.name}


@pytest.mark.skipif(os.name != "posix", reason="Windows cannot open a directory")
def test_replaced_file_and_its_directory_reach_the_disk(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a power failure there is the old file or the new one, and not an empty one."""
    synced: list[int | None] = []

    def sync(number: int) -> None:
        state = os.fstat(number)
        synced.append(None if stat.S_ISDIR(state.st_mode) else state.st_size)

    monkeypatch.setattr(os, "fsync", sync)
    replace_file(read_snapshot(file), b"newer", private=True)
    assert synced == [5, 3, None]  # the file, the copy, and then their directory

    def refuse(_: int) -> None:
        raise OSError(22, "Invalid argument")

    monkeypatch.setattr(os, "fsync", refuse)
    sync_directory(file.parent)  # some file systems cannot


@pytest.mark.skipif(not HAS_LOCKS, reason="Windows locks nothing")
def test_lock_file_has_one_holder_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file is created with mode 0600, stays, and isn't opened through a link."""
    path = tmp_path / "lock"
    for _ in range(2):
        release = lock_file(path)
        assert release is not None
        assert lock_file(path) is None
        assert mode_of(path) == 0o600
        release()
    (tmp_path / "link").symlink_to(path)
    with pytest.raises(OSError, match="symbolic links"):
        lock_file(tmp_path / "link")

    def fail(*_: object) -> None:
        raise OSError(37, "No locks available")

    monkeypatch.setattr("fcntl.flock", fail)
    with pytest.raises(OSError, match="No locks available"):
        lock_file(path)


def test_lock_file_without_locks_lets_all_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on Windows, where no file is created either."""
    monkeypatch.setattr(_files, "HAS_LOCKS", False)
    for _ in range(2):
        release = lock_file(tmp_path / "lock")
        assert release is not None
        release()
    assert names_in(tmp_path) == set()


@pytest.mark.skipif(os.name == "nt", reason="Windows has another variable")
@pytest.mark.parametrize(
    ("environ", "home", "cache"),
    [
        ({"HOME": "/h"}, "/h", "/h/.cache/mcp-trio"),
        ({"HOME": "/h", "XDG_CACHE_HOME": "/c"}, "/h", "/c/mcp-trio"),
        ({"HOME": "/h", "XDG_CACHE_HOME": "c"}, "/h", "/h/.cache/mcp-trio"),
        ({"HOME": "/h", "XDG_CACHE_HOME": "", "USERPROFILE": "/u"}, "/h", "/h/.cache/mcp-trio"),
        ({"HOME": "h"}, None, None),
        ({}, None, None),
    ],
)
def test_directories_of_the_user_are_absolute(
    environ: dict[str, str], home: str | None, cache: str | None
) -> None:
    """A relative path in a variable isn't used. Without one the system is asked."""
    expected = Path.home() if home is None else Path(home)
    assert home_directory(environ) == expected
    found = user_directory("XDG_CACHE_HOME", ".cache", environ=environ)
    assert found == (expected / ".cache" / "mcp-trio" if cache is None else Path(cache))
