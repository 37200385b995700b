"""`deliver`, `PagedList` and `PendingCall`, with a clock that the test sets."""

from __future__ import annotations

import json
import re
import tracemalloc
from typing import TYPE_CHECKING, Any, Final

import msgspec
import pytest

from mcp_core import (
    CallTimeout,
    ConnectionClosed,
    ConnectionLost,
    ErrorReceived,
    Event,
    InputRequested,
    LocalProtocolError,
    MessageRejected,
    PeerError,
    ProgressReceived,
    RemoteProtocolError,
    ResultReceived,
    TaskCreated,
)
from mcp_core.client._calls import PagedList
from mcp_core.drivers import CallWait, PendingCall, PendingRequest, deliver
from mcp_core.protocol.messages._pending import IgnoredRequest
from mcp_core.types import ListToolsResult, Task, Tool

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_core.drivers import CallOptions, CallSteps

LIMIT: Final = 48 * 1024 * 1024  # bytes of memory for a listing


class RecordingRequest(PendingRequest):
    """A request that records what it receives."""

    def __init__(self) -> None:
        self.ends: list[tuple[Any, BaseException | None]] = []
        self.progress_seen: list[float] = []

    def end(self, result: Any, error: BaseException | None) -> None:
        self.ends.append((result, error))

    def on_progress(self, event: ProgressReceived) -> None:
        self.progress_seen.append(event.progress)


def deliver_to(event: Event, request: RecordingRequest) -> RecordingRequest:
    deliver(event)
    return request


def test_deliver_result_ends_request() -> None:
    request = RecordingRequest()
    assert deliver_to(ResultReceived(1, "r", request), request).ends == [("r", None)]


def test_deliver_error_ends_request() -> None:
    request, error = RecordingRequest(), PeerError(1, "no")
    assert deliver_to(ErrorReceived(1, error, request), request).ends == [(None, error)]


def test_deliver_progress_keeps_request_open() -> None:
    request = RecordingRequest()
    assert deliver_to(ProgressReceived(1, 0.5, None, None, request), request).progress_seen == [0.5]
    assert request.ends == []


def test_deliver_input_required_fails_plain_request() -> None:
    request = RecordingRequest()
    ((result, error),) = deliver_to(InputRequested(1, {}, None, request), request).ends
    assert result is None
    assert isinstance(error, RemoteProtocolError)


def test_deliver_task_created_fails_request_that_follows_no_task() -> None:
    """Otherwise its caller would wait for ever."""
    request = RecordingRequest()
    task = Task(task_id="t", status="working", created_at="", last_updated_at="")
    ((result, error),) = deliver_to(TaskCreated(1, task, None, request), request).ends
    assert result is None
    assert isinstance(error, RemoteProtocolError)
    assert "runs the request as a task, which this call cannot follow" in str(error)


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (None, "the client was closed"),
        (ConnectionLost("the server closed the connection"), "the server closed"),
    ],
)
def test_deliver_connection_closed_raises_separate_errors(
    error: ConnectionLost | None, says: str
) -> None:
    one, other = RecordingRequest(), RecordingRequest()
    deliver(ConnectionClosed([one, other], error))
    ((_, first),), ((_, second),) = one.ends, other.ends
    assert isinstance(first, ConnectionLost)
    assert isinstance(second, ConnectionLost)
    assert first is not second
    assert str(first).startswith(says)


def test_deliver_ignores_other_events() -> None:
    pending = deliver_to(MessageRejected(RemoteProtocolError("x")), RecordingRequest())
    assert (pending.ends, pending.progress_seen) == ([], [])


def page(*names: str, cursor: str | None = None) -> ListToolsResult:
    tools = [Tool(name=name, input_schema={"type": "object"}) for name in names]
    return ListToolsResult(tools=tools, next_cursor=cursor)


@pytest.mark.requirement("PAGE-2", "PAGE-3", "PAGE-4", "PAGE-5")
def test_paged_list_continues_until_no_cursor() -> None:
    listing: PagedList[Tool] = PagedList("tools/list", "tools", LIMIT)
    assert repr(listing) == "<PagedList of tools/list, 0 items, not at the end>"
    requests = []
    for answer in (page("a", cursor=" x Y\n"), page(cursor=""), page("b", "c")):
        assert listing.has_more
        requests.append(listing.params)
        listing.add_page(answer)
    assert requests == [None, {"cursor": " x Y\n"}, {"cursor": ""}]
    assert not listing.has_more
    assert [tool.name for tool in listing.items] == ["a", "b", "c"]
    assert repr(listing) == "<PagedList of tools/list, 3 items>"


