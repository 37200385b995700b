"""`HttpRequestRunner`, step by step: the test is the driver, and decides how each wait ends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from mcp_core import NEED_DATA, AuthRequired, ConnectFailed, ConnectionLost
from mcp_core.http import Body, End, Head, HttpCall, RequestHead
from mcp_core.http.client import _pool as pool
from mcp_core.http.client._pool import NotProcessed
from mcp_core.runtime import HttpRequestRunner
from tests.harness.stepping import (
    Cancelled,
    FakeEvent,
    Wait,
    steps_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mcp_core.http import Action
    from mcp_core.runtime import HttpRequestJob, OnActions

HEAD = RequestHead(b"POST", b"/mcp", [])
OK: list[Action] = [Head(200, [(b"keep-alive", b"timeout=9")]), Body(b"{}"), End()]


class PlayedConnection:
    """A connection on which the test is the server."""

    protocol = "HTTP/1.1"
    capacity = 1

    def __init__(self, name: str) -> None:
        self.name = name
        self.received = self.ended = self.closed = False
        self.sent: list[tuple[RequestHead, bytes]] = []
        self.take: OnActions

    async def run(self, head: RequestHead, body: bytes, take: OnActions) -> bool:
        self.sent.append((head, body))
        self.take = take
        return bool(await Wait(f"run {self.name}"))

    def server_closed(self) -> bool:
        return self.ended

    async def aclose(self) -> None:
        self.closed = True
        await Wait(f"close {self.name}")


class Task:
    """The task of a job. `waits` is what it waits for, None once it is over."""

    def __init__(self, driver: PlayedRunner, job: HttpRequestJob) -> None:
        self.driver, self.job = driver, job
        self.waits: str | None = None
        self._run = steps_of(job.run)
        job.stop = self.stop

    def go(self, value: Any = None, error: BaseException | None = None) -> None:
        try:
            self.waits = self._run.send(value) if error is None else self._run.throw(error)
            return
        except StopIteration as end:
            self.job.done(end.value)
        except Cancelled:
            pass
        except BaseException as exc:  # noqa: BLE001 - it is looked at
            with pytest.raises(type(exc)):
                self.job.failed(exc)
        self.waits = None
        self.job.dropped()
        self.driver.pump()

    def stop(self) -> None:
        self.go(error=Cancelled())


class Http:
    """The `HttpClient`: what the test wants done, and in `calls` how it was called."""

    def __init__(self) -> None:
        self.make: list[HttpCall] = []
        self.drops: list[int] = []
        self.events: list[Any] = []
        self.calls: list[Any] = []
        self.started: list[int] = []
        self.deadline: float | None = None
        self.refuses = 0
        self.paused: set[int] = set()

    def is_paused(self, key: int) -> bool:
        return key in self.paused

    def calls_to_make(self, now: float) -> list[HttpCall]:
        calls, self.make = self.make, []
        return calls

    def calls_to_drop(self) -> list[int]:
        drops, self.drops = self.drops, []
        return drops

    def next_event(self) -> Any:
        return self.events.pop(0) if self.events else NEED_DATA

    def next_deadline(self) -> float | None:
        return self.deadline

    def handle_timeout(self, now: float) -> None:
        self.calls.append(("time", now))

    def sign(self, call: HttpCall) -> RequestHead:
        return call.head

    def request_started(self, key: int) -> None:
        self.started.append(key)

    def is_retry_worthwhile(self, call: HttpCall, head: Head) -> bool:
        self.refuses -= 1
        return self.refuses >= 0

    def pause_timeout(self, key: int, now: float | None) -> None:
        self.calls.append(("hold", now))

    def response_started(self, key: int, head: Head, now: float) -> None:
        self.calls.append((key, head.status))

    def response_data(self, key: int, data: bytes, now: float) -> None:
        self.calls.append((key, data))

    def response_ended(self, key: int, now: float, *, error: str | None = None) -> None:
        self.calls.append((key, error))

    def denied(self, key: int, error: Exception, now: float) -> None:
        self.calls.append(("denied", key, error))


class PlayedRunner:
    """A driver. `opened` are the connections that were dialled so far."""

    played: ClassVar[list[PlayedRunner]] = []

    def __init__(self, **options: Any) -> None:
        self.played.append(self)
        self.now = 0.0
        self.http = Http()
        self.tasks: list[Task] = []
        self.opened: list[PlayedConnection] = []
        self.discarded: list[PlayedConnection] = []
        self.seen: list[Any] = []
        self.take: Callable[[Any], None] = self.seen.append
        http: Any = self.http
        self.runner: HttpRequestRunner[PlayedConnection] = HttpRequestRunner(
            http, self, self._take, **options
        )

    new_event = FakeEvent

    def _take(self, event: Any) -> None:
        self.take(event)

    async def connect(self) -> PlayedConnection:
        line: PlayedConnection = await Wait("dial")
        return line

    def discard(self, lines: list[PlayedConnection]) -> None:
        self.discarded += lines

    def start_job(self, job: HttpRequestJob) -> None:
        task = Task(self, job)
        self.tasks.append(task)
        task.go()

    def clock(self) -> float:
        return self.now

    def pump(self) -> None:
        self.runner.run()

    # -- What a test says --------------------------------------------------------------------------

    def call(self, key: int, **more: Any) -> Task:
        self.http.make.append(HttpCall(key, HEAD, b"{}", **more))
        self.pump()
        return self.tasks[-1]

    def connected_line(self, task: Task) -> PlayedConnection:
        line = PlayedConnection(f"line {len(self.opened)}")
        self.opened.append(line)
        assert task.waits == "dial"
        task.go(line)
        assert task.waits == f"run {line.name}"
        return line

    def answered(
        self, task: Task, line: PlayedConnection, actions: list[Action] = OK, *, whole: bool = True
    ) -> None:
        line.received = True
        line.take(actions)
        task.go(whole)

    def idle_line(self) -> PlayedConnection:
        """Return an idle connection that has carried a request."""
        task = self.call(0)
        line = self.connected_line(task)
        self.answered(task, line)
        self.http.calls.clear()
        return line


@pytest.fixture(autouse=True)
def stopped() -> Iterator[None]:
    """Cancel the tasks that still run at the end of a test."""
    yield
    for play in PlayedRunner.played:
        for task in play.tasks:
            while task.waits is not None:
                task.stop()
    PlayedRunner.played.clear()


def test_second_request_reuses_connection() -> None:
    """The connection stays open for a second less than the server's `keep-alive: timeout=9`."""
    sent: list[bytes] = []
    play = PlayedRunner(
        on_sent=sent.append, adapt_head=lambda head: RequestHead(head.method, b"http://there", [])
    )
    task = play.call(1)
    assert repr(task.job) == "<HttpRequestJob 1, under way>"
    assert repr(play.runner).endswith(": 1 under way>")
    protocol = play.runner.protocol
    line = play.connected_line(task)
    assert protocol == ""
    assert play.runner.protocol == "HTTP/1.1"
    assert line.sent == [(RequestHead(b"POST", b"http://there", []), b"{}")]
    play.answered(task, line)
    assert play.http.calls == [(1, 200), (1, b"{}"), (1, None)]
    assert task.waits is None
    assert repr(task.job) == "<HttpRequestJob 1, over>"
    assert play.runner.idle
    assert play.runner.next_deadline() == 8.0  # keep-alive: timeout=9
    again = play.call(2)
    assert again.waits == "run line 0"
    assert sent == [b"{}", b"{}"]


