"""`mcp-trio install FILE --client CLIENT`: register a server file with a program that starts it.

1. The server is started once as the client will start it, so that a fault is seen here and not in
   the client's log.
2. A new entry is written by the client's own command, if it has one. Otherwise the entry is written
   to the client's file, and the rest of the file stays as it is.
3. The change is shown and confirmed before anything is written. Values of environment variables
   are never shown. A value that comes from the environment is never put on a command line, which
   other users of the machine can see.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from mcp_core.drivers import shorten_text
from mcp_core.host import (
    CLIENT_FORMATS,
    ConfigFileError,
    ServerEntry,
    plan_registration,
    replaces_another,
)
from mcp_trio._files import keep_copy, read_snapshot
from mcp_trio.cli._config_update import (
    ConfigUpdate,
    decode_config,
    path_of_client,
    show_changes,
    show_replaced,
)
from mcp_trio.cli._errors import NO_CONNECTION, SERVER_ERROR, CliError
from mcp_trio.cli._options import add_asyncio, add_module, add_variables
from mcp_trio.cli._parser import new_parser
from mcp_trio.cli._screen import Screen
from mcp_trio.cli._served_file import absolute_file, serving_command
from mcp_trio.cli._session import Target, run_session
from mcp_trio.cli.servers._entry_words import split_variables
from mcp_trio.host._config_files import find_root
from mcp_trio.streams._child import with_cure

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mcp_core.host import ClientFormat, ConfigScope, MemberChange
    from mcp_trio._client import Client
    from mcp_trio._files import FileSnapshot

__all__ = ["install", "parse"]

_USAGE: Final = "mcp-trio install [options] FILE[:NAME] --client CLIENT"
_DESCRIPTION: Final = """\
Registers the mcp_trio.Server of FILE with a program that starts servers, under the Python that runs
this command. The server is started once, to see that it answers; then the change is shown, and made
if you agree. A copy of the old file is kept beside it."""
_EPILOG: Final = """\
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
_CLIENTS: Final = [name for name, client in CLIENT_FORMATS.items() if client.is_written]
_ADD_TIMEOUT: Final = 60.0  # seconds for the client's command; Node programs start slowly
_MAX_OUTPUT: Final = 2_000  # characters of the client's output in an error
_SCOPES: Final = {"user": "all projects", "project": "this project"}


def parse(words: Sequence[str]) -> Callable[[], int]:
    """Return a function that runs the subcommand and returns the exit status."""
    parser = new_parser("install", usage=_USAGE, description=_DESCRIPTION, epilog=_EPILOG)
    parser.add_argument(
        "file",
        metavar="FILE[:NAME]",
        nargs="?",
        help="the file, and the variable that holds the server",
    )
    add_module(parser)
    add_asyncio(parser)
    parser.add_argument("--client", required=True, choices=_CLIENTS, help="the program")
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
    add_variables(
        parser,
        "give the server this environment variable (may be repeated). NAME alone stores the value"
        " that it has here, or with --scope project a reference to the variable",
    )
    parser.add_argument(
        "--no-check", action="store_true", help="do not start the server; needs --name"
    )
    parser.add_argument("--dry-run", action="store_true", help="show the change only")
    parser.add_argument("--yes", action="store_true", help="make the change without a question")
    parser.add_argument(
        "--replace",
        action="store_true",
        help="with --yes: replace an entry of this name that starts something else, too",
    )
    found = parser.parse_intermixed_args(words)
    if (found.file is None) == (found.module is None):
        parser.error("give either FILE[:NAME], or -m PACKAGE.MODULE[:NAME]")
    if found.no_check and found.name is None:
        parser.error("--no-check needs --name: the server is not asked for its own")
    source = ("-m", found.module) if found.file is None else (absolute_file(found.file),)
    return partial(
        install,
        serving_command(*source, asyncio=found.asyncio),
        CLIENT_FORMATS[found.client],
        name=found.name,
        scope=found.scope,
        variables=found.env,
        check=not found.no_check,
        dry_run=found.dry_run,
        yes=found.yes,
        replace_another=found.replace,
    )


def _parse_name(text: str) -> str:
    if _NAME.fullmatch(text) is None:
        from argparse import ArgumentTypeError

        raise ArgumentTypeError(
            f"{text} is not a name; write letters, digits, _ and -, beginning without -"
        )
    return text


def install(
    command: Sequence[str],
    client: ClientFormat,
    *,
    name: str | None,
    scope: ConfigScope,
    variables: Sequence[tuple[str, str | None]],
    check: bool,
    dry_run: bool,
    yes: bool,
    replace_another: bool,
) -> int:
    """Register a server with a client, and return the exit status.

    Args:
        command: the command that starts the server, and ends in its file or module.
        client: the client.
        name: the entry's name; None takes the server's name.
        scope: the file of the user, or of the project in the current directory.
        variables: names and values; None takes the value, or a reference.
        check: whether to start the server once.
        dry_run: whether to show the change only.
        yes: whether to make it without a question.
        replace_another: whether `yes` is also for an entry that starts something else.

    Raises:
        CliError: see the exit statuses of `_EPILOG`.
    """
    stderr = Screen(sys.stderr)
    path = path_of_client(client, scope)
    values, taken, forwarded = split_variables(variables, shared=scope == "project")
    program, *args = command
    server = ServerEntry(
        name=name or "", command=program, args=tuple(args), env=values, forwarded=forwarded
    )
    if check:
        directory = Path.cwd() if scope == "project" else Path.home()
        own_name = _check_server(server, directory, stderr)
        server = replace(server, name=name or _name_for_clients(own_name, args[-1]))
    job = _Installation(
        client,
        scope,
        server,
        path,
        may_run_command=not taken,
        keeps_others=yes and not replace_another and not dry_run,
    )
    if dry_run:
        job.show_only(Screen(sys.stdout))
        return 0
    return job.install(stderr, yes=yes)


