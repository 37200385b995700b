"""Sessions with a server of a configuration file, which a host approves, connects and calls.

1. As in every host, three things need approval: the launch of a project's server, each definition,
   and each call. A call that the user types at a terminal is approved. Without a terminal it needs
   a rule, or `--yes`.
2. `--yes` approves calls and definitions, `--approve-server` the start of a server. Both hold for
   this run, and store nothing.
3. A merged name begins with its server's name. Only servers whose names fit are started, nearly
   always one.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeVar, Unpack, cast

import trio

from mcp_core import McpTrioError
from mcp_core.host import (
    ApprovalRequired,
    CallDenied,
    ServerUnavailable,
    fit_name,
    merged_name,
    merged_prefix,
)
from mcp_trio.cli._errors import (
    NO_CONNECTION,
    SERVER_ERROR,
    CliError,
    join_names,
    suggestion,
    unknown_name,
)
from mcp_trio.cli.servers._places import find_files, read_files, shown_name, unusable_server
from mcp_trio.cli.state._handshakes import RememberedServer
from mcp_trio.cli.state._logins import login_storage
from mcp_trio.host import ApprovalFile, Host, MemoryApprovals
from mcp_trio.host._configured import ConfiguredServer, LaunchSource
from mcp_trio.host._sources import SourceOptions

from ._approved_servers import approving_option, shown_start
from ._consent import PausableTimeout, count_definitions

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Sequence

    from mcp_core.adapters import Recording
    from mcp_core.drivers import CallOptions
    from mcp_core.host import Approvals, MergedServers, ScopedServer, ToolRule
    from mcp_core.runtime import ClientTask
    from mcp_core.runtime.host import ApprovalStore, ServerSource
    from mcp_core.types import CallToolResult, Tool
    from mcp_trio._client import Client
    from mcp_trio.auth._authorization import LoginConfig
    from mcp_trio.cli._screen import Screen
    from mcp_trio.cli._session import Target
    from mcp_trio.host import HostOptions
    from mcp_trio.host._config_files import ConfigFiles
    from mcp_trio.host._prepared_launch import ExpandedLaunch
    from mcp_trio.host._sources import HostStderr, HostTrace

    from ._consent import TerminalConsent

Source = TypeVar("Source", bound=ConfiguredServer)

__all__ = ["ConfiguredSession", "ServerChoice", "approve_command", "choose_servers"]

# What a merged name may name.
MergedKind = Literal["tool", "prompt"]

_YES_NOTICE: Final = (
    "mcp-trio: --yes approves calls, and what the server offers, in this run, and stores nothing"
)


class ServerChoice(NamedTuple):
    """The server that a command line means, or several, if any of them may have what it names.

    Args:
        files: the configuration files.
        configuration: their servers, as they were read.
        config: the file of `--config`, or None.
        servers: the servers by name.
        merged: the merged name of a tool or a prompt, or "".
    """

    files: ConfigFiles
    configuration: MergedServers
    config: Path | None
    servers: Mapping[str, ScopedServer]
    merged: str = ""

    @property
    def first(self) -> ScopedServer:
        """The only server, or the first one."""
        return next(iter(self.servers.values()))

    @property
    def has_login(self) -> bool:
        """True if logins at the first server are stored. Its URL may begin with a variable."""
        return self.first.server.transport in ("http", "sse")

    def words(self, server: str) -> list[str]:
        """Return the options that name `server` on a command line."""
        config = [] if self.config is None else ["--config", str(self.config)]
        return [*config, "--server", server]


def choose_servers(config: Path | None, server: str | None, merged: str = "") -> ServerChoice:
    """Return the server of configuration files that a command line means.

    Args:
        config: the file of `--config`, or None.
        server: the server's name. None takes the server of `merged`, or else the only one.
        merged: the merged name of a tool or a prompt, or "".

    Raises:
        CliError: there is no such server, or it isn't clear which one is meant.
    """
    files = find_files(config)
    configuration = read_files(files)
    known = configuration.servers
    if server is not None:
        if server not in known:
            raise unusable_server(server, configuration)
        return ServerChoice(files, configuration, config, {server: known[server]})
    if merged:
        found = {name: each for name, each in known.items() if _may_have(name, merged)}
        if not found:
            raise _no_server_of(merged, configuration)
        return ServerChoice(files, configuration, config, found, merged)
    if len(known) == 1:
        return ServerChoice(files, configuration, config, known)
    has = f"it has {join_names(list(known))}" if known else "it has none that can be used"
    problems = [str(each) for each in configuration.problems]
    raise CliError("\n".join([f"which server of {config}? Add --server NAME; {has}", *problems]))


def _may_have(server: str, merged: str) -> bool:
    return merged.startswith(merged_prefix(server))


def _no_server_of(merged: str, configuration: MergedServers) -> CliError:
    known = list(configuration.servers)
    has = f"the servers are {join_names(known)}" if known else "there are no servers"
    prefixes = [merged_prefix(name) for name in known]
    text = (
        f"{shown_name(merged)} names no server of the configuration files; {has}."
        f"{suggestion(merged, prefixes)} For a tool with this name give its server too: a URL, a"
        " file, or after `--` a command"
    )
    # A file that cannot be read may be the one that has it.
    return CliError("\n".join([text, *(str(each) for each in configuration.problems)]))


def approve_command(config: Path | None, server: str) -> str:
    """Return the command line that approves a server, with what it offers."""
    options = [] if config is None else ["--config", str(config)]
    return shlex.join(["mcp-trio", "servers", "approve", *options, server])


class ApprovedLaunch(NamedTuple):
    """A server that is approved, for a command that starts it or connects to it itself.

    Args:
        expanded: the launch with all values.
        denials: the stored rules that deny calls of its tools.
    """

    expanded: ExpandedLaunch
    denials: tuple[ToolRule, ...]


class _CommandApprovals:
    """The approvals in the user's file. If one cannot be stored there, it holds for this run.

    A home directory may be read-only, as in a container.
    """

    def __init__(self, file: ApprovalFile, stderr: Screen) -> None:
        self._store: ApprovalStore = file
        self._stderr = stderr

    def load(self) -> Approvals:
        return self._store.load()

    def change(self, function: Callable[[Approvals], Approvals]) -> Approvals:
        try:
            return self._store.change(function)
        except OSError as exc:
            text = f"mcp-trio: approvals cannot be stored, and hold for this run: {exc}"
            trio.from_thread.run_sync(self._stderr.write_line, text)
            self._store = MemoryApprovals(self._store.load())
            return self._store.change(function)


class ConfiguredSession:
    """A host with one server of the configuration files, for the session of one command.

    Args:
        choice: the server, or those that may be meant.
        consent: the user.
        kind: what the merged name of `choice` names.

    `server` is the server's name. With several servers it is known once the session is connected.
    """

    def __init__(
        self, choice: ServerChoice, consent: TerminalConsent, kind: MergedKind = "tool"
    ) -> None:
        self.choice = choice
        self.server = next(iter(choice.servers))
        self._consent = consent
        self._kind: MergedKind = kind
        self._host: Host | None = None

    @property
    def is_asking(self) -> bool:
        """True while the user is asked, so that the command doesn't wait for the server."""
        timeout = self._consent.timeout
        return timeout is not None and timeout.is_paused

    @asynccontextmanager
    async def connect(self, target: Target, connecting: trio.CancelScope) -> AsyncIterator[Client]:
        """Start the server or connect to it for a block's duration, if it is approved.

        Args:
            target: the session's options.
            connecting: the scope with the timeout, which waits while the user is asked.

        Raises:
            CliError: it isn't approved, is disabled, or doesn't have what is named.
            McpTrioError, OSError: it could not be connected to.
        """
        self._consent.timeout = PausableTimeout(connecting)
        if self._consent.assume_yes:
            target.stderr.write_line(_YES_NOTICE)
        sources: list[ServerSource] = [*self._sources(target, ConfiguredServer)]
        async with Host(sources, **await self._host_options(target)) as host:
            self._host = host
            self.server = self._find_server(host)
            client = self._client(host, self.server)
            self._report_replaced(target)
            await self._warn_about_definitions(host, target)
            yield client

    async def find_launch(self, target: Target) -> ApprovedLaunch:
        """Return the server's launch, with all values, if it is approved. It isn't started.

        Args:
            target: the command's options.

        Raises:
            CliError: it isn't approved, or is disabled.
            McpTrioError, OSError: it cannot be started as it is configured.
        """
        (source,) = self._sources(target, LaunchSource)
        options = await self._host_options(target)
        store = options["approvals"]
        assert store is not None, "each command has one"
        async with Host([source], **options) as host:
            if source.expanded is None:
                self._client(host, self.server)
        assert source.expanded is not None, "a host says why it has not tried"
        self._report_replaced(target)
        stored = await trio.to_thread.run_sync(store.load)
        approval = stored.find(source.file, source.name)
        rules = () if approval is None else approval.rules
        return ApprovedLaunch(source.expanded, tuple(each for each in rules if not each.is_allowed))

    def _sources(self, target: Target, kind: type[Source]) -> list[Source]:
        choice = self.choice
        auth = target.auth or _stored_logins(target)
        shared = SourceOptions(
            auth,
            _stderr_of(target),
            _trace_of(target),
            self._record_of(target),
            _remember if kind is ConfiguredServer else None,
        )
        return [kind(choice.files, choice.configuration, name, shared) for name in choice.servers]

    def _record_of(self, target: Target) -> Callable[[str], Recording] | None:
        recording = target.recording
        if recording is None:
            return None
        if len(self.choice.servers) > 1:
            raise CliError(
                f"--record is for one server, and {self.choice.merged} may be of"
                f" {join_names(list(self.choice.servers))}: add --server, and the name of the"
                f" {self._kind} there"
            )
        return lambda _: recording

    async def _host_options(self, target: Target) -> HostOptions:
        consent = self._consent
        options: HostOptions = {
            **_client_options(target),
            "approvals": await trio.to_thread.run_sync(self._open_approvals, target.stderr),
            "restart": False,
            "wait": None,  # the command has a timeout of its own
            "connect_timeout": target.connecting_timeout,
            "on_approve_server": consent.approve_server,
        }
        if consent.at_terminal or consent.assume_yes:
            options["on_call"] = _allow_call
        if consent.at_terminal:
            options["on_input"] = consent.enter_input
        return options

    def _open_approvals(self, stderr: Screen) -> ApprovalStore:
        try:
            stored = ApprovalFile()
        except RuntimeError as exc:
            raise CliError(f"there is no place for approvals: {exc}", SERVER_ERROR) from None
        if self._consent.stores_answers:
            return _CommandApprovals(stored, stderr)
        return MemoryApprovals(stored.load())

    # -- The server --------------------------------------------------------------------------------

    def _find_server(self, host: Host) -> str:
        """Return the server that has what the merged name names.

        Raises:
            CliError: several have it, or there are several servers and none of them has it.
        """
        names = list(self.choice.servers)
        if len(names) == 1:
            return names[0]
        found = [name for name in names if self.choice.merged in self._merged_names(host, name)]
        if len(found) == 1:
            return found[0]
        if found:
            raise CliError(
                f"several servers have {self.choice.merged}: {join_names(found)}. Add --server, and"
                f" the name of the {self._kind} there"
            )
        for name in names:  # one that isn't connected may have it
            self._client(host, name)
        known = [each for name in names for each in self._merged_names(host, name)]
        raise unknown_name(self._kind, self.choice.merged, known)

    def _merged_names(self, host: Host, server: str) -> dict[str, str]:
        """Return the names of the tools or prompts of a server, by their merged names."""
        catalog = host.catalog(server)
        items = catalog.tools if self._kind == "tool" else catalog.prompts
        return {fit_name(merged_name(server, each.name)): each.name for each in items}

    def _client(self, host: Host, server: str) -> Client:
        """Return a server's client.

        Raises:
            CliError: it isn't approved, or is disabled.
            McpTrioError, OSError: it could not be connected to.
        """
        try:
            return cast("Client", host.client(server))
        except ServerUnavailable as exc:
            error = self._unavailable(server, exc)
        # The error of the attempt to connect keeps its cause, which decides what the user reads.
        raise error

    def _unavailable(self, server: str, exc: ServerUnavailable) -> BaseException:
        """Return the error for a server that isn't connected."""
        shown = shown_name(server)
        if exc.status.state == "unapproved":
            return self._unapproved(server)
        if exc.status.state == "disabled":
            words = shlex.join(self._enable_command(server))
            return CliError(f"the server {shown} is disabled: {words}", NO_CONNECTION)
        if isinstance(exc.__cause__, McpTrioError | OSError):
            return exc.__cause__
        return CliError(f"{exc}", NO_CONNECTION)  # such as for a header that the protocol sets

    def _unapproved(self, server: str) -> CliError:
        shown = shown_name(server)
        words = approve_command(self.choice.config, server)
        cure = f"to see what it runs, and to approve it: {words}"
        question = self._consent.declined.get(server)
        if question is None:  # its launch has changed since it was approved a moment ago
            text = f"the server {shown} is not approved, so it was not started; {cure}"
            return CliError(text, NO_CONNECTION)
        if question.replaces:
            shown = (
                f"{shown} of {question.file} takes the place of the one in"
                f" {', '.join(question.replaces)}. It"
            )
        verb = "started" if question.launch.command else "connected to"
        text = f"the server {shown} is not approved, so it was not {verb}; {cure}"
        text += (
            f". Or, to {shown_start(question.launch)} in this run only, add"
            f" {approving_option(question)}"
        )
        if self._consent.assume_yes:
            text += ". --yes approves calls, and what the server offers, and not its start"
        return CliError(text, NO_CONNECTION)

    def _report_replaced(self, target: Target) -> None:
        scoped = self.choice.servers[self.server]
        if scoped.replaces:
            target.stderr.write_line(
                f"mcp-trio: {shown_name(self.server)} is the server of {scoped.server.place.file};"
                f" the one in {', '.join(scoped.replaces)} is not used"
            )

    def _enable_command(self, server: str) -> list[str]:
        config = self.choice.config
        options = [] if config is None else ["--config", str(config)]
        return ["mcp-trio", "servers", "enable", *options, server]

    async def _warn_about_definitions(self, host: Host, target: Target) -> None:
        question = (await host.pending()).get(self.server)
        if question is not None and not self._consent.assume_yes:
            target.stderr.write_line(
                f"mcp-trio: {shown_name(self.server)} offers {count_definitions(question)} that"
                " you have not approved: ",
                approve_command(self.choice.config, self.server),
            )

    # -- What it offers ----------------------------------------------------------------------------

    @property
    def _opened(self) -> Host:
        assert self._host is not None, "the session is connected"
        return self._host

    def local_name(self, name: str) -> str:
        """Return the name by which the server knows `name`, a word of the command line."""
        if not self.choice.merged:
            return name
        known = self._merged_names(self._opened, self.server)
        return known.get(name, name.removeprefix(merged_prefix(self.server)))

    def _denial_of(self, tool: str) -> str | None:
        return self.choice.servers[self.server].server.find_tool_denial(tool)

    def allowed_tools(self, tools: Sequence[Tool]) -> list[Tool]:
        """Return the tools that the server's entry allows."""
        return [tool for tool in tools if self._denial_of(tool.name) is None]

    async def require_approved(self, kind: MergedKind, name: str) -> None:
        """Check that a definition was approved as it is, or ask the user about the difference.

        Args:
            kind: a tool or a prompt.
            name: its name at the server, which lists it.

        Raises:
            CliError: it wasn't, or the entry of the server denies the tool.
        """
        host, server = self._opened, self.server
        denial = self._denial_of(name) if kind == "tool" else None
        if denial is not None:
            shown = f"the tool {shown_name(name)} of {shown_name(server)}"
            raise CliError(f"{shown} cannot be called: {denial}", NO_CONNECTION)
        state = host.catalog(server).state(kind, name)
        if state in ("pinned", "absent"):
            return
        shown = f"the {kind} {shown_name(name)} of {shown_name(server)}"
        pending = (await host.pending()).get(server)
        question = None if pending is None else pending.only(kind, name)
        if question is None:
            raise CliError(
                f"{shown} is listed several times with different definitions, so it is not used",
                NO_CONNECTION,
            )
        if await self._consent.approve_definitions(question):
            await host.approve_definitions(question)
            return
        what = "has changed since it was approved" if state == "changed" else "is not approved"
        raise CliError(
            f"{shown} {what}, so it was not used; to approve it:"
            f" {approve_command(self.choice.config, server)}",
            NO_CONNECTION,
        )

    async def call_tool(
        self, name: str, arguments: Mapping[str, Any], **options: Unpack[CallOptions]
    ) -> CallToolResult:
        """Call a tool of the server, as `Client.call_tool` does, if the call is approved.

        Raises:
            CliError: it isn't.
        """
        with _explained_denial(self.server):
            return await self._opened.call_tool(self.server, name, arguments, **options)

    async def start_tool(
        self, name: str, arguments: Mapping[str, Any], **options: Unpack[CallOptions]
    ) -> ClientTask:
        """Call a tool of the server, as `Client.start_tool` does, if the call is approved.

        Raises:
            CliError: it isn't.
        """
        with _explained_denial(self.server):
            return await self._opened.start_tool(self.server, name, arguments, **options)


