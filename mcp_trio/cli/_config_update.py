"""Change a configuration file: show the change, ask, write, and retry if the file has changed.

1. The change is planned for the file's text, and tried, before the user is asked. A file that
   cannot be changed is reported then, and nothing is written.
2. A project's file may be a symbolic link that came with it. It's followed within the project
   only, and the path shown is always the one that is written.
3. If another program changes the file meanwhile, it is read again and the change is planned anew.
   The user is asked again only if the planned change differs.
"""

from __future__ import annotations

import abc
import os
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

import trio

from mcp_core.host import (
    ConfigFileError,
    config_path,
    describe_change,
    find_replaced,
    require_tomlkit,
)
from mcp_trio._files import FileChanged, read_snapshot, replace_file

from ._elicitation_answers import open_terminal
from ._errors import NO_CONNECTION, SERVER_ERROR, CliError
from ._forms import ask_permission

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcp_core.host import ClientFormat, ConfigScope, MemberChange, ServerEntry
    from mcp_trio._files import FileSnapshot

    from ._forms import PromptParts
    from ._screen import Screen

__all__ = [
    "ConfigUpdate",
    "UpdateOutcome",
    "ask_user",
    "config_error",
    "decode_config",
    "path_of_client",
    "read_config_file",
    "show_changes",
    "show_replaced",
]

_MAX_ATTEMPTS: Final = 3  # to change a file that its program changes at the same time
_STYLES: Final = {"+": "green", "-": "red", " ": ""}


class UpdateOutcome(NamedTuple):
    """The end of a `ConfigUpdate`.

    The kind is "unchanged" if the file needed no change, and "declined" if the user did not agree.
    `copy` is the path of the file as it was before, if there was one.
    """

    kind: Literal["written", "unchanged", "declined"]
    copy: Path | None = None

    def show_copy(self, stderr: Screen) -> None:
        """Tell the user where the copy of the old file is."""
        if self.copy is not None:
            stderr.write_line("mcp-trio: the file as it was before is in ", str(self.copy))


class ConfigUpdate(abc.ABC):
    """A change of one configuration file.

    Args:
        path: the file, which need not exist.
        private: whether a new file is readable by its owner only.
        program: the program that the user may have to close if it changes the file all the time.
        root: the directory that symbolic links must not leave, or None.
    """

    def __init__(
        self, path: Path, *, private: bool, program: str, root: Path | None = None
    ) -> None:
        self.path = path
        self._target = path  # the file that `path` leads to
        self._root = root
        self._private = private
        self._program = program

    @property
    def shown_path(self) -> str:
        """The file that is written, for people."""
        through = f" (through the link {self.path})" if self._target != self.path else ""
        return f"{self._target}{through}"

    @abc.abstractmethod
    def plan(self, text: str) -> Sequence[MemberChange]:
        """Return the changes of the file with that text; none if it needs no change.

        Raises:
            ConfigFileError: the text cannot be parsed, or not be changed.
            CliError: the change is not to be made.
        """

    @abc.abstractmethod
    def show(self, changes: Sequence[MemberChange], screen: Screen) -> None:
        """Show the changes, or that there are none."""

    def check(self, changes: Sequence[MemberChange], text: str) -> None:
        """Check that the changes can be made.

        Raises:
            ConfigFileError: the text cannot be changed without losing something.
            ImportError: the file is TOML, and tomlkit isn't installed.
        """
        if any(change.client.syntax is None for change in changes):
            require_tomlkit()
        _apply(changes, text)

    def write(self, snapshot: FileSnapshot, changes: Sequence[MemberChange]) -> Path | None:
        """Write the changed file, and return the path of the copy of the old one, if there was one.

        Raises:
            FileChanged: another program has changed the file; nothing was written.
            OSError: the file cannot be written.
        """
        text = _apply(changes, decode_config(snapshot.data or b""))
        return replace_file(snapshot, text.encode(), private=self._private)

    def show_only(self, screen: Screen) -> None:
        """Show the changes that `run` would make.

        Raises:
            CliError: the file cannot be read or changed.
        """
        self.show(self._plan()[1], screen)

    def run(self, stderr: Screen, *, yes: bool) -> UpdateOutcome:
        """Show the changes, ask, and make them.

        Args:
            stderr: for the changes and the question.
            yes: whether to make them without a question.

        Raises:
            CliError: the file cannot be read or changed, or there is no terminal to ask at.
        """
        shown: list[tuple[str, str]] = []
        for _ in range(_MAX_ATTEMPTS):
            snapshot, changes = self._plan()
            if not changes:
                return UpdateOutcome("unchanged")
            lines = [line for change in changes for line in describe_change(change)]
            if lines != shown:
                shown = lines
                self.show(changes, stderr)
                if not yes and ask_user(("Make this change?",), stderr) != "accept":
                    return UpdateOutcome("declined")
            try:
                return UpdateOutcome("written", self.write(snapshot, changes))
            except FileChanged:
                continue
            except OSError as exc:
                raise _file_error(self.path, exc, "cannot be written") from exc
        raise CliError(
            f"{self.path} is changed by another program all the time; close {self._program},"
            " and try again",
            SERVER_ERROR,
        )

    def _plan(self) -> tuple[FileSnapshot, Sequence[MemberChange]]:
        snapshot, text = read_config_file(self.path)
        self._target = snapshot.target
        self._check_place(snapshot)
        try:
            changes = self.plan(text)
            if changes:
                self.check(changes, text)
        except ConfigFileError as exc:
            raise config_error(self.path, exc) from exc
        except ImportError as exc:
            raise CliError(f"{exc}", SERVER_ERROR) from exc
        return snapshot, changes

    def _check_place(self, snapshot: FileSnapshot) -> None:
        """Raise `CliError` if links lead out of the project."""
        if self._root is None:
            return
        root = Path(os.path.realpath(self._root))
        if not snapshot.target.is_relative_to(root):
            raise CliError(
                f"{self.path} is a link that leads out of the project {root}, to {snapshot.target};"
                " nothing was changed. Change that file itself, or put a file in the link's place",
                SERVER_ERROR,
            )


