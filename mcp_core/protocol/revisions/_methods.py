"""The table of methods: every request and notification of every revision, one row each.

1. A revision has the methods whose range `[since, until)` includes it. `_dialects.py` selects the
   rows of each revision.
2. Everything that depends on the method alone is a column: the receiver, the types, the capability
   that it needs, its step in the life cycle. Add a column instead of writing `if method == ...`.
3. A name may have several rows, for example if its direction changed. All have one type of params.

Source: the unions ClientRequest, ServerRequest, ClientNotification and ServerNotification of the
schema of each revision.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any, Final

from msgspec import Raw, Struct
from msgspec.structs import force_setattr

from mcp_core import types as t
from mcp_core.protocol.jsonrpc._codec import reader
from mcp_core.types._revisions import (
    R_2024_11_05,
    R_2025_03_26,
    R_2025_06_18,
    R_2025_11_25,
    R_2026_07_28,
)

__all__ = ["INPUTS", "METHODS", "NEVER", "TASKS", "Method", "Role", "Step"]


class Role(enum.Enum):
    """The two ends of a connection."""

    __hash__ = object.__hash__

    CLIENT = "client"
    SERVER = "server"

    @property
    def other(self) -> Role:
        """The peer's role."""
        return Role.SERVER if self is Role.CLIENT else Role.CLIENT


class Step(enum.Enum):
    """The effect of a message on the life cycle of a connection: the keys of `_state.LIFECYCLE`."""

    __hash__ = object.__hash__

    INITIALIZE = "initialize"
    INITIALIZED = "initialized"
    PING = "ping"
    WORK = "work"
    STATELESS = "stateless"
    CLOSE = "close"


# The `until` of a method that wasn't removed: it sorts after every revision.
NEVER: Final = "never"


def _not_set(data: Raw | bytes) -> Any:
    raise AssertionError("a row sets its own readers")  # pragma: no cover - replaced by every row


def _as_sent(data: Raw | bytes) -> Any:
    """Return a result undecoded."""
    return data


class Method(Struct, frozen=True, eq=False):
    """One row: a request, or a notification if `result` is None.

    Attributes:
        name: its name on the wire, such as "tools/call".
        to: the role that receives it, None for both.
        params: the type of its params.
        result: the type of its result, None for a notification.
        since: the first revision that has it.
        until: the first revision that doesn't have it any more, or `NEVER`.
        needs: the path of the capability that it requires: of the receiver for a request, of the
            sender for a notification.
        asks: the path of the capability that the request's sender must have declared, beside
            what the receiver `needs`.
        step: its step in the connection's life cycle.
        input_ok: its result may be `input_required` (2026-07-28).
        task_needs: the path of the capability with which its receiver declares, in 2025-11-25, that
            it runs the request as a task if the params ask for one. Empty if the response is never
            a `CreateTaskResult`, in any revision.
        name_field: the field of the params that names the tool, resource, prompt or task.
        metered: it counts against `Limits.tool_calls`.
        long_lived: it has no result until one side ends it.
        non_idempotent: a second run may have another effect, so a transport never repeats it by
            itself.
        read_params: decodes its params from JSON. Derived from `params`.
        read_result: decodes its result from JSON. Derived from `result`.
        has_meta: its params may have `_meta`. Derived from `params`.
    """

    name: str
    to: Role | None
    params: type[Struct]
    result: type[Struct] | None = None
    since: str = R_2024_11_05
    until: str = NEVER
    needs: tuple[str, ...] = ()
    asks: tuple[str, ...] = ()
    step: Step = Step.WORK
    input_ok: bool = False
    task_needs: tuple[str, ...] = ()
    name_field: str = ""
    metered: bool = False
    long_lived: bool = False
    non_idempotent: bool = False
    # Derived from the types above, so that no message costs a look-up by type.
    read_params: Callable[[Raw | bytes], Any] = _not_set
    read_result: Callable[[Raw | bytes], Any] = _not_set
    has_meta: bool = False

    def __post_init__(self) -> None:
        force_setattr(self, "read_params", reader(self.params, null_is_absent=True))
        force_setattr(self, "has_meta", issubclass(self.params, t.RequestParams))
        if self.result is t.GetTaskPayloadResult:
            # The result of any request, which is decoded as the result of that one.
            force_setattr(self, "read_result", _as_sent)
        elif self.result is not None:
            force_setattr(self, "read_result", reader(self.result))

    def __repr__(self) -> str:
        kind = "notification" if self.result is None else "request"
        return f"<{kind} {self.name} [{self.since}, {self.until})>"


C, S, BOTH = Role.CLIENT, Role.SERVER, None
# The path at which both sides declare the extension for tasks. Its last member is the identifier.
TASKS: Final = ("extensions", "io.modelcontextprotocol/tasks")

