"""Rows for multi round-trip requests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ._requirement import rows

if TYPE_CHECKING:
    from ._requirement import Requirement

__all__ = ["ROWS"]

# fmt: off
ROWS: Final[tuple[Requirement, ...]] = (
    # MRTR, Multi round-trip requests
    *rows(
        {"2026-07-28": "basic/patterns/mrtr"},
        ("MRTR-1", "MUST", "2026-07-28", None, "server",
         "Client input (roots, sampling, elicitation) is requested only through "
         "`InputRequiredResult`."),
        ("MRTR-2", "MUST NOT", "2026-07-28", None, "server",
         "`input_required` is allowed only on `tools/call`, `prompts/get`, `resources/read`."),
        ("MRTR-3", "MUST", "2026-07-28", None, "server",
         "It has at least one of `inputRequests`, `requestState`."),
        ("MRTR-4", "schema", "2026-07-28", None, "server",
         "`inputRequests` = map key → `{method, params}` (no `jsonrpc`, no `id`); method one of "
         "`elicitation/create`, `sampling/createMessage`, `roots/list`."),
        ("MRTR-5", "MUST NOT", "2026-07-28", None, "server",
         "No kind (or elicitation mode, or sampling tools) the client did not declare on this "
         "request; if it cannot proceed → `-32021`."),
        ("MRTR-6", "MUST", "2026-07-28", None, "client",
         "With `inputRequests`: build all responses before the retry. Without: MAY retry at "
         "once."),
        ("MRTR-7", "MUST", "2026-07-28", None, "client",
         "Retry = same method and original params + `inputResponses` (same keys; bare results, "
         "no `resultType`) + `requestState` echoed byte for byte if it was present."),
        ("MRTR-8", "MUST NOT", "2026-07-28", None, "client",
         "No `requestState` in the retry if the result had none."),
        ("MRTR-9", "MUST NOT", "2026-07-28", None, "client",
         "`requestState` is not inspected, parsed or changed."),
        ("MRTR-10", "MUST", "2026-07-28", None, "client",
         "The retry has a new id."),
        ("MRTR-11", "MUST NOT", "2026-07-28", None, "client",
         "Neither field is used on any other (parallel) request."),
        ("MRTR-12", "MUST NOT", "2026-07-28", None, "server",
         "Do not assume the client retries; MAY return `input_required` repeatedly."),
        ("MRTR-13", "MUST", "2026-07-28", None, "server",
         "Treat `requestState` as hostile: integrity protection (HMAC/AEAD) if it influences "
         "authorization, access or logic; reject if it fails."),
        ("MRTR-14", "SHOULD", "2026-07-28", None, "server",
         "Bind principal, short expiry, and method + params digest in it and verify each; "
         "single-use must be enforced server-side if needed."),
        ("MRTR-15", "SHOULD", "2026-07-28", None, "server",
         "Invalid `inputResponses` → JSON-RPC error; unknown keys ignored; missing needed ones "
         "→ a new `input_required`, not an error."),
        ("MRTR-16", "reading", "2026-07-28", None, "client",
         "Client that declines sampling/roots or fails: just does not retry (no error channel); "
         "for elicitation answer `decline`/`cancel`."),
        ("MRTR-17", "reading", "2026-07-28", None, "client",
         "Cap the number of rounds; progress token, logLevel and `Mcp-Param-*` headers are to "
         "be sent on the retry as on the original."),
        ("MRTR-18", "reading", "2026-07-28", None, "server",
         "The retry may reach another server instance; nothing but the retry's content may be "
         "needed."),
    ),
)
# fmt: on
