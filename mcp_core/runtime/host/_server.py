"""One server of a host while it runs: its attempts to connect, its lists, and its approval.

1. `ServerSupervisor` decides what state the server is in; this class does what the state demands.
   Each attempt to connect is a job. A new one starts when the one before has ended completely: its
   process is gone.
2. A lost connection is noticed by the subscription to changes of its lists, or by `wait_closed`.
   Over HTTP each request has its own connection: if a call is lost, a ping shows whether the server
   is gone.
3. A list that has changed is read again, at most once a second: a server may announce changes
   without end. One that could not be read is read again after delays that grow, one at a time.
"""

from __future__ import annotations

import errno
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

from mcp_core._errors import (
    AuthRequired,
    CallTimeout,
    ConnectFailed,
    ConnectionLost,
    Fault,
    McpTrioError,
    PeerError,
    ProtocolError,
    single,
)
from mcp_core._text import escape_text, shorten_text
from mcp_core.auth import AuthorizationFailed
from mcp_core.host._approvals import ApprovalRequired
from mcp_core.host._audit import redact_text
from mcp_core.host._errors import CallDenied
from mcp_core.host._supervision import ServerEvent, ServerStatus, ServerSupervisor
from mcp_core.host.catalog._server import ServerCatalog
from mcp_core.processes._windows_command import UnsafeArgument
from mcp_core.runtime._client_callbacks import CallbackCancelled, CallbackJob
from mcp_core.runtime._job import Job

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from mcp_core.client._options import ClientConfigOptions
    from mcp_core.host._launch import ServerLaunch
    from mcp_core.host._pins import DefinitionKind, PinComparison
    from mcp_core.host._supervision import CatalogList
    from mcp_core.runtime._client import AbstractClient

    from ._changes import HostChangeKind
    from ._consent import Consent
    from ._options import HostLimits
    from ._questions import DefinitionsQuestion, ServerQuestion
    from ._runtime import HostRuntime
    from ._source import ServerSource

__all__ = ["HostOfServers", "HostedServer"]

# Seconds without a change after which the first definitions are pinned. server-everything adds
# tools half a second after it was connected to.
_QUIET: Final = 1.0
# Seconds after which they are pinned in any case: a server may announce changes without end.
_MAX_QUIET: Final = 10.0
_REFRESH_INTERVAL: Final = 1.0  # seconds between two readings of one list
# Seconds before an ended subscription to changes is opened again.
_LISTEN_AGAIN: Final = 5.0
# Seconds for a subscription to begin: the lists are read after it. A server that announces changes,
# and doesn't answer a request for them, must not stay unusable for long.
_LISTEN_TIMEOUT: Final = 5.0
_CHECK_TIMEOUT: Final = 10.0  # seconds for a ping after a call whose connection was lost
# Questions about one server's definitions. A server that keeps changing them would wear its user
# down. `AbstractHost.pending` still has what waits.
_MAX_QUESTIONS: Final = 10
_MAX_REASON: Final = 2_000  # characters; the last lines of a process have 1,500
# Errors whose text says enough. Any other one is a bug, such as of a lifespan, and is logged.
_EXPECTED: Final = (McpTrioError, OSError, TypeError, ValueError)
# Errors of the system about a command that no later attempt can start: the file isn't a program,
# the path is invalid, or the arguments are too long. Others, such as too many open files, pass.
_BAD_COMMAND: Final = frozenset(
    {errno.E2BIG, errno.ELOOP, errno.ENAMETOOLONG, errno.ENOEXEC, errno.ENOTDIR}
)

# For each list: its capability, the member of the capability, and how the list is read.
_LISTS: Final[Mapping[CatalogList, tuple[str, Callable[[AbstractClient], Any]]]] = {
    "tools": ("tools", lambda client: client.list_tools),
    "prompts": ("prompts", lambda client: client.list_prompts),
    "resources": ("resources", lambda client: client.list_resources),
    "resource templates": ("resources", lambda client: client.list_resource_templates),
}


