"""A session with a command's server: connect or start it, use it, close it in order.

1. Ctrl+C and SIGTERM cancel the running call. The server gets `notifications/cancelled`, and one
   that we started is ended in order. A second signal ends the command at once.
2. Connecting and each request have a timeout. If a user at the terminal may be asked during a
   call, that call has no maximum time.
3. At a URL without a path, `/mcp` is tried if the root isn't an MCP endpoint.
4. stderr of a server that we started is passed through as it arrives, so errors don't repeat it.
   On a terminal each line of it is quoted, with escapes for control characters: it could imitate
   this command, and would mix with prompts.
"""

from __future__ import annotations

import math
import os
import re
import shlex
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar, cast
from urllib.parse import urlsplit

import msgspec
import trio

from mcp_core import (
    ALL,
    AuthRequired,
    CallTimeout,
    ConnectFailed,
    ConnectionLost,
    Fault,
    LocalProtocolError,
    McpTrioError,
    PeerError,
    RemoteProtocolError,
    TaskCancelled,
)
from mcp_core.auth import AuthorizationFailed
from mcp_core.drivers import launch_secrets, shorten_text
from mcp_core.types import PromptsCapability, ResourcesCapability, ToolsCapability
from mcp_core.urls import ElicitationUrl, url_transport
from mcp_trio._connect import connect_http, connect_stdio, connect_websocket
from mcp_trio._nursery import open_quiet_nursery
from mcp_trio.streams._stdio import stop_on_signals

from ._errors import MISUSE, NO_CONNECTION, SERVER_ERROR, CliError, one_line
from ._screen import Screen
from .state._handshakes import RememberedServer
from .state._logins import login_storage

if TYPE_CHECKING:
    from pathlib import Path

    from mcp_core import Peer
    from mcp_core.adapters import Recording
    from mcp_core.drivers import CallOptions
    from mcp_core.types import LoggingLevel, LoggingMessageParams, ServerCapabilities, Tool
    from mcp_trio._client import Client
    from mcp_trio._connect import ClientOptions
    from mcp_trio.auth._authorization import LoginConfig
    from mcp_trio.streams._child import Stderr
    from mcp_trio.streams._trace import Trace

    from ._elicitation_answers import ElicitationAnswers
    from ._progress import OnProgress
    from .configured._configured import ConfiguredSession

__all__ = [
    "ARROWS",
    "DEFAULT_LOG_LEVEL",
    "DEFAULT_TIMEOUT",
    "UNDECLARED_TIMEOUT",
    "Target",
    "allow_undeclared",
    "connect_and_run",
    "describe_error",
    "explain_error",
    "guess_endpoint",
    "is_unknown_list",
    "is_unknown_method",
    "list_if_any",
    "report_undeclared",
    "run_session",
    "server_capabilities",
    "trace_printer",
]

T = TypeVar("T")

CapabilityName = Literal["tools", "resources", "prompts"]

DEFAULT_TIMEOUT: Final = 60.0
# Seconds for a list that the server did not declare: some never answer an unknown request.
UNDECLARED_TIMEOUT: Final = 5.0
_NOTICE_AFTER: Final = 3.0  # seconds after which a user wonders whether the command hangs
DEFAULT_LOG_LEVEL: Final = "info"

