"""Requests for input that the client runs as tasks (2025-11-25): polling, and taking the response.

The server polls its client as a client polls a server. All requests belong to the request of the
client that needs the input, so they end with it.

Source: basic/utilities/tasks (2025-11-25).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar

from mcp_core import types as t
from mcp_core._errors import LocalProtocolError
from mcp_core.protocol.messages._pending import IgnoredRequest
from mcp_core.registry._input_requests import NestedRequests
from mcp_core.tasks._record import FINAL_STATUSES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from msgspec import Struct

    from mcp_core.registry._input_requests import NestedRequestSender, SingleRequest
    from mcp_core.runtime._runtime import Runtime

__all__ = ["run_nested_task"]

T = TypeVar("T")

# Seconds between two polls, if the client names no interval, and the limits of a client's interval.
_INTERVAL: Final = 1.0
_MIN_INTERVAL: Final = 0.1
_MAX_INTERVAL: Final = 60.0


async def run_nested_task(request: SingleRequest[T], runtime: Runtime) -> T:
    """Send a request that asks for a task, and return the value that `request` reads.

    If this is cancelled, so is the task.
    """
    answer: Any = await runtime.send_nested(request)
    if not isinstance(answer, t.Task):
        result: T = answer
        return result
    sender = request.sender
    task: t.Task | t.GetTaskResult = answer
    params = t.GetTaskParams(task_id=answer.task_id)
    try:
        while task.status not in (*FINAL_STATUSES, "input_required"):
            await runtime.send_nested(_Pause(sender, _interval(task)))
            task = await runtime.send_nested(_TaskRequest(sender, "tasks/get", params))
        payload = t.GetTaskPayloadParams(task_id=answer.task_id)
        raw = await runtime.send_nested(_TaskRequest(sender, "tasks/result", payload))
    except BaseException:
        if task.status not in FINAL_STATUSES:
            _cancel(sender, answer.task_id)
        raise
    return request.read_raw(raw)


def _interval(task: t.Task | t.GetTaskResult) -> float:
    milliseconds = task.poll_interval
    seconds = _INTERVAL if milliseconds is None else milliseconds / 1000
    return min(max(seconds, _MIN_INTERVAL), _MAX_INTERVAL)


def _cancel(sender: NestedRequestSender, task_id: str) -> None:
    host = sender.host
    params = t.CancelTaskParams(task_id=task_id)
    try:
        host.conn.send_request("tasks/cancel", params, token=IgnoredRequest())
    except LocalProtocolError:
        return  # the connection is closed, or the client cannot cancel
    host.runtime.pump()


class _Pause(NestedRequests[None]):
    """The wait before the next poll, as `NestedRequests` without a request."""

    def __init__(self, sender: NestedRequestSender, seconds: float) -> None:
        super().__init__(sender)
        self.seconds = seconds

    def _make_requests(self) -> Mapping[str, tuple[str, Struct]]:
        return {}

    def _make_result(self, responses: Mapping[str, Any]) -> None:
        return None


class _TaskRequest(NestedRequests[Any]):
    """One request about a task of the client."""

    def __init__(self, sender: NestedRequestSender, method: str, params: Struct) -> None:
        super().__init__(sender)
        self._request = (method, params)

    def _make_requests(self) -> Mapping[str, tuple[str, Struct]]:
        return {"": self._request}

    def _make_result(self, responses: Mapping[str, Any]) -> Any:
        return responses[""]