class HostOfServers(Protocol):
    """The host, as one of its servers sees it."""

    runtime: HostRuntime
    consent: Consent
    limits: HostLimits
    restarts: bool

    def client_options(self, source: ServerSource) -> ClientConfigOptions:
        """Return the options of a server's client."""

    def connect_timeout(self, source: ServerSource) -> float:
        """Return the seconds in which a server has to be connected."""

    async def inputs_of(self, source: ServerSource) -> Mapping[str, str]:
        """Return what the user has entered for a server, after asking for what is missing."""

    async def prepare_question(
        self, server: HostedServer, comparison: PinComparison
    ) -> DefinitionsQuestion:
        """Return the question about what is new or has changed, with steps for other tasks."""

    def status_changed(self, server: HostedServer, status: ServerStatus) -> None:
        """Report that a server's state has changed."""

    def catalog_changed(self, server: HostedServer, *kinds: HostChangeKind) -> None:
        """Report that a server's lists, or their approvals, have changed."""

    def connection_ended(self, server: HostedServer) -> None:
        """Report that a server's process or connection is gone."""

    def request_start(self, server: HostedServer) -> None:
        """Call the server's `start_attempt` as soon as a connection slot is free."""

    def attempt_settled(self, server: HostedServer) -> None:
        """Free the connection slot of a server's attempt."""


class _Attempt(Job):
    """One attempt to connect, and the connection that it leads to."""

    __slots__ = ("_server", "error", "is_ending", "number")

    def __init__(self, server: HostedServer, number: int) -> None:
        super().__init__()
        self.number = number
        self.error: BaseException | None = None
        self.is_ending = False
        self._server = server

    def end(self) -> None:
        """Cancel the attempt, unless it is ending: closing a process must not be cut short."""
        if not self.is_ending:
            self.is_ending = True
            self.stop()

    async def run(self) -> None:
        await self._server.connect(self.number)

    def done(self, result: None) -> None:
        pass

    def failed(self, exc: BaseException) -> None:
        if not isinstance(exc, Exception):
            raise exc  # such as KeyboardInterrupt
        self.error = single(exc)

    def dropped(self) -> None:
        self._server.attempt_ended(self)


