"""Tasks: calls that outlive their request, as records that a pure function changes.

A `TaskStore` keeps the records. `mcp_core.runtime.tasks` runs handlers as tasks.
"""

from __future__ import annotations

from ._record import FINAL_STATUSES as FINAL_STATUSES
from ._record import TaskCall as TaskCall
from ._record import TaskKey as TaskKey
from ._record import TaskLimits as TaskLimits
from ._record import TaskQuota as TaskQuota
from ._record import TaskRecord as TaskRecord
from ._record import decode_record as decode_record
from ._record import encode_record as encode_record
from ._states import TRANSITIONS as TRANSITIONS
from ._states import Cancel as Cancel
from ._states import Complete as Complete
from ._states import Fail as Fail
from ._states import ReceiveResponse as ReceiveResponse
from ._states import RequestInput as RequestInput
from ._states import SetMessage as SetMessage
from ._states import TaskAction as TaskAction
from ._states import TaskExpired as TaskExpired
from ._states import transition as transition
from ._store import TaskLimitName as TaskLimitName
from ._store import TaskQuotaExceeded as TaskQuotaExceeded
from ._store import TaskStore as TaskStore
from ._store import TaskStoreError as TaskStoreError

__all__ = [
    "FINAL_STATUSES",
    "TRANSITIONS",
    "Cancel",
    "Complete",
    "Fail",
    "ReceiveResponse",
    "RequestInput",
    "SetMessage",
    "TaskAction",
    "TaskCall",
    "TaskExpired",
    "TaskKey",
    "TaskLimitName",
    "TaskLimits",
    "TaskQuota",
    "TaskQuotaExceeded",
    "TaskRecord",
    "TaskStore",
    "TaskStoreError",
    "decode_record",
    "encode_record",
    "transition",
]
