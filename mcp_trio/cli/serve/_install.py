"""`mcp-trio install FILE --client CLIENT`: register a server file with a program that starts it.

1. The server is started once as the client will start it, so that a fault is seen here and not in
   a log of the client.
2. A new entry is written by the client's own command, if it has one. Otherwise its file is changed,
   and only the entry in it.
3. The change is shown and confirmed before anything is written. Values of environment variables
   are never shown, and one that comes from the environment never stands on a command line, which
   other users of the machine can see.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import trio

from mcp_core.host import (
    CLIENT_FORMATS,
    ConfigFileError,
    ServerEntry,
    config_path,
    describe_change,
    find_replaced,
    plan_registration,
    require_tomlkit,
)
from mcp_core.runtime import shorten_text
from mcp_trio.cli._errors import NO_CONNECTION, SERVER_ERROR, CliError
from mcp_trio.cli._forms import ask_permission
from mcp_trio.cli._options import environment_variable
from mcp_trio.cli._screen import Screen
from mcp_trio.cli._session import Target, run_session
from mcp_trio.cli._user import open_terminal
from mcp_trio.host._files import FileChanged, keep_copy, read_snapshot, replace_file

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence

    from mcp_core.host import ClientFormat, ConfigScope, MemberChange
    from mcp_trio._client import Client
    from mcp_trio.host._files import FileSnapshot

__all__ = ["DESCRIPTION", "EPILOG", "USAGE", "install", "parse"]

USAGE: Final = "mcp-trio install [options] FILE[:NAME] --client CLIENT"
DESCRIPTION: Final = """\
Registers the mcp_trio.Server of FILE with a program that starts servers, under the Python that runs
this command. The server is started once, to see that it answers; then the change is shown, and made
if you agree. A copy of the old file is kept beside it."""
EPILOG: Final = """\
example:
  mcp-trio install greeter.py --client claude-code

exit status:
  0    the server is registered
  1    the program's file cannot be changed, or its own command failed
  2    the command line is wrong
  3    not confirmed, or the server did not start or answer
  130  Ctrl+C
