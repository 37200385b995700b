"""A host for tests: a runtime on trio's clock, sources without a process, and stores that fail.

`opened` is a host of the core without a driver's configuration, processes and log.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import trio

from mcp_core.host import Approvals
from mcp_core.registry import Server
from mcp_core.runtime.host import AbstractHost, MemoryApprovals, ServerSource
from mcp_trio import connect
from mcp_trio.host._host import _TrioHostRuntime

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Mapping

    from mcp_core.drivers import ClientConfigOptions
    from mcp_core.host import ServerLaunch
    from mcp_core.host.config._servers import ConfigInput
    from mcp_core.runtime import AbstractClient
    from mcp_core.runtime.host import ClientConnection

T = TypeVar("T")

WALL_TIME = 1_000_000.0  # when trio's clock is 0


class FakeRuntime(_TrioHostRuntime):
    """A runtime that keeps what it logs, and runs blocking functions at once."""

    def __init__(self, nursery: trio.Nursery) -> None:
        super().__init__(nursery)
        self.errors: list[tuple[str, BaseException]] = []
        self.warnings: list[str] = []

    wall_time = staticmethod(lambda: WALL_TIME + trio.current_time())

    async def in_thread(self, function: Callable[[], T]) -> T:
        await trio.lowlevel.checkpoint()
        return function()

    def log_error(self, problem: str, error: BaseException) -> None:
        self.errors.append((problem, error))

    def log_warning(self, text: str) -> None:
        self.warnings.append(text)


class FakeSource(ServerSource):
    """A server in this process, whose attributes the test chooses.

    Attributes:
        server: the server.
        error: raised instead of connecting, or None.
        launch: returned by `prepare`.
        gate: connecting waits for it.
        options: the options of each attempt to connect.
        entered: the inputs of each attempt.
    """

    def __init__(self, name: str, server: Server | None = None, **attributes: Any) -> None:
        self.name = name
        self.server = server or Server(name)
        self.error: BaseException | None = None
        self.launch: ServerLaunch | None = None
        self.gate = trio.Event()
        self.gate.set()
        self.wanted: Mapping[str, ConfigInput] = {}
        self.options: list[ClientConfigOptions] = []
        self.entered: list[Mapping[str, str]] = []
        for attribute, value in attributes.items():
            assert hasattr(self, attribute)
            setattr(self, attribute, value)

    def prepare(self) -> ServerLaunch | None:
        return self.launch

    def inputs(self) -> Mapping[str, ConfigInput]:
        return self.wanted

    def connect(
        self,
        options: ClientConfigOptions,
        inputs: Mapping[str, str],
        launch: ServerLaunch | None,
    ) -> ClientConnection:
        self.options.append(options)
        self.entered.append(inputs)
        return self._connect(options)

    @asynccontextmanager
    async def _connect(self, options: ClientConfigOptions) -> AsyncIterator[AbstractClient]:
        await self.gate.wait()
        if self.error is not None:
            raise self.error
        async with connect(self.server, **options) as client:
            yield client

    def same_as(self, other: Any) -> bool:
        return isinstance(other, FakeSource) and other.server is self.server


class FailingApprovals(MemoryApprovals):
    """Approvals that cannot be written, nor read if `is_readable` is False."""

    is_readable = True

    def load(self) -> Approvals:
        if not self.is_readable:
            raise PermissionError("the approvals cannot be read")
        return super().load()

    def change(self, function: Callable[[Approvals], Approvals]) -> Approvals:
        function(self.load())
        raise OSError("the disk is full")


@asynccontextmanager
async def opened(
    sources: Iterable[ServerSource], **options: Any
) -> AsyncIterator[tuple[AbstractHost, FakeRuntime]]:
    """Open a host with these options, and its runtime. At the end nothing may have gone wrong."""
    host = AbstractHost(options)  # type: ignore[arg-type]
    async with trio.open_nursery() as nursery:
        runtime = FakeRuntime(nursery)
        try:
            await host._open(runtime, sources)
            yield host, runtime
        finally:
            host._close()
            nursery.cancel_scope.cancel()
