"""What every other shape is made of: names of scalars, the entities that describe a peer, params and results.

Rules of this package:

1. One Struct per thing, with the fields of all revisions together. Which revision lacks which field is data,
   in `_revisions.py`; nothing here asks for a version.
2. Attributes are snake_case and JSON names are the spec's. A member that is absent and one that is null are
   read alike, as None. Only where the spec tells the two apart is a field `UNSET` when absent.
3. Members that we do not know are dropped, except in `_meta` of results and entities, which stays a plain
   dict.
4. JSON Schemas are plain dicts. JSON that only its addressee can read is kept undecoded, as `msgspec.Raw`.
5. `gc=False` only for Structs that cannot hold a container: what holds none cannot be part of a reference
   cycle.

The package does not know methods, dialects or connections. It imports msgspec and pure parts of the standard
library.
Annotations are evaluated when a class is made, hence no `from __future__ import annotations` here.
"""

from typing import Any, Final, Literal, TypeAlias

from msgspec import UNSET, Struct, field

Role: TypeAlias = Literal["user", "assistant"]
RequestId: TypeAlias = int | str
ProgressToken: TypeAlias = int | str
Cursor: TypeAlias = str
LoggingLevel: TypeAlias = Literal[
    "debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"
]

# From the least to the most severe, as in RFC 5424.
LOGGING_LEVELS: Final[tuple[LoggingLevel, ...]] = (
    "debug",
    "info",
    "notice",
    "warning",
    "error",
    "critical",
    "alert",
    "emergency",
)

# Keys that MCP defines inside `_meta`. Those of a request are fields of `RequestMeta`.
META_SERVER_INFO: Final = "io.modelcontextprotocol/serverInfo"
META_SUBSCRIPTION_ID: Final = "io.modelcontextprotocol/subscriptionId"
META_RELATED_TASK: Final = "io.modelcontextprotocol/related-task"
META_IMMEDIATE_RESPONSE: Final = "io.modelcontextprotocol/model-immediate-response"


class Shape(Struct, rename="camel", omit_defaults=True, repr_omit_defaults=True):
    """The common ancestor of every shape: camelCase on the wire, defaults left out."""


# Describing things --------------------------------------------------------------------------------


