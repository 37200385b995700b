"""Tables of the reference pages that follow from the data of the core.

`python -m tests.examples.reference` prints the ones in `docs/reference/revisions.md`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mcp_core import DIALECTS
from mcp_core.protocol.revisions._methods import INPUTS, METHODS, Role
from mcp_core.types._revisions import GATES, R_2024_11_05, REVISIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from mcp_core.protocol.revisions._dialects import Dialect
    from mcp_core.protocol.revisions._methods import Method

YES, NO = "yes", ""
_STRUCTURED: Final = {"none": "", "object": "object", "any": "any JSON"}
# Rows of the table of behaviours: what a field of `Dialect` means to a reader.
_BEHAVIOURS: Final[tuple[tuple[str, Callable[[Dialect], object]], ...]] = (
    ("opens with `initialize`", lambda row: row.stateful),
    ("batches", lambda row: row.batches),
    ("a request that every server answers", lambda row: f"`{row.ping}`"),
    ("`structuredContent`", lambda row: _STRUCTURED[row.structured]),
    (
        "invalid arguments of a tool are a result with `isError`",
        lambda row: row.tool_argument_errors_are_results,
    ),
    ("log messages without a request for them", lambda row: row.log_level is not None),
    ('error responses to unreadable messages have `"id": null`', lambda row: row.null_error_id),
    ("results have a `resultType`", lambda row: bool(row.result_type)),
    ("Streamable HTTP: sessions", lambda row: row.http.sessions),
    ("Streamable HTTP: the header `MCP-Protocol-Version`", lambda row: row.http.version_header),
    (
        "Streamable HTTP: headers repeat method, name and marked parameters",
        lambda row: row.http.mirrored_headers,
    ),
    ("Streamable HTTP: a stream that broke can be resumed", lambda row: row.http.resumable),
    ("Streamable HTTP: a stream begins with an empty event", lambda row: row.http.priming_event),
    ("Streamable HTTP: a disconnect cancels the request", lambda row: row.http.disconnect_cancels),
)


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a Markdown table."""
    lines = [list(head), *map(list, rows)]
    lines.insert(1, ["---"] * len(lines[0]))
    return "".join(
        "|" + "|".join(f" {cell} " if cell else " " for cell in line) + "|\n" for line in lines
    )


def behaviours() -> str:
    """Return the table of behaviours by revision."""
    return table(
        ["", *REVISIONS],
        (
            [name, *(_behaviour(name, read(row), row) for row in DIALECTS.values())]
            for name, read in _BEHAVIOURS
        ),
    )


def _behaviour(name: str, value: object, row: Dialect) -> str:
    if name.startswith("Streamable HTTP") and row.version == R_2024_11_05:
        return NO  # has the transport HTTP+SSE in its place
    if isinstance(value, bool):
        return YES if value else NO
    return str(value)


def methods(*, requests: bool) -> str:
    """Return the table of requests, or of notifications, by revision."""
    names: dict[str, list[Method]] = {}
    for row in METHODS:
        if (row.result is not None) is requests:
            names.setdefault(row.name, []).append(row)
    return table(
        ["method", "sent to", "capability", *REVISIONS],
        (
            [
                f"`{name}`",
                _receivers(rows),
                _capabilities(rows),
                *(_support(name, v) for v in REVISIONS),
            ]
            for name, rows in names.items()
        ),
    )


def _receivers(rows: list[Method]) -> str:
    roles = {role for row in rows for role in ([row.to] if row.to else Role)}
    return "both" if len(roles) == 2 else next(iter(roles)).value


def _capabilities(rows: list[Method]) -> str:
    paths = {".".join(row.needs) for row in rows if row.needs}
    return " or ".join(f"`{path}`" for path in sorted(paths, key=len))


def _support(name: str, version: str) -> str:
    if any(name in rows for rows in DIALECTS[version].receives.values()):
        return YES
    # In 2026-07-28 some requests are values inside a result.
    return "in results" if any(row.name == name and row.since == version for row in INPUTS) else NO


def fields() -> str:
    """Return the table of types and fields that not every revision has."""
    rows: dict[tuple[str, str], list[str]] = {}
    for gate in GATES:
        name = gate.type.__name__ + ("" if gate.field is None else f".{gate.field}")
        rows.setdefault((gate.since or "", gate.until or ""), []).append(f"`{name}`")
    return table(
        ["since", "until before", "types and fields"],
        ([since, until, ", ".join(names)] for (since, until), names in sorted(rows.items())),
    )


TABLES: Final = {
    "Behaviours": behaviours,
    "Requests": lambda: methods(requests=True),
    "Notifications": lambda: methods(requests=False),
    "Types and fields": fields,
}

if __name__ == "__main__":
    for title, made in TABLES.items():
        print(f"## {title}\n\n{made()}")
