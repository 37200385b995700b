"""Rows for Streamable HTTP and its mirrored headers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ._requirement import rows

if TYPE_CHECKING:
    from ._requirement import Requirement

__all__ = ["ROWS"]

# fmt: off
ROWS: Final[tuple[Requirement, ...]] = (
    # SHL, Streamable HTTP of the stateful era (2025-03-26 … 2025-11-25)
    *rows(
        {"2025-03-26": "basic/transports"},
        ("SHL-1", "schema", "2025-03-26", "2025-06-18", "client",
         "POST body: one message, or a batch of requests/notifications, or a batch of responses."),
        ("SHL-2", "schema", "2025-06-18", "2026-07-28", "client",
         "POST body: exactly one request, notification or response."),
        ("SHL-3", "SHOULD", "2025-03-26", "2026-07-28", "server",
         "POST SSE stream eventually has the response to each request of the POST, then is "
         "closed/terminated."),
        ("SHL-4", "SHOULD", "2025-03-26", "2026-07-28", "server",
         "Requests/notifications sent on a POST stream relate to that client request (SEP-2260: "
         "server requests other than ping MUST be tied to a client request)."),
        ("SHL-5", "SHOULD NOT", "2025-03-26", "2025-11-25", "server",
         "Do not close the POST stream before all responses, unless the session ends."),
        ("SHL-6", "SHOULD", "2025-11-25", "2026-07-28", "server",
         "Start of stream: event with an id and empty data, so the client can reconnect."),
        ("SHL-7", "MAY", "2025-11-25", "2026-07-28", "server",
         "After an id was sent, the server may close the connection without ending the stream; "
         "SHOULD send `retry:` first."),
        ("SHL-8", "MUST", "2025-11-25", "2026-07-28", "client",
         "Respect `retry` (ms) before reconnecting; SHOULD reconnect (poll)."),
        ("SHL-9", "SHOULD NOT", "2025-03-26", "2026-07-28", "server",
         "A disconnect is not a cancellation."),
        ("SHL-10", "MAY", "2025-03-26", "2026-07-28", "client",
         "GET opens a server→client stream; MUST send `Accept: text/event-stream`."),
        ("SHL-11", "MUST", "2025-03-26", "2026-07-28", "server",
         "GET → `text/event-stream` or 405."),
        ("SHL-12", "SHOULD", "2025-03-26", "2026-07-28", "server",
         "GET stream messages are unrelated to running requests."),
        ("SHL-13", "MUST NOT", "2025-03-26", "2026-07-28", "server",
         "No responses on the GET stream except when resuming a POST stream."),
        ("SHL-14", "MAY", "2025-03-26", "2026-07-28", "both",
         "Several streams at once."),
        ("SHL-15", "MUST NOT", "2025-03-26", "2026-07-28", "server",
         "A message goes to exactly one stream; no broadcast."),
        ("SHL-16", "MUST", "2025-03-26", "2026-07-28", "server",
         "Event ids, if used, are unique across all streams of the session (or client)."),
        ("SHL-17", "SHOULD", "2025-11-25", "2026-07-28", "server",
         "Event ids identify their stream."),
        ("SHL-18", "SHOULD", "2025-03-26", "2026-07-28", "client",
         "Resume by GET with `Last-Event-ID` (also for a POST stream)."),
        ("SHL-19", "MUST NOT", "2025-03-26", "2026-07-28", "server",
         "Replay only messages of the broken stream."),
        ("SHL-20", "MAY", "2025-03-26", "2026-07-28", "server",
         "Session id in `Mcp-Session-Id` (2025-11-25 spelling `MCP-Session-Id`; case-insensitive)"
         " on the InitializeResult response only."),
        ("SHL-21", "MUST", "2025-03-26", "2026-07-28", "server",
         "Session id is visible ASCII 0x21–0x7E; SHOULD be unguessable (best practices: MUST be "
         "non-deterministic)."),
        ("SHL-22", "MUST", "2025-03-26", "2026-07-28", "client",
         "If given, send it on every later request (POST, GET, DELETE)."),
        ("SHL-23", "SHOULD", "2025-03-26", "2026-07-28", "server",
         "Missing where required → 400 (except initialize)."),
        ("SHL-24", "MUST", "2025-03-26", "2026-07-28", "server",
         "Terminated session → 404."),
        ("SHL-25", "MUST", "2025-03-26", "2026-07-28", "client",
         "404 with a session id sent → start anew with `initialize` without the id. (A 404 "
         "without a session id is an ordinary failure / wrong URL.)"),
        ("SHL-26", "SHOULD", "2025-03-26", "2026-07-28", "client",
         "DELETE with the id when done; server MAY 405."),
        ("SHL-27", "MUST NOT", "2025-03-26", "2026-07-28", "server",
         "Sessions are not authentication; SHOULD be bound to the user; a foreign principal is "
         "treated as unknown session."),
        ("SHL-28", "MUST", "2025-06-18", "2026-07-28", "client",
         "`MCP-Protocol-Version: <negotiated>` on all requests after initialize (also "
         "`notifications/initialized`, GET, DELETE). SHOULD be the negotiated version."),
        ("SHL-29", "MUST", "2025-06-18", "2026-07-28", "server",
         "Invalid/unsupported value → 400."),
        ("SHL-30", "SHOULD", "2025-06-18", "2026-07-28", "server",
         "Header absent and version not otherwise known → assume 2025-03-26."),
        ("SHL-31", "reading", "2025-03-26", "2025-06-18", "client",
         "2025-03-26 defines no such header on MCP requests (only for OAuth metadata); sending it"
         " is harmless."),
        ("SHL-32", "reading", "2025-06-18", "2026-07-28", "server",
         "Header present but differing from the session's negotiated version: 400 is safe; some "
         "SDKs accept any supported value."),
        ("SHL-33", "MUST", "2025-11-25", "2026-07-28", "client",
         "Session id handled securely."),
    ),
    # SHM, Streamable HTTP of the stateless era (2026-07-28)
    *rows(
        {"2026-07-28": "basic/transports/streamable-http"},
        ("SHM-1", "MUST", "2026-07-28", None, "client",
         "POST body: one request or notification."),
        ("SHM-2", "MUST", "2026-07-28", None, "client",
         "`MCP-Protocol-Version` on every POST, equal to `_meta…/protocolVersion`."),
        ("SHM-3", "MUST", "2026-07-28", None, "server",
         "Missing or differing → 400 + `-32020`."),
        ("SHM-4", "MUST", "2026-07-28", None, "server",
         "Version unsupported (header and body agree) → 400 + `-32022`."),
        ("SHM-5", "MUST", "2026-07-28", None, "server",
         "Unimplemented method → 404 + `-32601` body."),
        ("SHM-6", "MUST", "2026-07-28", None, "server",
         "`-32020`, `-32021`, `-32022` and missing `_meta` keys (`-32602`) → 400. Status for "
         "other errors is not given (200 and 400 both seen; clients read the body)."),
        ("SHM-7", "MUST", "2026-07-28", None, "server",
         "Error responses keep the request id. These statuses require that no SSE has been "
         "started: decide before committing to `text/event-stream`."),
        ("SHM-8", "MUST", "2026-07-28", None, "server",
         "Notifications on a response stream relate to its request."),
        ("SHM-9", "MUST NOT", "2026-07-28", None, "server",
         "No requests on any stream."),
        ("SHM-10", "SHOULD", "2026-07-28", None, "server",
         "The final response ends the stream."),
        ("SHM-11", "MUST", "2026-07-28", None, "server",
         "Stream closed by client = cancelled; stop soon; no further message."),
        ("SHM-12", "MUST", "2026-07-28", None, "client",
         "A broken response stream loses the request; re-issue with a new id (changelog)."),
        ("SHM-13", "schema", "2026-07-28", None, "both",
         "No resumption: no event ids, `Last-Event-ID` ignored."),
        ("SHM-14", "SHOULD", "2026-07-28", None, "server",
         "GET/DELETE → 405; `Mcp-Session-Id` ignored, never minted or echoed. (Modern-only "
         "server.)"),
        ("SHM-15", "SHOULD", "2026-07-28", None, "server",
         "`X-Accel-Buffering: no` on SSE; comment keep-alives encouraged."),
        ("SHM-16", "reading", "2026-07-28", None, "client",
         "SSE comments are ignored."),
        ("SHM-17", "MAY", "2026-07-28", None, "server",
         "A server that also supports clients before 2025-06-18 may treat a request without "
         "version header as 2025-03-26; otherwise MUST reject."),
        ("SHM-18", "reading", "2026-07-28", None, "server",
         "Notification POSTs: header rules undefined in 2026-07-28; accept with 202 and ignore."),
        ("SHM-19", "reading", "2026-07-28", None, "server",
         "Order of checks that satisfies the conformance suite: Origin 403 → method 405 → "
         "Accept 406 → parse `-32700` → shape `-32600` → `_meta` present `-32602` → headers = "
         "body `-32020` → version `-32022` → method `-32601`/404 → Mcp-Param headers `-32020` → "
         "params `-32602` → capability `-32021`."),
    ),
    # HDR, Mirrored headers, `x-mcp-header`
    *rows(
        {"2026-07-28": "basic/transports/streamable-http"},
        ("HDR-1", "MUST", "2026-07-28", None, "client",
         "`Mcp-Method` = `method` on all requests."),
        ("HDR-2", "MUST", "2026-07-28", None, "client",
         "`Mcp-Name` = `params.name` (`tools/call`, `prompts/get`) or `params.uri` "
         "(`resources/read`); tasks extension: `params.taskId`."),
        ("HDR-3", "MUST", "2026-07-28", None, "server",
         "Missing, differing or malformed mirrored header → 400 + `-32020`."),
        ("HDR-4", "MUST", "2026-07-28", None, "both",
         "Header names compared case-insensitively; values case-sensitively."),
        ("HDR-5", "MUST", "2026-07-28", None, "client",
         "Value not safe as plain ASCII (non-ASCII, control, leading/trailing space/tab; also "
         "an ASCII value that itself looks like `=?base64?…?=`) → `=?base64?<base64 of "
         "UTF-8>?=`, for `Mcp-Name` and `Mcp-Param-*`. Markers lowercase, exact."),
        ("HDR-6", "MUST", "2026-07-28", None, "server",
         "Decode before comparing."),
        ("HDR-7", "MUST", "2026-07-28", None, "client",
         "HTTP clients support `x-mcp-header`: `Mcp-Param-{value}` for each annotated property "
         "with a value."),
        ("HDR-8", "MUST", "2026-07-28", None, "client",
         "Value: string as is; integer decimal; boolean `true`/`false`."),
        ("HDR-9", "MUST", "2026-07-28", None, "client",
         "Argument absent or `null` → no header. Server MUST NOT expect it."),
        ("HDR-10", "MUST", "2026-07-28", None, "server",
         "Value in the body but header missing → reject (`-32020`)."),
        ("HDR-11", "MUST", "2026-07-28", None, "server",
         "A server reading the body validates recognised param headers; invalid characters → "
         "reject; SHOULD compare integers numerically (`42.0` = `42`)."),
        ("HDR-12", "MUST", "2026-07-28", None, "server",
         "Annotation constraints: non-empty; RFC 9110 token; no control chars; unique ignoring "
         "case within the schema; only on `string`/`integer`/`boolean` (never `number`); "
         "integers within ±(2^53-1); reachable from the root through `properties` only (not "
         "`items`, `oneOf/anyOf/allOf/not`, `if/then/else`, `$ref`)."),
        ("HDR-13", "MUST", "2026-07-28", None, "client",
         "HTTP client drops a tool violating any of these from `tools/list` results (other "
         "tools stay); SHOULD log name and reason. Other transports MAY ignore annotations."),
        ("HDR-14", "SHOULD", "2026-07-28", None, "client",
         "On `-32020` for params: refresh `tools/list`, retry with right headers."),
        ("HDR-15", "SHOULD NOT", "2026-07-28", None, "server",
         "Do not annotate secrets."),
        ("HDR-16", "MUST", "2026-07-28", None, "intermediary",
         "Intermediaries forward unknown `Mcp-Param-*`; answer validation failures with a 4xx; "
         "SHOULD check the version header before trusting mirrored values."),
        ("HDR-17", "reading", "2026-07-28", None, "server",
         "A duplicated mirrored header is a mismatch (SDK practice)."),
        ("HDR-18", "reading", "2026-07-28", None, "server",
         "A body with a mirrored member twice (`params.name`, `params.uri`) is refused: readers "
         "differ in which of the two counts. `name` beside `uri` is no duplicate."),
    ),
)
# fmt: on
