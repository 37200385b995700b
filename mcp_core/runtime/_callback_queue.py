"""Calls of a client's callbacks for progress and other notifications, in the messages' order.

A plain function is called at once, where the message was read. The awaitable of an `async def` is
awaited in a task, and the messages that arrive meanwhile wait for it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from ._client_callbacks import CallbackJob

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_core.client._options import ClientConfigOptions

__all__ = ["CallbackQueue", "NotificationCallbacks"]

# Messages that may wait for one slow callback. Reading doesn't stop for it, so a server could
# otherwise fill the memory.
_MAX_WAITING: Final = 1_000
# The notifications of MCP that have a callback, each with the callback's option.
_OPTIONS: Final = {
    "notifications/message": "on_log",
    "notifications/elicitation/complete": "on_elicitation_complete",
}


class CallbackQueue:
    """Calls `callback` for one message after the other.

    If more than 1,000 messages wait, the oldest are dropped.

    Args:
        callback: a plain function, or one that returns an awaitable.
        start_job: runs a `CallbackJob` in a task.
        on_error: gets each `Exception` of a callback that was awaited, or called from the queue.
        on_idle: called when no callback runs or waits any more.
        on_overflow: called once, when messages begin to be dropped.
    """

    __slots__ = (
        "_callback",
        "_first",
        "_job",
        "_on_error",
        "_on_idle",
        "_on_overflow",
        "_overflowed",
        "_start_job",
        "_waiting",
    )

    def __init__(
        self,
        callback: Callable[..., object],
        start_job: Callable[[CallbackJob], object],
        on_error: Callable[[BaseException], object],
        on_idle: Callable[[], object] = lambda: None,
        on_overflow: Callable[[], object] = lambda: None,
    ) -> None:
        self._callback = callback
        self._start_job = start_job
        self._on_error = on_error
        self._on_idle = on_idle
        self._on_overflow = on_overflow
        self._overflowed = False
        self._first: Awaitable[object] | None = None  # what the job awaits first
        self._job: CallbackJob | None = None
        self._waiting: deque[tuple[Any, ...]] = deque(maxlen=_MAX_WAITING)

    def __repr__(self) -> str:
        return f"<CallbackQueue, {len(self._waiting)} messages wait>"

    @property
    def busy(self) -> bool:
        """True if a callback runs or waits."""
        return self._job is not None

    def call(self, *args: Any) -> None:
        """Call the callback now, or once the earlier calls have ended.

        Raises:
            BaseException: the callback was called now, and raised it.
        """
        if self._job is not None:
            if len(self._waiting) == _MAX_WAITING and not self._overflowed:
                self._overflowed = True
                self._on_overflow()
            self._waiting.append(args)
            return
        result = self._callback(*args)
        if isinstance(result, Awaitable):
            self._first = result
            self._job = CallbackJob(self._run, self._on_end)
            self._start_job(self._job)

    def abandon(self) -> None:
        """Cancel the callback that runs, and drop those that wait. None of it is reported."""
        self._waiting.clear()
        if self._job is not None:
            self._job.abandon()
            self._job = None
            self._close_first()

    async def _run(self) -> None:
        result: object = self._first
        self._first = None
        while True:
            try:
                if isinstance(result, Awaitable):
                    await result
            except Exception as exc:  # noqa: BLE001 - the next message has a callback of its own
                self._on_error(exc)
            if not self._waiting:
                return
            try:
                result = self._callback(*self._waiting.popleft())
            except Exception as exc:  # noqa: BLE001 - as above
                result = None
                self._on_error(exc)

    def _on_end(self, result: object, error: BaseException | None) -> None:
        self._job = None
        self._overflowed = False
        self._waiting.clear()  # only if the task was cancelled
        self._close_first()
        self._on_idle()

    def _close_first(self) -> None:
        """Close a coroutine whose task was cancelled before it began to run it."""
        first = self._first
        self._first = None
        close = getattr(first, "close", None)
        if close is not None:
            close()


class NotificationCallbacks:
    """The callbacks that the user gave for notifications. Each one has a queue of its own.

    Args:
        options: the options of the connection, which have the callbacks.
        start_job: runs a `CallbackJob` in a task.
        log_error: logs an error that ends no call.
    """

    __slots__ = ("_log_error", "_options", "_queues", "_start_job")

    def __init__(
        self,
        options: ClientConfigOptions,
        start_job: Callable[[CallbackJob], object],
        log_error: Callable[[str, BaseException], object],
    ) -> None:
        self._options = options
        self._start_job = start_job
        self._log_error = log_error
        self._queues: dict[str, CallbackQueue] = {}  # by method, once a notification has arrived

    def __repr__(self) -> str:
        return f"<NotificationCallbacks, {len(self._queues)} in use>"

    def call(self, method: str, params: Any) -> None:
        """Call the callback for a notification of `method`. Do nothing if the user gave none.

        An exception that it raises is logged.
        """
        option = _OPTIONS.get(method)
        callback: Any
        if option is not None:
            callback = self._options.get(option)
        else:
            callback = (self._options.get("on_notification") or {}).get(method)
            option = f"on_notification for {method}"
        if callback is None:
            return
        queue = self._queues.get(method)
        if queue is None:
            queue = self._queues[method] = CallbackQueue(
                callback,
                self._start_job,
                partial(self._log_error, f"{option} failed"),
                on_overflow=partial(
                    self._log_error,
                    f"{option} is too slow",
                    BufferError("the oldest of 1,000 messages that waited for it were dropped"),
                ),
            )
        try:
            queue.call(params)
        except Exception as exc:  # noqa: BLE001 - no call waits that could raise it
            self._log_error(f"{option} failed", exc)
