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
        "A-E:server/tools",
        ("TOOL-1", "MUST", "A-E", "server",
         "A server with tools declares `tools`."),
        ("TOOL-2", "schema", "A-E", "server",
         'Tool: `name`, `inputSchema` (root `type: "object"`), `description?`; `annotations?` '
         "B–; `title?`, `outputSchema?`, `_meta?` C–; `icons?` D–; `execution?` D only."),
        ("TOOL-3", "MUST", "E", "server",
         "`tools/list` is answered whenever declared; the set may be empty or change."),
        ("TOOL-4", "MUST NOT", "E", "server",
         "The set does not depend on connection or on other requests; it MAY depend on the "
         "authorization. (Same for prompts and resources.)"),
        ("TOOL-5", "SHOULD", "E", "server",
         "Deterministic order."),
        ("TOOL-6", "MUST", "D-E", "server",
         "`inputSchema` is a schema object, never `null`; no-parameter tool: "
         '`{"type":"object","additionalProperties":false}` recommended.'),
        ("TOOL-7", "schema", "A-C", "server",
         "`inputSchema` keys known: `type, properties?, required?`; D adds `$schema?`; E any "
         '2020-12 keyword beside `type:"object"`.'),
        ("TOOL-8", "schema", "C-D", "server",
         '`outputSchema` root must be `type: "object"`; `structuredContent` is an object.'),
        ("TOOL-9", "schema", "E", "server",
         "`outputSchema` may be any schema; `structuredContent` any JSON value, `null` included "
         "(so absent ≠ null)."),
        ("TOOL-10", "MUST", "C-E", "server",
         "With `outputSchema`, the result has conforming `structuredContent` (reading: except "
         "when `isError`)."),
        ("TOOL-11", "SHOULD", "C-E", "client",
         "Validate `structuredContent` against `outputSchema`."),
        ("TOOL-12", "SHOULD", "C-E", "server",
         "Also give the JSON as a text block for old clients."),
        ("TOOL-13", "schema", "A-E", "server",
         "`CallToolResult.content` is required (may be `[]`); `isError?` default false."),
        ("TOOL-14", "schema", "A-E", "client",
         "`tools/call {name, arguments?: object}`; D `task?`; E `inputResponses?`, "
         "`requestState?`."),
        ("TOOL-15", "SHOULD", "A-E", "server",
         "Errors of the tool itself go in a result with `isError: true`; only finding/dispatch "
         "problems are JSON-RPC errors."),
        ("TOOL-16", "schema", "D-E", "server",
         'Bad argument values → tool execution error (`isError`); A–C text listed "invalid '
         'arguments" as protocol error `-32602`.'),
        ("TOOL-17", "schema", "A-E", "server",
         "Unknown tool / malformed `tools/call` → `-32602` (given by example in all revisions)."),
        ("TOOL-18", "SHOULD", "D-E", "client",
         "Give execution errors to the model; MAY give protocol errors."),
        ("TOOL-19", "SHOULD", "D-E", "server",
         "Names 1–128 chars of `[A-Za-z0-9_.-]`, case-sensitive, unique per server. (Do not "
         "reject others.)"),
        ("TOOL-20", "SHOULD", "E", "client",
         "Aggregators disambiguate names, not by `serverInfo.name`."),
        ("TOOL-21", "MUST", "B-E", "client",
         "Annotations are untrusted unless the server is trusted. Defaults: readOnly false, "
         "destructive true, idempotent false, openWorld true."),
        ("TOOL-22", "schema", "B-E", "client",
         "Display name: `title`, then `annotations.title`, then `name`."),
        ("TOOL-23", "SHOULD", "A-E", "server",
         "With `listChanged`, send `notifications/tools/list_changed` on change (E: only to "
         "listen streams with `toolsListChanged`)."),
        ("TOOL-24", "MUST", "A-E", "server",
         "Validate inputs, access control, rate limit, sanitise output."),
        ("TOOL-25", "SHOULD", "A-E", "client",
         "Confirm sensitive operations, show inputs, validate results, timeouts, audit log; "
         "human in the loop."),
        ("TOOL-26", "SHOULD", "C-E", "server",
         "A server returning embedded resources declares `resources`."),
    ),
    # CONT, Content blocks and annotations
    *rows(
        "A-E:server/tools",
        ("CONT-1", "schema", "A-E", "both",
         "text `{type,text}`, image `{type,data(base64),mimeType}`, embedded "
         '`{type:"resource",resource}`; audio from B; `resource_link` from C (= Resource + '
         "type)."),
        ("CONT-2", "schema", "A-E", "both",
         "Tool results and prompt messages: A text/image/resource; B +audio; C–E +resource_link."),
        ("CONT-3", "schema", "A-E", "both",
         "Sampling content: A text/image; B–C +audio; D–E +tool_use/tool_result and arrays. No "
         "resources or links."),
        ("CONT-4", "MUST", "A-E", "both",
         "Binary data is base64 with a valid MIME type."),
        ("CONT-5", "schema", "A-E", "both",
         "Annotations `audience?` (user/assistant), `priority?` 0..1; `lastModified?` ISO 8601 "
         "from C."),
        ("CONT-6", "schema", "A-E", "both",
         "Resource contents have `uri`, `mimeType?` and exactly one of `text` / `blob`."),
        ("CONT-7", "reading", "A-E", "receiver",
         "A content type not defined in the negotiated revision must not be sent: convert or "
         "drop (e.g. `resource_link` → text for A/B, audio → not for A)."),
        ("CONT-8", "MUST", "A-E", "server",
         "In prompts an embedded resource has a valid URI, the fitting MIME type and text or "
         "blob."),
    ),
)
# fmt: on
