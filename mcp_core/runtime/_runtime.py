"""The part of a `Service` that a driver adds: log, sending, waiting, threads, time and entropy.

A `Runtime` whose subclass adds nothing but `report` serves plain functions that send nothing while
they run. For anything more, the methods below raise a `TypeError` that says what is missing.
"""

from __future__ import annotations

import abc
import itertools
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn, Protocol, TypeAlias, TypeVar

from mcp_core._on_first_use import type_on_first_use
from mcp_core.protocol.messages._events import RequestReceived
from mcp_core.types import ReadResourceResult, RequestId

if TYPE_CHECKING:
    from mcp_core.registry._context import Context
    from mcp_core.registry._input_requests import NestedRequests, SingleRequest, TaskInput
    from mcp_core.registry._sampling_tools import SampledConversation, ToolSampling
    from mcp_core.registry.tasks._tasks import DetachableJob
else:  # a client doesn't load the registry
    _INPUT = "mcp_core.registry._input_requests"
    _SAMPLING = "mcp_core.registry._sampling_tools"
    NestedRequests = type_on_first_use(_INPUT, "NestedRequests")
    SingleRequest = type_on_first_use(_INPUT, "SingleRequest")
    TaskInput = type_on_first_use(_INPUT, "TaskInput")
    SampledConversation = type_on_first_use(_SAMPLING, "SampledConversation")
    ToolSampling = type_on_first_use(_SAMPLING, "ToolSampling")
    Context = type_on_first_use("mcp_core.registry._context", "Context")
    DetachableJob = type_on_first_use("mcp_core.registry.tasks._tasks", "DetachableJob")

__all__ = [
    "LAST_GRACE",
    "READ_SIZE",
    "SHUTDOWN_GRACE",
    "Clock",
    "EventLike",
    "Reschedule",
    "Runtime",
    "Sources",
    "missing",
]

READ_SIZE: Final = 65_536  # bytes of one read of a driver; a pipe's capacity on Linux
# Seconds that running handlers get at a server's shutdown before they are cancelled. Service
# managers and containers kill a process 10 s or more after they have asked it to end.
SHUTDOWN_GRACE: Final = 5.0
# Seconds that handlers get to end after they were cancelled. Then a process that is nothing but a
# server ends without them; elsewhere the log names them.
LAST_GRACE: Final = 5.0

T = TypeVar("T")

Clock: TypeAlias = Callable[[], float]  # returns the time, monotonic, in seconds
Reschedule: TypeAlias = Callable[[float | None], object]  # sets a time by a clock, None for never

_REFERENCE_SIZE: Final = 4  # bytes


class EventLike(Protocol):
    """A one-shot event, as `trio.Event` and `asyncio.Event` are: once set, it stays set."""

    def set(self) -> object:
        """Set the event: each `wait` ends, now and later."""

    def wait(self) -> Awaitable[object]:
        """Wait until the event is set. Return at once if it is. The caller awaits the result."""


class Sources(NamedTuple):
    """Where a driver gets random bytes and the time; a simulation passes another one."""

    # Returns so many random bytes, fit for secrets.
    entropy: Callable[[int], bytes]
    # Returns the seconds since 1970.
    wall_time: Callable[[], float]


