"""A conversation with the server that a command names: reach it or start it, talk, end it, whatever happens meanwhile.

Rules of this file:

1. Ctrl+C and SIGTERM cancel what runs, so the server is told and, if we started it, ended in order. A second one ends us at once.
2. Nobody waits for ever: opening and each answer have a deadline.
3. What a server that we started writes on stderr is passed on as it comes, so error texts do not repeat it.
4. Who is asked something has all the time in the world: the server waits, and so do we. Ctrl+C is always there.
"""

from __future__ import annotations

import math
import shlex
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, cast

import msgspec
import trio

from mcp_core import (
    ALL,
    AuthRequired,
    CallTimeout,
    ConnectFailed,
    ConnectionLost,
    LocalProtocolError,
    PeerError,
    RemoteProtocolError,
)
from mcp_core.auth import AuthorizationFailed
from mcp_trio._connect import connect_http, connect_stdio, connect_websocket
from mcp_trio._stdio import stop_on_signals

from ._problem import ANSWERED_ERROR, MISUSED, NO_CONVERSATION, Problem
from ._screen import Screen

if TYPE_CHECKING:
    from pathlib import Path

    from mcp_core.runtime import CallOptions
    from mcp_core.types import LoggingLevel, LoggingMessageParams, ServerCapabilities
    from mcp_trio import Client, ClientOptions
    from mcp_trio._authorization import Login
    from mcp_trio._trace import Trace

    from ._progress import Step
    from ._user import User

__all__ = [
    "ARROWS",
    "DEFAULT_LOG_LEVEL",
    "DEFAULT_TIMEOUT",
    "Target",
    "cure_of",
    "declared_by",
    "talk",
    "tracing",
]

DEFAULT_TIMEOUT: Final = 60.0
DEFAULT_LOG_LEVEL: Final = "info"

_DOUBT: Final = "Is that an MCP server that speaks over stdin and stdout? --trace shows what crosses"
_DOUBT_OF_URL: Final = "Is that the URL of an MCP server? --trace shows what crosses"
ARROWS: Final = {"sent": ("→ ", "cyan"), "received": ("← ", "green")}
# What a server may say that it lacks of us (a member of its error's `data`), and what to do about that.
_LACKING: Final = "requiredCapabilities"
_CURES: Final = {
    (_LACKING, "elicitation", "url"): "it has a page to send you to: run this at a terminal",
    (_LACKING, "elicitation"): "it has a form to fill in: run this at a terminal, or with --answer KEY=VALUE",
    (_LACKING, "roots"): "--root PATH tells it where to work",
    (_LACKING, "sampling"): "it asks for a language model, and this command has none",
}
_COLOURS: Final = {"debug": "dim", "info": "dim", "notice": "", "warning": "yellow"}
_ALARM: Final = "bold red"  # all that is worse


@dataclass(frozen=True, kw_only=True)
class Target:
    """A server and how to talk to it.

    `server` is its URL, or the words of the command that starts it, in `cwd`. `timeout` is in seconds. `log_level` is the least severe of the server's log messages that are shown; None shows none.
    `trace` is told each message. `stderr` is there for all who write on it, so that they know of each other's lines. `user` is who
    answers the server's questions; without one none may be asked. `roots` are the places that it is told to work in. `headers` go with
    each request to a URL. `auth` is how an access token is got for it; by default only those are used that `mcp-trio login` has got.
    """

    server: str | tuple[str, ...]
    cwd: Path | None = None
    versions: tuple[str, ...] = ALL
    timeout: float = DEFAULT_TIMEOUT
    log_level: LoggingLevel | None = None
    stderr: Screen = field(default_factory=lambda: Screen(sys.stderr))
    trace: Trace | None = None
    user: User | None = None
    roots: tuple[Path, ...] = ()
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    auth: Login | None = None

    @property
    def name(self) -> str:
        """The server as it was named."""
        return self.server if isinstance(self.server, str) else shlex.join(self.server)

    @property
    def doubt(self) -> str:
        """What to ask whoever named it, if it does not do what a server does."""
        return _DOUBT_OF_URL if isinstance(self.server, str) else _DOUBT

    @property
    def last_words(self) -> str:
        """Where to look for them, to be added to what is said of a server that is gone."""
        return "" if isinstance(self.server, str) else "; its stderr, if any, is above"

    def connect(self) -> AbstractAsyncContextManager[Client]:
        """A conversation with it, for the time of a block."""
        if isinstance(self.server, str):
            headers = dict(self.headers)
            if self.server.lower().startswith("ws"):
                return connect_websocket(self.server, headers=headers, **self.options)
            return connect_http(self.server, headers=headers, auth=self._auth_beside(headers), **self.options)
        return connect_stdio(self.server, cwd=self.cwd, **self.options)

    def _auth_beside(self, headers: dict[str, str]) -> Login | bool:
        """Whoever brings a token of his own wants no other."""
        if "authorization" in headers:
            return False
        from mcp_trio._authorization import Login

        return self.auth or Login(browse=None)

    def call_options(self, progress: Step) -> CallOptions:
        """What a call that may take its time, and ask, is to be told."""
        options: CallOptions = {"timeout": self.timeout, "progress": progress}
        if self.user is not None and self.user.present:
            options["max_timeout"] = None  # rule 4
        return options

    @property
    def options(self) -> ClientOptions:
        """What a client is to be told about the conversation."""
        options: ClientOptions = {
            "versions": self.versions,
            "trace": self.trace,
            "on_log": _logging_to(self.stderr) if self.log_level is not None else None,
            "log_level": self.log_level,
        }
        if self.user is not None:
            options |= self.user.options
        if self.roots:
            options["on_roots"] = self.roots
        return options


