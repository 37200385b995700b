"""A request to an application in which nothing runs by itself: what is awaited is shown to the test, which says what comes of it."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from mcp_core.http import AsgiExchange
from mcp_core.runtime import AsgiRequest
from tests.core.http.site import HOST, Talk
from tests.core.http.test_asgi import body, calling, scope
from tests.core.runtime.stepping import Cancelled, FakeEvent, FakeTask, Wait

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from mcp_core.http import Exchange

GONE = {"type": "http.disconnect"}


class Poked(Talk):
    """Whoever has something to write is poked."""

    def read(self, exchange: Exchange) -> None:
        exchange.token.poke()

    def finish(self) -> None:
        """Let all handlers come to their end."""
        while self.jobs:
            self.step()


class Served:
    """One request to the site of `talk`, at which nothing waits but what the test knows of.

    `told` is what the server will tell, `said` what it was sent; `hearing` is what is heard beside the response, while there is one.
    """

    new_event = FakeEvent

    def __init__(self, **about: Any) -> None:
        self.talk = Poked()
        self.site = self.talk.site
        self.told: list[Any] = []
        self.said: list[dict[str, Any]] = []
        self.refuses: BaseException | None = None
        self.swallows = False
        self.taken_from = 0
        self.hearing: FakeTask | None = None
        self.visit = AsgiRequest(self, scope(**about), self.receive, self.send)
        self.task = FakeTask(self.visit.run)

    # -- The driver's part -------------------------------------------------------------------------------------------------

    def clock(self) -> float:
        return self.talk.now

    def pump(self) -> None:
        self.talk.pump()

    def taken(self, exchange: Exchange) -> None:
        self.taken_from += 1
        self.pump()

    async def judged(self, exchange: Exchange) -> None:
        await Wait("judged")

    @asynccontextmanager
    async def run_beside(self, function: Callable[[], Awaitable[bool]]) -> AsyncIterator[None]:
        self.hearing = FakeTask(function)
        try:
            yield
        except ZeroDivisionError:
            if not self.swallows:
                raise
        finally:
            if self.hearing.waits is not None:
                self.hearing.go(Cancelled())

    # -- The server's part -------------------------------------------------------------------------------------------------

    async def receive(self) -> Any:
        while not self.told:
            await Wait("receive")
        told = self.told.pop(0)
        if isinstance(told, BaseException):
            raise told
        return told

    async def send(self, message: Any) -> None:
        if self.refuses is not None:
            raise self.refuses
        self.said.append(message)
        await Wait("send")

    # -- The test's --------------------------------------------------------------------------------------------------------

    def go(self, task: FakeTask | None = None) -> str | None:
        """Until it has to wait for somebody else than the server."""
        task = task or self.task
        task.go()
        while task.waits in ("send", "judged"):
            task.go()
        return task.waits

    def hear(self) -> str | None:
        assert self.hearing is not None
        return self.go(self.hearing)


def called(tool: str) -> Served:
    headers, data = calling(tool)
    served = Served(method="POST", headers=headers)
    served.told.append(body(data))
    return served


def test_a_request_that_is_over_when_it_is_read_starts_nothing() -> None:
    served = called("echo")
    assert repr(served.visit).startswith("<AsgiRequest <AsgiExchange open, ")
    assert served.go() is None
    assert [message["type"] for message in served.said] == ["http.response.start", "http.response.body"]
    assert served.hearing is None
    assert served.taken_from == 2


def test_one_that_is_refused_is_not_read() -> None:
    served = Served(method="PUT", headers=[HOST])
    served.told.append(AssertionError("nobody asks"))
    assert served.go() is None
    assert served.said[0]["status"] == 405


def test_a_body_in_pieces() -> None:
    headers, data = calling("echo")
    served = Served(method="POST", headers=headers)
    served.told.append(body(data[:20], more=True))
    assert served.go() == "receive"
    served.told.append(body(data[20:]))
    assert served.go() is None
    assert served.said[0]["status"] == 200


def test_a_response_that_lasts() -> None:
    served = called("slow")
    assert served.go() == "event"
    assert served.hear() == "receive"
    served.talk.finish()
    assert served.go() is None
    assert served.said[0]["status"] == 200
    assert served.hearing is not None
    assert isinstance(served.hearing.failure, Cancelled)


@pytest.mark.parametrize("failure", [None, OSError("in receive")])
def test_a_client_who_goes_meanwhile(failure: OSError | None) -> None:
    served = called("slow")
    served.go()
    served.told.append(failure or GONE)
    assert served.hear() is None
    assert served.hearing is not None
    assert served.hearing.failure is failure
    assert served.hearing.result is (True if failure is None else None)
    assert served.go() is None  # whoever runs it raises what was raised beside
    assert served.task.failure is None
    served.talk.pump()
    assert served.talk.stopped == set(served.talk.jobs)


def test_a_client_who_goes_while_it_is_sent() -> None:
    """There are servers that raise if more is sent then."""
    served = called("slow")
    served.go()
    served.hear()
    served.talk.finish()
    served.task.go()
    assert served.task.waits == "send"
    served.told.append(GONE)
    assert served.hear() is None
    assert served.go() is None
    assert [message["type"] for message in served.said] == ["http.response.start"]


def test_a_client_who_goes_before() -> None:
    served = Served(method="POST", headers=calling("echo")[0])
    served.told.append(GONE)
    assert served.go() is None
    assert served.said == []


@pytest.mark.parametrize("tool", ["echo", "slow"])
def test_nothing_can_be_sent(tool: str) -> None:
    served = called(tool)
    served.refuses = OSError("gone")
    served.go()
    if tool == "slow":
        served.hear()
        served.talk.finish()
        served.go()
    assert (served.task.waits, served.task.failure) == (None, None)
    assert served.said == []


@pytest.mark.parametrize("swallows", [True, False])
def test_a_fault_of_the_servers(swallows: bool) -> None:
    served = called("slow")
    served.swallows = swallows
    served.go()
    served.hear()
    served.refuses = ZeroDivisionError()
    served.talk.finish()
    served.go()
    assert served.task.waits is None
    assert served.task.failure is (None if swallows else served.refuses)


def test_a_task_that_is_cancelled() -> None:
    served = called("slow")
    served.go()
    served.task.go(Cancelled())
    assert isinstance(served.task.failure, Cancelled)
    served.talk.pump()
    assert served.talk.stopped == set(served.talk.jobs)


def test_nothing_is_received_while_it_is_paused(monkeypatch: pytest.MonkeyPatch) -> None:
    paused = [False, True, True, False]
    monkeypatch.setattr(AsgiExchange, "paused", property(lambda self: paused.pop(0)))
    served = called("slow")
    served.go()
    served.told += [body(b""), body(b""), GONE]
    assert served.hear() == "event"
    assert len(served.told) == 1
    served.visit.poke()
    assert served.hear() == "event"
    assert served.hear() is None
    assert (paused, served.told) == ([], [])