def test_events_are_processed_before_end_of_response() -> None:
    play = PlayedRunner()
    line = play.connected_line(play.call(1))
    play.http.events = ["event"]
    line.take(OK[:2])
    assert play.seen == ["event"]
    play.http.events = ["last"]
    line.take(OK[2:])
    assert play.seen == ["event"]
    play.tasks[0].go(True)
    assert play.seen == ["event", "last"]


def test_paused_response_waits_for_event_until_it_is_resumed() -> None:
    """Backpressure: the connection reads no more while the consumer is behind."""
    play = PlayedRunner()
    line = play.connected_line(play.call(1))
    assert line.take(OK[:2]) is None
    play.http.paused.add(1)
    event: Any = line.take(OK[1:2])
    again: Any = line.take(OK[1:2])
    assert again is event
    play.pump()
    assert not event.is_set
    play.http.paused.clear()
    play.pump()
    assert event.is_set
    play.http.paused.add(1)
    assert line.take(OK[2:]) is None  # nothing is left to read
    play.tasks[0].go(True)
    play.pump()


def test_paused_request_cancelled_forgets_its_event() -> None:
    play = PlayedRunner()
    task = play.call(1)
    line = play.connected_line(task)
    play.http.paused.add(1)
    event: Any = line.take(OK[:2])
    play.http.drops.append(1)
    play.pump()
    task.go()  # the connection is closed
    play.http.paused.clear()
    play.pump()
    assert not event.is_set


