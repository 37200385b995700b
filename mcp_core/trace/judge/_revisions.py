"""The judge's own table of the differences between revisions, beside the rows and the shapes.

It takes no fact from `mcp_core.protocol.revisions`, because the judge judges that code. A revision
without an entry has the previous revision's facts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeGuard, TypeVar

from msgspec import Struct

from mcp_core.types._revisions import REVISIONS

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "FACTS",
    "MODERN",
    "REVISIONS",
    "STATEFUL",
    "RevisionFacts",
    "Revisions",
    "are_modern",
    "is_known",
    "is_later",
    "is_modern",
    "is_stateful",
    "newest_entry",
    "span",
]

T = TypeVar("T")
# The revisions that a message can be of, oldest first. Empty if nothing is known.
Revisions: TypeAlias = tuple[str, ...]


class RevisionFacts(Struct, frozen=True):
    """The facts of one revision that rules ask for.

    Attributes:
        handshake: a conversation begins with `initialize`.
        http_sse: its HTTP transport is HTTP+SSE: responses come on a stream of their own.
        reserves_any_label: a prefix in `_meta` is reserved if any of its labels is a reserved one,
            not only the second.
        no_array_fields: no field of a form is an array.
        requested_tasks: the sender of a request asks for a task, with `task` in the params.
        result_types: a result names its type in `resultType`.
    """

    handshake: bool = True
    http_sse: bool = False
    reserves_any_label: bool = False
    no_array_fields: bool = False
    requested_tasks: bool = False
    result_types: bool = False


_FACTS: Final = {
    "2024-11-05": RevisionFacts(http_sse=True),
    "2025-03-26": RevisionFacts(),
    "2025-06-18": RevisionFacts(reserves_any_label=True, no_array_fields=True),
    "2025-11-25": RevisionFacts(requested_tasks=True),
    "2026-07-28": RevisionFacts(handshake=False, result_types=True),
}


def newest_entry(entries: Mapping[str, T], revision: str, default: T) -> T:
    """Return the last of the ordered `entries` whose key isn't later than `revision`."""
    at = REVISIONS.index(revision)
    found = [each for since, each in entries.items() if REVISIONS.index(since) <= at]
    return found[-1] if found else default


# Each revision's facts.
FACTS: Final[Mapping[str, RevisionFacts]] = {
    each: newest_entry(_FACTS, each, RevisionFacts()) for each in REVISIONS
}
# The revisions with a handshake, and those without.
STATEFUL: Final[Revisions] = tuple(each for each in REVISIONS if FACTS[each].handshake)
MODERN: Final[Revisions] = tuple(each for each in REVISIONS if not FACTS[each].handshake)
_MODERN: Final = frozenset(MODERN)


def span(since: str, until: str | None, without: Revisions = ()) -> Revisions:
    """Return the revisions from `since` until before `until`, except `without`.

    If `until` is None, the newest revision is the last.

    Raises:
        ValueError: one of them isn't a revision.
    """
    first = REVISIONS.index(since)
    end = None if until is None else REVISIONS.index(until)
    left_out = {REVISIONS.index(each) for each in without}
    return tuple(each for at, each in enumerate(REVISIONS[first:end], first) if at not in left_out)


def is_known(version: Any) -> TypeGuard[str]:
    """Return True if a value from a peer is one of the revisions."""
    return version in REVISIONS


def is_later(version: str) -> bool:
    """Return True if a date such as "2027-01-01" is after the newest revision."""
    return version > REVISIONS[-1]


def is_stateful(version: Any) -> TypeGuard[str]:
    """Return True if a value from a peer is a revision with a handshake."""
    return version in STATEFUL


def is_modern(version: Any) -> TypeGuard[str]:
    """Return True if a value from a peer is a revision without a handshake."""
    return version in MODERN


def are_modern(revisions: Revisions) -> bool:
    """Return True if `revisions` isn't empty and none of them has a handshake."""
    return bool(revisions) and _MODERN.issuperset(revisions)
