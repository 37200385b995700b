"""A row's type, and the addresses of its specification pages."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Final, Literal

from msgspec import Struct

from mcp_core.trace.judge._revisions import Revisions, newest_entry, span

__all__ = ["CHECKED_LEVELS", "Level", "Requirement", "Role", "rows"]

_END_OF_SENTENCE: Final = re.compile(r"(?<!e\.g)(?<!i\.e)\.(?=\s|$)")
SITE: Final = "https://modelcontextprotocol.io"

Level = Literal["MUST", "MUST NOT", "SHOULD", "SHOULD NOT", "MAY", "schema", "reading", "decision"]
# The levels that a check reports, by the level that the user asks for.
CHECKED_LEVELS: Final[Mapping[str, frozenset[Level]]] = {
    "must": frozenset({"MUST", "MUST NOT", "schema"}),
    "should": frozenset({"MUST", "MUST NOT", "schema", "SHOULD", "SHOULD NOT"}),
}
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


class Requirement(Struct, frozen=True):
    """One row: a requirement of the specification, or a decision of this project.

    Attributes:
        id: its name, such as `RPC-1`, which is never given to another requirement.
        pages: where it is written, by the first revision that has it there:
            `{"2024-11-05": "basic/lifecycle", "2026-07-28": "changelog"}`. A page is a path below
            its revision's specification, or below the site if it starts with a slash; `*` in
            it is the revision. Empty for a decision.
        sentence: a summary, never a quotation.
        level: the specification's word. "schema" is a fact of the schema; "reading" our
            interpretation where the text is silent, never a peer's obligation; "decision" our own
            choice.
        since: the first revision that has it.
        until: the first later one that doesn't have it, None if it wasn't removed.
        role: the party that must fulfil it.
        without: revisions between them that don't have it.
    """

    id: str
    pages: Mapping[str, str]
    sentence: str
    level: Level
    since: str
    until: str | None
    role: Role
    without: tuple[str, ...] = ()

    @property
    def revisions(self) -> tuple[str, ...]:
        """The revisions that have it, oldest first."""
        return _span(self.since, self.until, self.without)

    @property
    def title(self) -> str:
        """The first sentence of `sentence`, without its full stop."""
        return _END_OF_SENTENCE.split(self.sentence, maxsplit=1)[0]

    def links(self) -> list[str]:
        """Return the addresses to read, one for each revision of the row; none for a decision."""
        return [self._link(revision) for revision in self.revisions if self.pages]

    def link(self, revision: str) -> str:
        """Return the address to read for a revision; empty for a decision.

        Args:
            revision: if the row doesn't have it, the row's last revision is used instead.
        """
        if not self.pages:
            return ""
        known = self.revisions
        return self._link(revision if revision in known else known[-1])

    def _link(self, revision: str) -> str:
        path = newest_entry(self.pages, revision, "")
        address = path if path.startswith("/") else f"/specification/*/{path}"
        return SITE + address.replace("*", revision)


@cache
def _span(since: str, until: str | None, without: tuple[str, ...]) -> Revisions:
    return span(since, until, without)


def rows(
    pages: Mapping[str, str],
    *table: tuple[str, Level, str, str | None, Role, str],
    without: tuple[str, ...] = (),
) -> tuple[Requirement, ...]:
    """Return rows that share pages. The sentence comes last in each row."""
    return tuple(
        Requirement(id, pages, sentence, level, since, until, role, without)
        for id, level, since, until, role, sentence in table
    )
