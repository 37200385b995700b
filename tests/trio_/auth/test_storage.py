"""Token storage: saved values, file permissions, and what a failed attempt leaves."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from mcp_trio import FileStorage, MemoryStorage, TokenStorage
from mcp_trio.auth import _storage


@pytest.fixture(params=["memory", "file"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> TokenStorage:
    return MemoryStorage() if request.param == "memory" else FileStorage(tmp_path / "a" / "tokens")


def test_storage_saved_value_is_loaded(storage: TokenStorage) -> None:
    assert storage.load("one") is None
    storage.save("one", b"1")
    storage.save("one", b"secret")
    storage.save("t/../wo", b"2")
    assert (storage.load("one"), storage.load("t/../wo")) == (b"secret", b"2")
    storage.save("one", None)
    storage.save("never", None)
    assert (storage.load("one"), storage.load("t/../wo")) == (None, b"2")
    assert "secret" not in repr(storage)


@pytest.mark.requirement("AG-7")
def test_file_storage_is_readable_by_the_owner_only(tmp_path: Path) -> None:
    storage = FileStorage(tmp_path / "tokens")
    before = os.umask(0)
    try:
        storage.save("k", b"secret")
    finally:
        os.umask(before)
    (file,) = storage.directory.iterdir()
    assert file.stat().st_mode & 0o777 == 0o600
    assert storage.directory.stat().st_mode & 0o777 == 0o700
    file.chmod(0o644)
    with pytest.raises(PermissionError, match="open to other users"):
        storage.load("k")
    storage.save("k", b"new")
    assert storage.load("k") == b"new"


@pytest.mark.requirement("AG-7")
@pytest.mark.parametrize("mode", [0o777, 0o770, 0o702, 0o1777])
def test_file_storage_directory_that_others_may_write_to_raises(tmp_path: Path, mode: int) -> None:
    """They could replace files, for example with another account's."""
    storage = FileStorage(tmp_path / "to kens")
    storage.save("k", b"secret")
    storage.directory.chmod(mode)
    uses: list[Callable[[], object]] = [
        lambda: storage.load("k"),
        lambda: storage.save("k", b"new"),
        lambda: storage.lock("k"),
    ]
    for use in uses:
        with pytest.raises(PermissionError, match=r"may write to .* `chmod 700 '.*to kens'`"):
            use()
    storage.directory.chmod(0o755)
    assert storage.load("k") == b"secret"


