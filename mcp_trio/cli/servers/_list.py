"""`mcp-trio servers list`: print all servers of the configuration files, and their states.

1. Only servers that are approved are started. Nothing is asked, approved or stored. A server's
   first pins are kept in memory, and the list says "not pinned yet".
2. Servers that aren't used, and problems of files, are listed below with their reasons.
"""

from __future__ import annotations

import sys
import unicodedata
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import trio

from mcp_core import McpTrioError
from mcp_core.drivers import shorten_text
from mcp_core.host import QualifiedName, ToolNames, approval_state, find_warnings
from mcp_trio.cli._errors import SERVER_ERROR, CliError, one_line
from mcp_trio.cli._screen import Screen
from mcp_trio.cli.configured._configured import approve_command
from mcp_trio.cli.configured._consent import shown_definition
from mcp_trio.host import ApprovalFile, Host, HostLimits, MemoryApprovals
from mcp_trio.host._configured import ConfiguredServer
from mcp_trio.host._prepared_launch import prepare_launch
from mcp_trio.host._sources import SourceOptions
from mcp_trio.streams._stdio import stop_on_signals

from ._places import find_files, read_files, shown_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from mcp_core.host import (
        Approvals,
        Definition,
        DefinitionWarning,
        MergedServers,
        PinComparison,
        ScopedServer,
        ServerCatalog,
        ServerStatus,
    )
    from mcp_trio.host._config_files import ConfigFiles

__all__ = ["list_servers"]

_MAX_COLUMN: Final = 40  # columns of a name; a longer one moves the rest of its line
_MAX_WARNINGS: Final = 5  # of one server; --json has all
_MAX_REASON: Final = 500  # characters
_HEADINGS: Final = ("NAME", "SCOPE", "TRANSPORT", "STATE", "TOOLS", "CHANGES")
_STATE_STYLES: Final = {
    "ready": "green",
    "failed": "red",
    "unapproved": "yellow",
    "needs login": "yellow",
}


@dataclass
class _Row:
    """The row of one server that is used.

    `pins` is the difference from what was approved. It is None if the server wasn't connected to,
    or has no pins yet; without pins `is_pinned` is False.
    """

    name: str
    scoped: ScopedServer
    state: str
    reason: str = ""
    tools: int | None = None
    pins: PinComparison | None = None
    is_pinned: bool = False
    warnings: list[tuple[Definition, DefinitionWarning]] = field(default_factory=list)

    @property
    def changes(self) -> str:
        """The changes since the approval, and the number of warnings, in words."""
        words = []
        if self.tools is not None and not self.is_pinned:
            words.append("not pinned yet")
        if self.pins is not None:
            counts = {
                "changed": self.pins.changed,
                "new": self.pins.new,
                "gone": self.pins.gone,
                "ambiguous": self.pins.ambiguous,
            }
            words += [f"{len(found)} {word}" for word, found in counts.items() if found]
        if self.warnings:
            words.append(f"{len(self.warnings)} warning{'s' * (len(self.warnings) > 1)}")
        return ", ".join(words)


def list_servers(*, config: Path | None, as_json: bool, connects: bool, timeout: float) -> int:
    """Print the servers of the configuration files, and return the exit status.

    It is 1 if a file has a problem.

    Args:
        config: the file, or None.
        as_json: whether to print one JSON document.
        connects: whether to connect to the servers that are approved.
        timeout: seconds for connecting.

    Raises:
        CliError: no server can be used, or there are more than a host connects to.
        InvalidApprovals: the stored approvals cannot be read.
    """
    stderr = Screen(sys.stderr)
    files = find_files(config)
    merged = read_files(files)
    try:
        approvals = ApprovalFile().load()
    except RuntimeError as exc:
        raise CliError(f"there is no place for approvals: {exc}", SERVER_ERROR) from None
    rows = [_unconnected(files, merged, approvals, name) for name in merged.servers]
    pending = [row for row in rows if row.state == "not connected"]
    stopped = 0
    most = HostLimits().servers
    if connects and len(pending) > most:
        raise CliError(
            f"there are {len(pending)} servers to connect to, and the limit is {most}; to list them"
            " without connecting, add --no-connect"
        )
    if connects and pending:
        count = f"{len(pending)} server{'s' * (len(pending) > 1)}"
        stderr.write_line(f"mcp-trio: connecting to {count}, for at most {timeout:g} s")
        stopped = trio.run(_connect, files, merged, approvals, pending, timeout)
    if stopped:
        return stopped
    screen = Screen(sys.stdout)
    if as_json:
        screen.write_json(_to_json(rows, merged))
    else:
        _show(rows, merged, screen)
        _show_cures(rows, config, stderr)
    return SERVER_ERROR if merged.problems else 0


