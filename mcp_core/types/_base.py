"""The package's base types: scalars, capabilities, params and results.

1. A type has the fields of all revisions. `_revisions.py` lists the fields that a revision lacks.
2. Attributes are snake_case, JSON names are as in the specification. Absent and null members are
   both read as None. Where the specification distinguishes them, an absent one is `UNSET`.
3. Unknown members are dropped, except in the `_meta` of results and entities, which is a dict. JSON
   Schemas are dicts. JSON whose type isn't known here stays undecoded, as `msgspec.Raw`.
"""

# No `from __future__ import annotations` in this package: msgspec evaluates annotations when a
# class is created.
# `gc=False` is set only on Structs that cannot hold a container, since these cannot be part of a
# reference cycle.

from typing import Any, Final, Literal, TypeAlias, get_args

from msgspec import UNSET, Struct, field

Role: TypeAlias = Literal["user", "assistant"]
# The id of a JSON-RPC request.
RequestId: TypeAlias = int | str
# What names a request in its progress notifications; chosen by its sender.
ProgressToken: TypeAlias = int | str
Cursor: TypeAlias = str
# The severity of a log message, from the least to the most severe (RFC 5424).
LoggingLevel: TypeAlias = Literal[
    "debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"
]
# All levels, from the least to the most severe.
LOGGING_LEVELS: Final[tuple[LoggingLevel, ...]] = get_args(LoggingLevel)

# Keys that MCP defines inside `_meta`. A request's keys are fields of `RequestMeta`.
META_SERVER_INFO: Final = "io.modelcontextprotocol/serverInfo"
META_SUBSCRIPTION_ID: Final = "io.modelcontextprotocol/subscriptionId"
META_RELATED_TASK: Final = "io.modelcontextprotocol/related-task"
META_IMMEDIATE_RESPONSE: Final = "io.modelcontextprotocol/model-immediate-response"


class Shape(Struct, rename="camel", omit_defaults=True, repr_omit_defaults=True):
    """The base class of all types: camelCase names in JSON, default values left out."""


# Entities -----------------------------------------------------------------------------------------


class Icon(Shape):
    """An icon of an entity. Page: basic/index, Icons.

    `src` is an `https:` or `data:` URI. `sizes` are values such as "48x48", or "any" for a scalable
    image. `theme` is the background it is designed for. Treat the image as untrusted.
    """

    src: str
    mime_type: str | None = None
    sizes: list[str] | None = None
    theme: Literal["light", "dark"] | None = None


class Implementation(Shape):
    """The name and version of a program that speaks MCP.

    For display and logs, never for decisions. Page: schema.
    """

    name: str
    version: str
    title: str | None = None
    description: str | None = None
    website_url: str | None = None
    icons: list[Icon] | None = None


class Annotations(Shape, kw_only=True):
    """Hints about content.

    `priority` is 0 (optional) to 1 (needed), `last_modified` is ISO 8601. Page: schema.
    """

    audience: list[Role] | None = None
    priority: float | None = None
    last_modified: str | None = None


class BaseMetadata(Shape, kw_only=True):
    """An entity with a unique `name` and a `title` for display. Page: schema."""

    name: str
    title: str | None = None


class Listed(BaseMetadata, kw_only=True):
    """The common fields of tools, prompts, resources and resource templates in lists."""

    description: str | None = None
    icons: list[Icon] | None = None
    meta: dict[str, Any] | None = field(name="_meta", default=None)


class ErrorData(Shape):
    """The error of a JSON-RPC response. `data` may be any JSON value and is `UNSET` when absent.

    Page: JSON-RPC 2.0 section 5.1.
    """

    code: int
    message: str
    data: Any = UNSET


# Capabilities -------------------------------------------------------------------------------------
# A member that is present, even as an empty object, declares support. Members whose objects have no
# fields yet are dicts, so that future settings in them are kept.


class RootsCapability(Shape, gc=False, kw_only=True):
    """The client has roots. `list_changed`: it notifies of changes. Page: client/roots."""

    list_changed: bool | None = None


class SamplingCapability(Shape, kw_only=True):
    """The client allows sampling from its model.

    `context`: it supports `include_context`. `tools`: it supports tool use. Page: client/sampling.
    """

    context: dict[str, Any] | None = None
    tools: dict[str, Any] | None = None


class ElicitationCapability(Shape, kw_only=True):
    """The client can ask its user for input. Without members it supports `form` only.

    Page: client/elicitation.
    """

    form: dict[str, Any] | None = None
    url: dict[str, Any] | None = None


class PromptsCapability(Shape, gc=False, kw_only=True):
    """The server has prompts. `list_changed`: it notifies of changes. Page: server/prompts."""

    list_changed: bool | None = None


class ResourcesCapability(Shape, gc=False, kw_only=True):
    """The server has resources. Page: server/resources.

    `subscribe`: clients can subscribe to single resources. `list_changed`: it notifies of changes
    to the list.
    """

    subscribe: bool | None = None
    list_changed: bool | None = None


class ToolsCapability(Shape, gc=False, kw_only=True):
    """The server has tools. `list_changed`: it notifies of changes. Page: server/tools."""

    list_changed: bool | None = None


