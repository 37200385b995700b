"""Rows for sampling, elicitation and roots."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ._requirement import rows

if TYPE_CHECKING:
    from ._requirement import Requirement

__all__ = ["ROWS"]

# fmt: off
ROWS: Final[tuple[Requirement, ...]] = (
    # SAMP, Sampling
    *rows(
        {"2024-11-05": "client/sampling"},
        ("SAMP-1", "MUST", "2024-11-05", None, "client",
         "A supporting client declares `sampling` (2026-07-28: on each request)."),
        ("SAMP-2", "schema", "2024-11-05", None, "server",
         "Params: `messages`, `maxTokens` (required integer), `modelPreferences?`, "
         "`systemPrompt?`, `includeContext?`, `temperature?`, `stopSequences?`, `metadata?`; "
         "since 2025-11-25 `tools?`, `toolChoice?`; in 2025-11-25 `task?`."),
        ("SAMP-3", "schema", "2024-11-05", None, "client",
         "Result `role, content, model, stopReason?` (open string: endTurn, stopSequence, "
         "maxTokens; since 2025-11-25 toolUse)."),
        ("SAMP-4", "schema", "2025-11-25", None, "both",
         "`content` is one block or an array, in messages and results; a single object stays "
         "legal."),
        ("SAMP-5", "MUST NOT", "2025-11-25", None, "server",
         "`tools`/`toolChoice` only if the client declared `sampling.tools`; client MUST return "
         "an error otherwise."),
        ("SAMP-6", "SHOULD NOT", "2025-11-25", None, "server",
         "`includeContext` `thisServer`/`allServers` only with `sampling.context`; deprecated; "
         "default `none`."),
        ("SAMP-7", "MUST", "2025-11-25", None, "both",
         "A user message with any `tool_result` has only `tool_result` blocks."),
        ("SAMP-8", "MUST", "2025-11-25", None, "both",
         "An assistant message with `tool_use` blocks is followed directly by a user message "
         "whose `tool_result`s match all ids one to one."),
        ("SAMP-9", "MUST", "2025-11-25", None, "server",
         "`toolUseId` matches a previous `tool_use` id."),
        ("SAMP-10", "MUST", "2025-11-25", None, "client",
         "`toolChoice.mode` `required` → at least one tool use; `none` → none; "
         "default `auto`."),
        ("SAMP-11", "SHOULD", "2025-11-25", "2026-07-28", "client",
         "Missing result / mixed content → `-32602`."),
        ("SAMP-12", "SHOULD", "2024-11-05", "2026-07-28", "client",
         "User rejection → JSON-RPC error code `-1`."),
        ("SAMP-13", "reading", "2026-07-28", None, "client",
         "No error channel: on rejection simply no retry."),
        ("SAMP-14", "MUST", "2024-11-05", None, "client",
         "Model hints are evaluated in order, as substrings; hints SHOULD outrank priorities. "
         "Priorities are 0..1."),
        ("SAMP-15", "MUST", "2026-07-28", None, "client",
         "`maxTokens` is respected; MAY sample fewer. Other parameters may be changed or "
         "ignored."),
        ("SAMP-16", "SHOULD", "2025-11-25", None, "both",
         "Iteration limit for tool loops; keep `_meta` of tool_use/tool_result in follow-ups."),
        ("SAMP-17", "SHOULD", "2024-11-05", None, "client",
         "Human in the loop, rate limit, content validation."),
        ("SAMP-18", "SHOULD NOT", "2026-07-28", None, "both",
         "List of messages is not kept between separate requests."),
        ("SAMP-19", "MUST", "2024-11-05", None, "both",
         "Sensitive data handled properly."),
        ("SAMP-20", "SHOULD NOT", "2026-07-28", None, "both",
         "Feature deprecated in 2026-07-28."),
    ),
    # ELIC, Elicitation
    *rows(
        {"2025-06-18": "client/elicitation"},
        ("ELIC-1", "MUST", "2025-06-18", None, "client",
         "A supporting client declares `elicitation` (2026-07-28: on each request)."),
        ("ELIC-2", "MUST", "2025-11-25", None, "client",
         "Declaring means at least one of form/url; `{}` = form only."),
        ("ELIC-3", "MUST NOT", "2025-11-25", None, "server",
         "No mode the client did not declare. 2025-11-25: client MUST answer `-32602` to it."),
        ("ELIC-4", "schema", "2025-06-18", "2025-11-25", "server",
         "Params `{message, requestedSchema}`; no `mode`."),
        ("ELIC-5", "MUST", "2025-11-25", None, "server",
         "`message` always; `mode` required for url, optional for form; client MUST read a "
         "missing `mode` as form."),
        ("ELIC-6", "MUST", "2025-06-18", None, "server",
         'Form schema: flat object, `type:"object"`, `properties` of primitives, `required?`; '
         "since 2025-11-25 `$schema?`. No nesting, no arrays of objects."),
        ("ELIC-7", "schema", "2025-06-18", "2025-11-25", "server",
         "Primitives: string (`minLength,maxLength,format` email/uri/date/date-time), "
         "number/integer (`minimum,maximum`), boolean (`default`), enum (`enum`,`enumNames?`). "
         "Only boolean has `default`."),
        ("ELIC-8", "schema", "2025-11-25", None, "server",
         "`default` on all; enum kinds: single untitled (`enum`), single titled "
         "(`oneOf[{const,title}]`), multi untitled (`array`/`items.enum`), multi titled "
         "(`items.anyOf`), legacy `enumNames`. `minItems/maxItems` on multi."),
        ("ELIC-9", "schema", "2025-06-18", None, "client",
         "Result `action` accept/decline/cancel; `content` (map to string/number/boolean; since "
         "2025-11-25 also string[]) only for accepted forms; omitted for URL mode."),
        ("ELIC-10", "SHOULD", "2025-06-18", None, "both",
         "Both sides validate content against the schema."),
        ("ELIC-11", "SHOULD", "2025-11-25", None, "client",
         "Pre-fill defaults."),
        ("ELIC-12", "MUST NOT", "2025-06-18", None, "server",
         "No secrets via (form) elicitation; since 2025-11-25: secrets MUST use URL mode."),
        ("ELIC-13", "MUST", "2025-11-25", None, "server",
         "URL mode: valid `url`; 2025-11-25 also `elicitationId` (unique per server, opaque to "
         "the client). 2026-07-28 has no `elicitationId`."),
        ("ELIC-14", "reading", "2025-11-25", None, "both",
         "`accept` in URL mode is consent to open, not completion."),
        ("ELIC-15", "MAY", "2025-11-25", "2026-07-28", "server",
         "`notifications/elicitation/complete {elicitationId}` to the client that was asked "
         "only; client MUST ignore unknown/finished ids, MAY use it to retry."),
        ("ELIC-16", "MUST", "2025-11-25", "2026-07-28", "server",
         "`-32042` only if URL elicitation is needed; `data.elicitations` non-empty list, all "
         "URL mode with `elicitationId`."),
        ("ELIC-17", "MUST NOT", "2026-07-28", None, "server",
         "`-32042`, `notifications/elicitation/complete`, `elicitationId` are not used."),
        ("ELIC-18", "MUST", "2025-11-25", None, "client",
         "URL: no prefetch, no opening without consent, show the full URL, open in a way "
         "neither client nor LLM can inspect. SHOULD highlight the domain, warn on Punycode, "
         "not make links in other fields clickable."),
        ("ELIC-19", "MUST NOT", "2025-11-25", None, "server",
         "URL has no user data or credentials and is not pre-authenticated; SHOULD be HTTPS; no "
         "clickable URLs in form fields."),
        ("ELIC-20", "MUST", "2025-11-25", None, "server",
         "Bind elicitation (and stored state) to client and user identity; 2025-11-25: not to "
         "session ids alone; verify that the user opening the URL is the one who started; do not "
         "trust client-given identity."),
        ("ELIC-21", "MUST NOT", "2025-11-25", None, "server",
         "URL mode does not replace MCP authorization; third-party credentials never pass the "
         "client; client's token not used for third parties."),
        ("ELIC-22", "MUST", "2025-11-25", None, "client",
         "UI names the server, offers decline and cancel, form answers reviewable. (2025-06-18: "
         "SHOULD.)"),
        ("ELIC-23", "MUST", "2026-07-28", None, "server",
         "Handle decline, cancel, client failure."),
        ("ELIC-24", "SHOULD", "2025-06-18", "2026-07-28", "client",
         "Rate limiting."),
    ),
    # ROOT, Roots
    *rows(
        {"2024-11-05": "client/roots"},
        ("ROOT-1", "MUST", "2024-11-05", None, "client",
         "A supporting client declares `roots` (`listChanged` up to 2025-11-25 only; 2026-07-28 "
         "per request)."),
        ("ROOT-2", "schema", "2024-11-05", None, "server",
         "`roots/list` → `{roots: [{uri, name?}]}`; `_meta?` on Root since 2025-06-18."),
        ("ROOT-3", "MUST", "2024-11-05", None, "client",
         "Root URIs are `file://`."),
        ("ROOT-4", "MUST", "2024-11-05", "2026-07-28", "client",
         "With `listChanged`, send `notifications/roots/list_changed` on change. Gone in "
         "2026-07-28."),
        ("ROOT-5", "SHOULD", "2024-11-05", "2026-07-28", "client",
         "Unsupported → `-32601`; internal `-32603`."),
        ("ROOT-6", "MUST", "2024-11-05", None, "client",
         "Only permitted roots, validated against traversal, access-controlled, monitored."),
        ("ROOT-7", "SHOULD", "2024-11-05", None, "server",
         "Respect root boundaries, cope with vanishing roots, check capability first."),
        ("ROOT-8", "SHOULD NOT", "2026-07-28", None, "both",
         "Feature deprecated in 2026-07-28; roots are guidance, not access control."),
    ),
)
# fmt: on
