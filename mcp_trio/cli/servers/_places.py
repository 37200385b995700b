"""The configuration files that `mcp-trio servers` reads and changes, and the servers in them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from mcp_core.drivers import shorten_text
from mcp_core.host import (
    ConfigFileError,
    InvalidConfig,
    find_entry_line,
    format_to_edit,
    read_config,
)
from mcp_trio.cli._config_update import (
    ConfigUpdate,
    config_error,
    read_config_file,
    show_changes,
)
from mcp_trio.cli._errors import (
    NO_CONNECTION,
    SERVER_ERROR,
    CliError,
    join_names,
    one_line,
    suggestion,
)
from mcp_trio.host._config_files import find_config_files, find_root, single_config_file

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mcp_core.host import (
        ClientFormat,
        ConfigFile,
        ConfigProblem,
        MemberChange,
        MergedServers,
        ServerScope,
    )
    from mcp_trio.cli._screen import Screen
    from mcp_trio.host._config_files import ConfigFiles

__all__ = [
    "SCOPES",
    "ConfigPath",
    "ServersUpdate",
    "find_files",
    "find_server",
    "path_of_scope",
    "read_files",
    "unknown_server",
    "unusable_server",
]

# The scopes of files that users change, and who gets their servers.
SCOPES: Final = {
    "user": "you, in all projects",
    "project": "all users of this project",
    "local": "you, in this project",
}
_MAX_NAME: Final = 200  # characters of a name in a line


class ConfigPath(NamedTuple):
    """A configuration file and its scope. `chosen` is True if the user has named the file."""

    scope: ServerScope
    path: Path
    chosen: bool = False

    @property
    def title(self) -> str:
        """The file in words, to print before its path."""
        return "" if self.chosen else f"For {SCOPES[self.scope]}: "

    @property
    def shared(self) -> bool:
        """True if others may get the file."""
        return self.scope == "project"


def shown_name(name: str) -> str:
    """Return the name of a server as one line, which may be long or have hidden characters."""
    return one_line(shorten_text(name, _MAX_NAME))


def find_files(config: Path | None) -> ConfigFiles:
    """Return the configuration files for this directory, or the one of `--config`."""
    return find_config_files(Path.cwd()) if config is None else single_config_file(config)


def read_files(files: ConfigFiles) -> MergedServers:
    """Return the servers of configuration files.

    Raises:
        CliError: no server can be used, because a file of the administrator cannot be.
    """
    try:
        return files.read()
    except InvalidConfig as exc:
        raise CliError(f"no server can be used: {exc}", SERVER_ERROR) from exc


def path_of_scope(config: Path | None, scope: str) -> ConfigPath:
    """Return a scope's file, or the one of `--config`.

    Raises:
        CliError: it isn't known where the user's file is, or others could write the file.
    """
    files = find_files(config)
    for each, path in files.files:
        if each != "managed" and (config is not None or each == scope):
            problem = _find_problem(files, each, path)
            if problem is not None:
                raise CliError(f"{problem}. Nothing was changed", SERVER_ERROR)
            return ConfigPath(each, path, chosen=config is not None)
    raise CliError("there is no home directory: set the environment variable HOME")


def _find_problem(files: ConfigFiles, scope: ServerScope, path: Path) -> InvalidConfig | None:
    """Return why a user's file isn't used, and must not be changed; None if it is used."""
    if scope == "managed":
        return None
    try:
        files.check_owners(scope, path)
    except InvalidConfig as exc:
        return exc
    except OSError:  # it is reported when the file is read
        pass
    return None


def read_config_path(path: Path, text: str) -> ConfigFile:
    """Return a file's servers.

    Raises:
        CliError: it cannot be parsed.
    """
    try:
        return read_config(text, file=str(path))
    except InvalidConfig as exc:
        raise CliError(f"{exc}", SERVER_ERROR) from exc


def find_server(
    name: str, config: Path | None, scope: str | None
) -> tuple[ConfigPath, ClientFormat, int]:
    """Return the file that has a server, its format, and the line of the server.

    Raises:
        CliError: no file has it, or several do and `scope` is None, or a file cannot be read.
    """
    found: list[tuple[ConfigPath, ClientFormat, int]] = []
    known: list[str] = []
    searched: list[Path] = []
    unsafe: list[str] = []
    managed = ""
    files = find_files(config)
    for each, path in files.files:
        if scope not in (None, each) and each != "managed":
            continue
        problem = _find_problem(files, each, path)
        if problem is not None:
            if os.path.lexists(path):
                unsafe.append(str(problem))
            continue
        snapshot, text = read_config_file(path)
        if snapshot.data is None:
            continue
        read = read_config_path(path, text)
        try:
            client = format_to_edit(read)
            line = find_entry_line(client, name, text)
        except ConfigFileError as exc:
            raise config_error(path, exc) from exc
        if each == "managed":
            managed = f"{path}, line {line}" if line is not None else ""
            continue
        searched.append(path)
        known += [*read.servers, *sorted(read.broken)]
        if line is not None:
            found.append((ConfigPath(each, path, chosen=config is not None), client, line))
    shown = shown_name(name)
    if len(found) > 1:
        places = ", ".join(f"{place.scope} ({place.path}, line {n})" for place, _, n in found)
        raise CliError(f"{shown} is in several files: {places}. Add --scope to choose one")
    if found:
        return found[0]
    if managed:
        raise CliError(f"{shown} is in {managed}, which only an administrator changes")
    if not searched:
        text = f"there is no server {shown}, and no file that could have it"
    else:
        has = f"servers are {join_names(known)}" if known else "there are no servers"
        text = (
            f"there is no server {shown} in {' and '.join(map(str, searched))}; {has}."
            f"{suggestion(name, known)}"
        )
    raise CliError("\n".join([text, *unsafe]))


def unknown_server(name: str, merged: MergedServers, problems: Sequence[ConfigProblem]) -> CliError:
    """Build the error for a server that no configuration file has."""
    known = list(dict.fromkeys([*merged.servers, *(each.server.name for each in merged.omitted)]))
    has = f"the servers are {join_names(known)}" if known else "there are no servers"
    text = f"there is no server {shown_name(name)}; {has}.{suggestion(name, known)}"
    # A file that cannot be read may be the one that has it.
    return CliError("\n".join([text, *map(str, problems)]))


def unusable_server(server: str, merged: MergedServers) -> CliError:
    """Build the error for a server that isn't used."""
    for omitted in merged.omitted:
        if omitted.server.name == server:
            text = f"the server {shown_name(server)} cannot be used: {omitted.explanation}"
            return CliError(text, NO_CONNECTION)
    problems = [each for each in merged.problems if each.server == server]
    if problems:
        text = f"the server {shown_name(server)} cannot be used"
        return CliError("\n".join([text, *map(str, problems)]), NO_CONNECTION)
    return unknown_server(server, merged, [each for each in merged.problems if not each.server])


class ServersUpdate(ConfigUpdate):
    """A change of one configuration file by `mcp-trio servers`.

    Args:
        place: the file.
        plan: returns the changes for the format and text of the file.
        notes: lines to show after the changes.

    A ValueError of `plan` becomes an error for the user.
    """

    def __init__(
        self,
        place: ConfigPath,
        plan: Callable[[ClientFormat, str], Sequence[MemberChange]],
        notes: Sequence[str] = (),
    ) -> None:
        super().__init__(
            place.path,
            private=not place.shared,
            program="the program that does it",
            root=None if place.scope == "user" else find_root(place.path.parent),
        )
        self._title = place.title
        self._plan_changes = plan
        self._notes = notes

    def plan(self, text: str) -> Sequence[MemberChange]:
        client = format_to_edit(read_config_path(self.path, text))
        try:
            return self._plan_changes(client, text)
        except ValueError as exc:
            raise CliError(f"{exc}") from exc

    def show(self, changes: Sequence[MemberChange], screen: Screen) -> None:
        screen.write_line((self._title, "bold"), self.shown_path)
        if not changes:
            screen.write_line("Nothing needs to be changed.")
            return
        show_changes(changes, screen)
        for note in self._notes:
            screen.write_line((note, "yellow"))
