"""The manifest: the requirements of the specification and our own decisions, one row each, with
their status.

A row is written before the code that fulfils it. Tests name the rows that they prove with
`@pytest.mark.requirement("RPC-1", ...)`. `test_manifest.py` compares both sides: a TESTED row has a
test, and no test proves a row that is still planned.

Rules of this file:

1. The sentences are our summaries, never quotations. Where a row matters, read its page.
2. Every row has one verdict. `TESTED`: at least one test carries its id. `PLANNED(topic)`: that
   piece of work will bring it. `NOT_OURS(why)`: another party is responsible (the host application,
   the author of a server).
3. An id is never reused for another requirement.

Revisions go by letters: A 2024-11-05, B 2025-03-26, C 2025-06-18, D 2025-11-25 (the stateful era)
and E 2026-07-28 (the stateless one). Levels are those of the text; "schema" is a fact of the
schema, "reading" our interpretation where the text is silent (never an obligation of the peer),
"decision" our own choice. A page is a path below the specification of its revision, or below the
site if it starts with a slash.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["NOT_OURS", "PLANNED", "REQUIREMENTS", "REVISIONS", "TESTED", "Requirement", "Verdict"]

SITE = "https://modelcontextprotocol.io"
REVISIONS = {
    "A": "2024-11-05",
    "B": "2025-03-26",
    "C": "2025-06-18",
    "D": "2025-11-25",
    "E": "2026-07-28",
}

Level = Literal[
    "MUST",
    "MUST NOT",
    "SHOULD",
    "SHOULD NOT",
    "MAY",
    "schema",
    "reading",
    "decision",
]
Role = Literal[
    "both",
    "client",
    "server",
    "requestor",
    "receiver",
    "sender",
    "reporter",
    "responder",
    "resource server",
    "authorization server",
    "intermediary",
    "host",
]
Topic = Literal[
    "core-on-pipes",
    "utilities",
    "subscriptions",
    "conversation",
    "tasks",
    "pressure",
    "http",
    "http2-websocket",
    "auth",
]


@dataclass(frozen=True)
class Tested:
    """At least one test carries the row's id."""

    def __str__(self) -> str:
        return "TESTED"


@dataclass(frozen=True)
class Planned:
    """A row without a test so far; `topic` is the piece of work that will bring it."""

    topic: Topic

    def __str__(self) -> str:
        return f'PLANNED("{self.topic}")'


@dataclass(frozen=True)
class NotOurs:
    """A row for which another party is responsible; `why` names it, or the reason that it does not
    concern us.
    """

    why: str

    def __str__(self) -> str:
        return f'NOT_OURS("{self.why}")'


Verdict = Tested | Planned | NotOurs
TESTED = Tested()
PLANNED = Planned
NOT_OURS = NotOurs

# Reasons that several rows share.
ADVICE = "advice on adopting the feature; we keep it for peers that use it"
AUTHOR = "the author of the server decides what it says and does"
AUTHORIZATION_SERVER = "we write no authorization server"
HOST = "the host application has the user interface; we have none"
MODEL = "the host application runs the model and chooses how"
PROXY = "we write no proxy to third-party authorization"


@dataclass(frozen=True)
class Requirement:
    """One row.

    Spans of revisions are written `A-D` or `A,C-E`, pages `A-D:basic/lifecycle E:changelog`.
    """

    id: str
    page: str
    sentence: str
    level: Level
    revisions: str
    role: Role
    verdict: Verdict

    def links(self) -> list[str]:
        """Return the addresses to read, one for each revision of the row; none for a decision."""
        paths: dict[str, str] = {}
        for entry in self.page.split():
            span, path = entry.split(":")
            paths |= dict.fromkeys(letters(span), path)
        return (
            [link(REVISIONS[letter], paths[letter]) for letter in letters(self.revisions)]
            if paths
            else []
        )


def letters(span: str) -> str:
    """Return the letters of a span: `ACDE` for `A,C-E`."""
    every = "".join(REVISIONS)
    return "".join(
        every[every.index(part[0]) : every.index(part[-1]) + 1]
        for part in span.replace(" ", "").split(",")
    )


def link(revision: str, path: str) -> str:
    """Return the public address of a page in one revision."""
    return SITE + (path if path.startswith("/") else f"/specification/*/{path}").replace(
        "*", revision
    )


def rows(page: str, *table: tuple[str, Level, str, Role, Verdict, str]) -> tuple[Requirement, ...]:
    """Return a group of rows that share a page. The sentence comes last in each row."""
    return tuple(
        Requirement(id, page, sentence, level, revisions, role, verdict)
        for id, level, revisions, role, verdict, sentence in table
    )


