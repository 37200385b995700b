"""The same breaches in programs of other SDKs: a server of TypeScript, and the official client."""

from __future__ import annotations

from tests.oracle_score.operators import TABLE

TABLE.also(
    "typescript",
    {
        "repeat-response": ("tools/list", "tools/call"),
        "drop-response": ("prompts/list",),
        "retype-id": ("digits", "number"),
        "break-envelope": ("jsonrpc 1.0", "cut", "result as list"),
        "answer-notification": ("notifications/cancelled",),
        "break-progress": ("backwards", "after the response"),
        "remove-member": ("a tool's inputSchema", "content"),
        "retype-member": ("a text",),
        "break-schema": ("retyped",),
        "break-list": ("tools/list same cursor", "tools/list twice"),
        "crash": ("an unknown method", "a cancellation"),
        "hang": ("the cancellation of an unknown request",),
        "crash-at-bytes": ("broken JSON",),
    },
)
TABLE.also(
    "sdk client",
    {
        "client-answers": ("ping twice", "id as text", "no roots", "no model"),
        "client-asks": ("same id", "no initialized", "null id", "no clientInfo"),
        "client-fails": ("crash at an error", "crash at a list change", "hang at an error"),
    },
)
