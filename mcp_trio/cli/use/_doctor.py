"""`mcp-trio doctor`: try what a client does with a server, and say which step fails and what to do.

1. No tool is called, no login is begun, no client is registered, and a configured server that isn't
   approved isn't started. A stored login is used, as by the other commands.
2. Each step is a row of `STEPS`. A step that others need ends the examination if it fails.
3. The server is asked without a token first: only then does it say where to get one.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeVar
from urllib.parse import urlsplit

import trio

from mcp_core import AuthRequired, McpTrioError, RemoteProtocolError
from mcp_core.drivers import shorten_text
from mcp_core.urls import Url, http_url, url_transport
from mcp_trio.cli._errors import NO_CONNECTION, SERVER_ERROR, CliError
from mcp_trio.cli._parser import server_parser
from mcp_trio.cli._screen import Screen, counted
from mcp_trio.cli._session import (
    connect_and_run,
    explain_error,
    guess_endpoint,
    run_session,
)
from mcp_trio.cli._target import parse_server_command
from mcp_trio.cli.servers._places import shown_name
from mcp_trio.streams._stdio import stop_on_signals

from ._inspect import Inventory, fetch_inventory

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcp_trio._client import Client
    from mcp_trio.cli._parser import Command
    from mcp_trio.cli._session import Target
    from mcp_trio.http_client._connector import Connector

__all__ = ["STEPS", "DoctorStep", "StepOutcome", "doctor", "look_up", "parse"]

T = TypeVar("T")

State = Literal["ok", "failed", "skipped", "not tried"]

_CONFIGURED: Final = "server:"
_MAX_TEXT: Final = 4_000  # characters of a server's text
_MAX_LINE: Final = 100  # characters of a line that isn't a message
_MAX_ADDRESSES: Final = 4
# Statuses of a path at which nothing or something else is served, and the paths of most servers.
_ELSEWHERE: Final = frozenset({200, 400, 404, 405, 406, 410, 415, 501})
_USUAL_PATHS: Final = ("/mcp", "/sse")
_CONNECT_TIMEOUT: Final = 10.0  # seconds, as for a client's connections
_LOGIN_TIMEOUT: Final = 60.0  # seconds for all documents about a login; each has less
_STYLES: Final = {"ok": "green", "failed": "bold red"}
_NOUNS: Final = {
    "tools": "tool",
    "resources": "resource",
    "resourceTemplates": "resource template",
    "prompts": "prompt",
}


class Skipped(Exception):
    """Ends a step that the server doesn't have; the text is why."""


class StepOutcome(NamedTuple):
    """The outcome of a step. `text` is one sentence or more."""

    step: str
    state: State
    text: str = ""


class DoctorStep(NamedTuple):
    """A row of `STEPS`.

    Args:
        name: its name in the output.
        run: returns what was found. It raises `Skipped`, or the error with its cause and cure.
        is_needed: whether the later steps need it.
    """

    name: str
    run: Callable[[Examination], str]
    is_needed: bool = True