def _unconnected(
    files: ConfigFiles, merged: MergedServers, approvals: Approvals, name: str
) -> _Row:
    """Return a server as it is known without a connection."""
    scoped = merged.servers[name]
    row = _Row(name, scoped, "not connected")
    if scoped.server.disabled:
        row.state = "disabled"
        return row
    try:
        prepared = prepare_launch(files, merged, name)
    except (McpTrioError, OSError) as exc:
        row.state, row.reason = "failed", f"{exc}"
        return row
    if prepared.needs_approval:
        approval = approvals.find(prepared.file, name)
        approved = approval_state(prepared.launch, approval, scoped.replaces)
        if approved != "approved":
            row.state = "unapproved"
            row.reason = "it has changed since it was approved" if approved == "changed" else ""
            if scoped.replaces:
                row.reason = f"it takes the place of the one in {', '.join(scoped.replaces)}"
    return row


async def _connect(
    files: ConfigFiles,
    merged: MergedServers,
    approvals: Approvals,
    rows: Sequence[_Row],
    timeout: float,
) -> int:
    """Connect to the servers of `rows`, and add what is found. Return 130 or 143 if stopped."""
    with trio.CancelScope() as scope, stop_on_signals(scope.cancel) as stop:
        # The reason of a failure has the last lines of a server's stderr.
        shared = SourceOptions(None, "discard")
        async with Host(
            [ConfiguredServer(files, merged, row.name, shared) for row in rows],
            approvals=MemoryApprovals(approvals),
            restart=False,
            wait=timeout,
            connect_timeout=timeout,
        ) as host:
            states = host.status()
            catalogs = {row.name: host.catalog(row.name) for row in rows}
            names = ToolNames(
                QualifiedName(name, tool.name)
                for name, catalog in catalogs.items()
                for tool in catalog.tools
            )
            for row in rows:
                stored = approvals.find(row.scoped.server.place.file, row.name)
                row.is_pinned = stored is not None and stored.pins is not None
                _complete(row, states[row.name], catalogs[row.name], names, timeout)
    return stop.exit_code


def _complete(
    row: _Row, status: ServerStatus, catalog: ServerCatalog, names: ToolNames, timeout: float
) -> None:
    """Add a server's state and what it offers."""
    row.state, row.reason = status.state, status.reason
    if status.state == "connecting":
        row.reason = f"it is not ready after {timeout:g} s"
    if status.state != "ready":
        return
    row.reason = "; ".join(f"{name}: {text}" for name, text in catalog.problems.items())
    row.tools = len(catalog.tools)
    comparison = catalog.comparison
    if comparison is None:
        return
    row.pins = comparison if row.is_pinned else None
    row.warnings = [
        (each, warning)
        for each in comparison.offered
        for warning in find_warnings(each, row.name, names)
    ]


# -- Text ------------------------------------------------------------------------------------------


def _show(rows: Sequence[_Row], merged: MergedServers, screen: Screen) -> None:
    if not rows:
        screen.write_line("There are no servers that can be used.")
    else:
        _show_table(rows, screen)
    for omitted in merged.omitted:
        screen.write_line(
            (shown_name(omitted.server.name), "dim"),
            f"  {omitted.scope}, left out: {omitted.explanation}",
        )
    for problem in merged.problems:
        screen.write_line(("problem  ", "red"), str(problem))