def path_of_client(client: ClientFormat, scope: ConfigScope) -> Path:
    """Return the configuration file of another program, for this user and directory.

    Raises:
        CliError: the program has no such file, or it isn't known where it is.
    """
    try:
        return Path(
            config_path(
                client,
                scope,
                system=sys.platform,
                environ=os.environ,
                directory=str(Path.cwd()),
            )
        )
    except ValueError as exc:
        is_project = scope == "project"
        cure = "leave --scope project out" if is_project else "set it to your home directory"
        raise CliError(f"{exc}; {cure}") from None


def read_config_file(path: Path) -> tuple[FileSnapshot, str]:
    """Read a configuration file, which need not exist, and return it with its text.

    Raises:
        CliError: it cannot be read, or isn't UTF-8.
    """
    try:
        snapshot = read_snapshot(path)
        return snapshot, decode_config(snapshot.data or b"")
    except OSError as exc:
        raise _file_error(path, exc, "cannot be read") from exc
    except ConfigFileError as exc:
        raise config_error(path, exc) from exc


def decode_config(data: bytes) -> str:
    """Return the text of a configuration file.

    Raises:
        ConfigFileError: it isn't UTF-8.
    """
    try:
        return data.decode()
    except UnicodeDecodeError as exc:
        line = data.count(b"\n", 0, exc.start) + 1
        raise ConfigFileError(line, "this is not UTF-8") from None


def config_error(path: Path, exc: ConfigFileError) -> CliError:
    """Return the error for a file that cannot be changed."""
    return CliError(f"{path}, line {exc.line}: {exc.problem}. Nothing was changed", SERVER_ERROR)


def show_changes(changes: Sequence[MemberChange], screen: Screen) -> None:
    """Show the lines that are removed and added."""
    for change in changes:
        for mark, line in describe_change(change):
            screen.write_line((f"{mark} {line}", _STYLES[mark]))


def show_replaced(client: ClientFormat, server: ServerEntry, screen: Screen) -> None:
    """Warn of texts in which the client replaces what looks like a variable."""
    for text in find_replaced(client, server):
        screen.write_line(
            (f"{client.title} replaces what looks like a variable in: {text}", "yellow")
        )


def _apply(changes: Sequence[MemberChange], text: str) -> str:
    for change in changes:
        text = change.apply(text)
    return text


def ask_user(
    question: PromptParts, stderr: Screen, yes: str = "make this change"
) -> Literal["accept", "decline", "cancel"]:
    """Ask the user a question at the terminal, to be answered by yes or no.

    `yes` says what `--yes` does instead.

    Raises:
        CliError: there is no terminal.
    """
    terminal = open_terminal(stderr)
    if terminal is None:
        raise CliError(
            f"nothing was changed: there is no terminal to ask at. Add --yes to {yes}, or"
            " --dry-run to see it only",
            NO_CONNECTION,
        )
    return trio.run(terminal.run_dialogue, partial(ask_permission, question)).action


def _file_error(path: Path, exc: OSError, problem: str) -> CliError:
    # Not `exc.filename`: that may be our temporary file.
    return CliError(f"{path} {problem}: {exc.strerror or exc}", SERVER_ERROR)
