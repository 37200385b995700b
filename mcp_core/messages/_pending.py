"""The token of our request that waits for its response, and the delivery of events to it."""

from __future__ import annotations

import abc
from typing import TYPE_CHECKING, Any

from mcp_core._errors import ConnectionLost, RemoteProtocolError

from ._events import (
    ConnectionClosed,
    ErrorReceived,
    InputRequested,
    ProgressReceived,
    ResultReceived,
    TaskCreated,
)

if TYPE_CHECKING:
    from ._events import Event

__all__ = [
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


def deliver(event: Event) -> None:
    """Pass `event` to the `PendingRequest` that it concerns, its `token`, if there is one."""
    if isinstance(event, ResultReceived):
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
