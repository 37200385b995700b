"""Find and read the configuration files of a host: managed, local, project and user.

1. The project's file is the `.mcp.json` here or in the nearest directory above that has one, up to
   the root of the repository, which is the directory with `.git`. Outside of a repository only this
   directory counts: directories further up, such as /tmp, may belong to others.
2. A file that cannot be read is a problem, but the servers of other files count. Only a managed
   file stops everything, if it cannot be read or users could have written it: servers that it
   excludes would count.
3. If a project's or local file was found, not named, it is read only if no other user could have
   written it: anyone can leave one in a shared directory. Git treats repositories in the same way.
4. Reading blocks: call `read` in a worker thread. If a program is in the middle of writing a file,
   half of it is read, which is a problem too.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from mcp_core import escape_text
from mcp_core.host import (
    ConfigFile,
    ConfigPlace,
    ConfigProblem,
    ConfigVariables,
    InvalidConfig,
    MergedServers,
    ServerPolicy,
    ServerScope,
    find_config_format,
    merge_servers,
    read_config,
    read_policy,
)
from mcp_trio._files import home_directory, read_snapshot, user_directory

from ._owners import find_unsafe_path, own_ids

__all__ = [
    "ConfigFiles",
    "find_config_files",
    "find_root",
    "real_config_path",
    "single_config_file",
]

# Only administrators may write to these directories. On POSIX that is checked. The user could
# choose a path from the environment.
_MANAGED_FILE: Final = Path(
    "C:/Program Files/mcp-trio/managed-mcp.json"
    if os.name == "nt"
    else "/etc/mcp-trio/managed-mcp.json"
)
_ROOT: Final = 0  # its user id
_ADMINISTRATORS: Final = frozenset({_ROOT})
_NAMED_CURE: Final = (
    "or name the file (`--config FILE`, in a program `Host(FILE)`): then it is used all the same"
)
_LOCAL_NAME: Final = ".mcp.local.json"
_PROJECT_NAME: Final = ".mcp.json"
_USER_NAME: Final = "mcp.json"
# Directories in which other programs keep a project's file.
_PROGRAM_DIRECTORIES: Final = frozenset({".codex", ".cursor", ".gemini", ".vscode"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigFiles:
    """The places of a host's configuration files. The files need not exist.

    Args:
        files: the scope and absolute path of each file, in order of precedence.
        directory: the absolute path of the project. It is the workspace folder, and programs of
            project and local files start there.
        environ: the environment, for the values of variables.
        required: whether a file that is missing is a problem; in managed scope it never is.
        only_safe: True to refuse a project's or local file that other users could have written.
            `find_config_files` sets it, because its files weren't named. Windows has no such check.
    """

    files: tuple[tuple[ServerScope, Path], ...]
    directory: Path
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ, repr=False)
    required: bool = False
    only_safe: bool = False

    @property
    def home(self) -> Path | None:
        """The home directory of the user, or None if it isn't known."""
        try:
            return home_directory(self.environ)
        except RuntimeError:
            return None

    def read(self) -> MergedServers:
        """Read the files that exist, and return the servers that count.

        The problem of a file that cannot be read has no `server`. The other files count.

        Raises:
            InvalidConfig: a managed file cannot be read, has a problem that isn't one of a single
                server, or could have been written by others than administrators.
        """
        found: list[tuple[ServerScope, ConfigFile]] = []
        policy: ServerPolicy | None = None
        for scope, path in self.files:
            is_managed = scope == "managed"
            try:
                data = self._read_file(scope, path)
                if data is None:
                    continue
                if is_managed:
                    policy = read_policy(data, file=str(path))
                config = read_config(data, file=str(path))
            except InvalidConfig as exc:
                if is_managed:
                    raise
                config = ConfigFile(
                    file=str(path),
                    format=find_config_format(str(path)) or "claude-code",
                    problems=exc.problems,
                )
            found.append((scope, config))
        return merge_servers(found, policy)

    def variables(self, inputs: Mapping[str, str] | None = None) -> ConfigVariables:
        """Return the values of variables in these files.

        Args:
            inputs: the user's answers, by the id of the input.
        """
        home = self.home
        return ConfigVariables(
            environ=self.environ,
            inputs=inputs or {},
            workspace_folder=str(self.directory),
            home=None if home is None else str(home),
            path_separator=os.sep,
        )

    def check_owners(
        self, scope: ServerScope, path: Path, opened: os.stat_result | None = None
    ) -> None:
        """Check that no other user could have written a file, if its scope needs that.

        Args:
            scope: its scope.
            path: the file, which need not exist.
            opened: the state of the file that was read from there, or None.

        Raises:
            InvalidConfig: other users could have written it.
            OSError: the path cannot be looked at.
        """
        if scope == "managed":
            owners, is_checked = _ADMINISTRATORS, True
        else:
            owners = own_ids(self.environ) | {_ROOT}
            is_checked = self.only_safe and scope in ("local", "project")
        if not is_checked:
            return
        try:
            unsafe = find_unsafe_path(path, owners=owners, opened=opened)
        except FileNotFoundError:  # the directories above it are safe
            return
        if unsafe is None:
            return
        problem = f"the file is refused: {unsafe.cause}; {unsafe.cure}"
        if scope != "managed":
            problem += f", {_NAMED_CURE}"
        raise _file_error(path, escape_text(problem))

    def _read_file(self, scope: ServerScope, path: Path) -> bytes | None:
        """Return a file's content, or None if the file doesn't exist.

        Raises:
            InvalidConfig: it cannot be read, or is not to be trusted.
        """
        data: bytes | None
        try:
            snapshot = read_snapshot(path)
            data = snapshot.data
            if data is not None:
                # Checked once the file is open: if path and file are safe now, the file wasn't
                # replaced in between.
                self.check_owners(scope, path, snapshot.state)
        except NotADirectoryError:  # above it
            data = None
        except OSError as exc:
            raise _file_error(path, f"the file cannot be read ({exc.strerror or exc})") from exc
        if data is None and self.required and scope != "managed":
            raise _file_error(path, "there is no such file")
        if scope == "managed" and data is not None and not data.strip():
            # An administrator may be in the middle of writing it.
            raise _file_error(path, "the file is empty: write {} or remove it")
        return data


