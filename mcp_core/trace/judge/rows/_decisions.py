"""Our decisions, where the texts are silent or contradict each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ._requirement import rows

if TYPE_CHECKING:
    from ._requirement import Requirement

__all__ = ["ROWS"]

# fmt: off
ROWS: Final[tuple[Requirement, ...]] = (
    # DEC, Our decisions, where the texts are silent or contradict each other
    *rows(
        {},
        ("DEC-1", "decision", "2026-07-28", None, "both",
         "A server ends a subscription with the listen result alone and, over HTTP, the end of "
         "the stream. A client takes the result, `cancelled`, an error or the end of the stream "
         "for the end. (Two pages contradict each other: SUB-8, SUB-9.)"),
        ("DEC-2", "decision", "2025-03-26", None, "server",
         "The HTTP status follows the error code, for engine and application errors alike, "
         "until SSE has started; only `-32603` and an application's own codes are sent with "
         "status 200."),
        ("DEC-3", "decision", "2024-11-05", None, "receiver",
         "The error response to a message with an unreadable id has `id: null` up to 2025-06-18 "
         "and before a revision is negotiated, and no id from 2025-11-25 on."),
        ("DEC-4", "decision", "2024-11-05", None, "receiver",
         '`3.0` is accepted for an integer argument or number, never for an id; `"3"` is no '
         "integer."),
        ("DEC-5", "decision", "2025-03-26", "2025-06-18", "server",
         "An HTTP batch is answered by a JSON array if nothing streams, else by SSE."),
        ("DEC-6", "decision", "2024-11-05", None, "server",
         "Unknown argument names of a tool are rejected, and the schema derived from its "
         "signature has `additionalProperties: false`."),
        ("DEC-7", "decision", "2024-11-05", None, "server",
         "An argument of the wrong type is an `isError` result from 2025-06-18 on and `-32602` "
         "before. (The text of 2025-06-18 lists it as a protocol error, TOOL-16; its peers expect"
         " the result.)"),
        ("DEC-8", "decision", "2025-06-18", None, "server",
         "A tool that returns a scalar or a list sends it unwrapped in 2026-07-28; in 2025-06-18 "
         'and 2025-11-25 as `{"result": ...}` with a schema to match.'),
        ("DEC-9", "decision", "2024-11-05", None, "both",
         "A server reads messages up to 4 MiB and a client up to 32 MiB, unless configured "
         "otherwise."),
        ("DEC-10", "decision", "2024-11-05", None, "both",
         "Names found only in tutorials are neither sent nor served: `resources/search`, "
         "`resources/listTemplates`, a server-sent `initialized`, server capabilities "
         "`sampling`, `roots` and `resourceTemplates`. From a peer they are unknown names."),
        ("DEC-11", "decision", "2025-03-26", None, "server",
         "`Accept: */*` counts as accepting both JSON and SSE. A client that accepts one of them "
         "gets that, though it has to accept both (HTTP-6): with JSON alone, progress and logs "
         "are dropped and requests to it go to its GET stream. If neither fits, or a "
         "subscription cannot be streamed, 406."),
        ("DEC-12", "decision", "2024-11-05", None, "both",
         "Requests beyond the in-flight limit wait in a bounded queue; responses, cancellations "
         "and pings bypass it; when it is full, reading pauses or the request gets a busy error."),
        ("DEC-13", "decision", "2024-11-05", None, "server",
         "Tool calls are limited by a token bucket per peer; the error beyond it names the "
         "retry delay."),
    ),
)
# fmt: on
