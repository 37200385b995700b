"""`mcp-trio servers approve`: show what servers run and offer, and store what the user approves.

1. A server's launch is shown and stored first, and only then the server is started. Then what it
   offers is shown: everything the first time, later what is new or has changed.
2. Exactly what was shown is stored. What changes while the user reads isn't approved. Before
   anything is shown, empty pins are stored. Without pins, the next host would pin all that the
   server offers, and so also what the user has declined here.
3. There is no `--yes`: what this command stores is approved by a person who has seen it.
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

import trio
from msgspec.structs import replace

from mcp_core import McpTrioError
from mcp_core.host import (
    QualifiedName,
    approval_state,
    compare_pins,
    digest_launch,
    replace_pins,
)
from mcp_trio.cli._elicitation_answers import open_terminal
from mcp_trio.cli._errors import NO_CONNECTION, SERVER_ERROR, CliError
from mcp_trio.cli._screen import Screen
from mcp_trio.cli.configured._configured import approve_command
from mcp_trio.cli.configured._consent import TerminalConsent, count_definitions
from mcp_trio.host import (
    ApprovalFile,
    DefinitionsQuestion,
    Host,
    HostLimits,
    MemoryApprovals,
    ServerQuestion,
)
from mcp_trio.host._configured import ConfiguredServer
from mcp_trio.host._prepared_launch import prepare_launch
from mcp_trio.host._sources import SourceOptions
from mcp_trio.streams._stdio import stop_on_signals

from ._places import find_files, read_files, shown_name, unusable_server

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from mcp_core.host import Approvals, MergedServers, ServerApproval
    from mcp_trio.host._config_files import ConfigFiles

__all__ = ["approve"]


def approve(names: Sequence[str], *, all_servers: bool, config: Path | None, timeout: float) -> int:
    """Ask about servers and what they offer, and return the exit status.

    It is 3 if something isn't approved in the end.

    Args:
        names: the servers' names.
        all_servers: whether to ask about every server that isn't disabled.
        config: the file, or None.
        timeout: seconds to connect to the servers.

    Raises:
        CliError: there is no such server, no terminal, or an approval cannot be stored; or there
            are more servers than a host connects to.
        InvalidApprovals: the stored approvals cannot be read.
    """
    stderr = Screen(sys.stderr)
    terminal = open_terminal(stderr)
    if terminal is None:
        raise CliError(
            "nothing was approved: there is no terminal to ask at. Run it at one:"
            f" {approve_command(config, names[0] if names else '--all')}",
            NO_CONNECTION,
        )
    files = find_files(config)
    merged = read_files(files)
    if all_servers:
        names = [name for name, each in merged.servers.items() if not each.server.disabled]
        for problem in merged.problems:
            stderr.write_line(("mcp-trio: left out: ", "yellow"), str(problem))
    for name in names:
        if name not in merged.servers:
            raise unusable_server(name, merged)
    if len(names) > HostLimits().servers:
        raise CliError(f"{len(names)} servers are too many at once: name those to approve")
    try:
        stored = ApprovalFile()
    except RuntimeError as exc:
        raise CliError(f"there is no place for approvals: {exc}", SERVER_ERROR) from None
    review = _Review(files, merged, stored, TerminalConsent(stderr, terminal), stderr)
    try:
        return trio.run(review.run, list(dict.fromkeys(names)), timeout)
    except OSError as exc:
        raise CliError(f"the approval cannot be stored: {exc}", SERVER_ERROR) from exc


class _Review:
    """The questions about some servers, one after the other."""

    def __init__(
        self,
        files: ConfigFiles,
        merged: MergedServers,
        stored: ApprovalFile,
        consent: TerminalConsent,
        stderr: Screen,
    ) -> None:
        self._files = files
        self._merged = merged
        self._stored = stored
        self._consent = consent
        self._stderr = stderr
        self._incomplete = False

    async def run(self, names: Sequence[str], timeout: float) -> int:
        """Ask about the servers `names`, and return the exit status."""
        with trio.CancelScope() as scope, stop_on_signals(scope.cancel) as stop:
            approved = [name for name in names if await self._approve_launch(name)]
            enabled = [name for name in approved if not self._is_disabled(name)]
            if enabled:
                await self._approve_definitions(enabled, timeout)
        return stop.exit_code or (NO_CONNECTION if self._incomplete else 0)

    def _is_disabled(self, name: str) -> bool:
        return self._merged.servers[name].server.disabled

    async def _approve_launch(self, name: str) -> bool:
        """Return True if a server's launch is approved, or needs no approval."""
        try:
            prepared = await trio.to_thread.run_sync(
                prepare_launch, self._files, self._merged, name
            )
        except (McpTrioError, OSError) as exc:
            return self._report_unapproved(name, f"cannot be started: {exc}")
        if not prepared.needs_approval:
            return True
        approval = (await self._load()).find(prepared.file, name)
        replaces = self._merged.servers[name].replaces
        state = approval_state(prepared.launch, approval, replaces)
        if state != "approved":
            launch = prepared.launch
            question = ServerQuestion(
                server=name,
                file=prepared.file,
                launch=launch,
                state=state,
                replaces=replaces,
            )
            if not await self._consent.approve_server(question):
                return self._report_unapproved(name, "is not approved")
            digest, now = digest_launch(launch), time.time()
            await self._change(
                name,
                lambda old: replace(
                    old, launch=digest, replaces=replaces, approved=now, pins=old.pins or ()
                ),
            )
        if self._is_disabled(name):
            self._print(
                name,
                "is approved; it is disabled, so it was not started, and what it offers is not"
                " approved",
            )
        return True

    async def _approve_definitions(self, names: Sequence[str], timeout: float) -> None:
        """Connect to servers, and ask about what they offer."""
        count = f"{len(names)} server{'s' * (len(names) > 1)}"
        self._stderr.write_line(f"mcp-trio: connecting to {count}, for at most {timeout:g} s")
        # The reason of a failure has the last lines of a server's stderr.
        shared = SourceOptions(None, "discard")
        async with Host(
            [ConfiguredServer(self._files, self._merged, name, shared) for name in names],
            approvals=MemoryApprovals(await self._approvals_of_first_sight(names)),
            on_input=self._consent.enter_input,
            restart=False,
            wait=timeout,
            connect_timeout=timeout,
        ) as host:
            for name in names:
                await self._approve_offered(host, name)

    async def _approvals_of_first_sight(self, names: Sequence[str]) -> Approvals:
        """Return the stored approvals, without the pins of servers that have empty ones.

        A host pins a new server only when its lists no longer change. These pins are in memory, and
        aren't stored before they were shown.
        """
        approvals = await self._load()
        for name in names:
            approvals = approvals.with_change(
                self._file_of(name), name, lambda old: replace(old, pins=old.pins or None)
            )
        return approvals

    async def _approve_offered(self, host: Host, name: str) -> None:
        status = host.status()[name]
        if status.state != "ready":
            reason = status.reason or status.state
            self._report_unapproved(
                name, f"could not be connected to, so what it offers is unknown: {reason}"
            )
            return
        stored = (await self._load()).find(self._file_of(name), name)
        if stored is None or stored.pins is None:
            await self._change(name, lambda old: replace(old, pins=old.pins or ()))
        pins = () if stored is None else stored.pins or ()
        catalog = host.catalog(name)
        offered = () if catalog.comparison is None else catalog.comparison.offered
        comparison = compare_pins(pins, offered)
        if comparison.ambiguous:
            self._report_unapproved(
                name,
                f"lists {len(comparison.ambiguous)} definitions several times with differences;"
                " they are not used",
            )
        question = DefinitionsQuestion.about(name, comparison, await self._tools(host))
        shown = question.definitions
        if not shown:
            self._print(name, "is approved; nothing that it offers is new or has changed")
        elif await self._consent.approve_definitions(question):
            await self._change(name, lambda old: replace(old, pins=replace_pins(old.pins, shown)))
            self._print(name, f"is approved, with {count_definitions(question)}")
        else:
            self._report_unapproved(
                name, f"has {count_definitions(question)} that you have not approved"
            )

    async def _tools(self, host: Host) -> set[QualifiedName]:
        """Return the tools of all servers: the pinned ones, and those that are offered now."""
        approvals = await self._load()
        pinned = (
            QualifiedName(name, pin.name)
            for name in self._merged.servers
            if (found := approvals.find(self._file_of(name), name)) is not None
            for pin in found.pins or ()
            if pin.kind == "tool"
        )
        offered = (
            QualifiedName(name, tool.name)
            for name in host.status()
            for tool in host.catalog(name).tools
        )
        return {*pinned, *offered}

    # -- Approvals ---------------------------------------------------------------------------------

    def _file_of(self, name: str) -> str:
        return self._merged.servers[name].server.place.file

    async def _load(self) -> Approvals:
        return await trio.to_thread.run_sync(self._stored.load)

    async def _change(
        self, name: str, function: Callable[[ServerApproval], ServerApproval]
    ) -> None:
        file = self._file_of(name)
        await trio.to_thread.run_sync(
            self._stored.change, lambda approvals: approvals.with_change(file, name, function)
        )

    def _print(self, name: str, text: str) -> None:
        self._stderr.write_line(f"mcp-trio: {shown_name(name)} {text}")

    def _report_unapproved(self, name: str, text: str) -> bool:
        """Say what isn't approved, and return False."""
        self._incomplete = True
        self._stderr.write_message(f"mcp-trio: {shown_name(name)} {text}")
        return False
