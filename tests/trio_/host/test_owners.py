"""Paths that other users could replace, through any directory or link on the way."""

from __future__ import annotations

import os
from contextlib import nullcontext
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
    monkeypatch.setattr(_owners, "_is_private_group", lambda *_: is_private)
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
        assert _owners._is_private_group(me.pw_gid, {me.pw_uid}) is is_private
        assert not _owners._is_private_group(me.pw_gid + 1, {me.pw_uid})


@pytest.mark.parametrize(
    ("own", "owners", "is_private"),
    [
        (0, {0, 1000}, True),  # root, called through sudo
        (1000, {0, 1000}, True),
        (1001, {0, 1001}, False),
        (1000, {0}, False),  # the file of an administrator
    ],
)
def test_private_group_of_a_trusted_user_is_private(
    monkeypatch: pytest.MonkeyPatch, own: int, owners: set[int], is_private: bool
) -> None:
    grp, pwd = pytest.importorskip("grp"), pytest.importorskip("pwd")
    users = {
        0: pwd.struct_passwd(("root", "x", 0, 0, "", "/root", "")),
        1000: pwd.struct_passwd(("ada", "x", 1000, 1000, "", "/home/ada", "")),
        1001: pwd.struct_passwd(("eve", "x", 1001, 100, "", "/home/eve", "")),
    }
    monkeypatch.setattr(pwd, "getpwuid", users.__getitem__)
    group = grp.struct_group(("ada", "x", 1000, []))
    monkeypatch.setattr(grp, "getgrgid", lambda group_id: group)
    monkeypatch.setattr(os, "geteuid", lambda: own)
    assert _owners._is_private_group(1000, owners) is is_private


def test_group_of_root_is_private_for_root_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """In some containers each user has it as the first group, without being listed."""
    grp, pwd = pytest.importorskip("grp"), pytest.importorskip("pwd")
    root = pwd.struct_passwd(("root", "x", 0, 0, "", "/root", ""))
    user = pwd.struct_passwd(("ada", "x", 1000, 0, "", "/home/ada", ""))
    monkeypatch.setattr(pwd, "getpwuid", lambda id: user if id else root)
    monkeypatch.setattr(grp, "getgrgid", lambda group_id: grp.struct_group(("root", "x", 0, [])))
    for own, is_private in ((0, True), (1000, False)):
        monkeypatch.setattr(os, "geteuid", lambda own=own: own)
        assert _owners._is_private_group(0, {0, own}) is is_private


@pytest.mark.parametrize(
    ("own", "variable", "expected"),
    [
        (0, "1000", {0, 1000}),
        (0, "0", {0}),
        (0, None, {0}),
        (0, "", {0}),
        (0, "-1", {0}),
        (0, "1000x", {0}),
        (0, "\u0661", {0}),  # a digit that is not ASCII
        (0, "4294967296", {0}),
        (0, "9" * 5000, {0}),
        (1000, "1001", {1000}),  # only root believes it
    ],
)
def test_caller_of_sudo_is_oneself_for_root_only(
    monkeypatch: pytest.MonkeyPatch, own: int, variable: str | None, expected: set[int]
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: own)
    environ = {} if variable is None else {"SUDO_UID": variable}
    assert _owners.own_ids(environ) == expected


@pytest.mark.parametrize(("mode", "owner"), [(0o100666, 0), (0o100644, 1)])
def test_file_that_was_read_is_checked_too(file: Path, mode: int, owner: int) -> None:
    """The file at the path may have been put there since."""
    state = list(file.stat())
    state[0] = mode
    state[4] += owner
    own = {0, os.geteuid()}
    assert find_unsafe_path(file, owners=own) is None
    assert find_unsafe_path(file, owners=own, opened=os.stat_result(state)) is not None


def test_group_without_a_name_is_no_private_one() -> None:
    assert not _owners._is_private_group(2**31 - 5, {os.geteuid()})


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


@pytest.mark.parametrize("count", [40, 41])
def test_links_are_followed_as_far_as_linux_follows_them(
    file: Path, tmp_path: Path, count: int
) -> None:
    targets = [f"link{number}" for number in range(1, count)]
    targets.append(str(file.parent.relative_to(tmp_path)))
    for number, target in enumerate(targets):
        (tmp_path / f"link{number}").symlink_to(target)
    path = tmp_path / "link0" / "file"
    with pytest.raises(OSError, match="Too many levels") if count > 40 else nullcontext():
        assert find(path) is None


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