@dataclass(kw_only=True)
class Examination:
    """The examination of a server.

    Args:
        target: the server, as the command line names it.
        report: called with each outcome, in the order of `STEPS`.
        direct: the same server as the steps before the negotiation connect to it: a configured one
            by its URL or command, once it is approved.
        hide: returns a text without the values of variables, and without what looks like a token.
        address: the IP address at which the server was reached, None if unknown.
        outcomes: what was found so far, by step.
        lists: what the server offers, or the error.
    """

    target: Target
    report: Callable[[StepOutcome], object]
    direct: Target
    hide: Callable[[str], str]
    address: str | None = None
    outcomes: dict[str, StepOutcome] = field(default_factory=dict)
    lists: Inventory | CliError | None = None

    def note(self, step: str, state: State, text: str = "") -> None:
        """Report an outcome, and keep it."""
        outcome = StepOutcome(step, state, shorten_text(self.hide(text), _MAX_TEXT))
        self.outcomes[step] = outcome
        self.report(outcome)

    @property
    def url(self) -> Url | None:
        """The server's URL, with `http` or `https`; None for a program."""
        server = self.direct.server
        return Url.parse(http_url(server)) if isinstance(server, str) else None

    @property
    def is_websocket(self) -> bool:
        """True if the server is at the URL of a WebSocket."""
        server = self.direct.server
        row = url_transport(server) if isinstance(server, str) else None
        return row is not None and row.is_websocket

    def run(self, work: Callable[[], Awaitable[T]], most: float = _CONNECT_TIMEOUT) -> T:
        """Run an async function, for at most `most` seconds, and within the timeout to connect.

        Raises:
            CliError: it took too long.
            SystemExit: Ctrl+C or SIGTERM ended it.
        """

        async def main() -> T:
            seconds = min(self.target.connecting_timeout, most)
            with trio.move_on_after(seconds) as scope, stop_on_signals(scope.cancel) as stop:
                return await work()
            if stop.exit_code:
                raise SystemExit(stop.exit_code)
            raise CliError(f"nothing answered within {seconds:g} s; is a firewall in between?")

        return trio.run(main)

    def proxy_of(self, url: Url) -> str | None:
        """Return the URL of the system's proxy for the server, or None."""
        from mcp_trio.http_client._connector import find_proxy

        return find_proxy(*url.origin)


# -- The steps -------------------------------------------------------------------------------------


def _find_name(examination: Examination) -> str:
    """Find the program, or the addresses of the host, and whether a configured one is approved."""
    target = examination.target
    approved = ""
    if target.configured is not None:
        approved = _find_configured(examination)
    url = examination.url
    if url is None:
        return f"{approved}{_find_program(examination.direct)}"
    if examination.proxy_of(url) is not None:
        return f"{approved}the proxy of this system looks up {url.host}"
    addresses = examination.run(partial(look_up, url.host, url.port))
    if addresses == [url.host]:
        return f"{approved}{url.host} is an address"
    more = f" and {len(addresses) - _MAX_ADDRESSES} more" if len(addresses) > _MAX_ADDRESSES else ""
    return f"{approved}{url.host} is {', '.join(addresses[:_MAX_ADDRESSES])}{more}"


def _find_configured(examination: Examination) -> str:
    """Find out whether a configured server may be started or connected to."""
    from mcp_trio.cli.configured._launch import find_launch

    target = examination.target
    assert target.configured is not None, "the server is a configured one"
    launch = find_launch(target, "doctor", ("stdio", "http", "sse", "ws"), handles_login=True)
    direct = replace(launch.applied_to(target), configured=None, recording=None)
    examination.direct = direct
    examination.hide = _hide_secrets(direct)
    return f"{shown_name(target.configured.server)} of {launch.config.place.file} is approved; "


def _hide_secrets(target: Target) -> Callable[[str], str]:
    """Return a function that returns a text without the target's secrets and without tokens."""
    from mcp_core.trace import Redactor

    redactor = Redactor(os.urandom(16), secrets=target.known_secrets)
    return lambda text: "\n".join(map(redactor.redact_text, text.split("\n")))


def _find_program(target: Target) -> str:
    if target.file:
        return f"{target.file} is a Python file"
    program = target.server[0]
    is_path = os.path.dirname(program) != ""  # noqa: PTH120 - `Path` drops the "./" of "./server"
    if is_path and target.cwd is not None:
        program = str(target.cwd / program)
    path = dict(target.env).get("PATH")
    if shutil.which(program, path=path) is None:
        if is_path:
            raise CliError(
                f"{program} is not a program; is the path right, and may you execute it?"
            )
        raise CliError(f"there is no program {program} on PATH; is it installed?")
    return f"{program} is a program"


async def look_up(host: str, port: int) -> list[str]:
    """Return the IP addresses of a host.

    Raises:
        CliError: the name isn't known, or there is no network to ask.
    """
    try:
        found = await trio.socket.getaddrinfo(host, port, type=trio.socket.SOCK_STREAM)
    except trio.socket.gaierror as exc:
        if exc.errno == trio.socket.EAI_AGAIN:
            raise CliError(
                f"{host} cannot be looked up now ({exc.strerror}); is there a network connection?"
            ) from exc
        raise CliError(f"there is no host {host} ({exc.strerror}); is the name right?") from exc
    except UnicodeError as exc:
        raise CliError(f"{host!r} is not a host name; is it right?") from exc
    return list(dict.fromkeys(str(each[4][0]) for each in found))


