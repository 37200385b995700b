"""What the revisions of MCP lack, as data: the only place that says so.

Rules:

1. A field or type that every revision has is not mentioned.
2. A row on a class holds for its subclasses. If several rows name a field of a class or its ancestors, all
   must admit it.
3. Nothing here compares or orders revisions; `_dialects.py` does, and draws from these rows what to leave
   out.

Source: the schemas of the five revisions; for tasks in 2026-07-28 the extension's schema.
"""

from typing import Final, TypeAlias

from msgspec import Struct

from . import _base, _client, _content, _lifecycle, _prompts, _resources, _tasks, _tools

R_2024_11_05: Final = "2024-11-05"
R_2025_03_26: Final = "2025-03-26"
R_2025_06_18: Final = "2025-06-18"
R_2025_11_25: Final = "2025-11-25"
R_2026_07_28: Final = "2026-07-28"

# Oldest first.
REVISIONS: Final[tuple[str, ...]] = (R_2024_11_05, R_2025_03_26, R_2025_06_18, R_2025_11_25, R_2026_07_28)

StructType: TypeAlias = type[Struct]


class Gate(Struct, frozen=True):
    """`field` of `type` exists from revision `since` on and before revision `until`.

    `since` None: from the first on. `until` None: still. `field` None: the row is about the whole type.
    `field` is the attribute's name, not the JSON name.
    """

    type: StructType
    field: str | None
    since: str | None = None
    until: str | None = None


A, B, C, D, E = REVISIONS

# fmt: off
GATES: Final[tuple[Gate, ...]] = (
    # Whole types. What is missing here is reached only through a field or a method that is gated itself.
    Gate(_content.AudioContent, None, B),
    Gate(_content.ResourceLink, None, C),
    Gate(_content.ToolUseContent, None, D),
    Gate(_content.ToolResultContent, None, D),
    Gate(_client.MultiSelectSchema, None, D),

    # Describing things
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

    # What a server asks of a client. In E the questions are no JSON-RPC requests and the answers no results.
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

    # Tasks: D's own, and the extension of E
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