class Runtime(abc.ABC):
    """The runtime of one connection, as its `Service` and its handlers see it.

    `single_peer` is True if all who can use the transport are one user: a pipe, a Unix socket. Over
    HTTP it is False. `one_request` is True if the conversation ends with its first request: HTTP
    without a session. A driver's `entropy` and
    `wall_time` use `sources`, which `ServedServer.service` sets.
    """

    sources: Sources | None = None
    single_peer = True
    one_request = False

    @abc.abstractmethod
    def report(self, request: RequestReceived, reference: str, exc: BaseException) -> None:
        """Log `exc`, an exception from the handler of `request`.

        `reference` is the name for it that the peer was given, from `reference()`.
        """

    def report_hook(self, name: str, exc: BaseException) -> None:
        """Log `exc`, an exception that ended no request. `name` is the function that raised it."""
        self.warn(f"{name} failed: {exc!r}")

    def reference(self) -> str:
        """Return a name for an exception: random if there is entropy, else a number."""
        if type(self).entropy is not Runtime.entropy:
            return self.entropy(_REFERENCE_SIZE).hex()
        if not hasattr(self, "_references"):
            self._references = itertools.count(1)
        return str(next(self._references))

    def pump(self) -> None:  # noqa: B027 - not abstract: a driver that pumps after every event has nothing to add
        """Send what is queued and process the connection's events, without waiting."""

    def call_soon(self, function: Callable[[], object]) -> None:
        """Call `function` in the connection's thread, without waiting.

        Any thread may call this. A function that is passed several times before it is called may
        be called once. After the run ends nothing happens.
        """
        function()

    def write_blocked(self, id: RequestId | None) -> bool:
        """Return True if progress and logs of the peer's request `id` should wait.

        None stands for messages of no request. False always for a runtime that doesn't override
        this.
        """
        return False

    def drain(self, id: RequestId) -> Coroutine[Any, Any, None]:
        """Wait while `write_blocked(id)` is true. The handler awaits the result.

        Let other tasks run if they have not for a millisecond.
        """
        missing("wait")

    def release(self, id: RequestId, retry: float | None) -> bool:
        """End the response stream of request `id`; the client reconnects for the rest.

        `retry` is the reconnection time in seconds, None to leave it to the client. Return False if
        the transport or the revision cannot do that.
        """
        return False

    def send_nested(self, requests: NestedRequests[T]) -> Coroutine[Any, Any, T]:
        """Send nested `requests`, wait until they have ended, and return their result.

        `NestedRequests` says how. Enter its context before the first wait. The handler awaits this.
        """
        missing("wait for answers")

    def send_nested_task(self, request: SingleRequest[T]) -> Coroutine[Any, Any, T]:
        """Send `request`, which asks the client for a task, and follow that to its end."""
        from .tasks._nested import run_nested_task  # on first use: few servers ask for tasks

        return run_nested_task(request, self)

    def sample_with_tools(self, sampling: ToolSampling) -> Coroutine[Any, Any, SampledConversation]:
        """Run the rounds of `sampling`, a `Context.sample_with_tools`, and return their result."""
        from ._middleware import run_sampling  # on first use: a client has no handlers

        return run_sampling(sampling, self)

    def read_resource(
        self, context: Context[Any], uri: str
    ) -> Coroutine[Any, Any, ReadResourceResult]:
        """Read the resource with the URI `uri` of the server, for a handler that has `context`."""
        from ._middleware import read_resource  # as above

        return read_resource(context, uri, self)

    def request_task_input(self, task_input: TaskInput[T]) -> Coroutine[Any, Any, T]:
        """Request `task_input` for a handler that runs as a task, and return its result."""
        from ._middleware import run_task_input  # as above

        return run_task_input(task_input)

    async def detach(self, job: DetachableJob | None) -> bool:
        """Make the call of `job`, if there is one, a task. Return False if it stays a call."""
        return job is not None and await job.detach()

    def in_time(
        self, seconds: float, function: Callable[[Clock, Reschedule], Awaitable[T]]
    ) -> Coroutine[Any, Any, tuple[T] | None]:
        """Await `function(clock, reschedule)`, and return its value in a tuple.

        After `seconds` it is cancelled; if it ends with that, return None. `reschedule` sets
        another time for that, by `clock`. It may be called by other tasks, and does nothing once
        the function has ended: what waits for a client may outlive it.
        """
        missing("limit the time of a handler")

    def in_thread(self, function: Callable[[], T]) -> Awaitable[T]:
        """Run `function`, which blocks, in a worker thread. Awaiting this gives its result."""
        missing("start threads")

    def monotonic(self) -> float:
        """Return the seconds of a real monotonic clock; always 0 for a runtime without one."""
        return 0.0

    def shared_clock(self) -> float:
        """Return the seconds of a monotonic clock that all runtimes of this process share.

        Rates are counted by it, over connections and tasks. It is `monotonic` by default; if that
        is always 0, a rate allows its burst, and then nothing more.
        """
        return self.monotonic()

    def warn(self, text: str) -> None:  # noqa: B027 - not abstract: a test may do without
        """Log a warning, `text`, for the server's author."""

    def wall_time(self) -> float:
        """Return the seconds since 1970. They are written into data that a peer keeps."""
        missing("tell the time")

    def entropy(self, size: int, /) -> bytes:
        """Return `size` random bytes that cannot be predicted."""
        missing("draw random bytes")

    @property
    def in_worker_thread(self) -> bool:
        """True if called in a worker thread of `in_thread`."""
        return False

    def from_thread(self, function: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Await `function()` in the connection's thread, from a worker thread. Return its value."""
        missing("start threads")


def missing(what: str) -> NoReturn:
    """Raise the `TypeError` of a method that this driver hasn't added."""
    raise TypeError(f"this runtime does not {what}")
