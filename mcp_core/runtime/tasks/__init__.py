"""Tasks at run time: the store in memory, and the jobs of handlers that outlive their request.

A driver enters `TaskService.opened` around all connections of a server, with a `TaskRuntime`.
"""

from __future__ import annotations

from ._memory_store import MemoryTaskStore as MemoryTaskStore
from ._runtime import TaskRuntime as TaskRuntime
from ._service import TaskService as TaskService

__all__ = ["MemoryTaskStore", "TaskRuntime", "TaskService"]