# fmt: off
METHODS: Final[tuple[Method, ...]] = (
    # Opening
    Method("initialize", S, t.InitializeParams, t.InitializeResult, until=R_2026_07_28,
           step=Step.INITIALIZE),
    Method("server/discover", S, t.DiscoverParams, t.DiscoverResult, since=R_2026_07_28),
    Method("ping", BOTH, t.PingParams, t.EmptyResult, until=R_2026_07_28, step=Step.PING),

    # What a server offers
    Method("tools/list", S, t.PaginatedParams, t.ListToolsResult, needs=("tools",)),
    Method("tools/call", S, t.CallToolParams, t.CallToolResult, needs=("tools",), input_ok=True,
           task_needs=("tasks", "requests", "tools", "call"), name_field="name", metered=True,
           non_idempotent=True),
    Method("resources/list", S, t.PaginatedParams, t.ListResourcesResult, needs=("resources",)),
    Method("resources/templates/list", S, t.PaginatedParams, t.ListResourceTemplatesResult,
           needs=("resources",)),
    Method("resources/read", S, t.ReadResourceParams, t.ReadResourceResult, needs=("resources",),
           input_ok=True, name_field="uri"),
    Method("resources/subscribe", S, t.SubscribeParams, t.EmptyResult, until=R_2026_07_28,
           needs=("resources", "subscribe")),
    Method("resources/unsubscribe", S, t.UnsubscribeParams, t.EmptyResult, until=R_2026_07_28,
           needs=("resources", "subscribe")),
    Method("prompts/list", S, t.PaginatedParams, t.ListPromptsResult, needs=("prompts",)),
    Method("prompts/get", S, t.GetPromptParams, t.GetPromptResult, needs=("prompts",),
           input_ok=True, name_field="name"),
    # 2024-11-05 has no capability for completion.
    Method("completion/complete", S, t.CompleteParams, t.CompleteResult, until=R_2025_03_26,
           metered=True),
    Method("completion/complete", S, t.CompleteParams, t.CompleteResult, since=R_2025_03_26,
           needs=("completions",), metered=True),
    Method("logging/setLevel", S, t.SetLevelParams, t.EmptyResult, until=R_2026_07_28,
           needs=("logging",)),
    Method("subscriptions/listen", S, t.ListenParams, t.ListenResult, since=R_2026_07_28,
           long_lived=True),

    # Requests of the server. In 2026-07-28 they are values inside a result: see INPUTS.
    Method("sampling/createMessage", C, t.CreateMessageParams, t.CreateMessageResult,
           until=R_2026_07_28, needs=("sampling",),
           task_needs=("tasks", "requests", "sampling", "create_message")),
    Method("roots/list", C, t.ListRootsParams, t.ListRootsResult, until=R_2026_07_28,
           needs=("roots",)),
    Method("elicitation/create", C, t.ElicitParams, t.ElicitResult, since=R_2025_06_18,
           until=R_2026_07_28, needs=("elicitation",),
           task_needs=("tasks", "requests", "elicitation", "create")),

    # Tasks: part of 2025-11-25, for both sides; an extension of 2026-07-28, for servers
    Method("tasks/get", BOTH, t.GetTaskParams, t.GetTaskResult, since=R_2025_11_25,
           until=R_2026_07_28, needs=("tasks",), name_field="task_id"),
    Method("tasks/result", BOTH, t.GetTaskPayloadParams, t.GetTaskPayloadResult, since=R_2025_11_25,
           until=R_2026_07_28, needs=("tasks",), name_field="task_id"),
    Method("tasks/list", BOTH, t.PaginatedParams, t.ListTasksResult, since=R_2025_11_25,
           until=R_2026_07_28, needs=("tasks", "list")),
    Method("tasks/cancel", BOTH, t.CancelTaskParams, t.CancelTaskResult, since=R_2025_11_25,
           until=R_2026_07_28, needs=("tasks", "cancel"), name_field="task_id"),
    Method("tasks/get", S, t.GetTaskParams, t.GetTaskResult, since=R_2026_07_28, needs=TASKS,
           asks=TASKS, name_field="task_id"),
    Method("tasks/update", S, t.UpdateTaskParams, t.UpdateTaskResult, since=R_2026_07_28,
           needs=TASKS, asks=TASKS, name_field="task_id", non_idempotent=True),
    Method("tasks/cancel", S, t.CancelTaskParams, t.CancelTaskResult, since=R_2026_07_28,
           needs=TASKS, asks=TASKS, name_field="task_id"),

    # Notifications
    Method("notifications/initialized", S, t.InitializedParams, until=R_2026_07_28,
           step=Step.INITIALIZED),
    Method("notifications/cancelled", BOTH, t.CancelledParams, step=Step.PING),
    Method("notifications/progress", BOTH, t.ProgressParams, until=R_2026_07_28),
    Method("notifications/progress", C, t.ProgressParams, since=R_2026_07_28),
    Method("notifications/message", C, t.LoggingMessageParams, needs=("logging",), step=Step.PING),
    Method("notifications/tools/list_changed", C, t.ListChangedParams, needs=("tools",
           "list_changed")),
    Method("notifications/prompts/list_changed", C, t.ListChangedParams, needs=("prompts",
           "list_changed")),
    Method("notifications/resources/list_changed", C, t.ListChangedParams, needs=("resources",
           "list_changed")),
    Method("notifications/resources/updated", C, t.ResourceUpdatedParams, needs=("resources",
           "subscribe")),
    Method("notifications/roots/list_changed", S, t.ListChangedParams, until=R_2026_07_28,
           needs=("roots", "list_changed")),
    Method("notifications/elicitation/complete", C, t.ElicitationCompleteParams, since=R_2025_11_25,
           until=R_2026_07_28),
    Method("notifications/tasks/status", BOTH, t.TaskStatusParams, since=R_2025_11_25,
           until=R_2026_07_28, needs=("tasks",)),
    Method("notifications/subscriptions/acknowledged", C, t.AcknowledgedParams, since=R_2026_07_28),
    Method("notifications/tasks", C, t.TaskStatusParams, since=R_2026_07_28, needs=TASKS),
)

# The input requests that an `input_required` result of 2026-07-28 may contain. Both the params and
# the result of such a request are values inside other messages.
INPUTS: Final[tuple[Method, ...]] = (
    Method("elicitation/create", C, t.ElicitParams, t.ElicitResult, since=R_2026_07_28,
           needs=("elicitation",)),
    Method("sampling/createMessage", C, t.CreateMessageParams, t.CreateMessageResult,
           since=R_2026_07_28, needs=("sampling",)),
    Method("roots/list", C, t.ListRootsParams, t.ListRootsResult, since=R_2026_07_28,
           needs=("roots",)),
)
# fmt: on
