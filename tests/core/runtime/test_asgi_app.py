"""`AsgiApplication`, step by step: the test decides how each wait ends."""

from __future__ import annotations

import logging
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from mcp_core.http import HttpOptions, RequestHead
from mcp_core.http.server._asgi import MOUNT_POINT
from mcp_core.registry import Server
from mcp_core.runtime import AsgiApplication, Sources
from tests.harness.stepping import (
    Cancelled,
    FakeEvent,
    FakeTask,
    Wait,
)
from tests.harness.wire.router import HOST

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable


class App(AsgiApplication):
    """An application. `does` lists its steps; `fails` maps a step to the exception it raises."""

    _cancelled = Cancelled
    _sources = Sources(bytes, lambda: 0.0)
    _new_event = FakeEvent

    def __init__(self) -> None:
        super().__init__(Server("x"), "/mcp", HttpOptions.of())
        self.does: list[Any] = []
        self.fails: dict[str, BaseException] = {}
        self.reported: list[tuple[str, BaseException | None]] = []
        self.living: list[FakeTask] = []
        self.swallows = False

    @asynccontextmanager
    async def _open(self) -> AsyncIterator[str]:
        self._do("open")
        try:
            yield "reception"
        except BaseException as exc:
            self.does.append(type(exc).__name__)
            if not self.swallows:
                raise
        finally:
            self._do("close")

    def _do(self, what: str) -> None:
        self.does.append(what)
        if what in self.fails:
            raise self.fails[what]

    def _spawn(self, function: Callable[[], Awaitable[None]]) -> None:
        task = FakeTask(function)
        self.living.append(task)
        task.go()

    def _log(self, level: int, text: str, *arguments: object, exc_info: BaseException) -> None:
        assert level == logging.ERROR
        self.reported.append((text % arguments, exc_info))

    # -- The ASGI server's part --------------------------------------------------------------------

    async def receive(self) -> Any:
        await Wait("receive")

    async def send(self, message: Any) -> None:
        self.does.append(
            message["type"] + ("" if "message" not in message else f": {message['message']}")
        )
        await Wait("send")

    def lifespan_task(self) -> FakeTask:
        """Call the application with a scope of type `lifespan`."""
        return FakeTask(partial(self._serve_lifespan, self.receive, self.send))

    def request_task(self) -> FakeTask:
        """Call the application with another scope."""
        return FakeTask(self._started)


# -- With a lifespan scope ---------------------------------------------------------------------


def test_lifespan_scope_opens_and_closes_application() -> None:
    app = App()
    task = app.lifespan_task()
    task.go()
    assert (task.waits, app.does) == ("receive", [])
    task.go()
    assert (task.waits, app.does) == ("send", ["open", "lifespan.startup.complete"])
    assert app.request_task().run().result == "reception"
    task.go()
    assert task.waits == "receive"
    task.go()
    assert app.does[2:] == ["close", "lifespan.shutdown.complete"]
    assert app._driver is None
    assert task.run().failure is None
    assert app.reported == []


@pytest.mark.parametrize("when", ["open", "close"])
def test_lifespan_failing_is_reported_to_asgi_server_and_log(when: str) -> None:
    app = App()
    failure = app.fails[when] = OSError("no disk")
    assert app.lifespan_task().run().failure is None
    stage = {"open": "startup", "close": "shutdown"}[when]
    assert app.does[-1] == f"lifespan.{stage}.failed: OSError: no disk"
    assert app.reported == [(f"the {stage} failed", failure)]


@pytest.mark.parametrize("after", [2, 3])
def test_lifespan_cancelled_closes_application(after: int) -> None:
    app = App()
    task = app.lifespan_task()
    for _ in range(after):
        task.go()
    task.go(Cancelled())
    assert isinstance(task.failure, Cancelled)
    assert app.does == ["open", "lifespan.startup.complete", "Cancelled", "close"]


def test_lifespan_that_swallows_exception_completes() -> None:
    app = App()
    app.swallows = True
    task = app.lifespan_task()
    for _ in range(3):
        task.go()
    task.go(ZeroDivisionError())
    assert app.does[2:] == ["ZeroDivisionError", "close", "lifespan.shutdown.complete"]


# -- Without a lifespan scope ------------------------------------------------------------------


def test_lifespan_without_scope_starts_with_first_request() -> None:
    app = App()
    assert repr(app) == "<App of <Server 'x' with nothing>, None>"
    assert app.request_task().run().result == app.request_task().run().result == "reception"
    (living,) = app.living
    assert living.waits == "event"
    assert app.does == ["open"]
    living.go(Cancelled())
    assert app.does == ["open", "Cancelled", "close"]
    assert app.reported == []
    assert app.request_task().run().result == "reception"
    assert len(app.living) == 2


def test_lifespan_start_failed_is_retried_by_next_request() -> None:
    app = App()
    failure = app.fails["open"] = OSError("no disk")
    assert app.request_task().run().failure is failure
    assert app.reported == [("the lifespan failed", failure)]
    app.fails.clear()
    assert app.request_task().run().result == "reception"


def test_lifespan_without_scope_failing_at_end_is_logged() -> None:
    app = App()
    failure = app.fails["close"] = SystemExit(3)
    app.request_task().run()
    app.living[0].go(Cancelled())
    assert app.living[0].failure is None
    assert app.reported == [("the lifespan failed", failure)]


def test_lifespan_start_cancelled_is_retried() -> None:
    app = App()
    app.fails["open"] = Cancelled()
    task = app.request_task()
    task.go()
    assert isinstance(app.living[0].failure, Cancelled)
    assert task.waits == "event"
    app.fails.clear()
    assert task.run().result == "reception"
    assert app.reported == []


def test_application_serves_endpoint_at_mount_point_and_path() -> None:
    app = App()
    router = app._router(None, "token")
    (endpoint,) = router.endpoints
    assert endpoint.state.token == "token"
    found = [
        router.actions_to_send(router.begin(RequestHead(b"PUT", path, [HOST]), 0))[0]
        for path in (MOUNT_POINT.encode(), b"/mcp", b"/no", b"/")
    ]
    assert [head.status for head in found] == [405, 405, 404, 404]  # type: ignore[union-attr]


def test_requests_during_lifespan_start_share_it() -> None:
    app = App()
    slow: list[FakeTask] = []

    def spawn(function: Callable[[], Awaitable[None]]) -> None:
        slow.append(FakeTask(function))

    app._spawn = spawn  # type: ignore[method-assign]
    first, second = app.request_task(), app.request_task()
    for task in first, second:
        task.go()
        assert task.waits == "event"
    slow[0].go()
    assert first.run().result == second.run().result == "reception"
    assert len(slow) == 1
