"""The token of our request that waits for its response, and the delivery of events to it."""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterable
from typing import Any

from mcp_core._errors import ConnectionLost, PeerError, RemoteProtocolError

from ._events import (
    ConnectionClosed,
    ErrorReceived,
    Event,
    InputRequested,
    ProgressReceived,
    ResultReceived,
    TaskCreated,
)

__all__ = [
    "IgnoredRequest",
    "PendingRequest",
    "connection_lost",
    "deliver",
]


class PendingRequest(abc.ABC):
    """An outgoing request that waits for its response."""

    @abc.abstractmethod
    def end(self, result: Any, error: BaseException | None) -> None:
        """Take the response: `result`, or `error`, the exception to raise; None for a result."""

    @abc.abstractmethod
    def on_progress(self, event: ProgressReceived) -> None:
        """Handle `event`, a progress notification from the peer."""

    def on_problems(self, problems: Iterable[str]) -> None:  # noqa: B027 - most have no use for it
        """Take `problems`, what was left out of the result that `end` gets next.

        Unless overridden, do nothing: they are logged in any case.
        """

    def on_input_required(self, event: InputRequested) -> None:
        """Handle `event`, a result that requests input. Unless overridden, end with an error."""
        self.end(
            None,
            RemoteProtocolError("the server requested input, which this request cannot answer"),
        )

    def on_task_created(self, event: TaskCreated) -> None:
        """Handle `event`: the peer runs the request as a task. By default, end with an error.

        The task goes on at the peer, until it ends or is expired.
        """
        text = "the peer runs the request as a task, which this call cannot follow"
        self.end(None, RemoteProtocolError(text))


class IgnoredRequest(PendingRequest):
    """A request whose response no task waits for.

    Args:
        on_error: called with the peer's error, None to ignore that too.
    """

    def __init__(self, on_error: Callable[[BaseException], object] | None = None) -> None:
        self._on_error = on_error

    def end(self, result: Any, error: BaseException | None) -> None:
        if self._on_error is not None and isinstance(error, PeerError | RemoteProtocolError):
            self._on_error(error)

    def on_progress(self, event: ProgressReceived) -> None:
        raise AssertionError("the request has no progress token")  # pragma: no cover


def deliver(event: Event) -> None:
    """Pass `event` to the `PendingRequest` that it concerns, its `token`, if there is one."""
    if isinstance(event, ResultReceived):
        if event.problems:
            event.token.on_problems(event.problems.values())
        event.token.end(event.result, None)
    elif isinstance(event, ErrorReceived):
        event.token.end(None, event.error)
    elif isinstance(event, ProgressReceived):
        event.token.on_progress(event)
    elif isinstance(event, InputRequested):
        event.token.on_input_required(event)
    elif isinstance(event, TaskCreated):
        event.token.on_task_created(event)
    elif isinstance(event, ConnectionClosed):
        for pending in event.lost:
            pending.end(None, connection_lost(event))


def connection_lost(event: ConnectionClosed) -> ConnectionLost:
    """Return the exception to raise in a pending call: a new one for each."""
    return ConnectionLost("the client was closed" if event.error is None else str(event.error))