@pytest.mark.requirement("AG-7")
def test_file_storage_directory_of_another_user_raises(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = FileStorage(tmp_path / "tokens")
    storage.save("k", b"secret")
    monkeypatch.setattr(os, "geteuid", lambda: storage.directory.stat().st_uid + 1)
    with pytest.raises(PermissionError, match="belongs to another user"):
        storage.load("k")
    with pytest.raises(PermissionError, match="belongs to another user"):
        storage.save("k", b"new")


def test_file_storage_does_not_read_links_or_pipes(tmp_path: Path) -> None:
    storage = FileStorage(tmp_path)
    storage.save("k", b"secret")
    (file,) = tmp_path.iterdir()
    elsewhere = file.rename(tmp_path / "elsewhere")
    file.symlink_to(elsewhere)
    with pytest.raises(OSError, match="symbolic links"):
        storage.load("k")
    file.unlink()
    os.mkfifo(file, 0o600)
    with pytest.raises(PermissionError, match="is no file"):
        storage.load("k")


def test_file_storage_failed_save_keeps_the_old_value(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = FileStorage(tmp_path)
    storage.save("k", b"old")

    def fail(*args: object) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(OSError, match="full"):
        storage.save("k", b"new")
    assert storage.load("k") == b"old"
    assert len(list(tmp_path.iterdir())) == 1


def test_file_storage_lock_is_exclusive(tmp_path: Path) -> None:
    one, other = FileStorage(tmp_path / "tokens"), FileStorage(tmp_path / "tokens")
    unlock = one.lock("k")
    assert unlock is not None
    assert other.lock("k") is None
    elsewhere = other.lock("another")
    assert elsewhere is not None
    elsewhere()
    one.save("k", b"1")
    assert other.load("k") == b"1"
    unlock()
    again = other.lock("k")
    assert again is not None
    again()
    assert {file.stat().st_mode & 0o777 for file in one.directory.iterdir()} == {0o600}


def test_file_storage_lock_does_not_follow_links(tmp_path: Path) -> None:
    storage = FileStorage(tmp_path)
    unlock = storage.lock("k")
    assert unlock is not None
    unlock()
    (file,) = tmp_path.iterdir()
    file.unlink()
    file.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic links"):
        storage.lock("k")


def test_file_storage_default_directory_is_in_the_user_data(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert FileStorage().directory == tmp_path / "mcp-trio" / "tokens"
    for elsewhere in ("", "relative/path"):
        monkeypatch.setenv("XDG_DATA_HOME", elsewhere)
        assert FileStorage().directory == Path.home() / ".local/share/mcp-trio/tokens"
    monkeypatch.delenv("XDG_DATA_HOME")
    assert FileStorage().directory == Path.home() / ".local/share/mcp-trio/tokens"


@pytest.mark.requirement("AG-7")
def test_file_storage_file_of_another_user_raises(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another user can have put it there while the directory was open to all users."""
    storage = FileStorage(tmp_path / "tokens")
    storage.save("k", b"secret")
    users = [os.geteuid(), os.geteuid() + 1]  # the directory's owner, and not the file's
    monkeypatch.setattr(os, "geteuid", lambda: users.pop(0))
    with pytest.raises(PermissionError, match="is open to other users"):
        storage.load("k")
    assert users == []


@pytest.mark.requirement("AG-7")
@pytest.mark.parametrize("mode", [0o640, 0o620, 0o604, 0o602, 0o601, 0o610])
def test_file_storage_file_with_any_bit_for_others_raises(tmp_path: Path, mode: int) -> None:
    storage = FileStorage(tmp_path)
    storage.save("k", b"secret")
    (file,) = tmp_path.iterdir()
    file.chmod(mode)
    with pytest.raises(PermissionError, match="is open to other users"):
        storage.load("k")


def test_file_storage_reads_a_mebibyte_at_most(tmp_path: Path) -> None:
    storage = FileStorage(tmp_path)
    storage.save("k", b"x" * (1024 * 1024 + 1))
    assert storage.load("k") == b"x" * (1024 * 1024)


def test_file_storage_value_is_on_the_disk_before_it_replaces_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise a crash could leave an empty file under the name of the old one."""
    done = []
    replace = Path.replace

    def note_sync(descriptor: int) -> None:
        done.append(f"synced {os.pread(descriptor, 10, 0)!r}")

    def note_replace(path: Path, target: Path) -> Path:
        done.append("replaced")
        return replace(path, target)

    monkeypatch.setattr(os, "fsync", note_sync)
    monkeypatch.setattr(Path, "replace", note_replace)
    storage = FileStorage(tmp_path)
    storage.save("k", b"secret")
    assert done == ["synced b'secret'", "replaced"]
    assert storage.load("k") == b"secret"


def test_file_storage_that_cannot_clean_up_raises_the_first_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(path: Path, *_: object) -> None:
        raise OSError(f"{path.name[:3]} is gone")

    monkeypatch.setattr(Path, "unlink", fail)
    monkeypatch.setattr(os, "fsync", lambda descriptor: (_ for _ in ()).throw(OSError("full")))
    with pytest.raises(OSError, match="full"):
        FileStorage(tmp_path).save("k", b"new")


def test_storages_have_a_representation_without_values(tmp_path: Path) -> None:
    assert repr(FileStorage(tmp_path)) == f"FileStorage({str(tmp_path)!r})"
    storage = MemoryStorage()
    storage.save("k", b"secret")
    assert repr(storage) == "<MemoryStorage of 1>"
    storage.save("k", None)
    assert repr(storage) == "<MemoryStorage of 0>"


def test_file_storage_without_owners_and_locks_checks_and_locks_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Windows has neither, nor flags that refuse links and pipes when a file is opened."""
    monkeypatch.setattr(_storage, "_HAS_OWNERS", False)
    monkeypatch.setattr(_storage, "HAS_LOCKS", False)
    monkeypatch.setattr(_storage, "lock_file", lambda path: path.name)
    monkeypatch.delattr(os, "O_NOFOLLOW")
    monkeypatch.delattr(os, "O_NONBLOCK")
    storage = FileStorage(tmp_path / "tokens")
    assert str(storage.lock("k")).endswith(".lock")
    assert not storage.directory.exists()
    storage.save("k", b"secret")
    storage.directory.chmod(0o777)
    (file,) = storage.directory.iterdir()
    file.chmod(0o666)
    assert storage.load("k") == b"secret"