_STDIO_HINT: Final = "Is that an MCP server on stdin and stdout? --trace shows the messages"
_FILE_HINT: Final = "Its stderr, if any, is above"
# The path of `mcp-trio run --http`, of the official SDKs and of most other servers.
_USUAL_PATH: Final = "/mcp"
# Error statuses that an MCP server's URL may have, too.
_CURED: Final = frozenset({407, 413, 429, 500, 502, 503, 504, 511})
# What a program would do about a required login. Users of the command get another cure.
_LIBRARY_CURE: Final = re.compile(
    r": connect with auth=True, or log in with `mcp-trio login`(?: before)?"
)
# Error statuses of a path where nothing is served, or where POST isn't.
_NO_ENDPOINT: Final = frozenset({404, 405, 410, 501})
_URL_HINT: Final = "Is that the URL of an MCP server? --trace shows the messages"
ARROWS: Final = {"sent": ("→ ", "cyan"), "received": ("← ", "green")}
# The member of an error's `data` that names the client capabilities which a server requires, and
# what the user can do about each.
_REQUIRED_CAPABILITIES: Final = "requiredCapabilities"
_CURES: Final = {
    (
        _REQUIRED_CAPABILITIES,
        "elicitation",
        "url",
    ): "it wants to send you to a page: run this command in a terminal",
    (
        _REQUIRED_CAPABILITIES,
        "elicitation",
    ): "it has a form to fill in: run this command in a terminal, or add --answer KEY=VALUE",
    (_REQUIRED_CAPABILITIES, "roots"): "it asks where it may work: add --root PATH",
    (
        _REQUIRED_CAPABILITIES,
        "sampling",
    ): "it asks for a language model, which this command does not have",
}
# Characters of texts that a server sends unasked, so that it cannot fill the terminal at once.
_MAX_LOG: Final = 10_000
_MAX_ERROR: Final = 4_000
# How the line begins that names the variables which a server's process didn't get. No line of a
# server's stderr begins so in an error.
_WITHHELD: Final = "\n  set here, and not passed on to it: "
_MAX_NAME: Final = 200
_MAX_URLS: Final = 5
_CAPABILITIES: Final = {
    "tools": ToolsCapability,
    "resources": ResourcesCapability,
    "prompts": PromptsCapability,
}
_LEVEL_STYLES: Final = {"debug": "dim", "info": "dim", "notice": "", "warning": "yellow"}
_ERROR_STYLE: Final = "bold red"  # error and above