def _connect(examination: Examination) -> str:
    """Open a TCP connection to the server, through the proxy if there is one."""
    url = examination.url
    if url is None:
        raise Skipped("the negotiation starts the program")
    from mcp_trio.http_client._connector import Connector, Proxy

    proxy = examination.proxy_of(url)
    tunnel = url.scheme == "https" or examination.is_websocket
    try:
        # TLS is a step of its own.
        connector = Connector("http", url.host, url.port, proxy=proxy, tunnel=tunnel)
    except ValueError as exc:
        raise CliError(f"{exc}; the environment names it") from None
    examination.run(partial(_open_and_close, connector))
    examination.address = connector.server_address
    if proxy is not None:
        return f"{Proxy.parse(proxy)} accepts connections{' to the server' if tunnel else ''}"
    return f"port {url.port} accepts connections"


async def _open_and_close(connector: Connector) -> tuple[str, str] | None:
    """Open a connection and close it. Return TLS's version and the end of the certificate."""
    stream = await connector.connect_stream()
    found = None
    if isinstance(stream, trio.SSLStream):
        certificate = stream.getpeercert() or {}
        found = str(stream.version()), str(certificate.get("notAfter", "an unknown date"))
    await trio.aclose_forcefully(stream)
    return found


def _start_tls(examination: Examination) -> str:
    """Perform a TLS handshake on another connection."""
    url = examination.url
    if url is None:
        raise Skipped("stdin and stdout do not use it")
    if url.scheme != "https":
        raise Skipped("the URL is not encrypted")
    from mcp_trio.http_client._connector import Connector

    connector = Connector(*url.origin, tunnel=examination.is_websocket)
    found = examination.run(partial(_open_and_close, connector))
    assert found is not None, "the connection has TLS"
    version, end = found
    return f"{version}; the certificate is trusted, until {end}"


def _find_login(examination: Examination) -> str:
    """Ask the server without a token, and look where it sends a user to log in."""
    if examination.url is None:
        raise Skipped("stdin and stdout need no token")
    if examination.is_websocket:
        raise Skipped("over a WebSocket, the server publishes nothing about tokens")
    error = _ask_without_token(examination)
    if error is None:
        return "no token is needed to connect"
    required = _cause(error, AuthRequired)
    if required is None:
        raise Skipped("the response does not say whether a token is needed")
    from mcp_trio.auth._discovery import find_login

    direct = examination.direct
    assert isinstance(direct.server, str), "the server is at a URL"
    login = examination.run(
        partial(find_login, direct.server, required.challenge, examination.address),
        _LOGIN_TIMEOUT,
    )
    has_token = any(name == "authorization" for name, _ in direct.headers)
    if login.is_guessed:
        problem = "a token is required, and the server does not publish where to get one"
        if has_token:
            return f"{problem}: it depends on the token that you send"
        cure = (
            "write a header with it into the server's entry"
            if examination.target.configured is not None
            else "send it with --header or --token-env"
        )
        raise CliError(f"{problem}. If it is an API key, {cure}")
    scopes = f" with the scopes {' '.join(login.scopes)}" if login.scopes else ""
    manual = "" if login.can_register else "; clients are registered by hand there: --client-id"
    notes = "".join(f"\n{note}" for note in login.notes)
    return f"a token is required; {login.issuer} gives it{scopes}{manual}{notes}"


def _ask_without_token(examination: Examination) -> CliError | None:
    """Connect without a token, at `/mcp` too if nothing else is said. Return the error, or None."""
    direct = examination.direct
    error = _try_without_token(direct)
    if error is None or examination.target.configured is not None:
        return error
    guess = guess_endpoint(direct.server, error.__cause__)
    if guess is None:
        return error
    url, reason = guess
    second = _try_without_token(replace(direct, server=url))
    if second is not None and guess_endpoint(direct.server, second.__cause__) is not None:
        return error
    direct.stderr.write_line(f"mcp-trio: {direct.name} is no MCP endpoint ({reason}); trying {url}")
    examination.direct = replace(direct, server=url)
    examination.target = replace(examination.target, server=url)
    return second


