"""A conversation with the server that a command names: start it, talk, end it, whatever happens meanwhile.

Rules of this file:

1. Ctrl+C and SIGTERM cancel what runs, so the server is told and ended in order. A second one ends us at once.
2. Nobody waits for ever: opening and each answer have a deadline.
3. What the server writes on stderr is passed on as it comes, so error texts do not repeat it.
"""

from __future__ import annotations

import math
import shlex
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

import trio

from mcp_core import ALL, CallTimeout, ConnectFailed, ConnectionLost, PeerError, RemoteProtocolError
from mcp_trio._connect import connect_stdio
from mcp_trio._stdio import stop_on_signals

from ._problem import ANSWERED_ERROR, NO_CONVERSATION, Problem
from ._screen import Screen

if TYPE_CHECKING:
    from pathlib import Path

    from mcp_trio import Client
    from mcp_trio._trace import Trace

__all__ = ["ARROWS", "DEFAULT_TIMEOUT", "Target", "talk", "tracing"]

DEFAULT_TIMEOUT: Final = 60.0

_DOUBT: Final = "Is that an MCP server that speaks over stdin and stdout? --trace shows what crosses"
ARROWS: Final = {"sent": ("→ ", "cyan"), "received": ("← ", "green")}


@dataclass(frozen=True, kw_only=True)
class Target:
    """A server and how to talk to it.

    `timeout` is in seconds. `trace` is told each message. `stderr` is there for all who write on it, so that they know of each
    other's lines.
    """

    command: tuple[str, ...]
    cwd: Path | None = None
    versions: tuple[str, ...] = ALL
    timeout: float = DEFAULT_TIMEOUT
    stderr: Screen = field(default_factory=lambda: Screen(sys.stderr))
    trace: Trace | None = None


def tracing(screen: Screen) -> Trace:
    """Shows each message in full on `screen`."""

    def show(direction: Literal["sent", "received"], line: bytes) -> None:
        screen.say(ARROWS[direction], line.decode(errors="replace"))

    return show


def talk(target: Target, body: Callable[[Client], Awaitable[int]]) -> int:
    """Connect, let `body` talk, and end the server; returns what `body` gave, or 130 after Ctrl+C and 143 after SIGTERM.

    Raises:
        Problem: no conversation came about, or a call in `body` failed.
    """
    return trio.run(_talk, target, body)


async def _talk(target: Target, body: Callable[[Client], Awaitable[int]]) -> int:
    status = 0
    with ExitStack() as signals, _explained(target):
        with trio.move_on_after(target.timeout) as opening:
            stops = [signals.enter_context(stop_on_signals(opening))]
            async with connect_stdio(
                target.command, cwd=target.cwd, versions=target.versions, trace=target.trace
            ) as client:
                opening.deadline = math.inf
                # A scope of its own, so that the conversation outlives it and can tell the server what was cancelled.
                with trio.CancelScope() as talking:
                    stops.append(signals.enter_context(stop_on_signals(talking)))
                    status = await body(client)
        stopped = max(stop.exit_code for stop in stops)
        if opening.cancelled_caught and not stopped:
            raise Problem(
                f"{shlex.join(target.command)} did not answer within {target.timeout:g} s. {_DOUBT}, --timeout gives it"
                " longer",
                NO_CONVERSATION,
            )
    return stopped or status


@contextmanager
def _explained(target: Target) -> Iterator[None]:
    """Say of the library's errors what they mean to someone at a terminal, and what to do."""
    try:
        yield
    except ConnectFailed as exc:
        cause, _, _ = str(exc).partition("\n")  # further lines are the end of the server's stderr (rule 3)
        if not isinstance(exc.__cause__, OSError):  # it did start
            cause = f"{shlex.join(target.command)}: {cause}. {_DOUBT}"
        raise Problem(cause, NO_CONVERSATION) from exc
    except CallTimeout as exc:
        raise Problem(f"{exc}; --timeout gives the server longer", NO_CONVERSATION) from exc
    except ConnectionLost as exc:
        raise Problem(f"{exc} before it had answered; its stderr, if any, is above", NO_CONVERSATION) from exc
    except PeerError as exc:
        raise Problem(f"the server answered with an error: {exc}", ANSWERED_ERROR) from exc
    except RemoteProtocolError as exc:
        raise Problem(f"the server broke the protocol: {exc}. --trace shows how", NO_CONVERSATION) from exc
