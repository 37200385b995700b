"""A client's calls without a runtime: deadlines, waits, callbacks, and the pages of lists."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from msgspec import Struct

from mcp_core import (
    CallTimeout,
    ConnectionLost,
    InputRequested,
    ProgressReceived,
    RemoteProtocolError,
    TaskCreated,
)
from mcp_core.client._calls import (
    CallWait,
    PagedList,
    PendingCall,
    UntimedRequest,
    check_mode,
)

if TYPE_CHECKING:
    from collections.abc import Generator

TOOL = "or let the tool report progress, which restarts it)"
NONE: Any = None  # of events that are only passed on


class ClockedCall(PendingCall[Any]):
    """A call at a clock that a test moves. Its requests are numbered from 1."""

    def __init__(self, steps: Generator[Any, Any, Any], **options: Any) -> None:
        self.now = 100.0
        self.sent: list[tuple[str, Any]] = []
        self.woken = 0
        self.changes: list[float | None] = []
        super().__init__(self._send_it, lambda: self.now, steps, options)  # type: ignore[arg-type]

    def _send_it(self, method: str, params: Any, call: Any, options: Any) -> int:
        assert call is self
        self.sent.append((method, params))
        return len(self.sent)

    def wake(self) -> None:
        self.woken += 1

    def deadline_changed(self) -> None:
        self.changes.append(self.deadline)

    def progress(self, now: float) -> None:
        self.now = now
        self.on_progress(ProgressReceived(1, 0.5, 2.0, "half", self))


def asks(*steps: Any) -> Generator[Any, Any, Any]:
    """Take these steps, and return their results."""
    found = []
    for step in steps:
        found.append((yield step))  # noqa: PERF401 - a comprehension can't yield
    return found


def begun(*steps: Any, **options: Any) -> ClockedCall:
    call = ClockedCall(asks(*(steps or (("m", None),))), **options)
    call.begin()
    return call


def timeout_text(call: ClockedCall) -> str:
    with pytest.raises(CallTimeout) as caught:
        call.result()
    return str(caught.value)


# -- Deadlines -------------------------------------------------------------------------------------

AFTER = "no answer to m within {} s after its last sign of progress (timeout: pass a longer one)"
IN_ALL = "m was not over after {} s in all (max_timeout: pass a longer one)"


@pytest.mark.parametrize(
    ("options", "first", "later", "last", "text"),
    [
        # options, deadlines from 100 on, after progress at 150, and after progress at 390
        ({}, 160, 210, 400, IN_ALL.format(300)),
        ({"timeout": 10}, 110, 160, 400, AFTER.format(10)),
        ({"timeout": 9.5}, 109.5, 159.5, 399.5, AFTER.format(9.5)),
        ({"timeout": 0}, 100, 150, 390, AFTER.format(0)),
        ({"timeout": 300}, 400, 400, 400, IN_ALL.format(300)),
        ({"timeout": 400}, 500, 500, 500, IN_ALL.format(400)),
        ({"timeout": None}, None, None, None, None),
        ({"max_timeout": None}, 160, 210, 450, AFTER.format(60)),
        ({"max_timeout": 60}, 160, 160, 160, IN_ALL.format(60)),
        ({"max_timeout": 30}, 130, 130, 130, IN_ALL.format(30)),
        ({"timeout": None, "max_timeout": 30}, 130, 130, 130, IN_ALL.format(30)),
        ({"timeout": 500, "max_timeout": None}, 600, 650, 890, AFTER.format(500)),
    ],
)  # fmt: skip
def test_deadline_is_restarted_by_progress_up_to_the_total(
    options: dict[str, Any], first: float, later: float, last: float, text: str | None
) -> None:
    call = begun(**options)
    assert call.deadline == first
    call.progress(150.0)
    call.progress(390.0)
    assert call.changes == [later, last]
    if text is not None:
        assert timeout_text(call) == text


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"timeout": -1}, ValueError, "timeout is a number of seconds from 0 on, or None, not -1"),
        ({"timeout": float("nan")}, ValueError, "timeout is a number"),
        ({"max_timeout": -0.1}, ValueError, "max_timeout is a number"),
        ({"max_timeout": float("nan")}, ValueError, "max_timeout is a number"),
        (
            {"check_output": "no"},
            ValueError,
            'check_output is "error", "warn" or "off", not \'no\'',
        ),
        ({"time_out": 1}, TypeError, "time_out"),
    ],
)
def test_option_without_meaning_raises(
    options: dict[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        begun(**options)


@pytest.mark.parametrize("mode", ["error", "warn", "off"])
def test_check_mode_returns_a_known_mode(mode: Any) -> None:
    assert check_mode(mode) == mode
    assert begun(check_output=mode).sent == [("m", None)]


@pytest.mark.parametrize(
    ("step", "options", "text"),
    [
        (("m", None), {}, "no answer to m within 60 s (timeout: pass a longer one)"),
        (("tools/call", None), {},
            f"no answer to tools/call within 60 s (timeout: pass a longer one, {TOOL}"),
        (("tools/call", None), {"max_timeout": 5},
            f"tools/call{IN_ALL[1:-1].format(5)}, or let the tool run as a task)"),
        (UntimedRequest("m", None, 7.5), {}, "no answer to m within 7.5 s"),
    ],
)  # fmt: skip
def test_timeout_says_which_option_helps(step: Any, options: dict[str, Any], text: str) -> None:
    call = begun(step, **options)
    assert timeout_text(call) == text
    call.describe_silence = lambda: "; it said so"
    assert timeout_text(call) == f"{text}; it said so"


@pytest.mark.parametrize(("limit", "deadline"), [(None, 400), (7.0, 107), (500.0, 400)])
def test_untimed_request_has_its_own_limit(limit: float | None, deadline: float) -> None:
    call = begun(UntimedRequest("m", {"a": 1}, limit), ("n", None))
    assert (call.sent, call.deadline) == ([("m", {"a": 1})], deadline)
    call.now = 200.0
    call.end(1, None)
    assert (call.sent[1:], call.deadline) == ([("n", None)], 260)


def test_each_request_restarts_the_timeout_and_none_the_total() -> None:
    call = begun(("m", None), ("n", {"a": 1}), ("o", None))
    call.progress(120.0)
    call.now = 150.0
    call.end(1, None)
    assert (call.id, call.deadline, call.changes) == (2, 210, [180, 210])
    assert timeout_text(call) == "no answer to n within 60 s (timeout: pass a longer one)"
    call.now = 390.0
    call.end(2, None)
    assert (call.id, call.deadline) == (3, 400)
    assert (call.done, call.woken) == (False, 0)
    call.end(3, None)
    assert (call.done, call.woken, call.result()) == (True, 1, [1, 2, 3])
    assert call.changes == [180, 210, 400]  # a call that is over has no deadline


# -- How it ends -----------------------------------------------------------------------------------


def test_call_that_is_over_ignores_what_follows() -> None:
    call = begun()
    call.end("a", None)
    call.end("b", None)
    call.end(None, ValueError("late"))
    call.progress(150.0)
    call.pause_timeout(1)
    assert (call.result(), call.woken, call.changes) == (["a"], 1, [])


def test_call_without_a_request_is_over_at_once() -> None:
    call = ClockedCall(asks())
    call.begin()
    assert (call.done, call.woken, call.result(), call.id) == (True, 1, [], None)


@pytest.mark.parametrize("error", [ValueError("no"), KeyboardInterrupt()])
def test_error_of_a_response_ends_the_call(error: BaseException) -> None:
    call = begun(("m", None), ("n", None))
    call.end(None, error)
    assert (call.done, call.woken, len(call.sent)) == (True, 1, 1)
    with pytest.raises(type(error)) as caught:
        call.result()
    assert caught.value is error


def test_request_that_cannot_be_sent_ends_the_call() -> None:
    def fail(method: str, params: Any, call: Any, options: Any) -> Any:
        raise ValueError(f"{method} cannot be sent")

    call = ClockedCall(asks(("m", None)))
    call._send = fail
    call.begin()
    assert (call.done, call.woken) == (True, 1)
    with pytest.raises(ValueError, match="m cannot be sent"):
        call.result()


def test_abandoned_call_cleans_up() -> None:
    left: list[str] = []

    def steps() -> Generator[Any, Any, None]:
        try:
            yield "m", None
        finally:
            left.append("steps")

    call = ClockedCall(steps())
    call.begin()
    call.abandon()
    assert left == ["steps"]


def test_problems_are_added_to_the_callers_list() -> None:
    found = ["one"]
    begun(problems=found).on_problems(["two", "three"])
    assert found == ["one", "two", "three"]
    begun().on_problems(["unread"])


@pytest.mark.parametrize(
    ("options", "deadline"),
    [({}, 260), ({"timeout": 70}, 270), ({"max_timeout": 130}, 230), ({"max_timeout": None}, 260)],
)
def test_task_has_no_default_limit(options: dict[str, Any], deadline: float) -> None:
    created = TaskCreated(1, NONE, None, NONE)
    call = begun(("m", None), ("n", None), **options)
    call.now = 200.0
    call.on_task_created(created)
    assert call.deadline == deadline
    call.progress(10_000.0)
    assert call.deadline == (230 if options.get("max_timeout") else 10_000 + deadline - 200)
    call.end(2, None)
    assert call.result() == [created, 2]


def test_input_request_is_passed_to_the_call() -> None:
    event = InputRequested(1, NONE, NONE, NONE)
    call = begun()
    call.on_input_required(event)
    assert call.result() == [event]


# -- Waits -----------------------------------------------------------------------------------------


class Wait(CallWait):
    def __init__(self, *, pauses: bool = False, name: str = "") -> None:
        self.pauses_timeout = pauses
        self.name = name
        self.log: list[Any] = []

    def begin(self, call: PendingCall[Any]) -> None:
        self.log.append((call.deadline, call.pause_count))

    def stop(self) -> None:
        self.log.append("stop")


@pytest.mark.parametrize(("pauses", "deadline"), [(False, 210), (True, 400)])
def test_wait_begins_with_its_deadline_and_is_stopped(pauses: bool, deadline: float) -> None:
    wait = Wait(pauses=pauses)
    call = begun(("m", None), wait, ("n", None))
    call.now = 150.0
    call.end("a", None)
    assert (wait.log, call.deadline) == ([(deadline, int(pauses))], deadline)
    call.now = 170.0
    call.end("b", None)
    assert wait.log[1:] == ["stop"]
    assert (call.pause_count, call.deadline, call.sent[1:]) == (0, 230, [("n", None)])
    call.end_wait()
    assert wait.log[1:] == ["stop"]
    call.end("c", None)
    assert call.result() == ["a", "b", "c"]


@pytest.mark.parametrize("name", ["", "the task"])
def test_wait_may_name_what_times_out(name: str) -> None:
    call = begun(("m", None), Wait(name=name))
    call.end("a", None)
    assert timeout_text(call).startswith(f"no answer to {name or 'm'} within 60 s")


def test_abandoned_wait_is_stopped() -> None:
    wait = Wait(pauses=True)
    call = begun(wait)
    call.abandon()
    assert (wait.log[1:], call.pause_count) == (["stop"], 0)


def test_pauses_are_counted() -> None:
    call = begun()
    call.pause_timeout(1)
    call.pause_timeout(1)
    call.now = 200.0
    call.pause_timeout(-1)
    assert call.deadline == 400
    call.pause_timeout(-1)
    assert call.changes == [400, 400, 400, 260]


# -- Callbacks -------------------------------------------------------------------------------------


class Callbacks:
    def __init__(self, *, busy: bool = False, error: BaseException | None = None) -> None:
        self.busy = busy
        self.error = error
        self.log: list[Any] = []

    def call(self, progress: float, total: float | None, message: str | None, /) -> None:
        self.log.append((progress, total, message))
        if self.error is not None:
            raise self.error

    def abandon(self) -> None:
        self.log.append("abandoned")


def test_response_waits_for_callbacks_that_run() -> None:
    """The server has responded, so its timeout is paused; the total isn't."""
    call = begun(("m", None), ("n", None))
    call.progress_callbacks = callbacks = Callbacks(busy=True)
    call.progress_idle()
    call.progress(110.0)
    assert callbacks.log == [(0.5, 2.0, "half")]
    call.end("a", None)
    call.end("b", None)
    assert (len(call.sent), call.pause_count, call.deadline) == (1, 1, 400)
    callbacks.busy = False
    call.now = 120.0
    call.progress_idle()
    call.progress_idle()
    assert (len(call.sent), call.pause_count, call.deadline) == (2, 0, 180)
    call.end("c", None)
    assert (call.result(), call.woken) == (["a", "c"], 1)