def _allow_call(server: str, tool: str, arguments: dict[str, Any]) -> Literal["allow"]:
    """Allow a call: the user has typed it, or has given `--yes`. A rule can still deny it."""
    return "allow"


@contextmanager
def _explained_denial(server: str) -> Iterator[None]:
    """Turn the errors about a call that isn't approved into a CliError with what to do."""
    try:
        yield
    except ApprovalRequired as exc:
        raise CliError(
            f"{exc}. Without a terminal a call needs your approval in advance: add --yes, which"
            " approves calls, and what the server offers, in this run; or run the command at a"
            " terminal",
            NO_CONNECTION,
        ) from exc
    except CallDenied as exc:
        raise CliError(f"{exc}", NO_CONNECTION) from exc


# -- The options of the host -----------------------------------------------------------------------


def _client_options(target: Target) -> HostOptions:
    """Convert a client's options to a host's, whose callbacks get the server's name first."""
    given = target.client_options
    found: HostOptions = {"versions": target.versions, "log_level": target.log_level}
    on_log, on_elicit = given.get("on_log"), given.get("on_elicit")
    if on_log is not None:
        found["on_log"] = lambda _, message: on_log(message)
    if on_elicit is not None:
        found["on_elicit"] = lambda _, params: on_elicit(params)
        found["elicitation"] = given.get("elicitation")
    if target.roots:
        found["on_roots"] = target.roots
    return found


def _remember(launch: ExpandedLaunch) -> RememberedServer:
    cwd = None if launch.cwd is None else Path(launch.cwd)
    return RememberedServer(launch.url or launch.argv, launch.env, cwd)


def _stored_logins(target: Target) -> LoginConfig:
    from mcp_trio.auth._authorization import LoginConfig

    return LoginConfig(storage=login_storage(target.keychain), browse=None)


def _stderr_of(target: Target) -> HostStderr:
    """Return where a started server's stderr goes, as for a server of the command line."""
    stderr = target.child_stderr
    return (lambda _, line: stderr(line)) if callable(stderr) else stderr


def _trace_of(target: Target) -> HostTrace | None:
    trace = target.trace
    return None if trace is None else lambda _, direction, line: trace(direction, line)
