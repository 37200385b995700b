"""A conversation's tasks."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final

from mcp_core.trace.judge._message import seconds
from mcp_core.trace.judge._sides import CLIENT, SERVER, other_side

from ._bounds import MAX_ENTRIES, put

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_core.trace.judge._message import SeenMessage, SeenRequest
    from mcp_core.trace.judge._sides import Side

__all__ = ["SeenTask", "TaskTable"]

MAX_TASK_ID: Final = 1_024  # characters
_MAX_KEYS: Final = 10_000  # of one task's input requests


class TaskTable:
    """Both sides' tasks in a conversation.

    Attributes:
        last_ids: the last two ids that each side has given out.
    """

    def __init__(self) -> None:
        self.last_ids: dict[Side, list[str]] = {CLIENT: [], SERVER: []}
        self._tasks: OrderedDict[tuple[Side, str], SeenTask] = OrderedDict()

    def find(self, owner: Side, id: Any) -> SeenTask | None:
        """Return the task with an id that `owner` runs, or None. Both sides can use the same id."""
        return self._tasks.get((owner, id)) if isinstance(id, str) else None

    def named_by(self, request: SeenRequest | SeenMessage) -> SeenTask | None:
        """Return the task that a request names, or None."""
        return self.find(other_side(request.sender), request.params.get("taskId"))

    def add(self, message: SeenMessage, request: SeenRequest, view: Mapping[str, Any]) -> None:
        """Add the task that a request became. `view` is what its response shows of the task."""
        id = view["taskId"]
        if len(id) > MAX_TASK_ID:
            return
        request.task = id
        put(self._tasks, (message.sender, id), SeenTask(view, message, request), MAX_ENTRIES)
        self.last_ids[message.sender] = [*self.last_ids[message.sender][-1:], id]

    def see(self, message: SeenMessage, view: Mapping[str, Any]) -> None:
        """Record what a message shows of one of its sender's tasks."""
        task = self.find(message.sender, view.get("taskId"))
        if task is not None:
            task.see(view, message)


class SeenTask:
    """A task: its id, the side that runs it, its last status and the line that reported it.

    Attributes:
        created, created_time, ttl: the line and time at which its id was given out, and for how
            many seconds, None without a limit.
        has_view: a `tasks/get` or `tasks/cancel` has found it.
        interval: seconds between polls, if its last view asks for that, else None.
        polled: when the requestor last polled; None if something since then allows an early poll.
        input_polls: how often the requestor has polled since it saw `input_required`.
        result_asked, result_given: the lines of the last `tasks/result` and of its response.
        is_error: its result is an error.
        keys: the keys of its input requests. For those in `answered`, the client sent a response;
            for those in `acknowledged`, the server confirmed it; those in `gone` were answered and
            are missing in a later view.
        update_line: the line of the last `tasks/update`.
    """

    __slots__ = (
        "acknowledged",
        "answered",
        "created",
        "created_time",
        "gone",
        "has_view",
        "id",
        "input_polls",
        "interval",
        "is_error",
        "keys",
        "line",
        "owner",
        "polled",
        "request",
        "result_asked",
        "result_given",
        "revisions",
        "status",
        "ttl",
        "update_line",
    )

    def __init__(self, view: Mapping[str, Any], message: SeenMessage, request: SeenRequest) -> None:
        self.id: str = view["taskId"]
        self.owner = message.sender
        self.request = request
        self.revisions = request.revisions
        self.line = self.created = message.line
        self.created_time = message.time
        status = view.get("status")
        self.status: str = status if isinstance(status, str) else ""
        self.ttl = seconds(view.get("ttlMs", view.get("ttl")))
        self.interval = seconds(view.get("pollIntervalMs", view.get("pollInterval")))
        self.has_view = False
        self.polled: float | None = None
        self.input_polls = 0
        self.result_asked = 0
        self.result_given = 0
        self.is_error = False
        self.keys: set[str] = set()
        self.answered: set[str] = set()
        self.acknowledged: set[str] = set()
        self.gone: set[str] = set()
        self.update_line = 0

    def see(self, view: Mapping[str, Any], message: SeenMessage) -> None:
        """Record what a message shows of the task."""
        status = view.get("status")
        if isinstance(status, str):
            if status != "input_required":
                self.input_polls = 0
            self.status, self.line = status, message.line
        self.interval = seconds(view.get("pollIntervalMs", view.get("pollInterval")))
        if message.kind == "notification":
            self.polled = None
        else:
            self.has_view = True
        requests = view.get("inputRequests")
        open_keys = requests.keys() if isinstance(requests, dict) else set()
        if message.request is not None and message.request.line > self.update_line:
            self.gone |= self.answered - open_keys
        if isinstance(requests, dict) and len(self.keys) < _MAX_KEYS:
            self.keys.update(requests)

    def receive_request(self, message: SeenMessage) -> None:
        """Record a request that names the task."""
        match message.method:
            case "tasks/get":
                self.input_polls += self.status == "input_required"
                return
            case "tasks/result":
                self.result_asked = message.line
            case "tasks/update":
                responses = message.params.get("inputResponses")
                if isinstance(responses, dict) and len(self.answered) < _MAX_KEYS:
                    self.answered.update(responses)
                    self.update_line = message.line
            case _:
                pass
        self.polled = None

    def receive_response(self, message: SeenMessage, request: SeenRequest) -> None:
        """Record the response to a request that names the task."""
        if request.method == "tasks/get":
            self.polled = request.time  # from an answered poll: a lost one can be repeated
        responses = request.params.get("inputResponses")
        if request.method == "tasks/update" and message.result is not None:
            self.acknowledged.update(responses if isinstance(responses, dict) else ())
        # Only a result counts: an error can be about the request itself.
        if request.method == "tasks/result" and message.result is not None:
            self.result_given = message.line
            self.is_error = message.result.get("isError") is True