def test_paged_list_repeated_cursor_raises() -> None:
    listing: PagedList[Tool] = PagedList("tools/list", "tools", LIMIT)
    listing.add_page(page("a", cursor="1"))
    listing.add_page(page("b", cursor="2"))
    with pytest.raises(RemoteProtocolError) as caught:
        listing.add_page(page("c", cursor="1"))
    assert str(caught.value) == (
        "the pages of tools/list do not come to an end: the server has repeated a cursor after 3 "
        "items in 2 pages"
    )


def test_paged_list_over_page_limit_raises() -> None:
    listing: PagedList[Tool] = PagedList("tools/list", "tools", LIMIT)
    for number in range(10_000):
        listing.add_page(page(cursor=str(number)))
    with pytest.raises(RemoteProtocolError, match="0 items in 10001 pages, and offers more"):
        listing.add_page(page(cursor="one more"))


def test_paged_list_over_memory_limit_raises() -> None:
    listing: PagedList[Tool] = PagedList("tools/list", "tools", 3_000)
    for number in range(3):
        listing.add_page(page("x" * 500, cursor=str(number)))
    with pytest.raises(RemoteProtocolError) as caught:
        listing.add_page(page("x" * 500, cursor="3"))
    assert re.fullmatch(
        "tools/list is too long: the server has sent 4 items in 4 pages, and offers more. They "
        "take about 3[0-9]{3} bytes of memory, and the limit is 3000; connect with a higher "
        "max_listing",
        str(caught.value),
    )


def test_paged_list_last_page_is_not_limited() -> None:
    """A server that sends a single large page is limited by the size of a message only."""
    listing: PagedList[Tool] = PagedList("tools/list", "tools", 0)
    listing.add_page(page("x" * 500))
    assert not listing.has_more


def test_paged_list_counts_long_cursors() -> None:
    """They are kept, too, to notice a repeated one."""
    listing: PagedList[Tool] = PagedList("tools/list", "tools", 3_000)
    listing.add_page(page(cursor="a" * 1_800))
    with pytest.raises(RemoteProtocolError, match="max_listing"):
        listing.add_page(page(cursor="b" * 1_800))


@pytest.mark.perf
@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "a": [{}] * 300},
        {"type": "object", "a": [[]] * 300},
        {"type": "object", "a": [1_000] * 200},
        {"type": "object", "properties": {f"p{n}": {"type": "string"} for n in range(20)}},
        {"type": "object", "description": "x" * 1_000},
        {},
    ],
)
def test_paged_list_estimate_is_near_to_the_memory(schema: Any) -> None:
    """Empty objects take 26 times the memory of their text."""
    text = json.dumps({"tools": [{"name": "t", "inputSchema": schema}] * 200, "nextCursor": "1"})
    tracemalloc.start()
    found = msgspec.json.decode(text, type=ListToolsResult)
    memory = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    listing: PagedList[Tool] = PagedList("tools/list", "tools", LIMIT)
    listing.add_page(found)
    assert 0.4 < memory / listing._size < 1.8


# -- One call ------------------------------------------------------------------------------------


class RecordingCall(PendingCall[Any]):
    """A call that records wakeups, changed deadlines and sent requests. `now` is its clock."""

    def __init__(self, steps: CallSteps[Any], options: CallOptions | None = None) -> None:
        self.now = 1000.0
        self.log: list[str] = []
        self.sent: list[tuple[str, Any]] = []
        self.refuses: BaseException | None = None
        super().__init__(self._put, lambda: self.now, steps, options or {})

    def _put(self, method: str, params: Any, waiter: PendingCall[Any], options: CallOptions) -> int:
        assert waiter is self
        if self.refuses is not None:
            raise self.refuses
        self.sent.append((method, params))
        return len(self.sent)

    def wake(self) -> None:
        self.log.append("wake")

    def deadline_changed(self) -> None:
        self.log.append("rearm")

    def is_done(self) -> bool:
        return self.done


def one() -> CallSteps[str]:
    answer = yield "one", {"a": 1}
    return f"the answer is {answer}"


