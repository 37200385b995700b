"""How calls are made, by a driver in which nothing runs by itself: each thing that is awaited is shown to the test, which says what
comes of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from mcp_core import NEED_DATA, AuthRequired, ConnectFailed, ConnectionLost
from mcp_core.http import Body, End, Head, HttpCall, RequestHead
from mcp_core.http import _pool as pool
from mcp_core.runtime import HttpRequestRunner
from tests.core.runtime.stepping import Cancelled, FakeEvent, Wait, steps_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mcp_core.http import Action
    from mcp_core.runtime import HttpRequestJob

HEAD = RequestHead(b"POST", b"/mcp", [])
OK: list[Action] = [Head(200, [(b"keep-alive", b"timeout=9")]), Body(b"{}"), End()]


class Line:
    """A connection, of which the test plays what comes on it."""

    protocol = "HTTP/1.1"
    room = 1

    def __init__(self, name: str) -> None:
        self.name = name
        self.heard = self.ended = self.closed = False
        self.sent: list[tuple[RequestHead, bytes]] = []
        self.take: Callable[[list[Action]], None]

    async def run(self, head: RequestHead, body: bytes, take: Callable[[list[Action]], None]) -> bool:
        self.sent.append((head, body))
        self.take = take
        return bool(await Wait(f"run {self.name}"))

    def closed_by_server(self) -> bool:
        return self.ended

    async def aclose(self) -> None:
        self.closed = True
        await Wait(f"close {self.name}")


class Task:
    """An errand under way. `waits` is for what, None once it is over."""

    def __init__(self, driver: Play, job: HttpRequestJob) -> None:
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
    """The machine: what the test wants done, and what was told."""

    def __init__(self) -> None:
        self.make: list[HttpCall] = []
        self.drop: list[int] = []
        self.events: list[Any] = []
        self.told: list[Any] = []
        self.deadline: float | None = None
        self.refuses = 0

    def calls_to_make(self, now: float) -> list[HttpCall]:
        calls, self.make = self.make, []
        return calls

    def calls_to_drop(self) -> list[int]:
        drops, self.drop = self.drop, []
        return drops

    def next_event(self) -> Any:
        return self.events.pop(0) if self.events else NEED_DATA

    def next_deadline(self) -> float | None:
        return self.deadline

    def handle_timeout(self, now: float) -> None:
        self.told.append(("time", now))

    def sign(self, call: HttpCall) -> RequestHead:
        return call.head

    def refused(self, call: HttpCall, head: Head) -> bool:
        self.refuses -= 1
        return self.refuses >= 0

    def hold(self, key: int, now: float | None) -> None:
        self.told.append(("hold", now))

    def response_started(self, key: int, head: Head, now: float) -> None:
        self.told.append((key, head.status))

    def response_data(self, key: int, data: bytes, now: float) -> None:
        self.told.append((key, data))

    def response_ended(self, key: int, now: float, *, error: str | None = None) -> None:
        self.told.append((key, error))

    def denied(self, key: int, error: Exception, now: float) -> None:
        self.told.append((key, error))


class Play:
    """A driver. `opened` are the connections that were wanted so far."""

    played: ClassVar[list[Play]] = []

    def __init__(self, **options: Any) -> None:
        self.played.append(self)
        self.now = 0.0
        self.http = Http()
        self.tasks: list[Task] = []
        self.opened: list[Line] = []
        self.discarded: list[Line] = []
        self.seen: list[Any] = []
        self.take: Callable[[Any], None] = self.seen.append
        self.carriage: HttpRequestRunner[Line] = HttpRequestRunner(self.http, self, self._take, **options)  # type: ignore[arg-type]

    new_event = FakeEvent

    def _take(self, event: Any) -> None:
        self.take(event)

    async def dial(self) -> Line:
        line: Line = await Wait("dial")
        return line

    def discard(self, lines: list[Line]) -> None:
        self.discarded += lines

    def start_job(self, job: HttpRequestJob) -> None:
        task = Task(self, job)
        self.tasks.append(task)
        task.go()

    def clock(self) -> float:
        return self.now

    def pump(self) -> None:
        self.carriage.run()

    # -- What a test says ----------------------------------------------------------------------------------------------------

    def call(self, key: int, **more: Any) -> Task:
        self.http.make.append(HttpCall(key, HEAD, b"{}", **more))
        self.pump()
        return self.tasks[-1]

    def connect(self, task: Task) -> Line:
        line = Line(f"line {len(self.opened)}")
        self.opened.append(line)
        assert task.waits == "dial"
        task.go(line)
        assert task.waits == f"run {line.name}"
        return line

    def answered(self, task: Task, line: Line, actions: list[Action] = OK, *, whole: bool = True) -> None:
        line.heard = True
        line.take(actions)
        task.go(whole)

    def idle_line(self) -> Line:
        """A connection that has carried a call."""
        task = self.call(0)
        line = self.connect(task)
        self.answered(task, line)
        self.http.told.clear()
        return line


@pytest.fixture(autouse=True)
def stopped() -> Iterator[None]:
    """What is still under way at the end of a test is stopped."""
    yield
    for play in Play.played:
        for task in play.tasks:
            while task.waits is not None:
                task.stop()
    Play.played.clear()


def test_a_call_on_a_new_connection_and_one_on_the_same() -> None:
    sent: list[bytes] = []
    play = Play(sent=sent.append, address=lambda head: RequestHead(head.method, b"http://there", []))
    task = play.call(1)
    assert repr(task.job) == "<HttpRequestJob 1, under way>"
    assert repr(play.carriage).endswith(": 1 under way>")
    line = play.connect(task)
    assert play.carriage.protocol == "HTTP/1.1"
    assert line.sent == [(RequestHead(b"POST", b"http://there", []), b"{}")]
    play.answered(task, line)
    assert play.http.told == [(1, 200), (1, b"{}"), (1, None)]
    assert task.waits is None
    assert repr(task.job) == "<HttpRequestJob 1, over>"
    assert play.carriage.idle
    assert play.carriage.next_deadline() == 8.0  # the server said nine seconds
    again = play.call(2)
    assert again.waits == "run line 0"
    assert sent == [b"{}", b"{}"]


def test_what_comes_is_acted_on_before_the_end_but_not_at_it() -> None:
    play = Play()
    line = play.connect(play.call(1))
    play.http.events = ["event"]
    line.take(OK[:2])
    assert play.seen == ["event"]
    play.http.events = ["last"]
    line.take(OK[2:])
    assert play.seen == ["event"]
    play.tasks[0].go(True)
    assert play.seen == ["event", "last"]


def test_an_event_may_lead_to_a_call() -> None:
    play = Play()

    def take(event: Any) -> None:
        if event == "calls at once":
            play.call(1)
        else:
            play.http.make.append(HttpCall(2, HEAD))

    play.take = take
    play.http.events = ["calls at once", "has something to say"]
    play.pump()
    assert [task.job.call.key for task in play.tasks] == [1, 2]


def test_no_connection_comes_about() -> None:
    play = Play()
    play.call(1).go(error=ConnectFailed("nobody is there"))
    assert play.http.told == [(1, "nobody is there")]


def test_a_request_that_cannot_be_said() -> None:
    play = Play()
    task = play.call(1)
    line = play.connect(task)
    task.go(error=ValueError("no header"))
    assert task.waits == "close line 0"
    task.go()
    assert play.http.told == [(1, "no header")]
    assert line.closed


@pytest.mark.parametrize(
    ("heard", "said"),
    [
        (True, "it broke"),
        (False, "it broke; is it an HTTP server, with TLS or without as the URL says?"),
    ],
)
def test_a_connection_that_breaks(heard: bool, said: str) -> None:
    play = Play()
    task = play.call(1)
    play.connect(task).heard = heard
    task.go(error=ConnectionLost("it broke"))
    assert task.waits == "close line 0"
    task.go()
    assert play.http.told == [(1, said)]


def test_a_connection_that_was_idle_and_breaks_is_not_the_callers_concern() -> None:
    play = Play()
    play.idle_line()
    task = play.call(1)
    assert task.waits == "run line 0"
    task.go(error=ConnectionLost("it broke"))
    task.go()
    line = play.connect(task)
    play.answered(task, line)
    assert play.http.told[-1] == (1, None)
    act = play.call(2, idempotent=False)
    assert act.waits == "run line 1"
    act.go(error=ConnectionLost("it broke"))
    act.go()
    assert play.http.told[-1] == (2, "it broke")


def test_a_connection_that_is_known_to_be_dead_is_not_taken() -> None:
    play = Play()
    play.idle_line().ended = True
    task = play.call(1, idempotent=False)
    assert task.waits == "close line 0"
    task.go()
    play.connect(task)


def test_one_that_said_more_than_it_should_have_is_closed() -> None:
    play = Play()
    task = play.call(1)
    play.answered(task, play.connect(task), whole=False)
    assert task.waits == "close line 0"
    task.go()
    assert play.http.told[-1] == (1, None)


def test_a_call_that_is_dropped() -> None:
    play = Play()
    task = play.call(1)
    line = play.connect(task)
    play.http.drop = [1, 99]
    play.pump()
    assert task.waits == "close line 0"
    task.go(error=Cancelled())
    assert play.http.told == [(1, "the request was cancelled")]
    assert line.closed
    play.http.drop = [1]
    play.pump()
    assert len(play.http.told) == 1


def test_all_are_stopped_at_the_end() -> None:
    play = Play()
    tasks = [play.call(1), play.call(2)]
    play.carriage.stop()
    assert [task.waits for task in tasks] == [None, None]
    assert play.carriage.idle


def test_a_task_that_never_ran() -> None:
    play = Play()
    play.start_job = lambda job: (job.stop(), job.dropped())  # type: ignore[assignment, func-returns-value]
    play.http.make.append(HttpCall(1, HEAD))
    play.pump()
    assert play.http.told == [(1, "the request was cancelled")]


def test_a_fault_of_ours_is_no_secret() -> None:
    play = Play()
    task = play.call(1)
    play.connect(task)
    task.go(error=ZeroDivisionError())
    task.go()
    assert play.http.told == [(1, "internal error of the client")]


# -- Turns -----------------------------------------------------------------------------------------------------------------------


@pytest.fixture
def two(monkeypatch: pytest.MonkeyPatch) -> Play:
    """A driver that may have two connections for short calls, and has them."""
    monkeypatch.setattr(pool, "_MOST", 2)
    play = Play()
    for key in 1, 2:
        play.connect(play.call(key))
    return play


def test_who_finds_no_place_waits_for_one(two: Play) -> None:
    third, fourth = two.call(3), two.call(4)
    assert third.waits == fourth.waits == "event"
    bells = list(two.carriage._waiting[0])
    two.answered(two.tasks[0], two.opened[0])
    assert [bell.is_set for bell in bells] == [True, False]  # type: ignore[attr-defined]
    third.go()
    assert third.waits == "run line 0"
    long = two.call(5, long=True)
    assert long.waits == "dial"


def test_who_is_stopped_while_he_waits_takes_no_turn(two: Play) -> None:
    third, fourth = two.call(3), two.call(4)
    bells = list(two.carriage._waiting[0])
    third.stop()
    two.answered(two.tasks[0], two.opened[0])
    assert [bell.is_set for bell in bells] == [False, True]  # type: ignore[attr-defined]
    fifth = two.call(5)
    assert fifth.waits == "run line 0"
    sixth = two.call(6)
    fourth.stop()  # it was its turn
    assert two.carriage._waiting[0] == type(two.carriage._waiting[0])()
    sixth.go()
    assert sixth.waits == "event"
    two.call(7)
    two.tasks[1].stop()
    two.tasks[1].go()
    sixth.go()
    assert sixth.waits == "dial"


class Shared(Line):
    protocol = "HTTP/2"
    room = 10


def test_a_connection_for_many_wakes_all_that_wait() -> None:
    play = Play()
    first = play.call(1)
    line = Shared("line 0")
    play.opened.append(line)
    first.go(line)
    assert play.carriage.protocol == "HTTP/2"
    second = play.call(2)
    assert second.waits == "run line 0"
    line.room = 0
    third, fourth = play.call(3), play.call(4, long=True)
    assert (third.waits, fourth.waits) == ("dial", "event")
    third.go(Shared("line 1"))
    fourth.go()
    assert fourth.waits == "run line 1"
    play.answered(first, line)
    assert play.http.told[-1] == (1, None)


def test_whoever_waits_for_a_connection_for_many_hears_that_it_carries_one() -> None:
    play = Play()
    play.carriage.pool.shared = True
    first, second, third = play.call(1, long=True), play.call(2), play.call(3, long=True)
    assert [task.waits for task in play.tasks] == ["dial", "event", "event"]
    bells = [bell for waiting in play.carriage._waiting for bell in waiting]
    play.connect(first)
    assert [bell.is_set for bell in bells] == [True, True]  # type: ignore[attr-defined]
    second.go()
    third.go()
    assert (second.waits, third.waits) == ("dial", "dial")


def test_whoever_waits_for_a_connection_that_fails_opens_his_own() -> None:
    play = Play()
    play.carriage.pool.shared = True
    first, second, third = play.call(1), play.call(2), play.call(3, long=True)
    assert [task.waits for task in play.tasks] == ["dial", "event", "event"]
    first.go(error=ConnectFailed("no"))
    second.go()
    third.go()
    assert (second.waits, third.waits) == ("dial", "dial")


# -- Time ------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("machine", "pool", "first"),
    [(None, False, None), (5.0, False, 5.0), (None, True, 8.0), (5.0, True, 5.0)],
)
def test_the_next_deadline(machine: float | None, pool: bool, first: float | None) -> None:
    play = Play()
    if pool:
        play.idle_line()
    play.http.deadline = machine
    assert play.carriage.next_deadline() == first


def test_what_nobody_uses_is_closed() -> None:
    play = Play()
    line = play.idle_line()
    play.carriage.handle_timeout(7.9)
    assert play.discarded == []
    play.carriage.handle_timeout(8.0)
    assert play.discarded == [line]
    assert play.http.told == [("time", 7.9), ("time", 8.0)]


# -- The right to make a call -------------------------------------------------------------------------------------------------------


class Rights:
    async def ready(self) -> None:
        await Wait("ready")

    async def challenged(self, attempt: Any) -> None:
        await Wait(f"challenged {attempt}")


DENIED: list[Action] = [Head(401, []), Body(b"no"), End()]


def test_a_call_without_a_right_to_show_asks_nobody() -> None:
    assert Play(rights=Rights()).call(1).waits == "dial"


@pytest.mark.parametrize("at_once", [True, False])
def test_a_call_is_made_again_when_there_is_a_right_to_it(at_once: bool) -> None:
    play = Play(rights=Rights())
    play.http.refuses = 1
    task = play.call(1, attempt="mine")
    assert task.waits == "ready"
    task.go()
    line = play.connect(task)
    if at_once:
        play.answered(task, line, DENIED)
    else:
        with pytest.raises(Exception, match=r"^$") as refused:
            line.take(DENIED[:1])
        task.go(error=refused.value)
        assert task.waits == "close line 0"
        task.go()
    assert task.waits == "challenged mine"
    assert play.http.told == [("hold", None)]
    play.now = 3.0
    task.go()
    assert task.waits == "ready"
    task.go()
    if at_once:
        assert task.waits == "run line 0"
        play.answered(task, line)
    else:
        play.answered(task, play.connect(task))
    assert play.http.told == [("hold", None), ("hold", 3.0), (1, 200), (1, b"{}"), (1, None)]


def test_there_is_no_right_to_it() -> None:
    play = Play(rights=Rights())
    task = play.call(1, attempt="mine")
    no = AuthRequired("log in")
    task.go(error=no)
    assert play.http.told == [(1, no)]


def test_last_words_ask_nobody() -> None:
    play = Play(rights=Rights())

    def start_job(job: HttpRequestJob) -> None:
        job.shutting_down = True
        Play.start_job(play, job)

    play.start_job = start_job  # type: ignore[method-assign]
    assert play.call(1, attempt="mine").waits == "dial"