def test_event_handler_may_start_request() -> None:
    play = PlayedRunner()

    def take(event: Any) -> None:
        if event == "calls at once":
            play.call(1)
        else:
            play.http.make.append(HttpCall(2, HEAD))

    play.take = take
    play.http.events = ["calls at once", "has something to say"]
    play.pump()
    assert [task.job.call.key for task in play.tasks] == [1, 2]


def test_dial_failing_ends_request() -> None:
    play = PlayedRunner()
    play.call(1).go(error=ConnectFailed("nobody is there"))
    assert play.http.calls == [(1, "nobody is there")]


def test_request_started_is_reported_once_a_connection_is_open() -> None:
    play = PlayedRunner()
    task = play.call(1)
    assert play.http.started == []
    play.connected_line(task)
    assert play.http.started == [1]


def test_request_invalid_in_http_ends_with_error() -> None:
    play = PlayedRunner()
    task = play.call(1)
    line = play.connected_line(task)
    task.go(error=ValueError("no header"))
    assert task.waits == "close line 0"
    task.go()
    assert play.http.calls == [(1, "no header")]
    assert line.closed


@pytest.mark.parametrize(
    ("received", "error"),
    [
        (True, "it broke"),
        (False, "it broke; is it an HTTP server, with TLS or without as the URL says?"),
    ],
)
def test_connection_lost_ends_request(received: bool, error: str) -> None:
    play = PlayedRunner()
    task = play.call(1)
    play.connected_line(task).received = received
    task.go(error=ConnectionLost("it broke"))
    assert task.waits == "close line 0"
    task.go()
    assert play.http.calls == [(1, error)]


def test_idle_connection_lost_retries_request() -> None:
    play = PlayedRunner()
    play.idle_line()
    task = play.call(1)
    assert task.waits == "run line 0"
    task.go(error=ConnectionLost("it broke"))
    task.go()
    line = play.connected_line(task)
    play.answered(task, line)
    assert play.http.calls[-1] == (1, None)
    act = play.call(2, idempotent=False)
    assert act.waits == "run line 1"
    act.go(error=ConnectionLost("it broke"))
    act.go()
    assert play.http.calls[-1] == (2, "it broke")


def test_idle_connection_closed_by_server_is_not_used() -> None:
    play = PlayedRunner()
    play.idle_line().ended = True
    task = play.call(1, idempotent=False)
    assert task.waits == "close line 0"
    task.go()
    play.connected_line(task)


def test_connection_not_reusable_is_closed() -> None:
    play = PlayedRunner()
    task = play.call(1)
    play.answered(task, play.connected_line(task), whole=False)
    assert task.waits == "close line 0"
    task.go()
    assert play.http.calls[-1] == (1, None)


def test_request_cancelled_closes_connection() -> None:
    play = PlayedRunner()
    task = play.call(1)
    line = play.connected_line(task)
    play.http.drops = [1, 99]
    play.pump()
    assert task.waits == "close line 0"
    task.go(error=Cancelled())
    assert play.http.calls == [(1, "the request was cancelled")]
    assert line.closed
    play.http.drops = [1]
    play.pump()
    assert len(play.http.calls) == 1


def test_stop_cancels_all_requests() -> None:
    play = PlayedRunner()
    tasks = [play.call(1), play.call(2)]
    play.runner.stop()
    assert [task.waits for task in tasks] == [None, None]
    assert play.runner.idle


def test_job_cancelled_before_start_ends_request() -> None:
    play = PlayedRunner()
    play.start_job = lambda job: (job.stop(), job.dropped())  # type: ignore[assignment, func-returns-value]
    play.http.make.append(HttpCall(1, HEAD))
    play.pump()
    assert play.http.calls == [(1, "the request was cancelled")]


def test_unexpected_exception_ends_request_and_is_raised() -> None:
    play = PlayedRunner()
    task = play.call(1)
    play.connected_line(task)
    task.go(error=ZeroDivisionError())
    task.go()
    assert play.http.calls == [(1, "internal error of the client")]


# -- Waiting for a connection ----------------------------------------------------------------------


