"""Rows for stdio, for what all HTTP transports share, for HTTP+SSE and custom transports."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ._requirement import rows

if TYPE_CHECKING:
    from ._requirement import Requirement

__all__ = ["ROWS"]

# fmt: off
ROWS: Final[tuple[Requirement, ...]] = (
    # STDIO, stdio transport
    *rows(
        {"2024-11-05": "basic/transports", "2026-07-28": "basic/transports/stdio"},
        ("STDIO-1", "MUST", "2024-11-05", None, "both",
         "One JSON-RPC message per line; a message contains no newline. (2025-03-26: a line may "
         "be a batch array.)"),
        ("STDIO-2", "MUST NOT", "2024-11-05", None, "server",
         "stdout carries nothing but MCP messages."),
        ("STDIO-3", "MUST NOT", "2024-11-05", None, "client",
         "stdin carries nothing but MCP messages."),
        ("STDIO-4", "MAY", "2024-11-05", None, "server",
         "stderr free UTF-8 logging; client may capture/forward/ignore; since 2025-11-25: SHOULD "
         "NOT read it as error."),
        ("STDIO-5", "schema", "2024-11-05", None, "client",
         "Client launches the server as a subprocess."),
        ("STDIO-6", "reading", "2024-11-05", None, "receiver",
         "A line that is not JSON: answer `-32700` without id (server) or report locally "
         "(client); do not die. Blank lines and `\\r\\n` tolerated."),
        ("STDIO-7", "MUST NOT", "2026-07-28", None, "server",
         "No JSON-RPC requests on stdout; MRTR instead."),
        ("STDIO-8", "MUST NOT", "2026-07-28", None, "client",
         "No JSON-RPC responses on stdin."),
        ("STDIO-9", "schema", "2026-07-28", None, "client",
         "All metadata is in the body."),
        ("STDIO-10", "SHOULD", "2026-07-28", None, "client",
         "Shutdown: close stdin, wait, then force (SIGTERM→SIGKILL; Windows "
         "TerminateProcess/Job objects)."),
        ("STDIO-11", "SHOULD", "2026-07-28", None, "server",
         "Exit promptly at stdin EOF."),
        ("STDIO-12", "SHOULD", "2026-07-28", None, "client",
         "Restart a server that died; in-flight requests are lost and may be retried; listen "
         "re-sent."),
        ("STDIO-13", "SHOULD", "2024-11-05", "2026-07-28", "client",
         "Clients support stdio whenever possible."),
        ("STDIO-14", "SHOULD", "2026-07-28", None, "both",
         "Custom transports over byte streams reuse this framing."),
    ),
    # HTTP, Rules common to HTTP transports
    *rows(
        {"2024-11-05": "basic/transports", "2026-07-28": "basic/transports/streamable-http"},
        ("HTTP-1", "MUST", "2024-11-05", None, "server",
         "Validate `Origin` on every incoming connection (DNS rebinding)."),
        ("HTTP-2", "MUST", "2025-11-25", None, "server",
         "Invalid `Origin` → 403 (body MAY be a JSON-RPC error without id). (Revisions up to "
         "2025-06-18 name no status.) Absent Origin is acceptable."),
        ("HTTP-3", "SHOULD", "2024-11-05", None, "server",
         "Bind to 127.0.0.1 when local; authenticate."),
        ("HTTP-4", "MUST", "2025-03-26", None, "server",
         "One MCP endpoint path; up to 2025-11-25 it supports POST and GET; since 2026-07-28 "
         "POST."),
        ("HTTP-5", "MUST", "2025-03-26", None, "client",
         "Every message is its own POST."),
        ("HTTP-6", "MUST", "2025-03-26", None, "client",
         "POST `Accept` lists both `application/json` and `text/event-stream`."),
        ("HTTP-7", "reading", "2025-03-26", None, "server",
         "An `Accept` without a type that fits → 406; wrong `Content-Type` → 415; unsupported "
         "method → 405 with `Allow` (statuses not given by MCP except 405)."),
        ("HTTP-8", "MUST", "2025-03-26", None, "server",
         "A request is answered by `application/json` (one object) or `text/event-stream`; the "
         "client supports both."),
        ("HTTP-9", "MUST", "2025-03-26", None, "server",
         "Accepted notification (up to 2025-11-25 also response) POST → 202, empty body; refused "
         "→ 4xx, MAY have a JSON-RPC error without id."),
        ("HTTP-10", "reading", "2025-03-26", None, "server",
         "JSON-RPC messages on SSE are the event `data`; SSE field rules per WHATWG (multi-line "
         "data joined by LF, comments ignored, BOM, CR/LF/CRLF)."),
        ("HTTP-11", "reading", "2025-03-26", None, "client",
         "Default event type (`message` or none) carries messages; other event types ignored. An "
         "event with empty `data` carries no message (2025-11-25 priming event)."),
        ("HTTP-12", "reading", "2025-03-26", None, "client",
         "A JSON-RPC error object may come with a 4xx/5xx status; parse the body before judging "
         "by status."),
    ),
    # SSE, HTTP+SSE of 2024-11-05
    *rows(
        {"2024-11-05": "basic/transports", "2026-07-28": "deprecated"},
        ("SSE-1", "MUST", "2024-11-05", "2025-03-26", "server",
         "Two endpoints: SSE (GET) and POST."),
        ("SSE-2", "MUST", "2024-11-05", "2025-03-26", "server",
         "On connect the first event is `endpoint` with the POST URI (relative or absolute)."),
        ("SSE-3", "MUST", "2024-11-05", "2025-03-26", "client",
         "All client messages are POSTed to that URI."),
        ("SSE-4", "schema", "2024-11-05", "2025-03-26", "server",
         "Server messages are `message` events with JSON data, all on the one SSE stream; POST "
         "answers carry no MCP payload (202 by custom)."),
        ("SSE-5", "reading", "2024-11-05", "2025-03-26", "client",
         "Resolve the endpoint URI against the SSE URL; refuse another origin."),
        ("SSE-6", "reading", "2024-11-05", "2025-03-26", "both",
         "Closing the SSE stream ends the connection; the session id is usually a query "
         "parameter of the endpoint."),
        ("SSE-7", "SHOULD NOT", "2026-07-28", None, "both",
         "Not newly adopted (deprecated since 2025-03-26)."),
    ),
    # CUST, Custom transports, deprecation
    *rows(
        {"2024-11-05": "basic/transports", "2026-07-28": "basic/transports"},
        ("CUST-1", "MUST", "2024-11-05", None, "both",
         "A custom transport keeps the JSON-RPC format and lifecycle (up to 2025-11-25) or "
         "message patterns and per-request metadata (since 2026-07-28)."),
        ("CUST-2", "SHOULD", "2024-11-05", None, "both",
         "Document connection, framing, (since 2026-07-28) cancellation."),
        ("CUST-3", "MUST", "2026-07-28", None, "both",
         "A binding delivers client requests/notifications and server responses/notifications; "
         "nothing else."),
        ("CUST-4", "SHOULD NOT", "2026-07-28", None, "both",
         "Deprecated: roots, sampling, logging, DCR, HTTP+SSE, `includeContext` "
         "this/allServers. Not newly adopted, still to be supported for peers."),
    ),
)
# fmt: on