def _file_error(path: Path, problem: str) -> InvalidConfig:
    return InvalidConfig([ConfigProblem(ConfigPlace(str(path), 1, 1), problem)])


def find_config_files(
    directory: str | os.PathLike[str], environ: Mapping[str, str] = os.environ
) -> ConfigFiles:
    """Return the places of the configuration files for a host's working directory.

    These are /etc/mcp-trio/managed-mcp.json (on Windows below C:/Program Files), .mcp.local.json
    and .mcp.json of the project, and `mcp-trio/mcp.json` in the user's configuration directory
    (`XDG_CONFIG_HOME`, or `~/.config`). Without a home directory there is no file of the user.
    A file of the project that other users could have written is a problem when it is read.

    Args:
        directory: the directory.
        environ: the environment.
    """
    project = _find_project(_real_path(directory))
    files: list[tuple[ServerScope, Path]] = [
        ("managed", _MANAGED_FILE),
        ("local", project / _LOCAL_NAME),
        ("project", project / _PROJECT_NAME),
    ]
    try:
        user = user_directory("XDG_CONFIG_HOME", ".config", environ=environ)
    except RuntimeError:
        pass
    else:
        files.append(("user", user / _USER_NAME))
    return ConfigFiles(files=tuple(files), directory=project, environ=environ, only_safe=True)


def single_config_file(
    path: str | os.PathLike[str], environ: Mapping[str, str] = os.environ
) -> ConfigFiles:
    """Return the place of one file, which is treated as a project's file.

    The managed file counts too: otherwise an option could switch its restrictions off. The project
    is the file's directory, or the one above for a file such as `.vscode/mcp.json`.

    Args:
        path: the file. If it doesn't exist, reading it gives a problem.
        environ: the environment.
    """
    file = real_config_path(path)
    directory = file.parent
    if directory.name in _PROGRAM_DIRECTORIES:
        directory = directory.parent
    return ConfigFiles(
        files=(("managed", _MANAGED_FILE), ("project", file)),
        directory=directory,
        environ=environ,
        required=True,
    )


def real_config_path(path: str | os.PathLike[str]) -> Path:
    """Return the path by which a file is known: its directory without links, and its own name."""
    given = Path(path)
    return _real_path(given.parent) / given.name


def _real_path(path: str | os.PathLike[str]) -> Path:
    """Return an absolute path without links, so that approvals find a file by one path only."""
    return Path(os.path.realpath(path))  # unlike `Path.resolve`, no error for a loop of links


def find_root(directory: Path) -> Path:
    """Return the root of the repository that an absolute path is in, or else the path itself."""
    above = [directory, *directory.parents]
    return next((each for each in above if os.path.lexists(each / ".git")), directory)


def _find_project(directory: Path) -> Path:
    """Return the directory with the project's file, or else the root of the repository."""
    above = [directory, *directory.parents]
    root = find_root(directory)
    inside = above[: above.index(root) + 1]
    return next((each for each in inside if os.path.lexists(each / _PROJECT_NAME)), root)