@pytest.fixture
def two(monkeypatch: pytest.MonkeyPatch) -> PlayedRunner:
    """Return a driver with two connections for short requests, which is the maximum."""
    monkeypatch.setattr(pool, "_MAX_IN_USE", 2)
    play = PlayedRunner()
    for key in 1, 2:
        play.connected_line(play.call(key))
    return play


def test_request_without_free_connection_waits(two: PlayedRunner) -> None:
    third, fourth = two.call(3), two.call(4)
    assert third.waits == fourth.waits == "event"
    events = list(two.runner._waiting[0])
    two.answered(two.tasks[0], two.opened[0])
    assert [event.is_set for event in events] == [True, False]  # type: ignore[attr-defined]
    third.go()
    assert third.waits == "run line 0"
    long = two.call(5, long_lived=True)
    assert long.waits == "dial"


def test_waiting_request_cancelled_wakes_next(two: PlayedRunner) -> None:
    """A freed connection must go to a request that still waits, or it stays idle forever."""
    third, fourth = two.call(3), two.call(4)
    events = list(two.runner._waiting[0])
    third.stop()
    two.answered(two.tasks[0], two.opened[0])
    assert [event.is_set for event in events] == [False, True]  # type: ignore[attr-defined]
    fifth = two.call(5)
    assert fifth.waits == "run line 0"
    sixth = two.call(6)
    fourth.stop()  # it was its turn
    assert two.runner._waiting[0] == type(two.runner._waiting[0])()
    sixth.go()
    assert sixth.waits == "event"
    two.call(7)
    two.tasks[1].stop()
    two.tasks[1].go()
    sixth.go()
    assert sixth.waits == "dial"


class Shared(PlayedConnection):
    protocol = "HTTP/2"
    capacity = 10


def test_shared_connection_wakes_all_waiting_requests() -> None:
    """The third request opens a second connection, and the fourth shares it without a third."""
    play = PlayedRunner()
    first = play.call(1)
    line = Shared("line 0")
    play.opened.append(line)
    first.go(line)
    assert play.runner.protocol == "HTTP/2"
    second = play.call(2)
    assert second.waits == "run line 0"
    line.capacity = 0
    third, fourth = play.call(3), play.call(4, long_lived=True)
    assert (third.waits, fourth.waits) == ("dial", "event")
    third.go(Shared("line 1"))
    fourth.go()
    assert fourth.waits == "run line 1"
    play.answered(first, line)
    assert play.http.calls[-1] == (1, None)


def test_connection_not_shared_after_all_wakes_waiting_requests() -> None:
    play = PlayedRunner()
    play.runner.pool.shared = True
    first = play.call(1, long_lived=True)
    second = play.call(2)
    third = play.call(3, long_lived=True)
    assert [task.waits for task in play.tasks] == ["dial", "event", "event"]
    events = [event for waiting in play.runner._waiting for event in waiting]
    play.connected_line(first)
    assert [event.is_set for event in events] == [True, True]  # type: ignore[attr-defined]
    second.go()
    third.go()
    assert (second.waits, third.waits) == ("dial", "dial")


def test_shared_connection_failing_lets_waiting_requests_dial() -> None:
    play = PlayedRunner()
    play.runner.pool.shared = True
    first, second, third = play.call(1), play.call(2), play.call(3, long_lived=True)
    assert [task.waits for task in play.tasks] == ["dial", "event", "event"]
    first.go(error=ConnectFailed("no"))
    second.go()
    third.go()
    assert (second.waits, third.waits) == ("dial", "dial")


# -- Timeouts --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("machine", "pool", "first"),
    [(None, False, None), (5.0, False, 5.0), (None, True, 8.0), (5.0, True, 5.0)],
)
def test_next_deadline_is_earlier_of_pool_and_client(
    machine: float | None, pool: bool, first: float | None
) -> None:
    play = PlayedRunner()
    if pool:
        play.idle_line()
    play.http.deadline = machine
    assert play.runner.next_deadline() == first


def test_idle_connection_expired_is_discarded() -> None:
    play = PlayedRunner()
    line = play.idle_line()
    play.runner.handle_timeout(7.9)
    assert play.discarded == []
    play.runner.handle_timeout(8.0)
    assert play.discarded == [line]
    assert play.http.calls == [("time", 7.9), ("time", 8.0)]


# -- Authorization ---------------------------------------------------------------------------------


class FakeAuth:
    async def ensure_token(self) -> None:
        await Wait("ready")

    async def handle_challenge(self, attempt: Any) -> None:
        await Wait(f"challenged {attempt}")


