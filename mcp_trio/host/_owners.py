"""Find out whether other users could replace a file, by its path and all directories above it.

1. Each directory on the way has to belong to a trusted user, and no other user may write to it:
   a user who may rename a directory decides what is found in it. Symbolic links on the way are
   followed, and have to belong to a trusted user too.
2. In a directory with the sticky bit, such as /tmp, users cannot rename what isn't theirs. So it is
   allowed on the way, but not as the last directory.
3. A group whose only member is a trusted user is trusted. Many systems give each user such a group,
   and create directories that it may write to.

OpenSSH checks its files in this way (sshd_config, `StrictModes`). Windows has no such checks.
"""

from __future__ import annotations

import errno
import os
import shlex
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

__all__ = ["HAS_OWNERS", "UnsafePath", "find_unsafe_path", "own_ids"]

_ROOT: Final = 0  # its user id
_MAX_ID: Final = 2**32 - 1  # of a user
HAS_OWNERS: Final = hasattr(os, "geteuid")  # files have an owner and permission bits
_MAX_LINKS: Final = 40  # as Linux


class UnsafePath(NamedTuple):
    """Why others could replace a file, and what to do about it: two phrases for people."""

    cause: str
    cure: str


def own_ids(environ: Mapping[str, str]) -> frozenset[int]:
    """Return this user's ids: the effective one, and for root the user who called sudo.

    Git decides in the same way whose repositories are one's own (`safe.directory`). Only root
    believes the variable `SUDO_UID`.
    """
    if not HAS_OWNERS:
        return frozenset()
    own = os.geteuid()
    caller = environ.get("SUDO_UID", "")
    is_id = caller.isascii() and caller.isdecimal() and len(caller) <= len(str(_MAX_ID))
    if own == _ROOT and is_id and int(caller) <= _MAX_ID:
        return frozenset({own, int(caller)})
    return frozenset({own})


def find_unsafe_path(
    path: Path, *, owners: Collection[int], opened: os.stat_result | None = None
) -> UnsafePath | None:
    """Return why other users could replace or write `path`, or None if they cannot.

    Args:
        path: the absolute path of a file or directory that exists.
        owners: the ids of the trusted users. Their private groups count only if this user is one.
        opened: the state of the file that was read from there, which is checked too: what is at
            the path now may be another one.

    Raises:
        OSError: the path cannot be looked at, or doesn't exist.
    """
    if not HAS_OWNERS:
        return None
    if opened is not None:
        unsafe = _check(path, opened, owners, is_last=True)
        if unsafe is not None:
            return unsafe
    entry = Path(path.anchor)
    parts = [*reversed(path.parts[1:])]
    unsafe = _check(entry, entry.lstat(), owners, is_last=not parts)
    links = 0
    while parts and unsafe is None:
        part = parts.pop()
        if part == "..":
            entry = entry.parent  # without links on the way, so it is the real one
            continue
        child = entry / part
        state = child.lstat()
        if stat.S_ISLNK(state.st_mode):
            links += 1
            if links > _MAX_LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
            target = child.readlink()
            unsafe = _check_owner(child, state, owners)
            if target.is_absolute():
                entry = Path(target.anchor)
            parts += reversed(target.parts[1:] if target.is_absolute() else target.parts)
            continue
        if parts and not stat.S_ISDIR(state.st_mode):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(child))
        unsafe = _check(child, state, owners, is_last=not parts)
        entry = child
    return unsafe


def _check(
    entry: Path, state: os.stat_result, owners: Collection[int], *, is_last: bool
) -> UnsafePath | None:
    unsafe = _check_owner(entry, state, owners)
    if unsafe is not None:
        return unsafe
    mode = state.st_mode
    if stat.S_ISDIR(mode) and mode & stat.S_ISVTX and not is_last:
        return None
    is_writable = bool(mode & stat.S_IWOTH)
    if mode & stat.S_IWGRP:
        is_writable |= not _is_private_group(state.st_gid, owners)
    if not is_writable:
        return None
    return UnsafePath(
        f"other users may write to {entry}", f"run `chmod go-w {shlex.quote(str(entry))}`"
    )


def _check_owner(entry: Path, state: os.stat_result, owners: Collection[int]) -> UnsafePath | None:
    if state.st_uid in owners:
        return None
    cure = "use a directory whose parents belong to this user or to root"
    if os.geteuid() not in owners:
        cure = f"run `chown root {shlex.quote(str(entry))}`"
    return UnsafePath(f"{entry} belongs to another user (its id is {state.st_uid})", cure)


def _is_private_group(group_id: int, owners: Collection[int]) -> bool:
    """Return True if a group has a trusted user as its only member."""
    import grp  # neither of the two is there on Windows
    import pwd

    own = os.geteuid()
    if own not in owners:
        return False
    # The group of root may be the first one of many users, as in some containers.
    users = [each for each in owners if each != _ROOT or own == _ROOT]
    try:
        group = grp.getgrgid(group_id)
    except KeyError:
        return False
    for each in users:
        try:
            user = pwd.getpwuid(each)
        except KeyError:
            continue
        # Others may have it as their first group without being listed. The same name says that it
        # was made for this user.
        is_named_alike = (user.pw_gid, user.pw_name) == (group_id, group.gr_name)
        if is_named_alike and set(group.gr_mem) <= {user.pw_name}:
            return True
    return False