@dataclass(frozen=True, kw_only=True)
class Target:
    """A server, and the options of a session with it.

    Args:
        server: the URL, or the words of the command that starts the server.
        file: the `FILE[:NAME]` or `PACKAGE.MODULE[:NAME]` that this command serves, if the user
            gave one.
        file_words: the words that name it on a command line, with its options.
        env: variables that this command gets in addition to the few that it inherits.
        inherit_env: whether it inherits the whole environment instead.
        cwd: its working directory; the current one by default.
        versions: the revisions to offer.
        known_peer: an earlier peer of the server, which is then not probed.
        timeout: seconds, for connecting and for each request.
        log_level: the lowest level of the server's log messages that are shown; None shows none.
        stderr: shared by all parts that write to stderr, so that lines and prompts don't mix.
        trace: called with each message.
        recording: the file in which the session is recorded.
        answers: answers elicitation requests; None declares no elicitation.
        roots: directories and files in which the server may work.
        headers: sent with each HTTP request to a URL.
        allow_cleartext: whether they may be sent unencrypted to another machine.
        keychain: whether logins are stored in the keychain of the system instead of files.
        auth: how to get access tokens; by default only those stored by `mcp-trio login` are used.
            False sends none.
        connect_timeout: seconds for connecting; None to use `timeout`.
        unexpanded: the words of `server` before their variables are expanded, if `server` is from a
            configuration file.
        secrets: values of that file that must not be written. `known_secrets` includes them.
        configured: the session with a server of configuration files, or None; `server` then has
            the unexpanded texts of its entry.
    """

    server: str | tuple[str, ...]
    file: str = ""
    file_words: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    inherit_env: bool = False
    cwd: Path | None = None
    versions: tuple[str, ...] = ALL
    known_peer: Peer | None = None
    timeout: float = DEFAULT_TIMEOUT
    log_level: LoggingLevel | None = None
    stderr: Screen = field(default_factory=lambda: Screen(sys.stderr))
    trace: Trace | None = None
    recording: Recording | None = None
    answers: ElicitationAnswers | None = None
    roots: tuple[Path, ...] = ()
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    allow_cleartext: bool = False
    keychain: bool = False
    auth: LoginConfig | Literal[False] | None = None
    connect_timeout: float | None = None
    unexpanded: tuple[str, ...] = ()
    secrets: frozenset[str] = field(default=frozenset(), repr=False)
    configured: ConfiguredSession | None = None

    @property
    def name(self) -> str:
        """The URL, the file or the command line of the server, or its name in the configuration.

        A URL is without its query, which may have a key in it.
        """
        if self.configured is not None:
            return one_line(shorten_text(self.configured.server, _MAX_NAME))
        if self.file:
            return self.file
        if isinstance(self.server, str):
            return self.server.partition("?")[0]
        return shlex.join(self.server)

    @property
    def shown_words(self) -> tuple[str, ...]:
        """The URL as the only word, or the words of the command, without values of variables."""
        server = (self.server,) if isinstance(self.server, str) else self.server
        return self.unexpanded or server

    @property
    def known_secrets(self) -> frozenset[str]:
        """The server's values that must not be written."""
        return self.secrets | launch_secrets(
            (self.server,) if isinstance(self.server, str) else self.server,
            env=dict(self.env),
            headers=dict(self.headers),
            inherited=os.environ if self.inherit_env else None,
        )

    @property
    def not_mcp_hint(self) -> str:
        """A hint for errors that suggest that this isn't an MCP server."""
        if self.file:
            return _FILE_HINT
        return _URL_HINT if isinstance(self.server, str) else _STDIO_HINT

    @property
    def stderr_hint(self) -> str:
        """A reference to the server's stderr, to append to errors about a lost connection."""
        return "" if isinstance(self.server, str) else "; its stderr, if any, is above"

    @property
    def words(self) -> list[str]:
        """The words that name the server at the end of a command line, such as `mcp-trio login`."""
        if self.configured is not None:
            return self.configured.choice.words(self.configured.server)
        if isinstance(self.server, str):
            return [self.server]
        return [*self.file_words] or [self.name]

    @property
    def connecting_timeout(self) -> float:
        """Seconds for connecting."""
        return self.connect_timeout or self.timeout

    def local_name(self, name: str) -> str:
        """Return the name of a tool or a prompt at the server; `name` may be a merged name.

        Call it while the session is connected.
        """
        return name if self.configured is None else self.configured.local_name(name)

    async def list_tools(self, client: Client, timeout: float, problems: list[str]) -> list[Tool]:
        """Return the tools that the server lists, without those that its configuration denies.

        The number of denied tools is written to stderr. What cannot be read is appended to
        `problems`. `timeout` is in seconds.
        """
        tools = await client.list_tools(timeout=timeout, problems=problems)
        if self.configured is None:
            return tools
        allowed = self.configured.allowed_tools(tools)
        if len(allowed) < len(tools):
            place = self.configured.choice.servers[self.configured.server].server.tool_lists_place
            self.stderr.write_line(
                f"mcp-trio: left out {len(tools) - len(allowed)} of {len(tools)} tools, as the"
                f" server's entry says: {place}"
            )
        return allowed

    async def require_approved(self, kind: Literal["tool", "prompt"], name: str) -> None:
        """Check that the user has approved a definition, if the server is a configured one.

        Raises:
            CliError: they have not.
        """
        if self.configured is not None:
            await self.configured.require_approved(kind, name)

    def connect(self, connecting: trio.CancelScope) -> AbstractAsyncContextManager[Client]:
        """Connect to the server for a block's duration.

        `connecting` has the timeout, which is paused while a user is asked.
        """
        if self.configured is not None:
            return self.configured.connect(self, connecting)
        if isinstance(self.server, str):
            headers = dict(self.headers)
            row = url_transport(self.server)
            if row is not None and row.is_websocket:
                return connect_websocket(
                    self.server,
                    headers=headers,
                    allow_cleartext=self.allow_cleartext,
                    **self.client_options,
                )
            return connect_http(
                self.server,
                headers=headers,
                auth=self._auth_unless_given(headers),
                allow_cleartext=self.allow_cleartext,
                **self.client_options,
            )
        return connect_stdio(
            self.server,
            env=dict(self.env),
            inherit_env=self.inherit_env,
            cwd=self.cwd,
            stderr=self.child_stderr,
            **self.client_options,
        )

    @property
    def child_stderr(self) -> Stderr:
        """The destination of the stderr of a server that is started."""
        # A file or pipe gets the bytes unchanged; then a reader that stalls cannot block us.
        return self._print_stderr_line if self.stderr.terminal else "forward"

    def _print_stderr_line(self, line: str) -> None:
        self.stderr.write_quoted(line, indent="", style="dim")

    def _auth_unless_given(self, headers: dict[str, str]) -> LoginConfig | bool:
        """Return how to get access tokens; False if `headers` has one already."""
        if "authorization" in headers or self.auth is False:
            return False
        from mcp_trio.auth._authorization import LoginConfig

        return self.auth or LoginConfig(storage=login_storage(self.keychain), browse=None)

    def call_options(self, progress: OnProgress) -> CallOptions:
        """Return the options of a call that may take long and may ask the user."""
        options: CallOptions = {"timeout": self.timeout, "progress": progress}
        if self.answers is not None and self.answers.at_terminal:
            options["max_timeout"] = None  # the user may take any time; Ctrl+C ends the wait
        return options

    @property
    def client_options(self) -> ClientOptions:
        """The client's options."""
        options: ClientOptions = {
            "versions": self.versions,
            "known_peer": self.known_peer,
            "trace": self.trace,
            "record": self.recording,
            "on_log": _log_printer(self.stderr) if self.log_level is not None else None,
            "log_level": self.log_level,
        }
        if self.answers is not None:
            options |= self.answers.client_options
        if self.roots:
            options["on_roots"] = self.roots
        return options


