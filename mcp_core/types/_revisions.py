"""The fields and types that not every revision of MCP has.

1. A field or type without a row exists in every revision.
2. A row of a class applies to its subclasses. If several rows apply to a field, it exists only
   where all of them allow it.
3. `_dialects.py` compares revisions and removes the fields that a revision lacks.

Source: the schemas of the five revisions; for tasks in 2026-07-28 the schema of the extension.
"""

from typing import Final, TypeAlias

from msgspec import Struct

from mcp_core.types import (
    _base,
    _client,
    _content,
    _lifecycle,
    _prompts,
    _resources,
    _tasks,
    _tools,
)

# The revisions of MCP.
R_2024_11_05: Final = "2024-11-05"
R_2025_03_26: Final = "2025-03-26"
R_2025_06_18: Final = "2025-06-18"
R_2025_11_25: Final = "2025-11-25"
R_2026_07_28: Final = "2026-07-28"

# Oldest first.
REVISIONS: Final[tuple[str, ...]] = (
    R_2024_11_05,
    R_2025_03_26,
    R_2025_06_18,
    R_2025_11_25,
    R_2026_07_28,
)

StructType: TypeAlias = type[Struct]


class Gate(Struct, frozen=True):
    """The revisions that have `field` of `type`: from `since` on, and before `until`.

    `since` None: from the first revision. `until` None: to the newest. `field` is the attribute's
    name, not the JSON member's; None means the whole type.
    """

    type: StructType
    field: str | None
    since: str | None = None
    until: str | None = None


A, B, C, D, E = REVISIONS

# fmt: off
GATES: Final[tuple[Gate, ...]] = (
    # Whole types. Other new types occur only in fields or methods that have a row themselves.
    Gate(_content.AudioContent, None, B),
    Gate(_content.ResourceLink, None, C),
    Gate(_content.ToolUseContent, None, D),
    Gate(_content.ToolResultContent, None, D),
    Gate(_client.MultiSelectSchema, None, D),

    # Entities
    Gate(_base.BaseMetadata, "title", C),
    Gate(_base.Implementation, "title", C),
    Gate(_base.Implementation, "description", D),
    Gate(_base.Implementation, "website_url", D),
    Gate(_base.Implementation, "icons", D),
    Gate(_base.Listed, "icons", D),
    Gate(_base.Listed, "meta", C),
    Gate(_base.Annotations, "last_modified", C),

    # Capabilities
    Gate(_base.ClientCapabilities, "elicitation", C),
    Gate(_base.ClientCapabilities, "tasks", D, E),
    Gate(_base.ClientCapabilities, "extensions", E),
    Gate(_base.RootsCapability, "list_changed", None, E),
    Gate(_base.SamplingCapability, "context", D),
    Gate(_base.SamplingCapability, "tools", D),
    Gate(_base.ElicitationCapability, "form", D),
    Gate(_base.ElicitationCapability, "url", D),
    Gate(_base.ServerCapabilities, "completions", B),
    Gate(_base.ServerCapabilities, "tasks", D, E),
    Gate(_base.ServerCapabilities, "extensions", E),

    # Every request and result
    Gate(_base.RequestMeta, "protocol_version", E),
    Gate(_base.RequestMeta, "client_capabilities", E),
    Gate(_base.RequestMeta, "client_info", E),
    Gate(_base.RequestMeta, "log_level", E),
    Gate(_base.RequestMeta, "related_task", D, E),
    Gate(_base.Result, "result_type", E),
    Gate(_base.CacheableResult, "ttl_ms", E),
    Gate(_base.CacheableResult, "cache_scope", E),
    Gate(_resources.InputResponseParams, "input_responses", E),
    Gate(_resources.InputResponseParams, "request_state", E),
    Gate(_lifecycle.ProgressParams, "message", B),

    # What a server offers
    Gate(_content.Block, "meta", C),
    Gate(_resources.ResourceContents, "meta", C),
    Gate(_tools.Tool, "output_schema", C),
    Gate(_tools.Tool, "annotations", B),
    Gate(_tools.Tool, "execution", D, E),
    Gate(_tools.CallToolParams, "task", D, E),
    Gate(_tools.CallToolResult, "structured_content", C),
    Gate(_prompts.PromptReference, "title", C),
    Gate(_prompts.CompleteParams, "context", C),

    # Requests of the server. In E they are values inside messages, without `_meta`, `resultType`.
    Gate(_content.SamplingMessage, "meta", D),
    Gate(_client.CreateMessageParams, "meta", None, E),
    Gate(_client.CreateMessageParams, "tools", D),
    Gate(_client.CreateMessageParams, "tool_choice", D),
    Gate(_client.CreateMessageParams, "task", D, E),
    Gate(_client.CreateMessageResult, "result_type", None, E),
    Gate(_client.ElicitParams, "meta", None, E),
    Gate(_client.ElicitParams, "mode", D),
    Gate(_client.ElicitParams, "url", D),
    Gate(_client.ElicitParams, "elicitation_id", D, E),
    Gate(_client.ElicitParams, "task", D, E),
    Gate(_client.ElicitResult, "meta", None, E),
    Gate(_client.ElicitResult, "result_type", None, E),
    Gate(_client.StringSchema, "one_of", D),
    Gate(_client.StringSchema, "default", D),
    Gate(_client.NumberSchema, "default", D),
    Gate(_client.IntegerSchema, "default", D),
    Gate(_client.Root, "meta", C),
    Gate(_client.ListRootsResult, "meta", None, E),
    Gate(_client.ListRootsResult, "result_type", None, E),

    # Tasks: part of D, and an extension of E
    *(
        gate
        for task in (_tasks.Task, _tasks.GetTaskResult, _tasks.TaskStatusParams)
        for gate in (
            Gate(task, "ttl", None, E),
            Gate(task, "poll_interval", None, E),
            Gate(task, "ttl_ms", E),
            Gate(task, "poll_interval_ms", E),
        )
    ),
    Gate(_tasks.CreateTaskResult, "task", None, E),
    Gate(_tasks.CreateTaskResult, "task_id", E),
    Gate(_tasks.CreateTaskResult, "status", E),
    Gate(_tasks.CreateTaskResult, "created_at", E),
    Gate(_tasks.CreateTaskResult, "last_updated_at", E),
    Gate(_tasks.CreateTaskResult, "status_message", E),
    Gate(_tasks.CreateTaskResult, "ttl_ms", E),
    Gate(_tasks.CreateTaskResult, "poll_interval_ms", E),
    Gate(_tasks.CancelTaskResult, "task_id", None, E),
    Gate(_tasks.CancelTaskResult, "status", None, E),
    Gate(_tasks.CancelTaskResult, "created_at", None, E),
    Gate(_tasks.CancelTaskResult, "last_updated_at", None, E),
    Gate(_tasks.CancelTaskResult, "status_message", None, E),
    Gate(_tasks.CancelTaskResult, "ttl", None, E),
    Gate(_tasks.CancelTaskResult, "poll_interval", None, E),
    Gate(_tasks.GetTaskResult, "input_requests", E),
    Gate(_tasks.GetTaskResult, "result", E),
    Gate(_tasks.GetTaskResult, "error", E),
    Gate(_tasks.TaskStatusParams, "input_requests", E),
    Gate(_tasks.TaskStatusParams, "result", E),
    Gate(_tasks.TaskStatusParams, "error", E),
)
# fmt: on
