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
        {"2024-11-05": "server/resources"},
        ("RES-1", "MUST", "2024-11-05", None, "server",
         "A server with resources declares `resources` (`subscribe?`, `listChanged?` "
         "independent)."),
        ("RES-2", "schema", "2024-11-05", None, "server",
         "Resource `uri, name` required; `description?, mimeType?, annotations?, size?`; `title?,"
         " _meta?` since 2025-06-18; `icons?` since 2025-11-25. Template has `uriTemplate` (RFC "
         "6570)."),
        ("RES-3", "schema", "2024-11-05", None, "client",
         "`resources/read {uri}` → `contents[]` (≥1 entries possible); 2026-07-28 +MRTR params, +"
         " cache hints."),
        ("RES-4", "schema", "2024-11-05", "2026-07-28", "client",
         "`resources/subscribe {uri}`, `resources/unsubscribe {uri}` → `{}`; need `subscribe`."),
        ("RES-5", "SHOULD", "2024-11-05", "2026-07-28", "server",
         "`notifications/resources/updated {uri}` only to subscribers; may be a sub-resource."),
        ("RES-6", "schema", "2026-07-28", None, "server",
         "subscribe/unsubscribe → `-32601`; replaced by listen `resourceSubscriptions`."),
        ("RES-7", "SHOULD", "2024-11-05", "2026-07-28", "server",
         "Not found → `-32002` (SHOULD), internal `-32603`."),
        ("RES-8", "MUST", "2026-07-28", None, "server",
         "Not found → `-32602`; never `-32002`; clients SHOULD still accept `-32002`."),
        ("RES-9", "MUST NOT", "2026-07-28", None, "server",
         'Empty `contents` does not mean "not found".'),
        ("RES-10", "SHOULD", "2024-11-05", None, "server",
         "`https://` only if the client can fetch it itself; `file://` need not be a real file."),
        ("RES-11", "MUST", "2025-06-18", None, "server",
         "Custom schemes follow RFC 3986."),
        ("RES-12", "MUST", "2024-11-05", None, "server",
         "Validate URIs; encode binary; since 2026-07-28 also: sanitise `file://` paths against "
         "traversal."),
        ("RES-13", "SHOULD", "2024-11-05", None, "server",
         "Access control and permission checks before operations."),
        ("RES-14", "SHOULD", "2024-11-05", None, "server",
         "`notifications/resources/list_changed` if declared."),
        ("RES-15", "schema", "2024-11-05", None, "server",
         "A URI identifies one resource: two different ones have two URIs."),
    ),
    # PRM, Prompts
    *rows(
        {"2024-11-05": "server/prompts"},
        ("PRM-1", "MUST", "2024-11-05", None, "server",
         "A server with prompts declares `prompts`."),
        ("PRM-2", "schema", "2024-11-05", None, "client",
         "`prompts/get {name, arguments?: map<string,string>}`: argument values are strings "
         "only."),
        ("PRM-3", "schema", "2024-11-05", None, "server",
         "Result `{description?, messages[{role, content}]}`: one content block per message "
         "(not an array)."),
        ("PRM-4", "SHOULD", "2024-11-05", None, "server",
         "Unknown name / missing required argument → `-32602`; internal `-32603`."),
        ("PRM-5", "SHOULD", "2024-11-05", None, "server",
         "Validate arguments; `notifications/prompts/list_changed` if declared."),
        ("PRM-6", "MUST", "2024-11-05", None, "both",
         "Validate prompt input and output against injection."),
        ("PRM-7", "SHOULD", "2024-11-05", None, "client",
         "Handle pagination of prompts."),
        ("PRM-8", "schema", "2024-11-05", None, "server",
         "A name identifies one prompt: two different ones have two names."),
    ),
)
# fmt: on