def tracing(screen: Screen) -> Trace:
    """Shows each message in full on `screen`."""

    def show(direction: Literal["sent", "received"], line: bytes) -> None:
        screen.say(ARROWS[direction], line.decode(errors="replace"))

    return show


def _logging_to(screen: Screen) -> Callable[[LoggingMessageParams], None]:
    """Shows each log message of the server on `screen`."""

    def show(message: LoggingMessageParams) -> None:
        data = message.data
        text = data if isinstance(data, str) else msgspec.json.encode(data).decode()
        logger = f" {message.logger}" if message.logger else ""
        screen.say((f"[{message.level}{logger}]", _COLOURS.get(message.level, _ALARM)), f" {text}")

    return show


def _check_log_level(client: Client, target: Target) -> None:
    # Who names a level waits for messages; the others need not know.
    if target.log_level not in (None, DEFAULT_LOG_LEVEL) and declared_by(client).logging is None:
        target.stderr.say("mcp-trio: the server does not say that it has log messages to send")


def declared_by(client: Client) -> ServerCapabilities:
    """What the server says that it has."""
    return cast("ServerCapabilities", client.peer.capabilities)


def cure_of(error: PeerError) -> str:
    """What to do about an error of the server's, to be added to it; empty if nobody knows."""
    for path, cure in _CURES.items():
        found: Any = error.data
        for name in path:
            found = found.get(name) if isinstance(found, dict) else None
        if found is not None:
            return f"; {cure}"
    pages = error.data.get("elicitations") if isinstance(error.data, dict) else None
    urls = (
        [str(page.get("url")) for page in pages if isinstance(page, dict)] if isinstance(pages, list) else []
    )
    return f"; open {' and '.join(urls)} in a browser if you trust it, and try again" if urls else ""


def talk(target: Target, body: Callable[[Client], Awaitable[int]]) -> int:
    """Connect, let `body` talk, and end the conversation; returns what `body` gave, or 130 after Ctrl+C and 143 after SIGTERM.

    Raises:
        Problem: no conversation came about, or a call in `body` failed.
    """
    return trio.run(_talk, target, body)


async def _talk(target: Target, body: Callable[[Client], Awaitable[int]]) -> int:
    status = 0
    with ExitStack() as signals, _explained(target):
        with trio.move_on_after(target.timeout) as opening:
            stops = [signals.enter_context(stop_on_signals(opening.cancel))]
            async with target.connect() as client:
                opening.deadline = math.inf
                _check_log_level(client, target)
                if target.trace is not None and client.protocol:
                    target.stderr.say(f"mcp-trio: the messages cross over {client.protocol}")
                # A scope of its own, so that the conversation outlives it and can tell the server what was cancelled.
                with trio.CancelScope() as talking:
                    stops.append(signals.enter_context(stop_on_signals(talking.cancel)))
                    status = await body(client)
        stopped = max(stop.exit_code for stop in stops)
        if opening.cancelled_caught and not stopped:
            raise Problem(
                f"{target.name} did not answer within {target.timeout:g} s. {target.doubt}, --timeout gives it longer",
                NO_CONVERSATION,
            )
    return stopped or (MISUSED if target.user is not None and target.user.misused else status)


def _way_in(target: Target, error: AuthRequired) -> str:
    """What helps whoever has no token, or none that is good for this."""
    if target.auth is not None:  # that was it
        return ""
    scopes = [word for scope in error.scopes for word in ("--scope", scope)]
    login = shlex.join(["mcp-trio", "login", *scopes, target.name])
    return f". `{login}` gets a token, --token-env shows one that you have"


@contextmanager
def _explained(target: Target) -> Iterator[None]:
    """Say of the library's errors what they mean to someone at a terminal, and what to do."""
    try:
        yield
    except AuthRequired as exc:
        raise Problem(f"{str(exc).removesuffix('.')}{_way_in(target, exc)}", NO_CONVERSATION) from exc
    except AuthorizationFailed as exc:
        raise Problem(f"{target.name}: {exc}", NO_CONVERSATION) from exc
    except ConnectFailed as exc:
        if isinstance(exc.__cause__, AuthRequired):
            way_in = _way_in(target, exc.__cause__)
            raise Problem(f"{target.name}: {str(exc).removesuffix('.')}{way_in}", NO_CONVERSATION) from exc
        if isinstance(exc.__cause__, AuthorizationFailed):
            raise Problem(f"{target.name}: {exc}", NO_CONVERSATION) from exc
        cause, _, _ = str(exc).partition("\n")  # further lines are the end of the server's stderr (rule 3)
        if not isinstance(exc.__cause__, OSError):  # it did start
            cure = "" if "?" in cause else f". {target.doubt}"  # it may doubt already
            cause = f"{target.name}: {cause.removesuffix('.')}{cure}"
        raise Problem(cause, NO_CONVERSATION) from exc
    except CallTimeout as exc:
        raise Problem(f"{exc}; --timeout gives the server longer", NO_CONVERSATION) from exc
    except ConnectionLost as exc:
        raise Problem(f"{exc} before it had answered{target.last_words}", NO_CONVERSATION) from exc
    except PeerError as exc:
        raise Problem(f"the server answered with an error: {exc}{cure_of(exc)}", ANSWERED_ERROR) from exc
    except LocalProtocolError as exc:
        raise Problem(f"{exc}; `mcp-trio inspect` shows what the server can do") from exc
    except RemoteProtocolError as exc:
        raise Problem(f"the server broke the protocol: {exc}. --trace shows how", NO_CONVERSATION) from exc
