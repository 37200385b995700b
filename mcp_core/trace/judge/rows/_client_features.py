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
        "A-E:client/sampling",
        ("SAMP-1", "MUST", "A-E", "client",
         "A supporting client declares `sampling` (E: on each request)."),
        ("SAMP-2", "schema", "A-E", "server",
         "Params: `messages`, `maxTokens` (required integer), `modelPreferences?`, "
         "`systemPrompt?`, `includeContext?`, `temperature?`, `stopSequences?`, `metadata?`; "
         "D–E `tools?`, `toolChoice?`; D `task?`."),
        ("SAMP-3", "schema", "A-E", "client",
         "Result `role, content, model, stopReason?` (open string: endTurn, stopSequence, "
         "maxTokens; D–E toolUse)."),
        ("SAMP-4", "schema", "D-E", "both",
         "`content` is one block or an array, in messages and results; a single object stays "
         "legal."),
        ("SAMP-5", "MUST NOT", "D-E", "server",
         "`tools`/`toolChoice` only if the client declared `sampling.tools`; client MUST return "
         "an error otherwise."),
        ("SAMP-6", "SHOULD NOT", "D-E", "server",
         "`includeContext` `thisServer`/`allServers` only with `sampling.context`; deprecated; "
         "default `none`."),
        ("SAMP-7", "MUST", "D-E", "both",
         "A user message with any `tool_result` has only `tool_result` blocks."),
        ("SAMP-8", "MUST", "D-E", "both",
         "An assistant message with `tool_use` blocks is followed directly by a user message "
         "whose `tool_result`s match all ids one to one."),
        ("SAMP-9", "MUST", "D-E", "server",
         "`toolUseId` matches a previous `tool_use` id."),
        ("SAMP-10", "MUST", "D-E", "client",
         "`toolChoice.mode` `required` → at least one tool use; `none` → none; "
         "default `auto`."),
        ("SAMP-11", "SHOULD", "D", "client",
         "Missing result / mixed content → `-32602`."),
        ("SAMP-12", "SHOULD", "A-D", "client",
         "User rejection → JSON-RPC error code `-1`."),
        ("SAMP-13", "reading", "E", "client",
         "No error channel: on rejection simply no retry."),
        ("SAMP-14", "MUST", "A-E", "client",
         "Model hints are evaluated in order, as substrings; hints SHOULD outrank priorities. "
         "Priorities are 0..1."),
        ("SAMP-15", "MUST", "E", "client",
         "`maxTokens` is respected; MAY sample fewer. Other parameters may be changed or "
         "ignored."),
        ("SAMP-16", "SHOULD", "D-E", "both",
         "Iteration limit for tool loops; keep `_meta` of tool_use/tool_result in follow-ups."),
        ("SAMP-17", "SHOULD", "A-E", "client",
         "Human in the loop, rate limit, content validation."),
        ("SAMP-18", "SHOULD NOT", "E", "both",
         "List of messages is not kept between separate requests."),
        ("SAMP-19", "MUST", "A-E", "both",
         "Sensitive data handled properly."),
        ("SAMP-20", "SHOULD NOT", "E", "both",
         "Feature deprecated in E."),
    ),
    # ELIC, Elicitation
    *rows(
        "C-E:client/elicitation",
        ("ELIC-1", "MUST", "C-E", "client",
         "A supporting client declares `elicitation` (E: on each request)."),
        ("ELIC-2", "MUST", "D-E", "client",
         "Declaring means at least one of form/url; `{}` = form only."),
        ("ELIC-3", "MUST NOT", "D-E", "server",
         "No mode the client did not declare. D: client MUST answer `-32602` to it."),
        ("ELIC-4", "schema", "C", "server",
         "Params `{message, requestedSchema}`; no `mode`."),
        ("ELIC-5", "MUST", "D-E", "server",
         "`message` always; `mode` required for url, optional for form; client MUST read a "
         "missing `mode` as form."),
        ("ELIC-6", "MUST", "C-E", "server",
         'Form schema: flat object, `type:"object"`, `properties` of primitives, `required?`; '
         "E/D `$schema?`. No nesting, no arrays of objects."),
        ("ELIC-7", "schema", "C", "server",
         "Primitives: string (`minLength,maxLength,format` email/uri/date/date-time), "
         "number/integer (`minimum,maximum`), boolean (`default`), enum (`enum`,`enumNames?`). "
         "Only boolean has `default`."),
        ("ELIC-8", "schema", "D-E", "server",
         "`default` on all; enum kinds: single untitled (`enum`), single titled "
         "(`oneOf[{const,title}]`), multi untitled (`array`/`items.enum`), multi titled "
         "(`items.anyOf`), legacy `enumNames`. `minItems/maxItems` on multi."),
        ("ELIC-9", "schema", "C-E", "client",
         "Result `action` accept/decline/cancel; `content` (map to string/number/boolean; D–E "
         "also string[]) only for accepted forms; omitted for URL mode."),
        ("ELIC-10", "SHOULD", "C-E", "both",
         "Both sides validate content against the schema."),
        ("ELIC-11", "SHOULD", "D-E", "client",
         "Pre-fill defaults."),
        ("ELIC-12", "MUST NOT", "C-E", "server",
         "No secrets via (form) elicitation; D–E: secrets MUST use URL mode."),
        ("ELIC-13", "MUST", "D-E", "server",
         "URL mode: valid `url`; D also `elicitationId` (unique per server, opaque to the "
         "client). E has no `elicitationId`."),
        ("ELIC-14", "reading", "D-E", "both",
         "`accept` in URL mode is consent to open, not completion."),
        ("ELIC-15", "MAY", "D", "server",
         "`notifications/elicitation/complete {elicitationId}` to the client that was asked "
         "only; client MUST ignore unknown/finished ids, MAY use it to retry."),
        ("ELIC-16", "MUST", "D", "server",
         "`-32042` only if URL elicitation is needed; `data.elicitations` non-empty list, all "
         "URL mode with `elicitationId`."),
        ("ELIC-17", "MUST NOT", "E", "server",
         "`-32042`, `notifications/elicitation/complete`, `elicitationId` are not used."),
        ("ELIC-18", "MUST", "D-E", "client",
         "URL: no prefetch, no opening without consent, show the full URL, open in a way "
         "neither client nor LLM can inspect. SHOULD highlight the domain, warn on Punycode, "
         "not make links in other fields clickable."),
        ("ELIC-19", "MUST NOT", "D-E", "server",
         "URL has no user data or credentials and is not pre-authenticated; SHOULD be HTTPS; no "
         "clickable URLs in form fields."),
        ("ELIC-20", "MUST", "D-E", "server",
         "Bind elicitation (and stored state) to client and user identity; D: not to session "
         "ids alone; verify that the user opening the URL is the one who started; do not trust "
         "client-given identity."),
        ("ELIC-21", "MUST NOT", "D-E", "server",
         "URL mode does not replace MCP authorization; third-party credentials never pass the "
         "client; client's token not used for third parties."),
        ("ELIC-22", "MUST", "D-E", "client",
         "UI names the server, offers decline and cancel, form answers reviewable. (C: SHOULD.)"),
        ("ELIC-23", "MUST", "E", "server",
         "Handle decline, cancel, client failure."),
        ("ELIC-24", "SHOULD", "C-D", "client",
         "Rate limiting."),
    ),
    # ROOT, Roots
    *rows(
        "A-E:client/roots",
        ("ROOT-1", "MUST", "A-E", "client",
         "A supporting client declares `roots` (`listChanged` A–D only; E per request)."),
        ("ROOT-2", "schema", "A-E", "server",
         "`roots/list` → `{roots: [{uri, name?}]}`; `_meta?` on Root C–."),
        ("ROOT-3", "MUST", "A-E", "client",
         "Root URIs are `file://`."),
        ("ROOT-4", "MUST", "A-D", "client",
         "With `listChanged`, send `notifications/roots/list_changed` on change. Gone in E."),
        ("ROOT-5", "SHOULD", "A-D", "client",
         "Unsupported → `-32601`; internal `-32603`."),
        ("ROOT-6", "MUST", "A-E", "client",
         "Only permitted roots, validated against traversal, access-controlled, monitored."),
        ("ROOT-7", "SHOULD", "A-E", "server",
         "Respect root boundaries, cope with vanishing roots, check capability first."),
        ("ROOT-8", "SHOULD NOT", "E", "both",
         "Feature deprecated in E; roots are guidance, not access control."),
    ),
)
# fmt: on
