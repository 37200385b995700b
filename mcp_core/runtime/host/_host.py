"""A host: many servers, their merged lists, and calls that the user has approved.

A driver adds a subclass that opens a `HostRuntime` and calls `_open` and `_close`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar, Unpack

from mcp_core import types as t
from mcp_core._errors import CallTimeout
from mcp_core._keywords import shows_keywords
from mcp_core._on_first_use import type_on_first_use
from mcp_core._text import escape_text
from mcp_core.client._calls import CallOptions
from mcp_core.host._approvals import ApprovalRequired, ToolRule
from mcp_core.host._errors import CallDenied, ServerUnavailable, TooManyCalls
from mcp_core.host._names import NameCollision
from mcp_core.host._supervision import ServerEvent, ServerStatus
from mcp_core.host.catalog._merged import (
    HostPrompt,
    HostResource,
    HostResourceTemplate,
    HostTool,
)
from mcp_core.host.catalog._server import ServerCatalog
from mcp_core.runtime._client import AbstractClient

from ._audit_log import CallInProgress, CallRecorder
from ._changes import HostChanges
from ._options import ApprovalStore, HostLimits, HostOptions
from ._questions import DefinitionsQuestion, ServerQuestion
from ._servers import HOST_TIMEOUT, HostedServers, by_name, name_some
from ._source import ServerSource

if TYPE_CHECKING:
    from mcp_core.host._audit import CallOutcome
    from mcp_core.runtime.client_tasks._task import ClientTask

    from ._runtime import HostRuntime
    from ._server import HostedServer
else:
    ClientTask = type_on_first_use("mcp_core.runtime.client_tasks._task", "ClientTask")

__all__ = ["AbstractHost"]

T = TypeVar("T")


class AbstractHost:
    """Many servers behind one object: started, supervised, merged, and called with consent.

    Call methods inside the host's block only. A call of a tool, a prompt or a resource raises what
    `AbstractClient` raises, and these:

    - `UnknownName`: no server has it.
    - `NameCollision`: several servers have it.
    - `ServerUnavailable`: its server isn't connected.
    - `ApprovalRequired`, `CallDenied`: the user hasn't approved it, or has denied it, or the
      configuration of its server has.
    - `TooManyCalls`: the server has `HostLimits.calls` calls in flight.

    Args:
        options: see `HostOptions`.
    """

    def __init__(self, options: HostOptions) -> None:
        self._options = options
        self._limits = options.get("limits") or HostLimits()
        self._sources: dict[str, ServerSource] = {}
        self._hosted: HostedServers | None = None
        self._is_closed = False
        self._default_approvals: ApprovalStore | None = None  # a driver may set it before `_open`
        self._recorder: CallRecorder

    def __repr__(self) -> str:
        if self._hosted is None:
            return f"<{type(self).__name__}, not open>"
        states = [each.status.state for each in self._hosted.servers.values()]
        return f"<{type(self).__name__}, {states.count('ready')} of {len(states)} servers ready>"

    # -- What a driver calls ---------------------------------------------------------------------

    def _check_sources(self, sources: Iterable[ServerSource]) -> dict[str, ServerSource]:
        """Return `sources` by their names.

        Raises:
            ValueError: two servers have one name, a name is empty, or there are more servers than
                `HostLimits.servers`.
        """
        return by_name(sources, self._limits.servers)

    async def _open(self, runtime: HostRuntime, sources: Iterable[ServerSource]) -> None:
        """Connect to all servers, and wait as the option `wait` says.

        Raises:
            McpTrioError, OSError: the stored approvals cannot be read.
            ValueError: two servers have one name, a name is empty, or there are more servers than
                `HostLimits.servers`.
        """
        self._sources = self._check_sources(sources)
        hosted = HostedServers(self._options, self._limits, runtime, self._default_approvals)
        self._recorder = CallRecorder(self._options, runtime)
        await hosted.consent.load()
        self._hosted = hosted
        for source in self._sources.values():
            hosted.add(source)
        if not await hosted.wait_settled(self._options.get("wait", HOST_TIMEOUT)):
            late = [name for name, server in hosted.servers.items() if not server.is_usable]
            runtime.log_warning(f"servers that are not ready yet: {name_some(late)}")

    def _close(self) -> None:
        """Stop all servers. Their jobs end when the driver ends its tasks."""
        self._is_closed = True
        if self._hosted is not None:
            self._hosted.close()

    @property
    def _servers(self) -> HostedServers:
        if self._hosted is None:
            raise RuntimeError("the host is not open: write `async with Host(...) as host:`")
        if self._is_closed:
            raise RuntimeError("the host is closed: its methods are for the time of its block")
        return self._hosted

    # -- Servers ---------------------------------------------------------------------------------

    def status(self) -> dict[str, ServerStatus]:
        """Return each server's state and the problems of its lists, by name."""
        return {name: server.status for name, server in self._servers.servers.items()}

    def changes(self) -> HostChanges:
        """Return the stream of changes from now on: `async with host.changes() as changes: ...`."""
        return self._servers.listen()

    async def wait_settled(self, seconds: float | None = None) -> bool:
        """Wait until each server has become usable, or has failed.

        Return False if that takes longer than `seconds`; None for no limit.
        """
        return await self._servers.wait_settled(seconds)

    def add_source(self, source: ServerSource) -> None:
        """Add a server, and begin to connect to it.

        Args:
            source: how it is approved and connected to.

        Raises:
            ValueError: there is one of that name, or there are as many as `HostLimits.servers`.
        """
        servers = self._servers
        self._sources = self._check_sources([*self._sources.values(), source])
        servers.add(source)

    async def remove(self, server: str) -> None:
        """Remove `server`, and wait until its process or connection is gone.

        Raises:
            UnknownName: there is no such server.
        """
        source = self._sources.get(server)
        found = self._servers.find(server)
        found.remove()
        await self._servers.wait_removed(found)
        if self._sources.get(server) is source:  # else another task has added it anew
            self._sources.pop(server, None)

    async def replace_sources(self, sources: Iterable[ServerSource]) -> None:
        """Replace the servers by `sources`, and read the stored approvals again.

        Servers that are configured as before stay connected, and those that were not approved or
        could not be started are tried again.

        Raises:
            McpTrioError, OSError: the stored approvals cannot be read. Then nothing is changed.
            ValueError: two servers have one name, a name is empty, or there are more servers than
                `HostLimits.servers`. Then nothing is changed.
        """
        wanted = self._check_sources(sources)
        servers = self._servers
        await servers.consent.load()
        gone = [
            name
            for name, source in self._sources.items()
            if name not in wanted
            or not source.same_as(wanted[name])
            or servers.find(name).is_removed  # by a task that was cancelled before the end
        ]
        ending = {name: (self._sources[name], servers.find(name)) for name in gone}
        for _, server in ending.values():
            server.remove()  # side by side: a process may take seconds to end
        for name, (source, server) in ending.items():
            await servers.wait_removed(server)
            if self._sources.get(name) is source:  # else another task has removed it
                del self._sources[name]
        for name in self._sources:
            servers.find(name).look_again()
        for name, source in wanted.items():
            if name not in self._sources:
                self.add_source(source)

    def restart(self, server: str) -> None:
        """End `server` and start it anew, or connect again. Its calls in flight fail.

        A server that is disabled or not approved stays so.

        Raises:
            UnknownName: there is no such server.
        """
        self._servers.find(server).apply(ServerEvent.RESTARTED)

    def enable(self, server: str) -> None:
        """Connect to `server`, which is disabled.

        Raises:
            UnknownName: there is no such server.
        """
        self._servers.find(server).apply(ServerEvent.ENABLED)

    def disable(self, server: str) -> None:
        """End `server`, and don't start it again.

        Raises:
            UnknownName: there is no such server.
        """
        self._servers.find(server).apply(ServerEvent.DISABLED)

    def logged_in(self, server: str) -> None:
        """Connect again to `server`, now that the user has logged in.

        Raises:
            UnknownName: there is no such server.
        """
        self._servers.find(server).apply(ServerEvent.LOGGED_IN)

    def client(self, server: str) -> AbstractClient:
        """Return the open client of `server`, for calls that the host has no method for.

        Its calls are neither approved nor recorded. It also lists and calls tools that the server's
        configuration denies.

        Raises:
            UnknownName: there is no such server.
            ServerUnavailable: it isn't connected. `__cause__` is the error that ended the last
                attempt to connect, if there was one.
        """
        found = self._servers.find(server)
        if found.client is None or found.status.state != "ready":
            raise ServerUnavailable(server, found.status) from found.error
        return found.client

    # -- Lists -----------------------------------------------------------------------------------

    def tools(self) -> tuple[HostTool, ...]:
        """Return the tools that can be called now: approved ones, of servers that are ready."""
        return self._servers.catalog.tools()

    def prompts(self) -> tuple[HostPrompt, ...]:
        """Return the prompts that can be got now."""
        return self._servers.catalog.prompts()

    def resources(self) -> tuple[HostResource, ...]:
        """Return the resources that can be read now."""
        return self._servers.catalog.resources()

    def resource_templates(self) -> tuple[HostResourceTemplate, ...]:
        """Return the approved resource templates of servers that are ready."""
        return self._servers.catalog.resource_templates()

    def instructions(self) -> Mapping[str, str]:
        """Return the approved instructions for the model, by server."""
        return self._servers.catalog.instructions()

    def collisions(self) -> list[NameCollision]:
        """Return the names that several approved tools or prompts have. No list has them."""
        return self._servers.catalog.collisions()

    def catalog(self, server: str) -> ServerCatalog:
        """Return all that `server` offers, with the problems of its lists.

        Raises:
            UnknownName: there is no such server.
        """
        return self._servers.find(server).catalog

    # -- Approvals -------------------------------------------------------------------------------

    async def pending(self) -> dict[str, DefinitionsQuestion]:
        """Return the definitions that aren't approved, by server, of those that are connected.

        It lets other tasks run: to find the warnings about 500 tools takes up to half a second.
        """
        servers = self._servers
        await servers.runtime.sleep(0)
        found: dict[str, DefinitionsQuestion] = {}
        for name, server in list(servers.servers.items()):
            if server.status.state != "ready":
                continue
            comparison = servers.consent.find_unapproved(server.catalog)
            if comparison is not None:
                found[name] = await servers.prepare_question(server, comparison)
        return found

    async def server_question(self, server: str) -> ServerQuestion:
        """Return the question about `server`, from a project's file: what it would run now.

        Raises:
            UnknownName: there is no such server.
            McpTrioError, OSError: it cannot be started as it is configured, or needs no approval.
        """
        found = self._servers.find(server)
        return self._servers.consent.question_about_server(found.source, await found.prepare())

    async def approve_server(self, question: ServerQuestion) -> None:
        """Approve what the user was shown about a server, and connect to it.

        What was shown is approved: a server that would run something else by now stays
        "unapproved".

        Args:
            question: what was shown, from `server_question` or `on_approve_server`.

        Raises:
            UnknownName: there is no such server.
            McpTrioError, OSError: the approval cannot be stored.
        """
        await self._servers.find(question.server).approve(question)

    async def approve_definitions(self, question: DefinitionsQuestion) -> None:
        """Approve the definitions of `question`, from `pending`, as they were then.

        Raises:
            UnknownName: there is no such server.
            McpTrioError, OSError: the approval cannot be stored.
        """
        await self._servers.find(question.server).approve_definitions(question)

    async def add_rule(self, server: str, rule: ToolRule) -> None:
        """Keep `rule` for calls of the tools of `server`, as its `lifetime` says.

        Raises:
            UnknownName: there is no such server.
            McpTrioError, OSError: the rule cannot be stored.
        """
        await self._servers.consent.add_rule(self._servers.find(server).source, rule)

    # -- Calls -----------------------------------------------------------------------------------

    @shows_keywords(CallOptions)
    async def call(
        self, name: str, arguments: Mapping[str, Any] | None = None, **options: Unpack[CallOptions]
    ) -> t.CallToolResult:
        """Call a tool, and return its result. A tool that failed gives one with `is_error`.

        Args:
            name: the tool's merged name, as of `HostTool`.
            arguments: its arguments, by name.
            options: see `CallOptions`.
        """
        found = self._servers.catalog.find_tool(name) or self._servers.find_withheld(name)
        if found is None:
            raise self._servers.unknown("tool", name, (tool.name for tool in self.tools()))
        return await self.call_tool(found.server, found.name, arguments, **options)

    @shows_keywords(CallOptions)
    async def call_tool(
        self,
        server: str,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        **options: Unpack[CallOptions],
    ) -> t.CallToolResult:
        """Call a tool of one server, as `call` does.

        Args:
            server: the server's name.
            name: the tool's name at the server.
            arguments: its arguments, by name.
            options: see `CallOptions`.
        """
        hosted = self._servers.find(server)

        async def request(client: AbstractClient, checked: dict[str, Any]) -> t.CallToolResult:
            return await client.call_tool(name, checked, **self._call_options(hosted, options))

        with self._recorded(hosted, name, arguments) as record:
            result = await self._call_approved(hosted, name, record, options, request)
            record.is_tool_error = result.is_error is True
        return result

    @shows_keywords(CallOptions)
    async def start_tool(
        self,
        server: str,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        **options: Unpack[CallOptions],
    ) -> ClientTask:
        """Call a tool of one server as a task, and return the task once it is created.

        The call is approved as in `call_tool`. Its record says that the task was created, not how
        it ended. See `AbstractClient.start_tool` for the task.

        Args:
            server: the server's name.
            name: the tool's name at the server.
            arguments: its arguments, by name.
            options: see `CallOptions`.

        Raises:
            LocalProtocolError: the server or its revision has no tasks, or the tool doesn't run as
                one.
        """
        hosted = self._servers.find(server)

        async def request(client: AbstractClient, checked: dict[str, Any]) -> ClientTask:
            return await client.start_tool(name, checked, **self._call_options(hosted, options))

        with self._recorded(hosted, name, arguments) as record:
            return await self._call_approved(hosted, name, record, options, request)

    async def _call_approved(
        self,
        hosted: HostedServer,
        name: str,
        record: CallInProgress,
        options: CallOptions,
        request: Callable[[AbstractClient, dict[str, Any]], Awaitable[T]],
    ) -> T:
        """Check that a tool may be called, and make the request with the approved arguments."""
        hosted.require_allowed(name)  # before the wait for its server
        await self._wait_usable(hosted, options)
        definition = hosted.catalog.definition("tool", name)
        record.definition = "" if definition is None else definition.digest
        allowed = await self._servers.consent.check_call(
            hosted.source, hosted.catalog, name, dict(record.arguments)
        )
        record.allow(allowed.arguments, allowed.approved_by)
        await self._wait_usable(hosted, options)  # it may have ended while the user was asked
        hosted.require_approved("tool", name)
        if definition is not None and hosted.catalog.definition("tool", name) != definition:
            reason = "its definition has changed since the call was approved"
            raise ApprovalRequired(hosted.source.name, name, reason)
        with _CallSlot(hosted, self._limits.calls) as client:
            return await request(client, allowed.arguments)

    @contextmanager
    def _recorded(
        self, hosted: HostedServer, name: str, arguments: Mapping[str, Any] | None
    ) -> Iterator[CallInProgress]:
        """Record a call that is made in the block."""
        record = self._recorder.begin(hosted.source, name, arguments)
        try:
            yield record
        except BaseException as exc:
            self._recorder.end(record, _outcome_of(exc), exc)
            raise
        self._recorder.end(record, "tool error" if record.is_tool_error else "ok")

    @shows_keywords(CallOptions)
    async def get_prompt(
        self, name: str, arguments: Mapping[str, str] | None = None, **options: Unpack[CallOptions]
    ) -> t.GetPromptResult:
        """Return a prompt, filled in with arguments.

        Args:
            name: the prompt's merged name, as of `HostPrompt`.
            arguments: its arguments, by name.
            options: see `CallOptions`.
        """
        found = self._servers.catalog.find_prompt(name)
        if found is None:
            raise self._servers.unknown("prompt", name, (each.name for each in self.prompts()))
        hosted = self._servers.find(found.server)
        await self._wait_usable(hosted, options)
        hosted.require_approved("prompt", found.name)
        with _CallSlot(hosted, self._limits.calls) as client:
            return await client.get_prompt(
                found.name, arguments, **self._call_options(hosted, options)
            )

    @shows_keywords(CallOptions)
    async def read(self, uri: str, **options: Unpack[CallOptions]) -> t.ReadResourceResult:
        """Return a resource's contents.

        Args:
            uri: the URI of a `HostResource`, or a label `@<server>:<uri>`. A label also reads a
                resource that the server doesn't list.
            options: see `CallOptions`.
        """
        found = self._servers.catalog.find_resource(uri)
        if found is None:
            raise self._servers.unknown("resource", uri, (each.uri for each in self.resources()))
        hosted = self._servers.find(found.server)
        await self._wait_usable(hosted, options)
        with _CallSlot(hosted, self._limits.calls) as client:
            return await client.read_resource(found.name, **self._call_options(hosted, options))

    def _call_options(self, hosted: HostedServer, options: CallOptions) -> CallOptions:
        timeout = hosted.source.call_timeout or self._options.get("call_timeout", HOST_TIMEOUT)
        return {"timeout": timeout, **options}

    async def _wait_usable(self, hosted: HostedServer, options: CallOptions) -> None:
        """Wait for a server that is connecting, or whose lists are read for the first time.

        Raises:
            ApprovalRequired: the server itself wasn't approved.
            CallTimeout: it isn't usable within the call's timeout.
            ServerUnavailable: it isn't about to become usable.
        """
        servers = self._servers
        timeout = self._call_options(hosted, options).get("timeout")
        end = None if timeout is None else servers.runtime.monotonic() + timeout
        while not hosted.is_usable:
            if hosted.status.state == "unapproved" and hosted.is_settled:
                reason = "its command or address was not approved, or has changed"
                raise ApprovalRequired(hosted.source.name, None, reason)
            if hosted.is_settled:
                raise ServerUnavailable(hosted.source.name, hosted.status)
            left = None if end is None else end - servers.runtime.monotonic()
            if left is not None and left <= 0:
                shown = escape_text(hosted.source.name)
                raise CallTimeout(f"{shown} was not ready within {timeout:g} s (timeout)")
            await servers.changed.wait(servers.runtime.wait, left)


