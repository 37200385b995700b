"""`AsgiRequest`, step by step: the test decides how each wait ends."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from mcp_core.http import AsgiHttpExchange
from mcp_core.runtime import AsgiRequest
from tests.core.http.server.test_asgi import body, calling, scope
from tests.harness.stepping import (
    Cancelled,
    FakeEvent,
    FakeTask,
    Wait,
)
from tests.harness.wire.router import HOST, RouterHarness

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from mcp_core.http import Exchange

GONE = {"type": "http.disconnect"}


class WakingHarness(RouterHarness):
    """A harness that wakes the requests that have output."""

    def read(self, exchange: Exchange) -> None:
        exchange.token.wake()

    def finish(self) -> None:
        """Run all handlers to their end."""
        while self.jobs:
            self.step()


class ServedRequest:
    """One request to the router of `harness`, and its ASGI server.

    `to_receive` are the messages that `receive` will give, `sent` those that `send` got.
    `receiving` is the second task, which runs while a response is streamed.
    """

    new_event = FakeEvent

    def __init__(self, **about: Any) -> None:
        self.harness = WakingHarness()
        self.router = self.harness.router
        self.to_receive: list[Any] = []
        self.sent: list[dict[str, Any]] = []
        self.refuses: BaseException | None = None
        self.swallows = False
        self.interrupted: list[bool] = []
        self.taken_count = 0
        self.receiving: FakeTask | None = None
        self.request = AsgiRequest(self, scope(**about), self.receive, self.send)
        self.task = FakeTask(self.request.run)

    # -- The driver's part -------------------------------------------------------------------------

    def clock(self) -> float:
        return self.harness.now

    def pump(self) -> None:
        self.harness.pump()

    def output_sent(self, exchange: Exchange) -> None:
        self.taken_count += 1

    async def authorize(self, exchange: Exchange) -> None:
        await Wait("judged")

    @asynccontextmanager
    async def interruptible(self) -> AsyncIterator[Callable[[], object]]:
        try:
            yield lambda: self.interrupted.append(True)
        except Cancelled:
            if not self.interrupted:
                raise

    @asynccontextmanager
    async def run_beside(self, function: Callable[[], Awaitable[bool]]) -> AsyncIterator[None]:
        self.receiving = FakeTask(function)
        try:
            yield
        except ZeroDivisionError:
            if not self.swallows:
                raise
        finally:
            if self.receiving.waits is not None:
                self.receiving.go(Cancelled())

    # -- The server's part -------------------------------------------------------------------------

    async def receive(self) -> Any:
        while not self.to_receive:
            await Wait("receive")
        message = self.to_receive.pop(0)
        if isinstance(message, BaseException):
            raise message
        return message

    async def send(self, message: Any) -> None:
        if self.refuses is not None:
            raise self.refuses
        self.sent.append(message)
        await Wait("send")

    # -- The test's --------------------------------------------------------------------------------

    def go(self, task: FakeTask | None = None) -> str | None:
        """Go on until the next wait for something else than `send` and the auth check."""
        task = task or self.task
        task.go()
        while task.waits in ("send", "judged"):
            task.go()
        return task.waits

    def go_receiving(self) -> str | None:
        assert self.receiving is not None
        return self.go(self.receiving)


def called(tool: str) -> ServedRequest:
    headers, data = calling(tool)
    served = ServedRequest(method="POST", headers=headers)
    served.to_receive.append(body(data))
    return served


def test_request_complete_after_body_starts_no_task() -> None:
    served = called("echo")
    assert repr(served.request).startswith("<AsgiRequest <AsgiHttpExchange open, ")
    assert served.go() is None
    assert [message["type"] for message in served.sent] == [
        "http.response.start",
        "http.response.body",
    ]
    assert served.receiving is None
    assert served.taken_count == 2


def test_request_rejected_by_head_receives_no_body() -> None:
    served = ServedRequest(method="PUT", headers=[HOST])
    served.to_receive.append(AssertionError("nobody asks"))
    assert served.go() is None
    assert served.sent[0]["status"] == 405


def test_request_body_in_pieces_is_received() -> None:
    headers, data = calling("echo")
    served = ServedRequest(method="POST", headers=headers)
    served.to_receive.append(body(data[:20], more=True))
    assert served.go() == "receive"
    served.to_receive.append(body(data[20:]))
    assert served.go() is None
    assert served.sent[0]["status"] == 200


def test_request_answered_before_its_body_is_complete_receives_no_more() -> None:
    """Otherwise the response would wait for a client that sends nothing."""
    headers, data = calling("echo")
    served = ServedRequest(method="POST", headers=headers)
    served.to_receive.append(body(data[:20], more=True))
    assert served.go() == "receive"
    assert not served.interrupted
    served.harness.wait(301)
    assert served.interrupted == [True]
    served.request.wake()  # once is enough
    assert served.interrupted == [True]
    served.task.go(Cancelled())
    while served.task.waits == "send":
        served.task.go()
    assert (served.task.waits, served.task.failure) == (None, None)
    assert served.sent[0]["status"] == 408


def test_response_streaming_receives_in_second_task() -> None:
    served = called("slow")
    assert served.go() == "event"
    assert served.go_receiving() == "receive"
    served.harness.finish()
    assert served.go() is None
    assert served.sent[0]["status"] == 200
    assert served.receiving is not None
    assert isinstance(served.receiving.failure, Cancelled)


@pytest.mark.parametrize("failure", [None, OSError("in receive")])
def test_client_disconnecting_during_stream_cancels_handler(failure: OSError | None) -> None:
    served = called("slow")
    served.go()
    served.to_receive.append(failure or GONE)
    assert served.go_receiving() is None
    assert served.receiving is not None
    assert served.receiving.failure is failure
    assert served.receiving.result is (True if failure is None else None)
    assert served.go() is None  # the exception of the second task is raised by `run_beside`
    assert served.task.failure is None
    served.harness.pump()
    assert served.harness.stopped == set(served.harness.jobs)


def test_client_disconnecting_during_send_gets_no_more_messages() -> None:
    """Some servers raise an exception if more is sent then."""
    served = called("slow")
    served.go()
    served.go_receiving()
    served.harness.finish()
    served.task.go()
    assert served.task.waits == "send"
    served.to_receive.append(GONE)
    assert served.go_receiving() is None
    assert served.go() is None
    assert [message["type"] for message in served.sent] == ["http.response.start"]


def test_client_disconnecting_before_body_gets_no_response() -> None:
    served = ServedRequest(method="POST", headers=calling("echo")[0])
    served.to_receive.append(GONE)
    assert served.go() is None
    assert served.sent == []


@pytest.mark.parametrize("tool", ["echo", "slow"])
def test_send_raising_oserror_counts_as_disconnect(tool: str) -> None:
    served = called(tool)
    served.refuses = OSError("gone")
    served.go()
    if tool == "slow":
        served.go_receiving()
        served.harness.finish()
        served.go()
    assert (served.task.waits, served.task.failure) == (None, None)
    assert served.sent == []


@pytest.mark.parametrize("swallows", [True, False])
def test_send_raising_other_error_ends_request_with_it(swallows: bool) -> None:
    served = called("slow")
    served.swallows = swallows
    served.go()
    served.go_receiving()
    served.refuses = ZeroDivisionError()
    served.harness.finish()
    served.go()
    assert served.task.waits is None
    assert served.task.failure is (None if swallows else served.refuses)


def test_request_cancelled_cancels_handler() -> None:
    served = called("slow")
    served.go()
    served.task.go(Cancelled())
    assert isinstance(served.task.failure, Cancelled)
    served.harness.pump()
    assert served.harness.stopped == set(served.harness.jobs)


def test_receive_while_paused_waits_for_wakeup(monkeypatch: pytest.MonkeyPatch) -> None:
    paused = [False, True, True, False]
    monkeypatch.setattr(AsgiHttpExchange, "paused", property(lambda self: paused.pop(0)))
    served = called("slow")
    served.go()
    served.to_receive += [body(b""), body(b""), GONE]
    assert served.go_receiving() == "event"
    assert len(served.to_receive) == 1
    served.request.wake()
    assert served.go_receiving() == "event"
    assert served.go_receiving() is None
    assert (paused, served.to_receive) == ([], [])