def trace_printer(screen: Screen) -> Trace:
    """Return a trace callback that prints each message to `screen`."""

    def show(direction: Literal["sent", "received"], line: bytes) -> None:
        screen.write_line(ARROWS[direction], line.decode(errors="replace"))

    return show


def _log_printer(screen: Screen) -> Callable[[LoggingMessageParams], None]:
    """Return a callback that prints each log message of the server to `screen`."""

    def show(message: LoggingMessageParams) -> None:
        data = message.data
        text = data if isinstance(data, str) else msgspec.json.encode(data).decode()
        logger = f" {shorten_text(message.logger, _MAX_NAME)}" if message.logger else ""
        screen.write_message(
            f" {shorten_text(text, _MAX_LOG)}",
            (f"[{message.level}{logger}]", _LEVEL_STYLES.get(message.level, _ERROR_STYLE)),
        )

    return show


def _warn_if_no_logging(client: Client, target: Target) -> None:
    # Only a user who chose a level expects log messages.
    if (
        target.log_level not in (None, DEFAULT_LOG_LEVEL)
        and server_capabilities(client).logging is None
    ):
        target.stderr.write_line("mcp-trio: the server did not declare that it sends log messages")


def server_capabilities(client: Client) -> ServerCapabilities:
    """Return the capabilities that the server declared."""
    return cast("ServerCapabilities", client.peer.capabilities)


def allow_undeclared(client: Client, *names: CapabilityName) -> bool:
    """Allow requests of this session for what the server didn't declare, if it declared nothing.

    Some servers declare nothing and have tools all the same. The library refuses such requests, but
    the user of a command has asked for one. If it is answered, call `report_undeclared`.

    Returns:
        False if it has declared tools, resources or prompts. Then the others aren't there.
    """
    peer = client.peer
    if any(getattr(peer.capabilities, name) is not None for name in _CAPABILITIES):
        return False
    assumed = {name: _CAPABILITIES[name]() for name in names}
    client._conn.peer = msgspec.structs.replace(
        peer, capabilities=msgspec.structs.replace(peer.capabilities, **assumed)
    )
    return True


