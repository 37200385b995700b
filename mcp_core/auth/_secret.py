"""Text that must not be seen: tokens, passwords, codes, private keys.

Rules of this file:

1. A `Secret` prints as what it is, never as what it holds: `repr`, `str`, f-strings and rich give `<secret>`.
2. Who needs the text says so with `reveal()`; there is no other way to it, and so all of them can be found.
3. A struct that has a secret among its texts is `Opaque`: it prints its name, or what it chooses to say.
4. Two secrets are compared in a time that does not tell how much of them is equal.
"""

from __future__ import annotations

import hmac
from typing import NoReturn

from msgspec import Struct

__all__ = ["Opaque", "Secret"]


class Secret:
    """A string that hides itself."""

    __slots__ = ("_text",)

    def __init__(self, text: str | Secret) -> None:
        self._text: str = text.reveal() if isinstance(text, Secret) else text

    def reveal(self) -> str:
        """The text itself."""
        return self._text

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Secret):
            return NotImplemented
        one, two = (text.encode("utf-8", "surrogatepass") for text in (self._text, other._text))
        return hmac.compare_digest(one, two)

    def __hash__(self) -> int:
        return hash(self._text)

    def __repr__(self) -> str:
        return "<secret>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Secret is not pickled: it would be readable where it is kept")


class Opaque(Struct, frozen=True):
    """A struct that does not print its members."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    # msgspec shows rich every member; without this rich takes the repr
    __rich_repr__ = None  # type: ignore[assignment]