class _CallSlot:
    """Counts a call as in flight at a server while the block runs.

    The server gets the block's exception: it may need a login, or be gone.

    Raises:
        TooManyCalls: there are as many as allowed.
        ServerUnavailable: the server isn't connected any more.
    """

    def __init__(self, hosted: HostedServer, limit: int) -> None:
        self._hosted = hosted
        self._limit = limit
        self._client: AbstractClient | None = None

    def __enter__(self) -> AbstractClient:
        hosted = self._hosted
        if hosted.calls >= self._limit:
            raise TooManyCalls(
                f"{escape_text(hosted.source.name)} has {hosted.calls} calls in flight, and"
                " HostLimits.calls allows no more: wait for one to end"
            )
        if hosted.client is None:
            raise ServerUnavailable(hosted.source.name, hosted.status)
        hosted.calls += 1
        self._client = hosted.client
        return hosted.client

    def __exit__(self, _: object, exc: BaseException | None, __: object) -> None:
        hosted = self._hosted
        hosted.calls -= 1
        if exc is not None and self._client is not None:
            hosted.call_failed(self._client, exc)


def _outcome_of(exc: BaseException) -> CallOutcome:
    if isinstance(exc, ApprovalRequired | CallDenied):
        return "denied"
    if isinstance(exc, CallTimeout):
        return "timeout"
    return "error" if isinstance(exc, Exception) else "cancelled"