def test_lost_connection_waits_for_no_callback() -> None:
    call = begun()
    call.progress_callbacks = Callbacks(busy=True)
    call.end(None, ConnectionLost("gone"))
    assert call.done


def test_callback_that_fails_while_the_response_waits_ends_the_call() -> None:
    call = begun()
    call.progress_callbacks = callbacks = Callbacks(busy=True)
    call.end("a", None)
    error = ValueError("in the callback")
    call.progress_failed(error)
    call.progress_failed(ValueError("again"))
    call.progress_idle()
    assert (call.done, call.woken, callbacks.log) == (True, 1, ["abandoned"] * 2)
    with pytest.raises(ValueError, match="in the callback"):
        call.result()
    call = begun()
    call.progress_failed(error)  # a callback that is no `async def`
    assert call.done


@pytest.mark.parametrize("error", [ValueError("no"), KeyboardInterrupt()])
def test_callback_that_raises_ends_the_call(error: BaseException) -> None:
    call = begun()
    call.progress_callbacks = Callbacks(error=error)
    call.progress(110.0)
    assert (call.done, call.woken) == (True, 1)
    with pytest.raises(type(error)):
        call.result()


# -- Pages -----------------------------------------------------------------------------------------


class Page(Struct):
    items: list[int]
    next_cursor: str | None = None


