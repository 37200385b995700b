"""Adapters that do I/O for every driver: stores, traces in files, and the end of a process.

Each is loaded on first use: a program rarely has all of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcp_core._on_first_use import names_on_first_use

if TYPE_CHECKING:
    from ._last_deadline import LastDeadline as LastDeadline
    from ._recorder import CannotRecord as CannotRecord
    from ._recorder import ChildRecorder as ChildRecorder
    from ._recorder import LineRecorder as LineRecorder
    from ._recorder import Recorder as Recorder
    from ._recorder import Recording as Recording
    from ._recorder import StreamRecorder as StreamRecorder
    from ._redis_store import RedisStore as RedisStore
    from ._redis_tasks import RedisTaskStore as RedisTaskStore
    from ._sqlite import SqliteTaskStore as SqliteTaskStore
    from ._trace_directory import TraceDirectory as TraceDirectory

__all__ = [
    "CannotRecord",
    "ChildRecorder",
    "LastDeadline",
    "LineRecorder",
    "Recorder",
    "Recording",
    "RedisStore",
    "RedisTaskStore",
    "SqliteTaskStore",
    "StreamRecorder",
    "TraceDirectory",
]

_MODULES = {
    "._last_deadline": ("LastDeadline",),
    "._recorder": (
        "CannotRecord",
        "ChildRecorder",
        "LineRecorder",
        "Recorder",
        "Recording",
        "StreamRecorder",
    ),
    "._redis_store": ("RedisStore",),
    "._redis_tasks": ("RedisTaskStore",),
    "._sqlite": ("SqliteTaskStore",),
    "._trace_directory": ("TraceDirectory",),
}

__getattr__ = names_on_first_use(__name__, _MODULES)


def __dir__() -> list[str]:
    return __all__