def _try_without_token(target: Target) -> CliError | None:
    async def leave(client: Client) -> int:
        return 0

    headers = tuple(pair for pair in target.headers if pair[0] != "authorization")
    try:
        status = connect_and_run(replace(target, headers=headers, auth=False), leave)
    except CliError as exc:
        return exc
    if status:
        raise SystemExit(status)
    return None


_Cause = TypeVar("_Cause", bound=BaseException)


def _cause(error: BaseException, kind: type[_Cause]) -> _Cause | None:
    """Return the first error of a kind among the causes of `error`, or None."""
    found: BaseException | None = error
    while found is not None and not isinstance(found, kind):
        found = found.__cause__
    return found


def _negotiate(examination: Examination) -> str:
    """Connect as the other commands do, and request the lists."""
    target = examination.target

    async def body(client: Client) -> int:
        peer = client.peer
        name = (
            f"{peer.info.name} {peer.info.version}"
            if peer.info is not None
            else "a server without a name"
        )
        examination.note("negotiation", "ok", f"{name}, revision {peer.dialect.version}")
        try:
            examination.lists = await fetch_inventory(client, target)
        except McpTrioError as exc:
            error = explain_error(target, exc)
            if error is None:
                raise
            examination.lists = error
        return 0

    heard = _StrayOutput()
    if target.trace is None and examination.url is None:
        target = replace(target, trace=heard)
    try:
        status = run_session(target, body)
    except (CliError, McpTrioError, OSError) as exc:
        if "negotiation" not in examination.outcomes:
            raise _with_cure(examination, exc, heard) from exc
        if examination.lists is None:  # the connection broke
            examination.lists = CliError(str(exc))
        status = 0
    if status or examination.lists is None:
        raise SystemExit(status)
    return examination.outcomes["negotiation"].text


class _StrayOutput:
    """A trace that keeps the first line on a program's stdout that isn't JSON."""

    line = ""

    def __call__(self, direction: str, line: bytes) -> None:
        if direction == "received" and not self.line and not line.lstrip().startswith((b"{", b"[")):
            self.line = line.decode(errors="replace").strip()


def _with_cure(
    examination: Examination, error: Exception, heard: _StrayOutput
) -> CliError | McpTrioError | OSError:
    """Return the error of a failed negotiation, with what else is known about the server."""
    text = str(error)
    if (
        _cause(error, AuthRequired) is not None
        and examination.outcomes["authorization"].state == "failed"
    ):
        text = "the server requires a token: see the line above about authorization"
    elif heard.line and "not an MCP message" not in text:
        more = (
            f"It wrote {shorten_text(heard.line, _MAX_LINE)!r} to stdout, which is for messages"
            " only: a program that listens on a port needs its option for stdio, or its URL here"
        )
        text = _joined(text, more)
    elif (found := _find_endpoint(examination, error)) is not None:
        text = _joined(text, found)
    return CliError(text, NO_CONNECTION)


def _joined(text: str, more: str) -> str:
    return f"{text}{'' if text.endswith(('?', '.', ')')) else '.'} {more}"