class ToolTasks(Shape, kw_only=True):
    """The tool requests that may run as tasks. Page: basic/utilities/tasks (2025-11-25)."""

    call: dict[str, Any] | None = None


class SamplingTasks(Shape, kw_only=True):
    """The sampling requests that may run as tasks. Page: basic/utilities/tasks (2025-11-25)."""

    create_message: dict[str, Any] | None = None


class ElicitationTasks(Shape, kw_only=True):
    """The elicitation requests that may run as tasks. Page: basic/utilities/tasks (2025-11-25)."""

    create: dict[str, Any] | None = None


class TaskRequests(Shape, kw_only=True):
    """The requests that may run as tasks. Servers declare `tools`, clients the others."""

    tools: ToolTasks | None = None
    sampling: SamplingTasks | None = None
    elicitation: ElicitationTasks | None = None


class TasksCapability(Shape, kw_only=True):
    """Support for the tasks of revision 2025-11-25. Page: basic/utilities/tasks (2025-11-25).

    The tasks of 2026-07-28 are declared in `extensions` instead.
    """

    list: dict[str, Any] | None = None
    cancel: dict[str, Any] | None = None
    requests: TaskRequests | None = None


class ClientCapabilities(Shape, kw_only=True):
    """A client's capabilities. Page: schema.

    A client sends them once, with `initialize`, until 2025-11-25, and with each request since
    2026-07-28. `extensions` maps the identifier of an extension to its settings.
    """

    roots: RootsCapability | None = None
    sampling: SamplingCapability | None = None
    elicitation: ElicitationCapability | None = None
    tasks: TasksCapability | None = None
    extensions: dict[str, Any] | None = None
    experimental: dict[str, Any] | None = None


class ServerCapabilities(Shape, kw_only=True):
    """A server's capabilities. Page: schema.

    `extensions` maps the identifier of an extension to its settings.
    """

    tools: ToolsCapability | None = None
    resources: ResourcesCapability | None = None
    prompts: PromptsCapability | None = None
    completions: dict[str, Any] | None = None
    logging: dict[str, Any] | None = None
    tasks: TasksCapability | None = None
    extensions: dict[str, Any] | None = None
    experimental: dict[str, Any] | None = None


# Params -------------------------------------------------------------------------------------------


class RelatedTaskMetadata(Shape, gc=False):
    """The task to which a message belongs, in `_meta`. Page: basic/utilities/tasks (2025-11-25)."""

    task_id: str


class RequestMeta(Shape, kw_only=True):
    """The members of `_meta` of a request that MCP defines. Page: basic/index, `_meta`.

    Since 2026-07-28 a request must have the sender's revision and capabilities here.
    `progress_token` requests progress notifications, `log_level` log notifications while the
    request runs. `traceparent`, `tracestate` and `baggage` are defined by W3C Trace Context and
    Baggage.
    """

    progress_token: ProgressToken | None = None
    protocol_version: str | None = field(
        name="io.modelcontextprotocol/protocolVersion", default=None
    )
    client_capabilities: ClientCapabilities | None = field(
        name="io.modelcontextprotocol/clientCapabilities", default=None
    )
    client_info: Implementation | None = field(
        name="io.modelcontextprotocol/clientInfo", default=None
    )
    log_level: LoggingLevel | None = field(name="io.modelcontextprotocol/logLevel", default=None)
    related_task: RelatedTaskMetadata | None = field(name=META_RELATED_TASK, default=None)
    traceparent: str | None = None
    tracestate: str | None = None
    baggage: str | None = None


class Params(Shape, kw_only=True):
    """The params of any request or notification."""


class RequestParams(Params, kw_only=True):
    """The params of any request."""

    meta: RequestMeta | None = field(name="_meta", default=None)


class NotificationParams(Params, kw_only=True):
    """The params of any notification.

    Notifications on a subscription have `META_SUBSCRIPTION_ID` in `meta`.
    """

    meta: dict[str, Any] | None = field(name="_meta", default=None)


class PaginatedParams(RequestParams, kw_only=True):
    """The params of every `*/list` request. Page: server/utilities/pagination.

    `cursor` is the `next_cursor` of the previous page. Its contents are opaque to clients.
    """

    cursor: Cursor | None = None


# Results ------------------------------------------------------------------------------------------


class Result(Shape, kw_only=True):
    """The result of any request.

    `result_type` is its kind since 2026-07-28: "complete", "input_required" or a value of an
    extension. The connection sets it in results that it sends, so handlers leave it unset. In
    received results, absent means "complete".
    """

    meta: dict[str, Any] | None = field(name="_meta", default=None)
    result_type: str | None = None


class EmptyResult(Result, kw_only=True):
    """A result without members: the request was successful."""


class CacheableResult(Result, kw_only=True):
    """A result with cache hints (2026-07-28). Page: server/utilities/caching.

    `ttl_ms` is its time to live in milliseconds; 0 means that it is stale at once. With
    `cache_scope` "private" it must not be reused for other users.
    """

    ttl_ms: int | None = None
    cache_scope: Literal["public", "private"] | None = None