DENIED: list[Action] = [Head(401, []), Body(b"no"), End()]


def test_request_without_auth_attempt_gets_no_token() -> None:
    assert PlayedRunner(auth=FakeAuth()).call(1).waits == "dial"


@pytest.mark.parametrize("at_once", [True, False])
def test_request_unauthorized_is_retried_after_challenge(at_once: bool) -> None:
    """The caller sees only the final 200, whether the connection survived the 401 or not."""
    play = PlayedRunner(auth=FakeAuth())
    play.http.refuses = 1
    task = play.call(1, attempt="mine")
    assert task.waits == "ready"
    task.go()
    line = play.connected_line(task)
    if at_once:
        play.answered(task, line, DENIED)
    else:
        with pytest.raises(Exception, match=r"^$") as refused:  # a private signal to its driver
            line.take(DENIED[:1])
        task.go(error=refused.value)
        assert task.waits == "close line 0"
        task.go()
    assert task.waits == "challenged mine"
    assert play.http.calls == [("hold", None)]
    play.now = 3.0
    task.go()
    assert task.waits == "ready"
    task.go()
    if at_once:
        assert task.waits == "run line 0"
        play.answered(task, line)
    else:
        play.answered(task, play.connected_line(task))
    assert play.http.calls == [("hold", None), ("hold", 3.0), (1, 200), (1, b"{}"), (1, None)]


def test_request_denied_ends_with_auth_error() -> None:
    play = PlayedRunner(auth=FakeAuth())
    task = play.call(1, attempt="mine")
    no = AuthRequired("log in")
    task.go(error=no)
    assert play.http.calls == [("denied", 1, no)]


def test_request_during_shutdown_starts_no_login() -> None:
    play = PlayedRunner(auth=FakeAuth())

    def start_job(job: HttpRequestJob) -> None:
        job.shutting_down = True
        PlayedRunner.start_job(play, job)

    play.start_job = start_job  # type: ignore[method-assign]
    assert play.call(1, attempt="mine").waits == "dial"


# -- Events and the order of things ----------------------------------------------------------------


def test_event_that_arrives_in_an_event_handler_is_processed_after_it() -> None:
    """A handler that pumps must not see the next event in the middle of its own."""
    play = PlayedRunner()

    def take(event: str) -> None:
        play.seen.append(f"{event} begins")
        play.pump()
        play.seen.append(f"{event} ends")

    play.take = take
    play.http.events = ["first", "second"]
    play.pump()
    assert play.seen == ["first begins", "first ends", "second begins", "second ends"]


def test_event_handler_that_raises_leaves_later_events_to_the_next_run() -> None:
    play = PlayedRunner()

    def take(event: str) -> None:
        play.seen.append(event)
        if event == "bad":
            raise ZeroDivisionError

    play.take = take
    play.http.events = ["bad", "good"]
    with pytest.raises(ZeroDivisionError):
        play.pump()
    play.pump()
    assert play.seen == ["bad", "good"]


def test_event_that_starting_a_request_causes_is_processed_at_once() -> None:
    """Such as the failure of a request that a closed driver starts no task for."""
    play = PlayedRunner()
    play.start_job = lambda job: play.http.events.append("started")  # type: ignore[method-assign]
    play.http.make.append(HttpCall(1, HEAD))
    play.pump()
    assert play.seen == ["started"]


def test_timeout_without_an_idle_connection_discards_nothing() -> None:
    play = PlayedRunner()
    discards: list[Any] = []
    driver: Any = play
    driver.discard = discards.append
    play.runner.handle_timeout(8.0)
    assert discards == []


# -- Attempts --------------------------------------------------------------------------------------


@pytest.mark.parametrize("idempotent", [True, False])
def test_request_that_was_not_processed_is_made_three_times(idempotent: bool) -> None:
    """The server says that nothing was done, so that it doesn't matter what the request does."""
    play = PlayedRunner()
    task = play.call(1, idempotent=idempotent)
    for attempt in range(1, 4):
        play.connected_line(task)
        task.go(error=NotProcessed(f"busy {attempt}"))
        assert task.waits == f"close line {attempt - 1}"
        task.go()
    assert task.waits is None
    assert len(play.opened) == 3
    [(key, error)] = play.http.calls
    assert (key, error.partition(";")[0]) == (1, "busy 3")