class HostedServer:
    """One server of a host.

    Args:
        host: the host.
        source: how the server is approved and connected to.

    Attributes:
        source: as given.
        catalog: what the server offers.
        client: the open client, or None.
        calls: the number of calls in flight.
        error: why the last attempt to connect has failed or ended, or None.
        withheld: the names of the tools that its configuration denies.
    """

    def __init__(self, host: HostOfServers, source: ServerSource) -> None:
        self.source = source
        self.client: AbstractClient | None = None
        self.calls = 0
        self.error: BaseException | None = None
        self.withheld: tuple[str, ...] = ()
        self._host = host
        self._runtime = host.runtime
        self.catalog = ServerCatalog(
            source.name,
            needs_pins=source.needs_pins,
            limits=host.limits.catalog,
        )
        self._supervisor = ServerSupervisor(
            self._runtime.monotonic(),
            is_enabled=False,
            is_approved=not source.needs_approval,
            restarts=host.restarts,
        )
        self._attempt: _Attempt | None = None
        self._launch: ServerLaunch | None = None  # the last attempt's, if it was approved
        self._has_slot = False  # counts towards `HostLimits.connecting`
        self._retry: CallbackJob | None = None
        self._retries_at_once = False
        self._quiet: CallbackJob | None = None
        self._quiet_since = 0.0
        self._asking: CallbackJob | None = None
        self._check: CallbackJob | None = None
        # Waits until a list that could not be read is due, and reads it.
        self._reading: CallbackJob | None = None
        self._reading_of: CatalogList | None = None
        self._is_reading = False  # it reads, and doesn't wait any more
        self._read_now: tuple[CatalogList, ...] = ()  # by the task that follows changes
        # Digests of the definitions that the user was last asked about, or is being asked about.
        self._asked: frozenset[str] = frozenset()
        self._questions_left = _MAX_QUESTIONS
        self._read_at: dict[CatalogList, float] = {}
        self._is_listed = False
        self.is_removed = False

    def __repr__(self) -> str:
        return f"<HostedServer {self.source.name!r}, {self.status.state}>"

    @property
    def status(self) -> ServerStatus:
        """The present state."""
        return self._supervisor.status

    @property
    def is_running(self) -> bool:
        """True while its process or connection isn't closed completely."""
        return self._attempt is not None

    @property
    def is_usable(self) -> bool:
        """True if it is ready, its lists are read, and its first definitions are pinned."""
        return (
            self.status.state == "ready"
            and self._is_listed
            and not self.catalog.awaits_first_pins
            and self.client is not None
            and not self.client.is_closed  # its end is about to change the state
        )

    @property
    def is_settled(self) -> bool:
        """True if it is usable, or isn't about to become so."""
        state = self.status.state
        if self._retries_at_once or (self._asking is not None and state == "unapproved"):
            return False
        return self.is_usable or state not in ("connecting", "ready")

    # -- States ----------------------------------------------------------------------------------

    def apply(self, event: ServerEvent, *, reason: str = "", attempt: int | None = None) -> bool:
        """Apply an event, do what the new state demands, and return True if there is a new one."""
        if self.is_removed and event is not ServerEvent.DISABLED:
            return False  # such as `host.enable` while `host.remove` waits for the process
        now = self._runtime.monotonic()
        if event is ServerEvent.RETRY_DUE and self.status.retry_at is not None:
            now = max(now, self.status.retry_at)  # a clock may wake a task a little early
        reason = redact_text(reason, self.source.secrets)
        # An error of a process has a line for each of its last ones, and a status is one line.
        reason = "; ".join(line.strip() for line in reason.splitlines())
        reason = escape_text(shorten_text(reason, _MAX_REASON))
        status = self._supervisor.apply(event, now, reason=reason, attempt=attempt)
        if status is None:
            return False
        self._stop_waits()
        if status.state == "connecting":
            self._is_listed = False
            self._free_slot()
            if self._attempt is None:
                self._host.request_start(self)
            else:
                self._attempt.end()
        elif status.state != "ready":
            self._free_slot()
            if self._attempt is not None:
                self._attempt.end()
        self._retries_at_once = False
        if status.retry_at is not None:
            self._retries_at_once = status.retry_at <= now
            self._retry = self._later(status.retry_at - now, ServerEvent.RETRY_DUE)
        if status.state == "unapproved":
            self._ask(self._check_approval)
        self._host.status_changed(self, status)
        return True

    def _later(self, seconds: float, event: ServerEvent) -> CallbackJob:
        def on_end(_: object, error: BaseException | None) -> None:
            if error is None:
                self.apply(event)

        return self._start(partial(self._runtime.sleep, seconds), on_end)

    def _start(
        self,
        function: Callable[[], Awaitable[Any]],
        on_end: Callable[[Any, BaseException | None], object],
    ) -> CallbackJob:
        job = CallbackJob(function, on_end)
        self._runtime.start_job(job)
        return job

    def _log_error(self, text: str, error: BaseException) -> None:
        """Log an error, unless the host was cancelled: its jobs end too, and nothing is wrong."""
        if not isinstance(error, CallbackCancelled):
            self._runtime.log_error(text, error)

    def _stop_waits(self) -> None:
        if self._asking is not None:
            self._asked = frozenset()  # there will be no answer
        for job in self._retry, self._quiet, self._asking, self._check, self._reading:
            if job is not None:
                job.abandon()
        self._retry = self._quiet = self._asking = self._check = self._reading = None
        self._reading_of = None
        self._is_reading = False

    def look_again(self) -> None:
        """Use the approvals that are stored now. Try again if one, or a program, was missing."""
        self._compare_pins()
        status = self.status
        if self._launch is not None and status.state in ("connecting", "ready"):
            if self._host.consent.launch_state(self.source, self._launch) != "approved":
                self.apply(ServerEvent.APPROVAL_LOST, reason="its approval was removed")
            return
        if status.state == "unapproved" and self._asking is None:
            self._ask(self._check_approval)
        elif status.state == "failed" and status.retry_at is None:
            self.apply(ServerEvent.RESTARTED)

    def remove(self) -> None:
        """Stop everything. `is_running` is False when the process or connection is gone."""
        self.is_removed = True
        self.apply(ServerEvent.DISABLED)
        self._stop_waits()

    # -- Approval --------------------------------------------------------------------------------

    def _ask(self, function: Callable[[], Awaitable[object]]) -> None:
        """Ask one question. No other is open at the same time."""

        def on_end(_: object, error: BaseException | None) -> None:
            if self._asking is job:
                self._asking = None
            if error is not None:
                self._log_error(f"the approval of {self.source.name} failed", error)
            self._host.catalog_changed(self, "approval")
            if self.status.state == "ready":
                self._ask_about_definitions()  # about what has changed since

        if self._asking is not None:
            self._asking.abandon()
        self._asking = job = self._start(function, on_end)

    async def _check_approval(self) -> None:
        """Look up whether the launch is approved, or ask the user."""
        consent = self._host.consent
        try:
            launch = await self.prepare()
            is_approved = consent.launch_state(
                self.source, launch
            ) == "approved" or await consent.ask_about_server(self.source, launch)
        except (McpTrioError, OSError) as exc:  # of the configuration or the stored approvals
            self._asking = None  # this very job: `apply` must not cancel it
            self.error = exc
            self.apply(ServerEvent.REJECTED, reason=str(exc))
            return
        if is_approved:
            self._asking = None
            self.apply(ServerEvent.APPROVED)

    async def prepare(self) -> ServerLaunch:
        """Return what the user has to approve.

        Raises:
            McpTrioError, OSError: the server cannot be started as it is configured.
            ConnectFailed: its source has nothing to approve.
        """
        launch = await self._runtime.in_thread(self.source.prepare)
        if launch is None:
            raise ConnectFailed(
                f"{self.source.name} cannot be approved: `prepare` of its source has returned None"
            )
        return launch

    async def approve(self, question: ServerQuestion) -> None:
        """Store the approval of what `question` shows, and connect if nothing else would run now.

        Raises:
            McpTrioError, OSError: the approval cannot be stored.
        """
        await self._host.consent.approve_server(self.source, question)
        self.apply(ServerEvent.APPROVED)

    def require_allowed(self, tool: str) -> None:
        """Check that the server's configuration allows a tool.

        Raises:
            CallDenied: it doesn't.
        """
        denial = self.source.find_tool_denial(tool)
        if denial is not None:
            raise CallDenied(self.source.name, tool, denial)

    def require_approved(self, kind: DefinitionKind, name: str) -> None:
        """Check that a definition was approved as it is.

        Raises:
            ApprovalRequired: it wasn't, or the server doesn't offer it.
        """
        if self.catalog.state(kind, name) != "pinned":
            reason = "its definition has changed or was not approved yet"
            raise ApprovalRequired(self.source.name, name, reason)

    async def approve_definitions(self, question: DefinitionsQuestion) -> None:
        """Store the approval of a question's definitions."""
        await self._host.consent.pin(self.source, question.definitions)
        self._compare_pins()

    def _compare_pins(self) -> None:
        """Compare with the stored pins. Another process may have stored them."""
        if self.catalog.set_pins(self._host.consent.find(self.source).pins):
            self._host.catalog_changed(self, "approval")

    # -- Attempts --------------------------------------------------------------------------------

    def start_attempt(self) -> bool:
        """Begin to connect if that is still wanted, and return True if so.

        The host calls this when a connection slot is free. `attempt_settled` frees it again.
        """
        if self.status.state != "connecting" or self._attempt is not None:
            return False
        self._has_slot = True
        self._attempt = _Attempt(self, self.status.attempt)
        self._runtime.start_job(self._attempt)
        return True

    def _free_slot(self) -> None:
        if self._has_slot:
            self._has_slot = False
            self._host.attempt_settled(self)

    def attempt_ended(self, attempt: _Attempt) -> None:
        """Handle the end of an attempt: its process or connection is gone."""
        self._attempt = None
        self.client = None
        self._free_slot()
        self.error = attempt.error
        if attempt.error is not None:
            event, reason = _classify(attempt.error)
            if not isinstance(attempt.error, _EXPECTED):
                self._runtime.log_error(f"the server {self.source.name} failed", attempt.error)
        else:
            event, reason = ServerEvent.DIED, "the connection has ended"
        self.apply(event, reason=reason, attempt=attempt.number)
        if self.status.state == "connecting" and self.status.attempt != attempt.number:
            self._host.request_start(self)
        self._host.connection_ended(self)

    async def connect(self, attempt: int) -> None:
        """Connect, and keep the lists up to date until the connection has ended.

        Raises:
            McpTrioError, OSError: the server could not be connected to, or was lost.
        """
        source, host = self.source, self._host
        launch = None
        if source.needs_approval:
            launch = await self.prepare()
            if host.consent.launch_state(source, launch) != "approved":
                if self._attempt is not None:
                    self._attempt.is_ending = True
                self.apply(ServerEvent.APPROVAL_LOST, reason="what it runs has changed")
                return
            self._launch = launch
        self._compare_pins()
        inputs = await host.inputs_of(source)
        async with source.connect(host.client_options(source), inputs, launch) as client:
            self.client = client
            if not self.apply(ServerEvent.CONNECTED, attempt=attempt):
                return
            self._free_slot()
            try:
                lost = await self._follow(client)
            except ConnectionLost as exc:
                lost = exc
            self.client = None
            if self._attempt is not None:
                self._attempt.is_ending = True
            # Before the process is ended, so that no call is made in the meantime.
            self.apply(ServerEvent.DIED, reason=str(lost), attempt=attempt)

    def call_failed(self, client: AbstractClient, error: BaseException) -> None:
        """Handle the error of a call on `client`: the server may need a login now, or be gone.

        Over HTTP one request's connection is lost, not the server's. So the server is pinged. If
        the ping is lost too, the server is connected to again.
        """
        attempt = self._attempt
        if self.client is not client or attempt is None:
            return
        if isinstance(error, AuthRequired):
            self.apply(ServerEvent.LOGIN_REQUIRED, reason=str(error))
        if not isinstance(error, ConnectionLost) or client.is_closed:
            return
        if self.status.state != "ready" or self._check is not None:
            return

        def on_end(_: object, exc: BaseException | None) -> None:
            self._check = None
            if isinstance(exc, AuthRequired | ConnectionLost):
                self._connection_failed(attempt, exc)

        self._check = self._start(partial(client.ping, timeout=_CHECK_TIMEOUT), on_end)

    def _connection_failed(self, attempt: _Attempt, error: AuthRequired | ConnectionLost) -> None:
        attempt.error = error
        event, reason = _classify(error)
        self.apply(event, reason=reason, attempt=attempt.number)

    # -- Lists -----------------------------------------------------------------------------------

    async def _follow(self, client: AbstractClient) -> ConnectionLost:
        """Keep the lists up to date, and return why the connection has ended.

        Raises:
            AuthRequired: the server requires a login by now.
            ConnectionLost: it has ended during a request.
        """
        self.catalog.set_instructions(client.peer.instructions)
        self._quiet_since = self._runtime.monotonic()
        announced = _announced(client)
        while announced:
            try:
                async with client.listen(
                    tools="tools" in announced,
                    prompts="prompts" in announced,
                    resources="resources" in announced,
                    timeout=min(_LISTEN_TIMEOUT, self._host.connect_timeout(self.source)),
                ) as changes:
                    await self._read_lists(client, announced, *_LISTS)
                    async for change in changes:
                        await self._read_again(client, change.list)
            except (CallTimeout, ProtocolError, PeerError):
                announced = ()  # it announces changes, and accepts no subscription to them
            else:
                with suppress(CallTimeout):
                    # A server that is about to exit ends its subscriptions too.
                    return await client.wait_closed(_LISTEN_AGAIN)
        await self._read_lists(client, (), *_LISTS)
        return await client.wait_closed()

    async def _read_lists(
        self, client: AbstractClient, announced: tuple[str, ...], *names: CatalogList
    ) -> None:
        """Read lists, and see to it that those which could not be read are read again.

        `announced` are the lists whose changes the server announces.
        """
        self._read_now = names
        try:
            if self._reading_of in names:
                self._stop_reading()  # else an older response could replace a newer one
                self._read_unread(client, announced)  # another list, while these are read
            for name in names:
                await self._read(client, name)
        finally:
            self._read_now = ()
        self._lists_read(announced, *names)
        self._host.catalog_changed(self, *names, "approval")
        self._read_unread(client, announced)

    def _stop_reading(self) -> None:
        if self._reading is not None:
            self._reading.abandon()
        self._reading = self._reading_of = None
        self._is_reading = False

    def _read_unread(self, client: AbstractClient, announced: tuple[str, ...]) -> None:
        """Begin to wait until the next list that could not be read is read again.

        There is one such request at a time, and nothing cuts it short but a change of that list:
        else a server that announces changes of others could keep it from ever being read.
        """
        attempt = self._attempt
        unread = [each for each in self.status.problems if each.list not in self._read_now]
        if not unread or attempt is None or self._is_reading:
            return
        self._stop_reading()
        problem = min(unread, key=lambda each: each.retry_at)
        name = problem.list

        async def read() -> None:
            await self._runtime.sleep(max(problem.retry_at - self._runtime.monotonic(), 0.0))
            if self._reading is job:  # a task may wake before it is cancelled
                self._is_reading = True
                await self._read(client, name)

        def on_end(_: object, error: BaseException | None) -> None:
            self._reading = self._reading_of = None
            self._is_reading = False
            if isinstance(error, AuthRequired | ConnectionLost):
                self._connection_failed(attempt, error)
            elif error is not None:
                self._log_error(f"the lists of {self.source.name} failed", error)
            else:
                self._lists_read(announced, name)
                if name not in self.catalog.problems:
                    self._host.catalog_changed(self, name, "approval")
                self._read_unread(client, announced)

        self._reading_of = name
        self._reading = job = self._start(read, on_end)

    async def _read_again(self, client: AbstractClient, changed: str | None) -> None:
        """Read a list that has changed, and start the wait for a quiet time anew."""
        self._delay_first_pins()
        names = [name for name, (capability, _) in _LISTS.items() if capability == changed]
        due = max((self._read_at.get(name, 0.0) for name in names), default=0.0) + _REFRESH_INTERVAL
        now = self._runtime.monotonic()
        if due > now:
            with suppress(CallTimeout):
                raise await client.wait_closed(due - now)
        await self._read_lists(client, (changed or "",), *names)

    async def _read(self, client: AbstractClient, name: CatalogList) -> None:
        """Read a list. A problem with it is kept, and doesn't affect other lists."""
        capability, find_call = _LISTS[name]
        if getattr(client.peer.capabilities, capability, None) is None:
            self.catalog.set_list(name, ())
            return
        self._read_at[name] = self._runtime.monotonic()
        problems: list[str] = []
        try:
            # For all pages together: a server could page without end.
            seconds = self._host.connect_timeout(self.source)
            items = await find_call(client)(timeout=seconds, max_timeout=seconds, problems=problems)
        except (AuthRequired, ConnectionLost):
            raise
        except McpTrioError as exc:
            if name == "resource templates" and _is_unknown_method(client, exc):
                self.catalog.set_list(name, ())  # many servers have resources only
            else:
                self.catalog.set_problem(name, redact_text(str(exc), self.source.secrets))
        else:
            if name == "tools":
                denied = self.source.find_tool_denial
                self.withheld = tuple(tool.name for tool in items if denied(tool.name) is not None)
                items = [tool for tool in items if denied(tool.name) is None]
            for _ in self.catalog.set_list_in_steps(name, items):
                await self._runtime.sleep(0)
            if name not in self.catalog.problems:  # else the list from before is still in use
                secrets = self.source.secrets
                self.catalog.set_left_out(name, [redact_text(each, secrets) for each in problems])

    def _lists_read(self, announced: tuple[str, ...], *names: CatalogList) -> None:
        """Report problems, and pin the lists, which are complete for now, or ask about changes.

        `announced` are the lists whose changes the server announces, `names` those just read.
        """
        self._is_listed = True
        now, problems = self._runtime.monotonic(), self.catalog.problems
        is_news = False
        for name in names:
            is_news |= self._supervisor.list_read(name, problems.get(name), now)
        if is_news:
            self._host.status_changed(self, self.status)
        if all(name in problems for name in names) and self._quiet is not None:
            return  # lists that could not be read again don't delay the first pins
        if self.catalog.awaits_first_pins:
            waited = now - self._quiet_since
            quiet = min(_QUIET, _MAX_QUIET - waited) if announced or problems else 0.0
            if self._quiet is not None:
                self._quiet.abandon()
            self._quiet = self._start(partial(self._pin_first, max(quiet, 0.0)), self._pinned)
        else:
            self._ask_about_definitions()

    def _delay_first_pins(self) -> None:
        """Pin nothing until the changed list was read again, unless that takes too long."""
        waited = self._runtime.monotonic() - self._quiet_since
        if self._quiet is not None and waited < _MAX_QUIET:
            self._quiet.abandon()
            self._quiet = None

    async def _pin_first(self, quiet: float) -> None:
        if quiet:
            await self._runtime.sleep(quiet)
        self._quiet = None  # what is pinned must be stored: nothing abandons this job any more
        comparison = self.catalog.comparison
        offered = () if comparison is None else comparison.new
        await self._host.consent.pin_first(self.source, offered)

    def _pinned(self, _: object, error: BaseException | None) -> None:
        if error is not None:
            # A change could not be found later. So it must not be used, rather than never compared.
            self._log_error(f"the pins of {self.source.name} are not stored", error)
            reason = f"what it offers cannot be stored: {error}"
            self.apply(ServerEvent.REJECTED, reason=reason)
            return
        self._compare_pins()
        self._ask_about_definitions()

    def _ask_about_definitions(self) -> None:
        """Ask about definitions that aren't approved, unless the user sees or saw all of them."""
        comparison = self.catalog.comparison
        if comparison is None or self._asking is not None or not self._questions_left:
            return  # an open question stays as it is: its user must not answer another one
        digests = frozenset(each.digest for each in comparison.new)
        digests |= {new.digest for _, new in comparison.changed}
        if digests <= self._asked or comparison.is_first_sight:
            return
        if not self._host.consent.asks_about_definitions:
            return  # there is no callback, and warnings take long to find
        self._questions_left -= 1

        async def ask() -> None:
            question = await self._host.prepare_question(self, comparison)
            if await self._host.consent.ask_about_definitions(question):
                self._asking = None  # the answer must be stored: nothing abandons this job any more
                await self.approve_definitions(question)

        self._ask(ask)
        self._asked = digests