def listing(limit: int = 10_000) -> PagedList[int]:
    return PagedList("things/list", "items", limit)


def test_pages_are_one_list() -> None:
    """A cursor may be "", and only a missing one ends the list."""
    pages = listing()
    assert (pages.params, pages.has_more, pages.items) == (None, True, [])
    pages.add_page(Page([1, 2], "a"))
    assert repr(pages) == "<PagedList of things/list, 2 items, not at the end>"
    assert pages.params == {"cursor": "a"}
    pages.add_page(Page([], ""))
    assert (pages.params, pages.has_more) == ({"cursor": ""}, True)
    pages.add_page(Page([1, 2]))
    assert (pages.items, pages.has_more, pages.problem) == ([1, 2, 1, 2], False, "")
    assert repr(pages) == "<PagedList of things/list, 4 items>"


def test_first_page_that_is_the_last_ends_the_list() -> None:
    pages = listing(limit=0)  # which is for further pages
    pages.add_page(Page([]))
    assert (pages.items, pages.has_more, pages.problem) == ([], False, "")


def test_page_that_comes_twice_with_its_cursor_ends_the_list() -> None:
    pages = listing()
    pages.add_page(Page([1], "a"))
    pages.add_page(Page([1], "a"))
    assert (pages.items, pages.has_more) == ([1], False)
    assert pages.problem == (
        "things/list ends after 1 items in 1 pages: the server has sent the last page and its "
        "cursor twice"
    )


