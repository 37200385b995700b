"""`mcp-trio servers remove`, `enable` and `disable`: change a server that a file has."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

from mcp_core.host import find_entry_line, plan_disabling, plan_enabling, plan_removal
from mcp_trio.cli._errors import NO_CONNECTION, SERVER_ERROR, CliError
from mcp_trio.cli._screen import Screen

from ._places import ServersUpdate, find_server, shown_name

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from mcp_core.host import ClientFormat, MemberChange

__all__ = ["remove", "set_enabled"]

# The files that Claude Code reads too. It keeps in its settings which servers are off.
_FILES_OF_CLAUDE: Final = frozenset({".mcp.json", ".claude.json"})


def remove(name: str, *, config: Path | None, scope: str | None, dry_run: bool, yes: bool) -> int:
    """Remove a server from a configuration file, and return the exit status.

    Args:
        name: the server's name, which may be a broken one.
        config: the file, or None.
        scope: the file's scope; None for the only one that has the server.
        dry_run: whether to show the change only.
        yes: whether to make it without a question.

    Raises:
        CliError: no file has the server, or several do, or it cannot be removed.
    """
    stderr = Screen(sys.stderr)
    place, _, _ = find_server(name, config, scope)

    def plan(client: ClientFormat, text: str) -> Sequence[MemberChange]:
        return plan_removal(client, name, text)

    update = ServersUpdate(place, plan)
    if dry_run:
        update.show_only(Screen(sys.stdout))
        return 0
    outcome = update.run(stderr, yes=yes)
    if outcome.kind == "declined":
        stderr.write_line("mcp-trio: nothing was changed")
        return NO_CONNECTION
    stderr.write_line(f"mcp-trio: {shown_name(name)} is no longer in ", update.shown_path)
    outcome.show_copy(stderr)
    return 0


def set_enabled(name: str, enabled: bool, *, config: Path | None, scope: str | None) -> int:
    """Turn a server on or off in its configuration file, and return the exit status.

    Args:
        name: the server's name.
        enabled: whether it is to be used.
        config: the file, or None.
        scope: the file's scope; None for the only one that has the server.

    Raises:
        CliError: no file has the server, or several do, or the format has no way to do it.
    """
    stderr = Screen(sys.stderr)
    place, client, _ = find_server(name, config, scope)
    word = "enabled" if enabled else "disabled"

    def plan(client: ClientFormat, text: str) -> Sequence[MemberChange]:
        if find_entry_line(client, name, text) is None:
            raise CliError(f"{place.path} has just lost it; nothing was changed", SERVER_ERROR)
        return (plan_enabling if enabled else plan_disabling)(client, name, text)

    # Nothing is asked: it changes one member, and the opposite command undoes it.
    update = ServersUpdate(place, plan)
    outcome = update.run(stderr, yes=True)
    already = " already" if outcome.kind == "unchanged" else ""
    stderr.write_line(f"mcp-trio: {shown_name(name)} is {word}{already} in ", update.shown_path)
    if not enabled and client.name == "claude-code" and place.path.name in _FILES_OF_CLAUDE:
        stderr.write_line(
            "mcp-trio: Claude Code keeps that in its settings, and starts it all the same"
        )
    outcome.show_copy(stderr)
    return 0
