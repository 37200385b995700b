"""Rows for resources and prompts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ._requirement import rows

if TYPE_CHECKING:
    from ._requirement import Requirement

__all__ = ["ROWS"]

# fmt: off
ROWS: Final[tuple[Requirement, ...]] = (
    # RES, Resources
    *rows(
        "A-E:server/resources",
        ("RES-1", "MUST", "A-E", "server",
         "A server with resources declares `resources` (`subscribe?`, `listChanged?` "
         "independent)."),
        ("RES-2", "schema", "A-E", "server",
         "Resource `uri, name` required; `description?, mimeType?, annotations?, size?`; "
         "`title?, _meta?` C–; `icons?` D–. Template has `uriTemplate` (RFC 6570)."),
        ("RES-3", "schema", "A-E", "client",
         "`resources/read {uri}` → `contents[]` (≥1 entries possible); E +MRTR params, + cache "
         "hints."),
        ("RES-4", "schema", "A-D", "client",
         "`resources/subscribe {uri}`, `resources/unsubscribe {uri}` → `{}`; need `subscribe`."),
        ("RES-5", "SHOULD", "A-D", "server",
         "`notifications/resources/updated {uri}` only to subscribers; may be a sub-resource."),
        ("RES-6", "schema", "E", "server",
         "subscribe/unsubscribe → `-32601`; replaced by listen `resourceSubscriptions`."),
        ("RES-7", "SHOULD", "A-D", "server",
         "Not found → `-32002` (SHOULD), internal `-32603`."),
        ("RES-8", "MUST", "E", "server",
         "Not found → `-32602`; never `-32002`; clients SHOULD still accept `-32002`."),
        ("RES-9", "MUST NOT", "E", "server",
         'Empty `contents` does not mean "not found".'),
        ("RES-10", "SHOULD", "A-E", "server",
         "`https://` only if the client can fetch it itself; `file://` need not be a real file."),
        ("RES-11", "MUST", "C-E", "server",
         "Custom schemes follow RFC 3986."),
        ("RES-12", "MUST", "A-E", "server",
         "Validate URIs; encode binary; E also: sanitise `file://` paths against traversal."),
        ("RES-13", "SHOULD", "A-E", "server",
         "Access control and permission checks before operations."),
        ("RES-14", "SHOULD", "A-E", "server",
         "`notifications/resources/list_changed` if declared."),
    ),
    # PRM, Prompts
    *rows(
        "A-E:server/prompts",
        ("PRM-1", "MUST", "A-E", "server",
         "A server with prompts declares `prompts`."),
        ("PRM-2", "schema", "A-E", "client",
         "`prompts/get {name, arguments?: map<string,string>}`: argument values are strings "
         "only."),
        ("PRM-3", "schema", "A-E", "server",
         "Result `{description?, messages[{role, content}]}`: one content block per message "
         "(not an array)."),
        ("PRM-4", "SHOULD", "A-E", "server",
         "Unknown name / missing required argument → `-32602`; internal `-32603`."),
        ("PRM-5", "SHOULD", "A-E", "server",
         "Validate arguments; `notifications/prompts/list_changed` if declared."),
        ("PRM-6", "MUST", "A-E", "both",
         "Validate prompt input and output against injection."),
        ("PRM-7", "SHOULD", "A-E", "client",
         "Handle pagination of prompts."),
    ),
)
# fmt: on
