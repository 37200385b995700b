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
        "B-D:basic/transports",
        ("SHL-1", "schema", "B", "client",
         "POST body: one message, or a batch of requests/notifications, or a batch of responses."),
        ("SHL-2", "schema", "C-D", "client",
         "POST body: exactly one request, notification or response."),
        ("SHL-3", "SHOULD", "B-D", "server",
         "POST SSE stream eventually has the response to each request of the POST, then is "
         "closed/terminated."),
        ("SHL-4", "SHOULD", "B-D", "server",
         "Requests/notifications sent on a POST stream relate to that client request (SEP-2260: "
         "server requests other than ping MUST be tied to a client request)."),
        ("SHL-5", "SHOULD NOT", "B-C", "server",
         "Do not close the POST stream before all responses, unless the session ends."),
        ("SHL-6", "SHOULD", "D", "server",
         "Start of stream: event with an id and empty data, so the client can reconnect."),
        ("SHL-7", "MAY", "D", "server",
         "After an id was sent, the server may close the connection without ending the stream; "
         "SHOULD send `retry:` first."),
        ("SHL-8", "MUST", "D", "client",
         "Respect `retry` (ms) before reconnecting; SHOULD reconnect (poll)."),
        ("SHL-9", "SHOULD NOT", "B-D", "server",
         "A disconnect is not a cancellation."),
        ("SHL-10", "MAY", "B-D", "client",
         "GET opens a server→client stream; MUST send `Accept: text/event-stream`."),
        ("SHL-11", "MUST", "B-D", "server",
         "GET → `text/event-stream` or 405."),
        ("SHL-12", "SHOULD", "B-D", "server",
         "GET stream messages are unrelated to running requests."),
        ("SHL-13", "MUST NOT", "B-D", "server",
         "No responses on the GET stream except when resuming a POST stream."),
        ("SHL-14", "MAY", "B-D", "both",
         "Several streams at once."),
        ("SHL-15", "MUST NOT", "B-D", "server",
         "A message goes to exactly one stream; no broadcast."),
        ("SHL-16", "MUST", "B-D", "server",
         "Event ids, if used, are unique across all streams of the session (or client)."),
        ("SHL-17", "SHOULD", "D", "server",
         "Event ids identify their stream."),
        ("SHL-18", "SHOULD", "B-D", "client",
         "Resume by GET with `Last-Event-ID` (also for a POST stream)."),
        ("SHL-19", "MUST NOT", "B-D", "server",
         "Replay only messages of the broken stream."),
        ("SHL-20", "MAY", "B-D", "server",
         "Session id in `Mcp-Session-Id` (D spelling `MCP-Session-Id`; case-insensitive) on the "
         "InitializeResult response only."),
        ("SHL-21", "MUST", "B-D", "server",
         "Session id is visible ASCII 0x21–0x7E; SHOULD be unguessable (best practices: MUST be "
         "non-deterministic)."),
        ("SHL-22", "MUST", "B-D", "client",
         "If given, send it on every later request (POST, GET, DELETE)."),
        ("SHL-23", "SHOULD", "B-D", "server",
         "Missing where required → 400 (except initialize)."),
        ("SHL-24", "MUST", "B-D", "server",
         "Terminated session → 404."),
        ("SHL-25", "MUST", "B-D", "client",
         "404 with a session id sent → start anew with `initialize` without the id. (A 404 "
         "without a session id is an ordinary failure / wrong URL.)"),
        ("SHL-26", "SHOULD", "B-D", "client",
         "DELETE with the id when done; server MAY 405."),
        ("SHL-27", "MUST NOT", "B-D", "server",
         "Sessions are not authentication; SHOULD be bound to the user; a foreign principal is "
         "treated as unknown session."),
        ("SHL-28", "MUST", "C-D", "client",
         "`MCP-Protocol-Version: <negotiated>` on all requests after initialize (also "
         "`notifications/initialized`, GET, DELETE). SHOULD be the negotiated version."),
        ("SHL-29", "MUST", "C-D", "server",
         "Invalid/unsupported value → 400."),
        ("SHL-30", "SHOULD", "C-D", "server",
         "Header absent and version not otherwise known → assume 2025-03-26."),
        ("SHL-31", "reading", "B", "client",
         "B defines no such header on MCP requests (only for OAuth metadata); sending it is "
         "harmless."),
        ("SHL-32", "reading", "C-D", "server",
         "Header present but differing from the session's negotiated version: 400 is safe; some "
         "SDKs accept any supported value."),
        ("SHL-33", "MUST", "D", "client",
         "Session id handled securely."),
    ),
    # SHM, Streamable HTTP of the stateless era (2026-07-28)
    *rows(
        "E:basic/transports/streamable-http",
        ("SHM-1", "MUST", "E", "client",
         "POST body: one request or notification."),
        ("SHM-2", "MUST", "E", "client",
         "`MCP-Protocol-Version` on every POST, equal to `_meta…/protocolVersion`."),
        ("SHM-3", "MUST", "E", "server",
         "Missing or differing → 400 + `-32020`."),
        ("SHM-4", "MUST", "E", "server",
         "Version unsupported (header and body agree) → 400 + `-32022`."),
        ("SHM-5", "MUST", "E", "server",
         "Unimplemented method → 404 + `-32601` body."),
        ("SHM-6", "MUST", "E", "server",
         "`-32020`, `-32021`, `-32022` and missing `_meta` keys (`-32602`) → 400. Status for "
         "other errors is not given (200 and 400 both seen; clients read the body)."),
        ("SHM-7", "MUST", "E", "server",
         "Error responses keep the request id. These statuses require that no SSE has been "
         "started: decide before committing to `text/event-stream`."),
        ("SHM-8", "MUST", "E", "server",
         "Notifications on a response stream relate to its request."),
        ("SHM-9", "MUST NOT", "E", "server",
         "No requests on any stream."),
        ("SHM-10", "SHOULD", "E", "server",
         "The final response ends the stream."),
        ("SHM-11", "MUST", "E", "server",
         "Stream closed by client = cancelled; stop soon; no further message."),
        ("SHM-12", "MUST", "E", "client",
         "A broken response stream loses the request; re-issue with a new id (changelog)."),
        ("SHM-13", "schema", "E", "both",
         "No resumption: no event ids, `Last-Event-ID` ignored."),
        ("SHM-14", "SHOULD", "E", "server",
         "GET/DELETE → 405; `Mcp-Session-Id` ignored, never minted or echoed. (Modern-only "
         "server.)"),
        ("SHM-15", "SHOULD", "E", "server",
         "`X-Accel-Buffering: no` on SSE; comment keep-alives encouraged."),
        ("SHM-16", "reading", "E", "client",
         "SSE comments are ignored."),
        ("SHM-17", "MAY", "E", "server",
         "A server that also supports <C clients may treat a request without version header as "
         "2025-03-26; otherwise MUST reject."),
        ("SHM-18", "reading", "E", "server",
         "Notification POSTs: header rules undefined in E; accept with 202 and ignore."),
        ("SHM-19", "reading", "E", "server",
         "Order of checks that satisfies the conformance suite: Origin 403 → method 405 → "
         "Accept 406 → parse `-32700` → shape `-32600` → `_meta` present `-32602` → headers = "
         "body `-32020` → version `-32022` → method `-32601`/404 → Mcp-Param headers `-32020` → "
         "params `-32602` → capability `-32021`."),
    ),
    # HDR, Mirrored headers, `x-mcp-header`
    *rows(
        "E:basic/transports/streamable-http",
        ("HDR-1", "MUST", "E", "client",
         "`Mcp-Method` = `method` on all requests."),
        ("HDR-2", "MUST", "E", "client",
         "`Mcp-Name` = `params.name` (`tools/call`, `prompts/get`) or `params.uri` "
         "(`resources/read`); tasks extension: `params.taskId`."),
        ("HDR-3", "MUST", "E", "server",
         "Missing, differing or malformed mirrored header → 400 + `-32020`."),
        ("HDR-4", "MUST", "E", "both",
         "Header names compared case-insensitively; values case-sensitively."),
        ("HDR-5", "MUST", "E", "client",
         "Value not safe as plain ASCII (non-ASCII, control, leading/trailing space/tab; also "
         "an ASCII value that itself looks like `=?base64?…?=`) → `=?base64?<base64 of "
         "UTF-8>?=`, for `Mcp-Name` and `Mcp-Param-*`. Markers lowercase, exact."),
        ("HDR-6", "MUST", "E", "server",
         "Decode before comparing."),
        ("HDR-7", "MUST", "E", "client",
         "HTTP clients support `x-mcp-header`: `Mcp-Param-{value}` for each annotated property "
         "with a value."),
        ("HDR-8", "MUST", "E", "client",
         "Value: string as is; integer decimal; boolean `true`/`false`."),
        ("HDR-9", "MUST", "E", "client",
         "Argument absent or `null` → no header. Server MUST NOT expect it."),
        ("HDR-10", "MUST", "E", "server",
         "Value in the body but header missing → reject (`-32020`)."),
        ("HDR-11", "MUST", "E", "server",
         "A server reading the body validates recognised param headers; invalid characters → "
         "reject; SHOULD compare integers numerically (`42.0` = `42`)."),
        ("HDR-12", "MUST", "E", "server",
         "Annotation constraints: non-empty; RFC 9110 token; no control chars; unique ignoring "
         "case within the schema; only on `string`/`integer`/`boolean` (never `number`); "
         "integers within ±(2^53-1); reachable from the root through `properties` only (not "
         "`items`, `oneOf/anyOf/allOf/not`, `if/then/else`, `$ref`)."),
        ("HDR-13", "MUST", "E", "client",
         "HTTP client drops a tool violating any of these from `tools/list` results (other "
         "tools stay); SHOULD log name and reason. Other transports MAY ignore annotations."),
        ("HDR-14", "SHOULD", "E", "client",
         "On `-32020` for params: refresh `tools/list`, retry with right headers."),
        ("HDR-15", "SHOULD NOT", "E", "server",
         "Do not annotate secrets."),
        ("HDR-16", "MUST", "E", "intermediary",
         "Intermediaries forward unknown `Mcp-Param-*`; answer validation failures with a 4xx; "
         "SHOULD check the version header before trusting mirrored values."),
        ("HDR-17", "reading", "E", "server",
         "A duplicated mirrored header is a mismatch (SDK practice)."),
        ("HDR-18", "reading", "E", "server",
         "A body with a mirrored member twice (`params.name`, `params.uri`) is refused: readers "
         "differ in which of the two counts. `name` beside `uri` is no duplicate."),
    ),
)
# fmt: on