REQUIREMENTS: tuple[Requirement, ...] = (
    # RPC, JSON-RPC messages and ids
    *rows(
        "A:basic/messages B-E:basic",
        (
            "RPC-1",
            "MUST",
            "A-E",
            "both",
            TESTED,
            'Every message is JSON-RPC 2.0 with `jsonrpc` exactly `"2.0"`.',
        ),
        (
            "RPC-2",
            "MUST",
            "A-E",
            "both",
            TESTED,
            "A request carries an `id` that is a string or an integer (schema: no fractions, no bool, no "
            "object).",
        ),
        ("RPC-3", "MUST NOT", "A-E", "both", TESTED, "A request `id` is never `null`."),
        (
            "RPC-4",
            "MUST NOT",
            "A-D",
            "requestor",
            TESTED,
            "Within one session a requestor never reuses an id it has used before (even after the response "
            "arrived).",
        ),
        (
            "RPC-5",
            "MUST NOT",
            "E",
            "client",
            TESTED,
            "An id must not equal that of any request of the same sender still unanswered; reuse after the "
            "response is legal. (Weaker than A–D; a never-reuse counter satisfies all.)",
        ),
        (
            "RPC-6",
            "reading",
            "A-E",
            "both",
            TESTED,
            'Ids are compared with their JSON type: `1` and `"1"` are different. Each direction has its own '
            "id space (A–D); a response is matched only against requests the receiver of the response sent.",
        ),
        (
            "RPC-7",
            "MUST",
            "A-E",
            "responder",
            TESTED,
            "A response repeats the request id, same JSON type and value.",
        ),
        (
            "RPC-8",
            "MUST",
            "D-E",
            "responder",
            TESTED,
            "Error response may leave `id` out only if the id of the offending message could not be read "
            "(schema: `id?`). A–C schema has `id` required in `JSONRPCError`; JSON-RPC 2.0 itself says "
            "`null`. Reader: accept absent and `null`; never match it to a pending request.",
        ),
        (
            "RPC-9",
            "MUST",
            "A-C",
            "responder",
            TESTED,
            "A response holds exactly one of `result` and `error`; both or neither is invalid.",
        ),
        (
            "RPC-10",
            "MUST",
            "D-E",
            "responder",
            TESTED,
            "A result response has a `result` member (object); an error response has an `error` member; the "
            "two are separate types.",
        ),
        (
            "RPC-11",
            "MUST",
            "A-E",
            "responder",
            TESTED,
            "`error` has integer `code` and string `message`; `data` is free and optional.",
        ),
        (
            "RPC-12",
            "SHOULD",
            "A-E",
            "responder",
            TESTED,
            "`error.message` is one concise sentence.",
        ),
        (
            "RPC-13",
            "MUST NOT",
            "A-E",
            "both",
            TESTED,
            "A notification has no `id` member. (Presence of the key, not its value, decides.)",
        ),
        (
            "RPC-14",
            "MUST NOT",
            "B-E",
            "receiver",
            TESTED,
            "A notification is never answered, not even with an error. (A implies by JSON-RPC.)",
        ),
        (
            "RPC-15",
            "schema",
            "A-E",
            "both",
            TESTED,
            "`params`, if present, is an object; array params are not representable in MCP types.",
        ),
        (
            "RPC-16",
            "schema",
            "A-E",
            "both",
            TESTED,
            "`result` is an object with unknown members permitted (open content); never an array or scalar.",
        ),
        (
            "RPC-17",
            "reading",
            "A-E",
            "receiver",
            TESTED,
            "Unparsable JSON → `-32700`; JSON that is no valid request object → `-32600`; with the id if it "
            "could be read, else without.",
        ),
        (
            "RPC-18",
            "reading",
            "A-E",
            "receiver",
            TESTED,
            "Unknown method → `-32601`; malformed params of a known method → `-32602`; handler fault → "
            "`-32603`.",
        ),
        (
            "RPC-19",
            "reading",
            "A-E",
            "both",
            TESTED,
            "Unknown members of any object are tolerated on receipt (types are open) and unknown "
            "notifications are ignored.",
        ),
        (
            "RPC-20",
            "MUST",
            "B",
            "both",
            TESTED,
            "An implementation must be able to receive a JSON-RPC batch (top-level array).",
        ),
        (
            "RPC-21",
            "MAY",
            "B",
            "both",
            TESTED,
            "Sending batches is optional. Do not send one before B has been negotiated.",
        ),
        ("RPC-22", "MUST NOT", "B", "client", TESTED, "`initialize` is never inside a batch."),
        (
            "RPC-23",
            "schema",
            "B",
            "both",
            TESTED,
            "Request batch = non-empty list of requests/notifications; response batch = list of "
            "results/errors. Mixing requests with responses is not in the schema; over HTTP it is ruled "
            "out.",
        ),
        (
            "RPC-24",
            "reading",
            "B",
            "receiver",
            TESTED,
            "Empty batch → single `-32600`; a batch of only notifications gets no answer; responses may be "
            "sent singly or batched (JSON-RPC 2.0 §6).",
        ),
        (
            "RPC-25",
            "schema",
            "A,C-E",
            "both",
            TESTED,
            "Batches do not exist in A and were removed in C; an array is an invalid message there "
            "(`-32600`, no id).",
        ),
        (
            "RPC-26",
            "MUST",
            "B-E",
            "both",
            TESTED,
            "Messages are UTF-8. (A says it only for stderr; treat the same.)",
        ),
        (
            "RPC-27",
            "schema",
            "E",
            "server",
            TESTED,
            "Direction: clients send only requests and notifications, servers only responses and "
            "notifications. A message of the other kind is a protocol violation.",
        ),
        (
            "RPC-28",
            "MUST NOT",
            "E",
            "server",
            TESTED,
            "Server never starts a JSON-RPC request, on any transport.",
        ),
        ("RPC-29", "MUST NOT", "E", "client", TESTED, "Client never sends a JSON-RPC response."),
        ("RPC-30", "MUST", "E", "server", TESTED, "Every result has string `resultType`."),
        (
            "RPC-31",
            "MUST",
            "E",
            "client",
            TESTED,
            'A result without `resultType` is read as `"complete"` (older servers).',
        ),
        (
            "RPC-32",
            "MUST",
            "E",
            "client",
            TESTED,
            "A `resultType` outside core values (`complete`, `input_required`) plus those of extensions "
            "both sides declared is an invalid result.",
        ),
        (
            "RPC-33",
            "MUST",
            "E",
            "both",
            TESTED,
            "Set of accepted `resultType` values = core + active extensions (`task` with the tasks "
            "extension).",
        ),
        (
            "RPC-34",
            "MAY",
            "A-D",
            "both",
            TESTED,
            "`result` of a successful no-data operation is `{}` plus optional `_meta` (EmptyResult).",
        ),
    ),
    # META, `_meta`, icons, general fields
    *rows(
        "A:basic/messages B-E:basic",
        (
            "META-1",
            "schema",
            "A-E",
            "both",
            TESTED,
            "`_meta` may appear on request params, notification params and results in every revision; from "
            "C also on most named data types.",
        ),
        (
            "META-2",
            "MUST",
            "C-E",
            "both",
            TESTED,
            "Key grammar: optional prefix (dot-separated labels then `/`) + name. Label starts with a "
            "letter, ends with letter/digit, interior letters/digits/hyphen. Name empty, or starts and ends "
            "alphanumeric with `-_.` and alphanumerics inside.",
        ),
        (
            "META-3",
            "MUST NOT",
            "C-E",
            "both",
            TESTED,
            "No use of reserved prefixes for own keys. C: any prefix having a `modelcontextprotocol`/`mcp` "
            "label followed by a further label (e.g. `mcp.dev/`). D–E: second label is "
            "`modelcontextprotocol` or `mcp` (e.g. `io.modelcontextprotocol/`, `dev.mcp/`); "
            "`com.example.mcp/` is free.",
        ),
        (
            "META-4",
            "MUST NOT",
            "C-E",
            "both",
            TESTED,
            "Make no assumptions about values at reserved keys beyond what a definition gives.",
        ),
        (
            "META-5",
            "SHOULD",
            "D-E",
            "both",
            NOT_OURS(
                "it binds the authors of new prefixes; all reserved names we send are the specification's"
            ),
            "Own prefixes are in reverse-DNS order.",
        ),
        (
            "META-6",
            "MUST",
            "E",
            "client",
            TESTED,
            "Each request's `params._meta` holds `io.modelcontextprotocol/protocolVersion` (string) and "
            "`io.modelcontextprotocol/clientCapabilities` (object, `{}` allowed). So `params` is never "
            "absent on a request.",
        ),
        (
            "META-7",
            "SHOULD",
            "E",
            "client",
            TESTED,
            "Each request also holds `io.modelcontextprotocol/clientInfo` (Implementation) unless "
            "configured off. A server must serve requests without it.",
        ),
        (
            "META-8",
            "MUST",
            "E",
            "server",
            TESTED,
            "Missing `_meta` or a missing required key → `-32602`; on HTTP with status 400.",
        ),
        (
            "META-9",
            "MUST NOT",
            "E",
            "server",
            TESTED,
            "Nothing (version, capabilities, identity) is carried over from an earlier request on the same "
            "connection.",
        ),
        (
            "META-10",
            "SHOULD",
            "E",
            "server",
            TESTED,
            'Each result has `_meta["io.modelcontextprotocol/serverInfo"]` (Implementation) unless '
            "configured off.",
        ),
        (
            "META-11",
            "SHOULD NOT",
            "E",
            "both",
            TESTED,
            "`clientInfo`/`serverInfo` do not steer behaviour nor security decisions; display and logs "
            "only.",
        ),
        (
            "META-12",
            "MUST",
            "E",
            "server",
            TESTED,
            "Each notification delivered on a listen stream has "
            '`_meta["io.modelcontextprotocol/subscriptionId"]` = the id of the listen request (same JSON '
            "type). Other notifications do not carry it.",
        ),
        (
            "META-13",
            "MUST",
            "E",
            "both",
            TESTED,
            "`traceparent`, `tracestate`, `baggage` are reserved unprefixed keys; values follow W3C Trace "
            "Context / Baggage when present.",
        ),
        (
            "META-14",
            "schema",
            "A-E",
            "requestor",
            TESTED,
            "`_meta.progressToken` (string or integer) on a request asks for progress.",
        ),
        (
            "META-15",
            "schema",
            "D",
            "both",
            TESTED,
            '`_meta["io.modelcontextprotocol/related-task"] = {taskId}` ties a message to a task.',
        ),
        (
            "META-16",
            "reading",
            "E",
            "both",
            TESTED,
            "`io.modelcontextprotocol/related-task` has no function in E.",
        ),
        (
            "META-17",
            "MUST",
            "D-E",
            "client",
            NOT_OURS("the host application fetches and draws icons; we hand them through unread"),
            "A client that renders icons supports `image/png`, `image/jpeg` (`image/jpg`); SHOULD support "
            "`image/svg+xml`, `image/webp`.",
        ),
        (
            "META-18",
            "MUST",
            "D-E",
            "client",
            NOT_OURS("the host application fetches and draws icons; we hand them through unread"),
            "Icon `src` only `https:` or `data:` (reject `javascript:`, `file:`, `ftp:`, `ws:`, app "
            "schemes); no cross-origin or scheme-changing redirects; fetched without credentials; same "
            "origin as server verified; bytes treated as untrusted, type sniffed. (Text also admits `http` "
            "in the field description; the security rule is stricter.)",
        ),
        (
            "META-19",
            "schema",
            "D-E",
            "both",
            TESTED,
            'Icon = `{src, mimeType?, sizes?: string[] ("WxH" or "any"), theme?: "light"|"dark"}`.',
        ),
    ),
    # JSCH, JSON Schema in messages
    *rows(
        "D-E:basic",
        (
            "JSCH-1",
            "MUST",
            "D-E",
            "both",
            TESTED,
            "A schema without `$schema` is 2020-12; 2020-12 must be supported. (A–C leave the dialect "
            "open.)",
        ),
        (
            "JSCH-2",
            "MUST",
            "D-E",
            "both",
            TESTED,
            "A schema is validated by its declared/default dialect; an unsupported dialect produces a clear "
            "error, not a crash or a pass.",
        ),
        ("JSCH-3", "MUST", "D-E", "both", TESTED, "A schema sent must be valid in its dialect."),
        (
            "JSCH-4",
            "SHOULD",
            "D-E",
            "both",
            NOT_OURS("because it is a duty of documentation: `ToolOptions` names the dialects"),
            "Document further dialects supported.",
        ),
        (
            "JSCH-5",
            "MUST NOT",
            "E",
            "both",
            TESTED,
            "A `$ref` that resolves to a network URI is not fetched automatically; fetching is opt-in, off "
            "by default.",
        ),
        (
            "JSCH-6",
            "SHOULD",
            "E",
            "both",
            NOT_OURS("nothing is ever fetched (JSCH-5), so there is no opt-in to guard"),
            "Opt-in fetching uses a host allowlist, or at least refuses loopback/link-local/private "
            "addresses, with timeouts, size limits and a log entry.",
        ),
        (
            "JSCH-7",
            "SHOULD",
            "E",
            "both",
            TESTED,
            "A schema with an unresolved external `$ref` is rejected, not treated as permissive.",
        ),
        (
            "JSCH-8",
            "SHOULD",
            "E",
            "both",
            TESTED,
            "Validation is bounded (depth, number of subschemas, or time).",
        ),
    ),
    # LIFE, Lifecycle of the stateful era
    *rows(
        "A-D:basic/lifecycle E:basic/patterns/cancellation",
        (
            "LIFE-1",
            "MUST",
            "A-D",
            "client",
            TESTED,
            "`initialize` is the first interaction; params `protocolVersion`, `capabilities`, `clientInfo` "
            "all required.",
        ),
        (
            "LIFE-2",
            "MUST",
            "A-D",
            "client",
            TESTED,
            "`protocolVersion` is one the client supports. SHOULD be its latest (of the stateful era).",
        ),
        (
            "LIFE-3",
            "MUST",
            "A-D",
            "server",
            TESTED,
            "Answer with `protocolVersion`, `capabilities`, `serverInfo` (+ `instructions?`).",
        ),
        (
            "LIFE-4",
            "MUST",
            "A-D",
            "server",
            TESTED,
            "If the requested version is supported, echo it; else answer with another supported version "
            "(SHOULD be the latest). Not an error.",
        ),
        (
            "LIFE-5",
            "SHOULD",
            "A-D",
            "client",
            TESTED,
            "If the answered version is unsupported, disconnect (schema.ts comment says MUST). No "
            "`initialized` is sent then.",
        ),
        (
            "LIFE-6",
            "reading",
            "A-D",
            "server",
            TESTED,
            "The example error for version trouble is `-32602` with `data {supported, requested}`; a client "
            "should surface it. Normative path is the counter-offer, not this error.",
        ),
        (
            "LIFE-7",
            "MUST",
            "A-D",
            "client",
            TESTED,
            "After a successful answer send `notifications/initialized`.",
        ),
        (
            "LIFE-8",
            "SHOULD NOT",
            "A-D",
            "client",
            TESTED,
            "Before the `initialize` response: no requests but `ping`.",
        ),
        (
            "LIFE-9",
            "SHOULD NOT",
            "A-D",
            "server",
            TESTED,
            "Before `notifications/initialized`: no requests but `ping`; logging notifications are allowed.",
        ),
        (
            "LIFE-10",
            "reading",
            "A-D",
            "server",
            TESTED,
            "A request other than `ping`/`initialize` before `initialize`: reject with an error (SDKs use "
            "`-32600` or `-32602`; the spec names no code). Client must not key on the code.",
        ),
        (
            "LIFE-11",
            "reading",
            "A-D",
            "server",
            TESTED,
            "A request after the `initialize` response but before `initialized`: accept (SHOULD NOT binds "
            "the client only for the time before the response). Being lenient is the safe reading, "
            "`initialized` can be overtaken over HTTP.",
        ),
        (
            "LIFE-12",
            "reading",
            "A-D",
            "server",
            TESTED,
            "A second `initialize` in an initialised session: reject `-32600`, keep the session.",
        ),
        (
            "LIFE-13",
            "SHOULD",
            "A",
            "both",
            TESTED,
            "Operation: respect the negotiated version and use only negotiated capabilities.",
        ),
        ("LIFE-14", "MUST", "C-D", "both", TESTED, "The same as a MUST. (B: SHOULD.)"),
        ("LIFE-15", "SHOULD", "B", "both", TESTED, "The same as A (SHOULD)."),
        ("LIFE-16", "MUST NOT", "A-D", "client", TESTED, "`initialize` is not cancelled."),
        (
            "LIFE-17",
            "reading",
            "A-D",
            "both",
            TESTED,
            "Shutdown has no message; it is the closing of the transport. Pending requests fail locally.",
        ),
        (
            "LIFE-18",
            "SHOULD",
            "A-D",
            "client",
            TESTED,
            "stdio shutdown: close server stdin, wait, SIGTERM after a while, SIGKILL after a further "
            "while.",
        ),
        (
            "LIFE-19",
            "MAY",
            "A-D",
            "server",
            TESTED,
            "Server may end by closing stdout and exiting.",
        ),
        (
            "LIFE-20",
            "reading",
            "A-D",
            "both",
            TESTED,
            "HTTP shutdown: close the connections (plus DELETE of the session from B).",
        ),
        (
            "LIFE-21",
            "SHOULD",
            "A-E",
            "both",
            TESTED,
            'A timeout on every request sent; after it, cancel and stop waiting. (A: only "appropriate '
            'timeouts".)',
        ),
        ("LIFE-22", "SHOULD", "B-E", "both", TESTED, "Timeouts configurable per request."),
        (
            "LIFE-23",
            "MAY",
            "B-E",
            "both",
            TESTED,
            "Progress may reset the timeout; a hard maximum SHOULD hold regardless.",
        ),
        (
            "LIFE-24",
            "SHOULD",
            "A-D",
            "both",
            TESTED,
            "Be ready for version mismatch, failed capability negotiation, init timeout.",
        ),
    ),
    # VER, Versioning in the stateless era, dual-era rules
    *rows(
        "A-D:basic/lifecycle E:basic/versioning",
        (
            "VER-1",
            "MUST",
            "E",
            "server",
            TESTED,
            "A request naming an unimplemented (unknown or refused) version → error `-32022` with "
            "`data.supported: string[]` and `data.requested: string`; HTTP 400.",
        ),
        (
            "VER-2",
            "SHOULD",
            "E",
            "client",
            TESTED,
            "On `-32022` choose a mutual version from `supported` and retry (new id), else report.",
        ),
        ("VER-3", "MUST", "E", "server", TESTED, "`server/discover` is implemented."),
        (
            "VER-4",
            "MAY",
            "E",
            "client",
            TESTED,
            "`server/discover` is optional to call; any RPC may be first.",
        ),
        (
            "VER-5",
            "schema",
            "E",
            "server",
            TESTED,
            "`DiscoverResult`: `resultType`, `supportedVersions`, `capabilities`, `ttlMs`, `cacheScope`; "
            "`instructions?`; `_meta…/serverInfo` SHOULD.",
        ),
        (
            "VER-6",
            "reading",
            "E",
            "server",
            TESTED,
            "`server/discover` with an unsupported version is answered with `-32022`, not with a result.",
        ),
        (
            "VER-7",
            "MUST NOT",
            "E",
            "server",
            TESTED,
            "No reliance on earlier requests of the same connection; a connection or process is not a "
            "session.",
        ),
        (
            "VER-8",
            "SHOULD NOT",
            "E",
            "server",
            TESTED,
            "Do not require that related operations reuse a connection or process.",
        ),
        (
            "VER-9",
            "SHOULD",
            "E",
            "server",
            TESTED,
            "Handle requests of several conversations interleaved.",
        ),
        (
            "VER-10",
            "SHOULD NOT",
            "E",
            "client",
            NOT_OURS("the program that opens a client decides how long the server process lives"),
            "Do not tie the life of a stdio process to one task/thread/conversation.",
        ),
        (
            "VER-11",
            "MUST",
            "E",
            "both",
            NOT_OURS(
                "how a server names its state is its author's design; the engine keeps none (VER-7)"
            ),
            "State across requests travels as an explicit identifier in each request.",
        ),
        (
            "VER-12",
            "MUST",
            "E",
            "both",
            TESTED,
            "Extension ids follow the `_meta` key grammar with a mandatory prefix.",
        ),
        (
            "VER-13",
            "MUST",
            "E",
            "both",
            TESTED,
            "If one side lacks an extension, the other falls back to core behaviour or rejects with a "
            "fitting error.",
        ),
        (
            "VER-14",
            "MAY",
            "E",
            "server",
            TESTED,
            "A server may serve both eras, also concurrently on one endpoint/process: modern `_meta` → "
            "stateless; `initialize` → legacy semantics scoped to the stdio process or HTTP session.",
        ),
        (
            "VER-15",
            "SHOULD",
            "E",
            "server",
            TESTED,
            "A modern-only server names its versions in the error it gives to `initialize` (any transport).",
        ),
        (
            "VER-16",
            "SHOULD",
            "E",
            "client",
            TESTED,
            "Cache the detected era per server process (stdio) or origin (HTTP); MAY persist; re-probe if "
            "it later fails.",
        ),
        (
            "VER-17",
            "reading",
            "E",
            "client",
            TESTED,
            'A dual-era client reads `-32022` whose `supported` has only legacy versions as "legacy '
            'advertised": use `initialize`. If `supported` has no mutual version of any era → surface an '
            "error. (Text: never fall back on a recognised modern error; SDKs make this one exception.)",
        ),
        (
            "VER-18",
            "reading",
            "E",
            "client",
            TESTED,
            "A `DiscoverResult` with no mutual modern version but a mutual legacy one: fall back to "
            "`initialize` (SDK consensus).",
        ),
        (
            "VER-19",
            "reading",
            "A-E",
            "both",
            TESTED,
            "Versions are opaque strings from a fixed set; never compare lexicographically against unknown "
            "strings.",
        ),
    ),
    # CAP, Capabilities
    *rows(
        "A-D:basic/lifecycle E:basic",
        (
            "CAP-1",
            "schema",
            "A-D",
            "both",
            TESTED,
            "Client: `roots{listChanged}`, `sampling`, `experimental` (A–); `elicitation` (C–); "
            "`sampling{context,tools}`, `elicitation{form,url}`, `tasks` (D). Server: `logging`, "
            "`prompts{listChanged}`, `resources{subscribe,listChanged}`, `tools{listChanged}`, "
            "`experimental`; `completions` (B–); `tasks` (D).",
        ),
        (
            "CAP-2",
            "schema",
            "E",
            "both",
            TESTED,
            "`roots` is `{}` (no `listChanged`), `tasks` gone, `extensions{id: object}` new on both sides.",
        ),
        (
            "CAP-3",
            "MUST NOT",
            "A-E",
            "both",
            TESTED,
            "A feature needing a capability of the peer is not used unless declared (A–B SHOULD, C–E MUST).",
        ),
        (
            "CAP-4",
            "MUST",
            "E",
            "server",
            TESTED,
            "A request needing an undeclared client capability → `-32021` with `data.requiredCapabilities` "
            "= a ClientCapabilities object (not a list of names); HTTP 400.",
        ),
        (
            "CAP-5",
            "MUST NOT",
            "E",
            "server",
            TESTED,
            "Client capabilities are never inferred from prior requests.",
        ),
        (
            "CAP-6",
            "schema",
            "E",
            "server",
            TESTED,
            "A method gated by a server capability not advertised → `-32601` (schema comment on "
            "MethodNotFoundError); HTTP 404.",
        ),
        (
            "CAP-7",
            "reading",
            "A-D",
            "both",
            TESTED,
            "The same gate in A–D → `-32601` (given for roots and completion).",
        ),
        (
            "CAP-8",
            "MUST",
            "D",
            "both",
            TESTED,
            "Support for task augmentation is declared per request type under `tasks.requests`; the set is "
            "exhaustive.",
        ),
        (
            "CAP-9",
            "schema",
            "A-E",
            "both",
            TESTED,
            "Capability objects are open; presence (even `{}`) means support; absent boolean = false.",
        ),
        (
            "CAP-10",
            "reading",
            "D-E",
            "server",
            TESTED,
            "`elicitation: {}` = form only; `elicitation: {url:{}}` = URL only.",
        ),
    ),
    # PING, ping
    *rows(
        "A-D:basic/utilities/ping E:changelog",
        (
            "PING-1",
            "schema",
            "A-D",
            "both",
            TESTED,
            "`ping`, either direction, no params needed, result `{}`.",
        ),
        (
            "PING-2",
            "MUST",
            "A-D",
            "receiver",
            TESTED,
            "Answer promptly with the empty result, at any time, also before initialisation.",
        ),
        (
            "PING-3",
            "SHOULD",
            "A-D",
            "both",
            TESTED,
            "Periodic pings, configurable rate, not excessive; timeout counts as connection failure; "
            "failures logged.",
        ),
        (
            "PING-4",
            "MAY",
            "A-D",
            "both",
            TESTED,
            "After a missed ping: mark stale, terminate, reconnect.",
        ),
        ("PING-5", "schema", "E", "server", TESTED, "`ping` does not exist: `-32601` (HTTP 404)."),
    ),
    # CXL, Cancellation
    *rows(
        "A-D:basic/utilities/cancellation E:basic/patterns/cancellation",
        (
            "CXL-1",
            "schema",
            "A-E",
            "both",
            TESTED,
            "`notifications/cancelled` params `{requestId, reason?}` (D schema: `requestId` optional, but "
            "required for non-task requests).",
        ),
        (
            "CXL-2",
            "MUST",
            "A-D",
            "sender",
            TESTED,
            "References only a request it issued itself in the same direction and believes in flight.",
        ),
        ("CXL-3", "MUST", "E", "client", TESTED, "References only its own in-flight request."),
        ("CXL-4", "MUST NOT", "A-D", "client", TESTED, "Never for `initialize`."),
        (
            "CXL-5",
            "MUST",
            "D",
            "sender",
            TESTED,
            "For a task-augmented request use `tasks/cancel`, not this notification (the notification is "
            "still right while the initial `CreateTaskResult` is pending — reading).",
        ),
        (
            "CXL-6",
            "SHOULD",
            "A-E",
            "receiver",
            TESTED,
            "Stop work, free resources, send no response.",
        ),
        (
            "CXL-7",
            "MUST NOT",
            "E",
            "server",
            TESTED,
            "After cancellation no further message for that request (both transports).",
        ),
        (
            "CXL-8",
            "MAY",
            "A-E",
            "receiver",
            TESTED,
            "Ignore if unknown, already done, or not cancellable.",
        ),
        ("CXL-9", "SHOULD", "A-E", "sender", TESTED, "Ignore a response that still arrives."),
        (
            "CXL-10",
            "MUST",
            "A-E",
            "both",
            TESTED,
            "Cope with the race (cancel crosses the response) without error.",
        ),
        (
            "CXL-11",
            "SHOULD",
            "A-E",
            "receiver",
            TESTED,
            "Ignore malformed or unknown cancellations silently.",
        ),
        (
            "CXL-12",
            "SHOULD",
            "A-E",
            "both",
            TESTED,
            "Log the reason; UI shows that cancellation was asked.",
        ),
        (
            "CXL-13",
            "MUST",
            "E",
            "client",
            TESTED,
            "stdio: cancellation of a request is `notifications/cancelled`.",
        ),
        (
            "CXL-14",
            "MUST",
            "E",
            "server",
            TESTED,
            "HTTP: closing of the SSE response stream / client disconnect is cancellation of that request.",
        ),
        (
            "CXL-15",
            "reading",
            "E",
            "client",
            TESTED,
            "HTTP: no `notifications/cancelled` is POSTed; close the response.",
        ),
        (
            "CXL-16",
            "SHOULD NOT",
            "B-D",
            "server",
            TESTED,
            "HTTP: a disconnect is not a cancellation; to cancel the client SHOULD POST "
            "`notifications/cancelled`. (Opposite of E.)",
        ),
        (
            "CXL-17",
            "MUST",
            "E",
            "server",
            TESTED,
            "Server tearing down a subscription sends `notifications/cancelled` naming the listen id "
            "(schema: on stdio); never for any other purpose. It conflicts with SUB-8; DEC-1 decides.",
        ),
        (
            "CXL-18",
            "reading",
            "A-D",
            "both",
            TESTED,
            "A cancelled request that was the parent of nested server requests: the nested ones should be "
            "cancelled by their own sender.",
        ),
    ),
    # PROG, Progress
    *rows(
        "A-D:basic/utilities/progress E:basic/patterns/progress",
        (
            "PROG-1",
            "schema",
            "A-E",
            "both",
            TESTED,
            "`notifications/progress` params `{progressToken, progress, total?, message?}`; `message` from "
            "B.",
        ),
        (
            "PROG-2",
            "MUST",
            "A-E",
            "requestor",
            TESTED,
            "Token is a string or integer, unique among its active requests.",
        ),
        (
            "PROG-3",
            "MUST",
            "A-E",
            "reporter",
            TESTED,
            "Only tokens from an active request with work in progress.",
        ),
        (
            "PROG-4",
            "MUST",
            "A-E",
            "reporter",
            TESTED,
            "`progress` strictly increases from one notification to the next; floats allowed.",
        ),
        (
            "PROG-5",
            "MUST",
            "A-E",
            "reporter",
            TESTED,
            "Stop after completion (response sent, or task terminal in D).",
        ),
        (
            "PROG-6",
            "MUST",
            "D",
            "reporter",
            TESTED,
            "For a task the original token stays valid after `CreateTaskResult` until a terminal status, "
            "and is the one used.",
        ),
        (
            "PROG-7",
            "MUST NOT",
            "E",
            "server",
            TESTED,
            "Tasks extension: no `notifications/progress` (nor `message`) for tasks, in particular not on "
            "the listen stream.",
        ),
        (
            "PROG-8",
            "schema",
            "E",
            "server",
            TESTED,
            "Only server→client (client issues all requests).",
        ),
        (
            "PROG-9",
            "MUST",
            "E",
            "server",
            TESTED,
            "HTTP: progress travels on the response stream of its own request, never on the listen stream.",
        ),
        ("PROG-10", "SHOULD", "A-E", "both", TESTED, "Track active tokens, rate-limit."),
        (
            "PROG-11",
            "MAY",
            "A-E",
            "reporter",
            TESTED,
            "May send none, at any rate, without `total`.",
        ),
        (
            "PROG-12",
            "SHOULD",
            "B-E",
            "reporter",
            NOT_OURS("the text of a message is the caller's"),
            "`message` is human-readable.",
        ),
        (
            "PROG-13",
            "reading",
            "A-E",
            "requestor",
            TESTED,
            "Progress with unknown/finished token is dropped silently; a token is matched with its JSON "
            "type.",
        ),
    ),
    # LOG, Logging
    *rows(
        "A-E:server/utilities/logging",
        (
            "LOG-1",
            "MUST",
            "A-E",
            "server",
            TESTED,
            "A server that emits log messages declares `logging`.",
        ),
        (
            "LOG-2",
            "schema",
            "A-E",
            "server",
            TESTED,
            "`notifications/message` params `{level, logger?, data}`; levels debug, info, notice, warning, "
            "error, critical, alert, emergency.",
        ),
        (
            "LOG-3",
            "schema",
            "A-D",
            "client",
            TESTED,
            "`logging/setLevel {level}` → `{}`; afterwards the server sends that level and above.",
        ),
        (
            "LOG-4",
            "MAY",
            "A-D",
            "server",
            TESTED,
            "With no level set the server chooses which messages to send (schema comment).",
        ),
        (
            "LOG-5",
            "SHOULD",
            "A-D",
            "server",
            TESTED,
            "Unknown level → `-32602`; internal → `-32603`.",
        ),
        ("LOG-6", "schema", "E", "server", TESTED, "`logging/setLevel` does not exist (`-32601`)."),
        (
            "LOG-7",
            "MUST NOT",
            "E",
            "server",
            TESTED,
            'No `notifications/message` for a request lacking `_meta["io.modelcontextprotocol/logLevel"]`.',
        ),
        (
            "LOG-8",
            "MAY",
            "E",
            "server",
            TESTED,
            "With it: messages at or above the level, before the final response, on that request's response "
            "stream.",
        ),
        (
            "LOG-9",
            "MUST NOT",
            "E",
            "server",
            TESTED,
            "Never on a listen stream nor on another request's stream.",
        ),
        (
            "LOG-10",
            "SHOULD",
            "E",
            "server",
            TESTED,
            "Unrecognised `logLevel` → reject the request with `-32602`.",
        ),
        (
            "LOG-11",
            "MUST NOT",
            "A-E",
            "server",
            NOT_OURS(AUTHOR),
            "No secrets, personal data or attack-helping internals in messages.",
        ),
        ("LOG-12", "SHOULD", "A-E", "server", TESTED, "Rate limit; consistent logger names."),
        (
            "LOG-13",
            "SHOULD NOT",
            "E",
            "both",
            NOT_OURS(ADVICE),
            "Feature deprecated: not newly adopted (still functional).",
        ),
    ),
    # PAGE, Pagination
    *rows(
        "A-E:server/utilities/pagination",
        (
            "PAGE-1",
            "schema",
            "A-E",
            "both",
            TESTED,
            "Paginated: `tools/list`, `prompts/list`, `resources/list`, `resources/templates/list`; D also "
            "`tasks/list`. Request `cursor?`, result `nextCursor?`.",
        ),
        ("PAGE-2", "MUST NOT", "A-E", "client", TESTED, "No assumed page size."),
        (
            "PAGE-3",
            "MUST",
            "A-E",
            "client",
            TESTED,
            "Cursors are opaque: not parsed, altered, and (A–D) not persisted across sessions.",
        ),
        (
            "PAGE-4",
            "MUST NOT",
            "E",
            "client",
            TESTED,
            "An empty-string cursor is a valid cursor, not the end. Only absent/null `nextCursor` ends. "
            "(Apply in all revisions.)",
        ),
        (
            "PAGE-5",
            "SHOULD",
            "A-E",
            "client",
            TESTED,
            "Missing `nextCursor` = end; handle paginated and unpaginated.",
        ),
        ("PAGE-6", "SHOULD", "A-E", "server", TESTED, "Stable cursors; invalid cursor → `-32602`."),
    ),
    # COMP, Completion
    *rows(
        "A-E:server/utilities/completion",
        (
            "COMP-1",
            "MUST",
            "B-E",
            "server",
            TESTED,
            "A server supporting completion declares `completions`. (A has no such capability; a client may "
            "try.)",
        ),
        (
            "COMP-2",
            "schema",
            "A-E",
            "client",
            TESTED,
            "`completion/complete {ref, argument{name,value}}`; `context.arguments?` from C. `ref` = "
            '`{type:"ref/prompt",name,title?}` or `{type:"ref/resource",uri}`.',
        ),
        (
            "COMP-3",
            "schema",
            "A-E",
            "server",
            TESTED,
            "Result `completion{values: string[] ≤100, total?, hasMore?}` (limit enforced in schema.json "
            "only in E).",
        ),
        (
            "COMP-4",
            "SHOULD",
            "B-E",
            "server",
            TESTED,
            "`-32601` unsupported, `-32602` bad prompt name/missing argument, `-32603` internal.",
        ),
        ("COMP-5", "SHOULD", "A-E", "server", TESTED, "Sort by relevance, rate limit, validate."),
        (
            "COMP-6",
            "MUST",
            "A-E",
            "both",
            NOT_OURS(
                "input and rate are COMP-5; what is suggested, and to whom, the author of the server decides"
            ),
            "Validate input, rate limit, control access, no disclosure through suggestions.",
        ),
        (
            "COMP-7",
            "SHOULD",
            "A-E",
            "client",
            NOT_OURS("a host debounces its own input field"),
            "Debounce, cache, cope with partial results.",
        ),
    ),
    # CACHE, Caching hints
    *rows(
        "E:server/utilities/caching",
        (
            "CACHE-1",
            "MUST",
            "E",
            "server",
            TESTED,
            "`ttlMs` (integer ≥ 0) and `cacheScope` (`public`|`private`) on complete results of "
            "`server/discover`, `tools/list`, `prompts/list`, `resources/list`, `resources/templates/list`, "
            "`resources/read`.",
        ),
        ("CACHE-2", "schema", "E", "server", TESTED, "No hints on `input_required` results."),
        (
            "CACHE-3",
            "MUST NOT",
            "E",
            "client",
            TESTED,
            "A cached response is not used for another method or other result-affecting params.",
        ),
        (
            "CACHE-4",
            "MUST NOT",
            "E",
            "client",
            TESTED,
            "Results of requests carrying `inputResponses`/`requestState` are not cached.",
        ),
        (
            "CACHE-5",
            "SHOULD",
            "E",
            "client",
            TESTED,
            "0 = stale at once; positive = fresh while `now < t_received + ttlMs`; absent or negative = 0.",
        ),
        (
            "CACHE-6",
            "SHOULD",
            "E",
            "client",
            TESTED,
            "Re-fetch on next access after expiry; TTL is no polling interval; polling MUST use jitter and "
            "backoff.",
        ),
        (
            "CACHE-7",
            "MUST NOT",
            "E",
            "client",
            TESTED,
            "`private` responses are not shared across authorization contexts (other token = other cache).",
        ),
        (
            "CACHE-8",
            "MUST",
            "E",
            "server",
            TESTED,
            "Same `cacheScope` on all pages of one listing; `ttlMs` may differ per page.",
        ),
        (
            "CACHE-9",
            "SHOULD",
            "E",
            "client",
            TESTED,
            "Invalid cursor during cached paging: drop all pages and restart.",
        ),
        (
            "CACHE-10",
            "reading",
            "E",
            "client",
            TESTED,
            "A matching `list_changed`/`updated` notification makes the entry stale at once.",
        ),
        (
            "CACHE-11",
            "MUST NOT",
            "E",
            "server",
            NOT_OURS("access is for the server's author to decide; the hint never enters it"),
            "`cacheScope` is no access control; per-primitive checks are still needed; `public` results may "
            "reach other users.",
        ),
    ),
    # TSK, Tasks of 2025-11-25 (experimental, either direction)
    *rows(
        "D:basic/utilities/tasks",
        (
            "TSK-1",
            "MUST",
            "D",
            "both",
            TESTED,
            "Declare `tasks` (with `list`, `cancel`, `requests.*`) at initialisation. Server: "
            "`requests.tools.call`; client: `requests.sampling.createMessage`, "
            "`requests.elicitation.create`.",
        ),
        (
            "TSK-2",
            "SHOULD",
            "D",
            "requestor",
            TESTED,
            "Augment only request types the receiver declared; none if `tasks` is absent.",
        ),
        (
            "TSK-3",
            "MUST NOT",
            "D",
            "client",
            TESTED,
            "No augmentation of `tools/call` if `tasks.requests.tools.call` is absent, whatever the tool "
            "says.",
        ),
        (
            "TSK-4",
            "MUST NOT",
            "D",
            "client",
            TESTED,
            "Not for tools with `execution.taskSupport` absent or `forbidden`; server SHOULD answer "
            "`-32601`.",
        ),
        (
            "TSK-5",
            "MUST",
            "D",
            "client",
            TESTED,
            'Tool with `taskSupport: "input_required_result"` must be called as a task; else server MUST answer '
            "`-32601`.",
        ),
        (
            "TSK-6",
            "schema",
            "D",
            "requestor",
            TESTED,
            "Augmentation = `params.task {ttl?}` (ms).",
        ),
        (
            "TSK-7",
            "MUST",
            "D",
            "receiver",
            TESTED,
            "Accepting → answer is `CreateTaskResult {task}` and nothing else; SHOULD come at once.",
        ),
        (
            "TSK-8",
            "MUST",
            "D",
            "receiver",
            TESTED,
            "A receiver that did not declare the type ignores `task` and processes normally.",
        ),
        (
            "TSK-9",
            "MAY",
            "D",
            "receiver",
            NOT_OURS("a tool that runs as a task only is refused with -32601, as TSK-5 demands"),
            "A declaring receiver may refuse unaugmented requests (`-32600`).",
        ),
        (
            "TSK-10",
            "MUST",
            "D",
            "receiver",
            TESTED,
            "`taskId` is a string, made by the receiver, unique among its tasks.",
        ),
        (
            "TSK-11",
            "MUST",
            "D",
            "receiver",
            TESTED,
            "Starts `working`; working→{input_required, completed, failed, cancelled}; "
            "input_required→{working, completed, failed, cancelled}; terminal states are final.",
        ),
        (
            "TSK-12",
            "MUST",
            "D",
            "receiver",
            TESTED,
            "All task payloads have `createdAt`, `lastUpdatedAt` (ISO 8601) and actual `ttl` (integer or "
            "`null`); `pollInterval?` ms. Requested ttl may be overridden.",
        ),
        (
            "TSK-13",
            "SHOULD",
            "D",
            "requestor",
            TESTED,
            "Poll `tasks/get`, respecting `pollInterval`, until terminal or `input_required`.",
        ),
        (
            "TSK-14",
            "MUST",
            "D",
            "receiver",
            TESTED,
            "`tasks/result` of a terminal task returns exactly what the original request would have "
            "(result, or that JSON-RPC error).",
        ),
        (
            "TSK-15",
            "MUST",
            "D",
            "receiver",
            TESTED,
            "`tasks/result` of a non-terminal task blocks until terminal.",
        ),
        (
            "TSK-16",
            "SHOULD",
            "D",
            "requestor",
            TESTED,
            "On `input_required` call `tasks/result` at once (it is the channel for nested requests on "
            "HTTP).",
        ),
        (
            "TSK-17",
            "MUST",
            "D",
            "both",
            TESTED,
            "All requests/notifications/responses of a task carry "
            '`_meta["io.modelcontextprotocol/related-task"]`; nested requests too; `tasks/result` response '
            "too.",
        ),
        (
            "TSK-18",
            "SHOULD NOT",
            "D",
            "both",
            TESTED,
            "Not on `tasks/get`, `tasks/list`, `tasks/cancel` nor `notifications/tasks/status`; receivers "
            "ignore it there: the `taskId` param wins.",
        ),
        (
            "TSK-19",
            "MAY",
            "D",
            "receiver",
            TESTED,
            "`notifications/tasks/status` (full Task) is optional; requestor MUST NOT depend on it.",
        ),
        (
            "TSK-20",
            "schema",
            "D",
            "both",
            TESTED,
            "`tasks/list` paginated; needs `tasks.list`; everything gettable is listable; `nextCursor` MUST "
            "be set if more.",
        ),
        (
            "TSK-21",
            "MUST",
            "D",
            "receiver",
            TESTED,
            "`tasks/cancel` on a terminal task → `-32602`; else set `cancelled` before responding with the "
            "Task; stays cancelled even if work finishes.",
        ),
        (
            "TSK-22",
            "MUST",
            "D",
            "receiver",
            TESTED,
            "Unknown/expired `taskId` or bad cursor → `-32602`; internal → `-32603`.",
        ),
        (
            "TSK-23",
            "schema",
            "D",
            "receiver",
            TESTED,
            "Failed execution (JSON-RPC error, or tool result `isError: true`) → status `failed`. (The "
            "extension says `completed`: TX-11.)",
        ),
        (
            "TSK-24",
            "MUST",
            "D",
            "receiver",
            TESTED,
            "With an authorization context tasks are bound to it: other contexts are refused and not "
            "listed. Without: unguessable ids, SHOULD NOT declare `tasks.list`.",
        ),
        (
            "TSK-25",
            "SHOULD",
            "D",
            "receiver",
            TESTED,
            "Limits on number of tasks and ttl, clean-up, rate limits.",
        ),
        (
            "TSK-26",
            "MAY",
            "D",
            "requestor",
            TESTED,
            "On HTTP the requestor may disconnect from a `tasks/get`/`tasks/result` SSE stream at any time; "
            "SHOULD expect messages on any stream; server SHOULD NOT upgrade `tasks/get` to SSE.",
        ),
        (
            "TSK-27",
            "MAY",
            "D",
            "server",
            TESTED,
            '`CreateTaskResult._meta["io.modelcontextprotocol/model-immediate-response"]`: string for the '
            "model (provisional).",
        ),
    ),
    # TX, Tasks extension `io.modelcontextprotocol/tasks`
    *rows(
        "E:/extensions/tasks/overview",
        (
            "TX-1",
            "schema",
            "E",
            "both",
            TESTED,
            "Declared as `{}` in client per-request `extensions` and in server `extensions` (discover). "
            "Only with E; MUST NOT enable anything under D.",
        ),
        (
            "TX-2",
            "MUST NOT",
            "E",
            "server",
            TESTED,
            "No `CreateTaskResult` to a request that did not declare the extension, whatever earlier "
            "requests said.",
        ),
        (
            "TX-3",
            "MUST",
            "E",
            "client",
            TESTED,
            "A declaring client handles both the ordinary result and `CreateTaskResult` on `tools/call`.",
        ),
        (
            "TX-4",
            "MUST",
            "E",
            "client",
            TESTED,
            "`CreateTaskResult` on any other method is an invalid response.",
        ),
        (
            "TX-5",
            "MUST",
            "E",
            "server",
            TESTED,
            "If it can only serve by a task and the client did not declare: `-32021` with "
            '`requiredCapabilities.extensions["io.modelcontextprotocol/tasks"] = {}`.',
        ),
        (
            "TX-6",
            "MUST",
            "E",
            "server",
            TESTED,
            '`CreateTaskResult` is flat (`Result & Task`) with `resultType: "task"`; that value is on no '
            'other result. (Two examples in the text\'s error section show "task" on `tasks/get`; they '
            "contradict the MUST.)",
        ),
        (
            "TX-7",
            "MUST NOT",
            "E",
            "server",
            TESTED,
            "Not returned before `tasks/get` of the id would resolve (wait for consistency).",
        ),
        (
            "TX-8",
            "SHOULD",
            "E",
            "server",
            TESTED,
            "MRTR exchanges are finished before the task is created.",
        ),
        (
            "TX-9",
            "schema",
            "E",
            "both",
            TESTED,
            "Task = `taskId, status, statusMessage?, createdAt, lastUpdatedAt, ttlMs (int|null), "
            "pollIntervalMs?`; ttl and interval may change.",
        ),
        (
            "TX-10",
            "MUST",
            "E",
            "server",
            TESTED,
            '`tasks/get` result: `resultType: "complete"` + Task, with `inputRequests` (all outstanding) if '
            "`input_required`, `result` if `completed`, `error` if `failed`.",
        ),
        (
            "TX-11",
            "MUST NOT",
            "E",
            "server",
            TESTED,
            "`failed` only for JSON-RPC errors; a tool result with `isError` is `completed`. (Opposite of "
            "D.)",
        ),
        (
            "TX-12",
            "MUST",
            "E",
            "server",
            TESTED,
            "Input-request keys are unique for the life of the task and never reused.",
        ),
        (
            "TX-13",
            "schema",
            "E",
            "client",
            TESTED,
            '`tasks/update {taskId, inputResponses}` → empty result `resultType: "complete"`; eventually '
            "consistent.",
        ),
        (
            "TX-14",
            "SHOULD",
            "E",
            "server",
            TESTED,
            "Unknown or already answered keys are ignored; partial answers MAY be accepted (task stays "
            "`input_required`).",
        ),
        (
            "TX-15",
            "SHOULD",
            "E",
            "client",
            TESTED,
            "De-duplicate keys across polls; answer each once; keep polling to terminal.",
        ),
        (
            "TX-16",
            "MUST",
            "E",
            "client",
            TESTED,
            "Treat `inputRequests` with the trust model of direct elicitation/sampling.",
        ),
        (
            "TX-17",
            "schema",
            "E",
            "client",
            TESTED,
            "`tasks/cancel {taskId}` → empty ack; cooperative; status may end other than `cancelled`. Not "
            "an error on a terminal task.",
        ),
        (
            "TX-18",
            "MUST NOT",
            "E",
            "client",
            TESTED,
            "`notifications/cancelled` is not for tasks.",
        ),
        (
            "TX-19",
            "MUST",
            "E",
            "server",
            TESTED,
            "Unknown id: `-32602` MUST for `tasks/get`, SHOULD for update/cancel. Non-declaring client on "
            "any `tasks/*` or listen `taskIds`: `-32021`.",
        ),
        (
            "TX-20",
            "schema",
            "E",
            "both",
            TESTED,
            "Listen filter and ack gain `taskIds?: string[]`; `notifications/tasks` carries a full "
            "DetailedTask.",
        ),
        (
            "TX-21",
            "MUST",
            "E",
            "client",
            TESTED,
            "HTTP: `tasks/get|update|cancel` set `Mcp-Name` to `params.taskId`.",
        ),
        (
            "TX-22",
            "MUST",
            "E",
            "server",
            TESTED,
            "`tasks/result` → `-32601`; `task` param on `tools/call` is ignored; legacy `tasks.*` "
            "capability counts as non-declaring and is not advertised under E. (`tasks/list` likewise "
            "`-32601`.)",
        ),
        (
            "TX-23",
            "MUST",
            "E",
            "server",
            TESTED,
            "Task ids unguessable; authorization checked on each task request.",
        ),
        (
            "TX-24",
            "SHOULD",
            "E",
            "client",
            TESTED,
            "Honour `pollIntervalMs`; persist ids; MAY stop after `createdAt + ttlMs`.",
        ),
    ),
    # MRTR, Multi round-trip requests
    *rows(
        "E:basic/patterns/mrtr",
        (
            "MRTR-1",
            "MUST",
            "E",
            "server",
            TESTED,
            "Client input (roots, sampling, elicitation) is requested only through `InputRequiredResult`.",
        ),
        (
            "MRTR-2",
            "MUST NOT",
            "E",
            "server",
            TESTED,
            "`input_required` is allowed only on `tools/call`, `prompts/get`, `resources/read`.",
        ),
        (
            "MRTR-3",
            "MUST",
            "E",
            "server",
            TESTED,
            "It has at least one of `inputRequests`, `requestState`.",
        ),
        (
            "MRTR-4",
            "schema",
            "E",
            "server",
            TESTED,
            "`inputRequests` = map key → `{method, params}` (no `jsonrpc`, no `id`); method one of "
            "`elicitation/create`, `sampling/createMessage`, `roots/list`.",
        ),
        (
            "MRTR-5",
            "MUST NOT",
            "E",
            "server",
            TESTED,
            "No kind (or elicitation mode, or sampling tools) the client did not declare on this request; "
            "if it cannot proceed → `-32021`.",
        ),
        (
            "MRTR-6",
            "MUST",
            "E",
            "client",
            TESTED,
            "With `inputRequests`: build all responses before the retry. Without: MAY retry at once.",
        ),
        (
            "MRTR-7",
            "MUST",
            "E",
            "client",
            TESTED,
            "Retry = same method and original params + `inputResponses` (same keys; bare results, no "
            "`resultType`) + `requestState` echoed byte for byte if it was present.",
        ),
        (
            "MRTR-8",
            "MUST NOT",
            "E",
            "client",
            TESTED,
            "No `requestState` in the retry if the result had none.",
        ),
        (
            "MRTR-9",
            "MUST NOT",
            "E",
            "client",
            TESTED,
            "`requestState` is not inspected, parsed or changed.",
        ),
        ("MRTR-10", "MUST", "E", "client", TESTED, "The retry has a new id."),
        (
            "MRTR-11",
            "MUST NOT",
            "E",
            "client",
            TESTED,
            "Neither field is used on any other (parallel) request.",
        ),
        (
            "MRTR-12",
            "MUST NOT",
            "E",
            "server",
            TESTED,
            "Do not assume the client retries; MAY return `input_required` repeatedly.",
        ),
        (
            "MRTR-13",
            "MUST",
            "E",
            "server",
            TESTED,
            "Treat `requestState` as hostile: integrity protection (HMAC/AEAD) if it influences "
            "authorization, access or logic; reject if it fails.",
        ),
        (
            "MRTR-14",
            "SHOULD",
            "E",
            "server",
            TESTED,
            "Bind principal, short expiry, and method + params digest in it and verify each; single-use "
            "must be enforced server-side if needed.",
        ),
        (
            "MRTR-15",
            "SHOULD",
            "E",
            "server",
            TESTED,
            "Invalid `inputResponses` → JSON-RPC error; unknown keys ignored; missing needed ones → a new "
            "`input_required`, not an error.",
        ),
        (
            "MRTR-16",
            "reading",
            "E",
            "client",
            TESTED,
            "Client that declines sampling/roots or fails: just does not retry (no error channel); for "
            "elicitation answer `decline`/`cancel`.",
        ),
        (
            "MRTR-17",
            "reading",
            "E",
            "client",
            TESTED,
            "Cap the number of rounds; progress token, logLevel and `Mcp-Param-*` headers are to be sent on "
            "the retry as on the original.",
        ),
        (
            "MRTR-18",
            "reading",
            "E",
            "server",
            TESTED,
            "The retry may reach another server instance; nothing but the retry's content may be needed.",
        ),
    ),
    # SUB, subscriptions/listen
    *rows(
        "E:basic/patterns/subscriptions",
        (
            "SUB-1",
            "schema",
            "E",
            "client",
            TESTED,
            "`subscriptions/listen` params `notifications{toolsListChanged?, promptsListChanged?, "
            "resourcesListChanged?, resourceSubscriptions?: uri[]}` required (may be empty).",
        ),
        (
            "SUB-2",
            "MUST NOT",
            "E",
            "server",
            TESTED,
            "No notification type or URI that was not requested.",
        ),
        (
            "SUB-3",
            "MUST",
            "E",
            "server",
            TESTED,
            "First message of the subscription is `notifications/subscriptions/acknowledged` with the "
            "honoured subset (unsupported left out) and `_meta` subscription id; nothing of that "
            "subscription before it. Order is per subscription id on stdio.",
        ),
        (
            "SUB-4",
            "MUST",
            "E",
            "server",
            TESTED,
            "Every notification on it carries the subscription id in `_meta`, and so does the closing "
            "result.",
        ),
        ("SUB-5", "MUST", "E", "client", TESTED, "stdio: demultiplex by the subscription id."),
        (
            "SUB-6",
            "SHOULD",
            "E",
            "client",
            TESTED,
            "Compare the ack with the request; degrade gracefully.",
        ),
        ("SUB-7", "MAY", "E", "client", TESTED, "Several subscriptions at once."),
        (
            "SUB-8",
            "SHOULD",
            "E",
            "server",
            TESTED,
            'Graceful end by the server: `SubscriptionsListenResult` (`resultType: "complete"`, `_meta` '
            "subscription id = request id), then close the stream.",
        ),
        (
            "SUB-9",
            "MUST",
            "E",
            "server",
            NOT_OURS(
                "it contradicts SUB-8, and DEC-1 decides: the result of the listen request is its end"
            ),
            "A server tearing a subscription down sends `notifications/cancelled` with the listen id; "
            "schema limits it to stdio. It conflicts with SUB-8; DEC-1 decides.",
        ),
        (
            "SUB-10",
            "MUST NOT",
            "E",
            "server",
            TESTED,
            "`notifications/progress` and `notifications/message` never on the listen stream.",
        ),
        (
            "SUB-11",
            "schema",
            "E",
            "client",
            TESTED,
            "Client ends it: HTTP closes the stream; stdio `notifications/cancelled` with the listen id.",
        ),
        (
            "SUB-12",
            "MUST",
            "E",
            "client",
            NOT_OURS(
                "a subscription ends with its connection; a client that reconnects subscribes again"
            ),
            "After re-establishing a stdio connection, re-send listen.",
        ),
        (
            "SUB-13",
            "MAY",
            "E",
            "client",
            TESTED,
            "A close without a result is an abnormal end: MAY reconnect. Missed events are lost → "
            "re-list/re-read (reading).",
        ),
        (
            "SUB-14",
            "reading",
            "E",
            "server",
            TESTED,
            "`resources/updated` may name a sub-resource of a subscribed URI.",
        ),
        (
            "SUB-15",
            "SHOULD",
            "E",
            "server",
            TESTED,
            "HTTP listen streams: comment keep-alives, `X-Accel-Buffering: no`.",
        ),
        (
            "SUB-16",
            "reading",
            "E",
            "server",
            TESTED,
            "A server without any subscribable feature still may answer listen with an empty ack; "
            "over-limit → error before the ack.",
        ),
    ),
    # TOOL, Tools
    *rows(
        "A-E:server/tools",
        ("TOOL-1", "MUST", "A-E", "server", TESTED, "A server with tools declares `tools`."),
        (
            "TOOL-2",
            "schema",
            "A-E",
            "server",
            TESTED,
            'Tool: `name`, `inputSchema` (root `type: "object"`), `description?`; `annotations?` B–; '
            "`title?`, `outputSchema?`, `_meta?` C–; `icons?` D–; `execution?` D only.",
        ),
        (
            "TOOL-3",
            "MUST",
            "E",
            "server",
            TESTED,
            "`tools/list` is answered whenever declared; the set may be empty or change.",
        ),
        (
            "TOOL-4",
            "MUST NOT",
            "E",
            "server",
            TESTED,
            "The set does not depend on connection or on other requests; it MAY depend on the "
            "authorization. (Same for prompts and resources.)",
        ),
        ("TOOL-5", "SHOULD", "E", "server", TESTED, "Deterministic order."),
        (
            "TOOL-6",
            "MUST",
            "D-E",
            "server",
            TESTED,
            "`inputSchema` is a schema object, never `null`; no-parameter tool: "
            '`{"type":"object","additionalProperties":false}` recommended.',
        ),
        (
            "TOOL-7",
            "schema",
            "A-C",
            "server",
            TESTED,
            "`inputSchema` keys known: `type, properties?, input_required_result?`; D adds `$schema?`; E any 2020-12 "
            'keyword beside `type:"object"`.',
        ),
        (
            "TOOL-8",
            "schema",
            "C-D",
            "server",
            TESTED,
            '`outputSchema` root must be `type: "object"`; `structuredContent` is an object.',
        ),
        (
            "TOOL-9",
            "schema",
            "E",
            "server",
            TESTED,
            "`outputSchema` may be any schema; `structuredContent` any JSON value, `null` included (so "
            "absent ≠ null).",
        ),
        (
            "TOOL-10",
            "MUST",
            "C-E",
            "server",
            TESTED,
            "With `outputSchema`, the result has conforming `structuredContent` (reading: except when "
            "`isError`).",
        ),
        (
            "TOOL-11",
            "SHOULD",
            "C-E",
            "client",
            TESTED,
            "Validate `structuredContent` against `outputSchema`.",
        ),
        (
            "TOOL-12",
            "SHOULD",
            "C-E",
            "server",
            TESTED,
            "Also give the JSON as a text block for old clients.",
        ),
        (
            "TOOL-13",
            "schema",
            "A-E",
            "server",
            TESTED,
            "`CallToolResult.content` is required (may be `[]`); `isError?` default false.",
        ),
        (
            "TOOL-14",
            "schema",
            "A-E",
            "client",
            TESTED,
            "`tools/call {name, arguments?: object}`; D `task?`; E `inputResponses?`, `requestState?`.",
        ),
        (
            "TOOL-15",
            "SHOULD",
            "A-E",
            "server",
            TESTED,
            "Errors of the tool itself go in a result with `isError: true`; only finding/dispatch problems "
            "are JSON-RPC errors.",
        ),
        (
            "TOOL-16",
            "schema",
            "D-E",
            "server",
            TESTED,
            'Bad argument values → tool execution error (`isError`); A–C text listed "invalid arguments" as '
            "protocol error `-32602`.",
        ),
        (
            "TOOL-17",
            "schema",
            "A-E",
            "server",
            TESTED,
            "Unknown tool / malformed `tools/call` → `-32602` (given by example in all revisions).",
        ),
        (
            "TOOL-18",
            "SHOULD",
            "D-E",
            "client",
            NOT_OURS("the host application decides what its model sees"),
            "Give execution errors to the model; MAY give protocol errors.",
        ),
        (
            "TOOL-19",
            "SHOULD",
            "D-E",
            "server",
            TESTED,
            "Names 1–128 chars of `[A-Za-z0-9_.-]`, case-sensitive, unique per server. (Do not reject "
            "others.)",
        ),
        (
            "TOOL-20",
            "SHOULD",
            "E",
            "client",
            NOT_OURS("we write no aggregator"),
            "Aggregators disambiguate names, not by `serverInfo.name`.",
        ),
        (
            "TOOL-21",
            "MUST",
            "B-E",
            "client",
            NOT_OURS("trust is the host's judgement; we hand annotations through and act on none"),
            "Annotations are untrusted unless the server is trusted. Defaults: readOnly false, destructive "
            "true, idempotent false, openWorld true.",
        ),
        (
            "TOOL-22",
            "schema",
            "B-E",
            "client",
            TESTED,
            "Display name: `title`, then `annotations.title`, then `name`.",
        ),
        (
            "TOOL-23",
            "SHOULD",
            "A-E",
            "server",
            TESTED,
            "With `listChanged`, send `notifications/tools/list_changed` on change (E: only to listen "
            "streams with `toolsListChanged`).",
        ),
        (
            "TOOL-24",
            "MUST",
            "A-E",
            "server",
            TESTED,
            "Validate inputs, access control, rate limit, sanitise output.",
        ),
        (
            "TOOL-25",
            "SHOULD",
            "A-E",
            "client",
            NOT_OURS(HOST),
            "Confirm sensitive operations, show inputs, validate results, timeouts, audit log; human in the "
            "loop.",
        ),
        (
            "TOOL-26",
            "SHOULD",
            "C-E",
            "server",
            NOT_OURS(
                "because only the author knows what a tool will embed; declaring a resource declares the capability"
            ),
            "A server returning embedded resources declares `resources`.",
        ),
    ),
    # CONT, Content blocks and annotations
    *rows(
        "A-E:server/tools",
        (
            "CONT-1",
            "schema",
            "A-E",
            "both",
            TESTED,
            "text `{type,text}`, image `{type,data(base64),mimeType}`, embedded "
            '`{type:"resource",resource}`; audio from B; `resource_link` from C (= Resource + type).',
        ),
        (
            "CONT-2",
            "schema",
            "A-E",
            "both",
            TESTED,
            "Tool results and prompt messages: A text/image/resource; B +audio; C–E +resource_link.",
        ),
        (
            "CONT-3",
            "schema",
            "A-E",
            "both",
            TESTED,
            "Sampling content: A text/image; B–C +audio; D–E +tool_use/tool_result and arrays. No resources "
            "or links.",
        ),
        ("CONT-4", "MUST", "A-E", "both", TESTED, "Binary data is base64 with a valid MIME type."),
        (
            "CONT-5",
            "schema",
            "A-E",
            "both",
            TESTED,
            "Annotations `audience?` (user/assistant), `priority?` 0..1; `lastModified?` ISO 8601 from C.",
        ),
        (
            "CONT-6",
            "schema",
            "A-E",
            "both",
            TESTED,
            "Resource contents have `uri`, `mimeType?` and exactly one of `text` / `blob`.",
        ),
        (
            "CONT-7",
            "reading",
            "A-E",
            "receiver",
            TESTED,
            "A content type not defined in the negotiated revision must not be sent: convert or drop (e.g. "
            "`resource_link` → text for A/B, audio → not for A).",
        ),
        (
            "CONT-8",
            "MUST",
            "A-E",
            "server",
            TESTED,
            "In prompts an embedded resource has a valid URI, the fitting MIME type and text or blob.",
        ),
    ),
    # RES, Resources
    *rows(
        "A-E:server/resources",
        (
            "RES-1",
            "MUST",
            "A-E",
            "server",
            TESTED,
            "A server with resources declares `resources` (`subscribe?`, `listChanged?` independent).",
        ),
        (
            "RES-2",
            "schema",
            "A-E",
            "server",
            TESTED,
            "Resource `uri, name` required; `description?, mimeType?, annotations?, size?`; `title?, "
            "_meta?` C–; `icons?` D–. Template has `uriTemplate` (RFC 6570).",
        ),
        (
            "RES-3",
            "schema",
            "A-E",
            "client",
            TESTED,
            "`resources/read {uri}` → `contents[]` (≥1 entries possible); E +MRTR params, + cache hints.",
        ),
        (
            "RES-4",
            "schema",
            "A-D",
            "client",
            TESTED,
            "`resources/subscribe {uri}`, `resources/unsubscribe {uri}` → `{}`; need `subscribe`.",
        ),
        (
            "RES-5",
            "SHOULD",
            "A-D",
            "server",
            TESTED,
            "`notifications/resources/updated {uri}` only to subscribers; may be a sub-resource.",
        ),
        (
            "RES-6",
            "schema",
            "E",
            "server",
            TESTED,
            "subscribe/unsubscribe → `-32601`; replaced by listen `resourceSubscriptions`.",
        ),
        (
            "RES-7",
            "SHOULD",
            "A-D",
            "server",
            TESTED,
            "Not found → `-32002` (SHOULD), internal `-32603`.",
        ),
        (
            "RES-8",
            "MUST",
            "E",
            "server",
            TESTED,
            "Not found → `-32602`; never `-32002`; clients SHOULD still accept `-32002`.",
        ),
        ("RES-9", "MUST NOT", "E", "server", TESTED, 'Empty `contents` does not mean "not found".'),
        (
            "RES-10",
            "SHOULD",
            "A-E",
            "server",
            NOT_OURS(AUTHOR),
            "`https://` only if the client can fetch it itself; `file://` need not be a real file.",
        ),
        ("RES-11", "MUST", "C-E", "server", TESTED, "Custom schemes follow RFC 3986."),
        (
            "RES-12",
            "MUST",
            "A-E",
            "server",
            TESTED,
            "Validate URIs; encode binary; E also: sanitise `file://` paths against traversal.",
        ),
        (
            "RES-13",
            "SHOULD",
            "A-E",
            "server",
            NOT_OURS(AUTHOR),
            "Access control and permission checks before operations.",
        ),
        (
            "RES-14",
            "SHOULD",
            "A-E",
            "server",
            TESTED,
            "`notifications/resources/list_changed` if declared.",
        ),
    ),
    # PRM, Prompts
    *rows(
        "A-E:server/prompts",
        ("PRM-1", "MUST", "A-E", "server", TESTED, "A server with prompts declares `prompts`."),
        (
            "PRM-2",
            "schema",
            "A-E",
            "client",
            TESTED,
            "`prompts/get {name, arguments?: map<string,string>}`: argument values are strings only.",
        ),
        (
            "PRM-3",
            "schema",
            "A-E",
            "server",
            TESTED,
            "Result `{description?, messages[{role, content}]}`: one content block per message (not an "
            "array).",
        ),
        (
            "PRM-4",
            "SHOULD",
            "A-E",
            "server",
            TESTED,
            "Unknown name / missing required argument → `-32602`; internal `-32603`.",
        ),
        (
            "PRM-5",
            "SHOULD",
            "A-E",
            "server",
            TESTED,
            "Validate arguments; `notifications/prompts/list_changed` if declared.",
        ),
        (
            "PRM-6",
            "MUST",
            "A-E",
            "both",
            NOT_OURS("what a prompt may hold is for its author and the host to judge"),
            "Validate prompt input and output against injection.",
        ),
        ("PRM-7", "SHOULD", "A-E", "client", TESTED, "Handle pagination of prompts."),
    ),
    # SAMP, Sampling
    *rows(
        "A-E:client/sampling",
        (
            "SAMP-1",
            "MUST",
            "A-E",
            "client",
            TESTED,
            "A supporting client declares `sampling` (E: on each request).",
        ),
        (
            "SAMP-2",
            "schema",
            "A-E",
            "server",
            TESTED,
            "Params: `messages`, `maxTokens` (required integer), `modelPreferences?`, `systemPrompt?`, "
            "`includeContext?`, `temperature?`, `stopSequences?`, `metadata?`; D–E `tools?`, `toolChoice?`; "
            "D `task?`.",
        ),
        (
            "SAMP-3",
            "schema",
            "A-E",
            "client",
            TESTED,
            "Result `role, content, model, stopReason?` (open string: endTurn, stopSequence, maxTokens; D–E "
            "toolUse).",
        ),
        (
            "SAMP-4",
            "schema",
            "D-E",
            "both",
            TESTED,
            "`content` is one block or an array, in messages and results; a single object stays legal.",
        ),
        (
            "SAMP-5",
            "MUST NOT",
            "D-E",
            "server",
            TESTED,
            "`tools`/`toolChoice` only if the client declared `sampling.tools`; client MUST return an error "
            "otherwise.",
        ),
        (
            "SAMP-6",
            "SHOULD NOT",
            "D-E",
            "server",
            TESTED,
            "`includeContext` `thisServer`/`allServers` only with `sampling.context`; deprecated; default "
            "`none`.",
        ),
        (
            "SAMP-7",
            "MUST",
            "D-E",
            "both",
            TESTED,
            "A user message with any `tool_result` has only `tool_result` blocks.",
        ),
        (
            "SAMP-8",
            "MUST",
            "D-E",
            "both",
            TESTED,
            "An assistant message with `tool_use` blocks is followed directly by a user message whose "
            "`tool_result`s match all ids one to one.",
        ),
        (
            "SAMP-9",
            "MUST",
            "D-E",
            "server",
            TESTED,
            "`toolUseId` matches a previous `tool_use` id.",
        ),
        (
            "SAMP-10",
            "MUST",
            "D-E",
            "client",
            NOT_OURS(MODEL),
            "`toolChoice.mode` `input_required_result` → at least one tool use; `none` → none; default `auto`.",
        ),
        ("SAMP-11", "SHOULD", "D", "client", TESTED, "Missing result / mixed content → `-32602`."),
        (
            "SAMP-12",
            "SHOULD",
            "A-D",
            "client",
            TESTED,
            "User rejection → JSON-RPC error code `-1`.",
        ),
        (
            "SAMP-13",
            "reading",
            "E",
            "client",
            TESTED,
            "No error channel: on rejection simply no retry.",
        ),
        (
            "SAMP-14",
            "MUST",
            "A-E",
            "client",
            NOT_OURS(MODEL),
            "Model hints are evaluated in order, as substrings; hints SHOULD outrank priorities. Priorities "
            "are 0..1.",
        ),
        (
            "SAMP-15",
            "MUST",
            "E",
            "client",
            NOT_OURS(MODEL),
            "`maxTokens` is respected; MAY sample fewer. Other parameters may be changed or ignored.",
        ),
        (
            "SAMP-16",
            "SHOULD",
            "D-E",
            "both",
            TESTED,
            "Iteration limit for tool loops; keep `_meta` of tool_use/tool_result in follow-ups.",
        ),
        (
            "SAMP-17",
            "SHOULD",
            "A-E",
            "client",
            NOT_OURS(MODEL),
            "Human in the loop, rate limit, content validation.",
        ),
        (
            "SAMP-18",
            "SHOULD NOT",
            "E",
            "both",
            TESTED,
            "List of messages is not kept between separate requests.",
        ),
        ("SAMP-19", "MUST", "A-E", "both", NOT_OURS(MODEL), "Sensitive data handled properly."),
        ("SAMP-20", "SHOULD NOT", "E", "both", NOT_OURS(ADVICE), "Feature deprecated in E."),
    ),
    # ELIC, Elicitation
    *rows(
        "C-E:client/elicitation",
        (
            "ELIC-1",
            "MUST",
            "C-E",
            "client",
            TESTED,
            "A supporting client declares `elicitation` (E: on each request).",
        ),
        (
            "ELIC-2",
            "MUST",
            "D-E",
            "client",
            TESTED,
            "Declaring means at least one of form/url; `{}` = form only.",
        ),
        (
            "ELIC-3",
            "MUST NOT",
            "D-E",
            "server",
            TESTED,
            "No mode the client did not declare. D: client MUST answer `-32602` to it.",
        ),
        (
            "ELIC-4",
            "schema",
            "C",
            "server",
            TESTED,
            "Params `{message, requestedSchema}`; no `mode`.",
        ),
        (
            "ELIC-5",
            "MUST",
            "D-E",
            "server",
            TESTED,
            "`message` always; `mode` required for url, optional for form; client MUST read a missing "
            "`mode` as form.",
        ),
        (
            "ELIC-6",
            "MUST",
            "C-E",
            "server",
            TESTED,
            'Form schema: flat object, `type:"object"`, `properties` of primitives, `input_required_result?`; E/D '
            "`$schema?`. No nesting, no arrays of objects.",
        ),
        (
            "ELIC-7",
            "schema",
            "C",
            "server",
            TESTED,
            "Primitives: string (`minLength,maxLength,format` email/uri/date/date-time), number/integer "
            "(`minimum,maximum`), boolean (`default`), enum (`enum`,`enumNames?`). Only boolean has "
            "`default`.",
        ),
        (
            "ELIC-8",
            "schema",
            "D-E",
            "server",
            TESTED,
            "`default` on all; enum kinds: single untitled (`enum`), single titled "
            "(`oneOf[{const,title}]`), multi untitled (`array`/`items.enum`), multi titled (`items.anyOf`), "
            "legacy `enumNames`. `minItems/maxItems` on multi.",
        ),
        (
            "ELIC-9",
            "schema",
            "C-E",
            "client",
            TESTED,
            "Result `action` accept/decline/cancel; `content` (map to string/number/boolean; D–E also "
            "string[]) only for accepted forms; omitted for URL mode.",
        ),
        (
            "ELIC-10",
            "SHOULD",
            "C-E",
            "both",
            TESTED,
            "Both sides validate content against the schema.",
        ),
        ("ELIC-11", "SHOULD", "D-E", "client", TESTED, "Pre-fill defaults."),
        (
            "ELIC-12",
            "MUST NOT",
            "C-E",
            "server",
            NOT_OURS(AUTHOR),
            "No secrets via (form) elicitation; D–E: secrets MUST use URL mode.",
        ),
        (
            "ELIC-13",
            "MUST",
            "D-E",
            "server",
            TESTED,
            "URL mode: valid `url`; D also `elicitationId` (unique per server, opaque to the client). E has "
            "no `elicitationId`.",
        ),
        (
            "ELIC-14",
            "reading",
            "D-E",
            "both",
            TESTED,
            "`accept` in URL mode is consent to open, not completion.",
        ),
        (
            "ELIC-15",
            "MAY",
            "D",
            "server",
            TESTED,
            "`notifications/elicitation/complete {elicitationId}` to the client that was asked only; client "
            "MUST ignore unknown/finished ids, MAY use it to retry.",
        ),
        (
            "ELIC-16",
            "MUST",
            "D",
            "server",
            TESTED,
            "`-32042` only if URL elicitation is needed; `data.elicitations` non-empty list, all URL mode "
            "with `elicitationId`.",
        ),
        (
            "ELIC-17",
            "MUST NOT",
            "E",
            "server",
            TESTED,
            "`-32042`, `notifications/elicitation/complete`, `elicitationId` are not used.",
        ),
        (
            "ELIC-18",
            "MUST",
            "D-E",
            "client",
            TESTED,
            "URL: no prefetch, no opening without consent, show the full URL, open in a way neither client "
            "nor LLM can inspect. SHOULD highlight the domain, warn on Punycode, not make links in other "
            "fields clickable.",
        ),
        (
            "ELIC-19",
            "MUST NOT",
            "D-E",
            "server",
            NOT_OURS(AUTHOR),
            "URL has no user data or credentials and is not pre-authenticated; SHOULD be HTTPS; no "
            "clickable URLs in form fields.",
        ),
        (
            "ELIC-20",
            "MUST",
            "D-E",
            "server",
            TESTED,
            "Bind elicitation (and stored state) to client and user identity; D: not to session ids alone; "
            "verify that the user opening the URL is the one who started; do not trust client-given "
            "identity.",
        ),
        (
            "ELIC-21",
            "MUST NOT",
            "D-E",
            "server",
            NOT_OURS(AUTHOR),
            "URL mode does not replace MCP authorization; third-party credentials never pass the client; "
            "client's token not used for third parties.",
        ),
        (
            "ELIC-22",
            "MUST",
            "D-E",
            "client",
            TESTED,
            "UI names the server, offers decline and cancel, form answers reviewable. (C: SHOULD.)",
        ),
        ("ELIC-23", "MUST", "E", "server", TESTED, "Handle decline, cancel, client failure."),
        ("ELIC-24", "SHOULD", "C-D", "client", NOT_OURS(HOST), "Rate limiting."),
    ),
    # ROOT, Roots
    *rows(
        "A-E:client/roots",
        (
            "ROOT-1",
            "MUST",
            "A-E",
            "client",
            TESTED,
            "A supporting client declares `roots` (`listChanged` A–D only; E per request).",
        ),
        (
            "ROOT-2",
            "schema",
            "A-E",
            "server",
            TESTED,
            "`roots/list` → `{roots: [{uri, name?}]}`; `_meta?` on Root C–.",
        ),
        ("ROOT-3", "MUST", "A-E", "client", TESTED, "Root URIs are `file://`."),
        (
            "ROOT-4",
            "MUST",
            "A-D",
            "client",
            TESTED,
            "With `listChanged`, send `notifications/roots/list_changed` on change. Gone in E.",
        ),
        ("ROOT-5", "SHOULD", "A-D", "client", TESTED, "Unsupported → `-32601`; internal `-32603`."),
        (
            "ROOT-6",
            "MUST",
            "A-E",
            "client",
            NOT_OURS("the host application chooses which roots to give"),
            "Only permitted roots, validated against traversal, access-controlled, monitored.",
        ),
        (
            "ROOT-7",
            "SHOULD",
            "A-E",
            "server",
            NOT_OURS(AUTHOR),
            "Respect root boundaries, cope with vanishing roots, check capability first.",
        ),
        (
            "ROOT-8",
            "SHOULD NOT",
            "E",
            "both",
            NOT_OURS(ADVICE),
            "Feature deprecated in E; roots are guidance, not access control.",
        ),
    ),
    # STDIO, stdio transport
    *rows(
        "A-D:basic/transports E:basic/transports/stdio",
        (
            "STDIO-1",
            "MUST",
            "A-E",
            "both",
            TESTED,
            "One JSON-RPC message per line; a message contains no newline. (B: a line may be a batch "
            "array.)",
        ),
        (
            "STDIO-2",
            "MUST NOT",
            "A-E",
            "server",
            TESTED,
            "stdout carries nothing but MCP messages.",
        ),
        ("STDIO-3", "MUST NOT", "A-E", "client", TESTED, "stdin carries nothing but MCP messages."),
        (
            "STDIO-4",
            "MAY",
            "A-E",
            "server",
            TESTED,
            "stderr free UTF-8 logging; client may capture/forward/ignore; D–E: SHOULD NOT read it as "
            "error.",
        ),
        (
            "STDIO-5",
            "schema",
            "A-E",
            "client",
            TESTED,
            "Client launches the server as a subprocess.",
        ),
        (
            "STDIO-6",
            "reading",
            "A-E",
            "receiver",
            TESTED,
            "A line that is not JSON: answer `-32700` without id (server) or report locally (client); do "
            "not die. Blank lines and `\\r\\n` tolerated.",
        ),
        (
            "STDIO-7",
            "MUST NOT",
            "E",
            "server",
            TESTED,
            "No JSON-RPC requests on stdout; MRTR instead.",
        ),
        ("STDIO-8", "MUST NOT", "E", "client", TESTED, "No JSON-RPC responses on stdin."),
        ("STDIO-9", "schema", "E", "client", TESTED, "All metadata is in the body."),
        (
            "STDIO-10",
            "SHOULD",
            "E",
            "client",
            TESTED,
            "Shutdown: close stdin, wait, then force (SIGTERM→SIGKILL; Windows TerminateProcess/Job "
            "objects).",
        ),
        ("STDIO-11", "SHOULD", "E", "server", TESTED, "Exit promptly at stdin EOF."),
        (
            "STDIO-12",
            "SHOULD",
            "E",
            "client",
            NOT_OURS("the host gets ConnectionLost and decides whether to restart the server"),
            "Restart a server that died; in-flight requests are lost and may be retried; listen re-sent.",
        ),
        ("STDIO-13", "SHOULD", "A-D", "client", TESTED, "Clients support stdio whenever possible."),
        (
            "STDIO-14",
            "SHOULD",
            "E",
            "both",
            TESTED,
            "Custom transports over byte streams reuse this framing.",
        ),
    ),
    # HTTP, Rules common to HTTP transports
    *rows(
        "A-D:basic/transports E:basic/transports/streamable-http",
        (
            "HTTP-1",
            "MUST",
            "A-E",
            "server",
            TESTED,
            "Validate `Origin` on every incoming connection (DNS rebinding).",
        ),
        (
            "HTTP-2",
            "MUST",
            "D-E",
            "server",
            TESTED,
            "Invalid `Origin` → 403 (body MAY be a JSON-RPC error without id). (A–C name no status.) Absent "
            "Origin is acceptable.",
        ),
        (
            "HTTP-3",
            "SHOULD",
            "A-E",
            "server",
            TESTED,
            "Bind to 127.0.0.1 when local; authenticate.",
        ),
        (
            "HTTP-4",
            "MUST",
            "B-E",
            "server",
            TESTED,
            "One MCP endpoint path; B–D supports POST and GET; E POST.",
        ),
        ("HTTP-5", "MUST", "B-E", "client", TESTED, "Every message is its own POST."),
        (
            "HTTP-6",
            "MUST",
            "B-E",
            "client",
            TESTED,
            "POST `Accept` lists both `application/json` and `text/event-stream`.",
        ),
        (
            "HTTP-7",
            "reading",
            "B-E",
            "server",
            TESTED,
            "Unacceptable `Accept` → 406; wrong `Content-Type` → 415; unsupported method → 405 with `Allow` "
            "(statuses not given by MCP except 405).",
        ),
        (
            "HTTP-8",
            "MUST",
            "B-E",
            "server",
            TESTED,
            "A request is answered by `application/json` (one object) or `text/event-stream`; the client "
            "supports both.",
        ),
        (
            "HTTP-9",
            "MUST",
            "B-E",
            "server",
            TESTED,
            "Accepted notification (B–D also response) POST → 202, empty body; refused → 4xx, MAY have a "
            "JSON-RPC error without id.",
        ),
        (
            "HTTP-10",
            "reading",
            "B-E",
            "server",
            TESTED,
            "JSON-RPC messages on SSE are the event `data`; SSE field rules per WHATWG (multi-line data "
            "joined by LF, comments ignored, BOM, CR/LF/CRLF).",
        ),
        (
            "HTTP-11",
            "reading",
            "B-E",
            "client",
            TESTED,
            "Default event type (`message` or none) carries messages; other event types ignored. An event "
            "with empty `data` carries no message (D priming event).",
        ),
        (
            "HTTP-12",
            "reading",
            "B-E",
            "client",
            TESTED,
            "A JSON-RPC error object may come with a 4xx/5xx status; parse the body before judging by "
            "status.",
        ),
    ),
    # SHL, Streamable HTTP of the stateful era (2025-03-26 … 2025-11-25)
    *rows(
        "B-D:basic/transports",
        (
            "SHL-1",
            "schema",
            "B",
            "client",
            TESTED,
            "POST body: one message, or a batch of requests/notifications, or a batch of responses.",
        ),
        (
            "SHL-2",
            "schema",
            "C-D",
            "client",
            TESTED,
            "POST body: exactly one request, notification or response.",
        ),
        (
            "SHL-3",
            "SHOULD",
            "B-D",
            "server",
            TESTED,
            "POST SSE stream eventually has the response to each request of the POST, then is "
            "closed/terminated.",
        ),
        (
            "SHL-4",
            "SHOULD",
            "B-D",
            "server",
            TESTED,
            "Requests/notifications sent on a POST stream relate to that client request (SEP-2260: server "
            "requests other than ping MUST be tied to a client request).",
        ),
        (
            "SHL-5",
            "SHOULD NOT",
            "B-C",
            "server",
            TESTED,
            "Do not close the POST stream before all responses, unless the session ends.",
        ),
        (
            "SHL-6",
            "SHOULD",
            "D",
            "server",
            TESTED,
            "Start of stream: event with an id and empty data, so the client can reconnect.",
        ),
        (
            "SHL-7",
            "MAY",
            "D",
            "server",
            TESTED,
            "After an id was sent, the server may close the connection without ending the stream; SHOULD "
            "send `retry:` first.",
        ),
        (
            "SHL-8",
            "MUST",
            "D",
            "client",
            TESTED,
            "Respect `retry` (ms) before reconnecting; SHOULD reconnect (poll).",
        ),
        ("SHL-9", "SHOULD NOT", "B-D", "server", TESTED, "A disconnect is not a cancellation."),
        (
            "SHL-10",
            "MAY",
            "B-D",
            "client",
            TESTED,
            "GET opens a server→client stream; MUST send `Accept: text/event-stream`.",
        ),
        ("SHL-11", "MUST", "B-D", "server", TESTED, "GET → `text/event-stream` or 405."),
        (
            "SHL-12",
            "SHOULD",
            "B-D",
            "server",
            TESTED,
            "GET stream messages are unrelated to running requests.",
        ),
        (
            "SHL-13",
            "MUST NOT",
            "B-D",
            "server",
            TESTED,
            "No responses on the GET stream except when resuming a POST stream.",
        ),
        ("SHL-14", "MAY", "B-D", "both", TESTED, "Several streams at once."),
        (
            "SHL-15",
            "MUST NOT",
            "B-D",
            "server",
            TESTED,
            "A message goes to exactly one stream; no broadcast.",
        ),
        (
            "SHL-16",
            "MUST",
            "B-D",
            "server",
            TESTED,
            "Event ids, if used, are unique across all streams of the session (or client).",
        ),
        ("SHL-17", "SHOULD", "D", "server", TESTED, "Event ids identify their stream."),
        (
            "SHL-18",
            "SHOULD",
            "B-D",
            "client",
            TESTED,
            "Resume by GET with `Last-Event-ID` (also for a POST stream).",
        ),
        (
            "SHL-19",
            "MUST NOT",
            "B-D",
            "server",
            TESTED,
            "Replay only messages of the broken stream.",
        ),
        (
            "SHL-20",
            "MAY",
            "B-D",
            "server",
            TESTED,
            "Session id in `Mcp-Session-Id` (D spelling `MCP-Session-Id`; case-insensitive) on the "
            "InitializeResult response only.",
        ),
        (
            "SHL-21",
            "MUST",
            "B-D",
            "server",
            TESTED,
            "Session id is visible ASCII 0x21–0x7E; SHOULD be unguessable (best practices: MUST be "
            "non-deterministic).",
        ),
        (
            "SHL-22",
            "MUST",
            "B-D",
            "client",
            TESTED,
            "If given, send it on every later request (POST, GET, DELETE).",
        ),
        (
            "SHL-23",
            "SHOULD",
            "B-D",
            "server",
            TESTED,
            "Missing where required → 400 (except initialize).",
        ),
        ("SHL-24", "MUST", "B-D", "server", TESTED, "Terminated session → 404."),
        (
            "SHL-25",
            "MUST",
            "B-D",
            "client",
            TESTED,
            "404 with a session id sent → start anew with `initialize` without the id. (A 404 without a "
            "session id is an ordinary failure / wrong URL.)",
        ),
        (
            "SHL-26",
            "SHOULD",
            "B-D",
            "client",
            TESTED,
            "DELETE with the id when done; server MAY 405.",
        ),
        (
            "SHL-27",
            "MUST NOT",
            "B-D",
            "server",
            TESTED,
            "Sessions are not authentication; SHOULD be bound to the user; a foreign principal is treated "
            "as unknown session.",
        ),
        (
            "SHL-28",
            "MUST",
            "C-D",
            "client",
            TESTED,
            "`MCP-Protocol-Version: <negotiated>` on all requests after initialize (also "
            "`notifications/initialized`, GET, DELETE). SHOULD be the negotiated version.",
        ),
        ("SHL-29", "MUST", "C-D", "server", TESTED, "Invalid/unsupported value → 400."),
        (
            "SHL-30",
            "SHOULD",
            "C-D",
            "server",
            TESTED,
            "Header absent and version not otherwise known → assume 2025-03-26.",
        ),
        (
            "SHL-31",
            "reading",
            "B",
            "client",
            TESTED,
            "B defines no such header on MCP requests (only for OAuth metadata); sending it is harmless.",
        ),
        (
            "SHL-32",
            "reading",
            "C-D",
            "server",
            TESTED,
            "Header present but differing from the session's negotiated version: 400 is safe; some SDKs "
            "accept any supported value.",
        ),
        ("SHL-33", "MUST", "D", "client", TESTED, "Session id handled securely."),
    ),
    # SHM, Streamable HTTP of the stateless era (2026-07-28)
    *rows(
        "E:basic/transports/streamable-http",
        ("SHM-1", "MUST", "E", "client", TESTED, "POST body: one request or notification."),
        (
            "SHM-2",
            "MUST",
            "E",
            "client",
            TESTED,
            "`MCP-Protocol-Version` on every POST, equal to `_meta…/protocolVersion`.",
        ),
        ("SHM-3", "MUST", "E", "server", TESTED, "Missing or differing → 400 + `-32020`."),
        (
            "SHM-4",
            "MUST",
            "E",
            "server",
            TESTED,
            "Version unsupported (header and body agree) → 400 + `-32022`.",
        ),
        ("SHM-5", "MUST", "E", "server", TESTED, "Unimplemented method → 404 + `-32601` body."),
        (
            "SHM-6",
            "MUST",
            "E",
            "server",
            TESTED,
            "`-32020`, `-32021`, `-32022` and missing `_meta` keys (`-32602`) → 400. Status for other "
            "errors is not given (200 and 400 both seen; clients read the body).",
        ),
        (
            "SHM-7",
            "MUST",
            "E",
            "server",
            TESTED,
            "Error responses keep the request id. These statuses require that no SSE has been started: "
            "decide before committing to `text/event-stream`.",
        ),
        (
            "SHM-8",
            "MUST",
            "E",
            "server",
            TESTED,
            "Notifications on a response stream relate to its request.",
        ),
        ("SHM-9", "MUST NOT", "E", "server", TESTED, "No requests on any stream."),
        ("SHM-10", "SHOULD", "E", "server", TESTED, "The final response ends the stream."),
        (
            "SHM-11",
            "MUST",
            "E",
            "server",
            TESTED,
            "Stream closed by client = cancelled; stop soon; no further message.",
        ),
        (
            "SHM-12",
            "MUST",
            "E",
            "client",
            TESTED,
            "A broken response stream loses the request; re-issue with a new id (changelog).",
        ),
        (
            "SHM-13",
            "schema",
            "E",
            "both",
            TESTED,
            "No resumption: no event ids, `Last-Event-ID` ignored.",
        ),
        (
            "SHM-14",
            "SHOULD",
            "E",
            "server",
            TESTED,
            "GET/DELETE → 405; `Mcp-Session-Id` ignored, never minted or echoed. (Modern-only server.)",
        ),
        (
            "SHM-15",
            "SHOULD",
            "E",
            "server",
            TESTED,
            "`X-Accel-Buffering: no` on SSE; comment keep-alives encouraged.",
        ),
        ("SHM-16", "reading", "E", "client", TESTED, "SSE comments are ignored."),
        (
            "SHM-17",
            "MAY",
            "E",
            "server",
            TESTED,
            "A server that also supports <C clients may treat a request without version header as "
            "2025-03-26; otherwise MUST reject.",
        ),
        (
            "SHM-18",
            "reading",
            "E",
            "server",
            TESTED,
            "Notification POSTs: header rules undefined in E; accept with 202 and ignore.",
        ),
        (
            "SHM-19",
            "reading",
            "E",
            "server",
            TESTED,
            "Order of checks that satisfies the conformance suite: Origin 403 → method 405 → Accept 406 → "
            "parse `-32700` → shape `-32600` → `_meta` present `-32602` → headers = body `-32020` → version "
            "`-32022` → method `-32601`/404 → Mcp-Param headers `-32020` → params `-32602` → capability "
            "`-32021`.",
        ),
    ),
    # HDR, Mirrored headers, `x-mcp-header`
    *rows(
        "E:basic/transports/streamable-http",
        ("HDR-1", "MUST", "E", "client", TESTED, "`Mcp-Method` = `method` on all requests."),
        (
            "HDR-2",
            "MUST",
            "E",
            "client",
            TESTED,
            "`Mcp-Name` = `params.name` (`tools/call`, `prompts/get`) or `params.uri` (`resources/read`); "
            "tasks extension: `params.taskId`.",
        ),
        (
            "HDR-3",
            "MUST",
            "E",
            "server",
            TESTED,
            "Missing, differing or malformed mirrored header → 400 + `-32020`.",
        ),
        (
            "HDR-4",
            "MUST",
            "E",
            "both",
            TESTED,
            "Header names compared case-insensitively; values case-sensitively.",
        ),
        (
            "HDR-5",
            "MUST",
            "E",
            "client",
            TESTED,
            "Value not safe as plain ASCII (non-ASCII, control, leading/trailing space/tab; also an ASCII "
            "value that itself looks like `=?base64?…?=`) → `=?base64?<base64 of UTF-8>?=`, for `Mcp-Name` "
            "and `Mcp-Param-*`. Markers lowercase, exact.",
        ),
        ("HDR-6", "MUST", "E", "server", TESTED, "Decode before comparing."),
        (
            "HDR-7",
            "MUST",
            "E",
            "client",
            TESTED,
            "HTTP clients support `x-mcp-header`: `Mcp-Param-{value}` for each annotated property with a "
            "value.",
        ),
        (
            "HDR-8",
            "MUST",
            "E",
            "client",
            TESTED,
            "Value: string as is; integer decimal; boolean `true`/`false`.",
        ),
        (
            "HDR-9",
            "MUST",
            "E",
            "client",
            TESTED,
            "Argument absent or `null` → no header. Server MUST NOT expect it.",
        ),
        (
            "HDR-10",
            "MUST",
            "E",
            "server",
            TESTED,
            "Value in the body but header missing → reject (`-32020`).",
        ),
        (
            "HDR-11",
            "MUST",
            "E",
            "server",
            TESTED,
            "A server reading the body validates recognised param headers; invalid characters → reject; "
            "SHOULD compare integers numerically (`42.0` = `42`).",
        ),
        (
            "HDR-12",
            "MUST",
            "E",
            "server",
            TESTED,
            "Annotation constraints: non-empty; RFC 9110 token; no control chars; unique ignoring case "
            "within the schema; only on `string`/`integer`/`boolean` (never `number`); integers within "
            "±(2^53-1); reachable from the root through `properties` only (not `items`, "
            "`oneOf/anyOf/allOf/not`, `if/then/else`, `$ref`).",
        ),
        (
            "HDR-13",
            "MUST",
            "E",
            "client",
            TESTED,
            "HTTP client drops a tool violating any of these from `tools/list` results (other tools stay); "
            "SHOULD log name and reason. Other transports MAY ignore annotations.",
        ),
        (
            "HDR-14",
            "SHOULD",
            "E",
            "client",
            TESTED,
            "On `-32020` for params: refresh `tools/list`, retry with right headers.",
        ),
        ("HDR-15", "SHOULD NOT", "E", "server", NOT_OURS(AUTHOR), "Do not annotate secrets."),
        (
            "HDR-16",
            "MUST",
            "E",
            "intermediary",
            NOT_OURS("we write no intermediary"),
            "Intermediaries forward unknown `Mcp-Param-*`; answer validation failures with a 4xx; SHOULD "
            "check the version header before trusting mirrored values.",
        ),
        (
            "HDR-17",
            "reading",
            "E",
            "server",
            TESTED,
            "A duplicated mirrored header is a mismatch (SDK practice).",
        ),
        (
            "HDR-18",
            "reading",
            "E",
            "server",
            TESTED,
            "A body with a mirrored member twice (`params.name`, `params.uri`) is refused: readers differ "
            "in which of the two counts. `name` beside `uri` is no duplicate.",
        ),
    ),
    # SSE, HTTP+SSE of 2024-11-05
    *rows(
        "A:basic/transports E:deprecated",
        ("SSE-1", "MUST", "A", "server", TESTED, "Two endpoints: SSE (GET) and POST."),
        (
            "SSE-2",
            "MUST",
            "A",
            "server",
            TESTED,
            "On connect the first event is `endpoint` with the POST URI (relative or absolute).",
        ),
        ("SSE-3", "MUST", "A", "client", TESTED, "All client messages are POSTed to that URI."),
        (
            "SSE-4",
            "schema",
            "A",
            "server",
            TESTED,
            "Server messages are `message` events with JSON data, all on the one SSE stream; POST answers "
            "carry no MCP payload (202 by custom).",
        ),
        (
            "SSE-5",
            "reading",
            "A",
            "client",
            TESTED,
            "Resolve the endpoint URI against the SSE URL; refuse another origin.",
        ),
        (
            "SSE-6",
            "reading",
            "A",
            "both",
            TESTED,
            "Closing the SSE stream ends the connection; the session id is usually a query parameter of the "
            "endpoint.",
        ),
        (
            "SSE-7",
            "SHOULD NOT",
            "E",
            "both",
            NOT_OURS(ADVICE),
            "Not newly adopted (deprecated since B).",
        ),
    ),
    # PROBE, Era and transport detection
    *rows(
        "B-D:basic/transports E:basic/versioning",
        (
            "PROBE-1",
            "SHOULD",
            "E",
            "client",
            TESTED,
            "stdio, dual-era: first message `server/discover` with the preferred modern version.",
        ),
        (
            "PROBE-2",
            "MUST",
            "E",
            "client",
            TESTED,
            "stdio: fallback to `initialize` on any error that is not a recognised modern one, or on "
            "timeout; MUST NOT key on one code.",
        ),
        (
            "PROBE-3",
            "MUST NOT",
            "E",
            "client",
            TESTED,
            "No fallback on a recognised modern error (`-32022` etc.); retry with a listed version.",
        ),
        (
            "PROBE-4",
            "SHOULD",
            "E",
            "client",
            TESTED,
            "Modern-only stdio client probes too, to fail cleanly.",
        ),
        (
            "PROBE-5",
            "SHOULD",
            "E",
            "client",
            TESTED,
            "HTTP, dual-era: send a modern request; on 400 look at the body: recognised modern error → "
            "correct and retry; empty/other → `initialize`.",
        ),
        (
            "PROBE-6",
            "SHOULD",
            "B-D",
            "client",
            TESTED,
            "HTTP: POST `initialize`; on failure (B–C any 4xx; D 400/404/405) GET the URL and expect "
            "`endpoint` → HTTP+SSE.",
        ),
        (
            "PROBE-7",
            "SHOULD",
            "E",
            "client",
            TESTED,
            "The same from E: POST; on 400/404/405 without a modern error body → (initialize) → GET for "
            "`endpoint`.",
        ),
        (
            "PROBE-8",
            "SHOULD",
            "B-E",
            "server",
            TESTED,
            "To serve A clients: keep the SSE and POST endpoints beside the MCP endpoint.",
        ),
        (
            "PROBE-9",
            "reading",
            "E",
            "client",
            TESTED,
            "401/403, 5xx, DNS/TLS/connection errors are no era verdict. 404 with a `-32601` body is "
            "modern.",
        ),
        (
            "PROBE-10",
            "reading",
            "E",
            "client",
            TESTED,
            "Recognised modern error = `-32020`, `-32021`, `-32022` (for HTTP also `-32601` with 404 and "
            "JSON-RPC body). `-32601`/`-32602` on stdio mean legacy.",
        ),
        (
            "PROBE-11",
            "reading",
            "E",
            "server",
            TESTED,
            "Dual-era HTTP dispatch: modern version header or modern `_meta` → E; otherwise (`initialize`, "
            "session id, legacy/absent version header) → A–D.",
        ),
        (
            "PROBE-12",
            "reading",
            "E",
            "server",
            TESTED,
            "Dual-era stdio dispatch: the first request decides; a `server/discover` probe alone should not "
            "exclude a following `initialize`.",
        ),
    ),
    # ERR, Error codes per revision
    *rows(
        "A:basic/messages B-E:basic",
        (
            "ERR-1",
            "schema",
            "A-E",
            "both",
            TESTED,
            "`-32700`, `-32600`, `-32601`, `-32602`, `-32603` as in JSON-RPC 2.0.",
        ),
        ("ERR-2", "schema", "A-D", "server", TESTED, "`-32002` resource not found."),
        ("ERR-3", "schema", "D", "server", TESTED, "`-32042` URL elicitation required."),
        ("ERR-4", "schema", "A-D", "client", TESTED, "`-1` user rejected sampling."),
        ("ERR-5", "MUST NOT", "E", "server", TESTED, "`-32002` and `-32042` are not emitted."),
        (
            "ERR-6",
            "schema",
            "E",
            "server",
            TESTED,
            "`-32020` HeaderMismatch, `-32021` MissingRequiredClientCapability "
            "(`data.requiredCapabilities`), `-32022` UnsupportedProtocolVersion (`data.supported`, "
            "`data.requested`).",
        ),
        (
            "ERR-7",
            "MUST NOT",
            "E",
            "both",
            TESTED,
            "No other code in -32020…-32099 is emitted; defined ones only in their meaning.",
        ),
        (
            "ERR-8",
            "MUST NOT",
            "E",
            "both",
            TESTED,
            "No new codes in -32000…-32019; receivers give them no meaning (except `-32002`). SHOULD NOT be "
            "used by new implementations.",
        ),
        ("ERR-9", "SHOULD", "E", "both", TESTED, "Own codes lie outside -32768…-32000."),
        (
            "ERR-10",
            "reading",
            "E",
            "both",
            TESTED,
            "Local errors (timeouts, closed transport) are not dressed as peer errors.",
        ),
        (
            "ERR-11",
            "reading",
            "A-E",
            "server",
            TESTED,
            "Draft SDKs used `-32001`, `-32003`, `-32004` for what are now `-32020…-32022`; do not emit, do "
            "not read as modern.",
        ),
    ),
    # CUST, Custom transports, deprecation
    *rows(
        "A-D:basic/transports E:basic/transports",
        (
            "CUST-1",
            "MUST",
            "A-E",
            "both",
            TESTED,
            "A custom transport keeps the JSON-RPC format and lifecycle (A–D) or message patterns and "
            "per-request metadata (E).",
        ),
        (
            "CUST-2",
            "SHOULD",
            "A-E",
            "both",
            TESTED,
            "Document connection, framing, (E) cancellation.",
        ),
        (
            "CUST-3",
            "MUST",
            "E",
            "both",
            TESTED,
            "A binding delivers client requests/notifications and server responses/notifications; nothing "
            "else.",
        ),
        (
            "CUST-4",
            "SHOULD NOT",
            "E",
            "both",
            TESTED,
            "Deprecated: roots, sampling, logging, DCR, HTTP+SSE, `includeContext` this/allServers. Not "
            "newly adopted, still to be supported for peers.",
        ),
    ),
    # AG, Scope, roles, transport
    *rows(
        "A:basic B-E:basic/authorization",
        (
            "AG-1",
            "schema",
            "A",
            "both",
            TESTED,
            "No authorization in the core; custom schemes are allowed.",
        ),
        (
            "AG-2",
            "MAY",
            "B-E",
            "both",
            TESTED,
            "Authorization is optional; HTTP transports SHOULD follow it; stdio SHOULD NOT (credentials "
            "from the environment); other transports MUST follow their own best practice.",
        ),
        (
            "AG-3",
            "schema",
            "B",
            "server",
            NOT_OURS(
                "we write no authorization server; our client finds one in an MCP server by AC-1 and AC-2"
            ),
            "The MCP server is itself the authorization server (or fronts a third party).",
        ),
        (
            "AG-4",
            "schema",
            "C-E",
            "server",
            TESTED,
            "The MCP server is an OAuth 2.1 resource server; the authorization server (AS) is separate or "
            "co-hosted.",
        ),
        (
            "AG-5",
            "MUST",
            "B-E",
            "authorization server",
            NOT_OURS(AUTHORIZATION_SERVER),
            "OAuth 2.1 for public and confidential clients.",
        ),
        (
            "AG-6",
            "MUST",
            "B-E",
            "both",
            TESTED,
            "OAuth 2.1 security best practices; all AS endpoints over HTTPS; redirect URIs are localhost or "
            "HTTPS.",
        ),
        ("AG-7", "MUST", "B-E", "both", TESTED, "Tokens stored securely."),
        (
            "AG-8",
            "schema",
            "E",
            "both",
            TESTED,
            "Authorization extensions (client credentials, enterprise-managed, others) are optional and "
            "additive; ids in `extensions`.",
        ),
    ),
    # AR, Resource server duties
    *rows(
        "A:basic B-E:basic/authorization",
        (
            "AR-1",
            "MUST",
            "B-E",
            "resource server",
            TESTED,
            "No or bad credentials where needed → 401; insufficient scope/permission → 403; malformed "
            "authorization request → 400. Expired token → 401.",
        ),
        (
            "AR-2",
            "MUST",
            "C-E",
            "resource server",
            TESTED,
            "Publish Protected Resource Metadata (RFC 9728) with non-empty `authorization_servers`; "
            "`resource` is the canonical server URI.",
        ),
        (
            "AR-3",
            "MUST",
            "C",
            "resource server",
            TESTED,
            "401 carries `WWW-Authenticate` with `resource_metadata` URL.",
        ),
        (
            "AR-4",
            "MUST",
            "D-E",
            "resource server",
            TESTED,
            "Either `resource_metadata` in `WWW-Authenticate` of 401, or the document at a well-known URI "
            "(endpoint path form or root). Doing both is best.",
        ),
        (
            "AR-5",
            "SHOULD",
            "D-E",
            "resource server",
            TESTED,
            "`scope` in the challenge = what the operation needs; consistent strategy; need not be within "
            "`scopes_supported`.",
        ),
        (
            "AR-6",
            "SHOULD",
            "D-E",
            "resource server",
            TESTED,
            'Insufficient scope at run time: 403 with `WWW-Authenticate: Bearer error="insufficient_scope", '
            'scope="…", resource_metadata="…"` (+ `error_description?`).',
        ),
        (
            "AR-7",
            "SHOULD",
            "E",
            "resource server",
            TESTED,
            "All scopes of the operation in one challenge, not piecemeal; earlier granted scopes need not "
            "be repeated. (D: recommended to include existing relevant scopes.)",
        ),
        (
            "AR-8",
            "MUST",
            "E",
            "resource server",
            TESTED,
            "Account for scope hierarchies when judging a token.",
        ),
        (
            "AR-9",
            "SHOULD NOT",
            "E",
            "resource server",
            TESTED,
            "`offline_access` neither in the challenge nor in PRM `scopes_supported`.",
        ),
        (
            "AR-10",
            "MUST",
            "B-E",
            "resource server",
            TESTED,
            "Validate tokens as OAuth 2.1 §5.2, errors as §5.3 (`invalid_token`, …), before doing any work.",
        ),
        (
            "AR-11",
            "MUST",
            "C-E",
            "resource server",
            TESTED,
            "Audience check: accept only tokens issued for this server (RFC 8707; `aud` or introspection); "
            "reject others.",
        ),
        (
            "AR-12",
            "MUST NOT",
            "C-E",
            "resource server",
            NOT_OURS("the author of the server makes its upstream calls"),
            "No token passthrough: the client's token is never sent upstream; upstream calls use an own "
            "token.",
        ),
        (
            "AR-13",
            "MUST",
            "B-E",
            "resource server",
            TESTED,
            "The token is checked on each HTTP request, also inside a session; sessions are not "
            "authentication.",
        ),
        (
            "AR-14",
            "MUST NOT",
            "B-E",
            "resource server",
            TESTED,
            "No tokens accepted from the URI query.",
        ),
        (
            "AR-15",
            "MUST",
            "C-E",
            "resource server",
            NOT_OURS(PROXY),
            "Proxy servers with a static upstream client id obtain user consent per dynamically registered "
            "client before forwarding.",
        ),
        (
            "AR-16",
            "reading",
            "B-E",
            "resource server",
            TESTED,
            "Metadata endpoints and (legacy) OAuth endpoints are reachable without a token; CORS and "
            "OPTIONS as needed by browsers.",
        ),
        (
            "AR-17",
            "reading",
            "A-E",
            "resource server",
            TESTED,
            "Bind sessions (A–D), tasks, `requestState`, handles to the principal of the token.",
        ),
    ),
    # AC, Client: discovery of the AS
    *rows(
        "B-D:basic/authorization E:basic/authorization/authorization-server-discovery",
        (
            "AC-1",
            "MUST",
            "B",
            "client",
            TESTED,
            "Authorization base URL = MCP URL without its path; metadata at "
            "`<base>/.well-known/oauth-authorization-server`.",
        ),
        (
            "AC-2",
            "MUST",
            "B",
            "client",
            TESTED,
            "Try metadata first; if missing use `/authorize`, `/token`, `/register` on the base URL.",
        ),
        (
            "AC-3",
            "SHOULD",
            "B",
            "client",
            TESTED,
            "`MCP-Protocol-Version` header on metadata requests.",
        ),
        (
            "AC-4",
            "MUST",
            "C-E",
            "client",
            TESTED,
            "PRM is used to find the AS; parse `WWW-Authenticate`, react to 401.",
        ),
        (
            "AC-5",
            "MUST",
            "D-E",
            "client",
            TESTED,
            "Order: (1) `resource_metadata` URL from the challenge; (2) "
            "`/.well-known/oauth-protected-resource<path>`; (3) `/.well-known/oauth-protected-resource`. If "
            "the endpoint has no path, (2) is skipped. Then abort or use preset values.",
        ),
        (
            "AC-6",
            "schema",
            "C",
            "client",
            TESTED,
            "Only (1) is described; a C client SHOULD use D's fallback too (reading).",
        ),
        (
            "AC-7",
            "MUST",
            "C-E",
            "client",
            TESTED,
            "RFC 9728: the `resource` in the document must match the resource/URL it was asked for; "
            "otherwise do not use it (conformance: resource mismatch is refused).",
        ),
        (
            "AC-8",
            "MAY",
            "C-E",
            "client",
            TESTED,
            "With several `authorization_servers` the client chooses.",
        ),
        ("AC-9", "MUST", "C", "client", TESTED, "RFC 8414 metadata of the AS."),
        (
            "AC-10",
            "MUST",
            "D-E",
            "client",
            TESTED,
            "Issuer with a path `/t`: `https://h/.well-known/oauth-authorization-server/t`, then "
            "`https://h/.well-known/openid-configuration/t`, then "
            "`https://h/t/.well-known/openid-configuration`.",
        ),
        (
            "AC-11",
            "MUST",
            "D-E",
            "client",
            TESTED,
            "Issuer without a path: `/.well-known/oauth-authorization-server`, then "
            "`/.well-known/openid-configuration`.",
        ),
        (
            "AC-12",
            "MUST",
            "E",
            "client",
            TESTED,
            "`issuer` in the document is identical to the issuer used to build the URL, else the document "
            "is not used. (RFC 8414 §3.3 demands the same in C–D.)",
        ),
        (
            "AC-13",
            "MUST",
            "C-E",
            "client",
            TESTED,
            "Separate registration and tokens per AS (explicit in E).",
        ),
        (
            "AC-14",
            "reading",
            "D-E",
            "client",
            TESTED,
            "Go on to the next well-known URL on 4xx (404/405…); a 5xx or network error is a failure, not a "
            "miss. Cross-check with the AS that a co-hosted B server has no PRM: after PRM misses an old B "
            'server may be tried by the B rules (conformance has a "March spec" back-compat scenario).',
        ),
    ),
    # AQ, Client: registration
    *rows(
        "B-D:basic/authorization E:basic/authorization/client-registration",
        (
            "AQ-1",
            "SHOULD",
            "B-C",
            "both",
            TESTED,
            "Dynamic Client Registration (RFC 7591) supported; otherwise preset client id or UI entry.",
        ),
        (
            "AQ-2",
            "SHOULD",
            "D-E",
            "client",
            TESTED,
            "Order: pre-registered → CIMD if `client_id_metadata_document_supported` → DCR if "
            "`registration_endpoint` → ask the user.",
        ),
        ("AQ-3", "MAY", "D-E", "client", TESTED, "DCR optional; deprecated in E."),
        (
            "AQ-4",
            "MUST",
            "D-E",
            "client",
            TESTED,
            "CIMD: document at an HTTPS URL with a path; has `client_id` (exactly that URL), `client_name`, "
            "`redirect_uris`; optional `private_key_jwt` with JWKS.",
        ),
        (
            "AQ-5",
            "MUST",
            "D-E",
            "authorization server",
            NOT_OURS(AUTHORIZATION_SERVER),
            "CIMD: fetched `client_id` = URL; redirect URI in the list; valid JSON; SHOULD cache per HTTP "
            "headers; SHOULD guard against SSRF; MUST show the redirect host; SHOULD warn for "
            "localhost-only.",
        ),
        (
            "AQ-6",
            "MUST",
            "E",
            "client",
            TESTED,
            "DCR sends `application_type` (`native` for desktop/CLI/localhost, `web` otherwise); be ready "
            "for a refusal of redirect URIs, MAY retry adjusted.",
        ),
        (
            "AQ-7",
            "MUST",
            "E",
            "client",
            TESTED,
            "Credentials (pre-registered or DCR) are keyed by the AS `issuer`; AS changed → not reused, "
            "re-register; for pre-registered surface an error. CIMD ids are portable.",
        ),
        ("AQ-8", "SHOULD", "E", "client", TESTED, "`refresh_token` in `grant_types` if wanted."),
        (
            "AQ-9",
            "MUST",
            "B-E",
            "client",
            TESTED,
            "Redirect URIs are registered; the AS compares exactly.",
        ),
        (
            "AQ-10",
            "reading",
            "B-E",
            "client",
            TESTED,
            "Token endpoint auth method: what registration returned, else from "
            "`token_endpoint_auth_methods_supported` (default `client_secret_basic`; public client `none`).",
        ),
    ),
    # AF, Client: authorization code flow
    *rows(
        "B-E:basic/authorization",
        ("AF-1", "MUST", "B-E", "client", TESTED, "PKCE always."),
        (
            "AF-2",
            "MUST",
            "D-E",
            "client",
            TESTED,
            "`S256` when able; `code_challenge_methods_supported` absent in the AS metadata (RFC 8414 or "
            "OIDC) → refuse to go on.",
        ),
        (
            "AF-3",
            "MUST",
            "C-E",
            "client",
            TESTED,
            "`resource` (RFC 8707) in the authorization request and each token request (refresh as well, by "
            "reading), even if the AS does not advertise it.",
        ),
        (
            "AF-4",
            "MUST",
            "C-E",
            "client",
            TESTED,
            "`resource` = canonical server URI: absolute, no fragment, as specific as possible; lower-case "
            "scheme/host, no trailing slash unless significant. Accept upper case on input. If PRM gives "
            "`resource`, use that (RFC 9728), provided it matches.",
        ),
        (
            "AF-5",
            "SHOULD",
            "C-E",
            "client",
            TESTED,
            "`state` sent and verified; drop mismatches. (MUST in the best-practice page for proxies.)",
        ),
        (
            "AF-6",
            "SHOULD",
            "D-E",
            "client",
            TESTED,
            "Scope: from the 401 challenge; else all `scopes_supported` of PRM; else no `scope`.",
        ),
        (
            "AF-7",
            "MUST NOT",
            "D-E",
            "client",
            TESTED,
            "No assumed relation of challenge scopes to `scopes_supported`; challenge is authoritative for "
            "the operation.",
        ),
        (
            "AF-8",
            "MUST",
            "E",
            "client",
            TESTED,
            "Before redirecting, record the validated `issuer` with the PKCE verifier and state.",
        ),
        (
            "AF-9",
            "MUST",
            "E",
            "client",
            TESTED,
            "`iss` check before redeeming the code: supported flag true → must be present and equal; flag "
            "absent/false → equal if present, proceed if absent.",
        ),
        (
            "AF-10",
            "MUST NOT",
            "E",
            "client",
            TESTED,
            "No normalisation (case, port, slash, percent) in the comparison; plain string equality after "
            "form decoding.",
        ),
        (
            "AF-11",
            "MUST NOT",
            "E",
            "client",
            TESTED,
            "On `iss` mismatch do not act on or show `error`, `error_description`, `error_uri` either.",
        ),
        (
            "AF-12",
            "SHOULD",
            "E",
            "authorization server",
            NOT_OURS(AUTHORIZATION_SERVER),
            "Sends `iss` also in errors; if so MUST set `authorization_response_iss_parameter_supported`.",
        ),
        (
            "AF-13",
            "SHOULD",
            "B",
            "server",
            NOT_OURS(AUTHORIZATION_SERVER),
            "Grant types by audience: authorization code (user), client credentials (machine).",
        ),
        (
            "AF-14",
            "MUST",
            "B-E",
            "authorization server",
            NOT_OURS(AUTHORIZATION_SERVER),
            "Exact redirect URI validation; refresh token rotation for public clients (C–E MUST); "
            "short-lived tokens SHOULD.",
        ),
    ),
    # AT, Client: using and renewing tokens
    *rows(
        "B-E:basic/authorization",
        (
            "AT-1",
            "MUST",
            "B-E",
            "client",
            TESTED,
            "`ClientAuthorization: Bearer <token>` on every HTTP request to the server (POST, GET, DELETE), never "
            "in the query.",
        ),
        (
            "AT-2",
            "MUST NOT",
            "C-E",
            "client",
            TESTED,
            "Only tokens issued by this server's AS are sent to it.",
        ),
        (
            "AT-3",
            "MUST",
            "E",
            "client",
            TESTED,
            "Refresh tokens kept confidential; not assumed to exist; `offline_access` MAY be asked if in AS "
            "`scopes_supported`.",
        ),
        (
            "AT-4",
            "reading",
            "B-E",
            "client",
            TESTED,
            "401 with a token: refresh or re-authorize once, then retry; do not loop. Same origin only: "
            "drop the header on cross-origin redirects.",
        ),
        (
            "AT-5",
            "SHOULD",
            "D-E",
            "client",
            TESTED,
            "Step-up on `insufficient_scope`: user-facing clients SHOULD, client-credentials clients MAY.",
        ),
        (
            "AT-6",
            "SHOULD",
            "E",
            "client",
            TESTED,
            "New request asks for the union of previously requested and challenged scopes. (D: scopes by "
            "the selection strategy.)",
        ),
        (
            "AT-7",
            "SHOULD",
            "D-E",
            "client",
            TESTED,
            "Retry only a few times; remember attempts per resource and operation.",
        ),
        (
            "AT-8",
            "reading",
            "E",
            "client",
            TESTED,
            "MRTR, listen and task polling requests need the header as well; on token change private caches "
            "are separate.",
        ),
    ),
    # AU, URL handling, SSRF, browser opening (guide pages, not the specification proper)
    *rows(
        "B-E:/docs/*/tutorials/security/security_best_practices",
        (
            "AU-1",
            "MUST",
            "C-E",
            "client",
            TESTED,
            "Server-hosted clients consider SSRF for all OAuth URLs (PRM, AS metadata, endpoints, "
            "redirects).",
        ),
        (
            "AU-2",
            "SHOULD",
            "C-E",
            "client",
            TESTED,
            "HTTPS for OAuth URLs except loopback in development; explicit opt-out.",
        ),
        (
            "AU-3",
            "SHOULD",
            "C-E",
            "client",
            TESTED,
            "Block private, loopback, link-local (169.254/16 incl. metadata service), `fc00::/7`, "
            "`fe80::/10`; use a real parser (encoding tricks, IPv4-mapped); check redirects hop by hop; "
            "mind DNS rebinding between check and use (pin the address); egress proxy.",
        ),
        (
            "AU-4",
            "MUST",
            "C-E",
            "client",
            TESTED,
            "Authorization URLs: only `https`, `http` for loopback; reject `javascript:`, `data:`, `file:`, "
            "`vbscript:`; open without a shell.",
        ),
        (
            "AU-5",
            "MUST",
            "C-E",
            "resource server",
            NOT_OURS(PROXY),
            "Consent rules for proxy servers: per-client consent before upstream, exact redirect match, "
            "single-use short-lived `state` set only after consent, `__Host-` Secure HttpOnly SameSite "
            "cookies, no framing.",
        ),
        (
            "AU-6",
            "MUST",
            "B-D",
            "resource server",
            TESTED,
            "Sessions: secure non-deterministic ids, not used as authentication; SHOULD be bound to the "
            "user id.",
        ),
        (
            "AU-7",
            "MUST NOT",
            "E",
            "resource server",
            TESTED,
            "A state handle is no authentication; SHOULD be random and bound to the user.",
        ),
        (
            "AU-8",
            "MUST",
            "C-E",
            "host",
            NOT_OURS("the host application installs servers"),
            "One-click local servers: show the exact command, ask consent.",
        ),
    ),
    # AX, Authorization extensions (optional)
    *rows(
        "E:/extensions/auth/overview",
        (
            "AX-1",
            "schema",
            "E",
            "client",
            TESTED,
            "`io.modelcontextprotocol/oauth-client-credentials`: token by `client_credentials` (secret) or "
            "JWT assertion (RFC 7523; iss=sub=client id, aud, exp, iat); declared per request in "
            "`extensions`.",
        ),
        (
            "AX-2",
            "schema",
            "E",
            "client",
            TESTED,
            "`io.modelcontextprotocol/enterprise-managed-authorization`: SSO identity assertion → ID-JAG at "
            "the IdP (token exchange) → access token at the MCP AS (JWT bearer grant); no user redirect to "
            "the MCP AS.",
        ),
        (
            "AX-3",
            "schema",
            "E",
            "both",
            TESTED,
            "DPoP (SEP-1932) and workload identity (SEP-1933) exist as drafts in the conformance suite "
            "only.",
        ),
    ),
    # DEC, Our decisions, where the texts are silent or contradict each other
    *rows(
        "",
        (
            "DEC-1",
            "decision",
            "E",
            "both",
            TESTED,
            "A server ends a subscription with the listen result alone and, over HTTP, the end of the "
            "stream. A client takes the result, `cancelled`, an error or the end of the stream for the end. "
            "(Two pages contradict each other: SUB-8, SUB-9.)",
        ),
        (
            "DEC-2",
            "decision",
            "B-E",
            "server",
            TESTED,
            "The HTTP status follows the error code, for engine and application errors alike, until SSE has "
            "started; only `-32603` and an application's own codes are sent with status 200.",
        ),
        (
            "DEC-3",
            "decision",
            "A-E",
            "receiver",
            TESTED,
            "The error response to a message with an unreadable id has `id: null` up to C and before a "
            "revision is negotiated, and no id in D and E.",
        ),
        (
            "DEC-4",
            "decision",
            "A-E",
            "receiver",
            TESTED,
            '`3.0` is accepted for an integer argument or number, never for an id; `"3"` is no integer.',
        ),
        (
            "DEC-5",
            "decision",
            "B",
            "server",
            TESTED,
            "An HTTP batch is answered by a JSON array if nothing streams, else by SSE.",
        ),
        (
            "DEC-6",
            "decision",
            "A-E",
            "server",
            TESTED,
            "Unknown argument names of a tool are rejected, and the schema derived from its signature has "
            "`additionalProperties: false`.",
        ),
        (
            "DEC-7",
            "decision",
            "A-E",
            "server",
            TESTED,
            "An argument of the wrong type is an `isError` result from C on and `-32602` before. (C's text "
            "lists it as a protocol error, TOOL-16; its peers expect the result.)",
        ),
        (
            "DEC-8",
            "decision",
            "C-E",
            "server",
            TESTED,
            'A tool that returns a scalar or a list sends it unwrapped in E; in C and D as `{"result": '
            "...}` with a schema to match.",
        ),
        (
            "DEC-9",
            "decision",
            "A-E",
            "both",
            TESTED,
            "A server reads messages up to 4 MiB and a client up to 32 MiB, unless configured otherwise.",
        ),
        (
            "DEC-10",
            "decision",
            "A-E",
            "both",
            TESTED,
            "Names found only in tutorials are neither sent nor served: `resources/search`, "
            "`resources/listTemplates`, a server-sent `initialized`, server capabilities `sampling`, "
            "`roots` and `resourceTemplates`. From a peer they are unknown names.",
        ),
        (
            "DEC-11",
            "decision",
            "B-E",
            "server",
            TESTED,
            "`Accept: */*` counts as accepting both JSON and SSE.",
        ),
        (
            "DEC-12",
            "decision",
            "A-E",
            "both",
            TESTED,
            "Requests beyond the in-flight limit wait in a bounded queue; responses, cancellations and pings "
            "bypass it; when it is full, reading pauses or the request gets a busy error.",
        ),
        (
            "DEC-13",
            "decision",
            "A-E",
            "server",
            TESTED,
            "Tool calls are limited by a token bucket per peer; the error beyond it names the retry delay.",
        ),
    ),
)
