"""The Structs that correspond to types of the official schemas, and their gates.

A type is named by its path: `Tool`, or `CompleteRequest.params.argument` for a type without a name.
The revisions name params in two ways (`CallToolRequest.params`, `CallToolRequestParams`), which are
one here.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from mcp_core import types as t
from mcp_core.types._revisions import GATES, REVISIONS

if TYPE_CHECKING:
    from collections.abc import Mapping

# Names that differ by more than `RequestParams` or `NotificationParams` shortened to `Params`.
RENAMED: Final[Mapping[str, tuple[type[Struct], ...]]] = {
    # Params without a type of their own
    "JSONRPCRequestParams": (t.RequestParams,),
    "JSONRPCNotificationParams": (t.NotificationParams,),
    "ListPromptsRequestParams": (t.PaginatedParams,),
    "ListResourcesRequestParams": (t.PaginatedParams,),
    "ListResourceTemplatesRequestParams": (t.PaginatedParams,),
    "ListTasksRequestParams": (t.PaginatedParams,),
    "ListToolsRequestParams": (t.PaginatedParams,),
    "PromptListChangedNotificationParams": (t.ListChangedParams,),
    "ResourceListChangedNotificationParams": (t.ListChangedParams,),
    "RootsListChangedNotificationParams": (t.ListChangedParams,),
    "ToolListChangedNotificationParams": (t.ListChangedParams,),
    # Shorter names
    "RequestMetaObject": (t.RequestMeta,),
    "SubscriptionsListenRequestParams": (t.ListenParams,),
    "SubscriptionsAcknowledgedNotificationParams": (t.AcknowledgedParams,),
    "SubscriptionsListenResult": (t.ListenResult,),
    "TaskNotificationParams": (t.TaskStatusParams,),
    # Two types of the schema, one Struct
    "TextResourceContents": (t.ResourceContents,),
    "BlobResourceContents": (t.ResourceContents,),
    "ResourceReference": (t.ResourceTemplateReference,),
    "ElicitRequestFormParams": (t.ElicitParams,),
    "ElicitRequestURLParams": (t.ElicitParams,),
    "EnumSchema": (t.StringSchema,),
    "LegacyTitledEnumSchema": (t.StringSchema,),
    "UntitledSingleSelectEnumSchema": (t.StringSchema,),
    "TitledSingleSelectEnumSchema": (t.StringSchema,),
    "UntitledMultiSelectEnumSchema": (t.MultiSelectSchema,),
    "TitledMultiSelectEnumSchema": (t.MultiSelectSchema,),
    # One type of the schema, two Structs: the tag of a Struct is a constant
    "NumberSchema": (t.NumberSchema, t.IntegerSchema),
    # Without a name in the schemas
    "ClientCapabilities.roots": (t.RootsCapability,),
    "ClientCapabilities.sampling": (t.SamplingCapability,),
    "ClientCapabilities.elicitation": (t.ElicitationCapability,),
    "ClientCapabilities.tasks": (t.TasksCapability,),
    "ClientCapabilities.tasks.requests": (t.TaskRequests,),
    "ClientCapabilities.tasks.requests.sampling": (t.SamplingTasks,),
    "ClientCapabilities.tasks.requests.elicitation": (t.ElicitationTasks,),
    "ServerCapabilities.prompts": (t.PromptsCapability,),
    "ServerCapabilities.resources": (t.ResourcesCapability,),
    "ServerCapabilities.tools": (t.ToolsCapability,),
    "ServerCapabilities.tasks": (t.TasksCapability,),
    "ServerCapabilities.tasks.requests": (t.TaskRequests,),
    "ServerCapabilities.tasks.requests.tools": (t.ToolTasks,),
    "CompleteRequestParams.argument": (t.CompletionArgument,),
    "CompleteRequestParams.context": (t.CompletionContext,),
    "CompleteResult.completion": (t.Completion,),
    "UntitledMultiSelectEnumSchema.items": (t.EnumItems,),
    "TitledMultiSelectEnumSchema.items": (t.EnumItems,),
    "TitledMultiSelectEnumSchema.items.anyOf[]": (t.EnumOption,),
    "TitledSingleSelectEnumSchema.oneOf[]": (t.EnumOption,),
    "URLElicitationRequiredError.error.data": (t.URLElicitationRequiredData,),
    "MissingRequiredClientCapabilityError.error.data": (t.MissingCapabilityData,),
    "UnsupportedProtocolVersionError.error.data": (t.UnsupportedVersionData,),
}

PATTERNS: Final[tuple[tuple[str, type[Struct]], ...]] = (
    (r"\w+Params\._meta", t.RequestMeta),
    (r"\w+\.annotations", t.Annotations),
    (
        r"\w+Error\.error|Error|(Parse|InvalidRequest|MethodNotFound|InvalidParams|Internal)Error",
        t.ErrorData,
    ),
)


def one_name(path: str) -> str:
    """Return one name for `CallToolRequest.params` and `CallToolRequestParams`."""
    return re.sub(r"(Request|Notification)\.params", r"\1Params", path)


def structs_for(path: str) -> tuple[type[Struct], ...]:
    """Return the Structs for the type at `path`, empty if there are none."""
    name = one_name(path)
    if name in RENAMED:
        return RENAMED[name]
    for pattern, struct in PATTERNS:
        if re.fullmatch(pattern, name):
            return (struct,)
    for ours in (name, re.sub(r"(Request|Notification)Params$", "Params", name)):
        found = getattr(t, ours, None)
        if isinstance(found, type) and issubclass(found, Struct):
            return (found,)
    return ()


def admits(struct: type[Struct], field: str | None, revision: str) -> bool:
    """True if the gates allow the field in `revision`, or with None the type."""
    at = REVISIONS.index(revision)
    for gate in GATES:
        if issubclass(struct, gate.type) and gate.field == field:
            if gate.since is not None and at < REVISIONS.index(gate.since):
                return False
            if gate.until is not None and at >= REVISIONS.index(gate.until):
                return False
    return True
