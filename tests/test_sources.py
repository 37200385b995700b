"""Random bytes and the time come from one argument, in each driver: a simulation repeats itself."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import pytest
import trio
from trio.testing import MockClock

import mcp_asyncio_shim._asgi
import mcp_trio.http_server._asgi
from mcp_asyncio_shim import _tasks as asyncio_tasks
from mcp_core.auth import ApiKeys
from mcp_core.http import HttpOptions
from mcp_core.registry import Context, Server
from mcp_core.runtime import Sources
from mcp_trio import _tasks as trio_tasks
from tests.harness.wire.asgi import serve_app
from tests.harness.wire.router import initialize
from tests.harness.world import loop

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    Main = Callable[[], Coroutine[Any, Any, None]]


def run_trio(main: Main) -> None:
    trio.run(main, clock=MockClock(autojump_threshold=0))


DRIVERS = {
    "trio": (run_trio, mcp_trio.http_server._asgi.AsgiApp, trio_tasks.open_server),
    "asyncio": (
        lambda main: loop.run(main()),
        mcp_asyncio_shim._asgi.AsgiApp,
        asyncio_tasks.open_server,
    ),
}


each_driver = pytest.mark.parametrize("driver", DRIVERS.values(), ids=DRIVERS.keys())


def counted(wall_time: float = 5.0) -> Sources:
    """Return sources whose bytes are 1, 2, 3 and so on, each as long as asked for."""
    numbers = itertools.count(1)
    return Sources(lambda size: next(numbers).to_bytes(size, "big"), lambda: wall_time)


@each_driver
def test_application_draws_session_ids_and_handlers_from_sources(driver: Any) -> None:
    """The ids in what a client reads are known beforehand, in both eras."""
    run, app_class, _ = driver
    seen: list[Any] = []
    server = Server("example")

    @server.tool
    def look(context: Context) -> str:
        """Look at the sources of this call."""
        runtime: Any = context._collector.host.runtime
        seen.append((runtime.entropy(4), runtime.wall_time()))
        raise LookupError("nothing")

    async def main() -> None:
        app: Any = app_class(server, "/mcp", HttpOptions.of(), sources=counted())
        async with serve_app(app) as host:
            call = await host.post(initialize()).end()
            # The first number named the worker.
            assert call.headers[b"mcp-session-id"] == b"%032x" % 2
            failed = await host.call_tool(1, "look").end()
            (result,) = failed.messages
            assert f"reference {4:08x}" in str(result)

    run(main)
    assert seen == [((3).to_bytes(4, "big"), 5.0)]


@each_driver
def test_opened_server_names_worker_and_tells_time_from_sources(driver: Any) -> None:
    run, _, open_server = driver

    async def main() -> None:
        async with open_server(Server("example"), sources=counted(7.0)) as served:
            assert served.tasks.worker == f"{1:016x}"
            assert served.tasks.runtime.wall_time() == 7.0
        async with open_server(Server("example")) as served:
            assert served.tasks.worker != f"{1:016x}"
            assert served.tasks.runtime.wall_time() > 1_000_000_000

    run(main)


@each_driver
@pytest.mark.parametrize("guarded", [True, False])
def test_application_gives_its_time_to_authorization(driver: Any, guarded: bool) -> None:
    _, app_class, _ = driver
    auth = ApiKeys({"user": "x" * 32}) if guarded else None
    sources = counted()
    app = app_class(Server("example"), "/mcp", HttpOptions.of(), auth, sources=sources)
    (endpoint,) = app._router(None).endpoints
    found = endpoint.auth
    assert (found and found.wall_time) == (sources.wall_time if guarded else None)
