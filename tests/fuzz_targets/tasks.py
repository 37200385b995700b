"""The tasks of the server broken on purpose: 2025-11-25's, and the extension's."""

from __future__ import annotations

import threading
import time
import uuid
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.fuzz_targets.catalog import Json

__all__ = ["FORM", "TASKS_EXTENSION", "Task", "TaskStore", "text_result"]

TASKS_EXTENSION: Final = "io.modelcontextprotocol/tasks"
FORM: Final[Json] = {
    "message": "What is your name?",
    "requestedSchema": {
        "type": "object",
        "properties": {"name": {"type": "string"}},
        "required": ["name"],
    },
}
_MAX_TASKS: Final = 200
_TTL: Final = 60_000  # milliseconds, unless the client asks for another one
_MAX_TTL: Final = 3_600_000
_POLL_INTERVAL: Final = 20  # milliseconds
FINAL: Final = ("completed", "failed", "cancelled")


def text_result(text: str, *, is_error: bool = False) -> Json:
    """Return a result of a tool with one text block."""
    result: Json = {"content": [{"type": "text", "text": text}]}
    if is_error:
        result["isError"] = True
    return result


class Task:
    """One task, of which `run` is the work. Its condition guards everything."""

    def __init__(self, store: TaskStore, id: str, owner: str, revision: str, ttl: int) -> None:
        self.id = id
        self.owner = owner
        self.revision = revision
        self.status = "working"
        self.created = self.updated = datetime.now(UTC)
        self.expires = time.monotonic() + ttl / 1_000
        self.ttl = ttl
        self.result: Json | None = None
        self.error: Json | None = None
        self.inputs: dict[str, Json] = {}
        self.responses: dict[str, Any] = {}
        self.condition = threading.Condition(threading.RLock())
        self.on_change: Callable[[Task], None] = lambda task: None
        self._store = store
        self._shown_cancelled = False

    def view(self, *, detailed: bool = False) -> Json:
        """Return the task as its revision shows it."""
        with self.condition:
            if self.status == "cancelled" and self._store.completes_cancelled:
                if self._shown_cancelled:
                    self.status, self.result = "completed", text_result("done")
                self._shown_cancelled = True
            view: Json = {
                "taskId": self.id,
                "status": self.status,
                "createdAt": self.created.isoformat(),
                "lastUpdatedAt": self.updated.isoformat(),
            }
            is_modern = self.revision == "2026-07-28"
            if self._store.shows_ttl:
                view["ttlMs" if is_modern else "ttl"] = self.ttl
            view["pollIntervalMs" if is_modern else "pollInterval"] = _POLL_INTERVAL
            if is_modern and detailed:
                view |= self._details()
            return view

    def _details(self) -> Json:
        if self.status == "input_required":
            return {"inputRequests": dict(self.inputs)}
        if self.status == "completed":
            return {"result": {"resultType": "complete", **(self.result or {})}}
        if self.status != "failed":
            return {}
        if self.error is None:
            return {"result": {"resultType": "complete", **(self.result or {})}}
        if self._store.adds_result:
            return {"error": self.error, "result": text_result("half done")}
        return {"error": self.error}

    def change(self, status: str, *, result: Json | None = None, error: Json | None = None) -> bool:
        """Change the status, unless it is final. Return True if it was changed."""
        with self.condition:
            if self.status in FINAL:
                return False
            self.status, self.result, self.error = status, result, error
            self.updated = datetime.now(UTC)
            self.inputs = {}
            self.condition.notify_all()
        self.on_change(self)
        return True

    def finish(self, result: Json) -> None:
        """End the task with the result of its tool."""
        is_failed = bool(result.get("isError")) and (
            self.revision == "2025-11-25" or self._store.fails_on_tool_error
        )
        self.change("failed" if is_failed else "completed", result=result)

    def ask(self, key: str, request: Json) -> Any:
        """Wait for input that the client gives by tasks/update; None if the task has ended."""
        with self.condition:
            if self.status in FINAL:
                return None
            self.responses.pop(key, None)
            self.inputs = {key: request}
            self.status = "input_required"
            self.updated = datetime.now(UTC)
        self.on_change(self)
        with self.condition:
            while key not in self.responses:
                if self.status in FINAL or not self.condition.wait(self.expires - time.monotonic()):
                    return None
            return self.responses[key]

    def update(self, responses: Json) -> None:
        """Take the responses to outstanding requests, and ignore others."""
        with self.condition:
            for key in responses.keys() & self.inputs.keys():
                self.responses[key] = responses[key]
                del self.inputs[key]
            if not self.inputs and self.status == "input_required":
                self.status = "working"
                self.updated = datetime.now(UTC)
            self.condition.notify_all()

    def wait(self, seconds: float) -> bool:
        """Wait for the end of the task, and return True if it came."""
        end = time.monotonic() + seconds
        with self.condition:
            while self.status not in FINAL:
                left = end - time.monotonic()
                if left <= 0:
                    return False
                self.condition.wait(left)
        return True


class TaskStore:
    """The tasks of all clients of the process, each with its owner."""

    def __init__(self, fault: str) -> None:
        self.completes_cancelled = fault == "cancelled-task-completes"
        self.adds_result = fault == "result-on-failed-task"
        self.fails_on_tool_error = fault == "tool-error-fails-task"
        self.shows_ttl = fault != "task-without-ttl"
        self._is_guessable = fault == "guessable-task-ids"
        self._ignores_owner = fault == "serves-other-owner"
        self._tasks: dict[str, Task] = {}
        self._lock = threading.Lock()
        self._count = 0

    def create(self, owner: str, revision: str, ttl: int | None) -> Task | None:
        """Return a new task, or None if there are too many."""
        with self._lock:
            self._drop_expired()
            if len(self._tasks) >= _MAX_TASKS:
                self._drop_final()
            if len(self._tasks) >= _MAX_TASKS:
                return None
            self._count += 1
            id = str(self._count) if self._is_guessable else uuid.uuid4().hex
            bounded = _TTL if ttl is None else max(1, min(ttl, _MAX_TTL))
            task = self._tasks[id] = Task(self, id, owner, revision, bounded)
            return task

    def find(self, owner: str, revision: str, id: Any) -> Task | None:
        """Return a task of an owner, or None."""
        with self._lock:
            self._drop_expired()
            task = self._tasks.get(id) if isinstance(id, str) else None
        if task is None or task.revision != revision:
            return None
        return task if task.owner == owner or self._ignores_owner else None

    def of(self, owner: str) -> list[Task]:
        """Return the tasks of an owner in 2025-11-25, oldest first."""
        with self._lock:
            self._drop_expired()
            return [
                each
                for each in self._tasks.values()
                if (each.owner, each.revision) == (owner, "2025-11-25")
            ]

    def _drop_expired(self) -> None:
        now = time.monotonic()
        for id, task in list(self._tasks.items()):
            if task.expires <= now:
                del self._tasks[id]

    def _drop_final(self) -> None:
        for id, task in list(self._tasks.items()):
            if task.status in FINAL:
                del self._tasks[id]
                return