def _find_endpoint(examination: Examination, error: BaseException) -> str | None:
    """Say which other usual URL on the server's origin answers, or return None.

    It is asked without a token, for `_CONNECT_TIMEOUT` in all. A configured server's file decides
    its URL.
    """
    direct = examination.direct
    cause = _cause(error, RemoteProtocolError)
    status = cause.data.get("status") if cause is not None and isinstance(cause.data, dict) else 200
    if cause is None or examination.is_websocket or status not in _ELSEWHERE:
        return None
    parts = urlsplit(str(direct.server))
    above, _, _ = parts.path.rstrip("/").rpartition("/")
    paths = [f"{parent}{each}" for parent in (parts.path, above, "") for each in _USUAL_PATHS]
    end = monotonic() + _CONNECT_TIMEOUT
    for path in dict.fromkeys(each.replace("//", "/") for each in paths):
        url = f"{parts.scheme}://{parts.netloc}{path}"
        seconds = min(direct.timeout, end - monotonic())
        if path == parts.path or seconds <= 0:
            continue
        failed = _try_without_token(replace(direct, server=url, headers=(), timeout=seconds))
        if failed is None:
            return f"An MCP server answers at {url}: use that URL"
        required = _cause(failed, AuthRequired)
        if required is not None:
            # Only servers of MCP say where their resource's metadata is (RFC 9728, section 5.1).
            is_known = "resource_metadata" in required.challenge
            what = "An MCP server" if is_known else "Something"
            cure = "use that URL" if is_known else "is it the server?"
            return f"{what} that requires a login answers at {url}: {cure}"
    return None


def _list(examination: Examination) -> str:
    """Count what the server offers."""
    lists = examination.lists
    assert lists is not None, "the negotiation has requested them"
    if isinstance(lists, CliError):
        raise lists
    failures = [f"{name}: {error}" for name, error in lists.errors.items()]
    failures += [f"{name}: {each}" for name, found in lists.problems.items() for each in found]
    if failures:
        raise CliError("\n".join(failures))
    counts = [
        counted(len(lists.lists[name]), noun)
        for name, noun in _NOUNS.items()
        if name in lists.lists
    ]
    return ", ".join(counts) or "the server offers nothing"


STEPS: Final = (
    DoctorStep("name", _find_name),
    DoctorStep("connection", _connect),
    DoctorStep("TLS", _start_tls),
    # A token that the user has may do all the same.
    DoctorStep("authorization", _find_login, is_needed=False),
    DoctorStep("negotiation", _negotiate),
    DoctorStep("lists", _list),
)


# -- The command -----------------------------------------------------------------------------------


def parse(words: Sequence[str]) -> Command:
    """Return a function that runs the subcommand and returns the exit status."""
    parser = server_parser(
        "doctor",
        description="Tries what a client does with a server, step by step, and says what fails and"
        " what to do.\nNo tool is called, and no login is begun.",
        example="mcp-trio doctor greeter.py\n  mcp-trio doctor https://example.com/mcp\n"
        "  mcp-trio doctor -- node server.js\n  mcp-trio doctor server:docs",
    )
    words = [*words]
    if "--" not in words and words and words[-1].startswith(_CONFIGURED):
        words[-1:] = ["--server", words[-1].removeprefix(_CONFIGURED)]
    found, target = parse_server_command(parser, words)
    return partial(doctor, target, as_json=found.json)


def doctor(target: Target, *, as_json: bool) -> int:
    """Examine a server, print a line for each step, and return the exit status.

    It is 0 if no step fails, 3 if the server cannot be used at all, and 1 if another step fails.
    """
    screen = Screen(sys.stdout)
    width = max(len(each.name) for each in STEPS)

    def show(outcome: StepOutcome) -> None:
        if not as_json:
            text = f"{outcome.step:{width}}  {outcome.text}".rstrip()
            screen.write_message(text, (f"{outcome.state:9}  ", _STYLES.get(outcome.state, "dim")))

    examination = Examination(
        target=target,
        report=show,
        direct=replace(target, recording=None),
        hide=_hide_secrets(target),
    )
    ended = False
    for step in STEPS:
        if ended:
            examination.note(step.name, "not tried")
            continue
        try:
            text = step.run(examination)
        except Skipped as exc:
            examination.note(step.name, "skipped", str(exc))
        except (CliError, McpTrioError, OSError) as exc:
            examination.note(step.name, "failed", str(exc))
            ended = step.is_needed
        else:
            if step.name not in examination.outcomes:
                examination.note(step.name, "ok", text)
    outcomes = examination.outcomes
    if as_json:
        steps = [each._asdict() for each in outcomes.values()]
        screen.write_json({"steps": steps})
    if outcomes["negotiation"].state != "ok":
        return NO_CONNECTION
    failed = any(each.state == "failed" for each in outcomes.values())
    return SERVER_ERROR if failed else 0
