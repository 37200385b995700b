"""Rows for JSON-RPC messages, `_meta`, JSON Schema and error codes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ._requirement import rows

if TYPE_CHECKING:
    from ._requirement import Requirement

__all__ = ["ROWS"]

# fmt: off
ROWS: Final[tuple[Requirement, ...]] = (
    # RPC, JSON-RPC messages and ids
    *rows(
        {"2024-11-05": "basic/messages", "2025-03-26": "basic"},
        ("RPC-1", "MUST", "2024-11-05", None, "both",
         'Every message is JSON-RPC 2.0 with `jsonrpc` exactly `"2.0"`.'),
        ("RPC-2", "MUST", "2024-11-05", None, "both",
         "A request carries an `id` that is a string or an integer (schema: no fractions, no "
         "bool, no object)."),
        ("RPC-3", "MUST NOT", "2024-11-05", None, "both",
         "A request `id` is never `null`."),
        ("RPC-4", "MUST NOT", "2024-11-05", "2026-07-28", "requestor",
         "Within one session a requestor never reuses an id it has used before (even after the "
         "response arrived)."),
        ("RPC-5", "MUST NOT", "2026-07-28", None, "client",
         "An id must not equal that of any request of the same sender still unanswered; reuse "
         "after the response is legal. (Weaker than up to 2025-11-25; a never-reuse counter "
         "satisfies all.)"),
        ("RPC-6", "reading", "2024-11-05", None, "both",
         'Ids are compared with their JSON type: `1` and `"1"` are different. Each direction has '
         "its own id space (up to 2025-11-25); a response is matched only against requests the "
         "receiver of the response sent."),
        ("RPC-7", "MUST", "2024-11-05", None, "responder",
         "A response repeats the request id, same JSON type and value."),
        ("RPC-8", "MUST", "2025-11-25", None, "responder",
         "Error response may leave `id` out only if the id of the offending message could not be "
         "read (schema: `id?`). The schema up to 2025-06-18 has `id` required in `JSONRPCError`; "
         "JSON-RPC 2.0 itself says `null`. Reader: accept absent and `null`; never match it to a "
         "pending request."),
        ("RPC-9", "MUST", "2024-11-05", "2025-11-25", "responder",
         "A response holds exactly one of `result` and `error`; both or neither is invalid."),
        ("RPC-10", "MUST", "2025-11-25", None, "responder",
         "A result response has a `result` member (object); an error response has an `error` "
         "member; the two are separate types."),
        ("RPC-11", "MUST", "2024-11-05", None, "responder",
         "`error` has integer `code` and string `message`; `data` is free and optional."),
        ("RPC-12", "SHOULD", "2024-11-05", None, "responder",
         "`error.message` is one concise sentence."),
        ("RPC-13", "MUST NOT", "2024-11-05", None, "both",
         "A notification has no `id` member. (Presence of the key, not its value, decides.)"),
        ("RPC-14", "MUST NOT", "2025-03-26", None, "receiver",
         "A notification is never answered, not even with an error. (2024-11-05 implies it by "
         "JSON-RPC.)"),
        ("RPC-15", "schema", "2024-11-05", None, "both",
         "`params`, if present, is an object; array params are not representable in MCP types."),
        ("RPC-16", "schema", "2024-11-05", None, "both",
         "`result` is an object with unknown members permitted (open content); never an array "
         "or scalar."),
        ("RPC-17", "reading", "2024-11-05", None, "receiver",
         "Unparsable JSON → `-32700`; JSON that is no valid request object → `-32600`; with the "
         "id if it could be read, else without."),
        ("RPC-18", "reading", "2024-11-05", None, "receiver",
         "Unknown method → `-32601`; malformed params of a known method → `-32602`; handler "
         "fault → `-32603`."),
        ("RPC-19", "reading", "2024-11-05", None, "both",
         "Unknown members of any object are tolerated on receipt (types are open) and unknown "
         "notifications are ignored."),
        ("RPC-20", "MUST", "2025-03-26", "2025-06-18", "both",
         "An implementation must be able to receive a JSON-RPC batch (top-level array)."),
        ("RPC-21", "MAY", "2025-03-26", "2025-06-18", "both",
         "Sending batches is optional. Do not send one before 2025-03-26 has been negotiated."),
        ("RPC-22", "MUST NOT", "2025-03-26", "2025-06-18", "client",
         "`initialize` is never inside a batch."),
        ("RPC-23", "schema", "2025-03-26", "2025-06-18", "both",
         "Request batch = non-empty list of requests/notifications; response batch = list of "
         "results/errors. Mixing requests with responses is not in the schema; over HTTP it is "
         "ruled out."),
        ("RPC-24", "reading", "2025-03-26", "2025-06-18", "receiver",
         "Empty batch → single `-32600`; a batch of only notifications gets no answer; "
         "responses may be sent singly or batched (JSON-RPC 2.0 §6)."),
    ),
    *rows(
        {"2024-11-05": "basic/messages", "2025-03-26": "basic"},
        ("RPC-25", "schema", "2024-11-05", None, "both",
         "Batches do not exist in 2024-11-05 and were removed in 2025-06-18; an array is an "
         "invalid message there (`-32600`, no id)."),
        without=("2025-03-26",),
    ),
    *rows(
        {"2024-11-05": "basic/messages", "2025-03-26": "basic"},
        ("RPC-26", "MUST", "2025-03-26", None, "both",
         "Messages are UTF-8. (2024-11-05 says it only for stderr; treat the same.)"),
        ("RPC-27", "schema", "2026-07-28", None, "server",
         "Direction: clients send only requests and notifications, servers only responses and "
         "notifications. A message of the other kind is a protocol violation."),
        ("RPC-28", "MUST NOT", "2026-07-28", None, "server",
         "Server never starts a JSON-RPC request, on any transport."),
        ("RPC-29", "MUST NOT", "2026-07-28", None, "client",
         "Client never sends a JSON-RPC response."),
        ("RPC-30", "MUST", "2026-07-28", None, "server",
         "Every result has string `resultType`."),
        ("RPC-31", "MUST", "2026-07-28", None, "client",
         'A result without `resultType` is read as `"complete"` (older servers).'),
        ("RPC-32", "MUST", "2026-07-28", None, "client",
         "A `resultType` outside core values (`complete`, `input_required`) plus those of "
         "extensions both sides declared is an invalid result."),
        ("RPC-33", "MUST", "2026-07-28", None, "both",
         "Set of accepted `resultType` values = core + active extensions (`task` with the tasks "
         "extension)."),
        ("RPC-34", "MAY", "2024-11-05", "2026-07-28", "both",
         "`result` of a successful no-data operation is `{}` plus optional `_meta` "
         "(EmptyResult)."),
    ),
    *rows(
        {"2024-11-05": "basic/messages", "2025-03-26": "basic", "2026-07-28": "basic/patterns"},
        ("RPC-35", "MUST", "2024-11-05", None, "responder",
         "Every request gets a response, a result or an error (JSON-RPC 2.0 §5, which all "
         "messages follow). Not after a cancellation, nor to a client that has disconnected."),
    ),
    # META, `_meta`, icons, general fields
    *rows(
        {"2024-11-05": "basic/messages", "2025-03-26": "basic"},
        ("META-1", "schema", "2024-11-05", None, "both",
         "`_meta` may appear on request params, notification params and results in every "
         "revision; from 2025-06-18 on also on most named data types."),
        ("META-2", "MUST", "2025-06-18", None, "both",
         "Key grammar: optional prefix (dot-separated labels then `/`) + name. Label starts "
         "with a letter, ends with letter/digit, interior letters/digits/hyphen. Name empty, or "
         "starts and ends alphanumeric with `-_.` and alphanumerics inside."),
        ("META-3", "MUST NOT", "2025-06-18", None, "both",
         "No use of reserved prefixes for own keys. In 2025-06-18: any prefix having a "
         "`modelcontextprotocol`/`mcp` label followed by a further label (e.g. `mcp.dev/`). Since"
         " 2025-11-25: the second label is `modelcontextprotocol` or `mcp` (e.g. "
         "`io.modelcontextprotocol/`, `dev.mcp/`); `com.example.mcp/` is free."),
        ("META-4", "MUST NOT", "2025-06-18", None, "both",
         "Make no assumptions about values at reserved keys beyond what a definition gives."),
        ("META-5", "SHOULD", "2025-11-25", None, "both",
         "Own prefixes are in reverse-DNS order."),
        ("META-6", "MUST", "2026-07-28", None, "client",
         "Each request's `params._meta` holds `io.modelcontextprotocol/protocolVersion` "
         "(string) and `io.modelcontextprotocol/clientCapabilities` (object, `{}` allowed). So "
         "`params` is never absent on a request."),
        ("META-7", "SHOULD", "2026-07-28", None, "client",
         "Each request also holds `io.modelcontextprotocol/clientInfo` (Implementation) unless "
         "configured off. A server must serve requests without it."),
        ("META-8", "MUST", "2026-07-28", None, "server",
         "Missing `_meta` or a missing required key → `-32602`; on HTTP with status 400."),
        ("META-9", "MUST NOT", "2026-07-28", None, "server",
         "Nothing (version, capabilities, identity) is carried over from an earlier request on "
         "the same connection."),
        ("META-10", "SHOULD", "2026-07-28", None, "server",
         'Each result has `_meta["io.modelcontextprotocol/serverInfo"]` (Implementation) unless '
         "configured off."),
        ("META-11", "SHOULD NOT", "2026-07-28", None, "both",
         "`clientInfo`/`serverInfo` do not steer behaviour nor security decisions; display and "
         "logs only."),
        ("META-12", "MUST", "2026-07-28", None, "server",
         "Each notification delivered on a listen stream has "
         '`_meta["io.modelcontextprotocol/subscriptionId"]` = the id of the listen request '
         "(same JSON type). Other notifications do not carry it."),
        ("META-13", "MUST", "2026-07-28", None, "both",
         "`traceparent`, `tracestate`, `baggage` are reserved unprefixed keys; values follow "
         "W3C Trace Context / Baggage when present."),
        ("META-14", "schema", "2024-11-05", None, "requestor",
         "`_meta.progressToken` (string or integer) on a request asks for progress."),
        ("META-15", "schema", "2025-11-25", "2026-07-28", "both",
         '`_meta["io.modelcontextprotocol/related-task"] = {taskId}` ties a message to a task.'),
        ("META-16", "reading", "2026-07-28", None, "both",
         "`io.modelcontextprotocol/related-task` has no function in 2026-07-28."),
        ("META-17", "MUST", "2025-11-25", None, "client",
         "A client that renders icons supports `image/png`, `image/jpeg` (`image/jpg`); SHOULD "
         "support `image/svg+xml`, `image/webp`."),
        ("META-18", "MUST", "2025-11-25", None, "client",
         "Icon `src` only `https:` or `data:` (reject `javascript:`, `file:`, `ftp:`, `ws:`, "
         "app schemes); no cross-origin or scheme-changing redirects; fetched without "
         "credentials; same origin as server verified; bytes treated as untrusted, type "
         "sniffed. (Text also admits `http` in the field description; the security rule is "
         "stricter.)"),
        ("META-19", "schema", "2025-11-25", None, "both",
         'Icon = `{src, mimeType?, sizes?: string[] ("WxH" or "any"), theme?: "light"|"dark"}`.'),
    ),
    # JSCH, JSON Schema in messages
    *rows(
        {"2025-11-25": "basic"},
        ("JSCH-1", "MUST", "2025-11-25", None, "both",
         "A schema without `$schema` is 2020-12; 2020-12 must be supported. (Revisions up to "
         "2025-06-18 leave the dialect open.)"),
        ("JSCH-2", "MUST", "2025-11-25", None, "both",
         "A schema is validated by its declared/default dialect; an unsupported dialect "
         "produces a clear error, not a crash or a pass."),
        ("JSCH-3", "MUST", "2025-11-25", None, "both",
         "A schema sent must be valid in its dialect."),
        ("JSCH-4", "SHOULD", "2025-11-25", None, "both",
         "Document further dialects supported."),
        ("JSCH-5", "MUST NOT", "2026-07-28", None, "both",
         "A `$ref` that resolves to a network URI is not fetched automatically; fetching is "
         "opt-in, off by default."),
        ("JSCH-6", "SHOULD", "2026-07-28", None, "both",
         "Opt-in fetching uses a host allowlist, or at least refuses "
         "loopback/link-local/private addresses, with timeouts, size limits and a log entry."),
        ("JSCH-7", "SHOULD", "2026-07-28", None, "both",
         "A schema with an unresolved external `$ref` is rejected, not treated as permissive."),
        ("JSCH-8", "SHOULD", "2026-07-28", None, "both",
         "Validation is bounded (depth, number of subschemas, or time)."),
    ),
    # ERR, Error codes per revision
    *rows(
        {"2024-11-05": "basic/messages", "2025-03-26": "basic"},
        ("ERR-1", "schema", "2024-11-05", None, "both",
         "`-32700`, `-32600`, `-32601`, `-32602`, `-32603` as in JSON-RPC 2.0."),
        ("ERR-2", "schema", "2024-11-05", "2026-07-28", "server",
         "`-32002` resource not found."),
        ("ERR-3", "schema", "2025-11-25", "2026-07-28", "server",
         "`-32042` URL elicitation required."),
        ("ERR-4", "schema", "2024-11-05", "2026-07-28", "client",
         "`-1` user rejected sampling."),
        ("ERR-5", "MUST NOT", "2026-07-28", None, "server",
         "`-32002` and `-32042` are not emitted."),
        ("ERR-6", "schema", "2026-07-28", None, "server",
         "`-32020` HeaderMismatch, `-32021` MissingRequiredClientCapability "
         "(`data.requiredCapabilities`), `-32022` UnsupportedProtocolVersion (`data.supported`, "
         "`data.requested`)."),
        ("ERR-7", "MUST NOT", "2026-07-28", None, "both",
         "No other code in -32020…-32099 is emitted; defined ones only in their meaning."),
        ("ERR-8", "MUST NOT", "2026-07-28", None, "both",
         "No new codes in -32000…-32019; receivers give them no meaning (except `-32002`). "
         "SHOULD NOT be used by new implementations."),
        ("ERR-9", "SHOULD", "2026-07-28", None, "both",
         "Own codes lie outside -32768…-32000."),
        ("ERR-10", "reading", "2026-07-28", None, "both",
         "Local errors (timeouts, closed transport) are not dressed as peer errors."),
        ("ERR-11", "reading", "2024-11-05", None, "server",
         "Draft SDKs used `-32001`, `-32003`, `-32004` for what are now `-32020…-32022`; do not "
         "emit, do not read as modern."),
    ),
)
# fmt: on
