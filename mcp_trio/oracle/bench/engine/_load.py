"""Open a load: start or connect a target, and negotiate a revision with it."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import trio

from mcp_core import ConnectFailed
from mcp_trio.streams._child import spawn

if TYPE_CHECKING:
    import os
    from collections.abc import AsyncIterator, Mapping, Sequence
    from contextlib import AbstractAsyncContextManager

    from mcp_trio.oracle.bench._turn import TargetLoad
    from mcp_trio.streams._child import ChildProcess, Stderr

__all__ = ["TIMEOUT", "Address", "Program", "open_load"]

TIMEOUT: Final = 30.0  # seconds


@dataclass(frozen=True)
class Program:
    """A server that is a program, which is started and speaks over its stdin and stdout.

    Attributes:
        argv: the program and its arguments.
        env: variables that it gets beside the few that every child inherits.
        inherit_env: whether it inherits the whole environment.
        cwd: its working directory.
    """

    argv: Sequence[str]
    env: Mapping[str, str] | None = None
    inherit_env: bool = False
    cwd: str | os.PathLike[str] | None = None

    def spawn(self, stderr: Stderr) -> AbstractAsyncContextManager[ChildProcess]:
        """Start it for a block's duration. `stderr` is as for `spawn`.

        Raises:
            ConnectFailed: it can't be started.
        """
        return spawn(
            self.argv,
            env=self.env,
            inherit_env=self.inherit_env,
            cwd=self.cwd,
            stderr=stderr,
        )


@dataclass(frozen=True)
class Address:
    """A server that runs at an `http` or `https` URL. `headers` are sent with each request."""

    url: str
    headers: Mapping[str, str] = field(default_factory=dict)


@asynccontextmanager
async def open_load(
    target: Program | Address, *, era: str | None = None, timeout: float = TIMEOUT
) -> AsyncIterator[TargetLoad]:
    """Start or connect a target, negotiate a revision, and yield its load.

    At the end of the block sessions are deleted, connections are closed and the program is stopped.

    Args:
        target: a program or an address.
        era: the revision to speak. None for the newest that both speak.
        timeout: seconds for the start, and for the response to each call.

    Raises:
        ConnectFailed: it can't be started or reached, or doesn't speak the revision. The message
            names the cause and the cure.
    """
    failure: BaseException | None = None
    async with trio.open_nursery() as nursery:
        try:
            if isinstance(target, Address):
                from ._http_load import HttpLoad

                http = HttpLoad(target, timeout, nursery)
                try:
                    await http.open(era)
                    yield http
                finally:
                    await http.aclose()
            else:
                from ._stdio_load import StdioLoad

                async with target.spawn("discard") as child:
                    stdio = StdioLoad(child.stream, timeout, nursery, child)
                    try:
                        await stdio.open(era)
                    except ConnectFailed as exc:
                        await child.aclose()
                        raise ConnectFailed(f"{exc}{child.describe_start()}") from exc
                    yield stdio
        except BaseException as exc:  # noqa: BLE001  raised after the nursery, which would wrap it
            failure = exc
        nursery.cancel_scope.cancel()
    if failure is not None:
        raise failure
