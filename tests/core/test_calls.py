"""`deliver`, `Listing` and `Waiter`: what a client's calls are made of. Time here is a number that the test sets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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
)
from mcp_core._calls import Listing
from mcp_core.runtime import Pending, Turn, Waiter, deliver
from mcp_core.types import ListToolsResult, Tool

if TYPE_CHECKING:
    from mcp_core.runtime import CallOptions, Steps


class Waiting(Pending):
    """Keeps what it is given."""

    def __init__(self) -> None:
        self.ends: list[tuple[Any, BaseException | None]] = []
        self.heard: list[float] = []

    def end(self, result: Any, error: BaseException | None) -> None:
        self.ends.append((result, error))

    def progressed(self, event: ProgressReceived) -> None:
        self.heard.append(event.progress)


def after(event: Event, waiting: Waiting) -> Waiting:
    deliver(event)
    return waiting


def test_a_result() -> None:
    waiting = Waiting()
    assert after(ResultReceived(1, "r", waiting), waiting).ends == [("r", None)]


def test_an_error() -> None:
    waiting, error = Waiting(), PeerError(1, "no")
    assert after(ErrorReceived(1, error, waiting), waiting).ends == [(None, error)]


def test_progress() -> None:
    waiting = Waiting()
    assert after(ProgressReceived(1, 0.5, None, None, waiting), waiting).heard == [0.5]
    assert waiting.ends == []


def test_a_question_that_nobody_answers() -> None:
    waiting = Waiting()
    ((result, error),) = after(InputRequested(1, {}, None, waiting), waiting).ends
    assert result is None
    assert isinstance(error, RemoteProtocolError)


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (None, "the client was closed"),
        (ConnectionLost("the server closed the connection"), "the server closed"),
    ],
)
def test_the_end_of_the_conversation_ends_each_call_with_an_exception_of_its_own(
    error: ConnectionLost | None, says: str
) -> None:
    one, other = Waiting(), Waiting()
    deliver(ConnectionClosed([one, other], error))
    ((_, first),), ((_, second),) = one.ends, other.ends
    assert isinstance(first, ConnectionLost)
    assert isinstance(second, ConnectionLost)
    assert first is not second
    assert str(first).startswith(says)


def test_other_events_concern_nobody() -> None:
    deliver(MessageRejected(RemoteProtocolError("x")))


def page(*names: str, cursor: str | None = None) -> ListToolsResult:
    tools = [Tool(name=name, input_schema={"type": "object"}) for name in names]
    return ListToolsResult(tools=tools, next_cursor=cursor)


@pytest.mark.requirement("PAGE-2", "PAGE-3", "PAGE-4", "PAGE-5")
def test_a_listing_goes_on_until_there_is_no_cursor() -> None:
    listing: Listing[Tool] = Listing("tools/list", "tools")
    assert repr(listing) == "<Listing of tools/list, 0 items, not at the end>"
    asked = []
    for answer in (page("a", cursor="x y"), page(cursor=""), page("b", "c")):
        assert listing.wanted
        asked.append(listing.params)
        listing.take(answer)
    assert asked == [None, {"cursor": "x y"}, {"cursor": ""}]
    assert not listing.wanted
    assert [tool.name for tool in listing.items] == ["a", "b", "c"]
    assert repr(listing) == "<Listing of tools/list, 3 items>"


def test_a_cursor_that_comes_again_is_no_end() -> None:
    listing: Listing[Tool] = Listing("tools/list", "tools")
    listing.take(page("a", cursor="1"))
    listing.take(page("b", cursor="2"))
    with pytest.raises(RemoteProtocolError, match="do not come to an end"):
        listing.take(page("c", cursor="1"))


def test_a_listing_has_a_longest() -> None:
    listing: Listing[Tool] = Listing("tools/list", "tools")
    for number in range(10_000):
        listing.take(page(cursor=str(number)))
    with pytest.raises(RemoteProtocolError, match="tools/list"):
        listing.take(page(cursor="one more"))


# -- One call ----------------------------------------------------------------------------------------------------------------


class Told(Waiter[Any]):
    """Counts what it is told, and keeps what it sends. `now` is the time."""

    def __init__(self, steps: Steps[Any], options: CallOptions | None = None) -> None:
        self.now = 1000.0
        self.told: list[str] = []
        self.sent: list[tuple[str, Any]] = []
        self.refuses: BaseException | None = None
        super().__init__(self._put, lambda: self.now, steps, options or {})

    def _put(self, method: str, params: Any, waiter: Waiter[Any], options: CallOptions) -> int:
        assert waiter is self
        if self.refuses is not None:
            raise self.refuses
        self.sent.append((method, params))
        return len(self.sent)

    def wake(self) -> None:
        self.told.append("wake")

    def rearm(self) -> None:
        self.told.append("rearm")

    def is_done(self) -> bool:
        return self.done


def one() -> Steps[str]:
    answer = yield "one", {"a": 1}
    return f"the answer is {answer}"


def two() -> Steps[list[Any]]:
    first = yield "one", None
    try:
        second = yield "two", {"after": first}
    except PeerError as exc:
        second = exc.code
    return [first, second]


def none() -> Steps[str]:
    yield from ()
    return "known"


def begun(steps: Steps[Any], options: CallOptions | None = None) -> Told:
    told = Told(steps, options)
    told.begin()
    return told


def progress(step: float = 0.5) -> ProgressReceived:
    return ProgressReceived(1, step, 1.0, "half", None)


def test_a_call_of_one_request_wakes_once() -> None:
    told = Told(one())
    assert (told.id, told.is_done(), told.deadline) == (None, False, None)
    told.begin()
    assert (told.id, told.is_done(), told.told) == (1, False, [])
    told.end(42, None)
    assert told.is_done()
    told.end(None, PeerError(1, "late"))
    told.progressed(progress())
    assert told.sent == [("one", {"a": 1})]
    assert told.told == ["wake"]
    assert told.result() == "the answer is 42"


def test_a_call_goes_on_by_itself_and_wakes_at_the_end() -> None:
    told = begun(two())
    told.end("x", None)
    assert (told.id, told.told) == (2, ["rearm"])
    told.end("y", None)
    assert told.sent == [("one", None), ("two", {"after": "x"})]
    assert told.told == ["rearm", "wake"]
    assert told.result() == ["x", "y"]


def test_an_error_is_for_the_call_to_take_or_to_end_with() -> None:
    told = begun(two())
    told.end("x", None)
    told.end(None, PeerError(7, "no"))
    assert told.result() == ["x", 7]
    told = begun(two())
    told.end(None, PeerError(7, "no"))
    assert told.told == ["wake"]
    with pytest.raises(PeerError, match="no"):
        told.result()


def test_a_call_that_needs_no_request() -> None:
    told = begun(none())
    assert (told.is_done(), told.sent, told.told, told.id) == (True, [], ["wake"], None)
    assert told.result() == "known"


@pytest.mark.parametrize("at", ["the first request", "the second"])
def test_a_request_that_may_not_be_sent_ends_the_call(at: str) -> None:
    told = Told(two())
    refused = LocalProtocolError("not now")
    if at == "the second":
        told.begin()
        told.refuses = refused
        told.end("x", None)
    else:
        told.refuses = refused
        told.begin()
    assert told.is_done()
    assert "rearm" not in told.told
    with pytest.raises(LocalProtocolError, match="not now"):
        told.result()


def test_a_call_that_fails_by_itself() -> None:
    def fails() -> Steps[None]:
        yield "one", None
        raise ZeroDivisionError

    told = begun(fails())
    told.end("x", None)
    with pytest.raises(ZeroDivisionError):
        told.result()


def test_progress_is_told() -> None:
    heard: list[Any] = []
    told = begun(one(), {"progress": lambda *args: heard.append(args)})
    told.progressed(progress())
    assert told.told == ["rearm"]
    assert heard == [(0.5, 1.0, "half")]
    silent = begun(one(), {"progress": None})
    silent.progressed(progress())
    assert silent.told == ["rearm"]


@pytest.mark.parametrize("raised", [SystemExit(), PeerError(-32602, "mine")])
def test_a_callback_that_fails_ends_its_call(raised: BaseException) -> None:
    def fail(*_: object) -> None:
        raise raised

    told = begun(two(), {"progress": fail})
    told.end("x", None)
    told.progressed(progress())
    assert told.told == ["rearm", "rearm", "wake"]
    with pytest.raises(type(raised)) as caught:
        told.result()
    assert caught.value is raised  # the call was not asked whether it can do without


class Awaited(Turn):
    """Keeps who waits for it."""

    def __init__(self, *, ours: bool = False, name: str = "") -> None:
        self.ours = ours
        self.name = name
        self.stopped = 0
        self.waiter: Waiter[Any]

    def begin(self, waiter: Waiter[Any]) -> None:
        self.waiter = waiter

    def stop(self) -> None:
        self.stopped += 1


def through(turn: Turn) -> Steps[Any]:
    first = yield "one", None
    try:
        word = yield turn
    except PeerError as exc:
        word = exc.code
    return first, word, (yield "two", None)


def test_a_call_can_wait_for_something_else_than_an_answer() -> None:
    turn = Awaited()
    told = begun(through(turn))
    told.end("x", None)
    assert (turn.waiter, turn.stopped, told.sent) == (told, 0, [("one", None)])
    told.end("word", None)
    assert (turn.stopped, told.sent) == (1, [("one", None), ("two", None)])
    told.end("y", None)
    assert (turn.stopped, told.told) == (1, ["rearm", "rearm", "wake"])
    assert told.result() == ("x", "word", "y")


def test_what_it_waited_for_may_fail() -> None:
    turn = Awaited()
    told = begun(through(turn))
    told.end("x", None)
    told.end(None, PeerError(7, "no"))
    told.end("y", None)
    assert told.result() == ("x", 7, "y")
    told = begun(through(turn))
    told.end("x", None)
    told.end(None, ConnectionLost("gone"))
    assert turn.stopped == 2
    with pytest.raises(ConnectionLost):
        told.result()


def test_whoever_leaves_a_call_does_not_wait_for_anything() -> None:
    turn = Awaited(ours=True)
    told = begun(through(turn))
    told.leave_turn()
    told.end("x", None)
    assert told.held == 1
    told.leave_turn()
    told.leave_turn()
    assert (turn.stopped, told.held) == (1, 0)


def test_a_call_that_begins_with_something_else() -> None:
    def steps() -> Steps[Any]:
        return (yield Awaited(name="a word"))

    told = begun(steps(), {"timeout": 5})
    assert (told.id, told.sent, told.deadline) == (None, [], told.now + 5)
    with pytest.raises(CallTimeout, match="no answer to a word within 5 s"):
        told.result()


def test_questions_are_for_the_call_to_answer() -> None:
    told = begun(one())
    event = InputRequested(1, {}, None, told)
    deliver(event)
    assert told.result() == f"the answer is {event}"


# -- How long it may take ----------------------------------------------------------------------------------------------------

Happening = tuple[float, str]  # seconds after the beginning, and what happens then
SILENT, SILENT_AFTER = (
    "no answer to {} within {} s (timeout)",
    "no answer to {} within {} s after its last sign of progress (timeout)",
)
IN_ALL = "{} was not over after {} s in all (max_timeout)"

# Options, what happens, when the call is given up, and with which words.
DEADLINES: list[tuple[CallOptions, list[Happening], float | None, str]] = [
    ({}, [], 60, SILENT.format("one", 60)),
    ({}, [(50, "progressed")], 110, SILENT_AFTER.format("one", 60)),
    ({}, [(50, "progressed"), (100, "progressed"), (230, "progressed")], 290, SILENT_AFTER.format("one", 60)),
    ({}, [(55.0 * n, "progressed") for n in range(6)], 300, IN_ALL.format("one", 300)),
    ({}, [(50, "answered")], 110, SILENT.format("two", 60)),
    ({}, [(50, "progressed"), (55, "answered")], 115, SILENT.format("two", 60)),
    ({}, [(55, "progressed"), (59, "answered"), (250, "progressed")], 300, IN_ALL.format("two", 300)),
    ({"timeout": 2.5}, [], 2.5, SILENT.format("one", 2.5)),
    ({"timeout": 0}, [], 0, SILENT.format("one", 0)),
    ({"timeout": 400}, [], 400, SILENT.format("one", 400)),
    ({"timeout": 400}, [(100, "progressed")], 400, IN_ALL.format("one", 400)),
    ({"timeout": 400, "max_timeout": None}, [(100, "progressed")], 500, SILENT_AFTER.format("one", 400)),
    ({"timeout": 10, "max_timeout": 5}, [], 5, IN_ALL.format("one", 5)),
    ({"timeout": 10, "max_timeout": 12}, [(1, "progressed")], 11, SILENT_AFTER.format("one", 10)),
    ({"timeout": 10, "max_timeout": 12}, [(3, "progressed")], 12, IN_ALL.format("one", 12)),
    ({"timeout": None}, [], None, ""),
    ({"timeout": None}, [(9999, "progressed")], None, ""),
    ({"timeout": None, "max_timeout": 5}, [(4, "progressed")], 5, IN_ALL.format("one", 5)),
    ({"timeout": float("inf")}, [], None, ""),
    # While our own side is asked, the server's silence is none.
    ({}, [(5, "asked")], 300, IN_ALL.format("one", 300)),
    ({}, [(5, "asked"), (200, "told")], 260, SILENT.format("one", 60)),
    ({}, [(5, "asked"), (6, "asked"), (90, "told")], 300, IN_ALL.format("one", 300)),
    ({}, [(5, "asked"), (6, "asked"), (90, "told"), (95, "told")], 155, SILENT.format("one", 60)),
    ({}, [(5, "asked"), (6, "progressed")], 300, IN_ALL.format("one", 300)),
    ({"max_timeout": None}, [(5, "asked")], None, ""),
]


@pytest.mark.parametrize(
    ("ours", "deadline", "words"),
    [(True, 300, IN_ALL.format("one", 300)), (False, 70, SILENT.format("one", 60))],
)
def test_the_time_of_a_turn(ours: bool, deadline: float, words: str) -> None:
    told = begun(through(Awaited(ours=ours)))
    start = told.now
    told.now += 10
    told.end("x", None)
    assert told.deadline == start + deadline
    with pytest.raises(CallTimeout) as caught:
        told.result()
    assert str(caught.value) == words
    told.now += 100
    told.end("word", None)
    assert told.deadline == start + 170


@pytest.mark.requirement("LIFE-22", "LIFE-23")
@pytest.mark.parametrize(("options", "happenings", "deadline", "words"), DEADLINES)
def test_when_a_call_is_given_up(
    options: CallOptions, happenings: list[Happening], deadline: float | None, words: str
) -> None:
    told = begun(two(), options)
    start = told.now
    for seconds, happening in happenings:
        told.now = start + seconds
        if happening == "progressed":
            told.progressed(progress())
        elif happening == "answered":
            told.end("x", None)
        else:
            told.hold(1 if happening == "asked" else -1)
    assert told.deadline == (None if deadline is None else start + deadline)
    assert told.told == ["rearm"] * len(happenings)
    if words:
        with pytest.raises(CallTimeout) as caught:
            told.result()
        assert str(caught.value) == words


def test_a_call_that_is_over_has_no_time_to_run_out() -> None:
    told = begun(one())
    told.end("x", None)
    told.hold(1)
    told.hold(-1)
    assert told.told == ["wake"]


@pytest.mark.parametrize("option", ["timeout", "max_timeout"])
@pytest.mark.parametrize("seconds", [-1, float("nan")])
def test_a_limit_that_is_none(option: Any, seconds: float) -> None:
    options: Any = {option: seconds}
    with pytest.raises(ValueError, match=f"{option} is a number of seconds"):
        Told(one(), options)
