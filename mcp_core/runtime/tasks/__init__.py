"""Tasks at run time: the store in memory, and what runs handlers that outlive their request."""

from __future__ import annotations

from ._memory_store import MemoryTaskStore as MemoryTaskStore

__all__ = ["MemoryTaskStore"]
