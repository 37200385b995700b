"""Rows for the life cycle, versions, era detection, and capabilities."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ._requirement import rows

if TYPE_CHECKING:
    from ._requirement import Requirement

__all__ = ["ROWS"]

# fmt: off
ROWS: Final[tuple[Requirement, ...]] = (
    # LIFE, Lifecycle of the stateful era
    *rows(
        {"2024-11-05": "basic/lifecycle", "2026-07-28": "basic/patterns/cancellation"},
        ("LIFE-1", "MUST", "2024-11-05", "2026-07-28", "client",
         "`initialize` is the first interaction; params `protocolVersion`, `capabilities`, "
         "`clientInfo` all required."),
        ("LIFE-2", "MUST", "2024-11-05", "2026-07-28", "client",
         "`protocolVersion` is one the client supports. SHOULD be its latest (of the stateful "
         "era)."),
        ("LIFE-3", "MUST", "2024-11-05", "2026-07-28", "server",
         "Answer with `protocolVersion`, `capabilities`, `serverInfo` (+ `instructions?`)."),
        ("LIFE-4", "MUST", "2024-11-05", "2026-07-28", "server",
         "If the requested version is supported, echo it; else answer with another supported "
         "version (SHOULD be the latest). Not an error."),
        ("LIFE-5", "SHOULD", "2024-11-05", "2026-07-28", "client",
         "If the answered version is unsupported, disconnect (schema.ts comment says MUST). No "
         "`initialized` is sent then."),
        ("LIFE-6", "reading", "2024-11-05", "2026-07-28", "server",
         "The example error for version trouble is `-32602` with `data {supported, requested}`; "
         "a client should surface it. Normative path is the counter-offer, not this error."),
        ("LIFE-7", "MUST", "2024-11-05", "2026-07-28", "client",
         "After a successful answer send `notifications/initialized`."),
        ("LIFE-8", "SHOULD NOT", "2024-11-05", "2026-07-28", "client",
         "Before the `initialize` response: no requests but `ping`."),
        ("LIFE-9", "SHOULD NOT", "2024-11-05", "2026-07-28", "server",
         "Before `notifications/initialized`: no requests but `ping`; logging notifications are "
         "allowed."),
        ("LIFE-10", "reading", "2024-11-05", "2026-07-28", "server",
         "A request other than `ping`/`initialize` before `initialize`: reject with an error "
         "(SDKs use `-32600` or `-32602`; the spec names no code). Client must not key on the "
         "code."),
        ("LIFE-11", "reading", "2024-11-05", "2026-07-28", "server",
         "A request after the `initialize` response but before `initialized`: accept (SHOULD "
         "NOT binds the client only for the time before the response). Being lenient is the "
         "safe reading, `initialized` can be overtaken over HTTP."),
        ("LIFE-12", "reading", "2024-11-05", "2026-07-28", "server",
         "A second `initialize` in an initialised session: reject `-32600`, keep the session."),
        ("LIFE-13", "SHOULD", "2024-11-05", "2025-03-26", "both",
         "Operation: respect the negotiated version and use only negotiated capabilities."),
        ("LIFE-14", "MUST", "2025-06-18", "2026-07-28", "both",
         "The same as a MUST. (2025-03-26: SHOULD.)"),
        ("LIFE-15", "SHOULD", "2025-03-26", "2025-06-18", "both",
         "The same as in 2024-11-05 (SHOULD)."),
        ("LIFE-16", "MUST NOT", "2024-11-05", "2026-07-28", "client",
         "`initialize` is not cancelled."),
        ("LIFE-17", "reading", "2024-11-05", "2026-07-28", "both",
         "Shutdown has no message; it is the closing of the transport. Pending requests fail "
         "locally."),
        ("LIFE-18", "SHOULD", "2024-11-05", "2026-07-28", "client",
         "stdio shutdown: close server stdin, wait, SIGTERM after a while, SIGKILL after a "
         "further while."),
        ("LIFE-19", "MAY", "2024-11-05", "2026-07-28", "server",
         "Server may end by closing stdout and exiting."),
        ("LIFE-20", "reading", "2024-11-05", "2026-07-28", "both",
         "HTTP shutdown: close the connections (plus DELETE of the session from 2025-03-26 on)."),
        ("LIFE-21", "SHOULD", "2024-11-05", None, "both",
         "A timeout on every request sent; after it, cancel and stop waiting. (2024-11-05: only "
         '"appropriate timeouts".)'),
        ("LIFE-22", "SHOULD", "2025-03-26", None, "both",
         "Timeouts configurable per request."),
        ("LIFE-23", "MAY", "2025-03-26", None, "both",
         "Progress may reset the timeout; a hard maximum SHOULD hold regardless."),
        ("LIFE-24", "SHOULD", "2024-11-05", "2026-07-28", "both",
         "Be ready for version mismatch, failed capability negotiation, init timeout."),
    ),
    # VER, Versioning in the stateless era, dual-era rules
    *rows(
        {"2024-11-05": "basic/lifecycle", "2026-07-28": "basic/versioning"},
        ("VER-1", "MUST", "2026-07-28", None, "server",
         "A request naming an unimplemented (unknown or refused) version → error `-32022` with "
         "`data.supported: string[]` and `data.requested: string`; HTTP 400."),
        ("VER-2", "SHOULD", "2026-07-28", None, "client",
         "On `-32022` choose a mutual version from `supported` and retry (new id), else report."),
        ("VER-3", "MUST", "2026-07-28", None, "server",
         "`server/discover` is implemented."),
        ("VER-4", "MAY", "2026-07-28", None, "client",
         "`server/discover` is optional to call; any RPC may be first."),
        ("VER-5", "schema", "2026-07-28", None, "server",
         "`DiscoverResult`: `resultType`, `supportedVersions`, `capabilities`, `ttlMs`, "
         "`cacheScope`; `instructions?`; `_meta…/serverInfo` SHOULD."),
        ("VER-6", "reading", "2026-07-28", None, "server",
         "`server/discover` with an unsupported version is answered with `-32022`, not with a "
         "result."),
        ("VER-7", "MUST NOT", "2026-07-28", None, "server",
         "No reliance on earlier requests of the same connection; a connection or process is "
         "not a session."),
        ("VER-8", "SHOULD NOT", "2026-07-28", None, "server",
         "Do not require that related operations reuse a connection or process."),
        ("VER-9", "SHOULD", "2026-07-28", None, "server",
         "Handle requests of several conversations interleaved."),
        ("VER-10", "SHOULD NOT", "2026-07-28", None, "client",
         "Do not tie the life of a stdio process to one task/thread/conversation."),
        ("VER-11", "MUST", "2026-07-28", None, "both",
         "State across requests travels as an explicit identifier in each request."),
        ("VER-12", "MUST", "2026-07-28", None, "both",
         "Extension ids follow the `_meta` key grammar with a mandatory prefix."),
        ("VER-13", "MUST", "2026-07-28", None, "both",
         "If one side lacks an extension, the other falls back to core behaviour or rejects "
         "with a fitting error."),
        ("VER-14", "MAY", "2026-07-28", None, "server",
         "A server may serve both eras, also concurrently on one endpoint/process: modern "
         "`_meta` → stateless; `initialize` → legacy semantics scoped to the stdio process or "
         "HTTP session."),
        ("VER-15", "SHOULD", "2026-07-28", None, "server",
         "A modern-only server names its versions in the error it gives to `initialize` (any "
         "transport)."),
        ("VER-16", "SHOULD", "2026-07-28", None, "client",
         "Cache the detected era per server process (stdio) or origin (HTTP); MAY persist; "
         "re-probe if it later fails."),
        ("VER-17", "reading", "2026-07-28", None, "client",
         "A dual-era client reads `-32022` whose `supported` has only legacy versions as "
         '"legacy advertised": use `initialize`. If `supported` has no mutual version of any '
         "era → surface an error. (Text: never fall back on a recognised modern error; SDKs "
         "make this one exception.)"),
        ("VER-18", "reading", "2026-07-28", None, "client",
         "A `DiscoverResult` with no mutual modern version but a mutual legacy one: fall back "
         "to `initialize` (SDK consensus)."),
        ("VER-19", "reading", "2024-11-05", None, "both",
         "Versions are opaque strings from a fixed set; never compare lexicographically against "
         "unknown strings."),
    ),
    # PROBE, Era and transport detection
    *rows(
        {"2025-03-26": "basic/transports", "2026-07-28": "basic/versioning"},
        ("PROBE-1", "SHOULD", "2026-07-28", None, "client",
         "stdio, dual-era: first message `server/discover` with the preferred modern version."),
        ("PROBE-2", "MUST", "2026-07-28", None, "client",
         "stdio: fallback to `initialize` on any error that is not a recognised modern one, or "
         "on timeout; MUST NOT key on one code."),
        ("PROBE-3", "MUST NOT", "2026-07-28", None, "client",
         "No fallback on a recognised modern error (`-32022` etc.); retry with a listed version."),
        ("PROBE-4", "SHOULD", "2026-07-28", None, "client",
         "Modern-only stdio client probes too, to fail cleanly."),
        ("PROBE-5", "SHOULD", "2026-07-28", None, "client",
         "HTTP, dual-era: send a modern request; on 400 look at the body: recognised modern "
         "error → correct and retry; empty/other → `initialize`."),
        ("PROBE-6", "SHOULD", "2025-03-26", "2026-07-28", "client",
         "HTTP: POST `initialize`; on failure (up to 2025-06-18 any 4xx; 2025-11-25 400/404/405) "
         "GET the URL and expect `endpoint` → HTTP+SSE."),
        ("PROBE-7", "SHOULD", "2026-07-28", None, "client",
         "The same from 2026-07-28 on: POST; on 400/404/405 without a modern error body → "
         "(initialize) → GET for `endpoint`."),
        ("PROBE-8", "SHOULD", "2025-03-26", None, "server",
         "To serve clients of 2024-11-05: keep the SSE and POST endpoints beside the MCP "
         "endpoint."),
        ("PROBE-9", "reading", "2026-07-28", None, "client",
         "401/403, 5xx, DNS/TLS/connection errors are no era verdict. 404 with a `-32601` body "
         "is modern, unless a gateway has made it: a client may try `initialize`."),
        ("PROBE-10", "reading", "2026-07-28", None, "client",
         "Recognised modern error = `-32021`, `-32022`, for HTTP also `-32020` (a pipe has no "
         "headers) and `-32601` with 404 and JSON-RPC body. `-32601`/`-32602` on stdio mean "
         "legacy."),
        ("PROBE-11", "reading", "2026-07-28", None, "server",
         "Dual-era HTTP dispatch: modern version header or modern `_meta` → 2026-07-28; otherwise"
         " (`initialize`, session id, legacy/absent version header) → a revision up to "
         "2025-11-25."),
        ("PROBE-12", "reading", "2026-07-28", None, "server",
         "Dual-era stdio dispatch: the first request decides; a `server/discover` probe alone "
         "should not exclude a following `initialize`."),
    ),
    # CAP, Capabilities
    *rows(
        {"2024-11-05": "basic/lifecycle", "2026-07-28": "basic"},
        ("CAP-1", "schema", "2024-11-05", "2026-07-28", "both",
         "Client: `roots{listChanged}`, `sampling`, `experimental` (every revision); "
         "`elicitation` (since 2025-06-18); `sampling{context,tools}`, `elicitation{form,url}`, "
         "`tasks` (2025-11-25). Server: `logging`, `prompts{listChanged}`, "
         "`resources{subscribe,listChanged}`, `tools{listChanged}`, `experimental`; `completions`"
         " (since 2025-03-26); `tasks` (2025-11-25)."),
        ("CAP-2", "schema", "2026-07-28", None, "both",
         "`roots` is `{}` (no `listChanged`), `tasks` gone, `extensions{id: object}` new on "
         "both sides."),
        ("CAP-3", "MUST NOT", "2024-11-05", None, "both",
         "A feature needing a capability of the peer is not used unless declared (up to "
         "2025-03-26 SHOULD, then MUST)."),
        ("CAP-4", "MUST", "2026-07-28", None, "server",
         "A request needing an undeclared client capability → `-32021` with "
         "`data.requiredCapabilities` = a ClientCapabilities object (not a list of names); HTTP "
         "400."),
        ("CAP-5", "MUST NOT", "2026-07-28", None, "server",
         "Client capabilities are never inferred from prior requests."),
        ("CAP-6", "schema", "2026-07-28", None, "server",
         "A method gated by a server capability not advertised → `-32601` (schema comment on "
         "MethodNotFoundError); HTTP 404."),
        ("CAP-7", "reading", "2024-11-05", "2026-07-28", "both",
         "The same gate up to 2025-11-25 → `-32601` (given for roots and completion)."),
        ("CAP-8", "MUST", "2025-11-25", "2026-07-28", "both",
         "Support for task augmentation is declared per request type under `tasks.requests`; "
         "the set is exhaustive."),
        ("CAP-9", "schema", "2024-11-05", None, "both",
         "Capability objects are open; presence (even `{}`) means support; absent boolean = "
         "false."),
        ("CAP-10", "reading", "2025-11-25", None, "server",
         "`elicitation: {}` = form only; `elicitation: {url:{}}` = URL only."),
    ),
)
# fmt: on
