"""Adapters that do I/O for every driver: stores, traces in files, and the end of a process.

Each is loaded on first use: a program rarely has all of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._last_deadline import LastDeadline as LastDeadline
    from ._recorder import CannotRecord as CannotRecord
    from ._recorder import ChildRecorder as ChildRecorder
    from ._recorder import LineRecorder as LineRecorder
    from ._recorder import Recorder as Recorder
    from ._recorder import Recording as Recording
    from ._recorder import StreamRecorder as StreamRecorder
    from ._sqlite import SqliteTaskStore as SqliteTaskStore
    from ._trace_directory import TraceDirectory as TraceDirectory

__all__ = [
    "CannotRecord",
    "ChildRecorder",
    "LastDeadline",
    "LineRecorder",
    "Recorder",
    "Recording",
    "SqliteTaskStore",
    "StreamRecorder",
    "TraceDirectory",
]


def __getattr__(name: str) -> Any:
    if name == "SqliteTaskStore":
        from ._sqlite import SqliteTaskStore

        return SqliteTaskStore
    if name == "TraceDirectory":
        from ._trace_directory import TraceDirectory

        return TraceDirectory
    if name == "LastDeadline":
        from ._last_deadline import LastDeadline

        return LastDeadline
    if name in __all__:
        from . import _recorder

        return getattr(_recorder, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
