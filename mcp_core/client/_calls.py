"""A client's calls, for any runtime: their requests, one after the other, and their timeouts.

1. A call is a generator. It yields the requests that it needs, and is sent their results or thrown
   their errors. Most calls need one request, a listing one for each page, and a cached result none.
   Anything else that a call has to wait for, it yields as a `CallWait`.
2. A `PendingCall` runs such a generator. The reader of a response advances it to its next request
   at once. So the waiting task is woken only once, at the end.
3. An exception in the caller's callback ends that call and nothing else.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Generator, Iterable, Mapping
from math import inf
from typing import (
    TYPE_CHECKING,
    Any,
    Final,
    Generic,
    Literal,
    NamedTuple,
    Protocol,
    TypeAlias,
    TypedDict,
    TypeVar,
    get_args,
)

from msgspec import Struct

from mcp_core._errors import CallTimeout, ConnectionLost, RemoteProtocolError
from mcp_core._keywords import check_keywords
from mcp_core.protocol.jsonrpc._codec import encode
from mcp_core.protocol.messages._events import InputRequested, ProgressReceived, TaskCreated
from mcp_core.protocol.messages._pending import PendingRequest
from mcp_core.types import RequestId

if TYPE_CHECKING:
    from mcp_core import types as t

__all__ = [
    "CallOptions",
    "CallSteps",
    "CallWait",
    "CheckOutput",
    "PagedList",
    "Params",
    "PendingCall",
    "UntimedRequest",
    "check_mode",
    "complete_argument",
]

T = TypeVar("T")

Params: TypeAlias = Struct | Mapping[str, Any] | None


class UntimedRequest(NamedTuple):
    """A request whose response may take any time: `timeout` doesn't apply.

    `limit` is the seconds after which the call times out nevertheless, None for never.
    """

    method: str
    params: Params
    limit: float | None = None


CheckOutput: TypeAlias = Literal["error", "warn", "off"]

Progress: TypeAlias = Callable[[float, float | None, str | None], object]

_TIMEOUT: Final = 60.0  # enough for most tools, and about as long as a user waits without a sign

# A tool that takes longer should run as a task. Progress doesn't prove that the call will ever end.
_MAX_TIMEOUT: Final = 300.0

_MAX_PAGES: Final = 10_000  # a longer listing is taken for an endless one
_MAX_PROBLEMS: Final = 100  # lines about one list; each page has a few

# About how many bytes each value of a decoded page takes in addition to its text. No page takes
# more than 1.7 times the estimate (CPython 3.11).
_VALUE_SIZE: Final = 64


class CallOptions(TypedDict, total=False):
    """Options of any call.

    Keys:
        timeout: seconds without a response or progress before `CallTimeout`. Default 60; None for
            no limit. It is paused while this side answers an input request. If the call becomes a
            task, it applies to each request about the task.
        max_timeout: seconds before `CallTimeout` in total, even with progress, and for all pages of
            a list together; None for no limit. Default 300, or `timeout` if that is longer or None.
            A call that has become a task has no default limit.
        progress: called with progress, total and message for each progress notification of this
            call. An `async def` is awaited: one notification after the other, and all of them
            before the call returns. `timeout` doesn't count the wait for the last of them. A tool
            is asked for progress in any case, since it restarts `timeout`.
        meta: further members of the request's `_meta`. Such a request is always sent: the cache
            doesn't know what they mean.
        headers: over HTTP, more headers of the request. They replace the client's headers of the
            same name. Such a request is always sent, too.
        problems: a list to which the call appends what it left out of its result, because it could
            not be read: a line for each kind of place, and at most about 100 for all pages of a
            list. The first of each kind is logged, too.
        check_output: what follows if a tool's result doesn't fit the tool's output schema: "error"
            raises `InvalidToolResult`, "warn" logs it and adds it to `problems`, "off" doesn't
            compare. Default: the client's option of that name.
    """

    timeout: float | None
    max_timeout: float | None
    progress: Progress | None
    meta: Mapping[str, Any] | None
    headers: Mapping[str, str] | None
    problems: list[str]
    check_output: CheckOutput


class CallWait(abc.ABC):
    """A wait of a call for something other than a response. Pass the outcome to `PendingCall.end`.

    `pauses_timeout` is True if the server is waiting for this side, for example for the user's
    input. `name` replaces the last request's method in a timeout's text.
    """

    pauses_timeout = False
    name = ""

    @abc.abstractmethod
    def begin(self, call: PendingCall[Any]) -> None:
        """Begin to wait on behalf of `call`. Do not call its `end` before this returns."""

    @abc.abstractmethod
    def stop(self) -> None:
        """End the wait. Called when the call ends or is cancelled, and after `end` was called."""


# A call of a client: yields requests to send and waits, and returns a `T`.
CallSteps: TypeAlias = Generator[tuple[str, Params] | UntimedRequest | CallWait, Any, T]


class ProgressCallbacks(Protocol):
    """The calls of a `progress` callback that may be an `async def`."""

    @property
    def busy(self) -> bool:
        """True if a callback runs or waits. `PendingCall.progress_idle` is called at the end."""

    def call(self, progress: float, total: float | None, message: str | None, /) -> None:
        """Call the callback now or later. A later exception goes to `progress_failed`."""

    def abandon(self) -> None:
        """Cancel the callback that runs, and drop those that wait."""


class PendingCall(PendingRequest, Generic[T]):
    """One call. Call `begin`, wait for `wake` or until `deadline`, then take `result()`.

    Args:
        send: sends a request on behalf of this call, and returns its id.
        clock: returns the time now, monotonic, in seconds.
        steps: the call.
        options: the caller's options.

    `id` is the last request's id, None before the first. `done` is true once the call is over.
    `deadline` is the time at which the call times out unless something happens, or None.
    `pause_count` counts the input requests that this side is answering. While there are any,
    `timeout` is paused. `describe_silence` returns a clause to append to the text of a timeout.

    Raises:
        TypeError: an option is unknown.
        ValueError: a timeout is negative or not a number, or `check_output` has a value that
            `CallOptions` doesn't list.
    """

    # Class attributes, because nearly every call starts with the same values.
    id: RequestId | None = None
    done = False
    deadline: float | None = None
    _timeout: float | None = _TIMEOUT
    _max_timeout: float | None = _MAX_TIMEOUT
    # Set by a client that can run an `async def`; None without a `progress` option.
    progress_callbacks: ProgressCallbacks | None = None
    _response: tuple[Any, BaseException | None] | None = None  # waits for `progress_callbacks`
    describe_silence: Callable[[], str] | None = None
    _total_deadline: float | None = None  # when `max_timeout` ends; infinite for no limit
    _total_applies = False  # `deadline` comes from `max_timeout`, not `timeout`
    pause_count = 0
    _current_wait: CallWait | None = None
    _progress_seen = False  # since the last request
    _untimed: UntimedRequest | None = None  # the last request, if it is one
    _method = ""
    _result: Any = None
    _error: BaseException | None = None

    def __init__(
        self,
        send: Callable[[str, Params, PendingCall[Any], CallOptions], RequestId],
        clock: Callable[[], float],
        steps: CallSteps[T],
        options: CallOptions,
    ) -> None:
        self._send = send
        self._clock = clock
        self._steps = steps
        self._options = options
        if options:
            check_keywords(options, CallOptions, "the call")
            self._timeout = _check_seconds("timeout", options.get("timeout", _TIMEOUT))
            default_max_timeout = (
                None if self._timeout is None else max(self._timeout, _MAX_TIMEOUT)
            )
            self._max_timeout = _check_seconds(
                "max_timeout", options.get("max_timeout", default_max_timeout)
            )
            if "check_output" in options:
                check_mode(options["check_output"])

    @abc.abstractmethod
    def wake(self) -> None:
        """Wake the waiting task: the call is over. Called once, perhaps before any task waits."""

    @abc.abstractmethod
    def deadline_changed(self) -> None:
        """React to a new value of `deadline`."""

    def begin(self) -> None:
        """Send the first request. The call is done at once if none is needed, or sending failed."""
        self._advance(None, None)

    def end(self, result: Any, error: BaseException | None) -> None:
        if self.done or self._response is not None:
            return
        callbacks = self.progress_callbacks
        if callbacks is not None and callbacks.busy and not isinstance(error, ConnectionLost):
            self._response = result, error
            self.pause_timeout(1)  # the server has responded; `max_timeout` still applies
            return
        self._take_response(result, error)

    def progress_idle(self) -> None:
        """Take the response that has waited for `progress_callbacks`, if it is here."""
        if self._response is not None:
            result, error = self._response
            self._response = None
            self.pause_count -= 1
            if not self.done:
                self._take_response(result, error)

    def progress_failed(self, error: BaseException) -> None:
        """End the call with `error`, which a `progress` callback has raised."""
        if self.progress_callbacks is not None:
            self.progress_callbacks.abandon()
        if not self.done:
            self._finish(None, error)

    def _take_response(self, result: Any, error: BaseException | None) -> None:
        if self._current_wait is not None:
            self.end_wait()
        self._advance(result, error)
        if not self.done:
            self.deadline_changed()

    def on_problems(self, problems: Iterable[str]) -> None:
        """Append `problems` to the list that the caller gave, if it did."""
        found = self._options.get("problems")
        if found is not None:
            found.extend(problems)

    def on_input_required(self, event: InputRequested) -> None:
        """Pass the event to the call in place of a result."""
        self.end(event, None)

    def on_task_created(self, event: TaskCreated) -> None:
        """Pass `event` to the call in place of a result.

        The default of `max_timeout` doesn't apply any more: a task takes long.
        """
        if "max_timeout" not in self._options:
            self._max_timeout = None
            self._total_deadline = inf
        self.end(event, None)

    def on_progress(self, event: ProgressReceived) -> None:
        if self.done:
            return
        self._progress_seen = True
        self._set_deadline()
        self.deadline_changed()
        if self.progress_callbacks is not None:
            try:
                self.progress_callbacks.call(event.progress, event.total, event.message)
            except BaseException as exc:  # noqa: BLE001 - rule 3
                self._finish(None, exc)

    def pause_timeout(self, more: int) -> None:
        """Add `more` to `pause_count`. At 0 `timeout` restarts; `max_timeout` is never paused."""
        self.pause_count += more
        if not self.done:
            self._set_deadline()
            self.deadline_changed()

    def end_wait(self) -> None:
        """End the current wait for something other than a response, if there is one."""
        current_wait = self._current_wait
        if current_wait is not None:
            self._current_wait = None
            self.pause_count -= current_wait.pauses_timeout
            current_wait.stop()

    def abandon(self) -> None:
        """Let the call clean up, if it isn't over: no task waits for it any more."""
        if self._current_wait is not None:
            self.end_wait()
        self._steps.close()

    def result(self) -> T:
        """Return the result, after `wake` or at the deadline.

        Raises:
            CallTimeout: the call isn't over.
            BaseException: the error that ended the call.
        """
        if not self.done:
            silence = self.describe_silence
            raise CallTimeout(self._timeout_text() + ("" if silence is None else silence()))
        if self._error is not None:
            raise self._error
        found: T = self._result
        return found

    def _advance(self, result: Any, error: BaseException | None) -> None:
        """Advance the call to its next request or wait, or to its end."""
        try:
            step = self._steps.send(result) if error is None else self._steps.throw(error)
        except StopIteration as end:
            self._finish(end.value, None)
            return
        except BaseException as exc:  # noqa: BLE001 - raised again in the caller's task
            self._finish(None, exc)
            return
        self._progress_seen = False
        self._untimed = None
        if isinstance(step, UntimedRequest):
            self._untimed = step
            step = step.method, step.params
        if not isinstance(step, tuple):
            self._current_wait = step
            self.pause_count += step.pauses_timeout
            self._method = step.name or self._method
            self._set_deadline()
            step.begin(self)
            return
        self._method, params = step
        try:
            self.id = self._send(self._method, params, self, self._options)
        except Exception as exc:  # noqa: BLE001 - raised again in the caller's task
            self._finish(None, exc)
        else:
            self._set_deadline()

    def _finish(self, result: Any, error: BaseException | None) -> None:
        self.done = True
        self._result = result
        self._error = error
        self.wake()

    def _set_deadline(self) -> None:
        """Restart `timeout` now."""
        now = self._clock()
        total_deadline = self._total_deadline
        if total_deadline is None:
            total_deadline = inf if self._max_timeout is None else now + self._max_timeout
            self._total_deadline = total_deadline
        timeout = self._timeout if self._untimed is None else self._untimed.limit
        quiet_deadline = inf if timeout is None or self.pause_count else now + timeout
        self._total_applies = total_deadline < quiet_deadline
        deadline = total_deadline if self._total_applies else quiet_deadline
        self.deadline = None if deadline == inf else deadline

    def _timeout_text(self) -> str:
        is_tool = self._method == "tools/call"
        if self._total_applies:
            other = ", or let the tool run as a task" if is_tool else ""
            return (
                f"{self._method} was not over after {self._max_timeout:g} s in all "
                f"(max_timeout: pass a longer one{other})"
            )
        if self._untimed is not None:
            return f"no answer to {self._method} within {self._untimed.limit:g} s"
        since = " after its last sign of progress" if self._progress_seen else ""
        other = ", or let the tool report progress, which restarts it" if is_tool else ""
        return (
            f"no answer to {self._method} within {self._timeout:g} s{since} "
            f"(timeout: pass a longer one{other})"
        )


