"""The one table of methods: every request and notification of every revision, one row each.

Rules of this file:

1. A method that a revision does not have is a row whose `[since, until)` leaves the revision out. Nothing else says so.
2. A row carries whatever depends on the method alone: who receives it, its types, the capability it needs, what it does
   to the life cycle. Code that asks `if method == ...` wants a column here instead.
3. A name may have two rows if they differ in direction over time; their params have one type all the same.

It does not know which revision is spoken (`_dialects.py` picks the rows) nor what was negotiated (`_capabilities.py`).
Source: the unions ClientRequest, ServerRequest, ClientNotification and ServerNotification of each revision's schema.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct
from msgspec.structs import force_setattr

from . import types as t
from ._jsonrpc import reader
from .types._revisions import R_2024_11_05, R_2025_03_26, R_2025_06_18, R_2025_11_25, R_2026_07_28

if TYPE_CHECKING:
    from collections.abc import Callable

    from msgspec import Raw

__all__ = ["INPUTS", "METHODS", "NEVER", "Method", "Role", "Step"]


class Role(enum.Enum):
    """Which end of a conversation."""

    __hash__ = object.__hash__

    CLIENT = "client"
    SERVER = "server"

    @property
    def other(self) -> Role:
        return Role.SERVER if self is Role.CLIENT else Role.CLIENT


class Step(enum.Enum):
    """What a message means to the life cycle of a connection; the columns of `_state.LIFECYCLE`."""

    __hash__ = object.__hash__

    INITIALIZE = "initialize"
    INITIALIZED = "initialized"
    PING = "ping"
    WORK = "work"
    STATELESS = "stateless"
    CLOSE = "close"


# The `until` of a method that the newest revision still has.
NEVER: Final = "never"


def _unread(data: Raw | bytes) -> Any:
    raise AssertionError("a row reads its own types")  # pragma: no cover - replaced by every row


class Method(Struct, frozen=True, eq=False):
    """One row: a request, or a notification if `result` is None.

    `to` is the role that receives it, None for both. `needs` is the path of the capability that makes it legal: the
    receiver's for a request, the sender's for a notification. `input_ok`: its answer may be `input_required`
    (revision 2026-07-28). `name_field`: the member of the params that names what is asked for. `metered`: it counts against
    `Limits.tool_calls`. `lasting`: it is open for as long as both sides like. `acts`: carried out twice it is not what it is
    carried out once.
    """

    name: str
    to: Role | None
    params: type[Struct]
    result: type[Struct] | None = None
    since: str = R_2024_11_05
    until: str = NEVER
    needs: tuple[str, ...] = ()
    step: Step = Step.WORK
    input_ok: bool = False
    name_field: str = ""
    metered: bool = False
    lasting: bool = False
    acts: bool = False
    # Derived, so that a message costs no look-up by type.
    read_params: Callable[[Raw | bytes], Any] = _unread
    read_result: Callable[[Raw | bytes], Any] = _unread
    has_meta: bool = False

    def __post_init__(self) -> None:
        force_setattr(self, "read_params", reader(self.params))
        force_setattr(self, "has_meta", issubclass(self.params, t.RequestParams))
        if self.result is not None:
            force_setattr(self, "read_result", reader(self.result))

    def __repr__(self) -> str:
        kind = "notification" if self.result is None else "request"
        return f"<{kind} {self.name} [{self.since}, {self.until})>"


C, S, BOTH = Role.CLIENT, Role.SERVER, None
TASKS: Final = ("extensions", "io.modelcontextprotocol/tasks")

# fmt: off
METHODS: Final[tuple[Method, ...]] = (
    # Opening
    Method("initialize", S, t.InitializeParams, t.InitializeResult, until=R_2026_07_28, step=Step.INITIALIZE),
    Method("server/discover", S, t.DiscoverParams, t.DiscoverResult, since=R_2026_07_28),
    Method("ping", BOTH, t.PingParams, t.EmptyResult, until=R_2026_07_28, step=Step.PING),

    # What a server offers
    Method("tools/list", S, t.PaginatedParams, t.ListToolsResult, needs=("tools",)),
    Method("tools/call", S, t.CallToolParams, t.CallToolResult, needs=("tools",), input_ok=True, name_field="name", metered=True, acts=True),
    Method("resources/list", S, t.PaginatedParams, t.ListResourcesResult, needs=("resources",)),
    Method("resources/templates/list", S, t.PaginatedParams, t.ListResourceTemplatesResult, needs=("resources",)),
    Method("resources/read", S, t.ReadResourceParams, t.ReadResourceResult, needs=("resources",), input_ok=True, name_field="uri"),
    Method("resources/subscribe", S, t.SubscribeParams, t.EmptyResult, until=R_2026_07_28, needs=("resources", "subscribe")),
    Method("resources/unsubscribe", S, t.UnsubscribeParams, t.EmptyResult, until=R_2026_07_28, needs=("resources", "subscribe")),
    Method("prompts/list", S, t.PaginatedParams, t.ListPromptsResult, needs=("prompts",)),
    Method("prompts/get", S, t.GetPromptParams, t.GetPromptResult, needs=("prompts",), input_ok=True, name_field="name"),
    Method("completion/complete", S, t.CompleteParams, t.CompleteResult, until=R_2025_03_26, metered=True),  # which has no capability for it
    Method("completion/complete", S, t.CompleteParams, t.CompleteResult, since=R_2025_03_26, needs=("completions",), metered=True),
    Method("logging/setLevel", S, t.SetLevelParams, t.EmptyResult, until=R_2026_07_28, needs=("logging",)),
    Method("subscriptions/listen", S, t.ListenParams, t.ListenResult, since=R_2026_07_28, lasting=True),

    # What a server asks of a client. In 2026-07-28 these are values inside an answer: see INPUTS.
    Method("sampling/createMessage", C, t.CreateMessageParams, t.CreateMessageResult, until=R_2026_07_28, needs=("sampling",)),
    Method("roots/list", C, t.ListRootsParams, t.ListRootsResult, until=R_2026_07_28, needs=("roots",)),
    Method("elicitation/create", C, t.ElicitParams, t.ElicitResult, since=R_2025_06_18, until=R_2026_07_28, needs=("elicitation",)),

    # Tasks: part of 2025-11-25, where either side may run them, and an extension of 2026-07-28, where servers do
    Method("tasks/get", BOTH, t.GetTaskParams, t.GetTaskResult, since=R_2025_11_25, until=R_2026_07_28, needs=("tasks",), name_field="task_id"),
    Method("tasks/result", BOTH, t.GetTaskPayloadParams, t.GetTaskPayloadResult, since=R_2025_11_25, until=R_2026_07_28, needs=("tasks",), name_field="task_id"),
    Method("tasks/list", BOTH, t.PaginatedParams, t.ListTasksResult, since=R_2025_11_25, until=R_2026_07_28, needs=("tasks", "list")),
    Method("tasks/cancel", BOTH, t.CancelTaskParams, t.CancelTaskResult, since=R_2025_11_25, until=R_2026_07_28, needs=("tasks", "cancel"), name_field="task_id"),
    Method("tasks/get", S, t.GetTaskParams, t.GetTaskResult, since=R_2026_07_28, needs=TASKS, name_field="task_id"),
    Method("tasks/update", S, t.UpdateTaskParams, t.UpdateTaskResult, since=R_2026_07_28, needs=TASKS, name_field="task_id", acts=True),
    Method("tasks/cancel", S, t.CancelTaskParams, t.CancelTaskResult, since=R_2026_07_28, needs=TASKS, name_field="task_id"),

    # Notifications
    Method("notifications/initialized", S, t.InitializedParams, until=R_2026_07_28, step=Step.INITIALIZED),
    Method("notifications/cancelled", BOTH, t.CancelledParams, step=Step.PING),
    Method("notifications/progress", BOTH, t.ProgressParams, until=R_2026_07_28),
    Method("notifications/progress", C, t.ProgressParams, since=R_2026_07_28),
    Method("notifications/message", C, t.LoggingMessageParams, needs=("logging",), step=Step.PING),
    Method("notifications/tools/list_changed", C, t.ListChangedParams, needs=("tools", "list_changed")),
    Method("notifications/prompts/list_changed", C, t.ListChangedParams, needs=("prompts", "list_changed")),
    Method("notifications/resources/list_changed", C, t.ListChangedParams, needs=("resources", "list_changed")),
    Method("notifications/resources/updated", C, t.ResourceUpdatedParams, needs=("resources", "subscribe")),
    Method("notifications/roots/list_changed", S, t.ListChangedParams, until=R_2026_07_28, needs=("roots", "list_changed")),
    Method("notifications/elicitation/complete", C, t.ElicitationCompleteParams, since=R_2025_11_25, until=R_2026_07_28),
    Method("notifications/tasks/status", BOTH, t.TaskStatusParams, since=R_2025_11_25, until=R_2026_07_28, needs=("tasks",)),
    Method("notifications/subscriptions/acknowledged", C, t.AcknowledgedParams, since=R_2026_07_28),
    Method("notifications/tasks", C, t.TaskStatusParams, since=R_2026_07_28, needs=TASKS),
)

# What may stand in an `input_required` answer of 2026-07-28: method, capability of the client, params, answer.
INPUTS: Final[tuple[Method, ...]] = (
    Method("elicitation/create", C, t.ElicitParams, t.ElicitResult, since=R_2026_07_28, needs=("elicitation",)),
    Method("sampling/createMessage", C, t.CreateMessageParams, t.CreateMessageResult, since=R_2026_07_28, needs=("sampling",)),
    Method("roots/list", C, t.ListRootsParams, t.ListRootsResult, since=R_2026_07_28, needs=("roots",)),
)
# fmt: on
