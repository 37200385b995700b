"""Sharing among the workers of one server: their messages, and the protocol of their store.

`mcp_core.runtime.sharing` has the store in memory, `mcp_core.adapters` the one in Redis.
"""

from __future__ import annotations

from ._breaker import StoreBreaker as StoreBreaker
from ._changes import SharedChanges as SharedChanges
from ._messages import ChangesPublished as ChangesPublished
from ._messages import InvalidWorkerMessage as InvalidWorkerMessage
from ._messages import MessageCodec as MessageCodec
from ._messages import TaskChanged as TaskChanged
from ._messages import WorkerMessage as WorkerMessage
from ._messages import merged as merged
from ._state_keys import read_state_keys as read_state_keys
from ._store import Position as Position
from ._store import SessionStore as SessionStore
from ._store import SessionStoreError as SessionStoreError
from ._store import WorkerBatch as WorkerBatch
from ._store import WorkerPlace as WorkerPlace

__all__ = [
    "ChangesPublished",
    "InvalidWorkerMessage",
    "MessageCodec",
    "Position",
    "SessionStore",
    "SessionStoreError",
    "SharedChanges",
    "StoreBreaker",
    "TaskChanged",
    "WorkerBatch",
    "WorkerMessage",
    "WorkerPlace",
    "merged",
    "read_state_keys",
]
