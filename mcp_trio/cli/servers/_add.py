"""`mcp-trio servers add`: write a server into a configuration file.

The value of `--env NAME` is the user's secret. It is written only into the user's own file. A file
that others may get has a reference to the variable.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, NamedTuple

from mcp_core.host import (
    MAX_NAME_LENGTH,
    InvalidConfig,
    ServerEntry,
    entry_members,
    find_entry_line,
    fit_name,
    is_secret_name,
    merged_name,
    plan_entry,
    read_config,
)
from mcp_core.urls import url_transport
from mcp_trio.cli._errors import NO_CONNECTION, CliError, one_line
from mcp_trio.cli._screen import Screen

from ._entry_words import split_variables
from ._places import ServersUpdate, find_files, path_of_scope, shown_name

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from mcp_core.host import ClientFormat, MemberChange, ServerTransport

    from ._places import ConfigPath

__all__ = ["NewServer", "add", "require_kept_lists", "warn_if_omitted"]


class NewServer(NamedTuple):
    """A server as the command line names it.

    Args:
        url: the address of a remote server, or empty.
        command: the program of a server and its arguments, or empty.
        transport: the transport of a remote server. None takes the one that its address implies.
        variables: names and values; None takes the value, or a reference.
        headers: names and values.
        cwd: the program's directory, or None.
        allowed_tools: the tools that may be used; empty for all.
        denied_tools: the tools that may not be used.
    """

    url: str
    command: tuple[str, ...]
    transport: ServerTransport | None
    variables: Sequence[tuple[str, str | None]]
    headers: Sequence[tuple[str, str]]
    cwd: Path | None
    allowed_tools: tuple[str, ...] = ()
    denied_tools: tuple[str, ...] = ()

    def entry(self, name: str, *, shared: bool) -> ServerEntry:
        """Return the server's entry.

        Raises:
            CliError: a variable isn't set.
        """
        if self.url:
            row = url_transport(self.url)
            is_websocket = row is not None and row.is_websocket
            transport = self.transport or ("ws" if is_websocket else "http")
            if is_websocket != (transport == "ws"):
                scheme = "ws:// or wss://" if transport == "ws" else "http:// or https://"
                raise CliError(f"--transport {transport} needs a URL that begins with {scheme}")
            return ServerEntry(
                name=name,
                transport=transport,
                url=self.url,
                headers=dict(self.headers),
                allowed_tools=self.allowed_tools or None,
                denied_tools=self.denied_tools,
            )
        env, _, forwarded = split_variables(self.variables, shared=shared)
        return ServerEntry(
            name=name,
            command=self.command[0],
            args=self.command[1:],
            env=env,
            forwarded=forwarded,
            cwd=None if self.cwd is None else str(self.cwd),
            allowed_tools=self.allowed_tools or None,
            denied_tools=self.denied_tools,
        )


def add(
    name: str,
    server: NewServer,
    *,
    config: Path | None,
    scope: str,
    replace: bool,
    dry_run: bool,
    yes: bool,
) -> int:
    """Write a server into a configuration file, and return the exit status.

    Args:
        name: the name of the server in the file.
        server: the server.
        config: the file, or None.
        scope: the file's scope, without `config`.
        replace: whether to replace a server that has the name already.
        dry_run: whether to show the change only.
        yes: whether to make it without a question.

    Raises:
        CliError: the name is taken, or the file cannot be read or changed.
    """
    stderr = Screen(sys.stderr)
    place = path_of_scope(config, scope)
    entry = server.entry(name, shared=place.shared)

    def plan(client: ClientFormat, text: str) -> list[MemberChange]:
        change = plan_entry(client, name, entry_members(client, entry), text)
        if server.allowed_tools or server.denied_tools:
            _check_lists(change, text, place)
        line = find_entry_line(client, name, text)
        if replace:
            require_kept_lists(change)
        if line is None or (replace and change.is_needed):
            return [change]
        if change.is_needed:
            raise CliError(
                f"{shown_name(name)} is in {place.path}, line {line} already: choose another name,"
                " or add --replace"
            )
        return []

    update = ServersUpdate(place, plan, list(_find_notes(place, entry)))
    if dry_run:
        update.show_only(Screen(sys.stdout))
        return 0
    outcome = update.run(stderr, yes=yes)
    if outcome.kind == "declined":
        stderr.write_line("mcp-trio: nothing was changed")
        return NO_CONNECTION
    already = " already" if outcome.kind == "unchanged" else ""
    stderr.write_line(f"mcp-trio: {shown_name(name)} is{already} in ", update.shown_path)
    outcome.show_copy(stderr)
    warn_if_omitted(name, place, stderr)
    return 0


def _find_notes(place: ConfigPath, entry: ServerEntry) -> list[str]:
    """Return what the user should know before they agree."""
    notes = []
    merged = merged_name(entry.name, "x")
    if fit_name(merged) != merged:
        notes.append(
            "The names of its tools will be shortened, to end in a digest: models accept"
            f" {MAX_NAME_LENGTH} characters of [a-zA-Z0-9_-], and they begin with"
            f" {shown_name(merged.removesuffix('x'))}"
        )
    if place.shared:
        notes += [
            f"Others may get this file with the value of {one_line(header)}; to keep it out, write"
            f" a variable: --header '{one_line(header)}: ${{NAME}}'"
            for header, value in entry.headers.items()
            if is_secret_name(header) and "${" not in value
        ]
        notes += [
            f"Others may get this file with the value of {one_line(variable)}; to keep it out,"
            f" write --env {one_line(variable)}"
            for variable, value in entry.env.items()
            if is_secret_name(variable) and "${" not in value
        ]
    return notes


def _check_lists(change: MemberChange, text: str, place: ConfigPath) -> None:
    """Check that the lists of a new entry can be read again.

    Raises:
        CliError: a list has a name that no tool can have.
    """
    read = read_config(change.apply(text), file=str(place.path))
    problems = [each for each in read.problems if each.server == change.path[-1]]
    if problems:
        raise CliError(f"{InvalidConfig(problems)}")


def require_kept_lists(change: MemberChange) -> None:
    """Check that a new entry of a server has lists of tools if the old one has.

    Raises:
        CliError: it has none, so that denied tools could be used.
    """
    old = change.old if isinstance(change.old, dict) else {}
    lists = change.client.tool_lists or ()
    lost = [name for name in lists if old.get(name) is not None and name not in change.new]
    if lost:
        raise CliError(
            f"{shown_name(change.path[-1])} has {' and '.join(lost)} in its entry, which would be"
            " lost: give them to the new entry too (--allow-tool, --deny-tool), or remove the old"
            " one first: mcp-trio servers remove"
        )


def warn_if_omitted(name: str, place: ConfigPath, stderr: Screen) -> None:
    """Tell the user if a server that was written isn't used."""
    try:
        merged = find_files(place.path if place.chosen else None).read()
    except InvalidConfig as exc:
        stderr.write_message(f"mcp-trio: no server can be used: {exc}")
        return
    for each in merged.omitted:
        if (each.server.name, each.scope) == (name, place.scope):
            stderr.write_line(f"mcp-trio: {shown_name(name)} does not count: {each.explanation}")