class Icon(Shape):
    """A picture that stands for an entity. Page: basic/index, Icons.

    `src` is an `https:` or `data:` URI. `sizes` are like "48x48", or "any" for a scalable image. `theme` is
    the background it is made for. Whoever renders it must treat it as untrusted.
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
    """What is referred to by `name` and shown to people as `title`. Page: schema."""

    name: str
    title: str | None = None


class Listed(BaseMetadata, kw_only=True):
    """What a server lists: the common fields of tools, prompts, resources and resource templates."""

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
# Presence is what counts: a member that is there, even as an empty object, says that the feature is
# supported. Members that are objects without fields of their own are dicts, so that a future setting in them
# is not lost.


class RootsCapability(Shape, gc=False, kw_only=True):
    """The client has roots. `list_changed`: it announces changes of them. Page: client/roots."""

    list_changed: bool | None = None


class SamplingCapability(Shape, kw_only=True):
    """The client lets its model be asked.

    `context`: it honours `include_context`; `tools`: tool use. Page: client/sampling.
    """

    context: dict[str, Any] | None = None
    tools: dict[str, Any] | None = None


class ElicitationCapability(Shape, kw_only=True):
    """The client can ask its user. Neither member means `form` alone. Page: client/elicitation."""

    form: dict[str, Any] | None = None
    url: dict[str, Any] | None = None


class PromptsCapability(Shape, gc=False, kw_only=True):
    """The server has prompts. `list_changed`: it announces changes of the list. Page: server/prompts."""

    list_changed: bool | None = None


class ResourcesCapability(Shape, gc=False, kw_only=True):
    """The server has resources. `subscribe`: single ones can be watched. Page: server/resources."""

    subscribe: bool | None = None
    list_changed: bool | None = None


class ToolsCapability(Shape, gc=False, kw_only=True):
    """The server has tools. `list_changed`: it announces changes of the list. Page: server/tools."""

    list_changed: bool | None = None


class ToolTasks(Shape, kw_only=True):
    """Which tool requests may run as tasks. Page: basic/utilities/tasks (2025-11-25)."""

    call: dict[str, Any] | None = None


class SamplingTasks(Shape, kw_only=True):
    """Which sampling requests may run as tasks. Page: basic/utilities/tasks (2025-11-25)."""

    create_message: dict[str, Any] | None = None


class ElicitationTasks(Shape, kw_only=True):
    """Which elicitation requests may run as tasks. Page: basic/utilities/tasks (2025-11-25)."""

    create: dict[str, Any] | None = None


class TaskRequests(Shape, kw_only=True):
    """Which requests may run as tasks: `tools` is for servers to declare, the others for clients."""

    tools: ToolTasks | None = None
    sampling: SamplingTasks | None = None
    elicitation: ElicitationTasks | None = None


class TasksCapability(Shape, kw_only=True):
    """Tasks as revision 2025-11-25 has them. Page: basic/utilities/tasks (2025-11-25).

    The tasks of 2026-07-28 are declared in `extensions` instead.
    """

    list: dict[str, Any] | None = None
    cancel: dict[str, Any] | None = None
    requests: TaskRequests | None = None


class ClientCapabilities(Shape, kw_only=True):
    """What a client can do for a server. Page: schema.

    It is sent once, by `initialize`, until 2025-11-25, and with each request since 2026-07-28.
    `extensions` maps the identifier of an extension to its settings.
    """

    roots: RootsCapability | None = None
    sampling: SamplingCapability | None = None
    elicitation: ElicitationCapability | None = None
    tasks: TasksCapability | None = None
    extensions: dict[str, Any] | None = None
    experimental: dict[str, Any] | None = None


class ServerCapabilities(Shape, kw_only=True):
    """What a server offers.

    Page: schema. `extensions` maps the identifier of an extension to its settings.
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
    """The task that a message belongs to, in its `_meta`. Page: basic/utilities/tasks (2025-11-25)."""

    task_id: str


class RequestMeta(Shape, kw_only=True):
    """The members of a request's `_meta` that MCP gives a meaning. Page: basic/index, `_meta`.

    Since 2026-07-28 the sender's revision and capabilities are required here: a request stands for itself.
    `progress_token` asks for progress notifications. `log_level` asks for log notifications while the request
    runs. `traceparent`, `tracestate` and `baggage` are those of W3C Trace Context and Baggage.
    """

    progress_token: ProgressToken | None = None
    protocol_version: str | None = field(name="io.modelcontextprotocol/protocolVersion", default=None)
    client_capabilities: ClientCapabilities | None = field(
        name="io.modelcontextprotocol/clientCapabilities", default=None
    )
    client_info: Implementation | None = field(name="io.modelcontextprotocol/clientInfo", default=None)
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

    What comes on a subscription carries `META_SUBSCRIPTION_ID` in `meta`.
    """

    meta: dict[str, Any] | None = field(name="_meta", default=None)


class PaginatedParams(RequestParams, kw_only=True):
    """The params of every `*/list` request. Page: server/utilities/pagination.

    `cursor` is the `next_cursor` of the page before; its inside is the server's business.
    """

    cursor: Cursor | None = None


# Results ------------------------------------------------------------------------------------------


class Result(Shape, kw_only=True):
    """The result of any request.

    `result_type` says which kind it is since 2026-07-28 ("complete", "input_required", an extension's word).
    It is stamped on the way out, so handlers leave it alone; on the way in, absent means "complete".
    """

    meta: dict[str, Any] | None = field(name="_meta", default=None)
    result_type: str | None = None


class EmptyResult(Result, kw_only=True):
    """A result that says only that the request was carried out."""


class CacheableResult(Result, kw_only=True):
    """A result that may be kept for a while (2026-07-28). Page: server/utilities/caching.

    `ttl_ms` is how long, in milliseconds; 0 means not at all. `cache_scope` "private" keeps it from other
    users.
    """

    ttl_ms: int | None = None
    cache_scope: Literal["public", "private"] | None = None