def report_undeclared(target: Target, *names: CapabilityName) -> None:
    """Write a line about what the server has and didn't declare."""
    listed = " or ".join(names)
    target.stderr.write_line(
        f"mcp-trio: the server did not declare {listed}, and was asked for them all the same"
    )


def is_unknown_method(client: Client, error: McpTrioError) -> bool:
    """Return True if the server answered that it doesn't know the method."""
    code = client.peer.dialect.codes[Fault.METHOD_NOT_FOUND]
    return isinstance(error, PeerError) and error.code == code


def is_unknown_list(client: Client, error: McpTrioError) -> bool:
    """Return True if the server answered that it doesn't know a list which it didn't declare.

    Servers of the official Python SDK 1.x find fault with the params of an unknown method.
    """
    codes = client.peer.dialect.codes
    unknown = (Fault.METHOD_NOT_FOUND, Fault.INVALID_PARAMS, Fault.INVALID_REQUEST)
    return isinstance(error, PeerError) and error.code in {codes[fault] for fault in unknown}


async def list_if_any(
    client: Client,
    target: Target,
    name: CapabilityName,
    request: Callable[[], Awaitable[list[T]]],
) -> list[T]:
    """Return the list that `request` gets, empty if the server has none.

    A server that declared nothing is asked all the same, but for a configured one: what its host
    doesn't list can't have been approved.
    """
    if getattr(client.peer.capabilities, name) is not None:
        return await request()
    if target.configured is not None or not allow_undeclared(client, name):
        return []
    found: list[T] = []
    with trio.move_on_after(UNDECLARED_TIMEOUT) as waiting:
        try:
            found = await request()
        except PeerError as exc:
            if is_unknown_list(client, exc):
                return []
            report_undeclared(target, name)
            raise
    if not waiting.cancelled_caught:
        report_undeclared(target, name)
    return found


def _find_cure(error: PeerError) -> str:
    """Return what the user can do about a server's error, to append to it; empty if unknown."""
    for path, cure in _CURES.items():
        found: Any = error.data
        for name in path:
            found = found.get(name) if isinstance(found, dict) else None
        if found is not None:
            return f"; {cure}"
    elicitations = error.data.get("elicitations") if isinstance(error.data, dict) else None
    urls = (
        [str(each.get("url")) for each in elicitations[:_MAX_URLS] if isinstance(each, dict)]
        if isinstance(elicitations, list)
        else []
    )
    return "".join(map(_describe_elicitation, urls))


def describe_error(error: PeerError, hint: str = "") -> str:
    """Return a sentence about a server's error, and what the user can do about it.

    Further lines of the server's message follow that sentence.
    """
    message, *others = shorten_text(error.message, _MAX_ERROR).split("\n", 1)
    sentence = f"{message.rstrip()} ({error.code}){_find_cure(error)}{hint and '.'}{hint}"
    return "\n".join([f"the server answered with an error: {sentence}", *others])


def _describe_elicitation(url: str) -> str:
    """Return what to do with a page that a server's error names."""
    try:
        parsed = ElicitationUrl.parse(url)
    except ValueError as exc:
        return f"; it names a page that cannot be trusted: its URL {exc}"
    warnings = "".join(f". {warning.removesuffix('.')}" for warning in parsed.warnings)
    return f"; open {url} in a browser if you trust it, and try again{warnings}"


def run_session(target: Target, body: Callable[[Client], Awaitable[int]]) -> int:
    """Connect, run `body` with the client, and close the connection.

    Returns:
        The exit status of `body`; 130 after Ctrl+C, 143 after SIGTERM, or 2 if a form had no valid
            `--answer`.

    Raises:
        CliError: the connection failed, or a call in `body` failed.
    """
    if target.configured is not None:  # the file decides its URL: guess none
        return trio.run(_run_session, target, body, lambda client: None)
    try:
        return connect_and_run(target, body)
    except CliError as exc:
        guess = guess_endpoint(target.server, exc.__cause__)
        if guess is None:
            raise
        url, reason = guess
        target.stderr.write_line(
            f"mcp-trio: {target.name} is no MCP endpoint ({reason}); trying {url}"
        )
        try:
            return connect_and_run(replace(target, server=url), body)
        except CliError as second:
            if guess_endpoint(target.server, second.__cause__) is None:
                raise
            raise exc from exc.__cause__  # our guess isn't an endpoint either: keep the first error


