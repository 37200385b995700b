"""Sharing at run time: the bus that joins a served server to its other workers, and a store.

A driver enters `WorkerBus.opened` around all connections of a server that has a `store=`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcp_core._on_first_use import names_on_first_use

from ._bus import WorkerBus as WorkerBus
from ._bus import check_sharing as check_sharing
from ._memory_store import MemoryStore as MemoryStore
from ._remote_change import RemoteChange as RemoteChange

if TYPE_CHECKING:
    from ._contract import check_session_store as check_session_store

__all__ = ["MemoryStore", "RemoteChange", "WorkerBus", "check_session_store", "check_sharing"]

# For tests only.
_MODULES = {"._contract": ("check_session_store",)}

__getattr__ = names_on_first_use(__name__, _MODULES)


def __dir__() -> list[str]:
    return __all__
