"""Cases for clients. A place is the number of one of the client's requests, from 0; the handshake
counts. A step does nothing if the client sends no request with its place.

    serve revisions tools          the first step: the server's revisions, and its tools
    answer how place number        answer like this: never, late, twice, ... See `_wrong_answers`
    always how place number        answer like this, and so each later request with its method
    push what place number         send this before the answer: ping, sampling, progress, junk, ...
    http how place number          over HTTP, answer like this: status, type, cut, resume, ...

`number` chooses a variant, modulo the number of variants.

A wrong server can be the reason for what its client does. So each step says what it disturbs, and
`EXCUSED` names the rows that aren't judged after that. Excuses are wide: another case finds what
one misses, but a false finding costs trust.
"""

from __future__ import annotations

from typing import Final

__all__ = ["EXCUSED", "is_excused"]

_HANDSHAKE: Final = frozenset(
    {
        *("LIFE-1", "LIFE-5", "LIFE-7", "LIFE-8", "LIFE-13", "LIFE-14", "LIFE-15", "CAP-3"),
        *("RPC-25", "RPC-29", "SHL-22", "SHL-28", "SHM-2", "HDR-1", "HDR-2", "HDR-5", "PROG-8"),
        *("META-6", "CAP-2"),
    }
)
# Rows by what is disturbed. "shape" stands for all rows whose level is "schema".
EXCUSED: Final[dict[str, frozenset[str]]] = {
    "pairing": frozenset({"RPC-7", "RPC-8", "RPC-14"}),
    "handshake": _HANDSHAKE,
    # LIFE-5 says what a client does then.
    "revision": _HANDSHAKE - {"LIFE-5"},
    "questions": frozenset({"ELIC-9", "ELIC-10", "SAMP-3", "SAMP-10"}),
    "pages": frozenset({"PAGE-1", "PAGE-3", "TSK-2", "TSK-3", "TSK-4", "TSK-5"}),
    "rounds": frozenset({"MRTR-6", "MRTR-7", "MRTR-8", "MRTR-10"}),
    "session": frozenset({"RPC-4", "RPC-5"}) | _HANDSHAKE,
    "era": frozenset({"RPC-29"}),
}


def is_excused(row: str, level: str, disturbed: set[str]) -> bool:
    """Return True if what the server has done can be the reason for the client's fault."""
    if "tasks" in disturbed and row.startswith(("TSK-", "TX-", "CXL-5")):
        return True
    if level == "schema" and disturbed & {"handshake", "session", "revision"}:
        return True
    return any(row in EXCUSED.get(each, ()) for each in disturbed)
