"""Classic requests of HTTP: wrong heads, sessions, and bodies that come in parts or not at all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcp_core import DIALECTS

from ._facts import LIST, WAIT, each_after, groups, opened, request
from ._table import kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mcp_trio.oracle.fuzz._case import Case, Step

    from ._facts import TargetFacts

TRANSPORT = "specification/2025-11-25/basic/transports#streamable-http"


@kind(
    "heads",
    "A header is foreign, wrong or missing, as in DNS rebinding.",
    "specification/2025-11-25/basic/transports#security-warning",
    "specification/2026-07-28/basic/transports/streamable-http",
    "modelcontextprotocol/csharp-sdk#1520",
    "CVE-2025-49596",
)
def _heads(facts: TargetFacts) -> Iterator[Case]:
    if not facts.http:
        return
    for revision in facts.main:
        rules = DIALECTS[revision].http
        names = ["origin", "null-origin", "near-origin", "host", "accept", "type", "version"]
        names += ["session", "no-session"] if rules.sessions else []
        names += ["method", "none"] if rules.mirrored_headers else []
        steps: list[Step] = [("head", name, "tools/list", {}) for name in names]
        if rules.mirrored_headers:
            steps += [("head", "name", method, params) for method, params in _named(facts)]
        for group in groups(steps, 3):
            yield opened(revision, *each_after(group, LIST), WAIT)
        heads = ("argument", "no-argument", "bad-argument") if rules.mirrored_headers else ()
        calls: list[Step] = [
            ("head", what, "tools/call", {"name": tool.name, "arguments": tool.arguments})
            for tool in facts.tools
            for what in heads
        ]
        if calls:
            yield opened(revision, ("page", "tools/list", "all"), *calls, LIST, WAIT)


def _named(facts: TargetFacts) -> Iterator[tuple[str, dict[str, Any]]]:
    for tool in facts.tools[:1]:
        yield "tools/call", {"name": tool.name, "arguments": tool.arguments}
    for prompt in facts.prompts[:1]:
        yield "prompts/get", {"name": prompt["name"]}
    for uri in facts.uris[:1]:
        yield "resources/read", {"uri": uri}


@kind(
    "sessions over HTTP",
    "A session is ended and used again, or one is named that doesn't exist.",
    "specification/2025-11-25/basic/transports#session-management",
    "modelcontextprotocol/go-sdk#715",
    "modelcontextprotocol/python-sdk#3300",
)
def _sessions(facts: TargetFacts) -> Iterator[Case]:
    revision = facts.of_handshake()
    if not facts.http or not revision:
        return
    for how in ("unknown", "own"):
        yield opened(revision, LIST, WAIT, ("delete", how), LIST, WAIT)
    for how in ("stream", "resume", "unknown"):
        yield opened(revision, LIST, WAIT, ("get", how), ("get", how), LIST, WAIT)


@kind(
    "requests in parts",
    "A message comes in two parts, cut within a character, an escape, a chunk or the head.",
    "RFC 9112, section 7.1",
    "RFC 3629, section 3",
    "chrisdoc/hevy-mcp#792",
)
def _parts(facts: TargetFacts) -> Iterator[Case]:
    hows = ("head", "body", "chunks") if facts.http else ("body",)
    for revision in facts.main:
        for how in hows:
            steps: list[Step] = [("parts", how, place) for place in range(6)]
            yield opened(revision, *each_after(steps, WAIT), LIST, WAIT)


@kind(
    "broken requests",
    "A request stops within its head, its body or a chunk, and the connection ends.",
    "RFC 9112, section 8",
    "modelcontextprotocol/python-sdk#820",
)
def _broken(facts: TargetFacts) -> Iterator[Case]:
    if not facts.http:
        return
    for revision in facts.main:
        for places in (("body", "head", "end"), ("chunk", "chunk-size", "start")):
            steps: list[Step] = [("half", place) for place in places]
            yield opened(revision, *steps, LIST, WAIT, ("release",), LIST, WAIT)
        yield opened(revision, request("acme/none"), WAIT, ("half",), ("half",), LIST, WAIT)
