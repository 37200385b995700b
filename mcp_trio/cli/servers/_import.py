"""`mcp-trio servers import`: copy servers from the file of another client into a file of mcp-trio.

1. The user is asked about values that look like secrets. Without an answer, as with `--yes`, they
   become references to variables, and a message says so: each copy of a secret is one more that can
   leak.
2. A server that cannot be translated is left out, unless it was named.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from mcp_core.host import (
    InvalidConfig,
    find_entry_line,
    format_to_edit,
    import_servers,
    plan_entry,
    read_config,
)
from mcp_trio.cli._config_update import ask_user, path_of_client, read_config_file
from mcp_trio.cli._errors import (
    NO_CONNECTION,
    SERVER_ERROR,
    CliError,
    join_names,
    one_line,
    suggestion,
)
from mcp_trio.cli._screen import Screen

from ._add import require_kept_lists, warn_if_omitted
from ._places import ServersUpdate, path_of_scope, read_config_path, shown_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcp_core.host import (
        ClientFormat,
        ConfigFile,
        ImportedServer,
        LiteralSecret,
        MemberChange,
    )

    from ._places import ConfigPath

__all__ = ["import_from"]

_FORMAT: Final = "claude-code"  # of `.mcp.json`
# Servers of one import. Each is a change of the whole text; people have about ten.
_MAX_SERVERS: Final = 100


def import_from(
    client: ClientFormat | None,
    file: Path | None,
    names: Sequence[str],
    *,
    config: Path | None,
    scope: str,
    replace: bool,
    dry_run: bool,
    yes: bool,
) -> int:
    """Copy servers of another client into a configuration file, and return the exit status.

    Args:
        client: the other client, whose file of the user is read; or None.
        file: without `client` the file to read.
        names: the servers' names; none for all that can be translated.
        config: the file to write, or None.
        scope: the scope of the file to write, without `config`.
        replace: whether to replace servers that have such names already.
        dry_run: whether to show the change only.
        yes: whether to make it without a question, with references in place of secrets.

    Raises:
        CliError: there is no such server, one cannot be translated, a name is taken, or a file
            cannot be read or changed.
    """
    stderr = Screen(sys.stderr)
    source = _read_source(client, file)
    servers = _translate(source, names, stderr)
    place = path_of_scope(config, scope)
    is_asking = not (yes or dry_run)
    if is_asking and not replace:
        servers, replaced = _ask_to_replace(servers, place, stderr)
    else:
        replaced = frozenset(server.name for server in servers if replace)
    if not servers:
        stderr.write_line("mcp-trio: there is no server to import; nothing was changed")
        wrong = [each for each in source.problems if each.server is None and not each.ignored]
        return SERVER_ERROR if wrong else 0
    servers, secrets = _decide_secrets(servers, stderr, asking=is_asking)
    update = ServersUpdate(
        place,
        _Plan(servers, replaced, place),
        [
            f"{shown_name(server.name)}: {one_line(note)}"
            for server in servers
            for note in server.notes
        ],
    )
    if dry_run:
        update.show_only(Screen(sys.stdout))
        _show_references(secrets, stderr)
        return 0
    outcome = update.run(stderr, yes=yes)
    if outcome.kind == "declined":
        stderr.write_line("mcp-trio: nothing was changed")
        return NO_CONNECTION
    already = " already" if outcome.kind == "unchanged" else ""
    shown = join_names([server.name for server in servers])
    verb = "is" if len(servers) == 1 else "are"
    stderr.write_line(f"mcp-trio: {shown} {verb}{already} in ", update.shown_path)
    outcome.show_copy(stderr)
    _show_references(secrets, stderr)
    for server in servers:
        warn_if_omitted(server.name, place, stderr)
    return 0


class _Plan:
    """Plans the change for the format and text of the file that is written."""

    def __init__(
        self, servers: Sequence[ImportedServer], replaced: frozenset[str], place: ConfigPath
    ) -> None:
        self._servers = servers
        self._replaced = replaced
        self._place = place

    def __call__(self, client: ClientFormat, text: str) -> list[MemberChange]:
        if client.name != _FORMAT:
            raise CliError(
                f"{self._place.path} has the format of {client.title}: servers are imported into a"
                " file with the format of .mcp.json"
            )
        changes = []
        taken = []
        for server in self._servers:
            change = plan_entry(client, server.name, dict(server.members), text)
            line = find_entry_line(client, server.name, text)
            if line is not None and not change.is_needed:
                continue
            if line is not None and server.name not in self._replaced:
                taken.append(f"{shown_name(server.name)} (line {line})")
            else:
                require_kept_lists(change)
            changes.append(change)
        if taken:
            raise CliError(
                f"{self._place.path} has other servers with these names: {', '.join(taken)}. Name"
                " the servers to import, or add --replace"
            )
        return changes


def _read_source(client: ClientFormat | None, file: Path | None) -> ConfigFile:
    path = file if client is None else path_of_client(client, "user")
    assert path is not None
    snapshot, text = read_config_file(path)
    if snapshot.data is None and client is not None and path.suffix == ".json":
        # opencode has one of the two names.
        snapshot, text = read_config_file(path.with_suffix(".jsonc"))
    if snapshot.data is None:
        title = "there is" if client is None else f"{client.title} has"
        raise CliError(f"{title} no file {path}", SERVER_ERROR)
    try:
        return read_config(
            text, file=str(snapshot.path), format=None if client is None else client.name
        )
    except InvalidConfig as exc:
        raise CliError(f"{exc}", SERVER_ERROR) from exc


def _translate(source: ConfigFile, names: Sequence[str], stderr: Screen) -> list[ImportedServer]:
    """Return the servers in our format; without names all that can be translated."""
    known = [*source.servers, *sorted(source.broken)]
    for name in names:
        if name not in known:
            has = f"its servers are {join_names(known)}" if known else "it has none"
            raise CliError(
                f"{source.file} has no server {shown_name(name)}; {has}.{suggestion(name, known)}"
            )
        if name in source.broken:
            problems = [each for each in source.problems if each.server == name]
            raise CliError(f"{InvalidConfig(problems)}", SERVER_ERROR)
    wanted = list(dict.fromkeys(names or source.servers))
    if len(wanted) > _MAX_SERVERS:
        raise CliError(
            f"{source.file} has {len(source.servers)} servers: name those to import, at most"
            f" {_MAX_SERVERS}"
        )
    problems = [] if names else list(source.problems)
    try:
        found = import_servers(source, wanted)
    except InvalidConfig as exc:
        if names:
            raise CliError(f"{exc}", SERVER_ERROR) from exc
        refused = {each.server for each in exc.problems}
        problems += exc.problems
        found = import_servers(source, [name for name in wanted if name not in refused])
    for problem in problems:
        stderr.write_line(("mcp-trio: left out: ", "yellow"), str(problem))
    return found


def _ask_to_replace(
    servers: Sequence[ImportedServer], place: ConfigPath, stderr: Screen
) -> tuple[list[ImportedServer], frozenset[str]]:
    """Ask about each name that is taken, and return the servers to import, and those that replace.

    Raises:
        CliError: a name is taken and there is no terminal, or the user has cancelled.
    """
    _, text = read_config_file(place.path)
    client = format_to_edit(read_config_path(place.path, text))
    plan = _Plan(servers, frozenset(server.name for server in servers), place)
    changed = {change.path[-1] for change in plan(client, text) if change.old is not None}
    if changed and not stderr.terminal:
        _Plan(servers, frozenset(), place)(client, text)  # raises, with all names
    wanted: list[ImportedServer] = []
    replaced: set[str] = set()
    for server in servers:
        if server.name in changed:
            line = find_entry_line(client, server.name, text)
            name = shown_name(server.name)
            question = f"{place.path} has {name} in line {line}. Replace it?"
            if not _ask(question, stderr):
                continue
            replaced.add(server.name)
        wanted.append(server)
    return wanted, frozenset(replaced)


def _decide_secrets(
    servers: Sequence[ImportedServer], stderr: Screen, *, asking: bool
) -> tuple[list[ImportedServer], list[tuple[str, LiteralSecret]]]:
    """Return the servers with what the user wants in place of secrets, and the references."""
    decided: list[ImportedServer] = []
    references: list[tuple[str, LiteralSecret]] = []
    for server in servers:
        replaced = []
        for secret in server.secrets:
            question = (
                f"{one_line(secret.name)} of {shown_name(server.name)} looks like a secret. Copy"
                f" its value? No writes {secret.reference} in its place."
            )
            if not asking or not _ask(question, stderr):
                replaced.append(secret)
        references += [(server.name, secret) for secret in replaced]
        decided.append(server.replace_secrets(replaced))
    return decided, references


def _ask(question: str, stderr: Screen) -> bool:
    """Return True for yes, and False for no.

    Raises:
        CliError: the user has cancelled, or there is no terminal.
    """
    yes = "import the servers, with references to variables in place of what looks like a secret"
    answer = ask_user((question,), stderr, yes)
    if answer == "cancel":
        raise CliError("nothing was changed", NO_CONNECTION)
    return answer == "accept"


def _show_references(secrets: Sequence[tuple[str, LiteralSecret]], stderr: Screen) -> None:
    for name, secret in secrets:
        stderr.write_line(
            f"mcp-trio: {one_line(secret.name)} of {shown_name(name)} is {secret.reference}, not"
            f" its value: set the variable {secret.variable}"
        )