"""

# All clients accept these; Claude Code no others.
_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]*")
_ADD_TIMEOUT: Final = 60.0  # seconds for the client's command; Node programs start slowly
_MAX_OUTPUT: Final = 2_000  # characters of the client's output in an error
_MAX_ATTEMPTS: Final = 3  # to change a file that its program changes at the same time
_STYLES: Final = {"+": "green", "-": "red", " ": ""}
_SCOPES: Final = {"user": "all projects", "project": "this project"}


def parse(parser: argparse.ArgumentParser, words: Sequence[str]) -> Callable[[], int]:
    """Add the options to the parser, and return the function that runs the subcommand."""
    parser.add_argument(
        "file", metavar="FILE[:NAME]", help="the file, and the variable that holds the server"
    )
    parser.add_argument("--client", required=True, choices=list(CLIENT_FORMATS), help="the program")
    parser.add_argument(
        "--name",
        type=_parse_name,
        help="the name under which the program lists the server (default: the server's own)",
    )
    parser.add_argument(
        "--scope",
        choices=list(_SCOPES),
        default="user",
        help="register it for all your projects, or for the one in the current directory, in a"
        " file that others may get (default: user)",
    )
    parser.add_argument(
        "--env",
        metavar="NAME[=VALUE]",
        type=environment_variable,
        action="append",
        default=[],
        help="give the server this environment variable (may be repeated). NAME alone stores the"
        " value that it has here, or with --scope project a reference to the variable",
    )
    parser.add_argument(
        "--no-check", action="store_true", help="do not start the server; needs --name"
    )
    parser.add_argument("--dry-run", action="store_true", help="show the change only")
    parser.add_argument("--yes", action="store_true", help="make the change without a question")
    found = parser.parse_intermixed_args(words)
    if found.no_check and found.name is None:
        parser.error("--no-check needs --name: the server is not asked for its own")
    return partial(
        install,
        found.file,
        CLIENT_FORMATS[found.client],
        name=found.name,
        scope=found.scope,
        variables=found.env,
        check=not found.no_check,
        dry_run=found.dry_run,
        yes=found.yes,
    )


def _parse_name(text: str) -> str:
    if _NAME.fullmatch(text) is None:
        from argparse import ArgumentTypeError

        raise ArgumentTypeError(
            f"{text} is not a name; write letters, digits, _ and -, beginning without -"
        )
    return text


def install(
    file: str,
    client: ClientFormat,
    *,
    name: str | None,
    scope: ConfigScope,
    variables: Sequence[tuple[str, str | None]],
    check: bool,
    dry_run: bool,
    yes: bool,
) -> int:
    """Register a server file with a client, and return the exit status.

    Args:
        file: `FILE` or `FILE:NAME`.
        client: the client.
        name: the name of the entry; None takes the name of the server.
        scope: the file of the user, or of the project in the current directory.
        variables: names and values; None takes the value, or a reference.
        check: whether to start the server once.
        dry_run: whether to show the change only.
        yes: whether to make it without a question.

    Raises:
        CliError: see the exit statuses of `EPILOG`.
    """
    stderr = Screen(sys.stderr)
    path = _path_of(client, scope)
    values, taken, forwarded = _split_variables(variables, scope)
    args = ("-P", "-m", "mcp_trio", "run", _absolute(file))
    server = ServerEntry(
        name=name or "", command=sys.executable, args=args, env=values, forwarded=forwarded
    )
    if check:
        directory = Path.cwd() if scope == "project" else Path.home()
        own_name = _check_server(server, directory, stderr)
        server = replace(server, name=name or _name_for_clients(own_name, file))
    job = _Installation(client, scope, server, path, may_run_command=not taken)
    if dry_run:
        return job.show_only(Screen(sys.stdout))
    return job.run(stderr, yes=yes)


def _path_of(client: ClientFormat, scope: ConfigScope) -> Path:
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
        raise CliError(f"{exc}; {_cure_for_path(scope)}") from None


def _cure_for_path(scope: ConfigScope) -> str:
    return "leave --scope project out" if scope == "project" else "set it to your home directory"


def _absolute(file: str) -> str:
    """Return `FILE` or `FILE:NAME` with an absolute path: clients start it in any directory."""
    path, name = Path(file), ""
    if not path.exists():
        before, colon, name = file.rpartition(":")
        path = Path(before if colon else file)
    if not path.is_file():
        raise CliError(f"there is no file {path}; give the path of a Python file")
    # A symbolic link stays one: it may lead to the next release tomorrow.
    absolute = str(path.resolve() if ".." in path.parts else path.absolute())
    try:
        absolute.encode()
    except UnicodeEncodeError:
        raise CliError(f"{absolute!r} is not UTF-8; rename the file") from None
    return f"{absolute}:{name}" if name else absolute


def _split_variables(
    variables: Sequence[tuple[str, str | None]], scope: ConfigScope
) -> tuple[dict[str, str], bool, tuple[str, ...]]:
    """Return the variables with values, whether one came from the environment, and the others.

    The file of a project is shared, so it gets a reference and not the value.
    """
    values: dict[str, str] = {}
    forwarded: list[str] = []
    taken = False
    for name, value in variables:
        if value is None and name not in os.environ:
            raise CliError(
                f"--env {name}: that environment variable is not set; set it, or write"
                f" --env {name}=VALUE"
            )
        if value is None and scope == "project":
            forwarded.append(name)
            continue
        taken = taken or value is None
        values[name] = os.environ[name] if value is None else value
    for text in values.values():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise CliError("a value of --env is not UTF-8, as configuration files are") from None
    return values, taken, tuple(dict.fromkeys(forwarded))


def _check_server(server: ServerEntry, directory: Path, stderr: Screen) -> str:
    """Start the server as a client does, and return the name that it gives itself.

    Raises:
        CliError: it does not start or answer.
    """
    names: list[str] = []

    async def body(client: Client) -> int:
        names.append(client.peer.info.name if client.peer.info is not None else "")
        return 0

    forwarded = ((name, os.environ[name]) for name in server.forwarded)
    target = Target(
        server=(server.command, *server.args),
        env=(*server.env.items(), *forwarded),
        cwd=directory,
        stderr=stderr,
    )
    try:
        status = run_session(target, body)
    except CliError as exc:
        raise CliError(
            f"{exc}. Nothing was registered; --no-check registers it all the same", exc.status
        ) from exc
    if status:
        raise SystemExit(status)  # a signal
    return names[0]


def _name_for_clients(own_name: str, file: str) -> str:
    """Return the name of a server, or else of its file, with - for what clients do not accept."""
    stem = Path(file.rpartition(":")[0] or file).stem
    for text in own_name, stem:
        found = re.sub(r"[^A-Za-z0-9_-]+", "-", text).strip("-")
        if found:
            return found
    return "server"


@dataclass(frozen=True, slots=True)
class _Installation:
    """One server on its way into the file of one client."""

    client: ClientFormat
    scope: ConfigScope
    server: ServerEntry
    path: Path
    may_run_command: bool

    def show_only(self, screen: Screen) -> int:
        """Show the change and return 0."""
        _, change = self._plan()
        self._show(change, screen)
        return 0

    def run(self, stderr: Screen, *, yes: bool) -> int:
        """Show the change, ask, make it, and return the exit status."""
        shown: list[tuple[str, str]] = []
        for _ in range(_MAX_ATTEMPTS):
            snapshot, change = self._plan()
            if not change.is_needed:
                stderr.write_line(
                    f"mcp-trio: {self.server.name} is registered already, in ", str(self.path)
                )
                return 0
            if list(describe_change(change)) != shown:
                shown = list(describe_change(change))
                self._show(change, stderr)
                if not yes and not self._ask(stderr):
                    stderr.write_line("mcp-trio: nothing was changed")
                    return NO_CONNECTION
            try:
                copy = self._write(snapshot, change)
            except FileChanged:
                continue
            except OSError as exc:
                raise self._file_error(exc, "cannot be written") from exc
            title = self.client.title
            stderr.write_line(f"mcp-trio: {self.server.name} is registered with {title}")
            if self.client.needs_restart:
                stderr.write_line(f"mcp-trio: restart {title}, which reads its file at start only")
            if copy is not None:
                stderr.write_line("mcp-trio: the file as it was before is in ", str(copy))
            return 0
        raise CliError(
            f"{self.path} is changed by another program all the time; close {self.client.title},"
            " and try again",
            SERVER_ERROR,
        )

    def _plan(self) -> tuple[FileSnapshot, MemberChange]:
        try:
            snapshot = read_snapshot(self.path)
        except OSError as exc:
            raise self._file_error(exc, "cannot be read") from exc
        try:
            text = _decode(snapshot.data or b"")
            change = plan_registration(self.client, self.server, text)
            if change.is_needed and self._command(change) is None:
                if self.client.syntax is None:
                    require_tomlkit()
                change.apply(text)  # a file that cannot be changed is reported before the question
        except ConfigFileError as exc:
            raise CliError(
                f"{self.path}, line {exc.line}: {exc.problem}. Nothing was changed", SERVER_ERROR
            ) from exc
        except ImportError as exc:
            raise CliError(f"{exc}", SERVER_ERROR) from exc
        return snapshot, change

    def _command(self, change: MemberChange, server: ServerEntry | None = None) -> list[str] | None:
        """Return the client's own command line that makes the change; None if there is none.

        It is used for new entries only: Claude Code refuses to replace one, and others drop the
        members that the user has added.
        """
        client = self.client
        if not self.may_run_command or change.old is not None or client.add_command is None:
            return None
        program = shutil.which(str(client.program))
        # A relative path would run a program of the current directory. Windows runs .cmd files by
        # a shell, which would read the quotes and % of our words.
        if program is None or not Path(program).is_absolute():
            return None
        if Path(program).suffix.lower() in (".cmd", ".bat"):
            return None
        arguments = client.add_command(server or self.server, self.scope)
        return None if arguments is None else [program, *arguments]

    def _show(self, change: MemberChange, screen: Screen) -> None:
        title = f"{self.client.title}, for {_SCOPES[self.scope]}: "
        screen.write_line((title, "bold"), str(self.path))
        if not change.is_needed:
            screen.write_line(f"{self.server.name} is registered already")
            return
        for mark, line in describe_change(change):
            screen.write_line((f"{mark} {line}", _STYLES[mark]))
        if change.old is not None:
            screen.write_line(f"An entry {self.server.name} is there already, and is changed.")
        if self._command(change) is not None:
            hidden = replace(self.server, env=dict.fromkeys(self.server.env, "(hidden)"))
            screen.write_line("It is added by: ", shlex.join(self._command(change, hidden) or ()))
        for text in find_replaced(self.client, self.server):
            screen.write_line(
                (f"{self.client.title} replaces what looks like a variable in: {text}", "yellow")
            )

    def _ask(self, stderr: Screen) -> bool:
        terminal = open_terminal(stderr)
        if terminal is None:
            raise CliError(
                "nothing was changed: there is no terminal to ask at. Add --yes to make this"
                " change, or --dry-run to see it only",
                NO_CONNECTION,
            )
        question = partial(ask_permission, ("Make this change?",))
        return trio.run(terminal.run_dialogue, question).action == "accept"

    def _write(self, snapshot: FileSnapshot, change: MemberChange) -> Path | None:
        """Make the change, and return the path of the copy of the old file, if there was one.

        Raises:
            FileChanged: another program has changed the file; nothing was written.
            OSError: the file cannot be written.
            CliError: the client's own command failed.
        """
        command = self._command(change)
        if command is None:
            text = change.apply(_decode(snapshot.data or b""))
            return replace_file(snapshot, text.encode(), private=self.scope == "user")
        copy = keep_copy(snapshot)
        _run_command(command)
        self._report_missing()
        return copy

    def _report_missing(self) -> None:
        """Tell the user if the client's command has written the entry somewhere else."""
        try:
            text = _decode(read_snapshot(self.path).data or b"")
            is_there = not plan_registration(self.client, self.server, text).is_needed
        except (OSError, ConfigFileError):
            is_there = False
        if not is_there:
            Screen(sys.stderr).write_line(
                f"mcp-trio: {self.client.title} accepted it, but not into {self.path}; it may use"
                " another profile"
            )

    def _file_error(self, exc: OSError, problem: str) -> CliError:
        # Not `exc.filename`: that may be our temporary file.
        return CliError(f"{self.path} {problem}: {exc.strerror or exc}", SERVER_ERROR)


def _decode(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as exc:
        line = data.count(b"\n", 0, exc.start) + 1
        raise ConfigFileError(line, "this is not UTF-8") from None


def _run_command(command: Sequence[str]) -> None:
    """Run the client's own command.

    Raises:
        CliError: it failed.
    """
    name = Path(command[0]).name
    try:
        result = subprocess.run(  # noqa: S603 - the program of the client that the user names
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_ADD_TIMEOUT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise CliError(f"{name} did not end within {_ADD_TIMEOUT:g} s", SERVER_ERROR) from None
    except OSError as exc:
        raise CliError(f"{name} cannot be started: {exc.strerror}", SERVER_ERROR) from exc
    if result.returncode:
        output = shorten_text(result.stdout.decode(errors="replace").strip(), _MAX_OUTPUT)
        raise CliError(f"{name} failed with status {result.returncode}:\n{output}", SERVER_ERROR)
