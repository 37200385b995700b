"""The calls of `mcp-trio bench` that are in files, `--script` and `--load`, and its client.

Both are read before a target is started, so that a wrong file costs nothing.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import trio

from mcp_core import ALL, ConnectFailed
from mcp_core.urls import Url, is_local_host
from mcp_trio.cli._elicitation_answers import ElicitationAnswers
from mcp_trio.cli._errors import MISUSE, NOTHING_JUDGED, CliError
from mcp_trio.cli._session import guess_endpoint
from mcp_trio.oracle.bench._process import ChildrenMeter, ListenerMeter, NoMeter
from mcp_trio.oracle.bench.calls._recorded import Recorded
from mcp_trio.oracle.bench.calls._script import (
    MAX_SCRIPT_BYTES,
    InvalidScript,
    Script,
    parse_script,
)
from mcp_trio.oracle.bench.client._client_load import open_client_at, open_client_of
from mcp_trio.oracle.bench.engine._load import Address, open_load

from ._trace_file import load_trace_file

if TYPE_CHECKING:
    import argparse
    from collections.abc import AsyncIterator, Sequence
    from contextlib import AbstractAsyncContextManager

    from mcp_trio._client import Client
    from mcp_trio.cli._screen import Screen
    from mcp_trio.cli._session import Target
    from mcp_trio.oracle.bench._process import Meter
    from mcp_trio.oracle.bench._turn import TargetLoad

    from ._bench_targets import BenchTarget

__all__ = [
    "add_client_options",
    "client_of",
    "meter_of",
    "open_one",
    "read_recorded",
    "read_script",
]


def read_script(path: str) -> Script:
    """Return the script in a file.

    Raises:
        CliError: it can't be read, or isn't one.
    """
    try:
        with Path(path).open("rb") as file:
            return parse_script(file.read(MAX_SCRIPT_BYTES + 1))
    except OSError as exc:
        raise CliError(f"{path}: {exc.strerror}", MISUSE) from exc
    except InvalidScript as exc:
        raise CliError(f"{path}: {exc}", MISUSE) from exc


def read_recorded(path: str, stderr: Screen, *, answers_itself: bool) -> Recorded:
    """Return the requests of a recorded conversation.

    Raises:
        CliError: the file can't be read, or has nothing to send.
    """
    found = Recorded(load_trace_file(path, stderr), path=path, answers_itself=answers_itself)
    if not found.count:
        raise CliError(
            f"{path} has no request that can be sent again ({found.why_empty}); record a"
            " conversation with --record",
            NOTHING_JUDGED,
        )
    return found


def add_client_options(parser: argparse.ArgumentParser) -> None:
    """Add the options for calls through our client."""
    group = parser.add_argument_group("through the client")
    group.add_argument(
        "--through",
        choices=["client"],
        help="call through the client of this package, which answers questions, follows tasks,"
        " waits for a script's notifications, uses the logins of `mcp-trio login`, and speaks"
        " HTTP/2 to https:// servers; it needs several times the processor time, so fast servers"
        " look alike",
    )
    group.add_argument(
        "--answer",
        metavar="KEY=VALUE|JSON",
        dest="given_answers",
        action="append",
        default=[],
        help="with --through client: fill in a field of each form that the server requests; or, as"
        " a JSON object, a whole form, again from the first one after the last (may be repeated)",
    )


# -- Loads -----------------------------------------------------------------------------------------


def meter_of(target: BenchTarget) -> Meter:
    """Return what measures a target's processes: those at its port, or all that were started."""
    server = target.target.server
    if not isinstance(server, str):
        return ChildrenMeter()
    url = Url.parse(server)
    return ListenerMeter(url.port) if is_local_host(url.host) else NoMeter()


def open_one(
    target: BenchTarget,
    *,
    era: str | None,
    timeout: float,
    answers: Sequence[str] | None = None,
) -> AbstractAsyncContextManager[TargetLoad]:
    """Return the context manager of a target's load.

    Args:
        target: the target.
        era: the revision to speak, None for the newest.
        timeout: seconds for the connection, and for each response.
        answers: the values of `--answer` for a load through the client; None for the lean engine.
    """
    address = target.address()
    if answers is None:
        return open_load(address, era=era, timeout=timeout)
    client = _with_client(target, era, timeout, answers)
    if isinstance(address, Address):
        return _open_at_url(client, timeout)
    return open_client_of(address, client.client_options, timeout=timeout)


@asynccontextmanager
async def _open_at_url(target: Target, timeout: float) -> AsyncIterator[TargetLoad]:
    """Connect to a URL; to /mcp there if it has no path, and isn't an endpoint."""
    server = target.server
    assert isinstance(server, str)
    url = Url.parse(server)
    port = url.port if is_local_host(url.host) else None
    if url.target == b"/":
        try:
            async with _connected(target):
                pass
        except ConnectFailed as exc:
            guessed = guess_endpoint(server, exc)
            if guessed is None:
                raise
            target = replace(target, server=guessed[0])
    async with open_client_at(partial(_connected, target), port=port, timeout=timeout) as load:
        yield load


def _connected(target: Target) -> AbstractAsyncContextManager[Client]:
    return target.connect(trio.CancelScope())


def client_of(
    target: BenchTarget, *, era: str | None, timeout: float
) -> AbstractAsyncContextManager[Client]:
    """Return the context manager of a client that is connected to a target."""
    return _connected(_with_client(target, era, timeout, ()))


def _with_client(
    target: BenchTarget, era: str | None, timeout: float, answers: Sequence[str]
) -> Target:
    given: Any = None
    if answers:
        given = ElicitationAnswers(target.name, answers, target.target.stderr, repeats=True)
    versions = ALL if era is None else (era,)
    return replace(target.target, answers=given, versions=versions, timeout=timeout)