def connect_and_run(target: Target, body: Callable[[Client], Awaitable[int]]) -> int:
    """Do the same as `run_session` at the target's URL only, for one that isn't a configured one.

    Raises:
        CliError: the connection failed, or a call in `body` failed.
    """
    with RememberedServer(target.server, dict(target.env), target.cwd) as server:
        target = replace(target, known_peer=server.known_peer)
        return trio.run(_run_session, target, body, server.connected)


def guess_endpoint(
    server: str | tuple[str, ...], error: BaseException | None
) -> tuple[str, str] | None:
    """Return the URL at which to try again, and a short reason.

    None unless `server` is a URL without a path, and its response, which caused `error`, didn't
    come from an MCP endpoint. The origin is the same, so it may get the same headers.
    """
    cause = None if error is None else error.__cause__
    if isinstance(server, tuple) or not isinstance(cause, RemoteProtocolError):
        return None
    parts = urlsplit(server)
    if parts.path not in ("", "/") or parts.query or parts.fragment:
        return None
    status = cause.data.get("status") if isinstance(cause.data, dict) else None
    if isinstance(status, int):
        if not (200 <= status < 400 or status in _NO_ENDPOINT):
            return None
        reason = f"HTTP status {status}"
    else:
        reason = "its response is not MCP"
    return f"{parts.scheme}://{parts.netloc}{_USUAL_PATH}", reason


async def _run_session(
    target: Target,
    body: Callable[[Client], Awaitable[int]],
    on_connected: Callable[[Client], object],
) -> int:
    status = 0
    with ExitStack() as signals, _explain_errors(target):
        with trio.move_on_after(target.connecting_timeout) as connecting:
            stops = [signals.enter_context(stop_on_signals(connecting.cancel))]
            async with _slow_notice(target) as connected, target.connect(connecting) as client:
                connecting.deadline = math.inf
                connected()
                on_connected(client)
                _warn_if_no_logging(client, target)
                if target.trace is not None and client.protocol:
                    target.stderr.write_line(f"mcp-trio: connected over {client.protocol}")
                # An inner scope: the connection must outlive it to send `notifications/cancelled`.
                with trio.CancelScope() as running:
                    stops.append(signals.enter_context(stop_on_signals(running.cancel)))
                    if target.roots:
                        await client.roots_requested()
                    status = await body(client)
        stopped = max(stop.exit_code for stop in stops)
        if connecting.cancelled_caught and not stopped:
            raise CliError(
                f"{target.name} did not answer within {target.connecting_timeout:g} s."
                f" {target.not_mcp_hint}, a larger --timeout allows more time",
                NO_CONNECTION,
            )
    return stopped or (
        MISUSE if target.answers is not None and target.answers.answers_invalid else status
    )


@asynccontextmanager
async def _slow_notice(target: Target) -> AsyncIterator[Callable[[], object]]:
    """Print a notice if connecting takes long. Yield a function to call once it is connected."""
    scope = trio.CancelScope()
    async with open_quiet_nursery() as nursery:
        if not target.auth:  # `mcp-trio login` waits for the user, and says so
            nursery.start_soon(_print_notice, target, scope)
        yield scope.cancel


async def _print_notice(target: Target, scope: trio.CancelScope) -> None:
    with scope:
        await trio.sleep(_NOTICE_AFTER)
        if target.configured is None or not target.configured.is_asking:
            target.stderr.write_line(
                f"mcp-trio: waiting for {target.name} (for at most {target.connecting_timeout:g} s)"
            )


def needs_login_text(target: Target, error: Exception, required: AuthRequired) -> str:
    """Return an error's text with what the user can do about it, for one caused by `required`."""
    cause = _LIBRARY_CURE.sub("", str(error)).removesuffix(".")
    return f"{cause}{_login_hint(target, required)}"