def test_request_whose_response_has_begun_is_not_made_again() -> None:
    play = PlayedRunner()
    line = play.idle_line()
    task = play.call(1)
    line.take(OK[:1])
    task.go(error=NotProcessed("busy"))
    task.go()
    assert (task.waits, play.http.calls[-1]) == (None, (1, "busy"))


def test_lost_connection_of_a_server_that_has_responded_is_not_doubted() -> None:
    """Its first connection has shown that it is an HTTP server."""
    play = PlayedRunner()
    before = play.runner.has_responded
    play.idle_line()
    assert (before, play.runner.has_responded) == (False, True)
    busy = play.call(1)
    task = play.call(2)
    play.connected_line(task)
    task.go(error=ConnectionLost("it broke"))
    task.go()
    assert play.http.calls == [(2, "it broke")]
    busy.stop()


@pytest.mark.parametrize(("attempt", "target"), [("mine", b"/signed"), (None, b"/mcp")])
def test_request_with_authorization_is_signed(attempt: Any, target: bytes) -> None:
    play = PlayedRunner()
    play.http.sign = lambda call: RequestHead(b"POST", b"/signed", [])  # type: ignore[method-assign]
    line = play.connected_line(play.call(1, attempt=attempt))
    assert [head.target for head, _ in line.sent] == [target]


def test_request_without_a_body_is_not_reported_as_sent() -> None:
    sent: list[bytes] = []
    play = PlayedRunner(on_sent=sent.append)
    for key, body in ((1, b""), (2, b"{}")):
        play.http.make.append(HttpCall(key, HEAD, body))
    play.pump()
    assert sent == [b"{}"]


# -- Recording -------------------------------------------------------------------------------------


class KeptExchanges:
    """A recorder of requests and responses, and of how each ended."""

    def __init__(self) -> None:
        self.kept: list[Any] = []

    def begin(self, head: RequestHead, body: bytes, version: str) -> KeptExchanges:
        self.kept.append((head, body, version))
        return self

    def response(self, actions: list[Action]) -> None:
        self.kept.append(actions)

    def ended(self, by: str, how: str) -> None:
        self.kept.append((by, how))


BEGUN = (RequestHead(b"POST", b"/mcp", [(b"content-length", b"2")]), b"{}", "1.1")


def test_recorded_request_has_what_is_sent_and_received() -> None:
    recorder = KeptExchanges()
    play = PlayedRunner(recorder=recorder)
    task = play.call(1)
    assert recorder.kept == []
    play.answered(task, play.connected_line(task))
    assert recorder.kept == [BEGUN, OK, ("client", "closed")]
    recorder.kept.clear()
    play.http.make.append(HttpCall(2, HEAD))
    play.pump()
    assert recorder.kept == [(HEAD, b"", "1.1")]  # no length without a body


def test_recorded_request_that_is_lost_is_reset_by_the_server() -> None:
    """Each attempt is recorded by itself, and one that opens no connection isn't."""
    recorder = KeptExchanges()
    play = PlayedRunner(recorder=recorder)
    task = play.call(1)
    play.connected_line(task)
    task.go(error=NotProcessed("busy"))
    task.go()
    assert task.waits == "dial"
    task.go(error=ConnectFailed("no"))
    assert recorder.kept == [BEGUN, ("server", "reset"), ("client", "closed")]


# -- Who is woken ----------------------------------------------------------------------------------


def events_of(play: PlayedRunner) -> list[list[Any]]:
    return [list(waiting) for waiting in play.runner._waiting]


def are_set(events: list[list[Any]]) -> list[list[bool]]:
    return [[event.is_set for event in each] for each in events]