def two() -> CallSteps[list[Any]]:
    first = yield "one", None
    try:
        second = yield "two", {"deliver_to": first}
    except PeerError as exc:
        second = exc.code
    return [first, second]


def none() -> CallSteps[str]:
    yield from ()
    return "known"


def started(steps: CallSteps[Any], options: CallOptions | None = None) -> RecordingCall:
    call = RecordingCall(steps, options)
    call.begin()
    return call


def progress(step: float = 0.5) -> ProgressReceived:
    return ProgressReceived(1, step, 1.0, "half", None)


def test_call_one_request_wakes_once() -> None:
    call = RecordingCall(one())
    assert (call.id, call.is_done(), call.deadline) == (None, False, None)
    call.begin()
    assert (call.id, call.is_done(), call.log) == (1, False, [])
    call.end(42, None)
    assert call.is_done()
    call.end(None, PeerError(1, "late"))
    call.on_progress(progress())
    assert call.sent == [("one", {"a": 1})]
    assert call.log == ["wake"]
    assert call.result() == "the answer is 42"


def test_call_two_requests_wakes_at_end_only() -> None:
    call = started(two())
    call.end("x", None)
    assert (call.id, call.log) == (2, ["rearm"])
    call.end("y", None)
    assert call.sent == [("one", None), ("two", {"deliver_to": "x"})]
    assert call.log == ["rearm", "wake"]
    assert call.result() == ["x", "y"]


def test_call_error_is_handled_or_raised() -> None:
    call = started(two())
    call.end("x", None)
    call.end(None, PeerError(7, "no"))
    assert call.result() == ["x", 7]
    call = started(two())
    call.end(None, PeerError(7, "no"))
    assert call.log == ["wake"]
    with pytest.raises(PeerError, match="no"):
        call.result()


def test_call_without_request_is_done_at_once() -> None:
    call = started(none())
    assert (call.is_done(), call.sent, call.log, call.id) == (True, [], ["wake"], None)
    assert call.result() == "known"


@pytest.mark.parametrize("at", ["the first request", "the second"])
def test_call_send_failure_ends_it(at: str) -> None:
    call = RecordingCall(two())
    refused = LocalProtocolError("not now")
    if at == "the second":
        call.begin()
        call.refuses = refused
        call.end("x", None)
    else:
        call.refuses = refused
        call.begin()
    assert call.is_done()
    assert "rearm" not in call.log
    with pytest.raises(LocalProtocolError, match="not now"):
        call.result()


def test_call_own_exception_is_raised() -> None:
    def fails() -> CallSteps[None]:
        yield "one", None
        raise ZeroDivisionError

    call = started(fails())
    call.end("x", None)
    with pytest.raises(ZeroDivisionError):
        call.result()


class PlainCallbacks:
    """`ProgressCallbacks` of a plain function: it is called at once."""

    busy = False

    def __init__(self, callback: Callable[..., object]) -> None:
        self._callback = callback

    def call(self, progress: float, total: float | None, message: str | None, /) -> None:
        self._callback(progress, total, message)

    def abandon(self) -> None:
        """Do nothing: no callback waits."""


def test_call_progress_reaches_callback() -> None:
    received: list[Any] = []
    call = started(one())
    call.progress_callbacks = PlainCallbacks(lambda *args: received.append(args))
    call.on_progress(progress())
    assert call.log == ["rearm"]
    assert received == [(0.5, 1.0, "half")]
    silent = started(one())
    silent.on_progress(progress())
    assert silent.log == ["rearm"]


@pytest.mark.parametrize("raised", [SystemExit(), PeerError(-32602, "mine")])
def test_call_failing_callback_ends_it(raised: BaseException) -> None:
    def fail(*_: object) -> None:
        raise raised

    call = started(two())
    call.progress_callbacks = PlainCallbacks(fail)
    call.end("x", None)
    call.on_progress(progress())
    assert call.log == ["rearm", "rearm", "wake"]
    with pytest.raises(type(raised)) as caught:
        call.result()
    assert caught.value is raised  # the call's steps cannot catch it


class RecordingWait(CallWait):
    """A wait that records the call and how often it was stopped."""

    def __init__(self, *, ours: bool = False, name: str = "") -> None:
        self.pauses_timeout = ours
        self.name = name
        self.stopped = 0
        self.waiter: PendingCall[Any]

    def begin(self, call: PendingCall[Any]) -> None:
        self.waiter = call

    def stop(self) -> None:
        self.stopped += 1