def _login_hint(target: Target, error: AuthRequired) -> str:
    """Return how to get a token that the server accepts, to append to an error."""
    if target.auth is not None:  # `mcp-trio login` itself, or a request without a token
        return ""
    scopes = [word for scope in error.scopes for word in ("--scope", scope)]
    keychain = ["--keychain"] if target.keychain else []
    login = shlex.join(["mcp-trio", "login", *keychain, *scopes, *target.words])
    if target.configured is not None:
        return f". `{login}` gets a token"
    if any(name == "authorization" for name, _ in target.headers):
        return f". Check the token that was sent, or get one by `{login}` and send none yourself"
    return f". `{login}` gets a token, --token-env VARIABLE sends one that you have"


@contextmanager
def _explain_errors(target: Target) -> Iterator[None]:
    """Turn errors of the library into a CliError that says what the user can do."""
    try:
        yield
    except McpTrioError as exc:
        explained = explain_error(target, exc)
        if explained is None:
            raise
        raise explained from exc


def explain_error(target: Target, exc: McpTrioError) -> CliError | None:
    """Return a CliError that says what the user can do about an error of the library.

    None for an error that no use of a server raises.
    """
    if isinstance(exc, AuthRequired):
        return CliError(needs_login_text(target, exc, exc), NO_CONNECTION)
    if isinstance(exc, AuthorizationFailed):
        return CliError(f"{target.name}: {exc}", NO_CONNECTION)
    if isinstance(exc, ConnectFailed):
        return _explain_failed_connection(target, exc)
    if isinstance(exc, CallTimeout):
        return CliError(f"{exc}; a larger --timeout allows more time", NO_CONNECTION)
    if isinstance(exc, ConnectionLost):
        cause, _, _ = str(exc).partition("\n")
        return CliError(f"{cause} before it answered{target.stderr_hint}", NO_CONNECTION)
    if isinstance(exc, TaskCancelled):
        text = shorten_text(exc.message, _MAX_ERROR)
        return CliError(f"the task has no result: {text}", SERVER_ERROR)
    if isinstance(exc, PeerError):
        return CliError(describe_error(exc), SERVER_ERROR)
    if isinstance(exc, LocalProtocolError):
        return CliError(f"{exc}; `mcp-trio inspect` shows what the server can do")
    if isinstance(exc, RemoteProtocolError):
        cause, _, _ = str(exc).partition("\n")
        return CliError(
            f"the server broke the protocol: {cause}. --trace shows the messages", NO_CONNECTION
        )
    return None


def _is_cured(cause: BaseException | None) -> bool:
    """Return True if an error's text says what to do about the HTTP status."""
    if not isinstance(cause, RemoteProtocolError) or not isinstance(cause.data, dict):
        return False
    status = cause.data.get("status")
    return isinstance(status, int) and (300 <= status < 400 or status in _CURED)


def _explain_failed_connection(target: Target, exc: ConnectFailed) -> CliError:
    if isinstance(exc.__cause__, AuthRequired):
        text = needs_login_text(target, exc, exc.__cause__)
        return CliError(f"{target.name}: {text}", NO_CONNECTION)
    if isinstance(exc.__cause__, AuthorizationFailed):
        return CliError(f"{target.name}: {exc}", NO_CONNECTION)
    text = str(exc)
    cause, _, _ = text.partition("\n")  # further lines repeat the server's stderr
    _, found, names = text.partition(_WITHHELD)
    withheld = f"\n{found.strip()} {names}" if found else ""
    if not isinstance(exc.__cause__, OSError):  # the server started, or the URL answered
        # The cause may have a hint or a cure already.
        hint = "" if "?" in cause or _is_cured(exc.__cause__) else f". {target.not_mcp_hint}"
        cause = f"{target.name}: {cause.removesuffix('.')}{hint}"
    return CliError(f"{cause}{withheld}", NO_CONNECTION)