def _show_table(rows: Sequence[_Row], screen: Screen) -> None:
    cells = [_HEADINGS, *map(_cells, rows)]
    widths = [
        min(max(_columns(line[index]) for line in cells), _MAX_COLUMN)
        for index in range(len(_HEADINGS))
    ]
    screen.write_line((_padded(_HEADINGS, widths), "bold"))
    for row, line in zip(rows, cells[1:], strict=True):
        name, scope, transport, state, *others = line
        start = _padded([name, scope, transport], widths)
        start += " " * (sum(widths[:3]) + 4 - _columns(start))
        end = _padded(others, widths[4:])
        gap = max(widths[3] - len(state), 0)
        screen.write_line(
            (f"{start}  ", "bold" if row.state == "ready" else ""),
            (state, _STATE_STYLES.get(row.state, "")),
            f"{' ' * gap}  {end}".rstrip(),
        )
        if row.reason:
            screen.write_line("    ", shorten_text(row.reason, _MAX_REASON))
        for definition, warning in row.warnings[:_MAX_WARNINGS]:
            text = f"    ! {shown_definition(definition)}: {warning.path} {warning.text}"
            screen.write_line((text, "yellow"))
        if len(row.warnings) > _MAX_WARNINGS:
            more = len(row.warnings) - _MAX_WARNINGS
            screen.write_line((f"    ({more} more warnings: --json has them)", "yellow"))


def _cells(row: _Row) -> tuple[str, ...]:
    tools = "" if row.tools is None else str(row.tools)
    scoped = row.scoped
    return (
        shown_name(row.name),
        scoped.scope,
        scoped.server.transport,
        row.state,
        tools,
        row.changes,
    )


def _padded(cells: Iterable[str], widths: Iterable[int]) -> str:
    padded = (
        cell + " " * (width - _columns(cell)) for cell, width in zip(cells, widths, strict=False)
    )
    return "  ".join(padded).rstrip()


def _columns(text: str) -> int:
    """Return the columns that a text takes on a terminal: wide characters take two."""
    return sum(
        0 if unicodedata.combining(each) else 1 + (unicodedata.east_asian_width(each) in "WF")
        for each in text
    )


def _show_cures(rows: Sequence[_Row], config: Path | None, stderr: Screen) -> None:
    """Print the command line that approves what isn't approved, for the first such server."""
    waiting = [
        row.name
        for row in rows
        if row.state == "unapproved"
        or (row.pins is not None and (row.pins.changed or row.pins.new))
    ]
    if waiting:
        stderr.write_line(
            f"mcp-trio: to approve {len(waiting)} of {len(rows)} servers: ",
            approve_command(config, waiting[0]),
            *([" (or --all)"] if len(waiting) > 1 else []),
        )


# -- JSON ------------------------------------------------------------------------------------------


def _to_json(rows: Sequence[_Row], merged: MergedServers) -> dict[str, Any]:
    return {
        "servers": [_row_json(row) for row in rows],
        "omitted": [
            {
                "name": each.server.name,
                "scope": each.scope,
                "file": each.server.place.file,
                "line": each.server.place.line,
                "reason": each.reason,
                "explanation": each.explanation,
            }
            for each in merged.omitted
        ],
        "problems": [
            {
                "server": each.server,
                "file": each.place.file,
                "line": each.place.line,
                "problem": each.problem,
            }
            for each in merged.problems
        ],
    }


def _row_json(row: _Row) -> dict[str, Any]:
    place = row.scoped.server.place
    document: dict[str, Any] = {
        "name": row.name,
        "scope": row.scoped.scope,
        "file": place.file,
        "line": place.line,
        "transport": row.scoped.server.transport,
        "state": row.state,
    }
    if row.reason:
        document["reason"] = one_line(row.reason)
    if row.tools is None:
        return document
    document |= {"tools": row.tools, "pinned": row.is_pinned}
    if row.pins is not None:
        document |= {
            "changed": [_definition_json(new) for _, new in row.pins.changed],
            "new": [_definition_json(each) for each in row.pins.new],
            "gone": [_definition_json(each) for each in row.pins.gone],
            "ambiguous": [_definition_json(each) for each in row.pins.ambiguous],
        }
    document["warnings"] = [
        {**_definition_json(each), "warning": found.kind, "path": found.path, "text": found.text}
        for each, found in row.warnings
    ]
    return document


def _definition_json(definition: Definition) -> dict[str, str]:
    return {"kind": definition.kind, "name": definition.name}
