"""Adapters that do I/O for every driver: stores, traces in files, a process that serves a file.

Each is loaded on first use: a program rarely has all of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcp_core._on_first_use import names_on_first_use

if TYPE_CHECKING:
    from ._http1_reader import H11ResponseReader as H11ResponseReader
    from ._last_deadline import LastDeadline as LastDeadline
    from ._listening_sockets import listening_sockets as listening_sockets
    from ._recorder import CannotRecord as CannotRecord
    from ._recorder import ChildRecorder as ChildRecorder
    from ._recorder import LineRecorder as LineRecorder
    from ._recorder import Recorder as Recorder
    from ._recorder import Recording as Recording
    from ._recorder import StreamRecorder as StreamRecorder
    from ._recording_options import add_recording_options as add_recording_options
    from ._recording_options import read_recording as read_recording
    from ._redis_store import RedisStore as RedisStore
    from ._redis_tasks import RedisTaskStore as RedisTaskStore
    from ._run_options import HttpRunOptions as HttpRunOptions
    from ._run_options import RunOptions as RunOptions
    from ._run_options import add_run_options as add_run_options
    from ._run_options import listen_address as listen_address
    from ._run_options import read_run_options as read_run_options
    from ._served_source import ServedSource as ServedSource
    from ._served_source import ServedSourceError as ServedSourceError
    from ._served_source import is_of_served_code as is_of_served_code
    from ._sqlite import SqliteTaskStore as SqliteTaskStore
    from ._stderr_copy import StderrCopy as StderrCopy
    from ._trace_directory import TraceDirectory as TraceDirectory

__all__ = [
    "CannotRecord",
    "ChildRecorder",
    "H11ResponseReader",
    "HttpRunOptions",
    "LastDeadline",
    "LineRecorder",
    "Recorder",
    "Recording",
    "RedisStore",
    "RedisTaskStore",
    "RunOptions",
    "ServedSource",
    "ServedSourceError",
    "SqliteTaskStore",
    "StderrCopy",
    "StreamRecorder",
    "TraceDirectory",
    "add_recording_options",
    "add_run_options",
    "is_of_served_code",
    "listen_address",
    "listening_sockets",
    "read_recording",
    "read_run_options",
]

_MODULES = {
    "._http1_reader": ("H11ResponseReader",),
    "._last_deadline": ("LastDeadline",),
    "._listening_sockets": ("listening_sockets",),
    "._recorder": (
        "CannotRecord",
        "ChildRecorder",
        "LineRecorder",
        "Recorder",
        "Recording",
        "StreamRecorder",
    ),
    "._recording_options": ("add_recording_options", "read_recording"),
    "._redis_store": ("RedisStore",),
    "._redis_tasks": ("RedisTaskStore",),
    "._run_options": (
        "HttpRunOptions",
        "RunOptions",
        "add_run_options",
        "listen_address",
        "read_run_options",
    ),
    "._served_source": ("ServedSource", "ServedSourceError", "is_of_served_code"),
    "._sqlite": ("SqliteTaskStore",),
    "._stderr_copy": ("StderrCopy",),
    "._trace_directory": ("TraceDirectory",),
}

__getattr__ = names_on_first_use(__name__, _MODULES)


def __dir__() -> list[str]:
    return __all__