def through(turn: CallWait) -> CallSteps[Any]:
    first = yield "one", None
    try:
        word = yield turn
    except PeerError as exc:
        word = exc.code
    return first, word, (yield "two", None)


def test_call_wait_is_ended_and_stopped() -> None:
    turn = RecordingWait()
    call = started(through(turn))
    call.end("x", None)
    assert (turn.waiter, turn.stopped, call.sent) == (call, 0, [("one", None)])
    call.end("word", None)
    assert (turn.stopped, call.sent) == (1, [("one", None), ("two", None)])
    call.end("y", None)
    assert (turn.stopped, call.log) == (1, ["rearm", "rearm", "wake"])
    assert call.result() == ("x", "word", "y")


def test_call_wait_failure_is_handled_or_raised() -> None:
    turn = RecordingWait()
    call = started(through(turn))
    call.end("x", None)
    call.end(None, PeerError(7, "no"))
    call.end("y", None)
    assert call.result() == ("x", 7, "y")
    call = started(through(turn))
    call.end("x", None)
    call.end(None, ConnectionLost("gone"))
    assert turn.stopped == 2
    with pytest.raises(ConnectionLost):
        call.result()


def test_end_wait_twice_stops_once() -> None:
    turn = RecordingWait(ours=True)
    call = started(through(turn))
    call.end_wait()
    call.end("x", None)
    assert call.pause_count == 1
    call.end_wait()
    call.end_wait()
    assert (turn.stopped, call.pause_count) == (1, 0)


def test_call_beginning_with_wait_names_it_in_timeout() -> None:
    def steps() -> CallSteps[Any]:
        return (yield RecordingWait(name="a word"))

    call = started(steps(), {"timeout": 5})
    assert (call.id, call.sent, call.deadline) == (None, [], call.now + 5)
    with pytest.raises(CallTimeout, match="no answer to a word within 5 s"):
        call.result()


def test_call_input_required_is_sent_to_steps() -> None:
    call = started(one())
    event = InputRequested(1, {}, None, call)
    deliver(event)
    assert call.result() == f"the answer is {event}"


# -- Timeouts ------------------------------------------------------------------------------------

TimedEvent = tuple[float, str]  # seconds since the start, and the event
SILENT, SILENT_AFTER = (
    "no answer to {} within {} s (timeout: pass a longer one)",
    "no answer to {} within {} s after its last sign of progress (timeout: pass a longer one)",
)
IN_ALL = "{} was not over after {} s in all (max_timeout: pass a longer one)"

# options, events, deadline, text of the timeout
DEADLINES: list[tuple[CallOptions, list[TimedEvent], float | None, str]] = [
    ({}, [], 60, SILENT.format("one", 60)),
    ({}, [(50, "progressed")], 110, SILENT_AFTER.format("one", 60)),
    (
        {},
        [(50, "progressed"), (100, "progressed"), (230, "progressed")],
        290,
        SILENT_AFTER.format("one", 60),
    ),
    ({}, [(55.0 * n, "progressed") for n in range(6)], 300, IN_ALL.format("one", 300)),
    ({}, [(50, "answered")], 110, SILENT.format("two", 60)),
    ({}, [(50, "progressed"), (55, "answered")], 115, SILENT.format("two", 60)),
    (
        {},
        [(55, "progressed"), (59, "answered"), (250, "progressed")],
        300,
        IN_ALL.format("two", 300),
    ),
    ({"timeout": 2.5}, [], 2.5, SILENT.format("one", 2.5)),
    ({"timeout": 0}, [], 0, SILENT.format("one", 0)),
    ({"timeout": 400}, [], 400, SILENT.format("one", 400)),
    ({"timeout": 400}, [(100, "progressed")], 400, IN_ALL.format("one", 400)),
    (
        {"timeout": 400, "max_timeout": None},
        [(100, "progressed")],
        500,
        SILENT_AFTER.format("one", 400),
    ),
    ({"timeout": 10, "max_timeout": 5}, [], 5, IN_ALL.format("one", 5)),
    ({"timeout": 10, "max_timeout": 12}, [(1, "progressed")], 11, SILENT_AFTER.format("one", 10)),
    ({"timeout": 10, "max_timeout": 12}, [(3, "progressed")], 12, IN_ALL.format("one", 12)),
    ({"timeout": None}, [], None, ""),
    ({"timeout": None}, [(9999, "progressed")], None, ""),
    ({"timeout": None, "max_timeout": 5}, [(4, "progressed")], 5, IN_ALL.format("one", 5)),
    ({"timeout": float("inf")}, [], None, ""),
    # While our side answers an input request, `timeout` is paused.
    ({}, [(5, "asked")], 300, IN_ALL.format("one", 300)),
    ({}, [(5, "asked"), (200, "call")], 260, SILENT.format("one", 60)),
    ({}, [(5, "asked"), (6, "asked"), (90, "call")], 300, IN_ALL.format("one", 300)),
    ({}, [(5, "asked"), (6, "asked"), (90, "call"), (95, "call")], 155, SILENT.format("one", 60)),
    ({}, [(5, "asked"), (6, "progressed")], 300, IN_ALL.format("one", 300)),
    ({"max_timeout": None}, [(5, "asked")], None, ""),
]


