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
        "A-D:basic/utilities/ping E:changelog",
        ("PING-1", "schema", "A-D", "both",
         "`ping`, either direction, no params needed, result `{}`."),
        ("PING-2", "MUST", "A-D", "receiver",
         "Answer promptly with the empty result, at any time, also before initialisation."),
        ("PING-3", "SHOULD", "A-D", "both",
         "Periodic pings, configurable rate, not excessive; timeout counts as connection "
         "failure; failures logged."),
        ("PING-4", "MAY", "A-D", "both",
         "After a missed ping: mark stale, terminate, reconnect."),
        ("PING-5", "schema", "E", "server",
         "`ping` does not exist: `-32601` (HTTP 404)."),
    ),
    # CXL, Cancellation
    *rows(
        "A-D:basic/utilities/cancellation E:basic/patterns/cancellation",
        ("CXL-1", "schema", "A-E", "both",
         "`notifications/cancelled` params `{requestId, reason?}` (D schema: `requestId` "
         "optional, but required for non-task requests)."),
        ("CXL-2", "MUST", "A-D", "sender",
         "References only a request it issued itself in the same direction and believes in "
         "flight."),
        ("CXL-3", "MUST", "E", "client",
         "References only its own in-flight request."),
        ("CXL-4", "MUST NOT", "A-D", "client",
         "Never for `initialize`."),
        ("CXL-5", "MUST", "D", "sender",
         "For a task-augmented request use `tasks/cancel`, not this notification (the "
         "notification is still right while the initial `CreateTaskResult` is pending — "
         "reading)."),
        ("CXL-6", "SHOULD", "A-E", "receiver",
         "Stop work, free resources, send no response."),
        ("CXL-7", "MUST NOT", "E", "server",
         "After cancellation no further message for that request (both transports)."),
        ("CXL-8", "MAY", "A-E", "receiver",
         "Ignore if unknown, already done, or not cancellable."),
        ("CXL-9", "SHOULD", "A-E", "sender",
         "Ignore a response that still arrives."),
        ("CXL-10", "MUST", "A-E", "both",
         "Cope with the race (cancel crosses the response) without error."),
        ("CXL-11", "SHOULD", "A-E", "receiver",
         "Ignore malformed or unknown cancellations silently."),
        ("CXL-12", "SHOULD", "A-E", "both",
         "Log the reason; UI shows that cancellation was asked."),
        ("CXL-13", "MUST", "E", "client",
         "stdio: cancellation of a request is `notifications/cancelled`."),
        ("CXL-14", "MUST", "E", "server",
         "HTTP: closing of the SSE response stream / client disconnect is cancellation of that "
         "request."),
        ("CXL-15", "reading", "E", "client",
         "HTTP: no `notifications/cancelled` is POSTed; close the response."),
        ("CXL-16", "SHOULD NOT", "B-D", "server",
         "HTTP: a disconnect is not a cancellation; to cancel the client SHOULD POST "
         "`notifications/cancelled`. (Opposite of E.)"),
        ("CXL-17", "MUST", "E", "server",
         "Server tearing down a subscription sends `notifications/cancelled` naming the listen "
         "id (schema: on stdio); never for any other purpose. It conflicts with SUB-8; DEC-1 "
         "decides."),
        ("CXL-18", "reading", "A-D", "both",
         "A cancelled request that was the parent of nested server requests: the nested ones "
         "should be cancelled by their own sender."),
    ),
    # PROG, Progress
    *rows(
        "A-D:basic/utilities/progress E:basic/patterns/progress",
        ("PROG-1", "schema", "A-E", "both",
         "`notifications/progress` params `{progressToken, progress, total?, message?}`; "
         "`message` from B."),
        ("PROG-2", "MUST", "A-E", "requestor",
         "Token is a string or integer, unique among its active requests."),
        ("PROG-3", "MUST", "A-E", "reporter",
         "Only tokens from an active request with work in progress."),
        ("PROG-4", "MUST", "A-E", "reporter",
         "`progress` strictly increases from one notification to the next; floats allowed."),
        ("PROG-5", "MUST", "A-E", "reporter",
         "Stop after completion (response sent, or task terminal in D)."),
        ("PROG-6", "MUST", "D", "reporter",
         "For a task the original token stays valid after `CreateTaskResult` until a terminal "
         "status, and is the one used."),
        ("PROG-7", "MUST NOT", "E", "server",
         "Tasks extension: no `notifications/progress` (nor `message`) for tasks, in particular "
         "not on the listen stream."),
        ("PROG-8", "schema", "E", "server",
         "Only server→client (client issues all requests)."),
        ("PROG-9", "MUST", "E", "server",
         "HTTP: progress travels on the response stream of its own request, never on the listen "
         "stream."),
        ("PROG-10", "SHOULD", "A-E", "both",
         "Track active tokens, rate-limit."),
        ("PROG-11", "MAY", "A-E", "reporter",
         "May send none, at any rate, without `total`."),
        ("PROG-12", "SHOULD", "B-E", "reporter",
         "`message` is human-readable."),
        ("PROG-13", "reading", "A-E", "requestor",
         "Progress with unknown/finished token is dropped silently; a token is matched with its "
         "JSON type."),
    ),
    # LOG, Logging
    *rows(
        "A-E:server/utilities/logging",
        ("LOG-1", "MUST", "A-E", "server",
         "A server that emits log messages declares `logging`."),
        ("LOG-2", "schema", "A-E", "server",
         "`notifications/message` params `{level, logger?, data}`; levels debug, info, notice, "
         "warning, error, critical, alert, emergency."),
        ("LOG-3", "schema", "A-D", "client",
         "`logging/setLevel {level}` → `{}`; afterwards the server sends that level and above."),
        ("LOG-4", "MAY", "A-D", "server",
         "With no level set the server chooses which messages to send (schema comment)."),
        ("LOG-5", "SHOULD", "A-D", "server",
         "Unknown level → `-32602`; internal → `-32603`."),
        ("LOG-6", "schema", "E", "server",
         "`logging/setLevel` does not exist (`-32601`)."),
        ("LOG-7", "MUST NOT", "E", "server",
         "No `notifications/message` for a request lacking "
         '`_meta["io.modelcontextprotocol/logLevel"]`.'),
        ("LOG-8", "MAY", "E", "server",
         "With it: messages at or above the level, before the final response, on that request's "
         "response stream."),
        ("LOG-9", "MUST NOT", "E", "server",
         "Never on a listen stream nor on another request's stream."),
        ("LOG-10", "SHOULD", "E", "server",
         "Unrecognised `logLevel` → reject the request with `-32602`."),
        ("LOG-11", "MUST NOT", "A-E", "server",
         "No secrets, personal data or attack-helping internals in messages."),
        ("LOG-12", "SHOULD", "A-E", "server",
         "Rate limit; consistent logger names."),
        ("LOG-13", "SHOULD NOT", "E", "both",
         "Feature deprecated: not newly adopted (still functional)."),
    ),
    # PAGE, Pagination
    *rows(
        "A-E:server/utilities/pagination",
        ("PAGE-1", "schema", "A-E", "both",
         "Paginated: `tools/list`, `prompts/list`, `resources/list`, "
         "`resources/templates/list`; D also `tasks/list`. Request `cursor?`, result "
         "`nextCursor?`."),
        ("PAGE-2", "MUST NOT", "A-E", "client",
         "No assumed page size."),
        ("PAGE-3", "MUST", "A-E", "client",
         "Cursors are opaque: not parsed, altered, and (A–D) not persisted across sessions."),
        ("PAGE-4", "MUST NOT", "E", "client",
         "An empty-string cursor is a valid cursor, not the end. Only absent/null `nextCursor` "
         "ends. (Apply in all revisions.)"),
        ("PAGE-5", "SHOULD", "A-E", "client",
         "Missing `nextCursor` = end; handle paginated and unpaginated."),
        ("PAGE-6", "SHOULD", "A-E", "server",
         "Stable cursors; invalid cursor → `-32602`."),
    ),
    # COMP, Completion
    *rows(
        "A-E:server/utilities/completion",
        ("COMP-1", "MUST", "B-E", "server",
         "A server supporting completion declares `completions`. (A has no such capability; a "
         "client may try.)"),
        ("COMP-2", "schema", "A-E", "client",
         "`completion/complete {ref, argument{name,value}}`; `context.arguments?` from C. `ref` "
         '= `{type:"ref/prompt",name,title?}` or `{type:"ref/resource",uri}`.'),
        ("COMP-3", "schema", "A-E", "server",
         "Result `completion{values: string[] ≤100, total?, hasMore?}` (limit enforced in "
         "schema.json only in E)."),
        ("COMP-4", "SHOULD", "B-E", "server",
         "`-32601` unsupported, `-32602` bad prompt name/missing argument, `-32603` internal."),
        ("COMP-5", "SHOULD", "A-E", "server",
         "Sort by relevance, rate limit, validate."),
        ("COMP-6", "MUST", "A-E", "both",
         "Validate input, rate limit, control access, no disclosure through suggestions."),
        ("COMP-7", "SHOULD", "A-E", "client",
         "Debounce, cache, cope with partial results."),
    ),
    # CACHE, Caching hints
    *rows(
        "E:server/utilities/caching",
        ("CACHE-1", "MUST", "E", "server",
         "`ttlMs` (integer ≥ 0) and `cacheScope` (`public`|`private`) on complete results of "
         "`server/discover`, `tools/list`, `prompts/list`, `resources/list`, "
         "`resources/templates/list`, `resources/read`."),
        ("CACHE-2", "schema", "E", "server",
         "No hints on `input_required` results."),
        ("CACHE-3", "MUST NOT", "E", "client",
         "A cached response is not used for another method or other result-affecting params."),
        ("CACHE-4", "MUST NOT", "E", "client",
         "Results of requests carrying `inputResponses`/`requestState` are not cached."),
        ("CACHE-5", "SHOULD", "E", "client",
         "0 = stale at once; positive = fresh while `now < t_received + ttlMs`; absent or "
         "negative = 0."),
        ("CACHE-6", "SHOULD", "E", "client",
         "Re-fetch on next access after expiry; TTL is no polling interval; polling MUST use "
         "jitter and backoff."),
        ("CACHE-7", "MUST NOT", "E", "client",
         "`private` responses are not shared across authorization contexts (other token = other "
         "cache)."),
        ("CACHE-8", "MUST", "E", "server",
         "Same `cacheScope` on all pages of one listing; `ttlMs` may differ per page."),
        ("CACHE-9", "SHOULD", "E", "client",
         "Invalid cursor during cached paging: drop all pages and restart."),
        ("CACHE-10", "reading", "E", "client",
         "A matching `list_changed`/`updated` notification makes the entry stale at once."),
        ("CACHE-11", "MUST NOT", "E", "server",
         "`cacheScope` is no access control; per-primitive checks are still needed; `public` "
         "results may reach other users."),
    ),
)
# fmt: on