@pytest.mark.parametrize("cursors", [["a", "a"], ["a", "b", "a"], ["", "b", ""]])
def test_cursor_that_is_repeated_with_another_page_raises(cursors: list[str]) -> None:
    pages = listing()
    *first, last = [Page([number], cursor) for number, cursor in enumerate(cursors)]
    for page in first:
        pages.add_page(page)
    with pytest.raises(RemoteProtocolError) as caught:
        pages.add_page(last)
    assert str(caught.value) == (
        "the pages of things/list do not come to an end: the server has repeated a cursor after "
        f"{len(cursors)} items in {len(cursors) - 1} pages"
    )


def test_pages_without_end_raise() -> None:
    pages = listing(limit=1 << 30)
    for number in range(10_000):
        pages.add_page(Page([], str(number)))
    with pytest.raises(RemoteProtocolError) as caught:
        pages.add_page(Page([], "more"))
    assert "has sent 0 items in 10001 pages, and offers more" in str(caught.value)


def test_pages_over_the_limit_raise_unless_they_are_the_last() -> None:
    """A page counts with its text, and with 64 bytes for each of its values."""
    # {"items":[1,2],"next_cursor":"a"} has 33 bytes, and an object, a list and two commas.
    size = 33 + 4 * 64
    pages = listing(2 * size)
    pages.add_page(Page([1, 2], "a"))
    pages.add_page(Page([3, 4], "b"))
    pages.add_page(Page([5] * 1000))
    assert len(pages.items) == 1004
    pages = listing(2 * size - 1)
    pages.add_page(Page([1, 2], "a"))
    with pytest.raises(RemoteProtocolError) as caught:
        pages.add_page(Page([3, 4], "b"))
    assert str(caught.value) == (
        "things/list is too long: the server has sent 4 items in 2 pages, and offers more. They "
        f"take about {2 * size} bytes of memory, and the limit is {2 * size - 1}; connect with a "
        "higher max_listing"
    )


@pytest.mark.parametrize(
    ("cursors", "ends"), [([], False), (["a"], False), ([""], True), (["a", ""], True)]
)
def test_only_an_empty_cursor_may_be_refused(cursors: list[str], ends: bool) -> None:
    pages = listing()
    for number, cursor in enumerate(cursors):
        pages.add_page(Page([number], cursor))
    assert (pages.refused(), pages.has_more) == (ends, not ends)
    count = len(cursors)
    why = f'{count} items in {count} pages: the server has refused its own cursor ""'
    assert pages.problem == (f"things/list ends after {why}" if ends else "")


@pytest.mark.parametrize(("counts", "more"), [([60, 40], 0), ([60, 41], 1), ([101, 5], 6)])
def test_problems_of_all_pages_have_one_limit(counts: list[int], more: int) -> None:
    pages = listing()
    for count in counts:
        pages.add_problems([f"line {number}" for number in range(count)])
    lines = pages.problems
    assert lines[:2] == ["line 0", "line 1"]
    assert len(lines) == 100 + bool(more)
    if more:
        assert lines[-1] == (f"things/list: {more} more lines about further pages were left out")