@pytest.mark.parametrize(
    ("ours", "deadline", "words"),
    [(True, 300, IN_ALL.format("one", 300)), (False, 70, SILENT.format("one", 60))],
)
def test_call_wait_pauses_timeout_if_ours(ours: bool, deadline: float, words: str) -> None:
    call = started(through(RecordingWait(ours=ours)))
    start = call.now
    call.now += 10
    call.end("x", None)
    assert call.deadline == start + deadline
    with pytest.raises(CallTimeout) as caught:
        call.result()
    assert str(caught.value) == words
    call.now += 100
    call.end("word", None)
    assert call.deadline == start + 170


@pytest.mark.parametrize(
    ("options", "cures"),
    [
        ({}, "(timeout: pass a longer one, or let the tool report progress, which restarts it)"),
        ({"max_timeout": 9}, "(max_timeout: pass a longer one, or let the tool run as a task)"),
    ],
)
def test_timeout_of_a_tool_names_two_cures(options: CallOptions, cures: str) -> None:
    def call_tool() -> CallSteps[Any]:
        return (yield "tools/call", {"name": "slow"})

    call = started(call_tool(), options)
    with pytest.raises(CallTimeout, match=re.escape(cures)):
        call.result()


@pytest.mark.requirement("LIFE-22", "LIFE-23")
@pytest.mark.parametrize(("options", "events", "deadline", "words"), DEADLINES)
def test_call_deadline_follows_events(
    options: CallOptions, events: list[TimedEvent], deadline: float | None, words: str
) -> None:
    """Progress, and input that the server asks for, move the deadline. A late error says why."""
    call = started(two(), options)
    start = call.now
    for seconds, event in events:
        call.now = start + seconds
        if event == "progressed":
            call.on_progress(progress())
        elif event == "answered":
            call.end("x", None)
        else:
            call.pause_timeout(1 if event == "asked" else -1)
    assert call.deadline == (None if deadline is None else start + deadline)
    assert call.log == ["rearm"] * len(events)
    if words:
        with pytest.raises(CallTimeout) as caught:
            call.result()
        assert str(caught.value) == words


def test_call_done_sets_no_deadline() -> None:
    call = started(one())
    call.end("x", None)
    call.pause_timeout(1)
    call.pause_timeout(-1)
    assert call.log == ["wake"]


@pytest.mark.parametrize("option", ["timeout", "max_timeout"])
@pytest.mark.parametrize("seconds", [-1, float("nan")])
def test_call_invalid_timeout_raises(option: Any, seconds: float) -> None:
    options: Any = {option: seconds}
    with pytest.raises(ValueError, match=f"{option} is a number of seconds"):
        RecordingCall(one(), options)


@pytest.mark.parametrize(
    ("error", "is_reported"),
    [
        (PeerError(-32603, "no"), True),
        (RemoteProtocolError("no"), True),
        (ConnectionLost("no"), False),
        (None, False),
    ],
)
def test_request_that_no_task_waits_for_reports_what_its_peer_did(
    error: BaseException | None, is_reported: bool
) -> None:
    reported: list[BaseException] = []
    IgnoredRequest(reported.append).end({}, error)
    assert reported == ([error] if is_reported else [])
    IgnoredRequest().end({}, error)