def test_connection_that_is_not_shared_wakes_requests_of_its_kind_only(
    two: PlayedRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A short request's connection is no place for a stream, nor does a new one help others."""
    monkeypatch.setattr(pool, "_MAX_LONG", 1)
    two.call(3)
    stream = two.call(4, long_lived=True)
    waiting = two.call(5, long_lived=True)
    assert (stream.waits, waiting.waits) == ("dial", "event")
    events = events_of(two)
    two.connected_line(stream)
    assert are_set(events) == [[False], [False]]
    two.answered(two.tasks[0], two.opened[0])
    assert are_set(events) == [[True], [False]]
    two.answered(stream, two.opened[2])
    assert are_set(events) == [[True], [True]]


def test_shared_connection_that_has_room_again_wakes_one_of_each_kind() -> None:
    """A short request and a stream may use the same connection, and one place is free."""
    play = PlayedRunner()
    first = play.call(1)
    line = Shared("line 0")
    play.opened.append(line)
    first.go(line)
    line.capacity = 0
    opening = play.call(2)
    assert opening.waits == "dial"
    for key in (3, 4):
        play.call(key)
        play.call(key + 10, long_lived=True)
    events = events_of(play)
    assert are_set(events) == [[False, False], [False, False]]
    line.capacity = 10
    play.answered(first, line)
    assert are_set(events) == [[True, False], [True, False]]


def test_stream_that_waits_alone_is_woken() -> None:
    play = PlayedRunner()
    first = play.call(1)
    line = Shared("line 0")
    play.opened.append(line)
    first.go(line)
    line.capacity = 0
    play.call(2)
    play.call(3, long_lived=True)
    events = events_of(play)
    assert are_set(events) == [[], [False]]
    play.answered(first, line)
    assert are_set(events) == [[], [True]]


def test_connection_that_cannot_be_opened_wakes_all_waiting_requests() -> None:
    play = PlayedRunner()
    play.runner.pool.shared = True
    first = play.call(1)
    for key in (2, 3):
        play.call(key)
        play.call(key + 10, long_lived=True)
    events = events_of(play)
    first.go(error=ConnectFailed("no"))
    assert are_set(events) == [[True, True], [True, True]]


def test_idle_connection_that_the_server_has_closed_frees_its_place(two: PlayedRunner) -> None:
    """The request that finds this out opens another one; the next in the queue may try, too."""
    third, _ = two.call(3), two.call(4)
    events = events_of(two)
    two.answered(two.tasks[0], two.opened[0])
    two.opened[0].ended = True
    assert are_set(events) == [[True, False], []]
    third.go()
    assert third.waits == "close line 0"
    assert are_set(events) == [[True, True], []]


def test_shared_connection_that_is_closed_is_left_to_its_other_requests() -> None:
    """The last one closes it. A request that begins now opens another one."""

    class Ending(Shared):
        def server_closed(self) -> bool:
            if self.ended:
                self.capacity = 0
            return self.ended

    play = PlayedRunner()
    first = play.call(1)
    line = Ending("line 0")
    first.go(line)
    line.ended = True
    second = play.call(2)
    assert (second.waits, line.closed) == ("dial", False)
    play.answered(first, line)
    assert (first.waits, line.closed) == ("close line 0", True)


# -- The end of a request --------------------------------------------------------------------------


def test_response_in_one_piece_is_reported_when_its_connection_is_free() -> None:
    """It may lead to the next request, which then finds the connection."""
    play = PlayedRunner()
    task = play.call(1)
    line = play.connected_line(task)
    play.http.paused.add(1)
    play.http.events = ["event"]
    assert line.take(OK) is None
    assert play.seen == []
    task.go(True)
    assert play.seen == ["event"]


@pytest.mark.parametrize("waits", ["ready", "run line 0"])
def test_bug_in_a_request_with_authorization_ends_it_and_is_raised(waits: str) -> None:
    play = PlayedRunner(auth=FakeAuth())
    task = play.call(1, attempt="mine")
    if waits != "ready":
        task.go()
        play.connected_line(task)
    assert task.waits == waits
    task.go(error=ZeroDivisionError())
    if waits != "ready":
        task.go()  # the connection is closed
    assert play.http.calls == [(1, "internal error of the client")]


def test_events_are_processed_before_a_login_is_waited_for() -> None:
    play = PlayedRunner(auth=FakeAuth())
    play.http.refuses = 1
    task = play.call(1, attempt="mine")
    task.go()
    line = play.connected_line(task)
    play.http.events = ["event"]
    play.answered(task, line, DENIED)
    assert (task.waits, play.seen) == ("challenged mine", ["event"])


def test_first_outcome_of_a_request_counts() -> None:
    """A client that fails at the end of a response isn't given another one."""
    play = PlayedRunner()
    job = play.call(1).job
    error = ZeroDivisionError()

    def fail(*_: object, **__: object) -> None:
        raise error

    play.http.response_ended = fail  # type: ignore[method-assign]
    with pytest.raises(ZeroDivisionError):
        job.done(None)
    with pytest.raises(ZeroDivisionError):
        job.failed(error)
    job.dropped()
    assert play.runner.idle