def _announced(client: AbstractClient) -> tuple[str, ...]:
    """Return the lists whose changes the server announces."""
    return tuple(
        capability
        for capability in ("tools", "prompts", "resources")
        if getattr(getattr(client.peer.capabilities, capability, None), "list_changed", None)
    )


def _is_unknown_method(client: AbstractClient, error: McpTrioError) -> bool:
    codes = client.peer.dialect.codes
    return isinstance(error, PeerError) and error.code == codes[Fault.METHOD_NOT_FOUND]


def _classify(error: BaseException) -> tuple[ServerEvent, str]:
    """Return what an error of an attempt means, and the reason for people.

    A program that cannot be started, a configuration that cannot be used and a refused login would
    be the same at the next attempt.
    """
    cause = error.__cause__ if isinstance(error, ConnectFailed) else error
    if isinstance(cause, AuthRequired):
        return ServerEvent.LOGIN_REQUIRED, str(error)
    refused = isinstance(
        cause, AuthorizationFailed | FileNotFoundError | PermissionError | UnsafeArgument
    ) or (isinstance(cause, OSError) and cause.errno in _BAD_COMMAND)
    if refused or not isinstance(error, ConnectFailed | ConnectionLost | OSError):
        is_expected = isinstance(error, _EXPECTED)
        text = str(error) if is_expected else f"{type(error).__name__}: {error}"
        return ServerEvent.REJECTED, text
    return ServerEvent.DIED, str(error)
