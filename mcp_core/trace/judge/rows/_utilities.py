"""Rows for ping, cancellation, progress, logging, pages, completion and caching."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ._requirement import rows

if TYPE_CHECKING:
    from ._requirement import Requirement

__all__ = ["ROWS"]

# fmt: off
ROWS: Final[tuple[Requirement, ...]] = (
    # PING, ping
    *rows(
        {"2024-11-05": "basic/utilities/ping", "2026-07-28": "changelog"},
        ("PING-1", "schema", "2024-11-05", "2026-07-28", "both",
         "`ping`, either direction, no params needed, result `{}`."),
        ("PING-2", "MUST", "2024-11-05", "2026-07-28", "receiver",
         "Answer promptly with the empty result, at any time, also before initialisation."),
        ("PING-3", "SHOULD", "2024-11-05", "2026-07-28", "both",
         "Periodic pings, configurable rate, not excessive; timeout counts as connection "
         "failure; failures logged."),
        ("PING-4", "MAY", "2024-11-05", "2026-07-28", "both",
         "After a missed ping: mark stale, terminate, reconnect."),
        ("PING-5", "schema", "2026-07-28", None, "server",
         "`ping` does not exist: `-32601` (HTTP 404)."),
    ),
    # CXL, Cancellation
    *rows(
        {"2024-11-05": "basic/utilities/cancellation", "2026-07-28": "basic/patterns/cancellation"},
        ("CXL-1", "schema", "2024-11-05", None, "both",
         "`notifications/cancelled` params `{requestId, reason?}` (2025-11-25 schema: `requestId`"
         " optional, but required for non-task requests)."),
        ("CXL-2", "MUST", "2024-11-05", "2026-07-28", "sender",
         "References only a request it issued itself in the same direction and believes in "
         "flight."),
        ("CXL-3", "MUST", "2026-07-28", None, "client",
         "References only its own in-flight request."),
        ("CXL-4", "MUST NOT", "2024-11-05", "2026-07-28", "client",
         "Never for `initialize`."),
        ("CXL-5", "MUST", "2025-11-25", "2026-07-28", "sender",
         "For a task-augmented request use `tasks/cancel`, not this notification (the "
         "notification is still right while the initial `CreateTaskResult` is pending — "
         "reading)."),
        ("CXL-6", "SHOULD", "2024-11-05", None, "receiver",
         "Stop work, free resources, send no response."),
        ("CXL-7", "MUST NOT", "2026-07-28", None, "server",
         "After cancellation no further message for that request (both transports)."),
        ("CXL-8", "MAY", "2024-11-05", None, "receiver",
         "Ignore if unknown, already done, or not cancellable."),
        ("CXL-9", "SHOULD", "2024-11-05", None, "sender",
         "Ignore a response that still arrives."),
        ("CXL-10", "MUST", "2024-11-05", None, "both",
         "Cope with the race (cancel crosses the response) without error."),
        ("CXL-11", "SHOULD", "2024-11-05", None, "receiver",
         "Ignore malformed or unknown cancellations silently."),
        ("CXL-12", "SHOULD", "2024-11-05", None, "both",
         "Log the reason; UI shows that cancellation was asked."),
        ("CXL-13", "MUST", "2026-07-28", None, "client",
         "stdio: cancellation of a request is `notifications/cancelled`."),
        ("CXL-14", "MUST", "2026-07-28", None, "server",
         "HTTP: closing of the SSE response stream / client disconnect is cancellation of that "
         "request."),
        ("CXL-15", "reading", "2026-07-28", None, "client",
         "HTTP: no `notifications/cancelled` is POSTed; close the response."),
        ("CXL-16", "SHOULD NOT", "2025-03-26", "2026-07-28", "server",
         "HTTP: a disconnect is not a cancellation; to cancel the client SHOULD POST "
         "`notifications/cancelled`. (Opposite of 2026-07-28.)"),
        ("CXL-17", "MUST", "2026-07-28", None, "server",
         "Server tearing down a subscription sends `notifications/cancelled` naming the listen "
         "id (schema: on stdio); never for any other purpose. It conflicts with SUB-8; DEC-1 "
         "decides."),
        ("CXL-18", "reading", "2024-11-05", "2026-07-28", "both",
         "A cancelled request that was the parent of nested server requests: the nested ones "
         "should be cancelled by their own sender."),
    ),
    # PROG, Progress
    *rows(
        {"2024-11-05": "basic/utilities/progress", "2026-07-28": "basic/patterns/progress"},
        ("PROG-1", "schema", "2024-11-05", None, "both",
         "`notifications/progress` params `{progressToken, progress, total?, message?}`; "
         "`message` from 2025-03-26 on."),
        ("PROG-2", "MUST", "2024-11-05", None, "requestor",
         "Token is a string or integer, unique among its active requests."),
        ("PROG-3", "MUST", "2024-11-05", None, "reporter",
         "Only tokens from an active request with work in progress."),
        ("PROG-4", "MUST", "2024-11-05", None, "reporter",
         "`progress` strictly increases from one notification to the next; floats allowed."),
        ("PROG-5", "MUST", "2024-11-05", None, "reporter",
         "Stop after completion (response sent, or task terminal in 2025-11-25)."),
        ("PROG-6", "MUST", "2025-11-25", "2026-07-28", "reporter",
         "For a task the original token stays valid after `CreateTaskResult` until a terminal "
         "status, and is the one used."),
        ("PROG-7", "MUST NOT", "2026-07-28", None, "server",
         "Tasks extension: no `notifications/progress` (nor `message`) for tasks, in particular "
         "not on the listen stream."),
        ("PROG-8", "schema", "2026-07-28", None, "server",
         "Only server→client (client issues all requests)."),
        ("PROG-9", "MUST", "2026-07-28", None, "server",
         "HTTP: progress travels on the response stream of its own request, never on the listen "
         "stream."),
        ("PROG-10", "SHOULD", "2024-11-05", None, "both",
         "Track active tokens, rate-limit."),
        ("PROG-11", "MAY", "2024-11-05", None, "reporter",
         "May send none, at any rate, without `total`."),
        ("PROG-12", "SHOULD", "2025-03-26", None, "reporter",
         "`message` is human-readable."),
        ("PROG-13", "reading", "2024-11-05", None, "requestor",
         "Progress with unknown/finished token is dropped silently; a token is matched with its "
         "JSON type."),
    ),
    # LOG, Logging
    *rows(
        {"2024-11-05": "server/utilities/logging"},
        ("LOG-1", "MUST", "2024-11-05", None, "server",
         "A server that emits log messages declares `logging`."),
        ("LOG-2", "schema", "2024-11-05", None, "server",
         "`notifications/message` params `{level, logger?, data}`; levels debug, info, notice, "
         "warning, error, critical, alert, emergency."),
        ("LOG-3", "schema", "2024-11-05", "2026-07-28", "client",
         "`logging/setLevel {level}` → `{}`; afterwards the server sends that level and above."),
        ("LOG-4", "MAY", "2024-11-05", "2026-07-28", "server",
         "With no level set the server chooses which messages to send (schema comment)."),
        ("LOG-5", "SHOULD", "2024-11-05", "2026-07-28", "server",
         "Unknown level → `-32602`; internal → `-32603`."),
        ("LOG-6", "schema", "2026-07-28", None, "server",
         "`logging/setLevel` does not exist (`-32601`)."),
        ("LOG-7", "MUST NOT", "2026-07-28", None, "server",
         "No `notifications/message` for a request lacking "
         '`_meta["io.modelcontextprotocol/logLevel"]`.'),
        ("LOG-8", "MAY", "2026-07-28", None, "server",
         "With it: messages at or above the level, before the final response, on that request's "
         "response stream."),
        ("LOG-9", "MUST NOT", "2026-07-28", None, "server",
         "Never on a listen stream nor on another request's stream."),
        ("LOG-10", "SHOULD", "2026-07-28", None, "server",
         "Unrecognised `logLevel` → reject the request with `-32602`."),
        ("LOG-11", "MUST NOT", "2024-11-05", None, "server",
         "No secrets, personal data or attack-helping internals in messages."),
        ("LOG-12", "SHOULD", "2024-11-05", None, "server",
         "Rate limit; consistent logger names."),
        ("LOG-13", "SHOULD NOT", "2026-07-28", None, "both",
         "Feature deprecated: not newly adopted (still functional)."),
    ),
    # PAGE, Pagination
    *rows(
        {"2024-11-05": "server/utilities/pagination"},
        ("PAGE-1", "schema", "2024-11-05", None, "both",
         "Paginated: `tools/list`, `prompts/list`, `resources/list`, `resources/templates/list`; "
         "2025-11-25 also `tasks/list`. Request `cursor?`, result `nextCursor?`."),
        ("PAGE-2", "MUST NOT", "2024-11-05", None, "client",
         "No assumed page size."),
        ("PAGE-3", "MUST", "2024-11-05", None, "client",
         "Cursors are opaque: not parsed, altered, and (up to 2025-11-25) not persisted across "
         "sessions."),
        ("PAGE-4", "MUST NOT", "2026-07-28", None, "client",
         "An empty-string cursor is a valid cursor, not the end. Only absent/null `nextCursor` "
         "ends. (Apply in all revisions.)"),
        ("PAGE-5", "SHOULD", "2024-11-05", None, "client",
         "Missing `nextCursor` = end; handle paginated and unpaginated."),
        ("PAGE-6", "SHOULD", "2024-11-05", None, "server",
         "Stable cursors; invalid cursor → `-32602`."),
    ),
    # COMP, Completion
    *rows(
        {"2024-11-05": "server/utilities/completion"},
        ("COMP-1", "MUST", "2025-03-26", None, "server",
         "A server supporting completion declares `completions`. (2024-11-05 has no such "
         "capability; a client may try.)"),
        ("COMP-2", "schema", "2024-11-05", None, "client",
         "`completion/complete {ref, argument{name,value}}`; `context.arguments?` from 2025-06-18"
         ' on. `ref` = `{type:"ref/prompt",name,title?}` or `{type:"ref/resource",uri}`.'),
        ("COMP-3", "schema", "2024-11-05", None, "server",
         "Result `completion{values: string[] ≤100, total?, hasMore?}` (limit enforced in "
         "schema.json only since 2026-07-28)."),
        ("COMP-4", "SHOULD", "2025-03-26", None, "server",
         "`-32601` unsupported, `-32602` bad prompt name/missing argument, `-32603` internal."),
        ("COMP-5", "SHOULD", "2024-11-05", None, "server",
         "Sort by relevance, rate limit, validate."),
        ("COMP-6", "MUST", "2024-11-05", None, "both",
         "Validate input, rate limit, control access, no disclosure through suggestions."),
        ("COMP-7", "SHOULD", "2024-11-05", None, "client",
         "Debounce, cache, cope with partial results."),
    ),
    # CACHE, Caching hints
    *rows(
        {"2026-07-28": "server/utilities/caching"},
        ("CACHE-1", "MUST", "2026-07-28", None, "server",
         "`ttlMs` (integer ≥ 0) and `cacheScope` (`public`|`private`) on complete results of "
         "`server/discover`, `tools/list`, `prompts/list`, `resources/list`, "
         "`resources/templates/list`, `resources/read`."),
        ("CACHE-2", "schema", "2026-07-28", None, "server",
         "No hints on `input_required` results."),
        ("CACHE-3", "MUST NOT", "2026-07-28", None, "client",
         "A cached response is not used for another method or other result-affecting params."),
        ("CACHE-4", "MUST NOT", "2026-07-28", None, "client",
         "Results of requests carrying `inputResponses`/`requestState` are not cached."),
        ("CACHE-5", "SHOULD", "2026-07-28", None, "client",
         "0 = stale at once; positive = fresh while `now < t_received + ttlMs`; absent or "
         "negative = 0."),
        ("CACHE-6", "SHOULD", "2026-07-28", None, "client",
         "Re-fetch on next access after expiry; TTL is no polling interval; polling MUST use "
         "jitter and backoff."),
        ("CACHE-7", "MUST NOT", "2026-07-28", None, "client",
         "`private` responses are not shared across authorization contexts (other token = other "
         "cache)."),
        ("CACHE-8", "MUST", "2026-07-28", None, "server",
         "Same `cacheScope` on all pages of one listing; `ttlMs` may differ per page."),
        ("CACHE-9", "SHOULD", "2026-07-28", None, "client",
         "Invalid cursor during cached paging: drop all pages and restart."),
        ("CACHE-10", "reading", "2026-07-28", None, "client",
         "A matching `list_changed`/`updated` notification makes the entry stale at once."),
        ("CACHE-11", "MUST NOT", "2026-07-28", None, "server",
         "`cacheScope` is no access control; per-primitive checks are still needed; `public` "
         "results may reach other users."),
    ),
)
# fmt: on
