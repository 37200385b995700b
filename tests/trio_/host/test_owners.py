"""Paths that other users could replace, through any directory or link on the way."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mcp_trio.host import _owners
from mcp_trio.host._owners import UnsafePath, find_unsafe_path

pytestmark = pytest.mark.skipif(not _owners.HAS_OWNERS, reason="Windows has no permission bits")


def find(path: Path) -> UnsafePath | None:
    return find_unsafe_path(path, owners={0, os.geteuid()})


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "one" / "two" / "file"
    path.parent.mkdir(parents=True, mode=0o700)
    path.parent.parent.chmod(0o700)
    path.touch(0o600)
    return path


def test_path_of_this_user_is_safe(file: Path) -> None:
    assert find(file) is None
    assert find(file.parent) is None


@pytest.mark.parametrize("mode", [0o777, 0o702, 0o722])
@pytest.mark.parametrize("depth", [0, 1])
def test_directory_that_others_may_write_to_is_unsafe(file: Path, mode: int, depth: int) -> None:
    directory = file.parents[depth]
    directory.chmod(mode)
    assert find(file) == UnsafePath(
        f"other users may write to {directory}", f"run `chmod go-w {directory}`"
    )


def test_file_that_others_may_write_to_is_unsafe(file: Path) -> None:
    file.chmod(0o606)
    unsafe = find(file)
    assert unsafe is not None
    assert unsafe.cause == f"other users may write to {file}"


def test_directory_with_sticky_bit_is_safe_on_the_way_only(file: Path) -> None:
    file.parent.parent.chmod(0o1777)
    assert find(file) is None
    assert find(file.parent) is None
    assert find(file.parent.parent) is not None


@pytest.mark.parametrize("is_private", [True, False])
def test_directory_of_a_group_is_safe_if_it_has_no_other_member(
    file: Path, monkeypatch: pytest.MonkeyPatch, is_private: bool
) -> None:
    monkeypatch.setattr(_owners, "_is_private_group", lambda group_id: is_private)
    file.parent.chmod(0o770)
    assert (find(file) is None) is is_private


def test_group_with_members_is_no_private_one(monkeypatch: pytest.MonkeyPatch) -> None:
    grp, pwd = pytest.importorskip("grp"), pytest.importorskip("pwd")
    me = pwd.getpwuid(os.geteuid())
    for name, members, is_private in (
        (me.pw_name, [], True),
        (me.pw_name, [me.pw_name], True),
        (me.pw_name, [me.pw_name, "eve"], False),
        ("staff", [], False),
    ):
        group = grp.struct_group((name, "x", me.pw_gid, members))
        monkeypatch.setattr(grp, "getgrgid", lambda group_id, group=group: group)
        assert _owners._is_private_group(me.pw_gid) is is_private
        assert not _owners._is_private_group(me.pw_gid + 1)


def test_group_without_a_name_is_no_private_one() -> None:
    assert not _owners._is_private_group(2**31 - 5)


def test_path_of_another_user_is_unsafe() -> None:
    unsafe = find_unsafe_path(Path("/"), owners={Path("/").stat().st_uid + 1})
    assert unsafe is not None
    assert "/ belongs to another user" in unsafe.cause
    is_trusted = os.geteuid() == Path("/").stat().st_uid + 1
    assert is_trusted or unsafe.cure == "run `chown root /`"


@pytest.mark.skipif(
    not _owners.HAS_OWNERS or os.geteuid() != 0, reason="only root gives files away"
)
@pytest.mark.parametrize("part", ["directory", "link"])
def test_part_of_the_way_that_belongs_to_another_user_is_unsafe(
    file: Path, tmp_path: Path, part: str
) -> None:
    link = tmp_path / "link"
    link.symlink_to("one")
    changed = link if part == "link" else file.parent
    os.chown(changed, 12345, -1, follow_symlinks=False)
    unsafe = find(link / "two" / "file")
    assert unsafe is not None
    assert unsafe.cause == f"{changed} belongs to another user (its id is 12345)"


@pytest.mark.parametrize("target", ["one/two", "./one/../one/two", "{root}/one/two"])
def test_link_on_the_way_is_followed(file: Path, tmp_path: Path, target: str) -> None:
    (tmp_path / "link").symlink_to(target.format(root=tmp_path))
    path = tmp_path / "link" / "file"
    assert find(path) is None
    file.parent.chmod(0o777)
    unsafe = find(path)
    assert unsafe is not None
    assert unsafe.cause == f"other users may write to {file.parent}"


def test_loop_of_links_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(OSError, match="Too many levels"):
        find(tmp_path / "a" / "file")


def test_file_on_the_way_is_an_error(file: Path) -> None:
    with pytest.raises(NotADirectoryError):
        find(file / "more")


def test_path_that_does_not_exist_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        find(tmp_path / "missing" / "file")
