"""A task's progress and log messages, for the session in which its client created the task.

Only 2025-11-25 has that (basic/utilities/tasks, Task Progress Notifications). The session's service
is referenced weakly: a task may outlive it by hours.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import ref

from mcp_core.protocol.connection._state import State
from mcp_core.types import META_RELATED_TASK

if TYPE_CHECKING:
    from mcp_core.runtime._service import Service
    from mcp_core.types import LoggingLevel, RequestId

__all__ = ["TaskChannel"]


class TaskChannel:
    """Sends progress and log messages of one task, as long as its session lasts.

    Create it before the request is answered. Messages are dropped while the client is slow to read:
    a task doesn't wait for its client.

    Args:
        service: the session's server side.
        request_id: the request that becomes the task.
        task_id: the task.
    """

    def __init__(self, service: Service, request_id: RequestId, task_id: str) -> None:
        self._service = ref(service)
        self._task_id = task_id
        self._progress = service.conn.task_progress(request_id, task_id)

    def __repr__(self) -> str:
        service = self._service()
        return f"<TaskChannel, {'closed' if service is None or service.closed else 'open'}>"

    def send_progress(self, progress: float, total: float | None, message: str | None) -> None:
        """Send progress, if the client has requested it and it has increased."""
        service = self._writable_service()
        if service is None or self._progress is None:
            return
        self._progress.related = self._waiting_result(service)
        if service.conn.send_progress(self._progress, progress, total, message):
            service.runtime.pump()

    def send_log(self, level: LoggingLevel, data: Any, logger: str | None) -> None:
        """Send a log message, if the client wants messages of that level."""
        service = self._writable_service()
        if service is None:
            return
        meta = {META_RELATED_TASK: {"taskId": self._task_id}}
        related = self._waiting_result(service)
        if service.conn.send_log(level, data, logger=logger, related=related, meta=meta):
            service.runtime.pump()

    def _writable_service(self) -> Service | None:
        service = self._service()
        if service is None or service.conn.state is not State.READY:
            return None
        blocked = service.runtime.write_blocked(self._waiting_result(service))
        return None if blocked else service

    def _waiting_result(self, service: Service) -> RequestId | None:
        """Return the request for the result that waits, None if the client doesn't wait.

        The client certainly reads its response stream. Other messages go to the session's stream.
        """
        waiting = service.waiting_results
        return next((id for id, task in waiting.items() if task == self._task_id), None)
