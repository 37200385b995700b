"""Tasks at run time: the store in memory, and what runs handlers that outlive their request."""

from __future__ import annotations

from ._runtime import TaskRuntime as TaskRuntime

__all__ = ["TaskRuntime"]
