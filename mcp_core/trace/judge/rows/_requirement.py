"""The type of a row, and the address of the page that it is from."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final, Literal

from msgspec import Struct

from mcp_core.types._revisions import REVISIONS

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["CHECKED_LEVELS", "LETTERS", "Level", "Requirement", "Role", "letters", "rows"]

SITE: Final = "https://modelcontextprotocol.io"
# A to E: a revision by its letter, oldest first.
LETTERS: Final = dict(zip("ABCDE", REVISIONS, strict=True))

Level = Literal["MUST", "MUST NOT", "SHOULD", "SHOULD NOT", "MAY", "schema", "reading", "decision"]
# The levels of the obligations that a check reports, by what the user asks for.
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
        page: where it is written, by revision: `A-D:basic/lifecycle E:changelog`. A page is a path
            below the specification of its revision, or below the site if it starts with a slash;
            `*` in it is the revision. Empty for a decision.
        sentence: a summary, never a quotation.
        level: the word of the text. "schema" is a fact of the schema; "reading" an interpretation
            where the text is silent, never an obligation of the peer; "decision" our own choice.
        revisions: a span of letters, such as `A-D` or `A,C-E`.
        role: the party that it binds.
    """

    id: str
    page: str
    sentence: str
    level: Level
    revisions: str
    role: Role

    def links(self) -> list[str]:
        """Return the addresses to read, one for each revision of the row; none for a decision."""
        paths = self._paths()
        return [_link(letter, paths[letter]) for letter in letters(self.revisions) if paths]

    def link(self, letter: str) -> str:
        """Return the address to read for a revision; empty for a decision.

        Args:
            letter: the revision, A to E. For one that the row does not have, the address is that
                of its last one.
        """
        paths = self._paths()
        if not paths:
            return ""
        if letter not in paths or letter not in letters(self.revisions):
            letter = letters(self.revisions)[-1]
        return _link(letter, paths[letter])

    def _paths(self) -> dict[str, str]:
        paths: dict[str, str] = {}
        for entry in self.page.split():
            span, path = entry.split(":")
            paths |= dict.fromkeys(letters(span), path)
        return paths


@cache
def letters(span: str) -> str:
    """Return the letters of a span: `ACDE` for `A,C-E`."""
    every = "".join(LETTERS)
    return "".join(
        every[every.index(part[0]) : every.index(part[-1]) + 1]
        for part in span.replace(" ", "").split(",")
    )


def _link(letter: str, path: str) -> str:
    address = path if path.startswith("/") else f"/specification/*/{path}"
    return SITE + address.replace("*", LETTERS[letter])


def rows(page: str, *table: tuple[str, Level, str, Role, str]) -> tuple[Requirement, ...]:
    """Return rows that share a page. The sentence comes last in each row."""
    return tuple(
        Requirement(id, page, sentence, level, revisions, role)
        for id, level, revisions, role, sentence in table
    )
