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
        "A-D:basic/transports E:basic/transports/stdio",
        ("STDIO-1", "MUST", "A-E", "both",
         "One JSON-RPC message per line; a message contains no newline. (B: a line may be a "
         "batch array.)"),
        ("STDIO-2", "MUST NOT", "A-E", "server",
         "stdout carries nothing but MCP messages."),
        ("STDIO-3", "MUST NOT", "A-E", "client",
         "stdin carries nothing but MCP messages."),
        ("STDIO-4", "MAY", "A-E", "server",
         "stderr free UTF-8 logging; client may capture/forward/ignore; D–E: SHOULD NOT read it "
         "as error."),
        ("STDIO-5", "schema", "A-E", "client",
         "Client launches the server as a subprocess."),
        ("STDIO-6", "reading", "A-E", "receiver",
         "A line that is not JSON: answer `-32700` without id (server) or report locally "
         "(client); do not die. Blank lines and `\\r\\n` tolerated."),
        ("STDIO-7", "MUST NOT", "E", "server",
         "No JSON-RPC requests on stdout; MRTR instead."),
        ("STDIO-8", "MUST NOT", "E", "client",
         "No JSON-RPC responses on stdin."),
        ("STDIO-9", "schema", "E", "client",
         "All metadata is in the body."),
        ("STDIO-10", "SHOULD", "E", "client",
         "Shutdown: close stdin, wait, then force (SIGTERM→SIGKILL; Windows "
         "TerminateProcess/Job objects)."),
        ("STDIO-11", "SHOULD", "E", "server",
         "Exit promptly at stdin EOF."),
        ("STDIO-12", "SHOULD", "E", "client",
         "Restart a server that died; in-flight requests are lost and may be retried; listen "
         "re-sent."),
        ("STDIO-13", "SHOULD", "A-D", "client",
         "Clients support stdio whenever possible."),
        ("STDIO-14", "SHOULD", "E", "both",
         "Custom transports over byte streams reuse this framing."),
    ),
    # HTTP, Rules common to HTTP transports
    *rows(
        "A-D:basic/transports E:basic/transports/streamable-http",
        ("HTTP-1", "MUST", "A-E", "server",
         "Validate `Origin` on every incoming connection (DNS rebinding)."),
        ("HTTP-2", "MUST", "D-E", "server",
         "Invalid `Origin` → 403 (body MAY be a JSON-RPC error without id). (A–C name no "
         "status.) Absent Origin is acceptable."),
        ("HTTP-3", "SHOULD", "A-E", "server",
         "Bind to 127.0.0.1 when local; authenticate."),
        ("HTTP-4", "MUST", "B-E", "server",
         "One MCP endpoint path; B–D supports POST and GET; E POST."),
        ("HTTP-5", "MUST", "B-E", "client",
         "Every message is its own POST."),
        ("HTTP-6", "MUST", "B-E", "client",
         "POST `Accept` lists both `application/json` and `text/event-stream`."),
        ("HTTP-7", "reading", "B-E", "server",
         "Unacceptable `Accept` → 406; wrong `Content-Type` → 415; unsupported method → 405 "
         "with `Allow` (statuses not given by MCP except 405)."),
        ("HTTP-8", "MUST", "B-E", "server",
         "A request is answered by `application/json` (one object) or `text/event-stream`; the "
         "client supports both."),
        ("HTTP-9", "MUST", "B-E", "server",
         "Accepted notification (B–D also response) POST → 202, empty body; refused → 4xx, MAY "
         "have a JSON-RPC error without id."),
        ("HTTP-10", "reading", "B-E", "server",
         "JSON-RPC messages on SSE are the event `data`; SSE field rules per WHATWG (multi-line "
         "data joined by LF, comments ignored, BOM, CR/LF/CRLF)."),
        ("HTTP-11", "reading", "B-E", "client",
         "Default event type (`message` or none) carries messages; other event types ignored. "
         "An event with empty `data` carries no message (D priming event)."),
        ("HTTP-12", "reading", "B-E", "client",
         "A JSON-RPC error object may come with a 4xx/5xx status; parse the body before judging "
         "by status."),
    ),
    # SSE, HTTP+SSE of 2024-11-05
    *rows(
        "A:basic/transports E:deprecated",
        ("SSE-1", "MUST", "A", "server",
         "Two endpoints: SSE (GET) and POST."),
        ("SSE-2", "MUST", "A", "server",
         "On connect the first event is `endpoint` with the POST URI (relative or absolute)."),
        ("SSE-3", "MUST", "A", "client",
         "All client messages are POSTed to that URI."),
        ("SSE-4", "schema", "A", "server",
         "Server messages are `message` events with JSON data, all on the one SSE stream; POST "
         "answers carry no MCP payload (202 by custom)."),
        ("SSE-5", "reading", "A", "client",
         "Resolve the endpoint URI against the SSE URL; refuse another origin."),
        ("SSE-6", "reading", "A", "both",
         "Closing the SSE stream ends the connection; the session id is usually a query "
         "parameter of the endpoint."),
        ("SSE-7", "SHOULD NOT", "E", "both",
         "Not newly adopted (deprecated since B)."),
    ),
    # CUST, Custom transports, deprecation
    *rows(
        "A-D:basic/transports E:basic/transports",
        ("CUST-1", "MUST", "A-E", "both",
         "A custom transport keeps the JSON-RPC format and lifecycle (A–D) or message patterns "
         "and per-request metadata (E)."),
        ("CUST-2", "SHOULD", "A-E", "both",
         "Document connection, framing, (E) cancellation."),
        ("CUST-3", "MUST", "E", "both",
         "A binding delivers client requests/notifications and server responses/notifications; "
         "nothing else."),
        ("CUST-4", "SHOULD NOT", "E", "both",
         "Deprecated: roots, sampling, logging, DCR, HTTP+SSE, `includeContext` "
         "this/allServers. Not newly adopted, still to be supported for peers."),
    ),
)
# fmt: on
