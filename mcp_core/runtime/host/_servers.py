"""The servers of an open host: their merged lists, their changes, and the queue to connect."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Final

from mcp_core._limits import CLIENT_LIMITS
from mcp_core._text import escape_text, shorten_text
from mcp_core.client._options import ClientConfigOptions
from mcp_core.host._errors import UnknownName
from mcp_core.host._names import QualifiedName, fit_name, merged_name
from mcp_core.host._supervision import ServerEvent
from mcp_core.host.catalog._merged import HostCatalog
from mcp_core.protocol.revisions._config import PROBE_TIMEOUT
from mcp_core.protocol.revisions._dialects import ALL

from ._changes import HostChange, HostChangeKind, HostChanges
from ._consent import Consent, answer_of
from ._questions import DefinitionsQuestion
from ._runtime import HostRuntime, Signal
from ._server import HostedServer

if TYPE_CHECKING:
    from mcp_core.host._pins import PinComparison
    from mcp_core.host._supervision import ServerStatus

    from ._options import ApprovalStore, HostLimits, HostOptions
    from ._source import ServerSource

__all__ = ["HOST_TIMEOUT", "HostedServers", "by_name", "name_some"]

HOST_TIMEOUT: Final = 60.0  # seconds; the default of a host's timeouts
_MAX_NAMES: Final = 5  # servers that a text names
_MAX_NAME: Final = 200  # characters of a name in an error
# How many names are compared with an unknown one. Each takes 60 µs, and all tasks wait.
_MAX_COMPARED: Final = 500
_LEAST_SIMILARITY: Final = 0.6  # from which on a name is suggested
_LEAST_MERGED_SIMILARITY: Final = 0.8  # merged names begin with their server's name


class HostedServers:
    """The servers of one open host. It is the `HostOfServers` of each.

    Args:
        options: the host's options.
        limits: its limits.
        runtime: its runtime.
        default_approvals: where approvals are stored without the option, or None for in memory.

    Attributes:
        servers: by name.
        catalog: the merged lists.
        changed: notified after each change of a server.
    """

    def __init__(
        self,
        options: HostOptions,
        limits: HostLimits,
        runtime: HostRuntime,
        default_approvals: ApprovalStore | None = None,
    ) -> None:
        self.limits = limits
        self.restarts = options.get("restart", True)
        self.runtime = runtime
        self.consent = Consent(options, runtime.in_thread, runtime.wall_time, default_approvals)
        self.servers: dict[str, HostedServer] = {}
        self._scheme = options.get("names") or merged_name
        self.catalog = HostCatalog(self._scheme)
        self.changed = Signal(runtime.new_event)
        self._options = options
        self._listeners: list[HostChanges] = []
        self._waiting: dict[HostedServer, None] = {}  # until a connection slot is free
        self._connecting = 0
        self._inputs: dict[tuple[str, str], str] = {}
        self._inputs_asked: set[tuple[str, str]] = set()
        self._inputs_declined: set[tuple[str, str]] = set()

    # -- The host --------------------------------------------------------------------------------

    def find(self, name: str) -> HostedServer:
        """Return a server.

        Raises:
            UnknownName: there is no such server.
        """
        server = self.servers.get(name)
        if server is None:
            raise self.unknown("server", name, self.servers)
        return server

    def unknown(self, kind: str, name: str, known: Iterable[str]) -> UnknownName:
        """Build the error for an unknown name, with what may be the cause.

        It names lists of the kind that could not be read, and a similar name or the servers that
        aren't ready.
        """
        text = f"there is no {kind} {escape_text(shorten_text(name, _MAX_NAME))}"
        text += self._name_unread(kind)
        least = _LEAST_SIMILARITY if kind == "server" else _LEAST_MERGED_SIMILARITY
        similar = get_close_matches(name[:_MAX_NAME], islice(known, _MAX_COMPARED), 1, least)
        missing = [each for each, server in self.servers.items() if not server.is_usable]
        if similar:
            return UnknownName(f"{text}; did you mean {escape_text(similar[0])}?")
        if missing and kind != "server":
            return UnknownName(f"{text}; servers that are not ready: {name_some(missing)}")
        return UnknownName(text)

    def _name_unread(self, kind: str) -> str:
        found = {
            name: each.reason
            for name, server in self.servers.items()
            for each in server.status.problems
            if each.list == f"{kind}s"
        }
        if not found:
            return ""
        reason = f" ({next(iter(found.values()))})" if len(found) == 1 else ""
        return f"; {kind}s that could not be read: of {name_some(list(found))}{reason}"

    def find_withheld(self, merged: str) -> QualifiedName | None:
        """Return the tool that would have a merged name if its server's configuration allowed it.

        Ask the catalog first: a tool that may be used has the name before one that may not.
        """
        scheme = self._scheme
        for name, server in self.servers.items():
            for tool in server.withheld:
                if fit_name(scheme(name, tool)) == merged:
                    return QualifiedName(name, tool)
        return None

    def add(self, source: ServerSource) -> None:
        """Add a server, and begin to connect to it."""
        server = HostedServer(self, source)
        self.servers[source.name] = server
        self.catalog.update(server.catalog, is_available=False)
        if not source.is_disabled:
            server.apply(ServerEvent.ENABLED)

    async def wait_removed(self, server: HostedServer) -> None:
        """Wait until the process or connection of a server is gone, and forget it.

        Call `server.remove` before. Several tasks may wait for one server.
        """
        name = server.source.name
        while server.is_running:
            await self.changed.wait(self.runtime.wait, None)
        if self.servers.get(name) is server:
            del self.servers[name]
            self.catalog.discard(name)
            self.consent.forget_session(name)
            self._report(HostChange(name, "removed", server.status))

    def listen(self) -> HostChanges:
        """Return the stream of changes from now on."""
        changes = HostChanges(self.runtime, self._stop_listening)
        self._listeners.append(changes)
        return changes

    def _stop_listening(self, changes: HostChanges) -> None:
        if changes in self._listeners:
            self._listeners.remove(changes)

    def close(self) -> None:
        """Stop all servers, and end the streams of changes."""
        for server in self.servers.values():
            server.remove()
        for listener in self._listeners:
            listener.end()

    async def wait_settled(self, seconds: float | None) -> bool:
        """Wait until each server was settled once. Return False if the time is over first.

        They needn't be settled at the same time: one that failed may be connecting again.
        """
        end = None if seconds is None else self.runtime.monotonic() + seconds
        waiting = list(self.servers.values())
        while waiting := [server for server in waiting if not server.is_settled]:
            left = None if end is None else end - self.runtime.monotonic()
            if left is not None and left <= 0:
                return False
            await self.changed.wait(self.runtime.wait, left)
        return True

    # -- Each server (`HostOfServers`) -----------------------------------------------------------

    def client_options(self, source: ServerSource) -> ClientConfigOptions:
        """Return the options of a server's client, with its name in each callback."""
        options = self._options
        # A client tries one after the other, and a server that is silent answers neither.
        timeout = self.connect_timeout(source)
        probe_timeout = min(PROBE_TIMEOUT, timeout / 2)
        found: ClientConfigOptions = {
            "versions": options.get("versions", ALL),
            "probe_timeout": probe_timeout,
            "initialize_timeout": timeout - probe_timeout,
            "keep_alive": options.get("keep_alive"),
            "log_level": options.get("log_level"),
            "elicitation": options.get("elicitation"),
            "sampling": options.get("sampling"),
            "info": options.get("info"),
            "max_listing": min(self.limits.listing, CLIENT_LIMITS.listing),
        }
        on_elicit, on_sample = options.get("on_elicit"), options.get("on_sample")
        on_log, on_roots = options.get("on_log"), options.get("on_roots")
        if on_elicit is not None:
            found["on_elicit"] = partial(on_elicit, source.name)
        if on_sample is not None:
            found["on_sample"] = partial(on_sample, source.name)
        if on_log is not None:
            found["on_log"] = partial(on_log, source.name)
        if on_roots is not None:
            found["on_roots"] = partial(on_roots, source.name) if callable(on_roots) else on_roots
        return found

    def connect_timeout(self, source: ServerSource) -> float:
        """Return the seconds in which a server has to be connected."""
        return source.connect_timeout or self._options.get("connect_timeout", HOST_TIMEOUT)

    async def inputs_of(self, source: ServerSource) -> Mapping[str, str]:
        """Return what the user has entered for a server, after asking for what is missing."""
        ask = self._options.get("on_input")
        found: dict[str, str] = {}
        for id, each in source.inputs().items():
            key = source.file, id
            has_waited = key in self._inputs_asked
            while key in self._inputs_asked:  # for another server of the file
                await self.changed.wait(self.runtime.wait, None)
            is_declined = has_waited and key in self._inputs_declined
            if key not in self._inputs and ask is not None and not is_declined:
                self._inputs_asked.add(key)
                self._inputs_declined.discard(key)
                try:
                    value = await answer_of(ask(each))
                    if value is None:
                        self._inputs_declined.add(key)
                    else:
                        self._inputs[key] = value
                finally:
                    self._inputs_asked.discard(key)
                    self.changed.notify()
            if key in self._inputs:
                found[id] = self._inputs[key]
        return found

    async def prepare_question(
        self, server: HostedServer, comparison: PinComparison
    ) -> DefinitionsQuestion:
        """Return the question about what is new or has changed, with steps for other tasks."""
        steps = DefinitionsQuestion.in_steps(
            server.source.name, comparison, self.catalog.tool_names()
        )
        question = None
        for step in steps:
            await self.runtime.sleep(0)
            question = step
        assert question is not None
        return question

    def status_changed(self, server: HostedServer, status: ServerStatus) -> None:
        """Report that a server's state has changed."""
        self.catalog.set_available(server.source.name, server.is_usable)
        self._report(HostChange(server.source.name, "status", status))

    def catalog_changed(self, server: HostedServer, *kinds: HostChangeKind) -> None:
        """Report that a server's lists, or their approvals, have changed."""
        if server.is_removed:
            return
        self.catalog.update(server.catalog, is_available=server.is_usable)
        for kind in kinds:
            self._report(HostChange(server.source.name, kind, server.status))

    def connection_ended(self, server: HostedServer) -> None:
        """Report that a server's process or connection is gone."""
        self.changed.notify()

    def request_start(self, server: HostedServer) -> None:
        """Start the server's attempt to connect when a connection slot is free."""
        self._waiting[server] = None
        self._start_waiting()

    def attempt_settled(self, server: HostedServer) -> None:
        """Free the server's connection slot, and start the next waiting server."""
        self._connecting -= 1
        self._start_waiting()

    def _start_waiting(self) -> None:
        while self._waiting and self._connecting < self.limits.connecting:
            server = next(iter(self._waiting))
            del self._waiting[server]
            if server.start_attempt():
                self._connecting += 1

    def _report(self, change: HostChange) -> None:
        for listener in self._listeners:
            listener.add(change)
        self.changed.notify()


def by_name(sources: Iterable[ServerSource], limit: int) -> dict[str, ServerSource]:
    """Return sources by their names.

    Raises:
        ValueError: two have one name, a name is empty, or there are more than `limit`.
    """
    found: dict[str, ServerSource] = {}
    for source in sources:
        if not source.name:
            raise ValueError("a server needs a name")
        if source.name in found:
            raise ValueError(f"two servers have the name {escape_text(source.name)!r}")
        found[source.name] = source
        if len(found) > limit:
            raise ValueError(
                f"there are more than {limit} servers; HostLimits(servers=...) allows more"
            )
    return found


def name_some(names: list[str]) -> str:
    """Return the names of some servers, and the number of the others."""
    shown = ", ".join(escape_text(name) for name in names[:_MAX_NAMES])
    more = len(names) - _MAX_NAMES
    return f"{shown} and {more} more" if more > 0 else shown
