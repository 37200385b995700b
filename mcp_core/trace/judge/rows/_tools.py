"""Rows for tools and for content."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ._requirement import rows

if TYPE_CHECKING:
    from ._requirement import Requirement

__all__ = ["ROWS"]

# fmt: off
ROWS: Final[tuple[Requirement, ...]] = (
    # TOOL, Tools
    *rows(
        {"2024-11-05": "server/tools"},
        ("TOOL-1", "MUST", "2024-11-05", None, "server",
         "A server with tools declares `tools`."),
        ("TOOL-2", "schema", "2024-11-05", None, "server",
         'Tool: `name`, `inputSchema` (root `type: "object"`), `description?`; `annotations?` '
         "since 2025-03-26; `title?`, `outputSchema?`, `_meta?` since 2025-06-18; `icons?` since "
         "2025-11-25; `execution?` in 2025-11-25 only."),
        ("TOOL-3", "MUST", "2026-07-28", None, "server",
         "`tools/list` is answered whenever declared; the set may be empty or change."),
        ("TOOL-4", "MUST NOT", "2026-07-28", None, "server",
         "The set does not depend on connection or on other requests; it MAY depend on the "
         "authorization. (Same for prompts and resources.)"),
        ("TOOL-5", "SHOULD", "2026-07-28", None, "server",
         "Deterministic order."),
        ("TOOL-6", "MUST", "2025-11-25", None, "server",
         "`inputSchema` is a schema object, never `null`; no-parameter tool: "
         '`{"type":"object","additionalProperties":false}` recommended.'),
        ("TOOL-7", "schema", "2024-11-05", "2025-11-25", "server",
         "`inputSchema` keys known: `type, properties?, required?`; 2025-11-25 adds `$schema?`; "
         '2026-07-28 any 2020-12 keyword beside `type:"object"`.'),
        ("TOOL-8", "schema", "2025-06-18", "2026-07-28", "server",
         '`outputSchema` root must be `type: "object"`; `structuredContent` is an object.'),
        ("TOOL-9", "schema", "2026-07-28", None, "server",
         "`outputSchema` may be any schema; `structuredContent` any JSON value, `null` included "
         "(so absent ≠ null)."),
        ("TOOL-10", "MUST", "2025-06-18", None, "server",
         "With `outputSchema`, the result has conforming `structuredContent` (reading: except "
         "when `isError`)."),
        ("TOOL-11", "SHOULD", "2025-06-18", None, "client",
         "Validate `structuredContent` against `outputSchema`."),
        ("TOOL-12", "SHOULD", "2025-06-18", None, "server",
         "Also give the JSON as a text block for old clients."),
        ("TOOL-13", "schema", "2024-11-05", None, "server",
         "`CallToolResult.content` is required (may be `[]`); `isError?` default false."),
        ("TOOL-14", "schema", "2024-11-05", None, "client",
         "`tools/call {name, arguments?: object}`; 2025-11-25 `task?`; 2026-07-28 "
         "`inputResponses?`, `requestState?`."),
        ("TOOL-15", "SHOULD", "2024-11-05", None, "server",
         "Errors of the tool itself go in a result with `isError: true`; only finding/dispatch "
         "problems are JSON-RPC errors."),
        ("TOOL-16", "schema", "2025-11-25", None, "server",
         "Bad argument values → tool execution error (`isError`); the text up to 2025-06-18 "
         'listed "invalid arguments" as protocol error `-32602`.'),
        ("TOOL-17", "schema", "2024-11-05", None, "server",
         "Unknown tool / malformed `tools/call` → `-32602` (given by example in all revisions)."),
        ("TOOL-18", "SHOULD", "2025-11-25", None, "client",
         "Give execution errors to the model; MAY give protocol errors."),
        ("TOOL-19", "SHOULD", "2025-11-25", None, "server",
         "Names 1–128 chars of `[A-Za-z0-9_.-]`, case-sensitive, unique per server. (Do not "
         "reject others.)"),
        ("TOOL-20", "SHOULD", "2026-07-28", None, "client",
         "Aggregators disambiguate names, not by `serverInfo.name`."),
        ("TOOL-21", "MUST", "2025-03-26", None, "client",
         "Annotations are untrusted unless the server is trusted. Defaults: readOnly false, "
         "destructive true, idempotent false, openWorld true."),
        ("TOOL-22", "schema", "2025-03-26", None, "client",
         "Display name: `title`, then `annotations.title`, then `name`."),
        ("TOOL-23", "SHOULD", "2024-11-05", None, "server",
         "With `listChanged`, send `notifications/tools/list_changed` on change (2026-07-28: only"
         " to listen streams with `toolsListChanged`)."),
        ("TOOL-24", "MUST", "2024-11-05", None, "server",
         "Validate inputs, access control, rate limit, sanitise output."),
        ("TOOL-25", "SHOULD", "2024-11-05", None, "client",
         "Confirm sensitive operations, show inputs, validate results, timeouts, audit log; "
         "human in the loop."),
        ("TOOL-26", "SHOULD", "2025-06-18", None, "server",
         "A server returning embedded resources declares `resources`."),
    ),
    # CONT, Content blocks and annotations
    *rows(
        {"2024-11-05": "server/tools"},
        ("CONT-1", "schema", "2024-11-05", None, "both",
         "text `{type,text}`, image `{type,data(base64),mimeType}`, embedded "
         '`{type:"resource",resource}`; audio from 2025-03-26 on; `resource_link` from 2025-06-18'
         " on (= Resource + type)."),
        ("CONT-2", "schema", "2024-11-05", None, "both",
         "Tool results and prompt messages: 2024-11-05 text/image/resource; since 2025-03-26 "
         "+audio; since 2025-06-18 +resource_link."),
        ("CONT-3", "schema", "2024-11-05", None, "both",
         "Sampling content: 2024-11-05 text/image; since 2025-03-26 +audio; since 2025-11-25 "
         "+tool_use/tool_result and arrays. No resources or links."),
        ("CONT-4", "MUST", "2024-11-05", None, "both",
         "Binary data is base64 with a valid MIME type."),
        ("CONT-5", "schema", "2024-11-05", None, "both",
         "Annotations `audience?` (user/assistant), `priority?` 0..1; `lastModified?` ISO 8601 "
         "from 2025-06-18 on."),
        ("CONT-6", "schema", "2024-11-05", None, "both",
         "Resource contents have `uri`, `mimeType?` and exactly one of `text` / `blob`."),
        ("CONT-7", "reading", "2024-11-05", None, "receiver",
         "A content type not defined in the negotiated revision must not be sent: convert or drop"
         " (e.g. `resource_link` → text up to 2025-03-26, audio → not for 2024-11-05)."),
        ("CONT-8", "MUST", "2024-11-05", None, "server",
         "In prompts an embedded resource has a valid URI, the fitting MIME type and text or "
         "blob."),
    ),
)
# fmt: on
