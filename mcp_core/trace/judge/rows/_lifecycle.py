"""Rows for the life cycle, versions, the detection of the era, and capabilities."""

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
        "A-D:basic/lifecycle E:basic/patterns/cancellation",
        ("LIFE-1", "MUST", "A-D", "client",
         "`initialize` is the first interaction; params `protocolVersion`, `capabilities`, "
         "`clientInfo` all required."),
        ("LIFE-2", "MUST", "A-D", "client",
         "`protocolVersion` is one the client supports. SHOULD be its latest (of the stateful "
         "era)."),
        ("LIFE-3", "MUST", "A-D", "server",
         "Answer with `protocolVersion`, `capabilities`, `serverInfo` (+ `instructions?`)."),
        ("LIFE-4", "MUST", "A-D", "server",
         "If the requested version is supported, echo it; else answer with another supported "
         "version (SHOULD be the latest). Not an error."),
        ("LIFE-5", "SHOULD", "A-D", "client",
         "If the answered version is unsupported, disconnect (schema.ts comment says MUST). No "
         "`initialized` is sent then."),
        ("LIFE-6", "reading", "A-D", "server",
         "The example error for version trouble is `-32602` with `data {supported, requested}`; "
         "a client should surface it. Normative path is the counter-offer, not this error."),
        ("LIFE-7", "MUST", "A-D", "client",
         "After a successful answer send `notifications/initialized`."),
        ("LIFE-8", "SHOULD NOT", "A-D", "client",
         "Before the `initialize` response: no requests but `ping`."),
        ("LIFE-9", "SHOULD NOT", "A-D", "server",
         "Before `notifications/initialized`: no requests but `ping`; logging notifications are "
         "allowed."),
        ("LIFE-10", "reading", "A-D", "server",
         "A request other than `ping`/`initialize` before `initialize`: reject with an error "
         "(SDKs use `-32600` or `-32602`; the spec names no code). Client must not key on the "
         "code."),
        ("LIFE-11", "reading", "A-D", "server",
         "A request after the `initialize` response but before `initialized`: accept (SHOULD "
         "NOT binds the client only for the time before the response). Being lenient is the "
         "safe reading, `initialized` can be overtaken over HTTP."),
        ("LIFE-12", "reading", "A-D", "server",
         "A second `initialize` in an initialised session: reject `-32600`, keep the session."),
        ("LIFE-13", "SHOULD", "A", "both",
         "Operation: respect the negotiated version and use only negotiated capabilities."),
        ("LIFE-14", "MUST", "C-D", "both",
         "The same as a MUST. (B: SHOULD.)"),
        ("LIFE-15", "SHOULD", "B", "both",
         "The same as A (SHOULD)."),
        ("LIFE-16", "MUST NOT", "A-D", "client",
         "`initialize` is not cancelled."),
        ("LIFE-17", "reading", "A-D", "both",
         "Shutdown has no message; it is the closing of the transport. Pending requests fail "
         "locally."),
        ("LIFE-18", "SHOULD", "A-D", "client",
         "stdio shutdown: close server stdin, wait, SIGTERM after a while, SIGKILL after a "
         "further while."),
        ("LIFE-19", "MAY", "A-D", "server",
         "Server may end by closing stdout and exiting."),
        ("LIFE-20", "reading", "A-D", "both",
         "HTTP shutdown: close the connections (plus DELETE of the session from B)."),
        ("LIFE-21", "SHOULD", "A-E", "both",
         "A timeout on every request sent; after it, cancel and stop waiting. (A: only "
         '"appropriate timeouts".)'),
        ("LIFE-22", "SHOULD", "B-E", "both",
         "Timeouts configurable per request."),
        ("LIFE-23", "MAY", "B-E", "both",
         "Progress may reset the timeout; a hard maximum SHOULD hold regardless."),
        ("LIFE-24", "SHOULD", "A-D", "both",
         "Be ready for version mismatch, failed capability negotiation, init timeout."),
    ),
    # VER, Versioning in the stateless era, dual-era rules
    *rows(
        "A-D:basic/lifecycle E:basic/versioning",
        ("VER-1", "MUST", "E", "server",
         "A request naming an unimplemented (unknown or refused) version → error `-32022` with "
         "`data.supported: string[]` and `data.requested: string`; HTTP 400."),
        ("VER-2", "SHOULD", "E", "client",
         "On `-32022` choose a mutual version from `supported` and retry (new id), else report."),
        ("VER-3", "MUST", "E", "server",
         "`server/discover` is implemented."),
        ("VER-4", "MAY", "E", "client",
         "`server/discover` is optional to call; any RPC may be first."),
        ("VER-5", "schema", "E", "server",
         "`DiscoverResult`: `resultType`, `supportedVersions`, `capabilities`, `ttlMs`, "
         "`cacheScope`; `instructions?`; `_meta…/serverInfo` SHOULD."),
        ("VER-6", "reading", "E", "server",
         "`server/discover` with an unsupported version is answered with `-32022`, not with a "
         "result."),
        ("VER-7", "MUST NOT", "E", "server",
         "No reliance on earlier requests of the same connection; a connection or process is "
         "not a session."),
        ("VER-8", "SHOULD NOT", "E", "server",
         "Do not require that related operations reuse a connection or process."),
        ("VER-9", "SHOULD", "E", "server",
         "Handle requests of several conversations interleaved."),
        ("VER-10", "SHOULD NOT", "E", "client",
         "Do not tie the life of a stdio process to one task/thread/conversation."),
        ("VER-11", "MUST", "E", "both",
         "State across requests travels as an explicit identifier in each request."),
        ("VER-12", "MUST", "E", "both",
         "Extension ids follow the `_meta` key grammar with a mandatory prefix."),
        ("VER-13", "MUST", "E", "both",
         "If one side lacks an extension, the other falls back to core behaviour or rejects "
         "with a fitting error."),
        ("VER-14", "MAY", "E", "server",
         "A server may serve both eras, also concurrently on one endpoint/process: modern "
         "`_meta` → stateless; `initialize` → legacy semantics scoped to the stdio process or "
         "HTTP session."),
        ("VER-15", "SHOULD", "E", "server",
         "A modern-only server names its versions in the error it gives to `initialize` (any "
         "transport)."),
        ("VER-16", "SHOULD", "E", "client",
         "Cache the detected era per server process (stdio) or origin (HTTP); MAY persist; "
         "re-probe if it later fails."),
        ("VER-17", "reading", "E", "client",
         "A dual-era client reads `-32022` whose `supported` has only legacy versions as "
         '"legacy advertised": use `initialize`. If `supported` has no mutual version of any '
         "era → surface an error. (Text: never fall back on a recognised modern error; SDKs "
         "make this one exception.)"),
        ("VER-18", "reading", "E", "client",
         "A `DiscoverResult` with no mutual modern version but a mutual legacy one: fall back "
         "to `initialize` (SDK consensus)."),
        ("VER-19", "reading", "A-E", "both",
         "Versions are opaque strings from a fixed set; never compare lexicographically against "
         "unknown strings."),
    ),
    # PROBE, Era and transport detection
    *rows(
        "B-D:basic/transports E:basic/versioning",
        ("PROBE-1", "SHOULD", "E", "client",
         "stdio, dual-era: first message `server/discover` with the preferred modern version."),
        ("PROBE-2", "MUST", "E", "client",
         "stdio: fallback to `initialize` on any error that is not a recognised modern one, or "
         "on timeout; MUST NOT key on one code."),
        ("PROBE-3", "MUST NOT", "E", "client",
         "No fallback on a recognised modern error (`-32022` etc.); retry with a listed version."),
        ("PROBE-4", "SHOULD", "E", "client",
         "Modern-only stdio client probes too, to fail cleanly."),
        ("PROBE-5", "SHOULD", "E", "client",
         "HTTP, dual-era: send a modern request; on 400 look at the body: recognised modern "
         "error → correct and retry; empty/other → `initialize`."),
        ("PROBE-6", "SHOULD", "B-D", "client",
         "HTTP: POST `initialize`; on failure (B–C any 4xx; D 400/404/405) GET the URL and "
         "expect `endpoint` → HTTP+SSE."),
        ("PROBE-7", "SHOULD", "E", "client",
         "The same from E: POST; on 400/404/405 without a modern error body → (initialize) → "
         "GET for `endpoint`."),
        ("PROBE-8", "SHOULD", "B-E", "server",
         "To serve A clients: keep the SSE and POST endpoints beside the MCP endpoint."),
        ("PROBE-9", "reading", "E", "client",
         "401/403, 5xx, DNS/TLS/connection errors are no era verdict. 404 with a `-32601` body "
         "is modern."),
        ("PROBE-10", "reading", "E", "client",
         "Recognised modern error = `-32020`, `-32021`, `-32022` (for HTTP also `-32601` with "
         "404 and JSON-RPC body). `-32601`/`-32602` on stdio mean legacy."),
        ("PROBE-11", "reading", "E", "server",
         "Dual-era HTTP dispatch: modern version header or modern `_meta` → E; otherwise "
         "(`initialize`, session id, legacy/absent version header) → A–D."),
        ("PROBE-12", "reading", "E", "server",
         "Dual-era stdio dispatch: the first request decides; a `server/discover` probe alone "
         "should not exclude a following `initialize`."),
    ),
    # CAP, Capabilities
    *rows(
        "A-D:basic/lifecycle E:basic",
        ("CAP-1", "schema", "A-D", "both",
         "Client: `roots{listChanged}`, `sampling`, `experimental` (A–); `elicitation` (C–); "
         "`sampling{context,tools}`, `elicitation{form,url}`, `tasks` (D). Server: `logging`, "
         "`prompts{listChanged}`, `resources{subscribe,listChanged}`, `tools{listChanged}`, "
         "`experimental`; `completions` (B–); `tasks` (D)."),
        ("CAP-2", "schema", "E", "both",
         "`roots` is `{}` (no `listChanged`), `tasks` gone, `extensions{id: object}` new on "
         "both sides."),
        ("CAP-3", "MUST NOT", "A-E", "both",
         "A feature needing a capability of the peer is not used unless declared (A–B SHOULD, "
         "C–E MUST)."),
        ("CAP-4", "MUST", "E", "server",
         "A request needing an undeclared client capability → `-32021` with "
         "`data.requiredCapabilities` = a ClientCapabilities object (not a list of names); HTTP "
         "400."),
        ("CAP-5", "MUST NOT", "E", "server",
         "Client capabilities are never inferred from prior requests."),
        ("CAP-6", "schema", "E", "server",
         "A method gated by a server capability not advertised → `-32601` (schema comment on "
         "MethodNotFoundError); HTTP 404."),
        ("CAP-7", "reading", "A-D", "both",
         "The same gate in A–D → `-32601` (given for roots and completion)."),
        ("CAP-8", "MUST", "D", "both",
         "Support for task augmentation is declared per request type under `tasks.requests`; "
         "the set is exhaustive."),
        ("CAP-9", "schema", "A-E", "both",
         "Capability objects are open; presence (even `{}`) means support; absent boolean = "
         "false."),
        ("CAP-10", "reading", "D-E", "server",
         "`elicitation: {}` = form only; `elicitation: {url:{}}` = URL only."),
    ),
)
# fmt: on