def check_mode(mode: CheckOutput) -> CheckOutput:
    """Return the value of an option `check_output`.

    Raises:
        ValueError: there is no such value.
    """
    if mode not in get_args(CheckOutput):
        raise ValueError(f'check_output is "error", "warn" or "off", not {mode!r}')
    return mode


def _check_seconds(option: str, seconds: float | None) -> float | None:
    if seconds is not None and not seconds >= 0:
        raise ValueError(f"{option} is a number of seconds from 0 on, or None, not {seconds!r}")
    return seconds


class PagedList(Generic[T]):
    """The items of all pages of `method`.

    While `has_more`, request a page with `params` and pass it to `add_page`; then read `items`.
    `problem` is what is wrong with the list's end, or "".

    Args:
        method: the method that lists.
        member: the attribute of a page that holds its items.
        limit: the bytes of memory after which no further page is accepted (`Limits.listing`).

    Source: server/utilities/pagination.
    """

    def __init__(self, method: str, member: str, limit: int) -> None:
        self.method = method
        self.items: list[T] = []
        self.has_more = True
        self.problem = ""
        self._member = member
        self._limit = limit
        self._size = 0
        self._cursor: str | None = None
        self._seen: set[str] = set()
        self._last_page: list[T] = []
        self._problems: list[str] = []
        self._more_problems = 0

    def __repr__(self) -> str:
        more = ", not at the end" if self.has_more else ""
        return f"<PagedList of {self.method}, {len(self.items)} items{more}>"

    @property
    def params(self) -> dict[str, Any] | None:
        """The next request's params. A cursor may be ""; only a missing one ends the list."""
        return None if self._cursor is None else {"cursor": self._cursor}

    def add_page(self, page: Any) -> None:
        """Add a page.

        The last page isn't measured: each page is limited by a message's size. A page that repeats
        the one before, with its cursor, ends the list: the server pays no attention to cursors.

        Raises:
            RemoteProtocolError: a cursor is repeated with another page, or there is a further page
                after 10,000 pages or too many bytes.
        """
        items: list[T] = getattr(page, self._member)
        is_repeated = self._cursor is not None and page.next_cursor == self._cursor
        if is_repeated and items == self._last_page:
            self.end_early("the server has sent the last page and its cursor twice")
            return
        self.items += items
        self._last_page = items
        self._cursor = page.next_cursor
        if self._cursor is None:
            self.has_more = False
            return
        if self._cursor in self._seen:
            raise RemoteProtocolError(
                f"the pages of {self.method} do not come to an end: the server has repeated a "
                f"cursor after {self._received}"
            )
        self._seen.add(self._cursor)
        self._size += _memory_of(page)
        if len(self._seen) > _MAX_PAGES:
            raise RemoteProtocolError(
                f"the pages of {self.method} do not come to an end: the server has sent "
                f"{self._received}, and offers more"
            )
        if self._size > self._limit:
            raise RemoteProtocolError(
                f"{self.method} is too long: the server has sent {self._received}, and offers "
                f"more. They take about {self._size} bytes of memory, and the limit is "
                f"{self._limit}; connect with a higher max_listing"
            )

    def add_problems(self, problems: list[str]) -> None:
        """Add what was left out of a page. The first 100 lines of all pages are kept."""
        room = _MAX_PROBLEMS - len(self._problems)
        self._problems += problems[:room]
        self._more_problems += len(problems[room:])

    @property
    def problems(self) -> list[str]:
        """Lines about the pages' omissions. The last one says how many more lines there were."""
        more = self._more_problems
        line = f"{self.method}: {more} more lines about further pages were left out"
        return [*self._problems, line] if more else self._problems

    def refused(self) -> bool:
        """End the list at a cursor that the server has refused, and return True if that is "".

        It is a cursor like any other, and many servers mean the end of the list by it.
        """
        if self._cursor != "":
            return False
        self.end_early('the server has refused its own cursor ""')
        return True

    def end_early(self, why: str) -> None:
        """End the list, which may have more items."""
        self.has_more = False
        self.problem = f"{self.method} ends after {self._received}: {why}"

    @property
    def _received(self) -> str:
        return f"{len(self.items)} items in {len(self._seen)} pages"


def _memory_of(page: Any) -> int:
    """Estimate the bytes of memory that a decoded page takes."""
    text = encode(page)
    values = text.count(b",") + text.count(b"{") + text.count(b"[")
    return len(text) + _VALUE_SIZE * values


def complete_argument(params: t.CompleteParams) -> CallSteps[t.Completion]:
    """Request suggestions for an argument (server/utilities/completion)."""
    result: t.CompleteResult = yield "completion/complete", params
    return result.completion