def _check_server(server: ServerEntry, directory: Path, stderr: Screen) -> str:
    """Start the server as a client does, and return the name that it gives itself.

    Raises:
        CliError: it doesn't start or answer.
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
        cure = "Nothing was registered; --no-check registers it all the same"
        raise CliError(with_cure(str(exc), cure), exc.status) from exc
    if status:
        raise SystemExit(status)  # a signal
    return names[0]


def _name_for_clients(own_name: str, file: str) -> str:
    """Return the server's name, or else its file's name, with - for characters clients reject."""
    stem = Path(file.rpartition(":")[0] or file).stem
    for text in own_name, stem:
        found = re.sub(r"[^A-Za-z0-9_-]+", "-", text).strip("-")
        if found:
            return found
    return "server"


class _Installation(ConfigUpdate):
    """The registration of one server with one client."""

    def __init__(
        self,
        client: ClientFormat,
        scope: ConfigScope,
        server: ServerEntry,
        path: Path,
        *,
        may_run_command: bool,
        keeps_others: bool,
    ) -> None:
        super().__init__(
            path,
            private=scope == "user",
            program=client.title,
            root=find_root(Path.cwd()) if scope == "project" else None,
        )
        self._client = client
        self._scope = scope
        self._server = server
        self._may_run_command = may_run_command
        self._keeps_others = keeps_others

    def install(self, stderr: Screen, *, yes: bool) -> int:
        """Show the change, ask, make it, and return the exit status."""
        name, title = self._server.name, self._client.title
        outcome = self.run(stderr, yes=yes)
        if outcome.kind == "unchanged":
            stderr.write_line(f"mcp-trio: {name} is registered already, in ", self.shown_path)
        elif outcome.kind == "declined":
            stderr.write_line("mcp-trio: nothing was changed")
            return NO_CONNECTION
        else:
            stderr.write_line(f"mcp-trio: {name} is registered with {title}")
            if self._client.needs_restart:
                stderr.write_line(f"mcp-trio: restart {title}, which reads its file at start only")
            outcome.show_copy(stderr)
        return 0

    def plan(self, text: str) -> list[MemberChange]:
        change = plan_registration(self._client, self._server, text)
        return [change] if change.is_needed else []

    def check(self, changes: Sequence[MemberChange], text: str) -> None:
        if self._keeps_others and any(map(replaces_another, changes)):
            raise CliError(
                f"{self.path} has an entry {self._server.name} that starts something else, and"
                " --yes does not replace it: choose another --name, or add --replace"
            )
        if self._command(changes) is None:
            super().check(changes, text)

    def _command(
        self, changes: Sequence[MemberChange], server: ServerEntry | None = None
    ) -> list[str] | None:
        """Return the client's own command line that makes the change; None to edit the file.

        It is used for new entries only: Claude Code refuses to replace one, and others drop the
        members that the user has added.
        """
        client, (change,) = self._client, changes
        if not self._may_run_command or change.old is not None or client.add_command is None:
            return None
        program = shutil.which(str(client.program))
        # A relative path would run a program of the current directory. Windows runs .cmd files by
        # a shell, which would read the quotes and % of our words.
        if program is None or not Path(program).is_absolute():
            return None
        if Path(program).suffix.lower() in (".cmd", ".bat"):
            return None
        arguments = client.add_command(server or self._server, self._scope)
        return None if arguments is None else [program, *arguments]

    def show(self, changes: Sequence[MemberChange], screen: Screen) -> None:
        client, server = self._client, self._server
        title = f"{client.title}, for {_SCOPES[self._scope]}: "
        screen.write_line((title, "bold"), self.shown_path)
        if not changes:
            screen.write_line(f"{server.name} is registered already")
            return
        show_changes(changes, screen)
        if changes[0].old is not None:
            screen.write_line(f"An entry {server.name} is there already, and is changed.")
        if self._command(changes) is not None:
            hidden = replace(server, env=dict.fromkeys(server.env, "(hidden)"))
            screen.write_line("It is added by: ", shlex.join(self._command(changes, hidden) or ()))
        show_replaced(client, server, screen)

    def write(self, snapshot: FileSnapshot, changes: Sequence[MemberChange]) -> Path | None:
        """Make the change, and return the path of the copy of the old file, if there was one.

        Raises:
            FileChanged: another program has changed the file; nothing was written.
            OSError: the file cannot be written.
            CliError: the client's own command failed.
        """
        command = self._command(changes)
        if command is None:
            return super().write(snapshot, changes)
        copy = keep_copy(snapshot)
        _run_command(command)
        self._report_missing()
        return copy

    def _report_missing(self) -> None:
        """Tell the user if the client's command has written the entry somewhere else."""
        try:
            is_there = not self.plan(decode_config(read_snapshot(self.path).data or b""))
        except (OSError, ConfigFileError):
            is_there = False
        if not is_there:
            Screen(sys.stderr).write_line(
                f"mcp-trio: {self._client.title} accepted it, but not into {self.path}; it may use"
                " another profile"
            )


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
